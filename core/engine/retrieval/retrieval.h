/**
 * @file retrieval.h
 * Merged and batched retrieval (DMG, section 4.2.2): a worker takes chunks of consecutive vertices, fetches what a
 * phase needs of them, and hands vertices with their edges to the phase.
 *
 * A phase is a plan. For each chunk, in this order, each step merged into as few operations as its gaps allow and rung
 * once:
 *
 *     streams   arrays of which the phase wants all elements of the chunk: activation words, attributes, degrees
 *     select    the phase names the vertices whose edges it wants
 *     index     their index entries (and their attributes, when the phase asked for those of the selected alone)
 *     lists     their out-of-place lists, or of these the segments of this compute node's partitions
 *     apply     the phase sees vertices and edges; lists that do not fit into the buffer come in several rounds
 *     store     streams that the phase changed are written back
 *
 * Lists of very many edges come after the others, in segments, each in a call of apply of its own, by any task of the
 * worker and by workers that have nothing else to do (reschedule.h). Their chunk waits for them before it is stored.
 *
 * A worker keeps several chunks in flight (DMG, section 4.5.1): while one waits for the link, another is applied. Each
 * is a small state machine, a *task*. Where the pool is reached by loads and stores nothing is copied: streams, entries
 * and lists are pointers into the pool, and one task is enough.
 */
#ifndef DMG_CORE_ENGINE_RETRIEVAL_RETRIEVAL_H
#define DMG_CORE_ENGINE_RETRIEVAL_RETRIEVAL_H

#include "core/base/budget.h"
#include "core/engine/retrieval/cached_index.h"
#include "core/store/graph_store.h"
#include "core/work/chunks.h"
#include "core/work/reschedule.h"

#define DMG_STREAMS_MAX 24

typedef enum dmg_stream_mode {
    DMG_STREAM_READ = 1,
    DMG_STREAM_WRITE = 2, /**< the phase sets every element */
    DMG_STREAM_READ_WRITE = 3
} dmg_stream_mode;

typedef struct dmg_stream {
    const dmg_range_array *array;
    uint32_t vertices_an_element; /**< 1; 64 for words of an activation bitmap */
    dmg_stream_mode mode;
} dmg_stream;

/** A vertex and (some of) its edges. */
typedef struct dmg_vertex_edges {
    const uint8_t *edges; /**< shape.edge_bytes each, ascending by destination */
    uint32_t vertex;
    uint32_t count;
    /** The edges [before, before + local) go to this compute node's partitions; DMG_EDGES_MIXED when that has to be
     * looked up per edge. */
    uint32_t before;
    uint32_t local;
} dmg_vertex_edges;

#define DMG_EDGES_MIXED UINT32_MAX

/** A chunk as the phase sees it. */
typedef struct dmg_chunk {
    uint64_t first;
    uint32_t count;
    uint32_t worker;
    bool skip_store;     /**< the phase may set it: nothing in this chunk's streams was changed */
    bool is_first_round; /**< of the rounds in which this chunk's edges come */
    /** A segment of a long list: other workers may have others of the same list and chunk at this moment, so what apply
     * changes in the streams it changes atomically. */
    bool is_shared;
    void *streams[DMG_STREAMS_MAX]; /**< element 0 is that of vertex `first` */
    const void *selected_values;    /**< by vertex - first; only those of selected vertices are there */
} dmg_chunk;

/** A segment of an out-of-place list whose edges go to another rank's partitions. */
typedef struct dmg_foreign_segment {
    dmg_address first_edge;
    uint32_t count; /**< edges, at least one */
    uint32_t rank;
    uint32_t vertex;
    uint32_t degree; /**< of the whole list */
} dmg_foreign_segment;

