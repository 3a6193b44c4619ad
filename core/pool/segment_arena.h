/**
 * @file segment_arena.h
 * A jemalloc arena whose extents come from a segment: it serves the small extents of a memory node.
 *
 * jemalloc rounds sizes up to four classes a doubling. For extents that are a good part of the segment that would be a
 * good part of the segment lost, so large ones are taken from the space as they are, and only small ones come through
 * here.
 *
 * jemalloc's own records stay outside the segment (compute nodes write there): the arena is made with hooks for extents
 * but not for metadata, which needs jemalloc 5.3. The arena lives from the first small extent to the last one, because
 * jemalloc keeps the rests of what it took until an arena is destroyed.
 */
#ifndef DMG_CORE_POOL_SEGMENT_ARENA_H
#define DMG_CORE_POOL_SEGMENT_ARENA_H

#include "core/pool/page_allocator.h"

typedef struct dmg_segment_arena dmg_segment_arena;

/** `segment` is where offset 0 of the space is mapped. Both must outlive the arena. */
dmg_status dmg_segment_arena_create(void *segment, dmg_page_allocator *space, dmg_segment_arena **arena);
/** dmg_segment_allocator_on_take_back, for what the arena takes from the space. */
void dmg_segment_arena_on_take_back(dmg_segment_arena *arena,
                                    bool (*take_back)(void *context, uint64_t offset, uint64_t bytes), void *context);
/** NULL is allowed. Gives everything back to the space. */
void dmg_segment_arena_destroy(dmg_segment_arena *arena);
/** Allocate zeroed memory, aligned to the page. DMG_ERR_MEMORY when the space has no extent for it. */
dmg_status dmg_segment_arena_allocate(dmg_segment_arena *arena, uint64_t bytes, uint64_t *offset);
/** Free what dmg_segment_arena_allocate gave. */
void dmg_segment_arena_free(dmg_segment_arena *arena, uint64_t offset);

#endif
