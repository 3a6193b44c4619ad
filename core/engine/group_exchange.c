#include "core/engine/group_exchange.h"

#include <string.h>

/* So many groups' copies are folded in one pass, which keeps the chunks of a pass large. */
#define COPIES_A_PASS 8

struct dmg_group_exchange {
    dmg_engine *engine;
    dmg_combine combine;
    dmg_range_array *copies; /* one a group */
};

/* What the phases need. */
struct pass {
    const dmg_group_exchange *exchange;
    uint8_t *cache;
    uint32_t copy_count; /* streams of this pass */
};

static uint64_t copies_bytes(const dmg_engine *engine)
{
    return engine->groups.group_count * sizeof(dmg_range_array);
}

dmg_status dmg_group_exchange_create(dmg_engine *engine, dmg_combine combine, dmg_group_exchange **out)
{
    *out = NULL;
    if (engine->groups.group_count == 1) {
        return DMG_OK;
    }
    void *memory;
    dmg_status status = dmg_budget_allocate(engine->budget, DMG_BUDGET_OTHER, sizeof **out, &memory);
    if (status != DMG_OK) {
        return status;
    }
    dmg_group_exchange *exchange = memory;
    exchange->engine = engine;
    exchange->combine = combine;
    status = dmg_budget_allocate(engine->budget, DMG_BUDGET_OTHER, copies_bytes(engine), &memory);
    exchange->copies = memory;
    for (uint32_t group = 0; group < engine->groups.group_count && status == DMG_OK; group++) {
        status = dmg_engine_vertex_array(engine, dmg_combine_bytes(combine), &exchange->copies[group]);
    }
    if (status != DMG_OK) {
        dmg_group_exchange_destroy(exchange);
        return status;
    }
    *out = exchange;
    return DMG_OK;
}

void dmg_group_exchange_destroy(dmg_group_exchange *exchange)
{
    if (exchange) {
        dmg_engine *engine = exchange->engine;
        dmg_budget_free(engine->budget, DMG_BUDGET_OTHER, exchange->copies, copies_bytes(engine));
        dmg_budget_free(engine->budget, DMG_BUDGET_OTHER, exchange, sizeof *exchange);
    }
}

static void *cached(const struct pass *pass, const dmg_chunk *chunk)
{
    return pass->cache +
           (chunk->first - pass->exchange->engine->first_vertex) * dmg_combine_bytes(pass->exchange->combine);
}

static dmg_retrieval_plan plan_pass(struct pass *pass, const dmg_block_cyclic *share)
{
    const dmg_engine *engine = pass->exchange->engine;
    return (dmg_retrieval_plan){
        .first = engine->first_vertex, .last = engine->last_vertex, .share = *share, .context = pass};
}

static dmg_status run_pass(const struct pass *pass, const dmg_retrieval_plan *plan)
{
    dmg_engine *engine = pass->exchange->engine;
    return dmg_engine_phase(engine, plan, engine->options.threads);
}

/* ---- leaving ---- */

static void deposit(void *context, dmg_chunk *chunk, const dmg_vertex_edges *edges, uint32_t count)
{
    (void)edges;
    (void)count;
    const struct pass *pass = context;
    void *from = cached(pass, chunk);
    uint64_t bytes = (uint64_t)chunk->count * dmg_combine_bytes(pass->exchange->combine);
    memcpy(chunk->streams[0], from, bytes);
    if (pass->exchange->combine == DMG_COMBINE_ADD_DOUBLE) {
        memset(from, 0, bytes);
    }
}

dmg_status dmg_group_exchange_deposit(dmg_group_exchange *exchange, void *cache)
{
    const dmg_groups *groups = &exchange->engine->groups;
    const dmg_block_cyclic share = dmg_groups_others(groups, exchange->engine->store->vertex_count);
    struct pass pass = {.exchange = exchange, .cache = cache};
    dmg_retrieval_plan plan = plan_pass(&pass, &share);
    plan.apply = deposit;
    plan.streams[plan.stream_count++] = (dmg_stream){&exchange->copies[groups->group], 1, DMG_STREAM_WRITE};
    return run_pass(&pass, &plan);
}

/* ---- taking ---- */

static void lower_32(uint32_t *restrict cache, const uint32_t *restrict copy, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cache[i] = copy[i] < cache[i] ? copy[i] : cache[i];
    }
}

static void lower_64(uint64_t *restrict cache, const uint64_t *restrict copy, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cache[i] = copy[i] < cache[i] ? copy[i] : cache[i];
    }
}

static void add(double *restrict cache, const double *restrict copy, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        cache[i] += copy[i];
    }
}

static void fold(void *context, dmg_chunk *chunk, const dmg_vertex_edges *edges, uint32_t count)
{
    (void)edges;
    (void)count;
    const struct pass *pass = context;
    void *cache = cached(pass, chunk);
    for (uint32_t i = 0; i < pass->copy_count; i++) {
        switch (pass->exchange->combine) {
        case DMG_COMBINE_MIN_UINT32:
            lower_32(cache, chunk->streams[i], chunk->count);
            break;
        case DMG_COMBINE_MIN_UINT64:
            lower_64(cache, chunk->streams[i], chunk->count);
            break;
        case DMG_COMBINE_ADD_DOUBLE:
            add(cache, chunk->streams[i], chunk->count);
            break;
        }
    }
}

dmg_status dmg_group_exchange_fold(dmg_group_exchange *exchange, void *cache)
{
    const dmg_groups *groups = &exchange->engine->groups;
    struct pass pass = {.exchange = exchange, .cache = cache};
    dmg_status status = DMG_OK;
    /* Copies are taken in the order of groups by every rank, so that sums do not depend on timing. */
    for (uint32_t group = 0; group < groups->group_count && status == DMG_OK;) {
        dmg_retrieval_plan plan = plan_pass(&pass, &exchange->engine->share);
        plan.apply = fold;
        for (; group < groups->group_count && plan.stream_count < COPIES_A_PASS; group++) {
            if (group != groups->group) {
                plan.streams[plan.stream_count++] = (dmg_stream){&exchange->copies[group], 1, DMG_STREAM_READ};
            }
        }
        pass.copy_count = plan.stream_count;
        status = plan.stream_count > 0 ? run_pass(&pass, &plan) : DMG_OK;
    }
    return status;
}
