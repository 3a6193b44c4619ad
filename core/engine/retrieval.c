#include "core/engine/retrieval.h"

#include "core/base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define EDGE_BUFFER_BYTES (UINT64_C(256) << 10)
/* Reads closer than this are merged: fetching so many bytes too many costs less than one more operation. */
#define MERGE_GAP_BYTES 256
/* Rounds of lengths that stand in front of lists are fetched with so much memory at most. */
#define FRONT_BUFFER_BYTES (UINT64_C(16) << 10)

enum stage { STAGE_IDLE, STAGE_STREAMS, STAGE_INDEX, STAGE_LISTS, STAGE_STORE };

/* A list, or the part of it that is wanted, before it has been fetched. */
struct span {
    dmg_address address; /* of the first edge */
    uint32_t vertex;     /* less the chunk's first */
    uint32_t count;
    uint32_t before;
    uint32_t local;
    const uint8_t *in_place; /* edges that the entry holds, or NULL */
};

struct task {
    enum stage stage;
    dmg_completion completion;
    dmg_chunk chunk;
    uint32_t selected_count;
    uint32_t span_count;
    uint32_t next_span; /* of the lists stage: the first that is not fetched */
    uint32_t next_edge; /* of that span */
    uint32_t edges_count;
    uint8_t *stream_buffer;
    uint8_t *entry_buffer; /* by vertex - first */
    uint8_t *value_buffer; /* likewise */
    uint8_t *edge_buffer;
    const uint8_t *entries; /* entry_buffer, or in place */
    uint32_t *selected;
    struct span *spans;
    dmg_vertex_edges *edges;
    bool streams_are_in_place[DMG_STREAMS_MAX];
};

struct dmg_retrieval {
    dmg_retrieval_setup setup;
    dmg_channel *channel;
    uint32_t worker;
    bool in_place; /* the pool is reached by loads and stores */
    bool owns_all; /* all partitions are this compute node's */
    uint32_t *front_buffer;
    uint32_t task_count;
    struct task tasks[];
};

/* ---- memory ---- */

/* Most streams are 8 bytes a vertex; plans with more than these eight run on smaller chunks. */
#define STREAM_BUFFER_BYTES ((uint64_t)DMG_CHUNK_VERTICES_MAX * 8 * 8)

struct buffer_need {
    void **memory;
    uint64_t bytes;
};

static uint32_t list_buffers(struct dmg_retrieval *retrieval, struct task *task, struct buffer_need needs[8])
{
    const uint64_t vertices = DMG_CHUNK_VERTICES_MAX;
    uint32_t count = 0;
    needs[count++] = (struct buffer_need){(void **)&task->selected, vertices * sizeof *task->selected};
    needs[count++] = (struct buffer_need){(void **)&task->spans, vertices * sizeof *task->spans};
    needs[count++] = (struct buffer_need){(void **)&task->edges, vertices * sizeof *task->edges};
    needs[count++] = (struct buffer_need){(void **)&task->stream_buffer, STREAM_BUFFER_BYTES};
    needs[count++] =
        (struct buffer_need){(void **)&task->entry_buffer, vertices * retrieval->setup.store->shape.entry_bytes};
    needs[count++] = (struct buffer_need){(void **)&task->value_buffer, vertices * 8};
    if (!retrieval->in_place) {
        needs[count++] = (struct buffer_need){(void **)&task->edge_buffer, EDGE_BUFFER_BYTES};
    }
    return count;
}

static uint64_t retrieval_bytes(uint32_t tasks)
{
    return sizeof(struct dmg_retrieval) + tasks * sizeof(struct task);
}

