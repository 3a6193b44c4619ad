/*
 * Retrieval by itself: what a phase sees, and what that takes in operations. Counts are exact; over a transport that
 * loads and stores, a mapped span stands for an operation.
 */
#include "unit/support/suite.h"

#include "core/engine/retrieval/retrieval.h"
#include "core/work/thread_team.h"
#include "unit/support/pool_fixture.h"
#include "unit/support/random_graph.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES       (UINT64_C(32) << 20)
#define SMALL_SEGMENT_EDGES 64

static const char *transport;
static dmg_random randomness;

/* A graph in a pool, and one worker. */
struct bench {
    dmg_test_pool pool;
    dmg_channel *channel;
    dmg_budget *budget;
    dmg_graph graph;
    dmg_graph_store store;
    dmg_range_array values;
    dmg_retrieval_setup setup;
    dmg_retrieval *retrieval;
    dmg_chunks *chunks;
    /* What the phase found. */
    uint64_t stride; /* every so many vertices are selected */
    bool local_segments_only;
    uint64_t chunk_count;
    uint64_t edges;
    uint64_t edge_sum; /* of (vertex + 1) * (destination + 1) */
    uint64_t largest;  /* edges of one call of apply */
    uint64_t value_sum;
    dmg_retrieval_counts counts;
};

static void set_up(struct bench *bench, const dmg_store_options *options)
{
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, 1, SEGMENT_BYTES, &bench->pool), DMG_OK);
    dmg_store_options store = *options;
    store.with_out = true;
    store.job = bench->pool.job.id;
    store.partition_count = store.partition_count ? store.partition_count : 1;
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(bench->pool.client, &bench->channel), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &bench->budget), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_graph_store_create(bench->channel, &bench->graph, &store, &bench->store), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_graph_store_load(bench->channel, &bench->store, bench->pool.job.id, &bench->graph, 0,
                                               bench->graph.vertex_count, NULL),
                          DMG_OK);
    CU_ASSERT_EQUAL_FATAL(
        dmg_range_array_allocate(bench->channel, bench->pool.job.id, bench->graph.vertex_count, 8, &bench->values),
        DMG_OK);
    bench->chunks = aligned_alloc(64, (sizeof *bench->chunks + 63) / 64 * 64);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bench->chunks);
    const dmg_retrieval_step best = {.merges = true, .batches = true};
    bench->setup = (dmg_retrieval_setup){.client = bench->pool.client,
                                         .budget = bench->budget,
                                         .store = &bench->store,
                                         .last_partition = store.partition_count,
                                         .ranks = 1,
                                         .tasks = 1,
                                         .activation = best,
                                         .index = best,
                                         .lists = best};
}

static void tear_down(struct bench *bench)
{
    free(bench->chunks);
    dmg_budget_destroy(bench->budget);
    dmg_channel_close(bench->channel);
    dmg_test_pool_stop(&bench->pool);
    dmg_graph_close(&bench->graph);
}

static uint32_t select_some(void *context, dmg_chunk *chunk, uint32_t *selected)
{
    const struct bench *bench = context;
    uint32_t count = 0;
    for (uint32_t i = 0; i < chunk->count; i++) {
        selected[count] = i;
        count += (chunk->first + i) % bench->stride == 0;
    }
    return count;
}

static void look(void *context, dmg_chunk *chunk, const dmg_vertex_edges *items, uint32_t count)
{
    struct bench *bench = context;
    uint64_t edges = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < items[i].count; j++) {
            uint32_t destination;
            memcpy(&destination, items[i].edges + (uint64_t)j * bench->store.shape.edge_bytes, sizeof destination);
            bench->edge_sum += (items[i].vertex + UINT64_C(1)) * (destination + UINT64_C(1));
        }
        edges += items[i].count;
    }
    if (chunk->is_first_round) {
        bench->chunk_count++;
        for (uint32_t i = 0; i < chunk->count; i++) {
            bench->value_sum += ((const uint64_t *)chunk->streams[0])[i];
        }
    }
    bench->edges += edges;
    bench->largest = edges > bench->largest ? edges : bench->largest;
}

