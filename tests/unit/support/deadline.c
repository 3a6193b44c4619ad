#include "unit/support/deadline.h"

#include <pthread.h>
#include <stddef.h>
#include <time.h>

#define SECOND_NS    1e9
#define POLL_NS      5000000L
#define STALE_NS     UINT64_C(3000000000)
#define ROUNDS       10    /* of work, after each of which both threads meet */
#define STEPS        20000 /* of work, a round: about a millisecond */
#define TURNS        32    /* of arithmetic, a step */
#define WORDS        1024
#define QUIET_NS     8e6 /* what all rounds take on two quiet cores */
#define SLOWNESS_MAX 50.0
#define THREADS      2

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Mostly arithmetic that depends on itself; each step also goes to memory, so that it is done, and a sanitizer sees it.
 */
static void work(volatile uint32_t *words)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        uint32_t value = words[step % WORDS];
        for (int turn = 0; turn < TURNS; turn++) {
            value = value * 2654435761U + step;
        }
        words[step % WORDS] = value;
    }
}

static void *work_and_meet(void *argument)
{
    pthread_barrier_t *meeting = argument;
    volatile uint32_t words[WORDS] = {0};
    for (int round = 0; round < ROUNDS; round++) {
        work(words);
        pthread_barrier_wait(meeting);
    }
    return NULL;
}

static double measure(void)
{
    pthread_barrier_t meeting;
    pthread_t other;
    uint64_t started_ns = now_ns();
    if (pthread_barrier_init(&meeting, NULL, THREADS) != 0) {
        return SLOWNESS_MAX;
    }
    bool has_other = pthread_create(&other, NULL, work_and_meet, &meeting) == 0;
    if (has_other) {
        work_and_meet(&meeting);
        pthread_join(other, NULL);
    }
    pthread_barrier_destroy(&meeting);
    double slowness = has_other ? (double)(now_ns() - started_ns) / QUIET_NS : SLOWNESS_MAX;
    return slowness < 1 ? 1 : slowness < SLOWNESS_MAX ? slowness : SLOWNESS_MAX;
}

/* The worse of the last two measurements: load comes and goes, and a test has to get through its peaks. */
static double measured(bool is_wanted_now)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t measured_ns;
    static double last[2];
    pthread_mutex_lock(&mutex);
    if (is_wanted_now || measured_ns == 0 || now_ns() - measured_ns > STALE_NS) {
        last[0] = last[1];
        last[1] = measure();
        measured_ns = now_ns();
    }
    double slowness = last[0] > last[1] ? last[0] : last[1];
    pthread_mutex_unlock(&mutex);
    return slowness;
}

double dmg_test_slowness(void)
{
    return measured(false);
}

uint64_t dmg_test_deadline_ns(double quiet_seconds)
{
    return (uint64_t)(quiet_seconds * dmg_test_slowness() * SECOND_NS);
}

unsigned int dmg_test_deadline_s(double quiet_seconds)
{
    return 1 + (unsigned int)(quiet_seconds * dmg_test_slowness());
}

dmg_test_wait dmg_test_wait_for(double quiet_seconds)
{
    return (dmg_test_wait){.quiet_seconds = quiet_seconds, .started_ns = now_ns()};
}

bool dmg_test_goes_on(dmg_test_wait *wait)
{
    if (wait->looks++ == 0) {
        return true;
    }
    double passed_s = (double)(now_ns() - wait->started_ns) / SECOND_NS;
    if (passed_s > wait->quiet_seconds && passed_s > wait->quiet_seconds * measured(true)) {
        return false;
    }
    nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    return true;
}
