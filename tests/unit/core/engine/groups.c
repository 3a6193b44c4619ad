/*
 * Groups of compute nodes (DMG, section 4.3.1) and fully-cached updates: any number of compute nodes on a graph that
 * was loaded once, for any number of partitions, gives the serial answer, caches what it should, and walks each arc
 * once.
 *
 * The compute nodes are threads of the test. Pool, clients and loaded graphs stay for a whole test; each run is a job.
 */
#include "unit/support/suite.h"

#include "algorithms/algorithm.h"
#include "core/base/error.h"
#include "core/engine/groups.h"
#include "unit/support/pool_fixture.h"
#include "unit/support/random_graph.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES  (UINT64_C(64) << 20)
#define RANKS_MAX      16
#define PARTITIONS_MAX 4
#define ITERATIONS     5
#define VALUE_BYTES    8

static const char *transport;
static dmg_random randomness;

/* A pool with one graph in it, cut into some numbers of partitions, and clients that can be compute nodes. */
struct laboratory {
    dmg_test_pool pool;
    dmg_client *clients[RANKS_MAX];
    dmg_channel *channels[RANKS_MAX];
    dmg_graph graph;
    dmg_job load_jobs[PARTITIONS_MAX + 1];
    dmg_graph_store stores[PARTITIONS_MAX + 1]; /* by partitions */
    uint32_t runs;
};

/* One rank of a run. */
struct rank {
    struct laboratory *laboratory;
    const dmg_graph_store *store;
    const dmg_engine_options *engine;
    const dmg_algorithm *algorithm;
    const dmg_algorithm_options *options;
    const char *job_name;
    uint32_t index;
    uint32_t ranks;
    void *values; /* rank 0 reads them here */
    dmg_status status;
    char sentence[512];
    uint32_t rows;
    dmg_iteration first_row;
    uint64_t updates_remote; /* of all rows */
    uint64_t references;
    uint64_t peak_bytes[DMG_BUDGET_PURPOSES];
    uint64_t peak_bytes_in_all;
};

/* ---- a laboratory ---- */

static dmg_status load_for(struct laboratory *laboratory, uint32_t partitions)
{
    const dmg_engine_options engine_options = {.threads = 1};
    dmg_channel *channel = laboratory->channels[0];
    dmg_job *job = &laboratory->load_jobs[partitions];
    dmg_engine *engine = NULL;
    char name[32];
    snprintf(name, sizeof name, "load for %u", partitions);
    dmg_status status = dmg_job_join(channel, &dmg_test_pass, name, 0, 1, job);
    const dmg_store_options options = {
        .partition_count = partitions, .with_out = true, .with_in = true, .job = job->id};
    if (status == DMG_OK) {
        status = dmg_graph_store_create(channel, &laboratory->graph, &options, &laboratory->stores[partitions]);
    }
    if (status == DMG_OK) {
        status = dmg_engine_create(laboratory->clients[0], channel, job, &laboratory->stores[partitions],
                                   &engine_options, &engine);
    }
    if (status == DMG_OK) {
        status = dmg_engine_load(engine, &laboratory->graph, NULL);
    }
    dmg_engine_destroy(engine);
    return status;
}

/* The graph becomes the laboratory's. */
static void open_laboratory(struct laboratory *laboratory, const dmg_random_graph_options *options, uint32_t ranks)
{
    memset(laboratory, 0, sizeof *laboratory);
    dmg_random_graph_make(options, &randomness, &laboratory->graph);
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, 2, SEGMENT_BYTES, &laboratory->pool), DMG_OK);
    for (uint32_t i = 0; i < ranks; i++) {
        CU_ASSERT_EQUAL_FATAL(dmg_client_open(&laboratory->pool.options, &laboratory->clients[i]), DMG_OK);
        CU_ASSERT_EQUAL_FATAL(dmg_channel_open(laboratory->clients[i], &laboratory->channels[i]), DMG_OK);
    }
}

