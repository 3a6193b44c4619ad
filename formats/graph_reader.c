#include "formats/graph_reader.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "formats/binary_form.h"
#include "formats/binary_layout.h"
#include "formats/foreign_format.h"
#include "formats/rebuild.h"
#include "formats/text_readers.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const char *dmg_format_name(dmg_format format)
{
    switch (format) {
    case DMG_FORMAT_EDGE_LIST:
        return "edge list";
    case DMG_FORMAT_MATRIX_MARKET:
        return "Matrix Market";
    case DMG_FORMAT_BINARY:
        return "dmgraph binary";
    case DMG_FORMAT_AUTO:
        break;
    }
    return "by content";
}

dmg_status dmg_text_reader_finish(const dmg_text_source *source, dmg_graph_builder *builder, uint64_t negative_line,
                                  dmg_graph *graph, dmg_read_report *report)
{
    dmg_builder_report built;
    dmg_status status = dmg_graph_builder_finish(builder, graph, &built);
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "%s", source->path);
    }
    report->lines = source->line;
    report->lines_skipped = source->skipped;
    report->loops_dropped = built.loops_dropped;
    report->repeats_dropped = built.repeats_dropped;
    report->weight_rounding = built.weight_rounding;
    graph->negative_line = negative_line;
    if (negative_line) {
        snprintf(graph->negative_source, sizeof graph->negative_source, "%s", source->path);
    }
    return DMG_OK;
}

/** The banner with one percent sign too few is a known mistake: taken for a comment, the size line would be an edge. */
static bool has_banner(const char *text, size_t bytes)
{
    static const char banner[] = "%%MatrixMarket";
    size_t begin = 0;
    while (begin < bytes && (dmg_is_blank(text[begin]) || dmg_is_line_end(text[begin]))) {
        begin++;
    }
    text += begin;
    bytes -= begin;
    return (bytes >= sizeof banner - 1 && strncasecmp(text, banner, sizeof banner - 1) == 0) ||
           (bytes >= sizeof banner - 2 && strncasecmp(text, banner + 1, sizeof banner - 2) == 0);
}

static dmg_status read_text(const char *path, dmg_input_stream *input, const dmg_read_options *options,
                            dmg_graph *graph, dmg_read_report *report)
{
    dmg_text_source source;
    const char *begin = NULL;
    size_t bytes = 0;
    dmg_status status = dmg_text_source_open(&source, path, input, options);
    if (status == DMG_OK) {
        status = dmg_text_source_peek(&source, &begin, &bytes);
    }
    if (status == DMG_OK && bytes >= DMG_BINARY_MAGIC_BYTES &&
        memcmp(begin, dmg_binary_magic, DMG_BINARY_MAGIC_BYTES) == 0) {
        status = dmg_error(
            DMG_ERR_FORMAT,
            "%s: dmgraph's binary form, compressed: expected it as it is, it is mapped; decompress it first", path);
    }
    if (status == DMG_OK && !(options->format == DMG_FORMAT_AUTO && has_banner(begin, bytes))) {
        status = dmg_foreign_format_check(path, begin, bytes, options);
    }
    if (status == DMG_OK) {
        report->format = options->format != DMG_FORMAT_AUTO ? options->format
                         : has_banner(begin, bytes)         ? DMG_FORMAT_MATRIX_MARKET
                                                            : DMG_FORMAT_EDGE_LIST;
        bool guard_size_line = options->format == DMG_FORMAT_AUTO && dmg_path_has_suffix(path, "mtx");
        status = report->format == DMG_FORMAT_MATRIX_MARKET
                     ? dmg_matrix_market_read(&source, options, graph, report)
                     : dmg_edge_list_read(&source, options, guard_size_line, graph, report);
    }
    dmg_text_source_close(&source);
    return status;
}

static void leave_out_weights(dmg_graph *graph)
{
    graph->weight_kind = DMG_WEIGHT_NONE;
    graph->out.weights = NULL;
    graph->in.weights = NULL;
    graph->negative_line = 0;
    graph->negative_source[0] = '\0';
}

