/**
 * @file page_allocator.h
 * Which parts of a segment are free: the lowest layer of a memory node's allocator.
 *
 * Free ranges stand in one sorted array, neighbours are merged, and the lowest range that fits is taken, so that memory
 * that was touched before is used again before memory that never was. What was never handed out is known to be zero
 * still, and nobody has to touch it; and so is what was given back to the system in the meantime, whose pages come
 * anew.
 *
 * The array is mapped once and never grows, and no function allocates memory: an arena calls from inside its own
 * allocations. A lock makes the functions thread-safe, because jemalloc may return extents from a background thread if
 * its user asks it to have one.
 */
#ifndef DMG_CORE_POOL_PAGE_ALLOCATOR_H
#define DMG_CORE_POOL_PAGE_ALLOCATOR_H

#include "dmgraph/status.h"

#include <stdbool.h>
#include <stdint.h>

/** All ranges are multiples of it. */
#define DMG_PAGE_ALLOCATOR_PAGE_BYTES 4096

typedef struct dmg_page_allocator dmg_page_allocator;

/** Make [first, end) free and never used. Both are multiples of the page. `range_limit` bounds how many free ranges are
 * kept. */
dmg_status dmg_page_allocator_create(uint64_t first, uint64_t end, uint32_t range_limit,
                                     dmg_page_allocator **allocator);
/** NULL is allowed. */
void dmg_page_allocator_destroy(dmg_page_allocator *allocator);

/**
 * Take a range.
 *
 * @param bytes            not 0, a multiple of the page
 * @param alignment        a power of two, at least the page
 * @param alignment_base   what the offset is added to before it is aligned (a mapped address, or 0)
 * @param[out] offset      where the range begins
 * @param[out] dirty_bytes so many bytes from its beginning may have been used before; the rest is zero
 * @return false when no free range fits
 */
bool dmg_page_allocator_allocate(dmg_page_allocator *allocator, uint64_t bytes, uint64_t alignment,
                                 uint64_t alignment_base, uint64_t *offset, uint64_t *dirty_bytes);
/** Give back any part of what was taken. False when there is no room to remember it: it stays taken. */
bool dmg_page_allocator_free(dmg_page_allocator *allocator, uint64_t offset, uint64_t bytes);
/**
 * Find free memory that was used and is not known to be zero: the lowest from `*offset` on.
 *
 * @param limit           look for so many bytes at most, a multiple of the page
 * @param[in,out] offset  where to begin to look; then where it lies
 * @return how many bytes that are; 0: there are none
 */
uint64_t dmg_page_allocator_find_dirty(dmg_page_allocator *allocator, uint64_t limit, uint64_t *offset);
/** What dmg_page_allocator_find_dirty found, and is still free, is zero now. */
void dmg_page_allocator_set_clean(dmg_page_allocator *allocator, uint64_t offset, uint64_t bytes);
/** Bytes that are free, and the largest free range. */
void dmg_page_allocator_left(dmg_page_allocator *allocator, uint64_t *free_bytes, uint64_t *largest_bytes);

#endif
