/*
 * Algorithms on the engine, against the serial ones: every transport, memory-node, compute-node and thread count,
 * direction and density.
 *
 * The compute nodes are threads of the test, each with a client of its own.
 */
#include "unit/support/suite.h"

#include "algorithms/algorithm.h"
#include "core/base/error.h"
#include "unit/support/pool_fixture.h"
#include "unit/support/random_graph.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES (UINT64_C(16) << 20)
#define RANKS_MAX     20

static const char *transport;
static dmg_random randomness;

/* How an algorithm is run. */
struct setting {
    uint32_t nodes;
    uint32_t ranks;
    uint32_t partitions; /* 0: as many as ranks */
    bool without_embedding;
    const dmg_link_settings *link; /* NULL: none */
    dmg_engine_options engine;
};

struct rank {
    const struct setting *setting;
    const dmg_test_pool *pool;
    const dmg_graph *graph;
    const dmg_algorithm *algorithm;
    const dmg_algorithm_options *options;
    const char *job_name;
    uint32_t index;
    uint32_t capabilities;
    dmg_update_method method;
    void *values; /* rank 0 reads them here */
    dmg_status status;
    char sentence[512];
    uint32_t iterations;
    dmg_iteration first_rows[8];
    uint64_t cache_peak_bytes;
    uint64_t index_peak_bytes;
};

static dmg_status share_store(struct rank *rank, dmg_channel *channel, dmg_job *job, dmg_graph_store *store)
{
    size_t bytes = sizeof *store;
    dmg_status status = DMG_OK;
    if (rank->index == 0) {
        const dmg_store_options options = {.partition_count = rank->setting->partitions ? rank->setting->partitions
                                                                                        : rank->setting->ranks,
                                           .without_embedding = rank->setting->without_embedding,
                                           .with_out = true,
                                           .with_in = !rank->graph->is_directed || rank->graph->in.offsets,
                                           .job = job->id};
        status = dmg_graph_store_create(channel, rank->graph, &options, store);
        if (status == DMG_OK) {
            status = dmg_catalog_put(channel, job->id, rank->job_name, store, sizeof *store);
        }
    }
    if (status == DMG_OK) {
        status = dmg_job_barrier(channel, job, NULL);
    }
    if (status == DMG_OK && rank->index != 0) {
        status = dmg_catalog_get(channel, rank->job_name, store, &bytes);
    }
    return status;
}

static dmg_status read_values(dmg_channel *channel, const dmg_range_array *array, void *values)
{
    dmg_completion completion = {0};
    if (array->count > 0) {
        dmg_range_array_post_read(channel, array, 0, array->count, values, &completion);
    }
    return dmg_wait(channel, &completion);
}

static dmg_status run_on_engine(struct rank *rank, dmg_client *client, dmg_channel *channel, dmg_job *job)
{
    dmg_graph_store store;
    dmg_engine *engine = NULL;
    dmg_run_result result;
    memset(&store, 0, sizeof store);
    memset(&result, 0, sizeof result);
    rank->capabilities = dmg_client_capabilities(client)->flags;
    dmg_status status = share_store(rank, channel, job, &store);
    if (status == DMG_OK) {
        status = dmg_engine_create(client, channel, job, &store, &rank->setting->engine, &engine);
    }
    if (status == DMG_OK) {
        status = dmg_engine_load(engine, rank->graph, NULL);
    }
    if (status == DMG_OK) {
        status = rank->algorithm->run(engine, rank->options, &result);
    }
    if (status == DMG_OK && rank->index == 0) {
        status = read_values(channel, &result.values, rank->values);
    }
    if (status == DMG_OK) {
        rank->iterations = result.iteration_count;
        rank->method = dmg_engine_update_method(engine);
        for (uint32_t i = 0; i < 8 && i < result.iterations_kept; i++) {
            rank->first_rows[i] = result.iterations[i];
        }
        rank->index_peak_bytes = dmg_budget_purpose_peak_bytes(dmg_engine_budget(engine), DMG_BUDGET_INDEX);
        rank->cache_peak_bytes = dmg_budget_purpose_peak_bytes(dmg_engine_budget(engine), DMG_BUDGET_ATTRIBUTES);
    }
    dmg_engine_destroy(engine);
    return status;
}

