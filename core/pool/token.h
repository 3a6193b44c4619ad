/**
 * @file token.h
 * A pool's shared secret: clients that do not show it are turned away.
 */
#ifndef DMG_CORE_POOL_TOKEN_H
#define DMG_CORE_POOL_TOKEN_H

#include "transport/transport.h"

/** Fresh random bytes. */
dmg_status dmg_token_make(uint8_t token[DMG_TOKEN_BYTES]);

#endif
