#include "cli/report/pool_watch.h"

#include "core/base/clock.h"

static dmg_status ask_all(const dmg_pool_watch *watch, dmg_node_activity *activities)
{
    dmg_status status = DMG_OK;
    for (uint32_t node = 0; node < watch->node_count && status == DMG_OK; node++) {
        status = dmg_pool_activity(watch->channel, (uint16_t)node, &activities[node]);
    }
    return status;
}

static double imbalance(const uint64_t *costs, uint32_t count)
{
    uint64_t most = 0;
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        most = costs[i] > most ? costs[i] : most;
        sum += (double)costs[i];
    }
    return sum > 0 ? (double)most * count / sum : 1;
}

dmg_status dmg_pool_watch_begin(dmg_pool_watch *watch, dmg_channel *channel, const dmg_graph_store *store)
{
    uint64_t first[DMG_PARTITIONS_MAX + 1];
    uint64_t costs[DMG_PARTITIONS_MAX];
    uint32_t partitions = store->shape.partition_count;
    watch->channel = channel;
    watch->node_count = dmg_client_node_count(dmg_channel_client(channel));
    watch->report.partition_ns = store->partition_ns;
    watch->report.tiny_chunk_count = store->tiny_chunk_count;
    uint64_t started_ns = dmg_now_ns();
    dmg_status status = dmg_graph_store_partition(channel, store, partitions, first, costs);
    watch->report.repartition_ns = dmg_now_ns() - started_ns;
    watch->report.partition_imbalance = status == DMG_OK ? imbalance(costs, partitions) : 0;
    return status == DMG_OK ? ask_all(watch, watch->start) : status;
}

dmg_status dmg_pool_watch_loaded(dmg_pool_watch *watch)
{
    return watch->channel ? ask_all(watch, watch->loaded) : DMG_OK;
}

dmg_status dmg_pool_watch_end(dmg_pool_watch *watch, dmg_pool_report *report)
{
    if (!watch->channel) {
        return DMG_OK;
    }
    dmg_node_activity now[DMG_MEMORY_NODES_MAX];
    dmg_status status = ask_all(watch, now);
    if (status != DMG_OK) {
        return status;
    }
    *report = watch->report;
    report->memory_node_count = watch->node_count;
    for (uint32_t node = 0; node < watch->node_count; node++) {
        report->memory_nodes[node] = (dmg_node_activities){.load = watch->loaded[node], .run = now[node]};
        dmg_node_activity_subtract(&report->memory_nodes[node].load, &watch->start[node]);
        dmg_node_activity_subtract(&report->memory_nodes[node].run, &watch->loaded[node]);
    }
    return DMG_OK;
}
