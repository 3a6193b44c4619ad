#include "core/engine/retrieval/task.h"

#include "core/base/error.h"

#include <inttypes.h>

static dmg_status corrupt_entry(const dmg_task *task, const dmg_range_array *index, uint32_t vertex)
{
    return dmg_error(DMG_ERR_CORRUPT,
                     "the index entry of vertex %" PRIu64
                     ", on memory node %u, contradicts itself or leads out of the pool: load the graph again",
                     task->chunk.first + vertex,
                     dmg_address_node(dmg_range_array_address(index, task->chunk.first + vertex)));
}

/* So many headers of lists fit into the buffer in which they are fetched. */
static uint32_t headers_that_fit(const dmg_index_shape *shape)
{
    return (uint32_t)(DMG_HEADER_BUFFER_BYTES / dmg_list_header_bytes(shape));
}

static const uint32_t *header_at(const dmg_retrieval *retrieval, uint32_t index)
{
    return retrieval->header_buffer + index * (dmg_list_header_bytes(&retrieval->setup.store->shape) / 4);
}

/* Segments of an entry that belong to a rank. False when the entry contradicts itself. */
static bool segments_of_rank(const dmg_retrieval *retrieval, const uint8_t *entry, const uint32_t *header,
                             uint32_t rank, uint64_t *before, uint64_t *edges)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    uint32_t ranks = retrieval->setup.ranks;
    return dmg_index_entry_segments(shape, entry, header, dmg_first_partition_of(shape->partition_count, rank, ranks),
                                    dmg_first_partition_of(shape->partition_count, rank + 1, ranks), before, edges);
}

/* Long lists go to the back. An empty one is none: fetched together with one before it, it would take room in a buffer
 * that may have none. */
static void add_span(const dmg_retrieval *retrieval, dmg_task *task, uint32_t vertex, dmg_address first_edge,
                     uint32_t count, uint32_t before, uint32_t local)
{
    if (count == 0) {
        return;
    }
    bool is_long = count > retrieval->segment_edges && first_edge != DMG_ADDRESS_NULL;
    task->spans[is_long ? --task->long_first : task->span_count++] =
        (dmg_span){.address = first_edge, .vertex = vertex, .count = count, .before = before, .local = local};
}

/* Offer a segment to the phase. What it sends counts as an update. */
static bool refer(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, const dmg_chunk *chunk,
                  const dmg_foreign_segment *segment)
{
    dmg_purpose before = dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_UPDATES);
    bool is_taken = plan->refer(plan->context, chunk, segment);
    dmg_channel_set_purpose(retrieval->channel, before);
    return is_taken;
}

/*
 * An out-of-place list of which segments may be passed on by reference: what is left of it to be fetched are this
 * rank's own segment, and those that the phase did not take.
 */
static bool refer_segments(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task, uint32_t vertex,
                           const uint8_t *entry, const uint32_t *header)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    dmg_address first_edge = dmg_index_entry_first_edge(shape, entry);
    for (uint32_t rank = 0; rank < retrieval->setup.ranks; rank++) {
        uint64_t before, edges;
        if (!segments_of_rank(retrieval, entry, header, rank, &before, &edges)) {
            return false;
        }
        const dmg_foreign_segment segment = {.first_edge = first_edge + before * shape->edge_bytes,
                                             .count = (uint32_t)edges,
                                             .rank = rank,
                                             .vertex = (uint32_t)task->chunk.first + vertex,
                                             .degree = dmg_index_entry_degree(entry)};
        if (rank == retrieval->setup.rank) {
            add_span(retrieval, task, vertex, segment.first_edge, segment.count, 0, segment.count);
        } else if (segment.count > 0 && !refer(retrieval, plan, &task->chunk, &segment)) {
            add_span(retrieval, task, vertex, segment.first_edge, segment.count, segment.count, 0);
        }
    }
    return true;
}

