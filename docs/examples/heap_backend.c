/*
 * The heap backend: memory nodes in threads of their clients' process. Data are loads, stores and atomics of the
 * caller; a message waits in its memory node's queue, and its answer in its channel's.
 */
#include "core/base/checked.h"
#include "core/base/error.h"
#include "transport/backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef enum message_kind { OPENED, CLOSED, CALL } message_kind;

typedef struct message {
    struct message *next;
    message_kind kind;
    uint64_t client;
    struct heap_channel *from; /* NULL: it has closed, and wants no answer */
    uint32_t type;
    dmg_call *call;
    dmg_completion *completion;
    uint16_t node;
    size_t bytes;
    _Alignas(8) char payload[];
} message;

typedef struct heap_server {
    dmg_backend_server base; /* first: what the layer above has is this */
    dmg_server *owner;
    char address[32];
    uint8_t token[DMG_TOKEN_BYTES];
    uint64_t bytes;
    void *segment;
    pthread_mutex_t lock; /* of the queue, and of `from` in its messages */
    pthread_cond_t arrived;
    message *first, **last;
    bool is_woken;
} heap_server;

typedef struct heap_client {
    dmg_backend_client base;
    dmg_client *owner;
    uint32_t node_count;
    heap_server *servers[DMG_MEMORY_NODES_MAX];
} heap_client;

typedef struct heap_channel {
    dmg_backend_channel base;
    heap_client *client;
    uint32_t in_flight;
    message *flying[64];
} heap_channel;

/* ---- the memory node's side ---- */

static void queue(heap_server *server, message *added)
{
    pthread_mutex_lock(&server->lock);
    added->next = NULL;
    *server->last = added;
    server->last = &added->next;
    pthread_cond_signal(&server->arrived);
    pthread_mutex_unlock(&server->lock);
}

static message *take(heap_server *server)
{
    pthread_mutex_lock(&server->lock);
    message *taken = server->first;
    if (taken) {
        server->first = taken->next;
        server->last = server->first ? server->last : &server->first;
    }
    pthread_mutex_unlock(&server->lock);
    return taken;
}

static uint32_t server_progress(dmg_backend_server *base)
{
    heap_server *server = (heap_server *)base;
    uint32_t handled = 0;
    for (message *next = take(server); next; next = take(server), handled++) {
        if (next->kind == OPENED) {
            dmg_process unknown = {0};
            dmg_server_channel_opened(server->owner, next->client, &unknown);
        } else if (next->kind == CLOSED) {
            dmg_server_channel_closed(server->owner, next->client, DMG_OK);
        } else {
            dmg_server_deliver(server->owner, &(dmg_request){.client = next->client,
                                                             .type = next->type,
                                                             .payload = next->payload,
                                                             .bytes = next->bytes,
                                                             .reply_token = (uint64_t)(uintptr_t)next});
            continue; /* it is freed with its answer */
        }
        free(next);
    }
    return handled;
}

/* The answer is put where the caller wants it; the caller's thread ends the operation when it looks (poll). */
static void server_reply(dmg_backend_server *base, uint64_t token, dmg_status status, const void *payload, size_t bytes)
{
    heap_server *server = (heap_server *)base;
    message *answered = (message *)(uintptr_t)token;
    pthread_mutex_lock(&server->lock);
    heap_channel *to = answered->from;
    if (to) {
        dmg_status ended = dmg_call_answer(answered->call, status, payload, bytes);
        answered->type = (uint32_t)ended;
        answered->from = NULL; /* which is how poll sees it */
    }
    pthread_mutex_unlock(&server->lock);
    if (!to) {
        free(answered);
    }
}

