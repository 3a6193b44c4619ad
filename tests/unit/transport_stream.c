/* Greetings and records over real sockets, both ends in this thread. */
#include "transport_stream_support.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD_BYTES_MAX 40000

static const dmg_stream_protection protections[] = {DMG_STREAM_PLAIN, DMG_STREAM_AUTHENTICATED, DMG_STREAM_ENCRYPTED};

/* ---- greeting ---- */

static void ends_that_know_the_secret_greet_over_every_kind_of_socket(void)
{
    for (stream_kind kind = 0; kind < KIND_COUNT; kind++) {
        int sockets[2];
        stream_greetings greetings;
        stream_sockets_open(kind, sockets);
        stream_greetings_begin(&greetings, kind, DMG_STREAM_PLAIN, DMG_STREAM_PLAIN, stream_token, stream_token);
        stream_greetings_finish(&greetings, sockets);
        CU_ASSERT_EQUAL(greetings.states[0], DMG_GREETING_DONE);
        CU_ASSERT_EQUAL(greetings.states[1], DMG_GREETING_DONE);
        const dmg_stream_session *client = &greetings.ends[0].session;
        const dmg_stream_session *server = &greetings.ends[1].session;
        CU_ASSERT_EQUAL(client->protection, kind == KIND_TCP ? DMG_STREAM_AUTHENTICATED : DMG_STREAM_PLAIN);
        CU_ASSERT_EQUAL(server->protection, client->protection);
        CU_ASSERT_EQUAL(server->cipher, client->cipher);
        CU_ASSERT_EQUAL(memcmp(client->send_key, server->receive_key, DMG_STREAM_KEY_BYTES), 0);
        CU_ASSERT_EQUAL(memcmp(client->receive_key, server->send_key, DMG_STREAM_KEY_BYTES), 0);
        CU_ASSERT_EQUAL(sodium_is_zero(client->send_key, DMG_STREAM_KEY_BYTES), kind != KIND_TCP);
        CU_ASSERT_EQUAL(memcmp(client->send_key, client->receive_key, DMG_STREAM_KEY_BYTES) == 0, kind != KIND_TCP);
        close(sockets[0]);
        close(sockets[1]);
    }
}

/* ---- records ---- */

static void records_of_every_size_arrive_whole_and_aligned(void)
{
    static uint8_t sent[RECORD_BYTES_MAX];
    static const size_t sizes[] = {0, 1, 7, 8, 9, 100, 4079, 4080, 4081, 4096, 32768, 39999, RECORD_BYTES_MAX};
    stream_fill(sent, sizeof sent, 7);
    for (stream_kind kind = 0; kind < KIND_COUNT; kind += 2) {
        for (size_t p = 0; p < 6; p++) {
            dmg_stream *streams[2];
            stream_pair_open(kind, protections[p / 2], p % 2 ? DMG_STREAM_AES256_GCM : DMG_STREAM_CHACHA20_POLY1305,
                             RECORD_BYTES_MAX, streams);
            for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
                size_t head = sizes[i] < 24 ? sizes[i] : 24;
                size_t bytes;
                CU_ASSERT_TRUE(dmg_stream_send(streams[i % 2], sent, head, sent + head, sizes[i] - head));
                const uint8_t *received = stream_receive_wait(streams[1 - i % 2], &bytes);
                CU_ASSERT_PTR_NOT_NULL_FATAL(received);
                CU_ASSERT_EQUAL_FATAL(bytes, sizes[i]);
                CU_ASSERT_EQUAL((uintptr_t)received % 8, 0);
                CU_ASSERT_EQUAL(memcmp(received, sent, bytes), 0);
            }
            CU_ASSERT_FALSE(dmg_stream_send(streams[0], sent, 1, sent, RECORD_BYTES_MAX));
            stream_pair_close(streams);
        }
    }
}

int main(int argc, char **argv)
{
    static const dmg_test greeting_tests[] = {
        DMG_TEST(ends_that_know_the_secret_greet_over_every_kind_of_socket),
        {NULL, NULL},
    };
    static const dmg_test record_tests[] = {
        DMG_TEST(records_of_every_size_arrive_whole_and_aligned),
        {NULL, NULL},
    };
    if (sodium_init() < 0 || dmg_suite_add("greeting", NULL, NULL, greeting_tests) != 0 ||
        dmg_suite_add("records", NULL, NULL, record_tests) != 0) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
