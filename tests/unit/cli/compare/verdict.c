/* What `dmgraph compare` may say of its numbers: who is faster, what decides it, and whether it would stay so. */
#include "unit/support/suite.h"

#include "cli/compare/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NEAR 1e-9

static const char *const names[] = {"cxl", "rdma", "third"};

/** A ratio of two rounds. */
static dmg_ratio between(double least, double most)
{
    const double ratios[] = {least, most};
    return dmg_ratio_judge(ratios, 2);
}

/** A link's cost of `seconds` at a time of a second; 0: it drowns in noise. */
static dmg_link_cost costs(double seconds)
{
    const double whole[] = {1, 1};
    const double bare[] = {seconds > 0 ? 1 - seconds : 0.99, seconds > 0 ? 1 - seconds : 1.01};
    return dmg_link_cost_of(DMG_LINK_KIND_WAITED, whole, bare, 2);
}

static void a_ratio_is_resolved_when_all_rounds_agree(void)
{
    const struct {
        double least, most;
        bool is_above, is_below;
    } cases[] = {{1.1, 1.3, true, false}, {0.99, 1.3, false, false},   {1.001, 1.02, false, false},
                 {0.7, 0.8, false, true}, {0.7, 1.0001, false, false}, {0.99, 0.995, false, false},
                 {1, 1, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dmg_ratio ratio = between(cases[i].least, cases[i].most);
        CU_ASSERT_EQUAL(ratio.is_above, cases[i].is_above);
        CU_ASSERT_EQUAL(ratio.is_below, cases[i].is_below);
    }
    /* Two rounds that agree are no proof where they differ by more than they lead; five are. */
    const double wide[] = {1.14, 3.91, 1.14, 3.91, 2.5};
    CU_ASSERT_FALSE(dmg_ratio_judge(wide, 2).is_above);
    CU_ASSERT_FALSE(dmg_ratio_judge(wide, 4).is_above);
    CU_ASSERT_TRUE(dmg_ratio_judge(wide, 5).is_above);
    const double once = 5;
    CU_ASSERT_FALSE(dmg_ratio_judge(&once, 1).is_above);
    CU_ASSERT_FALSE(dmg_ratio_judge(&once, 0).is_above);
}

static void links_decide_only_where_they_cost_the_winner_less(void)
{
    const struct {
        dmg_ratio ratio, link_part, software_part;
        double winner, second; /* links; 0: not resolved */
        dmg_verdict_kind kind;
        bool is_software_dearer; /* in sum, that of the winner */
    } cases[] = {
        /* Links alone. */
        {between(1.3, 1.4), between(1.3, 1.4), between(0.99, 1.01), 0.1, 0.3, DMG_VERDICT_LINKS, false},
        /* Against the software. */
        {between(1.3, 1.4), between(1.6, 1.7), between(0.8, 0.85), 0.1, 0.3, DMG_VERDICT_LINKS, false},
        /* With the software, and more of it. */
        {between(1.5, 1.6), between(1.3, 1.35), between(1.1, 1.2), 0.1, 0.3, DMG_VERDICT_LINKS, false},
        /* With the software, and less of it. */
        {between(1.5, 1.6), between(1.1, 1.2), between(1.3, 1.35), 0.1, 0.3, DMG_VERDICT_SOFTWARE, false},
        /* The winner's link drowns in noise, the other one's does not. */
        {between(1.3, 1.4), between(1.3, 1.4), between(0.99, 1.01), 0, 0.3, DMG_VERDICT_LINKS, false},
        /* The winner's link costs more, as in a Kronecker graph of scale 16: 23 ms against 15 ms. */
        {between(1.15, 1.2), between(0.85, 0.95), between(1.25, 1.35), 0.23, 0.15, DMG_VERDICT_SOFTWARE, false},
        /* The means say links and the sums say the opposite: nothing is said. */
        {between(1.3, 1.4), between(1.3, 1.4), between(0.99, 1.01), 0.3, 0.1, DMG_VERDICT_CAUSE_UNKNOWN, false},
        {between(1.3, 1.4), between(1.3, 1.4), between(0.99, 1.01), 0.1, 0, DMG_VERDICT_CAUSE_UNKNOWN, false},
        /* Neither part is resolved, only their product. */
        {between(1.1, 1.2), between(0.95, 1.3), between(0.9, 1.2), 0.1, 0.3, DMG_VERDICT_CAUSE_UNKNOWN, false},
        /* Software, and no link is resolved. */
        {between(1.3, 1.4), between(0.99, 1.01), between(1.3, 1.4), 0, 0, DMG_VERDICT_SOFTWARE, false},
        /* The means say software and the sums say the opposite. */
        {between(1.3, 1.4), between(0.99, 1.01), between(1.3, 1.4), 0, 0, DMG_VERDICT_CAUSE_UNKNOWN, true},
        /* Whatever the parts say, with the whole not resolved there is no verdict. */
        {between(0.97, 1.4), between(1.3, 1.4), between(0.9, 1.01), 0.1, 0.3, DMG_VERDICT_NOT_RESOLVED, false},
        {between(0.7, 0.8), between(1.3, 1.4), between(1.3, 1.4), 0.1, 0.3, DMG_VERDICT_NOT_RESOLVED, false},
        {between(1.005, 1.01), between(1.3, 1.4), between(0.7, 0.8), 0.1, 0.3, DMG_VERDICT_NOT_RESOLVED, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dmg_verdict_facts facts = {cases[i].ratio,
                                         cases[i].link_part,
                                         cases[i].software_part,
                                         costs(cases[i].winner),
                                         costs(cases[i].second),
                                         1,
                                         cases[i].is_software_dearer ? 0.9 : 1.1};
        dmg_verdict_kind kind = dmg_verdict_decide(&facts);
        if (kind != cases[i].kind) {
            printf("case %zu: %s instead of %s\n", i, dmg_verdict_kind_name(kind),
                   dmg_verdict_kind_name(cases[i].kind));
        }
        CU_ASSERT_EQUAL(kind, cases[i].kind);
    }
}

static void a_difference_that_drowns_is_not_resolved_and_not_zero(void)
{
    CU_ASSERT_STRING_EQUAL(dmg_link_cost_say(&(dmg_link_cost){.kind = DMG_LINK_KIND_NONE}).text, "none");
    dmg_link_cost drowned = costs(0);
    CU_ASSERT_FALSE(drowned.is_resolved);
    CU_ASSERT_STRING_EQUAL(dmg_link_cost_say(&drowned).text, "not resolved");
    dmg_link_cost seen = costs(0.25);
    CU_ASSERT_TRUE(seen.is_resolved);
    CU_ASSERT_STRING_EQUAL(dmg_link_cost_say(&seen).text, "250 ms");
    /* What was added up is exact, even where it is less than the clock's scatter, and in one round. */
    const double whole[] = {1.0};
    const double bare[] = {0.9995};
    dmg_link_cost accounted = dmg_link_cost_of(DMG_LINK_KIND_ACCOUNTED, whole, bare, 1);
    CU_ASSERT_TRUE(accounted.is_resolved);
    CU_ASSERT_FALSE(dmg_link_cost_of(DMG_LINK_KIND_WAITED, whole, bare, 1).is_resolved);
}

/** Two configurations in three rounds that differ by a per cent. */
static dmg_compare_times times_of(double first, double second)
{
    dmg_compare_times times = {.configurations = 2, .rounds = 3};
    for (uint32_t round = 0; round < 3; round++) {
        times.seconds[0][round] = first * (1 + 0.005 * round);
        times.seconds[1][round] = second * (1 + 0.005 * round);
    }
    return times;
}

static const dmg_link_kind both_waited[] = {DMG_LINK_KIND_WAITED, DMG_LINK_KIND_WAITED};

static void the_parts_multiply_to_the_ratio(void)
{
    /* One algorithm: 10 + 2 ms against 10 + 8 ms, so all of it is links; the other: 20 + 5 against 30 + 5, none. */
    const dmg_compare_times whole[] = {times_of(0.012, 0.018), times_of(0.025, 0.035)};
    const dmg_compare_times bare[] = {times_of(0.010, 0.010), times_of(0.020, 0.030)};
    dmg_verdict links = dmg_verdict_judge(&whole[0], &bare[0], 1, both_waited);
    CU_ASSERT_EQUAL(links.kind, DMG_VERDICT_LINKS);
    CU_ASSERT_DOUBLE_EQUAL(links.facts.link_part.spread.median, 1.5, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(links.facts.software_part.spread.median, 1, NEAR);
    dmg_verdict software = dmg_verdict_judge(&whole[1], &bare[1], 1, both_waited);
    CU_ASSERT_EQUAL(software.kind, DMG_VERDICT_SOFTWARE);
    CU_ASSERT_DOUBLE_EQUAL(software.facts.link_part.spread.median, 1, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(software.facts.software_part.spread.median, 1.4, NEAR);
    dmg_verdict both = dmg_verdict_judge(whole, bare, 2, both_waited);
    CU_ASSERT_DOUBLE_EQUAL(both.facts.link_part.spread.median * both.facts.software_part.spread.median,
                           both.contest.ratio.median, NEAR);
    CU_ASSERT_DOUBLE_EQUAL(both.contest.ratio.median, sqrt(1.5 * 1.4), NEAR);
    CU_ASSERT_DOUBLE_EQUAL(both.links[1].spread.median, 0.013 * 1.005, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(both.software_seconds[1], 0.040 * 1.005, 1e-6);
}

static void expect_words(const char *text, const char *expected, bool is_there)
{
    if ((strstr(text, expected) != NULL) != is_there) {
        printf("'%s' is %s: %s\n", expected, is_there ? "missing" : "there", text);
    }
    CU_ASSERT_EQUAL(strstr(text, expected) != NULL, is_there);
}

static void software_that_decides_says_nothing_about_links(void)
{
    /* As on a Kronecker graph of scale 16: 70 + 23 ms against 94 + 15 ms. */
    char text[DMG_COMPARE_SENTENCE_BYTES];
    const dmg_compare_times whole = times_of(0.093, 0.109);
    const dmg_compare_times bare = times_of(0.070, 0.094);
    dmg_verdict verdict = dmg_verdict_judge(&whole, &bare, 1, both_waited);
    CU_ASSERT_EQUAL(verdict.kind, DMG_VERDICT_SOFTWARE);
    CU_ASSERT_TRUE(verdict.facts.link_part.is_below);
    dmg_verdict_say(&verdict, names, 1, text);
    CU_ASSERT_STRING_EQUAL(text, "With 1 compute node, the links' cost is 23 ms (cxl) and 15 ms (rdma); this machine's "
                                 "software costs 70 ms (cxl) and 94 ms (rdma); cxl is faster than rdma by 1.17 (1.17 "
                                 "to 1.17 in 3 rounds), but this machine's software decides: no statement about the "
                                 "links is made.");
    dmg_verdict_say_short(&verdict, names, text);
    CU_ASSERT_STRING_EQUAL(text, "cxl by 1.17, software decides");
    /* Whatever the model finds, it says nothing that reassures. */
    const double flips[] = {1, 1.2, 2, INFINITY};
    for (size_t i = 0; i < sizeof flips / sizeof flips[0]; i++) {
        dmg_verdict_say_flip(&verdict, names, flips[i], 64, 1.5, text);
        expect_words(text, "is not said: this machine's software decides", true);
        expect_words(text, " flip", false);
    }
}

static void links_that_decide_may_flip(void)
{
    char text[DMG_COMPARE_SENTENCE_BYTES];
    const dmg_compare_times whole = times_of(0.080, 0.120);
    const dmg_compare_times bare = times_of(0.070, 0.070);
    dmg_verdict verdict = dmg_verdict_judge(&whole, &bare, 1, both_waited);
    dmg_verdict_say(&verdict, names, 2, text);
    expect_words(text, "With 2 compute nodes, the links' cost is 10 ms (cxl) and 50 ms (rdma);", true);
    expect_words(text, "by 1.50", true);
    expect_words(text, "the links decide: their part of this ratio is 1.50, that of the software not resolved.", true);
    dmg_verdict_say_flip(&verdict, names, 1.2, 64, 1.5, text);
    expect_words(text, "may flip within", true);
    dmg_verdict_say_flip(&verdict, names, 1.7, 64, 1.5, text);
    expect_words(text, "does not flip within", true);
    expect_words(text, "a factor of 1.70 in disfavour of cxl", true);
    dmg_verdict_say_flip(&verdict, names, INFINITY, 64, 1.5, text);
    expect_words(text, "nor by the model by any factor up to 64", true);
}

static void what_is_within_the_spread_has_no_winner(void)
{
    char text[DMG_COMPARE_SENTENCE_BYTES];
    dmg_compare_times whole = times_of(0.100, 0.110);
    dmg_compare_times bare = times_of(0.100, 0.110);
    whole.seconds[1][1] = 0.09; /* one round turned round */
    dmg_verdict verdict = dmg_verdict_judge(&whole, &bare, 1, both_waited);
    CU_ASSERT_EQUAL(verdict.kind, DMG_VERDICT_NOT_RESOLVED);
    dmg_verdict_say(&verdict, names, 1, text);
    expect_words(text, "the links' cost is not resolved (cxl) and not resolved (rdma)", true);
    expect_words(text, "which is faster is not resolved", true);
    expect_words(text, " by ", false);
    dmg_verdict_say_short(&verdict, names, text);
    expect_words(text, "not resolved (0.90 to 1.10 in 3 rounds)", true);
    dmg_verdict_say_flip(&verdict, names, 7, 64, 1.5, text);
    expect_words(text, "which is faster is not resolved", true);
    expect_words(text, "does not flip", false);
    /* The median of the ratios may be below 1 while the medians say the opposite. */
    dmg_compare_times odd = {{{1.0, 2.0, 3.0}, {0.9, 2.1, 2.9}}, 2, 3};
    verdict = dmg_verdict_judge(&odd, &odd, 1, both_waited);
    dmg_verdict_say(&verdict, names, 1, text);
    CU_ASSERT_TRUE(verdict.contest.ratio.median < 1);
    expect_words(text, " by ", false);
    /* One round resolves nothing, however large the difference. */
    whole = times_of(1, 7);
    whole.rounds = bare.rounds = 1;
    verdict = dmg_verdict_judge(&whole, &bare, 1, both_waited);
    dmg_verdict_say(&verdict, names, 1, text);
    CU_ASSERT_EQUAL(verdict.kind, DMG_VERDICT_NOT_RESOLVED);
    expect_words(text, "7.00 in one round, which resolves nothing", true);
    expect_words(text, " by ", false);
}

static void without_links_only_software_is_compared(void)
{
    char text[DMG_COMPARE_SENTENCE_BYTES];
    const dmg_link_kind neither[] = {DMG_LINK_KIND_NONE, DMG_LINK_KIND_NONE};
    const dmg_link_kind second[] = {DMG_LINK_KIND_NONE, DMG_LINK_KIND_WAITED};
    const dmg_compare_times whole = times_of(0.080, 0.120);
    const dmg_compare_times bare = times_of(0.080, 0.080);
    dmg_verdict verdict = dmg_verdict_judge(&whole, &bare, 1, neither);
    CU_ASSERT_EQUAL(verdict.kind, DMG_VERDICT_SOFTWARE);
    dmg_verdict_say(&verdict, names, 1, text);
    expect_words(text, "the links' cost is none (cxl) and none (rdma)", true);
    expect_words(text, "neither has an emulated link", true);
    /* A link against none: what it adds decides. */
    verdict = dmg_verdict_judge(&whole, &bare, 1, second);
    CU_ASSERT_EQUAL(verdict.kind, DMG_VERDICT_LINKS);
    dmg_verdict_say(&verdict, names, 1, text);
    expect_words(text, "the links' cost is none (cxl) and 40 ms (rdma)", true);
}

int main(int argc, char **argv)
{
    const dmg_test verdicts[] = {DMG_TEST(a_ratio_is_resolved_when_all_rounds_agree),
                                 DMG_TEST(links_decide_only_where_they_cost_the_winner_less),
                                 DMG_TEST(a_difference_that_drowns_is_not_resolved_and_not_zero),
                                 DMG_TEST(the_parts_multiply_to_the_ratio),
                                 DMG_TEST(software_that_decides_says_nothing_about_links),
                                 DMG_TEST(links_that_decide_may_flip),
                                 DMG_TEST(what_is_within_the_spread_has_no_winner),
                                 DMG_TEST(without_links_only_software_is_compared),
                                 {NULL, NULL}};
    if (dmg_suite_add("verdicts", NULL, NULL, verdicts)) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
