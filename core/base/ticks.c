#include "core/base/ticks.h"

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define CPUID_POWER         0x80000007u
#define CPUID_INVARIANT_TSC (1u << 8)
#define MEASURE_NS          UINT64_C(5000000)
#define PAIRS               16
#define ROUNDS              16 /* of them the quickest counts */
#define ROUND_READINGS      64
#define NANOSECONDS_SECOND  UINT64_C(1000000000)

bool dmg_ticks_are_cycles(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d = 0;
    return __get_cpuid(CPUID_POWER, &a, &b, &c, &d) && (d & CPUID_INVARIANT_TSC);
#else
    return false;
#endif
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

/* The quickest of some rounds, per reading: of many, since the clock may count in steps that are longer than one. */
static double measure_interval(bool are_cycles)
{
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t from = dmg_ticks_fenced(are_cycles);
        uint64_t to = from;
        for (int i = 0; i < ROUND_READINGS; i++) {
            to = dmg_ticks_fenced(are_cycles);
        }
        least = to - from < least ? to - from : least;
    }
    return (double)least / ROUND_READINGS;
}

static double measure_fence(bool are_cycles, double interval)
{
    uint64_t least = UINT64_MAX;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t from = dmg_ticks_fenced(are_cycles);
        for (int i = 0; i < ROUND_READINGS; i++) {
            dmg_ticks_fence();
        }
        uint64_t took = dmg_ticks_fenced(are_cycles) - from;
        least = took < least ? took : least;
    }
    return (double)least > interval ? ((double)least - interval) / ROUND_READINGS : 0;
}

static double measure_step(bool are_cycles)
{
    uint64_t least = UINT64_MAX;
    uint64_t before = dmg_ticks(are_cycles);
    for (int i = 0; i < ROUNDS * ROUND_READINGS; i++) {
        uint64_t now = dmg_ticks(are_cycles);
        if (now > before && now - before < least) {
            least = now - before;
        }
        before = now;
    }
    return least == UINT64_MAX ? 0 : (double)least;
}

dmg_ticks_costs dmg_ticks_measure_costs(bool are_cycles)
{
    double interval = measure_interval(are_cycles);
    return (dmg_ticks_costs){
        .interval = interval, .fence = measure_fence(are_cycles, interval), .step = measure_step(are_cycles)};
}
