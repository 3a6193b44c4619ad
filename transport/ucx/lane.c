/**
 * @file lane.c
 * One-sided lanes: how a channel's way to a segment opens, and whether it is what it says.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/ucx/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** How long UCX may take to let go of a lane that did not open. */
#define CLOSE_NS UINT64_C(500000000)

static void on_data_endpoint_error(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    (void)endpoint, (void)status;
    dmg_ucx_link *link = argument;
    if (link->broken == NULL) {
        link->broken = "broke the one-sided lane";
    }
}

/** Create the endpoint: at a listener, where both ends have one that tells of the other's death, or of a worker. */
static ucs_status_t create_endpoint(dmg_ucx_channel *channel, uint32_t node)
{
    const dmg_ucx_facts *facts = &channel->client->facts[node];
    dmg_ucx_link *link = &channel->links[node];
    bool is_nic = channel->client->data == DMG_UCX_DATA_NIC;
    /* Shared memory has no error handling in UCX, and needs none: nothing there waits for a peer. */
    ucp_ep_params_t parameters = {
        .field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER,
        .err_mode = is_nic ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE,
        .err_handler = {.cb = on_data_endpoint_error, .arg = link},
    };
    struct sockaddr_storage address;
    socklen_t address_bytes;
    if (facts->lane == DMG_UCX_LANE_BY_LISTENER) {
        if (dmg_ucx_resolve((const char *)facts->data_address, 0, &address, &address_bytes) != DMG_OK) {
            return UCS_ERR_INVALID_ADDR;
        }
        parameters.field_mask |= UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
        parameters.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
        parameters.sockaddr.addr = (const struct sockaddr *)&address;
        parameters.sockaddr.addrlen = address_bytes;
    } else {
        parameters.field_mask |= UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        parameters.address = (const ucp_address_t *)facts->data_address;
    }
    return ucp_ep_create(channel->data_worker, &parameters, &link->data_endpoint);
}

/** Give up a lane that did not open. UCX ends the process when one by a worker's address is closed half open: it stays.
 */
static void abandon_lane(dmg_ucx_channel *channel, uint32_t node)
{
    dmg_ucx_link *link = &channel->links[node];
    if (channel->client->facts[node].lane == DMG_UCX_LANE_BY_LISTENER) {
        dmg_ucx_close_now(channel->data_worker, link->data_endpoint, UCP_EP_CLOSE_FLAG_FORCE, CLOSE_NS);
    } else {
        channel->has_stuck_lane = true;
        atomic_store(&channel->client->has_stuck_lane, true);
    }
    link->data_endpoint = NULL;
}

/** Wait until the other end has joined a card's lane, which a flush tells. */
static dmg_status await_lane(dmg_ucx_channel *channel, uint32_t node)
{
    dmg_ucx_link *link = &channel->links[node];
    const ucp_request_param_t parameters = {.op_attr_mask = 0};
    void *request = ucp_ep_flush_nbx(link->data_endpoint, &parameters);
    ucs_status_t status = UCS_PTR_STATUS(request);
    if (UCS_PTR_IS_PTR(request)) {
        dmg_watch watch;
        dmg_watch_start(&watch, channel->client->peer_timeout_ns, dmg_now_ns());
        dmg_backoff backoff = {0};
        do {
            if (ucp_worker_progress(channel->data_worker) == 0) {
                dmg_backoff_wait(&backoff);
            }
            status = ucp_request_check_status(request);
        } while (status == UCS_INPROGRESS && link->broken == NULL && !dmg_watch_wait_is_over(&watch, dmg_now_ns()) &&
                 !atomic_load_explicit(&channel->client->nodes[node].dead, memory_order_acquire));
        ucp_request_free(request);
    }
    if (status == UCS_OK) {
        return DMG_OK;
    }
    abandon_lane(channel, node);
    const dmg_ucx_facts *facts = &channel->client->facts[node];
    return dmg_error(DMG_ERR_UNSUPPORTED,
                     "memory node %u (%s) did not answer on its one-sided lane over %s: do RDMA packets pass between "
                     "the devices (RoCE: UDP port 4791), and is device= right?",
                     node, facts->address_text, facts->data);
}

dmg_status dmg_ucx_lane_open(dmg_ucx_channel *channel, uint32_t node)
{
    dmg_ucx_client *client = channel->client;
    dmg_ucx_facts *facts = &client->facts[node];
    dmg_ucx_link *link = &channel->links[node];
    bool is_nic = client->data == DMG_UCX_DATA_NIC;
    if (channel->data_worker == NULL) {
        dmg_status status = dmg_ucx_data_worker(client->data_context, facts->data, &channel->data_worker);
        if (status != DMG_OK) {
            return status;
        }
        if (is_nic && ucp_worker_get_efd(channel->data_worker, &channel->data_event) != UCS_OK) {
            channel->data_event = -1;
            return dmg_error(DMG_ERR_UNSUPPORTED, "data=%s: this UCX transport cannot wake a sleeping thread",
                             facts->data);
        }
    }
    ucs_status_t status = create_endpoint(channel, node);
    if (status != UCS_OK) {
        link->data_endpoint = NULL;
    } else if (is_nic && await_lane(channel, node) != DMG_OK) {
        return DMG_ERR_UNSUPPORTED;
    } else {
        status = ucp_ep_rkey_unpack(link->data_endpoint, facts->data_key, &link->key);
    }
    if (status != UCS_OK) {
        link->key = NULL;
        return dmg_error(
            DMG_ERR_UNSUPPORTED, "reaching memory node %u (%s) one-sidedly through %s: %s%s", node, facts->address_text,
            facts->data, ucs_status_string(status),
            is_nic ? "" : " (in a container, /proc may be closed: set UCX_POSIX_USE_PROC_LINK=n on both sides)");
    }
    return DMG_OK;
}

bool dmg_ucx_lane_is_real(ucp_ep_h endpoint)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *file = open_memstream(&text, &bytes);
    if (file == NULL) {
        return false;
    }
    ucp_ep_print_info(endpoint, file);
    fclose(file);
    bool is_real = text != NULL && strstr(text, "put[") != NULL && strstr(text, "get[") != NULL;
    free(text);
    return is_real;
}
