#include "transport/link/timing.h"

void dmg_link_demand_add(dmg_link_demand *sum, const dmg_link_costs *costs, dmg_operation_kind kind, uint64_t bytes)
{
    sum->operations += costs->operation[kind];
    sum->count++;
    switch (kind) {
    case DMG_OPERATION_READ:
        sum->read_bytes += bytes;
        break;
    case DMG_OPERATION_CAS:
    case DMG_OPERATION_FAA: /* the word, or its line, goes both ways */
        sum->read_bytes += bytes;
        sum->write_bytes += bytes;
        sum->atomics++;
        break;
    default:
        sum->write_bytes += bytes;
        break;
    }
}

static inline uint64_t reserve(dmg_link_clock *clock, uint64_t now, uint64_t cost)
{
    return cost ? dmg_link_reserve(clock, now, cost) : now;
}

dmg_link_starts dmg_link_reserve_batch(dmg_link_way *way, const dmg_link_costs *costs, const dmg_link_demand *batch,
                                       uint64_t start)
{
    dmg_link_clock *clocks = way->clocks;
    uint64_t now = start > way->epoch ? (start - way->epoch) << DMG_LINK_UNIT_BITS : 0;
    return (dmg_link_starts){
        .operations = reserve(&clocks[DMG_LINK_OPERATIONS], now, batch->operations),
        .read = reserve(&clocks[DMG_LINK_READ_BYTES], now, dmg_link_bytes_cost(batch->read_bytes, costs->read_byte)),
        .write =
            reserve(&clocks[DMG_LINK_WRITE_BYTES], now, dmg_link_bytes_cost(batch->write_bytes, costs->write_byte)),
        .atomics = reserve(&clocks[DMG_LINK_ATOMICS], now, batch->atomics * costs->atomic),
        .own_operations = dmg_link_reserve_own(&way->operations_free_at, now, batch->count * costs->channel_operation),
        .own_read = dmg_link_reserve_own(&way->read_free_at, now,
                                         dmg_link_bytes_cost(batch->read_bytes, costs->channel_read_byte)),
        .own_write = dmg_link_reserve_own(&way->write_free_at, now,
                                          dmg_link_bytes_cost(batch->write_bytes, costs->channel_write_byte)),
        .own_atomics = dmg_link_reserve_own(&way->atomics_free_at, now, batch->atomics * costs->channel_atomic)};
}

static inline uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t dmg_link_departure(const dmg_link_way *way, const dmg_link_costs *costs, const dmg_link_starts *starts,
                            const dmg_link_demand *before, const dmg_link_demand *with)
{
    uint64_t at = later(starts->operations + before->operations,
                        starts->own_operations + before->count * costs->channel_operation);
    if (with->read_bytes != before->read_bytes) {
        at = later(at, starts->read + dmg_link_bytes_cost(with->read_bytes, costs->read_byte));
        at = later(at, starts->own_read + dmg_link_bytes_cost(with->read_bytes, costs->channel_read_byte));
    }
    if (with->write_bytes != before->write_bytes) {
        at = later(at, starts->write + dmg_link_bytes_cost(with->write_bytes, costs->write_byte));
        at = later(at, starts->own_write + dmg_link_bytes_cost(with->write_bytes, costs->channel_write_byte));
    }
    if (with->atomics != before->atomics) {
        at = later(at, starts->atomics + before->atomics * costs->atomic);
        at = later(at, starts->own_atomics + before->atomics * costs->channel_atomic);
    }
    return way->epoch + (at >> DMG_LINK_UNIT_BITS);
}

uint64_t dmg_link_depart(dmg_link_way *way, const dmg_link_costs *costs, dmg_operation_kind kind, uint64_t bytes,
                         uint64_t start)
{
    const dmg_link_demand nothing = {0};
    dmg_link_demand all = {0};
    dmg_link_demand_add(&all, costs, kind, bytes);
    dmg_link_starts starts = dmg_link_reserve_batch(way, costs, &all, start);
    return dmg_link_departure(way, costs, &starts, &nothing, &all);
}
