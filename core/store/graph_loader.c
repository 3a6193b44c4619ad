/*
 * Loading a range of vertices into the store (DMG, section 4.2.3).
 *
 * A first pass lays the out-of-place lists of the range out, an extent a node, so that memory is asked for once and no
 * list crosses a node. The second pass fills, batch by batch: lists into the extents, entries into the index. Both
 * passes place lists with the same function.
 */
#include "core/base/error.h"
#include "core/store/edge_list.h"
#include "core/store/graph_store.h"
#include "core/store/list_placement.h"
#include "core/store/write_stream.h"

#include <inttypes.h>
#include <stdatomic.h>

/** Buffers of the lists; with those of the entries they stay within 1 MiB. */
#define LIST_BUFFER_BYTES (UINT64_C(128) * 1024)

/** One call of dmg_graph_store_load. */
typedef struct graph_loader {
    dmg_channel *channel;
    const dmg_graph_store *store;
    const dmg_graph *graph;
    uint64_t first;
    uint64_t last;
    uint32_t node_count;
    _Atomic uint64_t *progress_arcs;
    dmg_address extents[DMG_MEMORY_NODES_MAX]; /**< DMG_ADDRESS_NULL: none */
    uint64_t rooms[DMG_MEMORY_NODES_MAX];      /**< bytes of each extent */
    uint64_t ends[DMG_MEMORY_NODES_MAX];       /**< bytes of each extent that are laid out so far */
    dmg_write_stream lists;
    dmg_write_stream entries;
} graph_loader;

/** One direction of the graph and the index that it goes into. */
typedef struct stored_direction {
    const dmg_adjacency *adjacency;
    const dmg_range_array *index;
    dmg_list_placement placement; /**< of the loader's vertices */
} stored_direction;

static uint32_t list_directions(const graph_loader *loader, stored_direction *directions)
{
    uint32_t count = 0;
    if (loader->store->has_out) {
        directions[count++] = (stored_direction){.adjacency = &loader->graph->out, .index = &loader->store->out_index};
    }
    if (loader->store->has_in) {
        directions[count++] = (stored_direction){.adjacency = &loader->graph->in, .index = &loader->store->in_index};
    }
    return count;
}

static uint64_t end_of_batch(const graph_loader *loader, uint64_t vertex)
{
    uint64_t left = loader->last - vertex;
    return vertex + (left < DMG_STORE_BATCH_VERTICES ? left : DMG_STORE_BATCH_VERTICES);
}

static dmg_status changed_graph(const graph_loader *loader, uint64_t vertex)
{
    return dmg_error(DMG_ERR_CORRUPT,
                     "the list of vertex %" PRIu64
                     " is not what it was: the graph's file has changed while it was read",
                     dmg_graph_id(loader->graph, (uint32_t)vertex));
}

/** Where a list begins, and its degree. The graph may lie in a file that others change: it never leads out of it. */
static bool find_list(const graph_loader *loader, const dmg_adjacency *adjacency, uint64_t vertex, uint64_t *at,
                      uint64_t *degree)
{
    uint64_t end = dmg_read_once_64(&adjacency->offsets[vertex + 1]);
    *at = dmg_read_once_64(&adjacency->offsets[vertex]);
    *degree = end - *at;
    return *at <= end && end <= loader->graph->arc_count;
}

/** First pass over one direction: raise `ends` by its lists. */
static dmg_status lay_out(graph_loader *loader, const stored_direction *direction)
{
    const dmg_index_shape *shape = &loader->store->shape;
    uint32_t lengths[DMG_PARTITIONS_MAX];
    for (uint64_t vertex = loader->first; vertex < loader->last; vertex++) {
        uint64_t at;
        uint64_t degree;
        if (!find_list(loader, direction->adjacency, vertex, &at, &degree)) {
            return changed_graph(loader, vertex);
        }
        if (degree <= shape->in_place_degree_max) {
            continue;
        }
        if (degree > UINT32_MAX) {
            return dmg_error(DMG_ERR_LIMIT, "vertex %" PRIu64 " has %" PRIu64 " edges; a list may have 2^32 - 1",
                             dmg_graph_id(loader->graph, (uint32_t)vertex), degree);
        }
        bool fit = dmg_edge_list_lengths_surely_fit(shape, degree);
        if (!fit) {
            dmg_edge_list_lengths(shape, loader->store->partition_first, direction->adjacency->destinations + at,
                                  (uint32_t)degree, lengths);
            fit = dmg_index_lengths_fit(shape, lengths);
        }
        uint64_t *end = &loader->ends[dmg_list_placement_node(&direction->placement, vertex)];
        *end = dmg_edge_list_place(shape, *end, (uint32_t)degree, !fit).end;
    }
    return DMG_OK;
}