static dmg_status run_rank(struct rank *rank)
{
    dmg_client *client = NULL;
    dmg_channel *channel = NULL;
    dmg_job job = {0};
    dmg_status status = dmg_client_open(&rank->pool->options, &client);
    if (status == DMG_OK) {
        status = dmg_channel_open(client, &channel);
    }
    if (status == DMG_OK) {
        status = dmg_job_join(channel, &dmg_test_pass, rank->job_name, rank->index, rank->setting->ranks, &job);
    }
    if (status == DMG_OK) {
        status = run_on_engine(rank, client, channel, &job);
    }
    if (status == DMG_OK) {
        status = dmg_job_leave(channel, &job);
    }
    snprintf(rank->sentence, sizeof rank->sentence, "%s", status == DMG_OK ? "" : dmg_error_message());
    dmg_channel_close(channel);
    dmg_client_close(client);
    return status;
}

static void *rank_main(void *argument)
{
    struct rank *rank = argument;
    rank->status = run_rank(rank);
    return NULL;
}

/* Run on all ranks; `ranks` gets what each reports. */
static void run_job(const struct setting *setting, const dmg_graph *graph, const dmg_algorithm *algorithm,
                    const dmg_algorithm_options *options, void *values, struct rank *ranks)
{
    dmg_test_pool pool = {0};
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, setting->nodes, SEGMENT_BYTES, &pool), DMG_OK);
    pool.options.link = setting->link;
    pthread_t threads[RANKS_MAX];
    for (uint32_t i = 0; i < setting->ranks; i++) {
        ranks[i] = (struct rank){.setting = setting,
                                 .pool = &pool,
                                 .graph = graph,
                                 .algorithm = algorithm,
                                 .options = options,
                                 .job_name = "engine test",
                                 .index = i,
                                 .values = values};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, rank_main, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < setting->ranks; i++) {
        pthread_join(threads[i], NULL);
    }
    dmg_test_pool_stop(&pool);
}

static void expect_serial_answer(const struct setting *setting, const dmg_graph *graph, const dmg_algorithm *algorithm,
                                 struct rank *ranks)
{
    const dmg_algorithm_options options = {.source = 0,
                                           .iterations_max = strcmp(algorithm->name, "pagerank") == 0 ? 7 : 0,
                                           .tolerance = -1,
                                           .damping = -1};
    uint64_t bytes = graph->vertex_count * algorithm->value_bytes + 8;
    void *values = calloc(1, bytes);
    void *expected = calloc(1, bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    CU_ASSERT_PTR_NOT_NULL_FATAL(expected);
    run_job(setting, graph, algorithm, &options, values, ranks);
    bool is_run = true;
    for (uint32_t i = 0; i < setting->ranks; i++) {
        if (ranks[i].status != DMG_OK) {
            printf("\n    %s, rank %u: %s\n", algorithm->name, i, ranks[i].sentence);
            is_run = false;
        }
    }
    CU_ASSERT_TRUE(is_run);
    CU_ASSERT_EQUAL(algorithm->serial(graph, &options, expected), DMG_OK);
    if (is_run && algorithm->compare(graph, values, expected) != DMG_OK) {
        printf("\n    %s over %s, %u nodes, %u ranks, %u threads, direction %d, density %d: %s\n", algorithm->name,
               transport, setting->nodes, setting->ranks, setting->engine.threads, setting->engine.direction,
               setting->engine.density, dmg_error_message());
        CU_FAIL("an answer differs from the serial one");
    }
    free(values);
    free(expected);
}

static void make_graph(uint64_t vertices, bool is_directed, dmg_weight_kind weights, dmg_graph *graph)
{
    const dmg_random_graph_options options = {.vertex_count = vertices,
                                              .degree_max = 12,
                                              .hub_count = vertices > 100 ? 3 : 0,
                                              .hub_degree = (uint32_t)(vertices / 2),
                                              .is_directed = is_directed,
                                              .weight_kind = weights};
    dmg_random_graph_make(&options, &randomness, graph);
}

static void expect_all_algorithms(const struct setting *setting, const dmg_graph *graph)
{
    struct rank ranks[RANKS_MAX];
    for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm; algorithm++) {
        expect_serial_answer(setting, graph, *algorithm, ranks);
    }
}

