/*
 * The model of a client: the clocks of every node's link, whether to spin or to account, and what the model itself
 * costs.
 */
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/topology.h"
#include "transport/link/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PINGS              24
#define NANOSECONDS_SECOND 1e9

/* Spinning threads must not outnumber the cores; a memory node whose program serves every operation needs one too. */
static bool is_to_account(const dmg_client *client, const dmg_link_settings *settings, char *why, size_t capacity)
{
    uint32_t cores = dmg_topology_usable_cpus();
    uint32_t serving = client->capabilities.flags & DMG_CAPABILITY_ONE_SIDED ? 0 : client->node_count;
    uint32_t waiting = settings->spinners ? settings->spinners : 1;
    bool is_accounting =
        settings->mode == DMG_LINK_ACCOUNT || (settings->mode == DMG_LINK_AUTO && waiting + serving > cores);
    if (settings->mode != DMG_LINK_AUTO) {
        snprintf(why, capacity, "as asked");
    } else if (serving > 0) {
        snprintf(why, capacity, "%u threads wait and %u memory nodes serve on %u cores", waiting, serving, cores);
    } else {
        snprintf(why, capacity, "%u threads wait on %u cores", waiting, cores);
    }
    return is_accounting;
}

static dmg_status map_page(dmg_channel *channel, dmg_link *link, uint16_t node)
{
    dmg_link_offer offer;
    dmg_call call = {.reply = &offer, .reply_capacity = sizeof offer};
    dmg_status status = dmg_message(channel, node, DMG_MESSAGE_TYPE_LINK, NULL, 0, &call);
    if (status == DMG_OK && call.reply_bytes != sizeof offer) {
        status = dmg_error(DMG_ERR_PROTOCOL, "it offers no clocks for an emulated link");
    }
    return status == DMG_OK ? dmg_link_page_map(&offer, &link->pages[node]) : status;
}

static dmg_status map_pages(dmg_channel *channel, dmg_link *link)
{
    link->pages = calloc(link->node_count, sizeof(dmg_link_page *));
    if (!link->pages) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the clocks of an emulated link");
    }
    for (uint32_t node = 0; node < link->node_count; node++) {
        dmg_status status = map_page(channel, link, (uint16_t)node);
        if (status != DMG_OK) {
            return dmg_error_prefix(status, "memory node %u", node);
        }
    }
    return DMG_OK;
}

/* The shortest round trip of an empty message. */
static dmg_status measure_message_floor(dmg_channel *channel, dmg_link *link)
{
    const dmg_ticks_costs clock = dmg_ticks_measure_costs(link->are_cycles);
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < PINGS; i++) {
        dmg_call call = {0};
        uint64_t start = dmg_ticks_fenced(link->are_cycles);
        dmg_status status = dmg_message(channel, 0, DMG_MESSAGE_TYPE_ECHO, NULL, 0, &call);
        uint64_t took = dmg_ticks_within(start, dmg_ticks_fenced(link->are_cycles), &clock);
        if (status != DMG_OK) {
            return status;
        }
        shortest = took < shortest ? took : shortest;
    }
    link->message_floor = shortest;
    return DMG_OK;
}

static void announce(dmg_client *client, const dmg_link *link, const char *why)
{
    dmg_capabilities *capabilities = &client->capabilities;
    const char *mode = link->is_accounting ? "accounting: nothing waits, its time is reported" : "spinning";
    size_t used = strlen(capabilities->chosen);
    const char *locks = capabilities->atomics == DMG_ATOMICS_CALLER_LOCK
                            ? "; it has no atomics across compute nodes, so that each takes a lock"
                            : "";
    snprintf(capabilities->chosen + used, sizeof capabilities->chosen - used, "; emulated link '%s', %s (%s)%s",
             link->settings.name, mode, why, locks);
    dmg_log(DMG_LOG_INFO, "link_emulated", "name=\"%s\" mode=%s why=\"%s\"", link->settings.name,
            dmg_link_mode_name(link->settings.mode), why);
}

dmg_status dmg_link_create(dmg_client *client, const dmg_link_settings *settings, dmg_link **link)
{
    *link = NULL;
    dmg_status status = dmg_link_settings_check(settings);
    if (status != DMG_OK) {
        return status;
    }
    dmg_link *made = calloc(1, sizeof *made);
    if (!made) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for an emulated link");
    }
    char why[96];
    made->settings = *settings;
    made->node_count = client->node_count;
    made->are_cycles = dmg_ticks_are_cycles();
    made->ticks_a_second = dmg_ticks_measure_a_second(made->are_cycles);
    made->is_accounting = is_to_account(client, settings, why, sizeof why);
    made->settings.mode = made->is_accounting ? DMG_LINK_ACCOUNT : DMG_LINK_SPIN;
    dmg_link_costs_from(settings, made->ticks_a_second, &made->costs);
    dmg_channel *channel = NULL;
    status = dmg_channel_open(client, &channel);
    if (status == DMG_OK) {
        status = measure_message_floor(channel, made);
    }
    if (status == DMG_OK && !made->is_accounting) {
        status = map_pages(channel, made);
    }
    dmg_channel_close(channel);
    if (status == DMG_OK && !made->is_accounting) {
        status = dmg_link_measure_lags(client, made);
    }
    if (status != DMG_OK) {
        dmg_link_destroy(made);
        return dmg_error_prefix(status, "emulating the link '%s'", settings->name);
    }
    client->capabilities.atomics = dmg_atomics_over(settings, client->capabilities.atomics);
    announce(client, made, why);
    *link = made;
    return DMG_OK;
}

void dmg_link_destroy(dmg_link *link)
{
    if (!link) {
        return;
    }
    for (uint32_t node = 0; node < link->node_count && link->pages; node++) {
        dmg_link_page_unmap(link->pages[node]);
    }
    free(link->pages);
    free(link);
}
