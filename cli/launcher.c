#include "cli/launcher.h"

#include "cli/control.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MILLISECOND UINT64_C(1000000)
/** How long the loop listens on after a first sign of trouble. A death arrives at once; lost peers are often its echo. */
#define SETTLE_AFTER_DEATH_NS (100 * MILLISECOND)
#define SETTLE_AFTER_ERROR_NS (200 * MILLISECOND)
#define SETTLE_AFTER_ECHO_NS  (600 * MILLISECOND)
/** What children get to end by themselves: when all is well, after SIGTERM, after SIGKILL. */
#define GRACE_DISMISS_NS (10000 * MILLISECOND)
#define GRACE_TERM_NS    (1000 * MILLISECOND)
#define GRACE_KILL_NS    (5000 * MILLISECOND)
/** Beats may be late by this much beyond the peer timeout, so that the nodes' own findings, which say more, come first. */
#define SILENCE_SLACK_NS (500 * MILLISECOND)

struct dmg_launcher {
    int signals; /* signalfd */
    int step_ended;
    sigset_t signal_mask_before;
    int signal; /* that cancelled the run */
    uint64_t peer_timeout_ns;
    dmg_launcher_message on_message;
    void *message_context;
    dmg_status message_status; /* of on_message, when it failed */
    char message_sentence[1024];
    dmg_child **children;
    uint32_t child_count;
    uint64_t order;      /* of deaths and errors */
    uint64_t trouble_ns; /* when the first sign came; 0: none */
    uint64_t settle_ns;
    struct pollfd *files; /* signals, step_ended, then one a child */
};

static const int taken_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};

static const char *kind_name(dmg_child_kind kind)
{
    return kind == DMG_CHILD_MEMORY_NODE ? "memory node" : "compute node";
}

/* ---- what is noticed ---- */

static void note_trouble(dmg_launcher *launcher, uint64_t settle_ns)
{
    uint64_t now = dmg_now_ns();
    if (launcher->trouble_ns == 0) {
        launcher->trouble_ns = now;
        launcher->settle_ns = settle_ns;
    } else if (now - launcher->trouble_ns + settle_ns < launcher->settle_ns) {
        /* A surer sign shortens the wait. */
        launcher->settle_ns = now - launcher->trouble_ns + settle_ns;
    }
}

static bool died_by_itself(const dmg_child *child)
{
    return !child->is_running && !child->is_leaving && child->error == DMG_OK;
}

static void note_end(dmg_launcher *launcher, dmg_child *child, int wait_status)
{
    child->is_running = false;
    child->wait_status = wait_status;
    child->ended_order = ++launcher->order;
    if (!child->is_leaving || !WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0) {
        child->is_leaving = child->is_leaving && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
        note_trouble(launcher, SETTLE_AFTER_DEATH_NS);
    }
}

static void reap(dmg_launcher *launcher)
{
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        dmg_child *child = launcher->children[index];
        int wait_status;
        if (child->is_running && waitpid(child->pid, &wait_status, WNOHANG) == child->pid) {
            note_end(launcher, child, wait_status);
        }
    }
}

static void take_signals(dmg_launcher *launcher)
{
    struct signalfd_siginfo info;
    while (read(launcher->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo != SIGCHLD && launcher->signal == 0) {
            launcher->signal = (int)info.ssi_signo;
        }
    }
    reap(launcher);
}

static void take_beat(dmg_child *child, json_t *message)
{
    int phase = 0;
    int iteration = 0;
    json_int_t arcs = 0;
    if (json_unpack(message, "{s:i, s:I, s:i}", "phase", &phase, "arcs", &arcs, "iteration", &iteration) == 0 &&
        phase >= 0 && phase < DMG_PHASES && iteration >= 0 && arcs >= 0) {
        child->phase = (dmg_phase)phase;
        child->iteration = (uint32_t)iteration;
        child->arcs = (uint64_t)arcs;
    }
}

