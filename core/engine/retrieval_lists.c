#include "core/engine/retrieval_task.h"

#include "core/base/error.h"

#include <inttypes.h>

static dmg_status corrupt_entry(const dmg_task *task, uint32_t vertex)
{
    return dmg_error(DMG_ERR_CORRUPT, "the index entry of vertex %" PRIu64 " contradicts itself: load the graph again",
                     task->chunk.first + vertex);
}

/* Bytes of the buffer in which lengths that stand in front of lists are fetched. */
static uint32_t fronts_that_fit(const dmg_index_shape *shape)
{
    return (uint32_t)(DMG_FRONT_BUFFER_BYTES / dmg_index_front_bytes(shape));
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

static void add_span(dmg_task *task, uint32_t vertex, dmg_address first_edge, uint32_t count, uint32_t before,
                     uint32_t local)
{
    task->spans[task->span_count++] =
        (dmg_span){.address = first_edge, .vertex = vertex, .count = count, .before = before, .local = local};
}

/*
 * An out-of-place list of which segments may be passed on by reference: what is left of it to be fetched are this
 * rank's own segment, and those that the phase did not take.
 */
static bool refer_segments(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task, uint32_t vertex,
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
static bool cut_list(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task, uint32_t vertex,
                     const uint32_t *front)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    const uint8_t *entry = task->entries + (uint64_t)vertex * shape->entry_bytes;
    dmg_address first_edge = dmg_index_entry_first_edge(shape, entry);
    uint32_t degree = dmg_index_entry_degree(entry);
    uint64_t before = 0;
    uint64_t local = degree;
    if (front && retrieval->in_place) {
        dmg_channel_touch(retrieval->channel, dmg_index_entry_list(entry), dmg_index_front_bytes(shape));
    }
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
static dmg_status cut_by_fronts(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task,
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
dmg_status dmg_task_make_spans(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    uint32_t fronts[DMG_FRONT_BUFFER_BYTES / 8];
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

static void add_edges(dmg_task *task, const dmg_span *span, uint32_t first, uint32_t count, const uint8_t *edges)
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

/* Spans that can be reached become edges without a copy. Accounting merges what the other backends' reads would: lists
 * that follow each other. */
dmg_status dmg_task_reach_lists(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
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
            const dmg_span *span = &task->spans[j];
            uint64_t bytes = (uint64_t)span->count * shape->edge_bytes;
            const uint8_t *edges = dmg_client_pointer(retrieval->setup.client, span->address, bytes);
            if (!edges) {
                return corrupt_entry(task, vertex);
            }
            if (span->address != merged_last) {
                if (merged_last != merged_first) {
                    dmg_channel_touch_ahead(retrieval->channel, merged_first, merged_last - merged_first);
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
        dmg_channel_touch_ahead(retrieval->channel, merged_first, merged_last - merged_first);
    }
    task->span_count = 0;
    task->next_span = 0;
    return DMG_OK;
}

/*
 * Fill the edge buffer with as many lists as fit, lists that follow each other closely read as one. A list that is
 * larger than what is left of the buffer is cut; its rest comes in the next round.
 */
void dmg_task_post_lists(dmg_retrieval *retrieval, dmg_task *task)
{
    const uint32_t edge_bytes = retrieval->setup.store->shape.edge_bytes;
    uint64_t used = 0;
    dmg_address read_first = DMG_ADDRESS_NULL;
    uint64_t read_bytes = 0;
    uint64_t read_at = 0;
    while (task->next_span < task->span_count) {
        const dmg_span *span = &task->spans[task->next_span];
        if (span->in_place) {
            add_edges(task, span, 0, span->count, span->in_place);
            task->next_span++;
            continue;
        }
        dmg_address address = span->address + (uint64_t)task->next_edge * edge_bytes;
        uint64_t gap = address - (read_first + read_bytes);
        bool merges = read_bytes > 0 && address >= read_first + read_bytes && gap <= DMG_MERGE_GAP_BYTES &&
                      dmg_address_node(address) == dmg_address_node(read_first);
        uint64_t at = merges ? used + gap : (used + 7) & ~UINT64_C(7);
        uint64_t room = at < DMG_EDGE_BUFFER_BYTES ? (DMG_EDGE_BUFFER_BYTES - at) / edge_bytes : 0;
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