/* What of an out-of-place list is to be fetched. `header` is its header, or NULL. */
static bool cut_list(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task, uint32_t vertex,
                     const uint32_t *header)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    const uint8_t *entry = task->entries + (uint64_t)vertex * shape->entry_bytes;
    dmg_address first_edge = dmg_index_entry_first_edge(shape, entry);
    uint32_t degree = dmg_index_entry_degree(entry);
    uint64_t before = 0;
    uint64_t local = degree;
    if (first_edge % sizeof(uint32_t) != 0) {
        return false;
    }
    if (header && retrieval->is_mapped) {
        dmg_channel_charge_read(retrieval->channel, dmg_index_entry_list(entry), dmg_list_header_bytes(shape));
    }
    if (plan->refer && !retrieval->owns_all) {
        return refer_segments(retrieval, plan, task, vertex, entry, header);
    }
    if (!retrieval->owns_all && !segments_of_rank(retrieval, entry, header, retrieval->setup.rank, &before, &local)) {
        return false;
    }
    if (plan->local_segments_only) {
        add_span(retrieval, task, vertex, first_edge + before * shape->edge_bytes, (uint32_t)local, 0, (uint32_t)local);
    } else {
        add_span(retrieval, task, vertex, first_edge, degree, (uint32_t)before, (uint32_t)local);
    }
    return true;
}

/* Lists that have headers: fetch the headers of all, then cut. */
static dmg_status cut_by_headers(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task,
                                 const uint32_t *vertices, uint32_t count)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    dmg_completion completion = {0};
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *entry = task->entries + (uint64_t)vertices[i] * shape->entry_bytes;
        dmg_post_read(retrieval->channel, dmg_index_entry_list(entry), (void *)header_at(retrieval, i),
                      dmg_list_header_bytes(shape), &completion);
        dmg_retrieval_posted(retrieval, &retrieval->setup.lists);
    }
    dmg_status status = dmg_wait(retrieval->channel, &completion);
    for (uint32_t i = 0; i < count && status == DMG_OK; i++) {
        if (!cut_list(retrieval, plan, task, vertices[i], header_at(retrieval, i))) {
            return corrupt_entry(task, plan->index, vertices[i]);
        }
    }
    return status;
}

/* From the entries of the selected vertices to what is to be fetched. */
dmg_status dmg_task_make_spans(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    uint32_t headers[DMG_HEADER_BUFFER_BYTES / 8];
    uint32_t header_count = 0;
    dmg_status status = DMG_OK;
    dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_LISTS);
    task->span_count = 0;
    task->next_span = 0;
    task->next_edge = 0;
    task->long_first = task->long_next = retrieval->pieces_max;
    for (uint32_t i = 0; i < task->selected_count && status == DMG_OK; i++) {
        uint32_t vertex = task->selected[i];
        const uint8_t *entry = task->entries + (uint64_t)vertex * shape->entry_bytes;
        uint32_t degree = dmg_index_entry_degree(entry);
        if (degree == 0) {
            continue;
        }
        if (degree <= shape->in_place_degree_max) {
            add_span(retrieval, task, vertex, DMG_ADDRESS_NULL, degree, retrieval->owns_all ? 0 : DMG_EDGES_MIXED,
                     degree);
            task->spans[task->span_count - 1].mapped = dmg_index_entry_edges(entry);
        } else if (!retrieval->owns_all && dmg_index_entry_has_list_header(entry)) {
            headers[header_count++] = vertex;
            if (header_count == headers_that_fit(shape)) {
                status = cut_by_headers(retrieval, plan, task, headers, header_count);
                header_count = 0;
            }
        } else if (!cut_list(retrieval, plan, task, vertex, NULL)) {
            return corrupt_entry(task, plan->index, vertex);
        }
    }
    return status == DMG_OK && header_count > 0 ? cut_by_headers(retrieval, plan, task, headers, header_count) : status;
}

