#include "core/pool/pool.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/pool/pool_call.h"
#include "core/pool/protocol.h"
#include "core/pool/segment_allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- calls ---- */

dmg_status dmg_pool_call(dmg_channel *channel, uint16_t node, uint32_t type, const void *request, size_t bytes,
                         void *reply, size_t *reply_bytes)
{
    uint32_t node_count = dmg_client_node_count(dmg_channel_client(channel));
    if (node >= node_count) {
        return dmg_error(DMG_ERR_ARGUMENT, "there is no memory node %u in a pool of %u", node, node_count);
    }
    dmg_call call = {.reply = reply, .reply_capacity = *reply_bytes};
    dmg_status status = dmg_message(channel, node, type, request, bytes, &call);
    *reply_bytes = status == DMG_OK ? call.reply_bytes : 0;
    return status;
}

dmg_status dmg_pool_call_exact(dmg_channel *channel, uint16_t node, uint32_t type, const void *request, size_t bytes,
                               void *reply, size_t reply_bytes)
{
    size_t received = reply_bytes;
    dmg_status status = dmg_pool_call(channel, node, type, request, bytes, reply, &received);
    if (status == DMG_OK && received != reply_bytes) {
        return dmg_error(DMG_ERR_PROTOCOL, "memory node %u answered a message of type %u with %zu bytes instead of %zu",
                         node, type, received, reply_bytes);
    }
    return status;
}

dmg_status dmg_pool_name_copy(char *field, size_t capacity, const char *name, const char *of)
{
    size_t length = name == NULL ? 0 : strnlen(name, capacity);
    if (length == 0 || length == capacity) {
        return dmg_error(DMG_ERR_ARGUMENT, "the name of %s has 1 to %zu bytes", of, capacity - 1);
    }
    memcpy(field, name, length);
    memset(field + length, 0, capacity - length);
    return DMG_OK;
}

/* ---- memory ---- */

static dmg_status extent_zero(dmg_channel *channel, uint16_t node, uint64_t offset, uint64_t dirty_left)
{
    while (dirty_left != 0) {
        dmg_pool_extent_request request = {.header = dmg_pool_header_make(), .offset = offset};
        dmg_pool_zero_reply reply;
        dmg_status status =
            dmg_pool_call_exact(channel, node, DMG_POOL_ZERO, &request, sizeof request, &reply, sizeof reply);
        if (status != DMG_OK) {
            return status;
        }
        if (reply.dirty_left >= dirty_left) {
            return dmg_error(DMG_ERR_PROTOCOL, "memory node %u makes no progress at zeroing an extent", node);
        }
        dirty_left = reply.dirty_left;
    }
    return DMG_OK;
}

dmg_status dmg_pool_allocate(dmg_channel *channel, uint16_t node, uint64_t job, uint64_t bytes, dmg_address *address)
{
    *address = DMG_ADDRESS_NULL;
    dmg_pool_allocate_request request = {.header = dmg_pool_header_make(), .job = job, .bytes = bytes};
    dmg_pool_allocate_reply reply;
    dmg_status status =
        dmg_pool_call_exact(channel, node, DMG_POOL_ALLOCATE, &request, sizeof request, &reply, sizeof reply);
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "allocating %llu bytes on memory node %u", (unsigned long long)bytes, node);
    }
    uint64_t segment_bytes = dmg_client_segment_bytes(dmg_channel_client(channel), node);
    if (reply.offset < DMG_SEGMENT_HEADER_BYTES || !dmg_range_is_inside(reply.offset, bytes, segment_bytes)) {
        return dmg_error(DMG_ERR_PROTOCOL, "memory node %u handed out %llu bytes at offset %llu of a segment of %llu",
                         node, (unsigned long long)bytes, (unsigned long long)reply.offset,
                         (unsigned long long)segment_bytes);
    }
    status = extent_zero(channel, node, reply.offset, reply.dirty_left);
    if (status == DMG_OK) {
        *address = dmg_address_make(node, reply.offset);
    }
    return status;
}

dmg_status dmg_pool_free(dmg_channel *channel, dmg_address address)
{
    dmg_pool_extent_request request = {.header = dmg_pool_header_make(), .offset = dmg_address_offset(address)};
    return dmg_pool_call_exact(channel, dmg_address_node(address), DMG_POOL_FREE, &request, sizeof request, NULL, 0);
}

dmg_status dmg_pool_usage(dmg_channel *channel, uint16_t node, uint64_t *allocated, uint64_t *peak, uint64_t *total)
{
    dmg_pool_header request = dmg_pool_header_make();
    dmg_pool_usage_reply reply;
    dmg_status status =
        dmg_pool_call_exact(channel, node, DMG_POOL_USAGE, &request, sizeof request, &reply, sizeof reply);
    if (status == DMG_OK) {
        *allocated = reply.allocated;
        *peak = reply.peak;
        *total = reply.total;
    }
    return status;
}

