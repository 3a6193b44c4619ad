#include "cli/run/run.h"

#include "cli/base/text.h"
#include "cli/run/systems.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define CACHE_LINE_BYTES   64
#define NANOSECONDS_SECOND 1e9
/** Nodes that get a line of their own each; more are summed up, so that the summary stays on a screen. */
#define NODE_LINES_MAX 4

/** What of an emulated link's time was only accounted for. */
static void print_link(FILE *to, const dmg_run_totals *totals)
{
    if (totals->modelled_seconds > 0) {
        fprintf(to,
                "           emulated link, accounted, not waited for: %s a worker, so the iterations would take about "
                "%s; links busy %s\n",
                dmg_text_seconds(totals->modelled_seconds).text,
                dmg_text_seconds(dmg_run_modelled_seconds(totals)).text, dmg_text_seconds(totals->busy_seconds).text);
    }
}

/** How compute nodes share the partitions, where that is not one each or several each. */
static void print_groups(FILE *to, const dmg_run *run)
{
    const dmg_groups groups = dmg_run_groups(run, 0);
    uint32_t members_min = run->cn_count / groups.group_count;
    if (dmg_number(run->settings, DMG_OPTION_CACHING) == DMG_CACHING_FULL) {
        fprintf(to, ", %s all attributes", run->cn_count == 1 ? "caching" : "each caching");
    } else if (groups.group_count > 1) {
        fprintf(to, " in %" PRIu32 " groups of ", groups.group_count);
        if (members_min < groups.members_max) {
            fprintf(to, "%" PRIu32 " or ", members_min);
        }
        fprintf(to, "%" PRIu32, groups.members_max);
    }
}

/** Where the memory nodes' segments lie, when somebody asked: nodes that got the same are named together. */
static void print_segments(FILE *to, const dmg_run *run)
{
    if (run->pool || !dmg_segments_are_special(run->settings)) {
        return;
    }
    bool are_equal = true;
    for (uint32_t node = 1; node < run->mn_count; node++) {
        const dmg_placement *a = &run->mns[0].placement, *b = &run->mns[node].placement;
        are_equal = are_equal && a->page_bytes == b->page_bytes && a->numa_node == b->numa_node;
    }
    for (uint32_t node = 0; node < (are_equal ? 1 : run->mn_count); node++) {
        fprintf(to, "           segment%s", run->mn_count > 1 && are_equal ? "s" : "");
        if (!are_equal) {
            fprintf(to, " of MN %" PRIu32, node);
        }
        fprintf(to, ": ");
        dmg_placement_print(to, &run->mns[node].placement);
        fputc('\n', to);
    }
}

/** Workers bound to cores, when somebody asked. */
static void print_pinning(FILE *to, const dmg_run *run)
{
    uint32_t pinned = 0;
    for (uint32_t rank = 0; rank < run->cn_count; rank++) {
        pinned += run->cns[rank].report.pinned_workers;
    }
    if (run->settings->values[DMG_OPTION_PIN_THREADS].is_given) {
        fprintf(to, ", %" PRIu32 " of %" PRIu32 " bound to a core", pinned, run->cn_count * run->threads);
    }
}

static void print_nodes(FILE *to, const dmg_run *run, const dmg_run_totals *totals)
{
    char capabilities[128];
    dmg_capabilities_text(run->capabilities.flags, capabilities, sizeof capabilities);
    fprintf(to, "nodes      %" PRIu32 " memory node%s ", run->mn_count, run->mn_count == 1 ? "" : "s");
    if (run->pool) {
        fprintf(to, "in the pool %s", run->pool->file.name);
    } else {
        fprintf(to, "of %s", dmg_text_bytes(run->segment_bytes).text);
    }
    fprintf(to, ", %" PRIu32 " compute node%s of %" PRIu32 " thread%s", run->cn_count, run->cn_count == 1 ? "" : "s",
            run->threads, run->threads == 1 ? "" : "s");
    print_pinning(to, run);
    print_groups(to, run);
    fprintf(to, ", over %s\n", dmg_value_text(run->settings, DMG_OPTION_TRANSPORT));
    if (run->cns[0].report.chosen[0]) {
        fprintf(to, "           %s\n", run->cns[0].report.chosen);
    }
    print_segments(to, run);
    print_link(to, totals);
    fprintf(to, "           capabilities: %s; atomics by %s\n", capabilities,
            dmg_atomics_name(run->capabilities.atomics));
}