dmg_status dmg_retrieval_create(const dmg_retrieval_setup *setup, dmg_channel *channel, uint32_t worker,
                                dmg_retrieval **out)
{
    bool in_place = (dmg_client_capabilities(setup->client)->flags & DMG_CAPABILITY_LOAD_STORE) != 0;
    uint32_t tasks = in_place ? 1 : setup->tasks;
    void *memory;
    dmg_status status = dmg_budget_allocate(setup->budget, DMG_BUDGET_RETRIEVAL, retrieval_bytes(tasks), &memory);
    dmg_retrieval *retrieval = *out = memory;
    if (status != DMG_OK) {
        return status;
    }
    retrieval->setup = *setup;
    retrieval->channel = channel;
    retrieval->worker = worker;
    retrieval->in_place = in_place;
    retrieval->owns_all = setup->first_partition == 0 && setup->last_partition == setup->store->shape.partition_count;
    retrieval->task_count = tasks;
    status = dmg_budget_allocate(setup->budget, DMG_BUDGET_RETRIEVAL, FRONT_BUFFER_BYTES, &memory);
    retrieval->front_buffer = memory;
    for (uint32_t i = 0; i < tasks && status == DMG_OK; i++) {
        struct buffer_need needs[8];
        uint32_t count = list_buffers(retrieval, &retrieval->tasks[i], needs);
        for (uint32_t j = 0; j < count && status == DMG_OK; j++) {
            status = dmg_budget_allocate(setup->budget, DMG_BUDGET_RETRIEVAL, needs[j].bytes, needs[j].memory);
        }
    }
    if (status != DMG_OK) {
        dmg_retrieval_destroy(retrieval);
        *out = NULL;
    }
    return status;
}

void dmg_retrieval_destroy(dmg_retrieval *retrieval)
{
    if (!retrieval) {
        return;
    }
    dmg_budget *budget = retrieval->setup.budget;
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        struct buffer_need needs[8];
        uint32_t count = list_buffers(retrieval, &retrieval->tasks[i], needs);
        for (uint32_t j = 0; j < count; j++) {
            dmg_budget_free(budget, DMG_BUDGET_RETRIEVAL, *needs[j].memory, needs[j].bytes);
        }
    }
    dmg_budget_free(budget, DMG_BUDGET_RETRIEVAL, retrieval->front_buffer, FRONT_BUFFER_BYTES);
    dmg_budget_free(budget, DMG_BUDGET_RETRIEVAL, retrieval, retrieval_bytes(retrieval->task_count));
}

/* ---- streams ---- */

static uint64_t stream_elements(const dmg_stream *stream, uint32_t vertices)
{
    return (vertices + stream->vertices_an_element - 1) / stream->vertices_an_element;
}

/* Elements [first, first + count) in place when they lie on one node and can be reached, else NULL. */
static void *array_in_place(dmg_retrieval *retrieval, const dmg_range_array *array, uint64_t first, uint64_t count)
{
    if (!retrieval->in_place || dmg_range_array_run(array, first, count) < count) {
        return NULL;
    }
    return dmg_client_pointer(retrieval->setup.client, dmg_range_array_address(array, first),
                              count * array->element_bytes);
}

/* Account for elements that are used in place; they lie on one node. */
static void touch(dmg_retrieval *retrieval, const dmg_range_array *array, uint64_t first, uint64_t count)
{
    dmg_channel_touch(retrieval->channel, dmg_range_array_address(array, first), count * array->element_bytes);
}

static void post_streams(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task)
{
    uint8_t *buffer = task->stream_buffer;
    for (uint32_t i = 0; i < plan->stream_count; i++) {
        const dmg_stream *stream = &plan->streams[i];
        uint64_t first = task->chunk.first / stream->vertices_an_element;
        uint64_t count = stream_elements(stream, task->chunk.count);
        void *pointer = array_in_place(retrieval, stream->array, first, count);
        task->streams_are_in_place[i] = pointer != NULL;
        task->chunk.streams[i] = pointer ? pointer : buffer;
        if (pointer) {
            touch(retrieval, stream->array, first, count);
            continue;
        }
        if (stream->mode & DMG_STREAM_READ) {
            dmg_range_array_post_read(retrieval->channel, stream->array, first, count, buffer, &task->completion);
        }
        buffer += (count * stream->array->element_bytes + 63) & ~UINT64_C(63);
    }
}

