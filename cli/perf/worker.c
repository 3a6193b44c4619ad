/*
 * Operations in flight, and how long each took: from before its post until its end was seen.
 *
 * A thread keeps `depth` operations in flight, each with a buffer of its own, at random places of the region. It waits
 * for the oldest, ends it and whatever ended after it, and posts as many again.
 *
 * One after the other they are measured in two ways. Timed one by one, both ends of each are read behind fences
 * (core/base/ticks.h), since a backend that moves data by loads and stores has ended an operation when these are on
 * their way; what two such readings take is subtracted. In a chain only the ends of some windows are timed: the place
 * of each operation follows from what the one before brought, so that they cannot overlap, and no fence is needed but
 * behind writes, which bring nothing. Latencies come from the former, the rate from the latter.
 */
#include "cli/perf/worker.h"
#include "core/base/error.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define LINE_BYTES      64
#define GAP_NS          30000 /* longer between two steps, beyond twice their operations: the processor was away */
#define NS_SECOND       1e9
#define PAIR_OPERATIONS 16
/* In a chain the clock is looked at about that often. */
#define LOOK_NS   1000
#define LOOK_MOST 16

/* Depends on what the last operation brought. */
static dmg_address random_place(dmg_perf_worker *worker)
{
    worker->random ^= worker->random << 13;
    worker->random ^= worker->random >> 7;
    worker->random ^= worker->random << 17;
    uint64_t mixed = worker->random + worker->carried;
    return worker->region->start + (uint64_t)((unsigned __int128)mixed * worker->places >> 64) * worker->step;
}

/* As a program does that reads a mapped span: all its lines. */
static uint64_t touch(const dmg_perf_worker *worker, dmg_address place)
{
    uint64_t sum = 0;
    dmg_channel_charge_read(worker->channel, place, worker->point.bytes);
    const volatile unsigned char *span = dmg_client_pointer(worker->region->client, place, worker->point.bytes);
    for (uint64_t offset = 0; span && offset < worker->point.bytes; offset += LINE_BYTES) {
        sum += span[offset];
    }
    return sum;
}

static void post(dmg_perf_worker *worker, dmg_perf_slot *slot, dmg_address place)
{
    const dmg_perf_point *point = &worker->point;
    dmg_channel *channel = worker->channel;
    slot->completion = (dmg_completion){0};
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
    default:
        slot->word = touch(worker, place);
        break;
    }
}

/* What an operation brought; a write brings nothing. */
static uint64_t brought(const dmg_perf_worker *worker, const dmg_perf_slot *slot)
{
    const unsigned char *buffer = (const unsigned char *)slot->buffer;
    switch (worker->point.kind) {
    case DMG_OPERATION_WRITE:
        return 0;
    case DMG_OPERATION_READ:
    case DMG_OPERATION_MESSAGE:
        return (uint64_t)buffer[0] + buffer[worker->point.bytes - 1];
    default:
        return slot->word;
    }
}

static void finish(dmg_perf_worker *worker, dmg_perf_slot *slot, uint64_t ticks)
{
    if (slot->completion.status != DMG_OK && worker->status == DMG_OK) {
        worker->status = dmg_wait(worker->channel, &slot->completion);
    }
    dmg_perf_histogram_add(&worker->histogram, ticks);
    worker->operations++;
}

/* Whether the processor was away: so many operations did not take that long. */
static bool is_gap(const dmg_perf_worker *worker, uint64_t ticks, uint64_t operations)
{
    return worker->usual > 0 && ticks > worker->least_gap + 2 * operations * worker->usual;
}

static void pause_ticks(const dmg_perf_worker *worker)
{
    uint64_t start = dmg_ticks(worker->are_cycles);
    while (dmg_ticks(worker->are_cycles) - start < worker->pause) {
        __builtin_ia32_pause();
    }
}

/* One operation after the other, timed one by one: posted and waited for as a program does that needs its result. */
static void run_timed(dmg_perf_worker *worker, uint64_t end)
{
    dmg_perf_slot *slot = &worker->slots[0];
    /* Such a link counts from the end of the operation before, and the reading of the clock is in its time. */
    bool is_by_turns = worker->is_held_back && !worker->pause && worker->point.kind != DMG_PERF_LOAD;
    uint64_t first = dmg_ticks_fenced(worker->are_cycles);
    uint64_t now = first;
    while (now < end && worker->status == DMG_OK) {
        uint64_t before = now;
        if (worker->pause) {
            pause_ticks(worker);
        }
        dmg_address place = random_place(worker);
        uint64_t from = is_by_turns ? before : dmg_ticks_fenced(worker->are_cycles);
        post(worker, slot, place);
        worker->status = dmg_wait(worker->channel, &slot->completion);
        now = dmg_ticks_fenced(worker->are_cycles);
        worker->carried = brought(worker, slot);
        finish(worker, slot, is_by_turns ? now - from : dmg_ticks_within(from, now, &worker->clock));
        worker->has_gap |= is_gap(worker, now - before, 1);
    }
    worker->elapsed = now - first;
}

