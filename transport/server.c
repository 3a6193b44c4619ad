/*
 * The memory-node side of the common layer: the serve loop, the clients and their leases.
 *
 * A client is alive while its messages keep coming; its monitor sends a lease message when nothing else goes. It is
 * gone when its last channel closed, when a channel broke, or when nothing came for the peer timeout, in which the time
 * that this process itself was stopped or starved does not count (watch.h). What a backend reports is only noted;
 * on_client_gone is called from the serve loop, so that a handler never runs in the middle of a backend's walk over its
 * channels.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/populate.h"
#include "transport/core.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MILLISECOND_NS       UINT64_C(1000000)
#define SLEEP_NS_MAX         UINT64_C(50000000)
#define SPIN_ROUNDS          100
#define SPIN_ROUNDS_SOFTWARE 8 /* a look at each channel goes to the memory and back */
#define CLIENTS_INITIAL      16
#define ORDINARY_PAGE_BYTES  4096
#define LOOK_NS              UINT64_C(10000000) /* between two looks at what became of lost clients */
#define BROKEN_MAX           64                 /* clients of other hosts that are remembered after they were broken */

static dmg_status copy_options(dmg_server *server, const dmg_server_options *options)
{
    server->options = *options;
    if (options->peer_timeout_ns == 0) {
        server->options.peer_timeout_ns = DMG_PEER_TIMEOUT_DEFAULT_NS;
    }
    server->transport = strdup(options->transport);
    server->bind = options->bind ? strdup(options->bind) : NULL;
    server->path = options->segment.path ? strdup(options->segment.path) : NULL;
    if (!server->transport || (options->bind && !server->bind) || (options->segment.path && !server->path)) {
        return dmg_error(DMG_ERR_MEMORY, "creating memory node %u: out of memory", (unsigned int)options->node);
    }
    server->options.transport = server->transport;
    server->options.bind = server->bind;
    server->options.segment.path = server->path;
    return DMG_OK;
}

dmg_status dmg_server_create(const dmg_server_options *options, dmg_server **server)
{
    *server = NULL;
    const dmg_backend *backend;
    dmg_transport_parameters parameters;
    dmg_status status = dmg_transport_parse(options->transport, &backend, &parameters);
    if (status != DMG_OK) {
        return status;
    }
    dmg_server *created = calloc(1, sizeof *created);
    if (!created) {
        return dmg_error(DMG_ERR_MEMORY, "creating memory node %u: out of memory", (unsigned int)options->node);
    }
    created->shared_page.descriptor = -1;
    status = copy_options(created, options);
    if (status == DMG_OK) {
        status = dmg_server_check_room(&created->options, 1);
    }
    if (status == DMG_OK) {
        dmg_watch_start(&created->watch, created->options.peer_timeout_ns, dmg_now_ns());
        status = backend->server_create(created, &created->options, &parameters, &created->lower);
    }
    if (status != DMG_OK) {
        dmg_server_destroy(created);
        return dmg_error_prefix(status, "creating memory node %u", (unsigned int)options->node);
    }
    *server = created;
    return DMG_OK;
}

static void forget_client(dmg_server_client *client)
{
    if (client->process_descriptor >= 0) {
        close(client->process_descriptor);
    }
    free(client->refusal);
}

void dmg_server_destroy(dmg_server *server)
{
    if (!server) {
        return;
    }
    if (server->lower) {
        server->lower->operations->destroy(server->lower);
    }
    if (server->shared_page.descriptor >= 0) {
        close((int)server->shared_page.descriptor);
    }
    for (uint32_t i = 0; i < server->client_count; i++) {
        forget_client(&server->clients[i]);
    }
    free(server->clients);
    free(server->transport);
    free(server->bind);
    free(server->path);
    free(server);
}

const char *dmg_server_address(const dmg_server *server)
{
    return server->lower->operations->address(server->lower);
}

bool dmg_server_has_files(const dmg_server *server)
{
    return server->lower->operations->has_files && server->lower->operations->has_files(server->lower);
}

void *dmg_server_segment(const dmg_server *server, uint64_t *bytes)
{
    return server->lower->operations->segment(server->lower, bytes);
}

dmg_placement dmg_server_placement(const dmg_server *server)
{
    return server->lower->operations->placement(server->lower);
}

bool dmg_server_is_coherent(const dmg_server *server)
{
    return !server->lower->operations->is_coherent || server->lower->operations->is_coherent(server->lower);
}

void dmg_server_acquire(dmg_server *server, uint64_t offset, uint64_t bytes)
{
    if (server->lower->operations->acquire) {
        server->lower->operations->acquire(server->lower, offset, bytes);
    }
}

