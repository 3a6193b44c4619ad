/*
 * Loads and stores in place: a span is charged as one operation, and its thread waits until that would have ended.
 *
 * Spans that are read together are one batch: their time begins with the first, and is reserved on the link's clocks in
 * one step a resource when they are waited for. So a span costs the program little more than fetching its lines, which
 * it does while the link's time runs.
 *
 * The clock is read without fences: lines arrive while the link's time runs, and a processor lets loads overlap over
 * such a link too. So a span may count from a moment before the program's own loads in front of it have arrived.
 */
#include "transport/link/channel_state.h"

/** Longer spans are charged as bulk transfers: the processor would fetch their lines ahead. */
#define TOUCHED_BYTES_MAX 4096
#define CACHE_LINE_BYTES  64
#define SLEEP_ABOVE_NS    200000
#define WAKE_EARLY_NS     100000

/* Fetch the span's lines, so that this time counts as the link's and the program finds them in its cache. Other threads
 * may be changing words there by atomics. */
static void fetch_lines(const dmg_channel *channel, dmg_address address, uint64_t bytes)
{
    const char *span = dmg_client_pointer(channel->client, address, bytes);
    for (uint64_t offset = 0; span && offset < bytes; offset += CACHE_LINE_BYTES) {
        (void)__atomic_load_n(&span[offset], __ATOMIC_RELAXED);
    }
}

static void spin_until(const dmg_link_channel *channel, uint64_t due)
{
    const dmg_link *link = channel->link;
    uint64_t now = dmg_link_now(channel);
    if (due > now && dmg_link_ticks_to_ns(link, due - now) > SLEEP_ABOVE_NS) {
        dmg_sleep_ns(dmg_link_ticks_to_ns(link, due - now) - WAKE_EARLY_NS);
    }
    while (dmg_link_now(channel) < due) {
    }
}

static void note_due(dmg_link_channel *channel, dmg_operation_kind kind, uint64_t departed, uint64_t tail)
{
    const dmg_link *link = channel->link;
    uint64_t latency = link->costs.latency[kind] + tail;
    uint64_t due = departed + latency - (link->lags.in_place < latency ? link->lags.in_place : latency);
    channel->touched_due = due > channel->touched_due ? due : channel->touched_due;
}

/* All spans of the batch: the last one of each node is served last. */
static void reserve_touched(dmg_link_channel *channel)
{
    const dmg_link *link = channel->link;
    for (uint32_t node = 0; node < link->node_count && channel->has_touched; node++) {
        dmg_link_connection *to = &channel->connections[node];
        if (to->touched.count > 0) {
            dmg_link_starts starts = dmg_link_reserve_batch(&to->way, &link->costs, &to->touched, channel->touched_at);
            note_due(channel, DMG_OPERATION_READ,
                     dmg_link_departure(&to->way, &link->costs, &starts, &to->touched_before, &to->touched),
                     channel->touched_tail);
            to->touched = to->touched_before = (dmg_link_demand){0};
        }
    }
    channel->has_touched = false;
    channel->touched_tail = 0;
}

void dmg_link_touch(dmg_channel *channel, dmg_operation_kind kind, dmg_address address, uint64_t bytes)
{
    dmg_link_channel *wrapped = channel->implementation;
    const dmg_link *link = wrapped->link;
    const dmg_link_costs *costs = &link->costs;
    uint16_t node = dmg_address_node(address);
    if (node >= link->node_count || bytes == 0) {
        return;
    }
    dmg_link_connection *to = &wrapped->connections[node];
    uint64_t counted = dmg_link_counted_bytes(costs, dmg_address_offset(address), bytes);
    if (kind != DMG_OPERATION_READ) {
        note_due(wrapped, kind, dmg_link_depart(&to->way, costs, kind, counted, dmg_link_now(wrapped)),
                 dmg_link_draw_tail(costs, kind, &wrapped->drawn));
        return;
    }
    if (!wrapped->has_touched) {
        wrapped->has_touched = true;
        wrapped->touched_at = dmg_link_now(wrapped);
    }
    uint64_t tail = dmg_link_draw_tail(costs, kind, &wrapped->drawn);
    wrapped->touched_tail = tail > wrapped->touched_tail ? tail : wrapped->touched_tail;
    to->touched_before = to->touched;
    dmg_link_demand_add(&to->touched, costs, kind, counted);
    if (bytes < TOUCHED_BYTES_MAX) {
        fetch_lines(channel, address, bytes);
    }
}

void dmg_link_touch_wait(dmg_channel *channel)
{
    dmg_link_channel *wrapped = channel->implementation;
    const dmg_link *link = wrapped->link;
    if (wrapped->has_touched) {
        reserve_touched(wrapped);
    }
    uint64_t due = wrapped->touched_due;
    uint64_t now = dmg_link_now(wrapped);
    if (due <= now) {
        return;
    }
    if (link->is_accounting) {
        dmg_link_run_ahead(wrapped, due, now);
        return;
    }
    spin_until(wrapped, due);
    channel->counters.wait_ns += dmg_link_ticks_to_ns(link, due - now);
}
