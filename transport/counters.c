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
        sum->in_place_sizes[bucket] += more->in_place_sizes[bucket];
    }
    sum->rings += more->rings;
    sum->in_place_spans += more->in_place_spans;
    sum->in_place_bytes += more->in_place_bytes;
    sum->lost_swaps += more->lost_swaps;
    sum->in_place_lines += more->in_place_lines;
    sum->in_place_atomics += more->in_place_atomics;
    sum->in_place_waits += more->in_place_waits;
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
        to->in_place_spans += from->in_place_spans;
        to->in_place_bytes += from->in_place_bytes;
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
        sum->in_place_sizes[bucket] = difference(sum->in_place_sizes[bucket], part->in_place_sizes[bucket]);
    }
    sum->rings = difference(sum->rings, part->rings);
    sum->in_place_spans = difference(sum->in_place_spans, part->in_place_spans);
    sum->in_place_bytes = difference(sum->in_place_bytes, part->in_place_bytes);
    sum->lost_swaps = difference(sum->lost_swaps, part->lost_swaps);
    sum->in_place_lines = difference(sum->in_place_lines, part->in_place_lines);
    sum->in_place_atomics = difference(sum->in_place_atomics, part->in_place_atomics);
    sum->in_place_waits = difference(sum->in_place_waits, part->in_place_waits);
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
        from->in_place_spans = difference(from->in_place_spans, less->in_place_spans);
        from->in_place_bytes = difference(from->in_place_bytes, less->in_place_bytes);
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
