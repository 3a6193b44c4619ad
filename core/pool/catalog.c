#include "core/pool/catalog.h"

#include "core/base/error.h"
#include "core/pool/pool.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct catalog_entry {
    dmg_catalog_owner owner;
    size_t bytes;
    char name[DMG_CATALOG_NAME_BYTES];
    char value[];
} catalog_entry;

struct dmg_catalog {
    uint32_t count;
    catalog_entry *entries[DMG_CATALOG_ENTRIES_MAX]; /* sorted by name */
};

dmg_status dmg_catalog_create(dmg_catalog **catalog)
{
    *catalog = calloc(1, sizeof **catalog);
    return *catalog != NULL ? DMG_OK : dmg_error(DMG_ERR_MEMORY, "no memory for the catalog");
}

void dmg_catalog_destroy(dmg_catalog *catalog)
{
    if (catalog == NULL) {
        return;
    }
    for (uint32_t index = 0; index < catalog->count; index++) {
        free(catalog->entries[index]);
    }
    free(catalog);
}

/* Where the name stands, or would stand. */
static uint32_t entries_lower_bound(const dmg_catalog *catalog, const char *name, bool *is_there)
{
    uint32_t low = 0;
    uint32_t high = catalog->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(catalog->entries[middle]->name, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *is_there = low < catalog->count && strcmp(catalog->entries[low]->name, name) == 0;
    return low;
}

dmg_status dmg_catalog_insert(dmg_catalog *catalog, const dmg_catalog_owner *owner, const char *name, const void *value,
                              size_t bytes)
{
    bool is_there;
    uint32_t index = entries_lower_bound(catalog, name, &is_there);
    if (is_there) {
        return dmg_error(DMG_ERR_EXISTS, "the catalog has an entry \"%s\" already", name);
    }
    if (catalog->count == DMG_CATALOG_ENTRIES_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "the catalog is full: it has %d entries; remove some", DMG_CATALOG_ENTRIES_MAX);
    }
    catalog_entry *entry = malloc(sizeof *entry + bytes);
    if (entry == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "the memory node has no memory for the catalog entry \"%s\"", name);
    }
    entry->owner = *owner;
    entry->bytes = bytes;
    memset(entry->name, 0, sizeof entry->name);
    memcpy(entry->name, name, strlen(name) + 1);
    memcpy(entry->value, value, bytes);
    memmove(&catalog->entries[index + 1], &catalog->entries[index],
            (catalog->count - index) * sizeof catalog->entries[0]);
    catalog->entries[index] = entry;
    catalog->count++;
    return DMG_OK;
}

uint32_t dmg_catalog_count_of(const dmg_catalog *catalog, const dmg_catalog_owner *owner)
{
    uint32_t count = 0;
    for (uint32_t index = 0; index < catalog->count; index++) {
        const dmg_catalog_owner *other = &catalog->entries[index]->owner;
        count += other->client == owner->client || dmg_owner_is_same(&other->owner, &owner->owner);
    }
    return count;
}

static dmg_status no_entry(const char *name)
{
    return dmg_error(DMG_ERR_NOT_FOUND, "the catalog has no entry \"%s\"", name);
}

dmg_status dmg_catalog_owner_of(const dmg_catalog *catalog, const char *name, const dmg_catalog_owner **owner)
{
    bool is_there;
    uint32_t index = entries_lower_bound(catalog, name, &is_there);
    if (!is_there) {
        return no_entry(name);
    }
    *owner = &catalog->entries[index]->owner;
    return DMG_OK;
}

dmg_status dmg_catalog_find(const dmg_catalog *catalog, const char *name, const void **value, size_t *bytes)
{
    bool is_there;
    uint32_t index = entries_lower_bound(catalog, name, &is_there);
    if (!is_there) {
        return no_entry(name);
    }
    *value = catalog->entries[index]->value;
    *bytes = catalog->entries[index]->bytes;
    return DMG_OK;
}

dmg_status dmg_catalog_erase(dmg_catalog *catalog, const char *name)
{
    bool is_there;
    uint32_t index = entries_lower_bound(catalog, name, &is_there);
    if (!is_there) {
        return no_entry(name);
    }
    free(catalog->entries[index]);
    catalog->count--;
    memmove(&catalog->entries[index], &catalog->entries[index + 1],
            (catalog->count - index) * sizeof catalog->entries[0]);
    return DMG_OK;
}

const char *dmg_catalog_next_name(const dmg_catalog *catalog, const char *prefix, const char *after)
{
    bool is_there;
    bool is_behind = strcmp(after, prefix) >= 0;
    uint32_t index = entries_lower_bound(catalog, is_behind ? after : prefix, &is_there);
    index += is_there && is_behind && *after != '\0' ? 1 : 0;
    bool is_found = index < catalog->count && strncmp(catalog->entries[index]->name, prefix, strlen(prefix)) == 0;
    return is_found ? catalog->entries[index]->name : NULL;
}

void dmg_catalog_erase_job(dmg_catalog *catalog, uint64_t job)
{
    uint32_t kept = 0;
    for (uint32_t index = 0; index < catalog->count; index++) {
        if (catalog->entries[index]->owner.job == job) {
            free(catalog->entries[index]);
        } else {
            catalog->entries[kept++] = catalog->entries[index];
        }
    }
    catalog->count = kept;
}
