/* The binary form: what is written is what is mapped, and nothing else is mapped. */
#include "formats/binary_form.h"
#include "formats/binary_layout.h"
#include "formats/kronecker.h"
#include "unit/formats/support.h"
#include "unit/support/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static int open_memory(void)
{
    int file = memfd_create("graph", MFD_CLOEXEC);
    CU_ASSERT_FATAL(file >= 0);
    return file;
}

static int write_graph(const dmg_graph *graph)
{
    int file = open_memory();
    CU_ASSERT_EQUAL_FATAL(dmg_binary_form_write(graph, file, "memory"), DMG_OK);
    return file;
}

/** The bytes of a small weighted graph with its reverse, loops, repeats and ids with gaps. */
static unsigned char *sample(size_t *count)
{
    dmg_graph graph;
    dmg_read_options options = {.with_reverse = true};
    CU_ASSERT_EQUAL_FATAL(support_read("0 7 -1\n0 7 2\n7 7 3\n9 0 4\n", &options, &graph, NULL), DMG_OK);
    int file = write_graph(&graph);
    dmg_graph_close(&graph);
    struct stat about;
    CU_ASSERT_EQUAL_FATAL(fstat(file, &about), 0);
    *count = (size_t)about.st_size;
    unsigned char *bytes = malloc(*count);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    CU_ASSERT_EQUAL_FATAL(pread(file, bytes, *count, 0), (ssize_t)*count);
    close(file);
    return bytes;
}

static dmg_status map_bytes(const void *bytes, size_t count, bool check_contents, dmg_graph *graph)
{
    int file = open_memory();
    CU_ASSERT_EQUAL_FATAL(pwrite(file, bytes, count, 0), (ssize_t)count);
    dmg_status status = dmg_binary_form_map(file, "memory", check_contents, NULL, graph);
    close(file);
    return status;
}

static void expect_refused(const void *bytes, size_t count, bool check_contents, const char *message)
{
    dmg_graph graph;
    dmg_status status = map_bytes(bytes, count, check_contents, &graph);
    CU_ASSERT_EQUAL(status, DMG_ERR_FORMAT);
    if (status == DMG_OK) {
        dmg_graph_close(&graph);
        return;
    }
    if (!strstr(dmg_error_message(), message)) {
        printf("\n    \"%s\" is not in \"%s\"\n", message, dmg_error_message());
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), message));
}

/** Make a changed header pass its checksum, as one that was made on purpose would. */
static void sign(unsigned char *bytes)
{
    dmg_binary_header *header = (dmg_binary_header *)(void *)bytes;
    header->header_crc32 = 0;
    header->header_crc32 = (uint32_t)crc32_z(0, bytes, sizeof *header);
}

static void sign_section(unsigned char *bytes, int section)
{
    dmg_binary_header *header = (dmg_binary_header *)(void *)bytes;
    uint64_t end = section + 1 < DMG_SECTIONS ? header->sections[section + 1].offset : header->file_bytes;
    uint64_t offset = header->sections[section].offset;
    header->sections[section].crc32 = (uint32_t)crc32_z(0, bytes + offset, end - offset);
    sign(bytes);
}

static void graphs_come_back_as_they_were(void)
{
    static const char *const texts[] = {
        "", "0 1\n", "5 5\n", "0 1\n1 2\n2 0\n0 1\n", "0 1 5\n1 2 -6\n", "0 18446744073709551615 0.5\n7 7 1\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (int variant = 0; variant < 4; variant++) {
            dmg_read_options options = {.direction = variant & 1 ? DMG_DIRECTION_UNDIRECTED : DMG_DIRECTION_DIRECTED,
                                        .with_reverse = variant & 2};
            dmg_graph graph;
            dmg_graph mapped;
            CU_ASSERT_EQUAL_FATAL(support_read(texts[i], &options, &graph, NULL), DMG_OK);
            int file = write_graph(&graph);
            CU_ASSERT_EQUAL_FATAL(dmg_binary_form_map(file, "memory", true, NULL, &mapped), DMG_OK);
            close(file);
            CU_ASSERT_TRUE(support_same_graphs(&graph, &mapped));
            CU_ASSERT_PTR_NOT_NULL(mapped.out.offsets);
            dmg_graph_close(&mapped);
            dmg_graph_close(&graph);
        }
    }
}

