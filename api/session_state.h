/**
 * @file session_state.h
 * What a session is made of. The parts are
 *
 *     session.c         opening and closing
 *     session_graph.c   loading a graph, vertices and ids
 *     session_run.c     running an algorithm, reading its values
 *
 * A loaded graph and a run are a job of the pool each: what it has there is freed when all ranks have left it. So a
 * run's arrays go when the next run begins, and a step that fails takes nothing else with it. Every rank counts its
 * steps, which gives their jobs the same fresh names. They are within the session's own job, so that who waits for a
 * rank to begin a step hears when that rank is gone.
 */
#ifndef DMG_API_SESSION_STATE_H
#define DMG_API_SESSION_STATE_H

#include "core/pool/local_pool.h"
#include "core/store/graph_store.h"
#include "dmgraph/session.h"

/** So that the names of a session's steps fit where the pool keeps names. */
#define DMG_SESSION_NAME_BYTES 32

struct dmg_session {
    char name[DMG_SESSION_NAME_BYTES];
    uint32_t rank;
    uint32_t size;
    uint32_t threads;
    uint64_t cache_bytes;
    dmg_local_pool *local; /**< NULL: the memory nodes are elsewhere */
    uint64_t memory_bytes; /**< of each of its nodes */
    dmg_client *client;
    dmg_channel *channel;
    dmg_job_pass pass;   /**< of its jobs; nothing of them stays, so there is no identity in it */
    dmg_job session_job; /**< id 0: before the first collective call */
    uint64_t steps;      /**< collective calls that were begun */

    dmg_job graph_job; /**< id 0: there is no graph */
    dmg_graph_store store;
    uint64_t first_source;     /**< the first vertex with an arc, or 0 */
    uint64_t negative_line;    /**< of the first negative weight in the file; 0: there is none */
    char negative_source[256]; /**< that file */

    dmg_job run_job;        /**< id 0: there are no values */
    dmg_range_array values; /**< of the last run */
    uint32_t value_bytes;   /**< of one of them */
};

/** Begin a collective call: meet all ranks in a job with the session's next name. */
dmg_status dmg_session_step_begin(dmg_session *session, const char *what, dmg_job *job);
/** A collective call has failed here: tell the others why, and leave the job. Returns `status` with its sentence kept.
 */
dmg_status dmg_session_step_fail(dmg_session *session, dmg_job *job, dmg_status status);
/** Leave a job, if it is one. What it has in the pool is freed when the others have left, too. */
void dmg_session_leave(dmg_session *session, dmg_job *job);
/** DMG_ERR_ARGUMENT unless the session has a graph. */
dmg_status dmg_session_need_graph(const dmg_session *session);
/** DMG_ERR_ARGUMENT unless these are vertices of the session's graph. */
dmg_status dmg_session_check_range(const dmg_session *session, uint64_t first, uint64_t count);
/** Read elements of an array in the pool, and wait for them. */
dmg_status dmg_session_read(dmg_session *session, const dmg_range_array *array, uint64_t first, uint64_t count,
                            void *to);

#endif
