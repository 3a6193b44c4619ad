/*
 * Channels over an emulated link, on every backend. Times are only ever compared in the direction that no load can
 * reverse: an operation may always take longer than its link, and never less.
 */
#include "core/base/clock.h"
#include "transport/core.h"
#include "transport/link/model.h"
#include "unit/support/suite.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES (UINT64_C(4) << 20)
#define LATENCY_NS    UINT64_C(2000000)
#define ROUNDS        5
#define DATA_BYTES    5000
#define MANY          3000 /* more than a queue holds */
#define TYPE_DOUBLE   DMG_MESSAGE_TYPE_FIRST

static const char *transport;
static dmg_server *server;
static pthread_t server_thread;

static void answer_double(void *context, dmg_server *serving, const dmg_request *request)
{
    (void)context;
    uint64_t number;
    memcpy(&number, request->payload, sizeof number);
    number *= 2;
    dmg_server_reply(serving, request->reply_token, DMG_OK, &number, sizeof number);
}

static void *serve(void *argument)
{
    dmg_server_serve(argument);
    return NULL;
}

static int start(const char *name)
{
    transport = name;
    const dmg_server_options options = {
        .transport = name, .segment = {.bytes = SEGMENT_BYTES, .numa_node = -1}, .on_request = answer_double};
    return dmg_server_create(&options, &server) != DMG_OK || pthread_create(&server_thread, NULL, serve, server) != 0;
}

static int start_cxl_shm(void)
{
    return start("cxl_shm");
}

static int start_ucx(void)
{
    return start("ucx");
}

static int start_ucx_message(void)
{
    return start("ucx:data=message");
}

static int stop(void)
{
    dmg_server_stop(server);
    pthread_join(server_thread, NULL);
    dmg_server_destroy(server);
    return 0;
}

static dmg_link_settings link_of(dmg_link_mode mode)
{
    dmg_link_settings settings = {.name = "test", .line_bytes = 1, .mode = mode};
    for (int cell = DMG_LINK_READ_LATENCY; cell <= DMG_LINK_MESSAGE_LATENCY; cell++) {
        settings.cells[cell] = (double)LATENCY_NS;
    }
    return settings;
}

static dmg_client *open_client(const dmg_link_settings *settings)
{
    const char *address = dmg_server_address(server);
    const dmg_client_options options = {
        .transport = transport, .addresses = &address, .address_count = 1, .link = settings};
    dmg_client *client = NULL;
    CU_ASSERT_EQUAL_FATAL(dmg_client_open(&options, &client), DMG_OK);
    return client;
}

static dmg_channel *open_channel(dmg_client *client)
{
    dmg_channel *channel = NULL;
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(client, &channel), DMG_OK);
    return channel;
}

static dmg_address place(uint64_t offset)
{
    return dmg_address_make(0, 8192 + offset);
}

static void operations_do_what_they_do_without(void)
{
    const dmg_link_mode modes[] = {DMG_LINK_SPIN, DMG_LINK_ACCOUNT};
    for (size_t mode = 0; mode < 2; mode++) {
        dmg_link_settings settings = link_of(modes[mode]);
        for (int cell = DMG_LINK_READ_LATENCY; cell <= DMG_LINK_MESSAGE_LATENCY && modes[mode] == DMG_LINK_ACCOUNT;
             cell++) {
            settings.cells[cell] = 1e9; /* nobody waits for it */
        }
        dmg_client *client = open_client(&settings);
        dmg_channel *channel = open_channel(client);
        static char written[DATA_BYTES], read[DATA_BYTES];
        for (int i = 0; i < DATA_BYTES; i++) {
            written[i] = (char)(i * 7 + (int)mode);
        }
        CU_ASSERT_EQUAL(dmg_write(channel, written, place(0), DATA_BYTES), DMG_OK);
        CU_ASSERT_EQUAL(dmg_read(channel, place(0), read, DATA_BYTES), DMG_OK);
        CU_ASSERT_EQUAL(memcmp(read, written, DATA_BYTES), 0);
        uint64_t zero = 0, seen = 99;
        CU_ASSERT_EQUAL(dmg_write(channel, &zero, place(8000), 8), DMG_OK);
        CU_ASSERT_EQUAL(dmg_faa64(channel, place(8000), 5, &seen), DMG_OK);
        CU_ASSERT_EQUAL(seen, 0);
        CU_ASSERT_EQUAL(dmg_cas64(channel, place(8000), 5, 17, &seen), DMG_OK);
        CU_ASSERT_EQUAL(seen, 5);
        CU_ASSERT_EQUAL(dmg_cas64(channel, place(8000), 5, 18, &seen), DMG_OK);
        CU_ASSERT_EQUAL(seen, 17);
        uint64_t number = 21;
        dmg_call call = {.reply = &number, .reply_capacity = sizeof number};
        CU_ASSERT_EQUAL(dmg_message(channel, 0, TYPE_DOUBLE, &number, sizeof number, &call), DMG_OK);
        CU_ASSERT_EQUAL(number, 42);
        const dmg_counters *counters = dmg_channel_counters(channel);
        CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_READ], 1);
        CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_WRITE], 2);
        CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_CAS], 2);
        CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_FAA], 1);
        CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_MESSAGE], 1);
        CU_ASSERT_EQUAL(counters->modelled_ns > 0, modes[mode] == DMG_LINK_ACCOUNT);
        dmg_channel_close(channel);
        dmg_client_close(client);
    }
}

