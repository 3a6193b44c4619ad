/**
 * @file transport_ucx_liar.h
 * A UCX client that sends whatever it likes to a memory node of the UCX backend.
 */
#ifndef DMG_TESTS_UNIT_TRANSPORT_UCX_LIAR_H
#define DMG_TESTS_UNIT_TRANSPORT_UCX_LIAR_H

#include "transport/ucx/wire.h"

#include <ucp/api/ucp.h>

typedef struct test_liar {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h endpoint;
    uint32_t channel; /**< that the welcome gave */
    bool has_welcome;
    bool is_cut_off;
    uint64_t answers;
    uint32_t status; /**< of the last welcome or answer */
} test_liar;

/** Connect to the address of a memory node. The struct must not move until liar_close. */
bool liar_open(test_liar *liar, const char *address);
void liar_close(test_liar *liar);
void liar_progress(test_liar *liar);
/** Send an active message, and make some progress. */
void liar_send(test_liar *liar, unsigned id, const void *header, size_t header_bytes, const void *payload,
               size_t bytes);
void liar_send_by_rendezvous(test_liar *liar, unsigned id, const void *header, size_t header_bytes, const void *payload,
                             size_t bytes);
/** Send, and look at nothing that arrives. */
void liar_send_without_progress(test_liar *liar, unsigned id, const void *header, size_t header_bytes,
                                const void *payload, size_t bytes);
void liar_say_hello(test_liar *liar, const uint8_t *token, uint64_t client, uint32_t version);
/** Wait for the welcome; true when it lets us in. */
bool liar_is_welcomed(test_liar *liar);
/** Wait until the memory node ends the connection; false when it does not within some seconds. */
bool liar_is_cut_off(test_liar *liar);
/** Wait until so many answers have come. */
bool liar_has_answers(test_liar *liar, uint64_t count);

#endif
