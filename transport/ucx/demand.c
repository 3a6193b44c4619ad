/**
 * @file demand.c
 * What UCX takes for a segment, and why it would not get it: looked up before, since UCX fails with one error for all
 * reasons, and after it has taken all that there was. And how many descriptors it takes, without which it fails alike.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "transport/placement.h"
#include "transport/ucx/ucx.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/shm.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FOLDER "/dev/shm"
/* What UCX's own queues of a node take there beside the segment. */
#define QUEUES_BYTES (UINT64_C(1) << 20)
/* A memory node's pieces of sysv: the segment, and queues. */
#define NODE_PIECES 3

static const char other_way[] = "ask for less with --memory, or use data=message, which needs none of it";

/* ---- posix: files in /dev/shm ---- */

static dmg_status check_folder(uint64_t bytes)
{
    struct statvfs system;
    if (statvfs(FOLDER, &system) != 0) {
        return dmg_error_errno(DMG_ERR_UNSUPPORTED, errno,
                               "memory for UCX's posix: it is made in " FOLDER
                               ": mount a tmpfs there, or use data=message");
    }
    if (system.f_flag & ST_RDONLY) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "memory for UCX's posix: it is made in " FOLDER
                                              ", which is mounted read-only: remount it, or use data=message");
    }
    if (access(FOLDER, W_OK | X_OK) != 0) {
        return dmg_error_errno(DMG_ERR_UNSUPPORTED, errno,
                               "memory for UCX's posix: it is made in " FOLDER
                               ", where this user may not: make it writable for all (mode 1777), or use data=message");
    }
    uint64_t free_bytes = (uint64_t)system.f_bavail * system.f_frsize;
    if (system.f_blocks > 0 && bytes > free_bytes) {
        return dmg_error(DMG_ERR_MEMORY,
                         "%" PRIu64 " bytes for UCX's posix: " FOLDER " has %" PRIu64
                         " left: make it larger (`mount -o remount,size=`), or %s",
                         bytes, free_bytes, other_way);
    }
    return DMG_OK;
}

static dmg_status demand_of_posix(uint64_t bytes, dmg_segment_demand *demand)
{
    snprintf(demand->folder, sizeof demand->folder, FOLDER);
    demand->file_of_bytes = bytes;
    demand->file_bytes = bytes + QUEUES_BYTES;
    demand->populated_bytes = bytes + QUEUES_BYTES;
    return check_folder(0); /* how much there is for all nodes together is looked at later */
}

/* ---- sysv: shared memory with numbers ---- */

static dmg_status check_numbers(uint64_t bytes)
{
    struct shminfo limits;
    struct shm_info used;
    if (shmctl(0, IPC_INFO, (struct shmid_ds *)(void *)&limits) < 0 ||
        shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&used) < 0) {
        return DMG_OK;
    }
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (bytes > limits.shmmax) {
        return dmg_error(DMG_ERR_MEMORY,
                         "%" PRIu64 " bytes for UCX's sysv: the system allows pieces of %" PRIu64
                         " bytes (kernel.shmmax): raise it by sysctl, or %s",
                         bytes, (uint64_t)limits.shmmax, other_way);
    }
    if (used.used_ids >= 0 && (uint64_t)used.used_ids + NODE_PIECES > limits.shmmni) {
        return dmg_error(DMG_ERR_MEMORY,
                         "memory for UCX's sysv: %d pieces of shared memory are in use, a memory node takes 3 "
                         "more, and the system allows %" PRIu64
                         " (kernel.shmmni): raise it by sysctl, remove some (`ipcs -m`), or use "
                         "data=message",
                         used.used_ids, (uint64_t)limits.shmmni);
    }
    uint64_t left = limits.shmall > used.shm_tot ? limits.shmall - used.shm_tot : 0;
    if (bytes / page > left) {
        return dmg_error(DMG_ERR_MEMORY,
                         "%" PRIu64 " bytes for UCX's sysv: of the pages that the system allows in "
                         "all (kernel.shmall) %" PRIu64 " are left: raise it by sysctl, or %s",
                         bytes, left, other_way);
    }
    return DMG_OK;
}

/* ---- any ---- */

