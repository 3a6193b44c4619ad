/*
 * Loads and stores in the mapped segment: a span is charged as one operation, and its thread waits until that would
 * have ended.
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
#define FETCHED_BYTES_MAX 4096
#define CACHE_LINE_BYTES  64
#define SLEEP_ABOVE_NS    200000
#define WAKE_EARLY_NS     100000

/* Fetch the span's lines, so that this time counts as the link's and the program finds them in its cache. Other threads
 * may be changing words there by atomics. */
static void fetch_lines(const dmg_link *link, uint16_t node, uint64_t span_offset, uint64_t bytes)
{
    const char *span = dmg_client_pointer(link->client, dmg_address_make(node, span_offset), bytes);
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
    uint64_t due = departed + latency - (link->overhead.mapped < latency ? link->overhead.mapped : latency);
    channel->charged_due = due > channel->charged_due ? due : channel->charged_due;
}

/* All spans of the batch: the last one of each node is served last. */
static void reserve_charged(dmg_link_channel *channel)
{
    const dmg_link *link = channel->link;
    for (uint32_t node = 0; node < link->node_count && channel->has_charged; node++) {
        dmg_link_connection *to = &channel->connections[node];
        if (to->charged.count > 0) {
            dmg_link_starts starts = dmg_link_reserve_batch(&to->way, &link->costs, &to->charged, channel->charged_at);
            note_due(channel, DMG_OPERATION_READ,
                     dmg_link_departure(&to->way, &link->costs, &starts, &to->charged_before, &to->charged),
                     channel->charged_tail);
            to->charged = to->charged_before = (dmg_link_demand){0};
        }
    }
    channel->has_charged = false;
    channel->charged_tail = 0;
}

void dmg_link_use_mapped(dmg_backend_channel *base, dmg_operation_kind kind, uint16_t node, uint64_t offset,
                         uint64_t bytes)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    const dmg_link *link = channel->link;
    const dmg_link_costs *costs = &link->costs;
    if (channel->inner->operations->use_mapped) {
        channel->inner->operations->use_mapped(channel->inner, kind, node, offset, bytes);
    }
    if (bytes == 0) {
        return;
    }
    dmg_link_connection *to = &channel->connections[node];
    uint64_t counted = dmg_link_counted_bytes(costs, offset, bytes);
    if (kind != DMG_OPERATION_READ) {
        note_due(channel, kind, dmg_link_depart(&to->way, costs, kind, counted, dmg_link_now(channel)),
                 dmg_link_draw_tail(costs, kind, &channel->drawn));
        return;
    }
    if (!channel->has_charged) {
        channel->has_charged = true;
        channel->charged_at = dmg_link_now(channel);
    }
    uint64_t tail = dmg_link_draw_tail(costs, kind, &channel->drawn);
    channel->charged_tail = tail > channel->charged_tail ? tail : channel->charged_tail;
    to->charged_before = to->charged;
    dmg_link_demand_add(&to->charged, costs, kind, counted);
    if (bytes < FETCHED_BYTES_MAX) {
        fetch_lines(link, node, offset, bytes);
    }
}

void dmg_link_wait_mapped(dmg_backend_channel *base)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    const dmg_link *link = channel->link;
    if (channel->inner->operations->wait_mapped) {
        channel->inner->operations->wait_mapped(channel->inner);
    }
    if (channel->has_charged) {
        reserve_charged(channel);
    }
    uint64_t due = channel->charged_due;
    uint64_t now = dmg_link_now(channel);
    if (due <= now) {
        return;
    }
    if (link->is_accounting) {
        dmg_link_run_ahead(channel, due, now);
        return;
    }
    spin_until(channel, due);
    dmg_channel_mutable_counters(channel->owner)->wait_ns += dmg_link_ticks_to_ns(link, due - now);
}
