/*
 * A memory node's segment: anonymous shared memory, a named file in /dev/shm or hugetlbfs, or a DAX device; its pages,
 * its NUMA node.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/cxl_shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PAGE_2M      (UINT64_C(2) << 20)
#define PAGE_1G      (UINT64_C(1) << 30)
#define SEGMENT_MODE 0600

/* Reserve enough address space to find an aligned place in it, map there, and give the rest back. */
static dmg_status map_aligned(int descriptor, uint64_t bytes, uint64_t alignment, void **pointer)
{
    *pointer = NULL;
    uint64_t reserved_bytes;
    if (!dmg_checked_add(bytes, alignment, &reserved_bytes)) {
        return dmg_error(DMG_ERR_LIMIT, "mapping %" PRIu64 " bytes of shared memory: too many", bytes);
    }
    char *reserved = mmap(NULL, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "reserving %" PRIu64 " bytes of address space", bytes);
    }
    uint64_t skipped = (alignment - (uintptr_t)reserved % alignment) % alignment;
    char *aligned = reserved + skipped;
    if (mmap(aligned, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
        int failed = errno;
        munmap(reserved, reserved_bytes);
        return dmg_error_errno(DMG_ERR_MEMORY, failed, "mapping %" PRIu64 " bytes of shared memory", bytes);
    }
    if (skipped > 0) {
        munmap(reserved, skipped);
    }
    if (alignment > skipped) {
        munmap(aligned + bytes, alignment - skipped);
    }
    *pointer = aligned;
    return DMG_OK;
}

dmg_status dmg_shm_map(int descriptor, uint64_t bytes, uint64_t alignment, void **pointer)
{
    dmg_status status = map_aligned(descriptor, bytes, alignment, pointer);
    if (status == DMG_OK) {
        /* Fewer TLB misses where the kernel grants it; hugetlbfs and DAX refuse, for they have them already. */
        (void)madvise(*pointer, bytes, MADV_HUGEPAGE);
    }
    return status;
}

/* ---- anonymous ---- */

static dmg_status create_anonymous(const char *name, uint64_t bytes, unsigned int huge_flags, int *descriptor)
{
    *descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | huge_flags);
    if (*descriptor < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "creating shared memory");
    }
    /* A client that shrank the memory would kill the server with SIGBUS. */
    if (ftruncate(*descriptor, (off_t)bytes) != 0 ||
        fcntl(*descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        int failed = errno;
        close(*descriptor);
        *descriptor = -1;
        return dmg_error_errno(DMG_ERR_MEMORY, failed, "giving shared memory a size of %" PRIu64 " bytes", bytes);
    }
    return DMG_OK;
}

