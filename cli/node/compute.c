/*
 * dmgraph compute-node: one compute node of a run or of a load, started by the launcher.
 *
 * connect -> join the job -> rank 0 makes the store, the others find it in the catalog -> all load -> all run -> report
 * -> wait until the launcher has read the result -> leave. On a graph that is in a long-lived pool already, all find
 * the store and nobody loads; a load into such a pool runs nothing, and leaves when the launcher has taken over what
 * was loaded.
 */
#include "algorithms/algorithm.h"
#include "cli/base/exit_code.h"
#include "cli/base/file_guard.h"
#include "cli/launcher/control.h"
#include "cli/launcher/node_control.h"
#include "cli/options/command.h"
#include "cli/options/engine_options.h"
#include "cli/options/link_options.h"
#include "cli/pool/job_pass.h"
#include "cli/report/pool_watch.h"
#include "cli/report/report.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/pool/token.h"
#include "core/store/graph_catalog.h"
#include "formats/binary_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** How long a node may take to connect and to find the others. Each step has a shorter limit of its own; this is for
 * what nobody thought of. */
#define START_LIMIT_NS UINT64_C(300000000000)

typedef enum node_task { TASK_LOAD_AND_RUN, TASK_LOAD, TASK_RUN } node_task;

/** What the setup says. */
typedef struct node_plan {
    node_task task;
    const char *job_name; /* fresh in the pool */
    dmg_job_pass job_pass;
    const char *pool_graph; /* of TASK_RUN: the graph's name in the pool */
    uint32_t rank;
    uint32_t size;
    const char *transport;
    const char *addresses[DMG_MEMORY_NODES_MAX];
    uint32_t address_count;
    uint8_t token[DMG_TOKEN_BYTES];
    uint64_t peer_timeout_ns;
    bool has_link;
    dmg_link_settings link;
    const char *graph_name;
    bool is_weighted; /* weights are wanted */
    dmg_store_options store;
    dmg_engine_options engine;
    const dmg_algorithm *algorithm; /* NULL: nothing is run */
    dmg_algorithm_options options;
} node_plan;

static dmg_status read_task(json_t *setup, node_plan *plan)
{
    static const char *const names[] = {[TASK_LOAD_AND_RUN] = "load and run", [TASK_LOAD] = "load", [TASK_RUN] = "run"};
    const char *task = NULL;
    dmg_status status = dmg_control_unpack(setup, "{s:s, s:s, s:s}", "task", &task, "job", &plan->job_name,
                                           "pool_graph", &plan->pool_graph);
    for (int index = TASK_LOAD_AND_RUN; index <= TASK_RUN && status == DMG_OK; index++) {
        if (strcmp(task, names[index]) == 0) {
            plan->task = (node_task)index;
            return DMG_OK;
        }
    }
    return status != DMG_OK ? status : dmg_error(DMG_ERR_PROTOCOL, "the setup has a task '%s'", task);
}

/** The store itself checks them. */
static dmg_status read_store_options(json_t *setup, dmg_store_options *options)
{
    int entry_bytes = 0, partitions = 0, tiny_chunks = 0, embed = 1;
    dmg_status status = dmg_control_unpack(setup, "{s:i, s:i, s:i, s:b}", "index_entry_bytes", &entry_bytes,
                                           "partitions", &partitions, "tiny_chunks", &tiny_chunks, "embed", &embed);
    if (status == DMG_OK && (entry_bytes < 1 || partitions < 1 || tiny_chunks < 0)) {
        status = dmg_error(DMG_ERR_PROTOCOL, "the setup has a value out of range");
    }
    options->entry_bytes = (uint32_t)entry_bytes;
    options->partition_count = (uint32_t)partitions;
    options->tiny_chunks = (uint32_t)tiny_chunks;
    options->without_embedding = embed == 0;
    return status;
}

