/*
 * Operations in flight, and how long each took: from before its post until its end was seen.
 *
 * A thread keeps `depth` operations in flight, each with a buffer of its own, at random places of the region. It waits
 * for the oldest, ends it and whatever ended after it, and posts as many again.
 */
#include "cli/perf.h"
#include "core/base/error.h"
#include "core/base/ticks.h"
#include "core/pool/pool.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define LINE_BYTES  64
#define WINDOW_NS   3000000
#define WARM_UP_NS  300000
#define GAP_NS      30000 /* longer between two steps, beyond two operations: the processor was away */
#define PAGE_BYTES  4096
#define SUB_BITS    8
#define SUB_BUCKETS (1u << SUB_BITS)
#define BUCKETS     ((64 - SUB_BITS) * SUB_BUCKETS)
#define NS_SECOND   1e9

const char *dmg_perf_kind_name(int kind)
{
    return kind == DMG_PERF_TOUCH ? "touch" : dmg_operation_kind_name((dmg_operation_kind)kind);
}

const double dmg_perf_quantile_parts[DMG_PERF_QUANTILES] = {0.001, 0.01, 0.05, 0.1,  0.2,  0.3,  0.4,   0.5,  0.6,
                                                            0.7,   0.8,  0.9,  0.95, 0.98, 0.99, 0.995, 0.999};

/* ---- histogram ---- */

struct dmg_perf_histogram {
    uint64_t least;
    uint64_t count;
    uint32_t buckets[BUCKETS];
};

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

static void histogram_add(dmg_perf_histogram *histogram, uint64_t ticks)
{
    histogram->least = histogram->count == 0 || ticks < histogram->least ? ticks : histogram->least;
    histogram->count++;
    histogram->buckets[bucket_of(ticks)]++;
}

static void histogram_merge(dmg_perf_histogram *sum, const dmg_perf_histogram *more)
{
    if (more->count > 0 && (sum->count == 0 || more->least < sum->least)) {
        sum->least = more->least;
    }
    sum->count += more->count;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        sum->buckets[i] += more->buckets[i];
    }
}

/* In ticks. */
static double histogram_quantile(const dmg_perf_histogram *histogram, double part)
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

/* ---- one thread ---- */

typedef struct flight_slot {
    dmg_completion completion;
    dmg_call call;
    uint64_t posted;
    uint64_t word;
    char *buffer;
} flight_slot;

typedef struct perf_worker {
    const dmg_perf_region *region;
    dmg_perf_point point;
    dmg_channel *channel;
    bool are_cycles;
    uint64_t pause; /* ticks */
    uint64_t gap;   /* of the windows; from what an operation took to warm up */
    uint64_t least_gap;
    uint64_t random;
    flight_slot *slots;
    char *buffers;
    dmg_perf_histogram histogram; /* of latencies */
    dmg_perf_histogram turns;     /* of whole turns of the loop, one by one */
    /* Of the last window. */
    uint64_t operations;
    uint64_t skipped; /* of them, ended before the clock started */
    uint64_t paused;  /* ticks */
    uint64_t first, last;
    bool has_gap;
    dmg_status status;
} perf_worker;

static dmg_address random_place(perf_worker *worker, uint64_t bytes)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 7;
    worker->random ^= worker->random << 17;
    uint64_t step = (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    uint64_t places = worker->region->bytes / step;
    return worker->region->start + (uint64_t)((unsigned __int128)worker->random * places >> 64) * step;
}

static void post(perf_worker *worker, flight_slot *slot)
{
    const dmg_perf_point *point = &worker->point;
    dmg_channel *channel = worker->channel;
    dmg_address place = random_place(worker, point->bytes);
    slot->completion = (dmg_completion){0};
    slot->posted = dmg_ticks(worker->are_cycles);
    switch (point->kind) {
    case DMG_OPERATION_READ:
        dmg_post_read(channel, place, slot->buffer, point->bytes, &slot->completion);
        break;
    case DMG_OPERATION_WRITE:
        dmg_post_write(channel, slot->buffer, place, point->bytes, &slot->completion);
        break;
    case DMG_OPERATION_CAS:
        dmg_post_cas64(channel, place, 0, 0, &slot->word, &slot->completion);
        break;
    case DMG_OPERATION_FAA:
        dmg_post_faa64(channel, place, 1, &slot->word, &slot->completion);
        break;
    case DMG_OPERATION_MESSAGE:
        slot->call = (dmg_call){.reply = slot->buffer, .reply_capacity = point->bytes};
        dmg_post_call(channel, dmg_address_node(place), DMG_MESSAGE_TYPE_ECHO, slot->buffer, point->bytes, &slot->call,
                      &slot->completion);
        break;
    default: {
        dmg_channel_touch(channel, place, point->bytes);
        const volatile char *span = dmg_client_pointer(worker->region->client, place, point->bytes);
        for (uint64_t offset = 0; span && offset < point->bytes; offset += LINE_BYTES) {
            (void)span[offset];
        }
        break;
    }
    }
}

