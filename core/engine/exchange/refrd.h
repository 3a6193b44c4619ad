/**
 * @file refrd.h
 * Pass-by-reference redistribution (RefRD; DMG, sections 4.3.1 and 4.5.4), both ends: a long edge segment that ends in
 * another compute node's partition is not fetched by who walks its list. Where it lies is left in a mailbox for the
 * partition's owner, which fetches the edges and applies them to its cache.
 */
#ifndef DMG_CORE_ENGINE_EXCHANGE_REFRD_H
#define DMG_CORE_ENGINE_EXCHANGE_REFRD_H

#include "core/engine/exchange/mailbox.h"
#include "core/engine/retrieval/retrieval.h"

/** The item of a mailbox of references: where the segment is, and what its source gives (DMG, Fig. 14a). */
typedef struct dmg_reference {
    dmg_address first_edge;
    uint64_t value; /**< the source's attribute, or what it gives */
    uint32_t count; /**< edges */
    uint32_t source;
} dmg_reference;

typedef struct dmg_refrd dmg_refrd;

/** What is borrowed must stay. */
typedef struct dmg_refrd_setup {
    dmg_budget *budget;
    const dmg_client *client;
    const dmg_graph_store *store;
    dmg_mailbox *mailbox; /**< of items of sizeof(dmg_reference) */
    uint32_t workers;
    uint32_t edges_max;  /**< segments of no more edges are not passed on */
    uint32_t degree_max; /**< nor those of lists of no more edges */
} dmg_refrd_setup;

/** All memory comes from the budget, and is refused here or not at all. */
dmg_status dmg_refrd_create(const dmg_refrd_setup *setup, dmg_refrd **refrd);
/** NULL is allowed. */
void dmg_refrd_destroy(dmg_refrd *refrd);

/** Leave a segment for its owner, unless it or its list is too short or the mailbox has no room: then false, and
 * nothing has happened. Each worker with its own channel. */
bool dmg_refrd_offer(const dmg_refrd *refrd, dmg_channel *channel, uint32_t worker, const dmg_foreign_segment *segment,
                     uint64_t value);

/**
 * Apply edges that another compute node has passed on.
 *
 * @param items       pieces of segments; all edges should lead to this compute node
 * @param values      what each item's source gives
 * @param[out] stray  the source of an edge that leads elsewhere, when the answer is false
 * @return false when some edge does not lead here: who sent it is not believed
 */
typedef bool (*dmg_refrd_apply)(void *context, uint32_t worker, const dmg_vertex_edges *items, const uint64_t *values,
                                uint32_t count, uint32_t *stray);

/**
 * Receive references until none is left, fetch their edges and apply them. By all workers, who share them out; after
 * the mailbox has collected.
 *
 * @param room  for the items of a buffer of the mailbox
 * @return DMG_OK; DMG_ERR_CORRUPT for a segment that is none, or that does not lead here; what reading it fails with
 */
dmg_status dmg_refrd_receive(dmg_refrd *refrd, dmg_channel *channel, uint32_t worker, void *room, dmg_refrd_apply apply,
                             void *context);

#endif