/* Edges [first, first + count) of a span of a chunk that begins at `chunk_first`. */
static void add_edges(dmg_task *task, uint64_t chunk_first, const dmg_span *span, uint32_t first, uint32_t count,
                      const uint8_t *edges)
{
    dmg_vertex_edges *item = &task->edges[task->edges_count++];
    item->edges = edges;
    item->vertex = (uint32_t)chunk_first + span->vertex;
    item->count = count;
    task->edges_total += count;
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

/* Whether a list is near enough behind [first, last), which is not empty, to be one operation with it. */
static bool follows_closely(const dmg_retrieval *retrieval, dmg_address first, dmg_address last, dmg_address address)
{
    return retrieval->setup.lists.merges && last > first && address >= last && address - last <= DMG_MERGE_GAP_BYTES &&
           dmg_address_node(address) == dmg_address_node(first);
}

/* Account for lists that follow each other. */
static void charge_lists(dmg_retrieval *retrieval, dmg_address first, dmg_address last)
{
    if (last != first) {
        dmg_channel_charge_read_ahead(retrieval->channel, first, last - first);
        dmg_retrieval_posted(retrieval, &retrieval->setup.lists);
    }
}

/* The accounted lists, so far. */
struct reached {
    dmg_address first;
    dmg_address last;
};

/* Find a span in memory, and account for it. Accounting merges what the other backends' reads would: lists that follow
 * each other closely. */
static bool reach_span(dmg_retrieval *retrieval, dmg_span *span, struct reached *reached)
{
    uint64_t bytes = (uint64_t)span->count * retrieval->setup.store->shape.edge_bytes;
    span->mapped = dmg_client_pointer(retrieval->setup.client, span->address, bytes);
    if (!span->mapped) {
        return false;
    }
    if (!follows_closely(retrieval, reached->first, reached->last, span->address)) {
        charge_lists(retrieval, reached->first, reached->last);
        reached->first = span->address;
    }
    reached->last = span->address + bytes;
    return true;
}

/* An out-of-place list becomes edges without a copy, and segments of it when it is long. */
static bool reach_list(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task, uint32_t vertex,
                       struct reached *reached)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    const uint8_t *entry = task->entries + (uint64_t)vertex * shape->entry_bytes;
    const uint32_t *header = NULL;
    if (!retrieval->owns_all && dmg_index_entry_has_list_header(entry)) {
        header = dmg_client_pointer(retrieval->setup.client, dmg_index_entry_list(entry), dmg_list_header_bytes(shape));
    }
    uint32_t long_first = task->long_first;
    task->span_count = 0;
    bool is_good = cut_list(retrieval, plan, task, vertex, header);
    for (uint32_t j = 0; j < task->span_count && is_good; j++) {
        dmg_span *span = &task->spans[j];
        is_good = reach_span(retrieval, span, reached);
        if (is_good) {
            add_edges(task, task->chunk.first, span, 0, span->count, span->mapped);
        }
    }
    for (uint32_t j = task->long_first; j < long_first && is_good; j++) {
        is_good = reach_span(retrieval, &task->spans[j], reached);
    }
    return is_good;
}

dmg_status dmg_task_reach_lists(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    const dmg_index_shape *shape = &retrieval->setup.store->shape;
    struct reached reached = {DMG_ADDRESS_NULL, DMG_ADDRESS_NULL};
    task->edges_count = 0;
    task->edges_total = 0;
    task->long_first = task->long_next = retrieval->pieces_max;
    dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_LISTS);
    for (uint32_t i = 0; i < task->selected_count; i++) {
        uint32_t vertex = task->selected[i];
        const uint8_t *entry = task->entries + (uint64_t)vertex * shape->entry_bytes;
        uint32_t degree = dmg_index_entry_degree(entry);
        if (degree > shape->in_place_degree_max) {
            if (!reach_list(retrieval, plan, task, vertex, &reached)) {
                return corrupt_entry(task, plan->index, vertex);
            }
        } else if (degree > 0) {
            task->edges_total += degree;
            task->edges[task->edges_count++] = (dmg_vertex_edges){.edges = dmg_index_entry_edges(entry),
                                                                  .vertex = (uint32_t)task->chunk.first + vertex,
                                                                  .count = degree,
                                                                  .before = retrieval->owns_all ? 0 : DMG_EDGES_MIXED,
                                                                  .local = degree};
        }
    }
    charge_lists(retrieval, reached.first, reached.last);
    task->span_count = 0;
    task->next_span = 0;
    return DMG_OK;
}