static void store_streams(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task)
{
    for (uint32_t i = 0; i < plan->stream_count && !task->chunk.skip_store; i++) {
        const dmg_stream *stream = &plan->streams[i];
        if ((stream->mode & DMG_STREAM_WRITE) && !task->streams_are_in_place[i]) {
            dmg_range_array_post_write(
                retrieval->channel, stream->array, task->chunk.first / stream->vertices_an_element,
                stream_elements(stream, task->chunk.count), task->chunk.streams[i], &task->completion);
        }
    }
}

/* ---- index ---- */

/*
 * Elements of the selected vertices: in place where the chunk can be reached, else fetched to where each belongs in `buffer`, neighbours and near
 * neighbours merged.
 */
static const uint8_t *post_selected(dmg_retrieval *retrieval, struct task *task, const dmg_range_array *array,
                                    uint8_t *buffer)
{
    const uint8_t *in_place = array_in_place(retrieval, array, task->chunk.first, task->chunk.count);
    const uint32_t step_max = MERGE_GAP_BYTES / array->element_bytes + 1;
    for (uint32_t i = 0; i < task->selected_count;) {
        uint32_t first = task->selected[i];
        uint32_t last = first;
        while (++i < task->selected_count && task->selected[i] - last <= step_max) {
            last = task->selected[i];
        }
        if (in_place) {
            touch(retrieval, array, task->chunk.first + first, last - first + 1);
        } else {
            dmg_range_array_post_read(retrieval->channel, array, task->chunk.first + first, last - first + 1,
                                      buffer + (uint64_t)first * array->element_bytes, &task->completion);
        }
    }
    return in_place ? in_place : buffer;
}

static void select_vertices(const dmg_retrieval_plan *plan, struct task *task)
{
    if (plan->select) {
        task->selected_count = plan->select(plan->context, &task->chunk, task->selected);
        return;
    }
    for (uint32_t i = 0; i < task->chunk.count; i++) {
        task->selected[i] = i;
    }
    task->selected_count = task->chunk.count;
}

static void post_index(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task)
{
    task->entries = post_selected(retrieval, task, plan->index, task->entry_buffer);
    if (plan->selected_values) {
        task->chunk.selected_values = post_selected(retrieval, task, plan->selected_values, task->value_buffer);
    }
}

/* ---- lists ---- */

static dmg_status corrupt_entry(const struct task *task, uint32_t vertex)
{
    return dmg_error(DMG_ERR_CORRUPT, "the index entry of vertex %" PRIu64 " contradicts itself: load the graph again",
                     task->chunk.first + vertex);
}

/* Bytes of the buffer in which lengths that stand in front of lists are fetched. */
static uint32_t fronts_that_fit(const dmg_index_shape *shape)
{
    return (uint32_t)(FRONT_BUFFER_BYTES / dmg_index_front_bytes(shape));
}

static const uint32_t *front_at(const dmg_retrieval *retrieval, uint32_t index)
{
    return retrieval->front_buffer + index * (dmg_index_front_bytes(&retrieval->setup.store->shape) / 4);
}

/* Segments of an entry that belong to a rank. False when the entry contradicts itself. */
static bool segments_of_rank(const dmg_retrieval *retrieval, const uint8_t *entry, const uint32_t *front, uint32_t rank,
                             uint64_t *before, uint64_t *edges)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    uint32_t ranks = retrieval->setup.ranks;
    return dmg_index_entry_segments(shape, entry, front, dmg_first_partition_of(shape->partition_count, rank, ranks),
                                    dmg_first_partition_of(shape->partition_count, rank + 1, ranks), before, edges);
}

static void add_span(struct task *task, uint32_t vertex, dmg_address first_edge, uint32_t count, uint32_t before,
                     uint32_t local)
{
    task->spans[task->span_count++] =
        (struct span){.address = first_edge, .vertex = vertex, .count = count, .before = before, .local = local};
}

