#include "transport/cxl_shm/coherence.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/cxl_shm/copy.h"
#include "transport/cxl_shm/devices.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

/* ---- the processor ---- */

typedef enum flush_kind { FLUSH_UNKNOWN, FLUSH_NONE, FLUSH_CLFLUSH, FLUSH_CLFLUSHOPT, FLUSH_CLWB } flush_kind;

#if defined(__x86_64__)

#define LEAF_FEATURES      1
#define LEAF_MORE_FEATURES 7
#define HAS_CLFLUSH        (1u << 19) /* of leaf 1, edx */
#define HAS_CLFLUSHOPT     (1u << 23) /* of leaf 7, ebx */
#define HAS_CLWB           (1u << 24)

static flush_kind find_flush(void)
{
    unsigned int a, b = 0, c, d = 0;
    if (__get_cpuid_count(LEAF_MORE_FEATURES, 0, &a, &b, &c, &d) && (b & HAS_CLFLUSHOPT)) {
        return b & HAS_CLWB ? FLUSH_CLWB : FLUSH_CLFLUSHOPT;
    }
    return __get_cpuid(LEAF_FEATURES, &a, &b, &c, &d) && (d & HAS_CLFLUSH) ? FLUSH_CLFLUSH : FLUSH_NONE;
}

__attribute__((target("clwb"))) static void clwb_lines(char *line, const char *end)
{
    for (; line < end; line += DMG_SHM_CACHE_LINE_BYTES) {
        _mm_clwb(line);
    }
}

__attribute__((target("clflushopt"))) static void clflushopt_lines(char *line, const char *end)
{
    for (; line < end; line += DMG_SHM_CACHE_LINE_BYTES) {
        _mm_clflushopt(line);
    }
}

static void clflush_lines(char *line, const char *end)
{
    for (; line < end; line += DMG_SHM_CACHE_LINE_BYTES) {
        _mm_clflush(line);
    }
}

static void fence_stores(void)
{
    _mm_sfence();
}

static void fence_all(void)
{
    _mm_mfence();
}

#else

static flush_kind find_flush(void)
{
    return FLUSH_NONE;
}

static void clwb_lines(char *line, const char *end)
{
    (void)line, (void)end;
}

static void clflushopt_lines(char *line, const char *end)
{
    (void)line, (void)end;
}

static void clflush_lines(char *line, const char *end)
{
    (void)line, (void)end;
}

static void fence_stores(void)
{
}

static void fence_all(void)
{
}

#endif

/* Found once; a race finds the same twice. */
static flush_kind flush(void)
{
    static _Atomic int found = FLUSH_UNKNOWN;
    int kind = atomic_load_explicit(&found, memory_order_relaxed);
    if (kind == FLUSH_UNKNOWN) {
        kind = find_flush();
        atomic_store_explicit(&found, kind, memory_order_relaxed);
    }
    return (flush_kind)kind;
}

const char *dmg_shm_flush_instructions(void)
{
    switch (flush()) {
    case FLUSH_CLWB:
        return "lines are written back by clwb and invalidated by clflushopt";
    case FLUSH_CLFLUSHOPT:
        return "lines are written back and invalidated by clflushopt";
    case FLUSH_CLFLUSH:
        return "lines are written back and invalidated by clflush";
    case FLUSH_UNKNOWN:
    case FLUSH_NONE:
        break;
    }
    return NULL;
}

/* ---- what a transport string says ---- */

dmg_status dmg_shm_coherence_parse(const dmg_transport_parameters *parameters, dmg_shm_coherence *coherence)
{
    const char *setting = dmg_transport_parameter_get(parameters, "coherence", "coherent");
    *coherence = (dmg_shm_coherence){.is_software = strcmp(setting, "none") == 0, .left_out = DMG_SHM_SITE_NONE};
    if (!coherence->is_software && strcmp(setting, "coherent") != 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "transport parameter coherence=%s: expected coherent or none", setting);
    }
    if (coherence->is_software && !dmg_shm_flush_instructions()) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "coherence=none: this processor has no instructions that write single cache lines back and "
                         "invalidate them; use coherence=coherent, on one host");
    }
    return dmg_shm_devices.parse ? dmg_shm_devices.parse(parameters, coherence) : DMG_OK;
}