static void close_laboratory(struct laboratory *laboratory)
{
    for (uint32_t partitions = 1; partitions <= PARTITIONS_MAX; partitions++) {
        if (laboratory->load_jobs[partitions].id != 0) {
            CU_ASSERT_EQUAL(dmg_job_leave(laboratory->channels[0], &laboratory->load_jobs[partitions]), DMG_OK);
        }
    }
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        dmg_channel_close(laboratory->channels[i]);
        dmg_client_close(laboratory->clients[i]);
    }
    dmg_test_pool_stop(&laboratory->pool);
    dmg_graph_close(&laboratory->graph);
}

static const dmg_graph_store *store_for(struct laboratory *laboratory, uint32_t partitions)
{
    if (laboratory->load_jobs[partitions].id == 0) {
        CU_ASSERT_EQUAL_FATAL(load_for(laboratory, partitions), DMG_OK);
    }
    return &laboratory->stores[partitions];
}

/* ---- a run ---- */

static dmg_status read_values(dmg_channel *channel, const dmg_range_array *array, void *values)
{
    dmg_completion completion = {0};
    dmg_range_array_post_read(channel, array, 0, array->count, values, &completion);
    return dmg_wait(channel, &completion);
}

static void take_figures(struct rank *rank, const dmg_engine *engine, const dmg_run_result *result)
{
    rank->rows = result->iterations_kept;
    rank->first_row = result->iterations_kept > 0 ? result->iterations[0] : (dmg_iteration){0};
    for (uint32_t i = 0; i < result->iterations_kept; i++) {
        rank->updates_remote += result->iterations[i].updates_remote;
        rank->references += result->iterations[i].references;
    }
    for (int purpose = 0; purpose < DMG_BUDGET_PURPOSES; purpose++) {
        rank->peak_bytes[purpose] =
            dmg_budget_purpose_peak_bytes(dmg_engine_budget(engine), (dmg_budget_purpose)purpose);
    }
    rank->peak_bytes_in_all = dmg_budget_peak_bytes(dmg_engine_budget(engine));
}

static void *rank_main(void *argument)
{
    struct rank *rank = argument;
    dmg_channel *channel = rank->laboratory->channels[rank->index];
    dmg_job job = {0};
    dmg_engine *engine = NULL;
    dmg_run_result result;
    memset(&result, 0, sizeof result);
    rank->status = dmg_job_join(channel, &dmg_test_pass, rank->job_name, rank->index, rank->ranks, &job);
    if (rank->status == DMG_OK) {
        rank->status = dmg_engine_create(rank->laboratory->clients[rank->index], channel, &job, rank->store,
                                         rank->engine, &engine);
    }
    if (rank->status == DMG_OK) {
        rank->status = rank->algorithm->run(engine, rank->options, &result);
    }
    if (rank->status == DMG_OK && rank->index == 0) {
        rank->status = read_values(channel, &result.values, rank->values);
    }
    if (rank->status == DMG_OK) {
        take_figures(rank, engine, &result);
    }
    snprintf(rank->sentence, sizeof rank->sentence, "%s", rank->status == DMG_OK ? "" : dmg_error_message());
    dmg_engine_destroy(engine);
    if (job.id != 0) {
        (void)dmg_job_leave(channel, &job);
    }
    return NULL;
}

static dmg_algorithm_options parameters_of(const dmg_algorithm *algorithm)
{
    return (dmg_algorithm_options){.source = 0,
                                   .iterations_max = strcmp(algorithm->name, "pagerank") == 0 ? ITERATIONS : 0,
                                   .tolerance = -1,
                                   .damping = -1};
}

