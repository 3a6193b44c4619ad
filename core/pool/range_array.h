/**
 * @file range_array.h
 * An array in the pool, split by range over the memory nodes (DMG, section 4.2.3): node k holds elements [k * per_node,
 * (k + 1) * per_node).
 */
#ifndef DMG_CORE_POOL_RANGE_ARRAY_H
#define DMG_CORE_POOL_RANGE_ARRAY_H

#include "transport/transport.h"

/** Range arrays are spread over at most so many nodes. */
#define DMG_RANGE_ARRAY_NODES_MAX 16

/** Plain data: it travels in the catalog. */
typedef struct dmg_range_array {
    uint64_t count;
    uint64_t per_node; /**< elements on each node but the last; a multiple of 64 */
    uint32_t element_bytes;
    uint32_t node_count;
    dmg_address base[DMG_RANGE_ARRAY_NODES_MAX];
} dmg_range_array;

/** Address of an element; the elements up to the end of its node's range follow it. */
static inline dmg_address dmg_range_array_address(const dmg_range_array *array, uint64_t index)
{
    uint64_t node = index / array->per_node;
    return array->base[node] + (index - node * array->per_node) * array->element_bytes;
}

/** How many of the elements [first, first + count) lie on the node of the first one. */
static inline uint64_t dmg_range_array_run(const dmg_range_array *array, uint64_t first, uint64_t count)
{
    uint64_t left = array->per_node - first % array->per_node;
    return count < left ? count : left;
}

/** Post reads or writes of elements [first, first + count), one operation a node touched. */
void dmg_range_array_post_read(dmg_channel *channel, const dmg_range_array *array, uint64_t first, uint64_t count,
                               void *to, dmg_completion *completion);
void dmg_range_array_post_write(dmg_channel *channel, const dmg_range_array *array, uint64_t first, uint64_t count,
                                const void *from, dmg_completion *completion);

#endif
