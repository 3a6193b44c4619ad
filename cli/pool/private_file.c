#include "cli/pool/private_file.h"

#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Ours, and closed to others: what is not could have been put there by somebody else. */
dmg_status dmg_private_check(const struct stat *facts, const char *path)
{
    if (facts->st_uid != geteuid()) {
        return dmg_error(DMG_ERR_ARGUMENT, "%s belongs to user %u, so it is not used", path,
                         (unsigned int)facts->st_uid);
    }
    if ((facts->st_mode & 077) != 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "%s is open to other users (mode %03o), so it is not used", path,
                         (unsigned int)(facts->st_mode & 0777));
    }
    return DMG_OK;
}

static dmg_status read_all(int file, const char *path, char *to, size_t capacity, size_t *bytes)
{
    *bytes = 0;
    for (;;) {
        char more; /* a byte beyond the room says that there is more */
        bool is_full = *bytes == capacity;
        ssize_t got = read(file, is_full ? &more : to + *bytes, is_full ? 1 : capacity - *bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return dmg_error_errno(DMG_ERR_IO, errno, "reading %s", path);
        }
        if (got == 0) {
            return DMG_OK;
        }
        if (is_full) {
            return dmg_error(DMG_ERR_CORRUPT, "%s is too long", path);
        }
        *bytes += (size_t)got;
    }
}

dmg_status dmg_private_file_read(int folder, const char *name, const char *path, void *to, size_t capacity,
                                 size_t *bytes)
{
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        return errno == ENOENT ? dmg_error(DMG_ERR_NOT_FOUND, "%s does not exist", path)
                               : dmg_error_errno(DMG_ERR_IO, errno, "opening %s", path);
    }
    struct stat facts;
    dmg_status status = DMG_OK;
    if (fstat(file, &facts) != 0) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "looking at %s", path);
    } else if (!S_ISREG(facts.st_mode)) {
        status = dmg_error(DMG_ERR_ARGUMENT, "%s is no file", path);
    } else {
        status = dmg_private_check(&facts, path);
    }
    if (status == DMG_OK) {
        status = read_all(file, path, to, capacity, bytes);
    }
    close(file);
    return status;
}

static bool write_all(int file, const char *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(file, data, bytes);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        data += written;
        bytes -= (size_t)written;
    }
    return true;
}

dmg_status dmg_private_file_write(int folder, const char *name, const char *path, const void *data, size_t bytes)
{
    char temporary[NAME_MAX + 1];
    dmg_status status = DMG_OK;
    /* 'pool clean' knows such a name, and whether its process lives. */
    if (snprintf(temporary, sizeof temporary, ".%s.%d.new", name, (int)getpid()) >= (int)sizeof temporary) {
        return dmg_error(DMG_ERR_ARGUMENT, "%s: the name is too long", path);
    }
    unlinkat(folder, temporary, 0); /* of a process of this id that was killed */
    int file = openat(folder, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 || !write_all(file, data, bytes) || fsync(file) != 0) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "writing %s", path);
    } else if (renameat2(folder, temporary, folder, name, RENAME_NOREPLACE) != 0) {
        status = errno == EEXIST ? dmg_error(DMG_ERR_EXISTS, "%s is there already", path)
                                 : dmg_error_errno(DMG_ERR_IO, errno, "naming %s", path);
    }
    if (file >= 0) {
        close(file);
    }
    if (status != DMG_OK) {
        unlinkat(folder, temporary, 0);
    }
    return status;
}
