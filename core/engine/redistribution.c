#include "core/engine/redistribution.h"

#include "core/engine/exchange/refrd.h"

struct dmg_redistribution {
    dmg_engine *engine;
    dmg_range_array reference_directories;
    dmg_range_array value_directories;
    dmg_mailbox *references; /* NULL: nothing goes by reference */
    dmg_mailbox *values;     /* NULL: nothing goes to owners by value */
    dmg_refrd *refrd;        /* over `references` */
    dmg_owners owners;
    uint8_t **rooms; /* a worker's room for what it receives */
};

/* ---- memory ---- */

static uint64_t buffer_bytes(const dmg_mailbox *mailbox)
{
    return mailbox ? (uint64_t)dmg_mailbox_items_a_buffer(mailbox) * dmg_mailbox_item_bytes(mailbox) : 0;
}

/* A worker receives from one mailbox after the other. */
static uint64_t room_bytes(const dmg_redistribution *redistribution)
{
    uint64_t of_references = buffer_bytes(redistribution->references);
    uint64_t of_values = buffer_bytes(redistribution->values);
    return of_values > of_references ? of_values : of_references;
}

static dmg_status make_rooms(dmg_redistribution *redistribution)
{
    const dmg_engine *engine = redistribution->engine;
    void *memory;
    dmg_status status = dmg_budget_allocate(engine->budget, DMG_BUDGET_UPDATES,
                                            engine->options.threads * sizeof *redistribution->rooms, &memory);
    redistribution->rooms = memory;
    for (uint32_t i = 0; i < engine->options.threads && status == DMG_OK; i++) {
        status = dmg_budget_allocate(engine->budget, DMG_BUDGET_UPDATES, room_bytes(redistribution), &memory);
        redistribution->rooms[i] = memory;
    }
    return status;
}

static void free_rooms(dmg_redistribution *redistribution)
{
    const dmg_engine *engine = redistribution->engine;
    for (uint32_t i = 0; redistribution->rooms && i < engine->options.threads; i++) {
        dmg_budget_free(engine->budget, DMG_BUDGET_UPDATES, redistribution->rooms[i], room_bytes(redistribution));
    }
    dmg_budget_free(engine->budget, DMG_BUDGET_UPDATES, redistribution->rooms,
                    engine->options.threads * sizeof *redistribution->rooms);
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

static dmg_status pass_references(dmg_redistribution *redistribution)
{
    dmg_engine *engine = redistribution->engine;
    dmg_status status = make_mailbox(engine, sizeof(dmg_reference), engine->options.reference_buffer_bytes,
                                     &redistribution->reference_directories, &redistribution->references);
    const dmg_refrd_setup setup = {.budget = engine->budget,
                                   .client = engine->client,
                                   .store = engine->store,
                                   .mailbox = redistribution->references,
                                   .workers = engine->options.threads,
                                   .edges_max = engine->options.reference_edges,
                                   .degree_max = engine->options.reference_degree};
    return status == DMG_OK ? dmg_refrd_create(&setup, &redistribution->refrd) : status;
}

static dmg_status pass_values(dmg_redistribution *redistribution, dmg_combine combine)
{
    dmg_engine *engine = redistribution->engine;
    dmg_status status = make_mailbox(engine, dmg_value_item_bytes(combine), engine->options.value_buffer_bytes,
                                     &redistribution->value_directories, &redistribution->values);
    return status == DMG_OK ? join_owners(redistribution) : status;
}

static void add_traffic(const void *context, dmg_traffic *traffic)
{
    const dmg_redistribution *redistribution = context;
    if (redistribution->references) {
        dmg_mailbox_count(redistribution->references, &traffic->sent[DMG_UPDATE_REFRD],
                          &traffic->taken[DMG_UPDATE_REFRD]);
    }
    if (redistribution->values) {
        dmg_mailbox_count(redistribution->values, &traffic->sent[DMG_UPDATE_VALRD_OWNER],
                          &traffic->taken[DMG_UPDATE_VALRD_OWNER]);
    }
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
    dmg_engine_count_traffic_of(engine, add_traffic, redistribution);
    if (by_reference) {
        status = pass_references(redistribution);
    }
    if (status == DMG_OK && by_owner) {
        status = pass_values(redistribution, combine);
    }
    if (status == DMG_OK) {
        status = make_rooms(redistribution);
    }
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
    dmg_engine_count_traffic_of(engine, NULL, NULL);
    for (uint32_t i = 0; i < engine->options.threads; i++) {
        dmg_update_coordinator_leave_owners(&engine->workers[i].remote);
    }
    free_rooms(redistribution);
    dmg_refrd_destroy(redistribution->refrd);
    dmg_mailbox_destroy(redistribution->values);
    dmg_mailbox_destroy(redistribution->references);
    dmg_budget_free(engine->budget, DMG_BUDGET_UPDATES, redistribution, sizeof *redistribution);
}

/* ---- sending ---- */

bool dmg_redistribution_offer(dmg_redistribution *redistribution, uint32_t worker, const dmg_foreign_segment *segment,
                              uint64_t value)
{
    return redistribution->refrd &&
           dmg_refrd_offer(redistribution->refrd, redistribution->engine->workers[worker].channel, worker, segment,
                           value);
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

/* ---- receiving ---- */

struct walk {
    dmg_redistribution *redistribution;
    const dmg_appliers *appliers;
    void *context;
};

/* An applier notes with its worker whose edge it was that does not lead here. */
static bool apply_references(void *context, uint32_t index, const dmg_vertex_edges *items, const uint64_t *values,
                             uint32_t count, uint32_t *stray)
{
    const struct walk *walk = context;
    if (walk->appliers->references(walk->context, index, items, values, count)) {
        return true;
    }
    dmg_worker *worker = &walk->redistribution->engine->workers[index];
    *stray = worker->stray_vertex;
    worker->stray = DMG_STRAY_NONE;
    return false;
}

static bool has_references(const struct walk *walk)
{
    return walk->appliers->references && walk->redistribution->references;
}

static void run_walk(void *context, uint32_t index)
{
    struct walk *walk = context;
    dmg_redistribution *redistribution = walk->redistribution;
    dmg_worker *worker = &redistribution->engine->workers[index];
    uint8_t *room = redistribution->rooms[index];
    dmg_worker_clock clock = dmg_worker_begin(worker);
    dmg_status status = DMG_OK;
    dmg_channel_set_purpose(worker->channel, DMG_PURPOSE_UPDATES);
    if (has_references(walk)) {
        status = dmg_refrd_receive(redistribution->refrd, worker->channel, index, room, apply_references, walk);
    }
    if (status == DMG_OK && redistribution->values) {
        status = dmg_valrd_owner_receive(redistribution->values, worker->channel, index, room, walk->appliers->values,
                                         walk->context);
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
    dmg_status status = has_references(walk) ? dmg_mailbox_publish(redistribution->references, channel) : DMG_OK;
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
    if (has_references(walk)) {
        status = dmg_mailbox_collect(redistribution->references, channel, &references);
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
