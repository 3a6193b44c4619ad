/*
 * Sessions: opening, closing, and what their parts share.
 */
#include "api/session_state.h"
#include "core/base/error.h"
#include "core/base/topology.h"
#include "core/pool/token.h"
#include "core/work/chunks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRANSPORT_DEFAULT "cxl_shm"
#define NAME_DEFAULT      "session"
/* Nobody dies alone among the threads of one process, but a debugger may stop them all for a while. */
#define LOCAL_TIMEOUT_DEFAULT_NS UINT64_C(60000000000)
/* What an error context keeps. */
#define SENTENCE_BYTES 1024
/* Of all memory nodes of one process: some backends take it all at once, so it is no share of the machine's. */
#define MEMORY_DEFAULT_BYTES (UINT64_C(1) << 30)

_Static_assert(DMG_SESSION_TOKEN_BYTES == DMG_TOKEN_BYTES, "the public header knows the size of a token");
_Static_assert(DMG_SESSION_NAME_BYTES <= DMG_SECRET_BYTES, "a secret can be made of a session's name");
_Static_assert(DMG_SESSION_SECRET_BYTES == DMG_SECRET_BYTES, "the public header knows the size of a secret");
_Static_assert(DMG_SESSION_MEMORY_NODES_MAX == DMG_MEMORY_NODES_MAX, "what users see is the limit");

/* ---- options ---- */

static dmg_status check_ranks(const dmg_session_options *options)
{
    uint32_t size = options->size ? options->size : 1;
    if (size > DMG_PARTITIONS_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "a session of %u ranks: at most %d are possible", size, DMG_PARTITIONS_MAX);
    }
    if (options->rank >= size) {
        return dmg_error(DMG_ERR_ARGUMENT, "rank %u of %u in a session: ranks are 0 to %u", options->rank, size,
                         size - 1);
    }
    return DMG_OK;
}

static dmg_status check_nodes(const dmg_session_options *options)
{
    if (!options->addresses && options->address_count > 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "a session with %u addresses of memory nodes, but without the addresses",
                         options->address_count);
    }
    if (!options->addresses) {
        if (options->memory_nodes > DMG_SESSION_MEMORY_NODES_MAX) {
            return dmg_error(DMG_ERR_LIMIT, "%u memory nodes in one process: at most %d are possible",
                             options->memory_nodes, DMG_SESSION_MEMORY_NODES_MAX);
        }
        return DMG_OK;
    }
    if (options->address_count == 0 || options->address_count > DMG_MEMORY_NODES_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "a session on %u memory nodes: 1 to %d are possible", options->address_count,
                         DMG_MEMORY_NODES_MAX);
    }
    if (options->memory_nodes > 0 || options->memory_bytes > 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "a session either serves memory nodes of its own (memory_nodes, "
                                           "memory_bytes) or joins those at addresses");
    }
    for (uint32_t node = 0; node < options->address_count; node++) {
        if (!options->addresses[node]) {
            return dmg_error(DMG_ERR_ARGUMENT, "the address of memory node %u is missing", node);
        }
    }
    return DMG_OK;
}

static dmg_status take_name(const char *name, char taken[DMG_SESSION_NAME_BYTES])
{
    size_t length = strnlen(name, DMG_SESSION_NAME_BYTES);
    if (length == 0 || length == DMG_SESSION_NAME_BYTES) {
        return dmg_error(DMG_ERR_ARGUMENT, "the name of a session has 1 to %d characters", DMG_SESSION_NAME_BYTES - 1);
    }
    memcpy(taken, name, length + 1);
    return DMG_OK;
}

static dmg_status take_options(const dmg_session_options *options, dmg_session *session)
{
    dmg_status status = check_ranks(options);
    if (status == DMG_OK) {
        status = check_nodes(options);
    }
    if (status == DMG_OK) {
        status = take_name(options->name ? options->name : NAME_DEFAULT, session->name);
    }
    session->rank = options->rank;
    session->size = options->size ? options->size : 1;
    session->threads = options->threads ? options->threads : dmg_topology_usable_cpus();
    session->cache_bytes = options->cache_bytes;
    if (status == DMG_OK && session->threads > DMG_WORKERS_MAX) {
        if (options->threads) {
            return dmg_error(DMG_ERR_LIMIT, "%u threads in a session: at most %d are possible", options->threads,
                             DMG_WORKERS_MAX);
        }
        session->threads = DMG_WORKERS_MAX;
    }
    return status;
}

/* ---- opening ---- */

/* The token is that of the pool, whoever made it. */
static void take_secret(const dmg_session_options *options, const uint8_t token[DMG_TOKEN_BYTES], dmg_session *session)
{
    static const uint8_t no_secret[DMG_SECRET_BYTES];
    uint8_t named[DMG_SECRET_BYTES] = {0};
    memcpy(session->pass.secret, options->secret, sizeof session->pass.secret);
    if (memcmp(options->secret, no_secret, sizeof no_secret) == 0) {
        memcpy(named, session->name, strlen(session->name));
        dmg_identity_show(named, token, session->pass.secret);
    }
}

