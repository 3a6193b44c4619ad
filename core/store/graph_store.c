#include "core/store/graph_store.h"

#include "core/base/checked.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/store/edge_list.h"
#include "core/store/tiny_chunk.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

/** Extents and their shares are multiples of this. */
#define PAGE_BYTES 4096

/** Bitmap words belong to one partition. */
#define PARTITION_ALIGNMENT 64

static bool entry_bytes_are_legal(uint32_t entry_bytes)
{
    return entry_bytes == 16 || entry_bytes == 32 || entry_bytes == 64 || entry_bytes == 128;
}

/** What the options ask for, made definite. An undirected graph is its own reverse: either direction is the one that is
 * stored. */
static void resolve(const dmg_graph *graph, const dmg_store_options *options, dmg_graph_store *store)
{
    uint32_t entry_bytes = options->entry_bytes ? options->entry_bytes : DMG_INDEX_ENTRY_BYTES_DEFAULT;
    *store = (dmg_graph_store){
        .version = DMG_GRAPH_STORE_VERSION,
        .weight_kind = graph->weight_kind,
        .vertex_count = graph->vertex_count,
        .arc_count = graph->arc_count,
        .shape = dmg_index_shape_make(entry_bytes, graph->weight_kind != DMG_WEIGHT_NONE, options->partition_count),
        .is_directed = graph->is_directed,
        .has_out = options->with_out || (!graph->is_directed && options->with_in),
        .has_in = options->with_in && graph->is_directed,
        .has_ids = graph->ids != NULL,
        .first_id = graph->ids ? 0 : graph->first_id,
    };
    if (options->without_embedding) {
        store->shape.in_place_degree_max = 0;
    }
}

static dmg_status check_options(const dmg_graph *graph, const dmg_store_options *options, const dmg_graph_store *store)
{
    if (options->tiny_chunks > DMG_TINY_CHUNKS_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "cannot slice a graph into %u tiny-chunks: expected 1 to %d",
                         options->tiny_chunks, DMG_TINY_CHUNKS_MAX);
    }
    if (!entry_bytes_are_legal(store->shape.entry_bytes)) {
        return dmg_error(DMG_ERR_ARGUMENT, "index entries of %u bytes: expected 16, 32, 64 or 128",
                         store->shape.entry_bytes);
    }
    if (store->shape.partition_count < 1 || store->shape.partition_count > DMG_PARTITIONS_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "a graph store of %u partitions: expected 1 to %d",
                         store->shape.partition_count, DMG_PARTITIONS_MAX);
    }
    if (store->vertex_count > DMG_VERTICES_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "the graph has %" PRIu64 " vertices; at most %" PRIu64 " are supported",
                         store->vertex_count, DMG_VERTICES_MAX);
    }
    if (!store->has_out && !store->has_in) {
        return dmg_error(DMG_ERR_ARGUMENT, "a graph store needs the out-lists, the in-lists or both");
    }
    if (store->has_in && store->vertex_count > 0 && !graph->in.offsets) {
        return dmg_error(DMG_ERR_ARGUMENT, "the in-lists are to be stored, but the graph was not given its reverse");
    }
    return DMG_OK;
}

/**
 * The metadata, and the partitions from it. They balance the arcs of all lists that are stored: these are what the
 * owner of a partition walks.
 */
static dmg_status cut_partitions(const dmg_graph *graph, const dmg_store_options *options, dmg_graph_store *store,
                                 dmg_tiny_chunks *chunks)
{
    uint64_t started_ns = dmg_now_ns();
    uint32_t wanted = options->tiny_chunks ? options->tiny_chunks : DMG_TINY_CHUNKS_DEFAULT;
    const uint64_t *offsets = store->has_out ? graph->out.offsets : graph->in.offsets;
    dmg_status status = dmg_tiny_chunks_create(graph->vertex_count, offsets, wanted, chunks);
    if (status == DMG_OK && store->has_out && store->has_in) {
        dmg_tiny_chunks more = {0};
        status = dmg_tiny_chunks_create(graph->vertex_count, graph->in.offsets, wanted, &more);
        for (uint32_t i = 0; status == DMG_OK && i < chunks->count; i++) {
            chunks->arcs[i] += more.arcs[i];
        }
        dmg_tiny_chunks_destroy(&more);
    }
    if (status == DMG_OK) {
        dmg_tiny_chunks_partition(chunks, store->shape.partition_count, store->partition_first);
    }
    store->tiny_chunk_vertices = chunks->chunk_vertices;
    store->tiny_chunk_count = chunks->count;
    store->partition_ns = dmg_now_ns() - started_ns;
    return status;
}