/*
 * An out-of-place list of which segments may be passed on by reference: what is left of it to be fetched are this rank's own segment, and those
 * that the phase did not take.
 */
static bool refer_segments(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task, uint32_t vertex,
                           const uint8_t *entry, const uint32_t *front)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    dmg_address first_edge = dmg_index_entry_first_edge(shape, entry);
    for (uint32_t rank = 0; rank < retrieval->setup.ranks; rank++) {
        uint64_t before, edges;
        if (!segments_of_rank(retrieval, entry, front, rank, &before, &edges)) {
            return false;
        }
        dmg_address address = first_edge + before * shape->edge_bytes;
        uint32_t count = (uint32_t)edges;
        if (rank == retrieval->setup.rank) {
            add_span(task, vertex, address, count, 0, count);
        } else if (count > 0 && !plan->refer(plan->context, retrieval->worker, (uint32_t)task->chunk.first + vertex,
                                             rank, address, count)) {
            add_span(task, vertex, address, count, count, 0);
        }
    }
    return true;
}

/* What of an out-of-place list is to be fetched. `front` is what stands in front of it, when its lengths do. */
static bool cut_list(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task, uint32_t vertex,
                     const uint32_t *front)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    const uint8_t *entry = task->entries + (uint64_t)vertex * shape->entry_bytes;
    dmg_address first_edge = dmg_index_entry_first_edge(shape, entry);
    uint32_t degree = dmg_index_entry_degree(entry);
    uint64_t before = 0;
    uint64_t local = degree;
    if (plan->refer && !retrieval->owns_all) {
        return refer_segments(retrieval, plan, task, vertex, entry, front);
    }
    if (!retrieval->owns_all && !segments_of_rank(retrieval, entry, front, retrieval->setup.rank, &before, &local)) {
        return false;
    }
    if (plan->local_segments_only) {
        add_span(task, vertex, first_edge + before * shape->edge_bytes, (uint32_t)local, 0, (uint32_t)local);
    } else {
        add_span(task, vertex, first_edge, degree, (uint32_t)before, (uint32_t)local);
    }
    return true;
}

/* Lists whose lengths stand in front of them: fetch the lengths of all, then cut. */
static dmg_status cut_by_fronts(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task,
                                const uint32_t *vertices, uint32_t count)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    dmg_completion completion = {0};
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *entry = task->entries + (uint64_t)vertices[i] * shape->entry_bytes;
        dmg_post_read(retrieval->channel, dmg_index_entry_list(entry), (void *)front_at(retrieval, i),
                      dmg_index_front_bytes(shape), &completion);
    }
    dmg_status status = dmg_wait(retrieval->channel, &completion);
    for (uint32_t i = 0; i < count && status == DMG_OK; i++) {
        if (!cut_list(retrieval, plan, task, vertices[i], front_at(retrieval, i))) {
            return corrupt_entry(task, vertices[i]);
        }
    }
    return status;
}

/* From the entries of the selected vertices to what is to be fetched. */
static dmg_status make_spans(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    uint32_t fronts[FRONT_BUFFER_BYTES / 8];
    uint32_t front_count = 0;
    dmg_status status = DMG_OK;
    task->span_count = 0;
    task->next_span = 0;
    task->next_edge = 0;
    for (uint32_t i = 0; i < task->selected_count && status == DMG_OK; i++) {
        uint32_t vertex = task->selected[i];
        const uint8_t *entry = task->entries + (uint64_t)vertex * shape->entry_bytes;
        uint32_t degree = dmg_index_entry_degree(entry);
        if (degree == 0) {
            continue;
        }
        if (degree <= shape->in_place_degree_max) {
            add_span(task, vertex, DMG_ADDRESS_NULL, degree, retrieval->owns_all ? 0 : DMG_EDGES_MIXED, degree);
            task->spans[task->span_count - 1].in_place = dmg_index_entry_edges(entry);
        } else if (!retrieval->owns_all && dmg_index_entry_lengths_are_in_front(entry)) {
            fronts[front_count++] = vertex;
            if (front_count == fronts_that_fit(shape)) {
                status = cut_by_fronts(retrieval, plan, task, fronts, front_count);
                front_count = 0;
            }
        } else if (!cut_list(retrieval, plan, task, vertex, NULL)) {
            return corrupt_entry(task, vertex);
        }
    }
    return status == DMG_OK && front_count > 0 ? cut_by_fronts(retrieval, plan, task, fronts, front_count) : status;
}

