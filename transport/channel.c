/*
 * A thread's channel: checks, counts, hands over to the backend, and waits.
 */
#include "core/base/backoff.h"
#include "core/base/checked.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/core.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BYTES       8
#define CACHE_LINE_BYTES 64
/* How long before an operation that is held back ends a thread stops sleeping: timers are not finer. */
#define HELD_SPIN_NS UINT64_C(100000)

dmg_status dmg_channel_open_over(dmg_client *client, dmg_backend_client *lower, dmg_channel **channel)
{
    *channel = NULL;
    dmg_channel *opened = calloc(1, sizeof *opened);
    bool *is_failed = calloc(client->node_count, sizeof *is_failed);
    dmg_node_traffic *traffic = calloc(client->node_count, sizeof *traffic);
    if (!opened || !is_failed || !traffic) {
        free(opened);
        free(is_failed);
        free(traffic);
        return dmg_error(DMG_ERR_MEMORY, "opening a channel: out of memory");
    }
    opened->client = client;
    opened->nodes = client->nodes;
    opened->node_count = client->node_count;
    opened->is_failed = is_failed;
    opened->traffic = traffic;
    dmg_status status = lower->operations->channel_open(lower, opened, &opened->lower);
    if (status != DMG_OK) {
        free(is_failed);
        free(traffic);
        free(opened);
        return dmg_error_prefix(status, "opening a channel");
    }
    opened->operations = opened->lower->operations;
    *channel = opened;
    return DMG_OK;
}

dmg_status dmg_channel_open(dmg_client *client, dmg_channel **channel)
{
    return dmg_channel_open_over(client, client->lower, channel);
}

void dmg_channel_close(dmg_channel *channel)
{
    if (!channel) {
        return;
    }
    channel->operations->close(channel->lower);
    free(channel->is_failed);
    free(channel->traffic);
    free(channel);
}

dmg_client *dmg_channel_client(const dmg_channel *channel)
{
    return channel->client;
}

dmg_counters *dmg_channel_mutable_counters(dmg_channel *channel)
{
    return &channel->counters;
}

const dmg_counters *dmg_channel_counters(const dmg_channel *channel)
{
    return &channel->counters;
}

const dmg_node_traffic *dmg_channel_traffic(const dmg_channel *channel, uint16_t node)
{
    return node < channel->node_count ? &channel->traffic[node] : NULL;
}

dmg_purpose dmg_channel_set_purpose(dmg_channel *channel, dmg_purpose purpose)
{
    dmg_purpose before = channel->purpose;
    channel->purpose = purpose;
    return before;
}

/* ---- posting ---- */

__attribute__((format(printf, 4, 5), cold)) static bool refuse(dmg_channel *channel, uint16_t node,
                                                               dmg_completion *completion, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(channel->refusal, sizeof channel->refusal, format, arguments);
    va_end(arguments);
    channel->refused = completion;
    dmg_completion_end(completion, DMG_ERR_ARGUMENT, node);
    return false;
}

/* False when the operation has already ended: it is nonsense, or its node is dead. */
static inline bool admit_node(dmg_channel *channel, uint16_t node, dmg_completion *completion)
{
    completion->pending++;
    if (node >= channel->node_count) {
        return refuse(channel, node, completion, "the pool has %u memory nodes, not a node %u", channel->node_count,
                      (unsigned int)node);
    }
    if (atomic_load_explicit(&channel->nodes[node].dead, memory_order_acquire)) {
        dmg_completion_end(completion, DMG_ERR_PEER, node);
        return false;
    }
    return true;
}

static inline bool admit_span(dmg_channel *channel, dmg_address address, uint64_t bytes, dmg_completion *completion)
{
    uint16_t node = dmg_address_node(address);
    uint64_t offset = dmg_address_offset(address);
    if (!admit_node(channel, node, completion)) {
        return false;
    }
    if (!dmg_range_is_inside(offset, bytes, channel->nodes[node].segment_bytes)) {
        return refuse(channel, node, completion,
                      "%" PRIu64 " bytes at offset %" PRIu64 " of memory node %u are not inside its segment of %" PRIu64
                      " bytes",
                      bytes, offset, (unsigned int)node, channel->nodes[node].segment_bytes);
    }
    return true;
}

static inline bool admit_word(dmg_channel *channel, dmg_address word, dmg_completion *completion)
{
    if (!admit_span(channel, word, WORD_BYTES, completion)) {
        return false;
    }
    if (word % WORD_BYTES != 0) {
        return refuse(channel, dmg_address_node(word), completion,
                      "an atomic operation needs a word aligned to 8 bytes; offset %" PRIu64
                      " of memory node %u is not",
                      dmg_address_offset(word), (unsigned int)dmg_address_node(word));
    }
    return true;
}

