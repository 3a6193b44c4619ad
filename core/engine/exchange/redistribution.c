#include "core/engine/exchange/redistribution.h"

#include "core/base/error.h"

#include <inttypes.h>
#include <string.h>

/* What a worker fetches at once of the segments that it was passed. */
#define EDGE_BUFFER_BYTES (UINT64_C(64) << 10)

/* A worker's memory for walking one buffer of references or values. */
struct walker {
    uint8_t *received; /* items */
    dmg_vertex_edges *items;
    uint64_t *values;
    uint8_t *edges;
};

struct dmg_redistribution {
    dmg_engine *engine;
    uint32_t edges_max;  /* of segments that are not passed on */
    uint32_t degree_max; /* of lists none of whose segments is */
    bool is_mapped;
    dmg_range_array reference_directories;
    dmg_range_array value_directories;
    dmg_mailbox *references; /* NULL: nothing goes by reference */
    dmg_mailbox *values;     /* NULL: nothing goes to owners by value */
    dmg_owners owners;
    struct walker *walkers;
};

/* ---- memory ---- */

struct need {
    void **memory;
    uint64_t bytes;
};

#define NEEDS_A_WORKER 4

static uint64_t buffer_bytes(const dmg_mailbox *mailbox)
{
    return mailbox ? (uint64_t)dmg_mailbox_items_a_buffer(mailbox) * dmg_mailbox_item_bytes(mailbox) : 0;
}

static void list_needs(const dmg_redistribution *redistribution, struct walker *walker,
                       struct need needs[NEEDS_A_WORKER])
{
    uint64_t references = redistribution->references ? dmg_mailbox_items_a_buffer(redistribution->references) : 0;
    uint64_t reference_bytes = buffer_bytes(redistribution->references);
    uint64_t value_bytes = buffer_bytes(redistribution->values);
    needs[0] = (struct need){(void **)&walker->received, value_bytes > reference_bytes ? value_bytes : reference_bytes};
    needs[1] = (struct need){(void **)&walker->items, references * sizeof *walker->items};
    needs[2] = (struct need){(void **)&walker->values, references * sizeof *walker->values};
    needs[3] = (struct need){(void **)&walker->edges, references > 0 ? EDGE_BUFFER_BYTES : 0};
}

static dmg_status make_walkers(dmg_redistribution *redistribution)
{
    dmg_engine *engine = redistribution->engine;
    void *memory;
    dmg_status status = dmg_budget_allocate(engine->budget, DMG_BUDGET_UPDATES,
                                            engine->options.threads * sizeof *redistribution->walkers, &memory);
    redistribution->walkers = memory;
    for (uint32_t i = 0; i < engine->options.threads && status == DMG_OK; i++) {
        struct need needs[NEEDS_A_WORKER];
        list_needs(redistribution, &redistribution->walkers[i], needs);
        for (int j = 0; j < NEEDS_A_WORKER && status == DMG_OK; j++) {
            status = dmg_budget_allocate(engine->budget, DMG_BUDGET_UPDATES, needs[j].bytes, needs[j].memory);
        }
    }
    return status;
}

static void free_walkers(dmg_redistribution *redistribution)
{
    dmg_engine *engine = redistribution->engine;
    for (uint32_t i = 0; redistribution->walkers && i < engine->options.threads; i++) {
        struct need needs[NEEDS_A_WORKER];
        list_needs(redistribution, &redistribution->walkers[i], needs);
        for (int j = 0; j < NEEDS_A_WORKER; j++) {
            dmg_budget_free(engine->budget, DMG_BUDGET_UPDATES, *needs[j].memory, needs[j].bytes);
        }
    }
    dmg_budget_free(engine->budget, DMG_BUDGET_UPDATES, redistribution->walkers,
                    engine->options.threads * sizeof *redistribution->walkers);
}

