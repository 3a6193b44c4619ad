/**
 * @file runtime.h
 * What the two kinds of vertex program (monotone.h, accumulate.h) share: workers, phases, barriers, arrays of a run.
 */
#ifndef DMG_CORE_ENGINE_RUNTIME_H
#define DMG_CORE_ENGINE_RUNTIME_H

#include "core/base/error.h"
#include "core/engine/engine.h"
#include "core/engine/exchange/coordinator.h"
#include "core/engine/retrieval/retrieval.h"
#include "core/work/thread_team.h"

/** What the pool holds, and a phase cannot believe. */
typedef enum dmg_stray {
    DMG_STRAY_NONE,
    DMG_STRAY_EDGE,      /**< of a list, that leads out of the vertices that it should lead to */
    DMG_STRAY_ACTIVATION /**< a bit behind the last vertex's */
} dmg_stray;

/** One worker: what it uses, and what it counted in the current phase. */
typedef struct dmg_worker {
    _Alignas(64) dmg_channel *channel;
    dmg_retrieval *retrieval;
    dmg_update_coordinator remote; /**< updates that leave the partition */
    uint64_t arcs;                 /**< arcs walked */
    uint64_t updates_local;        /**< tried on the cached partition */
    uint64_t active_vertices;      /**< found active for the next iteration */
    uint64_t active_arcs;          /**< arcs of the vertices found active */
    uint64_t busy_ns;              /**< in phases */
    uint64_t wait_ns;              /**< waited for operations, within busy_ns */
    dmg_worker_figures total;      /**< of all iterations that have ended */
    double real;                   /**< what an accumulating program's vertices share */
    double missing;                /**< what single precision takes from what its vertices give, in all */
    uint64_t fixed;                /**< how much its values changed, in fixed point */
    dmg_stray stray;               /**< the first that it met in this phase */
    uint32_t stray_vertex;         /**< whose list, or whose bit, it is */
    dmg_kept_error error;          /**< of this phase, carried from the worker's thread */
} dmg_worker;

/** Adds what has been counted so far. */
typedef void (*dmg_traffic_source)(const void *context, dmg_traffic *traffic);

struct dmg_engine {
    dmg_client *client;
    dmg_channel *channel;
    dmg_job *job;
    const dmg_graph_store *store;
    dmg_retrieval_setup retrieval_setup; /**< of all workers */
    dmg_engine_options options;
    dmg_budget *budget;
    dmg_thread_team *team;
    dmg_reschedule *reschedule; /**< NULL: switched off */
    dmg_worker *workers;
    dmg_chunks chunks;
    dmg_cached_index cached_indices[2]; /**< along the arcs, and against them */
    dmg_groups groups;
    dmg_block_cyclic share;   /**< of [first_vertex, last_vertex), the vertices that this rank walks and writes */
    uint32_t first_partition; /**< the first partition that this rank caches */
    uint32_t last_partition;
    uint64_t first_vertex; /**< of the cached partitions */
    uint64_t last_vertex;
    dmg_update_method update_method;   /**< of dense iterations: not AUTO */
    dmg_traffic_source traffic_source; /**< what counts beside the workers; NULL: nothing does */
    const void *traffic_context;
    dmg_traffic traffic_before; /**< what earlier sources have counted */
    uint32_t arrays_shared;     /**< names the next one */
    dmg_iteration *iterations;
    uint32_t iteration_count;
    uint32_t iterations_kept;
    uint32_t iteration_capacity; /**< of `iterations` */
    uint64_t barrier_ns;
    uint64_t barriers;
};

/** Keep a worker's error, whose context lies in the worker's thread. */
void dmg_worker_keep(dmg_worker *worker, dmg_status status);
/** After a team has run: the first worker's error, with its sentence, becomes this thread's. */
dmg_status dmg_workers_collect(dmg_engine *engine, uint32_t workers);