/* Walk the selected vertices once; returns what that took. */
static dmg_counters walk(struct bench *bench, uint64_t stride)
{
    dmg_retrieval_plan plan = {.last = bench->graph.vertex_count,
                               .stream_count = 1,
                               .streams = {{&bench->values, 1, DMG_STREAM_READ}},
                               .index = &bench->store.out_index,
                               .local_segments_only = bench->local_segments_only,
                               .select = select_some,
                               .apply = look,
                               .context = bench};
    bench->stride = stride;
    bench->chunk_count = bench->edges = bench->edge_sum = bench->largest = bench->value_sum = 0;
    dmg_counters before = *dmg_channel_counters(bench->channel);
    CU_ASSERT_EQUAL_FATAL(dmg_retrieval_create(&bench->setup, bench->channel, 0, &bench->retrieval), DMG_OK);
    dmg_chunks_reset(bench->chunks, 0, bench->graph.vertex_count, 1,
                     dmg_retrieval_chunk_vertices(&bench->setup, &plan));
    CU_ASSERT_EQUAL(dmg_retrieval_run(bench->retrieval, &plan, bench->chunks), DMG_OK);
    bench->counts = *dmg_retrieval_count(bench->retrieval);
    dmg_retrieval_destroy(bench->retrieval);
    dmg_counters after = *dmg_channel_counters(bench->channel);
    dmg_counters_subtract(&after, &before);
    return after;
}

static uint64_t done(const dmg_counters *counters, dmg_purpose purpose)
{
    return counters->purposes[purpose].operations + counters->purposes[purpose].mapped_spans;
}

static bool is_mapped(const struct bench *bench)
{
    return (dmg_client_capabilities(bench->pool.client)->flags & DMG_CAPABILITY_LOAD_STORE) != 0;
}

/* What the graph says of the selected vertices. */
static void expect_all_edges(const struct bench *bench)
{
    uint64_t edges = 0;
    uint64_t sum = 0;
    for (uint64_t vertex = 0; vertex < bench->graph.vertex_count; vertex += bench->stride) {
        for (uint64_t i = bench->graph.out.offsets[vertex]; i < bench->graph.out.offsets[vertex + 1]; i++) {
            sum += (vertex + 1) * (bench->graph.out.destinations[i] + UINT64_C(1));
            edges++;
        }
    }
    CU_ASSERT_EQUAL(bench->edges, edges);
    CU_ASSERT_EQUAL(bench->edge_sum, sum);
}

/* Vertices 0, 4, 8, ... have 5 edges, all in the index. */
static void edges_in_place_cost_one_operation_a_chunk_and_no_list(void)
{
    struct bench bench = {0};
    dmg_sparse_graph_make(4096, 4, 5, false, &bench.graph);
    set_up(&bench, &(dmg_store_options){0});
    dmg_counters counters = walk(&bench, 4);
    expect_all_edges(&bench);
    CU_ASSERT_EQUAL(bench.edges, 4096 / 4 * 5);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_INDEX), bench.chunk_count);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_STREAMS), bench.chunk_count);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_LISTS), 0);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_OTHER), 0);
    tear_down(&bench);
}

static void entries_that_lie_far_apart_are_not_merged(void)
{
    struct bench bench = {0};
    dmg_sparse_graph_make(4096, 4, 5, false, &bench.graph);
    set_up(&bench, &(dmg_store_options){0});
    dmg_counters counters = walk(&bench, 64);
    expect_all_edges(&bench);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_INDEX), 4096 / 64);
    tear_down(&bench);
}

static void without_merging_an_active_vertex_costs_exactly_one_operation_a_step(void)
{
    struct bench bench = {0};
    dmg_sparse_graph_make(2048, 4, 20, false, &bench.graph); /* lists out of place */
    set_up(&bench, &(dmg_store_options){0});
    bench.setup.index.merges = false;
    dmg_counters counters = walk(&bench, 4);
    expect_all_edges(&bench);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_INDEX), 2048 / 4);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_STREAMS), bench.chunk_count);
    CU_ASSERT_TRUE(done(&counters, DMG_PURPOSE_LISTS) <= bench.chunk_count);
    bench.setup.index.merges = true;
    bench.setup.lists.merges = false;
    counters = walk(&bench, 4);
    expect_all_edges(&bench);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_LISTS), 2048 / 4);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_INDEX), bench.chunk_count);
    bench.setup.lists.merges = true;
    bench.setup.activation.merges = false;
    counters = walk(&bench, 4);
    expect_all_edges(&bench);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_STREAMS), 2048);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_INDEX), bench.chunk_count);
    tear_down(&bench);
}

