/*
 * dmgraph perf: what a transport, and an emulated link over it, takes for each operation. Starts a memory node of its
 * own.
 */
#include "cli/base/exit_code.h"
#include "cli/options/command.h"
#include "cli/options/link_options.h"
#include "cli/perf/perf.h"
#include "core/base/error.h"
#include "core/base/topology.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LIST_MAX      32
#define SIZE_MOST     (UINT64_C(1) << 20)
#define DEPTH_MOST    1024
#define THREADS_MOST  256
#define WORD_BYTES    8
#define MESSAGE_BYTES DMG_MESSAGE_BYTES_MAX

typedef struct value_list {
    uint64_t values[LIST_MAX];
    uint32_t count;
} value_list;

typedef struct perf_run {
    dmg_settings *settings;
    dmg_perf_pool pool;
    dmg_perf_format format;
    value_list kinds, sizes, depths, threads;
    bool has_link;
    dmg_link_settings link;
    dmg_link_profile *profiles; /* to calibrate */
    size_t profile_count;
    bool is_proven;
} perf_run;

/* ---- settings ---- */

static dmg_status kind_of(const char *word, uint64_t *kind)
{
    char known[128] = "";
    for (*kind = 0; *kind < DMG_PERF_KINDS; (*kind)++) {
        const char *name = dmg_perf_kind_name((int)*kind);
        if (strcmp(name, word) == 0) {
            return DMG_OK;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", name);
    }
    return dmg_error(DMG_ERR_ARGUMENT, "'%s' is no operation; there are %s", word, known);
}

/** Take a list apart at its commas. */
static dmg_status parse_list(const dmg_settings *settings, dmg_option_id id,
                             dmg_status (*parse)(const char *word, uint64_t *value), uint64_t most, value_list *to)
{
    const char *rest = dmg_value_text(settings, id);
    dmg_status status = DMG_OK;
    to->count = 0;
    while (status == DMG_OK) {
        char word[32];
        size_t length = strcspn(rest, ",");
        if (length >= sizeof word || to->count == LIST_MAX) {
            status = dmg_error(DMG_ERR_ARGUMENT, "the list is too long");
            break;
        }
        memcpy(word, rest, length);
        word[length] = '\0';
        uint64_t *value = &to->values[to->count++];
        status = parse(word, value);
        if (status == DMG_OK && most > 0 && (*value == 0 || *value > most)) {
            status =
                dmg_error(DMG_ERR_ARGUMENT, "%s is out of range: expected 1 to %llu", word, (unsigned long long)most);
        }
        if (rest[length] == '\0') {
            break;
        }
        rest += length + 1;
    }
    return status == DMG_OK ? DMG_OK : dmg_error_prefix(status, "--%s", dmg_option_get(id)->name);
}

static dmg_status take_profiles(perf_run *perf)
{
    if (!dmg_has(perf->settings, DMG_OPTION_LINK)) {
        return perf->has_link
                   ? dmg_error(DMG_ERR_ARGUMENT, "--calibrate proves profiles: write the link's numbers into a "
                                                 "file, and name it with --link")
                   : dmg_link_profiles_list(&perf->profiles, &perf->profile_count);
    }
    perf->profiles = calloc(1, sizeof *perf->profiles);
    perf->profile_count = 1;
    return perf->profiles ? dmg_link_profile_load(dmg_value_text(perf->settings, DMG_OPTION_LINK), perf->profiles)
                          : dmg_error(DMG_ERR_MEMORY, "no memory for a link profile");
}

static uint32_t most_threads(const perf_run *perf)
{
    uint64_t most = 1;
    for (uint32_t i = 0; i < perf->threads.count; i++) {
        most = perf->threads.values[i] > most ? perf->threads.values[i] : most;
    }
    return (uint32_t)most;
}

/** Sizes of atomics are words, and messages end at a limit: no point is measured twice. */
static bool has_size(const perf_run *perf, int kind, uint32_t index, uint64_t *bytes)
{
    *bytes = perf->sizes.values[index];
    if (kind == DMG_OPERATION_CAS || kind == DMG_OPERATION_FAA) {
        *bytes = WORD_BYTES;
        return index == 0;
    }
    return kind != DMG_OPERATION_MESSAGE || *bytes <= MESSAGE_BYTES;
}

/** Loads in place are waited for one by one. */
static bool has_depth(const perf_run *perf, int kind, uint32_t index)
{
    return kind != DMG_PERF_LOAD || perf->depths.values[index] == 1;
}

/** What was asked for is measured at one point at least. */
static dmg_status check_points(const perf_run *perf)
{
    for (uint32_t i = 0; i < perf->kinds.count; i++) {
        int kind = (int)perf->kinds.values[i];
        uint64_t bytes;
        bool is_sized = false;
        bool is_deep = false;
        for (uint32_t size = 0; size < perf->sizes.count; size++) {
            is_sized = has_size(perf, kind, size, &bytes) || is_sized;
        }
        for (uint32_t depth = 0; depth < perf->depths.count; depth++) {
            is_deep = has_depth(perf, kind, depth) || is_deep;
        }
        if (!is_sized || !is_deep) {
            return dmg_error(DMG_ERR_ARGUMENT, "--operations %s: it is not measured at any of these %s",
                             dmg_perf_kind_name(kind), is_sized ? "depths: it has 1" : "sizes: it has at most 8K");
        }
    }
    return DMG_OK;
}

static dmg_status refuse_without_effect(const dmg_settings *settings)
{
    static const dmg_option_id of_measurements[] = {DMG_OPTION_OPERATIONS,    DMG_OPTION_SIZES,    DMG_OPTION_DEPTHS,
                                                    DMG_OPTION_THREAD_COUNTS, DMG_OPTION_DURATION, DMG_OPTION_COUNT};
    static const dmg_option_id of_reports[] = {DMG_OPTION_CSV, DMG_OPTION_JSON, DMG_OPTION_COUNT};
    static const dmg_option_id of_links[] = {DMG_OPTION_LINK_MODE, DMG_OPTION_COUNT};
    dmg_status status = DMG_OK;
    if (dmg_has(settings, DMG_OPTION_FIT)) {
        status = dmg_options_refuse(settings, of_measurements, "with --fit, which chooses what it measures");
        status =
            status == DMG_OK ? dmg_options_refuse(settings, of_reports, "with --fit, which writes a profile") : status;
    } else if (dmg_flag(settings, DMG_OPTION_CALIBRATE)) {
        status = dmg_options_refuse(settings, of_measurements, "with --calibrate, which chooses what it measures");
        status = status == DMG_OK ? dmg_options_refuse(settings, of_links, "with --calibrate, which waits links out")
                                  : status;
    }
    return status;
}

static dmg_status read_settings(perf_run *perf)
{
    const dmg_settings *settings = perf->settings;
    bool is_json = dmg_flag(settings, DMG_OPTION_JSON);
    perf->format = is_json ? DMG_PERF_JSON : dmg_flag(settings, DMG_OPTION_CSV) ? DMG_PERF_CSV : DMG_PERF_TABLE;
    if (dmg_has(settings, DMG_OPTION_FIT) && dmg_flag(settings, DMG_OPTION_CALIBRATE)) {
        return dmg_error(DMG_ERR_ARGUMENT, "perf: --fit and --calibrate exclude each other");
    }
    if (is_json && dmg_flag(settings, DMG_OPTION_CSV)) {
        return dmg_error(DMG_ERR_ARGUMENT, "perf: --json and --csv exclude each other");
    }
    dmg_status status = refuse_without_effect(settings);
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "perf");
    }
    status = parse_list(settings, DMG_OPTION_OPERATIONS, kind_of, 0, &perf->kinds);
    if (status == DMG_OK) {
        status = parse_list(settings, DMG_OPTION_SIZES, dmg_parse_size, SIZE_MOST, &perf->sizes);
    }
    if (status == DMG_OK) {
        status = parse_list(settings, DMG_OPTION_DEPTHS, dmg_parse_number, DEPTH_MOST, &perf->depths);
    }
    if (status == DMG_OK) {
        status = parse_list(settings, DMG_OPTION_THREAD_COUNTS, dmg_parse_number, THREADS_MOST, &perf->threads);
    }
    if (status == DMG_OK && settings->values[DMG_OPTION_OPERATIONS].is_given) {
        status = check_points(perf);
    }
    if (status == DMG_OK) {
        status = dmg_link_options(settings, most_threads(perf), &perf->has_link, &perf->link);
    }
    if (status == DMG_OK && dmg_flag(settings, DMG_OPTION_CALIBRATE)) {
        status = take_profiles(perf);
    }
    return status == DMG_OK ? DMG_OK : dmg_error_prefix(status, "perf");
}

