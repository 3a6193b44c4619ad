/*
 * The compute-node side: mapped segments, and a channel's calls to each memory node.
 *
 * Reads, writes and atomics are done by the calling thread and have ended when the post returns.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/cxl_shm/copy.h"
#include "transport/cxl_shm/shm.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CREDIT_SLEEP_NS   UINT64_C(1000000)
#define BYTES_DRAINED_MAX 64
#define SECOND_NS         UINT64_C(1000000000)

static const char died[] = "died: its connection closed";

/* ---- client ---- */

static dmg_status map_node(dmg_shm_client *client, uint32_t node)
{
    dmg_shm_hello hello = {.magic = DMG_SHM_MAGIC, .client = dmg_client_id(client->client), .want = DMG_SHM_SEGMENT};
    memcpy(hello.token, client->token, sizeof hello.token);
    dmg_shm_welcome welcome;
    int connection;
    int descriptor;
    dmg_status status =
        dmg_shm_greet(client->addresses[node], &hello, client->timeout_ns, &welcome, &connection, &descriptor);
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "memory node %u", node);
    }
    if (welcome.node != node) {
        status = dmg_error(DMG_ERR_ARGUMENT, "%s is memory node %u of its pool, and was given as node %u",
                           client->addresses[node], welcome.node, node);
    } else {
        void *pointer;
        status = dmg_shm_map(descriptor, welcome.bytes, welcome.alignment, &pointer);
        if (status == DMG_OK) {
            client->nodes[node].pointer = pointer;
            client->nodes[node].segment_bytes = welcome.bytes;
        }
    }
    close(descriptor);
    close(connection);
    return status;
}

dmg_status dmg_shm_client_open(dmg_client *client, const dmg_client_options *options,
                               const dmg_transport_parameters *parameters, dmg_node *nodes,
                               dmg_capabilities *capabilities, void **implementation)
{
    (void)parameters; /* it has none */
    dmg_shm_client *opened = calloc(1, sizeof *opened);
    if (!opened || !(opened->addresses = calloc(options->address_count, sizeof *opened->addresses))) {
        free(opened);
        return dmg_error(DMG_ERR_MEMORY, "opening a pool: out of memory");
    }
    opened->client = client;
    opened->nodes = nodes;
    opened->node_count = options->address_count;
    opened->timeout_ns = options->peer_timeout_ns;
    memcpy(opened->token, options->token, sizeof opened->token);
    dmg_status status = DMG_OK;
    for (uint32_t node = 0; node < options->address_count && status == DMG_OK; node++) {
        snprintf(opened->addresses[node], sizeof opened->addresses[node], "%s", options->addresses[node]);
        status = map_node(opened, node);
    }
    if (status != DMG_OK) {
        dmg_shm_client_close(opened);
        return status;
    }
    capabilities->flags = DMG_SHM_CAPABILITIES;
    capabilities->atomics = DMG_ATOMICS_CALLER_CPU;
    snprintf(capabilities->chosen, sizeof capabilities->chosen,
             "data: loads and stores in mapped shared memory; atomics: this CPU; messages: rings in shared memory");
    *implementation = opened;
    return DMG_OK;
}

void dmg_shm_client_close(void *implementation)
{
    dmg_shm_client *client = implementation;
    for (uint32_t node = 0; node < client->node_count; node++) {
        if (client->nodes[node].pointer) {
            munmap(client->nodes[node].pointer, client->nodes[node].segment_bytes);
            client->nodes[node].pointer = NULL;
        }
    }
    free(client->addresses);
    free(client);
}

/* ---- channel ---- */

typedef struct flying_call {
    dmg_call *call; /* NULL: the slot is free */
    dmg_completion *completion;
} flying_call;

