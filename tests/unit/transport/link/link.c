/* The link model's arithmetic: clocks, costs, departures; and what measurements prove. No time passes here. */
#include "transport/link.h"
#include "transport/link/timing.h"
#include "transport/link_verdict.h"
#include "transport/transport.h"
#include "unit/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICKS_A_SECOND 1e9 /* a tick is a nanosecond */
#define UNIT           (UINT64_C(1) << DMG_LINK_UNIT_BITS)
#define PROCESSES      4
#define RESERVATIONS   5000

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* ---- clocks ---- */

static void reservations_follow_each_other_without_gaps(void)
{
    dmg_link_clock clock = {.free_at = 0};
    uint64_t expected = 100;
    for (uint64_t cost = 1; cost < 50; cost++) {
        CU_ASSERT_EQUAL(dmg_link_reserve(&clock, 100, cost), expected);
        expected += cost;
    }
    CU_ASSERT_EQUAL(clock.free_at, expected);
}

static void clock_that_lies_behind_starts_now(void)
{
    dmg_link_clock clock = {.free_at = 70};
    CU_ASSERT_EQUAL(dmg_link_reserve(&clock, 1000, 5), 1000);
    CU_ASSERT_EQUAL(dmg_link_reserve(&clock, 10, 5), 1005); /* one that comes late queues up all the same */
    uint64_t own = 70;
    CU_ASSERT_EQUAL(dmg_link_reserve_own(&own, 1000, 5), 1000);
    CU_ASSERT_EQUAL(dmg_link_reserve_own(&own, 10, 5), 1005);
}

