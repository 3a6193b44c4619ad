/**
 * @file backend.h
 * What a backend implements. Only transport/ includes this file.
 *
 * The layer above a backend (server.c, client.c, channel.c) does what is common to all: it parses transport strings,
 * checks addresses and sizes, counts, keeps leases, and spreads the news of a dead node. A backend moves bytes, and
 * reports what it sees of its peers.
 *
 * Who calls what: server operations run on the serving thread, except `wake`. Channel operations run on the channel's
 * thread. A completion's pending count was raised by the layer above; a backend ends an operation with
 * dmg_completion_end, on the channel's thread, exactly once.
 */
#ifndef DMG_TRANSPORT_BACKEND_H
#define DMG_TRANSPORT_BACKEND_H

#include "core/base/process.h"
#include "core/base/watch.h"
#include "transport/transport.h"

#include <stdatomic.h>
#include <string.h>

/** The part of a transport string behind the colon, taken apart. */
#define DMG_TRANSPORT_PARAMETERS_MAX 16
typedef struct dmg_transport_parameter {
    char key[32];
    char value[96];
} dmg_transport_parameter;

typedef struct dmg_transport_parameters {
    char backend[16];
    uint32_t count;
    dmg_transport_parameter entries[DMG_TRANSPORT_PARAMETERS_MAX];
} dmg_transport_parameters;

/** The value of a parameter, or `otherwise`. */
const char *dmg_transport_parameter_get(const dmg_transport_parameters *parameters, const char *key,
                                        const char *otherwise);

/** What a client knows of one memory node; client_open fills it in. */
typedef struct dmg_node {
    uint64_t segment_bytes;
    void *pointer;         /**< start of the mapped segment, or NULL without LOAD_STORE */
    _Atomic uint32_t dead; /**< set once, by the first to know */
    char why[160];         /**< what it did, as in "died: its connection closed"; written before `dead` is set */
} dmg_node;

/** What making one segment takes from this machine at once; all of it is 0 where nothing is taken. */
typedef struct dmg_segment_demand {
    uint64_t mapped_bytes;    /**< of its process's address space */
    uint64_t populated_bytes; /**< of ordinary memory, when it is made */
    uint64_t promised_bytes;  /**< and later, as it is used */
    uint64_t file_of_bytes;   /**< the size of a new file, with a name or without; 0: none is made */
    uint64_t file_bytes;      /**< in the file system of `folder` */
    char folder[128];
    uint64_t huge_page_bytes;
    uint64_t huge_pages;
    const char *remedy; /**< NULL, or what else helps than less memory: "use data=message" */
} dmg_segment_demand;

/*
 * What a backend makes are objects of three kinds. Each begins with its base, which has the table of its operations; a
 * backend's functions cast the base to what they made. An operation that may be NULL says so.
 *
 * Whatever has these tables can stand between the layer above and a backend: it forwards what it does not change
 * (transport/link/ does so).
 */

typedef struct dmg_server_operations dmg_server_operations;
typedef struct dmg_client_operations dmg_client_operations;
typedef struct dmg_channel_operations dmg_channel_operations;

/** The base of a memory node's side. */
typedef struct dmg_backend_server {
    const dmg_server_operations *operations;
} dmg_backend_server;

/** The base of what the channels of a compute node's process share. */
typedef struct dmg_backend_client {
    const dmg_client_operations *operations;
} dmg_backend_client;

/** The base of a thread's channel. */
typedef struct dmg_backend_channel {
    const dmg_channel_operations *operations;
} dmg_backend_channel;

