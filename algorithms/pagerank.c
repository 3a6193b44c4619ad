/*
 * PageRank: the share of time that a random surfer spends at each vertex; all ranks add up to 1 (Brin and Page, 1998).
 *
 *     rank'(v) = (1 - d) / n + d * (sum over arcs u -> v of rank(u) / outdegree(u) + dangling / n)
 *
 * where `dangling` is the rank of all vertices without outgoing arcs, spread evenly. Repeated arcs count as often as they occur. Starts at 1 / n.
 */
#include "algorithms/algorithm.h"
#include "algorithms/serial.h"
#include "core/engine/accumulate.h"

#include <stdio.h>

static double give(double rank, uint32_t out_degree)
{
    return out_degree > 0 ? rank / out_degree : 0;
}

static double share_dangling(double rank, uint32_t out_degree)
{
    return out_degree > 0 ? 0 : rank;
}

static double apply(const void *parameters, uint64_t vertex_count, double sum, double dangling)
{
    double damping = ((const dmg_pagerank_settings *)parameters)->damping;
    double n = (double)vertex_count;
    return (1 - damping) / n + damping * (sum + dangling / n);
}

static double start(const void *parameters, uint64_t vertex_count)
{
    (void)parameters;
    return 1 / (double)vertex_count;
}

static const dmg_accumulate_program pagerank_program = {
    .give = give, .apply = apply, .share = share_dangling, .start = start};

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
    .wants_in = true,
    .value_bytes = sizeof(double),
    .run = run,
    .serial = dmg_serial_pagerank,
    .compare = dmg_compare_double,
    .format = format,
};
