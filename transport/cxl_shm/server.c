/*
 * The memory-node side: sockets that come and go, and one control area for each channel.
 *
 * Nothing that a client wrote is believed: numbers are read from shared memory once, checked, and a payload is copied
 * before the handler sees it. A channel that holds nonsense is broken, and closed like one whose process died. Nothing
 * here waits for a client.
 */
#include "core/base/checked.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/cxl_shm/shm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define CHANNELS_MAX           4096
#define CHANNELS_INITIAL       16
#define EVENTS_MAX             64
#define ACCEPTS_MAX            16  /* a round, so that a flood of connections does not keep messages waiting */
#define REQUESTS_MAX           16  /* of one channel a round, so that the others have their turn */
#define SOCKET_ROUNDS          256 /* rounds of progress between two looks at the sockets when messages never pause */
#define GREETING_NS            UINT64_C(2000000000)
#define ACCEPT_PAUSE_NS        UINT64_C(100000000)
#define MILLISECOND_NS         UINT64_C(1000000)
#define EVENT_LISTENER         UINT64_MAX
#define EVENT_WAKE             (UINT64_MAX - 1)
#define BYTES_DRAINED_MAX      64
#define TOKEN_SLOT_BITS        6
#define TOKEN_USE_BITS         26
#define TOKEN_CHANNEL_BITS     12
#define TOKEN_CHANNEL_SHIFT    (TOKEN_SLOT_BITS + TOKEN_USE_BITS)
#define TOKEN_GENERATION_SHIFT (TOKEN_CHANNEL_SHIFT + TOKEN_CHANNEL_BITS)
#define ACQUIRED_INITIAL       64
#define AGENT_OF_NODE          1000000 /* its random numbers are others than those of channels */
#define LOW_BITS(count)        ((UINT64_C(1) << (count)) - 1)

_Static_assert(1 << TOKEN_SLOT_BITS == DMG_SHM_SLOTS, "a reply token holds any slot");
_Static_assert(1 << TOKEN_CHANNEL_BITS == CHANNELS_MAX, "a reply token holds any channel");
_Static_assert(DMG_SHM_SLOTS == 64, "the busy slots of a channel are one word");

typedef enum channel_state { CHANNEL_FREE, CHANNEL_GREETING, CHANNEL_OPEN } channel_state;

typedef struct server_channel {
    channel_state state;
    bool is_broken; /* to be closed when it is safe */
    int socket;
    uint64_t generation; /* raised when the place is used again, so that old reply tokens miss */
    uint64_t client;
    uint64_t accepted_ns;
    dmg_shm_control *control;
    uint32_t area; /* over TCP: the control area behind the segment, from 1 on; 0: none */
    dmg_shm_side side;
    uint64_t busy_slots; /* taken and not answered */
    uint32_t slot_uses[DMG_SHM_SLOTS];
} server_channel;

typedef struct acquired_span {
    uint64_t offset;
    uint64_t bytes;
} acquired_span;

typedef struct shm_server {
    dmg_server *server;
    uint16_t node;
    uint8_t token[DMG_TOKEN_BYTES];
    dmg_shm_coherence coherence;
    dmg_shm_agent agent;
    dmg_shm_segment segment;
    dmg_shm_view view;   /* of the segment */
    bool is_network;     /* clients connect by TCP */
    uint64_t identity;   /* of the memory, when they do */
    uint32_t area_count; /* control areas behind the segment */
    bool area_is_used[DMG_SHM_AREAS_MAX];
    acquired_span *acquired; /* to be fetched when the acquisition ends */
    uint32_t acquired_count;
    uint32_t acquired_capacity;
    char path[96]; /* of the segment, from the transport string; empty: none */
    char address[DMG_ADDRESS_STRING_BYTES];
    char *unlink_path; /* a path socket, removed at the end */
    int listener;
    int epoll;
    int wake;
    server_channel *channels;
    uint32_t channel_count; /* places in use or used before */
    uint32_t channel_capacity;
    uint32_t greeting_count;
    uint32_t broken_count;
    uint32_t rounds;             /* of progress since the last look at the sockets */
    uint64_t listen_again_at_ns; /* 0: listening */
    _Alignas(8) char payload[DMG_MESSAGE_BYTES_MAX];
} shm_server;

