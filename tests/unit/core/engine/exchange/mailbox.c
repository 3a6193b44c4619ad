/*
 * The mailbox in which compute nodes leave items for each other: what is written, what is refused, and workers side by
 * side. That every item is taken exactly once, whatever the interleaving, is in mailbox_interleavings.c.
 */
#include "unit/support/suite.h"

#include "unit/core/engine/exchange/mailbox_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *transport;

/* ---- sizes and figures ---- */

#define VALUES_MAX 4096

static void place_value(mailbox_fixture *fixture, uint32_t rank, uint32_t worker, uint32_t receiver, uint64_t value)
{
    void *room = dmg_mailbox_reserve(fixture->mailboxes[rank], fixture->channels[rank][worker], worker, receiver);
    CU_ASSERT_PTR_NOT_NULL_FATAL(room);
    memcpy(room, &value, sizeof value);
}

static void flush_and_publish(mailbox_fixture *fixture, uint32_t rank)
{
    for (uint32_t worker = 0; worker < fixture->workers; worker++) {
        CU_ASSERT_EQUAL(dmg_mailbox_flush(fixture->mailboxes[rank], fixture->channels[rank][worker], worker), DMG_OK);
    }
    CU_ASSERT_EQUAL(dmg_mailbox_publish(fixture->mailboxes[rank], fixture->channels[rank][0]), DMG_OK);
}

/* Take all that is there for a rank; returns how many. */
static uint32_t take_all(mailbox_fixture *fixture, uint32_t rank, uint64_t *values)
{
    uint32_t buffers;
    uint32_t taken = 0;
    uint32_t count = 1;
    CU_ASSERT_EQUAL(dmg_mailbox_collect(fixture->mailboxes[rank], fixture->channels[rank][0], &buffers), DMG_OK);
    while (count > 0) {
        CU_ASSERT_EQUAL_FATAL(
            dmg_mailbox_receive(fixture->mailboxes[rank], fixture->channels[rank][0], 0, values + taken, &count),
            DMG_OK);
        taken += count;
        CU_ASSERT_TRUE_FATAL(taken + dmg_mailbox_items_a_buffer(fixture->mailboxes[rank]) <= VALUES_MAX);
    }
    return taken;
}

static void what_is_written_is_items_and_directories_and_nothing_else(void)
{
    mailbox_fixture fixture;
    uint64_t values[VALUES_MAX];
    mailbox_fixture_open(&fixture, transport, 2, 1, sizeof *values, 10, 100);
    place_value(&fixture, 0, 0, 1, 0); /* takes pool memory */
    flush_and_publish(&fixture, 0);
    flush_and_publish(&fixture, 1);
    CU_ASSERT_EQUAL(take_all(&fixture, 1, values), 1);
    mailbox_fixture_clear(&fixture, 0);
    mailbox_fixture_clear(&fixture, 1);
    const dmg_counters before = *dmg_channel_counters(fixture.channels[0][0]);
    for (uint64_t i = 0; i < 25; i++) {
        place_value(&fixture, 0, 0, 1, i);
    }
    flush_and_publish(&fixture, 0);
    const dmg_counters *after = dmg_channel_counters(fixture.channels[0][0]);
    /* Buffers of 10, 10 and 5 items; a directory of as many lines and a head, for one other rank. */
    CU_ASSERT_EQUAL(after->operations[DMG_OPERATION_WRITE] - before.operations[DMG_OPERATION_WRITE], 3 + 1);
    CU_ASSERT_EQUAL(after->bytes[DMG_OPERATION_WRITE] - before.bytes[DMG_OPERATION_WRITE],
                    25 * sizeof *values + 4 * sizeof(dmg_mailbox_line));
    dmg_passed sent = {0}, taken = {0}, nothing = {0};
    dmg_mailbox_count(fixture.mailboxes[0], &sent, &taken);
    CU_ASSERT_EQUAL(sent.items, 26);
    CU_ASSERT_EQUAL(sent.buffers, 4);
    CU_ASSERT_EQUAL(sent.bytes, 26 * sizeof *values);
    CU_ASSERT_EQUAL(memcmp(&taken, &nothing, sizeof taken), 0);
    flush_and_publish(&fixture, 1);
    CU_ASSERT_EQUAL(take_all(&fixture, 1, values), 25);
    dmg_mailbox_count(fixture.mailboxes[1], &nothing, &taken);
    CU_ASSERT_EQUAL(memcmp(&sent, &taken, sizeof sent), 0);
    mailbox_fixture_close(&fixture);
}