static int compare_starts(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static void processes_share_a_clock_without_overlap(void)
{
    struct shared {
        dmg_link_clock clock;
        uint64_t starts[PROCESSES * RESERVATIONS];
    } *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(shared != MAP_FAILED);
    const uint64_t cost = 7;
    pid_t children[PROCESSES];
    for (int child = 0; child < PROCESSES; child++) {
        children[child] = fork();
        if (children[child] == 0) {
            for (int i = 0; i < RESERVATIONS; i++) {
                shared->starts[child * RESERVATIONS + i] = dmg_link_reserve(&shared->clock, 0, cost);
            }
            _exit(0);
        }
        CU_ASSERT_FATAL(children[child] > 0);
    }
    for (int child = 0; child < PROCESSES; child++) {
        int status = -1;
        CU_ASSERT_EQUAL(waitpid(children[child], &status, 0), children[child]);
        CU_ASSERT_EQUAL(status, 0);
    }
    qsort(shared->starts, PROCESSES * RESERVATIONS, sizeof shared->starts[0], compare_starts);
    int wrong = 0;
    for (uint64_t i = 0; i < PROCESSES * RESERVATIONS; i++) {
        wrong += shared->starts[i] != i * cost;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(shared->clock.free_at, PROCESSES * RESERVATIONS * cost);
    munmap(shared, sizeof *shared);
}

/* ---- costs ---- */

static void costs_of_bytes_are_exact_in_fixed_point(void)
{
    uint64_t seed = dmg_test_seed() | 1;
    for (int i = 0; i < 2000; i++) {
        double bandwidth = 1e6 * (double)(1 + next_random(&seed) % 400000); /* up to 400 GB/s */
        uint64_t bytes = next_random(&seed) % (UINT64_C(1) << 30);
        uint64_t cost = dmg_link_bytes_cost(bytes, dmg_link_byte_cost(bandwidth, TICKS_A_SECOND));
        long double exact = (long double)bytes * 1e9L * UNIT / (long double)bandwidth;
        CU_ASSERT_TRUE(fabsl((long double)cost - exact) <= 1 + exact * 1e-9L);
    }
}

static void no_limit_costs_nothing(void)
{
    CU_ASSERT_EQUAL(dmg_link_byte_cost(0, TICKS_A_SECOND), 0);
    CU_ASSERT_EQUAL(dmg_link_operation_cost(0, TICKS_A_SECOND), 0);
    CU_ASSERT_EQUAL(dmg_link_operation_cost(30e6, TICKS_A_SECOND), 8533); /* 1/30 us in 1/256 ns, rounded */
    CU_ASSERT_EQUAL(dmg_link_bytes_cost(UINT64_MAX, 0), 0);
}

static void spans_are_counted_by_lines(void)
{
    const dmg_link_costs lines = {.line_bytes = 64};
    const dmg_link_costs bytes = {.line_bytes = 1};
    CU_ASSERT_EQUAL(dmg_link_counted_bytes(&lines, 0, 1), 64);
    CU_ASSERT_EQUAL(dmg_link_counted_bytes(&lines, 63, 2), 128);
    CU_ASSERT_EQUAL(dmg_link_counted_bytes(&lines, 64, 64), 64);
    CU_ASSERT_EQUAL(dmg_link_counted_bytes(&bytes, 63, 2), 2);
}

/* ---- departures ---- */

static dmg_link_costs costs_of(dmg_link_settings settings)
{
    dmg_link_costs costs;
    settings.line_bytes = settings.line_bytes ? settings.line_bytes : 1;
    dmg_link_costs_from(&settings, TICKS_A_SECOND, &costs);
    return costs;
}

static void lone_operation_departs_at_once(void)
{
    dmg_link_clock clocks[DMG_LINK_RESOURCES] = {0};
    dmg_link_way way = {.clocks = clocks};
    dmg_link_costs costs =
        costs_of((dmg_link_settings){.cells = {[DMG_LINK_READ_RATE] = 1, [DMG_LINK_CHANNEL_RATE] = 0.5}});
    CU_ASSERT_EQUAL(dmg_link_depart(&way, &costs, DMG_OPERATION_READ, 8, 5000), 5000);
    CU_ASSERT_EQUAL(dmg_link_depart(&way, &costs, DMG_OPERATION_READ, 8, 5000), 7000); /* the connection: 2 us each */
    CU_ASSERT_EQUAL(dmg_link_depart(&way, &costs, DMG_OPERATION_READ, 8, 90000), 90000);
}

static void large_operation_pays_for_its_bytes(void)
{
    dmg_link_clock clocks[DMG_LINK_RESOURCES] = {0};
    dmg_link_way way = {.clocks = clocks};
    dmg_link_costs costs =
        costs_of((dmg_link_settings){.cells = {[DMG_LINK_READ_BANDWIDTH] = 2, [DMG_LINK_WRITE_BANDWIDTH] = 1}});
    CU_ASSERT_EQUAL(dmg_link_depart(&way, &costs, DMG_OPERATION_READ, 4096, 1000), 1000 + 2048);
    CU_ASSERT_EQUAL(dmg_link_depart(&way, &costs, DMG_OPERATION_READ, 4096, 1000), 1000 + 2 * 2048);
    /* The other direction is free. */
    CU_ASSERT_EQUAL(dmg_link_depart(&way, &costs, DMG_OPERATION_WRITE, 4096, 1000), 1000 + 4096);
}

static void channels_share_the_link_but_not_their_own_limits(void)
{
    dmg_link_clock clocks[DMG_LINK_RESOURCES] = {0};
    dmg_link_way first = {.clocks = clocks};
    dmg_link_way second = {.clocks = clocks};
    dmg_link_costs costs =
        costs_of((dmg_link_settings){.cells = {[DMG_LINK_READ_BANDWIDTH] = 4, [DMG_LINK_CHANNEL_READ_BANDWIDTH] = 1}});
    CU_ASSERT_EQUAL(dmg_link_depart(&first, &costs, DMG_OPERATION_READ, 4000, 0), 4000);
    CU_ASSERT_EQUAL(dmg_link_depart(&second, &costs, DMG_OPERATION_READ, 4000, 0), 4000);
    CU_ASSERT_EQUAL(dmg_link_depart(&first, &costs, DMG_OPERATION_READ, 4000, 0), 8000);
    CU_ASSERT_EQUAL(clocks[DMG_LINK_READ_BYTES].free_at, 3000 * UNIT); /* 3 x 1000 ns of the link */
}

static void atomics_have_limits_apart(void)
{
    dmg_link_clock clocks[DMG_LINK_RESOURCES] = {0};
    dmg_link_way way = {.clocks = clocks};
    dmg_link_costs costs = costs_of((dmg_link_settings){.cells = {[DMG_LINK_ATOMIC_RATE] = 2}});
    for (uint64_t i = 0; i < 10; i++) {
        CU_ASSERT_EQUAL(dmg_link_depart(&way, &costs, DMG_OPERATION_FAA, 8, 0), 500 * i);
        CU_ASSERT_EQUAL(dmg_link_depart(&way, &costs, DMG_OPERATION_READ, 8, 0), 0);
    }
}

static void batch_departs_like_its_operations_one_by_one(void)
{
    uint64_t seed = dmg_test_seed() | 1;
    dmg_link_costs costs = costs_of((dmg_link_settings){.cells = {[DMG_LINK_READ_BANDWIDTH] = 7,
                                                                  [DMG_LINK_WRITE_BANDWIDTH] = 3,
                                                                  [DMG_LINK_CHANNEL_READ_BANDWIDTH] = 5,
                                                                  [DMG_LINK_READ_RATE] = 11,
                                                                  [DMG_LINK_WRITE_RATE] = 13,
                                                                  [DMG_LINK_CHANNEL_RATE] = 9,
                                                                  [DMG_LINK_ATOMIC_RATE] = 4}});
    for (int round = 0; round < 200; round++) {
        dmg_link_clock clocks[2][DMG_LINK_RESOURCES] = {0};
        dmg_link_way batch = {.clocks = clocks[0]};
        dmg_link_way single = {.clocks = clocks[1]};
        dmg_operation_kind kinds[64];
        uint64_t bytes[64];
        dmg_link_demand all = {0};
        for (int i = 0; i < 64; i++) {
            kinds[i] = (dmg_operation_kind)(next_random(&seed) % DMG_OPERATION_KINDS);
            bytes[i] = 8 + next_random(&seed) % 5000;
            dmg_link_demand_add(&all, &costs, kinds[i], bytes[i]);
        }
        dmg_link_starts starts = dmg_link_reserve_batch(&batch, &costs, &all, 1000);
        dmg_link_demand before = {0};
        uint64_t largest = 0;
        for (int i = 0; i < 64; i++) {
            dmg_link_demand with = before;
            dmg_link_demand_add(&with, &costs, kinds[i], bytes[i]);
            uint64_t together = dmg_link_departure(&batch, &costs, &starts, &before, &with);
            uint64_t alone = dmg_link_depart(&single, &costs, kinds[i], bytes[i], 1000);
            uint64_t difference = together > alone ? together - alone : alone - together;
            largest = difference > largest ? difference : largest;
            before = with;
        }
        CU_ASSERT_TRUE(largest <= 1); /* one by one, each rounds its bytes down: 64/256 of a tick at most */
    }
}

/* ---- settings ---- */

static void link_without_atomics_takes_a_lock(void)
{
    dmg_link_settings settings = {.cells = {[DMG_LINK_READ_LATENCY] = 600, [DMG_LINK_WRITE_LATENCY] = 500}};
    CU_ASSERT_EQUAL(dmg_link_atomic_latency_ns(&settings), 1100);
    CU_ASSERT_EQUAL(dmg_atomics_over(&settings, DMG_ATOMICS_CALLER_CPU), DMG_ATOMICS_CALLER_LOCK);
    CU_ASSERT_EQUAL(dmg_atomics_over(&settings, DMG_ATOMICS_MEMORY_NODE), DMG_ATOMICS_MEMORY_NODE);
    CU_ASSERT_EQUAL(dmg_atomics_over(NULL, DMG_ATOMICS_CALLER_CPU), DMG_ATOMICS_CALLER_CPU);
    CU_ASSERT_EQUAL(costs_of(settings).latency[DMG_OPERATION_CAS], 1100);
    settings.cells[DMG_LINK_ATOMIC_LATENCY] = 700;
    CU_ASSERT_EQUAL(dmg_link_atomic_latency_ns(&settings), 700);
    CU_ASSERT_EQUAL(dmg_atomics_over(&settings, DMG_ATOMICS_CALLER_CPU), DMG_ATOMICS_CALLER_CPU);
    const dmg_link_settings limits_only = {.cells = {[DMG_LINK_READ_RATE] = 5}};
    CU_ASSERT_EQUAL(dmg_atomics_over(&limits_only, DMG_ATOMICS_CALLER_CPU), DMG_ATOMICS_CALLER_CPU);
}

static void settings_that_make_no_sense_are_refused(void)
{
    const double wrong[] = {-1, NAN, INFINITY, 1e12};
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            dmg_link_settings settings = {.name = "x", .line_bytes = 1};
            CU_ASSERT_EQUAL(dmg_link_settings_check(&settings), DMG_OK);
            settings.cells[cell] = wrong[i];
            CU_ASSERT_EQUAL(dmg_link_settings_check(&settings), DMG_ERR_ARGUMENT);
            CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), dmg_link_cell_name((dmg_link_cell)cell)));
        }
    }
    const uint32_t lines[] = {0, 3, 96, 8192};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        dmg_link_settings settings = {.name = "x", .line_bytes = lines[i]};
        CU_ASSERT_EQUAL(dmg_link_settings_check(&settings), DMG_ERR_ARGUMENT);
    }
}

