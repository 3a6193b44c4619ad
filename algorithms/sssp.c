/*
 * Single-source shortest paths with weights of at least 0, along the arcs.
 *
 *     distance(source) = 0, of all others infinite; the frontier is the source
 *     while the frontier is not empty
 *         for each arc u -> v of weight w with u in the frontier
 *             distance(v) = min(distance(v), distance(u) + w)
 *         the frontier is all vertices whose distance fell
 *
 * Bellman and Ford's algorithm with a frontier. A distance that is not negative orders like the bits of its double, so
 * that the minimum is one of integers. Integer weights are exact up to distances of 2^53.
 */
#include "algorithms/algorithm.h"
#include "algorithms/serial.h"
#include "core/base/grouped_digits.h"
#include "core/engine/program/monotone.h"
#include "formats/weight.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The bits of infinity. */
#define UNREACHED UINT64_C(0x7ff0000000000000)
/* Every decimal of 15 digits survives being a double, and every double its decimal of 17. */
#define DIGITS_LEAST 15
#define DIGITS_MOST  17

/* ---- the program ---- */

static inline uint64_t start(const dmg_monotone_run *run, uint32_t vertex, bool *is_active)
{
    const dmg_algorithm_options *options = run->parameters;
    *is_active = vertex == options->source;
    return *is_active ? 0 : UNREACHED;
}

static inline const dmg_weight *weight_of(const uint8_t *edge)
{
    return (const dmg_weight *)(const void *)(edge + 4);
}

static inline uint64_t lengthen(uint64_t value, uint32_t source, const uint8_t *edge, dmg_weight_kind kind)
{
    (void)source;
    return dmg_double_to_bits(dmg_bits_to_double(value) + dmg_weight_value(weight_of(edge), kind));
}

/* A float's decimal takes a division; most edges need it not: they lead to a vertex that is nearer already. */
static inline bool is_no_shorter(uint64_t present, uint64_t value, const uint8_t *edge, dmg_weight_kind kind)
{
    if (kind != DMG_WEIGHT_FLOAT32) {
        return false;
    }
    /* The decimal is off from its float by less than this factor, and no weight is negative. */
    double least = (double)weight_of(edge)->as_float32 * (1 - 0x1p-23);
    return dmg_double_to_bits(dmg_bits_to_double(value) + least) >= present;
}

static const dmg_monotone_uint64 sssp = {
    .traits = {.uses_weights = true},
    .unreached = UNREACHED,
    .start = start,
    .candidate = lengthen,
    .cannot_lower = is_no_shorter,
};

#define DMG_VALUE   uint64_t
#define DMG_PROGRAM sssp
#include "core/engine/program/monotone.inc"

static dmg_status run(dmg_engine *engine, const dmg_algorithm_options *options, dmg_run_result *result)
{
    return dmg_monotone_execute(engine, &loops, options, result);
}

/* ---- its answer ---- */

static int format(const void *value, uint64_t (*id_of)(const void *context, uint32_t vertex), const void *context,
                  char *text, size_t capacity)
{
    (void)id_of;
    (void)context;
    double distance = *(const double *)value;
    if (isinf(distance)) {
        return snprintf(text, capacity, "inf");
    }
    /* The fewest digits that read back as the same number: 0.1, and not 0.10000000000000001. */
    int digits = distance == floor(distance) ? DIGITS_MOST : DIGITS_LEAST;
    int length = snprintf(text, capacity, "%.*g", digits, distance);
    while (digits < DIGITS_MOST && strtod(text, NULL) != distance) {
        digits++;
        length = snprintf(text, capacity, "%.*g", digits, distance);
    }
    return length;
}

typedef struct sssp_count {
    uint64_t reached;
    double distance_max;
    uint32_t farthest;
} sssp_count;

static void add(void *count, uint64_t first, uint64_t vertices, const void *values)
{
    sssp_count *reach = count;
    const double *distances = values;
    for (uint64_t i = 0; i < vertices; i++) {
        if (isfinite(distances[i])) {
            reach->reached++;
            if (distances[i] > reach->distance_max) {
                reach->distance_max = distances[i];
                reach->farthest = (uint32_t)(first + i);
            }
        }
    }
}

static void report(const void *count, const dmg_graph *graph, const dmg_fact_writer *to)
{
    (void)graph;
    const sssp_count *reach = count;
    to->count(to->context, "reached", reach->reached);
    to->real(to->context, "largest_distance", reach->distance_max);
}

static void print(const void *count, const dmg_graph *graph, FILE *to)
{
    const sssp_count *reach = count;
    fprintf(to, "%s of %s vertices reached, the farthest at distance %.9g", dmg_group_digits(reach->reached).text,
            dmg_group_digits(graph->vertex_count).text, reach->distance_max);
    if (reach->distance_max > 0) {
        fprintf(to, " (vertex %" PRIu64 ")", dmg_graph_id(graph, reach->farthest));
    }
    fputc('\n', to);
}

const dmg_algorithm dmg_algorithm_sssp = {
    .name = "sssp",
    .summary = "shortest paths from one vertex; weights must not be negative",
    .columns = "ID DISTANCE",
    .takes = DMG_TAKES_SOURCE | DMG_TAKES_SPARSE,
    .uses_weights = true,
    .refuses_negative_weights = true,
    .value_bytes = sizeof(double),
    .run = run,
    .serial = dmg_serial_sssp,
    .compare = dmg_compare_double,
    .format = format,
    .answer = {.count_bytes = sizeof(sssp_count), .add = add, .report = report, .print = print},
};
