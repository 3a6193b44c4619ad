/*
 * A memory node's segment: anonymous shared memory, a named file in /dev/shm or hugetlbfs, a DAX device or the resource
 * file of a PCI device; its pages, its NUMA node.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/folder.h"
#include "core/base/huge_pages.h"
#include "core/base/populate.h"
#include "transport/cxl_shm/shm.h"
#include "transport/placement.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PAGE_2M (UINT64_C(2) << 20)

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
    segment->mapped_bytes = segment->bytes;
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
    uint64_t page_bytes = dmg_page_size_bytes(options->page_size);
    unsigned int flags = MFD_HUGETLB | (options->page_size == DMG_PAGE_2M ? MFD_HUGE_2MB : MFD_HUGE_1GB);
    dmg_status status = create_and_map(segment, options->bytes, page_bytes, flags);
    if (status == DMG_OK) {
        return DMG_OK;
    }
    /* Where less is allowed, the warning comes with what was got: dmg_placement_check_pages. */
    return options->allow_fallback
               ? create_and_map(segment, options->bytes, PAGE_2M, 0)
               : dmg_error_prefix(status, "a segment in huge pages of %" PRIu64 " MiB", page_bytes >> 20);
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

/* The NUMA node that a file of the system names; -1: none. */
static int read_node(const char *path)
{
    FILE *file = fopen(path, "re");
    int node = -1;
    if (file) {
        node = fscanf(file, "%d", &node) == 1 ? node : -1;
        fclose(file);
    }
    return node;
}

/* Where a DAX device's memory lies, by its number; a PCI device's, by the folder of its resource file. */
static int node_of_device(const struct stat *about)
{
    char path[64];
    snprintf(path, sizeof path, "/sys/dev/char/%u:%u/target_node", major(about->st_rdev), minor(about->st_rdev));
    return read_node(path);
}

static int node_of_resource(const char *resource)
{
    char path[128];
    const char *slash = strrchr(resource, '/');
    snprintf(path, sizeof path, "%.*s/numa_node", slash ? (int)(slash - resource) : 1, slash ? resource : ".");
    return read_node(path);
}

/* How much the memory node wants of memory that has a name. */
typedef struct named_wish {
    const dmg_segment_options *options;
    bool may_exist;
    uint64_t behind_min; /* bytes behind the segment */
    uint64_t behind_max;
} named_wish;

/* The sizes that fit into memory of a given size. */
static dmg_status fit(const named_wish *wish, uint64_t page_bytes, uint64_t available, dmg_shm_segment *segment)
{
    uint64_t needed;
    segment->alignment = page_bytes;
    if (!dmg_checked_round_up(wish->options->bytes, page_bytes, &segment->bytes) ||
        !dmg_checked_add(segment->bytes, wish->behind_min, &needed) || needed > available) {
        return dmg_error(DMG_ERR_LIMIT,
                         "%s has %" PRIu64 " bytes; a segment of %" PRIu64 " and %" PRIu64 " for messages are wanted",
                         wish->options->path, available, wish->options->bytes, wish->behind_min);
    }
    uint64_t left = available - segment->bytes;
    segment->mapped_bytes = segment->bytes + (left < wish->behind_max ? left : wish->behind_max);
    return DMG_OK;
}

/* Map all of it. What its last user left is zeroed later, where it is to lie. */
static dmg_status map_used(dmg_shm_segment *segment)
{
    segment->is_used = true;
    return dmg_shm_map(segment->descriptor, segment->mapped_bytes, segment->alignment, &segment->pointer);
}

/* Memory that was there before has one user: both would begin at its start. Only processes of this host are told. */
static dmg_status lock_memory(const char *path, int descriptor)
{
    if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return dmg_error(DMG_ERR_EXISTS, "%s: another memory node uses it", path);
    }
    return DMG_OK;
}