/* Run on so many compute nodes; `ranks` gets what each reports, `values` the answer. */
static void run_ranks(struct laboratory *laboratory, uint32_t partitions, uint32_t rank_count,
                      const dmg_engine_options *engine, const dmg_algorithm *algorithm,
                      const dmg_algorithm_options *options, void *values, struct rank *ranks)
{
    const dmg_graph_store *store = store_for(laboratory, partitions);
    char job_name[32];
    snprintf(job_name, sizeof job_name, "run %u", laboratory->runs++);
    pthread_t threads[RANKS_MAX];
    for (uint32_t i = 0; i < rank_count; i++) {
        ranks[i] = (struct rank){.laboratory = laboratory,
                                 .store = store,
                                 .engine = engine,
                                 .algorithm = algorithm,
                                 .options = options,
                                 .job_name = job_name,
                                 .index = i,
                                 .ranks = rank_count,
                                 .values = values};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, rank_main, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < rank_count; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* The same, and compare with `expected`, the serial answer. */
static void expect_answer(struct laboratory *laboratory, uint32_t partitions, uint32_t rank_count,
                          const dmg_engine_options *engine, const dmg_algorithm *algorithm, const void *expected,
                          struct rank *ranks)
{
    const dmg_algorithm_options options = parameters_of(algorithm);
    void *values = calloc(laboratory->graph.vertex_count + 1, VALUE_BYTES);
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    run_ranks(laboratory, partitions, rank_count, engine, algorithm, &options, values, ranks);
    dmg_status status = DMG_OK;
    for (uint32_t i = 0; i < rank_count && status == DMG_OK; i++) {
        status = ranks[i].status;
        if (status != DMG_OK) {
            printf("\n    %s, rank %u: %s\n", algorithm->name, i, ranks[i].sentence);
        }
    }
    if (status == DMG_OK) {
        status = algorithm->compare(&laboratory->graph, values, expected);
    }
    if (status != DMG_OK) {
        printf("\n    %s over %s, %u partitions, %u compute nodes of %u threads, caching %d, direction %d, density %d: "
               "%s\n",
               algorithm->name, transport, partitions, rank_count, engine->threads, engine->caching, engine->direction,
               engine->density, dmg_error_message());
        CU_FAIL("an answer differs from the serial one");
    }
    free(values);
}

static void *serial_answer(const struct laboratory *laboratory, const dmg_algorithm *algorithm)
{
    const dmg_algorithm_options options = parameters_of(algorithm);
    void *values = calloc(laboratory->graph.vertex_count + 1, VALUE_BYTES);
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    CU_ASSERT_EQUAL(algorithm->serial(&laboratory->graph, &options, values), DMG_OK);
    return values;
}

static void expect_run(struct laboratory *laboratory, uint32_t partitions, uint32_t rank_count,
                       const dmg_engine_options *engine, const char *algorithm_name, struct rank *ranks)
{
    const dmg_algorithm *algorithm = dmg_algorithm_find(algorithm_name);
    void *expected = serial_answer(laboratory, algorithm);
    expect_answer(laboratory, partitions, rank_count, engine, algorithm, expected, ranks);
    free(expected);
}

/* ---- tests ---- */

static bool is_thin(void)
{
    const char *depth = getenv("DMGRAPH_TEST_DEPTH");
    return depth && strcmp(depth, "thin") == 0;
}

static const struct {
    dmg_direction direction;
    dmg_density density;
} modes[] = {{DMG_DIRECTION_PUSH, DMG_DENSITY_DENSE},
             {DMG_DIRECTION_PULL, DMG_DENSITY_DENSE},
             {DMG_DIRECTION_AUTO, DMG_DENSITY_AUTO},
             {DMG_DIRECTION_PUSH, DMG_DENSITY_SPARSE}};
#define MODES (sizeof modes / sizeof *modes)

/* Each number of compute nodes on each number of partitions in each mode; which of the programs runs in which mode goes
 * round, except where all do in place, which is quick. */
static void all_numbers_of_compute_nodes_equal_the_serial_answer_for_all_numbers_of_partitions(void)
{
    static struct laboratory laboratory;
    const dmg_random_graph_options options = {.vertex_count = 2500,
                                              .degree_max = 10,
                                              .hub_count = 4,
                                              .hub_degree = 900,
                                              .is_directed = true,
                                              .weight_kind = DMG_WEIGHT_INT32};
    bool runs_all = !is_thin() && strcmp(transport, "cxl_shm") == 0;
    struct rank ranks[RANKS_MAX];
    open_laboratory(&laboratory, &options, 8);
    uint32_t index = 0;
    for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm; algorithm++, index++) {
        void *expected = serial_answer(&laboratory, *algorithm);
        for (uint32_t partitions = 1; partitions <= PARTITIONS_MAX; partitions += is_thin() ? 3 : 1) {
            for (uint32_t rank_count = is_thin() ? 2 : 1; rank_count <= 8; rank_count += is_thin() ? 3 : 1) {
                for (uint32_t mode = 0; mode < MODES; mode++) {
                    if (!runs_all && mode != (index + partitions + rank_count) % MODES) {
                        continue;
                    }
                    const dmg_engine_options engine = {.threads = 1 + rank_count % 2,
                                                       .direction = modes[mode].direction,
                                                       .density = modes[mode].density};
                    expect_answer(&laboratory, partitions, rank_count, &engine, *algorithm, expected, ranks);
                }
            }
        }
        free(expected);
    }
    close_laboratory(&laboratory);
}

static uint64_t cached_vertices(const dmg_graph_store *store, const dmg_groups *groups)
{
    uint32_t partitions = store->shape.partition_count;
    return store->partition_first[(uint64_t)partitions * (groups->member + 1) / groups->members] -
           store->partition_first[(uint64_t)partitions * groups->member / groups->members];
}

static void a_compute_node_caches_its_partitions_whatever_the_number_of_groups(void)
{
    static struct laboratory laboratory;
    const dmg_random_graph_options options = {.vertex_count = 8192, .degree_max = 8};
    static const uint32_t shapes[][2] = {{4, 4}, {4, 8}, {4, 6}, {3, 7}, {2, 3}, {1, 3}};
    struct rank ranks[RANKS_MAX];
    open_laboratory(&laboratory, &options, 8);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int direction = DMG_DIRECTION_PUSH; direction <= DMG_DIRECTION_PULL; direction++) {
            const dmg_engine_options engine = {
                .threads = 1, .direction = (dmg_direction)direction, .density = DMG_DENSITY_DENSE};
            uint32_t partitions = shapes[i][0];
            expect_run(&laboratory, partitions, shapes[i][1], &engine, "bfs", ranks);
            for (uint32_t rank = 0; rank < shapes[i][1]; rank++) {
                const dmg_groups groups = dmg_groups_of(rank, shapes[i][1], partitions, DMG_CACHING_PARTITION);
                uint64_t vertices = cached_vertices(&laboratory.stores[partitions], &groups);
                CU_ASSERT_EQUAL(ranks[rank].peak_bytes[DMG_BUDGET_ATTRIBUTES], vertices * 8);
                /* In pull mode, one bit of each beside its eight bytes. */
                CU_ASSERT_EQUAL(ranks[rank].peak_bytes[DMG_BUDGET_BITMAP],
                                direction == DMG_DIRECTION_PULL ? (vertices + 63) / 64 * 8 : 0);
            }
        }
    }
    close_laboratory(&laboratory);
}

