/**
 * @file server.c
 * The memory node's end: a listener, one worker that one thread drives, and a table of connections.
 *
 * Whatever a client sends is checked. What it may ask but cannot have (an offset beyond the segment) is answered with an error; what no
 * client of ours would send breaks its connection, and only that. UCX's error callback does no more than set a flag: endpoints
 * are closed from dmg_ucx_server_progress, by force, and a connection is freed when UCX holds nothing of it any more.
 */
#include "core/base/checked.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/ucx/ucx.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/** Connections at once, a bound on what strangers can make the server keep. */
#define CONNECTIONS_MAX 4096
/** Messages of one connection whose answers are due. A client's window holds fewer. */
#define CALLS_MAX_PER_CONNECTION 32768
/** Frames to one client that UCX could not send yet. Twice what the client's window allows: beyond, it has left the rules. */
#define FRAMES_MAX_PER_CONNECTION 64
/** Rounds of progress before the serving thread looks up. */
#define ROUNDS_MAX 64

typedef enum connection_stage {
    CONNECTION_NEW,      /**< has not said hello, or not a good one */
    CONNECTION_WELCOMED, /**< a client's channel */
    CONNECTION_PARTED,   /**< said goodbye */
    CONNECTION_CLOSING,  /**< its endpoint is being closed */
} connection_stage;

typedef struct ucx_server ucx_server;

typedef struct ucx_connection {
    ucx_server *server;
    connection_stage stage;
    uint32_t number;     /**< place in the table */
    uint32_t generation; /**< of that place, so that late answers do not reach another client */
    uint32_t echo;       /**< what the client calls this node */
    uint64_t client;
    ucp_ep_h endpoint;
    uint64_t opened_ns;
    const char *broken; /**< why it has to be closed, or NULL */
    uint32_t frames_in_flight;
    uint32_t calls;         /**< messages whose answers are due */
    dmg_ucx_frame *filling; /**< answers that are not on their way */
    struct ucx_connection *next_dirty;
    bool is_dirty;
    void *close_request;
} ucx_connection;

typedef struct ucx_place {
    ucx_connection *connection;
    uint32_t generation;
} ucx_place;

/** A message whose answer is due. */
typedef struct due_call {
    uint64_t id;
    uint32_t number; /**< the connection's place and its generation */
    uint32_t connection_generation;
    uint32_t generation;
    uint32_t next_free;
    bool is_due;
} due_call;

#define NONE UINT32_MAX

struct ucx_server {
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
    ucp_context_h data_context;
    ucp_worker_h data_worker;
    int data_event; /**< -1 when its worker needs no progress */
    ucp_address_t *data_address;
    size_t data_address_bytes;
    void *data_key;
    size_t data_key_bytes;
    dmg_ucx_segment segment;

    ucx_place *places;
    uint32_t place_count;
    uint32_t connection_count;
    uint32_t closing_count;
    uint32_t new_count;
    bool has_broken;
    ucx_connection *dirty;
    due_call *calls;
    uint32_t call_count;
    uint32_t free_call;
    dmg_ucx_frames frames;
    uint32_t handled;
    uint64_t next_sweep_ns;
    uint64_t message[DMG_MESSAGE_BYTES_MAX / 8]; /**< an aligned copy of the message being handled */
};

/* ---- connections ---- */

static void break_connection(ucx_connection *connection, const char *why)
{
    if (connection->broken == NULL) {
        connection->broken = why;
        connection->server->has_broken = true;
    }
}

static void on_endpoint_error(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    (void)endpoint, (void)status;
    break_connection(argument, "the connection broke");
}

static void on_connection_request(ucp_conn_request_h request, void *argument)
{
    ucx_server *server = argument;
    uint32_t number = 0;
    while (number < server->place_count && server->places[number].connection != NULL) {
        number++;
    }
    if (number == server->place_count && number < CONNECTIONS_MAX) {
        uint32_t count = server->place_count == 0 ? 16 : 2 * server->place_count;
        ucx_place *places = realloc(server->places, count * sizeof(*places));
        if (places != NULL) {
            memset(places + server->place_count, 0, (count - server->place_count) * sizeof(*places));
            server->places = places;
            server->place_count = count;
        }
    }
    ucx_connection *connection = number < server->place_count ? calloc(1, sizeof(*connection)) : NULL;
    if (connection == NULL) {
        dmg_log(DMG_LOG_WARNING, "connection_refused", "node=%u connections=%u remedy=\"run fewer clients\"",
                server->node, server->connection_count);
        ucp_listener_reject(server->listener, request);
        return;
    }
    ucp_ep_params_t parameters = {
        .field_mask =
            UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .conn_request = request,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_endpoint_error, .arg = connection},
    };
    connection->server = server;
    ucs_status_t status = ucp_ep_create(server->worker, &parameters, &connection->endpoint);
    if (status != UCS_OK) {
        dmg_log(DMG_LOG_INFO, "connection_refused", "node=%u why=\"%s\"", server->node, ucs_status_string(status));
        free(connection);
        return;
    }
    connection->number = number;
    connection->generation = server->places[number].generation;
    connection->opened_ns = dmg_now_ns();
    server->places[number].connection = connection;
    server->connection_count++;
    server->new_count++;
    server->handled++;
}

