#include "formats/graph_builder.h"

#include "core/base/error.h"
#include "formats/adjacency.h"
#include "formats/dense_ids.h"
#include "formats/graph_storage.h"
#include "formats/weight.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * An edge waits in 8 bytes (16 once an id needs more than 32 bits), and 4 for its weight. Weights are integers until
 * one comes that is none; then all become floats, which is exact for those up to 2^24 and measured for the rest.
 */
struct dmg_graph_builder {
    dmg_builder_options options;
    dmg_pages ends;
    dmg_pages weights;
    uint64_t edge_count;
    uint64_t capacity;
    bool is_wide;
    bool weights_are_floats;
    double weight_rounding;
};

#define EDGES_AT_START 4096

dmg_status dmg_graph_builder_create(const dmg_builder_options *options, dmg_graph_builder **builder)
{
    if (options->has_declared_vertices) {
        if (options->declared_vertices > DMG_VERTICES_MAX) {
            return dmg_error(DMG_ERR_LIMIT,
                             "%" PRIu64 " vertices: dmgraph holds at most %" PRIu64
                             ", vertex ids inside it have 32 bits",
                             options->declared_vertices, DMG_VERTICES_MAX);
        }
        if (options->declared_vertices > 0 && options->first_id > UINT64_MAX - (options->declared_vertices - 1)) {
            return dmg_error(DMG_ERR_ARGUMENT, "%" PRIu64 " vertices from id %" PRIu64 " on pass 2^64 - 1",
                             options->declared_vertices, options->first_id);
        }
    }
    dmg_graph_builder *made = calloc(1, sizeof *made);
    if (!made) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a graph builder");
    }
    made->options = *options;
    *builder = made;
    return DMG_OK;
}

void dmg_graph_builder_destroy(dmg_graph_builder *builder)
{
    if (builder) {
        dmg_pages_release(&builder->ends);
        dmg_pages_release(&builder->weights);
        free(builder);
    }
}

static dmg_status grow(dmg_graph_builder *builder)
{
    uint64_t capacity = builder->capacity ? builder->capacity + builder->capacity / 2 : EDGES_AT_START;
    uint64_t edge_bytes = 2 * (builder->is_wide ? sizeof(uint64_t) : sizeof(uint32_t));
    dmg_status status = dmg_pages_resize(&builder->ends, capacity, edge_bytes, "the edges");
    if (status == DMG_OK && builder->options.is_weighted) {
        status = dmg_pages_resize(&builder->weights, capacity, sizeof(dmg_weight), "the weights");
    }
    if (status == DMG_OK) {
        builder->capacity = capacity;
    }
    return status;
}

/** The first id above 32 bits came: give every end 64. */
static dmg_status widen(dmg_graph_builder *builder)
{
    dmg_status status = dmg_pages_resize(&builder->ends, builder->capacity, 2 * sizeof(uint64_t), "the edges");
    if (status != DMG_OK) {
        return status;
    }
    char *ends = builder->ends.memory;
    for (uint64_t i = 2 * builder->edge_count; i-- > 0;) {
        uint32_t narrow;
        memcpy(&narrow, ends + i * sizeof narrow, sizeof narrow);
        uint64_t wide = narrow;
        memcpy(ends + i * sizeof wide, &wide, sizeof wide);
    }
    builder->is_wide = true;
    return DMG_OK;
}

static void note_rounding(dmg_graph_builder *builder, double exact, float rounded)
{
    double error = exact != 0 ? fabs((exact - dmg_weight_decimal(rounded)) / exact) : 0;
    if (error > builder->weight_rounding) {
        builder->weight_rounding = error;
    }
}

static void make_floats(dmg_graph_builder *builder)
{
    dmg_weight *weights = builder->weights.memory;
    for (uint64_t i = 0; i < builder->edge_count; i++) {
        int32_t exact = weights[i].as_int32;
        weights[i].as_float32 = (float)exact;
        note_rounding(builder, exact, weights[i].as_float32);
    }
    builder->weights_are_floats = true;
}

static dmg_status add_weight(dmg_graph_builder *builder, double weight)
{
    dmg_weight *place = (dmg_weight *)builder->weights.memory + builder->edge_count;
    if (!builder->weights_are_floats) {
        if (weight >= INT32_MIN && weight <= INT32_MAX && (double)(int32_t)weight == weight) {
            place->as_int32 = (int32_t)weight;
            return DMG_OK;
        }
        make_floats(builder);
    }
    /* Not a number fails this too. Adding zero makes a negative zero positive. */
    if (!(fabs(weight) <= (double)FLT_MAX)) {
        return dmg_error(DMG_ERR_FORMAT, "weight %g: expected one that fits a 32-bit float", weight);
    }
    float rounded = (float)(weight + 0.0);
    if (rounded == 0 && weight != 0) {
        return dmg_error(DMG_ERR_FORMAT, "weight %g: too small for a 32-bit float", weight);
    }
    place->as_float32 = rounded;
    note_rounding(builder, weight, rounded);
    return DMG_OK;
}

