/* Listeners with strangers at their sockets. Clients are threads, which wait for their greetings. */
#include "transport_stream_support.h"

#include "core/base/clock.h"
#include "dmgraph/status.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKEND "streams"

/* A client that connects, and says something when it has greeted. */
typedef struct test_client {
    pthread_t thread;
    char address[DMG_ADDRESS_STRING_BYTES];
    const uint8_t *token;
    dmg_stream_protection wanted;
    dmg_status status;
    char sentence[256];
    dmg_stream *stream;
} test_client;

static void *run_client(void *argument)
{
    test_client *client = argument;
    dmg_stream_address address;
    dmg_watch watch;
    const dmg_stream_options options = {.token = client->token, .wanted = client->wanted, .record_bytes_max = 1000};
    dmg_watch_start(&watch, dmg_test_deadline_ns(20), dmg_now_ns());
    client->status = dmg_stream_address_parse(BACKEND, client->address, &address);
    if (client->status == DMG_OK) {
        client->status = dmg_stream_connect(&options, &address, client->address, &watch, &client->stream);
    }
    if (client->status == DMG_OK) {
        dmg_stream_send(client->stream, "hello", 6, NULL, 0);
    } else {
        snprintf(client->sentence, sizeof client->sentence, "%s", dmg_error_message());
    }
    return NULL;
}

static void client_start(test_client *client, const char *address, const uint8_t *token, dmg_stream_protection wanted)
{
    *client = (test_client){.token = token, .wanted = wanted};
    snprintf(client->address, sizeof client->address, "%s", address);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&client->thread, NULL, run_client, client), 0);
}

static void client_join(test_client *client)
{
    pthread_join(client->thread, NULL);
}

static dmg_listener *listen_at(const char *bind, dmg_stream_protection wanted, uint64_t timeout_ns)
{
    const dmg_listener_options options = {
        .backend = BACKEND,
        .bind = bind,
        .stream = {.token = stream_token, .wanted = wanted, .record_bytes_max = 1000},
        .greeting_timeout_ns = timeout_ns,
    };
    dmg_listener *listener = NULL;
    CU_ASSERT_EQUAL_FATAL(dmg_listener_open(&options, &listener), DMG_OK);
    return listener;
}

/* The streams that came in; tests have few. */
typedef struct arrivals {
    dmg_stream *streams[8];
    uint32_t count;
} arrivals;

static void on_stream(void *context, dmg_stream *stream)
{
    arrivals *arrived = context;
    CU_ASSERT_FATAL(arrived->count < 8);
    arrived->streams[arrived->count++] = stream;
}

static void await_stream(dmg_listener *listener, arrivals *arrived)
{
    for (dmg_test_wait wait = dmg_test_wait_for(10); arrived->count == 0 && dmg_test_goes_on(&wait);) {
        dmg_listener_progress(listener, dmg_now_ns(), on_stream, arrived);
    }
}

static void clients_connect_at_every_kind_of_address(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/dmgraph-stream-%d", (int)getpid());
    const char *const binds[] = {NULL, path, "127.0.0.1:0", "[::1]:0"};
    for (size_t i = 0; i < sizeof binds / sizeof *binds; i++) {
        dmg_listener *listener = listen_at(binds[i], DMG_STREAM_PLAIN, dmg_test_deadline_ns(20));
        arrivals arrived = {0};
        test_client client;
        size_t bytes;
        client_start(&client, dmg_listener_address(listener), stream_token, DMG_STREAM_PLAIN);
        await_stream(listener, &arrived);
        client_join(&client);
        CU_ASSERT_EQUAL(client.status, DMG_OK);
        CU_ASSERT_EQUAL_FATAL(arrived.count, 1);
        const char *heard = stream_receive_wait(arrived.streams[0], &bytes);
        CU_ASSERT_PTR_NOT_NULL_FATAL(heard);
        CU_ASSERT_STRING_EQUAL(heard, "hello");
        CU_ASSERT_EQUAL(dmg_stream_protected(client.stream), i < 2 ? DMG_STREAM_PLAIN : DMG_STREAM_AUTHENTICATED);
        dmg_process process;
        dmg_stream_identify_peer(arrived.streams[0], &process);
        CU_ASSERT_EQUAL(process.pid, i < 2 ? getpid() : 0);
        CU_ASSERT_EQUAL(dmg_listener_counted(listener)->greeted, 1);
        CU_ASSERT_EQUAL(dmg_listener_strangers(listener), 0);
        dmg_stream_close(client.stream);
        dmg_stream_close(arrived.streams[0]);
        dmg_listener_close(listener);
    }
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(clients_connect_at_every_kind_of_address),
        {NULL, NULL},
    };
    return dmg_suite_add("listener", NULL, NULL, tests) != 0 ? 1 : dmg_suites_run(argc, argv);
}
