/**
 * @file carrier_ucp.c
 * Requests and answers by UCP active messages: a hub is a worker, a carrier has an endpoint of it.
 *
 * Endpoints are made of workers' addresses, which both ends have told each other over their stream, each by its own
 * end. So there is no listener of UCX, and the death of a peer is told by its stream; UCX's own error handling is there
 * so that what is in flight can be cancelled. Every message is one eager one, of an id that is the same for all.
 */
#include "core/base/error.h"
#include "transport/ucx/carrier.h"
#include "transport/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>

#define MESSAGE_ID 1
/** Behind an address that a peer told: UCX takes it apart without looking for its end. */
#define ADDRESS_PADDING_BYTES 256

typedef struct ucp_hub {
    dmg_ucx_hub hub;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_bytes;
} ucp_hub;

/* ---- what arrives ---- */

static ucs_status_t on_message(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                               const ucp_am_recv_param_t *from)
{
    ucp_hub *opened = argument;
    dmg_ucx_envelope envelope;
    /* None of ours comes in another way than as a whole: then it is taken for one without a payload, and is none. */
    size_t taken_bytes = from->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV ? 0 : bytes;
    if (header_bytes == sizeof(envelope)) {
        memcpy(&envelope, header, sizeof(envelope));
        dmg_ucx_hub_take(&opened->hub, &envelope, data, taken_bytes);
    }
    return UCS_OK;
}

static ucs_status_t on_unknown_message(void *argument, const void *header, size_t header_bytes, void *data,
                                       size_t bytes, const ucp_am_recv_param_t *from)
{
    (void)argument, (void)header, (void)header_bytes, (void)data, (void)bytes, (void)from;
    return UCS_OK;
}

static dmg_status set_handler(ucp_hub *hub, unsigned id, ucp_am_recv_callback_t handler)
{
    ucp_am_handler_param_t parameters = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = id,
        .cb = handler,
        .arg = hub,
    };
    ucs_status_t status = ucp_worker_set_am_recv_handler(hub->worker, &parameters);
    return status == UCS_OK
               ? DMG_OK
               : dmg_error(DMG_ERR_INTERNAL, "setting a UCX message handler: %s", ucs_status_string(status));
}

/** UCX 1.13 looks handlers up in a table that ends with the largest id that has one; it neither checks a message's id
 * against its end nor clears what lies between. Without handlers for all, one message of a stranger ends the process.
 */
static dmg_status set_handlers(ucp_hub *hub)
{
    dmg_status status = DMG_OK;
    for (uint32_t id = UINT16_MAX + 1; status == DMG_OK && id > 0; id--) {
        status = set_handler(hub, id - 1, on_unknown_message);
    }
    return status == DMG_OK ? set_handler(hub, MESSAGE_ID, on_message) : status;
}

/* ---- hubs ---- */

static void close_hub(dmg_ucx_hub *hub)
{
    ucp_hub *closed = (ucp_hub *)hub;
    if (closed->address != NULL) {
        ucp_worker_release_address(closed->worker, closed->address);
    }
    if (closed->worker != NULL) {
        ucp_worker_destroy(closed->worker);
    }
    free(closed);
}

static uint32_t progress_hub(dmg_ucx_hub *hub)
{
    return ucp_worker_progress(((ucp_hub *)hub)->worker);
}

static bool arm_hub(dmg_ucx_hub *hub)
{
    return ucp_worker_arm(((ucp_hub *)hub)->worker) == UCS_OK;
}

static const void *offer_worker(dmg_ucx_carrier *carrier, uint32_t *address_bytes)
{
    const ucp_hub *hub = (const ucp_hub *)carrier->hub;
    *address_bytes = (uint32_t)hub->address_bytes;
    return hub->address;
}

static dmg_status join_worker(dmg_ucx_carrier *carrier, const void *address, uint32_t address_bytes);

static const dmg_ucx_hub_kind kind = {
    .close = close_hub, .progress = progress_hub, .arm = arm_hub, .offer = offer_worker, .join = join_worker};

static dmg_status open_worker(ucp_hub *hub, ucp_context_h context, const char *transports)
{
    dmg_status status = dmg_ucx_worker(context, &hub->worker);
    if (status == DMG_OK) {
        status = set_handlers(hub);
    }
    if (status == DMG_OK && ucp_worker_get_efd(hub->worker, &hub->hub.event) != UCS_OK) {
        status =
            dmg_error(DMG_ERR_UNSUPPORTED, "messages=%s: this UCX transport cannot wake a sleeping thread", transports);
    }
    if (status == DMG_OK && ucp_worker_get_address(hub->worker, &hub->address, &hub->address_bytes) != UCS_OK) {
        hub->address = NULL;
        status = dmg_error(DMG_ERR_UNSUPPORTED, "messages=%s: UCX gives no address of its worker", transports);
    }
    if (status == DMG_OK && hub->address_bytes > DMG_UCX_FRAME_BYTES / 4) {
        status = dmg_error(DMG_ERR_LIMIT,
                           "messages=%s: UCX's address has %zu bytes: name one device with device=", transports,
                           hub->address_bytes);
    }
    return status;
}

