/* Descriptors that come out of the catalog are not trusted: every field is broken in turn. */
#include "core/store/graph_store.h"
#include "core/store/tiny_chunk.h"

#include "unit/support/pool_fixture.h"
#include "unit/support/random_graph.h"
#include "unit/support/suite.h"

#include <stddef.h>
#include <stdio.h>

#define SEGMENT_BYTES (UINT64_C(16) << 20)

static dmg_test_pool pool;
static dmg_channel *channel;

static int set_up(void)
{
    if (dmg_test_pool_start("cxl_shm", 2, SEGMENT_BYTES, &pool) != DMG_OK ||
        dmg_channel_open(pool.client, &channel) != DMG_OK) {
        printf("%s\n", dmg_error_message());
        return 1;
    }
    return 0;
}

static int tear_down(void)
{
    dmg_channel_close(channel);
    dmg_test_pool_stop(&pool);
    return 0;
}

static void make_graph(uint64_t vertex_count, bool is_directed, dmg_weight_kind weight_kind, dmg_graph *graph)
{
    dmg_random random = {7};
    dmg_random_graph_options options = {
        .vertex_count = vertex_count,
        .degree_max = 12,
        .is_directed = is_directed,
        .weight_kind = weight_kind,
        .has_ids = true,
    };
    dmg_random_graph_make(&options, &random, graph);
}

static void free_arrays(const dmg_graph_store *store)
{
    const dmg_range_array *arrays[] = {&store->out_index, &store->in_index, &store->out_degrees, &store->ids,
                                       &store->tiny_chunks};
    for (uint32_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        if (arrays[i]->count > 0) {
            CU_ASSERT_EQUAL(dmg_range_array_free(channel, arrays[i]), DMG_OK);
        }
    }
}

static uint64_t allocated_bytes(void)
{
    uint64_t sum = 0;
    for (uint16_t node = 0; node < pool.node_count; node++) {
        uint64_t allocated = 0;
        uint64_t peak;
        uint64_t total;
        CU_ASSERT_EQUAL(dmg_pool_usage(channel, node, &allocated, &peak, &total), DMG_OK);
        sum += allocated;
    }
    return sum;
}

