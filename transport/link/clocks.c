#include "transport/link/clocks.h"

#include <math.h>

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
