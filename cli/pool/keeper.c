/*
 * dmgraph pool-keeper: waits for a pool's memory nodes, and puts down how each ended.
 *
 * The process that has started the nodes executes the program anew as this command: it stays their parent, and keeps
 * nothing of the memory and threads that starting them took.
 */
#include "cli/pool/keeper.h"

#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/launcher/launcher.h"
#include "cli/launcher/node_control.h"
#include "cli/options/command.h"
#include "cli/pool/record.h"
#include "core/base/error.h"
#include "core/base/memory_room.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the process that was called ---- */

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
#define PASSED_ON (sizeof passed_on / sizeof passed_on[0])

static _Noreturn void end_like(pid_t starter)
{
    int status = 0;
    while (waitpid(starter, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status)) {
        _exit(WEXITSTATUS(status));
    }
    fprintf(stderr, "dmgraph: the process that was starting the pool (pid %d) was killed by signal %d (%s)\n",
            (int)starter, WTERMSIG(status), strsignal(WTERMSIG(status)));
    _exit(DMG_EXIT_SIGNAL + WTERMSIG(status));
}

/** A terminal's signals reach both by themselves. */
static void pass_on(int signals, pid_t starter)
{
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_code <= 0) {
            kill(starter, (int)info.ssi_signo);
        }
    }
}

/** Until the starter has become the keeper, which closes its end of the pipe behind the exit code, or has ended. */
static _Noreturn void wait_for(pid_t starter, int signals, int said)
{
    unsigned char code = 0;
    bool has_code = false;
    for (;;) {
        struct pollfd files[] = {{.fd = said, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
        poll(files, 2, -1);
        pass_on(signals, starter);
        ssize_t got = files[0].revents ? read(said, &code, 1) : -1;
        has_code = has_code || got == 1;
        if (got == 0 && has_code) {
            _exit(code);
        }
        if (got == 0) {
            end_like(starter);
        }
    }
}

dmg_status dmg_pool_keeper_fork(int *waiting)
{
    sigset_t mask, before;
    sigemptyset(&mask);
    for (size_t i = 0; i < PASSED_ON; i++) {
        sigaddset(&mask, passed_on[i]);
    }
    int pipe_ends[2];
    int signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals < 0 || pipe2(pipe_ends, O_CLOEXEC) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "preparing the pool's keeper");
    }
    sigprocmask(SIG_BLOCK, &mask, &before);
    pid_t called = getpid();
    pid_t starter = fork();
    if (starter > 0) {
        close(pipe_ends[1]);
        wait_for(starter, signals, pipe_ends[0]);
    }
    int error = errno;
    close(signals);
    close(pipe_ends[0]);
    if (starter == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != called) {
            _exit(EXIT_FAILURE);
        }
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    *waiting = pipe_ends[1];
    return starter == 0 ? DMG_OK : dmg_error_errno(DMG_ERR_IO, error, "starting the pool's keeper");
}

/* ---- the keeper ---- */

/** How often the kernel's counts of kills are read, so that one of yesterday explains nothing today. */
#define LOOK_S 2
/** How long after its kill a process may be giving back memory, as a part of what that may take at most. */
#define GIVING_BACK_PART 10

typedef struct watched_pool {
    int record;
    dmg_pool_record pool;
    dmg_memory_kills kills_before; /* some time ago */
    dmg_memory_kills kills;        /* at the last look */
} watched_pool;

static bool is_crash(int number)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    bool is_one = false;
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++) {
        is_one = is_one || crashes[i] == number;
    }
    return is_one;
}

/** What the parent learns, when the node itself has said nothing. */
static void explain(const watched_pool *keeper, const siginfo_t *info, char why[DMG_POOL_WHY_BYTES])
{
    if (info->si_code == CLD_EXITED) {
        snprintf(why, DMG_POOL_WHY_BYTES, "ended with exit code %d", info->si_status);
        return;
    }
    const char *name = sigabbrev_np(info->si_status);
    const char *shortage = info->si_status == SIGKILL ? dmg_memory_kills_since(&keeper->kills_before) : NULL;
    if (shortage) {
        snprintf(why, DMG_POOL_WHY_BYTES, "killed by SIGKILL: %s", shortage);
    } else if (is_crash(info->si_status)) {
        snprintf(why, DMG_POOL_WHY_BYTES, "crashed with SIG%s (%s)%s", name ? name : "?", strsignal(info->si_status),
                 info->si_code == CLD_DUMPED ? ", core dumped" : "");
    } else {
        snprintf(why, DMG_POOL_WHY_BYTES, "killed by SIG%s", name ? name : "?");
    }
}

/**
 * Into NAME.ends beside the pool's file, if that is still there. `pool stop` removes that file first: either it is seen
 * here that it has gone, or what is made here is seen there.
 */
static void put_down(const watched_pool *keeper, const dmg_pool_end *end)
{
    const char *name = keeper->pool.pool.name;
    int folder = -1;
    int ends = -1;
    dmg_pool_file pool;
    if (dmg_pool_folder_open_path(keeper->pool.folder, &folder) != DMG_OK ||
        dmg_pool_ends_open(folder, name, true, &ends) != DMG_OK) {
        if (folder >= 0) {
            close(folder);
        }
        return;
    }
    dmg_pool_end_append(ends, end);
    close(ends);
    if (dmg_pool_file_read(folder, name, &pool) == DMG_ERR_NOT_FOUND) {
        dmg_pool_ends_remove(folder, name);
    }
    close(folder);
}