static void a_descriptor_survives_the_catalog(void)
{
    dmg_graph graph;
    dmg_graph_store store;
    dmg_graph_store copy;
    size_t bytes = sizeof copy;
    dmg_store_options options = {.job = pool.job.id, .partition_count = 3, .with_out = true, .with_in = true};
    make_graph(3000, true, DMG_WEIGHT_INT32, &graph);
    CU_ASSERT_EQUAL_FATAL(dmg_graph_store_create(channel, &graph, &options, &store), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_put(channel, 0, "graph", &store, sizeof store), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_get(channel, "graph", &copy, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_store_check(&copy, bytes, pool.client), DMG_OK);
    CU_ASSERT_EQUAL(memcmp(&copy, &store, sizeof copy), 0);
    CU_ASSERT_EQUAL(dmg_graph_store_check(&copy, bytes - 1, pool.client), DMG_ERR_CORRUPT);
    CU_ASSERT_EQUAL(dmg_catalog_remove(channel, "graph"), DMG_OK);
    free_arrays(&store);
    dmg_graph_close(&graph);
}

/** One field and a value that it must not have. */
typedef struct breakage {
    size_t offset;
    size_t bytes;
    uint64_t value;
} breakage;

#define BREAK(field, value)                                                                                            \
    {                                                                                                                  \
        offsetof(dmg_graph_store, field), sizeof(((dmg_graph_store *)0)->field), value                                 \
    }

static void every_broken_field_of_a_descriptor_is_refused(void)
{
    const uint64_t outside = dmg_address_make(0, SEGMENT_BYTES - 64);
    const breakage breakages[] = {
        BREAK(version, 0),
        BREAK(version, DMG_GRAPH_STORE_VERSION + 1),
        BREAK(weight_kind, DMG_WEIGHT_NONE),
        BREAK(weight_kind, 3),
        BREAK(vertex_count, 0),
        BREAK(vertex_count, 2999),
        BREAK(vertex_count, 3001),
        BREAK(vertex_count, DMG_VERTICES_MAX + 1),
        BREAK(arc_count, SEGMENT_BYTES),
        BREAK(arc_count, UINT64_MAX),
        BREAK(shape.entry_bytes, 0),
        BREAK(shape.entry_bytes, 31),
        BREAK(shape.entry_bytes, 64),
        BREAK(shape.edge_bytes, 4),
        BREAK(shape.partition_count, 0),
        BREAK(shape.partition_count, 2),
        BREAK(shape.partition_count, DMG_PARTITIONS_MAX + 1),
        BREAK(shape.in_place_degree_max, 4),
        BREAK(shape.in_place_degree_max, 1),
        BREAK(is_directed, 2),
        BREAK(is_directed, 0),
        BREAK(has_out, 0xff),
        BREAK(has_in, 7),
        BREAK(has_ids, 2),
        BREAK(partition_first[0], 64),
        BREAK(partition_first[1], 3008),
        BREAK(partition_first[1], 65),
        BREAK(partition_first[2], 0),
        BREAK(partition_first[3], 2944),
        BREAK(zero, 1),
        BREAK(tiny_chunk_vertices, 0),
        BREAK(tiny_chunk_vertices, 63),
        BREAK(tiny_chunk_vertices, 128),
        BREAK(tiny_chunk_vertices, UINT64_C(1) << 40),
        BREAK(tiny_chunk_count, 46),
        BREAK(tiny_chunk_count, 48),
        BREAK(tiny_chunk_count, DMG_TINY_CHUNKS_MAX + 1),
        BREAK(tiny_chunks.count, 46),
        BREAK(tiny_chunks.element_bytes, 4),
        BREAK(tiny_chunks.node_count, 0),
        BREAK(tiny_chunks.ends[0], 63),
        BREAK(tiny_chunks.base[0], outside),
        BREAK(out_index.count, 2999),
        BREAK(out_index.ends[0], 1500),
        BREAK(out_index.ends[0], 3008),
        BREAK(out_index.ends[0], UINT64_MAX - 63),
        BREAK(out_index.ends[1], 0),
        BREAK(out_index.ends[1], 2944),
        BREAK(out_index.ends[1], 3008),
        BREAK(shares.node_count, 0),
        BREAK(shares.node_count, 3),
        BREAK(shares.weight[1], UINT64_MAX),
        BREAK(out_index.element_bytes, 16),
        BREAK(out_index.node_count, 0),
        BREAK(out_index.node_count, 1),
        BREAK(out_index.node_count, DMG_MEMORY_NODES_MAX + 1),
        BREAK(out_index.base[0], 0),
        BREAK(out_index.base[0], outside),
        BREAK(out_index.base[0], 4100),
        BREAK(out_index.base[1], dmg_address_make(2, 4096)),
        BREAK(out_index.base[1], dmg_address_make(1, DMG_ADDRESS_OFFSET_MASK - 63)),
        BREAK(in_index.count, 0),
        BREAK(in_index.base[1], outside),
        BREAK(out_degrees.count, 1),
        BREAK(out_degrees.element_bytes, 8),
        BREAK(out_degrees.base[0], outside),
        BREAK(ids.count, 1),
        BREAK(ids.element_bytes, 4),
        BREAK(ids.base[1], outside),
    };
    dmg_graph graph;
    dmg_graph_store store;
    dmg_store_options options = {.job = pool.job.id, .partition_count = 3, .with_out = true, .with_in = true};
    make_graph(3000, true, DMG_WEIGHT_INT32, &graph);
    CU_ASSERT_EQUAL_FATAL(dmg_graph_store_create(channel, &graph, &options, &store), DMG_OK);
    for (size_t i = 0; i < sizeof breakages / sizeof breakages[0]; i++) {
        dmg_graph_store broken = store;
        memcpy((char *)&broken + breakages[i].offset, &breakages[i].value, breakages[i].bytes);
        if (dmg_graph_store_check(&broken, sizeof broken, pool.client) != DMG_ERR_CORRUPT) {
            printf("\n    breakage %zu was not seen\n", i);
            CU_FAIL("a broken descriptor passed");
        }
    }
    dmg_graph_store neither = store;
    neither.has_out = neither.has_in = false;
    CU_ASSERT_EQUAL(dmg_graph_store_check(&neither, sizeof neither, pool.client), DMG_ERR_CORRUPT);
    dmg_graph_store without_shares = store;
    memset(without_shares.shares.weight, 0, sizeof without_shares.shares.weight);
    CU_ASSERT_EQUAL(dmg_graph_store_check(&without_shares, sizeof without_shares, pool.client), DMG_ERR_CORRUPT);
    dmg_graph_store wrapping = store;
    wrapping.has_ids = false;
    wrapping.first_id = UINT64_MAX - 100;
    CU_ASSERT_EQUAL(dmg_graph_store_check(&wrapping, sizeof wrapping, pool.client), DMG_ERR_CORRUPT);
    free_arrays(&store);
    dmg_graph_close(&graph);
}

static void random_bytes_in_a_descriptor_never_crash_the_check(void)
{
    dmg_graph graph;
    dmg_graph_store store;
    dmg_random random = {dmg_test_seed()};
    dmg_store_options options = {.job = pool.job.id, .partition_count = 64, .with_out = true, .with_in = true};
    make_graph(3000, true, DMG_WEIGHT_NONE, &graph);
    CU_ASSERT_EQUAL_FATAL(dmg_graph_store_create(channel, &graph, &options, &store), DMG_OK);
    for (uint32_t round = 0; round < 100000; round++) {
        dmg_graph_store broken = store;
        for (uint32_t i = 0; i < 1 + round % 4; i++) {
            ((uint8_t *)&broken)[dmg_random_below(&random, sizeof broken)] = (uint8_t)dmg_random_next(&random);
        }
        dmg_status status = dmg_graph_store_check(&broken, sizeof broken, pool.client);
        if (status != DMG_OK && status != DMG_ERR_CORRUPT) {
            CU_FAIL("a status that is neither");
        }
    }
    free_arrays(&store);
    dmg_graph_close(&graph);
}

static void options_that_make_no_sense_are_refused(void)
{
    dmg_graph graph;
    dmg_graph_store store;
    make_graph(100, true, DMG_WEIGHT_NONE, &graph);
    const dmg_store_options bad[] = {
        {.partition_count = 0, .with_out = true},
        {.partition_count = DMG_PARTITIONS_MAX + 1, .with_out = true},
        {.partition_count = 1},
        {.partition_count = 1, .with_out = true, .entry_bytes = 8},
        {.partition_count = 1, .with_out = true, .entry_bytes = 48},
        {.partition_count = 1, .with_out = true, .entry_bytes = 256},
        {.partition_count = 1, .with_out = true, .tiny_chunks = DMG_TINY_CHUNKS_MAX + 1},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_EQUAL(dmg_graph_store_create(channel, &graph, &bad[i], &store), DMG_ERR_ARGUMENT);
        CU_ASSERT_EQUAL(dmg_graph_store_bytes(&graph, &bad[i]), 0);
    }
    dmg_store_options with_in = {.job = pool.job.id, .partition_count = 1, .with_in = true};
    dmg_graph without_reverse = graph;
    without_reverse.in = (dmg_adjacency){0};
    CU_ASSERT_EQUAL(dmg_graph_store_create(channel, &without_reverse, &with_in, &store), DMG_ERR_ARGUMENT);
    dmg_graph large = graph;
    large.vertex_count = DMG_VERTICES_MAX + 1;
    dmg_store_options with_out = {.job = pool.job.id, .partition_count = 1, .with_out = true};
    CU_ASSERT_EQUAL(dmg_graph_store_create(channel, &large, &with_out, &store), DMG_ERR_LIMIT);
    dmg_graph_close(&graph);
}

static void an_undirected_graph_is_stored_once_for_both_directions(void)
{
    dmg_graph graph;
    make_graph(500, false, DMG_WEIGHT_NONE, &graph);
    for (int way = 1; way <= 3; way++) {
        dmg_graph_store store;
        dmg_store_options options = {.job = pool.job.id, .partition_count = 2, .with_out = way & 1, .with_in = way & 2};
        CU_ASSERT_EQUAL_FATAL(dmg_graph_store_create(channel, &graph, &options, &store), DMG_OK);
        CU_ASSERT_TRUE(store.has_out && !store.has_in && store.in_index.count == 0);
        CU_ASSERT_PTR_EQUAL(dmg_graph_store_index(&store, true), &store.out_index);
        CU_ASSERT_PTR_EQUAL(dmg_graph_store_index(&store, false), &store.out_index);
        CU_ASSERT_EQUAL(dmg_graph_store_check(&store, sizeof store, pool.client), DMG_OK);
        free_arrays(&store);
    }
    dmg_graph_close(&graph);
}

static void an_empty_graph_needs_no_memory(void)
{
    dmg_graph graph;
    dmg_graph_store store;
    dmg_store_options options = {.job = pool.job.id, .partition_count = 4, .with_out = true, .with_in = true};
    uint64_t before = allocated_bytes();
    make_graph(0, true, DMG_WEIGHT_FLOAT32, &graph);
    CU_ASSERT_EQUAL(dmg_graph_store_create(channel, &graph, &options, &store), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_store_check(&store, sizeof store, pool.client), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_store_load(channel, &store, pool.job.id, &graph, 0, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_store_bytes(&graph, &options), 0);
    CU_ASSERT_EQUAL(allocated_bytes(), before);
    dmg_graph_close(&graph);
}

static void a_store_that_does_not_fit_leaves_no_arrays_behind(void)
{
    dmg_graph graph;
    dmg_graph_store store;
    /* The out-index takes half of the pool, so the in-index finds no room. */
    uint64_t vertex_count = SEGMENT_BYTES * 2 / 128 * 6 / 10;
    dmg_store_options options = {
        .job = pool.job.id, .entry_bytes = 128, .partition_count = 1, .with_out = true, .with_in = true};
    uint64_t before = allocated_bytes();
    make_graph(vertex_count, true, DMG_WEIGHT_NONE, &graph);
    CU_ASSERT_EQUAL(dmg_graph_store_create(channel, &graph, &options, &store), DMG_ERR_MEMORY);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "in_index"));
    CU_ASSERT_EQUAL(allocated_bytes(), before);
    dmg_graph_close(&graph);
}

