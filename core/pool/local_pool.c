#include "core/pool/local_pool.h"

#include "core/base/error.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef struct local_node {
    dmg_memory_node *node;
    pthread_t thread;
} local_node;

struct dmg_local_pool {
    uint32_t node_count; /* that run */
    local_node *nodes;
    const char **addresses;
    uint8_t admin[DMG_SECRET_BYTES];
};

static void *serve(void *context)
{
    /* An error ends the node's service, which its clients notice. */
    (void)dmg_memory_node_serve(context);
    return NULL;
}

/* The threads are the library's: the program's signals are for its own. */
static int start_thread(local_node *started)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&started->thread, NULL, serve, started->node);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static dmg_status start_node(const dmg_local_pool_options *options, dmg_local_pool *pool)
{
    local_node *started = &pool->nodes[pool->node_count];
    dmg_memory_node_options node_options = {
        .transport = options->transport,
        .node = (uint16_t)pool->node_count,
        .segment = {.bytes = options->segment_bytes, .numa_node = -1},
        .peer_timeout_ns = options->peer_timeout_ns,
    };
    memcpy(node_options.token, options->token, sizeof node_options.token);
    memcpy(node_options.admin, pool->admin, sizeof node_options.admin);
    dmg_status status = dmg_memory_node_create(&node_options, &started->node);
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "starting memory node %u in this process", pool->node_count);
    }
    int error = start_thread(started);
    if (error != 0) {
        dmg_memory_node_destroy(started->node);
        return dmg_error_errno(DMG_ERR_MEMORY, error, "starting the thread of memory node %u", pool->node_count);
    }
    pool->addresses[pool->node_count++] = dmg_memory_node_address(started->node);
    return DMG_OK;
}

/* All of them, before the first takes what the last will lack. */
static dmg_status check_room(const dmg_local_pool_options *options)
{
    dmg_server_options *nodes = calloc(options->node_count, sizeof *nodes);
    if (!nodes) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for %u memory nodes", options->node_count);
    }
    for (uint32_t node = 0; node < options->node_count; node++) {
        nodes[node] = (dmg_server_options){.transport = options->transport,
                                           .node = (uint16_t)node,
                                           .segment = {.bytes = options->segment_bytes, .numa_node = -1}};
    }
    dmg_status status = dmg_server_check_room(nodes, options->node_count);
    free(nodes);
    return status;
}

dmg_status dmg_local_pool_start(const dmg_local_pool_options *options, dmg_local_pool **pool)
{
    *pool = NULL;
    dmg_local_pool *started = calloc(1, sizeof *started);
    if (started) {
        started->nodes = calloc(options->node_count, sizeof *started->nodes);
        started->addresses = calloc(options->node_count, sizeof *started->addresses);
    }
    dmg_status status = DMG_OK;
    if (!started || !started->nodes || !started->addresses) {
        status = dmg_error(DMG_ERR_MEMORY, "no memory for %u memory nodes", options->node_count);
    }
    if (status == DMG_OK) {
        status = dmg_secret_make(started->admin);
    }
    if (status == DMG_OK) {
        status = check_room(options);
    }
    while (status == DMG_OK && started->node_count < options->node_count) {
        status = start_node(options, started);
    }
    if (status != DMG_OK) {
        dmg_local_pool_stop(started);
        return status;
    }
    *pool = started;
    return DMG_OK;
}

void dmg_local_pool_stop(dmg_local_pool *pool)
{
    if (!pool) {
        return;
    }
    for (uint32_t index = 0; index < pool->node_count; index++) {
        dmg_memory_node_stop(pool->nodes[index].node);
        pthread_join(pool->nodes[index].thread, NULL);
        dmg_memory_node_destroy(pool->nodes[index].node);
    }
    free(pool->addresses);
    free(pool->nodes);
    free(pool);
}

const char *const *dmg_local_pool_addresses(const dmg_local_pool *pool)
{
    return pool->addresses;
}

uint32_t dmg_local_pool_node_count(const dmg_local_pool *pool)
{
    return pool->node_count;
}
