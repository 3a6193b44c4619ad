#include "core/store/graph_read.h"

#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/store/edge_list.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** Degrees that are read at once when a source is looked for. */
#define DEGREES_BLOCK 16384

/** What the graph keeps in this process. */
typedef struct read_graph {
    uint64_t *ids;
    uint64_t *offsets[2]; /* out, in */
    uint32_t *destinations[2];
    dmg_weight *weights[2];
} read_graph;

/** One direction while it is read. */
typedef struct list_reader {
    dmg_channel *channel;
    const dmg_graph_store *store;
    const dmg_range_array *index;
    uint64_t *offsets;
    uint32_t *destinations;
    dmg_weight *weights; /* or NULL */
    uint8_t *entries;    /* of one block */
    uint8_t *edges;      /* of the block's out-of-place lists, one behind the other */
    uint64_t edges_capacity;
    dmg_completion completion;
} list_reader;

static void release(void *owner)
{
    read_graph *read = owner;
    for (int direction = 0; direction < 2; direction++) {
        free(read->offsets[direction]);
        free(read->destinations[direction]);
        free(read->weights[direction]);
    }
    free(read->ids);
    free(read);
}

static dmg_status out_of_memory(const dmg_graph_store *store)
{
    return dmg_error(DMG_ERR_MEMORY, "no memory to read a graph of %" PRIu64 " vertices and %" PRIu64 " arcs",
                     store->vertex_count, store->arc_count);
}

/** Offsets from the degrees of a block. They never lead beyond the arcs that the descriptor says there are. */
static dmg_status take_degrees(list_reader *reader, uint64_t first, uint64_t count, uint64_t *edges_bytes)
{
    const dmg_index_shape *shape = &reader->store->shape;
    *edges_bytes = 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *entry = reader->entries + i * shape->entry_bytes;
        uint64_t degree = dmg_index_entry_degree(entry);
        uint64_t at = reader->offsets[first + i];
        if (degree > reader->store->arc_count - at) {
            return dmg_error(DMG_ERR_CORRUPT, "graph store: the lists have more than %" PRIu64 " arcs",
                             reader->store->arc_count);
        }
        reader->offsets[first + i + 1] = at + degree;
        *edges_bytes += dmg_index_entry_is_in_place(shape, entry) ? 0 : degree * shape->edge_bytes;
    }
    return DMG_OK;
}

/** Post the reads of a block's out-of-place lists; lists that lie one behind the other are read as one. */
static void post_lists(list_reader *reader, uint64_t count)
{
    const dmg_index_shape *shape = &reader->store->shape;
    dmg_address start = 0;
    uint64_t bytes = 0;
    uint8_t *to = reader->edges;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *entry = reader->entries + i * shape->entry_bytes;
        if (dmg_index_entry_is_in_place(shape, entry)) {
            continue;
        }
        dmg_address edges = dmg_index_entry_first_edge(shape, entry);
        if (bytes > 0 && edges != start + bytes) {
            dmg_post_read(reader->channel, start, to, bytes, &reader->completion);
            to += bytes;
            bytes = 0;
        }
        start = bytes == 0 ? edges : start;
        bytes += (uint64_t)dmg_index_entry_degree(entry) * shape->edge_bytes;
    }
    if (bytes > 0) {
        dmg_post_read(reader->channel, start, to, bytes, &reader->completion);
    }
}

static void take_edges(list_reader *reader, uint64_t at, uint64_t degree, const uint8_t *edges)
{
    if (reader->weights == NULL && reader->store->shape.edge_bytes == 4) {
        memcpy(reader->destinations + at, edges, degree * 4);
        return;
    }
    for (uint64_t i = 0; i < degree; i++) {
        memcpy(&reader->destinations[at + i], edges + 8 * i, 4);
        memcpy(&reader->weights[at + i], edges + 8 * i + 4, 4);
    }
}

static dmg_status take_lists(list_reader *reader, uint64_t first, uint64_t count)
{
    const dmg_index_shape *shape = &reader->store->shape;
    const uint8_t *next = reader->edges;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *entry = reader->entries + i * shape->entry_bytes;
        uint64_t at = reader->offsets[first + i];
        uint64_t degree = reader->offsets[first + i + 1] - at;
        if (degree == 0) {
            continue;
        }
        bool is_in_place = dmg_index_entry_is_in_place(shape, entry);
        take_edges(reader, at, degree, is_in_place ? dmg_index_entry_edges(entry) : next);
        next += is_in_place ? 0 : degree * shape->edge_bytes;
        if (!dmg_edge_list_is_sound(reader->destinations + at, degree, reader->store->vertex_count)) {
            return dmg_error(DMG_ERR_CORRUPT, "graph store: the list of vertex %" PRIu64 " is no list of vertices",
                             first + i);
        }
    }
    return DMG_OK;
}

static dmg_status read_block(list_reader *reader, uint64_t first, uint64_t count)
{
    uint64_t edges_bytes;
    dmg_range_array_post_read(reader->channel, reader->index, first, count, reader->entries, &reader->completion);
    dmg_status status = dmg_wait(reader->channel, &reader->completion);
    if (status == DMG_OK) {
        status = take_degrees(reader, first, count, &edges_bytes);
    }
    if (status == DMG_OK && edges_bytes > reader->edges_capacity) {
        free(reader->edges);
        reader->edges = malloc(edges_bytes);
        reader->edges_capacity = reader->edges != NULL ? edges_bytes : 0;
        status = reader->edges != NULL ? DMG_OK : out_of_memory(reader->store);
    }
    if (status == DMG_OK) {
        post_lists(reader, count);
        status = dmg_wait(reader->channel, &reader->completion);
    }
    return status == DMG_OK ? take_lists(reader, first, count) : status;
}

