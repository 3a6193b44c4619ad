/*
 * Measurements: threads that run a point together, and short windows of one.
 */
#include "cli/perf/worker.h"
#include "core/base/backoff.h"
#include "core/base/error.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_NS     3000000
#define WARM_UP_NS    300000
#define PAIR_LEAST_NS 400000
#define NS_SECOND     1e9

const char *dmg_perf_kind_name(int kind)
{
    return kind == DMG_PERF_LOAD ? "touch" : dmg_operation_kind_name((dmg_operation_kind)kind);
}

const double dmg_perf_quantile_parts[DMG_PERF_QUANTILES] = {0.001, 0.01, 0.05, 0.1,  0.2,  0.3,  0.4,   0.5,  0.6,
                                                            0.7,   0.8,  0.9,  0.95, 0.98, 0.99, 0.995, 0.999};

static dmg_status check_point(const dmg_perf_region *region, const dmg_perf_point *point)
{
    uint32_t flags = dmg_client_capabilities(region->client)->flags;
    if (point->kind == DMG_PERF_LOAD && !(flags & DMG_CAPABILITY_LOAD_STORE)) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "this transport has no mapped loads and stores to be measured by touch");
    }
    return DMG_OK;
}

/* ---- many threads ---- */

typedef enum crew_state { CREW_GATHERS, CREW_RUNS, CREW_IS_DISMISSED } crew_state;

typedef struct perf_crew {
    _Atomic crew_state state;
    uint64_t duration; /* ticks */
    uint64_t warm_up;
    uint64_t pair_least;
} perf_crew;

typedef struct crew_member {
    dmg_perf_worker worker;
    perf_crew *crew;
    pthread_t thread;
    char sentence[512];
} crew_member;

static void *member_run(void *argument)
{
    crew_member *member = argument;
    dmg_backoff backoff = {0};
    while (atomic_load(&member->crew->state) == CREW_GATHERS) {
        dmg_backoff_wait(&backoff);
    }
    if (atomic_load(&member->crew->state) == CREW_IS_DISMISSED) {
        return NULL;
    }
    dmg_perf_worker *worker = &member->worker;
    dmg_perf_worker_warm_up(worker, member->crew->warm_up);
    if (worker->status == DMG_OK && worker->point.depth == 1) {
        dmg_perf_worker_run_pairs(worker, member->crew->duration, member->crew->pair_least);
    } else if (worker->status == DMG_OK) {
        dmg_perf_worker_run(worker, member->crew->duration);
    }
    if (worker->status != DMG_OK) {
        strncpy(member->sentence, dmg_error_message(), sizeof member->sentence - 1);
    }
    return NULL;
}

static void add_clean_windows(const dmg_perf_worker *worker, double ns_a_tick, dmg_perf_result *result)
{
    uint32_t timed = 0;
    uint32_t chained = 0;
    result->clean_mean_ns = dmg_perf_worker_clean(worker, false, &timed) * ns_a_tick;
    result->clean_rate_ns = dmg_perf_worker_clean(worker, true, &chained) * ns_a_tick;
    result->clean_windows = timed < chained ? timed : chained;
    result->windows = worker->pair_count;
}

static void add_up(crew_member *members, uint32_t count, double ticks_a_second, dmg_perf_result *result)
{
    dmg_perf_histogram *sum = &members[0].worker.histogram;
    *result = (dmg_perf_result){0};
    for (uint32_t i = 0; i < count; i++) {
        const dmg_perf_worker *worker = &members[i].worker;
        double seconds = (double)worker->elapsed / ticks_a_second;
        result->operations += worker->operations - worker->skipped;
        result->seconds = seconds > result->seconds ? seconds : result->seconds;
        if (i > 0) {
            dmg_perf_histogram_merge(sum, &worker->histogram);
        }
    }
    double ns_a_tick = NS_SECOND / ticks_a_second;
    result->least_ns = (double)sum->least * ns_a_tick;
    result->median_ns = dmg_perf_histogram_quantile(sum, 0.5) * ns_a_tick;
    result->p99_ns = dmg_perf_histogram_quantile(sum, 0.99) * ns_a_tick;
    result->p999_ns = dmg_perf_histogram_quantile(sum, 0.999) * ns_a_tick;
    for (uint32_t i = 0; i < DMG_PERF_QUANTILES; i++) {
        result->quantiles_ns[i] = dmg_perf_histogram_quantile(sum, dmg_perf_quantile_parts[i]) * ns_a_tick;
    }
    result->step_ns = members[0].worker.clock.step * ns_a_tick;
    if (count == 1 && members[0].worker.point.depth == 1) {
        add_clean_windows(&members[0].worker, ns_a_tick, result);
    }
}