/** The connection that a message came over and that its header names, or NULL. */
static ucx_connection *sender(ucx_server *server, const dmg_ucx_header *header, const ucp_am_recv_param_t *from)
{
    if (!(from->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) || header->channel >= server->place_count) {
        return NULL;
    }
    ucx_connection *connection = server->places[header->channel].connection;
    return connection != NULL && connection->endpoint == from->reply_ep ? connection : NULL;
}

/** A message from an endpoint that does not name itself rightly: break whichever connection it is. */
static void break_endpoint(ucx_server *server, const ucp_am_recv_param_t *from, const char *why)
{
    if (!(from->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP)) {
        return;
    }
    for (uint32_t i = 0; i < server->place_count; i++) {
        ucx_connection *connection = server->places[i].connection;
        if (connection != NULL && connection->stage != CONNECTION_CLOSING && connection->endpoint == from->reply_ep) {
            break_connection(connection, why);
        }
    }
}

/** The upper layer hears once of the end of a channel that it knows. */
static void part(ucx_connection *connection, dmg_status why)
{
    if (connection->stage == CONNECTION_WELCOMED) {
        dmg_server_channel_closed(connection->server->server, connection->client, why);
    } else if (connection->stage == CONNECTION_NEW) {
        connection->server->new_count--;
    }
}

static void close_connection(ucx_connection *connection)
{
    ucx_server *server = connection->server;
    if (connection->stage == CONNECTION_WELCOMED) {
        dmg_log(DMG_LOG_INFO, "channel_lost", "node=%u client=%016llx why=\"%s\"", server->node,
                (unsigned long long)connection->client, connection->broken);
    }
    part(connection, DMG_ERR_PEER);
    connection->stage = CONNECTION_CLOSING;
    server->closing_count++;
    server->places[connection->number].generation++;
    if (connection->filling != NULL) {
        dmg_ucx_frame_give(&server->frames, connection->filling);
        connection->filling = NULL;
    }
    ucp_request_param_t parameters = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    void *request = ucp_ep_close_nbx(connection->endpoint, &parameters);
    connection->close_request = UCS_PTR_IS_PTR(request) ? request : NULL;
}

/** Free the connection when UCX holds neither its endpoint nor a frame of it. */
static void reap_connection(ucx_connection *connection)
{
    ucx_server *server = connection->server;
    if (connection->close_request != NULL && ucp_request_check_status(connection->close_request) != UCS_INPROGRESS) {
        ucp_request_free(connection->close_request);
        connection->close_request = NULL;
    }
    if (connection->close_request == NULL && connection->frames_in_flight == 0 && !connection->is_dirty) {
        server->places[connection->number].connection = NULL;
        server->connection_count--;
        server->closing_count--;
        free(connection);
    }
}

/** Close what is broken or has never said hello, and free what is closed. */
static void sweep(ucx_server *server)
{
    uint64_t now_ns = dmg_now_ns();
    if (!server->has_broken && server->closing_count == 0 &&
        (server->new_count == 0 || now_ns < server->next_sweep_ns)) {
        return;
    }
    server->next_sweep_ns = now_ns + server->hello_timeout_ns / 8;
    server->has_broken = false;
    for (uint32_t i = 0; i < server->place_count; i++) {
        ucx_connection *connection = server->places[i].connection;
        if (connection == NULL) {
            continue;
        }
        if (connection->stage == CONNECTION_NEW && now_ns - connection->opened_ns > server->hello_timeout_ns) {
            break_connection(connection, "it did not say hello in time");
        }
        if (connection->broken != NULL && connection->stage != CONNECTION_CLOSING) {
            close_connection(connection);
        }
        if (connection->stage == CONNECTION_CLOSING) {
            reap_connection(connection);
        }
    }
}

/* ---- answers ---- */

static void on_frame_sent(void *request, ucs_status_t status, void *argument)
{
    (void)status;
    dmg_ucx_frame *frame = argument;
    ucx_connection *connection = frame->owner;
    connection->frames_in_flight--;
    dmg_ucx_frame_give(&connection->server->frames, frame);
    if (request != NULL) {
        ucp_request_free(request);
    }
}

static void send_frame(ucx_connection *connection, unsigned id, dmg_ucx_frame *frame)
{
    frame->owner = connection;
    frame->header.channel = connection->echo;
    connection->frames_in_flight++;
    ucp_request_param_t parameters = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FIELD_FLAGS,
        .flags = UCP_AM_SEND_FLAG_EAGER,
        .cb.send = on_frame_sent,
        .user_data = frame,
    };
    void *request = ucp_am_send_nbx(connection->endpoint, id, &frame->header, sizeof(frame->header), frame->payload,
                                    frame->header.bytes, &parameters);
    if (!UCS_PTR_IS_PTR(request)) {
        if (UCS_PTR_IS_ERR(request)) {
            break_connection(connection, "the connection broke");
        }
        on_frame_sent(NULL, UCS_OK, frame);
    }
}

