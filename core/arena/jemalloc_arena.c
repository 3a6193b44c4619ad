#include "core/arena/jemalloc_arena.h"

#include "core/base/error.h"

#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How much jemalloc takes from the space at once, at most, when it needs more. */
#define GROW_BYTES_MAX ((size_t)2 << 20)

struct dmg_segment_arena {
    extent_hooks_t hooks; /* first: jemalloc hands this back, and the rest is found from it */
    char *segment;
    dmg_page_allocator *pages;
    unsigned index; /* jemalloc's number of the arena, while there is one */
    bool (*take_back)(void *context, uint64_t offset, uint64_t bytes); /* or NULL */
    void *take_back_context;
    uint64_t live; /* extents that are allocated; the arena exists while there are any */
};

/* The argument of jemalloc's "experimental.arenas_create_ext"; its public header does not declare it. */
typedef struct arena_configuration {
    extent_hooks_t *extent_hooks;
    bool metadata_use_hooks;
} arena_configuration;

static void *hook_alloc(extent_hooks_t *hooks, void *wanted, size_t bytes, size_t alignment, bool *zero, bool *commit,
                        unsigned index)
{
    (void)index;
    dmg_segment_arena *arena = (dmg_segment_arena *)hooks;
    uint64_t offset;
    uint64_t dirty_bytes;
    if (wanted != NULL || bytes % DMG_PAGE_ALLOCATOR_PAGE_BYTES != 0 || alignment < DMG_PAGE_ALLOCATOR_PAGE_BYTES ||
        !dmg_page_allocator_allocate(arena->pages, bytes, alignment, (uint64_t)(uintptr_t)arena->segment, &offset,
                                     &dirty_bytes)) {
        return NULL;
    }
    char *memory = arena->segment + offset;
    if (dirty_bytes != 0 && arena->take_back != NULL &&
        !arena->take_back(arena->take_back_context, offset, dirty_bytes)) {
        (void)dmg_page_allocator_free(arena->pages, offset, bytes);
        return NULL;
    }
    if (*zero && dirty_bytes != 0) {
        memset(memory, 0, dirty_bytes);
        dirty_bytes = 0;
    }
    *zero = dirty_bytes == 0;
    *commit = true;
    return memory;
}

static bool hook_dalloc(extent_hooks_t *hooks, void *memory, size_t bytes, bool is_committed, unsigned index)
{
    (void)is_committed;
    (void)index;
    dmg_segment_arena *arena = (dmg_segment_arena *)hooks;
    return !dmg_page_allocator_free(arena->pages, (uint64_t)((char *)memory - arena->segment), bytes);
}

static void hook_destroy(extent_hooks_t *hooks, void *memory, size_t bytes, bool is_committed, unsigned index)
{
    (void)hook_dalloc(hooks, memory, bytes, is_committed, index);
}

/* The segment is one mapping: extents may be cut and joined anywhere. False is jemalloc's success. */
static bool hook_split(extent_hooks_t *hooks, void *memory, size_t bytes, size_t bytes_a, size_t bytes_b,
                       bool is_committed, unsigned index)
{
    (void)hooks, (void)memory, (void)bytes, (void)bytes_a, (void)bytes_b, (void)is_committed, (void)index;
    return false;
}

static bool hook_merge(extent_hooks_t *hooks, void *memory_a, size_t bytes_a, void *memory_b, size_t bytes_b,
                       bool is_committed, unsigned index)
{
    (void)hooks, (void)memory_a, (void)bytes_a, (void)memory_b, (void)bytes_b, (void)is_committed, (void)index;
    return false;
}

static int arena_control(unsigned index, const char *what, void *value, size_t bytes)
{
    char name[64];
    snprintf(name, sizeof name, "arena.%u.%s", index, what);
    return mallctl(name, NULL, NULL, value, bytes);
}

