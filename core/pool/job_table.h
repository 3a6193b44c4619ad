/**
 * @file job_table.h
 * Jobs as node 0 keeps them: members with ranks, who meet.
 *
 * A job goes through three stages. *Joining*: it waits for every rank to join. *Readying*: all have joined and know the
 * job's id, and attach to it at every memory node (job_references.h). *Running*: barriers. In each stage the members
 * meet: each comes with a request that is kept, and when the last one has come, all are answered.
 *
 * A job fails once and for all: when a member is gone before it left, aborts, or left while others wait for it. Then
 * everybody who waits is answered with the failure, and so is everybody who comes later. A job is forgotten when every
 * rank has left or is gone. One that failed while it was joining also waits for the ranks that never came, so that they
 * hear of the failure instead of waiting for others who gave up; it is forgotten earlier when its place is needed. So
 * the names of jobs should be fresh ones.
 *
 * A job can have a *parent*, a job of the same ranks. When the parent fails, so does the job; when a member leaves the
 * parent, the job fails that still waits for this member to join.
 *
 * A job has a secret, of which the table keeps a hash, and an owner: those that the first member came with. Nobody else
 * joins it.
 *
 * Used by the serving thread alone. The table never answers from inside an answer: states are changed first, then
 * tokens are answered.
 */
#ifndef DMG_CORE_POOL_JOB_TABLE_H
#define DMG_CORE_POOL_JOB_TABLE_H

#include "core/pool/pool.h"

/** Jobs that a pool runs at once. */
#define DMG_JOBS_MAX 256
/** Jobs of a pool that one client is in at once. */
#define DMG_JOBS_OF_A_CLIENT_MAX 32
/** Compute nodes of one job. */
#define DMG_JOB_SIZE_MAX 1024

typedef struct dmg_job_table dmg_job_table;

/** Answer a request that was kept. With a status other than DMG_OK the payload is a sentence. */
typedef void (*dmg_job_answer)(void *context, uint64_t reply_token, dmg_status status, const void *payload,
                               size_t bytes);

dmg_status dmg_job_table_create(dmg_job_answer answer, void *context, dmg_job_table **table);
/** Answers nobody. NULL is allowed. */
void dmg_job_table_destroy(dmg_job_table *table);
/** Jobs in the table, those that failed and wait for absent ranks included. */
uint32_t dmg_job_table_count(const dmg_job_table *table);

/*
 * The requests of members. With DMG_OK, join, ready and barrier keep the token: it has been answered or will be. With
 * an error the caller answers it with the error context. Abort and leave never keep it.
 */

typedef struct dmg_job_entrant {
    uint64_t client;
    uint64_t reply_token;
    const char *name; /**< of the job; it has been checked: terminated, not empty */
    uint32_t rank;
    uint32_t size;
    /** 0, or a job in which this member is with the same rank and size: when it fails, so does this one, which has its
     * secret and owner. */
    uint64_t parent;
    uint8_t secret_hash[DMG_SECRET_BYTES];
    dmg_pool_owner owner;
} dmg_job_entrant;

/** DMG_ERR_DENIED for another secret than the job's; DMG_ERR_LIMIT when the pool, or this client, has too many jobs. */
dmg_status dmg_job_table_join(dmg_job_table *table, const dmg_job_entrant *entrant);
dmg_status dmg_job_table_ready(dmg_job_table *table, uint64_t client, uint64_t reply_token, uint64_t job,
                               uint32_t rank);
/** `reduction` NULL: this rank adds nothing to it. It is copied. */
dmg_status dmg_job_table_barrier(dmg_job_table *table, uint64_t client, uint64_t reply_token, uint64_t job,
                                 uint32_t rank, uint64_t epoch, const dmg_reduction *reduction);
/** `first` gets why the job failed, which is what an earlier member said, if there was one. */
dmg_status dmg_job_table_abort(dmg_job_table *table, uint64_t client, uint64_t job, uint32_t rank, dmg_status status,
                               const char *sentence, dmg_job_failure *first);
dmg_status dmg_job_table_leave(dmg_job_table *table, uint64_t client, uint64_t job, uint32_t rank);

/**
 * Who a job is, for those who know its secret. Both are the table's, valid until it changes.
 * @return DMG_ERR_NOT_FOUND, also when it is over; DMG_ERR_DENIED for another secret
 */
dmg_status dmg_job_table_introduce(const dmg_job_table *table, uint64_t job,
                                   const uint8_t secret_hash[DMG_SECRET_BYTES], const char **name,
                                   const dmg_pool_owner **owner);

/** A client closed (DMG_OK) or died. */
void dmg_job_table_client_gone(dmg_job_table *table, uint64_t client, dmg_status why);

#endif
