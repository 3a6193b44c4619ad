/*
 * Connected components, weakly connected ones of a directed graph: each is named by its smallest vertex.
 *
 * Label propagation: a vertex starts with its own number and takes the smallest label among itself and its neighbours,
 * whatever the direction of the edge. Labels only fall, so those of an iteration may be used in it already, which saves
 * iterations; the answer is the same.
 */
#include "algorithms/algorithm.h"
#include "algorithms/serial.h"
#include "core/engine/program/monotone.h"

#include <inttypes.h>
#include <stdio.h>

static inline uint32_t start_value(uint32_t vertex, bool *is_active)
{
    *is_active = true;
    return vertex;
}

#define DMG_PROGRAM                              cc_program
#define DMG_VALUE                                uint32_t
#define DMG_UNREACHED                            UINT32_MAX
#define DMG_START(run, vertex, is_active)        start_value(vertex, is_active)
#define DMG_CANDIDATE(value, source, edge, kind) (value)
#define DMG_WANTS_PULL(run, value)               ((value) != 0)
#define DMG_WALKS_BOTH_WAYS                      1
#define DMG_CAN_PULL                             1
#define DMG_PULLS_FROM_ACTIVE                    0
#define DMG_STOPS_AT_FIRST                       0
#define DMG_USES_WEIGHTS                         0
#include "core/engine/program/monotone.inc"

static dmg_status run(dmg_engine *engine, const dmg_algorithm_options *options, dmg_run_result *result)
{
    return dmg_monotone_execute(engine, &cc_program, options, result);
}

static int format(const void *value, uint64_t (*id_of)(const void *context, uint32_t vertex), const void *context,
                  char *text, size_t capacity)
{
    return snprintf(text, capacity, "%" PRIu64, id_of(context, *(const uint32_t *)value));
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
};
