/*
 * Running an algorithm on a session's graph, and reading its values.
 */
#include "algorithms/algorithm.h"
#include "api/session_state.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what is to be run ---- */

static dmg_status unknown_algorithm(const char *name)
{
    char known[256] = "";
    size_t used = 0;
    for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm && used < sizeof known; algorithm++) {
        int length = snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", (*algorithm)->name);
        used += length > 0 ? (size_t)length : 0;
    }
    return dmg_error(DMG_ERR_NOT_FOUND, "there is no algorithm '%s'; there are %s", name, known);
}

static dmg_status check_parameters(const dmg_run_parameters *parameters)
{
    if (!(parameters->tolerance >= 0) || isinf(parameters->tolerance)) {
        return dmg_error(DMG_ERR_ARGUMENT, "a tolerance of %g: it is 0 or more", parameters->tolerance);
    }
    if (!(parameters->damping >= 0 && parameters->damping < 1)) {
        return dmg_error(DMG_ERR_ARGUMENT, "a damping of %g: it is 0 or more, and below 1", parameters->damping);
    }
    return DMG_OK;
}

/* As in the program's options, what an algorithm does not take is refused. */
static dmg_status check_taken(const dmg_algorithm *algorithm, const dmg_run_parameters *parameters)
{
    const struct {
        bool is_set;
        dmg_algorithm_choice needs;
        const char *name;
    } given[] = {{parameters->has_source, DMG_TAKES_SOURCE, "source"},
                 {parameters->iterations_max > 0, DMG_TAKES_ITERATIONS, "iterations_max"},
                 {parameters->tolerance > 0, DMG_TAKES_TOLERANCE, "tolerance"},
                 {parameters->damping > 0, DMG_TAKES_DAMPING, "damping"}};
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        if (given[i].is_set && !dmg_algorithm_takes(algorithm, given[i].needs)) {
            return dmg_error(DMG_ERR_ARGUMENT, "%s takes no %s: leave it zero", algorithm->name, given[i].name);
        }
    }
    return DMG_OK;
}

static dmg_status check_graph(const dmg_session *session, const dmg_algorithm *algorithm)
{
    const dmg_graph_store *store = &session->store;
    if (algorithm->needs_in && store->is_directed && !store->has_in) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "%s needs the lists against the arcs, too: load the graph without out_lists_only",
                         algorithm->name);
    }
    if (algorithm->refuses_negative_weights && store->weight_kind != DMG_WEIGHT_NONE && session->negative_line) {
        return dmg_error(DMG_ERR_FORMAT, "%s:%" PRIu64 ": negative weight: %s needs weights >= 0",
                         session->negative_source, session->negative_line, algorithm->name);
    }
    return DMG_OK;
}

/* The vertex where the algorithm starts, and its id. */
static dmg_status choose_source(dmg_session *session, const dmg_run_parameters *parameters, uint32_t *source,
                                uint64_t *id)
{
    if (!parameters->has_source && session->store.vertex_count == 0) {
        *source = DMG_NO_VERTEX;
        return DMG_OK;
    }
    uint64_t vertex = session->first_source;
    *id = parameters->source;
    dmg_status status = parameters->has_source ? dmg_session_find(session, parameters->source, &vertex)
                                               : dmg_session_ids(session, vertex, 1, id);
    *source = (uint32_t)vertex;
    return status;
}

/* ---- running ---- */

