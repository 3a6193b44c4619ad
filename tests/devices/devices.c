/*
 * The table of devices of tests: a simulated cache of lines (line-cache=SEED), and steps that are left out
 * (leave-out=SITE).
 */
#include "devices/devices.h"

#include "core/base/error.h"
#include "devices/line_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const use_names[DMG_SHM_USES] = {
    [DMG_SHM_DATA_WRITE] = "data-write",
    [DMG_SHM_DATA_READ] = "data-read",
    [DMG_SHM_MAPPED] = "mapped",
    [DMG_SHM_PAYLOAD_WRITE] = "payload-write",
    [DMG_SHM_PAYLOAD_READ] = "payload-read",
    [DMG_SHM_ENTRY_WRITE] = "entry-write",
    [DMG_SHM_ENTRY_READ] = "entry-read",
    [DMG_SHM_ASLEEP_WRITE] = "asleep-write",
    [DMG_SHM_ASLEEP_READ] = "asleep-read",
    [DMG_SHM_NODE_WRITE] = "node-write",
    [DMG_SHM_NODE_READ] = "node-read",
};

const char *dmg_shm_site_name(uint32_t site, char name[32])
{
    if (site >= DMG_SHM_SITES) {
        return NULL;
    }
    if (site >= DMG_SHM_SITE_SHARED_LINES) {
        snprintf(name, 32, "%s", site == DMG_SHM_SITE_SHARED_LINES ? "shared-lines" : "atomics");
    } else {
        snprintf(name, 32, "%s.%s", use_names[site / DMG_SHM_STEPS],
                 site % DMG_SHM_STEPS == DMG_SHM_LINES ? "lines" : "fence");
    }
    return name;
}

static dmg_status parse_left_out(const char *wanted, uint32_t *site)
{
    char name[32];
    for (uint32_t i = 0; dmg_shm_site_name(i, name); i++) {
        if (strcmp(wanted, name) == 0) {
            *site = i;
            return DMG_OK;
        }
    }
    return dmg_error(DMG_ERR_ARGUMENT,
                     "transport parameter leave-out=%s: expected data-write.lines, data-write.fence or another site",
                     wanted);
}

static dmg_status parse(const dmg_transport_parameters *parameters, dmg_shm_coherence *coherence)
{
    const char *seed = dmg_transport_parameter_get(parameters, "line-cache", NULL);
    const char *left_out = dmg_transport_parameter_get(parameters, "leave-out", NULL);
    if (seed) {
        char *end;
        coherence->seed = strtoull(seed, &end, 10);
        coherence->has_line_cache = true;
        if (*seed == '\0' || *end != '\0' || !coherence->is_software) {
            return dmg_error(DMG_ERR_ARGUMENT,
                             "transport parameter line-cache=%s: expected the number that its random evictions begin "
                             "with, beside coherence=none",
                             seed);
        }
    }
    if (left_out && !coherence->has_line_cache) {
        return dmg_error(DMG_ERR_ARGUMENT, "transport parameter leave-out=%s is for tests, beside line-cache",
                         left_out);
    }
    return left_out ? parse_left_out(left_out, &coherence->left_out) : DMG_OK;
}

static void describe(const dmg_shm_coherence *coherence, char *text, size_t capacity)
{
    char name[32];
    const char *left_out = dmg_shm_site_name(coherence->left_out, name);
    snprintf(text, capacity, "%s%s%s", coherence->has_line_cache ? "; through a line cache, for tests" : "",
             left_out ? " that leaves out " : "", left_out ? left_out : "");
}

const char *const dmg_shm_parameter_keys[] = {"coherence", "path", "port", "protect", "line-cache", "leave-out", NULL};

const dmg_shm_device_table dmg_shm_devices = {
    .parse = parse,
    .describe = describe,
    .cache_create = dmg_shm_line_cache_create,
    .cache_destroy = dmg_shm_line_cache_destroy,
    .cache_pointer = dmg_shm_line_cache_pointer,
    .cache_store = dmg_shm_line_cache_store,
    .cache_load = dmg_shm_line_cache_load,
    .cache_fetch = dmg_shm_line_cache_fetch,
    .cache_mark_written = dmg_shm_line_cache_mark_written,
    .cache_write_back = dmg_shm_line_cache_write_back,
};
