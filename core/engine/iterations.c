/*
 * What an engine's workers count, and the row that each iteration leaves of it.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/engine/runtime.h"

#include <stdlib.h>

void dmg_engine_reset_counts(dmg_engine *engine)
{
    for (uint32_t i = 0; i < engine->options.threads; i++) {
        dmg_worker *worker = &engine->workers[i];
        worker->arcs = worker->updates_local = worker->active_vertices = worker->active_arcs = worker->fixed = 0;
        worker->busy_ns = worker->wait_ns = 0;
        worker->real = worker->missing = 0;
        *dmg_retrieval_count(worker->retrieval) = (dmg_retrieval_counts){0};
    }
}

dmg_worker dmg_engine_counts(const dmg_engine *engine)
{
    dmg_worker sum = {0};
    for (uint32_t i = 0; i < engine->options.threads; i++) {
        const dmg_worker *worker = &engine->workers[i];
        sum.arcs += worker->arcs;
        sum.updates_local += worker->updates_local;
        sum.active_vertices += worker->active_vertices;
        sum.active_arcs += worker->active_arcs;
        sum.real += worker->real;
        sum.missing += worker->missing;
        sum.fixed += worker->fixed;
    }
    return sum;
}

/* What a worker did since its counts were zeroed. */
static dmg_worker_figures figures_of(const dmg_worker *worker)
{
    const dmg_retrieval_counts *counts = dmg_retrieval_count(worker->retrieval);
    return (dmg_worker_figures){.busy_ns = worker->busy_ns,
                                .wait_ns = worker->wait_ns,
                                .arcs = worker->arcs,
                                .largest_task = counts->largest_task,
                                .lists_cut = counts->lists_cut,
                                .segments = counts->segments,
                                .segments_stolen = counts->segments_stolen};
}

void dmg_worker_figures_add(dmg_worker_figures *sum, const dmg_worker_figures *more)
{
    sum->busy_ns += more->busy_ns;
    sum->wait_ns += more->wait_ns;
    sum->arcs += more->arcs;
    sum->largest_task = more->largest_task > sum->largest_task ? more->largest_task : sum->largest_task;
    sum->lists_cut += more->lists_cut;
    sum->segments += more->segments;
    sum->segments_stolen += more->segments_stolen;
}

dmg_worker_figures dmg_engine_worker(const dmg_engine *engine, uint32_t worker)
{
    return engine->workers[worker].total;
}

/* Into the iteration's row, and into the workers' totals. */
static void add_up_work(dmg_engine *engine, dmg_iteration *row)
{
    for (uint32_t i = 0; i < engine->options.threads; i++) {
        dmg_worker_figures figures = figures_of(&engine->workers[i]);
        dmg_worker_figures_add(&engine->workers[i].total, &figures);
        dmg_worker_figures_add(&row->work, &figures);
        row->busy_ns_max = figures.busy_ns > row->busy_ns_max ? figures.busy_ns : row->busy_ns_max;
        row->arcs_max = figures.arcs > row->arcs_max ? figures.arcs : row->arcs_max;
    }
}

static uint64_t count_remote_updates(const dmg_engine *engine)
{
    uint64_t updates = 0;
    for (uint32_t i = 0; i < engine->options.threads; i++) {
        updates += dmg_update_coordinator_count(&engine->workers[i].remote).updates;
    }
    return updates;
}

void dmg_engine_count_traffic_of(dmg_engine *engine, dmg_traffic_source source, const void *context)
{
    if (engine->traffic_source) {
        engine->traffic_source(engine->traffic_context, &engine->traffic_before);
    }
    engine->traffic_source = source;
    engine->traffic_context = context;
}

static dmg_traffic count_traffic(const dmg_engine *engine)
{
    dmg_traffic traffic = engine->traffic_before;
    for (uint32_t i = 0; i < engine->options.threads; i++) {
        dmg_update_coordinator_add_traffic(&engine->workers[i].remote, &traffic);
    }
    if (engine->traffic_source) {
        engine->traffic_source(engine->traffic_context, &traffic);
    }
    return traffic;
}

void dmg_engine_begin_iteration(dmg_engine *engine, uint64_t active_vertices, dmg_iteration_clock *clock)
{
    if (engine->options.on_iteration) {
        engine->options.on_iteration(engine->options.on_iteration_context, engine->iteration_count, active_vertices);
    }
    dmg_engine_reset_counts(engine);
    clock->started_ns = dmg_now_ns();
    clock->barrier_ns = engine->barrier_ns;
    clock->barriers = engine->barriers;
    clock->remote_updates = count_remote_updates(engine);
    clock->traffic = count_traffic(engine);
    dmg_engine_counters(engine, &clock->counters);
}

dmg_status dmg_engine_end_iteration(dmg_engine *engine, const dmg_iteration_clock *clock, dmg_iteration row)
{
    engine->iteration_count++;
    add_up_work(engine, &row);
    if (engine->iterations_kept == DMG_ITERATION_ROWS_MAX) {
        return DMG_OK;
    }
    if (engine->iterations_kept == engine->iteration_capacity) {
        uint32_t capacity = engine->iteration_capacity ? engine->iteration_capacity * 2 : 64;
        dmg_iteration *grown = realloc(engine->iterations, capacity * sizeof *grown);
        if (!grown) {
            return dmg_error(DMG_ERR_MEMORY, "keeping the figures of %u iterations: out of memory", capacity);
        }
        engine->iterations = grown;
        engine->iteration_capacity = capacity;
    }
    row.elapsed_ns = dmg_now_ns() - clock->started_ns;
    row.barrier_ns = engine->barrier_ns - clock->barrier_ns;
    row.barriers = engine->barriers - clock->barriers;
    row.updates_remote = count_remote_updates(engine) - clock->remote_updates;
    row.traffic = count_traffic(engine);
    dmg_traffic_subtract(&row.traffic, &clock->traffic);
    row.references = row.traffic.sent[DMG_UPDATE_REFRD].items;
    dmg_engine_counters(engine, &row.counters);
    dmg_counters_subtract(&row.counters, &clock->counters);
    engine->iterations[engine->iterations_kept++] = row;
    return DMG_OK;
}

void dmg_engine_finish(dmg_engine *engine, uint64_t started_ns, const dmg_range_array *values, dmg_run_result *result)
{
    dmg_counters counters;
    dmg_engine_counters(engine, &counters);
    result->values = *values;
    result->iteration_count = engine->iteration_count;
    result->iterations_kept = engine->iterations_kept;
    result->iterations = engine->iterations;
    result->elapsed_ns = dmg_now_ns() - started_ns;
    result->barrier_ns = engine->barrier_ns;
    result->barriers = engine->barriers;
    result->wait_ns = counters.wait_ns;
}
