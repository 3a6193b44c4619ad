/**
 * @file requests.c
 * What a memory node does with the frames that arrive.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "transport/ucx/server.h"

#include <stdlib.h>
#include <string.h>

/** Messages of one connection whose answers are due. A client's window holds fewer. */
#define CALLS_MAX_PER_CONNECTION 32768

static bool take_call(dmg_ucx_server *server, dmg_ucx_connection *connection, uint64_t id, uint64_t *token)
{
    if (connection->calls >= CALLS_MAX_PER_CONNECTION) {
        dmg_ucx_connection_break(connection, "it sent more messages than its window allows");
        return false;
    }
    if (server->free_call == DMG_UCX_NO_CALL) {
        uint32_t count = server->call_count == 0 ? 64 : 2 * server->call_count;
        dmg_ucx_due_call *calls = realloc(server->calls, count * sizeof(*calls));
        if (calls == NULL) {
            dmg_ucx_connection_break(connection, "the memory node ran out of memory");
            return false;
        }
        for (uint32_t i = server->call_count; i < count; i++) {
            calls[i] = (dmg_ucx_due_call){.generation = 1, .next_free = i + 1 < count ? i + 1 : DMG_UCX_NO_CALL};
        }
        server->free_call = server->call_count;
        server->calls = calls;
        server->call_count = count;
    }
    uint32_t index = server->free_call;
    dmg_ucx_due_call *call = &server->calls[index];
    server->free_call = call->next_free;
    call->id = id;
    call->number = connection->number;
    call->connection_generation = connection->generation;
    call->is_due = true;
    connection->calls++;
    *token = (uint64_t)call->generation << 32 | index;
    return true;
}

