/**
 * @file limits.h
 * What one job may have of a pool: from the options of 'pool start' to its memory nodes.
 */
#ifndef DMG_CLI_POOL_LIMITS_H
#define DMG_CLI_POOL_LIMITS_H

#include "cli/options/options.h"
#include "core/pool/rights.h"

#include <jansson.h>

/** The options that dmg_pool_limits_of_settings reads, for a list of options. */
#define DMG_POOL_LIMITS_OPTIONS DMG_OPTION_JOB_MEMORY, DMG_OPTION_JOB_CLIENTS, DMG_OPTION_JOB_CHANNELS

dmg_pool_limits dmg_pool_limits_of_settings(const dmg_settings *settings);
/** For a memory node's setup, and for --json: what has no limit is 0. */
json_t *dmg_pool_limits_json(const dmg_pool_limits *limits);
/** NULL: no limits. DMG_ERR_PROTOCOL. */
dmg_status dmg_pool_limits_from_json(json_t *object, dmg_pool_limits *limits);

#endif
