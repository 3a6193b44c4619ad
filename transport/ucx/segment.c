/**
 * @file segment.c
 * A memory node's segment.
 *
 * UCX gives one-sided keys in shared memory only to memory that it allocated itself. It allocates at page boundaries,
 * so the segment is cut from a somewhat larger piece to lie at a multiple of 2 MiB. Memory for a card is ours, and
 * pinned afterwards. All memory comes zeroed from the kernel.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/populate.h"
#include "transport/placement.h"
#include "transport/ucx/ucx.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGNMENT DMG_UCX_SEGMENT_ALIGNMENT

/* UCX writes to all of a segment of posix at once: the pages had better come from the right node, and by many. */
static ucs_status_t map_memory(const dmg_segment_options *options, ucp_context_h context, const char *transports,
                               const ucp_mem_map_params_t *parameters, ucp_mem_h *handle)
{
    dmg_placement_policy before;
    dmg_placement_enter(options, &before);
    bool is_written = strcmp(transports, "posix") == 0;
    dmg_ucx_helpers *helpers = is_written ? dmg_ucx_helpers_start(parameters->length, options->populated_bytes) : NULL;
    ucs_status_t status = ucp_mem_map(context, parameters, handle);
    dmg_ucx_helpers_stop(helpers);
    dmg_placement_leave(&before);
    return status;
}

static dmg_status allocate_by_ucx(const dmg_segment_options *options, uint64_t bytes, ucp_context_h context,
                                  const char *transports, dmg_ucx_segment *segment)
{
    ucp_mem_map_params_t parameters = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length = bytes + ALIGNMENT,
        .flags = UCP_MEM_MAP_ALLOCATE,
    };
    ucs_status_t status = map_memory(options, context, transports, &parameters, &segment->handle);
    if (status != UCS_OK) {
        segment->handle = NULL;
        (void)dmg_error(DMG_ERR_MEMORY,
                        "allocating a segment of %llu bytes through UCX's %s: %s: use a smaller one, or data=message "
                        "(--log-level info shows what UCX says)",
                        (unsigned long long)bytes, transports, ucs_status_string(status));
        return dmg_ucx_explain(transports, bytes, DMG_ERR_MEMORY);
    }
    segment->context = context;
    dmg_status closed = dmg_ucx_close_to_others(transports);
    if (closed != DMG_OK) {
        return closed;
    }
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
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
    uint64_t page_bytes = dmg_page_size_bytes(options->page_size);
    uint64_t rounded = 0;
    if (page_bytes && dmg_checked_round_up(bytes, page_bytes, &rounded)) {
        int page_shift = __builtin_ctzll(page_bytes);
        void *memory =
            mmap(NULL, rounded, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB | (page_shift << MAP_HUGE_SHIFT), -1, 0);
        if (memory != MAP_FAILED) {
            segment->mapping = memory;
            segment->mapping_bytes = rounded;
            segment->start = memory;
            return DMG_OK;
        }
        if (!options->allow_fallback) {
            return dmg_error_errno(DMG_ERR_MEMORY, errno, "a segment of %" PRIu64 " huge pages of %" PRIu64 " MiB",
                                   rounded / page_bytes, page_bytes >> 20);
        }
    }
    segment->mapping_bytes = bytes + ALIGNMENT;
    segment->mapping = mmap(NULL, segment->mapping_bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, -1, 0);
    if (segment->mapping == MAP_FAILED) {
        segment->mapping = NULL;
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "allocating a segment of %llu bytes", (unsigned long long)bytes);
    }
    segment->start = (uint8_t *)(((uintptr_t)segment->mapping + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1));
    madvise(segment->start, bytes, MADV_HUGEPAGE);
    return DMG_OK;
}

static dmg_status place(const dmg_segment_options *options, const char *transports, dmg_ucx_segment *segment)
{
    /* A card's pages are pinned, and had better be there before by many threads. Posix has all its pages, but this
     * process's tables have them only when it was asked to touch them. */
    bool is_of_card = dmg_ucx_data_kind(transports) == DMG_UCX_DATA_NIC;
    bool is_populated = is_of_card || (strcmp(transports, "posix") == 0 && !options->prefault);
    dmg_status status = dmg_placement_bind(options, segment->start, segment->bytes);
    if (status == DMG_OK) {
        status = dmg_placement_check_pages(options, segment->start, segment->bytes, &segment->placement);
    }
    if (status == DMG_OK && is_of_card) {
        status = dmg_populate(segment->start, segment->bytes, true, options->populated_bytes);
    }
    return status == DMG_OK
               ? dmg_placement_finish(options, segment->start, segment->bytes, is_populated, &segment->placement)
               : status;
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
    dmg_status status = context != NULL ? allocate_by_ucx(options, bytes, context, transports, segment)
                                        : allocate_privately(options, bytes, segment);
    if (status == DMG_OK) {
        status = place(options, transports, segment);
    }
    if (status != DMG_OK) {
        dmg_ucx_segment_destroy(segment);
    }
    return status;
}

bool dmg_ucx_segment_give_back(const dmg_ucx_segment *segment, const char *transports, uint64_t offset, uint64_t bytes)
{
    bool is_private = segment->mapping != NULL && transports[0] == '\0';
    return (is_private || dmg_ucx_data_kind(transports) == DMG_UCX_DATA_SHARED_MEMORY) &&
           madvise(segment->start + offset, bytes, is_private ? MADV_DONTNEED : MADV_REMOVE) == 0;
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
