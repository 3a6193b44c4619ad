/*
 * The tables of the cxl_shm backend (backend.h).
 */
#include "transport/cxl_shm/devices.h"
#include "transport/cxl_shm/shm.h"

const dmg_server_operations dmg_shm_server_operations = {
    .has_files = dmg_shm_server_has_files,
    .destroy = dmg_shm_server_destroy,
    .address = dmg_shm_server_address,
    .segment = dmg_shm_server_segment,
    .placement = dmg_shm_server_placement,
    .progress = dmg_shm_server_progress,
    .sleep = dmg_shm_server_sleep,
    .wake = dmg_shm_server_wake,
    .reply = dmg_shm_server_reply,
    .is_coherent = dmg_shm_server_is_coherent,
    .acquire = dmg_shm_server_acquire,
    .acquire_wait = dmg_shm_server_acquire_wait,
    .release = dmg_shm_server_release,
    .break_client = dmg_shm_server_break_client,
    .give_back = dmg_shm_server_give_back,
    .is_in_files = dmg_shm_server_is_in_files,
};

const dmg_client_operations dmg_shm_client_operations = {
    .close = dmg_shm_client_close,
    .acquire = dmg_shm_client_acquire,
    .channel_open = dmg_shm_channel_open,
};

const dmg_channel_operations dmg_shm_channel_operations = {
    .close = dmg_shm_channel_close,
    .post_read = dmg_shm_post_read,
    .post_write = dmg_shm_post_write,
    .post_cas64 = dmg_shm_post_cas64,
    .post_faa64 = dmg_shm_post_faa64,
    .post_call = dmg_shm_post_call,
    .ring = dmg_shm_ring,
    .poll = dmg_shm_poll,
    .sleep = dmg_shm_channel_sleep,
    .fail_node = dmg_shm_fail_node,
    .use_mapped = dmg_shm_use_mapped,
};

const dmg_backend dmg_backend_cxl_shm = {
    .name = DMG_SHM_BACKEND_NAME,
    .parameter_keys = dmg_shm_parameter_keys,
    .describe = dmg_shm_describe,
    .segment_demand = dmg_shm_segment_demand,
    .descriptors = dmg_shm_descriptors,
    .sweep = dmg_shm_sweep,
    .server_create = dmg_shm_server_create,
    .client_open = dmg_shm_client_open,
};
