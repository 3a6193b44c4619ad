/* The builder against a naive one on random edges, and the Kronecker generator. */
#include "formats/graph_builder.h"
#include "formats/kronecker.h"
#include "unit/formats/support.h"
#include "unit/support/random.h"
#include "unit/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct arc {
    uint64_t source;
    uint64_t destination;
    double weight;
} arc;

static int compare_arcs(const void *left, const void *right)
{
    const arc *a = left;
    const arc *b = right;
    if (a->source != b->source) {
        return a->source < b->source ? -1 : 1;
    }
    if (a->destination != b->destination) {
        return a->destination < b->destination ? -1 : 1;
    }
    return (a->weight > b->weight) - (a->weight < b->weight);
}

static int compare_ids(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/** What the builder must make, by sorting everything. */
typedef struct naive {
    uint64_t *ids;
    uint64_t id_count;
    arc *arcs;
    uint64_t arc_count;
    uint64_t loops;
    uint64_t repeats;
} naive;

static naive build_naively(const arc *edges, uint64_t count, const dmg_builder_options *options)
{
    naive made = {.ids = malloc((2 * count + 1) * sizeof(uint64_t)), .arcs = malloc((2 * count + 1) * sizeof(arc))};
    CU_ASSERT_PTR_NOT_NULL_FATAL(made.ids);
    CU_ASSERT_PTR_NOT_NULL_FATAL(made.arcs);
    for (uint64_t i = 0; i < count; i++) {
        made.ids[2 * i] = edges[i].source;
        made.ids[2 * i + 1] = edges[i].destination;
        bool is_loop = edges[i].source == edges[i].destination;
        if (is_loop && options->drop_loops) {
            continue;
        }
        made.arcs[made.arc_count++] = edges[i];
        if (!options->is_directed && !is_loop) {
            made.arcs[made.arc_count++] = (arc){edges[i].destination, edges[i].source, edges[i].weight};
        }
    }
    qsort(made.ids, 2 * count, sizeof(uint64_t), compare_ids);
    for (uint64_t i = 0; i < 2 * count; i++) {
        if (i == 0 || made.ids[i] != made.ids[i - 1]) {
            made.ids[made.id_count++] = made.ids[i];
        }
    }
    qsort(made.arcs, made.arc_count, sizeof(arc), compare_arcs);
    uint64_t kept = 0;
    for (uint64_t i = 0; i < made.arc_count; i++) {
        bool is_repeat = kept > 0 && made.arcs[kept - 1].source == made.arcs[i].source &&
                         made.arcs[kept - 1].destination == made.arcs[i].destination;
        if (is_repeat && options->drop_repeats) {
            continue;
        }
        made.repeats += is_repeat;
        made.loops += made.arcs[i].source == made.arcs[i].destination;
        made.arcs[kept++] = made.arcs[i];
    }
    made.arc_count = kept;
    return made;
}

static bool weight_is(const dmg_graph *graph, const dmg_weight *weights, uint64_t place, double weight)
{
    switch (graph->weight_kind) {
    case DMG_WEIGHT_INT32:
        return weights[place].as_int32 == weight;
    case DMG_WEIGHT_FLOAT32:
        return weights[place].as_float32 == (float)weight;
    default:
        return weights == NULL;
    }
}

static void compare_with_naive(const dmg_graph *graph, const naive *expected, bool has_reverse)
{
    CU_ASSERT_EQUAL_FATAL(graph->vertex_count, expected->id_count);
    CU_ASSERT_EQUAL_FATAL(graph->arc_count, expected->arc_count);
    CU_ASSERT_EQUAL(graph->loop_arcs, expected->loops);
    CU_ASSERT_EQUAL(graph->repeated_arcs, expected->repeats);
    uint64_t place = 0;
    bool is_same = true;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        is_same &= dmg_graph_id(graph, v) == expected->ids[v] && graph->out.offsets[v] == place;
        for (; place < graph->out.offsets[v + 1]; place++) {
            const arc *wanted = &expected->arcs[place];
            is_same &= wanted->source == dmg_graph_id(graph, v) &&
                       wanted->destination == dmg_graph_id(graph, graph->out.destinations[place]) &&
                       weight_is(graph, graph->out.weights, place, wanted->weight);
        }
    }
    CU_ASSERT_TRUE(is_same);
    CU_ASSERT_EQUAL(has_reverse, graph->in.offsets != NULL);
    if (!has_reverse) {
        return;
    }
    arc *reversed = malloc((graph->arc_count + 1) * sizeof(arc));
    CU_ASSERT_PTR_NOT_NULL_FATAL(reversed);
    for (uint64_t i = 0; i < graph->arc_count; i++) {
        reversed[i] = (arc){expected->arcs[i].destination, expected->arcs[i].source, expected->arcs[i].weight};
    }
    qsort(reversed, graph->arc_count, sizeof(arc), compare_arcs);
    place = 0;
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        for (; place < graph->in.offsets[v + 1]; place++) {
            is_same &= reversed[place].source == dmg_graph_id(graph, v) &&
                       reversed[place].destination == dmg_graph_id(graph, graph->in.destinations[place]) &&
                       weight_is(graph, graph->in.weights, place, reversed[place].weight);
        }
    }
    CU_ASSERT_TRUE(is_same);
    CU_ASSERT_EQUAL(place, graph->arc_count);
    free(reversed);
}