/* An array a group, since items stay among its members. All ranks take part in sharing each of them. */
static dmg_status share_directories(dmg_engine *engine, uint32_t buffers_max, dmg_range_array *directories)
{
    dmg_status status = DMG_OK;
    for (uint32_t group = 0; group < engine->groups.group_count && status == DMG_OK; group++) {
        dmg_range_array of_group;
        status = dmg_engine_array(engine, dmg_mailbox_directory_lines(engine->groups.members_max, buffers_max),
                                  sizeof(dmg_mailbox_line), &of_group);
        if (status == DMG_OK && group == engine->groups.group) {
            *directories = of_group;
        }
    }
    return status;
}

/* A mailbox whose directories the members of a group share. */
static dmg_status make_mailbox(dmg_engine *engine, uint32_t item_bytes, uint32_t bytes, dmg_range_array *directories,
                               dmg_mailbox **mailbox)
{
    uint32_t buffers_max = engine->options.round_buffers ? engine->options.round_buffers : DMG_MAILBOX_BUFFERS_MAX;
    const dmg_mailbox_setup setup = {.budget = engine->budget,
                                     .rank = engine->groups.member,
                                     .ranks = engine->groups.members,
                                     .workers = engine->options.threads,
                                     .job = engine->job->id,
                                     .directories = directories,
                                     .item_bytes = item_bytes,
                                     .buffer_bytes = bytes,
                                     .buffers_max = buffers_max};
    dmg_status status = share_directories(engine, buffers_max, directories);
    return status == DMG_OK ? dmg_mailbox_create(&setup, mailbox) : status;
}

static dmg_status join_owners(dmg_redistribution *redistribution)
{
    dmg_engine *engine = redistribution->engine;
    const dmg_graph_store *store = engine->store;
    dmg_owners *owners = &redistribution->owners;
    owners->ranks = engine->groups.members;
    for (uint32_t rank = 0; rank <= owners->ranks; rank++) {
        uint32_t partition = dmg_first_partition_of(store->shape.partition_count, rank, owners->ranks);
        owners->first_vertex[rank] = store->partition_first[partition];
    }
    dmg_status status = DMG_OK;
    for (uint32_t i = 0; i < engine->options.threads && status == DMG_OK; i++) {
        dmg_worker *worker = &engine->workers[i];
        status = dmg_update_coordinator_join_owners(&worker->remote, redistribution->values, owners, worker->channel, i,
                                                    engine->budget);
    }
    return status;
}

static dmg_status make_mailboxes(dmg_redistribution *redistribution, dmg_combine combine, bool by_reference,
                                 bool by_owner)
{
    dmg_engine *engine = redistribution->engine;
    dmg_status status = DMG_OK;
    if (by_reference) {
        status = make_mailbox(engine, sizeof(dmg_reference), engine->options.reference_buffer_bytes,
                              &redistribution->reference_directories, &redistribution->references);
    }
    if (status == DMG_OK && by_owner) {
        status = make_mailbox(engine, dmg_value_item_bytes(combine), engine->options.value_buffer_bytes,
                              &redistribution->value_directories, &redistribution->values);
    }
    if (status == DMG_OK && by_owner) {
        status = join_owners(redistribution);
    }
    return status == DMG_OK ? make_walkers(redistribution) : status;
}

dmg_status dmg_redistribution_create(dmg_engine *engine, dmg_combine combine, bool by_reference, bool by_owner,
                                     dmg_redistribution **out)
{
    *out = NULL;
    by_reference = by_reference && engine->options.reference_edges != DMG_REFERENCE_EDGES_NEVER;
    if (engine->groups.members_max == 1 || (!by_reference && !by_owner)) {
        return DMG_OK;
    }
    void *memory;
    dmg_status status = dmg_budget_allocate(engine->budget, DMG_BUDGET_UPDATES, sizeof **out, &memory);
    if (status != DMG_OK) {
        return status;
    }
    dmg_redistribution *redistribution = memory;
    redistribution->engine = engine;
    redistribution->edges_max = engine->options.reference_edges;
    redistribution->degree_max = engine->options.reference_degree;
    redistribution->is_mapped = (dmg_client_capabilities(engine->client)->flags & DMG_CAPABILITY_LOAD_STORE) != 0;
    engine->redistribution = redistribution;
    status = make_mailboxes(redistribution, combine, by_reference, by_owner);
    if (status != DMG_OK) {
        dmg_redistribution_destroy(redistribution);
        return status;
    }
    *out = redistribution;
    return DMG_OK;
}

