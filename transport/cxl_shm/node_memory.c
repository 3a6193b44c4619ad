/*
 * The segment as the memory node's own program reads and writes it, and what compute nodes leave to that program where
 * the memory is not coherent: parts of cache lines, and atomics.
 */
#include "core/base/checked.h"
#include "transport/cxl_shm/server.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ACQUIRED_INITIAL 64

char *dmg_shm_server_behind_segment(const dmg_shm_server *server)
{
    return (char *)server->segment.pointer + server->segment.bytes;
}

void dmg_shm_server_publish_raw(dmg_shm_server *server, void *start, uint64_t bytes)
{
    const dmg_shm_view view = {.memory = start, .bytes = bytes};
    if (server->coherence.is_software) {
        dmg_shm_write_back(&server->agent, &view, 0, bytes, DMG_SHM_NODE_WRITE);
        dmg_shm_store_fence(&server->agent, DMG_SHM_PAYLOAD_WRITE);
    }
}

/* ---- the segment, as this program reads and writes it ---- */

bool dmg_shm_server_is_coherent(dmg_backend_server *base)
{
    return !((dmg_shm_server *)base)->coherence.is_software;
}

void dmg_shm_server_acquire(dmg_backend_server *base, uint64_t offset, uint64_t bytes)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    if (!server->coherence.is_software || bytes == 0) {
        return;
    }
    dmg_shm_invalidate(&server->agent, &server->view, offset, bytes, DMG_SHM_NODE_READ);
    if (!server->view.cache) {
        return;
    }
    if (server->acquired_count == server->acquired_capacity) {
        uint32_t capacity = server->acquired_capacity ? server->acquired_capacity * 2 : ACQUIRED_INITIAL;
        dmg_shm_acquired_span *grown = realloc(server->acquired, capacity * sizeof *grown);
        if (!grown) {
            dmg_shm_server_acquire_wait(&server->base);
            dmg_shm_fetch(&server->agent, &server->view, offset, bytes);
            return;
        }
        server->acquired = grown;
        server->acquired_capacity = capacity;
    }
    server->acquired[server->acquired_count++] = (dmg_shm_acquired_span){offset, bytes};
}

void dmg_shm_server_acquire_wait(dmg_backend_server *base)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    if (!server->coherence.is_software) {
        return;
    }
    dmg_shm_load_fence(&server->agent, DMG_SHM_NODE_READ);
    for (uint32_t i = 0; i < server->acquired_count; i++) {
        dmg_shm_fetch(&server->agent, &server->view, server->acquired[i].offset, server->acquired[i].bytes);
    }
    server->acquired_count = 0;
}

/* No fence: every answer has one before it is published. */
void dmg_shm_server_release(dmg_backend_server *base, uint64_t offset, uint64_t bytes)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    if (server->coherence.is_software && bytes > 0) {
        dmg_shm_mark_written(&server->agent, &server->view, offset, bytes);
        dmg_shm_write_back(&server->agent, &server->view, offset, bytes, DMG_SHM_NODE_WRITE);
    }
}

/* A file that was there is another's, and so are its pages. */
bool dmg_shm_server_give_back(dmg_backend_server *base, uint64_t offset, uint64_t bytes)
{
    dmg_shm_server *server = (dmg_shm_server *)base;
    return !server->coherence.is_software && !server->segment.is_used && !server->segment.is_device &&
           madvise((char *)server->segment.pointer + offset, bytes, MADV_REMOVE) == 0;
}

bool dmg_shm_server_is_in_files(dmg_backend_server *base)
{
    return ((dmg_shm_server *)base)->segment.created_path != NULL;
}

/* ---- what compute nodes leave to the memory node without coherence ---- */

static dmg_status merge_pieces(dmg_shm_server *server, const dmg_shm_merge *merge)
{
    for (int i = 0; i < 2; i++) {
        const dmg_shm_piece *piece = &merge->pieces[i];
        if (piece->bytes > DMG_SHM_CACHE_LINE_BYTES ||
            !dmg_range_is_inside(piece->offset, piece->bytes, server->segment.bytes)) {
            return DMG_ERR_PROTOCOL;
        }
        dmg_shm_server_acquire(&server->base, piece->offset, piece->bytes);
    }
    dmg_shm_server_acquire_wait(&server->base);
    for (int i = 0; i < 2; i++) {
        const dmg_shm_piece *piece = &merge->pieces[i];
        memcpy(dmg_shm_view_pointer(&server->view) + piece->offset, piece->data, piece->bytes);
        dmg_shm_server_release(&server->base, piece->offset, piece->bytes);
    }
    return DMG_OK;
}

static dmg_status execute_atomic(dmg_shm_server *server, const dmg_shm_atomic *atomic, uint64_t *before)
{
    if (atomic->offset % sizeof(uint64_t) != 0 ||
        !dmg_range_is_inside(atomic->offset, sizeof(uint64_t), server->segment.bytes)) {
        return DMG_ERR_PROTOCOL;
    }
    dmg_shm_server_acquire(&server->base, atomic->offset, sizeof(uint64_t));
    dmg_shm_server_acquire_wait(&server->base);
    uint64_t *word = (uint64_t *)(void *)(dmg_shm_view_pointer(&server->view) + atomic->offset);
    *before = *word;
    if (atomic->is_addition || *before == atomic->expected) {
        *word = atomic->is_addition ? *before + atomic->expected : atomic->desired;
        dmg_shm_server_release(&server->base, atomic->offset, sizeof(uint64_t));
    }
    return DMG_OK;
}

bool dmg_shm_server_serve_one_sided(dmg_shm_server *server, const dmg_request *request)
{
    dmg_counters *counters = dmg_server_mutable_counters(server->server);
    if (!server->coherence.is_software || (request->type != DMG_SHM_MERGE && request->type != DMG_SHM_ATOMIC)) {
        return false;
    }
    dmg_status status = DMG_ERR_PROTOCOL;
    uint64_t before = 0;
    size_t answer_bytes = 0;
    const char *refusal = dmg_server_refusal(server->server, request->client);
    if (refusal) {
        dmg_shm_server_reply(&server->base, request->reply_token, DMG_ERR_PEER, refusal, strlen(refusal));
        return true;
    }
    if (request->type == DMG_SHM_MERGE && request->bytes == sizeof(dmg_shm_merge)) {
        const dmg_shm_merge *merge = request->payload;
        status = merge_pieces(server, merge);
        if (status == DMG_OK) { /* before it is checked, a count is any number */
            dmg_counters_count(counters, DMG_OPERATION_WRITE, merge->pieces[0].bytes + merge->pieces[1].bytes);
        }
    } else if (request->type == DMG_SHM_ATOMIC && request->bytes == sizeof(dmg_shm_atomic)) {
        const dmg_shm_atomic *atomic = request->payload;
        dmg_counters_count(counters, atomic->is_addition ? DMG_OPERATION_FAA : DMG_OPERATION_CAS, sizeof before);
        status = execute_atomic(server, atomic, &before);
        answer_bytes = status == DMG_OK ? sizeof before : 0;
    }
    dmg_shm_server_reply(&server->base, request->reply_token, status, &before, answer_bytes);
    return true;
}
