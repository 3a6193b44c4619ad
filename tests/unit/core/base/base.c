/* Errors, checked arithmetic, the cache budget, waiting. */
#include "unit/support/suite.h"

#include "core/base/budget.h"
#include "core/base/checked.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/ticks.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void an_error_keeps_its_sentence_and_takes_prefixes(void)
{
    CU_ASSERT_EQUAL(dmg_error(DMG_ERR_LIMIT, "%d is too many", 7), DMG_ERR_LIMIT);
    CU_ASSERT_STRING_EQUAL(dmg_error_message(), "7 is too many");
    CU_ASSERT_EQUAL(dmg_error_prefix(DMG_ERR_LIMIT, "loading %s", "g.el"), DMG_ERR_LIMIT);
    CU_ASSERT_STRING_EQUAL(dmg_error_message(), "loading g.el: 7 is too many");
    CU_ASSERT_EQUAL(dmg_error(DMG_ERR_IO, "again: %s", dmg_error_message()), DMG_ERR_IO);
    CU_ASSERT_STRING_EQUAL(dmg_error_message(), "again: loading g.el: 7 is too many");
    CU_ASSERT_EQUAL(dmg_error_errno(DMG_ERR_IO, ENOENT, "opening x"), DMG_ERR_IO);
    CU_ASSERT_STRING_EQUAL(dmg_error_message(), "opening x: No such file or directory");
}

static void the_systems_reason_stays_with_its_error(void)
{
    dmg_error_errno(DMG_ERR_IO, EPIPE, "writing x");
    CU_ASSERT_EQUAL(dmg_error_number(), EPIPE);
    dmg_error_prefix(DMG_ERR_IO, "run");
    CU_ASSERT_EQUAL(dmg_error_number(), EPIPE);
    dmg_error(DMG_ERR_IO, "something else");
    CU_ASSERT_EQUAL(dmg_error_number(), 0);
}

static void a_kept_error_comes_back_and_the_first_one_stays(void)
{
    dmg_kept_error kept = {0};
    dmg_error_keep(&kept, DMG_OK);
    CU_ASSERT_EQUAL(dmg_error_restore(&kept), DMG_OK);
    dmg_error_keep(&kept, dmg_error_errno(DMG_ERR_IO, ENOSPC, "writing y"));
    dmg_error_keep(&kept, dmg_error(DMG_ERR_PEER, "later"));
    CU_ASSERT_EQUAL(dmg_error_restore(&kept), DMG_ERR_IO);
    CU_ASSERT_EQUAL(dmg_error_number(), ENOSPC);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "writing y"));
}

static void every_status_has_a_name_and_no_other_number_has(void)
{
    for (int status = DMG_OK; status < DMG_STATUS_COUNT; status++) {
        CU_ASSERT_EQUAL(strncmp(dmg_status_name((dmg_status)status), "DMG_", 4), 0);
        CU_ASSERT_STRING_NOT_EQUAL(dmg_status_name((dmg_status)status), "DMG_ERR_UNKNOWN");
    }
    CU_ASSERT_STRING_EQUAL(dmg_status_name((dmg_status)DMG_STATUS_COUNT), "DMG_ERR_UNKNOWN");
    CU_ASSERT_STRING_EQUAL(dmg_status_name((dmg_status)-1), "DMG_ERR_UNKNOWN");
}

static void *fail_elsewhere(void *argument)
{
    (void)argument;
    (void)dmg_error(DMG_ERR_PEER, "another thread's");
    return NULL;
}

static void an_error_belongs_to_its_thread(void)
{
    pthread_t thread;
    (void)dmg_error(DMG_ERR_IO, "mine");
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, fail_elsewhere, NULL), 0);
    pthread_join(thread, NULL);
    CU_ASSERT_STRING_EQUAL(dmg_error_message(), "mine");
}

