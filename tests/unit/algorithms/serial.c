/* The serial verifiers on graphs whose answers can be seen. */
#include "unit/support/suite.h"

#include "algorithms/serial.h"
#include "formats/graph_builder.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef struct line {
    uint64_t source, destination;
    double weight;
} line;

/** External ids are the vertices here, since all ids from 0 on occur. */
static dmg_graph make_graph(const line *lines, size_t count, bool is_directed, bool is_weighted)
{
    const dmg_builder_options options = {.is_directed = is_directed, .is_weighted = is_weighted};
    dmg_graph_builder *builder = NULL;
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_create(&options, &builder), DMG_OK);
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_add(builder, lines[i].source, lines[i].destination, lines[i].weight),
                              DMG_OK);
    }
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_finish(builder, &graph, NULL), DMG_OK);
    dmg_graph_builder_destroy(builder);
    return graph;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/*  0 -> 4 -> 1, 0 -> 3 -> 1, 0 -> 3 twice, 1 -> 2, 2 -> 2; 5 -> 0 */
static const line diamond[] = {{0, 4, 1}, {4, 1, 1}, {0, 3, 5}, {0, 3, 2}, {3, 1, 7}, {1, 2, 0}, {2, 2, 3}, {5, 0, 1}};

static void bfs_takes_the_smallest_parent(void)
{
    dmg_graph graph = make_graph(diamond, COUNT(diamond), true, false);
    uint64_t value[6];
    CU_ASSERT_EQUAL(dmg_serial_bfs(&graph, &(dmg_algorithm_options){.source = 0}, value), DMG_OK);
    CU_ASSERT_EQUAL(value[0], 0);
    CU_ASSERT_EQUAL(value[4], UINT64_C(1) << 32);
    CU_ASSERT_EQUAL(value[3], UINT64_C(1) << 32);
    CU_ASSERT_EQUAL(value[1], UINT64_C(2) << 32 | 3);
    CU_ASSERT_EQUAL(value[2], UINT64_C(3) << 32 | 1);
    CU_ASSERT_EQUAL(value[5], DMG_BFS_UNREACHED);
    dmg_graph_close(&graph);
}

static void bfs_from_nowhere_reaches_nothing(void)
{
    dmg_graph graph = make_graph(diamond, COUNT(diamond), true, false);
    uint64_t value[6];
    CU_ASSERT_EQUAL(dmg_serial_bfs(&graph, &(dmg_algorithm_options){.source = DMG_NO_VERTEX}, value), DMG_OK);
    for (int vertex = 0; vertex < 6; vertex++) {
        CU_ASSERT_EQUAL(value[vertex], DMG_BFS_UNREACHED);
    }
    dmg_graph_close(&graph);
}

static void components_are_weak_and_named_by_their_smallest(void)
{
    static const line lines[] = {{5, 0, 1}, {3, 5, 1}, {4, 1, 1}, {2, 2, 1}, {6, 1, 1}};
    static const uint32_t wanted[] = {0, 1, 2, 0, 1, 0, 1};
    dmg_graph graph = make_graph(lines, COUNT(lines), true, false);
    uint32_t label[7];
    CU_ASSERT_EQUAL(dmg_serial_cc(&graph, &(dmg_algorithm_options){0}, label), DMG_OK);
    CU_ASSERT_EQUAL(memcmp(label, wanted, sizeof wanted), 0);
    dmg_graph_close(&graph);
}

static const dmg_algorithm_options plain = {.tolerance = -1, .damping = -1};

static void ranks_of_a_ring_are_equal(void)
{
    static const line lines[] = {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {3, 0, 1}};
    dmg_graph graph = make_graph(lines, COUNT(lines), true, false);
    double rank[4];
    CU_ASSERT_EQUAL(dmg_serial_pagerank(&graph, &plain, rank), DMG_OK);
    for (int vertex = 0; vertex < 4; vertex++) {
        CU_ASSERT_DOUBLE_EQUAL(rank[vertex], 0.25, 1e-12);
    }
    dmg_graph_close(&graph);
}

