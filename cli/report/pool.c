#include "cli/report/pool.h"

#include "core/base/error.h"

#include <stddef.h>
#include <string.h>

typedef struct counted_field {
    const char *name;
    size_t offset; /* of a uint64_t */
} counted_field;

#define FIELDS(list) list, sizeof(list) / sizeof((list)[0])

static const counted_field activity_fields[] = {{"serve_cpu_ns", offsetof(dmg_node_activity, serve_cpu_ns)},
                                                {"offload_cpu_ns", offsetof(dmg_node_activity, offload_cpu_ns)},
                                                {"process_cpu_ns", offsetof(dmg_node_activity, process_cpu_ns)},
                                                {"messages", offsetof(dmg_node_activity, messages)},
                                                {"update_messages", offsetof(dmg_node_activity, update_messages)},
                                                {"updates", offsetof(dmg_node_activity, updates)},
                                                {"applied", offsetof(dmg_node_activity, applied)}};

static const counted_field partition_fields[] = {{"partition_ns", offsetof(dmg_pool_report, partition_ns)},
                                                 {"repartition_ns", offsetof(dmg_pool_report, repartition_ns)},
                                                 {"tiny_chunk_count", offsetof(dmg_pool_report, tiny_chunk_count)}};

static void add_fields(const void *from, const counted_field *fields, size_t count, json_t *object)
{
    for (size_t index = 0; index < count; index++) {
        uint64_t value;
        memcpy(&value, (const char *)from + fields[index].offset, sizeof value);
        json_object_set_new(object, fields[index].name, json_integer((json_int_t)value));
    }
}

static dmg_status take_fields(const json_t *object, const counted_field *fields, size_t count, void *to)
{
    for (size_t index = 0; index < count; index++) {
        const json_t *number = json_object_get(object, fields[index].name);
        if (!json_is_integer(number) || json_integer_value(number) < 0) {
            return dmg_error(DMG_ERR_PROTOCOL, "a node's report has no count '%s'", fields[index].name);
        }
        uint64_t value = (uint64_t)json_integer_value(number);
        memcpy((char *)to + fields[index].offset, &value, sizeof value);
    }
    return DMG_OK;
}

json_t *dmg_node_activity_json(const dmg_node_activity *activity)
{
    json_t *object = json_object();
    add_fields(activity, FIELDS(activity_fields), object);
    return object;
}

json_t *dmg_pool_report_json(const dmg_pool_report *report)
{
    json_t *nodes = json_array();
    for (uint32_t node = 0; node < report->memory_node_count; node++) {
        json_array_append_new(nodes,
                              json_pack("{s:o, s:o}", "load", dmg_node_activity_json(&report->memory_nodes[node].load),
                                        "run", dmg_node_activity_json(&report->memory_nodes[node].run)));
    }
    json_t *object = json_pack("{s:o, s:f}", "memory_nodes", nodes, "partition_imbalance", report->partition_imbalance);
    add_fields(report, FIELDS(partition_fields), object);
    return object;
}

dmg_status dmg_pool_report_from_json(const json_t *object, dmg_pool_report *report)
{
    memset(report, 0, sizeof *report);
    const json_t *nodes = json_object_get(object, "memory_nodes");
    const json_t *imbalance = json_object_get(object, "partition_imbalance");
    size_t count = json_array_size(nodes);
    if (!json_is_number(imbalance) || count > DMG_MEMORY_NODES_MAX) {
        return dmg_error(DMG_ERR_PROTOCOL, "a node's report about the pool is not one");
    }
    report->partition_imbalance = json_number_value(imbalance);
    report->memory_node_count = (uint32_t)count;
    dmg_status status = take_fields(object, FIELDS(partition_fields), report);
    for (size_t node = 0; node < count && status == DMG_OK; node++) {
        const json_t *both = json_array_get(nodes, node);
        dmg_node_activities *activities = &report->memory_nodes[node];
        status = take_fields(json_object_get(both, "load"), FIELDS(activity_fields), &activities->load);
        if (status == DMG_OK) {
            status = take_fields(json_object_get(both, "run"), FIELDS(activity_fields), &activities->run);
        }
    }
    return status;
}
