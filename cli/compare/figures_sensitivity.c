/* The figures about what would be were the links a little different: the model's curves, and emulated points. */
#include "cli/compare/figures.h"

#include <inttypes.h>
#include <math.h>

#define STEPS        33
#define FACTOR_MOST  8.0
#define LEAD_MOST    16.0
#define FACTORS_LOG2 3.0 /* of FACTOR_MOST */

/** The geometric mean of all algorithms over a changed link, by the model. */
static double modelled_mean(const dmg_compare *compare, uint32_t configuration, double latency, double capacity)
{
    double sum = 0;
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        dmg_link_work work = dmg_compare_work_of(compare, configuration, algorithm, 0);
        dmg_link_settings changed = dmg_link_scaled(&work.run->ran_on, latency, capacity);
        sum += log(dmg_link_work_seconds(&work, &changed));
    }
    return exp(sum / compare->algorithm_count);
}

/** What changed links did to the runs, of all algorithms: each is held against its own round; what was accounted for is
 * exact, and only that is exchanged. */
static dmg_ratio emulated_change(const dmg_compare *compare, uint32_t configuration, dmg_compare_variant variant)
{
    double ratios[DMG_COMPARE_ROUNDS_MAX];
    uint32_t rounds = dmg_compare_cell_of(compare, configuration, 0, 0, variant)->count;
    for (uint32_t round = 0; round < rounds; round++) {
        double sum = 0;
        for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
            const dmg_compare_cell *cell =
                dmg_compare_cell_of(compare, configuration, algorithm, 0, DMG_VARIANT_AS_IT_IS);
            const dmg_compare_cell *changed = dmg_compare_cell_of(compare, configuration, algorithm, 0, variant);
            double seconds = cell->seconds[round];
            double accounted = cell->accounted[round];
            sum += log((accounted > 0 ? seconds - accounted + changed->accounted[round] : changed->seconds[round]) /
                       seconds);
        }
        ratios[round] = exp(sum / compare->algorithm_count);
    }
    return dmg_ratio_judge(ratios, rounds);
}

/** "+12 % when doubled (+10 to +14 % in 3 rounds)". */
static void write_change(FILE *to, const dmg_ratio *change, const char *when)
{
    const dmg_spread *spread = &change->spread;
    if (spread->count < 2) {
        dmg_markup_print(to, "%+.1f %% when %s (run once, so not resolved)", 100 * (spread->median - 1), when);
    } else if (change->is_above || change->is_below) {
        dmg_markup_print(to, "%+.1f %% when %s (%+.1f to %+.1f %% in %" PRIu32 " rounds)", 100 * (spread->median - 1),
                         when, 100 * (spread->least - 1), 100 * (spread->most - 1), spread->count);
    } else {
        dmg_markup_print(to, "not resolved when %s (%+.1f to %+.1f %% in %" PRIu32 " rounds)", when,
                         100 * (spread->least - 1), 100 * (spread->most - 1), spread->count);
    }
}

typedef struct sweep_curve {
    double x[STEPS], y[STEPS];
    double emulated_x[2], emulated_y[2];
} sweep_curve;

static void write_sweep(FILE *to, const dmg_compare *compare, dmg_compare_variant variant)
{
    sweep_curve curves[DMG_COMPARE_CONFIGURATIONS_MAX];
    dmg_series series[2 * DMG_COMPARE_CONFIGURATIONS_MAX];
    bool is_latency = variant == DMG_VARIANT_SLOWER;
    uint32_t said = 0;
    dmg_figure_begin(to, is_latency ? "If latencies were different" : "If bandwidths and rates were different");
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        sweep_curve *curve = &curves[i];
        for (int step = 0; step < STEPS; step++) {
            double factor = exp2(FACTORS_LOG2 * (2.0 * step / (STEPS - 1) - 1));
            curve->x[step] = factor;
            curve->y[step] = modelled_mean(compare, i, is_latency ? factor : 1, is_latency ? 1 : 1 / factor);
        }
        curve->emulated_x[0] = 1;
        curve->emulated_x[1] = is_latency ? DMG_COMPARE_CHANGE : 1 / DMG_COMPARE_CHANGE;
        dmg_ratio change = emulated_change(compare, i, variant);
        curve->emulated_y[0] = modelled_mean(compare, i, 1, 1);
        curve->emulated_y[1] = change.spread.count > 0 ? curve->emulated_y[0] * change.spread.median : NAN;
        series[2 * i] =
            (dmg_series){compare->configurations[i].name, (int)i, DMG_SERIES_PLAIN, curve->x, curve->y, STEPS};
        series[2 * i + 1] = (dmg_series){NULL, (int)i, DMG_SERIES_RINGS, curve->emulated_x, curve->emulated_y, 2};
        double at_change = curve->y[(int)((STEPS - 1) / 2 * (1 + log2(curve->emulated_x[1]) / FACTORS_LOG2) + 0.5)];
        if (isfinite(curve->emulated_y[1])) {
            dmg_markup_print(to, "%s %s: ", said++ == 0 ? "" : ";", compare->configurations[i].name);
            write_change(to, &change, is_latency ? "doubled" : "halved");
            dmg_markup_print(to, ", the model says %+.1f %%", 100 * (at_change / curve->emulated_y[0] - 1));
        }
    }
    dmg_markup_print(to,
                     "%s Curves are the model, rings were run, with %" PRIu32
                     " compute node%s; a curve that stays flat does not depend on this.",
                     said > 0 ? "." : "", compare->cns[0], compare->cns[0] == 1 ? "" : "s");
    dmg_figure_chart(to);
    dmg_chart chart = {.description = is_latency ? "time by latency" : "time by bandwidth and rates",
                       .x = {.title = is_latency ? "latencies of the profile" : "bandwidths and rates of the profile",
                             .unit = DMG_AXIS_FACTOR,
                             .is_log = true},
                       .y = {.title = "time, mean of the algorithms", .unit = DMG_AXIS_SECONDS, .is_log = true},
                       .series = series,
                       .series_count = 2 * compare->configuration_count};
    dmg_chart_fit(&chart);
    dmg_chart_write(to, &chart);
    dmg_figure_end(to);
}

