#include "transport/leftovers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define PERMISSION_BITS 07777
#define BLOCK_BYTES     512 /* of st_blocks */

static bool is_of_kind(const struct stat *facts, const dmg_leftover_kind *kind)
{
    return S_ISREG(facts->st_mode) && facts->st_uid == geteuid() &&
           (kind->mode == 0 || (facts->st_mode & PERMISSION_BITS) == kind->mode) &&
           (kind->unit_bytes == 0 || (uint64_t)facts->st_size % kind->unit_bytes == 0) && facts->st_ctime >= 0 &&
           (uint64_t)facts->st_ctime >= kind->since_s;
}

/** The name still stands for the file that was looked at. */
static bool is_same(const char *path, const struct stat *facts)
{
    struct stat now;
    return lstat(path, &now) == 0 && now.st_dev == facts->st_dev && now.st_ino == facts->st_ino;
}

bool dmg_leftover_remove(const char *path, const dmg_leftover_kind *kind, uint64_t *bytes)
{
    struct stat facts;
    /* Looked at before it is opened: opening a device, or another's file, may have effects. */
    if (lstat(path, &facts) != 0 || !is_of_kind(&facts, kind)) {
        return false;
    }
    int file = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return false;
    }
    /* Who opens the file now waits, or goes away; the signal that tells us of him is to be one that nobody minds. */
    bool is_removed = fstat(file, &facts) == 0 && is_of_kind(&facts, kind) && fcntl(file, F_SETSIG, SIGURG) == 0 &&
                      fcntl(file, F_SETLEASE, F_WRLCK) == 0;
    if (is_removed) {
        is_removed = is_same(path, &facts) && unlink(path) == 0;
        fcntl(file, F_SETLEASE, F_UNLCK);
    }
    close(file);
    *bytes = (uint64_t)facts.st_blocks * BLOCK_BYTES;
    return is_removed;
}
