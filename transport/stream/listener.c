#include "transport/stream/listener.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/stream/socket.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define STRANGERS_MAX 256
#define EVENTS_MAX    64
#define ACCEPTS_MAX   32 /* a round, so that a flood of connections does not keep others waiting */
#define PAUSE_NS      UINT64_C(100000000)
#define SILENT_NS     UINT64_C(50000000) /* when others wait; who is a client speaks at once, if it has a processor */
#define TICKS         4                  /* a greeting's timeout */
#define TICK_NS_MIN   UINT64_C(1000000)
#define SECOND_NS     UINT64_C(1000000000)

/* Somebody who has not greeted yet. */
typedef struct stranger {
    int socket;
    uint32_t events; /* that it is watched for */
    uint64_t since_ns;
    struct stranger *older;
    struct stranger *newer;
    dmg_greeting greeting;
} stranger;

struct dmg_listener {
    char address[DMG_ADDRESS_STRING_BYTES];
    const char *path; /* in the address, of a socket in the file system; or NULL */
    uint8_t token[DMG_TOKEN_BYTES];
    dmg_stream_protection wanted;
    size_t record_bytes_max;
    uint64_t greeting_timeout_ns;
    uint32_t strangers_max;
    bool is_network;
    bool is_crowded; /* no place for one more: accepting waits */
    bool is_paused;  /* no descriptor, or no memory: accepting waits, too */
    bool is_starved; /* the same since the last time that all who waited were taken in */
    uint64_t paused_ns;
    uint64_t tick_ns; /* the timer's; 0: it rests */
    int socket;
    int epoll;
    int timer;
    uint32_t stranger_count;
    stranger *oldest;
    stranger *newest;
    dmg_listener_counts counts;
    uint64_t next_report; /* of refused and expired together */
};

/* ---- what wakes its owner ---- */

static bool watch(const dmg_listener *listener, int operation, int descriptor, uint32_t events, void *about)
{
    struct epoll_event event = {.events = events, .data.ptr = about};
    return epoll_ctl(listener->epoll, operation, descriptor, &event) == 0;
}

/* The timer runs while there is something that time alone decides. */
static void set_timer(dmg_listener *listener)
{
    uint64_t tick_ns = 0;
    if (listener->is_paused) {
        tick_ns = PAUSE_NS;
    } else if (listener->is_crowded) {
        tick_ns = SILENT_NS;
    } else if (listener->stranger_count > 0) {
        tick_ns = listener->greeting_timeout_ns / TICKS;
        tick_ns = tick_ns > TICK_NS_MIN ? tick_ns : TICK_NS_MIN;
    }
    if (tick_ns != listener->tick_ns) {
        struct timespec tick = {.tv_sec = (time_t)(tick_ns / SECOND_NS), .tv_nsec = (long)(tick_ns % SECOND_NS)};
        struct itimerspec period = {.it_interval = tick, .it_value = tick};
        (void)timerfd_settime(listener->timer, 0, &period, NULL);
        listener->tick_ns = tick_ns;
    }
}

/* ---- strangers ---- */

/* The socket is taken out of the stranger's hands, and stays open. */
static int forget_stranger(dmg_listener *listener, stranger *known)
{
    int socket = known->socket;
    *(known->older ? &known->older->newer : &listener->oldest) = known->newer;
    *(known->newer ? &known->newer->older : &listener->newest) = known->older;
    listener->stranger_count--;
    (void)epoll_ctl(listener->epoll, EPOLL_CTL_DEL, socket, NULL);
    dmg_greeting_clear(&known->greeting);
    free(known);
    return socket;
}

static void log_refusal(const dmg_listener *listener, const char *why)
{
    dmg_log(DMG_LOG_DEBUG, "connection_refused", "address=%s why=\"%s\"", listener->address, why);
}

static void expire(dmg_listener *listener, stranger *slow, const char *why)
{
    listener->counts.expired++;
    log_refusal(listener, why);
    close(forget_stranger(listener, slow));
}

static uint64_t age_ns(const stranger *known, uint64_t now_ns)
{
    return now_ns > known->since_ns ? now_ns - known->since_ns : 0;
}

