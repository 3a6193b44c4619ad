/**
 * @file session.h
 * Graph algorithms on a pool of memory, from a program: open a session, load a graph, run, read the values.
 *
 *     dmg_session *session = NULL;
 *     dmg_status status = dmg_session_open(NULL, &session);
 *     if (status == DMG_OK) {
 *         status = dmg_session_load(session, "graph.mtx", NULL);
 *     }
 *     if (status == DMG_OK) {
 *         status = dmg_session_run(session, "pagerank", NULL, NULL);
 *     }
 *     double rank;
 *     if (status == DMG_OK) {
 *         status = dmg_session_values(session, 0, 1, sizeof rank, &rank);
 *     }
 *     if (status != DMG_OK) {
 *         fprintf(stderr, "%s\n", dmg_error_message());
 *     }
 *     dmg_session_close(session);
 *
 * A session is one graph in a pool, and the calling process as a compute node of it. By itself a session is complete:
 * its memory nodes are threads of this process. Several processes (*ranks*) share the work when each opens a session on
 * the same pool, by the addresses of its memory nodes. Then dmg_session_load and dmg_session_run are collective: every
 * rank makes the same calls in the same order, and each waits for the others. Everything else is up to each rank alone.
 *
 * *Vertices* are numbered from 0 to dmg_session_vertex_count() - 1, in the order of their *ids*, which are the numbers
 * in the file.
 *
 * Errors: what can fail returns a dmg_status and leaves a sentence for dmg_error_message(). What a function fills in is
 * untouched when it fails, unless it says otherwise. On every call DMG_ERR_PEER means that a memory node or another
 * rank died or does not answer: the session can then only be closed. After any other error it can be used further.
 *
 * Thread safety: a session is used by one thread at a time, not always the same. Sessions do not know of each other.
 *
 * Structs with options are zeroed first, then what is wanted is set: 0 always means the default.
 */
#ifndef DMGRAPH_SESSION_H
#define DMGRAPH_SESSION_H

#include "dmgraph/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A graph in a pool, and this process as a compute node of it. */
typedef struct dmg_session dmg_session;

/* ---- opening and closing ---- */

/** Bytes of a pool's shared secret. */
#define DMG_SESSION_TOKEN_BYTES 16
/** Bytes of the secret that the ranks of a session share. */
#define DMG_SESSION_SECRET_BYTES 32
/** Memory nodes that threads of this process can serve. */
#define DMG_SESSION_MEMORY_NODES_MAX 16

/** How a session is opened. */
typedef struct dmg_session_options {
    /** What carries the data, as in docs/transports.md; NULL: "cxl_shm", loads and stores to the shared memory of this
     * machine. */
    const char *transport;

    /** Memory nodes that threads of this process serve, when no addresses are given; 0: one. At most
     * DMG_SESSION_MEMORY_NODES_MAX. */
    uint32_t memory_nodes;
    /**
     * Memory that each of these offers; 0: together 1 GiB. A graph takes about 32 bytes a vertex and 4 an arc (8 with
     * weights) for each direction that is kept, a run some 50 bytes a vertex. Over cxl_shm what is not used takes
     * nothing, over ucx it is taken at once.
     */
    uint64_t memory_bytes;

    /** Of memory nodes that are there already, numbers 0, 1, ... in this order; NULL: this process serves its own. */
    const char *const *addresses;
    uint32_t address_count;

    /** The secret that clients of the pool show. All zero for a pool of this process: a random one, so that nobody else
     * can join. */
    uint8_t token[DMG_SESSION_TOKEN_BYTES];
    /** Tells apart the sessions that one pool has, or had: 1 to 31 characters; NULL: "session". The ranks of one
     * session give the same. */
    const char *name;
    /** Known to the ranks of one session alone, who give the same: nobody joins the session without it, or frees what
     * it has. All zero: made of the token and the name, so that any client of the pool who knows the name could join.
     */
    uint8_t secret[DMG_SESSION_SECRET_BYTES];
    uint32_t rank; /**< this process among those that share the session, from 0 to size - 1 */
    uint32_t size; /**< how many share it, at most 64; 0: one */

    uint32_t threads;     /**< workers of this process; 0: one for each core that it may use */
    uint64_t cache_bytes; /**< hard limit of what a run keeps in this process; 0: none */
    uint64_t
        peer_timeout_ns; /**< who has not answered for so long is dead; 0: 5 s, or 60 s among threads of this process */
} dmg_session_options;

