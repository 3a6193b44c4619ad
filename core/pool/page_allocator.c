#include "core/pool/page_allocator.h"

#include "core/base/checked.h"
#include "core/base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct free_range {
    uint64_t offset;
    uint64_t bytes;
} free_range;

struct dmg_page_allocator {
    pthread_mutex_t lock;
    free_range *ranges; /* sorted by offset, no two of them touch */
    uint32_t count;
    uint32_t limit;
    uint64_t used_end; /* nothing at or above it was ever taken */
    uint8_t *clean;    /* by page: 1 when it is free and zero, though it was used */
    uint64_t page_count;
};

dmg_status dmg_page_allocator_create(uint64_t first, uint64_t end, uint32_t range_limit, dmg_page_allocator **allocator)
{
    *allocator = NULL;
    if (first >= end || first % DMG_PAGE_ALLOCATOR_PAGE_BYTES != 0 || end % DMG_PAGE_ALLOCATOR_PAGE_BYTES != 0 ||
        range_limit == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "a segment cannot be managed from byte %llu to byte %llu",
                         (unsigned long long)first, (unsigned long long)end);
    }
    dmg_page_allocator *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the list of free ranges of a segment");
    }
    void *ranges = mmap(NULL, range_limit * sizeof(free_range), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ranges == MAP_FAILED) {
        free(made);
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "mapping the list of free ranges of a segment");
    }
    made->page_count = end / DMG_PAGE_ALLOCATOR_PAGE_BYTES;
    made->clean =
        mmap(NULL, made->page_count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made->clean == MAP_FAILED) {
        int error = errno;
        munmap(ranges, range_limit * sizeof(free_range));
        free(made);
        return dmg_error_errno(DMG_ERR_MEMORY, error, "mapping the list of clean pages of a segment");
    }
    pthread_mutex_init(&made->lock, NULL);
    made->ranges = ranges;
    made->limit = range_limit;
    made->ranges[0] = (free_range){first, end - first};
    made->count = 1;
    made->used_end = first;
    *allocator = made;
    return DMG_OK;
}

void dmg_page_allocator_destroy(dmg_page_allocator *allocator)
{
    if (allocator == NULL) {
        return;
    }
    munmap(allocator->clean, allocator->page_count);
    munmap(allocator->ranges, allocator->limit * sizeof(free_range));
    pthread_mutex_destroy(&allocator->lock);
    free(allocator);
}

static void ranges_remove(dmg_page_allocator *allocator, uint32_t index)
{
    memmove(&allocator->ranges[index], &allocator->ranges[index + 1],
            (allocator->count - index - 1) * sizeof(free_range));
    allocator->count--;
}

static void ranges_insert(dmg_page_allocator *allocator, uint32_t index, uint64_t offset, uint64_t bytes)
{
    memmove(&allocator->ranges[index + 1], &allocator->ranges[index], (allocator->count - index) * sizeof(free_range));
    allocator->ranges[index] = (free_range){offset, bytes};
    allocator->count++;
}

