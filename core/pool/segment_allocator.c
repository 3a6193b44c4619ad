#include "core/pool/segment_allocator.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/pool/page_allocator.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Free ranges lie between extents, and between what an arena took; the rest is slack for the pieces that it gives back.
 */
#define RANGES_MAX       (4 * DMG_SEGMENT_EXTENTS_MAX)
#define EXTENTS_AT_FIRST 256

typedef struct extent {
    uint64_t offset;
    uint64_t bytes;
    uint64_t job;
    uint64_t owner;
    uint64_t dirty_begin; /* [dirty_begin, dirty_end) of the segment still has to be zeroed */
    uint64_t dirty_end;
    bool is_in_arena;
    bool is_quarantined;
} extent;

struct dmg_segment_allocator {
    char *segment;
    uint64_t total;
    dmg_page_allocator *space;
    const dmg_segment_arena_operations *arena_operations; /* NULL: small extents are taken from the pages */
    dmg_segment_arena *arena;
    extent *extents; /* sorted by offset */
    uint32_t count;
    uint32_t capacity;
    uint64_t allocated;
    uint64_t peak;
    uint64_t quarantined; /* of the allocated bytes */
    void (*on_zeroed)(void *context, uint64_t offset, uint64_t bytes);
    void *on_zeroed_context;
    bool (*give_back)(void *context, uint64_t offset, uint64_t bytes); /* NULL: pages stay */
    void *give_back_context;
    bool (*take_back)(void *context, uint64_t offset, uint64_t bytes); /* NULL: pages come when they are touched */
    void *take_back_context;
    uint64_t given_back_end; /* free memory below it has been given back */
};

dmg_status dmg_segment_allocator_create(void *segment, uint64_t bytes, const dmg_segment_arena_operations *arena,
                                        dmg_segment_allocator **allocator)
{
    *allocator = NULL;
    uint64_t end = bytes - bytes % DMG_PAGE_ALLOCATOR_PAGE_BYTES;
    if (end < DMG_SEGMENT_HEADER_BYTES + DMG_PAGE_ALLOCATOR_PAGE_BYTES) {
        return dmg_error(DMG_ERR_ARGUMENT, "a segment of %llu bytes is too small: it needs two pages of %d bytes",
                         (unsigned long long)bytes, DMG_PAGE_ALLOCATOR_PAGE_BYTES);
    }
    dmg_segment_allocator *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the allocator of a segment");
    }
    made->segment = segment;
    made->total = bytes;
    dmg_status status = dmg_page_allocator_create(DMG_SEGMENT_HEADER_BYTES, end, RANGES_MAX, &made->space);
    if (status == DMG_OK && arena) {
        made->arena_operations = arena;
        status = arena->create(segment, made->space, &made->arena);
    }
    if (status != DMG_OK) {
        dmg_segment_allocator_destroy(made);
        return status;
    }
    *allocator = made;
    return DMG_OK;
}

void dmg_segment_allocator_on_zeroed(dmg_segment_allocator *allocator,
                                     void (*on_zeroed)(void *context, uint64_t offset, uint64_t bytes), void *context)
{
    allocator->on_zeroed = on_zeroed;
    allocator->on_zeroed_context = context;
}

void dmg_segment_allocator_on_give_back(dmg_segment_allocator *allocator,
                                        bool (*give_back)(void *context, uint64_t offset, uint64_t bytes),
                                        void *context)
{
    allocator->give_back = give_back;
    allocator->give_back_context = context;
}

void dmg_segment_allocator_on_take_back(dmg_segment_allocator *allocator,
                                        bool (*take_back)(void *context, uint64_t offset, uint64_t bytes),
                                        void *context)
{
    allocator->take_back = take_back;
    allocator->take_back_context = context;
    if (allocator->arena) {
        allocator->arena_operations->on_take_back(allocator->arena, take_back, context);
    }
}

bool dmg_segment_allocator_give_back(dmg_segment_allocator *allocator)
{
    if (allocator->give_back == NULL || allocator->given_back_end == allocator->total) {
        return false;
    }
    uint64_t offset = allocator->given_back_end;
    uint64_t bytes = dmg_page_allocator_find_dirty(allocator->space, DMG_SEGMENT_GIVE_BACK_STEP_BYTES, &offset);
    if (bytes == 0) {
        allocator->given_back_end = allocator->total;
        return false;
    }
    if (!allocator->give_back(allocator->give_back_context, offset, bytes)) {
        allocator->give_back = NULL;
        return false;
    }
    if (allocator->take_back == NULL) { /* else its pages are asked for when it is zeroed */
        dmg_page_allocator_set_clean(allocator->space, offset, bytes);
    }
    allocator->given_back_end = offset + bytes;
    return true;
}

