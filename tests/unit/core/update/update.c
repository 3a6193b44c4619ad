/*
 * Updates that leave a compute node: none is lost and none applied twice, whoever updates the same words at the same
 * time, and by whatever method.
 */
#include "unit/support/suite.h"

#include "core/engine/exchange/coordinator.h"
#include "unit/support/pool_fixture.h"
#include "unit/support/random_graph.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES (UINT64_C(8) << 20)
#define VERTICES      300
#define UPDATERS      3
#define UPDATES       4000

/* A link that has no atomics across compute nodes. */
static const dmg_link_settings no_atomics = {
    .name = "no atomics",
    .cells = {[DMG_LINK_READ_LATENCY] = 700, [DMG_LINK_WRITE_LATENCY] = 700, [DMG_LINK_MESSAGE_LATENCY] = 2800},
    .line_bytes = 64,
    .mode = DMG_LINK_ACCOUNT};

static const char *transport;
static bool are_own_updates; /* over that link */
static unsigned long long seed;

/* Updaters take turns: all methods at once work on the same words. */
static const dmg_update_method methods[] = {DMG_UPDATE_DIRECT, DMG_UPDATE_VALRD_NODE};

struct updater {
    const dmg_test_pool *pool;
    dmg_update_target target;
    dmg_update_method method;
    uint64_t seed;
    uint32_t (*vertex_of)(dmg_random *random);
    uint64_t (*value_of)(dmg_random *random);
    dmg_update_counters counters;
    dmg_status status;
};

static void *updater_main(void *argument)
{
    struct updater *updater = argument;
    dmg_random random = {updater->seed};
    dmg_budget *budget = NULL;
    dmg_channel *channel = NULL;
    dmg_update_coordinator coordinator = {0};
    updater->status = dmg_budget_create(0, &budget);
    if (updater->status == DMG_OK) {
        updater->status = dmg_channel_open(updater->pool->client, &channel);
    }
    if (updater->status == DMG_OK) {
        updater->status = dmg_update_coordinator_create(updater->pool->client, channel, budget,
                                                        DMG_VALUE_BUFFER_BYTES_DEFAULT, &coordinator);
    }
    if (updater->status == DMG_OK) {
        dmg_update_coordinator_set_target(&coordinator, updater->method, &updater->target);
        for (uint32_t i = 0; i < UPDATES; i++) {
            uint32_t vertex = updater->vertex_of(&random);
            dmg_update_coordinator_update(&coordinator, vertex, updater->value_of(&random));
        }
        updater->status = dmg_update_coordinator_flush(&coordinator);
        updater->counters = dmg_update_coordinator_count(&coordinator);
    }
    dmg_update_coordinator_destroy(&coordinator);
    dmg_channel_close(channel);
    dmg_budget_destroy(budget);
    return NULL;
}

static uint32_t any_vertex(dmg_random *random)
{
    return (uint32_t)dmg_random_below(random, VERTICES);
}

static uint64_t any_value(dmg_random *random)
{
    return dmg_random_below(random, 1000000);
}

static uint64_t small_integer_as_double(dmg_random *random)
{
    return dmg_double_to_bits((double)dmg_random_below(random, 16)); /* sums of these are exact in any order */
}

/* The arrays of a test, filled with start values. */
struct arrays {
    dmg_range_array attributes;
    dmg_range_array activation;
};

