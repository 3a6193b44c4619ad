/**
 * @file connect.c
 * A channel's connections to its servers: streams, hellos and welcomes, goodbyes and farewells.
 */
#include "core/base/backoff.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/ucx/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** How long an orderly close waits for the servers' farewells, and for UCX to let go of its endpoints. */
#define FAREWELL_NS UINT64_C(200000000)
#define CLOSE_NS    UINT64_C(500000000)
/** Looks without anything before a thread that waits for a welcome or a farewell sleeps. */
#define SPIN_LOOKS 20
#define SLEEP_NS   UINT64_C(5000000)

/* ---- what arrives ---- */

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

/** Take what a good welcome tells. */
static const char *accept_welcome(dmg_ucx_link *link, const dmg_ucx_welcome *welcome, const uint8_t *rest)
{
    dmg_ucx_channel *channel = link->channel;
    if ((welcome->reach.address_bytes != 0) != (channel->hub != NULL)) {
        return "sent a welcome that is not one of ours";
    }
    const uint8_t *address = rest + welcome->address_bytes + welcome->key_bytes;
    if (channel->hub != NULL && dmg_ucx_carrier_join(&link->carrier, &welcome->reach, address) != DMG_OK) {
        return "cannot be reached by UCX's messages";
    }
    return take_facts(&channel->client->facts[link->node], welcome, rest);
}

static void take_welcome(dmg_ucx_link *link, const dmg_ucx_header *header, const uint8_t *payload)
{
    dmg_ucx_welcome welcome;
    if (link->is_welcomed || link->refused != DMG_OK || header->bytes < sizeof(welcome)) {
        link->broken = "sent a welcome that is not one of ours";
        return;
    }
    memcpy(&welcome, payload, sizeof(welcome));
    const uint8_t *rest = payload + sizeof(welcome);
    uint64_t told =
        (uint64_t)welcome.address_bytes + welcome.key_bytes + welcome.sentence_bytes + welcome.reach.address_bytes;
    if (header->bytes - sizeof(welcome) != told || welcome.version != DMG_UCX_VERSION ||
        welcome.status >= DMG_STATUS_COUNT) {
        link->refused = DMG_ERR_PROTOCOL;
        snprintf(link->sentence, sizeof(link->sentence), "it is not a memory node of this version of dmgraph");
    } else if (welcome.status != DMG_OK) {
        link->refused = (dmg_status)welcome.status;
        snprintf(link->sentence, sizeof(link->sentence), "%.*s", (int)(told < 150 ? told : 150), (const char *)rest);
    } else if (welcome.node != link->node) {
        link->refused = DMG_ERR_PROTOCOL;
        snprintf(link->sentence, sizeof(link->sentence),
                 "it is memory node %u of its pool: give the addresses in the order of their ids", welcome.node);
    } else {
        link->broken = accept_welcome(link, &welcome, rest);
        link->is_welcomed = link->broken == NULL;
    }
}

static void on_frame(void *owner, const dmg_ucx_header *header, const uint8_t *payload)
{
    dmg_ucx_link *link = owner;
    if (link->is_failed || link->broken != NULL) {
        return;
    }
    switch (header->kind) {
    case DMG_UCX_ANSWERS:
        dmg_ucx_take_answers(link, header, payload);
        break;
    case DMG_UCX_WELCOME:
        take_welcome(link, header, payload);
        break;
    case DMG_UCX_FAREWELL:
        link->has_farewell = true;
        if (header->bytes != 0) { /* not asked for: this client was given up */
            dmg_client_refused(link->channel->client->client, link->node, payload, header->bytes);
        }
        break;
    default:
        link->broken = "sent a frame that is not one of ours";
    }
}

static void on_broken(void *owner, const char *why)
{
    dmg_ucx_link *link = owner;
    if (link->broken == NULL) {
        link->broken = why;
    }
}

static const dmg_ucx_carrier_calls carrier_calls = {.on_frame = on_frame, .on_broken = on_broken};

/* ---- hello ---- */

