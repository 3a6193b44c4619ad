/*
 * The self-test of the link model (docs/links.md).
 *
 * For every profile a client of its link is opened and each cell measured at points that the model was not calibrated
 * with: real data at random places, several sizes, one by one with and without pauses, and at saturation. Before that,
 * the machine is measured bare, and through a model that holds nothing back: what it cannot do by itself it cannot
 * emulate. Last, links that are wrong on purpose are held against the right numbers: the self-test must notice.
 */
#include "cli/base/standard_output.h"
#include "cli/base/text.h"
#include "cli/perf/perf.h"
#include "core/base/error.h"
#include "core/base/ticks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WINDOWS_WANTED 7
#define DEPTH_MOST     512
#define SMALL_BYTES    8
#define LINE_BYTES     64
#define BULK_BYTES     4096
#define LARGE_BYTES    16384
#define RATE_DEPTH     64
#define PAUSE_NS       3000
/** Three times the bare transport, the rule of the verdicts, is about one and a half times what the model and it take
 * together. */
#define MODEL_WEIGHT     0.5
#define TICKS_MEASURE_NS UINT64_C(200000000)
#define TICKS_GATE       100e-6 /* between the time-stamp counter's rates by two clocks, of which one may be slewed */
#define GIGA             1e9
#define MEGA             1e6

typedef struct self_test {
    const dmg_perf_pool *pool;
    dmg_perf_region region; /* with the client of the link that is tested */
    bool has_load_store;
    double host_ns[DMG_PERF_KINDS]; /* as `dmgraph perf` measures it: in all its memory, one after the other */
    /* What the machine does in the memory that is tested, bare or through a model that has no latency and no limits. */
    double floor_ns[2][DMG_PERF_KINDS]; /* one after the other, and alone */
    double ceiling_bulk[2];             /* bytes a second, of reads and writes */
    double ceiling_rate;                /* operations a second */
    double ceiling_atomics;
    dmg_perf_format format;
    json_t *rows;
    uint32_t failed;
    const char *link;
} self_test;

/* ---- one measurement ---- */

/** A cell at one point, and what should come out. */
typedef struct cell_check {
    dmg_link_cell cell;
    dmg_perf_point point;
    double expected; /* nanoseconds, or operations a second */
    double host;
    bool is_latency;
} cell_check;

static void report_check(self_test *test, const cell_check *check, const dmg_link_finding *finding, const char *verdict)
{
    const dmg_perf_point *point = &check->point;
    double unit = check->is_latency ? 1 : MEGA;
    const char *unit_name = check->is_latency ? "ns" : "Mops";
    if (test->format == DMG_PERF_JSON) {
        json_array_append_new(
            test->rows, json_pack("{s:o, s:s, s:s, s:I, s:I, s:b, s:s, s:f, s:f, s:f, s:f, s:f, s:I, s:s}", "link",
                                  dmg_json_text(test->link), "cell", dmg_link_cell_name(check->cell), "operation",
                                  dmg_perf_kind_name(point->kind), "bytes", (json_int_t)point->bytes, "depth",
                                  (json_int_t)point->depth, "paused", point->pause_ns > 0, "unit", unit_name,
                                  "expected", check->expected / unit, "measured", finding->measured / unit, "host",
                                  check->host / unit, "error", finding->error, "gate", finding->gate, "clean_windows",
                                  (json_int_t)finding->clean_windows, "verdict", verdict));
        return;
    }
    char measured[32] = "-";
    char error[32] = "-";
    if (finding->clean_windows > 0) {
        snprintf(measured, sizeof measured, "%.*f", check->is_latency ? 1 : 3, finding->measured / unit);
        snprintf(error, sizeof error, "%+.1f%%", 100 * finding->error);
    }
    if (test->format == DMG_PERF_CSV) {
        dmg_csv_text(stdout, test->link);
        printf(",%s,%s,%llu,%u,%d,%s,%.3f,%s,%.3f,%s,%.3f,%u,%s\n", dmg_link_cell_name(check->cell),
               dmg_perf_kind_name(point->kind), (unsigned long long)point->bytes, point->depth, point->pause_ns > 0,
               unit_name, check->expected / unit, measured, check->host / unit, error, finding->gate,
               finding->clean_windows, verdict);
    } else {
        printf("%-14s %-27s %-7s %6llu %5u %-6s %10.*f %10s %8s %5.0f%% %10.*f  %s\n", test->link,
               dmg_link_cell_name(check->cell), dmg_perf_kind_name(point->kind), (unsigned long long)point->bytes,
               point->depth, point->pause_ns ? "alone" : "", check->is_latency ? 1 : 3, check->expected / unit,
               measured, error, 100 * finding->gate, check->is_latency ? 1 : 3, check->host / unit, verdict);
    }
}

