#include "core/engine/retrieval/cached_index.h"

#include <string.h>

/* A degree and an address. */
#define COMPACT_BYTES (sizeof(uint32_t) + sizeof(dmg_address))

dmg_status dmg_cached_index_create(dmg_budget *budget, const dmg_graph_store *store, const dmg_range_array *index,
                                   uint64_t first, uint64_t last, bool owns_all, dmg_cached_index *cached)
{
    bool is_compact = owns_all && store->shape.in_place_degree_max == 0;
    uint32_t bytes_each = is_compact ? COMPACT_BYTES : store->shape.entry_bytes;
    void *memory;
    dmg_status status = dmg_budget_allocate(budget, DMG_BUDGET_INDEX, (last - first) * bytes_each, &memory);
    *cached = (dmg_cached_index){0};
    if (status == DMG_OK) {
        *cached = (dmg_cached_index){.index = index,
                                     .first = first,
                                     .last = last,
                                     .bytes_each = bytes_each,
                                     .is_compact = is_compact,
                                     .shape = store->shape,
                                     .entries = memory};
    }
    return status;
}

void dmg_cached_index_destroy(dmg_budget *budget, dmg_cached_index *cached)
{
    dmg_budget_free(budget, DMG_BUDGET_INDEX, cached->entries, (cached->last - cached->first) * cached->bytes_each);
    *cached = (dmg_cached_index){0};
}

static uint8_t *entry_at(const dmg_cached_index *cached, uint64_t vertex)
{
    return cached->entries + (vertex - cached->first) * cached->bytes_each;
}

void dmg_cached_index_put(dmg_cached_index *cached, uint64_t first, uint32_t count, const uint8_t *entries)
{
    uint8_t *to = entry_at(cached, first);
    if (!cached->is_compact) {
        memcpy(to, entries, (uint64_t)count * cached->bytes_each);
        return;
    }
    for (uint32_t i = 0; i < count; i++, to += COMPACT_BYTES) {
        const uint8_t *entry = entries + (uint64_t)i * cached->shape.entry_bytes;
        uint32_t degree = dmg_index_entry_degree(entry);
        dmg_address first_edge = degree > 0 ? dmg_index_entry_first_edge(&cached->shape, entry) : DMG_ADDRESS_NULL;
        memcpy(to, &degree, sizeof degree);
        memcpy(to + sizeof degree, &first_edge, sizeof first_edge);
    }
}

const uint8_t *dmg_cached_index_get(const dmg_cached_index *cached, uint64_t first, const uint32_t *selected,
                                    uint32_t count, uint8_t *buffer)
{
    if (!cached->is_compact) {
        return entry_at(cached, first);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *entry = buffer + (uint64_t)selected[i] * cached->shape.entry_bytes;
        memcpy(entry, entry_at(cached, first + selected[i]), COMPACT_BYTES);
        /* No lengths; zeros, so that they are not taken to stand in front of the list. */
        memset(entry + DMG_INDEX_LENGTHS_AT, 0, sizeof(uint32_t));
    }
    return buffer;
}
