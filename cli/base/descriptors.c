#include "cli/base/descriptors.h"

#include "core/base/descriptors.h"
#include "core/base/error.h"
#include "transport/transport.h"

#include <inttypes.h>

/** Of any node: the standard ones, the control channel, a file that it is given, and one that it looks into. */
#define NODE_OWN 6
/** Of the launcher: the standard ones, its witness and signals, the graph, the output; and a channel to each node. */
#define LAUNCHER_OWN 8
/** For what comes and goes: files that are looked into, strangers at a port, an emulated link's clocks, `pool status`.
 */
#define SPARE 8

typedef struct need {
    const char *who;
    uint64_t count;
} need;

static void keep_larger(need *largest, const char *who, uint64_t count)
{
    if (count > largest->count) {
        *largest = (need){who, count};
    }
}

static uint64_t of_client(const dmg_transport_descriptors *each, uint64_t channels, uint64_t memory_nodes)
{
    return each->client + channels * (each->client_channel + memory_nodes * each->client_connection);
}

static need largest_need(const dmg_descriptor_users *users, const dmg_transport_descriptors *each)
{
    need largest = {0};
    uint64_t children = (uint64_t)users->started_memory_nodes + users->compute_nodes;
    uint64_t channels = (uint64_t)users->compute_nodes * users->compute_node_channels + users->own_channels;
    if (users->started_memory_nodes > 0) {
        keep_larger(&largest, "a memory node", NODE_OWN + each->server + channels * each->server_channel);
    }
    if (users->compute_nodes > 0) {
        keep_larger(&largest, "a compute node",
                    NODE_OWN + of_client(each, users->compute_node_channels, users->memory_nodes));
    }
    keep_larger(&largest, "this program",
                LAUNCHER_OWN + children + of_client(each, users->own_channels, users->memory_nodes));
    largest.count += SPARE;
    return largest;
}

dmg_status dmg_descriptors_check(const dmg_descriptor_users *users)
{
    dmg_transport_descriptors each;
    dmg_status status = dmg_transport_count_descriptors(users->transport, &each);
    if (status != DMG_OK) {
        return status;
    }
    const need largest = largest_need(users, &each);
    uint64_t limit = dmg_descriptors_limit();
    if (largest.count <= limit) {
        return DMG_OK;
    }
    return dmg_error(DMG_ERR_LIMIT,
                     "%s needs %" PRIu64 " file descriptors over %s, and a process may have %" PRIu64
                     " here: raise the limit (`ulimit -n %" PRIu64 "`)%s%s",
                     largest.who, largest.count, users->transport, limit, largest.count, users->remedy ? ", or " : "",
                     users->remedy ? users->remedy : "");
}

dmg_status dmg_descriptors_check_run(const char *transport, uint32_t memory_nodes, bool is_in_pool,
                                     uint32_t compute_nodes, uint32_t threads)
{
    const dmg_descriptor_users users = {.transport = transport,
                                        .memory_nodes = memory_nodes,
                                        .started_memory_nodes = is_in_pool ? 0 : memory_nodes,
                                        .compute_nodes = compute_nodes,
                                        .compute_node_channels = threads + DMG_CLIENT_OTHER_CHANNELS,
                                        .own_channels = DMG_CLIENT_OTHER_CHANNELS,
                                        .remedy = is_in_pool ? "take fewer --cns or --threads"
                                                             : "take fewer --mns, --cns or --threads"};
    return dmg_descriptors_check(&users);
}

dmg_status dmg_descriptors_of_channels(const char *transport, uint64_t channels, uint64_t *needed)
{
    dmg_transport_descriptors each;
    dmg_status status = dmg_transport_count_descriptors(transport, &each);
    *needed = channels * each.server_channel + SPARE;
    return status;
}
