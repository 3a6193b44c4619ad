/*
 * PageRank: the share of time that a random surfer spends at each vertex; all ranks add up to 1 (Brin and Page, 1998).
 *
 *     rank'(v) = (1 - d) / n + d * (sum over arcs u -> v of rank(u) / outdegree(u) + dangling / n)
 *
 * where `dangling` is the rank of all vertices without outgoing arcs, spread evenly. Repeated arcs count as often as
 * they occur. Starts at 1 / n.
 */
#include "algorithms/algorithm.h"
#include "algorithms/serial.h"
#include "core/engine/program/accumulate.h"

#include <math.h>
#include <stdio.h>

static inline double give(double rank, uint32_t out_degree)
{
    return out_degree > 0 ? rank / out_degree : 0;
}

static inline double share_dangling(double rank, uint32_t out_degree)
{
    return out_degree > 0 ? 0 : rank;
}

static inline double apply(const dmg_accumulate_run *run, double sum)
{
    double damping = ((const dmg_pagerank_settings *)run->parameters)->damping;
    double n = (double)run->engine->store->vertex_count;
    return (1 - damping) / n + damping * (sum + run->shared / n);
}

#define DMG_PROGRAM              pagerank_program
#define DMG_START(run)           (1 / (double)(run)->engine->store->vertex_count)
#define DMG_GIVE(value, degree)  give(value, degree)
#define DMG_SHARE(value, degree) share_dangling(value, degree)
#define DMG_APPLY(run, sum)      apply(run, sum)
#include "core/engine/program/accumulate.inc"

static dmg_status run(dmg_engine *engine, const dmg_algorithm_options *options, dmg_run_result *result)
{
    const dmg_pagerank_settings settings = dmg_pagerank_settings_from(options);
    const dmg_accumulate_limits limits = {settings.iterations_max, settings.tolerance};
    return dmg_accumulate_execute(engine, &pagerank_program, &settings, &limits, result);
}

static int format(const void *value, uint64_t (*id_of)(const void *context, uint32_t vertex), const void *context,
                  char *text, size_t capacity)
{
    (void)id_of;
    (void)context;
    return snprintf(text, capacity, "%.17g", *(const double *)value);
}

const dmg_algorithm dmg_algorithm_pagerank = {
    .name = "pagerank",
    .summary = "PageRank with dangling mass redistributed; ranks add up to 1",
    .columns = "ID RANK",
    .takes = DMG_TAKES_ITERATIONS | DMG_TAKES_TOLERANCE | DMG_TAKES_DAMPING | DMG_TAKES_PARTIALS | DMG_TAKES_PRECISION |
             DMG_TAKES_PULL,
    .weights_would_matter = true,
    .wants_in = true,
    .value_bytes = sizeof(double),
    .run = run,
    .serial = dmg_serial_pagerank,
    .compare = dmg_compare_double,
    .format = format,
};