/*
 * Memory that was there before: whoever owns the file, or may write to it, or has another name for it, writes into the
 * graphs. So it must be this user's or root's, writable for nobody else, and have one name. What a device's file allows
 * is its administrator's affair.
 */
static dmg_status check_owner(const char *path, const struct stat *about)
{
    if (about->st_uid != geteuid() && about->st_uid != 0) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "%s belongs to the user %u: memory nodes use what belongs to their own user, or to root: name "
                         "another file, or remove it",
                         path, (unsigned int)about->st_uid);
    }
    if (!S_ISREG(about->st_mode)) {
        return S_ISCHR(about->st_mode) ? DMG_OK
                                       : dmg_error(DMG_ERR_ARGUMENT, "%s is neither a file nor a device", path);
    }
    if (about->st_mode & (S_IWGRP | S_IWOTH)) {
        return dmg_error(DMG_ERR_ARGUMENT, "others may write to %s (mode %04o): close it to them (chmod go-w)", path,
                         (unsigned int)(about->st_mode & 07777));
    }
    if (about->st_nlink > 1) {
        return dmg_error(DMG_ERR_ARGUMENT, "%s has %u names (hard links): memory nodes use a file with one", path,
                         (unsigned int)about->st_nlink);
    }
    return DMG_OK;
}

/* Open what is there, by no link, and look at what was opened. */
static dmg_status open_and_check(const char *path, bool follows_links, int *descriptor, struct stat *about)
{
    *descriptor = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | (follows_links ? 0 : O_NOFOLLOW));
    if (*descriptor < 0 && errno == ELOOP) {
        return dmg_error(DMG_ERR_ARGUMENT, "%s is a symbolic link: name what it leads to", path);
    }
    if (*descriptor < 0 || fstat(*descriptor, about) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "opening %s", path);
    }
    return check_owner(path, about);
}

static dmg_status open_device(const named_wish *wish, dmg_shm_segment *segment)
{
    uint64_t available;
    struct stat about;
    const char *path = wish->options->path;
    /* Devices are named by links of the system's (/dev/disk, /dev/char): what counts is what was opened. */
    dmg_status status = open_and_check(path, true, &segment->descriptor, &about);
    if (status == DMG_OK) {
        status = device_bytes(path, &about, &available);
    }
    if (status == DMG_OK) {
        status = fit(wish, PAGE_2M, available, segment);
    }
    if (status == DMG_OK) {
        segment->is_device = true;
        segment->device_node = node_of_device(&about);
        status = lock_memory(path, segment->descriptor);
    }
    return status == DMG_OK ? map_used(segment) : status;
}

/* The file system says what pages the memory has. */
static dmg_status find_page_bytes(const char *path, int descriptor, struct statfs *system, uint64_t *page_bytes)
{
    if (fstatfs(descriptor, system) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "asking about the file system of %s", path);
    }
    *page_bytes = PAGE_2M;
    if (system->f_type == HUGETLBFS_MAGIC) {
        *page_bytes = (uint64_t)system->f_bsize > PAGE_2M ? (uint64_t)system->f_bsize : PAGE_2M;
    } else if (system->f_type != TMPFS_MAGIC && system->f_type != SYSFS_MAGIC) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "%s is not in memory; use a file in /dev/shm or hugetlbfs, a DAX device, or the resource file "
                         "of a PCI device",
                         path);
    }
    return DMG_OK;
}

/* What the machine has for a hugetlbfs mount without a limit of its own, which says of itself that it has 0. */
static uint64_t free_hugepage_bytes(uint64_t page_bytes)
{
    dmg_huge_pages pages;
    uint64_t bytes;
    (void)dmg_huge_pages_read(page_bytes, -1, &pages);
    return dmg_checked_multiply(pages.available, page_bytes, &bytes) ? bytes : UINT64_MAX;
}

