/**
 * @file write_stream.h
 * Fills pool memory from front to back: in place where it is reached by loads and stores and is coherent, else through
 * a few buffers whose writes overlap the filling of the next.
 *
 *     dmg_write_stream_seek(stream, address);
 *     while (...) {
 *         to = dmg_write_stream_room(stream, wanted, &given);
 *         fill given bytes;
 *         dmg_write_stream_advance(stream, given);
 *     }
 *     status = dmg_write_stream_finish(stream);
 */
#ifndef DMG_CORE_STORE_WRITE_STREAM_H
#define DMG_CORE_STORE_WRITE_STREAM_H

#include "transport/transport.h"

/** Writes in flight, one of them being filled. */
#define DMG_WRITE_STREAM_BUFFERS 4

typedef struct dmg_write_stream {
    dmg_channel *channel;
    dmg_client *client;
    bool is_mapped;
    uint8_t *memory; /**< of all buffers; NULL in place */
    uint64_t buffer_bytes;
    uint32_t buffer;   /**< being filled */
    dmg_address start; /**< where the bytes go that have not been posted */
    uint64_t filled;   /**< how many they are */
    dmg_status status; /**< first error; later calls do nothing */
    dmg_completion completions[DMG_WRITE_STREAM_BUFFERS];
} dmg_write_stream;

/** `buffer_bytes` is a multiple of 64. Ends with dmg_write_stream_close. */
dmg_status dmg_write_stream_open(dmg_channel *channel, uint64_t buffer_bytes, dmg_write_stream *stream);
/** Waits for what is in flight. Needed after a failed open too. */
void dmg_write_stream_close(dmg_write_stream *stream);
/** Go on at this address; what was filled elsewhere is posted. */
void dmg_write_stream_seek(dmg_write_stream *stream, dmg_address address);
/**
 * Where the next bytes go: at least 1 and at most `wanted` of them. In place, all that are wanted are given. NULL when
 * the stream has failed.
 */
void *dmg_write_stream_room(dmg_write_stream *stream, uint64_t wanted, uint64_t *given);
/** So many bytes of the room were filled. */
void dmg_write_stream_advance(dmg_write_stream *stream, uint64_t bytes);
/** Copy bytes in. False when the stream has failed. */
bool dmg_write_stream_put(dmg_write_stream *stream, const void *from, uint64_t bytes);
/** Start writing what was filled. */
void dmg_write_stream_post(dmg_write_stream *stream);
/** Post, and wait until all is written. Returns the first error of the stream. */
dmg_status dmg_write_stream_finish(dmg_write_stream *stream);

#endif