static void a_batch_is_rung_once_and_without_batching_each_operation_is(void)
{
    struct bench bench = {0};
    dmg_sparse_graph_make(2048, 4, 20, false, &bench.graph);
    set_up(&bench, &(dmg_store_options){0});
    const dmg_retrieval_step worst = {0};
    bench.setup.activation.merges = bench.setup.index.merges = bench.setup.lists.merges = false;
    dmg_counters batched = walk(&bench, 4);
    bench.setup.activation = bench.setup.index = bench.setup.lists = worst;
    dmg_counters single = walk(&bench, 4);
    expect_all_edges(&bench);
    if (!is_mapped(&bench)) {
        CU_ASSERT_TRUE(batched.rings <= 3 * bench.chunk_count); /* fewer where operations end as they are posted */
        CU_ASSERT_EQUAL(single.rings, 2048 + 2 * (2048 / 4));
    }
    for (int purpose = 0; purpose < DMG_PURPOSES; purpose++) {
        CU_ASSERT_EQUAL(done(&single, (dmg_purpose)purpose), done(&batched, (dmg_purpose)purpose));
    }
    tear_down(&bench);
}

static void every_combination_of_switches_sees_every_edge_once(void)
{
    static const uint32_t entry_bytes[] = {16, 32};
    for (uint32_t i = 0; i < 4; i++) {
        struct bench bench = {0};
        const dmg_random_graph_options options = {.vertex_count = 1500,
                                                  .degree_max = 12,
                                                  .hub_count = 3,
                                                  .hub_degree = 700,
                                                  .is_directed = true,
                                                  .weight_kind = i % 2 ? DMG_WEIGHT_INT32 : DMG_WEIGHT_NONE};
        dmg_random_graph_make(&options, &randomness, &bench.graph);
        set_up(&bench, &(dmg_store_options){.entry_bytes = entry_bytes[i / 2], .without_embedding = i == 3});
        bench.setup.tasks = 1 + i;
        dmg_reschedule *reschedule;
        CU_ASSERT_EQUAL_FATAL(dmg_reschedule_create(bench.budget, 1, SMALL_SEGMENT_EDGES, &reschedule), DMG_OK);
        for (uint32_t bits = i; bits < 64; bits += 5) { /* each bit is on and off */
            bench.setup.activation = (dmg_retrieval_step){bits & 1, bits & 2};
            bench.setup.index = (dmg_retrieval_step){bits & 4, bits & 8};
            bench.setup.lists = (dmg_retrieval_step){bits & 16, bits & 32};
            bench.setup.reschedule = bits % 5 ? reschedule : NULL;
            walk(&bench, 1 + bits % 3);
            expect_all_edges(&bench);
        }
        dmg_reschedule_destroy(reschedule);
        tear_down(&bench);
    }
}

static void without_embedding_every_vertex_with_edges_has_a_list(void)
{
    struct bench bench = {0};
    dmg_sparse_graph_make(1024, 4, 5, false, &bench.graph);
    set_up(&bench, &(dmg_store_options){.without_embedding = true});
    bench.setup.lists.merges = false;
    dmg_counters counters = walk(&bench, 1);
    expect_all_edges(&bench);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_LISTS), 1024 / 4);
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_INDEX), bench.chunk_count);
    const dmg_purpose_counters *lists = &counters.purposes[DMG_PURPOSE_LISTS];
    CU_ASSERT_EQUAL(lists->bytes + lists->mapped_bytes, 1024 / 4 * 5 * 4);
    CU_ASSERT_EQUAL(lists->sizes[dmg_size_bucket(20)], 1024 / 4);
    tear_down(&bench);
}

/*
 * The list of vertex 0 fills the buffer to the last byte, all of it in partition 1; close behind it, the list of vertex
 * 1 has its end, and nothing in that partition.
 */
