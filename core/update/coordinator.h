/**
 * @file coordinator.h
 * The update coordinator of one worker: which way an update takes that leaves the cached partition (DMG, section 4.3).
 */
#ifndef DMG_CORE_UPDATE_COORDINATOR_H
#define DMG_CORE_UPDATE_COORDINATOR_H

#include "core/update/direct_remote.h"
#include "core/update/value_redistribution.h"

typedef enum dmg_update_method {
    DMG_UPDATE_AUTO,
    DMG_UPDATE_DIRECT,  /**< direct remote updates */
    DMG_UPDATE_BY_VALUE /**< ValRD: the memory node applies them */
} dmg_update_method;

typedef struct dmg_update_coordinator {
    dmg_update_method method; /**< of the current phase: not AUTO */
    dmg_direct_remote *direct;
    dmg_value_redistribution *by_value; /**< NULL where it is not possible */
} dmg_update_coordinator;

/** `coordinator` is zeroed or destroyed before. */
dmg_status dmg_update_coordinator_create(dmg_client *client, dmg_channel *channel, dmg_budget *budget,
                                         dmg_update_coordinator *coordinator);
/** A zeroed one is allowed. */
void dmg_update_coordinator_destroy(dmg_update_coordinator *coordinator);

/**
 * What AUTO means on this pool, and a check of what was asked for: DMG_ERR_UNSUPPORTED when the pool cannot do it.
 *
 * By value where the memory nodes compute and an update would otherwise take operations; direct where loads and stores
 * reach the pool, or nothing else is possible.
 */
dmg_status dmg_update_method_choose(const dmg_client *client, dmg_update_method wanted, dmg_update_method *method);

/** Direct the updates of a phase; all of the last phase's are flushed. */
void dmg_update_coordinator_aim(dmg_update_coordinator *coordinator, dmg_update_method method,
                                const dmg_update_target *target);

/** Update a vertex's attribute in the pool. `update` is the value, in the low bytes, or a double's bits. Errors are
 * kept until the flush. */
static inline void dmg_update_coordinator_update(dmg_update_coordinator *coordinator, uint32_t vertex, uint64_t update)
{
    if (coordinator->method == DMG_UPDATE_BY_VALUE) {
        dmg_value_redistribution_update(coordinator->by_value, vertex, update);
    } else {
        dmg_direct_remote_update(coordinator->direct, vertex, update);
    }
}

/** Wait until every update is in the pool. Returns the first error since the last flush. */
dmg_status dmg_update_coordinator_flush(dmg_update_coordinator *coordinator);

/** All ways added up. */
dmg_update_counters dmg_update_coordinator_count(const dmg_update_coordinator *coordinator);

#endif
