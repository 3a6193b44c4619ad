#include "core/pool/token.h"

#include "core/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

dmg_status dmg_token_make(uint8_t token[DMG_TOKEN_BYTES])
{
    if (getrandom(token, DMG_TOKEN_BYTES, 0) != DMG_TOKEN_BYTES) {
        return dmg_error_errno(DMG_ERR_IO, errno, "asking the system for random bytes");
    }
    return DMG_OK;
}

static void write_digits(const uint8_t *bytes, size_t count, char *text)
{
    for (size_t index = 0; index < count; index++) {
        snprintf(text + 2 * index, 3, "%02x", bytes[index]);
    }
}

static dmg_status read_digits(const char *text, const char *what, size_t count, uint8_t *bytes)
{
    static const char digits[] = "0123456789abcdef";
    bool is_good = strlen(text) == 2 * count;
    for (size_t index = 0; index < count && is_good; index++) {
        const char *high = strchr(digits, text[2 * index]);
        const char *low = strchr(digits, text[2 * index + 1]);
        is_good = high && low;
        bytes[index] = is_good ? (uint8_t)((high - digits) << 4 | (low - digits)) : 0;
    }
    return is_good ? DMG_OK : dmg_error(DMG_ERR_PROTOCOL, "the %s is not %zu hexadecimal digits", what, 2 * count);
}

void dmg_token_write(const uint8_t token[DMG_TOKEN_BYTES], char text[DMG_TOKEN_TEXT_BYTES])
{
    write_digits(token, DMG_TOKEN_BYTES, text);
}

dmg_status dmg_token_read(const char *text, uint8_t token[DMG_TOKEN_BYTES])
{
    return read_digits(text, "token", DMG_TOKEN_BYTES, token);
}

void dmg_secret_write(const uint8_t secret[DMG_SECRET_BYTES], char text[DMG_SECRET_TEXT_BYTES])
{
    write_digits(secret, DMG_SECRET_BYTES, text);
}

dmg_status dmg_secret_read(const char *text, uint8_t secret[DMG_SECRET_BYTES])
{
    return read_digits(text, "secret", DMG_SECRET_BYTES, secret);
}
