/**
 * @file compare_sensitivity.h
 * What a run would take were its link a little different: a model of its counters, and where a comparison flips.
 *
 * The model has two terms: what a link serves one after the other (bytes and operations against its limits), and how
 * often a worker waits for a latency. How much of the second is hidden behind other work is not known beforehand, and
 * taken from the run itself: the model gives what was measured for the link that was measured.
 */
#ifndef DMG_CLI_COMPARE_SENSITIVITY_H
#define DMG_CLI_COMPARE_SENSITIVITY_H

#include "transport/counters.h"
#include "transport/link.h"

/** A run as the model sees it. */
typedef struct dmg_link_work {
    dmg_counters counters; /**< of the run, over all compute nodes */
    uint32_t workers;      /**< of all compute nodes */
    uint32_t memory_nodes;
    double bare_seconds;   /**< without a link */
    double linked_seconds; /**< over `link` */
    dmg_link_settings link;
} dmg_link_work;

/** The seconds that the run would take over another link. At the link of the run: linked_seconds, but at least
 * bare_seconds. */
double dmg_link_work_seconds(const dmg_link_work *work, const dmg_link_settings *link);

/** The same link with latencies multiplied by one factor, and bandwidths and rates divided by another. */
dmg_link_settings dmg_link_scaled(const dmg_link_settings *link, double latency_factor, double capacity_divisor);

/**
 * By what factor all numbers of two links must be off, each in the disfavour of the winner (its own link slower, the
 * other one faster), until the geometric mean of all pieces of work is no longer in its favour.
 *
 * @param winner, second  of `count` pieces of work, over the same graph and algorithms
 * @param most            where the search ends
 * @return 1 when the winner loses as it is; more than `most`, to be exact infinity, when it wins up to there
 */
double dmg_link_flip_factor(const dmg_link_work *winner, const dmg_link_work *second, uint32_t count, double most);

#endif
