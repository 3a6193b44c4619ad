/**
 * @file cached_index.h
 * The index of the vertices that a compute node walks, in its own memory: FAM-Graph's way (DMG, section 3.2), which
 * trades cache for the reads of index entries.
 *
 * It is read once, when a phase wants it for the first time. Where the entries say no more than how long a list is and
 * where (no edges in place, and all partitions this compute node's) they are kept in 12 bytes each.
 */
#ifndef DMG_CORE_ENGINE_RETRIEVAL_CACHED_INDEX_H
#define DMG_CORE_ENGINE_RETRIEVAL_CACHED_INDEX_H

#include "core/base/budget.h"
#include "core/store/graph_store.h"

typedef struct dmg_cached_index {
    const dmg_range_array *index; /**< which it is; NULL: none */
    uint64_t first;               /**< the vertices that it has */
    uint64_t last;
    uint32_t bytes_each;
    bool is_compact;
    dmg_index_shape shape;
    uint8_t *entries;
} dmg_cached_index;

/** Memory for the entries of [first, last), none of them read. `owns_all`: all partitions are this compute node's. */
dmg_status dmg_cached_index_create(dmg_budget *budget, const dmg_graph_store *store, const dmg_range_array *index,
                                   uint64_t first, uint64_t last, bool owns_all, dmg_cached_index *cached);
/** A zeroed one is allowed. */
void dmg_cached_index_destroy(dmg_budget *budget, dmg_cached_index *cached);

/** Whether it has the entries of [first, last) of an index. */
static inline bool dmg_cached_index_has(const dmg_cached_index *cached, const dmg_range_array *index, uint64_t first,
                                        uint64_t last)
{
    return cached->index == index && cached->first <= first && last <= cached->last;
}

/** Keep entries as they come from the pool. Workers do this side by side, for different vertices. */
void dmg_cached_index_put(dmg_cached_index *cached, uint64_t first, uint32_t count, const uint8_t *entries);

/**
 * The entries of a chunk that begins at vertex `first`, by vertex - first: those that are selected are as in the pool,
 * but lengths of segments may be missing where all partitions are this compute node's. `buffer` has room for the whole
 * chunk, and may be used.
 */
const uint8_t *dmg_cached_index_get(const dmg_cached_index *cached, uint64_t first, const uint32_t *selected,
                                    uint32_t count, uint8_t *buffer);

#endif
