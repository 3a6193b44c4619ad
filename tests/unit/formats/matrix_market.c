/* Matrix Market, coordinate format. */
#include "unit/formats/support.h"
#include "unit/support/suite.h"

#include <stdio.h>
#include <string.h>

#define GENERAL   "%%MatrixMarket matrix coordinate pattern general\n"
#define SYMMETRIC "%%MatrixMarket matrix coordinate pattern symmetric\n"
#define INTEGER   "%%MatrixMarket matrix coordinate integer general\n"
#define REAL      "%%MatrixMarket matrix coordinate real general\n"
#define SKEW      "%%MatrixMarket matrix coordinate integer skew-symmetric\n"

static void expect(const char *text, const char *vertices, const char *arcs)
{
    support_expect("graph.mtx", text, NULL, vertices, arcs);
}

static void expect_error(const char *text, const char *message)
{
    support_expect_error("graph.mtx", text, NULL, DMG_ERR_FORMAT, message);
}

static void all_declared_vertices_exist(void)
{
    expect(GENERAL "4 4 1\n2 3\n", "1 2 3 4", "2>3");
    expect(GENERAL "2 2 0\n", "1 2", "");
    expect(GENERAL "0 0 0\n", "", "");
}

static void general_is_directed_and_symmetric_undirected(void)
{
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read_as("g.mtx", GENERAL "2 2 1\n1 2\n", NULL, &graph, NULL), DMG_OK);
    CU_ASSERT_TRUE(graph.is_directed);
    dmg_graph_close(&graph);
    dmg_read_report report;
    CU_ASSERT_EQUAL_FATAL(support_read_as("g.mtx", SYMMETRIC "3 3 3\n2 1\n3 3\n2 3\n", NULL, &graph, &report), DMG_OK);
    CU_ASSERT_FALSE(graph.is_directed);
    CU_ASSERT_STRING_EQUAL(support_arcs(&graph), "1>2 2>1 2>3 3>2 3>3");
    CU_ASSERT_EQUAL(report.format, DMG_FORMAT_MATRIX_MARKET);
    CU_ASSERT_EQUAL(report.lines, 5);
    CU_ASSERT_EQUAL(report.lines_skipped, 0);
    CU_ASSERT_EQUAL(report.edge_lines, 3);
    CU_ASSERT_EQUAL(graph.loop_arcs, 1);
    dmg_graph_close(&graph);
}

static void the_direction_can_be_chosen(void)
{
    dmg_read_options directed = {.direction = DMG_DIRECTION_DIRECTED};
    dmg_read_options undirected = {.direction = DMG_DIRECTION_UNDIRECTED};
    support_expect("g.mtx", SYMMETRIC "2 2 2\n2 1\n2 2\n", &directed, "1 2", "1>2 2>1 2>2");
    support_expect("g.mtx", GENERAL "2 2 1\n2 1\n", &undirected, "1 2", "1>2 2>1");
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read_as("g.mtx", SYMMETRIC "2 2 1\n2 1\n", &directed, &graph, NULL), DMG_OK);
    CU_ASSERT_TRUE(graph.is_directed);
    dmg_graph_close(&graph);
}

static void skew_symmetric_entries_are_mirrored_with_the_other_sign(void)
{
    expect(SKEW "3 3 2\n2 1 5\n3 2 -7\n", "1 2 3", "1>2:-5 2>1:5 2>3:7 3>2:-7");
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read_as("g.mtx", SKEW "3 3 2\n2 1 5\n3 2 -7\n", NULL, &graph, NULL), DMG_OK);
    CU_ASSERT_TRUE(graph.is_directed);
    CU_ASSERT_EQUAL(graph.negative_line, 3);
    dmg_graph_close(&graph);
    expect_error(SKEW "3 3 1\n2 2 5\n", "graph.mtx:3: row 2 column 2");
    expect_error("%%MatrixMarket matrix coordinate pattern skew-symmetric\n2 2 1\n2 1\n", "graph.mtx:1: ");
    dmg_read_options undirected = {.direction = DMG_DIRECTION_UNDIRECTED};
    support_expect_error("g.mtx", SKEW "3 3 1\n2 1 5\n", &undirected, DMG_ERR_FORMAT, "g.mtx:1: skew-symmetric");
    undirected.weights = DMG_WEIGHTS_IGNORED;
    support_expect("g.mtx", SKEW "3 3 1\n2 1 5\n", &undirected, "1 2 3", "1>2 2>1");
}