static void mix(uint64_t *digest, uint64_t word)
{
    *digest = (*digest ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    *digest ^= *digest >> 29;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Ranks that run different things would wait for each other in vain, or mix their values. */
static dmg_status compare_ranks(dmg_session *session, dmg_job *job, const dmg_algorithm *algorithm,
                                const dmg_algorithm_options *options)
{
    uint64_t digest = 0;
    for (const char *letter = algorithm->name; *letter; letter++) {
        mix(&digest, (unsigned char)*letter);
    }
    mix(&digest, options->source);
    mix(&digest, options->iterations_max);
    mix(&digest, bits_of(options->tolerance));
    mix(&digest, bits_of(options->damping));
    dmg_reduction reduction = {.least = {digest}, .most = {digest}};
    dmg_status status = dmg_job_barrier(session->channel, job, &reduction);
    if (status == DMG_OK && reduction.least[0] != reduction.most[0]) {
        status = dmg_error(DMG_ERR_ARGUMENT,
                           "the ranks of the session ask for different runs: all must run the same algorithm with the "
                           "same parameters");
    }
    return status;
}

static dmg_status run_on_engine(dmg_session *session, dmg_job *job, const dmg_algorithm *algorithm,
                                const dmg_algorithm_options *options, dmg_answer *answer)
{
    const dmg_engine_options engine_options = {.threads = session->threads, .cache_bytes = session->cache_bytes};
    dmg_engine *engine = NULL;
    dmg_run_result result = {0};
    dmg_status status =
        dmg_engine_create(session->client, session->channel, job, &session->store, &engine_options, &engine);
    if (status == DMG_OK) {
        status = algorithm->run(engine, options, &result);
    }
    if (status == DMG_OK) {
        session->values = result.values;
        session->value_bytes = algorithm->value_bytes;
        answer->value_bytes = algorithm->value_bytes;
        answer->iterations = result.iteration_count;
        answer->residual = result.residual;
        answer->elapsed_ns = result.elapsed_ns;
    }
    dmg_engine_destroy(engine);
    return status;
}

/* All ranks have begun: what goes wrong from here on, the others have to hear. */
static dmg_status run_in_job(dmg_session *session, dmg_job *job, const char *name, const dmg_run_parameters *parameters,
                             dmg_answer *answer)
{
    const dmg_algorithm *algorithm = dmg_algorithm_find(name);
    if (!algorithm) {
        return unknown_algorithm(name);
    }
    /* In the engine's options, what is negative is open. */
    dmg_algorithm_options options = {.source = DMG_NO_VERTEX,
                                     .iterations_max = parameters->iterations_max,
                                     .tolerance = parameters->tolerance > 0 ? parameters->tolerance : -1,
                                     .damping = parameters->damping > 0 ? parameters->damping : -1};
    dmg_status status = check_parameters(parameters);
    if (status == DMG_OK) {
        status = check_taken(algorithm, parameters);
    }
    if (status == DMG_OK) {
        status = check_graph(session, algorithm);
    }
    if (status == DMG_OK && dmg_algorithm_takes(algorithm, DMG_TAKES_SOURCE)) {
        status = choose_source(session, parameters, &options.source, &answer->source);
    }
    if (status == DMG_OK) {
        status = compare_ranks(session, job, algorithm, &options);
    }
    return status == DMG_OK ? run_on_engine(session, job, algorithm, &options, answer) : status;
}

dmg_status dmg_session_run(dmg_session *session, const char *algorithm, const dmg_run_parameters *parameters,
                           dmg_answer *answer)
{
    static const dmg_run_parameters defaults;
    dmg_status status = dmg_session_need_graph(session);
    if (status == DMG_OK && !algorithm) {
        status = dmg_error(DMG_ERR_ARGUMENT, "running an algorithm: its name is missing");
    }
    if (status != DMG_OK) {
        return status;
    }
    dmg_session_leave(session, &session->run_job);
    memset(&session->values, 0, sizeof session->values);
    dmg_job job = {0};
    status = dmg_session_step_begin(session, "run", &job);
    if (status != DMG_OK) {
        return status;
    }
    dmg_answer run_answer = {0};
    status = run_in_job(session, &job, algorithm, parameters ? parameters : &defaults, &run_answer);
    if (status != DMG_OK) {
        return dmg_session_step_fail(session, &job, status);
    }
    session->run_job = job;
    if (answer) {
        *answer = run_answer;
    }
    return DMG_OK;
}

/* ---- values ---- */

dmg_status dmg_session_values(dmg_session *session, uint64_t first, uint64_t count, size_t value_bytes, void *values)
{
    dmg_status status = dmg_session_need_graph(session);
    if (status == DMG_OK && session->run_job.id == 0) {
        status = dmg_error(DMG_ERR_ARGUMENT, "the session has no values: run an algorithm first");
    }
    if (status == DMG_OK && value_bytes != session->value_bytes) {
        status = dmg_error(DMG_ERR_ARGUMENT, "values of the last run have %u bytes each, not %zu", session->value_bytes,
                           value_bytes);
    }
    if (status == DMG_OK) {
        status = dmg_session_check_range(session, first, count);
    }
    if (status == DMG_OK && count > 0 && !values) {
        status = dmg_error(DMG_ERR_ARGUMENT, "reading values: there is no place to put them");
    }
    return status == DMG_OK ? dmg_session_read(session, &session->values, first, count, values) : status;
}