static void every_algorithm_equals_the_serial_one_whatever_the_number_of_nodes(void)
{
    static const uint32_t shapes[][3] = {{1, 1, 1}, {2, 2, 2}, {1, 3, 1}, {3, 4, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        dmg_graph graph;
        make_graph(3000, i % 2 == 0, DMG_WEIGHT_NONE, &graph);
        const struct setting setting = {.nodes = shapes[i][0], .ranks = shapes[i][1], .engine.threads = shapes[i][2]};
        expect_all_algorithms(&setting, &graph);
        dmg_graph_close(&graph);
    }
}

static void every_direction_and_density_gives_the_same_answer(void)
{
    dmg_graph graph;
    make_graph(700, true, DMG_WEIGHT_INT32, &graph);
    for (int direction = DMG_DIRECTION_AUTO; direction <= DMG_DIRECTION_PULL; direction++) {
        for (int density = DMG_DENSITY_AUTO; density <= DMG_DENSITY_SPARSE; density++) {
            const struct setting setting = {
                .nodes = 2,
                .ranks = 2,
                .engine = {.threads = 2, .direction = (dmg_direction)direction, .density = (dmg_density)density}};
            expect_all_algorithms(&setting, &graph);
        }
    }
    dmg_graph_close(&graph);
}

static void every_update_method_gives_the_same_answer(void)
{
    static const uint32_t reference_edges[] = {DMG_REFERENCE_EDGES_NEVER, 1, 0};
    dmg_graph graph;
    make_graph(1500, true, DMG_WEIGHT_INT32, &graph);
    for (int updates = DMG_UPDATE_DIRECT; updates <= DMG_UPDATE_VALRD_OWNER; updates++) {
        for (size_t i = 0; i < sizeof reference_edges / sizeof *reference_edges; i++) {
            const struct setting setting = {.nodes = 2,
                                            .ranks = 3,
                                            .partitions = i == 1 ? 9 : 0,
                                            .engine = {.threads = 1,
                                                       .direction = DMG_DIRECTION_PUSH,
                                                       .density = DMG_DENSITY_DENSE,
                                                       .reference_edges = reference_edges[i],
                                                       .updates = (dmg_update_method)updates}};
            expect_all_algorithms(&setting, &graph);
        }
    }
    dmg_graph_close(&graph);
}

/* A link that has no atomics across compute nodes. */
static const dmg_link_settings no_atomics = {
    .name = "no atomics",
    .cells = {[DMG_LINK_READ_LATENCY] = 700, [DMG_LINK_WRITE_LATENCY] = 700, [DMG_LINK_MESSAGE_LATENCY] = 2800},
    .line_bytes = 64,
    .mode = DMG_LINK_ACCOUNT};

static void sparse_updates_by_owner_give_the_same_answer_whatever_the_room(void)
{
    /* Ranks, threads, bytes of a buffer, buffers a round. */
    static const uint32_t shapes[][4] = {{1, 2, 0, 0}, {2, 2, 0, 0}, {3, 1, 32, 2}, {4, 2, 64, 2}};
    dmg_graph graph;
    struct rank ranks[RANKS_MAX];
    make_graph(1500, true, DMG_WEIGHT_INT32, &graph);
    for (uint32_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const uint32_t *shape = shapes[i];
        const struct setting setting = {.nodes = 1 + i % 2,
                                        .ranks = shape[0],
                                        .partitions = shape[0] * (1 + i % 2),
                                        .link = i % 2 ? NULL : &no_atomics,
                                        .engine = {.threads = shape[1],
                                                   .density = DMG_DENSITY_SPARSE,
                                                   .updates = DMG_UPDATE_VALRD_OWNER,
                                                   .value_buffer_bytes = shape[2],
                                                   .round_buffers = shape[3]}};
        expect_serial_answer(&setting, &graph, dmg_algorithm_find("sssp"), ranks);
        expect_serial_answer(&setting, &graph, dmg_algorithm_find("cc"), ranks);
        const dmg_traffic *traffic = &ranks[0].first_rows[0].traffic;
        CU_ASSERT_EQUAL(traffic->sent[DMG_UPDATE_VALRD_OWNER].items > 0, shape[0] > 1);
        CU_ASSERT_EQUAL(traffic->sent[DMG_UPDATE_DIRECT].items > 0, shape[0] == 1 || shape[3] > 0);
    }
    dmg_graph_close(&graph);
}

/* What an iteration did, over all ranks. */
static dmg_iteration row_of(const struct rank *ranks, uint32_t count, uint32_t row)
{
    dmg_iteration sum = ranks[0].first_rows[row];
    for (uint32_t i = 1; i < count; i++) {
        dmg_traffic_add(&sum.traffic, &ranks[i].first_rows[row].traffic);
        dmg_counters_add(&sum.counters, &ranks[i].first_rows[row].counters);
    }
    return sum;
}

/*
 * One vertex has edges to itself and 2,000 others, which lie in the partitions of all ranks: the search from it lowers
 * 2,000 attributes, each once. Directly, over a link without atomics, that takes 2,000 locks one after another; by
 * owner not one, but an exchange, which is one more barrier. A lone compute node needs neither.
 */
static void where_atomics_take_locks_a_sparse_iteration_takes_none(void)
{
    enum { REACHED = 2001, VERTICES = 2048 };
    const uint32_t needed = DMG_CAPABILITY_LOAD_STORE | DMG_CAPABILITY_COHERENT;
    dmg_graph graph;
    struct rank ranks[RANKS_MAX];
    dmg_sparse_graph_make(VERTICES, VERTICES, REACHED, false, &graph);
    for (uint32_t count = 1; count <= 3; count += 2) {
        struct setting setting = {
            .nodes = 2,
            .ranks = count,
            .link = &no_atomics,
            .engine = {.threads = 1, .density = DMG_DENSITY_SPARSE, .direction = DMG_DIRECTION_PUSH}};
        expect_serial_answer(&setting, &graph, dmg_algorithm_find("bfs"), ranks);
        dmg_iteration by_owner = row_of(ranks, count, 0);
        bool is_mapped = (ranks[0].capabilities & needed) == needed;
        dmg_update_method method = !is_mapped   ? DMG_UPDATE_VALRD_NODE
                                   : count == 1 ? DMG_UPDATE_DIRECT
                                                : DMG_UPDATE_VALRD_OWNER;
        CU_ASSERT_EQUAL(ranks[0].method, is_mapped ? DMG_UPDATE_VALRD_OWNER : DMG_UPDATE_VALRD_NODE);
        CU_ASSERT_EQUAL(by_owner.traffic.sent[method].items, REACHED);
        CU_ASSERT_EQUAL(by_owner.traffic.taken[method].items, REACHED);
        CU_ASSERT_EQUAL(by_owner.counters.mapped_atomics, 0);
        setting.engine.updates = DMG_UPDATE_DIRECT;
        expect_serial_answer(&setting, &graph, dmg_algorithm_find("bfs"), ranks);
        dmg_iteration directly = row_of(ranks, count, 0);
        CU_ASSERT_EQUAL(directly.traffic.sent[DMG_UPDATE_DIRECT].items, REACHED);
        CU_ASSERT_EQUAL(directly.counters.mapped_atomics, is_mapped ? REACHED - 1 : 0);
        CU_ASSERT_EQUAL(by_owner.barriers, directly.barriers + (is_mapped && count > 1));
        CU_ASSERT_TRUE(!is_mapped || by_owner.counters.modelled_ns < directly.counters.modelled_ns / 10);
    }
    dmg_graph_close(&graph);
}

static void over_a_link_without_atomics_answers_are_the_same(void)
{
    static const uint32_t shapes[][3] = {{1, 1, 2}, {2, 2, 2}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        dmg_graph graph;
        make_graph(2500, i % 2 == 0, DMG_WEIGHT_INT32, &graph);
        const struct setting setting = {
            .nodes = shapes[i][0], .ranks = shapes[i][1], .link = &no_atomics, .engine = {.threads = shapes[i][2]}};
        expect_all_algorithms(&setting, &graph);
        dmg_graph_close(&graph);
    }
}

/* Two ranks, hubs whose lists reach into both partitions: their segments are passed on, and the hub's rank fetches none
 * of those edges. */
static void a_long_segment_moves_its_metadata_and_not_its_edges(void)
{
    dmg_graph graph;
    struct rank by_value[RANKS_MAX], by_reference[RANKS_MAX];
    make_graph(2048, false, DMG_WEIGHT_NONE, &graph);
    struct setting setting = {.nodes = 1,
                              .ranks = 2,
                              .engine = {.threads = 1,
                                         .direction = DMG_DIRECTION_PUSH,
                                         .density = DMG_DENSITY_DENSE,
                                         .reference_edges = DMG_REFERENCE_EDGES_NEVER}};
    expect_serial_answer(&setting, &graph, dmg_algorithm_find("cc"), by_value);
    setting.engine.reference_edges = 7;
    expect_serial_answer(&setting, &graph, dmg_algorithm_find("cc"), by_reference);
    const dmg_iteration *value = by_value[0].first_rows;
    const dmg_iteration *reference = by_reference[0].first_rows;
    CU_ASSERT_EQUAL(value[0].references, 0);
    CU_ASSERT_TRUE(reference[0].references > 0);
    CU_ASSERT_TRUE(reference[0].updates_remote < value[0].updates_remote);
    uint64_t arcs[2] = {value[0].arcs + by_value[1].first_rows[0].arcs,
                        reference[0].arcs + by_reference[1].first_rows[0].arcs};
    CU_ASSERT_EQUAL(arcs[0], graph.arc_count); /* in the first iteration of cc all vertices are active */
    CU_ASSERT_EQUAL(arcs[1], graph.arc_count);
    dmg_graph_close(&graph);
}

/* Hubs, in segments of 16 edges, that workers steal from each other. */
static void lists_walked_in_segments_give_the_same_answer(void)
{
    static const dmg_direction directions[] = {DMG_DIRECTION_AUTO, DMG_DIRECTION_PUSH, DMG_DIRECTION_PULL};
    dmg_graph graph;
    struct rank ranks[RANKS_MAX];
    make_graph(1200, false, DMG_WEIGHT_INT32, &graph);
    for (uint32_t i = 0; i < 6; i++) {
        const struct setting setting = {.nodes = 2,
                                        .ranks = 1 + i / 3,
                                        .engine = {.threads = 2,
                                                   .direction = directions[i % 3],
                                                   .density = i % 2 ? DMG_DENSITY_AUTO : DMG_DENSITY_DENSE,
                                                   .steal_segments = i % 4 == 3 ? DMG_SWITCH_OFF : DMG_SWITCH_ON,
                                                   .reschedule_degree = 16}};
        expect_all_algorithms(&setting, &graph);
        expect_serial_answer(&setting, &graph, dmg_algorithm_find("pagerank"), ranks);
        CU_ASSERT_TRUE(ranks[0].first_rows[0].work.segments > 0);
    }
    dmg_graph_close(&graph);
}

/* Pagerank walks all vertices in all iterations: 7 times the whole index, or once. */
static void a_cached_index_is_read_once(void)
{
    dmg_graph graph;
    struct rank ranks[RANKS_MAX];
    make_graph(4096, false, DMG_WEIGHT_NONE, &graph);
    struct setting setting = {.nodes = 1, .ranks = 1, .engine = {.threads = 2, .cache_index = true}};
    for (uint32_t i = 0; i < 3; i++) {
        setting.without_embedding = i > 0;
        setting.ranks = 1 + i / 2;
        setting.engine.direction = DMG_DIRECTION_PUSH;
        expect_serial_answer(&setting, &graph, dmg_algorithm_find("pagerank"), ranks);
        uint64_t bytes_each = i == 1 ? 12 : 32;
        uint64_t read_bytes = 0;
        uint64_t cached_bytes = 0;
        for (uint32_t rank = 0; rank < setting.ranks; rank++) {
            for (uint32_t row = 0; row < ranks[rank].iterations; row++) {
                const dmg_purpose_counters *index = &ranks[rank].first_rows[row].counters.purposes[DMG_PURPOSE_INDEX];
                read_bytes += index->bytes + index->mapped_bytes;
            }
            cached_bytes += ranks[rank].index_peak_bytes;
        }
        CU_ASSERT_EQUAL(ranks[0].iterations, 7);
        CU_ASSERT_EQUAL(read_bytes, graph.vertex_count * 32);
        CU_ASSERT_EQUAL(cached_bytes, graph.vertex_count * bytes_each);
    }
    dmg_graph_close(&graph);
    make_graph(1500, true, DMG_WEIGHT_INT32, &graph);
    for (uint32_t i = 0; i < 3; i++) {
        const struct setting more = {
            .nodes = 2, .ranks = 1 + i, .without_embedding = i != 1, .engine = {.threads = 1, .cache_index = true}};
        expect_all_algorithms(&more, &graph);
    }
    dmg_graph_close(&graph);
}

static void what_vertices_give_may_be_cached_in_double_precision(void)
{
    dmg_graph graph;
    struct rank ranks[RANKS_MAX];
    make_graph(4096, true, DMG_WEIGHT_NONE, &graph);
    struct setting setting = {.nodes = 1, .ranks = 1, .engine = {.threads = 2, .precision = DMG_PRECISION_DOUBLE}};
    expect_serial_answer(&setting, &graph, dmg_algorithm_find("pagerank"), ranks);
    CU_ASSERT_EQUAL(ranks[0].cache_peak_bytes, graph.vertex_count * 8);
    setting.engine.precision = DMG_PRECISION_SINGLE;
    expect_serial_answer(&setting, &graph, dmg_algorithm_find("pagerank"), ranks);
    CU_ASSERT_EQUAL(ranks[0].cache_peak_bytes, graph.vertex_count * 4);
    dmg_graph_close(&graph);
}

static void float_weights_and_several_partitions_a_compute_node_work(void)
{
    dmg_graph graph;
    make_graph(2000, false, DMG_WEIGHT_FLOAT32, &graph);
    const struct setting setting = {.nodes = 2, .ranks = 2, .partitions = 7, .engine.threads = 1};
    expect_all_algorithms(&setting, &graph);
    const struct setting many = {.nodes = 1, .ranks = 3, .partitions = 40, .engine.threads = 1};
    expect_all_algorithms(&many, &graph);
    dmg_graph_close(&graph);
}

static void graphs_of_no_and_of_few_vertices_work(void)
{
    static const uint64_t counts[] = {0, 1, 2, 63, 64, 65};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        dmg_graph graph;
        make_graph(counts[i], true, DMG_WEIGHT_NONE, &graph);
        const struct setting setting = {.nodes = 2, .ranks = 3, .engine.threads = 2};
        expect_all_algorithms(&setting, &graph);
        dmg_graph_close(&graph);
    }
}

