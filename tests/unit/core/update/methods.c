/*
 * Random programs over all the methods by which an update can leave a partition: none is lost, none is applied twice,
 * and the figures add up.
 *
 * Programs take minima or add whole numbers, so that a serial computation has the same bits whatever the order. Buffers
 * are often so small that each flush and each full directory happens all the time. The compute nodes are threads of the
 * test, each with a client of its own.
 */
#include "unit/support/suite.h"

#include "core/base/error.h"
#include "core/engine/retrieval/retrieval.h"
#include "unit/core/update/methods_programs.h"
#include "unit/support/pool_fixture.h"
#include "unit/support/random_graph.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES  (UINT64_C(48) << 20)
#define NODES          3
#define RANKS_MAX      4
#define ITERATIONS_MAX 512
#define TRIALS         16
#define TRIALS_THIN    5

static const char *transport;
static dmg_random randomness;
static dmg_test_pool pool;
static uint32_t jobs;

/* How a program is run. */
struct setting {
    const dmg_methods_program *program;
    dmg_methods_parameters parameters;
    uint32_t ranks;
    uint32_t partitions;
    uint32_t entry_bytes;
    dmg_engine_options engine;
};

struct rank {
    const struct setting *setting;
    const dmg_graph *graph;
    const char *job_name;
    uint32_t index;
    void *values; /* rank 0 reads them here */
    dmg_status status;
    char sentence[512];
    dmg_client *client; /* opened once */
    dmg_channel *channel;
    dmg_job job;
    uint64_t first_vertex; /* of its partitions */
    uint32_t iterations;
    dmg_iteration rows[ITERATIONS_MAX];
};

static struct rank ranks[RANKS_MAX];

static dmg_status share_store(struct rank *rank, dmg_graph_store *store)
{
    size_t bytes = sizeof *store;
    dmg_status status = DMG_OK;
    if (rank->index == 0) {
        const dmg_store_options options = {.partition_count = rank->setting->partitions,
                                           .entry_bytes = rank->setting->entry_bytes,
                                           .with_out = true,
                                           .with_in = true,
                                           .job = rank->job.id};
        status = dmg_graph_store_create(rank->channel, rank->graph, &options, store);
        if (status == DMG_OK) {
            status = dmg_catalog_put(rank->channel, rank->job.id, rank->job_name, store, sizeof *store);
        }
    }
    if (status == DMG_OK) {
        status = dmg_job_barrier(rank->channel, &rank->job, NULL);
    }
    if (status == DMG_OK && rank->index != 0) {
        status = dmg_catalog_get(rank->channel, rank->job_name, store, &bytes);
    }
    return status;
}

static dmg_status read_values(struct rank *rank, const dmg_range_array *array)
{
    dmg_completion completion = {0};
    if (array->count > 0) {
        dmg_range_array_post_read(rank->channel, array, 0, array->count, rank->values, &completion);
    }
    return dmg_wait(rank->channel, &completion);
}

static dmg_status run_on_engine(struct rank *rank)
{
    dmg_graph_store store = {0};
    dmg_engine *engine = NULL;
    dmg_run_result result = {0};
    dmg_status status = share_store(rank, &store);
    if (status == DMG_OK) {
        status = dmg_engine_create(rank->client, rank->channel, &rank->job, &store, &rank->setting->engine, &engine);
    }
    if (status == DMG_OK) {
        status = dmg_engine_load(engine, rank->graph, NULL);
    }
    if (status == DMG_OK) {
        status = rank->setting->program->run(engine, &rank->setting->parameters, &result);
    }
    if (status == DMG_OK && rank->index == 0) {
        status = read_values(rank, &result.values);
    }
    if (status == DMG_OK) {
        rank->first_vertex =
            store.partition_first[dmg_first_partition_of(rank->setting->partitions, rank->index, rank->setting->ranks)];
        rank->iterations = result.iterations_kept < ITERATIONS_MAX ? result.iterations_kept : ITERATIONS_MAX;
        for (uint32_t i = 0; i < rank->iterations; i++) {
            rank->rows[i] = result.iterations[i];
        }
    }
    dmg_engine_destroy(engine);
    return status;
}

