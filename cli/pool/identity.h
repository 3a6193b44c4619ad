/**
 * @file identity.h
 * The secret by which a user owns what he has loaded into pools: 32 random bytes in a file of his, made on first use.
 *
 * The file is the one that DMGRAPH_IDENTITY names; else $XDG_STATE_HOME/dmgraph/identity, or
 * ~/.local/state/dmgraph/identity; where neither variable nor HOME says a folder, "identity" in the folder of pools.
 */
#ifndef DMG_CLI_POOL_IDENTITY_H
#define DMG_CLI_POOL_IDENTITY_H

#include "core/pool/rights.h"

/**
 * Read the identity of this user, making it when there is none.
 * @return DMG_ERR_ARGUMENT for a file or folder that is not safe, DMG_ERR_CORRUPT for one that holds something else,
 * DMG_ERR_IO
 */
dmg_status dmg_identity_find(uint8_t secret[DMG_SECRET_BYTES]);

#endif
