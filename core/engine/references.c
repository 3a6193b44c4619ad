#include "core/engine/references.h"

#include "core/base/error.h"

#include <stdio.h>

/* What a worker fetches at once of the segments that it was passed. */
#define EDGE_BUFFER_BYTES (UINT64_C(64) << 10)

/* A worker's memory for walking one buffer of references. */
struct walker {
    dmg_reference references[DMG_REFERENCES_A_BUFFER];
    dmg_vertex_edges items[DMG_REFERENCES_A_BUFFER];
    uint64_t values[DMG_REFERENCES_A_BUFFER];
    uint8_t edges[EDGE_BUFFER_BYTES];
};

struct dmg_references {
    dmg_engine *engine;
    uint32_t edges_max; /* of segments that are not passed on */
    bool in_place;
    dmg_range_array directories;
    dmg_reference_board *board;
    struct walker *walkers;
};

/* An array a group, since references stay among its members. All ranks take part in sharing each of them. */
static dmg_status share_directories(dmg_references *references)
{
    dmg_engine *engine = references->engine;
    dmg_status status = DMG_OK;
    for (uint32_t group = 0; group < engine->groups.group_count && status == DMG_OK; group++) {
        dmg_range_array directories;
        status = dmg_engine_array(engine, dmg_reference_board_elements(engine->groups.members_max),
                                  DMG_REFERENCE_BOARD_ELEMENT_BYTES, &directories);
        if (status == DMG_OK && group == engine->groups.group) {
            references->directories = directories;
        }
    }
    return status;
}

dmg_status dmg_references_create(dmg_engine *engine, dmg_references **out)
{
    *out = NULL;
    if (engine->groups.members_max == 1 || engine->options.reference_edges == DMG_REFERENCE_EDGES_NEVER) {
        return DMG_OK;
    }
    void *memory;
    dmg_status status = dmg_budget_allocate(engine->budget, DMG_BUDGET_UPDATES, sizeof **out, &memory);
    if (status != DMG_OK) {
        return status;
    }
    dmg_references *references = memory;
    references->engine = engine;
    references->edges_max =
        engine->options.reference_edges ? engine->options.reference_edges : DMG_REFERENCE_EDGES_DEFAULT;
    references->in_place = (dmg_client_capabilities(engine->client)->flags & DMG_CAPABILITY_LOAD_STORE) != 0;
    status = share_directories(references);
    if (status == DMG_OK) {
        status = dmg_reference_board_create(engine->budget, engine->groups.member, engine->groups.members,
                                            engine->options.threads, engine->job->id, &references->directories,
                                            &references->board);
    }
    if (status == DMG_OK) {
        status = dmg_budget_allocate(engine->budget, DMG_BUDGET_UPDATES,
                                     engine->options.threads * sizeof *references->walkers, &memory);
        references->walkers = memory;
    }
    if (status != DMG_OK) {
        dmg_references_destroy(references);
        return status;
    }
    *out = references;
    return DMG_OK;
}

void dmg_references_destroy(dmg_references *references)
{
    if (!references) {
        return;
    }
    dmg_engine *engine = references->engine;
    dmg_reference_board_destroy(references->board);
    dmg_budget_free(engine->budget, DMG_BUDGET_UPDATES, references->walkers,
                    engine->options.threads * sizeof *references->walkers);
    dmg_budget_free(engine->budget, DMG_BUDGET_UPDATES, references, sizeof *references);
}

void dmg_references_clear(dmg_references *references)
{
    dmg_reference_board_clear(references->board);
}

bool dmg_references_offer(dmg_references *references, uint32_t worker, uint32_t vertex, uint64_t value, uint32_t rank,
                          dmg_address first_edge, uint32_t count)
{
    if (count <= references->edges_max) {
        return false;
    }
    const dmg_reference reference = {.first_edge = first_edge, .value = value, .count = count, .source = vertex};
    return dmg_reference_send(references->board, references->engine->workers[worker].channel, worker, rank, &reference);
}

dmg_status dmg_references_finish(dmg_references *references, uint32_t worker)
{
    return dmg_reference_flush(references->board, references->engine->workers[worker].channel, worker);
}

dmg_status dmg_references_publish(dmg_references *references)
{
    dmg_purpose before = dmg_channel_set_purpose(references->engine->channel, DMG_PURPOSE_UPDATES);
    dmg_status status = dmg_reference_publish(references->board, references->engine->channel);
    dmg_channel_set_purpose(references->engine->channel, before);
    return status;
}

uint64_t dmg_references_sent(const dmg_references *references)
{
    return dmg_reference_sent(references->board);
}

/* ---- walking ---- */

