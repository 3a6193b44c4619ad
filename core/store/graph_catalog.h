/**
 * @file graph_catalog.h
 * Graphs that stay in a pool: loaded once, found by name, used by many runs.
 *
 *     graph/NAME       the graph's entry: it belongs to the pool
 *     use/NAME/JOB     somebody works on the graph: it belongs to that job, and goes with it, however it ends
 *     loading/NAME     the name is taken by a load that has not ended: it belongs to a job of the loader
 *
 * A graph is loaded within a job, so that a load that fails leaves nothing. Its memory is then *kept* (dmg_pool_keep)
 * on every node, and at last the entry is put, in one step: this is the moment from which the graph exists. Who dies in
 * between leaves memory that is kept and that no entry names; dmg_graph_sweep frees it.
 */
#ifndef DMG_CORE_STORE_GRAPH_CATALOG_H
#define DMG_CORE_STORE_GRAPH_CATALOG_H

#include "core/store/graph_store.h"

#include <assert.h>

/** Letters, digits, '.', '_' and '-', with the terminating zero. */
#define DMG_GRAPH_NAME_BYTES 33
/** Of a file's name, as far as it is told; with the terminating zero. */
#define DMG_GRAPH_SOURCE_BYTES 256

/** What the catalog says about a graph. Plain data. */
typedef struct dmg_graph_entry {
    dmg_graph_store store;
    uint64_t job;        /**< whose extents hold the graph */
    uint64_t pool_bytes; /**< over all nodes */
    uint64_t loop_arcs;
    uint64_t repeated_arcs;
    uint64_t loaded_s;      /**< CLOCK_REALTIME */
    uint64_t negative_line; /**< as in dmg_graph */
    char negative_source[DMG_GRAPH_SOURCE_BYTES];
    char source[DMG_GRAPH_SOURCE_BYTES]; /**< the file that it came from */
} dmg_graph_entry;

static_assert(sizeof(dmg_graph_entry) <= DMG_CATALOG_VALUE_BYTES, "an entry fits into the catalog");

/** DMG_ERR_ARGUMENT for what cannot be a graph's name. */
dmg_status dmg_graph_name_check(const char *name);

/** Where the ranks of a job find the descriptor of a store that they are making. */
void dmg_graph_job_store_name(uint64_t job, char name[DMG_CATALOG_NAME_BYTES]);

/** Take the name for a load, until `job` ends. DMG_ERR_EXISTS when there is such a graph, or another load has the name.
 */
dmg_status dmg_graph_reserve(dmg_channel *channel, uint64_t job, const char *name);

/**
 * Make a loaded graph stay: keep the extents of `entry->job`, which this client is attached to, and put the entry.
 * Fills in pool_bytes. After an error there is no graph; what of its memory is kept already is left to dmg_graph_sweep.
 */
dmg_status dmg_graph_publish(dmg_channel *channel, const char *name, dmg_graph_entry *entry);

/** Look a graph up. DMG_ERR_NOT_FOUND; DMG_ERR_CORRUPT when the entry contradicts itself or the pool. */
dmg_status dmg_graph_look_up(dmg_channel *channel, const char *name, dmg_graph_entry *entry);

/** The same, and keep it from being unloaded until `job`, which this client is in, ends. */
dmg_status dmg_graph_use(dmg_channel *channel, uint64_t job, const char *name, dmg_graph_entry *entry);

/** Replace `name` ("" at the start) by the next graph's, in the order of bytes; "" at the end. */
dmg_status dmg_graph_next(dmg_channel *channel, char name[DMG_GRAPH_NAME_BYTES]);

/** Who loaded the graph, as the pool knows it. */
dmg_status dmg_graph_owner(dmg_channel *channel, const dmg_graph_entry *entry, dmg_pool_owner *owner);

/** Remove a graph and free its memory. DMG_ERR_EXISTS while it is used; DMG_ERR_DENIED, naming the owner, when it is
 * another identity's and this client is no admin. `*bytes` is what was freed. */
dmg_status dmg_graph_unload(dmg_channel *channel, const char *name, uint64_t *bytes);

/** Free memory that loads of this client's identity (for an admin: any) have left behind which died at the wrong
 * moment. Safe at any time. `*bytes` (may be NULL) is what was freed. */
dmg_status dmg_graph_sweep(dmg_channel *channel, uint64_t *bytes);

#endif
