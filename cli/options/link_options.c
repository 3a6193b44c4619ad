#include "cli/options/link_options.h"

#include "cli/base/text.h"
#include "core/base/error.h"

#include <stdlib.h>
#include <string.h>

static double real_of(const dmg_settings *settings, dmg_option_id id)
{
    return settings->values[id].real;
}

/** Replace cells of the profile by what was given one by one. */
static bool change_cells(const dmg_settings *settings, dmg_link_settings *link)
{
    bool has_changed = false;
    if (dmg_has(settings, DMG_OPTION_LINK_LATENCY)) {
        for (int cell = DMG_LINK_READ_LATENCY; cell <= DMG_LINK_MESSAGE_LATENCY; cell++) {
            link->cells[cell] = (double)dmg_number(settings, DMG_OPTION_LINK_LATENCY);
        }
        for (int cell = DMG_LINK_READ_P99; cell <= DMG_LINK_WRITE_P999; cell++) {
            link->cells[cell] = 0; /* they were the other latency's tails */
        }
        has_changed = true;
    }
    if (dmg_has(settings, DMG_OPTION_LINK_BANDWIDTH)) {
        link->cells[DMG_LINK_READ_BANDWIDTH] = real_of(settings, DMG_OPTION_LINK_BANDWIDTH);
        link->cells[DMG_LINK_WRITE_BANDWIDTH] = real_of(settings, DMG_OPTION_LINK_BANDWIDTH);
        has_changed = true;
    }
    if (dmg_has(settings, DMG_OPTION_LINK_MOPS)) {
        link->cells[DMG_LINK_READ_RATE] = real_of(settings, DMG_OPTION_LINK_MOPS);
        link->cells[DMG_LINK_WRITE_RATE] = real_of(settings, DMG_OPTION_LINK_MOPS);
        has_changed = true;
    }
    return has_changed;
}

dmg_status dmg_link_options_of(const dmg_settings *settings, const char *name_or_path, bool *has_link,
                               dmg_link_settings *link)
{
    *link = (dmg_link_settings){.name = "custom", .line_bytes = 1};
    *has_link = name_or_path != NULL;
    if (*has_link) {
        dmg_link_profile *profile = malloc(sizeof *profile);
        if (!profile) {
            return dmg_error(DMG_ERR_MEMORY, "no memory for a link profile");
        }
        dmg_status status = dmg_link_profile_load(name_or_path, profile);
        *link = profile->settings;
        free(profile);
        if (status != DMG_OK) {
            return dmg_error_prefix(status == DMG_ERR_NOT_FOUND ? DMG_ERR_ARGUMENT : status, "--link");
        }
    }
    if (change_cells(settings, link)) {
        size_t used = strlen(link->name);
        snprintf(link->name + used, sizeof link->name - used, "%s", *has_link ? ", changed" : "");
        *has_link = true;
    }
    return *has_link ? dmg_link_settings_check(link) : DMG_OK;
}

dmg_status dmg_link_options(const dmg_settings *settings, uint32_t spinners, bool *has_link, dmg_link_settings *link)
{
    const char *name = dmg_has(settings, DMG_OPTION_LINK) ? dmg_value_text(settings, DMG_OPTION_LINK) : NULL;
    dmg_status status = dmg_link_options_of(settings, name, has_link, link);
    if (status != DMG_OK) {
        return status;
    }
    static const dmg_option_id of_links[] = {DMG_OPTION_LINK_MODE, DMG_OPTION_COUNT};
    status =
        *has_link ? DMG_OK : dmg_options_refuse(settings, of_links, "without an emulated link: name one by --link");
    if (status != DMG_OK) {
        return status;
    }
    link->mode = (dmg_link_mode)dmg_number(settings, DMG_OPTION_LINK_MODE);
    link->spinners = spinners;
    return *has_link ? dmg_link_settings_check(link) : DMG_OK;
}

json_t *dmg_link_settings_json(const dmg_link_settings *link)
{
    json_t *cells = json_object();
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        json_object_set_new(cells, dmg_link_cell_name((dmg_link_cell)cell), json_real(link->cells[cell]));
    }
    return json_pack("{s:o, s:o, s:I, s:i, s:I}", "name", dmg_json_text(link->name), "cells", cells, "line_bytes",
                     (json_int_t)link->line_bytes, "mode", (int)link->mode, "spinners", (json_int_t)link->spinners);
}

dmg_status dmg_link_settings_from_json(const json_t *object, bool *has_link, dmg_link_settings *link)
{
    *link = (dmg_link_settings){0};
    *has_link = object && !json_is_null(object);
    if (!*has_link) {
        return DMG_OK;
    }
    const json_t *cells = json_object_get(object, "cells");
    const char *name = json_string_value(json_object_get(object, "name"));
    json_int_t line = json_integer_value(json_object_get(object, "line_bytes"));
    json_int_t spinners = json_integer_value(json_object_get(object, "spinners"));
    json_int_t mode = json_integer_value(json_object_get(object, "mode"));
    if (!name || strlen(name) >= sizeof link->name || line < 1 || line > UINT16_MAX || spinners < 0 ||
        spinners > UINT32_MAX || mode < DMG_LINK_AUTO || mode > DMG_LINK_ACCOUNT) {
        return dmg_error(DMG_ERR_PROTOCOL, "the setup has an emulated link that makes no sense");
    }
    memcpy(link->name, name, strlen(name) + 1);
    link->line_bytes = (uint32_t)line;
    link->spinners = (uint32_t)spinners;
    link->mode = (dmg_link_mode)mode;
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        link->cells[cell] = json_number_value(json_object_get(cells, dmg_link_cell_name((dmg_link_cell)cell)));
    }
    return dmg_link_settings_check(link);
}
