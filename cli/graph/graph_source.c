#include "cli/graph/graph_source.h"

#include "cli/base/file_guard.h"
#include "cli/base/text.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "formats/binary_form.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

dmg_status dmg_graph_source_options(const dmg_settings *settings, dmg_read_options *options)
{
    bool is_directed = dmg_flag(settings, DMG_OPTION_DIRECTED);
    bool is_undirected = dmg_flag(settings, DMG_OPTION_UNDIRECTED);
    if (is_directed && is_undirected) {
        return dmg_error(DMG_ERR_ARGUMENT, "--directed and --undirected exclude each other");
    }
    static const dmg_format formats[] = {DMG_FORMAT_AUTO, DMG_FORMAT_EDGE_LIST, DMG_FORMAT_MATRIX_MARKET,
                                         DMG_FORMAT_BINARY}; /* in the order of the option's words */
    *options = (dmg_read_options){
        .format = formats[dmg_number(settings, DMG_OPTION_FORMAT)],
        .direction = is_directed     ? DMG_DIRECTION_DIRECTED
                     : is_undirected ? DMG_DIRECTION_UNDIRECTED
                                     : DMG_DIRECTION_BY_FILE,
        .weights = dmg_flag(settings, DMG_OPTION_UNWEIGHTED) ? DMG_WEIGHTS_IGNORED : DMG_WEIGHTS_BY_FILE,
        .drop_repeats = dmg_flag(settings, DMG_OPTION_DEDUP),
        .drop_loops = dmg_flag(settings, DMG_OPTION_NO_LOOPS),
    };
    return DMG_OK;
}

const char *dmg_graph_source_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

/** A descriptor of the graph's file, opened once: a pipe has its content once. */
static dmg_status open_once(const char *path, int *file)
{
    if (strcmp(path, "-") != 0) {
        return dmg_graph_open_file(path, file);
    }
    int flags = fcntl(STDIN_FILENO, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY) {
        return dmg_error(DMG_ERR_IO, "the standard input is closed, or open for writing only: expected a graph from "
                                     "it, as '-' says");
    }
    *file = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return *file >= 0 ? DMG_OK : dmg_error_errno(DMG_ERR_IO, errno, "the standard input");
}

dmg_status dmg_graph_source_read(const char *path, const dmg_read_options *options, dmg_graph_source *source)
{
    memset(source, 0, sizeof *source);
    source->file = -1;
    source->ignores_weights = options->weights == DMG_WEIGHTS_IGNORED;
    int file;
    dmg_status status = open_once(path, &file);
    if (status == DMG_OK) {
        dmg_read_options guarded = *options;
        guarded.mapped_range = dmg_file_guard(dmg_graph_source_name(path));
        status = dmg_graph_read_file(file, dmg_graph_source_name(path), &guarded, &source->graph, &source->report,
                                     &source->file);
        close(file);
    }
    return status;
}

static dmg_status write_anonymous(const char *path, dmg_graph_source *source)
{
    int file = memfd_create("dmgraph-graph", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (file < 0) {
        return dmg_error_errno(DMG_ERR_IO, errno, "creating an anonymous file for the graph");
    }
    dmg_status status = dmg_binary_form_write(&source->graph, file, "the anonymous copy of the graph");
    if (status == DMG_OK && fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "sealing the anonymous copy of the graph");
    }
    dmg_graph mapped;
    if (status == DMG_OK) {
        status = dmg_binary_form_map(file, dmg_graph_source_name(path), false, NULL, &mapped);
    }
    if (status != DMG_OK) {
        close(file);
        return status;
    }
    dmg_graph_close(&source->graph);
    source->graph = mapped;
    source->file = file;
    return DMG_OK;
}

dmg_status dmg_graph_source_share(const char *path, dmg_graph_source *source)
{
    return source->file >= 0 ? DMG_OK : write_anonymous(path, source);
}

dmg_status dmg_graph_source_check_whole(const char *path, const dmg_graph_source *source)
{
    struct stat about;
    /* A copy that was made here is sealed, and has another length than what it was made of. */
    int seals = source->file >= 0 ? fcntl(source->file, F_GET_SEALS) : -1;
    bool is_own_copy = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
    if (source->file < 0 || is_own_copy || fstat(source->file, &about) != 0 ||
        (uint64_t)about.st_size >= source->report.file_bytes) {
        return DMG_OK;
    }
    return dmg_error(DMG_ERR_FORMAT,
                     "%s: was cut short while the nodes read it, to %" PRIu64 " bytes of %" PRIu64
                     ": run again when nobody writes to it",
                     dmg_graph_source_name(path), (uint64_t)about.st_size, source->report.file_bytes);
}

