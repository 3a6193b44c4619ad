#include "core/engine/engine.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/engine/runtime.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS_IN_FLIGHT_DEFAULT 4
#define TASKS_IN_FLIGHT_MAX     64

/* ---- making and unmaking ---- */

static dmg_status check_options(const dmg_engine_options *options, const dmg_job *job, const dmg_graph_store *store)
{
    if (options->threads < 1 || options->threads > DMG_WORKERS_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "%u threads a compute node: between 1 and %d are possible", options->threads,
                         DMG_WORKERS_MAX);
    }
    if (options->tasks_in_flight > TASKS_IN_FLIGHT_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "%u tasks in flight: at most %d are possible", options->tasks_in_flight,
                         TASKS_IN_FLIGHT_MAX);
    }
    if (job->size > DMG_COMPUTE_NODES_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "%u compute nodes: at most %d can work on a graph together", job->size,
                         DMG_COMPUTE_NODES_MAX);
    }
    if (store->shape.partition_count < 1) {
        return dmg_error(DMG_ERR_ARGUMENT, "a graph store of no partitions: load the graph again");
    }
    return DMG_OK;
}

static dmg_pinning pinning_of(const dmg_engine_options *options)
{
    return !options->pin_threads ? DMG_PIN_NODES : options->allow_fallback ? DMG_PIN_CORES_IF_POSSIBLE : DMG_PIN_CORES;
}

static dmg_retrieval_step step_of(dmg_switch merge, dmg_switch batch)
{
    return (dmg_retrieval_step){.merges = merge == DMG_SWITCH_ON, .batches = batch == DMG_SWITCH_ON};
}

static void fill_in(uint32_t *option, uint32_t value)
{
    *option = *option == 0 ? value : *option;
}

static void fill_in_defaults(dmg_engine_options *options)
{
    fill_in(&options->tasks_in_flight, TASKS_IN_FLIGHT_DEFAULT);
    fill_in(&options->reschedule_degree, DMG_RESCHEDULE_DEGREE_DEFAULT);
    fill_in(&options->reference_edges, DMG_REFERENCE_EDGES_DEFAULT);
    fill_in(&options->reference_degree, DMG_REFERENCE_DEGREE_DEFAULT);
    fill_in(&options->reference_buffer_bytes, DMG_REFERENCE_BUFFER_BYTES_DEFAULT);
    fill_in(&options->value_buffer_bytes, DMG_VALUE_BUFFER_BYTES_DEFAULT);
}

static dmg_status open_worker(dmg_engine *engine, uint32_t index)
{
    dmg_worker *worker = &engine->workers[index];
    dmg_status status = dmg_channel_open(engine->client, &worker->channel);
    if (status == DMG_OK) {
        status = dmg_retrieval_create(&engine->retrieval_setup, worker->channel, index, &worker->retrieval);
    }
    if (status == DMG_OK) {
        status = dmg_update_coordinator_create(engine->client, worker->channel, engine->budget,
                                               engine->options.value_buffer_bytes, &worker->remote);
    }
    return status;
}

/* Workers open what they use one after the other, in any order, until one fails. */
struct opening {
    dmg_engine *engine;
    pthread_mutex_t lock;
    bool has_failed;
};

static void open_in_turn(void *context, uint32_t index)
{
    struct opening *opening = context;
    pthread_mutex_lock(&opening->lock);
    if (!opening->has_failed) {
        dmg_status status = open_worker(opening->engine, index);
        opening->has_failed = status != DMG_OK;
        dmg_worker_keep(&opening->engine->workers[index], status);
    }
    pthread_mutex_unlock(&opening->lock);
}

/* Each in its own thread: it is the first to use its buffers, so that they lie near to it (NUMA). */
static dmg_status open_workers(dmg_engine *engine)
{
    struct opening opening = {.engine = engine, .lock = PTHREAD_MUTEX_INITIALIZER};
    dmg_thread_team_run(engine->team, engine->options.threads, open_in_turn, &opening);
    return dmg_workers_collect(engine, engine->options.threads);
}