static void mark_dirty(ucx_connection *connection)
{
    if (!connection->is_dirty) {
        connection->is_dirty = true;
        connection->next_dirty = connection->server->dirty;
        connection->server->dirty = connection;
    }
}

/** Send the answers that have gathered, unless so many frames wait already that it is better to gather more. */
static void flush_answers(ucx_server *server)
{
    ucx_connection *list = server->dirty;
    server->dirty = NULL;
    while (list != NULL) {
        ucx_connection *connection = list;
        list = connection->next_dirty;
        connection->is_dirty = false;
        if (connection->filling == NULL || connection->stage == CONNECTION_CLOSING) {
            continue;
        }
        if (connection->frames_in_flight >= DMG_UCX_FRAMES_EAGER) {
            mark_dirty(connection);
            continue;
        }
        dmg_ucx_frame *frame = connection->filling;
        connection->filling = NULL;
        send_frame(connection, DMG_UCX_ANSWERS, frame);
    }
}

/** Begin an answer; returns where its `bytes` bytes go, or NULL when the connection had to be given up. */
static void *begin_answer(ucx_connection *connection, uint64_t id, dmg_status status, uint32_t bytes)
{
    ucx_server *server = connection->server;
    uint64_t record_bytes = sizeof(dmg_ucx_answer) + dmg_ucx_padded(bytes);
    dmg_ucx_answer *answer =
        connection->filling != NULL ? (void *)dmg_ucx_frame_reserve(connection->filling, record_bytes) : NULL;
    if (answer == NULL) {
        if (connection->filling != NULL) {
            dmg_ucx_frame *full = connection->filling;
            connection->filling = NULL;
            send_frame(connection, DMG_UCX_ANSWERS, full);
        }
        if (connection->frames_in_flight >= FRAMES_MAX_PER_CONNECTION) {
            break_connection(connection, "it asked for more than its window and did not take the answers");
            return NULL;
        }
        connection->filling = dmg_ucx_frame_take(&server->frames);
        if (connection->filling == NULL) {
            break_connection(connection, "the memory node ran out of memory");
            return NULL;
        }
        answer = (void *)dmg_ucx_frame_reserve(connection->filling, record_bytes);
    }
    *answer = (dmg_ucx_answer){.id = id, .bytes = bytes, .status = (uint32_t)status};
    uint8_t *data = (uint8_t *)(answer + 1);
    memset(data + bytes, 0, dmg_ucx_padded(bytes) - bytes);
    mark_dirty(connection);
    return data;
}

static void answer_error(ucx_connection *connection, uint64_t id, dmg_status status, const char *sentence)
{
    uint32_t bytes = (uint32_t)strlen(sentence);
    void *data = begin_answer(connection, id, status, bytes);
    if (data != NULL) {
        memcpy(data, sentence, bytes);
    }
}

void dmg_ucx_server_reply(void *implementation, uint64_t reply_token, dmg_status status, const void *payload,
                          size_t bytes)
{
    ucx_server *server = implementation;
    uint32_t index = (uint32_t)reply_token;
    if (index >= server->call_count || !server->calls[index].is_due ||
        server->calls[index].generation != (uint32_t)(reply_token >> 32)) {
        dmg_log(DMG_LOG_WARNING, "reply_dropped", "node=%u token=%llx why=\"answered before\"", server->node,
                (unsigned long long)reply_token);
        return;
    }
    due_call *call = &server->calls[index];
    ucx_place *place = &server->places[call->number];
    call->is_due = false;
    call->generation++;
    call->next_free = server->free_call;
    server->free_call = index;
    if (place->connection == NULL || place->generation != call->connection_generation ||
        place->connection->broken != NULL) {
        return;
    }
    place->connection->calls--;
    if (bytes > DMG_MESSAGE_BYTES_MAX) {
        answer_error(place->connection, call->id, DMG_ERR_LIMIT, "the answer is longer than a message may be");
        return;
    }
    void *data = begin_answer(place->connection, call->id, status, (uint32_t)bytes);
    if (data != NULL && bytes != 0) {
        memcpy(data, payload, bytes);
    }
}

/* ---- requests ---- */

static bool take_call(ucx_server *server, ucx_connection *connection, uint64_t id, uint64_t *token)
{
    if (connection->calls >= CALLS_MAX_PER_CONNECTION) {
        break_connection(connection, "it sent more messages than its window allows");
        return false;
    }
    if (server->free_call == NONE) {
        uint32_t count = server->call_count == 0 ? 64 : 2 * server->call_count;
        due_call *calls = realloc(server->calls, count * sizeof(*calls));
        if (calls == NULL) {
            break_connection(connection, "the memory node ran out of memory");
            return false;
        }
        for (uint32_t i = server->call_count; i < count; i++) {
            calls[i] = (due_call){.generation = 1, .next_free = i + 1 < count ? i + 1 : NONE};
        }
        server->free_call = server->call_count;
        server->calls = calls;
        server->call_count = count;
    }
    uint32_t index = server->free_call;
    due_call *call = &server->calls[index];
    server->free_call = call->next_free;
    call->id = id;
    call->number = connection->number;
    call->connection_generation = connection->generation;
    call->is_due = true;
    connection->calls++;
    *token = (uint64_t)call->generation << 32 | index;
    return true;
}

