#include "cli/launcher/state.h"

#include "cli/launcher/control.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/** How long the loop listens on after a first sign of trouble. A death arrives at once; lost peers are often its echo.
 */
#define SETTLE_AFTER_DEATH_NS (100 * DMG_MILLISECOND_NS)
#define SETTLE_AFTER_ERROR_NS (200 * DMG_MILLISECOND_NS)
#define SETTLE_AFTER_ECHO_NS  (600 * DMG_MILLISECOND_NS)
/** Beats may be late by this much beyond the peer timeout, so that the nodes' own findings, which say more, come first.
 */
#define SILENCE_SLACK_NS (500 * DMG_MILLISECOND_NS)

const int dmg_taken_signals[DMG_TAKEN_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};

/* ---- what is noticed ---- */

static void note_trouble(dmg_launcher *launcher, uint64_t settle_ns)
{
    uint64_t waited_ns = dmg_watch_silence_ns(&launcher->watch, launcher->trouble_ns);
    if (!launcher->has_trouble) {
        launcher->has_trouble = true;
        launcher->trouble_ns = launcher->watch.now_ns;
        launcher->settle_ns = settle_ns;
    } else if (waited_ns + settle_ns < launcher->settle_ns) {
        /* A surer sign shortens the wait. */
        launcher->settle_ns = waited_ns + settle_ns;
    }
}

/** What the program itself met, with this thread's error sentence: it explains least, when a child has something to
 * say. */
static void note_failure(dmg_launcher *launcher, dmg_status status, uint64_t settle_ns)
{
    if (status != DMG_OK) {
        launcher->message_status = status;
        snprintf(launcher->message_sentence, sizeof launcher->message_sentence, "%s", dmg_error_message());
        note_trouble(launcher, settle_ns);
    }
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

void dmg_launcher_reap(dmg_launcher *launcher)
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
    dmg_launcher_reap(launcher);
}

static void take_beat(dmg_child *child, json_t *message)
{
    int phase = 0;
    int iteration = 0;
    json_int_t arcs = 0;
    json_int_t made_bytes = 0;
    if (json_unpack(message, "{s:i, s:I, s:i, s:I}", "phase", &phase, "arcs", &arcs, "iteration", &iteration,
                    "made_bytes", &made_bytes) == 0 &&
        phase >= 0 && phase < DMG_PHASES && iteration >= 0 && arcs >= 0 && made_bytes >= 0) {
        child->phase = (dmg_phase)phase;
        child->iteration = (uint32_t)iteration;
        child->arcs = (uint64_t)arcs;
        child->made_bytes = (uint64_t)made_bytes;
    }
}

static void take_error(dmg_launcher *launcher, dmg_child *child, json_t *message)
{
    int status = DMG_ERR_INTERNAL;
    const char *sentence = "it failed without saying why";
    json_int_t of = child->index;
    json_unpack(message, "{s:i, s:s, s?I}", "status", &status, "sentence", &sentence, "of", &of);
    if (child->error == DMG_OK) {
        child->error_of = of >= 0 && of <= UINT32_MAX ? (uint32_t)of : child->index;
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
        child->heard_ns = launcher->watch.now_ns;
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
            note_failure(launcher, launcher->on_message(launcher->message_context, child, handed),
                         SETTLE_AFTER_ERROR_NS);
        }
        json_decref(message);
    }
}

static void look_for_silence(dmg_launcher *launcher)
{
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        dmg_child *child = launcher->children[index];
        uint64_t silence_ns = dmg_watch_silence_ns(&launcher->watch, child->heard_ns);
        if (child->is_running && !child->is_leaving && silence_ns > launcher->peer_timeout_ns + SILENCE_SLACK_NS) {
            child->silence_ns = silence_ns;
            note_trouble(launcher, SETTLE_AFTER_ERROR_NS);
        }
    }
}