static void *rank_main(void *argument)
{
    struct rank *rank = argument;
    rank->iterations = 0;
    rank->status =
        dmg_job_join(rank->channel, &dmg_test_pass, rank->job_name, rank->index, rank->setting->ranks, &rank->job);
    if (rank->status == DMG_OK) {
        rank->status = run_on_engine(rank);
    }
    if (rank->status == DMG_OK) {
        rank->status = dmg_job_leave(rank->channel, &rank->job);
    }
    snprintf(rank->sentence, sizeof rank->sentence, "%s", rank->status == DMG_OK ? "" : dmg_error_message());
    return NULL;
}

static void describe(const struct setting *setting)
{
    const dmg_engine_options *engine = &setting->engine;
    printf(
        "\n    %s over %s: %u ranks, %u threads, %u partitions, entries of %u bytes, direction %d, density %d, updates "
        "%d, partials %d, references above %u edges and degree %u, buffers of %u and %u bytes, %u a round\n",
        setting->program->name, transport, setting->ranks, engine->threads, setting->partitions, setting->entry_bytes,
        engine->direction, engine->density, engine->updates, engine->partials, engine->reference_edges,
        engine->reference_degree, engine->reference_buffer_bytes, engine->value_buffer_bytes, engine->round_buffers);
}

/* Run on all ranks; true when all went well. */
static bool run_job(const struct setting *setting, const dmg_graph *graph, void *values)
{
    pthread_t threads[RANKS_MAX];
    char name[32];
    snprintf(name, sizeof name, "methods %u", jobs++);
    for (uint32_t i = 0; i < setting->ranks; i++) {
        ranks[i].setting = setting;
        ranks[i].graph = graph;
        ranks[i].job_name = name;
        ranks[i].index = i;
        ranks[i].values = values;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, rank_main, &ranks[i]), 0);
    }
    bool is_run = true;
    for (uint32_t i = 0; i < setting->ranks; i++) {
        pthread_join(threads[i], NULL);
        if (ranks[i].status != DMG_OK) {
            describe(setting);
            printf("    rank %u: %s\n", i, ranks[i].sentence);
            is_run = false;
        }
    }
    return is_run;
}

/* An iteration's figures of all ranks. */
static dmg_iteration sum_of_rows(const struct setting *setting, uint32_t iteration)
{
    dmg_iteration sum = ranks[0].rows[iteration];
    for (uint32_t i = 1; i < setting->ranks; i++) {
        const dmg_iteration *row = &ranks[i].rows[iteration];
        sum.arcs += row->arcs;
        sum.updates_local += row->updates_local;
        sum.updates_remote += row->updates_remote;
        sum.references += row->references;
        dmg_traffic_add(&sum.traffic, &row->traffic);
    }
    return sum;
}

/* What was sent was taken, and in an iteration that pushes along all arcs there is an update an arc. */
static bool figures_add_up(const struct setting *setting, const dmg_graph *graph, const dmg_iteration *sum)
{
    const dmg_passed *sent = sum->traffic.sent;
    bool adds_up = memcmp(sent, sum->traffic.taken, sizeof sum->traffic.sent) == 0;
    adds_up = adds_up && sum->references == sent[DMG_UPDATE_REFRD].items &&
              sum->updates_remote == sent[DMG_UPDATE_DIRECT].items + sent[DMG_UPDATE_VALRD_NODE].items +
                                         sent[DMG_UPDATE_VALRD_OWNER].items;
    if (setting->program->adds && sum->direction == DMG_DIRECTION_PUSH) {
        uint64_t applied = sum->updates_local + sum->updates_remote;
        adds_up = adds_up && sum->arcs == graph->arc_count && applied == graph->arc_count;
    }
    return adds_up;
}

static void expect_serial_answer(const struct setting *setting, const dmg_graph *graph)
{
    uint64_t bytes = graph->vertex_count * setting->program->value_bytes;
    void *values = calloc(1, bytes + 8);
    void *expected = calloc(1, bytes + 8);
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    CU_ASSERT_PTR_NOT_NULL_FATAL(expected);
    setting->program->serial(graph, &setting->parameters, expected);
    if (!run_job(setting, graph, values)) {
        CU_FAIL("a run failed");
    } else if (memcmp(values, expected, bytes) != 0) {
        describe(setting);
        CU_FAIL("an answer differs from the serial one");
    } else {
        for (uint32_t i = 0; i < ranks[0].iterations; i++) {
            dmg_iteration sum = sum_of_rows(setting, i);
            if (!figures_add_up(setting, graph, &sum)) {
                describe(setting);
                CU_FAIL("the figures of an iteration do not add up");
            }
        }
    }
    free(values);
    free(expected);
}

