/**
 * @file protocol.h
 * The messages between compute nodes and memory nodes about memory, the catalog and jobs.
 *
 * Fixed-size structures of fixed-width integers, in the byte order of the machines (a pool is of one kind). Each
 * request begins with a header that has the version; a memory node answers another version, another size or a value out
 * of range with an error sentence, and goes on. An answer is the reply structure named here, or nothing.
 */
#ifndef DMG_CORE_POOL_PROTOCOL_H
#define DMG_CORE_POOL_PROTOCOL_H

#include "core/pool/pool.h"

#include <assert.h>

#define DMG_POOL_PROTOCOL_VERSION 5
/** The longest sentence that a member of a job can leave for the others, with its terminating zero. */
#define DMG_POOL_SENTENCE_BYTES DMG_JOB_SENTENCE_BYTES

/** Message types. Those of the pool are for every memory node, those of the catalog and of jobs for node 0. */
enum {
    DMG_POOL_ALLOCATE = DMG_MESSAGE_TYPE_FIRST, /**< dmg_pool_allocate_request -> dmg_pool_allocate_reply */
    DMG_POOL_ZERO,                              /**< dmg_pool_extent_request -> dmg_pool_zero_reply */
    DMG_POOL_FREE,                              /**< dmg_pool_extent_request */
    DMG_POOL_USAGE,                             /**< dmg_pool_header -> dmg_pool_usage_reply */
    DMG_POOL_ATTACH,                            /**< dmg_pool_attach_request */
    DMG_POOL_DETACH,                            /**< dmg_pool_job_request */
    DMG_POOL_UPDATE,                            /**< dmg_pool_update_request and updates -> dmg_pool_update_reply */
    DMG_POOL_KEEP,                              /**< dmg_pool_job_request -> dmg_pool_bytes_reply */
    DMG_POOL_DROP,                              /**< dmg_pool_job_request -> dmg_pool_bytes_reply */
    DMG_POOL_KEPT,                              /**< dmg_pool_job_request -> dmg_pool_kept_reply */
    DMG_POOL_ACTIVITY,                          /**< dmg_pool_header -> dmg_node_activity */
    DMG_POOL_QUARANTINE,                        /**< dmg_pool_header -> dmg_pool_quarantined */
    DMG_POOL_ADMIN,                             /**< dmg_pool_admin_request */
    DMG_POOL_LIMITS,                            /**< dmg_pool_header -> dmg_pool_limits_reply */
    DMG_POOL_HOLDING,                           /**< dmg_pool_job_request -> dmg_pool_holding */
    DMG_CATALOG_PUT,                            /**< dmg_catalog_put_request and the value */
    DMG_CATALOG_GET,                            /**< dmg_catalog_name_request -> the value */
    DMG_CATALOG_REMOVE,                         /**< dmg_catalog_name_request */
    DMG_CATALOG_NEXT,          /**< dmg_catalog_two_names_request -> the name, empty when there is none */
    DMG_CATALOG_REMOVE_UNUSED, /**< dmg_catalog_two_names_request */
    DMG_JOB_JOIN,              /**< dmg_job_join_request -> dmg_job_join_reply, when all have joined */
    DMG_JOB_TICKET,            /**< dmg_job_ticket_request -> dmg_job_ticket */
    DMG_JOB_READY,             /**< dmg_job_member_request, answered when all are ready */
    DMG_JOB_BARRIER,           /**< dmg_job_barrier_request -> dmg_reduction, when all have come */
    DMG_JOB_ABORT,             /**< dmg_job_abort_request -> dmg_job_failure, of the first who failed */
    DMG_JOB_LEAVE,             /**< dmg_job_member_request */
    DMG_POOL_MESSAGE_TYPE_END
};

typedef struct dmg_pool_header {
    uint32_t version; /**< DMG_POOL_PROTOCOL_VERSION */
    uint32_t zero;    /**< must be 0 */
} dmg_pool_header;

typedef struct dmg_pool_allocate_request {
    dmg_pool_header header;
    uint64_t job; /**< one that this client is attached to */
    uint64_t bytes;
} dmg_pool_allocate_request;

typedef struct dmg_pool_allocate_reply {
    uint64_t offset;
    uint64_t dirty_left; /**< not 0: send DMG_POOL_ZERO until it is */
} dmg_pool_allocate_reply;

typedef struct dmg_pool_extent_request {
    dmg_pool_header header;
    uint64_t offset; /**< where the extent begins */
} dmg_pool_extent_request;

typedef struct dmg_pool_zero_reply {
    uint64_t dirty_left;
} dmg_pool_zero_reply;

typedef struct dmg_pool_usage_reply {
    uint64_t allocated;
    uint64_t peak;
    uint64_t total;
} dmg_pool_usage_reply;

typedef struct dmg_pool_job_request {
    dmg_pool_header header;
    uint64_t job;
} dmg_pool_job_request;

/** Who node 0 let into a job, and for whom: sealed (ticket.h), and good for this client alone. */
typedef struct dmg_job_ticket {
    uint64_t job;
    uint64_t client;
    dmg_pool_owner owner; /**< with a hash of the identity that was shown */
    char name[DMG_JOB_NAME_BYTES];
    uint8_t seal[DMG_SECRET_BYTES];
} dmg_job_ticket;

