/*
 * The Unix socket between a client and a memory node: names, descriptors, the greeting.
 *
 * Packets (SOCK_SEQPACKET) keep their bounds, so that there is no half of a greeting. The default name is abstract: it
 * is not in the file system, and is gone with the process, whatever ends it. Only the same user and root pass; the
 * token does the rest.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/cxl_shm/shm.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG            256
#define CONNECT_RETRY_NS   UINT64_C(2000000)
#define MILLISECOND_NS     UINT64_C(1000000)
#define NAME_RANDOM_WORDS  2
#define SOCKET_MODE        0600
#define ABSTRACT_NAME_MARK '@'

dmg_status dmg_shm_parse_address(const char *text, struct sockaddr_un *address, socklen_t *bytes)
{
    static const char prefix[] = DMG_SHM_BACKEND_NAME ":";
    const char *name = strncmp(text, prefix, sizeof prefix - 1) == 0 ? text + sizeof prefix - 1 : text;
    size_t length = strlen(name);
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    if ((name[0] != ABSTRACT_NAME_MARK && name[0] != '/') || length < 2 || length >= sizeof address->sun_path) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "'%s' is not an address of " DMG_SHM_BACKEND_NAME
                         ": expected @NAME or /PATH of 2 to %zu bytes",
                         text, sizeof address->sun_path - 1);
    }
    memcpy(address->sun_path, name, length);
    if (name[0] == ABSTRACT_NAME_MARK) {
        address->sun_path[0] = '\0';
    }
    *bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (name[0] == '/'));
    return DMG_OK;
}

dmg_status dmg_shm_listen(const char *bind_to, int *listener, char printed[DMG_ADDRESS_STRING_BYTES])
{
    char fresh[80];
    if (!bind_to) {
        uint64_t words[NAME_RANDOM_WORDS];
        if (getrandom(words, sizeof words, 0) != sizeof words) {
            return dmg_error(DMG_ERR_IO, "naming a socket: the system gives no random numbers");
        }
        snprintf(fresh, sizeof fresh, "@dmgraph-%u-%016" PRIx64 "%016" PRIx64, (unsigned int)geteuid(), words[0],
                 words[1]);
        bind_to = fresh;
    }
    struct sockaddr_un address;
    socklen_t bytes;
    dmg_status status = dmg_shm_parse_address(bind_to, &address, &bytes);
    if (status != DMG_OK) {
        return status;
    }
    int created = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (created < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "creating a Unix socket");
    }
    /* Before the name exists, so that it is never open to others. */
    if (fchmod(created, SOCKET_MODE) != 0 || bind(created, (struct sockaddr *)&address, bytes) != 0 ||
        listen(created, BACKLOG) != 0) {
        int failed = errno;
        close(created);
        if (failed == EADDRINUSE) {
            return dmg_error(DMG_ERR_EXISTS,
                             "the socket %s exists already; another memory node listens there, or one that was killed "
                             "left it: then remove it",
                             bind_to);
        }
        return dmg_error_errno(DMG_ERR_IO, failed, "listening on %s", bind_to);
    }
    snprintf(printed, DMG_ADDRESS_STRING_BYTES, DMG_SHM_BACKEND_NAME ":%c%s",
             address.sun_path[0] ? '/' : ABSTRACT_NAME_MARK, address.sun_path + 1);
    *listener = created;
    return DMG_OK;
}

bool dmg_shm_peer_is_ours(int socket)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && (peer.uid == geteuid() || peer.uid == 0);
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

/* A stopped memory node's backlog may be full: try until the deadline. */
static dmg_status connect_until(const char *name, uint64_t deadline_ns, int *socket_out)
{
    struct sockaddr_un address;
    socklen_t bytes;
    dmg_status status = dmg_shm_parse_address(name, &address, &bytes);
    if (status != DMG_OK) {
        return status;
    }
    int created = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (created < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "creating a Unix socket");
    }
    int failed = 0;
    while (connect(created, (struct sockaddr *)&address, bytes) != 0) {
        failed = errno;
        if ((failed != EAGAIN && failed != EINTR) || dmg_now_ns() >= deadline_ns) {
            break;
        }
        failed = 0;
        dmg_sleep_ns(CONNECT_RETRY_NS);
    }
    if (failed) {
        close(created);
        return dmg_error_errno(DMG_ERR_PEER, failed, "connecting to %s", name);
    }
    *socket_out = created;
    return DMG_OK;
}

static dmg_status await_welcome(const char *name, int socket, uint64_t deadline_ns, dmg_shm_welcome *welcome,
                                int *descriptor)
{
    struct pollfd watched = {.fd = socket, .events = POLLIN};
    for (;;) {
        uint64_t now_ns = dmg_now_ns();
        if (now_ns >= deadline_ns) {
            return dmg_error(DMG_ERR_PEER, "%s does not answer: its process is stopped or busy", name);
        }
        if (poll(&watched, 1, (int)((deadline_ns - now_ns) / MILLISECOND_NS) + 1) > 0) {
            break;
        }
    }
    /* Who refuses says so first: a connection that closes without a word is one whose other end has died. */
    char first;
    ssize_t there = recv(socket, &first, sizeof first, MSG_PEEK | MSG_DONTWAIT);
    if (there == 0 || (there < 0 && errno == ECONNRESET)) {
        return dmg_error(DMG_ERR_PEER, "%s died: its connection closed", name);
    }
    if (!receive_welcome(socket, welcome, descriptor)) {
        return dmg_error(DMG_ERR_PROTOCOL, "%s is not a memory node of this version of dmgraph", name);
    }
    if (welcome->status != DMG_OK) {
        dmg_status status = welcome->status < DMG_STATUS_COUNT ? (dmg_status)welcome->status : DMG_ERR_PROTOCOL;
        return dmg_error(status, "%s refused: %.*s", name, (int)sizeof welcome->sentence, welcome->sentence);
    }
    if (*descriptor < 0) {
        return dmg_error(DMG_ERR_PROTOCOL, "%s sent no memory", name);
    }
    struct stat about;
    if (fstat(*descriptor, &about) != 0 ||
        (S_ISREG(about.st_mode) && (welcome->bytes == 0 || (uint64_t)about.st_size < welcome->bytes)) ||
        welcome->alignment == 0 || (welcome->alignment & (welcome->alignment - 1)) != 0) {
        return dmg_error(DMG_ERR_PROTOCOL, "%s sent memory that is smaller than it says", name);
    }
    return DMG_OK;
}

dmg_status dmg_shm_greet(const char *address, const dmg_shm_hello *hello, uint64_t timeout_ns, dmg_shm_welcome *welcome,
                         int *socket, int *descriptor)
{
    uint64_t deadline_ns = dmg_now_ns() + timeout_ns;
    *descriptor = -1;
    dmg_status status = connect_until(address, deadline_ns, socket);
    if (status != DMG_OK) {
        return status;
    }
    if (!dmg_shm_peer_is_ours(*socket)) {
        /* Somebody else took the name of a memory node that is gone; our token is not for them. */
        status = dmg_error(DMG_ERR_PROTOCOL, "%s belongs to another user", address);
    } else if (send(*socket, hello, sizeof *hello, MSG_NOSIGNAL) != (ssize_t)sizeof *hello) {
        status = dmg_error_errno(DMG_ERR_PEER, errno, "greeting %s", address);
    } else {
        status = await_welcome(address, *socket, deadline_ns, welcome, descriptor);
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