static void print_result(FILE *to, const dmg_run *run)
{
    const dmg_graph *graph = &run->source.graph;
    fprintf(to, "result     %s", run->algorithm->name);
    if (dmg_algorithm_takes(run->algorithm, DMG_TAKES_SOURCE) && run->parameters.source < graph->vertex_count) {
        fprintf(to, " from %" PRIu64 "%s", dmg_graph_id(graph, run->parameters.source),
                run->source_was_chosen ? " (--source was not given: the smallest id with an arc out)" : "");
    }
    if (run->weights_are_missing) {
        fprintf(to, " (no weights: each arc counts 1)");
    }
    if (run->weights_are_lost) {
        fprintf(to, " (weights not used: each arc counts 1)");
    }
    fprintf(to, ": ");
    dmg_headline_print(to, run->headline);
}

/** How updates and segments went to other partitions, where they were batched. */
static void print_methods(FILE *to, const dmg_traffic *traffic)
{
    static const struct {
        dmg_update_method method;
        const char *sentence;
    } methods[] = {{DMG_UPDATE_DIRECT, "directly"},
                   {DMG_UPDATE_VALRD_NODE, "by value to memory nodes"},
                   {DMG_UPDATE_VALRD_OWNER, "by value to owners"},
                   {DMG_UPDATE_REFRD, "by reference"}};
    const char *before = "\n           passed on: ";
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        const dmg_passed *sent = &traffic->sent[methods[i].method];
        if (sent->items == 0) {
            continue;
        }
        fprintf(to, "%s%s %s", before, dmg_text_count(sent->items).text, methods[i].sentence);
        if (sent->buffers > 0) {
            fprintf(to, " (%s batches, %s)", dmg_text_count(sent->buffers).text, dmg_text_bytes(sent->bytes).text);
        }
        before = ", ";
    }
}

static void print_iterations(FILE *to, const dmg_run *run, const dmg_run_totals *totals)
{
    uint64_t pulls = 0;
    uint64_t sparse = 0;
    uint64_t arcs = 0;
    uint64_t local = 0;
    uint64_t remote = 0;
    dmg_traffic traffic = {0};
    for (uint64_t row = 0; row < run->iteration_rows; row++) {
        const dmg_iteration *iteration = &run->iterations[row];
        pulls += iteration->direction == DMG_DIRECTION_PULL;
        sparse += iteration->density == DMG_DENSITY_SPARSE;
        arcs += iteration->arcs;
        local += iteration->updates_local;
        remote += iteration->updates_remote;
        dmg_traffic_add(&traffic, &iteration->traffic);
    }
    const char *first = run->iteration_rows < run->iteration_count ? " in the first of them" : "";
    fprintf(to, "iterations %" PRIu64, run->iteration_count);
    if (totals->residual > 0) {
        fprintf(to, ", last change %.2e", totals->residual);
    }
    if (run->iteration_rows > 0) {
        fprintf(to, "; %" PRIu64 " push and %" PRIu64 " pull, %" PRIu64 " dense and %" PRIu64 " sparse%s",
                run->iteration_rows - pulls, pulls, run->iteration_rows - sparse, sparse, first);
        fprintf(to, "\n           %s arcs walked; updates: %s local, %s remote; %s segments passed by reference",
                dmg_text_count(arcs).text, dmg_text_count(local).text, dmg_text_count(remote).text,
                dmg_text_count(traffic.sent[DMG_UPDATE_REFRD].items).text);
        print_methods(to, &traffic);
    }
    fputc('\n', to);
}