/* What all workers retrieve with. */
static dmg_status set_up_retrieval(dmg_engine *engine)
{
    const dmg_engine_options *options = &engine->options;
    const dmg_groups *groups = &engine->groups;
    engine->retrieval_setup =
        (dmg_retrieval_setup){.client = engine->client,
                              .budget = engine->budget,
                              .store = engine->store,
                              .first_partition = engine->first_partition,
                              .last_partition = engine->last_partition,
                              .rank = groups->member,
                              .ranks = groups->members,
                              .tasks = options->tasks_in_flight,
                              .activation = step_of(options->merge_activation, options->batch_activation),
                              .index = step_of(options->merge_index, options->batch_index),
                              .lists = step_of(options->merge_lists, options->batch_lists)};
    if (options->reschedule_degree == DMG_RESCHEDULE_NEVER) {
        return DMG_OK;
    }
    dmg_status status =
        dmg_reschedule_create(engine->budget, options->threads, options->reschedule_degree, &engine->reschedule);
    engine->retrieval_setup.reschedule = engine->reschedule;
    engine->retrieval_setup.steals = options->steal_segments == DMG_SWITCH_ON;
    return status;
}

dmg_status dmg_engine_create(dmg_client *client, dmg_channel *channel, dmg_job *job, const dmg_graph_store *store,
                             const dmg_engine_options *options, dmg_engine **out)
{
    *out = NULL;
    dmg_status status = check_options(options, job, store);
    if (status != DMG_OK) {
        return status;
    }
    dmg_engine *engine = aligned_alloc(64, (sizeof *engine + 63) / 64 * 64);
    if (!engine) {
        return dmg_error(DMG_ERR_MEMORY, "creating an engine: out of memory");
    }
    memset(engine, 0, sizeof *engine);
    engine->client = client;
    engine->channel = channel;
    engine->job = job;
    engine->store = store;
    dmg_client_acquire(client); /* the graph may be new in memory that this client has read in place before */
    engine->options = *options;
    fill_in_defaults(&engine->options);
    const dmg_groups *groups = &engine->groups;
    engine->groups = dmg_groups_of(job->rank, job->size, store->shape.partition_count, options->caching);
    engine->share = dmg_groups_own(groups, store->vertex_count);
    engine->first_partition = dmg_first_partition_of(store->shape.partition_count, groups->member, groups->members);
    engine->last_partition = dmg_first_partition_of(store->shape.partition_count, groups->member + 1, groups->members);
    engine->first_vertex = store->partition_first[engine->first_partition];
    engine->last_vertex = store->partition_first[engine->last_partition];
    status = dmg_update_method_choose(dmg_client_capabilities(client), options->updates, &engine->update_method);
    if (status == DMG_OK) {
        status = dmg_budget_create(options->cache_bytes, &engine->budget);
    }
    if (status == DMG_OK) {
        status = dmg_thread_team_create(options->threads, pinning_of(options), &engine->team);
    }
    if (status == DMG_OK) {
        engine->workers = aligned_alloc(64, options->threads * sizeof *engine->workers);
        if (engine->workers) {
            memset(engine->workers, 0, options->threads * sizeof *engine->workers);
        } else {
            status = dmg_error(DMG_ERR_MEMORY, "creating %u workers: out of memory", options->threads);
        }
    }
    if (status == DMG_OK) {
        status = set_up_retrieval(engine);
    }
    if (status == DMG_OK) {
        status = open_workers(engine);
    }
    if (status != DMG_OK) {
        dmg_engine_destroy(engine);
        return status;
    }
    *out = engine;
    return DMG_OK;
}

void dmg_engine_destroy(dmg_engine *engine)
{
    if (!engine) {
        return;
    }
    dmg_thread_team_destroy(engine->team);
    for (uint32_t i = 0; engine->workers && i < engine->options.threads; i++) {
        /* First: after an error, what is in flight ends here, and its buffers and completions are theirs. */
        dmg_channel_close(engine->workers[i].channel);
        dmg_update_coordinator_destroy(&engine->workers[i].remote);
        dmg_retrieval_destroy(engine->workers[i].retrieval);
    }
    dmg_reschedule_destroy(engine->reschedule);
    for (uint32_t i = 0; i < 2; i++) {
        dmg_cached_index_destroy(engine->budget, &engine->cached_indices[i]);
    }
    free(engine->workers);
    free(engine->iterations);
    dmg_budget_destroy(engine->budget);
    free(engine);
}

dmg_update_method dmg_engine_update_method(const dmg_engine *engine)
{
    return engine->update_method;
}

const dmg_budget *dmg_engine_budget(const dmg_engine *engine)
{
    return engine->budget;
}

