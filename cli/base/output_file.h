/**
 * @file output_file.h
 * A file that appears whole or not at all: it is written without a name where the system can do that, else under a
 * temporary one beside it, and gets its name at the end. One that was there before is replaced, and its permission bits
 * are kept; a symbolic link stays, and what it points to is replaced or made.
 *
 * What is no file (standard output, pipes, devices) and what is named by a descriptor (/dev/stdout, /dev/fd/N) is
 * written as it is.
 */
#ifndef DMG_CLI_BASE_OUTPUT_FILE_H
#define DMG_CLI_BASE_OUTPUT_FILE_H

#include "cli/base/input_files.h"
#include "dmgraph/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct dmg_output_file dmg_output_file;

/**
 * Open for writing; "-" is the standard output. A named pipe waits for its reader.
 *
 * @param inputs  what the command reads (NULL: nothing)
 * @return DMG_OK; DMG_ERR_ARGUMENT when the path leads to one of the inputs; DMG_ERR_IO
 */
dmg_status dmg_output_file_open(const char *path, const dmg_input_files *inputs, dmg_output_file **output);
/** Whether this is where the standard output goes, too, by whatever name. NULL is not. */
bool dmg_output_file_is_standard(const dmg_output_file *output);
/** Whether both would be renamed to the same path. NULL is never the same. */
bool dmg_output_file_is_same(const dmg_output_file *one, const dmg_output_file *other);
/**
 * A descriptor of a file that can be written in any order, for what writes a whole file by itself; owned by the output.
 * For a pipe or a device it is one in memory, which a commit copies. DMG_ERR_IO.
 */
dmg_status dmg_output_file_descriptor(dmg_output_file *output, int *descriptor);
/** Append; written in large blocks. DMG_ERR_IO. */
dmg_status dmg_output_file_write(dmg_output_file *output, const char *text, size_t bytes);
/** Write what is left, put it on the disk, give the file its name, and put that on the disk, too. DMG_ERR_IO. To be
 * closed in any case. */
dmg_status dmg_output_file_commit(dmg_output_file *output);
/** Remove what has a temporary name, and nothing else: for a process that ends while others still write. NULL is
 * allowed. */
void dmg_output_file_discard(const dmg_output_file *output);
/** Close; without a commit, nothing stays. NULL is allowed. */
void dmg_output_file_close(dmg_output_file *output);

#endif
