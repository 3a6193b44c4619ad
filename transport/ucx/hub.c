/**
 * @file hub.c
 * What all hubs do: they know their carriers by number, and hand over what shows a carrier's ticket.
 */
#include "core/base/error.h"
#include "transport/ucx/carrier.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void dmg_ucx_hub_close(dmg_ucx_hub *hub)
{
    if (hub != NULL) {
        free(hub->carriers);
        hub->kind->close(hub);
    }
}

uint32_t dmg_ucx_hub_progress(dmg_ucx_hub *hub)
{
    hub->taken = 0;
    uint32_t moved = hub->kind->progress(hub);
    return moved > hub->taken ? moved : hub->taken;
}

bool dmg_ucx_hub_arm(dmg_ucx_hub *hub)
{
    return hub->kind->arm(hub);
}

int dmg_ucx_hub_descriptor(const dmg_ucx_hub *hub)
{
    return hub->event;
}

void dmg_ucx_hub_leave(dmg_ucx_carrier *carrier)
{
    dmg_ucx_hub *hub = carrier->hub;
    hub->carriers[carrier->number] = NULL;
    if (hub->kind->leave != NULL) {
        hub->kind->leave(carrier);
    }
    carrier->hub = NULL;
}

void dmg_ucx_hub_take(dmg_ucx_hub *hub, const dmg_ucx_envelope *envelope, const void *payload, size_t payload_bytes)
{
    dmg_ucx_carrier *carrier = envelope->number < hub->carrier_count ? hub->carriers[envelope->number] : NULL;
    hub->taken++;
    if (carrier != NULL && carrier->ticket == envelope->ticket && carrier->broken == NULL) {
        dmg_ucx_carrier_take(carrier, &envelope->header, payload, payload_bytes);
    }
}

static bool make_room(dmg_ucx_hub *hub, uint32_t number)
{
    if (number < hub->carrier_count) {
        return true;
    }
    uint32_t count = number < 16 ? 16 : 2 * number;
    dmg_ucx_carrier **carriers = realloc(hub->carriers, count * sizeof(dmg_ucx_carrier *));
    if (carriers == NULL) {
        return false;
    }
    memset(carriers + hub->carrier_count, 0, (count - hub->carrier_count) * sizeof(dmg_ucx_carrier *));
    hub->carriers = carriers;
    hub->carrier_count = count;
    return true;
}

dmg_status dmg_ucx_carrier_offer(dmg_ucx_carrier *carrier, dmg_ucx_hub *hub, uint32_t number, dmg_ucx_reach *reach,
                                 const void **address)
{
    if (!make_room(hub, number)) {
        return dmg_error(DMG_ERR_MEMORY, "opening a connection: out of memory");
    }
    if (getrandom(&carrier->ticket, sizeof(carrier->ticket), 0) != sizeof(carrier->ticket)) {
        return dmg_error(DMG_ERR_IO, "opening a connection: the system gives no random numbers");
    }
    carrier->hub = hub;
    carrier->number = number;
    hub->carriers[number] = carrier;
    *reach = (dmg_ucx_reach){.ticket = carrier->ticket, .number = number};
    *address = hub->kind->offer(carrier, &reach->address_bytes);
    return *address != NULL ? DMG_OK : DMG_ERR_UNSUPPORTED;
}

dmg_status dmg_ucx_carrier_join(dmg_ucx_carrier *carrier, const dmg_ucx_reach *peer, const void *address)
{
    dmg_status status = carrier->hub->kind->join(carrier, address, peer->address_bytes);
    if (status == DMG_OK) {
        carrier->peer = *peer;
    }
    return status;
}
