/*
 * Loading a graph into the pool with all workers of all ranks: each loads a share of the vertices.
 */
#include "core/engine/runtime.h"
#include "core/store/graph_store.h"

struct load {
    dmg_engine *engine;
    const dmg_graph *graph;
    _Atomic uint64_t *progress_arcs;
    uint32_t loaders; /* over all ranks */
};

/*
 * The vertex where loader `index` of `loaders` begins: vertices and arcs are counted alike, and batches are not cut.
 */
static uint64_t load_boundary(const dmg_graph *graph, uint32_t index, uint32_t loaders)
{
    if (index == loaders) {
        return graph->vertex_count;
    }
    uint64_t total = graph->vertex_count + graph->arc_count;
    uint64_t wanted = total / loaders * index;
    uint64_t low = 0;
    uint64_t high = graph->vertex_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (middle + graph->out.offsets[middle] < wanted) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    uint64_t rounded = (low + DMG_STORE_BATCH_VERTICES / 2) / DMG_STORE_BATCH_VERTICES * DMG_STORE_BATCH_VERTICES;
    return rounded < graph->vertex_count ? rounded : graph->vertex_count;
}

static void load_share(void *context, uint32_t index)
{
    const struct load *load = context;
    const dmg_engine *engine = load->engine;
    uint32_t loader = engine->job->rank * engine->options.threads + index;
    uint64_t first = load_boundary(load->graph, loader, load->loaders);
    uint64_t last = load_boundary(load->graph, loader + 1, load->loaders);
    dmg_status status = DMG_OK;
    if (first < last) {
        dmg_channel_set_purpose(engine->workers[index].channel, DMG_PURPOSE_OTHER);
        status = dmg_graph_store_load(engine->workers[index].channel, engine->store, engine->job->id, load->graph,
                                      first, last, load->progress_arcs);
    }
    dmg_worker_keep(&engine->workers[index], status);
}

dmg_status dmg_engine_load(dmg_engine *engine, const dmg_graph *graph, _Atomic uint64_t *progress_arcs)
{
    struct load load = {engine, graph, progress_arcs, engine->options.threads * engine->job->size};
    dmg_thread_team_run(engine->team, engine->options.threads, load_share, &load);
    dmg_status status = dmg_workers_collect(engine, engine->options.threads);
    if (status == DMG_OK) {
        status = dmg_engine_barrier(engine, NULL);
        dmg_client_acquire(engine->client); /* what others have loaded is read in place from now on */
    }
    engine->barriers = engine->barrier_ns = 0; /* those of a run are counted apart */
    return status == DMG_OK ? DMG_OK : dmg_engine_abort(engine, status);
}
