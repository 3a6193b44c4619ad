/**
 * @file shm.h
 * What the files of the cxl_shm backend share: the memory that a client and a memory node have in common, and their
 * greeting.
 *
 * A memory node listens on a Unix socket. A client connects once to be given the segment, and once a channel. Each time
 * both ends first prove to each other that they know the pool's secret. A channel
 * has a *control area* of its own, memory that only this channel and the server map: whatever a client writes into the
 * segment or into its control area, the messages of other channels stay whole. The socket stays open as long as the
 * channel: its end tells either side at once that the other died, at whatever instruction, and it carries the bytes
 * that wake a sleeper.
 *
 * Hosts that share nothing but the pool's memory connect by TCP instead, and each opens that memory itself, by its own
 * path (a DAX device, the resource file of a PCI device). Nothing can be handed over then, so control areas lie behind
 * the segment, in the same memory.
 *
 * Messages: a call takes a *slot* of the control area, has its request in it, and gets its answer in it; messages are
 * published in two queues, one in either direction. There are as many entries as slots, so neither can be full, and the
 * server never waits for a client. A sender that dies before it published has sent nothing; all other state is private.
 */
#ifndef DMG_TRANSPORT_CXL_SHM_SHM_H
#define DMG_TRANSPORT_CXL_SHM_SHM_H

#include "transport/backend.h"
#include "transport/cxl_shm/coherence.h"
#include "transport/stream/stream.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define DMG_SHM_BACKEND_NAME "cxl_shm"

/* ---- control area ---- */

/** Calls of one channel that may be in flight to one memory node: its credits. A power of two. */
#define DMG_SHM_SLOTS 64

typedef struct dmg_shm_message {
    uint32_t slot;
    uint32_t type_or_status; /**< of the request, of the answer */
    uint32_t bytes;          /**< of the payload in the slot */
} dmg_shm_message;

/**
 * A line that says that there is a message. It is published as a whole: the last word has the sequence number, the
 * count of entries up to this one, by which the reader knows a new entry from the one that was here before.
 */
typedef struct dmg_shm_entry {
    _Alignas(DMG_SHM_CACHE_LINE_BYTES) _Atomic uint64_t slot_and_type;
    _Atomic uint64_t bytes_and_sequence;
} dmg_shm_entry;

/**
 * Under coherence, a side that is about to sleep sets its flag, then looks at its queue once more; the other side
 * publishes, then looks at the flag. All four are sequentially consistent, so one of the two sees the other, and no
 * wake-up is lost. Who takes the flag away sends the byte. Without coherence only the sleeper writes its line: an odd
 * number while it sleeps, a new one each time; the other side sends one byte for each. What was said of the order holds
 * there too, by write-backs, invalidations and fences.
 *
 * Each line has one writer at a time: the client has the requests' entries and the slots that are free or that it
 * fills, the memory node the answers' entries and the slots that it has taken and not answered.
 */
typedef struct dmg_shm_control {
    _Alignas(DMG_SHM_CACHE_LINE_BYTES) _Atomic uint32_t server_is_asleep;
    _Alignas(DMG_SHM_CACHE_LINE_BYTES) _Atomic uint32_t client_is_asleep;
    dmg_shm_entry requests[DMG_SHM_SLOTS];
    dmg_shm_entry answers[DMG_SHM_SLOTS];
    _Alignas(DMG_SHM_CACHE_LINE_BYTES) char payloads[DMG_SHM_SLOTS][DMG_MESSAGE_BYTES_MAX];
} dmg_shm_control;

/** Where a queue or a flag lies in the control area: what the functions below are given. */
#define DMG_SHM_REQUESTS         offsetof(dmg_shm_control, requests)
#define DMG_SHM_ANSWERS          offsetof(dmg_shm_control, answers)
#define DMG_SHM_SERVER_IS_ASLEEP offsetof(dmg_shm_control, server_is_asleep)
#define DMG_SHM_CLIENT_IS_ASLEEP offsetof(dmg_shm_control, client_is_asleep)

/* ---- line.c: the connection beside it ---- */