static void a_list_without_edges_of_this_node_is_not_fetched_behind_a_full_buffer(void)
{
    enum { FULL = 32768, FEW = 20 };
    struct bench bench = {.local_segments_only = true};
    dmg_sparse_graph_make(128, 64, FULL + FEW, false, &bench.graph);
    uint64_t *offsets = (uint64_t *)bench.graph.out.offsets;
    uint32_t *destinations = (uint32_t *)bench.graph.out.destinations;
    offsets[1] = FULL;
    for (uint32_t i = 0; i < 2 * (FULL + FEW); i++) {
        destinations[i] = i < FULL ? 100 : 5;
    }
    set_up(&bench, &(dmg_store_options){.partition_count = 2});
    CU_ASSERT_EQUAL(bench.store.partition_first[1], 64);
    bench.setup.first_partition = bench.setup.rank = 1;
    bench.setup.ranks = 2;
    dmg_counters counters = walk(&bench, 1);
    const dmg_purpose_counters *lists = &counters.purposes[DMG_PURPOSE_LISTS];
    CU_ASSERT_EQUAL(bench.edges, FULL);
    CU_ASSERT_EQUAL(bench.edge_sum, FULL * UINT64_C(101));
    CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_LISTS), 1);
    CU_ASSERT_EQUAL(lists->bytes + lists->mapped_bytes, FULL * 4);
    tear_down(&bench);
}

/* Vertices 0, 1024, 2048 and 3072 have 3,000 edges, each alone in its chunk. */
static void rescheduling_bounds_the_largest_task(void)
{
    struct bench bench = {0};
    dmg_reschedule *reschedule;
    dmg_sparse_graph_make(4096, 1024, 3000, false, &bench.graph);
    set_up(&bench, &(dmg_store_options){0});
    CU_ASSERT_EQUAL_FATAL(dmg_reschedule_create(bench.budget, 1, 1024, &reschedule), DMG_OK);
    walk(&bench, 1024);
    expect_all_edges(&bench);
    CU_ASSERT_EQUAL(bench.largest, 3000);
    CU_ASSERT_EQUAL(bench.counts.largest_task, 3000);
    CU_ASSERT_EQUAL(bench.counts.segments, 0);
    bench.setup.reschedule = reschedule;
    for (uint32_t tasks = 1; tasks <= 4; tasks++) {
        bench.setup.tasks = tasks;
        dmg_counters counters = walk(&bench, 1024);
        expect_all_edges(&bench);
        CU_ASSERT_EQUAL(bench.largest, 1024);
        CU_ASSERT_EQUAL(bench.counts.largest_task, 1024);
        CU_ASSERT_EQUAL(bench.counts.lists_cut, 4);
        CU_ASSERT_EQUAL(bench.counts.segments, 4 * 3); /* 1,024 and 1,024 and 952 */
        CU_ASSERT_EQUAL(bench.counts.segments_stolen, 0);
        /* Where it is fetched, a segment is an operation; in place the list is accounted for as a whole. */
        CU_ASSERT_EQUAL(done(&counters, DMG_PURPOSE_LISTS), is_mapped(&bench) ? 4 : 4 * 3);
    }
    dmg_reschedule_destroy(reschedule);
    tear_down(&bench);
}

static void more_long_lists_than_the_buffer_holds_are_walked_all_the_same(void)
{
    struct bench bench = {0};
    dmg_reschedule *reschedule;
    dmg_sparse_graph_make(3 * DMG_RESCHEDULE_LISTS * 8, 1, 80, false, &bench.graph);
    set_up(&bench, &(dmg_store_options){0});
    CU_ASSERT_EQUAL_FATAL(dmg_reschedule_create(bench.budget, 1, SMALL_SEGMENT_EDGES, &reschedule), DMG_OK);
    bench.setup.reschedule = reschedule;
    bench.setup.tasks = 4;
    walk(&bench, 1);
    expect_all_edges(&bench);
    CU_ASSERT_EQUAL(bench.counts.lists_cut, bench.graph.vertex_count);
    CU_ASSERT_EQUAL(bench.counts.segments, 2 * bench.graph.vertex_count);
    CU_ASSERT_EQUAL(bench.largest, SMALL_SEGMENT_EDGES);
    dmg_reschedule_destroy(reschedule);
    tear_down(&bench);
}

/* Two workers on one range; its memory node dies in the middle of a long list. */
struct dying {
    struct bench *bench;
    dmg_channel *channels[2];
    dmg_retrieval *retrievals[2];
    dmg_retrieval_plan plan;
    _Atomic uint32_t segments;
    _Atomic uint64_t edges;
    dmg_status statuses[2];
};

static void die_in_a_segment(void *context, dmg_chunk *chunk, const dmg_vertex_edges *items, uint32_t count)
{
    struct dying *dying = context;
    for (uint32_t i = 0; i < count; i++) {
        atomic_fetch_add(&dying->edges, items[i].count);
    }
    if (chunk->is_shared && atomic_fetch_add(&dying->segments, 1) == 20) {
        dmg_client_mark_dead(dying->bench->pool.client, 0, "died: a test says so");
    }
}