/* ---- channels ---- */

static void break_channel(shm_server *server, server_channel *channel, const char *why)
{
    if (!channel->is_broken) {
        channel->is_broken = true;
        server->broken_count++;
        dmg_log(DMG_LOG_WARNING, "channel_broken",
                "node=%u client=%016" PRIx64 " why=\"%s\" remedy=\"end that compute node: its memory is damaged\"",
                (unsigned int)server->node, channel->client, why);
    }
}

static void close_channel(shm_server *server, server_channel *channel, dmg_status why)
{
    bool was_open = channel->state == CHANNEL_OPEN;
    uint64_t client = channel->client;
    server->greeting_count -= channel->state == CHANNEL_GREETING;
    server->broken_count -= channel->is_broken;
    close(channel->socket);
    if (channel->control) {
        dmg_shm_side_close(&server->agent, &channel->side);
        if (channel->area > 0) {
            server->area_is_used[channel->area - 1] = false;
        } else {
            munmap(channel->control, sizeof *channel->control);
        }
    }
    *channel = (server_channel){.state = CHANNEL_FREE, .socket = -1, .generation = channel->generation + 1};
    if (was_open) {
        dmg_server_channel_closed(server->server, client, why);
    }
}

/* A free place, or NULL. May move the array. */
static server_channel *find_free(shm_server *server)
{
    for (uint32_t i = 0; i < server->channel_count; i++) {
        if (server->channels[i].state == CHANNEL_FREE) {
            return &server->channels[i];
        }
    }
    if (server->channel_count == server->channel_capacity) {
        uint32_t capacity = server->channel_capacity ? server->channel_capacity * 2 : CHANNELS_INITIAL;
        server_channel *grown = capacity <= CHANNELS_MAX ? realloc(server->channels, capacity * sizeof *grown) : NULL;
        if (!grown) {
            return NULL;
        }
        server->channels = grown;
        server->channel_capacity = capacity;
    }
    server_channel *channel = &server->channels[server->channel_count++];
    *channel = (server_channel){.state = CHANNEL_FREE, .socket = -1};
    return channel;
}

static bool watch(shm_server *server, int operation, int descriptor, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};
    return epoll_ctl(server->epoll, operation, descriptor, &event) == 0;
}

/* Without descriptors, accept fails at once and for ever: look away for a moment instead of spinning. */
static void pause_listening(shm_server *server)
{
    dmg_log(DMG_LOG_WARNING, "accept_failed", "node=%u why=\"%s\" remedy=\"raise the limit of open files (ulimit -n)\"",
            (unsigned int)server->node, strerror(errno));
    watch(server, EPOLL_CTL_MOD, server->listener, 0, EVENT_LISTENER);
    server->listen_again_at_ns = dmg_now_ns() + ACCEPT_PAUSE_NS;
}

static void accept_connections(shm_server *server)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int socket = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
                pause_listening(server);
            }
            return;
        }
        server_channel *channel = dmg_shm_peer_is_ours(socket) ? find_free(server) : NULL;
        if (!channel ||
            !watch(server, EPOLL_CTL_ADD, socket, EPOLLIN | EPOLLRDHUP, (uint64_t)(channel - server->channels))) {
            close(socket);
            continue;
        }
        channel->state = CHANNEL_GREETING;
        channel->socket = socket;
        channel->accepted_ns = dmg_now_ns();
        server->greeting_count++;
    }
}

/* ---- greeting ---- */

static void refuse(const server_channel *channel, dmg_shm_welcome *welcome, dmg_status status, const char *sentence)
{
    welcome->status = status;
    snprintf(welcome->sentence, sizeof welcome->sentence, "%s", sentence);
    (void)dmg_shm_send_welcome(channel->socket, welcome, -1);
}

