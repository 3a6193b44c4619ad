/* The messages about jobs, which node 0 keeps, about who is in them, and about what they may. */
#include "core/pool/node_state.h"

#include "core/base/descriptors.h"
#include "core/base/error.h"
#include "core/base/log.h"

#include <inttypes.h>
#include <string.h>

/* ---- members ---- */

void dmg_node_answer_member(void *context, uint64_t reply_token, dmg_status status, const void *payload, size_t bytes)
{
    dmg_memory_node *node = context;
    dmg_server_reply(node->server, reply_token, status, payload, bytes);
}

dmg_status dmg_node_handle_join(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_job_join_request *asked = request->payload;
    dmg_status status = dmg_node_check_name(asked->name, sizeof asked->name, "a job");
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

dmg_status dmg_node_handle_ticket(dmg_memory_node *node, const dmg_request *request)
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
    return dmg_node_answer(node, request, &ticket, sizeof ticket);
}

dmg_status dmg_node_handle_ready(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_job_member_request *asked = request->payload;
    return dmg_job_table_ready(node->jobs, request->client, request->reply_token, asked->job, asked->rank);
}

dmg_status dmg_node_handle_barrier(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_job_barrier_request *asked = request->payload;
    if (asked->has_reduction > 1) {
        return dmg_error(DMG_ERR_PROTOCOL, "a request for a barrier has %u where 0 or 1 is expected",
                         asked->has_reduction);
    }
    return dmg_job_table_barrier(node->jobs, request->client, request->reply_token, asked->job, asked->rank,
                                 asked->epoch, asked->has_reduction ? &asked->reduction : NULL);
}

dmg_status dmg_node_handle_abort(dmg_memory_node *node, const dmg_request *request)
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
    return status != DMG_OK ? status : dmg_node_answer(node, request, &first, sizeof first);
}

dmg_status dmg_node_handle_leave(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_job_member_request *asked = request->payload;
    dmg_status status = dmg_job_table_leave(node->jobs, request->client, asked->job, asked->rank);
    return status != DMG_OK ? status : dmg_node_answer(node, request, NULL, 0);
}

/* ---- attachments ---- */

dmg_status dmg_node_handle_attach(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_attach_request *asked = request->payload;
    dmg_status status = dmg_node_rights_attach(&node->rights, &asked->ticket, request->client);
    return status != DMG_OK ? status : dmg_node_answer(node, request, NULL, 0);
}

dmg_status dmg_node_handle_detach(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_job_request *asked = request->payload;
    dmg_status status = dmg_job_references_detach(node->references, asked->job, request->client);
    return status != DMG_OK ? status : dmg_node_answer(node, request, NULL, 0);
}

/* ---- rights ---- */

dmg_status dmg_node_handle_admin(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_admin_request *asked = request->payload;
    dmg_status status = dmg_node_rights_administer(&node->rights, asked->shown, request->client);
    if (status == DMG_OK) {
        dmg_log(DMG_LOG_INFO, "admin_came", "node=%u client=%016" PRIx64 " client_pid=%d", node->node, request->client,
                dmg_server_client_pid(node->server, request->client));
    }
    return status != DMG_OK ? status : dmg_node_answer(node, request, NULL, 0);
}

dmg_status dmg_node_handle_limits(dmg_memory_node *node, const dmg_request *request)
{
    dmg_pool_limits_reply reply = {
        .limits = node->rights.limits, .refusals = node->rights.refusals, .descriptors_left = dmg_descriptors_left()};
    return dmg_node_answer(node, request, &reply, sizeof reply);
}

dmg_status dmg_node_handle_holding(dmg_memory_node *node, const dmg_request *request)
{
    const dmg_pool_job_request *asked = request->payload;
    dmg_pool_holding reply = {0};
    const dmg_job_reference *reference = dmg_job_references_next(node->references, asked->job);
    if (reference != NULL) {
        reply = (dmg_pool_holding){
            .job = reference->job,
            .owner = reference->owner,
            .bytes = dmg_segment_allocator_job_bytes(node->allocator, reference->job),
            .quarantined_bytes = dmg_segment_allocator_quarantined_bytes(node->allocator, reference->job),
            .channels = dmg_node_rights_channels(&node->rights, reference->job),
            .lost = reference->lost,
            .is_kept = reference->is_kept,
        };
        memcpy(reply.name, reference->name, sizeof reply.name);
        uint32_t position = 0;
        uint64_t client;
        while (dmg_job_references_next_client(node->references, reference->job, &position, &client)) {
            reply.clients++;
        }
    }
    return dmg_node_answer(node, request, &reply, sizeof reply);
}
