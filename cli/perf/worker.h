/**
 * @file worker.h
 * One thread that measures: operations in flight or one after the other, and how long they took. Shared by
 * perf_worker.c and perf_measure.c.
 */
#ifndef DMG_CLI_PERF_WORKER_H
#define DMG_CLI_PERF_WORKER_H

#include "cli/perf/histogram.h"
#include "cli/perf/perf.h"
#include "core/base/ticks.h"

/** Pairs of windows at most. */
#define DMG_PERF_PAIRS_MOST 32

/** An operation in flight. */
typedef struct dmg_perf_slot {
    dmg_completion completion;
    dmg_call call;
    uint64_t posted;
    uint64_t word;
    char *buffer;
} dmg_perf_slot;

/** Two windows of operations one after the other: ticks of one, by its own times and by the chain. */
typedef struct dmg_perf_pair {
    double timed, chained;
    bool is_timed_clean, is_chained_clean;
} dmg_perf_pair;

typedef struct dmg_perf_worker {
    const dmg_perf_region *region;
    dmg_perf_point point;
    dmg_channel *channel;
    bool are_cycles;
    dmg_ticks_costs clock;
    bool is_held_back;    /* as that of the region, and really waited for */
    uint64_t pause;       /* ticks */
    uint64_t least_gap;   /* ticks */
    uint64_t usual;       /* what an operation took to warm up; ticks, 0 before */
    uint64_t look;        /* ticks */
    uint32_t chain_steps; /* operations between two looks at the clock */
    uint64_t step, places;
    uint64_t random;
    uint64_t carried; /* from what the last operation brought */
    dmg_perf_slot *slots;
    char *buffers;
    dmg_perf_histogram histogram;
    /* Of the last window; with pairs of windows, of all chains. */
    uint64_t operations;
    uint64_t skipped; /* of them, ended before the clock started */
    uint64_t elapsed; /* ticks */
    bool has_gap;
    dmg_perf_pair *pairs;
    uint32_t pair_count;
    dmg_status status;
} dmg_perf_worker;

/** Open a channel, and get room for the point's buffers. Close it whatever came out. */
dmg_status dmg_perf_worker_open(dmg_perf_worker *worker, const dmg_perf_region *region, const dmg_perf_point *point,
                                uint64_t seed, bool are_cycles, double ticks_a_second);
/** A zeroed one is allowed. */
void dmg_perf_worker_close(dmg_perf_worker *worker);

/** Before anything else; finds out what is usual. Durations are in ticks, and `status` says how it went. */
void dmg_perf_worker_warm_up(dmg_perf_worker *worker, uint64_t duration);
/** A window of operations that are timed, or of a depth in flight. Returns whether the thread kept its processor. */
bool dmg_perf_worker_run(dmg_perf_worker *worker, uint64_t duration);
/** Windows of operations one after the other, timed and chained in turns; a pair takes `pair_least` or longer. */
void dmg_perf_worker_run_pairs(dmg_perf_worker *worker, uint64_t duration, uint64_t pair_least);
/** Of the windows of one kind in which the thread kept its processor, the median and their number; ticks. */
double dmg_perf_worker_clean(const dmg_perf_worker *worker, bool is_chained, uint32_t *count);

#endif
