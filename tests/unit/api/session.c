/*
 * Sessions over every dmg_session_transport(): answers on graphs whose answers are known, ids, loading again, and what
 * goes wrong.
 */
#include "unit/api/session_support.h"

#include "algorithms/algorithm.h"
#include "formats/graph_reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static dmg_session_options small_options(void)
{
    return (dmg_session_options){
        .transport = dmg_session_transport(), .memory_nodes = 2, .memory_bytes = DMG_TEST_MEMORY_BYTES, .threads = 2};
}

static dmg_session *open_session(void)
{
    const dmg_session_options options = small_options();
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    return session;
}

static dmg_session *open_with(const char *text, const dmg_load_options *options)
{
    dmg_session *session = open_session();
    dmg_scratch_file file = dmg_file_with(text);
    EXPECT(DMG_OK, dmg_session_load(session, file.path, options));
    dmg_remove_file(&file);
    return session;
}

/* ---- answers ---- */

static void bfs_gives_depths_and_parents(void)
{
    dmg_session *session = open_with(dmg_test_small_graph, NULL);
    const dmg_run_parameters parameters = {.has_source = true, .source = 10};
    dmg_answer answer;
    EXPECT(DMG_OK, dmg_session_run(session, "bfs", &parameters, &answer));
    CU_ASSERT_EQUAL(answer.value_bytes, sizeof(uint64_t));
    CU_ASSERT_EQUAL(answer.source, 10);
    CU_ASSERT_TRUE(answer.iterations >= 2);
    uint64_t values[DMG_TEST_SMALL_VERTICES];
    EXPECT(DMG_OK, dmg_session_values(session, 0, DMG_TEST_SMALL_VERTICES, sizeof *values, values));
    static const uint32_t depths[] = {0, 1, 1, 2};
    static const uint32_t parents[] = {0, 0, 0, 2};
    for (int vertex = 0; vertex < 4; vertex++) {
        CU_ASSERT_EQUAL(dmg_bfs_depth(values[vertex]), depths[vertex]);
        CU_ASSERT_EQUAL(dmg_bfs_parent(values[vertex]), parents[vertex]);
    }
    CU_ASSERT_EQUAL(values[4], DMG_BFS_UNREACHED);
    CU_ASSERT_EQUAL(values[5], DMG_BFS_UNREACHED);
    dmg_session_close(session);
}

static void cc_gives_the_smallest_vertex_of_each_component(void)
{
    dmg_session *session = open_with(dmg_test_small_graph, NULL);
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    uint32_t values[DMG_TEST_SMALL_VERTICES];
    EXPECT(DMG_OK, dmg_session_values(session, 0, DMG_TEST_SMALL_VERTICES, sizeof *values, values));
    static const uint32_t components[DMG_TEST_SMALL_VERTICES] = {0, 0, 0, 0, 4, 4};
    CU_ASSERT_EQUAL(memcmp(values, components, sizeof values), 0);
    dmg_session_close(session);
}

static void sssp_gives_distances(void)
{
    dmg_session *session = open_with(dmg_test_small_graph, NULL);
    double values[DMG_TEST_SMALL_VERTICES];
    const dmg_run_parameters parameters = {.has_source = true, .source = 10};
    EXPECT(DMG_OK, dmg_session_run(session, "sssp", &parameters, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 0, DMG_TEST_SMALL_VERTICES, sizeof *values, values));
    CU_ASSERT_EQUAL(values[0], 0);
    CU_ASSERT_EQUAL(values[1], 1);
    CU_ASSERT_EQUAL(values[2], 3);
    CU_ASSERT_EQUAL(values[3], 4);
    CU_ASSERT_TRUE(isinf(values[4]) && isinf(values[5]));
    dmg_session_close(session);
}

static void without_weights_sssp_counts_arcs(void)
{
    const dmg_load_options options = {.ignore_weights = true, .out_lists_only = true};
    dmg_session *session = open_with(dmg_test_small_graph, &options);
    double value;
    const dmg_run_parameters parameters = {.has_source = true, .source = 10};
    EXPECT(DMG_OK, dmg_session_run(session, "sssp", &parameters, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 3, 1, sizeof value, &value));
    CU_ASSERT_EQUAL(value, 2);
    dmg_session_close(session);
}

/* Of two vertices with one arc, the first has rank 1 / (2 + d): its rank is (1-d)/2 + d*x/2, x being the rank of the
 * other. */
