/**
 * @file reschedule.h
 * Runtime re-scheduling of long edge lists (DMG, section 4.4.2).
 *
 * A vertex with very many edges would keep one task busy while the others have nothing left to do. So a list of more
 * edges than a segment has goes into the buffer of the worker that came upon it, and is handed out from there in
 * segments of at most so many edges: to any task of that worker, before the task begins with new vertices, and to
 * workers that have run out of vertices.
 */
#ifndef DMG_CORE_WORK_RESCHEDULE_H
#define DMG_CORE_WORK_RESCHEDULE_H

#include "core/base/budget.h"

#include <stdbool.h>
#include <stdint.h>

/** Lists in a worker's buffer; more wait in their tasks. */
#define DMG_RESCHEDULE_LISTS 256

/** A piece of a list, handed out: to be given back by dmg_reschedule_finish. */
typedef struct dmg_list_piece {
    void *task;                   /**< whose list it is */
    _Atomic uint64_t *unfinished; /**< edges of that task's lists that are in the buffer or handed out */
    uint32_t list;                /**< which of the task's */
    uint32_t first;               /**< edge */
    uint32_t count;
} dmg_list_piece;

typedef struct dmg_reschedule dmg_reschedule;

/** One buffer a worker. `segment_edges` is at least 1. */
dmg_status dmg_reschedule_create(dmg_budget *budget, uint32_t workers, uint32_t segment_edges,
                                 dmg_reschedule **reschedule);
/** Lists of more edges are to be cut; no segment has more. */
uint32_t dmg_reschedule_segment_edges(const dmg_reschedule *reschedule);
/** NULL is allowed. */
void dmg_reschedule_destroy(dmg_reschedule *reschedule);

/**
 * Put a task's list of `count` edges into a worker's buffer. `unfinished` is raised by as many, and lowered again as
 * segments are finished: what they need of the task must stay until it is 0. False when the buffer is full. By that
 * worker alone.
 */
bool dmg_reschedule_add(dmg_reschedule *reschedule, uint32_t worker, void *task, uint32_t list, uint32_t count,
                        _Atomic uint64_t *unfinished);
/** The next segment in the worker's own buffer. False when it is empty. */
bool dmg_reschedule_take(dmg_reschedule *reschedule, uint32_t worker, dmg_list_piece *segment);
/** A segment out of another worker's buffer. False when all are empty. Thread-safe. */
bool dmg_reschedule_steal(dmg_reschedule *reschedule, uint32_t worker, dmg_list_piece *segment);
/** A segment has been walked, or given up. Thread-safe; what was written before is seen by who reads that `unfinished`
 * is 0. */
void dmg_reschedule_finish(const dmg_list_piece *segment);
/** Forget what is left in the worker's buffer. By that worker alone. */
void dmg_reschedule_clear(dmg_reschedule *reschedule, uint32_t worker);

#endif