static void serve_call(ucx_server *server, ucx_connection *connection, const dmg_ucx_request *request,
                       const uint8_t *payload)
{
    uint64_t token;
    if (!take_call(server, connection, request->id, &token)) {
        return;
    }
    memcpy(server->message, payload, request->bytes);
    dmg_request delivered = {
        .client = connection->client,
        .type = (uint32_t)request->offset,
        .payload = server->message,
        .bytes = request->bytes,
        .reply_token = token,
    };
    dmg_server_deliver(server->server, &delivered);
}

static void serve_read(ucx_server *server, ucx_connection *connection, const dmg_ucx_request *request)
{
    if (!dmg_range_is_inside(request->offset, request->bytes, server->segment.bytes)) {
        answer_error(connection, request->id, DMG_ERR_ARGUMENT, "the span read is not inside the segment");
        return;
    }
    const uint8_t *from = server->segment.start + request->offset;
    void *to = begin_answer(connection, request->id, DMG_OK, request->bytes);
    if (to == NULL) {
        return;
    }
    if (request->bytes == 8 && request->offset % 8 == 0) {
        uint64_t word = __atomic_load_n((const uint64_t *)(const void *)from, __ATOMIC_ACQUIRE);
        memcpy(to, &word, 8);
    } else {
        memcpy(to, from, request->bytes);
    }
    dmg_counters_count(server->counters, DMG_OPERATION_READ, request->bytes);
}

static void serve_write(ucx_server *server, ucx_connection *connection, const dmg_ucx_request *request,
                        const uint8_t *payload)
{
    if (!dmg_range_is_inside(request->offset, request->bytes, server->segment.bytes)) {
        answer_error(connection, request->id, DMG_ERR_ARGUMENT, "the span written is not inside the segment");
        return;
    }
    uint8_t *to = server->segment.start + request->offset;
    if (request->bytes == 8 && request->offset % 8 == 0) {
        uint64_t word;
        memcpy(&word, payload, 8);
        __atomic_store_n((uint64_t *)(void *)to, word, __ATOMIC_RELEASE);
    } else {
        memcpy(to, payload, request->bytes);
    }
    dmg_counters_count(server->counters, DMG_OPERATION_WRITE, request->bytes);
    begin_answer(connection, request->id, DMG_OK, 0);
}