static uint32_t expire_strangers(dmg_listener *listener, uint64_t now_ns)
{
    uint32_t count = 0;
    while (listener->oldest && age_ns(listener->oldest, now_ns) > listener->greeting_timeout_ns) {
        expire(listener, listener->oldest, "it did not greet in time");
        count++;
    }
    return count;
}

/* Who goes when there is no room for one more: the oldest who has said nothing, or just the oldest. NULL: all of them
 * are to have their time. */
static stranger *find_dispensable(const dmg_listener *listener, uint64_t now_ns)
{
    for (stranger *known = listener->oldest; known && age_ns(known, now_ns) >= SILENT_NS; known = known->newer) {
        if (dmg_greeting_is_silent(&known->greeting)) {
            return known;
        }
    }
    bool is_slow = listener->oldest && age_ns(listener->oldest, now_ns) > listener->greeting_timeout_ns / TICKS;
    return is_slow ? listener->oldest : NULL;
}

/* False when there is no memory for it. */
static bool take_in(dmg_listener *listener, int socket, uint64_t now_ns)
{
    stranger *taken = calloc(1, sizeof *taken);
    if (!taken ||
        dmg_greeting_begin(&taken->greeting, true, listener->is_network, listener->wanted, listener->token) != DMG_OK) {
        free(taken);
        return false;
    }
    if (!watch(listener, EPOLL_CTL_ADD, socket, EPOLLIN, taken)) {
        dmg_greeting_clear(&taken->greeting);
        free(taken);
        return false;
    }
    taken->socket = socket;
    taken->events = EPOLLIN;
    taken->since_ns = now_ns;
    taken->older = listener->newest;
    *(listener->newest ? &listener->newest->newer : &listener->oldest) = taken;
    listener->newest = taken;
    listener->stranger_count++;
    return true;
}

/* ---- accepting ---- */

static void pause_accepting(dmg_listener *listener, int why, uint64_t now_ns)
{
    listener->counts.postponed++;
    if (!listener->is_starved) {
        dmg_log(DMG_LOG_WARNING, "accept_postponed",
                "address=%s why=\"%s\" remedy=\"raise the limit of open files (ulimit -n), or run fewer clients\"",
                listener->address, strerror(why));
    }
    listener->is_starved = true;
    listener->is_paused = true;
    listener->paused_ns = now_ns;
    (void)watch(listener, EPOLL_CTL_MOD, listener->socket, 0, NULL);
}

static bool has_room(const dmg_listener *listener)
{
    return listener->stranger_count < listener->strangers_max;
}

static void end_pause(dmg_listener *listener, uint64_t now_ns)
{
    if (listener->is_crowded && (has_room(listener) || find_dispensable(listener, now_ns))) {
        listener->is_crowded = !watch(listener, EPOLL_CTL_MOD, listener->socket, EPOLLIN, NULL);
    }
    if (listener->is_paused && now_ns - listener->paused_ns >= PAUSE_NS) {
        listener->is_paused = !watch(listener, EPOLL_CTL_MOD, listener->socket, EPOLLIN, NULL);
        listener->paused_ns = now_ns;
    }
}

/* What accept says of a connection that is gone already, and of the network below it. */
static bool is_about_one(int number)
{
    return number == EINTR || number == ECONNABORTED || number == EPROTO || number == EPERM || number == ENETDOWN ||
           number == ENOPROTOOPT || number == EHOSTDOWN || number == ENONET || number == EHOSTUNREACH ||
           number == EOPNOTSUPP || number == ENETUNREACH;
}

/* One who was accepted. False when there is no memory for it. */
static bool take_or_refuse(dmg_listener *listener, int socket, uint64_t now_ns)
{
    bool is_ours = dmg_socket_peer_is_ours(socket);
    listener->counts.accepted++;
    if (is_ours && take_in(listener, socket, now_ns)) {
        return true;
    }
    listener->counts.refused++;
    log_refusal(listener, is_ours ? "out of memory" : "it is of another user");
    close(socket);
    return !is_ours;
}

