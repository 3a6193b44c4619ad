/*
 * The compute-node side: mapped segments, and a channel's messages to each memory node. What is done to the segments is
 * in one_sided.c.
 */
#include "core/base/checked.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/cxl_shm/channel.h"
#include "transport/cxl_shm/devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CREDIT_SLEEP_NS   UINT64_C(1000000)
#define BYTES_DRAINED_MAX 64
#define BYE_NS            UINT64_C(500000000)
#define BYE_POLL_MS       20
#define SECOND_NS         UINT64_C(1000000000)

static const char died[] = "died: its connection closed";

/* ---- client ---- */

/* The segment as its channels see it. */
static dmg_status take_segment(dmg_shm_client *client, uint32_t node, uint64_t bytes)
{
    dmg_shm_view *view = &client->views[node];
    dmg_status status = dmg_shm_view_open(&client->coherence, client->mappings[node].pointer, bytes, view);
    if (status != DMG_OK) {
        return status;
    }
    client->nodes[node].pointer = dmg_shm_view_pointer(view);
    client->nodes[node].segment_bytes = bytes;
    if (client->coherence.is_software) {
        client->blocks[node] = calloc(bytes / DMG_SHM_BLOCK_BYTES + 1, sizeof *client->blocks[node]);
        if (!client->blocks[node]) {
            return dmg_error(DMG_ERR_MEMORY, "no memory for the block states of a segment of %" PRIu64 " bytes", bytes);
        }
    }
    return DMG_OK;
}

/* Another host's: this one opens the memory by a path of its own, and looks whether it is the same. */
static dmg_status open_memory(dmg_shm_client *client, uint32_t node, const dmg_shm_welcome *welcome)
{
    dmg_shm_mapping *mapping = &client->mappings[node];
    const char *path = client->paths[node][0] ? client->paths[node] : welcome->sentence;
    void *pointer;
    if (welcome->mapped_bytes < welcome->bytes || welcome->mapped_bytes - welcome->bytes < DMG_SHM_IDENTITY_BYTES) {
        return dmg_error(DMG_ERR_PROTOCOL, "%s sent a welcome that makes no sense", client->addresses[node]);
    }
    dmg_status status = dmg_shm_segment_open(path, welcome->mapped_bytes, welcome->alignment, &pointer);
    if (status != DMG_OK) {
        return status;
    }
    *mapping = (dmg_shm_mapping){.pointer = pointer, .bytes = welcome->mapped_bytes, .is_network = true};
    uint64_t identity;
    dmg_counters uncounted = {0};
    dmg_shm_agent agent;
    const dmg_shm_view behind = {.memory = mapping->pointer + welcome->bytes, .bytes = DMG_SHM_IDENTITY_BYTES};
    const dmg_shm_coherence hardware = {.is_software = client->coherence.is_software, .left_out = DMG_SHM_SITE_NONE};
    dmg_shm_agent_open(&hardware, &uncounted, 0, &agent);
    if (hardware.is_software) {
        dmg_shm_read(&agent, &behind, 0, &identity, sizeof identity, DMG_SHM_NODE_READ);
    } else {
        memcpy(&identity, behind.memory, sizeof identity);
    }
    if (identity != welcome->identity) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "%s is not the memory of %s: name the right one by the transport's parameter path=", path,
                         client->addresses[node]);
    }
    return DMG_OK;
}

static dmg_status map_node(dmg_shm_client *client, uint32_t node)
{
    dmg_shm_hello hello = {.magic = DMG_SHM_MAGIC, .client = dmg_client_id(client->client), .want = DMG_SHM_SEGMENT};
    dmg_shm_welcome welcome;
    dmg_shm_line line;
    int descriptor;
    dmg_status status = dmg_shm_greet(client->addresses[node], &client->greeter, &hello, &welcome, &line, &descriptor);
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "memory node %u", node);
    }
    if (welcome.node != node) {
        status = dmg_error(DMG_ERR_ARGUMENT, "%s is memory node %u of its pool, and was given as node %u",
                           client->addresses[node], welcome.node, node);
    } else if (descriptor < 0) {
        status = open_memory(client, node, &welcome);
    } else {
        void *pointer;
        status = dmg_shm_map(descriptor, welcome.bytes, welcome.alignment, &pointer);
        if (status == DMG_OK) {
            client->mappings[node] = (dmg_shm_mapping){.pointer = pointer, .bytes = welcome.bytes};
        }
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    dmg_shm_line_close(&line);
    return status == DMG_OK ? take_segment(client, node, welcome.bytes)
                            : dmg_error_prefix(status, "memory node %u", node);
}

