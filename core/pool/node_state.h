/**
 * @file node_state.h
 * What the parts of a memory node share: memory_node.c has its life and tells messages apart, node_extents.c,
 * node_catalog.c and node_jobs.c handle them.
 */
#ifndef DMG_CORE_POOL_NODE_STATE_H
#define DMG_CORE_POOL_NODE_STATE_H

#include "core/pool/catalog.h"
#include "core/pool/job_table.h"
#include "core/pool/memory_node.h"
#include "core/pool/node_rights.h"
#include "core/pool/protocol.h"
#include "core/pool/segment_allocator.h"

struct dmg_memory_node {
    uint16_t node;
    dmg_server *server;
    dmg_segment_allocator *allocator;
    dmg_job_references *references;
    dmg_node_rights rights;
    dmg_catalog *catalog;      /* on node 0 only */
    dmg_job_table *jobs;       /* on node 0 only */
    uint64_t allocated_before; /* and when that changed */
    uint64_t changed_ns;
    dmg_node_activity activity; /* without CPU time of serving, which is asked for when it is wanted */
};

/** Answer a request with DMG_OK; returns that. */
dmg_status dmg_node_answer(dmg_memory_node *node, const dmg_request *request, const void *payload, size_t bytes);
/** Names come from outside, and go into messages for people: terminated, not empty, no control characters. */
dmg_status dmg_node_check_name(const char *name, size_t capacity, const char *of);
/** Whether the client is attached to the job; job 0 is anybody's. */
dmg_status dmg_node_check_job(const dmg_memory_node *node, uint64_t job, uint64_t client);

/* For the parts of which a node is made; `context` is the node. */

/** dmg_job_references_release. */
void dmg_node_release_job(void *context, uint64_t job, bool is_kept);
/** dmg_job_references_settle. */
void dmg_node_settle_job(void *context, uint64_t job);
/** dmg_job_answer. */
void dmg_node_answer_member(void *context, uint64_t reply_token, dmg_status status, const void *payload, size_t bytes);

/**
 * A handler. With DMG_OK it has answered, or somebody keeps the token; with an error it has not, and the error context
 * has the sentence for the answer. The size of the payload, the header and the node have been checked.
 */
typedef dmg_status dmg_node_handler(dmg_memory_node *node, const dmg_request *request);

dmg_node_handler dmg_node_handle_quarantine;
dmg_node_handler dmg_node_handle_allocate;
dmg_node_handler dmg_node_handle_zero;
dmg_node_handler dmg_node_handle_free;
dmg_node_handler dmg_node_handle_usage;
dmg_node_handler dmg_node_handle_attach;
dmg_node_handler dmg_node_handle_detach;
dmg_node_handler dmg_node_handle_update;
dmg_node_handler dmg_node_handle_activity;
dmg_node_handler dmg_node_handle_keep;
dmg_node_handler dmg_node_handle_drop;
dmg_node_handler dmg_node_handle_kept;
dmg_node_handler dmg_node_handle_admin;
dmg_node_handler dmg_node_handle_limits;
dmg_node_handler dmg_node_handle_holding;
dmg_node_handler dmg_node_handle_catalog_put;
dmg_node_handler dmg_node_handle_catalog_get;
dmg_node_handler dmg_node_handle_catalog_remove;
dmg_node_handler dmg_node_handle_catalog_next;
dmg_node_handler dmg_node_handle_catalog_remove_unused;
dmg_node_handler dmg_node_handle_join;
dmg_node_handler dmg_node_handle_ticket;
dmg_node_handler dmg_node_handle_ready;
dmg_node_handler dmg_node_handle_barrier;
dmg_node_handler dmg_node_handle_abort;
dmg_node_handler dmg_node_handle_leave;

#endif