typedef struct dmg_retrieval_plan {
    uint64_t first; /**< the vertices of the phase; a multiple of 64 */
    uint64_t last;
    dmg_block_cyclic share; /**< which of them this compute node takes; zero: all */
    uint32_t stream_count;
    dmg_stream streams[DMG_STREAMS_MAX];
    const dmg_range_array *selected_values; /**< NULL: none */
    const dmg_range_array *index;           /**< NULL: no edges are wanted; apply is called once a chunk without any */
    const dmg_cached_index *cached_index;   /**< NULL: the entries are read from the pool */
    dmg_purpose stream_purpose;             /**< OTHER: DMG_PURPOSE_STREAMS */
    bool local_segments_only;               /**< of out-of-place lists, just the segments of this node's partitions */
    /**
     * Offered each segment of an out-of-place list whose edges go to another rank's partitions (RefRD; DMG,
     * section 4.3.1), `rank` being that among the setup's `ranks`; NULL: none is offered. When it returns true the
     * phase has passed the segment on, and its edges are not fetched.
     */
    bool (*refer)(void *context, const dmg_chunk *chunk, const dmg_foreign_segment *segment);
    /**
     * Fill `selected` with the vertices (less chunk->first, ascending) whose edges are wanted; returns their number.
     * NULL: all.
     */
    uint32_t (*select)(void *context, dmg_chunk *chunk, uint32_t *selected);
    void (*apply)(void *context, dmg_chunk *chunk, const dmg_vertex_edges *edges, uint32_t count);
    /** True when workers should take no more chunks for now (the rest can be run later); NULL: never. */
    bool (*pause)(const void *context);
    /** When a worker takes no more chunks; NULL: nothing is to be done. */
    dmg_status (*finish)(void *context, uint32_t worker);
    void *context;
} dmg_retrieval_plan;

/** How a step of retrieval goes about its operations (DMG, section 4.2.2). */
typedef struct dmg_retrieval_step {
    /** Neighbours are one operation. Else an operation an element, an entry, a list. */
    bool merges;
    /** All operations of a chunk are rung once. Else each by itself; and where the pool is reached by loads and stores,
     * each span is waited for before the next. */
    bool batches;
} dmg_retrieval_step;

/** What all workers' retrievals have in common. */
typedef struct dmg_retrieval_setup {
    dmg_client *client;
    dmg_budget *budget;
    const dmg_graph_store *store;
    uint32_t first_partition; /**< this compute node's */
    uint32_t last_partition;
    uint32_t rank; /**< of `ranks`, who share the partitions: this one among the members of its group (groups.h) */
    uint32_t ranks;
    uint32_t tasks;                /**< in flight, at least 1 */
    dmg_retrieval_step activation; /**< reading the streams of a phase that wants edges */
    dmg_retrieval_step index;
    dmg_retrieval_step lists;
    dmg_reschedule *reschedule; /**< buffers for long lists, one a worker; NULL: lists are not cut in segments */
    bool steals;                /**< workers that run out of vertices take segments of others */
} dmg_retrieval_setup;

/** What a retrieval did since its counts were zeroed. */
typedef struct dmg_retrieval_counts {
    uint64_t largest_task;    /**< the most edges that one call of apply was handed */
    uint64_t lists_cut;       /**< lists that were cut in segments */
    uint64_t segments;        /**< segments walked, own and stolen */
    uint64_t segments_stolen; /**< segments walked of other workers' lists */
} dmg_retrieval_counts;

typedef struct dmg_retrieval dmg_retrieval;

/**
 * One worker's buffers. Costs about half a megabyte a task where lists have to be copied. There a segment must fit into
 * a task's buffer, or it is DMG_ERR_ARGUMENT, with the most that is possible.
 */
dmg_status dmg_retrieval_create(const dmg_retrieval_setup *setup, dmg_channel *channel, uint32_t worker,
                                dmg_retrieval **retrieval);
/** NULL is allowed. */
void dmg_retrieval_destroy(dmg_retrieval *retrieval);
/** To be read, and zeroed, between runs. */
dmg_retrieval_counts *dmg_retrieval_count(dmg_retrieval *retrieval);

/** The largest chunks that the buffers allow for a plan. */
uint32_t dmg_retrieval_chunk_vertices(const dmg_retrieval_setup *setup, const dmg_retrieval_plan *plan);
/** The partitions of a rank: fewer compute nodes than partitions take several each (DMG, section 4.3.1). */
static inline uint32_t dmg_first_partition_of(uint32_t partitions, uint32_t rank, uint32_t ranks)
{
    return (uint32_t)((uint64_t)partitions * rank / ranks);
}

/** Take and carry out chunks until none is left, the plan pauses or something fails. `chunks` was reset to the plan's
 * range. */
dmg_status dmg_retrieval_run(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_chunks *chunks);

#endif