static void free_extents(graph_loader *loader)
{
    for (uint32_t node = 0; node < loader->node_count; node++) {
        if (loader->extents[node] != DMG_ADDRESS_NULL) {
            dmg_pool_free(loader->channel, loader->extents[node]);
        }
    }
}

static dmg_status allocate_extents(graph_loader *loader, uint64_t job)
{
    for (uint32_t node = 0; node < loader->node_count; node++) {
        if (loader->ends[node] > 0) {
            dmg_status status =
                dmg_pool_allocate(loader->channel, (uint16_t)node, job, loader->ends[node], &loader->extents[node]);
            if (status != DMG_OK) {
                return dmg_error_prefix(status, "allocating edge lists");
            }
        }
        loader->rooms[node] = loader->ends[node];
        loader->ends[node] = 0;
    }
    return DMG_OK;
}

/** Destinations and weights, which lie apart in the graph, alternate in the store. */
static void interleave(const uint32_t *destinations, const dmg_weight *weights, uint64_t count, void *edges)
{
    uint32_t *to = edges;
    for (uint64_t i = 0; i < count; i++) {
        to[2 * i] = destinations[i];
        memcpy(&to[2 * i + 1], &weights[i], sizeof *weights);
    }
}

static void write_edges(graph_loader *loader, const uint32_t *destinations, const dmg_weight *weights, uint64_t degree)
{
    if (!weights) {
        dmg_write_stream_put(&loader->lists, destinations, degree * sizeof *destinations);
        return;
    }
    for (uint64_t done = 0; done < degree;) {
        uint64_t given;
        void *to = dmg_write_stream_room(&loader->lists, (degree - done) * 8, &given);
        if (!to) {
            return;
        }
        interleave(destinations + done, weights + done, given / 8, to);
        dmg_write_stream_advance(&loader->lists, given);
        done += given / 8;
    }
}

/** Write an out-of-place list behind those of its node, and fill its entry. False when it is longer than it was laid
 * out. */
static bool load_out_of_place(graph_loader *loader, uint32_t node, const uint32_t *destinations,
                              const dmg_weight *weights, uint32_t degree, uint8_t *entry)
{
    static const uint8_t zeros[8];
    const dmg_index_shape *shape = &loader->store->shape;
    uint32_t lengths[DMG_PARTITIONS_MAX + 1];
    lengths[shape->partition_count] = 0; /* pads an odd count of lengths in front of a list */
    dmg_edge_list_lengths(shape, loader->store->partition_first, destinations, degree, lengths);
    bool fit = dmg_index_lengths_fit(shape, lengths);
    uint64_t end = loader->ends[node];
    dmg_list_place place = dmg_edge_list_place(shape, end, degree, !fit);
    if (place.end > loader->rooms[node]) {
        return false;
    }
    dmg_index_entry_set_out_of_place(shape, degree, loader->extents[node] + place.offset, lengths, entry);
    dmg_write_stream_seek(&loader->lists, loader->extents[node] + end);
    dmg_write_stream_put(&loader->lists, zeros, place.offset - end);
    dmg_write_stream_put(&loader->lists, lengths, place.header_bytes);
    write_edges(loader, destinations, weights, degree);
    loader->ends[node] = place.end;
    return true;
}

