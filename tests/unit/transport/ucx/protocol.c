/*
 * Clients of the UCX backend that know the pool's secret and do not keep to the protocol: one misdeed after the other,
 * and frames of random bytes.
 */
#include "unit/transport/ucx/protocol.h"
#include "core/base/clock.h"
#include "unit/support/random.h"
#include "unit/transport/processes.h"
#include "unit/transport/ucx/liar.h"

#include <stdio.h>
#include <string.h>

#define FUZZ_ROUNDS 300

typedef struct crafted {
    dmg_ucx_header header;
    uint8_t payload[DMG_UCX_FRAME_BYTES];
    size_t payload_bytes;
} crafted;

static void craft(crafted *frame, const dmg_ucx_request *request, size_t payload_bytes)
{
    memset(frame, 0, sizeof *frame);
    memcpy(frame->payload, request, sizeof *request);
    frame->header = (dmg_ucx_header){.magic = DMG_UCX_MAGIC,
                                     .kind = DMG_UCX_REQUESTS,
                                     .count = 1,
                                     .bytes = (uint32_t)(sizeof *request + payload_bytes)};
    frame->payload_bytes = frame->header.bytes;
}

static void send_crafted(test_liar *liar, crafted *frame)
{
    liar_send(liar, &frame->header, sizeof frame->header, frame->payload, frame->payload_bytes);
}

typedef void (*misdeed)(test_liar *liar);

static void no_magic(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    frame.header.magic ^= 1;
    send_crafted(liar, &frame);
}

static void length_that_is_not_the_payloads(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 8);
    frame.payload_bytes -= 8;
    send_crafted(liar, &frame);
}

static void frame_of_an_unknown_kind(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    frame.header.kind = 77;
    send_crafted(liar, &frame);
}

static void what_only_memory_nodes_say(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    frame.header.kind = DMG_UCX_ANSWERS;
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

static void lane_request_of_a_wrong_size(test_liar *liar)
{
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_LANE, .bytes = 8}, 8);
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

static void half_a_header(test_liar *liar)
{
    liar_send(liar, "short", 5, NULL, 0);
}

static void nothing_at_all(test_liar *liar)
{
    liar_send(liar, "", 0, NULL, 0);
}

static void hello_twice(test_liar *liar)
{
    const dmg_ucx_hello hello = liar_hello(4711);
    liar_send_hello(liar, &hello, sizeof hello);
}

static void say_goodbye(test_liar *liar)
{
    dmg_ucx_header header = {.magic = DMG_UCX_MAGIC, .kind = DMG_UCX_GOODBYE};
    liar_send(liar, &header, sizeof header, NULL, 0);
}

static void goodbye_twice(test_liar *liar)
{
    say_goodbye(liar);
    say_goodbye(liar);
}

static void request_after_goodbye(test_liar *liar)
{
    say_goodbye(liar);
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    send_crafted(liar, &frame);
}

static const misdeed misdeeds[] = {no_magic,
                                   length_that_is_not_the_payloads,
                                   frame_of_an_unknown_kind,
                                   what_only_memory_nodes_say,
                                   unknown_kind,
                                   more_records_than_there_are,
                                   bytes_after_the_last_record,
                                   half_a_record,
                                   write_without_its_data,
                                   read_longer_than_a_frame,
                                   atomic_of_a_wrong_size,
                                   lane_request_of_a_wrong_size,
                                   message_that_is_too_long,
                                   type_of_more_than_32_bits,
                                   half_a_header,
                                   nothing_at_all,
                                   hello_twice,
                                   goodbye_twice,
                                   request_after_goodbye};

/** Connect and be let in. */
static void join(test_liar *liar, const test_pool *pool, uint64_t client)
{
    const dmg_ucx_hello hello = liar_hello(client);
    CU_ASSERT_TRUE_FATAL(liar_open(liar, pool->nodes[0].address, test_token));
    liar_send_hello(liar, &hello, sizeof hello);
    CU_ASSERT_TRUE_FATAL(liar_is_welcomed(liar));
}

void malformed_messages_cost_their_sender_the_connection(void)
{
    test_transport = "ucx:data=message";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    for (size_t i = 0; i < sizeof misdeeds / sizeof misdeeds[0]; i++) {
        test_liar liar;
        join(&liar, &pool, 1000 + i);
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
    CU_ASSERT_TRUE_FATAL(liar_open(&liar, pool.nodes[0].address, test_token));
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = 8}, 0);
    send_crafted(&liar, &frame);
    CU_ASSERT_TRUE(liar_is_cut_off(&liar));
    CU_ASSERT_EQUAL(liar.answers, 0);
    liar_close(&liar);
    CU_ASSERT_TRUE(test_node_serves(&pool, 0));
    test_pool_stop(&pool);
}

typedef struct odd_hello {
    dmg_ucx_hello hello;
    size_t bytes;
    dmg_status answer; /**< DMG_OK: none, the connection ends */
} odd_hello;

