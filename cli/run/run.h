/**
 * @file run.h
 * A run: its state from the settings to the summary. A one-shot run has memory nodes of its own; others work on a graph
 * in a long-lived pool. The parts are
 *
 *     command_run.c   the course of a run, from the settings to the exit code
 *     command_load.c  the course of a load into a long-lived pool, which is a run that runs nothing
 *     run_pool.c      what is different with a long-lived pool
 *     run_nodes.c     starting the nodes, their setups, and taking in what they report
 *     run_result.c    reading the values from the pool: output file, headline, verification
 *     run_summary.c   what is printed at the end, for people
 *     run_json.c      the same for programs
 */
#ifndef DMG_CLI_RUN_RUN_H
#define DMG_CLI_RUN_RUN_H

#include "algorithms/algorithm.h"
#include "cli/base/output_file.h"
#include "cli/base/progress.h"
#include "cli/graph/graph_source.h"
#include "cli/launcher/launcher.h"
#include "cli/launcher/segments.h"
#include "cli/pool/client.h"
#include "cli/report/report.h"
#include "cli/report/work_balance.h"
#include "cli/run/headline.h"
#include "core/base/limits.h"
#include "core/store/graph_catalog.h"

/** A memory node, as the launcher knows it. */
typedef struct dmg_run_memory_node {
    dmg_child *child; /**< NULL in a long-lived pool */
    int pid;
    char address[DMG_ADDRESS_STRING_BYTES]; /**< "" until it said so */
    uint64_t segment_bytes;
    dmg_placement placement; /**< what the segment got; zeros in a long-lived pool */
    uint64_t peak_bytes;
} dmg_run_memory_node;

/** A compute node, as the launcher knows it. */
typedef struct dmg_run_compute_node {
    dmg_child *child;
    bool has_report;
    dmg_node_report report;
    dmg_iteration *rows; /**< the compute node's first iterations, where there are several compute nodes */
    uint64_t row_count;
    uint64_t row_capacity;
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
    const dmg_algorithm *algorithm; /**< NULL: a load */
    const char *path;               /**< of the graph's file, or its name in a long-lived pool */
    uint64_t started_s;             /**< wall-clock */
    dmg_read_options reading;
    dmg_graph_source source;
    dmg_algorithm_options parameters;
    bool source_was_chosen;   /**< --source was not given */
    bool weights_are_missing; /**< the algorithm uses weights, and the graph has none: each counts 1 */
    bool is_weighted;
    bool weights_are_lost; /**< the graph has weights that would matter, and the algorithm does not use them */
    bool with_in;
    uint32_t mn_count;
    uint32_t cn_count;
    uint32_t threads;
    uint32_t partitions; /**< partitions that the graph is loaded for */
    char job_name[DMG_POOL_JOB_NAME_BYTES];
    dmg_job_pass job_pass; /**< of the job `job_name` */
    uint64_t segment_bytes;
    uint64_t peer_timeout_ns;
    uint8_t token[DMG_TOKEN_BYTES];
    uint8_t admin[DMG_SECRET_BYTES]; /**< the secret that administers the run's own memory nodes */
    dmg_pool_client *pool;           /**< NULL: this run has its own memory nodes */
    dmg_graph_entry entry;           /**< the graph in the pool */
    bool has_link;                   /**< an emulated one */
    dmg_link_settings link;
    dmg_launcher *launcher;
    dmg_progress_bar *bar;
    dmg_run_memory_node mns[DMG_MEMORY_NODES_MAX];
    dmg_run_compute_node cns[DMG_COMPUTE_NODES_MAX];
    uint64_t iteration_count;
    dmg_iteration *iterations; /**< over all compute nodes: sums, and the longest time */
    uint64_t iteration_rows;
    dmg_capabilities capabilities; /**< as the launcher's own client sees them */
    dmg_output_file *output;
    dmg_headline *headline;
    bool is_verified;
    dmg_run_times times;
} dmg_run;

/** The workers of each compute node, from --threads or from this machine's cores. */
void dmg_run_choose_threads(dmg_run *run);
/**
 * What there is to warn of when weights are lost: what is done instead, and how to say that it is meant. For people,
 * and for --json.
 */