static dmg_status judge(self_test *test, const cell_check *check, dmg_link_finding *finding)
{
    dmg_link_window *windows = calloc(DMG_LINK_WINDOWS_MAX, sizeof *windows);
    if (!windows) {
        return dmg_error(DMG_ERR_MEMORY, "no memory to measure");
    }
    uint32_t count = 0;
    dmg_status status = dmg_perf_measure_windows(&test->region, &check->point, WINDOWS_WANTED, windows, &count);
    if (status == DMG_OK) {
        const dmg_link_trial trial = {.is_latency = check->is_latency,
                                      .is_lenient = getenv("CI") != NULL,
                                      .expected = check->expected,
                                      .host = check->host,
                                      .windows = windows,
                                      .window_count = count};
        *finding = dmg_link_judge(&trial);
    }
    free(windows);
    return status;
}

static dmg_status run_check(self_test *test, const cell_check *check)
{
    dmg_link_finding finding;
    dmg_status status = judge(test, check, &finding);
    if (status == DMG_OK && finding.verdict == DMG_LINK_FAIL) {
        /* Machines that many share have bad moments that no window shows. What is really wrong fails again. */
        status = judge(test, check, &finding);
    }
    if (status == DMG_OK) {
        report_check(test, check, &finding, dmg_link_verdict_name(finding.verdict));
        test->failed += finding.verdict == DMG_LINK_FAIL;
        status = dmg_standard_output_flush(); /* nobody who reads: nothing more to prove */
    }
    return status;
}

/* ---- what should come out ---- */

static double least_positive(double a, double b)
{
    return a > 0 && (b <= 0 || a < b) ? a : b;
}

/** Bytes a second in one direction, for one channel; 0: no limit. */
static double bandwidth_of(const dmg_link_settings *link, bool is_read)
{
    return GIGA *
           least_positive(link->cells[is_read ? DMG_LINK_READ_BANDWIDTH : DMG_LINK_WRITE_BANDWIDTH],
                          link->cells[is_read ? DMG_LINK_CHANNEL_READ_BANDWIDTH : DMG_LINK_CHANNEL_WRITE_BANDWIDTH]);
}

static double latency_of(const dmg_link_settings *link, int kind)
{
    switch (kind) {
    case DMG_OPERATION_WRITE:
        return link->cells[DMG_LINK_WRITE_LATENCY];
    case DMG_OPERATION_CAS:
    case DMG_OPERATION_FAA:
        return dmg_link_atomic_latency_ns(link);
    case DMG_OPERATION_MESSAGE:
        return link->cells[DMG_LINK_MESSAGE_LATENCY];
    default:
        return link->cells[DMG_LINK_READ_LATENCY];
    }
}

/** A lone operation: the latency, and the time of its bytes on the link. */
static double lone_ns(const dmg_link_settings *link, int kind, uint64_t bytes)
{
    bool is_read = kind == DMG_OPERATION_READ || kind == DMG_PERF_LOAD;
    double bandwidth = bandwidth_of(link, is_read);
    uint64_t lines = (bytes + link->line_bytes - 1) / link->line_bytes * link->line_bytes;
    return latency_of(link, kind) + (bandwidth > 0 ? (double)lines / bandwidth * GIGA : 0);
}

static dmg_status check_latency(self_test *test, const dmg_link_settings *link, dmg_link_cell cell, int kind,
                                uint64_t bytes, uint64_t pause_ns)
{
    const cell_check latency = {.cell = cell,
                                .point = {.kind = kind, .bytes = bytes, .depth = 1, .threads = 1, .pause_ns = pause_ns},
                                .expected = lone_ns(link, kind, bytes),
                                .host = test->floor_ns[pause_ns > 0][kind],
                                .is_latency = true};
    return run_check(test, &latency);
}

/** As many in flight as a limit needs to be reached, and half as many again. */
static uint32_t depth_for(double rate, double lone)
{
    double depth = ceil(1.5 * rate * lone / GIGA) + 2;
    return depth < RATE_DEPTH ? RATE_DEPTH : depth > DEPTH_MOST ? DEPTH_MOST : (uint32_t)depth;
}