static void partitioning_again_reads_the_metadata_of_tiny_chunks_and_nothing_else(void)
{
    dmg_graph graph;
    static const uint32_t wanted[] = {0, 1, 7, 40, DMG_TINY_CHUNKS_MAX};
    make_graph(100000, true, DMG_WEIGHT_NONE, &graph);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        dmg_graph_store store;
        dmg_store_options options = {.job = pool.job.id,
                                     .partition_count = 3,
                                     .tiny_chunks = wanted[i],
                                     .with_out = true,
                                     .with_in = i % 2 == 0};
        CU_ASSERT_EQUAL_FATAL(dmg_graph_store_create(channel, &graph, &options, &store), DMG_OK);
        CU_ASSERT_TRUE(store.tiny_chunk_count >= 1 && store.tiny_chunk_count <= (wanted[i] ? wanted[i] : 1024));
        for (uint32_t count = 1; count <= DMG_PARTITIONS_MAX; count++) {
            uint64_t first[DMG_PARTITIONS_MAX + 1];
            uint64_t costs[DMG_PARTITIONS_MAX];
            uint64_t cost = 0;
            dmg_counters counters = *dmg_channel_counters(channel);
            CU_ASSERT_EQUAL_FATAL(dmg_graph_store_partition(channel, &store, count, first, costs), DMG_OK);
            dmg_counters after = *dmg_channel_counters(channel);
            dmg_counters_subtract(&after, &counters);
            uint64_t nodes = 0; /* that hold some of it */
            for (uint64_t at = 0; at < store.tiny_chunk_count; nodes++) {
                at += dmg_range_array_run(&store.tiny_chunks, at, store.tiny_chunk_count - at);
            }
            CU_ASSERT_EQUAL(after.operations[DMG_OPERATION_READ], nodes);
            CU_ASSERT_EQUAL(after.bytes[DMG_OPERATION_READ], UINT64_C(8) * store.tiny_chunk_count);
            CU_ASSERT_EQUAL(after.operations[DMG_OPERATION_MESSAGE] + after.operations[DMG_OPERATION_WRITE], 0);
            CU_ASSERT_EQUAL(after.mapped_spans, 0);
            for (uint32_t p = 0; p < count; p++) {
                cost += costs[p];
            }
            CU_ASSERT_EQUAL(cost, (options.with_in ? 2 : 1) * graph.arc_count + 8 * (count - 1) * graph.vertex_count);
            CU_ASSERT_TRUE(count != 3 || memcmp(first, store.partition_first, 4 * sizeof first[0]) == 0);
        }
        free_arrays(&store);
    }
    dmg_graph_close(&graph);
}

