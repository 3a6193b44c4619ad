#include "cli/launcher/state.h"

#include "cli/launcher/control.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

/** What children get to end by themselves: when all is well, after SIGTERM, after SIGKILL. */
#define GRACE_DISMISS_NS     (5000 * DMG_MILLISECOND_NS) /* and the peer timeout */
#define GRACE_TERM_NS        (1000 * DMG_MILLISECOND_NS)
#define GRACE_KILL_NS        (5000 * DMG_MILLISECOND_NS)
#define GIVING_BACK_NS_A_GIB (5000 * DMG_MILLISECOND_NS)

/** When memory runs out, the kernel is to take a compute node before the launcher, which can say what happened. Any
 * process may raise its own. */
static void offer_to_kill(void)
{
    static const char badness[] = "500";
    int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file >= 0) {
        ssize_t ignored = write(file, badness, sizeof badness - 1);
        (void)ignored;
        close(file);
    }
}

/** Between fork and exec: only what is async-signal-safe. */
static void become_child(const dmg_launcher *launcher, const char *subcommand, int control, int file, int output,
                         pid_t launcher_pid)
{
    if (output >= 0) {
        setsid();
    } else {
        setpgid(0, 0); /* the terminal's Ctrl-C goes to the launcher alone */
    }
    for (size_t index = 0; index < DMG_TAKEN_SIGNALS; index++) {
        signal(dmg_taken_signals[index], SIG_DFL);
    }
    /* SIGTERM stays blocked until the node has made what must not be left half-made: see dmg_node_control_settle. */
    sigset_t mask = launcher->signal_mask_before;
    sigaddset(&mask, SIGTERM);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != launcher_pid) {
        _exit(EXIT_FAILURE); /* it died before the line above */
    }
    if (output < 0) {
        offer_to_kill();
    }
    /* Both descriptors first go above the places that they shall take. */
    int control_copy = fcntl(control, F_DUPFD_CLOEXEC, DMG_CHILD_FILE + 1);
    int file_copy = file >= 0 ? fcntl(file, F_DUPFD_CLOEXEC, DMG_CHILD_FILE + 1) : -1;
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (control_copy < 0 || nothing < 0 || (file >= 0 && file_copy < 0) || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(output >= 0 ? output : nothing, STDOUT_FILENO) < 0 ||
        (output >= 0 && (dup2(output, STDERR_FILENO) < 0 || chdir("/") != 0)) ||
        dup2(control_copy, DMG_CHILD_CONTROL) < 0 || (file >= 0 && dup2(file_copy, DMG_CHILD_FILE) < 0)) {
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

static dmg_status start(dmg_launcher *launcher, dmg_child_kind kind, uint32_t index, const char *subcommand, int file,
                        int output, dmg_child **result)
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
        become_child(launcher, subcommand, ends[1], file, output, launcher_pid);
    }
    int error = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        free(child);
        return dmg_error_errno(DMG_ERR_IO, error, "starting %s %" PRIu32, dmg_child_kind_name(kind), index);
    }
    dmg_watch_look(&launcher->watch, dmg_now_ns());
    *child = (dmg_child){.kind = kind,
                         .index = index,
                         .pid = pid,
                         .control = ends[0],
                         .is_running = true,
                         .heard_ns = launcher->watch.now_ns};
    launcher->children[launcher->child_count++] = child;
    *result = child;
    return DMG_OK;
}

dmg_status dmg_launcher_start(dmg_launcher *launcher, dmg_child_kind kind, uint32_t index, const char *subcommand,
                              int file, dmg_child **child)
{
    return start(launcher, kind, index, subcommand, file, -1, child);
}

dmg_status dmg_launcher_start_session(dmg_launcher *launcher, dmg_child_kind kind, uint32_t index,
                                      const char *subcommand, int file, int output, dmg_child **child)
{
    return start(launcher, kind, index, subcommand, file, output, child);
}

