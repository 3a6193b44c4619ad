#include "cli/report/report.h"

#include "cli/report/work_balance.h"
#include "core/base/error.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define COUNT(value) ((json_int_t)(value))

/** A count of its own, and its key in reports. */
typedef struct counter_key {
    const char *key;
    size_t offset; /* in dmg_counters */
} counter_key;

static const counter_key counter_keys[] = {
    {"rings", offsetof(dmg_counters, rings)},
    {"in_place_spans", offsetof(dmg_counters, mapped_spans)},
    {"in_place_bytes", offsetof(dmg_counters, mapped_bytes)},
    {"in_place_lines", offsetof(dmg_counters, mapped_lines)},
    {"in_place_atomics", offsetof(dmg_counters, mapped_atomics)},
    {"in_place_waits", offsetof(dmg_counters, mapped_waits)},
    {"lines_written_back", offsetof(dmg_counters, lines_written_back)},
    {"lines_invalidated", offsetof(dmg_counters, lines_invalidated)},
    {"message_lines", offsetof(dmg_counters, message_lines)},
    {"waits", offsetof(dmg_counters, waits)},
    {"lost_swaps", offsetof(dmg_counters, lost_swaps)},
    {"wait_ns", offsetof(dmg_counters, wait_ns)},
    {"message_wait_ns", offsetof(dmg_counters, message_wait_ns)},
    {"post_ns", offsetof(dmg_counters, post_ns)},
    {"modelled_ns", offsetof(dmg_counters, modelled_ns)},
};
#define COUNTER_KEYS (sizeof counter_keys / sizeof counter_keys[0])

static json_t *sizes_json(const uint64_t sizes[DMG_SIZE_BUCKETS])
{
    json_t *list = json_array();
    for (size_t bucket = 0; bucket < DMG_SIZE_BUCKETS; bucket++) {
        json_array_append_new(list, json_integer(COUNT(sizes[bucket])));
    }
    return list;
}

static void take_sizes(const json_t *list, uint64_t sizes[DMG_SIZE_BUCKETS])
{
    for (size_t bucket = 0; bucket < DMG_SIZE_BUCKETS && list; bucket++) {
        sizes[bucket] = (uint64_t)json_integer_value(json_array_get(list, bucket));
    }
}

static json_t *purpose_json(const dmg_purpose_counters *purpose, bool with_sizes)
{
    json_t *object =
        json_pack("{s:I, s:I, s:I, s:I}", "operations", COUNT(purpose->operations), "bytes", COUNT(purpose->bytes),
                  "in_place_spans", COUNT(purpose->mapped_spans), "in_place_bytes", COUNT(purpose->mapped_bytes));
    if (with_sizes) {
        json_object_set_new(object, "sizes", sizes_json(purpose->sizes));
    }
    return object;
}

json_t *dmg_counters_json(const dmg_counters *counters, bool with_sizes)
{
    json_t *object = json_object();
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        json_object_set_new(object, dmg_operation_kind_name((dmg_operation_kind)kind),
                            json_pack("{s:I, s:I, s:I, s:f}", "operations", COUNT(counters->operations[kind]), "bytes",
                                      COUNT(counters->bytes[kind]), "rounds", COUNT(counters->rounds[kind]),
                                      "serial_rounds", (double)counters->serial_parts[kind] / DMG_ROUND_PARTS));
    }
    for (size_t index = 0; index < COUNTER_KEYS; index++) {
        const counter_key *counter = &counter_keys[index];
        const uint64_t *count = (const uint64_t *)((const char *)counters + counter->offset);
        json_object_set_new(object, counter->key, json_integer(COUNT(*count)));
    }
    if (with_sizes) {
        json_object_set_new(object, "sizes", sizes_json(counters->sizes));
        json_object_set_new(object, "in_place_sizes", sizes_json(counters->mapped_sizes));
    }
    json_t *purposes = json_object();
    for (int purpose = 0; purpose < DMG_PURPOSES; purpose++) {
        json_object_set_new(purposes, dmg_purpose_name((dmg_purpose)purpose),
                            purpose_json(&counters->purposes[purpose], with_sizes));
    }
    json_object_set_new(object, "purposes", purposes);
    return object;
}

