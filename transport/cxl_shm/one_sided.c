/*
 * Reads, writes and atomics of a compute node.
 *
 * Over coherent memory the calling thread does them by loads, stores and CPU atomics, and they have ended when the post
 * returns. Without coherence a read invalidates first, and a write writes back; but lines that a write covers in part
 * may be written by two hosts, of which one would lose, and an atomic operation on a cached line is none. These are
 * executed by the memory node, one for all.
 */
#include "transport/cxl_shm/channel.h"
#include "transport/cxl_shm/copy.h"

#include <sched.h>

/* ---- without coherence ---- */

static bool does(const dmg_shm_channel *channel, uint32_t site)
{
    return channel->agent.coherence.left_out != site;
}

static void read_software(dmg_shm_channel *channel, uint16_t node, uint64_t offset, void *to, uint64_t bytes)
{
    dmg_shm_read(&channel->agent, &channel->client->views[node], offset, to, bytes, DMG_SHM_DATA_READ);
}

static dmg_shm_piece make_piece(uint64_t offset, const char *from, uint64_t bytes)
{
    dmg_shm_piece piece = {.offset = offset, .bytes = bytes};
    memcpy(piece.data, from, bytes);
    return piece;
}

/* Ends the operation, or has a message in flight that does. */
static void write_software(dmg_shm_channel *channel, const char *from, uint16_t node, uint64_t offset, uint64_t bytes,
                           dmg_completion *completion)
{
    const uint64_t line = DMG_SHM_CACHE_LINE_BYTES;
    uint64_t end = offset + bytes;
    uint64_t first_whole = (offset + line - 1) / line * line;
    uint64_t last_whole = end / line * line;
    dmg_shm_merge merge = {0};
    if (!does(channel, DMG_SHM_SITE_SHARED_LINES)) {
        first_whole = offset;
        last_whole = end;
    } else if (first_whole > last_whole) {
        merge.pieces[0] = make_piece(offset, from, bytes); /* inside one line */
    } else {
        merge.pieces[0] = make_piece(offset, from, first_whole - offset);
        merge.pieces[1] = make_piece(last_whole, from + (last_whole - offset), end - last_whole);
    }
    if (first_whole < last_whole) {
        dmg_shm_write(&channel->agent, &channel->client->views[node], first_whole, from + (first_whole - offset),
                      last_whole - first_whole, DMG_SHM_DATA_WRITE);
    }
    if (merge.pieces[0].bytes == 0 && merge.pieces[1].bytes == 0) {
        completion->pending--;
        return;
    }
    dmg_shm_post_message(channel, node, DMG_SHM_MERGE, &merge, sizeof merge,
                         &(dmg_shm_flying){.completion = completion});
}

/* What would happen if compute nodes executed atomics on lines that they cache. */
static uint64_t execute_here(dmg_shm_channel *channel, uint16_t node, const dmg_shm_atomic *atomic)
{
    dmg_shm_view *view = &channel->client->views[node];
    uint64_t word;
    dmg_shm_load(&channel->agent, view, atomic->offset, &word, sizeof word);
    uint64_t desired = atomic->is_addition ? word + atomic->expected : atomic->desired;
    if (atomic->is_addition || word == atomic->expected) {
        dmg_shm_write(&channel->agent, view, atomic->offset, &desired, sizeof desired, DMG_SHM_DATA_WRITE);
    }
    return word;
}

static void post_atomic(dmg_shm_channel *channel, uint16_t node, const dmg_shm_atomic *atomic, uint64_t *observed,
                        dmg_completion *completion)
{
    if (does(channel, DMG_SHM_SITE_ATOMICS)) {
        dmg_shm_post_message(channel, node, DMG_SHM_ATOMIC, atomic, sizeof *atomic,
                             &(dmg_shm_flying){.completion = completion, .observed = observed});
        return;
    }
    *observed = execute_here(channel, node, atomic);
    completion->pending--;
}

/* ---- mapped ---- */

