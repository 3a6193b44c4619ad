/**
 * @file wire.h
 * What the UCX backend's two ends say to each other.
 *
 * A client's channel has a stream (transport/stream) to every memory node. Whoever is at its other end has proved that
 * it knows the pool's secret. The client says HELLO; the server answers WELCOME. Then the client sends frames of
 * requests (messages to handlers, and reads, writes, cas and faa where no one-sided lane exists), several a frame, and
 * the server sends frames of answers. GOODBYE and FAREWELL end an orderly connection; a FAREWELL with a sentence tells
 * a client that it was given up, and why. The end of the stream without them is the death of its other end. Both ends
 * have the same byte order; the magic number tells when they have not.
 *
 * A frame is one record of the stream: a header and a payload, whose records stand at multiples of 8 bytes. Requests
 * and answers can go by UCP active messages instead (carrier.h), each of which is eager, with a dmg_ucx_envelope.
 */
#ifndef DMG_TRANSPORT_UCX_WIRE_H
#define DMG_TRANSPORT_UCX_WIRE_H

#include "core/base/process.h"
#include "transport/transport.h"

#include <stdint.h>

#define DMG_UCX_MAGIC   UINT32_C(0x31474d44)
#define DMG_UCX_VERSION 4

/** Kinds of frames. */
enum {
    DMG_UCX_HELLO = 1,
    DMG_UCX_WELCOME = 2,
    DMG_UCX_REQUESTS = 3,
    DMG_UCX_ANSWERS = 4,
    DMG_UCX_GOODBYE = 5,
    DMG_UCX_FAREWELL = 6,
};

/** What every frame begins with. */
typedef struct dmg_ucx_header {
    uint32_t magic;
    uint32_t kind;
    uint32_t count; /**< records in the payload */
    uint32_t bytes; /**< length of the payload */
} dmg_ucx_header;

/** The header of a UCP active message, by which its receiver knows whose it is. */
typedef struct dmg_ucx_envelope {
    uint64_t ticket; /**< a random number that the receiver told over the stream */
    uint32_t number; /**< what the receiver calls this connection */
    uint32_t unused;
    dmg_ucx_header header;
} dmg_ucx_envelope;

/**
 * Largest payload of a frame. With the headers of UCP and of the tcp transport it stays below the transport's segment
 * size that library.c sets, so that UCX neither splits nor reassembles it.
 */
#define DMG_UCX_FRAME_BYTES 32256
/** Bytes of a read or write that one record carries; longer ones are split. A multiple of 4 KiB, so that pages stay
 * whole. */
#define DMG_UCX_PIECE_BYTES 28672
/**
 * What a client has in flight to one server, requests and their answers added up: the bound on what either end buffers.
 * It is a few times the product of a fast link's bandwidth and its round trip.
 */
#define DMG_UCX_WINDOW_BYTES (512 * 1024)
/** Bytes of a connection that are handed over and not yet sent; beyond that, records gather in fuller frames. */
#define DMG_UCX_EAGER_BYTES      (8 * DMG_UCX_FRAME_BYTES)
#define DMG_UCX_RECORD_BYTES_MAX (sizeof(dmg_ucx_header) + DMG_UCX_FRAME_BYTES)

/** How one end is reached by UCP messages. */
typedef struct dmg_ucx_reach {
    uint64_t ticket;
    uint32_t number;
    uint32_t address_bytes; /**< of its worker; 0: requests and answers go over the stream */
} dmg_ucx_reach;

/** Followed by the address of the client's worker. */
typedef struct dmg_ucx_hello {
    uint32_t version;
    uint32_t unused;
    uint64_t client;
    uint64_t pid; /**< the client's process, as it knows itself; over a Unix socket the kernel tells */
    uint64_t start_time;
    char boot_id[DMG_BOOT_ID_BYTES]; /**< of its host since it was started; terminated */
    char messages[96];               /**< what the client wants requests and answers to go over; terminated */
    dmg_ucx_reach reach;
} dmg_ucx_hello;

/** How a client opens the one-sided lane. */
enum {
    DMG_UCX_LANE_BY_WORKER = 0,  /**< shared memory: at the address of a UCX worker, which the welcome tells */
    DMG_UCX_LANE_BY_REQUEST = 1, /**< a card: a request DMG_UCX_LANE for each channel */
};

/** Followed by the lane's address, the packed remote key, the address of the server's worker for messages, and, when
 * status is not DMG_OK, a sentence. */
typedef struct dmg_ucx_welcome {
    uint32_t version;
    uint32_t status;
    uint32_t node; /**< id of this memory node in its pool */
    uint32_t lane; /**< DMG_UCX_LANE_... */
    uint64_t epoch;
    uint64_t segment_bytes;
    uint64_t base; /**< the segment's address in the server, for one-sided operations */
    char data[32]; /**< UCX transports of the one-sided lane, or "" when there is none */
    uint32_t address_bytes;
    uint32_t key_bytes;
    uint32_t sentence_bytes;
    uint32_t unused;
    dmg_ucx_reach reach;
} dmg_ucx_welcome;

typedef enum dmg_ucx_kind {
    DMG_UCX_READ = 1,
    DMG_UCX_WRITE = 2,
    DMG_UCX_CAS = 3,
    DMG_UCX_FAA = 4,
    DMG_UCX_CALL = 5,
    DMG_UCX_LANE = 6,
} dmg_ucx_kind;

/** One end of a card's queue pair, as UCX writes it. */
typedef struct dmg_ucx_card_address {
    uint32_t device_bytes;
    uint32_t endpoint_bytes;
    uint8_t device[64];
    uint8_t endpoint[64];
} dmg_ucx_card_address;

#define DMG_UCX_CARD_KEY_BYTES 64

/** What a lane request is answered with. */
typedef struct dmg_ucx_lane_answer {
    dmg_ucx_card_address address;
    uint32_t key_bytes;
    uint32_t unused;
    uint8_t key[DMG_UCX_CARD_KEY_BYTES]; /**< of the segment */
} dmg_ucx_lane_answer;

/** One request. WRITE and CALL are followed by `bytes` bytes, CAS by {expected, desired}, FAA by the addend, LANE by
 * the client's dmg_ucx_card_address. */
typedef struct dmg_ucx_request {
    uint32_t kind;
    uint32_t bytes;
    uint64_t id;     /**< the client's; comes back with the answer */
    uint64_t offset; /**< in the segment; CALL: the message's type */
} dmg_ucx_request;

/** One answer, followed by `bytes` bytes: what was read, the word's value before, the reply, or an error sentence. */
typedef struct dmg_ucx_answer {
    uint64_t id;
    uint32_t bytes;
    uint32_t status;
} dmg_ucx_answer;

static inline uint64_t dmg_ucx_padded(uint64_t bytes)
{
    return (bytes + 7) & ~UINT64_C(7);
}

_Static_assert(sizeof(dmg_ucx_request) + DMG_UCX_PIECE_BYTES <= DMG_UCX_FRAME_BYTES, "a piece fits a frame");
_Static_assert(sizeof(dmg_ucx_request) + DMG_MESSAGE_BYTES_MAX <= DMG_UCX_FRAME_BYTES, "a message fits a frame");

#endif