/* A channel's side of one memory node. */
typedef struct peer {
    dmg_shm_control *control;
    int socket; /* -1: the node is dead */
    bool is_unrung;
    uint32_t published; /* requests */
    uint32_t taken;     /* answers */
    uint32_t free_count;
    uint8_t free_slots[DMG_SHM_SLOTS]; /* a stack: the warmest slot is used again first */
    flying_call calls[DMG_SHM_SLOTS];
} peer;

typedef struct shm_channel {
    dmg_shm_client *client;
    dmg_channel *channel;
    dmg_node *nodes;
    bool is_unrung;
    peer *peers;
    struct pollfd *watched;
} shm_channel;

static dmg_status connect_peer(shm_channel *channel, uint32_t node)
{
    dmg_shm_client *client = channel->client;
    peer *connected = &channel->peers[node];
    dmg_shm_hello hello = {.magic = DMG_SHM_MAGIC, .client = dmg_client_id(client->client), .want = DMG_SHM_CHANNEL};
    memcpy(hello.token, client->token, sizeof hello.token);
    dmg_shm_welcome welcome;
    int descriptor;
    dmg_status status =
        dmg_shm_greet(client->addresses[node], &hello, client->timeout_ns, &welcome, &connected->socket, &descriptor);
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "memory node %u", node);
    }
    void *mapped = MAP_FAILED;
    if (welcome.bytes == sizeof *connected->control) {
        mapped = mmap(NULL, sizeof *connected->control, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    }
    close(descriptor);
    if (mapped == MAP_FAILED) {
        return dmg_error(DMG_ERR_PROTOCOL, "memory node %u (%s): its control area cannot be mapped", node,
                         client->addresses[node]);
    }
    connected->control = mapped;
    for (uint32_t slot = 0; slot < DMG_SHM_SLOTS; slot++) {
        connected->free_slots[slot] = (uint8_t)(DMG_SHM_SLOTS - 1 - slot);
    }
    connected->free_count = DMG_SHM_SLOTS;
    return DMG_OK;
}

dmg_status dmg_shm_channel_open(void *client_implementation, dmg_channel *channel, void **implementation)
{
    dmg_shm_client *client = client_implementation;
    shm_channel *opened = calloc(1, sizeof *opened);
    peer *peers = calloc(client->node_count, sizeof *peers);
    struct pollfd *watched = calloc(client->node_count, sizeof *watched);
    if (!opened || !peers || !watched) {
        free(opened);
        free(peers);
        free(watched);
        return dmg_error(DMG_ERR_MEMORY, "out of memory");
    }
    *opened =
        (shm_channel){.client = client, .channel = channel, .nodes = client->nodes, .peers = peers, .watched = watched};
    for (uint32_t node = 0; node < client->node_count; node++) {
        peers[node].socket = -1;
    }
    dmg_status status = DMG_OK;
    for (uint32_t node = 0; node < client->node_count && status == DMG_OK; node++) {
        status = dmg_client_node_status(client->client, (uint16_t)node);
        if (status == DMG_OK) {
            status = connect_peer(opened, node);
        }
    }
    if (status != DMG_OK) {
        dmg_shm_channel_close(opened);
        return status;
    }
    *implementation = opened;
    return DMG_OK;
}

/* End all that is in flight to a node. */
static void end_calls(peer *ended, dmg_status status, uint16_t node)
{
    for (uint32_t slot = 0; slot < DMG_SHM_SLOTS; slot++) {
        if (ended->calls[slot].call) {
            dmg_completion_end(ended->calls[slot].completion, status, node);
            ended->calls[slot].call = NULL;
        }
    }
}

static void disconnect(peer *disconnected)
{
    if (disconnected->socket >= 0) {
        close(disconnected->socket);
        disconnected->socket = -1;
    }
    if (disconnected->control) {
        munmap(disconnected->control, sizeof *disconnected->control);
        disconnected->control = NULL;
    }
}

