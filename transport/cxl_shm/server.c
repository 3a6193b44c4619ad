/*
 * The memory-node side: one control area for each channel, and the life of it all.
 *
 * Nothing that a client wrote is believed: numbers are read from shared memory once, checked, and a payload is copied
 * before the handler sees it. A channel that holds nonsense is broken, and closed like one whose process died. Nothing
 * here waits for a client.
 */
#include "transport/cxl_shm/server.h"
#include "core/base/error.h"
#include "core/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#define REQUESTS_MAX           16  /* of one channel a round, so that the others have their turn */
#define SOCKET_ROUNDS          256 /* rounds of progress between two looks at the sockets when messages never pause */
#define MILLISECOND_NS         UINT64_C(1000000)
#define TOKEN_SLOT_BITS        6
#define TOKEN_USE_BITS         26
#define TOKEN_CHANNEL_BITS     12
#define TOKEN_CHANNEL_SHIFT    (TOKEN_SLOT_BITS + TOKEN_USE_BITS)
#define TOKEN_GENERATION_SHIFT (TOKEN_CHANNEL_SHIFT + TOKEN_CHANNEL_BITS)
#define AGENT_OF_NODE          1000000 /* its random numbers are others than those of channels */
#define LOW_BITS(count)        ((UINT64_C(1) << (count)) - 1)

_Static_assert(1 << TOKEN_SLOT_BITS == DMG_SHM_SLOTS, "a reply token holds any slot");
_Static_assert(1 << TOKEN_CHANNEL_BITS == DMG_SHM_CHANNELS_MAX, "a reply token holds any channel");
_Static_assert(DMG_SHM_SLOTS == 64, "the busy slots of a channel are one word");

/* ---- messages ---- */

static void break_channel(dmg_shm_server *server, dmg_shm_server_channel *channel, const char *why)
{
    if (!channel->is_broken) {
        channel->is_broken = true;
        server->broken_count++;
        dmg_log(DMG_LOG_WARNING, "channel_broken",
                "node=%u client=%016" PRIx64 " why=\"%s\" remedy=\"end that compute node: its memory is damaged\"",
                (unsigned int)server->node, channel->client, why);
    }
}

static uint64_t make_reply_token(const dmg_shm_server *server, const dmg_shm_server_channel *channel, uint32_t slot)
{
    uint64_t place = (uint64_t)(channel - server->channels);
    return (channel->generation << TOKEN_GENERATION_SHIFT) | (place << TOKEN_CHANNEL_SHIFT) |
           ((channel->slot_uses[slot] & LOW_BITS(TOKEN_USE_BITS)) << TOKEN_SLOT_BITS) | slot;
}

/* Take one request; false when it is nonsense. */
static bool take_request(dmg_shm_server *server, dmg_shm_server_channel *channel, const dmg_shm_message *message)
{
    if (message->slot >= DMG_SHM_SLOTS || (channel->busy_slots >> message->slot & 1) ||
        message->bytes > DMG_MESSAGE_BYTES_MAX) {
        return false;
    }
    const void *payload = dmg_shm_payload(&server->agent, &channel->side, message, server->payload);
    if (payload != server->payload && message->bytes > 0) {
        memcpy(server->payload, payload, message->bytes);
    }
    dmg_shm_take(&channel->side);
    channel->busy_slots |= UINT64_C(1) << message->slot;
    dmg_request request = {.client = channel->client,
                           .type = message->type_or_status,
                           .payload = server->payload,
                           .bytes = message->bytes,
                           .reply_token = make_reply_token(server, channel, message->slot)};
    if (!dmg_shm_server_serve_one_sided(server, &request)) {
        dmg_server_deliver(server->server, &request);
    }
    return true;
}

static uint32_t take_requests(dmg_shm_server *server, dmg_shm_server_channel *channel)
{
    uint32_t count = 0;
    dmg_shm_message message;
    while (count < REQUESTS_MAX && !channel->is_broken && dmg_shm_peek(&server->agent, &channel->side, &message)) {
        count++;
        if (!take_request(server, channel, &message)) {
            break_channel(server, channel, "its requests make no sense");
        }
    }
    return count;
}

uint32_t dmg_shm_server_progress(dmg_backend_server *base)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    uint32_t handled = 0;
    for (uint32_t i = 0; i < server->channel_count; i++) {
        if (server->channels[i].state == DMG_SHM_CHANNEL_OPEN) {
            handled += take_requests(server, &server->channels[i]);
        }
    }
    for (uint32_t i = 0; i < server->channel_count && server->broken_count > 0; i++) {
        if (server->channels[i].is_broken) {
            dmg_shm_server_close_channel(server, &server->channels[i], DMG_ERR_PEER);
        }
    }
    if (++server->rounds >= SOCKET_ROUNDS) {
        handled += dmg_shm_server_watch_sockets(server, 0);
    }
    return handled;
}