static void take_error(dmg_launcher *launcher, dmg_child *child, json_t *message)
{
    int status = DMG_ERR_INTERNAL;
    const char *sentence = "it failed without saying why";
    json_unpack(message, "{s:i, s:s}", "status", &status, "sentence", &sentence);
    if (child->error == DMG_OK) {
        child->error = status > DMG_OK && status < DMG_STATUS_COUNT ? (dmg_status)status : DMG_ERR_INTERNAL;
        child->error_order = ++launcher->order;
        snprintf(child->sentence, sizeof child->sentence, "%s", sentence);
        note_trouble(launcher, child->error == DMG_ERR_PEER ? SETTLE_AFTER_ECHO_NS : SETTLE_AFTER_ERROR_NS);
    }
}

static void take_messages(dmg_launcher *launcher, dmg_child *child)
{
    while (child->control >= 0) {
        json_t *message;
        dmg_status status = dmg_control_receive(child->control, false, &message);
        if (status == DMG_OK && !message) {
            return;
        }
        if (!message) {
            /* Its end, if it is one, is reported by the kernel too. */
            close(child->control);
            child->control = -1;
            return;
        }
        child->heard_ns = dmg_now_ns();
        const char *type = dmg_control_type(message);
        json_t *handed = NULL;
        if (strcmp(type, "error") == 0) {
            take_error(launcher, child, message);
        } else if (strcmp(type, "beat") == 0) {
            take_beat(child, message);
        } else {
            handed = message;
        }
        if (launcher->on_message && launcher->message_status == DMG_OK) {
            launcher->message_status = launcher->on_message(launcher->message_context, child, handed);
            if (launcher->message_status != DMG_OK) {
                snprintf(launcher->message_sentence, sizeof launcher->message_sentence, "%s", dmg_error_message());
                note_trouble(launcher, SETTLE_AFTER_ERROR_NS);
            }
        }
        json_decref(message);
    }
}

static void look_for_silence(dmg_launcher *launcher)
{
    uint64_t now = dmg_now_ns();
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        const dmg_child *child = launcher->children[index];
        if (child->is_running && !child->is_leaving &&
            now - child->heard_ns > launcher->peer_timeout_ns + SILENCE_SLACK_NS) {
            note_trouble(launcher, SETTLE_AFTER_ERROR_NS);
        }
    }
}

/** One turn of the loop: wait for anything, take in all there is. */
static void turn(dmg_launcher *launcher, int timeout_ms)
{
    uint32_t count = launcher->child_count;
    launcher->files[0] = (struct pollfd){.fd = launcher->signals, .events = POLLIN};
    launcher->files[1] = (struct pollfd){.fd = launcher->step_ended, .events = POLLIN};
    for (uint32_t index = 0; index < count; index++) {
        launcher->files[2 + index] = (struct pollfd){.fd = launcher->children[index]->control, .events = POLLIN};
    }
    if (poll(launcher->files, 2 + count, timeout_ms) < 0) {
        return;
    }
    uint64_t steps;
    while (read(launcher->step_ended, &steps, sizeof steps) < 0 && errno == EINTR) {
    }
    take_signals(launcher);
    for (uint32_t index = 0; index < count; index++) {
        take_messages(launcher, launcher->children[index]);
    }
    look_for_silence(launcher);
}

/* ---- what is said about it ---- */

static bool is_stopped(const dmg_child *child)
{
    siginfo_t info = {0};
    return child->is_running && waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == child->pid;
}

/** "in iteration 3", "while loading the graph": where the compute nodes are. */
static void describe_moment(const dmg_launcher *launcher, char *text, size_t capacity)
{
    dmg_phase phase = DMG_PHASE_START;
    uint32_t iteration = 0;
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        const dmg_child *child = launcher->children[index];
        if (child->kind == DMG_CHILD_COMPUTE_NODE) {
            phase = child->phase > phase ? child->phase : phase;
            iteration = child->iteration > iteration ? child->iteration : iteration;
        }
    }
    switch (phase) {
    case DMG_PHASE_LOAD:
        snprintf(text, capacity, "while loading the graph into the pool");
        break;
    case DMG_PHASE_RUN:
        if (iteration > 0) {
            snprintf(text, capacity, "in iteration %" PRIu32, iteration);
        } else {
            snprintf(text, capacity, "at the start of the iterations");
        }
        break;
    case DMG_PHASE_RESULT:
        snprintf(text, capacity, "while the result was being read");
        break;
    case DMG_PHASE_START:
    case DMG_PHASES:
        snprintf(text, capacity, "while the nodes were starting");
        break;
    }
}

