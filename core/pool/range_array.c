#include "core/pool/range_array.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/pool/pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Ranges begin at multiples of so many elements: a bitmap's words, and an attribute's cache lines, are never split. */
#define RANGE_ELEMENTS 64

/* Allocate what an array's ends say. */
static dmg_status allocate(dmg_channel *channel, uint64_t job, dmg_range_array *made, dmg_range_array *array)
{
    memset(array, 0, sizeof *array);
    uint64_t bytes;
    if (made->element_bytes == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "an array of elements of 0 bytes was asked for");
    }
    for (uint32_t node = 0; node < made->node_count; node++) {
        uint64_t elements = made->ends[node] - dmg_range_array_first(made, node);
        if (!dmg_checked_multiply(elements, made->element_bytes, &bytes) || bytes > DMG_ADDRESS_OFFSET_MASK) {
            return dmg_error(DMG_ERR_LIMIT, "an array of %llu elements of %u bytes fits into no pool",
                             (unsigned long long)made->count, made->element_bytes);
        }
    }
    for (uint32_t node = 0; node < made->node_count; node++) {
        uint64_t elements = made->ends[node] - dmg_range_array_first(made, node);
        if (elements == 0) {
            continue;
        }
        dmg_status status =
            dmg_pool_allocate(channel, (uint16_t)node, job, elements * made->element_bytes, &made->base[node]);
        if (status != DMG_OK) {
            dmg_kept_error kept = {0};
            dmg_error_keep(&kept, status);
            (void)dmg_range_array_free(channel, made);
            return dmg_error_restore(&kept);
        }
    }
    *array = *made;
    return DMG_OK;
}

/* Where the range of a node ends that has, with those before it, `part` of `total`. */
static uint64_t end_of_share(uint64_t count, uint64_t part, uint64_t total)
{
    uint64_t exact = (uint64_t)((unsigned __int128)count * part / total);
    uint64_t rounded;
    return dmg_checked_round_up(exact, RANGE_ELEMENTS, &rounded) && rounded < count ? rounded : count;
}

dmg_status dmg_range_array_allocate_by_share(dmg_channel *channel, uint64_t job, uint64_t count, uint32_t element_bytes,
                                             const dmg_pool_shares *shares, dmg_range_array *array)
{
    dmg_range_array made = {.count = count, .element_bytes = element_bytes, .node_count = shares->node_count};
    uint64_t total = 0;
    for (uint32_t node = 0; node < shares->node_count; node++) {
        total += shares->weight[node];
    }
    uint64_t part = 0;
    for (uint32_t node = 0; node < shares->node_count; node++) {
        part += shares->weight[node];
        made.ends[node] = end_of_share(count, part, total);
    }
    return allocate(channel, job, &made, array);
}

dmg_status dmg_range_array_allocate(dmg_channel *channel, uint64_t job, uint64_t count, uint32_t element_bytes,
                                    dmg_range_array *array)
{
    dmg_pool_shares shares;
    dmg_pool_shares_even(dmg_channel_client(channel), &shares);
    return dmg_range_array_allocate_by_share(channel, job, count, element_bytes, &shares, array);
}

dmg_status dmg_range_array_allocate_beside(dmg_channel *channel, uint64_t job, const dmg_range_array *other,
                                           uint32_t elements_each, uint32_t element_bytes, dmg_range_array *array)
{
    if (elements_each == 0 || RANGE_ELEMENTS % elements_each != 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "an array beside another with an element for each %u was asked for",
                         elements_each);
    }
    dmg_range_array made = {.element_bytes = element_bytes, .node_count = other->node_count};
    made.count = other->count / elements_each + (other->count % elements_each != 0);
    for (uint32_t node = 0; node < other->node_count; node++) {
        made.ends[node] = other->ends[node] / elements_each + (other->ends[node] % elements_each != 0);
    }
    return allocate(channel, job, &made, array);
}

dmg_status dmg_range_array_free(dmg_channel *channel, const dmg_range_array *array)
{
    dmg_kept_error first = {0};
    for (uint32_t node = 0; node < array->node_count && node < DMG_MEMORY_NODES_MAX; node++) {
        if (array->base[node] == DMG_ADDRESS_NULL) {
            continue;
        }
        dmg_error_keep(&first, dmg_pool_free(channel, array->base[node]));
    }
    return dmg_error_restore(&first);
}

/* Whether the ranges ascend to the count. */
static bool ranges_cover(const dmg_range_array *array, uint64_t count, uint32_t range_elements)
{
    bool is_spread = array->node_count >= 1 && array->node_count <= DMG_MEMORY_NODES_MAX &&
                     array->ends[array->node_count - 1] == count;
    for (uint32_t node = 0; is_spread && node < array->node_count; node++) {
        is_spread = array->ends[node] >= dmg_range_array_first(array, node) && array->ends[node] <= count &&
                    (array->ends[node] % range_elements == 0 || array->ends[node] == count);
    }
    return is_spread;
}

dmg_status dmg_range_array_check(const dmg_range_array *array, uint64_t count, uint32_t element_bytes,
                                 uint32_t range_elements, const dmg_client *client)
{
    if (array->count != count || array->element_bytes != element_bytes) {
        return dmg_error(DMG_ERR_CORRUPT, "the array has %" PRIu64 " elements of %u bytes, expected %" PRIu64 " of %u",
                         array->count, array->element_bytes, count, element_bytes);
    }
    if (!ranges_cover(array, count, range_elements)) {
        return dmg_error(DMG_ERR_CORRUPT, "the array's ranges on %u nodes do not cover %" PRIu64 " elements",
                         array->node_count, count);
    }
    for (uint32_t node = 0; node < array->node_count; node++) {
        uint64_t bytes = (array->ends[node] - dmg_range_array_first(array, node)) * array->element_bytes;
        uint16_t owner = dmg_address_node(array->base[node]);
        if (bytes == 0) {
            continue;
        }
        if (array->base[node] == DMG_ADDRESS_NULL || array->base[node] % 64 != 0 ||
            owner >= dmg_client_node_count(client) ||
            !dmg_range_is_inside(dmg_address_offset(array->base[node]), bytes,
                                 dmg_client_segment_bytes(client, owner))) {
            return dmg_error(DMG_ERR_CORRUPT,
                             "part %u of the array is at node %u, offset %" PRIu64 ", which no segment has", node,
                             owner, dmg_address_offset(array->base[node]));
        }
    }
    return DMG_OK;
}

void dmg_range_array_post_read(dmg_channel *channel, const dmg_range_array *array, uint64_t first, uint64_t count,
                               void *to, dmg_completion *completion)
{
    char *at = to;
    while (count > 0) {
        uint64_t run = dmg_range_array_run(array, first, count);
        dmg_post_read(channel, dmg_range_array_address(array, first), at, run * array->element_bytes, completion);
        at += run * array->element_bytes;
        first += run;
        count -= run;
    }
}

void dmg_range_array_post_write(dmg_channel *channel, const dmg_range_array *array, uint64_t first, uint64_t count,
                                const void *from, dmg_completion *completion)
{
    const char *at = from;
    while (count > 0) {
        uint64_t run = dmg_range_array_run(array, first, count);
        dmg_post_write(channel, at, dmg_range_array_address(array, first), run * array->element_bytes, completion);
        at += run * array->element_bytes;
        first += run;
        count -= run;
    }
}
