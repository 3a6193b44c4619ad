#include "cli/options/engine_options.h"
#include "cli/options/link_options.h"
#include "cli/run/run.h"

#include "cli/base/text.h"

#define NANOSECONDS_SECOND 1e9

/** How many members each group of compute nodes has. */
static json_t *groups_json(const dmg_run *run)
{
    json_t *members = json_array();
    for (uint32_t rank = 0; rank < run->cn_count;) {
        const dmg_groups groups = dmg_run_groups(run, rank);
        json_array_append_new(members, json_integer((json_int_t)groups.members));
        rank += groups.members;
    }
    return json_pack("{s:I, s:o}", "count", (json_int_t)json_array_size(members), "members", members);
}

static json_t *nodes_json(const dmg_run *run)
{
    json_t *memory_nodes = json_array();
    for (uint32_t node = 0; node < run->mn_count; node++) {
        const dmg_node_activities *activities = &run->cns[0].report.pool.memory_nodes[node];
        json_array_append_new(
            memory_nodes,
            json_pack("{s:I, s:i, s:I, s:o, s:I, s:o, s:o}", "node", (json_int_t)node, "pid", run->mns[node].pid,
                      "segment_bytes", (json_int_t)run->mns[node].segment_bytes, "segment",
                      run->pool ? json_null() : dmg_placement_json(&run->mns[node].placement), "peak_bytes",
                      (json_int_t)run->mns[node].peak_bytes, "load", dmg_node_activity_json(&activities->load), "run",
                      dmg_node_activity_json(&activities->run)));
    }
    json_t *compute_nodes = json_array();
    for (uint32_t rank = 0; rank < run->cn_count; rank++) {
        const dmg_node_report *report = &run->cns[rank].report;
        json_t *purposes = json_object();
        for (int purpose = 0; purpose < DMG_BUDGET_PURPOSES; purpose++) {
            json_object_set_new(purposes, dmg_budget_purpose_name((dmg_budget_purpose)purpose),
                                json_integer((json_int_t)report->purpose_peak_bytes[purpose]));
        }
        json_t *cache =
            json_pack("{s:o, s:I, s:o}", "limit_bytes",
                      report->budget_limit_bytes ? json_integer((json_int_t)report->budget_limit_bytes) : json_null(),
                      "peak_bytes", (json_int_t)report->budget_peak_bytes, "peak_bytes_by_purpose", purposes);
        const dmg_groups groups = dmg_run_groups(run, rank);
        json_array_append_new(compute_nodes,
                              json_pack("{s:I, s:I, s:I, s:i, s:o, s:f, s:f, s:f, s:I, s:f, s:o, s:o, s:o, s:I, s:o}",
                                        "rank", (json_int_t)rank, "group", (json_int_t)groups.group, "member",
                                        (json_int_t)groups.member, "pid", run->cns[rank].child->pid, "cache", cache,
                                        "load_seconds", (double)report->load_ns / NANOSECONDS_SECOND, "run_seconds",
                                        (double)report->run_ns / NANOSECONDS_SECOND, "barrier_seconds",
                                        (double)report->barrier_ns / NANOSECONDS_SECOND, "barriers",
                                        (json_int_t)report->barriers, "operation_wait_seconds",
                                        (double)report->wait_ns / NANOSECONDS_SECOND, "load_operations",
                                        dmg_counters_json(&report->load_counters, true), "run_operations",
                                        dmg_counters_json(&report->run_counters, true), "traffic",
                                        dmg_traffic_json(report->traffic, report->traffic_nodes), "pinned_workers",
                                        (json_int_t)report->pinned_workers, "workers", dmg_workers_json(report)));
    }
    json_t *transport = json_pack(
        "{s:o, s:o, s:o, s:s}", "name", dmg_json_text(dmg_value_text(run->settings, DMG_OPTION_TRANSPORT)), "chosen",
        dmg_json_text(run->cns[0].report.chosen), "capabilities", dmg_capabilities_json(run->capabilities.flags),
        "atomics", dmg_atomics_name(run->capabilities.atomics));
    return json_pack("{s:o, s:o, s:o, s:o}", "transport", transport, "memory_nodes", memory_nodes, "groups",
                     groups_json(run), "compute_nodes", compute_nodes);
}

static json_t *result_json(const dmg_run *run, const dmg_run_totals *totals)
{
    const dmg_graph *graph = &run->source.graph;
    json_t *result = dmg_headline_json(run->headline);
    bool has_source =
        dmg_algorithm_takes(run->algorithm, DMG_TAKES_SOURCE) && run->parameters.source < graph->vertex_count;
    json_object_set_new(result, "source",
                        has_source ? dmg_json_id(dmg_graph_id(graph, run->parameters.source)) : json_null());
    json_object_set_new(result, "iterations", json_integer((json_int_t)run->iteration_count));
    json_object_set_new(result, "residual", json_real(totals->residual));
    json_object_set_new(result, "weights_counted_as_1", json_boolean(run->weights_are_missing));
    json_object_set_new(result, "weights_not_used", json_boolean(run->weights_are_lost));
    json_object_set_new(result, "verified",
                        dmg_flag(run->settings, DMG_OPTION_VERIFY) ? json_boolean(run->is_verified) : json_null());
    json_object_set_new(result, "columns", json_string(run->algorithm->columns));
    return result;
}

