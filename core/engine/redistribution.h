/**
 * @file redistribution.h
 * The rounds in which the ranks of a run exchange what they pass on through pool memory (DMG, section 4.3.1): segments
 * by reference (exchange/refrd.h), and values to their owners (exchange/valrd_owner.h).
 *
 * A dense iteration sends in rounds. A round ends when the mailboxes fill up or the edges do: what was sent is
 * exchanged, and the ranks that still have edges go on in the next one. So an iteration needs no more pool memory than
 * a round, and its updates never have to wait for room. What one chunk generates beyond the room that is left goes
 * another way: segments by value, values by direct remote updates.
 */
#ifndef DMG_CORE_ENGINE_REDISTRIBUTION_H
#define DMG_CORE_ENGINE_REDISTRIBUTION_H

#include "core/engine/exchange/valrd_owner.h"
#include "core/engine/runtime.h"

/** How what came from other ranks is applied: to this rank's cache, or as own updates of the pool. False when it does
 * not lead to this rank's partitions: who sent it is not believed. */
typedef struct dmg_appliers {
    /** Edges, and the value of each item's source; NULL: nothing is passed by reference in this walk. */
    bool (*references)(void *context, uint32_t worker, const dmg_vertex_edges *items, const uint64_t *values,
                       uint32_t count);
    dmg_valrd_owner_apply values;
} dmg_appliers;

typedef struct dmg_redistribution dmg_redistribution;

/**
 * `*redistribution` is NULL where nothing is passed on through pool memory: one member a group, or switched off. With
 * `by_owner` the workers can be directed to DMG_UPDATE_VALRD_OWNER. Every rank calls it alike.
 */
dmg_status dmg_redistribution_create(dmg_engine *engine, dmg_combine combine, bool by_reference, bool by_owner,
                                     dmg_redistribution **redistribution);
/** NULL is allowed. */
void dmg_redistribution_destroy(dmg_redistribution *redistribution);

/** Pass a segment on, unless it or its list is too short or there is no room. */
bool dmg_redistribution_offer(dmg_redistribution *redistribution, uint32_t worker, const dmg_foreign_segment *segment,
                              uint64_t value);

/** What a walk does until the mailboxes fill up; `*is_done` when no edges are left. */
typedef dmg_status (*dmg_walk_on)(void *context, bool *is_done);
/**
 * Walk edges and exchange what they give, in rounds. Ends with all ranks' updates applied, and no earlier than all
 * ranks' direct updates are in the pool; before the next call there must be a barrier. Every rank calls it.
 */
dmg_status dmg_redistribution_run(dmg_redistribution *redistribution, dmg_walk_on walk_on, const dmg_appliers *appliers,
                                  void *context);

/** For a plan's `pause`: senders should stop soon. Thread-safe. */
bool dmg_redistribution_is_filling_up(const dmg_redistribution *redistribution);
/** For a plan's `finish`. */
dmg_status dmg_redistribution_finish_worker(dmg_redistribution *redistribution, uint32_t worker);

#endif
