/**
 * @file segment_arena.h
 * What serves the small extents of a memory node: a table of operations, so that a program can bring an allocator that
 * a library must not bring into its host (core/arena/jemalloc_arena.h).
 *
 * An arena takes memory for many small extents from the segment's pages at once. Without one, each is taken from the
 * pages by itself.
 */
#ifndef DMG_CORE_POOL_SEGMENT_ARENA_H
#define DMG_CORE_POOL_SEGMENT_ARENA_H

#include "core/pool/page_allocator.h"

typedef struct dmg_segment_arena dmg_segment_arena;

typedef struct dmg_segment_arena_operations {
    /** `segment` is where offset 0 of the pages is mapped. Both must outlive the arena. */
    dmg_status (*create)(void *segment, dmg_page_allocator *pages, dmg_segment_arena **arena);
    /** dmg_segment_allocator_on_take_back, for what the arena takes from the pages. */
    void (*on_take_back)(dmg_segment_arena *arena, bool (*take_back)(void *context, uint64_t offset, uint64_t bytes),
                         void *context);
    /** NULL is allowed. Gives everything back to the pages. */
    void (*destroy)(dmg_segment_arena *arena);
    /** Allocate zeroed memory, aligned to the page. DMG_ERR_MEMORY when the pages have no extent for it. */
    dmg_status (*allocate)(dmg_segment_arena *arena, uint64_t bytes, uint64_t *offset);
    /** Free what `allocate` gave. */
    void (*free)(dmg_segment_arena *arena, uint64_t offset);
} dmg_segment_arena_operations;

#endif