static void large_graphs_come_back_as_they_were(void)
{
    dmg_kronecker_options options = {
        .scale = 15, .edge_factor = 16, .seed = 2, .is_weighted = true, .is_directed = true, .with_reverse = true};
    dmg_graph graph;
    dmg_graph mapped;
    CU_ASSERT_EQUAL_FATAL(dmg_kronecker_generate(&options, &graph), DMG_OK);
    int file = write_graph(&graph);
    CU_ASSERT_EQUAL_FATAL(dmg_binary_form_map(file, "memory", true, NULL, &mapped), DMG_OK);
    close(file);
    CU_ASSERT_TRUE(support_same_graphs(&graph, &mapped));
    dmg_graph_close(&mapped);
    dmg_graph_close(&graph);
}

static void the_reader_maps_a_binary_file(void)
{
    size_t count;
    unsigned char *bytes = sample(&count);
    dmg_graph graph;
    dmg_read_report report;
    CU_ASSERT_EQUAL_FATAL(dmg_graph_read(support_write("graph.txt", bytes, count), NULL, &graph, &report), DMG_OK);
    CU_ASSERT_EQUAL(report.format, DMG_FORMAT_BINARY);
    CU_ASSERT_EQUAL(report.file_bytes, count);
    CU_ASSERT_STRING_EQUAL(support_arcs(&graph), "0>7:-1 0>7:2 7>7:3 9>0:4");
    CU_ASSERT_EQUAL(graph.negative_line, 1);
    CU_ASSERT_EQUAL(graph.loop_arcs, 1);
    CU_ASSERT_EQUAL(graph.repeated_arcs, 1);
    CU_ASSERT_PTR_NOT_NULL(dmg_graph_in(&graph));
    dmg_graph_close(&graph);
    dmg_read_options options = {.format = DMG_FORMAT_BINARY};
    support_expect_error("text", "0 1\n", &options, DMG_ERR_FORMAT, "truncated");
    free(bytes);
}

