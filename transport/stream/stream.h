/**
 * @file stream.h
 * Records over a socket whose ends have greeted each other: whole, in order, and protected as the greeting agreed.
 *
 * A stream never blocks, and never grows without bound: it holds at most one record that has not come in as a whole,
 * and what the socket did not take of records that were sent, which the owner bounds by its own credits.
 *
 * Not thread-safe: one thread at a time has a stream.
 */
#ifndef DMG_TRANSPORT_STREAM_STREAM_H
#define DMG_TRANSPORT_STREAM_STREAM_H

#include "core/base/process.h"
#include "core/base/watch.h"
#include "transport/stream/address.h"
#include "transport/stream/greeting.h"

typedef struct dmg_stream dmg_stream;

typedef struct dmg_stream_options {
    const uint8_t *token;         /**< DMG_TOKEN_BYTES */
    dmg_stream_protection wanted; /**< over TCP, at least DMG_STREAM_AUTHENTICATED */
    size_t record_bytes_max;      /**< longest record, either way: a longer one that comes in breaks the stream */
} dmg_stream_options;

/**
 * Connect, greet, and wait for both until the watch says that it has been too long.
 *
 * Over a Unix socket who listens must be of this user, or root: an abstract name of a pool that is gone can be
 * anybody's.
 *
 * @param name  the address as the user knows it, for errors
 * @return DMG_ERR_PEER when nobody answers in time, or the other end closes; DMG_ERR_PROTOCOL when who answers does not
 * know the secret, or is no program of ours
 */
dmg_status dmg_stream_connect(const dmg_stream_options *options, const dmg_stream_address *address, const char *name,
                              dmg_watch *watch, dmg_stream **stream);
/** A stream over a socket that has greeted; the socket is the stream's from now on. NULL: out of memory. */
dmg_stream *dmg_stream_over(int socket, const dmg_stream_session *session, size_t record_bytes_max);
/** Close at once: what the socket has not taken is lost. NULL is allowed. */
void dmg_stream_close(dmg_stream *stream);

/** The socket, to wait at; nobody else reads or writes there. */
int dmg_stream_socket(const dmg_stream *stream);
dmg_stream_protection dmg_stream_protected(const dmg_stream *stream);

/**
 * Send one record, in two parts that are put together (the second may have no bytes). Both buffers are free again on
 * return. What the socket does not take stays in the stream until dmg_stream_flush.
 *
 * @return false when the stream is broken, or the record too long
 */
bool dmg_stream_send(dmg_stream *stream, const void *header, size_t header_bytes, const void *payload,
                     size_t payload_bytes);
/** Give the socket what it has not taken. False when the stream is broken. */
bool dmg_stream_flush(dmg_stream *stream);
/** Bytes that the socket has not taken: while there are some, wait for POLLOUT too. */
size_t dmg_stream_unsent_bytes(const dmg_stream *stream);

/**
 * The next record that is there as a whole: at a multiple of 8 bytes, the stream's, and valid until the next call.
 *
 * @return NULL when there is none yet, and when the stream is broken
 */
const void *dmg_stream_receive(dmg_stream *stream, size_t *bytes);
/** Why the stream is broken ("closed the connection", "sent a frame that is not one of ours"), or NULL. */
const char *dmg_stream_broken(const dmg_stream *stream);

/** The process at the other end of a Unix socket; pid 0 over TCP, and when it is gone already. */
void dmg_stream_identify_peer(const dmg_stream *stream, dmg_process *process);

#endif
