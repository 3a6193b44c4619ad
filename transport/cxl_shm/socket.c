/*
 * What a client and a memory node of this backend say over their socket, once they have connected.
 *
 * On one host it is a Unix socket of packets (SOCK_SEQPACKET), which keep their bounds, so that there is no half of a
 * greeting; between hosts it is TCP, and greetings have a fixed size.
 */
#include "transport/stream/socket.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/cxl_shm/shm.h"

#include <errno.h>
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

bool dmg_shm_send_welcome(int socket, const dmg_shm_welcome *welcome, int descriptor)
{
    struct iovec part = {.iov_base = (void *)(uintptr_t)welcome, .iov_len = sizeof *welcome};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof *welcome;
}

/* Receive the welcome; `*descriptor` is -1 when none came. The room allows one, and the kernel closes any more. */
static bool receive_welcome(int socket, dmg_shm_welcome *welcome, int *descriptor)
{
    struct iovec part = {.iov_base = welcome, .iov_len = sizeof *welcome};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    *descriptor = -1;
    ssize_t received = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = received >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(descriptor, CMSG_DATA(header), sizeof *descriptor);
    }
    return received == (ssize_t)sizeof *welcome && welcome->magic == DMG_SHM_MAGIC;
}

/* Wait until a welcome can be read: over TCP all of it. */
static dmg_status await_bytes(const char *name, int socket, bool is_network, dmg_watch *watch)
{
    struct pollfd watched = {.fd = socket, .events = POLLIN};
    for (;;) {
        /* What came is looked at before the clock is: after a pause it may all be there. */
        bool is_readable = poll(&watched, 1, (int)(dmg_watch_interval_ns(watch) / MILLISECOND_NS)) > 0;
        if (is_readable) {
            /* Who refuses says so first: a connection that closes without a word is one whose other end has died. */
            char first[sizeof(dmg_shm_welcome)];
            ssize_t there = recv(socket, first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
            if (there == 0 || (there < 0 && errno != EAGAIN && errno != EINTR)) {
                return dmg_error(DMG_ERR_PEER, "%s died: its connection closed", name);
            }
            if (there > 0 && (!is_network || there == (ssize_t)sizeof first)) {
                return DMG_OK;
            }
        }
        if (dmg_watch_wait_is_over(watch, dmg_now_ns())) {
            return dmg_error(DMG_ERR_PEER, "%s does not answer: its process is stopped or busy", name);
        }
        if (is_readable) {
            dmg_sleep_ns(MILLISECOND_NS); /* the rest is on its way, and poll would not wait for it */
        }
    }
}

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static dmg_status await_welcome(const char *name, int socket, bool is_network, dmg_watch *watch,
                                dmg_shm_welcome *welcome, int *descriptor)
{
    dmg_status waited = await_bytes(name, socket, is_network, watch);
    if (waited != DMG_OK) {
        return waited;
    }
    if (!receive_welcome(socket, welcome, descriptor)) {
        return dmg_error(DMG_ERR_PROTOCOL, "%s is not a memory node of this version of dmgraph", name);
    }
    if (welcome->status != DMG_OK) {
        dmg_status status = welcome->status < DMG_STATUS_COUNT ? (dmg_status)welcome->status : DMG_ERR_PROTOCOL;
        return dmg_error(status, "%s refused: %.*s", name, (int)sizeof welcome->sentence, welcome->sentence);
    }
    if (is_network) {
        bool makes_sense = is_power_of_two(welcome->alignment) && welcome->bytes != 0 &&
                           memchr(welcome->sentence, 0, sizeof welcome->sentence) != NULL;
        return makes_sense ? DMG_OK : dmg_error(DMG_ERR_PROTOCOL, "%s sent a welcome that makes no sense", name);
    }
    if (*descriptor < 0) {
        return dmg_error(DMG_ERR_PROTOCOL, "%s sent no memory", name);
    }
    struct stat about;
    if (fstat(*descriptor, &about) != 0 ||
        (S_ISREG(about.st_mode) && (welcome->bytes == 0 || (uint64_t)about.st_size < welcome->bytes)) ||
        !is_power_of_two(welcome->alignment)) {
        return dmg_error(DMG_ERR_PROTOCOL, "%s sent memory that is smaller than it says", name);
    }
    return DMG_OK;
}

dmg_status dmg_shm_greet(const char *address, const dmg_shm_hello *hello, uint64_t timeout_ns, dmg_shm_welcome *welcome,
                         int *socket, int *descriptor)
{
    dmg_watch watch;
    dmg_watch_start(&watch, timeout_ns, dmg_now_ns());
    dmg_stream_address place;
    *descriptor = -1;
    dmg_status status = dmg_stream_address_parse(DMG_SHM_BACKEND_NAME, address, &place);
    if (status == DMG_OK) {
        status = dmg_socket_connect(&place, SOCK_SEQPACKET, address, &watch, socket);
    }
    if (status != DMG_OK) {
        return status;
    }
    if (send(*socket, hello, sizeof *hello, MSG_NOSIGNAL) != (ssize_t)sizeof *hello) {
        status = dmg_error_errno(DMG_ERR_PEER, errno, "greeting %s", address);
    } else {
        status = await_welcome(address, *socket, place.is_network, &watch, welcome, descriptor);
    }
    if (status != DMG_OK) {
        close(*socket);
        *socket = -1;
        if (*descriptor >= 0) {
            close(*descriptor);
            *descriptor = -1;
        }
    }
    return status;
}
