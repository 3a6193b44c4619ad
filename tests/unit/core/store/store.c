/* Graphs are loaded into pools over every transport and read back, list by list. */
#include "core/store/graph_store.h"

#include "unit/core/store/check.h"
#include "unit/support/pool_fixture.h"
#include "unit/support/random_graph.h"
#include "unit/support/suite.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define SEGMENT_BYTES (UINT64_C(64) << 20)
#define LOADERS_MAX   3

/** What the suite that runs now runs over. */
static const char *transport;

/* ---- loading ---- */

typedef struct loader {
    pthread_t thread;
    dmg_client *client;
    uint64_t job;
    const dmg_graph_store *store;
    const dmg_graph *graph;
    uint64_t first;
    uint64_t last;
    _Atomic uint64_t *progress;
    dmg_status status;
    dmg_counters counters;
} loader;

static void *load_share(void *context)
{
    loader *self = context;
    dmg_channel *channel;
    self->status = dmg_channel_open(self->client, &channel);
    if (self->status == DMG_OK) {
        self->status =
            dmg_graph_store_load(channel, self->store, self->job, self->graph, self->first, self->last, self->progress);
        self->counters = *dmg_channel_counters(channel);
        dmg_channel_close(channel);
    }
    return NULL;
}

/** Load with so many threads side by side; `counters` (may be NULL) gets what their channels did. */
static void load(const dmg_test_pool *pool, const dmg_graph_store *store, const dmg_graph *graph, uint32_t loader_count,
                 dmg_counters *counters)
{
    loader loaders[LOADERS_MAX];
    _Atomic uint64_t progress = 0;
    uint64_t batches = (graph->vertex_count + DMG_STORE_BATCH_VERTICES - 1) / DMG_STORE_BATCH_VERTICES;
    for (uint32_t i = 0; i < loader_count; i++) {
        uint64_t last = batches * (i + 1) / loader_count * DMG_STORE_BATCH_VERTICES;
        loaders[i] = (loader){
            .client = pool->client,
            .job = pool->job.id,
            .store = store,
            .graph = graph,
            .first = batches * i / loader_count * DMG_STORE_BATCH_VERTICES,
            .last = last < graph->vertex_count ? last : graph->vertex_count,
            .progress = &progress,
        };
        loaders[i].first = loaders[i].first < loaders[i].last ? loaders[i].first : loaders[i].last;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&loaders[i].thread, NULL, load_share, &loaders[i]), 0);
    }
    for (uint32_t i = 0; i < loader_count; i++) {
        pthread_join(loaders[i].thread, NULL);
        CU_ASSERT_EQUAL(loaders[i].status, DMG_OK);
        if (counters) {
            dmg_counters_add(counters, &loaders[i].counters);
        }
    }
    uint64_t directions = (uint64_t)store->has_out + store->has_in;
    CU_ASSERT_EQUAL(atomic_load(&progress), directions * graph->arc_count);
}

static uint64_t allocated_bytes(dmg_channel *channel)
{
    uint64_t sum = 0;
    for (uint32_t node = 0; node < dmg_client_node_count(dmg_channel_client(channel)); node++) {
        uint64_t allocated;
        uint64_t peak;
        uint64_t total;
        dmg_test_require(dmg_pool_usage(channel, (uint16_t)node, &allocated, &peak, &total));
        sum += allocated;
    }
    return sum;
}

/** A pool over the suite's transport, and a channel. */
static void start(uint32_t nodes, dmg_test_pool *pool, dmg_channel **channel)
{
    dmg_test_require(dmg_test_pool_start(transport, nodes, SEGMENT_BYTES, pool));
    dmg_test_require(dmg_channel_open(pool->client, channel));
}

static void stop(dmg_test_pool *pool, dmg_channel *channel)
{
    dmg_channel_close(channel);
    dmg_test_pool_stop(pool);
}

/* ---- tests ---- */

