#include "core/pool/memory_node.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/pool/apply_updates.h"
#include "core/pool/catalog.h"
#include "core/pool/job_table.h"
#include "core/pool/node_rights.h"
#include "core/pool/protocol.h"
#include "core/pool/segment_allocator.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** How long memory has to stay as it is before what is free of it goes back to the system. */
#define GIVE_BACK_AFTER_NS UINT64_C(1000000000)

struct dmg_memory_node {
    uint16_t node;
    dmg_server *server;
    dmg_segment_allocator *allocator;
    dmg_tenancy *tenancy;
    dmg_node_rights rights;
    dmg_catalog *catalog;      /* on node 0 only */
    dmg_job_table *jobs;       /* on node 0 only */
    uint64_t allocated_before; /* and when that changed */
    uint64_t changed_ns;
    dmg_node_activity activity; /* without CPU time of serving, which is asked for when it is wanted */
};

/*
 * A handler. With DMG_OK it has answered, or somebody keeps the token; with an error it has not, and the error context
 * has the sentence for the answer. The size of the payload, the header and the node have been checked.
 */
typedef dmg_status (*node_handler)(dmg_memory_node *node, const dmg_request *request);

/* ---- checks and answers ---- */

static dmg_status answer(dmg_memory_node *node, const dmg_request *request, const void *payload, size_t bytes)
{
    dmg_server_reply(node->server, request->reply_token, DMG_OK, payload, bytes);
    return DMG_OK;
}

/* Names come from outside, and go into messages for people: terminated, not empty, no control characters. */
static dmg_status check_name(const char *name, size_t capacity, const char *of)
{
    size_t length = strnlen(name, capacity);
    if (length == 0 || length == capacity) {
        return dmg_error(DMG_ERR_ARGUMENT, "the name of %s has 1 to %zu bytes", of, capacity - 1);
    }
    for (size_t index = 0; index < length; index++) {
        unsigned char character = (unsigned char)name[index];
        if (character < 0x20 || character == 0x7f) {
            return dmg_error(DMG_ERR_ARGUMENT, "the name of %s has control characters", of);
        }
    }
    return DMG_OK;
}

static dmg_status check_tenant(const dmg_memory_node *node, uint64_t job, uint64_t client)
{
    if (job != 0 && !dmg_tenancy_is_attached(node->tenancy, job, client)) {
        return dmg_error(DMG_ERR_ARGUMENT, "this compute node is not in job %llu", (unsigned long long)job);
    }
    return DMG_OK;
}

/* ---- memory ---- */

