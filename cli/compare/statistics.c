#include "cli/compare/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** Less is a tie: the clock, and what else runs, make as much. */
#define LEAST_LEAD 1.02

static int compare_reals(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

dmg_spread dmg_spread_of(const double *values, uint32_t count)
{
    double sorted[DMG_COMPARE_ROUNDS_MAX];
    dmg_spread spread = {.count = count < DMG_COMPARE_ROUNDS_MAX ? count : DMG_COMPARE_ROUNDS_MAX};
    if (spread.count == 0) {
        return spread;
    }
    memcpy(sorted, values, spread.count * sizeof *sorted);
    qsort(sorted, spread.count, sizeof *sorted, compare_reals);
    uint32_t middle = spread.count / 2;
    spread.median = spread.count % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    spread.least = sorted[0];
    spread.most = sorted[spread.count - 1];
    return spread;
}

/** Fewer rounds agree by chance too often: two of them in every second comparison of equals. */
#define ROUNDS_THAT_AGREE 5

/** Whether the ratio is further from 1 than the rounds are from each other. */
static bool is_beyond_spread(const dmg_spread *spread)
{
    return fabs(log(spread->median)) > log(spread->most / spread->least);
}

dmg_ratio dmg_ratio_judge(const double *ratios, uint32_t count)
{
    dmg_ratio ratio = {.spread = dmg_spread_of(ratios, count)};
    bool is_sure =
        ratio.spread.count >= ROUNDS_THAT_AGREE || (ratio.spread.count > 1 && is_beyond_spread(&ratio.spread));
    ratio.is_above = is_sure && ratio.spread.least > 1 && ratio.spread.median > LEAST_LEAD;
    ratio.is_below = is_sure && ratio.spread.most < 1 && ratio.spread.median < 1 / LEAST_LEAD;
    return ratio;
}

dmg_contest dmg_contest_judge(const dmg_compare_times *times)
{
    dmg_contest contest = {0};
    for (uint32_t i = 0; i < times->configurations; i++) {
        contest.times[i] = dmg_spread_of(times->seconds[i], times->rounds);
        if (contest.times[i].median < contest.times[contest.winner].median) {
            contest.winner = i;
        }
    }
    contest.second = contest.winner;
    for (uint32_t i = 0; i < times->configurations; i++) {
        bool is_better =
            contest.second == contest.winner || contest.times[i].median < contest.times[contest.second].median;
        contest.second = i != contest.winner && is_better ? i : contest.second;
    }
    for (uint32_t i = 0; i < times->configurations; i++) {
        double ratios[DMG_COMPARE_ROUNDS_MAX];
        for (uint32_t round = 0; round < times->rounds; round++) {
            ratios[round] = times->seconds[i][round] / times->seconds[contest.winner][round];
        }
        contest.ratios[i] = dmg_ratio_judge(ratios, times->rounds);
    }
    contest.ratio = contest.ratios[contest.second].spread;
    contest.is_clear = contest.ratios[contest.second].is_above;
    return contest;
}

dmg_compare_times dmg_compare_times_mean(const dmg_compare_times *all, uint32_t count)
{
    dmg_compare_times mean = {.configurations = all[0].configurations, .rounds = all[0].rounds};
    for (uint32_t i = 0; i < mean.configurations; i++) {
        for (uint32_t round = 0; round < mean.rounds; round++) {
            double sum = 0;
            for (uint32_t piece = 0; piece < count; piece++) {
                sum += log(all[piece].seconds[i][round]);
            }
            mean.seconds[i][round] = exp(sum / count);
        }
    }
    return mean;
}