void hellos_that_are_not_right_are_refused(void)
{
    odd_hello cases[] = {
        {.hello = liar_hello(77), .answer = DMG_ERR_PROTOCOL},
        {.hello = liar_hello(77), .answer = DMG_ERR_UNSUPPORTED},
        {.hello = liar_hello(0)},
        {.hello = liar_hello(77)},
        {.hello = liar_hello(77), .bytes = 3},
        {.hello = liar_hello(77), .bytes = sizeof(dmg_ucx_hello) - 1},
        {.hello = liar_hello(77)},
    };
    cases[0].hello.version++;
    snprintf(cases[1].hello.messages, sizeof cases[1].hello.messages, "rc_verbs");
    cases[3].hello.reach.address_bytes = 4096;
    memset(cases[6].hello.messages, 'x', sizeof cases[6].hello.messages);
    test_transport = "ucx:data=message";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        test_liar liar;
        CU_ASSERT_TRUE_FATAL(liar_open(&liar, pool.nodes[0].address, test_token));
        liar_send_hello(&liar, &cases[i].hello, cases[i].bytes != 0 ? cases[i].bytes : sizeof cases[i].hello);
        if (cases[i].answer == DMG_OK) {
            CU_ASSERT_TRUE(liar_is_cut_off(&liar));
        } else {
            CU_ASSERT_FALSE(liar_is_welcomed(&liar));
            CU_ASSERT_EQUAL(liar.status, cases[i].answer);
        }
        liar_close(&liar);
        CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 0));
    }
    test_pool_stop(&pool);
}

void request_for_a_lane_that_the_node_has_not_is_refused(void)
{
    test_transport = "ucx:data=message";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    test_liar liar;
    join(&liar, &pool, 1);
    crafted frame;
    craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_LANE, .bytes = sizeof(dmg_ucx_card_address)},
          sizeof(dmg_ucx_card_address));
    send_crafted(&liar, &frame);
    CU_ASSERT_TRUE(liar_has_answers(&liar, 1));
    CU_ASSERT_EQUAL(liar.status, DMG_ERR_UNSUPPORTED);
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
    join(&liar, &pool, 1);
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
    join(&liar, &pool, 1);
    /* It asks for 100 times its window, without ever looking at what arrives. */
    for (uint32_t i = 0; i < 100 * DMG_UCX_WINDOW_BYTES / DMG_UCX_PIECE_BYTES; i++) {
        crafted frame;
        craft(&frame, &(dmg_ucx_request){.kind = DMG_UCX_READ, .bytes = DMG_UCX_PIECE_BYTES}, 0);
        send_crafted(&liar, &frame);
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
static void craft_fuzz(crafted *frame, dmg_random *random)
{
    static const uint32_t kinds[] = {DMG_UCX_READ, DMG_UCX_WRITE, DMG_UCX_CAS, DMG_UCX_FAA, DMG_UCX_CALL};
    memset(frame, 0, sizeof *frame);
    frame->header = (dmg_ucx_header){.magic = DMG_UCX_MAGIC, .kind = DMG_UCX_REQUESTS};
    uint32_t records = (uint32_t)(dmg_random_next(random) % 20);
    uint32_t used = 0;
    for (uint32_t i = 0; i < records; i++) {
        dmg_ucx_request request = {.kind = kinds[dmg_random_next(random) % 5],
                                   .bytes = (uint32_t)(dmg_random_next(random) % 600)};
        request.id = dmg_random_next(random);
        request.offset = request.kind == DMG_UCX_CALL ? TEST_ECHO : dmg_random_next(random) % (2 * TEST_SEGMENT_BYTES);
        if (request.kind == DMG_UCX_CAS || request.kind == DMG_UCX_FAA) {
            request.bytes = request.kind == DMG_UCX_CAS ? 16 : 8;
        }
        memcpy(frame->payload + used, &request, sizeof request);
        used += (uint32_t)sizeof request + (request.kind == DMG_UCX_READ ? 0 : (uint32_t)dmg_ucx_padded(request.bytes));
    }
    frame->header.count = records;
    frame->header.bytes = used;
    frame->payload_bytes = used;
    uint32_t changes = (uint32_t)(dmg_random_next(random) % 4);
    for (uint32_t i = 0; i < changes && used > 0; i++) {
        frame->payload[dmg_random_next(random) % used] ^= (uint8_t)dmg_random_next(random);
    }
    if (dmg_random_next(random) % 4 == 0) {
        frame->header.count ^= (uint32_t)(1u << dmg_random_next(random) % 32);
    }
    if (dmg_random_next(random) % 4 == 0) {
        frame->header.bytes = (uint32_t)(dmg_random_next(random) % (used + 64));
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
    dmg_random random = {dmg_test_seed()};
    test_liar liar = {0};
    bool is_open = false;
    for (uint32_t round = 0; round < FUZZ_ROUNDS; round++) {
        if (!is_open) {
            join(&liar, &pool, 5000 + round);
            is_open = true;
        }
        crafted frame;
        craft_fuzz(&frame, &random);
        if (dmg_random_next(&random) % 16 == 0) {
            frame.header.kind = (uint32_t)dmg_random_next(&random) % 8;
        }
        send_crafted(&liar, &frame);
        CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 0));
        if (!liar_look(&liar)) {
            liar_close(&liar);
            is_open = false;
        }
    }
    if (is_open) {
        liar_close(&liar);
    }
    test_pool_stop(&pool);
}
