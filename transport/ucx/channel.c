/**
 * @file channel.c
 * A channel's operations.
 *
 * Where the node has a one-sided lane in shared memory, a read or write is done by the time its post returns; what goes
 * over a network card is in card_lane.c.
 *
 * Everything else goes by message: an operation waits in its node's queue until the window has room, is put into the
 * frame that is being filled, in pieces when it is long, and ends when all its pieces are answered. A frame leaves when
 * it is full, or at the next ring. An answer names its operation by place, generation and piece; one that names none of
 * ours breaks the link.
 */
#include "core/base/backoff.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/ucx/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Streams from which nothing is due are looked at only this often: it costs a system call. */
#define IDLE_POLLS 64
/** Frames that are taken from one stream before others have their turn. */
#define FRAMES_A_LOOK 32
/** Polls between two looks at whether a card still completes what it was given. */
#define WATCH_POLLS 4096

/* ---- the table of operations ---- */

void dmg_ucx_list_append(dmg_ucx_channel *channel, dmg_ucx_list *list, uint32_t slot)
{
    channel->operations[slot].next = DMG_UCX_NO_SLOT;
    if (list->first == DMG_UCX_NO_SLOT) {
        list->first = slot;
    } else {
        channel->operations[list->last].next = slot;
    }
    list->last = slot;
}

void dmg_ucx_list_pop(dmg_ucx_channel *channel, dmg_ucx_list *list)
{
    list->first = channel->operations[list->first].next;
}

static void free_operation(dmg_ucx_channel *channel, dmg_ucx_operation *operation)
{
    if (operation->kind == DMG_UCX_CALL) {
        free(operation->local);
    }
    operation->kind = 0;
    operation->generation++;
    operation->next = channel->free_operation;
    channel->free_operation = (uint32_t)(operation - channel->operations);
}

void dmg_ucx_end_operation(dmg_ucx_channel *channel, dmg_ucx_operation *operation, dmg_status status)
{
    if (!operation->is_ended) {
        operation->is_ended = true;
        if (operation->is_by_message) {
            channel->by_message--;
        }
        dmg_completion_end(operation->completion, status, operation->node);
    }
    if (!operation->is_held_by_ucx) {
        free_operation(channel, operation);
    }
}

void dmg_ucx_end_all(dmg_ucx_channel *channel, int node, dmg_status status)
{
    for (uint32_t slot = 0; slot < DMG_UCX_OPERATIONS_MAX; slot++) {
        dmg_ucx_operation *operation = &channel->operations[slot];
        if (operation->kind != 0 && !operation->is_ended && (node < 0 || operation->node == node)) {
            dmg_ucx_end_operation(channel, operation, status);
        }
    }
    for (uint32_t i = 0; i < channel->node_count; i++) {
        if (node < 0 || i == (uint32_t)node) {
            dmg_ucx_link *link = &channel->links[i];
            link->queue.first = DMG_UCX_NO_SLOT;
            link->at_card.first = DMG_UCX_NO_SLOT;
            link->unflushed.first = DMG_UCX_NO_SLOT;
            link->flushing.first = DMG_UCX_NO_SLOT;
            link->window_bytes = 0;
            if (link->filling != NULL) {
                dmg_ucx_frame_give(&channel->frames, link->filling);
                link->filling = NULL;
            }
        }
    }
}

/** Make progress until a place is free: a dead node gives back its places within the peer timeout. False when there is
 * none after all. */
static bool await_place(dmg_ucx_channel *channel)
{
    dmg_backoff backoff = {0};
    dmg_ucx_patience patience = {0};
    while (channel->free_operation == DMG_UCX_NO_SLOT) {
        if (!dmg_ucx_is_patient(&patience)) {
            return false;
        }
        dmg_ucx_poll(&channel->base);
        for (uint32_t i = 0; i < channel->node_count; i++) {
            if (atomic_load_explicit(&channel->client->nodes[i].dead, memory_order_acquire)) {
                dmg_ucx_fail_node(&channel->base, (uint16_t)i);
            }
        }
        if (channel->free_operation == DMG_UCX_NO_SLOT) {
            dmg_backoff_wait(&backoff);
        }
    }
    return true;
}