dmg_status dmg_graph_builder_add(dmg_graph_builder *builder, uint64_t source, uint64_t destination, double weight)
{
    if (builder->options.has_declared_vertices) {
        source -= builder->options.first_id;
        destination -= builder->options.first_id;
        if (source >= builder->options.declared_vertices || destination >= builder->options.declared_vertices) {
            return dmg_error(DMG_ERR_ARGUMENT, "an edge to a vertex that was not declared");
        }
    }
    if (builder->edge_count == builder->capacity) {
        dmg_status status = grow(builder);
        if (status != DMG_OK) {
            return status;
        }
    }
    if (!builder->is_wide && (source | destination) > UINT32_MAX) {
        dmg_status status = widen(builder);
        if (status != DMG_OK) {
            return status;
        }
    }
    if (builder->options.is_weighted) {
        dmg_status status = add_weight(builder, weight);
        if (status != DMG_OK) {
            return status;
        }
    }
    if (builder->is_wide) {
        uint64_t *ends = (uint64_t *)builder->ends.memory + 2 * builder->edge_count;
        ends[0] = source;
        ends[1] = destination;
    } else {
        uint32_t *ends = (uint32_t *)builder->ends.memory + 2 * builder->edge_count;
        ends[0] = (uint32_t)source;
        ends[1] = (uint32_t)destination;
    }
    builder->edge_count++;
    return DMG_OK;
}

void dmg_graph_builder_edge(const dmg_graph_builder *builder, uint64_t index, uint64_t *source, uint64_t *destination)
{
    if (builder->is_wide) {
        const uint64_t *ends = (const uint64_t *)builder->ends.memory + 2 * index;
        *source = ends[0];
        *destination = ends[1];
    } else {
        const uint32_t *ends = (const uint32_t *)builder->ends.memory + 2 * index;
        *source = ends[0];
        *destination = ends[1];
    }
}

static dmg_status number_vertices(dmg_graph_builder *builder, dmg_graph *graph, dmg_graph_storage *storage)
{
    if (builder->options.has_declared_vertices) {
        graph->vertex_count = builder->options.declared_vertices;
        graph->first_id = builder->options.first_id;
        return DMG_OK;
    }
    dmg_dense_ids map;
    dmg_status status = dmg_dense_ids_make(&builder->ends, 2 * builder->edge_count, builder->is_wide, &map);
    if (status != DMG_OK) {
        return status;
    }
    graph->vertex_count = map.vertex_count;
    graph->first_id = map.first_id;
    storage->ids = map.ids;
    graph->ids = map.ids.memory;
    return DMG_OK;
}

/** Lists by source, ascending, in `storage->out`; the edges are given back on the way. */
static dmg_status make_lists(dmg_graph_builder *builder, uint64_t vertex_count, dmg_graph_storage *storage,
                             uint64_t *loops_dropped)
{
    const dmg_builder_options *options = &builder->options;
    dmg_edge_array edges = {.ends = builder->ends.memory,
                            .weights = options->is_weighted ? builder->weights.memory : NULL,
                            .count = builder->edge_count,
                            .is_directed = options->is_directed,
                            .drop_loops = options->drop_loops};
    if (options->drop_loops) {
        for (uint64_t i = 0; i < edges.count; i++) {
            *loops_dropped += edges.ends[2 * i] == edges.ends[2 * i + 1];
        }
    }
    dmg_adjacency_storage incoming = {0};
    dmg_status status = dmg_adjacency_scatter(&edges, vertex_count, &incoming);
    dmg_pages_release(&builder->ends);
    dmg_pages_release(&builder->weights);
    if (status == DMG_OK) {
        dmg_adjacency view = dmg_adjacency_storage_view(&incoming, options->is_weighted);
        status = dmg_adjacency_transpose(&view, vertex_count, &storage->out);
    }
    dmg_adjacency_storage_release(&incoming);
    return status;
}

dmg_status dmg_graph_builder_finish(dmg_graph_builder *builder, dmg_graph *graph, dmg_builder_report *report)
{
    const dmg_builder_options *options = &builder->options;
    memset(graph, 0, sizeof *graph);
    dmg_graph_storage *storage = dmg_graph_storage_create();
    if (!storage) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a graph");
    }
    dmg_adjacency_census census = {0};
    uint64_t loops_dropped = 0;
    graph->is_directed = options->is_directed;
    graph->weight_kind = !options->is_weighted         ? DMG_WEIGHT_NONE
                         : builder->weights_are_floats ? DMG_WEIGHT_FLOAT32
                                                       : DMG_WEIGHT_INT32;
    dmg_status status = number_vertices(builder, graph, storage);
    if (status == DMG_OK) {
        status = make_lists(builder, graph->vertex_count, storage, &loops_dropped);
    }
    if (status == DMG_OK) {
        status = dmg_adjacency_settle(&storage->out, graph->vertex_count, graph->weight_kind, options->drop_repeats,
                                      &census);
    }
    if (status == DMG_OK) {
        graph->out = dmg_adjacency_storage_view(&storage->out, options->is_weighted);
        graph->arc_count = graph->out.offsets[graph->vertex_count];
        if (options->is_directed && options->with_reverse) {
            status = dmg_adjacency_transpose(&graph->out, graph->vertex_count, &storage->in);
        }
    }
    if (status != DMG_OK) {
        dmg_graph_storage_destroy(storage);
        memset(graph, 0, sizeof *graph);
        return status;
    }
    if (options->is_directed && options->with_reverse) {
        graph->in = dmg_adjacency_storage_view(&storage->in, options->is_weighted);
    }
    graph->loop_arcs = census.loops;
    graph->repeated_arcs = options->drop_repeats ? 0 : census.repeats;
    graph->owner = storage;
    graph->release = dmg_graph_storage_destroy;
    if (report) {
        *report = (dmg_builder_report){.loops_dropped = loops_dropped,
                                       .repeats_dropped = options->drop_repeats ? census.repeats : 0,
                                       .weight_rounding = builder->weights_are_floats ? builder->weight_rounding : 0};
    }
    builder->edge_count = 0;
    builder->capacity = 0;
    return DMG_OK;
}
