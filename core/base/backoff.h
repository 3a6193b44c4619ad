/**
 * @file backoff.h
 * Waiting without keeping others from their work: a few pauses, then giving the processor to who wants it, then sleeps
 * that grow. Spinning threads that outnumber the cores make everything slow, so every wait backs off.
 */
#ifndef DMG_CORE_BASE_BACKOFF_H
#define DMG_CORE_BASE_BACKOFF_H

#include <sched.h>
#include <stdint.h>

/** How a kind of wait backs off. */
typedef struct dmg_backoff_plan {
    uint32_t pauses;
    uint32_t yields;
    uint64_t sleep_ns_first; /**< each sleep is twice as long as the one before */
    uint64_t sleep_ns_max;
} dmg_backoff_plan;

/** What soon happens by itself, or takes long: nobody wakes the sleeper. */
static const dmg_backoff_plan dmg_backoff_usual = {
    .pauses = 64, .yields = 192, .sleep_ns_first = 2000, .sleep_ns_max = 100000};
/** An answer: looks are cheap, and a sleeper may be woken. */
static const dmg_backoff_plan dmg_backoff_answer = {
    .pauses = 200, .yields = 4, .sleep_ns_first = 200000, .sleep_ns_max = 4000000};
/** The same where memory is reached but not coherent: a look is a line's way to the memory and back. */
static const dmg_backoff_plan dmg_backoff_slow_answer = {
    .pauses = 16, .yields = 4, .sleep_ns_first = 200000, .sleep_ns_max = 4000000};
/** Another worker's last piece of a list: it takes a few microseconds, unless its thread is not running. */
static const dmg_backoff_plan dmg_backoff_worker = {
    .pauses = 200, .yields = 8, .sleep_ns_first = 50000, .sleep_ns_max = 50000};

/** A wait; zeroed at its beginning. */
typedef struct dmg_backoff {
    uint32_t rounds;
    uint64_t sleep_ns; /**< the last sleep */
} dmg_backoff;

/**
 * The next step of a wait: pauses or yields, and returns 0; or returns how many nanoseconds the caller should sleep, in
 * its own way.
 */
static inline uint64_t dmg_backoff_next(dmg_backoff *backoff, const dmg_backoff_plan *plan)
{
    if (backoff->rounds < plan->pauses) {
        backoff->rounds++;
        __builtin_ia32_pause();
        return 0;
    }
    if (backoff->rounds < plan->pauses + plan->yields) {
        backoff->rounds++;
        sched_yield();
        return 0;
    }
    uint64_t sleep_ns = backoff->sleep_ns ? 2 * backoff->sleep_ns : plan->sleep_ns_first;
    backoff->sleep_ns = sleep_ns < plan->sleep_ns_max ? sleep_ns : plan->sleep_ns_max;
    return backoff->sleep_ns;
}

/** The next step of a wait by dmg_backoff_usual, with its sleeps. */
void dmg_backoff_wait(dmg_backoff *backoff);

#endif