static dmg_ucx_operation *take_operation(dmg_ucx_channel *channel, dmg_ucx_kind kind, uint16_t node,
                                         dmg_completion *completion)
{
    dmg_ucx_link *link = &channel->links[node];
    if (channel->free_operation == DMG_UCX_NO_SLOT && !await_place(channel) && link->broken == NULL) {
        link->broken = "completes none of the operations in flight";
    }
    if (link->is_failed || channel->free_operation == DMG_UCX_NO_SLOT) {
        dmg_completion_end(completion, DMG_ERR_PEER, node);
        return NULL;
    }
    dmg_ucx_operation *operation = &channel->operations[channel->free_operation];
    channel->free_operation = operation->next;
    uint16_t generation = operation->generation;
    memset(operation, 0, sizeof(*operation));
    operation->kind = (uint16_t)kind;
    operation->node = node;
    operation->generation = generation;
    operation->next = DMG_UCX_NO_SLOT;
    operation->pieces = 1;
    operation->completion = completion;
    operation->channel = channel;
    return operation;
}

/* ---- frames ---- */

static void send_filling(dmg_ucx_link *link)
{
    dmg_ucx_frame *frame = link->filling;
    link->filling = NULL;
    dmg_ucx_carrier_send(&link->carrier, DMG_UCX_REQUESTS, frame);
}

/** Room in the frame that is being filled, or NULL when there is no memory for another frame. */
static uint8_t *reserve(dmg_ucx_link *link, uint64_t bytes)
{
    uint8_t *at = link->filling != NULL ? dmg_ucx_frame_reserve(link->filling, bytes) : NULL;
    if (at == NULL) {
        if (link->filling != NULL) {
            send_filling(link);
        }
        link->filling = dmg_ucx_frame_take(&link->channel->frames);
        at = link->filling != NULL ? dmg_ucx_frame_reserve(link->filling, bytes) : NULL;
    }
    return at;
}

/* ---- operations by message ---- */

/** What a request for a lane is about; it lies with who waits for it. */
typedef struct lane_request {
    const dmg_ucx_card_address *own;
    dmg_ucx_lane_answer *answer;
    char sentence[160];
} lane_request;

static dmg_status take_lane(const dmg_ucx_operation *operation, dmg_status status, const uint8_t *data, uint32_t bytes)
{
    lane_request *asked = operation->local;
    if (status == DMG_OK && bytes == sizeof(*asked->answer)) {
        memcpy(asked->answer, data, bytes);
        return DMG_OK;
    }
    snprintf(asked->sentence, sizeof(asked->sentence), "%.*s", (int)(status != DMG_OK && bytes < 150 ? bytes : 0),
             (const char *)data);
    return status != DMG_OK ? status : DMG_ERR_PROTOCOL;
}

static uint32_t piece_bytes(const dmg_ucx_operation *operation, uint32_t piece)
{
    uint64_t start = (uint64_t)piece * DMG_UCX_PIECE_BYTES;
    uint64_t left = operation->bytes - start;
    return (uint32_t)(left < DMG_UCX_PIECE_BYTES ? left : DMG_UCX_PIECE_BYTES);
}

/** What a piece adds to what is in flight: both records, and the data whichever way it goes. */
static uint64_t piece_cost(const dmg_ucx_operation *operation, uint32_t piece)
{
    uint64_t cost = sizeof(dmg_ucx_request) + sizeof(dmg_ucx_answer) + dmg_ucx_padded(piece_bytes(operation, piece));
    if (operation->kind == DMG_UCX_CALL) {
        size_t capacity = operation->call->reply_capacity;
        cost += capacity < DMG_MESSAGE_BYTES_MAX ? capacity : DMG_MESSAGE_BYTES_MAX;
    }
    return cost;
}