static cell_check saturation(const self_test *test, const dmg_link_settings *link, dmg_link_cell cell, int kind,
                             uint64_t bytes, double limit, double host)
{
    (void)test;
    double lone = lone_ns(link, kind, bytes);
    uint32_t depth = depth_for(limit, lone);
    double reachable = depth / lone * GIGA;
    return (cell_check){.cell = cell,
                        .point = {.kind = kind, .bytes = bytes, .depth = depth, .threads = 1},
                        .expected = limit < reachable ? limit : reachable,
                        .host = host};
}

static dmg_status check_bandwidth(self_test *test, const dmg_link_settings *link, bool is_read)
{
    double bandwidth = bandwidth_of(link, is_read);
    double whole = link->cells[is_read ? DMG_LINK_READ_BANDWIDTH : DMG_LINK_WRITE_BANDWIDTH] * GIGA;
    dmg_link_cell cell = bandwidth == whole ? is_read ? DMG_LINK_READ_BANDWIDTH : DMG_LINK_WRITE_BANDWIDTH
                         : is_read          ? DMG_LINK_CHANNEL_READ_BANDWIDTH
                                            : DMG_LINK_CHANNEL_WRITE_BANDWIDTH;
    dmg_status status = DMG_OK;
    const uint64_t sizes[] = {BULK_BYTES, LARGE_BYTES};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && status == DMG_OK && bandwidth > 0; i++) {
        double bytes = (double)sizes[i];
        const cell_check bulk = saturation(test, link, cell, is_read ? DMG_OPERATION_READ : DMG_OPERATION_WRITE,
                                           sizes[i], bandwidth / bytes, test->ceiling_bulk[is_read ? 0 : 1] / bytes);
        status = run_check(test, &bulk);
    }
    return status;
}

static dmg_status check_rate(self_test *test, const dmg_link_settings *link, bool is_read)
{
    double whole = link->cells[is_read ? DMG_LINK_READ_RATE : DMG_LINK_WRITE_RATE];
    double own = link->cells[DMG_LINK_CHANNEL_RATE];
    double rate = MEGA * least_positive(whole, own);
    dmg_link_cell cell = own > 0 && own * MEGA == rate ? DMG_LINK_CHANNEL_RATE
                         : is_read                     ? DMG_LINK_READ_RATE
                                                       : DMG_LINK_WRITE_RATE;
    if (rate <= 0) {
        return DMG_OK;
    }
    const cell_check small = saturation(test, link, cell, is_read ? DMG_OPERATION_READ : DMG_OPERATION_WRITE,
                                        SMALL_BYTES, rate, test->ceiling_rate);
    return run_check(test, &small);
}

static dmg_status check_atomic_rate(self_test *test, const dmg_link_settings *link)
{
    double whole = link->cells[DMG_LINK_ATOMIC_RATE];
    double own = link->cells[DMG_LINK_CHANNEL_ATOMIC_RATE];
    double rate = MEGA * least_positive(least_positive(whole, own), link->cells[DMG_LINK_CHANNEL_RATE]);
    if (whole <= 0 && own <= 0) {
        return DMG_OK;
    }
    const cell_check atomics = saturation(test, link, own > 0 ? DMG_LINK_CHANNEL_ATOMIC_RATE : DMG_LINK_ATOMIC_RATE,
                                          DMG_OPERATION_FAA, SMALL_BYTES, rate, test->ceiling_atomics);
    return run_check(test, &atomics);
}

