#include "core/engine/program/accumulate.h"

#include "core/base/clock.h"
#include "core/base/error.h"

#include <math.h>
#include <string.h>

/* Tolerances below ask for more than single precision can give. */
#define SINGLE_TOLERANCE_MIN 1e-9
/* A cache of so many doubles is near the processor anyway: 256 KiB. On Kronecker graphs single precision gained nothing
 * up to here, and 15 % on the next ones. */
#define SINGLE_VERTICES_MIN 32769
/* What may be missing of all that is given, which is at most 1. PageRank with a damping of 0.85 makes 5.7 times as much
 * of it, and the ranks are to add up to 1 within 1e-8. */
#define MISSING_MAX 5e-10
/* Without rounding, changes fall in each iteration. */
#define ITERATIONS_WITHOUT_FALL 3

/* Sums of the barrier. */
enum { REDUCE_CHANGE };
enum { REDUCE_SHARED, REDUCE_MISSING };

static void add_stream(dmg_retrieval_plan *plan, const dmg_range_array *array, dmg_stream_mode mode)
{
    plan->streams[plan->stream_count++] = (dmg_stream){array, 1, mode};
}

static dmg_retrieval_plan plan_own(dmg_accumulate_run *run, dmg_accumulate_apply apply)
{
    dmg_retrieval_plan plan = {
        .first = run->first, .last = run->last, .share = run->engine->share, .apply = apply, .context = run};
    add_stream(&plan, &run->values, DMG_STREAM_READ_WRITE);
    add_stream(&plan, &run->engine->store->out_degrees, DMG_STREAM_READ);
    return plan;
}

/* ---- pull ---- */

static dmg_retrieval_plan plan_pull(dmg_accumulate_run *run)
{
    dmg_retrieval_plan plan = {.first = 0,
                               .last = run->engine->store->vertex_count,
                               .share = run->engine->share,
                               .index = dmg_graph_store_index(run->engine->store, true),
                               .local_segments_only = true,
                               .apply = run->loops->pull,
                               .context = run};
    if (!run->adds_up) {
        add_stream(&plan, &run->partials[run->engine->groups.member], DMG_STREAM_WRITE);
    }
    return plan;
}

/* ---- push ---- */

static bool refer_segment(void *context, const dmg_chunk *chunk, const dmg_foreign_segment *segment)
{
    const dmg_accumulate_run *run = context;
    uint64_t index = segment->vertex - chunk->first;
    double value = ((const double *)chunk->streams[DMG_ACCUMULATE_VALUES])[index];
    double given = run->loops->give(value, ((const uint32_t *)chunk->streams[DMG_ACCUMULATE_DEGREES])[index]);
    return dmg_redistribution_offer(run->redistribution, chunk->worker, segment, dmg_double_to_bits(given));
}

static dmg_retrieval_plan plan_push(dmg_accumulate_run *run)
{
    dmg_retrieval_plan plan = plan_own(run, run->loops->push);
    plan.streams[DMG_ACCUMULATE_VALUES].mode = DMG_STREAM_READ;
    plan.index = dmg_graph_store_index(run->engine->store, false);
    plan.refer = run->redistribution ? refer_segment : NULL;
    return plan;
}

/* ---- what other ranks have passed on ---- */

struct walk {
    dmg_accumulate_run *run;
    const dmg_retrieval_plan *plan;
    bool has_begun;
};

/* Every rank comes here in every round, those that have no edges left, too. */
static dmg_status walk_on(void *context, bool *is_done)
{
    struct walk *walk = context;
    dmg_engine *engine = walk->run->engine;
    dmg_status status = DMG_OK;
    if (!walk->has_begun) {
        walk->has_begun = true;
        status = dmg_engine_phase(engine, walk->plan, engine->options.threads);
    } else if (dmg_chunks_are_left(&engine->chunks)) {
        status = dmg_engine_resume_phase(engine, walk->plan, engine->options.threads);
    }
    *is_done = !dmg_chunks_are_left(&engine->chunks);
    return status;
}

static bool should_pause(const void *context)
{
    return dmg_redistribution_is_filling_up(((const dmg_accumulate_run *)context)->redistribution);
}

static dmg_status finish_worker(void *context, uint32_t worker)
{
    return dmg_redistribution_finish_worker(((const dmg_accumulate_run *)context)->redistribution, worker);
}

