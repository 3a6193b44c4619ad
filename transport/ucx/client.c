/**
 * @file client.c
 * The compute node's end: opening and closing of clients and channels.
 *
 * A channel opens a stream to every server and says hello; the welcome tells what the server offers. The client's first
 * hello decides, for all its channels, what carries the data. Then each channel opens its one-sided lanes by what the
 * welcome told.
 */
#include "transport/ucx/client.h"
#include "core/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** How long UCX may take to let go of a lane's endpoint. */
#define CLOSE_NS UINT64_C(500000000)

/* ---- channels ---- */

static dmg_status channel_create(dmg_ucx_client *client, dmg_ucx_channel **created)
{
    dmg_ucx_channel *channel = calloc(1, sizeof(*channel));
    if (channel == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening a channel: out of memory");
    }
    *created = channel;
    channel->base.operations = &dmg_ucx_channel_operations;
    channel->client = client;
    channel->node_count = client->node_count;
    channel->data_event = -1;
    channel->links = calloc(client->node_count, sizeof(*channel->links));
    channel->waits = calloc((size_t)client->node_count + 2, sizeof(*channel->waits));
    channel->operations = calloc(DMG_UCX_OPERATIONS_MAX, sizeof(*channel->operations));
    if (channel->links == NULL || channel->waits == NULL || channel->operations == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening a channel: out of memory");
    }
    for (uint32_t i = 0; i < client->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        link->channel = channel;
        link->node = (uint16_t)i;
        link->queue.first = link->at_card.first = link->unflushed.first = link->flushing.first = DMG_UCX_NO_SLOT;
    }
    for (uint32_t i = 0; i < DMG_UCX_OPERATIONS_MAX; i++) {
        channel->operations[i].next = i + 1 < DMG_UCX_OPERATIONS_MAX ? i + 1 : DMG_UCX_NO_SLOT;
    }
    if (client->message_card != NULL) {
        return dmg_ucx_hub_open_on_card(client->message_card, &channel->hub);
    }
    return client->message_context != NULL
               ? dmg_ucx_hub_open(client->message_context, client->settings.messages, &channel->hub)
               : DMG_OK;
}

static void channel_destroy(dmg_ucx_channel *channel)
{
    if (channel->links != NULL) {
        dmg_ucx_connections_cut(channel);
    }
    for (uint32_t i = 0; channel->links != NULL && i < channel->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        if (link->key != NULL) {
            ucp_rkey_destroy(link->key);
        }
        if (link->data_endpoint != NULL) {
            dmg_ucx_close_now(channel->data_worker, link->data_endpoint, 0, CLOSE_NS);
        }
        dmg_ucx_card_lane_close(channel, i);
    }
    dmg_ucx_hub_close(channel->hub);
    if (channel->data_worker != NULL) {
        ucp_worker_destroy(channel->data_worker);
    }
    dmg_ucx_port_close(&channel->port);
    dmg_ucx_frames_clear(&channel->frames);
    free(channel->links);
    free(channel->waits);
    free(channel->operations);
    free(channel);
}

void dmg_ucx_channel_close(dmg_backend_channel *base)
{
    dmg_ucx_channel *channel = (dmg_ucx_channel *)base;
    for (uint32_t i = 0; i < channel->node_count; i++) {
        dmg_ucx_card_lane_close(channel, i);
    }
    dmg_ucx_end_all(channel, -1, DMG_ERR_CANCELLED);
    dmg_ucx_connections_say_goodbye(channel);
    channel_destroy(channel);
}

