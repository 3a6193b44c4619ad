/*
 * What this machine does by itself, in the self-test and in the check: the same points, measured the same way.
 */
#include "cli/perf/perf.h"
#include "core/base/error.h"

#include <math.h>
#include <stdlib.h>

#define WINDOWS_WANTED 7

/* The best that it ever did: other programs only make it worse. Messages are up to another process, so that what is
 * usual counts. */
static double host_value(const dmg_perf_point *point, const dmg_link_window *windows, uint32_t count)
{
    double least = INFINITY;
    double most = 0;
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        least = fmin(least, windows[i].value);
        most = fmax(most, windows[i].value);
        sum += windows[i].value;
    }
    return point->depth > 1 ? most : point->kind == DMG_OPERATION_MESSAGE ? sum / count : least;
}

dmg_status dmg_perf_host(const dmg_perf_region *region, const dmg_perf_point *point, double *value)
{
    dmg_link_window *windows = calloc(DMG_LINK_WINDOWS_MAX, sizeof *windows);
    uint32_t count = 0;
    dmg_status status = windows ? dmg_perf_measure_windows(region, point, WINDOWS_WANTED, windows, &count)
                                : dmg_error(DMG_ERR_MEMORY, "no memory to measure");
    if (status == DMG_OK) {
        *value = host_value(point, windows, count);
    }
    free(windows);
    return status;
}

/* ---- the check ---- */

bool dmg_perf_is_checked(const dmg_perf_point *point)
{
    return point->depth == 1 && point->threads == 1;
}

/* Who executes operations of this kind: this processor or a device, or the memory node's program. */
static bool is_answered(const dmg_capabilities *capabilities, int kind)
{
    switch (kind) {
    case DMG_PERF_LOAD:
        return false;
    case DMG_OPERATION_MESSAGE:
        return true;
    case DMG_OPERATION_CAS:
    case DMG_OPERATION_FAA:
        return capabilities->atomics == DMG_ATOMICS_MEMORY_NODE;
    default:
        return !(capabilities->flags & DMG_CAPABILITY_ONE_SIDED) || !(capabilities->flags & DMG_CAPABILITY_COHERENT);
    }
}

dmg_status dmg_perf_check_result(const dmg_perf_region *region, const dmg_perf_point *point,
                                 const dmg_perf_result *result, dmg_perf_check *check)
{
    double host_ns = 0;
    dmg_status status = dmg_perf_host(region, point, &host_ns);
    if (status == DMG_OK) {
        check->figures = (dmg_perf_figures){
            .median_ns = result->median_ns,
            .rate_ns = result->operations > 0 ? result->seconds * 1e9 / (double)result->operations : 0,
            .host_ns = host_ns,
            .clean_rate_ns = result->clean_rate_ns,
            .clean_mean_ns = result->clean_mean_ns,
            .step_ns = result->step_ns,
            .clean_windows = result->clean_windows,
            .windows = result->windows,
            .is_answered = is_answered(dmg_client_capabilities(region->client), point->kind)};
        check->verdict = dmg_perf_judge(&check->figures);
    }
    return status;
}