dmg_status dmg_shm_create_control(int *descriptor, dmg_shm_control **control)
{
    *control = NULL;
    dmg_status status = create_anonymous("dmgraph-control", sizeof **control, 0, descriptor);
    if (status != DMG_OK) {
        return status;
    }
    void *mapped = mmap(NULL, sizeof **control, PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
    if (mapped == MAP_FAILED) {
        int failed = errno;
        close(*descriptor);
        *descriptor = -1;
        return dmg_error_errno(DMG_ERR_MEMORY, failed, "mapping a channel's control area");
    }
    *control = mapped;
    return DMG_OK;
}

static dmg_status create_and_map(dmg_shm_segment *segment, uint64_t bytes, uint64_t page_bytes, unsigned int huge_flags)
{
    if (!dmg_checked_round_up(bytes, page_bytes, &segment->bytes)) {
        return dmg_error(DMG_ERR_LIMIT, "a segment of %" PRIu64 " bytes is too large", bytes);
    }
    segment->alignment = page_bytes;
    dmg_status status = create_anonymous("dmgraph-segment", segment->bytes, huge_flags, &segment->descriptor);
    if (status != DMG_OK) {
        return status;
    }
    status = dmg_shm_map(segment->descriptor, segment->bytes, page_bytes, &segment->pointer);
    if (status != DMG_OK) {
        close(segment->descriptor);
        segment->descriptor = -1;
    }
    return status;
}

static dmg_status open_anonymous(const dmg_segment_options *options, dmg_shm_segment *segment)
{
    if (options->page_size == DMG_PAGE_DEFAULT) {
        return create_and_map(segment, options->bytes, PAGE_2M, 0);
    }
    bool is_2m = options->page_size == DMG_PAGE_2M;
    uint64_t page_bytes = is_2m ? PAGE_2M : PAGE_1G;
    if (create_and_map(segment, options->bytes, page_bytes, MFD_HUGETLB | (is_2m ? MFD_HUGE_2MB : MFD_HUGE_1GB)) ==
        DMG_OK) {
        return DMG_OK;
    }
    uint64_t pages = options->bytes / page_bytes + (options->bytes % page_bytes != 0);
    dmg_log(DMG_LOG_WARNING, "no_hugepages",
            "wanted=%s used=default why=\"%s\" remedy=\"as root: echo %" PRIu64
            " > /sys/kernel/mm/hugepages/hugepages-%" PRIu64 "kB/nr_hugepages\"",
            is_2m ? "2M" : "1G", dmg_error_message(), pages, page_bytes >> 10);
    return create_and_map(segment, options->bytes, PAGE_2M, 0);
}

/* ---- named ---- */

static dmg_status device_bytes(const char *path, const struct stat *about, uint64_t *bytes)
{
    char size_path[64];
    snprintf(size_path, sizeof size_path, "/sys/dev/char/%u:%u/size", major(about->st_rdev), minor(about->st_rdev));
    FILE *file = fopen(size_path, "re");
    if (!file) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "the device %s is not a DAX device: it has no %s", path, size_path);
    }
    int found = fscanf(file, "%" SCNu64, bytes);
    fclose(file);
    return found == 1 ? DMG_OK : dmg_error(DMG_ERR_IO, "%s does not say the size of %s", size_path, path);
}

static dmg_status open_device(const dmg_segment_options *options, dmg_shm_segment *segment, const struct stat *about)
{
    uint64_t available;
    dmg_status status = device_bytes(options->path, about, &available);
    if (status != DMG_OK) {
        return status;
    }
    segment->alignment = PAGE_2M;
    if (!dmg_checked_round_up(options->bytes, PAGE_2M, &segment->bytes) || segment->bytes > available) {
        return dmg_error(DMG_ERR_LIMIT, "the device %s has %" PRIu64 " bytes, and %" PRIu64 " are wanted",
                         options->path, available, options->bytes);
    }
    segment->descriptor = open(options->path, O_RDWR | O_CLOEXEC);
    if (segment->descriptor < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "opening the device %s", options->path);
    }
    status = dmg_shm_map(segment->descriptor, segment->bytes, segment->alignment, &segment->pointer);
    if (status == DMG_OK) {
        memset(segment->pointer, 0, segment->bytes); /* it still has what its last user left */
    }
    return status;
}

static dmg_status size_file(const dmg_segment_options *options, dmg_shm_segment *segment)
{
    struct statfs system;
    if (fstatfs(segment->descriptor, &system) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "asking about the file system of %s", options->path);
    }
    uint64_t page_bytes = PAGE_2M;
    if (system.f_type == HUGETLBFS_MAGIC) {
        page_bytes = (uint64_t)system.f_bsize > PAGE_2M ? (uint64_t)system.f_bsize : PAGE_2M;
    } else if (system.f_type != TMPFS_MAGIC) {
        return dmg_error(DMG_ERR_ARGUMENT, "%s is not in memory; use a file in /dev/shm or hugetlbfs, or a DAX device",
                         options->path);
    } else if (options->page_size != DMG_PAGE_DEFAULT) {
        dmg_log(DMG_LOG_WARNING, "no_hugepages",
                "wanted=%s used=default why=\"%s is not in hugetlbfs\" remedy=\"name a file in a hugetlbfs mount\"",
                options->page_size == DMG_PAGE_2M ? "2M" : "1G", options->path);
    }
    segment->alignment = page_bytes;
    if (!dmg_checked_round_up(options->bytes, page_bytes, &segment->bytes)) {
        return dmg_error(DMG_ERR_LIMIT, "a segment of %" PRIu64 " bytes is too large", options->bytes);
    }
    if (ftruncate(segment->descriptor, (off_t)segment->bytes) != 0) {
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "giving %s a size of %" PRIu64 " bytes", options->path,
                               segment->bytes);
    }
    uint64_t free_bytes = (uint64_t)system.f_bavail * (uint64_t)system.f_bsize;
    if (segment->bytes > free_bytes) {
        /* The file would be sparse, and its first write to a missing page would end the process. */
        return dmg_error(DMG_ERR_MEMORY, "%s: its file system has %" PRIu64 " bytes free, and %" PRIu64 " are wanted",
                         options->path, free_bytes, segment->bytes);
    }
    return DMG_OK;
}