/** The arrays of a store, for what treats them all alike; element_bytes is 0 for one that the store does not have. */
typedef struct store_array {
    const char *name;
    dmg_range_array *array;
    uint32_t element_bytes;
    uint64_t count;
} store_array;

enum { STORE_ARRAYS = 5 };

static void list_arrays(dmg_graph_store *store, store_array *arrays)
{
    uint64_t vertices = store->vertex_count;
    arrays[0] = (store_array){"out_index", &store->out_index, store->has_out ? store->shape.entry_bytes : 0, vertices};
    arrays[1] = (store_array){"in_index", &store->in_index, store->has_in ? store->shape.entry_bytes : 0, vertices};
    arrays[2] = (store_array){"out_degrees", &store->out_degrees, sizeof(uint32_t), vertices};
    arrays[3] = (store_array){"ids", &store->ids, store->has_ids ? sizeof(uint64_t) : 0, vertices};
    arrays[4] = (store_array){"tiny_chunks", &store->tiny_chunks, sizeof(uint64_t), store->tiny_chunk_count};
}

static void free_arrays(dmg_channel *channel, const store_array *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (arrays[i].element_bytes > 0) {
            dmg_range_array_free(channel, arrays[i].array);
        }
    }
}

static uint64_t pool_bytes_of(const dmg_client *client)
{
    uint64_t bytes = 0;
    for (uint32_t node = 0; node < dmg_client_node_count(client); node++) {
        bytes += dmg_client_segment_bytes(client, (uint16_t)node);
    }
    return bytes;
}

/**
 * Whether a pool can hold the arcs, whatever else it holds. Asked before anybody else can find the store, since one of
 * more arcs than its pool has room for is one that makes no sense (dmg_graph_store_check).
 */
static dmg_status check_room(const dmg_client *client, const dmg_graph_store *store)
{
    uint64_t pool_bytes = pool_bytes_of(client);
    if (store->arc_count <= pool_bytes / store->shape.edge_bytes) {
        return DMG_OK;
    }
    return dmg_error(
        DMG_ERR_LIMIT,
        "a graph of %" PRIu64 " arcs takes %" PRIu64 " bytes and more, and the %u memory node%s of the pool "
        "%s no more than %" PRIu64 " bytes in all; use larger segments or more memory nodes",
        store->arc_count, store->arc_count * store->shape.edge_bytes, dmg_client_node_count(client),
        dmg_client_node_count(client) == 1 ? "" : "s", dmg_client_node_count(client) == 1 ? "has" : "have", pool_bytes);
}

/** Allocate all arrays, or none. */
static dmg_status allocate_arrays(dmg_channel *channel, uint64_t job, dmg_graph_store *store)
{
    dmg_status status = dmg_pool_shares_by_room(channel, &store->shares);
    if (status != DMG_OK) {
        return status;
    }
    store_array arrays[STORE_ARRAYS];
    list_arrays(store, arrays);
    for (uint32_t i = 0; i < STORE_ARRAYS; i++) {
        if (arrays[i].element_bytes == 0) {
            continue;
        }
        status = dmg_range_array_allocate_by_share(channel, job, arrays[i].count, arrays[i].element_bytes,
                                                   &store->shares, arrays[i].array);
        if (status != DMG_OK) {
            dmg_error_prefix(status, "allocating the %s of the graph store", arrays[i].name);
            free_arrays(channel, arrays, i);
            return status;
        }
    }
    return DMG_OK;
}

