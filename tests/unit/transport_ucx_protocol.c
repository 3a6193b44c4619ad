/*
 * Clients of the UCX backend that do not keep to its protocol: one misdeed after the other, and frames of random bytes.
 */
#include "transport_ucx_protocol.h"
#include "core/base/clock.h"
#include "transport_processes.h"
#include "transport_ucx_liar.h"

#include <stdio.h>
#include <string.h>

#define FUZZ_ROUNDS 300

typedef struct crafted {
    dmg_ucx_header header;
    uint8_t payload[DMG_UCX_FRAME_BYTES];
} crafted;

static void craft(crafted *frame, const dmg_ucx_request *request, size_t payload_bytes)
{
    memset(frame, 0, sizeof *frame);
    memcpy(frame->payload, request, sizeof *request);
    frame->header =
        (dmg_ucx_header){.magic = DMG_UCX_MAGIC, .count = 1, .bytes = (uint32_t)(sizeof *request + payload_bytes)};
}

static void send_crafted(test_liar *liar, crafted *frame)
{
    frame->header.channel += liar->channel;
    liar_send(liar, DMG_UCX_REQUESTS, &frame->header, sizeof frame->header, frame->payload, frame->header.bytes);
}

typedef void (*misdeed)(test_liar *liar);

static void no_magic(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    frame.header.magic ^= 1;
    send_crafted(liar, &frame);
}

static void anothers_channel(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    frame.header.channel = UINT32_MAX - liar->channel; /* ends as another connection's number */
    send_crafted(liar, &frame);
}

static void unknown_kind(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = 77, .bytes = 8}, 8);
    send_crafted(liar, &frame);
}

static void more_records_than_there_are(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    frame.header.count = UINT32_MAX;
    send_crafted(liar, &frame);
}

static void bytes_after_the_last_record(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 64);
    send_crafted(liar, &frame);
}

static void half_a_record(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    frame.header.bytes = sizeof(dmg_ucx_request) / 2;
    send_crafted(liar, &frame);
}

static void write_without_its_data(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_WRITE, .bytes = UINT32_MAX}, 8);
    send_crafted(liar, &frame);
}

static void read_longer_than_a_frame(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 1 << 20}, 0);
    send_crafted(liar, &frame);
}

static void atomic_of_a_wrong_size(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_CAS, .bytes = 4096}, 4096);
    send_crafted(liar, &frame);
}

static void message_that_is_too_long(test_liar *liar)
{
    crafted frame;
    craft(
        &frame,
        &(dmg_ucx_request){.kind = DMG_UCX_CALL, .bytes = DMG_MESSAGE_BYTES_MAX + 8, .offset = DMG_MESSAGE_TYPE_FIRST},
        DMG_MESSAGE_BYTES_MAX + 8);
    send_crafted(liar, &frame);
}

static void type_of_more_than_32_bits(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_CALL, .offset = UINT64_C(1) << 40}, 0);
    send_crafted(liar, &frame);
}

static void header_of_a_wrong_length(test_liar *liar)
{
    liar_send(liar, DMG_UCX_REQUESTS, "short", 5, NULL, 0);
}

static void hello_twice(test_liar *liar)
{
    liar_say_hello(liar, test_token, 4711, DMG_UCX_VERSION);
}

static void a_frame_by_rendezvous(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    frame.header.channel = liar->channel;
    liar_send_by_rendezvous(liar, DMG_UCX_REQUESTS, &frame.header, sizeof frame.header, frame.payload,
                            frame.header.bytes);
}

static void goodbye_for_another(test_liar *liar)
{
    dmg_ucx_header header = {.magic = DMG_UCX_MAGIC, .channel = UINT32_MAX};
    liar_send(liar, DMG_UCX_GOODBYE, &header, sizeof header, NULL, 0);
}

static void request_after_goodbye(test_liar *liar)
{
    dmg_ucx_header header = {.magic = DMG_UCX_MAGIC, .channel = liar->channel};
    liar_send(liar, DMG_UCX_GOODBYE, &header, sizeof header, NULL, 0);
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    send_crafted(liar, &frame);
}

static const misdeed misdeeds[] = {no_magic,
                                   anothers_channel,
                                   unknown_kind,
                                   more_records_than_there_are,
                                   bytes_after_the_last_record,
                                   half_a_record,
                                   write_without_its_data,
                                   read_longer_than_a_frame,
                                   atomic_of_a_wrong_size,
                                   message_that_is_too_long,
                                   type_of_more_than_32_bits,
                                   header_of_a_wrong_length,
                                   hello_twice,
                                   a_frame_by_rendezvous,
                                   goodbye_for_another,
                                   request_after_goodbye};

