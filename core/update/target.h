/**
 * @file target.h
 * What updates that leave a compute node's partition are applied to, by whatever method, and what is counted of them.
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
    uint64_t updates;    /**< that left the partition by this method */
    uint64_t applied;    /**< that changed an attribute (direct: of several to one word in a queue, one is counted) */
    uint64_t lost_swaps; /**< direct: compare-and-swaps that had to be repeated */
    uint64_t activated;  /**< bits that were clear before */
} dmg_update_counters;

#endif