/** Over a Unix socket packets, which keep their bounds and carry descriptors; over TCP records that nobody forges. */
typedef struct dmg_shm_line {
    int socket;         /**< -1: closed */
    dmg_stream *stream; /**< over TCP, and owns the socket; else NULL */
} dmg_shm_line;

/** What a line carries beside hello and welcome: bytes, each alone. */
#define DMG_SHM_BYTE_WAKE 'w'
#define DMG_SHM_BYTE_BYE  'b'
/** From the memory node, which closes behind it: this client was given up. A sentence that says why follows the byte.
 */
#define DMG_SHM_BYTE_GIVEN_UP  'x'
#define DMG_SHM_FAREWELL_BYTES 256

/** Over a socket that has greeted, which is the line's from now on. DMG_ERR_MEMORY, and the socket is closed. */
dmg_status dmg_shm_line_open(int socket, const dmg_stream_session *session, dmg_shm_line *line);
void dmg_shm_line_close(dmg_shm_line *line);
static inline bool dmg_shm_line_is_network(const dmg_shm_line *line)
{
    return line->stream != NULL;
}
/** Send a packet or record. Over a Unix socket with a descriptor, unless it is -1. False: it did not go, or is lost. */
bool dmg_shm_line_send(dmg_shm_line *line, const void *bytes, size_t count, int descriptor);
/** A byte; one that does not go at once is lost: the other side has many more to read then. */
void dmg_shm_line_send_byte(dmg_shm_line *line, char byte);
/**
 * Take the next packet or record, of at most `capacity` bytes.
 *
 * @param[out] descriptor  that came with it, or -1; NULL: none is taken
 * @return its length; more than `capacity` for one that is longer, of which the rest is lost; 0 when the other end has
 * closed or sent nonsense; -1 when there is none yet
 */
ssize_t dmg_shm_line_receive(dmg_shm_line *line, void *bytes, size_t capacity, int *descriptor);

/* ---- messages.c: one side of a control area ---- */

/** A view of the control area, and what this side remembers of it. */
typedef struct dmg_shm_side {
    dmg_shm_view view;
    uint64_t outgoing; /**< the queue that this side writes: DMG_SHM_REQUESTS or DMG_SHM_ANSWERS */
    uint64_t incoming;
    uint64_t own_flag;
    uint64_t other_flag;
    uint32_t published;
    uint32_t taken;
    uint32_t sleeps; /**< odd: this side says that it is asleep */
    uint32_t woken;  /**< the sleep of the other side that was ended last */
} dmg_shm_side;

/** Take a mapped control area. It stays the caller's, who unmaps it after dmg_shm_side_close. */
dmg_status dmg_shm_side_open(const dmg_shm_coherence *coherence, dmg_shm_control *control, bool is_server,
                             dmg_shm_side *side);
void dmg_shm_side_close(dmg_shm_agent *agent, dmg_shm_side *side);

/** Put a payload into a slot of this side's, and publish it. */
void dmg_shm_send(dmg_shm_agent *agent, dmg_shm_side *side, const dmg_shm_message *message, const void *payload);
/** Look for the next message of the other side. Nothing that it says has been checked. */
bool dmg_shm_peek(dmg_shm_agent *agent, const dmg_shm_side *side, dmg_shm_message *message);
/** The message was taken. */
static inline void dmg_shm_take(dmg_shm_side *side)
{
    side->taken++;
}
/**
 * The payload of a message whose slot and size are sound. `buffer` has DMG_MESSAGE_BYTES_MAX; the answer is the buffer,
 * or a place in the control area that the other side may still write to when it lies.
 */
const void *dmg_shm_payload(dmg_shm_agent *agent, const dmg_shm_side *side, const dmg_shm_message *message,
                            void *buffer);

/** Say that this side sleeps, or not. After the former it looks once more for messages. */
void dmg_shm_set_asleep(dmg_shm_agent *agent, dmg_shm_side *side, bool is_asleep);
/** Wake the other side if it sleeps. The socket's byte may be lost when its buffer is full: then it is readable anyway.
 */
