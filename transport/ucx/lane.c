/**
 * @file lane.c
 * One-sided lanes to shared memory, and whether they are what they say.
 */
#include "core/base/error.h"
#include "transport/ucx/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

dmg_status dmg_ucx_lane_open(dmg_ucx_channel *channel, uint32_t node)
{
    dmg_ucx_client *client = channel->client;
    dmg_ucx_facts *facts = &client->facts[node];
    dmg_ucx_link *link = &channel->links[node];
    if (channel->data_worker == NULL) {
        dmg_status status = dmg_ucx_data_worker(client->data_context, facts->data, &channel->data_worker);
        if (status != DMG_OK) {
            return status;
        }
    }
    /* Shared memory has no error handling in UCX, and needs none: nothing there waits for a peer. */
    const ucp_ep_params_t parameters = {
        .field_mask = UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
        .err_mode = UCP_ERR_HANDLING_MODE_NONE,
        .address = (const ucp_address_t *)facts->data_address,
    };
    ucs_status_t status = ucp_ep_create(channel->data_worker, &parameters, &link->data_endpoint);
    if (status != UCS_OK) {
        link->data_endpoint = NULL;
    } else {
        status = ucp_ep_rkey_unpack(link->data_endpoint, facts->data_key, &link->key);
    }
    if (status != UCS_OK) {
        link->key = NULL;
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "reaching memory node %u (%s) one-sidedly through %s: %s (in a container, /proc may be "
                         "closed: set UCX_POSIX_USE_PROC_LINK=n on both sides)",
                         node, facts->address_text, facts->data, ucs_status_string(status));
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
