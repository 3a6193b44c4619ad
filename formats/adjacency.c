#include "formats/adjacency.h"

#include <stdlib.h>
#include <string.h>

/* Runs of equal arcs are short but for odd files, so insertion sort; longer ones go to the library's. */
#define RUN_SORTED_BY_INSERTION 24

static dmg_status reserve_arcs(dmg_adjacency_storage *lists, uint64_t arc_count, bool is_weighted)
{
    dmg_status status = dmg_pages_resize(&lists->destinations, arc_count, sizeof(uint32_t), "the destinations");
    if (status == DMG_OK && is_weighted) {
        status = dmg_pages_resize(&lists->weights, arc_count, sizeof(dmg_weight), "the weights");
    }
    return status;
}

/*
 * Offsets are made in one array of vertex_count + 2: counts go to [v + 2], their running sum makes [v + 1] the start of
 * list v, and filling list v by [v + 1]++ leaves [v + 1] at its end, which is where list v + 1 starts.
 */
static dmg_status reserve_offsets(dmg_adjacency_storage *lists, uint64_t vertex_count)
{
    return dmg_pages_resize(&lists->offsets, vertex_count + 2, sizeof(uint64_t), "the offsets");
}

static uint64_t sum_counts(uint64_t *offsets, uint64_t vertex_count)
{
    uint64_t sum = 0;
    for (uint64_t v = 0; v < vertex_count; v++) {
        sum += offsets[v + 2];
        offsets[v + 2] = sum;
    }
    return sum;
}

dmg_status dmg_adjacency_scatter(const dmg_edge_array *edges, uint64_t vertex_count, dmg_adjacency_storage *lists)
{
    dmg_status status = reserve_offsets(lists, vertex_count);
    if (status != DMG_OK) {
        return status;
    }
    uint64_t *offsets = lists->offsets.memory;
    const uint32_t *ends = edges->ends;
    for (uint64_t i = 0; i < edges->count; i++) {
        uint32_t source = ends[2 * i];
        uint32_t destination = ends[2 * i + 1];
        bool is_loop = source == destination;
        offsets[(uint64_t)destination + 2] += !(is_loop && edges->drop_loops);
        offsets[(uint64_t)source + 2] += !edges->is_directed && !is_loop;
    }
    status = reserve_arcs(lists, sum_counts(offsets, vertex_count), edges->weights != NULL);
    if (status != DMG_OK) {
        return status;
    }
    uint32_t *others = lists->destinations.memory;
    dmg_weight *weights = lists->weights.memory;
    for (uint64_t i = 0; i < edges->count; i++) {
        uint32_t source = ends[2 * i];
        uint32_t destination = ends[2 * i + 1];
        bool is_loop = source == destination;
        if (!(is_loop && edges->drop_loops)) {
            uint64_t place = offsets[(uint64_t)destination + 1]++;
            others[place] = source;
            if (edges->weights) {
                weights[place] = edges->weights[i];
            }
        }
        if (!edges->is_directed && !is_loop) {
            uint64_t place = offsets[(uint64_t)source + 1]++;
            others[place] = destination;
            if (edges->weights) {
                weights[place] = edges->weights[i];
            }
        }
    }
    return DMG_OK;
}

dmg_status dmg_adjacency_transpose(const dmg_adjacency *from, uint64_t vertex_count, dmg_adjacency_storage *to)
{
    uint64_t arc_count = from->offsets[vertex_count];
    dmg_status status = reserve_offsets(to, vertex_count);
    if (status == DMG_OK) {
        status = reserve_arcs(to, arc_count, from->weights != NULL);
    }
    if (status != DMG_OK) {
        return status;
    }
    uint64_t *offsets = to->offsets.memory;
    uint32_t *others = to->destinations.memory;
    dmg_weight *weights = to->weights.memory;
    for (uint64_t arc = 0; arc < arc_count; arc++) {
        offsets[(uint64_t)from->destinations[arc] + 2]++;
    }
    (void)sum_counts(offsets, vertex_count);
    for (uint64_t v = 0; v < vertex_count; v++) {
        for (uint64_t arc = from->offsets[v]; arc < from->offsets[v + 1]; arc++) {
            uint64_t place = offsets[(uint64_t)from->destinations[arc] + 1]++;
            others[place] = (uint32_t)v;
            if (from->weights) {
                weights[place] = from->weights[arc];
            }
        }
    }
    return DMG_OK;
}

static int compare_integers(const void *left, const void *right)
{
    int32_t a = ((const dmg_weight *)left)->as_int32;
    int32_t b = ((const dmg_weight *)right)->as_int32;
    return (a > b) - (a < b);
}

static int compare_floats(const void *left, const void *right)
{
    float a = ((const dmg_weight *)left)->as_float32;
    float b = ((const dmg_weight *)right)->as_float32;
    return (a > b) - (a < b);
}

static void sort_run(dmg_weight *weights, uint64_t count, dmg_weight_kind kind)
{
    int (*compare)(const void *, const void *) = kind == DMG_WEIGHT_INT32 ? compare_integers : compare_floats;
    if (count > RUN_SORTED_BY_INSERTION) {
        qsort(weights, count, sizeof *weights, compare);
        return;
    }
    for (uint64_t i = 1; i < count; i++) {
        dmg_weight weight = weights[i];
        uint64_t place = i;
        while (place > 0 && compare(&weights[place - 1], &weight) > 0) {
            weights[place] = weights[place - 1];
            place--;
        }
        weights[place] = weight;
    }
}

dmg_status dmg_adjacency_settle(dmg_adjacency_storage *lists, uint64_t vertex_count, dmg_weight_kind kind,
                                bool drop_repeats, dmg_adjacency_census *census)
{
    uint64_t *offsets = lists->offsets.memory;
    uint32_t *destinations = lists->destinations.memory;
    dmg_weight *weights = lists->weights.memory;
    memset(census, 0, sizeof *census);
    uint64_t kept = 0;
    uint64_t begin = 0;
    for (uint64_t v = 0; v < vertex_count; v++) {
        uint64_t end = offsets[v + 1];
        for (uint64_t run = begin; run < end;) {
            uint64_t run_end = run + 1;
            while (run_end < end && destinations[run_end] == destinations[run]) {
                run_end++;
            }
            uint64_t length = run_end - run;
            if (weights && length > 1) {
                sort_run(weights + run, length, kind);
            }
            bool is_loop = destinations[run] == v;
            census->repeats += length - 1;
            if (drop_repeats) {
                destinations[kept] = destinations[run];
                if (weights) {
                    weights[kept] = weights[run];
                }
                kept++;
                census->loops += is_loop;
            } else {
                census->loops += is_loop ? length : 0;
            }
            run = run_end;
        }
        if (drop_repeats) {
            offsets[v + 1] = kept;
        }
        begin = end;
    }
    return drop_repeats && census->repeats > 0 ? reserve_arcs(lists, kept, weights != NULL) : DMG_OK;
}