static dmg_status write_tiny_chunks(dmg_channel *channel, const dmg_graph_store *store, const dmg_tiny_chunks *chunks)
{
    dmg_completion completion = {0};
    dmg_range_array_post_write(channel, &store->tiny_chunks, 0, chunks->count, chunks->arcs, &completion);
    return dmg_wait(channel, &completion);
}

dmg_status dmg_graph_store_create(dmg_channel *channel, const dmg_graph *graph, const dmg_store_options *options,
                                  dmg_graph_store *store)
{
    dmg_tiny_chunks chunks = {0};
    resolve(graph, options, store);
    dmg_status status = check_options(graph, options, store);
    if (status == DMG_OK) {
        status = check_room(dmg_channel_client(channel), store);
    }
    if (status == DMG_OK) {
        status = cut_partitions(graph, options, store, &chunks);
    }
    if (status == DMG_OK) {
        status = allocate_arrays(channel, options->job, store);
    }
    if (status == DMG_OK) {
        status = write_tiny_chunks(channel, store, &chunks);
    }
    dmg_tiny_chunks_destroy(&chunks);
    return status;
}

/** What the pool has of the tiny-chunks, which is not trusted. */
static dmg_status read_tiny_chunks(dmg_channel *channel, const dmg_graph_store *store, dmg_tiny_chunks *chunks)
{
    *chunks = (dmg_tiny_chunks){.vertex_count = store->vertex_count,
                                .chunk_vertices = store->tiny_chunk_vertices,
                                .count = store->tiny_chunk_count,
                                .arcs = malloc((store->tiny_chunk_count + 1) * sizeof *chunks->arcs)};
    if (!chunks->arcs) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the metadata of %u tiny-chunks", chunks->count);
    }
    dmg_completion completion = {0};
    dmg_range_array_post_read(channel, &store->tiny_chunks, 0, chunks->count, chunks->arcs, &completion);
    dmg_status status = dmg_wait(channel, &completion);
    uint64_t arcs = 0;
    bool is_sound = true;
    for (uint32_t i = 0; i < chunks->count && status == DMG_OK; i++) {
        is_sound = is_sound && dmg_checked_add(arcs, chunks->arcs[i], &arcs);
    }
    uint64_t expected = store->arc_count * (store->has_out && store->has_in ? 2 : 1);
    if (status == DMG_OK && (!is_sound || arcs != expected)) {
        status = dmg_error(DMG_ERR_CORRUPT, "graph store: its %u tiny-chunks count %" PRIu64 " arcs, expected %" PRIu64,
                           chunks->count, arcs, expected);
    }
    return status;
}

dmg_status dmg_graph_store_partition(dmg_channel *channel, const dmg_graph_store *store, uint32_t partition_count,
                                     uint64_t *first, uint64_t *costs)
{
    dmg_tiny_chunks chunks;
    if (partition_count < 1 || partition_count > DMG_PARTITIONS_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "a graph store of %u partitions: expected 1 to %d", partition_count,
                         DMG_PARTITIONS_MAX);
    }
    dmg_status status = read_tiny_chunks(channel, store, &chunks);
    if (status == DMG_OK) {
        dmg_tiny_chunks_partition(&chunks, partition_count, first);
    }
    for (uint32_t i = 0; i < partition_count && costs && status == DMG_OK; i++) {
        costs[i] = dmg_tiny_chunks_cost(&chunks, partition_count, first[i], first[i + 1]);
    }
    dmg_tiny_chunks_destroy(&chunks);
    return status;
}

/** A bool that came from outside is looked at as a byte: any other value than 0 and 1 would be undefined. */
static bool is_bool(const bool *value)
{
    unsigned char byte;
    memcpy(&byte, value, sizeof byte);
    return byte <= 1;
}

static dmg_status check_array(const store_array *expected, const dmg_client *client)
{
    dmg_status status =
        dmg_range_array_check(expected->array, expected->count, expected->element_bytes, PARTITION_ALIGNMENT, client);
    return status == DMG_OK ? DMG_OK : dmg_error_prefix(status, "graph store: %s", expected->name);
}

