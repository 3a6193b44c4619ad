/**
 * @file graph_builder.h
 * From edges in any order to a dmg_graph: external ids made dense, lists sorted, repeats and loops counted or dropped.
 *
 * What every text reader and every generator feeds.
 */
#ifndef DMG_FORMATS_GRAPH_BUILDER_H
#define DMG_FORMATS_GRAPH_BUILDER_H

#include "formats/graph.h"

typedef struct dmg_graph_builder dmg_graph_builder;

typedef struct dmg_builder_options {
    bool is_directed;
    bool is_weighted;
    bool drop_repeats; /**< of repeated arcs keep one, with the smallest weight */
    bool drop_loops;
    bool with_reverse;
    bool has_declared_vertices; /**< the vertices are first_id .. first_id + declared_vertices - 1, isolated ones too */
    uint64_t first_id;
    uint64_t declared_vertices;
} dmg_builder_options;

typedef struct dmg_builder_report {
    uint64_t loops_dropped;
    uint64_t repeats_dropped;
    double weight_rounding;
} dmg_builder_report;

dmg_status dmg_graph_builder_create(const dmg_builder_options *options, dmg_graph_builder **builder);
/** NULL is allowed. */
void dmg_graph_builder_destroy(dmg_graph_builder *builder);

/** Add an edge; weight is ignored when unweighted. With declared vertices the ids were checked by the caller. */
dmg_status dmg_graph_builder_add(dmg_graph_builder *builder, uint64_t source, uint64_t destination, double weight);

/** An edge that was added, 0 <= index < the number of them; before the graph is made. With declared vertices, its ends
 * count from 0. */
void dmg_graph_builder_edge(const dmg_graph_builder *builder, uint64_t index, uint64_t *source, uint64_t *destination);

/** Make the graph; the builder is empty afterwards and can only be destroyed. `report` may be NULL. */
dmg_status dmg_graph_builder_finish(dmg_graph_builder *builder, dmg_graph *graph, dmg_builder_report *report);

#endif
