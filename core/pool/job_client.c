/*
 * Joining and leaving a job, as a compute node does it.
 *
 * Joining takes four steps: join at node 0 (answered when all have come, with the job's id); be given a ticket there;
 * attach with it at every memory node; tell node 0 and wait until all have attached. So no member can leave a memory
 * node, and have the job released there, before the others are known to it.
 */
#include "core/base/error.h"
#include "core/pool/pool.h"
#include "core/pool/pool_call.h"
#include "core/pool/protocol.h"

#include <stdio.h>
#include <string.h>

static dmg_status call_member(dmg_channel *channel, uint32_t type, const dmg_job *job)
{
    dmg_job_member_request request = {.header = dmg_pool_header_make(), .job = job->id, .rank = job->rank};
    return dmg_pool_call_exact(channel, 0, type, &request, sizeof request, NULL, 0);
}

static dmg_status call_about_job(dmg_channel *channel, uint16_t node, uint32_t type, const dmg_job *job)
{
    dmg_pool_job_request request = {.header = dmg_pool_header_make(), .job = job->id};
    return dmg_pool_call_exact(channel, node, type, &request, sizeof request, NULL, 0);
}

/* Be given a ticket for a job whose secret this client knows, and attach at all nodes: at so many, when it fails. */
static dmg_status attach_everywhere(dmg_channel *channel, uint64_t job, const uint8_t secret[DMG_SECRET_BYTES],
                                    uint32_t *attached)
{
    dmg_job_ticket_request wanted = {.header = dmg_pool_header_make(), .job = job};
    dmg_pool_attach_request request = {.header = dmg_pool_header_make()};
    memcpy(wanted.secret, secret, sizeof wanted.secret);
    *attached = 0;
    dmg_status status =
        dmg_pool_call_exact(channel, 0, DMG_JOB_TICKET, &wanted, sizeof wanted, &request.ticket, sizeof request.ticket);
    uint32_t node_count = dmg_client_node_count(dmg_channel_client(channel));
    while (status == DMG_OK && *attached < node_count) {
        status = dmg_pool_call_exact(channel, (uint16_t)*attached, DMG_POOL_ATTACH, &request, sizeof request, NULL, 0);
        *attached += status == DMG_OK;
    }
    return status;
}

/* Detach from nodes [0, attached), and leave. Goes on after an error; returns the first one, with its sentence. */
static dmg_status job_quit(dmg_channel *channel, const dmg_job *job, uint32_t attached)
{
    dmg_kept_error first = {0};
    for (uint32_t step = 0; step <= attached; step++) {
        dmg_status status = step < attached ? call_about_job(channel, (uint16_t)step, DMG_POOL_DETACH, job)
                                            : call_member(channel, DMG_JOB_LEAVE, job);
        dmg_error_keep(&first, status);
    }
    return dmg_error_restore(&first);
}

static dmg_status job_join(dmg_channel *channel, uint64_t parent, const dmg_job_pass *pass, const char *name,
                           uint32_t rank, uint32_t size, dmg_job *job)
{
    memset(job, 0, sizeof *job);
    dmg_job_join_request request = {
        .header = dmg_pool_header_make(), .rank = rank, .size = size, .parent = parent, .pass = *pass};
    dmg_job_join_reply reply;
    dmg_status status = dmg_pool_name_copy(request.name, sizeof request.name, name, "a job");
    if (status == DMG_OK) {
        status = dmg_pool_call_exact(channel, 0, DMG_JOB_JOIN, &request, sizeof request, &reply, sizeof reply);
    }
    if (status != DMG_OK) {
        return status;
    }
    dmg_job joined = {.id = reply.job, .rank = rank, .size = size};
    uint32_t attached;
    memcpy(joined.secret, pass->secret, sizeof joined.secret);
    status = attach_everywhere(channel, joined.id, joined.secret, &attached);
    if (status == DMG_OK) {
        status = call_member(channel, DMG_JOB_READY, &joined);
    }
    if (status != DMG_OK) {
        dmg_kept_error kept = {0};
        dmg_error_keep(&kept, status);
        (void)job_quit(channel, &joined, attached);
        return dmg_error_restore(&kept);
    }
    *job = joined;
    return DMG_OK;
}