static dmg_status make_client(dmg_client *client, const dmg_client_options *options, dmg_node *nodes,
                              dmg_shm_client **made)
{
    dmg_shm_client *opened = *made = calloc(1, sizeof *opened);
    if (!opened) {
        return dmg_error(DMG_ERR_MEMORY, "opening a pool: out of memory");
    }
    opened->addresses = calloc(options->address_count, sizeof *opened->addresses);
    opened->views = calloc(options->address_count, sizeof *opened->views);
    opened->blocks = calloc(options->address_count, sizeof *opened->blocks);
    opened->mappings = calloc(options->address_count, sizeof *opened->mappings);
    opened->paths = calloc(options->address_count, sizeof *opened->paths);
    opened->base.operations = &dmg_shm_client_operations;
    opened->client = client;
    opened->nodes = nodes;
    opened->greeter.timeout_ns = options->peer_timeout_ns;
    memcpy(opened->greeter.token, options->token, sizeof opened->greeter.token);
    if (!opened->addresses || !opened->views || !opened->blocks || !opened->mappings || !opened->paths) {
        return dmg_error(DMG_ERR_MEMORY, "opening a pool: out of memory");
    }
    opened->node_count = options->address_count;
    return DMG_OK;
}

static void say_capabilities(const dmg_shm_coherence *coherence, dmg_capabilities *capabilities)
{
    capabilities->flags = coherence->is_software ? DMG_SHM_CAPABILITIES_SOFTWARE : DMG_SHM_CAPABILITIES;
    capabilities->atomics = coherence->is_software ? DMG_ATOMICS_MEMORY_NODE : DMG_ATOMICS_CALLER_CPU;
    if (!coherence->is_software) {
        snprintf(capabilities->chosen, sizeof capabilities->chosen,
                 "data: loads and stores in mapped shared memory; atomics: this CPU; messages: rings in shared memory");
        return;
    }
    char devices[64] = "";
    if (dmg_shm_devices.describe) {
        dmg_shm_devices.describe(coherence, devices, sizeof devices);
    }
    snprintf(capabilities->chosen, sizeof capabilities->chosen,
             "data: loads and stores in mapped memory that hosts do not keep coherent: %s; lines written in part and "
             "atomics: the memory node, by message; messages: rings in that memory%s",
             dmg_shm_flush_instructions(), devices);
}

dmg_status dmg_shm_client_open(dmg_client *client, const dmg_client_options *options,
                               const dmg_transport_parameters *parameters, dmg_node *nodes,
                               dmg_capabilities *capabilities, dmg_backend_client **made)
{
    dmg_shm_client *opened;
    dmg_status status = make_client(client, options, nodes, &opened);
    if (status == DMG_OK) {
        status = dmg_shm_coherence_parse(parameters, &opened->coherence);
    }
    if (status == DMG_OK) {
        status = dmg_shm_protection_parse(parameters, &opened->greeter.wanted);
    }
    for (uint32_t node = 0; node < options->address_count && status == DMG_OK; node++) {
        dmg_shm_path_of(parameters, node, opened->paths[node]);
        snprintf(opened->addresses[node], sizeof opened->addresses[node], "%s", options->addresses[node]);
        status = map_node(opened, node);
    }
    if (status != DMG_OK) {
        dmg_shm_client_close(&opened->base);
        return status;
    }
    say_capabilities(&opened->coherence, capabilities);
    *made = &opened->base;
    return DMG_OK;
}

void dmg_shm_client_close(dmg_backend_client *base)
{
    dmg_shm_client *client = (dmg_shm_client *)base;
    for (uint32_t node = 0; client && node < client->node_count; node++) {
        dmg_shm_view_close(&client->views[node]);
        client->nodes[node].pointer = NULL;
        if (client->mappings[node].pointer) {
            munmap(client->mappings[node].pointer, client->mappings[node].bytes);
        }
        free((void *)client->blocks[node]);
    }
    if (client) {
        free((void *)client->blocks);
        free(client->mappings);
        free(client->paths);
        free(client->views);
        free(client->addresses);
        free(client);
    }
}

/* ---- channel ---- */