static char *behind_segment(const shm_server *server)
{
    return (char *)server->segment.pointer + server->segment.bytes;
}

/* What is written outside the line cache, before others know of it. */
static void publish_raw(shm_server *server, void *start, uint64_t bytes)
{
    const dmg_shm_view view = {.memory = start, .bytes = bytes};
    if (server->coherence.is_software) {
        dmg_shm_write_back(&server->agent, &view, 0, bytes, DMG_SHM_NODE_WRITE);
        dmg_shm_store_fence(&server->agent, DMG_SHM_PAYLOAD_WRITE);
    }
}

/* A control area behind the segment: zeroed, since its last channel left something there. */
static bool take_area(shm_server *server, server_channel *channel, dmg_shm_welcome *welcome)
{
    for (uint32_t area = 0; area < server->area_count; area++) {
        if (!server->area_is_used[area]) {
            server->area_is_used[area] = true;
            channel->area = area + 1;
            uint64_t behind = DMG_SHM_IDENTITY_BYTES + area * DMG_SHM_AREA_BYTES;
            channel->control = (dmg_shm_control *)(void *)(behind_segment(server) + behind);
            welcome->offset = server->segment.bytes + behind;
            memset((void *)channel->control, 0, offsetof(dmg_shm_control, payloads));
            publish_raw(server, channel->control, offsetof(dmg_shm_control, payloads));
            return true;
        }
    }
    return false;
}

/* True when the channel is open. */
static bool open_channel(shm_server *server, server_channel *channel, dmg_shm_welcome *welcome)
{
    int descriptor = -1;
    bool has_area = server->is_network ? take_area(server, channel, welcome)
                                       : dmg_shm_create_control(&descriptor, &channel->control) == DMG_OK;
    if (!has_area || dmg_shm_side_open(&server->coherence, channel->control, true, &channel->side) != DMG_OK) {
        if (descriptor >= 0) {
            close(descriptor);
        }
        refuse(channel, welcome, DMG_ERR_MEMORY,
               server->is_network ? "there is no room behind the segment for one more channel"
                                  : "the memory node cannot create one more control area");
        return false;
    }
    welcome->bytes = sizeof *channel->control;
    welcome->alignment = DMG_SHM_CACHE_LINE_BYTES;
    bool is_sent = dmg_shm_send_welcome(channel->socket, welcome, descriptor);
    if (descriptor >= 0) {
        close(descriptor);
    }
    return is_sent;
}

static void offer_segment(const shm_server *server, const server_channel *channel, dmg_shm_welcome *welcome)
{
    welcome->bytes = server->segment.bytes;
    welcome->alignment = server->segment.alignment;
    welcome->mapped_bytes = server->segment.mapped_bytes;
    welcome->identity = server->identity;
    snprintf(welcome->sentence, sizeof welcome->sentence, "%s", server->is_network ? server->path : "");
    (void)dmg_shm_send_welcome(channel->socket, welcome, server->is_network ? -1 : server->segment.descriptor);
}

/* True when it is a channel, and open; false when this connection has done what it was for. */
static bool take_hello(shm_server *server, server_channel *channel, const dmg_shm_hello *hello)
{
    dmg_shm_welcome welcome = {.magic = DMG_SHM_MAGIC, .node = server->node};
    if (hello->magic != DMG_SHM_MAGIC) {
        return false;
    }
    if (!dmg_token_is_equal(hello->token, server->token)) {
        refuse(channel, &welcome, DMG_ERR_PROTOCOL, "the token is wrong");
        return false;
    }
    if (hello->want == DMG_SHM_SEGMENT) {
        offer_segment(server, channel, &welcome);
        return false;
    }
    if (hello->want != DMG_SHM_CHANNEL || hello->client == 0) {
        refuse(channel, &welcome, DMG_ERR_PROTOCOL, "the greeting makes no sense");
        return false;
    }
    return open_channel(server, channel, &welcome);
}