static void a_full_directory_takes_no_more_and_keeps_what_it_has(void)
{
    mailbox_fixture fixture;
    uint64_t values[VALUES_MAX];
    mailbox_fixture_open(&fixture, transport, 3, 1, sizeof *values, 2, 4);
    for (uint64_t i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(dmg_mailbox_is_filling_up(fixture.mailboxes[0]), i > 4);
        place_value(&fixture, 0, 0, 1, i);
    }
    CU_ASSERT_PTR_NULL(dmg_mailbox_reserve(fixture.mailboxes[0], fixture.channels[0][0], 0, 1));
    place_value(&fixture, 0, 0, 2, 100); /* there is room for another rank */
    for (uint32_t rank = 0; rank < 3; rank++) {
        flush_and_publish(&fixture, rank);
    }
    CU_ASSERT_EQUAL(take_all(&fixture, 1, values), 8);
    for (uint64_t i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(values[i], i);
    }
    CU_ASSERT_EQUAL(take_all(&fixture, 2, values), 1);
    CU_ASSERT_EQUAL(values[0], 100);
    CU_ASSERT_EQUAL(take_all(&fixture, 0, values), 0);
    mailbox_fixture_clear(&fixture, 0);
    CU_ASSERT_FALSE(dmg_mailbox_is_filling_up(fixture.mailboxes[0]));
    place_value(&fixture, 0, 0, 1, 0);
    flush_and_publish(&fixture, 0);
    mailbox_fixture_close(&fixture);
}

static void a_pool_without_memory_for_a_buffer_takes_no_items(void)
{
    mailbox_fixture fixture;
    dmg_address address;
    mailbox_fixture_open(&fixture, transport, 2, 1, 8, 10, 100);
    for (uint64_t bytes = MAILBOX_FIXTURE_SEGMENT_BYTES; bytes >= 4096; bytes /= 2) {
        for (uint16_t node = 0; node < 2; node++) {
            while (dmg_pool_allocate(fixture.channels[0][0], node, fixture.pool.job.id, bytes, &address) == DMG_OK) {
            }
        }
    }
    CU_ASSERT_PTR_NULL(dmg_mailbox_reserve(fixture.mailboxes[0], fixture.channels[0][0], 0, 1));
    CU_ASSERT_TRUE(dmg_mailbox_is_filling_up(fixture.mailboxes[0]));
    flush_and_publish(&fixture, 0);
    flush_and_publish(&fixture, 1);
    uint64_t values[VALUES_MAX];
    CU_ASSERT_EQUAL(take_all(&fixture, 1, values), 0);
    mailbox_fixture_close(&fixture);
}

static void directories_of_another_round_and_impossible_ones_are_refused(void)
{
    mailbox_fixture fixture;
    uint32_t buffers;
    mailbox_fixture_open(&fixture, transport, 2, 1, 8, 10, 100);
    CU_ASSERT_EQUAL(dmg_mailbox_collect(fixture.mailboxes[1], fixture.channels[1][0], &buffers), DMG_ERR_PROTOCOL);
    flush_and_publish(&fixture, 0);
    CU_ASSERT_EQUAL(dmg_mailbox_collect(fixture.mailboxes[1], fixture.channels[1][0], &buffers), DMG_OK);
    /* Rank 0's directory for rank 1 is the third of four, in the order of receivers and then senders. */
    dmg_mailbox_line lines[2] = {{.count = 101, .round = 1}, {.round = 1}};
    dmg_completion completion = {0};
    dmg_range_array_post_write(fixture.channels[0][0], &fixture.directories, 2 * 101, 1, lines, &completion);
    CU_ASSERT_EQUAL(dmg_wait(fixture.channels[0][0], &completion), DMG_OK);
    CU_ASSERT_EQUAL(dmg_mailbox_collect(fixture.mailboxes[1], fixture.channels[1][0], &buffers), DMG_ERR_CORRUPT);
    lines[0].count = 1;
    lines[1].count = 11; /* of 10 that fit */
    dmg_range_array_post_write(fixture.channels[0][0], &fixture.directories, 2 * 101, 2, lines, &completion);
    CU_ASSERT_EQUAL(dmg_wait(fixture.channels[0][0], &completion), DMG_OK);
    CU_ASSERT_EQUAL(dmg_mailbox_collect(fixture.mailboxes[1], fixture.channels[1][0], &buffers), DMG_OK);
    uint64_t values[10];
    CU_ASSERT_EQUAL(dmg_mailbox_receive(fixture.mailboxes[1], fixture.channels[1][0], 0, values, &buffers),
                    DMG_ERR_CORRUPT);
    mailbox_fixture_close(&fixture);
}