/* One operation after the other, each of which needs what the one before brought. */
static void run_chained(dmg_perf_worker *worker, uint64_t end)
{
    dmg_perf_slot *slot = &worker->slots[0];
    bool is_fenced = worker->point.kind == DMG_OPERATION_WRITE && !worker->is_held_back;
    uint64_t first = dmg_ticks_fenced(worker->are_cycles);
    uint64_t now = first;
    while (now < end && worker->status == DMG_OK) {
        uint64_t before = now;
        for (uint32_t i = 0; i < worker->chain_steps && worker->status == DMG_OK; i++) {
            post(worker, slot, random_place(worker));
            worker->status = dmg_wait(worker->channel, &slot->completion);
            worker->carried = brought(worker, slot);
            if (is_fenced) {
                dmg_ticks_fence();
            }
        }
        worker->operations += worker->chain_steps;
        now = dmg_ticks(worker->are_cycles);
        worker->has_gap |= is_gap(worker, now - before, worker->chain_steps);
    }
    worker->elapsed = dmg_ticks_fenced(worker->are_cycles) - first;
    if (is_fenced) {
        uint64_t fences = (uint64_t)((double)worker->operations * worker->clock.fence);
        worker->elapsed -= fences < worker->elapsed ? fences : worker->elapsed;
    }
}

/* Now, when ends are seen. An operation that a link holds back has its data for long. */
static uint64_t seen(const dmg_perf_worker *worker)
{
    return worker->is_held_back ? dmg_ticks(worker->are_cycles) : dmg_ticks_fenced(worker->are_cycles);
}

static void post_in_flight(dmg_perf_worker *worker, dmg_perf_slot *slot)
{
    dmg_address place = random_place(worker);
    /* Not behind a fence: what is in flight overlaps. */
    slot->posted = dmg_ticks(worker->are_cycles);
    post(worker, slot, place);
}

static void run_in_flight(dmg_perf_worker *worker, uint64_t end)
{
    uint32_t depth = worker->point.depth;
    for (uint32_t i = 0; i < depth; i++) {
        post_in_flight(worker, &worker->slots[i]);
    }
    uint32_t oldest = 0;
    bool is_flowing = false;
    uint64_t first = dmg_ticks(worker->are_cycles);
    uint64_t now = first;
    while (now < end && worker->status == DMG_OK) {
        uint64_t before = now;
        worker->status = dmg_wait(worker->channel, &worker->slots[oldest].completion);
        now = seen(worker);
        worker->has_gap |= is_gap(worker, now - before, 1);
        uint64_t posted = now;
        for (uint32_t i = 0; i < depth && worker->slots[oldest].completion.pending == 0; i++) {
            finish(worker, &worker->slots[oldest], now - worker->slots[oldest].posted);
            post_in_flight(worker, &worker->slots[oldest]);
            worker->has_gap |= is_gap(worker, worker->slots[oldest].posted - posted, 1);
            posted = worker->slots[oldest].posted;
            oldest = (oldest + 1) % depth;
        }
        if (!is_flowing && worker->operations >= depth) {
            /* The first ones had a start on the clock. */
            is_flowing = true;
            first = now;
            worker->skipped = worker->operations;
        }
    }
    worker->elapsed = now - first;
    for (uint32_t i = 0; i < depth; i++) {
        dmg_status status = dmg_wait(worker->channel, &worker->slots[i].completion);
        worker->status = worker->status == DMG_OK ? status : worker->status;
    }
}

/* ---- windows ---- */

typedef void (*window_run)(dmg_perf_worker *worker, uint64_t end);

static long involuntary_switches(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nivcsw : 0;
}

/* Returns whether the thread kept its processor. */
static bool run_window(dmg_perf_worker *worker, window_run run, uint64_t duration)
{
    long before = involuntary_switches();
    worker->operations = 0;
    worker->skipped = 0;
    worker->has_gap = false;
    run(worker, dmg_ticks(worker->are_cycles) + duration);
    return !worker->has_gap && involuntary_switches() == before;
}

bool dmg_perf_worker_run(dmg_perf_worker *worker, uint64_t duration)
{
    memset(&worker->histogram, 0, sizeof worker->histogram);
    return run_window(worker, worker->point.depth == 1 ? run_timed : run_in_flight, duration);
}

