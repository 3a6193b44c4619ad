#include "model/predict_model.h"

#include <math.h>
#include <string.h>

#define GIGA             1e9
#define MEGA             1e6
#define NANOSECONDS      1e9
#define CACHE_LINE_BYTES 64.0
/** The most that a link's time may begin before a batch was handed over: what handing over takes. */
#define POST_NS_A_ROUND      200
#define POST_NS_AN_OPERATION 200
#define POST_NS_A_KIB        512

const char *dmg_predict_part_name(dmg_predict_part part)
{
    static const char *const names[DMG_PREDICT_PARTS] = {"compute", "latency",  "operations",
                                                         "bytes",   "messages", "barriers"};
    return names[part];
}

/* ---- what a link takes ---- */

/** Nanoseconds of an amount at a rate; no rate, no time. */
static double time_ns(double amount, double a_second)
{
    return a_second > 0 ? amount / a_second * NANOSECONDS : 0;
}

static double latency_ns(const dmg_link_settings *link, int kind)
{
    switch (kind) {
    case DMG_OPERATION_READ:
        return link->cells[DMG_LINK_READ_LATENCY];
    case DMG_OPERATION_WRITE:
        return link->cells[DMG_LINK_WRITE_LATENCY];
    case DMG_OPERATION_MESSAGE:
        return link->cells[DMG_LINK_MESSAGE_LATENCY];
    default:
        return dmg_link_atomic_latency_ns(link);
    }
}

/** Operations are counted by their bytes; a link with lines moves whole ones, half a line more than asked on average.
 */
static double counted_bytes(const dmg_link_settings *link, double operations, double bytes)
{
    double line = link->line_bytes;
    double half_more = bytes + operations * (line - 1) / 2;
    return fmax(half_more, operations * line);
}

static double counted_bytes_mapped(const dmg_link_settings *link, const dmg_predict_share *share)
{
    if (link->line_bytes == CACHE_LINE_BYTES) {
        return share->mapped_lines * CACHE_LINE_BYTES;
    }
    return link->line_bytes == 1 ? share->mapped_bytes : counted_bytes(link, share->mapped_spans, share->mapped_bytes);
}

static dmg_link_amounts demand_of(const dmg_link_settings *link, const dmg_predict_share *share)
{
    const double *operations = share->operations;
    const double *bytes = share->bytes;
    double atomics = operations[DMG_OPERATION_CAS] + operations[DMG_OPERATION_FAA] + share->mapped_atomics;
    double atomic_bytes = fmax(8.0, link->line_bytes) * atomics;
    return (dmg_link_amounts){
        .reads = operations[DMG_OPERATION_READ] + share->mapped_spans,
        .writes = operations[DMG_OPERATION_WRITE] + operations[DMG_OPERATION_MESSAGE],
        .atomics = atomics,
        .read_bytes = counted_bytes(link, operations[DMG_OPERATION_READ], bytes[DMG_OPERATION_READ]) +
                      counted_bytes_mapped(link, share) + atomic_bytes,
        .write_bytes = counted_bytes(link, operations[DMG_OPERATION_WRITE], bytes[DMG_OPERATION_WRITE]) +
                       counted_bytes(link, operations[DMG_OPERATION_MESSAGE], bytes[DMG_OPERATION_MESSAGE]) +
                       atomic_bytes};
}

static double longest(const dmg_link_limits *of)
{
    return fmax(of->operations_ns, of->bytes_ns);
}

static dmg_predict_part longer_part(const dmg_link_limits *of)
{
    return of->bytes_ns >= of->operations_ns ? DMG_PREDICT_BYTES : DMG_PREDICT_OPERATIONS;
}

static dmg_link_limits limits_of_connection(const dmg_link_settings *link, const dmg_link_amounts *asked)
{
    const double *cells = link->cells;
    double rate = time_ns(asked->reads + asked->writes + asked->atomics, cells[DMG_LINK_CHANNEL_RATE] * MEGA);
    return (dmg_link_limits){
        .operations_ns = fmax(rate, time_ns(asked->atomics, cells[DMG_LINK_CHANNEL_ATOMIC_RATE] * MEGA)),
        .bytes_ns = fmax(time_ns(asked->read_bytes, cells[DMG_LINK_CHANNEL_READ_BANDWIDTH] * GIGA),
                         time_ns(asked->write_bytes, cells[DMG_LINK_CHANNEL_WRITE_BANDWIDTH] * GIGA))};
}

