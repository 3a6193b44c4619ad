#include "cli/launcher/control.h"

#include "core/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

dmg_status dmg_control_send(int control, json_t *message, bool may_drop)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    if (!text) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a control message");
    }
    size_t bytes = strlen(text);
    if (bytes > DMG_CONTROL_BYTES_MAX) {
        free(text);
        return dmg_error(DMG_ERR_LIMIT, "a control message of %zu bytes exceeds the limit of %d", bytes,
                         DMG_CONTROL_BYTES_MAX);
    }
    ssize_t sent;
    do {
        sent = send(control, text, bytes, MSG_NOSIGNAL | (may_drop ? MSG_DONTWAIT : 0));
    } while (sent < 0 && errno == EINTR);
    int error = errno;
    free(text);
    if (sent >= 0 || (may_drop && (error == EAGAIN || error == EWOULDBLOCK))) {
        return DMG_OK;
    }
    return dmg_error_errno(error == EPIPE || error == ECONNRESET ? DMG_ERR_PEER : DMG_ERR_IO, error,
                           "sending a control message");
}

dmg_status dmg_control_receive(int control, bool may_wait, json_t **message)
{
    *message = NULL;
    char *buffer = malloc(DMG_CONTROL_BYTES_MAX);
    if (!buffer) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a control message");
    }
    ssize_t received;
    do {
        /* MSG_TRUNC: the packet's real size is returned, so that one that was cut is noticed. */
        received = recv(control, buffer, DMG_CONTROL_BYTES_MAX, MSG_TRUNC | (may_wait ? 0 : MSG_DONTWAIT));
    } while (received < 0 && errno == EINTR);
    int error = errno;
    dmg_status status = DMG_OK;
    if (received < 0 && (error == EAGAIN || error == EWOULDBLOCK)) {
        status = DMG_OK;
    } else if (received == 0 || (received < 0 && error == ECONNRESET)) {
        status = dmg_error(DMG_ERR_PEER, "the control socket's other end is closed");
    } else if (received < 0) {
        status = dmg_error_errno(DMG_ERR_IO, error, "receiving a control message");
    } else if (received > DMG_CONTROL_BYTES_MAX) {
        status = dmg_error(DMG_ERR_PROTOCOL, "a control message of %zd bytes exceeds the limit", received);
    } else {
        json_error_t reason;
        *message = json_loadb(buffer, (size_t)received, JSON_REJECT_DUPLICATES, &reason);
        if (!*message || !json_is_string(json_object_get(*message, "type"))) {
            json_decref(*message);
            *message = NULL;
            status = dmg_error(DMG_ERR_PROTOCOL, "a control message is not an object with a type");
        }
    }
    free(buffer);
    return status;
}

const char *dmg_control_type(const json_t *message)
{
    const char *type = json_string_value(json_object_get(message, "type"));
    return type ? type : "";
}

dmg_status dmg_control_unpack(json_t *message, const char *format, ...)
{
    json_error_t reason;
    va_list arguments;
    va_start(arguments, format);
    int failed = json_vunpack_ex(message, &reason, 0, format, arguments);
    va_end(arguments);
    if (failed) {
        return dmg_error(DMG_ERR_PROTOCOL, "control message '%s': %s", dmg_control_type(message), reason.text);
    }
    return DMG_OK;
}
