#include "transport/counters.h"

void dmg_counters_add(dmg_counters *sum, const dmg_counters *more)
{
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        sum->operations[kind] += more->operations[kind];
        sum->bytes[kind] += more->bytes[kind];
        sum->rounds[kind] += more->rounds[kind];
        sum->serial_parts[kind] += more->serial_parts[kind];
    }
    for (int bucket = 0; bucket < DMG_SIZE_BUCKETS; bucket++) {
        sum->sizes[bucket] += more->sizes[bucket];
        sum->mapped_sizes[bucket] += more->mapped_sizes[bucket];
    }
    sum->rings += more->rings;
    sum->mapped_spans += more->mapped_spans;
    sum->mapped_bytes += more->mapped_bytes;
    sum->lost_swaps += more->lost_swaps;
    sum->mapped_lines += more->mapped_lines;
    sum->mapped_atomics += more->mapped_atomics;
    sum->mapped_waits += more->mapped_waits;
    sum->waits += more->waits;
    sum->lines_written_back += more->lines_written_back;
    sum->lines_invalidated += more->lines_invalidated;
    sum->message_lines += more->message_lines;
    sum->wait_ns += more->wait_ns;
    sum->message_wait_ns += more->message_wait_ns;
    sum->post_ns += more->post_ns;
    sum->modelled_ns += more->modelled_ns;
    for (int purpose = 0; purpose < DMG_PURPOSES; purpose++) {
        dmg_purpose_counters *to = &sum->purposes[purpose];
        const dmg_purpose_counters *from = &more->purposes[purpose];
        to->operations += from->operations;
        to->bytes += from->bytes;
        to->mapped_spans += from->mapped_spans;
        to->mapped_bytes += from->mapped_bytes;
        for (int bucket = 0; bucket < DMG_SIZE_BUCKETS; bucket++) {
            to->sizes[bucket] += from->sizes[bucket];
        }
    }
}

static uint64_t difference(uint64_t sum, uint64_t part)
{
    return sum > part ? sum - part : 0;
}

void dmg_counters_subtract(dmg_counters *sum, const dmg_counters *part)
{
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        sum->operations[kind] = difference(sum->operations[kind], part->operations[kind]);
        sum->bytes[kind] = difference(sum->bytes[kind], part->bytes[kind]);
        sum->rounds[kind] = difference(sum->rounds[kind], part->rounds[kind]);
        sum->serial_parts[kind] = difference(sum->serial_parts[kind], part->serial_parts[kind]);
    }
    for (int bucket = 0; bucket < DMG_SIZE_BUCKETS; bucket++) {
        sum->sizes[bucket] = difference(sum->sizes[bucket], part->sizes[bucket]);
        sum->mapped_sizes[bucket] = difference(sum->mapped_sizes[bucket], part->mapped_sizes[bucket]);
    }
    sum->rings = difference(sum->rings, part->rings);
    sum->mapped_spans = difference(sum->mapped_spans, part->mapped_spans);
    sum->mapped_bytes = difference(sum->mapped_bytes, part->mapped_bytes);
    sum->lost_swaps = difference(sum->lost_swaps, part->lost_swaps);
    sum->mapped_lines = difference(sum->mapped_lines, part->mapped_lines);
    sum->mapped_atomics = difference(sum->mapped_atomics, part->mapped_atomics);
    sum->mapped_waits = difference(sum->mapped_waits, part->mapped_waits);
    sum->waits = difference(sum->waits, part->waits);
    sum->lines_written_back = difference(sum->lines_written_back, part->lines_written_back);
    sum->lines_invalidated = difference(sum->lines_invalidated, part->lines_invalidated);
    sum->message_lines = difference(sum->message_lines, part->message_lines);
    sum->wait_ns = difference(sum->wait_ns, part->wait_ns);
    sum->message_wait_ns = difference(sum->message_wait_ns, part->message_wait_ns);
    sum->post_ns = difference(sum->post_ns, part->post_ns);
    sum->modelled_ns = difference(sum->modelled_ns, part->modelled_ns);
    for (int purpose = 0; purpose < DMG_PURPOSES; purpose++) {
        dmg_purpose_counters *from = &sum->purposes[purpose];
        const dmg_purpose_counters *less = &part->purposes[purpose];
        from->operations = difference(from->operations, less->operations);
        from->bytes = difference(from->bytes, less->bytes);
        from->mapped_spans = difference(from->mapped_spans, less->mapped_spans);
        from->mapped_bytes = difference(from->mapped_bytes, less->mapped_bytes);
        for (int bucket = 0; bucket < DMG_SIZE_BUCKETS; bucket++) {
            from->sizes[bucket] = difference(from->sizes[bucket], less->sizes[bucket]);
        }
    }
}

const char *dmg_operation_kind_name(dmg_operation_kind kind)
{
    static const char *const names[DMG_OPERATION_KINDS] = {"read", "write", "cas", "faa", "message"};
    return names[kind];
}

const char *dmg_purpose_name(dmg_purpose purpose)
{
    static const char *const names[DMG_PURPOSES] = {"other", "streams", "index", "lists", "updates"};
    return names[purpose];
}