static bool apply_references(void *context, uint32_t index, const dmg_vertex_edges *items, const uint64_t *values,
                             uint32_t count)
{
    const dmg_accumulate_run *run = ((const struct walk *)context)->run;
    dmg_worker *worker = &run->engine->workers[index];
    const uint32_t stride = run->engine->store->shape.edge_bytes;
    uint64_t vertices = run->last - run->first;
    for (uint32_t i = 0; i < count; i++) {
        double given = dmg_bits_to_double(values[i]);
        const uint8_t *end = items[i].edges + (uint64_t)items[i].count * stride;
        for (const uint8_t *edge = items[i].edges; edge < end; edge += stride) {
            uint32_t slot = dmg_read_once_32(edge) - (uint32_t)run->first;
            if (slot >= vertices) {
                dmg_worker_note_stray(worker, DMG_STRAY_EDGE, items[i].vertex);
                return false;
            }
            dmg_accumulate_add(&run->sums[slot], given);
        }
        worker->arcs += items[i].count;
        worker->updates_local += items[i].count;
    }
    return true;
}

static bool apply_values(void *context, uint32_t index, const uint8_t *items, uint32_t count)
{
    (void)index;
    const dmg_accumulate_run *run = ((const struct walk *)context)->run;
    uint64_t vertices = run->last - run->first;
    const uint8_t *end = items + (uint64_t)count * DMG_VALUE_ITEM_BYTES_MAX;
    for (const uint8_t *item = items; item < end; item += DMG_VALUE_ITEM_BYTES_MAX) {
        double addend;
        memcpy(&addend, item + 4, sizeof addend);
        uint32_t vertex;
        memcpy(&vertex, item, sizeof vertex);
        uint64_t slot = vertex - run->first;
        if (slot >= vertices) {
            return false;
        }
        dmg_accumulate_add(&run->sums[slot], addend);
    }
    return true; /* who sent them has counted them */
}

static dmg_status walk_edges(dmg_accumulate_run *run)
{
    static const dmg_appliers appliers = {.references = apply_references, .values = apply_values};
    dmg_engine *engine = run->engine;
    dmg_retrieval_plan plan = run->is_pull ? plan_pull(run) : plan_push(run);
    if (run->adds_up) {
        const dmg_update_target target = {.combine = DMG_COMBINE_ADD_DOUBLE, .attributes = &run->partials[0]};
        dmg_engine_set_target(engine, run->update_method, &target);
    }
    if (!run->redistribution) {
        return dmg_engine_phase(engine, &plan, engine->options.threads);
    }
    struct walk walk = {.run = run, .plan = &plan};
    plan.pause = should_pause;
    plan.finish = finish_worker;
    return dmg_redistribution_run(run->redistribution, walk_on, &appliers, &walk);
}

/* Walk all edges. Ends when what all ranks have given is in their owners' caches or in the pool. */
static dmg_status walk(dmg_accumulate_run *run)
{
    dmg_status status = walk_edges(run);
    if (status == DMG_OK && run->exchange) {
        status = dmg_group_exchange_deposit(run->exchange, run->sums);
    }
    if (status == DMG_OK && (run->exchange || !run->redistribution)) {
        status = dmg_engine_barrier(run->engine, NULL); /* redistribution ends with one */
    }
    return status == DMG_OK && run->exchange ? dmg_group_exchange_fold(run->exchange, run->sums) : status;
}

/* ---- a run ---- */

/* Pull, several groups: read what the vertices give that other groups have made the values of. */
static dmg_status fill_cache(dmg_accumulate_run *run)
{
    dmg_engine *engine = run->engine;
    if (!run->is_pull || engine->groups.group_count == 1) {
        return DMG_OK;
    }
    dmg_retrieval_plan plan = plan_own(run, run->loops->fill_cache);
    plan.share = dmg_groups_others(&engine->groups, engine->store->vertex_count);
    plan.streams[DMG_ACCUMULATE_VALUES].mode = DMG_STREAM_READ;
    return dmg_engine_phase(engine, &plan, engine->options.threads);
}

/* Add up over all ranks: the change of this iteration, and what the next one shares. */
static dmg_status reduce(dmg_accumulate_run *run, double *change)
{
    dmg_worker counts = dmg_engine_counts(run->engine);
    dmg_reduction reduction = {0};
    reduction.sums[REDUCE_CHANGE] = counts.fixed;
    reduction.reals[REDUCE_SHARED] = counts.real;
    reduction.reals[REDUCE_MISSING] = counts.missing;
    dmg_status status = dmg_engine_barrier(run->engine, &reduction);
    *change = (double)reduction.sums[REDUCE_CHANGE] / 0x1p60;
    run->shared = reduction.reals[REDUCE_SHARED];
    run->missing = reduction.reals[REDUCE_MISSING];
    return status;
}

static uint64_t given_bytes(const dmg_accumulate_run *run)
{
    return (run->last - run->first) * (run->is_single ? sizeof(float) : sizeof(double));
}

static uint64_t sums_bytes(const dmg_accumulate_run *run)
{
    return (run->last - run->first) * sizeof(double);
}