static void serve_call(dmg_ucx_server *server, dmg_ucx_connection *connection, const dmg_ucx_request *request,
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

static void serve_read(dmg_ucx_server *server, dmg_ucx_connection *connection, const dmg_ucx_request *request)
{
    if (!dmg_range_is_inside(request->offset, request->bytes, server->segment.bytes)) {
        dmg_ucx_answer_error(connection, request->id, DMG_ERR_ARGUMENT, "the span read is not inside the segment");
        return;
    }
    const uint8_t *from = server->segment.start + request->offset;
    void *to = dmg_ucx_answer_begin(connection, request->id, DMG_OK, request->bytes);
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

static void serve_write(dmg_ucx_server *server, dmg_ucx_connection *connection, const dmg_ucx_request *request,
                        const uint8_t *payload)
{
    if (!dmg_range_is_inside(request->offset, request->bytes, server->segment.bytes)) {
        dmg_ucx_answer_error(connection, request->id, DMG_ERR_ARGUMENT, "the span written is not inside the segment");
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
    dmg_ucx_answer_begin(connection, request->id, DMG_OK, 0);
}

static void serve_atomic(dmg_ucx_server *server, dmg_ucx_connection *connection, const dmg_ucx_request *request,
                         const uint8_t *payload)
{
    if (request->offset % 8 != 0 || !dmg_range_is_inside(request->offset, 8, server->segment.bytes)) {
        dmg_ucx_answer_error(connection, request->id, DMG_ERR_ARGUMENT,
                             "the word is not aligned or not inside the segment");
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
    void *to = dmg_ucx_answer_begin(connection, request->id, DMG_OK, 8);
    if (to != NULL) {
        memcpy(to, &before, 8);
    }
}

static void serve_lane(dmg_ucx_connection *connection, const dmg_ucx_request *request, const uint8_t *payload)
{
    dmg_ucx_card_address peer;
    memcpy(&peer, payload, sizeof(peer));
    dmg_ucx_lane_serve(connection, request->id, &peer);
}

/**
 * Check one record against what is left of the frame and serve it; with a refusal, only answer it by that. False when
 * it is not one of ours.
 */
static bool serve_record(dmg_ucx_server *server, dmg_ucx_connection *connection, const char *refusal,
                         const uint8_t **at, uint32_t *left)
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
    if (refusal != NULL && request.kind != DMG_UCX_CALL) {
        dmg_ucx_answer_error(connection, request.id, DMG_ERR_PEER, refusal);
        *at = payload + dmg_ucx_padded(payload_bytes);
        *left -= (uint32_t)(sizeof(request) + dmg_ucx_padded(payload_bytes));
        return true;
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
    case DMG_UCX_LANE:
        if (request.bytes != sizeof(dmg_ucx_card_address)) {
            return false;
        }
        serve_lane(connection, &request, payload);
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

static void take_requests(dmg_ucx_server *server, dmg_ucx_connection *connection, const dmg_ucx_header *header,
                          const uint8_t *payload)
{
    if (connection->stage == DMG_UCX_STAGE_PARTED && !dmg_ucx_carrier_keeps_order(&connection->carrier)) {
        return; /* the goodbye was faster */
    }
    if (connection->stage != DMG_UCX_STAGE_WELCOMED) {
        dmg_ucx_connection_break(connection, "it sent requests without a hello");
        return;
    }
    /* Clients are given up between two rounds of progress, never while a frame is served. */
    const char *refusal = dmg_server_refusal(server->server, connection->client);
    const uint8_t *at = payload;
    uint32_t left = header->bytes;
    for (uint32_t i = 0; i < header->count && connection->broken == NULL; i++) {
        if (!serve_record(server, connection, refusal, &at, &left)) {
            dmg_ucx_connection_break(connection, "it sent a malformed request");
        }
    }
    if (left != 0) {
        dmg_ucx_connection_break(connection, "it sent a malformed frame");
    }
}

/* ---- hello and goodbye ---- */

/** Tell the client what it needs to know, or why it is not let in. */
static void welcome(dmg_ucx_server *server, dmg_ucx_connection *connection, const dmg_ucx_reach *reach,
                    const void *address)
{
    dmg_ucx_frame *frame = dmg_ucx_frame_take(&server->frames);
    if (frame == NULL) {
        dmg_ucx_connection_break(connection, "the memory node ran out of memory");
        return;
    }
    dmg_ucx_welcome *welcome = (dmg_ucx_welcome *)(void *)frame->payload;
    *welcome = (dmg_ucx_welcome){
        .version = DMG_UCX_VERSION,
        .status = DMG_OK,
        .node = server->node,
        .lane = server->lane,
        .epoch = server->epoch,
        .segment_bytes = server->segment.bytes,
        .base = (uint64_t)(uintptr_t)server->segment.start,
        .address_bytes = (uint32_t)server->data_address_bytes,
        .key_bytes = (uint32_t)server->data_key_bytes,
        .reach = *reach,
    };
    memcpy(welcome->data, server->data_transports, sizeof(welcome->data));
    uint8_t *at = (uint8_t *)(welcome + 1);
    if (server->data_address_bytes != 0) {
        memcpy(at, server->data_address, server->data_address_bytes);
        memcpy(at + server->data_address_bytes, server->data_key, server->data_key_bytes);
    }
    at += welcome->address_bytes + welcome->key_bytes;
    if (reach->address_bytes != 0) {
        memcpy(at, address, reach->address_bytes);
    }
    frame->header.count = 1;
    frame->header.bytes =
        (uint32_t)sizeof(*welcome) + welcome->address_bytes + welcome->key_bytes + reach->address_bytes;
    dmg_ucx_server_send(connection, DMG_UCX_WELCOME, frame);
}

static void refuse(dmg_ucx_server *server, dmg_ucx_connection *connection, dmg_status status, const char *sentence)
{
    dmg_ucx_frame *frame = dmg_ucx_frame_take(&server->frames);
    if (frame == NULL) {
        dmg_ucx_connection_break(connection, "the memory node ran out of memory");
        return;
    }
    dmg_ucx_welcome *welcome = (dmg_ucx_welcome *)(void *)frame->payload;
    *welcome = (dmg_ucx_welcome){
        .version = DMG_UCX_VERSION, .status = (uint32_t)status, .sentence_bytes = (uint32_t)strlen(sentence)};
    memcpy(welcome + 1, sentence, welcome->sentence_bytes);
    frame->header.count = 1;
    frame->header.bytes = (uint32_t)sizeof(*welcome) + welcome->sentence_bytes;
    dmg_ucx_server_send(connection, DMG_UCX_WELCOME, frame);
}

/**
 * The client's process, when it is on this host; else pid 0. The kernel tells over a Unix socket. Over TCP it is the
 * client's word: one that lies has the pool's secret, and only makes the pool keep memory for longer, or take back what
 * it would write to.
 */
static dmg_process process_of(const dmg_ucx_connection *connection, const dmg_ucx_hello *hello)
{
    char boot_id[DMG_BOOT_ID_BYTES];
    dmg_process process = {0};
    dmg_stream_identify_peer(connection->carrier.stream, &process);
    if (process.pid != 0 || dmg_stream_protected(connection->carrier.stream) == DMG_STREAM_PLAIN) {
        return process;
    }
    dmg_process_boot_id(boot_id);
    bool is_here = boot_id[0] != '\0' && memcmp(hello->boot_id, boot_id, sizeof(boot_id)) == 0 && hello->pid > 0 &&
                   hello->pid <= INT32_MAX && dmg_process_identify((int)hello->pid, &process) == DMG_OK &&
                   process.start_time == hello->start_time;
    return is_here ? process : (dmg_process){0};
}

/** Agree on how requests and answers go; the hello's address lies behind it. */
static dmg_status agree(dmg_ucx_server *server, dmg_ucx_connection *connection, const dmg_ucx_hello *hello,
                        const uint8_t *address, dmg_ucx_reach *reach, const void **own)
{
    *reach = (dmg_ucx_reach){0};
    *own = NULL;
    if (strcmp(hello->messages, server->messages) != 0) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "its messages go over %s, not over %.64s: use the same transport string",
                         server->messages, hello->messages);
    }
    if ((server->hub != NULL) != (hello->reach.address_bytes != 0)) {
        return dmg_error(DMG_ERR_PROTOCOL, "it has told no address for messages over %s", server->messages);
    }
    if (server->hub == NULL) {
        return DMG_OK;
    }
    dmg_status status = dmg_ucx_carrier_offer(&connection->carrier, server->hub, connection->number, reach, own);
    return status == DMG_OK ? dmg_ucx_carrier_join(&connection->carrier, &hello->reach, address) : status;
}

static void take_hello(dmg_ucx_server *server, dmg_ucx_connection *connection, const dmg_ucx_header *header,
                       const uint8_t *payload)
{
    dmg_ucx_hello hello = {0};
    dmg_ucx_reach reach;
    const void *own_address;
    if (connection->stage != DMG_UCX_STAGE_NEW || connection->client != 0 || header->bytes < sizeof(hello.version)) {
        dmg_ucx_connection_break(connection, "it sent a malformed hello");
        return;
    }
    memcpy(&hello, payload, header->bytes < sizeof(hello) ? header->bytes : sizeof(hello));
    if (hello.version != DMG_UCX_VERSION) {
        refuse(server, connection, DMG_ERR_PROTOCOL,
               "it speaks another version of the protocol: run the same dmgraph on all machines");
        return;
    }
    if (header->bytes < sizeof(hello) || header->bytes - sizeof(hello) != hello.reach.address_bytes ||
        hello.client == 0 || memchr(hello.messages, '\0', sizeof(hello.messages)) == NULL) {
        dmg_ucx_connection_break(connection, "it sent a malformed hello");
        return;
    }
    dmg_status status = agree(server, connection, &hello, payload + sizeof(hello), &reach, &own_address);
    if (status != DMG_OK) {
        refuse(server, connection, status, dmg_error_message());
        return;
    }
    connection->client = hello.client;
    connection->stage = DMG_UCX_STAGE_WELCOMED;
    server->strangers--;
    const dmg_process process = process_of(connection, &hello);
    dmg_server_channel_opened(server->server, connection->client, &process);
    welcome(server, connection, &reach, own_address);
}

static void take_goodbye(dmg_ucx_server *server, dmg_ucx_connection *connection)
{
    if (connection->stage != DMG_UCX_STAGE_WELCOMED) {
        dmg_ucx_connection_break(connection, "it sent a malformed goodbye");
        return;
    }
    dmg_ucx_connection_part(connection, DMG_OK);
    connection->stage = DMG_UCX_STAGE_PARTED;
    connection->since_ns = dmg_server_watch(server->server)->now_ns;
    server->strangers++;
    dmg_ucx_frame *frame = dmg_ucx_frame_take(&server->frames);
    if (frame != NULL) {
        dmg_ucx_server_send(connection, DMG_UCX_FAREWELL, frame);
    }
}

static void on_frame(void *owner, const dmg_ucx_header *header, const uint8_t *payload)
{
    dmg_ucx_connection *connection = owner;
    dmg_ucx_server *server = connection->server;
    server->handled++;
    if (connection->broken != NULL || connection->stage == DMG_UCX_STAGE_CLOSING) {
        return;
    }
    switch (header->kind) {
    case DMG_UCX_REQUESTS:
        take_requests(server, connection, header, payload);
        break;
    case DMG_UCX_HELLO:
        take_hello(server, connection, header, payload);
        break;
    case DMG_UCX_GOODBYE:
        take_goodbye(server, connection);
        break;
    default:
        dmg_ucx_connection_break(connection, "it sent a frame of an unknown kind");
    }
}

static void on_broken(void *owner, const char *why)
{
    dmg_ucx_connection_break(owner, why);
}

const dmg_ucx_carrier_calls dmg_ucx_server_calls = {.on_frame = on_frame, .on_broken = on_broken};
