/**
 * @file server.c
 * The memory node's end: a listener, one worker that one thread drives, and the parts of the serving loop.
 */
#include "transport/ucx/server.h"
#include "core/base/error.h"
#include "core/base/huge_pages.h"
#include "core/base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

/** Rounds of progress before the serving thread looks up. */
#define ROUNDS_MAX 64

/* ---- the serving loop's parts ---- */

uint32_t dmg_ucx_server_progress(void *implementation)
{
    dmg_ucx_server *server = implementation;
    server->handled = 0;
    for (int round = 0; round < ROUNDS_MAX; round++) {
        unsigned count = ucp_worker_progress(server->worker);
        if (server->data_event >= 0) {
            count += ucp_worker_progress(server->data_worker);
        }
        dmg_ucx_answers_flush(server);
        if (count == 0) {
            break;
        }
    }
    dmg_ucx_connections_sweep(server);
    dmg_ucx_lanes_sweep(server);
    return server->handled;
}

void dmg_ucx_server_sleep(void *implementation, uint64_t timeout_ns)
{
    dmg_ucx_server *server = implementation;
    dmg_ucx_answers_flush(server);
    if (server->has_broken || ucp_worker_arm(server->worker) != UCS_OK ||
        (server->data_event >= 0 && ucp_worker_arm(server->data_worker) != UCS_OK)) {
        return;
    }
    struct pollfd events[3] = {
        {.fd = server->wake_event, .events = POLLIN},
        {.fd = server->worker_event, .events = POLLIN},
        {.fd = server->data_event, .events = POLLIN},
    };
    /* Endpoints that are being closed, and connections without a hello, are looked after now and then. */
    if ((server->closing_count != 0 || server->has_broken_lane) && timeout_ns > 1000000) {
        timeout_ns = 1000000;
    } else if (server->strangers != 0 && timeout_ns > server->hello_timeout_ns / 8) {
        timeout_ns = server->hello_timeout_ns / 8;
    }
    uint64_t timeout_ms = (timeout_ns + 999999) / 1000000;
    if (poll(events, 3, timeout_ms > 60000 ? 60000 : (int)timeout_ms) > 0 && (events[0].revents & POLLIN)) {
        uint64_t count;
        ssize_t ignored = read(server->wake_event, &count, sizeof(count));
        (void)ignored;
    }
}

void dmg_ucx_server_wake(void *implementation)
{
    dmg_ucx_server *server = implementation;
    uint64_t one = 1;
    ssize_t ignored = write(server->wake_event, &one, sizeof(one));
    (void)ignored;
}

const char *dmg_ucx_server_address(void *implementation)
{
    return ((dmg_ucx_server *)implementation)->address;
}

void *dmg_ucx_server_segment(void *implementation, uint64_t *bytes)
{
    dmg_ucx_server *server = implementation;
    *bytes = server->segment.bytes;
    return server->segment.start;
}

bool dmg_ucx_server_give_back(void *implementation, uint64_t offset, uint64_t bytes)
{
    const dmg_ucx_server *server = implementation;
    return dmg_ucx_segment_give_back(&server->segment, server->data_transports, offset, bytes);
}

/* ---- creation ---- */

static bool has_free_hugepages(uint64_t bytes)
{
    dmg_huge_pages pages;
    return dmg_huge_pages_read(DMG_UCX_SEGMENT_ALIGNMENT, -1, &pages) &&
           bytes / DMG_UCX_SEGMENT_ALIGNMENT + 2 <= pages.available;
}

/** Decide what carries one-sided operations; "" when the server does them by message. */
static const char *choose_data(const dmg_ucx_settings *settings, const dmg_segment_options *segment, bool is_loopback)
{
    if (settings->data_transports[0] != '\0') {
        return settings->data_transports;
    }
    if (settings->data == DMG_UCX_DATA_AUTO && is_loopback) {
        /* Of UCX's two kinds of shared memory one has huge pages. */
        bool wants_sysv =
            segment->page_size != DMG_PAGE_DEFAULT && (!segment->allow_fallback || has_free_hugepages(segment->bytes));
        return wants_sysv ? "sysv" : "posix";
    }
    return settings->data == DMG_UCX_DATA_AUTO && dmg_ucx_has_rdma_device() ? "rc_verbs" : "";
}

/** Open the context of the one-sided lane, and its segment and worker in it. */
static dmg_status open_data(dmg_ucx_server *server, const dmg_ucx_settings *settings, const dmg_server_options *options)
{
    dmg_status status = dmg_ucx_data_context(settings, server->data_transports, server->lane, &server->data_context);
    if (status == DMG_OK) {
        status =
            dmg_ucx_segment_create(&options->segment, server->data_context, server->data_transports, &server->segment);
    }
    if (status == DMG_OK) {
        status = dmg_ucx_data_worker(server->data_context, server->data_transports, &server->data_worker);
    }
    return status;
}

