/*
 * A channel with the link model in it, around the channel of what is wrapped.
 *
 * A post goes to what is wrapped at once, so that data is copied while the link's time runs, but the caller's
 * completion waits in a queue, one a node. At the ring, what was posted to a node since the last ring is reserved on
 * the link's clocks in one step a resource, and each operation gets the time at which it is due. Polling ends the
 * operations that what is wrapped has finished and that are due, in order.
 *
 * A batch counts as handed over when its first operation was posted, less what the program did in between, and as early
 * as the last poll when it follows that closely: the loop around a poll is the program's, not the link's, and would
 * otherwise make every link look slower.
 *
 * When accounting, `ahead` is how far the channel's own clock runs ahead of the machine's. It is moved on to the next
 * due time when a second poll in a row finds nothing: only a thread that waits polls twice.
 */
#include "core/base/backoff.h"
#include "core/base/error.h"
#include "transport/link/channel_state.h"
#include "transport/shared_page.h"

#include <stdlib.h>

#define QUEUE_ENTRIES      1024 /* in flight of one channel to one node, like a NIC's send queue; a power of two */
#define BACKDATE_NS        200
#define POST_NS            200 /* generous bounds of what what is wrapped takes */
#define POST_NS_A_KIB      512
#define SPIN_NS            5000 /* without looking at what is wrapped */
#define NANOSECONDS_SECOND 1e9

static inline uint64_t ns_to_ticks(const dmg_link *link, double ns)
{
    return (uint64_t)(ns * link->ticks_a_second / NANOSECONDS_SECOND);
}

static inline uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* All that was posted to one node since the last ring. */
static void depart_batch(dmg_link_connection *to, const dmg_link_costs *costs, uint64_t start, uint64_t overhead,
                         uint64_t *drawn)
{
    dmg_link_demand all = {0};
    for (uint32_t i = to->rung; i != to->tail; i++) {
        const dmg_link_entry *posted = &to->entries[i % QUEUE_ENTRIES];
        dmg_link_demand_add(&all, costs, posted->kind, posted->bytes);
    }
    dmg_link_starts starts = dmg_link_reserve_batch(&to->way, costs, &all, start);
    dmg_link_demand before = {0};
    for (uint32_t i = to->rung; i != to->tail; i++) {
        dmg_link_entry *posted = &to->entries[i % QUEUE_ENTRIES];
        dmg_link_demand with = before;
        dmg_link_demand_add(&with, costs, posted->kind, posted->bytes);
        uint64_t latency = costs->latency[posted->kind] + dmg_link_draw_tail(costs, posted->kind, drawn);
        uint64_t due = dmg_link_departure(&to->way, costs, &starts, &before, &with) +
                       (latency > overhead ? latency - overhead : 0);
        to->last_due = posted->due = later(to->last_due, due);
        before = with;
    }
    to->rung = to->tail;
}

/* ---- ending ---- */

static void end_entry(dmg_link_channel *channel, dmg_link_connection *from, uint16_t node)
{
    const dmg_link_entry *ended = &from->entries[from->head++ % QUEUE_ENTRIES];
    channel->in_flight--;
    dmg_completion_end(ended->user, ended->own.status, node);
}

static uint32_t end_due(dmg_link_channel *channel, dmg_link_connection *from, uint16_t node, uint64_t now)
{
    uint32_t count = 0;
    while (from->head != from->rung) {
        const dmg_link_entry *oldest = &from->entries[from->head % QUEUE_ENTRIES];
        if (oldest->own.pending != 0 || (now < oldest->due && oldest->own.status == DMG_OK)) {
            break;
        }
        end_entry(channel, from, node);
        count++;
    }
    return count;
}

static void end_call(dmg_link_channel *channel, dmg_link_call **place, dmg_status status)
{
    dmg_link_call *ended = *place;
    *place = ended->next;
    ended->next = channel->spare_calls;
    channel->spare_calls = ended;
    channel->in_flight--;
    dmg_completion_end(ended->user, status, ended->node);
}

/* The answer is here; it has yet to come over the link. */
static void note_arrival(dmg_link_channel *channel, dmg_link_call *arrived, uint64_t now)
{
    const dmg_link *link = channel->link;
    uint64_t floor = link->message_floor;
    uint64_t start = later(arrived->departed, now > floor ? now - floor : 0);
    uint64_t answered = dmg_link_depart(&channel->connections[arrived->node].way, &link->costs, DMG_OPERATION_READ,
                                        dmg_link_counted_bytes(&link->costs, 0, arrived->call->reply_bytes), start);
    arrived->has_arrived = true;
    arrived->due = answered + link->costs.latency[DMG_OPERATION_MESSAGE];
}

