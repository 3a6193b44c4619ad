/*
 * One store for all ranks of a job: the first makes it, the others find its descriptor in the catalog.
 */
#include "core/base/error.h"
#include "core/store/graph_store.h"

#include <inttypes.h>

static dmg_status publish(dmg_channel *channel, const dmg_job *job, const char *name, const dmg_graph *graph,
                          const dmg_store_options *options, dmg_graph_store *store)
{
    dmg_store_options of_job = *options;
    of_job.job = job->id;
    dmg_status status = dmg_graph_store_create(channel, graph, &of_job, store);
    if (status == DMG_OK) {
        status = dmg_catalog_put(channel, job->id, name, store, sizeof *store);
    }
    return status;
}

static dmg_status find(dmg_channel *channel, const char *name, const dmg_graph *graph, dmg_graph_store *store)
{
    size_t bytes = sizeof *store;
    dmg_status status = dmg_catalog_get(channel, name, store, &bytes);
    if (status == DMG_OK) {
        status = dmg_graph_store_check(store, bytes, dmg_channel_client(channel));
    }
    /* Each rank loads from its own graph, which may come from another file or machine than that of rank 0. */
    if (status == DMG_OK &&
        (store->vertex_count != graph->vertex_count || store->arc_count != graph->arc_count ||
         store->weight_kind != (uint32_t)graph->weight_kind || store->is_directed != graph->is_directed)) {
        status = dmg_error(DMG_ERR_ARGUMENT,
                           "this compute node has a graph of %" PRIu64 " vertices and %" PRIu64
                           " arcs, compute node 0 another one, of %" PRIu64 " and %" PRIu64
                           ": all must load the same graph in the same way",
                           graph->vertex_count, graph->arc_count, store->vertex_count, store->arc_count);
    }
    return status;
}

dmg_status dmg_graph_store_share(dmg_channel *channel, dmg_job *job, const char *name, const dmg_graph *graph,
                                 const dmg_store_options *options, dmg_graph_store *store)
{
    dmg_status status = DMG_OK;
    if (job->rank == 0) {
        status = publish(channel, job, name, graph, options, store);
    }
    if (status == DMG_OK) {
        status = dmg_job_barrier(channel, job, NULL);
    }
    if (status == DMG_OK && job->rank != 0) {
        status = find(channel, name, graph, store);
    }
    return status;
}