void dmg_redistribution_destroy(dmg_redistribution *redistribution)
{
    if (!redistribution) {
        return;
    }
    dmg_engine *engine = redistribution->engine;
    dmg_redistribution_add_traffic(redistribution, &engine->traffic_before);
    engine->redistribution = NULL;
    for (uint32_t i = 0; i < engine->options.threads; i++) {
        dmg_update_coordinator_leave_owners(&engine->workers[i].remote);
    }
    free_walkers(redistribution);
    dmg_mailbox_destroy(redistribution->values);
    dmg_mailbox_destroy(redistribution->references);
    dmg_budget_free(engine->budget, DMG_BUDGET_UPDATES, redistribution, sizeof *redistribution);
}

void dmg_redistribution_add_traffic(const dmg_redistribution *redistribution, dmg_traffic *traffic)
{
    if (redistribution->references) {
        dmg_mailbox_count(redistribution->references, &traffic->sent[DMG_UPDATE_REFRD],
                          &traffic->taken[DMG_UPDATE_REFRD]);
    }
    if (redistribution->values) {
        dmg_mailbox_count(redistribution->values, &traffic->sent[DMG_UPDATE_VALRD_OWNER],
                          &traffic->taken[DMG_UPDATE_VALRD_OWNER]);
    }
}

/* ---- sending ---- */

bool dmg_redistribution_offer(dmg_redistribution *redistribution, uint32_t worker, const dmg_foreign_segment *segment,
                              uint64_t value)
{
    if (!redistribution->references || segment->count <= redistribution->edges_max ||
        segment->degree <= redistribution->degree_max) {
        return false;
    }
    dmg_channel *channel = redistribution->engine->workers[worker].channel;
    dmg_reference *reference = dmg_mailbox_reserve(redistribution->references, channel, worker, segment->rank);
    if (!reference) {
        return false;
    }
    const dmg_reference item = {
        .first_edge = segment->first_edge, .value = value, .count = segment->count, .source = segment->vertex};
    memcpy(reference, &item, sizeof item);
    return true;
}

bool dmg_redistribution_is_filling_up(const dmg_redistribution *redistribution)
{
    return (redistribution->references && dmg_mailbox_is_filling_up(redistribution->references)) ||
           (redistribution->values && dmg_mailbox_is_filling_up(redistribution->values));
}

dmg_status dmg_redistribution_finish_worker(dmg_redistribution *redistribution, uint32_t worker)
{
    /* Values are flushed with the worker's other updates. */
    return redistribution->references
               ? dmg_mailbox_flush(redistribution->references, redistribution->engine->workers[worker].channel, worker)
               : DMG_OK;
}

/* ---- walking ---- */

struct walk {
    dmg_redistribution *redistribution;
    const dmg_appliers *appliers;
    void *context;
};