static void dangling_mass_is_spread_evenly(void)
{
    /* 0 -> 1, and 1 dangles: x0 = 0.15/2 + 0.85 x1/2 and x0 + x1 = 1, so x0 = 0.5 / 1.425. */
    static const line lines[] = {{0, 1, 1}};
    dmg_graph graph = make_graph(lines, COUNT(lines), true, false);
    double rank[2];
    CU_ASSERT_EQUAL(dmg_serial_pagerank(&graph, &plain, rank), DMG_OK);
    CU_ASSERT_DOUBLE_EQUAL(rank[0], 0.5 / 1.425, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(rank[0] + rank[1], 1, 1e-12);
    dmg_graph_close(&graph);
}

static void repeats_count_and_iterations_are_exact(void)
{
    /* One iteration from 1/3: vertex 0 sends two thirds of its rank along the repeated arc. */
    static const line lines[] = {{0, 1, 1}, {0, 1, 1}, {0, 2, 1}, {1, 0, 1}, {2, 0, 1}};
    dmg_graph graph = make_graph(lines, COUNT(lines), true, false);
    double rank[3];
    const dmg_algorithm_options once = {.iterations_max = 1, .tolerance = -1, .damping = 0.5};
    CU_ASSERT_EQUAL(dmg_serial_pagerank(&graph, &once, rank), DMG_OK);
    CU_ASSERT_DOUBLE_EQUAL(rank[1], 0.5 / 3 + 0.5 * (1.0 / 3) * (2.0 / 3), 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(rank[2], 0.5 / 3 + 0.5 * (1.0 / 3) * (1.0 / 3), 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(rank[0], 0.5 / 3 + 0.5 * (2.0 / 3), 1e-15);
    dmg_graph_close(&graph);
}

static void a_number_of_iterations_switches_the_tolerance_off(void)
{
    dmg_pagerank_settings settings = dmg_pagerank_settings_from(&plain);
    CU_ASSERT_EQUAL(settings.damping, 0.85);
    CU_ASSERT_EQUAL(settings.tolerance, 1e-9);
    CU_ASSERT_EQUAL(settings.iterations_max, 1000);
    settings =
        dmg_pagerank_settings_from(&(dmg_algorithm_options){.iterations_max = 7, .tolerance = -1, .damping = -1});
    CU_ASSERT_EQUAL(settings.tolerance, 0);
    CU_ASSERT_EQUAL(settings.iterations_max, 7);
    settings =
        dmg_pagerank_settings_from(&(dmg_algorithm_options){.iterations_max = 7, .tolerance = 0.5, .damping = 0});
    CU_ASSERT_EQUAL(settings.tolerance, 0.5);
    CU_ASSERT_EQUAL(settings.damping, 0);
}

static void distances_take_the_cheapest_of_repeated_arcs(void)
{
    dmg_graph graph = make_graph(diamond, COUNT(diamond), true, true);
    static const double wanted[] = {0, 2, 2, 2, 1};
    double distance[6];
    CU_ASSERT_EQUAL(dmg_serial_sssp(&graph, &(dmg_algorithm_options){.source = 0}, distance), DMG_OK);
    for (int vertex = 0; vertex < 5; vertex++) {
        CU_ASSERT_EQUAL(distance[vertex], wanted[vertex]);
    }
    CU_ASSERT(isinf(distance[5]));
    dmg_graph_close(&graph);
}

static void float_weights_and_missing_weights_count(void)
{
    static const line lines[] = {{0, 1, 0.5}, {1, 2, 0.25}};
    double distance[3];
    dmg_graph graph = make_graph(lines, COUNT(lines), false, true);
    CU_ASSERT_EQUAL(dmg_serial_sssp(&graph, &(dmg_algorithm_options){.source = 2}, distance), DMG_OK);
    CU_ASSERT_EQUAL(distance[0], 0.75);
    dmg_graph_close(&graph);
    graph = make_graph(lines, COUNT(lines), false, false);
    CU_ASSERT_EQUAL(dmg_serial_sssp(&graph, &(dmg_algorithm_options){.source = 2}, distance), DMG_OK);
    CU_ASSERT_EQUAL(distance[0], 2);
    dmg_graph_close(&graph);
}

static void a_heap_of_many_entries_stays_in_order(void)
{
    /* A path with ever costlier shortcuts from its start: the distance along the path is the smallest. */
    enum { VERTICES = 3000 };
    const dmg_builder_options options = {.is_directed = true, .is_weighted = true};
    dmg_graph_builder *builder = NULL;
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_create(&options, &builder), DMG_OK);
    for (uint64_t vertex = 1; vertex < VERTICES; vertex++) {
        CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, vertex - 1, vertex, 1), DMG_OK);
        CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, 0, vertex, (double)(2 * vertex)), DMG_OK);
    }
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_finish(builder, &graph, NULL), DMG_OK);
    dmg_graph_builder_destroy(builder);
    static double distance[VERTICES];
    CU_ASSERT_EQUAL(dmg_serial_sssp(&graph, &(dmg_algorithm_options){.source = 0}, distance), DMG_OK);
    bool is_right = true;
    for (int vertex = 0; vertex < VERTICES; vertex++) {
        is_right = is_right && distance[vertex] == vertex;
    }
    CU_ASSERT(is_right);
    dmg_graph_close(&graph);
}

