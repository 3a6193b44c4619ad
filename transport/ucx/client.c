/**
 * @file client.c
 * The compute node's end: opening and closing of clients and channels.
 *
 * A channel connects to every server's listener and says hello; the welcome tells what the server offers. The client's
 * first hello decides, for all its channels, what carries the data. Then each channel opens its one-sided lanes by what
 * the welcome told.
 */
#include "transport/ucx/client.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** How long an orderly close waits for the servers' farewells, and for UCX to let go of its endpoints. */
#define FAREWELL_NS UINT64_C(200000000)
#define CLOSE_NS    UINT64_C(500000000)

/* ---- callbacks: they only note ---- */

static void on_endpoint_error(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    (void)endpoint;
    dmg_ucx_link *link = argument;
    if (link->broken == NULL) {
        link->broken = status == UCS_ERR_NOT_CONNECTED || status == UCS_ERR_UNREACHABLE || status == UCS_ERR_REJECTED
                           ? "refuses connections"
                           : "broke the connection";
    }
}

/** Keep what a welcome tells, the first time; later ones must tell the same. */
static const char *take_facts(dmg_ucx_facts *facts, const dmg_ucx_welcome *welcome, const uint8_t *rest)
{
    if (facts->segment_bytes != 0) {
        return welcome->epoch == facts->epoch ? NULL : "was restarted";
    }
    if (welcome->segment_bytes == 0 || welcome->segment_bytes > DMG_ADDRESS_OFFSET_MASK ||
        memchr(welcome->data, '\0', sizeof(welcome->data)) == NULL) {
        return "sent a welcome that is not one of ours";
    }
    if (welcome->address_bytes != 0) {
        facts->data_address = calloc(1, welcome->address_bytes + 1);
        facts->data_key = malloc(welcome->key_bytes + 1);
        if (facts->data_address == NULL || facts->data_key == NULL) {
            return "cannot be reached: this process is out of memory";
        }
        memcpy(facts->data_address, rest, welcome->address_bytes);
        memcpy(facts->data_key, rest + welcome->address_bytes, welcome->key_bytes);
    }
    memcpy(facts->data, welcome->data, sizeof(facts->data));
    facts->lane = welcome->lane;
    facts->epoch = welcome->epoch;
    facts->base = welcome->base;
    facts->segment_bytes = welcome->segment_bytes;
    return NULL;
}

static ucs_status_t on_welcome(void *argument, const void *header_bytes, size_t header_length, void *data,
                               size_t length, const ucp_am_recv_param_t *from)
{
    dmg_ucx_channel *channel = argument;
    dmg_ucx_header header;
    dmg_ucx_welcome welcome;
    if (header_length != sizeof(header) || (from->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        return UCS_OK;
    }
    memcpy(&header, header_bytes, sizeof(header));
    if (header.magic != DMG_UCX_MAGIC || header.channel >= channel->node_count) {
        return UCS_OK;
    }
    dmg_ucx_link *link = &channel->links[header.channel];
    if (link->is_welcomed || link->refused != DMG_OK || link->is_failed || link->broken != NULL) {
        return UCS_OK;
    }
    if (length < sizeof(welcome)) {
        link->broken = "sent a welcome that is not one of ours";
        return UCS_OK;
    }
    memcpy(&welcome, data, sizeof(welcome));
    const uint8_t *rest = (const uint8_t *)data + sizeof(welcome);
    uint64_t told = (uint64_t)welcome.address_bytes + welcome.key_bytes + welcome.sentence_bytes;
    if (length - sizeof(welcome) != told || welcome.version != DMG_UCX_VERSION || welcome.status >= DMG_STATUS_COUNT) {
        link->refused = DMG_ERR_PROTOCOL;
        snprintf(link->sentence, sizeof(link->sentence), "it is not a memory node of this version of dmgraph");
    } else if (welcome.status != DMG_OK) {
        link->refused = (dmg_status)welcome.status;
        snprintf(link->sentence, sizeof(link->sentence), "%.*s", (int)(told < 150 ? told : 150), (const char *)rest);
    } else if (welcome.node != header.channel) {
        link->refused = DMG_ERR_PROTOCOL;
        snprintf(link->sentence, sizeof(link->sentence),
                 "it is memory node %u of its pool: give the addresses in the order of their ids", welcome.node);
    } else {
        link->broken = take_facts(&channel->client->facts[header.channel], &welcome, rest);
        link->server_channel = welcome.channel;
        link->is_welcomed = link->broken == NULL;
    }
    return UCS_OK;
}

static ucs_status_t on_farewell(void *argument, const void *header_bytes, size_t header_length, void *data,
                                size_t length, const ucp_am_recv_param_t *from)
{
    (void)data, (void)length, (void)from;
    dmg_ucx_channel *channel = argument;
    dmg_ucx_header header;
    if (header_length == sizeof(header)) {
        memcpy(&header, header_bytes, sizeof(header));
        if (header.magic == DMG_UCX_MAGIC && header.channel < channel->node_count) {
            channel->links[header.channel].has_farewell = true;
        }
    }
    return UCS_OK;
}

/* ---- channels ---- */

static dmg_status set_handler(dmg_ucx_channel *channel, unsigned id, ucp_am_recv_callback_t handler)
{
    ucp_am_handler_param_t parameters = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = id,
        .cb = handler,
        .arg = channel,
    };
    ucs_status_t status = ucp_worker_set_am_recv_handler(channel->worker, &parameters);
    return status == UCS_OK
               ? DMG_OK
               : dmg_error(DMG_ERR_INTERNAL, "setting a UCX message handler: %s", ucs_status_string(status));
}