static void serve_atomic(ucx_server *server, ucx_connection *connection, const dmg_ucx_request *request,
                         const uint8_t *payload)
{
    if (request->offset % 8 != 0 || !dmg_range_is_inside(request->offset, 8, server->segment.bytes)) {
        answer_error(connection, request->id, DMG_ERR_ARGUMENT, "the word is not aligned or not inside the segment");
        return;
    }
    uint64_t *word = (uint64_t *)(void *)(server->segment.start + request->offset);
    uint64_t operands[2];
    memcpy(operands, payload, request->bytes);
    uint64_t before = operands[0];
    if (request->kind == DMG_UCX_CAS) {
        __atomic_compare_exchange_n(word, &before, operands[1], false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    } else {
        before = __atomic_fetch_add(word, operands[0], __ATOMIC_SEQ_CST);
    }
    dmg_counters_count(server->counters, request->kind == DMG_UCX_CAS ? DMG_OPERATION_CAS : DMG_OPERATION_FAA, 8);
    void *to = begin_answer(connection, request->id, DMG_OK, 8);
    if (to != NULL) {
        memcpy(to, &before, 8);
    }
}

/** Check one record against what is left of the frame and serve it. False when it is not one of ours. */
static bool serve_record(ucx_server *server, ucx_connection *connection, const uint8_t **at, uint32_t *left)
{
    dmg_ucx_request request;
    if (*left < sizeof(request)) {
        return false;
    }
    memcpy(&request, *at, sizeof(request));
    const uint8_t *payload = *at + sizeof(request);
    uint64_t payload_bytes = request.kind == DMG_UCX_READ ? 0 : request.bytes;
    if (dmg_ucx_padded(payload_bytes) > *left - sizeof(request)) {
        return false;
    }
    switch (request.kind) {
    case DMG_UCX_READ:
        if (request.bytes > DMG_UCX_PIECE_BYTES) {
            return false;
        }
        serve_read(server, connection, &request);
        break;
    case DMG_UCX_WRITE:
        serve_write(server, connection, &request, payload);
        break;
    case DMG_UCX_CAS:
    case DMG_UCX_FAA:
        if (request.bytes != (request.kind == DMG_UCX_CAS ? 16 : 8)) {
            return false;
        }
        serve_atomic(server, connection, &request, payload);
        break;
    case DMG_UCX_CALL:
        if (request.bytes > DMG_MESSAGE_BYTES_MAX || request.offset > UINT32_MAX) {
            return false;
        }
        serve_call(server, connection, &request, payload);
        break;
    default:
        return false;
    }
    *at = payload + dmg_ucx_padded(payload_bytes);
    *left -= (uint32_t)(sizeof(request) + dmg_ucx_padded(payload_bytes));
    return true;
}

/** The header of a message, when it has one of ours that fits its payload. */
static bool read_header(const void *bytes, size_t length, size_t payload_bytes, const ucp_am_recv_param_t *from,
                        dmg_ucx_header *header)
{
    if (length != sizeof(*header) || (from->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        return false;
    }
    memcpy(header, bytes, sizeof(*header));
    return header->magic == DMG_UCX_MAGIC && header->bytes == payload_bytes && payload_bytes <= DMG_UCX_FRAME_BYTES;
}

static ucs_status_t on_requests(void *argument, const void *header_bytes, size_t header_length, void *data,
                                size_t length, const ucp_am_recv_param_t *from)
{
    ucx_server *server = argument;
    dmg_ucx_header header;
    ucx_connection *connection = NULL;
    server->handled++;
    if (read_header(header_bytes, header_length, length, from, &header)) {
        connection = sender(server, &header, from);
    }
    if (connection == NULL || connection->stage != CONNECTION_WELCOMED) {
        break_endpoint(server, from, "it sent a malformed frame");
        return UCS_OK;
    }
    const uint8_t *at = data;
    uint32_t left = header.bytes;
    for (uint32_t i = 0; i < header.count && connection->broken == NULL; i++) {
        if (!serve_record(server, connection, &at, &left)) {
            break_connection(connection, "it sent a malformed request");
        }
    }
    if (left != 0) {
        break_connection(connection, "it sent a malformed frame");
    }
    return UCS_OK;
}

/** Tell the client what it needs to know, or why it is not let in. */
static void welcome(ucx_server *server, ucx_connection *connection, dmg_status status, const char *sentence)
{
    dmg_ucx_frame *frame = dmg_ucx_frame_take(&server->frames);
    if (frame == NULL) {
        break_connection(connection, "the memory node ran out of memory");
        return;
    }
    dmg_ucx_welcome *welcome = (dmg_ucx_welcome *)(void *)frame->payload;
    memset(welcome, 0, sizeof(*welcome));
    welcome->version = DMG_UCX_VERSION;
    welcome->status = (uint32_t)status;
    uint8_t *at = (uint8_t *)(welcome + 1);
    if (status == DMG_OK) {
        welcome->channel = connection->number;
        welcome->node = server->node;
        welcome->epoch = server->epoch;
        welcome->segment_bytes = server->segment.bytes;
        welcome->base = (uint64_t)(uintptr_t)server->segment.start;
        memcpy(welcome->data, server->data_transports, sizeof(welcome->data));
        welcome->address_bytes = (uint32_t)server->data_address_bytes;
        welcome->key_bytes = (uint32_t)server->data_key_bytes;
        if (server->data_address_bytes != 0) {
            memcpy(at, server->data_address, server->data_address_bytes);
            memcpy(at + server->data_address_bytes, server->data_key, server->data_key_bytes);
        }
    } else {
        welcome->sentence_bytes = (uint32_t)strlen(sentence);
        memcpy(at, sentence, welcome->sentence_bytes);
    }
    frame->header.count = 1;
    frame->header.bytes =
        (uint32_t)sizeof(*welcome) + welcome->address_bytes + welcome->key_bytes + welcome->sentence_bytes;
    send_frame(connection, DMG_UCX_WELCOME, frame);
}

static ucs_status_t on_hello(void *argument, const void *header_bytes, size_t header_length, void *data, size_t length,
                             const ucp_am_recv_param_t *from)
{
    ucx_server *server = argument;
    dmg_ucx_header header;
    dmg_ucx_hello hello;
    ucx_connection *connection = NULL;
    server->handled++;
    if (from->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP) {
        for (uint32_t i = 0; i < server->place_count && connection == NULL; i++) {
            if (server->places[i].connection != NULL && server->places[i].connection->endpoint == from->reply_ep) {
                connection = server->places[i].connection;
            }
        }
    }
    if (connection == NULL || connection->stage == CONNECTION_CLOSING) {
        return UCS_OK;
    }
    if (connection->stage != CONNECTION_NEW || !read_header(header_bytes, header_length, length, from, &header) ||
        length != sizeof(hello)) {
        break_connection(connection, "it sent a malformed hello");
        return UCS_OK;
    }
    memcpy(&hello, data, sizeof(hello));
    connection->echo = hello.node;
    if (hello.version != DMG_UCX_VERSION) {
        welcome(server, connection, DMG_ERR_PROTOCOL,
                "it speaks another version of the protocol: run the same dmgraph on all machines");
    } else if (!dmg_token_is_equal(hello.token, server->token)) {
        welcome(server, connection, DMG_ERR_PROTOCOL, "the token is wrong: this memory node belongs to another pool");
    } else if (hello.client == 0) {
        break_connection(connection, "it sent a malformed hello");
    } else {
        connection->client = hello.client;
        connection->stage = CONNECTION_WELCOMED;
        server->new_count--;
        dmg_server_channel_opened(server->server, connection->client);
        welcome(server, connection, DMG_OK, "");
    }
    return UCS_OK;
}

static ucs_status_t on_goodbye(void *argument, const void *header_bytes, size_t header_length, void *data,
                               size_t length, const ucp_am_recv_param_t *from)
{
    (void)data;
    ucx_server *server = argument;
    dmg_ucx_header header;
    ucx_connection *connection = NULL;
    server->handled++;
    if (read_header(header_bytes, header_length, length, from, &header)) {
        connection = sender(server, &header, from);
    }
    if (connection == NULL || connection->stage != CONNECTION_WELCOMED || connection->broken != NULL) {
        break_endpoint(server, from, "it sent a malformed goodbye");
        return UCS_OK;
    }
    part(connection, DMG_OK);
    connection->stage = CONNECTION_PARTED;
    dmg_ucx_frame *frame = dmg_ucx_frame_take(&server->frames);
    if (frame != NULL) {
        send_frame(connection, DMG_UCX_FAREWELL, frame);
    }
    return UCS_OK;
}

static ucs_status_t on_unknown_message(void *argument, const void *header_bytes, size_t header_length, void *data,
                                       size_t length, const ucp_am_recv_param_t *from)
{
    (void)argument, (void)header_bytes, (void)header_length, (void)data, (void)length, (void)from;
    return UCS_OK;
}

/* ---- the serving loop's parts ---- */

uint32_t dmg_ucx_server_progress(void *implementation)
{
    ucx_server *server = implementation;
    server->handled = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        unsigned count = ucp_worker_progress(server->worker);
        if (server->data_event >= 0) {
            count += ucp_worker_progress(server->data_worker);
        }
        flush_answers(server);
        if (count == 0) {
            break;
        }
    }
    sweep(server);
    return server->handled;
}

void dmg_ucx_server_sleep(void *implementation, uint64_t timeout_ns)
{
    ucx_server *server = implementation;
    flush_answers(server);
    if (server->has_broken || ucp_worker_arm(server->worker) != UCS_OK ||
        (server->data_event >= 0 && ucp_worker_arm(server->data_worker) != UCS_OK)) {
        return;
    }
    struct pollfd events[3] = {
        {.fd = server->wake_event, .events = POLLIN},
        {.fd = server->worker_event, .events = POLLIN},
        {.fd = server->data_event, .events = POLLIN},
    };
    /* Endpoints that are being closed, and connections without a hello, are looked after now and then. */
    if (server->closing_count != 0 && timeout_ns > 1000000) {
        timeout_ns = 1000000;
    } else if (server->new_count != 0 && timeout_ns > server->hello_timeout_ns / 8) {
        timeout_ns = server->hello_timeout_ns / 8;
    }
    uint64_t timeout_ms = (timeout_ns + 999999) / 1000000;
    if (poll(events, 3, timeout_ms > 60000 ? 60000 : (int)timeout_ms) > 0 && (events[0].revents & POLLIN)) {
        uint64_t count;
        ssize_t ignored = read(server->wake_event, &count, sizeof(count));
        (void)ignored;
    }
}

void dmg_ucx_server_wake(void *implementation)
{
    ucx_server *server = implementation;
    uint64_t one = 1;
    ssize_t ignored = write(server->wake_event, &one, sizeof(one));
    (void)ignored;
}

const char *dmg_ucx_server_address(void *implementation)
{
    return ((ucx_server *)implementation)->address;
}

void *dmg_ucx_server_segment(void *implementation, uint64_t *bytes)
{
    ucx_server *server = implementation;
    *bytes = server->segment.bytes;
    return server->segment.start;
}

/* ---- creation ---- */

static bool has_free_hugepages(uint64_t bytes)
{
    FILE *file = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
    unsigned long long count = 0;
    if (file != NULL) {
        if (fscanf(file, "%llu", &count) != 1) {
            count = 0;
        }
        fclose(file);
    }
    return bytes / (2 << 20) + 2 <= count;
}

/** Decide what carries one-sided operations; "" when the server does them by message. */
static void choose_data(ucx_server *server, const dmg_ucx_settings *settings, const dmg_server_options *options,
                        bool is_loopback)
{
    const char *chosen = "";
    if (settings->data_transports[0] != '\0') {
        chosen = settings->data_transports;
    } else if (settings->data == DMG_UCX_DATA_AUTO && is_loopback) {
        chosen = "posix";
        if (options->segment.page_size != DMG_PAGE_DEFAULT && has_free_hugepages(options->segment.bytes)) {
            chosen = "sysv";
        } else if (options->segment.page_size != DMG_PAGE_DEFAULT) {
            dmg_log(DMG_LOG_WARNING, "hugepages_unavailable",
                    "bytes=%llu remedy=\"reserve them in /proc/sys/vm/nr_hugepages\"",
                    (unsigned long long)options->segment.bytes);
        }
    } else if (settings->data == DMG_UCX_DATA_AUTO && dmg_ucx_has_rdma_device()) {
        chosen = "rc_verbs,ud_verbs:aux";
    }
    snprintf(server->data_transports, sizeof(server->data_transports), "%.31s", chosen);
}

static dmg_status create_data(ucx_server *server, const dmg_ucx_settings *settings, const dmg_server_options *options)
{
    if (server->data_transports[0] == '\0') {
        return dmg_ucx_segment_create(&options->segment, NULL, "", &server->segment);
    }
    dmg_status status = dmg_ucx_data_context(server->data_transports, settings->device, &server->data_context);
    if (status == DMG_OK) {
        status =
            dmg_ucx_segment_create(&options->segment, server->data_context, server->data_transports, &server->segment);
    }
    if (status == DMG_OK) {
        status = dmg_ucx_worker(server->data_context, &server->data_worker);
    }
    if (status != DMG_OK) {
        return status;
    }
    ucs_status_t code = ucp_worker_get_address(server->data_worker, &server->data_address, &server->data_address_bytes);
    if (code == UCS_OK) {
        code = ucp_rkey_pack(server->data_context, server->segment.handle, &server->data_key, &server->data_key_bytes);
    }
    if (code == UCS_OK && dmg_ucx_data_kind(server->data_transports) == DMG_UCX_DATA_NIC) {
        code = ucp_worker_get_efd(server->data_worker, &server->data_event);
    }
    if (code != UCS_OK) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "offering the segment through UCX's %s: %s", server->data_transports,
                         ucs_status_string(code));
    }
    if (server->data_address_bytes + server->data_key_bytes > DMG_UCX_FRAME_BYTES - sizeof(dmg_ucx_welcome)) {
        return dmg_error(DMG_ERR_LIMIT, "UCX's address of this memory node has %zu bytes: name one device with device=",
                         server->data_address_bytes);
    }
    return DMG_OK;
}

