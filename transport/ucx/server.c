/**
 * @file server.c
 * The memory node's end: its listener, UCX's workers, and the parts of the serving loop, all driven by one thread.
 */
#include "transport/ucx/server.h"
#include "core/base/error.h"
#include "core/base/huge_pages.h"
#include "core/base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/** Rounds of progress before the serving thread looks up. */
#define ROUNDS_MAX 64

/* ---- the serving loop's parts ---- */

/** Greetings, when the listener has something to do: it has a timer for those who say nothing. */
static void take_in(dmg_ucx_server *server)
{
    if (server->has_guests) {
        server->has_guests = false;
        server->handled += dmg_listener_progress(server->listener, dmg_server_watch(server->server)->now_ns,
                                                 dmg_ucx_on_stream, server);
    }
}

uint32_t dmg_ucx_server_progress(dmg_backend_server *base)
{
    dmg_ucx_server *server = (dmg_ucx_server *)base;
    server->handled = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        uint32_t count = dmg_ucx_events_look(server);
        if (server->hub != NULL) {
            count += dmg_ucx_hub_progress(server->hub);
        }
        dmg_ucx_answers_flush(server);
        if (count == 0) {
            break;
        }
    }
    take_in(server);
    dmg_ucx_connections_sweep(server);
    return server->handled;
}

void dmg_ucx_server_sleep(dmg_backend_server *base, uint64_t timeout_ns)
{
    dmg_ucx_server *server = (dmg_ucx_server *)base;
    dmg_ucx_answers_flush(server);
    if (server->has_broken || (server->hub != NULL && !dmg_ucx_hub_arm(server->hub))) {
        return;
    }
    /* Endpoints that are being closed, and connections without a hello, are looked after now and then. */
    if (server->closing_count != 0 && timeout_ns > 1000000) {
        timeout_ns = 1000000;
    } else if (server->strangers != 0 && timeout_ns > server->hello_timeout_ns / 8) {
        timeout_ns = server->hello_timeout_ns / 8;
    }
    dmg_ucx_events_wait(server, timeout_ns);
}

void dmg_ucx_server_wake(dmg_backend_server *base)
{
    dmg_ucx_server *server = (dmg_ucx_server *)base;
    uint64_t one = 1;
    ssize_t ignored = write(server->wake_event, &one, sizeof(one));
    (void)ignored;
}

const char *dmg_ucx_server_address(dmg_backend_server *base)
{
    return ((dmg_ucx_server *)base)->address;
}

void *dmg_ucx_server_segment(dmg_backend_server *base, uint64_t *bytes)
{
    dmg_ucx_server *server = (dmg_ucx_server *)base;
    *bytes = server->segment.bytes;
    return server->segment.start;
}

bool dmg_ucx_server_give_back(dmg_backend_server *base, uint64_t offset, uint64_t bytes)
{
    const dmg_ucx_server *server = (const dmg_ucx_server *)base;
    return dmg_ucx_segment_give_back(&server->segment, server->data_transports, offset, bytes);
}

/** UCX's posix makes files in /dev/shm. */
bool dmg_ucx_server_is_in_files(dmg_backend_server *base)
{
    return strcmp(((const dmg_ucx_server *)base)->data_transports, "posix") == 0;
}

/* ---- creation ---- */

static bool has_free_hugepages(uint64_t bytes)
{
    dmg_huge_pages pages;
    return dmg_huge_pages_read(DMG_UCX_SEGMENT_ALIGNMENT, -1, &pages) &&
           bytes / DMG_UCX_SEGMENT_ALIGNMENT + 2 <= pages.available;
}

/** Decide what carries one-sided operations; "" when the server does them by message. */
static const char *choose_data(const dmg_ucx_settings *settings, const dmg_segment_options *segment, bool is_local)
{
    if (settings->data_transports[0] != '\0') {
        return settings->data_transports;
    }
    if (settings->data == DMG_UCX_DATA_AUTO && is_local) {
        /* Of UCX's two kinds of shared memory one has huge pages. */
        bool wants_sysv =
            segment->page_size != DMG_PAGE_DEFAULT && (!segment->allow_fallback || has_free_hugepages(segment->bytes));
        return wants_sysv ? "sysv" : "posix";
    }
    return settings->data == DMG_UCX_DATA_AUTO && dmg_ucx_has_rdma_device() ? "rc_verbs" : "";
}

static void close_data(dmg_ucx_server *server)
{
    if (server->data_key != NULL) {
        ucp_rkey_buffer_release(server->data_key);
    }
    if (server->data_worker != NULL) {
        if (server->data_address != NULL) {
            ucp_worker_release_address(server->data_worker, server->data_address);
        }
        ucp_worker_destroy(server->data_worker);
    }
    dmg_ucx_card_forget(&server->card_memory);
    dmg_ucx_segment_destroy(&server->segment);
    if (server->data_context != NULL) {
        dmg_ucx_close_context(server->data_context);
    }
    dmg_ucx_card_close(server->card);
}

