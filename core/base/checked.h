/**
 * @file checked.h
 * Arithmetic on sizes that came from outside: each returns false instead of wrapping.
 */
#ifndef DMG_CORE_BASE_CHECKED_H
#define DMG_CORE_BASE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool dmg_checked_add(uint64_t a, uint64_t b, uint64_t *sum)
{
    return !__builtin_add_overflow(a, b, sum);
}

static inline bool dmg_checked_multiply(uint64_t a, uint64_t b, uint64_t *product)
{
    return !__builtin_mul_overflow(a, b, product);
}

/** Round up to a multiple of a power of two. */
static inline bool dmg_checked_round_up(uint64_t value, uint64_t power_of_two, uint64_t *rounded)
{
    if (!dmg_checked_add(value, power_of_two - 1, rounded)) {
        return false;
    }
    *rounded &= ~(power_of_two - 1);
    return true;
}

/** True when [offset, offset + bytes) lies within [0, limit). */
static inline bool dmg_range_is_inside(uint64_t offset, uint64_t bytes, uint64_t limit)
{
    return offset <= limit && bytes <= limit - offset;
}

#endif
