/**
 * @file work_step.h
 * A subcommand that is one long step with an output file: it runs beside the signal loop, so that Ctrl-C ends it and
 * leaves no half-written file.
 */
#ifndef DMG_CLI_LAUNCHER_WORK_STEP_H
#define DMG_CLI_LAUNCHER_WORK_STEP_H

#include "dmgraph/status.h"

/**
 * Run the step in a thread. On failure its sentence is printed.
 * @return the exit code. After a signal this does not return: the process ends, as the step still runs.
 */
int dmg_work_step_run(dmg_status (*step)(void *context), void *context);

#endif
