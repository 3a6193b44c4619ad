#include "core/engine/program/monotone.h"

#include "core/base/clock.h"
#include "core/base/error.h"

#include <string.h>

/* An iteration that walks less than a twentieth of the arcs is sparse (the threshold that Ligra uses). */
#define DENSE_ARCS_SHARE 20
/*
 * A sparse iteration of so many arcs still updates directly. Over ucx's shared memory 85,000 updates took 15 ms
 * directly and 8 ms by value: a batch by value is one message, and the same batch takes thousands of operations.
 */
#define DIRECT_ARCS_MAX 256
/* Below so many active vertices waking the other workers costs more than they do. */
#define ONE_WORKER_VERTICES 512
/* After a sparse iteration the next one's arcs are counted only when so large a share of the vertices is active. */
#define MEASURE_VERTICES_SHARE 256

/* What an edge costs, in units of one edge read in sequence: looking at a cached attribute, lowering one, updating a
 * remote one. */
#define COST_LOWER          4
#define COST_REMOTE_MAPPED  16
#define COST_REMOTE_BY_LINK 256
/* A vertex that pulls from a frontier finds a source after a fraction of its edges (Beamer's alpha is 15, with pushing
 * at COST_LOWER). */
#define PULL_SHARE 4

enum { REDUCE_VERTICES, REDUCE_ARCS };

/* What the barrier at the end of an iteration tells of the next one, the same on all ranks. */
struct frontier_size {
    uint64_t vertices;
    uint64_t arcs;
};

/* ---- plans ---- */

static const dmg_range_array *this_activation(const dmg_monotone_run *run)
{
    return &run->activation[run->current];
}

static const dmg_range_array *next_activation(const dmg_monotone_run *run)
{
    return &run->activation[1 - run->current];
}

/* A phase over all vertices that this rank caches. */
static dmg_retrieval_plan plan_cached(dmg_monotone_run *run, dmg_phase_apply apply)
{
    return (dmg_retrieval_plan){.first = run->first, .last = run->last, .apply = apply, .context = run};
}

/* A phase over this rank's vertices: of those that it caches, its group's share. */
static dmg_retrieval_plan plan_own(dmg_monotone_run *run, dmg_phase_apply apply)
{
    dmg_retrieval_plan plan = plan_cached(run, apply);
    plan.share = run->engine->share;
    return plan;
}

static void add_stream(dmg_retrieval_plan *plan, const dmg_range_array *array, uint32_t vertices_an_element,
                       dmg_stream_mode mode)
{
    plan->streams[plan->stream_count++] = (dmg_stream){array, vertices_an_element, mode};
}

/*
 * Sparse updates by owner: a vertex is updated in the pool by the one rank that walks it, and by nobody else, so that
 * nothing has to be locked. Several groups have no mailbox in common.
 */
static bool passes_sparse_updates_to_owners(const dmg_engine *engine)
{
    return engine->update_method == DMG_UPDATE_VALRD_OWNER && engine->groups.group_count == 1 &&
           dmg_update_sparse_by_owner(dmg_client_capabilities(engine->client), engine->options.updates);
}

static void set_target(dmg_monotone_run *run, dmg_density density, uint64_t arcs)
{
    dmg_engine *engine = run->engine;
    bool by_owner = passes_sparse_updates_to_owners(engine);
    const dmg_update_target target = {.combine = run->loops->combine,
                                      .attributes = &run->values,
                                      .activation = next_activation(run),
                                      .has_one_writer = by_owner && engine->job->size == 1};
    /* Few updates are direct ones (DMG, section 4.3.2), unless a direct one is a message to the memory node anyway. */
    bool is_few = density == DMG_DENSITY_SPARSE && arcs < DIRECT_ARCS_MAX &&
                  engine->options.updates == DMG_UPDATE_AUTO &&
                  dmg_client_capabilities(engine->client)->atomics == DMG_ATOMICS_CALLER_CPU;
    /* In sparse iterations nobody caches anything: owners are of use only as those who need not lock. */
    bool has_no_owners = engine->update_method == DMG_UPDATE_VALRD_OWNER &&
                         ((density == DMG_DENSITY_SPARSE && !by_owner) || engine->groups.members_max == 1);
    dmg_engine_set_target(engine, is_few || has_no_owners ? DMG_UPDATE_DIRECT : engine->update_method, &target);
}

