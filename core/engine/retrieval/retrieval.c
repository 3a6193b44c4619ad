#include "core/engine/retrieval/retrieval_task.h"

#include "core/base/clock.h"
#include "core/base/error.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* A worker that waits for another's last segment: a segment takes a few microseconds, unless its thread is not running.
 */
#define SPIN_ROUNDS  200
#define YIELD_ROUNDS 8
#define SLEEP_NS     UINT64_C(50000)

/* ---- memory ---- */

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
        status = dmg_budget_allocate(setup->budget, DMG_BUDGET_RETRIEVAL, DMG_FRONT_BUFFER_BYTES, &memory);
        retrieval->front_buffer = memory;
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
    dmg_budget_free(budget, DMG_BUDGET_RETRIEVAL, retrieval->front_buffer, DMG_FRONT_BUFFER_BYTES);
    dmg_budget_free(budget, DMG_BUDGET_RETRIEVAL, retrieval, retrieval_bytes(retrieval->task_count));
}

dmg_retrieval_counts *dmg_retrieval_count(dmg_retrieval *retrieval)
{
    return &retrieval->counts;
}

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

static void post_streams(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
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

static void store_streams(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
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

static void select_vertices(const dmg_retrieval_plan *plan, dmg_task *task)
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

static void post_index(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
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

/* ---- the state machine ---- */

static void apply(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task, dmg_chunk *chunk,
                  uint32_t edges_count)
{
    uint64_t edges = edges_count > 0 ? task->edges_total : 0;
    retrieval->counts.largest_task = edges > retrieval->counts.largest_task ? edges : retrieval->counts.largest_task;
    dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_UPDATES);
    plan->apply(plan->context, chunk, edges_count > 0 ? task->edges : NULL, edges_count);
}

/* Start fetching lists, or what is left of them. */
static void begin_lists(dmg_retrieval *retrieval, dmg_task *task)
{
    task->edges_count = 0;
    task->edges_total = 0;
    task->stage = DMG_STAGE_LISTS;
    dmg_task_post_lists(retrieval, task);
}

static dmg_status step_streams(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    if (!plan->index) {
        apply(retrieval, plan, task, &task->chunk, 0);
        store_streams(retrieval, plan, task);
        task->stage = DMG_STAGE_STORE;
        return DMG_OK;
    }
    select_vertices(plan, task);
    post_index(retrieval, plan, task);
    task->stage = DMG_STAGE_INDEX;
    return DMG_OK;
}

static dmg_status step_index(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    if (retrieval->is_mapped) {
        task->stage = DMG_STAGE_LISTS;
        return dmg_task_reach_lists(retrieval, plan, task);
    }
    dmg_status status = dmg_task_make_spans(retrieval, plan, task);
    if (status == DMG_OK) {
        begin_lists(retrieval, task);
    }
    return status;
}

static void begin_store(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    store_streams(retrieval, plan, task);
    task->stage = DMG_STAGE_STORE;
}

/* Put long lists into the worker's buffer, as many as it has room for. */
static void offer_long_lists(dmg_retrieval *retrieval, dmg_task *task)
{
    while (task->long_next > task->long_first) {
        uint32_t list = task->long_next - 1;
        if (!dmg_reschedule_add(retrieval->setup.reschedule, retrieval->worker, task, list, task->spans[list].count,
                                &task->unfinished)) {
            return;
        }
        task->long_next = list;
        retrieval->counts.lists_cut++;
    }
}

static dmg_status step_lists(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    apply(retrieval, plan, task, &task->chunk, task->edges_count);
    if (task->chunk.is_first_round) {
        /* Others look at the chunk from here on, when it has long lists: the first round has set up its streams. */
        task->chunk.is_first_round = false;
        offer_long_lists(retrieval, task);
    }
    if (task->next_span < task->span_count) {
        begin_lists(retrieval, task);
    } else if (task->long_first < retrieval->pieces_max) {
        task->stage = DMG_STAGE_LONG_LISTS;
    } else {
        begin_store(retrieval, plan, task);
    }
    return DMG_OK;
}

static void begin_segment(dmg_retrieval *retrieval, dmg_task *task)
{
    dmg_task_post_segment(retrieval, task);
    task->stage = DMG_STAGE_SEGMENT;
}

static void step_segment(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    dmg_chunk chunk = ((const dmg_task *)task->segment.task)->chunk;
    chunk.worker = retrieval->worker;
    chunk.is_shared = true;
    apply(retrieval, plan, task, &chunk, task->edges_count);
    retrieval->counts.segments++;
    dmg_reschedule_finish(&task->segment);
    task->stage = task->has_chunk ? DMG_STAGE_LONG_LISTS : DMG_STAGE_IDLE;
}

static bool is_through_with_long_lists(const dmg_task *task)
{
    return task->long_next == task->long_first && atomic_load_explicit(&task->unfinished, memory_order_acquire) == 0;
}

/* False when others are walking the last segments of the task's lists. */
static bool step_long_lists(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    offer_long_lists(retrieval, task);
    if (dmg_reschedule_take(retrieval->setup.reschedule, retrieval->worker, &task->segment)) {
        begin_segment(retrieval, task);
    } else if (is_through_with_long_lists(task)) {
        begin_store(retrieval, plan, task);
    } else {
        return false;
    }
    return true;
}

/* Segments come before new vertices; those of other workers when there are no more vertices. */
static bool take_segment(dmg_retrieval *retrieval, bool more, dmg_task *task)
{
    dmg_reschedule *reschedule = retrieval->setup.reschedule;
    if (!reschedule) {
        return false;
    }
    if (dmg_reschedule_take(reschedule, retrieval->worker, &task->segment)) {
        return true;
    }
    if (more || !retrieval->setup.steals || !dmg_reschedule_steal(reschedule, retrieval->worker, &task->segment)) {
        return false;
    }
    retrieval->counts.segments_stolen++;
    return true;
}

static bool take_chunk(dmg_retrieval *retrieval, dmg_chunks *chunks, dmg_task *task)
{
    if (!dmg_chunks_take(chunks, retrieval->worker, &task->chunk.first, &task->chunk.count)) {
        return false;
    }
    task->chunk.worker = retrieval->worker;
    task->chunk.is_first_round = true;
    task->chunk.skip_store = false;
    task->has_chunk = true;
    task->long_first = task->long_next = retrieval->pieces_max;
    return true;
}

/* Advance a task whose operations have ended as far as it goes without waiting. */
static dmg_status advance(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_chunks *chunks, dmg_task *task,
                          bool *more)
{
    dmg_status status = DMG_OK;
    bool is_stuck = false;
    while (status == DMG_OK && !is_stuck && task->completion.pending == 0) {
        if (task->completion.status != DMG_OK) {
            return dmg_wait(retrieval->channel, &task->completion);
        }
        dmg_channel_charge_wait(retrieval->channel);
        switch (task->stage) {
        case DMG_STAGE_IDLE:
        case DMG_STAGE_STORE:
            task->stage = DMG_STAGE_IDLE;
            task->has_chunk = false;
            if (take_segment(retrieval, *more, task)) {
                begin_segment(retrieval, task);
            } else if (*more && !(plan->pause && plan->pause(plan->context)) && take_chunk(retrieval, chunks, task)) {
                post_streams(retrieval, plan, task);
                task->stage = DMG_STAGE_STREAMS;
            } else {
                is_stuck = !*more;
                *more = false;
            }
            break;
        case DMG_STAGE_STREAMS:
            status = step_streams(retrieval, plan, task);
            break;
        case DMG_STAGE_INDEX:
            status = step_index(retrieval, plan, task);
            break;
        case DMG_STAGE_LISTS:
            status = step_lists(retrieval, plan, task);
            break;
        case DMG_STAGE_LONG_LISTS:
            is_stuck = !step_long_lists(retrieval, plan, task);
            break;
        case DMG_STAGE_SEGMENT:
            step_segment(retrieval, plan, task);
            break;
        }
    }
    return status;
}

/* Nothing is in flight here: other workers have the last segments of this one's lists. */
static void wait_for_others(uint32_t round)
{
    if (round < SPIN_ROUNDS) {
        __builtin_ia32_pause();
    } else if (round < SPIN_ROUNDS + YIELD_ROUNDS) {
        sched_yield();
    } else {
        dmg_sleep_ns(SLEEP_NS);
    }
}

/* Wait until some task can go on. `*round` counts how often it was in vain. */
static dmg_status wait_for_any(dmg_retrieval *retrieval, uint32_t *round)
{
    dmg_task *oldest = NULL;
    bool waits_for_others = false;
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        dmg_task *task = &retrieval->tasks[i];
        if (task->stage == DMG_STAGE_LONG_LISTS && !is_through_with_long_lists(task)) {
            waits_for_others = true;
        } else if (task->stage != DMG_STAGE_IDLE) {
            if (task->completion.pending == 0) {
                *round = 0;
                return DMG_OK;
            }
            oldest = oldest ? oldest : task;
        }
    }
    if (oldest) {
        *round = 0;
        return dmg_wait(retrieval->channel, &oldest->completion);
    }
    if (waits_for_others) {
        wait_for_others((*round)++);
    }
    return DMG_OK;
}

static bool all_idle(const dmg_retrieval *retrieval)
{
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        if (retrieval->tasks[i].stage != DMG_STAGE_IDLE) {
            return false;
        }
    }
    return true;
}

