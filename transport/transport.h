/**
 * @file transport.h
 * The interconnect as the layers above see it: memory nodes offer segments and serve messages; compute nodes open
 * channels to them and post one-sided operations and messages.
 *
 * Nothing above this file names a backend: what differs between them is asked through dmg_capabilities.
 *
 * A *transport string* picks the backend and its options: "cxl_shm", "ucx", "ucx:data=message". See
 * docs/transports.md.
 *
 * Every operation ends, with success or with an error that names the peer. A memory node that dies, or stops answering
 * for the peer timeout, is marked dead in the whole client: what is in flight to it and whatever is posted to it later
 * fails with DMG_ERR_PEER.
 */
#ifndef DMG_TRANSPORT_TRANSPORT_H
#define DMG_TRANSPORT_TRANSPORT_H

#include "core/base/limits.h"
#include "dmgraph/status.h"
#include "transport/address.h"
#include "transport/counters.h"
#include "transport/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DMG_TOKEN_BYTES             16
#define DMG_ADDRESS_STRING_BYTES    256
#define DMG_PEER_TIMEOUT_DEFAULT_NS UINT64_C(5000000000)
/** Largest payload of a message or of its reply, in every backend. */
#define DMG_MESSAGE_BYTES_MAX 8192
/** Message types below this one belong to the transport itself (leases, closing). */
#define DMG_MESSAGE_TYPE_FIRST 16
/** Answered by the transport itself, with the same bytes: for measurements. */
#define DMG_MESSAGE_TYPE_ECHO 3

/* ---- capabilities ---- */

enum {
    DMG_CAPABILITY_LOAD_STORE = 1u << 0, /**< dmg_client_pointer gives pointers into segments */
    /** Loads through such pointers see what others stored, and CPU atomics on them are good across compute nodes.
     * Without, only what does not change is read where it is mapped, after dmg_client_acquire, and nothing is written
     * there.
     */
    DMG_CAPABILITY_COHERENT = 1u << 1,
    /** Reads and writes need no program on the memory node; without COHERENT this holds for whole cache lines. */
    DMG_CAPABILITY_ONE_SIDED = 1u << 2,
    DMG_CAPABILITY_MN_COMPUTE = 1u << 3, /**< the memory node runs handlers on its own cores */
};

/** Who executes cas and faa; one executor a pool, never mixed on a word. */
typedef enum dmg_atomics_executor {
    DMG_ATOMICS_CALLER_CPU,
    DMG_ATOMICS_NIC,
    DMG_ATOMICS_MEMORY_NODE,
    /** The caller's CPU, under a software lock, since the link has no atomics across compute nodes: each takes a lock's
     * time. Among the threads of one compute node the CPU's own are as good as ever. */
    DMG_ATOMICS_CALLER_LOCK
} dmg_atomics_executor;

/** True where the CPU of the caller executes them, under a lock or not. */
static inline bool dmg_atomics_are_by_caller(dmg_atomics_executor executor)
{
    return executor == DMG_ATOMICS_CALLER_CPU || executor == DMG_ATOMICS_CALLER_LOCK;
}

/** Who executes them over an emulated link (NULL: none), when without one it is `executor`. */
static inline dmg_atomics_executor dmg_atomics_over(const dmg_link_settings *link, dmg_atomics_executor executor)
{
    return link && executor == DMG_ATOMICS_CALLER_CPU && dmg_link_locks_atomics(link) ? DMG_ATOMICS_CALLER_LOCK
                                                                                      : executor;
}

typedef struct dmg_capabilities {
    uint32_t flags;
    dmg_atomics_executor atomics;
    char chosen[512]; /**< what carries data and messages, and why, for people: nothing falls back silently */
} dmg_capabilities;

/** One line of `dmgraph info transports`. */
typedef struct dmg_transport_info {
    char backend[16];
    char device[64];
    bool is_available;
    bool is_default; /**< what a local run would choose in this backend */
    uint32_t flags;
    dmg_atomics_executor atomics;
    char reason[256]; /**< what it would be used for, or why it cannot or would not be */
} dmg_transport_info;

/** Describe all backends and devices of this machine. `*infos` is freed by the caller with free(). Costs up to a
 * second. */
dmg_status dmg_transport_describe(dmg_transport_info **infos, size_t *count);

/**
 * For programs, once at their start, before there are threads: takes variables out of the environment that libraries
 * behind the backends would read, and that are not safe there.
 */
