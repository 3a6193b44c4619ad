#include "cli/compare_sensitivity.h"

#include <math.h>

#define NANO       1e-9
#define GIGA       1e9
#define MEGA       1e6
#define FLIP_STEPS 40
#define LINE_BYTES 64

/** What one link takes for the work of one worker: served in turn, and waiting, if none of it were hidden. */
typedef struct link_terms {
    double served_seconds;
    double waits_seconds;
} link_terms;

static double amount_by(double amount, double limit)
{
    return limit > 0 ? amount / limit : 0;
}

static link_terms terms_of(const dmg_link_work *work, const dmg_link_settings *link)
{
    const dmg_counters *counters = &work->counters;
    const double *cells = link->cells;
    double nodes = work->memory_nodes > 0 ? work->memory_nodes : 1;
    double workers = work->workers > 0 ? work->workers : 1;
    double reads = (double)(counters->operations[DMG_OPERATION_READ] + counters->in_place_spans);
    double writes = (double)counters->operations[DMG_OPERATION_WRITE];
    double atomics = (double)(counters->operations[DMG_OPERATION_CAS] + counters->operations[DMG_OPERATION_FAA] +
                              counters->in_place_atomics);
    double messages = (double)counters->operations[DMG_OPERATION_MESSAGE];
    double read_bytes = (double)(counters->bytes[DMG_OPERATION_READ] + counters->in_place_lines * LINE_BYTES);
    double write_bytes =
        (double)(counters->bytes[DMG_OPERATION_WRITE] + counters->bytes[DMG_OPERATION_MESSAGE]) + 8 * atomics;
    double operations = reads + writes + atomics + messages;

    /* A memory node's link is shared by all; a worker has a connection to each of them. */
    double moved = fmax(amount_by(read_bytes / nodes, cells[DMG_LINK_READ_BANDWIDTH] * GIGA),
                        amount_by(read_bytes / workers, cells[DMG_LINK_CHANNEL_READ_BANDWIDTH] * GIGA)) +
                   fmax(amount_by(write_bytes / nodes, cells[DMG_LINK_WRITE_BANDWIDTH] * GIGA),
                        amount_by(write_bytes / workers, cells[DMG_LINK_CHANNEL_WRITE_BANDWIDTH] * GIGA));
    double issued = fmax(amount_by(reads / nodes, cells[DMG_LINK_READ_RATE] * MEGA) +
                             amount_by((operations - reads) / nodes, cells[DMG_LINK_WRITE_RATE] * MEGA),
                         amount_by(operations / workers / nodes, cells[DMG_LINK_CHANNEL_RATE] * MEGA));
    double swapped = fmax(amount_by(atomics / nodes, cells[DMG_LINK_ATOMIC_RATE] * MEGA),
                          amount_by(atomics / workers / nodes, cells[DMG_LINK_CHANNEL_ATOMIC_RATE] * MEGA));

    /* Operations of one round, and rounds in flight together, wait for one latency. */
    double waits_ns =
        ((double)counters->serial_parts[DMG_OPERATION_READ] / DMG_ROUND_PARTS + (double)counters->in_place_waits) *
            cells[DMG_LINK_READ_LATENCY] +
        (double)counters->serial_parts[DMG_OPERATION_WRITE] / DMG_ROUND_PARTS * cells[DMG_LINK_WRITE_LATENCY] +
        ((double)(counters->serial_parts[DMG_OPERATION_CAS] + counters->serial_parts[DMG_OPERATION_FAA]) /
             DMG_ROUND_PARTS +
         (double)counters->in_place_atomics) *
            dmg_link_atomic_latency_ns(link) +
        (double)counters->serial_parts[DMG_OPERATION_MESSAGE] / DMG_ROUND_PARTS * cells[DMG_LINK_MESSAGE_LATENCY];
    return (link_terms){.served_seconds = fmax(moved, fmax(issued, swapped)),
                        .waits_seconds = waits_ns / workers * NANO};
}

double dmg_link_work_seconds(const dmg_link_work *work, const dmg_link_settings *link)
{
    link_terms then = terms_of(work, &work->link);
    link_terms now = terms_of(work, link);
    double added = fmax(work->linked_seconds - work->bare_seconds, 0);
    /* Service beyond what was seen was hidden behind the program's own work; else latency explains the rest. */
    double served_share = then.served_seconds > added ? added / then.served_seconds : 1;
    double waits_share = then.waits_seconds > 0 ? fmax(added - then.served_seconds, 0) / then.waits_seconds : 0;
    double unexplained = then.waits_seconds > 0 ? 0 : fmax(added - then.served_seconds, 0);
    return work->bare_seconds + served_share * now.served_seconds + waits_share * now.waits_seconds + unexplained;
}

dmg_link_settings dmg_link_scaled(const dmg_link_settings *link, double latency_factor, double capacity_divisor)
{
    dmg_link_settings scaled = *link;
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        scaled.cells[cell] *= cell <= DMG_LINK_MESSAGE_LATENCY ? latency_factor : 1 / capacity_divisor;
    }
    return scaled;
}

/** The logarithm of the mean of how many times the second takes longer, with both links off by the factor. */
static double lead_at(const dmg_link_work *winner, const dmg_link_work *second, uint32_t count, double factor)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        dmg_link_settings worse = dmg_link_scaled(&winner[i].link, factor, factor);
        dmg_link_settings better = dmg_link_scaled(&second[i].link, 1 / factor, 1 / factor);
        sum += log(dmg_link_work_seconds(&second[i], &better) / dmg_link_work_seconds(&winner[i], &worse));
    }
    return count > 0 ? sum / count : 0;
}

double dmg_link_flip_factor(const dmg_link_work *winner, const dmg_link_work *second, uint32_t count, double most)
{
    if (lead_at(winner, second, count, 1) <= 0) {
        return 1;
    }
    if (lead_at(winner, second, count, most) > 0) {
        return INFINITY;
    }
    double low = 1;
    double high = most;
    for (int step = 0; step < FLIP_STEPS; step++) {
        double middle = sqrt(low * high);
        if (lead_at(winner, second, count, middle) > 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}