dmg_status dmg_ucx_channel_open(dmg_backend_client *base, dmg_channel *owner, dmg_backend_channel **made)
{
    (void)owner;
    dmg_ucx_client *client = (dmg_ucx_client *)base;
    dmg_ucx_channel *channel = atomic_exchange(&client->first_channel, NULL);
    if (channel != NULL) {
        *made = &channel->base;
        return DMG_OK;
    }
    dmg_status status = channel_create(client, &channel);
    if (status == DMG_OK) {
        status = dmg_ucx_connections_open(channel);
    }
    for (uint32_t i = 0; status == DMG_ERR_PEER && i < client->node_count; i++) {
        if (channel != NULL && channel->links[i].is_unreached) {
            dmg_client_mark_dead(
                client->client, (uint16_t)i,
                "took no further connection: it died, was stopped, or has no descriptor left (`ulimit -n`)");
            status = dmg_client_node_status(client->client, (uint16_t)i);
        }
    }
    for (uint32_t i = 0; status == DMG_OK && i < client->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        if (!link->is_welcomed && link->broken == NULL) {
            link->broken =
                link->refused != DMG_OK ? "refused another channel" : "did not answer a new connection in time";
        }
        if (link->broken != NULL) {
            dmg_client_mark_dead(client->client, (uint16_t)i, link->broken);
            status = dmg_client_node_status(client->client, (uint16_t)i);
        } else if (client->facts[i].is_one_sided && client->data != DMG_UCX_DATA_NIC) {
            status = dmg_ucx_lane_open(channel, i);
        }
    }
    if (status != DMG_OK) {
        if (channel != NULL) {
            dmg_ucx_channel_close(&channel->base);
        }
        return status;
    }
    *made = &channel->base;
    return DMG_OK;
}

/* ---- the client ---- */

static dmg_status resolve_addresses(dmg_ucx_client *client, const dmg_client_options *options)
{
    for (uint32_t i = 0; i < client->node_count; i++) {
        dmg_ucx_facts *facts = &client->facts[i];
        const char *text = options->addresses[i];
        if (strncmp(text, "ucx:", 4) != 0) {
            return dmg_error(DMG_ERR_ARGUMENT,
                             "memory node %u's address \"%s\" is not of the transport ucx: expected ucx:@NAME or "
                             "ucx:HOST:PORT, as the memory node printed it",
                             i, text);
        }
        snprintf(facts->address_text, sizeof(facts->address_text), "%s", text);
        dmg_status status = dmg_stream_address_parse("ucx", text, &facts->address);
        if (status != DMG_OK) {
            return dmg_error_prefix(status, "memory node %u", i);
        }
    }
    return DMG_OK;
}

static dmg_status open_messages(dmg_ucx_client *client)
{
    if (client->settings.are_messages_card) {
        return dmg_ucx_card_open(&client->settings, client->settings.messages, &client->message_card);
    }
    const dmg_ucx_facts *first = &client->facts[0];
    char interface[96];
    bool is_local = true;
    const char *farthest = first->address_text;
    for (uint32_t i = 0; i < client->node_count; i++) {
        if (!dmg_stream_address_is_local(&client->facts[i].address)) {
            is_local = false;
            farthest = client->facts[i].address_text;
        }
    }
    dmg_status status = dmg_ucx_confine_tcp(&client->settings, NULL, farthest, is_local, interface, sizeof(interface));
    return status == DMG_OK ? dmg_ucx_message_context(&client->settings, interface, first->address.name.any.sa_family,
                                                      &client->message_context)
                            : status;
}

static dmg_status check_welcomes(const dmg_ucx_client *client, const dmg_ucx_channel *channel)
{
    for (uint32_t i = 0; i < client->node_count; i++) {
        const dmg_ucx_link *link = &channel->links[i];
        const char *address = client->facts[i].address_text;
        if (link->refused != DMG_OK) {
            return dmg_error(link->refused, "memory node %u (%s) refuses this client: %s", i, address, link->sentence);
        }
        if (link->broken != NULL) {
            return dmg_error(DMG_ERR_PEER, "memory node %u (%s) %s: is it running?", i, address, link->broken);
        }
        if (!link->is_welcomed) {
            return dmg_error(DMG_ERR_PEER, "memory node %u (%s) did not answer within %.1f s: is it running?", i,
                             address, (double)client->peer_timeout_ns / 1e9);
        }
    }
    return DMG_OK;
}