void dmg_shm_server_reply(dmg_backend_server *base, uint64_t reply_token, dmg_status status, const void *payload,
                          size_t bytes)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    uint32_t slot = (uint32_t)(reply_token & LOW_BITS(TOKEN_SLOT_BITS));
    uint64_t use = reply_token >> TOKEN_SLOT_BITS & LOW_BITS(TOKEN_USE_BITS);
    uint64_t place = reply_token >> TOKEN_CHANNEL_SHIFT & LOW_BITS(TOKEN_CHANNEL_BITS);
    uint64_t generation = reply_token >> TOKEN_GENERATION_SHIFT;
    if (place >= server->channel_count) {
        return;
    }
    dmg_shm_server_channel *channel = &server->channels[place];
    if (channel->state != DMG_SHM_CHANNEL_OPEN ||
        (channel->generation & LOW_BITS(64 - TOKEN_GENERATION_SHIFT)) != generation ||
        !(channel->busy_slots >> slot & 1) || (channel->slot_uses[slot] & LOW_BITS(TOKEN_USE_BITS)) != use) {
        return; /* whoever asked is gone */
    }
    channel->slot_uses[slot]++;
    channel->busy_slots &= ~(UINT64_C(1) << slot);
    const dmg_shm_message answer = {.slot = slot, .type_or_status = (uint32_t)status, .bytes = (uint32_t)bytes};
    dmg_shm_send(&server->agent, &channel->side, &answer, payload);
    dmg_shm_wake(&server->agent, &channel->side, &channel->line);
}

/* ---- sleeping ---- */

static void set_asleep(dmg_shm_server *server, bool is_asleep)
{
    for (uint32_t i = 0; i < server->channel_count; i++) {
        if (server->channels[i].state == DMG_SHM_CHANNEL_OPEN) {
            dmg_shm_set_asleep(&server->agent, &server->channels[i].side, is_asleep);
        }
    }
}

static bool has_requests(dmg_shm_server *server)
{
    for (uint32_t i = 0; i < server->channel_count; i++) {
        dmg_shm_message message;
        if (server->channels[i].state == DMG_SHM_CHANNEL_OPEN &&
            dmg_shm_peek(&server->agent, &server->channels[i].side, &message)) {
            return true;
        }
    }
    return false;
}

void dmg_shm_server_sleep(dmg_backend_server *base, uint64_t timeout_ns)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    set_asleep(server, true);
    int timeout_ms = has_requests(server) ? 0 : (int)((timeout_ns + MILLISECOND_NS - 1) / MILLISECOND_NS);
    dmg_shm_server_watch_sockets(server, timeout_ms);
    set_asleep(server, false);
}

void dmg_shm_server_wake(dmg_backend_server *base)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    uint64_t one = 1;
    (void)!write(server->wake, &one, sizeof one);
}

/* ---- life ---- */

static dmg_status listen_and_watch(dmg_shm_server *server, const char *bind_to, const dmg_server_options *wanted)
{
    const dmg_listener_options options = {.backend = DMG_SHM_BACKEND_NAME,
                                          .bind = bind_to,
                                          .stream = {.token = wanted->token, .wanted = server->protection},
                                          .greeting_timeout_ns = wanted->peer_timeout_ns,
                                          .keeps_packets = true};
    dmg_status status = dmg_listener_open(&options, &server->listener);
    if (status != DMG_OK) {
        return status;
    }
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->epoll < 0 || server->wake < 0 ||
        !dmg_shm_server_watch(server, EPOLL_CTL_ADD, dmg_listener_descriptor(server->listener), EPOLLIN,
                              DMG_SHM_EVENT_LISTENER) ||
        !dmg_shm_server_watch(server, EPOLL_CTL_ADD, server->wake, EPOLLIN, DMG_SHM_EVENT_WAKE)) {
        return dmg_error_errno(DMG_ERR_IO, errno, "watching the sockets of %s", dmg_listener_address(server->listener));
    }
    return DMG_OK;
}

bool dmg_shm_is_network(const dmg_transport_parameters *parameters, const char *bind_to)
{
    bool is_name = bind_to && (bind_to[0] == '@' || bind_to[0] == '/');
    return !is_name && (bind_to || dmg_transport_parameter_get(parameters, "port", NULL));
}

/* Where to listen: HOST (with the parameter port) is TCP, and so is a port alone. */
static dmg_status find_place(const dmg_transport_parameters *parameters, const char *bind_to, dmg_shm_server *server,
                             char place[DMG_ADDRESS_STRING_BYTES])
{
    const char *port = dmg_transport_parameter_get(parameters, "port", "0");
    if (dmg_transport_parameter_get(parameters, "path", NULL) && !server->path[0]) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "the transport's parameter path= names no memory for memory node %u; give "
                         "one for each, as in path=A+B",
                         (unsigned int)server->node);
    }
    server->is_network = dmg_shm_is_network(parameters, bind_to);
    if (!server->is_network) {
        snprintf(place, DMG_ADDRESS_STRING_BYTES, "%s", bind_to ? bind_to : "");
        return DMG_OK;
    }
    const char *host = bind_to ? bind_to : "127.0.0.1";
    bool needs_brackets = host[0] != '[' && strchr(host, ':') != strrchr(host, ':');
    snprintf(place, DMG_ADDRESS_STRING_BYTES, needs_brackets ? "[%s]:%s" : "%s:%s", host, port);
    if (!server->path[0]) {
        return dmg_error(
            DMG_ERR_ARGUMENT,
            "listening at %s: other hosts reach a segment only through memory that they map as well; name it "
            "by the transport's parameter path=",
            place);
    }
    return DMG_OK;
}

