/**
 * @file reference_redistribution.h
 * Pass-by-reference redistribution (RefRD): of a long edge segment whose destinations another compute node caches, only
 * the metadata travels: where the segment is, how long it is, and the source's attribute. The owner fetches the edges
 * itself and updates its cache (DMG, section 4.3.1 and Fig. 14a).
 *
 * References are collected in buffers, one a receiver and worker, and written to pool memory when a buffer is full. A
 * *directory* in the pool lists, for each pair of ranks, the buffers of this iteration. After a barrier each rank reads
 * its directories, and its workers share out the buffers among them. Buffers are used again in the next iteration.
 */
#ifndef DMG_CORE_UPDATE_REFERENCE_REDISTRIBUTION_H
#define DMG_CORE_UPDATE_REFERENCE_REDISTRIBUTION_H

#include "core/base/budget.h"
#include "core/pool/pool.h"

/** Of a job. */
#define DMG_RANKS_MAX 64
/** The buffer size of DMG's evaluation. */
#define DMG_REFERENCE_BUFFER_BYTES 4096
/** Buffers that one rank can leave for another in an iteration; what comes on top goes another way. */
#define DMG_REFERENCE_BUFFERS_MAX 1023

typedef struct dmg_reference {
    dmg_address first_edge;
    uint64_t value; /**< the source's attribute */
    uint32_t count; /**< edges */
    uint32_t source;
} dmg_reference;

#define DMG_REFERENCES_A_BUFFER (DMG_REFERENCE_BUFFER_BYTES / sizeof(dmg_reference))

/** A line of a directory: a buffer in the pool. Line 0 has the number of the lines behind it as its count. */
typedef struct dmg_reference_buffer {
    dmg_address address;
    uint64_t count; /**< references in it */
} dmg_reference_buffer;

/** What the workers of a rank share. */
typedef struct dmg_reference_board dmg_reference_board;

/** Elements of the directories of a job, DMG_REFERENCE_BOARD_ELEMENT_BYTES each: an array for
 * dmg_reference_board_create. */
uint64_t dmg_reference_board_elements(uint32_t ranks);
#define DMG_REFERENCE_BOARD_ELEMENT_BYTES sizeof(dmg_reference_buffer)

/** `directories` is an array in the pool, the same on all ranks, and must stay. */
dmg_status dmg_reference_board_create(dmg_budget *budget, uint32_t rank, uint32_t ranks, uint32_t workers, uint64_t job,
                                      const dmg_range_array *directories, dmg_reference_board **board);
/** NULL is allowed. Buffers in the pool are freed with the job. */
void dmg_reference_board_destroy(dmg_reference_board *board);

/** Forget the references of the last iteration; all ranks have taken them. Not while workers send. */
void dmg_reference_board_clear(dmg_reference_board *board);

/**
 * Pass a segment on to a rank. False when the rank's directory is full or the pool has no memory for a buffer; then the
 * caller has to update another way. An error of the link is kept until the flush. Each worker with its own channel.
 */
bool dmg_reference_send(dmg_reference_board *board, dmg_channel *channel, uint32_t worker, uint32_t receiver,
                        const dmg_reference *reference);
/** Write the worker's buffers that are not full. */
dmg_status dmg_reference_flush(dmg_reference_board *board, dmg_channel *channel, uint32_t worker);
/** After all workers have flushed: let the other ranks know. They may look after a barrier. */
dmg_status dmg_reference_publish(dmg_reference_board *board, dmg_channel *channel);

/** Read what others have left for this rank; returns the number of buffers in `*count`. After the barrier, before
 * workers take. */
dmg_status dmg_reference_collect(dmg_reference_board *board, dmg_channel *channel, uint32_t *count);
/**
 * Take a buffer and read it. `references` has DMG_REFERENCES_A_BUFFER elements; `*count` is 0 when none is left.
 * Thread-safe, each worker with its own channel.
 */
dmg_status dmg_reference_take(dmg_reference_board *board, dmg_channel *channel, dmg_reference *references,
                              uint32_t *count);

/** References that this rank's workers have sent so far. */
uint64_t dmg_reference_sent(const dmg_reference_board *board);

#endif