void dmg_perf_worker_warm_up(dmg_perf_worker *worker, uint64_t duration)
{
    dmg_perf_worker_run(worker, duration);
    double usual = dmg_perf_histogram_quantile(&worker->histogram, 0.5);
    worker->usual = usual > 1 ? (uint64_t)usual : 1;
    uint64_t steps = worker->look / worker->usual;
    worker->chain_steps = steps < 1 ? 1 : steps > LOOK_MOST ? LOOK_MOST : (uint32_t)steps;
    if (dmg_channel_counters(worker->channel)->modelled_ns > 0) {
        worker->is_held_back = false; /* the link's time is accounted for, not waited for */
    }
}

/* ---- pairs of windows ---- */

void dmg_perf_worker_run_pairs(dmg_perf_worker *worker, uint64_t duration, uint64_t pair_least)
{
    uint64_t least = PAIR_OPERATIONS * worker->usual;
    uint64_t fitting = duration / (least > pair_least ? least : pair_least);
    worker->pair_count = fitting < 1 ? 1 : fitting > DMG_PERF_PAIRS_MOST ? DMG_PERF_PAIRS_MOST : (uint32_t)fitting;
    uint64_t window = duration / worker->pair_count / 2;
    uint64_t chained = 0;
    uint64_t elapsed = 0;
    memset(&worker->histogram, 0, sizeof worker->histogram);
    for (uint32_t i = 0; i < worker->pair_count && worker->status == DMG_OK; i++) {
        dmg_perf_pair *pair = &worker->pairs[i];
        uint64_t sum = worker->histogram.sum;
        pair->is_timed_clean = run_window(worker, run_timed, window);
        pair->timed = worker->operations > 0 ? (double)(worker->histogram.sum - sum) / (double)worker->operations : 0;
        pair->is_chained_clean = run_window(worker, run_chained, window);
        pair->chained = worker->operations > 0 ? (double)worker->elapsed / (double)worker->operations : 0;
        chained += worker->operations;
        elapsed += worker->elapsed;
    }
    worker->operations = chained;
    worker->elapsed = elapsed;
}

static int compare_values(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

double dmg_perf_worker_clean(const dmg_perf_worker *worker, bool is_chained, uint32_t *count)
{
    double values[DMG_PERF_PAIRS_MOST];
    *count = 0;
    for (uint32_t i = 0; i < worker->pair_count; i++) {
        const dmg_perf_pair *pair = &worker->pairs[i];
        if (is_chained ? pair->is_chained_clean : pair->is_timed_clean) {
            values[(*count)++] = is_chained ? pair->chained : pair->timed;
        }
    }
    qsort(values, *count, sizeof *values, compare_values);
    return *count == 0 ? 0 : (values[(*count - 1) / 2] + values[*count / 2]) / 2;
}

/* ---- coming and going ---- */

dmg_status dmg_perf_worker_open(dmg_perf_worker *worker, const dmg_perf_region *region, const dmg_perf_point *point,
                                uint64_t seed, bool are_cycles, double ticks_a_second)
{
    worker->region = region;
    worker->point = *point;
    worker->are_cycles = are_cycles;
    worker->clock = dmg_ticks_measure_costs(are_cycles);
    worker->is_held_back = region->is_held_back;
    worker->pause = (uint64_t)((double)point->pause_ns / NS_SECOND * ticks_a_second);
    worker->least_gap = (uint64_t)((GAP_NS + (double)point->bytes) / NS_SECOND * ticks_a_second);
    worker->look = (uint64_t)(LOOK_NS / NS_SECOND * ticks_a_second);
    worker->random = seed * UINT64_C(0x9e3779b97f4a7c15);
    uint64_t stride = (point->bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
    worker->step = stride;
    worker->places = region->bytes / stride;
    worker->slots = calloc(point->depth, sizeof *worker->slots);
    worker->buffers = aligned_alloc(LINE_BYTES, stride * point->depth);
    worker->pairs = calloc(DMG_PERF_PAIRS_MOST, sizeof *worker->pairs);
    if (!worker->slots || !worker->buffers || !worker->pairs) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for %u buffers of %llu bytes", point->depth,
                         (unsigned long long)point->bytes);
    }
    memset(worker->buffers, 0, stride * point->depth);
    for (uint32_t i = 0; i < point->depth; i++) {
        worker->slots[i].buffer = worker->buffers + i * stride;
    }
    return dmg_channel_open(region->client, &worker->channel);
}

void dmg_perf_worker_close(dmg_perf_worker *worker)
{
    dmg_channel_close(worker->channel);
    free(worker->slots);
    free(worker->buffers);
    free(worker->pairs);
}