void dmg_server_acquire_wait(dmg_server *server)
{
    if (server->lower->operations->acquire_wait) {
        server->lower->operations->acquire_wait(server->lower);
    }
}

void dmg_server_release(dmg_server *server, uint64_t offset, uint64_t bytes)
{
    if (server->lower->operations->release) {
        server->lower->operations->release(server->lower, offset, bytes);
    }
}

bool dmg_server_is_in_files(const dmg_server *server)
{
    return server->lower->operations->is_in_files(server->lower);
}

bool dmg_server_take_back(dmg_server *server, uint64_t offset, uint64_t bytes)
{
    uint64_t segment_bytes;
    return dmg_populate_by_advice((char *)dmg_server_segment(server, &segment_bytes) + offset, bytes) == 0;
}

bool dmg_server_give_back(dmg_server *server, uint64_t offset, uint64_t bytes)
{
    const dmg_segment_options *segment = &server->options.segment;
    /* Huge pages that are given back are anybody's: the next touch might find none, and end the process. */
    if (segment->prefault || segment->page_size != DMG_PAGE_DEFAULT ||
        dmg_server_placement(server).page_bytes > ORDINARY_PAGE_BYTES) {
        return false;
    }
    /* Where pages could not be asked for they stay: the segment's first one is always there. */
    if (dmg_server_is_in_files(server) && !dmg_server_take_back(server, 0, ORDINARY_PAGE_BYTES)) {
        return false;
    }
    return server->lower->operations->give_back(server->lower, offset, bytes);
}

void dmg_server_stop(dmg_server *server)
{
    atomic_store(&server->is_stopped, true);
    server->lower->operations->wake(server->lower);
}

void dmg_server_reply(dmg_server *server, uint64_t reply_token, dmg_status status, const void *payload, size_t bytes)
{
    static const char too_long[] = "the handler's answer is longer than a message";
    if (bytes > DMG_MESSAGE_BYTES_MAX) {
        server->lower->operations->reply(server->lower, reply_token, DMG_ERR_LIMIT, too_long, sizeof too_long - 1);
    } else {
        server->lower->operations->reply(server->lower, reply_token, status, payload, bytes);
    }
}

void dmg_server_counters(const dmg_server *server, dmg_counters *counters)
{
    *counters = server->counters;
}

dmg_counters *dmg_server_mutable_counters(dmg_server *server)
{
    return &server->counters;
}

/* ---- clients ---- */

static dmg_server_client *find_client(dmg_server *server, uint64_t id)
{
    for (uint32_t i = 0; i < server->client_count; i++) {
        if (server->clients[i].id == id) {
            return &server->clients[i];
        }
    }
    return NULL;
}

static dmg_server_client *add_client(dmg_server *server, uint64_t id)
{
    if (server->client_count == server->client_capacity) {
        uint32_t capacity = server->client_capacity ? server->client_capacity * 2 : CLIENTS_INITIAL;
        dmg_server_client *grown = realloc(server->clients, capacity * sizeof *grown);
        if (!grown) {
            return NULL;
        }
        server->clients = grown;
        server->client_capacity = capacity;
    }
    dmg_server_client *client = &server->clients[server->client_count++];
    *client = (dmg_server_client){.id = id, .heard_ns = server->watch.now_ns, .process_descriptor = -1};
    return client;
}

static void mark_gone(dmg_server *server, dmg_server_client *client, dmg_status why)
{
    if (!client->is_gone) {
        client->is_gone = true;
        client->why = why;
    }
    server->has_gone_clients = server->refuses_some = true;
}

void dmg_server_channel_opened(dmg_server *server, uint64_t client, const dmg_process *process)
{
    dmg_server_client *known = find_client(server, client);
    if (!known) {
        known = add_client(server, client);
        if (known) {
            known->process = *process;
        }
    }
    if (!known) {
        server->has_unknown_clients = server->refuses_some = true;
        dmg_log(DMG_LOG_WARNING, "client_refused", "node=%u client=%016" PRIx64 " why=\"out of memory\"",
                (unsigned int)server->options.node, client);
        return;
    }
    if (known->channels++ == 0) {
        dmg_log(DMG_LOG_DEBUG, "client_came", "node=%u client=%016" PRIx64, (unsigned int)server->options.node, client);
    }
    const char *refusal = server->options.on_channel && !known->is_gone
                              ? server->options.on_channel(server->options.context, server, client)
                              : NULL;
    if (refusal) {
        known->refusal = strdup(refusal);
        mark_gone(server, known, DMG_ERR_LIMIT);
    }
}

void dmg_server_channel_closed(dmg_server *server, uint64_t client, dmg_status why)
{
    dmg_server_client *known = find_client(server, client);
    if (!known) {
        return;
    }
    known->channels--;
    if (why != DMG_OK) {
        mark_gone(server, known, DMG_ERR_PEER);
    } else if (known->channels == 0) {
        mark_gone(server, known, DMG_OK);
    }
}