/* A list of 200,000 edges does not fit into a task's buffer, and comes in several rounds. */
static void lists_larger_than_the_buffers_are_walked_whole(void)
{
    const dmg_random_graph_options options = {.vertex_count = 4000,
                                              .degree_max = 3,
                                              .hub_count = 2,
                                              .hub_degree = 200000,
                                              .is_directed = true,
                                              .weight_kind = DMG_WEIGHT_INT32};
    dmg_graph graph;
    dmg_random_graph_make(&options, &randomness, &graph);
    const struct setting setting = {.nodes = 1, .ranks = 2, .engine.threads = 1};
    expect_all_algorithms(&setting, &graph);
    dmg_graph_close(&graph);
}

static bool is_mapped(const struct rank *rank)
{
    return (rank->capabilities & DMG_CAPABILITY_LOAD_STORE) != 0;
}

/* 16,384 edges with weights fill a task's buffer to the last byte; one more is refused where it would be copied there,
 * by all ranks and before anything is walked. */
static void segments_are_walked_up_to_the_size_of_the_buffer_and_refused_above(void)
{
    const dmg_random_graph_options graph_options = {.vertex_count = 3000,
                                                    .degree_max = 3,
                                                    .hub_count = 2,
                                                    .hub_degree = 50000,
                                                    .is_directed = true,
                                                    .weight_kind = DMG_WEIGHT_INT32};
    const dmg_algorithm_options options = {.source = 0, .tolerance = -1, .damping = -1};
    const dmg_algorithm *cc = dmg_algorithm_find("cc"); /* in its first iteration all vertices are active */
    uint32_t values[3000];
    struct rank ranks[RANKS_MAX];
    dmg_graph graph;
    dmg_random_graph_make(&graph_options, &randomness, &graph);
    struct setting setting = {
        .nodes = 1, .ranks = 2, .engine = {.threads = 2, .direction = DMG_DIRECTION_PUSH, .reschedule_degree = 16384}};
    expect_serial_answer(&setting, &graph, cc, ranks);
    setting.engine.reschedule_degree = 32768;
    run_job(&setting, &graph, cc, &options, values, ranks);
    for (uint32_t i = 0; i < setting.ranks; i++) {
        CU_ASSERT_EQUAL(ranks[i].status, is_mapped(&ranks[i]) ? DMG_OK : DMG_ERR_ARGUMENT);
        if (!is_mapped(&ranks[i])) {
            CU_ASSERT_PTR_NOT_NULL(strstr(ranks[i].sentence, "32768"));
            CU_ASSERT_PTR_NOT_NULL(strstr(ranks[i].sentence, "16384"));
        }
    }
    dmg_graph_close(&graph);
}

