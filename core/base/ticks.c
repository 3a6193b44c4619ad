#include "core/base/ticks.h"

#include <cpuid.h>
#include <time.h>

#define CPUID_POWER         0x80000007u
#define CPUID_INVARIANT_TSC (1u << 8)
#define MEASURE_NS          UINT64_C(5000000)
#define PAIRS               16
#define NANOSECONDS_SECOND  UINT64_C(1000000000)

bool dmg_ticks_are_cycles(void)
{
    unsigned a, b, c, d = 0;
    return __get_cpuid(CPUID_POWER, &a, &b, &c, &d) && (d & CPUID_INVARIANT_TSC);
}

dmg_ticks_pair dmg_ticks_read_pair(bool are_cycles, int clock)
{
    /* The tightest of some readings, so that an interrupt between the two does no harm. */
    dmg_ticks_pair pair = {0};
    uint64_t tightest = UINT64_MAX;
    for (int i = 0; i < PAIRS; i++) {
        struct timespec now;
        uint64_t before = dmg_ticks(are_cycles);
        clock_gettime(clock, &now);
        uint64_t after = dmg_ticks(are_cycles);
        if (after - before < tightest) {
            tightest = after - before;
            pair.ticks = before + (after - before) / 2;
            pair.ns = (uint64_t)now.tv_sec * NANOSECONDS_SECOND + (uint64_t)now.tv_nsec;
        }
    }
    return pair;
}

double dmg_ticks_measure_a_second(bool are_cycles)
{
    if (!are_cycles) {
        return (double)NANOSECONDS_SECOND;
    }
    dmg_ticks_pair from = dmg_ticks_read_pair(are_cycles, CLOCK_MONOTONIC);
    dmg_sleep_ns(MEASURE_NS);
    return dmg_ticks_a_second(from, dmg_ticks_read_pair(are_cycles, CLOCK_MONOTONIC));
}
