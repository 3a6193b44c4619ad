/*
 * What a task moves of arrays: the streams of its chunk, and the index entries and attributes of selected vertices.
 */
#include "core/engine/retrieval/task.h"

/* ---- streams ---- */

static uint64_t stream_elements(const dmg_stream *stream, uint32_t vertices)
{
    return (vertices + stream->vertices_an_element - 1) / stream->vertices_an_element;
}

/* Elements [first, first + count) in place when they lie on one node and can be reached, else NULL. Where memory is not
 * coherent, only those that do not change. */
static void *array_mapped(dmg_retrieval *retrieval, const dmg_range_array *array, uint64_t first, uint64_t count)
{
    bool is_reached =
        retrieval->is_mapped && (retrieval->is_coherent || dmg_graph_store_owns(retrieval->setup.store, array));
    if (!is_reached || dmg_range_array_run(array, first, count) < count) {
        return NULL;
    }
    return dmg_client_pointer(retrieval->setup.client, dmg_range_array_address(array, first),
                              count * array->element_bytes);
}

/*
 * Elements [first, first + count), as one operation a node, or as one an element. `to` is NULL for what is used in
 * place, which is accounted for; it lies on one node.
 */
static void fetch(dmg_retrieval *retrieval, const dmg_retrieval_step *step, const dmg_range_array *array,
                  uint64_t first, uint64_t count, uint8_t *to, dmg_completion *completion)
{
    uint64_t piece = step->merges ? count : 1;
    for (uint64_t done = 0; done < count; done += piece) {
        if (to) {
            dmg_range_array_post_read(retrieval->channel, array, first + done, piece, to + done * array->element_bytes,
                                      completion);
        } else {
            dmg_channel_charge_read_ahead(retrieval->channel, dmg_range_array_address(array, first + done),
                                          piece * array->element_bytes);
        }
        dmg_retrieval_posted(retrieval, step);
    }
}

/* Phases that want no edges move attributes in sequence, which is no part of retrieval. */
static const dmg_retrieval_step in_sequence = {.merges = true, .batches = true};

void dmg_task_post_streams(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    const dmg_retrieval_step *step = plan->index ? &retrieval->setup.activation : &in_sequence;
    uint8_t *buffer = task->stream_buffer;
    dmg_channel_set_purpose(retrieval->channel,
                            plan->stream_purpose == DMG_PURPOSE_OTHER ? DMG_PURPOSE_STREAMS : plan->stream_purpose);
    for (uint32_t i = 0; i < plan->stream_count; i++) {
        const dmg_stream *stream = &plan->streams[i];
        uint64_t first = task->chunk.first / stream->vertices_an_element;
        uint64_t count = stream_elements(stream, task->chunk.count);
        void *pointer = array_mapped(retrieval, stream->array, first, count);
        task->streams_are_mapped[i] = pointer != NULL;
        task->chunk.streams[i] = pointer ? pointer : buffer;
        if (pointer) {
            fetch(retrieval, step, stream->array, first, count, NULL, NULL);
            continue;
        }
        if (stream->mode & DMG_STREAM_READ) {
            fetch(retrieval, step, stream->array, first, count, buffer, &task->completion);
        }
        buffer += (count * stream->array->element_bytes + 63) & ~UINT64_C(63);
    }
}

void dmg_task_store_streams(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_STREAMS);
    for (uint32_t i = 0; i < plan->stream_count && !task->chunk.skip_store; i++) {
        const dmg_stream *stream = &plan->streams[i];
        if ((stream->mode & DMG_STREAM_WRITE) && !task->streams_are_mapped[i]) {
            dmg_range_array_post_write(
                retrieval->channel, stream->array, task->chunk.first / stream->vertices_an_element,
                stream_elements(stream, task->chunk.count), task->chunk.streams[i], &task->completion);
        }
    }
}

/* ---- index ---- */

/*
 * Elements of the selected vertices: in place where the chunk can be reached, else fetched to where each belongs in
 * `buffer`, neighbours and near neighbours merged.
 */
static const uint8_t *post_selected(dmg_retrieval *retrieval, dmg_task *task, const dmg_range_array *array,
                                    uint8_t *buffer)
{
    const uint8_t *mapped = array_mapped(retrieval, array, task->chunk.first, task->chunk.count);
    const dmg_retrieval_step *step = &retrieval->setup.index;
    const uint32_t step_max = step->merges ? DMG_MERGE_GAP_BYTES / array->element_bytes + 1 : 0;
    for (uint32_t i = 0; i < task->selected_count;) {
        uint32_t first = task->selected[i];
        uint32_t last = first;
        while (++i < task->selected_count && task->selected[i] - last <= step_max) {
            last = task->selected[i];
        }
        fetch(retrieval, step, array, task->chunk.first + first, last - first + 1,
              mapped ? NULL : buffer + (uint64_t)first * array->element_bytes, &task->completion);
    }
    return mapped ? mapped : buffer;
}

void dmg_task_post_index(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_INDEX);
    task->entries = plan->cached_index ? dmg_cached_index_get(plan->cached_index, task->chunk.first, task->selected,
                                                              task->selected_count, task->entry_buffer)
                                       : post_selected(retrieval, task, plan->index, task->entry_buffer);
    if (plan->selected_values) {
        dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_STREAMS);
        task->chunk.selected_values = post_selected(retrieval, task, plan->selected_values, task->value_buffer);
    }
}
