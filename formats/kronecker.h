/**
 * @file kronecker.h
 * The Graph500 Kronecker (R-MAT) generator: A = 0.57, B = 0.19, C = 0.19, D = 0.05, ids scrambled.
 */
#ifndef DMG_FORMATS_KRONECKER_H
#define DMG_FORMATS_KRONECKER_H

#include "formats/graph.h"

typedef struct dmg_kronecker_options {
    uint32_t scale;       /**< 2^scale ids, 1 to 31; ids that no edge touches are not vertices */
    uint32_t edge_factor; /**< edges a vertex, at least 1 */
    uint64_t seed;
    bool is_directed; /**< else each edge is stored in both directions */
    bool is_weighted; /**< integers 1..255, uniform */
    bool drop_repeats;
    bool drop_loops;
    bool with_reverse;
} dmg_kronecker_options;

/** Generate a graph. The same options give the same graph everywhere. The caller closes it. */
dmg_status dmg_kronecker_generate(const dmg_kronecker_options *options, dmg_graph *graph);

#endif
