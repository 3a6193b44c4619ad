#include "cli/compare/compare.h"

#include "cli/options/algorithm_options.h"
#include "cli/report/report.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** When the user did not say how many rounds: so many in any case, in up to RUNS_SECONDS_MOST, and in up to
 * RUNS_SECONDS. */
#define ROUNDS_LEAST      2
#define ROUNDS_USUAL      3
#define ROUNDS_MOST       7
#define RUNS_SECONDS_MOST 200.0
#define RUNS_SECONDS      100.0
/** Rounds of the emulated points beside the profile, which are compared with their own round. */
#define CHANGED_ROUNDS 3
/** Runs in a round where iterations are short and the user did not say how many: odd, so that one is in the middle. */
#define REPEATS_SHORT 5
/** A run that took no time that a clock shows. */
#define LEAST_SECONDS      1e-9
#define NANOSECONDS_SECOND 1e9

/** What a user may say about the runs, besides what is compared. */
static const dmg_option_id run_options[] = {DMG_OPTION_SOURCE,
                                            DMG_OPTION_MNS,
                                            DMG_OPTION_THREADS,
                                            DMG_OPTION_CACHE,
                                            DMG_OPTION_MEMORY,
                                            DMG_OPTION_PARTITIONS,
                                            DMG_OPTION_TASKS,
                                            DMG_OPTION_ITERATIONS,
                                            DMG_OPTION_TOLERANCE,
                                            DMG_OPTION_DAMPING,
                                            DMG_OPTION_DIRECTION,
                                            DMG_OPTION_DENSITY,
                                            DMG_OPTION_UPDATES,
                                            DMG_OPTION_PRECISION,
                                            DMG_OPTION_REFERENCE_EDGES,
                                            DMG_OPTION_PIN_THREADS,
                                            DMG_OPTION_ALLOW_FALLBACK,
                                            DMG_OPTION_PEER_TIMEOUT,
                                            DMG_OPTION_NUMA_NODE,
                                            DMG_OPTION_PAGE_SIZE,
                                            DMG_OPTION_PREFAULT,
                                            DMG_OPTION_OUT_LISTS_ONLY,
                                            DMG_OPTION_COUNT};

/** Where in the plan a run stands. */
typedef struct run_place {
    uint32_t configuration, algorithm, cns;
    dmg_compare_variant variant;
} run_place;

/* ---- the call ---- */

/** An option of other algorithms than this one is left out. */
static void add_run_options(const dmg_compare *compare, const dmg_algorithm *algorithm, dmg_compare_call *call)
{
    for (const dmg_option_id *id = run_options; *id != DMG_OPTION_COUNT; id++) {
        const dmg_option_id one[] = {*id, DMG_OPTION_COUNT};
        if (dmg_algorithm_takes_option(algorithm, compare->settings, *id)) {
            dmg_compare_call_add_given(call, compare->settings, one);
        }
    }
}

static void describe_call(const dmg_compare *compare, const run_place *place, dmg_compare_call *call)
{
    const dmg_compare_configuration *configuration = &compare->configurations[place->configuration];
    dmg_compare_call_add(call, "dmgraph");
    dmg_compare_call_add(call, "run");
    dmg_compare_call_add(call, "%s", compare->algorithms[place->algorithm]);
    dmg_compare_call_add(call, "/proc/%d/fd/%d", (int)getpid(), compare->source.file);
    dmg_compare_call_add(call, "--transport=%s", configuration->transport);
    dmg_compare_call_add(call, "--cns=%" PRIu32, compare->cns[place->cns]);
    if (configuration->has_link && place->variant != DMG_VARIANT_BARE) {
        int file = configuration->changed[place->variant];
        if (file >= 0) {
            dmg_compare_call_add(call, "--link=/proc/%d/fd/%d", (int)getpid(), file);
        } else {
            dmg_compare_call_add(call, "--link=%s", configuration->link);
        }
        dmg_compare_call_add(call, "--link-mode=%s", compare->link_mode);
    } else if (configuration->locks_are_avoided && !compare->settings->values[DMG_OPTION_UPDATES].is_given) {
        dmg_compare_call_add(call,
                             "--updates=valrd-owner"); /* what it does over its link, or other software is compared */
    }
    add_run_options(compare, dmg_algorithm_find(compare->algorithms[place->algorithm]), call);
    dmg_compare_call_add(call, "--json");
    dmg_compare_call_add(call, "--no-progress");
}

