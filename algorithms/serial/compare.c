/* Comparing two arrays of values, and naming the first vertex that differs. */
#include "algorithms/serial.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <math.h>

/** How far floats may be apart: results must not depend on the order of additions by more. */
#define RELATIVE_TOLERANCE 1e-6

dmg_status dmg_compare_uint64(const dmg_graph *graph, const void *values, const void *expected)
{
    const uint64_t *value = values;
    const uint64_t *wanted = expected;
    for (uint64_t vertex = 0; vertex < graph->vertex_count; vertex++) {
        if (value[vertex] != wanted[vertex]) {
            return dmg_error(DMG_ERR_VERIFY,
                             "vertex %" PRIu64 " has the value 0x%016" PRIx64
                             ", the serial computation says 0x%016" PRIx64,
                             dmg_graph_id(graph, (uint32_t)vertex), value[vertex], wanted[vertex]);
        }
    }
    return DMG_OK;
}

dmg_status dmg_compare_uint32(const dmg_graph *graph, const void *values, const void *expected)
{
    const uint32_t *value = values;
    const uint32_t *wanted = expected;
    for (uint64_t vertex = 0; vertex < graph->vertex_count; vertex++) {
        if (value[vertex] != wanted[vertex]) {
            return dmg_error(DMG_ERR_VERIFY,
                             "vertex %" PRIu64 " has the value %" PRIu32 ", the serial computation says %" PRIu32,
                             dmg_graph_id(graph, (uint32_t)vertex), value[vertex], wanted[vertex]);
        }
    }
    return DMG_OK;
}

dmg_status dmg_compare_double(const dmg_graph *graph, const void *values, const void *expected)
{
    const double *value = values;
    const double *wanted = expected;
    for (uint64_t vertex = 0; vertex < graph->vertex_count; vertex++) {
        double larger = fmax(fabs(value[vertex]), fabs(wanted[vertex]));
        bool is_equal = value[vertex] == wanted[vertex] ||
                        (isfinite(larger) && fabs(value[vertex] - wanted[vertex]) <= RELATIVE_TOLERANCE * larger);
        if (!is_equal) {
            return dmg_error(DMG_ERR_VERIFY,
                             "vertex %" PRIu64 " has the value %.12g, the serial computation says %.12g",
                             dmg_graph_id(graph, (uint32_t)vertex), value[vertex], wanted[vertex]);
        }
    }
    return DMG_OK;
}