/* The first thread that comes to a block invalidates it; others wait until it has. */
static void refresh_block(dmg_shm_channel *channel, uint16_t node, uint64_t block)
{
    _Atomic uint8_t *state = &channel->client->blocks[node][block];
    const dmg_shm_view *view = &channel->client->views[node];
    uint8_t seen = DMG_SHM_BLOCK_IS_OLD;
    if (atomic_compare_exchange_strong(state, &seen, DMG_SHM_BLOCK_IS_TAKEN)) {
        uint64_t offset = block * DMG_SHM_BLOCK_BYTES;
        uint64_t left = view->bytes - offset;
        dmg_shm_invalidate(&channel->agent, view, offset, left < DMG_SHM_BLOCK_BYTES ? left : DMG_SHM_BLOCK_BYTES,
                           DMG_SHM_MAPPED);
        dmg_shm_load_fence(&channel->agent, DMG_SHM_MAPPED);
        atomic_store_explicit(state, DMG_SHM_BLOCK_IS_FRESH, memory_order_release);
        return;
    }
    while (atomic_load_explicit(state, memory_order_acquire) == DMG_SHM_BLOCK_IS_TAKEN) {
        sched_yield();
    }
}

void dmg_shm_use_mapped(dmg_backend_channel *base, dmg_operation_kind kind, uint16_t node, uint64_t offset,
                        uint64_t bytes)
{
    dmg_shm_channel *channel = (dmg_shm_channel *)base;
    if (!channel->agent.coherence.is_software || kind != DMG_OPERATION_READ || bytes == 0) {
        return;
    }
    for (uint64_t block = offset / DMG_SHM_BLOCK_BYTES; block <= (offset + bytes - 1) / DMG_SHM_BLOCK_BYTES; block++) {
        if (atomic_load_explicit(&channel->client->blocks[node][block], memory_order_acquire) !=
            DMG_SHM_BLOCK_IS_FRESH) {
            refresh_block(channel, node, block);
        }
    }
    dmg_shm_fetch(&channel->agent, &channel->client->views[node], offset, bytes);
}

void dmg_shm_client_acquire(dmg_backend_client *base)
{
    dmg_shm_client *client = (dmg_shm_client *)base;
    for (uint32_t node = 0; client->coherence.is_software && node < client->node_count; node++) {
        uint64_t blocks = (client->nodes[node].segment_bytes + DMG_SHM_BLOCK_BYTES - 1) / DMG_SHM_BLOCK_BYTES;
        memset((void *)client->blocks[node], DMG_SHM_BLOCK_IS_OLD, blocks);
    }
}

/* ---- posting ---- */

void dmg_shm_post_read(dmg_backend_channel *base, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                       dmg_completion *completion)
{
    dmg_shm_channel *channel = (dmg_shm_channel *)base;
    if (channel->agent.coherence.is_software) {
        read_software(channel, node, offset, to, bytes);
    } else {
        dmg_shm_copy_from_pool(to, dmg_shm_at(channel->nodes, node, offset), bytes);
    }
    completion->pending--;
}

void dmg_shm_post_write(dmg_backend_channel *base, const void *from, uint16_t node, uint64_t offset, uint64_t bytes,
                        dmg_completion *completion)
{
    dmg_shm_channel *channel = (dmg_shm_channel *)base;
    if (channel->agent.coherence.is_software) {
        write_software(channel, from, node, offset, bytes, completion);
        return;
    }
    dmg_shm_copy_to_pool(dmg_shm_at(channel->nodes, node, offset), from, bytes);
    completion->pending--;
}

void dmg_shm_post_cas64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t expected, uint64_t desired,
                        uint64_t *observed, dmg_completion *completion)
{
    dmg_shm_channel *channel = (dmg_shm_channel *)base;
    if (channel->agent.coherence.is_software) {
        post_atomic(channel, node, &(dmg_shm_atomic){.offset = offset, .expected = expected, .desired = desired},
                    observed, completion);
        return;
    }
    _Atomic uint64_t *word = dmg_shm_at(channel->nodes, node, offset);
    atomic_compare_exchange_strong(word, &expected, desired);
    *observed = expected;
    completion->pending--;
}

void dmg_shm_post_faa64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t addend, uint64_t *before,
                        dmg_completion *completion)
{
    dmg_shm_channel *channel = (dmg_shm_channel *)base;
    if (channel->agent.coherence.is_software) {
        post_atomic(channel, node, &(dmg_shm_atomic){.offset = offset, .is_addition = 1, .expected = addend}, before,
                    completion);
        return;
    }
    _Atomic uint64_t *word = dmg_shm_at(channel->nodes, node, offset);
    *before = atomic_fetch_add(word, addend);
    completion->pending--;
}
