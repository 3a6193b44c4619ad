/*
 * Single-source shortest paths by Dijkstra's algorithm, with a binary heap whose stale entries are skipped: a vertex is
 * pushed again when its distance falls, so the heap has at most one entry an arc.
 */
#include "algorithms/serial.h"
#include "core/base/error.h"
#include "formats/weight.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

typedef struct heap_entry {
    double distance;
    uint32_t vertex;
} heap_entry;

typedef struct vertex_heap {
    heap_entry *entries;
    uint64_t count;
    uint64_t capacity;
} vertex_heap;

static bool push(vertex_heap *heap, double distance, uint32_t vertex)
{
    if (heap->count == heap->capacity) {
        uint64_t capacity = heap->capacity ? 2 * heap->capacity : 1024;
        heap_entry *entries = realloc(heap->entries, capacity * sizeof *entries);
        if (!entries) {
            return false;
        }
        heap->entries = entries;
        heap->capacity = capacity;
    }
    uint64_t place = heap->count++;
    while (place > 0 && heap->entries[(place - 1) / 2].distance > distance) {
        heap->entries[place] = heap->entries[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    heap->entries[place] = (heap_entry){distance, vertex};
    return true;
}

static heap_entry pop(vertex_heap *heap)
{
    heap_entry least = heap->entries[0];
    heap_entry moved = heap->entries[--heap->count];
    uint64_t place = 0;
    for (;;) {
        uint64_t child = 2 * place + 1;
        if (child + 1 < heap->count && heap->entries[child + 1].distance < heap->entries[child].distance) {
            child++;
        }
        if (child >= heap->count || heap->entries[child].distance >= moved.distance) {
            break;
        }
        heap->entries[place] = heap->entries[child];
        place = child;
    }
    heap->entries[place] = moved;
    return least;
}

static double weight_of(const dmg_graph *graph, uint64_t arc)
{
    return graph->out.weights ? dmg_weight_value(&graph->out.weights[arc], graph->weight_kind) : 1;
}

dmg_status dmg_serial_sssp(const dmg_graph *graph, const dmg_algorithm_options *options, void *values)
{
    double *distance = values;
    for (uint64_t vertex = 0; vertex < graph->vertex_count; vertex++) {
        distance[vertex] = INFINITY;
    }
    if (options->source >= graph->vertex_count) {
        return DMG_OK;
    }
    vertex_heap heap = {0};
    distance[options->source] = 0;
    bool is_good = push(&heap, 0, options->source);
    while (is_good && heap.count > 0) {
        heap_entry nearest = pop(&heap);
        if (nearest.distance > distance[nearest.vertex]) {
            continue;
        }
        uint64_t end = graph->out.offsets[nearest.vertex + 1];
        for (uint64_t arc = graph->out.offsets[nearest.vertex]; arc < end && is_good; arc++) {
            uint32_t neighbour = graph->out.destinations[arc];
            double through = nearest.distance + weight_of(graph, arc);
            if (through < distance[neighbour]) {
                distance[neighbour] = through;
                is_good = push(&heap, through, neighbour);
            }
        }
    }
    free(heap.entries);
    return is_good ? DMG_OK : dmg_error(DMG_ERR_MEMORY, "no memory for a heap of %" PRIu64 " entries", heap.count);
}
