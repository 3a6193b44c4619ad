#include "cli/base/file_guard.h"

#include "cli/base/exit_code.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A signal handler has no context but the process's. Written before the handler is installed, and not after. */
static dmg_mapped_range guarded;
static char sentence[512];
static size_t sentence_bytes;

/* Only what may be called in a handler. A fault elsewhere, or a signal that somebody sent, does what it always did. */
static void end_for_cut_file(int number, siginfo_t *info, void *context)
{
    (void)context;
    uintptr_t at = (uintptr_t)info->si_addr;
    if (info->si_code > 0 && at >= atomic_load(&guarded.first) && at < atomic_load(&guarded.last)) {
        ssize_t written = write(STDERR_FILENO, sentence, sentence_bytes);
        (void)written;
        _exit(DMG_EXIT_INPUT);
    }
    signal(number, SIG_DFL);
    raise(number);
}

dmg_mapped_range *dmg_file_guard(const char *name)
{
    sentence_bytes = 0;
    if (name) {
        int length = snprintf(sentence, sizeof sentence,
                              "dmgraph: %.400s: was cut short while it was read: read it again when nobody writes to "
                              "it\n",
                              name);
        sentence_bytes = (size_t)length < sizeof sentence ? (size_t)length : sizeof sentence - 1;
    }
    struct sigaction action = {.sa_sigaction = end_for_cut_file, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
    return &guarded;
}
