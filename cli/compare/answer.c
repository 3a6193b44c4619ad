#include "cli/compare/compare.h"

#include "cli/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what a piece of work asked for ---- */

/** "12,100 operations and 780 MB", "21,300 mapped spans (680 MB)". */
static void say_traffic(const dmg_compare_cell *cell, char *text)
{
    const dmg_counters *counters = &cell->counters;
    uint64_t operations = 0;
    uint64_t bytes = 0;
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        operations += counters->operations[kind];
        bytes += counters->bytes[kind];
    }
    dmg_sentence_add(text, "%s operations (%s)", dmg_text_count(operations).text, dmg_text_bytes(bytes).text);
    if (counters->mapped_spans > 0) {
        dmg_sentence_add(text, " and %s mapped spans (%s)", dmg_text_count(counters->mapped_spans).text,
                         dmg_text_bytes(counters->mapped_bytes).text);
    }
    if (counters->mapped_atomics > 0) {
        dmg_sentence_add(text, " and %s mapped atomics", dmg_text_count(counters->mapped_atomics).text);
    }
}

void dmg_compare_say_work(const dmg_compare *compare, uint32_t algorithm, uint32_t cns,
                          char text[DMG_COMPARE_SENTENCE_BYTES])
{
    dmg_verdict verdict = dmg_compare_verdict_of(compare, algorithm, cns);
    text[0] = '\0';
    for (int side = 0; side < 2; side++) {
        uint32_t i = side == 0 ? verdict.contest.winner : verdict.contest.second;
        dmg_compare_split split = dmg_compare_split_of(compare, i, algorithm, cns);
        dmg_sentence_add(text, "%s%s: ", side > 0 ? " " : "", compare->configurations[i].name);
        say_traffic(dmg_compare_cell_of(compare, i, algorithm, cns, DMG_VARIANT_AS_IT_IS), text);
        if (split.link.is_resolved) {
            dmg_sentence_add(text, "; without the link %s, and the link adds %s",
                             dmg_text_seconds(split.compute + split.software).text,
                             dmg_text_seconds(split.link.spread.median).text);
        } else if (split.link.kind != DMG_LINK_KIND_NONE) {
            dmg_sentence_add(text, "; what the link adds is not resolved");
        }
        dmg_sentence_add(text, ".");
    }
}

/* ---- for each number of compute nodes ---- */

static void say_verdict(const dmg_compare *compare, uint32_t cns, char *text)
{
    const char *names[DMG_COMPARE_CONFIGURATIONS_MAX];
    dmg_verdict verdict = dmg_compare_verdict_of_all(compare, cns);
    dmg_compare_names(compare, names);
    dmg_verdict_say(&verdict, names, compare->cns[cns], text);
}

static void say_algorithms(const dmg_compare *compare, uint32_t cns, char *text)
{
    const char *names[DMG_COMPARE_CONFIGURATIONS_MAX];
    dmg_compare_names(compare, names);
    for (uint32_t i = 0; i < compare->algorithm_count && compare->algorithm_count > 1; i++) {
        char said[DMG_COMPARE_SENTENCE_BYTES];
        dmg_verdict verdict = dmg_compare_verdict_of(compare, i, cns);
        dmg_verdict_say_short(&verdict, names, said);
        dmg_sentence_add(text, "%s%s: %s", i > 0 ? "; " : "By algorithm: ", compare->algorithms[i], said);
    }
    dmg_sentence_add(text, compare->algorithm_count > 1 ? "." : "");
}

double dmg_compare_flip_factor(const dmg_compare *compare, const dmg_verdict *verdict, uint32_t cns)
{
    dmg_compare_model model;
    dmg_compare_model_of(compare, verdict, cns, &model);
    return dmg_link_flip_factor(&model.pair, DMG_COMPARE_FLIP_MOST);
}

void dmg_compare_say_flip(const dmg_compare *compare, uint32_t cns, char text[DMG_COMPARE_SENTENCE_BYTES])
{
    const char *names[DMG_COMPARE_CONFIGURATIONS_MAX];
    dmg_verdict verdict = dmg_compare_verdict_of_all(compare, cns);
    dmg_compare_names(compare, names);
    double flip = verdict.kind == DMG_VERDICT_LINKS ? dmg_compare_flip_factor(compare, &verdict, cns) : INFINITY;
    dmg_verdict_say_flip(&verdict, names, flip, DMG_COMPARE_FLIP_MOST,
                         compare->settings->values[DMG_OPTION_UNCERTAINTY].real, text);
}

/* ---- how far to trust it ---- */

/** The fastest run of a piece of work; and how often each was run inside a round, at the least. */
static double fastest_of(const dmg_compare *compare, uint32_t algorithm, uint32_t cns, uint32_t *repeats)
{
    double fastest = INFINITY;
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        const dmg_compare_cell *cell = dmg_compare_cell_of(compare, i, algorithm, cns, DMG_VARIANT_AS_IT_IS);
        fastest = fmin(fastest, cell->fastest);
        for (uint32_t round = 0; round < cell->count; round++) {
            *repeats = cell->repeats[round] < *repeats ? cell->repeats[round] : *repeats;
        }
    }
    return fastest;
}

