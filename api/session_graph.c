/*
 * The graph of a session: from a file into the pool, and its vertices and their ids.
 */
#include "api/session_state.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "formats/graph_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A search that has come so near reads all that is left at once. */
#define SEARCH_BLOCK UINT64_C(512)

/* ---- loading ---- */

static dmg_status check_options(const dmg_load_options *options)
{
    if ((unsigned int)options->direction > DMG_LOAD_UNDIRECTED) {
        return dmg_error(DMG_ERR_ARGUMENT, "loading a graph: %d is no direction", (int)options->direction);
    }
    return DMG_OK;
}

static dmg_read_options reading_options(const dmg_load_options *options)
{
    static const dmg_direction_choice directions[] = {[DMG_LOAD_BY_FILE] = DMG_DIRECTION_BY_FILE,
                                                      [DMG_LOAD_DIRECTED] = DMG_DIRECTION_DIRECTED,
                                                      [DMG_LOAD_UNDIRECTED] = DMG_DIRECTION_UNDIRECTED};
    return (dmg_read_options){.format = options->is_edge_list ? DMG_FORMAT_EDGE_LIST : DMG_FORMAT_AUTO,
                              .direction = directions[options->direction],
                              .weights = options->ignore_weights ? DMG_WEIGHTS_IGNORED : DMG_WEIGHTS_BY_FILE,
                              .drop_repeats = options->drop_repeats,
                              .drop_loops = options->drop_loops,
                              .with_reverse = !options->out_lists_only};
}

/* The store is there: fill it, together with the other ranks. */
static dmg_status fill_store(dmg_session *session, dmg_job *job, const dmg_graph *graph)
{
    const dmg_engine_options options = {.threads = session->threads, .cache_bytes = session->cache_bytes};
    dmg_engine *engine = NULL;
    dmg_status status = dmg_engine_create(session->client, session->channel, job, &session->store, &options, &engine);
    if (status == DMG_OK) {
        status = dmg_engine_load(engine, graph, NULL);
    }
    dmg_engine_destroy(engine);
    return status;
}

static uint64_t first_source(const dmg_graph *graph)
{
    uint64_t vertex = 0;
    while (vertex < graph->vertex_count && graph->out.offsets[vertex] == graph->out.offsets[vertex + 1]) {
        vertex++;
    }
    return vertex < graph->vertex_count ? vertex : 0;
}

static dmg_status load_graph(dmg_session *session, dmg_job *job, const char *path, const dmg_load_options *options)
{
    char name[DMG_CATALOG_NAME_BYTES];
    snprintf(name, sizeof name, "%s/store/%" PRIu64, session->name, session->steps);
    const dmg_read_options reading = reading_options(options);
    const dmg_store_options storing = {
        .partition_count = session->size, .with_out = true, .with_in = !options->out_lists_only};
    dmg_graph graph = {0};
    dmg_status status = dmg_graph_read(path, &reading, &graph, NULL);
    if (status != DMG_OK) {
        return status;
    }
    status = dmg_graph_store_share(session->channel, job, name, &graph, &storing, &session->store);
    if (status == DMG_OK) {
        status = fill_store(session, job, &graph);
    }
    session->first_source = first_source(&graph);
    session->negative_line = graph.negative_line;
    memcpy(session->negative_source, graph.negative_source, sizeof session->negative_source);
    dmg_graph_close(&graph);
    return status;
}

static void forget_graph(dmg_session *session)
{
    dmg_session_leave(session, &session->run_job);
    dmg_session_leave(session, &session->graph_job);
    memset(&session->values, 0, sizeof session->values);
    memset(&session->store, 0, sizeof session->store);
}

