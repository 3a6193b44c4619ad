#include "cli/pool/client.h"

#include "cli/base/descriptors.h"
#include "cli/base/text.h"
#include "core/base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

dmg_status dmg_pool_job_name(const char *what, char name[DMG_POOL_JOB_NAME_BYTES])
{
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) {
        return dmg_error_errno(DMG_ERR_IO, errno, "asking the kernel for a random number");
    }
    snprintf(name, DMG_POOL_JOB_NAME_BYTES, "%.24s/%016" PRIx64, what, number);
    return DMG_OK;
}

dmg_status dmg_pool_check_alive(const dmg_pool_file *file)
{
    for (uint32_t node = 0; node < file->node_count; node++) {
        if (!dmg_process_is_alive(&file->nodes[node].process)) {
            dmg_pool_end end;
            bool is_known = dmg_pool_end_find(file, node, &end);
            return dmg_error(DMG_ERR_PEER,
                             "memory node %" PRIu32 " (pid %d) of the pool '%s' is dead%s%s%s%s%s, and what it held is "
                             "lost; end the pool with 'dmgraph pool stop %s'",
                             node, file->nodes[node].process.pid, file->name, is_known ? " (" : "",
                             is_known ? end.why : "", is_known ? " at " : "",
                             is_known ? dmg_text_time(end.at_s).text : "", is_known ? ")" : "", file->name);
        }
    }
    return DMG_OK;
}

dmg_status dmg_pool_client_explain(const dmg_pool_file *file, dmg_status status)
{
    if (status != DMG_ERR_PEER) {
        return status;
    }
    dmg_kept_error kept = {0};
    dmg_error_keep(&kept, status);
    return dmg_pool_check_alive(file) == DMG_OK ? dmg_error_restore(&kept) : status;
}

dmg_status dmg_pool_client_open(dmg_pool_client *client)
{
    const dmg_pool_file *file = &client->file;
    const char *addresses[DMG_MEMORY_NODES_MAX];
    char name[DMG_POOL_JOB_NAME_BYTES];
    for (uint32_t node = 0; node < file->node_count; node++) {
        addresses[node] = file->nodes[node].address;
    }
    dmg_client_options options = {.transport = file->transport,
                                  .addresses = addresses,
                                  .address_count = file->node_count,
                                  .peer_timeout_ns = client->peer_timeout_ns};
    memcpy(options.token, file->token, sizeof options.token);
    dmg_transport_announce(file->transport);
    dmg_status status = dmg_pool_check_alive(file);
    if (status != DMG_OK) {
        return status;
    }
    status = dmg_client_open(&options, &client->client);
    if (status == DMG_OK) {
        status = dmg_channel_open(client->client, &client->channel);
    }
    if (status == DMG_OK) {
        status = dmg_pool_job_name("hold", name);
    }
    dmg_job_pass pass;
    if (status == DMG_OK) {
        status = dmg_job_pass_make(client->shows_identity, file->token, &pass);
    }
    if (status == DMG_OK) {
        status = dmg_job_join(client->channel, &pass, name, 0, 1, &client->hold);
    }
    return status == DMG_OK ? DMG_OK : dmg_pool_client_explain(file, dmg_error_prefix(status, "pool %s", file->name));
}

static dmg_status check_job(const dmg_pool_file *file, const dmg_pool_limits *limits, uint32_t compute_nodes,
                            uint32_t channels_each)
{
    if (limits->job_clients > 0 && compute_nodes > limits->job_clients) {
        return dmg_error(DMG_ERR_LIMIT,
                         "the pool %s lets one job have %" PRIu32 " compute nodes, and %" PRIu32
                         " are asked for: take fewer (its --job-clients)",
                         file->name, limits->job_clients, compute_nodes);
    }
    if (limits->job_channels > 0 && compute_nodes * channels_each > limits->job_channels) {
        return dmg_error(DMG_ERR_LIMIT,
                         "the pool %s lets one job have %" PRIu32 " channels, and %" PRIu32
                         " compute nodes with %" PRIu32
                         " each are asked for: take fewer, or fewer threads (its --job-channels)",
                         file->name, limits->job_channels, compute_nodes, channels_each);
    }
    return DMG_OK;
}

/* Others may take them before the compute nodes do. */
static dmg_status check_descriptors(const dmg_pool_file *file, uint32_t node, uint64_t left, uint64_t needed)
{
    if (needed <= left) {
        return DMG_OK;
    }
    return dmg_error(DMG_ERR_LIMIT,
                     "the pool %s: memory node %" PRIu32 " has %" PRIu64
                     " file descriptors left, and the compute nodes need %" PRIu64
                     ": take fewer --cns or --threads, wait for others to end, or start the pool under a "
                     "higher `ulimit -n`",
                     file->name, node, left, needed);
}

dmg_status dmg_pool_client_check_limits(const dmg_pool_client *client, uint32_t compute_nodes, uint32_t channels_each)
{
    const dmg_pool_file *file = &client->file;
    uint64_t needed;
    dmg_status status = dmg_descriptors_of_channels(file->transport, (uint64_t)compute_nodes * channels_each, &needed);
    for (uint32_t node = 0; node < file->node_count && status == DMG_OK; node++) {
        dmg_pool_limits limits;
        uint64_t left;
        status = dmg_pool_ask_limits(client->channel, (uint16_t)node, &limits, NULL, &left);
        if (status == DMG_OK && node == 0) { /* the same on all */
            status = check_job(file, &limits, compute_nodes, channels_each);
        }
        if (status == DMG_OK) {
            status = check_descriptors(file, node, left, needed);
        }
    }
    return status;
}

dmg_status dmg_pool_client_administer(const dmg_pool_client *client)
{
    uint8_t admin[DMG_SECRET_BYTES];
    dmg_status status = dmg_pool_admin_find(client->file.name, admin);
    return status == DMG_OK ? dmg_pool_administer(client->channel, admin) : status;
}

dmg_status dmg_pool_client_close(dmg_pool_client *client, dmg_status status)
{
    if (status == DMG_OK && client->channel && client->hold.id != 0) {
        status = dmg_job_leave(client->channel, &client->hold);
    }
    status = dmg_pool_client_explain(&client->file, status);
    dmg_kept_error kept = {0};
    dmg_error_keep(&kept, status);
    dmg_channel_close(client->channel);
    dmg_client_close(client->client);
    client->channel = NULL;
    client->client = NULL;
    return dmg_error_restore(&kept);
}
