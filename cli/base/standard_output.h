/**
 * @file standard_output.h
 * The standard output, of which it is known in the end whether all of it has arrived, and if not, why. stdio by itself
 * only knows that something failed, since it writes whenever its buffer is full.
 */
#ifndef DMG_CLI_BASE_STANDARD_OUTPUT_H
#define DMG_CLI_BASE_STANDARD_OUTPUT_H

#include "dmgraph/status.h"

/**
 * Prepare the standard descriptors and `stdout`, first of all: one that is closed takes no other file's place, and what
 * is written to it fails. Pipes without a reader, and files that reach their limit, are errors instead of signals.
 * DMG_ERR_IO.
 */
dmg_status dmg_standard_output_prepare(void);

/** Write what stdout still keeps. DMG_ERR_IO with the reason, also for anything that could not be written before. */
dmg_status dmg_standard_output_flush(void);

#endif