static dmg_status report_death(const dmg_launcher *launcher, const dmg_child *child)
{
    char moment[64];
    describe_moment(launcher, moment, sizeof moment);
    if (WIFSIGNALED(child->wait_status)) {
        int number = WTERMSIG(child->wait_status);
        return dmg_error(DMG_ERR_PEER, "%s %" PRIu32 " (pid %d) was killed by signal %d (%s) %s",
                         kind_name(child->kind), child->index, child->pid, number, strsignal(number), moment);
    }
    return dmg_error(DMG_ERR_PEER, "%s %" PRIu32 " (pid %d) ended unexpectedly with code %d %s", kind_name(child->kind),
                     child->index, child->pid, WEXITSTATUS(child->wait_status), moment);
}

static dmg_status report_silence(const dmg_launcher *launcher, const dmg_child *child)
{
    char moment[64];
    describe_moment(launcher, moment, sizeof moment);
    return dmg_error(DMG_ERR_PEER, "%s %" PRIu32 " (pid %d)%s did not answer for %g s %s", kind_name(child->kind),
                     child->index, child->pid, is_stopped(child) ? " is stopped and" : "",
                     (double)launcher->peer_timeout_ns / 1e9, moment);
}

/** Choose what explains the rest, and leave its sentence. */
static dmg_status report_trouble(const dmg_launcher *launcher)
{
    uint64_t now = dmg_now_ns();
    const dmg_child *dead = NULL;
    const dmg_child *failed = NULL;
    const dmg_child *echo = NULL;
    const dmg_child *silent = NULL;
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        const dmg_child *child = launcher->children[index];
        /* Memory nodes come first in the list, and depend on nobody. */
        if (died_by_itself(child) && (!dead || (child->kind == dead->kind && child->ended_order < dead->ended_order) ||
                                      (!WIFSIGNALED(dead->wait_status) && WIFSIGNALED(child->wait_status)))) {
            dead = child;
        }
        const dmg_child **reported = child->error == DMG_ERR_PEER ? &echo : &failed;
        if (child->error != DMG_OK && (!*reported || child->error_order < (*reported)->error_order)) {
            *reported = child;
        }
        if (child->is_running && !child->is_leaving && !silent &&
            (is_stopped(child) || now - child->heard_ns > launcher->peer_timeout_ns)) {
            silent = child;
        }
    }
    if (dead) {
        return report_death(launcher, dead);
    }
    if (failed) {
        return dmg_error(failed->error, "%s %" PRIu32 ": %s", kind_name(failed->kind), failed->index, failed->sentence);
    }
    if (silent) {
        return report_silence(launcher, silent);
    }
    if (echo) {
        return dmg_error(echo->error, "%s %" PRIu32 ": %s", kind_name(echo->kind), echo->index, echo->sentence);
    }
    if (launcher->message_status != DMG_OK) {
        return dmg_error(launcher->message_status, "%s", launcher->message_sentence);
    }
    return dmg_error(DMG_ERR_INTERNAL, "a node ended and nobody knows why");
}

/* ---- the loop ---- */

static dmg_status loop(dmg_launcher *launcher, bool (*is_done)(void *context), void *context)
{
    for (;;) {
        if (launcher->signal) {
            return dmg_error(DMG_ERR_CANCELLED, "stopped by signal %d (%s)", launcher->signal,
                             strsignal(launcher->signal));
        }
        uint64_t now = dmg_now_ns();
        if (launcher->trouble_ns != 0 && now - launcher->trouble_ns >= launcher->settle_ns) {
            return report_trouble(launcher);
        }
        if (launcher->trouble_ns == 0 && is_done(context)) {
            return DMG_OK;
        }
        uint64_t wait_ns = launcher->peer_timeout_ns / 4;
        if (launcher->trouble_ns != 0) {
            wait_ns = launcher->settle_ns - (now - launcher->trouble_ns);
        }
        bool is_idle = launcher->child_count == 0 && launcher->trouble_ns == 0;
        turn(launcher, is_idle ? -1 : (int)(wait_ns / MILLISECOND + 1));
    }
}

