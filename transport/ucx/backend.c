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

static const char *const parameter_keys[] = {"messages", "data",       "device",  "memory-device", "port", "gid",
                                             "retries",  "retry-time", "protect", "trust-network", NULL};

const dmg_backend dmg_backend_ucx = {
    .name = "ucx",
    .describe = dmg_ucx_describe,
    .parameter_keys = parameter_keys,
    .announce = dmg_ucx_announce,
    .segment_demand = dmg_ucx_segment_demand,
    .descriptors = dmg_ucx_descriptors,
    .sweep = dmg_ucx_sweep,
    .server_create = dmg_ucx_server_create,
    .server_destroy = dmg_ucx_server_destroy,
    .server_address = dmg_ucx_server_address,
    .server_segment = dmg_ucx_server_segment,
    .server_placement = dmg_ucx_server_placement,
    .server_is_reachable = dmg_ucx_server_is_reachable,
    .server_fence = dmg_ucx_server_fence,
    .server_progress = dmg_ucx_server_progress,
    .server_sleep = dmg_ucx_server_sleep,
    .server_wake = dmg_ucx_server_wake,
    .server_reply = dmg_ucx_server_reply,
    .server_break_client = dmg_ucx_server_break_client,
    .server_give_back = dmg_ucx_server_give_back,
    .server_is_in_files = dmg_ucx_server_is_in_files,
    .client_open = dmg_ucx_client_open,
    .client_close = dmg_ucx_client_close,
    .channel_open = dmg_ucx_channel_open,
    .channel_close = dmg_ucx_channel_close,
    .post_read = dmg_ucx_post_read,
    .post_write = dmg_ucx_post_write,
    .post_cas64 = dmg_ucx_post_cas64,
    .post_faa64 = dmg_ucx_post_faa64,
    .post_call = dmg_ucx_post_call,
    .ring = dmg_ucx_ring,
    .poll = dmg_ucx_poll,
    .channel_sleep = dmg_ucx_channel_sleep,
    .fail_node = dmg_ucx_fail_node,
};
