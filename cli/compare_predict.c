/* What the model of predict_model.h makes of a comparison with other numbers of compute nodes. */
#include "cli/compare.h"

#include "cli/compare_figures.h"
#include "cli/text.h"

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
    all.second = contest.second;
    all.ratio = contest.ratio.median;
    all.is_resolved = isfinite(all.ratio) && all.ratio > 1 + DMG_COMPARE_MODEL_ERROR;
    return all;
}

dmg_spread dmg_compare_predict_error(const dmg_compare *compare)
{
    uint32_t base = dmg_compare_predict_base(compare);
    dmg_spread error = {.least = INFINITY};
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
            const dmg_predict_run *run = dmg_compare_model_run_of(compare, i, algorithm, base);
            double by = run->measured_ns > 0 ? predict_one(run, run->cns).total_ns / run->measured_ns : 1;
            error.least = fmin(error.least, by);
            error.most = fmax(error.most, by);
            error.count++;
        }
    }
    return error;
}

void dmg_compare_say_predictions(const dmg_compare *compare, char text[DMG_COMPARE_SENTENCE_BYTES])
{
    uint32_t cns = compare->cns[dmg_compare_predict_base(compare)];
    uint32_t mns = dmg_compare_model_run_of(compare, 0, 0, 0)->mns;
    dmg_spread error = dmg_compare_predict_error(compare);
    text[0] = '\0';
    dmg_sentence_add(text,
                     "Predicted, not run: start and iterations of the fastest run with %" PRIu32 " compute node%s, as "
                     "'dmgraph predict' does it (docs/predict.md), with %" PRIu32 " memory node%s as in that run. "
                     "There the model gives %.2f to %.2f of what was measured. Computing and software are taken to be "
                     "as on this machine; a difference of less than %.0f %%, the model's usual error, is not resolved.",
                     cns, cns == 1 ? "" : "s", mns, mns == 1 ? "" : "s", error.least, error.most,
                     100 * DMG_COMPARE_MODEL_ERROR);
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
    dmg_markup_text(to, compare->algorithms[algorithm]);
    fprintf(to, "</td><td>%" PRIu32 "</td>", cns);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        fputs(all.is_resolved && i == all.winner ? "<td class=\"win\">" : "<td>", to);
        dmg_markup_text(to, dmg_text_seconds(all.seconds[i]).text);
        fprintf(to, "<br/><small>%s</small></td>", dmg_predict_part_name(all.bound[i]));
    }
    if (all.is_resolved) {
        fprintf(to, "<td>%.2f</td></tr>\n", all.ratio);
    } else {
        fputs("<td><small>not resolved</small></td></tr>\n", to);
    }
}

void dmg_compare_write_predictions(FILE *to, const dmg_compare *compare)
{
    char text[DMG_COMPARE_SENTENCE_BYTES];
    dmg_compare_say_predictions(compare, text);
    fputs("<h2>With other numbers of compute nodes</h2>\n<p>", to);
    dmg_markup_text(to, text);
    fputs("</p>\n<div class=\"wide\"><table><tr><th>algorithm</th><th>CNs</th>", to);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        fprintf(to, "<th><span class=\"c%" PRIu32 "\">", i);
        dmg_markup_text(to, compare->configurations[i].name);
        fputs("</span></th>", to);
    }
    fputs("<th>second / first</th></tr>\n", to);
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