/* Every list reaches into every partition with edges too few to be passed on: with 20 of them, 64 vertices have more
 * pieces than the largest chunk has vertices. */
static void lists_in_more_pieces_than_a_chunk_has_vertices_are_walked(void)
{
    const dmg_random_graph_options options = {
        .vertex_count = 1280, .degree_max = 60, .hub_count = 1280, .hub_degree = 60, .is_directed = true};
    struct rank ranks[RANKS_MAX];
    dmg_graph graph;
    dmg_random_graph_make(&options, &randomness, &graph);
    const struct setting setting = {
        .nodes = 1,
        .ranks = 20,
        .engine = {.threads = 1, .tasks_in_flight = 1, .direction = DMG_DIRECTION_PUSH, .density = DMG_DENSITY_DENSE}};
    expect_serial_answer(&setting, &graph, dmg_algorithm_find("cc"), ranks);
    dmg_graph_close(&graph);
}

static void a_compute_node_caches_the_attributes_of_its_partition_and_no_more(void)
{
    dmg_graph graph;
    struct rank ranks[RANKS_MAX];
    make_graph(8192, false, DMG_WEIGHT_NONE, &graph);
    const struct setting setting = {.nodes = 1, .ranks = 4, .engine = {.threads = 1, .density = DMG_DENSITY_DENSE}};
    expect_serial_answer(&setting, &graph, dmg_algorithm_find("bfs"), ranks);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < setting.ranks; i++) {
        sum += ranks[i].cache_peak_bytes;
    }
    CU_ASSERT_EQUAL(sum, graph.vertex_count * 8);
    dmg_graph_close(&graph);
}

