/**
 * @file seal.h
 * One direction of a protected socket: each record under the next number, so that none can be changed, repeated, left
 * out or put elsewhere unnoticed.
 *
 * AES-256-GCM where both ends have instructions for it, else ChaCha20-Poly1305. A record in clear is all of it
 * associated data. The nonce is the record's number, and a key is for one direction of one session, so that no nonce is
 * used twice.
 */
#ifndef DMG_TRANSPORT_STREAM_SEAL_H
#define DMG_TRANSPORT_STREAM_SEAL_H

#include "transport/stream/greeting.h"

#include <sodium.h>

#define DMG_SEAL_TAG_BYTES 16

typedef struct dmg_seal {
    crypto_aead_aes256gcm_state aes; /**< of 16 bytes' alignment */
    uint8_t key[DMG_STREAM_KEY_BYTES];
    uint64_t count; /**< of records before this one */
    dmg_stream_cipher cipher;
    bool is_encrypted;
} dmg_seal;

/** Begin one direction of a session that is not plain. NULL: out of memory. */
dmg_seal *dmg_seal_open(const dmg_stream_session *session, bool is_sending);
/** Forget the key. NULL is allowed. */
void dmg_seal_close(dmg_seal *seal);
/** Seal the next record in place: of its bytes the first `clear_bytes` stay readable whatever was agreed. */
void dmg_seal_put(dmg_seal *seal, uint8_t *record, size_t bytes, size_t clear_bytes, uint8_t tag[DMG_SEAL_TAG_BYTES]);
/** Check the next record, and make it readable in place. False: it is not what the other end sent next. */
bool dmg_seal_check(dmg_seal *seal, uint8_t *record, size_t bytes, size_t clear_bytes,
                    const uint8_t tag[DMG_SEAL_TAG_BYTES]);

#endif