dmg_status dmg_pool_quarantine(dmg_channel *channel, uint16_t node, dmg_pool_quarantined *quarantined)
{
    dmg_pool_header request = dmg_pool_header_make();
    return dmg_pool_call_exact(channel, node, DMG_POOL_QUARANTINE, &request, sizeof request, quarantined,
                               sizeof *quarantined);
}

dmg_status dmg_pool_activity(dmg_channel *channel, uint16_t node, dmg_node_activity *activity)
{
    dmg_pool_header request = dmg_pool_header_make();
    return dmg_pool_call_exact(channel, node, DMG_POOL_ACTIVITY, &request, sizeof request, activity, sizeof *activity);
}

void dmg_node_activity_subtract(dmg_node_activity *later, const dmg_node_activity *earlier)
{
    later->serve_cpu_ns -= earlier->serve_cpu_ns;
    later->offload_cpu_ns -= earlier->offload_cpu_ns;
    later->process_cpu_ns -= earlier->process_cpu_ns;
    later->messages -= earlier->messages;
    later->update_messages -= earlier->update_messages;
    later->updates -= earlier->updates;
    later->applied -= earlier->applied;
}

/* ---- rights ---- */

static bool is_text(const char *text, size_t capacity)
{
    return memchr(text, 0, capacity) != NULL;
}

dmg_status dmg_pool_holding_next(dmg_channel *channel, uint16_t node, uint64_t after, dmg_pool_holding *holding)
{
    dmg_pool_job_request request = {.header = dmg_pool_header_make(), .job = after};
    dmg_status status =
        dmg_pool_call_exact(channel, node, DMG_POOL_HOLDING, &request, sizeof request, holding, sizeof *holding);
    if (status == DMG_OK &&
        ((holding->job != 0 && holding->job <= after) || !is_text(holding->name, sizeof holding->name) ||
         !is_text(holding->owner.user_name, sizeof holding->owner.user_name) ||
         !is_text(holding->owner.host, sizeof holding->owner.host))) {
        status = dmg_error(DMG_ERR_PROTOCOL, "memory node %u lists its jobs out of order, or without names", node);
    }
    return status;
}

dmg_status dmg_pool_ask_limits(dmg_channel *channel, uint16_t node, dmg_pool_limits *limits,
                               dmg_pool_refusals *refusals, uint64_t *descriptors_left)
{
    dmg_pool_header request = dmg_pool_header_make();
    dmg_pool_limits_reply reply;
    dmg_status status =
        dmg_pool_call_exact(channel, node, DMG_POOL_LIMITS, &request, sizeof request, &reply, sizeof reply);
    if (status == DMG_OK && limits != NULL) {
        *limits = reply.limits;
    }
    if (status == DMG_OK && refusals != NULL) {
        *refusals = reply.refusals;
    }
    if (status == DMG_OK && descriptors_left != NULL) {
        *descriptors_left = reply.descriptors_left;
    }
    return status;
}

dmg_status dmg_pool_administer(dmg_channel *channel, const uint8_t admin[DMG_SECRET_BYTES])
{
    const dmg_client *client = dmg_channel_client(channel);
    dmg_pool_admin_request request = {.header = dmg_pool_header_make()};
    dmg_status status = DMG_OK;
    dmg_admin_show(admin, dmg_client_id(client), request.shown);
    for (uint32_t node = 0; node < dmg_client_node_count(client) && status == DMG_OK; node++) {
        status = dmg_pool_call_exact(channel, (uint16_t)node, DMG_POOL_ADMIN, &request, sizeof request, NULL, 0);
    }
    return status;
}

/* ---- what jobs leave behind ---- */

/* The same request about a job to every node; the answers are added up. Goes on after an error, and returns the first
 * one. */
static dmg_status call_all(dmg_channel *channel, uint32_t type, uint64_t job, uint64_t *bytes)
{
    dmg_pool_job_request request = {.header = dmg_pool_header_make(), .job = job};
    dmg_kept_error first = {0};
    uint64_t sum = 0;
    for (uint32_t node = 0; node < dmg_client_node_count(dmg_channel_client(channel)); node++) {
        dmg_pool_bytes_reply reply = {0};
        dmg_status status =
            dmg_pool_call_exact(channel, (uint16_t)node, type, &request, sizeof request, &reply, sizeof reply);
        sum += status == DMG_OK ? reply.bytes : 0; /* else there is a sentence */
        dmg_error_keep(&first, status);
    }
    if (bytes != NULL) {
        *bytes = sum;
    }
    return dmg_error_restore(&first);
}

dmg_status dmg_pool_keep(dmg_channel *channel, uint64_t job, uint64_t *bytes)
{
    return call_all(channel, DMG_POOL_KEEP, job, bytes);
}

dmg_status dmg_pool_drop(dmg_channel *channel, uint64_t job, uint64_t *bytes)
{
    return call_all(channel, DMG_POOL_DROP, job, bytes);
}

