#include "core/pool/range_array.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/pool/pool.h"

#include <stdio.h>
#include <string.h>

/* Ranges begin at multiples of so many elements: a bitmap's words, and an attribute's cache lines, are never split. */
#define RANGE_ELEMENTS 64

/* Allocate `count` elements, `per_node` on each node. */
static dmg_status allocate(dmg_channel *channel, uint64_t job, uint64_t count, uint64_t per_node,
                           uint32_t element_bytes, uint32_t node_count, dmg_range_array *array)
{
    memset(array, 0, sizeof *array);
    uint64_t bytes_per_node;
    if (element_bytes == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "an array of elements of 0 bytes was asked for");
    }
    if (!dmg_checked_multiply(per_node, element_bytes, &bytes_per_node) || bytes_per_node > DMG_ADDRESS_OFFSET_MASK) {
        return dmg_error(DMG_ERR_LIMIT, "an array of %llu elements of %u bytes fits into no pool",
                         (unsigned long long)count, element_bytes);
    }
    dmg_range_array made = {
        .count = count, .per_node = per_node, .element_bytes = element_bytes, .node_count = node_count};
    for (uint32_t node = 0; node < node_count && node * per_node < count; node++) {
        uint64_t left = count - node * per_node;
        uint64_t elements = left < per_node ? left : per_node;
        dmg_status status = dmg_pool_allocate(channel, (uint16_t)node, job, elements * element_bytes, &made.base[node]);
        if (status != DMG_OK) {
            char sentence[512];
            snprintf(sentence, sizeof sentence, "%s", dmg_error_message());
            (void)dmg_range_array_free(channel, &made);
            return dmg_error(status, "%s", sentence);
        }
    }
    *array = made;
    return DMG_OK;
}

dmg_status dmg_range_array_allocate(dmg_channel *channel, uint64_t job, uint64_t count, uint32_t element_bytes,
                                    dmg_range_array *array)
{
    uint32_t node_count = dmg_client_node_count(dmg_channel_client(channel));
    node_count = node_count < DMG_RANGE_ARRAY_NODES_MAX ? node_count : DMG_RANGE_ARRAY_NODES_MAX;
    uint64_t per_node = count / node_count + (count % node_count != 0);
    per_node = per_node == 0 ? 1 : per_node;
    if (!dmg_checked_round_up(per_node, RANGE_ELEMENTS, &per_node)) {
        return dmg_error(DMG_ERR_LIMIT, "an array of %llu elements fits into no pool", (unsigned long long)count);
    }
    return allocate(channel, job, count, per_node, element_bytes, node_count, array);
}

dmg_status dmg_range_array_allocate_beside(dmg_channel *channel, uint64_t job, const dmg_range_array *other,
                                           uint32_t elements_each, uint32_t element_bytes, dmg_range_array *array)
{
    if (elements_each == 0 || RANGE_ELEMENTS % elements_each != 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "an array beside another with an element for each %u was asked for",
                         elements_each);
    }
    uint64_t count = other->count / elements_each + (other->count % elements_each != 0);
    return allocate(channel, job, count, other->per_node / elements_each, element_bytes, other->node_count, array);
}

dmg_status dmg_range_array_free(dmg_channel *channel, const dmg_range_array *array)
{
    dmg_status first = DMG_OK;
    char sentence[512] = "";
    for (uint32_t node = 0; node < array->node_count && node < DMG_RANGE_ARRAY_NODES_MAX; node++) {
        if (array->base[node] == DMG_ADDRESS_NULL) {
            continue;
        }
        dmg_status status = dmg_pool_free(channel, array->base[node]);
        if (status != DMG_OK && first == DMG_OK) {
            first = status;
            snprintf(sentence, sizeof sentence, "%s", dmg_error_message());
        }
    }
    return first == DMG_OK ? DMG_OK : dmg_error(first, "%s", sentence);
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
