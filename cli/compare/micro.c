#include "cli/compare/compare.h"

#include "cli/base/exit_code.h"
#include "core/base/error.h"
#include "core/base/topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LOAD_DEPTHS "1,2,4,8,16,32,64"
#define LOAD_BYTES  "64"
#define SIZES       "8,32,64,128,256,512,1K,2K,4K,8K,16K,64K,256K"
#define SIZES_DEPTH "16"
/** How often each is measured. */
#define TURNS 2

/** What a user may say about all calls of perf, and about its measurements. */
static const dmg_option_id perf_options[] = {DMG_OPTION_NUMA_NODE, DMG_OPTION_PAGE_SIZE, DMG_OPTION_ALLOW_FALLBACK,
                                             DMG_OPTION_PEER_TIMEOUT, DMG_OPTION_COUNT};
static const dmg_option_id sweep_options[] = {DMG_OPTION_DURATION, DMG_OPTION_COUNT};

/** 1, 2, 4 ... threads, as many as this machine has cores, at most 8. */
static void thread_counts(char *text, size_t capacity)
{
    uint32_t cores = dmg_topology_usable_cpus();
    int used = snprintf(text, capacity, "1");
    for (uint32_t threads = 2; threads <= cores && threads <= 8; threads *= 2) {
        used += snprintf(text + used, capacity - (size_t)used, ",%u", threads);
    }
}

static void begin_call(const dmg_compare *compare, const dmg_compare_configuration *configuration,
                       dmg_compare_call *call)
{
    dmg_compare_call_add(call, "dmgraph");
    dmg_compare_call_add(call, "perf");
    dmg_compare_call_add(call, "--json");
    dmg_compare_call_add(call, "--transport=%s", configuration->transport);
    if (configuration->has_link) {
        dmg_compare_call_add(call, "--link=%s", configuration->link);
    }
    dmg_compare_call_add_given(call, compare->settings, perf_options);
}

static void describe_sweep(const dmg_compare_configuration *configuration, dmg_compare_sweep sweep,
                           dmg_compare_call *call)
{
    char threads[64];
    thread_counts(threads, sizeof threads);
    switch (sweep) {
    case DMG_SWEEP_LATENCY:
        dmg_compare_call_add(call, "--operations=read,write,cas,faa,message%s",
                             configuration->has_load_store ? ",touch" : "");
        dmg_compare_call_add(call, "--sizes=" LOAD_BYTES);
        dmg_compare_call_add(call, "--depths=1");
        break;
    case DMG_SWEEP_LOAD:
        dmg_compare_call_add(call, "--operations=read");
        dmg_compare_call_add(call, "--sizes=" LOAD_BYTES);
        dmg_compare_call_add(call, "--depths=" LOAD_DEPTHS);
        dmg_compare_call_add(call, "--thread-counts=%s", threads);
        break;
    default:
        dmg_compare_call_add(call, "--operations=read");
        dmg_compare_call_add(call, "--sizes=" SIZES);
        dmg_compare_call_add(call, "--depths=" SIZES_DEPTH);
        break;
    }
}

/* ---- what came out ---- */

static double real_of(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

static void take_point(const json_t *row, dmg_compare_point *point)
{
    const char *operation = json_string_value(json_object_get(row, "operation"));
    snprintf(point->operation, sizeof point->operation, "%s", operation ? operation : "");
    point->bytes = (uint64_t)real_of(row, "bytes");
    point->depth = (uint32_t)real_of(row, "depth");
    point->threads = (uint32_t)real_of(row, "threads");
    point->least_ns = real_of(row, "min_ns");
    point->median_ns = real_of(row, "p50_ns");
    point->p99_ns = real_of(row, "p99_ns");
    point->p999_ns = real_of(row, "p999_ns");
    point->mops = real_of(row, "mops");
    point->gbs = real_of(row, "gbs");
    size_t index;
    const json_t *pair;
    json_array_foreach(json_object_get(row, "quantiles"), index, pair)
    {
        if (point->quantile_count < DMG_COMPARE_QUANTILES_MAX) {
            point->parts[point->quantile_count] = json_number_value(json_array_get(pair, 0));
            point->quantiles_ns[point->quantile_count++] = json_number_value(json_array_get(pair, 1));
        }
    }
}

/** Other programs only ever slow things down, so that of several measurements of a point the fastest counts. */
static bool is_better(const dmg_compare_point *point, const dmg_compare_point *than, dmg_compare_sweep sweep)
{
    if (than->mops <= 0 || point->mops <= 0) {
        return point->mops > than->mops;
    }
    return sweep == DMG_SWEEP_LATENCY ? point->p99_ns < than->p99_ns : point->mops > than->mops;
}

/** The rows are the same points in the same order each time. */
static dmg_status take_points(const json_t *rows, dmg_compare_sweep sweep, dmg_compare_points *points)
{
    size_t count = json_array_size(rows);
    if (!points->points) {
        points->points = calloc(count + 1, sizeof *points->points);
        points->count = points->points ? (uint32_t)count : 0;
    }
    if (!points->points) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for measurements");
    }
    for (uint32_t i = 0; i < points->count && i < count; i++) {
        dmg_compare_point point = {0};
        take_point(json_array_get(rows, i), &point);
        if (points->points[i].operation[0] == '\0' || is_better(&point, &points->points[i], sweep)) {
            points->points[i] = point;
        }
    }
    return DMG_OK;
}

