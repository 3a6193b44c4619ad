#include "transport/counters.h"

#include <stddef.h>

/* Both structures hold 64-bit counts and nothing else, so that sums and differences need no list of their fields. */
#define COUNTS (sizeof(dmg_counters) / sizeof(uint64_t))
_Static_assert(sizeof(dmg_counters) % sizeof(uint64_t) == 0 && _Alignof(dmg_counters) == _Alignof(uint64_t),
               "counters are counts only");

void dmg_counters_add(dmg_counters *sum, const dmg_counters *more)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)more;
    for (size_t count = 0; count < COUNTS; count++) {
        to[count] += from[count];
    }
}

void dmg_counters_subtract(dmg_counters *sum, const dmg_counters *part)
{
    uint64_t *from = (uint64_t *)sum;
    const uint64_t *less = (const uint64_t *)part;
    for (size_t count = 0; count < COUNTS; count++) {
        from[count] = from[count] > less[count] ? from[count] - less[count] : 0;
    }
}

const char *dmg_operation_kind_name(dmg_operation_kind kind)
{
    static const char *const names[DMG_OPERATION_KINDS] = {"read", "write", "cas", "faa", "message"};
    return names[kind];
}

const char *dmg_purpose_name(dmg_purpose purpose)
{
    static const char *const names[DMG_PURPOSES] = {"other", "streams", "index", "lists", "updates"};
    return names[purpose];
}