static const dmg_reference *reference_at(const struct walker *walker, uint32_t index)
{
    return (const dmg_reference *)(const void *)walker->received + index;
}

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
static uint32_t fetch_pieces(const dmg_redistribution *redistribution, dmg_channel *channel, struct walker *walker,
                             uint32_t count, uint32_t *next, uint32_t *next_edge, dmg_completion *completion)
{
    const uint32_t edge_bytes = redistribution->engine->store->shape.edge_bytes;
    uint64_t used = 0;
    uint32_t pieces = 0;
    dmg_channel_set_purpose(channel, DMG_PURPOSE_LISTS);
    while (*next < count) {
        const dmg_reference *reference = reference_at(walker, *next);
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

/* The same where segments can be reached: no copies, all at once. Fewer than `count` after an error. */
static uint32_t reach_pieces(const dmg_redistribution *redistribution, dmg_channel *channel, struct walker *walker,
                             uint32_t count)
{
    const uint32_t edge_bytes = redistribution->engine->store->shape.edge_bytes;
    uint32_t pieces = 0;
    dmg_channel_set_purpose(channel, DMG_PURPOSE_LISTS);
    for (uint32_t i = 0; i < count; i++) {
        const dmg_reference *reference = reference_at(walker, i);
        uint64_t bytes = (uint64_t)reference->count * edge_bytes;
        const uint8_t *edges = dmg_client_pointer(redistribution->engine->client, reference->first_edge, bytes);
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

/* An applier has met an edge that does not lead here, and noted whose. */
static dmg_status stray_segment(const dmg_redistribution *redistribution, uint32_t index, uint32_t count)
{
    dmg_worker *worker = &redistribution->engine->workers[index];
    const struct walker *walker = &redistribution->walkers[index];
    uint32_t i = 0;
    while (i + 1 < count && reference_at(walker, i)->source != worker->stray_vertex) {
        i++;
    }
    worker->stray = DMG_STRAY_NONE;
    return dmg_error(
        DMG_ERR_CORRUPT,
        "a segment of the list of vertex %u, on memory node %u, that another compute node passed on has an "
        "edge that does not lead to this one: load the graph again",
        reference_at(walker, i)->source, dmg_address_node(reference_at(walker, i)->first_edge));
}

/* Items are copies, which nobody changes any more: edges are aligned, and sources are vertices. */
static dmg_status check_references(const dmg_redistribution *redistribution, const struct walker *walker,
                                   uint32_t count)
{
    uint64_t vertex_count = redistribution->engine->store->vertex_count;
    for (uint32_t i = 0; i < count; i++) {
        const dmg_reference *reference = reference_at(walker, i);
        if (reference->source >= vertex_count || reference->first_edge % sizeof(uint32_t) != 0) {
            return no_segment(reference);
        }
    }
    return DMG_OK;
}

static dmg_status walk_references(const struct walk *walk, uint32_t index, uint32_t count)
{
    dmg_redistribution *redistribution = walk->redistribution;
    dmg_channel *channel = redistribution->engine->workers[index].channel;
    struct walker *walker = &redistribution->walkers[index];
    dmg_status checked = check_references(redistribution, walker, count);
    if (checked != DMG_OK) {
        return checked;
    }
    if (redistribution->is_mapped) {
        uint32_t pieces = reach_pieces(redistribution, channel, walker, count);
        if (pieces < count) {
            return DMG_ERR_CORRUPT;
        }
        return walk->appliers->references(walk->context, index, walker->items, walker->values, pieces)
                   ? DMG_OK
                   : stray_segment(redistribution, index, count);
    }
    uint32_t next = 0;
    uint32_t next_edge = 0;
    while (next < count) {
        dmg_completion completion = {0};
        uint32_t pieces = fetch_pieces(redistribution, channel, walker, count, &next, &next_edge, &completion);
        dmg_status status = dmg_wait(channel, &completion);
        if (status != DMG_OK) {
            return status;
        }
        if (!walk->appliers->references(walk->context, index, walker->items, walker->values, pieces)) {
            return stray_segment(redistribution, index, count);
        }
    }
    return DMG_OK;
}

static dmg_status apply_values(const struct walk *walk, uint32_t index, uint32_t count)
{
    const uint8_t *items = walk->redistribution->walkers[index].received;
    return walk->appliers->values(walk->context, index, items, count)
               ? DMG_OK
               : dmg_error(DMG_ERR_CORRUPT, "an update that another compute node passed on does not lead to this one");
}

/* Take buffers of a mailbox until none is left. */
static dmg_status walk_mailbox(const struct walk *walk, uint32_t index, dmg_mailbox *mailbox,
                               dmg_status (*apply)(const struct walk *walk, uint32_t index, uint32_t count))
{
    dmg_redistribution *redistribution = walk->redistribution;
    for (;;) {
        uint32_t count;
        dmg_status status = dmg_mailbox_receive(mailbox, redistribution->engine->workers[index].channel, index,
                                                redistribution->walkers[index].received, &count);
        if (status == DMG_OK && count > 0) {
            status = apply(walk, index, count);
        }
        if (status != DMG_OK || count == 0) {
            return status;
        }
    }
}

static dmg_mailbox *references_of(const struct walk *walk)
{
    return walk->appliers->references ? walk->redistribution->references : NULL;
}

static void run_walk(void *context, uint32_t index)
{
    const struct walk *walk = context;
    dmg_redistribution *redistribution = walk->redistribution;
    dmg_worker *worker = &redistribution->engine->workers[index];
    dmg_worker_clock clock = dmg_worker_begin(worker);
    dmg_status status = DMG_OK;
    dmg_channel_set_purpose(worker->channel, DMG_PURPOSE_UPDATES);
    if (references_of(walk)) {
        status = walk_mailbox(walk, index, redistribution->references, walk_references);
    }
    if (status == DMG_OK && redistribution->values) {
        status = walk_mailbox(walk, index, redistribution->values, apply_values);
    }
    if (status == DMG_OK) {
        status = dmg_update_coordinator_flush(&worker->remote);
    }
    dmg_worker_keep(worker, status);
    dmg_worker_end(worker, &clock);
}

/* ---- rounds ---- */

/* Both, whichever is used: neither is filling up from before. */
static void clear(dmg_redistribution *redistribution)
{
    if (redistribution->references) {
        dmg_mailbox_clear(redistribution->references);
    }
    if (redistribution->values) {
        dmg_mailbox_clear(redistribution->values);
    }
}

static dmg_status publish(const struct walk *walk)
{
    const dmg_redistribution *redistribution = walk->redistribution;
    dmg_channel *channel = redistribution->engine->channel;
    dmg_purpose before = dmg_channel_set_purpose(channel, DMG_PURPOSE_UPDATES);
    dmg_mailbox *of_references = references_of(walk);
    dmg_status status = of_references ? dmg_mailbox_publish(of_references, channel) : DMG_OK;
    if (status == DMG_OK && redistribution->values) {
        status = dmg_mailbox_publish(redistribution->values, channel);
    }
    dmg_channel_set_purpose(channel, before);
    return status;
}

static dmg_status collect(const struct walk *walk, uint32_t *buffers)
{
    const dmg_redistribution *redistribution = walk->redistribution;
    dmg_channel *channel = redistribution->engine->channel;
    uint32_t references = 0;
    uint32_t values = 0;
    dmg_status status = DMG_OK;
    dmg_purpose before = dmg_channel_set_purpose(channel, DMG_PURPOSE_UPDATES);
    dmg_mailbox *of_references = references_of(walk);
    if (of_references) {
        status = dmg_mailbox_collect(of_references, channel, &references);
    }
    if (status == DMG_OK && redistribution->values) {
        status = dmg_mailbox_collect(redistribution->values, channel, &values);
    }
    dmg_channel_set_purpose(channel, before);
    *buffers = references + values;
    return status;
}

static dmg_status walk_received(struct walk *walk)
{
    dmg_engine *engine = walk->redistribution->engine;
    uint32_t buffers;
    dmg_status status = collect(walk, &buffers);
    if (status != DMG_OK || buffers == 0) {
        return status;
    }
    uint32_t workers = buffers < engine->options.threads ? buffers : engine->options.threads;
    dmg_thread_team_run(engine->team, workers, run_walk, walk);
    return dmg_workers_collect(engine, workers);
}

dmg_status dmg_redistribution_run(dmg_redistribution *redistribution, dmg_walk_on walk_on, const dmg_appliers *appliers,
                                  void *context)
{
    struct walk walk = {redistribution, appliers, context};
    for (;;) {
        bool is_done = false;
        clear(redistribution);
        dmg_status status = walk_on(context, &is_done);
        if (status == DMG_OK) {
            status = publish(&walk);
        }
        dmg_reduction reduction = {.sums = {!is_done}};
        if (status == DMG_OK) {
            status = dmg_engine_barrier(redistribution->engine, &reduction);
        }
        if (status == DMG_OK) {
            status = walk_received(&walk);
        }
        if (status != DMG_OK || reduction.sums[0] == 0) {
            return status;
        }
        status = dmg_engine_barrier(redistribution->engine, NULL); /* before what was taken is written over */
        if (status != DMG_OK) {
            return status;
        }
    }
}
