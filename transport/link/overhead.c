/*
 * What the model itself costs: operations over channels that move nothing are posted and waited for as a program does,
 * and are seen to have ended a little later than they were due. What is usual of that is subtracted from every
 * latency. What the clock takes itself, where an operation is timed alone, is not the model's.
 */
#include "core/base/error.h"
#include "transport/link/model.h"

#include <stdlib.h>

#define SAMPLES    301
#define LATENCY_NS 2000.0
#define PAUSE_NS   1000.0 /* long enough for an operation to count as alone */

/* ---- what is wrapped: nothing ---- */

typedef struct null_client {
    dmg_backend_client base;
    dmg_backend_channel channel;
} null_client;

static void null_post_read(dmg_backend_channel *channel, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                           dmg_completion *completion)
{
    (void)channel, (void)node, (void)offset, (void)to, (void)bytes;
    completion->pending--;
}

static void null_progress(dmg_backend_channel *channel)
{
    (void)channel;
}

static void null_sleep(dmg_backend_channel *channel, uint64_t timeout_ns)
{
    (void)channel, (void)timeout_ns;
}

static void null_fail_node(dmg_backend_channel *channel, uint16_t node)
{
    (void)channel, (void)node;
}

static const dmg_channel_operations null_channel_operations = {.close = null_progress,
                                                               .post_read = null_post_read,
                                                               .ring = null_progress,
                                                               .poll = null_progress,
                                                               .sleep = null_sleep,
                                                               .fail_node = null_fail_node};

static dmg_status null_channel_open(dmg_backend_client *base, dmg_channel *owner, dmg_backend_channel **made)
{
    (void)owner;
    *made = &((null_client *)base)->channel;
    return DMG_OK;
}

static const dmg_client_operations null_client_operations = {.channel_open = null_channel_open};

/* ---- measuring ---- */

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

static dmg_status measure(dmg_channel *channel, const dmg_link *trial, dmg_link_overhead *overhead)
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
    overhead->after_poll = excess(samples, latency);
    for (int i = 0; i < SAMPLES && status == DMG_OK; i++) {
        pause_ticks(trial, pause);
        before = dmg_ticks_fenced(trial->are_cycles);
        status = dmg_read(channel, dmg_address_make(0, 0), &word, sizeof word);
        samples[i] = dmg_ticks_within(before, dmg_ticks_fenced(trial->are_cycles), &clock);
    }
    overhead->alone = excess(samples, latency);
    for (int i = 0; i < SAMPLES; i++) {
        before = dmg_ticks_fenced(trial->are_cycles);
        dmg_channel_charge_read(channel, dmg_address_make(0, 0), sizeof word);
        samples[i] = dmg_ticks_within(before, dmg_ticks_fenced(trial->are_cycles), &clock);
    }
    overhead->mapped = excess(samples, latency);
    return status;
}

dmg_status dmg_link_measure_overhead(const dmg_link *link, dmg_link_overhead *overhead)
{
    static const dmg_client_operations trial_operations = {.channel_open = dmg_link_channel_open};
    const dmg_link_settings settings = {
        .name = "trial", .cells = {[DMG_LINK_READ_LATENCY] = LATENCY_NS}, .line_bytes = 1};
    null_client nothing = {.base.operations = &null_client_operations, .channel.operations = &null_channel_operations};
    dmg_link trial = {.base.operations = &trial_operations,
                      .inner = &nothing.base,
                      .client = link->client,
                      .settings = settings,
                      .are_cycles = link->are_cycles,
                      .ticks_a_second = link->ticks_a_second,
                      .node_count = link->node_count};
    dmg_link_costs_from(&settings, link->ticks_a_second, &trial.costs);
    dmg_channel *channel;
    dmg_status status = dmg_channel_open_over(link->client, &trial.base, &channel);
    if (status == DMG_OK) {
        status = measure(channel, &trial, overhead);
        dmg_channel_close(channel);
    }
    return status;
}