void dmg_transport_prepare(void);
/**
 * Log warnings about what this transport is not safe for, and about variables that were taken out, when its backend
 * would have read them (once a process). NULL: any backend.
 */
void dmg_transport_announce(const char *transport);
/** The transport string that says, too, that who can reach the network may be trusted. DMG_ERR_ARGUMENT when the
 * backend has no use for that, or the string is too long. */
dmg_status dmg_transport_trust(const char *transport, char *trusting, size_t capacity);
/**
 * Descriptors that processes have open at once over a transport, at most, beside those that they have anyhow. What is
 * not used in the end may be counted.
 */
typedef struct dmg_transport_descriptors {
    uint32_t server;         /**< of a memory node that nobody is connected to */
    uint32_t server_channel; /**< for each channel that reaches it */
    uint32_t client;
    uint32_t client_channel;    /**< for each of its channels, also the one that keeps its leases */
    uint32_t client_connection; /**< for each channel and memory node */
} dmg_transport_descriptors;

/** DMG_ERR_ARGUMENT, DMG_ERR_UNSUPPORTED: the transport string is wrong. Opens nothing. */
dmg_status dmg_transport_count_descriptors(const char *transport, dmg_transport_descriptors *descriptors);
/** Told of each file that dmg_transport_sweep has removed: its path, and what its pages took. */
typedef void (*dmg_transport_removed)(void *context, const char *path, uint64_t bytes);

/**
 * After processes were killed: remove what they left in memory under a name: shared memory that they were in the middle
 * of making, and named segments that they had made. Only files of this user that no process has open or mapped, changed
 * since `since_s` (CLOCK_REALTIME, seconds). A file that the user had made before a memory node used it stays.
 *
 * @param removed  may be NULL
 */
void dmg_transport_sweep(uint64_t since_s, dmg_transport_removed removed, void *context);

/* ---- memory-node side ---- */

typedef enum dmg_page_size { DMG_PAGE_DEFAULT, DMG_PAGE_2M, DMG_PAGE_1G } dmg_page_size;

typedef struct dmg_segment_options {
    uint64_t bytes;
    int numa_node; /**< -1: wherever the kernel likes */
    dmg_page_size page_size;
    const char *path; /**< NULL: anonymous; else a file in /dev/shm or hugetlbfs, or a DAX device */
    bool prefault;
    bool allow_fallback; /**< a node or pages that are not there: one warning, and what there is; else an error */
    _Atomic uint64_t *populated_bytes; /**< NULL, or raised while a long making goes on */
} dmg_segment_options;

/** What a segment got, as the kernel says. */
typedef struct dmg_placement {
    uint64_t bytes;
    uint64_t page_bytes; /**< of the pages that back it, without the kernel's transparent huge pages; 0: not known */
    int numa_node;       /**< that all of it is bound to, or -1 */
    bool is_populated;   /**< all pages are there */
} dmg_placement;

typedef struct dmg_server dmg_server;

/** A message that has arrived. Valid during the handler only, except `reply_token`. */
typedef struct dmg_request {
    uint64_t client; /**< id of the compute node (the dmg_client) that sent it */
    uint32_t type;
    const void *payload; /**< 8-byte aligned; not trusted */
    size_t bytes;
    uint64_t reply_token; /**< hand it to dmg_server_reply, now or later, exactly once */
} dmg_request;

/** Runs on the serving thread. */
typedef void (*dmg_request_handler)(void *context, dmg_server *server, const dmg_request *request);
/** A client closed (DMG_OK), or died or lost its lease (DMG_ERR_PEER). Runs on the serving thread, once a client. */
typedef void (*dmg_client_gone_handler)(void *context, dmg_server *server, uint64_t client, dmg_status why);
/** A client that was lost (dmg_server_is_lost) reaches nothing any more. Runs on the serving thread, once a client. */
typedef void (*dmg_client_ended_handler)(void *context, dmg_server *server, uint64_t client);

/**
 * A client has opened one more channel. NULL, or why that is one too many: a sentence that is valid during the call.
 * Then the client is given up (dmg_client_gone_handler), and refused with DMG_ERR_LIMIT. Runs on the serving thread.
 */
typedef const char *(*dmg_channel_handler)(void *context, dmg_server *server, uint64_t client);

/** Runs on the serving thread, once a round, for housekeeping of less than a millisecond. True: there is more to do, so
 * the server does not sleep. */
typedef bool (*dmg_round_handler)(void *context, dmg_server *server);