static dmg_status say_hello(dmg_ucx_channel *channel, uint32_t node)
{
    dmg_ucx_client *client = channel->client;
    dmg_ucx_link *link = &channel->links[node];
    dmg_ucx_facts *facts = &client->facts[node];
    ucp_ep_params_t parameters = {
        .field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
        .sockaddr = {.addr = (const struct sockaddr *)&facts->address, .addrlen = facts->address_bytes},
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_endpoint_error, .arg = link},
    };
    ucs_status_t status = ucp_ep_create(channel->worker, &parameters, &link->endpoint);
    if (status != UCS_OK) {
        link->endpoint = NULL;
        link->broken = "refuses connections";
        return DMG_OK;
    }
    dmg_ucx_frame *frame = dmg_ucx_frame_take(&channel->frames);
    if (frame == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening a channel: out of memory");
    }
    dmg_ucx_hello hello = {.version = DMG_UCX_VERSION, .node = node, .client = dmg_client_id(client->client)};
    memcpy(hello.token, client->token, sizeof(hello.token));
    dmg_process self;
    if (dmg_process_identify((int)getpid(), &self) == DMG_OK) {
        hello.pid = (uint64_t)self.pid;
        hello.start_time = self.start_time;
        dmg_process_boot_id(hello.boot_id);
    }
    memcpy(frame->payload, &hello, sizeof(hello));
    frame->header.count = 1;
    frame->header.bytes = sizeof(hello);
    dmg_ucx_link_send(link, DMG_UCX_HELLO, frame);
    return DMG_OK;
}

/** Wait until every server has answered the hello, or will not. */
static void await_welcomes(dmg_ucx_channel *channel)
{
    dmg_watch watch;
    dmg_watch_start(&watch, channel->client->peer_timeout_ns, dmg_now_ns());
    uint32_t idle = 0;
    for (;;) {
        bool is_waiting = false;
        for (uint32_t i = 0; i < channel->node_count; i++) {
            const dmg_ucx_link *link = &channel->links[i];
            is_waiting |= !link->is_failed && !link->is_welcomed && link->refused == DMG_OK && link->broken == NULL;
        }
        if (!is_waiting || dmg_watch_wait_is_over(&watch, dmg_now_ns())) {
            return;
        }
        if (ucp_worker_progress(channel->worker) != 0) {
            idle = 0;
        } else if (++idle > 100) {
            dmg_ucx_channel_sleep(channel, 5000000);
        }
    }
}

static dmg_status channel_create(dmg_ucx_client *client, dmg_ucx_channel **created)
{
    dmg_ucx_channel *channel = calloc(1, sizeof(*channel));
    if (channel == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening a channel: out of memory");
    }
    *created = channel;
    channel->client = client;
    channel->node_count = client->node_count;
    channel->event = channel->data_event = -1;
    channel->links = calloc(client->node_count, sizeof(*channel->links));
    channel->operations = calloc(DMG_UCX_OPERATIONS_MAX, sizeof(*channel->operations));
    if (channel->links == NULL || channel->operations == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening a channel: out of memory");
    }
    for (uint32_t i = 0; i < client->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        link->channel = channel;
        link->queue.first = link->unflushed.first = link->flushing.first = DMG_UCX_NO_SLOT;
    }
    for (uint32_t i = 0; i < DMG_UCX_OPERATIONS_MAX; i++) {
        channel->operations[i].next = i + 1 < DMG_UCX_OPERATIONS_MAX ? i + 1 : DMG_UCX_NO_SLOT;
    }
    dmg_status status = dmg_ucx_worker(client->message_context, &channel->worker);
    if (status == DMG_OK) {
        status = set_handler(channel, DMG_UCX_WELCOME, on_welcome);
    }
    if (status == DMG_OK) {
        status = set_handler(channel, DMG_UCX_ANSWERS, dmg_ucx_on_answers);
    }
    if (status == DMG_OK) {
        status = set_handler(channel, DMG_UCX_FAREWELL, on_farewell);
    }
    if (status == DMG_OK && ucp_worker_get_efd(channel->worker, &channel->event) != UCS_OK) {
        status = dmg_error(DMG_ERR_UNSUPPORTED, "messages=%s: this UCX transport cannot wake a sleeping thread",
                           client->settings.messages);
    }
    return status;
}

