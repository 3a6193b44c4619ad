/*
 * Sockets of the memory-node side, that come and go: who has greeted says what it wants, and has a channel until it
 * ends. Strangers are the listener's, until they have proved themselves.
 *
 * Nothing here waits for a client: who does not say in time what it wants is cut off.
 */
#include "core/base/clock.h"
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
#define BYTES_DRAINED_MAX 64

/* ---- channels ---- */

void dmg_shm_server_close_channel(dmg_shm_server *server, dmg_shm_server_channel *channel, dmg_status why)
{
    bool was_open = channel->state == DMG_SHM_CHANNEL_OPEN;
    uint64_t client = channel->client;
    server->greeted_count -= channel->state == DMG_SHM_CHANNEL_GREETED;
    server->broken_count -= channel->is_broken;
    dmg_shm_line_close(&channel->line);
    if (channel->control) {
        dmg_shm_side_close(&server->agent, &channel->side);
        if (channel->area > 0) {
            server->area_is_used[channel->area - 1] = false;
        } else {
            munmap(channel->control, sizeof *channel->control);
        }
    }
    *channel = (dmg_shm_server_channel){
        .state = DMG_SHM_CHANNEL_FREE, .line = {.socket = -1}, .generation = channel->generation + 1};
    if (was_open) {
        dmg_server_channel_closed(server->server, client, why);
    }
}

/*
 * What a client has mapped stays mapped: only its end cuts it off. Over TCP its process is not known, and what tells of
 * its end is that the connection ends, so that stays.
 */
void dmg_shm_server_break_client(dmg_backend_server *base, uint64_t client, const char *why)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    char farewell[DMG_SHM_FAREWELL_BYTES];
    snprintf(farewell, sizeof farewell, "%c%s", DMG_SHM_BYTE_GIVEN_UP, why);
    for (uint32_t i = 0; i < server->channel_count && !server->is_network; i++) {
        dmg_shm_server_channel *channel = &server->channels[i];
        if (channel->state == DMG_SHM_CHANNEL_OPEN && channel->client == client) {
            (void)dmg_shm_line_send(&channel->line, farewell, strlen(farewell), -1);
            dmg_shm_server_close_channel(server, channel, DMG_ERR_PEER);
        }
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
    *channel = (dmg_shm_server_channel){.state = DMG_SHM_CHANNEL_FREE, .line = {.socket = -1}};
    return channel;
}

bool dmg_shm_server_watch(dmg_shm_server *server, int operation, int descriptor, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};
    return epoll_ctl(server->epoll, operation, descriptor, &event) == 0;
}

/* One who knows the secret. */
static void take_greeted(void *context, int socket, const dmg_stream_session *session)
{
    dmg_shm_server *server = context;
    dmg_shm_line line;
    if (dmg_shm_line_open(socket, session, &line) != DMG_OK) {
        return;
    }
    dmg_shm_server_channel *channel = find_free(server);
    if (!channel || !dmg_shm_server_watch(server, EPOLL_CTL_ADD, socket, EPOLLIN | EPOLLRDHUP,
                                          (uint64_t)(channel - server->channels))) {
        dmg_shm_line_close(&line);
        return;
    }
    channel->state = DMG_SHM_CHANNEL_GREETED;
    channel->line = line;
    channel->greeted_ns = dmg_server_watch(server->server)->now_ns;
    server->greeted_count++;
}

/* ---- hello and welcome ---- */

static void refuse(dmg_shm_server_channel *channel, dmg_shm_welcome *welcome, dmg_status status, const char *sentence)
{
    welcome->status = status;
    snprintf(welcome->sentence, sizeof welcome->sentence, "%s", sentence);
    (void)dmg_shm_line_send(&channel->line, welcome, sizeof *welcome, -1);
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
    bool is_sent = dmg_shm_line_send(&channel->line, welcome, sizeof *welcome, descriptor);
    if (descriptor >= 0) {
        close(descriptor);
    }
    return is_sent;
}

static void offer_segment(const dmg_shm_server *server, dmg_shm_server_channel *channel, dmg_shm_welcome *welcome)
{
    welcome->bytes = server->segment.bytes;
    welcome->alignment = server->segment.alignment;
    welcome->mapped_bytes = server->segment.mapped_bytes;
    welcome->identity = server->identity;
    snprintf(welcome->sentence, sizeof welcome->sentence, "%s", server->is_network ? server->path : "");
    (void)dmg_shm_line_send(&channel->line, welcome, sizeof *welcome,
                            server->is_network ? -1 : server->segment.descriptor);
}

/* True when it is a channel, and open; false when this connection has done what it was for. */
static bool take_hello(dmg_shm_server *server, dmg_shm_server_channel *channel, const dmg_shm_hello *hello)
{
    dmg_shm_welcome welcome = {.magic = DMG_SHM_MAGIC, .node = server->node};
    if (hello->magic != DMG_SHM_MAGIC) {
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

static uint32_t hear_hello(dmg_shm_server *server, dmg_shm_server_channel *channel)
{
    dmg_shm_hello hello;
    ssize_t received = dmg_shm_line_receive(&channel->line, &hello, sizeof hello, NULL);
    if (received < 0) {
        return 0;
    }
    if (received == (ssize_t)sizeof hello && take_hello(server, channel, &hello)) {
        channel->state = DMG_SHM_CHANNEL_OPEN;
        channel->client = hello.client;
        server->greeted_count--;
        dmg_process process;
        dmg_socket_identify_peer(channel->line.socket, &process);
        dmg_server_channel_opened(server->server, hello.client, &process);
        return 1;
    }
    dmg_shm_server_close_channel(server, channel, DMG_OK);
    return 1;
}

/* ---- sockets ---- */

/* An open channel's socket has bytes, or has ended. */
static uint32_t read_socket(dmg_shm_server *server, dmg_shm_server_channel *channel)
{
    for (int i = 0; i < BYTES_DRAINED_MAX; i++) {
        char byte[1];
        ssize_t received = dmg_shm_line_receive(&channel->line, byte, sizeof byte, NULL);
        if (received < 0) {
            return 0;
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
        return dmg_listener_progress_sockets(server->listener, dmg_server_watch(server->server)->now_ns, take_greeted,
                                             server);
    }
    if (data == DMG_SHM_EVENT_WAKE) {
        uint64_t count;
        (void)!read(server->wake, &count, sizeof count);
        return 1;
    }
    dmg_shm_server_channel *channel = &server->channels[data];
    switch (channel->state) {
    case DMG_SHM_CHANNEL_GREETED:
        return hear_hello(server, channel);
    case DMG_SHM_CHANNEL_OPEN:
        return read_socket(server, channel);
    case DMG_SHM_CHANNEL_FREE:
        break; /* closed by an earlier event of this round */
    }
    return 0;
}

static void cut_off_silent(dmg_shm_server *server)
{
    const dmg_watch *watch = dmg_server_watch(server->server);
    for (uint32_t i = 0; i < server->channel_count && server->greeted_count > 0; i++) {
        dmg_shm_server_channel *channel = &server->channels[i];
        if (channel->state == DMG_SHM_CHANNEL_GREETED && dmg_watch_is_over(watch, channel->greeted_ns)) {
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
    if (server->greeted_count > 0) {
        cut_off_silent(server);
    }
    return handled;
}
