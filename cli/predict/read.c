/*
 * From the report of a run to what the model needs. Nothing in a report is trusted: it may come from anywhere.
 *
 * The first superstep is what the iterations' rows do not have: the start of the run, and the iterations beyond the
 * rows that are kept.
 */
#include "cli/options/link_options.h"
#include "core/base/error.h"
#include "model/predict_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MOST       1e18
#define NODES_MOST        4096
#define WORKERS_MOST      65536
#define STRETCHES_MOST    1000000
#define SHARES_MOST       (UINT64_C(1) << 22)
#define NANOSECONDS       1e9
#define ENTRY_BYTES_USUAL 32

/** Reading: the first thing that is wrong stays, and what follows counts for nothing. */
typedef struct reading {
    dmg_status status;
    uint64_t row; /* of the iterations; UINT64_MAX: elsewhere */
} reading;

static void wrong(reading *from, const char *what, const char *key)
{
    if (from->status != DMG_OK) {
        return;
    }
    if (from->row == UINT64_MAX) {
        from->status = dmg_error(DMG_ERR_FORMAT, "the run's report: '%s' %s", key, what);
    } else {
        from->status = dmg_error(DMG_ERR_FORMAT, "the run's report, iteration %llu: '%s' %s",
                                 (unsigned long long)from->row + 1, key, what);
    }
}

static double number_at(reading *from, const json_t *object, const char *key)
{
    const json_t *number = json_object_get(object, key);
    if (!number) {
        wrong(from, "is missing: it needs the output of 'dmgraph run ... --json' of this version", key);
        return 0;
    }
    if (!json_is_number(number)) {
        wrong(from, "is no number", key);
        return 0;
    }
    double value = json_number_value(number);
    if (!isfinite(value) || value < 0 || value > NUMBER_MOST) {
        wrong(from, value < 0 ? "is negative" : "is too large", key);
        return 0;
    }
    return value;
}

static uint32_t count_at(reading *from, const json_t *object, const char *key, uint32_t most)
{
    double value = number_at(from, object, key);
    if (from->status == DMG_OK && (value < 1 || value > most || value != floor(value))) {
        wrong(from, "is no number of nodes or threads that can be", key);
    }
    return from->status == DMG_OK ? (uint32_t)value : 1;
}

static const json_t *member(reading *from, const json_t *object, const char *key, bool is_array)
{
    const json_t *found = json_object_get(object, key);
    if (!found || (is_array ? !json_is_array(found) : !json_is_object(found))) {
        wrong(from, "is missing: it needs the output of 'dmgraph run ... --json' of this version", key);
    }
    return found;
}

/* ---- shares ---- */

/** Counters and times as they stand in the report: of all workers. */
typedef struct raw_share {
    dmg_predict_share share;
    double elapsed_ns, barrier_ns, wait_ns, modelled_ns;
} raw_share;

static void read_counters(reading *from, const json_t *counters, raw_share *raw)
{
    dmg_predict_share *share = &raw->share;
    for (int kind = 0; kind < DMG_OPERATION_KINDS && from->status == DMG_OK; kind++) {
        const json_t *of_kind = member(from, counters, dmg_operation_kind_name((dmg_operation_kind)kind), false);
        if (from->status == DMG_OK) {
            share->operations[kind] = number_at(from, of_kind, "operations");
            share->bytes[kind] = number_at(from, of_kind, "bytes");
            share->rounds[kind] = number_at(from, of_kind, "rounds");
            share->serial_rounds[kind] = number_at(from, of_kind, "serial_rounds");
        }
    }
    share->mapped_spans = number_at(from, counters, "in_place_spans");
    share->mapped_bytes = number_at(from, counters, "in_place_bytes");
    share->mapped_lines = number_at(from, counters, "in_place_lines");
    share->mapped_waits = number_at(from, counters, "in_place_waits");
    share->mapped_atomics = number_at(from, counters, "in_place_atomics");
    share->post_ns = number_at(from, counters, "post_ns");
    share->message_wait_ns = number_at(from, counters, "message_wait_ns");
    raw->wait_ns = number_at(from, counters, "wait_ns");
    raw->modelled_ns = number_at(from, counters, "modelled_ns");
}

