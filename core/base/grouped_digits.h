/**
 * @file grouped_digits.h
 * Counts as people read them.
 */
#ifndef DMG_CORE_BASE_GROUPED_DIGITS_H
#define DMG_CORE_BASE_GROUPED_DIGITS_H

#include <stdint.h>

/** Room for any count, with its commas and the terminating zero. */
typedef struct dmg_grouped_digits {
    char text[28];
} dmg_grouped_digits;

/** "1,234,567". */
dmg_grouped_digits dmg_group_digits(uint64_t count);

#endif