void dmg_shm_wake(dmg_shm_agent *agent, dmg_shm_side *side, dmg_shm_line *line);

/** Publish an entry where memory is coherent. */
static inline void dmg_shm_entry_publish(dmg_shm_entry *entries, uint32_t position, const dmg_shm_message *message)
{
    dmg_shm_entry *entry = &entries[position % DMG_SHM_SLOTS];
    uint32_t sequence = position + 1;
    atomic_store_explicit(&entry->slot_and_type, message->slot | (uint64_t)message->type_or_status << 32,
                          memory_order_relaxed);
    atomic_store_explicit(&entry->bytes_and_sequence, message->bytes | (uint64_t)sequence << 32, memory_order_seq_cst);
}

/* ---- what the memory node does for a client without coherence ---- */

/** Types of messages inside the backend: below DMG_MESSAGE_TYPE_FIRST, and none of the common layer's. */
enum {
    DMG_SHM_MERGE = 8, /**< a dmg_shm_merge: lines that a write covers in part */
    DMG_SHM_ATOMIC = 9 /**< a dmg_shm_atomic, answered by the word's value before */
};

/** Bytes of one line. */
typedef struct dmg_shm_piece {
    uint64_t offset;
    uint64_t bytes; /**< 0: there is no such piece */
    uint8_t data[DMG_SHM_CACHE_LINE_BYTES];
} dmg_shm_piece;

/** The first and the last line of a write. */
typedef struct dmg_shm_merge {
    dmg_shm_piece pieces[2];
} dmg_shm_merge;

typedef struct dmg_shm_atomic {
    uint64_t offset;
    uint64_t is_addition;
    uint64_t expected; /**< or the addend */
    uint64_t desired;
} dmg_shm_atomic;

/* ---- hello and welcome: a packet or a record each way, when both ends have greeted (transport/stream/greeting.h) ----
 */

#define DMG_SHM_MAGIC   UINT64_C(0x33306d6873676d64) /* "dmgshm03" */
#define DMG_SHM_SEGMENT 1u                           /* "give me the segment" */
#define DMG_SHM_CHANNEL 2u                           /* "open a channel" */

typedef struct dmg_shm_hello {
    uint64_t magic;
    uint64_t client;
    uint32_t want;
    uint32_t reserved;
} dmg_shm_hello;

/** Over a Unix socket it comes with one file descriptor when the status is DMG_OK: the segment, or the control area. */
typedef struct dmg_shm_welcome {
    uint64_t magic;
    uint64_t bytes;        /**< of the segment or the control area */
    uint64_t alignment;    /**< that its mapping needs */
    uint64_t mapped_bytes; /**< over TCP: of the segment and what lies behind it */
    uint64_t offset;       /**< over TCP: of the control area in that memory */
    uint64_t identity;     /**< over TCP: what stands in the first word behind the segment */
    uint32_t status;
    uint32_t node;
    char sentence[96]; /**< why not; over TCP otherwise the memory node's own path to the memory */
} dmg_shm_welcome;

/** What lies behind a segment that several hosts open: a page with the identity, then control areas. */
#define DMG_SHM_IDENTITY_BYTES UINT64_C(4096)
#define DMG_SHM_AREA_BYTES     ((sizeof(dmg_shm_control) + UINT64_C(4095)) / 4096 * 4096)
/** Channels of such a memory node, if there is room behind the segment, and at least. */
#define DMG_SHM_AREAS_MAX 128
#define DMG_SHM_AREAS_MIN 8

/* ---- hello.c ---- */

/** The path of memory node `node` in a parameter "path=A+B+...", "" when there is none. */
void dmg_shm_path_of(const dmg_transport_parameters *parameters, uint32_t node, char path[96]);
/** How a client is to reach its memory nodes. */
typedef struct dmg_shm_greeter {
    uint8_t token[DMG_TOKEN_BYTES];
    dmg_stream_protection wanted; /**< over TCP */
    uint64_t timeout_ns;
} dmg_shm_greeter;

