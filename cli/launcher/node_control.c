#include "cli/launcher/node_control.h"

#include "cli/base/text.h"
#include "cli/launcher/control.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BEAT_MS_MAX 200
/** What a node gets that has files to remove, when its launcher is gone. */
#define ORDERLY_END_S 10
/** What a node gets that is making a segment, or waits for its device. */
#define SETTLING_END_S 60

struct dmg_node_control {
    int socket;
    int wake; /* eventfd: ends the thread */
    json_t *setup;
    const char *ending_type;
    dmg_node_control_ending ending;
    void *ending_context;
    int beat_ms;
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool is_ended;           /* under the mutex */
    bool is_lost;            /* under the mutex: the launcher died first */
    uint64_t start_limit_ns; /* set before there is a thread */
    uint64_t starting_ns;    /* of the thread: how long the phase of the start has lasted */
    _Atomic uint32_t phase;
    _Atomic uint32_t iteration;
    _Atomic uint64_t arcs;
    _Atomic uint64_t made_bytes;
    _Atomic bool is_settled;
    _Atomic bool ends_in_order;
};

/** End what waits for the end, once. */
static void end(dmg_node_control *control, bool is_lost)
{
    pthread_mutex_lock(&control->mutex);
    bool is_first = !control->is_ended;
    control->is_ended = true;
    control->is_lost = control->is_lost || (is_first && is_lost);
    pthread_cond_broadcast(&control->ended);
    if (is_first && control->ending) {
        control->ending(control->ending_context);
    }
    pthread_mutex_unlock(&control->mutex);
}

/**
 * The launcher is gone, and so is all reason to go on. What is half made would stay behind, and so would files that the
 * node removes in order: until the node settles, a signal that the launcher's death has left waits for that.
 */
static void end_with_launcher(dmg_node_control *control)
{
    if (control->is_settled && !control->ends_in_order) {
        _exit(EXIT_FAILURE);
    }
    alarm(control->is_settled ? ORDERLY_END_S : SETTLING_END_S);
    end(control, true);
}

/** A node that does not come to its work, while it beats: nobody else would end that. Time in which the process was
 * stopped does not count. */
static void look_at_start(dmg_node_control *control)
{
    if (control->start_limit_ns == 0 || control->phase != DMG_PHASE_START) {
        return;
    }
    control->starting_ns += (uint64_t)control->beat_ms * 1000000;
    if (control->starting_ns > control->start_limit_ns) {
        dmg_node_control_fail(control, dmg_error(DMG_ERR_PEER,
                                                 "it has been starting for %g s, and does not come to its work: does "
                                                 "its network or device hang, or another compute node?",
                                                 (double)control->start_limit_ns / 1e9));
        _exit(EXIT_FAILURE);
    }
}

/** False when the launcher is gone. */
static bool send_beat(dmg_node_control *control)
{
    json_t *message = json_pack("{s:s, s:i, s:I, s:i, s:I}", "type", "beat", "phase", (int)control->phase, "arcs",
                                (json_int_t)control->arcs, "iteration", (int)control->iteration, "made_bytes",
                                (json_int_t)control->made_bytes);
    bool is_lost = dmg_control_send(control->socket, message, true) == DMG_ERR_PEER;
    if (is_lost) {
        end_with_launcher(control);
    }
    return !is_lost;
}

/** False when the launcher is gone. */
static bool listen_once(dmg_node_control *control)
{
    json_t *message;
    dmg_status status = dmg_control_receive(control->socket, false, &message);
    if (status == DMG_ERR_PEER || status == DMG_ERR_IO) {
        end_with_launcher(control);
        return false;
    }
    if (message && strcmp(dmg_control_type(message), control->ending_type) == 0) {
        end(control, false);
    }
    json_decref(message);
    return true;
}