uint32_t dmg_engine_pinned_workers(const dmg_engine *engine)
{
    return dmg_thread_team_pinned(engine->team);
}

void dmg_engine_counters(const dmg_engine *engine, dmg_counters *counters)
{
    *counters = *dmg_channel_counters(engine->channel);
    for (uint32_t i = 0; i < engine->options.threads; i++) {
        dmg_counters_add(counters, dmg_channel_counters(engine->workers[i].channel));
    }
}

void dmg_engine_traffic(const dmg_engine *engine, uint16_t node, dmg_node_traffic *traffic)
{
    *traffic = (dmg_node_traffic){0};
    for (uint32_t i = 0; i <= engine->options.threads; i++) {
        const dmg_channel *channel = i == 0 ? engine->channel : engine->workers[i - 1].channel;
        const dmg_node_traffic *more = dmg_channel_traffic(channel, node);
        if (more) {
            traffic->operations += more->operations;
            traffic->read_bytes += more->read_bytes;
            traffic->write_bytes += more->write_bytes;
        }
    }
}

/* ---- errors ---- */

void dmg_worker_keep(dmg_worker *worker, dmg_status status)
{
    worker->error.status = DMG_OK;
    dmg_error_keep(&worker->error, status);
}

dmg_status dmg_workers_collect(dmg_engine *engine, uint32_t workers)
{
    for (uint32_t i = 0; i < workers; i++) {
        if (engine->workers[i].error.status != DMG_OK) {
            return dmg_error_restore(&engine->workers[i].error);
        }
    }
    return DMG_OK;
}

dmg_status dmg_engine_abort(dmg_engine *engine, dmg_status status)
{
    dmg_kept_error kept = {0};
    dmg_error_keep(&kept, status);
    (void)dmg_job_abort(engine->channel, engine->job, status, kept.sentence, NULL);
    return dmg_error_restore(&kept);
}

dmg_status dmg_engine_check_direction(const dmg_engine *engine)
{
    if (engine->options.direction == DMG_DIRECTION_PULL && !dmg_graph_store_index(engine->store, true)) {
        return dmg_error(DMG_ERR_ARGUMENT, "pulling needs lists against the arcs, and this graph was loaded without; "
                                           "load it with both directions");
    }
    return DMG_OK;
}

/* ---- phases and barriers ---- */

dmg_worker_clock dmg_worker_begin(const dmg_worker *worker)
{
    return (dmg_worker_clock){dmg_now_ns(), dmg_channel_counters(worker->channel)->wait_ns};
}

void dmg_worker_end(dmg_worker *worker, const dmg_worker_clock *clock)
{
    worker->busy_ns += dmg_now_ns() - clock->begun_ns;
    worker->wait_ns += dmg_channel_counters(worker->channel)->wait_ns - clock->wait_ns;
}

void dmg_worker_note_stray(dmg_worker *worker, dmg_stray stray, uint64_t vertex)
{
    if (worker->stray == DMG_STRAY_NONE) {
        worker->stray = stray;
        worker->stray_vertex = (uint32_t)vertex;
    }
}

/* The memory node that has a vertex's list: in the vertex index, or where that says, which is asked once more. */
static uint32_t node_of_list(dmg_channel *channel, const dmg_graph_store *store, const dmg_range_array *index,
                             uint32_t vertex)
{
    uint8_t entry[DMG_INDEX_ENTRY_BYTES_MAX];
    dmg_completion completion = {0};
    dmg_range_array_post_read(channel, index, vertex, 1, entry, &completion);
    bool is_known = dmg_wait(channel, &completion) == DMG_OK;
    return is_known && !dmg_index_entry_is_in_place(&store->shape, entry)
               ? dmg_address_node(dmg_index_entry_list(entry))
               : dmg_address_node(dmg_range_array_address(index, vertex));
}

/* What the pool holds was not believed: say what and where. */
static dmg_status stray_error(dmg_engine *engine, dmg_worker *worker, const dmg_retrieval_plan *plan)
{
    uint32_t vertex = worker->stray_vertex;
    bool is_edge = worker->stray == DMG_STRAY_EDGE;
    worker->stray = DMG_STRAY_NONE;
    if (!is_edge) {
        return dmg_error(DMG_ERR_CORRUPT,
                         "an activation bitmap in the pool has bits for vertices from %u on, and the graph has %" PRIu64
                         ": run again, and load the graph again if it stays",
                         vertex, engine->store->vertex_count);
    }
    uint32_t node = node_of_list(worker->channel, engine->store, plan->index, vertex);
    return dmg_error(DMG_ERR_CORRUPT,
                     "the list of vertex %u, on memory node %u, has an edge that leads to no vertex, or to one of "
                     "another partition than its place says: load the graph again",
                     vertex, node);
}

