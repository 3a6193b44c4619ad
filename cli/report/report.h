/**
 * @file report.h
 * What a node tells the launcher about its part of a run, as a struct and as JSON on the control socket.
 */
#ifndef DMG_CLI_REPORT_REPORT_H
#define DMG_CLI_REPORT_REPORT_H

#include "cli/report/pool.h"
#include "core/base/limits.h"
#include "core/engine/engine.h"

#include <jansson.h>

/** Iteration rows in one control message: at most about 4,400 bytes each. */
#define DMG_REPORT_ROWS 24

/** A compute node's part. */
typedef struct dmg_node_report {
    uint64_t job; /**< id of the job that it is in */
    uint64_t load_ns;
    uint64_t run_ns;
    uint64_t barrier_ns;
    uint64_t barriers; /**< in the run */
    uint64_t wait_ns;  /**< for operations, all threads added, in the run */
    uint32_t iteration_count;
    double residual;
    dmg_range_array values;
    char chosen[sizeof(
        ((dmg_capabilities *)0)->chosen)]; /**< what carries its data and messages, and what link is emulated */
    dmg_counters load_counters;
    dmg_counters run_counters;
    uint32_t traffic_nodes;
    dmg_node_traffic traffic[DMG_MEMORY_NODES_MAX]; /**< of the run, by memory node */
    uint64_t budget_limit_bytes;
    uint64_t budget_peak_bytes;
    uint64_t purpose_peak_bytes[DMG_BUDGET_PURPOSES];
    dmg_pool_report pool; /**< of rank 0; zeros of the others */
    uint32_t worker_count;
    uint32_t pinned_workers; /**< bound to a core each */
    dmg_worker_figures workers[DMG_WORKERS_MAX];
} dmg_node_report;

/** {"reads": {"operations": .., "bytes": ..}, ...}; `with_sizes` adds the histogram. */
json_t *dmg_counters_json(const dmg_counters *counters, bool with_sizes);
dmg_status dmg_counters_from_json(json_t *object, dmg_counters *counters);

/** {"sent": {"direct": {"items": .., "buffers": .., "bytes": ..}, ...}, "taken": ...} */
json_t *dmg_passed_json(const dmg_traffic *traffic);
dmg_status dmg_passed_from_json(json_t *object, dmg_traffic *traffic);

json_t *dmg_node_report_json(const dmg_node_report *report);
dmg_status dmg_node_report_from_json(json_t *object, dmg_node_report *report);

/** A list of the workers' figures. */
json_t *dmg_workers_json(const dmg_node_report *report);

json_t *dmg_traffic_json(const dmg_node_traffic *traffic, uint32_t nodes);

json_t *dmg_iteration_json(const dmg_iteration *iteration);
dmg_status dmg_iteration_from_json(json_t *object, dmg_iteration *iteration);

/** "load_store coherent", and so on; "-" for none. */
void dmg_capabilities_text(uint32_t flags, char *text, size_t capacity);
json_t *dmg_capabilities_json(uint32_t flags);
/** "caller", "nic", "memory_node", "caller_lock". */
const char *dmg_atomics_name(dmg_atomics_executor executor);
const char *dmg_direction_name(dmg_direction direction);
const char *dmg_density_name(dmg_density density);

#endif
