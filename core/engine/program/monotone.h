/**
 * @file monotone.h
 * Vertex programs whose attribute only ever falls: BFS, components, shortest paths. An update combines by minimum, a
 * vertex whose attribute fell is active in the next iteration, and the run ends when none is (DMG, sections 2.1
 * and 4.3).
 *
 * An iteration is one of
 *
 *     dense, push   each compute node caches the attributes of its partition; active vertices of the
 *                   partition propagate along their edges; an update inside the partition is local; a
 *                   long segment that leaves it is passed to its owner by reference (RefRD), a short one
 *                   by value (ValRD), to the memory node or the owner, or by direct remote updates
 *     dense, pull   each compute node caches the same, and its partition's part of the frontier; for every
 *                   vertex of the graph that can still fall it looks at the edges whose sources it caches
 *     sparse        no cache: updates of the pool alone (DMG, section 4.3.2)
 *
 * After a dense iteration the cached attributes are merged into the pool in sequential writes; where several groups of
 * compute nodes cache the same partition, what they found is combined before (group_exchange.h). The mode of the next
 * iteration is chosen from counts that the barrier brought.
 *
 * A program says what it does in a `static const` structure of inline functions (dmg_monotone_uint32,
 * dmg_monotone_uint64). Its file then includes monotone.inc, which makes loops of it in which these are inlined.
 */
#ifndef DMG_CORE_ENGINE_PROGRAM_MONOTONE_H
#define DMG_CORE_ENGINE_PROGRAM_MONOTONE_H

#include "core/engine/group_exchange.h"
#include "core/engine/redistribution.h"

typedef struct dmg_monotone_run dmg_monotone_run;

/** Of which vertices a rank's cache has the attributes that the pool has. */
typedef enum dmg_cache_state {
    DMG_CACHE_STALE, /**< of none */
    DMG_CACHE_OWN,   /**< of the vertices that this rank walks, not of those of other groups */
    DMG_CACHE_VALID
} dmg_cache_state;

typedef void (*dmg_phase_apply)(void *context, dmg_chunk *chunk, const dmg_vertex_edges *edges, uint32_t count);

/** What the engine has to know of a program beside its functions. */
typedef struct dmg_monotone_traits {
    bool walks_both_ways;   /**< edges are followed in both directions, whatever the graph's */
    bool can_pull;          /**< it has `wants_pull` */
    bool pulls_from_active; /**< in pull mode just active sources count (BFS), else all (components) */
    bool stops_at_first;    /**< in pull mode the first source that counts is the best */
    bool uses_weights;
} dmg_monotone_traits;

/*
 * A program whose attributes are words of 4 or 8 bytes. `edge` is where an edge lies in its list; `kind` says what
 * weight stands behind its destination. Functions that a program does not need are NULL.
 */
#define DMG_MONOTONE_PROGRAM(word)                                                                                     \
    {                                                                                                                  \
        dmg_monotone_traits traits;                                                                                    \
        /** The attribute of a vertex that nothing reached; no update is larger. */                                    \
        word unreached;                                                                                                \
        /** A vertex's first attribute; sets `*is_active`, which is false. */                                          \
        word (*start)(const dmg_monotone_run *run, uint32_t vertex, bool *is_active);                                  \
        /** What the source's attribute makes of the destination's at an edge. */                                      \
        word (*candidate)(word value, uint32_t source, const uint8_t *edge, dmg_weight_kind kind);                     \
        /** Optional: that the candidate is no less than `present`, where this is cheaper to say than the              \
         * candidate. */                                                                                               \
        bool (*cannot_lower)(word present, word value, const uint8_t *edge, dmg_weight_kind kind);                     \
        /** With can_pull: a vertex of this attribute can still fall in this iteration. */                             \
        bool (*wants_pull)(const dmg_monotone_run *run, word value);                                                   \
    }

typedef struct dmg_monotone_uint32 DMG_MONOTONE_PROGRAM(uint32_t) dmg_monotone_uint32;
typedef struct dmg_monotone_uint64 DMG_MONOTONE_PROGRAM(uint64_t) dmg_monotone_uint64;

/** What monotone.inc makes of a program. */
typedef struct dmg_monotone_loops {
    const dmg_monotone_traits *traits;
    dmg_combine combine;
    dmg_phase_apply start;       /**< streams: values (write), activation (write), degrees */
    dmg_phase_apply fill_cache;  /**< streams: values */
    dmg_phase_apply push;        /**< streams: activation; from the cache */
    dmg_appliers appliers;       /**< what other ranks have passed on */
    dmg_phase_apply push_sparse; /**< streams: activation; selected values: values */
    uint32_t (*pull_select)(void *context, dmg_chunk *chunk, uint32_t *selected); /**< with can_pull */
    dmg_phase_apply pull;                                                         /**< streams: values; with can_pull */
    dmg_phase_apply merge; /**< streams: values, next activation (both written), degrees */
} dmg_monotone_loops;

struct dmg_monotone_run {
    dmg_engine *engine;
    const dmg_monotone_loops *loops;
    const void *parameters; /**< the algorithm's */
    uint64_t first;         /**< the vertices whose attributes this rank caches */
    uint64_t last;
    dmg_range_array values;
    dmg_range_array activation[2];      /**< words of 64 vertices: of this iteration, and of the next */
    uint32_t iteration;                 /**< from 0 */
    uint32_t current;                   /**< which of the two is this iteration's */
    dmg_redistribution *redistribution; /**< NULL: nothing is passed on through pool memory */
    void *cache;                        /**< the attributes of [first, last) */
    uint64_t *frontier;                 /**< pull: the activation words of [first, last) */
    dmg_cache_state cache_state;
    dmg_group_exchange *exchange; /**< NULL: one group, or no dense push yet */
    bool clears_activation;       /**< in this pass */
};

/**
 * Run a program on one rank of the engine's job. `parameters` is what the program's functions find in the run. Fills in
 * all of `result` but `residual`. On an error the other ranks are told.
 */
dmg_status dmg_monotone_execute(dmg_engine *engine, const dmg_monotone_loops *loops, const void *parameters,
                                dmg_run_result *result);

/** A word of a chunk's activation bitmap: bits of the chunk's vertices alone. */
static inline uint64_t dmg_monotone_active(const dmg_monotone_run *run, const dmg_chunk *chunk,
                                           const uint64_t *activation, uint32_t word)
{
    uint64_t bits = dmg_read_once_64(&activation[word]);
    uint32_t vertices = chunk->count - word * 64;
    if (vertices < 64 && bits >> vertices != 0) {
        dmg_worker_note_stray(&run->engine->workers[chunk->worker], DMG_STRAY_ACTIVATION, chunk->first + chunk->count);
        bits &= (UINT64_C(1) << vertices) - 1;
    }
    return bits;
}

/** The vertices of a chunk whose activation bit (stream 0) is set. */
uint32_t dmg_monotone_select_active(void *context, dmg_chunk *chunk, uint32_t *selected);
/** After push: clear the chunk's activation words in the last pass over them, or leave them as they are. */
void dmg_monotone_leave_chunk(const dmg_monotone_run *run, dmg_chunk *chunk);

#endif
