/* Graphs that stay in a pool: published, used, listed, unloaded, and read back. */
#include "core/store/graph_catalog.h"
#include "core/store/graph_read.h"

#include "unit/core/store/check.h"
#include "unit/support/pool_fixture.h"
#include "unit/support/random_graph.h"
#include "unit/support/suite.h"

#include <stdio.h>
#include <string.h>

#define SEGMENT_BYTES (UINT64_C(32) << 20)

static const char *transport;
static dmg_test_pool pool;
static dmg_channel *channel;

static void start(uint32_t nodes)
{
    dmg_test_require(dmg_test_pool_start(transport, nodes, SEGMENT_BYTES, &pool));
    dmg_test_require(dmg_channel_open(pool.client, &channel));
}

static void stop(void)
{
    dmg_channel_close(channel);
    dmg_test_pool_stop(&pool);
}

static uint64_t allocated(void)
{
    uint64_t sum = 0;
    for (uint32_t node = 0; node < pool.node_count; node++) {
        uint64_t here = 0, peak, total;
        CU_ASSERT_EQUAL(dmg_pool_usage(channel, (uint16_t)node, &here, &peak, &total), DMG_OK);
        sum += here;
    }
    return sum;
}

static void make_graph(uint64_t vertex_count, bool is_directed, dmg_weight_kind weights, bool has_ids, uint64_t seed,
                       dmg_graph *graph)
{
    dmg_random random = {seed};
    dmg_random_graph_options options = {.vertex_count = vertex_count,
                                        .degree_max = 60,
                                        .is_directed = is_directed,
                                        .weight_kind = weights,
                                        .has_ids = has_ids};
    dmg_random_graph_make(&options, &random, graph);
}

/** Load all of a graph within a job. */
static void load(const dmg_job *job, const dmg_graph *graph, uint32_t partitions, dmg_graph_entry *entry)
{
    dmg_store_options options = {.partition_count = partitions, .with_out = true, .with_in = true, .job = job->id};
    memset(entry, 0, sizeof *entry);
    dmg_test_require(dmg_graph_store_create(channel, graph, &options, &entry->store));
    dmg_test_require(dmg_graph_store_load(channel, &entry->store, job->id, graph, 0, graph->vertex_count, NULL));
    entry->job = job->id;
}

static void publish(const char *name, const dmg_graph *graph)
{
    static uint32_t count;
    char job_name[32];
    dmg_job job;
    dmg_graph_entry entry;
    snprintf(job_name, sizeof job_name, "load/%u", count++);
    dmg_test_require(dmg_job_join(channel, &dmg_test_pass, job_name, 0, 1, &job));
    load(&job, graph, 4, &entry);
    dmg_test_require(dmg_graph_publish(channel, name, &entry));
    dmg_test_require(dmg_job_leave(channel, &job));
}

/* ---- keeping ---- */