/** "bfs with 1 CN (3.6 ms)": the pieces of work whose iterations are short. */
static void say_short(const dmg_compare *compare, char *text)
{
    uint32_t found = 0;
    uint32_t repeats = DMG_COMPARE_REPEATS_MAX;
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
            uint32_t least = DMG_COMPARE_REPEATS_MAX;
            double fastest = fastest_of(compare, algorithm, cns, &least);
            if (fastest < DMG_COMPARE_SHORT_SECONDS) {
                dmg_sentence_add(text, "%s%s with %" PRIu32 " CN%s (%s)",
                                 found++ > 0 ? ", " : "Short iterations: ", compare->algorithms[algorithm],
                                 compare->cns[cns], compare->cns[cns] == 1 ? "" : "s", dmg_text_seconds(fastest).text);
                repeats = least < repeats ? least : repeats;
            }
        }
    }
    if (found == 0) {
        return;
    }
    dmg_sentence_add(text,
                     " at the least. In so little time the starting of threads, barriers and other programs weigh as "
                     "much as a link: ");
    if (repeats > 1) {
        dmg_sentence_add(text, "each was run %" PRIu32 " times inside a round, and the median counts; ", repeats);
    } else {
        dmg_sentence_add(text, "some were run once inside a round (--repeats 5 repeats them); ");
    }
    dmg_sentence_add(text, "a larger graph gives a surer answer.");
}

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
        dmg_sentence_add(
            text, "Where there were no cores to wait on, links were accounted for and not waited for (docs/links.md): "
                  "their time is added up, without contention between threads.");
    }
}

static void say_busy(const dmg_compare *compare, char *text)
{
    if (compare->is_busy) {
        dmg_sentence_add(text, "Other programs were using this machine: a thread on each core got %.0f %% of it. ",
                         100 * compare->core_share);
        dmg_sentence_add(
            text, strcmp(compare->link_mode, dmg_link_mode_name(DMG_LINK_ACCOUNT)) == 0
                      ? "So links are accounted for; what is computed still spreads."
                      : "Threads that wait for a link lose their cores then, and times grow; --link-mode account, or "
                        "an idle machine, gives a surer answer.");
    }
}

typedef enum said_of_nodes { SAID_VERDICT, SAID_ALGORITHMS, SAID_FLIP, SAID_OF_NODES } said_of_nodes;
typedef enum said_of_all { SAID_SHORT, SAID_ACCOUNTED, SAID_BUSY, SAID_OF_ALL } said_of_all;

uint32_t dmg_compare_sentence_count(const dmg_compare *compare)
{
    return compare->cns_count * SAID_OF_NODES + SAID_OF_ALL;
}

bool dmg_compare_is_verdict(const dmg_compare *compare, uint32_t index)
{
    return index < compare->cns_count * SAID_OF_NODES && index % SAID_OF_NODES == SAID_VERDICT;
}

void dmg_compare_say(const dmg_compare *compare, uint32_t index, char text[DMG_COMPARE_SENTENCE_BYTES])
{
    static void (*const of_nodes[SAID_OF_NODES])(const dmg_compare *compare, uint32_t cns,
                                                 char *text) = {say_verdict, say_algorithms, dmg_compare_say_flip};
    static void (*const of_all[SAID_OF_ALL])(const dmg_compare *compare, char *text) = {say_short, say_accounted,
                                                                                        say_busy};
    text[0] = '\0';
    if (index < compare->cns_count * SAID_OF_NODES) {
        of_nodes[index % SAID_OF_NODES](compare, index / SAID_OF_NODES, text);
    } else {
        of_all[index - compare->cns_count * SAID_OF_NODES](compare, text);
    }
}

void dmg_compare_say_proof(const dmg_compare_configuration *configuration, char text[DMG_COMPARE_SENTENCE_BYTES])
{
    const dmg_compare_proof *proof = &configuration->proof;
    text[0] = '\0';
    if (!configuration->has_link) {
        dmg_sentence_add(text, "no emulated link");
    } else if (!proof->is_there) {
        dmg_sentence_add(text, "not calibrated on this host: dmgraph perf --calibrate --link %s --transport %s",
                         configuration->link, configuration->transport);
    } else {
        dmg_sentence_add(text,
                         "self-test on this host: %" PRIu32 " checks pass, %" PRIu32 " fail, %" PRIu32
                         " inconclusive, %" PRIu32 " not emulable here",
                         proof->passed, proof->failed, proof->inconclusive, proof->not_emulable);
        if (proof->passed + proof->failed > 0) {
            dmg_sentence_add(text, "; off by %.1f %% at most", 100 * proof->worst_error);
        }
    }
}
