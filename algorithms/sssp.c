/*
 * Single-source shortest paths with weights of at least 0, along the arcs.
 *
 * Bellman and Ford's algorithm with a frontier: a vertex whose distance fell offers its neighbours the distance over
 * itself. A distance that is not negative orders like the bits of its double, so that the minimum is one of integers.
 * Integer weights are exact up to distances of 2^53.
 */
#include "algorithms/algorithm.h"
#include "algorithms/serial.h"
#include "core/engine/monotone.h"

#include <math.h>
#include <stdio.h>

/* The bits of infinity. */
#define UNREACHED UINT64_C(0x7ff0000000000000)

static inline uint64_t start_value(const dmg_monotone_run *run, uint32_t vertex, bool *is_active)
{
    const dmg_algorithm_options *options = run->parameters;
    *is_active = vertex == options->source;
    return *is_active ? 0 : UNREACHED;
}

static inline uint64_t lengthen(uint64_t value, const uint8_t *edge, dmg_weight_kind kind)
{
    const dmg_weight *weight = (const dmg_weight *)(const void *)(edge + 4);
    double length = kind == DMG_WEIGHT_NONE    ? 1
                    : kind == DMG_WEIGHT_INT32 ? (double)weight->as_int32
                                               : (double)weight->as_float32;
    return dmg_double_to_bits(dmg_bits_to_double(value) + length);
}

#define DMG_PROGRAM                              sssp_program
#define DMG_VALUE                                uint64_t
#define DMG_UNREACHED                            UNREACHED
#define DMG_START(run, vertex, is_active)        start_value(run, vertex, is_active)
#define DMG_CANDIDATE(value, source, edge, kind) lengthen(value, edge, kind)
#define DMG_WALKS_BOTH_WAYS                      0
#define DMG_CAN_PULL                             0
#define DMG_PULLS_FROM_ACTIVE                    0
#define DMG_STOPS_AT_FIRST                       0
#define DMG_USES_WEIGHTS                         1
#include "core/engine/monotone.inc"

static dmg_status run(dmg_engine *engine, const dmg_algorithm_options *options, dmg_run_result *result)
{
    return dmg_monotone_execute(engine, &sssp_program, options, result);
}

static int format(const void *value, uint64_t (*id_of)(const void *context, uint32_t vertex), const void *context,
                  char *text, size_t capacity)
{
    (void)id_of;
    (void)context;
    double distance = *(const double *)value;
    return isinf(distance) ? snprintf(text, capacity, "inf") : snprintf(text, capacity, "%.17g", distance);
}

const dmg_algorithm dmg_algorithm_sssp = {
    .name = "sssp",
    .summary = "shortest paths from one vertex; weights must not be negative",
    .columns = "ID DISTANCE",
    .uses_source = true,
    .uses_weights = true,
    .refuses_negative_weights = true,
    .value_bytes = sizeof(double),
    .run = run,
    .serial = dmg_serial_sssp,
    .compare = dmg_compare_double,
    .format = format,
};
