/**
 * @file connections.c
 * The table of a memory node's connections: how they come, break and go.
 *
 * Whoever gets here has proved to the listener that it knows the pool's secret. It has the peer timeout to say hello,
 * and to leave after its goodbye.
 */
#include "core/base/backoff.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/ucx/server.h"

#include <stdlib.h>
#include <string.h>

/** Connections at once, a bound on what clients can make the server keep. */
#define CONNECTIONS_MAX 4096
/** How long a server that ends waits for UCX to let go of its endpoints. */
#define CLOSE_NS UINT64_C(500000000)
/** How long it tries to send the last answers. */
#define LAST_ANSWERS_NS UINT64_C(100000000)

void dmg_ucx_connection_break(dmg_ucx_connection *connection, const char *why)
{
    if (connection->broken == NULL) {
        connection->broken = why;
        connection->server->has_broken = true;
    }
}

/** A free place in the table, or CONNECTIONS_MAX. */
static uint32_t find_place(dmg_ucx_server *server)
{
    uint32_t number = 0;
    while (number < server->place_count && server->places[number].connection != NULL) {
        number++;
    }
    if (number < server->place_count) {
        return number;
    }
    uint32_t count = server->place_count == 0 ? 16 : 2 * server->place_count;
    dmg_ucx_place *places = number < CONNECTIONS_MAX ? realloc(server->places, count * sizeof(*places)) : NULL;
    if (places == NULL) {
        return CONNECTIONS_MAX;
    }
    memset(places + server->place_count, 0, (count - server->place_count) * sizeof(*places));
    server->places = places;
    server->place_count = count;
    return number;
}

static void refuse(const dmg_ucx_server *server, dmg_stream *stream, const char *why)
{
    dmg_log(DMG_LOG_WARNING, "connection_refused", "node=%u connections=%u why=\"%s\" remedy=\"run fewer clients\"",
            server->node, server->connection_count, why);
    dmg_stream_close(stream);
}

void dmg_ucx_on_stream(void *context, dmg_stream *stream)
{
    dmg_ucx_server *server = context;
    uint32_t number = find_place(server);
    dmg_ucx_connection *connection = number < CONNECTIONS_MAX ? calloc(1, sizeof(*connection)) : NULL;
    if (connection == NULL) {
        refuse(server, stream, number < CONNECTIONS_MAX ? "out of memory" : "there are too many");
        return;
    }
    connection->server = server;
    connection->number = number;
    connection->generation = server->places[number].generation;
    connection->since_ns = dmg_server_watch(server->server)->now_ns;
    connection->socket = dmg_stream_socket(stream);
    if (dmg_ucx_events_add(server, connection->socket, DMG_UCX_EVENT_STREAM, number) != DMG_OK) {
        refuse(server, stream, dmg_error_message());
        free(connection);
        return;
    }
    dmg_ucx_carrier_begin(&connection->carrier, stream, &server->frames, &dmg_ucx_server_calls, connection);
    server->places[number].connection = connection;
    server->connection_count++;
    server->strangers++;
    server->handled++;
}

void dmg_ucx_connection_part(dmg_ucx_connection *connection, dmg_status why)
{
    dmg_ucx_server *server = connection->server;
    dmg_ucx_lane_cut(connection);
    if (connection->stage != DMG_UCX_STAGE_WELCOMED) {
        server->strangers--;
    } else if (!server->is_ending) {
        dmg_server_channel_closed(server->server, connection->client, why);
    }
}

static void close_connection(dmg_ucx_connection *connection)
{
    dmg_ucx_server *server = connection->server;
    if (connection->stage == DMG_UCX_STAGE_WELCOMED && !server->is_ending) {
        dmg_log(DMG_LOG_INFO, "channel_lost", "node=%u client=%016llx why=\"%s\"", server->node,
                (unsigned long long)connection->client, connection->broken);
    }
    dmg_ucx_connection_part(connection, DMG_ERR_PEER);
    connection->stage = DMG_UCX_STAGE_CLOSING;
    server->closing_count++;
    server->places[connection->number].generation++;
    dmg_ucx_events_forget(connection);
    if (connection->filling != NULL) {
        dmg_ucx_frame_give(&server->frames, connection->filling);
        connection->filling = NULL;
    }
}

/** Free the connection when UCX holds nothing of it. */
static void reap_connection(dmg_ucx_connection *connection)
{
    dmg_ucx_server *server = connection->server;
    if (dmg_ucx_carrier_close(&connection->carrier) && !connection->is_dirty) {
        server->places[connection->number].connection = NULL;
        server->connection_count--;
        server->closing_count--;
        free(connection);
    }
}

