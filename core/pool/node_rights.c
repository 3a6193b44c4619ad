#include "core/pool/node_rights.h"

#include "core/base/error.h"
#include "core/pool/segment_allocator.h"

#include <string.h>

void dmg_node_rights_start(dmg_node_rights *rights, dmg_server *server, dmg_job_references *references,
                           const uint8_t admin[DMG_SECRET_BYTES], const dmg_pool_limits *limits)
{
    *rights = (dmg_node_rights){
        .server = server, .references = references, .key = dmg_ticket_key_make(admin), .limits = *limits};
    memcpy(rights->admin, admin, sizeof rights->admin);
}

/* ---- admins ---- */

static bool is_admin(const dmg_node_rights *rights, uint64_t client)
{
    for (uint32_t index = 0; index < rights->admin_count; index++) {
        if (rights->admins[index] == client) {
            return true;
        }
    }
    return false;
}

dmg_status dmg_node_rights_administer(dmg_node_rights *rights, const uint8_t shown[DMG_SECRET_BYTES], uint64_t client)
{
    uint8_t expected[DMG_SECRET_BYTES];
    dmg_admin_show(rights->admin, client, expected);
    if (!dmg_secret_is_equal(shown, expected)) {
        rights->refusals.rights++;
        return dmg_error(DMG_ERR_DENIED, "that is not the pool's admin secret");
    }
    if (is_admin(rights, client)) {
        return DMG_OK;
    }
    if (rights->admin_count == DMG_NODE_ADMINS_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "a memory node has at most %d admins at once", DMG_NODE_ADMINS_MAX);
    }
    rights->admins[rights->admin_count++] = client;
    return DMG_OK;
}

void dmg_node_rights_forget(dmg_node_rights *rights, uint64_t client)
{
    for (uint32_t index = rights->admin_count; index-- > 0;) {
        if (rights->admins[index] == client) {
            rights->admins[index] = rights->admins[--rights->admin_count];
        }
    }
}

/* ---- whose it is ---- */

/* Whether the client is in a job of this identity. */
static bool is_behind(const dmg_node_rights *rights, const dmg_pool_owner *owner, uint64_t client)
{
    uint32_t position = 0;
    const dmg_job_reference *reference = dmg_job_references_next_of_client(rights->references, client, &position);
    while (reference != NULL && !dmg_owner_is_same(&reference->owner, owner)) {
        reference = dmg_job_references_next_of_client(rights->references, client, &position);
    }
    return reference != NULL;
}

static dmg_status deny(dmg_node_rights *rights, const dmg_pool_owner *owner)
{
    rights->refusals.rights++;
    return dmg_error(DMG_ERR_DENIED, "it belongs to %s, who alone may do that, with the pool's admin",
                     dmg_owner_print(owner).text);
}

dmg_status dmg_node_rights_check_job(dmg_node_rights *rights, uint64_t job, uint64_t client)
{
    static const dmg_pool_owner nobody;
    const dmg_job_reference *reference = dmg_job_references_find(rights->references, job);
    bool may = dmg_job_references_is_attached(rights->references, job, client) ||
               (reference != NULL && is_behind(rights, &reference->owner, client)) || is_admin(rights, client);
    return may ? DMG_OK : deny(rights, reference != NULL ? &reference->owner : &nobody);
}

dmg_status dmg_node_rights_check_entry(dmg_node_rights *rights, const dmg_catalog_owner *owner, uint64_t client)
{
    bool may = owner->client == client ||
               (owner->job != 0 && dmg_job_references_is_attached(rights->references, owner->job, client)) ||
               is_behind(rights, &owner->owner, client) || is_admin(rights, client);
    return may ? DMG_OK : deny(rights, &owner->owner);
}

dmg_pool_owner dmg_node_rights_owner_of(const dmg_node_rights *rights, uint64_t client)
{
    uint32_t position = 0;
    const dmg_job_reference *reference = dmg_job_references_next_of_client(rights->references, client, &position);
    return reference != NULL ? reference->owner : (dmg_pool_owner){0};
}

/* ---- how much of it ---- */

