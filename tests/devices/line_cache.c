#include "devices/line_cache.h"

#include "core/base/error.h"
#include "transport/cxl_shm/copy.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define LOCKS      64
#define WORD_BYTES 8
/* One access in so many evicts the line that it touched; one fetch in so many brings the line beside. */
#define EVICTION_ODDS 16
#define PREFETCH_ODDS 4

enum { LINE_IS_THERE = 1, LINE_IS_DIRTY = 2 };

struct dmg_shm_line_cache {
    char *memory;
    char *copy;
    uint64_t bytes;
    uint8_t *lines; /* state of each */
    uint64_t line_count;
    pthread_mutex_t locks[LOCKS]; /* of lines by number */
};

static void *map_private(uint64_t bytes)
{
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

dmg_status dmg_shm_line_cache_create(char *memory, uint64_t bytes, dmg_shm_line_cache **cache)
{
    *cache = NULL;
    dmg_shm_line_cache *made = calloc(1, sizeof *made);
    if (!made) {
        return dmg_error(DMG_ERR_MEMORY, "creating a line cache: out of memory");
    }
    made->memory = memory;
    made->bytes = bytes;
    made->line_count = (bytes + DMG_SHM_CACHE_LINE_BYTES - 1) / DMG_SHM_CACHE_LINE_BYTES;
    made->copy = map_private(bytes);
    made->lines = map_private(made->line_count);
    for (int i = 0; i < LOCKS; i++) {
        pthread_mutex_init(&made->locks[i], NULL);
    }
    if (!made->copy || !made->lines) {
        dmg_shm_line_cache_destroy(made);
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "creating a line cache of %" PRIu64 " bytes", bytes);
    }
    *cache = made;
    return DMG_OK;
}

void dmg_shm_line_cache_destroy(dmg_shm_line_cache *cache)
{
    if (!cache) {
        return;
    }
    if (cache->copy) {
        munmap(cache->copy, cache->bytes);
    }
    if (cache->lines) {
        munmap(cache->lines, cache->line_count);
    }
    for (int i = 0; i < LOCKS; i++) {
        pthread_mutex_destroy(&cache->locks[i]);
    }
    free(cache);
}

char *dmg_shm_line_cache_pointer(const dmg_shm_line_cache *cache)
{
    return cache->copy;
}

/* ---- lines, with their lock held ---- */

static uint64_t bytes_of(const dmg_shm_line_cache *cache, uint64_t line)
{
    uint64_t left = cache->bytes - line * DMG_SHM_CACHE_LINE_BYTES;
    return left < DMG_SHM_CACHE_LINE_BYTES ? left : DMG_SHM_CACHE_LINE_BYTES;
}

/*
 * Hardware moves a line as a whole. Here another process may write one back at the same time, its first word first; so
 * the last word is fetched first: whoever sees a word of the new line sees all words before it, too.
 */
static void fetch_one(dmg_shm_line_cache *cache, uint64_t line)
{
    uint64_t offset = line * DMG_SHM_CACHE_LINE_BYTES;
    if (cache->lines[line] & LINE_IS_THERE) {
        return;
    }
    for (uint64_t at = bytes_of(cache, line); at > 0; at -= WORD_BYTES) {
        uint64_t word_offset = offset + at - WORD_BYTES;
        dmg_shm_copy_from_pool(cache->copy + word_offset, cache->memory + word_offset, WORD_BYTES);
    }
    cache->lines[line] = LINE_IS_THERE;
}

static void fetch(dmg_shm_line_cache *cache, uint64_t line, uint64_t random)
{
    uint64_t beside = line ^ 1;
    bool was_there = cache->lines[line] & LINE_IS_THERE;
    fetch_one(cache, line);
    if (was_there || random % PREFETCH_ODDS != 1 || beside >= cache->line_count) {
        return;
    }
    pthread_mutex_t *locked = &cache->locks[beside % LOCKS];
    if (pthread_mutex_trylock(locked) == 0) { /* two threads that want each other's line both do without */
        fetch_one(cache, beside);
        pthread_mutex_unlock(locked);
    }
}

/* The whole line, as hardware does it: what others wrote meanwhile to other bytes of it is lost. */
static void write_back(dmg_shm_line_cache *cache, uint64_t line)
{
    uint64_t offset = line * DMG_SHM_CACHE_LINE_BYTES;
    if (cache->lines[line] & LINE_IS_DIRTY) {
        dmg_shm_copy_to_pool(cache->memory + offset, cache->copy + offset, bytes_of(cache, line));
        cache->lines[line] = LINE_IS_THERE;
    }
}

static void evict_maybe(dmg_shm_line_cache *cache, uint64_t line, uint64_t random)
{
    if (random != 0 && random % EVICTION_ODDS == 0) {
        write_back(cache, line);
        cache->lines[line] = 0;
    }
}

static pthread_mutex_t *lock(dmg_shm_line_cache *cache, uint64_t line)
{
    pthread_mutex_t *locked = &cache->locks[line % LOCKS];
    pthread_mutex_lock(locked);
    return locked;
}

/* ---- what agents do ---- */

void dmg_shm_line_cache_store(dmg_shm_line_cache *cache, uint64_t offset, const void *from, uint64_t bytes,
                              uint64_t random)
{
    uint64_t line = offset / DMG_SHM_CACHE_LINE_BYTES;
    pthread_mutex_t *locked = lock(cache, line);
    fetch(cache, line, random);
    memcpy(cache->copy + offset, from, bytes);
    cache->lines[line] |= LINE_IS_DIRTY;
    evict_maybe(cache, line, random);
    pthread_mutex_unlock(locked);
}

void dmg_shm_line_cache_load(dmg_shm_line_cache *cache, uint64_t offset, void *to, uint64_t bytes, uint64_t random)
{
    uint64_t line = offset / DMG_SHM_CACHE_LINE_BYTES;
    pthread_mutex_t *locked = lock(cache, line);
    fetch(cache, line, random);
    memcpy(to, cache->copy + offset, bytes);
    evict_maybe(cache, line, random);
    pthread_mutex_unlock(locked);
}

void dmg_shm_line_cache_fetch(dmg_shm_line_cache *cache, uint64_t line, uint64_t random)
{
    pthread_mutex_t *locked = lock(cache, line);
    fetch(cache, line, random);
    pthread_mutex_unlock(locked);
}

void dmg_shm_line_cache_mark_written(dmg_shm_line_cache *cache, uint64_t line)
{
    pthread_mutex_t *locked = lock(cache, line);
    cache->lines[line] = LINE_IS_THERE | LINE_IS_DIRTY;
    pthread_mutex_unlock(locked);
}

void dmg_shm_line_cache_write_back(dmg_shm_line_cache *cache, uint64_t line, bool stays)
{
    pthread_mutex_t *locked = lock(cache, line);
    write_back(cache, line);
    if (!stays) {
        cache->lines[line] = 0;
    }
    pthread_mutex_unlock(locked);
}
