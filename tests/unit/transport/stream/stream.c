/* Greetings over real sockets, both ends in this thread. */
#include "unit/transport/stream/support.h"

#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

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

/* Greet with such tokens; says how both ends ended. */
static void greet_with(stream_kind kind, const uint8_t *client_token, const uint8_t *server_token,
                       stream_greetings *greetings)
{
    int sockets[2];
    stream_sockets_open(kind, sockets);
    stream_greetings_begin(greetings, kind, DMG_STREAM_PLAIN, DMG_STREAM_PLAIN, client_token, server_token);
    stream_greetings_finish(greetings, sockets);
    close(sockets[0]);
    close(sockets[1]);
}

static void other_secret_is_refused_by_both_ends(void)
{
    for (stream_kind kind = 0; kind < KIND_COUNT; kind++) {
        stream_greetings greetings;
        greet_with(kind, stream_token, stream_other_token, &greetings);
        CU_ASSERT_EQUAL(greetings.states[0], DMG_GREETING_FAILED);
        CU_ASSERT_EQUAL(greetings.ends[0].failure, DMG_ERR_PROTOCOL);
        CU_ASSERT_EQUAL(greetings.states[1], DMG_GREETING_FAILED);
        CU_ASSERT_TRUE(sodium_is_zero(greetings.ends[0].session.send_key, DMG_STREAM_KEY_BYTES));
        CU_ASSERT_TRUE(sodium_is_zero(greetings.ends[1].session.send_key, DMG_STREAM_KEY_BYTES));
    }
}

/* ---- somebody between the ends ---- */

/* What a relay heard in one greeting, and the bit that it turned: of the message `flipped_message`, or of none. */
typedef struct relay {
    int client[2]; /* [0] the client's end */
    int server[2]; /* [1] the server's end */
    int flipped_message;
    size_t flipped_bit;
    uint8_t messages[3][DMG_STREAM_GREETING_BYTES];
    size_t bytes[3];
} relay;

static void relay_open(relay *between, stream_kind kind)
{
    *between = (relay){.flipped_message = -1};
    stream_sockets_open(kind, between->client);
    stream_sockets_open(kind, between->server);
}

static void relay_close(relay *between)
{
    for (int end = 0; end < 2; end++) {
        close(between->client[end]);
        close(between->server[end]);
    }
}

/* Pass on one message, all of which is there or comes at once. */
static void relay_pass(relay *between, int number, int from, int to)
{
    static const size_t sizes[] = {80, 112, 32};
    uint8_t *message = between->messages[number];
    while (between->bytes[number] < sizes[number]) {
        ssize_t received =
            recv(from, message + between->bytes[number], DMG_STREAM_GREETING_BYTES - between->bytes[number], 0);
        if (received <= 0) {
            return;
        }
        between->bytes[number] += (size_t)received;
    }
    if (number == between->flipped_message) {
        message[between->flipped_bit / 8] ^= (uint8_t)(1U << between->flipped_bit % 8);
    }
    CU_ASSERT_EQUAL(send(to, message, between->bytes[number], MSG_NOSIGNAL), (ssize_t)between->bytes[number]);
}

/* A greeting through the relay. */
static void relay_greeting(relay *between, stream_greetings *greetings)
{
    for (int number = 0; number < 3; number++) {
        bool is_client = number != 1;
        int speaker = is_client ? 0 : 1;
        int sockets[2] = {between->client[0], between->server[1]};
        greetings->states[speaker] = dmg_greeting_go_on(&greetings->ends[speaker], sockets[speaker]);
        if (greetings->states[speaker] == DMG_GREETING_FAILED) {
            shutdown(sockets[speaker], SHUT_RDWR);
            shutdown(sockets[1 - speaker], SHUT_RDWR);
            break;
        }
        relay_pass(between, number, is_client ? between->client[1] : between->server[0],
                   is_client ? between->server[0] : between->client[1]);
    }
    int sockets[2] = {between->client[0], between->server[1]};
    stream_greetings_finish(greetings, sockets);
}

static void greeting_says_nothing_of_the_secret(void)
{
    for (stream_kind kind = 0; kind < KIND_COUNT; kind++) {
        relay between;
        stream_greetings greetings;
        relay_open(&between, kind);
        stream_greetings_begin(&greetings, kind, DMG_STREAM_PLAIN, DMG_STREAM_PLAIN, stream_token, stream_token);
        relay_greeting(&between, &greetings);
        CU_ASSERT_EQUAL(greetings.states[1], DMG_GREETING_DONE);
        for (int number = 0; number < 3; number++) {
            CU_ASSERT_FATAL(between.bytes[number] > 0);
            /* Four bytes of it that come by chance: once in ten million greetings. */
            for (size_t at = 0; at + 4 <= DMG_TOKEN_BYTES; at++) {
                CU_ASSERT_PTR_NULL(memmem(between.messages[number], between.bytes[number], stream_token + at, 4));
            }
        }
        relay_close(&between);
    }
}

