#include "core/base/topology.h"

#include <numa.h>
#include <pthread.h>
#include <string.h>

/* libnuma keeps the CPUs of a node from the first call that asks for them on, and locks nothing: two engines of one
 * process that begin at the same time would be in it together. Whoever asks for CPUs of nodes does so here. */
static pthread_mutex_t libnuma = PTHREAD_MUTEX_INITIALIZER;

static int node_of_cpu(int cpu)
{
    int node = numa_available() < 0 ? 0 : numa_node_of_cpu(cpu);
    return node < 0 ? 0 : node;
}

uint32_t dmg_topology_usable_cpus(void)
{
    cpu_set_t allowed;
    int count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return count > 0 ? (uint32_t)count : 1;
}

bool dmg_topology_node_has_cpus(int node)
{
    struct bitmask *cpus = numa_available() < 0 ? NULL : numa_allocate_cpumask();
    if (!cpus) {
        return false;
    }
    pthread_mutex_lock(&libnuma);
    bool has_cpus = numa_node_to_cpus(node, cpus) == 0 && numa_bitmask_weight(cpus) > 0;
    pthread_mutex_unlock(&libnuma);
    numa_free_cpumask(cpus);
    return has_cpus;
}

static void list_cpus(const cpu_set_t *allowed, dmg_topology *topology)
{
    int least = -1;
    uint32_t found;
    do { /* the nodes by ascending number: those without a CPU of ours get none */
        int next = -1;
        found = 0;
        for (int cpu = 0; cpu < DMG_TOPOLOGY_CPUS_MAX; cpu++) {
            int node = CPU_ISSET(cpu, allowed) ? node_of_cpu(cpu) : -1;
            next = node > least && (next < 0 || node < next) ? node : next;
        }
        for (int cpu = 0; next >= 0 && cpu < DMG_TOPOLOGY_CPUS_MAX; cpu++) {
            if (CPU_ISSET(cpu, allowed) && node_of_cpu(cpu) == next) {
                topology->cpus[topology->cpu_count] = (uint16_t)cpu;
                topology->nodes[topology->cpu_count++] = (uint16_t)topology->node_count;
                found++;
            }
        }
        topology->node_count += found > 0;
        least = next;
    } while (found > 0);
}

void dmg_topology_read(dmg_topology *topology)
{
    cpu_set_t allowed;
    memset(topology, 0, sizeof *topology);
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
        pthread_mutex_lock(&libnuma);
        list_cpus(&allowed, topology);
        pthread_mutex_unlock(&libnuma);
    }
}

uint32_t dmg_topology_node_of_worker(const dmg_topology *topology, uint32_t worker)
{
    return worker % topology->node_count;
}

uint32_t dmg_topology_cpu_of_worker(const dmg_topology *topology, uint32_t worker)
{
    uint32_t node = dmg_topology_node_of_worker(topology, worker);
    uint32_t first = 0;
    while (topology->nodes[first] != node) {
        first++;
    }
    uint32_t count = 0;
    while (first + count < topology->cpu_count && topology->nodes[first + count] == node) {
        count++;
    }
    return topology->cpus[first + worker / topology->node_count % count];
}