dmg_status dmg_ucx_hub_open(ucp_context_h context, const char *transports, dmg_ucx_hub **hub)
{
    ucp_hub *opened = calloc(1, sizeof(*opened));
    *hub = NULL;
    if (opened == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening UCX for messages: out of memory");
    }
    opened->hub.kind = &kind;
    dmg_status status = open_worker(opened, context, transports);
    if (status != DMG_OK) {
        dmg_ucx_hub_close(&opened->hub);
        return status;
    }
    *hub = &opened->hub;
    return DMG_OK;
}

/* ---- carriers ---- */

static void on_endpoint_error(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    (void)endpoint, (void)status;
    dmg_ucx_carrier_break(argument, "broke the connection");
}

static dmg_status join_worker(dmg_ucx_carrier *carrier, const void *address, uint32_t address_bytes)
{
    uint8_t *copy = calloc(1, (size_t)address_bytes + ADDRESS_PADDING_BYTES);
    if (copy == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening a connection: out of memory");
    }
    memcpy(copy, address, address_bytes);
    ucp_ep_params_t parameters = {
        .field_mask =
            UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .address = (const ucp_address_t *)copy,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_endpoint_error, .arg = carrier},
    };
    ucs_status_t status = ucp_ep_create(((ucp_hub *)carrier->hub)->worker, &parameters, &carrier->endpoint);
    free(copy);
    if (status != UCS_OK) {
        carrier->endpoint = NULL;
        return dmg_error(DMG_ERR_UNSUPPORTED, "UCX finds no way to the other end: %s", ucs_status_string(status));
    }
    carrier->way = &dmg_ucx_way_ucp;
    return DMG_OK;
}

static void on_frame_sent(void *request, ucs_status_t status, void *argument)
{
    (void)status; /* a failure shows on the endpoint */
    dmg_ucx_frame *frame = argument;
    dmg_ucx_carrier *carrier = frame->owner;
    carrier->held_frames--;
    carrier->held_bytes -= frame->header.bytes;
    dmg_ucx_frame_give(carrier->frames, frame);
    if (request != NULL) {
        ucp_request_free(request);
    }
}

static void send_by_ucp(dmg_ucx_carrier *carrier, dmg_ucx_frame *frame)
{
    if (carrier->broken != NULL || carrier->endpoint == NULL) {
        dmg_ucx_frame_give(carrier->frames, frame);
        return;
    }
    frame->owner = carrier;
    frame->envelope =
        (dmg_ucx_envelope){.ticket = carrier->peer.ticket, .number = carrier->peer.number, .header = frame->header};
    carrier->held_frames++;
    carrier->held_bytes += frame->header.bytes;
    ucp_request_param_t parameters = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = on_frame_sent,
        .user_data = frame,
    };
    void *request = ucp_am_send_nbx(carrier->endpoint, MESSAGE_ID, &frame->envelope, sizeof(frame->envelope),
                                    frame->payload, frame->header.bytes, &parameters);
    if (!UCS_PTR_IS_PTR(request)) {
        if (UCS_PTR_IS_ERR(request)) {
            dmg_ucx_carrier_break(carrier, "broke the connection");
        }
        on_frame_sent(NULL, UCS_OK, frame);
    }
}

static size_t unsent_by_ucp(const dmg_ucx_carrier *carrier)
{
    return carrier->held_bytes;
}

static bool close_endpoint(dmg_ucx_carrier *carrier)
{
    if (carrier->endpoint != NULL) {
        ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
        void *request = ucp_ep_close_nbx(carrier->endpoint, &parameters);
        carrier->endpoint = NULL;
        carrier->close_request = UCS_PTR_IS_PTR(request) ? request : NULL;
    }
    if (carrier->close_request != NULL && ucp_request_check_status(carrier->close_request) != UCS_INPROGRESS) {
        ucp_request_free(carrier->close_request);
        carrier->close_request = NULL;
    }
    return carrier->close_request == NULL && carrier->held_frames == 0;
}

const dmg_ucx_carrier_way dmg_ucx_way_ucp = {
    .send = send_by_ucp, .unsent_bytes = unsent_by_ucp, .close = close_endpoint};
