/**
 * @file state.h
 * What the parts of the launcher share: launcher.c has the loop, launcher_children.c starts and ends nodes,
 * launcher_trouble.c says what went wrong, launcher_witness.c what killed the launcher.
 */
#ifndef DMG_CLI_LAUNCHER_STATE_H
#define DMG_CLI_LAUNCHER_STATE_H

#include "cli/launcher/launcher.h"
#include "core/base/memory_room.h"
#include "core/base/watch.h"

#include <poll.h>
#include <signal.h>

#define DMG_MILLISECOND_NS UINT64_C(1000000)

struct dmg_launcher {
    int signals; /* signalfd */
    int step_ended;
    int witness; /* -1: there is none */
    sigset_t signal_mask_before;
    int signal; /* that cancelled the run */
    uint64_t peer_timeout_ns;
    dmg_memory_kills kills_before; /* when it was made */
    dmg_watch watch;               /* of the children; looks once a turn of the loop */
    uint64_t memory_bytes;         /* that nodes give back at their end */
    dmg_launcher_message on_message;
    void *message_context;
    dmg_launcher_look look;
    void *look_context;
    dmg_status message_status; /* of on_message or look, when it failed */
    char message_sentence[1024];
    dmg_child **children;
    uint32_t child_count;
    uint64_t order; /* of deaths and errors */
    bool has_trouble;
    uint64_t trouble_ns; /* when the first sign came, a stamp of the watch */
    uint64_t settle_ns;
    struct pollfd *files; /* signals, step_ended, then one a child */
};

/** The signals that the launcher takes over. */
#define DMG_TAKEN_SIGNALS 5
extern const int dmg_taken_signals[DMG_TAKEN_SIGNALS];

/** How long to wait before the watch has to look again, at most `most_ns`: what poll takes. */
int dmg_launcher_poll_ms(const dmg_launcher *launcher, uint64_t most_ns);
/** What a launcher's witness says of its death; "" when nobody was killed for lack of memory meanwhile. */
void dmg_launcher_describe_death(int pid, const dmg_memory_kills *before, const dmg_memory_kills *now, char *text,
                                 size_t capacity);
/** Say goodbye to the witness, when there is one. */
void dmg_launcher_dismiss_witness(dmg_launcher *launcher);
/** Take in the ends of children. */
void dmg_launcher_reap(dmg_launcher *launcher);
/** Choose what explains the rest of what was noticed, and leave its sentence. */
dmg_status dmg_launcher_report_trouble(const dmg_launcher *launcher);
/** Whether a signal has stopped the child (SIGSTOP). */
bool dmg_child_is_stopped(const dmg_child *child);
/** "memory node", "compute node". */
const char *dmg_child_kind_name(dmg_child_kind kind);

#endif