void dmg_launcher_expect_detaching(dmg_launcher *launcher)
{
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        launcher->children[index]->is_leaving = true;
    }
}

void dmg_launcher_let_go(dmg_launcher *launcher)
{
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        dmg_child *child = launcher->children[index];
        child->is_running = false;
        if (child->control >= 0) {
            close(child->control);
            child->control = -1;
        }
    }
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
    uint64_t told_ns; /* a stamp of the launcher's watch */
    uint64_t grace_ns;
} dismissal;

static bool all_have_ended(void *context)
{
    const dismissal *wanted = context;
    bool has_running = false;
    for (uint32_t index = 0; index < wanted->launcher->child_count; index++) {
        const dmg_child *child = wanted->launcher->children[index];
        has_running = has_running || (child->kind == wanted->kind && child->is_running);
    }
    return !has_running || dmg_watch_silence_ns(&wanted->launcher->watch, wanted->told_ns) >= wanted->grace_ns;
}

uint64_t dmg_launcher_giving_back_ns(uint64_t bytes)
{
    return (bytes >> 30) * GIVING_BACK_NS_A_GIB; /* of at most 2^48 bytes a node */
}

void dmg_launcher_expect_memory(dmg_launcher *launcher, uint64_t bytes)
{
    launcher->memory_bytes = bytes;
}

dmg_status dmg_launcher_dismiss(dmg_launcher *launcher, dmg_child_kind kind, const char *type)
{
    uint64_t grace_ns =
        launcher->peer_timeout_ns + GRACE_DISMISS_NS + dmg_launcher_giving_back_ns(launcher->memory_bytes);
    dmg_watch_look(&launcher->watch, dmg_now_ns());
    dismissal wanted = {launcher, kind, launcher->watch.now_ns, grace_ns};
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
    dmg_status status = dmg_launcher_wait(launcher, all_have_ended, &wanted);
    for (uint32_t index = 0; index < launcher->child_count && status == DMG_OK; index++) {
        const dmg_child *child = launcher->children[index];
        if (child->kind == kind && child->is_running) {
            status = dmg_error(DMG_ERR_PEER, "%s %" PRIu32 " (pid %d)%s did not end within %g s of being told to",
                               dmg_child_kind_name(kind), child->index, child->pid,
                               dmg_child_is_stopped(child) ? " is stopped and" : "", (double)grace_ns / 1e9);
        }
    }
    return status;
}

static bool signal_and_wait(dmg_launcher *launcher, int number, uint64_t grace_ns)
{
    dmg_watch_look(&launcher->watch, dmg_now_ns());
    const uint64_t told_ns = launcher->watch.now_ns;
    bool has_running = false;
    for (uint32_t index = 0; index < launcher->child_count; index++) {
        dmg_child *child = launcher->children[index];
        if (child->is_running) {
            has_running = true;
            kill(child->pid, number);
        }
    }
    while (has_running) {
        uint64_t waited_ns = dmg_watch_silence_ns(&launcher->watch, told_ns);
        if (waited_ns >= grace_ns) {
            return false;
        }
        struct pollfd file = {.fd = launcher->signals, .events = POLLIN};
        poll(&file, 1, dmg_launcher_poll_ms(launcher, grace_ns - waited_ns));
        dmg_watch_look(&launcher->watch, dmg_now_ns());
        struct signalfd_siginfo info;
        bool is_impatient = false;
        while (read(launcher->signals, &info, sizeof info) == (ssize_t)sizeof info) {
            is_impatient = is_impatient || info.ssi_signo != SIGCHLD;
        }
        dmg_launcher_reap(launcher);
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
        if (dmg_child_is_stopped(child)) {
            kill(child->pid, SIGKILL); /* nothing else reaches it */
        }
    }
    if (!signal_and_wait(launcher, SIGTERM, GRACE_TERM_NS)) {
        signal_and_wait(launcher, SIGKILL, GRACE_KILL_NS);
    }
    dmg_launcher_dismiss_witness(launcher);
}
