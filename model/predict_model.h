/**
 * @file predict_model.h
 * What a run would take on another link, and with other numbers of nodes: an analytic model of each iteration.
 *
 * The run is a sequence of *supersteps*: its start, then its iterations, each with a *share* for every compute node.
 * What a share counts does not depend on the link: operations, bytes, rounds that depend on each other. What it
 * measured is how long the compute node was busy when it did not wait. From both,
 *
 *     worker   = compute + max(posting, rounds x latency + first served) + messages
 *     node     = max(worker, limits of one connection)
 *     superstep  = max(slowest node, limits of a memory node's link) + barriers
 *
 * *Posting* is the work of handing operations over (and of moving their data, where the processor does that), which
 * goes on while the link's time runs. *First served* is the time on the link, of operations or of bytes, of what a task
 * must have before it goes on; of several tasks in flight the others' are served meanwhile. A link's limits bound a
 * superstep from below, whatever overlaps.
 *
 * Everything in it grows with latency and shrinks with bandwidth; without latency and limits it gives what was measured
 * without the waits. The names follow docs/predict.md, which has its measured error.
 */
#ifndef DMG_MODEL_PREDICT_MODEL_H
#define DMG_MODEL_PREDICT_MODEL_H

#include "transport/counters.h"
#include "transport/link.h"

#include <jansson.h>

/** What one compute node did in one superstep. Times are a worker's. */
typedef struct dmg_predict_share {
    double busy_ns; /**< not waiting: posting and computing */
    double post_ns;
    double message_wait_ns; /**< for messages other than barriers */
    double barrier_ns;      /**< in all barriers of the superstep, with the wait for others */
    double operations[DMG_OPERATION_KINDS];
    double bytes[DMG_OPERATION_KINDS];
    double rounds[DMG_OPERATION_KINDS];
    double serial_rounds[DMG_OPERATION_KINDS]; /**< rounds that are in flight together count once; no barriers */
    double mapped_spans;
    double mapped_bytes;
    double mapped_lines; /**< of 64 bytes */
    double mapped_waits;
    double mapped_atomics;
} dmg_predict_share;

typedef struct dmg_predict_superstep {
    double barriers;     /**< that each compute node passes */
    double lone_workers; /**< workers that share the rounds: 1 at the start, else those of a compute node */
    double whole_bytes;  /**< that every compute node reads, however many they are: the index in pull iterations */
    dmg_predict_share *shares; /**< of each compute node */
} dmg_predict_superstep;

/** A run, as far as the model needs it. */
typedef struct dmg_predict_run {
    char algorithm[64];
    char link[DMG_LINK_NAME_BYTES]; /**< the link that the run had: an emulated one, or "none" */
    bool has_link;
    dmg_link_settings ran_on; /**< when has_link */
    uint32_t mns, cns, workers;
    double measured_ns; /**< time of the run's iterations and start, with what was accounted for and not waited for */
    double most_loaded; /**< share of all traffic that the most loaded memory node had, by operations or bytes */
    uint64_t superstep_count;
    dmg_predict_superstep *supersteps;
    dmg_predict_share *shares; /**< superstep_count x cns */
    uint64_t rows_missing;     /**< iterations without figures of their own: they are in the first superstep */
    bool has_node_rows;        /**< false: the compute nodes' shares were taken to be equal */
} dmg_predict_run;

/**
 * Read the report of `dmgraph run --json`. Nothing in it is trusted.
 *
 * @return DMG_OK; DMG_ERR_FORMAT, naming what is missing or impossible; DMG_ERR_MEMORY
 */
dmg_status dmg_predict_run_read(const json_t *report, dmg_predict_run *run);
/** Also of one that was not read. */
void dmg_predict_run_free(dmg_predict_run *run);

/** What bounds a prediction. */
typedef enum dmg_predict_part {
    DMG_PREDICT_COMPUTE,    /**< computing and posting */
    DMG_PREDICT_LATENCY,    /**< rounds that follow each other */
    DMG_PREDICT_OPERATIONS, /**< the rate of operations of a link or a connection */
    DMG_PREDICT_BYTES,      /**< the bandwidth of a link or a connection */
    DMG_PREDICT_MESSAGES,   /**< answers of memory nodes: updates by value, names */
    DMG_PREDICT_BARRIERS,   /**< without the wait for slower nodes, which is in the others */
    DMG_PREDICT_PARTS
} dmg_predict_part;

/** "compute", "latency", "operations", "bytes", "messages", "barriers". */
const char *dmg_predict_part_name(dmg_predict_part part);

typedef struct dmg_prediction {
    double total_ns;
    double parts_ns[DMG_PREDICT_PARTS]; /**< they add up to the total */
    dmg_predict_part bound;             /**< the largest part */
    double bound_supersteps; /**< of all supersteps, the share that is as long as a link's own limit, not its nodes' */
} dmg_prediction;

/**
 * Predict. `link` NULL: none, neither latency nor limits. Costs no more than a pass over the supersteps, so a sweep
 * over many links is cheap.
 */
void dmg_predict(const dmg_predict_run *run, const dmg_link_settings *link, uint32_t mns, uint32_t cns,
                 dmg_prediction *prediction);

#endif
