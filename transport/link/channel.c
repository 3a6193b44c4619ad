/*
 * A channel with the link model in it: a backend around the channel's own.
 *
 * A post goes to the inner backend at once, so that data is copied while the link's time runs, but the caller's completion waits in a queue, one a
 * node. At the ring, what was posted to a node since the last ring is reserved on the link's clocks in one step a resource, and each
 * operation gets the time at which it is due. Polling ends the operations that the inner backend has finished and that are due, in order.
 *
 * A batch counts as handed over when its first operation was posted, less what the program did in between, and as early as the last poll when
 * it follows that closely: the loop around a poll is the program's, not the link's, and would otherwise make every link look slower.
 *
 * When accounting, `ahead` is how far the channel's own clock runs ahead of the machine's. It is moved on to the next due time when a second poll in
 * a row finds nothing: only a thread that waits polls twice.
 */
#include "core/base/error.h"
#include "transport/link/model.h"

#include <stdlib.h>

#define QUEUE_ENTRIES      1024 /* in flight of one channel to one node, like a NIC's send queue; a power of two */
#define BACKDATE_NS        200
#define POST_NS            200 /* generous bounds of what the inner backend takes */
#define POST_NS_A_KIB      512
#define NANOSECONDS_SECOND 1e9

typedef struct entry {
    dmg_completion own; /* the inner backend's */
    dmg_completion *user;
    uint64_t due;   /* ticks */
    uint64_t bytes; /* as the link counts them */
    dmg_operation_kind kind;
} entry;

typedef struct connection {
    entry *entries; /* [head, rung): on the link; [rung, tail): posted */
    uint32_t head, rung, tail;
    bool is_failed;
    uint64_t last_due;
    dmg_link_clock *clocks; /* the link's, or, when accounting, this channel's own */
    uint64_t epoch;
    uint64_t operations_free_at, atomics_free_at, read_free_at, write_free_at; /* the connection's own limits; units */
} connection;

/* A message. Its answer may take long (a barrier), and keeps nothing else waiting. */
typedef struct flying_call {
    dmg_completion own;
    dmg_completion *user;
    const dmg_call *call;
    struct flying_call *next;
    uint64_t bytes;
    uint64_t departed; /* ticks */
    uint64_t due;
    uint16_t node;
    bool is_rung;
    bool has_arrived;
} flying_call;

typedef struct link_channel {
    const dmg_backend *inner;
    void *implementation;
    dmg_channel *channel;
    const dmg_link *link;
    connection *connections;
    dmg_link_page **own_pages; /* when accounting */
    flying_call *calls;
    flying_call *spare_calls;
    uint32_t in_flight;
    uint32_t unrung;
    uint64_t unrung_bytes;
    uint64_t batch_start; /* ticks */
    bool is_backdated;
    bool has_posted; /* since the last poll */
    uint64_t last_poll;
    uint64_t ahead;       /* ticks */
    uint64_t touched_due; /* of all spans in place that were charged */
    uint64_t backdate, post, post_a_kib;
} link_channel;

static inline uint64_t now_of(const link_channel *channel)
{
    return dmg_link_ticks(channel->link->are_cycles) + channel->ahead;
}

static inline uint64_t ticks_to_ns(const dmg_link *link, uint64_t ticks)
{
    return (uint64_t)((double)ticks * (NANOSECONDS_SECOND / link->ticks_a_second));
}

static inline uint64_t ns_to_ticks(const dmg_link *link, double ns)
{
    return (uint64_t)(ns * link->ticks_a_second / NANOSECONDS_SECOND);
}

static inline uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---- the link's time ---- */

/* What operations take of a link, and of their connection. */
typedef struct demand {
    uint64_t operations; /* units */
    uint64_t count;
    uint64_t read_bytes;
    uint64_t write_bytes;
    uint64_t atomics;
} demand;

static inline void demand_add(demand *sum, const dmg_link_costs *costs, dmg_operation_kind kind, uint64_t bytes)
{
    sum->operations += costs->operation[kind];
    sum->count++;
    switch (kind) {
    case DMG_OPERATION_READ:
        sum->read_bytes += bytes;
        break;
    case DMG_OPERATION_CAS:
    case DMG_OPERATION_FAA: /* the word, or its line, goes both ways */
        sum->read_bytes += bytes;
        sum->write_bytes += bytes;
        sum->atomics++;
        break;
    default:
        sum->write_bytes += bytes;
        break;
    }
}

