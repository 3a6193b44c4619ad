/**
 * @file pool.h
 * What one compute node (rank 0) knows about the pool: how partitioning went, and what the memory nodes did.
 */
#ifndef DMG_CLI_REPORT_POOL_H
#define DMG_CLI_REPORT_POOL_H

#include "core/pool/pool.h"

#include <jansson.h>

/** What a memory node did while a run loaded, and while it ran. */
typedef struct dmg_node_activities {
    dmg_node_activity load;
    dmg_node_activity run;
} dmg_node_activities;

typedef struct dmg_pool_report {
    uint64_t partition_ns;      /**< cutting the partitions took so long, when the graph was loaded */
    uint64_t repartition_ns;    /**< cutting them anew from the metadata in the pool, and reading it, took so long */
    uint64_t tiny_chunk_count;  /**< that the metadata is of */
    double partition_imbalance; /**< what the dearest partition is charged, by the mean */
    dmg_node_activities memory_nodes[DMG_MEMORY_NODES_MAX];
    uint32_t memory_node_count;
} dmg_pool_report;

json_t *dmg_pool_report_json(const dmg_pool_report *report);
/** DMG_ERR_PROTOCOL for what is missing or out of range. */
dmg_status dmg_pool_report_from_json(const json_t *object, dmg_pool_report *report);

json_t *dmg_node_activity_json(const dmg_node_activity *activity);

#endif
