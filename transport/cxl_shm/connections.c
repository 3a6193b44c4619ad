/*
 * Sockets of the memory-node side, that come and go: accepting, greeting, and hearing that a channel has ended.
 *
 * Nothing here waits for a client: a greeting that takes too long is ended, and a flood of connections takes turns with
 * messages.
 */
#include "core/base/clock.h"
#include "core/base/log.h"
#include "transport/cxl_shm/server.h"
#include "transport/stream/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHANNELS_INITIAL  16
#define EVENTS_MAX        64
#define ACCEPTS_MAX       16 /* a round, so that a flood of connections does not keep messages waiting */
#define GREETING_NS       UINT64_C(2000000000)
#define ACCEPT_PAUSE_NS   UINT64_C(100000000)
#define BYTES_DRAINED_MAX 64

/* ---- channels ---- */

void dmg_shm_server_close_channel(dmg_shm_server *server, dmg_shm_server_channel *channel, dmg_status why)
{
    bool was_open = channel->state == DMG_SHM_CHANNEL_OPEN;
    uint64_t client = channel->client;
    server->greeting_count -= channel->state == DMG_SHM_CHANNEL_GREETING;
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
    *channel =
        (dmg_shm_server_channel){.state = DMG_SHM_CHANNEL_FREE, .socket = -1, .generation = channel->generation + 1};
    if (was_open) {
        dmg_server_channel_closed(server->server, client, why);
    }
}

/* A free place, or NULL. May move the array. */
static dmg_shm_server_channel *find_free(dmg_shm_server *server)
{
    for (uint32_t i = 0; i < server->channel_count; i++) {
        if (server->channels[i].state == DMG_SHM_CHANNEL_FREE) {
            return &server->channels[i];
        }
    }
    if (server->channel_count == server->channel_capacity) {
        uint32_t capacity = server->channel_capacity ? server->channel_capacity * 2 : CHANNELS_INITIAL;
        dmg_shm_server_channel *grown =
            capacity <= DMG_SHM_CHANNELS_MAX ? realloc(server->channels, capacity * sizeof *grown) : NULL;
        if (!grown) {
            return NULL;
        }
        server->channels = grown;
        server->channel_capacity = capacity;
    }
    dmg_shm_server_channel *channel = &server->channels[server->channel_count++];
    *channel = (dmg_shm_server_channel){.state = DMG_SHM_CHANNEL_FREE, .socket = -1};
    return channel;
}

bool dmg_shm_server_watch(dmg_shm_server *server, int operation, int descriptor, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};
    return epoll_ctl(server->epoll, operation, descriptor, &event) == 0;
}

/* Without descriptors, accept fails at once and for ever: look away for a moment instead of spinning. */
static void pause_listening(dmg_shm_server *server)
{
    dmg_log(DMG_LOG_WARNING, "accept_failed", "node=%u why=\"%s\" remedy=\"raise the limit of open files (ulimit -n)\"",
            (unsigned int)server->node, strerror(errno));
    dmg_shm_server_watch(server, EPOLL_CTL_MOD, server->listener, 0, DMG_SHM_EVENT_LISTENER);
    server->listen_again_at_ns = dmg_now_ns() + ACCEPT_PAUSE_NS;
}

static void accept_connections(dmg_shm_server *server)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int socket = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
                pause_listening(server);
            }
            return;
        }
        dmg_shm_server_channel *channel = dmg_socket_peer_is_ours(socket) ? find_free(server) : NULL;
        if (!channel || !dmg_shm_server_watch(server, EPOLL_CTL_ADD, socket, EPOLLIN | EPOLLRDHUP,
                                              (uint64_t)(channel - server->channels))) {
            close(socket);
            continue;
        }
        channel->state = DMG_SHM_CHANNEL_GREETING;
        channel->socket = socket;
        channel->accepted_ns = dmg_server_watch(server->server)->now_ns;
        server->greeting_count++;
    }
}

/* ---- greeting ---- */

static void refuse(const dmg_shm_server_channel *channel, dmg_shm_welcome *welcome, dmg_status status,
                   const char *sentence)
{
    welcome->status = status;
    snprintf(welcome->sentence, sizeof welcome->sentence, "%s", sentence);
    (void)dmg_shm_send_welcome(channel->socket, welcome, -1);
}

