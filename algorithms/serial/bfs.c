/*
 * Breadth-first search, level by level.
 *
 * A level is walked in ascending order of its vertices, so the first that reaches a vertex is its smallest parent; each
 * new level is sorted for that.
 */
#include "algorithms/serial.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

dmg_status dmg_serial_bfs(const dmg_graph *graph, const dmg_algorithm_options *options, void *values)
{
    uint64_t *value = values;
    for (uint64_t vertex = 0; vertex < graph->vertex_count; vertex++) {
        value[vertex] = DMG_BFS_UNREACHED;
    }
    if (options->source >= graph->vertex_count) {
        return DMG_OK;
    }
    uint32_t *queue = malloc(graph->vertex_count * sizeof *queue);
    if (!queue) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the queue of %" PRIu64 " vertices", graph->vertex_count);
    }
    uint64_t level_first = 0;
    uint64_t level_end = 1;
    queue[0] = options->source;
    value[options->source] = options->source;
    for (uint64_t depth = 1; level_first < level_end; depth++) {
        uint64_t next_end = level_end;
        for (uint64_t place = level_first; place < level_end; place++) {
            uint32_t vertex = queue[place];
            for (uint64_t arc = graph->out.offsets[vertex]; arc < graph->out.offsets[vertex + 1]; arc++) {
                uint32_t neighbour = graph->out.destinations[arc];
                if (value[neighbour] == DMG_BFS_UNREACHED) {
                    value[neighbour] = depth << 32 | vertex;
                    queue[next_end++] = neighbour;
                }
            }
        }
        level_first = level_end;
        level_end = next_end;
        qsort(queue + level_first, level_end - level_first, sizeof *queue, ascending);
    }
    free(queue);
    return DMG_OK;
}