static dmg_status load_vertex(graph_loader *loader, const stored_direction *direction, uint64_t vertex, uint8_t *entry)
{
    const dmg_index_shape *shape = &loader->store->shape;
    const dmg_adjacency *adjacency = direction->adjacency;
    uint64_t at;
    uint64_t degree;
    if (!find_list(loader, adjacency, vertex, &at, &degree)) {
        return changed_graph(loader, vertex);
    }
    if (degree == 0) {
        dmg_index_entry_set_in_place(shape, 0, NULL, entry);
        return DMG_OK;
    }
    const uint32_t *destinations = adjacency->destinations + at;
    const dmg_weight *weights = shape->edge_bytes == 8 ? adjacency->weights + at : NULL;
    if (!dmg_edge_list_is_sound(destinations, degree, loader->store->vertex_count)) {
        return dmg_error(DMG_ERR_CORRUPT,
                         "the list of vertex %" PRIu64
                         " does not ascend, or has a destination that is not one of the %" PRIu64 " vertices",
                         dmg_graph_id(loader->graph, (uint32_t)vertex), loader->store->vertex_count);
    }
    if (degree > shape->in_place_degree_max) {
        uint32_t node = dmg_list_placement_node(&direction->placement, vertex);
        if (!load_out_of_place(loader, node, destinations, weights, (uint32_t)degree, entry)) {
            return changed_graph(loader, vertex);
        }
    } else if (weights) {
        uint32_t edges[DMG_INDEX_ENTRY_BYTES_MAX / 4];
        interleave(destinations, weights, degree, edges);
        dmg_index_entry_set_in_place(shape, (uint32_t)degree, edges, entry);
    } else {
        dmg_index_entry_set_in_place(shape, (uint32_t)degree, destinations, entry);
    }
    return loader->lists.status;
}

/** Entries of vertices of one batch that lie on one node: they are written by one operation. */
static dmg_status load_run(graph_loader *loader, const stored_direction *direction, uint64_t first, uint64_t count)
{
    uint32_t entry_bytes = loader->store->shape.entry_bytes;
    uint64_t given;
    dmg_write_stream_seek(&loader->entries, dmg_range_array_address(direction->index, first));
    uint8_t *entries = dmg_write_stream_room(&loader->entries, count * entry_bytes, &given);
    if (!entries) {
        return loader->entries.status;
    }
    for (uint64_t i = 0; i < count; i++) {
        dmg_status status = load_vertex(loader, direction, first + i, entries + i * entry_bytes);
        if (status != DMG_OK) {
            return status;
        }
    }
    dmg_write_stream_advance(&loader->entries, given);
    dmg_write_stream_post(&loader->entries);
    return loader->entries.status;
}

/** Second pass over one direction. */
static dmg_status load_direction(graph_loader *loader, const stored_direction *direction)
{
    const uint64_t *offsets = direction->adjacency->offsets;
    for (uint64_t batch = loader->first; batch < loader->last; batch = end_of_batch(loader, batch)) {
        uint64_t end = end_of_batch(loader, batch);
        uint64_t count;
        for (uint64_t vertex = batch; vertex < end; vertex += count) {
            count = dmg_range_array_run(direction->index, vertex, end - vertex);
            dmg_status status = load_run(loader, direction, vertex, count);
            if (status != DMG_OK) {
                return status;
            }
        }
        if (loader->progress_arcs) {
            atomic_fetch_add_explicit(loader->progress_arcs, offsets[end] - offsets[batch], memory_order_relaxed);
        }
    }
    return DMG_OK;
}

static void load_degrees(graph_loader *loader)
{
    const dmg_range_array *array = &loader->store->out_degrees;
    const uint64_t *offsets = loader->graph->out.offsets;
    uint64_t count;
    for (uint64_t vertex = loader->first; vertex < loader->last; vertex += count) {
        uint64_t given;
        count = dmg_range_array_run(array, vertex, loader->last - vertex);
        dmg_write_stream_seek(&loader->lists, dmg_range_array_address(array, vertex));
        uint32_t *degrees = dmg_write_stream_room(&loader->lists, count * sizeof *degrees, &given);
        if (!degrees) {
            return;
        }
        count = given / sizeof *degrees;
        for (uint64_t i = 0; i < count; i++) {
            uint64_t degree = offsets[vertex + i + 1] - offsets[vertex + i];
            degrees[i] = degree < UINT32_MAX ? (uint32_t)degree : UINT32_MAX;
        }
        dmg_write_stream_advance(&loader->lists, given);
    }
}