/* ---- what came out ---- */

static double real_at(const json_t *object, const char *outer, const char *inner)
{
    return json_number_value(json_object_get(json_object_get(object, outer), inner));
}

static uint64_t integer_at(const json_t *object, const char *outer, const char *inner)
{
    json_int_t value = json_integer_value(json_object_get(json_object_get(object, outer), inner));
    return value > 0 ? (uint64_t)value : 0;
}

static dmg_status take_report(json_t *report, dmg_compare_cell *cell)
{
    dmg_compare_turn *turn = &cell->turns[cell->turn_count++];
    const json_t *link = json_object_get(report, "emulated_link");
    double measured = real_at(report, "seconds", "iterations");
    double seconds = json_is_object(link) ? json_number_value(json_object_get(link, "iteration_seconds")) : measured;
    turn->seconds = fmax(seconds, LEAST_SECONDS);
    turn->accounted = json_number_value(json_object_get(link, "accounted_seconds"));
    turn->wait =
        real_at(report, "seconds", "iteration_barriers") + real_at(report, "seconds", "iteration_operation_wait");
    turn->total = real_at(report, "seconds", "total");
    cell->iterations = integer_at(report, "result", "iterations");
    cell->arcs = 0;
    size_t index;
    const json_t *iteration;
    json_array_foreach(json_object_get(report, "iterations"), index, iteration)
    {
        cell->arcs += (uint64_t)json_integer_value(json_object_get(iteration, "arcs"));
    }
    return dmg_counters_from_json(json_object_get(json_object_get(report, "operations"), "run"), &cell->counters);
}

static int by_seconds(const void *a, const void *b)
{
    const dmg_compare_turn *left = a;
    const dmg_compare_turn *right = b;
    return (left->seconds > right->seconds) - (left->seconds < right->seconds);
}

/** Of the runs of a round, the one of median time counts. */
static void settle_round(dmg_compare_cell *cell, uint32_t round)
{
    if (cell->turn_count == 0) {
        return;
    }
    qsort(cell->turns, cell->turn_count, sizeof *cell->turns, by_seconds);
    const dmg_compare_turn *middle = &cell->turns[(cell->turn_count - 1) / 2];
    cell->seconds[round] = middle->seconds;
    cell->waits[round] = middle->wait;
    cell->accounted[round] = middle->accounted;
    cell->totals[round] = middle->total;
    cell->repeats[round] = cell->turn_count;
    cell->count = round + 1;
    cell->turn_count = 0;
}

/** Keep the report of the fastest run for the model. */
static dmg_status take_model_run(const json_t *report, dmg_compare_cell *cell, dmg_predict_run *kept)
{
    double seconds = cell->turns[cell->turn_count - 1].seconds;
    if (cell->fastest > 0 && cell->fastest <= seconds) {
        return DMG_OK;
    }
    cell->fastest = seconds;
    dmg_predict_run_free(kept);
    return dmg_predict_run_read(report, kept);
}

