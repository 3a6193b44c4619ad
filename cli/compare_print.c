#include "cli/compare.h"

#include "cli/report.h"
#include "cli/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- for people ---- */

static void print_head(FILE *to, const dmg_compare *compare)
{
    dmg_graph_source_print(to, compare->path, &compare->source);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        const dmg_compare_configuration *configuration = &compare->configurations[i];
        char proof[DMG_COMPARE_SENTENCE_BYTES];
        dmg_compare_say_proof(configuration, proof);
        fprintf(to, "%s %-13s %s%s\n", i == 0 ? "compared  " : "          ", configuration->name, configuration->title,
                configuration->has_link ? " (emulated link)" : "");
        fprintf(to, "           %-13s %s\n", "", configuration->chosen);
        fprintf(to, "           %-13s %s\n", "", proof);
    }
    fprintf(to, "host       %s\n", compare->host);
}

static void print_answer(FILE *to, const dmg_compare *compare)
{
    for (int which = 0; which < DMG_SENTENCES; which++) {
        char text[DMG_COMPARE_SENTENCE_BYTES];
        dmg_compare_say(compare, (dmg_compare_sentence)which, text);
        if (text[0]) {
            fprintf(to, "%s %s\n", which == 0 ? "answer    " : "          ", text);
        }
    }
}

static void print_row(FILE *to, const dmg_compare *compare, uint32_t algorithm, uint32_t cns, uint32_t configuration,
                      const dmg_contest *contest)
{
    const dmg_compare_cell *cell = dmg_compare_cell_of(compare, configuration, algorithm, cns, DMG_VARIANT_AS_IT_IS);
    dmg_compare_split split = dmg_compare_split_of(compare, configuration, algorithm, cns);
    const dmg_spread *times = &contest->times[configuration];
    fprintf(to, "%-9s %4" PRIu32 "  %-22s %9s %9s %9s %6.2f%c %9s %9s %9s %12s %10s\n", compare->algorithms[algorithm],
            compare->cns[cns], compare->configurations[configuration].name, dmg_text_seconds(times->median).text,
            dmg_text_seconds(times->least).text, dmg_text_seconds(times->most).text,
            times->median / contest->times[contest->winner].median,
            configuration != contest->winner ? ' '
            : contest->is_clear              ? '*'
                                             : '=',
            dmg_text_seconds(split.compute).text, dmg_text_seconds(split.software).text,
            dmg_text_seconds(split.link).text,
            dmg_text_count(cell->counters.operations[DMG_OPERATION_READ] +
                           cell->counters.operations[DMG_OPERATION_WRITE] + cell->counters.in_place_spans)
                .text,
            dmg_text_bytes(cell->counters.bytes[DMG_OPERATION_READ] + cell->counters.bytes[DMG_OPERATION_WRITE] +
                           cell->counters.in_place_bytes)
                .text);
}

void dmg_compare_print(FILE *to, const dmg_compare *compare)
{
    print_answer(to, compare);
    print_head(to, compare);
    fprintf(to, "\n%-9s %4s  %-22s %9s %9s %9s %7s %9s %9s %9s %12s %10s\n", "algorithm", "CNs", "over", "median",
            "least", "most", "times", "compute", "software", "link", "accesses", "bytes");
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
            dmg_compare_times times = dmg_compare_times_of(compare, algorithm, cns, DMG_VARIANT_AS_IT_IS);
            dmg_contest contest = dmg_contest_judge(&times);
            for (uint32_t i = 0; i < compare->configuration_count; i++) {
                print_row(to, compare, algorithm, cns, i, &contest);
            }
        }
    }
    fprintf(to,
            "\nIterations only, %" PRIu32 " round%s in turns; times: of the fastest (*: in every round; =: within the "
            "spread). Compute and software are this machine's, link is emulated. In all %s.\n",
            compare->rounds, compare->rounds == 1 ? "" : "s", dmg_text_seconds(compare->seconds).text);
}

/* ---- for programs ---- */

static json_t *reals_json(const double *values, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(list, json_real(values[i]));
    }
    return list;
}

static json_t *point_json(const dmg_compare_point *point)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "operation", point->operation, "bytes",
                     (json_int_t)point->bytes, "depth", (json_int_t)point->depth, "threads", (json_int_t)point->threads,
                     "min_ns", point->least_ns, "p50_ns", point->median_ns, "p99_ns", point->p99_ns, "p999_ns",
                     point->p999_ns, "mops", point->mops, "gbs", point->gbs);
}

