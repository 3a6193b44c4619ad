/**
 * @file algorithm_options.h
 * Which options belong to which algorithms. An option that an algorithm does not take is refused.
 */
#ifndef DMG_CLI_OPTIONS_ALGORITHM_OPTIONS_H
#define DMG_CLI_OPTIONS_ALGORITHM_OPTIONS_H

#include "algorithms/algorithm.h"
#include "cli/options/options.h"

/** Whether the algorithm takes what an option was set to; true for options that are no algorithm's own. */
bool dmg_algorithm_takes_option(const dmg_algorithm *algorithm, const dmg_settings *settings, dmg_option_id id);

/**
 * DMG_ERR_ARGUMENT for an option that was given and that none of the algorithms takes, and for options that contradict
 * each other in what an iteration does.
 */
dmg_status dmg_algorithm_options_check(const dmg_settings *settings, const dmg_algorithm *const *algorithms,
                                       uint32_t count);

/** Print which algorithm takes what, for --help. */
void dmg_algorithm_options_print(FILE *to);

#endif
