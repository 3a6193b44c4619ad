/* Files of other kinds and formats are refused for what they are; edge lists are read, whatever they are called. */
#include "unit/formats/support.h"
#include "unit/support/random.h"
#include "unit/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const dmg_read_options forced = {.format = DMG_FORMAT_EDGE_LIST};

/** The bytes are refused, with this word in the message and without a quotation of what cannot be printed. */
static void expect_refused(const char *name, const void *bytes, size_t count, const dmg_read_options *options,
                           const char *word)
{
    dmg_graph graph;
    dmg_status status = dmg_graph_read(support_write(name, bytes, count), options, &graph, NULL);
    CU_ASSERT_EQUAL(status, DMG_ERR_FORMAT);
    if (status == DMG_OK) {
        printf("\n    %s was read, and is %s\n", name, word);
        dmg_graph_close(&graph);
        return;
    }
    bool is_named = strstr(dmg_error_message(), word) && strstr(dmg_error_message(), name);
    if (!is_named) {
        printf("\n    \"%s\" is not in \"%s\"\n", word, dmg_error_message());
    }
    CU_ASSERT_TRUE(is_named);
    CU_ASSERT_PTR_NULL(strstr(dmg_error_message(), "??"));
}

#define DATA(bytes, word)                                                                                              \
    {                                                                                                                  \
        bytes "\0\1\2\3", sizeof(bytes) + 3, word                                                                      \
    }

static void data_that_is_no_text_is_named_for_what_it_is(void)
{
    static const struct {
        const char *bytes;
        size_t count;
        const char *word;
    } cases[] = {
        DATA("BZh91AY&SY", "bzip2"),
        DATA("\x04\x22\x4d\x18", "lz4"),
        DATA("LZIP\1", "lzip"),
        DATA("\x1f\x9d\x90", "compress (.Z)"),
        DATA("PK\x03\x04\x14", "zip archive"),
        DATA("7z\xbc\xaf\x27\x1c", "7-Zip"),
        DATA("Rar!\x1a\x07", "RAR"),
        DATA("!<arch>\ndebian-binary", "Debian package"),
        DATA("\x93NUMPY\1", "NumPy"),
        DATA("\x89HDF\r\n\x1a\n", "HDF5"),
        DATA("PAR1\x15", "Parquet"),
        DATA("ARROW1\0", "Arrow"),
        DATA("SQLite format 3\0", "SQLite"),
        DATA("\x80\x04\x95", "pickle"),
        DATA("\x89PNG\r\n\x1a\n", "PNG"),
        DATA("\xff\xd8\xff\xe0", "JPEG"),
        DATA("GIF89a", "GIF"),
        DATA("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n", "PDF"),
        DATA("\x7f"
             "ELF\2\1\1",
             "a program"),
        DATA("\xff\xfe"
             "0\0 \0"
             "1\0\n\0",
             "UTF-16"),
        DATA("\0\0\0\0\1\0\0\0\1\0\0\0\2\0\0\0", "binary data"),
        DATA("1\0\0\0\2\0\0\0\2\0\0\0\3\0\0\0", "binary data"),
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_refused("graph.el", cases[i].bytes, cases[i].count, NULL, cases[i].word);
    }
}

static void a_tar_archive_is_named_also_when_it_is_compressed(void)
{
    char tar[1024] = "graph.el";
    memcpy(tar + 100, "0000644", 7);
    memcpy(tar + 257,
           "ustar\0"
           "00",
           8);
    memcpy(tar + 512, "0 1\n", 4);
    size_t count;
    unsigned char *bytes = support_compress("gzip", tar, sizeof tar, &count);
    expect_refused("graph.tar", tar, sizeof tar, NULL, "tar archive");
    expect_refused("graph.tar.gz", bytes, count, NULL, "tar archive");
    size_t twice_count;
    unsigned char *twice = support_compress("xz", bytes, count, &twice_count);
    expect_refused("graph.el", twice, twice_count, NULL, "gzip data in compressed data");
    free(twice);
    free(bytes);
}

static void numbers_that_look_random_are_binary_data(void)
{
    unsigned char bytes[4096];
    dmg_random random = {7};
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(dmg_random_next(&random) >> 56);
    }
    memcpy(bytes, "1 2 3 4 ", 8); /* no signature by chance */
    expect_refused("graph", bytes, sizeof bytes, NULL, "binary data");
    expect_refused("graph", bytes, sizeof bytes, &forced, "binary data");
}

