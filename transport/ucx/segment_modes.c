/**
 * @file segment_modes.c
 * UCX's shared memory closed to other users.
 *
 * UCX makes pieces of System V's with mode 660, so that everybody of the same group can attach them, and files in
 * /dev/shm with what the umask leaves of 666. There is no setting for either. So as soon as such memory is made, the
 * mode is taken back. Who was faster and has attached a piece of System V's in between stays attached: then it is not
 * used. The files have no name, and are reached through this process's descriptors alone, which others may not open.
 */
#include "core/base/error.h"
#include "transport/ucx/ucx.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <unistd.h>

#define OPEN_FILES  "/proc/self/fd"
#define FILE_PREFIX "/dev/shm/ucx_shm_posix_"
#define OTHERS      077
#define OWNER_ONLY  0600

/** One piece, if this process has made it. */
static dmg_status close_piece(int index)
{
    struct shmid_ds about;
    int id = shmctl(index, SHM_STAT, &about);
    if (id < 0 || about.shm_cpid != getpid() || (about.shm_perm.mode & OTHERS) == 0) {
        return DMG_OK;
    }
    about.shm_perm.mode = (about.shm_perm.mode & ~0777u) | OWNER_ONLY;
    if (shmctl(id, IPC_SET, &about) != 0 || shmctl(id, IPC_STAT, &about) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "closing UCX's shared memory of System V to other users");
    }
    return about.shm_nattch <= 1
               ? DMG_OK
               : dmg_error(DMG_ERR_IO, "another process has attached UCX's shared memory of System V as it was made: "
                                       "use data=posix, which cannot be found by number");
}

static dmg_status close_pieces(void)
{
    struct shm_info used;
    dmg_status status = DMG_OK;
    int last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&used);
    for (int index = 0; index <= last && status == DMG_OK; index++) {
        status = close_piece(index);
    }
    return status;
}

static void close_file(const char *descriptor)
{
    char link[64], path[128];
    struct stat about;
    snprintf(link, sizeof(link), OPEN_FILES "/%.20s", descriptor);
    ssize_t length = readlink(link, path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    if (strncmp(path, FILE_PREFIX, sizeof(FILE_PREFIX) - 1) == 0 && stat(link, &about) == 0 &&
        (about.st_mode & OTHERS) != 0) {
        (void)chmod(link, OWNER_ONLY);
    }
}

static void close_files(void)
{
    DIR *files = opendir(OPEN_FILES);
    for (struct dirent *file = files != NULL ? readdir(files) : NULL; file != NULL; file = readdir(files)) {
        close_file(file->d_name);
    }
    if (files != NULL) {
        closedir(files);
    }
}

dmg_status dmg_ucx_close_to_others(const char *transports)
{
    if (strcmp(transports, "sysv") == 0) {
        return close_pieces();
    }
    if (strcmp(transports, "posix") == 0) {
        close_files();
    }
    return DMG_OK;
}
