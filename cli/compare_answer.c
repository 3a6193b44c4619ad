#include "cli/compare.h"

#include "cli/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/** Append, as far as there is room. */
static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char *text, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, DMG_COMPARE_SENTENCE_BYTES - used, format, arguments);
    va_end(arguments);
}

static const char *name_of(const dmg_compare *compare, uint32_t configuration)
{
    return compare->configurations[configuration].name;
}

static const char *nodes_text(uint32_t count)
{
    return count == 1 ? "compute node" : "compute nodes";
}

/* ---- who wins ---- */

static void say_winner(const dmg_compare *compare, char *text)
{
    dmg_compare_times times = dmg_compare_times_of_all(compare, 0, DMG_VARIANT_AS_IT_IS);
    dmg_contest contest = dmg_contest_judge(&times);
    const char *winner = compare->configurations[contest.winner].title;
    const char *second = compare->configurations[contest.second].title;
    if (contest.is_clear) {
        append(text, "%s wins: %s takes %.2f times as long (%.2f to %.2f in %" PRIu32 " rounds)", winner, second,
               contest.ratio.median, contest.ratio.least, contest.ratio.most, contest.ratio.count);
    } else {
        append(text, "No clear winner: %s takes %.2f times as long as %s, but %.2f to %.2f in %" PRIu32 " round%s",
               second, contest.ratio.median, winner, contest.ratio.least, contest.ratio.most, contest.ratio.count,
               contest.ratio.count == 1 ? "" : "s");
    }
    append(text,
           compare->algorithm_count > 1 ? ", the geometric mean of %" PRIu32 " algorithms with %" PRIu32 " %s."
                                        : ", %" PRIu32 " algorithm with %" PRIu32 " %s.",
           compare->algorithm_count, compare->cns[0], nodes_text(compare->cns[0]));
}

static void say_algorithms(const dmg_compare *compare, char *text)
{
    for (uint32_t i = 0; i < compare->algorithm_count; i++) {
        dmg_compare_times times = dmg_compare_times_of(compare, i, 0, DMG_VARIANT_AS_IT_IS);
        dmg_contest contest = dmg_contest_judge(&times);
        append(text, "%s%s: ", i > 0 ? "; " : "By algorithm: ", compare->algorithms[i]);
        append(text, contest.is_clear ? "%s by %.2f" : "%s by %.2f, within the spread",
               name_of(compare, contest.winner), contest.ratio.median);
    }
    append(text, ".");
}

/* ---- why ---- */

/** "12,100 operations and 780 MB", "21,300 spans in place (680 MB)". */
static void say_traffic(const dmg_compare_cell *cell, char *text)
{
    const dmg_counters *counters = &cell->counters;
    uint64_t operations = 0;
    uint64_t bytes = 0;
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        operations += counters->operations[kind];
        bytes += counters->bytes[kind];
    }
    append(text, "%s operations (%s)", dmg_text_count(operations).text, dmg_text_bytes(bytes).text);
    if (counters->in_place_spans > 0) {
        append(text, " and %s spans in place (%s)", dmg_text_count(counters->in_place_spans).text,
               dmg_text_bytes(counters->in_place_bytes).text);
    }
    if (counters->in_place_atomics > 0) {
        append(text, " and %s atomics in place", dmg_text_count(counters->in_place_atomics).text);
    }
}

void dmg_compare_say_why(const dmg_compare *compare, uint32_t algorithm, char text[DMG_COMPARE_SENTENCE_BYTES])
{
    dmg_compare_times times = dmg_compare_times_of(compare, algorithm, 0, DMG_VARIANT_AS_IT_IS);
    dmg_contest contest = dmg_contest_judge(&times);
    text[0] = '\0';
    for (int side = 0; side < 2; side++) {
        uint32_t i = side == 0 ? contest.winner : contest.second;
        dmg_compare_split split = dmg_compare_split_of(compare, i, algorithm, 0);
        append(text, "%s%s: ", side > 0 ? " " : "", name_of(compare, i));
        say_traffic(dmg_compare_cell_of(compare, i, algorithm, 0, DMG_VARIANT_AS_IT_IS), text);
        append(text, "; without the link %s", dmg_text_seconds(split.compute + split.software).text);
        if (compare->configurations[i].has_link) {
            append(text, ", and the link adds %s", dmg_text_seconds(split.link).text);
        }
        append(text, ".");
    }
}

/** How much of the lead is links, and how much software; over all algorithms, as sums. */
static void say_why(const dmg_compare *compare, char *text)
{
    dmg_compare_times times = dmg_compare_times_of_all(compare, 0, DMG_VARIANT_AS_IT_IS);
    dmg_contest contest = dmg_contest_judge(&times);
    dmg_compare_split sums[2] = {{0}};
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (int side = 0; side < 2; side++) {
            dmg_compare_split split =
                dmg_compare_split_of(compare, side == 0 ? contest.winner : contest.second, algorithm, 0);
            sums[side].compute += split.compute;
            sums[side].software += split.software;
            sums[side].link += split.link;
        }
    }
    append(
        text,
        "Why: added up over the algorithms, the links take %s of %s's %s and %s of %s's %s; the rest is computing and "
        "software on this machine (%s against %s), which does not come from the profiles.",
        dmg_text_seconds(sums[0].link).text, name_of(compare, contest.winner),
        dmg_text_seconds(sums[0].link + sums[0].compute + sums[0].software).text, dmg_text_seconds(sums[1].link).text,
        name_of(compare, contest.second), dmg_text_seconds(sums[1].link + sums[1].compute + sums[1].software).text,
        dmg_text_seconds(sums[0].compute + sums[0].software).text,
        dmg_text_seconds(sums[1].compute + sums[1].software).text);
}

