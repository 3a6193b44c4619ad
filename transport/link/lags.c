/*
 * What the model itself costs: operations over a backend that moves nothing are posted and waited for as a program
 * does, and are seen to have ended a little later than they were due. What is usual of that is subtracted from every
 * latency. What the clock takes itself, where an operation is timed alone, is not the model's.
 */
#include "core/base/error.h"
#include "transport/link/model.h"

#include <stdlib.h>

#define SAMPLES    301
#define LATENCY_NS 2000.0
#define PAUSE_NS   1000.0 /* long enough for an operation to count as alone */

static void null_post_read(void *implementation, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                           dmg_completion *completion)
{
    (void)implementation, (void)node, (void)offset, (void)to, (void)bytes;
    completion->pending--;
}

static void null_progress(void *implementation)
{
    (void)implementation;
}

static const dmg_backend null_backend = {.name = "null",
                                         .channel_close = null_progress,
                                         .post_read = null_post_read,
                                         .ring = null_progress,
                                         .poll = null_progress};

static int compare_ticks(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static uint64_t excess(uint64_t *samples, uint64_t latency)
{
    qsort(samples, SAMPLES, sizeof *samples, compare_ticks);
    /* The first quarter: a busy machine makes the rest of them look worse, and what is subtracted too much makes links
     * too fast. */
    uint64_t usual = samples[SAMPLES / 4];
    return usual > latency ? usual - latency : 0;
}

static void pause_ticks(const dmg_link *link, uint64_t pause)
{
    uint64_t end = dmg_ticks(link->are_cycles) + pause;
    while (dmg_ticks(link->are_cycles) < end) {
        __builtin_ia32_pause();
    }
}

static dmg_status measure(dmg_channel *channel, const dmg_link *trial, dmg_link_lags *lags)
{
    uint64_t samples[SAMPLES];
    uint64_t latency = trial->costs.latency[DMG_OPERATION_READ];
    uint64_t pause = latency * (uint64_t)PAUSE_NS / (uint64_t)LATENCY_NS;
    uint64_t word;
    const dmg_ticks_costs clock = dmg_ticks_measure_costs(trial->are_cycles);
    dmg_status status = DMG_OK;
    uint64_t before = dmg_ticks(trial->are_cycles);
    for (int i = 0; i < SAMPLES && status == DMG_OK; i++) {
        status = dmg_read(channel, dmg_address_make(0, 0), &word, sizeof word);
        uint64_t after = dmg_ticks(trial->are_cycles);
        samples[i] = after - before; /* a whole turn of the loop: what counts for a program that goes on */
        before = after;
    }
    lags->after_poll = excess(samples, latency);
    for (int i = 0; i < SAMPLES && status == DMG_OK; i++) {
        pause_ticks(trial, pause);
        before = dmg_ticks_fenced(trial->are_cycles);
        status = dmg_read(channel, dmg_address_make(0, 0), &word, sizeof word);
        samples[i] = dmg_ticks_within(before, dmg_ticks_fenced(trial->are_cycles), &clock);
    }
    lags->alone = excess(samples, latency);
    for (int i = 0; i < SAMPLES; i++) {
        before = dmg_ticks_fenced(trial->are_cycles);
        dmg_channel_touch(channel, dmg_address_make(0, 0), sizeof word);
        samples[i] = dmg_ticks_within(before, dmg_ticks_fenced(trial->are_cycles), &clock);
    }
    lags->in_place = excess(samples, latency);
    return status;
}

dmg_status dmg_link_measure_lags(dmg_client *client, dmg_link *link)
{
    const dmg_link_settings settings = {
        .name = "trial", .cells = {[DMG_LINK_READ_LATENCY] = LATENCY_NS}, .line_bytes = 1};
    dmg_link trial = {
        .settings = settings, .are_cycles = link->are_cycles, .ticks_a_second = link->ticks_a_second, .node_count = 1};
    dmg_link_costs_from(&settings, link->ticks_a_second, &trial.costs);
    const dmg_node node = {.segment_bytes = sizeof(uint64_t)};
    bool is_failed = false;
    dmg_node_traffic traffic = {0};
    dmg_channel channel = {.backend = &null_backend,
                           .client = client,
                           .nodes = &node,
                           .node_count = 1,
                           .is_failed = &is_failed,
                           .traffic = &traffic,
                           .deaths_seen = atomic_load(&client->deaths)};
    dmg_status status = dmg_link_channel_wrap(&trial, &channel);
    if (status == DMG_OK) {
        status = measure(&channel, &trial, &link->lags);
        channel.backend->channel_close(channel.implementation);
    }
    return status;
}
