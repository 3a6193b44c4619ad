/* Text edge lists. */
#include "formats/weight.h"
#include "unit/formats/support.h"
#include "unit/support/random.h"
#include "unit/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void expect(const char *text, const char *vertices, const char *arcs)
{
    support_expect("graph.el", text, NULL, vertices, arcs);
}

static void expect_error(const char *text, const char *message)
{
    support_expect_error("graph.el", text, NULL, DMG_ERR_FORMAT, message);
}

static void vertices_are_the_ids_that_occur(void)
{
    expect("10 20\n7 10\n", "7 10 20", "7>10 10>20");
    expect("0 1\n", "0 1", "0>1");
    expect("5 5\n", "5", "5>5");
}

static void lists_ascend_by_destination_whatever_the_order_of_lines(void)
{
    expect("1 9\n1 3\n0 2\n1 1\n1 3\n", "0 1 2 3 9", "0>2 1>1 1>3 1>3 1>9");
}

static void comments_and_blank_lines_are_counted_and_skipped(void)
{
    dmg_graph graph;
    dmg_read_report report;
    const char *text = "# a\n% b\n// c\n0 1\n   # indented\n\n \t \n1 2\n#\n";
    CU_ASSERT_EQUAL_FATAL(support_read(text, NULL, &graph, &report), DMG_OK);
    CU_ASSERT_EQUAL(report.lines, 9);
    CU_ASSERT_EQUAL(report.lines_skipped, 7);
    CU_ASSERT_EQUAL(report.edge_lines, 2);
    CU_ASSERT_EQUAL(report.format, DMG_FORMAT_EDGE_LIST);
    CU_ASSERT_STRING_EQUAL(report.compression, "");
    CU_ASSERT_EQUAL(report.file_bytes, strlen(text));
    dmg_graph_close(&graph);
}

static void columns_are_separated_by_blanks_tabs_or_a_comma(void)
{
    expect("0 1\n1\t2\n2,3\n3, 4\n 4 ,\t5 \t\n", "0 1 2 3 4 5", "0>1 1>2 2>3 3>4 4>5");
    expect("0,1,7\n1, 2 ,8\n", "0 1 2", "0>1:7 1>2:8");
    expect_error("0,,1\n", "graph.el:1: \",1\"");
    expect_error("0,1,\n", "graph.el:1: ");
    expect_error(",0,1\n", "graph.el:1: ");
}

static void any_line_end_and_none_at_the_end_are_fine(void)
{
    expect("0 1\r\n1 2\r\n", "0 1 2", "0>1 1>2");
    expect("0 1\r1 2\r2 0\r", "0 1 2", "0>1 1>2 2>0");
    expect("0 1\r1 2", "0 1 2", "0>1 1>2");
    expect("0 1\n1 2", "0 1 2", "0>1 1>2");
    expect("0 1\r\n\r\n1 2\n\r2 3", "0 1 2 3", "0>1 1>2 2>3");
}

static void lines_are_numbered_alike_for_every_line_end(void)
{
    expect_error("0 1\n\nx 2\n", "graph.el:3: \"x\"");
    expect_error("0 1\r\n\r\nx 2\r\n", "graph.el:3: \"x\"");
    expect_error("0 1\r\rx 2\r", "graph.el:3: \"x\"");
    expect_error("0 1\n\nx", "graph.el:3: \"x\"");
}

static void a_byte_order_mark_is_skipped(void)
{
    expect("\xef\xbb\xbf"
           "0 1\n1 2\n",
           "0 1 2", "0>1 1>2");
    expect("\xef\xbb\xbf", "", "");
}

static void ids_have_64_bits(void)
{
    expect("0 18446744073709551615\n9223372036854775807 0\n", "0 9223372036854775807 18446744073709551615",
           "0>18446744073709551615 9223372036854775807>0");
    expect("3000000000 4294967295\n", "3000000000 4294967295", "3000000000>4294967295");
    expect("1 2\n4294967296 1\n", "1 2 4294967296", "1>2 4294967296>1");
    expect("00000000000000000000000000007 8\n", "7 8", "7>8");
    expect_error("0 18446744073709551616\n",
                 "graph.el:1: \"18446744073709551616\" does not fit into 64 bits: expected");
    expect_error("0 36893488147419103232\n", "graph.el:1: ");
    expect_error("0 99999999999999999999999\n", "graph.el:1: ");
}

