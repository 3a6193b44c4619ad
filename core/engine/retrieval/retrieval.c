/*
 * A worker's loop over its tasks: advancing those that can go on, waiting for the others, and clearing up behind an
 * error.
 */
#include "core/engine/retrieval/task.h"

#include "core/base/backoff.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <stdatomic.h>
#include <stdio.h>

/* Nothing is in flight here: other workers have the last segments of this one's lists. */
static void wait_for_others(dmg_backoff *backoff)
{
    uint64_t sleep_ns = dmg_backoff_next(backoff, &dmg_backoff_worker);
    if (sleep_ns > 0) {
        dmg_sleep_ns(sleep_ns);
    }
}

/* Wait until some task can go on. `backoff` goes on while that is in vain. */
static dmg_status wait_for_any(dmg_retrieval *retrieval, dmg_backoff *backoff)
{
    dmg_task *oldest = NULL;
    bool waits_for_others = false;
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        dmg_task *task = &retrieval->tasks[i];
        if (task->stage == DMG_STAGE_LONG_LISTS && !dmg_task_is_through_with_long_lists(task)) {
            waits_for_others = true;
        } else if (task->stage != DMG_STAGE_IDLE) {
            if (task->completion.pending == 0) {
                *backoff = (dmg_backoff){0};
                return DMG_OK;
            }
            oldest = oldest ? oldest : task;
        }
    }
    if (oldest) {
        *backoff = (dmg_backoff){0};
        return dmg_wait(retrieval->channel, &oldest->completion);
    }
    if (waits_for_others) {
        wait_for_others(backoff);
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
    dmg_backoff backoff = {0};
    for (uint32_t i = 0; i < retrieval->task_count; i++) {
        while (atomic_load_explicit(&retrieval->tasks[i].unfinished, memory_order_acquire) > 0) {
            wait_for_others(&backoff);
        }
    }
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
    dmg_backoff backoff = {0};
    dmg_status status = DMG_OK;
    while (status == DMG_OK) {
        for (uint32_t i = 0; i < retrieval->task_count && status == DMG_OK; i++) {
            status = dmg_task_advance(retrieval, plan, chunks, &retrieval->tasks[i], &more);
        }
        if (status != DMG_OK || (!more && all_idle(retrieval))) {
            break;
        }
        dmg_channel_ring(retrieval->channel);
        status = wait_for_any(retrieval, &backoff);
    }
    dmg_channel_set_purpose(retrieval->channel, DMG_PURPOSE_UPDATES); /* what is left are queued updates */
    if (status != DMG_OK) {
        dmg_kept_error kept = {0};
        dmg_error_keep(&kept, status);
        abandon(retrieval);
        (void)dmg_error_restore(&kept);
    }
    return status;
}
