/**
 * @file search.h
 * Pools that are not in this program's folder of pools: their nodes live, and know what the pool's file said
 * (pool_record.h). The folder may have gone with the user's last session, or be another one, for a job that has no
 * XDG_RUNTIME_DIR.
 *
 * A process counts when it is this user's, was started as a memory node is, and is itself, by its id and the time of
 * its start, one of the nodes that its record names. From the usual folders, $XDG_RUNTIME_DIR being /run/user/UID or
 * not set, all of the user's pools are found; from any other, which somebody has chosen to keep things apart, those
 * alone that were in it.
 */
#ifndef DMG_CLI_POOL_SEARCH_H
#define DMG_CLI_POOL_SEARCH_H

#include "cli/pool/record.h"

typedef struct dmg_pool_found {
    dmg_pool_record record;
    bool has_files; /**< the pool's files are where the record says */
} dmg_pool_found;

/** All such pools, in any order; the array is the caller's to free. DMG_ERR_IO when /proc cannot be read. */
dmg_status dmg_pool_search(dmg_pool_found **pools, uint32_t *count);

/** A pool by its name: from this user's folder of pools, or by its processes. DMG_ERR_NOT_FOUND; DMG_ERR_ARGUMENT when
 * there are several such; else as dmg_pool_file_read. */
dmg_status dmg_pool_find(const char *name, dmg_pool_found *pool);

/** The same, for who works on it wherever its files are. */
dmg_status dmg_pool_find_file(const char *name, dmg_pool_file *file);

/**
 * How a node of this pool ended, from the pool's files or from what its other nodes know. False when the node lives,
 * and when nobody has put it down: its keeper was killed, say. Waits a moment for the keeper where the node has only
 * just ended.
 */
bool dmg_pool_end_find(const dmg_pool_file *pool, uint32_t node, dmg_pool_end *end);

#endif