static dmg_status read_direction(dmg_channel *channel, const dmg_graph_store *store, const dmg_range_array *index,
                                 int direction, read_graph *read, dmg_adjacency *adjacency)
{
    bool is_weighted = store->weight_kind != DMG_WEIGHT_NONE;
    uint64_t *offsets = read->offsets[direction] = calloc(store->vertex_count + 1, sizeof(uint64_t));
    uint32_t *destinations = read->destinations[direction] = malloc((store->arc_count + 1) * sizeof(uint32_t));
    dmg_weight *weights = is_weighted ? malloc((store->arc_count + 1) * sizeof(dmg_weight)) : NULL;
    read->weights[direction] = weights;
    list_reader reader = {
        .channel = channel,
        .store = store,
        .index = index,
        .offsets = offsets,
        .destinations = destinations,
        .weights = weights,
        .entries = malloc((size_t)DMG_STORE_BATCH_VERTICES * store->shape.entry_bytes),
    };
    dmg_status status = offsets != NULL && destinations != NULL && reader.entries != NULL && (weights || !is_weighted)
                            ? DMG_OK
                            : out_of_memory(store);
    for (uint64_t first = 0; first < store->vertex_count && status == DMG_OK; first += DMG_STORE_BATCH_VERTICES) {
        uint64_t left = store->vertex_count - first;
        status = read_block(&reader, first, left < DMG_STORE_BATCH_VERTICES ? left : DMG_STORE_BATCH_VERTICES);
    }
    if (status == DMG_OK && offsets[store->vertex_count] != store->arc_count) {
        status = dmg_error(DMG_ERR_CORRUPT, "graph store: the lists have %" PRIu64 " arcs instead of %" PRIu64,
                           offsets[store->vertex_count], store->arc_count);
    }
    free(reader.entries);
    free(reader.edges);
    *adjacency = (dmg_adjacency){offsets, destinations, weights};
    return status;
}

static dmg_status read_ids(dmg_channel *channel, const dmg_graph_store *store, read_graph *read)
{
    uint64_t bytes;
    if (!dmg_checked_multiply(store->vertex_count + 1, sizeof(uint64_t), &bytes) || !(read->ids = malloc(bytes))) {
        return out_of_memory(store);
    }
    dmg_completion completion = {0};
    dmg_range_array_post_read(channel, &store->ids, 0, store->vertex_count, read->ids, &completion);
    dmg_status status = dmg_wait(channel, &completion);
    for (uint64_t vertex = 1; vertex < store->vertex_count && status == DMG_OK; vertex++) {
        if (read->ids[vertex] <= read->ids[vertex - 1]) {
            status = dmg_error(DMG_ERR_CORRUPT, "graph store: the id of vertex %" PRIu64 " does not ascend", vertex);
        }
    }
    return status;
}

dmg_status dmg_graph_store_read(dmg_channel *channel, const dmg_graph_store *store, bool with_lists, dmg_graph *graph)
{
    memset(graph, 0, sizeof *graph);
    read_graph *read = calloc(1, sizeof *read);
    if (read == NULL) {
        return out_of_memory(store);
    }
    *graph = (dmg_graph){.vertex_count = store->vertex_count,
                         .arc_count = store->arc_count,
                         .is_directed = store->is_directed,
                         .weight_kind = (dmg_weight_kind)store->weight_kind,
                         .first_id = store->first_id,
                         .owner = read,
                         .release = release};
    dmg_status status = store->has_ids ? read_ids(channel, store, read) : DMG_OK;
    graph->ids = read->ids;
    if (status == DMG_OK && with_lists && store->has_out) {
        status = read_direction(channel, store, &store->out_index, 0, read, &graph->out);
    }
    if (status == DMG_OK && with_lists && store->has_in) {
        status = read_direction(channel, store, &store->in_index, 1, read, &graph->in);
    }
    if (status != DMG_OK) {
        dmg_graph_close(graph);
    }
    return status;
}

dmg_status dmg_graph_store_first_source(dmg_channel *channel, const dmg_graph_store *store, uint64_t *vertex)
{
    uint32_t *degrees = malloc(DEGREES_BLOCK * sizeof *degrees);
    dmg_status status = degrees != NULL ? DMG_OK : out_of_memory(store);
    *vertex = store->vertex_count;
    for (uint64_t first = 0; first < store->vertex_count && status == DMG_OK; first += DEGREES_BLOCK) {
        uint64_t left = store->vertex_count - first;
        uint64_t count = left < DEGREES_BLOCK ? left : DEGREES_BLOCK;
        dmg_completion completion = {0};
        dmg_range_array_post_read(channel, &store->out_degrees, first, count, degrees, &completion);
        status = dmg_wait(channel, &completion);
        for (uint64_t i = 0; i < count && status == DMG_OK; i++) {
            if (degrees[i] > 0) {
                *vertex = first + i;
                free(degrees);
                return DMG_OK;
            }
        }
    }
    free(degrees);
    return status;
}
