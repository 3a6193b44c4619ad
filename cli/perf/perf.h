/**
 * @file perf.h
 * Measuring transports and emulated links. The parts are
 *
 *     command_perf.c     the settings, and the course of a measurement
 *     perf_pool.c        a memory node of our own
 *     perf_measure.c     operations in flight, and how long each took
 *     perf_histogram.c   latencies
 *     perf_host.c        what a lone operation takes here, as the self-test and the check have it
 *     perf_check.c       the check: p50, 1/rate and the self-test's figure agree
 *     perf_report.c      results as a table, CSV and JSON
 *     perf_calibrate.c   the self-test of the link model
 *     perf_fit.c         a link profile from a measurement
 */
#ifndef DMG_CLI_PERF_PERF_H
#define DMG_CLI_PERF_PERF_H

#include "cli/launcher/launcher.h"
#include "cli/options/options.h"
#include "cli/perf/check.h"
#include "core/pool/rights.h"
#include "transport/link_verdict.h"
#include "transport/transport.h"

#include <stdatomic.h>

/* ---- a memory node ---- */

typedef struct dmg_perf_pool {
    const dmg_settings *settings;
    uint32_t threads; /**< that measure at the same time, at most */
    dmg_launcher *launcher;
    dmg_child *child;
    uint8_t token[DMG_TOKEN_BYTES];
    uint8_t admin[DMG_SECRET_BYTES];
    char address[DMG_ADDRESS_STRING_BYTES];
    dmg_placement placement; /**< what its segment got */
} dmg_perf_pool;

/** Bytes of the memory that is measured: more than the caches near a core hold. */
#define DMG_PERF_REGION_BYTES (UINT64_C(64) << 20)
/** The same for the self-test, which is about the link and not about this machine's memory. */
#define DMG_PERF_CALIBRATION_BYTES (UINT64_C(8) << 20)

/** Start it as a child process, and wait for its address. Call from the main thread. */
dmg_status dmg_perf_pool_start(dmg_perf_pool *pool);
/** Connect; `link` may be NULL. */
dmg_status dmg_perf_pool_connect(const dmg_perf_pool *pool, const dmg_link_settings *link, dmg_client **client);

/* ---- a measurement ---- */

/** A kind of operation, or a read in place. */
#define DMG_PERF_LOAD  DMG_OPERATION_KINDS
#define DMG_PERF_KINDS (DMG_OPERATION_KINDS + 1)
const char *dmg_perf_kind_name(int kind);

typedef struct dmg_perf_point {
    int kind;
    uint64_t bytes;
    uint32_t depth; /**< in flight a thread */
    uint32_t threads;
    uint64_t pause_ns; /**< between an operation's end and the next post; 0: none */
} dmg_perf_point;

/** The measured memory, allocated in the pool; a client of another link uses it by a copy with its own name in it. */
typedef struct dmg_perf_region {
    dmg_client *client;
    dmg_address start;
    uint64_t bytes;
    /** An emulated link, which holds operations back: what a thread does between two of them is in the link's time. */
    bool is_held_back;
} dmg_perf_region;

/** Whether a link does that; NULL is none. */
static inline bool dmg_perf_holds_back(const dmg_link_settings *link)
{
    return link && link->cells[DMG_LINK_READ_LATENCY] > 0;
}

dmg_status dmg_perf_region_allocate(dmg_client *client, uint64_t bytes, dmg_perf_region *region);
/** Have all its pages mapped in this client: a first touch takes longer than any link. */
dmg_status dmg_perf_region_load(const dmg_perf_region *region);

#define DMG_PERF_QUANTILES 17

typedef struct dmg_perf_result {
    uint64_t operations; /**< that the rate is of */
    double seconds;      /**< that they took */
    double least_ns, median_ns, p99_ns, p999_ns;
    double quantiles_ns[DMG_PERF_QUANTILES]; /**< of dmg_perf_quantile_parts */
    /* Of one thread with a depth of 1: medians of its short windows in which it kept its processor. */
    double clean_rate_ns, clean_mean_ns;
    uint32_t clean_windows, windows;
    double step_ns; /**< of the clock */
} dmg_perf_result;

