/**
 * @file chunks.h
 * Per-thread chunking and work stealing over a range of vertices (DMG, section 4.4.2).
 *
 * A range is cut into chunks of consecutive vertices; each worker owns a run of chunks, and one that is through with
 * its own takes from the others.
 */
#ifndef DMG_CORE_WORK_CHUNKS_H
#define DMG_CORE_WORK_CHUNKS_H

#include "core/base/limits.h"

#include <stdbool.h>
#include <stdint.h>

/** A multiple of 64, so that a word of the activation bitmap belongs to one chunk. */
#define DMG_CHUNK_VERTICES_MAX 1024

/**
 * A block-cyclic distribution: which vertices of a range are taken, when several compute nodes have the same range and
 * share it out. Blocks of consecutive vertices, counted from vertex 0, are dealt out in cycles, so that all who use the
 * same sizes agree, whatever their ranges. In small blocks, each gets its share of the hubs.
 */
typedef struct dmg_block_cyclic {
    uint32_t block_vertices; /**< a multiple of 64; 0: nothing is dealt, the whole range is taken */
    uint32_t cycle;          /**< so many blocks are dealt, then it begins again */
    uint32_t first; /**< of each cycle the blocks first, first + 1, ... are taken, going on at 0 behind its end */
    uint32_t count; /**< so many of them; 1 <= count <= cycle */
} dmg_block_cyclic;

typedef struct dmg_chunk_cursor {
    _Alignas(64) _Atomic uint64_t next;
    uint64_t end;
} dmg_chunk_cursor;

typedef struct dmg_chunks {
    uint64_t first;
    uint64_t last;
    uint32_t chunk_vertices;
    uint32_t workers;
    dmg_block_cyclic share;
    uint32_t chunks_a_block; /**< where blocks are dealt */
    uint64_t first_cycle;
    dmg_chunk_cursor cursors[DMG_WORKERS_MAX];
} dmg_chunks;

/**
 * Deal out [first, last) to so many workers (at most DMG_WORKERS_MAX), in chunks of at most `chunk_vertices_max`
 * vertices, a multiple of
 * 64. Not while workers take.
 */
void dmg_chunks_reset(dmg_chunks *chunks, uint64_t first, uint64_t last, uint32_t workers, uint32_t chunk_vertices_max);

/** As dmg_chunks_reset, of those vertices in [first, last) that the share takes. NULL: all. */
void dmg_chunks_reset_block_cyclic(dmg_chunks *chunks, uint64_t first, uint64_t last, const dmg_block_cyclic *share,
                                   uint32_t workers, uint32_t chunk_vertices_max);

/** Take a chunk, the worker's own first. False when nothing is left anywhere. Thread-safe. */
bool dmg_chunks_take(dmg_chunks *chunks, uint32_t worker, uint64_t *first, uint32_t *count);
/** True when there is something to take. */
bool dmg_chunks_are_left(const dmg_chunks *chunks);

#endif
