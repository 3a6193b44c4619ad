/* dmgraph convert: any graph that dmgraph reads, as its binary form. */
#include "cli/base/exit_code.h"
#include "cli/base/output_file.h"
#include "cli/base/progress.h"
#include "cli/base/text.h"
#include "cli/graph/graph_source.h"
#include "cli/launcher/work_step.h"
#include "cli/options/command.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "formats/binary_form.h"

typedef struct conversion_work {
    const char *in;
    const char *out;
    dmg_read_options options;
    dmg_graph_source source;
    bool is_json;
    bool is_to_standard_output;
    double write_seconds;
} conversion_work;

static dmg_status convert(void *context)
{
    conversion_work *conversion = context;
    dmg_output_file *output = NULL;
    dmg_input_files inputs = {0};
    int file = -1;
    dmg_input_files_add_graph(&inputs, conversion->in);
    /* Opened first: a place that cannot be written to is noticed before the long read. */
    dmg_status status = dmg_output_file_open(conversion->out, &inputs, &output);
    conversion->is_to_standard_output = dmg_output_file_is_standard(output);
    if (status == DMG_OK && conversion->is_to_standard_output && conversion->is_json) {
        status = dmg_error(DMG_ERR_ARGUMENT, "convert: --json and the graph both want the standard output");
    }
    if (status == DMG_OK) {
        status = dmg_output_file_descriptor(output, &file);
    }
    if (status == DMG_OK) {
        status = dmg_graph_source_read(conversion->in, &conversion->options, &conversion->source);
    }
    uint64_t started_ns = dmg_now_ns();
    if (status == DMG_OK) {
        status = dmg_binary_form_write(&conversion->source.graph, file, conversion->out);
    }
    if (status == DMG_OK) {
        status = dmg_output_file_commit(output);
    }
    conversion->write_seconds = (double)(dmg_now_ns() - started_ns) / 1e9;
    dmg_output_file_close(output);
    return status;
}

static void print(const conversion_work *conversion)
{
    const dmg_graph *graph = &conversion->source.graph;
    FILE *to = conversion->is_to_standard_output ? stderr : stdout;
    if (conversion->is_json) {
        json_t *object = json_object();
        json_object_set_new(object, "graph", dmg_graph_source_json(conversion->in, &conversion->source));
        json_object_set_new(object, "output", dmg_json_text(conversion->out));
        json_object_set_new(object, "has_in_lists", json_boolean(graph->in.offsets));
        json_object_set_new(object, "write_seconds", json_real(conversion->write_seconds));
        dmg_json_print(object);
        return;
    }
    dmg_graph_source_print(to, conversion->in, &conversion->source);
    fprintf(to, "written    %s (%s)\n", conversion->out,
            !graph->is_directed ? "undirected: stored once"
            : graph->in.offsets ? "lists along and against the arcs"
                                : "lists along the arcs only");
    fprintf(to, "time       read %s, write %s\n", dmg_text_seconds(conversion->source.report.seconds).text,
            dmg_text_seconds(conversion->write_seconds).text);
}

static int run(dmg_settings *settings)
{
    conversion_work conversion = {
        .in = settings->positionals[0], .out = settings->positionals[1], .source = {.file = -1}};
    dmg_status status = dmg_graph_source_options(settings, &conversion.options);
    if (status != DMG_OK) {
        return dmg_exit_with_error(status);
    }
    conversion.is_json = dmg_flag(settings, DMG_OPTION_JSON);
    dmg_progress_bar *bar = dmg_progress_bar_create(!dmg_flag(settings, DMG_OPTION_NO_PROGRESS));
    conversion.options.with_reverse = !dmg_flag(settings, DMG_OPTION_OUT_LISTS_ONLY);
    conversion.options.progress = dmg_progress_bar_show;
    conversion.options.progress_context = bar;
    int code = dmg_work_step_run(convert, &conversion);
    dmg_progress_bar_destroy(bar);
    if (code == DMG_EXIT_OK && (conversion.is_json || !dmg_flag(settings, DMG_OPTION_QUIET))) {
        print(&conversion);
    }
    dmg_graph_source_close(&conversion.source);
    return code;
}

static const dmg_option_id options[] = {DMG_OPTION_FORMAT,         DMG_OPTION_DIRECTED,  DMG_OPTION_UNDIRECTED,
                                        DMG_OPTION_UNWEIGHTED,     DMG_OPTION_DEDUP,     DMG_OPTION_NO_LOOPS,
                                        DMG_OPTION_OUT_LISTS_ONLY, DMG_OPTION_JSON,      DMG_OPTION_QUIET,
                                        DMG_OPTION_NO_PROGRESS,    DMG_OPTION_LOG_LEVEL, DMG_OPTION_HELP,
                                        DMG_OPTION_HELP_ALL,       DMG_OPTION_COUNT};

const dmg_command dmg_command_convert = {
    .name = "convert",
    .arguments = "IN OUT",
    .argument_count = 2,
    .summary = "write a graph in dmgraph's binary form, which loads at the speed of the disk",
    .details =
        "IN is an edge list, a Matrix Market file (both also compressed by gzip, zstd or xz), or a binary form;\n"
        "- is the standard input. A directed graph is stored along and against its arcs, unless --out-lists-only is "
        "given.\n"
        "OUT appears whole or not at all; - is the standard output.\n",
    .options = options,
    .run = run};