/** Put the operation's next piece into a frame. False when it has to wait. */
static bool pack_piece(dmg_ucx_link *link, dmg_ucx_operation *operation, const void *data)
{
    uint32_t piece = operation->pieces_sent;
    uint32_t bytes = piece_bytes(operation, piece);
    uint64_t cost = piece_cost(operation, piece);
    if (link->window_bytes != 0 && link->window_bytes + cost > DMG_UCX_WINDOW_BYTES) {
        return false;
    }
    uint64_t start = operation->kind == DMG_UCX_CALL ? 0 : (uint64_t)piece * DMG_UCX_PIECE_BYTES;
    uint32_t carried = operation->kind == DMG_UCX_READ ? 0 : bytes;
    uint8_t *at = reserve(link, sizeof(dmg_ucx_request) + dmg_ucx_padded(carried));
    if (at == NULL) {
        return false;
    }
    uint64_t slot = (uint64_t)(operation - link->channel->operations);
    *(dmg_ucx_request *)(void *)at = (dmg_ucx_request){
        .kind = operation->kind,
        .bytes = bytes,
        .id = slot << 48 | (uint64_t)operation->generation << 32 | piece,
        .offset = operation->offset + start,
    };
    if (carried != 0) {
        uint8_t *to = at + sizeof(dmg_ucx_request);
        memcpy(to, (const uint8_t *)data + start, carried);
        memset(to + carried, 0, dmg_ucx_padded(carried) - carried);
    }
    link->window_bytes += cost;
    operation->pieces_sent++;
    return true;
}

static const void *operation_data(const dmg_ucx_operation *operation)
{
    switch (operation->kind) {
    case DMG_UCX_CAS:
    case DMG_UCX_FAA:
        return operation->operands;
    case DMG_UCX_LANE:
        return ((const lane_request *)operation->local)->own;
    default:
        return operation->local;
    }
}

/** Put what the window allows of the queue into frames. */
static void pump(dmg_ucx_link *link)
{
    dmg_ucx_channel *channel = link->channel;
    while (link->queue.first != DMG_UCX_NO_SLOT) {
        dmg_ucx_operation *operation = &channel->operations[link->queue.first];
        while (operation->pieces_sent < operation->pieces) {
            if (!pack_piece(link, operation, operation_data(operation))) {
                return;
            }
        }
        dmg_ucx_list_pop(channel, &link->queue);
    }
}

static void enqueue(dmg_ucx_channel *channel, dmg_ucx_operation *operation)
{
    dmg_ucx_link *link = &channel->links[operation->node];
    operation->is_by_message = true;
    channel->by_message++;
    dmg_ucx_list_append(channel, &link->queue, (uint32_t)(operation - channel->operations));
    pump(link);
}

