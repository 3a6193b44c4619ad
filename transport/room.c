/*
 * Before memory nodes are started: whether this machine has what all of their segments take at once. A segment that is
 * too large for a file system, for its huge pages or for the memory is noticed much later otherwise, by a signal that
 * ends its process; and of several nodes each would find room, and all of them together none.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/huge_pages.h"
#include "core/base/memory_room.h"
#include "transport/core.h"
#include "transport/placement.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define MIB (1024.0 * 1024.0)

typedef struct room_check {
    const dmg_server_options *nodes;
    uint32_t count;
    dmg_segment_demand *demands;
} room_check;

/* "the segment of a memory node takes", "the segments of 3 memory nodes take together" */
static const char *subject(uint32_t count, char text[64])
{
    if (count == 1) {
        return "the segment of a memory node takes";
    }
    snprintf(text, 64, "the segments of %" PRIu32 " memory nodes take together", count);
    return text;
}

static const char *remedy_of(const room_check *check)
{
    return check->demands[0].remedy ? check->demands[0].remedy : "ask for less with --memory";
}

/* ---- address space: of each process ---- */

static dmg_status check_address_space(const room_check *check)
{
    uint64_t limit;
    uint64_t left = dmg_address_space_left(&limit);
    for (uint32_t i = 0; i < check->count; i++) {
        uint64_t wanted = check->demands[i].mapped_bytes;
        if (wanted > left) {
            return dmg_error(DMG_ERR_MEMORY,
                             "a segment of %.1f MiB: of its address space, which is limited to %.1f MiB, a process has "
                             "%.1f MiB left: ask for less with --memory, or raise the limit (`ulimit -v`)",
                             (double)check->nodes[i].segment.bytes / MIB, (double)limit / MIB, (double)left / MIB);
        }
    }
    return DMG_OK;
}

/* A file that grows beyond the limit ends its process by a signal. */
static dmg_status check_file_sizes(const room_check *check)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return DMG_OK;
    }
    for (uint32_t i = 0; i < check->count; i++) {
        if (check->demands[i].file_of_bytes > limit.rlim_cur) {
            return dmg_error(
                DMG_ERR_MEMORY,
                "a segment of %.1f MiB: files of this process, shared memory too, are limited to %.3g MiB: "
                "ask for less with --memory, or raise the limit (`ulimit -f`)",
                (double)check->nodes[i].segment.bytes / MIB, (double)limit.rlim_cur / MIB);
        }
    }
    return DMG_OK;
}

/* ---- memory ---- */

static dmg_status compare_memory(const room_check *check, uint32_t count, uint64_t wanted, const dmg_memory_room *room)
{
    char text[64];
    if (wanted <= room->available_bytes) {
        return DMG_OK;
    }
    return dmg_error(DMG_ERR_MEMORY, "%s %.1f MiB of memory at once, and %s has %.1f MiB left: %s",
                     subject(count, text), (double)wanted / MIB, room->limiter, (double)room->available_bytes / MIB,
                     remedy_of(check));
}

/* What is promised to all of them may be more than is there now, since it is taken as it is used; but not more than
 * there is at all, or a graph that fits into the pool ends a process. */
static dmg_status compare_promises(const room_check *check, uint32_t count, uint64_t promised,
                                   const dmg_memory_room *room)
{
    char text[64];
    if (promised <= room->total_bytes) {
        return DMG_OK;
    }
    return dmg_error(DMG_ERR_MEMORY, "%s up to %.1f MiB of memory, and %s has %.1f MiB in all: %s",
                     subject(count, text), (double)promised / MIB, room->total_limiter, (double)room->total_bytes / MIB,
                     remedy_of(check));
}

static dmg_status compare_both(const room_check *check, uint64_t wanted, uint64_t promised, const dmg_memory_room *room)
{
    dmg_status status = compare_memory(check, check->count, wanted, room);
    return status == DMG_OK ? compare_promises(check, check->count, promised, room) : status;
}

static dmg_status check_memory(const room_check *check)
{
    dmg_memory_room room;
    uint64_t wanted = 0, promised = 0;
    for (uint32_t i = 0; i < check->count; i++) {
        const dmg_segment_demand *demand = &check->demands[i];
        wanted = dmg_checked_add(wanted, demand->populated_bytes, &wanted) ? wanted : UINT64_MAX;
        promised = dmg_checked_add(promised, demand->promised_bytes, &promised) ? promised : UINT64_MAX;
    }
    promised = dmg_checked_add(promised, wanted, &promised) ? promised : UINT64_MAX;
    if (promised == 0) {
        return DMG_OK;
    }
    dmg_memory_room_read("", &room);
    dmg_status status = compare_both(check, wanted, promised, &room);
    int numa_node = check->nodes[0].segment.numa_node;
    if (status == DMG_OK && numa_node >= 0) { /* the same for all */
        dmg_memory_room_read_node("", numa_node, &room);
        status = compare_both(check, wanted, promised, &room);
    }
    return status;
}

/* ---- file systems ---- */