static void tell_zeroed(const dmg_segment_allocator *allocator, uint64_t offset, uint64_t bytes)
{
    if (allocator->on_zeroed && bytes > 0) {
        allocator->on_zeroed(allocator->on_zeroed_context, offset, bytes);
    }
}

void dmg_segment_allocator_destroy(dmg_segment_allocator *allocator)
{
    if (allocator == NULL) {
        return;
    }
    if (allocator->arena) {
        allocator->arena_operations->destroy(allocator->arena);
    }
    dmg_page_allocator_destroy(allocator->space);
    free(allocator->extents);
    free(allocator);
}

/* The first extent that begins at or after the offset. */
static uint32_t extents_lower_bound(const dmg_segment_allocator *allocator, uint64_t offset)
{
    uint32_t low = 0;
    uint32_t high = allocator->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (allocator->extents[middle].offset < offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static extent *extents_find(const dmg_segment_allocator *allocator, uint64_t offset)
{
    uint32_t index = extents_lower_bound(allocator, offset);
    bool is_there = index < allocator->count && allocator->extents[index].offset == offset &&
                    !allocator->extents[index].is_quarantined;
    return is_there ? &allocator->extents[index] : NULL;
}

static dmg_status extents_make_room(dmg_segment_allocator *allocator)
{
    if (allocator->count == DMG_SEGMENT_EXTENTS_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "a memory node keeps at most %d extents; allocate larger ones and cut them up",
                         DMG_SEGMENT_EXTENTS_MAX);
    }
    if (allocator->count == allocator->capacity) {
        uint32_t capacity = allocator->capacity == 0 ? EXTENTS_AT_FIRST : 2 * allocator->capacity;
        extent *larger = realloc(allocator->extents, capacity * sizeof *larger);
        if (larger == NULL) {
            return dmg_error(DMG_ERR_MEMORY, "the memory node has no memory for its table of extents");
        }
        allocator->extents = larger;
        allocator->capacity = capacity;
    }
    return DMG_OK;
}

static dmg_status zero_step(dmg_segment_allocator *allocator, extent *dirty)
{
    uint64_t bytes = dirty->dirty_end - dirty->dirty_begin;
    bytes = bytes < DMG_SEGMENT_ZERO_STEP_BYTES ? bytes : DMG_SEGMENT_ZERO_STEP_BYTES;
    if (bytes > 0 && allocator->take_back != NULL &&
        !allocator->take_back(allocator->take_back_context, dirty->dirty_begin, bytes)) {
        return dmg_error(DMG_ERR_MEMORY,
                         "no room for an extent of %llu bytes: its memory was given back to the system when it was "
                         "freed, and others have filled the file system that it lies in (/dev/shm?): make room there, "
                         "or keep all pages by --prefault",
                         (unsigned long long)dirty->bytes);
    }
    memset(allocator->segment + dirty->dirty_begin, 0, bytes);
    tell_zeroed(allocator, dirty->dirty_begin, bytes);
    dirty->dirty_begin += bytes;
    return DMG_OK;
}

/* Free memory from here on may have pages again. */
static void forget_given_back(dmg_segment_allocator *allocator, uint64_t offset)
{
    allocator->given_back_end = offset < allocator->given_back_end ? offset : allocator->given_back_end;
}

/* Where the extent lies and what of it is dirty. Small ones that the arena has no room for may still fit exactly. */
static bool extent_place(dmg_segment_allocator *allocator, extent *made)
{
    made->dirty_begin = made->dirty_end = 0;
    made->is_in_arena = allocator->arena && made->bytes < DMG_SEGMENT_LARGE_BYTES &&
                        allocator->arena_operations->allocate(allocator->arena, made->bytes, &made->offset) == DMG_OK;
    uint64_t dirty_bytes;
    if (made->is_in_arena) {
        tell_zeroed(allocator, made->offset, made->bytes); /* an arena does not say what of it was zero already */
        return true;
    }
    if (!dmg_page_allocator_allocate(allocator->space, made->bytes, DMG_PAGE_ALLOCATOR_PAGE_BYTES, 0, &made->offset,
                                     &dirty_bytes)) {
        return false;
    }
    made->dirty_begin = made->offset;
    made->dirty_end = made->offset + dirty_bytes;
    return true;
}

dmg_status dmg_segment_allocator_allocate(dmg_segment_allocator *allocator, uint64_t bytes, uint64_t job,
                                          uint64_t owner, uint64_t *offset, uint64_t *dirty_left)
{
    extent made = {.job = job, .owner = owner};
    if (bytes == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "an extent of 0 bytes was asked for");
    }
    dmg_status status = extents_make_room(allocator);
    if (status != DMG_OK) {
        return status;
    }
    if (!dmg_checked_round_up(bytes, DMG_PAGE_ALLOCATOR_PAGE_BYTES, &made.bytes) || !extent_place(allocator, &made)) {
        uint64_t free_bytes;
        uint64_t largest_bytes;
        dmg_page_allocator_left(allocator->space, &free_bytes, &largest_bytes);
        return dmg_error(DMG_ERR_MEMORY,
                         "no room for an extent of %llu bytes: of the segment's %llu bytes %llu are left, %llu of them "
                         "in one piece; use larger segments or more memory nodes",
                         (unsigned long long)bytes, (unsigned long long)allocator->total,
                         (unsigned long long)free_bytes, (unsigned long long)largest_bytes);
    }
    status = zero_step(allocator, &made);
    if (status != DMG_OK) { /* of an extent of the arena nothing is dirty */
        (void)dmg_page_allocator_free(allocator->space, made.offset, made.bytes);
        forget_given_back(allocator, made.offset);
        return status;
    }
    uint32_t index = extents_lower_bound(allocator, made.offset);
    memmove(&allocator->extents[index + 1], &allocator->extents[index],
            (allocator->count - index) * sizeof *allocator->extents);
    allocator->count++;
    allocator->extents[index] = made;
    allocator->allocated += made.bytes;
    if (allocator->allocated > allocator->peak) {
        allocator->peak = allocator->allocated;
    }
    *offset = made.offset;
    *dirty_left = made.dirty_end - made.dirty_begin;
    return DMG_OK;
}