/** Take one answer. NULL, or what was wrong with it. */
static const char *take_answer(dmg_ucx_channel *channel, dmg_ucx_link *link, const dmg_ucx_answer *answer,
                               const uint8_t *data)
{
    uint64_t slot = answer->id >> 48;
    uint32_t piece = (uint32_t)answer->id;
    dmg_ucx_operation *operation = slot < DMG_UCX_OPERATIONS_MAX ? &channel->operations[slot] : NULL;
    if (operation == NULL || operation->kind == 0 || operation->generation != (uint16_t)(answer->id >> 32) ||
        !operation->is_by_message || &channel->links[operation->node] != link || piece >= operation->pieces_sent) {
        return "answered what nobody asked";
    }
    if (answer->status >= DMG_STATUS_COUNT) {
        return "sent an answer that is not one of ours";
    }
    dmg_status status = (dmg_status)answer->status;
    if (operation->kind == DMG_UCX_CALL) {
        status = dmg_call_answer(operation->call, status, data, answer->bytes);
    } else if (operation->kind == DMG_UCX_LANE) {
        status = take_lane(operation, status, data, answer->bytes);
    } else if (status == DMG_ERR_PEER) {
        dmg_client_refused(channel->client->client, operation->node, data, answer->bytes);
    } else if (status == DMG_OK) {
        uint32_t expected = operation->kind == DMG_UCX_READ    ? piece_bytes(operation, piece)
                            : operation->kind == DMG_UCX_WRITE ? 0
                                                               : 8;
        if (answer->bytes != expected) {
            return "sent an answer of a wrong size";
        }
        if (expected != 0) {
            uint64_t start = operation->kind == DMG_UCX_READ ? (uint64_t)piece * DMG_UCX_PIECE_BYTES : 0;
            memcpy((uint8_t *)operation->local + start, data, expected);
        }
    }
    uint64_t cost = piece_cost(operation, piece);
    link->window_bytes -= cost < link->window_bytes ? cost : link->window_bytes;
    if (status != DMG_OK && operation->status == DMG_OK) {
        operation->status = status;
    }
    if (++operation->pieces_answered == operation->pieces) {
        dmg_ucx_end_operation(channel, operation, operation->status);
    }
    return NULL;
}

void dmg_ucx_take_answers(dmg_ucx_link *link, const dmg_ucx_header *header, const uint8_t *payload)
{
    dmg_ucx_channel *channel = link->channel;
    const uint8_t *at = payload;
    size_t left = header->bytes;
    for (uint32_t i = 0; i < header->count && !link->is_failed && link->broken == NULL; i++) {
        dmg_ucx_answer answer = {0};
        if (left >= sizeof(answer)) {
            memcpy(&answer, at, sizeof(answer));
        }
        if (left < sizeof(answer) || dmg_ucx_padded(answer.bytes) > left - sizeof(answer)) {
            link->broken = "sent a frame that is not one of ours";
            break;
        }
        link->broken = take_answer(channel, link, &answer, at + sizeof(answer));
        at += sizeof(answer) + dmg_ucx_padded(answer.bytes);
        left -= sizeof(answer) + dmg_ucx_padded(answer.bytes);
    }
}

dmg_status dmg_ucx_request_lane(dmg_ucx_channel *channel, uint16_t node, const dmg_ucx_card_address *own,
                                dmg_ucx_lane_answer *answer)
{
    lane_request asked = {.own = own, .answer = answer};
    dmg_completion completion = {.pending = 1};
    dmg_ucx_operation *operation = take_operation(channel, DMG_UCX_LANE, node, &completion);
    if (operation != NULL) {
        operation->local = &asked;
        operation->bytes = sizeof(*own);
        enqueue(channel, operation);
    }
    dmg_backoff backoff = {0};
    while (completion.pending != 0) {
        dmg_ucx_poll(&channel->base);
        if (atomic_load_explicit(&channel->client->nodes[node].dead, memory_order_acquire)) {
            dmg_ucx_fail_node(&channel->base, node);
        }
        if (completion.pending != 0) {
            dmg_backoff_wait(&backoff);
        }
    }
    return completion.status == DMG_OK ? DMG_OK
                                       : dmg_error(completion.status, "memory node %u gives no one-sided lane%s%s",
                                                   node, asked.sentence[0] != '\0' ? ": " : "", asked.sentence);
}

/* ---- one-sided operations ---- */

static bool is_one_sided(const dmg_ucx_channel *channel, uint16_t node)
{
    return channel->client->facts[node].is_one_sided;
}

static uint64_t remote_address(const dmg_ucx_channel *channel, uint16_t node, uint64_t offset)
{
    return channel->client->facts[node].base + offset;
}

/** End an operation in shared memory: it is done when UCX returns, and when it is not, in a moment that needs no peer.
 * Unless UCX does it in another way, by a message that the peer would have to answer: none does. */
