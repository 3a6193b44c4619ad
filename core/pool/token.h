/**
 * @file token.h
 * A pool's shared secret: clients that do not show it are turned away. It and the other secrets travel over control
 * sockets and lie in files as hexadecimal digits; they never stand in an argument list, which everybody can read.
 */
#ifndef DMG_CORE_POOL_TOKEN_H
#define DMG_CORE_POOL_TOKEN_H

#include "core/pool/rights.h"

/** With the terminating zero. */
#define DMG_TOKEN_TEXT_BYTES  (2 * DMG_TOKEN_BYTES + 1)
#define DMG_SECRET_TEXT_BYTES (2 * DMG_SECRET_BYTES + 1)

/** Fresh random bytes. DMG_ERR_IO when the system has none. */
dmg_status dmg_token_make(uint8_t token[DMG_TOKEN_BYTES]);

/** A token as hexadecimal digits. */
void dmg_token_write(const uint8_t token[DMG_TOKEN_BYTES], char text[DMG_TOKEN_TEXT_BYTES]);
/** A token from its digits. DMG_ERR_PROTOCOL when the text is anything but as many lower-case digits as it takes. */
dmg_status dmg_token_read(const char *text, uint8_t token[DMG_TOKEN_BYTES]);

/** A secret (rights.h) as hexadecimal digits. */
void dmg_secret_write(const uint8_t secret[DMG_SECRET_BYTES], char text[DMG_SECRET_TEXT_BYTES]);
/** A secret from its digits; fails as dmg_token_read does. */
dmg_status dmg_secret_read(const char *text, uint8_t secret[DMG_SECRET_BYTES]);

#endif