static void print_times(FILE *to, const dmg_run *run, const dmg_run_totals *totals)
{
    const dmg_run_times *times = &run->times;
    fprintf(to, "time       %s in all: read %s, start nodes %s, load %s, run %s, result %s",
            dmg_text_seconds(times->total).text, dmg_text_seconds(times->read).text,
            dmg_text_seconds(times->start).text, dmg_text_seconds(times->load).text, dmg_text_seconds(times->run).text,
            dmg_text_seconds(times->result).text);
    if (run->is_verified) {
        fprintf(to, ", verify %s", dmg_text_seconds(times->verify).text);
    }
    double wait = totals->barrier_seconds + totals->wait_seconds;
    fprintf(to, "\n           iterations %s: compute %s, wait in barriers %s, wait for operations %s\n",
            dmg_text_seconds(totals->run_seconds).text,
            dmg_text_seconds(totals->run_seconds > wait ? totals->run_seconds - wait : 0).text,
            dmg_text_seconds(totals->barrier_seconds).text, dmg_text_seconds(totals->wait_seconds).text);
}

dmg_run_loading dmg_run_loading_speed(const dmg_run *run)
{
    double megabytes = (double)run->source.report.file_bytes / 1e6;
    dmg_run_loading loading = {.read_mb_s = run->times.read > 0 ? megabytes / run->times.read : 0};
    for (uint32_t rank = 0; rank < run->cn_count; rank++) {
        double seconds = (double)run->cns[rank].report.load_ns / NANOSECONDS_SECOND;
        loading.load_seconds = seconds > loading.load_seconds ? seconds : loading.load_seconds;
    }
    loading.load_mb_s = loading.load_seconds > 0 ? megabytes / loading.load_seconds : 0;
    return loading;
}

void dmg_run_print_loading(FILE *to, const dmg_run *run)
{
    const dmg_pool_report *report = &run->cns[0].report.pool;
    dmg_run_loading loading = dmg_run_loading_speed(run);
    fprintf(to, "loading    ");
    if (run->source.report.file_bytes > 0) {
        fprintf(to, "%s of file: read at %.0f MB/s, into the pool at %.0f MB/s; ",
                dmg_text_bytes(run->source.report.file_bytes).text, loading.read_mb_s, loading.load_mb_s);
    }
    fprintf(to, "%" PRIu32 " partition%s", run->partitions, run->partitions == 1 ? "" : "s");
    fprintf(to, " of %s tiny-chunks cut in %s, the dearest at %.2f of the mean\n",
            dmg_text_count(report->tiny_chunk_count).text,
            dmg_text_seconds((double)report->partition_ns / NANOSECONDS_SECOND).text, report->partition_imbalance);
}

/** One cell of the table of operations: how many, and how many bytes. */
static void print_cell(FILE *to, uint64_t operations, uint64_t bytes, double share)
{
    char cell[2 * sizeof(dmg_text) + 4];
    if (operations == 0) {
        snprintf(cell, sizeof cell, "-");
    } else {
        snprintf(cell, sizeof cell, "%s (%s)", dmg_text_count((uint64_t)llround((double)operations * share)).text,
                 dmg_text_bytes((uint64_t)llround((double)bytes * share)).text);
    }
    fprintf(to, " %24s", cell);
}

static void print_operations_line(FILE *to, const dmg_run *run, const char *name, const uint64_t load[2],
                                  const uint64_t in_run[2])
{
    if (load[0] == 0 && in_run[0] == 0) {
        return;
    }
    fprintf(to, "           %-13s", name);
    print_cell(to, load[0], load[1], 1);
    print_cell(to, in_run[0], in_run[1], 1);
    print_cell(to, in_run[0], in_run[1], run->iteration_count > 0 ? 1 / (double)run->iteration_count : 0);
    fputc('\n', to);
}

