#include "unit/formats/support.h"

#include <dirent.h>
#include <inttypes.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define TEXT_BYTES 65536

static char folder[64];
static char path_of_file[512];

int support_set_up(void)
{
    strcpy(folder, "/tmp/dmgraph-formats-XXXXXX");
    return mkdtemp(folder) ? 0 : 1;
}

int support_tear_down(void)
{
    DIR *open_folder = opendir(folder);
    if (!open_folder) {
        return 1;
    }
    for (struct dirent *entry = readdir(open_folder); entry; entry = readdir(open_folder)) {
        if (entry->d_name[0] != '.') {
            unlink(support_path(entry->d_name));
        }
    }
    closedir(open_folder);
    return rmdir(folder);
}

const char *support_path(const char *name)
{
    snprintf(path_of_file, sizeof path_of_file, "%s/%s", folder, name);
    return path_of_file;
}

const char *support_write(const char *name, const void *bytes, size_t count)
{
    FILE *file = fopen(support_path(name), "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(bytes, 1, count, file), count);
    CU_ASSERT_EQUAL(fclose(file), 0);
    return path_of_file;
}

dmg_status support_read_as(const char *name, const char *text, const dmg_read_options *options, dmg_graph *graph,
                           dmg_read_report *report)
{
    return dmg_graph_read(support_write(name, text, strlen(text)), options, graph, report);
}

dmg_status support_read(const char *text, const dmg_read_options *options, dmg_graph *graph, dmg_read_report *report)
{
    return support_read_as("graph.el", text, options, graph, report);
}

const char *support_arcs(const dmg_graph *graph)
{
    static char text[TEXT_BYTES];
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t v = 0; v < graph->vertex_count; v++) {
        for (uint64_t arc = graph->out.offsets[v]; arc < graph->out.offsets[v + 1]; arc++) {
            length += (size_t)snprintf(text + length, sizeof text - length, "%s%" PRIu64 ">%" PRIu64, length ? " " : "",
                                       dmg_graph_id(graph, v), dmg_graph_id(graph, graph->out.destinations[arc]));
            if (graph->weight_kind == DMG_WEIGHT_INT32) {
                length += (size_t)snprintf(text + length, sizeof text - length, ":%" PRId32,
                                           graph->out.weights[arc].as_int32);
            } else if (graph->weight_kind == DMG_WEIGHT_FLOAT32) {
                length += (size_t)snprintf(text + length, sizeof text - length, ":%g",
                                           (double)graph->out.weights[arc].as_float32);
            }
        }
    }
    return text;
}

void support_expect(const char *name, const char *text, const dmg_read_options *options, const char *vertices,
                    const char *arcs)
{
    dmg_graph graph;
    dmg_status status = support_read_as(name, text, options, &graph, NULL);
    if (status != DMG_OK) {
        printf("\n    refused: %s\n", dmg_error_message());
    }
    CU_ASSERT_EQUAL(status, DMG_OK);
    if (status != DMG_OK) {
        return;
    }
    char ids[TEXT_BYTES] = "";
    size_t length = 0;
    for (uint32_t v = 0; v < graph.vertex_count; v++) {
        length +=
            (size_t)snprintf(ids + length, sizeof ids - length, "%s%" PRIu64, v ? " " : "", dmg_graph_id(&graph, v));
        CU_ASSERT_EQUAL(dmg_graph_find(&graph, dmg_graph_id(&graph, v)), v);
    }
    if (strcmp(ids, vertices) != 0 || strcmp(support_arcs(&graph), arcs) != 0) {
        printf("\n    vertices %s, arcs %s\n", ids, support_arcs(&graph));
    }
    CU_ASSERT_STRING_EQUAL(ids, vertices);
    CU_ASSERT_STRING_EQUAL(support_arcs(&graph), arcs);
    CU_ASSERT_EQUAL(graph.out.offsets[graph.vertex_count], graph.arc_count);
    dmg_graph_close(&graph);
}

void support_expect_error(const char *name, const char *text, const dmg_read_options *options, dmg_status status,
                          const char *message)
{
    dmg_graph graph;
    dmg_status got = support_read_as(name, text, options, &graph, NULL);
    CU_ASSERT_EQUAL(got, status);
    if (got == DMG_OK) {
        dmg_graph_close(&graph);
        return;
    }
    if (!strstr(dmg_error_message(), message)) {
        printf("\n    \"%s\" is not in \"%s\"\n", message, dmg_error_message());
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), message));
    CU_ASSERT_PTR_NULL(graph.owner);
}

static bool same_lists(const dmg_adjacency *a, const dmg_adjacency *b, uint64_t vertex_count)
{
    if (!a->offsets || !b->offsets) {
        return a->offsets == b->offsets;
    }
    if (memcmp(a->offsets, b->offsets, (vertex_count + 1) * sizeof *a->offsets) != 0) {
        return false;
    }
    uint64_t arcs = a->offsets[vertex_count];
    return memcmp(a->destinations, b->destinations, arcs * sizeof *a->destinations) == 0 &&
           (a->weights == NULL) == (b->weights == NULL) &&
           (!a->weights || memcmp(a->weights, b->weights, arcs * sizeof *a->weights) == 0);
}

bool support_same_graphs(const dmg_graph *a, const dmg_graph *b)
{
    if (a->vertex_count != b->vertex_count || a->arc_count != b->arc_count || a->is_directed != b->is_directed ||
        a->weight_kind != b->weight_kind || a->loop_arcs != b->loop_arcs || a->repeated_arcs != b->repeated_arcs ||
        a->negative_line != b->negative_line || strcmp(a->negative_source, b->negative_source) != 0) {
        return false;
    }
    for (uint32_t v = 0; v < a->vertex_count; v++) {
        if (dmg_graph_id(a, v) != dmg_graph_id(b, v)) {
            return false;
        }
    }
    return same_lists(&a->out, &b->out, a->vertex_count) && same_lists(&a->in, &b->in, a->vertex_count);
}

static size_t compress_gzip(const void *bytes, size_t count, unsigned char *out, size_t capacity)
{
    z_stream stream = {0};
    CU_ASSERT_EQUAL_FATAL(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)bytes;
    stream.avail_in = (uInt)count;
    stream.next_out = out;
    stream.avail_out = (uInt)capacity;
    CU_ASSERT_EQUAL_FATAL(deflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t made = stream.total_out;
    deflateEnd(&stream);
    return made;
}

unsigned char *support_compress(const char *kind, const void *bytes, size_t count, size_t *compressed)
{
    size_t capacity = count * 2 + 1024;
    unsigned char *out = malloc(capacity);
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    if (strcmp(kind, "gzip") == 0) {
        *compressed = compress_gzip(bytes, count, out, capacity);
    } else if (strcmp(kind, "zstd") == 0) {
        *compressed = ZSTD_compress(out, capacity, bytes, count, 3);
        CU_ASSERT_FALSE_FATAL(ZSTD_isError(*compressed));
    } else {
        *compressed = 0;
        CU_ASSERT_EQUAL_FATAL(
            lzma_easy_buffer_encode(0, LZMA_CHECK_CRC64, NULL, bytes, count, out, compressed, capacity), LZMA_OK);
    }
    return out;
}