static void a_cache_budget_that_is_too_small_is_an_error_that_says_so(void)
{
    dmg_graph graph;
    struct rank ranks[RANKS_MAX];
    uint64_t values[512];
    make_graph(512, false, DMG_WEIGHT_NONE, &graph);
    const dmg_algorithm_options options = {.source = 0, .tolerance = -1, .damping = -1};
    const struct setting setting = {.nodes = 1, .ranks = 1, .engine = {.threads = 1, .cache_bytes = 65536}};
    run_job(&setting, &graph, dmg_algorithm_find("bfs"), &options, values, ranks);
    CU_ASSERT_EQUAL(ranks[0].status, DMG_ERR_LIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(ranks[0].sentence, "--cache"));
    dmg_graph_close(&graph);
}

static const dmg_test tests[] = {
    DMG_TEST(every_algorithm_equals_the_serial_one_whatever_the_number_of_nodes),
    DMG_TEST(every_direction_and_density_gives_the_same_answer),
    DMG_TEST(every_update_method_gives_the_same_answer),
    DMG_TEST(sparse_updates_by_owner_give_the_same_answer_whatever_the_room),
    DMG_TEST(where_atomics_take_locks_a_sparse_iteration_takes_none),
    DMG_TEST(over_a_link_without_atomics_answers_are_the_same),
    DMG_TEST(a_long_segment_moves_its_metadata_and_not_its_edges),
    DMG_TEST(lists_walked_in_segments_give_the_same_answer),
    DMG_TEST(a_cached_index_is_read_once),
    DMG_TEST(what_vertices_give_may_be_cached_in_double_precision),
    DMG_TEST(float_weights_and_several_partitions_a_compute_node_work),
    DMG_TEST(graphs_of_no_and_of_few_vertices_work),
    DMG_TEST(lists_larger_than_the_buffers_are_walked_whole),
    DMG_TEST(segments_are_walked_up_to_the_size_of_the_buffer_and_refused_above),
    DMG_TEST(lists_in_more_pieces_than_a_chunk_has_vertices_are_walked),
    DMG_TEST(a_compute_node_caches_the_attributes_of_its_partition_and_no_more),
    DMG_TEST(a_cache_budget_that_is_too_small_is_an_error_that_says_so),
    {NULL, NULL},
};

