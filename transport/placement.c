#include "transport/placement.h"

#include "core/base/error.h"
#include "core/base/huge_pages.h"
#include "core/base/log.h"
#include "core/base/populate.h"

#include <errno.h>
#include <inttypes.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NODES_MAX     DMG_PLACEMENT_NODES_MAX
#define BITS_PER_WORD (8 * sizeof(unsigned long))
/* Pages that are asked where they lie: a wrong policy shows in all of them, a full node in many. */
#define PAGES_ASKED 64

uint64_t dmg_page_size_bytes(dmg_page_size page_size)
{
    switch (page_size) {
    case DMG_PAGE_DEFAULT:
        break;
    case DMG_PAGE_2M:
        return UINT64_C(2) << 20;
    case DMG_PAGE_1G:
        return UINT64_C(1) << 30;
    }
    return 0;
}

dmg_status dmg_placement_lack(const dmg_segment_options *options, dmg_status status)
{
    if (status != DMG_OK && options->allow_fallback) {
        dmg_log(DMG_LOG_WARNING, "fallback", "why=\"%s\"", dmg_error_message());
        return DMG_OK;
    }
    return status;
}

/* ---- NUMA nodes ---- */

/* "0 to 3" or "0, 2": those with memory that this process may use. */
static void list_nodes(char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (int node = 0; node <= numa_max_node(); node++) {
        if (numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned int)node) && used < capacity) {
            int length = snprintf(text + used, capacity - used, "%s%d", used ? ", " : "", node);
            used += length > 0 ? (size_t)length : 0;
        }
    }
}

dmg_status dmg_placement_check_node(const dmg_segment_options *options)
{
    int node = options->numa_node;
    if (node < 0) {
        return DMG_OK;
    }
    if (numa_available() < 0) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "a segment on NUMA node %d: this kernel has no NUMA support", node);
    }
    if (node >= NODES_MAX || node > numa_max_node() || !numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned int)node)) {
        char nodes[128];
        list_nodes(nodes, sizeof nodes);
        return dmg_error(
            DMG_ERR_UNSUPPORTED,
            "a segment on NUMA node %d: there is no such node with memory that this process may use; there "
            "is %s (`numactl --hardware` lists them)",
            node, nodes);
    }
    return DMG_OK;
}

static void set_bit(unsigned long *mask, int node)
{
    mask[(size_t)node / BITS_PER_WORD] |= 1UL << ((size_t)node % BITS_PER_WORD);
}

static bool has_bit(const unsigned long *mask, int node)
{
    return mask[(size_t)node / BITS_PER_WORD] >> ((size_t)node % BITS_PER_WORD) & 1;
}

static dmg_status bind_to_node(int node, void *start, uint64_t bytes)
{
    unsigned long mask[NODES_MAX / BITS_PER_WORD] = {0};
    set_bit(mask, node);
    if (mbind(start, bytes, MPOL_BIND, mask, NODES_MAX, MPOL_MF_MOVE | MPOL_MF_STRICT) != 0) {
        return dmg_error_errno(DMG_ERR_UNSUPPORTED, errno, "binding a segment of %" PRIu64 " bytes to NUMA node %d",
                               bytes, node);
    }
    return DMG_OK;
}

dmg_status dmg_placement_bind(const dmg_segment_options *options, void *start, uint64_t bytes)
{
    if (options->numa_node < 0) {
        return DMG_OK;
    }
    dmg_status status = dmg_placement_check_node(options);
    if (status == DMG_OK) {
        status = bind_to_node(options->numa_node, start, bytes);
    }
    return dmg_placement_lack(options, status);
}

void dmg_placement_enter(const dmg_segment_options *options, dmg_placement_policy *before)
{
    *before = (dmg_placement_policy){0};
    if (options->numa_node < 0 || dmg_placement_check_node(options) != DMG_OK) {
        return;
    }
    unsigned long mask[NODES_MAX / BITS_PER_WORD] = {0};
    set_bit(mask, options->numa_node);
    before->is_changed = get_mempolicy(&before->mode, before->nodes, NODES_MAX, NULL, 0) == 0 &&
                         set_mempolicy(MPOL_BIND, mask, NODES_MAX) == 0;
}

void dmg_placement_leave(const dmg_placement_policy *before)
{
    if (before->is_changed) {
        /* A policy without nodes is given none. */
        bool has_nodes = false;
        for (int node = 0; node < NODES_MAX; node++) {
            has_nodes = has_nodes || has_bit(before->nodes, node);
        }
        (void)set_mempolicy(before->mode, has_nodes ? before->nodes : NULL, has_nodes ? NODES_MAX : 0);
    }
}