static void refuse(dmg_server *server, const dmg_request *request, dmg_status status, const char *sentence)
{
    dmg_server_reply(server, request->reply_token, status, sentence, strlen(sentence));
}

static void offer_shared_page(dmg_server *server, const dmg_request *request)
{
    if (server->shared_page.descriptor < 0) {
        dmg_status status = dmg_shared_page_create(&server->shared_page);
        if (status != DMG_OK) {
            refuse(server, request, status, dmg_error_message());
            return;
        }
    }
    dmg_server_reply(server, request->reply_token, DMG_OK, &server->shared_page, sizeof server->shared_page);
}

static const char *refusal_of(const dmg_server_client *client)
{
    if (client->why == DMG_ERR_LIMIT) {
        return client->refusal ? client->refusal : "this compute node has more channels than it may";
    }
    return client->has_lost_lease
               ? "this compute node was silent for longer than the peer timeout, and was given up: start it again"
               : "this compute node was given up, as a connection of it broke: start it again";
}

const char *dmg_server_refusal(dmg_server *server, uint64_t client)
{
    if (!server->refuses_some) {
        return NULL;
    }
    const dmg_server_client *known = find_client(server, client);
    if (!known) {
        return "the memory node had no memory for one more client";
    }
    return known->is_gone ? refusal_of(known) : NULL;
}

void dmg_server_deliver(dmg_server *server, const dmg_request *request)
{
    const char *refusal = dmg_server_refusal(server, request->client);
    dmg_server_client *client = find_client(server, request->client);
    if (refusal || !client) {
        dmg_status status = client && client->why == DMG_ERR_LIMIT ? DMG_ERR_LIMIT : DMG_ERR_PEER;
        refuse(server, request, client || !refusal ? status : DMG_ERR_MEMORY,
               refusal ? refusal : "this compute node is not known here");
        return;
    }
    client->heard_ns = server->watch.now_ns;
    if (request->type == DMG_MESSAGE_TYPE_LEASE) {
        dmg_server_reply(server, request->reply_token, DMG_OK, NULL, 0);
    } else if (request->type == DMG_MESSAGE_TYPE_SHARED_PAGE) {
        offer_shared_page(server, request);
    } else if (request->type == DMG_MESSAGE_TYPE_ECHO) {
        dmg_server_reply(server, request->reply_token, DMG_OK, request->payload, request->bytes);
    } else if (request->type < DMG_MESSAGE_TYPE_FIRST || !server->options.on_request) {
        refuse(server, request, DMG_ERR_UNSUPPORTED, "the memory node has no handler for this type of message");
    } else {
        dmg_counters_count(&server->counters, DMG_OPERATION_MESSAGE, request->bytes);
        server->options.on_request(server->options.context, server, request);
    }
}

const dmg_watch *dmg_server_watch(const dmg_server *server)
{
    return &server->watch;
}

static void expire_leases(dmg_server *server)
{
    server->has_gone_clients |= server->broken_count > 0; /* some may have ended, and be forgotten */
    for (uint32_t i = 0; i < server->client_count; i++) {
        dmg_server_client *client = &server->clients[i];
        if (!client->is_gone && dmg_watch_is_over(&server->watch, client->heard_ns)) {
            dmg_log(DMG_LOG_INFO, "lease_expired", "node=%u client=%016" PRIx64 " silence_ms=%" PRIu64,
                    (unsigned int)server->options.node, client->id,
                    dmg_watch_silence_ns(&server->watch, client->heard_ns) / MILLISECOND_NS);
            client->has_lost_lease = true;
            mark_gone(server, client, DMG_ERR_PEER);
        }
    }
}

/* A process that is known counts as long as it lives: it may close its connections and go on. */
static bool has_ended(dmg_server_client *client)
{
    return client->process.pid > 0 ? dmg_process_has_ended(&client->process, &client->process_descriptor)
                                   : client->channels == 0;
}

static bool is_reachable(const dmg_server *server)
{
    return !server->lower->operations->is_reachable || server->lower->operations->is_reachable(server->lower);
}

/* True when it reaches nothing of the segment by itself any more. */
static bool is_fenced(dmg_server *server, const dmg_server_client *client)
{
    return !is_reachable(server) ||
           (server->lower->operations->fence && server->lower->operations->fence(server->lower, client->id));
}

static void break_client(dmg_server *server, dmg_server_client *client)
{
    if (server->lower->operations->break_client) {
        server->lower->operations->break_client(server->lower, client->id, refusal_of(client));
        client->is_broken = client->channels == 0;
    }
}