/*
 * Looking at the clock twice takes 60 ns, more than posting a read of 8 bytes in shared memory that a cache holds: one
 * round in so many is timed, and stands for the others.
 */
#define TIMED_ROUNDS 8

/* The thread goes on to wait, or to something else. */
static inline void end_round(dmg_channel *channel)
{
    if (channel->round && channel->round_is_timed) {
        channel->counters.post_ns += (dmg_now_ns() - channel->round_since_ns) * TIMED_ROUNDS;
    }
    channel->round = NULL;
}

/*
 * A round begins when nothing of the completion is pending. A backend may end operations while they are posted, so what
 * follows with the same completion still belongs to the round, until something was waited for.
 */
static inline void count_round(dmg_channel *channel, dmg_operation_kind kind, dmg_completion *completion)
{
    if (channel->round == completion) {
        return;
    }
    end_round(channel);
    channel->round = completion;
    channel->round_is_timed = ++channel->rounds_begun % TIMED_ROUNDS == 0;
    if (channel->round_is_timed) {
        channel->round_since_ns = dmg_now_ns();
    }
    if (completion->pending == 1) {
        completion->kind = (uint8_t)kind;
        channel->counters.rounds[kind]++;
        channel->counters.serial_parts[kind] += DMG_ROUND_PARTS / (completion->overlap ? completion->overlap : 1);
    }
}

static inline void count(dmg_channel *channel, dmg_operation_kind kind, uint16_t node, uint64_t bytes,
                         dmg_completion *completion)
{
    dmg_counters_count(&channel->counters, kind, bytes);
    dmg_counters_count_purpose(&channel->counters, channel->purpose, false, bytes);
    count_round(channel, kind, completion);
    dmg_node_traffic *traffic = &channel->traffic[node];
    bool is_atomic = kind == DMG_OPERATION_CAS || kind == DMG_OPERATION_FAA;
    traffic->operations++;
    traffic->read_bytes += kind == DMG_OPERATION_READ || is_atomic ? bytes : 0;
    traffic->write_bytes += kind != DMG_OPERATION_READ ? bytes : 0;
    channel->unrung++;
}

void dmg_post_read(dmg_channel *channel, dmg_address from, void *to, uint64_t bytes, dmg_completion *completion)
{
    if (!admit_span(channel, from, bytes, completion)) {
        return;
    }
    if (bytes == 0) {
        completion->pending--;
        return;
    }
    count(channel, DMG_OPERATION_READ, dmg_address_node(from), bytes, completion);
    channel->operations->post_read(channel->lower, dmg_address_node(from), dmg_address_offset(from), to, bytes,
                                   completion);
}

void dmg_post_write(dmg_channel *channel, const void *from, dmg_address to, uint64_t bytes, dmg_completion *completion)
{
    if (!admit_span(channel, to, bytes, completion)) {
        return;
    }
    if (bytes == 0) {
        completion->pending--;
        return;
    }
    count(channel, DMG_OPERATION_WRITE, dmg_address_node(to), bytes, completion);
    channel->operations->post_write(channel->lower, from, dmg_address_node(to), dmg_address_offset(to), bytes,
                                    completion);
}

void dmg_post_cas64(dmg_channel *channel, dmg_address word, uint64_t expected, uint64_t desired, uint64_t *observed,
                    dmg_completion *completion)
{
    if (!admit_word(channel, word, completion)) {
        return;
    }
    count(channel, DMG_OPERATION_CAS, dmg_address_node(word), WORD_BYTES, completion);
    channel->operations->post_cas64(channel->lower, dmg_address_node(word), dmg_address_offset(word), expected, desired,
                                    observed, completion);
}

void dmg_post_faa64(dmg_channel *channel, dmg_address word, uint64_t addend, uint64_t *before,
                    dmg_completion *completion)
{
    if (!admit_word(channel, word, completion)) {
        return;
    }
    count(channel, DMG_OPERATION_FAA, dmg_address_node(word), WORD_BYTES, completion);
    channel->operations->post_faa64(channel->lower, dmg_address_node(word), dmg_address_offset(word), addend, before,
                                    completion);
}

void dmg_post_call(dmg_channel *channel, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                   dmg_call *call, dmg_completion *completion)
{
    call->reply_bytes = 0;
    call->reply_status = DMG_OK;
    if (!admit_node(channel, node, completion)) {
        return;
    }
    if (bytes > DMG_MESSAGE_BYTES_MAX) {
        refuse(channel, node, completion, "a message of %zu bytes is longer than the %d bytes that one may have", bytes,
               DMG_MESSAGE_BYTES_MAX);
        return;
    }
    count(channel, DMG_OPERATION_MESSAGE, node, bytes, completion);
    channel->operations->post_call(channel->lower, node, type, payload, bytes, call, completion);
}