static dmg_status take_count(const json_t *object, const char *name, uint64_t *value)
{
    const json_t *number = json_object_get(object, name);
    if (!json_is_integer(number) || json_integer_value(number) < 0) {
        return dmg_error(DMG_ERR_PROTOCOL, "a node's report has no count '%s'", name);
    }
    *value = (uint64_t)json_integer_value(number);
    return DMG_OK;
}

static dmg_status take_real(const json_t *object, const char *name, double *value)
{
    const json_t *number = json_object_get(object, name);
    if (!json_is_number(number)) {
        return dmg_error(DMG_ERR_PROTOCOL, "a node's report has no number '%s'", name);
    }
    *value = json_number_value(number);
    return DMG_OK;
}

static dmg_status take_purpose(const json_t *object, dmg_purpose_counters *purpose)
{
    const struct {
        const char *name;
        uint64_t *value;
    } counts[] = {{"operations", &purpose->operations},
                  {"bytes", &purpose->bytes},
                  {"in_place_spans", &purpose->mapped_spans},
                  {"in_place_bytes", &purpose->mapped_bytes}};
    dmg_status status = DMG_OK;
    for (size_t index = 0; index < sizeof counts / sizeof counts[0] && status == DMG_OK; index++) {
        status = take_count(object, counts[index].name, counts[index].value);
    }
    take_sizes(json_object_get(object, "sizes"), purpose->sizes);
    return status;
}

dmg_status dmg_counters_from_json(json_t *object, dmg_counters *counters)
{
    memset(counters, 0, sizeof *counters);
    dmg_status status = DMG_OK;
    for (int kind = 0; kind < DMG_OPERATION_KINDS && status == DMG_OK; kind++) {
        const json_t *pair = json_object_get(object, dmg_operation_kind_name((dmg_operation_kind)kind));
        status = take_count(pair, "operations", &counters->operations[kind]);
        if (status == DMG_OK) {
            status = take_count(pair, "bytes", &counters->bytes[kind]);
        }
        if (status == DMG_OK) {
            status = take_count(pair, "rounds", &counters->rounds[kind]);
        }
        double serial_rounds = 0;
        if (status == DMG_OK) {
            status = take_real(pair, "serial_rounds", &serial_rounds);
        }
        counters->serial_parts[kind] = (uint64_t)llround(serial_rounds * DMG_ROUND_PARTS);
    }
    for (size_t index = 0; index < COUNTER_KEYS && status == DMG_OK; index++) {
        const counter_key *counter = &counter_keys[index];
        status = take_count(object, counter->key, (uint64_t *)((char *)counters + counter->offset));
    }
    take_sizes(json_object_get(object, "sizes"), counters->sizes);
    take_sizes(json_object_get(object, "in_place_sizes"), counters->mapped_sizes);
    const json_t *purposes = json_object_get(object, "purposes");
    for (int purpose = 0; purpose < DMG_PURPOSES && status == DMG_OK; purpose++) {
        status = take_purpose(json_object_get(purposes, dmg_purpose_name((dmg_purpose)purpose)),
                              &counters->purposes[purpose]);
    }
    return status;
}

static json_t *methods_json(const dmg_passed *passed)
{
    json_t *methods = json_object();
    for (int method = DMG_UPDATE_DIRECT; method < DMG_UPDATE_METHODS; method++) {
        json_object_set_new(methods, dmg_update_method_name((dmg_update_method)method),
                            json_pack("{s:I, s:I, s:I}", "items", COUNT(passed[method].items), "buffers",
                                      COUNT(passed[method].buffers), "bytes", COUNT(passed[method].bytes)));
    }
    return methods;
}

json_t *dmg_passed_json(const dmg_traffic *traffic)
{
    return json_pack("{s:o, s:o}", "sent", methods_json(traffic->sent), "taken", methods_json(traffic->taken));
}

static dmg_status methods_from_json(const json_t *methods, dmg_passed *passed)
{
    dmg_status status = DMG_OK;
    for (int method = DMG_UPDATE_DIRECT; method < DMG_UPDATE_METHODS && status == DMG_OK; method++) {
        const json_t *object = json_object_get(methods, dmg_update_method_name((dmg_update_method)method));
        status = take_count(object, "items", &passed[method].items);
        if (status == DMG_OK) {
            status = take_count(object, "buffers", &passed[method].buffers);
        }
        if (status == DMG_OK) {
            status = take_count(object, "bytes", &passed[method].bytes);
        }
    }
    return status;
}

