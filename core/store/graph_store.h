/**
 * @file graph_store.h
 * A graph in the pool (DMG, section 4.2): the index and the external ids split by range over the memory nodes,
 * out-of-place lists dealt out to them in batches, in turns.
 */
#ifndef DMG_CORE_STORE_GRAPH_STORE_H
#define DMG_CORE_STORE_GRAPH_STORE_H

#include "core/pool/pool.h"
#include "core/pool/range_array.h"
#include "core/store/index_entry.h"
#include "formats/graph.h"

/** Batches of vertices are loaded, and their lists placed, together. */
#define DMG_STORE_BATCH_VERTICES 1024

/** Changes with the meaning of anything that a store keeps in the pool. */
#define DMG_GRAPH_STORE_VERSION 2

/** The descriptor: plain data that travels in the catalog. */
typedef struct dmg_graph_store {
    uint32_t version;
    uint32_t weight_kind; /**< dmg_weight_kind */
    uint64_t vertex_count;
    uint64_t arc_count;
    dmg_index_shape shape;
    bool is_directed;
    bool has_out;
    bool has_in;  /**< lists against the arcs; an undirected graph has none of its own, and needs none */
    bool has_ids; /**< false: external ids are first_id + vertex */
    uint64_t first_id;
    uint64_t tiny_chunk_vertices; /**< of each tiny-chunk but the last; a multiple of 64 */
    uint32_t tiny_chunk_count;    /**< 0 for an empty graph */
    uint32_t zero;                /**< is 0 */
    uint64_t partition_ns;        /**< slicing into tiny-chunks and cutting the partitions took so long */
    uint64_t partition_first[DMG_PARTITIONS_MAX + 1];
    dmg_pool_shares shares;    /**< how arrays and lists are dealt out to the memory nodes */
    dmg_range_array out_index; /**< elements of shape.entry_bytes */
    dmg_range_array in_index;
    dmg_range_array out_degrees; /**< 4 bytes each */
    dmg_range_array ids;         /**< 8 bytes each */
    dmg_range_array tiny_chunks; /**< arcs of each tiny-chunk, of all lists that are stored; 8 bytes each */
} dmg_graph_store;

typedef struct dmg_store_options {
    uint32_t entry_bytes;     /**< 0: DMG_INDEX_ENTRY_BYTES_DEFAULT */
    uint32_t partition_count; /**< at least 1 */
    uint32_t tiny_chunks;     /**< to slice the vertices into, at most; 0: DMG_TINY_CHUNKS_DEFAULT */
    /** No edges in place: every list is out of place, and an entry only says where (what DMG, Fig. 24, compares
     * with). */
    bool without_embedding;
    bool with_out;
    bool with_in; /**< needs graph->in for a directed graph; an undirected one is stored once, whichever is asked for */
    uint64_t job; /**< what the store belongs to; 0: the pool */
} dmg_store_options;

/**
 * Allocate the arrays and fill in the descriptor: partitions are cut, nothing is loaded yet. One compute node does
 * this. The partitions balance the arcs of all lists that are stored. The arrays of an empty graph take no memory.
 * DMG_ERR_LIMIT when the pool is smaller than the arcs alone; DMG_ERR_MEMORY when a memory node has no room.
 */
dmg_status dmg_graph_store_create(dmg_channel *channel, const dmg_graph *graph, const dmg_store_options *options,
                                  dmg_graph_store *store);

/** A descriptor that came out of the catalog: sizes, bounds and counts contradict nothing, or DMG_ERR_CORRUPT. */
dmg_status dmg_graph_store_check(const dmg_graph_store *store, size_t bytes, const dmg_client *client);

/**
 * Make one store for all ranks of a job: rank 0 creates it and puts its descriptor into the catalog, the others find it
 * there. Every rank calls this, with the same graph and options; `options->job` is not used, since the store belongs to
 * `job`. One barrier. DMG_ERR_ARGUMENT on a rank whose graph differs from that of rank 0 in its counts or kind. A rank
 * that fails here has to abort the job, or the others wait for it.
 */
dmg_status dmg_graph_store_share(dmg_channel *channel, dmg_job *job, const char *name, const dmg_graph *graph,
                                 const dmg_store_options *options, dmg_graph_store *store);

/**
 * Cut a graph that is in the pool into so many partitions, from the tiny-chunks' metadata alone (DMG, section 4.4.1):
 * one read of 8 bytes a tiny-chunk from each node that holds some, whatever the graph. `first` gets partition_count + 1
 * vertices, as from dmg_tiny_chunks_partition; with the store's own count they are its partition_first. With `costs`
 * (may be NULL; partition_count elements) comes what each partition is charged, 8 * (p - 1) * |Vi| + |Ei|.
 * DMG_ERR_CORRUPT when the metadata contradicts the count of arcs.
 */
dmg_status dmg_graph_store_partition(dmg_channel *channel, const dmg_graph_store *store, uint32_t partition_count,
                                     uint64_t *first, uint64_t *costs);

/**
 * Load the vertices [first, last) of the graph: index entries, lists, degrees, ids. Threads and compute nodes call this
 * side by side, each for its own range (first a multiple of DMG_STORE_BATCH_VERTICES) and with its own channel. Lists
 * of one batch are contiguous on one node; batches go round the nodes, by their shares (list_placement.h). The call
 * allocates one extent a node for the lists of its range, of just their size, and frees them when it fails. Where
 * memory is reached by loads and stores and is coherent it is filled in place; else through at most 1 MiB of buffers,
 * with several writes in flight; both are over when it returns, and a barrier makes them known to others.
 *
 * `progress_arcs` (may be NULL) is increased as arcs are written, for each direction that is stored. DMG_ERR_CORRUPT
 * when a list does not ascend or has a destination that is no vertex; DMG_ERR_LIMIT when one has 2^32 edges or more.
 */
dmg_status dmg_graph_store_load(dmg_channel *channel, const dmg_graph_store *store, uint64_t job,
                                const dmg_graph *graph, uint64_t first, uint64_t last, _Atomic uint64_t *progress_arcs);

/**
 * Pool bytes that a graph will take over all nodes, an upper bound, without the attributes of a run and without what an
 * allocator adds to extents of a page and more. 0 when dmg_graph_store_create would refuse the options. Costs
 * O(vertices).
 */
uint64_t dmg_graph_store_bytes(const dmg_graph *graph, const dmg_store_options *options);

/** Whether it is one of the store's arrays, which do not change after loading. */
static inline bool dmg_graph_store_owns(const dmg_graph_store *store, const dmg_range_array *array)
{
    return array == &store->out_index || array == &store->in_index || array == &store->out_degrees ||
           array == &store->ids || array == &store->tiny_chunks;
}

/** The index to walk along the arcs, or against them; NULL when the store does not have it. */
static inline const dmg_range_array *dmg_graph_store_index(const dmg_graph_store *store, bool against)
{
    if (!against || !store->is_directed) {
        return store->has_out ? &store->out_index : NULL;
    }
    return store->has_in ? &store->in_index : NULL;
}

#endif