static dmg_status read_setup(json_t *setup, node_plan *plan)
{
    const char *token = NULL;
    const char *algorithm = NULL;
    json_t *addresses = NULL;
    int rank = 0, size = 0, weighted = 0, with_in = 0;
    json_int_t peer_timeout_ns = 0, source = 0, iterations = 0;
    dmg_status status = dmg_control_unpack(
        setup, "{s:i, s:i, s:s, s:o, s:s, s:I, s:s, s:b, s:b, s:s, s:I, s:I, s:F, s:F}", "rank", &rank, "size", &size,
        "transport", &plan->transport, "addresses", &addresses, "token", &token, "peer_timeout_ns", &peer_timeout_ns,
        "graph_name", &plan->graph_name, "weighted", &weighted, "with_in", &with_in, "algorithm", &algorithm, "source",
        &source, "iterations", &iterations, "tolerance", &plan->options.tolerance, "damping", &plan->options.damping);
    if (status == DMG_OK) {
        status = dmg_token_read(token, plan->token);
    }
    if (status == DMG_OK) {
        status = dmg_link_settings_from_json(json_object_get(setup, "link"), &plan->has_link, &plan->link);
    }
    if (status == DMG_OK) {
        status = dmg_engine_options_from_json(json_object_get(setup, "engine"), &plan->engine);
    }
    if (status == DMG_OK) {
        status = read_store_options(setup, &plan->store);
    }
    if (status == DMG_OK) {
        status = read_task(setup, plan);
    }
    if (status == DMG_OK) {
        status = dmg_job_pass_from_json(json_object_get(setup, "job_pass"), &plan->job_pass);
    }
    if (status != DMG_OK) {
        return status;
    }
    plan->address_count = (uint32_t)json_array_size(addresses);
    plan->algorithm = dmg_algorithm_find(algorithm);
    if (plan->address_count == 0 || plan->address_count > DMG_MEMORY_NODES_MAX ||
        (!plan->algorithm && plan->task != TASK_LOAD) || size < 1 || rank < 0 || rank >= size || peer_timeout_ns <= 0 ||
        source < 0 || source > UINT32_MAX || iterations < 0 || iterations > UINT32_MAX) {
        return dmg_error(DMG_ERR_PROTOCOL, "the setup has a value out of range");
    }
    for (uint32_t node = 0; node < plan->address_count; node++) {
        plan->addresses[node] = json_string_value(json_array_get(addresses, node));
        if (!plan->addresses[node]) {
            return dmg_error(DMG_ERR_PROTOCOL, "the setup has an address that is no text");
        }
    }
    plan->rank = (uint32_t)rank;
    plan->size = (uint32_t)size;
    plan->peer_timeout_ns = (uint64_t)peer_timeout_ns;
    plan->is_weighted = weighted != 0;
    plan->store.with_out = true;
    plan->store.with_in = with_in != 0;
    plan->options.source = (uint32_t)source;
    plan->options.iterations_max = (uint32_t)iterations;
    return DMG_OK;
}

/** Map the graph that the launcher left open, and leave out what this run does not use. */
static dmg_status map_graph(const node_plan *plan, dmg_graph *graph)
{
    /* The launcher has checked the contents of this very file, and says what is wrong when it is cut short. */
    dmg_status status = dmg_binary_form_map(DMG_CHILD_FILE, plan->graph_name, false, dmg_file_guard(NULL), graph);
    close(DMG_CHILD_FILE);
    if (status == DMG_OK && !plan->is_weighted) {
        graph->weight_kind = DMG_WEIGHT_NONE;
        graph->out.weights = NULL;
        graph->in.weights = NULL;
    }
    return status;
}

static dmg_status send_iterations(dmg_node_control *control, const dmg_run_result *result)
{
    uint32_t count = result->iterations_kept;
    dmg_status status = DMG_OK;
    for (uint32_t first = 0; first < count && status == DMG_OK; first += DMG_REPORT_ROWS) {
        json_t *rows = json_array();
        for (uint32_t index = first; index < count && index < first + DMG_REPORT_ROWS; index++) {
            json_array_append_new(rows, dmg_iteration_json(&result->iterations[index]));
        }
        status = dmg_node_control_send(
            control, json_pack("{s:s, s:I, s:o}", "type", "iterations", "first", (json_int_t)first, "rows", rows));
    }
    return status;
}

/** What all channels of this node did so far. */
typedef struct node_counts {
    dmg_counters counters;
    uint32_t node_count;
    dmg_node_traffic traffic[DMG_MEMORY_NODES_MAX]; /**< a pool has no more memory nodes */
} node_counts;

static node_counts count_all(const dmg_client *client, const dmg_engine *engine)
{
    node_counts counts = {0};
    dmg_engine_counters(engine, &counts.counters);
    while (counts.node_count < dmg_client_node_count(client) && counts.node_count < DMG_MEMORY_NODES_MAX) {
        dmg_engine_traffic(engine, (uint16_t)counts.node_count, &counts.traffic[counts.node_count]);
        counts.node_count++;
    }
    return counts;
}