/* Where the reserved time of each resource begins. */
typedef struct starts {
    uint64_t operations, read, write, atomics;
    uint64_t own_operations, own_read, own_write, own_atomics;
} starts;

static inline uint64_t reserve(dmg_link_clock *clock, uint64_t now, uint64_t cost)
{
    return cost ? dmg_link_reserve(clock, now, cost) : now;
}

static starts reserve_all(connection *to, const dmg_link_costs *costs, const demand *all, uint64_t now)
{
    dmg_link_clock *clocks = to->clocks;
    return (starts){
        .operations = reserve(&clocks[DMG_LINK_OPERATIONS], now, all->operations),
        .read = reserve(&clocks[DMG_LINK_READ_BYTES], now, dmg_link_bytes_cost(all->read_bytes, costs->read_byte)),
        .write = reserve(&clocks[DMG_LINK_WRITE_BYTES], now, dmg_link_bytes_cost(all->write_bytes, costs->write_byte)),
        .atomics = reserve(&clocks[DMG_LINK_ATOMICS], now, all->atomics * costs->atomic),
        .own_operations = dmg_link_reserve_own(&to->operations_free_at, now, all->count * costs->channel_operation),
        .own_read = dmg_link_reserve_own(&to->read_free_at, now,
                                         dmg_link_bytes_cost(all->read_bytes, costs->channel_read_byte)),
        .own_write = dmg_link_reserve_own(&to->write_free_at, now,
                                          dmg_link_bytes_cost(all->write_bytes, costs->channel_write_byte)),
        .own_atomics = dmg_link_reserve_own(&to->atomics_free_at, now, all->atomics * costs->channel_atomic)};
}

/*
 * When an operation departs: `before` was served before it, `with` is that and the operation itself. It need not wait for its own turn at
 * the limits of rates (a lone operation takes just the latency), but for its bytes to be on the link.
 */
static uint64_t departure(const starts *from, const dmg_link_costs *costs, const demand *before, const demand *with)
{
    uint64_t at =
        later(from->operations + before->operations, from->own_operations + before->count * costs->channel_operation);
    if (with->read_bytes != before->read_bytes) {
        at = later(at, from->read + dmg_link_bytes_cost(with->read_bytes, costs->read_byte));
        at = later(at, from->own_read + dmg_link_bytes_cost(with->read_bytes, costs->channel_read_byte));
    }
    if (with->write_bytes != before->write_bytes) {
        at = later(at, from->write + dmg_link_bytes_cost(with->write_bytes, costs->write_byte));
        at = later(at, from->own_write + dmg_link_bytes_cost(with->write_bytes, costs->channel_write_byte));
    }
    if (with->atomics != before->atomics) {
        at = later(at, from->atomics + before->atomics * costs->atomic);
        at = later(at, from->own_atomics + before->atomics * costs->channel_atomic);
    }
    return at;
}

static inline uint64_t to_units(const connection *of, uint64_t ticks)
{
    return ticks > of->epoch ? (ticks - of->epoch) << DMG_LINK_UNIT_BITS : 0;
}

static inline uint64_t to_ticks(const connection *of, uint64_t units)
{
    return of->epoch + (units >> DMG_LINK_UNIT_BITS);
}

/* One operation's departure, in ticks. */
static uint64_t depart_alone(connection *to, const dmg_link_costs *costs, dmg_operation_kind kind, uint64_t bytes,
                             uint64_t start)
{
    const demand nothing = {0};
    demand all = {0};
    demand_add(&all, costs, kind, bytes);
    starts from = reserve_all(to, costs, &all, to_units(to, start));
    return to_ticks(to, departure(&from, costs, &nothing, &all));
}