static void metadata_of_tiny_chunks_that_lies_is_refused(void)
{
    dmg_graph graph;
    dmg_graph_store store;
    dmg_store_options options = {.job = pool.job.id, .partition_count = 3, .with_out = true};
    uint64_t first[DMG_PARTITIONS_MAX + 1];
    make_graph(3000, true, DMG_WEIGHT_NONE, &graph);
    CU_ASSERT_EQUAL_FATAL(dmg_graph_store_create(channel, &graph, &options, &store), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_store_partition(channel, &store, 0, first, NULL), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_graph_store_partition(channel, &store, DMG_PARTITIONS_MAX + 1, first, NULL), DMG_ERR_ARGUMENT);
    const uint64_t lies[] = {0, graph.arc_count, UINT64_MAX};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        dmg_completion completion = {0};
        dmg_range_array_post_write(channel, &store.tiny_chunks, 5, 1, &lies[i], &completion);
        CU_ASSERT_EQUAL(dmg_wait(channel, &completion), DMG_OK);
        CU_ASSERT_EQUAL(dmg_graph_store_partition(channel, &store, 2, first, NULL), DMG_ERR_CORRUPT);
    }
    free_arrays(&store);
    dmg_graph_close(&graph);
}

static const dmg_test tests[] = {
    DMG_TEST(a_descriptor_survives_the_catalog),
    DMG_TEST(every_broken_field_of_a_descriptor_is_refused),
    DMG_TEST(random_bytes_in_a_descriptor_never_crash_the_check),
    DMG_TEST(options_that_make_no_sense_are_refused),
    DMG_TEST(an_undirected_graph_is_stored_once_for_both_directions),
    DMG_TEST(an_empty_graph_needs_no_memory),
    DMG_TEST(partitioning_again_reads_the_metadata_of_tiny_chunks_and_nothing_else),
    DMG_TEST(metadata_of_tiny_chunks_that_lies_is_refused),
    DMG_TEST(a_store_that_does_not_fit_leaves_no_arrays_behind),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    if (dmg_suite_add("store_descriptor", set_up, tear_down, tests) != 0) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
