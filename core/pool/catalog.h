/**
 * @file catalog.h
 * The catalog as node 0 keeps it: names to small values, each tied to a job or to nobody, and each somebody's.
 *
 * Used by the serving thread alone. Names have been checked by the caller: not empty, terminated within
 * DMG_CATALOG_NAME_BYTES.
 */
#ifndef DMG_CORE_POOL_CATALOG_H
#define DMG_CORE_POOL_CATALOG_H

#include "core/pool/rights.h"

/** Names that a catalog keeps at once. */
#define DMG_CATALOG_ENTRIES_MAX 4096

typedef struct dmg_catalog dmg_catalog;

dmg_status dmg_catalog_create(dmg_catalog **catalog);
/** NULL is allowed. */
void dmg_catalog_destroy(dmg_catalog *catalog);
/** Whose an entry is. */
typedef struct dmg_catalog_owner {
    uint64_t job;    /**< that it is tied to, or 0 */
    uint64_t client; /**< that put it */
    dmg_pool_owner owner;
} dmg_catalog_owner;

/** Copy owner, name and value. DMG_ERR_EXISTS, DMG_ERR_LIMIT when the catalog is full, DMG_ERR_MEMORY. */
dmg_status dmg_catalog_insert(dmg_catalog *catalog, const dmg_catalog_owner *owner, const char *name, const void *value,
                              size_t bytes);
/** How many entries this client put, or others of the same identity. */
uint32_t dmg_catalog_count_of(const dmg_catalog *catalog, const dmg_catalog_owner *owner);
/** `*owner` is the catalog's, valid until the entry is erased. DMG_ERR_NOT_FOUND. */
dmg_status dmg_catalog_owner_of(const dmg_catalog *catalog, const char *name, const dmg_catalog_owner **owner);
/** `*value` is owned by the catalog, valid until the entry is erased. DMG_ERR_NOT_FOUND. */
dmg_status dmg_catalog_find(const dmg_catalog *catalog, const char *name, const void **value, size_t *bytes);
/** DMG_ERR_NOT_FOUND. */
dmg_status dmg_catalog_erase(dmg_catalog *catalog, const char *name);
/** The first name behind `after` that begins with `prefix`, owned by the catalog; NULL when there is none. */
const char *dmg_catalog_next_name(const dmg_catalog *catalog, const char *prefix, const char *after);
/** Erase all entries of a job (not 0). */
void dmg_catalog_erase_job(dmg_catalog *catalog, uint64_t job);

#endif
