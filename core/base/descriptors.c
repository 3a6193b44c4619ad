#include "core/base/descriptors.h"

#include <dirent.h>
#include <errno.h>
#include <stddef.h>
#include <sys/resource.h>

uint64_t dmg_descriptors_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? limit.rlim_cur : UINT64_MAX;
}

uint64_t dmg_descriptors_left(void)
{
    uint64_t limit = dmg_descriptors_limit();
    DIR *folder = limit != UINT64_MAX ? opendir("/proc/self/fd") : NULL;
    if (!folder) {
        return limit != UINT64_MAX && errno == EMFILE ? 0 : UINT64_MAX;
    }
    uint64_t count = 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    count -= count > 0; /* the folder's own */
    return limit > count ? limit - count : 0;
}

void dmg_descriptors_raise_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}
