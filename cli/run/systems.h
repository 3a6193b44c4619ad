/**
 * @file systems.h
 * Whole systems by name: the paper's baselines are this engine with things switched off (DMG, section 5.1).
 *
 *     dmg           everything as it is by default
 *     dmg-base      the same architecture and the same cache of a compute node, all of DMG's own designs off
 *     fam-graph     one compute node that caches the whole index and all attributes; only edges are remote
 *     fully-cached  every compute node caches all attributes (DMG, section 5.4.2), the rest as in dmg
 *
 * A system is a bundle of options, in one table. What is given besides --system wins, so that a baseline can be had
 * with one design back on; the echo of the settings shows what was in force.
 */
#ifndef DMG_CLI_RUN_SYSTEMS_H
#define DMG_CLI_RUN_SYSTEMS_H

#include "cli/options/options.h"

/**
 * Set what --system says and nobody gave. Before anything else looks at the settings.
 *
 * @return DMG_OK, or DMG_ERR_ARGUMENT when the system cannot be what else was given: fam-graph has one compute node
 */
dmg_status dmg_system_apply(dmg_settings *settings);

/** One line of what sets the system apart, as options, for people; prints nothing for dmg. */
void dmg_system_print(FILE *to, const dmg_settings *settings);

/** What --system says about an option, or NULL when that is nothing (the option may have been given besides). */
const char *dmg_system_value(const dmg_settings *settings, dmg_option_id id);

#endif
