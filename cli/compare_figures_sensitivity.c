/* The figures about what would be were the links a little different: the model's curves, and emulated points. */
#include "cli/compare_figures.h"

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
        dmg_link_work work = dmg_compare_work_of(compare, configuration, algorithm);
        dmg_link_settings changed = dmg_link_scaled(&work.run->ran_on, latency, capacity);
        sum += log(dmg_link_work_seconds(&work, &changed));
    }
    return exp(sum / compare->algorithm_count);
}

/** The same of runs. Changed links were run in few rounds: each is held against its own round, and the ratio against
 * the median; what was accounted for is added as it is. */
static double emulated_mean(const dmg_compare *compare, uint32_t configuration, dmg_compare_variant variant)
{
    double sum = 0;
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        const dmg_compare_cell *cell = dmg_compare_cell_of(compare, configuration, algorithm, 0, DMG_VARIANT_AS_IT_IS);
        const dmg_compare_cell *changed = dmg_compare_cell_of(compare, configuration, algorithm, 0, variant);
        double ratios[DMG_COMPARE_ROUNDS_MAX];
        if (changed->count == 0) {
            return NAN;
        }
        for (uint32_t round = 0; round < changed->count; round++) {
            ratios[round] = changed->seconds[round] / cell->seconds[round];
        }
        double seconds = dmg_spread_of(cell->seconds, cell->count).median;
        double accounted = dmg_compare_accounted(cell);
        sum += log(accounted > 0 ? seconds - accounted + dmg_compare_accounted(changed)
                                 : seconds * dmg_spread_of(ratios, changed->count).median);
    }
    return exp(sum / compare->algorithm_count);
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
        curve->emulated_y[0] = emulated_mean(compare, i, DMG_VARIANT_AS_IT_IS);
        curve->emulated_y[1] = emulated_mean(compare, i, variant);
        series[2 * i] =
            (dmg_series){compare->configurations[i].name, (int)i, DMG_SERIES_PLAIN, curve->x, curve->y, STEPS};
        series[2 * i + 1] = (dmg_series){NULL, (int)i, DMG_SERIES_RINGS, curve->emulated_x, curve->emulated_y, 2};
        double at_change = curve->y[(int)((STEPS - 1) / 2 * (1 + log2(curve->emulated_x[1]) / FACTORS_LOG2) + 0.5)];
        if (isfinite(curve->emulated_y[1])) {
            dmg_markup_print(to, "%s %s: %+.0f %% when %s, the model says %+.0f %%", i == 0 ? "" : ";",
                             compare->configurations[i].name, 100 * (curve->emulated_y[1] / curve->emulated_y[0] - 1),
                             is_latency ? "doubled" : "halved", 100 * (at_change / curve->emulated_y[0] - 1));
        }
    }
    fputs(". Curves are the model, rings were run; a curve that stays flat does not depend on this.", to);
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

/** How many times the second takes longer, with both links off in its favour. */
static void write_lead(FILE *to, const dmg_compare *compare)
{
    dmg_compare_times times = dmg_compare_times_of_all(compare, 0, DMG_VARIANT_AS_IT_IS);
    dmg_contest contest = dmg_contest_judge(&times);
    double x[STEPS];
    double y[STEPS];
    double even_x[2] = {1, LEAD_MOST};
    double even_y[2] = {1, 1};
    for (int step = 0; step < STEPS; step++) {
        x[step] = pow(LEAD_MOST, (double)step / (STEPS - 1));
        y[step] = modelled_mean(compare, contest.second, 1 / x[step], 1 / x[step]) /
                  modelled_mean(compare, contest.winner, x[step], x[step]);
    }
    const dmg_series series[] = {{"lead", (int)contest.winner, DMG_SERIES_PLAIN, x, y, STEPS},
                                 {"even", -1, DMG_SERIES_DOTTED, even_x, even_y, 2}};
    double flip = dmg_compare_flip_factor(compare);
    double uncertainty = compare->settings->values[DMG_OPTION_UNCERTAINTY].real;
    const dmg_chart_mark marks[] = {{uncertainty, -1, "uncertainty"}, {flip, (int)contest.second, "flip"}};
    bool has_flip = flip > 1 && flip <= LEAD_MOST;
    dmg_figure_begin(to, "If the profiles were off, in disfavour of the winner");
    dmg_markup_print(to, " The lead of %s when all its numbers are worse and all numbers of %s better by a factor: ",
                     compare->configurations[contest.winner].name, compare->configurations[contest.second].name);
    if (has_flip) {
        dmg_markup_print(to, "it is gone at %.2f, %s the uncertainty of %g.", flip,
                         flip > uncertainty ? "beyond" : "within", uncertainty);
    } else if (flip <= 1) {
        fputs("there is none by the medians of time with and without links.", to);
    } else {
        dmg_markup_print(to, "it lasts beyond %g.", LEAD_MOST);
    }
    dmg_figure_chart(to);
    dmg_chart chart = {.description = "lead by how far the profiles are off",
                       .x = {.title = "all numbers are off by", .unit = DMG_AXIS_FACTOR, .is_log = true},
                       .y = {.title = "time of the second by the winner's"},
                       .series = series,
                       .series_count = 2,
                       .marks = marks,
                       .mark_count = has_flip ? 2 : 1};
    dmg_chart_fit(&chart);
    dmg_chart_write(to, &chart);
    dmg_figure_end(to);
}

void dmg_compare_write_sensitivity_figures(FILE *to, const dmg_compare *compare)
{
    fputs("<h2>Would it stay so?</h2>\n<div class=\"figures\">\n", to);
    write_lead(to, compare);
    write_sweep(to, compare, DMG_VARIANT_SLOWER);
    write_sweep(to, compare, DMG_VARIANT_NARROWER);
    fputs("</div>\n", to);
}