static uint32_t greet(shm_server *server, server_channel *channel)
{
    /* One byte more, so that a longer packet is seen to be longer. */
    char packet[sizeof(dmg_shm_hello) + 1];
    if (server->is_network) {
        ssize_t there = recv(channel->socket, packet, sizeof(dmg_shm_hello), MSG_PEEK | MSG_DONTWAIT);
        if (there > 0 && there < (ssize_t)sizeof(dmg_shm_hello)) {
            return 0; /* the rest comes, or the greeting takes too long */
        }
    }
    ssize_t received = recv(channel->socket, packet, sizeof packet, MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    dmg_shm_hello hello;
    if (received == (ssize_t)sizeof hello) {
        memcpy(&hello, packet, sizeof hello);
        if (take_hello(server, channel, &hello)) {
            channel->state = CHANNEL_OPEN;
            channel->client = hello.client;
            server->greeting_count--;
            dmg_server_channel_opened(server->server, hello.client);
            return 1;
        }
    }
    close_channel(server, channel, DMG_OK);
    return 1;
}

/* ---- sockets ---- */

/* An open channel's socket has bytes, or has ended. */
static uint32_t read_socket(shm_server *server, server_channel *channel)
{
    for (int i = 0; i < BYTES_DRAINED_MAX; i++) {
        char byte[2];
        /* Over TCP bytes come together; as packets they are apart, and a longer one is none of ours. */
        ssize_t received = recv(channel->socket, byte, server->is_network ? 1 : sizeof byte, MSG_DONTWAIT);
        if (received < 0 && (errno == EAGAIN || errno == EINTR)) {
            return 0;
        }
        if (received < 0 && errno == ECONNRESET) {
            continue; /* it left a wake byte of ours unread; what it said before it closed comes next */
        }
        if (received == 1 && byte[0] == DMG_SHM_BYTE_BYE) {
            close_channel(server, channel, DMG_OK);
            return 1;
        }
        if (received != 1 || byte[0] != DMG_SHM_BYTE_WAKE) {
            close_channel(server, channel, DMG_ERR_PEER);
            return 1;
        }
    }
    return 0;
}

static uint32_t handle_event(shm_server *server, uint64_t data)
{
    if (data == EVENT_LISTENER) {
        accept_connections(server);
        return 1;
    }
    if (data == EVENT_WAKE) {
        uint64_t count;
        (void)!read(server->wake, &count, sizeof count);
        return 1;
    }
    server_channel *channel = &server->channels[data];
    switch (channel->state) {
    case CHANNEL_GREETING:
        return greet(server, channel);
    case CHANNEL_OPEN:
        return read_socket(server, channel);
    case CHANNEL_FREE:
        break; /* closed by an earlier event of this round */
    }
    return 0;
}

static void end_slow_greetings(shm_server *server)
{
    uint64_t now_ns = dmg_now_ns();
    if (server->listen_again_at_ns != 0 && now_ns >= server->listen_again_at_ns) {
        server->listen_again_at_ns = 0;
        watch(server, EPOLL_CTL_MOD, server->listener, EPOLLIN, EVENT_LISTENER);
    }
    for (uint32_t i = 0; i < server->channel_count && server->greeting_count > 0; i++) {
        server_channel *channel = &server->channels[i];
        if (channel->state == CHANNEL_GREETING && now_ns - channel->accepted_ns > GREETING_NS) {
            close_channel(server, channel, DMG_OK);
        }
    }
}

static uint32_t watch_sockets(shm_server *server, int timeout_ms)
{
    struct epoll_event events[EVENTS_MAX];
    server->rounds = 0;
    int count = epoll_wait(server->epoll, events, EVENTS_MAX, timeout_ms);
    uint32_t handled = 0;
    for (int i = 0; i < count; i++) {
        handled += handle_event(server, events[i].data.u64);
    }
    if (server->greeting_count > 0 || server->listen_again_at_ns != 0) {
        end_slow_greetings(server);
    }
    return handled;
}

/* ---- messages ---- */

static uint64_t make_reply_token(const shm_server *server, const server_channel *channel, uint32_t slot)
{
    uint64_t place = (uint64_t)(channel - server->channels);
    return (channel->generation << TOKEN_GENERATION_SHIFT) | (place << TOKEN_CHANNEL_SHIFT) |
           ((channel->slot_uses[slot] & LOW_BITS(TOKEN_USE_BITS)) << TOKEN_SLOT_BITS) | slot;
}

/* ---- what compute nodes leave to the memory node without coherence ---- */

static dmg_status merge_pieces(shm_server *server, const dmg_shm_merge *merge)
{
    for (int i = 0; i < 2; i++) {
        const dmg_shm_piece *piece = &merge->pieces[i];
        if (piece->bytes > DMG_SHM_CACHE_LINE_BYTES ||
            !dmg_range_is_inside(piece->offset, piece->bytes, server->segment.bytes)) {
            return DMG_ERR_PROTOCOL;
        }
        dmg_shm_server_acquire(server, piece->offset, piece->bytes);
    }
    dmg_shm_server_acquire_wait(server);
    for (int i = 0; i < 2; i++) {
        const dmg_shm_piece *piece = &merge->pieces[i];
        memcpy(dmg_shm_view_pointer(&server->view) + piece->offset, piece->data, piece->bytes);
        dmg_shm_server_release(server, piece->offset, piece->bytes);
    }
    return DMG_OK;
}

static dmg_status execute_atomic(shm_server *server, const dmg_shm_atomic *atomic, uint64_t *before)
{
    if (atomic->offset % sizeof(uint64_t) != 0 ||
        !dmg_range_is_inside(atomic->offset, sizeof(uint64_t), server->segment.bytes)) {
        return DMG_ERR_PROTOCOL;
    }
    dmg_shm_server_acquire(server, atomic->offset, sizeof(uint64_t));
    dmg_shm_server_acquire_wait(server);
    uint64_t *word = (uint64_t *)(void *)(dmg_shm_view_pointer(&server->view) + atomic->offset);
    *before = *word;
    if (atomic->is_addition || *before == atomic->expected) {
        *word = atomic->is_addition ? *before + atomic->expected : atomic->desired;
        dmg_shm_server_release(server, atomic->offset, sizeof(uint64_t));
    }
    return DMG_OK;
}

/* True when the request was for the backend itself, and is answered. */
static bool serve_one_sided(shm_server *server, const dmg_request *request)
{
    dmg_counters *counters = dmg_server_mutable_counters(server->server);
    if (!server->coherence.is_software || (request->type != DMG_SHM_MERGE && request->type != DMG_SHM_ATOMIC)) {
        return false;
    }
    dmg_status status = DMG_ERR_PROTOCOL;
    uint64_t before = 0;
    size_t answer_bytes = 0;
    if (dmg_server_client_is_gone(server->server, request->client)) {
        status = DMG_ERR_PEER;
    } else if (request->type == DMG_SHM_MERGE && request->bytes == sizeof(dmg_shm_merge)) {
        const dmg_shm_merge *merge = request->payload;
        dmg_counters_count(counters, DMG_OPERATION_WRITE, merge->pieces[0].bytes + merge->pieces[1].bytes);
        status = merge_pieces(server, merge);
    } else if (request->type == DMG_SHM_ATOMIC && request->bytes == sizeof(dmg_shm_atomic)) {
        const dmg_shm_atomic *atomic = request->payload;
        dmg_counters_count(counters, atomic->is_addition ? DMG_OPERATION_FAA : DMG_OPERATION_CAS, sizeof before);
        status = execute_atomic(server, atomic, &before);
        answer_bytes = status == DMG_OK ? sizeof before : 0;
    }
    dmg_shm_server_reply(server, request->reply_token, status, &before, answer_bytes);
    return true;
}

/* Take one request; false when it is nonsense. */
static bool take_request(shm_server *server, server_channel *channel, const dmg_shm_message *message)
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
    if (!serve_one_sided(server, &request)) {
        dmg_server_deliver(server->server, &request);
    }
    return true;
}