static void close_data(dmg_ucx_server *server)
{
    if (server->data_worker != NULL) {
        dmg_ucx_lanes_close_all(server);
        if (server->data_address != NULL) {
            ucp_worker_release_address(server->data_worker, server->data_address);
        }
        ucp_worker_destroy(server->data_worker);
    }
    /* What UCX did not give back in time is free now that its worker is gone. */
    for (dmg_ucx_lane *lane = server->lanes; lane != NULL;) {
        dmg_ucx_lane *next = lane->next;
        free(lane);
        lane = next;
    }
    dmg_ucx_segment_destroy(&server->segment);
    if (server->data_context != NULL) {
        dmg_ucx_close_context(server->data_context);
    }
    server->lanes = NULL;
    server->data_worker = NULL;
    server->data_context = NULL;
    server->data_address = NULL;
}

/** A card's lanes begin at a listener, where its device has an address; else at the worker's address. */
static dmg_status open_card(dmg_ucx_server *server, const dmg_ucx_settings *settings, const dmg_server_options *options)
{
    server->lane = DMG_UCX_LANE_BY_LISTENER;
    dmg_status status = open_data(server, settings, options);
    if (status != DMG_OK || dmg_ucx_lanes_listen(server, settings)) {
        return status;
    }
    dmg_log(DMG_LOG_INFO, "lanes_by_worker", "node=%u why=\"%s\"", server->node, dmg_error_message());
    close_data(server);
    server->lane = DMG_UCX_LANE_BY_WORKER;
    return open_data(server, settings, options);
}

static dmg_status create_data(dmg_ucx_server *server, const dmg_ucx_settings *settings,
                              const dmg_server_options *options)
{
    if (server->data_transports[0] == '\0') {
        return dmg_ucx_segment_create(&options->segment, NULL, "", &server->segment);
    }
    bool is_nic = dmg_ucx_data_kind(server->data_transports) == DMG_UCX_DATA_NIC;
    dmg_status status = is_nic ? open_card(server, settings, options) : open_data(server, settings, options);
    if (status != DMG_OK) {
        return status;
    }
    ucs_status_t code =
        ucp_rkey_pack(server->data_context, server->segment.handle, &server->data_key, &server->data_key_bytes);
    server->data_address_bytes = strlen(server->lane_address);
    if (code == UCS_OK && server->lane == DMG_UCX_LANE_BY_WORKER) {
        code = ucp_worker_get_address(server->data_worker, &server->data_address, &server->data_address_bytes);
    }
    if (code == UCS_OK && is_nic) {
        code = ucp_worker_get_efd(server->data_worker, &server->data_event);
    }
    if (code != UCS_OK) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "offering the segment through UCX's %s: %s", server->data_transports,
                         ucs_status_string(code));
    }
    if (server->data_address_bytes + server->data_key_bytes > DMG_UCX_FRAME_BYTES - sizeof(dmg_ucx_welcome)) {
        return dmg_error(DMG_ERR_LIMIT, "UCX's address of this memory node has %zu bytes: name one device with device=",
                         server->data_address_bytes);
    }
    return DMG_OK;
}

static dmg_status set_handler(dmg_ucx_server *server, unsigned id, ucp_am_recv_callback_t handler)
{
    ucp_am_handler_param_t parameters = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = id,
        .cb = handler,
        .arg = server,
    };
    ucs_status_t status = ucp_worker_set_am_recv_handler(server->worker, &parameters);
    return status == UCS_OK
               ? DMG_OK
               : dmg_error(DMG_ERR_INTERNAL, "setting a UCX message handler: %s", ucs_status_string(status));
}

/** An address of this machine that others can connect to, for a server that listens on all of them. */
static void pick_address(struct sockaddr_storage *address)
{
    struct ifaddrs *interfaces;
    if (getifaddrs(&interfaces) != 0) {
        return;
    }
    for (struct ifaddrs *at = interfaces; at != NULL; at = at->ifa_next) {
        if (at->ifa_addr != NULL && at->ifa_addr->sa_family == address->ss_family && !(at->ifa_flags & IFF_LOOPBACK) &&
            (at->ifa_flags & IFF_UP)) {
            if (address->ss_family == AF_INET) {
                ((struct sockaddr_in *)address)->sin_addr = ((struct sockaddr_in *)(void *)at->ifa_addr)->sin_addr;
                break;
            }
            if (!IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)(void *)at->ifa_addr)->sin6_addr)) {
                ((struct sockaddr_in6 *)address)->sin6_addr = ((struct sockaddr_in6 *)(void *)at->ifa_addr)->sin6_addr;
                break;
            }
        }
    }
    freeifaddrs(interfaces);
}