static void what_a_job_keeps_outlives_it_and_is_dropped_once(void)
{
    dmg_job job;
    dmg_address address;
    uint64_t bytes = 0;
    uint64_t value = 42;
    size_t size = 0;
    start(2);
    CU_ASSERT_EQUAL(dmg_pool_keep(channel, 99, NULL), DMG_ERR_ARGUMENT); /* not in it */
    CU_ASSERT_EQUAL(dmg_pool_keep(channel, 0, NULL), DMG_ERR_ARGUMENT);
    dmg_test_require(dmg_job_join(channel, &dmg_test_pass, "keeping", 0, 1, &job));
    uint64_t id = job.id;
    dmg_test_require(dmg_pool_allocate(channel, 1, id, 10000, &address));
    dmg_test_require(dmg_catalog_put(channel, id, "its entry", "", 0));
    dmg_test_require(dmg_write(channel, &value, address, sizeof value));
    CU_ASSERT_EQUAL(dmg_pool_keep(channel, id, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(bytes, 12288);
    CU_ASSERT_EQUAL(dmg_pool_keep(channel, id, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_drop(channel, id, NULL), DMG_ERR_EXISTS); /* it runs */
    dmg_test_require(dmg_job_leave(channel, &job));
    CU_ASSERT_EQUAL(dmg_catalog_get(channel, "its entry", NULL, &size), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(allocated(), 12288);
    value = 0;
    dmg_test_require(dmg_read(channel, address, &value, sizeof value));
    CU_ASSERT_EQUAL(value, 42);
    CU_ASSERT_EQUAL(dmg_pool_drop(channel, id, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(bytes, 12288);
    CU_ASSERT_EQUAL(allocated(), 0);
    CU_ASSERT_EQUAL(dmg_pool_drop(channel, id, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(bytes, 0);
    stop();
}

static void a_client_that_is_attached_keeps_a_job_alive(void)
{
    dmg_job job;
    dmg_address address;
    dmg_client *other;
    dmg_channel *other_channel;
    start(2);
    dmg_test_require(dmg_client_open(&pool.options, &other));
    dmg_test_require(dmg_channel_open(other, &other_channel));
    dmg_test_require(dmg_job_join(channel, &dmg_test_pass, "watched", 0, 1, &job));
    uint64_t id = job.id;
    dmg_test_require(dmg_pool_allocate(channel, 1, id, 4096, &address));
    CU_ASSERT_EQUAL(dmg_job_attach(other_channel, id, dmg_test_pass.secret), DMG_OK);
    dmg_test_require(dmg_job_leave(channel, &job));
    CU_ASSERT_EQUAL(allocated(), 4096);
    CU_ASSERT_EQUAL(dmg_job_detach(other_channel, id), DMG_OK);
    CU_ASSERT_EQUAL(allocated(), 0);
    CU_ASSERT_EQUAL(dmg_job_detach(other_channel, id), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_attach(other_channel, 0, dmg_test_pass.secret), DMG_ERR_NOT_FOUND);
    dmg_channel_close(other_channel);
    dmg_client_close(other);
    stop();
}

static void catalog_names_are_listed_by_prefix(void)
{
    static const char *const names[] = {"a", "graph/", "graph/a", "graph/b", "graph0", "h", "graph/aa"};
    static const char *const expected[] = {"graph/", "graph/a", "graph/aa", "graph/b"};
    char name[DMG_CATALOG_NAME_BYTES] = "";
    start(2);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        dmg_test_require(dmg_catalog_put(channel, 0, names[i], "", 0));
    }
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        CU_ASSERT_EQUAL(dmg_catalog_next(channel, "graph/", name), DMG_OK);
        CU_ASSERT_STRING_EQUAL(name, expected[i]);
    }
    CU_ASSERT_EQUAL(dmg_catalog_next(channel, "graph/", name), DMG_OK);
    CU_ASSERT_STRING_EQUAL(name, "");
    CU_ASSERT_EQUAL(dmg_catalog_next(channel, "", name), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_catalog_next(channel, "z", name), DMG_OK);
    CU_ASSERT_STRING_EQUAL(name, "");
    CU_ASSERT_EQUAL(dmg_catalog_remove_unused(channel, "a", "graph/b"), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(dmg_catalog_remove_unused(channel, "a", "graph/c"), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_remove_unused(channel, "a", "graph/c"), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_catalog_remove_unused(channel, "a", ""), DMG_ERR_ARGUMENT);
    stop();
}

/* ---- graphs ---- */

static void only_simple_names_are_taken(void)
{
    static const char *const bad[] = {"", "a/b", "a b", "a\n", "\xc3\xa4", "123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_EQUAL(dmg_graph_name_check(bad[i]), DMG_ERR_ARGUMENT);
    }
    CU_ASSERT_EQUAL(dmg_graph_name_check("Web-2024_a.el"), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_name_check("12345678901234567890123456789012"), DMG_OK);
}

static void graphs_are_found_listed_and_unloaded(void)
{
    dmg_graph graph;
    dmg_graph_entry entry;
    char name[DMG_GRAPH_NAME_BYTES] = "";
    uint64_t bytes = 0;
    start(2);
    make_graph(3000, true, DMG_WEIGHT_NONE, true, 1, &graph);
    publish("second", &graph);
    publish("first", &graph);
    CU_ASSERT_EQUAL(dmg_graph_look_up(channel, "second", &entry), DMG_OK);
    CU_ASSERT_EQUAL(entry.store.arc_count, graph.arc_count);
    dmg_test_store_check(channel, &entry.store, &graph);
    CU_ASSERT_EQUAL(2 * entry.pool_bytes, allocated());
    CU_ASSERT_EQUAL(dmg_graph_look_up(channel, "third", &entry), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_graph_next(channel, name), DMG_OK);
    CU_ASSERT_STRING_EQUAL(name, "first");
    CU_ASSERT_EQUAL(dmg_graph_next(channel, name), DMG_OK);
    CU_ASSERT_STRING_EQUAL(name, "second");
    CU_ASSERT_EQUAL(dmg_graph_next(channel, name), DMG_OK);
    CU_ASSERT_STRING_EQUAL(name, "");
    CU_ASSERT_EQUAL(dmg_graph_unload(channel, "first", &bytes), DMG_OK);
    CU_ASSERT_EQUAL(bytes, allocated());
    CU_ASSERT_EQUAL(dmg_graph_unload(channel, "first", &bytes), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_graph_unload(channel, "second", &bytes), DMG_OK);
    CU_ASSERT_EQUAL(allocated(), 0);
    dmg_graph_close(&graph);
    stop();
}

static void a_graph_that_is_used_is_not_unloaded(void)
{
    dmg_graph graph;
    dmg_graph_entry entry;
    dmg_job job;
    uint64_t bytes;
    start(1);
    make_graph(500, false, DMG_WEIGHT_NONE, false, 2, &graph);
    publish("web", &graph);
    publish("web2", &graph);
    dmg_test_require(dmg_job_join(channel, &dmg_test_pass, "user", 0, 1, &job));
    CU_ASSERT_EQUAL(dmg_graph_use(channel, job.id, "web2", &entry), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_unload(channel, "web2", &bytes), DMG_ERR_EXISTS);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "in use"));
    CU_ASSERT_EQUAL(dmg_graph_unload(channel, "web", &bytes), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_use(channel, job.id, "web", &entry), DMG_ERR_NOT_FOUND);
    dmg_test_require(dmg_job_leave(channel, &job));
    CU_ASSERT_EQUAL(dmg_graph_unload(channel, "web2", &bytes), DMG_OK);
    CU_ASSERT_EQUAL(allocated(), 0);
    dmg_graph_close(&graph);
    stop();
}

static void a_name_is_taken_once(void)
{
    dmg_graph graph;
    dmg_graph_entry entry;
    dmg_job first, second;
    start(1);
    make_graph(500, false, DMG_WEIGHT_NONE, false, 3, &graph);
    dmg_test_require(dmg_job_join(channel, &dmg_test_pass, "first", 0, 1, &first));
    dmg_test_require(dmg_job_join(channel, &dmg_test_pass, "second", 0, 1, &second));
    CU_ASSERT_EQUAL(dmg_graph_reserve(channel, first.id, "web"), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_reserve(channel, second.id, "web"), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(dmg_graph_reserve(channel, second.id, "web2"), DMG_OK);
    load(&first, &graph, 4, &entry);
    CU_ASSERT_EQUAL(dmg_graph_publish(channel, "web", &entry), DMG_OK);
    dmg_test_require(dmg_job_leave(channel, &first));
    CU_ASSERT_EQUAL(dmg_graph_reserve(channel, second.id, "web"), DMG_ERR_EXISTS);
    uint64_t before = allocated();
    load(&second, &graph, 4, &entry);
    CU_ASSERT_EQUAL(dmg_graph_publish(channel, "web", &entry), DMG_ERR_EXISTS);
    dmg_test_require(dmg_job_leave(channel, &second));
    CU_ASSERT_EQUAL(dmg_graph_sweep(channel, NULL), DMG_OK);
    CU_ASSERT_EQUAL(allocated(), before);
    dmg_graph_close(&graph);
    stop();
}

static void what_a_loader_left_is_swept_and_nothing_else(void)
{
    dmg_graph graph;
    dmg_graph_entry entry;
    dmg_job job;
    uint64_t bytes = 1;
    start(3);
    make_graph(5000, true, DMG_WEIGHT_INT32, true, 4, &graph);
    publish("stays", &graph);
    uint64_t stays = allocated();
    /* This loader ends between keeping and publishing. */
    dmg_test_require(dmg_job_join(channel, &dmg_test_pass, "loader", 0, 1, &job));
    uint64_t id = job.id;
    load(&job, &graph, 4, &entry);
    dmg_test_require(dmg_pool_keep(channel, id, NULL));
    CU_ASSERT_EQUAL(dmg_graph_sweep(channel, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(bytes, 0); /* it is still at work */
    dmg_test_require(dmg_job_leave(channel, &job));
    CU_ASSERT_EQUAL(allocated(), 2 * stays);
    CU_ASSERT_EQUAL(dmg_graph_sweep(channel, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(bytes, stays);
    CU_ASSERT_EQUAL(allocated(), stays);
    CU_ASSERT_EQUAL(dmg_graph_look_up(channel, "stays", &entry), DMG_OK);
    dmg_test_store_check(channel, &entry.store, &graph);
    dmg_graph_close(&graph);
    stop();
}

static void entries_that_contradict_themselves_are_found(void)
{
    dmg_graph graph;
    dmg_graph_entry entry;
    start(1);
    make_graph(500, false, DMG_WEIGHT_NONE, false, 5, &graph);
    publish("good", &graph);
    dmg_test_require(dmg_graph_look_up(channel, "good", &entry));
    dmg_test_require(dmg_catalog_put(channel, 0, "graph/short", &entry, sizeof entry - 1));
    dmg_graph_entry bad = entry;
    memset(bad.source, 'x', sizeof bad.source);
    dmg_test_require(dmg_catalog_put(channel, 0, "graph/endless", &bad, sizeof bad));
    bad = entry;
    bad.job = 0;
    dmg_test_require(dmg_catalog_put(channel, 0, "graph/nobody", &bad, sizeof bad));
    bad = entry;
    bad.store.vertex_count++;
    dmg_test_require(dmg_catalog_put(channel, 0, "graph/more", &bad, sizeof bad));
    static const char *const names[] = {"short", "endless", "nobody", "more"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        CU_ASSERT_EQUAL(dmg_graph_look_up(channel, names[i], &bad), DMG_ERR_CORRUPT);
    }
    dmg_graph_close(&graph);
    stop();
}

/* ---- reading back ---- */

static bool same_lists(const dmg_graph *a, const dmg_adjacency *from, const dmg_adjacency *to)
{
    uint64_t arcs = a->arc_count;
    return memcmp(from->offsets, to->offsets, (a->vertex_count + 1) * sizeof(uint64_t)) == 0 &&
           memcmp(from->destinations, to->destinations, arcs * sizeof(uint32_t)) == 0 &&
           (a->weight_kind == DMG_WEIGHT_NONE || memcmp(from->weights, to->weights, arcs * sizeof(dmg_weight)) == 0);
}

static void a_graph_is_read_back_as_it_was(void)
{
    for (uint32_t nodes = 1; nodes <= 3; nodes++) {
        start(nodes);
        for (uint32_t kind = 0; kind < 12; kind++) {
            dmg_graph graph, read;
            dmg_graph_entry entry;
            dmg_job job;
            bool is_directed = kind % 2 == 0;
            make_graph(kind == 11 ? 0 : 700 * kind + 1, is_directed, (dmg_weight_kind)(kind % 3), kind % 4 < 2,
                       kind + 100 * nodes, &graph);
            char name[16];
            snprintf(name, sizeof name, "read/%u", kind);
            dmg_test_require(dmg_job_join(channel, &dmg_test_pass, name, 0, 1, &job));
            load(&job, &graph, kind % 2 ? 16 : 1, &entry);
            dmg_test_require(dmg_graph_store_read(channel, &entry.store, true, &read));
            CU_ASSERT_EQUAL(read.vertex_count, graph.vertex_count);
            CU_ASSERT_EQUAL(read.arc_count, graph.arc_count);
            CU_ASSERT_TRUE(same_lists(&graph, &graph.out, &read.out));
            CU_ASSERT_TRUE(!is_directed || same_lists(&graph, &graph.in, &read.in));
            uint32_t wrong = 0;
            uint64_t first = graph.vertex_count;
            for (uint32_t vertex = (uint32_t)graph.vertex_count; vertex-- > 0;) {
                wrong += dmg_graph_id(&graph, vertex) != dmg_graph_id(&read, vertex);
                first = graph.out.offsets[vertex + 1] > graph.out.offsets[vertex] ? vertex : first;
            }
            CU_ASSERT_EQUAL(wrong, 0);
            uint64_t found = 0;
            CU_ASSERT_EQUAL(dmg_graph_store_first_source(channel, &entry.store, &found), DMG_OK);
            CU_ASSERT_EQUAL(found, first);
            dmg_graph_close(&read);
            dmg_test_require(dmg_graph_store_read(channel, &entry.store, false, &read));
            CU_ASSERT_PTR_NULL(read.out.offsets);
            dmg_graph_close(&read);
            dmg_graph_close(&graph);
            dmg_test_require(dmg_job_leave(channel, &job));
        }
        stop();
    }
}

static void lists_that_contradict_the_descriptor_are_found(void)
{
    dmg_graph graph, read;
    dmg_graph_entry entry;
    dmg_job job;
    start(1);
    make_graph(300, true, DMG_WEIGHT_NONE, true, 9, &graph);
    dmg_test_require(dmg_job_join(channel, &dmg_test_pass, "corrupt", 0, 1, &job));
    load(&job, &graph, 1, &entry);
    dmg_address where = dmg_range_array_address(&entry.store.out_index, 17);
    uint8_t good[DMG_INDEX_ENTRY_BYTES_DEFAULT];
    dmg_test_require(dmg_read(channel, where, good, sizeof good));
    for (uint32_t degree = 0; degree < 2; degree++) {
        /* Fewer or far more arcs than there are. */
        uint8_t bad[DMG_INDEX_ENTRY_BYTES_DEFAULT] = {0};
        uint32_t value = degree ? UINT32_MAX : 0;
        memcpy(bad, &value, sizeof value);
        dmg_test_require(dmg_write(channel, bad, where, sizeof bad));
        CU_ASSERT_EQUAL(dmg_graph_store_read(channel, &entry.store, true, &read), DMG_ERR_CORRUPT);
        CU_ASSERT_PTR_NULL(read.owner);
    }
    dmg_test_require(dmg_write(channel, good, where, sizeof good));
    uint64_t ids[2] = {7, 7};
    dmg_test_require(dmg_write(channel, ids, dmg_range_array_address(&entry.store.ids, 0), sizeof ids));
    CU_ASSERT_EQUAL(dmg_graph_store_read(channel, &entry.store, false, &read), DMG_ERR_CORRUPT);
    dmg_graph_close(&graph);
    dmg_test_require(dmg_job_leave(channel, &job));
    stop();
}

static int use_cxl_shm(void)
{
    transport = "cxl_shm";
    return 0;
}

static int use_ucx(void)
{
    transport = "ucx";
    return 0;
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(what_a_job_keeps_outlives_it_and_is_dropped_once),
        DMG_TEST(a_client_that_is_attached_keeps_a_job_alive),
        DMG_TEST(catalog_names_are_listed_by_prefix),
        DMG_TEST(only_simple_names_are_taken),
        DMG_TEST(graphs_are_found_listed_and_unloaded),
        DMG_TEST(a_graph_that_is_used_is_not_unloaded),
        DMG_TEST(a_name_is_taken_once),
        DMG_TEST(what_a_loader_left_is_swept_and_nothing_else),
        DMG_TEST(entries_that_contradict_themselves_are_found),
        DMG_TEST(a_graph_is_read_back_as_it_was),
        DMG_TEST(lists_that_contradict_the_descriptor_are_found),
        {NULL, NULL},
    };
    return dmg_suite_add("cxl_shm", use_cxl_shm, NULL, tests) || dmg_suite_add("ucx", use_ucx, NULL, tests)
               ? 1
               : dmg_suites_run(argc, argv);
}