/** sum += by x more, never below 0: figures of one run need not agree to the last nanosecond. */
static void add_raw(raw_share *sum, const raw_share *more, double by)
{
    double *const to[] = {&sum->elapsed_ns,         &sum->barrier_ns,          &sum->wait_ns,
                          &sum->modelled_ns,        &sum->share.post_ns,       &sum->share.message_wait_ns,
                          &sum->share.mapped_spans, &sum->share.mapped_bytes,  &sum->share.mapped_lines,
                          &sum->share.mapped_waits, &sum->share.mapped_atomics};
    const double from[] = {more->elapsed_ns,         more->barrier_ns,          more->wait_ns,
                           more->modelled_ns,        more->share.post_ns,       more->share.message_wait_ns,
                           more->share.mapped_spans, more->share.mapped_bytes,  more->share.mapped_lines,
                           more->share.mapped_waits, more->share.mapped_atomics};
    for (size_t i = 0; i < sizeof to / sizeof to[0]; i++) {
        *to[i] = fmax(0, *to[i] + by * from[i]);
    }
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        dmg_predict_share *share = &sum->share;
        share->operations[kind] = fmax(0, share->operations[kind] + by * more->share.operations[kind]);
        share->bytes[kind] = fmax(0, share->bytes[kind] + by * more->share.bytes[kind]);
        share->rounds[kind] = fmax(0, share->rounds[kind] + by * more->share.rounds[kind]);
        share->serial_rounds[kind] = fmax(0, share->serial_rounds[kind] + by * more->share.serial_rounds[kind]);
    }
}

/** From what all workers did to a share: barriers are taken out of the messages, and waits out of the time. */
static dmg_predict_share share_of(const raw_share *raw, double workers, double barriers)
{
    dmg_predict_share share = raw->share;
    double message = share.serial_rounds[DMG_OPERATION_MESSAGE];
    share.serial_rounds[DMG_OPERATION_MESSAGE] = fmax(0, message - barriers);
    share.rounds[DMG_OPERATION_MESSAGE] = fmax(0, share.rounds[DMG_OPERATION_MESSAGE] - barriers);
    share.message_wait_ns = fmax(0, share.message_wait_ns - raw->barrier_ns);
    double waited_ns = fmax(0, raw->wait_ns - raw->barrier_ns) / workers;
    share.barrier_ns = raw->barrier_ns;
    share.busy_ns = fmax(0, raw->elapsed_ns - raw->barrier_ns - waited_ns);
    share.post_ns /= workers;
    return share;
}

/* ---- supersteps ---- */

/** What the index of a pull iteration has for every compute node. */
static double index_bytes(reading *from, const json_t *report)
{
    const json_t *entry = json_object_get(json_object_get(report, "settings"), "index-entry-bytes");
    double entry_bytes = json_is_number(entry) ? json_number_value(entry) : ENTRY_BYTES_USUAL;
    double vertices = number_at(from, member(from, report, "graph", false), "vertices");
    return vertices * (entry_bytes > 0 && entry_bytes <= 4096 ? entry_bytes : ENTRY_BYTES_USUAL);
}

