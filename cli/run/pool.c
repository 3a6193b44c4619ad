/*
 * What is different about a run on a graph in a long-lived pool: the memory nodes are there, the graph's facts come
 * from the pool's catalog, its ids (and, to verify, its lists) from the pool's memory. No graph file is needed.
 */
#include "cli/run/run.h"

#include "cli/base/descriptors.h"
#include "cli/base/text.h"
#include "cli/pool/graph.h"
#include "cli/run/systems.h"
#include "core/base/error.h"
#include "core/store/graph_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

dmg_status dmg_run_pool_settings(dmg_run *run)
{
    static const dmg_option_id fixed[] = {DMG_OPTION_TRANSPORT, DMG_OPTION_TRUST_NETWORK, DMG_OPTION_MNS,
                                          DMG_OPTION_MEMORY,    DMG_OPTION_PARTITIONS,    DMG_OPTION_INDEX_ENTRY_BYTES,
                                          DMG_OPTION_EMBED,     DMG_OPTION_TINY_CHUNKS,   DMG_OPTION_NUMA_NODE,
                                          DMG_OPTION_PAGE_SIZE, DMG_OPTION_PREFAULT,      DMG_OPTION_FORMAT,
                                          DMG_OPTION_DIRECTED,  DMG_OPTION_UNDIRECTED,    DMG_OPTION_UNWEIGHTED,
                                          DMG_OPTION_DEDUP,     DMG_OPTION_NO_LOOPS,      DMG_OPTION_OUT_LISTS_ONLY};
    dmg_settings *settings = run->settings;
    const dmg_pool_file *file = &run->pool->file;
    for (size_t index = 0; run->algorithm && index < sizeof fixed / sizeof fixed[0]; index++) {
        if (settings->values[fixed[index]].is_given) {
            return dmg_error(
                DMG_ERR_ARGUMENT,
                "run: --%s cannot be chosen with --pool: it was, when the pool was started or the graph loaded",
                dmg_option_get(fixed[index])->name);
        }
    }
    if (!settings->values[DMG_OPTION_PEER_TIMEOUT].is_given) {
        dmg_set_number(settings, DMG_OPTION_PEER_TIMEOUT, file->peer_timeout_ns);
    }
    run->pool->peer_timeout_ns = dmg_number(settings, DMG_OPTION_PEER_TIMEOUT);
    settings->values[DMG_OPTION_TRANSPORT].text = file->transport;
    dmg_set_number(settings, DMG_OPTION_MNS, file->node_count);
    run->mn_count = file->node_count;
    memcpy(run->token, file->token, sizeof run->token);
    for (uint32_t node = 0; node < file->node_count; node++) {
        dmg_run_memory_node *mn = &run->mns[node];
        mn->pid = file->nodes[node].process.pid;
        mn->segment_bytes = file->nodes[node].segment_bytes;
        memcpy(mn->address, file->nodes[node].address, sizeof mn->address);
    }
    return DMG_OK;
}

/** Whether this algorithm can work on the graph as it was loaded. */
static dmg_status check_fitness(const dmg_run *run)
{
    const dmg_graph_store *store = &run->entry.store;
    const char *embed = dmg_system_value(run->settings, DMG_OPTION_EMBED);
    if (embed && (store->shape.in_place_degree_max > 0) != (strcmp(embed, "on") == 0)) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "run: --system %s wants a graph that was loaded with --embed %s, which '%s' was not",
                         dmg_value_text(run->settings, DMG_OPTION_SYSTEM), embed, run->path);
    }
    if (!store->has_out) {
        return dmg_error(DMG_ERR_ARGUMENT, "run: the graph '%s' was loaded without the lists along the arcs",
                         run->path);
    }
    if (run->algorithm->needs_in && store->is_directed && !store->has_in) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "run: %s needs the lists against the arcs; load the graph '%s' without --out-lists-only",
                         run->algorithm->name, run->path);
    }
    return DMG_OK;
}

/** What the graph was loaded as, for the echo of the settings. */
static void show_store(dmg_run *run)
{
    static const char *const entry_bytes[] = {"16", "32", "64", "128"};
    const dmg_graph_store *store = &run->entry.store;
    for (uint32_t index = 0; index < sizeof entry_bytes / sizeof entry_bytes[0]; index++) {
        if (store->shape.entry_bytes == UINT32_C(16) << index) {
            dmg_set_number(run->settings, DMG_OPTION_INDEX_ENTRY_BYTES, index);
            run->settings->values[DMG_OPTION_INDEX_ENTRY_BYTES].text = entry_bytes[index];
        }
    }
    bool embeds = store->shape.in_place_degree_max > 0;
    dmg_set_number(run->settings, DMG_OPTION_EMBED, embeds ? DMG_SWITCH_ON : DMG_SWITCH_OFF);
    run->settings->values[DMG_OPTION_EMBED].text = embeds ? "on" : "off";
    dmg_set_number(run->settings, DMG_OPTION_TINY_CHUNKS, store->tiny_chunk_count);
}