static void make_arrays(dmg_channel *channel, uint64_t job, uint32_t bytes, int fill, struct arrays *arrays)
{
    CU_ASSERT_EQUAL_FATAL(dmg_range_array_allocate(channel, job, VERTICES, bytes, &arrays->attributes), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(
        dmg_range_array_allocate_beside(channel, job, &arrays->attributes, 64, 8, &arrays->activation), DMG_OK);
    uint8_t start[VERTICES * 8];
    memset(start, fill, sizeof start);
    dmg_completion completion = {0};
    dmg_range_array_post_write(channel, &arrays->attributes, 0, VERTICES, start, &completion);
    CU_ASSERT_EQUAL_FATAL(dmg_wait(channel, &completion), DMG_OK);
}

static void read_array(dmg_channel *channel, const dmg_range_array *array, void *to)
{
    dmg_completion completion = {0};
    dmg_range_array_post_read(channel, array, 0, array->count, to, &completion);
    CU_ASSERT_EQUAL_FATAL(dmg_wait(channel, &completion), DMG_OK);
}

static void open_without_atomics(dmg_test_pool *pool)
{
    dmg_client_close(pool->client);
    pool->options.link = &no_atomics;
    CU_ASSERT_EQUAL_FATAL(dmg_client_open(&pool->options, &pool->client), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_join(pool), DMG_OK);
}

/* Run all updaters side by side, then the same updates here: `apply` keeps the expected attributes. */
static void update_side_by_side(dmg_combine combine, int fill, uint64_t (*value_of)(dmg_random *random),
                                void (*apply)(void *expected, uint32_t vertex, uint64_t value), void *expected,
                                void *attributes, uint64_t *activation, dmg_update_counters *counters)
{
    dmg_test_pool pool = {0};
    dmg_channel *channel;
    struct arrays arrays;
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, 2, SEGMENT_BYTES, &pool), DMG_OK);
    if (are_own_updates) {
        open_without_atomics(&pool);
    }
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool.client, &channel), DMG_OK);
    make_arrays(channel, pool.job.id, dmg_combine_bytes(combine), fill, &arrays);
    struct updater updaters[UPDATERS];
    pthread_t threads[UPDATERS];
    for (uint32_t i = 0; i < UPDATERS; i++) {
        updaters[i] =
            (struct updater){.pool = &pool,
                             .target = {.combine = combine,
                                        .attributes = &arrays.attributes,
                                        .activation = combine == DMG_COMBINE_ADD_DOUBLE ? NULL : &arrays.activation,
                                        .has_one_writer = are_own_updates},
                             .method = are_own_updates ? DMG_UPDATE_DIRECT : methods[i % 2],
                             .seed = seed + i,
                             .vertex_of = any_vertex,
                             .value_of = value_of};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, updater_main, &updaters[i]), 0);
    }
    memset(counters, 0, sizeof *counters);
    for (uint32_t i = 0; i < UPDATERS; i++) {
        pthread_join(threads[i], NULL);
        CU_ASSERT_EQUAL(updaters[i].status, DMG_OK);
        counters->updates += updaters[i].counters.updates;
        counters->activated += updaters[i].counters.activated;
        dmg_random random = {seed + i};
        for (uint32_t j = 0; j < UPDATES; j++) {
            uint32_t vertex = any_vertex(&random);
            apply(expected, vertex, value_of(&random));
        }
    }
    read_array(channel, &arrays.attributes, attributes);
    read_array(channel, &arrays.activation, activation);
    dmg_channel_close(channel);
    dmg_test_pool_stop(&pool);
}

static void minimum_32(void *expected, uint32_t vertex, uint64_t value)
{
    uint32_t *attributes = expected;
    attributes[vertex] = (uint32_t)value < attributes[vertex] ? (uint32_t)value : attributes[vertex];
}

static void minimum_64(void *expected, uint32_t vertex, uint64_t value)
{
    uint64_t *attributes = expected;
    attributes[vertex] = value < attributes[vertex] ? value : attributes[vertex];
}

static void add_double(void *expected, uint32_t vertex, uint64_t value)
{
    ((double *)expected)[vertex] += dmg_bits_to_double(value);
}