static void check_case(dmg_random *random, uint64_t edge_count, uint64_t id_count, uint64_t spread, uint64_t base,
                       uint32_t flags)
{
    dmg_builder_options options = {.is_directed = flags & 1,
                                   .drop_repeats = flags & 2,
                                   .drop_loops = flags & 4,
                                   .with_reverse = flags & 8,
                                   .is_weighted = flags & 16};
    arc *edges = malloc((edge_count + 1) * sizeof(arc));
    dmg_graph_builder *builder;
    CU_ASSERT_PTR_NOT_NULL_FATAL(edges);
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_create(&options, &builder), DMG_OK);
    for (uint64_t i = 0; i < edge_count; i++) {
        double weight = (double)(dmg_random_next(random) % 9) - 2;
        weight = (flags & 32) && i > edge_count / 2 ? weight / 4 : weight;
        edges[i] = (arc){base + dmg_random_next(random) % id_count * spread,
                         base + dmg_random_next(random) % id_count * spread, options.is_weighted ? weight : 0};
        CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, edges[i].source, edges[i].destination, weight), DMG_OK);
    }
    naive expected = build_naively(edges, edge_count, &options);
    dmg_graph graph;
    dmg_builder_report report;
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_finish(builder, &graph, &report), DMG_OK);
    compare_with_naive(&graph, &expected, options.is_directed && options.with_reverse);
    uint64_t lines_as_arcs = 0;
    for (uint64_t i = 0; i < edge_count; i++) {
        lines_as_arcs += options.is_directed || edges[i].source == edges[i].destination ? 1 : 2;
    }
    CU_ASSERT_EQUAL(graph.arc_count + report.loops_dropped + report.repeats_dropped, lines_as_arcs);
    dmg_graph_close(&graph);
    dmg_graph_builder_destroy(builder);
    free(expected.ids);
    free(expected.arcs);
    free(edges);
}

static void random_graphs_are_what_a_naive_builder_makes(void)
{
    dmg_random random = {dmg_test_seed()};
    static const uint64_t spreads[] = {1, 3, 1000003, UINT64_C(1) << 33};
    for (uint32_t flags = 0; flags < 64; flags++) {
        for (size_t s = 0; s < sizeof spreads / sizeof spreads[0]; s++) {
            check_case(&random, dmg_random_next(&random) % 300, 1 + dmg_random_next(&random) % 40, spreads[s],
                       dmg_random_next(&random) % 5, flags);
        }
        check_case(&random, 5000, 100, 1, UINT64_MAX - 99, flags);
    }
    check_case(&random, 60000, 30000, UINT64_C(0x123456789), 7, 16 + 1 + 8);
    check_case(&random, 60000, 3, 1, 0, 16 + 32);
}

static void ids_that_turn_wide_midway_keep_their_edges(void)
{
    dmg_builder_options options = {.is_directed = true, .is_weighted = true};
    dmg_graph_builder *builder;
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_create(&options, &builder), DMG_OK);
    for (uint64_t i = 0; i < 10000; i++) {
        CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, i, i + 1, (double)i), DMG_OK);
    }
    CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, UINT64_MAX, 0, 0.5), DMG_OK);
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_finish(builder, &graph, NULL), DMG_OK);
    CU_ASSERT_EQUAL(graph.vertex_count, 10002);
    bool is_right = true;
    for (uint32_t v = 0; v < 10000; v++) {
        is_right &= graph.out.offsets[v] == v && graph.out.destinations[v] == v + 1 &&
                    graph.out.weights[v].as_float32 == (float)v && dmg_graph_id(&graph, v) == v;
    }
    CU_ASSERT_TRUE(is_right);
    CU_ASSERT_EQUAL(dmg_graph_find(&graph, UINT64_MAX), 10001);
    CU_ASSERT_EQUAL(graph.out.destinations[10000], 0);
    dmg_graph_close(&graph);
    dmg_graph_builder_destroy(builder);
}

