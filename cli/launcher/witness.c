/*
 * The launcher's witness: a small process that says why the launcher is gone when that was killed for lack of memory,
 * which it cannot say itself, and nor can its nodes, which the kernel ends with it.
 *
 * It is forked before the launcher has taken any memory, holds nothing but its standard error and one end of a socket,
 * and reads. The launcher says goodbye whatever happens to a run; the socket's end without that is the launcher's
 * death.
 */
#include "cli/launcher/state.h"

#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define GOODBYE 'g'

/** True when the launcher said goodbye. */
static bool wait_for_goodbye(int socket)
{
    char word = 0;
    ssize_t bytes;
    do {
        bytes = read(socket, &word, 1);
    } while (bytes < 0 && errno == EINTR);
    return bytes == 1 && word == GOODBYE;
}

void dmg_launcher_describe_death(int pid, const dmg_memory_kills *before, const dmg_memory_kills *now, char *text,
                                 size_t capacity)
{
    const char *shortage = dmg_memory_kills_between(before, now);
    text[0] = '\0';
    if (shortage) {
        bool is_group = now->group > before->group;
        snprintf(text, capacity,
                 "the launcher (pid %d) is gone, killed for lack of memory, it seems: %s (it has counted %" PRIu64
                 " before the run, %" PRIu64
                 " now); its nodes end with it. Give it more memory, or let it do with less "
                 "(a smaller graph, smaller --memory, fewer compute nodes or threads)",
                 pid, shortage, is_group ? before->group : before->machine, is_group ? now->group : now->machine);
    }
}

static _Noreturn void witness(const dmg_launcher *launcher, int socket, int launcher_pid)
{
    /* Copied first: what is closed may be where it has to go. Signals that end programs stay blocked. */
    int end = fcntl(socket, F_DUPFD, STDERR_FILENO + 1);
    int nothing = open("/dev/null", O_RDWR);
    if (end < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
        dup2(end, STDERR_FILENO + 1) < 0) {
        _exit(EXIT_FAILURE);
    }
    close_range(STDERR_FILENO + 2, ~0u, 0);
    prctl(PR_SET_NAME, "dmgraph-witness");
    if (!wait_for_goodbye(STDERR_FILENO + 1)) {
        char text[1024];
        dmg_memory_kills now;
        dmg_memory_kills_read("", &now);
        dmg_launcher_describe_death(launcher_pid, &launcher->kills_before, &now, text, sizeof text);
        if (*text) {
            fprintf(stderr, "dmgraph: %s\n", text);
        }
    }
    _exit(EXIT_SUCCESS);
}

dmg_status dmg_launcher_call_witness(dmg_launcher *launcher)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "creating a control socket");
    }
    int launcher_pid = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        witness(launcher, ends[1], launcher_pid);
    }
    int error = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return dmg_error_errno(DMG_ERR_MEMORY, error, "starting the launcher's witness");
    }
    launcher->witness = ends[0];
    return DMG_OK;
}

void dmg_launcher_dismiss_witness(dmg_launcher *launcher)
{
    if (launcher->witness >= 0) {
        static const char goodbye = GOODBYE;
        send(launcher->witness, &goodbye, 1, MSG_NOSIGNAL);
        close(launcher->witness);
        launcher->witness = -1;
    }
}