/** The memory node's side. */
struct dmg_server_operations {
    void (*destroy)(dmg_backend_server *server);
    const char *(*address)(dmg_backend_server *server);
    void *(*segment)(dmg_backend_server *server, uint64_t *bytes);
    dmg_placement (*placement)(dmg_backend_server *server);
    /** Whether clients reach the segment by themselves, and not only through messages; NULL: they do. */
    bool (*is_reachable)(dmg_backend_server *server);
    /**
     * A client is gone: take from it, for good, what it reaches of the segment by itself. False when that cannot be
     * done, as with what it has mapped. NULL: it cannot.
     */
    bool (*fence)(dmg_backend_server *server, uint64_t client);
    /** dmg_server_has_files; NULL: never. */
    bool (*has_files)(dmg_backend_server *server);
    /** Handle what has arrived; returns how many things that were. */
    uint32_t (*progress)(dmg_backend_server *server);
    /** Sleep until something arrives, `wake` is called or the time is over; may return early. */
    void (*sleep)(dmg_backend_server *server, uint64_t timeout_ns);
    /** End a sleep, from any thread or signal handler. */
    void (*wake)(dmg_backend_server *server);
    void (*reply)(dmg_backend_server *server, uint64_t reply_token, dmg_status status, const void *payload,
                  size_t bytes);
    /* dmg_server_is_coherent, dmg_server_acquire and the like; NULL where there is nothing to do. */
    bool (*is_coherent)(dmg_backend_server *server);
    void (*acquire)(dmg_backend_server *server, uint64_t offset, uint64_t bytes);
    void (*acquire_wait)(dmg_backend_server *server);
    void (*release)(dmg_backend_server *server, uint64_t offset, uint64_t bytes);
    /**
     * A client was given up: break its connections, in a way that tells it why (a sentence), if it lives. Called once a
     * client, from the serve loop, outside of `progress`, after `fence`. Channels that are closed are reported by
     * dmg_server_channel_closed as always. Of a client whose process is not known, and which reaches the segment by
     * itself all the same, one connection has to stay: its end says that the process has ended. NULL: connections stay,
     * and all that comes over them is refused.
     */
    void (*break_client)(dmg_backend_server *server, uint64_t client, const char *why);
    /** dmg_server_give_back, for segments in ordinary pages and not prefaulted. */
    bool (*give_back)(dmg_backend_server *server, uint64_t offset, uint64_t bytes);
    /** dmg_server_is_in_files. */
    bool (*is_in_files)(dmg_backend_server *server);
};

/** The compute node's side: what its channels share. */
struct dmg_client_operations {
    /** After all channels. */
    void (*close)(dmg_backend_client *client);
    /** dmg_client_acquire; NULL where there is nothing to do. */
    void (*acquire)(dmg_backend_client *client);
    /** `owner` is for calling up. Thread-safe. */
    dmg_status (*channel_open)(dmg_backend_client *client, dmg_channel *owner, dmg_backend_channel **channel);
};

/** A channel. All on its thread. */
struct dmg_channel_operations {
    /** What is in flight ends with DMG_ERR_CANCELLED. */
    void (*close)(dmg_backend_channel *channel);
    void (*post_read)(dmg_backend_channel *channel, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                      dmg_completion *completion);
    void (*post_write)(dmg_backend_channel *channel, const void *from, uint16_t node, uint64_t offset, uint64_t bytes,
                       dmg_completion *completion);
    void (*post_cas64)(dmg_backend_channel *channel, uint16_t node, uint64_t offset, uint64_t expected,
                       uint64_t desired, uint64_t *observed, dmg_completion *completion);
    void (*post_faa64)(dmg_backend_channel *channel, uint16_t node, uint64_t offset, uint64_t addend, uint64_t *before,
                       dmg_completion *completion);
    void (*post_call)(dmg_backend_channel *channel, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                      dmg_call *call, dmg_completion *completion);
    void (*ring)(dmg_backend_channel *channel);
    void (*poll)(dmg_backend_channel *channel);
    /** Sleep until something may have arrived or the time is over; may return early. */
    void (*sleep)(dmg_backend_channel *channel, uint64_t timeout_ns);
    /** The node is dead: end everything in flight to it with DMG_ERR_PEER. Called once a node and channel. */
    void (*fail_node)(dmg_backend_channel *channel, uint16_t node);
    /**
     * When a wait would be over without anything arriving: in how many nanoseconds something ends that was held back
     * until a time; 0: the next poll will end it; UINT64_MAX: there is no such thing. May spin for a few microseconds.
     * NULL: nothing is ever held back.
     */
    uint64_t (*held_ns)(dmg_backend_channel *channel);

    /* Spans of the mapped segment that the thread loads from (DMG_OPERATION_READ), stores to (WRITE) or updates by an
     * atomic (CAS). All three may be left out where that costs nothing and needs nothing. */

    /** A span inside the segment is used, behind its stores and before its loads. NULL: nothing to do. */
    void (*use_mapped)(dmg_backend_channel *channel, dmg_operation_kind kind, uint16_t node, uint64_t offset,
                       uint64_t bytes);
    /** The thread needs the spans that it used. NULL: nothing to do. */
    void (*wait_mapped)(dmg_backend_channel *channel);
    /** Atomics have to be told to use_mapped, each. */
    bool charges_atomics;
};