static uint32_t end_due_calls(dmg_link_channel *channel, uint64_t now)
{
    uint32_t count = 0;
    dmg_link_call **place = &channel->calls;
    while (*place) {
        dmg_link_call *call = *place;
        if (call->is_rung && call->own.pending == 0 && !call->has_arrived) {
            note_arrival(channel, call, now);
        }
        if (call->has_arrived && (now >= call->due || call->own.status != DMG_OK)) {
            end_call(channel, place, call->own.status);
            count++;
        } else {
            place = &call->next;
        }
    }
    return count;
}

static uint32_t end_all_due(dmg_link_channel *channel, uint64_t now)
{
    uint32_t count = channel->calls ? end_due_calls(channel, now) : 0;
    for (uint32_t node = 0; node < channel->link->node_count; node++) {
        count += end_due(channel, &channel->connections[node], (uint16_t)node, now);
    }
    return count;
}

/* The earliest time at which something ends that waits for nothing but the link; UINT64_MAX: none. */
static uint64_t next_due(const dmg_link_channel *channel)
{
    uint64_t earliest = UINT64_MAX;
    for (uint32_t node = 0; node < channel->link->node_count; node++) {
        const dmg_link_connection *from = &channel->connections[node];
        const dmg_link_entry *oldest = &from->entries[from->head % QUEUE_ENTRIES];
        if (from->head != from->rung && oldest->own.pending == 0 && oldest->due < earliest) {
            earliest = oldest->due;
        }
    }
    for (const dmg_link_call *call = channel->calls; call; call = call->next) {
        if (call->has_arrived && call->due < earliest) {
            earliest = call->due;
        }
    }
    return earliest;
}

/* ---- operations ---- */

static void link_ring(dmg_backend_channel *base)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    channel->inner->operations->ring(channel->inner);
    if (channel->unrung == 0) {
        return;
    }
    const dmg_link *link = channel->link;
    uint64_t now = dmg_link_now(channel);
    uint64_t allowed =
        channel->backdate + channel->unrung * channel->post + (channel->unrung_bytes >> 10) * channel->post_a_kib;
    if (now - channel->batch_start > allowed) {
        channel->batch_start = now - allowed;
        channel->is_backdated = false;
    }
    uint64_t overhead = link->is_accounting     ? 0
                        : channel->is_backdated ? link->overhead.after_poll
                                                : link->overhead.alone;
    for (uint32_t node = 0; node < link->node_count; node++) {
        dmg_link_connection *to = &channel->connections[node];
        if (to->rung != to->tail) {
            depart_batch(to, &link->costs, channel->batch_start, overhead, &channel->drawn);
        }
    }
    for (dmg_link_call *call = channel->calls; call; call = call->next) {
        if (!call->is_rung) {
            call->is_rung = true;
            call->departed = dmg_link_depart(&channel->connections[call->node].way, &link->costs, DMG_OPERATION_MESSAGE,
                                             call->bytes, channel->batch_start);
        }
    }
    channel->unrung = 0;
    channel->unrung_bytes = 0;
}

static void link_poll(dmg_backend_channel *base)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    channel->inner->operations->poll(channel->inner);
    uint64_t now = dmg_link_now(channel);
    channel->last_poll = now;
    bool has_posted = channel->has_posted;
    channel->has_posted = false;
    if (channel->in_flight == 0 || end_all_due(channel, now) > 0 || has_posted || !channel->link->is_accounting) {
        return;
    }
    uint64_t due = next_due(channel);
    if (due != UINT64_MAX && due > now) {
        dmg_link_run_ahead(channel, due, now);
        end_all_due(channel, due);
    }
}

static void note_post(dmg_link_channel *channel, uint64_t bytes)
{
    if (channel->unrung++ == 0) {
        uint64_t now = dmg_link_now(channel);
        channel->is_backdated = now - channel->last_poll < channel->backdate;
        channel->batch_start = channel->is_backdated ? channel->last_poll : now;
    }
    channel->unrung_bytes += bytes;
    channel->in_flight++;
    channel->has_posted = true;
}

