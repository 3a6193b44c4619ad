#include "core/store/graph_catalog.h"

#include "core/base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GRAPHS "graph/"

typedef struct catalog_name {
    char text[DMG_CATALOG_NAME_BYTES];
} catalog_name;

dmg_status dmg_graph_name_check(const char *name)
{
    static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t length = strnlen(name, DMG_GRAPH_NAME_BYTES);
    if (length == 0 || length == DMG_GRAPH_NAME_BYTES || strspn(name, legal) != length) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "'%.64s' cannot be a graph's name: that has 1 to %d letters, digits, dots, lines and dashes",
                         name, DMG_GRAPH_NAME_BYTES - 1);
    }
    return DMG_OK;
}

static catalog_name entry_name(const char *name)
{
    catalog_name made;
    snprintf(made.text, sizeof made.text, GRAPHS "%.32s", name);
    return made;
}

static catalog_name loading_name(const char *name)
{
    catalog_name made;
    snprintf(made.text, sizeof made.text, "loading/%.32s", name);
    return made;
}

/* What the names of all uses of a graph begin with; names have no '/', so no other graph's do. */
static catalog_name use_prefix(const char *name)
{
    catalog_name made;
    snprintf(made.text, sizeof made.text, "use/%.32s/", name);
    return made;
}

static catalog_name use_name(const char *name, uint64_t job)
{
    catalog_name made;
    snprintf(made.text, sizeof made.text, "use/%.32s/%016" PRIx64, name, job);
    return made;
}

void dmg_graph_job_store_name(uint64_t job, char name[DMG_CATALOG_NAME_BYTES])
{
    snprintf(name, DMG_CATALOG_NAME_BYTES, "job/%016" PRIx64 "/store", job);
}

static dmg_status already_there(const char *name)
{
    return dmg_error(DMG_ERR_EXISTS, "there is a graph '%s' in the pool already; unload it, or take another name",
                     name);
}

dmg_status dmg_graph_reserve(dmg_channel *channel, uint64_t job, const char *name)
{
    dmg_status status = dmg_graph_name_check(name);
    if (status == DMG_OK) {
        status = dmg_catalog_put(channel, job, loading_name(name).text, "", 0);
        if (status == DMG_ERR_EXISTS) {
            return dmg_error(status, "a graph '%s' is just being loaded by somebody else", name);
        }
    }
    if (status != DMG_OK) {
        return status;
    }
    char value[DMG_CATALOG_VALUE_BYTES];
    size_t bytes = sizeof value;
    status = dmg_catalog_get(channel, entry_name(name).text, value, &bytes);
    return status == DMG_ERR_NOT_FOUND ? DMG_OK : status == DMG_OK ? already_there(name) : status;
}

dmg_status dmg_graph_publish(dmg_channel *channel, const char *name, dmg_graph_entry *entry)
{
    dmg_status status = dmg_graph_name_check(name);
    if (status == DMG_OK) {
        status = dmg_pool_keep(channel, entry->job, &entry->pool_bytes);
    }
    if (status == DMG_OK) {
        status = dmg_catalog_put(channel, 0, entry_name(name).text, entry, sizeof *entry);
        if (status == DMG_ERR_EXISTS) {
            status = already_there(name);
        }
    }
    return status;
}

static dmg_status check_entry(const char *name, const dmg_graph_entry *entry, size_t bytes, const dmg_client *client)
{
    if (bytes != sizeof *entry || entry->job == 0 ||
        memchr(entry->negative_source, 0, sizeof entry->negative_source) == NULL ||
        memchr(entry->source, 0, sizeof entry->source) == NULL) {
        return dmg_error(DMG_ERR_CORRUPT, "the pool's entry of the graph '%s' is not one of this version of dmgraph",
                         name);
    }
    dmg_status status = dmg_graph_store_check(&entry->store, sizeof entry->store, client);
    return status == DMG_OK ? DMG_OK : dmg_error_prefix(status, "the graph '%s'", name);
}

dmg_status dmg_graph_look_up(dmg_channel *channel, const char *name, dmg_graph_entry *entry)
{
    size_t bytes = sizeof *entry;
    dmg_status status = dmg_graph_name_check(name);
    if (status == DMG_OK) {
        status = dmg_catalog_get(channel, entry_name(name).text, entry, &bytes);
    }
    if (status == DMG_ERR_NOT_FOUND) {
        return dmg_error(status, "there is no graph '%s' in the pool; 'dmgraph list' tells what there is", name);
    }
    if (status == DMG_OK || status == DMG_ERR_LIMIT) {
        status = check_entry(name, entry, bytes, dmg_channel_client(channel));
    }
    return status;
}

