/**
 * @file exit_code.h
 * What the program's exit codes mean (docs/cli.md). They are stable.
 */
#ifndef DMG_CLI_BASE_EXIT_CODE_H
#define DMG_CLI_BASE_EXIT_CODE_H

#include "dmgraph/status.h"

typedef enum dmg_exit_code {
    DMG_EXIT_OK = 0,
    DMG_EXIT_INTERNAL = 1,
    DMG_EXIT_USAGE = 2,
    DMG_EXIT_INPUT = 3,  /**< an input file is malformed */
    DMG_EXIT_LIMIT = 4,  /**< a limit, a budget or the memory does not suffice */
    DMG_EXIT_NODE = 5,   /**< a node died, or did not answer */
    DMG_EXIT_VERIFY = 6, /**< the answer differs from the serial computation */
    DMG_EXIT_IO = 7,
    DMG_EXIT_SIGNAL = 128 /**< and the signal's number */
} dmg_exit_code;

/** The exit code for a status that ends the program. */
int dmg_exit_code_of(dmg_status status);

/**
 * Print "dmgraph: SENTENCE", the sentence being this thread's last error, on stderr; returns the exit code. When an
 * output has no reader any more, nothing is printed, and the code is that of SIGPIPE.
 */
int dmg_exit_with_error(dmg_status status);

#endif
