#include "cli/compare/sensitivity.h"

#include <math.h>

#define FLIP_STEPS 40

static double predicted_ns(const dmg_predict_run *run, const dmg_link_settings *link)
{
    dmg_prediction prediction;
    dmg_predict(run, link, run->mns, run->cns, &prediction);
    return prediction.total_ns;
}

double dmg_link_work_seconds(const dmg_link_work *work, const dmg_link_settings *link)
{
    const dmg_predict_run *run = work->run;
    double own_ns = run->has_link ? predicted_ns(run, &run->ran_on) : 0;
    double factor = own_ns > 0 ? predicted_ns(run, link) / own_ns : 1;
    return fmax(work->bare_seconds, work->linked_seconds * factor);
}

/** Nanoseconds: a latency, or a tail of one. */
static bool is_time(int cell)
{
    return cell <= DMG_LINK_MESSAGE_LATENCY || (cell >= DMG_LINK_READ_P99 && cell <= DMG_LINK_WRITE_P999);
}

dmg_link_settings dmg_link_scaled(const dmg_link_settings *link, double latency_factor, double capacity_divisor)
{
    dmg_link_settings scaled = *link;
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        scaled.cells[cell] *= is_time(cell) ? latency_factor : 1 / capacity_divisor;
    }
    return scaled;
}

/** The logarithm of the mean of how many times the second takes longer, with both links off by the factor. */
static double modelled_lead(const dmg_link_pair *pair, double factor)
{
    double sum = 0;
    for (uint32_t i = 0; i < pair->count; i++) {
        const dmg_link_work *winner = &pair->winner[i];
        const dmg_link_work *second = &pair->second[i];
        dmg_link_settings worse = dmg_link_scaled(&winner->run->ran_on, factor, factor);
        dmg_link_settings better = dmg_link_scaled(&second->run->ran_on, 1 / factor, 1 / factor);
        sum += log(dmg_link_work_seconds(second, &better) / dmg_link_work_seconds(winner, &worse));
    }
    return pair->count > 0 ? sum / pair->count : 0;
}

double dmg_link_lead(const dmg_link_pair *pair, double factor)
{
    return pair->measured_lead * exp(modelled_lead(pair, factor) - modelled_lead(pair, 1));
}

double dmg_link_flip_factor(const dmg_link_pair *pair, double most)
{
    if (dmg_link_lead(pair, 1) <= 1) {
        return 1;
    }
    if (dmg_link_lead(pair, most) > 1) {
        return INFINITY;
    }
    double low = 1;
    double high = most;
    for (int step = 0; step < FLIP_STEPS; step++) {
        double middle = sqrt(low * high);
        if (dmg_link_lead(pair, middle) > 1) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return high;
}