static void run_dying(void *context, uint32_t worker)
{
    struct dying *dying = context;
    dying->statuses[worker] = dmg_retrieval_run(dying->retrievals[worker], &dying->plan, dying->bench->chunks);
}

static void a_memory_node_that_dies_in_a_long_list_ends_all_workers(void)
{
    struct bench bench = {0};
    struct dying dying = {.bench = &bench};
    dmg_reschedule *reschedule;
    dmg_thread_team *team;
    dmg_list_piece segment;
    dmg_sparse_graph_make(4096, 512, 3000, false, &bench.graph);
    set_up(&bench, &(dmg_store_options){0});
    CU_ASSERT_EQUAL_FATAL(dmg_reschedule_create(bench.budget, 2, SMALL_SEGMENT_EDGES, &reschedule), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_thread_team_create(2, DMG_PIN_NODES, &team), DMG_OK);
    bench.setup.reschedule = reschedule;
    bench.setup.steals = true;
    bench.setup.tasks = 3;
    dying.plan = (dmg_retrieval_plan){.last = bench.graph.vertex_count,
                                      .index = &bench.store.out_index,
                                      .apply = die_in_a_segment,
                                      .context = &dying};
    for (uint32_t worker = 0; worker < 2; worker++) {
        CU_ASSERT_EQUAL_FATAL(dmg_channel_open(bench.pool.client, &dying.channels[worker]), DMG_OK);
        CU_ASSERT_EQUAL_FATAL(
            dmg_retrieval_create(&bench.setup, dying.channels[worker], worker, &dying.retrievals[worker]), DMG_OK);
    }
    dmg_chunks_reset(bench.chunks, 0, bench.graph.vertex_count, 2, 512);
    dmg_thread_team_run(team, 2, run_dying, &dying);
    if (is_mapped(&bench)) { /* what is mapped stays */
        CU_ASSERT_EQUAL(dying.edges, bench.graph.arc_count);
    } else {
        CU_ASSERT_TRUE(dying.statuses[0] == DMG_ERR_PEER || dying.statuses[1] == DMG_ERR_PEER);
        CU_ASSERT_TRUE(dying.edges < bench.graph.arc_count);
    }
    CU_ASSERT_FALSE(dmg_reschedule_take(reschedule, 0, &segment));
    CU_ASSERT_FALSE(dmg_reschedule_take(reschedule, 1, &segment));
    for (uint32_t worker = 0; worker < 2; worker++) {
        dmg_retrieval_destroy(dying.retrievals[worker]);
        dmg_channel_close(dying.channels[worker]);
    }
    dmg_thread_team_destroy(team);
    dmg_reschedule_destroy(reschedule);
    tear_down(&bench);
}

static const dmg_test tests[] = {
    DMG_TEST(edges_in_place_cost_one_operation_a_chunk_and_no_list),
    DMG_TEST(entries_that_lie_far_apart_are_not_merged),
    DMG_TEST(without_merging_an_active_vertex_costs_exactly_one_operation_a_step),
    DMG_TEST(a_batch_is_rung_once_and_without_batching_each_operation_is),
    DMG_TEST(every_combination_of_switches_sees_every_edge_once),
    DMG_TEST(without_embedding_every_vertex_with_edges_has_a_list),
    DMG_TEST(a_list_without_edges_of_this_node_is_not_fetched_behind_a_full_buffer),
    DMG_TEST(rescheduling_bounds_the_largest_task),
    DMG_TEST(a_memory_node_that_dies_in_a_long_list_ends_all_workers),
    DMG_TEST(more_long_lists_than_the_buffer_holds_are_walked_all_the_same),
    {NULL, NULL},
};

/* Suites run in the order of the transports; each set-up moves on to the next. */
static int next_transport(void)
{
    static size_t index;
    transport = dmg_test_transports[index++];
    return 0;
}

int main(int argc, char **argv)
{
    randomness.state = dmg_test_seed();
    for (size_t i = 0; dmg_test_transports[i]; i++) {
        if (dmg_suite_add(dmg_test_transports[i], next_transport, NULL, tests) != 0) {
            return 1;
        }
    }
    return dmg_suites_run(argc, argv);
}