/* The first range that begins at or after the offset. */
static uint32_t ranges_lower_bound(const dmg_page_allocator *allocator, uint64_t offset)
{
    uint32_t low = 0;
    uint32_t high = allocator->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (allocator->ranges[middle].offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Cut [start, start + bytes) out of a range; false when that would leave one range too many. */
static bool ranges_cut(dmg_page_allocator *allocator, uint32_t index, uint64_t start, uint64_t bytes)
{
    free_range *range = &allocator->ranges[index];
    uint64_t before = start - range->offset;
    uint64_t after = range->bytes - before - bytes;
    if (before != 0 && after != 0) {
        if (allocator->count == allocator->limit) {
            return false;
        }
        range->bytes = before;
        ranges_insert(allocator, index + 1, start + bytes, after);
    } else if (before != 0) {
        range->bytes = before;
    } else if (after != 0) {
        *range = (free_range){start + bytes, after};
    } else {
        ranges_remove(allocator, index);
    }
    return true;
}

/* How much from the beginning of [start, end) may have been used; all of it may be from now on. */
static uint64_t dirty_take(dmg_page_allocator *allocator, uint64_t start, uint64_t end)
{
    uint64_t dirty_end = allocator->used_end < end ? allocator->used_end : end;
    while (dirty_end > start && allocator->clean[dirty_end / DMG_PAGE_ALLOCATOR_PAGE_BYTES - 1]) {
        dirty_end -= DMG_PAGE_ALLOCATOR_PAGE_BYTES;
    }
    memset(allocator->clean + start / DMG_PAGE_ALLOCATOR_PAGE_BYTES, 0, (end - start) / DMG_PAGE_ALLOCATOR_PAGE_BYTES);
    return dirty_end > start ? dirty_end - start : 0;
}

bool dmg_page_allocator_allocate(dmg_page_allocator *allocator, uint64_t bytes, uint64_t alignment,
                                 uint64_t alignment_base, uint64_t *offset, uint64_t *dirty_bytes)
{
    bool is_found = false;
    pthread_mutex_lock(&allocator->lock);
    for (uint32_t index = 0; index < allocator->count && !is_found; index++) {
        const free_range range = allocator->ranges[index];
        uint64_t aligned;
        if (range.bytes < bytes || !dmg_checked_round_up(alignment_base + range.offset, alignment, &aligned)) {
            continue;
        }
        uint64_t start = aligned - alignment_base;
        if (!dmg_range_is_inside(start - range.offset, bytes, range.bytes) ||
            !ranges_cut(allocator, index, start, bytes)) {
            continue;
        }
        uint64_t end = start + bytes;
        *offset = start;
        *dirty_bytes = dirty_take(allocator, start, end);
        if (allocator->used_end < end) {
            allocator->used_end = end;
        }
        is_found = true;
    }
    pthread_mutex_unlock(&allocator->lock);
    return is_found;
}

bool dmg_page_allocator_free(dmg_page_allocator *allocator, uint64_t offset, uint64_t bytes)
{
    bool is_kept = true;
    pthread_mutex_lock(&allocator->lock);
    uint32_t next = ranges_lower_bound(allocator, offset);
    bool touches_next = next < allocator->count && offset + bytes == allocator->ranges[next].offset;
    bool touches_previous =
        next > 0 && allocator->ranges[next - 1].offset + allocator->ranges[next - 1].bytes == offset;
    if (touches_previous) {
        allocator->ranges[next - 1].bytes += bytes;
        if (touches_next) {
            allocator->ranges[next - 1].bytes += allocator->ranges[next].bytes;
            ranges_remove(allocator, next);
        }
    } else if (touches_next) {
        allocator->ranges[next] = (free_range){offset, bytes + allocator->ranges[next].bytes};
    } else if (allocator->count < allocator->limit) {
        ranges_insert(allocator, next, offset, bytes);
    } else {
        is_kept = false;
    }
    pthread_mutex_unlock(&allocator->lock);
    return is_kept;
}

uint64_t dmg_page_allocator_find_dirty(dmg_page_allocator *allocator, uint64_t limit, uint64_t *offset)
{
    uint64_t found = 0;
    pthread_mutex_lock(&allocator->lock);
    uint32_t index = ranges_lower_bound(allocator, *offset);
    index -= index > 0; /* the one before may reach beyond */
    for (; index < allocator->count && found == 0; index++) {
        const free_range *range = &allocator->ranges[index];
        uint64_t begin = range->offset > *offset ? range->offset : *offset;
        uint64_t end = range->offset + range->bytes;
        end = end < allocator->used_end ? end : allocator->used_end;
        if (begin >= end) {
            continue;
        }
        uint64_t page_end = end / DMG_PAGE_ALLOCATOR_PAGE_BYTES;
        uint64_t page = begin / DMG_PAGE_ALLOCATOR_PAGE_BYTES;
        const uint8_t *first = memchr(allocator->clean + page, 0, page_end - page);
        page = first ? (uint64_t)(first - allocator->clean) : page_end;
        while (page < page_end && !allocator->clean[page] && found < limit) {
            page++;
            found += DMG_PAGE_ALLOCATOR_PAGE_BYTES;
        }
        *offset = found > 0 ? page * DMG_PAGE_ALLOCATOR_PAGE_BYTES - found : *offset;
    }
    pthread_mutex_unlock(&allocator->lock);
    return found;
}

void dmg_page_allocator_set_clean(dmg_page_allocator *allocator, uint64_t offset, uint64_t bytes)
{
    pthread_mutex_lock(&allocator->lock);
    memset(allocator->clean + offset / DMG_PAGE_ALLOCATOR_PAGE_BYTES, 1, bytes / DMG_PAGE_ALLOCATOR_PAGE_BYTES);
    pthread_mutex_unlock(&allocator->lock);
}

void dmg_page_allocator_left(dmg_page_allocator *allocator, uint64_t *free_bytes, uint64_t *largest_bytes)
{
    *free_bytes = 0;
    *largest_bytes = 0;
    pthread_mutex_lock(&allocator->lock);
    for (uint32_t index = 0; index < allocator->count; index++) {
        uint64_t bytes = allocator->ranges[index].bytes;
        *free_bytes += bytes;
        *largest_bytes = bytes > *largest_bytes ? bytes : *largest_bytes;
    }
    pthread_mutex_unlock(&allocator->lock);
}
