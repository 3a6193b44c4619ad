#include "cli/pool/limits.h"

#include "cli/launcher/control.h"
#include "core/base/error.h"

dmg_pool_limits dmg_pool_limits_of_settings(const dmg_settings *settings)
{
    return (dmg_pool_limits){
        .job_memory_bytes = dmg_has(settings, DMG_OPTION_JOB_MEMORY) ? dmg_number(settings, DMG_OPTION_JOB_MEMORY) : 0,
        .job_clients = (uint32_t)dmg_number(settings, DMG_OPTION_JOB_CLIENTS),
        .job_channels = (uint32_t)dmg_number(settings, DMG_OPTION_JOB_CHANNELS)};
}

json_t *dmg_pool_limits_json(const dmg_pool_limits *limits)
{
    return json_pack("{s:I, s:I, s:I}", "job_memory_bytes", (json_int_t)limits->job_memory_bytes, "job_clients",
                     (json_int_t)limits->job_clients, "job_channels", (json_int_t)limits->job_channels);
}

dmg_status dmg_pool_limits_from_json(json_t *object, dmg_pool_limits *limits)
{
    json_int_t memory = 0, clients = 0, channels = 0;
    *limits = (dmg_pool_limits){0};
    if (!object) {
        return DMG_OK;
    }
    dmg_status status = dmg_control_unpack(object, "{s:I, s:I, s:I}", "job_memory_bytes", &memory, "job_clients",
                                           &clients, "job_channels", &channels);
    if (status == DMG_OK &&
        (memory < 0 || clients < 0 || clients > UINT32_MAX || channels < 0 || channels > UINT32_MAX)) {
        status = dmg_error(DMG_ERR_PROTOCOL, "the setup has a limit out of range");
    }
    if (status == DMG_OK) {
        *limits = (dmg_pool_limits){
            .job_memory_bytes = (uint64_t)memory, .job_clients = (uint32_t)clients, .job_channels = (uint32_t)channels};
    }
    return status;
}
