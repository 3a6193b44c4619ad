/**
 * @file histogram.h
 * Latencies in ticks, in buckets that are exact to 0.4 per cent.
 */
#ifndef DMG_CLI_PERF_HISTOGRAM_H
#define DMG_CLI_PERF_HISTOGRAM_H

#include <stdint.h>

#define DMG_PERF_SUB_BITS 8
#define DMG_PERF_BUCKETS  ((64 - DMG_PERF_SUB_BITS) << DMG_PERF_SUB_BITS)

/** Zero it to empty it. Used by one thread at a time. */
typedef struct dmg_perf_histogram {
    uint64_t least;
    uint64_t count;
    uint64_t sum;
    uint32_t buckets[DMG_PERF_BUCKETS];
} dmg_perf_histogram;

void dmg_perf_histogram_add(dmg_perf_histogram *histogram, uint64_t ticks);
/** sum += more. */
void dmg_perf_histogram_merge(dmg_perf_histogram *sum, const dmg_perf_histogram *more);
/** What the part 0 <= part < 1 of all lies below; ticks, 0 of none. */
double dmg_perf_histogram_quantile(const dmg_perf_histogram *histogram, double part);
/** In ticks, 0 of none. */
double dmg_perf_histogram_mean(const dmg_perf_histogram *histogram);

#endif