static void declared_vertices_need_no_edge(void)
{
    dmg_builder_options options = {
        .is_directed = true, .has_declared_vertices = true, .first_id = 10, .declared_vertices = 5};
    dmg_graph_builder *builder;
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_create(&options, &builder), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, 10, 14, 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, 15, 14, 0), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, 10, 9, 0), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_finish(builder, &graph, NULL), DMG_OK);
    CU_ASSERT_EQUAL(graph.vertex_count, 5);
    CU_ASSERT_PTR_NULL(graph.ids);
    CU_ASSERT_STRING_EQUAL(support_arcs(&graph), "10>14");
    CU_ASSERT_EQUAL(dmg_graph_find(&graph, 9), DMG_NO_VERTEX);
    CU_ASSERT_EQUAL(dmg_graph_find(&graph, 15), DMG_NO_VERTEX);
    CU_ASSERT_EQUAL(dmg_graph_find(&graph, 12), 2);
    dmg_graph_close(&graph);
    dmg_graph_builder_destroy(builder);
}

static void more_vertices_than_ids_of_32_bits_are_refused(void)
{
    dmg_builder_options options = {.has_declared_vertices = true, .declared_vertices = DMG_VERTICES_MAX + 1};
    dmg_graph_builder *builder;
    CU_ASSERT_EQUAL(dmg_graph_builder_create(&options, &builder), DMG_ERR_LIMIT);
    options.declared_vertices = 2;
    options.first_id = UINT64_MAX;
    CU_ASSERT_EQUAL(dmg_graph_builder_create(&options, &builder), DMG_ERR_ARGUMENT);
}

static void weights_that_no_float_holds_are_refused(void)
{
    dmg_builder_options options = {.is_weighted = true};
    dmg_graph_builder *builder;
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_create(&options, &builder), DMG_OK);
    CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, 0, 1, NAN), DMG_ERR_FORMAT);
    CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, 0, 1, INFINITY), DMG_ERR_FORMAT);
    CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, 0, 1, 1e300), DMG_ERR_FORMAT);
    CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, 0, 1, 1e-300), DMG_ERR_FORMAT);
    dmg_graph_builder_destroy(builder);
    dmg_graph_builder_destroy(NULL);
}

static void a_hub_with_all_arcs_repeated_is_sorted_by_weight(void)
{
    dmg_builder_options options = {.is_directed = true, .is_weighted = true};
    dmg_graph_builder *builder;
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_create(&options, &builder), DMG_OK);
    for (int i = 0; i < 100000; i++) {
        CU_ASSERT_EQUAL(dmg_graph_builder_add(builder, 0, 1, (i * 7919 % 100000) - 50000), DMG_OK);
    }
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(dmg_graph_builder_finish(builder, &graph, NULL), DMG_OK);
    bool is_sorted = true;
    for (int i = 0; i < 100000; i++) {
        is_sorted &= graph.out.weights[i].as_int32 == i - 50000;
    }
    CU_ASSERT_TRUE(is_sorted);
    CU_ASSERT_EQUAL(graph.repeated_arcs, 99999);
    dmg_graph_close(&graph);
    dmg_graph_builder_destroy(builder);
}

static dmg_graph generate(const dmg_kronecker_options *options)
{
    dmg_graph graph = {0};
    CU_ASSERT_EQUAL_FATAL(dmg_kronecker_generate(options, &graph), DMG_OK);
    return graph;
}

static void kronecker_depends_on_its_options_alone(void)
{
    dmg_kronecker_options options = {.scale = 10, .edge_factor = 8, .seed = 7, .is_weighted = true};
    dmg_graph first = generate(&options);
    dmg_graph again = generate(&options);
    CU_ASSERT_TRUE(support_same_graphs(&first, &again));
    options.seed = 8;
    dmg_graph other = generate(&options);
    CU_ASSERT_FALSE(support_same_graphs(&first, &other));
    dmg_graph_close(&first);
    dmg_graph_close(&again);
    dmg_graph_close(&other);
}

static void kronecker_edges_are_as_many_as_asked(void)
{
    for (uint32_t scale = 1; scale <= 12; scale++) {
        dmg_kronecker_options options = {.scale = scale, .edge_factor = 5, .seed = scale};
        dmg_graph graph = generate(&options);
        CU_ASSERT_FALSE(graph.is_directed);
        CU_ASSERT_EQUAL(graph.arc_count, 2 * (UINT64_C(5) << scale) - graph.loop_arcs);
        CU_ASSERT(graph.vertex_count <= UINT64_C(1) << scale);
        CU_ASSERT(dmg_graph_id(&graph, (uint32_t)graph.vertex_count - 1) < UINT64_C(1) << scale);
        bool all_have_arcs = true;
        for (uint64_t v = 0; v < graph.vertex_count; v++) {
            all_have_arcs &= graph.out.offsets[v] < graph.out.offsets[v + 1];
        }
        CU_ASSERT_TRUE(all_have_arcs);
        dmg_graph_close(&graph);
        options.is_directed = true;
        options.with_reverse = true;
        graph = generate(&options);
        CU_ASSERT_EQUAL(graph.arc_count, UINT64_C(5) << scale);
        CU_ASSERT_PTR_NOT_NULL(graph.in.offsets);
        dmg_graph_close(&graph);
    }
}