static void every_list_reads_back_segment_by_segment(void)
{
    static const uint64_t vertex_counts[] = {0, 1, 63, 64, 65, 1023, 1024, 1025, 2500, 5000};
    static const uint32_t entry_sizes[] = {16, 32, 64, 128};
    static const uint32_t partition_counts[] = {1, 2, 3, 5, 8, 21, 64};
    dmg_random random = {dmg_test_seed()};
    for (uint32_t nodes = 1; nodes <= 3; nodes++) {
        dmg_test_pool pool;
        dmg_channel *channel;
        start(nodes, &pool, &channel);
        for (uint32_t round = 0; round < 20; round++) {
            dmg_random_graph_options shape = {
                .vertex_count = vertex_counts[round % 10],
                .degree_max = (uint32_t)dmg_random_below(&random, 40),
                .hub_count = (uint32_t)dmg_random_below(&random, 5),
                .hub_degree = (uint32_t)dmg_random_below(&random, 5000),
                .is_directed = dmg_random_below(&random, 2) == 0,
                .weight_kind = (dmg_weight_kind)dmg_random_below(&random, 3),
                .has_ids = dmg_random_below(&random, 2) == 0,
            };
            dmg_store_options options = {
                .entry_bytes = entry_sizes[dmg_random_below(&random, 4)],
                .partition_count = partition_counts[dmg_random_below(&random, 7)],
                .with_out = dmg_random_below(&random, 4) > 0,
                .with_in = dmg_random_below(&random, 2) == 0,
            };
            options.with_in = options.with_in || !options.with_out;
            dmg_graph graph;
            dmg_graph_store store;
            dmg_random_graph_make(&shape, &random, &graph);
            uint64_t before = allocated_bytes(channel);
            options.job = pool.job.id;
            dmg_test_require(dmg_graph_store_create(channel, &graph, &options, &store));
            load(&pool, &store, &graph, 1 + (uint32_t)dmg_random_below(&random, LOADERS_MAX), NULL);
            CU_ASSERT_TRUE(allocated_bytes(channel) - before <= dmg_graph_store_bytes(&graph, &options));
            dmg_test_store_check(channel, &store, &graph);
            dmg_graph_close(&graph);
        }
        stop(&pool, channel);
    }
}

static void hubs_larger_than_the_buffers_stay_whole(void)
{
    dmg_random random = {dmg_test_seed()};
    dmg_test_pool pool;
    dmg_channel *channel;
    start(2, &pool, &channel);
    for (int is_weighted = 0; is_weighted <= 1; is_weighted++) {
        dmg_random_graph_options shape = {
            .vertex_count = 3000,
            .degree_max = 12,
            .hub_count = 3,
            .hub_degree = 150001,
            .is_directed = true,
            .weight_kind = is_weighted ? DMG_WEIGHT_FLOAT32 : DMG_WEIGHT_NONE,
        };
        dmg_store_options options = {.partition_count = 7, .with_out = true, .with_in = true};
        dmg_graph graph;
        dmg_graph_store store;
        dmg_random_graph_make(&shape, &random, &graph);
        options.job = pool.job.id;
        dmg_test_require(dmg_graph_store_create(channel, &graph, &options, &store));
        load(&pool, &store, &graph, 2, NULL);
        dmg_test_store_check(channel, &store, &graph);
        dmg_graph_close(&graph);
    }
    stop(&pool, channel);
}

static void lists_of_a_batch_are_contiguous_on_one_node_and_nodes_get_alike(void)
{
    enum { NODES = 3, BATCHES = 9 };
    dmg_random random = {dmg_test_seed()};
    dmg_test_pool pool;
    dmg_channel *channel;
    start(NODES, &pool, &channel);
    dmg_random_graph_options shape = {
        .vertex_count = BATCHES * DMG_STORE_BATCH_VERTICES - 100, .degree_max = 40, .is_directed = true};
    dmg_store_options options = {.partition_count = 4, .with_out = true};
    dmg_graph graph;
    dmg_graph_store store;
    dmg_random_graph_make(&shape, &random, &graph);
    options.job = pool.job.id;
    dmg_test_require(dmg_graph_store_create(channel, &graph, &options, &store));
    load(&pool, &store, &graph, 2, NULL);
    uint8_t *entries = dmg_test_read_array(channel, &store.out_index, store.vertex_count);
    uint64_t node_bytes[NODES] = {0};
    uint64_t batch_bytes_max = 0;
    for (uint64_t batch = 0; batch < BATCHES; batch++) {
        dmg_address end = DMG_ADDRESS_NULL;
        uint64_t bytes = 0;
        uint32_t node = 0;
        for (uint64_t v = batch * DMG_STORE_BATCH_VERTICES;
             v < (batch + 1) * DMG_STORE_BATCH_VERTICES && v < store.vertex_count; v++) {
            const uint8_t *entry = entries + v * store.shape.entry_bytes;
            if (dmg_index_entry_is_in_place(&store.shape, entry)) {
                continue;
            }
            dmg_address list = dmg_index_entry_list(entry);
            CU_ASSERT_TRUE(end == DMG_ADDRESS_NULL || dmg_address_node(list) == node);
            node = dmg_address_node(list);
            CU_ASSERT_TRUE(end == DMG_ADDRESS_NULL || list == end);
            CU_ASSERT_FALSE(dmg_index_entry_has_list_header(entry));
            bytes += dmg_index_entry_degree(entry) * UINT64_C(4);
            end = list + dmg_index_entry_degree(entry) * UINT64_C(4);
        }
        node_bytes[node] += bytes;
        batch_bytes_max = bytes > batch_bytes_max ? bytes : batch_bytes_max;
    }
    for (uint32_t node = 1; node < NODES; node++) {
        uint64_t a = node_bytes[0];
        uint64_t b = node_bytes[node];
        CU_ASSERT_TRUE((a > b ? a - b : b - a) <= batch_bytes_max);
    }
    free(entries);
    dmg_graph_close(&graph);
    stop(&pool, channel);
}

