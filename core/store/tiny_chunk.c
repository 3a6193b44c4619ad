#include "core/store/tiny_chunk.h"

#include "core/base/error.h"

#include <stdlib.h>
#include <string.h>

/** A word of the activation bitmap covers so many vertices. */
#define BITMAP_WORD_VERTICES 64

dmg_status dmg_tiny_chunks_create(uint64_t vertex_count, const uint64_t *offsets, uint32_t chunks_wanted,
                                  dmg_tiny_chunks *chunks)
{
    *chunks = (dmg_tiny_chunks){.vertex_count = vertex_count, .chunk_vertices = BITMAP_WORD_VERTICES};
    if (chunks_wanted < 1 || chunks_wanted > DMG_TINY_CHUNKS_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "cannot slice a graph into %u tiny-chunks: expected 1 to %d", chunks_wanted,
                         DMG_TINY_CHUNKS_MAX);
    }
    if (vertex_count == 0) {
        return DMG_OK;
    }
    uint64_t words = (vertex_count - 1) / BITMAP_WORD_VERTICES + 1;
    chunks->chunk_vertices = ((words - 1) / chunks_wanted + 1) * BITMAP_WORD_VERTICES;
    chunks->count = (uint32_t)((vertex_count - 1) / chunks->chunk_vertices + 1);
    chunks->arcs = malloc(chunks->count * sizeof *chunks->arcs);
    if (!chunks->arcs) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the metadata of %u tiny-chunks", chunks->count);
    }
    for (uint32_t i = 0; i < chunks->count; i++) {
        uint64_t first = i * chunks->chunk_vertices;
        uint64_t left = vertex_count - first;
        uint64_t last = first + (left < chunks->chunk_vertices ? left : chunks->chunk_vertices);
        chunks->arcs[i] = offsets[last] - offsets[first];
    }
    return DMG_OK;
}

void dmg_tiny_chunks_destroy(dmg_tiny_chunks *chunks)
{
    free(chunks->arcs);
    memset(chunks, 0, sizeof *chunks);
}

/** What a partition is charged for chunk i: 8 * (p - 1) a vertex, 1 an arc. */
static uint64_t chunk_cost(const dmg_tiny_chunks *chunks, uint64_t vertex_cost, uint32_t i)
{
    uint64_t left = chunks->vertex_count - i * chunks->chunk_vertices;
    return vertex_cost * (left < chunks->chunk_vertices ? left : chunks->chunk_vertices) + chunks->arcs[i];
}

uint64_t dmg_tiny_chunks_cost(const dmg_tiny_chunks *chunks, uint32_t partition_count, uint64_t first, uint64_t last)
{
    uint64_t cost = 0;
    for (uint32_t i = 0; i < chunks->count; i++) {
        uint64_t start = i * chunks->chunk_vertices;
        cost += start >= first && start < last ? chunk_cost(chunks, UINT64_C(8) * (partition_count - 1), i) : 0;
    }
    return cost;
}

void dmg_tiny_chunks_partition(const dmg_tiny_chunks *chunks, uint32_t partition_count, uint64_t *first)
{
    uint64_t vertex_cost = UINT64_C(8) * (partition_count - 1);
    uint64_t left = 0;
    for (uint32_t i = 0; i < chunks->count; i++) {
        left += chunk_cost(chunks, vertex_cost, i);
    }
    uint32_t chunk = 0;
    first[0] = 0;
    for (uint32_t partition = 0; partition + 1 < partition_count; partition++) {
        /* The target is taken from what is left: what earlier partitions took beyond theirs is shared by all later
         * ones. */
        uint32_t sharing = partition_count - partition;
        uint64_t target = left / sharing + (left % sharing != 0);
        uint64_t cost = 0;
        while (chunk < chunks->count && cost < target) {
            cost += chunk_cost(chunks, vertex_cost, chunk++);
        }
        left -= cost;
        uint64_t end = chunk * chunks->chunk_vertices;
        first[partition + 1] = end < chunks->vertex_count ? end : chunks->vertex_count;
    }
    first[partition_count] = chunks->vertex_count;
}