static void note_end(const watched_pool *keeper, const siginfo_t *info)
{
    const dmg_pool_file *pool = &keeper->pool.pool;
    uint32_t node = 0;
    while (node < pool->node_count && pool->nodes[node].process.pid != info->si_pid) {
        node++;
    }
    if (node == pool->node_count) {
        return; /* none of the nodes */
    }
    dmg_pool_end end;
    if (!dmg_pool_end_read(keeper->record, &pool->nodes[node].process, &end)) {
        end = (dmg_pool_end){.process = pool->nodes[node].process, .at_s = (uint64_t)time(NULL)};
        explain(keeper, info, end.why);
        dmg_pool_end_append(keeper->record, &end);
    }
    fprintf(stderr, "%s memory node %" PRIu32 ": died pid=%d why=\"%s\"\n", dmg_text_timestamp(end.at_s).text, node,
            (int)info->si_pid, end.why);
    put_down(keeper, &end);
}

/** Take note of ends before the kernel forgets the processes: whoever finds no trace of one finds it put down. False
 * when no node is left. */
static bool take_ends(const watched_pool *keeper)
{
    for (;;) {
        siginfo_t info = {0};
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
            return errno != ECHILD;
        }
        if (info.si_pid == 0) {
            return true;
        }
        note_end(keeper, &info);
        waitpid(info.si_pid, NULL, 0);
    }
}

static void keep(watched_pool *keeper)
{
    uint64_t largest = 0;
    for (uint32_t node = 0; node < keeper->pool.pool.node_count; node++) {
        uint64_t bytes = keeper->pool.pool.nodes[node].segment_bytes;
        largest = bytes > largest ? bytes : largest;
    }
    uint64_t look_ns = LOOK_S * UINT64_C(1000000000) + dmg_launcher_giving_back_ns(largest) / GIVING_BACK_PART;
    const struct timespec look = {.tv_sec = (time_t)(look_ns / 1000000000), .tv_nsec = (long)(look_ns % 1000000000)};
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    dmg_memory_kills_read("", &keeper->kills);
    keeper->kills_before = keeper->kills;
    while (take_ends(keeper)) {
        if (sigtimedwait(&ends, NULL, &look) < 0 && errno == EAGAIN) {
            keeper->kills_before = keeper->kills;
            dmg_memory_kills_read("", &keeper->kills);
        }
    }
}

static int run(dmg_settings *settings)
{
    (void)settings;
    watched_pool *keeper = calloc(1, sizeof *keeper);
    if (!keeper) {
        return dmg_exit_with_error(dmg_error(DMG_ERR_MEMORY, "no memory to keep a pool"));
    }
    keeper->record = DMG_CHILD_FILE;
    dmg_status status = dmg_pool_record_read(keeper->record, &keeper->pool);
    if (status == DMG_OK) {
        keep(keeper);
    } else {
        status = dmg_error(DMG_ERR_ARGUMENT, "pool-keeper is started by 'dmgraph pool start' alone: %s",
                           dmg_error_message());
    }
    free(keeper);
    return status == DMG_OK ? DMG_EXIT_OK : dmg_exit_with_error(status);
}

_Noreturn void dmg_pool_keeper_stay(int waiting, int exit_code, int record, int log, const char *name)
{
    /* What ends the nodes ends the keeper, and nothing else but SIGKILL. Ignored, nothing pending is left of them. */
    for (size_t i = 0; i < PASSED_ON; i++) {
        signal(passed_on[i], SIG_IGN);
    }
    prctl(PR_SET_PDEATHSIG, 0);
    setsid();
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    unsigned char code = (unsigned char)exit_code;
    while (write(waiting, &code, 1) < 0 && errno == EINTR) {
    }
    if (nothing >= 0) {
        dup2(nothing, STDIN_FILENO);
        dup2(nothing, STDOUT_FILENO);
    }
    dup2(log, STDERR_FILENO);
    int kept = fcntl(record, F_DUPFD_CLOEXEC, DMG_CHILD_FILE + 1);
    if (chdir("/") != 0 || nothing < 0 || kept < 0 || dup2(nothing, DMG_CHILD_CONTROL) < 0 ||
        dup2(kept, DMG_CHILD_FILE) < 0) {
        _exit(EXIT_FAILURE);
    }
    close_range(DMG_CHILD_FILE + 1, ~0u, 0);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    char program[] = "dmgraph";
    char command[] = "pool-keeper";
    char pool[DMG_POOL_NAME_BYTES];
    snprintf(pool, sizeof pool, "%s", name);
    char *arguments[] = {program, command, pool, NULL};
    execv("/proc/self/exe", arguments);
    _exit(EXIT_FAILURE);
}

static const dmg_option_id options[] = {DMG_OPTION_HELP, DMG_OPTION_HELP_ALL, DMG_OPTION_COUNT};

const dmg_command dmg_command_pool_keeper = {
    .name = "pool-keeper",
    .arguments = "P",
    .argument_count = 1,
    .summary = "puts down how the memory nodes of a pool end (started by 'dmgraph pool start')",
    .is_internal = true,
    .options = options,
    .run = run};
