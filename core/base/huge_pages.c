#include "core/base/huge_pages.h"

#include <inttypes.h>
#include <stdio.h>

#define PATH_BYTES 160

void dmg_huge_pages_path(uint64_t page_bytes, int numa_node, const char *name, char *path, uint64_t capacity)
{
    char of_node[32] = "";
    if (numa_node >= 0) {
        snprintf(of_node, sizeof of_node, "node/node%d", numa_node);
    }
    snprintf(path, capacity, "/sys/%s%s/hugepages/hugepages-%" PRIu64 "kB/%s",
             numa_node >= 0 ? "devices/system/" : "kernel/mm", of_node, page_bytes >> 10, name);
}

static bool read_count(uint64_t page_bytes, int numa_node, const char *name, uint64_t *count)
{
    char path[PATH_BYTES];
    dmg_huge_pages_path(page_bytes, numa_node, name, path, sizeof path);
    FILE *file = fopen(path, "re");
    bool is_found = file && fscanf(file, "%" SCNu64, count) == 1;
    if (file) {
        fclose(file);
    }
    return is_found;
}

bool dmg_huge_pages_read(uint64_t page_bytes, int numa_node, dmg_huge_pages *pages)
{
    uint64_t free_count, promised = 0, may_add = 0, added = 0;
    *pages = (dmg_huge_pages){0};
    if (!read_count(page_bytes, numa_node, "nr_hugepages", &pages->set_aside) ||
        !read_count(page_bytes, numa_node, "free_hugepages", &free_count)) {
        return false;
    }
    if (numa_node < 0) { /* nodes do not say these */
        (void)read_count(page_bytes, numa_node, "resv_hugepages", &promised);
        (void)read_count(page_bytes, numa_node, "nr_overcommit_hugepages", &may_add);
        (void)read_count(page_bytes, numa_node, "surplus_hugepages", &added);
    }
    pages->available = (free_count > promised ? free_count - promised : 0) + (may_add > added ? may_add - added : 0);
    return true;
}