static void take_transport(const json_t *report, dmg_compare_configuration *configuration)
{
    const json_t *transport = json_object_get(json_object_get(report, "nodes"), "transport");
    const char *chosen = json_string_value(json_object_get(transport, "chosen"));
    snprintf(configuration->chosen, sizeof configuration->chosen, "%s", chosen ? chosen : "");
    size_t index;
    const json_t *capability;
    json_array_foreach(json_object_get(transport, "capabilities"), index, capability)
    {
        configuration->has_load_store |= strcmp(json_string_value(capability), "load_store") == 0;
    }
    const char *atomics = json_string_value(json_object_get(transport, "atomics"));
    const char *method = json_string_value(json_object_get(json_object_get(report, "updates"), "method"));
    configuration->locks_are_avoided =
        atomics && method && strcmp(atomics, "caller_lock") == 0 && strcmp(method, "valrd-owner") == 0;
}

/** Facts about the answer that no interconnect may change; sums of floats are those of different orders. */
static bool is_same_fact(const char *key, const json_t *one, const json_t *other)
{
    if (strcmp(key, "iterations") == 0 || strcmp(key, "residual") == 0 || strcmp(key, "top") == 0) {
        return true;
    }
    if (json_is_real(one) && json_is_real(other)) {
        double a = json_real_value(one);
        double b = json_real_value(other);
        return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b));
    }
    return json_equal(one, other);
}

static dmg_status check_answer(dmg_compare *compare, const run_place *place, json_t *report)
{
    json_t *answer = json_object_get(report, "result");
    json_t **expected = &compare->answers[place->algorithm];
    if (!*expected) {
        *expected = json_incref(answer);
        return DMG_OK;
    }
    const char *key;
    json_t *fact;
    json_object_foreach(*expected, key, fact)
    {
        if (!is_same_fact(key, fact, json_object_get(answer, key))) {
            return dmg_error(DMG_ERR_VERIFY, "%s: '%s' of the answer over %s differs from that of the first run",
                             compare->algorithms[place->algorithm], key,
                             compare->configurations[place->configuration].title);
        }
    }
    return DMG_OK;
}

static dmg_status run_one(dmg_compare *compare, const run_place *place, uint32_t round)
{
    dmg_compare_configuration *configuration = &compare->configurations[place->configuration];
    dmg_compare_cell *cell =
        dmg_compare_cell_of(compare, place->configuration, place->algorithm, place->cns, place->variant);
    dmg_compare_call call = {0};
    json_t *report = NULL;
    dmg_compare_progress(compare, "round %" PRIu32 ": %s over %s, %" PRIu32 " CN%s, %s", round + 1,
                         compare->algorithms[place->algorithm], configuration->title, compare->cns[place->cns],
                         compare->cns[place->cns] == 1 ? "" : "s", dmg_compare_variant_name(place->variant));
    describe_call(compare, place, &call);
    dmg_status status = dmg_compare_call_run(&call, 0, &report);
    if (status == DMG_OK) {
        status = take_report(report, cell);
    }
    if (status == DMG_OK) {
        status = check_answer(compare, place, report);
    }
    if (status == DMG_OK && place->variant == DMG_VARIANT_AS_IT_IS) {
        take_transport(report, configuration);
        status = take_model_run(report, cell,
                                dmg_compare_model_run_of(compare, place->configuration, place->algorithm, place->cns));
    }
    json_decref(report);
    return status == DMG_OK
               ? DMG_OK
               : dmg_error_prefix(status, "%s over %s", compare->algorithms[place->algorithm], configuration->title);
}

/* ---- in turns ---- */

static bool is_run(const dmg_compare *compare, const run_place *place, uint32_t round)
{
    if (place->variant == DMG_VARIANT_AS_IT_IS) {
        return true;
    }
    if (!compare->configurations[place->configuration].has_link) {
        return false;
    }
    return place->variant == DMG_VARIANT_BARE || (place->cns == 0 && round < CHANGED_ROUNDS);
}

/** What has no link is the same without it. */
static void copy_bare(dmg_compare *compare)
{
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        for (uint32_t a = 0; a < compare->algorithm_count && !compare->configurations[i].has_link; a++) {
            for (uint32_t n = 0; n < compare->cns_count; n++) {
                *dmg_compare_cell_of(compare, i, a, n, DMG_VARIANT_BARE) =
                    *dmg_compare_cell_of(compare, i, a, n, DMG_VARIANT_AS_IT_IS);
            }
        }
    }
}

