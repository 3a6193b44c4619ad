/**
 * @file lanes.c
 * The memory node's ends of one-sided lanes over a network card.
 *
 * A lane begins at a listener of its own, at the address of the card's network interface. So either end knows the
 * other: a compute node that is gone is let go of, with what the card keeps for it. And the connections need no
 * unreliable datagrams: UCX ends its process when the link of such a queue goes down, or when nobody answers there.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/ucx/server.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Lanes at once, a bound on what strangers can make the server keep. */
#define LANES_MAX 4096
#define CLOSE_NS  UINT64_C(500000000)

static void on_lane_error(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    (void)endpoint, (void)status;
    dmg_ucx_lane *lane = argument;
    lane->is_broken = true;
    lane->server->has_broken_lane = true;
}

static uint32_t count_lanes(const dmg_ucx_server *server)
{
    uint32_t count = 0;
    for (const dmg_ucx_lane *lane = server->lanes; lane != NULL; lane = lane->next) {
        count++;
    }
    return count;
}

static void on_lane_request(ucp_conn_request_h request, void *argument)
{
    dmg_ucx_server *server = argument;
    dmg_ucx_lane *lane = count_lanes(server) < LANES_MAX ? calloc(1, sizeof(*lane)) : NULL;
    if (lane == NULL) {
        dmg_log(DMG_LOG_WARNING, "lane_refused", "node=%u remedy=\"run fewer clients\"", server->node);
        ucp_listener_reject(server->lane_listener, request);
        return;
    }
    lane->server = server;
    ucp_ep_params_t parameters = {
        .field_mask =
            UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .conn_request = request,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_lane_error, .arg = lane},
    };
    ucs_status_t status = ucp_ep_create(server->data_worker, &parameters, &lane->endpoint);
    if (status != UCS_OK) {
        dmg_log(DMG_LOG_INFO, "lane_refused", "node=%u why=\"%s\"", server->node, ucs_status_string(status));
        free(lane);
        return;
    }
    lane->next = server->lanes;
    server->lanes = lane;
}

bool dmg_ucx_lanes_listen(dmg_ucx_server *server, const dmg_ucx_settings *settings)
{
    struct sockaddr_storage address;
    socklen_t address_bytes;
    if (!dmg_ucx_rdma_address(settings->rdma_devices, &address, &address_bytes)) {
        dmg_error(DMG_ERR_UNSUPPORTED, "the device has no IP address");
        return false;
    }
    ucp_listener_params_t parameters = {
        .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .sockaddr = {.addr = (const struct sockaddr *)&address, .addrlen = address_bytes},
        .conn_handler = {.cb = on_lane_request, .arg = server},
    };
    ucs_status_t status = ucp_listener_create(server->data_worker, &parameters, &server->lane_listener);
    ucp_listener_attr_t attributes = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
    if (status == UCS_OK) {
        status = ucp_listener_query(server->lane_listener, &attributes);
    } else {
        server->lane_listener = NULL;
    }
    if (status != UCS_OK) {
        dmg_error(DMG_ERR_UNSUPPORTED, "listening at the device's address: %s", ucs_status_string(status));
        return false;
    }
    in_port_t port = attributes.sockaddr.ss_family == AF_INET6
                         ? ((const struct sockaddr_in6 *)&attributes.sockaddr)->sin6_port
                         : ((const struct sockaddr_in *)&attributes.sockaddr)->sin_port;
    dmg_ucx_print_address(&address, ntohs(port), server->lane_address, sizeof(server->lane_address));
    return true;
}

/** True when UCX holds nothing of it any more. */
static bool close_lane(dmg_ucx_lane *lane)
{
    if (lane->endpoint != NULL) {
        ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
        void *request = ucp_ep_close_nbx(lane->endpoint, &parameters);
        lane->endpoint = NULL;
        lane->close_request = UCS_PTR_IS_PTR(request) ? request : NULL;
    }
    if (lane->close_request != NULL && ucp_request_check_status(lane->close_request) != UCS_INPROGRESS) {
        ucp_request_free(lane->close_request);
        lane->close_request = NULL;
    }
    return lane->close_request == NULL;
}

void dmg_ucx_lanes_sweep(dmg_ucx_server *server)
{
    if (!server->has_broken_lane) {
        return;
    }
    server->has_broken_lane = false;
    for (dmg_ucx_lane **at = &server->lanes; *at != NULL;) {
        dmg_ucx_lane *lane = *at;
        if (lane->is_broken && close_lane(lane)) {
            *at = lane->next;
            free(lane);
            continue;
        }
        server->has_broken_lane |= lane->is_broken;
        at = &lane->next;
    }
}

void dmg_ucx_lanes_close_all(dmg_ucx_server *server)
{
    if (server->lane_listener != NULL) {
        ucp_listener_destroy(server->lane_listener);
    }
    for (dmg_ucx_lane *lane = server->lanes; lane != NULL; lane = lane->next) {
        lane->is_broken = true;
        server->has_broken_lane = true;
    }
    uint64_t end_ns = dmg_now_ns() + CLOSE_NS;
    dmg_backoff backoff = {0};
    dmg_ucx_lanes_sweep(server);
    while (server->lanes != NULL && dmg_now_ns() < end_ns) {
        if (ucp_worker_progress(server->data_worker) == 0) {
            dmg_backoff_wait(&backoff);
        }
        dmg_ucx_lanes_sweep(server);
    }
}
