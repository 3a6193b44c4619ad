/**
 * @file range_array.h
 * An array in the pool, split by range over the memory nodes (DMG, section 4.2.3): each node holds consecutive
 * elements, as many as its share of the pool's memory asks for.
 */
#ifndef DMG_CORE_POOL_RANGE_ARRAY_H
#define DMG_CORE_POOL_RANGE_ARRAY_H

#include "core/base/limits.h"
#include "transport/transport.h"

/** Plain data: it travels in the catalog. */
typedef struct dmg_range_array {
    uint64_t count;
    uint32_t element_bytes;
    uint32_t node_count;
    uint64_t ends[DMG_MEMORY_NODES_MAX]; /**< node k holds [ends[k - 1], ends[k]); multiples of 64, but for count */
    dmg_address base[DMG_MEMORY_NODES_MAX];
} dmg_range_array;

/** The node of an element. Looking through the few ends is no slower than a division. */
static inline uint32_t dmg_range_array_node(const dmg_range_array *array, uint64_t index)
{
    uint32_t node = 0;
    while (node + 1 < array->node_count && index >= array->ends[node]) {
        node++;
    }
    return node;
}

/** The first element of a node. */
static inline uint64_t dmg_range_array_first(const dmg_range_array *array, uint32_t node)
{
    return node == 0 ? 0 : array->ends[node - 1];
}

/** Address of an element; the elements up to the end of its node's range follow it. */
static inline dmg_address dmg_range_array_address(const dmg_range_array *array, uint64_t index)
{
    uint32_t node = dmg_range_array_node(array, index);
    return array->base[node] + (index - dmg_range_array_first(array, node)) * array->element_bytes;
}

/** How many of the elements [first, first + count) lie on the node of the first one. */
static inline uint64_t dmg_range_array_run(const dmg_range_array *array, uint64_t first, uint64_t count)
{
    uint64_t left = array->ends[dmg_range_array_node(array, first)] - first;
    return count < left ? count : left;
}

/** How much of something each memory node gets. Plain data: it travels in the catalog. */
typedef struct dmg_pool_shares {
    uint32_t node_count;                   /**< at least 1, at most DMG_MEMORY_NODES_MAX; further nodes get nothing */
    uint64_t weight[DMG_MEMORY_NODES_MAX]; /**< at most 2^48 each, not all 0 */
} dmg_pool_shares;

/** The same for every node. */
void dmg_pool_shares_even(const dmg_client *client, dmg_pool_shares *shares);
/**
 * By the memory that is free on each node now. Nodes that all differ by less than an eighth get the same, so that the
 * small things that lie on some do not move the borders of the large ones. One message a node.
 */
dmg_status dmg_pool_shares_by_room(dmg_channel *channel, dmg_pool_shares *shares);

/** Allocate an array over all nodes, as evenly as multiples of 64 elements allow. At most DMG_MEMORY_NODES_MAX
 * nodes are used. */
dmg_status dmg_range_array_allocate(dmg_channel *channel, uint64_t job, uint64_t count, uint32_t element_bytes,
                                    dmg_range_array *array);
/** The same, in proportion to the shares. */
dmg_status dmg_range_array_allocate_by_share(dmg_channel *channel, uint64_t job, uint64_t count, uint32_t element_bytes,
                                             const dmg_pool_shares *shares, dmg_range_array *array);
/**
 * Allocate an array with one element for every `elements_each` of another: node borders lie at the same places.
 * `elements_each` divides 64. For the words of a bitmap beside the attributes that it is about.
 */
dmg_status dmg_range_array_allocate_beside(dmg_channel *channel, uint64_t job, const dmg_range_array *other,
                                           uint32_t elements_each, uint32_t element_bytes, dmg_range_array *array);
dmg_status dmg_range_array_free(dmg_channel *channel, const dmg_range_array *array);

/**
 * Whether a descriptor that came from the pool is one of so many elements of so many bytes, all of them in the client's
 * segments, in ranges that end at multiples of `range_elements` (or at the array's end): nothing of it may be used
 * before. DMG_ERR_CORRUPT.
 */
dmg_status dmg_range_array_check(const dmg_range_array *array, uint64_t count, uint32_t element_bytes,
                                 uint32_t range_elements, const dmg_client *client);

/** Post reads or writes of elements [first, first + count), one operation a node touched. */
void dmg_range_array_post_read(dmg_channel *channel, const dmg_range_array *array, uint64_t first, uint64_t count,
                               void *to, dmg_completion *completion);
void dmg_range_array_post_write(dmg_channel *channel, const dmg_range_array *array, uint64_t first, uint64_t count,
                                const void *from, dmg_completion *completion);

#endif
