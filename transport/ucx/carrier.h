/**
 * @file carrier.h
 * How the frames of one connection travel, so that nobody else has to know.
 *
 * Every connection has a stream, over which its ends have greeted each other. What opens and closes a connection goes
 * over it, and its end is the end of the connection. Requests and answers go over it too, unless both ends have agreed
 * on messages of UCX: then each end has a *hub*, which all connections of a thread share, and both tell each other over
 * the stream how the hub is reached for this connection. A card's hub (carrier_card.c) has a queue pair for each; all
 * others (carrier_ucp.c) are a UCP worker, with an endpoint for each. UCX is never asked to listen for connections;
 * what UCX's own transports open by themselves (tcp does) is said by describe.c.
 *
 * A message that comes in by UCX shows the ticket that its receiver has told over the stream to its sender alone. What
 * does not is dropped.
 *
 * Not thread-safe: one thread at a time has a hub and its carriers.
 */
#ifndef DMG_TRANSPORT_UCX_CARRIER_H
#define DMG_TRANSPORT_UCX_CARRIER_H

#include "transport/stream/stream.h"
#include "transport/ucx/api.h"
#include "transport/ucx/card.h"
#include "transport/ucx/wire.h"

/* ---- frames: buffers of records on their way out ---- */

typedef struct dmg_ucx_frame {
    struct dmg_ucx_frame *next;
    void *owner; /**< the carrier that has it while it is on its way */
    dmg_ucx_header header;
    dmg_ucx_envelope envelope;
    uint8_t payload[DMG_UCX_FRAME_BYTES] __attribute__((aligned(16)));
} dmg_ucx_frame;

/** Frames that are free; one owner thread. */
typedef struct dmg_ucx_frames {
    dmg_ucx_frame *free;
} dmg_ucx_frames;

/** An empty frame, or NULL when the machine has no memory. */
dmg_ucx_frame *dmg_ucx_frame_take(dmg_ucx_frames *frames);
void dmg_ucx_frame_give(dmg_ucx_frames *frames, dmg_ucx_frame *frame);
void dmg_ucx_frames_clear(dmg_ucx_frames *frames);

/** Space for `bytes` more (padded) at the frame's end, counted as one record, or NULL when it is full. */
static inline uint8_t *dmg_ucx_frame_reserve(dmg_ucx_frame *frame, uint64_t bytes)
{
    if (bytes > DMG_UCX_FRAME_BYTES - frame->header.bytes) {
        return NULL;
    }
    uint8_t *at = frame->payload + frame->header.bytes;
    frame->header.bytes += (uint32_t)bytes;
    frame->header.count++;
    return at;
}

/* ---- hubs ---- */

typedef struct dmg_ucx_hub dmg_ucx_hub;
typedef struct dmg_ucx_carrier dmg_ucx_carrier;

/** What the kinds of hubs do, each in its way. */
typedef struct dmg_ucx_hub_kind {
    void (*close)(dmg_ucx_hub *hub);
    uint32_t (*progress)(dmg_ucx_hub *hub);
    bool (*arm)(dmg_ucx_hub *hub);
    /** How the hub is reached for this carrier: an address, valid until the next call, or NULL with the reason. */
    const void *(*offer)(dmg_ucx_carrier *carrier, uint32_t *address_bytes);
    dmg_status (*join)(dmg_ucx_carrier *carrier, const void *address, uint32_t address_bytes);
    /** The carrier is being closed: give back what offer and join took, unless its way does. NULL: nothing. */
    void (*leave)(dmg_ucx_carrier *carrier);
} dmg_ucx_hub_kind;

/** What all kinds have; it begins theirs. */
struct dmg_ucx_hub {
    const dmg_ucx_hub_kind *kind;
    int event;                  /**< a descriptor that tells that there is something to do */
    dmg_ucx_carrier **carriers; /**< by number */
    uint32_t carrier_count;
    uint32_t taken; /**< messages since the last look */
};

/** A UCP worker for messages in this context. `transports`: their names, for errors. */
dmg_status dmg_ucx_hub_open(ucp_context_h context, const char *transports, dmg_ucx_hub **hub);
/** Queues of this card for messages; the card outlives them. */
dmg_status dmg_ucx_hub_open_on_card(dmg_ucx_card *card, dmg_ucx_hub **hub);
/** All its carriers are closed, or never will be. NULL is allowed. */
void dmg_ucx_hub_close(dmg_ucx_hub *hub);
/** Send, and hand over what has arrived; returns how many things that were. */
uint32_t dmg_ucx_hub_progress(dmg_ucx_hub *hub);
/** Before a wait at its descriptor. False when there is something to do already. */
bool dmg_ucx_hub_arm(dmg_ucx_hub *hub);
int dmg_ucx_hub_descriptor(const dmg_ucx_hub *hub);
/** What arrives for this carrier is dropped from now on. */
void dmg_ucx_hub_leave(dmg_ucx_carrier *carrier);
/** For the kinds: a message has come. Handed over when it shows the ticket of the carrier that it is for. */
void dmg_ucx_hub_take(dmg_ucx_hub *hub, const dmg_ucx_envelope *envelope, const void *payload, size_t payload_bytes);