static void server_sleep(dmg_backend_server *base, uint64_t timeout_ns)
{
    heap_server *server = (heap_server *)base;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t end_ns = (uint64_t)until.tv_nsec + timeout_ns;
    until.tv_sec += (time_t)(end_ns / 1000000000);
    until.tv_nsec = (long)(end_ns % 1000000000);
    pthread_mutex_lock(&server->lock);
    if (!server->first && !server->is_woken) {
        pthread_cond_timedwait(&server->arrived, &server->lock, &until);
    }
    server->is_woken = false;
    pthread_mutex_unlock(&server->lock);
}

static void server_wake(dmg_backend_server *base)
{
    heap_server *server = (heap_server *)base;
    pthread_mutex_lock(&server->lock);
    server->is_woken = true;
    pthread_cond_signal(&server->arrived);
    pthread_mutex_unlock(&server->lock);
}

static void server_destroy(dmg_backend_server *base)
{
    heap_server *server = (heap_server *)base;
    for (message *left = take(server); left; left = take(server)) {
        free(left);
    }
    pthread_cond_destroy(&server->arrived);
    pthread_mutex_destroy(&server->lock);
    free(server->segment);
    free(server);
}

static const char *server_address(dmg_backend_server *base)
{
    return ((heap_server *)base)->address;
}

static void *server_segment(dmg_backend_server *base, uint64_t *bytes)
{
    *bytes = ((heap_server *)base)->bytes;
    return ((heap_server *)base)->segment;
}

static dmg_placement server_placement(dmg_backend_server *base)
{
    return (dmg_placement){.bytes = ((heap_server *)base)->bytes, .numa_node = -1};
}

static bool server_give_back(dmg_backend_server *base, uint64_t offset, uint64_t bytes)
{
    (void)base, (void)offset, (void)bytes;
    return false; /* pages of malloc stay */
}

static bool server_is_in_files(dmg_backend_server *base)
{
    (void)base;
    return false;
}

static const dmg_server_operations server_operations = {.destroy = server_destroy,
                                                        .address = server_address,
                                                        .segment = server_segment,
                                                        .placement = server_placement,
                                                        .progress = server_progress,
                                                        .sleep = server_sleep,
                                                        .wake = server_wake,
                                                        .reply = server_reply,
                                                        .give_back = server_give_back,
                                                        .is_in_files = server_is_in_files};

static dmg_status server_create(dmg_server *owner, const dmg_server_options *options,
                                const dmg_transport_parameters *parameters, dmg_backend_server **made)
{
    (void)parameters;
    heap_server *server = calloc(1, sizeof *server);
    if (!server || !(server->segment = calloc(1, options->segment.bytes))) {
        free(server);
        return dmg_error(DMG_ERR_MEMORY, "no memory for a segment");
    }
    server->base.operations = &server_operations;
    server->owner = owner;
    server->bytes = options->segment.bytes;
    server->last = &server->first;
    memcpy(server->token, options->token, sizeof server->token);
    snprintf(server->address, sizeof server->address, "heap:%p", (void *)server);
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->arrived, NULL);
    *made = &server->base;
    return DMG_OK;
}

/* ---- a channel ---- */

static char *place(const heap_channel *channel, uint16_t node, uint64_t offset)
{
    return (char *)channel->client->servers[node]->segment + offset;
}

static void post_read(dmg_backend_channel *base, uint16_t node, uint64_t offset, void *to, uint64_t bytes,
                      dmg_completion *completion)
{
    memcpy(to, place((heap_channel *)base, node, offset), bytes);
    dmg_completion_end(completion, DMG_OK, node);
}

static void post_write(dmg_backend_channel *base, const void *from, uint16_t node, uint64_t offset, uint64_t bytes,
                       dmg_completion *completion)
{
    memcpy(place((heap_channel *)base, node, offset), from, bytes);
    dmg_completion_end(completion, DMG_OK, node);
}