static void groups_walk_each_arc_once(void)
{
    static struct laboratory laboratory;
    const dmg_random_graph_options options = {
        .vertex_count = 5000, .degree_max = 12, .hub_count = 3, .hub_degree = 2000};
    static const uint32_t shapes[][2] = {{4, 4}, {4, 8}, {4, 5}, {2, 7}, {1, 4}};
    static const char *const programs[] = {"cc", "pagerank"}; /* all vertices are active at the start */
    const dmg_engine_options engine = {.threads = 2, .direction = DMG_DIRECTION_PUSH, .density = DMG_DENSITY_DENSE};
    struct rank ranks[RANKS_MAX];
    open_laboratory(&laboratory, &options, 8);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (size_t j = 0; j < sizeof programs / sizeof *programs; j++) {
            uint64_t arcs = 0, updates = 0;
            expect_run(&laboratory, shapes[i][0], shapes[i][1], &engine, programs[j], ranks);
            for (uint32_t rank = 0; rank < shapes[i][1]; rank++) {
                arcs += ranks[rank].first_row.arcs;
                updates += ranks[rank].first_row.updates_local + ranks[rank].first_row.updates_remote;
            }
            CU_ASSERT_EQUAL(arcs, laboratory.graph.arc_count);
            CU_ASSERT_EQUAL(updates, laboratory.graph.arc_count);
        }
    }
    close_laboratory(&laboratory);
}

