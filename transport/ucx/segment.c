/**
 * @file segment.c
 * A memory node's segment.
 *
 * UCX gives one-sided keys only to memory that it allocated itself. It allocates at page boundaries, so the segment is
 * cut from a somewhat larger piece to lie at a multiple of 2 MiB. Shared memory comes zeroed from the kernel.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/ucx/ucx.h"

#include <errno.h>
#include <numaif.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define ALIGNMENT      (UINT64_C(2) << 20)
#define NUMA_NODES_MAX 1024
#define BITS_PER_WORD  (8 * (int)sizeof(unsigned long))

/** A machine without this node is not in the way: where the pages lie is a wish. */
static void bind_to_numa_node(void *start, uint64_t bytes, int numa_node)
{
    if (numa_node < 0) {
        return;
    }
    unsigned long mask[NUMA_NODES_MAX / BITS_PER_WORD] = {0};
    bool is_bound = false;
    if (numa_node < NUMA_NODES_MAX) {
        mask[numa_node / BITS_PER_WORD] = 1UL << (numa_node % BITS_PER_WORD);
        is_bound = mbind(start, bytes, MPOL_BIND, mask, NUMA_NODES_MAX, MPOL_MF_MOVE) == 0;
    }
    if (!is_bound) {
        dmg_log(DMG_LOG_WARNING, "numa_node_unavailable", "numa_node=%d remedy=\"numactl --hardware lists the nodes\"",
                numa_node);
    }
}

static dmg_status touch_pages(uint8_t *start, uint64_t bytes)
{
    if (madvise(start, bytes, MADV_POPULATE_WRITE) == 0) {
        return DMG_OK;
    }
    if (errno != EINVAL && errno != ENOSYS) {
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "touching the segment's %llu bytes", (unsigned long long)bytes);
    }
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint64_t at = 0; at < bytes; at += page) {
        ((volatile uint8_t *)start)[at] = 0;
    }
    return DMG_OK;
}

/** A segment that outgrows /dev/shm kills its process when a page is touched, much later: look first. */
static dmg_status check_shared_memory_space(uint64_t bytes)
{
    struct statvfs space;
    if (statvfs("/dev/shm", &space) != 0) {
        return DMG_OK;
    }
    uint64_t free_bytes = (uint64_t)space.f_bavail * space.f_frsize;
    if (bytes > free_bytes) {
        return dmg_error(
            DMG_ERR_MEMORY,
            "a segment of %llu bytes in shared memory: /dev/shm has %llu left: mount it larger, or use data=message",
            (unsigned long long)bytes, (unsigned long long)free_bytes);
    }
    return DMG_OK;
}

static dmg_status allocate_by_ucx(uint64_t bytes, ucp_context_h context, const char *transports,
                                  dmg_ucx_segment *segment)
{
    if (strcmp(transports, "posix") == 0) {
        dmg_status status = check_shared_memory_space(bytes + ALIGNMENT);
        if (status != DMG_OK) {
            return status;
        }
    }
    ucp_mem_map_params_t parameters = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = bytes + ALIGNMENT,
        .flags = UCP_MEM_MAP_ALLOCATE,
    };
    ucs_status_t status = ucp_mem_map(context, &parameters, &segment->handle);
    if (status != UCS_OK) {
        return dmg_error(DMG_ERR_MEMORY,
                         "allocating a segment of %llu bytes through UCX's %s: %s: use a smaller one, or data=message",
                         (unsigned long long)bytes, transports, ucs_status_string(status));
    }
    segment->context = context;
    ucp_mem_attr_t attributes = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    status = ucp_mem_query(segment->handle, &attributes);
    if (status != UCS_OK) {
        return dmg_error(DMG_ERR_INTERNAL, "asking UCX for the segment's address: %s", ucs_status_string(status));
    }
    uintptr_t start = ((uintptr_t)attributes.address + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
    segment->start = (uint8_t *)start;
    return DMG_OK;
}

static dmg_status allocate_privately(const dmg_segment_options *options, uint64_t bytes, dmg_ucx_segment *segment)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    uint64_t page = options->page_size == DMG_PAGE_1G ? UINT64_C(1) << 30 : ALIGNMENT;
    if (options->page_size != DMG_PAGE_DEFAULT) {
        uint64_t rounded;
        int page_shift = options->page_size == DMG_PAGE_1G ? 30 : 21;
        if (dmg_checked_round_up(bytes, page, &rounded)) {
            void *memory = mmap(NULL, rounded, PROT_READ | PROT_WRITE,
                                (flags & ~MAP_NORESERVE) | MAP_HUGETLB | (page_shift << MAP_HUGE_SHIFT), -1, 0);
            if (memory != MAP_FAILED) {
                segment->mapping = memory;
                segment->mapping_bytes = rounded;
                segment->start = memory;
                return DMG_OK;
            }
        }
        dmg_log(DMG_LOG_WARNING, "hugepages_unavailable",
                "bytes=%llu page_bytes=%llu remedy=\"reserve them in /proc/sys/vm/nr_hugepages\"",
                (unsigned long long)bytes, (unsigned long long)page);
    }
    segment->mapping_bytes = bytes + ALIGNMENT;
    segment->mapping = mmap(NULL, segment->mapping_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (segment->mapping == MAP_FAILED) {
        segment->mapping = NULL;
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "allocating a segment of %llu bytes", (unsigned long long)bytes);
    }
    segment->start = (uint8_t *)(((uintptr_t)segment->mapping + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
    madvise(segment->start, bytes, MADV_HUGEPAGE);
    return DMG_OK;
}

dmg_status dmg_ucx_segment_create(const dmg_segment_options *options, ucp_context_h context, const char *transports,
                                  dmg_ucx_segment *segment)
{
    memset(segment, 0, sizeof(*segment));
    if (options->path != NULL) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "a segment in %s: UCX allocates segments by itself: use cxl_shm for memory with a path",
                         options->path);
    }
    uint64_t bytes;
    uint64_t total;
    if (options->bytes == 0 || !dmg_checked_round_up(options->bytes, 4096, &bytes) ||
        !dmg_checked_add(bytes, ALIGNMENT, &total) || bytes > DMG_ADDRESS_OFFSET_MASK) {
        return dmg_error(DMG_ERR_ARGUMENT, "a segment of %llu bytes: must be from 1 to 2^48 - 1",
                         (unsigned long long)options->bytes);
    }
    segment->bytes = bytes;
    dmg_status status = context != NULL ? allocate_by_ucx(bytes, context, transports, segment)
                                        : allocate_privately(options, bytes, segment);
    if (status == DMG_OK) {
        bind_to_numa_node(segment->start, bytes, options->numa_node);
    }
    if (status == DMG_OK && options->prefault) {
        status = touch_pages(segment->start, bytes);
    }
    if (status == DMG_OK && context != NULL && dmg_ucx_data_kind(transports) == DMG_UCX_DATA_NIC) {
        /* Heap memory of UCX is not promised to be zero; shared memory is fresh from the kernel. */
        memset(segment->start, 0, bytes);
    }
    if (status != DMG_OK) {
        dmg_ucx_segment_destroy(segment);
    }
    return status;
}

void dmg_ucx_segment_destroy(dmg_ucx_segment *segment)
{
    if (segment->handle != NULL) {
        ucp_mem_unmap(segment->context, segment->handle);
    }
    if (segment->mapping != NULL) {
        munmap(segment->mapping, segment->mapping_bytes);
    }
    memset(segment, 0, sizeof(*segment));
}