/** Load lists of 20 edges, one every `stride` vertices, and count. `list_writes` are expected for the lists. */
static void check_operations(uint32_t nodes, uint64_t batches, uint64_t stride, uint64_t list_writes)
{
    dmg_test_pool pool;
    dmg_channel *channel;
    dmg_graph graph;
    dmg_graph_store store;
    dmg_store_options options = {.partition_count = 2, .with_out = true};
    dmg_counters counters = {0};
    start(nodes, &pool, &channel);
    dmg_sparse_graph_make(batches * DMG_STORE_BATCH_VERTICES, stride, 20, true, &graph);
    options.job = pool.job.id;
    dmg_test_require(dmg_graph_store_create(channel, &graph, &options, &store));
    /* The border between the nodes is one between batches, so entries take one operation a batch. */
    CU_ASSERT_EQUAL(store.out_index.ends[0], batches / nodes * DMG_STORE_BATCH_VERTICES);
    load(&pool, &store, &graph, 1, &counters);
    dmg_test_store_check(channel, &store, &graph);
    uint64_t spans = batches + list_writes + nodes; /* entries, lists, degrees */
    uint64_t bytes = batches * DMG_STORE_BATCH_VERTICES * (UINT64_C(32) + 4) + graph.arc_count * 4;
    uint64_t id_bytes = batches * DMG_STORE_BATCH_VERTICES * UINT64_C(8);
    /* What loading writes in place, others must see without more ado. */
    const uint32_t needed = DMG_CAPABILITY_LOAD_STORE | DMG_CAPABILITY_COHERENT;
    bool is_mapped = (dmg_client_capabilities(pool.client)->flags & needed) == needed;
    CU_ASSERT_EQUAL(counters.operations[DMG_OPERATION_READ], 0);
    CU_ASSERT_EQUAL(counters.operations[DMG_OPERATION_CAS] + counters.operations[DMG_OPERATION_FAA], 0);
    CU_ASSERT_EQUAL(counters.operations[DMG_OPERATION_MESSAGE], nodes);                         /* one extent each */
    CU_ASSERT_EQUAL(counters.operations[DMG_OPERATION_WRITE], nodes + (is_mapped ? 0 : spans)); /* ids: one each */
    CU_ASSERT_EQUAL(counters.bytes[DMG_OPERATION_WRITE], id_bytes + (is_mapped ? 0 : bytes));
    CU_ASSERT_EQUAL(counters.mapped_spans, is_mapped ? spans : 0);
    CU_ASSERT_EQUAL(counters.mapped_bytes, is_mapped ? bytes : 0);
    dmg_graph_close(&graph);
    stop(&pool, channel);
}

static void loading_takes_exactly_these_operations(void)
{
    /* Lists of a batch are one write; the next batch's are on the other node. */
    check_operations(2, 6, DMG_STORE_BATCH_VERTICES, 6);
    check_operations(2, 6, 4, 6);
    /* With one node, all 6 * 256 * 80 bytes lie in one row, and fit into one buffer. */
    check_operations(1, 6, 4, 1);
}

static void what_a_job_has_stored_is_freed_when_it_ends(void)
{
    dmg_test_pool pool;
    dmg_channel *channel;
    dmg_graph graph;
    dmg_graph_store store;
    dmg_job job;
    start(2, &pool, &channel);
    dmg_sparse_graph_make(5000, DMG_STORE_BATCH_VERTICES, 100, true, &graph);
    uint64_t before = allocated_bytes(channel);
    dmg_test_require(dmg_job_join(channel, &dmg_test_pass, "store-test", 0, 1, &job));
    dmg_store_options options = {.partition_count = 2, .with_out = true, .job = job.id};
    dmg_test_require(dmg_graph_store_create(channel, &graph, &options, &store));
    dmg_test_require(dmg_graph_store_load(channel, &store, job.id, &graph, 0, graph.vertex_count, NULL));
    CU_ASSERT_TRUE(allocated_bytes(channel) >= before + graph.arc_count * 4 + graph.vertex_count * (32 + 4 + 8));
    dmg_test_require(dmg_job_leave(channel, &job));
    CU_ASSERT_EQUAL(allocated_bytes(channel), before);
    dmg_graph_close(&graph);
    stop(&pool, channel);
}