typedef struct dmg_server_options {
    const char *transport; /**< transport string */
    const char *bind;      /**< NULL: loopback, a free port or a fresh name */
    uint16_t node;         /**< id of this memory node in its pool */
    dmg_segment_options segment;
    uint64_t peer_timeout_ns;
    uint8_t token[DMG_TOKEN_BYTES]; /**< clients must show the same */
    dmg_request_handler on_request;
    dmg_client_gone_handler on_client_gone;
    dmg_client_ended_handler on_client_ended;
    dmg_channel_handler on_channel; /**< may be NULL */
    dmg_round_handler on_round;     /**< may be NULL */
    void *context;
} dmg_server_options;

/**
 * Before memory nodes are started on this machine: whether there is what making all of their segments takes at once,
 * memory, room in file systems, huge pages, address space of a process, the NUMA node. Nothing is touched. Others may
 * take it afterwards.
 *
 * @param nodes  `count` of them, of one transport; what is not about segments may be missing
 * @return DMG_OK; DMG_ERR_MEMORY, DMG_ERR_UNSUPPORTED or what is wrong with the options, with the sum in the sentence
 */
dmg_status dmg_server_check_room(const dmg_server_options *nodes, uint32_t count);
/**
 * Create the segment and listen. `options` is copied. Destroy with dmg_server_destroy. Populating a large segment takes
 * its time: about half a second a GiB and thread.
 */
dmg_status dmg_server_create(const dmg_server_options *options, dmg_server **server);
/** NULL is allowed. Clients see a dead peer. */
void dmg_server_destroy(dmg_server *server);
/** The address string that clients open. Owned by the server. */
const char *dmg_server_address(const dmg_server *server);
/** What the segment got of what was asked for. */
dmg_placement dmg_server_placement(const dmg_server *server);
/** True when there is something that only this process removes in order: it should not be killed when it can end. */
bool dmg_server_has_files(const dmg_server *server);
/** The segment as this process sees it: zeroed, at least as large as asked, aligned to 2 MiB or its page size. */
void *dmg_server_segment(const dmg_server *server, uint64_t *bytes);
/**
 * Around a handler's loads and stores in the segment: acquire the spans that it reads, wait for all of them, load and
 * store, and release the spans that it wrote. What was released is in the pool before the next answer arrives. Needed
 * where software keeps hosts coherent, and nothing elsewhere. Offsets are inside the segment. From the serving thread.
 */
void dmg_server_acquire(dmg_server *server, uint64_t offset, uint64_t bytes);
void dmg_server_acquire_wait(dmg_server *server);
/** True where the three do nothing. */
bool dmg_server_is_coherent(const dmg_server *server);
void dmg_server_release(dmg_server *server, uint64_t offset, uint64_t bytes);
/**
 * Give pages of the segment back to the system: the span (whole pages) reads as zero then, for everybody, and takes no
 * memory until it is written again. False where pages have to stay: the segment was asked for with all its pages
 * (prefault), in huge pages or in memory that was there before (a file of another program, a device), or a card has
 * them registered.
 */
bool dmg_server_give_back(dmg_server *server, uint64_t offset, uint64_t bytes);
/**
 * Whether the segment lies in a file system that can be full. There pages that were given back have to be taken back
 * before anybody touches them, as a touch that finds no room ends its process.
 */
bool dmg_server_is_in_files(const dmg_server *server);
/** Have all pages of a span again; what it has already stays as it is. False: there is no room for them. */
bool dmg_server_take_back(dmg_server *server, uint64_t offset, uint64_t bytes);
/**
 * Serve until dmg_server_stop. Runs handlers in the calling thread; spins a little, then sleeps until something
 * arrives. `on_request` and `on_client_gone` are called from here only. Returns DMG_OK after a stop.
 */
dmg_status dmg_server_serve(dmg_server *server);
/**
 * Whether this client is gone, and may still write to the segment by itself: it had mapped it, and its process is not
 * known to have ended (where its process is not known: its connections have not). What it reached through a network
 * card was taken from it before `on_client_gone` told that it is gone.
 * What the memory node executes is refused to it anyhow. Until `on_client_ended` tells of its end, the memory that it
 * knows of must not be given to others.
 */