/* ---- random settings ---- */

static uint32_t any_of(const uint32_t *choices, size_t count)
{
    return choices[dmg_random_below(&randomness, count)];
}

#define ANY_OF(...) any_of((const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static struct setting any_setting(const dmg_methods_program *program)
{
    uint32_t ranks_of_job = ANY_OF(1, 2, 2, 3, 3, 4);
    struct setting setting = {
        .program = program,
        .parameters = {.seed = dmg_random_next(&randomness), .iterations = ANY_OF(1, 2, 3)},
        .ranks = ranks_of_job,
        .partitions = ranks_of_job * ANY_OF(1, 1, 2) + ANY_OF(0, 0, 1),
        .entry_bytes = ANY_OF(0, 16, 32),
        .engine = {
            .threads = ANY_OF(1, 2, 3),
            .direction =
                (dmg_direction)ANY_OF(DMG_DIRECTION_AUTO, DMG_DIRECTION_PUSH, DMG_DIRECTION_PUSH, DMG_DIRECTION_PULL),
            .density = (dmg_density)ANY_OF(DMG_DENSITY_AUTO, DMG_DENSITY_DENSE, DMG_DENSITY_DENSE, DMG_DENSITY_SPARSE),
            .updates = (dmg_update_method)ANY_OF(DMG_UPDATE_AUTO, DMG_UPDATE_DIRECT, DMG_UPDATE_VALRD_NODE,
                                                 DMG_UPDATE_VALRD_OWNER, DMG_UPDATE_VALRD_OWNER),
            .partials = (dmg_partials)ANY_OF(DMG_PARTIALS_ARRAY, DMG_PARTIALS_VALUE),
            .reference_edges = ANY_OF(0, 1, 3, DMG_REFERENCE_EDGES_NEVER),
            .reference_degree = ANY_OF(0, 1, 10),
            .reference_buffer_bytes = ANY_OF(0, 24, 48, 100),
            .value_buffer_bytes = ANY_OF(0, 12, 24, 100),
            .round_buffers = ANY_OF(0, 1, 2, 5)}};
    return setting;
}

static void make_any_graph(dmg_graph *graph)
{
    uint64_t vertices = ANY_OF(1, 2, 65, 200, 500, 900);
    const dmg_random_graph_options options = {.vertex_count = vertices,
                                              .degree_max = ANY_OF(2, 8, 20),
                                              .hub_count = vertices > 100 ? ANY_OF(0, 1, 4) : 0,
                                              .hub_degree = (uint32_t)vertices / 2,
                                              .is_directed = dmg_random_below(&randomness, 2) == 0};
    dmg_random_graph_make(&options, &randomness, graph);
}

static void expect_random_runs(const dmg_methods_program *program)
{
    const char *depth = getenv("DMGRAPH_TEST_DEPTH");
    bool is_slow = strcmp(transport, "ucx:data=message") == 0; /* every access is a message */
    uint32_t trials = is_slow || (depth && strcmp(depth, "thin") == 0) ? TRIALS_THIN : TRIALS;
    for (uint32_t i = 0; i < trials; i++) {
        dmg_graph graph;
        make_any_graph(&graph);
        struct setting setting = any_setting(program);
        expect_serial_answer(&setting, &graph);
        dmg_graph_close(&graph);
    }
}

/* ---- tests ---- */

static void minima_of_4_bytes_are_exact_whatever_the_ways(void)
{
    expect_random_runs(&dmg_methods_min_uint32);
}

static void minima_of_8_bytes_are_exact_whatever_the_ways(void)
{
    expect_random_runs(&dmg_methods_min_uint64);
}

static void sums_count_every_update_once_whatever_the_ways(void)
{
    expect_random_runs(&dmg_methods_add_double);
}

