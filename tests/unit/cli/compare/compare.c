/* What `dmgraph compare` makes of its numbers: medians and winners, where an answer flips, charts and pages. */
#include "unit/support/suite.h"

#include "cli/base/text.h"
#include "cli/chart/chart.h"
#include "cli/chart/markup.h"
#include "cli/compare/sensitivity.h"
#include "cli/compare/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEAR 1e-9

/* ---- statistics ---- */

static void a_median_is_the_middle_or_the_mean_of_two(void)
{
    const double odd[] = {5, 1, 9};
    const double even[] = {4, 1, 2, 100};
    dmg_spread spread = dmg_spread_of(odd, 3);
    CU_ASSERT_EQUAL(spread.median, 5);
    CU_ASSERT_EQUAL(spread.least, 1);
    CU_ASSERT_EQUAL(spread.most, 9);
    CU_ASSERT_EQUAL(dmg_spread_of(even, 4).median, 3);
    CU_ASSERT_EQUAL(dmg_spread_of(even, 1).median, 4);
    CU_ASSERT_EQUAL(dmg_spread_of(even, 0).count, 0);
}

static void the_winner_has_the_least_median(void)
{
    const dmg_compare_times times = {{{3, 3, 3}, {2, 2, 9}, {2.5, 2.5, 2.5}}, 3, 3};
    dmg_contest contest = dmg_contest_judge(&times);
    CU_ASSERT_EQUAL(contest.winner, 1);
    CU_ASSERT_EQUAL(contest.second, 2);
    /* It lost one round by far. */
    CU_ASSERT_FALSE(contest.is_clear);
    CU_ASSERT_DOUBLE_EQUAL(contest.ratio.median, 1.25, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(contest.ratio.least, 2.5 / 9, NEAR);
}

static void rounds_are_compared_with_themselves(void)
{
    /* The machine was ten times as slow in the second round: the times overlap, the ratios do not. */
    const dmg_compare_times times = {{{1, 10, 1}, {1.2, 12, 1.2}}, 2, 3};
    dmg_contest contest = dmg_contest_judge(&times);
    CU_ASSERT_EQUAL(contest.winner, 0);
    CU_ASSERT_TRUE(contest.is_clear);
    CU_ASSERT_DOUBLE_EQUAL(contest.ratio.least, 1.2, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(contest.ratio.most, 1.2, NEAR);
}

static void a_lead_of_a_per_cent_or_of_one_round_is_none(void)
{
    const dmg_compare_times close = {{{1, 1, 1}, {1.01, 1.01, 1.01}}, 2, 3};
    const dmg_compare_times single = {{{1}, {2}}, 2, 1};
    const dmg_compare_times alone = {{{1, 2}}, 1, 2};
    CU_ASSERT_FALSE(dmg_contest_judge(&close).is_clear);
    CU_ASSERT_FALSE(dmg_contest_judge(&single).is_clear);
    CU_ASSERT_FALSE(dmg_contest_judge(&alone).is_clear);
    CU_ASSERT_EQUAL(dmg_contest_judge(&alone).second, 0);
}

static void the_mean_of_algorithms_is_geometric(void)
{
    const dmg_compare_times all[] = {{{{1, 4}, {2, 2}}, 2, 2}, {{{100, 9}, {50, 8}}, 2, 2}};
    dmg_compare_times mean = dmg_compare_times_mean(all, 2);
    CU_ASSERT_DOUBLE_EQUAL(mean.seconds[0][0], 10, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(mean.seconds[0][1], 6, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(mean.seconds[1][0], 10, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(mean.seconds[1][1], 4, NEAR);
}

/* ---- sensitivity ---- */

/** A run of one superstep, and what was measured of it. */
typedef struct small_work {
    dmg_link_work work;
    dmg_predict_run run;
    dmg_predict_superstep superstep;
    dmg_predict_share share;
} small_work;

/** 10 ms of computing, and a thousand reads, one after the other, of 1,000 bytes: 1 ms of latency and 1 ms of bytes on
 * a link of 1 us and 1 GB/s. The model says 12 ms, and that is what was measured. */
static void reads_one_by_one(small_work *of)
{
    *of = (small_work){
        .run = {.has_link = true, .mns = 1, .cns = 1, .workers = 1, .most_loaded = 1, .superstep_count = 1},
        .superstep = {.lone_workers = 1},
        .share = {.busy_ns = 10e6}};
    of->share.operations[DMG_OPERATION_READ] = of->share.rounds[DMG_OPERATION_READ] = 1000;
    of->share.serial_rounds[DMG_OPERATION_READ] = 1000;
    of->share.bytes[DMG_OPERATION_READ] = 1000 * 1000;
    of->superstep.shares = of->run.shares = &of->share;
    of->run.supersteps = &of->superstep;
    of->run.ran_on = (dmg_link_settings){.name = "test", .line_bytes = 1};
    of->run.ran_on.cells[DMG_LINK_READ_LATENCY] = 1000;
    of->run.ran_on.cells[DMG_LINK_READ_BANDWIDTH] = 1;
    of->work = (dmg_link_work){.run = &of->run, .bare_seconds = 0.010, .linked_seconds = 0.012};
}

/** Seconds over its own link with other latencies and capacities. */
static double seconds_at(const small_work *of, double latency_factor, double capacity_divisor)
{
    dmg_link_settings link = dmg_link_scaled(&of->run.ran_on, latency_factor, capacity_divisor);
    return dmg_link_work_seconds(&of->work, &link);
}

static void over_its_own_link_a_run_takes_what_was_measured(void)
{
    small_work of;
    reads_one_by_one(&of);
    CU_ASSERT_DOUBLE_EQUAL(seconds_at(&of, 1, 1), 0.012, NEAR);
    of.work.linked_seconds = 0.0101; /* the model is off by a fifth */
    CU_ASSERT_DOUBLE_EQUAL(seconds_at(&of, 1, 1), 0.0101, NEAR);
    of.work.linked_seconds = 0.009; /* noise */
    CU_ASSERT_DOUBLE_EQUAL(seconds_at(&of, 1, 1), 0.010, NEAR);
}

static void latency_and_bandwidth_count_apart(void)
{
    small_work of;
    reads_one_by_one(&of);
    CU_ASSERT_DOUBLE_EQUAL(seconds_at(&of, 3, 1), 0.010 + 0.001 + 0.003, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(seconds_at(&of, 1, 2), 0.010 + 0.002 + 0.001, NEAR);
}

static void an_error_of_the_model_that_is_a_share_cancels(void)
{
    small_work of;
    reads_one_by_one(&of);
    of.work.bare_seconds *= 2; /* all that was measured is twice what the model says */
    of.work.linked_seconds *= 2;
    CU_ASSERT_DOUBLE_EQUAL(seconds_at(&of, 3, 1), 2 * 0.014, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(seconds_at(&of, 1, 3), 2 * 0.014, NEAR);
}

static void what_is_posted_together_waits_once(void)
{
    small_work of;
    reads_one_by_one(&of);
    of.share.rounds[DMG_OPERATION_READ] = of.share.serial_rounds[DMG_OPERATION_READ] = 10;
    of.work.linked_seconds = 0.010 + 0.001 + 10e-6;
    CU_ASSERT_DOUBLE_EQUAL(seconds_at(&of, 100, 1), 0.010 + 0.001 + 1e-3, NEAR);
}

static void no_link_is_faster_than_none(void)
{
    small_work of;
    reads_one_by_one(&of);
    of.work.bare_seconds = 0.0115;
    CU_ASSERT_DOUBLE_EQUAL(seconds_at(&of, 1e-6, 1e-6), 0.0115, NEAR);
}

static void work_without_a_link_depends_on_none(void)
{
    small_work of;
    reads_one_by_one(&of);
    dmg_link_settings slow = dmg_link_scaled(&of.run.ran_on, 7, 7);
    of.run.has_link = false;
    memset(&of.run.ran_on, 0, sizeof of.run.ran_on);
    CU_ASSERT_DOUBLE_EQUAL(dmg_link_work_seconds(&of.work, &slow), 0.012, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(seconds_at(&of, 7, 7), 0.012, NEAR);
}

static void tails_grow_with_latencies_and_no_limit_stays_none(void)
{
    dmg_link_settings link = {.name = "test", .line_bytes = 1};
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        link.cells[cell] = cell == DMG_LINK_READ_RATE ? 0 : 60;
    }
    dmg_link_settings scaled = dmg_link_scaled(&link, 2, 3);
    for (int cell = DMG_LINK_READ_LATENCY; cell <= DMG_LINK_MESSAGE_LATENCY; cell++) {
        CU_ASSERT_DOUBLE_EQUAL(scaled.cells[cell], 120, NEAR);
    }
    for (int cell = DMG_LINK_READ_BANDWIDTH; cell <= DMG_LINK_CHANNEL_ATOMIC_RATE; cell++) {
        CU_ASSERT_DOUBLE_EQUAL(scaled.cells[cell], cell == DMG_LINK_READ_RATE ? 0 : 20, NEAR);
    }
    for (int cell = DMG_LINK_READ_P99; cell <= DMG_LINK_WRITE_P999; cell++) {
        CU_ASSERT_DOUBLE_EQUAL(scaled.cells[cell], 120, NEAR);
    }
}

static void a_lead_flips_where_the_times_meet(void)
{
    /* 10 ms and 2 ms of link against 10 ms and 8 ms: with x times 2 and 8 by x they meet at x = 2. */
    small_work winner;
    small_work second;
    reads_one_by_one(&winner);
    reads_one_by_one(&second);
    second.run.ran_on.cells[DMG_LINK_READ_LATENCY] = 4000;
    second.run.ran_on.cells[DMG_LINK_READ_BANDWIDTH] = 0.25;
    second.work.linked_seconds = 0.018;
    dmg_link_pair pair = {&winner.work, &second.work, 1, 1.5};
    const dmg_link_pair turned = {&second.work, &winner.work, 1, 1 / 1.5};
    CU_ASSERT_DOUBLE_EQUAL(dmg_link_flip_factor(&pair, 64), 2, 1e-6);
    CU_ASSERT_EQUAL(dmg_link_flip_factor(&turned, 64), 1);
    second.share.busy_ns = 100e9; /* then links decide nothing */
    second.work.bare_seconds = 100;
    second.work.linked_seconds = 100.008;
    pair.measured_lead = 100.008 / 0.012;
    CU_ASSERT_TRUE(isinf(dmg_link_flip_factor(&pair, 64)));
}

static void a_lead_begins_with_the_ratio_that_is_reported(void)
{
    /* The medians' ratio is 1.5, that of the rounds 1.2: what is drawn and flips begins with the latter. */
    small_work winner;
    small_work second;
    reads_one_by_one(&winner);
    reads_one_by_one(&second);
    second.work.linked_seconds = 0.018;
    const dmg_link_pair pair = {&winner.work, &second.work, 1, 1.2};
    CU_ASSERT_DOUBLE_EQUAL(dmg_link_lead(&pair, 1), 1.2, NEAR);
    double flip = dmg_link_flip_factor(&pair, 64);
    CU_ASSERT_DOUBLE_EQUAL(dmg_link_lead(&pair, flip), 1, 1e-6);
}

/* ---- axes ---- */

static void axes_show_all_values_between_round_numbers(void)
{
    const double values[] = {0.3, 17, 720, NAN, -4, 0};
    dmg_axis axis = {.is_log = true};
    dmg_axis_fit(&axis, values, 6);
    CU_ASSERT_DOUBLE_EQUAL(axis.least, 0.2, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(axis.most, 1000, NEAR);
    dmg_axis linear = {0};
    dmg_axis_fit(&linear, values + 1, 2);
    CU_ASSERT_EQUAL(linear.least, 0);
    CU_ASSERT_TRUE(linear.most > 720 && linear.most < 800);
    dmg_axis bytes = {.unit = DMG_AXIS_BYTES, .is_log = true};
    dmg_axis_fit(&bytes, values + 1, 2);
    CU_ASSERT_EQUAL(bytes.least, 16);
    CU_ASSERT_EQUAL(bytes.most, 1024);
    dmg_axis_fit(&axis, NULL, 0);
    CU_ASSERT_TRUE(axis.least > 0 && axis.most > axis.least);
}

static void values_lie_by_their_logarithm(void)
{
    const dmg_axis axis = {.is_log = true, .least = 1, .most = 100};
    CU_ASSERT_DOUBLE_EQUAL(dmg_axis_place(&axis, 10), 0.5, NEAR);
    CU_ASSERT_EQUAL(dmg_axis_place(&axis, 0.5), 0);
    CU_ASSERT_EQUAL(dmg_axis_place(&axis, 1e9), 1);
    CU_ASSERT_EQUAL(dmg_axis_place(&axis, 0), 0);
}

static void ticks_ascend_and_are_few(void)
{
    for (double span = 1.5; span < 1e12; span *= 3) {
        for (int kind = 0; kind < 4; kind++) {
            const double values[] = {0.37, 0.37 * span};
            dmg_axis axis = {.is_log = kind > 0, .unit = kind == 2 ? DMG_AXIS_BYTES : kind == 3 ? DMG_AXIS_FACTOR : 0};
            dmg_tick ticks[DMG_AXIS_TICKS_MAX];
            dmg_axis_fit(&axis, values, 2);
            uint32_t count = dmg_axis_ticks(&axis, ticks);
            CU_ASSERT_TRUE(count >= 1 && count <= DMG_AXIS_TICKS_MAX);
            for (uint32_t i = 0; i < count; i++) {
                CU_ASSERT_TRUE(i == 0 || ticks[i].value > ticks[i - 1].value);
                CU_ASSERT_TRUE(ticks[i].value <= axis.most * 1.0001 && ticks[i].text[0] != '\0');
            }
        }
    }
}

static void numbers_have_their_units(void)
{
    char text[DMG_AXIS_TEXT_BYTES];
    dmg_axis_text(DMG_AXIS_BYTES, 4096, text);
    CU_ASSERT_STRING_EQUAL(text, "4K");
    dmg_axis_text(DMG_AXIS_SECONDS, 0.0125, text);
    CU_ASSERT_STRING_EQUAL(text, "12.5 ms");
    dmg_axis_text(DMG_AXIS_SHARE, 0.5, text);
    CU_ASSERT_STRING_EQUAL(text, "50 %");
    dmg_axis_text(DMG_AXIS_FACTOR, 0.25, text);
    CU_ASSERT_STRING_EQUAL(text, "÷ 4");
    dmg_axis_text(DMG_AXIS_PLAIN, 12000, text);
    CU_ASSERT_STRING_EQUAL(text, "12k");
}

/* ---- markup and charts ---- */

/** What a writer writes, until the next one does. */
static const char *written(void (*write)(FILE *to, const void *what), const void *what)
{
    static char text[1 << 16];
    FILE *to = fmemopen(text, sizeof text, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    write(to, what);
    CU_ASSERT_EQUAL(fclose(to), 0);
    return text;
}

static void write_text(FILE *to, const void *what)
{
    dmg_markup_text(to, what);
}

static void write_chart(FILE *to, const void *what)
{
    dmg_chart_write(to, what);
}

static void expect_text(const char *text, const char *expected)
{
    CU_ASSERT_STRING_EQUAL(written(write_text, text), expected);
}

static void text_stands_for_itself(void)
{
    expect_text("a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;");
    expect_text("µ × 漢 😀", "µ × 漢 😀");
}

static void what_no_page_may_have_is_replaced(void)
{
    expect_text("a\x01"
                "b",
                "a\xef\xbf\xbd"
                "b");
    expect_text("\xff\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* no UTF-8, and an overlong NUL */
    expect_text("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* half of a surrogate pair */
    expect_text("\xe6\xbc", "\xef\xbf\xbd\xef\xbf\xbd");                 /* a character that breaks off */
    expect_text("\xef\xbf\xbf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* U+FFFF */
}

static uint32_t occurrences(const char *text, const char *part)
{
    uint32_t count = 0;
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

static void write_csv(FILE *to, const void *what)
{
    dmg_csv_text(to, what);
}

static void a_field_of_csv_may_hold_anything(void)
{
    CU_ASSERT_STRING_EQUAL(written(write_csv, "a \"link\", changed"), "\"a \"\"link\"\", changed\"");
    CU_ASSERT_STRING_EQUAL(written(write_csv, ""), "\"\"");
}

static void a_chart_draws_what_can_be_drawn(void)
{
    const double x[] = {1, 10, 100};
    const double y[] = {5, NAN, 0};
    const double z[] = {5, 6, 7};
    const dmg_series series[] = {{"a<b", 0, DMG_SERIES_CURVE, x, y, 3}, {"rings", 1, DMG_SERIES_RINGS, x, z, 3}};
    const dmg_chart_mark mark = {10, 0, "here"};
    dmg_chart chart = {.description = "d\"",
                       .x = {.title = "x", .is_log = true},
                       .y = {.title = "y", .is_log = true},
                       .series = series,
                       .series_count = 2,
                       .marks = &mark,
                       .mark_count = 1};
    dmg_chart_fit(&chart);
    const char *text = written(write_chart, &chart);
    CU_ASSERT_EQUAL(occurrences(text, "class=\"dot\""), 1);
    CU_ASSERT_EQUAL(occurrences(text, "class=\"ring\""), 3);
    CU_ASSERT_EQUAL(occurrences(text, "<polyline"), 1);
    CU_ASSERT_EQUAL(occurrences(text, "a&lt;b"), 2); /* on the curve, and where the pointer rests on its point */
    CU_ASSERT_EQUAL(occurrences(text, ">here<"), 1);
    CU_ASSERT_EQUAL(occurrences(text, "aria-label=\"d&quot;\""), 1);
    CU_ASSERT_EQUAL(occurrences(text, "nan"), 0);
    CU_ASSERT_EQUAL(occurrences(text, "inf"), 0);
}

/** The labels below the x axis lie apart: where each begins and ends, as wide as a browser draws them at most. */
static bool do_labels_lie_apart(const char *text)
{
    double end = -1;
    for (const char *at = strstr(text, "<text class=\"tick\""); at; at = strstr(at + 1, "<text class=\"tick\"")) {
        double x = atof(strstr(at, "x=\"") + 3);
        double half = 0;
        for (const char *letter = strchr(at, '>') + 1; *letter != '<'; letter++) {
            half += ((unsigned char)*letter & 0xc0) != 0x80 ? 6.8 / 2 : 0;
        }
        if (x - half < end) {
            return false;
        }
        end = x + half;
    }
    return true;
}

static void labels_of_ticks_lie_apart(void)
{
    static const dmg_axis_unit units[] = {DMG_AXIS_PLAIN, DMG_AXIS_BYTES, DMG_AXIS_SECONDS, DMG_AXIS_SHARE,
                                          DMG_AXIS_FACTOR};
    for (double span = 1.5; span < 1e12; span *= 2.5) {
        for (size_t kind = 0; kind < 2 * sizeof units / sizeof units[0]; kind++) {
            const double x[] = {0.37e-6, 0.37e-6 * span};
            const double y[] = {1, 2};
            const dmg_series series = {"a name that takes its part of the width", 0, DMG_SERIES_PLAIN, x, y, 2};
            dmg_chart chart = {.description = "d",
                               .x = {.title = "x", .is_log = kind % 2 == 0, .unit = units[kind / 2]},
                               .y = {.title = "y"},
                               .series = &series,
                               .series_count = 1};
            dmg_chart_fit(&chart);
            const char *text = written(write_chart, &chart);
            CU_ASSERT_TRUE(do_labels_lie_apart(text));
            CU_ASSERT_TRUE(occurrences(text, "class=\"tick\"") >= 1);
        }
    }
}

static void times_are_written_one_way(void)
{
    char text[DMG_AXIS_TEXT_BYTES];
    CU_ASSERT_STRING_EQUAL(dmg_text_seconds(15e-6).text, "15 µs");
    dmg_axis_text(DMG_AXIS_SECONDS, 15e-6, text);
    CU_ASSERT_STRING_EQUAL(text, "15 µs");
    /* A column of 9 characters takes 10 bytes. */
    CU_ASSERT_EQUAL(dmg_text_width("15 µs", 9), 10);
    CU_ASSERT_EQUAL(dmg_text_width("15 ms", 9), 9);
}

static void write_two_scales(FILE *to, const void *what)
{
    const dmg_bar bars[] = {
        {.group = "g", .name = "one", .begins_scale = true, .parts = {1, 0, 3}, .least = 3, .most = 4},
        {.name = "half", .colour = 1, .parts = {0, 2, 0}, .note = "link not resolved"},
        {.group = "h", .name = "whole", .begins_scale = true, .parts = {1000, 0, 0}}};
    (void)what;
    dmg_bars_write(to, "bars", DMG_AXIS_PLAIN, bars, 3);
}

static void bars_are_as_long_as_their_parts(void)
{
    const char *text = written(write_two_scales, NULL);
    double widths[4] = {0};
    const char *at = text;
    uint32_t count = 0;
    for (at = strstr(at, "<rect"); at && count < 4; at = strstr(at + 1, "<rect")) {
        const char *width = strstr(at, "width=\"");
        CU_ASSERT_PTR_NOT_NULL_FATAL(width);
        widths[count++] = atof(width + 7);
    }
    CU_ASSERT_EQUAL(count, 4); /* parts of nothing are not drawn */
    CU_ASSERT_DOUBLE_EQUAL(widths[1], 3 * widths[0], 0.05);
    CU_ASSERT_DOUBLE_EQUAL(widths[2], 2 * widths[0], 0.05);
    CU_ASSERT_DOUBLE_EQUAL(widths[3], 4 * widths[0], 0.05); /* on its own scale it fills the width */
    CU_ASSERT_EQUAL(occurrences(text, "class=\"whisker\""), 1);
    CU_ASSERT_EQUAL(occurrences(text, ">2, link not resolved<"), 1);
}

int main(int argc, char **argv)
{
    const dmg_test statistics[] = {
        DMG_TEST(a_median_is_the_middle_or_the_mean_of_two), DMG_TEST(the_winner_has_the_least_median),
        DMG_TEST(rounds_are_compared_with_themselves),       DMG_TEST(a_lead_of_a_per_cent_or_of_one_round_is_none),
        DMG_TEST(the_mean_of_algorithms_is_geometric),       {NULL, NULL}};
    const dmg_test sensitivity[] = {DMG_TEST(over_its_own_link_a_run_takes_what_was_measured),
                                    DMG_TEST(latency_and_bandwidth_count_apart),
                                    DMG_TEST(an_error_of_the_model_that_is_a_share_cancels),
                                    DMG_TEST(what_is_posted_together_waits_once),
                                    DMG_TEST(no_link_is_faster_than_none),
                                    DMG_TEST(work_without_a_link_depends_on_none),
                                    DMG_TEST(tails_grow_with_latencies_and_no_limit_stays_none),
                                    DMG_TEST(a_lead_flips_where_the_times_meet),
                                    DMG_TEST(a_lead_begins_with_the_ratio_that_is_reported),
                                    {NULL, NULL}};
    const dmg_test charts[] = {DMG_TEST(axes_show_all_values_between_round_numbers),
                               DMG_TEST(values_lie_by_their_logarithm),
                               DMG_TEST(ticks_ascend_and_are_few),
                               DMG_TEST(numbers_have_their_units),
                               DMG_TEST(labels_of_ticks_lie_apart),
                               DMG_TEST(times_are_written_one_way),
                               DMG_TEST(text_stands_for_itself),
                               DMG_TEST(what_no_page_may_have_is_replaced),
                               DMG_TEST(a_field_of_csv_may_hold_anything),
                               DMG_TEST(a_chart_draws_what_can_be_drawn),
                               DMG_TEST(bars_are_as_long_as_their_parts),
                               {NULL, NULL}};
    if (dmg_suite_add("statistics", NULL, NULL, statistics) || dmg_suite_add("sensitivity", NULL, NULL, sensitivity) ||
        dmg_suite_add("charts", NULL, NULL, charts)) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