static uint32_t take_requests(shm_server *server, server_channel *channel)
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

uint32_t dmg_shm_server_progress(void *implementation)
{
    shm_server *server = implementation;
    uint32_t handled = 0;
    for (uint32_t i = 0; i < server->channel_count; i++) {
        if (server->channels[i].state == CHANNEL_OPEN) {
            handled += take_requests(server, &server->channels[i]);
        }
    }
    for (uint32_t i = 0; i < server->channel_count && server->broken_count > 0; i++) {
        if (server->channels[i].is_broken) {
            close_channel(server, &server->channels[i], DMG_ERR_PEER);
        }
    }
    if (++server->rounds >= SOCKET_ROUNDS) {
        handled += watch_sockets(server, 0);
    }
    return handled;
}

void dmg_shm_server_reply(void *implementation, uint64_t reply_token, dmg_status status, const void *payload,
                          size_t bytes)
{
    shm_server *server = implementation;
    uint32_t slot = (uint32_t)(reply_token & LOW_BITS(TOKEN_SLOT_BITS));
    uint64_t use = reply_token >> TOKEN_SLOT_BITS & LOW_BITS(TOKEN_USE_BITS);
    uint64_t place = reply_token >> TOKEN_CHANNEL_SHIFT & LOW_BITS(TOKEN_CHANNEL_BITS);
    uint64_t generation = reply_token >> TOKEN_GENERATION_SHIFT;
    if (place >= server->channel_count) {
        return;
    }
    server_channel *channel = &server->channels[place];
    if (channel->state != CHANNEL_OPEN || (channel->generation & LOW_BITS(64 - TOKEN_GENERATION_SHIFT)) != generation ||
        !(channel->busy_slots >> slot & 1) || (channel->slot_uses[slot] & LOW_BITS(TOKEN_USE_BITS)) != use) {
        return; /* whoever asked is gone */
    }
    channel->slot_uses[slot]++;
    channel->busy_slots &= ~(UINT64_C(1) << slot);
    const dmg_shm_message answer = {.slot = slot, .type_or_status = (uint32_t)status, .bytes = (uint32_t)bytes};
    dmg_shm_send(&server->agent, &channel->side, &answer, payload);
    dmg_shm_wake(&server->agent, &channel->side, channel->socket);
}