static dmg_status arena_open(dmg_segment_arena *arena)
{
    arena_configuration configuration = {.extent_hooks = &arena->hooks, .metadata_use_hooks = false};
    size_t index_bytes = sizeof arena->index;
    int error =
        mallctl("experimental.arenas_create_ext", &arena->index, &index_bytes, &configuration, sizeof configuration);
    if (error != 0) {
        return dmg_error_errno(error == ENOENT ? DMG_ERR_UNSUPPORTED : DMG_ERR_MEMORY, error,
                               "making a jemalloc arena for a segment (needs jemalloc 5.3)");
    }
    /* Freed extents go back to the space at once, where large extents can use them. */
    ssize_t decay_ms = 0;
    size_t grow_bytes = GROW_BYTES_MAX;
    error = arena_control(arena->index, "dirty_decay_ms", &decay_ms, sizeof decay_ms);
    error = error != 0 ? error : arena_control(arena->index, "muzzy_decay_ms", &decay_ms, sizeof decay_ms);
    error = error != 0 ? error : arena_control(arena->index, "retain_grow_limit", &grow_bytes, sizeof grow_bytes);
    if (error != 0) {
        arena_control(arena->index, "destroy", NULL, 0);
        return dmg_error_errno(DMG_ERR_UNSUPPORTED, error, "setting up the jemalloc arena of a segment");
    }
    return DMG_OK;
}

static void arena_close(dmg_segment_arena *arena)
{
    arena_control(arena->index, "destroy", NULL, 0);
}

static dmg_status arena_create(void *segment, dmg_page_allocator *pages, dmg_segment_arena **arena)
{
    *arena = calloc(1, sizeof **arena);
    if (*arena == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the arena of a segment");
    }
    (*arena)->hooks = (extent_hooks_t){
        .alloc = hook_alloc,
        .dalloc = hook_dalloc,
        .destroy = hook_destroy,
        .split = hook_split,
        .merge = hook_merge,
    };
    (*arena)->segment = segment;
    (*arena)->pages = pages;
    /* Find out now, not at the first small extent, whether this jemalloc can do it. */
    dmg_status status = arena_open(*arena);
    if (status != DMG_OK) {
        free(*arena);
        *arena = NULL;
        return status;
    }
    arena_close(*arena);
    return DMG_OK;
}

static void arena_on_take_back(dmg_segment_arena *arena,
                               bool (*take_back)(void *context, uint64_t offset, uint64_t bytes), void *context)
{
    arena->take_back = take_back;
    arena->take_back_context = context;
}

static void arena_destroy(dmg_segment_arena *arena)
{
    if (arena == NULL) {
        return;
    }
    if (arena->live != 0) {
        arena_close(arena);
    }
    free(arena);
}

static dmg_status arena_allocate(dmg_segment_arena *arena, uint64_t bytes, uint64_t *offset)
{
    if (arena->live == 0) {
        dmg_status status = arena_open(arena);
        if (status != DMG_OK) {
            return status;
        }
    }
    char *memory = mallocx(bytes, MALLOCX_ARENA(arena->index) | MALLOCX_TCACHE_NONE |
                                      MALLOCX_ALIGN(DMG_PAGE_ALLOCATOR_PAGE_BYTES) | MALLOCX_ZERO);
    if (memory == NULL) {
        if (arena->live == 0) {
            arena_close(arena);
        }
        return dmg_error(DMG_ERR_MEMORY, "the segment has no room for an extent of %llu bytes",
                         (unsigned long long)bytes);
    }
    arena->live++;
    *offset = (uint64_t)(memory - arena->segment);
    return DMG_OK;
}

static void arena_free(dmg_segment_arena *arena, uint64_t offset)
{
    dallocx(arena->segment + offset, MALLOCX_TCACHE_NONE);
    if (--arena->live == 0) {
        arena_close(arena);
    }
}

const dmg_segment_arena_operations dmg_jemalloc_arena = {.create = arena_create,
                                                         .on_take_back = arena_on_take_back,
                                                         .destroy = arena_destroy,
                                                         .allocate = arena_allocate,
                                                         .free = arena_free};