static void end_in_shared_memory(dmg_ucx_channel *channel, void *request, dmg_completion *completion, uint16_t node)
{
    ucs_status_t status = UCS_PTR_STATUS(request);
    if (UCS_PTR_IS_PTR(request)) {
        dmg_ucx_link *link = &channel->links[node];
        dmg_ucx_patience patience = {0};
        do {
            ucp_worker_progress(channel->data_worker);
            status = ucp_request_check_status(request);
        } while (status == UCS_INPROGRESS && dmg_ucx_is_patient(&patience) &&
                 !atomic_load_explicit(&channel->client->nodes[node].dead, memory_order_acquire));
        if (status == UCS_INPROGRESS && link->broken == NULL) {
            link->broken = "has not completed an operation in shared memory in time";
            dmg_client_mark_dead(channel->client->client, node, link->broken);
        }
        ucp_request_free(request);
    }
    /* What fails here fails in this process: the peer has no part in it. */
    dmg_completion_end(completion,
                       status == UCS_OK              ? DMG_OK
                       : status == UCS_ERR_NO_MEMORY ? DMG_ERR_MEMORY
                                                     : DMG_ERR_PEER,
                       node);
}

/* ---- posting ---- */

static void post_span(dmg_ucx_channel *channel, dmg_ucx_kind kind, uint16_t node, uint64_t offset, void *local,
                      uint64_t bytes, dmg_completion *completion)
{
    dmg_ucx_link *link = &channel->links[node];
    if (is_one_sided(channel, node) && channel->client->data == DMG_UCX_DATA_SHARED_MEMORY && !link->is_failed) {
        uint64_t remote = remote_address(channel, node, offset);
        const ucp_request_param_t parameters = {.op_attr_mask = 0};
        void *request = kind == DMG_UCX_READ
                            ? ucp_get_nbx(link->data_endpoint, local, bytes, remote, link->key, &parameters)
                            : ucp_put_nbx(link->data_endpoint, local, bytes, remote, link->key, &parameters);
        end_in_shared_memory(channel, request, completion, node);
        return;
    }
    dmg_ucx_operation *operation = take_operation(channel, kind, node, completion);
    if (operation == NULL) {
        return;
    }
    operation->offset = offset;
    operation->local = local;
    operation->bytes = bytes;
    if (is_one_sided(channel, node)) {
        if (link->queue_pair == NULL && dmg_ucx_card_lane_open(channel, node) != DMG_OK) {
            link->broken = link->broken != NULL ? link->broken : "did not answer on its one-sided lane";
            dmg_ucx_end_operation(channel, operation, DMG_ERR_PEER);
            return;
        }
        dmg_ucx_card_post(channel, operation);
        return;
    }
    operation->pieces = (uint32_t)((bytes + DMG_UCX_PIECE_BYTES - 1) / DMG_UCX_PIECE_BYTES);
    enqueue(channel, operation);
}

void dmg_ucx_post_read(dmg_backend_channel *base, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                       dmg_completion *completion)
{
    post_span((dmg_ucx_channel *)base, DMG_UCX_READ, node, offset, to, bytes, completion);
}

void dmg_ucx_post_write(dmg_backend_channel *base, const void *from, uint16_t node, uint64_t offset, uint64_t bytes,
                        dmg_completion *completion)
{
    post_span((dmg_ucx_channel *)base, DMG_UCX_WRITE, node, offset, (void *)(uintptr_t)from, bytes, completion);
}

