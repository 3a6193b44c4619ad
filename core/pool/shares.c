#include "core/pool/pool.h"
#include "core/pool/range_array.h"

void dmg_pool_shares_even(const dmg_client *client, dmg_pool_shares *shares)
{
    uint32_t nodes = dmg_client_node_count(client);
    *shares = (dmg_pool_shares){.node_count = nodes < DMG_MEMORY_NODES_MAX ? nodes : DMG_MEMORY_NODES_MAX};
    for (uint32_t node = 0; node < shares->node_count; node++) {
        shares->weight[node] = 1;
    }
}

dmg_status dmg_pool_shares_by_room(dmg_channel *channel, dmg_pool_shares *shares)
{
    dmg_pool_shares_even(dmg_channel_client(channel), shares);
    uint64_t room[DMG_MEMORY_NODES_MAX];
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (uint32_t node = 0; node < shares->node_count; node++) {
        uint64_t allocated, peak, total;
        dmg_status status = dmg_pool_usage(channel, (uint16_t)node, &allocated, &peak, &total);
        if (status != DMG_OK) {
            return status;
        }
        room[node] = total > allocated ? total - allocated : 0;
        least = room[node] < least ? room[node] : least;
        most = room[node] > most ? room[node] : most;
    }
    if (most - least < most / 8 || most == 0) {
        return DMG_OK;
    }
    for (uint32_t node = 0; node < shares->node_count; node++) {
        shares->weight[node] = room[node] < DMG_ADDRESS_OFFSET_MASK ? room[node] : DMG_ADDRESS_OFFSET_MASK;
    }
    return DMG_OK;
}