dmg_status dmg_passed_from_json(json_t *object, dmg_traffic *traffic)
{
    dmg_status status = methods_from_json(json_object_get(object, "sent"), traffic->sent);
    return status == DMG_OK ? methods_from_json(json_object_get(object, "taken"), traffic->taken) : status;
}

static json_t *range_array_json(const dmg_range_array *array)
{
    json_t *ends = json_array();
    json_t *bases = json_array();
    for (uint32_t node = 0; node < array->node_count && node < DMG_MEMORY_NODES_MAX; node++) {
        json_array_append_new(ends, json_integer(COUNT(array->ends[node])));
        json_array_append_new(bases, json_integer(COUNT(array->base[node])));
    }
    return json_pack("{s:I, s:I, s:o, s:o}", "count", COUNT(array->count), "element_bytes", COUNT(array->element_bytes),
                     "ends", ends, "bases", bases);
}

static dmg_status range_array_from_json(const json_t *object, dmg_range_array *array)
{
    memset(array, 0, sizeof *array);
    uint64_t element_bytes = 0;
    dmg_status status = take_count(object, "count", &array->count);
    if (status == DMG_OK) {
        status = take_count(object, "element_bytes", &element_bytes);
    }
    if (status != DMG_OK) {
        return status;
    }
    const json_t *ends = json_object_get(object, "ends");
    const json_t *bases = json_object_get(object, "bases");
    size_t nodes = json_array_size(bases);
    bool is_possible = nodes <= DMG_MEMORY_NODES_MAX && json_array_size(ends) == nodes && element_bytes <= 64;
    uint64_t end = 0;
    for (size_t node = 0; node < nodes && is_possible; node++) {
        array->ends[node] = (uint64_t)json_integer_value(json_array_get(ends, node));
        array->base[node] = (dmg_address)json_integer_value(json_array_get(bases, node));
        is_possible = array->ends[node] >= end;
        end = array->ends[node];
    }
    if (!is_possible || end != array->count) {
        return dmg_error(DMG_ERR_PROTOCOL, "a node's report has an impossible range array");
    }
    array->element_bytes = (uint32_t)element_bytes;
    array->node_count = (uint32_t)nodes;
    return DMG_OK;
}

json_t *dmg_traffic_json(const dmg_node_traffic *traffic, uint32_t nodes)
{
    json_t *list = json_array();
    for (uint32_t node = 0; node < nodes; node++) {
        json_array_append_new(list, json_pack("{s:I, s:I, s:I}", "operations", COUNT(traffic[node].operations),
                                              "read_bytes", COUNT(traffic[node].read_bytes), "write_bytes",
                                              COUNT(traffic[node].write_bytes)));
    }
    return list;
}

static dmg_status traffic_from_json(const json_t *list, dmg_node_report *report)
{
    size_t nodes = json_array_size(list);
    if (nodes > DMG_MEMORY_NODES_MAX) {
        return dmg_error(DMG_ERR_PROTOCOL, "a node's report has traffic to too many memory nodes");
    }
    dmg_status status = DMG_OK;
    report->traffic_nodes = (uint32_t)nodes;
    for (size_t node = 0; node < nodes && status == DMG_OK; node++) {
        const json_t *of_node = json_array_get(list, node);
        status = take_count(of_node, "operations", &report->traffic[node].operations);
        if (status == DMG_OK) {
            status = take_count(of_node, "read_bytes", &report->traffic[node].read_bytes);
        }
        if (status == DMG_OK) {
            status = take_count(of_node, "write_bytes", &report->traffic[node].write_bytes);
        }
    }
    return status;
}

json_t *dmg_workers_json(const dmg_node_report *report)
{
    json_t *list = json_array();
    for (uint32_t worker = 0; worker < report->worker_count; worker++) {
        json_array_append_new(list, dmg_worker_figures_json(&report->workers[worker]));
    }
    return list;
}

static dmg_status take_workers(const json_t *list, dmg_node_report *report)
{
    dmg_status status = DMG_OK;
    size_t count = json_array_size(list);
    if (count < 1 || count > DMG_WORKERS_MAX) {
        return dmg_error(DMG_ERR_PROTOCOL, "a node's report has %zu workers", count);
    }
    report->worker_count = (uint32_t)count;
    for (size_t worker = 0; worker < count && status == DMG_OK; worker++) {
        status = dmg_worker_figures_from_json(json_array_get(list, worker), &report->workers[worker]);
    }
    return status;
}

