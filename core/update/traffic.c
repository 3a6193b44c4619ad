#include "core/update/traffic.h"

void dmg_traffic_add(dmg_traffic *sum, const dmg_traffic *more)
{
    for (int method = 0; method < DMG_UPDATE_METHODS; method++) {
        dmg_passed_add(&sum->sent[method], &more->sent[method]);
        dmg_passed_add(&sum->taken[method], &more->taken[method]);
    }
}

static void subtract(dmg_passed *from, const dmg_passed *less)
{
    from->items -= less->items;
    from->buffers -= less->buffers;
    from->bytes -= less->bytes;
}

void dmg_traffic_subtract(dmg_traffic *later, const dmg_traffic *earlier)
{
    for (int method = 0; method < DMG_UPDATE_METHODS; method++) {
        subtract(&later->sent[method], &earlier->sent[method]);
        subtract(&later->taken[method], &earlier->taken[method]);
    }
}
