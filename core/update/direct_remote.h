/**
 * @file direct_remote.h
 * Direct remote (DR) updates: the compute node that generates an update applies it to the pool itself (DMG,
 * section 4.3.2).
 *
 * Remote memory has no "minimum" or "add", so an update is a read, a comparison, and 8-byte compare-and-swaps until one
 * succeeds or none is needed. Updates are collected, ordered by address so that those to one word become one, and
 * carried out a queue at a time with all reads in flight together, then all swaps, then the swaps that lost. Where the
 * pool is reached by loads and stores and is coherent, an update is done at once by CPU atomics instead.
 *
 * An *own* update is one of an attribute that no other compute node updates meanwhile. In place it needs no atomics
 * across compute nodes, which where these take a lock takes none: the lines of a queue of own updates are fetched
 * together, changed by atomics among the threads of this compute node, and written back together.
 *
 * An update that lowered its attribute also sets the vertex's bit in the activation bitmap of the next iteration.
 */
#ifndef DMG_CORE_UPDATE_DIRECT_REMOTE_H
#define DMG_CORE_UPDATE_DIRECT_REMOTE_H

#include "core/base/budget.h"
#include "core/pool/pool.h"
#include "core/update/target.h"

typedef struct dmg_direct_remote dmg_direct_remote;

/** The queue of one worker. `client` tells whether updates can be done in place. */
dmg_status dmg_direct_remote_create(dmg_client *client, dmg_channel *channel, dmg_budget *budget,
                                    dmg_direct_remote **queue);
/** NULL is allowed. The queue must have been flushed, or its updates are lost. */
void dmg_direct_remote_destroy(dmg_direct_remote *queue);

/** Direct the following updates; the queue must be empty. The arrays must stay until the next call or the end. With
 * `has_one_writer` all updates are own ones. */
void dmg_direct_remote_set_target(dmg_direct_remote *queue, const dmg_update_target *target);

/**
 * Update the attribute of a vertex. `update` is the value, in the low bytes, or a double's bits. Flushes when the queue
 * is full; an error is kept until dmg_direct_remote_flush.
 */
void dmg_direct_remote_update(dmg_direct_remote *queue, uint32_t vertex, uint64_t update);
/** The same as an own update, which is not counted among the updates: who sent it has counted it. */
void dmg_direct_remote_update_own(dmg_direct_remote *queue, uint32_t vertex, uint64_t update);
/** Carry out everything that is queued. Returns the first error since the last flush. */
dmg_status dmg_direct_remote_flush(dmg_direct_remote *queue);

const dmg_update_counters *dmg_direct_remote_count(const dmg_direct_remote *queue);

#endif
