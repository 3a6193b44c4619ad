/*
 * What a memory node's segment will take when it is made, and how many descriptors channels do: looked up, nothing is
 * made here.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/folder.h"
#include "transport/cxl_shm/shm.h"
#include "transport/placement.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define ALIGNMENT (UINT64_C(2) << 20)

static dmg_status too_large(uint64_t bytes)
{
    return dmg_error(DMG_ERR_LIMIT, "a segment of %" PRIu64 " bytes is too large", bytes);
}

static uint64_t pages_of(uint64_t bytes, uint64_t page_bytes)
{
    return bytes / page_bytes + (bytes % page_bytes != 0);
}

static dmg_status demand_of_anonymous(const dmg_segment_options *segment, dmg_segment_demand *demand)
{
    uint64_t page_bytes = dmg_page_size_bytes(segment->page_size);
    /* A place that is aligned is cut from a larger one. */
    if (!dmg_checked_round_up(segment->bytes, page_bytes ? page_bytes : ALIGNMENT, &demand->file_of_bytes) ||
        !dmg_checked_add(demand->file_of_bytes, page_bytes ? page_bytes : ALIGNMENT, &demand->mapped_bytes)) {
        return too_large(segment->bytes);
    }
    if (page_bytes) {
        demand->huge_page_bytes = page_bytes;
        demand->huge_pages = pages_of(segment->bytes, page_bytes);
    } else if (segment->prefault) {
        demand->populated_bytes = demand->file_of_bytes;
    } else {
        demand->promised_bytes = segment->bytes;
    }
    return DMG_OK;
}

/* The folder's name, for its file system; one that is too long is not looked at. */
static void name_folder(const char *path, dmg_segment_demand *demand)
{
    const char *slash = strrchr(path, '/');
    size_t length = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
    if (length < sizeof demand->folder) {
        snprintf(demand->folder, sizeof demand->folder, "%.*s", length ? (int)length : 1, length ? path : ".");
    }
}

static void demand_of_file(const char *path, uint64_t taken_bytes, dmg_segment_demand *demand)
{
    struct statfs system;
    name_folder(path, demand);
    if (statfs(demand->folder, &system) != 0) {
        return;
    }
    demand->file_bytes = taken_bytes;
    if (system.f_type == HUGETLBFS_MAGIC) {
        demand->huge_page_bytes = (uint64_t)system.f_bsize;
        demand->huge_pages = pages_of(taken_bytes, demand->huge_page_bytes);
    } else {
        demand->populated_bytes = taken_bytes; /* reserved, so that no later write finds the file system full */
    }
}

static dmg_status demand_of_named(const dmg_server_options *options, const char *path, bool may_exist,
                                  uint64_t behind_bytes, dmg_segment_demand *demand)
{
    const dmg_segment_options *segment = &options->segment;
    struct stat about;
    uint64_t bytes;
    if (!dmg_checked_add(segment->bytes, behind_bytes, &bytes) ||
        !dmg_checked_add(bytes, 2 * ALIGNMENT, &demand->mapped_bytes)) {
        return too_large(segment->bytes);
    }
    if (stat(path, &about) == 0) {
        uint64_t there = (uint64_t)about.st_blocks * 512;
        if (may_exist && S_ISREG(about.st_mode) && bytes > there) {
            demand_of_file(path, bytes - there, demand);
        }
        return DMG_OK; /* a device has what it has */
    }
    dmg_status status = dmg_folder_check(path);
    if (status == DMG_OK) {
        demand->file_of_bytes = bytes;
        demand_of_file(path, bytes, demand);
    }
    return status;
}

dmg_status dmg_shm_segment_demand(const dmg_server_options *options, const dmg_transport_parameters *parameters,
                                  dmg_segment_demand *demand)
{
    char path[96];
    dmg_shm_path_of(parameters, options->node, path);
    if (path[0]) {
        uint64_t behind = dmg_shm_is_network(parameters, options->bind) ? DMG_SHM_BEHIND_MIN : 0;
        return demand_of_named(options, path, true, behind, demand);
    }
    return options->segment.path ? demand_of_named(options, options->segment.path, false, 0, demand)
                                 : demand_of_anonymous(&options->segment, demand);
}

/* What is mapped is closed again; a channel is one socket at either end. Counted in processes at work. */
dmg_status dmg_shm_descriptors(const dmg_transport_parameters *parameters, dmg_transport_descriptors *descriptors)
{
    (void)parameters;
    *descriptors = (dmg_transport_descriptors){.server = 7, .server_channel = 1, .client_connection = 1};
    return DMG_OK;
}
