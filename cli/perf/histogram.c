#include "cli/perf/histogram.h"

#define SUB_BITS    DMG_PERF_SUB_BITS
#define SUB_BUCKETS (1u << SUB_BITS)
#define BUCKETS     DMG_PERF_BUCKETS

static uint32_t bucket_of(uint64_t ticks)
{
    if (ticks < SUB_BUCKETS) {
        return (uint32_t)ticks;
    }
    uint32_t exponent = 63 - (uint32_t)__builtin_clzll(ticks) - SUB_BITS;
    uint32_t bucket = (exponent + 1) * SUB_BUCKETS + (uint32_t)(ticks >> exponent) - SUB_BUCKETS;
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

/* The middle of a bucket. */
static double ticks_of(uint32_t bucket)
{
    if (bucket < SUB_BUCKETS) {
        return bucket;
    }
    uint32_t exponent = bucket / SUB_BUCKETS - 1;
    return ((double)(bucket % SUB_BUCKETS + SUB_BUCKETS) + 0.5) * (double)(UINT64_C(1) << exponent);
}

void dmg_perf_histogram_add(dmg_perf_histogram *histogram, uint64_t ticks)
{
    histogram->least = histogram->count == 0 || ticks < histogram->least ? ticks : histogram->least;
    histogram->count++;
    histogram->sum += ticks;
    histogram->buckets[bucket_of(ticks)]++;
}

void dmg_perf_histogram_merge(dmg_perf_histogram *sum, const dmg_perf_histogram *more)
{
    if (more->count > 0 && (sum->count == 0 || more->least < sum->least)) {
        sum->least = more->least;
    }
    sum->count += more->count;
    sum->sum += more->sum;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        sum->buckets[i] += more->buckets[i];
    }
}

double dmg_perf_histogram_quantile(const dmg_perf_histogram *histogram, double part)
{
    uint64_t rank = (uint64_t)(part * (double)histogram->count);
    uint64_t seen = 0;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen > rank) {
            double middle = ticks_of(i);
            return middle > (double)histogram->least ? middle : (double)histogram->least;
        }
    }
    return 0;
}

double dmg_perf_histogram_mean(const dmg_perf_histogram *histogram)
{
    return histogram->count > 0 ? (double)histogram->sum / (double)histogram->count : 0;
}