static void echo_comes_back(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_ACCOUNT);
    dmg_client *client = open_client(&settings);
    dmg_channel *channel = open_channel(client);
    char text[] = "an echo";
    char back[sizeof text] = "";
    dmg_call call = {.reply = back, .reply_capacity = sizeof back};
    CU_ASSERT_EQUAL(dmg_message(channel, 0, DMG_MESSAGE_TYPE_ECHO, text, sizeof text, &call), DMG_OK);
    CU_ASSERT_STRING_EQUAL(back, text);
    dmg_channel_close(channel);
    dmg_client_close(client);
}

/* So many operations, one after the other. */
static void run_rounds(dmg_channel *channel)
{
    uint64_t word = 0;
    for (int i = 0; i < ROUNDS; i++) {
        CU_ASSERT_EQUAL(dmg_read(channel, place(0), &word, 8), DMG_OK);
        CU_ASSERT_EQUAL(dmg_write(channel, &word, place(0), 8), DMG_OK);
        CU_ASSERT_EQUAL(dmg_faa64(channel, place(0), 1, &word), DMG_OK);
    }
}

static const dmg_link *model_of(const dmg_client *client)
{
    return (const dmg_link *)client->lower;
}

static void nothing_takes_less_than_its_link(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_SPIN);
    dmg_client *client = open_client(&settings);
    dmg_channel *channel = open_channel(client);
    uint64_t start_ns = dmg_now_ns();
    run_rounds(channel);
    /* Less what the model subtracts for its own cost, which a busy machine makes look larger. */
    CU_ASSERT_TRUE(dmg_now_ns() - start_ns >= 3 * ROUNDS * LATENCY_NS / 2);
    CU_ASSERT_TRUE(dmg_channel_counters(channel)->wait_ns >= 3 * ROUNDS * LATENCY_NS / 2);
    dmg_channel_close(channel);
    dmg_client_close(client);
}

static void accounted_and_real_time_add_up_to_the_link(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_ACCOUNT);
    dmg_client *client = open_client(&settings);
    dmg_channel *channel = open_channel(client);
    uint64_t start_ns = dmg_now_ns();
    run_rounds(channel);
    uint64_t elapsed_ns = dmg_now_ns() - start_ns;
    uint64_t modelled_ns = dmg_channel_counters(channel)->modelled_ns;
    CU_ASSERT_TRUE(modelled_ns + elapsed_ns + ROUNDS * 2000 >= 3 * ROUNDS * LATENCY_NS); /* posts are backdated */
    CU_ASSERT_TRUE(modelled_ns <= 3 * ROUNDS * LATENCY_NS * 1001 / 1000);
    dmg_channel_close(channel);
    dmg_client_close(client);
}

static void what_is_posted_together_waits_together(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_ACCOUNT);
    dmg_client *client = open_client(&settings);
    dmg_channel *channel = open_channel(client);
    uint64_t words[64];
    dmg_completion completion = {0};
    for (int i = 0; i < 64; i++) {
        dmg_post_read(channel, place(8 * (uint64_t)i), &words[i], 8, &completion);
    }
    CU_ASSERT_EQUAL(completion.pending, 64);
    CU_ASSERT_EQUAL(dmg_wait(channel, &completion), DMG_OK);
    CU_ASSERT_TRUE(dmg_channel_counters(channel)->modelled_ns <= LATENCY_NS * 1001 / 1000);
    dmg_channel_close(channel);
    dmg_client_close(client);
}

static void operations_end_in_their_order(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_ACCOUNT);
    settings.cells[DMG_LINK_WRITE_LATENCY] = 50e6;
    settings.cells[DMG_LINK_READ_LATENCY] = 1;
    dmg_client *client = open_client(&settings);
    dmg_channel *channel = open_channel(client);
    uint64_t word = 1;
    dmg_completion slow = {0}, quick = {0};
    dmg_post_write(channel, &word, place(0), 8, &slow);
    dmg_post_read(channel, place(64), &word, 8, &quick);
    CU_ASSERT_EQUAL(dmg_wait(channel, &quick), DMG_OK);
    CU_ASSERT_EQUAL(slow.pending, 0);
    dmg_channel_close(channel);
    dmg_client_close(client);
}

