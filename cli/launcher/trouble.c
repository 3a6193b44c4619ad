#include "cli/launcher/state.h"

#include "core/base/error.h"
#include "core/base/memory_room.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

const char *dmg_child_kind_name(dmg_child_kind kind)
{
    return kind == DMG_CHILD_MEMORY_NODE ? "memory node" : "compute node";
}

static bool died_by_itself(const dmg_child *child)
{
    return !child->is_running && !child->is_leaving && child->error == DMG_OK;
}

bool dmg_child_is_stopped(const dmg_child *child)
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

/** Libraries that get no memory often crash. Under a limit of address space, which the nodes inherit, a crash means
 * that first of all. */
static bool died_of_limit(int number, uint64_t *limit)
{
    (void)dmg_address_space_left(limit);
    return *limit != UINT64_MAX && (number == SIGSEGV || number == SIGABRT || number == SIGBUS);
}

static dmg_status report_death(const dmg_launcher *launcher, const dmg_child *child)
{
    char moment[64];
    describe_moment(launcher, moment, sizeof moment);
    if (WIFSIGNALED(child->wait_status)) {
        int number = WTERMSIG(child->wait_status);
        uint64_t limit;
        if (died_of_limit(number, &limit)) {
            return dmg_error(DMG_ERR_MEMORY,
                             "%s %" PRIu32 " (pid %d) was killed by signal %d (%s) %s: it may map %.1f MiB (`ulimit "
                             "-v`), which was too little, it seems: raise the limit",
                             dmg_child_kind_name(child->kind), child->index, child->pid, number, strsignal(number),
                             moment, (double)limit / (1024 * 1024));
        }
        const char *shortage = number == SIGKILL ? dmg_memory_kills_since(&launcher->kills_before) : NULL;
        if (shortage) {
            return dmg_error(DMG_ERR_MEMORY,
                             "%s %" PRIu32 " (pid %d) was killed by signal %d (%s) %s: %s: give it more memory, or let "
                             "it do with less (smaller --memory, fewer compute nodes or threads)",
                             dmg_child_kind_name(child->kind), child->index, child->pid, number, strsignal(number),
                             moment, shortage);
        }
        return dmg_error(DMG_ERR_PEER, "%s %" PRIu32 " (pid %d) was killed by signal %d (%s) %s",
                         dmg_child_kind_name(child->kind), child->index, child->pid, number, strsignal(number), moment);
    }
    return dmg_error(DMG_ERR_PEER, "%s %" PRIu32 " (pid %d) ended unexpectedly with code %d %s",
                     dmg_child_kind_name(child->kind), child->index, child->pid, WEXITSTATUS(child->wait_status),
                     moment);
}

/** The longest silence that was found, or the one of now: a child that spoke again in between was silent all the same.
 */
static uint64_t silence_of(const dmg_launcher *launcher, const dmg_child *child)
{
    uint64_t silence_ns = dmg_watch_silence_ns(&launcher->watch, child->heard_ns);
    return silence_ns > child->silence_ns ? silence_ns : child->silence_ns;
}

static dmg_status report_silence(const dmg_launcher *launcher, const dmg_child *child)
{
    char moment[64];
    describe_moment(launcher, moment, sizeof moment);
    return dmg_error(DMG_ERR_PEER, "%s %" PRIu32 " (pid %d)%s did not answer for %.2f s %s",
                     dmg_child_kind_name(child->kind), child->index, child->pid,
                     dmg_child_is_stopped(child) ? " is stopped and" : "", (double)silence_of(launcher, child) / 1e9,
                     moment);
}

/** Choose what explains the rest, and leave its sentence. */
dmg_status dmg_launcher_report_trouble(const dmg_launcher *launcher)
{
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
            (dmg_child_is_stopped(child) || silence_of(launcher, child) > launcher->peer_timeout_ns)) {
            silent = child;
        }
    }
    if (dead) {
        return report_death(launcher, dead);
    }
    if (failed && failed->error == DMG_ERR_ARGUMENT) {
        return dmg_error(failed->error, "%s", failed->sentence); /* the user's words, not the node's doing */
    }
    if (failed) {
        return dmg_error(failed->error, "%s %" PRIu32 ": %s", dmg_child_kind_name(failed->kind), failed->error_of,
                         failed->sentence);
    }
    if (silent) {
        return report_silence(launcher, silent);
    }
    if (echo) {
        return dmg_error(echo->error, "%s %" PRIu32 ": %s", dmg_child_kind_name(echo->kind), echo->error_of,
                         echo->sentence);
    }
    if (launcher->message_status != DMG_OK) {
        return dmg_error(launcher->message_status, "%s", launcher->message_sentence);
    }
    return dmg_error(DMG_ERR_INTERNAL, "a node ended and nobody knows why");
}