/** Map the form in `file`; the graph is then that mapping, or, with `*is_rebuilt`, made from it. */
static dmg_status map_binary(const char *path, int file, const dmg_read_options *options, dmg_graph *graph,
                             dmg_read_report *report, bool *is_rebuilt)
{
    dmg_status status = dmg_binary_form_map(file, path, true, options->mapped_range, graph);
    report->has_weights = graph->weight_kind != DMG_WEIGHT_NONE;
    *is_rebuilt = status == DMG_OK && dmg_rebuild_is_needed(graph, options);
    if (*is_rebuilt) {
        dmg_graph mapped = *graph;
        status = dmg_rebuild(&mapped, options, graph, report);
        dmg_graph_close(&mapped);
    } else if (status == DMG_OK && options->weights == DMG_WEIGHTS_IGNORED) {
        leave_out_weights(graph);
    }
    return status;
}

static dmg_status read_binary(const char *path, dmg_input_stream *input, const dmg_read_options *options,
                              dmg_graph *graph, dmg_read_report *report, int *form)
{
    report->format = DMG_FORMAT_BINARY;
    int file = -1;
    bool is_rebuilt = false;
    dmg_status status = dmg_input_stream_whole_file(input, &file);
    if (status != DMG_OK) {
        return status;
    }
    status = map_binary(path, file, options, graph, report, &is_rebuilt);
    if (status == DMG_OK && form && !is_rebuilt) {
        *form = file;
    } else {
        close(file);
    }
    return status;
}

/** A link into git-annex' store, which is how it shows a file that is not here. */
static bool is_annexed(const char *path)
{
    char target[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    return strstr(target, ".git/annex/objects/") != NULL;
}

dmg_status dmg_graph_open_file(const char *path, int *file)
{
    *file = open(path, O_RDONLY | O_CLOEXEC);
    if (*file >= 0) {
        return DMG_OK;
    }
    int why = errno;
    dmg_status status = dmg_error_errno(DMG_ERR_IO, why, "%s", path);
    return why == ENOENT && is_annexed(path)
               ? dmg_error(DMG_ERR_IO, "%s: git-annex has the graph's file elsewhere: fetch that first: git annex get",
                           path)
               : status;
}

dmg_status dmg_graph_read(const char *path, const dmg_read_options *options, dmg_graph *graph, dmg_read_report *report)
{
    int file;
    memset(graph, 0, sizeof *graph);
    dmg_status status = dmg_graph_open_file(path, &file);
    if (status == DMG_OK) {
        status = dmg_graph_read_file(file, path, options, graph, report, NULL);
        close(file);
    }
    return status;
}

dmg_status dmg_graph_read_file(int file, const char *name, const dmg_read_options *options, dmg_graph *graph,
                               dmg_read_report *report, int *form)
{
    static const dmg_read_options defaults = {0};
    dmg_read_report own_report;
    uint64_t start_ns = dmg_now_ns();
    options = options ? options : &defaults;
    report = report ? report : &own_report;
    memset(graph, 0, sizeof *graph);
    memset(report, 0, sizeof *report);
    if (form) {
        *form = -1;
    }
    dmg_input_stream *input;
    dmg_status status = dmg_input_stream_open(file, name, &input);
    if (status != DMG_OK) {
        return status;
    }
    report->file_bytes = dmg_input_stream_file_bytes(input);
    snprintf(report->compression, sizeof report->compression, "%s", dmg_input_stream_compression(input));
    const unsigned char *first;
    size_t first_bytes = dmg_input_stream_first_bytes(input, &first);
    bool is_binary = options->format == DMG_FORMAT_BINARY ||
                     (options->format == DMG_FORMAT_AUTO && first_bytes >= DMG_BINARY_MAGIC_BYTES &&
                      memcmp(first, dmg_binary_magic, DMG_BINARY_MAGIC_BYTES) == 0);
    status = is_binary ? read_binary(name, input, options, graph, report, form)
                       : read_text(name, input, options, graph, report);
    if (report->file_bytes == 0) {
        report->file_bytes = dmg_input_stream_consumed_bytes(input); /* a pipe */
    }
    dmg_input_stream_close(input);
    if (status != DMG_OK) {
        memset(graph, 0, sizeof *graph);
        return status;
    }
    report->seconds = (double)(dmg_now_ns() - start_ns) / 1e9;
    return DMG_OK;
}
