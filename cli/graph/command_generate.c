/* dmgraph generate kron: the Graph500 Kronecker generator, written as the binary form. */
#include "cli/base/exit_code.h"
#include "cli/base/output_file.h"
#include "cli/base/text.h"
#include "cli/launcher/work_step.h"
#include "cli/options/command.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "formats/binary_form.h"
#include "formats/kronecker.h"

typedef struct generation_work {
    const char *out;
    dmg_kronecker_options options;
    dmg_graph graph;
    bool is_json;
    bool is_to_standard_output;
    double generate_seconds;
    double write_seconds;
} generation_work;

static dmg_status generate(void *context)
{
    generation_work *generation = context;
    dmg_output_file *output = NULL;
    int file = -1;
    dmg_status status = dmg_output_file_open(generation->out, NULL, &output);
    generation->is_to_standard_output = dmg_output_file_is_standard(output);
    if (status == DMG_OK && generation->is_to_standard_output && generation->is_json) {
        status = dmg_error(DMG_ERR_ARGUMENT, "generate kron: --json and the graph both want the standard output");
    }
    if (status == DMG_OK) {
        status = dmg_output_file_descriptor(output, &file);
    }
    uint64_t started_ns = dmg_now_ns();
    if (status == DMG_OK) {
        status = dmg_kronecker_generate(&generation->options, &generation->graph);
    }
    uint64_t generated_ns = dmg_now_ns();
    if (status == DMG_OK) {
        status = dmg_binary_form_write(&generation->graph, file, generation->out);
    }
    if (status == DMG_OK) {
        status = dmg_output_file_commit(output);
    }
    generation->generate_seconds = (double)(generated_ns - started_ns) / 1e9;
    generation->write_seconds = (double)(dmg_now_ns() - generated_ns) / 1e9;
    dmg_output_file_close(output);
    return status;
}

static void print(const generation_work *generation)
{
    const dmg_graph *graph = &generation->graph;
    FILE *to = generation->is_to_standard_output ? stderr : stdout;
    if (generation->is_json) {
        json_t *object =
            json_pack("{s:I, s:I, s:b, s:b, s:I, s:I, s:f, s:f}", "vertices", (json_int_t)graph->vertex_count, "arcs",
                      (json_int_t)graph->arc_count, "directed", graph->is_directed, "weighted",
                      graph->weight_kind != DMG_WEIGHT_NONE, "loops", (json_int_t)graph->loop_arcs, "repeats",
                      (json_int_t)graph->repeated_arcs, "generate_seconds", generation->generate_seconds,
                      "write_seconds", generation->write_seconds);
        json_object_set_new(object, "output", dmg_json_text(generation->out));
        dmg_json_print(object);
        return;
    }
    fprintf(to, "graph      %s\n", generation->out);
    fprintf(to, "           %s vertices, %s arcs, %s, %s\n", dmg_text_count(graph->vertex_count).text,
            dmg_text_count(graph->arc_count).text, graph->is_directed ? "directed" : "undirected",
            graph->weight_kind == DMG_WEIGHT_NONE ? "no weights" : "weights from 1 to 255");
    fprintf(to, "           loops: %s; repeats: %s\n", dmg_text_count(graph->loop_arcs).text,
            dmg_text_count(graph->repeated_arcs).text);
    fprintf(to, "time       generate %s, write %s\n", dmg_text_seconds(generation->generate_seconds).text,
            dmg_text_seconds(generation->write_seconds).text);
}

static int run(dmg_settings *settings)
{
    bool is_directed = dmg_flag(settings, DMG_OPTION_DIRECTED);
    if (!dmg_has(settings, DMG_OPTION_SCALE)) {
        return dmg_exit_with_error(dmg_error(DMG_ERR_ARGUMENT, "generate kron: --scale is needed"));
    }
    static const dmg_option_id of_directed[] = {DMG_OPTION_OUT_LISTS_ONLY, DMG_OPTION_COUNT};
    if (!is_directed && dmg_options_refuse(settings, of_directed, "without --directed") != DMG_OK) {
        return dmg_exit_with_error(dmg_error_prefix(DMG_ERR_ARGUMENT, "generate kron"));
    }
    generation_work generation = {
        .out = settings->positionals[0],
        .is_json = dmg_flag(settings, DMG_OPTION_JSON),
        .options = {.scale = (uint32_t)dmg_number(settings, DMG_OPTION_SCALE),
                    .edge_factor = (uint32_t)dmg_number(settings, DMG_OPTION_EDGE_FACTOR),
                    .seed = dmg_number(settings, DMG_OPTION_SEED),
                    .is_directed = is_directed,
                    .is_weighted = dmg_flag(settings, DMG_OPTION_WEIGHTED),
                    .drop_repeats = dmg_flag(settings, DMG_OPTION_DEDUP),
                    .drop_loops = dmg_flag(settings, DMG_OPTION_NO_LOOPS),
                    .with_reverse = is_directed && !dmg_flag(settings, DMG_OPTION_OUT_LISTS_ONLY)}};
    int code = dmg_work_step_run(generate, &generation);
    if (code == DMG_EXIT_OK && (generation.is_json || !dmg_flag(settings, DMG_OPTION_QUIET))) {
        print(&generation);
    }
    dmg_graph_close(&generation.graph);
    return code;
}

static const dmg_option_id options[] = {
    DMG_OPTION_SCALE,     DMG_OPTION_EDGE_FACTOR, DMG_OPTION_SEED,           DMG_OPTION_WEIGHTED, DMG_OPTION_DIRECTED,
    DMG_OPTION_DEDUP,     DMG_OPTION_NO_LOOPS,    DMG_OPTION_OUT_LISTS_ONLY, DMG_OPTION_JSON,     DMG_OPTION_QUIET,
    DMG_OPTION_LOG_LEVEL, DMG_OPTION_HELP,        DMG_OPTION_HELP_ALL,       DMG_OPTION_COUNT};

const dmg_command dmg_command_generate_kron = {
    .name = "generate kron",
    .arguments = "--scale N OUT",
    .argument_count = 1,
    .summary = "make a Graph500 Kronecker graph, in the binary form",
    .details = "Each of 2^N * EDGE-FACTOR edges is drawn with A = 0.57, B = 0.19, C = 0.19, and the ids are scrambled. "
               "An edge is stored\n"
               "in both directions unless --directed is given. Ids that no edge touches are no vertices. OUT may be -, "
               "the standard output.\n",
    .options = options,
    .run = run};