/* ---- shared by the specialised loops ---- */

uint32_t dmg_monotone_select_active(void *context, dmg_chunk *chunk, uint32_t *selected)
{
    const dmg_monotone_run *run = context;
    const uint64_t *activation = chunk->streams[0];
    uint32_t count = 0;
    for (uint32_t word = 0; word * 64 < chunk->count; word++) {
        for (uint64_t left = dmg_monotone_active(run, chunk, activation, word); left != 0; left &= left - 1) {
            selected[count++] = word * 64 + (uint32_t)__builtin_ctzll(left);
        }
    }
    return count;
}

void dmg_monotone_leave_chunk(const dmg_monotone_run *run, dmg_chunk *chunk)
{
    if (!chunk->is_first_round) {
        return; /* the first round has cleared them, and decided whether there is something to store */
    }
    chunk->skip_store = true;
    if (!run->clears_activation) {
        return;
    }
    uint64_t *activation = chunk->streams[0];
    for (uint32_t word = 0; word * 64 < chunk->count; word++) {
        if (activation[word] != 0) {
            activation[word] = 0;
            chunk->skip_store = false;
        }
    }
}

/* ---- phases that need no specialisation ---- */

/* Move the frontier of what this rank caches from the pool into memory. */
static void take_frontier(void *context, dmg_chunk *chunk, const dmg_vertex_edges *edges, uint32_t count)
{
    (void)edges;
    (void)count;
    dmg_monotone_run *run = context;
    uint64_t words = (chunk->count + 63) / 64;
    memcpy(run->frontier + (chunk->first - run->first) / 64, chunk->streams[0], words * 8);
    dmg_monotone_leave_chunk(run, chunk);
}

static void clear_activation(void *context, dmg_chunk *chunk, const dmg_vertex_edges *edges, uint32_t count)
{
    (void)context;
    (void)edges;
    (void)count;
    memset(chunk->streams[0], 0, ((uint64_t)chunk->count + 63) / 64 * 8);
}

/* Count the vertices that are active in the next iteration, and their arcs. */
static void measure(void *context, dmg_chunk *chunk, const dmg_vertex_edges *edges, uint32_t count)
{
    (void)edges;
    (void)count;
    dmg_monotone_run *run = context;
    dmg_worker *worker = &run->engine->workers[chunk->worker];
    const uint64_t *activation = chunk->streams[0];
    const uint32_t *degrees = chunk->streams[1];
    for (uint32_t word = 0; word * 64 < chunk->count; word++) {
        for (uint64_t left = dmg_monotone_active(run, chunk, activation, word); left != 0; left &= left - 1) {
            worker->active_vertices++;
            worker->active_arcs += degrees[word * 64 + (uint32_t)__builtin_ctzll(left)];
        }
    }
}

/* ---- counting ---- */

static dmg_status reduce_frontier(dmg_monotone_run *run, uint64_t vertices, uint64_t arcs, struct frontier_size *size)
{
    dmg_reduction reduction = {0};
    reduction.sums[REDUCE_VERTICES] = vertices;
    reduction.sums[REDUCE_ARCS] = arcs;
    dmg_status status = dmg_engine_barrier(run->engine, &reduction);
    size->vertices = reduction.sums[REDUCE_VERTICES];
    size->arcs = reduction.sums[REDUCE_ARCS];
    return status;
}