static void sizes_that_cannot_be_are_refused(void)
{
    dmg_budget *budget;
    dmg_mailbox *mailbox;
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &budget), DMG_OK);
    const dmg_mailbox_setup good = {
        .budget = budget, .ranks = 2, .workers = 1, .item_bytes = 8, .buffer_bytes = 8, .buffers_max = 1};
    dmg_mailbox_setup bad[5] = {good, good, good, good, good};
    bad[0].ranks = DMG_COMPUTE_NODES_MAX + 1;
    bad[1].buffer_bytes = 7;
    bad[2].buffer_bytes = DMG_MAILBOX_BUFFER_BYTES_MAX + 1;
    bad[3].buffers_max = 0;
    bad[4].buffers_max = DMG_MAILBOX_BUFFERS_MAX + 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT_NOT_EQUAL(dmg_mailbox_create(&bad[i], &mailbox), DMG_OK);
        CU_ASSERT_PTR_NULL(mailbox);
    }
    CU_ASSERT_EQUAL(dmg_mailbox_create(&good, &mailbox), DMG_OK);
    dmg_mailbox_destroy(mailbox);
    dmg_budget_destroy(budget);
}

/* ---- workers side by side ---- */

#define VALUES_A_WORKER 500

struct worker {
    mailbox_fixture *fixture;
    uint32_t rank;
    uint32_t index;
    uint32_t refused;
    uint64_t taken[VALUES_MAX];
    uint32_t taken_count;
};

static uint64_t value_of(uint32_t rank, uint32_t worker, uint32_t index)
{
    return ((uint64_t)rank << 40) | ((uint64_t)worker << 32) | index;
}

static void *send_values(void *context)
{
    struct worker *worker = context;
    mailbox_fixture *fixture = worker->fixture;
    dmg_channel *channel = fixture->channels[worker->rank][worker->index];
    for (uint32_t i = 0; i < VALUES_A_WORKER; i++) {
        void *room = dmg_mailbox_reserve(fixture->mailboxes[worker->rank], channel, worker->index, 1 - worker->rank);
        uint64_t value = value_of(worker->rank, worker->index, i);
        if (room) {
            memcpy(room, &value, sizeof value);
        } else {
            worker->refused++;
        }
    }
    (void)dmg_mailbox_flush(fixture->mailboxes[worker->rank], channel, worker->index);
    return NULL;
}

static void *take_values(void *context)
{
    struct worker *worker = context;
    mailbox_fixture *fixture = worker->fixture;
    dmg_channel *channel = fixture->channels[worker->rank][worker->index];
    uint32_t count = 1;
    while (count > 0 && dmg_mailbox_receive(fixture->mailboxes[worker->rank], channel, worker->index,
                                            worker->taken + worker->taken_count, &count) == DMG_OK) {
        worker->taken_count += count;
    }
    return NULL;
}

