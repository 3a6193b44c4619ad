/**
 * @file carrier.c
 * Carriers, and the way over the stream alone.
 *
 * A frame that goes over the stream is copied to the socket at once, or into what the stream keeps until the socket
 * takes it: its buffer is free again when it is sent.
 */
#include "transport/ucx/carrier.h"

#include <stdlib.h>
#include <string.h>

#define LAST_ROUNDS 64

static const char not_ours[] = "sent a frame that is not one of ours";

/* ---- frames ---- */

dmg_ucx_frame *dmg_ucx_frame_take(dmg_ucx_frames *frames)
{
    dmg_ucx_frame *frame = frames->free;
    if (frame != NULL) {
        frames->free = frame->next;
    } else {
        frame = aligned_alloc(64, (sizeof(*frame) + 63) & ~(size_t)63);
        if (frame == NULL) {
            return NULL;
        }
    }
    frame->next = NULL;
    frame->owner = NULL;
    frame->header = (dmg_ucx_header){.magic = DMG_UCX_MAGIC};
    return frame;
}

void dmg_ucx_frame_give(dmg_ucx_frames *frames, dmg_ucx_frame *frame)
{
    frame->next = frames->free;
    frames->free = frame;
}

void dmg_ucx_frames_clear(dmg_ucx_frames *frames)
{
    while (frames->free != NULL) {
        dmg_ucx_frame *frame = frames->free;
        frames->free = frame->next;
        free(frame);
    }
}

/* ---- what all ways need ---- */

void dmg_ucx_carrier_break(dmg_ucx_carrier *carrier, const char *why)
{
    if (carrier->broken == NULL) {
        carrier->broken = why;
        carrier->calls->on_broken(carrier->owner, why);
    }
}

void dmg_ucx_carrier_take(dmg_ucx_carrier *carrier, const dmg_ucx_header *header, const uint8_t *payload,
                          size_t payload_bytes)
{
    if (header->magic != DMG_UCX_MAGIC || header->bytes != payload_bytes || payload_bytes > DMG_UCX_FRAME_BYTES) {
        dmg_ucx_carrier_break(carrier, not_ours);
        return;
    }
    carrier->calls->on_frame(carrier->owner, header, payload);
}

/* ---- the stream ---- */

static void send_by_stream(dmg_ucx_carrier *carrier, dmg_ucx_frame *frame)
{
    if (carrier->broken == NULL &&
        !dmg_stream_send(carrier->stream, &frame->header, sizeof(frame->header), frame->payload, frame->header.bytes)) {
        /* Of a stream that has ended, what the other end said before is still to be read: then it is over. */
        if (dmg_stream_broken(carrier->stream) == NULL) {
            dmg_ucx_carrier_break(carrier, "does not take a frame");
        }
    }
    dmg_ucx_frame_give(carrier->frames, frame);
}

static size_t unsent_by_stream(const dmg_ucx_carrier *carrier)
{
    return carrier->stream != NULL ? dmg_stream_unsent_bytes(carrier->stream) : 0;
}

static bool close_stream(dmg_ucx_carrier *carrier)
{
    (void)carrier;
    return true;
}

const dmg_ucx_carrier_way dmg_ucx_way_stream = {
    .send = send_by_stream, .unsent_bytes = unsent_by_stream, .close = close_stream, .keeps_order = true};

/* ---- any ---- */

void dmg_ucx_carrier_begin(dmg_ucx_carrier *carrier, dmg_stream *stream, dmg_ucx_frames *frames,
                           const dmg_ucx_carrier_calls *calls, void *owner)
{
    *carrier = (dmg_ucx_carrier){
        .way = &dmg_ucx_way_stream, .stream = stream, .frames = frames, .calls = calls, .owner = owner};
}

void dmg_ucx_carrier_send(dmg_ucx_carrier *carrier, uint32_t kind, dmg_ucx_frame *frame)
{
    frame->header.kind = kind;
    if (kind == DMG_UCX_REQUESTS || kind == DMG_UCX_ANSWERS) {
        carrier->way->send(carrier, frame);
    } else {
        send_by_stream(carrier, frame);
    }
}

void dmg_ucx_carrier_flush(dmg_ucx_carrier *carrier)
{
    if (carrier->broken == NULL && carrier->stream != NULL && dmg_stream_unsent_bytes(carrier->stream) != 0) {
        (void)dmg_stream_flush(carrier->stream); /* a stream that has ended is over when it has been read */
    }
}

size_t dmg_ucx_carrier_unsent_bytes(const dmg_ucx_carrier *carrier)
{
    return carrier->way->unsent_bytes(carrier);
}

bool dmg_ucx_carrier_keeps_order(const dmg_ucx_carrier *carrier)
{
    return carrier->way->keeps_order;
}

bool dmg_ucx_carrier_waits_to_write(const dmg_ucx_carrier *carrier)
{
    return carrier->stream != NULL && dmg_stream_unsent_bytes(carrier->stream) != 0;
}

/** What had been sent another way before the stream ended comes first. */
static void break_at_the_end(dmg_ucx_carrier *carrier, const char *why)
{
    for (int round = 0; carrier->hub != NULL && round < LAST_ROUNDS && dmg_ucx_hub_progress(carrier->hub) != 0;
         round++) {
    }
    dmg_ucx_carrier_break(carrier, why);
}

uint32_t dmg_ucx_carrier_receive(dmg_ucx_carrier *carrier, uint32_t most)
{
    uint32_t count = 0;
    while (count < most && carrier->broken == NULL && carrier->stream != NULL) {
        size_t bytes;
        const uint8_t *record = dmg_stream_receive(carrier->stream, &bytes);
        if (record == NULL) {
            const char *why = dmg_stream_broken(carrier->stream);
            if (why != NULL) {
                break_at_the_end(carrier, why);
            }
            break;
        }
        count++;
        dmg_ucx_header header;
        if (bytes < sizeof(header)) {
            dmg_ucx_carrier_break(carrier, not_ours);
            break;
        }
        memcpy(&header, record, sizeof(header));
        dmg_ucx_carrier_take(carrier, &header, record + sizeof(header), bytes - sizeof(header));
    }
    return count;
}

bool dmg_ucx_carrier_close(dmg_ucx_carrier *carrier)
{
    if (carrier->way == NULL) {
        return true;
    }
    dmg_stream_close(carrier->stream);
    carrier->stream = NULL;
    if (carrier->hub != NULL) {
        dmg_ucx_hub_leave(carrier);
    }
    return carrier->way->close(carrier);
}