static dmg_link_amounts scaled(const dmg_link_amounts *asked, double by)
{
    return (dmg_link_amounts){.reads = asked->reads * by,
                              .writes = asked->writes * by,
                              .atomics = asked->atomics * by,
                              .read_bytes = asked->read_bytes * by,
                              .write_bytes = asked->write_bytes * by};
}

static void add_demand(dmg_link_amounts *sum, const dmg_link_amounts *more)
{
    sum->reads += more->reads;
    sum->writes += more->writes;
    sum->atomics += more->atomics;
    sum->read_bytes += more->read_bytes;
    sum->write_bytes += more->write_bytes;
}

/* ---- a worker ---- */

/** How rounds go together: how many are in flight at once, and how many operations one has, on average. */
typedef struct round_shape {
    double overlap;
    double operations;
} round_shape;

static round_shape shape_of(const dmg_predict_share *share)
{
    double rounds = share->mapped_waits + share->mapped_atomics;
    double serial = rounds;
    double operations = share->mapped_spans + share->mapped_atomics;
    for (int kind = 0; kind < DMG_OPERATION_MESSAGE; kind++) {
        rounds += share->rounds[kind];
        serial += share->serial_rounds[kind];
        operations += share->operations[kind];
    }
    return (round_shape){.overlap = serial > 0 && rounds > serial ? rounds / serial : 1,
                         .operations = rounds > 0 ? operations / rounds : 0};
}

/**
 * The time on the link of what a task must have before it goes on. Lists are dealt out over all memory nodes, so that a
 * round of several operations uses several links.
 */
static dmg_link_limits first_of(const dmg_link_settings *link, const dmg_link_amounts *of_connection, uint32_t mns,
                                const round_shape *shape)
{
    dmg_link_limits own = limits_of_connection(link, of_connection);
    dmg_link_limits alone = dmg_link_limits_of(link, of_connection);
    double spread = fmin(mns, fmax(1, shape->operations));
    double by = mns / spread / shape->overlap;
    return (dmg_link_limits){.operations_ns = fmax(own.operations_ns, alone.operations_ns) * by,
                             .bytes_ns = fmax(own.bytes_ns, alone.bytes_ns) * by};
}

/** What messages cost on the new link: what the memory node took, which was waited for on the old one too. */
static double messages_ns(const dmg_predict_run *run, const dmg_link_settings *link, double serial_rounds,
                          double waited_ns)
{
    double new_ns = link ? serial_rounds * link->cells[DMG_LINK_MESSAGE_LATENCY] : 0;
    if (run->has_link) {
        /* Both are latencies on top of what the memory node took. */
        return new_ns + fmax(0, waited_ns - serial_rounds * run->ran_on.cells[DMG_LINK_MESSAGE_LATENCY]);
    }
    /* The link's latency is for a message and its answer, which took part of the measured time already. */
    return fmax(new_ns, waited_ns);
}

typedef struct node_time {
    double parts[DMG_PREDICT_PARTS];
    double total;
} node_time;

static void add_part(node_time *time, dmg_predict_part part, double ns)
{
    time->parts[part] += ns;
    time->total += ns;
}

/** The rest up to a limit that takes longer is that limit's. */
static void raise_to(node_time *time, const dmg_link_limits *to)
{
    if (longest(to) > time->total) {
        add_part(time, longer_part(to), longest(to) - time->total);
    }
}

/** Of the time spent posting, what goes on beside the link: the rest comes before the operations are handed over. */
static double post_credit_ns(const dmg_predict_share *share)
{
    double ns = 0;
    for (int kind = 0; kind < DMG_OPERATION_MESSAGE; kind++) {
        ns += share->serial_rounds[kind] * POST_NS_A_ROUND + share->operations[kind] * POST_NS_AN_OPERATION +
              share->bytes[kind] / 1024 * POST_NS_A_KIB;
    }
    return ns;
}

/** The bytes of messages that are waited for one after the other. */
static double message_bytes_ns(const dmg_link_settings *link, const dmg_predict_share *share)
{
    double bandwidth = link->cells[DMG_LINK_WRITE_BANDWIDTH];
    double own = link->cells[DMG_LINK_CHANNEL_WRITE_BANDWIDTH];
    double least = own > 0 && (bandwidth <= 0 || own < bandwidth) ? own : bandwidth;
    double rounds = share->rounds[DMG_OPERATION_MESSAGE];
    double serial = rounds > 0 ? share->serial_rounds[DMG_OPERATION_MESSAGE] / rounds : 0;
    return time_ns(share->bytes[DMG_OPERATION_MESSAGE] * fmin(1, serial), least * GIGA);
}

