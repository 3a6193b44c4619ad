/**
 * @file connections.c
 * The table of a memory node's connections: how they come, break and go.
 */
#include "core/base/clock.h"
#include "core/base/log.h"
#include "transport/ucx/server.h"

#include <stdlib.h>
#include <string.h>

/** Connections at once, a bound on what strangers can make the server keep. */
#define CONNECTIONS_MAX 4096
/** How long a server that ends waits for UCX to let go of its endpoints. */
#define CLOSE_NS UINT64_C(500000000)

void dmg_ucx_connection_break(dmg_ucx_connection *connection, const char *why)
{
    if (connection->broken == NULL) {
        connection->broken = why;
        connection->server->has_broken = true;
    }
}

static void on_endpoint_error(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    (void)endpoint, (void)status;
    dmg_ucx_connection_break(argument, "the connection broke");
}

void dmg_ucx_on_connection_request(ucp_conn_request_h request, void *argument)
{
    dmg_ucx_server *server = argument;
    uint32_t number = 0;
    while (number < server->place_count && server->places[number].connection != NULL) {
        number++;
    }
    if (number == server->place_count && number < CONNECTIONS_MAX) {
        uint32_t count = server->place_count == 0 ? 16 : 2 * server->place_count;
        dmg_ucx_place *places = realloc(server->places, count * sizeof(*places));
        if (places != NULL) {
            memset(places + server->place_count, 0, (count - server->place_count) * sizeof(*places));
            server->places = places;
            server->place_count = count;
        }
    }
    dmg_ucx_connection *connection = number < server->place_count ? calloc(1, sizeof(*connection)) : NULL;
    if (connection == NULL) {
        dmg_log(DMG_LOG_WARNING, "connection_refused", "node=%u connections=%u remedy=\"run fewer clients\"",
                server->node, server->connection_count);
        ucp_listener_reject(server->listener, request);
        return;
    }
    ucp_ep_params_t parameters = {
        .field_mask =
            UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .conn_request = request,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_endpoint_error, .arg = connection},
    };
    connection->server = server;
    ucs_status_t status = ucp_ep_create(server->worker, &parameters, &connection->endpoint);
    if (status != UCS_OK) {
        dmg_log(DMG_LOG_INFO, "connection_refused", "node=%u why=\"%s\"", server->node, ucs_status_string(status));
        free(connection);
        return;
    }
    connection->number = number;
    connection->generation = server->places[number].generation;
    connection->since_ns = dmg_server_watch(server->server)->now_ns;
    server->places[number].connection = connection;
    server->connection_count++;
    server->strangers++;
    server->handled++;
}

dmg_ucx_connection *dmg_ucx_sender(dmg_ucx_server *server, const dmg_ucx_header *header,
                                   const ucp_am_recv_param_t *from)
{
    if (!(from->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) || header->channel >= server->place_count) {
        return NULL;
    }
    dmg_ucx_connection *connection = server->places[header->channel].connection;
    return connection != NULL && connection->endpoint == from->reply_ep ? connection : NULL;
}

void dmg_ucx_endpoint_break(dmg_ucx_server *server, const ucp_am_recv_param_t *from, const char *why)
{
    if (!(from->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) {
        return;
    }
    for (uint32_t i = 0; i < server->place_count; i++) {
        dmg_ucx_connection *connection = server->places[i].connection;
        if (connection != NULL && connection->stage != DMG_UCX_STAGE_CLOSING &&
            connection->endpoint == from->reply_ep) {
            dmg_ucx_connection_break(connection, why);
        }
    }
}

void dmg_ucx_connection_part(dmg_ucx_connection *connection, dmg_status why)
{
    dmg_ucx_server *server = connection->server;
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
    if (connection->filling != NULL) {
        dmg_ucx_frame_give(&server->frames, connection->filling);
        connection->filling = NULL;
    }
    ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    void *request = ucp_ep_close_nbx(connection->endpoint, &parameters);
    connection->close_request = UCS_PTR_IS_PTR(request) ? request : NULL;
}

/** Free the connection when UCX holds neither its endpoint nor a frame of it. */
static void reap_connection(dmg_ucx_connection *connection)
{
    dmg_ucx_server *server = connection->server;
    if (connection->close_request != NULL && ucp_request_check_status(connection->close_request) != UCS_INPROGRESS) {
        ucp_request_free(connection->close_request);
        connection->close_request = NULL;
    }
    if (connection->close_request == NULL && connection->frames_in_flight == 0 && !connection->is_dirty) {
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

void dmg_ucx_connections_close_all(dmg_ucx_server *server)
{
    server->is_ending = true;
    for (uint32_t i = 0; i < server->place_count; i++) {
        if (server->places[i].connection != NULL) {
            dmg_ucx_connection_break(server->places[i].connection, "the memory node ends");
        }
    }
    uint64_t end_ns = dmg_now_ns() + CLOSE_NS;
    dmg_backoff backoff = {0};
    do {
        dmg_ucx_connections_sweep(server);
        if (ucp_worker_progress(server->worker) == 0) {
            dmg_backoff_wait(&backoff);
        }
        dmg_ucx_answers_flush(server);
    } while (server->connection_count != 0 && dmg_now_ns() < end_ns);
}
