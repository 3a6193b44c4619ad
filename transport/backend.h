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

/** What a client knows of one memory node; filled by client_open. */
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

typedef struct dmg_backend {
    const char *name;
    /** Append up to `capacity` lines about this backend's devices. */
    dmg_status (*describe)(dmg_transport_info *infos, size_t capacity, size_t *count);
    /** NULL-terminated list of parameter keys that this backend understands. */
    const char *const *parameter_keys;
    /** dmg_transport_announce; `parameters` is NULL when no transport was chosen. NULL where there is nothing to say.
     */
    void (*announce)(const dmg_transport_parameters *parameters);
    /** dmg_transport_sweep; `removed` is not NULL. */
    void (*sweep)(uint64_t since_s, dmg_transport_removed removed, void *context);

    /**
     * What making this node's segment would take; an error when it could not be made at all. Touches nothing.
     * `*demand` is zeroed before.
     */
    dmg_status (*segment_demand)(const dmg_server_options *options, const dmg_transport_parameters *parameters,
                                 dmg_segment_demand *demand);

    /** dmg_transport_count_descriptors; `*descriptors` is zeroed before. */
    dmg_status (*descriptors)(const dmg_transport_parameters *parameters, dmg_transport_descriptors *descriptors);

    /* Memory-node side. `server` is for calling up. */
    dmg_status (*server_create)(dmg_server *server, const dmg_server_options *options,
                                const dmg_transport_parameters *parameters, void **implementation);
    void (*server_destroy)(void *implementation);
    const char *(*server_address)(void *implementation);
    void *(*server_segment)(void *implementation, uint64_t *bytes);
    dmg_placement (*server_placement)(void *implementation);
    /** Whether clients reach the segment by themselves, and not only through messages; NULL: they do. */
    bool (*server_is_reachable)(void *implementation);
    /**
     * A client is gone: take from it, for good, what it reaches of the segment by itself. False when that cannot be
     * done, as with what it has mapped. NULL: it cannot.
     */
    bool (*server_fence)(void *implementation, uint64_t client);
    /** dmg_server_has_files; NULL: never. */
    bool (*server_has_files)(void *implementation);
    /** Handle what has arrived; returns how many things that were. */
    uint32_t (*server_progress)(void *implementation);
    /** Sleep until something arrives, `wake` is called or the time is over; may return early. */
    void (*server_sleep)(void *implementation, uint64_t timeout_ns);
    /** End a sleep, from any thread or signal handler. */
    void (*server_wake)(void *implementation);
    void (*server_reply)(void *implementation, uint64_t reply_token, dmg_status status, const void *payload,
                         size_t bytes);
    /* dmg_server_acquire and the like; NULL where there is nothing to do. */
    bool (*server_is_coherent)(void *implementation);
    void (*server_acquire)(void *implementation, uint64_t offset, uint64_t bytes);
    void (*server_acquire_wait)(void *implementation);
    void (*server_release)(void *implementation, uint64_t offset, uint64_t bytes);
    /**
     * A client was given up: break its connections, in a way that tells it why (a sentence), if it lives. Called once a
     * client, from the serve loop, outside of server_progress, after server_fence. Channels that are closed are
     * reported by dmg_server_channel_closed as always. Of a client whose process is not known, and which reaches the
     * segment by itself all the same, one connection has to stay: its end says that the process has ended. NULL:
     * connections stay, and all that comes over them is refused.
     */
    void (*server_break_client)(void *implementation, uint64_t client, const char *why);
    /** dmg_server_give_back, for segments in ordinary pages and not prefaulted. */
    bool (*server_give_back)(void *implementation, uint64_t offset, uint64_t bytes);
    /** dmg_server_is_in_files. */
    bool (*server_is_in_files)(void *implementation);

    /* Compute-node side. */
    dmg_status (*client_open)(dmg_client *client, const dmg_client_options *options,
                              const dmg_transport_parameters *parameters, dmg_node *nodes,
                              dmg_capabilities *capabilities, void **implementation);
    void (*client_close)(void *implementation);
    /** dmg_client_acquire; NULL where there is nothing to do. */
    void (*client_acquire)(void *implementation);
    dmg_status (*channel_open)(void *client_implementation, dmg_channel *channel, void **implementation);
    void (*channel_close)(void *implementation);
    void (*post_read)(void *implementation, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                      dmg_completion *completion);
    void (*post_write)(void *implementation, const void *from, uint16_t node, uint64_t offset, uint64_t bytes,
                       dmg_completion *completion);
    void (*post_cas64)(void *implementation, uint16_t node, uint64_t offset, uint64_t expected, uint64_t desired,
                       uint64_t *observed, dmg_completion *completion);
    void (*post_faa64)(void *implementation, uint16_t node, uint64_t offset, uint64_t addend, uint64_t *before,
                       dmg_completion *completion);
    void (*post_call)(void *implementation, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                      dmg_call *call, dmg_completion *completion);
    void (*ring)(void *implementation);
    void (*poll)(void *implementation);
    /** Sleep until something may have arrived or the time is over; may return early. */
    void (*channel_sleep)(void *implementation, uint64_t timeout_ns);
    /** The node is dead: end everything in flight to it with DMG_ERR_PEER. Called once a node and channel. */
    void (*fail_node)(void *implementation, uint16_t node);
    /** A span is about to be read in place; NULL where there is nothing to do. */
    void (*acquire)(void *implementation, uint16_t node, uint64_t offset, uint64_t bytes);
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

#endif
