/* dmgraph info: what a graph file holds, and what this machine's transports can do. */
#include "cli/base/exit_code.h"
#include "cli/base/progress.h"
#include "cli/base/text.h"
#include "cli/graph/graph_source.h"
#include "cli/launcher/work_step.h"
#include "cli/options/command.h"
#include "cli/report/report.h"
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

/* ---- info graph ---- */

typedef struct inspection_work {
    const char *path;
    dmg_read_options options;
    dmg_graph_source source;
} inspection_work;

/** Degrees, in one pass. */
typedef struct degree_facts {
    uint64_t largest;
    uint32_t largest_vertex;
    uint64_t without_arcs_out;
} degree_facts;

static dmg_status inspect(void *context)
{
    inspection_work *inspection = context;
    return dmg_graph_source_read(inspection->path, &inspection->options, &inspection->source);
}

static degree_facts count_degrees(const dmg_graph *graph)
{
    degree_facts facts = {0};
    for (uint64_t vertex = 0; vertex < graph->vertex_count; vertex++) {
        uint64_t degree = graph->out.offsets[vertex + 1] - graph->out.offsets[vertex];
        facts.without_arcs_out += degree == 0;
        if (degree > facts.largest) {
            facts.largest = degree;
            facts.largest_vertex = (uint32_t)vertex;
        }
    }
    return facts;
}

static void print_graph(const inspection_work *inspection, bool is_json)
{
    const dmg_graph *graph = &inspection->source.graph;
    degree_facts facts = count_degrees(graph);
    if (is_json) {
        json_t *object = dmg_graph_source_json(inspection->path, &inspection->source);
        json_object_set_new(object, "has_in_lists", json_boolean(graph->in.offsets));
        json_object_set_new(object, "largest_out_degree", json_integer((json_int_t)facts.largest));
        json_object_set_new(object, "vertices_without_arcs_out", json_integer((json_int_t)facts.without_arcs_out));
        dmg_json_print(object);
        return;
    }
    dmg_graph_source_print(stdout, inspection->path, &inspection->source);
    if (graph->vertex_count > 0) {
        printf("ids        %llu to %llu%s\n", (unsigned long long)dmg_graph_id(graph, 0),
               (unsigned long long)dmg_graph_id(graph, (uint32_t)(graph->vertex_count - 1)),
               graph->ids ? ", with gaps" : "");
    }
    if (facts.largest > 0) {
        printf("degrees    largest %s (vertex %llu), %s vertices without arcs out\n",
               dmg_text_count(facts.largest).text, (unsigned long long)dmg_graph_id(graph, facts.largest_vertex),
               dmg_text_count(facts.without_arcs_out).text);
    }
    if (graph->is_directed) {
        printf("lists      %s\n", graph->in.offsets ? "along and against the arcs" : "along the arcs");
    }
    printf("time       read %s\n", dmg_text_seconds(inspection->source.report.seconds).text);
}

static int run_graph(dmg_settings *settings)
{
    inspection_work inspection = {.path = settings->positionals[0], .source = {.file = -1}};
    dmg_status status = dmg_graph_source_options(settings, &inspection.options);
    if (status != DMG_OK) {
        return dmg_exit_with_error(status);
    }
    dmg_progress_bar *bar = dmg_progress_bar_create(!dmg_flag(settings, DMG_OPTION_NO_PROGRESS));
    inspection.options.progress = dmg_progress_bar_show;
    inspection.options.progress_context = bar;
    int code = dmg_work_step_run(inspect, &inspection);
    dmg_progress_bar_destroy(bar);
    if (code == DMG_EXIT_OK) {
        print_graph(&inspection, dmg_flag(settings, DMG_OPTION_JSON));
    }
    dmg_graph_source_close(&inspection.source);
    return code;
}

static const dmg_option_id graph_options[] = {DMG_OPTION_FORMAT,     DMG_OPTION_DIRECTED,    DMG_OPTION_UNDIRECTED,
                                              DMG_OPTION_UNWEIGHTED, DMG_OPTION_DEDUP,       DMG_OPTION_NO_LOOPS,
                                              DMG_OPTION_JSON,       DMG_OPTION_NO_PROGRESS, DMG_OPTION_LOG_LEVEL,
                                              DMG_OPTION_HELP,       DMG_OPTION_HELP_ALL,    DMG_OPTION_COUNT};

const dmg_command dmg_command_info_graph = {.name = "info graph",
                                            .arguments = "FILE",
                                            .argument_count = 1,
                                            .summary = "read a graph file, and say what is in it",
                                            .options = graph_options,
                                            .run = run_graph};

/* ---- info transports ---- */

static void print_transports(const dmg_transport_info *infos, size_t count)
{
    printf("%-10s %-16s %-5s %-8s %-44s %s\n", "backend", "device", "works", "default", "capabilities", "atomics");
    for (size_t index = 0; index < count; index++) {
        const dmg_transport_info *info = &infos[index];
        char names[128];
        dmg_capabilities_text(info->flags, names, sizeof names);
        printf("%-10s %-16s %-5s %-8s %-44s %s\n", info->backend, info->device, info->is_available ? "yes" : "no",
               info->is_default ? "yes" : "no", info->is_available ? names : "-",
               info->is_available ? dmg_atomics_name(info->atomics) : "-");
        if (info->reason[0]) {
            printf("%-10s   %s\n", "", info->reason);
        }
    }
}

static json_t *transport_json(const dmg_transport_info *info)
{
    json_t *object = json_object();
    json_object_set_new(object, "backend", dmg_json_text(info->backend));
    json_object_set_new(object, "device", dmg_json_text(info->device));
    json_object_set_new(object, "available", json_boolean(info->is_available));
    json_object_set_new(object, "default", json_boolean(info->is_default));
    json_object_set_new(object, "capabilities", dmg_capabilities_json(info->flags));
    json_object_set_new(object, "atomics", json_string(dmg_atomics_name(info->atomics)));
    json_object_set_new(object, "reason", dmg_json_text(info->reason));
    return object;
}

static int run_transports(dmg_settings *settings)
{
    dmg_transport_info *infos = NULL;
    size_t count = 0;
    dmg_transport_announce(NULL);
    dmg_status status = dmg_transport_describe(&infos, &count);
    if (status != DMG_OK) {
        return dmg_exit_with_error(status);
    }
    if (dmg_flag(settings, DMG_OPTION_JSON)) {
        json_t *list = json_array();
        for (size_t index = 0; index < count; index++) {
            json_array_append_new(list, transport_json(&infos[index]));
        }
        dmg_json_print(list);
    } else {
        print_transports(infos, count);
    }
    free(infos);
    return DMG_EXIT_OK;
}

static const dmg_option_id transports_options[] = {DMG_OPTION_JSON, DMG_OPTION_LOG_LEVEL, DMG_OPTION_HELP,
                                                   DMG_OPTION_HELP_ALL, DMG_OPTION_COUNT};

const dmg_command dmg_command_info_transports = {
    .name = "info transports",
    .arguments = "",
    .summary = "list what carries data and messages here, what each can do, what is chosen, and why",
    .options = transports_options,
    .run = run_transports};