static void add_edges(struct task *task, const struct span *span, uint32_t first, uint32_t count, const uint8_t *edges)
{
    dmg_vertex_edges *item = &task->edges[task->edges_count++];
    item->edges = edges;
    item->vertex = (uint32_t)task->chunk.first + span->vertex;
    item->count = count;
    if (span->before == DMG_EDGES_MIXED) {
        item->before = DMG_EDGES_MIXED;
        item->local = 0;
        return;
    }
    /* What of [before, before + local) lies in this piece [first, first + count). */
    uint64_t local_first = span->before > first ? span->before : first;
    uint64_t local_last = (uint64_t)span->before + span->local;
    uint64_t last = (uint64_t)first + count;
    local_last = local_last < last ? local_last : last;
    if (local_first > last) {
        local_first = last;
    }
    item->before = (uint32_t)(local_first - first);
    item->local = local_last > local_first ? (uint32_t)(local_last - local_first) : 0;
}

/* Spans that can be reached become edges without a copy. Accounting merges what the other backends' reads would: lists that follow each other. */
static dmg_status lists_in_place(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    dmg_address merged_first = DMG_ADDRESS_NULL;
    dmg_address merged_last = DMG_ADDRESS_NULL;
    task->edges_count = 0;
    for (uint32_t i = 0; i < task->selected_count; i++) {
        uint32_t vertex = task->selected[i];
        const uint8_t *entry = task->entries + (uint64_t)vertex * shape->entry_bytes;
        uint32_t degree = dmg_index_entry_degree(entry);
        if (degree <= shape->in_place_degree_max) {
            if (degree > 0) {
                task->edges[task->edges_count++] =
                    (dmg_vertex_edges){.edges = dmg_index_entry_edges(entry),
                                       .vertex = (uint32_t)task->chunk.first + vertex,
                                       .count = degree,
                                       .before = retrieval->owns_all ? 0 : DMG_EDGES_MIXED,
                                       .local = degree};
            }
            continue;
        }
        const uint32_t *front = NULL;
        if (!retrieval->owns_all && dmg_index_entry_lengths_are_in_front(entry)) {
            front =
                dmg_client_pointer(retrieval->setup.client, dmg_index_entry_list(entry), dmg_index_front_bytes(shape));
        }
        task->span_count = 0;
        if (!cut_list(retrieval, plan, task, vertex, front)) {
            return corrupt_entry(task, vertex);
        }
        for (uint32_t j = 0; j < task->span_count; j++) {
            const struct span *span = &task->spans[j];
            uint64_t bytes = (uint64_t)span->count * shape->edge_bytes;
            const uint8_t *edges = dmg_client_pointer(retrieval->setup.client, span->address, bytes);
            if (!edges) {
                return corrupt_entry(task, vertex);
            }
            if (span->address != merged_last) {
                if (merged_last != merged_first) {
                    dmg_channel_touch(retrieval->channel, merged_first, merged_last - merged_first);
                }
                merged_first = span->address;
            }
            merged_last = span->address + bytes;
            task->edges[task->edges_count] = (dmg_vertex_edges){.edges = edges,
                                                                .vertex = (uint32_t)task->chunk.first + vertex,
                                                                .count = span->count,
                                                                .before = span->before,
                                                                .local = span->local};
            task->edges_count += span->count > 0;
        }
    }
    if (merged_last != merged_first) {
        dmg_channel_touch(retrieval->channel, merged_first, merged_last - merged_first);
    }
    task->span_count = 0;
    task->next_span = 0;
    task->stage = STAGE_LISTS;
    return DMG_OK;
}

