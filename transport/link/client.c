/*
 * The model of a client: the clocks of every node's link, whether to spin or to account, and what the model itself
 * costs.
 */
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/topology.h"
#include "transport/link/model.h"
#include "transport/link/wrap.h"
#include "transport/shared_page.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PINGS              24
#define NANOSECONDS_SECOND 1e9

/* Spinning threads must not outnumber the cores; a memory node whose program serves every operation needs one too. */
static bool is_to_account(const dmg_link *link, const dmg_capabilities *capabilities, char *why, size_t capacity)
{
    const dmg_link_settings *settings = &link->settings;
    uint32_t cores = dmg_topology_usable_cpus();
    uint32_t serving = capabilities->flags & DMG_CAPABILITY_ONE_SIDED ? 0 : link->node_count;
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

void dmg_link_page_begin(dmg_link_page *page)
{
    uint64_t unset = 0;
    atomic_compare_exchange_strong(&page->epoch, &unset, dmg_ticks(dmg_ticks_are_cycles()));
}

static dmg_status map_page(dmg_channel *channel, dmg_link *link, uint16_t node)
{
    dmg_shared_page_offer offer;
    dmg_call call = {.reply = &offer, .reply_capacity = sizeof offer};
    dmg_status status = dmg_message(channel, node, DMG_MESSAGE_TYPE_SHARED_PAGE, NULL, 0, &call);
    if (status != DMG_OK) {
        return status;
    }
    if (call.reply_bytes != sizeof offer) {
        return dmg_error(DMG_ERR_PROTOCOL, "it offers no clocks for an emulated link");
    }
    void *page;
    status = dmg_shared_page_map(&offer, &page);
    if (status == DMG_OK) {
        link->pages[node] = page;
        dmg_link_page_begin(page);
    }
    return status == DMG_ERR_UNSUPPORTED
               ? dmg_error(DMG_ERR_UNSUPPORTED,
                           "its clocks cannot be mapped: an emulated link needs memory nodes of this user on this "
                           "machine; real links between machines are measured as they are")
               : status;
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

static void announce(dmg_capabilities *capabilities, const dmg_link *link, const char *why)
{
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

static void free_link(dmg_link *link)
{
    for (uint32_t node = 0; node < link->node_count && link->pages; node++) {
        dmg_shared_page_unmap(link->pages[node]);
    }
    free(link->pages);
    free(link);
}

/* ---- the operations ---- */

static void link_close(dmg_backend_client *base)
{
    dmg_link *link = (dmg_link *)base;
    link->inner->operations->close(link->inner);
    free_link(link);
}

static void link_acquire(dmg_backend_client *base)
{
    const dmg_link *link = (const dmg_link *)base;
    if (link->inner->operations->acquire) {
        link->inner->operations->acquire(link->inner);
    }
}

static const dmg_client_operations operations = {
    .close = link_close, .acquire = link_acquire, .channel_open = dmg_link_channel_open};

/* ---- wrapping ---- */

/* What has to be asked and measured, over channels that are not wrapped yet. */
static dmg_status prepare(dmg_link *link)
{
    dmg_channel *channel = NULL;
    dmg_status status = dmg_channel_open(link->client, &channel);
    if (status == DMG_OK) {
        status = measure_message_floor(channel, link);
    }
    if (status == DMG_OK && !link->is_accounting) {
        status = map_pages(channel, link);
    }
    dmg_channel_close(channel);
    return status == DMG_OK && !link->is_accounting ? dmg_link_measure_overhead(link, &link->overhead) : status;
}

dmg_status dmg_link_wrap(dmg_client *client, const dmg_link_settings *settings, dmg_capabilities *capabilities,
                         dmg_backend_client **lower)
{
    dmg_status status = dmg_link_settings_check(settings);
    if (status != DMG_OK) {
        return status;
    }
    dmg_link *link = calloc(1, sizeof *link);
    if (!link) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for an emulated link");
    }
    char why[96];
    link->base.operations = &operations;
    link->inner = *lower;
    link->client = client;
    link->settings = *settings;
    link->node_count = dmg_client_node_count(client);
    link->are_cycles = dmg_ticks_are_cycles();
    link->ticks_a_second = dmg_ticks_measure_a_second(link->are_cycles);
    link->is_accounting = is_to_account(link, capabilities, why, sizeof why);
    link->settings.mode = link->is_accounting ? DMG_LINK_ACCOUNT : DMG_LINK_SPIN;
    dmg_link_costs_from(settings, link->ticks_a_second, &link->costs);
    status = prepare(link);
    if (status != DMG_OK) {
        free_link(link);
        return dmg_error_prefix(status, "emulating the link '%s'", settings->name);
    }
    capabilities->atomics = dmg_atomics_over(settings, capabilities->atomics);
    announce(capabilities, link, why);
    *lower = &link->base;
    return DMG_OK;
}
