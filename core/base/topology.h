/**
 * @file topology.h
 * The CPUs that this process may use, by NUMA node (libnuma), and which of them a worker gets.
 *
 * Workers are dealt out to the nodes in turn, so that all nodes' memory channels and caches are used from the second
 * worker on; within a node they take one CPU after the other.
 */
#ifndef DMG_CORE_BASE_TOPOLOGY_H
#define DMG_CORE_BASE_TOPOLOGY_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#define DMG_TOPOLOGY_CPUS_MAX CPU_SETSIZE

typedef struct dmg_topology {
    uint32_t cpu_count;  /**< at least 1, but 0 when the machine did not tell */
    uint32_t node_count; /**< that have such CPUs */
    uint16_t cpus[DMG_TOPOLOGY_CPUS_MAX];
    uint16_t nodes[DMG_TOPOLOGY_CPUS_MAX]; /**< of each: 0 to node_count - 1, by ascending NUMA node */
} dmg_topology;

/** CPUs that the caller may use, at least 1. */
uint32_t dmg_topology_usable_cpus(void);

/** Whether a NUMA node has CPUs, of this process or not. False when the machine does not tell. Thread-safe. */
bool dmg_topology_node_has_cpus(int node);

/** What this machine and the caller's affinity say. A machine without NUMA has one node. Thread-safe. */
void dmg_topology_read(dmg_topology *topology);

/** The CPU of the worker, and its node. More workers than CPUs share them. The topology has CPUs. */
uint32_t dmg_topology_cpu_of_worker(const dmg_topology *topology, uint32_t worker);
uint32_t dmg_topology_node_of_worker(const dmg_topology *topology, uint32_t worker);

#endif
