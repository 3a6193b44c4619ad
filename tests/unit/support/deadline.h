/**
 * @file deadline.h
 * Deadlines that follow what the machine gives.
 *
 * A test says what would be enough on a quiet machine. It gets so much more as a known piece of work takes longer now
 * than there: two threads that compute and meet, as nodes do, compiled as the test is, so that sanitizers count too.
 * The measurement is repeated when it is a few seconds old, and when a wait is about to be given up.
 *
 * It serves both directions. What must happen is given up only when the machine had time for it; what must not happen
 * within a time, or what is only then noticed, is given that time as the machine sees it.
 */
#ifndef DMG_TEST_SUPPORT_DEADLINE_H
#define DMG_TEST_SUPPORT_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

/** How many times slower than a quiet machine this one is now: 1 to 50. Thread-safe. */
double dmg_test_slowness(void);

/** What so many seconds of a quiet machine are now, in nanoseconds: for peer timeouts and sleeps. */
uint64_t dmg_test_deadline_ns(double quiet_seconds);

/** The same in whole seconds, at least one: for alarm(). */
unsigned int dmg_test_deadline_s(double quiet_seconds);

/** A bounded wait: `for (dmg_test_wait wait = dmg_test_wait_for(10); dmg_test_goes_on(&wait);) { look }`. */
typedef struct dmg_test_wait {
    double quiet_seconds;
    uint64_t started_ns;
    uint64_t looks;
} dmg_test_wait;

dmg_test_wait dmg_test_wait_for(double quiet_seconds);
/** True at the first look at once, then after a short sleep each, until the time is over, measured anew. */
bool dmg_test_goes_on(dmg_test_wait *wait);

#endif