/* ---- the segment, as this program reads and writes it ---- */

bool dmg_shm_server_is_coherent(void *implementation)
{
    return !((shm_server *)implementation)->coherence.is_software;
}

void dmg_shm_server_acquire(void *implementation, uint64_t offset, uint64_t bytes)
{
    shm_server *server = implementation;
    if (!server->coherence.is_software || bytes == 0) {
        return;
    }
    dmg_shm_invalidate(&server->agent, &server->view, offset, bytes, DMG_SHM_NODE_READ);
    if (!server->view.cache) {
        return;
    }
    if (server->acquired_count == server->acquired_capacity) {
        uint32_t capacity = server->acquired_capacity ? server->acquired_capacity * 2 : ACQUIRED_INITIAL;
        acquired_span *grown = realloc(server->acquired, capacity * sizeof *grown);
        if (!grown) {
            dmg_shm_server_acquire_wait(server);
            return;
        }
        server->acquired = grown;
        server->acquired_capacity = capacity;
    }
    server->acquired[server->acquired_count++] = (acquired_span){offset, bytes};
}

void dmg_shm_server_acquire_wait(void *implementation)
{
    shm_server *server = implementation;
    if (!server->coherence.is_software) {
        return;
    }
    dmg_shm_load_fence(&server->agent, DMG_SHM_NODE_READ);
    for (uint32_t i = 0; i < server->acquired_count; i++) {
        dmg_shm_fetch(&server->agent, &server->view, server->acquired[i].offset, server->acquired[i].bytes);
    }
    server->acquired_count = 0;
}

