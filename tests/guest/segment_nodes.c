/*
 * Where the pages of a process's mapping lie: segment_nodes PROCESS NAME prints "NODE COUNT" for each NUMA node that
 * holds pages of the largest mapping whose name contains NAME. The kernel is asked by move_pages, which moves nothing
 * when it is given no nodes.
 */
#include <inttypes.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NODES_MAX   64
#define PAGES_ONCE  4096
#define COUNT_LIMIT (UINT64_C(1) << 24)

static int find_mapping(int process, const char *name, uintptr_t *start, uint64_t *bytes)
{
    char path[64];
    char line[4096];
    snprintf(path, sizeof path, "/proc/%d/maps", process);
    FILE *maps = fopen(path, "re");
    *bytes = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        uintptr_t first;
        uintptr_t end;
        if (strstr(line, name) && sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &first, &end) == 2 && end - first > *bytes) {
            *start = first;
            *bytes = end - first;
        }
    }
    if (maps) {
        fclose(maps);
    }
    return *bytes != 0;
}

int main(int argc, char **argv)
{
    uintptr_t start = 0;
    uint64_t bytes;
    if (argc != 3 || !find_mapping(atoi(argv[1]), argv[2], &start, &bytes)) {
        fprintf(stderr, "usage: segment_nodes PROCESS NAME, of a mapping that the process has\n");
        return 2;
    }
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t count = bytes / page_bytes < COUNT_LIMIT ? bytes / page_bytes : COUNT_LIMIT;
    uint64_t nodes[NODES_MAX] = {0};
    uint64_t absent = 0;
    static void *pages[PAGES_ONCE];
    static int status[PAGES_ONCE];
    for (uint64_t done = 0; done < count; done += PAGES_ONCE) {
        uint64_t batch = count - done < PAGES_ONCE ? count - done : PAGES_ONCE;
        for (uint64_t i = 0; i < batch; i++) {
            pages[i] = (void *)(start + (done + i) * page_bytes);
        }
        if (move_pages(atoi(argv[1]), batch, pages, NULL, status, 0) != 0) {
            perror("move_pages");
            return 1;
        }
        for (uint64_t i = 0; i < batch; i++) {
            if (status[i] >= 0 && status[i] < NODES_MAX) {
                nodes[status[i]]++;
            } else {
                absent++;
            }
        }
    }
    for (int node = 0; node < NODES_MAX; node++) {
        if (nodes[node] != 0) {
            printf("%d %" PRIu64 "\n", node, nodes[node]);
        }
    }
    fprintf(stderr, "%" PRIu64 " pages are not there\n", absent);
    return 0;
}
