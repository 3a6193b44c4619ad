/**
 * @file engine.h
 * The iteration loop on one compute node: joins the store, the update coordinator and the workers.
 *
 * An algorithm is a vertex program (monotone.h, accumulate.h) that is run on an engine; all ranks of a job run the same
 * one.
 */
#ifndef DMG_CORE_ENGINE_ENGINE_H
#define DMG_CORE_ENGINE_ENGINE_H

#include "core/base/budget.h"
#include "core/engine/exchange/coordinator.h"
#include "core/engine/groups.h"
#include "core/pool/pool.h"
#include "core/pool/range_array.h"
#include "core/store/graph_store.h"

typedef enum dmg_direction { DMG_DIRECTION_AUTO, DMG_DIRECTION_PUSH, DMG_DIRECTION_PULL } dmg_direction;
/** How exactly a compute node caches what vertices give in pull mode; sums and the pool's attributes are always double.
 */
typedef enum dmg_precision { DMG_PRECISION_AUTO, DMG_PRECISION_SINGLE, DMG_PRECISION_DOUBLE } dmg_precision;
/** A mechanism that is on unless it is switched off. */
typedef enum dmg_switch { DMG_SWITCH_ON, DMG_SWITCH_OFF } dmg_switch;
typedef enum dmg_density { DMG_DENSITY_AUTO, DMG_DENSITY_DENSE, DMG_DENSITY_SPARSE } dmg_density;

/**
 * Lists of more edges are walked in segments (DMG, section 4.4.2, where it is 1,024). On a Kronecker graph of scale 18,
 * pagerank over ucx's shared memory took 1.06 times as long with segments of 1,024 as without any, and as long with
 * 16,384: a segment is an operation.
 */
#define DMG_RESCHEDULE_DEGREE_DEFAULT 16384
#define DMG_RESCHEDULE_NEVER          UINT32_MAX

/** How a compute node passes on the partial sums that it makes in pull mode (DMG, section 4.5.2). */
typedef enum dmg_partials {
    DMG_PARTIALS_AUTO,
    DMG_PARTIALS_ARRAY, /**< an array of them a compute node, written in sequence, added up in the order of ranks */
    DMG_PARTIALS_VALUE  /**< those that are not 0 are updates by value (ValRD) */
} dmg_partials;

/** Segments of more edges than this, of lists of more edges than this, are passed by reference (DMG, section 4.3.1). */
#define DMG_REFERENCE_EDGES_DEFAULT  7
#define DMG_REFERENCE_DEGREE_DEFAULT 7
#define DMG_REFERENCE_EDGES_NEVER    UINT32_MAX

typedef struct dmg_engine_options {
    uint32_t threads;         /**< workers, at least 1 */
    uint64_t cache_bytes;     /**< hard limit of what the run keeps in this process; 0: none */
    uint32_t tasks_in_flight; /**< batches that a worker overlaps (DMG, section 4.5.1); 0: 4 */
    dmg_direction direction;  /**< AUTO: chosen per iteration */
    dmg_density density;      /**< AUTO: chosen per iteration */
    uint32_t reference_edges; /**< longer segments are passed by reference; 0: 7; DMG_REFERENCE_EDGES_NEVER: none are */
    dmg_caching caching;      /**< what is cached in dense iterations */
    uint32_t reference_degree;       /**< lists of no more edges go by value, whatever their segments; 0: 7 */
    uint32_t reference_buffer_bytes; /**< of a batch of references; 0: 4 KiB */
    uint32_t value_buffer_bytes; /**< of a batch of values; 0: 32 KiB. To memory nodes at most what a message holds */
    uint32_t round_buffers;      /**< that a rank leaves for another before they exchange; 0: DMG_MAILBOX_BUFFERS_MAX */
    dmg_partials partials;
    dmg_update_method updates; /**< how updates leave a partition; AUTO: as the pool's capabilities suggest */
    dmg_precision
        precision;       /**< SINGLE: half the cache, answers good to about 1e-7; AUTO: DOUBLE for fine tolerances */
    bool pin_threads;    /**< bind each worker to a core; DMG_ERR_UNSUPPORTED where that is refused */
    bool allow_fallback; /**< then: one warning, and workers that run anywhere */
    /* Merged and batched retrieval (retrieval.h; DMG, section 4.2.2), step by step. */
    dmg_switch merge_activation;
    dmg_switch batch_activation;
    dmg_switch merge_index;
    dmg_switch batch_index;
    dmg_switch merge_lists;
    dmg_switch batch_lists;
    uint32_t reschedule_degree; /**< longer lists are walked in segments of so many edges (core/work/reschedule.h); 0:
                                   DMG_RESCHEDULE_DEGREE_DEFAULT; DMG_RESCHEDULE_NEVER: none are. More than fit into a
                                   buffer, where segments are copied, is DMG_ERR_ARGUMENT (retrieval.h) */
    dmg_switch steal_segments;  /**< workers that run out of vertices take segments of others */
    bool cache_index;           /**< read the index once, and keep it (cached_index.h) */
    /** Called as each iteration begins (0, 1, ...), for progress; may be NULL. */
    void (*on_iteration)(void *context, uint32_t iteration, uint64_t active_vertices);
    void *on_iteration_context;
} dmg_engine_options;

