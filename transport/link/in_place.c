/*
 * Loads and stores in place: a span is charged as one operation, and its thread waits until that would have ended.
 */
#include "transport/link/channel_state.h"

/** Longer spans are charged as bulk transfers: the processor would fetch their lines ahead. */
#define TOUCHED_BYTES_MAX 4096
#define CACHE_LINE_BYTES  64
#define SLEEP_ABOVE_NS    200000
#define WAKE_EARLY_NS     100000

/* Fetch the span's lines, so that this time counts as the link's and the program finds them in its cache. */
static void fetch_lines(const dmg_channel *channel, dmg_address address, uint64_t bytes)
{
    const volatile char *span = dmg_client_pointer(channel->client, address, bytes);
    for (uint64_t offset = 0; span && offset < bytes; offset += CACHE_LINE_BYTES) {
        (void)span[offset];
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

void dmg_link_touch(dmg_channel *channel, dmg_operation_kind kind, dmg_address address, uint64_t bytes)
{
    dmg_link_channel *wrapped = channel->implementation;
    const dmg_link *link = wrapped->link;
    const dmg_link_costs *costs = &link->costs;
    uint16_t node = dmg_address_node(address);
    if (node >= link->node_count || bytes == 0) {
        return;
    }
    uint64_t start = dmg_link_now(wrapped);
    uint64_t departed = dmg_link_depart(&wrapped->connections[node].way, costs, kind,
                                        dmg_link_counted_bytes(costs, dmg_address_offset(address), bytes), start);
    if (kind == DMG_OPERATION_READ && bytes < TOUCHED_BYTES_MAX) {
        fetch_lines(channel, address, bytes);
    }
    uint64_t lag = link->lags.in_place < costs->latency[kind] ? link->lags.in_place : costs->latency[kind];
    uint64_t due = departed + costs->latency[kind] - lag;
    wrapped->touched_due = due > wrapped->touched_due ? due : wrapped->touched_due;
}

void dmg_link_touch_wait(dmg_channel *channel)
{
    dmg_link_channel *wrapped = channel->implementation;
    const dmg_link *link = wrapped->link;
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
