/* What the model of predict_model.h makes of a comparison with other numbers of compute nodes. */
#include "cli/compare/compare.h"

#include "cli/base/text.h"
#include "cli/compare/figures.h"

#include <inttypes.h>
#include <math.h>

#define NANOSECONDS_SECOND 1e9

uint32_t dmg_compare_predict_base(const dmg_compare *compare)
{
    uint32_t base = 0;
    for (uint32_t i = 1; i < compare->cns_count; i++) {
        base = compare->cns[i] > compare->cns[base] ? i : base;
    }
    return base;
}

static dmg_prediction predict_one(const dmg_predict_run *run, uint32_t cns)
{
    dmg_prediction prediction;
    dmg_predict(run, run->has_link ? &run->ran_on : NULL, run->mns, cns, &prediction);
    return prediction;
}

/** How far the model is off at the numbers of nodes and over the links of the runs themselves. */
typedef struct model_error {
    double least, most; /* of all configurations and algorithms: predicted by measured */
    double limit;       /* a ratio between two predictions that exceeds 1 by less than that is not resolved */
} model_error;

static model_error error_of(const dmg_compare *compare)
{
    uint32_t base = dmg_compare_predict_base(compare);
    model_error error = {.least = INFINITY};
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
            const dmg_predict_run *run = dmg_compare_model_run_of(compare, i, algorithm, base);
            double by = run->measured_ns > 0 ? predict_one(run, run->cns).total_ns / run->measured_ns : 1;
            error.least = fmin(error.least, by);
            error.most = fmax(error.most, by);
        }
    }
    error.limit = fmax(DMG_COMPARE_MODEL_ERROR, error.least > 0 ? error.most / error.least - 1 : INFINITY);
    return error;
}

dmg_compare_prediction dmg_compare_predict(const dmg_compare *compare, uint32_t algorithm, uint32_t cns)
{
    dmg_compare_prediction all = {0};
    dmg_compare_times times = {.configurations = compare->configuration_count, .rounds = 1};
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        dmg_prediction one =
            predict_one(dmg_compare_model_run_of(compare, i, algorithm, dmg_compare_predict_base(compare)), cns);
        all.seconds[i] = times.seconds[i][0] = one.total_ns / NANOSECONDS_SECOND;
        all.bound[i] = one.bound;
    }
    dmg_contest contest = dmg_contest_judge(&times);
    all.winner = contest.winner;
    all.ratio = contest.ratio.median;
    all.is_resolved = isfinite(all.ratio) && all.ratio > 1 + error_of(compare).limit;
    return all;
}

void dmg_compare_say_predictions(const dmg_compare *compare, char text[DMG_COMPARE_SENTENCE_BYTES])
{
    uint32_t cns = compare->cns[dmg_compare_predict_base(compare)];
    uint32_t mns = dmg_compare_model_run_of(compare, 0, 0, 0)->mns;
    model_error error = error_of(compare);
    text[0] = '\0';
    dmg_sentence_add(text,
                     "Predicted, not run: start and iterations of the fastest run with %" PRIu32 " compute node%s, as "
                     "'dmgraph predict' does it (docs/predict.md), with %" PRIu32 " memory node%s as in that run. "
                     "There the model gives %.2f to %.2f of what was measured, so a difference of less than %.0f %% is "
                     "not resolved. Computing and software are taken to be as on this machine: this is no statement "
                     "about the links alone.",
                     cns, cns == 1 ? "" : "s", mns, mns == 1 ? "" : "s", error.least, error.most, 100 * error.limit);
    if (cns == 1) {
        dmg_sentence_add(text, " With one compute node no update left a partition: for more of them the times are "
                               "lower bounds; --cns 1,2 lets it predict from a run with two.");
    }
}

/* ---- the panel ---- */

static void write_row(FILE *to, const dmg_compare *compare, uint32_t algorithm, uint32_t cns)
{
    dmg_compare_prediction all = dmg_compare_predict(compare, algorithm, cns);
    fputs("<tr><td>", to);
    dmg_compare_write_row_name(to, compare, algorithm, cns);
    fputs("</td>", to);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        dmg_compare_write_cell(to, compare, i, all.is_resolved && i == all.winner);
        dmg_markup_text(to, dmg_text_seconds(all.seconds[i]).text);
        fprintf(to, "<br/><small>%s</small></td>", dmg_predict_part_name(all.bound[i]));
    }
    fputs("<td><span class=\"only\">second / first</span>", to);
    if (all.is_resolved) {
        fprintf(to, "%.2f</td></tr>\n", all.ratio);
    } else {
        fputs("<small>not resolved</small></td></tr>\n", to);
    }
}

void dmg_compare_write_predictions(FILE *to, const dmg_compare *compare)
{
    char text[DMG_COMPARE_SENTENCE_BYTES];
    dmg_compare_say_predictions(compare, text);
    fputs("<h2>With other numbers of compute nodes</h2>\n<p>", to);
    dmg_markup_text(to, text);
    fputs("</p>\n", to);
    dmg_compare_write_columns(to, compare);
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (uint32_t i = 0; i < compare->predict_cns_count; i++) {
            write_row(to, compare, algorithm, compare->predict_cns[i]);
        }
    }
    fputs("</table></div>\n<p><small>Below each time: what takes most of it (computing, the latency of rounds that "
          "follow each other, operations, bytes, messages, barriers). For your own numbers: <code>--predict-cns "
          "LIST</code>.</small></p>\n",
          to);
}