static void busiest_resource_bounds_the_time(void)
{
    const dmg_link_settings settings = {.cells = {[DMG_LINK_READ_BANDWIDTH] = 2,
                                                  [DMG_LINK_WRITE_BANDWIDTH] = 1,
                                                  [DMG_LINK_READ_RATE] = 10,
                                                  [DMG_LINK_WRITE_RATE] = 5,
                                                  [DMG_LINK_ATOMIC_RATE] = 1}};
    const dmg_link_amounts bytes = {.read_bytes = 4000000000, .write_bytes = 1000000000};
    const dmg_link_amounts operations = {.reads = 10000000, .writes = 5000000};
    const dmg_link_amounts atomics = {.atomics = 3000000};
    CU_ASSERT_DOUBLE_EQUAL(dmg_link_limits_of(&settings, &bytes).bytes_ns, 2e9, 1);
    CU_ASSERT_EQUAL(dmg_link_limits_of(&settings, &bytes).operations_ns, 0);
    CU_ASSERT_DOUBLE_EQUAL(dmg_link_limits_of(&settings, &operations).operations_ns, 2e9, 1);
    CU_ASSERT_DOUBLE_EQUAL(dmg_link_limits_of(&settings, &atomics).operations_ns, 3e9, 1);
    CU_ASSERT_EQUAL(dmg_link_limits_of(&settings, &atomics).bytes_ns, 0);
}