static void a_third_column_is_the_weight(void)
{
    expect("0 1 5\n1 2 -7\n", "0 1 2", "0>1:5 1>2:-7");
    expect("0 1 2147483647\n1 2 -2147483648\n", "0 1 2", "0>1:2147483647 1>2:-2147483648");
    expect("0 1 1.0\n1 2 2e3\n", "0 1 2", "0>1:1 1>2:2000");
    expect("0 1 0.5\n1 2 3\n", "0 1 2", "0>1:0.5 1>2:3");
    expect("0 1 3\n1 2 .25\n2 0 -0\n", "0 1 2", "0>1:3 1>2:0.25 2>0:0");
    expect("0 1 +4\n1 2 1E-2\n", "0 1 2", "0>1:4 1>2:0.01");
}

static void integers_beyond_32_bits_make_all_weights_floats(void)
{
    dmg_graph graph;
    dmg_read_report report;
    CU_ASSERT_EQUAL_FATAL(support_read("0 1 16777217\n1 2 4294967296\n", NULL, &graph, &report), DMG_OK);
    CU_ASSERT_EQUAL(graph.weight_kind, DMG_WEIGHT_FLOAT32);
    CU_ASSERT_EQUAL(graph.out.weights[0].as_float32, 16777216.0f);
    CU_ASSERT_EQUAL(graph.out.weights[1].as_float32, 4294967296.0f);
    CU_ASSERT_DOUBLE_EQUAL(report.weight_rounding, 1.0 / 16777217, 1e-15);
    dmg_graph_close(&graph);
    CU_ASSERT_EQUAL_FATAL(support_read("0 1 16777217\n1 2 4\n", NULL, &graph, &report), DMG_OK);
    CU_ASSERT_EQUAL(graph.weight_kind, DMG_WEIGHT_INT32);
    CU_ASSERT_EQUAL(report.weight_rounding, 0);
    dmg_graph_close(&graph);
}

static void weights_are_rounded_once_like_the_compiler_does(void)
{
    static const struct {
        const char *text;
        float value;
    } cases[] = {
        {"0 1 0.1", 0.1f},
        {"0 1 123456.789e-3", 123456.789e-3f},
        {"0 1 3.4028234e38", 3.4028234e38f},
        {"0 1 1e-30", 1e-30f},
        {"0 1 0.00000000000000000000000000000125", 0.00000000000000000000000000000125f},
        {"0 1 3.14159265358979323846264338327950288", 3.14159265358979323846264338327950288f},
        {"0 1 12345678901234567890123456789", 12345678901234567890123456789.0f},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dmg_graph graph;
        CU_ASSERT_EQUAL_FATAL(support_read(cases[i].text, NULL, &graph, NULL), DMG_OK);
        CU_ASSERT_EQUAL(graph.weight_kind, DMG_WEIGHT_FLOAT32);
        CU_ASSERT_EQUAL(graph.out.weights[0].as_float32, cases[i].value);
        dmg_graph_close(&graph);
    }
}

static void a_decimal_of_six_digits_comes_back(void)
{
    dmg_random random = {11};
    for (int power = -15; power <= 20; power++) {
        for (int i = 0; i < 2000; i++) {
            char text[32];
            uint64_t digits = dmg_random_next(&random) % 1000000;
            snprintf(text, sizeof text, "%s%ue%d", i % 2 ? "-" : "", (unsigned int)digits, power);
            double number = strtod(text, NULL);
            CU_ASSERT_EQUAL(dmg_weight_decimal((float)number), number);
        }
    }
    dmg_graph graph;
    dmg_read_report report;
    CU_ASSERT_EQUAL_FATAL(support_read("0 1 0.1\n0 2 123.456\n0 3 7\n", NULL, &graph, &report), DMG_OK);
    CU_ASSERT_EQUAL(dmg_weight_value(&graph.out.weights[0], graph.weight_kind), 0.1);
    CU_ASSERT_EQUAL(dmg_weight_value(&graph.out.weights[1], graph.weight_kind), 123.456);
    CU_ASSERT_EQUAL(dmg_weight_value(&graph.out.weights[2], graph.weight_kind), 7);
    CU_ASSERT_EQUAL(report.weight_rounding, 0);
    dmg_graph_close(&graph);
}