dmg_status dmg_node_rights_check_size(dmg_node_rights *rights, const char *job_name, uint32_t size)
{
    if (rights->limits.job_clients == 0 || size <= rights->limits.job_clients) {
        return DMG_OK;
    }
    rights->refusals.clients++;
    return dmg_error(DMG_ERR_LIMIT,
                     "the job \"%s\" wants %u compute nodes, and the pool lets one job have %u: take fewer", job_name,
                     size, rights->limits.job_clients);
}

dmg_status dmg_node_rights_check_memory(dmg_node_rights *rights, uint64_t held_bytes, uint32_t extents,
                                        uint64_t more_bytes)
{
    uint64_t limit = rights->limits.job_memory_bytes;
    if (extents >= DMG_SEGMENT_EXTENTS_MAX / DMG_NODE_SHARE_OF_ONE) {
        rights->refusals.memory++;
        return dmg_error(DMG_ERR_LIMIT, "one job has at most %d extents of a memory node: allocate larger ones",
                         DMG_SEGMENT_EXTENTS_MAX / DMG_NODE_SHARE_OF_ONE);
    }
    if (limit == 0 || (held_bytes <= limit && more_bytes <= limit - held_bytes)) {
        return DMG_OK;
    }
    rights->refusals.memory++;
    return dmg_error(DMG_ERR_LIMIT,
                     "no %llu bytes more for this job: it has %llu, and the pool lets one job have %llu of each memory "
                     "node",
                     (unsigned long long)more_bytes, (unsigned long long)held_bytes, (unsigned long long)limit);
}

uint32_t dmg_node_rights_channels(const dmg_node_rights *rights, uint64_t job)
{
    uint32_t position = 0;
    uint32_t channels = 0;
    uint64_t client;
    while (dmg_job_references_next_client(rights->references, job, &position, &client)) {
        channels += dmg_server_client_channels(rights->server, client);
    }
    return channels;
}

static dmg_status check_channels(dmg_node_rights *rights, uint32_t channels)
{
    if (rights->limits.job_channels == 0 || channels <= rights->limits.job_channels) {
        return DMG_OK;
    }
    rights->refusals.channels++;
    return dmg_error(DMG_ERR_LIMIT,
                     "this job has more channels than the pool lets one job have, %u: take fewer compute nodes or "
                     "threads",
                     rights->limits.job_channels);
}

dmg_status dmg_node_rights_check_channels(dmg_node_rights *rights, uint64_t client)
{
    uint32_t position = 0;
    dmg_status status = check_channels(rights, dmg_server_client_channels(rights->server, client));
    const dmg_job_reference *reference = dmg_job_references_next_of_client(rights->references, client, &position);
    while (status == DMG_OK && reference != NULL) {
        status = check_channels(rights, dmg_node_rights_channels(rights, reference->job));
        reference = dmg_job_references_next_of_client(rights->references, client, &position);
    }
    return status;
}

dmg_status dmg_node_rights_attach(dmg_node_rights *rights, const dmg_job_ticket *ticket, uint64_t client)
{
    dmg_status status = dmg_ticket_check(&rights->key, ticket, client);
    if (status != DMG_OK) {
        rights->refusals.rights++;
        return status;
    }
    const dmg_job_reference *reference = dmg_job_references_find(rights->references, ticket->job);
    uint32_t clients_max = rights->limits.job_clients;
    if (clients_max > 0 && reference != NULL && reference->attached >= clients_max + DMG_NODE_VISITORS_MAX) {
        rights->refusals.clients++;
        return dmg_error(DMG_ERR_LIMIT, "job %llu has as many members as the pool lets one job have, %u",
                         (unsigned long long)ticket->job, reference->attached);
    }
    bool is_in_it = dmg_job_references_is_attached(rights->references, ticket->job, client);
    status = check_channels(rights, dmg_node_rights_channels(rights, ticket->job) +
                                        (is_in_it ? 0 : dmg_server_client_channels(rights->server, client)));
    return status == DMG_OK
               ? dmg_job_references_attach(rights->references, ticket->job, ticket->name, &ticket->owner, client)
               : status;
}
