#include "core/work/chunks.h"

#include <stdatomic.h>
#include <stddef.h>

/* With fewer chunks a worker the last one to finish keeps the others waiting; with more, small graphs pay for taking.
 */
#define CHUNKS_A_WORKER 8

static void deal_to_workers(dmg_chunks *chunks, uint64_t count)
{
    for (uint32_t worker = 0; worker < chunks->workers; worker++) {
        uint64_t begin = count * worker / chunks->workers;
        atomic_store_explicit(&chunks->cursors[worker].next, begin, memory_order_relaxed);
        chunks->cursors[worker].end = count * (worker + 1) / chunks->workers;
    }
}

/* Chunks of `vertices` vertices: enough for all workers, no larger than what the buffers allow. */
static uint64_t chunk_size(uint64_t vertices, uint32_t workers, uint64_t chunk_vertices_max)
{
    uint64_t size = vertices / ((uint64_t)workers * CHUNKS_A_WORKER);
    size = (size + 63) & ~UINT64_C(63);
    return size < 64 ? 64 : size > chunk_vertices_max ? chunk_vertices_max : size;
}

void dmg_chunks_reset(dmg_chunks *chunks, uint64_t first, uint64_t last, uint32_t workers, uint32_t chunk_vertices_max)
{
    dmg_chunks_reset_block_cyclic(chunks, first, last, NULL, workers, chunk_vertices_max);
}

void dmg_chunks_reset_block_cyclic(dmg_chunks *chunks, uint64_t first, uint64_t last, const dmg_block_cyclic *share,
                                   uint32_t workers, uint32_t chunk_vertices_max)
{
    chunks->first = first;
    chunks->last = last;
    chunks->workers = workers;
    chunks->share = share ? *share : (dmg_block_cyclic){0};
    if (chunks->share.block_vertices == 0) {
        uint64_t size = chunk_size(last - first, workers, chunk_vertices_max);
        chunks->chunk_vertices = (uint32_t)size;
        deal_to_workers(chunks, (last - first + size - 1) / size);
        return;
    }
    uint64_t block = share->block_vertices;
    uint64_t size = chunk_size((last - first) / share->cycle * share->count, workers,
                               block < chunk_vertices_max ? block : chunk_vertices_max);
    uint64_t cycle_vertices = block * share->cycle;
    uint64_t cycles = first < last ? (last - 1) / cycle_vertices + 1 - first / cycle_vertices : 0;
    chunks->chunk_vertices = (uint32_t)size;
    chunks->chunks_a_block = (uint32_t)((block + size - 1) / size);
    chunks->first_cycle = first / cycle_vertices;
    deal_to_workers(chunks, cycles * share->count * chunks->chunks_a_block);
}

/* The vertices of a chunk, cut to the range: none, where a dealt block lies outside. */
static void locate(const dmg_chunks *chunks, uint64_t chunk, uint64_t *first, uint64_t *last)
{
    uint64_t from = chunks->first + chunk * chunks->chunk_vertices;
    uint64_t to = from + chunks->chunk_vertices;
    if (chunks->share.block_vertices != 0) {
        const dmg_block_cyclic *share = &chunks->share;
        uint64_t dealt = chunk / chunks->chunks_a_block;
        uint64_t cycle = chunks->first_cycle + dealt / share->count;
        uint64_t block = cycle * share->cycle + (share->first + dealt % share->count) % share->cycle;
        uint64_t block_last = (block + 1) * share->block_vertices;
        from = block * share->block_vertices + chunk % chunks->chunks_a_block * chunks->chunk_vertices;
        to = from + chunks->chunk_vertices;
        to = to < block_last ? to : block_last;
    }
    *first = from > chunks->first ? from : chunks->first;
    *last = to < chunks->last ? to : chunks->last;
}

static bool take_from(dmg_chunks *chunks, dmg_chunk_cursor *cursor, uint64_t *first, uint32_t *count)
{
    /* The look before the addition keeps idle workers from bouncing the line, and the cursor from running away. */
    while (atomic_load_explicit(&cursor->next, memory_order_relaxed) < cursor->end) {
        uint64_t chunk = atomic_fetch_add_explicit(&cursor->next, 1, memory_order_relaxed);
        uint64_t last;
        if (chunk >= cursor->end) {
            return false;
        }
        locate(chunks, chunk, first, &last);
        if (*first < last) {
            *count = (uint32_t)(last - *first);
            return true;
        }
    }
    return false;
}

bool dmg_chunks_take(dmg_chunks *chunks, uint32_t worker, uint64_t *first, uint32_t *count)
{
    for (uint32_t i = 0; i < chunks->workers; i++) {
        if (take_from(chunks, &chunks->cursors[(worker + i) % chunks->workers], first, count)) {
            return true;
        }
    }
    return false;
}

bool dmg_chunks_are_left(const dmg_chunks *chunks)
{
    for (uint32_t worker = 0; worker < chunks->workers; worker++) {
        const dmg_chunk_cursor *cursor = &chunks->cursors[worker];
        if (atomic_load_explicit(&cursor->next, memory_order_relaxed) < cursor->end) {
            return true;
        }
    }
    return false;
}
