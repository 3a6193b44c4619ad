/**
 * @file adjacency.h
 * Counting sorts that make adjacency lists, and the one pass that puts them in order.
 *
 * Scattering edges into lists by one end and then transposing leaves every list ascending by the other end: two
 * counting sorts and no comparison.
 */
#ifndef DMG_FORMATS_ADJACENCY_H
#define DMG_FORMATS_ADJACENCY_H

#include "formats/graph_storage.h"

/** What lists are made from. */
typedef struct dmg_edge_array {
    const uint32_t *ends; /**< source and destination of each edge */
    const dmg_weight *weights;
    uint64_t count;
    bool is_directed; /**< else each edge is two arcs, a loop one */
    bool drop_loops;
} dmg_edge_array;

/**
 * The lists of arcs *into* each vertex, in no order. `lists` must be empty and is released by the caller also on
 * failure; DMG_ERR_MEMORY. The arcs are offsets[vertex_count].
 */
dmg_status dmg_adjacency_scatter(const dmg_edge_array *edges, uint64_t vertex_count, dmg_adjacency_storage *lists);

/** The same arcs from the other end; each new list is ascending, equal ones in the order of `from`. As above. */
dmg_status dmg_adjacency_transpose(const dmg_adjacency *from, uint64_t vertex_count, dmg_adjacency_storage *to);

typedef struct dmg_adjacency_census {
    uint64_t loops;   /**< kept */
    uint64_t repeats; /**< beyond the first of each kind */
} dmg_adjacency_census;

/**
 * In lists ascending by destination: order equal arcs by weight, count loops and repeats, and drop the repeats when
 * asked (they are counted, and the first, with the smallest weight, stays).
 */
dmg_status dmg_adjacency_settle(dmg_adjacency_storage *lists, uint64_t vertex_count, dmg_weight_kind kind,
                                bool drop_repeats, dmg_adjacency_census *census);

#endif
