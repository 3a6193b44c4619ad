#include "algorithms/algorithm.h"

#include <string.h>

extern const dmg_algorithm dmg_algorithm_bfs;
extern const dmg_algorithm dmg_algorithm_cc;
extern const dmg_algorithm dmg_algorithm_pagerank;
extern const dmg_algorithm dmg_algorithm_sssp;

const dmg_algorithm *const dmg_algorithms[] = {&dmg_algorithm_bfs, &dmg_algorithm_cc, &dmg_algorithm_pagerank,
                                               &dmg_algorithm_sssp, NULL};

const dmg_algorithm *dmg_algorithm_find(const char *name)
{
    for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm; algorithm++) {
        if (strcmp((*algorithm)->name, name) == 0) {
            return *algorithm;
        }
    }
    return NULL;
}