dmg_status dmg_segment_allocator_zero(dmg_segment_allocator *allocator, uint64_t offset, uint64_t owner,
                                      uint64_t *dirty_left)
{
    extent *found = extents_find(allocator, offset);
    if (found == NULL || found->owner != owner) {
        return dmg_error(DMG_ERR_NOT_FOUND, "this compute node has allocated no extent at offset %llu",
                         (unsigned long long)offset);
    }
    dmg_status status = zero_step(allocator, found);
    *dirty_left = found->dirty_end - found->dirty_begin;
    return status;
}

/* False when the space cannot remember the range; the extent is then as allocated as before. */
static bool extent_release(dmg_segment_allocator *allocator, const extent *released)
{
    if (released->is_in_arena) {
        allocator->arena_operations->free(allocator->arena, released->offset);
    } else if (!dmg_page_allocator_free(allocator->space, released->offset, released->bytes)) {
        return false;
    }
    allocator->allocated -= released->bytes;
    /* What an arena gives back to the space with it can lie anywhere. */
    forget_given_back(allocator, released->is_in_arena ? 0 : released->offset);
    allocator->quarantined -= released->is_quarantined ? released->bytes : 0;
    return true;
}

dmg_status dmg_segment_allocator_free(dmg_segment_allocator *allocator, uint64_t offset)
{
    extent *found = extents_find(allocator, offset);
    if (found == NULL) {
        return dmg_error(DMG_ERR_NOT_FOUND, "no extent begins at offset %llu", (unsigned long long)offset);
    }
    if (!extent_release(allocator, found)) {
        return dmg_error(DMG_ERR_LIMIT, "the segment is cut into too many pieces to free the extent at offset %llu",
                         (unsigned long long)offset);
    }
    uint32_t after = allocator->count - (uint32_t)(found - allocator->extents) - 1;
    memmove(found, found + 1, after * sizeof *found);
    allocator->count--;
    return DMG_OK;
}