/* ---- verdicts ---- */

static dmg_link_finding judge(bool is_latency, double expected, double host, double measured, uint32_t clean,
                              uint32_t preempted)
{
    dmg_link_window windows[DMG_LINK_WINDOWS_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < preempted; i++) {
        windows[count++] = (dmg_link_window){.value = 1e9};
    }
    for (uint32_t i = 0; i < clean; i++) {
        windows[count++] = (dmg_link_window){.value = measured, .is_clean = true};
    }
    const dmg_link_trial trial = {
        .is_latency = is_latency, .expected = expected, .host = host, .windows = windows, .window_count = count};
    return dmg_link_judge(&trial);
}

static void latencies_pass_within_their_gate(void)
{
    CU_ASSERT_EQUAL(judge(true, 2000, 100, 2059, 5, 3).verdict, DMG_LINK_PASS);
    CU_ASSERT_EQUAL(judge(true, 2000, 100, 2061, 5, 3).verdict, DMG_LINK_FAIL);
    CU_ASSERT_EQUAL(judge(true, 2000, 100, 1939, 5, 3).verdict, DMG_LINK_FAIL);
    CU_ASSERT_EQUAL(judge(true, 500, 100, 524, 5, 3).verdict, DMG_LINK_PASS);
    CU_ASSERT_EQUAL(judge(true, 500, 100, 526, 5, 3).verdict, DMG_LINK_FAIL);
    CU_ASSERT_DOUBLE_EQUAL(judge(true, 500, 100, 510, 5, 3).error, 0.02, 1e-12);
}

static void rates_pass_within_their_gate(void)
{
    CU_ASSERT_EQUAL(judge(false, 1e6, 3e6, 0.981e6, 3, 0).verdict, DMG_LINK_PASS);
    CU_ASSERT_EQUAL(judge(false, 1e6, 3e6, 0.979e6, 3, 0).verdict, DMG_LINK_FAIL);
    CU_ASSERT_EQUAL(judge(false, 1e6, 3e6, 1.03e6, 3, 0).verdict, DMG_LINK_FAIL);
    dmg_link_window windows[] = {{0.91e6, true}, {0.92e6, true}, {0.93e6, true}, {0.1e6, false}};
    const dmg_link_trial shared = {
        .is_lenient = true, .expected = 1e6, .host = 3e6, .windows = windows, .window_count = 4};
    CU_ASSERT_EQUAL(dmg_link_judge(&shared).verdict, DMG_LINK_PASS);
    CU_ASSERT_EQUAL(dmg_link_judge(&shared).measured, 0.92e6);
}