static void a_weight_and_its_float_are_the_nearest_to_each_other(void)
{
    for (uint64_t bits = 0; bits < UINT64_C(0x7f800000); bits += 9973) {
        float weight;
        uint32_t word = (uint32_t)bits;
        memcpy(&weight, &word, sizeof weight);
        CU_ASSERT_EQUAL((float)dmg_weight_decimal(weight), weight);
    }
    CU_ASSERT_EQUAL(dmg_weight_decimal(1.0f / 3), (double)(1.0f / 3));
    CU_ASSERT_EQUAL(dmg_weight_decimal(0x1p-149f), 0x1p-149);
    CU_ASSERT_EQUAL(dmg_weight_decimal(16777217.0f), 16777216);
    CU_ASSERT_EQUAL(dmg_weight_decimal(3.4028234e38f), (double)3.4028234e38f);
}

static void what_is_no_weight_is_refused(void)
{
    static const char *const bad[] = {"nan",   "inf",  "-inf", "NaN", "0x10",  "1e",   "1e+",   "--1",
                                      "1.2.3", "five", ".",    "-",   "1e400", "1e39", "1e-60", "4e-500",
                                      "1f",    "1d5",  "+",    "e5",  "1,5",   "1e5.5"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "0 1 1\n1 2 %s\n", bad[i]);
        expect_error(text, "graph.el:2: ");
    }
    static char huge[1024] = "0 1 0.";
    memset(huge + 6, '3', 1000);
    expect_error(huge, "400 characters");
}

static void every_line_has_as_many_columns_as_the_first(void)
{
    expect_error("0 1 5\n1 2\n", "graph.el:2: the line ends: expected a weight, as in line 1");
    expect_error("# c\n0 1\n1 2 5\n", "graph.el:3: \"5\": expected two columns, as in line 2");
    expect_error("0 1 2 3\n", "graph.el:1: \"3\": expected the line to end");
    expect_error("0 1\n1 2 # note\n", "graph.el:2: \"#\"");
    expect_error("0 1 5\n1 2 6 # note\n", "graph.el:2: \"#\"");
}

static void lines_that_are_no_edges_are_refused_by_number(void)
{
    expect_error("0 1\n-1 2\n", "graph.el:2: \"-1\"");
    expect_error("0.0 1\n", "graph.el:1: \"0.0\"");
    expect_error("alice bob\n", "graph.el:1: \"alice\"");
    expect_error("0 1\n2\n", "graph.el:2: the line ends: expected the destination");
    expect_error("0 1\n2 \n", "graph.el:2: the line ends");
    expect_error("0 +1\n", "graph.el:1: \"+1\"");
    expect_error("0 1x\n", "graph.el:1: \"1x\"");
    expect_error("0;1\n", "graph.el:1: \"0;1\"");
    expect_error("/ 1\n", "graph.el:1: \"/\"");
    expect_error("SOURCE DESTINATION\n0 1\n", "graph.el:1: \"SOURCE DESTINATION\"");
    expect_error("\x01\x02\x7f\n", "binary data");
    expect_error("\x01 1\n", "graph.el:1: \"?\"");
}

static void bytes_that_are_zero_are_no_text(void)
{
    dmg_graph graph;
    CU_ASSERT_EQUAL(dmg_graph_read(support_write("zero.el", "0 1\n\0\0\0\n", 8), NULL, &graph, NULL), DMG_ERR_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "zero.el:2: "));
    CU_ASSERT_EQUAL(dmg_graph_read(support_write("zero.el", "0 1\0", 4), NULL, &graph, NULL), DMG_ERR_FORMAT);
}

