#include "cli/compare/verdict.h"

#include "cli/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- what links cost ---- */

dmg_link_cost dmg_link_cost_of(dmg_link_kind kind, const double *whole, const double *bare, uint32_t rounds)
{
    double costs[DMG_COMPARE_ROUNDS_MAX];
    double ratios[DMG_COMPARE_ROUNDS_MAX];
    dmg_link_cost cost = {.kind = kind};
    if (kind == DMG_LINK_KIND_NONE) {
        return cost;
    }
    for (uint32_t round = 0; round < rounds && round < DMG_COMPARE_ROUNDS_MAX; round++) {
        costs[round] = whole[round] - bare[round];
        ratios[round] = whole[round] / bare[round];
    }
    cost.spread = dmg_spread_of(costs, rounds);
    cost.is_resolved =
        kind == DMG_LINK_KIND_ACCOUNTED ? cost.spread.least > 0 : dmg_ratio_judge(ratios, rounds).is_above;
    return cost;
}

dmg_link_cost_text dmg_link_cost_say(const dmg_link_cost *cost)
{
    dmg_link_cost_text said;
    snprintf(said.text, sizeof said.text, "%s",
             cost->kind == DMG_LINK_KIND_NONE ? "none"
             : cost->is_resolved              ? dmg_text_seconds(cost->spread.median).text
                                              : "not resolved");
    return said;
}

/* ---- who decides ---- */

const char *dmg_verdict_kind_name(dmg_verdict_kind kind)
{
    static const char *const names[] = {"not resolved", "links", "software", "cause not resolved"};
    return names[kind];
}

/** The sums must agree with the parts, which are means of ratios: nobody shall read that what is dearer decided. */
static bool is_link_cheaper(const dmg_link_cost *one, const dmg_link_cost *than)
{
    return than->is_resolved && (!one->is_resolved || one->spread.median < than->spread.median);
}

dmg_verdict_kind dmg_verdict_decide(const dmg_verdict_facts *facts)
{
    if (!facts->ratio.is_above) {
        return DMG_VERDICT_NOT_RESOLVED;
    }
    bool is_half_of_it = facts->link_part.spread.median >= facts->software_part.spread.median;
    if (facts->link_part.is_above && is_half_of_it && is_link_cheaper(&facts->winner, &facts->second)) {
        return DMG_VERDICT_LINKS;
    }
    bool is_software_cheaper = facts->winner_software < facts->second_software;
    return facts->software_part.is_above && is_software_cheaper ? DMG_VERDICT_SOFTWARE : DMG_VERDICT_CAUSE_UNKNOWN;
}

/* ---- the parts of a ratio ---- */

/** Two configurations in one round of one piece of work. */
typedef struct round_pair {
    double bare[2];
    double link[2]; /* what is negative is noise of the clock, and counts as none */
} round_pair;

static round_pair pair_of(const dmg_compare_times *whole, const dmg_compare_times *bare, const dmg_contest *contest,
                          const dmg_link_kind *kinds, uint32_t round)
{
    const uint32_t sides[2] = {contest->winner, contest->second};
    round_pair pair;
    for (int side = 0; side < 2; side++) {
        double seconds = whole->seconds[sides[side]][round];
        bool has_link = kinds[sides[side]] != DMG_LINK_KIND_NONE;
        pair.bare[side] = has_link ? fmin(bare->seconds[sides[side]][round], seconds) : seconds;
        pair.link[side] = seconds - pair.bare[side];
    }
    return pair;
}

/** The logarithm of the ratio that the links alone would give: over the one's bare time, and over the other's. */
static double link_part(const round_pair *pair)
{
    return (log((pair->bare[0] + pair->link[1]) / (pair->bare[0] + pair->link[0])) +
            log((pair->bare[1] + pair->link[1]) / (pair->bare[1] + pair->link[0]))) /
           2;
}

static void judge_parts(const dmg_compare_times *whole, const dmg_compare_times *bare, uint32_t pieces,
                        const dmg_link_kind *kinds, const dmg_contest *contest, dmg_verdict_facts *facts)
{
    double links[DMG_COMPARE_ROUNDS_MAX];
    double software[DMG_COMPARE_ROUNDS_MAX];
    uint32_t rounds = whole[0].rounds;
    for (uint32_t round = 0; round < rounds; round++) {
        double of_links = 0;
        double of_all = 0;
        for (uint32_t piece = 0; piece < pieces; piece++) {
            round_pair pair = pair_of(&whole[piece], &bare[piece], contest, kinds, round);
            of_links += link_part(&pair) / pieces;
            of_all += log(whole[piece].seconds[contest->second][round] / whole[piece].seconds[contest->winner][round]) /
                      pieces;
        }
        links[round] = exp(of_links);
        software[round] = exp(of_all - of_links);
    }
    facts->link_part = dmg_ratio_judge(links, rounds);
    facts->software_part = dmg_ratio_judge(software, rounds);
}