static void unsound_lists_are_refused_and_leave_no_memory_behind(void)
{
    dmg_test_pool pool;
    dmg_channel *channel;
    dmg_graph graph;
    dmg_graph_store store;
    dmg_store_options options = {.partition_count = 2, .with_out = true};
    start(2, &pool, &channel);
    for (uint32_t degree = 3; degree <= 30; degree += 27) {
        dmg_sparse_graph_make(3000, DMG_STORE_BATCH_VERTICES, degree, false, &graph);
        uint32_t *destinations = (uint32_t *)graph.out.destinations;
        options.job = pool.job.id;
        dmg_test_require(dmg_graph_store_create(channel, &graph, &options, &store));
        uint64_t before = allocated_bytes(channel);
        uint32_t last = destinations[graph.arc_count - 1];
        destinations[graph.arc_count - 1] = 3000;
        CU_ASSERT_EQUAL(dmg_graph_store_load(channel, &store, pool.job.id, &graph, 0, 3000, NULL), DMG_ERR_CORRUPT);
        CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "2048"));
        destinations[graph.arc_count - 1] = 0;
        CU_ASSERT_EQUAL(dmg_graph_store_load(channel, &store, pool.job.id, &graph, 0, 3000, NULL), DMG_ERR_CORRUPT);
        CU_ASSERT_EQUAL(allocated_bytes(channel), before);
        destinations[graph.arc_count - 1] = last;
        dmg_test_require(dmg_graph_store_load(channel, &store, pool.job.id, &graph, 0, 3000, NULL));
        dmg_test_store_check(channel, &store, &graph);
        dmg_graph_close(&graph);
    }
    stop(&pool, channel);
}

static void ranges_and_graphs_that_do_not_fit_the_store_are_refused(void)
{
    dmg_test_pool pool;
    dmg_channel *channel;
    dmg_graph graph;
    dmg_graph_store store;
    dmg_store_options options = {.partition_count = 1, .with_out = true};
    start(1, &pool, &channel);
    dmg_sparse_graph_make(3000, DMG_STORE_BATCH_VERTICES, 9, false, &graph);
    options.job = pool.job.id;
    dmg_test_require(dmg_graph_store_create(channel, &graph, &options, &store));
    CU_ASSERT_EQUAL(dmg_graph_store_load(channel, &store, pool.job.id, &graph, 1, 3000, NULL), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_graph_store_load(channel, &store, pool.job.id, &graph, 0, 3001, NULL), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_graph_store_load(channel, &store, pool.job.id, &graph, 2048, 1024, NULL), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_graph_store_load(channel, &store, pool.job.id, &graph, 2048, 2048, NULL), DMG_OK);
    dmg_graph other = graph;
    other.vertex_count = 2999;
    CU_ASSERT_EQUAL(dmg_graph_store_load(channel, &store, pool.job.id, &other, 0, 2999, NULL), DMG_ERR_ARGUMENT);
    other = graph;
    other.weight_kind = DMG_WEIGHT_INT32;
    CU_ASSERT_EQUAL(dmg_graph_store_load(channel, &store, pool.job.id, &other, 0, 3000, NULL), DMG_ERR_ARGUMENT);
    other = graph;
    other.is_directed = false;
    CU_ASSERT_EQUAL(dmg_graph_store_load(channel, &store, pool.job.id, &other, 0, 3000, NULL), DMG_ERR_ARGUMENT);
    dmg_graph_close(&graph);
    stop(&pool, channel);
}

static const dmg_test tests[] = {
    DMG_TEST(every_list_reads_back_segment_by_segment),
    DMG_TEST(hubs_larger_than_the_buffers_stay_whole),
    DMG_TEST(lists_of_a_batch_are_contiguous_on_one_node_and_nodes_get_alike),
    DMG_TEST(loading_takes_exactly_these_operations),
    DMG_TEST(what_a_job_has_stored_is_freed_when_it_ends),
    DMG_TEST(unsound_lists_are_refused_and_leave_no_memory_behind),
    DMG_TEST(ranges_and_graphs_that_do_not_fit_the_store_are_refused),
    {NULL, NULL},
};

/* CUnit's set-ups take no argument: there is one for each of dmg_test_transports. */
static int over_first(void)
{
    transport = dmg_test_transports[0];
    return 0;
}

static int over_second(void)
{
    transport = dmg_test_transports[1];
    return 0;
}

static int over_third(void)
{
    transport = dmg_test_transports[2];
    return 0;
}

static int over_fourth(void)
{
    transport = dmg_test_transports[3];
    return 0;
}

int main(int argc, char **argv)
{
    int (*const set_ups[])(void) = {over_first, over_second, over_third, over_fourth};
    for (uint32_t i = 0; dmg_test_transports[i]; i++) {
        if (dmg_suite_add(dmg_test_transports[i], set_ups[i], NULL, tests) != 0) {
            return 1;
        }
    }
    return dmg_suites_run(argc, argv);
}