dmg_status dmg_launcher_wait(dmg_launcher *launcher, bool (*is_done)(void *context), void *context)
{
    return loop(launcher, is_done, context);
}

/* ---- blocking steps ---- */

typedef struct step_call {
    dmg_launcher *launcher;
    dmg_status (*step)(void *context);
    void *context;
    dmg_status status;
    char sentence[1024];
    atomic_bool is_done;
} step_call;

static void *run_step(void *argument)
{
    step_call *call = argument;
    int step_ended = call->launcher->step_ended;
    call->status = call->step(call->context);
    if (call->status != DMG_OK) {
        snprintf(call->sentence, sizeof call->sentence, "%s", dmg_error_message());
    }
    atomic_store(&call->is_done, true);
    uint64_t one = 1;
    while (write(step_ended, &one, sizeof one) < 0 && errno == EINTR) {
    }
    return NULL;
}

static bool step_is_done(void *context)
{
    return atomic_load(&((step_call *)context)->is_done);
}

dmg_status dmg_launcher_call(dmg_launcher *launcher, dmg_status (*step)(void *context), void *context)
{
    step_call *call = calloc(1, sizeof *call);
    if (!call) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a thread");
    }
    *call = (step_call){.launcher = launcher, .step = step, .context = context};
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run_step, call);
    if (error) {
        free(call);
        return dmg_error_errno(DMG_ERR_MEMORY, error, "starting a thread");
    }
    dmg_status status = loop(launcher, step_is_done, call);
    if (status != DMG_OK && !step_is_done(call)) {
        /* The thread goes on with `call`, until the process ends. */
        pthread_detach(thread);
        return status;
    }
    pthread_join(thread, NULL);
    if (status == DMG_OK && call->status == DMG_ERR_PEER && launcher->child_count > 0) {
        /* The launcher, as a client of the pool, lost a node: give the node's own news the time to arrive. */
        note_trouble(launcher, SETTLE_AFTER_ECHO_NS);
        launcher->message_status = DMG_ERR_PEER;
        snprintf(launcher->message_sentence, sizeof launcher->message_sentence, "%s", call->sentence);
        status = loop(launcher, step_is_done, call);
    } else if (status == DMG_OK && call->status != DMG_OK) {
        status = dmg_error(call->status, "%s", call->sentence);
    }
    free(call);
    return status;
}

/* ---- children ---- */

/** Between fork and exec: only what is async-signal-safe. */
static void become_child(const dmg_launcher *launcher, const char *subcommand, int control, int file,
                         pid_t launcher_pid)
{
    setpgid(0, 0); /* the terminal's Ctrl-C goes to the launcher alone */
    for (size_t index = 0; index < sizeof taken_signals / sizeof taken_signals[0]; index++) {
        signal(taken_signals[index], SIG_DFL);
    }
    /* SIGTERM stays blocked until the node has made what must not be left half-made: see dmg_node_control_settle. */
    sigset_t mask = launcher->signal_mask_before;
    sigaddset(&mask, SIGTERM);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != launcher_pid) {
        _exit(EXIT_FAILURE); /* it died before the line above */
    }
    /* Both descriptors first go above the places that they shall take. */
    int control_copy = fcntl(control, F_DUPFD_CLOEXEC, DMG_CHILD_FILE + 1);
    int file_copy = file >= 0 ? fcntl(file, F_DUPFD_CLOEXEC, DMG_CHILD_FILE + 1) : -1;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (control_copy < 0 || nothing < 0 || (file >= 0 && file_copy < 0) || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(nothing, STDOUT_FILENO) < 0 || dup2(control_copy, DMG_CHILD_CONTROL) < 0 ||
        (file >= 0 && dup2(file_copy, DMG_CHILD_FILE) < 0)) {
        _exit(EXIT_FAILURE);
    }
    close_range(file >= 0 ? DMG_CHILD_FILE + 1 : DMG_CHILD_CONTROL + 1, ~0u, 0);
    char option[] = "--control-fd=3";
    char program[] = "dmgraph";
    char *arguments[] = {program, (char *)(uintptr_t)subcommand, option, NULL};
    execv("/proc/self/exe", arguments);
    _exit(EXIT_FAILURE);
}

