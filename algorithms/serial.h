/**
 * @file serial.h
 * The algorithms once more, serial and as simple as they come: what --verify and the tests compare with.
 *
 * They share nothing with the engine, and read the graph as the file gave it. Each writes vertex_count values of the
 * layout that the distributed algorithm of the same name leaves in the pool. All cost memory of a few words a vertex
 * beside the graph.
 */
#ifndef DMG_ALGORITHMS_SERIAL_H
#define DMG_ALGORITHMS_SERIAL_H

#include "algorithms/algorithm.h"

/** A bfs value of a vertex that was not reached. */
#define DMG_BFS_UNREACHED UINT64_MAX

/** uint64: depth << 32 | parent. The parent is the smallest in-neighbour one level up; the source's is itself. */
dmg_status dmg_serial_bfs(const dmg_graph *graph, const dmg_algorithm_options *options, void *values);
/** uint32: the smallest vertex of the weakly connected component. By union-find. */
dmg_status dmg_serial_cc(const dmg_graph *graph, const dmg_algorithm_options *options, void *values);
/**
 * double: the rank. Jacobi iterations from 1/n; x' = (1-d)/n + d * (sum over in-arcs of x/outdegree + dangling/n),
 * until the ranks change by less than the tolerance in all (L1), or iterations_max is reached.
 */
dmg_status dmg_serial_pagerank(const dmg_graph *graph, const dmg_algorithm_options *options, void *values);
/** double: the distance from the source, INFINITY when there is none. Dijkstra's algorithm with a binary heap; without
 * weights each arc counts 1. */
dmg_status dmg_serial_sssp(const dmg_graph *graph, const dmg_algorithm_options *options, void *values);

/** What pagerank takes when the options leave it open, and when it stops. */
typedef struct dmg_pagerank_settings {
    double damping;
    double tolerance;
    uint32_t iterations_max;
} dmg_pagerank_settings;
/** The defaults filled in: 0.85, 1e-9, 1000; a number of iterations without a tolerance means exactly so many
 * (tolerance 0). */
dmg_pagerank_settings dmg_pagerank_settings_from(const dmg_algorithm_options *options);

/** Compare values; DMG_ERR_VERIFY names the first vertex that differs. Doubles may differ by 1e-6 of the larger one. */
dmg_status dmg_compare_uint64(const dmg_graph *graph, const void *values, const void *expected);
dmg_status dmg_compare_uint32(const dmg_graph *graph, const void *values, const void *expected);
dmg_status dmg_compare_double(const dmg_graph *graph, const void *values, const void *expected);

#endif
