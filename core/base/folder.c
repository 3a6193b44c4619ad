#include "core/base/folder.h"

#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static bool is_at_or_below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

/* By name, and by file system: the same folder may be mounted elsewhere, too. */
static bool is_for_devices(int folder)
{
    char link[32];
    char path[PATH_MAX];
    struct stat about, of_devices, of_root;
    struct statfs system;
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    if (is_at_or_below(path, "/dev/shm") || (fstatfs(folder, &system) == 0 && system.f_type == HUGETLBFS_MAGIC)) {
        return false;
    }
    bool is_same_system = fstat(folder, &about) == 0 && stat("/dev", &of_devices) == 0 && stat("/", &of_root) == 0 &&
                          of_devices.st_dev != of_root.st_dev && about.st_dev == of_devices.st_dev;
    return is_same_system || is_at_or_below(path, "/dev");
}

dmg_status dmg_folder_to_make_in(const char *path, int *folder, const char **name)
{
    char parent[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    *folder = -1;
    *name = slash ? slash + 1 : path;
    if (slash &&
        snprintf(parent, sizeof parent, "%.*s", slash == path ? 1 : (int)(slash - path), path) >= (int)sizeof parent) {
        return dmg_error_errno(DMG_ERR_IO, ENAMETOOLONG, "making %s", path);
    }
    *folder = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "making %s", path);
    }
    if (is_for_devices(*folder)) {
        close(*folder);
        *folder = -1;
        return dmg_error(DMG_ERR_NOT_FOUND,
                         "there is no %s, and no file is made among the devices in /dev: name a device that is there "
                         "(`daxctl list` and `dmgraph info transports` list those for memory), or a file elsewhere, "
                         "for memory in /dev/shm or a hugetlbfs mount",
                         path);
    }
    return DMG_OK;
}

dmg_status dmg_folder_check(const char *path)
{
    int folder;
    const char *name;
    dmg_status status = dmg_folder_to_make_in(path, &folder, &name);
    if (status == DMG_OK) {
        close(folder);
    }
    return status;
}
