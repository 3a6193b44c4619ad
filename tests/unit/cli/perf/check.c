/* The check of perf: when three figures of one operation agree, and what is said when they do not. */
#include "unit/support/suite.h"

#include "cli/perf/check.h"
#include "cli/perf/histogram.h"

#include <stdlib.h>
#include <string.h>

/* Undisturbed, and all alike. */
static dmg_perf_figures figures_of(double median_ns, double rate_ns, double host_ns)
{
    return (dmg_perf_figures){.median_ns = median_ns,
                              .rate_ns = rate_ns,
                              .host_ns = host_ns,
                              .clean_rate_ns = rate_ns,
                              .clean_mean_ns = median_ns,
                              .clean_windows = 30,
                              .windows = 32};
}

static dmg_perf_verdict verdict_of(dmg_perf_figures figures)
{
    return dmg_perf_judge(&figures);
}

static void figures_agree_within_a_fifth_of_the_larger_one(void)
{
    CU_ASSERT_EQUAL(verdict_of(figures_of(190, 190, 190)), DMG_PERF_AGREES);
    CU_ASSERT_EQUAL(verdict_of(figures_of(160, 200, 180)), DMG_PERF_AGREES);
    CU_ASSERT_EQUAL(verdict_of(figures_of(200, 160, 180)), DMG_PERF_AGREES);
    CU_ASSERT_EQUAL(verdict_of(figures_of(159, 200, 180)), DMG_PERF_DIFFERS);
    CU_ASSERT_EQUAL(verdict_of(figures_of(180, 180, 225)), DMG_PERF_AGREES);
    CU_ASSERT_NOT_EQUAL(verdict_of(figures_of(180, 180, 226)), DMG_PERF_AGREES);
}

static void a_step_of_the_clock_is_no_difference(void)
{
    dmg_perf_figures figures = figures_of(20, 30, 20);
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_DIFFERS);
    figures.step_ns = 10;
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_AGREES);
}

static void a_clock_that_is_read_before_the_load_has_arrived_is_noticed(void)
{
    /* As a time-stamp counter without fences has it, alone and with the self-test's figure read the same way. */
    CU_ASSERT_EQUAL(verdict_of(figures_of(20, 190, 185)), DMG_PERF_DIFFERS);
    CU_ASSERT_EQUAL(verdict_of(figures_of(20, 190, 20)), DMG_PERF_DIFFERS);
    dmg_perf_figures slow = figures_of(20, 190, 20);
    slow.clean_mean_ns = 60; /* some of it shows in a few of the intervals */
    CU_ASSERT_EQUAL(verdict_of(slow), DMG_PERF_DIFFERS);
}

static void slow_operations_that_make_the_mean_are_no_fault_of_the_clock(void)
{
    dmg_perf_figures figures = figures_of(183, 400, 173);
    figures.clean_mean_ns = 390;
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_UNEVEN);
    figures.clean_mean_ns = 450; /* more of them while each was timed */
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_UNEVEN);
    figures.clean_mean_ns = 310;
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_DIFFERS);
    figures.clean_mean_ns = 390;
    figures.host_ns = 390;
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_DIFFERS);
}

static void a_processor_that_was_taken_away_is_told_from_a_wrong_clock(void)
{
    dmg_perf_figures figures = figures_of(190, 450, 180);
    figures.clean_rate_ns = 195;
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_DISTURBED);
    figures.clean_windows = 2;
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_UNDECIDED);
    figures.rate_ns = 200; /* nothing is to be explained */
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_AGREES);
}

static void a_memory_that_others_use_is_told_from_a_wrong_clock(void)
{
    dmg_perf_figures figures = figures_of(452, 444, 352);
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_DISTURBED);
    char text[512];
    dmg_perf_check_sentence(&figures, DMG_PERF_DISTURBED, text, sizeof text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "the self-test saw the memory less busy"));
    CU_ASSERT_EQUAL(verdict_of(figures_of(213, 220, 290)), DMG_PERF_DISTURBED);
    figures.clean_mean_ns = 300;
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_DIFFERS);
}

