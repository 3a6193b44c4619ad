/*
 * Breadth-first search: depth and parent of every vertex that the source reaches, along the arcs.
 *
 * The attribute is depth and parent in one word, the depth above, so that the minimum is the shortest depth and among
 * its parents the smallest: the same tree for any number of nodes and threads. In pull mode the first neighbour of an
 * ascending list that is in the frontier is that parent, and the search ends there (Beamer, Asanovic, Patterson:
 * Direction-Optimizing Breadth-First Search, SC 2012).
 */
#include "algorithms/algorithm.h"
#include "algorithms/serial.h"
#include "core/engine/program/monotone.h"

#include <inttypes.h>
#include <stdio.h>

#define UNREACHED UINT64_MAX

static inline uint64_t make_value(uint32_t depth, uint32_t parent)
{
    return (uint64_t)depth << 32 | parent;
}

static inline uint64_t start_value(const dmg_monotone_run *run, uint32_t vertex, bool *is_active)
{
    const dmg_algorithm_options *options = run->parameters;
    *is_active = vertex == options->source;
    return *is_active ? make_value(0, vertex) : UNREACHED;
}

/*
 * The frontier's depth is the number of the iteration. A vertex that another compute node has given a parent in this
 * iteration can still get a smaller one.
 */
static inline bool wants_parent(const dmg_monotone_run *run, uint64_t value)
{
    return value >> 32 > run->iteration;
}

#define DMG_PROGRAM                              bfs_program
#define DMG_VALUE                                uint64_t
#define DMG_UNREACHED                            UNREACHED
#define DMG_START(run, vertex, is_active)        start_value(run, vertex, is_active)
#define DMG_CANDIDATE(value, source, edge, kind) make_value((uint32_t)((value) >> 32) + 1, source)
#define DMG_WANTS_PULL(run, value)               wants_parent(run, value)
#define DMG_WALKS_BOTH_WAYS                      0
#define DMG_CAN_PULL                             1
#define DMG_PULLS_FROM_ACTIVE                    1
#define DMG_STOPS_AT_FIRST                       1
#define DMG_USES_WEIGHTS                         0
#include "core/engine/program/monotone.inc"

static dmg_status run(dmg_engine *engine, const dmg_algorithm_options *options, dmg_run_result *result)
{
    return dmg_monotone_execute(engine, &bfs_program, options, result);
}

static int format(const void *value, uint64_t (*id_of)(const void *context, uint32_t vertex), const void *context,
                  char *text, size_t capacity)
{
    uint64_t word = *(const uint64_t *)value;
    if (word == UNREACHED) {
        return snprintf(text, capacity, "-1 -1");
    }
    return snprintf(text, capacity, "%" PRIu64 " %" PRIu64, word >> 32, id_of(context, (uint32_t)word));
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
};
