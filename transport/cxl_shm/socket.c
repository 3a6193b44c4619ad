/*
 * The socket between a client and a memory node: names, descriptors, the greeting.
 *
 * On one host it is a Unix socket of packets (SOCK_SEQPACKET), which keep their bounds, so that there is no half of a
 * greeting; between hosts it is TCP, and greetings have a fixed size. The default name is abstract: it
 * is not in the file system, and is gone with the process, whatever ends it. Only the same user and root pass; the
 * token does the rest.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/folder.h"
#include "transport/cxl_shm/shm.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define BACKLOG            256
#define HOST_BYTES         200
#define CONNECT_RETRY_NS   UINT64_C(2000000)
#define MILLISECOND_NS     UINT64_C(1000000)
#define DEAD_AGAIN_NS      UINT64_C(50000000)
#define NAME_RANDOM_WORDS  2
#define SOCKET_MODE        0600
#define ABSTRACT_NAME_MARK '@'

static dmg_status parse_local(const char *name, dmg_shm_place *place)
{
    struct sockaddr_un *address = &place->address.local;
    size_t length = strlen(name);
    if (length < 2 || length >= sizeof address->sun_path) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "'%s' is not an address of " DMG_SHM_BACKEND_NAME ": a name has 2 to %zu bytes", name,
                         sizeof address->sun_path - 1);
    }
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, name, length);
    if (name[0] == ABSTRACT_NAME_MARK) {
        address->sun_path[0] = '\0';
    }
    place->bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length + (name[0] == '/'));
    return DMG_OK;
}

static dmg_status parse_network(const char *name, dmg_shm_place *place)
{
    bool has_brackets = name[0] == '[';
    const char *colon = strrchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : 0;
    const char *host_text = name;
    if (has_brackets && length > 2 && name[length - 1] == ']') {
        host_text++;
        length -= 2;
    }
    char host[HOST_BYTES];
    if (length == 0 || length >= sizeof host || colon[1] == '\0' ||
        (host_text == name && (has_brackets || memchr(name, ':', length)))) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "'%s' is not an address of " DMG_SHM_BACKEND_NAME
                         ": expected @NAME, /PATH, HOST:PORT or [HOST]:PORT",
                         name);
    }
    snprintf(host, sizeof host, "%.*s", (int)length, host_text);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found;
    int failed = getaddrinfo(host, colon + 1, &hints, &found);
    if (failed) {
        return dmg_error(DMG_ERR_ARGUMENT, "the address '%s': %s", name, gai_strerror(failed));
    }
    /* A name that stands for addresses of both kinds means the same one at both ends. */
    const struct addrinfo *chosen = found;
    while (chosen->ai_family != AF_INET && chosen->ai_next) {
        chosen = chosen->ai_next;
    }
    chosen = chosen->ai_family == AF_INET ? chosen : found;
    memcpy(&place->address, chosen->ai_addr, chosen->ai_addrlen);
    place->bytes = chosen->ai_addrlen;
    place->is_network = true;
    freeaddrinfo(found);
    return DMG_OK;
}

dmg_status dmg_shm_parse_address(const char *text, dmg_shm_place *place)
{
    static const char prefix[] = DMG_SHM_BACKEND_NAME ":";
    const char *name = strncmp(text, prefix, sizeof prefix - 1) == 0 ? text + sizeof prefix - 1 : text;
    memset(place, 0, sizeof *place);
    return name[0] == ABSTRACT_NAME_MARK || name[0] == '/' ? parse_local(name, place) : parse_network(name, place);
}