/* No fence: every answer has one before it is published. */
void dmg_shm_server_release(void *implementation, uint64_t offset, uint64_t bytes)
{
    shm_server *server = implementation;
    if (server->coherence.is_software && bytes > 0) {
        dmg_shm_mark_written(&server->agent, &server->view, offset, bytes);
        dmg_shm_write_back(&server->agent, &server->view, offset, bytes, DMG_SHM_NODE_WRITE);
    }
}

/* ---- sleeping ---- */

static void set_asleep(shm_server *server, bool is_asleep)
{
    for (uint32_t i = 0; i < server->channel_count; i++) {
        if (server->channels[i].state == CHANNEL_OPEN) {
            dmg_shm_set_asleep(&server->agent, &server->channels[i].side, is_asleep);
        }
    }
}

static bool has_requests(shm_server *server)
{
    for (uint32_t i = 0; i < server->channel_count; i++) {
        dmg_shm_message message;
        if (server->channels[i].state == CHANNEL_OPEN &&
            dmg_shm_peek(&server->agent, &server->channels[i].side, &message)) {
            return true;
        }
    }
    return false;
}

void dmg_shm_server_sleep(void *implementation, uint64_t timeout_ns)
{
    shm_server *server = implementation;
    set_asleep(server, true);
    int timeout_ms = has_requests(server) ? 0 : (int)((timeout_ns + MILLISECOND_NS - 1) / MILLISECOND_NS);
    watch_sockets(server, timeout_ms);
    set_asleep(server, false);
}

void dmg_shm_server_wake(void *implementation)
{
    shm_server *server = implementation;
    uint64_t one = 1;
    (void)!write(server->wake, &one, sizeof one);
}

/* ---- life ---- */

static dmg_status listen_and_watch(shm_server *server, const char *bind_to)
{
    dmg_status status = dmg_shm_listen(bind_to, &server->listener, server->address);
    if (status != DMG_OK) {
        return status;
    }
    const char *name = server->address + sizeof DMG_SHM_BACKEND_NAME; /* behind the colon */
    if (name[0] == '/' && !(server->unlink_path = strdup(name))) {
        unlink(name);
        return dmg_error(DMG_ERR_MEMORY, "listening on %s: out of memory", name);
    }
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->epoll < 0 || server->wake < 0 ||
        !watch(server, EPOLL_CTL_ADD, server->listener, EPOLLIN, EVENT_LISTENER) ||
        !watch(server, EPOLL_CTL_ADD, server->wake, EPOLLIN, EVENT_WAKE)) {
        return dmg_error_errno(DMG_ERR_IO, errno, "watching the sockets of %s", server->address);
    }
    return DMG_OK;
}

