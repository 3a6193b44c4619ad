#include "unit/support/pool_fixture.h"

#include "unit/support/deadline.h"

#include "core/arena/jemalloc_arena.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** Sanitizers on a busy machine are slow; no test of this fixture waits for a death. */
#define PEER_TIMEOUT_NS dmg_test_deadline_ns(60)

const char *const dmg_test_transports[] = {"cxl_shm", "cxl_shm:coherence=none", "ucx", "ucx:data=message", NULL};

const dmg_job_pass dmg_test_pass = {.secret = {1},
                                    .owner = {.identity = {2}, .user = 3, .user_name = "tester", .host = "here"}};
const uint8_t dmg_test_admin[DMG_SECRET_BYTES] = {4, 5, 6};

static void *serve(void *context)
{
    dmg_memory_node_serve(context);
    return NULL;
}

static dmg_status start_node(const char *transport, uint16_t node, uint64_t segment_bytes,
                             const dmg_pool_limits *limits, dmg_test_pool *pool)
{
    dmg_memory_node_options options = {
        .transport = transport,
        .node = node,
        .segment = {.bytes = segment_bytes, .numa_node = -1},
        .peer_timeout_ns = PEER_TIMEOUT_NS,
        .token = {1, 2, 3},
        .limits = *limits,
        .arena = &dmg_jemalloc_arena,
    };
    memcpy(options.admin, dmg_test_admin, sizeof options.admin);
    dmg_status status = dmg_memory_node_create(&options, &pool->nodes[node]);
    if (status != DMG_OK) {
        return status;
    }
    int error = pthread_create(&pool->threads[node], NULL, serve, pool->nodes[node]);
    if (error != 0) {
        dmg_memory_node_destroy(pool->nodes[node]);
        return dmg_error_errno(DMG_ERR_MEMORY, error, "starting the thread of memory node %u", node);
    }
    pool->addresses[node] = dmg_memory_node_address(pool->nodes[node]);
    pool->node_count = node + 1u;
    return DMG_OK;
}

dmg_status dmg_test_pool_join(dmg_test_pool *pool)
{
    dmg_channel *channel;
    char name[DMG_JOB_NAME_BYTES];
    snprintf(name, sizeof name, "fixture/%016" PRIx64, dmg_client_id(pool->client));
    dmg_status status = dmg_channel_open(pool->client, &channel);
    if (status == DMG_OK) {
        status = dmg_job_join(channel, &dmg_test_pass, name, 0, 1, &pool->job);
        dmg_channel_close(channel);
    }
    return status;
}

dmg_status dmg_test_pool_start(const char *transport, uint32_t node_count, uint64_t segment_bytes, dmg_test_pool *pool)
{
    return dmg_test_pool_start_limited(transport, node_count, segment_bytes, &(dmg_pool_limits){0}, pool);
}

dmg_status dmg_test_pool_start_limited(const char *transport, uint32_t node_count, uint64_t segment_bytes,
                                       const dmg_pool_limits *limits, dmg_test_pool *pool)
{
    memset(pool, 0, sizeof *pool);
    if (node_count < 1 || node_count > DMG_TEST_POOL_NODES_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "a test pool of %u nodes", node_count);
    }
    dmg_status status = DMG_OK;
    for (uint16_t node = 0; node < node_count && status == DMG_OK; node++) {
        status = start_node(transport, node, segment_bytes, limits, pool);
    }
    if (status == DMG_OK) {
        pool->options = (dmg_client_options){
            .transport = transport,
            .addresses = pool->addresses,
            .address_count = node_count,
            .peer_timeout_ns = PEER_TIMEOUT_NS,
            .token = {1, 2, 3},
        };
        status = dmg_client_open(&pool->options, &pool->client);
        if (status == DMG_OK) {
            status = dmg_test_pool_join(pool);
        } else {
            pool->client = NULL;
        }
    }
    if (status != DMG_OK) {
        dmg_test_pool_stop(pool);
    }
    return status;
}

void dmg_test_pool_stop(dmg_test_pool *pool)
{
    dmg_client_close(pool->client);
    for (uint32_t node = 0; node < pool->node_count; node++) {
        dmg_memory_node_stop(pool->nodes[node]);
        pthread_join(pool->threads[node], NULL);
        dmg_memory_node_destroy(pool->nodes[node]);
    }
    memset(pool, 0, sizeof *pool);
}
