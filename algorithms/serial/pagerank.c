/*
 * PageRank by Jacobi iterations in doubles, scattering along the arcs. Repeated arcs count each time.
 */
#include "algorithms/serial.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DAMPING_DEFAULT        0.85
#define TOLERANCE_DEFAULT      1e-9
#define ITERATIONS_MAX_DEFAULT 1000

dmg_pagerank_settings dmg_pagerank_settings_from(const dmg_algorithm_options *options)
{
    bool has_tolerance = options->tolerance >= 0;
    bool has_iterations = options->iterations_max > 0;
    return (dmg_pagerank_settings){
        .damping = options->damping >= 0 ? options->damping : DAMPING_DEFAULT,
        .tolerance = has_tolerance    ? options->tolerance
                     : has_iterations ? 0
                                      : TOLERANCE_DEFAULT,
        .iterations_max = has_iterations ? options->iterations_max : ITERATIONS_MAX_DEFAULT,
    };
}

/** One iteration; returns how much the ranks changed in all. */
static double iterate(const dmg_graph *graph, double damping, const double *rank, double *next)
{
    double count = (double)graph->vertex_count;
    double dangling = 0;
    memset(next, 0, graph->vertex_count * sizeof *next);
    for (uint64_t vertex = 0; vertex < graph->vertex_count; vertex++) {
        uint64_t first = graph->out.offsets[vertex];
        uint64_t end = graph->out.offsets[vertex + 1];
        if (first == end) {
            dangling += rank[vertex];
        }
        for (uint64_t arc = first; arc < end; arc++) {
            next[graph->out.destinations[arc]] += rank[vertex] / (double)(end - first);
        }
    }
    double change = 0;
    for (uint64_t vertex = 0; vertex < graph->vertex_count; vertex++) {
        next[vertex] = (1 - damping) / count + damping * (next[vertex] + dangling / count);
        change += fabs(next[vertex] - rank[vertex]);
    }
    return change;
}

dmg_status dmg_serial_pagerank(const dmg_graph *graph, const dmg_algorithm_options *options, void *values)
{
    dmg_pagerank_settings settings = dmg_pagerank_settings_from(options);
    uint64_t count = graph->vertex_count;
    if (count == 0) {
        return DMG_OK;
    }
    double *rank = values;
    double *next = malloc(count * sizeof *next);
    if (!next) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the ranks of %" PRIu64 " vertices", count);
    }
    for (uint64_t vertex = 0; vertex < count; vertex++) {
        rank[vertex] = 1 / (double)count;
    }
    double change = INFINITY;
    for (uint32_t iteration = 0; iteration < settings.iterations_max && change >= settings.tolerance; iteration++) {
        change = iterate(graph, settings.damping, rank, next);
        memcpy(rank, next, count * sizeof *rank);
    }
    free(next);
    return DMG_OK;
}
