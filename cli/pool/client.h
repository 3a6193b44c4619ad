/**
 * @file client.h
 * The program as a client of a long-lived pool: connected to all its nodes, and in a job of its own that ends with the
 * connection, however that ends. Catalog entries that must not outlive the program belong to this job.
 */
#ifndef DMG_CLI_POOL_CLIENT_H
#define DMG_CLI_POOL_CLIENT_H

#include "cli/pool/file.h"
#include "cli/pool/job_pass.h"
#include "cli/pool/search.h"
#include "core/pool/pool.h"

/** Names of jobs that the program makes, with the terminating zero. */
#define DMG_POOL_JOB_NAME_BYTES 48

typedef struct dmg_pool_client {
    dmg_pool_file file;
    uint64_t peer_timeout_ns;
    bool shows_identity; /**< what it puts there, and keeps, is this user's, and it may remove that again */
    dmg_client *client;
    dmg_channel *channel; /**< used by one thread at a time */
    dmg_job hold;
} dmg_pool_client;

/** "WHAT/" and 16 random digits: a name that no job of a pool had before. */
dmg_status dmg_pool_job_name(const char *what, char name[DMG_POOL_JOB_NAME_BYTES]);

/** DMG_ERR_PEER names the first node of the pool whose process is dead, and says how it died where that is known. */
dmg_status dmg_pool_check_alive(const dmg_pool_file *file);

/**
 * Before compute nodes are started: whether the pool lets one job have so many, with so many channels each, and its
 * memory nodes have descriptors left for them. DMG_ERR_LIMIT says what it lets, or how many are left. Blocking.
 */
dmg_status dmg_pool_client_check_limits(const dmg_pool_client *client, uint32_t compute_nodes, uint32_t channels_each);
/** Become the pool's admin, by the secret that lies beside its file. Blocking. */
dmg_status dmg_pool_client_administer(const dmg_pool_client *client);
/** After something failed, with the thread's error: a lost node that has died is told of as by dmg_pool_check_alive. */
dmg_status dmg_pool_client_explain(const dmg_pool_file *file, dmg_status status);

/** Connect to the pool that client->file describes. DMG_ERR_PEER when a node is dead or silent. Blocking. */
dmg_status dmg_pool_client_open(dmg_pool_client *client);
/**
 * Disconnect; when all went well so far (`status`), leave the job first, so that what belonged to it is gone when this
 * returns. Returns the first error, whose sentence stays. Does nothing on a client that is not open.
 */
dmg_status dmg_pool_client_close(dmg_pool_client *client, dmg_status status);

#endif
