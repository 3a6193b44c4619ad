#include "formats/dense_ids.h"

#include "core/base/error.h"
#include "formats/graph.h"

#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

/* A bitmap is worth while it is not much larger than the edges themselves. */
#define BITMAP_BITS_AN_END   32
#define BITMAP_BITS_AT_LEAST (UINT64_C(1) << 20)
#define HASH_SLOTS_AT_START  (UINT64_C(1) << 12)
#define RADIX_BITS           8
#define RADIX_VALUES         (1u << RADIX_BITS)

static dmg_status too_many(void)
{
    return dmg_error(DMG_ERR_LIMIT, "more than %" PRIu64 " vertices: vertex ids inside dmgraph have 32 bits",
                     DMG_VERTICES_MAX);
}

/* Wide ends shrink to narrow ones where they lie, so both views of the memory go through memcpy. */
static inline uint64_t end_at(const void *ends, bool is_wide, uint64_t index)
{
    if (is_wide) {
        uint64_t id;
        memcpy(&id, (const char *)ends + index * sizeof id, sizeof id);
        return id;
    }
    uint32_t id;
    memcpy(&id, (const char *)ends + index * sizeof id, sizeof id);
    return id;
}

static inline void set_vertex(void *ends, uint64_t index, uint32_t vertex)
{
    memcpy((char *)ends + index * sizeof vertex, &vertex, sizeof vertex);
}

static void find_span(const void *ends, uint64_t end_count, bool is_wide, uint64_t *least, uint64_t *most)
{
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    for (uint64_t i = 0; i < end_count; i++) {
        uint64_t id = end_at(ends, is_wide, i);
        low = id < low ? id : low;
        high = id > high ? id : high;
    }
    *least = low;
    *most = high;
}

/** One bit an id of the span; ranks[w] is the number of bits before word w. */
static dmg_status number_by_bitmap(void *ends, uint64_t end_count, bool is_wide, uint64_t span_bits, dmg_dense_ids *map)
{
    uint64_t first = map->first_id;
    uint64_t word_count = span_bits / 64 + 1;
    dmg_pages bitmap = {0};
    dmg_pages rank_pages = {0};
    dmg_status status = dmg_pages_resize(&bitmap, word_count, sizeof(uint64_t), "the bitmap of vertex ids");
    if (status == DMG_OK) {
        status = dmg_pages_resize(&rank_pages, word_count, sizeof(uint32_t), "the ranks of vertex ids");
    }
    if (status != DMG_OK) {
        goto release;
    }
    uint64_t *words = bitmap.memory;
    uint32_t *ranks = rank_pages.memory;
    for (uint64_t i = 0; i < end_count; i++) {
        uint64_t bit = end_at(ends, is_wide, i) - first;
        words[bit / 64] |= UINT64_C(1) << bit % 64;
    }
    uint64_t count = 0;
    for (uint64_t w = 0; w < word_count; w++) {
        ranks[w] = (uint32_t)count;
        count += (uint64_t)__builtin_popcountll(words[w]);
    }
    if (count > DMG_VERTICES_MAX) {
        status = too_many();
        goto release;
    }
    map->vertex_count = count;
    if (count == span_bits + 1) {
        for (uint64_t i = 0; i < end_count; i++) {
            set_vertex(ends, i, (uint32_t)(end_at(ends, is_wide, i) - first));
        }
        goto release;
    }
    status = dmg_pages_resize(&map->ids, count, sizeof(uint64_t), "the vertex ids");
    if (status != DMG_OK) {
        goto release;
    }
    uint64_t *ids = map->ids.memory;
    uint64_t vertex = 0;
    for (uint64_t w = 0; w < word_count; w++) {
        for (uint64_t rest = words[w]; rest; rest &= rest - 1) {
            ids[vertex++] = first + w * 64 + (uint64_t)__builtin_ctzll(rest);
        }
    }
    for (uint64_t i = 0; i < end_count; i++) {
        uint64_t bit = end_at(ends, is_wide, i) - first;
        uint64_t below = words[bit / 64] & ((UINT64_C(1) << bit % 64) - 1);
        set_vertex(ends, i, ranks[bit / 64] + (uint32_t)__builtin_popcountll(below));
    }
release:
    dmg_pages_release(&bitmap);
    dmg_pages_release(&rank_pages);
    return status;
}

/** Open addressing; a slot holds a number + 1 in the order of first sight, or 0. */
typedef struct id_table {
    dmg_pages slots;  /* uint32_t */
    dmg_pages sights; /* uint64_t: the id of each number */
    uint64_t slot_count;
    uint64_t sight_count;
    uint64_t secret;
} id_table;

/** The finaliser of MurmurHash3 (Appleby, public domain), keyed so that no file can be made that collides on purpose.
 */
static inline uint64_t hash_id(uint64_t id, uint64_t secret)
{
    uint64_t h = id ^ secret;
    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    h ^= h >> 33;
    return h;
}

static dmg_status table_resize(id_table *table, uint64_t slot_count)
{
    dmg_pages_release(&table->slots);
    dmg_status status = dmg_pages_resize(&table->slots, slot_count, sizeof(uint32_t), "the hash table of vertex ids");
    if (status == DMG_OK) {
        status = dmg_pages_resize(&table->sights, slot_count / 2 + 1, sizeof(uint64_t), "the distinct vertex ids");
    }
    if (status != DMG_OK) {
        return status;
    }
    table->slot_count = slot_count;
    uint32_t *slots = table->slots.memory;
    const uint64_t *sights = table->sights.memory;
    for (uint64_t number = 0; number < table->sight_count; number++) {
        uint64_t slot = hash_id(sights[number], table->secret) & (slot_count - 1);
        while (slots[slot]) {
            slot = (slot + 1) & (slot_count - 1);
        }
        slots[slot] = (uint32_t)number + 1;
    }
    return DMG_OK;
}