struct phase {
    dmg_engine *engine;
    const dmg_retrieval_plan *plan;
};

static void run_phase(void *context, uint32_t index)
{
    const struct phase *phase = context;
    dmg_worker *worker = &phase->engine->workers[index];
    dmg_worker_clock clock = dmg_worker_begin(worker);
    dmg_status status = dmg_retrieval_run(worker->retrieval, phase->plan, &phase->engine->chunks);
    if (status == DMG_OK && worker->stray != DMG_STRAY_NONE) {
        status = stray_error(phase->engine, worker, phase->plan);
    }
    if (status == DMG_OK) {
        status = dmg_update_coordinator_flush(&worker->remote);
    }
    if (status == DMG_OK && phase->plan->finish) {
        status = phase->plan->finish(phase->plan->context, index);
    }
    dmg_worker_keep(worker, status);
    dmg_worker_end(worker, &clock);
}

/* Chunks as far as they are left. */
static dmg_status run_chunks(dmg_engine *engine, const dmg_retrieval_plan *plan, uint32_t workers)
{
    struct phase phase = {engine, plan};
    dmg_thread_team_run(engine->team, workers, run_phase, &phase);
    return dmg_workers_collect(engine, workers);
}

static dmg_status run_plan(dmg_engine *engine, const dmg_retrieval_plan *plan, uint32_t workers)
{
    dmg_chunks_reset_block_cyclic(&engine->chunks, plan->first, plan->last, &plan->share, workers,
                                  dmg_retrieval_chunk_vertices(&engine->retrieval_setup, plan));
    return run_chunks(engine, plan, workers);
}

static void keep_entries(void *context, dmg_chunk *chunk, const dmg_vertex_edges *edges, uint32_t count)
{
    (void)edges;
    (void)count;
    dmg_cached_index_put(context, chunk->first, chunk->count, chunk->streams[0]);
}

/* The entries that a plan wants, kept in memory; read now if they are not there yet. */
static dmg_status cache_index(dmg_engine *engine, const dmg_retrieval_plan *plan, const dmg_cached_index **found)
{
    dmg_cached_index *cached = &engine->cached_indices[plan->index == &engine->store->in_index];
    *found = cached;
    if (dmg_cached_index_has(cached, plan->index, plan->first, plan->last)) {
        return DMG_OK;
    }
    dmg_cached_index_destroy(engine->budget, cached);
    bool owns_all = engine->retrieval_setup.first_partition == 0 &&
                    engine->retrieval_setup.last_partition == engine->store->shape.partition_count;
    dmg_status status =
        dmg_cached_index_create(engine->budget, engine->store, plan->index, plan->first, plan->last, owns_all, cached);
    if (status != DMG_OK) {
        return status;
    }
    const dmg_retrieval_plan reading = {.first = plan->first,
                                        .last = plan->last,
                                        .stream_count = 1,
                                        .streams = {{plan->index, 1, DMG_STREAM_READ}},
                                        .stream_purpose = DMG_PURPOSE_INDEX,
                                        .apply = keep_entries,
                                        .context = cached};
    status = run_plan(engine, &reading, engine->options.threads);
    if (status != DMG_OK) {
        dmg_cached_index_destroy(engine->budget, cached);
    }
    return status;
}

dmg_status dmg_engine_phase(dmg_engine *engine, const dmg_retrieval_plan *plan, uint32_t workers)
{
    if (!engine->options.cache_index || !plan->index) {
        return run_plan(engine, plan, workers);
    }
    dmg_retrieval_plan with_cache = *plan;
    dmg_status status = cache_index(engine, plan, &with_cache.cached_index);
    return status == DMG_OK ? run_plan(engine, &with_cache, workers) : status;
}

