/**
 * @file traffic.h
 * What leaves the partitions of compute nodes and comes into them, counted by method.
 */
#ifndef DMG_CORE_UPDATE_TRAFFIC_H
#define DMG_CORE_UPDATE_TRAFFIC_H

#include "core/update/method.h"

#include <stdint.h>

/** Batches of items by one method. */
typedef struct dmg_passed {
    uint64_t items;
    uint64_t buffers; /**< or messages; direct updates have none */
    uint64_t bytes;   /**< of the items, as they travel */
} dmg_passed;

/** What went out of a partition and came in from others. Over all ranks, as much is taken as was sent. */
typedef struct dmg_traffic {
    dmg_passed sent[DMG_UPDATE_METHODS];  /**< by dmg_update_method, of which AUTO has none */
    dmg_passed taken[DMG_UPDATE_METHODS]; /**< and applied: those of DMG_UPDATE_VALRD_NODE by memory nodes, as their
                                             answers say */
} dmg_traffic;

static inline void dmg_passed_add(dmg_passed *sum, const dmg_passed *more)
{
    sum->items += more->items;
    sum->buffers += more->buffers;
    sum->bytes += more->bytes;
}

/** Add what another rank, or another iteration, has counted. */
void dmg_traffic_add(dmg_traffic *sum, const dmg_traffic *more);
/** Take away what the same counters had counted before. */
void dmg_traffic_subtract(dmg_traffic *later, const dmg_traffic *earlier);

#endif