/* Run a phase that counts active vertices, and add them up over all ranks. */
static dmg_status count_frontier(dmg_monotone_run *run, const dmg_retrieval_plan *plan, struct frontier_size *size)
{
    dmg_worker before = dmg_engine_counts(run->engine);
    dmg_status status = dmg_engine_phase(run->engine, plan, run->engine->options.threads);
    if (status != DMG_OK) {
        return status;
    }
    dmg_worker after = dmg_engine_counts(run->engine);
    return reduce_frontier(run, after.active_vertices - before.active_vertices, after.active_arcs - before.active_arcs,
                           size);
}

static uint64_t count_activated(const dmg_engine *engine)
{
    uint64_t activated = 0;
    for (uint32_t i = 0; i < engine->options.threads; i++) {
        activated += dmg_update_coordinator_count(&engine->workers[i].remote).activated;
    }
    return activated;
}

/* ---- an iteration ---- */

/* A walk along the arcs, against them, or both ways, which may pause. */
struct walk {
    dmg_monotone_run *run;
    dmg_retrieval_plan *plan;
    uint32_t workers;
    bool against; /* in the first pass */
    uint32_t pass;
    bool is_paused;
};

static struct walk walk_of(dmg_monotone_run *run, dmg_retrieval_plan *plan, bool against, uint32_t workers)
{
    return (struct walk){.run = run, .plan = plan, .workers = workers, .against = against};
}

/* Walk until the plan pauses or no edges are left. A program that walks both ways does so in two passes. */
static dmg_status walk_on(void *context, bool *is_done)
{
    struct walk *walk = context;
    dmg_monotone_run *run = walk->run;
    dmg_engine *engine = run->engine;
    uint32_t passes = run->loops->traits->walks_both_ways && engine->store->is_directed ? 2 : 1;
    for (; walk->pass < passes; walk->pass++) {
        run->clears_activation = walk->pass + 1 == passes;
        walk->plan->index = dmg_graph_store_index(engine->store, walk->against != (walk->pass == 1));
        dmg_status status = walk->is_paused ? dmg_engine_resume_phase(engine, walk->plan, walk->workers)
                                            : dmg_engine_phase(engine, walk->plan, walk->workers);
        walk->is_paused = status == DMG_OK && dmg_chunks_are_left(&engine->chunks);
        if (status != DMG_OK || walk->is_paused) {
            return status;
        }
    }
    *is_done = true;
    return DMG_OK;
}

static bool should_pause(const void *context)
{
    return dmg_redistribution_is_filling_up(((const dmg_monotone_run *)context)->redistribution);
}

static dmg_status finish_worker(void *context, uint32_t worker)
{
    return dmg_redistribution_finish_worker(((const dmg_monotone_run *)context)->redistribution, worker);
}

static bool apply_references(void *context, uint32_t worker, const dmg_vertex_edges *items, const uint64_t *values,
                             uint32_t count)
{
    dmg_monotone_run *run = ((const struct walk *)context)->run;
    return run->loops->appliers.references(run, worker, items, values, count);
}

static bool apply_values(void *context, uint32_t worker, const uint8_t *items, uint32_t count)
{
    dmg_monotone_run *run = ((const struct walk *)context)->run;
    return run->loops->appliers.values(run, worker, items, count);
}

/* Walk in a dense iteration. Where something is passed on, it ends when what all ranks have sent is in their owners'
 * caches or in the pool; else the ranks still have to meet. */
static dmg_status walk_dense(dmg_monotone_run *run, dmg_retrieval_plan *plan, bool against)
{
    static const dmg_appliers appliers = {.references = apply_references, .values = apply_values};
    struct walk walk = walk_of(run, plan, against, run->engine->options.threads);
    if (run->redistribution) {
        plan->pause = should_pause;
        plan->finish = finish_worker;
        return dmg_redistribution_run(run->redistribution, walk_on, &appliers, &walk);
    }
    bool is_done;
    return walk_on(&walk, &is_done);
}