/**
 * Open a session: start the memory nodes, or connect to those that are there. Does not wait for other ranks.
 *
 * @param options       copied; NULL: all defaults
 * @param[out] session  to be closed with dmg_session_close; NULL on failure
 * @return DMG_OK; DMG_ERR_ARGUMENT for options that make no sense; DMG_ERR_LIMIT for too many nodes, ranks or threads;
 * DMG_ERR_UNSUPPORTED when this machine has not what the transport needs; DMG_ERR_EXISTS when another memory node uses
 * the memory that the transport names; DMG_ERR_MEMORY, DMG_ERR_IO; DMG_ERR_PEER when a memory node does not answer;
 * DMG_ERR_PROTOCOL when it is none, or the token is wrong
 *
 * Thread-safe. Costs milliseconds, and the start of a thread for each memory node.
 */
DMG_API dmg_status dmg_session_open(const dmg_session_options *options, dmg_session **session);

/**
 * Close a session: its graph, its values and the memory nodes of this process are gone. What other ranks load or run
 * from then on is DMG_ERR_CANCELLED for them, and everything is DMG_ERR_PEER when they need this process's memory
 * nodes. NULL is allowed.
 */
DMG_API void dmg_session_close(dmg_session *session);

/**
 * The address of a memory node that this process serves, for the options of other ranks.
 *
 * @return owned by the session; NULL when there is no such node here
 */
DMG_API const char *dmg_session_address(const dmg_session *session, uint32_t memory_node);

/* ---- the graph ---- */

/** Whether lines of a file are arcs or edges. */
typedef enum dmg_load_direction {
    DMG_LOAD_BY_FILE, /**< as the file's header says; edge lists, which have none, are directed */
    DMG_LOAD_DIRECTED,
    DMG_LOAD_UNDIRECTED
} dmg_load_direction;

/** How a graph is loaded. */
typedef struct dmg_load_options {
    dmg_load_direction direction;
    bool ignore_weights; /**< leave them out: smaller, and sssp counts arcs */
    bool drop_repeats;   /**< of repeated arcs keep one, with the smallest weight */
    bool drop_loops;
    /** Keep the arcs of a directed graph in their own direction only: half the memory; cc cannot run, bfs and pagerank
     * are slower. */
    bool out_lists_only;
    /** Read it as a text edge list whatever its content, its name and the files beside it look like (docs/formats.md).
     */
    bool is_edge_list;
} dmg_load_options;

/**
 * Load a graph into the pool, from any file that dmgraph reads (docs/formats.md). A session has one graph at a time:
 * the one before is gone, with the values of its last run, as soon as the call begins, also when it fails. Collective:
 * each rank reads the file and loads its share.
 *
 * @param path     the file, on this rank's machine
 * @param options  NULL: all defaults
 * @return DMG_OK; DMG_ERR_ARGUMENT without a path, or when ranks read different graphs; DMG_ERR_IO when the file cannot
 * be read; DMG_ERR_FORMAT with "FILE:LINE: ..." when it is malformed; DMG_ERR_LIMIT for more than 2^32 - 2 vertices;
 * DMG_ERR_MEMORY when the graph does not fit into a memory node, or into this process while it is read; what made
 * another rank fail
 *
 * Costs reading the file, and memory for the whole graph in this process until it is in the pool; the binary form is
 * mapped, and costs less.
 */
DMG_API dmg_status dmg_session_load(dmg_session *session, const char *path, const dmg_load_options *options);

/** Vertices of the graph; 0 when there is none. */
DMG_API uint64_t dmg_session_vertex_count(const dmg_session *session);
/** Arcs of the graph, an undirected edge being two of them unless it is a loop; 0 when there is none. */
DMG_API uint64_t dmg_session_arc_count(const dmg_session *session);

/**
 * The ids of consecutive vertices.
 *
 * @param first     0 <= first
 * @param count     first + count <= dmg_session_vertex_count()
 * @param[out] ids  `count` of them, ascending
 * @return DMG_OK, DMG_ERR_ARGUMENT for vertices that do not exist or without a graph, DMG_ERR_PEER
 *
 * Costs reading 8 bytes a vertex from the pool, one operation a memory node; nothing when the ids have no gaps.
 */
DMG_API dmg_status dmg_session_ids(dmg_session *session, uint64_t first, uint64_t count, uint64_t *ids);