bool dmg_server_is_lost(dmg_server *server, uint64_t client);
/** The id of its process on this host; 0: not known. */
int dmg_server_client_pid(dmg_server *server, uint64_t client);
/** Channels that a client has open now; 0 for one that is not known. */
uint32_t dmg_server_client_channels(dmg_server *server, uint64_t client);
/** Look now whether lost clients have ended, as the serve loop does now and then. Serving thread. */
void dmg_server_look_for_ended(dmg_server *server);
/** Make dmg_server_serve return. Thread-safe and async-signal-safe. */
void dmg_server_stop(dmg_server *server);
/**
 * Answer a request. `status` and the payload (at most DMG_MESSAGE_BYTES_MAX) reach the caller's dmg_call. With a status
 * other than DMG_OK the payload is the handler's error sentence (no terminating zero). An answer to a client that is
 * gone is dropped. From the serving thread only.
 */
void dmg_server_reply(dmg_server *server, uint64_t reply_token, dmg_status status, const void *payload, size_t bytes);
/** Operations that this node's program served (messages, and one-sided operations where they are done by message). */
void dmg_server_counters(const dmg_server *server, dmg_counters *counters);

/* ---- compute-node side ---- */

typedef struct dmg_client dmg_client;   /**< one a process: what all its channels share */
typedef struct dmg_channel dmg_channel; /**< one a thread */

typedef struct dmg_client_options {
    const char *transport;
    const char *const *addresses; /**< of memory node 0, 1, ... */
    uint32_t address_count;
    uint64_t peer_timeout_ns;
    uint8_t token[DMG_TOKEN_BYTES];
    const dmg_link_settings *link; /**< the emulated link between this client and its memory nodes; NULL: none */
} dmg_client_options;

/**
 * Connect to all memory nodes of a pool and keep a lease with each (a thread that sleeps most of the time renews it).
 * `options` is copied. DMG_ERR_PEER when one does not answer within the peer timeout; DMG_ERR_PROTOCOL when it is not
 * ours, or the token is wrong.
 */
dmg_status dmg_client_open(const dmg_client_options *options, dmg_client **client);
/** All channels must be closed. NULL is allowed. */
void dmg_client_close(dmg_client *client);
/** This client's id, unique in the pool, not 0. */
uint64_t dmg_client_id(const dmg_client *client);
const dmg_capabilities *dmg_client_capabilities(const dmg_client *client);
uint32_t dmg_client_node_count(const dmg_client *client);
uint64_t dmg_client_segment_bytes(const dmg_client *client, uint16_t node);
/** DMG_OK, or DMG_ERR_PEER with the error context saying how the node was lost. Thread-safe. */
dmg_status dmg_client_node_status(const dmg_client *client, uint16_t node);
/**
 * Declare a node dead (backends, tests, and layers that know better). `why` says what it did, to stand behind "memory
 * node 1 (ADDRESS)": "died: its connection closed", "has not answered for 5.0 s". The first reason stays. Thread-safe.
 */
void dmg_client_mark_dead(dmg_client *client, uint16_t node, const char *why);

/**
 * The span as a pointer, when LOAD_STORE; else NULL. NULL too when the span is not inside a segment. Not counted and
 * not charged: that is done by dmg_channel_charge_read.
 */
void *dmg_client_pointer(const dmg_client *client, dmg_address address, uint64_t bytes);

/**
 * After a barrier behind which others have written what is going to be read where it is mapped: what is charged from
 * now on is what they wrote. Nothing to do where memory is coherent. Not while other threads of this client charge.
 */
void dmg_client_acquire(dmg_client *client);

/** Open this thread's channel to all nodes. Used by one thread at a time. */
dmg_status dmg_channel_open(dmg_client *client, dmg_channel **channel);
/** Waits for nothing: operations still in flight end with DMG_ERR_CANCELLED before it returns. NULL is allowed. */
void dmg_channel_close(dmg_channel *channel);
/** The client that the channel was opened on: layers that are given a channel ask it for nodes and capabilities. */
dmg_client *dmg_channel_client(const dmg_channel *channel);
const dmg_counters *dmg_channel_counters(const dmg_channel *channel);
/** What this channel sent to one memory node, and fetched from it; NULL when there is no such node. */
const dmg_node_traffic *dmg_channel_traffic(const dmg_channel *channel, uint16_t node);
/** What is posted and charged from now on is counted under this purpose too; at first DMG_PURPOSE_OTHER. Returns what
 * it was before. */
dmg_purpose dmg_channel_set_purpose(dmg_channel *channel, dmg_purpose purpose);

/**
 * What a task waits on: operations that carry it and have not ended. Zero it, post any number of operations with it,
 * then dmg_wait, or poll until `pending` is 0. `status` keeps the first error.
 */
typedef struct dmg_completion {
    uint32_t pending;
    dmg_status status;
    uint16_t failed_node; /**< when status is not DMG_OK */
    uint8_t overlap;      /**< for the counters: rounds of this thread that are in flight together; 0: this one alone */
    uint8_t kind;         /**< for the counters: of the first operation of its last round */
} dmg_completion;