/* Two ranks that push sums along all arcs: what goes by reference is the metadata of segments, and no edge. */
static void adding_programs_pass_long_segments_by_reference(void)
{
    dmg_graph graph;
    const dmg_random_graph_options options = {
        .vertex_count = 1024, .degree_max = 30, .hub_count = 3, .hub_degree = 512, .is_directed = true};
    dmg_random_graph_make(&options, &randomness, &graph);
    struct setting setting = {.program = &dmg_methods_add_double,
                              .parameters = {.seed = 1, .iterations = 2},
                              .ranks = 2,
                              .partitions = 2,
                              .engine = {.threads = 2,
                                         .direction = DMG_DIRECTION_PUSH,
                                         .updates = DMG_UPDATE_VALRD_OWNER,
                                         .reference_edges = DMG_REFERENCE_EDGES_NEVER}};
    expect_serial_answer(&setting, &graph);
    dmg_iteration by_value = sum_of_rows(&setting, 1);
    CU_ASSERT_EQUAL(by_value.references, 0);
    setting.engine.reference_edges = 1;
    expect_serial_answer(&setting, &graph);
    dmg_iteration by_reference = sum_of_rows(&setting, 1);
    const dmg_passed *references = &by_reference.traffic.sent[DMG_UPDATE_REFRD];
    const dmg_passed *values = &by_reference.traffic.sent[DMG_UPDATE_VALRD_OWNER];
    CU_ASSERT_TRUE(references->items > 100);
    CU_ASSERT_EQUAL(references->bytes, references->items * 24);
    CU_ASSERT_EQUAL(values->bytes, values->items * 12);
    CU_ASSERT_TRUE(values->items + 2 * references->items <= by_value.traffic.sent[DMG_UPDATE_VALRD_OWNER].items);
    dmg_graph_close(&graph);
}

/* Pull, partial sums by value: of each vertex elsewhere at most one update a compute node, and none of those that are
 * 0. */
static void partial_sums_by_value_are_those_that_are_not_0(void)
{
    dmg_graph graph;
    const dmg_random_graph_options options = {
        .vertex_count = 1024, .degree_max = 1, .hub_count = 20, .hub_degree = 100, .is_directed = true};
    dmg_random_graph_make(&options, &randomness, &graph);
    const struct setting setting = {
        .program = &dmg_methods_add_double,
        .parameters = {.seed = 1, .iterations = 1},
        .ranks = 2,
        .partitions = 2,
        .engine = {.threads = 1, .direction = DMG_DIRECTION_PULL, .partials = DMG_PARTIALS_VALUE}};
    expect_serial_answer(&setting, &graph);
    dmg_iteration sum = sum_of_rows(&setting, 0);
    /* What a vertex elsewhere is given by the sources of a rank; in the first iteration all values are positive. */
    uint64_t expected = 0;
    for (uint32_t v = 0; v < graph.vertex_count; v++) {
        bool is_given[2] = {false, false};
        uint64_t border = ranks[1].first_vertex;
        for (uint64_t arc = graph.in.offsets[v]; arc < graph.in.offsets[v + 1]; arc++) {
            is_given[graph.in.destinations[arc] >= border] = true;
        }
        expected += is_given[v < border];
    }
    CU_ASSERT_EQUAL(sum.updates_remote, expected);
    CU_ASSERT_TRUE(expected > 10 && expected < graph.vertex_count);
    dmg_graph_close(&graph);
}

static const dmg_test tests[] = {
    DMG_TEST(minima_of_4_bytes_are_exact_whatever_the_ways),  DMG_TEST(minima_of_8_bytes_are_exact_whatever_the_ways),
    DMG_TEST(sums_count_every_update_once_whatever_the_ways), DMG_TEST(adding_programs_pass_long_segments_by_reference),
    DMG_TEST(partial_sums_by_value_are_those_that_are_not_0), {NULL, NULL},
};

static int open_ranks(void)
{
    static size_t index;
    transport = dmg_test_transports[index++];
    if (dmg_test_pool_start(transport, NODES, SEGMENT_BYTES, &pool) != DMG_OK) {
        return 1;
    }
    memset(ranks, 0, sizeof ranks);
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        if (dmg_client_open(&pool.options, &ranks[i].client) != DMG_OK ||
            dmg_channel_open(ranks[i].client, &ranks[i].channel) != DMG_OK) {
            return 1;
        }
    }
    return 0;
}

static int close_ranks(void)
{
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        dmg_channel_close(ranks[i].channel);
        dmg_client_close(ranks[i].client);
    }
    dmg_test_pool_stop(&pool);
    return 0;
}

int main(int argc, char **argv)
{
    randomness.state = dmg_test_seed();
    for (size_t i = 0; dmg_test_transports[i]; i++) {
        if (dmg_suite_add(dmg_test_transports[i], open_ranks, close_ranks, tests) != 0) {
            return 1;
        }
    }
    return dmg_suites_run(argc, argv);
}
