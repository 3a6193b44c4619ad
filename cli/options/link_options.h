/**
 * @file link_options.h
 * From --link and its like to the settings of an emulated link, and their way to the compute nodes.
 */
#ifndef DMG_CLI_OPTIONS_LINK_OPTIONS_H
#define DMG_CLI_OPTIONS_LINK_OPTIONS_H

#include "cli/options/options.h"
#include "transport/link.h"

/**
 * The emulated link that the user asked for.
 *
 * @param spinners       threads of all processes that may wait at once
 * @param[out] has_link  false when no link was asked for
 * @return DMG_OK; DMG_ERR_NOT_FOUND, DMG_ERR_FORMAT or DMG_ERR_IO about a profile; DMG_ERR_ARGUMENT
 */
dmg_status dmg_link_options(const dmg_settings *settings, uint32_t spinners, bool *has_link, dmg_link_settings *link);

/** The same for one profile, by name or path (NULL: none), with the numbers that were given one by one; no mode. */
dmg_status dmg_link_options_of(const dmg_settings *settings, const char *name_or_path, bool *has_link,
                               dmg_link_settings *link);

/** The options that dmg_link_options reads, for a list of options. */
#define DMG_LINK_OPTIONS                                                                                               \
    DMG_OPTION_LINK, DMG_OPTION_LINK_LATENCY, DMG_OPTION_LINK_BANDWIDTH, DMG_OPTION_LINK_MOPS, DMG_OPTION_LINK_MODE

json_t *dmg_link_settings_json(const dmg_link_settings *link);
/** From what dmg_link_settings_json made, or null: no link. */
dmg_status dmg_link_settings_from_json(const json_t *object, bool *has_link, dmg_link_settings *link);

#endif
