/* The messages about memory: extents, updates of attributes, and what jobs leave behind. */
#include "core/pool/node_state.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/pool/apply_updates.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What waits, and for whom. */
static void count_quarantine(dmg_memory_node *node, dmg_pool_quarantined *quarantined)
{
    *quarantined = (dmg_pool_quarantined){.bytes = dmg_segment_allocator_quarantined(node->allocator)};
    uint32_t position = 0;
    uint64_t job;
    uint64_t client;
    uint64_t last = 0;
    while (dmg_job_references_next_lost(node->references, &position, &job, &client)) {
        if (client == last || dmg_segment_allocator_quarantined_bytes(node->allocator, job) == 0) {
            continue;
        }
        last = client;
        uint64_t pid = (uint64_t)dmg_server_client_pid(node->server, client);
        bool is_known = false;
        for (uint32_t i = 0; i < quarantined->clients && i < DMG_POOL_QUARANTINE_PIDS; i++) {
            is_known |= pid != 0 && quarantined->pids[i] == pid;
        }
        if (!is_known && quarantined->clients < DMG_POOL_QUARANTINE_PIDS) {
            quarantined->pids[quarantined->clients] = pid;
        }
        quarantined->clients += !is_known;
    }
}

/* An allocation has failed, and its sentence is there: say that there would be more. */
static dmg_status explain_quarantine(dmg_memory_node *node)
{
    dmg_pool_quarantined waiting;
    char sentence[DMG_POOL_SENTENCE_BYTES];
    char whom[64] = "others of their job";
    count_quarantine(node, &waiting);
    snprintf(sentence, sizeof sentence, "%s", dmg_error_message());
    if (waiting.clients > 0 && waiting.pids[0] != 0) {
        snprintf(whom, sizeof whom, "process %llu%s", (unsigned long long)waiting.pids[0],
                 waiting.clients > 1 ? " and others" : "");
    } else if (waiting.clients > 0) {
        snprintf(whom, sizeof whom, "%llu on other hosts", (unsigned long long)waiting.clients);
    }
    return dmg_error(DMG_ERR_MEMORY,
                     "%s; %llu bytes more are freed and wait for the end of %s, which could still write there: end or "
                     "continue what was stopped",
                     sentence, (unsigned long long)waiting.bytes, whom);
}

dmg_status dmg_node_handle_quarantine(dmg_memory_node *node, const dmg_request *request)
{
    dmg_pool_quarantined reply;
    dmg_server_look_for_ended(node->server);
    count_quarantine(node, &reply);
    return dmg_node_answer(node, request, &reply, sizeof reply);
}

/* What it freed and others still wait for counts, too: nobody else can have it. */
static dmg_status check_job_memory(dmg_memory_node *node, uint64_t job, uint64_t more_bytes)
{
    return dmg_node_rights_check_memory(&node->rights,
                                        dmg_segment_allocator_job_bytes(node->allocator, job) +
                                            dmg_segment_allocator_quarantined_bytes(node->allocator, job),
                                        dmg_segment_allocator_job_extents(node->allocator, job), more_bytes);
}

dmg_status dmg_node_handle_allocate(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_allocate_request *asked = request->payload;
    dmg_pool_allocate_reply reply;
    dmg_status status = asked->job != 0 ? dmg_node_check_job(node, asked->job, request->client)
                                        : dmg_error(DMG_ERR_ARGUMENT, "memory belongs to a job, and 0 is none");
    dmg_server_look_for_ended(node->server);
    if (status == DMG_OK) {
        status = check_job_memory(node, asked->job, asked->bytes);
    }
    if (status == DMG_OK) {
        status = dmg_segment_allocator_allocate(node->allocator, asked->bytes, asked->job, request->client,
                                                &reply.offset, &reply.dirty_left);
    }
    if (status == DMG_ERR_MEMORY && dmg_segment_allocator_quarantined(node->allocator) > 0) {
        status = explain_quarantine(node);
    }
    return status != DMG_OK ? status : dmg_node_answer(node, request, &reply, sizeof reply);
}

dmg_status dmg_node_handle_zero(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_extent_request *asked = request->payload;
    dmg_pool_zero_reply reply;
    dmg_status status = dmg_segment_allocator_zero(node->allocator, asked->offset, request->client, &reply.dirty_left);
    return status != DMG_OK ? status : dmg_node_answer(node, request, &reply, sizeof reply);
}

dmg_status dmg_node_handle_free(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_extent_request *asked = request->payload;
    uint64_t job = 0;
    dmg_status status = dmg_segment_allocator_job_of(node->allocator, asked->offset, &job);
    if (status == DMG_OK) {
        status = dmg_node_rights_check_job(&node->rights, job, request->client);
    }
    if (status == DMG_OK && dmg_job_references_has_others(node->references, job, request->client)) {
        /* One of them may be stopped, and not yet be given up. */
        status = dmg_segment_allocator_quarantine(node->allocator, asked->offset);
    } else if (status == DMG_OK) {
        status = dmg_segment_allocator_free(node->allocator, asked->offset);
    }
    return status != DMG_OK ? status : dmg_node_answer(node, request, NULL, 0);
}

dmg_status dmg_node_handle_usage(dmg_memory_node *node, const dmg_request *request)
{
    dmg_pool_usage_reply reply;
    dmg_server_look_for_ended(node->server);
    dmg_segment_allocator_usage(node->allocator, &reply.allocated, &reply.peak, &reply.total);
    return dmg_node_answer(node, request, &reply, sizeof reply);
}

