#include "transport/stream/socket.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/folder.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG           1024 /* the system's own bound, net.core.somaxconn, is often lower */
#define CONNECT_RETRY_NS  UINT64_C(2000000)
#define MILLISECOND_NS    UINT64_C(1000000)
#define DEAD_AGAIN_NS     UINT64_C(50000000)
#define NAME_RANDOM_WORDS 2
#define SOCKET_MODE       0600

static dmg_status create_socket(const dmg_stream_address *address, int kind, int *created)
{
    kind = address->is_network ? SOCK_STREAM : kind;
    *created = socket(address->name.any.sa_family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*created < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "creating a socket");
    }
    return DMG_OK;
}

/* ---- listening ---- */

/* The address string of a listening socket; the port may have been the kernel's choice. */
static void print_bound(int listener, const char *backend, const char *bind_to, const dmg_stream_address *address,
                        char *printed, size_t printed_bytes)
{
    dmg_stream_address bound = *address;
    bound.bytes = sizeof bound.name;
    if (!address->is_network || getsockname(listener, &bound.name.any, &bound.bytes) != 0) {
        dmg_stream_address_print(backend, address, printed, printed_bytes);
        return;
    }
    in_port_t port = bound.name.any.sa_family == AF_INET6 ? bound.name.ipv6.sin6_port : bound.name.ipv4.sin_port;
    size_t head = strlen(backend);
    const char *host = strncmp(bind_to, backend, head) == 0 && bind_to[head] == ':' ? bind_to + head + 1 : bind_to;
    snprintf(printed, printed_bytes, "%s:%.*s:%u", backend, (int)(strrchr(host, ':') - host), host,
             (unsigned int)ntohs(port));
}

/* Nobody listens at a socket in the file system. Asked twice: between its bind and its listen a memory node refuses. */
static bool is_dead(const dmg_stream_address *address, int kind)
{
    bool is_refused = true;
    for (int round = 0; round < 2 && is_refused; round++) {
        int probe;
        if (round > 0) {
            dmg_sleep_ns(DEAD_AGAIN_NS);
        }
        if (create_socket(address, kind, &probe) != DMG_OK) {
            return false;
        }
        is_refused = connect(probe, &address->name.any, address->bytes) != 0 && errno == ECONNREFUSED;
        close(probe);
    }
    return is_refused;
}

/* Bind; the name that a killed memory node of this user left is taken over. Returns an errno value, or 0. */
static int bind_and_listen(int created, const dmg_stream_address *address, int kind)
{
    struct stat about;
    const char *path = address->is_network ? "" : address->name.local.sun_path;
    int failed = bind(created, &address->name.any, address->bytes) == 0 ? 0 : errno;
    if (failed == EADDRINUSE && path[0] == '/' && lstat(path, &about) == 0 && S_ISSOCK(about.st_mode) &&
        about.st_uid == geteuid() && is_dead(address, kind) && unlink(path) == 0) {
        failed = bind(created, &address->name.any, address->bytes) == 0 ? 0 : errno;
    }
    if (failed == 0 && listen(created, BACKLOG) != 0) {
        failed = errno;
    }
    return failed;
}

dmg_status dmg_socket_listen(const char *backend, const char *bind_to, int kind, int *listener, char *printed,
                             size_t printed_bytes)
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
    dmg_stream_address address;
    int created;
    dmg_status status = dmg_stream_address_parse(backend, bind_to, &address);
    if (status == DMG_OK && !address.is_network && address.name.local.sun_path[0]) {
        status = dmg_folder_check(address.name.local.sun_path); /* a socket is made like a file */
    }
    if (status == DMG_OK) {
        status = create_socket(&address, kind, &created);
    }
    if (status != DMG_OK) {
        return status;
    }
    /* The port of a process that has just ended rests for a minute, where its ends closed first. A path's mode is set
     * before the name exists, so that it is never open to others. */
    int one = 1;
    bool is_set = address.is_network ? setsockopt(created, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0
                                     : fchmod(created, SOCKET_MODE) == 0;
    int failed = is_set ? bind_and_listen(created, &address, kind) : errno;
    if (failed != 0) {
        close(created);
        if (failed == EADDRINUSE) {
            return dmg_error(
                DMG_ERR_EXISTS,
                "the socket %s exists already: another program listens there, or the name is another file's", bind_to);
        }
        return dmg_error_errno(DMG_ERR_IO, failed, "listening on %s", bind_to);
    }
    print_bound(created, backend, bind_to, &address, printed, printed_bytes);
    *listener = created;
    return DMG_OK;
}

