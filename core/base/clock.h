/**
 * @file clock.h
 * Monotonic time, and waiting that does not starve others.
 */
#ifndef DMG_CORE_BASE_CLOCK_H
#define DMG_CORE_BASE_CLOCK_H

#include <stdint.h>

/** CLOCK_MONOTONIC in nanoseconds. */
uint64_t dmg_now_ns(void);

/** CPU time of the calling thread, and of all threads of the process, in nanoseconds. A system call each. */
uint64_t dmg_thread_cpu_ns(void);
uint64_t dmg_process_cpu_ns(void);

/** Sleep at least this long; interrupted sleeps are continued. */
void dmg_sleep_ns(uint64_t duration_ns);

/**
 * A wait that backs off: a few pauses, then sched_yield, then sleeps that grow to 100 us. Spinning threads that
 * outnumber the cores would otherwise keep the thread that they wait for from running.
 */
typedef struct dmg_backoff {
    uint32_t rounds;
} dmg_backoff;

/** Start a new wait. */
static inline void dmg_backoff_reset(dmg_backoff *backoff)
{
    backoff->rounds = 0;
}

/** Wait a little longer than the last time. */
void dmg_backoff_wait(dmg_backoff *backoff);

#endif