static dmg_status fill(graph_loader *loader, const stored_direction *directions, uint32_t direction_count)
{
    dmg_completion ids = {0};
    uint64_t entries_bytes = (uint64_t)DMG_STORE_BATCH_VERTICES * loader->store->shape.entry_bytes;
    dmg_status status = dmg_write_stream_open(loader->channel, LIST_BUFFER_BYTES, &loader->lists);
    if (status == DMG_OK) {
        status = dmg_write_stream_open(loader->channel, entries_bytes, &loader->entries);
    }
    if (status == DMG_OK && loader->store->has_ids) {
        /* They lie in the graph as they will in the pool. */
        dmg_range_array_post_write(loader->channel, &loader->store->ids, loader->first, loader->last - loader->first,
                                   loader->graph->ids + loader->first, &ids);
    }
    for (uint32_t i = 0; i < direction_count && status == DMG_OK; i++) {
        status = load_direction(loader, &directions[i]);
    }
    if (status == DMG_OK) {
        load_degrees(loader);
        status = dmg_write_stream_finish(&loader->lists);
    }
    if (status == DMG_OK) {
        status = dmg_write_stream_finish(&loader->entries);
    }
    dmg_status ids_status = dmg_wait(loader->channel, &ids);
    dmg_write_stream_close(&loader->entries);
    dmg_write_stream_close(&loader->lists);
    return status != DMG_OK ? status : ids_status;
}

static dmg_status check_arguments(const dmg_graph_store *store, const dmg_graph *graph, uint64_t first, uint64_t last)
{
    if (graph->vertex_count != store->vertex_count || graph->arc_count != store->arc_count ||
        graph->is_directed != store->is_directed || graph->weight_kind != (dmg_weight_kind)store->weight_kind ||
        (graph->ids != NULL) != store->has_ids) {
        return dmg_error(DMG_ERR_ARGUMENT, "the graph is not the one that the store was made for");
    }
    if (first > last || last > store->vertex_count || first % DMG_STORE_BATCH_VERTICES != 0) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "cannot load vertices %" PRIu64 " to %" PRIu64 " of %" PRIu64
                         ": a range begins at a multiple of %d",
                         first, last, store->vertex_count, DMG_STORE_BATCH_VERTICES);
    }
    if (store->arc_count > 0 && store->shape.edge_bytes == 8 &&
        ((store->has_out && !graph->out.weights) || (store->has_in && !graph->in.weights))) {
        return dmg_error(DMG_ERR_ARGUMENT, "the graph says that it has weights, and has none");
    }
    if (store->has_in && store->vertex_count > 0 && !graph->in.offsets) {
        return dmg_error(DMG_ERR_ARGUMENT, "the store keeps in-lists, but the graph was not given its reverse");
    }
    return DMG_OK;
}

dmg_status dmg_graph_store_load(dmg_channel *channel, const dmg_graph_store *store, uint64_t job,
                                const dmg_graph *graph, uint64_t first, uint64_t last, _Atomic uint64_t *progress_arcs)
{
    dmg_status status = check_arguments(store, graph, first, last);
    if (status != DMG_OK || first == last) {
        return status;
    }
    graph_loader loader = {
        .channel = channel,
        .store = store,
        .graph = graph,
        .first = first,
        .last = last,
        .node_count = store->shares.node_count,
        .progress_arcs = progress_arcs,
    };
    stored_direction directions[2];
    uint32_t direction_count = list_directions(&loader, directions);
    for (uint32_t i = 0; i < direction_count && status == DMG_OK; i++) {
        status = dmg_list_placement_make(&store->shares, graph->vertex_count, directions[i].adjacency->offsets, first,
                                         last, &directions[i].placement);
    }
    for (uint32_t i = 0; i < direction_count && status == DMG_OK; i++) {
        status = lay_out(&loader, &directions[i]);
    }
    if (status == DMG_OK) {
        status = allocate_extents(&loader, job);
    }
    if (status == DMG_OK) {
        status = fill(&loader, directions, direction_count);
    }
    if (status != DMG_OK) {
        free_extents(&loader);
    }
    for (uint32_t i = 0; i < direction_count; i++) {
        dmg_list_placement_destroy(&directions[i].placement);
    }
    return status;
}