int dmg_launcher_poll_ms(const dmg_launcher *launcher, uint64_t most_ns)
{
    uint64_t interval_ns = dmg_watch_interval_ns(&launcher->watch);
    return (int)((interval_ns < most_ns ? interval_ns : most_ns) / DMG_MILLISECOND_NS + 1);
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
    int ready = poll(launcher->files, 2 + count, timeout_ms);
    dmg_watch_look(&launcher->watch, dmg_now_ns());
    if (ready < 0) {
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
    if (launcher->look && launcher->message_status == DMG_OK) {
        /* A lost memory node is often told of by others, too, who know more. */
        note_failure(launcher, launcher->look(launcher->look_context), SETTLE_AFTER_ECHO_NS);
    }
}

/* ---- the loop ---- */

dmg_status dmg_launcher_wait(dmg_launcher *launcher, bool (*is_done)(void *context), void *context)
{
    for (;;) {
        if (launcher->signal) {
            return dmg_error(DMG_ERR_CANCELLED, "stopped by signal %d (%s)", launcher->signal,
                             strsignal(launcher->signal));
        }
        uint64_t waited_ns = dmg_watch_silence_ns(&launcher->watch, launcher->trouble_ns);
        if (launcher->has_trouble && waited_ns >= launcher->settle_ns) {
            return dmg_launcher_report_trouble(launcher);
        }
        if (!launcher->has_trouble && is_done(context)) {
            return DMG_OK;
        }
        bool is_idle = launcher->child_count == 0 && !launcher->has_trouble;
        uint64_t most_ns = launcher->has_trouble ? launcher->settle_ns - waited_ns : UINT64_MAX;
        turn(launcher, is_idle ? -1 : dmg_launcher_poll_ms(launcher, most_ns));
    }
}

/* ---- blocking steps ---- */

typedef struct step_call {
    dmg_launcher *launcher;
    dmg_status (*step)(void *context);
    void *context;
    dmg_kept_error error;
    atomic_bool is_done;
} step_call;

static void *run_step(void *argument)
{
    step_call *call = argument;
    int step_ended = call->launcher->step_ended;
    dmg_error_keep(&call->error, call->step(call->context));
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
    dmg_status status = dmg_launcher_wait(launcher, step_is_done, call);
    if (status != DMG_OK && !step_is_done(call)) {
        /* The thread goes on with `call`, until the process ends. */
        pthread_detach(thread);
        return status;
    }
    pthread_join(thread, NULL);
    if (status == DMG_OK && call->error.status == DMG_ERR_PEER && launcher->child_count > 0) {
        /* The launcher, as a client of the pool, lost a node: give the node's own news the time to arrive. */
        note_trouble(launcher, SETTLE_AFTER_ECHO_NS);
        launcher->message_status = DMG_ERR_PEER;
        snprintf(launcher->message_sentence, sizeof launcher->message_sentence, "%s", call->error.sentence);
        status = dmg_launcher_wait(launcher, step_is_done, call);
    } else if (status == DMG_OK) {
        status = dmg_error_restore(&call->error);
    }
    free(call);
    return status;
}

/* ---- creation ---- */

dmg_status dmg_launcher_create(dmg_launcher **result)
{
    dmg_launcher *launcher = calloc(1, sizeof *launcher);
    if (!launcher) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the launcher");
    }
    dmg_launcher_listen(launcher, DMG_PEER_TIMEOUT_DEFAULT_NS, NULL, NULL);
    dmg_memory_kills_read("", &launcher->kills_before);
    launcher->witness = -1;
    sigset_t mask;
    sigemptyset(&mask);
    for (size_t index = 0; index < DMG_TAKEN_SIGNALS; index++) {
        sigaddset(&mask, dmg_taken_signals[index]);
    }
    sigprocmask(SIG_BLOCK, &mask, &launcher->signal_mask_before);
    /* A signal that is ignored, as a shell's background job ignores SIGINT, would never arrive. */
    for (size_t index = 0; index < DMG_TAKEN_SIGNALS; index++) {
        signal(dmg_taken_signals[index], SIG_DFL);
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
    dmg_watch_start(&launcher->watch, peer_timeout_ns, dmg_now_ns());
    launcher->on_message = on_message;
    launcher->message_context = context;
}

void dmg_launcher_look_after(dmg_launcher *launcher, dmg_launcher_look look, void *context)
{
    launcher->look = look;
    launcher->look_context = context;
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