/* Cache lines that software kept coherent. */
static void print_lines_line(FILE *to, const dmg_run *run, const char *name, uint64_t load, uint64_t in_run)
{
    print_operations_line(to, run, name, (uint64_t[]){load, load * CACHE_LINE_BYTES},
                          (uint64_t[]){in_run, in_run * CACHE_LINE_BYTES});
}

static void print_operations(FILE *to, const dmg_run *run, const dmg_run_totals *totals)
{
    const dmg_counters *load = &totals->load;
    const dmg_counters *in_run = &totals->run;
    fprintf(to, "operations %-13s %24s %24s %24s\n", "(and bytes)", "load", "run", "an iteration");
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        print_operations_line(to, run, dmg_operation_kind_name((dmg_operation_kind)kind),
                              (uint64_t[]){load->operations[kind], load->bytes[kind]},
                              (uint64_t[]){in_run->operations[kind], in_run->bytes[kind]});
    }
    print_operations_line(to, run, "mapped spans", (uint64_t[]){load->mapped_spans, load->mapped_bytes},
                          (uint64_t[]){in_run->mapped_spans, in_run->mapped_bytes});
    print_lines_line(to, run, "written back", load->lines_written_back, in_run->lines_written_back);
    print_lines_line(to, run, "invalidated", load->lines_invalidated, in_run->lines_invalidated);
}

static void print_caches(FILE *to, const dmg_run *run)
{
    for (uint32_t rank = 0; rank < run->cn_count && rank < NODE_LINES_MAX; rank++) {
        const dmg_node_report *report = &run->cns[rank].report;
        fprintf(to, "%-10s CN %" PRIu32 ": %s of %s", rank ? "" : "cache", rank,
                dmg_text_bytes(report->budget_peak_bytes).text,
                report->budget_limit_bytes ? dmg_text_bytes(report->budget_limit_bytes).text : "no limit");
        const char *separator = " (";
        for (int purpose = 0; purpose < DMG_BUDGET_PURPOSES; purpose++) {
            if (report->purpose_peak_bytes[purpose] > 0) {
                fprintf(to, "%s%s %s", separator, dmg_budget_purpose_name((dmg_budget_purpose)purpose),
                        dmg_text_bytes(report->purpose_peak_bytes[purpose]).text);
                separator = ", ";
            }
        }
        fprintf(to, "%s\n", separator[0] == ',' ? ")" : "");
    }
    if (run->cn_count > NODE_LINES_MAX) {
        uint64_t most = 0;
        for (uint32_t rank = NODE_LINES_MAX; rank < run->cn_count; rank++) {
            uint64_t peak = run->cns[rank].report.budget_peak_bytes;
            most = peak > most ? peak : most;
        }
        fprintf(to, "           %" PRIu32 " more: at most %s\n", run->cn_count - NODE_LINES_MAX,
                dmg_text_bytes(most).text);
    }
}

static void print_memory(FILE *to, const dmg_run *run)
{
    fprintf(to, "memory    ");
    for (uint32_t node = 0; node < run->mn_count; node++) {
        const dmg_run_memory_node *mn = &run->mns[node];
        fprintf(to, "%s MN %" PRIu32 ": %s", node ? "," : "", node, dmg_text_bytes(mn->peak_bytes).text);
        if (run->pool) {
            fprintf(to, " of %s", dmg_text_bytes(mn->segment_bytes).text);
        }
    }
    if (run->pool) {
        fprintf(to, " at most since the pool began\n");
        return;
    }
    fprintf(to, " of %s%s\n", dmg_text_bytes(run->segment_bytes).text, run->mn_count > 1 ? " each" : "");
}