/** `operands`: CAS {expected, desired}, FAA {addend}. */
static void post_atomic(dmg_ucx_channel *channel, dmg_ucx_kind kind, uint16_t node, uint64_t offset,
                        const uint64_t operands[2], uint64_t *before, dmg_completion *completion)
{
    dmg_ucx_link *link = &channel->links[node];
    if (channel->client->has_one_sided_atomics && !link->is_failed) {
        /* UCP takes a swap's new value from where the old one will be. */
        *before = operands[1];
        ucp_request_param_t parameters = {
            .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
            .datatype = ucp_dt_make_contig(8),
            .reply_buffer = before,
        };
        void *request =
            ucp_atomic_op_nbx(link->data_endpoint, kind == DMG_UCX_CAS ? UCP_ATOMIC_OP_CSWAP : UCP_ATOMIC_OP_ADD,
                              operands, 1, remote_address(channel, node, offset), link->key, &parameters);
        end_in_shared_memory(channel, request, completion, node);
        return;
    }
    dmg_ucx_operation *operation = take_operation(channel, kind, node, completion);
    if (operation == NULL) {
        return;
    }
    operation->offset = offset;
    operation->local = before;
    operation->operands[0] = operands[0];
    operation->operands[1] = operands[1];
    operation->bytes = kind == DMG_UCX_CAS ? 16 : 8;
    enqueue(channel, operation);
}

void dmg_ucx_post_cas64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t expected, uint64_t desired,
                        uint64_t *observed, dmg_completion *completion)
{
    const uint64_t operands[2] = {expected, desired};
    post_atomic((dmg_ucx_channel *)base, DMG_UCX_CAS, node, offset, operands, observed, completion);
}

void dmg_ucx_post_faa64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t addend, uint64_t *before,
                        dmg_completion *completion)
{
    const uint64_t operands[2] = {addend, 0};
    post_atomic((dmg_ucx_channel *)base, DMG_UCX_FAA, node, offset, operands, before, completion);
}

void dmg_ucx_post_call(dmg_backend_channel *base, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                       dmg_call *call, dmg_completion *completion)
{
    dmg_ucx_channel *channel = (dmg_ucx_channel *)base;
    dmg_ucx_link *link = &channel->links[node];
    dmg_ucx_operation *operation = take_operation(channel, DMG_UCX_CALL, node, completion);
    if (operation == NULL) {
        return;
    }
    operation->offset = type;
    operation->bytes = bytes;
    operation->call = call;
    operation->is_by_message = true;
    channel->by_message++;
    if (link->queue.first == DMG_UCX_NO_SLOT && pack_piece(link, operation, payload)) {
        return;
    }
    /* It has to wait for its turn, so keep what the caller may change. */
    operation->local = malloc(bytes != 0 ? bytes : 1);
    if (operation->local == NULL) {
        dmg_ucx_end_operation(channel, operation, DMG_ERR_MEMORY);
        return;
    }
    if (bytes != 0) {
        memcpy(operation->local, payload, bytes);
    }
    dmg_ucx_list_append(channel, &link->queue, (uint32_t)(operation - channel->operations));
}

/* ---- progress ---- */

/** Send what has gathered; with much that waits already it is better to gather more. */
static void drive(dmg_ucx_channel *channel)
{
    for (uint32_t i = 0; i < channel->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        if (link->is_failed) {
            continue;
        }
        pump(link);
        dmg_ucx_carrier_flush(&link->carrier);
        if (link->filling != NULL && dmg_ucx_carrier_unsent_bytes(&link->carrier) < DMG_UCX_EAGER_BYTES) {
            send_filling(link);
        }
        if (link->queue_pair != NULL) {
            dmg_ucx_card_drive(link);
        }
    }
}

void dmg_ucx_ring(dmg_backend_channel *base)
{
    dmg_ucx_channel *channel = (dmg_ucx_channel *)base;
    if (channel->by_message != 0 || channel->data_event >= 0) {
        drive(channel);
    }
}

/** A card that completes nothing of what it was given, for so long, does not answer: leases, which go by message, would
 * not tell. */
static void watch_card(dmg_ucx_channel *channel)
{
    for (uint32_t i = 0; i < channel->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        bool is_idle = link->one_sided == 0 && !link->is_flushing && link->at_card.first == DMG_UCX_NO_SLOT &&
                       link->unflushed.first == DMG_UCX_NO_SLOT;
        if (link->has_moved || is_idle) {
            link->has_moved = false;
            link->patience = (dmg_ucx_patience){0};
        } else if (!dmg_ucx_is_patient(&link->patience) && link->broken == NULL) {
            link->broken = "has not completed a one-sided operation in time";
        }
    }
}

