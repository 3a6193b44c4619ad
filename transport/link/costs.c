/*
 * Settings of a link: their names, their limits, and what they are in ticks and units.
 */
#include "core/base/error.h"
#include "transport/link/model.h"

#include <math.h>

#define GIGA            1e9
#define MEGA            1e6
#define LATENCY_NS_MOST 1e9
#define BANDWIDTH_LEAST 1e-4 /* GB/s */
#define BANDWIDTH_MOST  1e5
#define RATE_LEAST      1e-4 /* Mops */
#define RATE_MOST       1e5
#define LINE_BYTES_MOST 4096
#define NANOSECONDS     1e9

static const char *const cell_names[DMG_LINK_CELLS] = {
    [DMG_LINK_READ_LATENCY] = "read_latency_ns",
    [DMG_LINK_WRITE_LATENCY] = "write_latency_ns",
    [DMG_LINK_ATOMIC_LATENCY] = "atomic_latency_ns",
    [DMG_LINK_MESSAGE_LATENCY] = "message_latency_ns",
    [DMG_LINK_READ_BANDWIDTH] = "read_bandwidth_gbs",
    [DMG_LINK_WRITE_BANDWIDTH] = "write_bandwidth_gbs",
    [DMG_LINK_CHANNEL_READ_BANDWIDTH] = "channel_read_bandwidth_gbs",
    [DMG_LINK_CHANNEL_WRITE_BANDWIDTH] = "channel_write_bandwidth_gbs",
    [DMG_LINK_READ_RATE] = "read_rate_mops",
    [DMG_LINK_WRITE_RATE] = "write_rate_mops",
    [DMG_LINK_CHANNEL_RATE] = "channel_rate_mops",
    [DMG_LINK_ATOMIC_RATE] = "atomic_rate_mops",
    [DMG_LINK_CHANNEL_ATOMIC_RATE] = "channel_atomic_rate_mops",
    [DMG_LINK_READ_P99] = "read_p99_ns",
    [DMG_LINK_READ_P999] = "read_p999_ns",
    [DMG_LINK_WRITE_P99] = "write_p99_ns",
    [DMG_LINK_WRITE_P999] = "write_p999_ns",
};

const char *dmg_link_cell_name(dmg_link_cell cell)
{
    return cell_names[cell];
}

const char *dmg_link_mode_name(dmg_link_mode mode)
{
    return mode == DMG_LINK_SPIN ? "spin" : mode == DMG_LINK_ACCOUNT ? "account" : "auto";
}

/* Percentiles ascend; the 99.9th needs no 99th. */
static dmg_status check_tail(const dmg_link_settings *settings, dmg_link_cell median, dmg_link_cell p99,
                             dmg_link_cell p999)
{
    const double *cells = settings->cells;
    double least = cells[p99] > 0 ? cells[p99] : cells[median];
    if ((cells[p99] > 0 && cells[p99] < cells[median]) || (cells[p999] > 0 && cells[p999] < least)) {
        return dmg_error(DMG_ERR_ARGUMENT, "link '%s': %s and %s do not ascend", settings->name, cell_names[p99],
                         cell_names[p999]);
    }
    return DMG_OK;
}

dmg_status dmg_link_settings_check(const dmg_link_settings *settings)
{
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        double value = settings->cells[cell];
        bool is_latency = cell <= DMG_LINK_MESSAGE_LATENCY || cell >= DMG_LINK_READ_P99;
        bool is_bandwidth = !is_latency && cell <= DMG_LINK_CHANNEL_WRITE_BANDWIDTH;
        double least = is_latency ? 0 : is_bandwidth ? BANDWIDTH_LEAST : RATE_LEAST;
        double most = is_latency ? LATENCY_NS_MOST : is_bandwidth ? BANDWIDTH_MOST : RATE_MOST;
        if (!isfinite(value) || (value != 0 && (value < least || value > most))) {
            return dmg_error(DMG_ERR_ARGUMENT, "link '%s': %s is %g; expected %g to %g", settings->name,
                             cell_names[cell], value, least, most);
        }
    }
    dmg_status status = check_tail(settings, DMG_LINK_READ_LATENCY, DMG_LINK_READ_P99, DMG_LINK_READ_P999);
    if (status == DMG_OK) {
        status = check_tail(settings, DMG_LINK_WRITE_LATENCY, DMG_LINK_WRITE_P99, DMG_LINK_WRITE_P999);
    }
    if (status != DMG_OK) {
        return status;
    }
    uint32_t line = settings->line_bytes;
    if (line == 0 || line > LINE_BYTES_MOST || (line & (line - 1)) != 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "link '%s': line_bytes is %u; expected a power of two up to %d",
                         settings->name, line, LINE_BYTES_MOST);
    }
    if (settings->mode < DMG_LINK_AUTO || settings->mode > DMG_LINK_ACCOUNT) {
        return dmg_error(DMG_ERR_ARGUMENT, "link '%s': there is no such mode", settings->name);
    }
    return DMG_OK;
}