/* Every updated vertex, and no other, is active; each was counted once. */
static void expect_activation(const uint64_t *activation, const bool *is_updated, uint64_t activated)
{
    uint64_t updated = 0;
    uint64_t wrong = 0;
    for (uint32_t v = 0; v < VERTICES; v++) {
        updated += is_updated[v];
        wrong += (activation[v / 64] >> (v % 64) & 1) != is_updated[v];
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(activated, updated);
}

static void minima_of_4_bytes_lose_no_update_and_leave_their_neighbour_alone(void)
{
    uint32_t expected[VERTICES], attributes[VERTICES];
    uint64_t activation[(VERTICES + 63) / 64];
    bool is_updated[VERTICES];
    dmg_update_counters counters;
    memset(expected, 0xff, sizeof expected);
    update_side_by_side(DMG_COMBINE_MIN_UINT32, 0xff, any_value, minimum_32, expected, attributes, activation,
                        &counters);
    CU_ASSERT_EQUAL(memcmp(expected, attributes, sizeof expected), 0);
    for (uint32_t v = 0; v < VERTICES; v++) {
        is_updated[v] = expected[v] != UINT32_MAX;
    }
    expect_activation(activation, is_updated, counters.activated);
    CU_ASSERT_EQUAL(counters.updates, UPDATERS * UPDATES);
}

static void minima_of_8_bytes_lose_no_update(void)
{
    uint64_t expected[VERTICES], attributes[VERTICES];
    uint64_t activation[(VERTICES + 63) / 64];
    bool is_updated[VERTICES];
    dmg_update_counters counters;
    memset(expected, 0xff, sizeof expected);
    update_side_by_side(DMG_COMBINE_MIN_UINT64, 0xff, any_value, minimum_64, expected, attributes, activation,
                        &counters);
    CU_ASSERT_EQUAL(memcmp(expected, attributes, sizeof expected), 0);
    for (uint32_t v = 0; v < VERTICES; v++) {
        is_updated[v] = expected[v] != UINT64_MAX;
    }
    expect_activation(activation, is_updated, counters.activated);
}

static void sums_count_every_update_once(void)
{
    double expected[VERTICES] = {0}, attributes[VERTICES];
    uint64_t activation[(VERTICES + 63) / 64];
    dmg_update_counters counters;
    update_side_by_side(DMG_COMBINE_ADD_DOUBLE, 0, small_integer_as_double, add_double, expected, attributes,
                        activation, &counters);
    CU_ASSERT_EQUAL(memcmp(expected, attributes, sizeof expected), 0);
    CU_ASSERT_EQUAL(counters.activated, 0);
}

/* Where updates go by operations: one read and one swap a word, and the same for the words of the bitmap. */
static void updates_to_one_word_are_one_read_and_one_swap(void)
{
    dmg_test_pool pool = {0};
    dmg_channel *channel;
    dmg_budget *budget;
    dmg_direct_remote *queue;
    struct arrays arrays;
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, 1, SEGMENT_BYTES, &pool), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool.client, &channel), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &budget), DMG_OK);
    make_arrays(channel, pool.job.id, 8, 0xff, &arrays);
    CU_ASSERT_EQUAL_FATAL(dmg_direct_remote_create(pool.client, channel, budget, &queue), DMG_OK);
    const dmg_update_target target = {
        .combine = DMG_COMBINE_MIN_UINT64, .attributes = &arrays.attributes, .activation = &arrays.activation};
    dmg_direct_remote_set_target(queue, &target);
    const dmg_counters before = *dmg_channel_counters(channel);
    for (uint32_t i = 0; i < 30; i++) {
        dmg_direct_remote_update(queue, i % 3, 1000 - i); /* three words of attributes, one of the bitmap */
    }
    CU_ASSERT_EQUAL(dmg_direct_remote_flush(queue), DMG_OK);
    const dmg_counters *after = dmg_channel_counters(channel);
    bool is_mapped = dmg_client_capabilities(pool.client)->atomics == DMG_ATOMICS_CALLER_CPU &&
                     (dmg_client_capabilities(pool.client)->flags & DMG_CAPABILITY_LOAD_STORE) != 0;
    uint64_t operations = is_mapped ? 0 : 4;
    CU_ASSERT_EQUAL(after->operations[DMG_OPERATION_READ] - before.operations[DMG_OPERATION_READ], operations);
    CU_ASSERT_EQUAL(after->operations[DMG_OPERATION_CAS] - before.operations[DMG_OPERATION_CAS], operations);
    CU_ASSERT_EQUAL(dmg_direct_remote_count(queue)->activated, 3);
    CU_ASSERT_EQUAL(after->lost_swaps - before.lost_swaps, dmg_direct_remote_count(queue)->lost_swaps);
    dmg_direct_remote_destroy(queue);
    dmg_channel_close(channel);
    dmg_budget_destroy(budget);
    dmg_test_pool_stop(&pool);
}