void dmg_shm_channel_close(void *implementation)
{
    shm_channel *channel = implementation;
    for (uint32_t node = 0; node < channel->client->node_count; node++) {
        peer *closed = &channel->peers[node];
        end_calls(closed, DMG_ERR_CANCELLED, (uint16_t)node);
        if (closed->socket >= 0) {
            static const char bye = DMG_SHM_BYTE_BYE;
            (void)!send(closed->socket, &bye, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        disconnect(closed);
    }
    free(channel->watched);
    free(channel->peers);
    free(channel);
}

void dmg_shm_fail_node(void *implementation, uint16_t node)
{
    shm_channel *channel = implementation;
    end_calls(&channel->peers[node], DMG_ERR_PEER, node);
    disconnect(&channel->peers[node]);
}

/* ---- one-sided ---- */

void dmg_shm_post_read(void *implementation, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                       dmg_completion *completion)
{
    shm_channel *channel = implementation;
    dmg_shm_copy_from_pool(to, dmg_shm_at(channel->nodes, node, offset), bytes);
    completion->pending--;
}

void dmg_shm_post_write(void *implementation, const void *from, uint16_t node, uint64_t offset, uint64_t bytes,
                        dmg_completion *completion)
{
    shm_channel *channel = implementation;
    dmg_shm_copy_to_pool(dmg_shm_at(channel->nodes, node, offset), from, bytes);
    completion->pending--;
}

void dmg_shm_post_cas64(void *implementation, uint16_t node, uint64_t offset, uint64_t expected, uint64_t desired,
                        uint64_t *observed, dmg_completion *completion)
{
    shm_channel *channel = implementation;
    _Atomic uint64_t *word = dmg_shm_at(channel->nodes, node, offset);
    atomic_compare_exchange_strong(word, &expected, desired);
    *observed = expected;
    completion->pending--;
}

void dmg_shm_post_faa64(void *implementation, uint16_t node, uint64_t offset, uint64_t addend, uint64_t *before,
                        dmg_completion *completion)
{
    shm_channel *channel = implementation;
    _Atomic uint64_t *word = dmg_shm_at(channel->nodes, node, offset);
    *before = atomic_fetch_add(word, addend);
    completion->pending--;
}

/* ---- messages ---- */

/* Wait for a slot; false when the node died meanwhile. */
static bool await_credit(shm_channel *channel, uint16_t node)
{
    dmg_shm_ring(channel);
    dmg_shm_poll(channel);
    while (channel->peers[node].free_count == 0) {
        if (atomic_load_explicit(&channel->nodes[node].dead, memory_order_acquire)) {
            return false;
        }
        dmg_shm_channel_sleep(channel, CREDIT_SLEEP_NS);
        dmg_shm_poll(channel);
    }
    return true;
}

void dmg_shm_post_call(void *implementation, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                       dmg_call *call, dmg_completion *completion)
{
    shm_channel *channel = implementation;
    peer *target = &channel->peers[node];
    if (target->socket < 0 || (target->free_count == 0 && !await_credit(channel, node))) {
        dmg_completion_end(completion, DMG_ERR_PEER, node);
        return;
    }
    uint32_t slot = target->free_slots[--target->free_count];
    dmg_shm_slot *request = &target->control->slots[slot];
    atomic_store_explicit(&request->type_or_status, type, memory_order_relaxed);
    atomic_store_explicit(&request->bytes, (uint32_t)bytes, memory_order_relaxed);
    if (bytes > 0) {
        memcpy(request->payload, payload, bytes);
    }
    target->calls[slot] = (flying_call){.call = call, .completion = completion};
    dmg_shm_publish(&target->control->requests, &target->published, slot);
    target->is_unrung = channel->is_unrung = true;
}

void dmg_shm_ring(void *implementation)
{
    shm_channel *channel = implementation;
    if (!channel->is_unrung) {
        return;
    }
    channel->is_unrung = false;
    for (uint32_t node = 0; node < channel->client->node_count; node++) {
        peer *rung = &channel->peers[node];
        if (rung->is_unrung && rung->socket >= 0) {
            dmg_shm_wake(&rung->control->server_is_asleep, rung->socket);
        }
        rung->is_unrung = false;
    }
}

/* Take one answer; false when it makes no sense. */
static bool take_answer(peer *from, uint16_t node)
{
    uint32_t slot =
        atomic_load_explicit(&from->control->answers.entries[from->taken % DMG_SHM_SLOTS], memory_order_relaxed);
    if (slot >= DMG_SHM_SLOTS || !from->calls[slot].call) {
        return false;
    }
    const dmg_shm_slot *answer = &from->control->slots[slot];
    uint32_t status = atomic_load_explicit(&answer->type_or_status, memory_order_relaxed);
    uint32_t bytes = atomic_load_explicit(&answer->bytes, memory_order_relaxed);
    if (status >= DMG_STATUS_COUNT || bytes > DMG_MESSAGE_BYTES_MAX) {
        return false;
    }
    flying_call ended = from->calls[slot];
    from->taken++;
    from->calls[slot].call = NULL;
    dmg_status outcome = dmg_call_answer(ended.call, (dmg_status)status, answer->payload, bytes);
    from->free_slots[from->free_count++] = (uint8_t)slot;
    dmg_completion_end(ended.completion, outcome, node);
    return true;
}

void dmg_shm_poll(void *implementation)
{
    shm_channel *channel = implementation;
    for (uint32_t node = 0; node < channel->client->node_count; node++) {
        peer *from = &channel->peers[node];
        if (from->free_count == DMG_SHM_SLOTS || from->socket < 0) {
            continue;
        }
        uint32_t published = atomic_load_explicit(&from->control->answers.published, memory_order_acquire);
        while (from->taken != published) {
            if (!take_answer(from, (uint16_t)node)) {
                dmg_client_mark_dead(channel->client->client, (uint16_t)node, "sent an answer that makes no sense");
                break;
            }
        }
    }
}

/* ---- sleeping ---- */

static bool set_asleep(shm_channel *channel)
{
    bool has_answers = false;
    for (uint32_t node = 0; node < channel->client->node_count; node++) {
        peer *from = &channel->peers[node];
        channel->watched[node] = (struct pollfd){.fd = from->socket, .events = POLLIN};
        if (from->socket >= 0) {
            atomic_store_explicit(&from->control->client_is_asleep, 1, memory_order_seq_cst);
            has_answers |= atomic_load_explicit(&from->control->answers.published, memory_order_seq_cst) != from->taken;
        }
    }
    return !has_answers;
}

/* The memory node sends only wake bytes here; the end of the stream says that it is gone. */
static void drain(shm_channel *channel, uint16_t node)
{
    for (int i = 0; i < BYTES_DRAINED_MAX; i++) {
        char byte;
        ssize_t received = recv(channel->peers[node].socket, &byte, 1, MSG_DONTWAIT);
        if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
            return;
        }
        if (received <= 0) {
            dmg_client_mark_dead(channel->client->client, node, died);
            return;
        }
    }
}

void dmg_shm_channel_sleep(void *implementation, uint64_t timeout_ns)
{
    shm_channel *channel = implementation;
    uint32_t node_count = channel->client->node_count;
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / SECOND_NS), .tv_nsec = (long)(timeout_ns % SECOND_NS)};
    if (!set_asleep(channel)) {
        timeout = (struct timespec){0};
    }
    int ready = ppoll(channel->watched, node_count, &timeout, NULL);
    for (uint32_t node = 0; node < node_count; node++) {
        if (channel->peers[node].socket < 0) {
            continue;
        }
        atomic_store_explicit(&channel->peers[node].control->client_is_asleep, 0, memory_order_relaxed);
        if (ready > 0 && channel->watched[node].revents != 0) {
            drain(channel, (uint16_t)node);
        }
    }
}