/** How many times the second takes longer, with both links off in its favour. Only where the links decide. */
static void write_lead(FILE *to, const dmg_compare *compare, const dmg_verdict *verdict, uint32_t cns)
{
    const dmg_contest *contest = &verdict->contest;
    double x[STEPS];
    double y[STEPS];
    double even_x[2] = {1, LEAD_MOST};
    double even_y[2] = {1, 1};
    char title[96];
    dmg_compare_model model;
    dmg_compare_model_of(compare, verdict, cns, &model);
    for (int step = 0; step < STEPS; step++) {
        x[step] = pow(LEAD_MOST, (double)step / (STEPS - 1));
        y[step] = dmg_link_lead(&model.pair, x[step]);
    }
    const dmg_series series[] = {{"lead", (int)contest->winner, DMG_SERIES_PLAIN, x, y, STEPS},
                                 {"even", -1, DMG_SERIES_DOTTED, even_x, even_y, 2}};
    double flip = dmg_compare_flip_factor(compare, verdict, cns);
    double uncertainty = compare->settings->values[DMG_OPTION_UNCERTAINTY].real;
    const dmg_chart_mark marks[] = {{uncertainty, -1, "uncertainty"}, {flip, (int)contest->second, "flip"}};
    bool has_flip = flip > 1 && flip <= LEAD_MOST;
    snprintf(title, sizeof title, "If the profiles were off, in disfavour of the faster (%" PRIu32 " CN%s)",
             compare->cns[cns], compare->cns[cns] == 1 ? "" : "s");
    dmg_figure_begin(to, title);
    dmg_markup_print(to,
                     " The lead of %s, which is %.2f as measured, when all its numbers are worse and all numbers of %s "
                     "better by a factor: ",
                     compare->configurations[contest->winner].name, contest->ratio.median,
                     compare->configurations[contest->second].name);
    if (has_flip) {
        dmg_markup_print(to, "it is gone at %.2f, %s the uncertainty of %g.", flip,
                         flip > uncertainty ? "beyond" : "within", uncertainty);
    } else {
        dmg_markup_print(to, "it lasts beyond %g.", LEAD_MOST);
    }
    dmg_figure_chart(to);
    dmg_chart chart = {.description = "lead by how far the profiles are off",
                       .x = {.title = "all numbers are off by", .unit = DMG_AXIS_FACTOR, .is_log = true},
                       .y = {.title = "time of the second by that of the faster"},
                       .series = series,
                       .series_count = 2,
                       .marks = marks,
                       .mark_count = has_flip ? 2 : 1};
    dmg_chart_fit(&chart);
    dmg_chart_write(to, &chart);
    dmg_figure_end(to);
}

/** Where the links do not decide there is no lead of theirs to draw: the sentence says so. */
static void write_no_leads(FILE *to, const dmg_compare *compare)
{
    for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
        if (dmg_compare_verdict_of_all(compare, cns).kind != DMG_VERDICT_LINKS) {
            char text[DMG_COMPARE_SENTENCE_BYTES];
            dmg_compare_say_flip(compare, cns, text);
            fputs("<p>", to);
            dmg_markup_print(to, "With %" PRIu32 " compute node%s: ", compare->cns[cns],
                             compare->cns[cns] == 1 ? "" : "s");
            dmg_markup_text(to, text);
            fputs("</p>\n", to);
        }
    }
}

void dmg_compare_write_sensitivity_figures(FILE *to, const dmg_compare *compare)
{
    fputs("<h2>Would it stay so?</h2>\n", to);
    write_no_leads(to, compare);
    fputs("<div class=\"figures\">\n", to);
    for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
        dmg_verdict verdict = dmg_compare_verdict_of_all(compare, cns);
        if (verdict.kind == DMG_VERDICT_LINKS) {
            write_lead(to, compare, &verdict, cns);
        }
    }
    write_sweep(to, compare, DMG_VARIANT_SLOWER);
    write_sweep(to, compare, DMG_VARIANT_NARROWER);
    fputs("</div>\n", to);
}
