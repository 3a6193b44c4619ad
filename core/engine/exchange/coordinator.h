/**
 * @file coordinator.h
 * The update coordinator of one worker: how an update travels that leaves the cached partition (DMG, section 4.3).
 */
#ifndef DMG_CORE_ENGINE_EXCHANGE_COORDINATOR_H
#define DMG_CORE_ENGINE_EXCHANGE_COORDINATOR_H

#include "core/engine/exchange/valrd_owner.h"
#include "core/update/direct_remote.h"
#include "core/update/method.h"
#include "core/update/value_redistribution.h"

typedef struct dmg_update_coordinator {
    dmg_update_method method; /**< of the current phase: not AUTO */
    dmg_direct_remote *direct;
    dmg_value_redistribution *by_value; /**< NULL where it is not possible */
    dmg_valrd_owner *by_owner;          /**< NULL unless the run has a mailbox for it */
} dmg_update_coordinator;

/** `coordinator` is zeroed or destroyed before. `value_buffer_bytes` is the size of a batch by value. */
dmg_status dmg_update_coordinator_create(dmg_client *client, dmg_channel *channel, dmg_budget *budget,
                                         uint32_t value_buffer_bytes, dmg_update_coordinator *coordinator);
/** A zeroed one is allowed. */
void dmg_update_coordinator_destroy(dmg_update_coordinator *coordinator);

/** Make DMG_UPDATE_VALRD_OWNER possible, through a mailbox of the run. */
dmg_status dmg_update_coordinator_join_owners(dmg_update_coordinator *coordinator, dmg_mailbox *mailbox,
                                              const dmg_owners *owners, dmg_channel *channel, uint32_t worker,
                                              dmg_budget *budget);
/** Before the mailbox goes. Nothing happens when there is none. */
void dmg_update_coordinator_leave_owners(dmg_update_coordinator *coordinator);

/**
 * What AUTO means on a pool of these capabilities, and a check of what was asked for: DMG_ERR_UNSUPPORTED when the pool
 * cannot do it. Of dense iterations; in sparse ones owners cache nothing (dmg_update_sparse_by_owner).
 *
 * By value where the memory nodes compute. By the owners where they do not, and where the pool is mapped: a batch costs
 * two sequential copies there, and a direct update an atomic on a line that others have. Dense push iterations over
 * mapped memory took 1.2 times as long directly, and over the model of a CXL expander twice as long.
 */
dmg_status dmg_update_method_choose(const dmg_capabilities *capabilities, dmg_update_method wanted,
                                    dmg_update_method *method);
/**
 * Whether updates go to owners in sparse iterations, too: the owners apply them to the pool. When they were
 * asked for, and where each direct update would take a lock: a batch for an owner, who takes none, costs as much as
 * half a dozen of these. Else direct updates need no exchange, and cost less.
 */
bool dmg_update_sparse_by_owner(const dmg_capabilities *capabilities, dmg_update_method wanted);

/** Direct the updates of a phase; all of the last phase's are flushed. */
void dmg_update_coordinator_set_target(dmg_update_coordinator *coordinator, dmg_update_method method,
                                       const dmg_update_target *target);

/** Update a vertex's attribute in the pool. `update` is the value, in the low bytes, or a double's bits. Errors are
 * kept until the flush. */
static inline void dmg_update_coordinator_update(dmg_update_coordinator *coordinator, uint32_t vertex, uint64_t update)
{
    if (coordinator->method == DMG_UPDATE_VALRD_NODE) {
        dmg_value_redistribution_update(coordinator->by_value, vertex, update);
    } else if (coordinator->method == DMG_UPDATE_VALRD_OWNER) {
        dmg_valrd_owner_update(coordinator->by_owner, vertex, update);
    } else {
        dmg_direct_remote_update(coordinator->direct, vertex, update);
    }
}

/** An update of a vertex that no other compute node updates meanwhile, as one that came by owner: not counted again. */
static inline void dmg_update_coordinator_update_own(dmg_update_coordinator *coordinator, uint32_t vertex,
                                                     uint64_t update)
{
    dmg_direct_remote_update_own(coordinator->direct, vertex, update);
}

/** Wait until every update is in the pool, as an attribute or for its owner. Returns the first error since the last
 * flush. */
dmg_status dmg_update_coordinator_flush(dmg_update_coordinator *coordinator);

/** All methods added up. */
dmg_update_counters dmg_update_coordinator_count(const dmg_update_coordinator *coordinator);
/** Add what went directly and to memory nodes; mailboxes count themselves. */
void dmg_update_coordinator_add_traffic(const dmg_update_coordinator *coordinator, dmg_traffic *traffic);

#endif