json_t *dmg_node_report_json(const dmg_node_report *report)
{
    json_t *purposes = json_object();
    for (int purpose = 0; purpose < DMG_BUDGET_PURPOSES; purpose++) {
        json_object_set_new(purposes, dmg_budget_purpose_name((dmg_budget_purpose)purpose),
                            json_integer(COUNT(report->purpose_peak_bytes[purpose])));
    }
    json_t *object =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o}", "job",
                  COUNT(report->job), "load_ns", COUNT(report->load_ns), "run_ns", COUNT(report->run_ns), "barrier_ns",
                  COUNT(report->barrier_ns), "barriers", COUNT(report->barriers), "wait_ns", COUNT(report->wait_ns),
                  "iteration_count", COUNT(report->iteration_count), "residual", report->residual, "values",
                  range_array_json(&report->values), "load_counters", dmg_counters_json(&report->load_counters, true),
                  "run_counters", dmg_counters_json(&report->run_counters, true), "traffic",
                  dmg_traffic_json(report->traffic, report->traffic_nodes), "budget_limit_bytes",
                  COUNT(report->budget_limit_bytes), "budget_peak_bytes", COUNT(report->budget_peak_bytes),
                  "purpose_peak_bytes", purposes, "chosen", json_string(report->chosen));
    json_object_set_new(object, "pool", dmg_pool_report_json(&report->pool));
    json_object_set_new(object, "workers", dmg_workers_json(report));
    json_object_set_new(object, "pinned_workers", json_integer(report->pinned_workers));
    return object;
}

dmg_status dmg_node_report_from_json(json_t *object, dmg_node_report *report)
{
    memset(report, 0, sizeof *report);
    uint64_t iteration_count = 0;
    uint64_t pinned_workers = 0;
    const struct {
        const char *name;
        uint64_t *value;
    } counts[] = {{"job", &report->job},
                  {"pinned_workers", &pinned_workers},
                  {"load_ns", &report->load_ns},
                  {"run_ns", &report->run_ns},
                  {"barrier_ns", &report->barrier_ns},
                  {"barriers", &report->barriers},
                  {"wait_ns", &report->wait_ns},
                  {"iteration_count", &iteration_count},
                  {"budget_limit_bytes", &report->budget_limit_bytes},
                  {"budget_peak_bytes", &report->budget_peak_bytes}};
    dmg_status status = DMG_OK;
    for (size_t index = 0; index < sizeof counts / sizeof counts[0] && status == DMG_OK; index++) {
        status = take_count(object, counts[index].name, counts[index].value);
    }
    report->iteration_count = (uint32_t)iteration_count;
    report->pinned_workers = (uint32_t)pinned_workers;
    const char *chosen = json_string_value(json_object_get(object, "chosen"));
    snprintf(report->chosen, sizeof report->chosen, "%s", chosen ? chosen : "");
    const json_t *purposes = json_object_get(object, "purpose_peak_bytes");
    for (int purpose = 0; purpose < DMG_BUDGET_PURPOSES && status == DMG_OK; purpose++) {
        status = take_count(purposes, dmg_budget_purpose_name((dmg_budget_purpose)purpose),
                            &report->purpose_peak_bytes[purpose]);
    }
    if (status == DMG_OK) {
        status = take_real(object, "residual", &report->residual);
    }
    if (status == DMG_OK) {
        status = range_array_from_json(json_object_get(object, "values"), &report->values);
    }
    if (status == DMG_OK) {
        status = dmg_counters_from_json(json_object_get(object, "load_counters"), &report->load_counters);
    }
    if (status == DMG_OK) {
        status = dmg_counters_from_json(json_object_get(object, "run_counters"), &report->run_counters);
    }
    if (status == DMG_OK) {
        status = traffic_from_json(json_object_get(object, "traffic"), report);
    }
    if (status == DMG_OK) {
        status = take_workers(json_object_get(object, "workers"), report);
    }
    return status == DMG_OK ? dmg_pool_report_from_json(json_object_get(object, "pool"), &report->pool) : status;
}

