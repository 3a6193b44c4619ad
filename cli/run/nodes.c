#include "cli/run/run.h"

#include "cli/base/descriptors.h"
#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/launcher/control.h"
#include "cli/options/engine_options.h"
#include "cli/options/link_options.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/pool/token.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
/** Of all compute nodes together: some 50 MB. */
#define NODE_ROWS_MAX 65536

dmg_groups dmg_run_groups(const dmg_run *run, uint32_t rank)
{
    return dmg_groups_of(rank, run->cn_count, run->partitions,
                         (dmg_caching)dmg_number(run->settings, DMG_OPTION_CACHING));
}

/*
 * What compute nodes leave for each other in the pool: of the arcs in an iteration about a third leave a partition by
 * value, and a round of the largest buffers is larger than this for a pair. With less they exchange more often.
 */
#define PASSED_ON_BYTES_AN_ARC 4
#define PASSED_ON_BYTES_A_PAIR (16 * MIB)
#define DIRECTORY_BYTES        (16 * UINT64_C(1024))

/* ---- how much memory ---- */

/** The most that one batch's lists take: batches are dealt out whole, so a node may get this much more than its share.
 */
static uint64_t largest_batch_bytes(const dmg_adjacency *lists, uint64_t vertex_count, uint64_t edge_bytes)
{
    uint64_t largest = 0;
    for (uint64_t first = 0; first < vertex_count; first += DMG_STORE_BATCH_VERTICES) {
        uint64_t end =
            first + DMG_STORE_BATCH_VERTICES < vertex_count ? first + DMG_STORE_BATCH_VERTICES : vertex_count;
        uint64_t bytes = (lists->offsets[end] - lists->offsets[first]) * edge_bytes;
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

dmg_store_options dmg_run_store_options(const dmg_run *run)
{
    return (dmg_store_options){.entry_bytes = UINT32_C(16) << dmg_number(run->settings, DMG_OPTION_INDEX_ENTRY_BYTES),
                               .partition_count = run->partitions,
                               .without_embedding = dmg_number(run->settings, DMG_OPTION_EMBED) == DMG_SWITCH_OFF,
                               .tiny_chunks = (uint32_t)dmg_number(run->settings, DMG_OPTION_TINY_CHUNKS),
                               .with_out = true,
                               .with_in = run->with_in};
}

uint64_t dmg_run_segment_bytes(const dmg_run *run)
{
    if (dmg_has(run->settings, DMG_OPTION_MEMORY)) {
        return dmg_number(run->settings, DMG_OPTION_MEMORY);
    }
    const dmg_graph *graph = &run->source.graph;
    dmg_store_options options = dmg_run_store_options(run);
    /* Current and next attributes, bitmaps, and what else a run keeps a vertex; then what each worker may ask for, and
     * what the allocator rounds. Generous, but not lavish: untouched memory costs nothing in one backend, and is zeroed
     * at the start in another. */
    uint64_t graph_bytes = dmg_graph_store_bytes(graph, &options);
    const dmg_groups groups = dmg_run_groups(run, 0);
    uint64_t arrays = 3 + (uint64_t)dmg_groups_arrays(&groups);
    uint64_t run_bytes = graph->vertex_count * (arrays * run->algorithm->value_bytes + 16);
    uint64_t share = (graph_bytes + run_bytes) / run->mn_count;
    uint64_t pairs = (uint64_t)run->cn_count * (run->cn_count - 1);
    uint64_t passed_on = graph->arc_count * PASSED_ON_BYTES_AN_ARC;
    uint64_t room = pairs * PASSED_ON_BYTES_A_PAIR;
    share += (pairs * 2 * DIRECTORY_BYTES + (passed_on < room ? passed_on : room)) / run->mn_count;
    uint64_t bytes = share + share / 4 + largest_batch_bytes(&graph->out, graph->vertex_count, 8) +
                     (uint64_t)run->cn_count * run->threads * MIB + 8 * MIB;
    if (run->with_in && dmg_graph_in(graph)) {
        bytes += largest_batch_bytes(dmg_graph_in(graph), graph->vertex_count, 8);
    }
    return (bytes + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

/* ---- what the nodes say ---- */

static dmg_status take_address(dmg_run *run, const dmg_child *child, json_t *message)
{
    const char *address = NULL;
    dmg_status status = dmg_control_unpack(message, "{s:s}", "address", &address);
    if (status == DMG_OK && (!*address || strlen(address) >= DMG_ADDRESS_STRING_BYTES)) {
        status = dmg_error(DMG_ERR_PROTOCOL, "memory node %" PRIu32 " gave an impossible address", child->index);
    }
    if (status == DMG_OK) {
        memcpy(run->mns[child->index].address, address, strlen(address) + 1);
        status = dmg_placement_from_json(json_object_get(message, "segment"), &run->mns[child->index].placement);
    }
    return status;
}

static dmg_status take_usage(dmg_run *run, const dmg_child *child, json_t *message)
{
    json_int_t peak_bytes = 0;
    dmg_status status = dmg_control_unpack(message, "{s:I}", "peak_bytes", &peak_bytes);
    run->mns[child->index].peak_bytes = (uint64_t)peak_bytes;
    return status;
}

static dmg_status make_room_for_rows(dmg_run *run, uint64_t count)
{
    if (count <= run->iteration_rows) {
        return DMG_OK;
    }
    if (count > DMG_ITERATION_ROWS_MAX) {
        return dmg_error(DMG_ERR_PROTOCOL, "a compute node reports more iterations than are kept");
    }
    dmg_iteration *rows = realloc(run->iterations, count * sizeof *rows);
    if (!rows) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the table of iterations");
    }
    memset(rows + run->iteration_rows, 0, (count - run->iteration_rows) * sizeof *rows);
    run->iterations = rows;
    run->iteration_rows = count;
    return DMG_OK;
}

/** Rows of single compute nodes are kept where there are several, as long as they are not too many. */
static dmg_status keep_row(const dmg_run *run, dmg_run_compute_node *node, uint64_t index, const dmg_iteration *row)
{
    if (run->cn_count == 1 || index != node->row_count || index >= NODE_ROWS_MAX / run->cn_count) {
        return DMG_OK;
    }
    if (node->row_count == node->row_capacity) {
        uint64_t capacity = node->row_capacity ? 2 * node->row_capacity : DMG_REPORT_ROWS;
        dmg_iteration *rows = realloc(node->rows, capacity * sizeof *rows);
        if (!rows) {
            return dmg_error(DMG_ERR_MEMORY, "no memory for the iterations of a compute node");
        }
        node->rows = rows;
        node->row_capacity = capacity;
    }
    node->rows[node->row_count++] = *row;
    return DMG_OK;
}

/** Add one rank's rows to the table. */
static dmg_status take_iterations(dmg_run *run, const dmg_child *child, json_t *message)
{
    json_int_t first = 0;
    json_t *rows = NULL;
    dmg_status status = dmg_control_unpack(message, "{s:I, s:o}", "first", &first, "rows", &rows);
    size_t count = json_array_size(rows);
    if (status == DMG_OK && (first < 0 || first > DMG_ITERATION_ROWS_MAX)) {
        status = dmg_error(DMG_ERR_PROTOCOL, "a compute node reports an impossible iteration");
    }
    if (status == DMG_OK) {
        status = make_room_for_rows(run, (uint64_t)first + count);
    }
    for (size_t index = 0; index < count && status == DMG_OK; index++) {
        dmg_iteration row;
        status = dmg_iteration_from_json(json_array_get(rows, index), &row);
        if (status != DMG_OK) {
            break;
        }
        dmg_iteration *sum = &run->iterations[(uint64_t)first + index];
        sum->direction = row.direction;
        sum->density = row.density;
        sum->active_vertices = row.active_vertices;
        sum->arcs += row.arcs;
        sum->updates_local += row.updates_local;
        sum->updates_remote += row.updates_remote;
        sum->references += row.references;
        dmg_iteration_work_add(sum, &row);
        dmg_traffic_add(&sum->traffic, &row.traffic);
        sum->elapsed_ns = row.elapsed_ns > sum->elapsed_ns ? row.elapsed_ns : sum->elapsed_ns;
        sum->barrier_ns += row.barrier_ns;
        sum->barriers = row.barriers > sum->barriers ? row.barriers : sum->barriers;
        dmg_counters_add(&sum->counters, &row.counters);
        status = keep_row(run, &run->cns[child->index], (uint64_t)first + index, &row);
    }
    return status;
}

static dmg_status take_report(dmg_run *run, const dmg_child *child, json_t *message)
{
    dmg_run_compute_node *node = &run->cns[child->index];
    dmg_status status = dmg_node_report_from_json(message, &node->report);
    if (status == DMG_OK) {
        node->has_report = true;
        run->iteration_count =
            node->report.iteration_count > run->iteration_count ? node->report.iteration_count : run->iteration_count;
    }
    return status;
}

void dmg_run_free_rows(dmg_run *run)
{
    free(run->iterations);
    for (uint32_t rank = 0; rank < run->cn_count; rank++) {
        free(run->cns[rank].rows);
    }
}

/** Where the compute nodes are, all together. */
static void show_progress(dmg_run *run)
{
    uint64_t arcs = 0;
    uint32_t iteration = 0;
    dmg_phase phase = DMG_PHASES;
    for (uint32_t rank = 0; rank < run->cn_count; rank++) {
        const dmg_child *child = run->cns[rank].child;
        if (!child) {
            return;
        }
        arcs += child->arcs;
        iteration = child->iteration > iteration ? child->iteration : iteration;
        phase = child->phase < phase ? child->phase : phase;
    }
    const dmg_graph *graph = &run->source.graph;
    if (phase == DMG_PHASE_LOAD) {
        bool is_twice = run->with_in && graph->is_directed;
        dmg_progress_bar_show(run->bar, "loading into the pool", arcs, graph->arc_count * (is_twice ? 2 : 1));
    } else if (phase == DMG_PHASE_RUN) {
        uint64_t wanted = run->parameters.iterations_max; /* 0 where they are not counted beforehand */
        dmg_progress_bar_show(run->bar, "iteration", iteration, wanted);
    }
}

static dmg_status take_message(void *context, dmg_child *child, json_t *message)
{
    dmg_run *run = context;
    const char *type = message ? dmg_control_type(message) : "";
    bool is_compute_node = child->kind == DMG_CHILD_COMPUTE_NODE;
    if (!message) {
        show_progress(run);
        return DMG_OK;
    }
    if (is_compute_node && strcmp(type, "iterations") == 0) {
        return take_iterations(run, child, message);
    }
    if (is_compute_node && strcmp(type, "result") == 0) {
        return take_report(run, child, message);
    }
    if (!is_compute_node && strcmp(type, "address") == 0) {
        return take_address(run, child, message);
    }
    if (!is_compute_node && strcmp(type, "usage") == 0) {
        return take_usage(run, child, message);
    }
    return dmg_error(DMG_ERR_PROTOCOL, "a node sent a control message '%s'", type);
}

/* ---- starting ---- */

dmg_status dmg_run_check_descriptors(const dmg_run *run)
{
    return dmg_descriptors_check_run(dmg_value_text(run->settings, DMG_OPTION_TRANSPORT), run->mn_count,
                                     run->pool != NULL, run->cn_count, run->threads);
}

static bool all_have_addresses(void *context)
{
    const dmg_run *run = context;
    for (uint32_t node = 0; node < run->mn_count; node++) {
        if (!run->mns[node].address[0]) {
            return false;
        }
    }
    return true;
}

static json_t *common_setup(const dmg_run *run)
{
    char token[DMG_TOKEN_TEXT_BYTES];
    dmg_token_write(run->token, token);
    json_t *setup = json_pack("{s:s, s:s, s:I, s:I}", "type", "setup", "token", token, "peer_timeout_ns",
                              (json_int_t)run->peer_timeout_ns, "log_level",
                              (json_int_t)dmg_number(run->settings, DMG_OPTION_LOG_LEVEL));
    json_object_set_new(setup, "transport", dmg_json_text(dmg_value_text(run->settings, DMG_OPTION_TRANSPORT)));
    return setup;
}

static json_t *memory_node_setup(const dmg_run *run, uint32_t node)
{
    json_t *setup = common_setup(run);
    const dmg_segment_options segment = dmg_segment_of_settings(run->settings, run->segment_bytes);
    char admin[DMG_SECRET_TEXT_BYTES];
    dmg_secret_write(run->admin, admin);
    json_object_set_new(setup, "admin", json_string(admin));
    json_object_set_new(setup, "node", json_integer((json_int_t)node));
    dmg_segment_put(setup, &segment);
    return setup;
}

void dmg_run_listen(dmg_run *run)
{
    dmg_launcher_listen(run->launcher, run->peer_timeout_ns, take_message, run);
}

dmg_status dmg_run_start_memory_nodes(dmg_run *run)
{
    uint64_t bytes[DMG_MEMORY_NODES_MAX];
    for (uint32_t node = 0; node < run->mn_count; node++) {
        bytes[node] = run->segment_bytes;
    }
    dmg_run_listen(run);
    dmg_status status = dmg_segments_check_room(run->settings, bytes, run->mn_count);
    if (status == DMG_OK) {
        status = dmg_token_make(run->token);
    }
    if (status == DMG_OK) {
        status = dmg_secret_make(run->admin);
    }
    for (uint32_t node = 0; node < run->mn_count && status == DMG_OK; node++) {
        status =
            dmg_launcher_start(run->launcher, DMG_CHILD_MEMORY_NODE, node, "memory-node", -1, &run->mns[node].child);
        if (status == DMG_OK) {
            run->mns[node].pid = run->mns[node].child->pid;
            run->mns[node].segment_bytes = run->segment_bytes;
            status = dmg_launcher_send(run->launcher, run->mns[node].child, memory_node_setup(run, node));
        }
    }
    if (status == DMG_OK) {
        status =
            dmg_segments_wait(run->launcher, run->segment_bytes * run->mn_count, run->bar, all_have_addresses, run);
    }
    for (uint32_t node = 0; node < run->mn_count && status == DMG_OK; node++) {
        dmg_segments_correct_settings(run->settings, &run->mns[node].placement);
    }
    return status;
}

static json_t *compute_node_setup(const dmg_run *run, uint32_t rank)
{
    dmg_engine_options engine = {.threads = run->threads};
    dmg_engine_options_from_settings(run->settings, &engine);
    const dmg_store_options store = dmg_run_store_options(run);
    json_t *setup = common_setup(run);
    json_t *addresses = json_array();
    for (uint32_t node = 0; node < run->mn_count; node++) {
        json_array_append_new(addresses, json_string(run->mns[node].address));
    }
    json_object_set_new(setup, "addresses", addresses);
    json_object_set_new(setup, "link", run->has_link ? dmg_link_settings_json(&run->link) : json_null());
    json_object_set_new(setup, "graph_name", dmg_json_text(dmg_graph_source_name(run->path)));
    json_object_set_new(setup, "algorithm", json_string(run->algorithm ? run->algorithm->name : ""));
    json_object_set_new(setup, "job", json_string(run->job_name));
    json_object_set_new(setup, "job_pass", dmg_job_pass_json(&run->job_pass));
    json_object_set_new(setup, "pool_graph", json_string(run->pool && run->algorithm ? run->path : ""));
    json_object_set_new(setup, "task", json_string(!run->algorithm ? "load" : run->pool ? "run" : "load and run"));
    json_object_set_new(setup, "weighted", json_boolean(run->is_weighted));
    json_object_set_new(setup, "with_in", json_boolean(store.with_in));
    json_object_set_new(setup, "embed", json_boolean(!store.without_embedding));
    json_object_set_new(setup, "engine", dmg_engine_options_json(&engine));
    json_object_set_new(setup, "tolerance", json_real(run->parameters.tolerance));
    json_object_set_new(setup, "damping", json_real(run->parameters.damping));
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {{"rank", rank},
                   {"size", run->cn_count},
                   {"partitions", store.partition_count},
                   {"index_entry_bytes", store.entry_bytes},
                   {"tiny_chunks", store.tiny_chunks},
                   {"source", run->parameters.source},
                   {"iterations", run->parameters.iterations_max}};
    for (size_t index = 0; index < sizeof numbers / sizeof numbers[0]; index++) {
        json_object_set_new(setup, numbers[index].name, json_integer((json_int_t)numbers[index].value));
    }
    return setup;
}

static bool all_have_phase(const dmg_run *run, dmg_phase phase)
{
    for (uint32_t rank = 0; rank < run->cn_count; rank++) {
        if (run->cns[rank].child->phase < phase) {
            return false;
        }
    }
    return true;
}

static bool all_load(void *context)
{
    return all_have_phase(context, DMG_PHASE_LOAD);
}

static bool all_run(void *context)
{
    return all_have_phase(context, DMG_PHASE_RUN);
}

static bool all_have_reported(void *context)
{
    const dmg_run *run = context;
    for (uint32_t rank = 0; rank < run->cn_count; rank++) {
        if (!run->cns[rank].has_report) {
            return false;
        }
    }
    return true;
}

/** Wait, and add the time that it took. */
static dmg_status wait_timed(dmg_run *run, bool (*is_done)(void *context), double *seconds)
{
    uint64_t started_ns = dmg_now_ns();
    dmg_status status = dmg_launcher_wait(run->launcher, is_done, run);
    *seconds += (double)(dmg_now_ns() - started_ns) / 1e9;
    return status;
}

/** The launcher's own hold on the pool: a memory node that died, or that gave the launcher up. */
static dmg_status look_at_pool(void *context)
{
    const dmg_pool_client *pool = ((const dmg_run *)context)->pool;
    dmg_status status = DMG_OK;
    for (uint32_t node = 0; node < pool->file.node_count && status == DMG_OK; node++) {
        status = dmg_client_node_status(pool->client, (uint16_t)node);
    }
    return status == DMG_OK ? DMG_OK
                            : dmg_error_prefix(status, "the launcher lost its hold on the pool %s", pool->file.name);
}

static dmg_status compute(dmg_run *run)
{
    dmg_status status = DMG_OK;
    for (uint32_t rank = 0; rank < run->cn_count && status == DMG_OK; rank++) {
        status = dmg_launcher_start(run->launcher, DMG_CHILD_COMPUTE_NODE, rank, "compute-node", run->source.file,
                                    &run->cns[rank].child);
        if (status == DMG_OK) {
            status = dmg_launcher_send(run->launcher, run->cns[rank].child, compute_node_setup(run, rank));
        }
    }
    if (status == DMG_OK) {
        status = wait_timed(run, all_load, &run->times.start);
    }
    if (status == DMG_OK) {
        status = wait_timed(run, all_run, &run->times.load);
    }
    if (status == DMG_OK) {
        status = wait_timed(run, all_have_reported, &run->times.run);
    }
    for (uint32_t rank = 0; rank < run->cn_count && status == DMG_OK; rank++) {
        if (run->cns[rank].report.pinned_workers < run->threads) {
            dmg_set_number(run->settings, DMG_OPTION_PIN_THREADS, 0); /* the settings say what was got */
        }
    }
    return status;
}

dmg_status dmg_run_compute(dmg_run *run)
{
    if (run->pool) {
        /* Computing may take hours, in which the launcher asks the pool nothing. */
        dmg_launcher_look_after(run->launcher, look_at_pool, run);
    }
    dmg_status status = compute(run);
    dmg_launcher_look_after(run->launcher, NULL, NULL);
    return status;
}

/** What a memory node's share of all this keeps its link busy. Mapped spans count as reads: that is what most of
 * them are. */
static double busy_seconds(const dmg_run *run, const dmg_counters *sum)
{
    const uint64_t *operations = sum->operations;
    const uint64_t *bytes = sum->bytes;
    double nodes = run->mn_count;
    const dmg_link_amounts share = {
        .reads = (double)(operations[DMG_OPERATION_READ] + sum->mapped_spans) / nodes,
        .writes = (double)(operations[DMG_OPERATION_WRITE] + operations[DMG_OPERATION_MESSAGE]) / nodes,
        .atomics = (double)(operations[DMG_OPERATION_CAS] + operations[DMG_OPERATION_FAA]) / nodes,
        .read_bytes = (double)(bytes[DMG_OPERATION_READ] + sum->mapped_bytes) / nodes,
        .write_bytes = (double)(bytes[DMG_OPERATION_WRITE] + bytes[DMG_OPERATION_MESSAGE]) / nodes};
    dmg_link_limits limits = dmg_link_limits_of(&run->link, &share);
    return fmax(limits.operations_ns, limits.bytes_ns) / 1e9;
}

dmg_run_totals dmg_run_total(const dmg_run *run)
{
    dmg_run_totals totals = {0};
    uint64_t barrier_ns = 0;
    uint64_t reported_barrier_ns = 0;
    for (uint64_t row = 0; row < run->iteration_rows; row++) {
        barrier_ns += run->iterations[row].barrier_ns;
    }
    for (uint32_t rank = 0; rank < run->cn_count; rank++) {
        const dmg_node_report *report = &run->cns[rank].report;
        dmg_counters_add(&totals.load, &report->load_counters);
        dmg_counters_add(&totals.run, &report->run_counters);
        for (uint32_t worker = 0; worker < report->worker_count; worker++) {
            dmg_work_balance_add(&totals.balance, &report->workers[worker]);
        }
        reported_barrier_ns += report->barrier_ns;
        double seconds = (double)report->run_ns / 1e9;
        totals.run_seconds = seconds > totals.run_seconds ? seconds : totals.run_seconds;
        double modelled = (double)report->run_counters.modelled_ns / 1e9 / run->threads;
        totals.modelled_seconds = modelled > totals.modelled_seconds ? modelled : totals.modelled_seconds;
        totals.residual = report->residual;
    }
    if (run->iteration_rows < run->iteration_count) {
        barrier_ns = reported_barrier_ns; /* rows are missing; this has those of the start values too */
    }
    totals.barrier_seconds = (double)barrier_ns / 1e9 / run->cn_count;
    /* A barrier is waited for like any message, so it is in that count too. */
    uint64_t wait_ns = totals.run.wait_ns > barrier_ns ? totals.run.wait_ns - barrier_ns : 0;
    totals.busy_seconds = run->has_link ? busy_seconds(run, &totals.run) : 0;
    totals.wait_seconds = (double)wait_ns / 1e9 / run->cn_count / run->threads;
    return totals;
}

_Noreturn void dmg_run_give_up(dmg_run *run, dmg_status status)
{
    dmg_progress_bar_clear(run->bar);
    int number = run->launcher ? dmg_launcher_signal(run->launcher) : 0;
    if (run->pool) {
        status = dmg_pool_client_explain(&run->pool->file, status);
    }
    /* Said first: stopping the nodes may take a moment. */
    int code = dmg_exit_with_error(status);
    fflush(NULL);
    if (run->launcher) {
        dmg_launcher_stop(run->launcher);
        dmg_transport_sweep(run->started_s, NULL, NULL);
    }
    dmg_output_file_discard(run->output);
    _exit(number ? DMG_EXIT_SIGNAL + number : code);
}
