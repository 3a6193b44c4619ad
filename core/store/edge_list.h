/**
 * @file edge_list.h
 * Out-of-place lists while they are laid out: segment lengths, and what room a list takes (DMG, section 4.2.1).
 */
#ifndef DMG_CORE_STORE_EDGE_LIST_H
#define DMG_CORE_STORE_EDGE_LIST_H

#include "core/store/index_entry.h"

/** Where a list and its parts lie in a node's extent. */
typedef struct dmg_list_place {
    uint64_t offset;       /**< of the lengths in front, or of the first edge when there are none */
    uint64_t header_bytes; /**< 0: the lengths are in the entry */
    uint64_t end;          /**< behind the last edge */
} dmg_list_place;

/** True when the lengths of any list of this degree fit into an entry, however its edges spread over the partitions. */
bool dmg_edge_list_lengths_surely_fit(const dmg_index_shape *shape, uint64_t degree);

/**
 * Count the edges of an ascending list by partition. `partition_first` has partition_count + 1 vertices. The lengths
 * add up to the degree whatever the list holds.
 */
void dmg_edge_list_lengths(const dmg_index_shape *shape, const uint64_t *partition_first, const uint32_t *destinations,
                           uint32_t degree, uint32_t *lengths);

/** Place a list at or behind `offset`: at a multiple of 4, or of 8 when it has weights or lengths in front. */
dmg_list_place dmg_edge_list_place(const dmg_index_shape *shape, uint64_t offset, uint32_t degree, bool has_header);

/** True when the destinations ascend (repeats are allowed) and all are below vertex_count. */
bool dmg_edge_list_is_sound(const uint32_t *destinations, uint64_t degree, uint64_t vertex_count);

#endif
