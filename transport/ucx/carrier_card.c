/**
 * @file carrier_card.c
 * Requests and answers by a network card: a hub has a card's queues, a carrier a queue pair of them.
 *
 * Both ends have told each other the number of the queue pair over their stream. A queue pair takes packets from its
 * peer alone, and what a message costs the receiver is bounded by the queue that all of a hub share: a sender whose
 * peer is slow waits in its own card. A frame is copied to the card's buffers at once, or waits with its carrier.
 */
#include "core/base/error.h"
#include "transport/ucx/carrier.h"

#include <stdlib.h>
#include <string.h>

#define MESSAGE_ID 1

typedef struct card_hub {
    dmg_ucx_hub hub;
    dmg_ucx_port port;
    dmg_ucx_card_address offered;
    uint32_t waiting_count; /**< carriers with frames that the card has no room for */
} card_hub;

/* ---- what arrives ---- */

static ucs_status_t on_message(void *argument, void *data, size_t bytes, unsigned flags)
{
    (void)flags;
    card_hub *hub = argument;
    dmg_ucx_envelope envelope;
    if (bytes >= sizeof(envelope)) {
        memcpy(&envelope, data, sizeof(envelope));
        dmg_ucx_hub_take(&hub->hub, &envelope, (const uint8_t *)data + sizeof(envelope), bytes - sizeof(envelope));
    }
    return UCS_OK;
}

static void on_queue_pair_broken(void *context, uct_ep_h endpoint)
{
    card_hub *hub = context;
    for (uint32_t i = 0; i < hub->hub.carrier_count; i++) {
        if (hub->hub.carriers[i] != NULL && hub->hub.carriers[i]->queue_pair == endpoint) {
            dmg_ucx_carrier_break(hub->hub.carriers[i], "broke the connection");
        }
    }
}

/* ---- what leaves ---- */

static size_t copy_frame(void *to, void *argument)
{
    const dmg_ucx_frame *frame = argument;
    memcpy(to, &frame->envelope, sizeof(frame->envelope));
    memcpy((uint8_t *)to + sizeof(frame->envelope), frame->payload, frame->header.bytes);
    return sizeof(frame->envelope) + frame->header.bytes;
}

/** False when the card has no room. */
static bool post(dmg_ucx_carrier *carrier, dmg_ucx_frame *frame)
{
    ssize_t posted = uct_ep_am_bcopy(carrier->queue_pair, MESSAGE_ID, copy_frame, frame, 0);
    if (posted == UCS_ERR_NO_RESOURCE) {
        return false;
    }
    if (posted < 0) {
        dmg_ucx_carrier_break(carrier, "broke the connection");
    }
    return true;
}

static void send_by_card(dmg_ucx_carrier *carrier, dmg_ucx_frame *frame)
{
    if (carrier->broken != NULL || carrier->queue_pair == NULL) {
        dmg_ucx_frame_give(carrier->frames, frame);
        return;
    }
    frame->envelope =
        (dmg_ucx_envelope){.ticket = carrier->peer.ticket, .number = carrier->peer.number, .header = frame->header};
    if (carrier->waiting == NULL && post(carrier, frame)) {
        dmg_ucx_frame_give(carrier->frames, frame);
        return;
    }
    if (carrier->waiting == NULL) {
        carrier->waiting = frame;
        ((card_hub *)carrier->hub)->waiting_count++;
    } else {
        carrier->last_waiting->next = frame;
    }
    carrier->last_waiting = frame;
    carrier->held_frames++;
    carrier->held_bytes += frame->header.bytes;
}

/** Give back the frame that waits longest. */
static void drop_first(dmg_ucx_carrier *carrier)
{
    dmg_ucx_frame *frame = carrier->waiting;
    carrier->waiting = frame->next;
    carrier->held_frames--;
    carrier->held_bytes -= frame->header.bytes;
    dmg_ucx_frame_give(carrier->frames, frame);
    if (carrier->waiting == NULL) {
        ((card_hub *)carrier->hub)->waiting_count--;
    }
}

static uint32_t send_waiting(card_hub *hub)
{
    uint32_t sent = 0;
    for (uint32_t i = 0; i < hub->hub.carrier_count && hub->waiting_count != 0; i++) {
        dmg_ucx_carrier *carrier = hub->hub.carriers[i];
        while (carrier != NULL && carrier->waiting != NULL &&
               (carrier->broken != NULL || post(carrier, carrier->waiting))) {
            drop_first(carrier);
            sent++;
        }
    }
    return sent;
}