void dmg_ucx_connections_sweep(dmg_ucx_server *server)
{
    const dmg_watch *watch = dmg_server_watch(server->server);
    if (!server->has_broken && server->closing_count == 0 &&
        (server->strangers == 0 || watch->now_ns < server->next_sweep_ns)) {
        return;
    }
    server->next_sweep_ns = watch->now_ns + server->hello_timeout_ns / 8;
    server->has_broken = false;
    for (uint32_t i = 0; i < server->place_count; i++) {
        dmg_ucx_connection *connection = server->places[i].connection;
        if (connection == NULL) {
            continue;
        }
        bool is_stranger = connection->stage == DMG_UCX_STAGE_NEW || connection->stage == DMG_UCX_STAGE_PARTED;
        if (is_stranger && dmg_watch_silence_ns(watch, connection->since_ns) > server->hello_timeout_ns) {
            dmg_ucx_connection_break(connection, "it neither said hello nor left in time");
        }
        if (connection->broken != NULL && connection->stage != DMG_UCX_STAGE_CLOSING) {
            close_connection(connection);
        }
        if (connection->stage == DMG_UCX_STAGE_CLOSING) {
            reap_connection(connection);
        }
    }
}

/** Tell a client why, and close; one that has not taken what was sent before keeps its connection, and is refused. */
static void give_up(dmg_ucx_connection *connection, const char *why)
{
    dmg_ucx_frame *frame = dmg_ucx_frame_take(&connection->server->frames);
    if (frame != NULL) {
        size_t bytes = strlen(why);
        memcpy(dmg_ucx_frame_reserve(frame, bytes), why, bytes);
        dmg_ucx_carrier_send(&connection->carrier, DMG_UCX_FAREWELL, frame);
        dmg_ucx_carrier_flush(&connection->carrier);
    }
    if (dmg_ucx_carrier_unsent_bytes(&connection->carrier) == 0) {
        dmg_ucx_connection_break(connection, "its client was given up");
    }
}

void dmg_ucx_server_break_client(dmg_backend_server *base, uint64_t client, const char *why)
{
    dmg_ucx_server *server = (dmg_ucx_server *)base;
    for (uint32_t i = 0; i < server->place_count; i++) {
        dmg_ucx_connection *connection = server->places[i].connection;
        if (connection != NULL && connection->stage == DMG_UCX_STAGE_WELCOMED && connection->client == client &&
            connection->broken == NULL) {
            give_up(connection, why);
        }
    }
    dmg_ucx_connections_sweep(server);
}

/** The last answers, by which a client may have asked for this end. */
static void send_what_waits(dmg_ucx_server *server)
{
    uint64_t end_ns = dmg_now_ns() + LAST_ANSWERS_NS;
    dmg_backoff backoff = {0};
    for (;;) {
        dmg_ucx_answers_flush(server);
        if (server->hub != NULL) {
            dmg_ucx_hub_progress(server->hub);
        }
        bool is_sent = true;
        for (uint32_t i = 0; i < server->place_count; i++) {
            dmg_ucx_connection *connection = server->places[i].connection;
            if (connection != NULL && connection->broken == NULL) {
                dmg_ucx_carrier_flush(&connection->carrier);
                is_sent &= dmg_ucx_carrier_unsent_bytes(&connection->carrier) == 0;
            }
        }
        if (is_sent || dmg_now_ns() >= end_ns) {
            return;
        }
        dmg_backoff_wait(&backoff);
    }
}

void dmg_ucx_connections_close_all(dmg_ucx_server *server)
{
    server->is_ending = true;
    send_what_waits(server);
    for (uint32_t i = 0; i < server->place_count; i++) {
        if (server->places[i].connection != NULL) {
            dmg_ucx_connection_break(server->places[i].connection, "the memory node ends");
        }
    }
    uint64_t end_ns = dmg_now_ns() + CLOSE_NS;
    dmg_backoff backoff = {0};
    for (;;) {
        dmg_ucx_answers_flush(server);
        dmg_ucx_connections_sweep(server);
        if (server->connection_count == 0 || dmg_now_ns() >= end_ns) {
            return;
        }
        if (server->hub == NULL || dmg_ucx_hub_progress(server->hub) == 0) {
            dmg_backoff_wait(&backoff);
        }
    }
}
