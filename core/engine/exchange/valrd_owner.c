#include "core/engine/exchange/valrd_owner.h"

#include "core/base/error.h"

#include <string.h>

struct dmg_valrd_owner {
    dmg_mailbox *mailbox;
    const dmg_owners *owners;
    dmg_direct_remote *direct;
    dmg_channel *channel;
    dmg_budget *budget;
    uint32_t worker;
    uint32_t value_bytes;
    uint32_t owner; /* of the last update; lists ascend, so the next one often has the same */
    uint64_t updates;
};

dmg_status dmg_valrd_owner_create(dmg_mailbox *mailbox, const dmg_owners *owners, dmg_direct_remote *direct,
                                  dmg_channel *channel, uint32_t worker, dmg_budget *budget, dmg_valrd_owner **out)
{
    void *memory;
    dmg_status status = dmg_budget_allocate(budget, DMG_BUDGET_UPDATES, sizeof **out, &memory);
    dmg_valrd_owner *queue = memory;
    if (status == DMG_OK) {
        queue->mailbox = mailbox;
        queue->owners = owners;
        queue->direct = direct;
        queue->channel = channel;
        queue->budget = budget;
        queue->worker = worker;
        queue->value_bytes = dmg_mailbox_item_bytes(mailbox) - 4;
    }
    *out = queue;
    return status;
}

void dmg_valrd_owner_destroy(dmg_valrd_owner *queue)
{
    if (queue) {
        dmg_budget_free(queue->budget, DMG_BUDGET_UPDATES, queue, sizeof *queue);
    }
}

/* ---- sending ---- */

/* The rank whose range has the vertex, by bisection. */
static uint32_t find_owner(const dmg_owners *owners, uint32_t vertex)
{
    uint32_t low = 0;
    uint32_t high = owners->ranks;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (owners->first_vertex[middle] <= vertex) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

void dmg_valrd_owner_update(dmg_valrd_owner *queue, uint32_t vertex, uint64_t update)
{
    const uint64_t *range = &queue->owners->first_vertex[queue->owner];
    if (vertex < range[0] || vertex >= range[1]) {
        queue->owner = find_owner(queue->owners, vertex);
    }
    uint8_t *item = dmg_mailbox_reserve(queue->mailbox, queue->channel, queue->worker, queue->owner);
    if (!item) {
        dmg_direct_remote_update(queue->direct, vertex, update);
        return;
    }
    queue->updates++;
    memcpy(item, &vertex, 4);
    if (queue->value_bytes == 4) {
        memcpy(item + 4, &update, 4);
    } else {
        memcpy(item + 4, &update, 8);
    }
}

dmg_status dmg_valrd_owner_flush(dmg_valrd_owner *queue)
{
    return dmg_mailbox_flush(queue->mailbox, queue->channel, queue->worker);
}

uint64_t dmg_valrd_owner_updates(const dmg_valrd_owner *queue)
{
    return queue->updates;
}

/* ---- receiving ---- */

dmg_status dmg_valrd_owner_receive(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t worker, void *room,
                                   dmg_valrd_owner_apply apply, void *context)
{
    for (;;) {
        uint32_t count;
        dmg_status status = dmg_mailbox_receive(mailbox, channel, worker, room, &count);
        if (status != DMG_OK || count == 0) {
            return status;
        }
        if (!apply(context, worker, room, count)) {
            return dmg_error(DMG_ERR_CORRUPT,
                             "an update that another compute node passed on does not lead to this one");
        }
    }
}