/* A file would be sparse, and its first write to a missing page would end the process. */
static dmg_status check_room(const char *path, const struct statfs *system, uint64_t wanted_bytes)
{
    uint64_t free_bytes = (uint64_t)system->f_bavail * (uint64_t)system->f_bsize;
    if (system->f_blocks == 0) { /* no limit of its own */
        free_bytes = system->f_type == HUGETLBFS_MAGIC ? free_hugepage_bytes((uint64_t)system->f_bsize) : UINT64_MAX;
    }
    if (system->f_type != SYSFS_MAGIC && wanted_bytes > free_bytes) {
        return dmg_error(DMG_ERR_MEMORY, "%s: its file system has %" PRIu64 " bytes free, and %" PRIu64 " are wanted",
                         path, free_bytes, wanted_bytes);
    }
    return DMG_OK;
}

/* A file that is there: of another program (a virtual machine's shared memory), or the resource of a PCI device. */
static dmg_status open_existing(const named_wish *wish, dmg_shm_segment *segment)
{
    const char *path = wish->options->path;
    struct statfs system;
    struct stat about;
    uint64_t page_bytes;
    dmg_status status = open_and_check(path, false, &segment->descriptor, &about);
    if (status == DMG_OK) {
        status = lock_memory(path, segment->descriptor);
    }
    if (status == DMG_OK) {
        status = find_page_bytes(path, segment->descriptor, &system, &page_bytes);
    }
    if (status == DMG_OK) {
        status = fit(wish, page_bytes, (uint64_t)about.st_size, segment);
    }
    if (status == DMG_OK) {
        uint64_t there = (uint64_t)about.st_blocks * 512;
        status = check_room(path, &system, segment->mapped_bytes > there ? segment->mapped_bytes - there : 0);
        segment->is_device = system.f_type == SYSFS_MAGIC;
        segment->device_node = segment->is_device ? node_of_resource(path) : -1;
    }
    return status == DMG_OK ? map_used(segment) : status;
}

static dmg_status create_file(const named_wish *wish, dmg_shm_segment *segment)
{
    const dmg_segment_options *options = wish->options;
    struct statfs system;
    uint64_t page_bytes;
    dmg_status status = find_page_bytes(options->path, segment->descriptor, &system, &page_bytes);
    if (status == DMG_OK) {
        status = fit(wish, page_bytes, INT64_MAX - page_bytes, segment);
    }
    if (status != DMG_OK) {
        return status;
    }
    if (segment->mapped_bytes % page_bytes != 0) {
        segment->mapped_bytes += page_bytes - segment->mapped_bytes % page_bytes;
    }
    if (ftruncate(segment->descriptor, (off_t)segment->mapped_bytes) != 0) {
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "giving %s a size of %" PRIu64 " bytes", options->path,
                               segment->mapped_bytes);
    }
    return check_room(options->path, &system, segment->mapped_bytes);
}

static dmg_status open_named(const named_wish *wish, dmg_shm_segment *segment)
{
    const char *path = wish->options->path;
    struct stat about;
    bool is_there = stat(path, &about) == 0;
    if (is_there && S_ISCHR(about.st_mode)) {
        return open_device(wish, segment);
    }
    if (is_there && dmg_shm_remove_leftover(path)) {
        is_there = false;
    }
    if (is_there && wish->may_exist) {
        return open_existing(wish, segment);
    }
    int folder;
    const char *name;
    dmg_status status = dmg_folder_to_make_in(path, &folder, &name);
    if (status != DMG_OK) {
        return status;
    }
    segment->descriptor =
        openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, DMG_SHM_SEGMENT_MODE);
    int failed = errno;
    close(folder);
    if (segment->descriptor < 0) {
        return failed == EEXIST
                   ? dmg_error(DMG_ERR_EXISTS,
                               "the file %s exists already: another memory node uses it, or another program "
                               "made it: name another one, or remove it",
                               path)
                   : dmg_error_errno(DMG_ERR_IO, failed, "creating %s", path);
    }
    segment->created_path = strdup(path);
    if (!segment->created_path) {
        unlink(path);
        return dmg_error(DMG_ERR_MEMORY, "creating %s: out of memory", path);
    }
    if (wish->may_exist) {
        (void)flock(segment->descriptor, LOCK_EX | LOCK_NB);
    }
    status = create_file(wish, segment);
    if (status != DMG_OK) {
        return status;
    }
    return dmg_shm_map(segment->descriptor, segment->mapped_bytes, segment->alignment, &segment->pointer);
}

