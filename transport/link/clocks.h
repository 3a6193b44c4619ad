/**
 * @file clocks.h
 * The arithmetic of the link model: time in fixed point, and virtual departure clocks.
 *
 * A *clock* says when a resource of a link is free again (the generic cell rate algorithm with no burst). To reserve a
 * cost is to move it on: from its value when it lies ahead, else from now. A process that dies in between leaves a
 * clock that is right.
 *
 * Time comes in *ticks* (core/base/ticks.h) and, on clocks, in *units* of 1/256
 * tick since the clocks' epoch: at 3 GHz they last for 270 days, and the rounding of a 64-byte transfer at 25 GB/s is
 * below 0.1 per cent. What a byte costs is in units with 32 more bits of fraction, and is multiplied by the bytes of a
 * whole batch, so errors do not add up.
 */
#ifndef DMG_TRANSPORT_LINK_CLOCKS_H
#define DMG_TRANSPORT_LINK_CLOCKS_H

#include <stdatomic.h>
#include <stdint.h>

#define DMG_LINK_UNIT_BITS 8
#define DMG_LINK_BYTE_BITS 32

/** What an operation takes of each resource of a link. */
typedef enum dmg_link_resource {
    DMG_LINK_OPERATIONS,
    DMG_LINK_READ_BYTES,
    DMG_LINK_WRITE_BYTES,
    DMG_LINK_ATOMICS,
    DMG_LINK_RESOURCES
} dmg_link_resource;

/** On a cache line of its own: the clocks of a link are used by all cores. */
typedef struct dmg_link_clock {
    _Alignas(64) _Atomic uint64_t free_at; /**< units */
} dmg_link_clock;

/** The clocks of one memory node's link: in the page that the node's clients share (shared_page.h), zero at first. */
typedef struct dmg_link_page {
    _Atomic uint64_t epoch; /**< ticks; where the clocks count from: set by the first client */
    dmg_link_clock clocks[DMG_LINK_RESOURCES];
} dmg_link_page;

/**
 * Reserve a cost (units). Returns when the reserved time begins: `now` or later. Of reservations that follow each other
 * without a gap, each begins where the one before ended. Thread-safe, also between processes.
 */
static inline uint64_t dmg_link_reserve(dmg_link_clock *clock, uint64_t now, uint64_t cost)
{
    uint64_t free_at = atomic_load_explicit(&clock->free_at, memory_order_relaxed);
    while (free_at < now) {
        if (atomic_compare_exchange_weak_explicit(&clock->free_at, &free_at, now + cost, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            return now;
        }
    }
    /* It only ever moves forward, so it still lies ahead. */
    return atomic_fetch_add_explicit(&clock->free_at, cost, memory_order_relaxed);
}

/** The same for a clock that one thread owns. */
static inline uint64_t dmg_link_reserve_own(uint64_t *free_at, uint64_t now, uint64_t cost)
{
    uint64_t start = *free_at < now ? now : *free_at;
    *free_at = start + cost;
    return start;
}

/** Units that so many bytes cost, rounded down once. */
static inline uint64_t dmg_link_bytes_cost(uint64_t bytes, uint64_t cost_a_byte)
{
    return (uint64_t)((unsigned __int128)bytes * cost_a_byte >> DMG_LINK_BYTE_BITS);
}

/** Units of one operation at a rate (per second), at so many ticks a second; 0 for no limit. */
uint64_t dmg_link_operation_cost(double rate, double ticks_a_second);
/** Units of one byte, in fixed point, at a bandwidth (bytes a second); 0 for no limit. */
uint64_t dmg_link_byte_cost(double bandwidth, double ticks_a_second);

#endif
