/* gzip, zstd and xz: recognised by content, and never a smaller graph. */
#include "unit/formats/support.h"
#include "unit/support/random.h"
#include "unit/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[] = {"gzip", "zstd", "xz"};
static const char edges[] = "# a comment\n0 1\n1 2\n2 3\n3 4\n4 5\n5 6\n6 7\n7 0\n";

static dmg_status read_bytes(const void *bytes, size_t count, dmg_graph *graph, dmg_read_report *report)
{
    return dmg_graph_read(support_write("graph.el", bytes, count), NULL, graph, report);
}

static void expect_refused(const void *bytes, size_t count, const char *message)
{
    dmg_graph graph;
    dmg_status status = read_bytes(bytes, count, &graph, NULL);
    CU_ASSERT_EQUAL(status, DMG_ERR_FORMAT);
    if (status == DMG_OK) {
        dmg_graph_close(&graph);
        return;
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), message));
}

static void each_compression_is_seen_by_its_first_bytes(void)
{
    for (int i = 0; i < 3; i++) {
        size_t count;
        unsigned char *bytes = support_compress(kinds[i], edges, strlen(edges), &count);
        dmg_graph graph;
        dmg_read_report report;
        CU_ASSERT_EQUAL_FATAL(read_bytes(bytes, count, &graph, &report), DMG_OK);
        CU_ASSERT_STRING_EQUAL(report.compression, kinds[i]);
        CU_ASSERT_EQUAL(report.file_bytes, count);
        CU_ASSERT_EQUAL(report.lines, 9);
        CU_ASSERT_EQUAL(graph.vertex_count, 8);
        CU_ASSERT_EQUAL(graph.arc_count, 8);
        dmg_graph_close(&graph);
        free(bytes);
    }
}

static void streams_behind_each_other_are_one_text(void)
{
    for (int i = 0; i < 3; i++) {
        /* The border falls inside a line. */
        size_t first_count;
        size_t second_count;
        unsigned char *first = support_compress(kinds[i], "0 1\n1 ", 6, &first_count);
        unsigned char *second = support_compress(kinds[i], "2\n2 3\n", 6, &second_count);
        first = realloc(first, first_count + second_count);
        CU_ASSERT_PTR_NOT_NULL_FATAL(first);
        memcpy(first + first_count, second, second_count);
        dmg_graph graph;
        CU_ASSERT_EQUAL_FATAL(read_bytes(first, first_count + second_count, &graph, NULL), DMG_OK);
        CU_ASSERT_STRING_EQUAL(support_arcs(&graph), "0>1 1>2 2>3");
        dmg_graph_close(&graph);
        free(first);
        free(second);
    }
}

static void nothing_compressed_is_the_empty_graph(void)
{
    for (int i = 0; i < 3; i++) {
        size_t count;
        unsigned char *bytes = support_compress(kinds[i], "", 0, &count);
        dmg_graph graph;
        CU_ASSERT_EQUAL_FATAL(read_bytes(bytes, count, &graph, NULL), DMG_OK);
        CU_ASSERT_EQUAL(graph.vertex_count, 0);
        dmg_graph_close(&graph);
        free(bytes);
    }
}

static void every_truncation_is_refused(void)
{
    for (int i = 0; i < 3; i++) {
        size_t count;
        unsigned char *bytes = support_compress(kinds[i], edges, strlen(edges), &count);
        for (size_t length = 1; length < count; length++) {
            /* Below six bytes the magic is not whole, and what is there is no text either. */
            expect_refused(bytes, length, length >= 6 ? "truncated" : "");
        }
        free(bytes);
    }
}

