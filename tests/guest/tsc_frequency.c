/*
 * Prints how many thousand times a second this machine's time stamp counter ticks. A guest under emulation has the same
 * counter; when it has to find its frequency by itself, on a busy machine, it may be wrong by a factor, and all its
 * clocks with it.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

#define SLEEP_NS UINT64_C(200000000)
#define ATTEMPTS 1000

typedef struct moment {
    uint64_t ticks;
    uint64_t ns;
} moment;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_RAW, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Of many pairs of readings the closest one: it was not interrupted. */
static moment read_both(void)
{
    moment best = {0};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < ATTEMPTS; i++) {
        uint64_t before = __rdtsc();
        uint64_t ns = now_ns();
        uint64_t after = __rdtsc();
        if (after - before < least) {
            least = after - before;
            best = (moment){before + (after - before) / 2, ns};
        }
    }
    return best;
}

int main(void)
{
    moment first = read_both();
    nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    moment last = read_both();
    printf("%.0f\n", (double)(last.ticks - first.ticks) * 1e6 / (double)(last.ns - first.ns));
    return 0;
}
