/**
 * @file pool.h
 * A compute node's view of a pool: memory from any node, the catalog of named objects, jobs.
 *
 * All calls use the given channel, so they are as thread-safe as it is: one thread at a time.
 */
#ifndef DMG_CORE_POOL_POOL_H
#define DMG_CORE_POOL_POOL_H

#include "core/pool/rights.h"

/* ---- memory ---- */

/**
 * Allocate an extent on a node: zeroed, aligned to 4,096 bytes. Compute nodes take large extents and cut them up
 * themselves. It belongs to `job`, which this client is in or attached to, and is freed at its end at the latest.
 * DMG_ERR_MEMORY says what the node has left, DMG_ERR_LIMIT what the job may have.
 */
dmg_status dmg_pool_allocate(dmg_channel *channel, uint16_t node, uint64_t job, uint64_t bytes, dmg_address *address);
/** DMG_ERR_DENIED for what belongs neither to a job of this client nor to one of the same identity. */
dmg_status dmg_pool_free(dmg_channel *channel, dmg_address address);
/**
 * Keep the extents of a job beyond its end, on all nodes: from then on they belong to the identity behind the job,
 * under the job's id. This client must be in the job or attached to it. `*bytes` (may be NULL) is how many they are.
 * Entries of the catalog are not kept. When it fails half-way, some nodes keep them: dmg_pool_kept finds such jobs, and
 * dmg_pool_drop frees what they left.
 */
dmg_status dmg_pool_keep(dmg_channel *channel, uint64_t job, uint64_t *bytes);
/**
 * Free the extents that a job has left behind, on all nodes. A node that keeps none of it is passed over.
 * DMG_ERR_EXISTS while anybody is in the job; DMG_ERR_DENIED, naming the owner, unless this client is in a job of the
 * same identity, or the admin. `*bytes` (may be NULL) is what was freed.
 */
dmg_status dmg_pool_drop(dmg_channel *channel, uint64_t job, uint64_t *bytes);
/** The first job behind `after` whose extents a node keeps, and that nobody is in any more; 0: there is none. */
dmg_status dmg_pool_kept(dmg_channel *channel, uint16_t node, uint64_t after, uint64_t *job);
/** Bytes allocated on a node, the peak, and the segment's size. */
dmg_status dmg_pool_usage(dmg_channel *channel, uint16_t node, uint64_t *allocated, uint64_t *peak, uint64_t *total);

#define DMG_POOL_QUARANTINE_PIDS 16
/**
 * What of a node's memory waits: it was freed, and is given to nobody while processes may still write to it that were
 * given up (stopped ones, for example). Plain data.
 */
typedef struct dmg_pool_quarantined {
    uint64_t bytes;   /**< a part of the allocated ones */
    uint64_t clients; /**< that it waits for; 0 with bytes: for the members of a job that is ending */
    uint64_t pids[DMG_POOL_QUARANTINE_PIDS]; /**< of the first of them, on the node's host; 0: not known */
} dmg_pool_quarantined;

dmg_status dmg_pool_quarantine(dmg_channel *channel, uint16_t node, dmg_pool_quarantined *quarantined);

/* ---- rights ---- */

/** Names of jobs, with the terminating zero. */
#define DMG_JOB_NAME_BYTES 64

/** What a job has on a node. It travels as it is. */
typedef struct dmg_pool_holding {
    uint64_t job;                  /**< 0: there is no further one */
    char name[DMG_JOB_NAME_BYTES]; /**< of the job */
    dmg_pool_owner owner;          /**< with the identity as the pool keeps it */
    uint64_t bytes;                /**< in extents, without those in quarantine */
    uint64_t quarantined_bytes;
    uint32_t clients;  /**< clients attached to the job */
    uint32_t channels; /**< channels of these clients */
    uint32_t lost;     /**< memberships of clients that were given up and have not ended */
    uint32_t is_kept;  /**< 0 or 1 */
} dmg_pool_holding;