static void report_gone_client(dmg_server *server, dmg_server_client *client)
{
    client->is_reported = true;
    bool fenced = is_fenced(server, client);
    client->is_lost = client->why != DMG_OK && !fenced && !has_ended(client);
    if (client->why != DMG_OK && client->channels > 0) {
        break_client(server, client);
    }
    server->lost_count += client->is_lost;
    dmg_log(DMG_LOG_DEBUG, "client_gone", "node=%u client=%016" PRIx64 " why=%s", (unsigned int)server->options.node,
            client->id, client->why == DMG_OK ? "closed" : "lost");
    if (client->is_lost) {
        dmg_log(DMG_LOG_INFO, "client_lost", "node=%u client=%016" PRIx64 " pid=%d", (unsigned int)server->options.node,
                client->id, client->process.pid);
    }
    if (server->options.on_client_gone) {
        server->options.on_client_gone(server->options.context, server, client->id, client->why);
    }
}

bool dmg_server_is_lost(dmg_server *server, uint64_t client)
{
    const dmg_server_client *known = find_client(server, client);
    return known && known->is_lost;
}

uint32_t dmg_server_client_channels(dmg_server *server, uint64_t client)
{
    const dmg_server_client *known = find_client(server, client);
    return known ? known->channels : 0;
}

int dmg_server_client_pid(dmg_server *server, uint64_t client)
{
    const dmg_server_client *known = find_client(server, client);
    return known ? known->process.pid : 0;
}

void dmg_server_look_for_ended(dmg_server *server)
{
    for (uint32_t i = 0; i < server->client_count && server->lost_count > 0; i++) {
        dmg_server_client *client = &server->clients[i];
        if (client->is_lost && has_ended(client)) {
            client->is_lost = false;
            server->lost_count--;
            server->has_gone_clients = true; /* to be forgotten */
            dmg_log(DMG_LOG_INFO, "client_ended", "node=%u client=%016" PRIx64 " pid=%d",
                    (unsigned int)server->options.node, client->id, client->process.pid);
            if (server->options.on_client_ended) {
                server->options.on_client_ended(server->options.context, server, client->id);
            }
        }
    }
}

/* Of those whose process is not known, the latest. */
static bool may_come_back(const dmg_server *server, dmg_server_client *client)
{
    return client->is_broken && (client->process.pid > 0 ? !has_ended(client) : server->broken_count < BROKEN_MAX);
}

static void report_gone_clients(dmg_server *server)
{
    server->has_gone_clients = false;
    server->broken_count = 0;
    bool refuses_some = server->has_unknown_clients;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < server->client_count; i++) {
        dmg_server_client *client = &server->clients[i];
        if (client->is_gone && !client->is_reported) {
            report_gone_client(server, client);
        }
        bool may_return = client->is_gone && may_come_back(server, client);
        if (!client->is_gone || client->channels > 0 || client->is_lost || may_return) {
            refuses_some |= client->is_gone;
            server->broken_count += may_return;
            server->clients[kept++] = *client;
        } else {
            forget_client(client);
        }
    }
    server->client_count = kept;
    server->refuses_some = refuses_some;
}

dmg_status dmg_server_serve(dmg_server *server)
{
    uint64_t check_ns = dmg_watch_interval_ns(&server->watch);
    uint64_t sleep_ns = check_ns < SLEEP_NS_MAX ? check_ns : SLEEP_NS_MAX;
    dmg_watch_start(&server->watch, server->options.peer_timeout_ns, dmg_now_ns());
    uint64_t next_check_ns = server->watch.now_ns + check_ns;
    const uint32_t spin_rounds = dmg_server_is_coherent(server) ? SPIN_ROUNDS : SPIN_ROUNDS_SOFTWARE;
    uint32_t idle_rounds = 0;
    while (!atomic_load_explicit(&server->is_stopped, memory_order_acquire)) {
        uint32_t handled = server->lower->operations->progress(server->lower);
        dmg_watch_look(&server->watch, dmg_now_ns());
        if (server->watch.now_ns >= next_check_ns) {
            expire_leases(server);
            next_check_ns = server->watch.now_ns + check_ns;
        }
        if (server->lost_count > 0 && server->watch.clock_ns >= server->next_look_ns) {
            server->next_look_ns = server->watch.clock_ns + LOOK_NS;
            dmg_server_look_for_ended(server);
        }
        if (server->has_gone_clients) {
            report_gone_clients(server);
        }
        bool has_more = server->options.on_round && server->options.on_round(server->options.context, server);
        if (handled > 0 || has_more) {
            idle_rounds = 0;
        } else if (idle_rounds < spin_rounds) {
            idle_rounds++;
            __builtin_ia32_pause();
        } else {
            server->lower->operations->sleep(server->lower, sleep_ns);
        }
    }
    return DMG_OK;
}
