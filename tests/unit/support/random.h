/**
 * @file random.h
 * Seeded random numbers for tests: the same sequence from a seed everywhere (splitmix64).
 */
#ifndef DMG_TEST_SUPPORT_RANDOM_H
#define DMG_TEST_SUPPORT_RANDOM_H

#include <stdint.h>

typedef struct dmg_random {
    uint64_t state; /**< the seed, to begin with */
} dmg_random;

/** The next 64 random bits. */
static inline uint64_t dmg_random_next(dmg_random *random)
{
    uint64_t z = random->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/** Uniform in [0, limit), near enough for tests; 0 when limit is 0. */
static inline uint64_t dmg_random_below(dmg_random *random, uint64_t limit)
{
    return limit > 0 ? dmg_random_next(random) % limit : 0;
}

#endif
