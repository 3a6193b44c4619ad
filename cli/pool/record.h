/**
 * @file record.h
 * What a pool's own processes know of it: a file in memory, without a name anywhere, that its memory nodes and its
 * keeper have open as DMG_CHILD_FILE. So a pool can be found by its processes when its files have gone with their
 * folder, and what becomes of a node is known as long as another one lives.
 *
 * Lines of JSON: the pool, as in its file; the folder where that lies; then one line for each memory node that has
 * ended. Such lines are also in NAME.ends beside the pool's file, from the first end on.
 */
#ifndef DMG_CLI_POOL_RECORD_H
#define DMG_CLI_POOL_RECORD_H

#include "cli/pool/file.h"

#include <limits.h>

#define DMG_POOL_WHY_BYTES 1024

/** How a memory node ended. */
typedef struct dmg_pool_end {
    dmg_process process;
    uint64_t at_s; /**< CLOCK_REALTIME */
    char why[DMG_POOL_WHY_BYTES];
} dmg_pool_end;

/** A pool and the folder of its files. */
typedef struct dmg_pool_record {
    dmg_pool_file pool;
    char folder[PATH_MAX];
} dmg_pool_record;

/** An empty record, before the nodes are started. DMG_ERR_IO. */
dmg_status dmg_pool_record_create(const char *name, int *record);
/** Fill it in, when the nodes' addresses are known; the folder is that of this program. DMG_ERR_IO. */
dmg_status dmg_pool_record_write(int record, const dmg_pool_file *pool);
/** Read and check, like a pool's file. DMG_ERR_CORRUPT, DMG_ERR_IO. */
dmg_status dmg_pool_record_read(int record, dmg_pool_record *result);

/** Put down an end, as one line at the end of a record or of a file of ends. What cannot be written is lost. */
void dmg_pool_end_append(int file, const dmg_pool_end *end);
/** The last that the record or file says about the end of this process; false when it says nothing. */
bool dmg_pool_end_read(int file, const dmg_process *process, dmg_pool_end *end);

#endif