static dmg_status set_handler(ucx_server *server, unsigned id, ucp_am_recv_callback_t handler)
{
    ucp_am_handler_param_t parameters = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = id,
        .cb = handler,
        .arg = server,
    };
    ucs_status_t status = ucp_worker_set_am_recv_handler(server->worker, &parameters);
    return status == UCS_OK
               ? DMG_OK
               : dmg_error(DMG_ERR_INTERNAL, "setting a UCX message handler: %s", ucs_status_string(status));
}

/** An address of this machine that others can connect to, for a server that listens on all of them. */
static void pick_address(struct sockaddr_storage *address)
{
    struct ifaddrs *interfaces;
    if (getifaddrs(&interfaces) != 0) {
        return;
    }
    for (struct ifaddrs *at = interfaces; at != NULL; at = at->ifa_next) {
        if (at->ifa_addr != NULL && at->ifa_addr->sa_family == address->ss_family && !(at->ifa_flags & IFF_LOOPBACK) &&
            (at->ifa_flags & IFF_UP)) {
            if (address->ss_family == AF_INET) {
                ((struct sockaddr_in *)address)->sin_addr = ((struct sockaddr_in *)(void *)at->ifa_addr)->sin_addr;
                break;
            }
            if (!IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)(void *)at->ifa_addr)->sin6_addr)) {
                ((struct sockaddr_in6 *)address)->sin6_addr = ((struct sockaddr_in6 *)(void *)at->ifa_addr)->sin6_addr;
                break;
            }
        }
    }
    freeifaddrs(interfaces);
}