static dmg_status make_cache(dmg_monotone_run *run)
{
    dmg_engine *engine = run->engine;
    if (!run->cache) {
        uint64_t bytes = (run->last - run->first) * dmg_combine_bytes(run->loops->combine);
        dmg_status status = dmg_budget_allocate(engine->budget, DMG_BUDGET_ATTRIBUTES, bytes, &run->cache);
        if (status != DMG_OK) {
            return status;
        }
    }
    if (run->cache_state == DMG_CACHE_VALID) {
        return DMG_OK;
    }
    dmg_retrieval_plan plan = plan_cached(run, run->loops->fill_cache);
    if (run->cache_state == DMG_CACHE_OWN) {
        plan.share = dmg_groups_others(&engine->groups, engine->store->vertex_count);
    }
    add_stream(&plan, &run->values, 1, DMG_STREAM_READ);
    run->cache_state = DMG_CACHE_VALID;
    return dmg_engine_phase(engine, &plan, engine->options.threads);
}

/* A long segment goes to its owner with the source's value as it is now. */
static bool refer_segment(void *context, const dmg_chunk *chunk, const dmg_foreign_segment *segment)
{
    const dmg_monotone_run *run = context;
    uint64_t slot = segment->vertex - run->first;
    uint64_t value = dmg_combine_bytes(run->loops->combine) == 4
                         ? __atomic_load_n((const uint32_t *)run->cache + slot, __ATOMIC_RELAXED)
                         : __atomic_load_n((const uint64_t *)run->cache + slot, __ATOMIC_RELAXED);
    return dmg_redistribution_offer(run->redistribution, chunk->worker, segment, value);
}

static dmg_status push_dense(dmg_monotone_run *run)
{
    if (run->engine->groups.group_count > 1 && !run->exchange) {
        dmg_status status = dmg_group_exchange_create(run->engine, run->loops->combine, &run->exchange);
        if (status != DMG_OK) {
            return status;
        }
    }
    dmg_retrieval_plan plan = plan_own(run, run->loops->push);
    add_stream(&plan, this_activation(run), 64, DMG_STREAM_READ_WRITE);
    plan.select = dmg_monotone_select_active;
    plan.refer = run->redistribution ? refer_segment : NULL;
    return walk_dense(run, &plan, false);
}

static dmg_status pull_dense(dmg_monotone_run *run)
{
    dmg_engine *engine = run->engine;
    if (!run->frontier) {
        uint64_t bytes = (run->last - run->first + 63) / 64 * 8;
        void *memory;
        dmg_status status = dmg_budget_allocate(engine->budget, DMG_BUDGET_BITMAP, bytes, &memory);
        if (status != DMG_OK) {
            return status;
        }
        run->frontier = memory;
    }
    /* Other groups take the same words: they are cleared by whose they are, when all have them (merge_cache). */
    run->clears_activation = engine->groups.group_count == 1;
    dmg_retrieval_plan take = plan_cached(run, take_frontier);
    add_stream(&take, this_activation(run), 64, run->clears_activation ? DMG_STREAM_READ_WRITE : DMG_STREAM_READ);
    dmg_status status = dmg_engine_phase(engine, &take, engine->options.threads);
    if (status != DMG_OK) {
        return status;
    }
    dmg_retrieval_plan plan = {.first = 0,
                               .last = engine->store->vertex_count,
                               .share = engine->share,
                               .select = run->loops->pull_select,
                               .apply = run->loops->pull,
                               .local_segments_only = true,
                               .context = run};
    add_stream(&plan, &run->values, 1, DMG_STREAM_READ);
    return walk_dense(run, &plan, true);
}

/* Clear this rank's words of the frontier. */
static dmg_status clear_frontier(dmg_monotone_run *run)
{
    dmg_retrieval_plan plan = plan_own(run, clear_activation);
    add_stream(&plan, this_activation(run), 64, DMG_STREAM_WRITE);
    return dmg_engine_phase(run->engine, &plan, run->engine->options.threads);
}