/** `share` is a compute node's; its workers do it side by side. */
static node_time node_time_of(const dmg_predict_run *run, const dmg_link_settings *link, uint32_t mns, double workers,
                              const dmg_predict_share *share)
{
    node_time time = {{0}, 0};
    double post_ns = fmin(share->post_ns, share->busy_ns);
    double messages =
        messages_ns(run, link, share->serial_rounds[DMG_OPERATION_MESSAGE] / workers, share->message_wait_ns / workers);
    add_part(&time, DMG_PREDICT_COMPUTE, share->busy_ns - post_ns);
    if (!link) {
        add_part(&time, DMG_PREDICT_COMPUTE, post_ns);
        add_part(&time, DMG_PREDICT_MESSAGES, messages);
        return time;
    }
    double rounds_ns = share->mapped_waits * latency_ns(link, DMG_OPERATION_READ) +
                       share->mapped_atomics * latency_ns(link, DMG_OPERATION_CAS);
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        rounds_ns += kind == DMG_OPERATION_MESSAGE ? 0 : share->serial_rounds[kind] * latency_ns(link, kind);
    }
    rounds_ns /= workers;
    add_part(&time, DMG_PREDICT_BYTES, message_bytes_ns(link, share) / workers);
    dmg_link_amounts asked = demand_of(link, share);
    dmg_link_amounts of_worker = scaled(&asked, 1 / workers);
    dmg_link_amounts of_connection = scaled(&of_worker, 1.0 / mns);
    dmg_link_limits own = limits_of_connection(link, &of_connection);
    round_shape shape = shape_of(share);
    dmg_link_limits first = first_of(link, &of_connection, mns, &shape);
    double hidden_ns = fmin(post_ns, post_credit_ns(share) / workers);
    add_part(&time, DMG_PREDICT_COMPUTE, post_ns - hidden_ns);
    if (rounds_ns + longest(&first) > hidden_ns) {
        add_part(&time, DMG_PREDICT_LATENCY, rounds_ns);
        add_part(&time, longer_part(&first), longest(&first));
    } else {
        add_part(&time, DMG_PREDICT_COMPUTE, hidden_ns);
    }
    add_part(&time, DMG_PREDICT_MESSAGES, messages);
    raise_to(&time, &own);
    return time;
}

/* ---- other numbers of nodes ---- */

static void add_share(dmg_predict_share *sum, const dmg_predict_share *more, double by)
{
    sum->busy_ns += more->busy_ns * by;
    sum->post_ns += more->post_ns * by;
    sum->message_wait_ns += more->message_wait_ns * by;
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        sum->operations[kind] += more->operations[kind] * by;
        sum->bytes[kind] += more->bytes[kind] * by;
        sum->rounds[kind] += more->rounds[kind] * by;
        sum->serial_rounds[kind] += more->serial_rounds[kind] * by;
    }
    sum->mapped_spans += more->mapped_spans * by;
    sum->mapped_bytes += more->mapped_bytes * by;
    sum->mapped_lines += more->mapped_lines * by;
    sum->mapped_waits += more->mapped_waits * by;
    sum->mapped_atomics += more->mapped_atomics * by;
}

/** Part of the updates that leave a partition: grows from none, with one compute node, to all. */
static double leaving(uint32_t cns)
{
    return 1 - 1.0 / cns;
}

/** The bytes of `whole_bytes` that a share read in place or by operations. */
static void give_whole_bytes(dmg_predict_share *share, double whole_bytes, bool is_mapped)
{
    if (is_mapped) {
        share->mapped_bytes = fmax(0, share->mapped_bytes + whole_bytes);
        share->mapped_lines = fmax(0, share->mapped_lines + whole_bytes / CACHE_LINE_BYTES);
    } else {
        share->bytes[DMG_OPERATION_READ] = fmax(0, share->bytes[DMG_OPERATION_READ] + whole_bytes);
    }
}

