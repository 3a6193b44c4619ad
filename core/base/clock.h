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

#endif
