#include "core/base/budget.h"

#include "core/base/checked.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CACHE_LINE_BYTES 64
#define HUGE_PAGE_BYTES  (UINT64_C(2) << 20)

struct dmg_budget {
    uint64_t limit_bytes;
    _Atomic uint64_t used_bytes;
    _Atomic uint64_t peak_bytes;
    _Atomic uint64_t purpose_used_bytes[DMG_BUDGET_PURPOSES];
    _Atomic uint64_t purpose_peak_bytes[DMG_BUDGET_PURPOSES];
};

static const char *const purpose_names[DMG_BUDGET_PURPOSES] = {"attributes", "bitmap",  "index",
                                                               "retrieval",  "updates", "other"};

const char *dmg_budget_purpose_name(dmg_budget_purpose purpose)
{
    return purpose_names[purpose];
}

dmg_status dmg_budget_create(uint64_t limit_bytes, dmg_budget **budget)
{
    *budget = calloc(1, sizeof **budget);
    if (!*budget) {
        return dmg_error(DMG_ERR_MEMORY, "creating a cache budget: out of memory");
    }
    (*budget)->limit_bytes = limit_bytes;
    return DMG_OK;
}

void dmg_budget_destroy(dmg_budget *budget)
{
    free(budget);
}

static void raise_to(_Atomic uint64_t *peak, uint64_t value)
{
    uint64_t seen = atomic_load_explicit(peak, memory_order_relaxed);
    while (seen < value && !atomic_compare_exchange_weak(peak, &seen, value)) {
    }
}

/* Reserve before allocating, so that the limit holds at every moment. */
static dmg_status reserve(dmg_budget *budget, dmg_budget_purpose purpose, uint64_t bytes)
{
    uint64_t used = atomic_load(&budget->used_bytes);
    uint64_t wanted;
    do {
        if (!dmg_checked_add(used, bytes, &wanted) || (budget->limit_bytes != 0 && wanted > budget->limit_bytes)) {
            return dmg_error(DMG_ERR_LIMIT,
                             "the cache budget of %" PRIu64 " bytes is too small: %" PRIu64
                             " bytes are in use and %" PRIu64
                             " more are wanted for %s; raise --cache, or use more compute nodes",
                             budget->limit_bytes, used, bytes, purpose_names[purpose]);
        }
    } while (!atomic_compare_exchange_weak(&budget->used_bytes, &used, wanted));
    raise_to(&budget->peak_bytes, wanted);
    uint64_t purpose_used = atomic_fetch_add(&budget->purpose_used_bytes[purpose], bytes) + bytes;
    raise_to(&budget->purpose_peak_bytes[purpose], purpose_used);
    return DMG_OK;
}

static void unreserve(dmg_budget *budget, dmg_budget_purpose purpose, uint64_t bytes)
{
    atomic_fetch_sub(&budget->purpose_used_bytes[purpose], bytes);
    atomic_fetch_sub(&budget->used_bytes, bytes);
}

dmg_status dmg_budget_allocate(dmg_budget *budget, dmg_budget_purpose purpose, uint64_t bytes, void **memory)
{
    *memory = NULL;
    if (bytes == 0) {
        return DMG_OK;
    }
    dmg_status status = reserve(budget, purpose, bytes);
    if (status != DMG_OK) {
        return status;
    }
    uint64_t alignment = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : CACHE_LINE_BYTES;
    uint64_t rounded;
    if (!dmg_checked_round_up(bytes, alignment, &rounded) || !(*memory = aligned_alloc(alignment, rounded))) {
        unreserve(budget, purpose, bytes);
        return dmg_error(DMG_ERR_MEMORY, "allocating %" PRIu64 " bytes for %s: out of memory", bytes,
                         purpose_names[purpose]);
    }
    if (alignment == HUGE_PAGE_BYTES) {
        /* Random access to a cached partition misses the TLB on small pages; advice that fails costs only speed. */
        (void)madvise(*memory, rounded, MADV_HUGEPAGE);
    }
    memset(*memory, 0, rounded);
    return DMG_OK;
}

void dmg_budget_free(dmg_budget *budget, dmg_budget_purpose purpose, void *memory, uint64_t bytes)
{
    if (memory) {
        free(memory);
        unreserve(budget, purpose, bytes);
    }
}

uint64_t dmg_budget_limit_bytes(const dmg_budget *budget)
{
    return budget->limit_bytes;
}

uint64_t dmg_budget_peak_bytes(const dmg_budget *budget)
{
    return atomic_load(&budget->peak_bytes);
}

uint64_t dmg_budget_purpose_peak_bytes(const dmg_budget *budget, dmg_budget_purpose purpose)
{
    return atomic_load(&budget->purpose_peak_bytes[purpose]);
}
