#include "core/pool/node_state.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** How long memory has to stay as it is before what is free of it goes back to the system. */
#define GIVE_BACK_AFTER_NS UINT64_C(1000000000)

/* ---- checks and answers ---- */

dmg_status dmg_node_answer(dmg_memory_node *node, const dmg_request *request, const void *payload, size_t bytes)
{
    dmg_server_reply(node->server, request->reply_token, DMG_OK, payload, bytes);
    return DMG_OK;
}

dmg_status dmg_node_check_name(const char *name, size_t capacity, const char *of)
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

dmg_status dmg_node_check_job(const dmg_memory_node *node, uint64_t job, uint64_t client)
{
    if (job != 0 && !dmg_job_references_is_attached(node->references, job, client)) {
        return dmg_error(DMG_ERR_ARGUMENT, "this compute node is not in job %llu", (unsigned long long)job);
    }
    return DMG_OK;
}

/* ---- dispatch ---- */

typedef struct message_kind {
    dmg_node_handler *handle;
    size_t bytes_min;
    size_t bytes_max;
    bool is_for_node_0;
} message_kind;

#define EXACTLY(type) sizeof(type), sizeof(type)

static const message_kind message_kinds[DMG_POOL_MESSAGE_TYPE_END - DMG_POOL_ALLOCATE] = {
    [DMG_POOL_ALLOCATE - DMG_POOL_ALLOCATE] = {dmg_node_handle_allocate, EXACTLY(dmg_pool_allocate_request), false},
    [DMG_POOL_ZERO - DMG_POOL_ALLOCATE] = {dmg_node_handle_zero, EXACTLY(dmg_pool_extent_request), false},
    [DMG_POOL_FREE - DMG_POOL_ALLOCATE] = {dmg_node_handle_free, EXACTLY(dmg_pool_extent_request), false},
    [DMG_POOL_USAGE - DMG_POOL_ALLOCATE] = {dmg_node_handle_usage, EXACTLY(dmg_pool_header), false},
    [DMG_POOL_ATTACH - DMG_POOL_ALLOCATE] = {dmg_node_handle_attach, EXACTLY(dmg_pool_attach_request), false},
    [DMG_POOL_DETACH - DMG_POOL_ALLOCATE] = {dmg_node_handle_detach, EXACTLY(dmg_pool_job_request), false},
    [DMG_POOL_UPDATE -
        DMG_POOL_ALLOCATE] = {dmg_node_handle_update, sizeof(dmg_pool_update_request), DMG_MESSAGE_BYTES_MAX, false},
    [DMG_CATALOG_PUT - DMG_POOL_ALLOCATE] = {dmg_node_handle_catalog_put, sizeof(dmg_catalog_put_request),
                                             sizeof(dmg_catalog_put_request) + DMG_CATALOG_VALUE_BYTES, true},
    [DMG_CATALOG_GET - DMG_POOL_ALLOCATE] = {dmg_node_handle_catalog_get, EXACTLY(dmg_catalog_name_request), true},
    [DMG_CATALOG_REMOVE -
        DMG_POOL_ALLOCATE] = {dmg_node_handle_catalog_remove, EXACTLY(dmg_catalog_name_request), true},
    [DMG_JOB_JOIN - DMG_POOL_ALLOCATE] = {dmg_node_handle_join, EXACTLY(dmg_job_join_request), true},
    [DMG_JOB_TICKET - DMG_POOL_ALLOCATE] = {dmg_node_handle_ticket, EXACTLY(dmg_job_ticket_request), true},
    [DMG_JOB_READY - DMG_POOL_ALLOCATE] = {dmg_node_handle_ready, EXACTLY(dmg_job_member_request), true},
    [DMG_JOB_BARRIER - DMG_POOL_ALLOCATE] = {dmg_node_handle_barrier, EXACTLY(dmg_job_barrier_request), true},
    [DMG_JOB_ABORT - DMG_POOL_ALLOCATE] = {dmg_node_handle_abort, EXACTLY(dmg_job_abort_request), true},
    [DMG_JOB_LEAVE - DMG_POOL_ALLOCATE] = {dmg_node_handle_leave, EXACTLY(dmg_job_member_request), true},
    [DMG_POOL_KEEP - DMG_POOL_ALLOCATE] = {dmg_node_handle_keep, EXACTLY(dmg_pool_job_request), false},
    [DMG_POOL_DROP - DMG_POOL_ALLOCATE] = {dmg_node_handle_drop, EXACTLY(dmg_pool_job_request), false},
    [DMG_POOL_KEPT - DMG_POOL_ALLOCATE] = {dmg_node_handle_kept, EXACTLY(dmg_pool_job_request), false},
    [DMG_POOL_QUARANTINE - DMG_POOL_ALLOCATE] = {dmg_node_handle_quarantine, EXACTLY(dmg_pool_header), false},
    [DMG_POOL_ADMIN - DMG_POOL_ALLOCATE] = {dmg_node_handle_admin, EXACTLY(dmg_pool_admin_request), false},
    [DMG_POOL_LIMITS - DMG_POOL_ALLOCATE] = {dmg_node_handle_limits, EXACTLY(dmg_pool_header), false},
    [DMG_POOL_HOLDING - DMG_POOL_ALLOCATE] = {dmg_node_handle_holding, EXACTLY(dmg_pool_job_request), false},
    [DMG_POOL_ACTIVITY - DMG_POOL_ALLOCATE] = {dmg_node_handle_activity, EXACTLY(dmg_pool_header), false},
    [DMG_CATALOG_NEXT -
        DMG_POOL_ALLOCATE] = {dmg_node_handle_catalog_next, EXACTLY(dmg_catalog_two_names_request), true},
    [DMG_CATALOG_REMOVE_UNUSED -
        DMG_POOL_ALLOCATE] = {dmg_node_handle_catalog_remove_unused, EXACTLY(dmg_catalog_two_names_request), true},
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
    dmg_job_references_client_gone(node->references, client, dmg_server_is_lost(server, client));
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
    dmg_job_references_client_ended(node->references, client, dmg_node_settle_job);
}

/* ---- the node ---- */

static bool give_back(void *context, uint64_t offset, uint64_t bytes)
{
    return dmg_server_give_back(context, offset, bytes);
}

static bool take_back(void *context, uint64_t offset, uint64_t bytes)
{
    return dmg_server_take_back(context, offset, bytes);
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
        status = dmg_segment_allocator_create(segment, bytes, options->arena, &node->allocator);
    }
    if (status == DMG_OK) {
        dmg_segment_allocator_on_zeroed(node->allocator, release_zeroed, node->server);
        dmg_segment_allocator_on_give_back(node->allocator, give_back, node->server);
        if (dmg_server_is_in_files(node->server)) {
            dmg_segment_allocator_on_take_back(node->allocator, take_back, node->server);
        }
    }
    if (status == DMG_OK) {
        status = dmg_job_references_create(dmg_node_release_job, node, &node->references);
    }
    if (status == DMG_OK) {
        dmg_node_rights_start(&node->rights, node->server, node->references, options->admin, &options->limits);
    }
    if (status == DMG_OK && options->node == 0) {
        status = dmg_catalog_create(&node->catalog);
        if (status == DMG_OK) {
            status = dmg_job_table_create(dmg_node_answer_member, node, &node->jobs);
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
    dmg_job_references_destroy(node->references);
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