static dmg_status make_caches(dmg_accumulate_run *run)
{
    dmg_budget *budget = run->engine->budget;
    void *memory;
    dmg_status status = DMG_OK;
    if (run->is_pull) {
        status = dmg_budget_allocate(budget, DMG_BUDGET_ATTRIBUTES, given_bytes(run), &run->given);
    }
    if (run->adds_up && status == DMG_OK) {
        status = dmg_budget_allocate(budget, DMG_BUDGET_ATTRIBUTES, sums_bytes(run), &memory);
        run->sums = memory;
    }
    return status;
}

static void free_caches(dmg_accumulate_run *run)
{
    dmg_budget *budget = run->engine->budget;
    dmg_budget_free(budget, DMG_BUDGET_ATTRIBUTES, run->given, given_bytes(run));
    dmg_budget_free(budget, DMG_BUDGET_ATTRIBUTES, run->sums, sums_bytes(run));
}

static dmg_status make_arrays(dmg_accumulate_run *run)
{
    dmg_engine *engine = run->engine;
    uint32_t partial_count = run->adds_up ? 1 : engine->groups.members_max;
    dmg_status status = dmg_engine_vertex_array(engine, sizeof(double), &run->values);
    for (uint32_t i = 0; i < partial_count && status == DMG_OK; i++) {
        status = dmg_engine_vertex_array(engine, sizeof(double), &run->partials[i]);
    }
    /* What this rank makes values of was walked by its own group, which may have a member less than the largest. */
    run->partial_count = run->adds_up ? 1 : engine->groups.members;
    if (status == DMG_OK && !run->is_pull) {
        status = dmg_group_exchange_create(engine, DMG_COMBINE_ADD_DOUBLE, &run->exchange);
    }
    if (status == DMG_OK) {
        status = dmg_redistribution_create(engine, DMG_COMBINE_ADD_DOUBLE, !run->is_pull,
                                           run->adds_up && run->update_method == DMG_UPDATE_VALRD_OWNER,
                                           &run->redistribution);
    }
    return status == DMG_OK ? make_caches(run) : status;
}

/*
 * Change to double precision, and cache what this rank's vertices give once more. Where the budget has no room for
 * that, it stays with single precision: a rank's cache is its own affair.
 */
static dmg_status refine(dmg_accumulate_run *run)
{
    dmg_engine *engine = run->engine;
    run->refines = false;
    dmg_budget_free(engine->budget, DMG_BUDGET_ATTRIBUTES, run->given, given_bytes(run));
    run->given = NULL;
    run->is_single = false;
    dmg_status status = dmg_budget_allocate(engine->budget, DMG_BUDGET_ATTRIBUTES, given_bytes(run), &run->given);
    if (status != DMG_OK) {
        run->is_single = true;
        status = dmg_budget_allocate(engine->budget, DMG_BUDGET_ATTRIBUTES, given_bytes(run), &run->given);
    }
    if (status != DMG_OK) {
        return status;
    }
    dmg_retrieval_plan plan = plan_own(run, run->loops->fill_cache);
    plan.streams[DMG_ACCUMULATE_VALUES].mode = DMG_STREAM_READ;
    return dmg_engine_phase(engine, &plan, engine->options.threads);
}

static dmg_status iterate(dmg_accumulate_run *run, double *change)
{
    dmg_engine *engine = run->engine;
    dmg_iteration_clock clock;
    dmg_engine_begin_iteration(engine, engine->store->vertex_count, &clock);
    dmg_status status = run->refines ? refine(run) : DMG_OK;
    if (status == DMG_OK) {
        status = fill_cache(run);
    }
    if (status == DMG_OK) {
        status = walk(run);
    }
    dmg_retrieval_plan plan = plan_own(run, run->loops->make_values);
    for (uint32_t i = 0; i < run->partial_count; i++) {
        add_stream(&plan, &run->partials[i], run->adds_up ? DMG_STREAM_READ_WRITE : DMG_STREAM_READ);
    }
    if (status == DMG_OK) {
        status = dmg_engine_phase(engine, &plan, engine->options.threads);
    }
    if (status == DMG_OK) {
        status = reduce(run, change);
    }
    if (status != DMG_OK) {
        return status;
    }
    dmg_worker counts = dmg_engine_counts(engine);
    const dmg_iteration row = {.direction = run->is_pull ? DMG_DIRECTION_PULL : DMG_DIRECTION_PUSH,
                               .density = DMG_DENSITY_DENSE,
                               .active_vertices = engine->store->vertex_count,
                               .arcs = counts.arcs,
                               .updates_local = counts.updates_local};
    return dmg_engine_end_iteration(engine, &clock, row);
}

