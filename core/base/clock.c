#include "core/base/clock.h"

#include <errno.h>
#include <time.h>

#define NANOSECONDS_SECOND UINT64_C(1000000000)

static uint64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS_SECOND + (uint64_t)now.tv_nsec;
}

uint64_t dmg_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t dmg_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t dmg_process_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

void dmg_sleep_ns(uint64_t duration_ns)
{
    struct timespec left = {.tv_sec = (time_t)(duration_ns / NANOSECONDS_SECOND),
                            .tv_nsec = (long)(duration_ns % NANOSECONDS_SECOND)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}
