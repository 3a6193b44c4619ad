/**
 * @file timing.h
 * When operations depart: what a batch takes of a link's resources, and when each of its operations has been served.
 */
#ifndef DMG_TRANSPORT_LINK_TIMING_H
#define DMG_TRANSPORT_LINK_TIMING_H

#include "transport/counters.h"
#include "transport/link.h"
#include "transport/link/clocks.h"

/** What operations in the tail of a latency's distribution take on top of it; ticks. */
typedef struct dmg_link_tail {
    uint64_t p99, p999;
} dmg_link_tail;

/** The settings in ticks and units. */
typedef struct dmg_link_costs {
    uint64_t latency[DMG_OPERATION_KINDS]; /**< ticks */
    dmg_link_tail tails[DMG_OPERATION_KINDS];
    uint64_t operation[DMG_OPERATION_KINDS]; /**< units of the link's operations */
    uint64_t read_byte, write_byte;          /**< units, in fixed point */
    uint64_t atomic;
    uint64_t channel_operation; /**< units of one connection's operations */
    uint64_t channel_read_byte, channel_write_byte;
    uint64_t channel_atomic;
    uint64_t line_bytes; /**< a power of two */
} dmg_link_costs;

void dmg_link_costs_from(const dmg_link_settings *settings, double ticks_a_second, dmg_link_costs *costs);

/** One channel's way to one node: the clocks of the node's link, and limits of its own. */
typedef struct dmg_link_way {
    dmg_link_clock *clocks; /**< the link's, or, when accounting, this channel's own */
    uint64_t epoch;         /**< of the clocks; ticks */
    uint64_t operations_free_at, atomics_free_at, read_free_at, write_free_at; /**< own limits; units */
} dmg_link_way;

#define DMG_LINK_FIRST_DRAW UINT64_C(0x9e3779b97f4a7c15)
/** Of 2^20: 0.15 and 1.5 per cent. */
#define DMG_LINK_P999_SHARE 1573
#define DMG_LINK_P99_SHARE  15729

/**
 * What the next operation takes on top of its kind's latency; `drawn` is the channel's place in the sequence, from
 * DMG_LINK_FIRST_DRAW on. The shares lie a little beyond the percentiles, so that these are what a measurement shows.
 */
static inline uint64_t dmg_link_draw_tail(const dmg_link_costs *costs, dmg_operation_kind kind, uint64_t *drawn)
{
    const dmg_link_tail *tail = &costs->tails[kind];
    if (tail->p999 == 0) {
        return 0;
    }
    *drawn ^= *drawn << 13;
    *drawn ^= *drawn >> 7;
    *drawn ^= *drawn << 17;
    uint64_t place = *drawn * UINT64_C(0x2545f4914f6cdd1d) >> 44; /* below 2^20 */
    return place < DMG_LINK_P999_SHARE ? tail->p999 : place < DMG_LINK_P99_SHARE ? tail->p99 : 0;
}

/** What operations take, added up. */
typedef struct dmg_link_demand {
    uint64_t operations; /**< units */
    uint64_t count;
    uint64_t read_bytes;
    uint64_t write_bytes;
    uint64_t atomics;
} dmg_link_demand;

void dmg_link_demand_add(dmg_link_demand *sum, const dmg_link_costs *costs, dmg_operation_kind kind, uint64_t bytes);

/** Where the time that was reserved of each resource begins; units. */
typedef struct dmg_link_starts {
    uint64_t operations, read, write, atomics;
    uint64_t own_operations, own_read, own_write, own_atomics;
} dmg_link_starts;

/** Reserve what a batch that begins at `start` (ticks) takes, in one step a resource. */
dmg_link_starts dmg_link_reserve_batch(dmg_link_way *way, const dmg_link_costs *costs, const dmg_link_demand *batch,
                                       uint64_t start);

/**
 * When an operation of the batch departs, in ticks: `before` was served before it, `with` is that and the operation
 * itself. It need not wait for its own turn at the limits of rates (a lone operation takes just the latency), but for
 * its bytes to be on the link.
 */
uint64_t dmg_link_departure(const dmg_link_way *way, const dmg_link_costs *costs, const dmg_link_starts *starts,
                            const dmg_link_demand *before, const dmg_link_demand *with);

/** A batch of one operation: when it departs, in ticks. */
uint64_t dmg_link_depart(dmg_link_way *way, const dmg_link_costs *costs, dmg_operation_kind kind, uint64_t bytes,
                         uint64_t start);

/** The bytes that a link with lines moves for a span. */
static inline uint64_t dmg_link_counted_bytes(const dmg_link_costs *costs, uint64_t offset, uint64_t bytes)
{
    uint64_t mask = costs->line_bytes - 1;
    return ((offset + bytes + mask) & ~mask) - (offset & ~mask);
}

#endif