/* ---- carriers ---- */

/** What a carrier tells its owner. Neither may close it. */
typedef struct dmg_ucx_carrier_calls {
    /** A frame of ours has come; its payload has the bytes that the header says, and lies there during the call. */
    void (*on_frame)(void *owner, const dmg_ucx_header *header, const uint8_t *payload);
    /** Nothing comes or goes any more; `why` is a constant, as in "closed the connection". Once a carrier. */
    void (*on_broken)(void *owner, const char *why);
} dmg_ucx_carrier_calls;

/** How requests and answers go. */
typedef struct dmg_ucx_carrier_way {
    /** Send a frame whose header is complete, and give it back when it is sent, or cannot be. */
    void (*send)(dmg_ucx_carrier *carrier, dmg_ucx_frame *frame);
    size_t (*unsent_bytes)(const dmg_ucx_carrier *carrier);
    /** Let go of what is on its way; false while something is. May be called again and again. */
    bool (*close)(dmg_ucx_carrier *carrier);
    bool keeps_order;
} dmg_ucx_carrier_way;

extern const dmg_ucx_carrier_way dmg_ucx_way_stream;
extern const dmg_ucx_carrier_way dmg_ucx_way_ucp;
extern const dmg_ucx_carrier_way dmg_ucx_way_card;

struct dmg_ucx_carrier {
    const dmg_ucx_carrier_way *way; /**< NULL before dmg_ucx_carrier_begin */
    dmg_stream *stream;             /**< NULL after the close */
    dmg_ucx_frames *frames;
    const dmg_ucx_carrier_calls *calls;
    void *owner;
    const char *broken;
    /* By a hub: */
    dmg_ucx_hub *hub;
    uint32_t number;
    uint64_t ticket;
    dmg_ucx_reach peer;
    uint32_t held_frames; /**< that UCX has not let go of, or the card has no room for */
    size_t held_bytes;
    /* By UCP: */
    ucp_ep_h endpoint;
    void *close_request;
    /* By a card: */
    uct_ep_h queue_pair;
    dmg_ucx_frame *waiting; /**< frames that it has no room for, in order */
    dmg_ucx_frame *last_waiting;
};

/** The stream and the frames that are sent are the carrier's from now on; `frames` outlives it. */
void dmg_ucx_carrier_begin(dmg_ucx_carrier *carrier, dmg_stream *stream, dmg_ucx_frames *frames,
                           const dmg_ucx_carrier_calls *calls, void *owner);
/**
 * Be reachable by the hub's messages under a number that no other carrier of it has, and say how.
 *
 * @param[out] reach  for the other end
 * @param[out] address  of `reach->address_bytes` bytes, also for the other end; valid until the next call
 */
dmg_status dmg_ucx_carrier_offer(dmg_ucx_carrier *carrier, dmg_ucx_hub *hub, uint32_t number, dmg_ucx_reach *reach,
                                 const void **address);
/** Send requests and answers by the hub from now on, to the other end's address of `peer->address_bytes` bytes. */
dmg_status dmg_ucx_carrier_join(dmg_ucx_carrier *carrier, const dmg_ucx_reach *peer, const void *address);
/** Send a frame: requests and answers the agreed way, what opens and closes over the stream. It is the carrier's. */
void dmg_ucx_carrier_send(dmg_ucx_carrier *carrier, uint32_t kind, dmg_ucx_frame *frame);
/** Give the socket what it has not taken. */
void dmg_ucx_carrier_flush(dmg_ucx_carrier *carrier);
/** Bytes that were sent and have not left this process. */
size_t dmg_ucx_carrier_unsent_bytes(const dmg_ucx_carrier *carrier);
/** Whether frames arrive in the order in which they were sent, whatever their kind. */
bool dmg_ucx_carrier_keeps_order(const dmg_ucx_carrier *carrier);
/** Whether the stream waits for room in its socket. */
bool dmg_ucx_carrier_waits_to_write(const dmg_ucx_carrier *carrier);
/**
 * Take at most `most` frames that the stream has. What arrives by a hub comes out of dmg_ucx_hub_progress.
 *
 * @return how many there were
 */
uint32_t dmg_ucx_carrier_receive(dmg_ucx_carrier *carrier, uint32_t most);
/** Cut the connection. False while UCX holds something: call again after progress of the hub. */
bool dmg_ucx_carrier_close(dmg_ucx_carrier *carrier);
/** For the ways: note that it is over, and tell the owner. */
void dmg_ucx_carrier_break(dmg_ucx_carrier *carrier, const char *why);
/** For the ways: hand over a frame that has come, or break the carrier when it is none of ours. */
void dmg_ucx_carrier_take(dmg_ucx_carrier *carrier, const dmg_ucx_header *header, const uint8_t *payload,
                          size_t payload_bytes);

#endif
