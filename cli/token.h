/**
 * @file token.h
 * A pool's shared secret as it travels over the control socket. It never stands in an argument list, which everybody
 * can read.
 */
#ifndef DMG_CLI_TOKEN_H
#define DMG_CLI_TOKEN_H

#include "core/pool/token.h"

#define DMG_TOKEN_TEXT_BYTES (2 * DMG_TOKEN_BYTES + 1)

void dmg_token_write(const uint8_t token[DMG_TOKEN_BYTES], char text[DMG_TOKEN_TEXT_BYTES]);
dmg_status dmg_token_read(const char *text, uint8_t token[DMG_TOKEN_BYTES]);

#endif
