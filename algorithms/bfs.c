/*
 * Breadth-first search: depth and parent of every vertex that the source reaches, along the arcs.
 *
 *     depth(source) = 0; the frontier is the source
 *     while the frontier is not empty
 *         for each arc u -> v with u in the frontier
 *             (depth, parent)(v) = min((depth, parent)(v), (depth(u) + 1, u))
 *         the frontier is all vertices whose value fell
 *
 * The attribute is depth and parent in one word, the depth above, so that the minimum is the shortest depth and among
 * its parents the smallest: the same tree for any number of nodes and threads. In pull mode the first neighbour of an
 * ascending list that is in the frontier is that parent, and the search ends there (Beamer, Asanovic, Patterson:
 * Direction-Optimizing Breadth-First Search, SC 2012).
 */
#include "algorithms/algorithm.h"
#include "algorithms/serial.h"
#include "core/base/grouped_digits.h"
#include "core/engine/program/monotone.h"

#include <inttypes.h>
#include <stdio.h>

#define UNREACHED UINT64_MAX

static inline uint64_t make_value(uint64_t depth, uint32_t parent)
{
    return depth << 32 | parent;
}

static inline uint64_t depth_of(uint64_t value)
{
    return value >> 32;
}

/* ---- the program ---- */

static inline uint64_t start(const dmg_monotone_run *run, uint32_t vertex, bool *is_active)
{
    const dmg_algorithm_options *options = run->parameters;
    *is_active = vertex == options->source;
    return *is_active ? make_value(0, vertex) : UNREACHED;
}

static inline uint64_t candidate(uint64_t value, uint32_t source, const uint8_t *edge, dmg_weight_kind kind)
{
    (void)edge;
    (void)kind;
    return make_value(depth_of(value) + 1, source);
}

/*
 * The frontier's depth is the number of the iteration. A vertex that another compute node has given a parent in this
 * iteration can still get a smaller one.
 */
static inline bool wants_parent(const dmg_monotone_run *run, uint64_t value)
{
    return depth_of(value) > run->iteration;
}

static const dmg_monotone_uint64 bfs = {
    .traits = {.can_pull = true, .pulls_from_active = true, .stops_at_first = true},
    .unreached = UNREACHED,
    .start = start,
    .candidate = candidate,
    .wants_pull = wants_parent,
};

#define DMG_VALUE   uint64_t
#define DMG_PROGRAM bfs
#include "core/engine/program/monotone.inc"

static dmg_status run(dmg_engine *engine, const dmg_algorithm_options *options, dmg_run_result *result)
{
    return dmg_monotone_execute(engine, &loops, options, result);
}

/* ---- its answer ---- */

static int format(const void *value, uint64_t (*id_of)(const void *context, uint32_t vertex), const void *context,
                  char *text, size_t capacity)
{
    uint64_t word = *(const uint64_t *)value;
    if (word == UNREACHED) {
        return snprintf(text, capacity, "-1 -1");
    }
    return snprintf(text, capacity, "%" PRIu64 " %" PRIu64, depth_of(word), id_of(context, (uint32_t)word));
}

typedef struct bfs_count {
    uint64_t reached;
    uint64_t depth_max;
} bfs_count;

static void add(void *count, uint64_t first, uint64_t vertices, const void *values)
{
    (void)first;
    bfs_count *reach = count;
    const uint64_t *words = values;
    for (uint64_t i = 0; i < vertices; i++) {
        if (words[i] != UNREACHED) {
            reach->reached++;
            reach->depth_max = depth_of(words[i]) > reach->depth_max ? depth_of(words[i]) : reach->depth_max;
        }
    }
}

static void report(const void *count, const dmg_graph *graph, const dmg_fact_writer *to)
{
    (void)graph;
    const bfs_count *reach = count;
    to->count(to->context, "reached", reach->reached);
    to->count(to->context, "largest_depth", reach->depth_max);
}

static void print(const void *count, const dmg_graph *graph, FILE *to)
{
    const bfs_count *reach = count;
    fprintf(to, "%s of %s vertices reached, the deepest at depth %" PRIu64 "\n", dmg_group_digits(reach->reached).text,
            dmg_group_digits(graph->vertex_count).text, reach->depth_max);
}

const dmg_algorithm dmg_algorithm_bfs = {
    .name = "bfs",
    .summary = "breadth-first search: depth and parent of every vertex",
    .columns = "ID DEPTH PARENT",
    .takes = DMG_TAKES_SOURCE | DMG_TAKES_PULL | DMG_TAKES_SPARSE,
    .wants_in = true,
    .value_bytes = sizeof(uint64_t),
    .run = run,
    .serial = dmg_serial_bfs,
    .compare = dmg_compare_uint64,
    .format = format,
    .answer = {.count_bytes = sizeof(bfs_count), .add = add, .report = report, .print = print},
};