static bool is_wildcard(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET ? ((const struct sockaddr_in *)address)->sin_addr.s_addr == INADDR_ANY
                                         : IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static dmg_status listen_at(ucx_server *server, const char *bind_text, const struct sockaddr_storage *address,
                            socklen_t address_bytes)
{
    ucp_listener_params_t parameters = {
        .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .sockaddr = {.addr = (const struct sockaddr *)address, .addrlen = address_bytes},
        .conn_handler = {.cb = on_connection_request, .arg = server},
    };
    ucs_status_t status = ucp_listener_create(server->worker, &parameters, &server->listener);
    if (status != UCS_OK) {
        return dmg_error(DMG_ERR_IO, "listening on %s: %s: is the port taken, or the address another machine's?",
                         bind_text, ucs_status_string(status));
    }
    ucp_listener_attr_t attributes = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
    status = ucp_listener_query(server->listener, &attributes);
    if (status != UCS_OK) {
        return dmg_error(DMG_ERR_INTERNAL, "asking UCX for the listener's port: %s", ucs_status_string(status));
    }
    struct sockaddr_storage shown = *address;
    if (is_wildcard(address)) {
        pick_address(&shown);
    }
    char host[INET6_ADDRSTRLEN] = "";
    if (shown.ss_family == AF_INET) {
        inet_ntop(AF_INET, &((struct sockaddr_in *)&shown)->sin_addr, host, sizeof(host));
        snprintf(server->address, sizeof(server->address), "ucx:%s:%u", host,
                 ntohs(((struct sockaddr_in *)&attributes.sockaddr)->sin_port));
    } else {
        inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&shown)->sin6_addr, host, sizeof(host));
        snprintf(server->address, sizeof(server->address), "ucx:[%s]:%u", host,
                 ntohs(((struct sockaddr_in6 *)&attributes.sockaddr)->sin6_port));
    }
    return DMG_OK;
}