/*
 * Fill the edge buffer with as many lists as fit, lists that follow each other closely read as one. A list that is larger than what is left of
 * the buffer is cut; its rest comes in the next round.
 */
static void post_lists(dmg_retrieval *retrieval, struct task *task)
{
    const uint32_t edge_bytes = retrieval->setup.store->shape.edge_bytes;
    uint64_t used = 0;
    dmg_address read_first = DMG_ADDRESS_NULL;
    uint64_t read_bytes = 0;
    uint64_t read_at = 0;
    while (task->next_span < task->span_count) {
        const struct span *span = &task->spans[task->next_span];
        if (span->in_place) {
            add_edges(task, span, 0, span->count, span->in_place);
            task->next_span++;
            continue;
        }
        dmg_address address = span->address + (uint64_t)task->next_edge * edge_bytes;
        uint64_t gap = address - (read_first + read_bytes);
        bool merges = read_bytes > 0 && address >= read_first + read_bytes && gap <= MERGE_GAP_BYTES &&
                      dmg_address_node(address) == dmg_address_node(read_first);
        uint64_t at = merges ? used + gap : (used + 7) & ~UINT64_C(7);
        uint64_t room = at < EDGE_BUFFER_BYTES ? (EDGE_BUFFER_BYTES - at) / edge_bytes : 0;
        uint32_t left = span->count - task->next_edge;
        uint32_t count = left < room ? left : (uint32_t)room;
        if (left > 0 && count == 0) {
            break;
        }
        if (!merges && read_bytes > 0) {
            dmg_post_read(retrieval->channel, read_first, task->edge_buffer + read_at, read_bytes, &task->completion);
        }
        if (!merges) {
            read_first = address;
            read_bytes = 0;
            read_at = at;
        }
        used = at + (uint64_t)count * edge_bytes;
        read_bytes = used - read_at;
        if (count > 0) {
            add_edges(task, span, task->next_edge, count, task->edge_buffer + at);
        }
        task->next_edge += count;
        if (task->next_edge == span->count) {
            task->next_edge = 0;
            task->next_span++;
        }
    }
    if (read_bytes > 0) {
        dmg_post_read(retrieval->channel, read_first, task->edge_buffer + read_at, read_bytes, &task->completion);
    }
}

/* ---- the state machine ---- */

/* Start fetching lists, or what is left of them. */
static void begin_lists(dmg_retrieval *retrieval, struct task *task)
{
    task->edges_count = 0;
    task->stage = STAGE_LISTS;
    post_lists(retrieval, task);
}

static dmg_status step_streams(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task)
{
    if (!plan->index) {
        plan->apply(plan->context, &task->chunk, NULL, 0);
        store_streams(retrieval, plan, task);
        task->stage = STAGE_STORE;
        return DMG_OK;
    }
    select_vertices(plan, task);
    post_index(retrieval, plan, task);
    task->stage = STAGE_INDEX;
    return DMG_OK;
}

static dmg_status step_index(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task)
{
    if (retrieval->in_place) {
        return lists_in_place(retrieval, plan, task);
    }
    dmg_status status = make_spans(retrieval, plan, task);
    if (status == DMG_OK) {
        begin_lists(retrieval, task);
    }
    return status;
}

static dmg_status step_lists(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, struct task *task)
{
    plan->apply(plan->context, &task->chunk, task->edges, task->edges_count);
    task->chunk.is_first_round = false;
    if (task->next_span < task->span_count) {
        begin_lists(retrieval, task);
        return DMG_OK;
    }
    store_streams(retrieval, plan, task);
    task->stage = STAGE_STORE;
    return DMG_OK;
}

