#include "core/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_message[DMG_ERROR_SENTENCE_BYTES];
static _Thread_local int last_number; /* errno value, or 0 */

static const char *const status_names[DMG_STATUS_COUNT] = {
    [DMG_OK] = "DMG_OK",
    [DMG_ERR_ARGUMENT] = "DMG_ERR_ARGUMENT",
    [DMG_ERR_IO] = "DMG_ERR_IO",
    [DMG_ERR_FORMAT] = "DMG_ERR_FORMAT",
    [DMG_ERR_MEMORY] = "DMG_ERR_MEMORY",
    [DMG_ERR_LIMIT] = "DMG_ERR_LIMIT",
    [DMG_ERR_PEER] = "DMG_ERR_PEER",
    [DMG_ERR_PROTOCOL] = "DMG_ERR_PROTOCOL",
    [DMG_ERR_NOT_FOUND] = "DMG_ERR_NOT_FOUND",
    [DMG_ERR_EXISTS] = "DMG_ERR_EXISTS",
    [DMG_ERR_UNSUPPORTED] = "DMG_ERR_UNSUPPORTED",
    [DMG_ERR_CORRUPT] = "DMG_ERR_CORRUPT",
    [DMG_ERR_CANCELLED] = "DMG_ERR_CANCELLED",
    [DMG_ERR_VERIFY] = "DMG_ERR_VERIFY",
    [DMG_ERR_INTERNAL] = "DMG_ERR_INTERNAL",
    [DMG_ERR_DENIED] = "DMG_ERR_DENIED",
};

const char *dmg_status_name(dmg_status status)
{
    unsigned int index = (unsigned int)status;
    return index < DMG_STATUS_COUNT ? status_names[index] : "DMG_ERR_UNKNOWN";
}

const char *dmg_error_message(void)
{
    return last_message;
}

dmg_status dmg_error(dmg_status status, const char *format, ...)
{
    /* The arguments may point into the message that is being replaced. */
    char message[DMG_ERROR_SENTENCE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    memcpy(last_message, message, sizeof message);
    last_number = 0;
    return status;
}

dmg_status dmg_error_prefix(dmg_status status, const char *format, ...)
{
    char prefix[DMG_ERROR_SENTENCE_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    int number = last_number;
    dmg_error(status, "%s: %s", prefix, last_message);
    last_number = number;
    return status;
}

dmg_status dmg_error_errno(dmg_status status, int errno_value, const char *format, ...)
{
    char what[DMG_ERROR_SENTENCE_BYTES / 2];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    char text[128];
    dmg_error(status, "%s: %s", what, strerror_r(errno_value, text, sizeof text));
    last_number = errno_value;
    return status;
}

int dmg_error_number(void)
{
    return last_number;
}

void dmg_error_keep(dmg_kept_error *kept, dmg_status status)
{
    if (status != DMG_OK && kept->status == DMG_OK) {
        kept->status = status;
        kept->errno_value = last_number;
        memcpy(kept->sentence, last_message, sizeof kept->sentence);
    }
}

dmg_status dmg_error_restore(const dmg_kept_error *kept)
{
    if (kept->status != DMG_OK) {
        last_number = kept->errno_value;
        memcpy(last_message, kept->sentence, sizeof last_message);
    }
    return kept->status;
}
