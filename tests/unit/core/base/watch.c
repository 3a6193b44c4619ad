/* Silence as a watch sees it, over sequences of the clock that are given here. */
#include "unit/support/suite.h"

#include "core/base/watch.h"

#include <stdint.h>

#define MILLISECOND_NS UINT64_C(1000000)
#define START_NS       (UINT64_C(77) * MILLISECOND_NS)
#define TIMEOUT_NS     (300 * MILLISECOND_NS)

static dmg_watch watch_made(void)
{
    dmg_watch watch;
    dmg_watch_start(&watch, TIMEOUT_NS, START_NS);
    return watch;
}

/* Look at every interval, for so long. */
static void watch_for(dmg_watch *watch, uint64_t duration_ns)
{
    uint64_t end_ns = watch->clock_ns + duration_ns;
    while (watch->clock_ns < end_ns) {
        uint64_t next_ns = watch->clock_ns + dmg_watch_interval_ns(watch);
        dmg_watch_look(watch, next_ns < end_ns ? next_ns : end_ns);
    }
}

static void silence_is_the_time_since_the_last_sign_of_life(void)
{
    dmg_watch watch = watch_made();
    CU_ASSERT_EQUAL(dmg_watch_silence_ns(&watch, watch.now_ns), 0);
    watch_for(&watch, 40 * MILLISECOND_NS);
    uint64_t heard_ns = watch.now_ns;
    watch_for(&watch, 299 * MILLISECOND_NS);
    CU_ASSERT_EQUAL(dmg_watch_silence_ns(&watch, heard_ns), 299 * MILLISECOND_NS);
    watch_for(&watch, MILLISECOND_NS);
    CU_ASSERT_FALSE(dmg_watch_is_over(&watch, heard_ns));
    watch_for(&watch, MILLISECOND_NS);
    CU_ASSERT_TRUE(dmg_watch_is_over(&watch, heard_ns));
    CU_ASSERT_EQUAL(dmg_watch_silence_ns(&watch, heard_ns), 301 * MILLISECOND_NS);
    CU_ASSERT_EQUAL(watch.now_ns, watch.clock_ns); /* nothing was left out */
}

static void whoever_was_away_gives_everybody_a_full_timeout(void)
{
    dmg_watch watch = watch_made();
    uint64_t heard_ns = watch.now_ns;
    watch_for(&watch, 290 * MILLISECOND_NS);
    dmg_watch_look(&watch, watch.clock_ns + 8000 * MILLISECOND_NS);
    CU_ASSERT_EQUAL(dmg_watch_silence_ns(&watch, heard_ns), 0);
    watch_for(&watch, 300 * MILLISECOND_NS);
    CU_ASSERT_FALSE(dmg_watch_is_over(&watch, heard_ns));
    watch_for(&watch, MILLISECOND_NS);
    CU_ASSERT_TRUE(dmg_watch_is_over(&watch, heard_ns));
    CU_ASSERT_EQUAL(dmg_watch_silence_ns(&watch, heard_ns), 301 * MILLISECOND_NS);
}

static void absences_one_after_another_are_left_out_each(void)
{
    dmg_watch watch = watch_made();
    uint64_t heard_ns = watch.now_ns;
    for (int round = 0; round < 50; round++) {
        dmg_watch_look(&watch, watch.clock_ns + 1000 * MILLISECOND_NS);
        watch_for(&watch, 200 * MILLISECOND_NS);
        CU_ASSERT_EQUAL(dmg_watch_silence_ns(&watch, heard_ns), 200 * MILLISECOND_NS);
    }
}

/* A gap that is too short for an absence is not believed, but somebody who says nothing is found in the end. */
static void a_starved_watch_believes_a_tenth_of_the_timeout_at_a_time(void)
{
    dmg_watch watch = watch_made();
    uint64_t heard_ns = watch.now_ns;
    for (uint64_t look = 1; look <= 11; look++) {
        CU_ASSERT_FALSE(dmg_watch_is_over(&watch, heard_ns));
        dmg_watch_look(&watch, watch.clock_ns + 149 * MILLISECOND_NS);
        CU_ASSERT_EQUAL(dmg_watch_silence_ns(&watch, heard_ns), look * 30 * MILLISECOND_NS);
    }
    CU_ASSERT_TRUE(dmg_watch_is_over(&watch, heard_ns));
}

static void looks_at_the_interval_lose_no_time_even_when_one_is_late(void)
{
    dmg_watch watch = watch_made();
    uint64_t interval_ns = dmg_watch_interval_ns(&watch);
    CU_ASSERT_EQUAL(interval_ns, TIMEOUT_NS / 20);
    for (int look = 0; look < 10; look++) {
        dmg_watch_look(&watch, watch.clock_ns + interval_ns * (look % 2 == 0 ? 1 : 2));
    }
    CU_ASSERT_EQUAL(watch.now_ns, watch.clock_ns);
    dmg_watch_start(&watch, MILLISECOND_NS, START_NS);
    CU_ASSERT_EQUAL(dmg_watch_interval_ns(&watch), MILLISECOND_NS);
}

static void a_clock_that_stands_still_or_goes_back_changes_nothing(void)
{
    dmg_watch watch = watch_made();
    watch_for(&watch, 20 * MILLISECOND_NS);
    dmg_watch before = watch;
    dmg_watch_look(&watch, before.clock_ns);
    dmg_watch_look(&watch, 0);
    CU_ASSERT_EQUAL(watch.clock_ns, before.clock_ns);
    CU_ASSERT_EQUAL(watch.now_ns, before.now_ns);
    /* A stamp of later than the last look, as a thread may have that looked first: no silence. */
    CU_ASSERT_EQUAL(dmg_watch_silence_ns(&watch, watch.now_ns + 5), 0);
}

static void a_wait_starts_anew_after_an_absence(void)
{
    dmg_watch watch = watch_made();
    uint64_t clock_ns = START_NS;
    for (int look = 0; look < 19; look++) {
        CU_ASSERT_FALSE(dmg_watch_wait_is_over(&watch, clock_ns += 15 * MILLISECOND_NS));
    }
    CU_ASSERT_FALSE(dmg_watch_wait_is_over(&watch, clock_ns += 500 * MILLISECOND_NS));
    for (int look = 0; look < 20; look++) {
        CU_ASSERT_FALSE(dmg_watch_wait_is_over(&watch, clock_ns += 15 * MILLISECOND_NS));
    }
    CU_ASSERT_TRUE(dmg_watch_wait_is_over(&watch, clock_ns + MILLISECOND_NS));
}

static const dmg_test tests[] = {
    DMG_TEST(silence_is_the_time_since_the_last_sign_of_life),
    DMG_TEST(whoever_was_away_gives_everybody_a_full_timeout),
    DMG_TEST(absences_one_after_another_are_left_out_each),
    DMG_TEST(a_starved_watch_believes_a_tenth_of_the_timeout_at_a_time),
    DMG_TEST(looks_at_the_interval_lose_no_time_even_when_one_is_late),
    DMG_TEST(a_clock_that_stands_still_or_goes_back_changes_nothing),
    DMG_TEST(a_wait_starts_anew_after_an_absence),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return dmg_suite_add("watch", NULL, NULL, tests) != 0 || dmg_suites_run(argc, argv) != 0;
}