static void post_cas64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t expected, uint64_t desired,
                       uint64_t *observed, dmg_completion *completion)
{
    uint64_t *word = (uint64_t *)(void *)place((heap_channel *)base, node, offset);
    *observed = expected;
    (void)__atomic_compare_exchange_n(word, observed, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    dmg_completion_end(completion, DMG_OK, node);
}

static void post_faa64(dmg_backend_channel *base, uint16_t node, uint64_t offset, uint64_t addend, uint64_t *before,
                       dmg_completion *completion)
{
    *before =
        __atomic_fetch_add((uint64_t *)(void *)place((heap_channel *)base, node, offset), addend, __ATOMIC_SEQ_CST);
    dmg_completion_end(completion, DMG_OK, node);
}

static message *new_message(const heap_channel *channel, message_kind kind, const void *payload, size_t bytes)
{
    message *made = malloc(sizeof *made + bytes);
    if (made) {
        *made = (message){.kind = kind, .client = dmg_client_id(channel->client->owner), .bytes = bytes};
        if (bytes > 0) {
            memcpy(made->payload, payload, bytes);
        }
    }
    return made;
}

static void poll(dmg_backend_channel *base)
{
    heap_channel *channel = (heap_channel *)base;
    for (uint32_t i = 0; i < channel->in_flight;) {
        message *flying = channel->flying[i];
        heap_server *server = channel->client->servers[flying->node];
        pthread_mutex_lock(&server->lock);
        bool is_answered = flying->from == NULL;
        pthread_mutex_unlock(&server->lock);
        if (is_answered) {
            dmg_completion_end(flying->completion, (dmg_status)flying->type, flying->node);
            channel->flying[i] = channel->flying[--channel->in_flight];
            free(flying);
        } else {
            i++;
        }
    }
}

static void post_call(dmg_backend_channel *base, uint16_t node, uint32_t type, const void *payload, size_t bytes,
                      dmg_call *call, dmg_completion *completion)
{
    heap_channel *channel = (heap_channel *)base;
    message *sent = channel->in_flight < 64 ? new_message(channel, CALL, payload, bytes) : NULL;
    if (!sent) {
        dmg_completion_end(completion, DMG_ERR_MEMORY, node);
        return;
    }
    sent->from = channel;
    sent->type = type;
    sent->call = call;
    sent->completion = completion;
    sent->node = node;
    channel->flying[channel->in_flight++] = sent;
    queue(channel->client->servers[node], sent);
}

static void ring(dmg_backend_channel *base)
{
    (void)base; /* everything was handed over when it was posted */
}

static void sleep_a_little(dmg_backend_channel *base, uint64_t timeout_ns)
{
    (void)base;
    nanosleep(&(struct timespec){.tv_nsec = timeout_ns < 50000 ? (long)timeout_ns : 50000}, NULL);
}

static void end_all(heap_channel *channel, int node, dmg_status status)
{
    for (uint32_t i = 0; i < channel->in_flight;) {
        message *flying = channel->flying[i];
        if (node >= 0 && flying->node != node) {
            i++;
            continue;
        }
        heap_server *server = channel->client->servers[flying->node];
        dmg_completion_end(flying->completion, status, flying->node);
        channel->flying[i] = channel->flying[--channel->in_flight];
        pthread_mutex_lock(&server->lock);
        bool is_answered = flying->from == NULL;
        flying->from = NULL; /* else whoever answers frees it */
        pthread_mutex_unlock(&server->lock);
        if (is_answered) {
            free(flying);
        }
    }
}

static void fail_node(dmg_backend_channel *base, uint16_t node)
{
    end_all((heap_channel *)base, node, DMG_ERR_PEER);
}

static void channel_close(dmg_backend_channel *base)
{
    heap_channel *channel = (heap_channel *)base;
    end_all(channel, -1, DMG_ERR_CANCELLED);
    for (uint32_t node = 0; node < channel->client->node_count; node++) {
        message *closed = new_message(channel, CLOSED, NULL, 0);
        if (closed) {
            queue(channel->client->servers[node], closed);
        }
    }
    free(channel);
}

static const dmg_channel_operations channel_operations = {.close = channel_close,
                                                          .post_read = post_read,
                                                          .post_write = post_write,
                                                          .post_cas64 = post_cas64,
                                                          .post_faa64 = post_faa64,
                                                          .post_call = post_call,
                                                          .ring = ring,
                                                          .poll = poll,
                                                          .sleep = sleep_a_little,
                                                          .fail_node = fail_node};

/* ---- the compute node's side ---- */

static dmg_status channel_open(dmg_backend_client *base, dmg_channel *owner, dmg_backend_channel **made)
{
    (void)owner;
    heap_channel *channel = calloc(1, sizeof *channel);
    if (!channel) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a channel");
    }
    channel->base.operations = &channel_operations;
    channel->client = (heap_client *)base;
    for (uint32_t node = 0; node < channel->client->node_count; node++) {
        message *opened = new_message(channel, OPENED, NULL, 0);
        if (opened) {
            queue(channel->client->servers[node], opened);
        }
    }
    *made = &channel->base;
    return DMG_OK;
}