static dmg_status begin(dmg_accumulate_run *run)
{
    dmg_engine *engine = run->engine;
    dmg_status status = make_arrays(run);
    if (status != DMG_OK) {
        return status;
    }
    dmg_engine_reset_counts(engine);
    dmg_retrieval_plan plan = plan_own(run, run->loops->start);
    plan.streams[DMG_ACCUMULATE_VALUES].mode = DMG_STREAM_WRITE;
    status = dmg_engine_phase(engine, &plan, engine->options.threads);
    double change;
    return status == DMG_OK ? reduce(run, &change) : status;
}

/* A float is off by 6e-8 at most; on Kronecker graphs all ranks together were off by 1e-8. */
static bool is_single_enough(const dmg_engine *engine, double tolerance)
{
    if (engine->options.precision != DMG_PRECISION_AUTO) {
        return engine->options.precision == DMG_PRECISION_SINGLE;
    }
    return engine->store->vertex_count >= SINGLE_VERTICES_MIN && (tolerance == 0 || tolerance >= SINGLE_TOLERANCE_MIN);
}

/* How the changes of a run have fallen so far. */
struct fall {
    double least;
    uint32_t iterations_since;
};

/* Whether the iterations are at their end; or else the next one may be told to refine. */
static bool has_settled(dmg_accumulate_run *run, double change, double tolerance, struct fall *fall)
{
    fall->iterations_since = change < fall->least ? 0 : fall->iterations_since + 1;
    fall->least = change < fall->least ? change : fall->least;
    bool is_small = change < tolerance;
    bool is_stuck = tolerance > 0 && fall->iterations_since >= ITERATIONS_WITHOUT_FALL;
    if (run->may_refine && ((is_small && fabs(run->missing) > MISSING_MAX) || is_stuck)) {
        run->may_refine = false;
        run->refines = true;
        return false;
    }
    return is_small;
}

/* An array of partial sums a rank is a stream a rank, and those are limited. */
static bool passes_partials_by_value(const dmg_engine *engine)
{
    uint32_t ranks_max = DMG_STREAMS_MAX - DMG_ACCUMULATE_SUMS;
    return engine->options.partials == DMG_PARTIALS_VALUE ||
           (engine->options.partials == DMG_PARTIALS_AUTO && engine->groups.members_max > ranks_max);
}

static dmg_status check_options(const dmg_engine *engine)
{
    dmg_status status = dmg_engine_check_direction(engine);
    if (status != DMG_OK) {
        return status;
    }
    if (engine->options.partials == DMG_PARTIALS_ARRAY &&
        engine->groups.members_max > DMG_STREAMS_MAX - DMG_ACCUMULATE_SUMS) {
        return dmg_error(
            DMG_ERR_LIMIT,
            "%u compute nodes share the partitions: arrays of partial sums work with %d at most; use --partials "
            "value",
            engine->groups.members_max, DMG_STREAMS_MAX - DMG_ACCUMULATE_SUMS);
    }
    return DMG_OK;
}

dmg_status dmg_accumulate_execute(dmg_engine *engine, const dmg_accumulate_loops *loops, const void *parameters,
                                  const dmg_accumulate_limits *limits, dmg_run_result *result)
{
    uint64_t started_ns = dmg_now_ns();
    bool can_pull = dmg_graph_store_index(engine->store, true) != NULL;
    dmg_status status = check_options(engine);
    if (status != DMG_OK) {
        return dmg_engine_abort(engine, status);
    }
    dmg_accumulate_run run = {.engine = engine,
                              .loops = loops,
                              .parameters = parameters,
                              .first = engine->first_vertex,
                              .last = engine->last_vertex,
                              .is_pull = can_pull && engine->options.direction != DMG_DIRECTION_PUSH};
    run.is_single = run.is_pull && is_single_enough(engine, limits->tolerance);
    run.may_refine = run.is_single && engine->options.precision == DMG_PRECISION_AUTO;
    run.adds_up = !run.is_pull || passes_partials_by_value(engine);
    bool has_others = engine->groups.members_max > 1;
    run.update_method = has_others ? engine->update_method : DMG_UPDATE_DIRECT;
    double change = HUGE_VAL;
    struct fall fall = {.least = HUGE_VAL};
    status = begin(&run);
    for (uint32_t i = 0; status == DMG_OK && engine->store->vertex_count > 0 && i < limits->iterations_max; i++) {
        status = iterate(&run, &change);
        if (status == DMG_OK && has_settled(&run, change, limits->tolerance, &fall)) {
            break;
        }
    }
    dmg_redistribution_destroy(run.redistribution);
    dmg_group_exchange_destroy(run.exchange);
    free_caches(&run);
    if (status != DMG_OK) {
        return dmg_engine_abort(engine, status);
    }
    dmg_engine_finish(engine, started_ns, &run.values, result);
    result->residual = engine->iteration_count > 0 ? change : 0;
    return DMG_OK;
}