dmg_status dmg_engine_resume_phase(dmg_engine *engine, const dmg_retrieval_plan *plan, uint32_t workers)
{
    if (!engine->options.cache_index || !plan->index) {
        return run_chunks(engine, plan, workers);
    }
    /* The entries are there since the phase began: nothing is read, and the chunks stay as they are. */
    dmg_retrieval_plan with_cache = *plan;
    dmg_status status = cache_index(engine, plan, &with_cache.cached_index);
    return status == DMG_OK ? run_chunks(engine, &with_cache, workers) : status;
}

dmg_status dmg_engine_barrier(dmg_engine *engine, dmg_reduction *reduction)
{
    for (uint32_t node = 0; node < dmg_client_node_count(engine->client); node++) {
        dmg_status status = dmg_client_node_status(engine->client, (uint16_t)node);
        if (status != DMG_OK) {
            return status;
        }
    }
    engine->barriers++;
    if (engine->job->size == 1) {
        return DMG_OK; /* what is reduced over one rank is what it was */
    }
    uint64_t started_ns = dmg_now_ns();
    dmg_status status = dmg_job_barrier(engine->channel, engine->job, reduction);
    engine->barrier_ns += dmg_now_ns() - started_ns;
    return status;
}

/* ---- arrays ---- */

/* What an array should be. */
struct array_shape {
    uint64_t count;
    uint32_t element_bytes;
    uint32_t range_elements; /* see dmg_range_array_check */
};

/* Rank 0 has made the array, or failed to; all ranks get its descriptor, and do not believe it. */
static dmg_status share_array(dmg_engine *engine, dmg_status status, const struct array_shape *shape,
                              dmg_range_array *array)
{
    char name[DMG_CATALOG_NAME_BYTES];
    snprintf(name, sizeof name, "job/%016llx/array/%u", (unsigned long long)engine->job->id, engine->arrays_shared++);
    if (status == DMG_OK && engine->job->rank == 0) {
        status = dmg_catalog_put(engine->channel, engine->job->id, name, array, sizeof *array);
    }
    if (status == DMG_OK) {
        status = dmg_engine_barrier(engine, NULL);
    }
    if (status == DMG_OK && engine->job->rank != 0) {
        size_t bytes = sizeof *array;
        status = dmg_catalog_get(engine->channel, name, array, &bytes);
        if (status == DMG_OK && bytes != sizeof *array) {
            status = dmg_error(DMG_ERR_PROTOCOL, "the descriptor of array %s has %zu bytes instead of %zu", name, bytes,
                               sizeof *array);
        }
        if (status == DMG_OK) {
            status =
                dmg_range_array_check(array, shape->count, shape->element_bytes, shape->range_elements, engine->client);
            status = status == DMG_OK ? DMG_OK : dmg_error_prefix(status, "the descriptor of %s in the catalog", name);
        }
    }
    return status;
}

dmg_status dmg_engine_array(dmg_engine *engine, uint64_t count, uint32_t element_bytes, dmg_range_array *array)
{
    dmg_status status = DMG_OK;
    if (engine->job->rank == 0) {
        status = dmg_range_array_allocate(engine->channel, engine->job->id, count, element_bytes, array);
    }
    const struct array_shape shape = {count, element_bytes, 1};
    return share_array(engine, status, &shape, array);
}

dmg_status dmg_engine_vertex_array(dmg_engine *engine, uint32_t element_bytes, dmg_range_array *array)
{
    dmg_status status = DMG_OK;
    if (engine->job->rank == 0) {
        status = dmg_range_array_allocate_beside(engine->channel, engine->job->id, &engine->store->out_degrees, 1,
                                                 element_bytes, array);
    }
    const struct array_shape shape = {engine->store->out_degrees.count, element_bytes, 64};
    return share_array(engine, status, &shape, array);
}

dmg_status dmg_engine_bitmap(dmg_engine *engine, const dmg_range_array *beside, dmg_range_array *array)
{
    dmg_status status = DMG_OK;
    if (engine->job->rank == 0) {
        status = dmg_range_array_allocate_beside(engine->channel, engine->job->id, beside, 64, 8, array);
    }
    const struct array_shape shape = {(beside->count + 63) / 64, sizeof(uint64_t), 1};
    return share_array(engine, status, &shape, array);
}

void dmg_engine_set_target(dmg_engine *engine, dmg_update_method method, const dmg_update_target *target)
{
    for (uint32_t i = 0; i < engine->options.threads; i++) {
        dmg_update_coordinator_set_target(&engine->workers[i].remote, method, target);
    }
}