/** A message's answer. */
typedef struct dmg_call {
    void *reply;           /**< where the answer's payload goes; may be NULL */
    size_t reply_capacity; /**< a longer answer is an error */
    size_t reply_bytes;
    dmg_status reply_status; /**< what the handler said; DMG_OK until then */
} dmg_call;

/*
 * Posting. Buffers and the completion must stay until the completion's pending is 0. A post never blocks for long: when
 * the link's queue is full it polls. Operations may be started at once or at the next ring. Errors appear in the
 * completion only. Reads and writes have any size; cas64 and faa64 need 8-byte alignment. Two operations in flight are
 * not ordered, messages of one channel to one node are.
 */
void dmg_post_read(dmg_channel *channel, dmg_address from, void *to, uint64_t bytes, dmg_completion *completion);
void dmg_post_write(dmg_channel *channel, const void *from, dmg_address to, uint64_t bytes, dmg_completion *completion);
/** `*observed` gets the word's value before; the exchange happened when it equals `expected`. */
void dmg_post_cas64(dmg_channel *channel, dmg_address word, uint64_t expected, uint64_t desired, uint64_t *observed,
                    dmg_completion *completion);
/** `*before` gets the word's value before the addition. */
void dmg_post_faa64(dmg_channel *channel, dmg_address word, uint64_t addend, uint64_t *before,
                    dmg_completion *completion);
/** Send a message; `call` gets its answer. The payload (at most DMG_MESSAGE_BYTES_MAX) is copied at once. */
void dmg_post_call(dmg_channel *channel, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                   dmg_call *call, dmg_completion *completion);
/** Hand everything posted to the link. */
void dmg_channel_ring(dmg_channel *channel);
/** Make progress without blocking. Also rings. */
void dmg_channel_poll(dmg_channel *channel);
/**
 * Ring and wait, backing off, until nothing of the completion is pending. Returns its status, with the error context
 * naming the node. Counted as time waited.
 */
dmg_status dmg_wait(dmg_channel *channel, dmg_completion *completion);
/**
 * Before a span is read where it is mapped (LOAD_STORE), always: counted; over an emulated link it takes the link's
 * time; and where memory is not coherent, lines that this host may have kept since before the last dmg_client_acquire
 * are dropped.
 */
void dmg_channel_charge_read(dmg_channel *channel, dmg_address address, uint64_t bytes);
/**
 * The same for a span that is read soon, together with others: over an emulated link their times overlap, as those of
 * loads that do not wait for each other. dmg_channel_charge_wait waits for them all, before the first of them is used.
 */
void dmg_channel_charge_read_ahead(dmg_channel *channel, dmg_address address, uint64_t bytes);
void dmg_channel_charge_wait(dmg_channel *channel);
/** As dmg_channel_charge_read, for a span that was written where it is mapped. */
void dmg_channel_charge_write(dmg_channel *channel, dmg_address address, uint64_t bytes);
/** As dmg_channel_charge_write, together with others: dmg_channel_charge_wait waits until all spans are written. */
void dmg_channel_charge_write_ahead(dmg_channel *channel, dmg_address address, uint64_t bytes);
/** Whether atomic operations by the CPU are to be charged, by dmg_channel_charge_atomic: only over an emulated link. */
bool dmg_channel_charges_atomics(const dmg_channel *channel);
/** Account for an atomic operation on this word by the CPU. Over an emulated link it takes the link's time. */
void dmg_channel_charge_atomic(dmg_channel *channel, dmg_address word);
/** Count compare-and-swaps that lost against another update and are to be repeated: only who swaps knows. */
void dmg_channel_count_lost_swaps(dmg_channel *channel, uint64_t count);

/* ---- conveniences that wait ---- */

dmg_status dmg_read(dmg_channel *channel, dmg_address from, void *to, uint64_t bytes);
dmg_status dmg_write(dmg_channel *channel, const void *from, dmg_address to, uint64_t bytes);
dmg_status dmg_cas64(dmg_channel *channel, dmg_address word, uint64_t expected, uint64_t desired, uint64_t *observed);
dmg_status dmg_faa64(dmg_channel *channel, dmg_address word, uint64_t addend, uint64_t *before);
/** Returns the transport's status, or else the handler's (call->reply_status), with a context for both. */
dmg_status dmg_message(dmg_channel *channel, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                       dmg_call *call);

#endif