/** The first job behind `after` that has anything on the node. */
dmg_status dmg_pool_holding_next(dmg_channel *channel, uint16_t node, uint64_t after, dmg_pool_holding *holding);
/**
 * What a job may have of a node, what was refused there so far, and how many descriptors the node can open beside those
 * that it has now (UINT64_MAX: any number); each may be NULL.
 */
dmg_status dmg_pool_ask_limits(dmg_channel *channel, uint16_t node, dmg_pool_limits *limits,
                               dmg_pool_refusals *refusals, uint64_t *descriptors_left);
/** From now on, on all nodes, this client may do what otherwise only owners may. DMG_ERR_DENIED for a wrong secret. */
dmg_status dmg_pool_administer(dmg_channel *channel, const uint8_t admin[DMG_SECRET_BYTES]);

/**
 * What a memory node has done since it began, for all jobs: differences of two say what happened in between. Plain
 * data.
 */
typedef struct dmg_node_activity {
    uint64_t serve_cpu_ns;   /**< CPU time of the thread that serves, without the next */
    uint64_t offload_cpu_ns; /**< CPU time of applying updates for compute nodes (ValRD; DMG, section 4.3.1) */
    uint64_t process_cpu_ns; /**< CPU time of all threads of the node's process, with a transport's own */
    uint64_t messages;       /**< handled, with those of updates */
    uint64_t update_messages;
    uint64_t updates; /**< updates that came in update_messages */
    uint64_t applied; /**< updates that changed an attribute */
} dmg_node_activity;

/** What a node has done so far; the message that asks is counted too. */
dmg_status dmg_pool_activity(dmg_channel *channel, uint16_t node, dmg_node_activity *activity);
/** Each count of `later` less that of `earlier`. */
void dmg_node_activity_subtract(dmg_node_activity *later, const dmg_node_activity *earlier);

/* ---- catalog: names to small descriptors, kept by node 0 ---- */

#define DMG_CATALOG_NAME_BYTES 64
/** Larger descriptors are written to pool memory by their owner, and pointed to. */
#define DMG_CATALOG_VALUE_BYTES 4096

/**
 * DMG_ERR_EXISTS when the name is taken. `job` not 0 ties the entry to the job, which this client must be in; else it
 * stays, and belongs to the identity behind this client. Names have 1 to 63 bytes.
 */
dmg_status dmg_catalog_put(dmg_channel *channel, uint64_t job, const char *name, const void *value, size_t bytes);
/**
 * `*bytes` is the capacity going in and the size coming out. DMG_ERR_NOT_FOUND; DMG_ERR_LIMIT when it does not fit,
 * with its size in `*bytes`.
 */
dmg_status dmg_catalog_get(dmg_channel *channel, const char *name, void *value, size_t *bytes);
/** DMG_ERR_NOT_FOUND; DMG_ERR_DENIED for what belongs to another job and identity than this client's. */
dmg_status dmg_catalog_remove(dmg_channel *channel, const char *name);
/**
 * Remove an entry unless another one's name begins with `prefix`: that is DMG_ERR_EXISTS. In one step, so that who puts
 * such an entry first and looks for `name` then is never wrong.
 */
dmg_status dmg_catalog_remove_unused(dmg_channel *channel, const char *name, const char *prefix);
/** Replace `name` by the next one, in the order of bytes, that begins with `prefix`; "" goes in at the start, and comes
 * out at the end. */
dmg_status dmg_catalog_next(dmg_channel *channel, const char *prefix, char name[DMG_CATALOG_NAME_BYTES]);

/* ---- jobs: ranks and barriers, kept by node 0 ---- */

/** What a barrier reduces over all ranks. Unused ones stay 0. */
#define DMG_REDUCE_SUMS  16
#define DMG_REDUCE_REALS 8
typedef struct dmg_reduction {
    uint64_t sums[DMG_REDUCE_SUMS]; /**< added */
    double reals[DMG_REDUCE_REALS]; /**< added in the order of ranks, so that the result does not depend on timing */
    uint64_t least[2];              /**< minimum */
    uint64_t most[2];               /**< maximum */
} dmg_reduction;

