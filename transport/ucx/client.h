/**
 * @file client.h
 * The compute node's end, shared by client.c (opening and closing), connect.c (connections), lane.c (one-sided lanes)
 * and channel.c (operations).
 */
#ifndef DMG_TRANSPORT_UCX_CLIENT_H
#define DMG_TRANSPORT_UCX_CLIENT_H

#include "transport/ucx/card.h"
#include "transport/ucx/carrier.h"
#include "transport/ucx/ucx.h"

#include <poll.h>

/** What every channel of a client knows of a server; read-only once the client is open. */
typedef struct dmg_ucx_facts {
    dmg_stream_address address;
    char address_text[DMG_ADDRESS_STRING_BYTES];
    uint64_t epoch; /**< another one after a restart */
    uint64_t segment_bytes;
    uint64_t base;
    char data[32];
    uint32_t lane;         /**< DMG_UCX_LANE_... */
    uint8_t *data_address; /**< of the lane, and the segment's key, or NULL */
    uint8_t *data_key;
    bool is_one_sided; /**< this client uses the lane */
} dmg_ucx_facts;

typedef struct dmg_ucx_channel dmg_ucx_channel;

typedef struct dmg_ucx_client {
    dmg_backend_client base;
    dmg_client *client;
    dmg_ucx_settings settings;
    dmg_node *nodes;
    uint32_t node_count;
    uint64_t peer_timeout_ns;
    uint8_t token[DMG_TOKEN_BYTES];
    ucp_context_h message_context; /**< NULL when requests and answers go over the streams, or a card */
    dmg_ucx_card *message_card;    /**< when it carries them */
    ucp_context_h data_context;    /**< of shared memory */
    dmg_ucx_card *card;
    dmg_ucx_data data;          /**< SHARED_MEMORY, NIC, or MESSAGE */
    bool has_one_sided_atomics; /**< on every node: executors are never mixed */
    dmg_ucx_facts *facts;
    /** The channel that client_open said hello with: the first channel that is opened, so that the client never has
     * none. */
    _Atomic(dmg_ucx_channel *) first_channel;
} dmg_ucx_client;

#define DMG_UCX_NO_SLOT UINT32_MAX

/** An operation that has been posted and has not ended; its place in the table is part of its id on the wire. */
typedef struct dmg_ucx_operation {
    uint16_t kind; /**< dmg_ucx_kind, 0 when the place is free */
    uint16_t node;
    uint16_t generation;
    bool is_by_message;
    bool is_held_by_ucx; /**< a one-sided operation that UCX has not let go of */
    bool is_ended;       /**< the completion was told, though UCX holds the operation still */
    dmg_status status;
    uint32_t next; /**< free list, or the queue of its node */
    uint32_t pieces_sent;
    uint32_t pieces_answered;
    uint32_t pieces;
    uint64_t bytes;
    uint64_t offset; /**< CALL: the type */
    void *local;     /**< where to or from; a copied payload of a CALL that had to queue */
    uint64_t operands[2];
    dmg_call *call;
    dmg_completion *completion;
    dmg_ucx_channel *channel;
    uct_completion_t at_card; /**< counts the pieces that the card has and has not completed */
} dmg_ucx_operation;

typedef struct dmg_ucx_list {
    uint32_t first;
    uint32_t last;
} dmg_ucx_list;

/** A channel's connection to one server. */
typedef struct dmg_ucx_link {
    dmg_ucx_channel *channel;
    uint16_t node;
    dmg_ucx_carrier carrier;
    ucp_ep_h data_endpoint; /**< to shared memory */
    ucp_rkey_h key;
    uct_ep_h queue_pair; /**< of a card */
    uct_rkey_bundle_t card_key;
    bool has_card_key;
    bool is_unreached; /**< nobody took the connection */
    bool is_welcomed;
    bool has_farewell;
    bool is_failed;     /**< nothing goes to it any more */
    const char *broken; /**< set by callbacks, acted on by the loop */
    dmg_status refused; /**< the server's answer to the hello */
    char sentence[160];
    dmg_ucx_frame *filling;
    uint64_t window_bytes; /**< in flight, requests and answers */
    dmg_ucx_list queue;    /**< by-message operations that have not been put into a frame as a whole */
    uint32_t one_sided;    /**< operations that UCX holds */
    dmg_ucx_list at_card;  /**< operations that the card has had no room for as a whole */
    bool has_moved;        /**< the card was given or has completed something since the last look */
    dmg_ucx_patience patience;
    dmg_ucx_list unflushed; /**< writes whose remote completion nobody has asked for */
    dmg_ucx_list flushing;
    bool is_flushing;
    uct_completion_t flushed;
} dmg_ucx_link;

#define DMG_UCX_OPERATIONS_MAX 4096