dmg_status dmg_shm_segment_open(const char *path, uint64_t bytes, uint64_t alignment, void **pointer)
{
    struct stat about;
    int descriptor;
    dmg_status status = open_and_check(path, false, &descriptor, &about);
    uint64_t available = status == DMG_OK ? (uint64_t)about.st_size : 0;
    if (status != DMG_OK) {
        status = dmg_error_prefix(status, "the pool's memory");
    } else if (S_ISCHR(about.st_mode)) {
        status = device_bytes(path, &about, &available);
    }
    if (status == DMG_OK && available < bytes) {
        status = dmg_error(
            DMG_ERR_ARGUMENT,
            "%s has %" PRIu64 " bytes, and the memory node's memory %" PRIu64 ": name the right memory by path=", path,
            available, bytes);
    }
    if (status == DMG_OK) {
        status = dmg_shm_map(descriptor, bytes, alignment, pointer);
    }
    if (descriptor >= 0) {
        close(descriptor);
    }
    return status;
}

/* ---- placement ---- */

/* Put the mapped segment where it was asked for, and its pages there: before the first byte of it is touched. */
static dmg_status place(const dmg_segment_options *options, dmg_shm_segment *segment)
{
    dmg_status status = segment->is_device ? dmg_placement_check_device(options, options->path, segment->device_node)
                                           : dmg_placement_bind(options, segment->pointer, segment->mapped_bytes);
    if (status == DMG_OK) {
        status = dmg_placement_check_pages(options, segment->pointer, segment->bytes, &segment->placement);
    }
    /* Reserved, or a write finds the file system full later on, and that ends the process. */
    bool is_reserved = segment->is_used || segment->created_path;
    if (status == DMG_OK && is_reserved &&
        dmg_populate(segment->pointer, segment->mapped_bytes, segment->is_used, options->populated_bytes) != DMG_OK) {
        status = dmg_error(DMG_ERR_MEMORY,
                           "taking all of %s, %" PRIu64 " bytes: its file system or this machine's memory is full",
                           options->path, segment->mapped_bytes);
    }
    if (status == DMG_OK) {
        status = dmg_placement_finish(options, segment->pointer, segment->bytes, is_reserved, &segment->placement);
    }
    if (segment->is_device) {
        segment->placement.numa_node = segment->device_node;
    }
    return status;
}

dmg_status dmg_shm_segment_create(const dmg_segment_options *options, bool may_exist, uint64_t behind_min,
                                  uint64_t behind_max, dmg_shm_segment *segment)
{
    const named_wish wish = {options, may_exist, behind_min, behind_max};
    *segment = (dmg_shm_segment){.descriptor = -1};
    dmg_status status = options->path ? open_named(&wish, segment) : open_anonymous(options, segment);
    if (status == DMG_OK) {
        status = place(options, segment);
    }
    if (status != DMG_OK) {
        dmg_shm_segment_destroy(segment);
    }
    return status;
}

void dmg_shm_segment_destroy(dmg_shm_segment *segment)
{
    /* While the file is held: once it is not, somebody may remove it, and make another of that name. */
    if (segment->created_path) {
        unlink(segment->created_path);
        free(segment->created_path);
    }
    if (segment->pointer) {
        munmap(segment->pointer, segment->mapped_bytes);
    }
    if (segment->descriptor >= 0) {
        close(segment->descriptor);
    }
    *segment = (dmg_shm_segment){.descriptor = -1};
}