static void pagerank_gives_ranks_and_takes_its_parameters(void)
{
    dmg_session *session = open_with("1 2\n", NULL);
    dmg_answer answer;
    EXPECT(DMG_OK, dmg_session_run(session, "pagerank", NULL, &answer));
    CU_ASSERT_TRUE(answer.residual < 1e-9);
    double ranks[2];
    EXPECT(DMG_OK, dmg_session_values(session, 0, 2, sizeof *ranks, ranks));
    CU_ASSERT_DOUBLE_EQUAL(ranks[0], 1 / 2.85, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(ranks[0] + ranks[1], 1, 1e-6);

    const dmg_run_parameters damped = {.damping = 0.5, .tolerance = 1e-12};
    EXPECT(DMG_OK, dmg_session_run(session, "pagerank", &damped, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 0, 1, sizeof *ranks, ranks));
    CU_ASSERT_DOUBLE_EQUAL(ranks[0], 1 / 2.5, 1e-9);

    const dmg_run_parameters counted = {.iterations_max = 3};
    EXPECT(DMG_OK, dmg_session_run(session, "pagerank", &counted, &answer));
    CU_ASSERT_EQUAL(answer.iterations, 3);
    dmg_session_close(session);
}

static void edges_can_be_undirected(void)
{
    const dmg_load_options options = {.direction = DMG_LOAD_UNDIRECTED};
    dmg_session *session = open_with(dmg_test_small_graph, &options);
    CU_ASSERT_EQUAL(dmg_session_arc_count(session), 10);
    uint64_t value;
    const dmg_run_parameters parameters = {.has_source = true, .source = 40};
    EXPECT(DMG_OK, dmg_session_run(session, "bfs", &parameters, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 0, 1, sizeof value, &value));
    CU_ASSERT_EQUAL(dmg_bfs_depth(value), 2);
    dmg_session_close(session);
}

static void repeats_and_loops_can_be_dropped(void)
{
    const dmg_load_options options = {.drop_repeats = true, .drop_loops = true};
    dmg_session *session = open_with("1 2\n1 2\n2 2\n", &options);
    CU_ASSERT_EQUAL(dmg_session_arc_count(session), 1);
    dmg_session_close(session);
}

static void a_run_without_a_source_starts_at_the_first_vertex_with_an_arc(void)
{
    dmg_session *session = open_with("9 3\n5 3\n", NULL);
    dmg_answer answer;
    EXPECT(DMG_OK, dmg_session_run(session, "bfs", NULL, &answer));
    CU_ASSERT_EQUAL(answer.source, 5);
    dmg_session_close(session);
}

static void an_empty_graph_has_empty_answers(void)
{
    dmg_session *session = open_with("# nothing\n", NULL);
    CU_ASSERT_EQUAL(dmg_session_vertex_count(session), 0);
    for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm; algorithm++) {
        EXPECT(DMG_OK, dmg_session_run(session, (*algorithm)->name, NULL, NULL));
        EXPECT(DMG_OK, dmg_session_values(session, 0, 0, (*algorithm)->value_bytes, NULL));
    }
    uint64_t vertex;
    EXPECT_ERROR(DMG_ERR_NOT_FOUND, "id 1", dmg_session_find(session, 1, &vertex));
    dmg_session_close(session);
}

/* ---- ids ---- */

static void ids_with_gaps_are_found_and_given_back(void)
{
    dmg_scratch_file file = dmg_random_file(dmg_test_seed());
    dmg_graph graph;
    EXPECT(DMG_OK, dmg_graph_read(file.path, NULL, &graph, NULL));
    dmg_session *session = open_session();
    EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
    uint64_t count = dmg_session_vertex_count(session);
    CU_ASSERT_EQUAL_FATAL(count, graph.vertex_count);
    CU_ASSERT_EQUAL(dmg_session_arc_count(session), graph.arc_count);
    uint64_t *ids = calloc(count, sizeof *ids);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ids);
    EXPECT(DMG_OK, dmg_session_ids(session, 0, count, ids));
    uint64_t wrong = 0;
    for (uint64_t vertex = 0; vertex < count; vertex++) {
        uint64_t found = UINT64_MAX;
        wrong += ids[vertex] != dmg_graph_id(&graph, (uint32_t)vertex);
        wrong += dmg_session_find(session, ids[vertex], &found) != DMG_OK || found != vertex;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    uint64_t vertex = 77;
    EXPECT_ERROR(DMG_ERR_NOT_FOUND, "id 1", dmg_session_find(session, 1, &vertex));
    EXPECT_ERROR(DMG_ERR_NOT_FOUND, "", dmg_session_find(session, UINT64_MAX, &vertex));
    CU_ASSERT_EQUAL(vertex, 77);
    free(ids);
    dmg_session_close(session);
    dmg_graph_close(&graph);
    dmg_remove_file(&file);
}