struct walk {
    dmg_references *references;
    dmg_apply_references apply;
    void *context;
};

/*
 * Fetch edges of the references from `*next` on, from edge `*next_edge` of it, until the buffer is full; returns how
 * many pieces there are in the walker's items.
 */
static uint32_t fetch_pieces(const dmg_references *references, dmg_channel *channel, struct walker *walker,
                             uint32_t count, uint32_t *next, uint32_t *next_edge, dmg_completion *completion)
{
    const uint32_t edge_bytes = references->engine->store->shape.edge_bytes;
    uint64_t used = 0;
    uint32_t pieces = 0;
    dmg_channel_set_purpose(channel, DMG_PURPOSE_LISTS);
    while (*next < count) {
        const dmg_reference *reference = &walker->references[*next];
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

/* The same where segments can be reached: no copies, all at once. */
static uint32_t reach_pieces(const dmg_references *references, dmg_channel *channel, struct walker *walker,
                             uint32_t count)
{
    const uint32_t edge_bytes = references->engine->store->shape.edge_bytes;
    uint32_t pieces = 0;
    dmg_channel_set_purpose(channel, DMG_PURPOSE_LISTS);
    for (uint32_t i = 0; i < count; i++) {
        const dmg_reference *reference = &walker->references[i];
        uint64_t bytes = (uint64_t)reference->count * edge_bytes;
        const uint8_t *edges = dmg_client_pointer(references->engine->client, reference->first_edge, bytes);
        if (edges) {
            dmg_channel_touch_ahead(channel, reference->first_edge, bytes);
            walker->items[pieces] = (dmg_vertex_edges){
                .edges = edges, .vertex = reference->source, .count = reference->count, .local = reference->count};
            walker->values[pieces++] = reference->value;
        }
    }
    dmg_channel_touch_wait(channel);
    dmg_channel_set_purpose(channel, DMG_PURPOSE_UPDATES);
    return pieces;
}

static dmg_status stray_reference(void)
{
    return dmg_error(DMG_ERR_CORRUPT, "a segment that was passed on by reference does not lead to this compute node");
}

static dmg_status walk_buffer(const struct walk *walk, uint32_t index, uint32_t count)
{
    dmg_references *references = walk->references;
    dmg_channel *channel = references->engine->workers[index].channel;
    struct walker *walker = &references->walkers[index];
    if (references->in_place) {
        uint32_t pieces = reach_pieces(references, channel, walker, count);
        bool is_sound = pieces == count && walk->apply(walk->context, index, walker->items, walker->values, pieces);
        return is_sound ? DMG_OK : stray_reference();
    }
    uint32_t next = 0;
    uint32_t next_edge = 0;
    while (next < count) {
        dmg_completion completion = {0};
        uint32_t pieces = fetch_pieces(references, channel, walker, count, &next, &next_edge, &completion);
        dmg_status status = dmg_wait(channel, &completion);
        if (status != DMG_OK) {
            return status;
        }
        if (!walk->apply(walk->context, index, walker->items, walker->values, pieces)) {
            return stray_reference();
        }
    }
    return DMG_OK;
}

static dmg_status walk_all(const struct walk *walk, uint32_t index)
{
    dmg_references *references = walk->references;
    for (;;) {
        uint32_t count;
        dmg_status status = dmg_reference_take(references->board, references->engine->workers[index].channel,
                                               references->walkers[index].references, &count);
        if (status == DMG_OK && count > 0) {
            status = walk_buffer(walk, index, count);
        }
        if (status != DMG_OK || count == 0) {
            return status;
        }
    }
}

static void run_walk(void *context, uint32_t index)
{
    const struct walk *walk = context;
    dmg_worker *worker = &walk->references->engine->workers[index];
    dmg_worker_clock clock = dmg_worker_begin(worker);
    dmg_worker_keep(worker, walk_all(walk, index));
    dmg_worker_end(worker, &clock);
}

dmg_status dmg_references_walk(dmg_references *references, dmg_apply_references apply, void *context)
{
    dmg_engine *engine = references->engine;
    struct walk walk = {references, apply, context};
    uint32_t buffers;
    dmg_purpose before = dmg_channel_set_purpose(engine->channel, DMG_PURPOSE_UPDATES);
    dmg_status status = dmg_reference_collect(references->board, engine->channel, &buffers);
    dmg_channel_set_purpose(engine->channel, before);
    if (status != DMG_OK || buffers == 0) {
        return status;
    }
    uint32_t workers = buffers < engine->options.threads ? buffers : engine->options.threads;
    dmg_thread_team_run(engine->team, workers, run_walk, &walk);
    return dmg_workers_collect(engine, workers);
}