static void read_row(reading *from, const json_t *row, dmg_predict_run *run, dmg_predict_superstep *superstep,
                     raw_share *rests, double whole_bytes)
{
    const json_t *nodes = json_object_get(row, "compute_nodes");
    bool has_nodes = json_array_size(nodes) == run->cns;
    const char *direction = json_string_value(json_object_get(row, "direction"));
    superstep->barriers = number_at(from, row, "barriers");
    superstep->lone_workers = run->workers;
    superstep->whole_bytes = direction && strcmp(direction, "pull") == 0 ? whole_bytes : 0;
    run->has_node_rows &= has_nodes || run->cns == 1;
    for (uint32_t node = 0; node < run->cns && from->status == DMG_OK; node++) {
        raw_share raw = {0};
        const json_t *of = has_nodes ? json_array_get(nodes, node) : row;
        raw_share read = {.elapsed_ns = number_at(from, of, "elapsed_ns"),
                          .barrier_ns = number_at(from, of, "barrier_ns")};
        read_counters(from, member(from, of, "counters", false), &read);
        add_raw(&raw, &read, has_nodes ? 1 : 1.0 / run->cns);
        if (!has_nodes) {
            raw.elapsed_ns = read.elapsed_ns; /* the longest, and not a sum */
        }
        superstep->shares[node] = share_of(&raw, run->workers, run->cns > 1 ? superstep->barriers : 0);
        add_raw(&rests[node], &raw, -1);
    }
}

/** What each compute node did in the whole run. */
static void read_rests(reading *from, const json_t *nodes, raw_share *rests, double *barriers)
{
    for (size_t node = 0; node < json_array_size(nodes) && from->status == DMG_OK; node++) {
        const json_t *of = json_array_get(nodes, node);
        rests[node].elapsed_ns = number_at(from, of, "run_seconds") * NANOSECONDS;
        rests[node].barrier_ns = number_at(from, of, "barrier_seconds") * NANOSECONDS;
        read_counters(from, member(from, of, "run_operations", false), &rests[node]);
        *barriers = fmax(*barriers, number_at(from, of, "barriers"));
    }
}

static void read_supersteps(reading *from, const json_t *report, const json_t *nodes, dmg_predict_run *run,
                            raw_share *rests)
{
    const json_t *rows = json_object_get(report, "iterations");
    double whole_bytes = index_bytes(from, report);
    double barriers = 0;
    read_rests(from, nodes, rests, &barriers);
    for (uint32_t node = 0; node < run->cns; node++) {
        double took = rests[node].elapsed_ns + rests[node].modelled_ns / run->workers;
        run->measured_ns = fmax(run->measured_ns, took);
    }
    for (uint64_t i = 0; i < run->superstep_count; i++) {
        run->supersteps[i].shares = run->shares + i * run->cns;
    }
    for (uint64_t row = 0; row + 1 < run->superstep_count && from->status == DMG_OK; row++) {
        from->row = row;
        read_row(from, json_array_get(rows, row), run, &run->supersteps[row + 1], rests, whole_bytes);
        barriers -= run->supersteps[row + 1].barriers;
    }
    from->row = UINT64_MAX;
    dmg_predict_superstep *start = &run->supersteps[0];
    start->barriers = fmax(0, barriers);
    start->lone_workers = run->rows_missing > 0 ? run->workers : 1;
    for (uint32_t node = 0; node < run->cns; node++) {
        start->shares[node] = share_of(&rests[node], run->workers, run->cns > 1 ? start->barriers : 0);
    }
}

/* ---- all of it ---- */

static double largest_part(const double *of, size_t count)
{
    double sum = 0;
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        sum += of[i];
        most = fmax(most, of[i]);
    }
    return sum > 0 ? most / sum : 0;
}

/** The share of the traffic that the most loaded memory node has, by operations or by bytes. */
static double most_loaded(reading *from, const json_t *nodes, uint32_t mns)
{
    double *operations = calloc(2 * (size_t)mns, sizeof *operations);
    double *bytes = operations ? operations + mns : NULL;
    if (!operations) {
        from->status = dmg_error(DMG_ERR_MEMORY, "no memory to read a run's report");
        return 1;
    }
    for (size_t node = 0; node < json_array_size(nodes); node++) {
        const json_t *traffic = member(from, json_array_get(nodes, node), "traffic", true);
        for (size_t mn = 0; mn < json_array_size(traffic) && mn < mns; mn++) {
            const json_t *of = json_array_get(traffic, mn);
            operations[mn] += number_at(from, of, "operations");
            bytes[mn] += number_at(from, of, "read_bytes") + number_at(from, of, "write_bytes");
        }
    }
    double most = fmax(largest_part(operations, mns), largest_part(bytes, mns));
    free(operations);
    return most > 0 ? most : 1.0 / mns;
}

