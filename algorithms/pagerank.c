/*
 * PageRank: the share of time that a random surfer spends at each vertex; all ranks add up to 1 (Brin and Page, 1998).
 *
 *     rank(v) = 1 / n
 *     until the ranks change by less than the tolerance in all, or often enough
 *         dangling = sum of rank(u) over all u without outgoing arcs
 *         for each v
 *             rank'(v) = (1 - d) / n + d * (sum over arcs u -> v of rank(u) / outdegree(u) + dangling / n)
 *         rank = rank'
 *
 * Repeated arcs count as often as they occur.
 */
#include "algorithms/algorithm.h"
#include "algorithms/serial.h"
#include "core/engine/program/accumulate.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the program ---- */

static inline double start(const dmg_accumulate_run *run)
{
    return 1 / (double)run->engine->store->vertex_count;
}

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

static const dmg_accumulate_double pagerank = {.start = start, .give = give, .share = share_dangling, .apply = apply};

#define DMG_PROGRAM pagerank
#include "core/engine/program/accumulate.inc"

static dmg_status run(dmg_engine *engine, const dmg_algorithm_options *options, dmg_run_result *result)
{
    const dmg_pagerank_settings settings = dmg_pagerank_settings_from(options);
    const dmg_accumulate_limits limits = {settings.iterations_max, settings.tolerance};
    return dmg_accumulate_execute(engine, &loops, &settings, &limits, result);
}

/* ---- its answer ---- */

static int format(const void *value, uint64_t (*id_of)(const void *context, uint32_t vertex), const void *context,
                  char *text, size_t capacity)
{
    (void)id_of;
    (void)context;
    return snprintf(text, capacity, "%.17g", *(const double *)value);
}

#define TOP_COUNT 3

typedef struct pagerank_count {
    double sum;
    uint32_t top_count;
    uint32_t top[TOP_COUNT]; /* descending by rank, then ascending by id */
    double top_rank[TOP_COUNT];
} pagerank_count;

static void place_vertex(pagerank_count *ranking, uint32_t vertex, double rank)
{
    uint32_t place = ranking->top_count;
    while (place > 0 && rank > ranking->top_rank[place - 1]) {
        place--;
    }
    if (place == TOP_COUNT) {
        return;
    }
    uint32_t last = ranking->top_count < TOP_COUNT ? ranking->top_count++ : TOP_COUNT - 1;
    for (; last > place; last--) {
        ranking->top[last] = ranking->top[last - 1];
        ranking->top_rank[last] = ranking->top_rank[last - 1];
    }
    ranking->top[place] = vertex;
    ranking->top_rank[place] = rank;
}

static void add(void *count, uint64_t first, uint64_t vertices, const void *values)
{
    pagerank_count *ranking = count;
    const double *ranks = values;
    for (uint64_t i = 0; i < vertices; i++) {
        ranking->sum += ranks[i];
        place_vertex(ranking, (uint32_t)(first + i), ranks[i]);
    }
}

static void report(const void *count, const dmg_graph *graph, const dmg_fact_writer *to)
{
    const pagerank_count *ranking = count;
    to->real(to->context, "sum", ranking->sum);
    to->begin_list(to->context, "top");
    for (uint32_t place = 0; place < ranking->top_count; place++) {
        to->begin_row(to->context);
        to->id(to->context, "id", dmg_graph_id(graph, ranking->top[place]));
        to->real(to->context, "rank", ranking->top_rank[place]);
        to->end_row(to->context);
    }
}

static void print(const void *count, const dmg_graph *graph, FILE *to)
{
    const pagerank_count *ranking = count;
    fprintf(to, "the ranks add up to %.9f; the highest are", ranking->sum);
    for (uint32_t place = 0; place < ranking->top_count; place++) {
        fprintf(to, "%s %" PRIu64 " (%.4g)", place ? "," : "", dmg_graph_id(graph, ranking->top[place]),
                ranking->top_rank[place]);
    }
    fputc('\n', to);
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
    .answer = {.count_bytes = sizeof(pagerank_count), .add = add, .report = report, .print = print},
};