/** Runs of a piece of work in one round, from the shortest of its first ones. */
static uint32_t repeats_wanted(const dmg_compare *compare, uint32_t algorithm, uint32_t cns)
{
    if (dmg_has(compare->settings, DMG_OPTION_REPEATS)) {
        return (uint32_t)dmg_number(compare->settings, DMG_OPTION_REPEATS);
    }
    double shortest = INFINITY;
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        shortest = fmin(shortest, dmg_compare_cell_of(compare, i, algorithm, cns, DMG_VARIANT_AS_IT_IS)->fastest);
    }
    return shortest < DMG_COMPARE_SHORT_SECONDS ? REPEATS_SHORT : 1;
}

/** All configurations of one piece of work follow each other at once, each time beginning with another one. */
static dmg_status run_piece(dmg_compare *compare, uint32_t algorithm, uint32_t cns, uint32_t round)
{
    uint32_t count = compare->configuration_count;
    dmg_status status = DMG_OK;
    uint32_t repeats = 1;
    for (uint32_t repeat = 0; repeat < repeats; repeat++) {
        for (int variant = 0; variant < DMG_VARIANTS; variant++) {
            for (uint32_t i = 0; i < count && status == DMG_OK; i++) {
                const run_place place = {(i + round + repeat) % count, algorithm, cns, (dmg_compare_variant)variant};
                status = is_run(compare, &place, round) ? run_one(compare, &place, round) : DMG_OK;
            }
        }
        if (status != DMG_OK) {
            return status;
        }
        repeats = repeat == 0 ? repeats_wanted(compare, algorithm, cns) : repeats;
    }
    for (uint32_t i = 0; i < count; i++) {
        for (int variant = 0; variant < DMG_VARIANTS; variant++) {
            settle_round(dmg_compare_cell_of(compare, i, algorithm, cns, (dmg_compare_variant)variant), round);
        }
    }
    return DMG_OK;
}

static dmg_status run_round(dmg_compare *compare, uint32_t round)
{
    dmg_status status = DMG_OK;
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (uint32_t cns = 0; cns < compare->cns_count && status == DMG_OK; cns++) {
            status = run_piece(compare, algorithm, cns, round);
        }
    }
    return status;
}

/** Whether one more round is wanted, and can be afforded. */
static bool is_next_wanted(const dmg_compare *compare, uint32_t done, double elapsed_seconds)
{
    if (dmg_has(compare->settings, DMG_OPTION_ROUNDS)) {
        return done < dmg_number(compare->settings, DMG_OPTION_ROUNDS);
    }
    double with_next = elapsed_seconds / done * (done + 1);
    return done < ROUNDS_LEAST   ? true
           : done < ROUNDS_USUAL ? with_next < RUNS_SECONDS_MOST
                                 : done < ROUNDS_MOST && with_next < RUNS_SECONDS;
}

dmg_status dmg_compare_run_all(dmg_compare *compare)
{
    size_t cells = (size_t)compare->configuration_count * compare->algorithm_count * compare->cns_count * DMG_VARIANTS;
    compare->cells = calloc(cells, sizeof *compare->cells);
    compare->model_runs = calloc(cells / DMG_VARIANTS, sizeof *compare->model_runs);
    if (!compare->cells || !compare->model_runs) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for what comes out");
    }
    uint64_t started_ns = dmg_now_ns();
    dmg_status status = DMG_OK;
    do {
        status = run_round(compare, compare->rounds);
        compare->rounds++;
    } while (status == DMG_OK &&
             is_next_wanted(compare, compare->rounds, (double)(dmg_now_ns() - started_ns) / NANOSECONDS_SECOND));
    copy_bare(compare);
    return status;
}