static dmg_status create_socket(const dmg_shm_place *place, int *created)
{
    int kind = place->is_network ? SOCK_STREAM : SOCK_SEQPACKET;
    *created = socket(place->address.any.sa_family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (*created < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "creating a socket");
    }
    if (place->is_network) {
        int one = 1; /* bytes that wake a sleeper are not to be collected */
        (void)setsockopt(*created, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    return DMG_OK;
}

/* The address string of a listening socket; the port may have been the kernel's choice. */
static void print_address(int listener, const char *bind_to, const dmg_shm_place *place,
                          char printed[DMG_ADDRESS_STRING_BYTES])
{
    dmg_shm_place bound = {0};
    socklen_t bytes = sizeof bound.address;
    if (place->is_network && getsockname(listener, &bound.address.any, &bytes) == 0) {
        in_port_t port =
            bound.address.any.sa_family == AF_INET6 ? bound.address.ipv6.sin6_port : bound.address.ipv4.sin_port;
        snprintf(printed, DMG_ADDRESS_STRING_BYTES, DMG_SHM_BACKEND_NAME ":%.*s:%u",
                 (int)(strrchr(bind_to, ':') - bind_to), bind_to, (unsigned int)ntohs(port));
        return;
    }
    const char *path = place->address.local.sun_path;
    snprintf(printed, DMG_ADDRESS_STRING_BYTES, DMG_SHM_BACKEND_NAME ":%c%s", path[0] ? '/' : ABSTRACT_NAME_MARK,
             path + 1);
}

/* Nobody listens at a socket in the file system. Asked twice: between its bind and its listen a memory node refuses. */
static bool is_dead(const dmg_shm_place *place)
{
    bool is_refused = true;
    for (int round = 0; round < 2 && is_refused; round++) {
        int probe;
        if (round > 0) {
            dmg_sleep_ns(DEAD_AGAIN_NS);
        }
        if (create_socket(place, &probe) != DMG_OK) {
            return false;
        }
        is_refused = connect(probe, &place->address.any, place->bytes) != 0 && errno == ECONNREFUSED;
        close(probe);
    }
    return is_refused;
}

/* Bind; the name that a killed memory node of this user left is taken over. Returns an errno value, or 0. */
static int bind_and_listen(int created, const dmg_shm_place *place)
{
    struct stat about;
    const char *path = place->is_network ? "" : place->address.local.sun_path;
    int failed = bind(created, &place->address.any, place->bytes) == 0 ? 0 : errno;
    if (failed == EADDRINUSE && path[0] == '/' && lstat(path, &about) == 0 && S_ISSOCK(about.st_mode) &&
        about.st_uid == geteuid() && is_dead(place) && unlink(path) == 0) {
        failed = bind(created, &place->address.any, place->bytes) == 0 ? 0 : errno;
    }
    if (failed == 0 && listen(created, BACKLOG) != 0) {
        failed = errno;
    }
    return failed;
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
    dmg_shm_place place;
    int created;
    dmg_status status = dmg_shm_parse_address(bind_to, &place);
    if (status == DMG_OK && bind_to[0] == '/') {
        status = dmg_folder_check(bind_to); /* a socket is made like a file */
    }
    if (status == DMG_OK) {
        status = create_socket(&place, &created);
    }
    if (status != DMG_OK) {
        return status;
    }
    /* Before the name exists, so that it is never open to others. */
    /* The port of a memory node that has just ended rests for a minute, where its ends closed first. */
    int one = 1;
    bool is_set = place.is_network ? setsockopt(created, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0
                                   : fchmod(created, SOCKET_MODE) == 0;
    int failed = is_set ? bind_and_listen(created, &place) : errno;
    if (failed != 0) {
        close(created);
        if (failed == EADDRINUSE) {
            return dmg_error(
                DMG_ERR_EXISTS,
                "the socket %s exists already: another program listens there, or the name is another file's", bind_to);
        }
        return dmg_error_errno(DMG_ERR_IO, failed, "listening on %s", bind_to);
    }
    print_address(created, bind_to, &place, printed);
    *listener = created;
    return DMG_OK;
}

void dmg_shm_path_of(const dmg_transport_parameters *parameters, uint32_t node, char path[96])
{
    const char *list = dmg_transport_parameter_get(parameters, "path", "");
    for (uint32_t i = 0; i < node && *list; i++) {
        list += strcspn(list, "+");
        list += *list == '+';
    }
    snprintf(path, 96, "%.*s", (int)strcspn(list, "+"), list);
}

bool dmg_shm_peer_is_ours(int socket)
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

void dmg_shm_identify_peer(int socket, dmg_process *process)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    /* A process that this one cannot see, in another container, has the id 0; and so has one over TCP. */
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 || peer.pid <= 0 ||
        dmg_process_identify(peer.pid, process) != DMG_OK) {
        *process = (dmg_process){0};
    }
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

/* A stopped memory node's backlog may be full: try until the timeout has passed. */
static dmg_status connect_within(const char *name, const dmg_shm_place *place, dmg_watch *watch, int *socket_out)
{
    int created;
    dmg_status status = create_socket(place, &created);
    if (status != DMG_OK) {
        return status;
    }
    int failed = 0;
    while (connect(created, &place->address.any, place->bytes) != 0 && errno != EISCONN) {
        failed = errno;
        bool is_under_way = failed == EAGAIN || failed == EINTR || failed == EINPROGRESS || failed == EALREADY;
        if (!is_under_way || dmg_watch_wait_is_over(watch, dmg_now_ns())) {
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
    dmg_shm_place place;
    *descriptor = -1;
    dmg_status status = dmg_shm_parse_address(address, &place);
    if (status == DMG_OK) {
        status = connect_within(address, &place, &watch, socket);
    }
    if (status != DMG_OK) {
        return status;
    }
    if (!dmg_shm_peer_is_ours(*socket)) {
        /* Somebody else took the name of a memory node that is gone; our token is not for them. */
        status = dmg_error(DMG_ERR_PROTOCOL, "%s belongs to another user", address);
    } else if (send(*socket, hello, sizeof *hello, MSG_NOSIGNAL) != (ssize_t)sizeof *hello) {
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