static dmg_status open_named(const dmg_segment_options *options, dmg_shm_segment *segment)
{
    struct stat about;
    if (stat(options->path, &about) == 0 && S_ISCHR(about.st_mode)) {
        return open_device(options, segment, &about);
    }
    segment->descriptor = open(options->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, SEGMENT_MODE);
    if (segment->descriptor < 0) {
        int failed = errno;
        return failed == EEXIST ? dmg_error(DMG_ERR_EXISTS,
                                            "the file %s exists already; another memory node uses it, or one that was "
                                            "killed left it: then remove it",
                                            options->path)
                                : dmg_error_errno(DMG_ERR_IO, failed, "creating %s", options->path);
    }
    segment->created_path = strdup(options->path);
    if (!segment->created_path) {
        unlink(options->path);
        return dmg_error(DMG_ERR_MEMORY, "creating %s: out of memory", options->path);
    }
    dmg_status status = size_file(options, segment);
    if (status != DMG_OK) {
        return status;
    }
    return dmg_shm_map(segment->descriptor, segment->bytes, segment->alignment, &segment->pointer);
}

/* ---- placement ---- */

/* NULL, or why the memory cannot be bound to the node. */
static const char *bind_to_node(const dmg_shm_segment *segment, int node)
{
    if (numa_available() < 0) {
        return "the kernel has no NUMA support";
    }
    if (node > numa_max_node() || !numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned int)node)) {
        return "there is no such NUMA node, or this process may not use it";
    }
    struct bitmask *mask = numa_allocate_nodemask();
    if (!mask) {
        return "out of memory";
    }
    numa_bitmask_setbit(mask, (unsigned int)node);
    long failed = mbind(segment->pointer, segment->bytes, MPOL_BIND, mask->maskp, mask->size + 1, 0);
    numa_free_nodemask(mask);
    return failed ? "the kernel refused the binding" : NULL;
}

static dmg_status prefault(const dmg_shm_segment *segment)
{
    if (madvise(segment->pointer, segment->bytes, MADV_POPULATE_WRITE) == 0) {
        return DMG_OK;
    }
    if (errno != EINVAL) {
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "pre-faulting %" PRIu64 " bytes", segment->bytes);
    }
    /* Kernels before 5.14 do not know the advice: touch every page. */
    uint64_t step = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint64_t offset = 0; offset < segment->bytes; offset += step) {
        ((volatile char *)segment->pointer)[offset] = 0;
    }
    return DMG_OK;
}

dmg_status dmg_shm_segment_create(const dmg_segment_options *options, dmg_shm_segment *segment)
{
    *segment = (dmg_shm_segment){.descriptor = -1};
    dmg_status status = options->path ? open_named(options, segment) : open_anonymous(options, segment);
    if (status == DMG_OK && options->numa_node >= 0) {
        const char *refusal = bind_to_node(segment, options->numa_node);
        if (refusal) {
            dmg_log(DMG_LOG_WARNING, "numa_node_not_used",
                    "wanted=%d used=any why=\"%s\" remedy=\"choose one that `numactl --hardware` lists\"",
                    options->numa_node, refusal);
        }
    }
    if (status == DMG_OK && options->prefault) {
        status = prefault(segment);
    }
    if (status != DMG_OK) {
        dmg_shm_segment_destroy(segment);
    }
    return status;
}

void dmg_shm_segment_destroy(dmg_shm_segment *segment)
{
    if (segment->pointer) {
        munmap(segment->pointer, segment->bytes);
    }
    if (segment->descriptor >= 0) {
        close(segment->descriptor);
    }
    if (segment->created_path) {
        unlink(segment->created_path);
        free(segment->created_path);
    }
    *segment = (dmg_shm_segment){.descriptor = -1};
}