static void options_apply_to_a_binary_file_too(void)
{
    size_t count;
    unsigned char *bytes = sample(&count);
    char path[512];
    snprintf(path, sizeof path, "%s", support_write("graph.dmg", bytes, count));
    free(bytes);
    static const struct {
        dmg_read_options options;
        const char *arcs;
    } cases[] = {
        {{.drop_repeats = true}, "0>7:-1 7>7:3 9>0:4"},
        {{.drop_loops = true}, "0>7:-1 0>7:2 9>0:4"},
        {{.weights = DMG_WEIGHTS_IGNORED}, "0>7 0>7 7>7 9>0"},
        {{.direction = DMG_DIRECTION_UNDIRECTED, .drop_repeats = true}, "0>7:-1 0>9:4 7>0:-1 7>7:3 9>0:4"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dmg_graph graph;
        dmg_read_report report;
        CU_ASSERT_EQUAL_FATAL(dmg_graph_read(path, &cases[i].options, &graph, &report), DMG_OK);
        CU_ASSERT_STRING_EQUAL(support_arcs(&graph), cases[i].arcs);
        CU_ASSERT_EQUAL(dmg_graph_find(&graph, 9), 2);
        dmg_graph_close(&graph);
    }
}

static void an_undirected_binary_file_can_be_read_as_directed_and_back(void)
{
    dmg_read_options undirected = {.direction = DMG_DIRECTION_UNDIRECTED};
    dmg_read_options directed = {.direction = DMG_DIRECTION_DIRECTED, .with_reverse = true};
    dmg_graph graph;
    dmg_graph again;
    CU_ASSERT_EQUAL_FATAL(support_read("1 2 3\n2 3 4\n3 3 5\n1 2 6\n", &undirected, &graph, NULL), DMG_OK);
    int file = open(support_path("graph.dmg"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    CU_ASSERT_FATAL(file >= 0);
    CU_ASSERT_EQUAL_FATAL(dmg_binary_form_write(&graph, file, "graph.dmg"), DMG_OK);
    close(file);
    CU_ASSERT_EQUAL_FATAL(dmg_graph_read(support_path("graph.dmg"), &directed, &again, NULL), DMG_OK);
    CU_ASSERT_TRUE(again.is_directed);
    CU_ASSERT_EQUAL(again.arc_count, graph.arc_count);
    CU_ASSERT_STRING_EQUAL(support_arcs(&again), "1>2:3 1>2:6 2>1:3 2>1:6 2>3:4 3>2:4 3>3:5");
    CU_ASSERT_PTR_NOT_NULL(again.in.offsets);
    dmg_graph_close(&again);
    dmg_read_options simple = {.drop_repeats = true, .drop_loops = true};
    CU_ASSERT_EQUAL_FATAL(dmg_graph_read(support_path("graph.dmg"), &simple, &again, NULL), DMG_OK);
    CU_ASSERT_FALSE(again.is_directed);
    CU_ASSERT_STRING_EQUAL(support_arcs(&again), "1>2:3 2>1:3 2>3:4 3>2:4");
    dmg_graph_close(&again);
    dmg_graph_close(&graph);
}

static void every_truncation_is_refused(void)
{
    size_t count;
    unsigned char *bytes = sample(&count);
    for (size_t length = 0; length < count; length += length < 4096 || length > count - 64 ? 1 : 61) {
        expect_refused(bytes, length, false, "truncated");
    }
    free(bytes);
}

static void trailing_bytes_are_refused(void)
{
    size_t count;
    unsigned char *bytes = sample(&count);
    bytes = realloc(bytes, count + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    bytes[count] = 0;
    expect_refused(bytes, count + 1, false, "trailing bytes");
    free(bytes);
}

static void every_flipped_bit_of_the_header_is_refused(void)
{
    size_t count;
    unsigned char *bytes = sample(&count);
    /* Every bit that has a meaning, and a sample of the reserved ones. */
    size_t meaning = offsetof(dmg_binary_header, reserved) * 8;
    for (size_t bit = 0; bit < sizeof(dmg_binary_header) * 8; bit += bit < meaning ? 1 : 97) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        expect_refused(bytes, count, false, "memory: ");
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(bytes);
}

static void every_flipped_bit_behind_the_header_is_refused_when_contents_are_checked(void)
{
    size_t count;
    unsigned char *bytes = sample(&count);
    for (size_t bit = sizeof(dmg_binary_header) * 8; bit < count * 8; bit += 11 + bit % 5) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        expect_refused(bytes, count, true, "memory: ");
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(bytes);
}

static void byte_order_version_and_mark_have_their_own_messages(void)
{
    size_t count;
    unsigned char *bytes = sample(&count);
    dmg_binary_header *header = (dmg_binary_header *)(void *)bytes;
    header->byte_order = __builtin_bswap32(header->byte_order);
    sign(bytes);
    expect_refused(bytes, count, false, "other byte order");
    header->byte_order = DMG_BINARY_BYTE_ORDER;
    header->version = 2;
    sign(bytes);
    expect_refused(bytes, count, false, "version 2");
    header->version = DMG_BINARY_VERSION;
    header->magic[1] = 'X';
    sign(bytes);
    expect_refused(bytes, count, false, "does not start with the mark");
    header->magic[1] = 'D';
    header->header_crc32 ^= 1;
    expect_refused(bytes, count, false, "wrong checksum of the header");
    sign(bytes);
    bytes[count - 1] ^= 1;
    expect_refused(bytes, count, true, "wrong checksum of section \"tiny-chunks\"");
    free(bytes);
}

static void headers_that_lie_with_a_right_checksum_are_refused(void)
{
    static const uint64_t values[] = {
        0, 1, 2, 5, 4096, UINT32_MAX, UINT64_C(1) << 32, UINT64_C(1) << 61, UINT64_MAX - 1, UINT64_MAX};
    size_t count;
    unsigned char *good = sample(&count);
    unsigned char *bytes = malloc(count);
    CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
    /* The counts, sizes and the section table; the checksum's own field is signed over. */
    for (size_t field = 16; field < offsetof(dmg_binary_header, negative_source); field += 4) {
        for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
            for (size_t width = 4; width <= 8; width += 4) {
                memcpy(bytes, good, count);
                memcpy(bytes + field, &values[i], width);
                sign(bytes);
                dmg_graph graph;
                if (map_bytes(bytes, count, false, &graph) == DMG_OK) {
                    /* A field that is allowed to differ; all lists must still lie within the file. */
                    CU_ASSERT_EQUAL(graph.vertex_count, 3);
                    CU_ASSERT_EQUAL(graph.arc_count, 4);
                    CU_ASSERT_EQUAL(graph.out.offsets[3], 4);
                    dmg_graph_close(&graph);
                }
            }
        }
    }
    free(bytes);
    free(good);
}

static void contents_that_lie_with_a_right_checksum_are_refused(void)
{
    size_t count;
    unsigned char *bytes = sample(&count);
    const dmg_binary_header *header = (const dmg_binary_header *)(const void *)bytes;
    uint64_t *offsets = (uint64_t *)(void *)(bytes + header->sections[DMG_SECTION_OUT_OFFSETS].offset);
    uint32_t *destinations = (uint32_t *)(void *)(bytes + header->sections[DMG_SECTION_OUT_DESTINATIONS].offset);
    uint64_t *ids = (uint64_t *)(void *)(bytes + header->sections[DMG_SECTION_IDS].offset);
    uint64_t *chunks = (uint64_t *)(void *)(bytes + header->sections[DMG_SECTION_TINY_CHUNKS].offset);

    offsets[1] = UINT64_MAX;
    sign_section(bytes, DMG_SECTION_OUT_OFFSETS);
    expect_refused(bytes, count, false, "offsets do not ascend");
    offsets[1] = 2;
    offsets[3] = 5;
    sign_section(bytes, DMG_SECTION_OUT_OFFSETS);
    expect_refused(bytes, count, false, "offsets do not ascend");
    offsets[3] = 4;
    sign_section(bytes, DMG_SECTION_OUT_OFFSETS);

    destinations[3] = 3;
    sign_section(bytes, DMG_SECTION_OUT_DESTINATIONS);
    expect_refused(bytes, count, true, "list of vertex 2 names 3");
    destinations[3] = 0;
    destinations[0] = 2;
    sign_section(bytes, DMG_SECTION_OUT_DESTINATIONS);
    expect_refused(bytes, count, true, "list of vertex 0 names 1");
    destinations[0] = 1;
    sign_section(bytes, DMG_SECTION_OUT_DESTINATIONS);

    ids[1] = ids[0];
    sign_section(bytes, DMG_SECTION_IDS);
    expect_refused(bytes, count, true, "ids do not ascend");
    ids[1] = 7;
    sign_section(bytes, DMG_SECTION_IDS);

    chunks[0] = 3;
    sign_section(bytes, DMG_SECTION_TINY_CHUNKS);
    expect_refused(bytes, count, false, "tiny-chunk 0");
    chunks[0] = 4;
    sign_section(bytes, DMG_SECTION_TINY_CHUNKS);
    dmg_graph graph;
    CU_ASSERT_EQUAL(map_bytes(bytes, count, true, &graph), DMG_OK);
    dmg_graph_close(&graph);
    free(bytes);
}

static void tiny_chunks_count_the_arcs_of_at_most_1024_ranges(void)
{
    dmg_kronecker_options options = {.scale = 17, .edge_factor = 2, .seed = 5};
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(dmg_kronecker_generate(&options, &graph), DMG_OK);
    int file = write_graph(&graph);
    dmg_binary_header header;
    CU_ASSERT_EQUAL_FATAL(pread(file, &header, sizeof header, 0), (ssize_t)sizeof header);
    CU_ASSERT_EQUAL(header.tiny_chunk_vertices % 64, 0);
    CU_ASSERT(header.tiny_chunk_count <= 1024);
    CU_ASSERT((header.tiny_chunk_count - 1) * header.tiny_chunk_vertices < graph.vertex_count);
    CU_ASSERT(header.tiny_chunk_count * header.tiny_chunk_vertices >= graph.vertex_count);
    uint64_t arcs[1024];
    ssize_t bytes = (ssize_t)(header.tiny_chunk_count * sizeof arcs[0]);
    CU_ASSERT_EQUAL_FATAL(pread(file, arcs, (size_t)bytes, (off_t)header.sections[DMG_SECTION_TINY_CHUNKS].offset),
                          bytes);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < header.tiny_chunk_count; i++) {
        sum += arcs[i];
        uint64_t end = (i + 1) * header.tiny_chunk_vertices;
        CU_ASSERT_EQUAL(sum, graph.out.offsets[end < graph.vertex_count ? end : graph.vertex_count]);
    }
    CU_ASSERT_EQUAL(sum, graph.arc_count);
    close(file);
    dmg_graph_close(&graph);
}

/* Without a program that looks after a mapping there is none: cutting the file short must not end the process. */
static void a_graph_outlives_its_file_being_cut_short(void)
{
    size_t count;
    unsigned char *bytes = sample(&count);
    dmg_graph graph;
    int file = open_memory();
    CU_ASSERT_EQUAL_FATAL(pwrite(file, bytes, count, 0), (ssize_t)count);
    CU_ASSERT_EQUAL_FATAL(dmg_binary_form_map(file, "memory", true, NULL, &graph), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(ftruncate(file, 0), 0);
    CU_ASSERT_EQUAL(graph.out.offsets[graph.vertex_count], graph.arc_count);
    CU_ASSERT(graph.out.destinations[graph.arc_count - 1] < graph.vertex_count);
    dmg_graph_close(&graph);
    close(file);
    free(bytes);
}

static void who_looks_after_a_mapping_is_told_where_it_is(void)
{
    size_t count;
    unsigned char *bytes = sample(&count);
    dmg_mapped_range range = {0};
    dmg_graph graph;
    dmg_graph second;
    int file = open_memory();
    CU_ASSERT_EQUAL_FATAL(pwrite(file, bytes, count, 0), (ssize_t)count);
    CU_ASSERT_EQUAL_FATAL(dmg_binary_form_map(file, "memory", true, &range, &graph), DMG_OK);
    uintptr_t offsets = (uintptr_t)graph.out.offsets;
    CU_ASSERT(range.first < offsets && offsets < range.last);
    CU_ASSERT_EQUAL(range.last - range.first, count);
    /* One range is one mapping's: the second is a copy. */
    CU_ASSERT_EQUAL_FATAL(dmg_binary_form_map(file, "memory", true, &range, &second), DMG_OK);
    uintptr_t others = (uintptr_t)second.out.offsets;
    CU_ASSERT(others < range.first || others >= range.last);
    dmg_graph_close(&second);
    CU_ASSERT(range.first < offsets);
    dmg_graph_close(&graph);
    CU_ASSERT_EQUAL(range.first, 0);
    close(file);
    free(bytes);
}

static void files_that_cannot_be_written_or_mapped_are_io_errors(void)
{
    dmg_graph graph;
    CU_ASSERT_EQUAL_FATAL(support_read("0 1\n", NULL, &graph, NULL), DMG_OK);
    int file = open("/dev/full", O_WRONLY);
    if (file >= 0) {
        CU_ASSERT_EQUAL(dmg_binary_form_write(&graph, file, "/dev/full"), DMG_ERR_IO);
        close(file);
    }
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    CU_ASSERT_EQUAL(dmg_binary_form_write(&graph, ends[1], "pipe"), DMG_ERR_IO);
    dmg_graph mapped;
    CU_ASSERT_EQUAL(dmg_binary_form_map(ends[0], "pipe", true, NULL, &mapped), DMG_ERR_IO);
    close(ends[0]);
    close(ends[1]);
    dmg_graph_close(&graph);
}

static void a_compressed_binary_file_is_refused_by_name(void)
{
    size_t count;
    size_t compressed_count;
    unsigned char *bytes = sample(&count);
    unsigned char *compressed = support_compress("zstd", bytes, count, &compressed_count);
    dmg_graph graph;
    CU_ASSERT_EQUAL(dmg_graph_read(support_write("graph.zst", compressed, compressed_count), NULL, &graph, NULL),
                    DMG_ERR_FORMAT);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "decompress it first"));
    free(bytes);
    free(compressed);
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(graphs_come_back_as_they_were),
        DMG_TEST(large_graphs_come_back_as_they_were),
        DMG_TEST(the_reader_maps_a_binary_file),
        DMG_TEST(options_apply_to_a_binary_file_too),
        DMG_TEST(an_undirected_binary_file_can_be_read_as_directed_and_back),
        DMG_TEST(every_truncation_is_refused),
        DMG_TEST(trailing_bytes_are_refused),
        DMG_TEST(every_flipped_bit_of_the_header_is_refused),
        DMG_TEST(every_flipped_bit_behind_the_header_is_refused_when_contents_are_checked),
        DMG_TEST(byte_order_version_and_mark_have_their_own_messages),
        DMG_TEST(headers_that_lie_with_a_right_checksum_are_refused),
        DMG_TEST(contents_that_lie_with_a_right_checksum_are_refused),
        DMG_TEST(tiny_chunks_count_the_arcs_of_at_most_1024_ranges),
        DMG_TEST(a_graph_outlives_its_file_being_cut_short),
        DMG_TEST(who_looks_after_a_mapping_is_told_where_it_is),
        DMG_TEST(files_that_cannot_be_written_or_mapped_are_io_errors),
        DMG_TEST(a_compressed_binary_file_is_refused_by_name),
        {NULL, NULL},
    };
    if (dmg_suite_add("binary form", support_set_up, support_tear_down, tests)) {
        return 2;
    }
    return dmg_suites_run(argc, argv);
}
