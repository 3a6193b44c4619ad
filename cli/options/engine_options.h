/**
 * @file engine_options.h
 * From --direction and its like to the options of an engine, and their way to the compute nodes.
 *
 * One table says it all: a new option of the engine is one line in engine_options.c and one option in options.c.
 */
#ifndef DMG_CLI_OPTIONS_ENGINE_OPTIONS_H
#define DMG_CLI_OPTIONS_ENGINE_OPTIONS_H

#include "cli/options/options.h"
#include "core/engine/engine.h"

#include <jansson.h>

/** What the settings ask for; `threads` and callbacks are left as they are. */
void dmg_engine_options_from_settings(const dmg_settings *settings, dmg_engine_options *options);

/** The workers of each of so many compute nodes, from --threads or from this machine's cores. */
uint32_t dmg_engine_threads(const dmg_settings *settings, uint32_t compute_nodes);

/** All options but callbacks. */
json_t *dmg_engine_options_json(const dmg_engine_options *options);
/** From what dmg_engine_options_json made. DMG_ERR_PROTOCOL for what is missing or out of range. */
dmg_status dmg_engine_options_from_json(const json_t *object, dmg_engine_options *options);

/** The options that dmg_engine_options_from_settings reads, for a list of options. */
#define DMG_ENGINE_OPTIONS                                                                                             \
    DMG_OPTION_CACHE, DMG_OPTION_DIRECTION, DMG_OPTION_DENSITY, DMG_OPTION_CACHING, DMG_OPTION_UPDATES,                \
        DMG_OPTION_REFERENCE_EDGES, DMG_OPTION_REFERENCE_DEGREE, DMG_OPTION_REFERENCE_BUFFER, DMG_OPTION_VALUE_BUFFER, \
        DMG_OPTION_PARTIALS, DMG_OPTION_PRECISION, DMG_OPTION_TASKS, DMG_OPTION_PIN_THREADS,                           \
        DMG_OPTION_ALLOW_FALLBACK, DMG_OPTION_MERGE_ACTIVATION, DMG_OPTION_BATCH_ACTIVATION, DMG_OPTION_MERGE_INDEX,   \
        DMG_OPTION_BATCH_INDEX, DMG_OPTION_MERGE_LISTS, DMG_OPTION_BATCH_LISTS, DMG_OPTION_WITHOUT,                    \
        DMG_OPTION_RESCHEDULE_DEGREE, DMG_OPTION_STEAL_SEGMENTS, DMG_OPTION_CACHE_INDEX

#endif