void dmg_task_post_segment(dmg_retrieval *retrieval, dmg_task *task)
{
    const uint32_t edge_bytes = retrieval->setup.store->shape.edge_bytes;
    const dmg_list_piece *segment = &task->segment;
    const dmg_task *owner = segment->task;
    const dmg_span *span = &owner->spans[segment->list];
    uint64_t at = (uint64_t)segment->first * edge_bytes;
    task->edges_count = 0;
    task->edges_total = 0;
    if (!span->mapped) {
        dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_LISTS);
        dmg_post_read(retrieval->channel, span->address + at, task->edge_buffer, (uint64_t)segment->count * edge_bytes,
                      &task->completion);
        dmg_retrieval_posted(retrieval, &retrieval->setup.lists);
    }
    add_edges(task, owner->chunk.first, span, segment->first, segment->count,
              span->mapped ? span->mapped + at : task->edge_buffer);
}

static void post_lists(dmg_retrieval *retrieval, dmg_task *task, dmg_address from, uint64_t at, uint64_t bytes)
{
    if (bytes > 0) {
        dmg_post_read(retrieval->channel, from, task->edge_buffer + at, bytes, &task->completion);
        dmg_retrieval_posted(retrieval, &retrieval->setup.lists);
    }
}

/*
 * Fill the edge buffer with as many lists as fit, lists that follow each other closely read as one. A list that is
 * larger than what is left of the buffer is cut; its rest comes in the next round.
 */
void dmg_task_post_lists(dmg_retrieval *retrieval, dmg_task *task)
{
    const uint32_t edge_bytes = retrieval->setup.store->shape.edge_bytes;
    dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_LISTS);
    uint64_t used = 0;
    dmg_address read_first = DMG_ADDRESS_NULL;
    uint64_t read_bytes = 0;
    uint64_t read_at = 0;
    while (task->next_span < task->span_count) {
        const dmg_span *span = &task->spans[task->next_span];
        if (span->mapped) {
            add_edges(task, task->chunk.first, span, 0, span->count, span->mapped);
            task->next_span++;
            continue;
        }
        dmg_address address = span->address + (uint64_t)task->next_edge * edge_bytes;
        uint64_t gap = address - (read_first + read_bytes);
        bool merges = follows_closely(retrieval, read_first, read_first + read_bytes, address);
        uint64_t at = merges ? used + gap : (used + 7) & ~UINT64_C(7);
        uint64_t room = at < DMG_EDGE_BUFFER_BYTES ? (DMG_EDGE_BUFFER_BYTES - at) / edge_bytes : 0;
        uint32_t left = span->count - task->next_edge;
        uint32_t count = left < room ? left : (uint32_t)room;
        if (count == 0) {
            break;
        }
        if (!merges) {
            post_lists(retrieval, task, read_first, read_at, read_bytes);
            read_first = address;
            read_bytes = 0;
            read_at = at;
        }
        used = at + (uint64_t)count * edge_bytes;
        read_bytes = used - read_at;
        add_edges(task, task->chunk.first, span, task->next_edge, count, task->edge_buffer + at);
        task->next_edge += count;
        if (task->next_edge == span->count) {
            task->next_edge = 0;
            task->next_span++;
        }
    }
    post_lists(retrieval, task, read_first, read_at, read_bytes);
}