static dmg_status measure_sweep(dmg_compare *compare, dmg_compare_configuration *configuration, dmg_compare_sweep sweep)
{
    dmg_compare_call call = {0};
    json_t *report = NULL;
    begin_call(compare, configuration, &call);
    describe_sweep(configuration, sweep, &call);
    dmg_compare_call_add_given(&call, compare->settings, sweep_options);
    dmg_status status = dmg_compare_call_run(&call, 0, &report);
    if (status == DMG_OK) {
        status = take_points(json_object_get(report, "measurements"), sweep, &configuration->sweeps[sweep]);
    }
    json_decref(report);
    return status;
}

/* ---- the self-test ---- */

/** A row about the link itself, not about the clock or the links that are wrong on purpose. */
static void take_verdict(const json_t *row, const char *link, dmg_compare_proof *proof)
{
    const char *name = json_string_value(json_object_get(row, "link"));
    const char *verdict = json_string_value(json_object_get(row, "verdict"));
    if (!name || !verdict || strcmp(name, link) != 0) {
        return;
    }
    bool is_passed = strcmp(verdict, "pass") == 0;
    bool is_failed = strcmp(verdict, "fail") == 0;
    proof->passed += is_passed;
    proof->failed += is_failed;
    proof->inconclusive += strcmp(verdict, "inconclusive") == 0;
    proof->not_emulable += strcmp(verdict, "not emulable here") == 0;
    if (is_passed || is_failed) {
        proof->worst_error = fmax(proof->worst_error, fabs(real_of(row, "error")));
    }
}

static dmg_status prove_link(dmg_compare *compare, dmg_compare_configuration *configuration)
{
    dmg_compare_call call = {0};
    json_t *rows = NULL;
    begin_call(compare, configuration, &call);
    dmg_compare_call_add(&call, "--calibrate");
    /* A link that fails is a finding. */
    dmg_status status = dmg_compare_call_run(&call, DMG_EXIT_VERIFY, &rows);
    size_t index;
    const json_t *row;
    json_array_foreach(rows, index, row)
    {
        take_verdict(row, configuration->profile->settings.name, &configuration->proof);
    }
    configuration->proof.is_there = status == DMG_OK;
    json_decref(rows);
    return status;
}

dmg_status dmg_compare_measure(dmg_compare *compare)
{
    static const char *const names[DMG_SWEEPS] = {"latencies", "load", "sizes"};
    dmg_status status = DMG_OK;
    for (int turn = 0; turn < TURNS * DMG_SWEEPS; turn++) {
        int sweep = turn % DMG_SWEEPS;
        for (uint32_t i = 0; i < compare->configuration_count && status == DMG_OK; i++) {
            dmg_compare_progress(compare, "measuring %s of %s", names[sweep], compare->configurations[i].title);
            status = measure_sweep(compare, &compare->configurations[i], (dmg_compare_sweep)sweep);
        }
    }
    for (uint32_t i = 0; i < compare->configuration_count && status == DMG_OK; i++) {
        if (compare->configurations[i].has_link) {
            dmg_compare_progress(compare, "proving %s", compare->configurations[i].title);
            status = prove_link(compare, &compare->configurations[i]);
        }
    }
    compare->has_measured = status == DMG_OK;
    return status;
}
