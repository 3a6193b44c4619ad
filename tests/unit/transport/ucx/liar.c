#include "unit/transport/ucx/liar.h"
#include "core/base/clock.h"
#include "unit/support/deadline.h"

#include <poll.h>
#include <string.h>

#define PATIENCE_NS dmg_test_deadline_ns(10)
#define LOOK_MS     50

bool liar_open(test_liar *liar, const char *address, const uint8_t *token)
{
    *liar = (test_liar){0};
    dmg_stream_address place;
    const dmg_stream_options options = {
        .token = token, .wanted = DMG_STREAM_AUTHENTICATED, .record_bytes_max = DMG_UCX_RECORD_BYTES_MAX};
    dmg_watch watch;
    dmg_watch_start(&watch, PATIENCE_NS, dmg_now_ns());
    return dmg_stream_address_parse("ucx", address, &place) == DMG_OK &&
           dmg_stream_connect(&options, &place, address, &watch, &liar->stream) == DMG_OK;
}

void liar_close(test_liar *liar)
{
    dmg_stream_close(liar->stream);
    liar->stream = NULL;
}

void liar_send(test_liar *liar, const void *header, size_t header_bytes, const void *payload, size_t bytes)
{
    (void)dmg_stream_send(liar->stream, header, header_bytes, payload, bytes);
}

static void take_record(test_liar *liar, const uint8_t *record, size_t bytes)
{
    dmg_ucx_header header;
    dmg_ucx_welcome welcome;
    dmg_ucx_answer answer;
    if (bytes < sizeof header) {
        return;
    }
    memcpy(&header, record, sizeof header);
    if (header.kind == DMG_UCX_WELCOME && bytes >= sizeof header + sizeof welcome) {
        memcpy(&welcome, record + sizeof header, sizeof welcome);
        liar->status = welcome.status;
        liar->has_welcome = true;
    } else if (header.kind == DMG_UCX_ANSWERS && bytes >= sizeof header + sizeof answer) {
        memcpy(&answer, record + sizeof header, sizeof answer);
        liar->status = answer.status;
        liar->answers += header.count;
    }
}

bool liar_look(test_liar *liar)
{
    size_t bytes;
    (void)dmg_stream_flush(liar->stream);
    for (const void *record; (record = dmg_stream_receive(liar->stream, &bytes)) != NULL;) {
        take_record(liar, record, bytes);
    }
    return dmg_stream_broken(liar->stream) == NULL;
}

dmg_ucx_hello liar_hello(uint64_t client)
{
    return (dmg_ucx_hello){.version = DMG_UCX_VERSION, .client = client, .messages = "socket"};
}

void liar_send_hello(test_liar *liar, const dmg_ucx_hello *hello, size_t bytes)
{
    dmg_ucx_header header = {.magic = DMG_UCX_MAGIC, .kind = DMG_UCX_HELLO, .count = 1, .bytes = (uint32_t)bytes};
    liar_send(liar, &header, sizeof header, hello, bytes);
}

/* Look until the condition holds, the connection ends, or patience does. */
#define AWAIT(condition)                                                                                               \
    do {                                                                                                               \
        uint64_t end_ns = dmg_now_ns() + PATIENCE_NS;                                                                  \
        while (!(condition) && liar_look(liar) && dmg_now_ns() < end_ns) {                                             \
            short events = dmg_stream_unsent_bytes(liar->stream) != 0 ? POLLIN | POLLOUT : POLLIN;                     \
            struct pollfd wait = {.fd = dmg_stream_socket(liar->stream), .events = events};                            \
            (void)poll(&wait, 1, LOOK_MS);                                                                             \
        }                                                                                                              \
    } while (0)

bool liar_is_welcomed(test_liar *liar)
{
    AWAIT(liar->has_welcome);
    return liar->has_welcome && liar->status == DMG_OK;
}

bool liar_is_cut_off(test_liar *liar)
{
    AWAIT(false);
    return dmg_stream_broken(liar->stream) != NULL;
}

bool liar_has_answers(test_liar *liar, uint64_t count)
{
    AWAIT(liar->answers >= count);
    return liar->answers >= count;
}
