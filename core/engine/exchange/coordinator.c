#include "core/engine/exchange/coordinator.h"

#include "core/base/error.h"

dmg_status dmg_update_coordinator_create(dmg_client *client, dmg_channel *channel, dmg_budget *budget,
                                         uint32_t value_buffer_bytes, dmg_update_coordinator *coordinator)
{
    dmg_status status = dmg_direct_remote_create(client, channel, budget, &coordinator->direct);
    if (status == DMG_OK && dmg_value_redistribution_is_possible(dmg_client_capabilities(client))) {
        status = dmg_value_redistribution_create(channel, budget, value_buffer_bytes, &coordinator->by_value);
    }
    return status;
}

void dmg_update_coordinator_destroy(dmg_update_coordinator *coordinator)
{
    dmg_valrd_owner_destroy(coordinator->by_owner);
    dmg_value_redistribution_destroy(coordinator->by_value);
    dmg_direct_remote_destroy(coordinator->direct);
    *coordinator = (dmg_update_coordinator){0};
}

dmg_status dmg_update_coordinator_join_owners(dmg_update_coordinator *coordinator, dmg_mailbox *mailbox,
                                              const dmg_owners *owners, dmg_channel *channel, uint32_t worker,
                                              dmg_budget *budget)
{
    return dmg_valrd_owner_create(mailbox, owners, coordinator->direct, channel, worker, budget,
                                  &coordinator->by_owner);
}

void dmg_update_coordinator_leave_owners(dmg_update_coordinator *coordinator)
{
    dmg_valrd_owner_destroy(coordinator->by_owner);
    coordinator->by_owner = NULL;
}

dmg_status dmg_update_method_choose(const dmg_capabilities *capabilities, dmg_update_method wanted,
                                    dmg_update_method *method)
{
    bool by_value = dmg_value_redistribution_is_possible(capabilities);
    bool is_mapped =
        dmg_atomics_are_by_caller(capabilities->atomics) && (capabilities->flags & DMG_CAPABILITY_LOAD_STORE) != 0;
    if (wanted == DMG_UPDATE_VALRD_NODE && !by_value) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "the memory nodes of this pool cannot apply updates that are passed by value: "
                         "they do not compute, or their network card executes atomics");
    }
    if (wanted != DMG_UPDATE_AUTO) {
        *method = wanted;
    } else {
        *method = is_mapped || !by_value ? DMG_UPDATE_VALRD_OWNER : DMG_UPDATE_VALRD_NODE;
    }
    return DMG_OK;
}

bool dmg_update_sparse_by_owner(const dmg_capabilities *capabilities, dmg_update_method wanted)
{
    return wanted == DMG_UPDATE_VALRD_OWNER ||
           (wanted == DMG_UPDATE_AUTO && capabilities->atomics == DMG_ATOMICS_CALLER_LOCK);
}

void dmg_update_coordinator_set_target(dmg_update_coordinator *coordinator, dmg_update_method method,
                                       const dmg_update_target *target)
{
    coordinator->method = method;
    if (method == DMG_UPDATE_VALRD_NODE) {
        dmg_value_redistribution_set_target(coordinator->by_value, target);
    } else {
        dmg_direct_remote_set_target(coordinator->direct, target); /* updates by owner overflow into direct ones */
    }
}

dmg_status dmg_update_coordinator_flush(dmg_update_coordinator *coordinator)
{
    if (coordinator->method == DMG_UPDATE_VALRD_NODE) {
        return dmg_value_redistribution_flush(coordinator->by_value);
    }
    dmg_status status = DMG_OK;
    if (coordinator->method == DMG_UPDATE_VALRD_OWNER) {
        status = dmg_valrd_owner_flush(coordinator->by_owner);
    }
    return status == DMG_OK ? dmg_direct_remote_flush(coordinator->direct) : status;
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
    if (coordinator->by_owner) {
        sum.updates += dmg_valrd_owner_updates(coordinator->by_owner);
    }
    return sum;
}

void dmg_update_coordinator_add_traffic(const dmg_update_coordinator *coordinator, dmg_traffic *traffic)
{
    uint64_t updates = dmg_direct_remote_count(coordinator->direct)->updates;
    traffic->sent[DMG_UPDATE_DIRECT].items += updates;
    traffic->taken[DMG_UPDATE_DIRECT].items += updates; /* by who sends them, when they are flushed */
    if (coordinator->by_value) {
        dmg_passed_add(&traffic->sent[DMG_UPDATE_VALRD_NODE], dmg_value_redistribution_sent(coordinator->by_value));
        dmg_passed_add(&traffic->taken[DMG_UPDATE_VALRD_NODE], dmg_value_redistribution_taken(coordinator->by_value));
    }
}