dmg_status dmg_placement_check_device(const dmg_segment_options *options, const char *path, int device_node)
{
    if (options->numa_node < 0 || options->numa_node == device_node) {
        return DMG_OK;
    }
    char where[48] = "the system does not say on which";
    if (device_node >= 0) {
        snprintf(where, sizeof where, "it lies on node %d", device_node);
    }
    return dmg_placement_lack(options, dmg_error(DMG_ERR_UNSUPPORTED,
                                                 "a segment on NUMA node %d: the memory of %s lies where the device "
                                                 "is, and %s: leave out --numa-node",
                                                 options->numa_node, path, where));
}

/* The node that the kernel binds this address to, or -1. */
static int bound_node(void *start)
{
    unsigned long mask[NODES_MAX / BITS_PER_WORD] = {0};
    int mode = MPOL_DEFAULT;
    int found = -1;
    if (get_mempolicy(&mode, mask, NODES_MAX, start, MPOL_F_ADDR) != 0 || mode != MPOL_BIND) {
        return -1;
    }
    for (int node = 0; node < NODES_MAX; node++) {
        if (has_bit(mask, node)) {
            if (found >= 0) {
                return -1;
            }
            found = node;
        }
    }
    return found;
}

/* Where pages of the segment lie: how many of those asked are on another node than `node`, and one of these. */
static uint32_t count_strays(char *start, uint64_t bytes, int node, int *stray)
{
    void *pages[PAGES_ASKED];
    int nodes[PAGES_ASKED];
    uint64_t step = bytes / PAGES_ASKED;
    uint32_t strays = 0;
    for (uint64_t page = 0; page < PAGES_ASKED; page++) {
        pages[page] = start + page * step;
        (void)*(volatile char *)pages[page]; /* there, but perhaps not yet in this process's tables */
        nodes[page] = -1;
    }
    if (move_pages(0, PAGES_ASKED, pages, NULL, nodes, 0) != 0) {
        return 0;
    }
    for (uint32_t page = 0; page < PAGES_ASKED; page++) {
        if (nodes[page] >= 0 && nodes[page] != node) {
            *stray = nodes[page];
            strays++;
        }
    }
    return strays;
}

/* ---- pages ---- */

/* The smallest pages of the mappings that make up the span; 0 when the kernel does not tell. */
static uint64_t page_bytes_of(const void *start, uint64_t bytes)
{
    uintptr_t first = (uintptr_t)start;
    uintptr_t end = first + bytes;
    uint64_t least = 0;
    bool is_inside = false;
    char line[512];
    FILE *file = fopen("/proc/self/smaps", "re");
    while (file && fgets(line, sizeof line, file)) {
        uintptr_t from, to;
        uint64_t kib;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
            if (from >= end) {
                break;
            }
            is_inside = to > first;
        } else if (is_inside && sscanf(line, "KernelPageSize: %" SCNu64 " kB", &kib) == 1) {
            least = least == 0 || kib << 10 < least ? kib << 10 : least;
        }
    }
    if (file) {
        fclose(file);
    }
    return least;
}

dmg_status dmg_placement_check_pages(const dmg_segment_options *options, const void *start, uint64_t bytes,
                                     dmg_placement *placement)
{
    uint64_t wanted = dmg_page_size_bytes(options->page_size);
    placement->bytes = bytes;
    placement->page_bytes = page_bytes_of(start, bytes);
    if (wanted == 0 || placement->page_bytes == wanted) {
        return DMG_OK;
    }
    char what[128] = "the memory that there is";
    if (options->path) {
        snprintf(what, sizeof what, "%s", options->path);
    }
    return dmg_placement_lack(
        options, dmg_error(DMG_ERR_UNSUPPORTED,
                           "a segment in pages of %" PRIu64 " KiB: %s has pages of %" PRIu64
                           " KiB: `dmgraph info transports` says how many huge pages are free, and how to get more",
                           wanted >> 10, what, placement->page_bytes >> 10));
}

dmg_status dmg_placement_finish(const dmg_segment_options *options, void *start, uint64_t bytes, bool is_populated,
                                dmg_placement *placement)
{
    dmg_status status = DMG_OK;
    if (options->prefault && !is_populated) {
        status = dmg_populate(start, bytes, false, options->populated_bytes);
    }
    if (status != DMG_OK) {
        return status;
    }
    placement->is_populated = is_populated || options->prefault;
    placement->numa_node = bound_node(start);
    if (placement->numa_node >= 0 && placement->is_populated) {
        int stray = -1;
        uint32_t strays = count_strays(start, bytes, placement->numa_node, &stray);
        if (strays > 0) {
            status = dmg_placement_lack(
                options, dmg_error(DMG_ERR_MEMORY,
                                   "a segment on NUMA node %d: of %d pages %" PRIu32
                                   " lie elsewhere, on node %d for example: is the node full (`numactl --hardware`)?",
                                   placement->numa_node, PAGES_ASKED, strays, stray));
            placement->numa_node = -1;
        }
    }
    return status;
}
