/**
 * @file accumulate.h
 * Vertex programs in which every vertex is active in every iteration and an update adds: PageRank. The attributes of an
 * iteration are made from those of the last one alone (Jacobi), so that the answer does not depend on the number of
 * nodes and threads.
 *
 * An iteration is one of
 *
 *     pull   each compute node caches what its partition's vertices give (DMG, section 4.5.2); for every
 *            vertex of the graph it adds up the edge segments whose sources it caches, and passes the
 *            partial sum on: in an array in the pool, one a compute node, in sequential writes; or by
 *            value (ValRD), where it is not 0
 *     push   each compute node caches the sums of its partition; its vertices add to their neighbours',
 *            inside the partition locally; a long segment that leaves it is passed to its owner by
 *            reference (RefRD), a short one by value (ValRD) or by updates of the pool
 *
 * and then, in both, each compute node makes its partition's next attributes from the sums.
 *
 * Where several groups of compute nodes cache the same partitions (groups.h), they share out the vertices: in pull mode
 * those that sums are made for, so that there is one array of partial sums a member, and in push mode those that give,
 * after which the groups' sums are added up (group_exchange.h). Each then makes the attributes of its share, and in
 * pull mode reads those of the rest of its partition again.
 *
 * In pull mode what a vertex gives is cached in single precision, which is faster where that cache is large. Rounding
 * then takes from all that is given (or adds to it), and the attributes do not settle where a few vertices give most.
 * So unless single precision was asked for, small graphs are cached in double from the start, and in others double
 * follows where single precision has settled with too much missing, or does not settle. All ranks see the same sums,
 * and decide the same.
 *
 * A program says what it does in a `static const` structure of inline functions (dmg_accumulate_double). Its file then
 * includes accumulate.inc, which makes loops of it in which these are inlined, and the loops that pull.
 */
#ifndef DMG_CORE_ENGINE_PROGRAM_ACCUMULATE_H
#define DMG_CORE_ENGINE_PROGRAM_ACCUMULATE_H

#include "core/engine/group_exchange.h"
#include "core/engine/redistribution.h"

typedef struct dmg_accumulate_run dmg_accumulate_run;

/** A program whose attributes are doubles. */
typedef struct dmg_accumulate_double {
    /** The first attribute of every vertex. */
    double (*start)(const dmg_accumulate_run *run);
    /** What a vertex gives along each of its edges. */
    double (*give)(double value, uint32_t degree);
    /** What it adds to the sum that all vertices see in the next iteration. */
    double (*share)(double value, uint32_t degree);
    /** The next attribute from the sum of what the neighbours gave; run->shared is the sum of the shares. */
    double (*apply)(const dmg_accumulate_run *run, double sum);
} dmg_accumulate_double;

typedef void (*dmg_accumulate_apply)(void *context, dmg_chunk *chunk, const dmg_vertex_edges *edges, uint32_t count);

/** What accumulate.inc makes of a program. The streams are values, degrees, and (of `make_values`) sums. */
typedef struct dmg_accumulate_loops {
    dmg_accumulate_apply start;                    /**< set all values */
    dmg_accumulate_apply push;                     /**< give along the edges */
    dmg_accumulate_apply pull;                     /**< add up what sources give; stream: partial sums, if any */
    double (*give)(double value, uint32_t degree); /**< what a vertex gives along each of its edges */
    dmg_accumulate_apply make_values;              /**< the next values from the sums */
    dmg_accumulate_apply fill_cache;               /**< cache what vertices give */
} dmg_accumulate_loops;

enum { DMG_ACCUMULATE_VALUES, DMG_ACCUMULATE_DEGREES, DMG_ACCUMULATE_SUMS };

struct dmg_accumulate_run {
    dmg_engine *engine;
    const dmg_accumulate_loops *loops;
    const void *parameters; /**< the algorithm's */
    uint64_t first;         /**< the vertices of which this rank caches something */
    uint64_t last;
    bool is_pull;
    bool is_single;  /**< what is given is cached in single precision */
    bool may_refine; /**< single precision was not asked for: double follows where it does not suffice */
    bool refines;    /**< the next iteration changes to double precision */
    dmg_range_array values;
    bool adds_up; /**< sums of this partition are cached: in push mode, and where partial sums go by value */
    dmg_update_method update_method;
    dmg_group_exchange *exchange;       /**< push: where several groups have sums of a vertex, else NULL */
    dmg_redistribution *redistribution; /**< NULL: nothing is passed on through pool memory */
    uint32_t partial_count;
    dmg_range_array
        partials[DMG_STREAMS_MAX]; /**< one a member of a group, or the one that updates of the pool go to */
    void *given;                   /**< pull: of [first, last): what each vertex gives, float or double */
    double *sums;                  /**< where sums are cached: of [first, last): what was given so far */
    double shared;                 /**< what the vertices' shares of the last iteration add up to */
    double missing;                /**< what single precision takes from all that is given next */
};

typedef struct dmg_accumulate_limits {
    uint32_t iterations_max;
    double tolerance; /**< stop when the sum of all changes is smaller; 0: never */
} dmg_accumulate_limits;

/**
 * Run a program on one rank of the engine's job; attributes are doubles. result->residual is the sum of the changes in
 * the last iteration. On an error the other ranks are told.
 */
dmg_status dmg_accumulate_execute(dmg_engine *engine, const dmg_accumulate_loops *loops, const void *parameters,
                                  const dmg_accumulate_limits *limits, dmg_run_result *result);

/** Sums of one partition are added to by all its workers. */
static inline void dmg_accumulate_add(double *sum, double addend)
{
    uint64_t *word = (uint64_t *)(void *)sum;
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(word, &seen, dmg_double_to_bits(dmg_bits_to_double(seen) + addend), true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

/**
 * Changes are added up in fixed point, whose sum does not depend on the order: all numbers of nodes and threads stop
 * after the same iteration. All changes together are at most 2.
 */
static inline uint64_t dmg_accumulate_fixed(double change)
{
    return (uint64_t)(change * 0x1p60);
}

#endif