void malformed_messages_cost_their_sender_the_connection(void)
{
    test_transport = "ucx:data=message";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    for (size_t i = 0; i < sizeof misdeeds / sizeof misdeeds[0]; i++) {
        test_liar liar;
        CU_ASSERT_TRUE_FATAL(liar_open(&liar, pool.nodes[0].address));
        liar_say_hello(&liar, test_token, 1000 + i, DMG_UCX_VERSION);
        CU_ASSERT_TRUE_FATAL(liar_is_welcomed(&liar));
        misdeeds[i](&liar);
        if (!liar_is_cut_off(&liar)) {
            printf("\n    misdeed %zu was let pass\n", i);
            CU_FAIL("a malformed message was let pass");
        }
        liar_close(&liar);
        CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 0));
    }
    test_pool_stop(&pool);
}

void requests_before_a_hello_are_refused(void)
{
    test_transport = "ucx:data=message";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    test_liar liar;
    CU_ASSERT_TRUE_FATAL(liar_open(&liar, pool.nodes[0].address));
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    send_crafted(&liar, &frame);
    CU_ASSERT_TRUE(liar_is_cut_off(&liar));
    CU_ASSERT_EQUAL(liar.answers, 0);
    liar_close(&liar);
    CU_ASSERT_TRUE(liar_open(&liar, pool.nodes[0].address));
    liar_send(&liar, DMG_UCX_HELLO, "nonsense", 8, "nonsense", 8);
    CU_ASSERT_TRUE(liar_is_cut_off(&liar));
    liar_close(&liar);
    CU_ASSERT_TRUE(liar_open(&liar, pool.nodes[0].address));
    liar_say_hello(&liar, test_token, 77, DMG_UCX_VERSION + 1);
    CU_ASSERT_FALSE(liar_is_welcomed(&liar));
    CU_ASSERT_EQUAL(liar.status, DMG_ERR_PROTOCOL);
    liar_close(&liar);
    CU_ASSERT_TRUE(test_node_serves(&pool, 0));
    test_pool_stop(&pool);
}

void messages_that_nobody_knows_are_ignored(void)
{
    static const unsigned ids[] = {0, 7, 8, 63, 200, 1000, 4095, 30000, 65535};
    test_transport = "ucx:data=message";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    test_liar liar;
    CU_ASSERT_TRUE_FATAL(liar_open(&liar, pool.nodes[0].address));
    liar_say_hello(&liar, test_token, 1, DMG_UCX_VERSION);
    CU_ASSERT_TRUE_FATAL(liar_is_welcomed(&liar));
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    frame.header.channel = liar.channel;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        liar_send(&liar, ids[i], &frame.header, sizeof frame.header, frame.payload, frame.header.bytes);
        CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 0));
    }
    liar_send(&liar, DMG_UCX_REQUESTS, &frame.header, sizeof frame.header, frame.payload, frame.header.bytes);
    CU_ASSERT_TRUE(liar_has_answers(&liar, 1));
    liar_close(&liar);
    test_pool_stop(&pool);
}

void spans_outside_the_segment_are_answered_with_an_error(void)
{
    static const dmg_ucx_request requests[] = {
        {.kind = DMG_UCX_READ, .bytes = 8, .offset = TEST_SEGMENT_BYTES},
        {.kind = DMG_UCX_READ, .bytes = 64, .offset = TEST_SEGMENT_BYTES - 8},
        {.kind = DMG_UCX_READ, .bytes = 64, .offset = UINT64_MAX - 8},
        {.kind = DMG_UCX_WRITE, .bytes = 64, .offset = TEST_SEGMENT_BYTES - 8},
        {.kind = DMG_UCX_WRITE, .bytes = 8, .offset = UINT64_MAX},
        {.kind = DMG_UCX_FAA, .bytes = 8, .offset = TEST_SEGMENT_BYTES},
        {.kind = DMG_UCX_FAA, .bytes = 8, .offset = 12},
        {.kind = DMG_UCX_CAS, .bytes = 16, .offset = UINT64_MAX - 7},
    };
    test_transport = "ucx:data=message";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    test_liar liar;
    CU_ASSERT_TRUE_FATAL(liar_open(&liar, pool.nodes[0].address));
    liar_say_hello(&liar, test_token, 1, DMG_UCX_VERSION);
    CU_ASSERT_TRUE_FATAL(liar_is_welcomed(&liar));
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        crafted frame;
        craft(&frame, &requests[i], requests[i].kind == DMG_UCX_READ ? 0 : requests[i].bytes);
        send_crafted(&liar, &frame);
        CU_ASSERT_TRUE(liar_has_answers(&liar, i + 1));
        CU_ASSERT_EQUAL(liar.status, DMG_ERR_ARGUMENT);
    }
    liar_close(&liar);
    test_pool_stop(&pool);
}