static void a_truncation_far_behind_the_first_buffer_is_refused(void)
{
    size_t capacity = 4 << 20;
    char *text = malloc(capacity);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    dmg_random random = {1};
    for (size_t i = 0; i + 16 <= capacity; i += 16) {
        for (int k = 0; k < 15; k++) {
            text[i + (size_t)k] = k == 7 ? ' ' : (char)('0' + dmg_random_next(&random) % 10);
        }
        text[i + 15] = '\n';
    }
    for (int i = 0; i < 3; i++) {
        size_t count;
        unsigned char *bytes = support_compress(kinds[i], text, capacity, &count);
        expect_refused(bytes, count - 1, "truncated");
        expect_refused(bytes, count / 2, "truncated");
        dmg_graph graph;
        CU_ASSERT_EQUAL_FATAL(read_bytes(bytes, count, &graph, NULL), DMG_OK);
        CU_ASSERT_EQUAL(graph.arc_count, capacity / 16);
        dmg_graph_close(&graph);
        free(bytes);
    }
    free(text);
}

/* zstd's one-shot function writes no checksum, so a flipped bit there may be a legal other text. */
static void every_flipped_bit_of_checksummed_data_is_refused_or_harmless(void)
{
    static const int checksummed[] = {0, 2};
    dmg_graph whole;
    CU_ASSERT_EQUAL_FATAL(support_read(edges, NULL, &whole, NULL), DMG_OK);
    for (int i = 0; i < 2; i++) {
        size_t count;
        unsigned char *bytes = support_compress(kinds[checksummed[i]], edges, strlen(edges), &count);
        for (size_t bit = 0; bit < count * 8; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
            dmg_graph graph;
            dmg_status status = read_bytes(bytes, count, &graph, NULL);
            if (status == DMG_OK) {
                /* gzip's header has fields that mean nothing for the text. */
                CU_ASSERT_TRUE(support_same_graphs(&graph, &whole));
                dmg_graph_close(&graph);
            }
            bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        free(bytes);
    }
    dmg_graph_close(&whole);
}

static void what_follows_a_stream_and_is_none_is_refused(void)
{
    for (int i = 0; i < 3; i++) {
        size_t count;
        unsigned char *bytes = support_compress(kinds[i], edges, strlen(edges), &count);
        memcpy(bytes + count, "8 9\n8 9\n8 9\n", 12);
        expect_refused(bytes, count + 12, "graph.el: ");
        free(bytes);
    }
}

static void errors_in_compressed_text_name_its_lines(void)
{
    size_t count;
    unsigned char *bytes = support_compress("zstd", "0 1\nx 2\n", 8, &count);
    expect_refused(bytes, count, "graph.el:2: \"x\"");
    free(bytes);
}

static void a_pipe_is_read_like_a_file(void)
{
    for (int i = 0; i < 3; i++) {
        int ends[2];
        size_t count;
        unsigned char *bytes = support_compress(kinds[i], edges, strlen(edges), &count);
        CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
        CU_ASSERT_EQUAL(write(ends[1], bytes, count), (ssize_t)count);
        close(ends[1]);
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
        dmg_graph graph;
        dmg_read_report report;
        CU_ASSERT_EQUAL_FATAL(dmg_graph_read(path, NULL, &graph, &report), DMG_OK);
        CU_ASSERT_EQUAL(graph.arc_count, 8);
        CU_ASSERT_EQUAL(report.file_bytes, count);
        dmg_graph_close(&graph);
        close(ends[0]);
        free(bytes);
    }
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(each_compression_is_seen_by_its_first_bytes),
        DMG_TEST(streams_behind_each_other_are_one_text),
        DMG_TEST(nothing_compressed_is_the_empty_graph),
        DMG_TEST(every_truncation_is_refused),
        DMG_TEST(a_truncation_far_behind_the_first_buffer_is_refused),
        DMG_TEST(every_flipped_bit_of_checksummed_data_is_refused_or_harmless),
        DMG_TEST(what_follows_a_stream_and_is_none_is_refused),
        DMG_TEST(errors_in_compressed_text_name_its_lines),
        DMG_TEST(a_pipe_is_read_like_a_file),
        {NULL, NULL},
    };
    if (dmg_suite_add("compressed files", support_set_up, support_tear_down, tests)) {
        return 2;
    }
    return dmg_suites_run(argc, argv);
}