static void ids_without_gaps_are_found_and_given_back(void)
{
    dmg_session *session = open_with("5 6\n6 7\n", NULL);
    uint64_t ids[2];
    uint64_t vertex;
    EXPECT(DMG_OK, dmg_session_ids(session, 1, 2, ids));
    CU_ASSERT_EQUAL(ids[0], 6);
    CU_ASSERT_EQUAL(ids[1], 7);
    EXPECT(DMG_OK, dmg_session_find(session, 7, &vertex));
    CU_ASSERT_EQUAL(vertex, 2);
    EXPECT(DMG_ERR_NOT_FOUND, dmg_session_find(session, 8, &vertex));
    EXPECT(DMG_ERR_NOT_FOUND, dmg_session_find(session, 4, &vertex));
    dmg_session_close(session);
}

/* ---- one graph at a time ---- */

static void loading_again_replaces_the_graph(void)
{
    dmg_session *session = open_with(dmg_test_small_graph, NULL);
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    dmg_scratch_file file = dmg_file_with("1 2\n");
    EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
    CU_ASSERT_EQUAL(dmg_session_vertex_count(session), 2);
    uint32_t value;
    static const struct {
        const char *algorithm;
        const char *name;
        dmg_run_parameters parameters;
    } of_others[] = {{"cc", "source", {.has_source = true, .source = 10}},
                     {"pagerank", "source", {.has_source = true, .source = 10}},
                     {"bfs", "iterations_max", {.iterations_max = 1}},
                     {"sssp", "tolerance", {.tolerance = 1e-3}},
                     {"cc", "damping", {.damping = 0.5}}};
    for (size_t i = 0; i < sizeof of_others / sizeof *of_others; i++) {
        EXPECT_ERROR(DMG_ERR_ARGUMENT, of_others[i].name,
                     dmg_session_run(session, of_others[i].algorithm, &of_others[i].parameters, NULL));
    }
    EXPECT_ERROR(DMG_ERR_ARGUMENT, "run an algorithm first", dmg_session_values(session, 0, 1, sizeof value, &value));
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 1, 1, sizeof value, &value));
    CU_ASSERT_EQUAL(value, 0);
    EXPECT(DMG_ERR_IO, dmg_session_load(session, "/nonexistent/graph", NULL));
    CU_ASSERT_EQUAL(dmg_session_vertex_count(session), 0);
    EXPECT_ERROR(DMG_ERR_ARGUMENT, "load one first", dmg_session_run(session, "cc", NULL, NULL));
    dmg_remove_file(&file);
    dmg_session_close(session);
}

/* 100 runs and 20 loads of what takes about 1 MiB, in 16 MiB. */
static void many_runs_and_loads_fit_where_one_does(void)
{
    dmg_scratch_file file = dmg_random_file(5);
    const dmg_session_options options = {
        .transport = dmg_session_transport(), .memory_bytes = UINT64_C(16) << 20, .threads = 1};
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    for (int load = 0; load < 20; load++) {
        EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
        for (int run = 0; run < 5; run++) {
            const dmg_run_parameters parameters = {.iterations_max = 1};
            EXPECT(DMG_OK, dmg_session_run(session, "pagerank", &parameters, NULL));
        }
    }
    dmg_session_close(session);
    dmg_remove_file(&file);
}

/* ---- errors ---- */