/* ---- the course ---- */

static dmg_status measure_point(perf_run *perf, const dmg_perf_region *region, const dmg_perf_point *point,
                                dmg_perf_report *report)
{
    dmg_perf_result result;
    dmg_perf_check check;
    bool is_checked = dmg_perf_is_checked(point);
    dmg_status status = dmg_perf_measure(region, point, dmg_number(perf->settings, DMG_OPTION_DURATION), &result);
    if (status == DMG_OK && is_checked) {
        status = dmg_perf_check_result(region, point, &result, &check);
    }
    if (status == DMG_OK) {
        status = dmg_perf_report_row(report, point, &result, is_checked ? &check : NULL);
    }
    return status;
}

static dmg_status measure_kind(perf_run *perf, const dmg_perf_region *region, int kind, dmg_perf_report *report)
{
    dmg_status status = DMG_OK;
    for (uint32_t size = 0; size < perf->sizes.count; size++) {
        uint64_t bytes;
        if (!has_size(perf, kind, size, &bytes)) {
            continue;
        }
        for (uint32_t depth = 0; depth < perf->depths.count; depth++) {
            for (uint32_t threads = 0; threads < perf->threads.count && status == DMG_OK; threads++) {
                const dmg_perf_point point = {.kind = kind,
                                              .bytes = bytes,
                                              .depth = (uint32_t)perf->depths.values[depth],
                                              .threads = (uint32_t)perf->threads.values[threads]};
                if (!has_depth(perf, kind, depth)) {
                    continue;
                }
                status = measure_point(perf, region, &point, report);
            }
        }
    }
    return status;
}