/** Of one configuration, added up over all pieces of work, round by round. */
static void add_up(const dmg_compare_times *times, uint32_t pieces, uint32_t configuration, double *sums)
{
    for (uint32_t round = 0; round < times[0].rounds; round++) {
        sums[round] = 0;
        for (uint32_t piece = 0; piece < pieces; piece++) {
            sums[round] += times[piece].seconds[configuration][round];
        }
    }
}

dmg_verdict dmg_verdict_judge(const dmg_compare_times *whole, const dmg_compare_times *bare, uint32_t pieces,
                              const dmg_link_kind *kinds)
{
    dmg_verdict verdict = {.configurations = whole[0].configurations, .pieces = pieces};
    dmg_compare_times mean = dmg_compare_times_mean(whole, pieces);
    verdict.contest = dmg_contest_judge(&mean);
    for (uint32_t i = 0; i < verdict.configurations; i++) {
        double wholes[DMG_COMPARE_ROUNDS_MAX];
        double bares[DMG_COMPARE_ROUNDS_MAX];
        add_up(whole, pieces, i, wholes);
        add_up(bare, pieces, i, bares);
        verdict.links[i] = dmg_link_cost_of(kinds[i], wholes, bares, whole[0].rounds);
        double seconds = dmg_spread_of(wholes, whole[0].rounds).median;
        verdict.software_seconds[i] =
            verdict.links[i].is_resolved ? fmax(seconds - verdict.links[i].spread.median, 0) : seconds;
    }
    verdict.facts.ratio = verdict.contest.ratios[verdict.contest.second];
    verdict.facts.winner = verdict.links[verdict.contest.winner];
    verdict.facts.second = verdict.links[verdict.contest.second];
    verdict.facts.winner_software = verdict.software_seconds[verdict.contest.winner];
    verdict.facts.second_software = verdict.software_seconds[verdict.contest.second];
    judge_parts(whole, bare, pieces, kinds, &verdict.contest, &verdict.facts);
    verdict.kind = dmg_verdict_decide(&verdict.facts);
    return verdict;
}

/* ---- in words ---- */

void dmg_sentence_add(char *text, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, DMG_COMPARE_SENTENCE_BYTES - used, format, arguments);
    va_end(arguments);
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

/** "22 ms (polar-cxl) and 4.3 ms (polar-rdma)". */
static void say_costs(const dmg_verdict *verdict, const char *const *names, bool of_links, char *text)
{
    for (uint32_t i = 0; i < verdict->configurations; i++) {
        bool is_last = i + 1 == verdict->configurations;
        dmg_sentence_add(text, "%s%s (%s)",
                         i == 0    ? ""
                         : is_last ? " and "
                                   : ", ",
                         of_links ? dmg_link_cost_say(&verdict->links[i]).text
                                  : dmg_text_seconds(verdict->software_seconds[i]).text,
                         names[i]);
    }
}

/** A part of the ratio: "1.26", or "not resolved". Never after "by". */
static void say_part(const dmg_ratio *part, char *text)
{
    if (part->is_above || part->is_below) {
        dmg_sentence_add(text, "%.2f", part->spread.median);
    } else {
        dmg_sentence_add(text, "not resolved");
    }
}

static void say_spread(const dmg_spread *spread, char *text)
{
    if (spread->count > 1) {
        dmg_sentence_add(text, "%.2f to %.2f in %" PRIu32 " rounds", spread->least, spread->most, spread->count);
    } else {
        dmg_sentence_add(text, "%.2f in one round, which resolves nothing", spread->median);
    }
}

static void say_lead(const dmg_verdict *verdict, const char *const *names, char *text)
{
    const dmg_contest *contest = &verdict->contest;
    const char *mean = verdict->pieces > 1 ? ", the geometric mean of the algorithms" : "";
    if (verdict->kind == DMG_VERDICT_NOT_RESOLVED) {
        dmg_sentence_add(text, "which is faster is not resolved: %s takes %.2f times as long as %s (",
                         names[contest->second], contest->ratio.median, names[contest->winner]);
    } else {
        dmg_sentence_add(text, "%s is faster than %s by %.2f (", names[contest->winner], names[contest->second],
                         contest->ratio.median);
    }
    say_spread(&contest->ratio, text);
    dmg_sentence_add(text, "%s)", mean);
}

