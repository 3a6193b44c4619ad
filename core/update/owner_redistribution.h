/**
 * @file owner_redistribution.h
 * Pass-by-value redistribution (ValRD) that the owner pulls: updates travel in batches through pool memory to the
 * compute node that caches the attribute, which applies them to its cache (DMG, sections 4.3.1 and 4.5.4).
 *
 * For pools whose memory nodes do not compute, such as a CXL device, or whose atomics the network card executes.
 */
#ifndef DMG_CORE_UPDATE_OWNER_REDISTRIBUTION_H
#define DMG_CORE_UPDATE_OWNER_REDISTRIBUTION_H

#include "core/update/direct_remote.h"
#include "core/update/mailbox.h"

/** The largest item: the destination vertex in four bytes, then the value in as many as the attribute has. */
#define DMG_VALUE_ITEM_BYTES_MAX 12

static inline uint32_t dmg_value_item_bytes(dmg_combine combine)
{
    return 4 + dmg_combine_bytes(combine);
}

/** The owners of a job's partitions. Rank r has the vertices [first_vertex[r], first_vertex[r + 1]). */
typedef struct dmg_owners {
    uint32_t ranks;
    uint64_t first_vertex[DMG_RANKS_MAX + 1];
} dmg_owners;

typedef struct dmg_owner_redistribution dmg_owner_redistribution;

/**
 * One worker's side. `mailbox` has items of dmg_value_item_bytes; `owners` must stay; updates for which the mailbox has
 * no room go through `direct`, whose target must be set, and which must be flushed beside this.
 */
dmg_status dmg_owner_redistribution_create(dmg_mailbox *mailbox, const dmg_owners *owners, dmg_direct_remote *direct,
                                           dmg_channel *channel, uint32_t worker, dmg_budget *budget,
                                           dmg_owner_redistribution **queue);
/** NULL is allowed. The mailbox must have been flushed. */
void dmg_owner_redistribution_destroy(dmg_owner_redistribution *queue);

/** Leave an update for the vertex's owner. An error is kept until the mailbox's flush. */
void dmg_owner_redistribution_update(dmg_owner_redistribution *queue, uint32_t vertex, uint64_t update);
/** Write the buffers of this worker. */
dmg_status dmg_owner_redistribution_flush(dmg_owner_redistribution *queue);

/** How many updates were left for owners, without those that had no room and were direct ones. */
uint64_t dmg_owner_redistribution_updates(const dmg_owner_redistribution *queue);

#endif