/** A backend: what can be asked of it before there is a node, and how its objects are made. */
typedef struct dmg_backend {
    const char *name;
    /** NULL-terminated list of parameter keys that this backend understands. */
    const char *const *parameter_keys;

    /** dmg_transport_prepare; NULL where there is nothing to do. */
    void (*prepare)(void);
    /** dmg_transport_announce; `parameters` is NULL when no transport was chosen. NULL where there is nothing to say.
     */
    void (*announce)(const dmg_transport_parameters *parameters);
    /** dmg_transport_sweep; `removed` is not NULL. NULL where nothing is ever left. */
    void (*sweep)(uint64_t since_s, dmg_transport_removed removed, void *context);
    /** Append up to `capacity` lines about this backend's devices. */
    dmg_status (*describe)(dmg_transport_info *infos, size_t capacity, size_t *count);
    /**
     * What making this node's segment would take; an error when it could not be made at all. Touches nothing.
     * `*demand` is zeroed before.
     */
    dmg_status (*segment_demand)(const dmg_server_options *options, const dmg_transport_parameters *parameters,
                                 dmg_segment_demand *demand);
    /** dmg_transport_count_descriptors; `*descriptors` is zeroed before. */
    dmg_status (*descriptors)(const dmg_transport_parameters *parameters, dmg_transport_descriptors *descriptors);

    /** `owner` is for calling up. */
    dmg_status (*server_create)(dmg_server *owner, const dmg_server_options *options,
                                const dmg_transport_parameters *parameters, dmg_backend_server **server);
    dmg_status (*client_open)(dmg_client *owner, const dmg_client_options *options,
                              const dmg_transport_parameters *parameters, dmg_node *nodes,
                              dmg_capabilities *capabilities, dmg_backend_client **client);
} dmg_backend;

extern const dmg_backend dmg_backend_cxl_shm;
extern const dmg_backend dmg_backend_ucx;

/* ---- calls up, from a backend to the layer above ---- */

/** One operation of the completion has ended. `node` matters when status is not DMG_OK. */
static inline void dmg_completion_end(dmg_completion *completion, dmg_status status, uint16_t node)
{
    if (status != DMG_OK && completion->status == DMG_OK) {
        completion->status = status;
        completion->failed_node = node;
    }
    completion->pending--;
}

/**
 * A call's answer has arrived: copy it, and return what the operation ends with. An answer that is longer than the
 * caller's room is DMG_ERR_LIMIT; a handler's error sentence is cut to fit instead, since the status says enough.
 */
static inline dmg_status dmg_call_answer(dmg_call *call, dmg_status reply_status, const void *payload, size_t bytes)
{
    size_t capacity = call->reply ? call->reply_capacity : 0;
    call->reply_status = reply_status;
    call->reply_bytes = bytes;
    if (bytes > capacity) {
        if (reply_status == DMG_OK) {
            return DMG_ERR_LIMIT;
        }
        call->reply_bytes = capacity;
    }
    if (call->reply_bytes != 0) {
        memcpy(call->reply, payload, call->reply_bytes);
    }
    return DMG_OK;
}

/**
 * A channel of this client said hello (with the right token), and is open: it may have been one too many, or the client
 * may have been given up before, and then what comes over it is refused. A client may have many channels; its process
 * is taken from the first. A pid of 0: it is on another host, or not known.
 */
void dmg_server_channel_opened(dmg_server *server, uint64_t client, const dmg_process *process);
/** A channel of this client closed (DMG_OK), or broke (DMG_ERR_PEER: the client counts as dead). */
void dmg_server_channel_closed(dmg_server *server, uint64_t client, dmg_status why);
/** A message has arrived. Leases are handled here; the rest goes to the handler. */
void dmg_server_deliver(dmg_server *server, const dmg_request *request);
/** The counters that a backend adds to when it serves one-sided operations by message. */
dmg_counters *dmg_server_mutable_counters(dmg_server *server);
/**
 * Why nothing is done for this client any more: a sentence for it, or NULL. Whatever a memory node executes for a
 * client asks here first: dmg_server_deliver by itself, a backend before the one-sided operations that it serves by
 * message, which it answers by DMG_ERR_PEER and the sentence. A flag is tested while no client is gone.
 */
const char *dmg_server_refusal(dmg_server *server, uint64_t client);
/** The compute node's side of it: the node's answer to a lease or a one-sided operation was DMG_ERR_PEER and this, or
 * it said so as it broke the connection. */
void dmg_client_refused(dmg_client *client, uint16_t node, const void *sentence, size_t bytes);
/** The serve loop's watch, which looks at the clock once a round: for stamps and silences of those who connect. */
const dmg_watch *dmg_server_watch(const dmg_server *server);
/** The counters that a backend adds to on a channel's thread. */
dmg_counters *dmg_channel_mutable_counters(dmg_channel *channel);
/** Have fail_node called for the nodes that died since the last call: where a post has to wait for room. */
void dmg_channel_notice_deaths(dmg_channel *channel);
/** Open a channel of this client over something else than what the client's own channels go over. As dmg_channel_open.
 */
dmg_status dmg_channel_open_over(dmg_client *client, dmg_backend_client *lower, dmg_channel **channel);

#endif