/* All that was pushed: what other groups found of this rank's vertices is brought into its cache. What other ranks sent
 * has arrived before the pool's attributes are read and overwritten. */
static dmg_status gather_pushed(dmg_monotone_run *run)
{
    dmg_status status = DMG_OK;
    if (run->exchange) {
        status = dmg_group_exchange_deposit(run->exchange, run->cache);
    }
    if (status == DMG_OK && (run->exchange || !run->redistribution)) {
        status = dmg_engine_barrier(run->engine, NULL); /* redistribution ends with one */
    }
    return status == DMG_OK && run->exchange ? dmg_group_exchange_fold(run->exchange, run->cache) : status;
}

/* All that was pulled. A vertex is walked by one group, whose members cache it or have updated the pool, so groups have
 * nothing to combine; but they share the frontier, which nobody may clear before all have pulled from it. */
static dmg_status gather_pulled(dmg_monotone_run *run)
{
    dmg_status status = run->redistribution ? DMG_OK : dmg_engine_barrier(run->engine, NULL);
    return status == DMG_OK && run->engine->groups.group_count > 1 ? clear_frontier(run) : status;
}

/* The end of a dense iteration: cached attributes go to the pool, and the next frontier is counted. */
static dmg_status merge_cache(dmg_monotone_run *run, dmg_direction direction, struct frontier_size *size)
{
    dmg_status status = direction == DMG_DIRECTION_PULL ? gather_pulled(run) : gather_pushed(run);
    if (status != DMG_OK) {
        return status;
    }
    run->cache_state = run->engine->groups.group_count > 1 ? DMG_CACHE_OWN : DMG_CACHE_VALID;
    dmg_retrieval_plan plan = plan_own(run, run->loops->merge);
    add_stream(&plan, &run->values, 1, DMG_STREAM_READ_WRITE);
    add_stream(&plan, next_activation(run), 64, DMG_STREAM_READ_WRITE);
    add_stream(&plan, &run->engine->store->out_degrees, 1, DMG_STREAM_READ);
    return count_frontier(run, &plan, size);
}

static dmg_status iterate_dense(dmg_monotone_run *run, dmg_direction direction, struct frontier_size *size)
{
    dmg_status status = make_cache(run);
    if (status == DMG_OK) {
        status = direction == DMG_DIRECTION_PULL ? pull_dense(run) : push_dense(run);
    }
    return status == DMG_OK ? merge_cache(run, direction, size) : status;
}

/* Updates that came by value, of vertices that this rank alone updates: not believed to be so. */
static bool apply_to_pool(void *context, uint32_t index, const uint8_t *items, uint32_t count)
{
    const dmg_monotone_run *run = ((const struct walk *)context)->run;
    dmg_update_coordinator *remote = &run->engine->workers[index].remote;
    const uint32_t value_bytes = dmg_combine_bytes(run->loops->combine);
    for (uint32_t i = 0; i < count; i++, items += 4 + value_bytes) {
        uint32_t vertex;
        uint64_t value = 0;
        memcpy(&vertex, items, sizeof vertex);
        memcpy(&value, items + sizeof vertex, value_bytes);
        if (vertex - run->first >= run->last - run->first) {
            return false;
        }
        dmg_update_coordinator_update_own(remote, vertex, value);
    }
    return true;
}

/* Walk in a sparse iteration. By owner, it ends when this rank has applied all updates of its vertices. */
static dmg_status walk_sparse(dmg_monotone_run *run, dmg_retrieval_plan *plan, uint32_t workers)
{
    static const dmg_appliers appliers = {.values = apply_to_pool};
    struct walk walk = walk_of(run, plan, false, workers);
    if (run->redistribution && passes_sparse_updates_to_owners(run->engine)) {
        plan->pause = should_pause;
        return dmg_redistribution_run(run->redistribution, walk_on, &appliers, &walk);
    }
    bool is_done;
    return walk_on(&walk, &is_done);
}