struct cost {
    uint64_t locks;
    uint64_t spans;
    uint64_t waits;
    dmg_update_counters counters;
};

/* Two updates of each of 64 vertices, which lie on 8 lines and their bits on one; the second comes too late. */
static struct cost cost_of_updates(const dmg_test_pool *pool, bool has_one_writer, bool came_by_owner)
{
    dmg_channel *channel;
    dmg_budget *budget;
    dmg_direct_remote *queue;
    struct arrays arrays;
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool->client, &channel), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &budget), DMG_OK);
    make_arrays(channel, pool->job.id, 8, 0xff, &arrays);
    CU_ASSERT_EQUAL_FATAL(dmg_direct_remote_create(pool->client, channel, budget, &queue), DMG_OK);
    const dmg_update_target target = {.combine = DMG_COMBINE_MIN_UINT64,
                                      .attributes = &arrays.attributes,
                                      .activation = &arrays.activation,
                                      .has_one_writer = has_one_writer};
    dmg_direct_remote_set_target(queue, &target);
    const dmg_counters before = *dmg_channel_counters(channel);
    for (uint32_t i = 0; i < 128; i++) {
        uint64_t value = i < 64 ? 1000 : 2000;
        if (came_by_owner) {
            dmg_direct_remote_update_own(queue, i % 64, value);
        } else {
            dmg_direct_remote_update(queue, i % 64, value);
        }
        if (i == 63) {
            CU_ASSERT_EQUAL(dmg_direct_remote_flush(queue), DMG_OK);
        }
    }
    CU_ASSERT_EQUAL(dmg_direct_remote_flush(queue), DMG_OK);
    const dmg_counters *after = dmg_channel_counters(channel);
    const struct cost cost = {.locks = after->mapped_atomics - before.mapped_atomics,
                              .spans = after->mapped_spans - before.mapped_spans,
                              .waits = after->mapped_waits - before.mapped_waits,
                              .counters = *dmg_direct_remote_count(queue)};
    dmg_direct_remote_destroy(queue);
    dmg_channel_close(channel);
    dmg_budget_destroy(budget);
    return cost;
}

static void own_updates_take_no_locks_and_are_fetched_and_written_together(void)
{
    dmg_test_pool pool = {0};
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, 1, SEGMENT_BYTES, &pool), DMG_OK);
    const dmg_capabilities plain = *dmg_client_capabilities(pool.client);
    open_without_atomics(&pool);
    const dmg_capabilities *capabilities = dmg_client_capabilities(pool.client);
    bool takes_locks = plain.atomics == DMG_ATOMICS_CALLER_CPU;
    CU_ASSERT_EQUAL(capabilities->atomics, takes_locks ? DMG_ATOMICS_CALLER_LOCK : plain.atomics);
    CU_ASSERT_EQUAL(capabilities->flags, plain.flags);
    const uint32_t needed = DMG_CAPABILITY_LOAD_STORE | DMG_CAPABILITY_COHERENT;
    bool is_mapped = takes_locks && (plain.flags & needed) == needed;
    for (int way = 0; way < 3; way++) {
        bool came_by_owner = way == 2;
        struct cost cost = cost_of_updates(&pool, way == 1, came_by_owner);
        CU_ASSERT_EQUAL(cost.counters.updates, came_by_owner ? 0 : 128);
        CU_ASSERT_EQUAL(cost.counters.applied, 64);
        CU_ASSERT_EQUAL(cost.counters.activated, 64);
        CU_ASSERT_EQUAL(cost.locks, is_mapped && way == 0 ? 64 : 0);
        /* 8 lines of attributes and one of bits, in and out; those that change nothing cost nothing. */
        CU_ASSERT_EQUAL(cost.spans, is_mapped && way > 0 ? 2 * (8 + 1) : 0);
        CU_ASSERT_EQUAL(cost.waits, is_mapped ? (way == 0 ? 0 : 2) : 0);
    }
    dmg_test_pool_stop(&pool);
}