static void too_few_clean_windows_prove_nothing(void)
{
    CU_ASSERT_EQUAL(judge(true, 2000, 100, 2000, DMG_LINK_CLEAN_WINDOWS - 1, 40).verdict, DMG_LINK_INCONCLUSIVE);
    CU_ASSERT_EQUAL(judge(true, 2000, 100, 9000, DMG_LINK_CLEAN_WINDOWS - 1, 40).verdict, DMG_LINK_INCONCLUSIVE);
    CU_ASSERT_EQUAL(judge(true, 2000, 100, 0, 0, 0).verdict, DMG_LINK_INCONCLUSIVE);
    CU_ASSERT_EQUAL(judge(true, 2000, 100, 2000, DMG_LINK_CLEAN_WINDOWS, 40).verdict, DMG_LINK_PASS);
}

static void disturbed_windows_prove_nothing(void)
{
    dmg_link_window slow[] = {{2010, true}, {2200, true}, {2300, true}};
    dmg_link_trial trial = {.is_latency = true, .expected = 2000, .host = 100, .windows = slow, .window_count = 3};
    CU_ASSERT_EQUAL(dmg_link_judge(&trial).verdict, DMG_LINK_INCONCLUSIVE);
    slow[0].value = 1500; /* quicker than its link: no disturbance does that */
    CU_ASSERT_EQUAL(dmg_link_judge(&trial).verdict, DMG_LINK_FAIL);
    dmg_link_window low[] = {{0.7, true}, {0.8, true}, {0.99, true}};
    trial = (dmg_link_trial){.expected = 1, .host = 3, .windows = low, .window_count = 3};
    CU_ASSERT_EQUAL(dmg_link_judge(&trial).verdict, DMG_LINK_INCONCLUSIVE);
    low[0].value = 1.4;
    low[1].value = 1.5;
    CU_ASSERT_EQUAL(dmg_link_judge(&trial).verdict, DMG_LINK_FAIL);
}

static void what_the_machine_cannot_do_is_not_emulable(void)
{
    CU_ASSERT_EQUAL(judge(true, 299, 100, 299, 9, 0).verdict, DMG_LINK_NOT_EMULABLE);
    CU_ASSERT_EQUAL(judge(true, 301, 100, 301, 9, 0).verdict, DMG_LINK_PASS);
    CU_ASSERT_EQUAL(judge(false, 81, 100, 81, 9, 0).verdict, DMG_LINK_NOT_EMULABLE);
    CU_ASSERT_EQUAL(judge(false, 79, 100, 79, 9, 0).verdict, DMG_LINK_PASS);
}

static void doubled_latency_and_missing_limit_fail(void)
{
    CU_ASSERT_EQUAL(judge(true, 750, 100, 1500, 7, 0).verdict, DMG_LINK_FAIL);
    CU_ASSERT_EQUAL(judge(false, 10, 40, 40, 7, 0).verdict, DMG_LINK_FAIL);
}

/* ---- tails ---- */

#define DRAWS 200000

static void tails_show_at_their_percentiles(void)
{
    dmg_link_settings settings = {.name = "test",
                                  .line_bytes = 1,
                                  .cells = {[DMG_LINK_READ_LATENCY] = 500,
                                            [DMG_LINK_WRITE_LATENCY] = 300,
                                            [DMG_LINK_READ_P99] = 900,
                                            [DMG_LINK_READ_P999] = 2000,
                                            [DMG_LINK_WRITE_P99] = 400}};
    CU_ASSERT_EQUAL_FATAL(dmg_link_settings_check(&settings), DMG_OK);
    dmg_link_costs costs;
    dmg_link_costs_from(&settings, TICKS_A_SECOND, &costs);
    uint64_t drawn = DMG_LINK_FIRST_DRAW;
    uint32_t none = 0;
    uint32_t p99 = 0;
    uint32_t p999 = 0;
    for (int i = 0; i < DRAWS; i++) {
        uint64_t extra = dmg_link_draw_tail(&costs, DMG_OPERATION_READ, &drawn);
        none += extra == 0;
        p99 += extra == 400;
        p999 += extra == 1500;
    }
    CU_ASSERT_EQUAL(none + p99 + p999, DRAWS);
    /* The percentiles of the latencies are what the profile says: more than their share lies there, but not twice. */
    CU_ASSERT_TRUE(p999 > DRAWS / 1000 && p999 < 2 * DRAWS / 1000);
    CU_ASSERT_TRUE(p99 + p999 > DRAWS / 100 && p99 + p999 < 2 * DRAWS / 100);
    uint32_t writes = 0;
    for (int i = 0; i < DRAWS; i++) {
        uint64_t extra = dmg_link_draw_tail(&costs, DMG_OPERATION_WRITE, &drawn);
        CU_ASSERT_TRUE_FATAL(extra == 0 || extra == 100);
        writes += extra > 0;
    }
    CU_ASSERT_TRUE(writes > DRAWS / 100 && writes < 2 * DRAWS / 100);
}

