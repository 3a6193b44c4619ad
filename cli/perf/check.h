/**
 * @file check.h
 * The check of perf itself: whether what it says about operations one after the other agrees.
 *
 * Three figures say how long a lone operation takes, and each is got in a way of its own: the median of operations that
 * were timed one by one, the time of a chain of them by their number (1/rate), in which each needs the answer of the
 * one before and none is timed, and the self-test's figure of this host. A clock that is read too early, before a load
 * has arrived, makes the first too small and leaves the second.
 */
#ifndef DMG_CLI_PERF_CHECK_H
#define DMG_CLI_PERF_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Two figures agree when they are at most this part of the larger one apart, or a step of the clock more. */
#define DMG_PERF_AGREEMENT 0.2

/** Nanoseconds. */
typedef struct dmg_perf_figures {
    double median_ns;
    double rate_ns; /**< 1/rate, of the whole measurement as it is reported */
    double host_ns; /**< as the self-test measures it */
    /* Of short windows in which the thread kept its processor. */
    double clean_rate_ns; /**< 1/rate */
    double clean_mean_ns; /**< of the operations that were timed one by one */
    double step_ns;       /**< of the clock */
    uint32_t clean_windows, windows;
    /** Another process answers: its sleeps and its place in a queue are part of the figures, and differ. */
    bool is_answered;
} dmg_perf_figures;

typedef enum dmg_perf_verdict {
    DMG_PERF_AGREES,
    /** 1/rate is too long, and in windows in which the thread kept its processor it is not; or these agree, and
     * the self-test met a less or more busy memory. */
    DMG_PERF_DISTURBED,
    /** The median is below 1/rate, and the mean of what was timed one by one is not: slow operations, not the clock. */
    DMG_PERF_UNEVEN,
    /** They differ, and there were too few undisturbed windows to say why, or it is up to the process that answers. */
    DMG_PERF_UNDECIDED,
    DMG_PERF_DIFFERS, /**< the measurement is wrong */
    DMG_PERF_VERDICTS
} dmg_perf_verdict;

dmg_perf_verdict dmg_perf_judge(const dmg_perf_figures *figures);

/** "agrees", "disturbed", "uneven", "undecided", "differs". */
const char *dmg_perf_verdict_name(dmg_perf_verdict verdict);

/** The three numbers, that they do not agree, and why: for people. Only for verdicts other than DMG_PERF_AGREES. */
void dmg_perf_check_sentence(const dmg_perf_figures *figures, dmg_perf_verdict verdict, char *text, size_t capacity);

#endif