static dmg_status say_hello(dmg_ucx_channel *channel, uint32_t node)
{
    dmg_ucx_client *client = channel->client;
    dmg_ucx_link *link = &channel->links[node];
    dmg_ucx_frame *frame = dmg_ucx_frame_take(&channel->frames);
    if (frame == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "opening a channel: out of memory");
    }
    dmg_ucx_hello hello = {.version = DMG_UCX_VERSION, .client = dmg_client_id(client->client)};
    memcpy(hello.messages, client->settings.messages, sizeof(hello.messages));
    dmg_process self;
    if (dmg_process_identify((int)getpid(), &self) == DMG_OK) {
        hello.pid = (uint64_t)self.pid;
        hello.start_time = self.start_time;
        dmg_process_boot_id(hello.boot_id);
    }
    if (channel->hub != NULL) {
        const void *address;
        dmg_status status = dmg_ucx_carrier_offer(&link->carrier, channel->hub, node, &hello.reach, &address);
        if (status != DMG_OK) {
            dmg_ucx_frame_give(&channel->frames, frame);
            return status;
        }
        memcpy(frame->payload + sizeof(hello), address, hello.reach.address_bytes);
    }
    memcpy(frame->payload, &hello, sizeof(hello));
    frame->header.count = 1;
    frame->header.bytes = (uint32_t)sizeof(hello) + hello.reach.address_bytes;
    dmg_ucx_carrier_send(&link->carrier, DMG_UCX_HELLO, frame);
    return DMG_OK;
}

/** Open the stream to a node. DMG_ERR_PEER when nobody is there. */
static dmg_status connect_stream(dmg_ucx_channel *channel, uint32_t node, dmg_watch *watch)
{
    const dmg_ucx_client *client = channel->client;
    const dmg_ucx_facts *facts = &client->facts[node];
    dmg_ucx_link *link = &channel->links[node];
    const dmg_stream_options options = {
        .token = client->token, .wanted = client->settings.protection, .record_bytes_max = DMG_UCX_RECORD_BYTES_MAX};
    dmg_stream *stream;
    dmg_status status = dmg_stream_connect(&options, &facts->address, facts->address_text, watch, &stream);
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "memory node %u", node);
    }
    dmg_ucx_carrier_begin(&link->carrier, stream, &channel->frames, &carrier_calls, link);
    return DMG_OK;
}

/** Take what has come; after a few times without anything, sleep a little. */
static void look_or_sleep(dmg_ucx_channel *channel, uint32_t *idle)
{
    if (dmg_ucx_channel_look(channel, true) != 0) {
        *idle = 0;
    } else if (++*idle > SPIN_LOOKS) {
        dmg_ucx_channel_sleep(&channel->base, SLEEP_NS);
    }
}

/** Wait until every server has answered the hello, or will not. */
static void await_welcomes(dmg_ucx_channel *channel, dmg_watch *watch)
{
    uint32_t idle = 0;
    for (;;) {
        bool is_waiting = false;
        for (uint32_t i = 0; i < channel->node_count; i++) {
            const dmg_ucx_link *link = &channel->links[i];
            is_waiting |= !link->is_failed && !link->is_welcomed && link->refused == DMG_OK && link->broken == NULL;
        }
        if (!is_waiting || dmg_watch_wait_is_over(watch, dmg_now_ns())) {
            return;
        }
        look_or_sleep(channel, &idle);
    }
}

dmg_status dmg_ucx_connections_open(dmg_ucx_channel *channel)
{
    dmg_watch watch;
    dmg_watch_start(&watch, channel->client->peer_timeout_ns, dmg_now_ns());
    for (uint32_t i = 0; i < channel->node_count; i++) {
        dmg_status status = dmg_client_node_status(channel->client->client, (uint16_t)i);
        if (status == DMG_OK) {
            status = connect_stream(channel, i, &watch);
        }
        if (status == DMG_OK) {
            status = say_hello(channel, i);
        }
        if (status != DMG_OK) {
            channel->links[i].is_unreached = status == DMG_ERR_PEER;
            return status;
        }
    }
    await_welcomes(channel, &watch);
    return DMG_OK;
}

void dmg_ucx_connections_cut(dmg_ucx_channel *channel)
{
    uint64_t end_ns = dmg_now_ns() + CLOSE_NS;
    dmg_backoff backoff = {0};
    for (;;) {
        bool are_closed = true;
        for (uint32_t i = 0; i < channel->node_count; i++) {
            are_closed &= dmg_ucx_carrier_close(&channel->links[i].carrier);
        }
        if (are_closed || dmg_now_ns() >= end_ns) {
            return;
        }
        if (channel->hub == NULL || dmg_ucx_hub_progress(channel->hub) == 0) {
            dmg_backoff_wait(&backoff);
        }
    }
}

void dmg_ucx_connections_say_goodbye(dmg_ucx_channel *channel)
{
    for (uint32_t i = 0; i < channel->node_count; i++) {
        dmg_ucx_link *link = &channel->links[i];
        bool is_open = link->is_welcomed && !link->is_failed && link->broken == NULL;
        dmg_ucx_frame *frame = is_open ? dmg_ucx_frame_take(&channel->frames) : NULL;
        link->has_farewell = frame == NULL;
        if (frame != NULL) {
            dmg_ucx_carrier_send(&link->carrier, DMG_UCX_GOODBYE, frame);
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
        look_or_sleep(channel, &idle);
    }
}