/* Advance a task whose operations have ended as far as it goes without waiting. */
static dmg_status advance(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_chunks *chunks,
                          struct task *task, bool *more)
{
    dmg_status status = DMG_OK;
    while (status == DMG_OK && task->completion.pending == 0) {
        if (task->completion.status != DMG_OK) {
            return dmg_wait(retrieval->channel, &task->completion);
        }
        switch (task->stage) {
        case STAGE_IDLE:
        case STAGE_STORE:
            task->stage = STAGE_IDLE;
            if (!*more || !dmg_chunks_take(chunks, retrieval->worker, &task->chunk.first, &task->chunk.count)) {
                *more = false;
                return DMG_OK;
            }
            task->chunk.worker = retrieval->worker;
            task->chunk.is_first_round = true;
            task->chunk.skip_store = false;
            post_streams(retrieval, plan, task);
            task->stage = STAGE_STREAMS;
            break;
        case STAGE_STREAMS:
            status = step_streams(retrieval, plan, task);
            break;
        case STAGE_INDEX:
            status = step_index(retrieval, plan, task);
            break;
        case STAGE_LISTS:
            status = step_lists(retrieval, plan, task);
            break;
        }
    }
    return status;
}

/* Wait until some task can go on. */
static dmg_status wait_for_any(dmg_retrieval *retrieval)
{
    struct task *oldest = NULL;
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        struct task *task = &retrieval->tasks[i];
        if (task->stage != STAGE_IDLE) {
            if (task->completion.pending == 0) {
                return DMG_OK;
            }
            oldest = oldest ? oldest : task;
        }
    }
    return oldest ? dmg_wait(retrieval->channel, &oldest->completion) : DMG_OK;
}

static bool all_idle(const dmg_retrieval *retrieval)
{
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        if (retrieval->tasks[i].stage != STAGE_IDLE) {
            return false;
        }
    }
    return true;
}

/* After an error: buffers must not be reused while operations that fill them are in flight. */
static void abandon(dmg_retrieval *retrieval)
{
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        (void)dmg_wait(retrieval->channel, &retrieval->tasks[i].completion);
        retrieval->tasks[i].completion = (dmg_completion){0};
        retrieval->tasks[i].stage = STAGE_IDLE;
    }
}

uint32_t dmg_retrieval_chunk_vertices(const dmg_retrieval_setup *setup, const dmg_retrieval_plan *plan)
{
    uint64_t bytes_of_64 = 0;
    for (uint32_t i = 0; i < plan->stream_count; i++) {
        const dmg_stream *stream = &plan->streams[i];
        bytes_of_64 += 64 / stream->vertices_an_element * stream->array->element_bytes;
    }
    const uint64_t padding = 64 * DMG_STREAMS_MAX; /* each stream starts on a cache line */
    uint64_t vertices = (STREAM_BUFFER_BYTES - padding) / (bytes_of_64 + 1) * 64;
    /* A list that is cut by rank becomes a span each, and there are DMG_CHUNK_VERTICES_MAX of them. */
    uint64_t spans = plan->refer ? DMG_CHUNK_VERTICES_MAX / setup->ranks / 64 * 64 : DMG_CHUNK_VERTICES_MAX;
    spans = spans == 0 ? 64 : spans;
    return (uint32_t)(vertices < spans ? vertices : spans);
}

dmg_status dmg_retrieval_run(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_chunks *chunks)
{
    bool more = true;
    dmg_status status = DMG_OK;
    while (status == DMG_OK) {
        for (uint32_t i = 0; i < retrieval->task_count && status == DMG_OK; i++) {
            status = advance(retrieval, plan, chunks, &retrieval->tasks[i], &more);
        }
        if (status != DMG_OK || (!more && all_idle(retrieval))) {
            break;
        }
        dmg_channel_ring(retrieval->channel);
        status = wait_for_any(retrieval);
    }
    if (status != DMG_OK) {
        char sentence[512];
        snprintf(sentence, sizeof sentence, "%s", dmg_error_message());
        abandon(retrieval);
        (void)dmg_error(status, "%s", sentence);
    }
    return status;
}
