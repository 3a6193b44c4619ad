/**
 * @file channel_state.h
 * A channel with the link model in it, shared by channel.c (operations in flight) and mapped.c (loads and stores).
 */
#ifndef DMG_TRANSPORT_LINK_CHANNEL_STATE_H
#define DMG_TRANSPORT_LINK_CHANNEL_STATE_H

#include "transport/link/model.h"

/** An operation in flight. */
typedef struct dmg_link_entry {
    dmg_completion own; /* what is wrapped ends this one */
    dmg_completion *user;
    uint64_t due;   /* ticks */
    uint64_t bytes; /* as the link counts them */
    dmg_operation_kind kind;
} dmg_link_entry;

typedef struct dmg_link_connection {
    dmg_link_entry *entries; /* [head, rung): on the link; [rung, tail): posted */
    uint32_t head, rung, tail;
    bool is_failed;
    uint64_t last_due;
    dmg_link_way way;
    /* Spans that are loaded together, since the last wait for them: all spans, and all but the last. */
    dmg_link_demand charged, charged_before;
} dmg_link_connection;

/** A message. Its answer may take long (a barrier), and keeps nothing else waiting. */
typedef struct dmg_link_call {
    dmg_completion own;
    dmg_completion *user;
    const dmg_call *call;
    struct dmg_link_call *next;
    uint64_t bytes;
    uint64_t departed; /* ticks */
    uint64_t due;
    uint16_t node;
    bool is_rung;
    bool has_arrived;
} dmg_link_call;

typedef struct dmg_link_channel {
    dmg_backend_channel base;
    dmg_backend_channel *inner; /* what is wrapped */
    dmg_channel *owner;
    const dmg_link *link;
    dmg_link_connection *connections;
    void **own_pages; /* where the model has none for all clients */
    dmg_link_call *calls;
    dmg_link_call *spare_calls;
    uint32_t in_flight;
    uint32_t unrung;
    uint64_t unrung_bytes;
    uint64_t batch_start; /* ticks */
    bool is_backdated;
    bool has_posted; /* since the last poll */
    uint64_t last_poll;
    uint64_t ahead;        /* ticks */
    bool has_charged;      /* spans that are not reserved yet */
    uint64_t charged_at;   /* the first of those; ticks */
    uint64_t charged_tail; /* the most that one of those takes on top of the latency */
    uint64_t drawn;        /* place in the sequence of tails */
    uint64_t charged_due;  /* when the time of all spans that were charged is over */
    uint64_t backdate, post, post_a_kib, spin;
} dmg_link_channel;

static inline uint64_t dmg_link_now(const dmg_link_channel *channel)
{
    return dmg_ticks(channel->link->are_cycles) + channel->ahead;
}

static inline uint64_t dmg_link_ticks_to_ns(const dmg_link *link, uint64_t ticks)
{
    return (uint64_t)((double)ticks * (1e9 / link->ticks_a_second));
}

/** When accounting: move the channel's clock on, from `now`, and note it. */
static inline void dmg_link_run_ahead(dmg_link_channel *channel, uint64_t to, uint64_t now)
{
    channel->ahead += to - now;
    dmg_channel_mutable_counters(channel->owner)->modelled_ns += dmg_link_ticks_to_ns(channel->link, to - now);
}

/** Charge a span of the mapped segment: its time begins. */
void dmg_link_use_mapped(dmg_backend_channel *base, dmg_operation_kind kind, uint16_t node, uint64_t offset,
                         uint64_t bytes);
/** Wait until the time of all charged spans is over. */
void dmg_link_wait_mapped(dmg_backend_channel *base);

#endif