static dmg_status table_number(id_table *table, uint64_t id, uint32_t *number)
{
    if (table->sight_count >= table->slot_count / 2) {
        dmg_status status = table_resize(table, table->slot_count * 2);
        if (status != DMG_OK) {
            return status;
        }
    }
    uint32_t *slots = table->slots.memory;
    uint64_t *sights = table->sights.memory;
    uint64_t slot = hash_id(id, table->secret) & (table->slot_count - 1);
    while (slots[slot]) {
        if (sights[slots[slot] - 1] == id) {
            *number = slots[slot] - 1;
            return DMG_OK;
        }
        slot = (slot + 1) & (table->slot_count - 1);
    }
    if (table->sight_count == DMG_VERTICES_MAX) {
        return too_many();
    }
    *number = (uint32_t)table->sight_count;
    sights[table->sight_count++] = id;
    slots[slot] = *number + 1;
    return DMG_OK;
}

typedef struct sighted_id {
    uint64_t id;
    uint32_t number;
} sighted_id;

/** Least significant digit first; digits that are the same in all ids cost one count. */
static void radix_sort(sighted_id *items, sighted_id *spare, uint64_t count, sighted_id **sorted)
{
    for (uint32_t shift = 0; shift < 64; shift += RADIX_BITS) {
        uint64_t start[RADIX_VALUES] = {0};
        for (uint64_t i = 0; i < count; i++) {
            start[items[i].id >> shift & (RADIX_VALUES - 1)]++;
        }
        if (start[items[0].id >> shift & (RADIX_VALUES - 1)] == count) {
            continue;
        }
        uint64_t sum = 0;
        for (uint32_t value = 0; value < RADIX_VALUES; value++) {
            uint64_t here = start[value];
            start[value] = sum;
            sum += here;
        }
        for (uint64_t i = 0; i < count; i++) {
            spare[start[items[i].id >> shift & (RADIX_VALUES - 1)]++] = items[i];
        }
        sighted_id *swap = items;
        items = spare;
        spare = swap;
    }
    *sorted = items;
}

static dmg_status number_by_hash(void *ends, uint64_t end_count, bool is_wide, dmg_dense_ids *map)
{
    id_table table = {0};
    dmg_pages sort_pages = {0};
    dmg_pages spare_pages = {0};
    if (getrandom(&table.secret, sizeof table.secret, GRND_NONBLOCK) != sizeof table.secret) {
        table.secret = (uint64_t)(uintptr_t)&table;
    }
    dmg_status status = table_resize(&table, HASH_SLOTS_AT_START);
    for (uint64_t i = 0; i < end_count && status == DMG_OK; i++) {
        uint32_t number = 0;
        status = table_number(&table, end_at(ends, is_wide, i), &number);
        set_vertex(ends, i, number);
    }
    uint64_t count = table.sight_count;
    dmg_pages_release(&table.slots);
    if (status == DMG_OK) {
        status = dmg_pages_resize(&sort_pages, count, sizeof(sighted_id), "sorting the vertex ids");
    }
    if (status == DMG_OK) {
        status = dmg_pages_resize(&spare_pages, count, sizeof(sighted_id), "sorting the vertex ids");
    }
    if (status == DMG_OK) {
        status = dmg_pages_resize(&map->ids, count, sizeof(uint64_t), "the vertex ids");
    }
    if (status != DMG_OK) {
        goto release;
    }
    sighted_id *items = sort_pages.memory;
    const uint64_t *sights = table.sights.memory;
    for (uint64_t number = 0; number < count; number++) {
        items[number] = (sighted_id){.id = sights[number], .number = (uint32_t)number};
    }
    dmg_pages_release(&table.sights);
    sighted_id *sorted;
    radix_sort(items, spare_pages.memory, count, &sorted);
    uint64_t *ids = map->ids.memory;
    /* The array that the sort did not end in takes the vertex of each number. */
    uint32_t *vertices = sorted == items ? spare_pages.memory : sort_pages.memory;
    for (uint64_t vertex = 0; vertex < count; vertex++) {
        ids[vertex] = sorted[vertex].id;
        vertices[sorted[vertex].number] = (uint32_t)vertex;
    }
    for (uint64_t i = 0; i < end_count; i++) {
        set_vertex(ends, i, vertices[end_at(ends, false, i)]);
    }
    map->vertex_count = count;
release:
    dmg_pages_release(&table.slots);
    dmg_pages_release(&table.sights);
    dmg_pages_release(&sort_pages);
    dmg_pages_release(&spare_pages);
    return status;
}

dmg_status dmg_dense_ids_make(dmg_pages *ends, uint64_t end_count, bool is_wide, dmg_dense_ids *map)
{
    memset(map, 0, sizeof *map);
    if (end_count == 0) {
        return DMG_OK;
    }
    uint64_t least;
    uint64_t most;
    find_span(ends->memory, end_count, is_wide, &least, &most);
    map->first_id = least;
    uint64_t span_bits = most - least;
    dmg_status status = span_bits < BITMAP_BITS_AT_LEAST || span_bits / BITMAP_BITS_AN_END < end_count
                            ? number_by_bitmap(ends->memory, end_count, is_wide, span_bits, map)
                            : number_by_hash(ends->memory, end_count, is_wide, map);
    if (status != DMG_OK) {
        dmg_pages_release(&map->ids);
    }
    return status;
}
