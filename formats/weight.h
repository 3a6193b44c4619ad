/**
 * @file weight.h
 * The number that a weight stands for.
 *
 * A float stands for the decimal number that it was rounded from, as far as that can be told: 0.1 is 0.1 and not
 * 0.10000000149011612, which is the float's own value. Decimals of 6 digits, and most of 7, come back exactly; numbers
 * that are no such decimals are the float's value. Either way the float is the nearest one to its number.
 */
#ifndef DMG_FORMATS_WEIGHT_H
#define DMG_FORMATS_WEIGHT_H

#include "formats/graph.h"

#include <string.h>

/** The largest power of ten that a double holds exactly. */
#define DMG_EXACT_POWER_OF_10 22

/** 10^power, 0 <= power <= DMG_EXACT_POWER_OF_10. */
static inline double dmg_power_of_10(int power)
{
    static const double powers[DMG_EXACT_POWER_OF_10 + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                             1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                             1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    return powers[power];
}

/**
 * The decimal that a float was rounded from. Of all powers of ten the finest is taken whose multiples are farther apart
 * than floats are at this place: then no two of them have the same float. When the nearest multiple has this float, it
 * is the number. Costs some 5 ns.
 */
static inline double dmg_weight_decimal(float weight)
{
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    int exponent = (int)(bits >> 23 & 0xff) - 127;
    /*
     * Floats are 2^(exponent - 23) apart, and 10^-digits is the finest power that is no less. 315653 / 2^20 is the
     * logarithm of 2 to base ten; the shift rounds down.
     */
    int digits = ((23 - exponent) * 315653) >> 20;
    double value = (double)weight;
    if (digits > DMG_EXACT_POWER_OF_10 || digits < -DMG_EXACT_POWER_OF_10) {
        return value;
    }
    /* Adding this leaves no bits for a fraction, which rounds; the multiples' numbers are below 2^24. */
    const double rounder = 0x1.8p52;
    double power = dmg_power_of_10(digits < 0 ? -digits : digits);
    double decimal =
        digits < 0 ? ((value / power + rounder) - rounder) * power : ((value * power + rounder) - rounder) / power;
    return (float)decimal == weight ? decimal : value;
}

/** A weight as the algorithms and the outputs take it; 1 where the graph has none. */
static inline double dmg_weight_value(const dmg_weight *weight, dmg_weight_kind kind)
{
    return kind == DMG_WEIGHT_NONE    ? 1
           : kind == DMG_WEIGHT_INT32 ? (double)weight->as_int32
                                      : dmg_weight_decimal(weight->as_float32);
}

#endif
