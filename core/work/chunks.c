#include "core/work/chunks.h"

#include <stdatomic.h>

/* With fewer chunks a worker the last one to finish keeps the others waiting; with more, small graphs pay for taking.
 */
#define CHUNKS_A_WORKER 8

void dmg_chunks_reset(dmg_chunks *chunks, uint64_t first, uint64_t last, uint32_t workers, uint32_t chunk_vertices_max)
{
    uint64_t vertices = last - first;
    uint64_t size = vertices / ((uint64_t)workers * CHUNKS_A_WORKER);
    size = (size + 63) & ~UINT64_C(63);
    size = size < 64 ? 64 : size > chunk_vertices_max ? chunk_vertices_max : size;
    uint64_t count = (vertices + size - 1) / size;
    chunks->first = first;
    chunks->last = last;
    chunks->chunk_vertices = (uint32_t)size;
    chunks->workers = workers;
    for (uint32_t worker = 0; worker < workers; worker++) {
        atomic_store_explicit(&chunks->cursors[worker].next, count * worker / workers, memory_order_relaxed);
        chunks->cursors[worker].end = count * (worker + 1) / workers;
    }
}

static bool take_from(dmg_chunks *chunks, dmg_chunk_cursor *cursor, uint64_t *first, uint32_t *count)
{
    /* The look before the addition keeps idle workers from bouncing the line, and the cursor from running away. */
    if (atomic_load_explicit(&cursor->next, memory_order_relaxed) >= cursor->end) {
        return false;
    }
    uint64_t chunk = atomic_fetch_add_explicit(&cursor->next, 1, memory_order_relaxed);
    if (chunk >= cursor->end) {
        return false;
    }
    *first = chunks->first + chunk * chunks->chunk_vertices;
    uint64_t left = chunks->last - *first;
    *count = left < chunks->chunk_vertices ? (uint32_t)left : chunks->chunk_vertices;
    return true;
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
