/**
 * @file process.h
 * Processes that are not children: is the one alive that had this id then, and ending it. An id alone says little, as
 * the kernel gives it out again; with the time of its start it names one process.
 */
#ifndef DMG_CORE_BASE_PROCESS_H
#define DMG_CORE_BASE_PROCESS_H

#include "dmgraph/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct dmg_process {
    int pid;
    uint64_t start_time; /**< clock ticks since boot, as in /proc/PID/stat; not 0 */
} dmg_process;

/** The kernel's name for a host from its start to its end, with the terminating zero. */
#define DMG_BOOT_ID_BYTES 40
/** "" when the kernel does not tell. */
void dmg_process_boot_id(char boot_id[DMG_BOOT_ID_BYTES]);
/** Name a process that is alive. DMG_ERR_NOT_FOUND. */
dmg_status dmg_process_identify(int pid, dmg_process *process);
/** Whether this very process is alive (a zombie is not). */
bool dmg_process_is_alive(const dmg_process *process);
/** Whether it has ended, and its parent has not taken note of that (a zombie). */
bool dmg_process_awaits_parent(const dmg_process *process);
/** A descriptor of this very process (a pidfd), through which no other can be hit; -1 when it is not alive. */
int dmg_process_open(const dmg_process *process);
/** Send a signal to what the descriptor names. False when it has ended. */
bool dmg_process_signal(int descriptor, int number);
/**
 * Whether not even a thread of this process is left, nor anything that it had mapped; until then it may do whatever it
 * could. `*descriptor` is -1 at first and holds a pidfd between calls, which is closed when the answer is yes. Where
 * there is no descriptor for it, an ended process counts only when its parent has taken note of its end.
 */
bool dmg_process_has_ended(const dmg_process *process, int *descriptor);
/** Wait until the process has ended, or the time is over; true when it has ended. */
bool dmg_process_wait(int descriptor, uint64_t deadline_ns);

/** Take the start time out of the contents of /proc/PID/stat; false for a process that has ended, and for what is no
 * such contents. */
bool dmg_process_parse_stat(const char *text, uint64_t *start_time);

#endif