static void say_decision(const dmg_verdict *verdict, char *text)
{
    bool has_link =
        verdict->facts.winner.kind != DMG_LINK_KIND_NONE || verdict->facts.second.kind != DMG_LINK_KIND_NONE;
    switch (verdict->kind) {
    case DMG_VERDICT_LINKS:
        dmg_sentence_add(text, ", and the links decide: their part of this ratio is ");
        say_part(&verdict->facts.link_part, text);
        dmg_sentence_add(text, ", that of the software ");
        say_part(&verdict->facts.software_part, text);
        dmg_sentence_add(text, ".");
        break;
    case DMG_VERDICT_SOFTWARE:
        dmg_sentence_add(text, has_link ? ", but this machine's software decides: no statement about the links is made."
                                        : ", and that is this machine's software: neither has an emulated link, and no "
                                          "statement about links is made.");
        break;
    case DMG_VERDICT_CAUSE_UNKNOWN:
        dmg_sentence_add(text, ", but whether the links decide or this machine's software is not resolved: no "
                               "statement about the links is made.");
        break;
    default:
        dmg_sentence_add(text, ". No statement about the links is made.");
        break;
    }
}

void dmg_verdict_say(const dmg_verdict *verdict, const char *const *names, uint32_t cns, char *text)
{
    text[0] = '\0';
    dmg_sentence_add(text, "With %" PRIu32 " compute node%s", cns, plural(cns));
    if (verdict->pieces > 1) {
        dmg_sentence_add(text, ", added up over %" PRIu32 " algorithms", verdict->pieces);
    }
    dmg_sentence_add(text, ", the links' cost is ");
    say_costs(verdict, names, true, text);
    dmg_sentence_add(text, "; this machine's software costs ");
    say_costs(verdict, names, false, text);
    dmg_sentence_add(text, "; ");
    say_lead(verdict, names, text);
    say_decision(verdict, text);
}

void dmg_verdict_say_short(const dmg_verdict *verdict, const char *const *names, char *text)
{
    static const char *const decisions[] = {[DMG_VERDICT_LINKS] = "the links decide",
                                            [DMG_VERDICT_SOFTWARE] = "software decides",
                                            [DMG_VERDICT_CAUSE_UNKNOWN] = "what decides is not resolved"};
    text[0] = '\0';
    if (verdict->kind == DMG_VERDICT_NOT_RESOLVED) {
        dmg_sentence_add(text, "not resolved (");
        say_spread(&verdict->contest.ratio, text);
        dmg_sentence_add(text, ")");
    } else {
        dmg_sentence_add(text, "%s by %.2f, %s", names[verdict->contest.winner], verdict->contest.ratio.median,
                         decisions[verdict->kind]);
    }
}

void dmg_verdict_say_flip(const dmg_verdict *verdict, const char *const *names, double flip, double flip_most,
                          double uncertainty, char *text)
{
    text[0] = '\0';
    if (verdict->kind == DMG_VERDICT_NOT_RESOLVED) {
        dmg_sentence_add(text, "Whether it would stay so were the profiles' numbers off is not said: which is faster "
                               "is not resolved, so there is nothing that could flip.");
    } else if (verdict->kind != DMG_VERDICT_LINKS) {
        dmg_sentence_add(text, "Whether it would stay so were the profiles' numbers off is not said: %s.",
                         verdict->kind == DMG_VERDICT_SOFTWARE
                             ? "this machine's software decides, which does not come from the profiles"
                             : "it is not resolved that the links decide");
    } else if (flip > flip_most) {
        dmg_sentence_add(text,
                         "This verdict does not flip within the uncertainty of the profiles (a factor of %g), nor by "
                         "the model by any factor up to %g.",
                         uncertainty, flip_most);
    } else {
        dmg_sentence_add(text,
                         "This verdict %s within the uncertainty of the profiles: by the model it flips when all "
                         "numbers of both are off by a factor of %.2f in disfavour of %s, and they are taken to be "
                         "good to a factor of %g.",
                         flip > uncertainty ? "does not flip" : "may flip", flip, names[verdict->contest.winner],
                         uncertainty);
    }
}