/* Where the extent ends that the offset is in; it has to be one of a job of this client. */
static dmg_status find_own_end(const dmg_memory_node *node, uint64_t offset, uint64_t client, uint64_t *end)
{
    uint64_t job;
    if (dmg_segment_allocator_extent_at(node->allocator, offset, &job, end) != DMG_OK) {
        return dmg_error(DMG_ERR_PROTOCOL, "a message of updates leads out of the segment, or to free memory");
    }
    if (!dmg_job_references_is_attached(node->references, job, client)) {
        return dmg_error(DMG_ERR_DENIED,
                         "a message of updates leads to memory of job %llu, which this compute node is "
                         "not in",
                         (unsigned long long)job);
    }
    return DMG_OK;
}

static dmg_status apply_updates(dmg_memory_node *node, const dmg_request *request, dmg_pool_update_reply *reply)
{
    const dmg_pool_update_request *asked = request->payload;
    uint64_t bytes;
    void *segment = dmg_server_segment(node->server, &bytes);
    dmg_update_bounds bounds = {.activation_end = UINT64_MAX};
    dmg_status status = find_own_end(node, asked->attributes, request->client, &bounds.attributes_end);
    if (status == DMG_OK && asked->activation != 0) {
        status = find_own_end(node, asked->activation, request->client, &bounds.activation_end);
    }
    node->rights.refusals.rights += status == DMG_ERR_DENIED;
    return status == DMG_OK ? dmg_apply_updates(node->server, segment, &bounds, asked, request->bytes, reply) : status;
}

dmg_status dmg_node_handle_update(dmg_memory_node *node, const dmg_request *request)
{
    dmg_pool_update_reply reply = {0};
    const dmg_pool_update_request *asked = request->payload;
    uint64_t started_ns = dmg_thread_cpu_ns();
    dmg_status status = apply_updates(node, request, &reply);
    node->activity.offload_cpu_ns += dmg_thread_cpu_ns() - started_ns;
    node->activity.update_messages++;
    node->activity.updates += status == DMG_OK ? asked->count : 0;
    node->activity.applied += reply.applied;
    return status != DMG_OK ? status : dmg_node_answer(node, request, &reply, sizeof reply);
}

dmg_status dmg_node_handle_activity(dmg_memory_node *node, const dmg_request *request)
{
    dmg_node_activity activity = node->activity;
    activity.serve_cpu_ns = dmg_thread_cpu_ns() - activity.offload_cpu_ns;
    activity.process_cpu_ns = dmg_process_cpu_ns();
    return dmg_node_answer(node, request, &activity, sizeof activity);
}

dmg_status dmg_node_handle_keep(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_job_request *asked = request->payload;
    dmg_pool_bytes_reply reply;
    if (asked->job == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "0 is not a job");
    }
    dmg_status status = dmg_node_check_job(node, asked->job, request->client);
    if (status == DMG_OK) {
        status = dmg_job_references_keep(node->references, asked->job);
    }
    reply.bytes = dmg_segment_allocator_job_bytes(node->allocator, asked->job);
    return status != DMG_OK ? status : dmg_node_answer(node, request, &reply, sizeof reply);
}

/* What a lost member may still write to is not given to others before that one has ended. */
static void free_job(dmg_memory_node *node, uint64_t job)
{
    if (dmg_job_references_has_lost(node->references, job)) {
        dmg_segment_allocator_quarantine_job(node->allocator, job);
    } else {
        dmg_segment_allocator_free_job(node->allocator, job);
    }
}

/* A job has no lost member: what of it waited is free, unless it waits for those who are in it. */
void dmg_node_settle_job(void *context, uint64_t job)
{
    dmg_memory_node *node = context;
    if (!dmg_job_references_has_others(node->references, job, 0)) {
        dmg_segment_allocator_end_quarantine(node->allocator, job);
    }
}

dmg_status dmg_node_handle_drop(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_job_request *asked = request->payload;
    dmg_pool_bytes_reply reply = {0};
    const dmg_job_reference *reference = dmg_job_references_find(node->references, asked->job);
    dmg_status status = reference != NULL && reference->is_kept
                            ? dmg_node_rights_check_job(&node->rights, asked->job, request->client)
                            : DMG_OK;
    if (status == DMG_OK) {
        status = dmg_job_references_drop(node->references, asked->job);
    }
    if (status == DMG_OK) {
        reply.bytes = dmg_segment_allocator_job_bytes(node->allocator, asked->job);
        free_job(node, asked->job);
        dmg_log(DMG_LOG_DEBUG, "job_dropped", "node=%u client=%016" PRIx64 " job=%" PRIu64 " bytes=%" PRIu64,
                node->node, request->client, asked->job, reply.bytes);
    }
    bool is_done = status == DMG_OK || status == DMG_ERR_NOT_FOUND;
    return is_done ? dmg_node_answer(node, request, &reply, sizeof reply) : status;
}

dmg_status dmg_node_handle_kept(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_job_request *asked = request->payload;
    dmg_pool_kept_reply reply = {.job = dmg_job_references_next_kept(node->references, asked->job)};
    return dmg_node_answer(node, request, &reply, sizeof reply);
}

void dmg_node_release_job(void *context, uint64_t job, bool is_kept)
{
    dmg_memory_node *node = context;
    if (!is_kept) {
        free_job(node, job);
    }
    if (!dmg_job_references_has_lost(node->references, job)) {
        dmg_node_settle_job(node, job);
    }
    if (node->catalog != NULL) {
        dmg_catalog_erase_job(node->catalog, job);
    }
}