typedef struct dmg_job {
    uint64_t id; /**< not 0 */
    uint32_t rank;
    uint32_t size;
    uint64_t barriers; /**< passed so far; both sides check it */
    uint8_t secret[DMG_SECRET_BYTES];
} dmg_job;

/**
 * Join the job of this name, making it when it does not exist; returns when `size` compute nodes have joined. `rank` is
 * the wish, unique from 0 to size - 1. When any member dies before it left, all others' barriers (and joins) fail with
 * DMG_ERR_PEER naming its rank.
 *
 * The first member's pass is the job's: who comes with another secret is DMG_ERR_DENIED. A job of more compute nodes,
 * or whose members have more channels, than the pool lets one job have is DMG_ERR_LIMIT.
 *
 * Take a fresh name for each run: a job that failed while it was joining is remembered, so that ranks which come late
 * hear of it. A rank that is taken is DMG_ERR_EXISTS, another size than the first member's DMG_ERR_ARGUMENT.
 */
dmg_status dmg_job_join(dmg_channel *channel, const dmg_job_pass *pass, const char *name, uint32_t rank, uint32_t size,
                        dmg_job *job);
/**
 * Join a job of the same ranks and secret as `parent`, a job that this rank is in. It fails when the parent does: so a
 * rank that waits for others to join hears when one of them dies (DMG_ERR_PEER) or leaves the parent
 * (DMG_ERR_CANCELLED), although that one had not joined yet. When it fails, the parent does not. The others join it
 * within the same parent.
 */
dmg_status dmg_job_join_within(dmg_channel *channel, const dmg_job *parent, const char *name, dmg_job *job);
/**
 * Meet all ranks; `reduction` goes in with this rank's values and comes out reduced over all ranks that gave one. NULL:
 * nothing to reduce. DMG_ERR_PEER when a member died, what dmg_job_abort said when one gave up, DMG_ERR_CANCELLED when
 * one left.
 */
dmg_status dmg_job_barrier(dmg_channel *channel, dmg_job *job, dmg_reduction *reduction);
/** Of what a job fails with. */
#define DMG_JOB_SENTENCE_BYTES 512
/** A failure that no member told of: one died, or left. */
#define DMG_JOB_NO_RANK UINT32_MAX

/** Why a job has failed. It travels as it is. */
typedef struct dmg_job_failure {
    uint32_t status;                       /**< a dmg_status, not DMG_OK */
    uint32_t rank;                         /**< who said so, or DMG_JOB_NO_RANK */
    char sentence[DMG_JOB_SENTENCE_BYTES]; /**< terminated */
} dmg_job_failure;

/**
 * Give up: the others' barriers fail with this rank's sentence, unless the job has failed before. `first` (may be NULL)
 * gets why the job failed: what the first member said that gave up, which explains what later ones say. Where it cannot
 * be asked for, that is this rank's own reason.
 */
dmg_status dmg_job_abort(dmg_channel *channel, dmg_job *job, dmg_status status, const char *sentence,
                         dmg_job_failure *first);
/** Leave a failure in the error context, with its rank where that is another one than `own`; returns its status. */
dmg_status dmg_job_failure_error(const dmg_job_failure *failure, uint32_t own);
/** Leave; when the last rank has left, and nobody else is attached, the job's extents (unless kept) and catalog entries
 * are freed. */
dmg_status dmg_job_leave(dmg_channel *channel, dmg_job *job);
/**
 * Attach to a job without a rank in it, on all nodes: while this client is attached, what the job has in the pool
 * stays. At least one member must be in the job when this is called, and until it returns. DMG_ERR_DENIED unless this
 * is the job's secret.
 */
dmg_status dmg_job_attach(dmg_channel *channel, uint64_t job, const uint8_t secret[DMG_SECRET_BYTES]);
/** Undo dmg_job_attach. */
dmg_status dmg_job_detach(dmg_channel *channel, uint64_t job);

#endif