static dmg_status send_report(dmg_node_control *control, const node_plan *plan, const dmg_client *client,
                              const dmg_job *job, const dmg_engine *engine, const dmg_run_result *result,
                              uint64_t load_ns, const node_counts *loaded, dmg_pool_watch *watch)
{
    dmg_status status = send_iterations(control, result);
    if (status != DMG_OK) {
        return status;
    }
    dmg_node_report report = {.job = job->id,
                              .load_ns = load_ns,
                              .run_ns = result->elapsed_ns,
                              .barrier_ns = result->barrier_ns,
                              .barriers = result->barriers,
                              .wait_ns = result->wait_ns,
                              .iteration_count = result->iteration_count,
                              .residual = result->residual,
                              .values = result->values,
                              .load_counters = loaded->counters};
    snprintf(report.chosen, sizeof report.chosen, "%s", dmg_client_capabilities(client)->chosen);
    node_counts counts = count_all(client, engine);
    report.run_counters = counts.counters;
    dmg_counters_subtract(&report.run_counters, &loaded->counters);
    report.traffic_nodes = counts.node_count;
    for (uint32_t node = 0; node < report.traffic_nodes; node++) {
        const dmg_node_traffic *after = &counts.traffic[node];
        const dmg_node_traffic *before = &loaded->traffic[node];
        report.traffic[node] = (dmg_node_traffic){.operations = after->operations - before->operations,
                                                  .read_bytes = after->read_bytes - before->read_bytes,
                                                  .write_bytes = after->write_bytes - before->write_bytes};
    }
    const dmg_budget *budget = dmg_engine_budget(engine);
    report.budget_limit_bytes = dmg_budget_limit_bytes(budget);
    report.budget_peak_bytes = dmg_budget_peak_bytes(budget);
    for (int purpose = 0; purpose < DMG_BUDGET_PURPOSES; purpose++) {
        report.purpose_peak_bytes[purpose] = dmg_budget_purpose_peak_bytes(budget, (dmg_budget_purpose)purpose);
    }
    report.worker_count = plan->engine.threads;
    report.pinned_workers = dmg_engine_pinned_workers(engine);
    for (uint32_t worker = 0; worker < report.worker_count; worker++) {
        report.workers[worker] = dmg_engine_worker(engine, worker);
    }
    /* After the counters, which are to hold the run alone. */
    status = dmg_pool_watch_end(watch, &report.pool);
    if (status != DMG_OK) {
        return status;
    }
    json_t *message = dmg_node_report_json(&report);
    json_object_set_new(message, "type", json_string("result"));
    return dmg_node_control_send(control, message);
}

/** Do what the task says on a store that is there, report, and wait until the launcher has what it wants from the pool.
 */
static dmg_status work(dmg_node_control *control, const node_plan *plan, const dmg_client *client, const dmg_job *job,
                       dmg_engine *engine, const dmg_graph *graph, dmg_pool_watch *watch)
{
    dmg_status status = DMG_OK;
    dmg_node_control_settle(control);
    dmg_node_control_enter(control, DMG_PHASE_LOAD);
    uint64_t started_ns = dmg_now_ns();
    if (plan->task != TASK_RUN) {
        status = dmg_engine_load(engine, graph, dmg_node_control_arcs(control));
    }
    if (status != DMG_OK) {
        return status;
    }
    uint64_t load_ns = plan->task != TASK_RUN ? dmg_now_ns() - started_ns : 0;
    status = dmg_pool_watch_loaded(watch);
    if (status != DMG_OK) {
        return status;
    }
    dmg_run_result result = {0};
    node_counts loaded = count_all(client, engine);
    if (plan->task != TASK_LOAD) {
        dmg_node_control_enter(control, DMG_PHASE_RUN);
        status = plan->algorithm->run(engine, &plan->options, &result);
    }
    if (status != DMG_OK) {
        return status;
    }
    dmg_node_control_enter(control, DMG_PHASE_RESULT);
    status = send_report(control, plan, client, job, engine, &result, load_ns, &loaded, watch);
    if (status == DMG_OK) {
        dmg_node_control_wait(control);
    }
    return status;
}

/** People count iterations from 1. */
static void show_iteration(void *context, uint32_t iteration, uint64_t active_vertices)
{
    (void)active_vertices;
    *(_Atomic uint32_t *)context = iteration + 1;
}

/** The store: made by rank 0 for this job, or there already. */
static dmg_status find_store(const node_plan *plan, dmg_channel *channel, dmg_job *job, const dmg_graph *graph,
                             dmg_graph_store *store)
{
    if (plan->task != TASK_RUN) {
        char name[DMG_CATALOG_NAME_BYTES];
        dmg_graph_job_store_name(job->id, name);
        return dmg_graph_store_share(channel, job, name, graph, &plan->store, store);
    }
    dmg_graph_entry entry;
    dmg_status status = job->rank == 0 ? dmg_graph_use(channel, job->id, plan->pool_graph, &entry)
                                       : dmg_graph_look_up(channel, plan->pool_graph, &entry);
    *store = entry.store;
    return status;
}

/**
 * Tell the job and the launcher that this node fails, and why. All nodes name the first failure of the job: what others
 * meet after it, or because of the same, explains less.
 */