static void a_file_that_does_not_exist_is_named(void)
{
    dmg_session *session = open_session();
    EXPECT_ERROR(DMG_ERR_IO, "/nonexistent/graph.txt", dmg_session_load(session, "/nonexistent/graph.txt", NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_load(session, NULL, NULL));
    dmg_session_close(session);
}

static void a_malformed_file_is_refused_with_its_line(void)
{
    dmg_session *session = open_session();
    dmg_scratch_file file = dmg_file_with("1 2\n3 x\n");
    EXPECT_ERROR(DMG_ERR_FORMAT, ":2:", dmg_session_load(session, file.path, NULL));
    dmg_remove_file(&file);
    dmg_session_close(session);
}

static void wrong_requests_are_refused_and_leave_the_session_usable(void)
{
    dmg_session *session = open_with(dmg_test_small_graph, NULL);
    uint64_t values[DMG_TEST_SMALL_VERTICES];
    EXPECT_ERROR(DMG_ERR_NOT_FOUND, "no algorithm 'dijkstra'; there are bfs, cc",
                 dmg_session_run(session, "dijkstra", NULL, NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_run(session, NULL, NULL, NULL));
    const dmg_run_parameters nowhere = {.has_source = true, .source = 11};
    EXPECT_ERROR(DMG_ERR_NOT_FOUND, "id 11", dmg_session_run(session, "bfs", &nowhere, NULL));
    static const dmg_run_parameters senseless[] = {{.damping = 1},    {.damping = -0.1},  {.damping = NAN},
                                                   {.tolerance = -1}, {.tolerance = NAN}, {.tolerance = INFINITY}};
    for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++) {
        EXPECT(DMG_ERR_ARGUMENT, dmg_session_run(session, "pagerank", &senseless[i], NULL));
    }
    EXPECT_ERROR(DMG_ERR_ARGUMENT, "run an algorithm first", dmg_session_values(session, 0, 1, 8, values));
    EXPECT(DMG_OK, dmg_session_run(session, "bfs", NULL, NULL));
    EXPECT_ERROR(DMG_ERR_ARGUMENT, "8 bytes", dmg_session_values(session, 0, 1, 4, values));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_values(session, 0, DMG_TEST_SMALL_VERTICES + 1, 8, values));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_values(session, 2, UINT64_MAX, 8, values));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_values(session, UINT64_MAX, 2, 8, values));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_values(session, 0, 1, 8, NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_ids(session, DMG_TEST_SMALL_VERTICES, 1, values));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_ids(session, 0, 1, NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_find(session, 10, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 0, DMG_TEST_SMALL_VERTICES, 8, values));
    CU_ASSERT_EQUAL(dmg_bfs_depth(values[3]), 2);
    dmg_session_close(session);
}

static void cc_needs_both_directions_of_a_directed_graph(void)
{
    dmg_load_options options = {.out_lists_only = true};
    dmg_session *session = open_with(dmg_test_small_graph, &options);
    EXPECT_ERROR(DMG_ERR_ARGUMENT, "out_lists_only", dmg_session_run(session, "cc", NULL, NULL));
    EXPECT(DMG_OK, dmg_session_run(session, "pagerank", NULL, NULL));
    dmg_session_close(session);
    options.direction = DMG_LOAD_UNDIRECTED;
    session = open_with(dmg_test_small_graph, &options);
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    dmg_session_close(session);
}

static void sssp_refuses_negative_weights_and_names_the_line(void)
{
    dmg_session *session = open_with("1 2 3\n2 3 -4\n", NULL);
    EXPECT_ERROR(DMG_ERR_FORMAT, ":2: negative weight", dmg_session_run(session, "sssp", NULL, NULL));
    EXPECT(DMG_OK, dmg_session_run(session, "bfs", NULL, NULL));
    dmg_session_close(session);
}

static void a_pool_that_is_too_small_is_an_error_of_memory(void)
{
    size_t capacity = 2000000;
    char *text = malloc(capacity);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    size_t used = 0;
    for (int arc = 0; arc < 60000; arc++) {
        used += (size_t)snprintf(text + used, capacity - used, "%d %d\n", arc, arc + 1);
    }
    dmg_scratch_file file = dmg_file_with(text);
    free(text);
    const dmg_session_options options = {
        .transport = dmg_session_transport(), .memory_bytes = UINT64_C(2) << 20, .threads = 1};
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    EXPECT_ERROR(DMG_ERR_MEMORY, "(memory_bytes)", dmg_session_load(session, file.path, NULL));
    dmg_remove_file(&file);
    file = dmg_file_with("1 2\n");
    EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    dmg_remove_file(&file);
    dmg_session_close(session);
}

static void a_cache_that_is_too_small_is_an_error_of_limits(void)
{
    dmg_session_options options = small_options();
    options.cache_bytes = 1000;
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    dmg_scratch_file file = dmg_file_with(dmg_test_small_graph);
    EXPECT(DMG_ERR_LIMIT, dmg_session_load(session, file.path, NULL));
    dmg_remove_file(&file);
    dmg_session_close(session);
}

