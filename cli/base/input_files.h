/**
 * @file input_files.h
 * The files that a command reads, so that none of its outputs is written over one of them. They are told by device and
 * inode: links of either kind, and other ways to say a path, lead to the same file.
 */
#ifndef DMG_CLI_BASE_INPUT_FILES_H
#define DMG_CLI_BASE_INPUT_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define DMG_INPUT_FILES_MAX 16

typedef struct dmg_input_file {
    dev_t device;
    ino_t inode;
    const char *path; /**< as it was given; borrowed */
    bool is_beside;   /**< it is not the path itself, but belongs to it */
} dmg_input_file;

/** {0} has none. */
typedef struct dmg_input_files {
    dmg_input_file files[DMG_INPUT_FILES_MAX];
    uint32_t count;
} dmg_input_files;

/**
 * Add a file; "-" is the standard input. What is not there, or cannot be overwritten because it is no file, pipe or
 * disk, is left out: reading it says so. The path must stay.
 */
void dmg_input_files_add(dmg_input_files *inputs, const char *path);
/** A graph, with the files beside it that belong to it. */
void dmg_input_files_add_graph(dmg_input_files *inputs, const char *path);
/** A link profile, by path or name. */
void dmg_input_files_add_link(dmg_input_files *inputs, const char *name_or_path);

/** The input that is this file; NULL: none is. */
const dmg_input_file *dmg_input_files_find(const dmg_input_files *inputs, const struct stat *facts);

#endif