double dmg_link_atomic_latency_ns(const dmg_link_settings *settings)
{
    double latency = settings->cells[DMG_LINK_ATOMIC_LATENCY];
    return latency > 0 ? latency : settings->cells[DMG_LINK_READ_LATENCY] + settings->cells[DMG_LINK_WRITE_LATENCY];
}

bool dmg_link_locks_atomics(const dmg_link_settings *settings)
{
    return settings->cells[DMG_LINK_ATOMIC_LATENCY] == 0 && dmg_link_atomic_latency_ns(settings) > 0;
}

/* `p99` stands before its p999. */
static dmg_link_tail tail_of(const double *cells, dmg_link_cell median, dmg_link_cell p99, double ticks_a_second)
{
    double extra_p99 = cells[p99] > 0 ? cells[p99] - cells[median] : 0;
    double extra_p999 = cells[p99 + 1] > 0 ? cells[p99 + 1] - cells[median] : extra_p99;
    return (dmg_link_tail){.p99 = (uint64_t)llround(extra_p99 / NANOSECONDS * ticks_a_second),
                           .p999 = (uint64_t)llround(extra_p999 / NANOSECONDS * ticks_a_second)};
}

void dmg_link_costs_from(const dmg_link_settings *settings, double ticks_a_second, dmg_link_costs *costs)
{
    const double *cells = settings->cells;
    double latencies[DMG_OPERATION_KINDS] = {[DMG_OPERATION_READ] = cells[DMG_LINK_READ_LATENCY],
                                             [DMG_OPERATION_WRITE] = cells[DMG_LINK_WRITE_LATENCY],
                                             [DMG_OPERATION_CAS] = dmg_link_atomic_latency_ns(settings),
                                             [DMG_OPERATION_FAA] = dmg_link_atomic_latency_ns(settings),
                                             [DMG_OPERATION_MESSAGE] = cells[DMG_LINK_MESSAGE_LATENCY]};
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        double rate = cells[kind == DMG_OPERATION_READ ? DMG_LINK_READ_RATE : DMG_LINK_WRITE_RATE];
        costs->latency[kind] = (uint64_t)llround(latencies[kind] / NANOSECONDS * ticks_a_second);
        costs->operation[kind] = dmg_link_operation_cost(rate * MEGA, ticks_a_second);
    }
    costs->tails[DMG_OPERATION_READ] = tail_of(cells, DMG_LINK_READ_LATENCY, DMG_LINK_READ_P99, ticks_a_second);
    costs->tails[DMG_OPERATION_WRITE] = tail_of(cells, DMG_LINK_WRITE_LATENCY, DMG_LINK_WRITE_P99, ticks_a_second);
    costs->read_byte = dmg_link_byte_cost(cells[DMG_LINK_READ_BANDWIDTH] * GIGA, ticks_a_second);
    costs->write_byte = dmg_link_byte_cost(cells[DMG_LINK_WRITE_BANDWIDTH] * GIGA, ticks_a_second);
    costs->atomic = dmg_link_operation_cost(cells[DMG_LINK_ATOMIC_RATE] * MEGA, ticks_a_second);
    costs->channel_operation = dmg_link_operation_cost(cells[DMG_LINK_CHANNEL_RATE] * MEGA, ticks_a_second);
    costs->channel_read_byte = dmg_link_byte_cost(cells[DMG_LINK_CHANNEL_READ_BANDWIDTH] * GIGA, ticks_a_second);
    costs->channel_write_byte = dmg_link_byte_cost(cells[DMG_LINK_CHANNEL_WRITE_BANDWIDTH] * GIGA, ticks_a_second);
    costs->channel_atomic = dmg_link_operation_cost(cells[DMG_LINK_CHANNEL_ATOMIC_RATE] * MEGA, ticks_a_second);
    costs->line_bytes = settings->line_bytes;
}

/** Nanoseconds of an amount at a rate; no rate, no time. */
static double time_ns(double amount, double a_second)
{
    return a_second > 0 ? amount / a_second * NANOSECONDS : 0;
}

dmg_link_limits dmg_link_limits_of(const dmg_link_settings *settings, const dmg_link_amounts *asked)
{
    const double *cells = settings->cells;
    double rate = time_ns(asked->reads, cells[DMG_LINK_READ_RATE] * MEGA) +
                  time_ns(asked->writes + asked->atomics, cells[DMG_LINK_WRITE_RATE] * MEGA);
    return (dmg_link_limits){.operations_ns = fmax(rate, time_ns(asked->atomics, cells[DMG_LINK_ATOMIC_RATE] * MEGA)),
                             .bytes_ns = fmax(time_ns(asked->read_bytes, cells[DMG_LINK_READ_BANDWIDTH] * GIGA),
                                              time_ns(asked->write_bytes, cells[DMG_LINK_WRITE_BANDWIDTH] * GIGA))};
}