static dmg_status iterate_sparse(dmg_monotone_run *run, struct frontier_size *size)
{
    dmg_engine *engine = run->engine;
    run->cache_state = DMG_CACHE_STALE;
    dmg_retrieval_plan plan = plan_own(run, run->loops->push_sparse);
    add_stream(&plan, this_activation(run), 64, DMG_STREAM_READ_WRITE);
    plan.selected_values = &run->values;
    plan.select = dmg_monotone_select_active;
    uint64_t activated = count_activated(engine);
    uint32_t workers = size->vertices < ONE_WORKER_VERTICES ? 1 : engine->options.threads;
    dmg_status status = walk_sparse(run, &plan, workers);
    if (status == DMG_OK) {
        status = reduce_frontier(run, count_activated(engine) - activated, 0, size);
    }
    if (status != DMG_OK) {
        return status;
    }
    const dmg_graph_store *store = engine->store;
    if (size->vertices < store->vertex_count / MEASURE_VERTICES_SHARE) {
        /* Too few to be dense, whatever their degrees but the largest; the mean is good enough for the next choice. */
        size->arcs = size->vertices * (store->arc_count / store->vertex_count + 1);
        return DMG_OK;
    }
    dmg_retrieval_plan counting = plan_own(run, measure);
    add_stream(&counting, next_activation(run), 64, DMG_STREAM_READ);
    add_stream(&counting, &store->out_degrees, 1, DMG_STREAM_READ);
    return count_frontier(run, &counting, size);
}

/* ---- choosing ---- */

static dmg_density choose_density(const dmg_monotone_run *run, const struct frontier_size *size)
{
    const dmg_engine *engine = run->engine;
    if (engine->options.density != DMG_DENSITY_AUTO) {
        return engine->options.density;
    }
    if (engine->options.direction == DMG_DIRECTION_PULL && run->loops->traits->can_pull) {
        return DMG_DENSITY_DENSE; /* a sparse iteration pushes */
    }
    uint64_t work = size->vertices + size->arcs;
    return work > engine->store->arc_count / DENSE_ARCS_SHARE ? DMG_DENSITY_DENSE : DMG_DENSITY_SPARSE;
}

/*
 * Push or pull? Beamer's question, asked of costs instead of edges, since an edge that leaves the partition costs far
 * more than one that does not, and a list that has to be fetched is fetched whole, however soon the search in it ends.
 */
static dmg_direction choose_direction(const dmg_monotone_run *run, const struct frontier_size *size, uint64_t walked)
{
    const dmg_engine *engine = run->engine;
    const dmg_graph_store *store = engine->store;
    bool can_pull = run->loops->traits->can_pull && dmg_graph_store_index(store, true) != NULL;
    if (!can_pull || engine->options.direction == DMG_DIRECTION_PUSH) {
        return DMG_DIRECTION_PUSH;
    }
    if (engine->options.direction == DMG_DIRECTION_PULL) {
        return DMG_DIRECTION_PULL;
    }
    bool is_mapped = (dmg_client_capabilities(engine->client)->flags & DMG_CAPABILITY_LOAD_STORE) != 0;
    uint64_t remote_cost = is_mapped ? COST_REMOTE_MAPPED : COST_REMOTE_BY_LINK;
    uint64_t members = engine->groups.members_max; /* who share the partitions; every group has its share of the work */
    uint64_t unexplored = store->arc_count > walked ? store->arc_count - walked : 0;
    uint64_t looked = !run->loops->traits->pulls_from_active ? store->arc_count
                      : is_mapped                            ? unexplored / PULL_SHARE
                                                             : unexplored;
    uint64_t push_cost = size->arcs * COST_LOWER / members + size->arcs * (members - 1) / members * remote_cost;
    uint64_t pull_cost = looked + store->vertex_count * members;
    return push_cost > pull_cost ? DMG_DIRECTION_PULL : DMG_DIRECTION_PUSH;
}