const char *dmg_run_lost_weights_remedy(const dmg_run *run);
/** Whether this program and the nodes that it will start can have the descriptors that they need. Before any starts. */
dmg_status dmg_run_check_descriptors(const dmg_run *run);
/** What a pool has to let the compute nodes have, before they are started (dmg_pool_client_check_limits). */
dmg_status dmg_run_pool_check_limits(const dmg_run *run);
/** How the graph is to be stored. */
dmg_store_options dmg_run_store_options(const dmg_run *run);
/** How the compute nodes share the graph, and where one is among them. */
dmg_groups dmg_run_groups(const dmg_run *run, uint32_t rank);
/** The bytes that each memory node offers, from --memory or from what the graph and the run will take. */
uint64_t dmg_run_segment_bytes(const dmg_run *run);
/** Hear what the nodes say, from the first one on. */
void dmg_run_listen(dmg_run *run);
/** Start the memory nodes and wait for their addresses. */
dmg_status dmg_run_start_memory_nodes(dmg_run *run);
/** Free the iterations' rows. */
void dmg_run_free_rows(dmg_run *run);
/** Start the compute nodes, and wait until all have reported. */
dmg_status dmg_run_compute(dmg_run *run);
/** Read the values from the pool; fills in headline, output (which the caller commits) and verification. Blocking. */
dmg_status dmg_run_read_result(void *run);

/** Refuse options that are the pool's or the loaded graph's own, and take over the pool's. */
dmg_status dmg_run_pool_settings(dmg_run *run);
/** Connect to the pool, take hold of the graph, and read what names its vertices (all of it, to be verified). Blocking.
 */
dmg_status dmg_run_pool_attach(void *run);
/** What the nodes of the pool say about their memory. Blocking. */
dmg_status dmg_run_pool_usage(void *run);
/** Without --source: the smallest vertex with an arc out. Blocking. */
dmg_status dmg_run_pool_source(void *run);
/** The graph, for people and for --json. */
void dmg_run_pool_print_graph(FILE *to, const dmg_run *run);
json_t *dmg_run_pool_graph_json(const dmg_run *run);

void dmg_run_print_summary(FILE *to, const dmg_run *run);
void dmg_run_print_table(FILE *to, const dmg_run *run);
json_t *dmg_run_json(const dmg_run *run);

/** Bytes of the graph's file a second, in 10^6, by step; 0 where that says nothing (the graph was in the pool already).
 */
typedef struct dmg_run_loading {
    double read_mb_s;    /**< mapping (or parsing) the file, checking it, and sharing it with the compute nodes */
    double load_mb_s;    /**< from there into the pool, by all compute nodes together */
    double load_seconds; /**< of the compute node that took longest, with the barrier at its end */
} dmg_run_loading;
dmg_run_loading dmg_run_loading_speed(const dmg_run *run);
/** The speeds, and what partitioning took, for --json and for people. */
json_t *dmg_run_loading_json(const dmg_run *run);
void dmg_run_print_loading(FILE *to, const dmg_run *run);

/** Over all compute nodes. */
typedef struct dmg_run_totals {
    dmg_counters load;
    dmg_counters run;
    dmg_work_balance balance;
    double run_seconds;      /**< of the slowest compute node */
    double barrier_seconds;  /**< in the iterations, mean of a compute node */
    double wait_seconds;     /**< for operations other than barriers, mean of a worker */
    double modelled_seconds; /**< of an emulated link that was only accounted for: of the worker mean of the compute
                                node that has most */
    double busy_seconds;     /**< the least that a memory node's emulated link was busy, if all had the same share */
    double residual;
} dmg_run_totals;
dmg_run_totals dmg_run_total(const dmg_run *run);

/** What the iterations would have taken had an emulated link's accounted time been waited for; at least what a link was
 * busy. */
static inline double dmg_run_modelled_seconds(const dmg_run_totals *totals)
{
    double seconds = totals->run_seconds + totals->modelled_seconds;
    return seconds > totals->busy_seconds ? seconds : totals->busy_seconds;
}

/** After a failure, of a run or a load: say why, leave nothing, end the program. */
_Noreturn void dmg_run_give_up(dmg_run *run, dmg_status status);

#endif
