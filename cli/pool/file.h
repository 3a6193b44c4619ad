/**
 * @file file.h
 * What is written down about a long-lived pool, for later calls of the program: its nodes' addresses and processes, and
 * its secret.
 *
 * One file a pool, NAME.pool, beside its nodes' output, NAME.log, in a folder of the user's own:
 * $XDG_RUNTIME_DIR/dmgraph, or /tmp/dmgraph-UID. Folder and files must belong to the user and be closed to everybody
 * else, or they are not believed: the file says which processes to end, and where data goes.
 */
#ifndef DMG_CLI_POOL_FILE_H
#define DMG_CLI_POOL_FILE_H

#include "core/base/limits.h"
#include "core/base/process.h"
#include "core/pool/rights.h"
#include "transport/transport.h"

#include <jansson.h>

#define DMG_POOL_NAME_BYTES      33
#define DMG_POOL_FILE_BYTES_MAX  65536
#define DMG_TRANSPORT_TEXT_BYTES 512

typedef struct dmg_pool_node {
    dmg_process process;
    uint64_t segment_bytes; /**< as it was asked for */
    char address[DMG_ADDRESS_STRING_BYTES];
} dmg_pool_node;

typedef struct dmg_pool_file {
    char name[DMG_POOL_NAME_BYTES];
    char transport[DMG_TRANSPORT_TEXT_BYTES];
    uint64_t created_s; /**< CLOCK_REALTIME */
    uint64_t peer_timeout_ns;
    uint8_t token[DMG_TOKEN_BYTES];
    uint32_t node_count;
    dmg_pool_node nodes[DMG_MEMORY_NODES_MAX];
} dmg_pool_file;

/** Letters, digits, '.', '_' and '-', not beginning with a dot; DMG_ERR_ARGUMENT. */
dmg_status dmg_pool_name_check(const char *name);

/** Open the folder, making it when `may_make`. DMG_ERR_NOT_FOUND, DMG_ERR_IO; DMG_ERR_ARGUMENT when it is open to
 * others, or another's. */
dmg_status dmg_pool_folder_open(bool may_make, int *folder);
/** Where that is, and one that was named elsewhere, to be opened under the same conditions. */
void dmg_pool_folder_path(char *path, size_t capacity);
dmg_status dmg_pool_folder_open_path(const char *path, int *folder);
/** "FOLDER/NAME.EXTENSION", for people; NULL: no extension. */
void dmg_pool_path(const char *name, const char *extension, char *path, size_t capacity);

/** Whether a file of the folder is a pool's, and then its name. */
bool dmg_pool_file_is(const char *file, char name[DMG_POOL_NAME_BYTES]);
/** Write a pool's file: it appears whole. DMG_ERR_EXISTS when there is one of that name. */
dmg_status dmg_pool_file_write(int folder, const dmg_pool_file *pool);
/** Read and check. DMG_ERR_NOT_FOUND; DMG_ERR_ARGUMENT for a file that is not safe; DMG_ERR_CORRUPT for contents that
 * make no sense. */
dmg_status dmg_pool_file_read(int folder, const char *name, dmg_pool_file *pool);
/** The same from the folder of this user; what is not there may be found otherwise (pool_search.h). */
dmg_status dmg_pool_file_find(const char *name, dmg_pool_file *pool);
/**
 * The pool's admin secret, in a file of its own, NAME.admin: who is given the pool's file may work on the pool, and has
 * no right to what others have there. Written after the pool's file, with which the name is taken: what is left of
 * another pool of that name is replaced. DMG_ERR_IO.
 */
dmg_status dmg_pool_admin_write(int folder, const char *name, const uint8_t admin[DMG_SECRET_BYTES]);
/** From the folder of this user. DMG_ERR_NOT_FOUND; DMG_ERR_ARGUMENT for a file that is not safe, DMG_ERR_CORRUPT. */
dmg_status dmg_pool_admin_find(const char *name, uint8_t admin[DMG_SECRET_BYTES]);

/** Remove a pool's file, its admin secret and its log. */
dmg_status dmg_pool_file_remove(int folder, const char *name);

/** Open a pool's log, to go on writing. DMG_ERR_IO. */
dmg_status dmg_pool_log_open(int folder, const char *name, int *log);
/** Remove it, when there is one. */
void dmg_pool_log_remove(int folder, const char *name);

/** Open NAME.ends, how the pool's nodes ended (pool_record.h): to add to it when `may_make`, else to read. DMG_ERR_IO.
 */
dmg_status dmg_pool_ends_open(int folder, const char *name, bool may_make, int *ends);
/** Remove it, when there is one. */
void dmg_pool_ends_remove(int folder, const char *name);

/** How many of its nodes' processes are alive. */
uint32_t dmg_pool_alive_count(const dmg_pool_file *pool);

/** The contents, which are not trusted. DMG_ERR_CORRUPT says what is wrong. */
dmg_status dmg_pool_file_from_json(json_t *object, dmg_pool_file *pool);
json_t *dmg_pool_file_json(const dmg_pool_file *pool);

#endif