static dmg_status measure(void *context)
{
    perf_run *perf = context;
    dmg_client *client = NULL;
    dmg_perf_region region = {0};
    dmg_status status = dmg_perf_pool_connect(&perf->pool, perf->has_link ? &perf->link : NULL, &client);
    if (status == DMG_OK) {
        status = dmg_perf_region_allocate(client, DMG_PERF_REGION_BYTES, &region);
    }
    region.is_held_back = dmg_perf_holds_back(perf->has_link ? &perf->link : NULL);
    if (status == DMG_OK) {
        status = dmg_perf_region_load(&region);
    }
    const char *fit = dmg_value_text(perf->settings, DMG_OPTION_FIT);
    if (status == DMG_OK && fit) {
        status = dmg_perf_fit(&region, dmg_value_text(perf->settings, DMG_OPTION_TRANSPORT), fit);
    } else if (status == DMG_OK) {
        dmg_perf_report report = {.format = perf->format,
                                  .transport = dmg_value_text(perf->settings, DMG_OPTION_TRANSPORT),
                                  .link = perf->has_link ? perf->link.name : "none",
                                  .chosen = dmg_client_capabilities(client)->chosen,
                                  .placement = &perf->pool.placement};
        dmg_perf_report_begin(&report);
        for (uint32_t i = 0; i < perf->kinds.count && status == DMG_OK; i++) {
            status = measure_kind(perf, &region, (int)perf->kinds.values[i], &report);
        }
        if (status == DMG_OK) {
            dmg_perf_report_end(&report);
        }
        json_decref(report.rows);
    }
    dmg_client_close(client);
    return status;
}