/* ---- connecting ---- */

/* A stopped process's backlog may be full: try until the timeout has passed. */
dmg_status dmg_socket_connect(const dmg_stream_address *address, int kind, const char *name, dmg_watch *watch,
                              int *connected)
{
    int created;
    dmg_status status = create_socket(address, kind, &created);
    if (status != DMG_OK) {
        return status;
    }
    int failed = 0;
    while (connect(created, &address->name.any, address->bytes) != 0 && errno != EISCONN) {
        failed = errno;
        bool is_under_way = failed == EAGAIN || failed == EINTR || failed == EINPROGRESS || failed == EALREADY;
        if (!is_under_way || dmg_watch_wait_is_over(watch, dmg_now_ns())) {
            break;
        }
        bool is_tcp = failed == EINPROGRESS || failed == EALREADY;
        struct pollfd watched = {.fd = created, .events = POLLOUT};
        failed = 0;
        if (is_tcp) {
            (void)poll(&watched, 1, (int)(dmg_watch_interval_ns(watch) / MILLISECOND_NS));
        } else {
            dmg_sleep_ns(CONNECT_RETRY_NS);
        }
    }
    if (failed) {
        close(created);
        return dmg_error_errno(DMG_ERR_PEER, failed, "connecting to %s", name);
    }
    if (!dmg_socket_peer_is_ours(created)) {
        /* Somebody else took the name of a memory node that is gone. */
        close(created);
        return dmg_error(DMG_ERR_PROTOCOL, "%s belongs to another user", name);
    }
    *connected = created;
    return DMG_OK;
}

dmg_status dmg_socket_greet(int socket, bool is_network, dmg_stream_protection wanted,
                            const uint8_t token[DMG_TOKEN_BYTES], const char *name, dmg_watch *watch,
                            dmg_stream_session *session)
{
    dmg_greeting greeting;
    dmg_status status = dmg_greeting_begin(&greeting, false, is_network, wanted, token);
    while (status == DMG_OK) {
        dmg_greeting_state state = dmg_greeting_go_on(&greeting, socket);
        if (state == DMG_GREETING_DONE) {
            *session = greeting.session;
            break;
        }
        if (state == DMG_GREETING_FAILED) {
            status = dmg_error_prefix(greeting.failure, "greeting %s", name);
            break;
        }
        /* What came is looked at before the clock is: after a pause it may all be there. */
        struct pollfd watched = {.fd = socket, .events = state == DMG_GREETING_WAITS_TO_READ ? POLLIN : POLLOUT};
        bool is_ready = poll(&watched, 1, (int)(dmg_watch_interval_ns(watch) / MILLISECOND_NS)) > 0;
        if (!is_ready && dmg_watch_wait_is_over(watch, dmg_now_ns())) {
            status = dmg_error(DMG_ERR_PEER, "%s does not answer: its process is stopped or busy", name);
        }
    }
    dmg_greeting_clear(&greeting);
    return status;
}

/* ---- who is there ---- */

bool dmg_socket_peer_is_ours(int socket)
{
    int domain;
    socklen_t domain_bytes = sizeof domain;
    if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &domain_bytes) == 0 && domain != AF_UNIX) {
        return true;
    }
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && (peer.uid == geteuid() || peer.uid == 0);
}

void dmg_socket_identify_peer(int socket, dmg_process *process)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    /* A process that this one cannot see, in another container, has the id 0; and so has one over TCP. */
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0 ||
        dmg_process_identify(peer.pid, process) != DMG_OK) {
        *process = (dmg_process){0};
    }
}
