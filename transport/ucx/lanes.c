/**
 * @file lanes.c
 * The memory node's ends of one-sided lanes over a network card.
 *
 * A client asks for a lane over its connection, which it has proved itself for, and tells the address of its queue
 * pair. It gets one of its own here, with queues of its own, that no thread looks at: the card alone answers reads and
 * writes, so nothing that comes over RDMA is ever taken apart by this program. The lane goes with its connection, and
 * when the client is given up; when it is closed, the card has no queue any more that takes anything of the client.
 */
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/ucx/server.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct dmg_ucx_lane {
    dmg_ucx_port port;
    uct_ep_h endpoint;
};

static void lane_close(dmg_ucx_lane *lane)
{
    if (lane->endpoint != NULL) {
        uct_ep_destroy(lane->endpoint);
    }
    dmg_ucx_port_close(&lane->port);
    free(lane);
}

static dmg_status lane_open(dmg_ucx_server *server, const dmg_ucx_card_address *peer, dmg_ucx_lane_answer *answer,
                            dmg_ucx_lane **opened)
{
    dmg_ucx_lane *lane = calloc(1, sizeof(*lane));
    if (lane == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "the memory node has no memory for a lane");
    }
    memset(answer, 0, sizeof(*answer));
    dmg_status status = dmg_ucx_port_open(server->card, DMG_UCX_PORT_SERVES, NULL, NULL, &lane->port);
    if (status == DMG_OK) {
        status = dmg_ucx_port_endpoint(&lane->port, &lane->endpoint, &answer->address);
    }
    if (status == DMG_OK) {
        status = dmg_ucx_port_connect(&lane->port, lane->endpoint, peer);
    }
    if (status == DMG_OK) {
        status = dmg_ucx_card_pack_key(&server->card_memory, answer->key, &answer->key_bytes);
    }
    if (status != DMG_OK) {
        lane_close(lane);
        return status;
    }
    *opened = lane;
    return DMG_OK;
}

void dmg_ucx_lane_serve(dmg_ucx_connection *connection, uint64_t id, const dmg_ucx_card_address *peer)
{
    dmg_ucx_server *server = connection->server;
    dmg_ucx_lane_answer answer;
    dmg_status status =
        server->card != NULL ? DMG_OK : dmg_error(DMG_ERR_UNSUPPORTED, "this memory node offers no lane over a card");
    dmg_ucx_lane_cut(connection);
    if (status == DMG_OK) {
        status = lane_open(server, peer, &answer, &connection->lane);
    }
    if (status != DMG_OK) {
        dmg_log(DMG_LOG_WARNING, "lane_refused", "node=%u client=%016" PRIx64 " why=\"%s\"", server->node,
                connection->client, dmg_error_message());
        dmg_ucx_answer_error(connection, id, status, dmg_error_message());
        return;
    }
    void *to = dmg_ucx_answer_begin(connection, id, DMG_OK, sizeof(answer));
    if (to != NULL) {
        memcpy(to, &answer, sizeof(answer));
    }
}

void dmg_ucx_lane_cut(dmg_ucx_connection *connection)
{
    if (connection->lane != NULL) {
        lane_close(connection->lane);
        connection->lane = NULL;
    }
}

bool dmg_ucx_server_fence(dmg_backend_server *base, uint64_t client)
{
    dmg_ucx_server *server = (dmg_ucx_server *)base;
    if (server->card == NULL) {
        return server->data_transports[0] == '\0';
    }
    for (uint32_t i = 0; i < server->place_count; i++) {
        if (server->places[i].connection != NULL && server->places[i].connection->client == client) {
            dmg_ucx_lane_cut(server->places[i].connection);
        }
    }
    return true;
}