static void *beat_and_listen(void *context)
{
    dmg_node_control *control = context;
    struct pollfd files[] = {{.fd = control->socket, .events = POLLIN}, {.fd = control->wake, .events = POLLIN}};
    bool has_launcher = true;
    while (has_launcher && !(files[1].revents & POLLIN)) {
        int ready = poll(files, 2, control->beat_ms);
        if (ready == 0) {
            has_launcher = send_beat(control);
            look_at_start(control);
        } else if (ready > 0 && files[0].revents) {
            has_launcher = listen_once(control);
        } else if (ready < 0) {
            files[0].revents = files[1].revents = 0;
        }
    }
    return NULL;
}

dmg_status dmg_node_control_open(const dmg_settings *settings, const char *kind, dmg_node_control **result)
{
    int type = 0;
    socklen_t type_bytes = sizeof type;
    int socket = dmg_has(settings, DMG_OPTION_CONTROL_FD) ? (int)dmg_number(settings, DMG_OPTION_CONTROL_FD) : -1;
    if (socket < 0 || getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &type_bytes) != 0 || type != SOCK_SEQPACKET) {
        return dmg_error(
            DMG_ERR_ARGUMENT,
            "%s is started by 'dmgraph run' alone, which gives it a control socket; it is of no use by hand", kind);
    }
    dmg_node_control *control = calloc(1, sizeof *control);
    if (!control) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the control socket");
    }
    control->socket = socket;
    control->wake = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&control->mutex, NULL);
    pthread_cond_init(&control->ended, NULL);
    dmg_status status = control->wake < 0 ? dmg_error_errno(DMG_ERR_IO, errno, "creating an eventfd")
                                          : dmg_control_receive(socket, true, &control->setup);
    if (status == DMG_OK && strcmp(dmg_control_type(control->setup), "setup") != 0) {
        status = dmg_error(DMG_ERR_PROTOCOL, "the first control message is '%s', not the setup",
                           dmg_control_type(control->setup));
    }
    if (status != DMG_OK) {
        dmg_node_control_close(control);
        return status;
    }
    *result = control;
    return DMG_OK;
}

void dmg_node_control_close(dmg_node_control *control)
{
    if (!control) {
        return;
    }
    dmg_node_control_stop_listening(control);
    json_decref(control->setup);
    if (control->wake >= 0) {
        close(control->wake);
    }
    if (control->socket >= 0) {
        close(control->socket);
    }
    pthread_cond_destroy(&control->ended);
    pthread_mutex_destroy(&control->mutex);
    free(control);
}

json_t *dmg_node_control_setup(dmg_node_control *control)
{
    return control->setup;
}

dmg_status dmg_node_control_start(dmg_node_control *control, uint64_t peer_timeout_ns, const char *ending_type)
{
    uint64_t fifth_ms = peer_timeout_ns / 5000000;
    control->beat_ms = fifth_ms < 1 ? 1 : fifth_ms < BEAT_MS_MAX ? (int)fifth_ms : BEAT_MS_MAX;
    control->ending_type = ending_type;
    int error = pthread_create(&control->thread, NULL, beat_and_listen, control);
    if (error) {
        return dmg_error_errno(DMG_ERR_MEMORY, error, "starting the control thread");
    }
    control->has_thread = true;
    return DMG_OK;
}

void dmg_node_control_on_ending(dmg_node_control *control, dmg_node_control_ending ending, void *context)
{
    pthread_mutex_lock(&control->mutex);
    control->ending = ending;
    control->ending_context = context;
    if (control->is_ended) {
        ending(context);
    }
    pthread_mutex_unlock(&control->mutex);
}

static void mask_termination(int how)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    pthread_sigmask(how, &mask, NULL);
}

void dmg_node_control_settle(dmg_node_control *control)
{
    control->is_settled = true;
    /* SIGKILL reaches a stopped process, too. If the launcher is dead already, its SIGTERM is pending. */
    prctl(PR_SET_PDEATHSIG, control->ends_in_order ? 0 : SIGKILL);
    mask_termination(SIG_UNBLOCK);
}

void dmg_node_control_unsettle(dmg_node_control *control)
{
    mask_termination(SIG_BLOCK);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    control->is_settled = false;
}

void dmg_node_control_limit_start(dmg_node_control *control, uint64_t limit_ns)
{
    control->start_limit_ns = limit_ns;
}