static dmg_status grow(dmg_launcher *launcher)
{
    size_t count = launcher->child_count + 1;
    dmg_child **children = realloc(launcher->children, count * sizeof(*children));
    if (children) {
        launcher->children = children;
    }
    struct pollfd *files = realloc(launcher->files, (2 + count) * sizeof *files);
    if (files) {
        launcher->files = files;
    }
    return children && files ? DMG_OK : dmg_error(DMG_ERR_MEMORY, "no memory for a list of nodes");
}

dmg_status dmg_launcher_start(dmg_launcher *launcher, dmg_child_kind kind, uint32_t index, const char *subcommand,
                              int file, dmg_child **result)
{
    dmg_status status = grow(launcher);
    dmg_child *child = calloc(1, sizeof *child);
    if (status != DMG_OK || !child) {
        free(child);
        return status != DMG_OK ? status : dmg_error(DMG_ERR_MEMORY, "no memory for a node");
    }
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        free(child);
        return dmg_error_errno(DMG_ERR_IO, errno, "creating a control socket");
    }
    pid_t launcher_pid = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        become_child(launcher, subcommand, ends[1], file, launcher_pid);
    }
    int error = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        free(child);
        return dmg_error_errno(DMG_ERR_IO, error, "starting %s %" PRIu32, kind_name(kind), index);
    }
    *child = (dmg_child){
        .kind = kind, .index = index, .pid = pid, .control = ends[0], .is_running = true, .heard_ns = dmg_now_ns()};
    launcher->children[launcher->child_count++] = child;
    *result = child;
    return DMG_OK;
}

dmg_status dmg_launcher_send(dmg_launcher *launcher, dmg_child *child, json_t *message)
{
    (void)launcher;
    if (child->control < 0) {
        json_decref(message);
        return DMG_OK; /* its end will be reported by the loop */
    }
    dmg_status status = dmg_control_send(child->control, message, true);
    return status == DMG_ERR_PEER ? DMG_OK : status;
}

typedef struct dismissal {
    const dmg_launcher *launcher;
    dmg_child_kind kind;
    uint64_t deadline_ns;
} dismissal;

static bool all_have_ended(void *context)
{
    const dismissal *wanted = context;
    bool has_running = false;
    for (uint32_t index = 0; index < wanted->launcher->child_count; index++) {
        const dmg_child *child = wanted->launcher->children[index];
        has_running = has_running || (child->kind == wanted->kind && child->is_running);
    }
    return !has_running || dmg_now_ns() >= wanted->deadline_ns;
}

dmg_status dmg_launcher_dismiss(dmg_launcher *launcher, dmg_child_kind kind, const char *type)
{
    dismissal wanted = {launcher, kind, dmg_now_ns() + GRACE_DISMISS_NS};
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        dmg_child *child = launcher->children[index];
        if (child->kind == kind) {
            child->is_leaving = true;
            dmg_status status = dmg_launcher_send(launcher, child, json_pack("{s:s}", "type", type));
            if (status != DMG_OK) {
                return status;
            }
        }
    }
    dmg_status status = loop(launcher, all_have_ended, &wanted);
    for (uint32_t index = 0; index < launcher->child_count && status == DMG_OK; index++) {
        const dmg_child *child = launcher->children[index];
        if (child->kind == kind && child->is_running) {
            status = dmg_error(DMG_ERR_PEER, "%s %" PRIu32 " (pid %d) did not end within %g s of being told to",
                               kind_name(kind), child->index, child->pid, (double)GRACE_DISMISS_NS / 1e9);
        }
    }
    return status;
}