/**
 * What a phase does not follow: an edge or a bit that leads to no memory of its. The first of a phase is kept; the
 * phase goes on without it, and then fails with DMG_ERR_CORRUPT. Never inlined, so that a loop over edges pays for it
 * with a comparison alone.
 */
__attribute__((cold, noinline)) void dmg_worker_note_stray(dmg_worker *worker, dmg_stray stray, uint64_t vertex);

/** Around a worker's share of a phase: its time is counted. */
typedef struct dmg_worker_clock {
    uint64_t begun_ns;
    uint64_t wait_ns; /**< waited before */
} dmg_worker_clock;
dmg_worker_clock dmg_worker_begin(const dmg_worker *worker);
void dmg_worker_end(dmg_worker *worker, const dmg_worker_clock *clock);

/** Run a phase on so many workers: all chunks of the plan's range, then the queued remote updates. Counts into the
 * workers. */
dmg_status dmg_engine_phase(dmg_engine *engine, const dmg_retrieval_plan *plan, uint32_t workers);
/** Go on with a phase that its plan has paused: dmg_chunks_are_left(&engine->chunks). */
dmg_status dmg_engine_resume_phase(dmg_engine *engine, const dmg_retrieval_plan *plan, uint32_t workers);

/** Meet all ranks. Fails with DMG_ERR_PEER too when a memory node died, although nothing was sent to it. */
dmg_status dmg_engine_barrier(dmg_engine *engine, dmg_reduction *reduction);

/** An array of the run: rank 0 allocates it, all ranks get it. Zeroed. */
dmg_status dmg_engine_array(dmg_engine *engine, uint64_t count, uint32_t element_bytes, dmg_range_array *array);
/** One with an element a vertex, each on the memory node that has the vertex's index entry; otherwise the same. */
dmg_status dmg_engine_vertex_array(dmg_engine *engine, uint32_t element_bytes, dmg_range_array *array);

/** An array of words of 64 vertices beside one of the run's arrays; otherwise the same. */
dmg_status dmg_engine_bitmap(dmg_engine *engine, const dmg_range_array *beside, dmg_range_array *array);

/** Direct all workers' updates in the following phases. */
void dmg_engine_set_target(dmg_engine *engine, dmg_update_method method, const dmg_update_target *target);

/** From now on iterations count, beside the workers, what this source counts. What the last source has counted is kept.
 * NULL: nothing counts. */
void dmg_engine_count_traffic_of(dmg_engine *engine, dmg_traffic_source source, const void *context);

/** Zero what the workers counted. */
void dmg_engine_reset_counts(dmg_engine *engine);
/** The workers' counts added up; errors are not. */
dmg_worker dmg_engine_counts(const dmg_engine *engine);

/** The measurements of one iteration, from begin to end. */
typedef struct dmg_iteration_clock {
    uint64_t started_ns;
    uint64_t barrier_ns;
    uint64_t barriers;
    uint64_t remote_updates;
    dmg_traffic traffic;
    dmg_counters counters;
} dmg_iteration_clock;

/** Zero what is counted, and start the clock. */
void dmg_engine_begin_iteration(dmg_engine *engine, uint64_t active_vertices, dmg_iteration_clock *clock);
/** Append a row; the caller has filled in direction, density, active vertices and its own counts. */
dmg_status dmg_engine_end_iteration(dmg_engine *engine, const dmg_iteration_clock *clock, dmg_iteration row);

/** Fill in what all programs report alike. */
void dmg_engine_finish(dmg_engine *engine, uint64_t started_ns, const dmg_range_array *values, dmg_run_result *result);

/** DMG_ERR_ARGUMENT when pulling was asked for and the graph has no lists for that. */
dmg_status dmg_engine_check_direction(const dmg_engine *engine);

/** Tell the others that this rank fails; returns `status` with its sentence kept. */
dmg_status dmg_engine_abort(dmg_engine *engine, dmg_status status);

#endif