struct dmg_ucx_channel {
    dmg_backend_channel base;
    dmg_ucx_client *client;
    dmg_ucx_hub *hub;     /**< NULL when requests and answers go over the streams */
    struct pollfd *waits; /**< room for what a sleep waits for */
    ucp_worker_h data_worker;
    dmg_ucx_port port; /**< of a card, from the first lane over it on */
    int data_event;    /**< the port's, or -1 */
    dmg_ucx_link *links;
    uint32_t node_count;
    dmg_ucx_operation *operations;
    uint32_t free_operation;
    uint32_t by_message; /**< operations in flight that need an answer */
    uint32_t idle_polls;
    uint32_t looks;
    uint32_t polls;
    dmg_ucx_frames frames;
};

/* ---- client.c ---- */

dmg_status dmg_ucx_client_open(dmg_client *client, const dmg_client_options *options,
                               const dmg_transport_parameters *parameters, dmg_node *nodes,
                               dmg_capabilities *capabilities, dmg_backend_client **made);
void dmg_ucx_client_close(dmg_backend_client *base);
dmg_status dmg_ucx_channel_open(dmg_backend_client *base, dmg_channel *channel, dmg_backend_channel **made);
void dmg_ucx_channel_close(dmg_backend_channel *base);

/* ---- connect.c ---- */

/** Connect to every node. Those that do not welcome us keep is_welcomed false. An error names the node. */
dmg_status dmg_ucx_connections_open(dmg_ucx_channel *channel);
/** Tell the servers that this is a parting and no death, and wait a little for their farewells. */
void dmg_ucx_connections_say_goodbye(dmg_ucx_channel *channel);
/** Cut all connections, and wait a little for UCX to let go of its own. */
void dmg_ucx_connections_cut(dmg_ucx_channel *channel);

/* ---- lane.c ---- */

/** Open this channel's one-sided lane to a node's shared memory. */
dmg_status dmg_ucx_lane_open(dmg_ucx_channel *channel, uint32_t node);
/** UCX names a get lane of an endpoint only when reads there are real and not done by the peer's program. */
bool dmg_ucx_lane_is_real(ucp_ep_h endpoint);

/* ---- card_lane.c ---- */

/**
 * Open this channel's one-sided lane to a node over a card, and wait until a word has been read over it. The first
 * operation that needs it does so: it has a queue of its own at both ends, which a channel that only sends messages
 * does without. DMG_ERR_PEER when the node died meanwhile.
 */
dmg_status dmg_ucx_card_lane_open(dmg_ucx_channel *channel, uint32_t node);
/** Close it, and cancel what is in flight there: nothing of it is held by UCX any more. Without a lane, nothing. */
void dmg_ucx_card_lane_close(dmg_ucx_channel *channel, uint32_t node);
/** Post a read or write, in pieces. */
void dmg_ucx_card_post(dmg_ucx_channel *channel, dmg_ucx_operation *operation);
/** Give the card what it has had no room for, and ask for the remote completion of the writes so far. */
void dmg_ucx_card_drive(dmg_ucx_link *link);

/* ---- channel.c ---- */

void dmg_ucx_list_append(dmg_ucx_channel *channel, dmg_ucx_list *list, uint32_t slot);
void dmg_ucx_list_pop(dmg_ucx_channel *channel, dmg_ucx_list *list);
/** Tell the completion, and free the place unless UCX still holds the operation. */
void dmg_ucx_end_operation(dmg_ucx_channel *channel, dmg_ucx_operation *operation, dmg_status status);
/** Ask the node for a lane over a card, by message, and wait for the answer or the node's end. */
dmg_status dmg_ucx_request_lane(dmg_ucx_channel *channel, uint16_t node, const dmg_ucx_card_address *own,
                                dmg_ucx_lane_answer *answer);
/** End every operation to the node, or to all nodes. */
void dmg_ucx_end_all(dmg_ucx_channel *channel, int node, dmg_status status);
/** Take a frame of answers; what is wrong with it breaks the link. */
void dmg_ucx_take_answers(dmg_ucx_link *link, const dmg_ucx_header *header, const uint8_t *payload);
/** Take what has come, on the streams of links that are asked (all: everywhere). Returns how much that was. */
uint32_t dmg_ucx_channel_look(dmg_ucx_channel *channel, bool all);

void dmg_ucx_post_read(dmg_backend_channel *base, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                       dmg_completion *completion);
void dmg_ucx_post_write(dmg_backend_channel *base, const void *from, uint16_t node, uint64_t offset, uint64_t bytes,
                        dmg_completion *completion);
void dmg_ucx_post_cas64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t expected, uint64_t desired,
                        uint64_t *observed, dmg_completion *completion);
void dmg_ucx_post_faa64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t addend, uint64_t *before,
                        dmg_completion *completion);
void dmg_ucx_post_call(dmg_backend_channel *base, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                       dmg_call *call, dmg_completion *completion);
void dmg_ucx_ring(dmg_backend_channel *base);
void dmg_ucx_poll(dmg_backend_channel *base);
void dmg_ucx_channel_sleep(dmg_backend_channel *base, uint64_t timeout_ns);
void dmg_ucx_fail_node(dmg_backend_channel *base, uint16_t node);

#endif
