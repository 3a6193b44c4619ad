/**
 * @file wire.h
 * What the UCX backend's two ends say to each other in UCP active messages.
 *
 * A client connects through the server's listener and says HELLO; the server answers WELCOME. Then the client sends
 * frames of requests (messages to handlers, and reads, writes, cas and faa where no one-sided lane exists), several a
 * frame, and the server sends frames of answers. GOODBYE and FAREWELL end an orderly connection. Both ends have the
 * same byte order; the magic number tells when they have not.
 *
 * Every frame fits one eager active message. Records in a frame stand at multiples of 8 bytes.
 */
#ifndef DMG_TRANSPORT_UCX_WIRE_H
#define DMG_TRANSPORT_UCX_WIRE_H

#include "core/base/process.h"
#include "transport/transport.h"

#include <stdint.h>

#define DMG_UCX_MAGIC   UINT32_C(0x31474d44)
#define DMG_UCX_VERSION 3

/** Active-message ids. */
enum {
    DMG_UCX_HELLO = 1,
    DMG_UCX_WELCOME = 2,
    DMG_UCX_REQUESTS = 3,
    DMG_UCX_ANSWERS = 4,
    DMG_UCX_GOODBYE = 5,
    DMG_UCX_FAREWELL = 6,
};

/** The header of every active message. */
typedef struct dmg_ucx_header {
    uint32_t magic;
    uint32_t channel; /**< to the server: the number that WELCOME gave; to the client: the node as HELLO named it */
    uint32_t count;   /**< records in the payload */
    uint32_t bytes;   /**< length of the payload */
} dmg_ucx_header;

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
/** Frames of a connection that are handed to UCX and not yet sent; beyond that, records gather in fuller frames. */
#define DMG_UCX_FRAMES_EAGER 8

typedef struct dmg_ucx_hello {
    uint32_t version;
    uint32_t node; /**< position of the server in the client's list; echoed in every header to the client */
    uint64_t client;
    uint8_t token[DMG_TOKEN_BYTES];
    uint64_t pid; /**< the client's process, as it knows itself */
    uint64_t start_time;
    char boot_id[DMG_BOOT_ID_BYTES]; /**< of its host since it was started; terminated */
} dmg_ucx_hello;

/** How a client finds the one-sided lane. */
enum {
    DMG_UCX_LANE_BY_WORKER = 0,   /**< at the address of a UCX worker */
    DMG_UCX_LANE_BY_LISTENER = 1, /**< at "HOST:PORT", where the lane's own listener is */
};

/** Followed by the lane's address, the packed remote key and, when status is not DMG_OK, a sentence. */
typedef struct dmg_ucx_welcome {
    uint32_t version;
    uint32_t status;
    uint32_t channel;
    uint32_t node; /**< id of this memory node in its pool */
    uint64_t epoch;
    uint64_t segment_bytes;
    uint64_t base; /**< the segment's address in the server, for one-sided operations */
    char data[32]; /**< UCX transports of the one-sided lane, or "" when there is none */
    uint32_t address_bytes;
    uint32_t key_bytes;
    uint32_t sentence_bytes;
    uint32_t lane; /**< DMG_UCX_LANE_... */
} dmg_ucx_welcome;

typedef enum dmg_ucx_kind {
    DMG_UCX_READ = 1,
    DMG_UCX_WRITE = 2,
    DMG_UCX_CAS = 3,
    DMG_UCX_FAA = 4,
    DMG_UCX_CALL = 5,
} dmg_ucx_kind;

/** One request. WRITE and CALL are followed by `bytes` bytes, CAS by {expected, desired}, FAA by the addend. */
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