/** A segment that a card reaches. */
static dmg_status create_on_card(dmg_ucx_server *server, const dmg_ucx_settings *settings,
                                 const dmg_server_options *options)
{
    server->lane = DMG_UCX_LANE_BY_REQUEST;
    dmg_status status = dmg_ucx_card_open(settings, server->data_transports, &server->card);
    if (status == DMG_OK) {
        status = dmg_ucx_segment_create(&options->segment, NULL, server->data_transports, &server->segment);
    }
    return status == DMG_OK
               ? dmg_ucx_card_register(server->card, server->segment.start, server->segment.bytes, &server->card_memory)
               : status;
}

/** A segment in shared memory of UCX's, and the worker whose address opens lanes to it. */
static dmg_status create_in_shared_memory(dmg_ucx_server *server, const dmg_server_options *options)
{
    server->lane = DMG_UCX_LANE_BY_WORKER;
    dmg_status status = dmg_ucx_data_context(server->data_transports, &server->data_context);
    if (status == DMG_OK) {
        status =
            dmg_ucx_segment_create(&options->segment, server->data_context, server->data_transports, &server->segment);
    }
    if (status == DMG_OK) {
        status = dmg_ucx_data_worker(server->data_context, server->data_transports, &server->data_worker);
    }
    if (status != DMG_OK) {
        return status;
    }
    ucs_status_t code =
        ucp_rkey_pack(server->data_context, server->segment.handle, &server->data_key, &server->data_key_bytes);
    if (code == UCS_OK) {
        code = ucp_worker_get_address(server->data_worker, &server->data_address, &server->data_address_bytes);
    }
    if (code != UCS_OK) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "offering the segment through UCX's %s: %s", server->data_transports,
                         ucs_status_string(code));
    }
    /* The address of a worker for messages goes into the same frame. */
    if (server->data_address_bytes + server->data_key_bytes + sizeof(dmg_ucx_welcome) > DMG_UCX_FRAME_BYTES / 4 * 3) {
        return dmg_error(DMG_ERR_LIMIT, "UCX's address of this memory node has %zu bytes", server->data_address_bytes);
    }
    return DMG_OK;
}

static dmg_status create_data(dmg_ucx_server *server, const dmg_ucx_settings *settings,
                              const dmg_server_options *options)
{
    switch (dmg_ucx_data_kind(server->data_transports)) {
    case DMG_UCX_DATA_NIC:
        return create_on_card(server, settings, options);
    case DMG_UCX_DATA_SHARED_MEMORY:
        return create_in_shared_memory(server, options);
    default:
        return dmg_ucx_segment_create(&options->segment, NULL, "", &server->segment);
    }
}

/** Where the memory node is going to listen. */
typedef struct place {
    char text[DMG_ADDRESS_STRING_BYTES]; /**< "" for a fresh name */
    dmg_stream_address address;          /**< zeros for a fresh name */
    bool is_local;
    char interface[96]; /**< where UCX's tcp is to stay; "": anywhere */
} place;

static dmg_status choose_place(const dmg_server_options *options, const dmg_ucx_settings *settings, place *chosen)
{
    *chosen = (place){.is_local = true};
    dmg_status status = dmg_ucx_bind_text(settings, options->bind, chosen->text, sizeof(chosen->text));
    if (status == DMG_OK && chosen->text[0] != '\0') {
        status = dmg_stream_address_parse("ucx", chosen->text, &chosen->address);
        chosen->is_local = status == DMG_OK && dmg_stream_address_is_local(&chosen->address);
    }
    return status == DMG_OK
               ? dmg_ucx_confine_tcp(settings, &chosen->address, chosen->text[0] != '\0' ? chosen->text : "this host",
                                     chosen->is_local, chosen->interface, sizeof(chosen->interface))
               : status;
}

static dmg_status create_hub(dmg_ucx_server *server, const dmg_ucx_settings *settings, const place *chosen)
{
    dmg_status status;
    if (settings->are_messages_card) {
        status = dmg_ucx_card_open(settings, settings->messages, &server->message_card);
        if (status == DMG_OK) {
            status = dmg_ucx_hub_open_on_card(server->message_card, &server->hub);
        }
    } else {
        status = dmg_ucx_message_context(settings, chosen->interface, chosen->address.name.any.sa_family,
                                         &server->message_context);
        if (status == DMG_OK) {
            status = dmg_ucx_hub_open(server->message_context, settings->messages, &server->hub);
        }
    }
    return status == DMG_OK ? dmg_ucx_events_add(server, dmg_ucx_hub_descriptor(server->hub), DMG_UCX_EVENT_UCX, 0)
                            : status;
}

