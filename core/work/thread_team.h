/**
 * @file thread_team.h
 * The workers of one compute node: a fixed set of threads that run one phase together.
 *
 * The calling thread is worker 0, so that a team of one costs nothing. Between phases workers spin briefly, then sleep
 * on a futex: a compute node shares its cores with others.
 */
#ifndef DMG_CORE_WORK_THREAD_TEAM_H
#define DMG_CORE_WORK_THREAD_TEAM_H

#include "dmgraph/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dmg_thread_team dmg_thread_team;

/** One worker's share of a phase. */
typedef void (*dmg_team_function)(void *context, uint32_t worker);

/** Where workers run. */
typedef enum dmg_pinning {
    DMG_PIN_NODES,            /**< each on the CPUs of one NUMA node where there are several, if the system lets us, so
                                 that what it allocates lies near to it */
    DMG_PIN_CORES,            /**< each on one CPU (topology.h), or the team is not made: DMG_ERR_UNSUPPORTED */
    DMG_PIN_CORES_IF_POSSIBLE /**< each on one CPU if the system lets us; a refusal is one warning */
} dmg_pinning;

/** Start threads - 1 threads. */
dmg_status dmg_thread_team_create(uint32_t threads, dmg_pinning pinning, dmg_thread_team **team);
/** How many workers the kernel says are bound to one CPU. From the thread that created the team. */
uint32_t dmg_thread_team_pinned(const dmg_thread_team *team);
/** NULL is allowed. */
void dmg_thread_team_destroy(dmg_thread_team *team);
/** Run the function once on each of the first `workers` workers, and return when all have returned. From the thread
 * that created the team. */
void dmg_thread_team_run(dmg_thread_team *team, uint32_t workers, dmg_team_function function, void *context);

#endif