static void kronecker_weights_are_from_1_to_255(void)
{
    dmg_kronecker_options options = {.scale = 12, .edge_factor = 16, .seed = 3, .is_weighted = true};
    dmg_graph graph = generate(&options);
    CU_ASSERT_EQUAL(graph.weight_kind, DMG_WEIGHT_INT32);
    uint64_t seen[257] = {0};
    for (uint64_t i = 0; i < graph.arc_count; i++) {
        int32_t weight = graph.out.weights[i].as_int32;
        CU_ASSERT_FATAL(weight >= 1 && weight <= 255);
        seen[weight]++;
    }
    CU_ASSERT(seen[1] > 0 && seen[128] > 0 && seen[255] > 0);
    dmg_graph_close(&graph);
}

/* A + B = 0.76 of the edges start in the upper half of the unscrambled ids, so degrees are far from even. */
static void kronecker_degrees_are_skewed_as_the_parameters_say(void)
{
    dmg_kronecker_options options = {.scale = 14, .edge_factor = 16, .seed = 1, .is_directed = true};
    dmg_graph graph = generate(&options);
    uint64_t most = 0;
    for (uint64_t v = 0; v < graph.vertex_count; v++) {
        uint64_t degree = graph.out.offsets[v + 1] - graph.out.offsets[v];
        most = degree > most ? degree : most;
    }
    /* The largest expected out-degree is (A + B)^scale of all edges. */
    double expected = pow(0.76, 14) * (double)graph.arc_count;
    CU_ASSERT(fabs((double)most - expected) < 0.1 * expected);
    dmg_graph_close(&graph);
}

static void kronecker_drops_what_it_is_told_to(void)
{
    dmg_kronecker_options options = {.scale = 8, .edge_factor = 32, .seed = 1};
    dmg_graph all = generate(&options);
    CU_ASSERT(all.repeated_arcs > 0 && all.loop_arcs > 0);
    options.drop_repeats = true;
    options.drop_loops = true;
    dmg_graph simple = generate(&options);
    CU_ASSERT_EQUAL(simple.loop_arcs, 0);
    CU_ASSERT_EQUAL(simple.repeated_arcs, 0);
    CU_ASSERT_EQUAL(simple.vertex_count, all.vertex_count);
    CU_ASSERT(simple.arc_count < all.arc_count);
    dmg_graph_close(&all);
    dmg_graph_close(&simple);
}

static void kronecker_options_are_checked(void)
{
    dmg_graph graph;
    dmg_kronecker_options options = {.scale = 0, .edge_factor = 1};
    CU_ASSERT_EQUAL(dmg_kronecker_generate(&options, &graph), DMG_ERR_ARGUMENT);
    options.scale = 32;
    CU_ASSERT_EQUAL(dmg_kronecker_generate(&options, &graph), DMG_ERR_ARGUMENT);
    options.scale = 4;
    options.edge_factor = 0;
    CU_ASSERT_EQUAL(dmg_kronecker_generate(&options, &graph), DMG_ERR_ARGUMENT);
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(random_graphs_are_what_a_naive_builder_makes),
        DMG_TEST(ids_that_turn_wide_midway_keep_their_edges),
        DMG_TEST(declared_vertices_need_no_edge),
        DMG_TEST(more_vertices_than_ids_of_32_bits_are_refused),
        DMG_TEST(weights_that_no_float_holds_are_refused),
        DMG_TEST(a_hub_with_all_arcs_repeated_is_sorted_by_weight),
        DMG_TEST(kronecker_depends_on_its_options_alone),
        DMG_TEST(kronecker_edges_are_as_many_as_asked),
        DMG_TEST(kronecker_weights_are_from_1_to_255),
        DMG_TEST(kronecker_degrees_are_skewed_as_the_parameters_say),
        DMG_TEST(kronecker_drops_what_it_is_told_to),
        DMG_TEST(kronecker_options_are_checked),
        {NULL, NULL},
    };
    if (dmg_suite_add("graph builder and generator", NULL, NULL, tests)) {
        return 2;
    }
    return dmg_suites_run(argc, argv);
}