static void text_of_another_format_is_named_for_what_it_is(void)
{
    static const struct {
        const char *text;
        const char *word;
    } cases[] = {
        {"<!DOCTYPE html>\n<html><body>404</body></html>\n", "web page"},
        {"\n\n  <HTML>\n", "web page"},
        {"<?xml version=\"1.0\"?>\n<graphml>\n", "GraphML"},
        {"<graphml xmlns=\"x\">\n", "GraphML"},
        {"<gexf>\n", "GEXF"},
        {"{\"nodes\": [1, 2]}\n", "JSON"},
        {"[[0, 1], [1, 2]]\n", "JSON"},
        {"*Vertices 3\n1 \"a\"\n*Arcs\n1 2\n", "Pajek"},
        {"digraph g {\n 1 -> 2\n}\n", "DOT"},
        {"graph {\n 1 -- 2\n}\n", "DOT"},
        {"graph [\n  directed 1\n]\n", "GML"},
        {"Creator \"igraph\"\ngraph\n[\n", "GML"},
        {"AdjacencyGraph\n3\n2\n0\n1\n2\n1\n2\n", "Ligra"},
        {"c 9th DIMACS challenge\np sp 2 1\na 1 2 5\n", "DIMACS"},
        {"p sp 2 1\na 1 2 5\n", "DIMACS"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", "git lfs pull"},
        {"/annex/objects/SHA256E-s12--4d7a.el\n", "git annex get"},
        {"outs:\n- md5: 4d7a\n  path: graph.el\n", "dvc pull"},
        {"source,target\n0,1\n1,2\n", "\"source,target\""},
        {"\"from\" \"to\" \"weight\"\n0 1 2\n", "column names"},
        {"FromNodeId\tToNodeId\r\n0\t1\r\n", "column names"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect_refused("graph.txt", cases[i].text, strlen(cases[i].text), NULL, cases[i].word);
        expect_refused("graph.mtx", cases[i].text, strlen(cases[i].text), NULL, cases[i].word);
    }
}

/** All of these read like edge lists. */
static void a_name_that_belongs_to_another_format_is_refused(void)
{
    static const char *const cases[][2] = {
        {"g.graph", "METIS"},       {"g.GRAPH", "METIS"}, {"g.graph.xz", "METIS"},  {"g.metis", "METIS"},
        {"g.hgr", "hMETIS"},        {"g.gr", "DIMACS"},   {"g.sg", "GAP"},          {"g.wsg", "GAP"},
        {"g.adjlist", "adjacency"}, {"g.smat", "SMAT"},   {"g.graphml", "GraphML"}, {"g.json", "JSON"},
        {"g.v", "Graphalytics"},    {"g.net", "Pajek"},   {"g.npz", "NumPy"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        support_expect_error(cases[i][0], "1 2\n2 3\n", NULL, DMG_ERR_FORMAT, cases[i][1]);
        support_expect_error(cases[i][0], "1 2\n2 3\n", NULL, DMG_ERR_FORMAT, "dmgraph does not read");
        support_expect(cases[i][0], "1 2\n2 3\n", &forced, "1 2 3", "1>2 2>3");
    }
    static const char banner[] = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n";
    support_expect("g.graph", banner, NULL, "1 2", "1>2");
}

static void a_name_that_edge_lists_have_is_read(void)
{
    static const char *const names[] = {"g",     "g.txt", "g.el",    "g.wel",      "g.edges",     "g.edgelist",
                                        "g.tsv", "g.csv", "g.ncol",  "g.dat",      "lone.e",      "g.bin",
                                        "g.mtx", "g.def", "graph",   "out.graph2", "g.graph.old", "metis",
                                        "gr",    "v",     "g.el.gz", "g.",         "e.xz",        "g.links"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        support_expect(names[i], "1 2\n2 3\n", NULL, "1 2 3", "1>2 2>3");
    }
    support_expect("g.el", "# source target\n1 2\n", NULL, "1 2", "1>2");
    support_expect("g.el", "% asym unweighted\n% 1 2 2\n1 2\n", NULL, "1 2", "1>2");
    support_expect("g.el", "% sym is a word of this comment\n1 2\n", NULL, "1 2", "1>2");
}

static void a_file_beside_it_tells_the_format(void)
{
    support_expect("twin.e", "2 3\n", NULL, "2 3", "2>3");
    support_write("twin.v", "2\n3\n9\n", 6);
    support_expect_error("twin.e", "2 3\n", NULL, DMG_ERR_FORMAT, "Graphalytics");
    support_expect("twin.e", "2 3\n", &forced, "2 3", "2>3");
    unlink(support_path("twin.v"));
    support_write("twin.v.gz", "2\n3\n9\n", 6);
    support_expect_error("twin.e.gz", "2 3\n", NULL, DMG_ERR_FORMAT, "Graphalytics");
    support_write("web.properties", "nodes=3\n", 8);
    support_expect_error("web.graph", "2 3\n", NULL, DMG_ERR_FORMAT, "WebGraph");
}

static void lists_of_two_neighbours_are_metis_whatever_their_name(void)
{
    static const char ring[] = "% METIS\n4 4\n2 4\n1 3\n2 4\n1 3\n";
    support_expect_error("g.txt", ring, NULL, DMG_ERR_FORMAT, "g.txt:2: looks like METIS");
    support_expect_error("g.txt", "3 3\n2 3\n1 3\n1 2\n", NULL, DMG_ERR_FORMAT, "METIS");
    support_expect("g.txt", "3 3\n2 3\n1 3\n1 2\n", &forced, "1 2 3", "1>2 1>3 2>3 3>3");
    /* One number is another: no lists of neighbours. */
    support_expect("g.txt", "3 3\n2 3\n1 3\n1 1\n", NULL, "1 2 3", "1>1 1>3 2>3 3>3");
    support_expect("g.txt", "3 2\n2 3\n1 3\n1 2\n", NULL, "1 2 3", "1>2 1>3 2>3 3>2");
    support_expect("g.txt", "3 3\n2 3\n1 3\n1 2\n1 2\n", NULL, "1 2 3", "1>2 1>2 1>3 2>3 3>3");
    support_expect("g.txt", "3 3\n2 3\n1 3\n1 0\n", NULL, "0 1 2 3", "1>0 1>3 2>3 3>3");
    support_expect("g.txt", "3 3\n2 3\n1 3\n2 2\n", NULL, "1 2 3", "1>3 2>2 2>3 3>3");
    support_expect("g.txt", "3 3\n4294967296 3\n1 3\n1 2\n", NULL, "1 2 3 4294967296", "1>2 1>3 3>3 4294967296>3");
}

static void a_header_of_konect_that_changes_the_graph_is_refused(void)
{
    static const dmg_read_options undirected = {.direction = DMG_DIRECTION_UNDIRECTED};
    static const dmg_read_options directed = {.direction = DMG_DIRECTION_DIRECTED};
    static const char sym[] = "% sym unweighted\n% 1 2 2\n1 2\n";
    support_expect_error("out.k", sym, NULL, DMG_ERR_FORMAT, "out.k:1: looks like KONECT");
    support_expect("out.k", sym, &undirected, "1 2", "1>2 2>1");
    support_expect("out.k", sym, &directed, "1 2", "1>2");
    support_expect_error("out.k", "% bip positive\n1 1\n", &undirected, DMG_ERR_FORMAT, "bipartite");
    support_expect("out.k", "% bip positive\n1 2\n", &forced, "1 2", "1>2");
}

static void a_link_into_a_store_that_is_empty_says_how_to_fill_it(void)
{
    char link[512];
    snprintf(link, sizeof link, "%s", support_path("annexed.el"));
    CU_ASSERT_EQUAL(symlink("../.git/annex/objects/Zx/SHA256E-s12--4d7a.el", link), 0);
    dmg_graph graph;
    CU_ASSERT_EQUAL(dmg_graph_read(link, NULL, &graph, NULL), DMG_ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "git annex get"));
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(data_that_is_no_text_is_named_for_what_it_is),
        DMG_TEST(a_tar_archive_is_named_also_when_it_is_compressed),
        DMG_TEST(numbers_that_look_random_are_binary_data),
        DMG_TEST(text_of_another_format_is_named_for_what_it_is),
        DMG_TEST(a_name_that_belongs_to_another_format_is_refused),
        DMG_TEST(a_name_that_edge_lists_have_is_read),
        DMG_TEST(a_file_beside_it_tells_the_format),
        DMG_TEST(lists_of_two_neighbours_are_metis_whatever_their_name),
        DMG_TEST(a_header_of_konect_that_changes_the_graph_is_refused),
        DMG_TEST(a_link_into_a_store_that_is_empty_says_how_to_fill_it),
        {NULL, NULL},
    };
    if (dmg_suite_add("foreign formats", support_set_up, support_tear_down, tests)) {
        return 2;
    }
    return dmg_suites_run(argc, argv);
}
