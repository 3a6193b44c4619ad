/*
 * A link profile from a measurement: so that a real NIC or CXL device can be emulated elsewhere.
 *
 * What one thread reaches are the limits of a channel; what as many threads as this machine has cores reach are those
 * of the link. Both are at least what was seen, never more than what is there. Latencies are checked as those of any
 * measurement; what does not agree is said, and stands in the profile.
 */
#include "cli/base/output_file.h"
#include "cli/perf/perf.h"
#include "core/base/error.h"
#include "core/base/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SMALL_BYTES 8
#define BULK_BYTES  32768
#define RATE_DEPTH  64
#define BULK_DEPTH  16
#define FIT_NS      UINT64_C(200000000)
#define LINE_BYTES  64
#define NANO        1e9
#define MILLION     1e6

/** A cell, the point that shows it, and the unit. */
typedef struct fitted_cell {
    dmg_link_cell cell;
    dmg_perf_point point;
    bool is_of_all_cores;
} fitted_cell;

static const fitted_cell fitted[] = {
    {DMG_LINK_READ_LATENCY, {DMG_OPERATION_READ, SMALL_BYTES, 1, 1, 0}, false},
    {DMG_LINK_WRITE_LATENCY, {DMG_OPERATION_WRITE, SMALL_BYTES, 1, 1, 0}, false},
    {DMG_LINK_ATOMIC_LATENCY, {DMG_OPERATION_FAA, SMALL_BYTES, 1, 1, 0}, false},
    {DMG_LINK_MESSAGE_LATENCY, {DMG_OPERATION_MESSAGE, SMALL_BYTES, 1, 1, 0}, false},
    {DMG_LINK_READ_BANDWIDTH, {DMG_OPERATION_READ, BULK_BYTES, BULK_DEPTH, 1, 0}, true},
    {DMG_LINK_WRITE_BANDWIDTH, {DMG_OPERATION_WRITE, BULK_BYTES, BULK_DEPTH, 1, 0}, true},
    {DMG_LINK_CHANNEL_READ_BANDWIDTH, {DMG_OPERATION_READ, BULK_BYTES, BULK_DEPTH, 1, 0}, false},
    {DMG_LINK_CHANNEL_WRITE_BANDWIDTH, {DMG_OPERATION_WRITE, BULK_BYTES, BULK_DEPTH, 1, 0}, false},
    {DMG_LINK_READ_RATE, {DMG_OPERATION_READ, SMALL_BYTES, RATE_DEPTH, 1, 0}, true},
    {DMG_LINK_WRITE_RATE, {DMG_OPERATION_WRITE, SMALL_BYTES, RATE_DEPTH, 1, 0}, true},
    {DMG_LINK_CHANNEL_RATE, {DMG_OPERATION_READ, SMALL_BYTES, RATE_DEPTH, 1, 0}, false},
    {DMG_LINK_ATOMIC_RATE, {DMG_OPERATION_FAA, SMALL_BYTES, RATE_DEPTH, 1, 0}, true},
    {DMG_LINK_CHANNEL_ATOMIC_RATE, {DMG_OPERATION_FAA, SMALL_BYTES, RATE_DEPTH, 1, 0}, false},
};

static double value_of(const fitted_cell *cell, const dmg_perf_result *result)
{
    double rate = result->seconds > 0 ? (double)result->operations / result->seconds : 0;
    if (cell->cell <= DMG_LINK_MESSAGE_LATENCY) {
        return result->median_ns;
    }
    return cell->cell <= DMG_LINK_CHANNEL_WRITE_BANDWIDTH ? rate * (double)cell->point.bytes / NANO : rate / MILLION;
}

static dmg_status check_latency(FILE *file, const dmg_perf_region *region, const dmg_perf_point *point,
                                const dmg_perf_result *result)
{
    dmg_perf_check check;
    dmg_status status = dmg_perf_check_result(region, point, result, &check);
    /* A median is the same whether the processor was away in between or not. */
    if (status == DMG_OK && check.verdict != DMG_PERF_AGREES && check.verdict != DMG_PERF_DISTURBED) {
        dmg_perf_report_check(stderr, "dmgraph: ", point, &check);
        dmg_perf_report_check(file, "# ", point, &check);
    }
    return status;
}

static dmg_status write_cells(FILE *file, const dmg_perf_region *region, const char *transport)
{
    char host[64] = "this machine";
    char day[32] = "";
    time_t now = time(NULL);
    struct tm local;
    gethostname(host, sizeof host - 1);
    strftime(day, sizeof day, "%Y-%m-%d", localtime_r(&now, &local));
    uint32_t flags = dmg_client_capabilities(region->client)->flags;
    fprintf(file,
            "# Written by dmgraph perf --fit\ntitle = %s of %s, measured on %s\ncoherence = %s\nline_bytes = %d\n",
            transport, host, day, flags & DMG_CAPABILITY_COHERENT ? "CPU coherent" : "by operations alone",
            flags & DMG_CAPABILITY_LOAD_STORE ? LINE_BYTES : 1);
    dmg_status status = DMG_OK;
    for (size_t i = 0; i < sizeof fitted / sizeof fitted[0] && status == DMG_OK; i++) {
        dmg_perf_point point = fitted[i].point;
        point.threads = fitted[i].is_of_all_cores ? dmg_topology_usable_cpus() : 1;
        dmg_perf_result result;
        status = dmg_perf_measure(region, &point, FIT_NS, &result);
        if (status == DMG_OK && dmg_perf_is_checked(&point)) {
            status = check_latency(file, region, &point, &result);
        }
        if (status == DMG_OK) {
            fprintf(file,
                    "%s = %.4f | measured by dmgraph perf on %s, %s: %s of %llu bytes, %u in flight, %u thread%s\n",
                    dmg_link_cell_name(fitted[i].cell), value_of(&fitted[i], &result), host, day,
                    dmg_perf_kind_name(point.kind), (unsigned long long)point.bytes, point.depth, point.threads,
                    point.threads == 1 ? "" : "s");
        }
    }
    return status;
}

dmg_status dmg_perf_fit(const dmg_perf_region *region, const char *transport, const char *path)
{
    struct stat facts;
    char *text = NULL;
    size_t bytes = 0;
    dmg_output_file *output = NULL;
    if (strcmp(path, "-") != 0 && stat(path, &facts) == 0 && S_ISREG(facts.st_mode)) {
        /* A profile is seldom made twice: another one is not replaced. */
        return dmg_error_errno(DMG_ERR_EXISTS, EEXIST, "creating %s", path);
    }
    dmg_status status = dmg_output_file_open(path, NULL, &output);
    FILE *file = status == DMG_OK ? open_memstream(&text, &bytes) : NULL;
    if (status == DMG_OK) {
        status = file ? write_cells(file, region, transport) : dmg_error(DMG_ERR_MEMORY, "no memory for a profile");
    }
    bool is_whole = file && !ferror(file);
    is_whole = file && fclose(file) == 0 && is_whole;
    if (status == DMG_OK) {
        status = is_whole ? dmg_output_file_write(output, text, bytes)
                          : dmg_error(DMG_ERR_MEMORY, "no memory for a profile");
    }
    if (status == DMG_OK) {
        status = dmg_output_file_commit(output);
    }
    free(text);
    dmg_output_file_close(output);
    return status;
}