dmg_status dmg_run_pool_check_limits(const dmg_run *run)
{
    return dmg_pool_client_check_limits(run->pool, run->cn_count, run->threads + DMG_CLIENT_OTHER_CHANNELS);
}

dmg_status dmg_run_pool_attach(void *context)
{
    dmg_run *run = context;
    dmg_pool_client *pool = run->pool;
    dmg_graph *graph = &run->source.graph;
    dmg_status status = dmg_pool_client_open(pool);
    if (status == DMG_OK) {
        status = dmg_run_pool_check_limits(run);
    }
    if (status == DMG_OK) {
        status = dmg_graph_use(pool->channel, pool->hold.id, run->path, &run->entry);
    }
    if (status == DMG_OK) {
        status = check_fitness(run);
    }
    if (status == DMG_OK) {
        bool is_to_be_verified = dmg_flag(run->settings, DMG_OPTION_VERIFY);
        status = dmg_graph_store_read(pool->channel, &run->entry.store, is_to_be_verified, graph);
    }
    if (status != DMG_OK) {
        return status;
    }
    graph->loop_arcs = run->entry.loop_arcs;
    graph->repeated_arcs = run->entry.repeated_arcs;
    graph->negative_line = run->entry.negative_line;
    memcpy(graph->negative_source, run->entry.negative_source, sizeof graph->negative_source);
    if (!run->algorithm->uses_weights) {
        run->source.ignores_weights = true;
        graph->weight_kind = DMG_WEIGHT_NONE;
        graph->out.weights = NULL;
        graph->in.weights = NULL;
    }
    run->with_in = run->entry.store.has_in;
    run->partitions = run->entry.store.shape.partition_count;
    show_store(run);
    return DMG_OK;
}

dmg_status dmg_run_pool_source(void *context)
{
    dmg_run *run = context;
    uint64_t vertex = 0;
    uint64_t vertex_count = run->entry.store.vertex_count;
    dmg_status status = dmg_graph_store_first_source(run->pool->channel, &run->entry.store, &vertex);
    if (status == DMG_OK && vertex_count > 0) {
        run->parameters.source = vertex < vertex_count ? (uint32_t)vertex : 0;
    }
    return status;
}

dmg_status dmg_run_pool_usage(void *context)
{
    dmg_run *run = context;
    dmg_status status = DMG_OK;
    for (uint32_t node = 0; node < run->mn_count && status == DMG_OK; node++) {
        uint64_t allocated = 0;
        status = dmg_pool_usage(run->pool->channel, (uint16_t)node, &allocated, &run->mns[node].peak_bytes,
                                &run->mns[node].segment_bytes);
    }
    return status;
}

static const char *weights_in_words(const dmg_run *run)
{
    switch ((dmg_weight_kind)run->entry.store.weight_kind) {
    case DMG_WEIGHT_NONE:
        return "no weights";
    case DMG_WEIGHT_INT32:
        return run->source.ignores_weights ? "integer weights (not used)" : "integer weights";
    case DMG_WEIGHT_FLOAT32:
        return run->source.ignores_weights ? "float weights (not used)" : "float weights";
    }
    return "weights";
}

void dmg_run_pool_print_graph(FILE *to, const dmg_run *run)
{
    const dmg_graph_store *store = &run->entry.store;
    fprintf(to, "graph      %s in the pool %s (%s), loaded from %s\n", run->path, run->pool->file.name,
            dmg_text_bytes(run->entry.pool_bytes).text, run->entry.source);
    fprintf(to, "           %s vertices, %s arcs, %s, %s, %" PRIu32 " partition%s\n",
            dmg_text_count(store->vertex_count).text, dmg_text_count(store->arc_count).text,
            store->is_directed ? "directed" : "undirected", weights_in_words(run), store->shape.partition_count,
            store->shape.partition_count == 1 ? "" : "s");
}

json_t *dmg_run_pool_graph_json(const dmg_run *run)
{
    json_t *object = dmg_graph_entry_json(run->path, &run->entry, NULL);
    json_object_set_new(object, "pool", json_string(run->pool->file.name));
    const dmg_graph *graph = &run->source.graph;
    if (graph->vertex_count > 0) {
        json_object_set_new(object, "smallest_id", dmg_json_id(dmg_graph_id(graph, 0)));
        json_object_set_new(object, "largest_id",
                            dmg_json_id(dmg_graph_id(graph, (uint32_t)(graph->vertex_count - 1))));
    }
    return object;
}