json_t *dmg_iteration_json(const dmg_iteration *iteration)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:I, s:o, s:o}", "direction",
                     dmg_direction_name(iteration->direction), "density", dmg_density_name(iteration->density),
                     "active_vertices", COUNT(iteration->active_vertices), "arcs", COUNT(iteration->arcs),
                     "updates_local", COUNT(iteration->updates_local), "updates_remote",
                     COUNT(iteration->updates_remote), "references", COUNT(iteration->references), "passed",
                     dmg_passed_json(&iteration->traffic), "elapsed_ns", COUNT(iteration->elapsed_ns), "barrier_ns",
                     COUNT(iteration->barrier_ns), "barriers", COUNT(iteration->barriers), "counters",
                     dmg_counters_json(&iteration->counters, false), "work", dmg_iteration_work_json(iteration));
}

dmg_status dmg_iteration_from_json(json_t *object, dmg_iteration *iteration)
{
    memset(iteration, 0, sizeof *iteration);
    const char *direction = json_string_value(json_object_get(object, "direction"));
    const char *density = json_string_value(json_object_get(object, "density"));
    if (!direction || !density) {
        return dmg_error(DMG_ERR_PROTOCOL, "a node's report has an iteration without a direction or density");
    }
    iteration->direction = strcmp(direction, "pull") == 0 ? DMG_DIRECTION_PULL : DMG_DIRECTION_PUSH;
    iteration->density = strcmp(density, "sparse") == 0 ? DMG_DENSITY_SPARSE : DMG_DENSITY_DENSE;
    const struct {
        const char *name;
        uint64_t *value;
    } counts[] = {{"active_vertices", &iteration->active_vertices}, {"arcs", &iteration->arcs},
                  {"updates_local", &iteration->updates_local},     {"updates_remote", &iteration->updates_remote},
                  {"references", &iteration->references},           {"elapsed_ns", &iteration->elapsed_ns},
                  {"barrier_ns", &iteration->barrier_ns},           {"barriers", &iteration->barriers}};
    dmg_status status = DMG_OK;
    for (size_t index = 0; index < sizeof counts / sizeof counts[0] && status == DMG_OK; index++) {
        status = take_count(object, counts[index].name, counts[index].value);
    }
    if (status == DMG_OK) {
        status = dmg_passed_from_json(json_object_get(object, "passed"), &iteration->traffic);
    }
    if (status == DMG_OK) {
        status = dmg_counters_from_json(json_object_get(object, "counters"), &iteration->counters);
    }
    if (status == DMG_OK) {
        status = dmg_iteration_work_from_json(json_object_get(object, "work"), iteration);
    }
    return status;
}

const char *dmg_direction_name(dmg_direction direction)
{
    return direction == DMG_DIRECTION_PULL ? "pull" : direction == DMG_DIRECTION_PUSH ? "push" : "auto";
}

const char *dmg_density_name(dmg_density density)
{
    return density == DMG_DENSITY_SPARSE ? "sparse" : density == DMG_DENSITY_DENSE ? "dense" : "auto";
}

static const struct {
    uint32_t flag;
    const char *name;
} capability_names[] = {{DMG_CAPABILITY_LOAD_STORE, "load_store"},
                        {DMG_CAPABILITY_COHERENT, "coherent"},
                        {DMG_CAPABILITY_ONE_SIDED, "one_sided"},
                        {DMG_CAPABILITY_MN_COMPUTE, "mn_compute"}};

void dmg_capabilities_text(uint32_t flags, char *text, size_t capacity)
{
    size_t used = 0;
    snprintf(text, capacity, "-");
    for (size_t index = 0; index < sizeof capability_names / sizeof capability_names[0]; index++) {
        if ((flags & capability_names[index].flag) && used < capacity) {
            int length = snprintf(text + used, capacity - used, "%s%s", used ? " " : "", capability_names[index].name);
            used += length > 0 ? (size_t)length : 0;
        }
    }
}

json_t *dmg_capabilities_json(uint32_t flags)
{
    json_t *list = json_array();
    for (size_t index = 0; index < sizeof capability_names / sizeof capability_names[0]; index++) {
        if (flags & capability_names[index].flag) {
            json_array_append_new(list, json_string(capability_names[index].name));
        }
    }
    return list;
}

const char *dmg_atomics_name(dmg_atomics_executor executor)
{
    static const char *const names[] = {[DMG_ATOMICS_CALLER_CPU] = "caller",
                                        [DMG_ATOMICS_NIC] = "nic",
                                        [DMG_ATOMICS_MEMORY_NODE] = "memory_node",
                                        [DMG_ATOMICS_CALLER_LOCK] = "caller_lock"};
    return names[executor];
}