static void an_empty_graph_has_no_answers(void)
{
    dmg_graph graph = make_graph(NULL, 0, true, false);
    dmg_algorithm_options options = {.source = DMG_NO_VERTEX, .tolerance = -1, .damping = -1};
    uint64_t nothing = 17;
    CU_ASSERT_EQUAL(dmg_serial_bfs(&graph, &options, &nothing), DMG_OK);
    CU_ASSERT_EQUAL(dmg_serial_cc(&graph, &options, &nothing), DMG_OK);
    CU_ASSERT_EQUAL(dmg_serial_pagerank(&graph, &options, &nothing), DMG_OK);
    CU_ASSERT_EQUAL(dmg_serial_sssp(&graph, &options, &nothing), DMG_OK);
    CU_ASSERT_EQUAL(nothing, 17);
    dmg_graph_close(&graph);
}

static void comparing_names_the_first_difference(void)
{
    dmg_graph graph = make_graph(diamond, COUNT(diamond), true, false);
    uint64_t words[6] = {1, 2, 3, 4, 5, 6};
    uint64_t other_words[6] = {1, 2, 3, 9, 5, 7};
    CU_ASSERT_EQUAL(dmg_compare_uint64(&graph, words, words), DMG_OK);
    CU_ASSERT_EQUAL(dmg_compare_uint64(&graph, words, other_words), DMG_ERR_VERIFY);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "vertex 3 "));
    uint32_t labels[6] = {0};
    uint32_t other_labels[6] = {0, 0, 0, 0, 0, 1};
    CU_ASSERT_EQUAL(dmg_compare_uint32(&graph, labels, labels), DMG_OK);
    CU_ASSERT_EQUAL(dmg_compare_uint32(&graph, labels, other_labels), DMG_ERR_VERIFY);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "vertex 5 "));
    dmg_graph_close(&graph);
}

static void floats_may_differ_by_a_millionth(void)
{
    dmg_graph graph = make_graph(diamond, COUNT(diamond), true, false);
    double values[6] = {1, 0, INFINITY, 1e9, 1e-9, 5};
    double close[6] = {1 + 5e-7, 0, INFINITY, 1e9 + 500, 1e-9, 5};
    double far[6] = {1, 0, INFINITY, 1e9, 1.01e-9, 5};
    double unreached[6] = {1, 0, 7, 1e9, 1e-9, 5};
    double broken[6] = {1, 0, INFINITY, 1e9, 1e-9, NAN};
    CU_ASSERT_EQUAL(dmg_compare_double(&graph, values, close), DMG_OK);
    CU_ASSERT_EQUAL(dmg_compare_double(&graph, values, far), DMG_ERR_VERIFY);
    CU_ASSERT_EQUAL(dmg_compare_double(&graph, values, unreached), DMG_ERR_VERIFY);
    CU_ASSERT_EQUAL(dmg_compare_double(&graph, broken, values), DMG_ERR_VERIFY);
    dmg_graph_close(&graph);
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {DMG_TEST(bfs_takes_the_smallest_parent),
                                     DMG_TEST(bfs_from_nowhere_reaches_nothing),
                                     DMG_TEST(components_are_weak_and_named_by_their_smallest),
                                     DMG_TEST(ranks_of_a_ring_are_equal),
                                     DMG_TEST(dangling_mass_is_spread_evenly),
                                     DMG_TEST(repeats_count_and_iterations_are_exact),
                                     DMG_TEST(a_number_of_iterations_switches_the_tolerance_off),
                                     DMG_TEST(distances_take_the_cheapest_of_repeated_arcs),
                                     DMG_TEST(float_weights_and_missing_weights_count),
                                     DMG_TEST(a_heap_of_many_entries_stays_in_order),
                                     DMG_TEST(an_empty_graph_has_no_answers),
                                     DMG_TEST(comparing_names_the_first_difference),
                                     DMG_TEST(floats_may_differ_by_a_millionth),
                                     {NULL, NULL}};
    if (dmg_suite_add("serial", NULL, NULL, tests) != 0) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
