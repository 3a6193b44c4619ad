/*
 * Single-source shortest paths with weights of at least 0, along the arcs.
 *
 * Bellman and Ford's algorithm with a frontier: a vertex whose distance fell offers its neighbours the distance over
 * itself. A distance that is not negative orders like the bits of its double, so that the minimum is one of integers.
 * Integer weights are exact up to distances of 2^53.
 */
#include "algorithms/algorithm.h"
#include "algorithms/serial.h"
#include "core/engine/program/monotone.h"
#include "formats/weight.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The bits of infinity. */
#define UNREACHED UINT64_C(0x7ff0000000000000)
/* Every decimal of 15 digits survives being a double, and every double its decimal of 17. */
#define DIGITS_LEAST 15
#define DIGITS_MOST  17

static inline uint64_t start_value(const dmg_monotone_run *run, uint32_t vertex, bool *is_active)
{
    const dmg_algorithm_options *options = run->parameters;
    *is_active = vertex == options->source;
    return *is_active ? 0 : UNREACHED;
}

static inline uint64_t lengthen(uint64_t value, const uint8_t *edge, dmg_weight_kind kind)
{
    const dmg_weight *weight = (const dmg_weight *)(const void *)(edge + 4);
    return dmg_double_to_bits(dmg_bits_to_double(value) + dmg_weight_value(weight, kind));
}

/* A float's decimal takes a division; most edges need it not: they lead to a vertex that is nearer already. */
static inline bool is_no_shorter(uint64_t place, uint64_t value, const uint8_t *edge, dmg_weight_kind kind)
{
    const dmg_weight *weight = (const dmg_weight *)(const void *)(edge + 4);
    if (kind != DMG_WEIGHT_FLOAT32) {
        return false;
    }
    /* The decimal is off from its float by less than this factor, and no weight is negative. */
    double least = (double)weight->as_float32 * (1 - 0x1p-23);
    return dmg_double_to_bits(dmg_bits_to_double(value) + least) >= place;
}

#define DMG_PROGRAM                                sssp_program
#define DMG_VALUE                                  uint64_t
#define DMG_UNREACHED                              UNREACHED
#define DMG_START(run, vertex, is_active)          start_value(run, vertex, is_active)
#define DMG_CANDIDATE(value, source, edge, kind)   lengthen(value, edge, kind)
#define DMG_CANNOT_LOWER(place, value, edge, kind) is_no_shorter(load_value(place), value, edge, kind)
#define DMG_WALKS_BOTH_WAYS                        0
#define DMG_CAN_PULL                               0
#define DMG_PULLS_FROM_ACTIVE                      0
#define DMG_STOPS_AT_FIRST                         0
#define DMG_USES_WEIGHTS                           1
#include "core/engine/program/monotone.inc"

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
};
