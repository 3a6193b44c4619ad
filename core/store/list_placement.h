/**
 * @file list_placement.h
 * Which memory node the out-of-place lists of a batch go to (DMG, section 4.2.3: coarse-grained round robin).
 *
 * Batches of DMG_STORE_BATCH_VERTICES go, one after the other, to the node that then has least for its share; with
 * batches of one size and even shares this is round robin. A batch that is heavy against the whole graph is cut into
 * pieces of at least DMG_PLACEMENT_VERTICES vertices, or the lists of a few hubs would decide how full a node gets.
 * Every loader finds the same placement from the graph's offsets alone.
 */
#ifndef DMG_CORE_STORE_LIST_PLACEMENT_H
#define DMG_CORE_STORE_LIST_PLACEMENT_H

#include "core/pool/pool.h"
#include "core/pool/range_array.h"

/** Lists of so many consecutive vertices, from a multiple of it on, are never separated. */
#define DMG_PLACEMENT_VERTICES 64

typedef struct dmg_list_placement {
    uint64_t first;
    uint8_t *nodes; /**< one for each DMG_PLACEMENT_VERTICES vertices from `first` on */
} dmg_list_placement;

/**
 * Place the lists of the vertices [first, last), with `first` a multiple of DMG_STORE_BATCH_VERTICES. `offsets` are
 * those of the graph, vertex_count + 1. Looks at two offsets a batch from vertex 0 to `last`, and takes a byte for each
 * DMG_PLACEMENT_VERTICES vertices of the range. DMG_ERR_MEMORY.
 */
dmg_status dmg_list_placement_make(const dmg_pool_shares *shares, uint64_t vertex_count, const uint64_t *offsets,
                                   uint64_t first, uint64_t last, dmg_list_placement *placement);
/** A zeroed one is allowed. */
void dmg_list_placement_destroy(dmg_list_placement *placement);

static inline uint32_t dmg_list_placement_node(const dmg_list_placement *placement, uint64_t vertex)
{
    return placement->nodes[(vertex - placement->first) / DMG_PLACEMENT_VERTICES];
}

#endif