/* Start this process's own memory nodes; the client's options get their addresses and the token. */
static dmg_status start_local(const dmg_session_options *options, dmg_session *session,
                              dmg_client_options *client_options)
{
    static const uint8_t no_token[DMG_TOKEN_BYTES];
    dmg_status status = DMG_OK;
    if (memcmp(client_options->token, no_token, sizeof no_token) == 0) {
        status = dmg_token_make(client_options->token);
    }
    uint32_t node_count = options->memory_nodes ? options->memory_nodes : 1;
    session->memory_bytes = options->memory_bytes ? options->memory_bytes : MEMORY_DEFAULT_BYTES / node_count;
    dmg_local_pool_options local = {
        .transport = client_options->transport,
        .node_count = node_count,
        .segment_bytes = session->memory_bytes,
        .peer_timeout_ns = client_options->peer_timeout_ns,
    };
    memcpy(local.token, client_options->token, sizeof local.token);
    if (status == DMG_OK) {
        status = dmg_local_pool_start(&local, &session->local);
    }
    if (status == DMG_OK) {
        client_options->addresses = dmg_local_pool_addresses(session->local);
        client_options->address_count = dmg_local_pool_node_count(session->local);
    }
    return status;
}

static dmg_status open_pool(const dmg_session_options *options, dmg_session *session)
{
    uint64_t timeout_default_ns = options->addresses ? DMG_PEER_TIMEOUT_DEFAULT_NS : LOCAL_TIMEOUT_DEFAULT_NS;
    dmg_client_options client_options = {
        .transport = options->transport ? options->transport : TRANSPORT_DEFAULT,
        .addresses = options->addresses,
        .address_count = options->address_count,
        .peer_timeout_ns = options->peer_timeout_ns ? options->peer_timeout_ns : timeout_default_ns,
    };
    memcpy(client_options.token, options->token, sizeof client_options.token);
    dmg_status status = DMG_OK;
    if (!options->addresses) {
        status = start_local(options, session, &client_options);
    }
    take_secret(options, client_options.token, session);
    if (status == DMG_OK) {
        status = dmg_client_open(&client_options, &session->client);
    }
    if (status == DMG_OK) {
        status = dmg_channel_open(session->client, &session->channel);
    }
    return status;
}

dmg_status dmg_session_open(const dmg_session_options *options, dmg_session **session)
{
    if (!session) {
        return dmg_error(DMG_ERR_ARGUMENT, "opening a session: there is no place to put it");
    }
    *session = NULL;
    static const dmg_session_options defaults;
    const dmg_session_options *wanted = options ? options : &defaults;
    dmg_session *opened = calloc(1, sizeof *opened);
    if (!opened) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a session");
    }
    dmg_status status = take_options(wanted, opened);
    if (status == DMG_OK) {
        status = open_pool(wanted, opened);
    }
    if (status != DMG_OK) {
        dmg_session_close(opened);
        return status;
    }
    *session = opened;
    return DMG_OK;
}

void dmg_session_close(dmg_session *session)
{
    if (!session) {
        return;
    }
    dmg_session_leave(session, &session->run_job);
    dmg_session_leave(session, &session->graph_job);
    dmg_session_leave(session, &session->session_job);
    dmg_channel_close(session->channel);
    dmg_client_close(session->client);
    dmg_local_pool_stop(session->local);
    free(session);
}

const char *dmg_session_address(const dmg_session *session, uint32_t memory_node)
{
    if (!session || !session->local || memory_node >= dmg_local_pool_node_count(session->local)) {
        return NULL;
    }
    return dmg_local_pool_addresses(session->local)[memory_node];
}

/* ---- steps ---- */

dmg_status dmg_session_step_begin(dmg_session *session, const char *what, dmg_job *job)
{
    char name[DMG_CATALOG_NAME_BYTES];
    dmg_status status = DMG_OK;
    if (session->session_job.id == 0) {
        snprintf(name, sizeof name, "%s/session", session->name);
        status =
            dmg_job_join(session->channel, &session->pass, name, session->rank, session->size, &session->session_job);
    }
    if (status == DMG_OK) {
        snprintf(name, sizeof name, "%s/%s/%" PRIu64, session->name, what, ++session->steps);
        status = dmg_job_join_within(session->channel, &session->session_job, name, job);
    }
    return status;
}

dmg_status dmg_session_step_fail(dmg_session *session, dmg_job *job, dmg_status status)
{
    dmg_kept_error kept = {0};
    dmg_error_keep(&kept, status);
    dmg_job_failure first;
    (void)dmg_job_abort(session->channel, job, status, kept.sentence, &first);
    dmg_session_leave(session, job);
    /* What another rank met before may be why this one failed, too. */
    return first.rank == session->rank ? dmg_error_restore(&kept) : dmg_job_failure_error(&first, session->rank);
}

void dmg_session_leave(dmg_session *session, dmg_job *job)
{
    if (job->id != 0) {
        /* When this fails, a memory node is lost, and what the job had there with it. */
        (void)dmg_job_leave(session->channel, job);
    }
}

dmg_status dmg_session_need_graph(const dmg_session *session)
{
    if (!session) {
        return dmg_error(DMG_ERR_ARGUMENT, "there is no session");
    }
    if (session->graph_job.id == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "the session has no graph: load one first");
    }
    return DMG_OK;
}

dmg_status dmg_session_check_range(const dmg_session *session, uint64_t first, uint64_t count)
{
    uint64_t vertex_count = session->store.vertex_count;
    if (first > vertex_count || count > vertex_count - first) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "%" PRIu64 " vertices from vertex %" PRIu64 " on: the graph has %" PRIu64 " vertices", count,
                         first, vertex_count);
    }
    return DMG_OK;
}

dmg_status dmg_session_read(dmg_session *session, const dmg_range_array *array, uint64_t first, uint64_t count,
                            void *to)
{
    if (count == 0) {
        return DMG_OK;
    }
    dmg_completion completion = {0};
    dmg_range_array_post_read(session->channel, array, first, count, to, &completion);
    return dmg_wait(session->channel, &completion);
}