static void a_file_without_edges_is_the_empty_graph(void)
{
    expect("", "", "");
    expect("# nothing\n", "", "");
    expect("\n\n", "", "");
    expect(" ", "", "");
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read("", NULL, &graph, NULL), DMG_OK);
    CU_ASSERT_PTR_NOT_NULL(graph.out.offsets);
    CU_ASSERT_EQUAL(graph.out.offsets[0], 0);
    CU_ASSERT_EQUAL(dmg_graph_find(&graph, 0), DMG_NO_VERTEX);
    dmg_graph_close(&graph);
}

static void very_long_lines_are_read_whole(void)
{
    size_t bytes = 3 << 20;
    char *text = malloc(bytes + 64);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    size_t length = (size_t)sprintf(text, "0 1\n#");
    memset(text + length, 'x', bytes);
    sprintf(text + length + bytes, "\n1 2\n");
    expect(text, "0 1 2", "0>1 1>2");
    memset(text + length - 1, ' ', bytes);
    sprintf(text + length + bytes, "1 2\n");
    expect_error(text, "graph.el:2: \"x1\"");
    memset(text + length - 1, ' ', bytes + 1);
    expect(text, "0 1 2", "0>1 1>2");
    free(text);
}

/* The buffer's borders fall everywhere in a line when the lines have every length. */
static void lines_across_buffer_borders_are_whole(void)
{
    for (int with_return = 0; with_return < 2; with_return++) {
        size_t capacity = 4 << 20;
        char *text = malloc(capacity);
        CU_ASSERT_PTR_NOT_NULL_FATAL(text);
        size_t length = 0;
        uint64_t edges = 0;
        while (length + 128 < capacity) {
            length += (size_t)sprintf(text + length, "%d%*s%d%s", (int)(edges % 1000), (int)(edges % 61) + 1, "",
                                      (int)(edges % 997), with_return ? "\r\n" : "\n");
            edges++;
        }
        dmg_graph graph;
        dmg_read_report report;
        CU_ASSERT_EQUAL_FATAL(support_read(text, NULL, &graph, &report), DMG_OK);
        CU_ASSERT_EQUAL(graph.arc_count, edges);
        CU_ASSERT_EQUAL(report.lines, edges);
        CU_ASSERT_EQUAL(graph.vertex_count, 1000);
        dmg_graph_close(&graph);
        free(text);
    }
}

static void an_undirected_line_is_two_arcs_and_a_loop_one(void)
{
    dmg_read_options options = {.direction = DMG_DIRECTION_UNDIRECTED};
    support_expect("graph.el", "0 1\n1 1\n2 1\n", &options, "0 1 2", "0>1 1>0 1>1 1>2 2>1");
    support_expect("graph.el", "0 1 4\n1 0 3\n", &options, "0 1", "0>1:3 0>1:4 1>0:3 1>0:4");
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read("0 1\n1 1\n0 1\n1 0\n", &options, &graph, NULL), DMG_OK);
    CU_ASSERT_FALSE(graph.is_directed);
    CU_ASSERT_EQUAL(graph.arc_count, 7);
    CU_ASSERT_EQUAL(graph.loop_arcs, 1);
    CU_ASSERT_EQUAL(graph.repeated_arcs, 4);
    CU_ASSERT_PTR_EQUAL(dmg_graph_in(&graph), &graph.out);
    dmg_graph_close(&graph);
}

static void repeats_and_loops_are_kept_and_counted(void)
{
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read("0 1\n0 1\n1 1\n1 1\n1 0\n0 1\n", NULL, &graph, NULL), DMG_OK);
    CU_ASSERT_TRUE(graph.is_directed);
    CU_ASSERT_EQUAL(graph.arc_count, 6);
    CU_ASSERT_EQUAL(graph.loop_arcs, 2);
    CU_ASSERT_EQUAL(graph.repeated_arcs, 3);
    CU_ASSERT_PTR_NULL(dmg_graph_in(&graph));
    dmg_graph_close(&graph);
}