/** Connect to every node. Those that do not welcome us keep is_welcomed false. */
static dmg_status connect_messages(dmg_ucx_channel *channel)
{
    for (uint32_t i = 0; i < channel->node_count; i++) {
        dmg_status status = dmg_client_node_status(channel->client->client, (uint16_t)i);
        if (status == DMG_OK) {
            status = say_hello(channel, i);
        }
        if (status != DMG_OK) {
            return status;
        }
    }
    await_welcomes(channel);
    return DMG_OK;
}

static void channel_destroy(dmg_ucx_channel *channel)
{
    for (uint32_t i = 0; channel->links != NULL && i < channel->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        if (link->endpoint != NULL) {
            dmg_ucx_close_now(channel->worker, link->endpoint, UCP_EP_CLOSE_FLAG_FORCE, CLOSE_NS);
        }
        if (link->close_request != NULL) {
            uint64_t end_ns = dmg_now_ns() + CLOSE_NS;
            dmg_backoff backoff = {0};
            while (ucp_request_check_status(link->close_request) == UCS_INPROGRESS && dmg_now_ns() < end_ns) {
                if (ucp_worker_progress(channel->worker) == 0) {
                    dmg_backoff_wait(&backoff);
                }
            }
            ucp_request_free(link->close_request);
        }
        if (link->key != NULL) {
            ucp_rkey_destroy(link->key);
        }
        if (link->data_endpoint != NULL) {
            bool is_nic = channel->client->data == DMG_UCX_DATA_NIC;
            dmg_ucx_close_now(channel->data_worker, link->data_endpoint, is_nic ? UCP_EP_CLOSE_FLAG_FORCE : 0,
                              CLOSE_NS);
        }
    }
    if (channel->worker != NULL) {
        ucp_worker_destroy(channel->worker);
    }
    if (channel->data_worker != NULL && !channel->has_stuck_lane) {
        ucp_worker_destroy(channel->data_worker);
    }
    dmg_ucx_frames_clear(&channel->frames);
    free(channel->links);
    free(channel->operations);
    free(channel);
}

/** Tell the servers that this is a parting and no death, and wait a little for their farewells. */
static void say_goodbye(dmg_ucx_channel *channel)
{
    for (uint32_t i = 0; i < channel->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        bool is_open = link->is_welcomed && !link->is_failed && link->broken == NULL;
        dmg_ucx_frame *frame = is_open ? dmg_ucx_frame_take(&channel->frames) : NULL;
        link->has_farewell = frame == NULL;
        if (frame != NULL) {
            dmg_ucx_link_send(link, DMG_UCX_GOODBYE, frame);
        }
    }
    uint64_t end_ns = dmg_now_ns() + FAREWELL_NS;
    uint32_t idle = 0;
    for (;;) {
        bool is_waiting = false;
        for (uint32_t i = 0; i < channel->node_count; i++) {
            is_waiting |= !channel->links[i].has_farewell && channel->links[i].broken == NULL;
        }
        if (!is_waiting || dmg_now_ns() >= end_ns) {
            return;
        }
        if (ucp_worker_progress(channel->worker) != 0) {
            idle = 0;
        } else if (++idle > 100) {
            dmg_ucx_channel_sleep(channel, 5000000);
        }
    }
}

void dmg_ucx_channel_close(void *implementation)
{
    dmg_ucx_channel *channel = implementation;
    for (uint32_t i = 0; i < channel->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        if (link->one_sided != 0 && link->data_endpoint != NULL) {
            /* UCX may write into buffers of the caller until it has cancelled these. */
            dmg_ucx_close_now(channel->data_worker, link->data_endpoint, UCP_EP_CLOSE_FLAG_FORCE, CLOSE_NS);
            link->data_endpoint = NULL;
        }
    }
    dmg_ucx_end_all(channel, -1, DMG_ERR_CANCELLED);
    say_goodbye(channel);
    channel_destroy(channel);
}