static inline void count_span(dmg_channel *channel, dmg_address address, uint64_t bytes)
{
    uint64_t offset = dmg_address_offset(address) % CACHE_LINE_BYTES;
    dmg_counters_count_mapped(&channel->counters, bytes);
    dmg_counters_count_purpose(&channel->counters, channel->purpose, true, bytes);
    channel->counters.mapped_lines += (offset + bytes + CACHE_LINE_BYTES - 1) / CACHE_LINE_BYTES;
    channel->has_used_mapped = true;
    if (dmg_address_node(address) < channel->node_count) {
        dmg_node_traffic *traffic = &channel->traffic[dmg_address_node(address)];
        traffic->operations++;
        traffic->read_bytes += bytes;
    }
}

static inline void count_mapped_wait(dmg_channel *channel)
{
    channel->counters.mapped_waits += channel->has_used_mapped;
    channel->has_used_mapped = false;
    end_round(channel);
}

static inline void use_mapped(dmg_channel *channel, dmg_operation_kind kind, dmg_address address, uint64_t bytes)
{
    uint16_t node = dmg_address_node(address);
    uint64_t offset = dmg_address_offset(address);
    if (channel->operations->use_mapped && node < channel->node_count &&
        dmg_range_is_inside(offset, bytes, channel->nodes[node].segment_bytes)) {
        channel->operations->use_mapped(channel->lower, kind, node, offset, bytes);
    }
}

static inline void wait_mapped(dmg_channel *channel)
{
    if (channel->operations->wait_mapped) {
        channel->operations->wait_mapped(channel->lower);
    }
}

void dmg_channel_charge_read(dmg_channel *channel, dmg_address address, uint64_t bytes)
{
    count_span(channel, address, bytes);
    count_mapped_wait(channel);
    use_mapped(channel, DMG_OPERATION_READ, address, bytes);
    wait_mapped(channel);
}

void dmg_channel_charge_read_ahead(dmg_channel *channel, dmg_address address, uint64_t bytes)
{
    count_span(channel, address, bytes);
    use_mapped(channel, DMG_OPERATION_READ, address, bytes);
}

void dmg_channel_charge_wait(dmg_channel *channel)
{
    count_mapped_wait(channel);
    wait_mapped(channel);
}

void dmg_channel_charge_write(dmg_channel *channel, dmg_address address, uint64_t bytes)
{
    dmg_channel_charge_write_ahead(channel, address, bytes);
    dmg_channel_charge_wait(channel);
}

void dmg_channel_charge_write_ahead(dmg_channel *channel, dmg_address address, uint64_t bytes)
{
    count_span(channel, address, bytes);
    use_mapped(channel, DMG_OPERATION_WRITE, address, bytes);
}

bool dmg_channel_charges_atomics(const dmg_channel *channel)
{
    return channel->operations->charges_atomics;
}

void dmg_channel_charge_atomic(dmg_channel *channel, dmg_address word)
{
    channel->counters.mapped_atomics++;
    if (channel->operations->charges_atomics) {
        use_mapped(channel, DMG_OPERATION_CAS, word, WORD_BYTES);
        wait_mapped(channel);
    }
}

void dmg_channel_count_lost_swaps(dmg_channel *channel, uint64_t count)
{
    channel->counters.lost_swaps += count;
}

/* ---- progress ---- */

void dmg_channel_notice_deaths(dmg_channel *channel)
{
    uint32_t deaths = atomic_load_explicit(&channel->client->deaths, memory_order_acquire);
    if (deaths == channel->deaths_seen) {
        return;
    }
    channel->deaths_seen = deaths;
    for (uint32_t node = 0; node < channel->node_count; node++) {
        if (!channel->is_failed[node] && atomic_load_explicit(&channel->nodes[node].dead, memory_order_acquire)) {
            channel->is_failed[node] = true;
            channel->operations->fail_node(channel->lower, (uint16_t)node);
        }
    }
}

void dmg_channel_ring(dmg_channel *channel)
{
    if (channel->unrung > 0) {
        channel->unrung = 0;
        channel->counters.rings++;
        channel->operations->ring(channel->lower);
        end_round(channel);
    }
}

void dmg_channel_poll(dmg_channel *channel)
{
    dmg_channel_ring(channel);
    channel->operations->poll(channel->lower);
    dmg_channel_notice_deaths(channel);
}

/* Something is held back until a time, and nothing else: wait for that moment. False when there is none such. */
static bool wait_until_due(dmg_channel *channel)
{
    uint64_t due_in_ns = channel->operations->held_ns(channel->lower);
    if (due_in_ns == UINT64_MAX) {
        return false;
    }
    if (due_in_ns > 2 * HELD_SPIN_NS) {
        channel->operations->sleep(channel->lower, due_in_ns - HELD_SPIN_NS);
    }
    return true;
}