/** Redistribute a superstep over other compute nodes: the slowest one's share, with the imbalance that was measured. */
static dmg_predict_share redistributed(const dmg_predict_run *run, const dmg_predict_superstep *superstep, uint32_t cns)
{
    dmg_predict_share sum = {0};
    double busiest = 0;
    for (uint32_t node = 0; node < run->cns; node++) {
        add_share(&sum, &superstep->shares[node], 1);
        busiest = fmax(busiest, superstep->shares[node].busy_ns);
    }
    double imbalance = sum.busy_ns > 0 ? busiest / (sum.busy_ns / run->cns) : 1;
    imbalance = fmin(imbalance, cns);
    bool is_mapped = sum.mapped_bytes > sum.bytes[DMG_OPERATION_READ];
    give_whole_bytes(&sum, -superstep->whole_bytes * run->cns, is_mapped);
    if (run->cns > 1) {
        double by = leaving(cns) / leaving(run->cns);
        sum.mapped_atomics *= by;
        sum.serial_rounds[DMG_OPERATION_MESSAGE] *= by;
        sum.rounds[DMG_OPERATION_MESSAGE] *= by;
        sum.operations[DMG_OPERATION_MESSAGE] *= by;
        sum.bytes[DMG_OPERATION_MESSAGE] *= by;
        sum.message_wait_ns *= by;
    }
    dmg_predict_share share = {0};
    add_share(&share, &sum, imbalance / cns);
    give_whole_bytes(&share, superstep->whole_bytes, is_mapped);
    return share;
}

/* ---- a superstep ---- */

/** What one barrier costs when nobody is late: the least that a compute node waited in them. */
static double barriers_ns(const dmg_predict_run *run, const dmg_link_settings *link,
                          const dmg_predict_superstep *superstep, uint32_t cns)
{
    if (cns == 1) {
        return 0;
    }
    double least = run->cns > 1 ? superstep->shares[0].barrier_ns : 0;
    for (uint32_t node = 1; node < run->cns; node++) {
        least = fmin(least, superstep->shares[node].barrier_ns);
    }
    return messages_ns(run, link, superstep->barriers, least);
}

static node_time slowest_node(const dmg_predict_run *run, const dmg_link_settings *link, uint32_t mns, uint32_t cns,
                              const dmg_predict_superstep *superstep, dmg_link_amounts *all)
{
    node_time slowest = {{0}, -1};
    const dmg_predict_share scaled_share = cns != run->cns ? redistributed(run, superstep, cns) : superstep->shares[0];
    uint32_t distinct = cns != run->cns ? 1 : cns;
    for (uint32_t node = 0; node < distinct; node++) {
        const dmg_predict_share *share = cns != run->cns ? &scaled_share : &superstep->shares[node];
        node_time time = node_time_of(run, link, mns, superstep->lone_workers, share);
        slowest = time.total > slowest.total ? time : slowest;
        if (link) {
            dmg_link_amounts asked = demand_of(link, share);
            asked = scaled(&asked, (double)cns / distinct);
            add_demand(all, &asked);
        }
    }
    return slowest;
}

/** Share of the traffic that the most loaded of so many memory nodes has. */
static double load_of(const dmg_predict_run *run, uint32_t mns)
{
    return fmin(1, run->most_loaded * run->mns / mns);
}

void dmg_predict(const dmg_predict_run *run, const dmg_link_settings *link, uint32_t mns, uint32_t cns,
                 dmg_prediction *prediction)
{
    double bounded = 0;
    *prediction = (dmg_prediction){0};
    for (uint64_t i = 0; i < run->superstep_count; i++) {
        const dmg_predict_superstep *superstep = &run->supersteps[i];
        dmg_link_amounts all = {0};
        node_time time = slowest_node(run, link, mns, cns, superstep, &all);
        if (link) {
            dmg_link_amounts of_node = scaled(&all, load_of(run, mns));
            dmg_link_limits link_limits = dmg_link_limits_of(link, &of_node);
            bounded += longest(&link_limits) > time.total;
            raise_to(&time, &link_limits);
        }
        add_part(&time, DMG_PREDICT_BARRIERS, barriers_ns(run, link, superstep, cns));
        for (int part = 0; part < DMG_PREDICT_PARTS; part++) {
            prediction->parts_ns[part] += time.parts[part];
        }
        prediction->total_ns += time.total;
    }
    for (int part = 1; part < DMG_PREDICT_PARTS; part++) {
        if (prediction->parts_ns[part] > prediction->parts_ns[prediction->bound]) {
            prediction->bound = (dmg_predict_part)part;
        }
    }
    prediction->bound_supersteps = run->superstep_count > 0 ? bounded / (double)run->superstep_count : 0;
}