dmg_status dmg_graph_use(dmg_channel *channel, uint64_t job, const char *name, dmg_graph_entry *entry)
{
    dmg_status status = dmg_graph_name_check(name);
    if (status == DMG_OK) {
        /* First: from now on it is not unloaded, if it is there. */
        status = dmg_catalog_put(channel, job, use_name(name, job).text, "", 0);
    }
    return status == DMG_OK ? dmg_graph_look_up(channel, name, entry) : status;
}

dmg_status dmg_graph_next(dmg_channel *channel, char name[DMG_GRAPH_NAME_BYTES])
{
    catalog_name next = {""};
    if (name[0] != '\0') {
        next = entry_name(name);
    }
    dmg_status status = dmg_catalog_next(channel, GRAPHS, next.text);
    if (status != DMG_OK || next.text[0] == '\0') {
        name[0] = '\0';
        return status;
    }
    status = dmg_graph_name_check(next.text + strlen(GRAPHS));
    if (status == DMG_OK) {
        snprintf(name, DMG_GRAPH_NAME_BYTES, "%.32s", next.text + strlen(GRAPHS));
    }
    return status;
}

dmg_status dmg_graph_owner(dmg_channel *channel, const dmg_graph_entry *entry, dmg_pool_owner *owner)
{
    dmg_pool_holding holding;
    dmg_status status = dmg_pool_holding_next(channel, 0, entry->job - 1, &holding);
    *owner = status == DMG_OK && holding.job == entry->job ? holding.owner : (dmg_pool_owner){0};
    return status;
}

static dmg_status not_yours(dmg_channel *channel, const char *name, const dmg_graph_entry *entry)
{
    dmg_pool_owner owner;
    dmg_status status = dmg_graph_owner(channel, entry, &owner);
    return status != DMG_OK ? status
                            : dmg_error(DMG_ERR_DENIED,
                                        "the graph '%s' belongs to %s, who alone unloads it; who has the pool's admin "
                                        "secret can do so by --admin",
                                        name, dmg_owner_print(&owner).text);
}

dmg_status dmg_graph_unload(dmg_channel *channel, const char *name, uint64_t *bytes)
{
    dmg_graph_entry entry;
    dmg_status status = dmg_graph_look_up(channel, name, &entry);
    if (status == DMG_OK) {
        status = dmg_catalog_remove_unused(channel, entry_name(name).text, use_prefix(name).text);
        if (status == DMG_ERR_EXISTS) {
            return dmg_error(status, "the graph '%s' is in use: a run works on it", name);
        }
    }
    if (status == DMG_OK) {
        status = dmg_pool_drop(channel, entry.job, bytes);
    }
    return status == DMG_ERR_DENIED ? not_yours(channel, name, &entry) : status;
}

/* Whether an entry names the job as the owner of its memory. */
static dmg_status is_named(dmg_channel *channel, uint64_t job, bool *is_owner)
{
    char name[DMG_GRAPH_NAME_BYTES] = "";
    *is_owner = false;
    for (;;) {
        dmg_status status = dmg_graph_next(channel, name);
        if (status != DMG_OK || name[0] == '\0') {
            return status;
        }
        dmg_graph_entry entry;
        status = dmg_graph_look_up(channel, name, &entry);
        if (status != DMG_OK && status != DMG_ERR_NOT_FOUND) {
            return status; /* it may be the owner: nothing is freed on a guess */
        }
        if (status == DMG_OK && entry.job == job) {
            *is_owner = true;
            return DMG_OK;
        }
    }
}

dmg_status dmg_graph_sweep(dmg_channel *channel, uint64_t *bytes)
{
    uint64_t swept = 0;
    dmg_status status = DMG_OK;
    for (uint32_t node = 0; node < dmg_client_node_count(dmg_channel_client(channel)); node++) {
        uint64_t job = 0;
        for (;;) {
            /* In this order: when nobody is in the job any more, its entry has been put, or never will be. */
            status = dmg_pool_kept(channel, (uint16_t)node, job, &job);
            bool is_owner = false;
            if (status == DMG_OK && job != 0) {
                status = is_named(channel, job, &is_owner);
            }
            if (status != DMG_OK || job == 0) {
                break;
            }
            uint64_t freed = 0;
            status = is_owner ? DMG_OK : dmg_pool_drop(channel, job, &freed);
            status = status == DMG_ERR_DENIED ? DMG_OK : status; /* its owner sweeps it, or the admin */
            swept += freed;
            if (status != DMG_OK) {
                break;
            }
        }
        if (status != DMG_OK) {
            break;
        }
    }
    if (bytes != NULL) {
        *bytes = swept;
    }
    return status;
}
