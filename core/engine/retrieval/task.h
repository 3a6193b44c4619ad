/**
 * @file task.h
 * The inside of retrieval: a worker's tasks, shared by the worker's loop (retrieval.c), a task's state machine (task.c)
 * and what that does about memory (buffers.c), arrays (streams.c) and lists (lists.c).
 */
#ifndef DMG_CORE_ENGINE_RETRIEVAL_TASK_H
#define DMG_CORE_ENGINE_RETRIEVAL_TASK_H

#include "core/engine/retrieval/retrieval.h"

#define DMG_EDGE_BUFFER_BYTES (UINT64_C(128) << 10)
/** Reads closer than this are merged: fetching so many bytes too many costs less than one more operation. */
#define DMG_MERGE_GAP_BYTES 256
/** Headers of lists are fetched in rounds, with so much memory at most. */
#define DMG_HEADER_BUFFER_BYTES (UINT64_C(16) << 10)

typedef enum dmg_task_stage {
    DMG_STAGE_IDLE,
    DMG_STAGE_STREAMS,
    DMG_STAGE_INDEX,
    DMG_STAGE_LISTS,
    DMG_STAGE_LONG_LISTS, /**< the task's long lists are walked in segments, by it and others */
    DMG_STAGE_SEGMENT,    /**< fetching a segment, of this task's or another's list */
    DMG_STAGE_STORE
} dmg_task_stage;

/** A list, or the part of it that is wanted, before it has been fetched. */
typedef struct dmg_span {
    dmg_address address; /**< of the first edge */
    uint32_t vertex;     /**< less the chunk's first */
    uint32_t count;
    uint32_t before; /**< as in dmg_vertex_edges */
    uint32_t local;
    const uint8_t *mapped; /**< edges that need not be fetched, or NULL */
} dmg_span;

/** The smallest chunk: the vertices of a word of the activation bitmap. */
#define DMG_CHUNK_VERTICES_MIN 64

typedef struct dmg_task {
    dmg_task_stage stage;
    bool has_chunk;
    uint32_t long_first;         /**< the spans from here on, up to pieces_max, are long lists */
    uint32_t long_next;          /**< long lists from here on are in the worker's buffer, or were */
    _Atomic uint64_t unfinished; /**< edges of long lists that have not been walked */
    dmg_list_piece segment;      /**< of DMG_STAGE_SEGMENT */
    dmg_completion completion;
    dmg_chunk chunk;
    uint32_t selected_count;
    uint32_t span_count;
    uint32_t next_span; /**< of the lists stage: the first that is not fetched */
    uint32_t next_edge; /**< the first edge of the span next_span that is not fetched */
    uint32_t edges_count;
    uint64_t edges_total; /**< in the lists stage, of the lists that are there */
    uint8_t *stream_buffer;
    uint8_t *entry_buffer; /**< by vertex - first */
    uint8_t *value_buffer; /**< by vertex - first */
    uint8_t *edge_buffer;
    const uint8_t *entries; /**< entry_buffer, or where they are mapped */
    uint32_t *selected;
    dmg_span *spans; /**< short lists from the front, long ones from the back */
    dmg_vertex_edges *edges;
    bool streams_are_mapped[DMG_STREAMS_MAX];
} dmg_task;

struct dmg_retrieval {
    dmg_retrieval_setup setup;
    dmg_channel *channel;
    bool is_coherent; /**< what changes is read and written where it is mapped, too */
    uint32_t worker;
    bool is_mapped; /**< the pool is reached by loads and stores */
    bool owns_all;  /**< all partitions are this compute node's */
    dmg_retrieval_counts counts;
    uint32_t pieces_max; /**< lists, and pieces of lists that are cut by rank, of one chunk: each may become a span */
    uint32_t segment_edges; /**< lists of more edges are cut; UINT32_MAX: none are */
    uint32_t *header_buffer;
    uint32_t task_count;
    dmg_task tasks[];
};

/** After each operation that was posted, and each mapped span that was charged, of a step. */
static inline void dmg_retrieval_posted(dmg_retrieval *retrieval, const dmg_retrieval_step *step)
{
    if (!step->batches) {
        dmg_channel_ring(retrieval->channel);
        dmg_channel_charge_wait(retrieval->channel);
    }
}

/** Advance a task whose operations have ended as far as it goes without waiting. `*more` becomes false when there are
 * no vertices left to begin with. */
dmg_status dmg_task_advance(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_chunks *chunks,
                            dmg_task *task, bool *more);
/** False while pieces of its lists are to be handed out, or walked by others. */
bool dmg_task_is_through_with_long_lists(const dmg_task *task);

/** Start to fetch the streams of the task's chunk; those that are mapped are there at once. */
void dmg_task_post_streams(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task);
/** Start to write back the streams that the phase has changed. */
void dmg_task_store_streams(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task);
/** Start to fetch the index entries of the selected vertices, and their attributes when the plan wants those. */
void dmg_task_post_index(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task);

/**
 * From the index entries of the selected vertices to what is to be fetched: the task's spans. Segments may be passed on
 * by reference on the way. DMG_ERR_CORRUPT when an entry contradicts itself.
 */
dmg_status dmg_task_make_spans(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task);
/** Start to fetch as many of the spans that are left as fit into the buffer; the task's edges are theirs. */
void dmg_task_post_lists(dmg_retrieval *retrieval, dmg_task *task);
/** Start to fetch the task's segment; the task's edges are the piece's. */
void dmg_task_post_segment(dmg_retrieval *retrieval, dmg_task *task);
/** Where the pool is reached by loads and stores: from the index entries to edges at once, without a copy. */
dmg_status dmg_task_reach_lists(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task);

#endif