static void arithmetic_on_sizes_refuses_to_wrap(void)
{
    uint64_t value;
    CU_ASSERT_TRUE(dmg_checked_add(UINT64_MAX - 1, 1, &value));
    CU_ASSERT_FALSE(dmg_checked_add(UINT64_MAX, 1, &value));
    CU_ASSERT_TRUE(dmg_checked_multiply(UINT64_C(1) << 32, (UINT64_C(1) << 32) - 1, &value));
    CU_ASSERT_FALSE(dmg_checked_multiply(UINT64_C(1) << 32, UINT64_C(1) << 32, &value));
    CU_ASSERT_TRUE(dmg_checked_round_up(4097, 4096, &value));
    CU_ASSERT_EQUAL(value, 8192);
    CU_ASSERT_FALSE(dmg_checked_round_up(UINT64_MAX, 4096, &value));
    CU_ASSERT_TRUE(dmg_range_is_inside(10, 0, 10));
    CU_ASSERT_TRUE(dmg_range_is_inside(0, 10, 10));
    CU_ASSERT_FALSE(dmg_range_is_inside(1, 10, 10));
    CU_ASSERT_FALSE(dmg_range_is_inside(11, 0, 10));
    CU_ASSERT_FALSE(dmg_range_is_inside(2, UINT64_MAX, 10));
}

static void a_budget_is_a_hard_limit_and_remembers_its_peaks(void)
{
    dmg_budget *budget;
    void *first;
    void *second;
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(1000, &budget), DMG_OK);
    CU_ASSERT_EQUAL(dmg_budget_allocate(budget, DMG_BUDGET_ATTRIBUTES, 600, &first), DMG_OK);
    CU_ASSERT_EQUAL((uintptr_t)first % 64, 0);
    CU_ASSERT_EQUAL(dmg_budget_allocate(budget, DMG_BUDGET_UPDATES, 401, &second), DMG_ERR_LIMIT);
    CU_ASSERT_PTR_NULL(second);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "401 more are wanted for updates"));
    CU_ASSERT_EQUAL(dmg_budget_allocate(budget, DMG_BUDGET_UPDATES, 400, &second), DMG_OK);
    dmg_budget_free(budget, DMG_BUDGET_ATTRIBUTES, first, 600);
    dmg_budget_free(budget, DMG_BUDGET_UPDATES, second, 400);
    CU_ASSERT_EQUAL(dmg_budget_allocate(budget, DMG_BUDGET_OTHER, 0, &first), DMG_OK);
    CU_ASSERT_PTR_NULL(first);
    CU_ASSERT_EQUAL(dmg_budget_peak_bytes(budget), 1000);
    CU_ASSERT_EQUAL(dmg_budget_purpose_peak_bytes(budget, DMG_BUDGET_ATTRIBUTES), 600);
    CU_ASSERT_EQUAL(dmg_budget_purpose_peak_bytes(budget, DMG_BUDGET_UPDATES), 400);
    dmg_budget_destroy(budget);
}

static void memory_of_a_budget_is_zeroed_and_large_pieces_lie_on_large_pages(void)
{
    const uint64_t bytes = (UINT64_C(4) << 20) + 1;
    dmg_budget *budget;
    void *memory;
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &budget), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_budget_allocate(budget, DMG_BUDGET_OTHER, bytes, &memory), DMG_OK);
    CU_ASSERT_EQUAL((uintptr_t)memory % (UINT64_C(2) << 20), 0);
    uint64_t set = 0;
    for (uint64_t i = 0; i < bytes; i++) {
        set += ((const uint8_t *)memory)[i] != 0;
    }
    CU_ASSERT_EQUAL(set, 0);
    dmg_budget_free(budget, DMG_BUDGET_OTHER, memory, bytes);
    dmg_budget_destroy(budget);
}

static void sleeping_takes_at_least_as_long_as_asked(void)
{
    uint64_t before_ns = dmg_now_ns();
    dmg_sleep_ns(2000000);
    CU_ASSERT_TRUE(dmg_now_ns() - before_ns >= 2000000);
}

/* Far beyond what caches hold near a core. */
#define MEMORY_LINES ((UINT64_C(128) << 20) / 64)
#define LOADS        20000
#define CHAINS       40
#define CHAIN_LOADS  1000 /* short, so that some chains keep the processor */

typedef struct memory_line {
    _Alignas(64) uint64_t word;
} memory_line;

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static const volatile uint64_t *random_word(const memory_line *memory, uint64_t random)
{
    return &memory[(uint64_t)((unsigned __int128)random * MEMORY_LINES >> 64)].word;
}

/* Ticks of a load, the place of which follows from what the one before brought: nothing can overlap. */
static double time_of_chained_load(const memory_line *memory, bool are_cycles, uint64_t *state)
{
    double least = 0;
    for (int chain = 0; chain < CHAINS; chain++) {
        uint64_t brought = 0;
        uint64_t from = dmg_ticks_fenced(are_cycles);
        for (int i = 0; i < CHAIN_LOADS; i++) {
            brought = *random_word(memory, next_random(state) + brought);
        }
        double took = (double)(dmg_ticks_fenced(are_cycles) - from) / CHAIN_LOADS;
        least = chain == 0 || took < least ? took : least;
    }
    return least;
}