static void what_another_process_answers_is_never_called_wrong(void)
{
    dmg_perf_figures figures = figures_of(824, 6293, 17171);
    figures.is_answered = true;
    figures.clean_mean_ns = 1118;
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_UNDECIDED);
    figures.clean_mean_ns = 6100;
    CU_ASSERT_EQUAL(verdict_of(figures), DMG_PERF_UNEVEN);
}

static void every_disagreement_is_a_sentence_with_the_three_numbers(void)
{
    dmg_perf_figures figures = figures_of(20, 190, 185);
    figures.clean_rate_ns = 191; /* in every sentence that has one */
    figures.clean_mean_ns = 25;
    const char *const words[DMG_PERF_VERDICTS] = {[DMG_PERF_DISTURBED] = "1/rate is 191 ns in the 30 of 32 windows",
                                                  [DMG_PERF_UNEVEN] = "the mean is 25 ns",
                                                  [DMG_PERF_UNDECIDED] = "another process answers",
                                                  [DMG_PERF_DIFFERS] = "do not rely on these latencies"};
    for (int verdict = DMG_PERF_AGREES + 1; verdict < DMG_PERF_VERDICTS; verdict++) {
        char text[512];
        dmg_perf_check_sentence(&figures, (dmg_perf_verdict)verdict, text, sizeof text);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, "p50 20 ns, 1/rate 190 ns, self-test 185 ns, more than 20 % apart: "));
        CU_ASSERT_PTR_NOT_NULL(strstr(text, words[verdict]));
    }
    char text[512];
    figures.clean_windows = 1;
    dmg_perf_check_sentence(&figures, DMG_PERF_UNDECIDED, text, sizeof text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "kept its processor in 1 of 32 windows"));
    CU_ASSERT_STRING_EQUAL(dmg_perf_verdict_name(DMG_PERF_DIFFERS), "differs");
}

static void a_histogram_is_exact_to_four_thousandths(void)
{
    dmg_perf_histogram *histogram = calloc(2, sizeof *histogram);
    CU_ASSERT_PTR_NOT_NULL_FATAL(histogram);
    CU_ASSERT_EQUAL(dmg_perf_histogram_quantile(histogram, 0.5), 0);
    CU_ASSERT_EQUAL(dmg_perf_histogram_mean(histogram), 0);
    for (uint64_t ticks = 1; ticks <= 100000; ticks++) {
        dmg_perf_histogram_add(&histogram[ticks % 2], ticks);
    }
    dmg_perf_histogram_merge(&histogram[0], &histogram[1]);
    CU_ASSERT_EQUAL(histogram->least, 1);
    CU_ASSERT_EQUAL(histogram->count, 100000);
    CU_ASSERT_DOUBLE_EQUAL(dmg_perf_histogram_mean(histogram), 50000.5, 1e-6);
    for (double part = 0.001; part < 1; part += 0.001) {
        double right = part * 100000 + 1;
        CU_ASSERT_DOUBLE_EQUAL(dmg_perf_histogram_quantile(histogram, part), right, 1 + 0.004 * right);
    }
    free(histogram);
}

static const dmg_test tests[] = {
    DMG_TEST(figures_agree_within_a_fifth_of_the_larger_one),
    DMG_TEST(a_step_of_the_clock_is_no_difference),
    DMG_TEST(a_clock_that_is_read_before_the_load_has_arrived_is_noticed),
    DMG_TEST(slow_operations_that_make_the_mean_are_no_fault_of_the_clock),
    DMG_TEST(a_processor_that_was_taken_away_is_told_from_a_wrong_clock),
    DMG_TEST(a_memory_that_others_use_is_told_from_a_wrong_clock),
    DMG_TEST(what_another_process_answers_is_never_called_wrong),
    DMG_TEST(every_disagreement_is_a_sentence_with_the_three_numbers),
    DMG_TEST(a_histogram_is_exact_to_four_thousandths),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return dmg_suite_add("perf_check", NULL, NULL, tests) != 0 || dmg_suites_run(argc, argv) != 0;
}
