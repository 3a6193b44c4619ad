/**
 * @file backend.c
 * The UCX backend: memory nodes over InfiniBand, RoCE, TCP and shared memory.
 *
 * Two kinds of traffic go separate ways. Messages go over the streams that connections begin with (transport/stream):
 * sockets of ours, whose ends prove to each other that they know the pool's secret. Who asks for it has them go by
 * active messages of UCX, over a network card or tcp; never over UCX's shared-memory rings, which a killed sender can
 * wedge. Data are one-sided operations where UCX has real lanes for them: on one machine the caller's CPU copies from
 * and to shared memory that UCX allocated; on InfiniBand and RoCE the card does. Elsewhere, UCX would imitate them in
 * the memory node without any check; there we do them ourselves, by message, with checks, several operations a message.
 * Atomics have one executor: the caller's CPU when all nodes are shared memory, else the memory node.
 *
 * Nothing of UCX listens for connections: endpoints are made of the addresses of workers, and a card's queue pairs of
 * their numbers, which are told over the streams. A stream's end is its peer's death; a peer that only stops is found
 * by the leases of the layer above. UCX's tcp has ports of its own all the same, at which it writes whatever a stranger
 * asks for: it is opened by nobody who did not ask for it by name.
 */
#include "transport/ucx/client.h"

const dmg_server_operations dmg_ucx_server_operations = {
    .destroy = dmg_ucx_server_destroy,
    .address = dmg_ucx_server_address,
    .segment = dmg_ucx_server_segment,
    .placement = dmg_ucx_server_placement,
    .is_reachable = dmg_ucx_server_is_reachable,
    .fence = dmg_ucx_server_fence,
    .progress = dmg_ucx_server_progress,
    .sleep = dmg_ucx_server_sleep,
    .wake = dmg_ucx_server_wake,
    .reply = dmg_ucx_server_reply,
    .break_client = dmg_ucx_server_break_client,
    .give_back = dmg_ucx_server_give_back,
    .is_in_files = dmg_ucx_server_is_in_files,
};

const dmg_client_operations dmg_ucx_client_operations = {
    .close = dmg_ucx_client_close,
    .channel_open = dmg_ucx_channel_open,
};

const dmg_channel_operations dmg_ucx_channel_operations = {
    .close = dmg_ucx_channel_close,
    .post_read = dmg_ucx_post_read,
    .post_write = dmg_ucx_post_write,
    .post_cas64 = dmg_ucx_post_cas64,
    .post_faa64 = dmg_ucx_post_faa64,
    .post_call = dmg_ucx_post_call,
    .ring = dmg_ucx_ring,
    .poll = dmg_ucx_poll,
    .sleep = dmg_ucx_channel_sleep,
    .fail_node = dmg_ucx_fail_node,
};

static const char *const parameter_keys[] = {"messages", "data",       "device",  "memory-device", "port", "gid",
                                             "retries",  "retry-time", "protect", "trust-network", NULL};

const dmg_backend dmg_backend_ucx = {
    .name = "ucx",
    .parameter_keys = parameter_keys,
    .prepare = dmg_ucx_environment_clean,
    .describe = dmg_ucx_describe,
    .announce = dmg_ucx_announce,
    .segment_demand = dmg_ucx_segment_demand,
    .descriptors = dmg_ucx_descriptors,
    .sweep = dmg_ucx_sweep,
    .server_create = dmg_ucx_server_create,
    .client_open = dmg_ucx_client_open,
};
