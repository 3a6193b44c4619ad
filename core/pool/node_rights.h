/**
 * @file node_rights.h
 * What a memory node lets its clients do: whom it takes into a job, whose things they may touch, and how much of it.
 *
 * What belongs to a job its members do with as they like; so do clients that are in another job of the same identity,
 * and those who have shown the pool's admin secret. Everybody else is DMG_ERR_DENIED, with a sentence that names the
 * owner. Reads and writes that need no program of the memory node are not checked here: whoever knows a pool's token
 * reaches all of its memory.
 *
 * Used by the serving thread alone.
 */
#ifndef DMG_CORE_POOL_NODE_RIGHTS_H
#define DMG_CORE_POOL_NODE_RIGHTS_H

#include "core/pool/catalog.h"
#include "core/pool/job_references.h"
#include "core/pool/ticket.h"

/** Clients that are admins at once. */
#define DMG_NODE_ADMINS_MAX 64
/** Of the extents that a memory node keeps, and of the names in the catalog, one job, or one identity, has no more than
 * this part, so that the others find room. */
#define DMG_NODE_SHARE_OF_ONE 4
/** Clients that may be attached to a job without being compute nodes of it: its launcher, for example. */
#define DMG_NODE_VISITORS_MAX 4

typedef struct dmg_node_rights {
    dmg_server *server;
    dmg_job_references *references;
    uint8_t admin[DMG_SECRET_BYTES];
    dmg_ticket_key key;
    dmg_pool_limits limits;
    dmg_pool_refusals refusals;
    uint32_t admin_count;
    uint64_t admins[DMG_NODE_ADMINS_MAX];
} dmg_node_rights;

/** `server` and `references` stay the caller's, and outlive the rights. */
void dmg_node_rights_start(dmg_node_rights *rights, dmg_server *server, dmg_job_references *references,
                           const uint8_t admin[DMG_SECRET_BYTES], const dmg_pool_limits *limits);

/** Take a client with a ticket into a job. DMG_ERR_DENIED, DMG_ERR_LIMIT, DMG_ERR_MEMORY. */
dmg_status dmg_node_rights_attach(dmg_node_rights *rights, const dmg_job_ticket *ticket, uint64_t client);
/** Make a client an admin, by what it shows. DMG_ERR_DENIED, DMG_ERR_LIMIT. */
dmg_status dmg_node_rights_administer(dmg_node_rights *rights, const uint8_t shown[DMG_SECRET_BYTES], uint64_t client);
/** A client is gone. */
void dmg_node_rights_forget(dmg_node_rights *rights, uint64_t client);

/** Whether a client may do with what a job has, or has left behind, as it likes. */
dmg_status dmg_node_rights_check_job(dmg_node_rights *rights, uint64_t job, uint64_t client);
/** The same for an entry of the catalog. */
dmg_status dmg_node_rights_check_entry(dmg_node_rights *rights, const dmg_catalog_owner *owner, uint64_t client);
/** Who is behind a client, of all its jobs; all zero: nobody. */
dmg_pool_owner dmg_node_rights_owner_of(const dmg_node_rights *rights, uint64_t client);

/* What a job may have; DMG_ERR_LIMIT is counted. */

dmg_status dmg_node_rights_check_size(dmg_node_rights *rights, const char *job_name, uint32_t size);
/** `held_bytes` in so many extents is what the job has. */
dmg_status dmg_node_rights_check_memory(dmg_node_rights *rights, uint64_t held_bytes, uint32_t extents,
                                        uint64_t more_bytes);
/** After a client has opened one more channel. */
dmg_status dmg_node_rights_check_channels(dmg_node_rights *rights, uint64_t client);
/** Channels of all clients that are attached to a job. */
uint32_t dmg_node_rights_channels(const dmg_node_rights *rights, uint64_t job);

#endif
