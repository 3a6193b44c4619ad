/**
 * @file answers.c
 * A memory node's answers: records gather in a frame a connection, and leave when what has arrived is worked off.
 */
#include "core/base/log.h"
#include "transport/ucx/server.h"

#include <string.h>

/** Bytes to one client that could not be sent yet. Several times what the client's window allows: beyond, it has left
 * the rules. */
#define UNSENT_BYTES_MAX (4 * DMG_UCX_WINDOW_BYTES)

void dmg_ucx_server_send(dmg_ucx_connection *connection, uint32_t kind, dmg_ucx_frame *frame)
{
    dmg_ucx_carrier_send(&connection->carrier, kind, frame);
    dmg_ucx_events_follow(connection);
}

static void mark_dirty(dmg_ucx_connection *connection)
{
    if (!connection->is_dirty) {
        connection->is_dirty = true;
        connection->next_dirty = connection->server->dirty;
        connection->server->dirty = connection;
    }
}

void dmg_ucx_answers_flush(dmg_ucx_server *server)
{
    dmg_ucx_connection *list = server->dirty;
    server->dirty = NULL;
    while (list != NULL) {
        dmg_ucx_connection *connection = list;
        list = connection->next_dirty;
        connection->is_dirty = false;
        if (connection->filling == NULL || connection->stage == DMG_UCX_STAGE_CLOSING) {
            continue;
        }
        if (dmg_ucx_carrier_unsent_bytes(&connection->carrier) >= DMG_UCX_EAGER_BYTES) {
            mark_dirty(connection);
            continue;
        }
        dmg_ucx_frame *frame = connection->filling;
        connection->filling = NULL;
        dmg_ucx_server_send(connection, DMG_UCX_ANSWERS, frame);
    }
}

void *dmg_ucx_answer_begin(dmg_ucx_connection *connection, uint64_t id, dmg_status status, uint32_t bytes)
{
    dmg_ucx_server *server = connection->server;
    uint64_t record_bytes = sizeof(dmg_ucx_answer) + dmg_ucx_padded(bytes);
    dmg_ucx_answer *answer =
        connection->filling != NULL ? (void *)dmg_ucx_frame_reserve(connection->filling, record_bytes) : NULL;
    if (answer == NULL) {
        if (connection->filling != NULL) {
            dmg_ucx_frame *full = connection->filling;
            connection->filling = NULL;
            dmg_ucx_server_send(connection, DMG_UCX_ANSWERS, full);
        }
        if (dmg_ucx_carrier_unsent_bytes(&connection->carrier) >= UNSENT_BYTES_MAX) {
            dmg_ucx_connection_break(connection, "it asked for more than its window and did not take the answers");
            return NULL;
        }
        connection->filling = dmg_ucx_frame_take(&server->frames);
        if (connection->filling == NULL) {
            dmg_ucx_connection_break(connection, "the memory node ran out of memory");
            return NULL;
        }
        answer = (void *)dmg_ucx_frame_reserve(connection->filling, record_bytes);
    }
    *answer = (dmg_ucx_answer){.id = id, .bytes = bytes, .status = (uint32_t)status};
    uint8_t *data = (uint8_t *)(answer + 1);
    memset(data + bytes, 0, dmg_ucx_padded(bytes) - bytes);
    mark_dirty(connection);
    return data;
}

void dmg_ucx_answer_error(dmg_ucx_connection *connection, uint64_t id, dmg_status status, const char *sentence)
{
    uint32_t bytes = (uint32_t)strlen(sentence);
    void *data = dmg_ucx_answer_begin(connection, id, status, bytes);
    if (data != NULL) {
        memcpy(data, sentence, bytes);
    }
}

void dmg_ucx_server_reply(dmg_backend_server *base, uint64_t reply_token, dmg_status status, const void *payload,
                          size_t bytes)
{
    dmg_ucx_server *server = (dmg_ucx_server *)base;
    uint32_t index = (uint32_t)reply_token;
    if (index >= server->call_count || !server->calls[index].is_due ||
        server->calls[index].generation != (uint32_t)(reply_token >> 32)) {
        dmg_log(DMG_LOG_WARNING, "reply_dropped", "node=%u token=%llx why=\"answered before\"", server->node,
                (unsigned long long)reply_token);
        return;
    }
    dmg_ucx_due_call *call = &server->calls[index];
    dmg_ucx_place *place = &server->places[call->number];
    call->is_due = false;
    call->generation++;
    call->next_free = server->free_call;
    server->free_call = index;
    if (place->connection == NULL || place->generation != call->connection_generation ||
        place->connection->broken != NULL) {
        return;
    }
    place->connection->calls--;
    if (bytes > DMG_MESSAGE_BYTES_MAX) {
        dmg_ucx_answer_error(place->connection, call->id, DMG_ERR_LIMIT, "the answer is longer than a message may be");
        return;
    }
    void *data = dmg_ucx_answer_begin(place->connection, call->id, status, (uint32_t)bytes);
    if (data != NULL && bytes != 0) {
        memcpy(data, payload, bytes);
    }
}
