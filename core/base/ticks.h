/**
 * @file ticks.h
 * The finest clock of the machine: cycles of the time-stamp counter where that is steady, else nanoseconds.
 *
 * Reading it takes a few nanoseconds, a fourth of what dmg_now_ns takes. All processes of a machine see the same ticks.
 */
#ifndef DMG_CORE_BASE_TICKS_H
#define DMG_CORE_BASE_TICKS_H

#include "core/base/clock.h"

#include <stdbool.h>

/** Whether the time-stamp counter is steady, and ticks are its cycles. Costs a microsecond or two: keep the answer. */
bool dmg_ticks_are_cycles(void);

/** Now, in ticks; the argument is what dmg_ticks_are_cycles said. */
static inline uint64_t dmg_ticks(bool are_cycles)
{
    return are_cycles ? __builtin_ia32_rdtsc() : dmg_now_ns();
}

/** A moment by two clocks. */
typedef struct dmg_ticks_pair {
    uint64_t ticks;
    uint64_t ns;
} dmg_ticks_pair;

/** Read ticks and a clock of clock_gettime (CLOCK_MONOTONIC and the like) as closely together as some tries allow. */
dmg_ticks_pair dmg_ticks_read_pair(bool are_cycles, int clock);

/** Ticks a second, by two pairs. */
static inline double dmg_ticks_a_second(dmg_ticks_pair from, dmg_ticks_pair to)
{
    return (double)(to.ticks - from.ticks) / (double)(to.ns - from.ns) * 1e9;
}

/** Measure how many ticks a second has: takes some milliseconds, sleeping. */
double dmg_ticks_measure_a_second(bool are_cycles);

#endif
