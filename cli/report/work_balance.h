/**
 * @file work_balance.h
 * How the work of a run fell to workers: from compute nodes to the launcher, and to people (DMG, Fig. 8).
 */
#ifndef DMG_CLI_REPORT_WORK_BALANCE_H
#define DMG_CLI_REPORT_WORK_BALANCE_H

#include "core/engine/engine.h"

#include <jansson.h>
#include <stdio.h>

/** The figures of a worker, or of all: an object, and back. DMG_ERR_PROTOCOL for what is no such object. */
json_t *dmg_worker_figures_json(const dmg_worker_figures *figures);
dmg_status dmg_worker_figures_from_json(const json_t *object, dmg_worker_figures *figures);

/** An iteration's part of it: the sums, and the largest share of one worker. */
json_t *dmg_iteration_work_json(const dmg_iteration *iteration);
dmg_status dmg_iteration_work_from_json(const json_t *object, dmg_iteration *iteration);
/** Another compute node's row of the same iteration. */
void dmg_iteration_work_add(dmg_iteration *sum, const dmg_iteration *more);

/** All workers of a run. */
typedef struct dmg_work_balance {
    uint32_t workers;
    dmg_worker_figures sum;
    uint64_t busy_ns_max; /**< of one worker */
    uint64_t arcs_max;
} dmg_work_balance;

void dmg_work_balance_add(dmg_work_balance *balance, const dmg_worker_figures *worker);
json_t *dmg_work_balance_json(const dmg_work_balance *balance);
/** A line of the summary. */
void dmg_work_balance_print(FILE *to, const dmg_work_balance *balance);

#endif