static void values_are_weights(void)
{
    expect(INTEGER "2 2 2\n1 2 -5\n2 1 2147483647\n", "1 2", "1>2:-5 2>1:2147483647");
    expect(REAL "2 2 2\n1 2 2.5e-1\n2 1 3\n", "1 2", "1>2:0.25 2>1:3");
    expect(REAL "2 2 1\n1 2 4.0\n", "1 2", "1>2:4");
    expect_error(INTEGER "2 2 1\n1 2 0.5\n", "graph.mtx:3: \"0.5\": expected an integer");
    expect_error(REAL "2 2 1\n1 2 nan\n", "graph.mtx:3: \"nan\"");
    expect_error(REAL "2 2 1\n1 2\n", "graph.mtx:3: the line ends");
    expect_error(GENERAL "2 2 1\n1 2 1\n", "graph.mtx:3: \"1\"");
    dmg_read_options options = {.weights = DMG_WEIGHTS_IGNORED};
    support_expect("g.mtx", REAL "2 2 1\n1 2 -0.5\n", &options, "1 2", "1>2");
}

static void both_triangles_of_a_symmetric_matrix_are_accepted(void)
{
    expect(SYMMETRIC "2 2 1\n1 2\n", "1 2", "1>2 2>1");
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read_as("g.mtx", SYMMETRIC "2 2 2\n1 2\n2 1\n", NULL, &graph, NULL), DMG_OK);
    CU_ASSERT_EQUAL(graph.repeated_arcs, 2);
    dmg_graph_close(&graph);
}

static void banner_words_have_any_case(void)
{
    expect("%%MATRIXMARKET MATRIX Coordinate PATTERN Symmetric\n2 2 1\n2 1\n", "1 2", "1>2 2>1");
    expect("%%matrixmarket\tmatrix  coordinate pattern general \r\n% c\r\n2 2 1\r\n2 1\r\n", "1 2", "2>1");
}

static void comments_and_blank_lines_are_skipped(void)
{
    dmg_graph graph;
    dmg_read_report report;
    const char *text = GENERAL "% c\n%%GraphBLAS type bool\n\n   3 3 2\n\n  1 2\n% in between\n2 3\n\n";
    CU_ASSERT_EQUAL_FATAL(support_read_as("g.mtx", text, NULL, &graph, &report), DMG_OK);
    CU_ASSERT_EQUAL(report.lines, 10);
    CU_ASSERT_EQUAL(report.lines_skipped, 6);
    CU_ASSERT_STRING_EQUAL(support_arcs(&graph), "1>2 2>3");
    dmg_graph_close(&graph);
}

static void what_is_no_square_sparse_real_matrix_is_refused(void)
{
    expect_error("%%MatrixMarket matrix array real general\n1 1\n1\n", "graph.mtx:1: \"array\"");
    expect_error("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", "graph.mtx:1: \"complex\"");
    expect_error("%%MatrixMarket matrix coordinate real hermitian\n1 1 1\n1 1 1\n", "graph.mtx:1: \"hermitian\"");
    expect_error("%%MatrixMarket vector coordinate real general\n1 1 1\n", "graph.mtx:1: \"vector\"");
    expect_error("%%MatrixMarket matrix coordinate real\n1 1 1\n", "graph.mtx:1: the line ends");
    expect_error("%%MatrixMarket matrix coordinate real general x\n1 1 1\n", "graph.mtx:1: \"x\"");
    expect_error("%%MatrixMarketing matrix coordinate real general\n", "graph.mtx:1: ");
    expect_error(GENERAL "3 4 1\n1 1\n", "graph.mtx:2: 3 rows and 4 columns");
}

static void a_banner_with_one_percent_sign_is_refused(void)
{
    expect_error("%MatrixMarket matrix coordinate pattern symmetric\n453 453 1\n186 1\n", "graph.mtx:1: ");
}

static void the_size_line_has_three_integers(void)
{
    expect_error(GENERAL "3 3\n2 1\n", "graph.mtx:2: the line ends");
    expect_error(GENERAL "3 3 1 1\n2 1\n", "graph.mtx:2: \"1\"");
    expect_error(GENERAL "3 3 -1\n", "graph.mtx:2: \"-1\"");
    expect_error(GENERAL "3 3 x\n", "graph.mtx:2: \"x\"");
    expect_error(GENERAL, "graph.mtx:2: the file ends: expected a size line");
}

static void entries_are_as_many_as_promised(void)
{
    expect_error(GENERAL "3 3 2\n2 1\n", "graph.mtx:4: the file ends after 1 entries: expected 2, as line 2 says");
    expect_error(GENERAL "3 3 1\n2 1\n3 1\n", "graph.mtx:4: one more entry: expected 1, as line 2 says");
}

