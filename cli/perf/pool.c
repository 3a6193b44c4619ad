#include "core/pool/pool.h"
#include "cli/base/descriptors.h"
#include "cli/base/text.h"
#include "cli/launcher/control.h"
#include "cli/launcher/segments.h"
#include "cli/options/link_options.h"
#include "cli/perf/perf.h"
#include "cli/pool/client.h"
#include "core/base/error.h"
#include "core/pool/token.h"

#include <string.h>

/** The segment also holds what the memory node itself keeps. */
#define SEGMENT_BYTES (DMG_PERF_REGION_BYTES + (UINT64_C(16) << 20))
#define PAGE_BYTES    4096

static dmg_status take_message(void *context, dmg_child *child, json_t *message)
{
    dmg_perf_pool *pool = context;
    const char *address = NULL;
    (void)child;
    if (!message || strcmp(dmg_control_type(message), "address") != 0) {
        return DMG_OK; /* beats, and how much memory was used */
    }
    dmg_status status = dmg_control_unpack(message, "{s:s}", "address", &address);
    if (status == DMG_OK && (!*address || strlen(address) >= sizeof pool->address)) {
        status = dmg_error(DMG_ERR_PROTOCOL, "the memory node gave an impossible address");
    }
    if (status == DMG_OK) {
        memcpy(pool->address, address, strlen(address) + 1);
        status = dmg_placement_from_json(json_object_get(message, "segment"), &pool->placement);
    }
    return status;
}

static bool has_address(void *context)
{
    const dmg_perf_pool *pool = context;
    return pool->address[0] != '\0';
}

static json_t *setup_of(const dmg_perf_pool *pool)
{
    const dmg_settings *settings = pool->settings;
    char token[DMG_TOKEN_TEXT_BYTES];
    char admin[DMG_SECRET_TEXT_BYTES];
    dmg_token_write(pool->token, token);
    dmg_secret_write(pool->admin, admin);
    json_t *setup = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:I}", "type", "setup", "token", token, "admin", admin,
                              "peer_timeout_ns", (json_int_t)dmg_number(settings, DMG_OPTION_PEER_TIMEOUT), "log_level",
                              (json_int_t)dmg_number(settings, DMG_OPTION_LOG_LEVEL), "transport",
                              dmg_json_text(dmg_value_text(settings, DMG_OPTION_TRANSPORT)), "node", (json_int_t)0);
    dmg_segment_options segment = dmg_segment_of_settings(settings, SEGMENT_BYTES);
    segment.prefault = true;
    dmg_segment_put(setup, &segment);
    return setup;
}

/* Each thread has a channel; one more touches or allocates beside them. */
static dmg_status check_descriptors(const dmg_perf_pool *pool)
{
    bool may_choose = !dmg_has(pool->settings, DMG_OPTION_FIT) && !dmg_flag(pool->settings, DMG_OPTION_CALIBRATE);
    const dmg_descriptor_users users = {.transport = dmg_value_text(pool->settings, DMG_OPTION_TRANSPORT),
                                        .memory_nodes = 1,
                                        .started_memory_nodes = 1,
                                        .own_channels = pool->threads + DMG_CLIENT_OTHER_CHANNELS,
                                        .remedy = may_choose ? "measure with fewer threads (--thread-counts)" : NULL};
    return dmg_descriptors_check(&users);
}

dmg_status dmg_perf_pool_start(dmg_perf_pool *pool)
{
    const uint64_t bytes = SEGMENT_BYTES;
    dmg_status status = check_descriptors(pool);
    if (status == DMG_OK) {
        status = dmg_launcher_create(&pool->launcher);
    }
    if (status == DMG_OK) {
        status = dmg_segments_check_room(pool->settings, &bytes, 1);
    }
    if (status == DMG_OK) {
        dmg_launcher_listen(pool->launcher, dmg_number(pool->settings, DMG_OPTION_PEER_TIMEOUT), take_message, pool);
        status = dmg_token_make(pool->token);
    }
    if (status == DMG_OK) {
        status = dmg_secret_make(pool->admin);
    }
    if (status == DMG_OK) {
        status = dmg_launcher_start(pool->launcher, DMG_CHILD_MEMORY_NODE, 0, "memory-node", -1, &pool->child);
    }
    if (status == DMG_OK) {
        status = dmg_launcher_send(pool->launcher, pool->child, setup_of(pool));
    }
    return status == DMG_OK ? dmg_segments_wait(pool->launcher, bytes, NULL, has_address, pool) : status;
}

dmg_status dmg_perf_pool_connect(const dmg_perf_pool *pool, const dmg_link_settings *link, dmg_client **client)
{
    const char *address = pool->address;
    dmg_client_options options = {.transport = dmg_value_text(pool->settings, DMG_OPTION_TRANSPORT),
                                  .addresses = &address,
                                  .address_count = 1,
                                  .peer_timeout_ns = dmg_number(pool->settings, DMG_OPTION_PEER_TIMEOUT),
                                  .link = link};
    memcpy(options.token, pool->token, sizeof options.token);
    return dmg_client_open(&options, client);
}

/* ---- the region ---- */

dmg_status dmg_perf_region_allocate(dmg_client *client, uint64_t bytes, dmg_perf_region *region)
{
    *region = (dmg_perf_region){.client = client, .bytes = bytes};
    dmg_channel *channel = NULL;
    char name[DMG_POOL_JOB_NAME_BYTES];
    dmg_job_pass pass = {0};
    dmg_job job;
    dmg_status status = dmg_secret_make(pass.secret);
    if (status == DMG_OK) {
        status = dmg_channel_open(client, &channel);
    }
    if (status == DMG_OK) {
        status = dmg_pool_job_name("perf", name);
    }
    /* It is left with the client, and the region with it. */
    if (status == DMG_OK) {
        status = dmg_job_join(channel, &pass, name, 0, 1, &job);
    }
    if (status == DMG_OK) {
        status = dmg_pool_allocate(channel, 0, job.id, region->bytes, &region->start);
    }
    dmg_channel_close(channel);
    return status;
}

dmg_status dmg_perf_region_load(const dmg_perf_region *region)
{
    dmg_channel *channel = NULL;
    dmg_completion completion = {0};
    uint64_t word = 0;
    dmg_status status = dmg_channel_open(region->client, &channel);
    for (uint64_t offset = 0; status == DMG_OK && offset < region->bytes; offset += PAGE_BYTES) {
        dmg_post_write(channel, &word, region->start + offset, sizeof word, &completion);
    }
    if (status == DMG_OK) {
        status = dmg_wait(channel, &completion);
    }
    dmg_channel_close(channel);
    return status;
}