static bool signal_and_wait(dmg_launcher *launcher, int number, uint64_t grace_ns)
{
    uint64_t deadline_ns = dmg_now_ns() + grace_ns;
    bool has_running = false;
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        dmg_child *child = launcher->children[index];
        if (child->is_running) {
            has_running = true;
            kill(child->pid, number);
        }
    }
    while (has_running) {
        uint64_t now = dmg_now_ns();
        if (now >= deadline_ns) {
            return false;
        }
        struct pollfd file = {.fd = launcher->signals, .events = POLLIN};
        poll(&file, 1, (int)((deadline_ns - now) / MILLISECOND + 1));
        struct signalfd_siginfo info;
        bool is_impatient = false;
        while (read(launcher->signals, &info, sizeof info) == (ssize_t)sizeof info) {
            is_impatient = is_impatient || info.ssi_signo != SIGCHLD;
        }
        reap(launcher);
        has_running = false;
        for (uint32_t index = 0; index < launcher->child_count; index++) {
            has_running = has_running || launcher->children[index]->is_running;
        }
        if (is_impatient && number != SIGKILL) {
            return !has_running;
        }
    }
    return true;
}

void dmg_launcher_stop(dmg_launcher *launcher)
{
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        dmg_child *child = launcher->children[index];
        child->is_leaving = true;
        if (is_stopped(child)) {
            kill(child->pid, SIGKILL); /* nothing else reaches it */
        }
    }
    if (!signal_and_wait(launcher, SIGTERM, GRACE_TERM_NS)) {
        signal_and_wait(launcher, SIGKILL, GRACE_KILL_NS);
    }
}

dmg_status dmg_launcher_create(dmg_launcher **result)
{
    dmg_launcher *launcher = calloc(1, sizeof *launcher);
    if (!launcher) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the launcher");
    }
    launcher->peer_timeout_ns = DMG_PEER_TIMEOUT_DEFAULT_NS;
    sigset_t mask;
    sigemptyset(&mask);
    for (size_t index = 0; index < sizeof taken_signals / sizeof taken_signals[0]; index++) {
        sigaddset(&mask, taken_signals[index]);
    }
    sigprocmask(SIG_BLOCK, &mask, &launcher->signal_mask_before);
    /* A signal that is ignored, as a shell's background job ignores SIGINT, would never arrive. */
    for (size_t index = 0; index < sizeof taken_signals / sizeof taken_signals[0]; index++) {
        signal(taken_signals[index], SIG_DFL);
    }
    signal(SIGPIPE, SIG_IGN); /* a closed output is an error like others */
    launcher->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    launcher->step_ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    launcher->files = calloc(2, sizeof *launcher->files);
    if (launcher->signals < 0 || launcher->step_ended < 0 || !launcher->files) {
        dmg_status status = dmg_error_errno(DMG_ERR_IO, errno, "taking over the signals");
        dmg_launcher_destroy(launcher);
        return status;
    }
    *result = launcher;
    return DMG_OK;
}

void dmg_launcher_destroy(dmg_launcher *launcher)
{
    if (!launcher) {
        return;
    }
    dmg_launcher_stop(launcher);
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        if (launcher->children[index]->control >= 0) {
            close(launcher->children[index]->control);
        }
        free(launcher->children[index]);
    }
    free(launcher->children);
    free(launcher->files);
    if (launcher->step_ended >= 0) {
        close(launcher->step_ended);
    }
    if (launcher->signals >= 0) {
        close(launcher->signals);
    }
    free(launcher);
}

void dmg_launcher_listen(dmg_launcher *launcher, uint64_t peer_timeout_ns, dmg_launcher_message on_message,
                         void *context)
{
    launcher->peer_timeout_ns = peer_timeout_ns;
    launcher->on_message = on_message;
    launcher->message_context = context;
}

int dmg_launcher_signal(const dmg_launcher *launcher)
{
    return launcher->signal;
}

uint32_t dmg_launcher_child_count(const dmg_launcher *launcher)
{
    return launcher->child_count;
}

const dmg_child *dmg_launcher_child(const dmg_launcher *launcher, uint32_t index)
{
    return launcher->children[index];
}
