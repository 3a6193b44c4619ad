/**
 * @file pool_fixture.h
 * A pool for tests: memory nodes served by threads of the test's process, and a client of them, over any transport.
 *
 * The nodes are threads, so that a test leaves nothing behind and sanitizers see both sides; what happens when a
 * process dies is tested elsewhere.
 */
#ifndef DMG_TEST_SUPPORT_POOL_FIXTURE_H
#define DMG_TEST_SUPPORT_POOL_FIXTURE_H

#include "core/pool/memory_node.h"
#include "core/pool/pool.h"

#include <pthread.h>

#define DMG_TEST_POOL_NODES_MAX 4

/** The transports that suites run over, ending with NULL. */
extern const char *const dmg_test_transports[];

typedef struct dmg_test_pool {
    uint32_t node_count;
    dmg_memory_node *nodes[DMG_TEST_POOL_NODES_MAX];
    pthread_t threads[DMG_TEST_POOL_NODES_MAX];
    const char *addresses[DMG_TEST_POOL_NODES_MAX];
    dmg_client_options options; /**< what `client` was opened with, for more clients */
    dmg_client *client;
    dmg_job job; /**< that `client` is in, so that it can have memory */
} dmg_test_pool;

/** The pass of all jobs of a test that does not say anything else. */
extern const dmg_job_pass dmg_test_pass;
/** The admin secret of all test pools. */
extern const uint8_t dmg_test_admin[DMG_SECRET_BYTES];

/** Start 1 to DMG_TEST_POOL_NODES_MAX nodes with a segment of so many bytes each, and open a client. On failure nothing
 * is left. */
dmg_status dmg_test_pool_start(const char *transport, uint32_t node_count, uint64_t segment_bytes, dmg_test_pool *pool);
/** The same with limits of what a job may have. */
dmg_status dmg_test_pool_start_limited(const char *transport, uint32_t node_count, uint64_t segment_bytes,
                                       const dmg_pool_limits *limits, dmg_test_pool *pool);
/** After another client took the place of `client`: have it in a job, too. */
dmg_status dmg_test_pool_join(dmg_test_pool *pool);
/** Close the client (its channels must be closed) and end the nodes. Does nothing on a zeroed or stopped pool. */
void dmg_test_pool_stop(dmg_test_pool *pool);

#endif