static dmg_status fail(dmg_node_control *control, dmg_channel *channel, dmg_job *job, dmg_status status)
{
    dmg_kept_error kept = {0};
    dmg_error_keep(&kept, status);
    if (status == DMG_ERR_PEER) {
        /* Node 0 may be what is lost: the launcher must not wait for its answer. */
        dmg_node_control_fail(control, status);
    }
    dmg_job_failure first;
    (void)dmg_job_abort(channel, job, status, kept.sentence, &first);
    if (first.rank != job->rank && first.rank != DMG_JOB_NO_RANK) {
        dmg_node_control_fail_for(control, first.rank, (dmg_status)first.status, first.sentence);
        return dmg_job_failure_error(&first, job->rank);
    }
    status = first.rank == job->rank ? dmg_error_restore(&kept) : dmg_job_failure_error(&first, job->rank);
    dmg_node_control_fail(control, status);
    return status;
}

static dmg_status take_part(dmg_node_control *control, const node_plan *plan, dmg_client *client, dmg_channel *channel,
                            const dmg_graph *graph)
{
    dmg_job job = {0};
    /* It waits for ranks that may never be started, when the launcher is gone: nobody would tell. */
    dmg_node_control_settle(control);
    dmg_status status = dmg_job_join(channel, &plan->job_pass, plan->job_name, plan->rank, plan->size, &job);
    dmg_node_control_unsettle(control);
    if (status != DMG_OK) {
        return status;
    }
    dmg_graph_store store = {0};
    dmg_engine *engine = NULL;
    dmg_pool_watch watch = {0};
    status = find_store(plan, channel, &job, graph, &store);
    if (status == DMG_OK && plan->rank == 0) {
        status = dmg_pool_watch_begin(&watch, channel, &store);
    }
    if (status == DMG_OK) {
        dmg_engine_options options = plan->engine;
        options.on_iteration = show_iteration;
        options.on_iteration_context = dmg_node_control_iteration(control);
        status = dmg_engine_create(client, channel, &job, &store, &options, &engine);
    }
    if (status == DMG_OK) {
        status = work(control, plan, client, &job, engine, graph, &watch);
    }
    if (status == DMG_OK) {
        dmg_engine_destroy(engine);
        return dmg_job_leave(channel, &job);
    }
    status = fail(control, channel, &job, status);
    dmg_engine_destroy(engine);
    return status;
}

static dmg_status connect_and_work(dmg_node_control *control, const node_plan *plan)
{
    dmg_graph graph = {0};
    dmg_client *client = NULL;
    dmg_channel *channel = NULL;
    dmg_client_options client_options = {.transport = plan->transport,
                                         .addresses = plan->addresses,
                                         .address_count = plan->address_count,
                                         .peer_timeout_ns = plan->peer_timeout_ns,
                                         .link = plan->has_link ? &plan->link : NULL};
    memcpy(client_options.token, plan->token, sizeof client_options.token);
    dmg_status status = plan->task != TASK_RUN ? map_graph(plan, &graph) : DMG_OK;
    if (status == DMG_OK) {
        status = dmg_client_open(&client_options, &client);
    }
    if (status == DMG_OK) {
        status = dmg_channel_open(client, &channel);
    }
    if (status == DMG_OK) {
        status = take_part(control, plan, client, channel, &graph);
    }
    dmg_channel_close(channel);
    dmg_client_close(client);
    dmg_graph_close(&graph);
    return status;
}

static int run(dmg_settings *settings)
{
    dmg_node_control *control = NULL;
    dmg_status status = dmg_node_control_open(settings, "compute-node", &control);
    if (status != DMG_OK) {
        return dmg_exit_with_error(status);
    }
    node_plan *plan = calloc(1, sizeof *plan);
    status =
        plan ? read_setup(dmg_node_control_setup(control), plan) : dmg_error(DMG_ERR_MEMORY, "no memory for the plan");
    if (status == DMG_OK) {
        dmg_node_control_limit_start(control, START_LIMIT_NS);
        status = dmg_node_control_start(control, plan->peer_timeout_ns, "leave");
    }
    if (status == DMG_OK) {
        char name[32];
        snprintf(name, sizeof name, "compute node %u", (unsigned int)plan->rank);
        dmg_node_control_log(control, name);
        status = connect_and_work(control, plan);
    }
    if (status != DMG_OK) {
        dmg_node_control_fail(control, status);
    }
    dmg_node_control_close(control);
    free(plan);
    return dmg_exit_code_of(status);
}

static const dmg_option_id options[] = {DMG_OPTION_CONTROL_FD, DMG_OPTION_HELP, DMG_OPTION_COUNT};

const dmg_command dmg_command_compute_node = {
    .name = "compute-node",
    .arguments = "",
    .summary = "a compute node of a run or a load (started by 'dmgraph run' and 'dmgraph load')",
    .is_internal = true,
    .options = options,
    .run = run};