static json_t *configuration_json(const dmg_compare_configuration *configuration)
{
    static const char *const sweeps[DMG_SWEEPS] = {"latencies", "load", "sizes"};
    const dmg_compare_proof *proof = &configuration->proof;
    json_t *object = json_pack("{s:o, s:o, s:o, s:b, s:o}", "name", dmg_json_text(configuration->name), "transport",
                               dmg_json_text(configuration->transport), "link", dmg_json_text(configuration->link),
                               "emulated", configuration->has_link, "chosen", dmg_json_text(configuration->chosen));
    json_object_set_new(object, "self_test",
                        proof->is_there ? json_pack("{s:I, s:I, s:I, s:I, s:f}", "pass", (json_int_t)proof->passed,
                                                    "fail", (json_int_t)proof->failed, "inconclusive",
                                                    (json_int_t)proof->inconclusive, "not_emulable",
                                                    (json_int_t)proof->not_emulable, "worst_error", proof->worst_error)
                                        : json_null());
    for (int sweep = 0; sweep < DMG_SWEEPS; sweep++) {
        json_t *list = json_array();
        for (uint32_t i = 0; i < configuration->sweeps[sweep].count; i++) {
            json_array_append_new(list, point_json(&configuration->sweeps[sweep].points[i]));
        }
        json_object_set_new(object, sweeps[sweep], list);
    }
    return object;
}

static json_t *cell_json(const dmg_compare *compare, uint32_t configuration, uint32_t algorithm, uint32_t cns,
                         dmg_compare_variant variant)
{
    const dmg_compare_cell *cell = dmg_compare_cell_of(compare, configuration, algorithm, cns, variant);
    return json_pack(
        "{s:s, s:I, s:o, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "algorithm", compare->algorithms[algorithm], "cns",
        (json_int_t)compare->cns[cns], "configuration", dmg_json_text(compare->configurations[configuration].name),
        "variant", dmg_compare_variant_name(variant), "iterations", (json_int_t)cell->iterations, "arcs",
        (json_int_t)cell->arcs, "seconds", reals_json(cell->seconds, cell->count), "wait_seconds",
        reals_json(cell->waits, cell->count), "accounted_seconds", reals_json(cell->accounted, cell->count),
        "total_seconds", reals_json(cell->totals, cell->count), "counters", dmg_counters_json(&cell->counters, true));
}

static json_t *answer_json(const dmg_compare *compare)
{
    dmg_compare_times times = dmg_compare_times_of_all(compare, 0, DMG_VARIANT_AS_IT_IS);
    dmg_contest contest = dmg_contest_judge(&times);
    double flip = dmg_compare_flip_factor(compare);
    json_t *sentences = json_array();
    for (int which = 0; which < DMG_SENTENCES; which++) {
        char text[DMG_COMPARE_SENTENCE_BYTES];
        dmg_compare_say(compare, (dmg_compare_sentence)which, text);
        if (text[0]) {
            json_array_append_new(sentences, dmg_json_text(text));
        }
    }
    return json_pack("{s:o, s:o, s:b, s:f, s:f, s:f, s:o, s:f, s:b, s:o}", "winner",
                     dmg_json_text(compare->configurations[contest.winner].name), "second",
                     dmg_json_text(compare->configurations[contest.second].name), "clear", contest.is_clear, "ratio",
                     contest.ratio.median, "ratio_least", contest.ratio.least, "ratio_most", contest.ratio.most,
                     "flip_factor", isfinite(flip) ? json_real(flip) : json_null(), "uncertainty",
                     compare->settings->values[DMG_OPTION_UNCERTAINTY].real, "accounted",
                     dmg_compare_is_accounted(compare), "sentences", sentences);
}

json_t *dmg_compare_json(const dmg_compare *compare)
{
    json_t *configurations = json_array();
    json_t *runs = json_array();
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        json_array_append_new(configurations, configuration_json(&compare->configurations[i]));
        for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
            for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
                for (int variant = 0; variant < DMG_VARIANTS; variant++) {
                    if (dmg_compare_cell_of(compare, i, algorithm, cns, (dmg_compare_variant)variant)->count > 0) {
                        json_array_append_new(runs,
                                              cell_json(compare, i, algorithm, cns, (dmg_compare_variant)variant));
                    }
                }
            }
        }
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:I, s:f, s:o, s:o}", "dmgraph", DMGRAPH_VERSION, "answer",
                     answer_json(compare), "graph", dmg_graph_source_json(compare->path, &compare->source), "host",
                     dmg_json_text(compare->host), "date", compare->date, "rounds", (json_int_t)compare->rounds,
                     "seconds", compare->seconds, "configurations", configurations, "runs", runs);
}