static dmg_status check_cells(self_test *test, const dmg_link_settings *link)
{
    const struct {
        dmg_link_cell cell;
        int kind;
        uint64_t bytes;
        uint64_t pause_ns;
    } latencies[] = {
        {DMG_LINK_READ_LATENCY, DMG_OPERATION_READ, SMALL_BYTES, 0},
        {DMG_LINK_READ_LATENCY, DMG_OPERATION_READ, LINE_BYTES, PAUSE_NS},
        {DMG_LINK_READ_LATENCY, DMG_OPERATION_READ, BULK_BYTES, 0},
        {DMG_LINK_READ_LATENCY, DMG_PERF_LOAD, LINE_BYTES, 0},
        {DMG_LINK_WRITE_LATENCY, DMG_OPERATION_WRITE, SMALL_BYTES, 0},
        {DMG_LINK_WRITE_LATENCY, DMG_OPERATION_WRITE, LINE_BYTES, PAUSE_NS},
        {DMG_LINK_ATOMIC_LATENCY, DMG_OPERATION_FAA, SMALL_BYTES, 0},
        {DMG_LINK_ATOMIC_LATENCY, DMG_OPERATION_CAS, SMALL_BYTES, PAUSE_NS},
        {DMG_LINK_MESSAGE_LATENCY, DMG_OPERATION_MESSAGE, SMALL_BYTES, 0},
    };
    dmg_status status = DMG_OK;
    for (size_t i = 0; i < sizeof latencies / sizeof latencies[0] && status == DMG_OK; i++) {
        if (latencies[i].kind != DMG_PERF_LOAD || test->has_load_store) {
            status = check_latency(test, link, latencies[i].cell, latencies[i].kind, latencies[i].bytes,
                                   latencies[i].pause_ns);
        }
    }
    for (int is_read = 1; is_read >= 0 && status == DMG_OK; is_read--) {
        status = check_bandwidth(test, link, is_read);
        if (status == DMG_OK) {
            status = check_rate(test, link, is_read);
        }
    }
    return status == DMG_OK ? check_atomic_rate(test, link) : status;
}

/* ---- the machine ---- */

/** Kinds of operations, and mapped reads where there are any. */
static int kinds_of(const self_test *test)
{
    return test->has_load_store ? DMG_PERF_KINDS : DMG_PERF_LOAD;
}

/** Add what the least latencies are, of the bare transport or through the model. */
static dmg_status measure_floors(self_test *test, double weight)
{
    dmg_status status = DMG_OK;
    for (int is_alone = 0; is_alone < 2; is_alone++) {
        double *floors = test->floor_ns[is_alone];
        for (int kind = 0; kind < kinds_of(test) && status == DMG_OK; kind++) {
            const dmg_perf_point one = {kind, SMALL_BYTES, 1, 1, is_alone ? PAUSE_NS : 0};
            double floor = 0;
            status = dmg_perf_host(&test->region, &one, &floor);
            floors[kind] = fmax(floors[kind], weight * floor);
        }
    }
    return status;
}

/** What `dmgraph perf` says of this machine. */
static dmg_status measure_host(self_test *test)
{
    const dmg_perf_region whole = {
        .client = test->region.client, .start = test->region.start, .bytes = DMG_PERF_REGION_BYTES};
    dmg_status status = dmg_perf_region_load(&whole);
    for (int kind = 0; kind < kinds_of(test) && status == DMG_OK; kind++) {
        const dmg_perf_point one = {kind, SMALL_BYTES, 1, 1, 0};
        status = dmg_perf_host(&whole, &one, &test->host_ns[kind]);
    }
    return status;
}

static dmg_status measure_ceilings(self_test *test)
{
    const dmg_perf_point points[] = {{DMG_OPERATION_READ, BULK_BYTES, RATE_DEPTH, 1, 0},
                                     {DMG_OPERATION_WRITE, BULK_BYTES, RATE_DEPTH, 1, 0},
                                     {DMG_OPERATION_READ, SMALL_BYTES, RATE_DEPTH, 1, 0},
                                     {DMG_OPERATION_FAA, SMALL_BYTES, RATE_DEPTH, 1, 0}};
    double *const values[] = {&test->ceiling_bulk[0], &test->ceiling_bulk[1], &test->ceiling_rate,
                              &test->ceiling_atomics};
    dmg_status status = DMG_OK;
    for (size_t i = 0; i < sizeof points / sizeof points[0] && status == DMG_OK; i++) {
        status = dmg_perf_host(&test->region, &points[i], values[i]);
    }
    test->ceiling_bulk[0] *= BULK_BYTES;
    test->ceiling_bulk[1] *= BULK_BYTES;
    return status;
}

