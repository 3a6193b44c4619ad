/**
 * @file graph_read.h
 * Reading a graph back out of the pool: its ids, to give vertices their names, or all of it, to compute on it without
 * the pool.
 */
#ifndef DMG_CORE_STORE_GRAPH_READ_H
#define DMG_CORE_STORE_GRAPH_READ_H

#include "core/store/graph_store.h"

/**
 * Make a graph of this process from a store that has been checked. Without lists, `out` and `in` stay empty; with them,
 * all that the store has is read, in blocks of DMG_STORE_BATCH_VERTICES with their reads in flight together. The counts
 * of loops and repeats, and the negative weights, are not known here. DMG_ERR_CORRUPT when lists contradict the
 * descriptor, or have destinations that are no vertices. Closed with dmg_graph_close.
 */
dmg_status dmg_graph_store_read(dmg_channel *channel, const dmg_graph_store *store, bool with_lists, dmg_graph *graph);

/** The smallest vertex with an arc out; vertex_count when there is none. */
dmg_status dmg_graph_store_first_source(dmg_channel *channel, const dmg_graph_store *store, uint64_t *vertex);

#endif
