/**
 * @file mailbox.h
 * A mailbox: buffers in which compute nodes leave items for each other in pool memory: what the two patterns of
 * redistribution share (DMG, section 4.3.1 and Fig. 14). References and values are just items of different sizes here.
 *
 * Items are collected in buffers, one a receiver and worker, and written to pool memory when a buffer is full. A
 * *directory* in the pool lists, for each pair of ranks, the buffers of this round. A round is
 *
 *     clear                  all ranks have taken what the last round left: buffers and directories are used again
 *     place ... flush        by all workers of a rank, each for itself
 *     publish                once a rank, when its workers have flushed: directories are written
 *     barrier                of all ranks
 *     collect                once a rank: the directories for it are read
 *     take ... take          by all workers of a rank, who share out the buffers among them
 *     barrier                of all ranks, before anybody clears
 *
 * A rank may leave items for itself, too: they wait in the pool like all others, but need no directory.
 *
 * Directories carry the number of their round, so that a step that is left out somewhere is an error and not a wrong
 * answer.
 */
#ifndef DMG_CORE_ENGINE_EXCHANGE_MAILBOX_H
#define DMG_CORE_ENGINE_EXCHANGE_MAILBOX_H

#include "core/base/budget.h"
#include "core/base/limits.h"
#include "core/pool/pool.h"
#include "core/pool/range_array.h"
#include "core/update/target.h"
#include "core/update/traffic.h"

/** Buffers that one rank can leave for another in a round; what comes on top has to go another way. */
#define DMG_MAILBOX_BUFFERS_MAX 1023
/** The buffer sizes of DMG's evaluation, and the largest. */
#define DMG_REFERENCE_BUFFER_BYTES_DEFAULT 4096
#define DMG_VALUE_BUFFER_BYTES_DEFAULT     32768
#define DMG_MAILBOX_BUFFER_BYTES_MAX       (1 << 20)

/** A line of a directory: a buffer in the pool. Line 0 has the number of the lines behind it as its count. */
typedef struct dmg_mailbox_line {
    dmg_address address;
    uint32_t count; /**< items in it */
    uint32_t round; /**< from 1 */
} dmg_mailbox_line;

typedef struct dmg_mailbox_setup {
    dmg_budget *budget;
    uint32_t rank;
    uint32_t ranks;
    uint32_t workers;
    uint64_t job; /**< the job that pool memory is allocated for */
    const dmg_range_array
        *directories; /**< dmg_mailbox_directory_lines lines, the same array on all ranks; must stay */
    uint32_t item_bytes;
    uint32_t buffer_bytes; /**< at least item_bytes */
    uint32_t buffers_max;  /**< a pair of ranks and round, at most DMG_MAILBOX_BUFFERS_MAX; the same on all ranks */
} dmg_mailbox_setup;

/** What the workers of a rank share. */
typedef struct dmg_mailbox dmg_mailbox;

/** Elements of sizeof(dmg_mailbox_line) that the directories of a job have. */
uint64_t dmg_mailbox_directory_lines(uint32_t ranks, uint32_t buffers_max);

/** All memory in this process comes from the budget, and is refused here or not at all; the pool's comes as it is
 * needed. */
dmg_status dmg_mailbox_create(const dmg_mailbox_setup *setup, dmg_mailbox **mailbox);
/** NULL is allowed. Buffers in the pool are freed with the job. */
void dmg_mailbox_destroy(dmg_mailbox *mailbox);

/** Begin a round, the first one too: all ranks have taken what the last one left. Not while workers send. */
void dmg_mailbox_clear(dmg_mailbox *mailbox);

/**
 * Room for an item for a rank, to be filled in before the worker's next call. NULL when the rank's directory is full or
 * the pool has no memory for a buffer; then the item has to go another way. An error of the link is kept until the
 * flush. Each worker with its own channel.
 */
void *dmg_mailbox_reserve(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t worker, uint32_t receiver);
/** True when senders should stop soon and exchange what they have: half of a directory or of a worker's memory is used.
 * Thread-safe. */
bool dmg_mailbox_is_filling_up(const dmg_mailbox *mailbox);
/** Write the worker's buffers that are not full. Returns the first error since the last flush. */
dmg_status dmg_mailbox_flush(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t worker);
/** After all workers have flushed: let the other ranks know. They may look after a barrier. */
dmg_status dmg_mailbox_publish(dmg_mailbox *mailbox, dmg_channel *channel);

/**
 * Read what others have left for this rank; returns the number of buffers in `*count`. After the barrier, before
 * workers take. DMG_ERR_PROTOCOL when a rank has not published in this round.
 */
dmg_status dmg_mailbox_collect(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t *count);
/**
 * Take a buffer and read it. `items` has dmg_mailbox_items_a_buffer items; `*count` is 0 when none is left.
 * Thread-safe, each worker with its own channel.
 */
dmg_status dmg_mailbox_receive(dmg_mailbox *mailbox, dmg_channel *channel, uint32_t worker, void *items,
                               uint32_t *count);

/** As many items of `item_bytes` as fit into a buffer. */
uint32_t dmg_mailbox_items_a_buffer(const dmg_mailbox *mailbox);
uint32_t dmg_mailbox_item_bytes(const dmg_mailbox *mailbox);

/** What all workers of this rank have written and taken so far. Not while they do. */
void dmg_mailbox_count(const dmg_mailbox *mailbox, dmg_passed *sent, dmg_passed *taken);

#endif
