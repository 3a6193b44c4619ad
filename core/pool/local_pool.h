/**
 * @file local_pool.h
 * Memory nodes that threads of this process serve.
 */
#ifndef DMG_CORE_POOL_LOCAL_POOL_H
#define DMG_CORE_POOL_LOCAL_POOL_H

#include "core/pool/memory_node.h"

typedef struct dmg_local_pool dmg_local_pool;

typedef struct dmg_local_pool_options {
    const char *transport;
    uint32_t node_count;    /**< at least 1 */
    uint64_t segment_bytes; /**< of each node */
    uint64_t peer_timeout_ns;
    uint8_t token[DMG_TOKEN_BYTES];
} dmg_local_pool_options;

/** Start the nodes, each with a thread. Stop with dmg_local_pool_stop; `*pool` is NULL on failure, and nothing is left
 * running. */
dmg_status dmg_local_pool_start(const dmg_local_pool_options *options, dmg_local_pool **pool);
/** End the threads, and the nodes with all that is in them. Clients are closed before. NULL is allowed. */
void dmg_local_pool_stop(dmg_local_pool *pool);
/** The nodes' addresses, in their order; owned by the pool. */
const char *const *dmg_local_pool_addresses(const dmg_local_pool *pool);
uint32_t dmg_local_pool_node_count(const dmg_local_pool *pool);

#endif
