/**
 * @file secret_text.h
 * A pool's token, and other secrets, as they travel over the control socket and lie in files: hexadecimal digits. They
 * never stand in an argument list, which everybody can read.
 */
#ifndef DMG_CORE_POOL_SECRET_TEXT_H
#define DMG_CORE_POOL_SECRET_TEXT_H

#include "core/pool/rights.h"
#include "core/pool/token.h"

#define DMG_TOKEN_TEXT_BYTES  (2 * DMG_TOKEN_BYTES + 1)
#define DMG_SECRET_TEXT_BYTES (2 * DMG_SECRET_BYTES + 1)

void dmg_token_write(const uint8_t token[DMG_TOKEN_BYTES], char text[DMG_TOKEN_TEXT_BYTES]);
dmg_status dmg_token_read(const char *text, uint8_t token[DMG_TOKEN_BYTES]);

void dmg_secret_write(const uint8_t secret[DMG_SECRET_BYTES], char text[DMG_SECRET_TEXT_BYTES]);
dmg_status dmg_secret_read(const char *text, uint8_t secret[DMG_SECRET_BYTES]);

#endif
