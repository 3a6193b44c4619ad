/**
 * @file server.h
 * The memory node's end, shared by server.c (creation and the serving loop), connections.c, answers.c and requests.c.
 *
 * Whatever a client sends is checked. What it may ask but cannot have (an offset beyond the segment) is answered with
 * an error; what no client of ours would send breaks its connection, and only that. What breaks is only noted:
 * connections are closed from dmg_ucx_server_progress, and freed when UCX holds nothing of them any more.
 */
#ifndef DMG_TRANSPORT_UCX_SERVER_H
#define DMG_TRANSPORT_UCX_SERVER_H

#include "transport/stream/listener.h"
#include "transport/ucx/card.h"
#include "transport/ucx/carrier.h"
#include "transport/ucx/ucx.h"

#include <sys/epoll.h>

typedef enum dmg_ucx_stage {
    DMG_UCX_STAGE_NEW,      /**< has not said hello, or not a good one */
    DMG_UCX_STAGE_WELCOMED, /**< a client's channel */
    DMG_UCX_STAGE_PARTED,   /**< said goodbye */
    DMG_UCX_STAGE_CLOSING,  /**< the endpoint is being closed */
} dmg_ucx_stage;

typedef struct dmg_ucx_server dmg_ucx_server;
typedef struct dmg_ucx_lane dmg_ucx_lane;

typedef struct dmg_ucx_connection {
    dmg_ucx_server *server;
    dmg_ucx_stage stage;
    uint32_t number;     /**< place in the table */
    uint32_t generation; /**< of the place in the table, so that late answers do not reach another client */
    uint64_t client;
    dmg_ucx_lane *lane; /**< over a card, or NULL */
    dmg_ucx_carrier carrier;
    int socket;
    bool waits_to_write;    /**< and epoll knows */
    uint64_t since_ns;      /**< of the greeting, or of the goodbye */
    const char *broken;     /**< why it has to be closed, or NULL */
    uint32_t calls;         /**< messages whose answers are due */
    dmg_ucx_frame *filling; /**< answers that are not on their way */
    struct dmg_ucx_connection *next_dirty;
    bool is_dirty;
    bool is_active;      /**< in the list of those that are looked at in each round */
    uint32_t idle_looks; /**< since something came */
    struct dmg_ucx_connection *next_active;
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

#define DMG_UCX_EVENTS_MAX 64

struct dmg_ucx_server {
    dmg_backend_server base;
    dmg_server *server;
    dmg_counters *counters;
    uint16_t node;
    uint8_t token[DMG_TOKEN_BYTES];
    uint64_t hello_timeout_ns;
    uint64_t epoch;
    char messages[96]; /**< what requests and answers go over */

    dmg_listener *listener;
    char address[DMG_ADDRESS_STRING_BYTES]; /**< where others find it */
    ucp_context_h message_context;
    dmg_ucx_card *message_card; /**< when a card carries them */
    dmg_ucx_hub *hub;           /**< NULL when they go over the streams */
    int events;                 /**< an epoll descriptor of all that can wake the server */
    int wake_event;
    struct epoll_event ready[DMG_UCX_EVENTS_MAX];
    uint32_t ready_count;       /**< that nobody has looked at */
    bool has_guests;            /**< something happened at the listener */
    dmg_ucx_connection *active; /**< from which something came lately */
    uint32_t active_count;
    uint32_t looks;

    char data_transports[32]; /**< of the one-sided lane, or "" */
    uint32_t lane;            /**< DMG_UCX_LANE_... */
    ucp_context_h data_context;
    ucp_worker_h data_worker;
    ucp_address_t *data_address;
    size_t data_address_bytes;
    void *data_key;
    size_t data_key_bytes;
    dmg_ucx_card *card; /**< of lanes over a card, or NULL */
    dmg_ucx_card_memory card_memory;
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
/** A channel has ended: the layer above hears of it, once. */
void dmg_ucx_connection_part(dmg_ucx_connection *connection, dmg_status why);
/** Close what is broken or overdue, and free what is closed. */
void dmg_ucx_connections_sweep(dmg_ucx_server *server);
/** Close all, and wait a little for UCX to let go. */
void dmg_ucx_connections_close_all(dmg_ucx_server *server);
/** Take in a stream whose other end has proved itself (for dmg_listener_progress, with the server as context). */
void dmg_ucx_on_stream(void *server, dmg_stream *stream);

/* ---- events.c ---- */

/** Wait with everything else for this descriptor: the kind of event, and for streams the connection's number. */
enum { DMG_UCX_EVENT_WAKE, DMG_UCX_EVENT_LISTENER, DMG_UCX_EVENT_UCX, DMG_UCX_EVENT_STREAM };
dmg_status dmg_ucx_events_open(dmg_ucx_server *server);
dmg_status dmg_ucx_events_add(dmg_ucx_server *server, int descriptor, uint32_t kind, uint32_t number);
/** The connection's socket has taken all, or not: wait for room, or stop that. */
void dmg_ucx_events_follow(dmg_ucx_connection *connection);
/** A connection is going to be closed: nobody looks at it any more. */
void dmg_ucx_events_forget(dmg_ucx_connection *connection);
/** Take what has come to the streams, and note what happened elsewhere. Returns how many frames there were. */
uint32_t dmg_ucx_events_look(dmg_ucx_server *server);
/** Wait for anything; what there is then is taken by the next look. */
void dmg_ucx_events_wait(dmg_ucx_server *server, uint64_t timeout_ns);

/* ---- lanes.c ---- */

/** Answer a request for a lane over a card; one that the connection has already is cut. */
void dmg_ucx_lane_serve(dmg_ucx_connection *connection, uint64_t id, const dmg_ucx_card_address *peer);
/** The client reaches nothing over this connection's lane any more when this returns; without a lane, nothing. */
void dmg_ucx_lane_cut(dmg_ucx_connection *connection);

/* ---- answers.c ---- */

/** Send a frame; it goes back to the server's free frames. */
void dmg_ucx_server_send(dmg_ucx_connection *connection, uint32_t kind, dmg_ucx_frame *frame);
/** Send the answers that have gathered, unless so many frames wait already that it is better to gather more. */
void dmg_ucx_answers_flush(dmg_ucx_server *server);
/** Begin an answer; returns where its `bytes` bytes go, or NULL when the connection had to be given up. */
void *dmg_ucx_answer_begin(dmg_ucx_connection *connection, uint64_t id, dmg_status status, uint32_t bytes);
void dmg_ucx_answer_error(dmg_ucx_connection *connection, uint64_t id, dmg_status status, const char *sentence);

/* ---- requests.c ---- */

/** What the carrier of a dmg_ucx_connection calls. */
extern const dmg_ucx_carrier_calls dmg_ucx_server_calls;

#endif