/** Try the lanes that the servers offer; say in `chosen` what carries the data and why. */
static dmg_status choose_data(dmg_ucx_client *client, dmg_ucx_channel *channel, char *chosen, size_t chosen_bytes)
{
    const dmg_ucx_settings *settings = &client->settings;
    const char *offered = "";
    uint32_t kind = DMG_UCX_LANE_BY_WORKER;
    client->data = DMG_UCX_DATA_MESSAGE;
    if (settings->data == DMG_UCX_DATA_MESSAGE) {
        snprintf(chosen, chosen_bytes, "data by message to the memory node, as data=message asks");
        return DMG_OK;
    }
    for (uint32_t i = 0; i < client->node_count; i++) {
        const char *lane = client->facts[i].data;
        if (settings->data != DMG_UCX_DATA_AUTO && strcmp(lane, settings->data_transports) != 0) {
            return dmg_error(DMG_ERR_UNSUPPORTED,
                             "data=%s: memory node %u (%s) offers %s: start it with the same transport",
                             settings->data_transports, i, client->facts[i].address_text,
                             lane[0] != '\0' ? lane : "no one-sided lane");
        }
        if (offered[0] == '\0') {
            offered = lane;
            kind = client->facts[i].lane;
        }
    }
    if (offered[0] == '\0') {
        snprintf(
            chosen, chosen_bytes,
            "data by message to the memory node: it offers no one-sided lane (it is not on loopback, and has no RDMA "
            "device)");
        return DMG_OK;
    }
    client->data = dmg_ucx_data_kind(offered);
    if (client->data == DMG_UCX_DATA_AUTO) {
        return dmg_error(DMG_ERR_PROTOCOL, "memory node 0 (%s) offers the unknown lane %s",
                         client->facts[0].address_text, offered);
    }
    bool is_card = client->data == DMG_UCX_DATA_NIC;
    dmg_status status = is_card ? dmg_ucx_card_open(settings, offered, &client->card)
                                : dmg_ucx_data_context(offered, &client->data_context);
    uint32_t count = 0;
    for (uint32_t i = 0; status == DMG_OK && i < client->node_count; i++) {
        if (strcmp(client->facts[i].data, offered) != 0 || client->facts[i].lane != kind) {
            continue;
        }
        status = is_card ? dmg_ucx_card_lane_open(channel, i) : dmg_ucx_lane_open(channel, i);
        if (status == DMG_OK && !is_card && !dmg_ucx_lane_is_real(channel->links[i].data_endpoint)) {
            status = dmg_error(DMG_ERR_UNSUPPORTED, "UCX has no real one-sided lane to memory node %u (%s) over %s", i,
                               client->facts[i].address_text, offered);
        }
        client->facts[i].is_one_sided = status == DMG_OK;
        count += status == DMG_OK;
    }
    if (status != DMG_OK) {
        if (settings->data != DMG_UCX_DATA_AUTO) {
            return status;
        }
        for (uint32_t i = 0; i < client->node_count; i++) {
            client->facts[i].is_one_sided = false;
        }
        snprintf(chosen, chosen_bytes, "data by message to the memory node, since %.150s", dmg_error_message());
        return DMG_OK;
    }
    client->has_one_sided_atomics = client->data == DMG_UCX_DATA_SHARED_MEMORY && count == client->node_count;
    snprintf(chosen, chosen_bytes, "data one-sided over %s%s, which %s; atomics by the %s", offered,
             count == client->node_count ? "" : " where a node offers it, else by message",
             settings->data == DMG_UCX_DATA_AUTO ? "the memory node offers" : "data= asks for",
             client->has_one_sided_atomics ? "caller's CPU" : "memory node, since UCX gives no others there");
    return DMG_OK;
}

