/**
 * @file folder.h
 * The folder in which a file is about to be made: anywhere but among devices.
 *
 * Where a device was meant and is missing, a file of its name would be taken for it: by this program, which would say
 * that it uses the device, and by others later on.
 */
#ifndef DMG_CORE_BASE_FOLDER_H
#define DMG_CORE_BASE_FOLDER_H

#include "dmgraph/status.h"

/**
 * Open the folder of `path`, with all links followed, to make a file in it by openat and the name behind the last
 * slash.
 *
 * @param[out] folder  a descriptor, the caller's to close; -1 on errors
 * @param[out] name    in `path`
 * @return DMG_OK; DMG_ERR_NOT_FOUND when the folder is /dev or lies below, other than in /dev/shm or a hugetlbfs mount;
 * DMG_ERR_IO when it cannot be opened
 */
dmg_status dmg_folder_to_make_in(const char *path, int *folder, const char **name);
/** Whether a file may be made there, for what does not use the descriptor. The same errors. */
dmg_status dmg_folder_check(const char *path);

#endif
