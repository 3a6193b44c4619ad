/**
 * @file tenancy.h
 * Which clients are in which jobs, as one memory node sees it.
 *
 * A job's extents may be freed when the last of its members has left or died. Every memory node finds that out by
 * itself: each member attaches to the job at every node before any of them gets to work (job_client.c), detaches when
 * it leaves, and is detached when its client is gone. When a job has no attachment left, it is released.
 *
 * A client may be lost: gone, while its process may still write to what it knew of. Its attachments then no longer keep
 * the job, but stay as a debt of it: as long as a job has lost members, its memory must not be given to others.
 *
 * Used by the serving thread alone.
 */
#ifndef DMG_CORE_POOL_TENANCY_H
#define DMG_CORE_POOL_TENANCY_H

#include "dmgraph/status.h"

#include <stdbool.h>
#include <stdint.h>

/** Attachments that a memory node keeps at once. */
#define DMG_TENANCY_ATTACHMENTS_MAX 16384
/** Jobs whose extents a memory node keeps at once. */
#define DMG_TENANCY_KEPT_MAX 4096

typedef struct dmg_tenancy dmg_tenancy;

/** A job has no attachment left: free what it has here, its extents only when they are not kept. */
typedef void (*dmg_tenancy_release)(void *context, uint64_t job, bool is_kept);
/** A job has no lost member any more; with the context of the release. */
typedef void (*dmg_tenancy_settle)(void *context, uint64_t job);

dmg_status dmg_tenancy_create(dmg_tenancy_release release, void *context, dmg_tenancy **tenancy);
/** NULL is allowed. Releases nothing. */
void dmg_tenancy_destroy(dmg_tenancy *tenancy);
/** A client that has several ranks of a job attaches as often. DMG_ERR_ARGUMENT for job 0, DMG_ERR_LIMIT. */
dmg_status dmg_tenancy_attach(dmg_tenancy *tenancy, uint64_t job, uint64_t client);
bool dmg_tenancy_is_attached(const dmg_tenancy *tenancy, uint64_t job, uint64_t client);
/** Undo one attachment. DMG_ERR_NOT_FOUND. */
dmg_status dmg_tenancy_detach(dmg_tenancy *tenancy, uint64_t job, uint64_t client);
/** Undo all attachments of a client; when it is lost, its jobs have a lost member from then on. */
void dmg_tenancy_client_gone(dmg_tenancy *tenancy, uint64_t client, bool is_lost);
/** A lost client has ended. `settle` is called for each job that has no lost member any more. */
void dmg_tenancy_client_ended(dmg_tenancy *tenancy, uint64_t client, dmg_tenancy_settle settle);
/** Whether the job has lost members. */
bool dmg_tenancy_has_lost(const dmg_tenancy *tenancy, uint64_t job);
/** Whether others than this client are attached to the job, or lost members of it. */
bool dmg_tenancy_has_others(const dmg_tenancy *tenancy, uint64_t job, uint64_t client);
/** Go through the lost members of jobs: `*position` is 0 at first. False at the end. */
bool dmg_tenancy_next_lost(const dmg_tenancy *tenancy, uint32_t *position, uint64_t *job, uint64_t *client);

/** Remember that the extents of a job stay behind when it ends. Doing it again changes nothing. DMG_ERR_LIMIT,
 * DMG_ERR_MEMORY. */
dmg_status dmg_tenancy_keep(dmg_tenancy *tenancy, uint64_t job);
/** Forget that, for the caller to free them. DMG_ERR_NOT_FOUND when they are not kept, DMG_ERR_EXISTS while anybody is
 * attached. */
dmg_status dmg_tenancy_drop(dmg_tenancy *tenancy, uint64_t job);
/** The smallest job above `after` that is kept and has no attachment; 0: none. */
uint64_t dmg_tenancy_next_kept(const dmg_tenancy *tenancy, uint64_t after);

#endif
