/**
 * @file memory_node.h
 * A memory node: a segment, and one thread that serves it: memory, the catalog, jobs with barriers.
 *
 * The segment's memory is handed out by an allocator (segment_allocator.h). Node 0 also keeps the catalog
 * and the jobs.
 */
#ifndef DMG_CORE_POOL_MEMORY_NODE_H
#define DMG_CORE_POOL_MEMORY_NODE_H

#include "core/pool/rights.h"
#include "core/pool/segment_arena.h"

typedef struct dmg_memory_node dmg_memory_node;

typedef struct dmg_memory_node_options {
    const char *transport;
    const char *bind;
    uint16_t node;
    dmg_segment_options segment;
    uint64_t peer_timeout_ns;
    uint8_t token[DMG_TOKEN_BYTES];
    /** A secret that all memory nodes of a pool have, and that nobody needs who works on it: whoever knows it may do
     * everything there. */
    uint8_t admin[DMG_SECRET_BYTES];
    dmg_pool_limits limits;
    const dmg_segment_arena_operations *arena; /**< for small extents; NULL: they are taken from the pages */
} dmg_memory_node_options;

dmg_status dmg_memory_node_create(const dmg_memory_node_options *options, dmg_memory_node **node);
/** NULL is allowed. */
void dmg_memory_node_destroy(dmg_memory_node *node);
const char *dmg_memory_node_address(const dmg_memory_node *node);
/** What its segment got of what was asked for. */
dmg_placement dmg_memory_node_placement(const dmg_memory_node *node);
/** dmg_server_has_files. */
bool dmg_memory_node_has_files(const dmg_memory_node *node);
/** Serve in the calling thread until dmg_memory_node_stop. */
dmg_status dmg_memory_node_serve(dmg_memory_node *node);
/** Thread-safe and async-signal-safe. */
void dmg_memory_node_stop(dmg_memory_node *node);
/** Bytes of the segment that are allocated now, and the most there ever were. Call after serve has returned, or from
 * its thread. */
void dmg_memory_node_usage(const dmg_memory_node *node, uint64_t *allocated_bytes, uint64_t *peak_bytes);

#endif