typedef struct dmg_pool_attach_request {
    dmg_pool_header header;
    dmg_job_ticket ticket;
} dmg_pool_attach_request;

typedef struct dmg_pool_admin_request {
    dmg_pool_header header;
    uint8_t shown[DMG_SECRET_BYTES]; /**< dmg_admin_show */
} dmg_pool_admin_request;

typedef struct dmg_pool_limits_reply {
    dmg_pool_limits limits;
    dmg_pool_refusals refusals;
    uint64_t descriptors_left; /**< dmg_descriptors_left */
} dmg_pool_limits_reply;

/** Bytes of a job's extents on the node, which are kept now, or were freed. */
typedef struct dmg_pool_bytes_reply {
    uint64_t bytes;
} dmg_pool_bytes_reply;

/** The first job behind the one asked for whose extents are kept and that nobody is attached to; 0: none. */
typedef struct dmg_pool_kept_reply {
    uint64_t job;
} dmg_pool_kept_reply;

/**
 * Updates that the memory node applies to attributes of its own (ValRD; DMG, section 4.3.1). Behind the request come
 * `count` updates: the attribute's index in four bytes, then the value in as many as the attribute has.
 */
typedef struct dmg_pool_update_request {
    dmg_pool_header header;
    uint32_t combine; /**< a dmg_combine */
    uint32_t count;
    uint64_t attributes; /**< offset of attribute 0, a multiple of 64 */
    uint64_t
        activation; /**< offset of the bitmap word of attributes 0 to 63, a multiple of 8; 0: nothing is activated */
} dmg_pool_update_request;

typedef struct dmg_pool_update_reply {
    uint64_t applied;   /**< attributes that changed */
    uint64_t activated; /**< bits that were clear before */
} dmg_pool_update_reply;

typedef struct dmg_catalog_put_request {
    dmg_pool_header header;
    uint64_t job; /**< one that this client is attached to, or 0 */
    char name[DMG_CATALOG_NAME_BYTES];
    uint64_t bytes; /**< of the value, which follows */
} dmg_catalog_put_request;

typedef struct dmg_catalog_name_request {
    dmg_pool_header header;
    char name[DMG_CATALOG_NAME_BYTES];
} dmg_catalog_name_request;

typedef struct dmg_catalog_two_names_request {
    dmg_pool_header header;
    char name[DMG_CATALOG_NAME_BYTES];   /**< of the entry; to find the next one: where to go on, empty at the start */
    char prefix[DMG_CATALOG_NAME_BYTES]; /**< of names */
} dmg_catalog_two_names_request;

typedef struct dmg_job_join_request {
    dmg_pool_header header;
    char name[DMG_JOB_NAME_BYTES];
    uint32_t rank;
    uint32_t size;
    uint64_t parent;   /**< a job of the same ranks, whose secret and owner this one has, or 0 */
    dmg_job_pass pass; /**< not looked at when there is a parent */
} dmg_job_join_request;

typedef struct dmg_job_ticket_request {
    dmg_pool_header header;
    uint64_t job;
    uint8_t secret[DMG_SECRET_BYTES]; /**< of the job */
} dmg_job_ticket_request;

typedef struct dmg_job_join_reply {
    uint64_t job;
} dmg_job_join_reply;

typedef struct dmg_job_member_request {
    dmg_pool_header header;
    uint64_t job;
    uint32_t rank;
    uint32_t zero; /**< must be 0 */
} dmg_job_member_request;

typedef struct dmg_job_barrier_request {
    dmg_pool_header header;
    uint64_t job;
    uint32_t rank;
    uint32_t has_reduction; /**< 0 or 1: whether this rank takes part in the reduction */
    uint64_t epoch;         /**< barriers passed so far */
    dmg_reduction reduction;
} dmg_job_barrier_request;

typedef struct dmg_job_abort_request {
    dmg_pool_header header;
    uint64_t job;
    uint32_t rank;
    uint32_t status;                        /**< a dmg_status, not DMG_OK */
    char sentence[DMG_POOL_SENTENCE_BYTES]; /**< terminated */
} dmg_job_abort_request;

static_assert(sizeof(dmg_catalog_put_request) + DMG_CATALOG_VALUE_BYTES <= DMG_MESSAGE_BYTES_MAX,
              "the largest catalog entry must fit into a message");
static_assert(sizeof(dmg_reduction) == 8 * (DMG_REDUCE_SUMS + DMG_REDUCE_REALS + 4),
              "a reduction travels as it is: it must have no padding");

static_assert(sizeof(dmg_pool_owner) == DMG_SECRET_BYTES + 8 + DMG_USER_NAME_BYTES + DMG_HOST_NAME_BYTES &&
                  sizeof(dmg_job_ticket) == 16 + sizeof(dmg_pool_owner) + DMG_JOB_NAME_BYTES + DMG_SECRET_BYTES &&
                  sizeof(dmg_pool_limits) == 16,
              "what is sealed, or travels as it is, has no padding");

static inline dmg_pool_header dmg_pool_header_make(void)
{
    return (dmg_pool_header){.version = DMG_POOL_PROTOCOL_VERSION};
}

#endif