/* A place in the queue; NULL when the operation has ended, because its node died while the queue was full. */
static dmg_link_entry *take_entry(dmg_link_channel *channel, dmg_operation_kind kind, uint16_t node, uint64_t offset,
                                  uint64_t bytes, dmg_completion *completion)
{
    dmg_link_connection *to = &channel->connections[node];
    dmg_backoff backoff = {0};
    while (to->tail - to->head == QUEUE_ENTRIES) {
        link_ring(&channel->base);
        link_poll(&channel->base);
        dmg_channel_notice_deaths(channel->owner);
        if (to->tail - to->head == QUEUE_ENTRIES && next_due(channel) == UINT64_MAX) {
            dmg_backoff_wait(&backoff);
        }
    }
    if (to->is_failed) {
        dmg_completion_end(completion, DMG_ERR_PEER, node);
        return NULL;
    }
    note_post(channel, bytes);
    dmg_link_entry *taken = &to->entries[to->tail++ % QUEUE_ENTRIES];
    *taken = (dmg_link_entry){.own = {.pending = 1},
                              .user = completion,
                              .bytes = dmg_link_counted_bytes(&channel->link->costs, offset, bytes),
                              .kind = kind};
    return taken;
}

static void link_post_read(dmg_backend_channel *base, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                           dmg_completion *completion)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    dmg_link_entry *taken = take_entry(channel, DMG_OPERATION_READ, node, offset, bytes, completion);
    if (taken) {
        channel->inner->operations->post_read(channel->inner, node, offset, to, bytes, &taken->own);
    }
}

static void link_post_write(dmg_backend_channel *base, const void *from, uint16_t node, uint64_t offset, uint64_t bytes,
                            dmg_completion *completion)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    dmg_link_entry *taken = take_entry(channel, DMG_OPERATION_WRITE, node, offset, bytes, completion);
    if (taken) {
        channel->inner->operations->post_write(channel->inner, from, node, offset, bytes, &taken->own);
    }
}

static void link_post_cas64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t expected,
                            uint64_t desired, uint64_t *observed, dmg_completion *completion)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    dmg_link_entry *taken = take_entry(channel, DMG_OPERATION_CAS, node, offset, sizeof *observed, completion);
    if (taken) {
        channel->inner->operations->post_cas64(channel->inner, node, offset, expected, desired, observed, &taken->own);
    }
}

static void link_post_faa64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t addend,
                            uint64_t *before, dmg_completion *completion)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    dmg_link_entry *taken = take_entry(channel, DMG_OPERATION_FAA, node, offset, sizeof *before, completion);
    if (taken) {
        channel->inner->operations->post_faa64(channel->inner, node, offset, addend, before, &taken->own);
    }
}

static void link_post_call(dmg_backend_channel *base, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                           dmg_call *call, dmg_completion *completion)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    dmg_link_call *flying = channel->spare_calls;
    if (flying) {
        channel->spare_calls = flying->next;
    } else {
        flying = malloc(sizeof *flying);
    }
    if (!flying) {
        dmg_completion_end(completion, DMG_ERR_MEMORY, node);
        return;
    }
    note_post(channel, bytes);
    *flying = (dmg_link_call){.own = {.pending = 1},
                              .user = completion,
                              .call = call,
                              .next = channel->calls,
                              .bytes = dmg_link_counted_bytes(&channel->link->costs, 0, bytes),
                              .node = node};
    channel->calls = flying;
    channel->inner->operations->post_call(channel->inner, node, type, payload, bytes, call, &flying->own);
}

static void link_sleep(dmg_backend_channel *base, uint64_t timeout_ns)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    channel->inner->operations->sleep(channel->inner, timeout_ns);
}

/* What is wrapped has ended all that was in flight; what only waited for the link has arrived. */
static void link_fail_node(dmg_backend_channel *base, uint16_t node)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    dmg_link_connection *failed = &channel->connections[node];
    channel->inner->operations->fail_node(channel->inner, node);
    failed->is_failed = true;
    while (failed->head != failed->tail) {
        end_entry(channel, failed, node);
    }
    failed->rung = failed->tail;
    for (dmg_link_call **place = &channel->calls; *place;) {
        if ((*place)->node == node) {
            end_call(channel, place, (*place)->own.status);
        } else {
            place = &(*place)->next;
        }
    }
}

/* ---- coming and going ---- */

static void free_calls(dmg_link_call *call)
{
    while (call) {
        dmg_link_call *next = call->next;
        free(call);
        call = next;
    }
}

static void free_channel(dmg_link_channel *channel)
{
    for (uint32_t node = 0; node < channel->link->node_count; node++) {
        if (channel->connections) {
            free(channel->connections[node].entries);
        }
        if (channel->own_pages) {
            dmg_shared_page_unmap(channel->own_pages[node]);
        }
    }
    free_calls(channel->calls);
    free_calls(channel->spare_calls);
    free(channel->connections);
    free(channel->own_pages);
    free(channel);
}

