/*
 * What all channels of a process share: the nodes, which of them are dead, and the way to their memory.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/core.h"

#include <stdio.h>
#include <string.h>

uint64_t dmg_client_id(const dmg_client *client)
{
    return client->id;
}

const dmg_capabilities *dmg_client_capabilities(const dmg_client *client)
{
    return &client->capabilities;
}

uint32_t dmg_client_node_count(const dmg_client *client)
{
    return client->node_count;
}

uint64_t dmg_client_segment_bytes(const dmg_client *client, uint16_t node)
{
    return node < client->node_count ? client->nodes[node].segment_bytes : 0;
}

dmg_status dmg_client_node_status(const dmg_client *client, uint16_t node)
{
    if (node >= client->node_count) {
        return dmg_error(DMG_ERR_ARGUMENT, "the pool has %u memory nodes, not a node %u", client->node_count,
                         (unsigned int)node);
    }
    if (!atomic_load_explicit(&client->nodes[node].dead, memory_order_acquire)) {
        return DMG_OK;
    }
    return dmg_error(DMG_ERR_PEER, "memory node %u (%s) %s", (unsigned int)node, client->addresses[node],
                     client->nodes[node].why);
}

void dmg_client_mark_dead(dmg_client *client, uint16_t node, const char *why)
{
    if (node >= client->node_count) {
        return;
    }
    dmg_node *marked = &client->nodes[node];
    pthread_mutex_lock(&client->death_lock);
    bool is_news = !atomic_load_explicit(&marked->dead, memory_order_relaxed);
    if (is_news) {
        snprintf(marked->why, sizeof marked->why, "%s", why);
        atomic_store_explicit(&marked->dead, 1, memory_order_release);
        atomic_fetch_add(&client->deaths, 1);
    }
    pthread_mutex_unlock(&client->death_lock);
    if (is_news) {
        dmg_log(DMG_LOG_INFO, "memory_node_lost", "node=%u address=%s why=\"%s\"", (unsigned int)node,
                client->addresses[node], why);
    }
}

void dmg_client_refused(dmg_client *client, uint16_t node, const void *sentence, size_t bytes)
{
    char why[sizeof client->nodes->why];
    snprintf(why, sizeof why, "refused: %.*s", (int)(bytes < sizeof why ? bytes : sizeof why), (const char *)sentence);
    dmg_client_mark_dead(client, node, why);
}

void dmg_client_acquire(dmg_client *client)
{
    if (client->lower->operations->acquire) {
        client->lower->operations->acquire(client->lower);
    }
}

void *dmg_client_pointer(const dmg_client *client, dmg_address address, uint64_t bytes)
{
    uint16_t node = dmg_address_node(address);
    if (node >= client->node_count) {
        return NULL;
    }
    const dmg_node *target = &client->nodes[node];
    uint64_t offset = dmg_address_offset(address);
    if (!target->pointer || !dmg_range_is_inside(offset, bytes, target->segment_bytes)) {
        return NULL;
    }
    return (char *)target->pointer + offset;
}
