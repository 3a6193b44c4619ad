/**
 * @file private_file.h
 * Small files with secrets: written whole, and believed only when they are this user's and closed to everybody else.
 */
#ifndef DMG_CLI_POOL_PRIVATE_FILE_H
#define DMG_CLI_POOL_PRIVATE_FILE_H

#include "dmgraph/status.h"

#include <stddef.h>
#include <sys/stat.h>

/** DMG_ERR_ARGUMENT unless a file or folder is this user's and closed to all others. `path` is for the sentence. */
dmg_status dmg_private_check(const struct stat *facts, const char *path);

/**
 * Read a file in a folder (AT_FDCWD with a whole path), which is checked.
 *
 * @param[out] bytes  what was read; a file that is longer than `capacity` is DMG_ERR_CORRUPT
 * @return DMG_ERR_NOT_FOUND, DMG_ERR_ARGUMENT when it is no file of this user's alone, DMG_ERR_IO
 */
dmg_status dmg_private_file_read(int folder, const char *name, const char *path, void *to, size_t capacity,
                                 size_t *bytes);

/** Write a file that must not be there: it appears whole, and is on the disk. DMG_ERR_EXISTS, DMG_ERR_IO. */
dmg_status dmg_private_file_write(int folder, const char *name, const char *path, const void *data, size_t bytes);

#endif