dmg_status dmg_ucx_demand_of(const dmg_segment_options *options, const char *transports, dmg_segment_demand *demand)
{
    uint64_t page_bytes = dmg_page_size_bytes(options->page_size);
    uint64_t bytes;
    bool is_by_message = transports[0] == '\0';
    bool is_shared = dmg_ucx_data_kind(transports) == DMG_UCX_DATA_SHARED_MEMORY;
    if (!dmg_checked_round_up(options->bytes, 4096, &bytes) ||
        !dmg_checked_add(bytes, DMG_UCX_SEGMENT_ALIGNMENT, &bytes)) {
        return dmg_error(DMG_ERR_LIMIT, "a segment of %" PRIu64 " bytes is too large", options->bytes);
    }
    demand->mapped_bytes = bytes;
    demand->remedy = is_by_message ? NULL : other_way;
    if (strcmp(transports, "posix") == 0) {
        return demand_of_posix(bytes, demand);
    }
    if (page_bytes) {
        uint64_t rounded = is_shared ? bytes : options->bytes;
        demand->huge_page_bytes = page_bytes;
        demand->huge_pages = rounded / page_bytes + (rounded % page_bytes != 0);
    } else if (options->prefault || !(is_by_message || is_shared)) { /* a card's memory is pinned */
        demand->populated_bytes = bytes;
    } else {
        demand->promised_bytes = options->bytes;
    }
    return is_shared ? check_numbers(bytes) : DMG_OK;
}

/*
 * Counted in processes at work, but for cards, of which each channel's queues at either end have a thread's events and
 * a completion channel: more than that is allowed for. Sockets of UCX's tcp may be there twice while they connect.
 */
static const dmg_transport_descriptors of_sockets = {.server = 5, .server_channel = 1, .client_connection = 1};
static const dmg_transport_descriptors of_shared_memory = {.server = 8, .client = 10, .client_channel = 5};
static const dmg_transport_descriptors of_cards = {.server = 8, .server_channel = 8, .client = 10, .client_channel = 8};
static const dmg_transport_descriptors of_tcp = {
    .server = 11, .server_channel = 2, .client = 10, .client_channel = 6, .client_connection = 1};

static void add_descriptors(dmg_transport_descriptors *sum, const dmg_transport_descriptors *more)
{
    sum->server += more->server;
    sum->server_channel += more->server_channel;
    sum->client += more->client;
    sum->client_channel += more->client_channel;
    sum->client_connection += more->client_connection;
}

dmg_status dmg_ucx_descriptors(const dmg_transport_parameters *parameters, dmg_transport_descriptors *descriptors)
{
    dmg_ucx_settings settings;
    dmg_status status = dmg_ucx_settings_parse(parameters, DMG_UCX_SIDE_COMPUTE, &settings);
    if (status != DMG_OK) {
        return status;
    }
    bool has_card = settings.data == DMG_UCX_DATA_NIC || settings.are_messages_card || settings.has_open_messages ||
                    settings.rdma_devices[0] != '\0';
    add_descriptors(descriptors, &of_sockets);
    if (settings.data == DMG_UCX_DATA_SHARED_MEMORY || settings.data == DMG_UCX_DATA_AUTO) {
        add_descriptors(descriptors, &of_shared_memory);
    }
    if (has_card) {
        add_descriptors(descriptors, &of_cards);
    }
    if (settings.has_tcp_messages) {
        add_descriptors(descriptors, &of_tcp);
    }
    return DMG_OK;
}

dmg_status dmg_ucx_explain(const char *transports, uint64_t bytes, dmg_status status)
{
    dmg_kept_error kept = {0};
    dmg_error_keep(&kept, status);
    dmg_status reason = DMG_OK;
    if (strcmp(transports, "posix") == 0) {
        reason = check_folder(bytes);
    } else if (dmg_ucx_data_kind(transports) == DMG_UCX_DATA_SHARED_MEMORY) {
        reason = check_numbers(bytes);
    }
    return reason != DMG_OK ? reason : dmg_error_restore(&kept);
}

dmg_status dmg_ucx_data_worker(ucp_context_h context, const char *transports, ucp_worker_h *worker)
{
    bool has_device = dmg_ucx_data_kind(transports) != DMG_UCX_DATA_SHARED_MEMORY;
    dmg_status status = dmg_ucx_worker_within(context, has_device ? DMG_UCX_DEVICE_LIMIT_NS : 0, worker);
    return status == DMG_OK ? dmg_ucx_close_to_others(transports) : dmg_ucx_explain(transports, QUEUES_BYTES, status);
}
