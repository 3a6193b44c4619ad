#include "formats/rebuild.h"

#include "formats/graph_builder.h"
#include "formats/graph_storage.h"
#include "formats/weight.h"

#include <string.h>

static bool wants_directed(const dmg_graph *graph, const dmg_read_options *options)
{
    return options->direction == DMG_DIRECTION_BY_FILE ? graph->is_directed
                                                       : options->direction == DMG_DIRECTION_DIRECTED;
}

bool dmg_rebuild_is_needed(const dmg_graph *graph, const dmg_read_options *options)
{
    bool is_directed = wants_directed(graph, options);
    return is_directed != graph->is_directed || (options->drop_repeats && graph->repeated_arcs > 0) ||
           (options->drop_loops && graph->loop_arcs > 0) ||
           (is_directed && options->with_reverse && !graph->in.offsets);
}

static double weight_of(const dmg_graph *graph, uint64_t arc)
{
    return dmg_weight_value(graph->out.weights ? &graph->out.weights[arc] : NULL, graph->weight_kind);
}

/** Of an undirected graph that stays so, each edge lies there twice, and a loop once. */
static dmg_status add_arcs(const dmg_graph *graph, bool skip_mirrored, dmg_graph_builder *builder)
{
    for (uint64_t v = 0; v < graph->vertex_count; v++) {
        for (uint64_t arc = graph->out.offsets[v]; arc < graph->out.offsets[v + 1]; arc++) {
            uint64_t destination = graph->out.destinations[arc];
            if (skip_mirrored && destination < v) {
                continue;
            }
            dmg_status status = dmg_graph_builder_add(builder, v, destination, weight_of(graph, arc));
            if (status != DMG_OK) {
                return status;
            }
        }
    }
    return DMG_OK;
}

static dmg_status copy_ids(const dmg_graph *graph, dmg_graph *rebuilt)
{
    rebuilt->first_id = graph->first_id;
    if (!graph->ids) {
        return DMG_OK;
    }
    dmg_graph_storage *storage = rebuilt->owner;
    dmg_status status = dmg_pages_resize(&storage->ids, graph->vertex_count, sizeof(uint64_t), "the vertex ids");
    if (status == DMG_OK && graph->vertex_count > 0) {
        memcpy(storage->ids.memory, graph->ids, graph->vertex_count * sizeof(uint64_t));
        rebuilt->ids = storage->ids.memory;
    }
    return status;
}

dmg_status dmg_rebuild(const dmg_graph *graph, const dmg_read_options *options, dmg_graph *rebuilt,
                       dmg_read_report *report)
{
    dmg_builder_options builder_options = {
        .is_directed = wants_directed(graph, options),
        .is_weighted = graph->weight_kind != DMG_WEIGHT_NONE && options->weights != DMG_WEIGHTS_IGNORED,
        .drop_repeats = options->drop_repeats,
        .drop_loops = options->drop_loops,
        .with_reverse = options->with_reverse || graph->in.offsets,
        .has_declared_vertices = true,
        .declared_vertices = graph->vertex_count,
    };
    memset(rebuilt, 0, sizeof *rebuilt);
    dmg_graph_builder *builder;
    dmg_builder_report built;
    dmg_status status = dmg_graph_builder_create(&builder_options, &builder);
    if (status != DMG_OK) {
        return status;
    }
    status = add_arcs(graph, !graph->is_directed && !builder_options.is_directed, builder);
    if (status == DMG_OK) {
        status = dmg_graph_builder_finish(builder, rebuilt, &built);
    }
    dmg_graph_builder_destroy(builder);
    if (status == DMG_OK) {
        status = copy_ids(graph, rebuilt);
    }
    if (status != DMG_OK) {
        dmg_graph_close(rebuilt);
        return status;
    }
    report->loops_dropped = built.loops_dropped;
    report->repeats_dropped = built.repeats_dropped;
    if (builder_options.is_weighted) {
        rebuilt->negative_line = graph->negative_line;
        memcpy(rebuilt->negative_source, graph->negative_source, sizeof rebuilt->negative_source);
    }
    return DMG_OK;
}
