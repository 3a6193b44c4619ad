#include "unit/transport/stream/support.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

const uint8_t stream_token[DMG_TOKEN_BYTES] = {0x1f, 0x2e, 0x3d, 0x4c, 0x5b, 0x6a, 0x79, 0x88,
                                               0x97, 0xa6, 0xb5, 0xc4, 0xd3, 0xe2, 0xf1, 0x01};
const uint8_t stream_other_token[DMG_TOKEN_BYTES] = {0x1f, 0x2e, 0x3d, 0x4c, 0x5b, 0x6a, 0x79, 0x88,
                                                     0x97, 0xa6, 0xb5, 0xc4, 0xd3, 0xe2, 0xf1, 0x02};

static void connect_by_tcp(int sockets[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockets[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    CU_ASSERT_EQUAL_FATAL(listen(listener, 1), 0);
    CU_ASSERT_EQUAL_FATAL(getsockname(listener, (struct sockaddr *)&address, &bytes), 0);
    CU_ASSERT_EQUAL_FATAL(connect(sockets[0], (struct sockaddr *)&address, sizeof address), 0);
    sockets[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    CU_ASSERT_TRUE_FATAL(sockets[1] >= 0);
    close(listener);
    int one = 1;
    for (int end = 0; end < 2; end++) {
        (void)setsockopt(sockets[end], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
}

void stream_sockets_open(stream_kind kind, int sockets[2])
{
    if (kind == KIND_TCP) {
        connect_by_tcp(sockets);
        return;
    }
    int type = kind == KIND_PACKETS ? SOCK_SEQPACKET : SOCK_STREAM;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, sockets), 0);
}

void stream_greetings_begin(stream_greetings *greetings, stream_kind kind, dmg_stream_protection client_wants,
                            dmg_stream_protection server_wants, const uint8_t *client_token,
                            const uint8_t *server_token)
{
    bool is_network = kind == KIND_TCP;
    CU_ASSERT_EQUAL_FATAL(dmg_greeting_begin(&greetings->ends[0], false, is_network, client_wants, client_token),
                          DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_greeting_begin(&greetings->ends[1], true, is_network, server_wants, server_token),
                          DMG_OK);
    greetings->states[0] = DMG_GREETING_WAITS_TO_WRITE;
    greetings->states[1] = DMG_GREETING_WAITS_TO_READ;
}

static bool is_over(dmg_greeting_state state)
{
    return state == DMG_GREETING_DONE || state == DMG_GREETING_FAILED;
}

void stream_greetings_finish(stream_greetings *greetings, const int sockets[2])
{
    for (dmg_test_wait wait = dmg_test_wait_for(10); dmg_test_goes_on(&wait);) {
        for (int end = 0; end < 2; end++) {
            if (!is_over(greetings->states[end])) {
                greetings->states[end] = dmg_greeting_go_on(&greetings->ends[end], sockets[end]);
            }
            if (greetings->states[end] == DMG_GREETING_FAILED) {
                shutdown(sockets[end], SHUT_RDWR);
            }
        }
        if (is_over(greetings->states[0]) && is_over(greetings->states[1])) {
            return;
        }
    }
}

void stream_pair_open(stream_kind kind, dmg_stream_protection protection, dmg_stream_cipher cipher,
                      size_t record_bytes_max, dmg_stream *streams[2])
{
    int sockets[2];
    dmg_stream_session session = {.protection = protection, .cipher = cipher};
    stream_sockets_open(kind, sockets);
    for (int end = 0; end < 2; end++) {
        memset(end == 0 ? session.send_key : session.receive_key, 0x33, DMG_STREAM_KEY_BYTES);
        memset(end == 0 ? session.receive_key : session.send_key, 0x44, DMG_STREAM_KEY_BYTES);
        streams[end] = dmg_stream_over(sockets[end], &session, record_bytes_max);
        CU_ASSERT_PTR_NOT_NULL_FATAL(streams[end]);
    }
}

void stream_pair_close(dmg_stream *streams[2])
{
    dmg_stream_close(streams[0]);
    dmg_stream_close(streams[1]);
}

const void *stream_receive_wait(dmg_stream *stream, size_t *bytes)
{
    for (dmg_test_wait wait = dmg_test_wait_for(10); dmg_test_goes_on(&wait);) {
        const void *record = dmg_stream_receive(stream, bytes);
        if (record || dmg_stream_broken(stream)) {
            return record;
        }
    }
    return NULL;
}

void stream_fill(uint8_t *bytes, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        bytes[i] = (uint8_t)(seed >> 56);
    }
}