/** Which parts of all operations the quantiles are of, ascending: enough to draw a distribution and its tail. */
extern const double dmg_perf_quantile_parts[DMG_PERF_QUANTILES];

/**
 * Run all threads of the point for the duration. With a depth of 1, latencies and the rate come from windows of their
 * own, in turns: operations that are timed one by one, and chains of which only the ends are. DMG_ERR_UNSUPPORTED for
 * touch without LOAD_STORE.
 */
dmg_status dmg_perf_measure(const dmg_perf_region *region, const dmg_perf_point *point, uint64_t duration_ns,
                            dmg_perf_result *result);

/**
 * Run short windows of one thread until `wanted` are clean or as many as fit have been run. Their values: with a depth
 * above 1, operations a second; else the median time of an operation. Over a link that holds operations back, and
 * without pauses, that is a turn of the loop, since such a link counts from the end of the one before.
 */
dmg_status dmg_perf_measure_windows(const dmg_perf_region *region, const dmg_perf_point *point, uint32_t wanted,
                                    dmg_link_window windows[DMG_LINK_WINDOWS_MAX], uint32_t *count);

/* ---- the check ---- */

/** What an operation takes on this host, nanoseconds or operations a second: the best of some windows. */
dmg_status dmg_perf_host(const dmg_perf_region *region, const dmg_perf_point *point, double *value);

/** A point that was checked, and what came out. */
typedef struct dmg_perf_check {
    dmg_perf_figures figures;
    dmg_perf_verdict verdict;
} dmg_perf_check;

/** Whether the check is about such points: one thread, one operation after the other. */
bool dmg_perf_is_checked(const dmg_perf_point *point);
/** Hold a result of such a point against the self-test's figure, which is measured here. */
dmg_status dmg_perf_check_result(const dmg_perf_region *region, const dmg_perf_point *point,
                                 const dmg_perf_result *result, dmg_perf_check *check);

/* ---- reports ---- */

typedef enum dmg_perf_format { DMG_PERF_TABLE, DMG_PERF_CSV, DMG_PERF_JSON } dmg_perf_format;

typedef struct dmg_perf_report {
    dmg_perf_format format;
    const char *transport;
    const char *link;   /**< the emulated link's name, or "none" */
    const char *chosen; /**< what carries data, and what is emulated */
    const dmg_placement *placement;
    json_t *rows; /**< of JSON */
    uint32_t verdicts[DMG_PERF_VERDICTS];
} dmg_perf_report;

void dmg_perf_report_begin(dmg_perf_report *report);
/**
 * `check` is NULL where the check is not about the point. What does not agree gets a line, on the standard error where
 * a program reads the standard output. DMG_ERR_IO when the row cannot be written: further ones need not be measured.
 */
dmg_status dmg_perf_report_row(dmg_perf_report *report, const dmg_perf_point *point, const dmg_perf_result *result,
                               const dmg_perf_check *check);
void dmg_perf_report_end(dmg_perf_report *report);
/** One line, for a point that does not agree: its operation, and the sentence of perf_check.h. */
void dmg_perf_report_check(FILE *to, const char *begin, const dmg_perf_point *point, const dmg_perf_check *check);

/* ---- a profile ---- */

/** Measure every cell of a link profile, and write one. DMG_ERR_EXISTS when the file is there already. */
dmg_status dmg_perf_fit(const dmg_perf_region *region, const char *transport, const char *path);

/* ---- the self-test ---- */

/**
 * Prove each cell of the profiles on this machine, and print a line for each.
 *
 * @param[out] is_proven  no cell failed, and the self-test noticed the links that were wrong on purpose
 */
dmg_status dmg_perf_calibrate(const dmg_perf_pool *pool, const dmg_link_profile *profiles, size_t count,
                              dmg_perf_format format, bool *is_proven);

#endif