/** The clock of the model against one that nobody adjusts. */
static void check_ticks(self_test *test)
{
    bool are_cycles = dmg_ticks_are_cycles();
    double rate = dmg_ticks_measure_a_second(are_cycles);
    dmg_ticks_pair from = dmg_ticks_read_pair(are_cycles, CLOCK_MONOTONIC_RAW);
    dmg_sleep_ns(TICKS_MEASURE_NS);
    double raw = dmg_ticks_a_second(from, dmg_ticks_read_pair(are_cycles, CLOCK_MONOTONIC_RAW));
    double error = rate / raw - 1;
    bool is_steady = fabs(error) <= TICKS_GATE;
    test->failed += !is_steady;
    if (test->format == DMG_PERF_TABLE) {
        printf("clock      %s, %.3f MHz; against CLOCK_MONOTONIC_RAW %+.1f ppm: %s\n",
               are_cycles ? "time-stamp counter" : "CLOCK_MONOTONIC", rate / MEGA, error * MEGA,
               is_steady ? "pass" : "fail");
    } else if (test->format == DMG_PERF_JSON) {
        json_array_append_new(test->rows, json_pack("{s:s, s:b, s:f, s:f, s:s}", "cell", "clock", "cycles", are_cycles,
                                                    "ticks_a_second", rate, "error", error, "verdict",
                                                    is_steady ? "pass" : "fail"));
    }
}

static void report_host(const self_test *test)
{
    const double *host = test->host_ns;
    const double *near = test->floor_ns[0];
    if (test->format == DMG_PERF_JSON) {
        json_t *row = json_pack("{s:s, s:I}", "cell", "host", "bytes", (json_int_t)DMG_PERF_REGION_BYTES);
        for (int kind = 0; kind < kinds_of(test); kind++) {
            char name[32];
            snprintf(name, sizeof name, "%s_ns", dmg_perf_kind_name(kind));
            json_object_set_new(row, name, json_real(host[kind]));
        }
        json_array_append_new(test->rows, row);
    } else if (test->format == DMG_PERF_TABLE) {
        printf("this host  in %llu MiB, as dmgraph perf has it: read %.0f ns, write %.0f ns, faa %.0f ns, message %.0f "
               "ns\n",
               (unsigned long long)(DMG_PERF_REGION_BYTES >> 20), host[DMG_OPERATION_READ], host[DMG_OPERATION_WRITE],
               host[DMG_OPERATION_FAA], host[DMG_OPERATION_MESSAGE]);
        printf("           in %llu MiB, where links are tested: read %.0f ns, write %.0f ns, faa %.0f ns, message %.0f "
               "ns; %.1f Mops, %.1f Mops of atomics, %.1f GB/s read, %.1f GB/s written\n\n",
               (unsigned long long)(DMG_PERF_CALIBRATION_BYTES >> 20), near[DMG_OPERATION_READ],
               near[DMG_OPERATION_WRITE], near[DMG_OPERATION_FAA], near[DMG_OPERATION_MESSAGE],
               test->ceiling_rate / MEGA, test->ceiling_atomics / MEGA, test->ceiling_bulk[0] / GIGA,
               test->ceiling_bulk[1] / GIGA);
    }
}

/* ---- links ---- */

/** Run a step with a client of a link, or of none. */
static dmg_status with_link(self_test *test, const dmg_link_settings *link,
                            dmg_status (*step)(self_test *test, const void *context), const void *context)
{
    dmg_link_settings spinning = link ? *link : (dmg_link_settings){0};
    spinning.mode = DMG_LINK_SPIN;
    dmg_client *client = NULL;
    dmg_status status = dmg_perf_pool_connect(test->pool, link ? &spinning : NULL, &client);
    if (status == DMG_OK) {
        test->region.client = client;
        test->region.is_held_back = dmg_perf_holds_back(link);
        status = test->region.start ? DMG_OK : dmg_perf_region_allocate(client, DMG_PERF_REGION_BYTES, &test->region);
        test->region.bytes = DMG_PERF_CALIBRATION_BYTES;
    }
    if (status == DMG_OK) {
        status = dmg_perf_region_load(&test->region);
    }
    if (status == DMG_OK) {
        status = step(test, context);
    }
    test->region.client = NULL;
    dmg_client_close(client);
    return status;
}

static dmg_status bare_step(self_test *test, const void *context)
{
    (void)context;
    test->has_load_store = dmg_client_capabilities(test->region.client)->flags & DMG_CAPABILITY_LOAD_STORE;
    dmg_status status = measure_host(test);
    return status == DMG_OK ? measure_floors(test, 1) : status;
}

static dmg_status limitless_step(self_test *test, const void *context)
{
    (void)context;
    dmg_status status = measure_floors(test, MODEL_WEIGHT);
    return status == DMG_OK ? measure_ceilings(test) : status;
}

static dmg_status cells_step(self_test *test, const void *context)
{
    return check_cells(test, context);
}

