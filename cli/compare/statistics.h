/**
 * @file statistics.h
 * Times of several configurations, taken in turns: what is usual, how far it spreads, and which configuration wins.
 *
 * Machines have moods, so that times of one round resemble each other more than those of different rounds. Therefore
 * configurations are compared round by round, and only the ratios are put together.
 */
#ifndef DMG_CLI_COMPARE_STATISTICS_H
#define DMG_CLI_COMPARE_STATISTICS_H

#include <stdbool.h>
#include <stdint.h>

#define DMG_COMPARE_CONFIGURATIONS_MAX 6
#define DMG_COMPARE_ROUNDS_MAX         25

/** A median, and the least and the most beside it. */
typedef struct dmg_spread {
    double median; /**< of an even count, the mean of the two in the middle; 0 of none */
    double least, most;
    uint32_t count;
} dmg_spread;

/** Of at most DMG_COMPARE_ROUNDS_MAX values, in any order. */
dmg_spread dmg_spread_of(const double *values, uint32_t count);

/** The times of one piece of work: [configuration][round], in seconds, all above 0. */
typedef struct dmg_compare_times {
    double seconds[DMG_COMPARE_CONFIGURATIONS_MAX][DMG_COMPARE_ROUNDS_MAX];
    uint32_t configurations; /**< 1 or more */
    uint32_t rounds;         /**< 1 or more */
} dmg_compare_times;

/** A ratio, taken round by round, and what the rounds say of it. With neither flag the difference is not resolved. */
typedef struct dmg_ratio {
    dmg_spread spread;
    bool is_above; /**< above 1: in every round, of at least two, and by more than 2 per cent as a rule; with less than
                      five rounds, also by more than the rounds differ */
    bool is_below; /**< below 1 in the same sense */
} dmg_ratio;

dmg_ratio dmg_ratio_judge(const double *ratios, uint32_t count);

/** Who won. */
typedef struct dmg_contest {
    dmg_spread times[DMG_COMPARE_CONFIGURATIONS_MAX];
    dmg_ratio ratios[DMG_COMPARE_CONFIGURATIONS_MAX]; /**< each one's time by the winner's; 1 of the winner */
    uint32_t winner;                                  /**< the least median; the first of equals */
    uint32_t second;                                  /**< the next one; the winner itself when it is alone */
    dmg_spread ratio;                                 /**< the second's time by the winner's */
    bool is_clear;                                    /**< that ratio is above 1 (dmg_ratio) */
} dmg_contest;

dmg_contest dmg_contest_judge(const dmg_compare_times *times);

/** The geometric mean of several pieces of work, round by round: `all` has as many configurations and rounds in each
 * piece. */
dmg_compare_times dmg_compare_times_mean(const dmg_compare_times *all, uint32_t count);

#endif
