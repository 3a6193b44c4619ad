/**
 * @file references.h
 * A run's side of redistribution by reference: which segments are passed on, and walking those that others have passed
 * to this rank.
 */
#ifndef DMG_CORE_ENGINE_REFERENCES_H
#define DMG_CORE_ENGINE_REFERENCES_H

#include "core/engine/runtime.h"
#include "core/update/reference_redistribution.h"

/** Segments of more edges than this are passed by reference, shorter ones by value (DMG, section 4.3.1). */
#define DMG_REFERENCE_EDGES_DEFAULT 7

/** Update this rank's cache from edges and their source's value. False when an edge does not lead to this rank's
 * partitions. */
typedef bool (*dmg_apply_references)(void *context, uint32_t worker, const dmg_vertex_edges *items,
                                     const uint64_t *values, uint32_t count);

typedef struct dmg_references dmg_references;

/** `*references` is NULL where nothing is passed on: one member a group, or switched off. Every rank calls it. */
dmg_status dmg_references_create(dmg_engine *engine, dmg_references **references);
/** NULL is allowed. */
void dmg_references_destroy(dmg_references *references);

/** Before an iteration's edges are walked. */
void dmg_references_clear(dmg_references *references);
/** Pass a segment on to a member of this rank's group, `rank` being its number there, unless it is too short or there
 * is no room. */
bool dmg_references_offer(dmg_references *references, uint32_t worker, uint32_t vertex, uint64_t value, uint32_t rank,
                          dmg_address first_edge, uint32_t count);
/** When a worker has no more edges to walk. */
dmg_status dmg_references_finish(dmg_references *references, uint32_t worker);
/** When all workers of this rank have finished, before the barrier. */
dmg_status dmg_references_publish(dmg_references *references);
/** After the barrier: walk what others have passed on, with all workers. */
dmg_status dmg_references_walk(dmg_references *references, dmg_apply_references apply, void *context);

/** References that this rank has sent so far. */
uint64_t dmg_references_sent(const dmg_references *references);

#endif
