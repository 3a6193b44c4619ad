#include "core/pool/ticket.h"

#include "core/base/error.h"

#include <sodium.h>

_Static_assert(offsetof(dmg_job_ticket, seal) + DMG_SECRET_BYTES == sizeof(dmg_job_ticket),
               "the seal is last, and is over all that stands before it");

dmg_ticket_key dmg_ticket_key_make(const uint8_t admin[DMG_SECRET_BYTES])
{
    static const unsigned char use[] = "dmgraph tickets";
    dmg_ticket_key key;
    crypto_generichash(key.bytes, sizeof key.bytes, use, sizeof use, admin, DMG_SECRET_BYTES);
    return key;
}

static void seal_of(const dmg_ticket_key *key, const dmg_job_ticket *ticket, uint8_t seal[DMG_SECRET_BYTES])
{
    crypto_generichash(seal, DMG_SECRET_BYTES, (const unsigned char *)ticket, offsetof(dmg_job_ticket, seal),
                       key->bytes, sizeof key->bytes);
}

void dmg_ticket_seal(const dmg_ticket_key *key, dmg_job_ticket *ticket)
{
    seal_of(key, ticket, ticket->seal);
}

dmg_status dmg_ticket_check(const dmg_ticket_key *key, const dmg_job_ticket *ticket, uint64_t client)
{
    uint8_t seal[DMG_SECRET_BYTES];
    seal_of(key, ticket, seal);
    if (!dmg_secret_is_equal(seal, ticket->seal) || ticket->client != client) {
        return dmg_error(DMG_ERR_DENIED, "memory node 0 did not let this compute node into job %llu",
                         (unsigned long long)ticket->job);
    }
    return DMG_OK;
}
