/**
 * @file placement.h
 * Where a memory node's segment lies and which pages back it: doing what was asked for, and finding out what was got.
 *
 * What was asked for and is not there is an error, unless the options allow less. What is reported is what the kernel
 * says, never what was asked.
 */
#ifndef DMG_TRANSPORT_PLACEMENT_H
#define DMG_TRANSPORT_PLACEMENT_H

#include "transport/transport.h"

#define DMG_PLACEMENT_NODES_MAX 1024

/** A thread's way of choosing NUMA nodes. */
typedef struct dmg_placement_policy {
    bool is_changed;
    int mode;
    unsigned long nodes[DMG_PLACEMENT_NODES_MAX / (8 * sizeof(unsigned long))];
} dmg_placement_policy;

/** Of DMG_PAGE_2M and DMG_PAGE_1G; 0 of DMG_PAGE_DEFAULT. */
uint64_t dmg_page_size_bytes(dmg_page_size page_size);

/** Something that was asked for is missing: `status`, or with one warning DMG_OK when the options allow less. */
dmg_status dmg_placement_lack(const dmg_segment_options *options, dmg_status status);

/** Whether the NUMA node that the options name has memory for this process. DMG_ERR_UNSUPPORTED. */
dmg_status dmg_placement_check_node(const dmg_segment_options *options);

/**
 * Bind [start, start + bytes) to the NUMA node of the options, if they name one: pages that are there move, pages to
 * come will lie there. Before anything is populated.
 */
dmg_status dmg_placement_bind(const dmg_segment_options *options, void *start, uint64_t bytes);

/**
 * Memory of a device lies where the device is: whether that is the NUMA node that was asked for. `device_node` is what
 * the system says, -1 when it does not.
 */
dmg_status dmg_placement_check_device(const dmg_segment_options *options, const char *path, int device_node);

/**
 * While a library allocates, this thread's pages, and those of threads that it starts, come from the NUMA node of the
 * options. Nothing happens without one, or without that node: dmg_placement_bind says so.
 */
void dmg_placement_enter(const dmg_segment_options *options, dmg_placement_policy *before);
void dmg_placement_leave(const dmg_placement_policy *before);

/** Which pages back the mapping, against what was asked for. Cheapest before it is populated. */
dmg_status dmg_placement_check_pages(const dmg_segment_options *options, const void *start, uint64_t bytes,
                                     dmg_placement *placement);

/**
 * The last step: populate what was to be pre-faulted and is not (`is_populated`), and ask the kernel on which node the
 * pages lie.
 */
dmg_status dmg_placement_finish(const dmg_segment_options *options, void *start, uint64_t bytes, bool is_populated,
                                dmg_placement *placement);

#endif