/* NULL when there is none where the memory node says. */
static dmg_shm_control *map_control(const dmg_shm_client *client, uint32_t node, const dmg_shm_welcome *welcome,
                                    int descriptor)
{
    const dmg_shm_mapping *mapping = &client->mappings[node];
    if (welcome->bytes != sizeof(dmg_shm_control)) {
        return NULL;
    }
    if (mapping->is_network) {
        bool is_inside = dmg_range_is_inside(welcome->offset, welcome->bytes, mapping->bytes) &&
                         welcome->offset >= client->nodes[node].segment_bytes &&
                         welcome->offset % DMG_SHM_CACHE_LINE_BYTES == 0;
        return is_inside ? (dmg_shm_control *)(void *)(mapping->pointer + welcome->offset) : NULL;
    }
    void *mapped = mmap(NULL, sizeof(dmg_shm_control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

static dmg_status connect_peer(dmg_shm_channel *channel, uint32_t node)
{
    dmg_shm_client *client = channel->client;
    dmg_shm_peer *connected = &channel->peers[node];
    dmg_shm_hello hello = {.magic = DMG_SHM_MAGIC, .client = dmg_client_id(client->client), .want = DMG_SHM_CHANNEL};
    dmg_shm_welcome welcome;
    int descriptor;
    dmg_status status =
        dmg_shm_greet(client->addresses[node], &client->greeter, &hello, &welcome, &connected->line, &descriptor);
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "memory node %u", node);
    }
    connected->control = map_control(client, node, &welcome, descriptor);
    if (descriptor >= 0) {
        close(descriptor);
    }
    if (!connected->control) {
        return dmg_error(DMG_ERR_PROTOCOL, "memory node %u (%s): its control area cannot be mapped", node,
                         client->addresses[node]);
    }
    connected->is_in_mapping = client->mappings[node].is_network;
    status = dmg_shm_side_open(&client->coherence, connected->control, false, &connected->side);
    if (status != DMG_OK) {
        return status;
    }
    for (uint32_t slot = 0; slot < DMG_SHM_SLOTS; slot++) {
        connected->free_slots[slot] = (uint8_t)(DMG_SHM_SLOTS - 1 - slot);
    }
    connected->free_count = DMG_SHM_SLOTS;
    return DMG_OK;
}

dmg_status dmg_shm_channel_open(dmg_backend_client *base, dmg_channel *channel, dmg_backend_channel **made)
{
    dmg_shm_client *client = (dmg_shm_client *)base;
    dmg_shm_channel *opened = calloc(1, sizeof *opened);
    dmg_shm_peer *peers = calloc(client->node_count, sizeof *peers);
    struct pollfd *watched = calloc(client->node_count, sizeof *watched);
    if (!opened || !peers || !watched) {
        free(opened);
        free(peers);
        free(watched);
        return dmg_error(DMG_ERR_MEMORY, "out of memory");
    }
    opened->base.operations = &dmg_shm_channel_operations;
    opened->client = client;
    opened->channel = channel;
    opened->nodes = client->nodes;
    opened->peers = peers;
    opened->watched = watched;
    dmg_shm_agent_open(&client->coherence, dmg_channel_mutable_counters(channel),
                       atomic_fetch_add(&client->channels, 1), &opened->agent);
    for (uint32_t node = 0; node < client->node_count; node++) {
        peers[node].line.socket = -1;
    }
    dmg_status status = DMG_OK;
    for (uint32_t node = 0; node < client->node_count && status == DMG_OK; node++) {
        status = dmg_client_node_status(client->client, (uint16_t)node);
        if (status == DMG_OK) {
            status = connect_peer(opened, node);
        }
    }
    if (status != DMG_OK) {
        dmg_shm_channel_close(&opened->base);
        return status;
    }
    *made = &opened->base;
    return DMG_OK;
}

/* End all that is in flight to a node. */
static void end_calls(dmg_shm_peer *ended, dmg_status status, uint16_t node)
{
    for (uint32_t slot = 0; slot < DMG_SHM_SLOTS; slot++) {
        if (ended->flying[slot].completion) {
            dmg_completion_end(ended->flying[slot].completion, status, node);
            ended->flying[slot].completion = NULL;
        }
    }
}

static void disconnect(dmg_shm_agent *agent, dmg_shm_peer *disconnected)
{
    dmg_shm_line_close(&disconnected->line);
    if (disconnected->control) {
        dmg_shm_side_close(agent, &disconnected->side);
        if (!disconnected->is_in_mapping) {
            munmap(disconnected->control, sizeof *disconnected->control);
        }
        disconnected->control = NULL;
    }
}

/*
 * A TCP connection that is closed with bytes in it that nobody has read is reset, and the memory node loses the "bye":
 * read until it has closed its side.
 */
static void await_end(int socket)
{
    uint64_t deadline_ns = dmg_now_ns() + BYE_NS;
    (void)shutdown(socket, SHUT_WR);
    while (dmg_now_ns() < deadline_ns) {
        char bytes[BYTES_DRAINED_MAX];
        struct pollfd watched = {.fd = socket, .events = POLLIN};
        if (poll(&watched, 1, BYE_POLL_MS) > 0 && recv(socket, bytes, sizeof bytes, MSG_DONTWAIT) <= 0) {
            return;
        }
    }
}

void dmg_shm_channel_close(dmg_backend_channel *base)
{
    dmg_shm_channel *channel = (dmg_shm_channel *)base;
    for (uint32_t node = 0; node < channel->client->node_count; node++) {
        dmg_shm_peer *closed = &channel->peers[node];
        end_calls(closed, DMG_ERR_CANCELLED, (uint16_t)node);
        if (closed->line.socket >= 0) {
            dmg_shm_line_send_byte(&closed->line, DMG_SHM_BYTE_BYE);
            if (dmg_shm_line_is_network(&closed->line)) {
                await_end(closed->line.socket);
            }
        }
        disconnect(&channel->agent, closed);
    }
    dmg_shm_agent_close(&channel->agent);
    free(channel->watched);
    free(channel->peers);
    free(channel);
}

void dmg_shm_fail_node(dmg_backend_channel *base, uint16_t node)
{
    dmg_shm_channel *channel = (dmg_shm_channel *)base;
    end_calls(&channel->peers[node], DMG_ERR_PEER, node);
    disconnect(&channel->agent, &channel->peers[node]);
}

/* ---- messages ---- */

/* Wait for a slot; false when the node died meanwhile. */
static bool await_credit(dmg_shm_channel *channel, uint16_t node)
{
    dmg_shm_ring(&channel->base);
    dmg_shm_poll(&channel->base);
    while (channel->peers[node].free_count == 0) {
        if (atomic_load_explicit(&channel->nodes[node].dead, memory_order_acquire)) {
            return false;
        }
        dmg_shm_channel_sleep(&channel->base, CREDIT_SLEEP_NS);
        dmg_shm_poll(&channel->base);
    }
    return true;
}

void dmg_shm_post_message(dmg_shm_channel *channel, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                          const dmg_shm_flying *flying)
{
    dmg_shm_peer *target = &channel->peers[node];
    if (target->line.socket < 0 || (target->free_count == 0 && !await_credit(channel, node))) {
        dmg_completion_end(flying->completion, DMG_ERR_PEER, node);
        return;
    }
    uint32_t slot = target->free_slots[--target->free_count];
    target->flying[slot] = *flying;
    const dmg_shm_message message = {.slot = slot, .type_or_status = type, .bytes = (uint32_t)bytes};
    dmg_shm_send(&channel->agent, &target->side, &message, payload);
    target->is_unrung = channel->is_unrung = true;
}

void dmg_shm_post_call(dmg_backend_channel *base, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                       dmg_call *call, dmg_completion *completion)
{
    dmg_shm_post_message((dmg_shm_channel *)base, node, type, payload, bytes,
                         &(dmg_shm_flying){.completion = completion, .call = call});
}

void dmg_shm_ring(dmg_backend_channel *base)
{
    dmg_shm_channel *channel = (dmg_shm_channel *)base;
    if (!channel->is_unrung) {
        return;
    }
    channel->is_unrung = false;
    for (uint32_t node = 0; node < channel->client->node_count; node++) {
        dmg_shm_peer *rung = &channel->peers[node];
        if (rung->is_unrung && rung->line.socket >= 0) {
            dmg_shm_wake(&channel->agent, &rung->side, &rung->line);
        }
        rung->is_unrung = false;
    }
}

/* What an operation that a message carried ends with. */
static dmg_status take_outcome(const dmg_shm_flying *ended, dmg_status status, const void *payload, size_t bytes)
{
    if (ended->call) {
        return dmg_call_answer(ended->call, status, payload, bytes);
    }
    if (status == DMG_OK && ended->observed) {
        if (bytes != sizeof *ended->observed) {
            return DMG_ERR_PROTOCOL;
        }
        memcpy(ended->observed, payload, sizeof *ended->observed);
    }
    return status;
}

/* Take one answer; false when it makes no sense. */
static bool take_answer(dmg_shm_channel *channel, uint16_t node, const dmg_shm_message *answer)
{
    dmg_shm_peer *from = &channel->peers[node];
    if (answer->slot >= DMG_SHM_SLOTS || !from->flying[answer->slot].completion ||
        answer->type_or_status >= DMG_STATUS_COUNT || answer->bytes > DMG_MESSAGE_BYTES_MAX) {
        return false;
    }
    dmg_shm_flying ended = from->flying[answer->slot];
    dmg_shm_take(&from->side);
    from->flying[answer->slot].completion = NULL;
    const void *payload = dmg_shm_payload(&channel->agent, &from->side, answer, channel->payload);
    dmg_status outcome = take_outcome(&ended, (dmg_status)answer->type_or_status, payload, answer->bytes);
    if (!ended.call && outcome == DMG_ERR_PEER) {
        dmg_client_refused(channel->client->client, node, payload, answer->bytes);
    }
    from->free_slots[from->free_count++] = (uint8_t)answer->slot;
    dmg_completion_end(ended.completion, outcome, node);
    return true;
}

void dmg_shm_poll(dmg_backend_channel *base)
{
    dmg_shm_channel *channel = (dmg_shm_channel *)base;
    for (uint32_t node = 0; node < channel->client->node_count; node++) {
        dmg_shm_peer *from = &channel->peers[node];
        dmg_shm_message answer;
        while (from->free_count < DMG_SHM_SLOTS && from->line.socket >= 0 &&
               dmg_shm_peek(&channel->agent, &from->side, &answer)) {
            if (!take_answer(channel, (uint16_t)node, &answer)) {
                dmg_client_mark_dead(channel->client->client, (uint16_t)node, "sent an answer that makes no sense");
                break;
            }
        }
    }
}

/* ---- sleeping ---- */

static bool set_asleep(dmg_shm_channel *channel)
{
    bool has_answers = false;
    for (uint32_t node = 0; node < channel->client->node_count; node++) {
        dmg_shm_peer *from = &channel->peers[node];
        channel->watched[node] = (struct pollfd){.fd = from->line.socket, .events = POLLIN};
        if (from->line.socket >= 0) {
            dmg_shm_message answer;
            dmg_shm_set_asleep(&channel->agent, &from->side, true);
            has_answers |= dmg_shm_peek(&channel->agent, &from->side, &answer);
        }
    }
    return !has_answers;
}

/* The memory node sends wake bytes here, and why it closes when that is not its own end; the end of the stream says
 * that it is gone. */
static void drain(dmg_shm_channel *channel, uint16_t node)
{
    for (int i = 0; i < BYTES_DRAINED_MAX; i++) {
        char packet[DMG_SHM_FAREWELL_BYTES];
        ssize_t received = dmg_shm_line_receive(&channel->peers[node].line, packet, sizeof packet, NULL);
        if (received < 0) {
            return;
        }
        if (received > 0 && received <= (ssize_t)sizeof packet && packet[0] == DMG_SHM_BYTE_GIVEN_UP) {
            dmg_client_refused(channel->client->client, node, packet + 1, (size_t)received - 1);
            return;
        }
        if (received == 0) {
            dmg_client_mark_dead(channel->client->client, node, died);
            return;
        }
    }
}

void dmg_shm_channel_sleep(dmg_backend_channel *base, uint64_t timeout_ns)
{
    dmg_shm_channel *channel = (dmg_shm_channel *)base;
    uint32_t node_count = channel->client->node_count;
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / SECOND_NS), .tv_nsec = (long)(timeout_ns % SECOND_NS)};
    if (!set_asleep(channel)) {
        timeout = (struct timespec){0};
    }
    int ready = ppoll(channel->watched, node_count, &timeout, NULL);
    for (uint32_t node = 0; node < node_count; node++) {
        if (channel->peers[node].line.socket < 0) {
            continue;
        }
        dmg_shm_set_asleep(&channel->agent, &channel->peers[node].side, false);
        if (ready > 0 && channel->watched[node].revents != 0) {
            drain(channel, (uint16_t)node);
        }
    }
}