static uint32_t accept_strangers(dmg_listener *listener, uint64_t now_ns)
{
    uint32_t count = 0;
    for (; count < ACCEPTS_MAX; count++) {
        stranger *dispensable = find_dispensable(listener, now_ns);
        if (!has_room(listener) && !dispensable) {
            listener->is_crowded = watch(listener, EPOLL_CTL_MOD, listener->socket, 0, NULL);
            break;
        }
        int socket = accept4(listener->socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (socket < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            listener->is_starved = false;
            break;
        }
        if (socket < 0 && is_about_one(errno)) {
            continue;
        }
        int failed = socket < 0 ? errno : 0;
        if (socket >= 0 && !take_or_refuse(listener, socket, now_ns)) {
            failed = ENOMEM;
        }
        if (failed && !dispensable) {
            pause_accepting(listener, failed, now_ns);
            break;
        }
        if (failed || listener->stranger_count > listener->strangers_max) {
            expire(listener, dispensable, "others waited, and it said too little");
        }
    }
    return count;
}

/* ---- greeting ---- */

static void await(dmg_listener *listener, stranger *waiting, uint32_t events)
{
    if (waiting->events != events && watch(listener, EPOLL_CTL_MOD, waiting->socket, events, waiting)) {
        waiting->events = events;
    }
}

/* True when this was the end of a greeting: the socket and the session are the caller's. */
static bool greet(dmg_listener *listener, stranger *greeting, int *socket, dmg_stream_session *session)
{
    switch (dmg_greeting_go_on(&greeting->greeting, greeting->socket)) {
    case DMG_GREETING_WAITS_TO_READ:
        await(listener, greeting, EPOLLIN);
        return false;
    case DMG_GREETING_WAITS_TO_WRITE:
        await(listener, greeting, EPOLLOUT);
        return false;
    case DMG_GREETING_DONE:
        listener->counts.greeted++;
        *session = greeting->greeting.session;
        *socket = forget_stranger(listener, greeting);
        return true;
    case DMG_GREETING_FAILED:
        break;
    }
    listener->counts.refused++;
    log_refusal(listener, dmg_error_message());
    close(forget_stranger(listener, greeting));
    return false;
}

/* A line at the first, the second, the fourth and so on: few, however many there are. */
static void report(dmg_listener *listener)
{
    uint64_t count = listener->counts.expired + listener->counts.refused;
    if (count >= listener->next_report) {
        listener->next_report = 2 * count;
        dmg_log(DMG_LOG_INFO, "strangers",
                "address=%s accepted=%" PRIu64 " greeted=%" PRIu64 " expired=%" PRIu64 " refused=%" PRIu64,
                listener->address, listener->counts.accepted, listener->counts.greeted, listener->counts.expired,
                listener->counts.refused);
    }
}

uint32_t dmg_listener_progress_sockets(dmg_listener *listener, uint64_t now_ns,
                                       void (*on_socket)(void *context, int socket, const dmg_stream_session *session),
                                       void *context)
{
    struct epoll_event events[EVENTS_MAX];
    int event_count = epoll_wait(listener->epoll, events, EVENTS_MAX, 0);
    bool is_called = false;
    uint32_t handled = 0;
    for (int i = 0; i < event_count; i++) {
        if (events[i].data.ptr == NULL) {
            is_called = true; /* last: who is cut off for a newcomer may have an event further down */
        } else if (events[i].data.ptr == listener) {
            uint64_t ticks;
            (void)!read(listener->timer, &ticks, sizeof ticks);
        } else {
            int socket;
            dmg_stream_session session;
            if (greet(listener, events[i].data.ptr, &socket, &session)) {
                on_socket(context, socket, &session);
                sodium_memzero(&session, sizeof session);
            }
            handled++;
        }
    }
    if (is_called) {
        handled += accept_strangers(listener, now_ns);
    }
    handled += expire_strangers(listener, now_ns);
    end_pause(listener, now_ns);
    set_timer(listener);
    report(listener);
    return handled;
}

/* ---- streams ---- */

typedef struct stream_taker {
    dmg_listener *listener;
    void (*on_stream)(void *context, dmg_stream *stream);
    void *context;
} stream_taker;

static void make_stream(void *context, int socket, const dmg_stream_session *session)
{
    const stream_taker *taker = context;
    dmg_stream *stream = dmg_stream_over(socket, session, taker->listener->record_bytes_max);
    if (stream) {
        taker->on_stream(taker->context, stream);
        return;
    }
    taker->listener->counts.greeted--;
    taker->listener->counts.refused++;
    log_refusal(taker->listener, "out of memory");
    close(socket);
}

uint32_t dmg_listener_progress(dmg_listener *listener, uint64_t now_ns,
                               void (*on_stream)(void *context, dmg_stream *stream), void *context)
{
    stream_taker taker = {.listener = listener, .on_stream = on_stream, .context = context};
    return dmg_listener_progress_sockets(listener, now_ns, make_stream, &taker);
}

/* ---- life ---- */

static dmg_status open_descriptors(dmg_listener *listener, const dmg_listener_options *options)
{
    int kind = options->keeps_packets ? SOCK_SEQPACKET : SOCK_STREAM;
    dmg_status status = dmg_socket_listen(options->backend, options->bind, kind, &listener->socket, listener->address,
                                          sizeof listener->address);
    if (status != DMG_OK) {
        return status;
    }
    const char *name = listener->address + strlen(options->backend) + 1;
    listener->path = name[0] == '/' ? name : NULL;
    int domain = AF_UNSPEC;
    socklen_t bytes = sizeof domain;
    (void)getsockopt(listener->socket, SOL_SOCKET, SO_DOMAIN, &domain, &bytes);
    listener->is_network = domain != AF_UNIX;
    listener->epoll = epoll_create1(EPOLL_CLOEXEC);
    listener->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (listener->epoll < 0 || listener->timer < 0 ||
        !watch(listener, EPOLL_CTL_ADD, listener->socket, EPOLLIN, NULL) ||
        !watch(listener, EPOLL_CTL_ADD, listener->timer, EPOLLIN, listener)) {
        return dmg_error_errno(DMG_ERR_IO, errno, "watching the sockets of %s", listener->address);
    }
    return DMG_OK;
}

dmg_status dmg_listener_open(const dmg_listener_options *options, dmg_listener **listener)
{
    dmg_listener *opened = calloc(1, sizeof *opened);
    if (!opened) {
        return dmg_error(DMG_ERR_MEMORY, "listening: out of memory");
    }
    opened->socket = opened->epoll = opened->timer = -1;
    memcpy(opened->token, options->stream.token, sizeof opened->token);
    opened->wanted = options->stream.wanted;
    opened->record_bytes_max = options->stream.record_bytes_max;
    opened->next_report = 1;
    opened->greeting_timeout_ns = options->greeting_timeout_ns;
    opened->strangers_max = options->strangers_max ? options->strangers_max : STRANGERS_MAX;
    dmg_status status = open_descriptors(opened, options);
    if (status != DMG_OK) {
        dmg_listener_close(opened);
        return status;
    }
    *listener = opened;
    return DMG_OK;
}

static void close_descriptor(int descriptor)
{
    if (descriptor >= 0) {
        close(descriptor);
    }
}

void dmg_listener_close(dmg_listener *listener)
{
    if (!listener) {
        return;
    }
    while (listener->oldest) {
        close(forget_stranger(listener, listener->oldest));
    }
    if (listener->path) {
        unlink(listener->path);
    }
    close_descriptor(listener->socket);
    close_descriptor(listener->epoll);
    close_descriptor(listener->timer);
    sodium_memzero(listener->token, sizeof listener->token);
    free(listener);
}

const char *dmg_listener_address(const dmg_listener *listener)
{
    return listener->address;
}

bool dmg_listener_has_file(const dmg_listener *listener)
{
    return listener->path != NULL;
}

int dmg_listener_descriptor(const dmg_listener *listener)
{
    return listener->epoll;
}

uint32_t dmg_listener_strangers(const dmg_listener *listener)
{
    return listener->stranger_count;
}

const dmg_listener_counts *dmg_listener_counted(const dmg_listener *listener)
{
    return &listener->counts;
}