/* A control area behind the segment: zeroed, since its last channel left something there. */
static bool take_area(dmg_shm_server *server, dmg_shm_server_channel *channel, dmg_shm_welcome *welcome)
{
    for (uint32_t area = 0; area < server->area_count; area++) {
        if (!server->area_is_used[area]) {
            server->area_is_used[area] = true;
            channel->area = area + 1;
            uint64_t behind = DMG_SHM_IDENTITY_BYTES + area * DMG_SHM_AREA_BYTES;
            channel->control = (dmg_shm_control *)(void *)(dmg_shm_server_behind_segment(server) + behind);
            welcome->offset = server->segment.bytes + behind;
            memset((void *)channel->control, 0, offsetof(dmg_shm_control, payloads));
            dmg_shm_server_publish_raw(server, channel->control, offsetof(dmg_shm_control, payloads));
            return true;
        }
    }
    return false;
}

/* True when the channel is open. */
static bool open_channel(dmg_shm_server *server, dmg_shm_server_channel *channel, dmg_shm_welcome *welcome)
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

static void offer_segment(const dmg_shm_server *server, const dmg_shm_server_channel *channel, dmg_shm_welcome *welcome)
{
    welcome->bytes = server->segment.bytes;
    welcome->alignment = server->segment.alignment;
    welcome->mapped_bytes = server->segment.mapped_bytes;
    welcome->identity = server->identity;
    snprintf(welcome->sentence, sizeof welcome->sentence, "%s", server->is_network ? server->path : "");
    (void)dmg_shm_send_welcome(channel->socket, welcome, server->is_network ? -1 : server->segment.descriptor);
}

/* True when it is a channel, and open; false when this connection has done what it was for. */
static bool take_hello(dmg_shm_server *server, dmg_shm_server_channel *channel, const dmg_shm_hello *hello)
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

static uint32_t greet(dmg_shm_server *server, dmg_shm_server_channel *channel)
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
            channel->state = DMG_SHM_CHANNEL_OPEN;
            channel->client = hello.client;
            server->greeting_count--;
            dmg_process process;
            dmg_socket_identify_peer(channel->socket, &process);
            dmg_server_channel_opened(server->server, hello.client, &process);
            return 1;
        }
    }
    dmg_shm_server_close_channel(server, channel, DMG_OK);
    return 1;
}

/* ---- sockets ---- */

/* An open channel's socket has bytes, or has ended. */
static uint32_t read_socket(dmg_shm_server *server, dmg_shm_server_channel *channel)
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
            dmg_shm_server_close_channel(server, channel, DMG_OK);
            return 1;
        }
        if (received != 1 || byte[0] != DMG_SHM_BYTE_WAKE) {
            dmg_shm_server_close_channel(server, channel, DMG_ERR_PEER);
            return 1;
        }
    }
    return 0;
}

static uint32_t handle_event(dmg_shm_server *server, uint64_t data)
{
    if (data == DMG_SHM_EVENT_LISTENER) {
        accept_connections(server);
        return 1;
    }
    if (data == DMG_SHM_EVENT_WAKE) {
        uint64_t count;
        (void)!read(server->wake, &count, sizeof count);
        return 1;
    }
    dmg_shm_server_channel *channel = &server->channels[data];
    switch (channel->state) {
    case DMG_SHM_CHANNEL_GREETING:
        return greet(server, channel);
    case DMG_SHM_CHANNEL_OPEN:
        return read_socket(server, channel);
    case DMG_SHM_CHANNEL_FREE:
        break; /* closed by an earlier event of this round */
    }
    return 0;
}

static void end_slow_greetings(dmg_shm_server *server)
{
    const dmg_watch *watch = dmg_server_watch(server->server);
    if (server->listen_again_at_ns != 0 && dmg_now_ns() >= server->listen_again_at_ns) {
        server->listen_again_at_ns = 0;
        dmg_shm_server_watch(server, EPOLL_CTL_MOD, server->listener, EPOLLIN, DMG_SHM_EVENT_LISTENER);
    }
    for (uint32_t i = 0; i < server->channel_count && server->greeting_count > 0; i++) {
        dmg_shm_server_channel *channel = &server->channels[i];
        if (channel->state == DMG_SHM_CHANNEL_GREETING &&
            dmg_watch_silence_ns(watch, channel->accepted_ns) > GREETING_NS) {
            dmg_shm_server_close_channel(server, channel, DMG_OK);
        }
    }
}

uint32_t dmg_shm_server_watch_sockets(dmg_shm_server *server, int timeout_ms)
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
