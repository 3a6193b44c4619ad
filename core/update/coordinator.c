#include "core/update/coordinator.h"

#include "core/base/error.h"

dmg_status dmg_update_coordinator_create(dmg_client *client, dmg_channel *channel, dmg_budget *budget,
                                         dmg_update_coordinator *coordinator)
{
    dmg_status status = dmg_direct_remote_create(client, channel, budget, &coordinator->direct);
    if (status == DMG_OK && dmg_value_redistribution_is_possible(client)) {
        status = dmg_value_redistribution_create(channel, budget, &coordinator->by_value);
    }
    return status;
}

void dmg_update_coordinator_destroy(dmg_update_coordinator *coordinator)
{
    dmg_value_redistribution_destroy(coordinator->by_value);
    dmg_direct_remote_destroy(coordinator->direct);
    *coordinator = (dmg_update_coordinator){0};
}

dmg_status dmg_update_method_choose(const dmg_client *client, dmg_update_method wanted, dmg_update_method *method)
{
    bool in_place = dmg_client_capabilities(client)->atomics == DMG_ATOMICS_CALLER_CPU &&
                    (dmg_client_capabilities(client)->flags & DMG_CAPABILITY_LOAD_STORE) != 0;
    bool by_value = dmg_value_redistribution_is_possible(client);
    if (wanted == DMG_UPDATE_BY_VALUE && !by_value) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "the memory nodes of this pool cannot apply updates that are passed by value: "
                         "they do not compute, or their network card executes atomics");
    }
    *method = wanted != DMG_UPDATE_AUTO ? wanted : by_value && !in_place ? DMG_UPDATE_BY_VALUE : DMG_UPDATE_DIRECT;
    return DMG_OK;
}

void dmg_update_coordinator_aim(dmg_update_coordinator *coordinator, dmg_update_method method,
                                const dmg_update_target *target)
{
    coordinator->method = method;
    if (method == DMG_UPDATE_BY_VALUE) {
        dmg_value_redistribution_aim(coordinator->by_value, target);
    } else {
        dmg_direct_remote_aim(coordinator->direct, target);
    }
}

dmg_status dmg_update_coordinator_flush(dmg_update_coordinator *coordinator)
{
    return coordinator->method == DMG_UPDATE_BY_VALUE ? dmg_value_redistribution_flush(coordinator->by_value)
                                                      : dmg_direct_remote_flush(coordinator->direct);
}

dmg_update_counters dmg_update_coordinator_count(const dmg_update_coordinator *coordinator)
{
    dmg_update_counters sum = *dmg_direct_remote_count(coordinator->direct);
    if (coordinator->by_value) {
        const dmg_update_counters *more = dmg_value_redistribution_count(coordinator->by_value);
        sum.updates += more->updates;
        sum.applied += more->applied;
        sum.activated += more->activated;
    }
    return sum;
}
