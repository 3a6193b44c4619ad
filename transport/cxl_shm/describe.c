/*
 * What this machine offers to the cxl_shm backend.
 */
#include "core/base/error.h"
#include "core/base/huge_pages.h"
#include "core/base/topology.h"
#include "transport/cxl_shm/shm.h"

#include <dirent.h>
#include <inttypes.h>
#include <numa.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MEBIBYTE 20

typedef struct listing {
    dmg_transport_info *infos;
    size_t capacity;
    size_t count;
} listing;

/* The next line to fill in; the last one again when there is no more room. */
static dmg_transport_info *next_line(listing *lines, const char *device)
{
    if (lines->count < lines->capacity) {
        lines->count++;
    }
    dmg_transport_info *info = &lines->infos[lines->count - 1];
    *info = (dmg_transport_info){.flags = DMG_SHM_CAPABILITIES, .atomics = DMG_ATOMICS_CALLER_CPU};
    snprintf(info->backend, sizeof info->backend, DMG_SHM_BACKEND_NAME);
    snprintf(info->device, sizeof info->device, "%s", device);
    return info;
}

static void describe_hugepages(listing *lines, const char *device, uint64_t page_bytes)
{
    char path[128];
    dmg_huge_pages pages;
    dmg_transport_info *info = next_line(lines, device);
    if (!dmg_huge_pages_read(page_bytes, -1, &pages)) {
        snprintf(info->reason, sizeof info->reason, "the kernel has no pages of this size");
    } else if (pages.available == 0) {
        dmg_huge_pages_path(page_bytes, -1, "nr_hugepages", path, sizeof path);
        snprintf(info->reason, sizeof info->reason, "none are free; as root: echo COUNT > %s", path);
    } else {
        info->is_available = true;
        snprintf(info->reason, sizeof info->reason, "%" PRIu64 " pages are free; used when asked for", pages.available);
    }
}

static void describe_software_coherence(listing *lines)
{
    dmg_transport_info *info = next_line(lines, "coherence=none");
    const char *instructions = dmg_shm_flush_instructions();
    info->flags = DMG_SHM_CAPABILITIES_SOFTWARE;
    info->atomics = DMG_ATOMICS_MEMORY_NODE;
    info->is_available = instructions != NULL;
    snprintf(info->reason, sizeof info->reason, "%s%s",
             instructions ? instructions : "this processor has no instructions that write single lines back",
             instructions ? "; used when asked for, for memory that hosts do not keep coherent" : "");
}

static void describe_nodes(listing *lines)
{
    if (numa_available() < 0) {
        return;
    }
    for (int node = 0; node <= numa_max_node(); node++) {
        long long free_bytes;
        long long bytes = numa_node_size64(node, &free_bytes);
        bool has_cpus = dmg_topology_node_has_cpus(node);
        if (bytes <= 0 || (node == 0 && has_cpus)) {
            continue;
        }
        char device[32];
        snprintf(device, sizeof device, "NUMA node %d", node);
        dmg_transport_info *info = next_line(lines, device);
        info->is_available = numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned int)node);
        snprintf(info->reason, sizeof info->reason, "%lld MiB, %lld MiB free%s; %s", bytes >> MEBIBYTE,
                 free_bytes >> MEBIBYTE, has_cpus ? "" : ", no CPUs: CXL memory shows itself like this",
                 info->is_available ? "used when asked for" : "this process may not use it");
    }
}

static void describe_dax_devices(listing *lines)
{
    DIR *devices = opendir("/dev");
    if (!devices) {
        return;
    }
    for (struct dirent *entry = readdir(devices); entry; entry = readdir(devices)) {
        if (strncmp(entry->d_name, "dax", 3) != 0) {
            continue;
        }
        char device[48];
        snprintf(device, sizeof device, "/dev/%.40s", entry->d_name);
        dmg_transport_info *info = next_line(lines, device);
        info->is_available = access(device, R_OK | W_OK) == 0;
        snprintf(info->reason, sizeof info->reason, "%s",
                 info->is_available ? "used when it is named as the segment's path"
                                    : "this user may not read and write it");
    }
    closedir(devices);
}

dmg_status dmg_shm_describe(dmg_transport_info *infos, size_t capacity, size_t *count)
{
    listing lines = {.infos = infos, .capacity = capacity};
    *count = 0;
    if (capacity == 0) {
        return DMG_OK;
    }
    dmg_transport_info *memory = next_line(&lines, "shared memory");
    memory->is_available = true;
    memory->is_default = true;
    snprintf(memory->reason, sizeof memory->reason,
             "anonymous memory, mapped by all processes of the pool on this machine; gone with them");
    describe_software_coherence(&lines);
    describe_hugepages(&lines, "2 MiB hugepages", UINT64_C(2) << 20);
    describe_hugepages(&lines, "1 GiB hugepages", UINT64_C(1) << 30);
    describe_nodes(&lines);
    describe_dax_devices(&lines);
    *count = lines.count;
    return DMG_OK;
}
