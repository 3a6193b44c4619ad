#include "transport_ucx_liar.h"
#include "core/base/clock.h"
#include "deadline.h"
#include "transport/ucx/ucx.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS dmg_test_deadline_ns(10)
#define ROUNDS      50

static void on_error(void *argument, ucp_ep_h endpoint, ucs_status_t status)
{
    (void)endpoint, (void)status;
    ((test_liar *)argument)->is_cut_off = true;
}

static ucs_status_t on_welcome(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                               const ucp_am_recv_param_t *from)
{
    (void)header, (void)header_bytes, (void)from;
    test_liar *liar = argument;
    dmg_ucx_welcome welcome;
    if (bytes >= sizeof welcome) {
        memcpy(&welcome, data, sizeof welcome);
        liar->channel = welcome.channel;
        liar->status = welcome.status;
        liar->has_welcome = true;
    }
    return UCS_OK;
}

static ucs_status_t on_answers(void *argument, const void *header_bytes, size_t header_length, void *data, size_t bytes,
                               const ucp_am_recv_param_t *from)
{
    (void)from;
    test_liar *liar = argument;
    dmg_ucx_header header;
    dmg_ucx_answer answer;
    if (header_length == sizeof header && bytes >= sizeof answer) {
        memcpy(&header, header_bytes, sizeof header);
        memcpy(&answer, data, sizeof answer);
        liar->answers += header.count;
        liar->status = answer.status;
    }
    return UCS_OK;
}

static ucs_status_t on_farewell(void *argument, const void *header, size_t header_bytes, void *data, size_t bytes,
                                const ucp_am_recv_param_t *from)
{
    (void)argument, (void)header, (void)header_bytes, (void)data, (void)bytes, (void)from;
    return UCS_OK;
}

static void set_handler(test_liar *liar, unsigned id, ucp_am_recv_callback_t handler)
{
    ucp_am_handler_param_t parameters = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = id,
        .cb = handler,
        .arg = liar,
    };
    (void)ucp_worker_set_am_recv_handler(liar->worker, &parameters);
}

bool liar_open(test_liar *liar, const char *address)
{
    memset(liar, 0, sizeof *liar);
    const dmg_ucx_settings settings = {.messages = "tcp", .has_tcp_messages = true};
    struct sockaddr_storage socket_address;
    socklen_t address_bytes;
    if (dmg_ucx_resolve(address + strlen("ucx:"), 0, &socket_address, &address_bytes) != DMG_OK ||
        dmg_ucx_message_context(&settings, "lo", AF_INET, &liar->context) != DMG_OK ||
        dmg_ucx_worker(liar->context, &liar->worker) != DMG_OK) {
        return false;
    }
    set_handler(liar, DMG_UCX_WELCOME, on_welcome);
    set_handler(liar, DMG_UCX_ANSWERS, on_answers);
    set_handler(liar, DMG_UCX_FAREWELL, on_farewell);
    ucp_ep_params_t parameters = {
        .field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR | UCP_EP_PARAM_FIELD_ERR_HANDLER |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
        .sockaddr = {.addr = (const struct sockaddr *)&socket_address, .addrlen = address_bytes},
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = {.cb = on_error, .arg = liar},
    };
    return ucp_ep_create(liar->worker, &parameters, &liar->endpoint) == UCS_OK;
}

void liar_close(test_liar *liar)
{
    if (liar->endpoint != NULL) {
        dmg_ucx_close_now(liar->worker, liar->endpoint, UCP_EP_CLOSE_FLAG_FORCE, PATIENCE_NS);
    }
    if (liar->worker != NULL) {
        ucp_worker_destroy(liar->worker);
    }
    if (liar->context != NULL) {
        ucp_cleanup(liar->context);
    }
}

void liar_progress(test_liar *liar)
{
    for (int i = 0; i < ROUNDS; i++) {
        ucp_worker_progress(liar->worker);
    }
}

/* A copy of what is on its way, so that the caller's may go. */
static void on_sent(void *request, ucs_status_t status, void *argument)
{
    (void)status;
    free(argument);
    ucp_request_free(request);
}

static void send_with(test_liar *liar, uint32_t flags, unsigned id, const void *header, size_t header_bytes,
                      const void *payload, size_t bytes)
{
    uint8_t *copy = malloc(header_bytes + bytes + 1);
    if (copy == NULL) {
        return;
    }
    if (header_bytes != 0) {
        memcpy(copy, header, header_bytes);
    }
    if (bytes != 0) {
        memcpy(copy + header_bytes, payload, bytes);
    }
    ucp_request_param_t parameters = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
        .flags = flags | UCP_AM_SEND_FLAG_REPLY,
        .cb.send = on_sent,
        .user_data = copy,
    };
    void *request = ucp_am_send_nbx(liar->endpoint, id, copy, header_bytes, copy + header_bytes, bytes, &parameters);
    if (!UCS_PTR_IS_PTR(request)) {
        free(copy);
    }
}

void liar_send_without_progress(test_liar *liar, unsigned id, const void *header, size_t header_bytes,
                                const void *payload, size_t bytes)
{
    send_with(liar, UCP_AM_SEND_FLAG_EAGER, id, header, header_bytes, payload, bytes);
}

void liar_send(test_liar *liar, unsigned id, const void *header, size_t header_bytes, const void *payload, size_t bytes)
{
    send_with(liar, UCP_AM_SEND_FLAG_EAGER, id, header, header_bytes, payload, bytes);
    liar_progress(liar);
}

void liar_send_by_rendezvous(test_liar *liar, unsigned id, const void *header, size_t header_bytes, const void *payload,
                             size_t bytes)
{
    send_with(liar, UCP_AM_SEND_FLAG_RNDV, id, header, header_bytes, payload, bytes);
    liar_progress(liar);
}

void liar_say_hello(test_liar *liar, const uint8_t *token, uint64_t client, uint32_t version)
{
    dmg_ucx_hello hello = {.version = version, .client = client};
    memcpy(hello.token, token, sizeof hello.token);
    dmg_ucx_header header = {.magic = DMG_UCX_MAGIC, .count = 1, .bytes = sizeof hello};
    liar_send(liar, DMG_UCX_HELLO, &header, sizeof header, &hello, sizeof hello);
}

/* Make progress until the condition holds or patience ends. */
#define AWAIT(condition)                                                                                               \
    do {                                                                                                               \
        uint64_t end_ns = dmg_now_ns() + PATIENCE_NS;                                                                  \
        dmg_backoff backoff = {0};                                                                                     \
        while (!(condition) && dmg_now_ns() < end_ns) {                                                                \
            if (ucp_worker_progress(liar->worker) == 0) {                                                              \
                dmg_backoff_wait(&backoff);                                                                            \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

bool liar_is_welcomed(test_liar *liar)
{
    AWAIT(liar->has_welcome || liar->is_cut_off);
    return liar->has_welcome && liar->status == DMG_OK;
}

bool liar_is_cut_off(test_liar *liar)
{
    AWAIT(liar->is_cut_off);
    return liar->is_cut_off;
}

bool liar_has_answers(test_liar *liar, uint64_t count)
{
    AWAIT(liar->answers >= count || liar->is_cut_off);
    return liar->answers >= count;
}