/** The parameter protect=, whatever the socket is. */
static inline dmg_status dmg_shm_protection_parse(const dmg_transport_parameters *parameters,
                                                  dmg_stream_protection *protection)
{
    return dmg_stream_protection_parse(dmg_transport_parameter_get(parameters, "protect", NULL), protection);
}
/** DMG_ERR_ARGUMENT when a Unix socket is to be encrypted. */
dmg_status dmg_shm_protection_check(bool is_network, dmg_stream_protection wanted);
/**
 * Connect, greet, say hello and wait for the welcome and its descriptor, which is -1 over TCP. DMG_ERR_PEER when nobody
 * answers in time; DMG_ERR_PROTOCOL when who answers is not a memory node of ours or refuses us.
 */
dmg_status dmg_shm_greet(const char *address, const dmg_shm_greeter *greeter, const dmg_shm_hello *hello,
                         dmg_shm_welcome *welcome, dmg_shm_line *line, int *descriptor);

/* ---- leftovers.c ---- */

/** Of a file that a memory node made: the bit above the permissions means nothing to the kernel, and tells us. */
#define DMG_SHM_SEGMENT_MODE (S_ISVTX | 0600)
/** dmg_transport_sweep: files that memory nodes made. */
void dmg_shm_sweep(uint64_t since_s, dmg_transport_removed removed, void *context);
/** Remove the file when a memory node made it that is gone. */
bool dmg_shm_remove_leftover(const char *path);

/* ---- segment.c ---- */

typedef struct dmg_shm_segment {
    int descriptor;
    void *pointer;
    uint64_t bytes;
    uint64_t alignment;
    uint64_t mapped_bytes; /**< with what lies behind the segment */
    char *created_path;    /**< the file that we made and will unlink, or NULL */
    bool is_used;          /**< it was there before: its bytes are another's, until they are zeroed */
    bool is_device;        /**< that decides by itself where its memory lies */
    int device_node;       /**< where, or -1 */
    dmg_placement placement;
} dmg_shm_segment;

/**
 * `behind_min` and `behind_max` bytes are wanted behind the segment: 0, or with a path only. With `may_exist` the file
 * at the path is used when it is there, with the size that it has; it is locked against another memory node.
 */
dmg_status dmg_shm_segment_create(const dmg_segment_options *options, bool may_exist, uint64_t behind_min,
                                  uint64_t behind_max, dmg_shm_segment *segment);
/** Open the memory that a memory node has at `path` on this host, and map it. */
dmg_status dmg_shm_segment_open(const char *path, uint64_t bytes, uint64_t alignment, void **pointer);
void dmg_shm_segment_destroy(dmg_shm_segment *segment);
/** Map shared memory at a multiple of `alignment` (a power of two), advised for huge pages. */
dmg_status dmg_shm_map(int descriptor, uint64_t bytes, uint64_t alignment, void **pointer);
/** Anonymous shared memory that nobody can shrink: a client could otherwise take the pages away under the server. */
dmg_status dmg_shm_create_control(int *descriptor, dmg_shm_control **control);

/* ---- describe.c, server.c, client.c: what the operations table needs ---- */

dmg_status dmg_shm_describe(dmg_transport_info *infos, size_t capacity, size_t *count);
/** What a pool over this backend can do. */
#define DMG_SHM_CAPABILITIES                                                                                           \
    (DMG_CAPABILITY_LOAD_STORE | DMG_CAPABILITY_COHERENT | DMG_CAPABILITY_ONE_SIDED | DMG_CAPABILITY_MN_COMPUTE)
/** The same without coherence. */
#define DMG_SHM_CAPABILITIES_SOFTWARE (DMG_SHM_CAPABILITIES & ~(uint32_t)DMG_CAPABILITY_COHERENT)