/** What one compute node did in an iteration. */
static json_t *node_rows_json(const dmg_run *run, uint64_t row)
{
    json_t *list = json_array();
    for (uint32_t rank = 0; rank < run->cn_count; rank++) {
        if (row < run->cns[rank].row_count) {
            const dmg_iteration *of_node = &run->cns[rank].rows[row];
            json_array_append_new(list, json_pack("{s:I, s:I, s:I, s:o}", "elapsed_ns", (json_int_t)of_node->elapsed_ns,
                                                  "barrier_ns", (json_int_t)of_node->barrier_ns, "arcs",
                                                  (json_int_t)of_node->arcs, "counters",
                                                  dmg_counters_json(&of_node->counters, false)));
        }
    }
    return list;
}

json_t *dmg_run_loading_json(const dmg_run *run)
{
    const dmg_pool_report *report = &run->cns[0].report.pool;
    dmg_run_loading loading = dmg_run_loading_speed(run);
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:f}", "file_bytes",
                     (json_int_t)run->source.report.file_bytes, "read_seconds", run->times.read, "read_mb_s",
                     loading.read_mb_s, "load_seconds", loading.load_seconds, "load_mb_s", loading.load_mb_s,
                     "partitions", (json_int_t)run->partitions, "tiny_chunks", (json_int_t)report->tiny_chunk_count,
                     "partition_ns", (json_int_t)report->partition_ns, "repartition_ns",
                     (json_int_t)report->repartition_ns, "partition_imbalance", report->partition_imbalance);
}

/* What the options about updates came to on this pool. */
static json_t *updates_json(const dmg_run *run)
{
    dmg_engine_options options = {0};
    dmg_engine_options_from_settings(run->settings, &options);
    dmg_update_method method = options.updates;
    (void)dmg_update_method_choose(&run->capabilities, options.updates, &method);
    dmg_traffic traffic = {0};
    for (uint64_t row = 0; row < run->iteration_rows; row++) {
        dmg_traffic_add(&traffic, &run->iterations[row].traffic);
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:o}", "method", dmg_update_method_name(method), "reference_buffer_bytes",
                     (json_int_t)options.reference_buffer_bytes, "value_buffer_bytes",
                     (json_int_t)options.value_buffer_bytes, "value_message_bytes",
                     (json_int_t)dmg_value_message_bytes(options.value_buffer_bytes), "passed",
                     dmg_passed_json(&traffic));
}

/* What the standard error was told, for programs that read this alone. */
static json_t *warnings_json(const dmg_run *run)
{
    json_t *warnings = json_array();
    if (run->weights_are_lost) {
        json_array_append_new(warnings, json_sprintf("%s does not use the graph's weights, each arc counts 1: %s",
                                                     run->algorithm->name, dmg_run_lost_weights_remedy(run)));
    }
    return warnings;
}

json_t *dmg_run_json(const dmg_run *run)
{
    dmg_run_totals totals = dmg_run_total(run);
    const dmg_run_times *times = &run->times;
    json_t *iterations = json_array();
    for (uint64_t row = 0; row < run->iteration_rows; row++) {
        json_t *iteration = dmg_iteration_json(&run->iterations[row]);
        if (run->cn_count > 1) {
            json_object_set_new(iteration, "compute_nodes", node_rows_json(run, row));
        }
        json_array_append_new(iterations, iteration);
    }
    json_t *object = json_object();
    json_object_set_new(object, "dmgraph", json_string(DMGRAPH_VERSION));
    json_object_set_new(object, "algorithm", json_string(run->algorithm->name));
    json_object_set_new(object, "settings", dmg_options_json(run->options, run->settings));
    json_object_set_new(object, "graph",
                        run->pool ? dmg_run_pool_graph_json(run) : dmg_graph_source_json(run->path, &run->source));
    json_object_set_new(object, "warnings", warnings_json(run));
    json_object_set_new(object, "nodes", nodes_json(run));
    json_object_set_new(object, "loading", dmg_run_loading_json(run));
    json_object_set_new(object, "result", result_json(run, &totals));
    json_object_set_new(object, "updates", updates_json(run));
    json_object_set_new(object, "iterations", iterations);
    json_object_set_new(object, "seconds",
                        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total", times->total, "read",
                                  times->read, "start", times->start, "load", times->load, "run", times->run, "result",
                                  times->result, "verify", times->verify, "iterations", totals.run_seconds,
                                  "iteration_barriers", totals.barrier_seconds, "iteration_operation_wait",
                                  totals.wait_seconds));
    if (run->has_link) {
        json_t *link = dmg_link_settings_json(&run->link);
        json_object_set_new(link, "emulated", json_true());
        json_object_set_new(link, "accounted_seconds", json_real(totals.modelled_seconds));
        json_object_set_new(link, "busy_seconds", json_real(totals.busy_seconds));
        json_object_set_new(link, "iteration_seconds", json_real(dmg_run_modelled_seconds(&totals)));
        json_object_set_new(object, "emulated_link", link);
    } else {
        json_object_set_new(object, "emulated_link", json_null());
    }
    json_object_set_new(object, "operations",
                        json_pack("{s:o, s:o}", "load", dmg_counters_json(&totals.load, true), "run",
                                  dmg_counters_json(&totals.run, true)));
    json_object_set_new(object, "work_balance", dmg_work_balance_json(&totals.balance));
    return object;
}