static void read_link(reading *from, const json_t *report, dmg_predict_run *run)
{
    const json_t *link = json_object_get(report, "emulated_link");
    if (from->status == DMG_OK && dmg_link_settings_from_json(link, &run->has_link, &run->ran_on) != DMG_OK) {
        wrong(from, "makes no sense", "emulated_link");
    }
    strcpy(run->link, run->has_link ? run->ran_on.name : "none");
}

static void make_room(reading *from, dmg_predict_run *run, raw_share **rests)
{
    if (from->status != DMG_OK) {
        return;
    }
    if (run->superstep_count * run->cns > SHARES_MOST) {
        wrong(from, "has too many rows", "iterations");
        return;
    }
    run->supersteps = calloc(run->superstep_count, sizeof *run->supersteps);
    run->shares = calloc(run->superstep_count * run->cns, sizeof *run->shares);
    *rests = calloc(run->cns, sizeof **rests);
    if (!run->supersteps || !run->shares || !*rests) {
        from->status = dmg_error(DMG_ERR_MEMORY, "no memory to read a run's report");
    }
}

dmg_status dmg_predict_run_read(const json_t *report, dmg_predict_run *run)
{
    *run = (dmg_predict_run){.has_node_rows = true};
    reading from = {.row = UINT64_MAX};
    const json_t *settings = member(&from, report, "settings", false);
    const json_t *rows = member(&from, report, "iterations", true);
    const json_t *all_nodes = member(&from, report, "nodes", false);
    const json_t *nodes = member(&from, all_nodes, "compute_nodes", true);
    size_t mns = json_array_size(member(&from, all_nodes, "memory_nodes", true));
    const char *algorithm = json_string_value(json_object_get(report, "algorithm"));
    if (from.status == DMG_OK && (mns == 0 || mns > NODES_MOST)) {
        wrong(&from, "is no number of memory nodes that can be", "memory_nodes");
    }
    if (from.status == DMG_OK && (json_array_size(nodes) == 0 || json_array_size(nodes) > NODES_MOST)) {
        wrong(&from, "is no number of compute nodes that can be", "compute_nodes");
    }
    if (from.status == DMG_OK && json_array_size(rows) >= STRETCHES_MOST) {
        wrong(&from, "has too many rows", "iterations");
    }
    snprintf(run->algorithm, sizeof run->algorithm, "%s", algorithm ? algorithm : "");
    run->mns = (uint32_t)mns;
    run->cns = (uint32_t)json_array_size(nodes);
    run->workers = count_at(&from, settings, "threads", WORKERS_MOST);
    run->superstep_count = json_array_size(rows) + 1;
    double iterations = number_at(&from, member(&from, report, "result", false), "iterations");
    run->rows_missing = iterations > (double)json_array_size(rows) ? (uint64_t)iterations - json_array_size(rows) : 0;
    read_link(&from, report, run);
    raw_share *rests = NULL;
    make_room(&from, run, &rests);
    if (from.status == DMG_OK) {
        run->most_loaded = most_loaded(&from, nodes, run->mns);
    }
    if (from.status == DMG_OK) {
        read_supersteps(&from, report, nodes, run, rests);
    }
    free(rests);
    if (from.status != DMG_OK) {
        dmg_predict_run_free(run);
    }
    return from.status;
}

void dmg_predict_run_free(dmg_predict_run *run)
{
    free(run->supersteps);
    free(run->shares);
    *run = (dmg_predict_run){0};
}