static void options_that_make_no_sense_are_refused(void)
{
    static const char *const addresses[] = {"somewhere", NULL};
    const struct {
        dmg_session_options options;
        dmg_status status;
    } cases[] = {
        {{.transport = "carrier-pigeon"}, DMG_ERR_ARGUMENT},
        {{.transport = ""}, DMG_ERR_ARGUMENT},
        {{.memory_nodes = DMG_SESSION_MEMORY_NODES_MAX + 1}, DMG_ERR_LIMIT},
        {{.memory_bytes = UINT64_MAX}, DMG_ERR_ARGUMENT},
        {{.rank = 1}, DMG_ERR_ARGUMENT},
        {{.rank = 2, .size = 2}, DMG_ERR_ARGUMENT},
        {{.size = 65}, DMG_ERR_LIMIT},
        {{.threads = 65}, DMG_ERR_LIMIT},
        {{.name = ""}, DMG_ERR_ARGUMENT},
        {{.name = "a name that is longer than thirty-one characters"}, DMG_ERR_ARGUMENT},
        {{.address_count = 1}, DMG_ERR_ARGUMENT},
        {{.addresses = addresses}, DMG_ERR_ARGUMENT},
        {{.addresses = addresses, .address_count = 2}, DMG_ERR_ARGUMENT},
        {{.addresses = addresses, .address_count = 1, .memory_nodes = 1}, DMG_ERR_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dmg_session_options options = cases[i].options;
        options.transport = options.transport ? options.transport : dmg_session_transport();
        dmg_session *session = (dmg_session *)&options;
        dmg_status status = dmg_session_open(&options, &session);
        if (status != cases[i].status) {
            printf("\n    case %zu: %s: %s\n", i, dmg_status_name(status), dmg_error_message());
        }
        CU_ASSERT_EQUAL(status, cases[i].status);
        CU_ASSERT_PTR_NULL(session);
    }
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_open(NULL, NULL));
    dmg_session *session = open_session();
    const dmg_load_options sideways = {.direction = (dmg_load_direction)3};
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_load(session, "/dev/null", &sideways));
    dmg_session_close(session);
}

static void nothing_is_asked_of_no_session(void)
{
    uint64_t number;
    dmg_session_close(NULL);
    CU_ASSERT_PTR_NULL(dmg_session_address(NULL, 0));
    CU_ASSERT_EQUAL(dmg_session_vertex_count(NULL), 0);
    CU_ASSERT_EQUAL(dmg_session_arc_count(NULL), 0);
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_load(NULL, "graph", NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_run(NULL, "bfs", NULL, NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_ids(NULL, 0, 1, &number));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_find(NULL, 0, &number));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_values(NULL, 0, 1, 8, &number));
}

/* ---- all suites ---- */

static const dmg_test tests[] = {
    DMG_TEST(bfs_gives_depths_and_parents),
    DMG_TEST(cc_gives_the_smallest_vertex_of_each_component),
    DMG_TEST(sssp_gives_distances),
    DMG_TEST(without_weights_sssp_counts_arcs),
    DMG_TEST(pagerank_gives_ranks_and_takes_its_parameters),
    DMG_TEST(edges_can_be_undirected),
    DMG_TEST(repeats_and_loops_can_be_dropped),
    DMG_TEST(a_run_without_a_source_starts_at_the_first_vertex_with_an_arc),
    DMG_TEST(an_empty_graph_has_empty_answers),
    DMG_TEST(ids_with_gaps_are_found_and_given_back),
    DMG_TEST(ids_without_gaps_are_found_and_given_back),
    DMG_TEST(loading_again_replaces_the_graph),
    DMG_TEST(many_runs_and_loads_fit_where_one_does),
    DMG_TEST(a_file_that_does_not_exist_is_named),
    DMG_TEST(a_malformed_file_is_refused_with_its_line),
    DMG_TEST(wrong_requests_are_refused_and_leave_the_session_usable),
    DMG_TEST(cc_needs_both_directions_of_a_directed_graph),
    DMG_TEST(sssp_refuses_negative_weights_and_names_the_line),
    DMG_TEST(a_pool_that_is_too_small_is_an_error_of_memory),
    DMG_TEST(a_cache_that_is_too_small_is_an_error_of_limits),
    DMG_TEST(options_that_make_no_sense_are_refused),
    DMG_TEST(nothing_is_asked_of_no_session),
    {NULL, NULL},
};

/* With all defaults: shared memory, one memory node, all cores. */
static void a_session_needs_no_options(void)
{
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(NULL, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    CU_ASSERT_PTR_NOT_NULL(dmg_session_address(session, 0));
    CU_ASSERT_PTR_NULL(dmg_session_address(session, 1));
    dmg_scratch_file file = dmg_file_with(dmg_test_small_graph);
    EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    dmg_remove_file(&file);
    dmg_session_close(session);
}

static const dmg_test default_tests[] = {DMG_TEST(a_session_needs_no_options), {NULL, NULL}};

int main(int argc, char **argv)
{
    if (dmg_session_suites_add("session", tests) || dmg_suite_add("session with defaults", NULL, NULL, default_tests)) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