/* ---- would it stay so ---- */

double dmg_compare_flip_factor(const dmg_compare *compare)
{
    dmg_compare_times times = dmg_compare_times_of_all(compare, 0, DMG_VARIANT_AS_IT_IS);
    dmg_contest contest = dmg_contest_judge(&times);
    dmg_link_work winner[DMG_COMPARE_ALGORITHMS_MAX];
    dmg_link_work second[DMG_COMPARE_ALGORITHMS_MAX];
    for (uint32_t i = 0; i < compare->algorithm_count; i++) {
        winner[i] = dmg_compare_work_of(compare, contest.winner, i);
        second[i] = dmg_compare_work_of(compare, contest.second, i);
    }
    return dmg_link_flip_factor(winner, second, compare->algorithm_count, DMG_COMPARE_FLIP_MOST);
}

static void say_flip(const dmg_compare *compare, char *text)
{
    dmg_compare_times times = dmg_compare_times_of_all(compare, 0, DMG_VARIANT_AS_IT_IS);
    dmg_contest contest = dmg_contest_judge(&times);
    double uncertainty = compare->settings->values[DMG_OPTION_UNCERTAINTY].real;
    double flip = dmg_compare_flip_factor(compare);
    if (!compare->configurations[contest.winner].has_link && !compare->configurations[contest.second].has_link) {
        append(text, "Neither of the two has an emulated link, so there is no profile whose numbers could be off.");
    } else if (!contest.is_clear) {
        append(text, "As the winner is not clear, nor is whether it would stay one were the profiles' numbers off.");
    } else if (flip > DMG_COMPARE_FLIP_MOST) {
        append(text,
               "The answer does not flip within the uncertainty of the profiles (a factor of %g), nor by any factor up "
               "to %g: links explain too little of it.",
               uncertainty, DMG_COMPARE_FLIP_MOST);
    } else {
        append(
            text,
            "The answer %s within the uncertainty of the profiles: by the model it flips when all numbers of both are "
            "off by a factor of %.2f in disfavour of %s, and they are taken to be good to a factor of %g.",
            flip > uncertainty ? "does not flip" : "may flip", flip, name_of(compare, contest.winner), uncertainty);
    }
}

/* ---- how far to trust it ---- */

bool dmg_compare_is_accounted(const dmg_compare *compare)
{
    size_t cells = (size_t)compare->configuration_count * compare->algorithm_count * compare->cns_count * DMG_VARIANTS;
    for (size_t i = 0; i < cells; i++) {
        for (uint32_t round = 0; round < compare->cells[i].count; round++) {
            if (compare->cells[i].accounted[round] > 0) {
                return true;
            }
        }
    }
    return false;
}

static void say_accounted(const dmg_compare *compare, char *text)
{
    if (dmg_compare_is_accounted(compare)) {
        append(text,
               "Where there were no cores to wait on, links were accounted for and not waited for (docs/links.md): "
               "their time is added up, without contention between threads.");
    }
}

static void say_busy(const dmg_compare *compare, char *text)
{
    if (compare->is_busy) {
        append(text, "Other programs were using this machine: a thread on each core got %.0f %% of it. ",
               100 * compare->core_share);
        append(text,
               strcmp(compare->link_mode, dmg_link_mode_name(DMG_LINK_ACCOUNT)) == 0
                   ? "So links are accounted for; what is computed still spreads."
                   : "Threads that wait for a link lose their cores then, and times grow; --link-mode account, or "
                     "an idle machine, gives a surer answer.");
    }
}

void dmg_compare_say(const dmg_compare *compare, dmg_compare_sentence which, char text[DMG_COMPARE_SENTENCE_BYTES])
{
    static void (*const say[DMG_SENTENCES])(const dmg_compare *compare, char *text) = {
        say_winner, say_algorithms, say_why, say_flip, say_accounted, say_busy};
    text[0] = '\0';
    say[which](compare, text);
}

void dmg_compare_say_proof(const dmg_compare_configuration *configuration, char text[DMG_COMPARE_SENTENCE_BYTES])
{
    const dmg_compare_proof *proof = &configuration->proof;
    text[0] = '\0';
    if (!configuration->has_link) {
        append(text, "no emulated link");
    } else if (!proof->is_there) {
        append(text, "not calibrated on this host: dmgraph perf --calibrate --link %s --transport %s",
               configuration->link, configuration->transport);
    } else {
        append(text,
               "self-test on this host: %" PRIu32 " checks pass, %" PRIu32 " fail, %" PRIu32 " inconclusive, %" PRIu32
               " not emulable here",
               proof->passed, proof->failed, proof->inconclusive, proof->not_emulable);
        if (proof->passed + proof->failed > 0) {
            append(text, "; off by %.1f %% at most", 100 * proof->worst_error);
        }
    }
}