/* All that was posted to one node since the last ring. */
static void depart_batch(connection *to, const dmg_link_costs *costs, uint64_t start, uint64_t lag)
{
    demand all = {0};
    for (uint32_t i = to->rung; i != to->tail; i++) {
        const entry *posted = &to->entries[i % QUEUE_ENTRIES];
        demand_add(&all, costs, posted->kind, posted->bytes);
    }
    starts from = reserve_all(to, costs, &all, to_units(to, start));
    demand before = {0};
    for (uint32_t i = to->rung; i != to->tail; i++) {
        entry *posted = &to->entries[i % QUEUE_ENTRIES];
        demand with = before;
        demand_add(&with, costs, posted->kind, posted->bytes);
        uint64_t latency = costs->latency[posted->kind];
        uint64_t due = to_ticks(to, departure(&from, costs, &before, &with)) + (latency > lag ? latency - lag : 0);
        to->last_due = posted->due = later(to->last_due, due);
        before = with;
    }
    to->rung = to->tail;
}

static inline uint64_t counted_bytes(const dmg_link_costs *costs, uint64_t offset, uint64_t bytes)
{
    uint64_t mask = costs->line_bytes - 1;
    return ((offset + bytes + mask) & ~mask) - (offset & ~mask);
}

/* ---- ending ---- */

static void end_entry(link_channel *channel, connection *from, uint16_t node)
{
    const entry *ended = &from->entries[from->head++ % QUEUE_ENTRIES];
    channel->in_flight--;
    dmg_completion_end(ended->user, ended->own.status, node);
}

static uint32_t end_due(link_channel *channel, connection *from, uint16_t node, uint64_t now)
{
    uint32_t count = 0;
    while (from->head != from->rung) {
        const entry *oldest = &from->entries[from->head % QUEUE_ENTRIES];
        if (oldest->own.pending != 0 || (now < oldest->due && oldest->own.status == DMG_OK)) {
            break;
        }
        end_entry(channel, from, node);
        count++;
    }
    return count;
}

static void end_call(link_channel *channel, flying_call **place, dmg_status status)
{
    flying_call *ended = *place;
    *place = ended->next;
    ended->next = channel->spare_calls;
    channel->spare_calls = ended;
    channel->in_flight--;
    dmg_completion_end(ended->user, status, ended->node);
}

/* The answer is here; it has yet to come over the link. */
static void note_arrival(link_channel *channel, flying_call *arrived, uint64_t now)
{
    const dmg_link *link = channel->link;
    uint64_t floor = link->message_floor;
    uint64_t start = later(arrived->departed, now > floor ? now - floor : 0);
    uint64_t answered = depart_alone(&channel->connections[arrived->node], &link->costs, DMG_OPERATION_READ,
                                     counted_bytes(&link->costs, 0, arrived->call->reply_bytes), start);
    arrived->has_arrived = true;
    arrived->due = answered + link->costs.latency[DMG_OPERATION_MESSAGE];
}