dmg_status dmg_pool_kept(dmg_channel *channel, uint16_t node, uint64_t after, uint64_t *job)
{
    dmg_pool_job_request request = {.header = dmg_pool_header_make(), .job = after};
    dmg_pool_kept_reply reply = {0};
    dmg_status status =
        dmg_pool_call_exact(channel, node, DMG_POOL_KEPT, &request, sizeof request, &reply, sizeof reply);
    if (status == DMG_OK && reply.job != 0 && reply.job <= after) {
        status = dmg_error(DMG_ERR_PROTOCOL, "memory node %u lists its jobs out of order", node);
    }
    *job = status == DMG_OK ? reply.job : 0;
    return status;
}

/* ---- catalog ---- */

dmg_status dmg_catalog_put(dmg_channel *channel, uint64_t job, const char *name, const void *value, size_t bytes)
{
    if (bytes > DMG_CATALOG_VALUE_BYTES) {
        return dmg_error(DMG_ERR_LIMIT,
                         "a catalog entry holds at most %d bytes, not %zu: put larger things into the pool",
                         DMG_CATALOG_VALUE_BYTES, bytes);
    }
    struct {
        dmg_catalog_put_request request;
        char value[DMG_CATALOG_VALUE_BYTES];
    } message = {.request = {.header = dmg_pool_header_make(), .job = job, .bytes = bytes}};
    dmg_status status = dmg_pool_name_copy(message.request.name, sizeof message.request.name, name, "a catalog entry");
    if (status != DMG_OK) {
        return status;
    }
    if (bytes > 0) {
        memcpy(message.value, value, bytes);
    }
    return dmg_pool_call_exact(channel, 0, DMG_CATALOG_PUT, &message, sizeof message.request + bytes, NULL, 0);
}

dmg_status dmg_catalog_get(dmg_channel *channel, const char *name, void *value, size_t *bytes)
{
    dmg_catalog_name_request request = {.header = dmg_pool_header_make()};
    dmg_status status = dmg_pool_name_copy(request.name, sizeof request.name, name, "a catalog entry");
    if (status != DMG_OK) {
        return status;
    }
    char received[DMG_CATALOG_VALUE_BYTES];
    size_t received_bytes = sizeof received;
    status = dmg_pool_call(channel, 0, DMG_CATALOG_GET, &request, sizeof request, received, &received_bytes);
    if (status != DMG_OK) {
        return status;
    }
    size_t capacity = *bytes;
    *bytes = received_bytes;
    if (received_bytes > capacity) {
        return dmg_error(DMG_ERR_LIMIT, "the catalog entry \"%s\" has %zu bytes, and there is room for %zu", name,
                         received_bytes, capacity);
    }
    if (received_bytes > 0) {
        memcpy(value, received, received_bytes);
    }
    return DMG_OK;
}

dmg_status dmg_catalog_remove(dmg_channel *channel, const char *name)
{
    dmg_catalog_name_request request = {.header = dmg_pool_header_make()};
    dmg_status status = dmg_pool_name_copy(request.name, sizeof request.name, name, "a catalog entry");
    if (status != DMG_OK) {
        return status;
    }
    return dmg_pool_call_exact(channel, 0, DMG_CATALOG_REMOVE, &request, sizeof request, NULL, 0);
}

dmg_status dmg_catalog_remove_unused(dmg_channel *channel, const char *name, const char *prefix)
{
    dmg_catalog_two_names_request request = {.header = dmg_pool_header_make()};
    dmg_status status = dmg_pool_name_copy(request.name, sizeof request.name, name, "a catalog entry");
    if (status == DMG_OK) {
        status = dmg_pool_name_copy(request.prefix, sizeof request.prefix, prefix, "a catalog entry's user");
    }
    if (status != DMG_OK) {
        return status;
    }
    return dmg_pool_call_exact(channel, 0, DMG_CATALOG_REMOVE_UNUSED, &request, sizeof request, NULL, 0);
}

dmg_status dmg_catalog_next(dmg_channel *channel, const char *prefix, char name[DMG_CATALOG_NAME_BYTES])
{
    dmg_catalog_two_names_request request = {.header = dmg_pool_header_make()};
    char next[DMG_CATALOG_NAME_BYTES] = "";
    size_t bytes = sizeof next - 1;
    dmg_status status = dmg_pool_name_copy(request.prefix, sizeof request.prefix, prefix, "catalog entries");
    if (status != DMG_OK) {
        return status;
    }
    memcpy(request.name, name, strnlen(name, sizeof request.name - 1));
    status = dmg_pool_call(channel, 0, DMG_CATALOG_NEXT, &request, sizeof request, next, &bytes);
    if (status != DMG_OK) {
        return status;
    }
    next[bytes] = '\0';
    if (next[0] != '\0' && (strcmp(next, name) <= 0 || strncmp(next, prefix, strlen(prefix)) != 0)) {
        return dmg_error(DMG_ERR_PROTOCOL, "memory node 0 lists the catalog out of order");
    }
    memcpy(name, next, sizeof next);
    return DMG_OK;
}
