/*
 * Connected components, weakly connected ones of a directed graph: each is named by its smallest vertex.
 *
 *     label(v) = v; the frontier is all vertices
 *     while the frontier is not empty
 *         for each arc u -> v or v -> u with u in the frontier
 *             label(v) = min(label(v), label(u))
 *         the frontier is all vertices whose label fell
 *
 * Labels only fall, so those of an iteration may be used in it already, which saves iterations; the answer is the same.
 */
#include "algorithms/algorithm.h"
#include "algorithms/serial.h"
#include "core/base/error.h"
#include "core/base/grouped_digits.h"
#include "core/engine/program/monotone.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the program ---- */

static inline uint32_t start(const dmg_monotone_run *run, uint32_t vertex, bool *is_active)
{
    (void)run;
    *is_active = true;
    return vertex;
}

static inline uint32_t candidate(uint32_t label, uint32_t source, const uint8_t *edge, dmg_weight_kind kind)
{
    (void)source;
    (void)edge;
    (void)kind;
    return label;
}

static inline bool wants_less(const dmg_monotone_run *run, uint32_t label)
{
    (void)run;
    return label != 0;
}

static const dmg_monotone_uint32 cc = {
    .traits = {.walks_both_ways = true, .can_pull = true},
    .unreached = UINT32_MAX,
    .start = start,
    .candidate = candidate,
    .wants_pull = wants_less,
};

#define DMG_VALUE   uint32_t
#define DMG_PROGRAM cc
#include "core/engine/program/monotone.inc"

static dmg_status run(dmg_engine *engine, const dmg_algorithm_options *options, dmg_run_result *result)
{
    return dmg_monotone_execute(engine, &loops, options, result);
}

/* ---- its answer ---- */

static int format(const void *value, uint64_t (*id_of)(const void *context, uint32_t vertex), const void *context,
                  char *text, size_t capacity)
{
    return snprintf(text, capacity, "%" PRIu64, id_of(context, *(const uint32_t *)value));
}

typedef struct cc_count {
    uint64_t vertex_count;
    uint64_t count;
    uint32_t *sizes; /* by label */
} cc_count;

static dmg_status begin(void *count, const dmg_graph *graph)
{
    cc_count *components = count;
    components->vertex_count = graph->vertex_count;
    components->sizes = calloc(graph->vertex_count + 1, sizeof *components->sizes);
    return components->sizes
               ? DMG_OK
               : dmg_error(DMG_ERR_MEMORY, "no memory to count %" PRIu64 " components", graph->vertex_count);
}

static void end(void *count)
{
    free(((cc_count *)count)->sizes);
}

static void add(void *count, uint64_t first, uint64_t vertices, const void *values)
{
    cc_count *components = count;
    const uint32_t *labels = values;
    for (uint64_t i = 0; i < vertices; i++) {
        components->count += labels[i] == first + i;
        if (labels[i] < components->vertex_count) {
            components->sizes[labels[i]]++;
        }
    }
}

static uint32_t largest_of(const cc_count *components)
{
    uint32_t largest = 0;
    for (uint32_t label = 1; label < components->vertex_count; label++) {
        largest = components->sizes[label] > components->sizes[largest] ? label : largest;
    }
    return largest;
}

static void report(const void *count, const dmg_graph *graph, const dmg_fact_writer *to)
{
    const cc_count *components = count;
    to->count(to->context, "components", components->count);
    if (graph->vertex_count > 0) {
        uint32_t largest = largest_of(components);
        to->id(to->context, "largest_component", dmg_graph_id(graph, largest));
        to->count(to->context, "largest_component_vertices", components->sizes[largest]);
    }
}

static void print(const void *count, const dmg_graph *graph, FILE *to)
{
    const cc_count *components = count;
    fprintf(to, "%s %s", dmg_group_digits(components->count).text, components->count == 1 ? "component" : "components");
    if (graph->vertex_count > 0) {
        uint32_t largest = largest_of(components);
        fprintf(to, ", the largest (%" PRIu64 ") with %s of %s vertices", dmg_graph_id(graph, largest),
                dmg_group_digits(components->sizes[largest]).text, dmg_group_digits(graph->vertex_count).text);
    }
    fputc('\n', to);
}

const dmg_algorithm dmg_algorithm_cc = {
    .name = "cc",
    .summary = "connected components (weakly connected in a directed graph)",
    .columns = "ID COMPONENT",
    .takes = DMG_TAKES_PULL | DMG_TAKES_SPARSE,
    .needs_in = true,
    .wants_in = true,
    .value_bytes = sizeof(uint32_t),
    .run = run,
    .serial = dmg_serial_cc,
    .compare = dmg_compare_uint32,
    .format = format,
    .answer =
        {
            .count_bytes = sizeof(cc_count),
            .begin = begin,
            .add = add,
            .report = report,
            .print = print,
            .end = end,
        },
};