static uint32_t end_due_calls(link_channel *channel, uint64_t now)
{
    uint32_t count = 0;
    flying_call **place = &channel->calls;
    while (*place) {
        flying_call *call = *place;
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

static uint32_t end_all_due(link_channel *channel, uint64_t now)
{
    uint32_t count = channel->calls ? end_due_calls(channel, now) : 0;
    for (uint32_t node = 0; node < channel->link->node_count; node++) {
        count += end_due(channel, &channel->connections[node], (uint16_t)node, now);
    }
    return count;
}

/* The earliest time at which something ends that waits for nothing but the link; UINT64_MAX: none. */
static uint64_t next_due(const link_channel *channel)
{
    uint64_t earliest = UINT64_MAX;
    for (uint32_t node = 0; node < channel->link->node_count; node++) {
        const connection *from = &channel->connections[node];
        const entry *oldest = &from->entries[from->head % QUEUE_ENTRIES];
        if (from->head != from->rung && oldest->own.pending == 0 && oldest->due < earliest) {
            earliest = oldest->due;
        }
    }
    for (const flying_call *call = channel->calls; call; call = call->next) {
        if (call->has_arrived && call->due < earliest) {
            earliest = call->due;
        }
    }
    return earliest;
}

static void run_ahead(link_channel *channel, uint64_t to, uint64_t now)
{
    channel->ahead += to - now;
    channel->channel->counters.modelled_ns += ticks_to_ns(channel->link, to - now);
}

/* ---- operations ---- */

static void link_ring(void *implementation)
{
    link_channel *channel = implementation;
    channel->inner->ring(channel->implementation);
    if (channel->unrung == 0) {
        return;
    }
    const dmg_link *link = channel->link;
    uint64_t now = now_of(channel);
    uint64_t allowed =
        channel->backdate + channel->unrung * channel->post + (channel->unrung_bytes >> 10) * channel->post_a_kib;
    if (now - channel->batch_start > allowed) {
        channel->batch_start = now - allowed;
        channel->is_backdated = false;
    }
    uint64_t lag = link->is_accounting ? 0 : channel->is_backdated ? link->lags.after_poll : link->lags.alone;
    for (uint32_t node = 0; node < link->node_count; node++) {
        connection *to = &channel->connections[node];
        if (to->rung != to->tail) {
            depart_batch(to, &link->costs, channel->batch_start, lag);
        }
    }
    for (flying_call *call = channel->calls; call; call = call->next) {
        if (!call->is_rung) {
            call->is_rung = true;
            call->departed = depart_alone(&channel->connections[call->node], &link->costs, DMG_OPERATION_MESSAGE,
                                          call->bytes, channel->batch_start);
        }
    }
    channel->unrung = 0;
    channel->unrung_bytes = 0;
}

static void link_poll(void *implementation)
{
    link_channel *channel = implementation;
    channel->inner->poll(channel->implementation);
    uint64_t now = now_of(channel);
    channel->last_poll = now;
    bool has_posted = channel->has_posted;
    channel->has_posted = false;
    if (channel->in_flight == 0 || end_all_due(channel, now) > 0 || has_posted || !channel->link->is_accounting) {
        return;
    }
    uint64_t due = next_due(channel);
    if (due != UINT64_MAX && due > now) {
        run_ahead(channel, due, now);
        end_all_due(channel, due);
    }
}

static void note_post(link_channel *channel, uint64_t bytes)
{
    if (channel->unrung++ == 0) {
        uint64_t now = now_of(channel);
        channel->is_backdated = now - channel->last_poll < channel->backdate;
        channel->batch_start = channel->is_backdated ? channel->last_poll : now;
    }
    channel->unrung_bytes += bytes;
    channel->in_flight++;
    channel->has_posted = true;
}

/* A place in the queue; NULL when the operation has ended, because its node died while the queue was full. */
static entry *take_entry(link_channel *channel, dmg_operation_kind kind, uint16_t node, uint64_t offset, uint64_t bytes,
                         dmg_completion *completion)
{
    connection *to = &channel->connections[node];
    dmg_backoff backoff = {0};
    while (to->tail - to->head == QUEUE_ENTRIES) {
        link_ring(channel);
        link_poll(channel);
        dmg_channel_notice_deaths(channel->channel);
        if (to->tail - to->head == QUEUE_ENTRIES && next_due(channel) == UINT64_MAX) {
            dmg_backoff_wait(&backoff);
        }
    }
    if (to->is_failed) {
        dmg_completion_end(completion, DMG_ERR_PEER, node);
        return NULL;
    }
    note_post(channel, bytes);
    entry *taken = &to->entries[to->tail++ % QUEUE_ENTRIES];
    *taken = (entry){.own = {.pending = 1},
                     .user = completion,
                     .bytes = counted_bytes(&channel->link->costs, offset, bytes),
                     .kind = kind};
    return taken;
}

static void link_post_read(void *implementation, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                           dmg_completion *completion)
{
    link_channel *channel = implementation;
    entry *taken = take_entry(channel, DMG_OPERATION_READ, node, offset, bytes, completion);
    if (taken) {
        channel->inner->post_read(channel->implementation, node, offset, to, bytes, &taken->own);
    }
}

static void link_post_write(void *implementation, const void *from, uint16_t node, uint64_t offset, uint64_t bytes,
                            dmg_completion *completion)
{
    link_channel *channel = implementation;
    entry *taken = take_entry(channel, DMG_OPERATION_WRITE, node, offset, bytes, completion);
    if (taken) {
        channel->inner->post_write(channel->implementation, from, node, offset, bytes, &taken->own);
    }
}

static void link_post_cas64(void *implementation, uint16_t node, uint64_t offset, uint64_t expected, uint64_t desired,
                            uint64_t *observed, dmg_completion *completion)
{
    link_channel *channel = implementation;
    entry *taken = take_entry(channel, DMG_OPERATION_CAS, node, offset, sizeof *observed, completion);
    if (taken) {
        channel->inner->post_cas64(channel->implementation, node, offset, expected, desired, observed, &taken->own);
    }
}

static void link_post_faa64(void *implementation, uint16_t node, uint64_t offset, uint64_t addend, uint64_t *before,
                            dmg_completion *completion)
{
    link_channel *channel = implementation;
    entry *taken = take_entry(channel, DMG_OPERATION_FAA, node, offset, sizeof *before, completion);
    if (taken) {
        channel->inner->post_faa64(channel->implementation, node, offset, addend, before, &taken->own);
    }
}

static void link_post_call(void *implementation, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                           dmg_call *call, dmg_completion *completion)
{
    link_channel *channel = implementation;
    flying_call *flying = channel->spare_calls;
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
    *flying = (flying_call){.own = {.pending = 1},
                            .user = completion,
                            .call = call,
                            .next = channel->calls,
                            .bytes = counted_bytes(&channel->link->costs, 0, bytes),
                            .node = node};
    channel->calls = flying;
    channel->inner->post_call(channel->implementation, node, type, payload, bytes, call, &flying->own);
}

static void link_channel_sleep(void *implementation, uint64_t timeout_ns)
{
    link_channel *channel = implementation;
    channel->inner->channel_sleep(channel->implementation, timeout_ns);
}

/* The inner backend has ended all that was in flight; what only waited for the link has arrived. */
static void link_fail_node(void *implementation, uint16_t node)
{
    link_channel *channel = implementation;
    connection *failed = &channel->connections[node];
    channel->inner->fail_node(channel->implementation, node);
    failed->is_failed = true;
    while (failed->head != failed->tail) {
        end_entry(channel, failed, node);
    }
    failed->rung = failed->tail;
    for (flying_call **place = &channel->calls; *place;) {
        if ((*place)->node == node) {
            end_call(channel, place, (*place)->own.status);
        } else {
            place = &(*place)->next;
        }
    }
}

/* ---- coming and going ---- */

static void free_calls(flying_call *call)
{
    while (call) {
        flying_call *next = call->next;
        free(call);
        call = next;
    }
}

static void free_channel(link_channel *channel)
{
    for (uint32_t node = 0; node < channel->link->node_count; node++) {
        if (channel->connections) {
            free(channel->connections[node].entries);
        }
        if (channel->own_pages) {
            dmg_link_page_unmap(channel->own_pages[node]);
        }
    }
    free_calls(channel->calls);
    free_calls(channel->spare_calls);
    free(channel->connections);
    free(channel->own_pages);
    free(channel);
}

static void link_channel_close(void *implementation)
{
    link_channel *channel = implementation;
    channel->inner->channel_close(channel->implementation);
    for (uint32_t node = 0; node < channel->link->node_count; node++) {
        connection *closed = &channel->connections[node];
        while (closed->head != closed->tail) {
            dmg_completion_end(closed->entries[closed->head++ % QUEUE_ENTRIES].user, DMG_ERR_CANCELLED, (uint16_t)node);
        }
    }
    while (channel->calls) {
        end_call(channel, &channel->calls, DMG_ERR_CANCELLED);
    }
    free_channel(channel);
}

static dmg_status make_connections(link_channel *channel)
{
    const dmg_link *link = channel->link;
    channel->connections = calloc(link->node_count, sizeof *channel->connections);
    channel->own_pages = calloc(link->node_count, sizeof *channel->own_pages);
    bool is_made = channel->connections && channel->own_pages;
    for (uint32_t node = 0; node < link->node_count && is_made; node++) {
        dmg_link_page *page = link->pages ? link->pages[node] : NULL;
        if (!page && dmg_link_page_map_own(&channel->own_pages[node]) == DMG_OK) {
            page = channel->own_pages[node];
        }
        connection *made = &channel->connections[node];
        made->entries = calloc(QUEUE_ENTRIES, sizeof *made->entries);
        is_made = page && made->entries;
        if (is_made) {
            made->clocks = page->clocks;
            made->epoch = page->epoch;
        }
    }
    return is_made ? DMG_OK : dmg_error(DMG_ERR_MEMORY, "opening a channel over an emulated link: out of memory");
}

dmg_status dmg_link_channel_wrap(dmg_link *link, dmg_channel *channel)
{
    link_channel *wrapped = calloc(1, sizeof *wrapped);
    if (!wrapped) {
        return dmg_error(DMG_ERR_MEMORY, "opening a channel over an emulated link: out of memory");
    }
    *wrapped = (link_channel){.inner = channel->backend,
                              .implementation = channel->implementation,
                              .channel = channel,
                              .link = link,
                              .backdate = ns_to_ticks(link, BACKDATE_NS),
                              .post = ns_to_ticks(link, POST_NS),
                              .post_a_kib = ns_to_ticks(link, POST_NS_A_KIB)};
    dmg_status status = make_connections(wrapped);
    if (status != DMG_OK) {
        free_channel(wrapped);
        return status;
    }
    channel->backend = &dmg_link_backend;
    channel->implementation = wrapped;
    channel->link = link;
    return DMG_OK;
}

const dmg_backend dmg_link_backend = {.name = "link",
                                      .channel_close = link_channel_close,
                                      .post_read = link_post_read,
                                      .post_write = link_post_write,
                                      .post_cas64 = link_post_cas64,
                                      .post_faa64 = link_post_faa64,
                                      .post_call = link_post_call,
                                      .ring = link_ring,
                                      .poll = link_poll,
                                      .channel_sleep = link_channel_sleep,
                                      .fail_node = link_fail_node};

uint64_t dmg_link_due_in_ns(const dmg_channel *channel)
{
    const link_channel *wrapped = channel->implementation;
    uint64_t due = next_due(wrapped);
    if (due == UINT64_MAX) {
        return UINT64_MAX;
    }
    uint64_t now = now_of(wrapped);
    return due > now ? ticks_to_ns(wrapped->link, due - now) : 0;
}

/* ---- in place ---- */

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

static void spin_until(const link_channel *channel, uint64_t due)
{
    const dmg_link *link = channel->link;
    uint64_t now = now_of(channel);
    if (due > now && ticks_to_ns(link, due - now) > SLEEP_ABOVE_NS) {
        dmg_sleep_ns(ticks_to_ns(link, due - now) - WAKE_EARLY_NS);
    }
    while (now_of(channel) < due) {
        __builtin_ia32_pause();
    }
}

void dmg_link_touch(dmg_channel *channel, dmg_operation_kind kind, dmg_address address, uint64_t bytes)
{
    link_channel *wrapped = channel->implementation;
    const dmg_link *link = wrapped->link;
    const dmg_link_costs *costs = &link->costs;
    uint16_t node = dmg_address_node(address);
    if (node >= link->node_count || bytes == 0) {
        return;
    }
    uint64_t start = now_of(wrapped);
    uint64_t departed = depart_alone(&wrapped->connections[node], costs, kind,
                                     counted_bytes(costs, dmg_address_offset(address), bytes), start);
    if (kind == DMG_OPERATION_READ && bytes < TOUCHED_BYTES_MAX) {
        fetch_lines(channel, address, bytes);
    }
    uint64_t lag = link->lags.in_place < costs->latency[kind] ? link->lags.in_place : costs->latency[kind];
    wrapped->touched_due = later(wrapped->touched_due, departed + costs->latency[kind] - lag);
}

void dmg_link_touch_wait(dmg_channel *channel)
{
    link_channel *wrapped = channel->implementation;
    const dmg_link *link = wrapped->link;
    uint64_t due = wrapped->touched_due;
    uint64_t now = now_of(wrapped);
    if (due <= now) {
        return;
    }
    if (link->is_accounting) {
        run_ahead(wrapped, due, now);
        return;
    }
    spin_until(wrapped, due);
    channel->counters.wait_ns += ticks_to_ns(link, due - now);
}
