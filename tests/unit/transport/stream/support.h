/**
 * @file support.h
 * Pairs of sockets, greetings and streams in one thread, for the tests of transport/stream.
 */
#ifndef DMG_TEST_TRANSPORT_STREAM_SUPPORT_H
#define DMG_TEST_TRANSPORT_STREAM_SUPPORT_H

#include "transport/stream/listener.h"
#include "transport/stream/stream.h"
#include "unit/support/deadline.h"
#include "unit/support/suite.h"

typedef enum stream_kind { KIND_LOCAL, KIND_PACKETS, KIND_TCP, KIND_COUNT } stream_kind;

extern const uint8_t stream_token[DMG_TOKEN_BYTES];
extern const uint8_t stream_other_token[DMG_TOKEN_BYTES];

/** Two sockets that are connected: [0] of the client. */
void stream_sockets_open(stream_kind kind, int sockets[2]);

/** A greeting on its way, [0] of the client. */
typedef struct stream_greetings {
    dmg_greeting ends[2];
    dmg_greeting_state states[2];
} stream_greetings;

void stream_greetings_begin(stream_greetings *greetings, stream_kind kind, dmg_stream_protection client_wants,
                            dmg_stream_protection server_wants, const uint8_t *client_token,
                            const uint8_t *server_token);
/** Both go on, until both are done or one has failed, or nothing comes any more. */
void stream_greetings_finish(stream_greetings *greetings, const int sockets[2]);

/** Two streams that have greeted; [0] the client's. */
void stream_pair_open(stream_kind kind, dmg_stream_protection protection, dmg_stream_cipher cipher,
                      size_t record_bytes_max, dmg_stream *streams[2]);
void stream_pair_close(dmg_stream *streams[2]);
/** The next record, waited for; NULL when the stream breaks. */
const void *stream_receive_wait(dmg_stream *stream, size_t *bytes);
/** The tests of transport_stream_records.c, closed by {NULL, NULL}. */
extern const dmg_test stream_record_tests[];

/** Bytes that the seed decides. */
void stream_fill(uint8_t *bytes, size_t count, uint64_t seed);

#endif