static void server_notices_each_bit_of_a_greeting_that_was_changed(void)
{
    static const size_t bits[] = {80 * 8, 112 * 8, 32 * 8};
    for (stream_kind kind = 0; kind < KIND_COUNT; kind++) {
        for (int number = 0; number < 3; number++) {
            /* Over TCP each case has ports of its own, which rest for a while: one bit of each byte there. */
            for (size_t bit = 0; bit < bits[number]; bit += kind == KIND_TCP ? 9 : 1) {
                relay between;
                stream_greetings greetings;
                relay_open(&between, kind);
                between.flipped_message = number;
                between.flipped_bit = bit;
                stream_greetings_begin(&greetings, kind, DMG_STREAM_PLAIN, DMG_STREAM_PLAIN, stream_token,
                                       stream_token);
                relay_greeting(&between, &greetings);
                CU_ASSERT_EQUAL(greetings.states[1], DMG_GREETING_FAILED);
                CU_ASSERT_EQUAL(greetings.states[0], number == 2 ? DMG_GREETING_DONE : DMG_GREETING_FAILED);
                relay_close(&between);
            }
        }
    }
}

/* Send a message to a server, and take its answer; false when it closed instead. */
static bool exchange(int socket, dmg_greeting *server, int server_socket, const uint8_t *message, size_t bytes,
                     uint8_t answer[112])
{
    CU_ASSERT_EQUAL(send(socket, message, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
    if (dmg_greeting_go_on(server, server_socket) == DMG_GREETING_FAILED) {
        return false;
    }
    return recv(socket, answer, 112, MSG_DONTWAIT) == 112;
}

static void recorded_greeting_opens_nothing(void)
{
    relay between;
    stream_greetings greetings;
    dmg_greeting server;
    uint8_t answer[112];
    relay_open(&between, KIND_LOCAL);
    stream_greetings_begin(&greetings, KIND_LOCAL, DMG_STREAM_PLAIN, DMG_STREAM_PLAIN, stream_token, stream_token);
    relay_greeting(&between, &greetings);
    CU_ASSERT_EQUAL(greetings.states[1], DMG_GREETING_DONE);
    int sockets[2];
    stream_sockets_open(KIND_LOCAL, sockets);
    dmg_greeting_begin(&server, true, false, DMG_STREAM_PLAIN, stream_token);
    CU_ASSERT_TRUE(exchange(sockets[0], &server, sockets[1], between.messages[0], 80, answer));
    CU_ASSERT_FALSE(exchange(sockets[0], &server, sockets[1], between.messages[2], 32, answer));
    CU_ASSERT_EQUAL(server.failure, DMG_ERR_PROTOCOL);
    close(sockets[0]);
    close(sockets[1]);
    relay_close(&between);
}

static void proof_of_a_server_is_none_of_a_client(void)
{
    int sockets[2];
    dmg_greeting server, client;
    uint8_t answer[112];
    /* To the server, its own proof. */
    stream_sockets_open(KIND_LOCAL, sockets);
    dmg_greeting_begin(&server, true, false, DMG_STREAM_PLAIN, stream_token);
    dmg_greeting_begin(&client, false, false, DMG_STREAM_PLAIN, stream_other_token);
    CU_ASSERT_EQUAL(dmg_greeting_go_on(&client, sockets[0]), DMG_GREETING_WAITS_TO_READ);
    CU_ASSERT_EQUAL(dmg_greeting_go_on(&server, sockets[1]), DMG_GREETING_WAITS_TO_READ);
    CU_ASSERT_EQUAL(recv(sockets[0], answer, sizeof answer, 0), sizeof answer);
    uint8_t nothing[112];
    CU_ASSERT_FALSE(exchange(sockets[0], &server, sockets[1], answer + 80, 32, nothing));
    CU_ASSERT_EQUAL(server.failure, DMG_ERR_PROTOCOL);
    close(sockets[0]);
    close(sockets[1]);
    /* To the client, what it said itself. */
    stream_sockets_open(KIND_LOCAL, sockets);
    dmg_greeting_begin(&client, false, false, DMG_STREAM_PLAIN, stream_token);
    CU_ASSERT_EQUAL(dmg_greeting_go_on(&client, sockets[0]), DMG_GREETING_WAITS_TO_READ);
    memset(answer, 0, sizeof answer);
    CU_ASSERT_EQUAL(recv(sockets[1], answer, sizeof answer, 0), 80);
    CU_ASSERT_EQUAL(send(sockets[1], answer, sizeof answer, 0), sizeof answer);
    CU_ASSERT_EQUAL(dmg_greeting_go_on(&client, sockets[0]), DMG_GREETING_FAILED);
    close(sockets[0]);
    close(sockets[1]);
}

/* ---- what is agreed ---- */

static void client_refuses_less_protection_than_it_wants(void)
{
    for (int is_less = 0; is_less < 2; is_less++) {
        int sockets[2];
        stream_greetings greetings;
        stream_sockets_open(KIND_TCP, sockets);
        stream_greetings_begin(&greetings, KIND_TCP, is_less ? DMG_STREAM_ENCRYPTED : DMG_STREAM_AUTHENTICATED,
                               is_less ? DMG_STREAM_AUTHENTICATED : DMG_STREAM_ENCRYPTED, stream_token, stream_token);
        stream_greetings_finish(&greetings, sockets);
        CU_ASSERT_EQUAL(greetings.states[0], is_less ? DMG_GREETING_FAILED : DMG_GREETING_DONE);
        CU_ASSERT_EQUAL(greetings.states[1], is_less ? DMG_GREETING_FAILED : DMG_GREETING_DONE);
        CU_ASSERT_TRUE(is_less || greetings.ends[0].session.protection == DMG_STREAM_ENCRYPTED);
        CU_ASSERT_TRUE(is_less || greetings.ends[1].session.protection == DMG_STREAM_ENCRYPTED);
        close(sockets[0]);
        close(sockets[1]);
    }
}

/* A client that knows the secret, and says a public key for which every shared key is the same. */
static void public_keys_without_a_secret_are_refused(void)
{
    static const uint8_t keys[][32] = {
        {0},
        {1},
        {0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a,
         0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int sockets[2];
        stream_greetings greetings;
        stream_sockets_open(KIND_TCP, sockets);
        stream_greetings_begin(&greetings, KIND_TCP, DMG_STREAM_PLAIN, DMG_STREAM_PLAIN, stream_token, stream_token);
        dmg_greeting *client = &greetings.ends[0];
        uint8_t words[64 + 80] = {0};
        memcpy(words + 64, "dmgsock1\1", 9);
        memcpy(words + 64 + 16, client->own_number, 32);
        memcpy(words + 64 + 48, keys[i], 32);
        memcpy(client->message, words + 64, 80);
        crypto_generichash_blake2b_salt_personal(client->transcript, 64, words, sizeof words, NULL, 0, NULL,
                                                 (const uint8_t *)"dmgraph words   ");
        client->is_written = true;
        stream_greetings_finish(&greetings, sockets);
        CU_ASSERT_EQUAL(greetings.states[0], DMG_GREETING_DONE);
        CU_ASSERT_EQUAL(greetings.states[1], DMG_GREETING_FAILED);
        CU_ASSERT_EQUAL(greetings.ends[1].failure, DMG_ERR_PROTOCOL);
        close(sockets[0]);
        close(sockets[1]);
    }
}

static void packets_that_are_longer_are_refused(void)
{
    int sockets[2];
    dmg_greeting server, client;
    uint8_t message[81];
    stream_sockets_open(KIND_PACKETS, sockets);
    dmg_greeting_begin(&server, true, false, DMG_STREAM_PLAIN, stream_token);
    dmg_greeting_begin(&client, false, false, DMG_STREAM_PLAIN, stream_token);
    CU_ASSERT_EQUAL(dmg_greeting_go_on(&client, sockets[0]), DMG_GREETING_WAITS_TO_READ);
    CU_ASSERT_EQUAL(recv(sockets[1], message, sizeof message, 0), 80);
    message[80] = 0;
    CU_ASSERT_EQUAL(send(sockets[0], message, sizeof message, 0), sizeof message);
    CU_ASSERT_EQUAL(dmg_greeting_go_on(&server, sockets[1]), DMG_GREETING_FAILED);
    CU_ASSERT_EQUAL(server.failure, DMG_ERR_PROTOCOL);
    close(sockets[0]);
    close(sockets[1]);
}

int main(int argc, char **argv)
{
    static const dmg_test greeting_tests[] = {
        DMG_TEST(ends_that_know_the_secret_greet_over_every_kind_of_socket),
        DMG_TEST(other_secret_is_refused_by_both_ends),
        DMG_TEST(greeting_says_nothing_of_the_secret),
        DMG_TEST(server_notices_each_bit_of_a_greeting_that_was_changed),
        DMG_TEST(recorded_greeting_opens_nothing),
        DMG_TEST(proof_of_a_server_is_none_of_a_client),
        DMG_TEST(client_refuses_less_protection_than_it_wants),
        DMG_TEST(public_keys_without_a_secret_are_refused),
        DMG_TEST(packets_that_are_longer_are_refused),
        {NULL, NULL},
    };
    if (sodium_init() < 0 || dmg_suite_add("greeting", NULL, NULL, greeting_tests) != 0 ||
        dmg_suite_add("records", NULL, NULL, stream_record_tests) != 0) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
