/**
 * @file huge_pages.h
 * The pages of 2 MiB or 1 GiB that an administrator sets aside (hugetlbfs).
 */
#ifndef DMG_CORE_BASE_HUGE_PAGES_H
#define DMG_CORE_BASE_HUGE_PAGES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dmg_huge_pages {
    uint64_t set_aside; /**< in use or not: what stands in nr_hugepages */
    uint64_t available; /**< that nobody uses or was promised, and what the kernel would add by itself */
} dmg_huge_pages;

/**
 * Read the counts of pages of this size, all of them or (with a node of 0 or more) those of one NUMA node.
 * @return false when the machine has no pages of this size; the counts are 0 then
 */
bool dmg_huge_pages_read(uint64_t page_bytes, int numa_node, dmg_huge_pages *pages);

/** The file that sets them aside, of the machine or of one NUMA node. */
void dmg_huge_pages_path(uint64_t page_bytes, int numa_node, const char *name, char *path, uint64_t capacity);

#endif
