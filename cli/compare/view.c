/* The runs as those want them who look at them: times, verdicts, and where the time goes. */
#include "cli/compare/compare.h"

#include <math.h>
#include <string.h>

/** Nothing took no time. */
#define LEAST_SECONDS 1e-9

/* ---- times ---- */

dmg_compare_times dmg_compare_times_of(const dmg_compare *compare, uint32_t algorithm, uint32_t cns,
                                       dmg_compare_variant variant)
{
    dmg_compare_times times = {.configurations = compare->configuration_count, .rounds = compare->rounds};
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        const dmg_compare_cell *cell = dmg_compare_cell_of(compare, i, algorithm, cns, variant);
        memcpy(times.seconds[i], cell->seconds, sizeof cell->seconds);
    }
    return times;
}

dmg_compare_times dmg_compare_times_of_all(const dmg_compare *compare, uint32_t cns, dmg_compare_variant variant)
{
    dmg_compare_times all[DMG_COMPARE_ALGORITHMS_MAX];
    for (uint32_t i = 0; i < compare->algorithm_count; i++) {
        all[i] = dmg_compare_times_of(compare, i, cns, variant);
    }
    return dmg_compare_times_mean(all, compare->algorithm_count);
}

/* ---- with and without the link ---- */

/** How the link's time is known in all rounds of some algorithms. */
static dmg_link_kind kind_of(const dmg_compare *compare, uint32_t configuration, uint32_t first, uint32_t count,
                             uint32_t cns)
{
    bool is_accounted = true;
    for (uint32_t algorithm = first; algorithm < first + count; algorithm++) {
        const dmg_compare_cell *cell =
            dmg_compare_cell_of(compare, configuration, algorithm, cns, DMG_VARIANT_AS_IT_IS);
        is_accounted &= dmg_spread_of(cell->accounted, cell->count).least > 0;
    }
    return !compare->configurations[configuration].has_link ? DMG_LINK_KIND_NONE
           : is_accounted                                   ? DMG_LINK_KIND_ACCOUNTED
                                                            : DMG_LINK_KIND_WAITED;
}

/** What was accounted for is known of each run; what was waited for shows only against the run without it of the same
 * round, which the machine may have slowed down more. */
static void bare_seconds(const dmg_compare *compare, uint32_t configuration, uint32_t algorithm, uint32_t cns,
                         double *seconds)
{
    const dmg_compare_cell *cell = dmg_compare_cell_of(compare, configuration, algorithm, cns, DMG_VARIANT_AS_IT_IS);
    const dmg_compare_cell *bare = dmg_compare_cell_of(compare, configuration, algorithm, cns, DMG_VARIANT_BARE);
    for (uint32_t round = 0; round < cell->count; round++) {
        double accounted = cell->accounted[round];
        seconds[round] = accounted > 0 ? fmax(cell->seconds[round] - accounted, LEAST_SECONDS) : bare->seconds[round];
    }
}

/** The verdict about the algorithms [first, first + count). */
static dmg_verdict verdict_of(const dmg_compare *compare, uint32_t first, uint32_t count, uint32_t cns)
{
    dmg_compare_times whole[DMG_COMPARE_ALGORITHMS_MAX];
    dmg_compare_times bare[DMG_COMPARE_ALGORITHMS_MAX];
    dmg_link_kind kinds[DMG_COMPARE_CONFIGURATIONS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        whole[i] = dmg_compare_times_of(compare, first + i, cns, DMG_VARIANT_AS_IT_IS);
        bare[i] = whole[i];
        for (uint32_t c = 0; c < compare->configuration_count; c++) {
            bare_seconds(compare, c, first + i, cns, bare[i].seconds[c]);
        }
    }
    for (uint32_t c = 0; c < compare->configuration_count; c++) {
        kinds[c] = kind_of(compare, c, first, count, cns);
    }
    return dmg_verdict_judge(whole, bare, count, kinds);
}

dmg_verdict dmg_compare_verdict_of(const dmg_compare *compare, uint32_t algorithm, uint32_t cns)
{
    return verdict_of(compare, algorithm, 1, cns);
}

dmg_verdict dmg_compare_verdict_of_all(const dmg_compare *compare, uint32_t cns)
{
    return verdict_of(compare, 0, compare->algorithm_count, cns);
}

void dmg_compare_names(const dmg_compare *compare, const char *names[DMG_COMPARE_CONFIGURATIONS_MAX])
{
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        names[i] = compare->configurations[i].name;
    }
}

/* ---- where the time goes ---- */

dmg_compare_split dmg_compare_split_of(const dmg_compare *compare, uint32_t configuration, uint32_t algorithm,
                                       uint32_t cns)
{
    const dmg_compare_cell *cell = dmg_compare_cell_of(compare, configuration, algorithm, cns, DMG_VARIANT_AS_IT_IS);
    const dmg_compare_cell *bare = dmg_compare_cell_of(compare, configuration, algorithm, cns, DMG_VARIANT_BARE);
    double without[DMG_COMPARE_ROUNDS_MAX];
    bare_seconds(compare, configuration, algorithm, cns, without);
    dmg_compare_split split = {.link = dmg_link_cost_of(kind_of(compare, configuration, algorithm, 1, cns),
                                                        cell->seconds, without, cell->count)};
    double whole = dmg_spread_of(cell->seconds, cell->count).median;
    double rest = split.link.is_resolved ? fmax(whole - split.link.spread.median, LEAST_SECONDS) : whole;
    const dmg_compare_cell *of_waits = split.link.kind == DMG_LINK_KIND_WAITED ? bare : cell;
    split.software = fmin(dmg_spread_of(of_waits->waits, of_waits->count).median, rest);
    split.compute = rest - split.software;
    return split;
}

/* ---- for the model ---- */

dmg_link_work dmg_compare_work_of(const dmg_compare *compare, uint32_t configuration, uint32_t algorithm, uint32_t cns)
{
    dmg_compare_split split = dmg_compare_split_of(compare, configuration, algorithm, cns);
    double bare = split.compute + split.software;
    return (dmg_link_work){.run = dmg_compare_model_run_of(compare, configuration, algorithm, cns),
                           .bare_seconds = bare,
                           .linked_seconds = bare + (split.link.is_resolved ? split.link.spread.median : 0)};
}

void dmg_compare_model_of(const dmg_compare *compare, const dmg_verdict *verdict, uint32_t cns,
                          dmg_compare_model *model)
{
    for (uint32_t i = 0; i < compare->algorithm_count; i++) {
        model->winner[i] = dmg_compare_work_of(compare, verdict->contest.winner, i, cns);
        model->second[i] = dmg_compare_work_of(compare, verdict->contest.second, i, cns);
    }
    model->pair = (dmg_link_pair){.winner = model->winner,
                                  .second = model->second,
                                  .count = compare->algorithm_count,
                                  .measured_lead = verdict->contest.ratio.median};
}
