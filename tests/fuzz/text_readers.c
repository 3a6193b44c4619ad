/*
 * Every reader, on any bytes. The first byte chooses format and options, the rest is the file. What is read must be a
 * graph: the lists within bounds and ascending, and the same after a round trip through the binary form.
 *
 *   fuzz-text_readers -max_total_time=60 -max_len=4096 CORPUS
 */
#include "formats/binary_form.h"
#include "formats/binary_layout.h"
#include "formats/graph_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool claim)
{
    if (!claim) {
        abort();
    }
}

static void check_lists(const dmg_graph *graph, const dmg_adjacency *lists)
{
    require(lists->offsets[0] == 0 && lists->offsets[graph->vertex_count] == graph->arc_count);
    for (uint64_t v = 0; v < graph->vertex_count; v++) {
        require(lists->offsets[v] <= lists->offsets[v + 1]);
        for (uint64_t arc = lists->offsets[v]; arc < lists->offsets[v + 1]; arc++) {
            require(lists->destinations[arc] < graph->vertex_count);
            require(arc == lists->offsets[v] || lists->destinations[arc - 1] <= lists->destinations[arc]);
        }
    }
    require((lists->weights != NULL) == (graph->weight_kind != DMG_WEIGHT_NONE));
}

static void check_graph(const dmg_graph *graph)
{
    check_lists(graph, &graph->out);
    if (graph->in.offsets) {
        check_lists(graph, &graph->in);
    }
    for (uint64_t v = 1; graph->ids && v < graph->vertex_count; v++) {
        require(graph->ids[v - 1] < graph->ids[v]);
    }
}

static void check_round_trip(const dmg_graph *graph)
{
    int file = memfd_create("round trip", MFD_CLOEXEC);
    dmg_graph again;
    require(dmg_binary_form_write(graph, file, "round trip") == DMG_OK);
    require(dmg_binary_form_map(file, "round trip", true, NULL, &again) == DMG_OK);
    require(again.vertex_count == graph->vertex_count && again.arc_count == graph->arc_count);
    require(memcmp(again.out.destinations, graph->out.destinations, graph->arc_count * sizeof(uint32_t)) == 0);
    dmg_graph_close(&again);
    close(file);
}

/** Give a binary file right checksums, so that what is behind them is reached. */
static void sign(unsigned char *bytes, size_t size)
{
    dmg_binary_header header;
    memcpy(&header, bytes, sizeof header);
    for (int i = 0; i < DMG_SECTIONS; i++) {
        uint64_t begin = header.sections[i].offset;
        uint64_t end = i + 1 < DMG_SECTIONS ? header.sections[i + 1].offset : header.file_bytes;
        if (begin <= end && end <= size) {
            header.sections[i].crc32 = (uint32_t)crc32_z(0, bytes + begin, end - begin);
        }
    }
    header.header_crc32 = 0;
    header.header_crc32 = (uint32_t)crc32_z(0, (const Bytef *)&header, sizeof header);
    memcpy(bytes, &header, sizeof header);
}

/** The fuzzer's bytes as a file. */
static int make_file(const uint8_t *data, size_t size)
{
    int file = memfd_create("input", MFD_CLOEXEC);
    unsigned char *bytes = malloc(size + 1);
    require(file >= 0 && bytes);
    memcpy(bytes, data, size);
    if (size >= sizeof(dmg_binary_header) && memcmp(bytes, dmg_binary_magic, DMG_BINARY_MAGIC_BYTES) == 0) {
        sign(bytes, size);
    }
    require(write(file, bytes, size) == (ssize_t)size);
    free(bytes);
    return file;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    dmg_read_options options = {
        .format = (dmg_format)(data[0] & 3),
        .direction = (dmg_direction_choice)((data[0] >> 2) % 3),
        .weights = data[0] & 16 ? DMG_WEIGHTS_IGNORED : DMG_WEIGHTS_BY_FILE,
        .drop_repeats = data[0] & 32,
        .drop_loops = data[0] & 64,
        .with_reverse = data[0] & 128,
    };
    int file = make_file(data + 1, size - 1);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    dmg_graph graph;
    dmg_read_report report;
    dmg_status status = dmg_graph_read(path, &options, &graph, &report);
    if (status == DMG_OK) {
        check_graph(&graph);
        check_round_trip(&graph);
        dmg_graph_close(&graph);
    } else {
        require(dmg_error_message()[0] != '\0' && graph.owner == NULL);
    }
    close(file);
    return 0;
}
