/**
 * @file value_redistribution.h
 * Pass-by-value redistribution (ValRD): updates travel in batches to the memory node that stores the attribute, which
 * applies them with its own processor (DMG, section 4.3.1, "Optional Local Update").
 *
 * Against direct remote updates this takes one message for hundreds of updates, instead of a read and a swap for each.
 * It needs a memory node that computes (MN_COMPUTE) and words that no NIC updates at the same time.
 */
#ifndef DMG_CORE_UPDATE_VALUE_REDISTRIBUTION_H
#define DMG_CORE_UPDATE_VALUE_REDISTRIBUTION_H

#include "core/base/budget.h"
#include "core/pool/pool.h"
#include "core/update/target.h"
#include "core/update/traffic.h"

typedef struct dmg_value_redistribution dmg_value_redistribution;

/**
 * The buffers of one worker: two messages a memory node, each of so many bytes of updates as a buffer has, or as a
 * message can carry if that is less (dmg_value_message_bytes).
 */
dmg_status dmg_value_redistribution_create(dmg_channel *channel, dmg_budget *budget, uint32_t buffer_bytes,
                                           dmg_value_redistribution **queue);
/** NULL is allowed. The queue must have been flushed. */
void dmg_value_redistribution_destroy(dmg_value_redistribution *queue);

/** True when the pool's memory nodes can apply updates to words that compute nodes update as well. */
bool dmg_value_redistribution_is_possible(const dmg_capabilities *capabilities);
/** Bytes of updates in a message when buffers of so many bytes were asked for: the transport's messages are shorter
 * than DMG's buffers of 32 KiB. */
uint32_t dmg_value_message_bytes(uint32_t buffer_bytes);

/** Direct the following updates; the queue must be empty. `activation` must be NULL or split beside `attributes`. */
void dmg_value_redistribution_set_target(dmg_value_redistribution *queue, const dmg_update_target *target);
/** Queue an update; sends when a message is full. An error is kept until the flush. */
void dmg_value_redistribution_update(dmg_value_redistribution *queue, uint32_t vertex, uint64_t update);
/** Send everything and wait until the memory nodes have applied it. Returns the first error since the last flush. */
dmg_status dmg_value_redistribution_flush(dmg_value_redistribution *queue);

const dmg_update_counters *dmg_value_redistribution_count(const dmg_value_redistribution *queue);
/** Messages sent, and those that memory nodes have answered. */
const dmg_passed *dmg_value_redistribution_sent(const dmg_value_redistribution *queue);
const dmg_passed *dmg_value_redistribution_taken(const dmg_value_redistribution *queue);

#endif
