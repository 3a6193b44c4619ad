/*
 * The recursive matrix of Chakrabarti, Zhan and Faloutsos (R-MAT, SDM 2004) with the parameters of the Graph500
 * benchmark. Every random number is a function of (seed, edge, draw) by the output function of splitmix64 (Steele, Lea
 * and Flood, OOPSLA 2014), so an edge does not depend on the ones before it.
 */
#include "formats/kronecker.h"

#include "core/base/error.h"
#include "formats/graph_builder.h"

#include <inttypes.h>

#define SCALE_MAX 31

/* Cumulative probabilities of the quadrants, A = 0.57, B = 0.19, C = 0.19, as 32-bit fractions. */
#define FRACTION(x)   ((uint32_t)((x)*4294967296.0))
#define UP_TO_A       FRACTION(0.57)
#define UP_TO_B       FRACTION(0.76)
#define UP_TO_C       FRACTION(0.95)
#define WEIGHT_DRAW   (SCALE_MAX + 1)
#define DRAWS_AN_EDGE 64
#define GOLDEN_GAMMA  UINT64_C(0x9e3779b97f4a7c15)

static inline uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t draw(uint64_t key, uint64_t edge, uint32_t number)
{
    return mix(key + (edge * DRAWS_AN_EDGE + number + 1) * GOLDEN_GAMMA);
}

#define SCRAMBLE_ROUNDS 3

/** A permutation of the `bits`-bit numbers: odd multipliers and shifted exclusive-ors can both be undone. */
typedef struct permutation {
    uint64_t mask;
    uint32_t shift;
    uint64_t multipliers[SCRAMBLE_ROUNDS];
    uint64_t addends[SCRAMBLE_ROUNDS];
} permutation;

static permutation make_permutation(uint32_t bits, uint64_t key)
{
    permutation made = {.mask = (UINT64_C(1) << bits) - 1, .shift = bits / 2 + 1};
    for (uint32_t round = 0; round < SCRAMBLE_ROUNDS; round++) {
        made.multipliers[round] = mix(key + round) | 1;
        made.addends[round] = mix(~key + round);
    }
    return made;
}

static inline uint64_t scramble(const permutation *scrambling, uint64_t id)
{
    for (uint32_t round = 0; round < SCRAMBLE_ROUNDS; round++) {
        id = (id * scrambling->multipliers[round] + scrambling->addends[round]) & scrambling->mask;
        id ^= id >> scrambling->shift;
    }
    return id;
}

/** Two levels of the recursion a draw: its upper and lower half. */
static inline void descend(uint32_t fraction, uint64_t *row, uint64_t *column)
{
    uint32_t quadrant = (fraction >= UP_TO_A) + (fraction >= UP_TO_B) + (fraction >= UP_TO_C);
    *row = *row << 1 | quadrant >> 1;
    *column = *column << 1 | (quadrant & 1);
}

dmg_status dmg_kronecker_generate(const dmg_kronecker_options *options, dmg_graph *graph)
{
    if (options->scale < 1 || options->scale > SCALE_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "kronecker scale %" PRIu32 ": expected 1 to %d", options->scale, SCALE_MAX);
    }
    if (options->edge_factor < 1) {
        return dmg_error(DMG_ERR_ARGUMENT, "kronecker edge factor 0: expected at least 1");
    }
    dmg_builder_options builder_options = {.is_directed = options->is_directed,
                                           .is_weighted = options->is_weighted,
                                           .drop_repeats = options->drop_repeats,
                                           .drop_loops = options->drop_loops,
                                           .with_reverse = options->with_reverse};
    dmg_graph_builder *builder;
    dmg_status status = dmg_graph_builder_create(&builder_options, &builder);
    if (status != DMG_OK) {
        return status;
    }
    uint64_t key = mix(options->seed + GOLDEN_GAMMA);
    permutation scrambling = make_permutation(options->scale, mix(~key));
    uint64_t edge_count = (uint64_t)options->edge_factor << options->scale;
    for (uint64_t edge = 0; edge < edge_count && status == DMG_OK; edge++) {
        uint64_t row = 0;
        uint64_t column = 0;
        for (uint32_t level = 0; level < options->scale; level += 2) {
            uint64_t random = draw(key, edge, level);
            descend((uint32_t)(random >> 32), &row, &column);
            if (level + 1 < options->scale) {
                descend((uint32_t)random, &row, &column);
            }
        }
        double weight = options->is_weighted ? (double)(1 + ((draw(key, edge, WEIGHT_DRAW) >> 32) * 255 >> 32)) : 0;
        status = dmg_graph_builder_add(builder, scramble(&scrambling, row), scramble(&scrambling, column), weight);
    }
    if (status == DMG_OK) {
        status = dmg_graph_builder_finish(builder, graph, NULL);
    }
    dmg_graph_builder_destroy(builder);
    return status;
}