static void link_close(dmg_backend_channel *base)
{
    dmg_link_channel *channel = (dmg_link_channel *)base;
    channel->inner->operations->close(channel->inner);
    for (uint32_t node = 0; node < channel->link->node_count; node++) {
        dmg_link_connection *closed = &channel->connections[node];
        while (closed->head != closed->tail) {
            dmg_completion_end(closed->entries[closed->head++ % QUEUE_ENTRIES].user, DMG_ERR_CANCELLED, (uint16_t)node);
        }
    }
    while (channel->calls) {
        end_call(channel, &channel->calls, DMG_ERR_CANCELLED);
    }
    free_channel(channel);
}

static dmg_status make_connections(dmg_link_channel *channel)
{
    const dmg_link *link = channel->link;
    channel->connections = calloc(link->node_count, sizeof *channel->connections);
    channel->own_pages = calloc(link->node_count, sizeof *channel->own_pages);
    bool is_made = channel->connections && channel->own_pages;
    for (uint32_t node = 0; node < link->node_count && is_made; node++) {
        dmg_link_page *page = link->pages ? link->pages[node] : NULL;
        if (!page && dmg_shared_page_map_own(&channel->own_pages[node]) == DMG_OK) {
            page = channel->own_pages[node];
            dmg_link_page_begin(page);
        }
        dmg_link_connection *made = &channel->connections[node];
        made->entries = calloc(QUEUE_ENTRIES, sizeof *made->entries);
        is_made = page && made->entries;
        if (is_made) {
            made->way.clocks = page->clocks;
            made->way.epoch = page->epoch;
        }
    }
    return is_made ? DMG_OK : dmg_error(DMG_ERR_MEMORY, "opening a channel over an emulated link: out of memory");
}

/* ---- the operations ---- */

static uint64_t link_held_ns(dmg_backend_channel *base)
{
    const dmg_link_channel *channel = (const dmg_link_channel *)base;
    uint64_t due = next_due(channel);
    if (due == UINT64_MAX) {
        return UINT64_MAX;
    }
    if (channel->link->is_accounting) {
        return 0; /* the next poll runs ahead */
    }
    uint64_t now = dmg_link_now(channel);
    if (due > now + channel->spin) {
        return dmg_link_ticks_to_ns(channel->link, due - now);
    }
    /* No pause: it takes as long as ten readings of the clock, and what is seen late is late for the program. */
    while (now < due) {
        now = dmg_link_now(channel);
    }
    return 0;
}

static const dmg_channel_operations operations = {.close = link_close,
                                                  .post_read = link_post_read,
                                                  .post_write = link_post_write,
                                                  .post_cas64 = link_post_cas64,
                                                  .post_faa64 = link_post_faa64,
                                                  .post_call = link_post_call,
                                                  .ring = link_ring,
                                                  .poll = link_poll,
                                                  .sleep = link_sleep,
                                                  .fail_node = link_fail_node,
                                                  .held_ns = link_held_ns,
                                                  .use_mapped = dmg_link_use_mapped,
                                                  .wait_mapped = dmg_link_wait_mapped,
                                                  .charges_atomics = true};

static dmg_status wrap(const dmg_link *link, dmg_channel *owner, dmg_backend_channel *inner, dmg_link_channel **made)
{
    dmg_link_channel *wrapping = calloc(1, sizeof *wrapping);
    if (!wrapping) {
        return dmg_error(DMG_ERR_MEMORY, "opening a channel over an emulated link: out of memory");
    }
    *wrapping = (dmg_link_channel){.base.operations = &operations,
                                   .inner = inner,
                                   .owner = owner,
                                   .link = link,
                                   .drawn = DMG_LINK_FIRST_DRAW,
                                   .backdate = ns_to_ticks(link, BACKDATE_NS),
                                   .post = ns_to_ticks(link, POST_NS),
                                   .post_a_kib = ns_to_ticks(link, POST_NS_A_KIB),
                                   .spin = ns_to_ticks(link, SPIN_NS)};
    dmg_status status = make_connections(wrapping);
    if (status != DMG_OK) {
        free_channel(wrapping);
        return status;
    }
    *made = wrapping;
    return DMG_OK;
}

dmg_status dmg_link_channel_open(dmg_backend_client *base, dmg_channel *owner, dmg_backend_channel **made)
{
    const dmg_link *link = (const dmg_link *)base;
    dmg_backend_channel *inner;
    dmg_status status = link->inner->operations->channel_open(link->inner, owner, &inner);
    if (status != DMG_OK) {
        return status;
    }
    dmg_link_channel *wrapping = NULL;
    status = wrap(link, owner, inner, &wrapping);
    if (status != DMG_OK) {
        inner->operations->close(inner);
        return status;
    }
    *made = &wrapping->base;
    return DMG_OK;
}
