/*
 * The compute-node side of the common layer: what all channels of a process share.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "transport/core.h"
#include "transport/link/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static dmg_status draw_id(uint64_t *id)
{
    do {
        if (getrandom(id, sizeof *id, 0) != sizeof *id) {
            return dmg_error(DMG_ERR_IO, "opening a pool: the system gives no random numbers");
        }
    } while (*id == 0);
    return DMG_OK;
}

static dmg_status copy_addresses(dmg_client *client, const dmg_client_options *options)
{
    client->addresses = calloc(options->address_count, sizeof *client->addresses);
    client->nodes = calloc(options->address_count, sizeof *client->nodes);
    if (!client->addresses || !client->nodes) {
        return dmg_error(DMG_ERR_MEMORY, "opening a pool: out of memory");
    }
    client->node_count = options->address_count;
    for (uint32_t i = 0; i < client->node_count; i++) {
        if (!options->addresses[i] || strlen(options->addresses[i]) >= DMG_ADDRESS_STRING_BYTES) {
            return dmg_error(DMG_ERR_ARGUMENT, "opening a pool: the address of memory node %u is missing or too long",
                             i);
        }
        client->addresses[i] = strdup(options->addresses[i]);
        if (!client->addresses[i]) {
            return dmg_error(DMG_ERR_MEMORY, "opening a pool: out of memory");
        }
    }
    return DMG_OK;
}

dmg_status dmg_client_open(const dmg_client_options *options, dmg_client **client)
{
    *client = NULL;
    const dmg_backend *backend;
    dmg_transport_parameters parameters;
    dmg_status status = dmg_transport_parse(options->transport, &backend, &parameters);
    if (status != DMG_OK) {
        return status;
    }
    if (options->address_count == 0 || options->address_count > DMG_MEMORY_NODES_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "opening a pool: it has %u memory nodes; 1 to %d are possible",
                         options->address_count, DMG_MEMORY_NODES_MAX);
    }
    dmg_client *opened = calloc(1, sizeof *opened);
    if (!opened) {
        return dmg_error(DMG_ERR_MEMORY, "opening a pool: out of memory");
    }
    pthread_mutex_init(&opened->death_lock, NULL);
    opened->backend = backend;
    opened->peer_timeout_ns = options->peer_timeout_ns ? options->peer_timeout_ns : DMG_PEER_TIMEOUT_DEFAULT_NS;
    status = draw_id(&opened->id);
    if (status == DMG_OK) {
        status = copy_addresses(opened, options);
    }
    if (status == DMG_OK) {
        dmg_client_options copy = *options;
        copy.addresses = (const char *const *)opened->addresses;
        copy.peer_timeout_ns = opened->peer_timeout_ns;
        status = backend->client_open(opened, &copy, &parameters, opened->nodes, &opened->capabilities,
                                      &opened->implementation);
    }
    if (status == DMG_OK) {
        status = dmg_monitor_start(opened);
    }
    if (status == DMG_OK && options->link) {
        status = dmg_link_create(opened, options->link, &opened->link);
    }
    if (status != DMG_OK) {
        dmg_client_close(opened);
        return status;
    }
    *client = opened;
    return DMG_OK;
}

void dmg_client_close(dmg_client *client)
{
    if (!client) {
        return;
    }
    dmg_monitor_stop(client);
    dmg_link_destroy(client->link);
    if (client->implementation) {
        client->backend->client_close(client->implementation);
    }
    for (uint32_t i = 0; i < client->node_count; i++) {
        free(client->addresses[i]);
    }
    free(client->addresses);
    free(client->nodes);
    pthread_mutex_destroy(&client->death_lock);
    free(client);
}

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
    if (client->backend->client_acquire) {
        client->backend->client_acquire(client->implementation);
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