static void more_than_the_queue_holds_gets_through(void)
{
    const dmg_link_mode modes[] = {DMG_LINK_SPIN, DMG_LINK_ACCOUNT};
    for (size_t mode = 0; mode < 2; mode++) {
        dmg_link_settings settings = link_of(modes[mode]);
        settings.cells[DMG_LINK_READ_RATE] = 1;
        dmg_client *client = open_client(&settings);
        dmg_channel *channel = open_channel(client);
        static uint64_t words[MANY];
        dmg_completion completion = {0};
        for (uint64_t i = 0; i < MANY; i++) {
            dmg_post_read(channel, place(8 * i), &words[i], 8, &completion);
        }
        CU_ASSERT_EQUAL(dmg_wait(channel, &completion), DMG_OK);
        CU_ASSERT_EQUAL(completion.pending, 0);
        dmg_channel_close(channel);
        dmg_client_close(client);
    }
}

static void closing_cancels_what_the_link_holds(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_SPIN);
    settings.cells[DMG_LINK_READ_LATENCY] = 1e9;
    settings.cells[DMG_LINK_MESSAGE_LATENCY] = 1e9;
    dmg_client *client = open_client(&settings);
    dmg_channel *channel = open_channel(client);
    uint64_t word = 0, number = 4;
    dmg_completion completion = {0}, message = {0};
    dmg_call call = {.reply = &number, .reply_capacity = sizeof number};
    dmg_post_read(channel, place(0), &word, 8, &completion);
    dmg_post_call(channel, 0, TYPE_DOUBLE, &number, sizeof number, &call, &message);
    dmg_channel_poll(channel);
    dmg_channel_close(channel);
    CU_ASSERT_EQUAL(completion.pending, 0);
    CU_ASSERT_EQUAL(completion.status, DMG_ERR_CANCELLED);
    CU_ASSERT_EQUAL(message.pending, 0);
    CU_ASSERT_EQUAL(message.status, DMG_ERR_CANCELLED);
    dmg_client_close(client);
}

static void death_of_a_node_ends_what_the_link_holds(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_SPIN);
    settings.cells[DMG_LINK_MESSAGE_LATENCY] = 1e9;
    settings.cells[DMG_LINK_READ_LATENCY] = 1e9;
    dmg_client *client = open_client(&settings);
    dmg_channel *channel = open_channel(client);
    uint64_t word = 0, number = 4;
    dmg_completion completion = {0};
    dmg_call call = {.reply = &number, .reply_capacity = sizeof number};
    dmg_post_read(channel, place(0), &word, 8, &completion);
    dmg_post_call(channel, 0, TYPE_DOUBLE, &number, sizeof number, &call, &completion);
    dmg_client_mark_dead(client, 0, "was declared dead by a test");
    dmg_channel_poll(channel);
    CU_ASSERT_EQUAL(completion.pending, 0);
    CU_ASSERT_EQUAL(dmg_read(channel, place(0), &word, 8), DMG_ERR_PEER);
    dmg_channel_close(channel);
    dmg_client_close(client);
}

static void clients_share_the_clocks_of_a_node(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_SPIN);
    settings.cells[DMG_LINK_READ_BANDWIDTH] = 1;
    dmg_client *first = open_client(&settings);
    dmg_client *second = open_client(&settings);
    CU_ASSERT_PTR_NOT_EQUAL(model_of(first)->pages[0], model_of(second)->pages[0]);
    dmg_channel *channel = open_channel(first);
    static char data[DATA_BYTES];
    CU_ASSERT_EQUAL(dmg_read(channel, place(0), data, DATA_BYTES), DMG_OK);
    uint64_t moved = model_of(first)->pages[0]->clocks[DMG_LINK_READ_BYTES].free_at;
    CU_ASSERT_NOT_EQUAL(moved, 0);
    CU_ASSERT_EQUAL(model_of(second)->pages[0]->clocks[DMG_LINK_READ_BYTES].free_at, moved);
    dmg_channel_close(channel);
    dmg_client_close(second);
    dmg_client_close(first);
}