static size_t unsent_by_card(const dmg_ucx_carrier *carrier)
{
    return carrier->held_bytes;
}

/** Everything in flight is forgotten at once. */
static void leave_card(dmg_ucx_carrier *carrier)
{
    while (carrier->waiting != NULL) {
        drop_first(carrier);
    }
    if (carrier->queue_pair != NULL) {
        uct_ep_destroy(carrier->queue_pair);
        carrier->queue_pair = NULL;
    }
}

/* ---- hubs ---- */

static void close_hub(dmg_ucx_hub *hub)
{
    dmg_ucx_port_close(&((card_hub *)hub)->port);
    free(hub);
}

static uint32_t progress_hub(dmg_ucx_hub *hub)
{
    card_hub *moved = (card_hub *)hub;
    uint32_t count = uct_worker_progress(moved->port.worker);
    return moved->waiting_count != 0 ? count + send_waiting(moved) : count;
}

static bool arm_hub(dmg_ucx_hub *hub)
{
    return uct_iface_event_arm(((card_hub *)hub)->port.interface, UCT_EVENT_SEND_COMP | UCT_EVENT_RECV) == UCS_OK;
}

static const void *offer_queue_pair(dmg_ucx_carrier *carrier, uint32_t *address_bytes)
{
    card_hub *hub = (card_hub *)carrier->hub;
    *address_bytes = sizeof(hub->offered);
    return dmg_ucx_port_endpoint(&hub->port, &carrier->queue_pair, &hub->offered) == DMG_OK ? &hub->offered : NULL;
}

static dmg_status join_queue_pair(dmg_ucx_carrier *carrier, const void *address, uint32_t address_bytes)
{
    dmg_ucx_card_address peer;
    if (address_bytes != sizeof(peer)) {
        return dmg_error(DMG_ERR_PROTOCOL, "the other end told an address that is not a queue pair's");
    }
    memcpy(&peer, address, sizeof(peer));
    dmg_status status = dmg_ucx_port_connect(&((card_hub *)carrier->hub)->port, carrier->queue_pair, &peer);
    if (status == DMG_OK) {
        carrier->way = &dmg_ucx_way_card;
    }
    return status;
}

static const dmg_ucx_hub_kind kind = {.close = close_hub,
                                      .progress = progress_hub,
                                      .arm = arm_hub,
                                      .offer = offer_queue_pair,
                                      .join = join_queue_pair,
                                      .leave = leave_card};

dmg_status dmg_ucx_hub_open_on_card(dmg_ucx_card *card, dmg_ucx_hub **hub)
{
    card_hub *opened = calloc(1, sizeof(*opened));
    *hub = NULL;
    if (opened == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening a card for messages: out of memory");
    }
    opened->hub.kind = &kind;
    dmg_status status = dmg_ucx_port_open(card, DMG_UCX_PORT_TALKS, on_queue_pair_broken, opened, &opened->port);
    if (status == DMG_OK && opened->port.message_bytes_max < sizeof(dmg_ucx_envelope) + DMG_UCX_FRAME_BYTES) {
        status = dmg_error(DMG_ERR_UNSUPPORTED, "%s takes messages of %zu bytes only", dmg_ucx_card_device(card),
                           opened->port.message_bytes_max);
    }
    if (status == DMG_OK &&
        (uct_iface_set_am_handler(opened->port.interface, MESSAGE_ID, on_message, opened, 0) != UCS_OK ||
         uct_iface_event_fd_get(opened->port.interface, &opened->hub.event) != UCS_OK)) {
        status = dmg_error(DMG_ERR_UNSUPPORTED, "UCX takes no messages on %s, or cannot wake a thread that waits",
                           dmg_ucx_card_device(card));
    }
    if (status != DMG_OK) {
        dmg_ucx_hub_close(&opened->hub);
        return status;
    }
    *hub = &opened->hub;
    return DMG_OK;
}

/* ---- carriers ---- */

static bool is_closed(dmg_ucx_carrier *carrier)
{
    (void)carrier; /* it has left its hub, and nothing is held after that */
    return true;
}

const dmg_ucx_carrier_way dmg_ucx_way_card = {.send = send_by_card, .unsent_bytes = unsent_by_card, .close = is_closed};