static void release_of_job(dmg_segment_allocator *allocator, uint64_t job, bool is_quarantined)
{
    uint32_t kept = 0;
    for (uint32_t index = 0; index < allocator->count; index++) {
        const extent current = allocator->extents[index];
        if (current.job != job || current.is_quarantined != is_quarantined || !extent_release(allocator, &current)) {
            allocator->extents[kept++] = current;
        }
    }
    allocator->count = kept;
}

void dmg_segment_allocator_free_job(dmg_segment_allocator *allocator, uint64_t job)
{
    release_of_job(allocator, job, false);
}

void dmg_segment_allocator_end_quarantine(dmg_segment_allocator *allocator, uint64_t job)
{
    release_of_job(allocator, job, true);
}

static void extent_quarantine(dmg_segment_allocator *allocator, extent *freed)
{
    freed->is_quarantined = true;
    allocator->quarantined += freed->bytes;
}

dmg_status dmg_segment_allocator_job_of(const dmg_segment_allocator *allocator, uint64_t offset, uint64_t *job)
{
    const extent *found = extents_find(allocator, offset);
    if (found == NULL) {
        return dmg_error(DMG_ERR_NOT_FOUND, "no extent begins at offset %llu", (unsigned long long)offset);
    }
    *job = found->job;
    return DMG_OK;
}

dmg_status dmg_segment_allocator_extent_at(const dmg_segment_allocator *allocator, uint64_t offset, uint64_t *job,
                                           uint64_t *end)
{
    uint32_t behind = offset == UINT64_MAX ? allocator->count : extents_lower_bound(allocator, offset + 1);
    const extent *found = behind > 0 ? &allocator->extents[behind - 1] : NULL;
    if (found == NULL || offset - found->offset >= found->bytes || found->is_quarantined) {
        return dmg_error(DMG_ERR_NOT_FOUND, "no extent has the offset %llu", (unsigned long long)offset);
    }
    *job = found->job;
    *end = found->offset + found->bytes;
    return DMG_OK;
}

dmg_status dmg_segment_allocator_quarantine(dmg_segment_allocator *allocator, uint64_t offset)
{
    extent *found = extents_find(allocator, offset);
    if (found == NULL) {
        return dmg_error(DMG_ERR_NOT_FOUND, "no extent begins at offset %llu", (unsigned long long)offset);
    }
    extent_quarantine(allocator, found);
    return DMG_OK;
}

void dmg_segment_allocator_quarantine_job(dmg_segment_allocator *allocator, uint64_t job)
{
    for (uint32_t index = 0; index < allocator->count; index++) {
        if (allocator->extents[index].job == job && !allocator->extents[index].is_quarantined) {
            extent_quarantine(allocator, &allocator->extents[index]);
        }
    }
}

static uint64_t bytes_of_job(const dmg_segment_allocator *allocator, uint64_t job, bool is_quarantined)
{
    uint64_t bytes = 0;
    for (uint32_t index = 0; index < allocator->count; index++) {
        const extent *counted = &allocator->extents[index];
        bytes += counted->job == job && counted->is_quarantined == is_quarantined ? counted->bytes : 0;
    }
    return bytes;
}

uint64_t dmg_segment_allocator_job_bytes(const dmg_segment_allocator *allocator, uint64_t job)
{
    return bytes_of_job(allocator, job, false);
}

uint32_t dmg_segment_allocator_job_extents(const dmg_segment_allocator *allocator, uint64_t job)
{
    uint32_t count = 0;
    for (uint32_t index = 0; index < allocator->count; index++) {
        count += allocator->extents[index].job == job;
    }
    return count;
}

uint64_t dmg_segment_allocator_quarantined_bytes(const dmg_segment_allocator *allocator, uint64_t job)
{
    return bytes_of_job(allocator, job, true);
}

uint64_t dmg_segment_allocator_quarantined(const dmg_segment_allocator *allocator)
{
    return allocator->quarantined;
}

void dmg_segment_allocator_usage(const dmg_segment_allocator *allocator, uint64_t *allocated, uint64_t *peak,
                                 uint64_t *total)
{
    if (allocated != NULL) {
        *allocated = allocator->allocated;
    }
    if (peak != NULL) {
        *peak = allocator->peak;
    }
    if (total != NULL) {
        *total = allocator->total;
    }
}
