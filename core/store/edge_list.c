#include "core/store/edge_list.h"

/** Below so many edges a partition, a walk along the list beats a search for each border. */
#define WALK_EDGES 8

bool dmg_edge_list_lengths_surely_fit(const dmg_index_shape *shape, uint64_t degree)
{
    uint64_t room = shape->entry_bytes - DMG_INDEX_LENGTHS_AT;
    if (degree > DMG_INDEX_LENGTH_MAX) {
        return false;
    }
    return (uint64_t)shape->partition_count * dmg_index_length_bytes((uint32_t)degree) <= room;
}

/** How many of the destinations, which ascend, are below `border`. */
static uint32_t count_below(const uint32_t *destinations, uint32_t count, uint64_t border)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (destinations[middle] < border) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void dmg_edge_list_lengths(const dmg_index_shape *shape, const uint64_t *partition_first, const uint32_t *destinations,
                           uint32_t degree, uint32_t *lengths)
{
    uint32_t done = 0;
    bool is_short = degree / WALK_EDGES < shape->partition_count;
    for (uint32_t i = 0; i + 1 < shape->partition_count; i++) {
        uint64_t border = partition_first[i + 1];
        uint32_t end = done;
        if (is_short) {
            while (end < degree && destinations[end] < border) {
                end++;
            }
        } else {
            end += count_below(destinations + done, degree - done, border);
        }
        lengths[i] = end - done;
        done = end;
    }
    lengths[shape->partition_count - 1] = degree - done;
}

dmg_list_place dmg_edge_list_place(const dmg_index_shape *shape, uint64_t offset, uint32_t degree, bool has_header)
{
    dmg_list_place place = {0};
    uint64_t alignment = has_header || shape->edge_bytes == 8 ? 8 : 4;
    place.offset = (offset + alignment - 1) & ~(alignment - 1);
    place.header_bytes = has_header ? dmg_list_header_bytes(shape) : 0;
    place.end = place.offset + place.header_bytes + (uint64_t)degree * shape->edge_bytes;
    return place;
}

bool dmg_edge_list_is_sound(const uint32_t *destinations, uint64_t degree, uint64_t vertex_count)
{
    /* No early exit, so that the compiler can compare several at once. */
    uint32_t descents = 0;
    for (uint64_t i = 1; i < degree; i++) {
        descents |= destinations[i - 1] > destinations[i];
    }
    return degree == 0 || (descents == 0 && destinations[degree - 1] < vertex_count);
}