/* A thousand updates to one memory node by value: two messages, and no other operation. */
static void updates_by_value_are_a_message_for_hundreds(void)
{
    dmg_test_pool pool = {0};
    dmg_channel *channel;
    dmg_budget *budget;
    dmg_update_coordinator coordinator = {0};
    struct arrays arrays;
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, 1, SEGMENT_BYTES, &pool), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool.client, &channel), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &budget), DMG_OK);
    make_arrays(channel, pool.job.id, 8, 0xff, &arrays);
    CU_ASSERT_EQUAL_FATAL(
        dmg_update_coordinator_create(pool.client, channel, budget, DMG_VALUE_BUFFER_BYTES_DEFAULT, &coordinator),
        DMG_OK);
    const dmg_update_target target = {
        .combine = DMG_COMBINE_MIN_UINT64, .attributes = &arrays.attributes, .activation = &arrays.activation};
    dmg_update_coordinator_set_target(&coordinator, DMG_UPDATE_VALRD_NODE, &target);
    const dmg_counters before = *dmg_channel_counters(channel);
    for (uint32_t i = 0; i < 1000; i++) {
        dmg_update_coordinator_update(&coordinator, i % VERTICES, 5000 - i);
    }
    CU_ASSERT_EQUAL(dmg_update_coordinator_flush(&coordinator), DMG_OK);
    const dmg_counters *after = dmg_channel_counters(channel);
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        uint64_t expected = kind == DMG_OPERATION_MESSAGE ? 2 : 0;
        CU_ASSERT_EQUAL(after->operations[kind] - before.operations[kind], expected);
    }
    dmg_update_counters counters = dmg_update_coordinator_count(&coordinator);
    CU_ASSERT_EQUAL(counters.updates, 1000);
    CU_ASSERT_EQUAL(counters.applied, 1000);
    CU_ASSERT_EQUAL(counters.activated, VERTICES);
    dmg_update_coordinator_destroy(&coordinator);
    dmg_channel_close(channel);
    dmg_budget_destroy(budget);
    dmg_test_pool_stop(&pool);
}

static const dmg_test tests[] = {
    DMG_TEST(minima_of_4_bytes_lose_no_update_and_leave_their_neighbour_alone),
    DMG_TEST(minima_of_8_bytes_lose_no_update),
    DMG_TEST(sums_count_every_update_once),
    DMG_TEST(updates_to_one_word_are_one_read_and_one_swap),
    DMG_TEST(own_updates_take_no_locks_and_are_fetched_and_written_together),
    DMG_TEST(updates_by_value_are_a_message_for_hundreds),
    {NULL, NULL},
};

/* Updaters are the threads of one compute node. */
static const dmg_test own_tests[] = {
    DMG_TEST(minima_of_4_bytes_lose_no_update_and_leave_their_neighbour_alone),
    DMG_TEST(minima_of_8_bytes_lose_no_update),
    DMG_TEST(sums_count_every_update_once),
    {NULL, NULL},
};

static int use_own_updates(void)
{
    transport = "cxl_shm";
    are_own_updates = true;
    return 0;
}

/* Suites run in the order of the transports; each set-up moves on to the next. */
static int next_transport(void)
{
    static size_t index;
    transport = dmg_test_transports[index++];
    return 0;
}

int main(int argc, char **argv)
{
    seed = dmg_test_seed();
    for (size_t i = 0; dmg_test_transports[i]; i++) {
        if (dmg_suite_add(dmg_test_transports[i], next_transport, NULL, tests) != 0) {
            return 1;
        }
    }
    if (dmg_suite_add("own updates", use_own_updates, NULL, own_tests) != 0) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
