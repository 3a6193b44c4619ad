#include "core/engine/exchange/refrd.h"

#include "core/base/error.h"

#include <inttypes.h>
#include <string.h>

/* What a worker fetches at once of the segments that it was passed. */
#define EDGE_BUFFER_BYTES (UINT64_C(64) << 10)

/* A worker's memory for walking one buffer of references. */
struct walker {
    dmg_vertex_edges *items;
    uint64_t *values;
    uint8_t *edges;
};

struct dmg_refrd {
    dmg_refrd_setup setup;
    bool is_mapped;
    struct walker *walkers; /* a worker each */
};

/* ---- memory ---- */

struct need {
    void **memory;
    uint64_t bytes;
};

#define NEEDS_A_WORKER 3

static void list_needs(const dmg_refrd *refrd, struct walker *walker, struct need needs[NEEDS_A_WORKER])
{
    uint64_t references = dmg_mailbox_items_a_buffer(refrd->setup.mailbox);
    needs[0] = (struct need){(void **)&walker->items, references * sizeof *walker->items};
    needs[1] = (struct need){(void **)&walker->values, references * sizeof *walker->values};
    needs[2] = (struct need){(void **)&walker->edges, EDGE_BUFFER_BYTES};
}

static dmg_status make_walkers(dmg_refrd *refrd)
{
    void *memory;
    dmg_status status = dmg_budget_allocate(refrd->setup.budget, DMG_BUDGET_UPDATES,
                                            refrd->setup.workers * sizeof *refrd->walkers, &memory);
    refrd->walkers = memory;
    for (uint32_t i = 0; i < refrd->setup.workers && status == DMG_OK; i++) {
        struct need needs[NEEDS_A_WORKER];
        list_needs(refrd, &refrd->walkers[i], needs);
        for (int j = 0; j < NEEDS_A_WORKER && status == DMG_OK; j++) {
            status = dmg_budget_allocate(refrd->setup.budget, DMG_BUDGET_UPDATES, needs[j].bytes, needs[j].memory);
        }
    }
    return status;
}

dmg_status dmg_refrd_create(const dmg_refrd_setup *setup, dmg_refrd **out)
{
    *out = NULL;
    void *memory;
    dmg_status status = dmg_budget_allocate(setup->budget, DMG_BUDGET_UPDATES, sizeof **out, &memory);
    if (status != DMG_OK) {
        return status;
    }
    dmg_refrd *refrd = memory;
    refrd->setup = *setup;
    refrd->is_mapped = (dmg_client_capabilities(setup->client)->flags & DMG_CAPABILITY_LOAD_STORE) != 0;
    status = make_walkers(refrd);
    if (status != DMG_OK) {
        dmg_refrd_destroy(refrd);
        return status;
    }
    *out = refrd;
    return DMG_OK;
}

void dmg_refrd_destroy(dmg_refrd *refrd)
{
    if (!refrd) {
        return;
    }
    dmg_budget *budget = refrd->setup.budget;
    for (uint32_t i = 0; refrd->walkers && i < refrd->setup.workers; i++) {
        struct need needs[NEEDS_A_WORKER];
        list_needs(refrd, &refrd->walkers[i], needs);
        for (int j = 0; j < NEEDS_A_WORKER; j++) {
            dmg_budget_free(budget, DMG_BUDGET_UPDATES, *needs[j].memory, needs[j].bytes);
        }
    }
    dmg_budget_free(budget, DMG_BUDGET_UPDATES, refrd->walkers, refrd->setup.workers * sizeof *refrd->walkers);
    dmg_budget_free(budget, DMG_BUDGET_UPDATES, refrd, sizeof *refrd);
}

/* ---- sending ---- */

bool dmg_refrd_offer(const dmg_refrd *refrd, dmg_channel *channel, uint32_t worker, const dmg_foreign_segment *segment,
                     uint64_t value)
{
    if (segment->count <= refrd->setup.edges_max || segment->degree <= refrd->setup.degree_max) {
        return false;
    }
    dmg_reference *reference = dmg_mailbox_reserve(refrd->setup.mailbox, channel, worker, segment->rank);
    if (!reference) {
        return false;
    }
    const dmg_reference item = {
        .first_edge = segment->first_edge, .value = value, .count = segment->count, .source = segment->vertex};
    memcpy(reference, &item, sizeof item);
    return true;
}

/* ---- receiving ---- */

static dmg_status no_segment(const dmg_reference *reference)
{
    return dmg_error(DMG_ERR_CORRUPT,
                     "a segment that another compute node passed on is of vertex %u, %u edges at offset %" PRIu64
                     " of memory node %u: there is none",
                     reference->source, reference->count, dmg_address_offset(reference->first_edge),
                     dmg_address_node(reference->first_edge));
}

/*
 * Fetch edges of the references from `*next` on, from edge `*next_edge` of it, until the buffer is full; returns how
 * many pieces there are in the walker's items.
 */