static int compare_ticks(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Median, of loads that nothing waits for but the clock. */
static double time_of_lone_load(const memory_line *memory, bool are_cycles, uint64_t *state)
{
    static uint64_t samples[LOADS];
    const dmg_ticks_costs clock = dmg_ticks_measure_costs(are_cycles);
    for (int i = 0; i < LOADS; i++) {
        const volatile uint64_t *word = random_word(memory, next_random(state));
        uint64_t from = dmg_ticks_fenced(are_cycles);
        (void)*word;
        samples[i] = dmg_ticks_within(from, dmg_ticks_fenced(are_cycles), &clock);
    }
    qsort(samples, LOADS, sizeof *samples, compare_ticks);
    return (double)samples[LOADS / 2];
}

static void a_load_between_fenced_readings_takes_as_long_as_one_of_a_chain(void)
{
    bool are_cycles = dmg_ticks_are_cycles();
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);
    memory_line *memory = aligned_alloc(sizeof *memory, MEMORY_LINES * sizeof *memory);
    CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
    memset(memory, 1, MEMORY_LINES * sizeof *memory);
    double chained = time_of_chained_load(memory, are_cycles, &state);
    double lone = time_of_lone_load(memory, are_cycles, &state);
    /* A third: a median lies below a mean. Without fences it is a tenth. */
    CU_ASSERT_TRUE(lone >= chained / 3);
    free(memory);
}

static void what_the_clock_takes_itself_is_no_part_of_an_interval(void)
{
    const dmg_ticks_costs costs = {.interval = 98.5};
    CU_ASSERT_EQUAL(dmg_ticks_within(1000, 1300, &costs), 202);
    CU_ASSERT_EQUAL(dmg_ticks_within(1000, 1099, &costs), 1);
    CU_ASSERT_EQUAL(dmg_ticks_within(1000, 1078, &costs), 0);
    bool are_cycles = dmg_ticks_are_cycles();
    const dmg_ticks_costs measured = dmg_ticks_measure_costs(are_cycles);
    CU_ASSERT_TRUE(measured.interval > 0 && measured.fence >= 0 && measured.step > 0);
}

static void keep_line(dmg_log_level level, const char *line, void *context)
{
    snprintf(context, 100, "%d %s", level, line);
}

static void a_log_line_is_an_event_with_pairs_and_small_ones_are_dropped(void)
{
    char kept[100] = "";
    dmg_log_set_sink(keep_line, kept, DMG_LOG_INFO);
    dmg_log(DMG_LOG_DEBUG, "unseen", "a=%d", 1);
    CU_ASSERT_STRING_EQUAL(kept, "");
    dmg_log(DMG_LOG_WARNING, "peer_lost", "node=%d why=%s", 3, "closed");
    CU_ASSERT_STRING_EQUAL(kept, "2 peer_lost node=3 why=closed");
    dmg_log_set_sink(NULL, NULL, DMG_LOG_INFO);
    dmg_log(DMG_LOG_WARNING, "dropped", "a=%d", 1);
}

static const dmg_test tests[] = {
    DMG_TEST(an_error_keeps_its_sentence_and_takes_prefixes),
    DMG_TEST(the_systems_reason_stays_with_its_error),
    DMG_TEST(a_kept_error_comes_back_and_the_first_one_stays),
    DMG_TEST(every_status_has_a_name_and_no_other_number_has),
    DMG_TEST(an_error_belongs_to_its_thread),
    DMG_TEST(arithmetic_on_sizes_refuses_to_wrap),
    DMG_TEST(a_budget_is_a_hard_limit_and_remembers_its_peaks),
    DMG_TEST(memory_of_a_budget_is_zeroed_and_large_pieces_lie_on_large_pages),
    DMG_TEST(sleeping_takes_at_least_as_long_as_asked),
    DMG_TEST(a_load_between_fenced_readings_takes_as_long_as_one_of_a_chain),
    DMG_TEST(what_the_clock_takes_itself_is_no_part_of_an_interval),
    DMG_TEST(a_log_line_is_an_event_with_pairs_and_small_ones_are_dropped),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return dmg_suite_add("base", NULL, NULL, tests) != 0 || dmg_suites_run(argc, argv) != 0;
}