static dmg_status check_header(const dmg_graph_store *store)
{
    if (store->version != DMG_GRAPH_STORE_VERSION) {
        return dmg_error(DMG_ERR_CORRUPT, "graph store: version %u, this program knows %d", store->version,
                         DMG_GRAPH_STORE_VERSION);
    }
    if (!is_bool(&store->is_directed) || !is_bool(&store->has_out) || !is_bool(&store->has_in) ||
        !is_bool(&store->has_ids)) {
        return dmg_error(DMG_ERR_CORRUPT, "graph store: a flag is neither true nor false");
    }
    if (store->weight_kind > DMG_WEIGHT_FLOAT32) {
        return dmg_error(DMG_ERR_CORRUPT, "graph store: unknown kind of weights %u", store->weight_kind);
    }
    if (store->vertex_count > DMG_VERTICES_MAX) {
        return dmg_error(DMG_ERR_CORRUPT, "graph store: %" PRIu64 " vertices", store->vertex_count);
    }
    if ((!store->has_out && !store->has_in) || (store->has_in && !store->is_directed)) {
        return dmg_error(DMG_ERR_CORRUPT, "graph store: the directions that it has contradict each other");
    }
    uint64_t end_id;
    if (!store->has_ids && !dmg_checked_add(store->first_id, store->vertex_count, &end_id)) {
        return dmg_error(DMG_ERR_CORRUPT, "graph store: %" PRIu64 " ids from %" PRIu64 " on do not fit into 64 bits",
                         store->vertex_count, store->first_id);
    }
    const dmg_index_shape *shape = &store->shape;
    if (!entry_bytes_are_legal(shape->entry_bytes) || shape->partition_count < 1 ||
        shape->partition_count > DMG_PARTITIONS_MAX) {
        return dmg_error(DMG_ERR_CORRUPT, "graph store: entries of %u bytes for %u partitions", shape->entry_bytes,
                         shape->partition_count);
    }
    dmg_index_shape expected =
        dmg_index_shape_make(shape->entry_bytes, store->weight_kind != DMG_WEIGHT_NONE, shape->partition_count);
    if (shape->edge_bytes != expected.edge_bytes ||
        (shape->in_place_degree_max != expected.in_place_degree_max && shape->in_place_degree_max != 0)) {
        return dmg_error(DMG_ERR_CORRUPT, "graph store: edges of %u bytes, %u in place in an entry of %u",
                         shape->edge_bytes, shape->in_place_degree_max, shape->entry_bytes);
    }
    return DMG_OK;
}

static dmg_status check_tiny_chunks(const dmg_graph_store *store)
{
    uint64_t vertices = store->tiny_chunk_vertices;
    uint64_t count = store->tiny_chunk_count;
    bool is_legal = store->zero == 0 && vertices > 0 && vertices % PARTITION_ALIGNMENT == 0 &&
                    vertices <= DMG_VERTICES_MAX + PARTITION_ALIGNMENT && count <= DMG_TINY_CHUNKS_MAX &&
                    count * vertices >= store->vertex_count &&
                    (count == 0 || (count - 1) * vertices < store->vertex_count);
    return is_legal ? DMG_OK
                    : dmg_error(DMG_ERR_CORRUPT,
                                "graph store: %" PRIu64 " tiny-chunks of %" PRIu64 " vertices do not cover %" PRIu64,
                                count, vertices, store->vertex_count);
}

static dmg_status check_shares(const dmg_graph_store *store, const dmg_client *client)
{
    const dmg_pool_shares *shares = &store->shares;
    bool is_legal = shares->node_count >= 1 && shares->node_count <= DMG_MEMORY_NODES_MAX &&
                    shares->node_count <= dmg_client_node_count(client);
    uint64_t most = 0;
    for (uint32_t node = 0; is_legal && node < shares->node_count; node++) {
        is_legal = shares->weight[node] <= DMG_ADDRESS_OFFSET_MASK;
        most = shares->weight[node] > most ? shares->weight[node] : most;
    }
    return is_legal && most > 0 ? DMG_OK
                                : dmg_error(DMG_ERR_CORRUPT, "graph store: the shares of %u memory nodes make no sense",
                                            shares->node_count);
}