/* ---- a run ---- */

static dmg_status begin(dmg_monotone_run *run, struct frontier_size *size)
{
    dmg_engine *engine = run->engine;
    dmg_status status = dmg_engine_vertex_array(engine, dmg_combine_bytes(run->loops->combine), &run->values);
    for (uint32_t i = 0; i < 2 && status == DMG_OK; i++) {
        status = dmg_engine_bitmap(engine, &run->values, &run->activation[i]);
    }
    if (status != DMG_OK) {
        return status;
    }
    status = dmg_redistribution_create(engine, run->loops->combine, true,
                                       engine->update_method == DMG_UPDATE_VALRD_OWNER, &run->redistribution);
    if (status != DMG_OK) {
        return status;
    }
    dmg_retrieval_plan plan = plan_own(run, run->loops->start);
    add_stream(&plan, &run->values, 1, DMG_STREAM_WRITE);
    add_stream(&plan, this_activation(run), 64, DMG_STREAM_WRITE);
    add_stream(&plan, &engine->store->out_degrees, 1, DMG_STREAM_READ);
    return count_frontier(run, &plan, size);
}

static dmg_status iterate(dmg_monotone_run *run, struct frontier_size *size, uint64_t *walked)
{
    dmg_engine *engine = run->engine;
    dmg_iteration_clock clock;
    dmg_engine_begin_iteration(engine, size->vertices, &clock);
    dmg_iteration row = {.active_vertices = size->vertices, .density = choose_density(run, size)};
    row.direction = row.density == DMG_DENSITY_DENSE ? choose_direction(run, size, *walked) : DMG_DIRECTION_PUSH;
    *walked += size->arcs;
    set_target(run, row.density, size->arcs);
    dmg_status status =
        row.density == DMG_DENSITY_DENSE ? iterate_dense(run, row.direction, size) : iterate_sparse(run, size);
    if (status != DMG_OK) {
        return status;
    }
    run->current = 1 - run->current;
    run->iteration++;
    dmg_worker counts = dmg_engine_counts(engine);
    row.arcs = counts.arcs;
    row.updates_local = counts.updates_local;
    return dmg_engine_end_iteration(engine, &clock, row);
}

dmg_status dmg_monotone_execute(dmg_engine *engine, const dmg_monotone_loops *loops, const void *parameters,
                                dmg_run_result *result)
{
    uint64_t started_ns = dmg_now_ns();
    dmg_monotone_run run = {.engine = engine,
                            .loops = loops,
                            .parameters = parameters,
                            .first = engine->first_vertex,
                            .last = engine->last_vertex};
    struct frontier_size size = {0};
    uint64_t walked = 0;
    dmg_status status = loops->traits->can_pull ? dmg_engine_check_direction(engine) : DMG_OK;
    if (status != DMG_OK) {
        return dmg_engine_abort(engine, status);
    }
    status = begin(&run, &size);
    while (status == DMG_OK && size.vertices > 0) {
        status = iterate(&run, &size, &walked);
    }
    dmg_redistribution_destroy(run.redistribution);
    dmg_group_exchange_destroy(run.exchange);
    uint64_t vertices = run.last - run.first;
    dmg_budget_free(engine->budget, DMG_BUDGET_ATTRIBUTES, run.cache, vertices * dmg_combine_bytes(loops->combine));
    dmg_budget_free(engine->budget, DMG_BUDGET_BITMAP, run.frontier, (vertices + 63) / 64 * 8);
    if (status != DMG_OK) {
        return dmg_engine_abort(engine, status);
    }
    dmg_engine_finish(engine, started_ns, &run.values, result);
    return DMG_OK;
}