static dmg_status create_messages(ucx_server *server, const dmg_ucx_settings *settings, const char *bind_text,
                                  const struct sockaddr_storage *address, socklen_t address_bytes)
{
    /* UCX's tcp listens on every device it may use: keep to the one that was asked for. */
    char device[96];
    snprintf(device, sizeof(device), "%s", settings->device);
    if (device[0] == '\0' && strcmp(settings->messages, "tcp") == 0) {
        dmg_ucx_interface_of(address, device, sizeof(device));
    }
    dmg_status status = dmg_ucx_message_context(settings->messages, device, &server->message_context);
    if (status == DMG_OK) {
        status = dmg_ucx_worker(server->message_context, &server->worker);
    }
    /* UCX 1.13 looks handlers up in a table that ends with the largest id that has one; it neither checks a message's id against its
       end nor clears what lies between. Without handlers for all, one message of a stranger kills the memory node. */
    for (uint32_t id = UINT16_MAX + 1; status == DMG_OK && id > 0; id--) {
        status = set_handler(server, id - 1, on_unknown_message);
    }
    if (status == DMG_OK) {
        status = set_handler(server, DMG_UCX_HELLO, on_hello);
    }
    if (status == DMG_OK) {
        status = set_handler(server, DMG_UCX_REQUESTS, on_requests);
    }
    if (status == DMG_OK) {
        status = set_handler(server, DMG_UCX_GOODBYE, on_goodbye);
    }
    if (status != DMG_OK) {
        return status;
    }
    ucs_status_t code = ucp_worker_get_efd(server->worker, &server->worker_event);
    if (code != UCS_OK) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "messages=%s: this UCX transport cannot wake a sleeping server: %s",
                         settings->messages, ucs_status_string(code));
    }
    return listen_at(server, bind_text, address, address_bytes);
}

dmg_status dmg_ucx_server_create(dmg_server *owner, const dmg_server_options *options,
                                 const dmg_transport_parameters *parameters, void **implementation)
{
    dmg_ucx_settings settings;
    dmg_status status = dmg_ucx_settings_parse(parameters, &settings);
    if (status != DMG_OK) {
        return status;
    }
    const char *bind_text = options->bind != NULL ? options->bind : "127.0.0.1";
    struct sockaddr_storage address;
    socklen_t address_bytes;
    status = dmg_ucx_resolve(bind_text, settings.port, &address, &address_bytes);
    if (status != DMG_OK) {
        return status;
    }
    ucx_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "creating a memory node: out of memory");
    }
    server->server = owner;
    server->counters = dmg_server_mutable_counters(owner);
    server->node = options->node;
    memcpy(server->token, options->token, sizeof(server->token));
    server->hello_timeout_ns = options->peer_timeout_ns != 0 ? options->peer_timeout_ns : DMG_PEER_TIMEOUT_DEFAULT_NS;
    server->data_event = -1;
    server->free_call = NONE;
    server->wake_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wake_event < 0 || getrandom(&server->epoch, sizeof(server->epoch), 0) != sizeof(server->epoch)) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "creating a memory node");
    }
    if (status == DMG_OK) {
        choose_data(server, &settings, options, dmg_ucx_is_loopback(&address));
        status = create_data(server, &settings, options);
    }
    if (status == DMG_OK) {
        status = create_messages(server, &settings, bind_text, &address, address_bytes);
    }
    if (status != DMG_OK) {
        dmg_ucx_server_destroy(server);
        return status;
    }
    *implementation = server;
    return DMG_OK;
}

static void close_all(ucx_server *server)
{
    for (uint32_t i = 0; i < server->place_count; i++) {
        ucx_connection *connection = server->places[i].connection;
        if (connection != NULL && connection->stage != CONNECTION_CLOSING) {
            /* The upper layer is going away itself: nothing to tell it. */
            connection->stage = CONNECTION_PARTED;
            close_connection(connection);
        }
    }
    uint64_t end_ns = dmg_now_ns() + 500000000;
    dmg_backoff backoff = {0};
    while (server->connection_count != 0 && dmg_now_ns() < end_ns) {
        unsigned count = ucp_worker_progress(server->worker);
        flush_answers(server);
        sweep(server);
        if (count == 0) {
            dmg_backoff_wait(&backoff);
        }
    }
}

void dmg_ucx_server_destroy(void *implementation)
{
    ucx_server *server = implementation;
    if (server->listener != NULL) {
        ucp_listener_destroy(server->listener);
    }
    if (server->worker != NULL) {
        close_all(server);
        ucp_worker_destroy(server->worker);
    }
    /* What UCX did not give back in time is free now that its worker is gone. */
    for (uint32_t i = 0; i < server->place_count; i++) {
        free(server->places[i].connection);
    }
    if (server->data_key != NULL) {
        ucp_rkey_buffer_release(server->data_key);
    }
    if (server->data_address != NULL) {
        ucp_worker_release_address(server->data_worker, server->data_address);
    }
    if (server->data_worker != NULL) {
        ucp_worker_destroy(server->data_worker);
    }
    dmg_ucx_segment_destroy(&server->segment);
    if (server->data_context != NULL) {
        ucp_cleanup(server->data_context);
    }
    if (server->message_context != NULL) {
        ucp_cleanup(server->message_context);
    }
    if (server->wake_event >= 0) {
        close(server->wake_event);
    }
    dmg_ucx_frames_clear(&server->frames);
    free(server->places);
    free(server->calls);
    free(server);
}
