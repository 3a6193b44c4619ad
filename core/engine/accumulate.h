/**
 * @file accumulate.h
 * Vertex programs in which every vertex is active in every iteration and an update adds: PageRank. The attributes of an iteration are made
 * from those of the last one alone (Jacobi), so that the answer does not depend on the number of nodes and threads.
 *
 * An iteration is one of
 *
 *     pull   each compute node caches what its partition's vertices give (DMG, section 4.5.2); for every vertex of the graph it adds up the edge segments
 *            whose sources it caches, and leaves the partial sum in the pool, in sequential writes: one array of partial sums a compute node
 *     push   each compute node caches the sums of its partition; its vertices add to their neighbours', inside the partition locally, elsewhere
 *            by direct remote updates to the pool
 *
 * and then, in both, each compute node makes its partition's next attributes from the sums.
 */
#ifndef DMG_CORE_ENGINE_ACCUMULATE_H
#define DMG_CORE_ENGINE_ACCUMULATE_H

#include "core/engine/runtime.h"

typedef struct dmg_accumulate_program {
    /** What a vertex gives along each of its edges. */
    double (*give)(double value, uint32_t out_degree);
    /** The next value from the sum of what the neighbours gave. `shared` is what the last iteration's `share` added up to. */
    double (*apply)(const void *parameters, uint64_t vertex_count, double sum, double shared);
    /** What a vertex adds to the sum that all vertices see in the next iteration (dangling mass). */
    double (*share)(double value, uint32_t out_degree);
    double (*start)(const void *parameters, uint64_t vertex_count);
} dmg_accumulate_program;

typedef struct dmg_accumulate_limits {
    uint32_t iterations_max;
    double tolerance; /**< stop when the sum of all changes is smaller; 0: never */
} dmg_accumulate_limits;

/**
 * Run a program on one rank of the engine's job; attributes are doubles. result->residual is the sum of the changes in the last iteration.
 * On an error the other ranks are told.
 */
dmg_status dmg_accumulate_execute(dmg_engine *engine, const dmg_accumulate_program *program, const void *parameters,
                                  const dmg_accumulate_limits *limits, dmg_run_result *result);

#endif
