/**
 * @file valrd_owner.h
 * Pass-by-value redistribution (ValRD) by owners, both ends: updates are left in batches, in a mailbox in pool memory,
 * for the compute node that caches the attribute, which applies them to its cache (DMG, sections 4.3.1 and 4.5.4).
 *
 * For pools whose memory nodes do not compute, such as a CXL device, or whose atomics the network card executes.
 */
#ifndef DMG_CORE_ENGINE_EXCHANGE_VALRD_OWNER_H
#define DMG_CORE_ENGINE_EXCHANGE_VALRD_OWNER_H

#include "core/engine/exchange/mailbox.h"
#include "core/update/direct_remote.h"

/** The largest item: the destination vertex in four bytes, then the value in as many as the attribute has. */
#define DMG_VALUE_ITEM_BYTES_MAX 12

static inline uint32_t dmg_value_item_bytes(dmg_combine combine)
{
    return 4 + dmg_combine_bytes(combine);
}

/** The owners of a job's partitions. Rank r has the vertices [first_vertex[r], first_vertex[r + 1]). */
typedef struct dmg_owners {
    uint32_t ranks;
    uint64_t first_vertex[DMG_COMPUTE_NODES_MAX + 1];
} dmg_owners;

typedef struct dmg_valrd_owner dmg_valrd_owner;

/**
 * One worker's side. `mailbox` has items of dmg_value_item_bytes; `owners` must stay; updates for which the mailbox has
 * no room go through `direct`, whose target must be set, and which must be flushed beside this.
 */
dmg_status dmg_valrd_owner_create(dmg_mailbox *mailbox, const dmg_owners *owners, dmg_direct_remote *direct,
                                  dmg_channel *channel, uint32_t worker, dmg_budget *budget, dmg_valrd_owner **queue);
/** NULL is allowed. The mailbox must have been flushed. */
void dmg_valrd_owner_destroy(dmg_valrd_owner *queue);

/** Leave an update for the vertex's owner. An error is kept until the mailbox's flush. */
void dmg_valrd_owner_update(dmg_valrd_owner *queue, uint32_t vertex, uint64_t update);
/** Write the buffers of this worker. */
dmg_status dmg_valrd_owner_flush(dmg_valrd_owner *queue);

/** How many updates were left for owners, without those that had no room and were direct ones. */
uint64_t dmg_valrd_owner_updates(const dmg_valrd_owner *queue);

/**
 * Apply updates that another compute node has passed on.
 *
 * @param items  of dmg_value_item_bytes each: vertex, then value
 * @return false when some update does not lead to this compute node: who sent it is not believed
 */
typedef bool (*dmg_valrd_owner_apply)(void *context, uint32_t worker, const uint8_t *items, uint32_t count);

/**
 * Receive batches until none is left, and apply them. By all workers, who share them out; after the mailbox has
 * collected.
 *
 * @param room  for the items of a buffer of the mailbox
 * @return DMG_OK; DMG_ERR_CORRUPT for an update that does not lead here; what reading the mailbox fails with
 */
dmg_status dmg_valrd_owner_receive(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t worker, void *room,
                                   dmg_valrd_owner_apply apply, void *context);

#endif
