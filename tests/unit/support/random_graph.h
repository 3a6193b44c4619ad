/**
 * @file random_graph.h
 * Seeded random graphs for tests: hubs, empty lists, loops and repeated edges included.
 */
#ifndef DMG_TEST_SUPPORT_RANDOM_GRAPH_H
#define DMG_TEST_SUPPORT_RANDOM_GRAPH_H

#include "formats/graph.h"
#include "unit/support/random.h"

typedef struct dmg_random_graph_options {
    uint64_t vertex_count;
    uint32_t degree_max; /**< of most vertices; about one in four has no edges */
    uint32_t hub_count;  /**< vertices with hub_degree edges */
    uint32_t hub_degree;
    bool is_directed; /**< with its reverse made; else every arc has its opposite */
    dmg_weight_kind weight_kind;
    bool has_ids;
} dmg_random_graph_options;

/** Release with dmg_graph_close. The test program ends when memory runs out. */
void dmg_random_graph_make(const dmg_random_graph_options *options, dmg_random *random, dmg_graph *graph);

/** Not random: every `stride`th vertex has the edges 0, 1, ..., degree - 1, all others have none; directed, no reverse.
 */
void dmg_sparse_graph_make(uint64_t vertex_count, uint64_t stride, uint32_t degree, bool has_ids, dmg_graph *graph);

#endif
