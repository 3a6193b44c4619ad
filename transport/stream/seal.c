#include "transport/stream/seal.h"

#include <stdlib.h>
#include <string.h>

#define NONCE_BYTES 12

_Static_assert(crypto_aead_aes256gcm_NPUBBYTES == NONCE_BYTES &&
                   crypto_aead_chacha20poly1305_IETF_NPUBBYTES == NONCE_BYTES,
               "both ciphers take the same nonce");
_Static_assert(crypto_aead_aes256gcm_ABYTES == DMG_SEAL_TAG_BYTES &&
                   crypto_aead_chacha20poly1305_IETF_ABYTES == DMG_SEAL_TAG_BYTES,
               "both ciphers have the same tag");
_Static_assert(crypto_aead_aes256gcm_KEYBYTES == DMG_STREAM_KEY_BYTES &&
                   crypto_aead_chacha20poly1305_IETF_KEYBYTES == DMG_STREAM_KEY_BYTES,
               "both ciphers have keys of the same size");

dmg_seal *dmg_seal_open(const dmg_stream_session *session, bool is_sending)
{
    dmg_seal *seal = aligned_alloc(_Alignof(dmg_seal), sizeof *seal);
    if (!seal) {
        return NULL;
    }
    memset(seal, 0, sizeof *seal);
    memcpy(seal->key, is_sending ? session->send_key : session->receive_key, sizeof seal->key);
    seal->cipher = session->cipher;
    seal->is_encrypted = session->protection == DMG_STREAM_ENCRYPTED;
    if (seal->cipher == DMG_STREAM_AES256_GCM) {
        crypto_aead_aes256gcm_beforenm(&seal->aes, seal->key);
    }
    return seal;
}

void dmg_seal_close(dmg_seal *seal)
{
    if (seal) {
        sodium_memzero(seal, sizeof *seal);
        free(seal);
    }
}

/* The number of the next record, the lowest byte first. */
static void take_nonce(dmg_seal *seal, uint8_t nonce[NONCE_BYTES])
{
    memset(nonce, 0, NONCE_BYTES);
    for (size_t i = 0; i < sizeof seal->count; i++) {
        nonce[i] = (uint8_t)(seal->count >> 8 * i);
    }
    seal->count++;
}

void dmg_seal_put(dmg_seal *seal, uint8_t *record, size_t bytes, size_t clear_bytes, uint8_t tag[DMG_SEAL_TAG_BYTES])
{
    uint8_t nonce[NONCE_BYTES];
    size_t clear = seal->is_encrypted ? clear_bytes : bytes;
    uint8_t *secret = record + clear;
    take_nonce(seal, nonce);
    if (seal->cipher == DMG_STREAM_AES256_GCM) {
        crypto_aead_aes256gcm_encrypt_detached_afternm(secret, tag, NULL, secret, bytes - clear, record, clear, NULL,
                                                       nonce, &seal->aes);
    } else {
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(secret, tag, NULL, secret, bytes - clear, record, clear,
                                                           NULL, nonce, seal->key);
    }
}

bool dmg_seal_check(dmg_seal *seal, uint8_t *record, size_t bytes, size_t clear_bytes,
                    const uint8_t tag[DMG_SEAL_TAG_BYTES])
{
    uint8_t nonce[NONCE_BYTES];
    size_t clear = seal->is_encrypted ? clear_bytes : bytes;
    uint8_t *secret = record + clear;
    take_nonce(seal, nonce);
    int failed = seal->cipher == DMG_STREAM_AES256_GCM
                     ? crypto_aead_aes256gcm_decrypt_detached_afternm(secret, NULL, secret, bytes - clear, tag, record,
                                                                      clear, nonce, &seal->aes)
                     : crypto_aead_chacha20poly1305_ietf_decrypt_detached(secret, NULL, secret, bytes - clear, tag,
                                                                          record, clear, nonce, seal->key);
    return failed == 0;
}
