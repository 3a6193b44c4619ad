/**
 * @file descriptors.h
 * File descriptors of this process: how many it may have, and has.
 */
#ifndef DMG_CORE_BASE_DESCRIPTORS_H
#define DMG_CORE_BASE_DESCRIPTORS_H

#include <stdint.h>

/** How many this process may have open at once (`ulimit -n`); UINT64_MAX without a limit. Thread-safe. */
uint64_t dmg_descriptors_limit(void);
/** How many more it can open now; UINT64_MAX without a limit, or when the kernel does not tell. Costs about a
 * microsecond for each that is open. Thread-safe. */
uint64_t dmg_descriptors_left(void);
/** Raise the soft limit to the hard one, also for processes that are started later. */
void dmg_descriptors_raise_limit(void);

#endif