uint32_t dmg_ucx_channel_look(dmg_ucx_channel *channel, bool all)
{
    uint32_t count = channel->hub != NULL ? dmg_ucx_hub_progress(channel->hub) : 0;
    for (uint32_t i = 0; i < channel->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        bool is_asked = link->window_bytes != 0 && channel->hub == NULL;
        if ((is_asked || all) && !link->is_failed) {
            count += dmg_ucx_carrier_receive(&link->carrier, FRAMES_A_LOOK);
        }
    }
    return count;
}

void dmg_ucx_poll(dmg_backend_channel *base)
{
    dmg_ucx_channel *channel = (dmg_ucx_channel *)base;
    bool is_idle = channel->by_message == 0 && channel->data_event < 0;
    if (is_idle && ++channel->idle_polls % IDLE_POLLS != 0) {
        return;
    }
    drive(channel);
    dmg_ucx_channel_look(channel, ++channel->looks % IDLE_POLLS == 0 || is_idle);
    if (channel->data_event >= 0) {
        uct_worker_progress(channel->port.worker);
        if (++channel->polls % WATCH_POLLS == 0) {
            watch_card(channel);
        }
    }
    for (uint32_t i = 0; i < channel->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        if (link->broken != NULL && !link->is_failed) {
            dmg_client_mark_dead(channel->client->client, (uint16_t)i, link->broken);
        }
    }
    drive(channel);
}

void dmg_ucx_channel_sleep(dmg_backend_channel *base, uint64_t timeout_ns)
{
    dmg_ucx_channel *channel = (dmg_ucx_channel *)base;
    drive(channel);
    /* Whoever polls next wants to know what woke us. */
    channel->idle_polls = channel->looks = IDLE_POLLS - 1;
    if ((channel->hub != NULL && !dmg_ucx_hub_arm(channel->hub)) ||
        (channel->data_event >= 0 && uct_iface_event_arm(channel->port.interface, UCT_EVENT_SEND_COMP) != UCS_OK)) {
        return;
    }
    nfds_t count = 0;
    channel->waits[count++] =
        (struct pollfd){.fd = channel->hub != NULL ? dmg_ucx_hub_descriptor(channel->hub) : -1, .events = POLLIN};
    channel->waits[count++] = (struct pollfd){.fd = channel->data_event, .events = POLLIN};
    for (uint32_t i = 0; i < channel->node_count; i++) {
        const dmg_ucx_carrier *carrier = &channel->links[i].carrier;
        if (carrier->stream != NULL && carrier->broken == NULL) {
            bool waits_to_write = dmg_ucx_carrier_waits_to_write(carrier);
            channel->waits[count++] = (struct pollfd){.fd = dmg_stream_socket(carrier->stream),
                                                      .events = waits_to_write ? POLLIN | POLLOUT : POLLIN};
        }
    }
    struct timespec timeout = {
        .tv_sec = (time_t)(timeout_ns / 1000000000),
        .tv_nsec = (long)(timeout_ns % 1000000000),
    };
    ppoll(channel->waits, count, &timeout, NULL);
}

void dmg_ucx_fail_node(dmg_backend_channel *base, uint16_t node)
{
    dmg_ucx_channel *channel = (dmg_ucx_channel *)base;
    dmg_ucx_link *link = &channel->links[node];
    if (link->is_failed) {
        return;
    }
    /* Another thread may have seen its end first: what it had answered before counts. */
    dmg_ucx_channel_look(channel, true);
    link->is_failed = true;
    (void)dmg_ucx_carrier_close(&link->carrier);
    dmg_ucx_card_lane_close(channel, node);
    dmg_ucx_end_all(channel, node, DMG_ERR_PEER);
}
