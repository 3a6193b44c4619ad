/**
 * @file target.h
 * What updates that leave a compute node's partition are applied to, whichever way they go, and what is counted of
 * them.
 */
#ifndef DMG_CORE_UPDATE_TARGET_H
#define DMG_CORE_UPDATE_TARGET_H

#include "core/pool/combine.h"
#include "core/pool/range_array.h"

typedef struct dmg_update_target {
    dmg_combine combine;
    const dmg_range_array *attributes;
    const dmg_range_array *activation; /**< of words of 64 vertices; NULL: updates activate nothing */
    bool has_one_writer;               /**< no other compute node updates these arrays meanwhile */
} dmg_update_target;

typedef struct dmg_update_counters {
    uint64_t updates;    /**< that left the partition this way */
    uint64_t applied;    /**< that changed an attribute (direct: of several to one word in a queue, one is counted) */
    uint64_t lost_swaps; /**< direct: compare-and-swaps that had to be repeated */
    uint64_t activated;  /**< bits that were clear before */
} dmg_update_counters;

/** The ways out of a partition (DMG, section 4.3). */
typedef enum dmg_way {
    DMG_WAY_DIRECT,    /**< direct remote updates */
    DMG_WAY_NODE,      /**< ValRD, applied by the memory node */
    DMG_WAY_OWNER,     /**< ValRD, pulled by the compute node that has the partition; in sparse iterations also by one
                          from itself */
    DMG_WAY_REFERENCE, /**< RefRD: an item is an edge segment */
    DMG_WAYS
} dmg_way;

/** Batches of items on one of the ways. */
typedef struct dmg_passed {
    uint64_t items;
    uint64_t buffers; /**< or messages; direct updates have none */
    uint64_t bytes;   /**< of the items, as they travel */
} dmg_passed;

/** What went out of a partition and came in from others. Over all ranks, as much is taken as was sent. */
typedef struct dmg_traffic {
    dmg_passed sent[DMG_WAYS];
    dmg_passed taken[DMG_WAYS]; /**< and applied: DMG_WAY_NODE by memory nodes, as their answers say */
} dmg_traffic;

/** "direct", "node", "owner", "reference". */
const char *dmg_way_name(dmg_way way);

static inline void dmg_passed_add(dmg_passed *sum, const dmg_passed *more)
{
    sum->items += more->items;
    sum->buffers += more->buffers;
    sum->bytes += more->bytes;
}

/** Of ranks, or of iterations. */
void dmg_traffic_add(dmg_traffic *sum, const dmg_traffic *more);
/** `more` was counted before `sum` by the same counters. */
void dmg_traffic_subtract(dmg_traffic *sum, const dmg_traffic *more);

#endif