/** How many bytes behind the segment a memory node wants, and would use, when clients connect by TCP. */
#define DMG_SHM_BEHIND_MIN (DMG_SHM_IDENTITY_BYTES + DMG_SHM_AREAS_MIN * DMG_SHM_AREA_BYTES)
#define DMG_SHM_BEHIND_MAX (DMG_SHM_IDENTITY_BYTES + DMG_SHM_AREAS_MAX * DMG_SHM_AREA_BYTES)
/** Whether clients connect by TCP to a memory node that is bound so. */
bool dmg_shm_is_network(const dmg_transport_parameters *parameters, const char *bind_to);
dmg_status dmg_shm_descriptors(const dmg_transport_parameters *parameters, dmg_transport_descriptors *descriptors);
dmg_status dmg_shm_segment_demand(const dmg_server_options *options, const dmg_transport_parameters *parameters,
                                  dmg_segment_demand *demand);
extern const dmg_server_operations dmg_shm_server_operations;
extern const dmg_client_operations dmg_shm_client_operations;
extern const dmg_channel_operations dmg_shm_channel_operations;

dmg_status dmg_shm_server_create(dmg_server *server, const dmg_server_options *options,
                                 const dmg_transport_parameters *parameters, dmg_backend_server **made);
void dmg_shm_server_destroy(dmg_backend_server *base);
const char *dmg_shm_server_address(dmg_backend_server *base);
void *dmg_shm_server_segment(dmg_backend_server *base, uint64_t *bytes);
dmg_placement dmg_shm_server_placement(dmg_backend_server *base);
bool dmg_shm_server_has_files(dmg_backend_server *base);
uint32_t dmg_shm_server_progress(dmg_backend_server *base);
void dmg_shm_server_sleep(dmg_backend_server *base, uint64_t timeout_ns);
void dmg_shm_server_wake(dmg_backend_server *base);
void dmg_shm_server_reply(dmg_backend_server *base, uint64_t reply_token, dmg_status status, const void *payload,
                          size_t bytes);
bool dmg_shm_server_is_coherent(dmg_backend_server *base);
void dmg_shm_server_acquire(dmg_backend_server *base, uint64_t offset, uint64_t bytes);
void dmg_shm_server_acquire_wait(dmg_backend_server *base);
void dmg_shm_server_release(dmg_backend_server *base, uint64_t offset, uint64_t bytes);
void dmg_shm_server_break_client(dmg_backend_server *base, uint64_t client, const char *why);
bool dmg_shm_server_give_back(dmg_backend_server *base, uint64_t offset, uint64_t bytes);
bool dmg_shm_server_is_in_files(dmg_backend_server *base);

dmg_status dmg_shm_client_open(dmg_client *client, const dmg_client_options *options,
                               const dmg_transport_parameters *parameters, dmg_node *nodes,
                               dmg_capabilities *capabilities, dmg_backend_client **made);
void dmg_shm_client_close(dmg_backend_client *base);
/** The mapped segment of a node. */
static inline void *dmg_shm_at(const dmg_node *nodes, uint16_t node, uint64_t offset)
{
    return (char *)nodes[node].pointer + offset;
}

dmg_status dmg_shm_channel_open(dmg_backend_client *base, dmg_channel *channel, dmg_backend_channel **made);
void dmg_shm_channel_close(dmg_backend_channel *base);
void dmg_shm_post_read(dmg_backend_channel *base, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                       dmg_completion *completion);
void dmg_shm_post_write(dmg_backend_channel *base, const void *from, uint16_t node, uint64_t offset, uint64_t bytes,
                        dmg_completion *completion);
void dmg_shm_post_cas64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t expected, uint64_t desired,
                        uint64_t *observed, dmg_completion *completion);
void dmg_shm_post_faa64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t addend, uint64_t *before,
                        dmg_completion *completion);
void dmg_shm_post_call(dmg_backend_channel *base, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                       dmg_call *call, dmg_completion *completion);
void dmg_shm_ring(dmg_backend_channel *base);
void dmg_shm_poll(dmg_backend_channel *base);
void dmg_shm_channel_sleep(dmg_backend_channel *base, uint64_t timeout_ns);
void dmg_shm_fail_node(dmg_backend_channel *base, uint16_t node);
void dmg_shm_use_mapped(dmg_backend_channel *base, dmg_operation_kind kind, uint16_t node, uint64_t offset,
                        uint64_t bytes);
void dmg_shm_client_acquire(dmg_backend_client *base);

#endif