static void client_close(dmg_backend_client *base)
{
    free(base);
}

static const dmg_client_operations client_operations = {.close = client_close, .channel_open = channel_open};

static dmg_status client_open(dmg_client *owner, const dmg_client_options *options,
                              const dmg_transport_parameters *parameters, dmg_node *nodes,
                              dmg_capabilities *capabilities, dmg_backend_client **made)
{
    (void)parameters;
    heap_client *client = calloc(1, sizeof *client);
    if (!client) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a client");
    }
    client->base.operations = &client_operations;
    client->owner = owner;
    client->node_count = options->address_count;
    for (uint32_t node = 0; node < client->node_count; node++) {
        void *server;
        if (sscanf(options->addresses[node], "heap:%p", &server) != 1) {
            free(client);
            return dmg_error(DMG_ERR_PROTOCOL, "%s is no address of heap", options->addresses[node]);
        }
        client->servers[node] = server;
        if (memcmp(client->servers[node]->token, options->token, DMG_TOKEN_BYTES) != 0) {
            free(client);
            return dmg_error(DMG_ERR_PROTOCOL, "the token is wrong");
        }
        nodes[node].segment_bytes = client->servers[node]->bytes;
        nodes[node].pointer = client->servers[node]->segment;
    }
    capabilities->flags =
        DMG_CAPABILITY_LOAD_STORE | DMG_CAPABILITY_COHERENT | DMG_CAPABILITY_ONE_SIDED | DMG_CAPABILITY_MN_COMPUTE;
    capabilities->atomics = DMG_ATOMICS_CALLER_CPU;
    snprintf(capabilities->chosen, sizeof capabilities->chosen, "loads and stores in this process");
    *made = &client->base;
    return DMG_OK;
}

/* ---- the backend ---- */

static dmg_status describe(dmg_transport_info *infos, size_t capacity, size_t *count)
{
    *count = capacity > 0;
    if (capacity > 0) {
        infos[0] = (dmg_transport_info){.backend = "heap", .device = "this process", .is_available = true};
    }
    return DMG_OK;
}

static dmg_status segment_demand(const dmg_server_options *options, const dmg_transport_parameters *parameters,
                                 dmg_segment_demand *demand)
{
    (void)parameters;
    demand->promised_bytes = options->segment.bytes;
    return DMG_OK;
}

static dmg_status descriptors(const dmg_transport_parameters *parameters, dmg_transport_descriptors *descriptors)
{
    (void)parameters, (void)descriptors;
    return DMG_OK;
}

static const char *const parameter_keys[] = {NULL};

const dmg_backend dmg_backend_heap = {.name = "heap",
                                      .parameter_keys = parameter_keys,
                                      .describe = describe,
                                      .segment_demand = segment_demand,
                                      .descriptors = descriptors,
                                      .server_create = server_create,
                                      .client_open = client_open};