/* Demands of the same file system as `of`, from this one on; none when an earlier one has counted them. */
static uint64_t sum_in_file_system(const room_check *check, uint32_t of, dev_t device, uint32_t *sharers)
{
    uint64_t sum = 0;
    *sharers = 0;
    for (uint32_t i = 0; i < check->count; i++) {
        struct stat about;
        const dmg_segment_demand *demand = &check->demands[i];
        if (demand->file_bytes > 0 && stat(demand->folder, &about) == 0 && about.st_dev == device) {
            if (i < of) {
                return 0;
            }
            sum = dmg_checked_add(sum, demand->file_bytes, &sum) ? sum : UINT64_MAX;
            (*sharers)++;
        }
    }
    return sum;
}

static dmg_status check_file_systems(const room_check *check)
{
    for (uint32_t i = 0; i < check->count; i++) {
        const dmg_segment_demand *demand = &check->demands[i];
        struct stat about;
        struct statfs system;
        if (demand->file_bytes == 0 || stat(demand->folder, &about) != 0 || statfs(demand->folder, &system) != 0 ||
            system.f_blocks == 0 /* no limit of its own */) {
            continue;
        }
        uint32_t sharers;
        uint64_t wanted = sum_in_file_system(check, i, about.st_dev, &sharers);
        uint64_t free_bytes = (uint64_t)system.f_bavail * (uint64_t)system.f_bsize;
        if (wanted > free_bytes) {
            char text[64];
            return dmg_error(
                DMG_ERR_MEMORY,
                "%s %.1f MiB in %s, which has %.1f MiB left: make it larger (`mount -o remount,size=`), or "
                "%s",
                subject(sharers, text), (double)wanted / MIB, demand->folder, (double)free_bytes / MIB,
                remedy_of(check));
        }
    }
    return DMG_OK;
}

/* ---- huge pages ---- */

static dmg_status check_huge_pages(const room_check *check)
{
    uint64_t page_bytes = 0, wanted = 0;
    for (uint32_t i = 0; i < check->count; i++) {
        page_bytes = check->demands[i].huge_pages > 0 ? check->demands[i].huge_page_bytes : page_bytes;
        wanted = dmg_checked_add(wanted, check->demands[i].huge_pages, &wanted) ? wanted : UINT64_MAX;
    }
    if (wanted == 0) {
        return DMG_OK;
    }
    char text[64], path[160], where[48] = "this machine";
    dmg_huge_pages pages;
    int numa_node = check->nodes[0].segment.numa_node;
    if (numa_node >= 0) {
        snprintf(where, sizeof where, "NUMA node %d", numa_node);
    }
    if (!dmg_huge_pages_read(page_bytes, numa_node, &pages)) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "%s %" PRIu64 " huge pages of %" PRIu64 " KiB: %s has none of that size",
                         subject(check->count, text), wanted, page_bytes >> 10, where);
    }
    if (wanted <= pages.available) {
        return DMG_OK;
    }
    dmg_huge_pages_path(page_bytes, numa_node, "nr_hugepages", path, sizeof path);
    return dmg_error(DMG_ERR_MEMORY,
                     "%s %" PRIu64 " huge pages of %" PRIu64 " KiB, and %s has %" PRIu64 " free: as root: echo %" PRIu64
                     " > %s",
                     subject(check->count, text), wanted, page_bytes >> 10, where, pages.available,
                     pages.set_aside + (wanted - pages.available), path);
}

/* ---- all of it ---- */

/* What less is allowed of is left to the node itself, which takes what there is and says so. */
static dmg_status check_all(const room_check *check)
{
    const dmg_segment_options *segment = &check->nodes[0].segment;
    dmg_status status = segment->allow_fallback ? DMG_OK : dmg_placement_check_node(segment);
    if (status == DMG_OK && !segment->allow_fallback) {
        status = check_huge_pages(check);
    }
    if (status == DMG_OK) {
        status = check_address_space(check);
    }
    if (status == DMG_OK) {
        status = check_file_sizes(check);
    }
    if (status == DMG_OK) {
        status = check_file_systems(check);
    }
    return status == DMG_OK ? check_memory(check) : status;
}

dmg_status dmg_server_check_room(const dmg_server_options *nodes, uint32_t count)
{
    const dmg_backend *backend;
    dmg_transport_parameters parameters;
    if (count == 0) {
        return DMG_OK;
    }
    dmg_status status = dmg_transport_parse(nodes[0].transport, &backend, &parameters);
    if (status != DMG_OK) {
        return status;
    }
    room_check check = {.nodes = nodes, .count = count, .demands = calloc(count, sizeof *check.demands)};
    if (!check.demands) {
        return dmg_error(DMG_ERR_MEMORY, "looking for room for %" PRIu32 " segments: out of memory", count);
    }
    for (uint32_t i = 0; i < count && status == DMG_OK; i++) {
        uint64_t bytes = nodes[i].segment.bytes;
        status = bytes == 0 || bytes > DMG_ADDRESS_OFFSET_MASK
                     ? dmg_error(DMG_ERR_ARGUMENT, "a segment cannot have %" PRIu64 " bytes", bytes)
                     : backend->segment_demand(&nodes[i], &parameters, &check.demands[i]);
    }
    if (status == DMG_OK) {
        status = check_all(&check);
    }
    free(check.demands);
    return status;
}
