/**
 * @file groups.h
 * How the compute nodes of a job share out a graph (DMG, section 4.3.1).
 *
 * A store that was cut into P partitions serves any number of compute nodes. Up to P of them take one or several
 * partitions each. More form *groups*: the members of a group have all partitions among them, each caches its own, and
 * the groups share out the vertices that are walked. So a partition is cached once a group, by the member that has it,
 * and at the end of a dense iteration these copies are combined (group_exchange.h).
 *
 * Fully-cached updates (DMG, section 5, "Comparison of Update Propagation Methods") are the same with groups of one
 * member, which has all partitions.
 */
#ifndef DMG_CORE_ENGINE_GROUPS_H
#define DMG_CORE_ENGINE_GROUPS_H

#include "core/base/limits.h"
#include "core/work/chunks.h"

/** What a compute node caches in a dense iteration. */
typedef enum dmg_caching {
    DMG_CACHING_PARTITION, /**< the attributes of its partitions; updates elsewhere leave it (collaborative update) */
    DMG_CACHING_FULL       /**< the attributes of all vertices; no update leaves it (fully-cached update) */
} dmg_caching;

/** The groups of a job, and one rank's place in them. */
typedef struct dmg_groups {
    uint32_t ranks;
    uint32_t group_count;
    uint32_t members_max; /**< of the largest group; the others have as many, or one less */
    uint32_t group;       /**< this rank's */
    uint32_t first_rank;  /**< of this group; its members have consecutive ranks */
    uint32_t members;     /**< of this group */
    uint32_t member;      /**< this rank among them */
} dmg_groups;

/** 0 <= rank < ranks, 1 <= partitions. As few groups as possible, as equal as possible. */
dmg_groups dmg_groups_of(uint32_t rank, uint32_t ranks, uint32_t partitions, dmg_caching caching);

/**
 * Of what a member caches, the vertices that it walks and whose attributes it writes: together, the ranks of a job have
 * each vertex once. A group's share is as large as its part of the ranks.
 */
dmg_block_cyclic dmg_groups_own(const dmg_groups *groups, uint64_t vertex_count);
/** The rest of it, which the same partition's members of the other groups walk. Only where there are several groups. */
dmg_block_cyclic dmg_groups_others(const dmg_groups *groups, uint64_t vertex_count);

/** The arrays of attributes that a run has in the pool at most, whichever its direction: for how much memory it needs.
 */
uint32_t dmg_groups_arrays(const dmg_groups *groups);

#endif
