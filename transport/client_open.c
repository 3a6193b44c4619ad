/*
 * Opening and closing the compute node's side: the backend's part, the monitor, and what was asked to stand around the
 * backend.
 */
#include "core/base/error.h"
#include "transport/core.h"
#include "transport/link/wrap.h"

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
    opened->peer_timeout_ns = options->peer_timeout_ns ? options->peer_timeout_ns : DMG_PEER_TIMEOUT_DEFAULT_NS;
    status = draw_id(&opened->id);
    if (status == DMG_OK) {
        status = copy_addresses(opened, options);
    }
    if (status == DMG_OK) {
        dmg_client_options copy = *options;
        copy.addresses = (const char *const *)opened->addresses;
        copy.peer_timeout_ns = opened->peer_timeout_ns;
        status = backend->client_open(opened, &copy, &parameters, opened->nodes, &opened->capabilities, &opened->lower);
    }
    if (status == DMG_OK) {
        status = dmg_monitor_start(opened);
    }
    if (status == DMG_OK && options->link) {
        status = dmg_link_wrap(opened, options->link, &opened->capabilities, &opened->lower);
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
    if (client->lower) {
        client->lower->operations->close(client->lower);
    }
    for (uint32_t i = 0; i < client->node_count; i++) {
        free(client->addresses[i]);
    }
    free(client->addresses);
    free(client->nodes);
    pthread_mutex_destroy(&client->death_lock);
    free(client);
}