static dmg_status check_partitions(const dmg_graph_store *store)
{
    uint32_t count = store->shape.partition_count;
    const uint64_t *first = store->partition_first;
    bool is_legal = first[0] == 0 && first[count] == store->vertex_count;
    for (uint32_t i = 0; i < count; i++) {
        is_legal = is_legal && first[i] <= first[i + 1] &&
                   (first[i] % PARTITION_ALIGNMENT == 0 || first[i] == store->vertex_count);
    }
    return is_legal ? DMG_OK
                    : dmg_error(DMG_ERR_CORRUPT,
                                "graph store: the bounds of its %u partitions do not cover the vertices", count);
}

dmg_status dmg_graph_store_check(const dmg_graph_store *store, size_t bytes, const dmg_client *client)
{
    if (bytes != sizeof *store) {
        return dmg_error(DMG_ERR_CORRUPT, "graph store: the descriptor has %zu bytes, expected %zu", bytes,
                         sizeof *store);
    }
    dmg_status status = check_header(store);
    if (status == DMG_OK) {
        status = check_tiny_chunks(store);
    }
    if (status == DMG_OK) {
        status = check_partitions(store);
    }
    if (status == DMG_OK) {
        status = check_shares(store, client);
    }
    if (status != DMG_OK) {
        return status;
    }
    uint64_t pool_bytes = pool_bytes_of(client);
    if (store->arc_count > pool_bytes / store->shape.edge_bytes || (store->vertex_count == 0 && store->arc_count > 0)) {
        return dmg_error(DMG_ERR_CORRUPT,
                         "graph store: %" PRIu64 " arcs of %" PRIu64 " vertices in a pool of %" PRIu64 " bytes",
                         store->arc_count, store->vertex_count, pool_bytes);
    }
    dmg_graph_store copy = *store;
    store_array arrays[STORE_ARRAYS];
    list_arrays(&copy, arrays);
    for (uint32_t i = 0; i < STORE_ARRAYS && status == DMG_OK; i++) {
        if (arrays[i].element_bytes > 0) {
            status = check_array(&arrays[i], client);
        }
    }
    return status;
}

/** Upper bound of the out-of-place lists of one direction. */
static uint64_t list_bytes(const dmg_index_shape *shape, uint64_t vertex_count, const uint64_t *offsets)
{
    uint64_t bytes = 0;
    for (uint64_t vertex = 0; vertex < vertex_count; vertex++) {
        uint64_t degree = offsets[vertex + 1] - offsets[vertex];
        if (degree > shape->in_place_degree_max) {
            uint64_t header = dmg_edge_list_lengths_surely_fit(shape, degree) ? 0 : dmg_list_header_bytes(shape) + 4;
            bytes += degree * shape->edge_bytes + header;
        }
    }
    return bytes;
}

uint64_t dmg_graph_store_bytes(const dmg_graph *graph, const dmg_store_options *options)
{
    dmg_graph_store store;
    resolve(graph, options, &store);
    if (check_options(graph, options, &store) != DMG_OK || store.vertex_count == 0) {
        return 0;
    }
    uint64_t bytes = 0;
    store_array arrays[STORE_ARRAYS];
    store.tiny_chunk_count = options->tiny_chunks ? options->tiny_chunks : DMG_TINY_CHUNKS_DEFAULT;
    list_arrays(&store, arrays);
    for (uint32_t i = 0; i < STORE_ARRAYS; i++) {
        /* Each node's share is rounded up to 64 elements and to a page. */
        bytes += arrays[i].element_bytes > 0
                     ? arrays[i].count * arrays[i].element_bytes +
                           (UINT64_C(64) * arrays[i].element_bytes + PAGE_BYTES) * DMG_MEMORY_NODES_MAX
                     : 0;
    }
    if (store.has_out) {
        bytes += list_bytes(&store.shape, store.vertex_count, graph->out.offsets);
    }
    if (store.has_in) {
        bytes += list_bytes(&store.shape, store.vertex_count, graph->in.offsets);
    }
    /* Loaders share the vertices in whole batches, so they take at most an extent a batch, a page more than its lists
     * each. */
    return bytes + ((store.vertex_count - 1) / DMG_STORE_BATCH_VERTICES + 1) * PAGE_BYTES;
}