static dmg_status create_messages(dmg_ucx_server *server, const dmg_ucx_settings *settings, const place *chosen)
{
    snprintf(server->messages, sizeof(server->messages), "%s", settings->messages);
    if (settings->are_messages_ucx) {
        dmg_status status = create_hub(server, settings, chosen);
        if (status != DMG_OK) {
            return status;
        }
    }
    const dmg_listener_options options = {
        .backend = "ucx",
        .bind = chosen->text[0] != '\0' ? chosen->text : NULL,
        .stream = {.token = server->token,
                   .wanted = settings->protection,
                   .record_bytes_max = DMG_UCX_RECORD_BYTES_MAX},
        .greeting_timeout_ns = server->hello_timeout_ns,
    };
    dmg_status status = dmg_listener_open(&options, &server->listener);
    if (status == DMG_OK) {
        status =
            dmg_ucx_public_address(dmg_listener_address(server->listener), server->address, sizeof(server->address));
    }
    return status == DMG_OK
               ? dmg_ucx_events_add(server, dmg_listener_descriptor(server->listener), DMG_UCX_EVENT_LISTENER, 0)
               : status;
}

dmg_status dmg_ucx_segment_demand(const dmg_server_options *options, const dmg_transport_parameters *parameters,
                                  dmg_segment_demand *demand)
{
    dmg_ucx_settings settings;
    place chosen;
    dmg_status status = dmg_ucx_settings_parse(parameters, DMG_UCX_SIDE_MEMORY, &settings);
    if (status == DMG_OK) {
        status = choose_place(options, &settings, &chosen);
    }
    return status == DMG_OK ? dmg_ucx_demand_of(&options->segment,
                                                choose_data(&settings, &options->segment, chosen.is_local), demand)
                            : status;
}

dmg_placement dmg_ucx_server_placement(dmg_backend_server *base)
{
    return ((dmg_ucx_server *)base)->segment.placement;
}

bool dmg_ucx_server_is_reachable(dmg_backend_server *base)
{
    return ((dmg_ucx_server *)base)->data_transports[0] != '\0';
}

dmg_status dmg_ucx_server_create(dmg_server *owner, const dmg_server_options *options,
                                 const dmg_transport_parameters *parameters, dmg_backend_server **made)
{
    dmg_ucx_settings settings;
    dmg_status status = dmg_ucx_settings_parse(parameters, DMG_UCX_SIDE_MEMORY, &settings);
    if (status != DMG_OK) {
        return status;
    }
    place chosen;
    status = choose_place(options, &settings, &chosen);
    if (status != DMG_OK) {
        return status;
    }
    dmg_ucx_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "creating a memory node: out of memory");
    }
    server->base.operations = &dmg_ucx_server_operations;
    server->server = owner;
    server->counters = dmg_server_mutable_counters(owner);
    server->node = options->node;
    memcpy(server->token, options->token, sizeof(server->token));
    server->hello_timeout_ns = options->peer_timeout_ns != 0 ? options->peer_timeout_ns : DMG_PEER_TIMEOUT_DEFAULT_NS;
    server->events = -1;
    server->free_call = DMG_UCX_NO_CALL;
    server->wake_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wake_event < 0 || getrandom(&server->epoch, sizeof(server->epoch), 0) != sizeof(server->epoch)) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "creating a memory node");
    }
    if (status == DMG_OK) {
        status = dmg_ucx_events_open(server);
    }
    if (status == DMG_OK) {
        snprintf(server->data_transports, sizeof(server->data_transports), "%.31s",
                 choose_data(&settings, &options->segment, chosen.is_local));
        status = create_data(server, &settings, options);
    }
    if (status == DMG_OK) {
        status = create_messages(server, &settings, &chosen);
    }
    if (status != DMG_OK) {
        dmg_ucx_server_destroy(&server->base);
        return status;
    }
    *made = &server->base;
    return DMG_OK;
}

void dmg_ucx_server_destroy(dmg_backend_server *base)
{
    dmg_ucx_server *server = (dmg_ucx_server *)base;
    dmg_listener_close(server->listener);
    dmg_ucx_connections_close_all(server);
    dmg_ucx_hub_close(server->hub);
    /* What UCX did not give back in time is free now that its worker is gone. */
    for (uint32_t i = 0; i < server->place_count; i++) {
        free(server->places[i].connection);
    }
    close_data(server);
    if (server->message_context != NULL) {
        dmg_ucx_close_context(server->message_context);
    }
    dmg_ucx_card_close(server->message_card);
    if (server->events >= 0) {
        close(server->events);
    }
    if (server->wake_event >= 0) {
        close(server->wake_event);
    }
    dmg_ucx_frames_clear(&server->frames);
    free(server->places);
    free(server->calls);
    free(server);
}
