/**
 * @file run.h
 * A one-shot run: its state from the settings to the summary. The parts are
 *
 *     command_run.c   the course of a run, from the settings to the exit code
 *     run_nodes.c     starting the nodes, their setups, and taking in what they report
 *     run_result.c    reading the values from the pool: output file, headline, verification
 *     run_summary.c   what is printed at the end, for people
 *     run_json.c      the same for programs
 */
#ifndef DMG_CLI_RUN_H
#define DMG_CLI_RUN_H

#include "algorithms/algorithm.h"
#include "cli/graph_source.h"
#include "cli/headline.h"
#include "cli/launcher.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/report.h"

#define DMG_RUN_CNS_MAX 64
#define DMG_RUN_MNS_MAX 16

/** A memory node, as the launcher knows it. */
typedef struct dmg_run_memory_node {
    dmg_child *child;
    char address[DMG_ADDRESS_STRING_BYTES]; /**< "" until it said so */
    uint64_t peak_bytes;
} dmg_run_memory_node;

/** A compute node, as the launcher knows it. */
typedef struct dmg_run_compute_node {
    dmg_child *child;
    bool has_report;
    dmg_node_report report;
} dmg_run_compute_node;

/** Wall-clock seconds of the run's steps. */
typedef struct dmg_run_times {
    double read;  /**< the file, and sharing the graph */
    double start; /**< nodes, until all compute nodes load */
    double load;
    double run;
    double result; /**< reading the values, writing the output */
    double verify;
    double total;
} dmg_run_times;

typedef struct dmg_run {
    dmg_settings *settings;
    const dmg_option_id *options;
    const dmg_algorithm *algorithm;
    const char *path;
    uint64_t started_s; /**< wall-clock */
    dmg_read_options reading;
    dmg_graph_source source;
    dmg_algorithm_options parameters;
    bool source_was_chosen;   /**< --source was not given */
    bool weights_are_missing; /**< the algorithm uses weights, and the graph has none: each counts 1 */
    bool is_weighted;
    bool with_in;
    uint32_t mn_count;
    uint32_t cn_count;
    uint32_t threads;
    uint64_t segment_bytes;
    uint64_t peer_timeout_ns;
    uint8_t token[DMG_TOKEN_BYTES];
    bool has_link; /**< an emulated one */
    dmg_link_settings link;
    dmg_launcher *launcher;
    dmg_progress_bar *bar;
    dmg_run_memory_node mns[DMG_RUN_MNS_MAX];
    dmg_run_compute_node cns[DMG_RUN_CNS_MAX];
    uint64_t iteration_count;
    dmg_iteration *iterations; /**< over all compute nodes: sums, and the longest time */
    uint64_t iteration_rows;
    dmg_capabilities capabilities; /**< as the launcher's own client sees them */
    dmg_output_file *output;
    dmg_headline *headline;
    bool is_verified;
    dmg_run_times times;
} dmg_run;

/** The bytes that each memory node offers, from --memory or from what the graph and the run will take. */
uint64_t dmg_run_segment_bytes(const dmg_run *run);
/** Start the memory nodes and wait for their addresses. */
dmg_status dmg_run_start_memory_nodes(dmg_run *run);
/** Start the compute nodes, and wait until all have reported. */
dmg_status dmg_run_compute(dmg_run *run);
/** Read the values from the pool; fills in headline, output (which the caller commits) and verification. Blocking. */
dmg_status dmg_run_read_result(void *run);

void dmg_run_print_summary(FILE *to, const dmg_run *run);
void dmg_run_print_table(FILE *to, const dmg_run *run);
json_t *dmg_run_json(const dmg_run *run);

/** Over all compute nodes. */
typedef struct dmg_run_totals {
    dmg_counters load;
    dmg_counters run;
    double run_seconds;     /**< of the slowest compute node */
    double barrier_seconds; /**< in the iterations, mean of a compute node */
    double wait_seconds;    /**< for operations other than barriers, mean of a worker */
    double
        modelled_seconds; /**< of an emulated link that was only accounted for: of the worker mean of the compute node that has most */
    double busy_seconds; /**< the least that a memory node's emulated link was busy, if all had the same share */
    double residual;
} dmg_run_totals;
dmg_run_totals dmg_run_total(const dmg_run *run);

/** What the iterations would have taken had an emulated link's accounted time been waited for; at least what a link was busy. */
static inline double dmg_run_modelled_seconds(const dmg_run_totals *totals)
{
    double seconds = totals->run_seconds + totals->modelled_seconds;
    return seconds > totals->busy_seconds ? seconds : totals->busy_seconds;
}

#endif