void dmg_graph_source_close(dmg_graph_source *source)
{
    dmg_graph_close(&source->graph);
    if (source->file >= 0) {
        close(source->file);
    }
    source->file = -1;
}

bool dmg_graph_source_warn_of_weights(const char *path, bool has_weights, const dmg_algorithm *algorithm,
                                      const char *remedy)
{
    bool are_lost = has_weights && algorithm->weights_would_matter;
    if (are_lost) {
        dmg_log(DMG_LOG_WARNING, "weights_not_used",
                "algorithm=%s graph=\"%s\" instead=\"each arc counts 1\" remedy=\"%s\"", algorithm->name,
                dmg_graph_source_name(path), remedy);
    }
    return are_lost;
}

static const char *weights_name(dmg_weight_kind kind)
{
    return kind == DMG_WEIGHT_INT32 ? "int32" : kind == DMG_WEIGHT_FLOAT32 ? "float32" : "none";
}

json_t *dmg_graph_source_json(const char *path, const dmg_graph_source *source)
{
    const dmg_graph *graph = &source->graph;
    const dmg_read_report *report = &source->report;
    json_t *object = json_object();
    json_object_set_new(object, "file", dmg_json_text(dmg_graph_source_name(path)));
    json_object_set_new(object, "format", json_string(dmg_format_name(report->format)));
    json_object_set_new(object, "compression", report->compression[0] ? json_string(report->compression) : json_null());
    json_object_set_new(object, "directed", json_boolean(graph->is_directed));
    json_object_set_new(object, "weights", json_string(weights_name(graph->weight_kind)));
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {{"vertices", graph->vertex_count},
                  {"arcs", graph->arc_count},
                  {"loops", graph->loop_arcs},
                  {"repeats", graph->repeated_arcs},
                  {"loops_dropped", report->loops_dropped},
                  {"repeats_dropped", report->repeats_dropped},
                  {"file_bytes", report->file_bytes},
                  {"lines", report->lines},
                  {"lines_skipped", report->lines_skipped},
                  {"edge_lines", report->edge_lines}};
    for (size_t index = 0; index < sizeof counts / sizeof counts[0]; index++) {
        json_object_set_new(object, counts[index].name, json_integer((json_int_t)counts[index].value));
    }
    json_object_set_new(object, "weight_rounding", json_real(report->weight_rounding));
    json_object_set_new(object, "read_seconds", json_real(report->seconds));
    if (graph->vertex_count > 0) {
        json_object_set_new(object, "smallest_id", dmg_json_id(dmg_graph_id(graph, 0)));
        json_object_set_new(object, "largest_id",
                            dmg_json_id(dmg_graph_id(graph, (uint32_t)(graph->vertex_count - 1))));
    }
    return object;
}

void dmg_graph_source_print(FILE *to, const char *path, const dmg_graph_source *source)
{
    const dmg_graph *graph = &source->graph;
    const dmg_read_report *report = &source->report;
    fprintf(to, "graph      %s (%s%s%s, %s)\n", dmg_graph_source_name(path), dmg_format_name(report->format),
            report->compression[0] ? ", " : "", report->compression, dmg_text_bytes(report->file_bytes).text);
    fprintf(to, "           %s vertices, %s arcs, %s, %s\n", dmg_text_count(graph->vertex_count).text,
            dmg_text_count(graph->arc_count).text, graph->is_directed ? "directed" : "undirected",
            source->ignores_weights                    ? "weights not used"
            : graph->weight_kind == DMG_WEIGHT_INT32   ? "integer weights"
            : graph->weight_kind == DMG_WEIGHT_FLOAT32 ? "float weights"
                                                       : "no weights");
    fprintf(to, "           loops: %s kept, %s dropped; repeats: %s kept, %s dropped\n",
            dmg_text_count(graph->loop_arcs).text, dmg_text_count(report->loops_dropped).text,
            dmg_text_count(graph->repeated_arcs).text, dmg_text_count(report->repeats_dropped).text);
    if (report->format != DMG_FORMAT_BINARY) {
        fprintf(to, "           lines: %s read, %s edges, %s skipped (comments, blank lines)\n",
                dmg_text_count(report->lines).text, dmg_text_count(report->edge_lines).text,
                dmg_text_count(report->lines_skipped).text);
    }
    if (report->weight_rounding > 0) {
        fprintf(to, "           weights were rounded to 32-bit floats, by %.1e at most\n", report->weight_rounding);
    }
}
