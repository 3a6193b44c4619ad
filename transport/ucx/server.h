/**
 * @file server.h
 * The memory node's end, shared by server.c (creation and the serving loop), connections.c, answers.c and requests.c.
 *
 * Whatever a client sends is checked. What it may ask but cannot have (an offset beyond the segment) is answered with
 * an error; what no client of ours would send breaks its connection, and only that. UCX's error callback does no more
 * than set a flag: endpoints are closed from dmg_ucx_server_progress, by force, and a connection is freed when UCX
 * holds nothing of it any more.
 */
#ifndef DMG_TRANSPORT_UCX_SERVER_H
#define DMG_TRANSPORT_UCX_SERVER_H

#include "transport/ucx/ucx.h"

typedef enum dmg_ucx_stage {
    DMG_UCX_STAGE_NEW,      /**< has not said hello, or not a good one */
    DMG_UCX_STAGE_WELCOMED, /**< a client's channel */
    DMG_UCX_STAGE_PARTED,   /**< said goodbye */
    DMG_UCX_STAGE_CLOSING,  /**< its endpoint is being closed */
} dmg_ucx_stage;

typedef struct dmg_ucx_server dmg_ucx_server;

typedef struct dmg_ucx_connection {
    dmg_ucx_server *server;
    dmg_ucx_stage stage;
    uint32_t number;     /**< place in the table */
    uint32_t generation; /**< of that place, so that late answers do not reach another client */
    uint32_t echo;       /**< what the client calls this node */
    uint64_t client;
    ucp_ep_h endpoint;
    uint64_t since_ns;  /**< of the connect, or of the goodbye */
    const char *broken; /**< why it has to be closed, or NULL */
    uint32_t frames_in_flight;
    uint32_t calls;         /**< messages whose answers are due */
    dmg_ucx_frame *filling; /**< answers that are not on their way */
    struct dmg_ucx_connection *next_dirty;
    bool is_dirty;
    void *close_request;
} dmg_ucx_connection;

typedef struct dmg_ucx_place {
    dmg_ucx_connection *connection;
    uint32_t generation;
} dmg_ucx_place;

/** A message whose answer is due. */
typedef struct dmg_ucx_due_call {
    uint64_t id;
    uint32_t number; /**< the connection's place and its generation */
    uint32_t connection_generation;
    uint32_t generation;
    uint32_t next_free;
    bool is_due;
} dmg_ucx_due_call;

#define DMG_UCX_NO_CALL UINT32_MAX

/** The memory node's end of a one-sided lane that came through the lanes' listener. */
typedef struct dmg_ucx_lane {
    dmg_ucx_server *server;
    ucp_ep_h endpoint; /**< NULL once it is being closed */
    void *close_request;
    bool is_broken;
    struct dmg_ucx_lane *next;
} dmg_ucx_lane;

struct dmg_ucx_server {
    dmg_server *server;
    dmg_counters *counters;
    uint16_t node;
    uint8_t token[DMG_TOKEN_BYTES];
    uint64_t hello_timeout_ns;
    uint64_t epoch;
    char address[DMG_ADDRESS_STRING_BYTES];

    ucp_context_h message_context;
    ucp_worker_h worker;
    ucp_listener_h listener;
    int worker_event;
    int wake_event;

    char data_transports[32]; /**< of the one-sided lane, or "" */
    uint32_t lane;            /**< DMG_UCX_LANE_... */
    ucp_listener_h lane_listener;
    char lane_address[DMG_ADDRESS_STRING_BYTES];
    dmg_ucx_lane *lanes;
    bool has_broken_lane; /**< or one that is being closed */
    ucp_context_h data_context;
    ucp_worker_h data_worker;
    int data_event; /**< -1 when its worker needs no progress */
    ucp_address_t *data_address;
    size_t data_address_bytes;
    void *data_key;
    size_t data_key_bytes;
    dmg_ucx_segment segment;

    dmg_ucx_place *places;
    uint32_t place_count;
    uint32_t connection_count;
    uint32_t closing_count;
    uint32_t strangers; /**< connections that are no channel: before the hello or after the goodbye */
    bool is_ending;     /**< nobody is told of its clients any more */
    bool has_broken;
    dmg_ucx_connection *dirty;
    dmg_ucx_due_call *calls;
    uint32_t call_count;
    uint32_t free_call;
    dmg_ucx_frames frames;
    uint32_t handled;
    uint64_t next_sweep_ns;
    uint64_t message[DMG_MESSAGE_BYTES_MAX / 8]; /**< an aligned copy of the message being handled */
};

/* ---- connections.c ---- */

/** Note that a connection has to be closed, and why; the first reason counts. */
void dmg_ucx_connection_break(dmg_ucx_connection *connection, const char *why);
/** Break whichever connection a message came over that does not name its own rightly. */
void dmg_ucx_endpoint_break(dmg_ucx_server *server, const ucp_am_recv_param_t *from, const char *why);
/** The connection that a message came over and that its header names, or NULL. */
dmg_ucx_connection *dmg_ucx_sender(dmg_ucx_server *server, const dmg_ucx_header *header,
                                   const ucp_am_recv_param_t *from);
/** A channel has ended: the layer above hears of it, once. */
void dmg_ucx_connection_part(dmg_ucx_connection *connection, dmg_status why);
/** Close what is broken or overdue, and free what is closed. */
void dmg_ucx_connections_sweep(dmg_ucx_server *server);
/** Close all, and wait a little for UCX to let go. */
void dmg_ucx_connections_close_all(dmg_ucx_server *server);
void dmg_ucx_on_connection_request(ucp_conn_request_h request, void *argument);

/* ---- lanes.c ---- */

/**
 * Listen for lanes at the address of the data device. False when that is not possible, with the reason in the error
 * context: then lanes are wired up from the worker's address.
 */
bool dmg_ucx_lanes_listen(dmg_ucx_server *server, const dmg_ucx_settings *settings);
/** Close lanes whose clients are gone. */
void dmg_ucx_lanes_sweep(dmg_ucx_server *server);
/** Close all and stop listening, before the data worker goes. */
void dmg_ucx_lanes_close_all(dmg_ucx_server *server);

/* ---- answers.c ---- */

/** Hand a frame to UCX; it goes back to the server's free frames. */
void dmg_ucx_server_send(dmg_ucx_connection *connection, unsigned id, dmg_ucx_frame *frame);
/** Send the answers that have gathered, unless so many frames wait already that it is better to gather more. */
void dmg_ucx_answers_flush(dmg_ucx_server *server);
/** Begin an answer; returns where its `bytes` bytes go, or NULL when the connection had to be given up. */
void *dmg_ucx_answer_begin(dmg_ucx_connection *connection, uint64_t id, dmg_status status, uint32_t bytes);
void dmg_ucx_answer_error(dmg_ucx_connection *connection, uint64_t id, dmg_status status, const char *sentence);

/* ---- requests.c: handlers of active messages ---- */

ucs_status_t dmg_ucx_on_requests(void *argument, const void *header_bytes, size_t header_length, void *data,
                                 size_t length, const ucp_am_recv_param_t *from);
ucs_status_t dmg_ucx_on_hello(void *argument, const void *header_bytes, size_t header_length, void *data, size_t length,
                              const ucp_am_recv_param_t *from);
ucs_status_t dmg_ucx_on_goodbye(void *argument, const void *header_bytes, size_t header_length, void *data,
                                size_t length, const ucp_am_recv_param_t *from);
ucs_status_t dmg_ucx_on_unknown_message(void *argument, const void *header_bytes, size_t header_length, void *data,
                                        size_t length, const ucp_am_recv_param_t *from);

#endif