static void repeats_are_dropped_when_asked_and_the_smallest_weight_stays(void)
{
    dmg_read_options options = {.drop_repeats = true};
    support_expect("graph.el", "0 1 5\n0 1 3\n1 1 2\n0 1 4\n1 1 1\n1 0 9\n", &options, "0 1", "0>1:3 1>0:9 1>1:1");
    dmg_graph graph;
    dmg_read_report report;
    CU_ASSERT_EQUAL_FATAL(support_read("0 1\n0 1\n1 1\n1 1\n", &options, &graph, &report), DMG_OK);
    CU_ASSERT_EQUAL(report.repeats_dropped, 2);
    CU_ASSERT_EQUAL(graph.repeated_arcs, 0);
    CU_ASSERT_EQUAL(graph.loop_arcs, 1);
    dmg_graph_close(&graph);
}

static void loops_are_dropped_when_asked_and_their_vertices_stay(void)
{
    dmg_read_options options = {.drop_loops = true};
    support_expect("graph.el", "0 1\n7 7\n1 1\n", &options, "0 1 7", "0>1");
    dmg_graph graph;
    dmg_read_report report;
    CU_ASSERT_EQUAL_FATAL(support_read("0 1\n7 7\n1 1\n", &options, &graph, &report), DMG_OK);
    CU_ASSERT_EQUAL(report.loops_dropped, 2);
    CU_ASSERT_EQUAL(graph.loop_arcs, 0);
    dmg_graph_close(&graph);
}

static void the_first_negative_weight_is_remembered_by_line(void)
{
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read("# c\n0 1 5\n1 2 -1\n2 3 -2\n", NULL, &graph, NULL), DMG_OK);
    CU_ASSERT_EQUAL(graph.negative_line, 3);
    CU_ASSERT_STRING_EQUAL(graph.negative_source, support_path("graph.el"));
    dmg_graph_close(&graph);
    CU_ASSERT_EQUAL_FATAL(support_read("0 1 5\n1 2 -0.0\n", NULL, &graph, NULL), DMG_OK);
    CU_ASSERT_EQUAL(graph.negative_line, 0);
    dmg_graph_close(&graph);
    dmg_read_options options = {.drop_loops = true};
    CU_ASSERT_EQUAL_FATAL(support_read("0 1 5\n1 1 -4\n", &options, &graph, NULL), DMG_OK);
    CU_ASSERT_EQUAL(graph.negative_line, 0);
    dmg_graph_close(&graph);
}

static void ignored_weights_are_checked_and_left_out(void)
{
    dmg_read_options options = {.weights = DMG_WEIGHTS_IGNORED};
    support_expect("graph.el", "0 1 5\n1 2 -1\n", &options, "0 1 2", "0>1 1>2");
    support_expect_error("graph.el", "0 1 5\n1 2 x\n", &options, DMG_ERR_FORMAT, "graph.el:2: \"x\"");
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read("0 1 -5\n", &options, &graph, NULL), DMG_OK);
    CU_ASSERT_EQUAL(graph.weight_kind, DMG_WEIGHT_NONE);
    CU_ASSERT_PTR_NULL(graph.out.weights);
    CU_ASSERT_EQUAL(graph.negative_line, 0);
    dmg_graph_close(&graph);
}

static void the_reverse_is_made_when_asked(void)
{
    dmg_read_options options = {.with_reverse = true};
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read("0 2 5\n1 2 6\n2 2 7\n0 1 8\n", &options, &graph, NULL), DMG_OK);
    const dmg_adjacency *in = dmg_graph_in(&graph);
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    static const uint64_t offsets[] = {0, 0, 1, 4};
    static const uint32_t sources[] = {0, 0, 1, 2};
    static const int32_t weights[] = {8, 5, 6, 7};
    CU_ASSERT_EQUAL(memcmp(in->offsets, offsets, sizeof offsets), 0);
    CU_ASSERT_EQUAL(memcmp(in->destinations, sources, sizeof sources), 0);
    CU_ASSERT_EQUAL(memcmp(in->weights, weights, sizeof weights), 0);
    dmg_graph_close(&graph);
}

static void a_file_that_cannot_be_read_is_an_io_error(void)
{
    dmg_graph graph;
    CU_ASSERT_EQUAL(dmg_graph_read(support_path("missing"), NULL, &graph, NULL), DMG_ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "missing"));
    CU_ASSERT_EQUAL(dmg_graph_read("/tmp", NULL, &graph, NULL), DMG_ERR_IO);
}