static bool is_wildcard(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET ? ((const struct sockaddr_in *)address)->sin_addr.s_addr == INADDR_ANY
                                         : IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)address)->sin6_addr);
}

static dmg_status listen_at(dmg_ucx_server *server, const char *bind_text, const struct sockaddr_storage *address,
                            socklen_t address_bytes)
{
    ucp_listener_params_t parameters = {
        .field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
        .sockaddr = {.addr = (const struct sockaddr *)address, .addrlen = address_bytes},
        .conn_handler = {.cb = dmg_ucx_on_connection_request, .arg = server},
    };
    ucs_status_t status = ucp_listener_create(server->worker, &parameters, &server->listener);
    if (status != UCS_OK) {
        return dmg_error(DMG_ERR_IO, "listening on %s: %s: is the port taken, or the address another machine's?",
                         bind_text, ucs_status_string(status));
    }
    ucp_listener_attr_t attributes = {.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR};
    status = ucp_listener_query(server->listener, &attributes);
    if (status != UCS_OK) {
        return dmg_error(DMG_ERR_INTERNAL, "asking UCX for the listener's port: %s", ucs_status_string(status));
    }
    struct sockaddr_storage shown = *address;
    if (is_wildcard(address)) {
        pick_address(&shown);
    }
    in_port_t port = attributes.sockaddr.ss_family == AF_INET6
                         ? ((const struct sockaddr_in6 *)&attributes.sockaddr)->sin6_port
                         : ((const struct sockaddr_in *)&attributes.sockaddr)->sin_port;
    char text[DMG_ADDRESS_STRING_BYTES - 8];
    dmg_ucx_print_address(&shown, ntohs(port), text, sizeof(text));
    snprintf(server->address, sizeof(server->address), "ucx:%s", text);
    return DMG_OK;
}

static dmg_status create_messages(dmg_ucx_server *server, const dmg_ucx_settings *settings, const char *bind_text,
                                  const struct sockaddr_storage *address, socklen_t address_bytes)
{
    /* UCX's tcp listens on every device it may use: keep to the one that was asked for. */
    char interface[96];
    dmg_ucx_interface_of(address, interface, sizeof(interface));
    dmg_status status = dmg_ucx_message_context(settings, interface, address->ss_family, &server->message_context);
    if (status == DMG_OK) {
        status = dmg_ucx_worker(server->message_context, &server->worker);
    }
    /* UCX 1.13 looks handlers up in a table that ends with the largest id that has one; it neither checks a message's
       id against its end nor clears what lies between. Without handlers for all, one message of a stranger kills the
       memory node. */
    for (uint32_t id = UINT16_MAX + 1; status == DMG_OK && id > 0; id--) {
        status = set_handler(server, id - 1, dmg_ucx_on_unknown_message);
    }
    if (status == DMG_OK) {
        status = set_handler(server, DMG_UCX_HELLO, dmg_ucx_on_hello);
    }
    if (status == DMG_OK) {
        status = set_handler(server, DMG_UCX_REQUESTS, dmg_ucx_on_requests);
    }
    if (status == DMG_OK) {
        status = set_handler(server, DMG_UCX_GOODBYE, dmg_ucx_on_goodbye);
    }
    if (status != DMG_OK) {
        return status;
    }
    ucs_status_t code = ucp_worker_get_efd(server->worker, &server->worker_event);
    if (code != UCS_OK) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "messages=%s: this UCX transport cannot wake a sleeping server: %s",
                         settings->messages, ucs_status_string(code));
    }
    return listen_at(server, bind_text, address, address_bytes);
}

/** Where to listen: as told, else on loopback, or at the device's own address when all messages go over RDMA. */
static dmg_status choose_bind(const dmg_server_options *options, const dmg_ucx_settings *settings,
                              char bind_text[DMG_ADDRESS_STRING_BYTES])
{
    struct sockaddr_storage address = {0};
    socklen_t address_bytes;
    if (options->bind != NULL || settings->has_tcp_messages) {
        snprintf(bind_text, DMG_ADDRESS_STRING_BYTES, "%s", options->bind != NULL ? options->bind : "127.0.0.1");
        return DMG_OK;
    }
    if (!dmg_ucx_rdma_address(settings->rdma_devices, &address, &address_bytes)) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "messages=%s: connections over RDMA start from an IP address, and %s%s%s: give the device's "
                         "network interface one (`rdma link` names it), or use messages=tcp",
                         settings->messages, settings->rdma_devices[0] != '\0' ? "device=" : "no RDMA device has one",
                         settings->rdma_devices, settings->rdma_devices[0] != '\0' ? " has none" : "");
    }
    dmg_ucx_print_address(&address, 0, bind_text, DMG_ADDRESS_STRING_BYTES);
    return DMG_OK;
}

