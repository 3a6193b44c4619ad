#include "core/update/target.h"

const char *dmg_way_name(dmg_way way)
{
    static const char *const names[DMG_WAYS] = {[DMG_WAY_DIRECT] = "direct",
                                                [DMG_WAY_NODE] = "node",
                                                [DMG_WAY_OWNER] = "owner",
                                                [DMG_WAY_REFERENCE] = "reference"};
    return names[way];
}

void dmg_traffic_add(dmg_traffic *sum, const dmg_traffic *more)
{
    for (int way = 0; way < DMG_WAYS; way++) {
        dmg_passed_add(&sum->sent[way], &more->sent[way]);
        dmg_passed_add(&sum->taken[way], &more->taken[way]);
    }
}

static void subtract(dmg_passed *from, const dmg_passed *less)
{
    from->items -= less->items;
    from->buffers -= less->buffers;
    from->bytes -= less->bytes;
}

void dmg_traffic_subtract(dmg_traffic *sum, const dmg_traffic *more)
{
    for (int way = 0; way < DMG_WAYS; way++) {
        subtract(&sum->sent[way], &more->sent[way]);
        subtract(&sum->taken[way], &more->taken[way]);
    }
}
