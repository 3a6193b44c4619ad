/**
 * @file ticks.h
 * The finest clock of the machine: cycles of the time-stamp counter where that is steady, else nanoseconds. All
 * processes of a machine see the same ticks.
 *
 * A processor executes out of order, and the clock is no exception: it is read before loads have arrived that stand in
 * front of it, and loads that stand behind it begin before. There are two ways to read it:
 *
 *     dmg_ticks         takes a few nanoseconds, a fourth of what dmg_now_ns takes. For deadlines, for moments between
 *                       which nothing of the thread's own memory is timed, and for spans of many operations
 *     dmg_ticks_fenced  waits for what came before, and lets nothing begin that comes after. For both ends of every
 *                       interval that times single accesses: without, a load of 160 ns looks like one of 10
 *
 * What two fenced readings take by themselves (dmg_ticks_measure_costs) is part of the interval between them.
 */
#ifndef DMG_CORE_BASE_TICKS_H
#define DMG_CORE_BASE_TICKS_H

#include "core/base/clock.h"

#include <stdbool.h>

/** Whether the time-stamp counter is steady, and ticks are its cycles. Costs a microsecond or two: keep the answer. */
bool dmg_ticks_are_cycles(void);

/** Now, in ticks, not in order with loads and stores; the argument is what dmg_ticks_are_cycles said. */
static inline uint64_t dmg_ticks(bool are_cycles)
{
#if defined(__x86_64__)
    return are_cycles ? __builtin_ia32_rdtsc() : dmg_now_ns();
#else
    (void)are_cycles;
    return dmg_now_ns();
#endif
}

/** Until all loads of this thread have arrived and all others see its stores; nothing that follows has begun. */
static inline void dmg_ticks_fence(void)
{
#if defined(__x86_64__)
    /* mfence for the stores; it need not keep what is no access, as the clock, from overtaking it. */
    __builtin_ia32_mfence();
    __builtin_ia32_lfence();
#elif defined(__aarch64__)
    __asm__ volatile("dsb sy\n\tisb" ::: "memory");
#else
#error "which instructions wait for this processor's loads and stores?"
#endif
}

/** Now, in ticks: after everything before it, and before everything after it. */
static inline uint64_t dmg_ticks_fenced(bool are_cycles)
{
    dmg_ticks_fence();
    uint64_t now = dmg_ticks(are_cycles);
#if defined(__x86_64__)
    __builtin_ia32_lfence(); /* its other half: no store that came before is on its way any more */
#else
    dmg_ticks_fence();
#endif
    return now;
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

/** What the clock and its fences take by themselves; ticks. */
typedef struct dmg_ticks_costs {
    double interval; /**< between two dmg_ticks_fenced with nothing in between */
    double fence;    /**< of a dmg_ticks_fence with nothing to wait for */
    double step;     /**< by which readings differ at least: some processors count in steps of many cycles */
} dmg_ticks_costs;

/** Measure them: takes some tens of microseconds. */
dmg_ticks_costs dmg_ticks_measure_costs(bool are_cycles);

/** What an interval between two fenced readings timed: without what they take themselves. */
static inline uint64_t dmg_ticks_within(uint64_t from, uint64_t to, const dmg_ticks_costs *costs)
{
    double ticks = (double)(to - from) - costs->interval;
    return ticks > 0 ? (uint64_t)(ticks + 0.5) : 0;
}

#endif
