/**
 * @file graph.h
 * A graph as it lies in a file: compressed sparse rows over dense 32-bit ids, and the external ids they stand for.
 *
 * Every reader and generator makes one of these; the store loads from one. It is read-only once made, and may be a
 * mapping of the binary form (see binary_form.h), which is how the processes of a run share it.
 */
#ifndef DMG_FORMATS_GRAPH_H
#define DMG_FORMATS_GRAPH_H

#include "dmgraph/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Vertex ids are 32-bit; the last one is never a vertex, so that it can mean "none". */
#define DMG_VERTICES_MAX UINT64_C(0xfffffffe)
#define DMG_NO_VERTEX    UINT32_C(0xffffffff)

/** Weights take four bytes: exact integers where all of the file's are, else floats. */
typedef enum dmg_weight_kind { DMG_WEIGHT_NONE, DMG_WEIGHT_INT32, DMG_WEIGHT_FLOAT32 } dmg_weight_kind;

typedef union dmg_weight {
    int32_t as_int32;
    float as_float32;
} dmg_weight;

/** One direction of the adjacency. The list of v is [offsets[v], offsets[v + 1]), ascending by destination. */
typedef struct dmg_adjacency {
    const uint64_t *offsets;      /**< vertex_count + 1, the first is 0 */
    const uint32_t *destinations; /**< offsets[vertex_count] of them */
    const dmg_weight *weights;    /**< as many, or NULL */
} dmg_adjacency;

typedef struct dmg_graph {
    uint64_t vertex_count;
    uint64_t arc_count; /**< of one direction; an undirected line that is no loop counts twice */
    bool is_directed;
    dmg_weight_kind weight_kind;
    dmg_adjacency out;
    dmg_adjacency in;    /**< of a directed graph that has been given its reverse; else all NULL */
    const uint64_t *ids; /**< external id of each vertex, ascending; NULL when it is first_id + vertex */
    uint64_t first_id;
    uint64_t loop_arcs;        /**< kept in the graph */
    uint64_t repeated_arcs;    /**< kept in the graph, beyond the first of each kind */
    uint64_t negative_line;    /**< line of the first negative weight in the source; 0: no weight is negative */
    char negative_source[256]; /**< the file that line is in */
    void *owner;               /**< what dmg_graph_close releases */
    void (*release)(void *owner);
} dmg_graph;

/** Release a graph's memory or mapping, and zero it. */
void dmg_graph_close(dmg_graph *graph);

/** External id of a vertex. */
static inline uint64_t dmg_graph_id(const dmg_graph *graph, uint32_t vertex)
{
    return graph->ids ? graph->ids[vertex] : graph->first_id + vertex;
}

/** The vertex with this external id, or DMG_NO_VERTEX. Costs a binary search. */
uint32_t dmg_graph_find(const dmg_graph *graph, uint64_t id);

/** The lists to walk against the arcs: `in`, or for an undirected graph `out`; NULL when they were not made. */
static inline const dmg_adjacency *dmg_graph_in(const dmg_graph *graph)
{
    return !graph->is_directed ? &graph->out : graph->in.offsets ? &graph->in : NULL;
}

#endif