/** What the memory nodes' processors did in the run. */
static void print_memory_node_work(FILE *to, const dmg_run *run, const dmg_run_totals *totals)
{
    for (uint32_t node = 0; node < run->mn_count && node < NODE_LINES_MAX; node++) {
        const dmg_node_activity *activity = &run->cns[0].report.pool.memory_nodes[node].run;
        double serve = (double)activity->serve_cpu_ns / NANOSECONDS_SECOND;
        double offload = (double)activity->offload_cpu_ns / NANOSECONDS_SECOND;
        fprintf(to, "%-10s MN %" PRIu32 ": CPU %s serving, %s applying", node ? "" : "offload", node,
                dmg_text_seconds(serve).text, dmg_text_seconds(offload).text);
        if (totals->run_seconds > 0) {
            fprintf(to, " (%.1f %% of a core)", 100 * offload / totals->run_seconds);
        }
        fprintf(to, ": %s updates in %s of %s messages\n", dmg_text_count(activity->updates).text,
                dmg_text_count(activity->update_messages).text, dmg_text_count(activity->messages).text);
    }
}

void dmg_run_print_summary(FILE *to, const dmg_run *run)
{
    dmg_run_totals totals = dmg_run_total(run);
    if (run->pool) {
        dmg_run_pool_print_graph(to, run);
    } else {
        dmg_graph_source_print(to, run->path, &run->source);
    }
    print_nodes(to, run, &totals);
    dmg_system_print(to, run->settings);
    dmg_run_print_loading(to, run);
    print_result(to, run);
    print_iterations(to, run, &totals);
    print_times(to, run, &totals);
    dmg_work_balance_print(to, &totals.balance);
    print_operations(to, run, &totals);
    print_caches(to, run);
    print_memory(to, run);
    print_memory_node_work(to, run, &totals);
    if (run->is_verified) {
        fprintf(to, "verified   all %s values agree with a serial computation\n",
                dmg_text_count(run->source.graph.vertex_count).text);
    }
    const char *output = dmg_value_text(run->settings, DMG_OPTION_OUTPUT);
    if (output && strcmp(output, "-") != 0) {
        fprintf(to, "output     %s (%s)\n", output, run->algorithm->columns);
    }
}

void dmg_run_print_table(FILE *to, const dmg_run *run)
{
    fprintf(to, "%9s %-9s %-7s %13s %15s %15s %15s %12s %10s %10s %12s %12s %10s\n", "iteration", "direction",
            "density", "active", "arcs", "local", "remote", "references", "time", "barriers", "operations", "bytes",
            "mapped");
    for (uint64_t row = 0; row < run->iteration_rows; row++) {
        const dmg_iteration *iteration = &run->iterations[row];
        uint64_t operations = 0;
        uint64_t bytes = 0;
        for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
            operations += iteration->counters.operations[kind];
            bytes += iteration->counters.bytes[kind];
        }
        dmg_text elapsed = dmg_text_seconds((double)iteration->elapsed_ns / NANOSECONDS_SECOND);
        dmg_text barriers = dmg_text_seconds((double)iteration->barrier_ns / NANOSECONDS_SECOND / run->cn_count);
        fprintf(to, "%9" PRIu64 " %-9s %-7s %13s %15s %15s %15s %12s %*s %*s %12s %12s %10s\n", row + 1,
                dmg_direction_name(iteration->direction), dmg_density_name(iteration->density),
                dmg_text_count(iteration->active_vertices).text, dmg_text_count(iteration->arcs).text,
                dmg_text_count(iteration->updates_local).text, dmg_text_count(iteration->updates_remote).text,
                dmg_text_count(iteration->references).text, dmg_text_width(elapsed.text, 10), elapsed.text,
                dmg_text_width(barriers.text, 10), barriers.text, dmg_text_count(operations).text,
                dmg_text_bytes(bytes).text, dmg_text_bytes(iteration->counters.mapped_bytes).text);
    }
    if (run->iteration_rows < run->iteration_count) {
        fprintf(to, "%9s the last %" PRIu64 " iterations have no rows\n", "",
                run->iteration_count - run->iteration_rows);
    }
    fputc('\n', to);
}
