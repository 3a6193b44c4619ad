#include "core/pool/token.h"

#include "core/base/error.h"

#include <errno.h>
#include <sys/random.h>

dmg_status dmg_token_make(uint8_t token[DMG_TOKEN_BYTES])
{
    if (getrandom(token, DMG_TOKEN_BYTES, 0) != DMG_TOKEN_BYTES) {
        return dmg_error_errno(DMG_ERR_IO, errno, "asking the system for random bytes");
    }
    return DMG_OK;
}