void dmg_node_control_end_in_order(dmg_node_control *control)
{
    control->ends_in_order = true;
}

void dmg_node_control_stop_listening(dmg_node_control *control)
{
    if (control->has_thread) {
        uint64_t one = 1;
        while (write(control->wake, &one, sizeof one) < 0 && errno == EINTR) {
        }
        pthread_join(control->thread, NULL);
        control->has_thread = false;
    }
}

void dmg_node_control_wait(dmg_node_control *control)
{
    pthread_mutex_lock(&control->mutex);
    while (!control->is_ended) {
        pthread_cond_wait(&control->ended, &control->mutex);
    }
    pthread_mutex_unlock(&control->mutex);
}

dmg_status dmg_node_control_detach(dmg_node_control *control)
{
    dmg_node_control_wait(control);
    dmg_node_control_stop_listening(control);
    if (control->is_lost) {
        return dmg_error(DMG_ERR_PEER, "the program that started this node is gone");
    }
    prctl(PR_SET_PDEATHSIG, 0);
    dmg_status status = dmg_node_control_send(control, json_pack("{s:s}", "type", "detached"));
    close(control->socket);
    control->socket = -1;
    return status;
}

dmg_status dmg_node_control_send(dmg_node_control *control, json_t *message)
{
    return dmg_control_send(control->socket, message, false);
}

void dmg_node_control_fail(dmg_node_control *control, dmg_status status)
{
    const char *sentence = dmg_error_message();
    json_t *message = json_pack("{s:s, s:i}", "type", "error", "status", (int)status);
    json_object_set_new(message, "sentence", dmg_json_text(*sentence ? sentence : dmg_status_name(status)));
    dmg_node_control_send(control, message);
}

void dmg_node_control_fail_for(dmg_node_control *control, uint32_t index, dmg_status status, const char *sentence)
{
    json_t *message = json_pack("{s:s, s:i, s:I}", "type", "error", "status", (int)status, "of", (json_int_t)index);
    json_object_set_new(message, "sentence", dmg_json_text(sentence));
    dmg_node_control_send(control, message);
}

void dmg_node_control_enter(dmg_node_control *control, dmg_phase phase)
{
    control->phase = phase;
    send_beat(control);
}

_Atomic uint64_t *dmg_node_control_arcs(dmg_node_control *control)
{
    return &control->arcs;
}

_Atomic uint32_t *dmg_node_control_iteration(dmg_node_control *control)
{
    return &control->iteration;
}

_Atomic uint64_t *dmg_node_control_made_bytes(dmg_node_control *control)
{
    return &control->made_bytes;
}

static void print_line(dmg_log_level level, const char *line, void *context)
{
    static const char *const names[] = {
        [DMG_LOG_DEBUG] = "debug", [DMG_LOG_INFO] = "info", [DMG_LOG_WARNING] = "warning"};
    char at[40] = "?";
    struct timespec now;
    struct tm local;
    clock_gettime(CLOCK_REALTIME, &now);
    if (localtime_r(&now.tv_sec, &local)) {
        strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", &local);
    }
    if (level == DMG_LOG_WARNING) {
        fprintf(stderr, "%s: %s: %s\n", (const char *)context, names[level], line);
    } else {
        fprintf(stderr, "%s: %s: %s time=%s.%03ld pid=%d\n", (const char *)context, names[level], line, at,
                now.tv_nsec / 1000000, (int)getpid());
    }
}

void dmg_log_to_stderr(const char *process_name, uint64_t level)
{
    if (level <= DMG_LOG_WARNING) {
        dmg_log_set_sink(print_line, (void *)(uintptr_t)process_name, (dmg_log_level)level);
    }
}

void dmg_node_control_log(dmg_node_control *control, const char *process_name)
{
    const json_t *level = json_object_get(control->setup, "log_level");
    dmg_log_to_stderr(process_name, json_is_integer(level) ? (uint64_t)json_integer_value(level) : DMG_LOG_WARNING);
}
