#include "cli/token.h"

#include "core/base/error.h"

#include <stdio.h>
#include <string.h>

void dmg_token_write(const uint8_t token[DMG_TOKEN_BYTES], char text[DMG_TOKEN_TEXT_BYTES])
{
    for (size_t index = 0; index < DMG_TOKEN_BYTES; index++) {
        snprintf(text + 2 * index, 3, "%02x", token[index]);
    }
}

dmg_status dmg_token_read(const char *text, uint8_t token[DMG_TOKEN_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    bool is_good = strlen(text) == 2 * DMG_TOKEN_BYTES;
    for (size_t index = 0; index < DMG_TOKEN_BYTES && is_good; index++) {
        const char *high = strchr(digits, text[2 * index]);
        const char *low = strchr(digits, text[2 * index + 1]);
        is_good = high && low;
        token[index] = is_good ? (uint8_t)((high - digits) << 4 | (low - digits)) : 0;
    }
    return is_good ? DMG_OK
                   : dmg_error(DMG_ERR_PROTOCOL, "the token is not %d hexadecimal digits", 2 * DMG_TOKEN_BYTES);
}
