/*
 * What a worker retrieves with: its tasks and their buffers, all out of the budget.
 */
#include "core/base/error.h"
#include "core/engine/retrieval/task.h"

/* Most streams are 8 bytes a vertex; plans with more than these eight run on smaller chunks. */
#define STREAM_BUFFER_BYTES ((uint64_t)DMG_CHUNK_VERTICES_MAX * 8 * 8)

struct buffer_need {
    void **memory;
    uint64_t bytes;
};

/* A chunk has so many vertices at least, and a list that is cut by rank becomes a piece for each. */
static uint32_t count_pieces(const dmg_retrieval_setup *setup)
{
    uint32_t pieces = DMG_CHUNK_VERTICES_MIN * setup->ranks;
    return pieces > DMG_CHUNK_VERTICES_MAX ? pieces : DMG_CHUNK_VERTICES_MAX;
}

static uint32_t list_buffers(struct dmg_retrieval *retrieval, dmg_task *task, struct buffer_need needs[8])
{
    const uint64_t vertices = DMG_CHUNK_VERTICES_MAX;
    uint32_t count = 0;
    needs[count++] = (struct buffer_need){(void **)&task->selected, vertices * sizeof *task->selected};
    needs[count++] = (struct buffer_need){(void **)&task->spans, retrieval->pieces_max * sizeof *task->spans};
    needs[count++] = (struct buffer_need){(void **)&task->edges, retrieval->pieces_max * sizeof *task->edges};
    needs[count++] = (struct buffer_need){(void **)&task->stream_buffer, STREAM_BUFFER_BYTES};
    needs[count++] =
        (struct buffer_need){(void **)&task->entry_buffer, vertices * retrieval->setup.store->shape.entry_bytes};
    needs[count++] = (struct buffer_need){(void **)&task->value_buffer, vertices * 8};
    if (!retrieval->is_mapped) {
        needs[count++] = (struct buffer_need){(void **)&task->edge_buffer, DMG_EDGE_BUFFER_BYTES};
    }
    return count;
}

static uint64_t retrieval_bytes(uint32_t tasks)
{
    return sizeof(struct dmg_retrieval) + tasks * sizeof(dmg_task);
}

/* What is cut in segments is copied segment by segment, unless it is reached where it lies. */
static dmg_status check_segments(const dmg_retrieval *retrieval)
{
    const uint32_t edge_bytes = retrieval->setup.store->shape.edge_bytes;
    const uint32_t edges_max = (uint32_t)(DMG_EDGE_BUFFER_BYTES / edge_bytes);
    if (!retrieval->setup.reschedule || retrieval->is_mapped || retrieval->segment_edges <= edges_max) {
        return DMG_OK;
    }
    return dmg_error(DMG_ERR_ARGUMENT,
                     "long lists cannot be walked in segments of %u edges (--reschedule-degree): over this transport "
                     "segments are copied into buffers that have room for %u edges of %u bytes; between 1 and %u are "
                     "possible, or 0 for no segments",
                     retrieval->segment_edges, edges_max, edge_bytes, edges_max);
}

dmg_status dmg_retrieval_create(const dmg_retrieval_setup *setup, dmg_channel *channel, uint32_t worker,
                                dmg_retrieval **out)
{
    const uint32_t flags = dmg_client_capabilities(setup->client)->flags;
    bool is_mapped = (flags & DMG_CAPABILITY_LOAD_STORE) != 0;
    uint32_t tasks = is_mapped ? 1 : setup->tasks;
    void *memory;
    dmg_status status = dmg_budget_allocate(setup->budget, DMG_BUDGET_RETRIEVAL, retrieval_bytes(tasks), &memory);
    dmg_retrieval *retrieval = *out = memory;
    if (status != DMG_OK) {
        return status;
    }
    retrieval->setup = *setup;
    retrieval->channel = channel;
    retrieval->worker = worker;
    retrieval->is_mapped = is_mapped;
    retrieval->is_coherent = (flags & DMG_CAPABILITY_COHERENT) != 0;
    retrieval->owns_all = setup->first_partition == 0 && setup->last_partition == setup->store->shape.partition_count;
    retrieval->task_count = tasks;
    retrieval->pieces_max = count_pieces(setup);
    retrieval->segment_edges = setup->reschedule ? dmg_reschedule_segment_edges(setup->reschedule) : UINT32_MAX;
    status = check_segments(retrieval);
    if (status == DMG_OK) {
        status = dmg_budget_allocate(setup->budget, DMG_BUDGET_RETRIEVAL, DMG_HEADER_BUFFER_BYTES, &memory);
        retrieval->header_buffer = memory;
    }
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
    dmg_budget_free(budget, DMG_BUDGET_RETRIEVAL, retrieval->header_buffer, DMG_HEADER_BUFFER_BYTES);
    dmg_budget_free(budget, DMG_BUDGET_RETRIEVAL, retrieval, retrieval_bytes(retrieval->task_count));
}

dmg_retrieval_counts *dmg_retrieval_count(dmg_retrieval *retrieval)
{
    return &retrieval->counts;
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
    uint64_t most = DMG_CHUNK_VERTICES_MAX;
    if (plan->refer) { /* each list may become a piece for each rank */
        most = count_pieces(setup) / setup->ranks / DMG_CHUNK_VERTICES_MIN * DMG_CHUNK_VERTICES_MIN;
    }
    return (uint32_t)(vertices < most ? vertices : most);
}