static dmg_status calibrate(void *context)
{
    perf_run *perf = context;
    return dmg_perf_calibrate(&perf->pool, perf->profiles, perf->profile_count, perf->format, &perf->is_proven);
}

static dmg_status go(perf_run *perf)
{
    bool is_calibration = dmg_flag(perf->settings, DMG_OPTION_CALIBRATE);
    perf->pool.threads = dmg_has(perf->settings, DMG_OPTION_FIT) ? dmg_topology_usable_cpus()
                         : is_calibration                        ? 2
                                                                 : most_threads(perf);
    dmg_status status = dmg_perf_pool_start(&perf->pool);
    if (status == DMG_OK) {
        status = dmg_launcher_call(perf->pool.launcher, is_calibration ? calibrate : measure, perf);
    }
    return status == DMG_OK ? dmg_launcher_dismiss(perf->pool.launcher, DMG_CHILD_MEMORY_NODE, "stop") : status;
}

/** After a failure a step may still run in its thread: nothing is freed. */
static _Noreturn void give_up(perf_run *perf, dmg_status status, uint64_t started_s)
{
    int number = perf->pool.launcher ? dmg_launcher_signal(perf->pool.launcher) : 0;
    int code = dmg_exit_with_error(status);
    fflush(NULL);
    if (perf->pool.launcher) {
        dmg_launcher_stop(perf->pool.launcher);
        dmg_transport_sweep(started_s, NULL, NULL);
    }
    _exit(number ? DMG_EXIT_SIGNAL + number : code);
}

static int run(dmg_settings *settings)
{
    uint64_t started_s = (uint64_t)time(NULL);
    perf_run *measured = calloc(1, sizeof *measured);
    if (!measured) {
        return dmg_exit_with_error(dmg_error(DMG_ERR_MEMORY, "no memory to start"));
    }
    measured->settings = settings;
    measured->pool.settings = settings;
    measured->is_proven = true;
    dmg_status status = read_settings(measured);
    if (status == DMG_OK) {
        status = go(measured);
    }
    if (status != DMG_OK) {
        give_up(measured, status, started_s);
    }
    int code = measured->is_proven ? DMG_EXIT_OK : DMG_EXIT_VERIFY;
    dmg_launcher_destroy(measured->pool.launcher);
    free(measured->profiles);
    free(measured);
    return code;
}

static const dmg_option_id options[] = {DMG_OPTION_TRANSPORT,      DMG_OPTION_TRUST_NETWORK, DMG_LINK_OPTIONS,
                                        DMG_OPTION_OPERATIONS,     DMG_OPTION_SIZES,         DMG_OPTION_DEPTHS,
                                        DMG_OPTION_THREAD_COUNTS,  DMG_OPTION_DURATION,      DMG_OPTION_FIT,
                                        DMG_OPTION_CALIBRATE,      DMG_OPTION_NUMA_NODE,     DMG_OPTION_PAGE_SIZE,
                                        DMG_OPTION_ALLOW_FALLBACK, DMG_OPTION_PEER_TIMEOUT,  DMG_OPTION_CSV,
                                        DMG_OPTION_JSON,           DMG_OPTION_LOG_LEVEL,     DMG_OPTION_HELP,
                                        DMG_OPTION_HELP_ALL,       DMG_OPTION_COUNT};

const dmg_command dmg_command_perf = {
    .name = "perf",
    .arguments = "",
    .summary = "measure a transport: latency, rate and bandwidth of each operation; prove an emulated link",
    .details = "Starts a memory node, and measures by size, operations in flight and threads (docs/perf.md). With "
               "--calibrate it\n"
               "measures the emulated links themselves, and ends with exit code 6 when one of them is not what its "
               "profile says.\n",
    .options = options,
    .run = run};