dmg_status dmg_ucx_channel_open(void *client_implementation, dmg_channel *owner, void **implementation)
{
    (void)owner;
    dmg_ucx_client *client = client_implementation;
    dmg_ucx_channel *channel = atomic_exchange(&client->first_channel, NULL);
    if (channel != NULL) {
        *implementation = channel;
        return DMG_OK;
    }
    dmg_status status = channel_create(client, &channel);
    if (status == DMG_OK) {
        status = connect_messages(channel);
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
            dmg_ucx_channel_close(channel);
        }
        return status;
    }
    *implementation = channel;
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
                             "memory node %u's address \"%s\" is not of the transport ucx: expected "
                             "ucx:HOST:PORT, as the memory node printed it",
                             i, text);
        }
        snprintf(facts->address_text, sizeof(facts->address_text), "%s", text);
        dmg_status status = dmg_ucx_resolve(text + 4, 0, &facts->address, &facts->address_bytes);
        if (status != DMG_OK) {
            return dmg_error_prefix(status, "memory node %u", i);
        }
        in_port_t port = facts->address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&facts->address)->sin6_port
                                                              : ((struct sockaddr_in *)&facts->address)->sin_port;
        if (port == 0) {
            return dmg_error(DMG_ERR_ARGUMENT, "memory node %u's address \"%s\" has no port: expected ucx:HOST:PORT", i,
                             text);
        }
    }
    return DMG_OK;
}

static dmg_status open_message_context(dmg_ucx_client *client)
{
    char interface[96] = "";
    bool is_local = true;
    for (uint32_t i = 0; i < client->node_count; i++) {
        is_local &= dmg_ucx_is_loopback(&client->facts[i].address);
    }
    if (is_local) {
        dmg_ucx_interface_of(&client->facts[0].address, interface, sizeof(interface));
    }
    return dmg_ucx_message_context(&client->settings, interface, client->facts[0].address.ss_family,
                                   &client->message_context);
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
    dmg_status status = dmg_ucx_data_context(settings, offered, kind, &client->data_context);
    uint32_t count = 0;
    for (uint32_t i = 0; status == DMG_OK && i < client->node_count; i++) {
        if (strcmp(client->facts[i].data, offered) != 0 || client->facts[i].lane != kind) {
            continue;
        }
        status = dmg_ucx_lane_open(channel, i);
        if (status == DMG_OK && !dmg_ucx_lane_is_real(channel->links[i].data_endpoint)) {
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

static void describe_choice(const dmg_ucx_client *client, const char *data, dmg_capabilities *capabilities)
{
    bool is_one_sided = true;
    for (uint32_t i = 0; i < client->node_count; i++) {
        is_one_sided &= client->facts[i].is_one_sided;
    }
    capabilities->flags = DMG_CAPABILITY_MN_COMPUTE | (is_one_sided ? DMG_CAPABILITY_ONE_SIDED : 0u);
    capabilities->atomics = client->has_one_sided_atomics ? DMG_ATOMICS_CALLER_CPU : DMG_ATOMICS_MEMORY_NODE;
    snprintf(capabilities->chosen, sizeof(capabilities->chosen), "messages over %.50s; %.180s",
             client->settings.messages, data);
}

dmg_status dmg_ucx_client_open(dmg_client *owner, const dmg_client_options *options,
                               const dmg_transport_parameters *parameters, dmg_node *nodes,
                               dmg_capabilities *capabilities, void **implementation)
{
    dmg_ucx_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening a client: out of memory");
    }
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
    if (status == DMG_OK) {
        status = open_message_context(client);
    }
    if (status == DMG_OK) {
        status = channel_create(client, &channel);
    }
    if (status == DMG_OK) {
        status = connect_messages(channel);
    }
    if (status == DMG_OK) {
        status = check_welcomes(client, channel);
    }
    if (status == DMG_OK) {
        status = choose_data(client, channel, data, sizeof(data));
    }
    if (status != DMG_OK) {
        if (channel != NULL && channel->links != NULL && channel->operations != NULL) {
            dmg_ucx_channel_close(channel);
        } else if (channel != NULL) {
            channel_destroy(channel);
        }
        dmg_ucx_client_close(client);
        return status;
    }
    for (uint32_t i = 0; i < client->node_count; i++) {
        nodes[i].segment_bytes = client->facts[i].segment_bytes;
        nodes[i].pointer = NULL;
    }
    describe_choice(client, data, capabilities);
    atomic_store(&client->first_channel, channel);
    *implementation = client;
    return DMG_OK;
}

void dmg_ucx_client_close(void *implementation)
{
    dmg_ucx_client *client = implementation;
    dmg_ucx_channel *first = atomic_exchange(&client->first_channel, NULL);
    if (first != NULL) {
        dmg_ucx_channel_close(first);
    }
    if (client->data_context != NULL && !atomic_load(&client->has_stuck_lane)) {
        dmg_ucx_close_context(client->data_context);
    }
    if (client->message_context != NULL) {
        dmg_ucx_close_context(client->message_context);
    }
    for (uint32_t i = 0; client->facts != NULL && i < client->node_count; i++) {
        free(client->facts[i].data_address);
        free(client->facts[i].data_key);
    }
    free(client->facts);
    free(client);
}