/* ---- wrong on purpose ---- */

/** A wrong link must not pass where the right numbers are expected; what this machine cannot emulate proves nothing. */
static dmg_status expect_failure(self_test *test, const void *context)
{
    const cell_check *expected = context;
    dmg_link_finding finding;
    dmg_status status = judge(test, expected, &finding);
    if (status == DMG_OK) {
        bool is_missed = finding.verdict == DMG_LINK_PASS;
        report_check(test, expected, &finding,
                     is_missed                          ? "fail: the self-test did not notice"
                     : finding.verdict == DMG_LINK_FAIL ? "pass: noticed"
                                                        : dmg_link_verdict_name(finding.verdict));
        test->failed += is_missed;
    }
    return status;
}

/** The link that is the easiest to emulate. */
static const dmg_link_settings *slowest(const dmg_link_profile *profiles, size_t count)
{
    size_t chosen = 0;
    for (size_t i = 1; i < count; i++) {
        double latency = profiles[i].settings.cells[DMG_LINK_READ_LATENCY];
        chosen = latency > profiles[chosen].settings.cells[DMG_LINK_READ_LATENCY] ? i : chosen;
    }
    return &profiles[chosen].settings;
}

static dmg_status check_wrong_links(self_test *test, const dmg_link_settings *link)
{
    dmg_link_settings slow = *link;
    slow.cells[DMG_LINK_READ_LATENCY] *= 2;
    slow.cells[DMG_LINK_READ_P99] = slow.cells[DMG_LINK_READ_P999] = 0; /* they would lie below it */
    const cell_check latency = {.cell = DMG_LINK_READ_LATENCY,
                                .point = {.kind = DMG_OPERATION_READ, .bytes = SMALL_BYTES, .depth = 1, .threads = 1},
                                .expected = lone_ns(link, DMG_OPERATION_READ, SMALL_BYTES),
                                .host = test->floor_ns[0][DMG_OPERATION_READ],
                                .is_latency = true};
    test->link = "twice as slow";
    dmg_status status = with_link(test, &slow, expect_failure, &latency);
    /* A limit that this machine exceeds by far, and a link that does not have it. */
    const dmg_link_settings limitless = {.name = "no limits", .line_bytes = 1};
    const cell_check rate = {.cell = DMG_LINK_READ_RATE,
                             .point = {DMG_OPERATION_READ, SMALL_BYTES, RATE_DEPTH, 1, 0},
                             .expected = test->ceiling_rate / 4,
                             .host = test->ceiling_rate};
    test->link = limitless.name;
    return status == DMG_OK ? with_link(test, &limitless, expect_failure, &rate) : status;
}

static void print_head(const self_test *test)
{
    if (test->format == DMG_PERF_TABLE) {
        printf("%-14s %-27s %-7s %6s %5s %-6s %10s %10s %8s %6s %10s  %s\n", "emulated link", "cell", "by", "bytes",
               "depth", "", "expected", "measured", "error", "gate", "host", "verdict");
    } else if (test->format == DMG_PERF_CSV) {
        printf("link,cell,operation,bytes,depth,paused,unit,expected,measured,host,error,gate,clean_windows,verdict\n");
    }
}

dmg_status dmg_perf_calibrate(const dmg_perf_pool *pool, const dmg_link_profile *profiles, size_t count,
                              dmg_perf_format format, bool *is_proven)
{
    const dmg_link_settings limitless = {.name = "no limits", .line_bytes = 1};
    self_test test = {.pool = pool, .format = format, .rows = format == DMG_PERF_JSON ? json_array() : NULL};
    check_ticks(&test);
    dmg_status status = with_link(&test, NULL, bare_step, NULL);
    if (status == DMG_OK) {
        status = with_link(&test, &limitless, limitless_step, NULL);
    }
    if (status == DMG_OK) {
        report_host(&test);
        print_head(&test);
    }
    for (size_t i = 0; i < count && status == DMG_OK; i++) {
        test.link = profiles[i].settings.name;
        status = with_link(&test, &profiles[i].settings, cells_step, &profiles[i].settings);
    }
    if (status == DMG_OK && count > 0) {
        status = check_wrong_links(&test, slowest(profiles, count));
    }
    if (status == DMG_OK && format == DMG_PERF_JSON) {
        dmg_json_print(json_incref(test.rows));
    }
    json_decref(test.rows);
    *is_proven = test.failed == 0;
    return status;
}