dmg_status dmg_job_join(dmg_channel *channel, const dmg_job_pass *pass, const char *name, uint32_t rank, uint32_t size,
                        dmg_job *job)
{
    return job_join(channel, 0, pass, name, rank, size, job);
}

dmg_status dmg_job_join_within(dmg_channel *channel, const dmg_job *parent, const char *name, dmg_job *job)
{
    dmg_job_pass pass = {0};
    memcpy(pass.secret, parent->secret, sizeof pass.secret);
    return job_join(channel, parent->id, &pass, name, parent->rank, parent->size, job);
}

dmg_status dmg_job_barrier(dmg_channel *channel, dmg_job *job, dmg_reduction *reduction)
{
    dmg_job_barrier_request request = {
        .header = dmg_pool_header_make(),
        .job = job->id,
        .rank = job->rank,
        .has_reduction = reduction != NULL,
        .epoch = job->barriers,
    };
    dmg_reduction reduced;
    if (reduction != NULL) {
        request.reduction = *reduction;
    }
    dmg_status status =
        dmg_pool_call_exact(channel, 0, DMG_JOB_BARRIER, &request, sizeof request, &reduced, sizeof reduced);
    if (status != DMG_OK) {
        return status;
    }
    job->barriers++;
    if (reduction != NULL) {
        *reduction = reduced;
    }
    return DMG_OK;
}

dmg_status dmg_job_abort(dmg_channel *channel, dmg_job *job, dmg_status status, const char *sentence,
                         dmg_job_failure *first)
{
    dmg_job_abort_request request = {
        .header = dmg_pool_header_make(), .job = job->id, .rank = job->rank, .status = (uint32_t)status};
    /* The sentence may be our own error context, and may be longer than what travels. */
    snprintf(request.sentence, sizeof request.sentence, "%s", sentence);
    dmg_job_failure told;
    dmg_status called = dmg_pool_call_exact(channel, 0, DMG_JOB_ABORT, &request, sizeof request, &told, sizeof told);
    bool is_sound = called == DMG_OK && told.status != DMG_OK && told.status < DMG_STATUS_COUNT &&
                    (told.rank < job->size || told.rank == DMG_JOB_NO_RANK) &&
                    memchr(told.sentence, 0, sizeof told.sentence) != NULL;
    if (first != NULL && is_sound) {
        *first = told;
    } else if (first != NULL) {
        *first = (dmg_job_failure){.status = (uint32_t)status, .rank = job->rank};
        memcpy(first->sentence, request.sentence, sizeof first->sentence);
    }
    return called;
}

dmg_status dmg_job_failure_error(const dmg_job_failure *failure, uint32_t own)
{
    if (failure->rank == own || failure->rank == DMG_JOB_NO_RANK) {
        return dmg_error((dmg_status)failure->status, "%s", failure->sentence);
    }
    return dmg_error((dmg_status)failure->status, "compute node %u: %s", failure->rank, failure->sentence);
}

dmg_status dmg_job_leave(dmg_channel *channel, dmg_job *job)
{
    dmg_status status = job_quit(channel, job, dmg_client_node_count(dmg_channel_client(channel)));
    memset(job, 0, sizeof *job);
    return status;
}

dmg_status dmg_job_attach(dmg_channel *channel, uint64_t id, const uint8_t secret[DMG_SECRET_BYTES])
{
    const dmg_job job = {.id = id};
    uint32_t attached;
    dmg_status status = attach_everywhere(channel, id, secret, &attached);
    if (status == DMG_OK) {
        return DMG_OK;
    }
    dmg_kept_error kept = {0};
    dmg_error_keep(&kept, status);
    while (attached-- > 0) {
        (void)call_about_job(channel, (uint16_t)attached, DMG_POOL_DETACH, &job);
    }
    return dmg_error_restore(&kept);
}

dmg_status dmg_job_detach(dmg_channel *channel, uint64_t id)
{
    const dmg_job job = {.id = id};
    dmg_status first = DMG_OK;
    for (uint32_t node = 0; node < dmg_client_node_count(dmg_channel_client(channel)); node++) {
        dmg_status status = call_about_job(channel, (uint16_t)node, DMG_POOL_DETACH, &job);
        first = first == DMG_OK ? status : first;
    }
    return first;
}
