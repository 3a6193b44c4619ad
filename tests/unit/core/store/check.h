/**
 * @file check.h
 * Reads a store back through its descriptor and compares it with the graph that was loaded.
 */
#ifndef DMG_TEST_CORE_STORE_CHECK_H
#define DMG_TEST_CORE_STORE_CHECK_H

#include "core/store/graph_store.h"

/** Ends the test, with the error's sentence printed, when the status is not DMG_OK. */
void dmg_test_require(dmg_status status);
/** The first `count` elements; freed by the caller. */
void *dmg_test_read_array(dmg_channel *channel, const dmg_range_array *array, uint64_t count);
/** Every list of every direction, segment by segment, the out-degrees and the ids are those of the graph. */
void dmg_test_store_check(dmg_channel *channel, const dmg_graph_store *store, const dmg_graph *graph);

#endif
