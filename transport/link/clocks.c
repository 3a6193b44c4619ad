#include "transport/link/clocks.h"

#include <cpuid.h>
#include <math.h>

#define CPUID_POWER           0x80000007u
#define CPUID_INVARIANT_TSC   (1u << 8)
#define MEASURE_NS            UINT64_C(5000000)
#define PAIRS                 16
#define NANOSECONDS_SECOND    1e9
#define UNITS_A_TICK          ((double)(1 << DMG_LINK_UNIT_BITS))
#define FRACTIONS_A_BYTE_UNIT 4294967296.0 /* 2^DMG_LINK_BYTE_BITS */

static uint64_t round_cost(double cost)
{
    return cost >= 0x1p62 ? UINT64_C(1) << 62 : (uint64_t)llround(cost);
}

uint64_t dmg_link_operation_cost(double rate, double ticks_a_second)
{
    return rate > 0 ? round_cost(ticks_a_second * UNITS_A_TICK / rate) : 0;
}

uint64_t dmg_link_byte_cost(double bandwidth, double ticks_a_second)
{
    return bandwidth > 0 ? round_cost(ticks_a_second * UNITS_A_TICK * FRACTIONS_A_BYTE_UNIT / bandwidth) : 0;
}

bool dmg_link_ticks_are_cycles(void)
{
    unsigned a, b, c, d = 0;
    return __get_cpuid(CPUID_POWER, &a, &b, &c, &d) && (d & CPUID_INVARIANT_TSC);
}

/* A tick count and the nanosecond that belongs to it: the tightest of some readings, so that an interrupt between the two does no harm. */
static void read_pair(bool are_cycles, uint64_t *ticks, uint64_t *ns)
{
    uint64_t tightest = UINT64_MAX;
    for (int i = 0; i < PAIRS; i++) {
        uint64_t before = dmg_link_ticks(are_cycles);
        uint64_t now_ns = dmg_now_ns();
        uint64_t after = dmg_link_ticks(are_cycles);
        if (after - before < tightest) {
            tightest = after - before;
            *ticks = before + (after - before) / 2;
            *ns = now_ns;
        }
    }
}

double dmg_link_measure_ticks_a_second(bool are_cycles)
{
    if (!are_cycles) {
        return NANOSECONDS_SECOND;
    }
    uint64_t ticks[2] = {0};
    uint64_t ns[2] = {0};
    read_pair(are_cycles, &ticks[0], &ns[0]);
    dmg_sleep_ns(MEASURE_NS);
    read_pair(are_cycles, &ticks[1], &ns[1]);
    return (double)(ticks[1] - ticks[0]) / (double)(ns[1] - ns[0]) * NANOSECONDS_SECOND;
}
