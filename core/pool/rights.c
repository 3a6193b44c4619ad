#include "core/pool/rights.h"

#include "core/base/error.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

dmg_status dmg_secret_make(uint8_t secret[DMG_SECRET_BYTES])
{
    if (getrandom(secret, DMG_SECRET_BYTES, 0) != DMG_SECRET_BYTES) {
        return dmg_error_errno(DMG_ERR_IO, errno, "asking the system for random bytes");
    }
    return DMG_OK;
}

/* A word of its own for each use of a key, so that nothing made for one is good for another. */
static void hash_for(const char *use, const uint8_t key[DMG_SECRET_BYTES], const void *data, size_t bytes,
                     uint8_t hash[DMG_SECRET_BYTES])
{
    crypto_generichash_state state;
    crypto_generichash_init(&state, key, key ? DMG_SECRET_BYTES : 0, DMG_SECRET_BYTES);
    crypto_generichash_update(&state, (const unsigned char *)use, strlen(use) + 1);
    crypto_generichash_update(&state, data, bytes);
    crypto_generichash_final(&state, hash, DMG_SECRET_BYTES);
}

void dmg_identity_show(const uint8_t secret[DMG_SECRET_BYTES], const uint8_t token[DMG_TOKEN_BYTES],
                       uint8_t shown[DMG_SECRET_BYTES])
{
    hash_for("dmgraph identity", secret, token, DMG_TOKEN_BYTES, shown);
}

void dmg_admin_show(const uint8_t admin[DMG_SECRET_BYTES], uint64_t client, uint8_t shown[DMG_SECRET_BYTES])
{
    hash_for("dmgraph admin", admin, &client, sizeof client, shown);
}

void dmg_secret_hash(const uint8_t secret[DMG_SECRET_BYTES], uint8_t hash[DMG_SECRET_BYTES])
{
    hash_for("dmgraph kept", NULL, secret, DMG_SECRET_BYTES, hash);
}

bool dmg_secret_is_equal(const uint8_t a[DMG_SECRET_BYTES], const uint8_t b[DMG_SECRET_BYTES])
{
    return sodium_memcmp(a, b, DMG_SECRET_BYTES) == 0;
}

bool dmg_owner_is_same(const dmg_pool_owner *a, const dmg_pool_owner *b)
{
    return !sodium_is_zero(a->identity, DMG_SECRET_BYTES) && dmg_secret_is_equal(a->identity, b->identity);
}

static bool is_printable(const char *text, size_t capacity)
{
    size_t length = strnlen(text, capacity);
    for (size_t index = 0; index < length; index++) {
        unsigned char character = (unsigned char)text[index];
        if (character < 0x20 || character == 0x7f) {
            return false;
        }
    }
    return length < capacity;
}

dmg_status dmg_owner_check(const dmg_pool_owner *owner)
{
    if (owner->zero != 0 || !is_printable(owner->user_name, sizeof owner->user_name) ||
        !is_printable(owner->host, sizeof owner->host)) {
        return dmg_error(DMG_ERR_PROTOCOL, "the names of who is behind a job are endless, or have control characters");
    }
    return DMG_OK;
}

dmg_owner_text dmg_owner_print(const dmg_pool_owner *owner)
{
    dmg_owner_text made;
    if (owner->host[0] == '\0' && owner->user_name[0] == '\0') {
        snprintf(made.text, sizeof made.text, "nobody in particular");
    } else {
        snprintf(made.text, sizeof made.text, "%s (user %u) on %s", owner->user_name[0] ? owner->user_name : "somebody",
                 owner->user, owner->host[0] ? owner->host : "some host");
    }
    return made;
}