static void finish(perf_worker *worker, flight_slot *slot, uint64_t now)
{
    if (slot->completion.status != DMG_OK && worker->status == DMG_OK) {
        worker->status = dmg_wait(worker->channel, &slot->completion);
    }
    histogram_add(&worker->histogram, now - slot->posted);
    worker->operations++;
}

static void pause_ticks(perf_worker *worker)
{
    uint64_t start = dmg_ticks(worker->are_cycles);
    while (dmg_ticks(worker->are_cycles) - start < worker->pause) {
        __builtin_ia32_pause();
    }
    worker->paused += dmg_ticks(worker->are_cycles) - start;
}

/* One operation after the other: posted and waited for as a program does that needs its result. */
static void run_one_by_one(perf_worker *worker, uint64_t end)
{
    flight_slot *slot = &worker->slots[0];
    uint64_t now = dmg_ticks(worker->are_cycles);
    worker->first = now;
    while (now < end && worker->status == DMG_OK) {
        if (worker->pause) {
            pause_ticks(worker);
        }
        uint64_t before = now;
        post(worker, slot);
        worker->status = dmg_wait(worker->channel, &slot->completion);
        now = dmg_ticks(worker->are_cycles);
        finish(worker, slot, now);
        histogram_add(&worker->turns, now - before);
        worker->has_gap |= now - before > worker->gap;
    }
    worker->last = now;
}

/* Whether the processor was away since `before`; returns now. */
static uint64_t note_gap(perf_worker *worker, uint64_t before)
{
    uint64_t now = dmg_ticks(worker->are_cycles);
    worker->has_gap |= now - before > worker->gap;
    return now;
}

static void run_in_flight(perf_worker *worker, uint64_t end)
{
    uint32_t depth = worker->point.depth;
    for (uint32_t i = 0; i < depth; i++) {
        post(worker, &worker->slots[i]);
    }
    uint32_t oldest = 0;
    bool is_flowing = false;
    uint64_t now = worker->first = dmg_ticks(worker->are_cycles);
    while (now < end && worker->status == DMG_OK) {
        worker->status = dmg_wait(worker->channel, &worker->slots[oldest].completion);
        now = note_gap(worker, now);
        uint64_t step = now;
        for (uint32_t i = 0; i < depth && worker->slots[oldest].completion.pending == 0; i++) {
            finish(worker, &worker->slots[oldest], now);
            post(worker, &worker->slots[oldest]);
            oldest = (oldest + 1) % depth;
            step = note_gap(worker, step);
        }
        if (!is_flowing && worker->operations >= depth) {
            /* The first ones had a start on the clock. */
            is_flowing = true;
            worker->first = now;
            worker->skipped = worker->operations;
        }
    }
    worker->last = now;
    for (uint32_t i = 0; i < depth; i++) {
        dmg_status status = dmg_wait(worker->channel, &worker->slots[i].completion);
        worker->status = worker->status == DMG_OK ? status : worker->status;
    }
}

static void run_for(perf_worker *worker, uint64_t duration)
{
    worker->operations = 0;
    worker->skipped = 0;
    worker->paused = 0;
    worker->has_gap = false;
    memset(&worker->histogram, 0, sizeof worker->histogram);
    memset(&worker->turns, 0, sizeof worker->turns);
    uint64_t end = dmg_ticks(worker->are_cycles) + duration;
    if (worker->point.depth == 1) {
        run_one_by_one(worker, end);
    } else {
        run_in_flight(worker, end);
    }
}