static bool looks_are_slow(const dmg_channel *channel)
{
    uint32_t flags = channel->client->capabilities.flags;
    return (flags & DMG_CAPABILITY_LOAD_STORE) && !(flags & DMG_CAPABILITY_COHERENT);
}

static void wait_for(dmg_channel *channel, const dmg_completion *completion)
{
    uint64_t start_ns = dmg_now_ns();
    channel->counters.waits++;
    const dmg_backoff_plan *plan = looks_are_slow(channel) ? &dmg_backoff_slow_answer : &dmg_backoff_answer;
    dmg_backoff backoff = {0};
    for (;;) {
        dmg_channel_poll(channel);
        if (completion->pending == 0) {
            break;
        }
        if (channel->operations->held_ns && wait_until_due(channel)) {
            continue;
        }
        uint64_t sleep_ns = dmg_backoff_next(&backoff, plan);
        if (sleep_ns > 0) {
            channel->operations->sleep(channel->lower, sleep_ns);
        }
    }
    uint64_t waited_ns = dmg_now_ns() - start_ns;
    channel->counters.wait_ns += waited_ns;
    channel->counters.message_wait_ns += completion->kind == DMG_OPERATION_MESSAGE ? waited_ns : 0;
}

static dmg_status explain(const dmg_channel *channel, const dmg_completion *completion)
{
    unsigned int node = completion->failed_node;
    if (completion->status == DMG_ERR_ARGUMENT && channel->refused == completion) {
        return dmg_error(DMG_ERR_ARGUMENT, "%s", channel->refusal);
    }
    if (completion->status == DMG_ERR_PEER &&
        dmg_client_node_status(channel->client, completion->failed_node) == DMG_ERR_PEER) {
        return DMG_ERR_PEER;
    }
    const char *address = node < channel->node_count ? channel->client->addresses[node] : "not in the pool";
    if (completion->status == DMG_ERR_LIMIT) {
        return dmg_error(DMG_ERR_LIMIT, "the answer of memory node %u (%s) is longer than the room for it", node,
                         address);
    }
    if (completion->status == DMG_ERR_MEMORY) {
        return dmg_error(DMG_ERR_MEMORY, "an operation on memory node %u (%s): out of memory", node, address);
    }
    return dmg_error(completion->status, "an operation on memory node %u (%s) ended with %s", node, address,
                     dmg_status_name(completion->status));
}

dmg_status dmg_wait(dmg_channel *channel, dmg_completion *completion)
{
    dmg_channel_ring(channel);
    end_round(channel);
    if (completion->pending != 0) {
        wait_for(channel, completion);
    }
    return completion->status == DMG_OK ? DMG_OK : explain(channel, completion);
}

/* ---- conveniences that wait ---- */

dmg_status dmg_read(dmg_channel *channel, dmg_address from, void *to, uint64_t bytes)
{
    dmg_completion completion = {0};
    dmg_post_read(channel, from, to, bytes, &completion);
    return dmg_wait(channel, &completion);
}

dmg_status dmg_write(dmg_channel *channel, const void *from, dmg_address to, uint64_t bytes)
{
    dmg_completion completion = {0};
    dmg_post_write(channel, from, to, bytes, &completion);
    return dmg_wait(channel, &completion);
}

dmg_status dmg_cas64(dmg_channel *channel, dmg_address word, uint64_t expected, uint64_t desired, uint64_t *observed)
{
    dmg_completion completion = {0};
    dmg_post_cas64(channel, word, expected, desired, observed, &completion);
    return dmg_wait(channel, &completion);
}

dmg_status dmg_faa64(dmg_channel *channel, dmg_address word, uint64_t addend, uint64_t *before)
{
    dmg_completion completion = {0};
    dmg_post_faa64(channel, word, addend, before, &completion);
    return dmg_wait(channel, &completion);
}

dmg_status dmg_message(dmg_channel *channel, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                       dmg_call *call)
{
    /* Room of our own, so that a handler's error sentence arrives whole however little the caller expects. */
    _Alignas(WORD_BYTES) char reply[DMG_MESSAGE_BYTES_MAX];
    dmg_call own = {.reply = reply, .reply_capacity = sizeof reply};
    dmg_completion completion = {0};
    dmg_post_call(channel, node, type, payload, bytes, &own, &completion);
    dmg_status status = dmg_wait(channel, &completion);
    if (status != DMG_OK) {
        return status;
    }
    completion.status = dmg_call_answer(call, own.reply_status, reply, own.reply_bytes);
    if (completion.status != DMG_OK) {
        completion.failed_node = node;
        return explain(channel, &completion);
    }
    if (own.reply_status != DMG_OK) {
        return dmg_error(own.reply_status, "memory node %u: %.*s", (unsigned int)node, (int)own.reply_bytes, reply);
    }
    return DMG_OK;
}
