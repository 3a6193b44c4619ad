/**
 * @file liar.h
 * A client of the UCX backend that knows the pool's secret, and sends whatever it likes.
 */
#ifndef DMG_TEST_TRANSPORT_UCX_LIAR_H
#define DMG_TEST_TRANSPORT_UCX_LIAR_H

#include "transport/stream/stream.h"
#include "transport/ucx/wire.h"

typedef struct test_liar {
    dmg_stream *stream;
    bool has_welcome;
    uint64_t answers;
    uint32_t status; /**< of the last welcome or answer */
} test_liar;

/** Connect to the address of a memory node, and greet. */
bool liar_open(test_liar *liar, const char *address, const uint8_t *token);
void liar_close(test_liar *liar);
/** Send a record of these two parts, and give the socket what it takes. */
void liar_send(test_liar *liar, const void *header, size_t header_bytes, const void *payload, size_t bytes);
/** Take what has come. False when the memory node has ended the connection. */
bool liar_look(test_liar *liar);
/** A hello in which all is right but what is given. */
dmg_ucx_hello liar_hello(uint64_t client);
void liar_send_hello(test_liar *liar, const dmg_ucx_hello *hello, size_t bytes);
/** Wait for the welcome; true when it lets us in. */
bool liar_is_welcomed(test_liar *liar);
/** Wait until the memory node ends the connection; false when it does not within some seconds. */
bool liar_is_cut_off(test_liar *liar);
/** Wait until so many answers have come. */
bool liar_has_answers(test_liar *liar, uint64_t count);

#endif