static void indices_are_within_the_matrix(void)
{
    expect_error(GENERAL "3 3 1\n0 1\n", "graph.mtx:3: \"0\": expected a row from 1 to 3");
    expect_error(GENERAL "3 3 1\n1 4\n", "graph.mtx:3: \"4\": expected a column from 1 to 3");
    expect_error(GENERAL "3 3 1\n1 18446744073709551617\n", "graph.mtx:3: ");
    expect_error(GENERAL "3 3 1\n1,2\n", "graph.mtx:3: \"1,2\"");
    expect_error(GENERAL "3 3 1\n3 ", "graph.mtx:3: the line ends");
    expect_error(GENERAL "3 3 1\n1.0 2\n", "graph.mtx:3: \"1.0\"");
}

static void a_size_line_that_the_file_cannot_hold_is_refused_at_once(void)
{
    support_expect_error("g.mtx", GENERAL "4000000000000 4000000000000 1\n1 2\n", NULL, DMG_ERR_LIMIT, "g.mtx:2: ");
    support_expect_error("g.mtx", GENERAL "4294967295 4294967295 1\n1 2\n", NULL, DMG_ERR_LIMIT, "g.mtx:2: ");
    expect_error(GENERAL "4294967294 4294967294 1\n1 2\n", "graph.mtx:2: 4294967294 vertices in a file of");
    expect_error(GENERAL "3 3 50000\n1 2\n", "graph.mtx:2: the size line promises 50000 entries");
    expect_error(GENERAL "3 3 18446744073709551615\n1 2\n", "graph.mtx:2: the size line promises");
    expect_error(GENERAL "3 3 18446744073709551617\n1 2\n",
                 "graph.mtx:2: \"18446744073709551617\" does not fit into 64 bits: expected a size line");
    expect_error(GENERAL "18446744073709551617 1 1\n1 2\n", "\"18446744073709551617\" does not fit into 64 bits");
    expect_error(GENERAL "3 3 1\n18446744073709551617 2\n", "\"18446744073709551617\" does not fit into 64 bits");
    expect_error(GENERAL "3 3 18446744073709551616\n1 2\n", "graph.mtx:2: ");
}

static void a_declared_format_wins_over_the_content(void)
{
    dmg_read_options options = {.format = DMG_FORMAT_MATRIX_MARKET};
    support_expect_error("g.mtx", "1 2\n2 3\n", &options, DMG_ERR_FORMAT, "g.mtx:1: \"1\": expected the banner");
    support_expect_error("g.mtx", "", &options, DMG_ERR_FORMAT, "g.mtx:1: the file ends");
    support_expect("g.txt", GENERAL "2 2 1\n1 2\n", NULL, "1 2", "1>2");
}

static void repeats_of_entries_are_kept_or_dropped(void)
{
    dmg_read_options options = {.drop_repeats = true, .drop_loops = true};
    expect(INTEGER "2 2 3\n1 2 5\n1 2 4\n1 1 3\n", "1 2", "1>1:3 1>2:4 1>2:5");
    support_expect("g.mtx", INTEGER "2 2 3\n1 2 5\n1 2 4\n1 1 3\n", &options, "1 2", "1>2:4");
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(all_declared_vertices_exist),
        DMG_TEST(general_is_directed_and_symmetric_undirected),
        DMG_TEST(the_direction_can_be_chosen),
        DMG_TEST(skew_symmetric_entries_are_mirrored_with_the_other_sign),
        DMG_TEST(values_are_weights),
        DMG_TEST(both_triangles_of_a_symmetric_matrix_are_accepted),
        DMG_TEST(banner_words_have_any_case),
        DMG_TEST(comments_and_blank_lines_are_skipped),
        DMG_TEST(what_is_no_square_sparse_real_matrix_is_refused),
        DMG_TEST(a_banner_with_one_percent_sign_is_refused),
        DMG_TEST(the_size_line_has_three_integers),
        DMG_TEST(entries_are_as_many_as_promised),
        DMG_TEST(indices_are_within_the_matrix),
        DMG_TEST(a_size_line_that_the_file_cannot_hold_is_refused_at_once),
        DMG_TEST(a_declared_format_wins_over_the_content),
        DMG_TEST(repeats_of_entries_are_kept_or_dropped),
        {NULL, NULL},
    };
    if (dmg_suite_add("Matrix Market", support_set_up, support_tear_down, tests)) {
        return 2;
    }
    return dmg_suites_run(argc, argv);
}
