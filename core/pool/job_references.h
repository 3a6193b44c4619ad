/**
 * @file job_references.h
 * Which clients are in which jobs, as one memory node sees it.
 *
 * A job's extents may be freed when the last of its members has left or died. Every memory node finds that out by
 * itself: each member attaches to the job at every node before any of them gets to work (job_client.c), detaches when
 * it leaves, and is detached when its client is gone. When a job has no attachment left, it is released.
 *
 * A client may be lost: gone, while its process may still write to what it knew of. Its attachments then no longer keep
 * the job, but stay as a debt of it: as long as a job has lost members, its memory must not be given to others.
 *
 * A job that has anything here, attachments or what it keeps, has a *reference*, with the name of who is behind it.
 *
 * Used by the serving thread alone.
 */
#ifndef DMG_CORE_POOL_JOB_REFERENCES_H
#define DMG_CORE_POOL_JOB_REFERENCES_H

#include "core/pool/pool.h"

/** Attachments that a memory node keeps at once. */
#define DMG_JOB_REFERENCES_ATTACHMENTS_MAX 16384
/** Jobs whose extents a memory node keeps at once. */
#define DMG_JOB_REFERENCES_KEPT_MAX 4096

typedef struct dmg_job_references dmg_job_references;

typedef struct dmg_job_reference {
    uint64_t job; /**< not 0 */
    dmg_pool_owner owner;
    char name[DMG_JOB_NAME_BYTES]; /**< of the job; terminated */
    uint32_t attached;             /**< attachments */
    uint32_t lost;                 /**< attachments of lost clients */
    bool is_kept;
} dmg_job_reference;

/** A job has no attachment left: free what it has here, its extents only when they are not kept. */
typedef void (*dmg_job_references_release)(void *context, uint64_t job, bool is_kept);
/** A job has no lost member any more; with the context of the release. */
typedef void (*dmg_job_references_settle)(void *context, uint64_t job);

dmg_status dmg_job_references_create(dmg_job_references_release release, void *context,
                                     dmg_job_references **references);
/** NULL is allowed. Releases nothing. */
void dmg_job_references_destroy(dmg_job_references *references);
/**
 * Attach a client to a job, whose name and owner are taken from whoever attaches first. A client that has several ranks
 * of a job attaches as often. DMG_ERR_ARGUMENT for job 0, DMG_ERR_LIMIT, DMG_ERR_MEMORY.
 */
dmg_status dmg_job_references_attach(dmg_job_references *references, uint64_t job, const char *name,
                                     const dmg_pool_owner *owner, uint64_t client);
bool dmg_job_references_is_attached(const dmg_job_references *references, uint64_t job, uint64_t client);
/** Undo one attachment. DMG_ERR_NOT_FOUND. */
dmg_status dmg_job_references_detach(dmg_job_references *references, uint64_t job, uint64_t client);
/** Undo all attachments of a client; when it is lost, its jobs have a lost member from then on. */
void dmg_job_references_client_gone(dmg_job_references *references, uint64_t client, bool is_lost);
/** A lost client has ended. `settle` is called for each job that has no lost member any more. */
void dmg_job_references_client_ended(dmg_job_references *references, uint64_t client, dmg_job_references_settle settle);
/** Whether the job has lost members. */
bool dmg_job_references_has_lost(const dmg_job_references *references, uint64_t job);
/** Whether others than this client are attached to the job, or lost members of it. */
bool dmg_job_references_has_others(const dmg_job_references *references, uint64_t job, uint64_t client);
/** Go through the lost members of jobs: `*position` is 0 at first. False at the end. */
bool dmg_job_references_next_lost(const dmg_job_references *references, uint32_t *position, uint64_t *job,
                                  uint64_t *client);

/** The job's reference, or NULL; valid until the references change. */
const dmg_job_reference *dmg_job_references_find(const dmg_job_references *references, uint64_t job);
/** The reference with the smallest job above `after`, or NULL. */
const dmg_job_reference *dmg_job_references_next(const dmg_job_references *references, uint64_t after);
/** Go through the jobs that a client is attached to: `*position` is 0 at first. NULL at the end. */
const dmg_job_reference *dmg_job_references_next_of_client(const dmg_job_references *references, uint64_t client,
                                                           uint32_t *position);
/** Go through the clients that are attached to a job, each once: `*position` is 0 at first. False at the end. */
bool dmg_job_references_next_client(const dmg_job_references *references, uint64_t job, uint32_t *position,
                                    uint64_t *client);

/** Remember that the extents of a job, in which somebody is, stay behind when it ends. Doing it again changes nothing.
 * DMG_ERR_LIMIT, DMG_ERR_NOT_FOUND. */
dmg_status dmg_job_references_keep(dmg_job_references *references, uint64_t job);
/** Forget that, for the caller to free them. DMG_ERR_NOT_FOUND when they are not kept, DMG_ERR_EXISTS while anybody is
 * attached. */
dmg_status dmg_job_references_drop(dmg_job_references *references, uint64_t job);
/** The smallest job above `after` that is kept and has no attachment; 0: none. */
uint64_t dmg_job_references_next_kept(const dmg_job_references *references, uint64_t after);

#endif