static void a_fully_cached_compute_node_caches_all_attributes_and_sends_no_update(void)
{
    static struct laboratory laboratory;
    const dmg_random_graph_options options = {.vertex_count = 3000,
                                              .degree_max = 10,
                                              .hub_count = 3,
                                              .hub_degree = 1000,
                                              .is_directed = true,
                                              .weight_kind = DMG_WEIGHT_INT32};
    static const uint32_t shapes[][2] = {{3, 1}, {1, 2}, {3, 3}, {4, 5}};
    struct rank ranks[RANKS_MAX];
    open_laboratory(&laboratory, &options, 5);
    for (size_t i = is_thin() ? 2 : 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm; algorithm++) {
            for (int direction = DMG_DIRECTION_PUSH; direction <= DMG_DIRECTION_PULL; direction++) {
                const dmg_engine_options engine = {.threads = 1,
                                                   .caching = DMG_CACHING_FULL,
                                                   .direction = (dmg_direction)direction,
                                                   .density = DMG_DENSITY_DENSE,
                                                   .precision = DMG_PRECISION_DOUBLE};
                expect_run(&laboratory, shapes[i][0], shapes[i][1], &engine, (*algorithm)->name, ranks);
                for (uint32_t rank = 0; rank < shapes[i][1]; rank++) {
                    CU_ASSERT_EQUAL(ranks[rank].peak_bytes[DMG_BUDGET_ATTRIBUTES],
                                    laboratory.graph.vertex_count * (*algorithm)->value_bytes);
                    CU_ASSERT_EQUAL(ranks[rank].updates_remote, 0);
                    CU_ASSERT_EQUAL(ranks[rank].references, 0);
                }
            }
        }
    }
    close_laboratory(&laboratory);
}

/* What four compute nodes keep on two graphs, one four times as large as the other. */
static void of_what_is_kept_only_the_attributes_of_the_partition_grow_with_the_graph(void)
{
    static struct laboratory laboratory;
    static const uint32_t rank_counts[] = {4, 8};
    for (size_t i = is_thin() ? 1 : 0; i < sizeof rank_counts / sizeof *rank_counts; i++) {
        uint64_t most[2][DMG_BUDGET_PURPOSES] = {{0}};
        for (uint32_t size = 0; size < 2; size++) {
            const dmg_random_graph_options options = {.vertex_count = UINT64_C(16384) << (2 * size), .degree_max = 6};
            const dmg_engine_options engine = {
                .threads = 1, .direction = DMG_DIRECTION_PUSH, .density = DMG_DENSITY_DENSE};
            struct rank ranks[RANKS_MAX];
            open_laboratory(&laboratory, &options, rank_counts[i]);
            expect_run(&laboratory, 4, rank_counts[i], &engine, "bfs", ranks);
            uint64_t attributes = 0;
            for (uint32_t rank = 0; rank < rank_counts[i]; rank++) {
                attributes += ranks[rank].peak_bytes[DMG_BUDGET_ATTRIBUTES];
                for (int purpose = 0; purpose < DMG_BUDGET_PURPOSES; purpose++) {
                    uint64_t bytes = ranks[rank].peak_bytes[purpose];
                    most[size][purpose] = bytes > most[size][purpose] ? bytes : most[size][purpose];
                }
            }
            /* A quarter of the attributes each, to a tiny-chunk. */
            CU_ASSERT_EQUAL(attributes, options.vertex_count * 8 * rank_counts[i] / 4);
            CU_ASSERT_TRUE(most[size][DMG_BUDGET_ATTRIBUTES] <= options.vertex_count * 8 / 4 * 102 / 100);
            close_laboratory(&laboratory);
        }
        for (int purpose = 0; purpose < DMG_BUDGET_PURPOSES; purpose++) {
            if (purpose != DMG_BUDGET_ATTRIBUTES) {
                CU_ASSERT_EQUAL(most[0][purpose], most[1][purpose]);
            }
        }
    }
}

