/**
 * @file process.h
 * Processes that are not children: is the one alive that had this id then, and ending it. An id alone says little, as
 * the kernel gives it out again; with the time of its start it names one process.
 */
#ifndef DMG_CLI_PROCESS_H
#define DMG_CLI_PROCESS_H

#include "dmgraph/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dmg_process {
    int pid;
    uint64_t start_time; /**< clock ticks since boot, as in /proc/PID/stat; not 0 */
} dmg_process;

/** Name a process that is alive. DMG_ERR_NOT_FOUND. */
dmg_status dmg_process_identify(int pid, dmg_process *process);
/** Whether this very process is alive (a zombie is not). */
bool dmg_process_is_alive(const dmg_process *process);
/** A descriptor of this very process (a pidfd), through which no other can be hit; -1 when it is not alive. */
int dmg_process_open(const dmg_process *process);
/** Send a signal to what the descriptor names. False when it has ended. */
bool dmg_process_signal(int descriptor, int number);
/** Wait until the process has ended, or the time is over; true when it has ended. */
bool dmg_process_wait(int descriptor, uint64_t deadline_ns);

/** Take the start time out of the contents of /proc/PID/stat; false for a process that has ended, and for what is no
 * such contents. */
bool dmg_process_parse_stat(const char *text, uint64_t *start_time);

#endif
