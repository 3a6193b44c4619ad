/*
 * What UCX does to whole processes: it takes over their crashes, and leaves files behind where they were killed.
 *
 * UCX makes a file in /dev/shm, allocates its pages, and only then removes its name. A process that is killed in
 * between leaves the file, with its pages, forever. While the maker lives it holds the file open; a write lease, which
 * the kernel grants only on a file that nobody else has open or mapped, tells the two apart.
 */
#include "core/base/log.h"
#include "transport/transport.h"
#include "transport/ucx/ucx.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/dev/shm"
#define PREFIX "ucx_shm_posix_"

bool dmg_transport_prepare(void)
{
    dmg_ucx_library_prepare();
    return dmg_ucx_environment_clean();
}

static bool is_left_behind(int folder, const char *name, uint64_t since_s)
{
    int file = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return false;
    }
    struct stat facts;
    bool is_ours = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == geteuid() &&
                   facts.st_ctime >= 0 && (uint64_t)facts.st_ctime >= since_s;
    bool is_left = is_ours && fcntl(file, F_SETLEASE, F_WRLCK) == 0;
    if (is_left) {
        fcntl(file, F_SETLEASE, F_UNLCK);
    }
    close(file);
    return is_left;
}

void dmg_transport_sweep(uint64_t since_s)
{
    DIR *folder = opendir(FOLDER);
    if (!folder) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0 &&
            is_left_behind(dirfd(folder), entry->d_name, since_s) && unlinkat(dirfd(folder), entry->d_name, 0) == 0) {
            dmg_log(DMG_LOG_INFO, "leftover_removed", "file=%s/%s", FOLDER, entry->d_name);
        }
    }
    closedir(folder);
}