static dmg_status worker_open(perf_worker *worker, const dmg_perf_region *region, const dmg_perf_point *point,
                              uint64_t seed, bool are_cycles, double ticks_a_second)
{
    worker->region = region;
    worker->point = *point;
    worker->are_cycles = are_cycles;
    worker->pause = (uint64_t)((double)point->pause_ns / NS_SECOND * ticks_a_second);
    worker->gap = UINT64_MAX;
    worker->least_gap = (uint64_t)((GAP_NS + (double)point->bytes) / NS_SECOND * ticks_a_second);
    worker->random = seed * UINT64_C(0x9e3779b97f4a7c15);
    worker->slots = calloc(point->depth, sizeof *worker->slots);
    uint64_t stride = (point->bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    worker->buffers = aligned_alloc(LINE_BYTES, stride * point->depth);
    if (!worker->slots || !worker->buffers) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for %u buffers of %llu bytes", point->depth,
                         (unsigned long long)point->bytes);
    }
    memset(worker->buffers, 0, stride * point->depth);
    for (uint32_t i = 0; i < point->depth; i++) {
        worker->slots[i].buffer = worker->buffers + i * stride;
    }
    return dmg_channel_open(region->client, &worker->channel);
}

static void worker_close(perf_worker *worker)
{
    dmg_channel_close(worker->channel);
    free(worker->slots);
    free(worker->buffers);
}

static dmg_status check_point(const dmg_perf_region *region, const dmg_perf_point *point)
{
    uint32_t flags = dmg_client_capabilities(region->client)->flags;
    if (point->kind == DMG_PERF_TOUCH && !(flags & DMG_CAPABILITY_LOAD_STORE)) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "this transport has no loads and stores in place to be measured by touch");
    }
    return DMG_OK;
}

/* ---- the region ---- */

dmg_status dmg_perf_region_allocate(dmg_client *client, uint64_t bytes, dmg_perf_region *region)
{
    *region = (dmg_perf_region){.client = client, .bytes = bytes};
    dmg_channel *channel = NULL;
    dmg_status status = dmg_channel_open(client, &channel);
    if (status == DMG_OK) {
        status = dmg_pool_allocate(channel, 0, 0, region->bytes, &region->start);
    }
    dmg_channel_close(channel);
    return status;
}

dmg_status dmg_perf_region_touch(const dmg_perf_region *region)
{
    dmg_channel *channel = NULL;
    dmg_completion completion = {0};
    uint64_t word = 0;
    dmg_status status = dmg_channel_open(region->client, &channel);
    for (uint64_t offset = 0; status == DMG_OK && offset < region->bytes; offset += PAGE_BYTES) {
        dmg_post_write(channel, &word, region->start + offset, sizeof word, &completion);
    }
    if (status == DMG_OK) {
        status = dmg_wait(channel, &completion);
    }
    dmg_channel_close(channel);
    return status;
}

/* ---- many threads ---- */

typedef enum crew_state { CREW_GATHERS, CREW_RUNS, CREW_IS_DISMISSED } crew_state;

typedef struct perf_crew {
    _Atomic crew_state state;
    uint64_t duration; /* ticks */
    uint64_t warm_up;
} perf_crew;

typedef struct crew_member {
    perf_worker worker;
    perf_crew *crew;
    pthread_t thread;
    char sentence[512];
} crew_member;

static void *member_run(void *argument)
{
    crew_member *member = argument;
    dmg_backoff backoff = {0};
    while (atomic_load(&member->crew->state) == CREW_GATHERS) {
        dmg_backoff_wait(&backoff);
    }
    if (atomic_load(&member->crew->state) == CREW_IS_DISMISSED) {
        return NULL;
    }
    run_for(&member->worker, member->crew->warm_up);
    if (member->worker.status == DMG_OK) {
        run_for(&member->worker, member->crew->duration);
    }
    if (member->worker.status != DMG_OK) {
        strncpy(member->sentence, dmg_error_message(), sizeof member->sentence - 1);
    }
    return NULL;
}

static void add_up(crew_member *members, uint32_t count, double ticks_a_second, dmg_perf_result *result)
{
    dmg_perf_histogram *sum = &members[0].worker.histogram;
    *result = (dmg_perf_result){0};
    for (uint32_t i = 0; i < count; i++) {
        const perf_worker *worker = &members[i].worker;
        double seconds = (double)(worker->last - worker->first) / ticks_a_second;
        result->operations += worker->operations - worker->skipped;
        result->seconds = seconds > result->seconds ? seconds : result->seconds;
        if (i > 0) {
            histogram_merge(sum, &worker->histogram);
        }
    }
    double ns_a_tick = NS_SECOND / ticks_a_second;
    result->least_ns = (double)sum->least * ns_a_tick;
    result->median_ns = histogram_quantile(sum, 0.5) * ns_a_tick;
    result->p99_ns = histogram_quantile(sum, 0.99) * ns_a_tick;
    result->p999_ns = histogram_quantile(sum, 0.999) * ns_a_tick;
    for (uint32_t i = 0; i < DMG_PERF_QUANTILES; i++) {
        result->quantiles_ns[i] = histogram_quantile(sum, dmg_perf_quantile_parts[i]) * ns_a_tick;
    }
}

