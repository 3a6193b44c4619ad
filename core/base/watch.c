#include "core/base/watch.h"

#define LOOKS         20 /* a timeout */
#define CREDIT_PART   10 /* two looks */
#define ABSENCE_PART  2
#define LOOK_NS_MIN   UINT64_C(1000000)
#define CREDIT_NS_MIN (2 * LOOK_NS_MIN)

static uint64_t at_least(uint64_t value, uint64_t least)
{
    return value < least ? least : value;
}

void dmg_watch_start(dmg_watch *watch, uint64_t timeout_ns, uint64_t clock_ns)
{
    *watch = (dmg_watch){.timeout_ns = timeout_ns, .clock_ns = clock_ns, .now_ns = clock_ns, .fresh_ns = clock_ns};
}

uint64_t dmg_watch_interval_ns(const dmg_watch *watch)
{
    return at_least(watch->timeout_ns / LOOKS, LOOK_NS_MIN);
}

void dmg_watch_look(dmg_watch *watch, uint64_t clock_ns)
{
    uint64_t gap_ns = clock_ns > watch->clock_ns ? clock_ns - watch->clock_ns : 0;
    uint64_t credit_ns_max = at_least(watch->timeout_ns / CREDIT_PART, CREDIT_NS_MIN);
    watch->clock_ns += gap_ns;
    watch->now_ns += gap_ns < credit_ns_max ? gap_ns : credit_ns_max;
    if (gap_ns >= at_least(watch->timeout_ns / ABSENCE_PART, 2 * credit_ns_max)) {
        watch->fresh_ns = watch->now_ns;
    }
}

uint64_t dmg_watch_silence_ns(const dmg_watch *watch, uint64_t heard_ns)
{
    uint64_t since_ns = at_least(heard_ns, watch->fresh_ns);
    return watch->now_ns > since_ns ? watch->now_ns - since_ns : 0;
}

bool dmg_watch_is_over(const dmg_watch *watch, uint64_t heard_ns)
{
    return dmg_watch_silence_ns(watch, heard_ns) > watch->timeout_ns;
}

bool dmg_watch_wait_is_over(dmg_watch *watch, uint64_t clock_ns)
{
    dmg_watch_look(watch, clock_ns);
    return dmg_watch_is_over(watch, watch->fresh_ns);
}
