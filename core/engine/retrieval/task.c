/*
 * The state machine of a task: from a chunk of vertices, or a piece of a long list, to edges in the phase's hands.
 */
#include "core/engine/retrieval/task.h"

#include <stdatomic.h>

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
        dmg_task_store_streams(retrieval, plan, task);
        task->stage = DMG_STAGE_STORE;
        return DMG_OK;
    }
    select_vertices(plan, task);
    dmg_task_post_index(retrieval, plan, task);
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
    dmg_task_store_streams(retrieval, plan, task);
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

bool dmg_task_is_through_with_long_lists(const dmg_task *task)
{
    return task->long_next == task->long_first && atomic_load_explicit(&task->unfinished, memory_order_acquire) == 0;
}

/* False when others are walking the last segments of the task's lists. */
static bool step_long_lists(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_task *task)
{
    offer_long_lists(retrieval, task);
    if (dmg_reschedule_take(retrieval->setup.reschedule, retrieval->worker, &task->segment)) {
        begin_segment(retrieval, task);
    } else if (dmg_task_is_through_with_long_lists(task)) {
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

dmg_status dmg_task_advance(dmg_retrieval *retrieval, const dmg_retrieval_plan *plan, dmg_chunks *chunks,
                            dmg_task *task, bool *more)
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
                dmg_task_post_streams(retrieval, plan, task);
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
