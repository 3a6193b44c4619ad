#include "core/store/write_stream.h"

#include "core/base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

dmg_status dmg_write_stream_open(dmg_channel *channel, uint64_t buffer_bytes, dmg_write_stream *stream)
{
    const uint32_t needed = DMG_CAPABILITY_LOAD_STORE | DMG_CAPABILITY_COHERENT;
    dmg_client *client = dmg_channel_client(channel);
    *stream = (dmg_write_stream){
        .channel = channel,
        .client = client,
        .is_mapped = (dmg_client_capabilities(client)->flags & needed) == needed,
        .buffer_bytes = buffer_bytes,
    };
    if (!stream->is_mapped) {
        stream->memory = aligned_alloc(64, buffer_bytes * DMG_WRITE_STREAM_BUFFERS);
        if (!stream->memory) {
            return dmg_error(DMG_ERR_MEMORY, "no memory for %d write buffers of %" PRIu64 " bytes",
                             DMG_WRITE_STREAM_BUFFERS, buffer_bytes);
        }
    }
    return DMG_OK;
}

/** The buffer's earlier write has ended when this returns. */
static void wait_for(dmg_write_stream *stream, uint32_t buffer)
{
    dmg_status status = dmg_wait(stream->channel, &stream->completions[buffer]);
    stream->completions[buffer].status = DMG_OK;
    stream->status = stream->status != DMG_OK ? stream->status : status;
}

void dmg_write_stream_close(dmg_write_stream *stream)
{
    for (uint32_t i = 0; i < DMG_WRITE_STREAM_BUFFERS; i++) {
        if (stream->completions[i].pending > 0) {
            wait_for(stream, i);
        }
    }
    free(stream->memory);
    stream->memory = NULL;
}

void dmg_write_stream_post(dmg_write_stream *stream)
{
    if (stream->filled == 0 || stream->status != DMG_OK) {
        return;
    }
    if (stream->is_mapped) {
        dmg_channel_charge_write(stream->channel, stream->start, stream->filled);
    } else {
        const uint8_t *from = stream->memory + stream->buffer * stream->buffer_bytes;
        dmg_post_write(stream->channel, from, stream->start, stream->filled, &stream->completions[stream->buffer]);
        dmg_channel_ring(stream->channel);
        stream->buffer = (stream->buffer + 1) % DMG_WRITE_STREAM_BUFFERS;
        wait_for(stream, stream->buffer);
    }
    stream->start += stream->filled;
    stream->filled = 0;
}

void dmg_write_stream_seek(dmg_write_stream *stream, dmg_address address)
{
    if (address != stream->start + stream->filled) {
        dmg_write_stream_post(stream);
        stream->start = address;
    }
}

void *dmg_write_stream_room(dmg_write_stream *stream, uint64_t wanted, uint64_t *given)
{
    *given = 0;
    if (!stream->is_mapped && stream->filled == stream->buffer_bytes) {
        dmg_write_stream_post(stream);
    }
    if (stream->status != DMG_OK) {
        return NULL;
    }
    if (!stream->is_mapped) {
        uint64_t left = stream->buffer_bytes - stream->filled;
        *given = wanted < left ? wanted : left;
        return stream->memory + stream->buffer * stream->buffer_bytes + stream->filled;
    }
    dmg_address address = stream->start + stream->filled;
    void *room = dmg_client_pointer(stream->client, address, wanted);
    if (!room) {
        stream->status = dmg_error(
            DMG_ERR_CORRUPT, "cannot write %" PRIu64 " bytes at offset %" PRIu64 " of node %u: no segment has them",
            wanted, dmg_address_offset(address), dmg_address_node(address));
        return NULL;
    }
    *given = wanted;
    return room;
}

void dmg_write_stream_advance(dmg_write_stream *stream, uint64_t bytes)
{
    stream->filled += bytes;
}

bool dmg_write_stream_put(dmg_write_stream *stream, const void *from, uint64_t bytes)
{
    const uint8_t *rest = from;
    while (bytes > 0) {
        uint64_t given;
        void *to = dmg_write_stream_room(stream, bytes, &given);
        if (!to) {
            return false;
        }
        memcpy(to, rest, given);
        dmg_write_stream_advance(stream, given);
        rest += given;
        bytes -= given;
    }
    return stream->status == DMG_OK;
}

dmg_status dmg_write_stream_finish(dmg_write_stream *stream)
{
    dmg_write_stream_post(stream);
    for (uint32_t i = 0; i < DMG_WRITE_STREAM_BUFFERS; i++) {
        wait_for(stream, i);
    }
    return stream->status;
}
