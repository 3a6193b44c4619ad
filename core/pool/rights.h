/**
 * @file rights.h
 * Who may do what in a pool: secrets, who is behind a job, and how much a job may have.
 *
 * Whoever knows a pool's token is let in. That alone gives no right to what others have there: memory and names belong
 * to the job that made them, and what outlives the job to the *identity* behind it. A user's identity is a secret that
 * no pool ever sees: a pool is shown a keyed hash of its own token, and keeps a hash of that. A job has a secret too,
 * which only its members and its launcher know. Who knows the pool's *admin secret* may do everything.
 */
#ifndef DMG_CORE_POOL_RIGHTS_H
#define DMG_CORE_POOL_RIGHTS_H

#include "transport/transport.h"

/** Of an identity, a job's secret, and the admin secret; also of their hashes. */
#define DMG_SECRET_BYTES 32
/** With the terminating zeros. Longer names are cut. */
#define DMG_USER_NAME_BYTES 32
#define DMG_HOST_NAME_BYTES 64

/** Who is behind a job. It travels as it is. All but the identity are claims for people, which nobody checks. */
typedef struct dmg_pool_owner {
    uint8_t identity[DMG_SECRET_BYTES]; /**< all zero: nobody's; to a pool what is shown, in a pool a hash of that */
    uint32_t user;                      /**< the user's number on the host below */
    uint32_t zero;                      /**< must be 0 */
    char user_name[DMG_USER_NAME_BYTES];
    char host[DMG_HOST_NAME_BYTES];
} dmg_pool_owner;

/** What a compute node shows when it joins a job: all members the same. */
typedef struct dmg_job_pass {
    uint8_t secret[DMG_SECRET_BYTES]; /**< of the job: made by who starts it, and told to its members alone */
    dmg_pool_owner owner;
} dmg_job_pass;

/** What one job may have of each memory node; 0: no limit but that of the program. Plain data. */
typedef struct dmg_pool_limits {
    uint64_t job_memory_bytes; /**< in extents, also those that it freed and that wait for others */
    uint32_t job_clients;      /**< compute nodes */
    uint32_t job_channels;     /**< of all its compute nodes: each is a descriptor of the memory node */
} dmg_pool_limits;

/** How often a request was refused for one of them. Plain data. */
typedef struct dmg_pool_refusals {
    uint64_t memory;
    uint64_t clients;
    uint64_t channels;
    uint64_t rights; /**< for want of a right, as what it was about belongs to somebody else */
} dmg_pool_refusals;

/** Random bytes. DMG_ERR_IO. */
dmg_status dmg_secret_make(uint8_t secret[DMG_SECRET_BYTES]);
/** What a pool is shown of an identity: nothing that another pool could use, or from which the secret follows. */
void dmg_identity_show(const uint8_t secret[DMG_SECRET_BYTES], const uint8_t token[DMG_TOKEN_BYTES],
                       uint8_t shown[DMG_SECRET_BYTES]);
/** What the admin of a pool shows: it is good for this client alone. */
void dmg_admin_show(const uint8_t admin[DMG_SECRET_BYTES], uint64_t client, uint8_t shown[DMG_SECRET_BYTES]);
/** A hash to keep in place of a secret, or of what was shown. */
void dmg_secret_hash(const uint8_t secret[DMG_SECRET_BYTES], uint8_t hash[DMG_SECRET_BYTES]);
/** Takes the same time wherever they differ. */
bool dmg_secret_is_equal(const uint8_t a[DMG_SECRET_BYTES], const uint8_t b[DMG_SECRET_BYTES]);

/** Whether both are the same somebody. */
bool dmg_owner_is_same(const dmg_pool_owner *a, const dmg_pool_owner *b);
/** Names from outside go into messages for people. DMG_ERR_PROTOCOL. */
dmg_status dmg_owner_check(const dmg_pool_owner *owner);

typedef struct dmg_owner_text {
    char text[DMG_USER_NAME_BYTES + DMG_HOST_NAME_BYTES + 32];
} dmg_owner_text;

/** "alice (user 1000) on host"; "nobody in particular" when nothing is claimed. */
dmg_owner_text dmg_owner_print(const dmg_pool_owner *owner);

#endif