dmg_status dmg_ucx_segment_demand(const dmg_server_options *options, const dmg_transport_parameters *parameters,
                                  dmg_segment_demand *demand)
{
    dmg_ucx_settings settings;
    char bind_text[DMG_ADDRESS_STRING_BYTES];
    struct sockaddr_storage address;
    socklen_t address_bytes;
    dmg_status status = dmg_ucx_settings_parse(parameters, DMG_UCX_SIDE_MEMORY, &settings);
    if (status == DMG_OK) {
        status = choose_bind(options, &settings, bind_text);
    }
    if (status == DMG_OK) {
        status = dmg_ucx_resolve(bind_text, settings.port, &address, &address_bytes);
    }
    if (status != DMG_OK) {
        return status;
    }
    const char *chosen = choose_data(&settings, &options->segment, dmg_ucx_is_loopback(&address));
    return dmg_ucx_demand_of(&options->segment, chosen, demand);
}

dmg_placement dmg_ucx_server_placement(void *implementation)
{
    return ((dmg_ucx_server *)implementation)->segment.placement;
}

bool dmg_ucx_server_is_reachable(void *implementation)
{
    return ((dmg_ucx_server *)implementation)->data_transports[0] != '\0';
}

dmg_status dmg_ucx_server_create(dmg_server *owner, const dmg_server_options *options,
                                 const dmg_transport_parameters *parameters, void **implementation)
{
    dmg_ucx_settings settings;
    dmg_status status = dmg_ucx_settings_parse(parameters, DMG_UCX_SIDE_MEMORY, &settings);
    if (status != DMG_OK) {
        return status;
    }
    char bind_text[DMG_ADDRESS_STRING_BYTES];
    status = choose_bind(options, &settings, bind_text);
    if (status != DMG_OK) {
        return status;
    }
    struct sockaddr_storage address;
    socklen_t address_bytes;
    status = dmg_ucx_resolve(bind_text, settings.port, &address, &address_bytes);
    if (status == DMG_OK && settings.has_tcp_messages) {
        status = dmg_ucx_check_tcp_address(&address, bind_text);
    }
    if (status != DMG_OK) {
        return status;
    }
    dmg_ucx_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "creating a memory node: out of memory");
    }
    server->server = owner;
    server->counters = dmg_server_mutable_counters(owner);
    server->node = options->node;
    memcpy(server->token, options->token, sizeof(server->token));
    server->hello_timeout_ns = options->peer_timeout_ns != 0 ? options->peer_timeout_ns : DMG_PEER_TIMEOUT_DEFAULT_NS;
    server->data_event = -1;
    server->free_call = DMG_UCX_NO_CALL;
    server->wake_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->wake_event < 0 || getrandom(&server->epoch, sizeof(server->epoch), 0) != sizeof(server->epoch)) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "creating a memory node");
    }
    if (status == DMG_OK) {
        const char *chosen = choose_data(&settings, &options->segment, dmg_ucx_is_loopback(&address));
        snprintf(server->data_transports, sizeof(server->data_transports), "%.31s", chosen);
        status = create_data(server, &settings, options);
    }
    if (status == DMG_OK) {
        status = create_messages(server, &settings, bind_text, &address, address_bytes);
    }
    if (status != DMG_OK) {
        dmg_ucx_server_destroy(server);
        return status;
    }
    *implementation = server;
    return DMG_OK;
}

void dmg_ucx_server_destroy(void *implementation)
{
    dmg_ucx_server *server = implementation;
    if (server->listener != NULL) {
        ucp_listener_destroy(server->listener);
    }
    if (server->worker != NULL) {
        dmg_ucx_connections_close_all(server);
        ucp_worker_destroy(server->worker);
    }
    /* What UCX did not give back in time is free now that its worker is gone. */
    for (uint32_t i = 0; i < server->place_count; i++) {
        free(server->places[i].connection);
    }
    if (server->data_key != NULL) {
        ucp_rkey_buffer_release(server->data_key);
    }
    close_data(server);
    if (server->message_context != NULL) {
        dmg_ucx_close_context(server->message_context);
    }
    if (server->wake_event >= 0) {
        close(server->wake_event);
    }
    dmg_ucx_frames_clear(&server->frames);
    free(server->places);
    free(server->calls);
    free(server);
}
