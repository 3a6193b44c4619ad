/**
 * @file chunks.h
 * Per-thread chunking and work stealing over a range of vertices (DMG, section 4.4.2).
 *
 * A range is cut into chunks of consecutive vertices; each worker owns a run of chunks, and one that is through with
 * its own takes from the others.
 */
#ifndef DMG_CORE_WORK_CHUNKS_H
#define DMG_CORE_WORK_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#define DMG_WORKERS_MAX 64
/** A multiple of 64, so that a word of the activation bitmap belongs to one chunk. */
#define DMG_CHUNK_VERTICES_MAX 4096

typedef struct dmg_chunk_cursor {
    _Alignas(64) _Atomic uint64_t next;
    uint64_t end;
} dmg_chunk_cursor;

typedef struct dmg_chunks {
    uint64_t first;
    uint64_t last;
    uint32_t chunk_vertices;
    uint32_t workers;
    dmg_chunk_cursor cursors[DMG_WORKERS_MAX];
} dmg_chunks;

/**
 * Deal out [first, last) to so many workers (at most DMG_WORKERS_MAX), in chunks of at most `chunk_vertices_max`
 * vertices, a multiple of
 * 64. Not while workers take.
 */
void dmg_chunks_reset(dmg_chunks *chunks, uint64_t first, uint64_t last, uint32_t workers, uint32_t chunk_vertices_max);

/** Take a chunk, the worker's own first. False when nothing is left anywhere. Thread-safe. */
bool dmg_chunks_take(dmg_chunks *chunks, uint32_t worker, uint64_t *first, uint32_t *count);

#endif
