/**
 * @file ticket.h
 * How the other memory nodes of a pool know whom node 0 let into a job.
 *
 * Memory nodes do not talk to each other. Node 0, which has the jobs, gives a client a ticket that says which job it is
 * in, and who is behind that; the client shows it when it attaches. All memory nodes of a pool know a key that no
 * client knows, and the ticket is sealed with it. It is of no use to another client.
 */
#ifndef DMG_CORE_POOL_TICKET_H
#define DMG_CORE_POOL_TICKET_H

#include "core/pool/protocol.h"

/** Made of the pool's admin secret. */
typedef struct dmg_ticket_key {
    uint8_t bytes[DMG_SECRET_BYTES];
} dmg_ticket_key;

dmg_ticket_key dmg_ticket_key_make(const uint8_t admin[DMG_SECRET_BYTES]);
/** Fill in the seal of a ticket whose other fields, and padding, are as they shall be. */
void dmg_ticket_seal(const dmg_ticket_key *key, dmg_job_ticket *ticket);
/** DMG_ERR_DENIED unless it was sealed with this key, for this client. */
dmg_status dmg_ticket_check(const dmg_ticket_key *key, const dmg_job_ticket *ticket, uint64_t client);

#endif