static uint32_t fetch_pieces(const dmg_refrd *refrd, dmg_channel *channel, struct walker *walker,
                             const dmg_reference *references, uint32_t count, uint32_t *next, uint32_t *next_edge,
                             dmg_completion *completion)
{
    const uint32_t edge_bytes = refrd->setup.store->shape.edge_bytes;
    uint64_t used = 0;
    uint32_t pieces = 0;
    dmg_channel_set_purpose(channel, DMG_PURPOSE_LISTS);
    while (*next < count) {
        const dmg_reference *reference = &references[*next];
        uint64_t room = (EDGE_BUFFER_BYTES - used) / edge_bytes;
        uint32_t left = reference->count - *next_edge;
        uint32_t edges = left < room ? left : (uint32_t)room;
        if (edges == 0 && left > 0) {
            break;
        }
        dmg_address address = reference->first_edge + (uint64_t)*next_edge * edge_bytes;
        dmg_post_read(channel, address, walker->edges + used, (uint64_t)edges * edge_bytes, completion);
        walker->items[pieces] = (dmg_vertex_edges){
            .edges = walker->edges + used, .vertex = reference->source, .count = edges, .local = edges};
        walker->values[pieces++] = reference->value;
        used += (uint64_t)edges * edge_bytes;
        *next_edge += edges;
        if (*next_edge == reference->count) {
            (*next)++;
            *next_edge = 0;
        }
    }
    dmg_channel_set_purpose(channel, DMG_PURPOSE_UPDATES);
    return pieces;
}

/* The same where segments are mapped: no copies, all at once. Fewer than `count` after an error. */
static uint32_t reach_pieces(const dmg_refrd *refrd, dmg_channel *channel, struct walker *walker,
                             const dmg_reference *references, uint32_t count)
{
    const uint32_t edge_bytes = refrd->setup.store->shape.edge_bytes;
    uint32_t pieces = 0;
    dmg_channel_set_purpose(channel, DMG_PURPOSE_LISTS);
    for (uint32_t i = 0; i < count; i++) {
        const dmg_reference *reference = &references[i];
        uint64_t bytes = (uint64_t)reference->count * edge_bytes;
        const uint8_t *edges = dmg_client_pointer(refrd->setup.client, reference->first_edge, bytes);
        if (!edges) {
            (void)no_segment(reference);
            break;
        }
        dmg_channel_charge_read_ahead(channel, reference->first_edge, bytes);
        walker->items[pieces] = (dmg_vertex_edges){
            .edges = edges, .vertex = reference->source, .count = reference->count, .local = reference->count};
        walker->values[pieces++] = reference->value;
    }
    dmg_channel_charge_wait(channel);
    dmg_channel_set_purpose(channel, DMG_PURPOSE_UPDATES);
    return pieces;
}

static dmg_status stray_segment(const dmg_reference *references, uint32_t count, uint32_t stray)
{
    uint32_t i = 0;
    while (i + 1 < count && references[i].source != stray) {
        i++;
    }
    return dmg_error(
        DMG_ERR_CORRUPT,
        "a segment of the list of vertex %u, on memory node %u, that another compute node passed on has an "
        "edge that does not lead to this one: load the graph again",
        references[i].source, dmg_address_node(references[i].first_edge));
}

/* Items are copies, which nobody changes any more: edges are aligned, and sources are vertices. */
static dmg_status check_references(const dmg_refrd *refrd, const dmg_reference *references, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const dmg_reference *reference = &references[i];
        if (reference->source >= refrd->setup.store->vertex_count || reference->first_edge % sizeof(uint32_t) != 0) {
            return no_segment(reference);
        }
    }
    return DMG_OK;
}

static dmg_status walk_references(dmg_refrd *refrd, dmg_channel *channel, uint32_t worker,
                                  const dmg_reference *references, uint32_t count, dmg_refrd_apply apply, void *context)
{
    struct walker *walker = &refrd->walkers[worker];
    uint32_t stray = 0;
    dmg_status checked = check_references(refrd, references, count);
    if (checked != DMG_OK) {
        return checked;
    }
    if (refrd->is_mapped) {
        uint32_t pieces = reach_pieces(refrd, channel, walker, references, count);
        if (pieces < count) {
            return DMG_ERR_CORRUPT;
        }
        return apply(context, worker, walker->items, walker->values, pieces, &stray)
                   ? DMG_OK
                   : stray_segment(references, count, stray);
    }
    uint32_t next = 0;
    uint32_t next_edge = 0;
    while (next < count) {
        dmg_completion completion = {0};
        uint32_t pieces = fetch_pieces(refrd, channel, walker, references, count, &next, &next_edge, &completion);
        dmg_status status = dmg_wait(channel, &completion);
        if (status != DMG_OK) {
            return status;
        }
        if (!apply(context, worker, walker->items, walker->values, pieces, &stray)) {
            return stray_segment(references, count, stray);
        }
    }
    return DMG_OK;
}

dmg_status dmg_refrd_receive(dmg_refrd *refrd, dmg_channel *channel, uint32_t worker, void *room, dmg_refrd_apply apply,
                             void *context)
{
    for (;;) {
        uint32_t count;
        dmg_status status = dmg_mailbox_receive(refrd->setup.mailbox, channel, worker, room, &count);
        if (status == DMG_OK && count > 0) {
            status = walk_references(refrd, channel, worker, room, count, apply, context);
        }
        if (status != DMG_OK || count == 0) {
            return status;
        }
    }
}