dmg_status dmg_session_load(dmg_session *session, const char *path, const dmg_load_options *options)
{
    static const dmg_load_options defaults;
    const dmg_load_options *wanted = options ? options : &defaults;
    if (!session || !path) {
        return dmg_error(DMG_ERR_ARGUMENT, "loading a graph: %s is missing", session ? "its path" : "the session");
    }
    dmg_status status = check_options(wanted);
    if (status != DMG_OK) {
        return status;
    }
    forget_graph(session);
    dmg_job job = {0};
    status = dmg_session_step_begin(session, "graph", &job);
    if (status != DMG_OK) {
        return status;
    }
    status = load_graph(session, &job, path, wanted);
    if (status == DMG_ERR_MEMORY && session->local) {
        dmg_error_prefix(status, "loading %s into %u memory nodes of %" PRIu64 " bytes each (memory_bytes)", path,
                         dmg_local_pool_node_count(session->local), session->memory_bytes);
    }
    if (status != DMG_OK) {
        memset(&session->store, 0, sizeof session->store);
        return dmg_session_step_fail(session, &job, status);
    }
    session->graph_job = job;
    return DMG_OK;
}

/* ---- vertices and ids ---- */

uint64_t dmg_session_vertex_count(const dmg_session *session)
{
    return session ? session->store.vertex_count : 0;
}

uint64_t dmg_session_arc_count(const dmg_session *session)
{
    return session ? session->store.arc_count : 0;
}

dmg_status dmg_session_ids(dmg_session *session, uint64_t first, uint64_t count, uint64_t *ids)
{
    dmg_status status = dmg_session_need_graph(session);
    if (status == DMG_OK) {
        status = dmg_session_check_range(session, first, count);
    }
    if (status == DMG_OK && count > 0 && !ids) {
        status = dmg_error(DMG_ERR_ARGUMENT, "reading ids: there is no place to put them");
    }
    if (status != DMG_OK) {
        return status;
    }
    if (session->store.has_ids) {
        return dmg_session_read(session, &session->store.ids, first, count, ids);
    }
    for (uint64_t index = 0; index < count; index++) {
        ids[index] = session->store.first_id + first + index;
    }
    return DMG_OK;
}

/* Where this id is, or would be near: the ids ascend. There is at least one vertex. */
static dmg_status search(dmg_session *session, uint64_t id, uint64_t *vertex, uint64_t *id_found)
{
    const dmg_range_array *array = &session->store.ids;
    uint64_t low = 0;
    uint64_t high = session->store.vertex_count;
    while (high - low > SEARCH_BLOCK) {
        uint64_t middle = low + (high - low) / 2;
        uint64_t middle_id;
        dmg_status status = dmg_session_read(session, array, middle, 1, &middle_id);
        if (status != DMG_OK) {
            return status;
        }
        if (middle_id <= id) {
            low = middle;
        } else {
            high = middle;
        }
    }
    uint64_t block[SEARCH_BLOCK];
    dmg_status status = dmg_session_read(session, array, low, high - low, block);
    if (status != DMG_OK) {
        return status;
    }
    uint64_t index = 0;
    while (index + 1 < high - low && block[index] < id) {
        index++;
    }
    *vertex = low + index;
    *id_found = block[index];
    return DMG_OK;
}

static dmg_status unknown_id(uint64_t id)
{
    return dmg_error(DMG_ERR_NOT_FOUND, "no vertex of the graph has the id %" PRIu64, id);
}

dmg_status dmg_session_find(dmg_session *session, uint64_t id, uint64_t *vertex)
{
    dmg_status status = dmg_session_need_graph(session);
    if (status == DMG_OK && !vertex) {
        status = dmg_error(DMG_ERR_ARGUMENT, "finding the vertex with id %" PRIu64 ": there is no place to put it", id);
    }
    if (status != DMG_OK) {
        return status;
    }
    const dmg_graph_store *store = &session->store;
    if (!store->has_ids) {
        if (id < store->first_id || id - store->first_id >= store->vertex_count) {
            return unknown_id(id);
        }
        *vertex = id - store->first_id;
        return DMG_OK;
    }
    if (store->vertex_count == 0) {
        return unknown_id(id);
    }
    uint64_t found;
    uint64_t found_id;
    status = search(session, id, &found, &found_id);
    if (status == DMG_OK && found_id != id) {
        status = unknown_id(id);
    }
    if (status == DMG_OK) {
        *vertex = found;
    }
    return status;
}