static void mapped_spans_are_charged(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_ACCOUNT);
    dmg_client *client = open_client(&settings);
    dmg_channel *channel = open_channel(client);
    CU_ASSERT_TRUE(dmg_channel_charges_atomics(channel));
    const dmg_counters *counters = dmg_channel_counters(channel);
    dmg_channel_charge_read(channel, place(0), 100);
    uint64_t one = counters->modelled_ns;
    CU_ASSERT_TRUE(one > 0 && one <= LATENCY_NS * 1001 / 1000);
    for (uint64_t i = 0; i < 100; i++) {
        dmg_channel_charge_read_ahead(channel, place(64 * i), 8);
    }
    CU_ASSERT_EQUAL(counters->modelled_ns, one);
    dmg_channel_charge_wait(channel);
    CU_ASSERT_TRUE(counters->modelled_ns - one <= LATENCY_NS * 1001 / 1000); /* they overlap */
    dmg_channel_charge_write(channel, place(0), 8);
    dmg_channel_charge_atomic(channel, place(0));
    CU_ASSERT_EQUAL(counters->mapped_spans, 102);
    dmg_channel_charge_read(channel, dmg_address_make(9, 0), 8); /* no such node: nothing to charge */
    dmg_channel_close(channel);
    dmg_client_close(client);
}

/* When accounting nobody waits, so that the tail may be longer than any disturbance of this test. */
static void tails_are_accounted_for(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_ACCOUNT);
    settings.cells[DMG_LINK_READ_P99] = 0.5e9;
    settings.cells[DMG_LINK_READ_P999] = 1e9;
    dmg_client *client = open_client(&settings);
    dmg_channel *channel = open_channel(client);
    const dmg_counters *counters = dmg_channel_counters(channel);
    uint64_t drawn = DMG_LINK_FIRST_DRAW;
    uint32_t tails = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t word;
        uint64_t before = counters->modelled_ns;
        if (i % 2) {
            CU_ASSERT_EQUAL(dmg_read(channel, place(0), &word, sizeof word), DMG_OK);
        } else {
            dmg_channel_charge_read(channel, place(0), sizeof word);
        }
        bool is_tail = dmg_link_draw_tail(&model_of(client)->costs, DMG_OPERATION_READ, &drawn) > 0;
        CU_ASSERT_EQUAL(counters->modelled_ns - before > 100000000, is_tail);
        tails += is_tail;
    }
    CU_ASSERT_TRUE(tails > 0);
    dmg_channel_close(channel);
    dmg_client_close(client);
}

static void mode_is_chosen_by_cores_and_announced(void)
{
    dmg_link_settings settings = link_of(DMG_LINK_AUTO);
    settings.spinners = 100000;
    dmg_client *client = open_client(&settings);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_client_capabilities(client)->chosen, "emulated link 'test', accounting"));
    dmg_client_close(client);
    settings.mode = DMG_LINK_SPIN;
    client = open_client(&settings);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(dmg_client_capabilities(client)->chosen, "emulated link 'test', spinning (as asked)"));
    dmg_client_close(client);
    client = open_client(NULL);
    CU_ASSERT_PTR_NULL(strstr(dmg_client_capabilities(client)->chosen, "emulated"));
    dmg_channel *channel = open_channel(client);
    CU_ASSERT_FALSE(dmg_channel_charges_atomics(channel));
    CU_ASSERT_PTR_NULL(channel->operations->held_ns);
    dmg_channel_close(channel);
    dmg_client_close(client);
}

static void links_that_make_no_sense_are_refused(void)
{
    const char *address = dmg_server_address(server);
    dmg_link_settings settings = link_of(DMG_LINK_ACCOUNT);
    settings.cells[DMG_LINK_READ_RATE] = -1;
    const dmg_client_options options = {
        .transport = transport, .addresses = &address, .address_count = 1, .link = &settings};
    dmg_client *client;
    CU_ASSERT_EQUAL(dmg_client_open(&options, &client), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_NULL(client);
}

static const dmg_test tests[] = {DMG_TEST(operations_do_what_they_do_without),
                                 DMG_TEST(echo_comes_back),
                                 DMG_TEST(nothing_takes_less_than_its_link),
                                 DMG_TEST(accounted_and_real_time_add_up_to_the_link),
                                 DMG_TEST(what_is_posted_together_waits_together),
                                 DMG_TEST(operations_end_in_their_order),
                                 DMG_TEST(more_than_the_queue_holds_gets_through),
                                 DMG_TEST(closing_cancels_what_the_link_holds),
                                 DMG_TEST(death_of_a_node_ends_what_the_link_holds),
                                 DMG_TEST(clients_share_the_clocks_of_a_node),
                                 DMG_TEST(mapped_spans_are_charged),
                                 DMG_TEST(tails_are_accounted_for),
                                 DMG_TEST(mode_is_chosen_by_cores_and_announced),
                                 DMG_TEST(links_that_make_no_sense_are_refused),
                                 {NULL, NULL}};

int main(int argc, char **argv)
{
    if (dmg_suite_add("cxl_shm", start_cxl_shm, stop, tests) || dmg_suite_add("ucx", start_ucx, stop, tests) ||
        dmg_suite_add("ucx by message", start_ucx_message, stop, tests)) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