static bool is_left_out(const dmg_shm_agent *agent, dmg_shm_use use, dmg_shm_step step)
{
    return agent->coherence.left_out == (uint32_t)use * DMG_SHM_STEPS + step;
}

/* ---- views and agents ---- */

dmg_status dmg_shm_view_open(const dmg_shm_coherence *coherence, void *memory, uint64_t bytes, dmg_shm_view *view)
{
    *view = (dmg_shm_view){.memory = memory, .bytes = bytes};
    return coherence->has_line_cache ? dmg_shm_devices.cache_create(memory, bytes, &view->cache) : DMG_OK;
}

void dmg_shm_view_close(dmg_shm_view *view)
{
    if (view->cache) {
        dmg_shm_devices.cache_destroy(view->cache);
    }
    *view = (dmg_shm_view){0};
}

char *dmg_shm_view_pointer(const dmg_shm_view *view)
{
    return view->cache ? dmg_shm_devices.cache_pointer(view->cache) : view->memory;
}

void dmg_shm_agent_open(const dmg_shm_coherence *coherence, dmg_counters *counters, uint64_t number,
                        dmg_shm_agent *agent)
{
    *agent = (dmg_shm_agent){.coherence = *coherence, .counters = counters};
    /* Never 0, where the generator would stay. */
    agent->random = (coherence->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + number * UINT64_C(0xbf58476d1ce4e5b9) + 1;
}

void dmg_shm_agent_close(dmg_shm_agent *agent)
{
    free(agent->pending);
    agent->pending = NULL;
    agent->pending_count = agent->pending_capacity = 0;
}

void dmg_shm_agent_forget(dmg_shm_agent *agent, const dmg_shm_view *view)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < agent->pending_count; i++) {
        if (agent->pending[i].cache != view->cache) {
            agent->pending[kept++] = agent->pending[i];
        }
    }
    agent->pending_count = kept;
}

/* xorshift64* */
static uint64_t draw(dmg_shm_agent *agent)
{
    agent->random ^= agent->random >> 12;
    agent->random ^= agent->random << 25;
    agent->random ^= agent->random >> 27;
    return agent->random * UINT64_C(0x2545f4914f6cdd1d) >> 32;
}

/* With the seed 0 nothing is evicted or prefetched: what was forgotten is forgotten for ever. */
static uint64_t draw_access(dmg_shm_agent *agent)
{
    return agent->coherence.seed == 0 ? 0 : draw(agent);
}

/* ---- before the fence ---- */

#define SLOW_FENCE_ODDS 16
#define SLOW_FENCE_NS   UINT64_C(100000)

static void carry_out(const dmg_shm_pending *pending)
{
    dmg_shm_devices.cache_write_back(pending->cache, pending->line, !pending->is_invalidation);
}

static void ask(dmg_shm_agent *agent, dmg_shm_line_cache *cache, uint64_t line, bool is_invalidation)
{
    dmg_shm_pending asked = {.cache = cache, .line = line, .is_invalidation = is_invalidation};
    if (agent->pending_count == agent->pending_capacity) {
        uint32_t capacity = agent->pending_capacity ? agent->pending_capacity * 2 : 64;
        dmg_shm_pending *grown = realloc(agent->pending, capacity * sizeof *grown);
        if (!grown) {
            carry_out(&asked); /* early, which hardware may do as well */
            return;
        }
        agent->pending = grown;
        agent->pending_capacity = capacity;
    }
    agent->pending[agent->pending_count++] = asked;
}

/*
 * Everything that was asked for, in any order. Now and then it takes a while, as long as another process needs to see a
 * line that came too early.
 */
static void settle(dmg_shm_agent *agent)
{
    bool is_slow = agent->pending_count > 1 && draw(agent) % SLOW_FENCE_ODDS == 0;
    while (agent->pending_count > 0) {
        uint32_t chosen = (uint32_t)(draw(agent) % agent->pending_count);
        carry_out(&agent->pending[chosen]);
        agent->pending[chosen] = agent->pending[--agent->pending_count];
        if (is_slow && agent->pending_count == 1) {
            dmg_sleep_ns(SLOW_FENCE_NS);
        }
    }
}

/* ---- steps ---- */

static uint64_t line_of(uint64_t offset)
{
    return offset / DMG_SHM_CACHE_LINE_BYTES;
}

