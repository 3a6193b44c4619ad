/**
 * @file output_file.h
 * A file that appears whole or not at all: it is written without a name where the system can do that, else under a
 * temporary one beside it, and gets its name at the end. Standard output and devices are written as they are.
 */
#ifndef DMG_CLI_OUTPUT_FILE_H
#define DMG_CLI_OUTPUT_FILE_H

#include "dmgraph/status.h"

#include <stddef.h>

typedef struct dmg_output_file dmg_output_file;

/** Open for writing; "-" is the standard output. DMG_ERR_IO. */
dmg_status dmg_output_file_open(const char *path, dmg_output_file **output);
/** The descriptor, for what writes a whole file by itself. */
int dmg_output_file_descriptor(const dmg_output_file *output);
/** Append; written in large blocks. DMG_ERR_IO. */
dmg_status dmg_output_file_write(dmg_output_file *output, const char *text, size_t bytes);
/** Write what is left, and give the file its name. DMG_ERR_IO. To be closed in any case. */
dmg_status dmg_output_file_commit(dmg_output_file *output);
/** Remove what has a temporary name, and nothing else: for a process that ends while others still write. NULL is
 * allowed. */
void dmg_output_file_discard(const dmg_output_file *output);
/** Close; without a commit, nothing stays. NULL is allowed. */
void dmg_output_file_close(dmg_output_file *output);

#endif
