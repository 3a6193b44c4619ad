/**
 * @file budget.h
 * The cache budget of a compute node: a hard limit, accounted by purpose.
 *
 * Whatever a compute node keeps for a run is allocated through its budget: the cached partition, the buffers of the
 * tasks in flight, the queues of the update coordinator. An allocation that would exceed the budget fails with
 * DMG_ERR_LIMIT and says how much was wanted for what.
 */
#ifndef DMG_CORE_BASE_BUDGET_H
#define DMG_CORE_BASE_BUDGET_H

#include "dmgraph/status.h"

#include <stdint.h>

typedef enum dmg_budget_purpose {
    DMG_BUDGET_ATTRIBUTES, /**< the cached attributes of the partition */
    DMG_BUDGET_BITMAP,     /**< activation bits */
    DMG_BUDGET_INDEX,      /**< index entries that are kept (cached_index.h) */
    DMG_BUDGET_RETRIEVAL,  /**< index and edge-list buffers of the tasks in flight */
    DMG_BUDGET_UPDATES,    /**< queues of updates that leave the partition */
    DMG_BUDGET_OTHER,
    DMG_BUDGET_PURPOSES
} dmg_budget_purpose;

typedef struct dmg_budget dmg_budget;

/** Create a budget of so many bytes; 0 means no limit (the peak is still measured). Destroy with dmg_budget_destroy. */
dmg_status dmg_budget_create(uint64_t limit_bytes, dmg_budget **budget);
/** All allocations of the budget must have been freed. NULL is allowed. */
void dmg_budget_destroy(dmg_budget *budget);

/**
 * Allocate zeroed memory, aligned to 64 bytes (2 MiB and advised for huge pages when it is that large). `*memory` is
 * NULL for 0 bytes. DMG_ERR_LIMIT when the budget is exceeded, DMG_ERR_MEMORY when the machine has no more.
 * Thread-safe.
 */
dmg_status dmg_budget_allocate(dmg_budget *budget, dmg_budget_purpose purpose, uint64_t bytes, void **memory);
/** Free what dmg_budget_allocate gave, with the same purpose and size. NULL is allowed. Thread-safe. */
void dmg_budget_free(dmg_budget *budget, dmg_budget_purpose purpose, void *memory, uint64_t bytes);

uint64_t dmg_budget_limit_bytes(const dmg_budget *budget);
/** The most bytes that were ever allocated at once, in all. */
uint64_t dmg_budget_peak_bytes(const dmg_budget *budget);
/** The most bytes that this purpose ever had at once. */
uint64_t dmg_budget_purpose_peak_bytes(const dmg_budget *budget, dmg_budget_purpose purpose);
/** "attributes", "bitmap", "index", "retrieval", "updates", "other". */
const char *dmg_budget_purpose_name(dmg_budget_purpose purpose);

#endif
