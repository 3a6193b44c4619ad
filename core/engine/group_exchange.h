/**
 * @file group_exchange.h
 * Combining what the groups of a job cache of the same partitions (groups.h), at the end of a dense iteration.
 *
 * Each group has an array in the pool. A rank *deposits* there what it caches of the vertices that other groups walk.
 * After a barrier it *folds* what the other groups have deposited of its own vertices into its cache, by minimum or by
 * addition. All of it are sequential writes and reads, and no word is written by two ranks: nothing can be lost, and
 * nothing counts twice. What a rank moves does not grow with the number of groups: at most its cache once out and once
 * in.
 */
#ifndef DMG_CORE_ENGINE_GROUP_EXCHANGE_H
#define DMG_CORE_ENGINE_GROUP_EXCHANGE_H

#include "core/engine/runtime.h"

typedef struct dmg_group_exchange dmg_group_exchange;

/**
 * `*exchange` is NULL where there is one group. Every rank calls it, with the same operator: one barrier a group.
 * The memory in the pool belongs to the job.
 */
dmg_status dmg_group_exchange_create(dmg_engine *engine, dmg_combine combine, dmg_group_exchange **exchange);
/** NULL is allowed. */
void dmg_group_exchange_destroy(dmg_group_exchange *exchange);

/**
 * Leave what this rank caches of other groups' vertices. `cache` has an attribute for each of the engine's vertices, as
 * everywhere in these calls. A cache of sums is zero there afterwards.
 */
dmg_status dmg_group_exchange_deposit(dmg_group_exchange *exchange, void *cache);
/** After a barrier: bring what the others have left of this rank's own vertices into its cache. */
dmg_status dmg_group_exchange_fold(dmg_group_exchange *exchange, void *cache);

#endif
