#include "cli/compare/compare.h"

#include "cli/base/text.h"

#include <inttypes.h>
#include <string.h>

#define SECONDS_WIDTH    9
#define RATIO_WIDTH      12
#define PREDICTION_WIDTH 22

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
    for (uint32_t which = 0; which < dmg_compare_sentence_count(compare); which++) {
        char text[DMG_COMPARE_SENTENCE_BYTES];
        dmg_compare_say(compare, which, text);
        if (text[0]) {
            fprintf(to, "%s %s\n", which == 0 ? "answer    " : "          ", text);
        }
    }
}

static void print_cell(FILE *to, int width, const char *text)
{
    fprintf(to, " %*s", dmg_text_width(text, width), text);
}

static void print_seconds(FILE *to, double seconds)
{
    print_cell(to, SECONDS_WIDTH, dmg_text_seconds(seconds).text);
}

/** How many times longer than the fastest: the same ratio as in the answer and in the report. */
static void print_times(FILE *to, const dmg_contest *contest, uint32_t configuration)
{
    char text[24];
    if (configuration == contest->winner) {
        snprintf(text, sizeof text, "1%c", contest->is_clear ? '*' : '=');
    } else if (contest->ratios[configuration].is_above) {
        snprintf(text, sizeof text, "%.2f ", contest->ratios[configuration].spread.median);
    } else {
        snprintf(text, sizeof text, "not resolved");
    }
    print_cell(to, RATIO_WIDTH, text);
}

static void print_row(FILE *to, const dmg_compare *compare, uint32_t algorithm, uint32_t cns, uint32_t configuration,
                      const dmg_contest *contest)
{
    const dmg_compare_cell *cell = dmg_compare_cell_of(compare, configuration, algorithm, cns, DMG_VARIANT_AS_IT_IS);
    const uint64_t *operations = cell->counters.operations;
    const uint64_t *bytes = cell->counters.bytes;
    dmg_compare_split split = dmg_compare_split_of(compare, configuration, algorithm, cns);
    const dmg_spread *times = &contest->times[configuration];
    fprintf(to, "%-9s %4" PRIu32 "  %-22s", compare->algorithms[algorithm], compare->cns[cns],
            compare->configurations[configuration].name);
    print_seconds(to, times->median);
    print_seconds(to, times->least);
    print_seconds(to, times->most);
    print_times(to, contest, configuration);
    print_seconds(to, split.compute);
    print_seconds(to, split.software);
    print_cell(to, RATIO_WIDTH, dmg_link_cost_say(&split.link).text);
    fprintf(
        to, " %12s %10s\n",
        dmg_text_count(operations[DMG_OPERATION_READ] + operations[DMG_OPERATION_WRITE] + cell->counters.mapped_spans)
            .text,
        dmg_text_bytes(bytes[DMG_OPERATION_READ] + bytes[DMG_OPERATION_WRITE] + cell->counters.mapped_bytes).text);
}

static void print_runs(FILE *to, const dmg_compare *compare)
{
    fprintf(to, "\n%-9s %4s  %-22s %9s %9s %9s %12s %9s %9s %12s %12s %10s\n", "algorithm", "CNs", "over", "median",
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
            "\nIterations only, %" PRIu32 " round%s in turns; times: as long as the fastest, the median of the rounds' "
            "ratios (*: it is the fastest in every round; =: that is not resolved). Compute and software are this "
            "machine's, link is emulated. In all %s.\n",
            compare->rounds, compare->rounds == 1 ? "" : "s", dmg_text_seconds(compare->seconds).text);
}

static void print_predictions(FILE *to, const dmg_compare *compare)
{
    char text[DMG_COMPARE_SENTENCE_BYTES];
    fprintf(to, "\n%-9s %4s", "predicted", "CNs");
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        fprintf(to, " %22s", compare->configurations[i].name);
    }
    fprintf(to, " %*s\n", RATIO_WIDTH, "second/first");
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (uint32_t n = 0; n < compare->predict_cns_count; n++) {
            dmg_compare_prediction all = dmg_compare_predict(compare, algorithm, compare->predict_cns[n]);
            fprintf(to, "%-9s %4" PRIu32, compare->algorithms[algorithm], compare->predict_cns[n]);
            for (uint32_t i = 0; i < compare->configuration_count; i++) {
                snprintf(text, sizeof text, "%s (%s)", dmg_text_seconds(all.seconds[i]).text,
                         dmg_predict_part_name(all.bound[i]));
                print_cell(to, PREDICTION_WIDTH, text);
            }
            snprintf(text, sizeof text, all.is_resolved ? "%.2f" : "not resolved", all.ratio);
            print_cell(to, RATIO_WIDTH, text);
            fputc('\n', to);
        }
    }
    dmg_compare_say_predictions(compare, text);
    fprintf(to, "\n%s\n", text);
}

void dmg_compare_print(FILE *to, const dmg_compare *compare)
{
    print_answer(to, compare);
    print_head(to, compare);
    print_runs(to, compare);
    print_predictions(to, compare);
}