/* After an error: buffers must not be reused while operations that fill them are in flight, and others look at them. */
static void abandon(dmg_retrieval *retrieval)
{
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        dmg_task *task = &retrieval->tasks[i];
        (void)dmg_wait(retrieval->channel, &task->completion);
        task->completion = (dmg_completion){0};
        if (task->stage == DMG_STAGE_SEGMENT) {
            dmg_reschedule_finish(&task->segment);
        }
        task->stage = DMG_STAGE_IDLE;
        task->has_chunk = false;
    }
    if (retrieval->setup.reschedule) {
        dmg_reschedule_clear(retrieval->setup.reschedule, retrieval->worker);
    }
    /* Segments that other workers have: their operations end, with success or not. */
    uint32_t round = 0;
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        while (atomic_load_explicit(&retrieval->tasks[i].unfinished, memory_order_acquire) > 0) {
            wait_for_others(round++);
        }
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
    uint64_t most = DMG_CHUNK_VERTICES_MAX;
    if (plan->refer) { /* each list may become a piece for each rank */
        most = count_pieces(setup) / setup->ranks / DMG_CHUNK_VERTICES_MIN * DMG_CHUNK_VERTICES_MIN;
    }
    return (uint32_t)(vertices < most ? vertices : most);
}

/* For the counters: so many tasks have something in flight together. Few chunks do not keep all of them busy. */
static void note_overlap(dmg_retrieval *retrieval, const dmg_chunks *chunks)
{
    uint64_t vertices = (uint64_t)chunks->chunk_vertices * chunks->workers;
    uint64_t overlap = vertices > 0 ? (chunks->last - chunks->first + vertices - 1) / vertices : 1;
    overlap = overlap < retrieval->task_count ? overlap : retrieval->task_count;
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        retrieval->tasks[i].completion.overlap = (uint8_t)overlap;
    }
}

dmg_status dmg_retrieval_run(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_chunks *chunks)
{
    note_overlap(retrieval, chunks);
    bool more = true;
    uint32_t round = 0;
    dmg_status status = DMG_OK;
    while (status == DMG_OK) {
        for (uint32_t i = 0; i < retrieval->task_count && status == DMG_OK; i++) {
            status = advance(retrieval, plan, chunks, &retrieval->tasks[i], &more);
        }
        if (status != DMG_OK || (!more && all_idle(retrieval))) {
            break;
        }
        dmg_channel_ring(retrieval->channel);
        status = wait_for_any(retrieval, &round);
    }
    dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_UPDATES); /* what is left are queued updates */
    if (status != DMG_OK) {
        char sentence[512];
        snprintf(sentence, sizeof sentence, "%s", dmg_error_message());
        abandon(retrieval);
        (void)dmg_error(status, "%s", sentence);
    }
    return status;
}