#define DMG_ITERATION_ROWS_MAX 4096

/** How much work there was, and how it fell to workers. */
typedef struct dmg_worker_figures {
    uint64_t busy_ns;         /**< in phases, until the worker found nothing more to do; with its waits */
    uint64_t wait_ns;         /**< waited for operations, within busy_ns */
    uint64_t arcs;            /**< arcs walked */
    uint64_t largest_task;    /**< the most edges that a task was handed in one step */
    uint64_t lists_cut;       /**< lists that were cut in segments */
    uint64_t segments;        /**< segments walked, own and stolen */
    uint64_t segments_stolen; /**< segments walked of other workers' lists */
} dmg_worker_figures;

/** One line of the per-iteration table, of this rank unless it says otherwise. */
typedef struct dmg_iteration {
    dmg_direction direction;
    dmg_density density;
    uint64_t active_vertices; /**< over all ranks, at the start */
    uint64_t arcs;            /**< arcs walked */
    uint64_t updates_local;
    uint64_t updates_remote; /**< updates that left the partition one by one */
    uint64_t references;     /**< segments that were passed on by reference */
    dmg_traffic traffic;     /**< what left the partition and what came in, by method */
    uint64_t elapsed_ns;
    uint64_t barrier_ns;     /**< waited in barriers, within elapsed_ns */
    uint64_t barriers;       /**< number of barriers; a lone rank does not wait in them */
    dmg_worker_figures work; /**< of all workers: sums, and the largest task */
    uint64_t busy_ns_max;    /**< of the worker that had most */
    uint64_t arcs_max;       /**< of the worker that walked most */
    dmg_counters counters;   /**< what went over the interconnect, all threads */
} dmg_iteration;

/** What a run leaves behind on each rank. */
typedef struct dmg_run_result {
    dmg_range_array values; /**< in the pool: one attribute a vertex, the same descriptor on all ranks */
    uint32_t iteration_count;
    uint32_t iterations_kept;  /**< rows: of long runs just the first DMG_ITERATION_ROWS_MAX are kept */
    dmg_iteration *iterations; /**< owned by the engine */
    uint64_t elapsed_ns;       /**< of the iterations and the start values, without loading */
    uint64_t barrier_ns;
    uint64_t barriers;
    uint64_t wait_ns; /**< waiting for operations, all threads added */
    double residual;  /**< last value of the program's convergence measure, or 0 */
} dmg_run_result;

typedef struct dmg_engine dmg_engine;

/**
 * Make the engine of one rank: opens a channel a worker. `channel`, `job` and `store` are used until
 * dmg_engine_destroy. Every rank of the job calls it with the same store and compatible options: those that say what is
 * cached, updated and walked must agree. The job may have any number of ranks up to DMG_COMPUTE_NODES_MAX (groups.h).
 */
dmg_status dmg_engine_create(dmg_client *client, dmg_channel *channel, dmg_job *job, const dmg_graph_store *store,
                             const dmg_engine_options *options, dmg_engine **engine);
/** Frees what the run kept here; what is in the pool stays until the job ends. NULL is allowed. */
void dmg_engine_destroy(dmg_engine *engine);
/** The budget, for reports. */
const dmg_budget *dmg_engine_budget(const dmg_engine *engine);
/** How updates leave partitions in dense iterations: what AUTO became. */
dmg_update_method dmg_engine_update_method(const dmg_engine *engine);
/** Workers that are bound to one core each, as the kernel says. */
uint32_t dmg_engine_pinned_workers(const dmg_engine *engine);
/** Everything that this rank's channels did so far. */
void dmg_engine_counters(const dmg_engine *engine, dmg_counters *counters);
/** Of it, what went to one memory node. */
void dmg_engine_traffic(const dmg_engine *engine, uint16_t node, dmg_node_traffic *traffic);

/** sum += more; the larger of the largest tasks. */
void dmg_worker_figures_add(dmg_worker_figures *sum, const dmg_worker_figures *more);
/** What a worker did in all iterations so far; `worker` < threads. */
dmg_worker_figures dmg_engine_worker(const dmg_engine *engine, uint32_t worker);

/**
 * Load a share of the graph with all workers: this rank's part of the vertices by arcs. Ends with a barrier.
 */
dmg_status dmg_engine_load(dmg_engine *engine, const dmg_graph *graph, _Atomic uint64_t *progress_arcs);

#endif
