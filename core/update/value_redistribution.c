#include "core/update/value_redistribution.h"

#include "core/base/error.h"
#include "core/pool/protocol.h"

#include <stdio.h>

/* Per node: one message is filled while the other is with the memory node. */
#define CALLS_A_NODE   2
#define SENTENCE_BYTES 160
#define UPDATES_BYTES  (DMG_MESSAGE_BYTES_MAX - sizeof(dmg_pool_update_request))

struct message {
    dmg_pool_update_request request;
    uint8_t updates[UPDATES_BYTES];
};

struct call {
    dmg_call call;
    dmg_completion completion;
    union {
        dmg_pool_update_reply reply;
        char sentence[SENTENCE_BYTES]; /* why the node refused */
    };
    uint32_t updates;
    bool is_sent; /* and its answer was not looked at yet */
};

struct node_queue {
    struct message message; /* being filled */
    uint64_t first;         /* the vertices of this node */
    uint32_t used_bytes;
    uint32_t next_call;
    struct call calls[CALLS_A_NODE];
};

struct dmg_value_redistribution {
    dmg_channel *channel;
    dmg_budget *budget;
    dmg_update_target target;
    dmg_update_counters counters;
    dmg_passed sent;
    dmg_passed taken;
    dmg_kept_error error;   /* the first one since the last flush */
    uint32_t message_bytes; /* of updates, at most */
    uint32_t update_bytes;
    uint32_t node_count;
    struct node_queue nodes[];
};

static uint64_t queue_bytes(uint32_t node_count)
{
    return sizeof(dmg_value_redistribution) + node_count * sizeof(struct node_queue);
}

uint32_t dmg_value_message_bytes(uint32_t buffer_bytes)
{
    return buffer_bytes < UPDATES_BYTES ? buffer_bytes : (uint32_t)UPDATES_BYTES;
}

dmg_status dmg_value_redistribution_create(dmg_channel *channel, dmg_budget *budget, uint32_t buffer_bytes,
                                           dmg_value_redistribution **queue)
{
    uint32_t node_count = dmg_client_node_count(dmg_channel_client(channel));
    node_count = node_count < DMG_MEMORY_NODES_MAX ? node_count : DMG_MEMORY_NODES_MAX;
    void *memory;
    dmg_status status = dmg_budget_allocate(budget, DMG_BUDGET_UPDATES, queue_bytes(node_count), &memory);
    *queue = memory;
    if (status == DMG_OK) {
        (*queue)->channel = channel;
        (*queue)->budget = budget;
        (*queue)->message_bytes = dmg_value_message_bytes(buffer_bytes);
        (*queue)->node_count = node_count;
    }
    return status;
}

void dmg_value_redistribution_destroy(dmg_value_redistribution *queue)
{
    if (queue) {
        dmg_budget_free(queue->budget, DMG_BUDGET_UPDATES, queue, queue_bytes(queue->node_count));
    }
}

bool dmg_value_redistribution_is_possible(const dmg_capabilities *capabilities)
{
    return (capabilities->flags & DMG_CAPABILITY_MN_COMPUTE) != 0 && capabilities->atomics != DMG_ATOMICS_NIC;
}

void dmg_value_redistribution_set_target(dmg_value_redistribution *queue, const dmg_update_target *target)
{
    queue->target = *target;
    queue->update_bytes = 4 + dmg_combine_bytes(target->combine);
    for (uint32_t i = 0; i < queue->node_count; i++) {
        struct node_queue *node = &queue->nodes[i];
        node->first = dmg_range_array_first(target->attributes, i);
        node->message.request = (dmg_pool_update_request){
            .header = dmg_pool_header_make(),
            .combine = target->combine,
            .attributes = dmg_address_offset(target->attributes->base[i]),
            .activation = target->activation ? dmg_address_offset(target->activation->base[i]) : 0};
    }
}

/* The first error stays until the flush; its context lies in this thread, where other calls may replace it. */
static void keep_error(dmg_value_redistribution *queue, dmg_status status)
{
    dmg_error_keep(&queue->error, status);
}

static void take_answer(dmg_value_redistribution *queue, struct call *call)
{
    if (!call->is_sent) {
        return;
    }
    call->is_sent = false;
    dmg_status status = dmg_wait(queue->channel, &call->completion);
    if (status == DMG_OK && call->call.reply_status != DMG_OK) {
        status = dmg_error(call->call.reply_status, "a memory node refused a batch of updates: %.*s",
                           (int)call->call.reply_bytes, call->sentence);
    }
    if (status == DMG_OK) {
        queue->counters.applied += call->reply.applied;
        queue->counters.activated += call->reply.activated;
        dmg_passed_add(&queue->taken, &(dmg_passed){.items = call->updates,
                                                    .buffers = 1,
                                                    .bytes = (uint64_t)call->updates * queue->update_bytes});
    }
    keep_error(queue, status);
}

static void send(dmg_value_redistribution *queue, uint32_t index)
{
    struct node_queue *node = &queue->nodes[index];
    struct call *call = &node->calls[node->next_call];
    take_answer(queue, call);
    node->message.request.count = node->used_bytes / queue->update_bytes;
    call->call = (dmg_call){.reply = call->sentence, .reply_capacity = sizeof call->sentence};
    call->completion = (dmg_completion){.overlap = CALLS_A_NODE};
    call->is_sent = true;
    call->updates = node->message.request.count;
    dmg_passed_add(&queue->sent, &(dmg_passed){.items = call->updates, .buffers = 1, .bytes = node->used_bytes});
    dmg_post_call(queue->channel, (uint16_t)index, DMG_POOL_UPDATE, &node->message,
                  sizeof node->message.request + node->used_bytes, &call->call, &call->completion);
    dmg_channel_ring(queue->channel);
    node->used_bytes = 0;
    node->next_call = (node->next_call + 1) % CALLS_A_NODE;
}

void dmg_value_redistribution_update(dmg_value_redistribution *queue, uint32_t vertex, uint64_t update)
{
    queue->counters.updates++;
    uint32_t index = dmg_range_array_node(queue->target.attributes, vertex);
    struct node_queue *node = &queue->nodes[index];
    uint32_t in_node = (uint32_t)(vertex - node->first);
    memcpy(node->message.updates + node->used_bytes, &in_node, sizeof in_node);
    memcpy(node->message.updates + node->used_bytes + 4, &update, queue->update_bytes - 4);
    node->used_bytes += queue->update_bytes;
    if (node->used_bytes + queue->update_bytes > queue->message_bytes) {
        send(queue, index);
    }
}

dmg_status dmg_value_redistribution_flush(dmg_value_redistribution *queue)
{
    for (uint32_t i = 0; i < queue->node_count; i++) {
        if (queue->nodes[i].used_bytes > 0) {
            send(queue, i);
        }
    }
    for (uint32_t i = 0; i < queue->node_count; i++) {
        for (uint32_t j = 0; j < CALLS_A_NODE; j++) {
            take_answer(queue, &queue->nodes[i].calls[j]);
        }
    }
    dmg_status status = dmg_error_restore(&queue->error);
    queue->error.status = DMG_OK;
    return status;
}

const dmg_update_counters *dmg_value_redistribution_count(const dmg_value_redistribution *queue)
{
    return &queue->counters;
}

const dmg_passed *dmg_value_redistribution_sent(const dmg_value_redistribution *queue)
{
    return &queue->sent;
}

const dmg_passed *dmg_value_redistribution_taken(const dmg_value_redistribution *queue)
{
    return &queue->taken;
}