static void tails_are_the_same_in_every_run(void)
{
    const dmg_link_settings settings = {
        .name = "test", .line_bytes = 1, .cells = {[DMG_LINK_READ_LATENCY] = 500, [DMG_LINK_READ_P99] = 900}};
    dmg_link_costs costs;
    dmg_link_costs_from(&settings, TICKS_A_SECOND, &costs);
    uint64_t first = DMG_LINK_FIRST_DRAW;
    uint64_t second = DMG_LINK_FIRST_DRAW;
    for (int i = 0; i < 1000; i++) {
        CU_ASSERT_EQUAL(dmg_link_draw_tail(&costs, DMG_OPERATION_READ, &first),
                        dmg_link_draw_tail(&costs, DMG_OPERATION_READ, &second));
        CU_ASSERT_EQUAL(dmg_link_draw_tail(&costs, DMG_OPERATION_WRITE, &first),
                        0); /* it has none, and draws nothing */
    }
}

static void tails_that_do_not_ascend_are_refused(void)
{
    static const double wrong[][3] = {{500, 400, 0}, {500, 0, 400}, {500, 900, 800}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const dmg_link_settings settings = {.name = "test",
                                            .line_bytes = 1,
                                            .cells = {[DMG_LINK_READ_LATENCY] = wrong[i][0],
                                                      [DMG_LINK_READ_P99] = wrong[i][1],
                                                      [DMG_LINK_READ_P999] = wrong[i][2]}};
        CU_ASSERT_EQUAL(dmg_link_settings_check(&settings), DMG_ERR_ARGUMENT);
    }
}

static const dmg_test clock_tests[] = {DMG_TEST(reservations_follow_each_other_without_gaps),
                                       DMG_TEST(clock_that_lies_behind_starts_now),
                                       DMG_TEST(processes_share_a_clock_without_overlap),
                                       {NULL, NULL}};
static const dmg_test cost_tests[] = {DMG_TEST(costs_of_bytes_are_exact_in_fixed_point),
                                      DMG_TEST(no_limit_costs_nothing),
                                      DMG_TEST(spans_are_counted_by_lines),
                                      DMG_TEST(link_without_atomics_takes_a_lock),
                                      DMG_TEST(tails_show_at_their_percentiles),
                                      DMG_TEST(tails_are_the_same_in_every_run),
                                      DMG_TEST(tails_that_do_not_ascend_are_refused),
                                      DMG_TEST(settings_that_make_no_sense_are_refused),
                                      DMG_TEST(busiest_resource_bounds_the_time),
                                      {NULL, NULL}};
static const dmg_test departure_tests[] = {DMG_TEST(lone_operation_departs_at_once),
                                           DMG_TEST(large_operation_pays_for_its_bytes),
                                           DMG_TEST(channels_share_the_link_but_not_their_own_limits),
                                           DMG_TEST(atomics_have_limits_apart),
                                           DMG_TEST(batch_departs_like_its_operations_one_by_one),
                                           {NULL, NULL}};
static const dmg_test verdict_tests[] = {DMG_TEST(latencies_pass_within_their_gate),
                                         DMG_TEST(rates_pass_within_their_gate),
                                         DMG_TEST(too_few_clean_windows_prove_nothing),
                                         DMG_TEST(disturbed_windows_prove_nothing),
                                         DMG_TEST(what_the_machine_cannot_do_is_not_emulable),
                                         DMG_TEST(doubled_latency_and_missing_limit_fail),
                                         {NULL, NULL}};

int main(int argc, char **argv)
{
    if (dmg_suite_add("clocks", NULL, NULL, clock_tests) || dmg_suite_add("costs", NULL, NULL, cost_tests) ||
        dmg_suite_add("departures", NULL, NULL, departure_tests) ||
        dmg_suite_add("verdicts", NULL, NULL, verdict_tests)) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
