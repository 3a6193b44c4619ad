/**
 * @file sensitivity.h
 * What a run would take were its link a little different, and where a comparison flips.
 *
 * It stands on the model of predict_model.h, from the run's own report. That model has an error of its own, so only its
 * ratio between two links is used, and the measured time is scaled by it:
 *
 *     seconds(link') = max(bare, measured x predicted(link') / predicted(link))
 *
 * A factor, and not a difference: the model's error is a share of the time (docs/predict.md), and so cancels. At the
 * run's own link that is what was measured. No link makes a run faster than none: the least is what the same work took
 * without it, which was measured, too.
 */
#ifndef DMG_CLI_COMPARE_SENSITIVITY_H
#define DMG_CLI_COMPARE_SENSITIVITY_H

#include "model/predict_model.h"

/** A run whose link is varied. */
typedef struct dmg_link_work {
    const dmg_predict_run *run; /**< what it counted, and the link that it ran on; not owned */
    double bare_seconds;        /**< measured without a link */
    double linked_seconds;      /**< measured over its link */
} dmg_link_work;

/**
 * The seconds that the run would take over another link: over its own, linked_seconds, but at least bare_seconds. A run
 * without a link takes as long over all.
 */
double dmg_link_work_seconds(const dmg_link_work *work, const dmg_link_settings *link);

/** The same link with latencies and their tails multiplied by one factor, and bandwidths and rates divided by another.
 */
dmg_link_settings dmg_link_scaled(const dmg_link_settings *link, double latency_factor, double capacity_divisor);

/** The two leading configurations, over the same graph and algorithms. */
typedef struct dmg_link_pair {
    const dmg_link_work *winner, *second; /**< [count]; not owned */
    uint32_t count;
    double measured_lead; /**< the second's time by the winner's, as it is reported; above 0 */
} dmg_link_pair;

/**
 * The lead with all numbers of both links off by a factor in the disfavour of the winner: its own link slower, the
 * other one faster. The geometric mean of all pieces of work; at a factor of 1 it is the measured lead.
 */
double dmg_link_lead(const dmg_link_pair *pair, double factor);

/**
 * By what factor the numbers must be off until that lead is gone.
 *
 * @param most  where the search ends
 * @return 1 when there is none as it is; more than `most`, to be exact infinity, when it lasts up to there
 */
double dmg_link_flip_factor(const dmg_link_pair *pair, double most);

#endif
