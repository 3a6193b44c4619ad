/**
 * @file pool_watch.h
 * What one compute node (rank 0) finds out about the pool for the report of a run: how long partitioning takes, and
 * what the memory nodes did while the graph was loaded and while the algorithm ran.
 *
 * A memory node counts for all its clients, so in a long-lived pool the differences hold what other jobs asked of it in
 * the meantime, too.
 */
#ifndef DMG_CLI_REPORT_POOL_WATCH_H
#define DMG_CLI_REPORT_POOL_WATCH_H

#include "cli/report/pool.h"
#include "core/store/graph_store.h"

typedef struct dmg_pool_watch {
    dmg_channel *channel; /**< NULL: this rank does not watch, and nothing here does anything */
    uint32_t node_count;
    dmg_node_activity start[DMG_MEMORY_NODES_MAX];
    dmg_node_activity loaded[DMG_MEMORY_NODES_MAX];
    dmg_pool_report report; /**< as far as it is known */
} dmg_pool_watch;

/** Begin, before the graph is loaded into the store. Cuts the graph anew, to say how long that takes. */
dmg_status dmg_pool_watch_begin(dmg_pool_watch *watch, dmg_channel *channel, const dmg_graph_store *store);
/** All have loaded. */
dmg_status dmg_pool_watch_loaded(dmg_pool_watch *watch);
/** All have run. `report` stays as it is on a rank that does not watch. */
dmg_status dmg_pool_watch_end(dmg_pool_watch *watch, dmg_pool_report *report);

#endif