/**
 * The vertex with an id.
 *
 * @param id           as in the file
 * @param[out] vertex  0 <= vertex < dmg_session_vertex_count()
 * @return DMG_OK, DMG_ERR_NOT_FOUND when no vertex has this id, DMG_ERR_ARGUMENT without a graph, DMG_ERR_PEER
 *
 * Costs a binary search in the pool, one small read a step; nothing when the ids have no gaps.
 */
DMG_API dmg_status dmg_session_find(dmg_session *session, uint64_t id, uint64_t *vertex);

/* ---- running ---- */

/** What an algorithm is told. What is zero is left to it; the rest must be something that it takes. */
typedef struct dmg_run_parameters {
    bool has_source;         /**< false: starts at the first vertex that has an arc */
    uint64_t source;         /**< id of the vertex where bfs and sssp start */
    uint32_t iterations_max; /**< of pagerank; 0: 1,000. With no tolerance, exactly so many are done */
    double tolerance;        /**< pagerank ends when the ranks change by less in all (L1); 0: 1e-9 */
    double damping;          /**< of pagerank, below 1; 0: 0.85 */
} dmg_run_parameters;

/** What is known of a run beside its values. */
typedef struct dmg_answer {
    uint32_t value_bytes; /**< of one value */
    uint32_t iterations;
    uint64_t source;     /**< id of the vertex where it started, when the algorithm starts at one */
    double residual;     /**< of pagerank, how much the ranks changed at last (L1); else 0 */
    uint64_t elapsed_ns; /**< of this rank */
} dmg_answer;

/**
 * Run an algorithm on the graph. Its values, one a vertex, stay in the pool until the next call of dmg_session_run or
 * dmg_session_load; those of the run before are gone as soon as the call begins. Collective, with the same arguments on
 * every rank.
 *
 * | algorithm  | value                            |
 * |------------|----------------------------------|
 * | "bfs"      | uint64_t: depth and parent, to be read with dmg_bfs_depth and dmg_bfs_parent; DMG_BFS_UNREACHED |
 * | "cc"       | uint32_t: the smallest vertex of the connected component, weakly connected in a directed graph |
 * | "pagerank" | double: the rank; all add up to 1 |
 * | "sssp"     | double: the distance from the source along the arcs, each 1 without weights; INFINITY for no way |
 *
 * @param algorithm    one of these names
 * @param parameters   NULL: all defaults
 * @param[out] answer  may be NULL
 * @return DMG_OK; DMG_ERR_NOT_FOUND when there is no such algorithm, or no vertex has the source's id; DMG_ERR_ARGUMENT
 * without a graph, for parameters that make no sense or that the algorithm does not take, for ranks that ask for
 * different runs, or for cc on a directed graph that was loaded with out_lists_only; DMG_ERR_FORMAT for sssp when a
 * weight is negative; DMG_ERR_LIMIT when cache_bytes do not suffice; DMG_ERR_MEMORY when a memory node has no room for
 * the values; DMG_ERR_PEER; what made another rank fail
 */
DMG_API dmg_status dmg_session_run(dmg_session *session, const char *algorithm, const dmg_run_parameters *parameters,
                                   dmg_answer *answer);

/**
 * Read values of the last run. Any rank reads any of them.
 *
 * @param first        0 <= first
 * @param count        first + count <= dmg_session_vertex_count()
 * @param value_bytes  the size of one element of `values`, which has to be that of the algorithm's values
 * @param[out] values  `count` elements; undefined on failure
 * @return DMG_OK; DMG_ERR_ARGUMENT when there are no such vertices, no run has succeeded since the graph was loaded, or
 * its values have another size; DMG_ERR_PEER
 *
 * Costs reading the values from the pool, one operation a memory node.
 */
DMG_API dmg_status dmg_session_values(dmg_session *session, uint64_t first, uint64_t count, size_t value_bytes,
                                      void *values);

/** A value of bfs, when the vertex cannot be reached from the source. */
#define DMG_BFS_UNREACHED UINT64_MAX

/** Arcs on a shortest way from the source, of a value of bfs that is not DMG_BFS_UNREACHED. */
static inline uint32_t dmg_bfs_depth(uint64_t value)
{
    return (uint32_t)(value >> 32);
}

/** The vertex before on a shortest way from the source, the smallest there is; the source's parent is itself. */
static inline uint32_t dmg_bfs_parent(uint64_t value)
{
    return (uint32_t)(value & UINT32_MAX);
}

#ifdef __cplusplus
}
#endif

#endif
