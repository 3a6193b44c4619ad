/*
 * Weakly connected components by union-find, with path halving. The smaller root becomes the parent, so that a root is
 * always the smallest vertex of its set.
 */
#include "algorithms/serial.h"

static uint32_t find_root(uint32_t *parent, uint32_t vertex)
{
    while (parent[vertex] != vertex) {
        parent[vertex] = parent[parent[vertex]];
        vertex = parent[vertex];
    }
    return vertex;
}

dmg_status dmg_serial_cc(const dmg_graph *graph, const dmg_algorithm_options *options, void *values)
{
    (void)options;
    uint32_t *parent = values;
    uint32_t count = (uint32_t)graph->vertex_count;
    for (uint32_t vertex = 0; vertex < count; vertex++) {
        parent[vertex] = vertex;
    }
    for (uint32_t vertex = 0; vertex < count; vertex++) {
        for (uint64_t arc = graph->out.offsets[vertex]; arc < graph->out.offsets[vertex + 1]; arc++) {
            uint32_t one = find_root(parent, vertex);
            uint32_t other = find_root(parent, graph->out.destinations[arc]);
            if (one < other) {
                parent[other] = one;
            } else {
                parent[one] = other;
            }
        }
    }
    for (uint32_t vertex = 0; vertex < count; vertex++) {
        parent[vertex] = find_root(parent, vertex);
    }
    return DMG_OK;
}
