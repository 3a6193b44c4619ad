/**
 * @file tiny_chunk.h
 * Tiny-chunks, and partitioning from their metadata alone (DMG, section 4.4.1).
 *
 * The vertices are sliced into at most 1,024 (by option, up to 16,384) ranges of equal size, a multiple of 64 so that a
 * word of the activation bitmap belongs to one partition. Partitions are runs of tiny-chunks that balance 8 * (p - 1) *
 * |Vi| + |Ei| (Gemini's objective, as DMG uses it).
 */
#ifndef DMG_CORE_STORE_TINY_CHUNK_H
#define DMG_CORE_STORE_TINY_CHUNK_H

#include "dmgraph/status.h"

#include <stdint.h>

#define DMG_TINY_CHUNKS_DEFAULT 1024
#define DMG_TINY_CHUNKS_MAX     16384

/** The metadata: of chunk i, vertices [i * vertices, (i + 1) * vertices) and its arcs. */
typedef struct dmg_tiny_chunks {
    uint64_t vertex_count;
    uint64_t chunk_vertices; /**< a multiple of 64 */
    uint32_t count;          /**< 0 for an empty graph */
    uint64_t *arcs;          /**< `count` of them; owned */
} dmg_tiny_chunks;

/** Slice, and count arcs from a CSR's offsets (vertex_count + 1), of which only those at the bounds of tiny-chunks are
 * looked at. Destroy with dmg_tiny_chunks_destroy. */
dmg_status dmg_tiny_chunks_create(uint64_t vertex_count, const uint64_t *offsets, uint32_t chunks_wanted,
                                  dmg_tiny_chunks *chunks);
void dmg_tiny_chunks_destroy(dmg_tiny_chunks *chunks);

/**
 * Cut into partitions: `first` gets partition_count + 1 vertices, ascending, from 0 to vertex_count; all but the last
 * are multiples of chunk_vertices. Partitions may be empty when there are fewer chunks. Costs O(chunks), whatever the
 * graph.
 */
void dmg_tiny_chunks_partition(const dmg_tiny_chunks *chunks, uint32_t partition_count, uint64_t *first);

/** What the vertices [first, last) are charged as one of so many partitions; both are bounds of partitions. Costs
 * O(chunks). */
uint64_t dmg_tiny_chunks_cost(const dmg_tiny_chunks *chunks, uint32_t partition_count, uint64_t first, uint64_t last);

#endif
