#include "core/base/backoff.h"

#include "core/base/clock.h"

void dmg_backoff_wait(dmg_backoff *backoff)
{
    uint64_t sleep_ns = dmg_backoff_next(backoff, &dmg_backoff_usual);
    if (sleep_ns > 0) {
        dmg_sleep_ns(sleep_ns);
    }
}
