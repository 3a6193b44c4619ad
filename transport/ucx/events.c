/**
 * @file events.c
 * What a memory node waits for, and which streams it looks at.
 *
 * One epoll descriptor has the listener, the wake event, UCX's events where UCX moves something, and every stream. A
 * look at a stream that has nothing costs a system call, as does a question to the kernel about all of them. So a round
 * looks at the few from which something came lately, whose clients are likely to wait for an answer and send the next
 * request, and asks the kernel when these have nothing, and now and then anyhow.
 */
#include "core/base/error.h"
#include "transport/ucx/server.h"

#include <errno.h>
#include <unistd.h>

/** Streams that are looked at without a question. With more, the question is cheaper. */
#define ACTIVE_MAX 4
/** Looks at a stream without anything, after which the kernel is trusted to tell when there is. */
#define IDLE_LOOKS_MAX 2
/** Rounds from one question to the next while something comes; while nothing does, each round asks. */
#define BUSY_ROUNDS 8
/** Frames that are taken from one stream before others have their turn. */
#define FRAMES_A_LOOK 32

static uint64_t event_data(uint32_t kind, uint32_t number)
{
    return (uint64_t)kind << 32 | number;
}

dmg_status dmg_ucx_events_add(dmg_ucx_server *server, int descriptor, uint32_t kind, uint32_t number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = event_data(kind, number)};
    return epoll_ctl(server->events, EPOLL_CTL_ADD, descriptor, &event) == 0
               ? DMG_OK
               : dmg_error_errno(DMG_ERR_IO, errno, "waiting for a connection");
}

dmg_status dmg_ucx_events_open(dmg_ucx_server *server)
{
    server->events = epoll_create1(EPOLL_CLOEXEC);
    if (server->events < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "creating a memory node");
    }
    return dmg_ucx_events_add(server, server->wake_event, DMG_UCX_EVENT_WAKE, 0);
}

void dmg_ucx_events_follow(dmg_ucx_connection *connection)
{
    bool waits = dmg_ucx_carrier_waits_to_write(&connection->carrier);
    if (waits == connection->waits_to_write || connection->broken != NULL) {
        return;
    }
    struct epoll_event event = {.events = waits ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                .data.u64 = event_data(DMG_UCX_EVENT_STREAM, connection->number)};
    if (epoll_ctl(connection->server->events, EPOLL_CTL_MOD, connection->socket, &event) != 0) {
        dmg_ucx_connection_break(connection, "its socket cannot be waited for");
    }
    connection->waits_to_write = waits;
}

/* ---- streams ---- */

/** True when it had as much as one look takes, so that there may be more that the kernel knows nothing of. */
static bool take_frames(dmg_ucx_connection *connection, uint32_t *taken)
{
    uint32_t count = dmg_ucx_carrier_receive(&connection->carrier, FRAMES_A_LOOK);
    connection->idle_looks = count != 0 ? 0 : connection->idle_looks + 1;
    *taken += count;
    return count == FRAMES_A_LOOK;
}

static uint32_t look_at_active(dmg_ucx_server *server)
{
    uint32_t taken = 0;
    for (dmg_ucx_connection **at = &server->active; *at != NULL;) {
        dmg_ucx_connection *connection = *at;
        bool has_more = connection->broken == NULL && take_frames(connection, &taken);
        if (connection->broken != NULL ||
            (!has_more && (connection->idle_looks > IDLE_LOOKS_MAX || server->active_count > ACTIVE_MAX))) {
            *at = connection->next_active;
            connection->is_active = false;
            server->active_count--;
        } else {
            at = &connection->next_active;
        }
    }
    return taken;
}

static uint32_t look_at_stream(dmg_ucx_server *server, uint32_t number, uint32_t what)
{
    dmg_ucx_connection *connection = number < server->place_count ? server->places[number].connection : NULL;
    uint32_t taken = 0;
    if (connection == NULL || connection->stage == DMG_UCX_STAGE_CLOSING || connection->broken != NULL) {
        return 0;
    }
    if (what & EPOLLOUT) {
        dmg_ucx_carrier_flush(&connection->carrier);
        dmg_ucx_events_follow(connection);
    }
    if ((what & ~(uint32_t)EPOLLOUT) == 0 || connection->is_active) {
        return 0;
    }
    bool has_more = take_frames(connection, &taken);
    if (has_more || (taken != 0 && server->active_count < ACTIVE_MAX)) {
        connection->is_active = true;
        connection->next_active = server->active;
        server->active = connection;
        server->active_count++;
    }
    return taken;
}

void dmg_ucx_events_forget(dmg_ucx_connection *connection)
{
    dmg_ucx_server *server = connection->server;
    for (dmg_ucx_connection **at = &server->active; connection->is_active; at = &(*at)->next_active) {
        if (*at == connection) {
            *at = connection->next_active;
            connection->is_active = false;
            server->active_count--;
            break;
        }
    }
}

/* ---- all ---- */

static void ask(dmg_ucx_server *server, int timeout_ms)
{
    int count = epoll_wait(server->events, server->ready, DMG_UCX_EVENTS_MAX, timeout_ms);
    server->ready_count = count > 0 ? (uint32_t)count : 0;
}

static uint32_t take_ready(dmg_ucx_server *server)
{
    uint32_t taken = 0;
    uint32_t count = server->ready_count;
    server->ready_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = (uint32_t)server->ready[i].data.u64;
        switch (server->ready[i].data.u64 >> 32) {
        case DMG_UCX_EVENT_STREAM:
            taken += look_at_stream(server, number, server->ready[i].events);
            break;
        case DMG_UCX_EVENT_LISTENER:
            server->has_guests = true;
            break;
        case DMG_UCX_EVENT_WAKE: {
            uint64_t wakes;
            ssize_t ignored = read(server->wake_event, &wakes, sizeof(wakes));
            (void)ignored;
            break;
        }
        default: /* UCX is looked after in every round */
            break;
        }
    }
    return taken;
}

uint32_t dmg_ucx_events_look(dmg_ucx_server *server)
{
    uint32_t taken = look_at_active(server);
    if (server->ready_count == 0) {
        uint32_t rounds = server->active != NULL && taken != 0 ? BUSY_ROUNDS : 1;
        if (++server->looks < rounds) {
            return taken;
        }
        server->looks = 0;
        ask(server, 0);
    }
    return taken + take_ready(server);
}

void dmg_ucx_events_wait(dmg_ucx_server *server, uint64_t timeout_ns)
{
    uint64_t timeout_ms = (timeout_ns + 999999) / 1000000;
    ask(server, timeout_ms > 60000 ? 60000 : (int)timeout_ms);
}
