/**
 * @file helpers.c
 * Threads that take the pages of a new segment while UCX writes zeros to it.
 *
 * UCX's posix makes a file in /dev/shm and writes all of it, in one thread, to see that there is room: it takes each
 * page from the kernel on the way, about a second a GiB. Where the pages are there already, writing is several times
 * faster. So the file, which is open in this process, is mapped a second time as soon as it grows. UCX knows nothing
 * of it: whatever goes wrong here, it does the work alone. Its other files are never so large; one large segment at a
 * time is made in a process, so that the one that grows is the one that is meant.
 */
#include "core/base/populate.h"
#include "transport/ucx/ucx.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OPEN_FILES "/proc/self/fd"
#define PREFIX     "/dev/shm/ucx_shm_posix_"
/* Smaller segments are there before the helpers are. */
#define BYTES_MIN (UINT64_C(256) << 20)
/* What UCX has written when we begin. */
#define WRITTEN_MIN (UINT64_C(32) << 20)
#define LOOK_NS     5000000

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

struct dmg_ucx_helpers {
    uint64_t bytes;
    _Atomic uint64_t *populated;
    _Atomic bool is_over;
    pthread_t thread;
};

static bool is_the_file(const char *link)
{
    char path[128];
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    return strncmp(path, PREFIX, sizeof PREFIX - 1) == 0;
}

/* How far the file was written through this descriptor. */
static uint64_t written_by(const char *descriptor)
{
    char path[64];
    uint64_t position = 0;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%.20s", descriptor);
    FILE *file = fopen(path, "re");
    if (file) {
        position = fscanf(file, "pos: %" SCNu64, &position) == 1 ? position : 0;
        fclose(file);
    }
    return position;
}

/* -1 when it is not there (yet). A descriptor may be closed and become another file's between two looks. */
static int open_the_file(uint64_t bytes)
{
    DIR *files = opendir(OPEN_FILES);
    int found = -1;
    for (const struct dirent *entry = files ? readdir(files) : NULL; entry && found < 0; entry = readdir(files)) {
        char link[64];
        snprintf(link, sizeof link, OPEN_FILES "/%.20s", entry->d_name);
        if (is_the_file(link) && written_by(entry->d_name) >= WRITTEN_MIN) {
            struct stat about;
            found = open(link, O_RDWR | O_CLOEXEC);
            snprintf(link, sizeof link, OPEN_FILES "/%d", found);
            if (found >= 0 && (!is_the_file(link) || fstat(found, &about) != 0 || (uint64_t)about.st_size >= bytes)) {
                close(found);
                found = -1;
            }
        }
    }
    if (files) {
        closedir(files);
    }
    return found;
}

static void *help(void *context)
{
    dmg_ucx_helpers *helpers = context;
    int file = -1;
    while (file < 0 && !atomic_load(&helpers->is_over)) {
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        file = open_the_file(helpers->bytes);
    }
    if (file < 0) {
        return NULL;
    }
    /* The size that UCX's writes will give it. */
    if (ftruncate(file, (off_t)helpers->bytes) == 0) {
        void *memory = mmap(NULL, helpers->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (memory != MAP_FAILED) {
            (void)dmg_populate(memory, helpers->bytes, false, helpers->populated);
            munmap(memory, helpers->bytes);
        }
    }
    close(file);
    return NULL;
}

dmg_ucx_helpers *dmg_ucx_helpers_start(uint64_t bytes, _Atomic uint64_t *populated)
{
    dmg_ucx_helpers *helpers = bytes < BYTES_MIN ? NULL : calloc(1, sizeof *helpers);
    if (helpers) {
        helpers->bytes = bytes;
        helpers->populated = populated;
        pthread_mutex_lock(&one_at_a_time);
        if (pthread_create(&helpers->thread, NULL, help, helpers) != 0) {
            pthread_mutex_unlock(&one_at_a_time);
            free(helpers);
            return NULL;
        }
    }
    return helpers;
}

void dmg_ucx_helpers_stop(dmg_ucx_helpers *helpers)
{
    if (helpers) {
        atomic_store(&helpers->is_over, true);
        pthread_join(helpers->thread, NULL);
        pthread_mutex_unlock(&one_at_a_time);
        free(helpers);
    }
}