static uint64_t lines_of(uint64_t offset, uint64_t bytes)
{
    return bytes == 0 ? 0 : line_of(offset + bytes - 1) - line_of(offset) + 1;
}

static uint64_t left_in_line(uint64_t offset, uint64_t bytes)
{
    uint64_t left = DMG_SHM_CACHE_LINE_BYTES - offset % DMG_SHM_CACHE_LINE_BYTES;
    return bytes < left ? bytes : left;
}

void dmg_shm_store(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, const void *from, uint64_t bytes)
{
    if (!view->cache) {
        dmg_shm_copy_to_pool(view->memory + offset, from, bytes);
        return;
    }
    for (uint64_t done = 0; done < bytes;) {
        uint64_t piece = left_in_line(offset + done, bytes - done);
        dmg_shm_devices.cache_store(view->cache, offset + done, (const char *)from + done, piece, draw_access(agent));
        done += piece;
    }
}

void dmg_shm_load(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, void *to, uint64_t bytes)
{
    if (!view->cache) {
        dmg_shm_copy_from_pool(to, view->memory + offset, bytes);
        return;
    }
    for (uint64_t done = 0; done < bytes;) {
        uint64_t piece = left_in_line(offset + done, bytes - done);
        dmg_shm_devices.cache_load(view->cache, offset + done, (char *)to + done, piece, draw_access(agent));
        done += piece;
    }
}

static bool is_of_messages(dmg_shm_use use)
{
    return use >= DMG_SHM_PAYLOAD_WRITE && use <= DMG_SHM_ASLEEP_READ;
}

/* Ask the processor, or the line cache, for something about each line of a span. */
static void ask_lines(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, uint64_t bytes,
                      bool is_invalidation)
{
    uint64_t first = line_of(offset);
    uint64_t count = lines_of(offset, bytes);
    if (view->cache) {
        for (uint64_t i = 0; i < count; i++) {
            ask(agent, view->cache, first + i, is_invalidation);
        }
        return;
    }
    char *line = view->memory + first * DMG_SHM_CACHE_LINE_BYTES;
    const char *end = line + count * DMG_SHM_CACHE_LINE_BYTES;
    flush_kind kind = flush();
    if (kind == FLUSH_CLFLUSH) {
        clflush_lines(line, end);
    } else if (kind == FLUSH_CLWB && !is_invalidation) {
        clwb_lines(line, end);
    } else {
        clflushopt_lines(line, end);
    }
}

void dmg_shm_write_back(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, uint64_t bytes,
                        dmg_shm_use use)
{
    uint64_t *counter = is_of_messages(use) ? &agent->counters->message_lines : &agent->counters->lines_written_back;
    *counter += lines_of(offset, bytes);
    if (!is_left_out(agent, use, DMG_SHM_LINES)) {
        ask_lines(agent, view, offset, bytes, false);
    }
}

void dmg_shm_invalidate(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, uint64_t bytes,
                        dmg_shm_use use)
{
    uint64_t *counter = is_of_messages(use) ? &agent->counters->message_lines : &agent->counters->lines_invalidated;
    *counter += lines_of(offset, bytes);
    if (!is_left_out(agent, use, DMG_SHM_LINES)) {
        ask_lines(agent, view, offset, bytes, true);
    }
}

void dmg_shm_store_fence(dmg_shm_agent *agent, dmg_shm_use use)
{
    if (is_left_out(agent, use, DMG_SHM_FENCE)) {
        return;
    }
    fence_stores();
    settle(agent);
}

void dmg_shm_load_fence(dmg_shm_agent *agent, dmg_shm_use use)
{
    if (is_left_out(agent, use, DMG_SHM_FENCE)) {
        return;
    }
    fence_all();
    settle(agent);
}

void dmg_shm_fetch(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, uint64_t bytes)
{
    for (uint64_t i = 0; view->cache && i < lines_of(offset, bytes); i++) {
        dmg_shm_devices.cache_fetch(view->cache, line_of(offset) + i, draw_access(agent));
    }
}

void dmg_shm_mark_written(dmg_shm_agent *agent, const dmg_shm_view *view, uint64_t offset, uint64_t bytes)
{
    (void)agent;
    for (uint64_t i = 0; view->cache && i < lines_of(offset, bytes); i++) {
        dmg_shm_devices.cache_mark_written(view->cache, line_of(offset) + i);
    }
}
