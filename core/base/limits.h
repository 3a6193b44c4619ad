/**
 * @file limits.h
 * How many of everything there can be: one number for each, for all layers.
 *
 * They are sizes of tables that travel or stand in fixed memory. What asks for more is refused where it is asked for,
 * with the number.
 */
#ifndef DMG_CORE_BASE_LIMITS_H
#define DMG_CORE_BASE_LIMITS_H

/** Memory nodes of a pool. */
#define DMG_MEMORY_NODES_MAX 16
/** Compute nodes of a job: ranks. */
#define DMG_COMPUTE_NODES_MAX 64
/** Workers of a compute node: threads. */
#define DMG_WORKERS_MAX 64
/** Partitions of a graph. */
#define DMG_PARTITIONS_MAX 64

#endif