/* What suffices for a partition does not for the whole graph, and each rank says so. */
static void a_budget_for_a_partition_refuses_to_cache_the_whole_graph(void)
{
    static struct laboratory laboratory;
    const dmg_random_graph_options options = {.vertex_count = 200000, .degree_max = 1};
    dmg_engine_options engine = {.threads = 1, .direction = DMG_DIRECTION_PUSH, .density = DMG_DENSITY_DENSE};
    struct rank ranks[RANKS_MAX];
    open_laboratory(&laboratory, &options, 2);
    expect_run(&laboratory, 2, 2, &engine, "bfs", ranks);
    uint64_t peak_bytes[] = {ranks[0].peak_bytes_in_all, ranks[1].peak_bytes_in_all};
    engine.cache_bytes = peak_bytes[0] > peak_bytes[1] ? peak_bytes[0] : peak_bytes[1];
    expect_run(&laboratory, 2, 2, &engine, "bfs", ranks);
    engine.caching = DMG_CACHING_FULL;
    const dmg_algorithm *algorithm = dmg_algorithm_find("bfs");
    const dmg_algorithm_options parameters = parameters_of(algorithm);
    run_ranks(&laboratory, 2, 2, &engine, algorithm, &parameters, NULL, ranks);
    for (uint32_t rank = 0; rank < 2; rank++) {
        CU_ASSERT_EQUAL(ranks[rank].status, DMG_ERR_LIMIT);
        CU_ASSERT_PTR_NOT_NULL(strstr(ranks[rank].sentence, "--cache"));
    }
    close_laboratory(&laboratory);
}

/* ---- tests without a pool ---- */

static void groups_are_as_few_and_as_equal_as_possible(void)
{
    for (uint32_t ranks = 1; ranks <= DMG_COMPUTE_NODES_MAX; ranks++) {
        for (uint32_t partitions = 1; partitions <= DMG_COMPUTE_NODES_MAX; partitions++) {
            uint32_t next_member = 0, next_group = 0, largest = 0, smallest = ranks;
            for (uint32_t rank = 0; rank < ranks; rank++) {
                const dmg_groups groups = dmg_groups_of(rank, ranks, partitions, DMG_CACHING_PARTITION);
                CU_ASSERT_EQUAL(groups.group_count, (ranks + partitions - 1) / partitions);
                CU_ASSERT_EQUAL(groups.group, next_group);
                CU_ASSERT_EQUAL(groups.member, next_member);
                CU_ASSERT_EQUAL(groups.first_rank + groups.member, rank);
                CU_ASSERT_TRUE(groups.members <= partitions && groups.members <= groups.members_max);
                largest = groups.members > largest ? groups.members : largest;
                smallest = groups.members < smallest ? groups.members : smallest;
                next_member = groups.member + 1 == groups.members ? 0 : groups.member + 1;
                next_group += next_member == 0;
            }
            const dmg_groups first = dmg_groups_of(0, ranks, partitions, DMG_CACHING_PARTITION);
            CU_ASSERT_EQUAL(next_member, 0);
            CU_ASSERT_EQUAL(next_group, first.group_count);
            CU_ASSERT_EQUAL(largest, first.members_max);
            CU_ASSERT_TRUE(largest - smallest <= 1);
        }
    }
}

static void the_first_groups_of_the_paper_are_two_of_four(void)
{
    const dmg_groups groups = dmg_groups_of(5, 8, 4, DMG_CACHING_PARTITION);
    CU_ASSERT_EQUAL(groups.group_count, 2);
    CU_ASSERT_EQUAL(groups.members, 4);
    CU_ASSERT_EQUAL(groups.group, 1);
    CU_ASSERT_EQUAL(groups.member, 1);
    const dmg_groups full = dmg_groups_of(5, 8, 4, DMG_CACHING_FULL);
    CU_ASSERT_EQUAL(full.group_count, 8);
    CU_ASSERT_EQUAL(full.members, 1);
    CU_ASSERT_EQUAL(full.group, 5);
}

/* Take all chunks that a share gives of [first, last). */
static void take_block_cyclic(uint64_t first, uint64_t last, const dmg_block_cyclic *share, uint8_t *taken)
{
    static dmg_chunks chunks;
    uint64_t at;
    uint32_t count;
    dmg_chunks_reset_block_cyclic(&chunks, first, last, share, 3, 192);
    for (uint32_t worker = 0; dmg_chunks_take(&chunks, worker % 3, &at, &count); worker++) {
        CU_ASSERT_EQUAL(at % 64, 0);
        CU_ASSERT_TRUE(count > 0 && count <= 192 && at >= first && at + count <= last);
        for (uint32_t i = 0; i < count; i++) {
            taken[at + i]++;
        }
    }
}

static uint64_t differing_from(const uint8_t *taken, uint64_t first, uint64_t last, uint8_t wanted)
{
    uint64_t differing = 0;
    for (uint64_t i = first; i < last; i++) {
        differing += taken[i] != wanted;
    }
    return differing;
}