/* The memory is what its clients will find under their own paths: it has a number that they look for. */
static dmg_status sign_memory(dmg_shm_server *server)
{
    uint64_t behind = server->segment.mapped_bytes - server->segment.bytes - DMG_SHM_IDENTITY_BYTES;
    uint64_t areas = behind / DMG_SHM_AREA_BYTES;
    server->area_count = (uint32_t)(areas < DMG_SHM_AREAS_MAX ? areas : DMG_SHM_AREAS_MAX);
    if (getrandom(&server->identity, sizeof server->identity, 0) != sizeof server->identity) {
        return dmg_error(DMG_ERR_IO, "the system gives no random numbers");
    }
    memcpy(dmg_shm_server_behind_segment(server), &server->identity, sizeof server->identity);
    return DMG_OK;
}

static dmg_status make_segment(dmg_shm_server *server, const dmg_segment_options *wanted)
{
    dmg_segment_options options = *wanted;
    bool has_path = server->path[0] != '\0';
    uint64_t behind_min = server->is_network ? DMG_SHM_BEHIND_MIN : 0;
    uint64_t behind_max = server->is_network ? DMG_SHM_BEHIND_MAX : 0;
    options.path = has_path ? server->path : wanted->path;
    dmg_status status = dmg_shm_segment_create(&options, has_path, behind_min, behind_max, &server->segment);
    if (status == DMG_OK && server->is_network) {
        status = sign_memory(server);
    }
    if (status == DMG_OK && has_path) {
        dmg_shm_server_publish_raw(server, server->segment.pointer, server->segment.mapped_bytes);
    }
    return status;
}

dmg_status dmg_shm_server_create(dmg_server *server, const dmg_server_options *options,
                                 const dmg_transport_parameters *parameters, dmg_backend_server **made)
{
    char place[DMG_ADDRESS_STRING_BYTES];
    dmg_shm_server *created = calloc(1, sizeof *created);
    if (!created) {
        return dmg_error(DMG_ERR_MEMORY, "out of memory");
    }
    created->base.operations = &dmg_shm_server_operations;
    created->server = server;
    created->node = options->node;
    created->segment.descriptor = created->epoll = created->wake = -1;
    dmg_shm_path_of(parameters, options->node, created->path);
    dmg_status status = dmg_shm_coherence_parse(parameters, &created->coherence);
    if (status == DMG_OK) {
        dmg_shm_agent_open(&created->coherence, dmg_server_mutable_counters(server), AGENT_OF_NODE + options->node,
                           &created->agent);
        status = find_place(parameters, options->bind, created, place);
    }
    if (status == DMG_OK) {
        status = dmg_shm_protection_parse(parameters, &created->protection);
    }
    if (status == DMG_OK) {
        status = dmg_shm_protection_check(created->is_network, created->protection);
    }
    if (status == DMG_OK) {
        status = make_segment(created, &options->segment);
    }
    if (status == DMG_OK) {
        status =
            dmg_shm_view_open(&created->coherence, created->segment.pointer, created->segment.bytes, &created->view);
    }
    if (status == DMG_OK) {
        status = listen_and_watch(created, place[0] ? place : NULL, options);
    }
    if (status != DMG_OK) {
        dmg_shm_server_destroy(&created->base);
        return status;
    }
    *made = &created->base;
    return DMG_OK;
}

static void close_descriptor(int descriptor)
{
    if (descriptor >= 0) {
        close(descriptor);
    }
}

void dmg_shm_server_destroy(dmg_backend_server *base)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    dmg_listener_close(server->listener);
    for (uint32_t i = 0; i < server->channel_count; i++) {
        if (server->channels[i].state != DMG_SHM_CHANNEL_FREE) {
            dmg_shm_server_close_channel(server, &server->channels[i], DMG_OK);
        }
    }
    free(server->channels);
    close_descriptor(server->epoll);
    close_descriptor(server->wake);
    dmg_shm_agent_close(&server->agent);
    dmg_shm_view_close(&server->view);
    dmg_shm_segment_destroy(&server->segment);
    free(server->acquired);
    free(server);
}

const char *dmg_shm_server_address(dmg_backend_server *base)
{
    return dmg_listener_address(((dmg_shm_server *)base)->listener);
}

bool dmg_shm_server_has_files(dmg_backend_server *base)
{
    const dmg_shm_server *server = (const dmg_shm_server *)base;
    return server->segment.created_path || dmg_listener_has_file(server->listener);
}

void *dmg_shm_server_segment(dmg_backend_server *base, uint64_t *bytes)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    *bytes = server->segment.bytes;
    return dmg_shm_view_pointer(&server->view);
}

dmg_placement dmg_shm_server_placement(dmg_backend_server *base)
{
    return ((dmg_shm_server *)base)->segment.placement;
}