static void run_all(void *(*run)(void *context), struct worker *workers, uint32_t count)
{
    pthread_t threads[2 * MAILBOX_FIXTURE_WORKERS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, run, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Every value is taken once, or was refused. */
static void expect_every_value_once(const struct worker *workers, uint32_t count)
{
    static uint8_t times[2][MAILBOX_FIXTURE_WORKERS_MAX][VALUES_A_WORKER];
    uint32_t taken = 0;
    uint32_t refused = 0;
    memset(times, 0, sizeof times);
    for (uint32_t i = 0; i < count; i++) {
        refused += workers[i].refused;
        for (uint32_t j = 0; j < workers[i].taken_count; j++) {
            uint64_t value = workers[i].taken[j];
            CU_ASSERT_EQUAL_FATAL(value >> 40, 1 - workers[i].rank);
            CU_ASSERT_EQUAL(times[value >> 40][value >> 32 & 0xff][value & 0xffffffff]++, 0);
            taken++;
        }
    }
    CU_ASSERT_EQUAL(taken + refused, count * VALUES_A_WORKER);
}

static void workers_share_directories_and_buffers(void)
{
    static const uint32_t bounds[][2] = {{1, 1000}, {2, 1000}, {7, 1000}, {3, 50}}; /* items a buffer, buffers */
    static struct worker workers[2 * MAILBOX_FIXTURE_WORKERS_MAX];
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        mailbox_fixture fixture;
        mailbox_fixture_open(&fixture, transport, 2, MAILBOX_FIXTURE_WORKERS_MAX, 8, bounds[i][0], bounds[i][1]);
        memset(workers, 0, sizeof workers);
        for (uint32_t j = 0; j < 2 * MAILBOX_FIXTURE_WORKERS_MAX; j++) {
            workers[j].fixture = &fixture;
            workers[j].rank = j / MAILBOX_FIXTURE_WORKERS_MAX;
            workers[j].index = j % MAILBOX_FIXTURE_WORKERS_MAX;
        }
        run_all(send_values, workers, 2 * MAILBOX_FIXTURE_WORKERS_MAX);
        uint32_t buffers;
        for (uint32_t rank = 0; rank < 2; rank++) {
            CU_ASSERT_EQUAL(dmg_mailbox_publish(fixture.mailboxes[rank], fixture.channels[rank][0]), DMG_OK);
        }
        for (uint32_t rank = 0; rank < 2; rank++) {
            CU_ASSERT_EQUAL(dmg_mailbox_collect(fixture.mailboxes[rank], fixture.channels[rank][0], &buffers), DMG_OK);
        }
        run_all(take_values, workers, 2 * MAILBOX_FIXTURE_WORKERS_MAX);
        expect_every_value_once(workers, 2 * MAILBOX_FIXTURE_WORKERS_MAX);
        mailbox_fixture_close(&fixture);
    }
}

/* What a rank leaves for itself is read like all else, in every round, and its directory is not written. */
static void a_rank_takes_what_it_has_left_for_itself(void)
{
    mailbox_fixture fixture;
    uint64_t values[VALUES_MAX];
    mailbox_fixture_open(&fixture, transport, 2, 1, sizeof *values, 10, 100);
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 25; i++) {
            place_value(&fixture, 0, 0, 0, 100 * round + i);
        }
        place_value(&fixture, 1, 0, 0, 100 * round + 25);
        const dmg_counters before = *dmg_channel_counters(fixture.channels[0][0]);
        for (uint32_t rank = 0; rank < 2; rank++) {
            flush_and_publish(&fixture, rank);
        }
        const dmg_counters *after = dmg_channel_counters(fixture.channels[0][0]);
        /* The third buffer, and the head of the directory for rank 1. */
        CU_ASSERT_EQUAL(after->bytes[DMG_OPERATION_WRITE] - before.bytes[DMG_OPERATION_WRITE],
                        5 * sizeof *values + sizeof(dmg_mailbox_line));
        bool is_taken[26] = {false};
        CU_ASSERT_EQUAL_FATAL(take_all(&fixture, 0, values), 26);
        for (uint32_t i = 0; i < 26; i++) {
            CU_ASSERT_TRUE_FATAL(values[i] >= 100 * round && values[i] < 100 * round + 26);
            is_taken[values[i] - 100 * round] = true;
        }
        for (uint32_t i = 0; i < 26; i++) {
            CU_ASSERT_TRUE(is_taken[i]);
        }
        CU_ASSERT_EQUAL(take_all(&fixture, 1, values), 0);
        mailbox_fixture_clear(&fixture, 0);
        mailbox_fixture_clear(&fixture, 1);
    }
    mailbox_fixture_close(&fixture);
}

static const dmg_test tests[] = {
    DMG_TEST(what_is_written_is_items_and_directories_and_nothing_else),
    DMG_TEST(a_full_directory_takes_no_more_and_keeps_what_it_has),
    DMG_TEST(a_pool_without_memory_for_a_buffer_takes_no_items),
    DMG_TEST(directories_of_another_round_and_impossible_ones_are_refused),
    DMG_TEST(a_rank_takes_what_it_has_left_for_itself),
    DMG_TEST(sizes_that_cannot_be_are_refused),
    DMG_TEST(workers_share_directories_and_buffers),
    {NULL, NULL},
};

/* Suites run in the order of the transports; each set-up moves on to the next. */
static int next_transport(void)
{
    static size_t index;
    transport = dmg_test_transports[index++];
    return 0;
}

int main(int argc, char **argv)
{
    for (size_t i = 0; dmg_test_transports[i]; i++) {
        if (dmg_suite_add(dmg_test_transports[i], next_transport, NULL, tests) != 0) {
            return 1;
        }
    }
    return dmg_suites_run(argc, argv);
}