static dmg_status run_crew(crew_member *members, uint32_t count, perf_crew *crew)
{
    uint32_t started = 0;
    dmg_status status = DMG_OK;
    for (uint32_t i = 0; i < count && status == DMG_OK; i++) {
        members[i].crew = crew;
        int failed = pthread_create(&members[i].thread, NULL, member_run, &members[i]);
        started += failed == 0;
        if (failed) {
            status = dmg_error_errno(DMG_ERR_MEMORY, failed, "starting a thread to measure with");
        }
    }
    atomic_store(&crew->state, status == DMG_OK ? CREW_RUNS : CREW_IS_DISMISSED);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(members[i].thread, NULL);
        if (members[i].worker.status != DMG_OK && status == DMG_OK) {
            status = dmg_error(members[i].worker.status, "%s", members[i].sentence);
        }
    }
    return status;
}

dmg_status dmg_perf_measure(const dmg_perf_region *region, const dmg_perf_point *point, uint64_t duration_ns,
                            dmg_perf_result *result)
{
    dmg_status status = check_point(region, point);
    crew_member *members = status == DMG_OK ? calloc(point->threads, sizeof *members) : NULL;
    if (!members) {
        return status != DMG_OK ? status : dmg_error(DMG_ERR_MEMORY, "no memory for %u threads", point->threads);
    }
    bool are_cycles = dmg_ticks_are_cycles();
    double ticks_a_second = dmg_ticks_measure_a_second(are_cycles);
    perf_crew crew = {.duration = (uint64_t)((double)duration_ns / NS_SECOND * ticks_a_second),
                      .warm_up = (uint64_t)(WARM_UP_NS / NS_SECOND * ticks_a_second)};
    for (uint32_t i = 0; i < point->threads && status == DMG_OK; i++) {
        status = worker_open(&members[i].worker, region, point, i + 1, are_cycles, ticks_a_second);
    }
    if (status == DMG_OK) {
        status = run_crew(members, point->threads, &crew);
    }
    if (status == DMG_OK) {
        add_up(members, point->threads, ticks_a_second, result);
    }
    for (uint32_t i = 0; i < point->threads; i++) {
        worker_close(&members[i].worker);
    }
    free(members);
    return status;
}

/* ---- windows ---- */

static long involuntary_switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

static double window_value(const perf_worker *worker, double ticks_a_second)
{
    double seconds = (double)(worker->last - worker->first - worker->paused) / ticks_a_second;
    if (worker->point.depth > 1) {
        return seconds > 0 ? (double)(worker->operations - worker->skipped) / seconds : 0;
    }
    bool is_alone = worker->pause || worker->point.kind == DMG_PERF_TOUCH;
    return histogram_quantile(is_alone ? &worker->histogram : &worker->turns, 0.5) / ticks_a_second * NS_SECOND;
}

dmg_status dmg_perf_measure_windows(const dmg_perf_region *region, const dmg_perf_point *point, uint32_t wanted,
                                    dmg_link_window windows[DMG_LINK_WINDOWS_MAX], uint32_t *count)
{
    *count = 0;
    perf_worker *worker = calloc(1, sizeof *worker);
    if (!worker) {
        return dmg_error(DMG_ERR_MEMORY, "no memory to measure");
    }
    bool are_cycles = dmg_ticks_are_cycles();
    double ticks_a_second = dmg_ticks_measure_a_second(are_cycles);
    dmg_status status = check_point(region, point);
    if (status == DMG_OK) {
        status = worker_open(worker, region, point, 1, are_cycles, ticks_a_second);
    }
    if (status == DMG_OK) {
        run_for(worker, (uint64_t)(WARM_UP_NS / NS_SECOND * ticks_a_second));
        status = worker->status;
        worker->gap = worker->least_gap + 2 * (uint64_t)histogram_quantile(&worker->histogram, 0.5);
    }
    uint32_t clean = 0;
    while (status == DMG_OK && clean < wanted && *count < DMG_LINK_WINDOWS_MAX) {
        long before = involuntary_switches();
        run_for(worker, (uint64_t)(WINDOW_NS / NS_SECOND * ticks_a_second));
        dmg_link_window *window = &windows[(*count)++];
        window->value = window_value(worker, ticks_a_second);
        window->is_clean = !worker->has_gap && involuntary_switches() == before;
        clean += window->is_clean;
        status = worker->status;
    }
    worker_close(worker);
    free(worker);
    return status;
}