static void describe_choice(const dmg_ucx_client *client, const dmg_ucx_channel *channel, const char *data,
                            dmg_capabilities *capabilities)
{
    const dmg_stream_protection least = dmg_stream_protected(channel->links[0].carrier.stream);
    const char *protection = client->settings.are_messages_ucx   ? ""
                             : least == DMG_STREAM_ENCRYPTED     ? ", encrypted"
                             : least == DMG_STREAM_AUTHENTICATED ? ", authenticated"
                                                                 : "";
    bool is_one_sided = true;
    for (uint32_t i = 0; i < client->node_count; i++) {
        is_one_sided &= client->facts[i].is_one_sided;
    }
    capabilities->flags = DMG_CAPABILITY_MN_COMPUTE | (is_one_sided ? DMG_CAPABILITY_ONE_SIDED : 0u);
    capabilities->atomics = client->has_one_sided_atomics ? DMG_ATOMICS_CALLER_CPU : DMG_ATOMICS_MEMORY_NODE;
    snprintf(capabilities->chosen, sizeof(capabilities->chosen), "messages over %.50s%s; %.180s",
             client->settings.messages, protection, data);
}

dmg_status dmg_ucx_client_open(dmg_client *owner, const dmg_client_options *options,
                               const dmg_transport_parameters *parameters, dmg_node *nodes,
                               dmg_capabilities *capabilities, dmg_backend_client **made)
{
    dmg_ucx_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening a client: out of memory");
    }
    client->base.operations = &dmg_ucx_client_operations;
    client->client = owner;
    client->nodes = nodes;
    client->node_count = options->address_count;
    client->peer_timeout_ns = options->peer_timeout_ns != 0 ? options->peer_timeout_ns : DMG_PEER_TIMEOUT_DEFAULT_NS;
    memcpy(client->token, options->token, sizeof(client->token));
    client->facts = calloc(client->node_count, sizeof(*client->facts));
    dmg_ucx_channel *channel = NULL;
    char data[200] = "";
    dmg_status status = client->facts == NULL ? dmg_error(DMG_ERR_MEMORY, "opening a client: out of memory") : DMG_OK;
    if (status == DMG_OK) {
        status = dmg_ucx_settings_parse(parameters, DMG_UCX_SIDE_COMPUTE, &client->settings);
    }
    if (status == DMG_OK) {
        status = resolve_addresses(client, options);
    }
    if (status == DMG_OK && client->settings.are_messages_ucx) {
        status = open_messages(client);
    }
    if (status == DMG_OK) {
        status = channel_create(client, &channel);
    }
    if (status == DMG_OK) {
        status = dmg_ucx_connections_open(channel);
    }
    if (status == DMG_OK) {
        status = check_welcomes(client, channel);
    }
    if (status == DMG_OK) {
        status = choose_data(client, channel, data, sizeof(data));
    }
    if (status != DMG_OK) {
        if (channel != NULL && channel->links != NULL && channel->waits != NULL && channel->operations != NULL) {
            dmg_ucx_channel_close(&channel->base);
        } else if (channel != NULL) {
            channel_destroy(channel);
        }
        dmg_ucx_client_close(&client->base);
        return status;
    }
    for (uint32_t i = 0; i < client->node_count; i++) {
        nodes[i].segment_bytes = client->facts[i].segment_bytes;
        nodes[i].pointer = NULL;
    }
    describe_choice(client, channel, data, capabilities);
    atomic_store(&client->first_channel, channel);
    *made = &client->base;
    return DMG_OK;
}

void dmg_ucx_client_close(dmg_backend_client *base)
{
    dmg_ucx_client *client = (dmg_ucx_client *)base;
    dmg_ucx_channel *first = atomic_exchange(&client->first_channel, NULL);
    if (first != NULL) {
        dmg_ucx_channel_close(&first->base);
    }
    if (client->data_context != NULL) {
        dmg_ucx_close_context(client->data_context);
    }
    dmg_ucx_card_close(client->card);
    if (client->message_context != NULL) {
        dmg_ucx_close_context(client->message_context);
    }
    dmg_ucx_card_close(client->message_card);
    for (uint32_t i = 0; client->facts != NULL && i < client->node_count; i++) {
        free(client->facts[i].data_address);
        free(client->facts[i].data_key);
    }
    free(client->facts);
    free(client);
}