static void every_vertex_is_walked_by_one_rank_and_deposited_by_the_other_groups(void)
{
    enum { VERTICES_MAX = 30000 };
    static const uint64_t counts[] = {0, 1, 64, 65, 1000, VERTICES_MAX};
    static uint8_t own[VERTICES_MAX], others[VERTICES_MAX];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (uint32_t ranks = 2; ranks <= 13; ranks++) {
            for (uint32_t partitions = 1; partitions < ranks; partitions++) {
                uint64_t vertices = counts[i];
                uint32_t group_count = 0;
                memset(own, 0, sizeof own);
                memset(others, 0, sizeof others);
                for (uint32_t rank = 0; rank < ranks; rank++) {
                    const dmg_groups groups = dmg_groups_of(rank, ranks, partitions, DMG_CACHING_PARTITION);
                    const dmg_block_cyclic share = dmg_groups_own(&groups, vertices);
                    const dmg_block_cyclic rest = dmg_groups_others(&groups, vertices);
                    /* Partitions of equal size, begun at multiples of 64. */
                    uint64_t size = (vertices / groups.members + 63) / 64 * 64;
                    uint64_t first = size * groups.member < vertices ? size * groups.member : vertices;
                    uint64_t last =
                        groups.member + 1 == groups.members || first + size > vertices ? vertices : first + size;
                    take_block_cyclic(first, last, &share, own);
                    take_block_cyclic(first, last, &rest, others);
                    group_count = groups.group_count;
                }
                CU_ASSERT_EQUAL(differing_from(own, 0, vertices, 1), 0);
                CU_ASSERT_EQUAL(differing_from(others, 0, vertices, (uint8_t)(group_count - 1)), 0);
            }
        }
    }
}

static void more_than_64_compute_nodes_are_refused(void)
{
    dmg_job job = {.id = 1, .rank = 0, .size = 65};
    dmg_graph_store store = {.shape.partition_count = 4};
    const dmg_engine_options options = {.threads = 1};
    dmg_engine *engine = NULL;
    CU_ASSERT_EQUAL(dmg_engine_create(NULL, NULL, &job, &store, &options, &engine), DMG_ERR_LIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "at most 64"));
    CU_ASSERT_PTR_NULL(engine);
}

static const dmg_test tests[] = {
    DMG_TEST(all_numbers_of_compute_nodes_equal_the_serial_answer_for_all_numbers_of_partitions),
    DMG_TEST(a_compute_node_caches_its_partitions_whatever_the_number_of_groups),
    DMG_TEST(groups_walk_each_arc_once),
    DMG_TEST(a_fully_cached_compute_node_caches_all_attributes_and_sends_no_update),
    DMG_TEST(of_what_is_kept_only_the_attributes_of_the_partition_grow_with_the_graph),
    DMG_TEST(a_budget_for_a_partition_refuses_to_cache_the_whole_graph),
    {NULL, NULL},
};

static const dmg_test plain_tests[] = {
    DMG_TEST(groups_are_as_few_and_as_equal_as_possible),
    DMG_TEST(the_first_groups_of_the_paper_are_two_of_four),
    DMG_TEST(every_vertex_is_walked_by_one_rank_and_deposited_by_the_other_groups),
    DMG_TEST(more_than_64_compute_nodes_are_refused),
    {NULL, NULL},
};

static const char *const transports[] = {"cxl_shm", "ucx"};

static int next_transport(void)
{
    static size_t index;
    transport = transports[index++];
    return 0;
}

int main(int argc, char **argv)
{
    randomness.state = dmg_test_seed();
    if (dmg_suite_add("groups", NULL, NULL, plain_tests) != 0) {
        return 1;
    }
    if (argc > 1) {
        transport = argv[1];
        return dmg_suite_add(transport, NULL, NULL, tests) != 0 || dmg_suites_run(1, argv) != 0;
    }
    /* Where time is short (sanitizers), messages and sleeping threads take most of it. */
    for (size_t i = 0; i < (is_thin() ? 1 : sizeof transports / sizeof *transports); i++) {
        if (dmg_suite_add(transports[i], next_transport, NULL, tests) != 0) {
            return 1;
        }
    }
    return dmg_suites_run(argc, argv);
}