static dmg_status run_crew(crew_member *members, uint32_t count, perf_crew *crew)
{
    uint32_t started = 0;
    dmg_status status = DMG_OK;
    for (uint32_t i = 0; i < count && status == DMG_OK; i++) {
        members[i].crew = crew;
        int failed = pthread_create(&members[i].thread, NULL, member_run, &members[i]);
        started += failed == 0;
        if (failed) {
            status = dmg_error_errno(DMG_ERR_MEMORY, failed, "starting a thread to measure with");
        }
    }
    atomic_store(&crew->state, status == DMG_OK ? CREW_RUNS : CREW_IS_DISMISSED);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(members[i].thread, NULL);
        if (members[i].worker.status != DMG_OK && status == DMG_OK) {
            status = dmg_error(members[i].worker.status, "%s", members[i].sentence);
        }
    }
    return status;
}

dmg_status dmg_perf_measure(const dmg_perf_region *region, const dmg_perf_point *point, uint64_t duration_ns,
                            dmg_perf_result *result)
{
    dmg_status status = check_point(region, point);
    crew_member *members = status == DMG_OK ? calloc(point->threads, sizeof *members) : NULL;
    if (!members) {
        return status != DMG_OK ? status : dmg_error(DMG_ERR_MEMORY, "no memory for %u threads", point->threads);
    }
    bool are_cycles = dmg_ticks_are_cycles();
    double ticks_a_second = dmg_ticks_measure_a_second(are_cycles);
    perf_crew crew = {.duration = (uint64_t)((double)duration_ns / NS_SECOND * ticks_a_second),
                      .warm_up = (uint64_t)(WARM_UP_NS / NS_SECOND * ticks_a_second),
                      .pair_least = (uint64_t)(PAIR_LEAST_NS / NS_SECOND * ticks_a_second)};
    for (uint32_t i = 0; i < point->threads && status == DMG_OK; i++) {
        status = dmg_perf_worker_open(&members[i].worker, region, point, i + 1, are_cycles, ticks_a_second);
    }
    if (status == DMG_OK) {
        status = run_crew(members, point->threads, &crew);
    }
    if (status == DMG_OK) {
        add_up(members, point->threads, ticks_a_second, result);
    }
    for (uint32_t i = 0; i < point->threads; i++) {
        dmg_perf_worker_close(&members[i].worker);
    }
    free(members);
    return status;
}

/* ---- windows ---- */

static double window_value(const dmg_perf_worker *worker, double ticks_a_second)
{
    if (worker->point.depth == 1) {
        return dmg_perf_histogram_quantile(&worker->histogram, 0.5) / ticks_a_second * NS_SECOND;
    }
    double seconds = (double)worker->elapsed / ticks_a_second;
    return seconds > 0 ? (double)(worker->operations - worker->skipped) / seconds : 0;
}

dmg_status dmg_perf_measure_windows(const dmg_perf_region *region, const dmg_perf_point *point, uint32_t wanted,
                                    dmg_link_window windows[DMG_LINK_WINDOWS_MAX], uint32_t *count)
{
    *count = 0;
    dmg_perf_worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        return dmg_error(DMG_ERR_MEMORY, "no memory to measure");
    }
    bool are_cycles = dmg_ticks_are_cycles();
    double ticks_a_second = dmg_ticks_measure_a_second(are_cycles);
    dmg_status status = check_point(region, point);
    if (status == DMG_OK) {
        status = dmg_perf_worker_open(worker, region, point, 1, are_cycles, ticks_a_second);
    }
    if (status == DMG_OK) {
        dmg_perf_worker_warm_up(worker, (uint64_t)(WARM_UP_NS / NS_SECOND * ticks_a_second));
        status = worker->status;
    }
    uint32_t clean = 0;
    while (status == DMG_OK && clean < wanted && *count < DMG_LINK_WINDOWS_MAX) {
        dmg_link_window *window = &windows[(*count)++];
        window->is_clean = dmg_perf_worker_run(worker, (uint64_t)(WINDOW_NS / NS_SECOND * ticks_a_second));
        window->value = window_value(worker, ticks_a_second);
        clean += window->is_clean;
        status = worker->status;
    }
    dmg_perf_worker_close(worker);
    free(worker);
    return status;
}