/* What waits, and for whom. */
static void count_quarantine(dmg_memory_node *node, dmg_pool_quarantined *quarantined)
{
    *quarantined = (dmg_pool_quarantined){.bytes = dmg_segment_allocator_quarantined(node->allocator)};
    uint32_t position = 0;
    uint64_t job;
    uint64_t client;
    uint64_t last = 0;
    while (dmg_tenancy_next_lost(node->tenancy, &position, &job, &client)) {
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

static dmg_status handle_quarantine(dmg_memory_node *node, const dmg_request *request)
{
    dmg_pool_quarantined reply;
    dmg_server_look_for_ended(node->server);
    count_quarantine(node, &reply);
    return answer(node, request, &reply, sizeof reply);
}

/* What it freed and others still wait for counts, too: nobody else can have it. */
static dmg_status check_job_memory(dmg_memory_node *node, uint64_t job, uint64_t more_bytes)
{
    if (node->rights.limits.job_memory_bytes == 0) {
        return DMG_OK;
    }
    return dmg_node_rights_check_memory(&node->rights,
                                        dmg_segment_allocator_job_bytes(node->allocator, job) +
                                            dmg_segment_allocator_quarantined_bytes(node->allocator, job),
                                        more_bytes);
}

static dmg_status handle_allocate(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_allocate_request *asked = request->payload;
    dmg_pool_allocate_reply reply;
    dmg_status status = asked->job != 0 ? check_tenant(node, asked->job, request->client)
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
    return status != DMG_OK ? status : answer(node, request, &reply, sizeof reply);
}

static dmg_status handle_zero(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_extent_request *asked = request->payload;
    dmg_pool_zero_reply reply;
    dmg_status status = dmg_segment_allocator_zero(node->allocator, asked->offset, request->client, &reply.dirty_left);
    return status != DMG_OK ? status : answer(node, request, &reply, sizeof reply);
}

static dmg_status handle_free(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_extent_request *asked = request->payload;
    uint64_t job = 0;
    dmg_status status = dmg_segment_allocator_job_of(node->allocator, asked->offset, &job);
    if (status == DMG_OK) {
        status = dmg_node_rights_check_job(&node->rights, job, request->client);
    }
    if (status == DMG_OK && dmg_tenancy_has_others(node->tenancy, job, request->client)) {
        /* One of them may be stopped, and not yet be given up. */
        status = dmg_segment_allocator_quarantine(node->allocator, asked->offset);
    } else if (status == DMG_OK) {
        status = dmg_segment_allocator_free(node->allocator, asked->offset);
    }
    return status != DMG_OK ? status : answer(node, request, NULL, 0);
}

static dmg_status handle_usage(dmg_memory_node *node, const dmg_request *request)
{
    dmg_pool_usage_reply reply;
    dmg_server_look_for_ended(node->server);
    dmg_segment_allocator_usage(node->allocator, &reply.allocated, &reply.peak, &reply.total);
    return answer(node, request, &reply, sizeof reply);
}

static dmg_status handle_attach(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_attach_request *asked = request->payload;
    dmg_status status = dmg_node_rights_attach(&node->rights, &asked->ticket, request->client);
    return status != DMG_OK ? status : answer(node, request, NULL, 0);
}

static dmg_status handle_detach(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_tenant_request *asked = request->payload;
    dmg_status status = dmg_tenancy_detach(node->tenancy, asked->job, request->client);
    return status != DMG_OK ? status : answer(node, request, NULL, 0);
}

/* Where the extent ends that the offset is in; it has to be one of a job of this client. */
static dmg_status find_own_end(const dmg_memory_node *node, uint64_t offset, uint64_t client, uint64_t *end)
{
    uint64_t job;
    if (dmg_segment_allocator_extent_at(node->allocator, offset, &job, end) != DMG_OK) {
        return dmg_error(DMG_ERR_PROTOCOL, "a message of updates leads out of the segment, or to free memory");
    }
    if (!dmg_tenancy_is_attached(node->tenancy, job, client)) {
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

static dmg_status handle_update(dmg_memory_node *node, const dmg_request *request)
{
    dmg_pool_update_reply reply = {0};
    const dmg_pool_update_request *asked = request->payload;
    uint64_t started_ns = dmg_thread_cpu_ns();
    dmg_status status = apply_updates(node, request, &reply);
    node->activity.offload_cpu_ns += dmg_thread_cpu_ns() - started_ns;
    node->activity.update_messages++;
    node->activity.updates += status == DMG_OK ? asked->count : 0;
    node->activity.applied += reply.applied;
    return status != DMG_OK ? status : answer(node, request, &reply, sizeof reply);
}

static dmg_status handle_activity(dmg_memory_node *node, const dmg_request *request)
{
    dmg_node_activity activity = node->activity;
    activity.serve_cpu_ns = dmg_thread_cpu_ns() - activity.offload_cpu_ns;
    activity.process_cpu_ns = dmg_process_cpu_ns();
    return answer(node, request, &activity, sizeof activity);
}

static dmg_status handle_keep(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_tenant_request *asked = request->payload;
    dmg_pool_bytes_reply reply;
    if (asked->job == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "0 is not a job");
    }
    dmg_status status = check_tenant(node, asked->job, request->client);
    if (status == DMG_OK) {
        status = dmg_tenancy_keep(node->tenancy, asked->job);
    }
    reply.bytes = dmg_segment_allocator_job_bytes(node->allocator, asked->job);
    return status != DMG_OK ? status : answer(node, request, &reply, sizeof reply);
}

/* What a lost member may still write to is not given to others before that one has ended. */
static void free_job(dmg_memory_node *node, uint64_t job)
{
    if (dmg_tenancy_has_lost(node->tenancy, job)) {
        dmg_segment_allocator_quarantine_job(node->allocator, job);
    } else {
        dmg_segment_allocator_free_job(node->allocator, job);
    }
}

/* A job has no lost member: what of it waited is free, unless it waits for those who are in it. */
static void settle_job(void *context, uint64_t job)
{
    dmg_memory_node *node = context;
    if (!dmg_tenancy_has_others(node->tenancy, job, 0)) {
        dmg_segment_allocator_end_quarantine(node->allocator, job);
    }
}

static dmg_status handle_drop(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_tenant_request *asked = request->payload;
    dmg_pool_bytes_reply reply = {0};
    const dmg_tenant *tenant = dmg_tenancy_find(node->tenancy, asked->job);
    dmg_status status = tenant != NULL && tenant->is_kept
                            ? dmg_node_rights_check_job(&node->rights, asked->job, request->client)
                            : DMG_OK;
    if (status == DMG_OK) {
        status = dmg_tenancy_drop(node->tenancy, asked->job);
    }
    if (status == DMG_OK) {
        reply.bytes = dmg_segment_allocator_job_bytes(node->allocator, asked->job);
        free_job(node, asked->job);
        dmg_log(DMG_LOG_DEBUG, "job_dropped", "node=%u client=%016" PRIx64 " job=%" PRIu64 " bytes=%" PRIu64,
                node->node, request->client, asked->job, reply.bytes);
    }
    bool is_done = status == DMG_OK || status == DMG_ERR_NOT_FOUND;
    return is_done ? answer(node, request, &reply, sizeof reply) : status;
}

static dmg_status handle_kept(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_tenant_request *asked = request->payload;
    dmg_pool_kept_reply reply = {.job = dmg_tenancy_next_kept(node->tenancy, asked->job)};
    return answer(node, request, &reply, sizeof reply);
}

/* ---- rights ---- */

static dmg_status handle_admin(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_admin_request *asked = request->payload;
    dmg_status status = dmg_node_rights_administer(&node->rights, asked->shown, request->client);
    if (status == DMG_OK) {
        dmg_log(DMG_LOG_INFO, "admin_came", "node=%u client=%016" PRIx64 " client_pid=%d", node->node, request->client,
                dmg_server_client_pid(node->server, request->client));
    }
    return status != DMG_OK ? status : answer(node, request, NULL, 0);
}

static dmg_status handle_limits(dmg_memory_node *node, const dmg_request *request)
{
    dmg_pool_limits_reply reply = {.limits = node->rights.limits, .refusals = node->rights.refusals};
    return answer(node, request, &reply, sizeof reply);
}

static dmg_status handle_holding(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_tenant_request *asked = request->payload;
    dmg_pool_holding reply = {0};
    const dmg_tenant *tenant = dmg_tenancy_next(node->tenancy, asked->job);
    if (tenant != NULL) {
        reply = (dmg_pool_holding){
            .job = tenant->job,
            .owner = tenant->owner,
            .bytes = dmg_segment_allocator_job_bytes(node->allocator, tenant->job),
            .quarantined_bytes = dmg_segment_allocator_quarantined_bytes(node->allocator, tenant->job),
            .channels = dmg_node_rights_channels(&node->rights, tenant->job),
            .lost = tenant->lost,
            .is_kept = tenant->is_kept,
        };
        memcpy(reply.name, tenant->name, sizeof reply.name);
        uint32_t position = 0;
        uint64_t client;
        while (dmg_tenancy_next_client(node->tenancy, tenant->job, &position, &client)) {
            reply.clients++;
        }
    }
    return answer(node, request, &reply, sizeof reply);
}

static void release_job(void *context, uint64_t job, bool is_kept)
{
    dmg_memory_node *node = context;
    if (!is_kept) {
        free_job(node, job);
    }
    if (!dmg_tenancy_has_lost(node->tenancy, job)) {
        settle_job(node, job);
    }
    if (node->catalog != NULL) {
        dmg_catalog_erase_job(node->catalog, job);
    }
}

/* ---- catalog ---- */

static dmg_status handle_catalog_put(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_catalog_put_request *asked = request->payload;
    if (asked->bytes > DMG_CATALOG_VALUE_BYTES || request->bytes - sizeof *asked != asked->bytes) {
        return dmg_error(DMG_ERR_PROTOCOL, "a catalog entry says that its value has %llu bytes, and %zu came",
                         (unsigned long long)asked->bytes, request->bytes - sizeof *asked);
    }
    dmg_status status = check_name(asked->name, sizeof asked->name, "a catalog entry");
    if (status == DMG_OK) {
        status = check_tenant(node, asked->job, request->client);
    }
    const dmg_catalog_owner owner = {.job = asked->job,
                                     .client = request->client,
                                     .owner = dmg_node_rights_owner_of(&node->rights, request->client)};
    if (status == DMG_OK) {
        status = dmg_catalog_insert(node->catalog, &owner, asked->name, asked + 1, asked->bytes);
    }
    if (status == DMG_OK) {
        dmg_log(DMG_LOG_DEBUG, "catalog_put", "client=%016" PRIx64 " job=%" PRIu64 " name=\"%s\"", request->client,
                asked->job, asked->name);
    }
    return status != DMG_OK ? status : answer(node, request, NULL, 0);
}

static dmg_status handle_catalog_get(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_catalog_name_request *asked = request->payload;
    const void *value;
    size_t bytes;
    dmg_status status = check_name(asked->name, sizeof asked->name, "a catalog entry");
    if (status == DMG_OK) {
        status = dmg_catalog_find(node->catalog, asked->name, &value, &bytes);
    }
    return status != DMG_OK ? status : answer(node, request, value, bytes);
}

/* Remove an entry for a client that may do so. */
static dmg_status erase_entry(dmg_memory_node *node, const char *name, uint64_t client)
{
    const dmg_catalog_owner *owner;
    dmg_status status = dmg_catalog_owner_of(node->catalog, name, &owner);
    if (status == DMG_OK) {
        status = dmg_node_rights_check_entry(&node->rights, owner, client);
    }
    return status == DMG_OK ? dmg_catalog_erase(node->catalog, name) : status;
}

static dmg_status handle_catalog_remove(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_catalog_name_request *asked = request->payload;
    dmg_status status = check_name(asked->name, sizeof asked->name, "a catalog entry");
    if (status == DMG_OK) {
        status = erase_entry(node, asked->name, request->client);
    }
    if (status == DMG_OK) {
        dmg_log(DMG_LOG_DEBUG, "catalog_removed", "client=%016" PRIx64 " name=\"%s\"", request->client, asked->name);
    }
    return status != DMG_OK ? status : answer(node, request, NULL, 0);
}

static dmg_status check_two_names(const dmg_catalog_two_names_request *asked, bool may_be_empty)
{
    dmg_status status = check_name(asked->prefix, sizeof asked->prefix, "a catalog entry");
    if (status == DMG_OK && !(may_be_empty && asked->name[0] == '\0')) {
        status = check_name(asked->name, sizeof asked->name, "a catalog entry");
    }
    return status;
}

static dmg_status handle_catalog_next(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_catalog_two_names_request *asked = request->payload;
    dmg_status status = check_two_names(asked, true);
    if (status != DMG_OK) {
        return status;
    }
    const char *name = dmg_catalog_next_name(node->catalog, asked->prefix, asked->name);
    return answer(node, request, name, name != NULL ? strlen(name) : 0);
}

static dmg_status handle_catalog_remove_unused(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_catalog_two_names_request *asked = request->payload;
    dmg_status status = check_two_names(asked, false);
    const char *user = status == DMG_OK ? dmg_catalog_next_name(node->catalog, asked->prefix, "") : NULL;
    if (user != NULL) {
        status = dmg_error(DMG_ERR_EXISTS, "the catalog entry \"%s\" is in use: there is \"%s\"", asked->name, user);
    }
    if (status == DMG_OK) {
        status = erase_entry(node, asked->name, request->client);
    }
    if (status == DMG_OK) {
        dmg_log(DMG_LOG_DEBUG, "catalog_removed", "client=%016" PRIx64 " name=\"%s\"", request->client, asked->name);
    }
    return status != DMG_OK ? status : answer(node, request, NULL, 0);
}

/* ---- jobs ---- */

static void answer_member(void *context, uint64_t reply_token, dmg_status status, const void *payload, size_t bytes)
{
    dmg_memory_node *node = context;
    dmg_server_reply(node->server, reply_token, status, payload, bytes);
}

static dmg_status handle_join(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_job_join_request *asked = request->payload;
    dmg_status status = check_name(asked->name, sizeof asked->name, "a job");
    if (status != DMG_OK) {
        return status;
    }
    dmg_job_entrant entrant = {.client = request->client,
                               .reply_token = request->reply_token,
                               .name = asked->name,
                               .rank = asked->rank,
                               .size = asked->size,
                               .parent = asked->parent,
                               .owner = asked->pass.owner};
    static const uint8_t nobody[DMG_SECRET_BYTES];
    dmg_secret_hash(asked->pass.secret, entrant.secret_hash);
    if (!dmg_secret_is_equal(asked->pass.owner.identity, nobody)) {
        dmg_secret_hash(asked->pass.owner.identity, entrant.owner.identity);
    }
    status = dmg_owner_check(&entrant.owner);
    if (status == DMG_OK) {
        status = dmg_node_rights_check_size(&node->rights, asked->name, asked->size);
    }
    if (status != DMG_OK) {
        return status;
    }
    dmg_log(DMG_LOG_DEBUG, "job_joined", "client=%016" PRIx64 " job=\"%s\" rank=%u size=%u by=\"%s\"", request->client,
            asked->name, asked->rank, asked->size, dmg_owner_print(&entrant.owner).text);
    status = dmg_job_table_join(node->jobs, &entrant);
    node->rights.refusals.rights += status == DMG_ERR_DENIED;
    return status;
}

static dmg_status handle_ticket(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_job_ticket_request *asked = request->payload;
    uint8_t hash[DMG_SECRET_BYTES];
    const char *name;
    const dmg_pool_owner *owner;
    dmg_secret_hash(asked->secret, hash);
    dmg_status status = dmg_job_table_introduce(node->jobs, asked->job, hash, &name, &owner);
    if (status != DMG_OK) {
        node->rights.refusals.rights += status == DMG_ERR_DENIED;
        return status;
    }
    dmg_job_ticket ticket = {.job = asked->job, .client = request->client, .owner = *owner};
    memcpy(ticket.name, name, strlen(name));
    dmg_ticket_seal(&node->rights.key, &ticket);
    return answer(node, request, &ticket, sizeof ticket);
}

static dmg_status handle_ready(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_job_member_request *asked = request->payload;
    return dmg_job_table_ready(node->jobs, request->client, request->reply_token, asked->job, asked->rank);
}

static dmg_status handle_barrier(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_job_barrier_request *asked = request->payload;
    if (asked->has_reduction > 1) {
        return dmg_error(DMG_ERR_PROTOCOL, "a request for a barrier has %u where 0 or 1 is expected",
                         asked->has_reduction);
    }
    return dmg_job_table_barrier(node->jobs, request->client, request->reply_token, asked->job, asked->rank,
                                 asked->epoch, asked->has_reduction ? &asked->reduction : NULL);
}

static dmg_status handle_abort(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_job_abort_request *asked = request->payload;
    if (asked->status == DMG_OK || asked->status >= DMG_STATUS_COUNT ||
        memchr(asked->sentence, 0, sizeof asked->sentence) == NULL) {
        return dmg_error(DMG_ERR_PROTOCOL, "a request to abort a job has status %u, or an endless sentence",
                         asked->status);
    }
    dmg_job_failure first;
    dmg_status status = dmg_job_table_abort(node->jobs, request->client, asked->job, asked->rank,
                                            (dmg_status)asked->status, asked->sentence, &first);
    return status != DMG_OK ? status : answer(node, request, &first, sizeof first);
}

static dmg_status handle_leave(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_job_member_request *asked = request->payload;
    dmg_status status = dmg_job_table_leave(node->jobs, request->client, asked->job, asked->rank);
    return status != DMG_OK ? status : answer(node, request, NULL, 0);
}

/* ---- dispatch ---- */

typedef struct message_kind {
    node_handler handle;
    size_t bytes_min;
    size_t bytes_max;
    bool is_for_node_0;
} message_kind;

#define EXACTLY(type) sizeof(type), sizeof(type)

static const message_kind message_kinds[DMG_POOL_MESSAGE_TYPE_END - DMG_POOL_ALLOCATE] = {
    [DMG_POOL_ALLOCATE - DMG_POOL_ALLOCATE] = {handle_allocate, EXACTLY(dmg_pool_allocate_request), false},
    [DMG_POOL_ZERO - DMG_POOL_ALLOCATE] = {handle_zero, EXACTLY(dmg_pool_extent_request), false},
    [DMG_POOL_FREE - DMG_POOL_ALLOCATE] = {handle_free, EXACTLY(dmg_pool_extent_request), false},
    [DMG_POOL_USAGE - DMG_POOL_ALLOCATE] = {handle_usage, EXACTLY(dmg_pool_header), false},
    [DMG_POOL_ATTACH - DMG_POOL_ALLOCATE] = {handle_attach, EXACTLY(dmg_pool_attach_request), false},
    [DMG_POOL_DETACH - DMG_POOL_ALLOCATE] = {handle_detach, EXACTLY(dmg_pool_tenant_request), false},
    [DMG_POOL_UPDATE -
        DMG_POOL_ALLOCATE] = {handle_update, sizeof(dmg_pool_update_request), DMG_MESSAGE_BYTES_MAX, false},
    [DMG_CATALOG_PUT - DMG_POOL_ALLOCATE] = {handle_catalog_put, sizeof(dmg_catalog_put_request),
                                             sizeof(dmg_catalog_put_request) + DMG_CATALOG_VALUE_BYTES, true},
    [DMG_CATALOG_GET - DMG_POOL_ALLOCATE] = {handle_catalog_get, EXACTLY(dmg_catalog_name_request), true},
    [DMG_CATALOG_REMOVE - DMG_POOL_ALLOCATE] = {handle_catalog_remove, EXACTLY(dmg_catalog_name_request), true},
    [DMG_JOB_JOIN - DMG_POOL_ALLOCATE] = {handle_join, EXACTLY(dmg_job_join_request), true},
    [DMG_JOB_TICKET - DMG_POOL_ALLOCATE] = {handle_ticket, EXACTLY(dmg_job_ticket_request), true},
    [DMG_JOB_READY - DMG_POOL_ALLOCATE] = {handle_ready, EXACTLY(dmg_job_member_request), true},
    [DMG_JOB_BARRIER - DMG_POOL_ALLOCATE] = {handle_barrier, EXACTLY(dmg_job_barrier_request), true},
    [DMG_JOB_ABORT - DMG_POOL_ALLOCATE] = {handle_abort, EXACTLY(dmg_job_abort_request), true},
    [DMG_JOB_LEAVE - DMG_POOL_ALLOCATE] = {handle_leave, EXACTLY(dmg_job_member_request), true},
    [DMG_POOL_KEEP - DMG_POOL_ALLOCATE] = {handle_keep, EXACTLY(dmg_pool_tenant_request), false},
    [DMG_POOL_DROP - DMG_POOL_ALLOCATE] = {handle_drop, EXACTLY(dmg_pool_tenant_request), false},
    [DMG_POOL_KEPT - DMG_POOL_ALLOCATE] = {handle_kept, EXACTLY(dmg_pool_tenant_request), false},
    [DMG_POOL_QUARANTINE - DMG_POOL_ALLOCATE] = {handle_quarantine, EXACTLY(dmg_pool_header), false},
    [DMG_POOL_ADMIN - DMG_POOL_ALLOCATE] = {handle_admin, EXACTLY(dmg_pool_admin_request), false},
    [DMG_POOL_LIMITS - DMG_POOL_ALLOCATE] = {handle_limits, EXACTLY(dmg_pool_header), false},
    [DMG_POOL_HOLDING - DMG_POOL_ALLOCATE] = {handle_holding, EXACTLY(dmg_pool_tenant_request), false},
    [DMG_POOL_ACTIVITY - DMG_POOL_ALLOCATE] = {handle_activity, EXACTLY(dmg_pool_header), false},
    [DMG_CATALOG_NEXT - DMG_POOL_ALLOCATE] = {handle_catalog_next, EXACTLY(dmg_catalog_two_names_request), true},
    [DMG_CATALOG_REMOVE_UNUSED -
        DMG_POOL_ALLOCATE] = {handle_catalog_remove_unused, EXACTLY(dmg_catalog_two_names_request), true},
};

static dmg_status dispatch(dmg_memory_node *node, const dmg_request *request)
{
    if (request->type < DMG_POOL_ALLOCATE || request->type >= DMG_POOL_MESSAGE_TYPE_END) {
        return dmg_error(DMG_ERR_PROTOCOL, "memory node %u knows no message of type %u", node->node, request->type);
    }
    const message_kind *kind = &message_kinds[request->type - DMG_POOL_ALLOCATE];
    if (request->bytes < kind->bytes_min || request->bytes > kind->bytes_max) {
        return dmg_error(DMG_ERR_PROTOCOL, "a message of type %u has %zu bytes; %zu to %zu are expected", request->type,
                         request->bytes, kind->bytes_min, kind->bytes_max);
    }
    const dmg_pool_header *header = request->payload;
    if (header->version != DMG_POOL_PROTOCOL_VERSION || header->zero != 0) {
        return dmg_error(DMG_ERR_PROTOCOL, "a message has version %u of the protocol; memory node %u speaks version %d",
                         header->version, node->node, DMG_POOL_PROTOCOL_VERSION);
    }
    if (kind->is_for_node_0 && node->node != 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "memory node %u keeps no catalog and no jobs: node 0 does", node->node);
    }
    node->activity.messages++;
    return kind->handle(node, request);
}

static void on_request(void *context, dmg_server *server, const dmg_request *request)
{
    dmg_status status = dispatch(context, request);
    if (status != DMG_OK) {
        const char *sentence = dmg_error_message();
        dmg_log(DMG_LOG_DEBUG, "refused", "client=%016" PRIx64 " type=%u why=\"%s\"", request->client, request->type,
                sentence);
        dmg_server_reply(server, request->reply_token, status, sentence, strlen(sentence));
    }
}

static void on_client_gone(void *context, dmg_server *server, uint64_t client, dmg_status why)
{
    dmg_memory_node *node = context;
    if (node->jobs != NULL) {
        dmg_job_table_client_gone(node->jobs, client, why);
    }
    dmg_node_rights_forget(&node->rights, client);
    dmg_tenancy_client_gone(node->tenancy, client, dmg_server_is_lost(server, client));
}

static const char *on_channel(void *context, dmg_server *server, uint64_t client)
{
    (void)server;
    dmg_memory_node *node = context;
    return dmg_node_rights_check_channels(&node->rights, client) == DMG_OK ? NULL : dmg_error_message();
}

static void on_client_ended(void *context, dmg_server *server, uint64_t client)
{
    (void)server;
    dmg_memory_node *node = context;
    dmg_tenancy_client_ended(node->tenancy, client, settle_job);
}

/* ---- the node ---- */

static bool give_back(void *context, uint64_t offset, uint64_t bytes)
{
    return dmg_server_give_back(context, offset, bytes);
}

/* Between two jobs memory is used again at once; what stays free for a while goes back to the system. */
static bool tidy(void *context, dmg_server *server)
{
    (void)server;
    dmg_memory_node *node = context;
    uint64_t allocated;
    dmg_segment_allocator_usage(node->allocator, &allocated, NULL, NULL);
    uint64_t now_ns = dmg_now_ns();
    if (allocated != node->allocated_before) {
        node->allocated_before = allocated;
        node->changed_ns = now_ns;
    }
    return now_ns - node->changed_ns >= GIVE_BACK_AFTER_NS && dmg_segment_allocator_give_back(node->allocator);
}

/* The allocator runs inside handlers, whose answers follow. */
static void release_zeroed(void *context, uint64_t offset, uint64_t bytes)
{
    dmg_server_release(context, offset, bytes);
}

static dmg_status node_fill(dmg_memory_node *node, const dmg_memory_node_options *options)
{
    dmg_server_options server_options = {
        .transport = options->transport,
        .bind = options->bind,
        .node = options->node,
        .segment = options->segment,
        .peer_timeout_ns = options->peer_timeout_ns,
        .on_request = on_request,
        .on_channel = on_channel,
        .on_client_gone = on_client_gone,
        .on_client_ended = on_client_ended,
        .on_round = tidy,
        .context = node,
    };
    memcpy(server_options.token, options->token, sizeof server_options.token);
    dmg_status status = dmg_server_create(&server_options, &node->server);
    if (status == DMG_OK) {
        uint64_t bytes;
        void *segment = dmg_server_segment(node->server, &bytes);
        status = dmg_segment_allocator_create(segment, bytes, &node->allocator);
    }
    if (status == DMG_OK) {
        dmg_segment_allocator_on_zeroed(node->allocator, release_zeroed, node->server);
        dmg_segment_allocator_on_give_back(node->allocator, give_back, node->server);
    }
    if (status == DMG_OK) {
        status = dmg_tenancy_create(release_job, node, &node->tenancy);
    }
    if (status == DMG_OK) {
        dmg_node_rights_start(&node->rights, node->server, node->tenancy, options->admin, &options->limits);
    }
    if (status == DMG_OK && options->node == 0) {
        status = dmg_catalog_create(&node->catalog);
        if (status == DMG_OK) {
            status = dmg_job_table_create(answer_member, node, &node->jobs);
        }
    }
    return status;
}

dmg_status dmg_memory_node_create(const dmg_memory_node_options *options, dmg_memory_node **node)
{
    *node = NULL;
    dmg_memory_node *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for memory node %u", options->node);
    }
    made->node = options->node;
    dmg_status status = node_fill(made, options);
    if (status != DMG_OK) {
        dmg_memory_node_destroy(made);
        return status;
    }
    *node = made;
    return DMG_OK;
}

void dmg_memory_node_destroy(dmg_memory_node *node)
{
    if (node == NULL) {
        return;
    }
    /* The allocator's arena refers to the segment, which goes with the server. */
    dmg_job_table_destroy(node->jobs);
    dmg_catalog_destroy(node->catalog);
    dmg_tenancy_destroy(node->tenancy);
    dmg_segment_allocator_destroy(node->allocator);
    dmg_server_destroy(node->server);
    free(node);
}

const char *dmg_memory_node_address(const dmg_memory_node *node)
{
    return dmg_server_address(node->server);
}

dmg_placement dmg_memory_node_placement(const dmg_memory_node *node)
{
    return dmg_server_placement(node->server);
}

bool dmg_memory_node_has_files(const dmg_memory_node *node)
{
    return dmg_server_has_files(node->server);
}

dmg_status dmg_memory_node_serve(dmg_memory_node *node)
{
    return dmg_server_serve(node->server);
}

void dmg_memory_node_stop(dmg_memory_node *node)
{
    dmg_server_stop(node->server);
}

void dmg_memory_node_usage(const dmg_memory_node *node, uint64_t *allocated_bytes, uint64_t *peak_bytes)
{
    dmg_segment_allocator_usage(node->allocator, allocated_bytes, peak_bytes, NULL);
}