static void names_do_not_matter_but_content(void)
{
    support_expect("some name.with.dots.mtx", "2 1\n3 1\n", NULL, "1 2 3", "2>1 3>1");
    support_expect("graph.gz", "0 1\n", NULL, "0 1", "0>1");
    support_expect("graph.dmg", "0 1\n", NULL, "0 1", "0>1");
}

static void a_size_line_without_its_banner_is_no_edge(void)
{
    support_expect_error("lost.mtx", "3 3 2\n1 2 .5\n2 3 .5\n", NULL, DMG_ERR_FORMAT, "lost.mtx:1: looks like");
    dmg_read_options options = {.format = DMG_FORMAT_EDGE_LIST};
    support_expect("lost.mtx", "3 3 2\n1 2 5\n2 3 5\n", &options, "1 2 3", "1>2:5 2>3:5 3>3:2");
    support_expect("lost.el", "3 3 2\n1 2 5\n2 3 5\n", NULL, "1 2 3", "1>2:5 2>3:5 3>3:2");
}

static void note_progress(void *context, const char *step, uint64_t done, uint64_t total)
{
    uint64_t *last = context;
    CU_ASSERT_STRING_EQUAL(step, "read");
    CU_ASSERT(done >= last[0] && done <= total);
    last[0] = done;
    last[1] = total;
}

static void progress_reaches_the_end(void)
{
    uint64_t last[2] = {0, 0};
    dmg_read_options options = {.progress = note_progress, .progress_context = last};
    support_expect("graph.el", "0 1\n1 2\n", &options, "0 1 2", "0>1 1>2");
    CU_ASSERT_EQUAL(last[0], 8);
    CU_ASSERT_EQUAL(last[1], 8);
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(vertices_are_the_ids_that_occur),
        DMG_TEST(lists_ascend_by_destination_whatever_the_order_of_lines),
        DMG_TEST(comments_and_blank_lines_are_counted_and_skipped),
        DMG_TEST(columns_are_separated_by_blanks_tabs_or_a_comma),
        DMG_TEST(any_line_end_and_none_at_the_end_are_fine),
        DMG_TEST(lines_are_numbered_alike_for_every_line_end),
        DMG_TEST(a_byte_order_mark_is_skipped),
        DMG_TEST(ids_have_64_bits),
        DMG_TEST(a_third_column_is_the_weight),
        DMG_TEST(integers_beyond_32_bits_make_all_weights_floats),
        DMG_TEST(weights_are_rounded_once_like_the_compiler_does),
        DMG_TEST(a_decimal_of_six_digits_comes_back),
        DMG_TEST(a_weight_and_its_float_are_the_nearest_to_each_other),
        DMG_TEST(what_is_no_weight_is_refused),
        DMG_TEST(every_line_has_as_many_columns_as_the_first),
        DMG_TEST(lines_that_are_no_edges_are_refused_by_number),
        DMG_TEST(bytes_that_are_zero_are_no_text),
        DMG_TEST(a_file_without_edges_is_the_empty_graph),
        DMG_TEST(very_long_lines_are_read_whole),
        DMG_TEST(lines_across_buffer_borders_are_whole),
        DMG_TEST(an_undirected_line_is_two_arcs_and_a_loop_one),
        DMG_TEST(repeats_and_loops_are_kept_and_counted),
        DMG_TEST(repeats_are_dropped_when_asked_and_the_smallest_weight_stays),
        DMG_TEST(loops_are_dropped_when_asked_and_their_vertices_stay),
        DMG_TEST(the_first_negative_weight_is_remembered_by_line),
        DMG_TEST(ignored_weights_are_checked_and_left_out),
        DMG_TEST(the_reverse_is_made_when_asked),
        DMG_TEST(a_file_that_cannot_be_read_is_an_io_error),
        DMG_TEST(names_do_not_matter_but_content),
        DMG_TEST(a_size_line_without_its_banner_is_no_edge),
        DMG_TEST(progress_reaches_the_end),
        {NULL, NULL},
    };
    if (dmg_suite_add("edge lists", support_set_up, support_tear_down, tests)) {
        return 2;
    }
    return dmg_suites_run(argc, argv);
}
