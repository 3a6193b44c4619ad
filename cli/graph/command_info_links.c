/* dmgraph info links: the links that can be emulated, and where each of their numbers comes from. */
#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/options/command.h"
#include "transport/link.h"

#include <stdlib.h>
#include <string.h>

/** "510", "-" for no limit. */
static dmg_text cell_text(const dmg_link_profile *profile, dmg_link_cell cell)
{
    dmg_text shown;
    double value = profile->settings.cells[cell];
    if (value > 0) {
        snprintf(shown.text, sizeof shown.text, "%g", value);
    } else {
        snprintf(shown.text, sizeof shown.text, "%s", cell == DMG_LINK_ATOMIC_LATENCY ? "none" : "-");
    }
    return shown;
}

/** "26/14", or "26" when both are the same. */
static dmg_text pair_text(const dmg_link_profile *profile, dmg_link_cell first, dmg_link_cell second)
{
    dmg_text shown = cell_text(profile, first);
    dmg_text other = cell_text(profile, second);
    if (strcmp(shown.text, other.text) != 0) {
        size_t used = strlen(shown.text);
        snprintf(shown.text + used, sizeof shown.text - used, "/%.15s", other.text);
    }
    return shown;
}

static void print_profiles(const dmg_link_profile *profiles, size_t count)
{
    printf("%-14s %8s %8s %8s %8s %12s %12s %10s %8s  %s\n", "link", "read ns", "write ns", "atomic", "message",
           "GB/s r/w", "a channel", "Mops r/w", "a chan.", "what it is");
    for (size_t i = 0; i < count; i++) {
        const dmg_link_profile *profile = &profiles[i];
        printf("%-14s %8s %8s %8s %8s %12s %12s %10s %8s  %s\n", profile->settings.name,
               cell_text(profile, DMG_LINK_READ_LATENCY).text, cell_text(profile, DMG_LINK_WRITE_LATENCY).text,
               cell_text(profile, DMG_LINK_ATOMIC_LATENCY).text, cell_text(profile, DMG_LINK_MESSAGE_LATENCY).text,
               pair_text(profile, DMG_LINK_READ_BANDWIDTH, DMG_LINK_WRITE_BANDWIDTH).text,
               pair_text(profile, DMG_LINK_CHANNEL_READ_BANDWIDTH, DMG_LINK_CHANNEL_WRITE_BANDWIDTH).text,
               pair_text(profile, DMG_LINK_READ_RATE, DMG_LINK_WRITE_RATE).text,
               cell_text(profile, DMG_LINK_CHANNEL_RATE).text, profile->title);
    }
    printf("\nwhere the numbers come from\n");
    for (size_t i = 0; i < count; i++) {
        const dmg_link_profile *profile = &profiles[i];
        printf("\n%s (%s)\n  coherence: %s\n", profile->settings.name, profile->path, profile->coherence);
        for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
            if (profile->is_given[cell]) {
                printf("  %-28s %8s  %s\n", dmg_link_cell_name((dmg_link_cell)cell),
                       cell_text(profile, (dmg_link_cell)cell).text, profile->provenance[cell]);
            }
        }
    }
}

static json_t *profile_json(const dmg_link_profile *profile)
{
    json_t *cells = json_object();
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        if (profile->is_given[cell]) {
            double value = profile->settings.cells[cell];
            json_object_set_new(cells, dmg_link_cell_name((dmg_link_cell)cell),
                                json_pack("{s:o, s:o}", "value", value > 0 ? json_real(value) : json_null(),
                                          "provenance", dmg_json_text(profile->provenance[cell])));
        }
    }
    return json_pack("{s:o, s:o, s:o, s:o, s:I, s:o}", "name", dmg_json_text(profile->settings.name), "title",
                     dmg_json_text(profile->title), "path", dmg_json_text(profile->path), "coherence",
                     dmg_json_text(profile->coherence), "line_bytes", (json_int_t)profile->settings.line_bytes, "cells",
                     cells);
}

static int run_links(dmg_settings *settings)
{
    dmg_link_profile *profiles;
    size_t count;
    dmg_status status = dmg_link_profiles_list(&profiles, &count);
    if (status != DMG_OK) {
        return dmg_exit_with_error(status);
    }
    if (dmg_flag(settings, DMG_OPTION_JSON)) {
        json_t *list = json_array();
        for (size_t i = 0; i < count; i++) {
            json_array_append_new(list, profile_json(&profiles[i]));
        }
        dmg_json_print(list);
    } else {
        print_profiles(profiles, count);
    }
    free(profiles);
    return DMG_EXIT_OK;
}

static const dmg_option_id options[] = {DMG_OPTION_JSON, DMG_OPTION_LOG_LEVEL, DMG_OPTION_HELP, DMG_OPTION_HELP_ALL,
                                        DMG_OPTION_COUNT};

const dmg_command dmg_command_info_links = {
    .name = "info links",
    .arguments = "",
    .summary = "list the links that can be emulated, and where each of their numbers comes from",
    .options = options,
    .run = run_links};
