#include "cli/run/systems.h"

#include "core/base/error.h"

#include <inttypes.h>
#include <string.h>

/** An option and what it is set to. */
typedef struct system_option {
    dmg_option_id id;
    const char *text;
} system_option;

#define OPTIONS_MAX 24

typedef struct system_bundle {
    const char *name; /* as in the choices of --system */
    bool has_one_cn;
    system_option options[OPTIONS_MAX]; /* ends with text NULL */
} system_bundle;

static const system_bundle bundles[] = {
    {.name = "dmg"},
    /* DMG's designs, section by section: 4.2.1 in-place lists; 4.2.2 merging and batching; 4.3 the choice between ways
     * of updating, RefRD and ValRD; 4.4.2 re-scheduling; 4.5.1 coroutines; 4.5.2 pull. What stays is the architecture:
     * partitions of tiny-chunks, a cache of the partition's next attributes, work stealing. */
    {.name = "dmg-base",
     .options = {{DMG_OPTION_EMBED, "off"},
                 {DMG_OPTION_MERGE_ACTIVATION, "off"},
                 {DMG_OPTION_BATCH_ACTIVATION, "off"},
                 {DMG_OPTION_MERGE_INDEX, "off"},
                 {DMG_OPTION_BATCH_INDEX, "off"},
                 {DMG_OPTION_MERGE_LISTS, "off"},
                 {DMG_OPTION_BATCH_LISTS, "off"},
                 {DMG_OPTION_DENSITY, "dense"},
                 {DMG_OPTION_UPDATES, "direct"},
                 {DMG_OPTION_REFERENCE_EDGES, "0"},
                 {DMG_OPTION_RESCHEDULE_DEGREE, "0"},
                 {DMG_OPTION_TASKS, "1"},
                 {DMG_OPTION_DIRECTION, "push"}}},
    /* One compute node, whose partition is everything, so that a dense iteration caches all attributes. Merging and
     * batching of list reads are FAM-Graph's own, too. */
    {.name = "fam-graph",
     .has_one_cn = true,
     .options = {{DMG_OPTION_MNS, "1"},
                 {DMG_OPTION_CACHE_INDEX, "on"},
                 {DMG_OPTION_CACHING, "full"},
                 {DMG_OPTION_EMBED, "off"},
                 {DMG_OPTION_DENSITY, "dense"},
                 {DMG_OPTION_RESCHEDULE_DEGREE, "0"},
                 {DMG_OPTION_TASKS, "1"},
                 {DMG_OPTION_DIRECTION, "push"}}},
    {.name = "fully-cached", .options = {{DMG_OPTION_CACHING, "full"}, {DMG_OPTION_DENSITY, "dense"}}},
};

static const system_bundle *find_bundle(const dmg_settings *settings)
{
    const char *name = dmg_value_text(settings, DMG_OPTION_SYSTEM);
    for (size_t index = 0; name && index < sizeof bundles / sizeof bundles[0]; index++) {
        if (strcmp(bundles[index].name, name) == 0) {
            return &bundles[index];
        }
    }
    return &bundles[0];
}

dmg_status dmg_system_apply(dmg_settings *settings)
{
    const system_bundle *bundle = find_bundle(settings);
    if (bundle->has_one_cn && dmg_number(settings, DMG_OPTION_CNS) != 1) {
        return dmg_error(DMG_ERR_ARGUMENT, "--system %s has one compute node: leave out --cns", bundle->name);
    }
    dmg_status status = DMG_OK;
    for (const system_option *option = bundle->options; option->text && status == DMG_OK; option++) {
        if (!settings->values[option->id].is_given) {
            status = dmg_options_set_default(settings, option->id, option->text);
        }
    }
    return status;
}

/* The bundle's switches that are off, as the one option that says so. */
static void print_switches(FILE *to, const dmg_settings *settings, const system_bundle *bundle)
{
    const char *before = " --without ";
    bool is_given = false;
    for (const system_option *option = bundle->options; option->text; option++) {
        const dmg_option_value *value = &settings->values[option->id];
        if (!dmg_option_get(option->id)->is_switch) {
            continue;
        }
        is_given |= value->is_given;
        if (strcmp(value->text, "off") == 0) {
            fprintf(to, "%s%s", before, dmg_option_get(option->id)->name);
            before = ",";
        }
    }
    fprintf(to, "%s", is_given ? " (as given)" : "");
}

void dmg_system_print(FILE *to, const dmg_settings *settings)
{
    const system_bundle *bundle = find_bundle(settings);
    if (!bundle->options[0].text) {
        return;
    }
    fprintf(to, "system     %s:", bundle->name);
    print_switches(to, settings, bundle);
    for (const system_option *option = bundle->options; option->text; option++) {
        const dmg_option_value *value = &settings->values[option->id];
        if (dmg_option_get(option->id)->is_switch) {
            continue;
        }
        fprintf(to, " --%s ", dmg_option_get(option->id)->name);
        if (dmg_option_get(option->id)->type == DMG_TYPE_NUMBER) {
            fprintf(to, "%" PRIu64, value->number); /* a pool's own may have replaced what was said */
        } else {
            fprintf(to, "%s", value->text);
        }
        fprintf(to, "%s", value->is_given ? " (as given)" : "");
    }
    fputc('\n', to);
}

const char *dmg_system_value(const dmg_settings *settings, dmg_option_id id)
{
    for (const system_option *option = find_bundle(settings)->options; option->text; option++) {
        if (option->id == id) {
            return option->text;
        }
    }
    return NULL;
}
