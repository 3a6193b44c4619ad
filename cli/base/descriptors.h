/**
 * @file descriptors.h
 * File descriptors: how many the processes of a run, a pool or a measurement will have open at once, so that a limit
 * that is too low is said before any of them starts. Later it would show as a connection that fails.
 */
#ifndef DMG_CLI_BASE_DESCRIPTORS_H
#define DMG_CLI_BASE_DESCRIPTORS_H

#include "dmgraph/status.h"

#include <stdbool.h>
#include <stdint.h>

/** Beside its workers' channels a compute node has one to begin with, and that of its leases; a client that reads and
 * waits has no more than these. */
#define DMG_CLIENT_OTHER_CHANNELS 2

/** Who is there. */
typedef struct dmg_descriptor_users {
    const char *transport;
    uint32_t memory_nodes;
    uint32_t started_memory_nodes; /**< memory nodes that this program starts: all or none */
    uint32_t compute_nodes;
    uint32_t compute_node_channels; /**< of each compute node, with its lease's */
    uint32_t own_channels;          /**< of this program */
    const char *remedy;             /**< what else helps than a higher limit: "take fewer --threads" */
} dmg_descriptor_users;

/**
 * Whether the limit of this process, which those that it starts inherit, suffices for it and for each of them. Call it
 * before they are started. DMG_ERR_LIMIT names the one that needs most, and how many; and as
 * dmg_transport_count_descriptors. Thread-safe.
 */
dmg_status dmg_descriptors_check(const dmg_descriptor_users *users);

/** The same for a run, or for a load into a pool. */
dmg_status dmg_descriptors_check_run(const char *transport, uint32_t memory_nodes, bool is_in_pool,
                                     uint32_t compute_nodes, uint32_t threads);

/** How many descriptors a memory node has to have left for so many more channels, with some to spare. */
dmg_status dmg_descriptors_of_channels(const char *transport, uint64_t channels, uint64_t *needed);

#endif
