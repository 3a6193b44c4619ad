/*
 * What a client says to a memory node of this backend when they have connected and greeted: hello, and hears a welcome.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/cxl_shm/shm.h"
#include "transport/stream/socket.h"

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MILLISECOND_NS UINT64_C(1000000)

void dmg_shm_path_of(const dmg_transport_parameters *parameters, uint32_t node, char path[96])
{
    const char *list = dmg_transport_parameter_get(parameters, "path", "");
    for (uint32_t i = 0; i < node && *list; i++) {
        list += strcspn(list, "+");
        list += *list == '+';
    }
    snprintf(path, 96, "%.*s", (int)strcspn(list, "+"), list);
}

dmg_status dmg_shm_protection_check(bool is_network, dmg_stream_protection wanted)
{
    if (wanted == DMG_STREAM_ENCRYPTED && !is_network) {
        return dmg_error(
            DMG_ERR_ARGUMENT,
            "the transport's parameter protect=encrypted is for memory nodes that are reached by TCP (--bind "
            "HOST and path=): what goes over a Unix socket does not leave the host, and is not encrypted");
    }
    return DMG_OK;
}

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* Wait until a packet or record has come. */
static dmg_status await_message(const char *name, dmg_shm_line *line, dmg_watch *watch, dmg_shm_welcome *welcome,
                                int *descriptor)
{
    struct pollfd watched = {.fd = line->socket, .events = POLLIN};
    for (;;) {
        /* What came is looked at before the clock is: after a pause it may all be there. */
        ssize_t received = dmg_shm_line_receive(line, welcome, sizeof *welcome, descriptor);
        if (received == (ssize_t)sizeof *welcome && welcome->magic == DMG_SHM_MAGIC) {
            return DMG_OK;
        }
        if (received > 0) {
            return dmg_error(DMG_ERR_PROTOCOL, "%s is not a memory node of this version of dmgraph", name);
        }
        if (received == 0) {
            /* Who refuses says so first: a connection that closes without a word is one whose other end has died. */
            return dmg_error(DMG_ERR_PEER, "%s died: its connection closed", name);
        }
        bool is_readable = poll(&watched, 1, (int)(dmg_watch_interval_ns(watch) / MILLISECOND_NS)) > 0;
        if (!is_readable && dmg_watch_wait_is_over(watch, dmg_now_ns())) {
            return dmg_error(DMG_ERR_PEER, "%s does not answer: its process is stopped or busy", name);
        }
    }
}

/* Whether the memory that a memory node of this host handed over is what it says. */
static dmg_status check_memory(const char *name, const dmg_shm_welcome *welcome, int descriptor)
{
    struct stat about;
    if (descriptor < 0) {
        return dmg_error(DMG_ERR_PROTOCOL, "%s sent no memory", name);
    }
    if (fstat(descriptor, &about) != 0 ||
        (S_ISREG(about.st_mode) && (welcome->bytes == 0 || (uint64_t)about.st_size < welcome->bytes)) ||
        !is_power_of_two(welcome->alignment)) {
        return dmg_error(DMG_ERR_PROTOCOL, "%s sent memory that is smaller than it says", name);
    }
    return DMG_OK;
}

static dmg_status check_welcome(const char *name, const dmg_shm_welcome *welcome, bool is_network, int descriptor)
{
    if (welcome->status != DMG_OK) {
        dmg_status status = welcome->status < DMG_STATUS_COUNT ? (dmg_status)welcome->status : DMG_ERR_PROTOCOL;
        return dmg_error(status, "%s refused: %.*s", name, (int)sizeof welcome->sentence, welcome->sentence);
    }
    if (!is_network) {
        return check_memory(name, welcome, descriptor);
    }
    bool makes_sense = is_power_of_two(welcome->alignment) && welcome->bytes != 0 &&
                       memchr(welcome->sentence, 0, sizeof welcome->sentence) != NULL;
    return makes_sense ? DMG_OK : dmg_error(DMG_ERR_PROTOCOL, "%s sent a welcome that makes no sense", name);
}

/* A line to the memory node, which knows the secret. */
static dmg_status connect_line(const char *address, const dmg_shm_greeter *greeter, dmg_watch *watch,
                               dmg_shm_line *line)
{
    int socket;
    dmg_stream_address place;
    dmg_stream_session session;
    dmg_status status = dmg_stream_address_parse(DMG_SHM_BACKEND_NAME, address, &place);
    if (status == DMG_OK) {
        status = dmg_shm_protection_check(place.is_network, greeter->wanted);
    }
    if (status == DMG_OK) {
        status = dmg_socket_connect(&place, SOCK_SEQPACKET, address, watch, &socket);
    }
    if (status != DMG_OK) {
        return status;
    }
    status = dmg_socket_greet(socket, place.is_network, greeter->wanted, greeter->token, address, watch, &session);
    if (status != DMG_OK) {
        close(socket);
        return status;
    }
    status = dmg_shm_line_open(socket, &session, line);
    explicit_bzero(&session, sizeof session);
    return status;
}

dmg_status dmg_shm_greet(const char *address, const dmg_shm_greeter *greeter, const dmg_shm_hello *hello,
                         dmg_shm_welcome *welcome, dmg_shm_line *line, int *descriptor)
{
    dmg_watch watch;
    dmg_watch_start(&watch, greeter->timeout_ns, dmg_now_ns());
    *line = (dmg_shm_line){.socket = -1};
    *descriptor = -1;
    dmg_status status = connect_line(address, greeter, &watch, line);
    if (status != DMG_OK) {
        return status;
    }
    if (!dmg_shm_line_send(line, hello, sizeof *hello, -1)) {
        status = dmg_error(DMG_ERR_PEER, "%s died: its connection closed", address);
    } else {
        status = await_message(address, line, &watch, welcome, descriptor);
    }
    if (status == DMG_OK) {
        status = check_welcome(address, welcome, dmg_shm_line_is_network(line), *descriptor);
    }
    if (status != DMG_OK) {
        dmg_shm_line_close(line);
        if (*descriptor >= 0) {
            close(*descriptor);
            *descriptor = -1;
        }
    }
    return status;
}
