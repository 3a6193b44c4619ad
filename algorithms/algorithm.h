/**
 * @file algorithm.h
 * What the program knows of an algorithm: its name, what it needs, how it is run, and how its answer is counted and
 * written.
 */
#ifndef DMG_ALGORITHMS_ALGORITHM_H
#define DMG_ALGORITHMS_ALGORITHM_H

#include "algorithms/answer.h"
#include "core/engine/engine.h"

/**
 * What an algorithm can be told that not every one can be told; bits of dmg_algorithm.takes. Anything else that is
 * asked of it is an error, wherever it is asked.
 */
typedef enum dmg_algorithm_choice {
    DMG_TAKES_SOURCE = 1 << 0,     /**< a vertex to start at */
    DMG_TAKES_ITERATIONS = 1 << 1, /**< a number of iterations */
    DMG_TAKES_TOLERANCE = 1 << 2,
    DMG_TAKES_DAMPING = 1 << 3,
    DMG_TAKES_PARTIALS = 1 << 4,  /**< how partial sums are passed on */
    DMG_TAKES_PRECISION = 1 << 5, /**< of what is cached */
    DMG_TAKES_PULL = 1 << 6,      /**< iterations against the arcs */
    DMG_TAKES_SPARSE = 1 << 7     /**< sparse iterations */
} dmg_algorithm_choice;

typedef struct dmg_algorithm_options {
    uint32_t source;         /**< vertex, not external id; DMG_NO_VERTEX when the graph is empty */
    uint32_t iterations_max; /**< 0: the algorithm's default */
    double tolerance;        /**< negative: the algorithm's default */
    double damping;          /**< negative: the algorithm's default */
} dmg_algorithm_options;

typedef struct dmg_algorithm {
    const char *name;
    const char *summary;       /**< for --help and for lists */
    const char *columns;       /**< of the output file: "ID DEPTH PARENT" */
    unsigned int takes;        /**< of dmg_algorithm_choice */
    bool uses_weights;         /**< missing weights count as 1 */
    bool weights_would_matter; /**< it has a weighted form, which is not here: weights are left out, with a warning */
    bool refuses_negative_weights;
    bool needs_in; /**< lists against the arcs are needed, not only useful */
    bool wants_in; /**< lists against the arcs make it faster */
    uint32_t value_bytes;
    /** Run on one rank. An empty graph is answered without iterations. */
    dmg_status (*run)(dmg_engine *engine, const dmg_algorithm_options *options, dmg_run_result *result);
    /** Compute all values in this thread, as simply as possible, for --verify. `values` has vertex_count elements. */
    dmg_status (*serial)(const dmg_graph *graph, const dmg_algorithm_options *options, void *values);
    /** DMG_OK, or DMG_ERR_VERIFY naming the first vertex (by external id) that differs. */
    dmg_status (*compare)(const dmg_graph *graph, const void *values, const void *expected);
    /**
     * Write what stands behind the vertex's id in the output file, without newline; returns its length. `id_of` maps a
     * vertex to its external id. At most 128 bytes.
     */
    int (*format)(const void *value, uint64_t (*id_of)(const void *context, uint32_t vertex), const void *context,
                  char *text, size_t capacity);
    dmg_answer_count answer; /**< what a summary says of all values */
} dmg_algorithm;

/** NULL-terminated. */
extern const dmg_algorithm *const dmg_algorithms[];
/** NULL when there is none. */
const dmg_algorithm *dmg_algorithm_find(const char *name);

static inline bool dmg_algorithm_takes(const dmg_algorithm *algorithm, dmg_algorithm_choice choice)
{
    return (algorithm->takes & choice) != 0;
}

#endif