/* Where to listen: HOST (with the parameter port) is TCP, and so is a port alone. */
static dmg_status find_place(const dmg_transport_parameters *parameters, const char *bind_to, shm_server *server,
                             char place[DMG_ADDRESS_STRING_BYTES])
{
    const char *port = dmg_transport_parameter_get(parameters, "port", NULL);
    bool is_name = bind_to && (bind_to[0] == '@' || bind_to[0] == '/');
    server->is_network = !is_name && (bind_to || port);
    if (!server->is_network) {
        snprintf(place, DMG_ADDRESS_STRING_BYTES, "%s", bind_to ? bind_to : "");
        return DMG_OK;
    }
    snprintf(place, DMG_ADDRESS_STRING_BYTES, "%s:%s", bind_to ? bind_to : "127.0.0.1", port ? port : "0");
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
static dmg_status sign_memory(shm_server *server)
{
    uint64_t behind = server->segment.mapped_bytes - server->segment.bytes - DMG_SHM_IDENTITY_BYTES;
    uint64_t areas = behind / DMG_SHM_AREA_BYTES;
    server->area_count = (uint32_t)(areas < DMG_SHM_AREAS_MAX ? areas : DMG_SHM_AREAS_MAX);
    if (getrandom(&server->identity, sizeof server->identity, 0) != sizeof server->identity) {
        return dmg_error(DMG_ERR_IO, "the system gives no random numbers");
    }
    memcpy(behind_segment(server), &server->identity, sizeof server->identity);
    return DMG_OK;
}

static dmg_status make_segment(shm_server *server, const dmg_segment_options *wanted)
{
    dmg_segment_options options = *wanted;
    bool has_path = server->path[0] != '\0';
    uint64_t behind_min = server->is_network ? DMG_SHM_IDENTITY_BYTES + DMG_SHM_AREAS_MIN * DMG_SHM_AREA_BYTES : 0;
    uint64_t behind_max = server->is_network ? DMG_SHM_IDENTITY_BYTES + DMG_SHM_AREAS_MAX * DMG_SHM_AREA_BYTES : 0;
    options.path = has_path ? server->path : wanted->path;
    dmg_status status = dmg_shm_segment_create(&options, has_path, behind_min, behind_max, &server->segment);
    if (status == DMG_OK && server->is_network) {
        status = sign_memory(server);
    }
    if (status == DMG_OK && has_path) {
        publish_raw(server, server->segment.pointer, server->segment.mapped_bytes);
    }
    return status;
}

dmg_status dmg_shm_server_create(dmg_server *server, const dmg_server_options *options,
                                 const dmg_transport_parameters *parameters, void **implementation)
{
    char place[DMG_ADDRESS_STRING_BYTES];
    shm_server *created = calloc(1, sizeof *created);
    if (!created) {
        return dmg_error(DMG_ERR_MEMORY, "out of memory");
    }
    created->server = server;
    created->node = options->node;
    memcpy(created->token, options->token, sizeof created->token);
    created->segment.descriptor = created->listener = created->epoll = created->wake = -1;
    dmg_shm_path_of(parameters, options->node, created->path);
    dmg_status status = dmg_shm_coherence_parse(parameters, &created->coherence);
    if (status == DMG_OK) {
        dmg_shm_agent_open(&created->coherence, dmg_server_mutable_counters(server), AGENT_OF_NODE + options->node,
                           &created->agent);
        status = find_place(parameters, options->bind, created, place);
    }
    if (status == DMG_OK) {
        status = make_segment(created, &options->segment);
    }
    if (status == DMG_OK) {
        status =
            dmg_shm_view_open(&created->coherence, created->segment.pointer, created->segment.bytes, &created->view);
    }
    if (status == DMG_OK) {
        status = listen_and_watch(created, place[0] ? place : NULL);
    }
    if (status != DMG_OK) {
        dmg_shm_server_destroy(created);
        return status;
    }
    *implementation = created;
    return DMG_OK;
}

static void close_descriptor(int descriptor)
{
    if (descriptor >= 0) {
        close(descriptor);
    }
}

void dmg_shm_server_destroy(void *implementation)
{
    shm_server *server = implementation;
    if (server->unlink_path) {
        unlink(server->unlink_path);
        free(server->unlink_path);
    }
    for (uint32_t i = 0; i < server->channel_count; i++) {
        if (server->channels[i].state != CHANNEL_FREE) {
            close_channel(server, &server->channels[i], DMG_OK);
        }
    }
    free(server->channels);
    close_descriptor(server->listener);
    close_descriptor(server->epoll);
    close_descriptor(server->wake);
    dmg_shm_agent_close(&server->agent);
    dmg_shm_view_close(&server->view);
    dmg_shm_segment_destroy(&server->segment);
    free(server->acquired);
    free(server);
}

const char *dmg_shm_server_address(void *implementation)
{
    return ((shm_server *)implementation)->address;
}

void *dmg_shm_server_segment(void *implementation, uint64_t *bytes)
{
    shm_server *server = implementation;
    *bytes = server->segment.bytes;
    return dmg_shm_view_pointer(&server->view);
}