/* Where time is short (sanitizers), one transport that is reached in place and one that is not. */
static bool is_left_out(const char *name)
{
    const char *depth = getenv("DMGRAPH_TEST_DEPTH");
    return depth && strcmp(depth, "thin") == 0 && strcmp(name, "ucx") == 0;
}

/* Through a private cache of lines that others see only when they are written back. Its threads read in place what may
 * be fetched again meanwhile, the same bytes: sanitizers for races cannot know. */
#define LINE_CACHE "cxl_shm:coherence=none,line-cache=1"

static int use_line_cache(void)
{
    transport = LINE_CACHE;
    return 0;
}

/* Suites run in the order of the transports; each set-up moves on to the next. */
static int next_transport(void)
{
    static size_t index;
    while (is_left_out(dmg_test_transports[index])) {
        index++;
    }
    transport = dmg_test_transports[index++];
    return 0;
}

int main(int argc, char **argv)
{
    randomness.state = dmg_test_seed();
    if (argc > 1) {
        transport = argv[1];
        return dmg_suite_add(transport, NULL, NULL, tests) != 0 || dmg_suites_run(1, argv) != 0;
    }
    for (size_t i = 0; dmg_test_transports[i]; i++) {
        if (!is_left_out(dmg_test_transports[i]) &&
            dmg_suite_add(dmg_test_transports[i], next_transport, NULL, tests) != 0) {
            return 1;
        }
    }
    if (!is_left_out("ucx") && dmg_suite_add(LINE_CACHE, use_line_cache, NULL, tests) != 0) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