void client_that_takes_no_answers_is_cut_off(void)
{
    test_transport = "ucx:data=message";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    test_liar liar;
    CU_ASSERT_TRUE_FATAL(liar_open(&liar, pool.nodes[0].address));
    liar_say_hello(&liar, test_token, 1, DMG_UCX_VERSION);
    CU_ASSERT_TRUE_FATAL(liar_is_welcomed(&liar));
    /* It asks for 100 times its window, without ever looking at what arrives. */
    for (uint32_t i = 0; i < 100 * DMG_UCX_WINDOW_BYTES / DMG_UCX_PIECE_BYTES; i++) {
        crafted frame;
        craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = DMG_UCX_PIECE_BYTES}, 0);
        frame.header.channel = liar.channel;
        liar_send_without_progress(&liar, DMG_UCX_REQUESTS, &frame.header, sizeof frame.header, frame.payload,
                                   frame.header.bytes);
    }
    CU_ASSERT_TRUE(test_node_serves(&pool, 0));
    for (dmg_test_wait wait = dmg_test_wait_for(10); dmg_test_goes_on(&wait);) {
        gone_report report = {0};
        CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_GONE, &report, sizeof report), DMG_OK);
        if (report.died == 1) {
            break;
        }
    }
    CU_ASSERT_TRUE(liar_is_cut_off(&liar));
    liar_close(&liar);
    test_pool_stop(&pool);
}

/* A frame of several records, most of them right, with some bytes changed. */
static void craft_fuzz(crafted *frame, uint64_t *random)
{
    static const uint32_t kinds[] = {DMG_UCX_READ, DMG_UCX_WRITE, DMG_UCX_CAS, DMG_UCX_FAA, DMG_UCX_CALL};
    memset(frame, 0, sizeof *frame);
    frame->header.magic = DMG_UCX_MAGIC;
    uint32_t records = (uint32_t)(test_random_next(random) % 20);
    uint32_t used = 0;
    for (uint32_t i = 0; i < records; i++) {
        dmg_ucx_request request = {.kind = kinds[test_random_next(random) % 5],
                                   .bytes = (uint32_t)(test_random_next(random) % 600)};
        request.id = test_random_next(random);
        request.offset = request.kind == DMG_UCX_CALL ? TEST_ECHO : test_random_next(random) % (2 * TEST_SEGMENT_BYTES);
        if (request.kind == DMG_UCX_CAS || request.kind == DMG_UCX_FAA) {
            request.bytes = request.kind == DMG_UCX_CAS ? 16 : 8;
        }
        memcpy(frame->payload + used, &request, sizeof request);
        used += (uint32_t)sizeof request + (request.kind == DMG_UCX_READ ? 0 : (uint32_t)dmg_ucx_padded(request.bytes));
    }
    frame->header.count = records;
    frame->header.bytes = used;
    uint32_t changes = (uint32_t)(test_random_next(random) % 4);
    for (uint32_t i = 0; i < changes && used > 0; i++) {
        frame->payload[test_random_next(random) % used] ^= (uint8_t)test_random_next(random);
    }
    if (test_random_next(random) % 4 == 0) {
        frame->header.count ^= (uint32_t)(1u << test_random_next(random) % 32);
    }
    if (test_random_next(random) % 4 == 0) {
        frame->header.bytes = (uint32_t)(test_random_next(random) % (used + 64));
    }
    for (uint32_t at = 0; at + 8 <= used; at += 8) {
        /* A fuzzer that happened to tell the node to stop would prove nothing. */
        uint64_t word;
        memcpy(&word, frame->payload + at, sizeof word);
        if (word == TEST_STOP) {
            frame->payload[at] = TEST_ECHO;
        }
    }
}

void fuzzed_frames_leave_the_node_serving(void)
{
    test_transport = "ucx:data=message";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    uint64_t random = dmg_test_seed();
    test_liar liar = {0};
    bool is_open = false;
    for (uint32_t round = 0; round < FUZZ_ROUNDS; round++) {
        if (!is_open) {
            CU_ASSERT_TRUE_FATAL(liar_open(&liar, pool.nodes[0].address));
            liar_say_hello(&liar, test_token, 5000 + round, DMG_UCX_VERSION);
            CU_ASSERT_TRUE_FATAL(liar_is_welcomed(&liar));
            is_open = true;
        }
        crafted frame;
        craft_fuzz(&frame, &random);
        if (test_random_next(&random) % 16 == 0) {
            frame.header.channel = (uint32_t)test_random_next(&random) % 8;
        }
        send_crafted(&liar, &frame);
        CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 0));
        liar_progress(&liar);
        if (liar.is_cut_off) {
            liar_close(&liar);
            is_open = false;
        }
    }
    if (is_open) {
        liar_close(&liar);
    }
    test_pool_stop(&pool);
}
