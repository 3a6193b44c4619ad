/*
 * Sums of whole numbers below 2^53, scaled by a power of two: exact in any order, and in single precision where they
 * are cached.
 */
#include "unit/core/update/methods_programs.h"

#include "core/engine/program/accumulate.h"

#include <math.h>
#include <stdlib.h>

#define UNIT  0x1p-40
#define PRIME 1021

static double start_value(const dmg_methods_parameters *parameters)
{
    return (double)(1 + parameters->seed % 1000) * UNIT;
}

static double next_value(double sum, double shared)
{
    return fmod(sum / UNIT * 3 + shared / UNIT + 7, PRIME) * UNIT;
}

static inline double start(const dmg_accumulate_run *run)
{
    return start_value(run->parameters);
}

static inline double give(double value, uint32_t degree)
{
    return degree > 0 ? value : 0;
}

static inline double share(double value, uint32_t degree)
{
    return degree > 0 ? 0 : value;
}

static inline double apply(const dmg_accumulate_run *run, double sum)
{
    return next_value(sum, run->shared);
}

static const dmg_accumulate_double program = {.start = start, .give = give, .share = share, .apply = apply};

#define DMG_PROGRAM program
#include "core/engine/program/accumulate.inc"

static dmg_status run_program(dmg_engine *engine, const void *parameters, dmg_run_result *result)
{
    const dmg_accumulate_limits limits = {((const dmg_methods_parameters *)parameters)->iterations, 0};
    return dmg_accumulate_execute(engine, &loops, parameters, &limits, result);
}

static void iterate(const dmg_graph *graph, double *values, double *sums)
{
    double shared = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        sums[v] = 0;
    }
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        shared += graph->out.offsets[v] == graph->out.offsets[v + 1] ? values[v] : 0;
        for (uint64_t arc = graph->out.offsets[v]; arc < graph->out.offsets[v + 1]; arc++) {
            sums[graph->out.destinations[arc]] += values[v];
        }
    }
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        values[v] = next_value(sums[v], shared);
    }
}

static void serial_answer(const dmg_graph *graph, const void *parameters, void *to)
{
    double *values = to;
    double *sums = calloc(graph->vertex_count + 1, sizeof *sums);
    if (!sums) {
        abort();
    }
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        values[v] = start_value(parameters);
    }
    for (uint32_t i = 0; i < ((const dmg_methods_parameters *)parameters)->iterations; i++) {
        iterate(graph, values, sums);
    }
    free(sums);
}

const dmg_methods_program dmg_methods_add_double = {.name = "sums of 8 bytes",
                                                    .value_bytes = sizeof(double),
                                                    .adds = true,
                                                    .run = run_program,
                                                    .serial = serial_answer};
