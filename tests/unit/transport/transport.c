/*
 * One suite for all transports: what transport.h promises of operations, messages, counters and errors. Faults are in
 * transport_faults.c; the processes that these tests talk to in transport_processes.c.
 */
#include "core/base/huge_pages.h"
#include "core/base/memory_room.h"
#include "unit/transport/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <numaif.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY           1000
#define THREADS        6
#define SHORT_CHANNELS 40

static test_pool pool; /* healthy; shared by the tests that break nothing */

static void fill(char *buffer, uint64_t bytes, uint64_t seed)
{
    for (uint64_t i = 0; i < bytes; i++) {
        buffer[i] = (char)((i + seed) * 2654435761u >> 11);
    }
}

/* ---- opening ---- */

static void pool_of_two_memory_nodes_opens(void)
{
    pool = test_pool_start(PATIENT_NS, PATIENT_NS);
}

static void transport_strings_are_checked(void)
{
    static const char *const wrong[] = {"",
                                        "nonsense",
                                        "cxl_shm:key=value",
                                        "cxl_shm:coherence=some",
                                        "cxl_shm:line-cache=1",
                                        "cxl_shm:coherence=none,line-cache=x",
                                        "cxl_shm:",
                                        "cxl_shm:,",
                                        "ucx:unknown=1",
                                        "ucx:data",
                                        "ucx:=message"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        dmg_server_options options = {.transport = wrong[i], .segment = {.bytes = TEST_SEGMENT_BYTES, .numa_node = -1}};
        dmg_server *server;
        CU_ASSERT_EQUAL(dmg_server_create(&options, &server), DMG_ERR_ARGUMENT);
        CU_ASSERT_PTR_NULL(server);
        CU_ASSERT_NOT_EQUAL(dmg_error_message()[0], '\0');
    }
}

static void impossible_segments_are_refused(void)
{
    static const uint64_t sizes[] = {0, UINT64_MAX, UINT64_C(1) << 48};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        dmg_server_options options = {.transport = test_transport, .segment = {.bytes = sizes[i], .numa_node = -1}};
        dmg_server *server;
        CU_ASSERT_NOT_EQUAL(dmg_server_create(&options, &server), DMG_OK);
        CU_ASSERT_PTR_NULL(server);
    }
}

static void wrong_token_is_refused(void)
{
    const char *addresses[TEST_NODES];
    dmg_client_options options = test_client_options(pool.nodes, PATIENT_NS, addresses);
    options.token[DMG_TOKEN_BYTES - 1] ^= 1;
    dmg_client *client;
    CU_ASSERT_EQUAL(dmg_client_open(&options, &client), DMG_ERR_PROTOCOL);
    CU_ASSERT_PTR_NULL(client);
}

static void addresses_are_checked(void)
{
    static const char *const wrong[] = {
        "",         "nonsense",      "cxl_shm:",        "cxl_shm:@dmgraph-nobody-listens-here",
        "ucx:",     "ucx:127.0.0.1", "ucx:127.0.0.1:1", "cxl_shm:/nonexistent/socket",
        "ucx:x:y:z"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        dmg_client_options options = {.transport = test_transport,
                                      .addresses = &wrong[i],
                                      .address_count = 1,
                                      .peer_timeout_ns = dmg_test_deadline_ns(1)};
        dmg_client *client;
        CU_ASSERT_NOT_EQUAL(dmg_client_open(&options, &client), DMG_OK);
        CU_ASSERT_PTR_NULL(client);
    }
}

static void capabilities_fit_together(void)
{
    const dmg_capabilities *capabilities = dmg_client_capabilities(pool.client);
    bool is_load_store = capabilities->flags & DMG_CAPABILITY_LOAD_STORE;
    CU_ASSERT_TRUE(capabilities->flags & DMG_CAPABILITY_MN_COMPUTE);
    CU_ASSERT_NOT_EQUAL(capabilities->chosen[0], '\0');
    CU_ASSERT_EQUAL(dmg_client_node_count(pool.client), TEST_NODES);
    CU_ASSERT_NOT_EQUAL(dmg_client_id(pool.client), 0);
    for (uint16_t node = 0; node < TEST_NODES; node++) {
        uint64_t bytes = dmg_client_segment_bytes(pool.client, node);
        CU_ASSERT_TRUE(bytes >= TEST_SEGMENT_BYTES);
        dmg_address last = dmg_address_make(node, bytes - 8);
        CU_ASSERT_EQUAL(dmg_client_pointer(pool.client, last, 8) != NULL, is_load_store);
        CU_ASSERT_PTR_NULL(dmg_client_pointer(pool.client, last, 9));
        CU_ASSERT_EQUAL(dmg_client_node_status(pool.client, node), DMG_OK);
    }
    CU_ASSERT_PTR_NULL(dmg_client_pointer(pool.client, dmg_address_make(TEST_NODES, 0), 1));
    CU_ASSERT_EQUAL(dmg_client_node_status(pool.client, TEST_NODES), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_EQUAL(dmg_channel_client(pool.channel), pool.client);
}

static void transports_describe_themselves(void)
{
    dmg_transport_info *infos;
    size_t count;
    CU_ASSERT_EQUAL_FATAL(dmg_transport_describe(&infos, &count), DMG_OK);
    size_t name_length = strcspn(test_transport, ":");
    bool has_default = false;
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_NOT_EQUAL(infos[i].reason[0], '\0');
        bool is_ours =
            strlen(infos[i].backend) == name_length && strncmp(infos[i].backend, test_transport, name_length) == 0;
        has_default |= is_ours && infos[i].is_available && infos[i].is_default;
    }
    CU_ASSERT_TRUE(has_default);
    free(infos);
}

/* ---- one-sided ---- */

static void segment_starts_zeroed(void)
{
    test_node node = test_node_start(0, PATIENT_NS);
    const char *address = node.address;
    dmg_client_options options = test_client_options(pool.nodes, PATIENT_NS, (const char *[TEST_NODES]){0});
    options.addresses = &address;
    options.address_count = 1;
    dmg_client *client;
    dmg_channel *channel;
    CU_ASSERT_EQUAL_FATAL(dmg_client_open(&options, &client), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(client, &channel), DMG_OK);
    char *bytes = malloc(TEST_SEGMENT_BYTES);
    memset(bytes, 1, TEST_SEGMENT_BYTES);
    CU_ASSERT_EQUAL(dmg_read(channel, dmg_address_make(0, 0), bytes, TEST_SEGMENT_BYTES), DMG_OK);
    uint64_t others = 0;
    for (uint64_t i = 0; i < TEST_SEGMENT_BYTES; i++) {
        others += bytes[i] != 0;
    }
    CU_ASSERT_EQUAL(others, 0);
    free(bytes);
    dmg_channel_close(channel);
    dmg_client_close(client);
    CU_ASSERT_EQUAL(test_node_stop(&node), 0);
}

static void reads_and_writes_of_every_size_arrive(void)
{
    static const uint64_t sizes[] = {0,     1,     2,     3,      4,      5,       7,       8,      9,
                                     15,    16,    31,    32,     33,     63,      64,      100,    255,
                                     256,   257,   1000,  4095,   4096,   4097,    8191,    8192,   8193,
                                     16384, 65535, 65536, 100003, 262144, 1048576, 3000001, 4194304};
    static const uint64_t shifts[] = {0, 1, 4, 8, 13};
    uint64_t most = sizes[sizeof sizes / sizeof sizes[0] - 1];
    char *out = malloc(most + 2);
    char *in = malloc(most + 2);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t j = 0; j < sizeof shifts / sizeof shifts[0]; j++) {
            uint64_t bytes = sizes[i];
            dmg_address address = dmg_address_make((uint16_t)(i % TEST_NODES), 65536 + shifts[j]);
            fill(out, bytes + 2, i * 10 + j);
            CU_ASSERT_EQUAL(dmg_write(pool.channel, out, address - 1, bytes + 2), DMG_OK);
            fill(out + 1, bytes, i * 10 + j + 5);
            CU_ASSERT_EQUAL(dmg_write(pool.channel, out + 1, address, bytes), DMG_OK);
            memset(in, 0, bytes + 2);
            CU_ASSERT_EQUAL(dmg_read(pool.channel, address - 1, in, bytes + 2), DMG_OK);
            CU_ASSERT_EQUAL(memcmp(in, out, bytes + 2), 0);
        }
    }
    free(out);
    free(in);
}

static void many_operations_in_flight_all_end(void)
{
    uint64_t *out = calloc(MANY, sizeof *out);
    uint64_t *in = calloc(MANY, sizeof *in);
    dmg_completion written = {0};
    for (uint64_t i = 0; i < MANY; i++) {
        out[i] = i * i + 1;
        dmg_post_write(pool.channel, &out[i], dmg_address_make(i % TEST_NODES, 1 << 20) + i * 8, 8, &written);
    }
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &written), DMG_OK);
    dmg_completion read[2] = {{0}, {0}};
    for (uint64_t i = 0; i < MANY; i++) {
        dmg_post_read(pool.channel, dmg_address_make(i % TEST_NODES, 1 << 20) + i * 8, &in[i], 8, &read[i % 2]);
    }
    dmg_channel_ring(pool.channel);
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &read[1]), DMG_OK);
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &read[0]), DMG_OK);
    CU_ASSERT_EQUAL(read[0].pending + read[1].pending + written.pending, 0);
    CU_ASSERT_EQUAL(memcmp(in, out, MANY * sizeof *in), 0);
    free(in);
    free(out);
}

static void large_operations_in_flight_mix_with_small_ones(void)
{
    enum { LARGE_BYTES = 1 << 20, LARGE_COUNT = 8 };
    char *out = malloc((size_t)LARGE_BYTES * LARGE_COUNT);
    char *in = malloc((size_t)LARGE_BYTES * LARGE_COUNT);
    uint64_t before[LARGE_COUNT];
    fill(out, (uint64_t)LARGE_BYTES * LARGE_COUNT, 3);
    dmg_completion completion = {0};
    for (uint64_t i = 0; i < LARGE_COUNT; i++) {
        dmg_address address = dmg_address_make(i % TEST_NODES, (i + 2) * LARGE_BYTES);
        dmg_post_write(pool.channel, out + i * LARGE_BYTES, address, LARGE_BYTES, &completion);
        dmg_post_faa64(pool.channel, dmg_address_make(0, 512), 1, &before[i], &completion);
    }
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_OK);
    for (uint64_t i = 0; i < LARGE_COUNT; i++) {
        dmg_address address = dmg_address_make(i % TEST_NODES, (i + 2) * LARGE_BYTES);
        dmg_post_read(pool.channel, address, in + i * LARGE_BYTES, LARGE_BYTES, &completion);
    }
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_OK);
    CU_ASSERT_EQUAL(memcmp(in, out, (size_t)LARGE_BYTES * LARGE_COUNT), 0);
    uint64_t added;
    CU_ASSERT_EQUAL(dmg_read(pool.channel, dmg_address_make(0, 512), &added, sizeof added), DMG_OK);
    CU_ASSERT_EQUAL(added, LARGE_COUNT);
    free(out);
    free(in);
}

static void atomics_return_what_was_there(void)
{
    for (uint16_t node = 0; node < TEST_NODES; node++) {
        dmg_address word = dmg_address_make(node, 264);
        uint64_t value = 40;
        uint64_t seen = 0;
        CU_ASSERT_EQUAL(dmg_write(pool.channel, &value, word, sizeof value), DMG_OK);
        CU_ASSERT_EQUAL(dmg_faa64(pool.channel, word, 2, &seen), DMG_OK);
        CU_ASSERT_EQUAL(seen, 40);
        CU_ASSERT_EQUAL(dmg_cas64(pool.channel, word, 41, 7, &seen), DMG_OK);
        CU_ASSERT_EQUAL(seen, 42);
        CU_ASSERT_EQUAL(dmg_cas64(pool.channel, word, 42, UINT64_MAX, &seen), DMG_OK);
        CU_ASSERT_EQUAL(seen, 42);
        CU_ASSERT_EQUAL(dmg_faa64(pool.channel, word, 3, &seen), DMG_OK);
        CU_ASSERT_EQUAL(seen, UINT64_MAX);
        CU_ASSERT_EQUAL(dmg_read(pool.channel, word, &value, sizeof value), DMG_OK);
        CU_ASSERT_EQUAL(value, 2);
    }
}

static void pointers_reach_what_operations_reach(void)
{
    dmg_address address = dmg_address_make(1, 3 << 20);
    uint64_t *mapped = dmg_client_pointer(pool.client, address, 8);
    if (!mapped) {
        CU_ASSERT_FALSE(dmg_client_capabilities(pool.client)->flags & DMG_CAPABILITY_LOAD_STORE);
        return;
    }
    uint64_t value = 123456789;
    CU_ASSERT_EQUAL(dmg_write(pool.channel, &value, address, 8), DMG_OK);
    CU_ASSERT_EQUAL(*mapped, value);
    *mapped = 987654321;
    CU_ASSERT_EQUAL(dmg_read(pool.channel, address, &value, 8), DMG_OK);
    CU_ASSERT_EQUAL(value, 987654321);
}

static void nonsense_is_refused(void)
{
    uint64_t bytes = dmg_client_segment_bytes(pool.client, 1);
    uint64_t buffer[2] = {0};
    dmg_channel *channel = pool.channel;
    CU_ASSERT_EQUAL(dmg_read(channel, dmg_address_make(1, bytes - 8), buffer, 9), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "memory node 1"));
    CU_ASSERT_EQUAL(dmg_write(channel, buffer, dmg_address_make(1, bytes), 1), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_read(channel, dmg_address_make(0, DMG_ADDRESS_OFFSET_MASK), buffer, UINT64_MAX),
                    DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_read(channel, dmg_address_make(TEST_NODES, 0), buffer, 1), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_write(channel, buffer, dmg_address_make(UINT16_MAX, 0), 1), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_faa64(channel, dmg_address_make(0, 4), 1, buffer), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "aligned"));
    CU_ASSERT_EQUAL(dmg_cas64(channel, dmg_address_make(0, 9), 1, 2, buffer), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_cas64(channel, dmg_address_make(0, bytes), 1, 2, buffer), DMG_ERR_ARGUMENT);
    /* The end itself can be named, with nothing behind it. */
    CU_ASSERT_EQUAL(dmg_read(channel, dmg_address_make(1, bytes), buffer, 0), DMG_OK);
}

static void first_error_of_a_completion_stays(void)
{
    uint64_t value;
    dmg_completion completion = {0};
    dmg_post_read(pool.channel, dmg_address_make(TEST_NODES, 0), &value, 8, &completion);
    dmg_post_read(pool.channel, dmg_address_make(0, 4096), &value, 8, &completion);
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(completion.failed_node, TEST_NODES);
    CU_ASSERT_EQUAL(completion.pending, 0);
}

/* ---- several at once ---- */

static void atomics_are_exact_under_contention(void)
{
    uint64_t zero = 0;
    uint64_t added;
    uint64_t exchanged;
    CU_ASSERT_EQUAL(dmg_write(pool.channel, &zero, dmg_address_make(1, COUNT_FAA), 8), DMG_OK);
    CU_ASSERT_EQUAL(dmg_write(pool.channel, &zero, dmg_address_make(1, COUNT_CAS), 8), DMG_OK);
    pid_t one = test_compute_start(COMPUTE_COUNT, pool.nodes, PATIENT_NS);
    pid_t two = test_compute_start(COMPUTE_COUNT, pool.nodes, PATIENT_NS);
    CU_ASSERT_EQUAL(test_count_up(pool.channel), DMG_OK);
    CU_ASSERT_EQUAL(test_process_wait(one), 0);
    CU_ASSERT_EQUAL(test_process_wait(two), 0);
    CU_ASSERT_EQUAL(dmg_read(pool.channel, dmg_address_make(1, COUNT_FAA), &added, 8), DMG_OK);
    CU_ASSERT_EQUAL(dmg_read(pool.channel, dmg_address_make(1, COUNT_CAS), &exchanged, 8), DMG_OK);
    CU_ASSERT_EQUAL(added, 3 * COUNT_ROUNDS);
    CU_ASSERT_EQUAL(exchanged, 3 * COUNT_ROUNDS);
}

typedef struct thread_work {
    pthread_t thread;
    uint32_t number;
    dmg_status status;
    uint64_t wrong;
} thread_work;

static void *work(void *argument)
{
    thread_work *mine = argument;
    dmg_channel *channel;
    mine->status = dmg_channel_open(pool.client, &channel);
    if (mine->status != DMG_OK) {
        return NULL;
    }
    uint64_t base = (UINT64_C(4) << 20) + mine->number * UINT64_C(65536);
    for (uint64_t i = 0; i < MANY && mine->status == DMG_OK; i++) {
        dmg_address address = dmg_address_make(i % TEST_NODES, base + i * 8);
        uint64_t value = mine->number * 1000003 + i;
        uint64_t read = 0;
        uint64_t echoed = 0;
        uint64_t before;
        dmg_call call = {.reply = &echoed, .reply_capacity = sizeof echoed};
        dmg_completion completion = {0};
        mine->status = dmg_write(channel, &value, address, 8);
        dmg_post_read(channel, address, &read, 8, &completion);
        dmg_post_call(channel, i % TEST_NODES, TEST_ECHO, &value, sizeof value, &call, &completion);
        dmg_post_faa64(channel, dmg_address_make(0, 1024), 1, &before, &completion);
        dmg_status status = dmg_wait(channel, &completion);
        mine->status = mine->status == DMG_OK ? status : mine->status;
        mine->wrong += read != value || echoed != value;
    }
    dmg_channel_close(channel);
    return NULL;
}

static void channels_of_many_threads_do_not_mix(void)
{
    thread_work works[THREADS] = {0};
    uint64_t value = 0;
    CU_ASSERT_EQUAL(dmg_write(pool.channel, &value, dmg_address_make(0, 1024), 8), DMG_OK);
    for (uint32_t i = 0; i < THREADS; i++) {
        works[i].number = i;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&works[i].thread, NULL, work, &works[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(works[i].thread, NULL);
        CU_ASSERT_EQUAL(works[i].status, DMG_OK);
        CU_ASSERT_EQUAL(works[i].wrong, 0);
    }
    CU_ASSERT_EQUAL(dmg_read(pool.channel, dmg_address_make(0, 1024), &value, 8), DMG_OK);
    CU_ASSERT_EQUAL(value, THREADS * MANY);
}

static void *open_and_close(void *argument)
{
    thread_work *mine = argument;
    for (uint32_t i = 0; i < test_rounds(SHORT_CHANNELS) && mine->status == DMG_OK; i++) {
        dmg_channel *channel;
        mine->status = dmg_channel_open(pool.client, &channel);
        if (mine->status == DMG_OK) {
            mine->status = test_ask(channel, (uint16_t)(i % TEST_NODES), TEST_ECHO, NULL, 0);
            dmg_channel_close(channel);
        }
    }
    return NULL;
}

/* A channel may close while a wake-up is on its way to it; that must not look like a death. */
static void channels_that_come_and_go_are_no_deaths(void)
{
    thread_work works[THREADS] = {0};
    gone_report before;
    gone_report after;
    CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_GONE, &before, sizeof before), DMG_OK);
    for (uint32_t i = 0; i < THREADS; i++) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&works[i].thread, NULL, open_and_close, &works[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(works[i].thread, NULL);
        CU_ASSERT_EQUAL(works[i].status, DMG_OK);
    }
    CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_GONE, &after, sizeof after), DMG_OK);
    CU_ASSERT_EQUAL(after.died, before.died);
    CU_ASSERT_EQUAL(after.closed, before.closed);
}

/* ---- messages ---- */

static void messages_of_every_size_are_echoed(void)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 63, 64, 65, 1000, 4096, 8000, 8191, DMG_MESSAGE_BYTES_MAX};
    static char out[DMG_MESSAGE_BYTES_MAX];
    static char in[DMG_MESSAGE_BYTES_MAX];
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fill(out, sizes[i], i);
        memset(in, 0, sizeof in);
        dmg_call call = {.reply = in, .reply_capacity = sizes[i]};
        CU_ASSERT_EQUAL(dmg_message(pool.channel, (uint16_t)(i % TEST_NODES), TEST_ECHO, out, sizes[i], &call), DMG_OK);
        CU_ASSERT_EQUAL(call.reply_bytes, sizes[i]);
        CU_ASSERT_EQUAL(memcmp(in, out, sizes[i]), 0);
    }
}

static void message_that_is_too_long_is_refused(void)
{
    static const char payload[DMG_MESSAGE_BYTES_MAX + 1];
    dmg_call call = {0};
    CU_ASSERT_EQUAL(dmg_message(pool.channel, 0, TEST_ECHO, payload, sizeof payload, &call), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_message(pool.channel, TEST_NODES, TEST_ECHO, payload, 1, &call), DMG_ERR_ARGUMENT);
}

static void answer_longer_than_its_room_is_an_error(void)
{
    uint64_t wanted = 100;
    char room[99];
    dmg_call call = {.reply = room, .reply_capacity = sizeof room};
    dmg_completion completion = {0};
    dmg_post_call(pool.channel, 0, TEST_LARGE, &wanted, sizeof wanted, &call, &completion);
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(dmg_message(pool.channel, 0, TEST_LARGE, &wanted, sizeof wanted, &call), DMG_ERR_LIMIT);
    wanted = 99;
    CU_ASSERT_EQUAL(dmg_message(pool.channel, 0, TEST_LARGE, &wanted, sizeof wanted, &call), DMG_OK);
    CU_ASSERT_EQUAL(call.reply_bytes, 99);
}

static void handlers_error_arrives_with_its_sentence(void)
{
    static const char sentence[] = "the thing is not where it was";
    dmg_call call = {0};
    CU_ASSERT_EQUAL(dmg_message(pool.channel, 1, TEST_FAIL, sentence, sizeof sentence - 1, &call), DMG_ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), sentence));
    CU_ASSERT_EQUAL(call.reply_status, DMG_ERR_NOT_FOUND);
    char room[9];
    dmg_completion completion = {0};
    call = (dmg_call){.reply = room, .reply_capacity = sizeof room};
    dmg_post_call(pool.channel, 1, TEST_FAIL, sentence, sizeof sentence - 1, &call, &completion);
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_OK);
    CU_ASSERT_EQUAL(call.reply_status, DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(call.reply_bytes, sizeof room);
    CU_ASSERT_EQUAL(memcmp(room, sentence, sizeof room), 0);
}

static void messages_of_a_channel_stay_in_order(void)
{
    uint64_t numbers[MANY];
    uint64_t answers[MANY] = {0};
    dmg_call calls[MANY];
    dmg_completion completion = {0};
    for (uint64_t i = 0; i < MANY; i++) {
        numbers[i] = i + 1;
        calls[i] = (dmg_call){.reply = &answers[i], .reply_capacity = sizeof answers[i]};
        dmg_post_call(pool.channel, 0, TEST_SEQUENCE, &numbers[i], sizeof numbers[i], &calls[i], &completion);
        numbers[i] = 0; /* the payload was copied */
    }
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_OK);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        wrong += answers[i] != i + 1;
    }
    CU_ASSERT_EQUAL(wrong, 0);
}

static void answers_may_come_later_and_in_any_order(void)
{
    enum { HELD = 50 };
    uint64_t answers[HELD] = {0};
    dmg_call calls[HELD];
    dmg_completion completions[HELD] = {{0}};
    uint32_t pending = 0;
    for (uint32_t i = 0; i < HELD; i++) {
        calls[i] = (dmg_call){.reply = &answers[i], .reply_capacity = sizeof answers[i]};
        dmg_post_call(pool.channel, 1, TEST_HOLD, NULL, 0, &calls[i], &completions[i]);
    }
    dmg_call echo = {0};
    CU_ASSERT_EQUAL(dmg_message(pool.channel, 1, TEST_ECHO, NULL, 0, &echo), DMG_OK);
    for (uint32_t i = 0; i < HELD; i++) {
        pending += completions[i].pending;
    }
    CU_ASSERT_EQUAL(pending, HELD);
    CU_ASSERT_EQUAL(dmg_message(pool.channel, 1, TEST_RELEASE, NULL, 0, &echo), DMG_OK);
    for (uint32_t i = 0; i < HELD; i++) {
        CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completions[i]), DMG_OK);
        CU_ASSERT_EQUAL(answers[i], i);
    }
}

static void closing_a_channel_cancels_what_is_in_flight(void)
{
    dmg_channel *channel;
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool.client, &channel), DMG_OK);
    dmg_call calls[3] = {{0}};
    dmg_completion completion = {0};
    for (int i = 0; i < 3; i++) {
        dmg_post_call(channel, 0, TEST_HOLD, NULL, 0, &calls[i], &completion);
    }
    dmg_channel_ring(channel);
    CU_ASSERT_EQUAL(completion.pending, 3);
    dmg_channel_close(channel);
    CU_ASSERT_EQUAL(completion.pending, 0);
    CU_ASSERT_EQUAL(completion.status, DMG_ERR_CANCELLED);
    /* The answers that come too late hurt nobody. */
    CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_RELEASE, NULL, 0), DMG_OK);
}

/* ---- counters ---- */

static void counters_are_exact(void)
{
    dmg_channel *channel;
    char buffer[4096] = {0};
    uint64_t seen;
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool.client, &channel), DMG_OK);
    dmg_completion completion = {0};
    for (int i = 0; i < 10; i++) {
        dmg_post_read(channel, dmg_address_make(0, 8192), buffer, 100, &completion);
    }
    CU_ASSERT_EQUAL(dmg_wait(channel, &completion), DMG_OK);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(dmg_write(channel, buffer, dmg_address_make(1, 8192), 4096), DMG_OK);
    }
    CU_ASSERT_EQUAL(dmg_cas64(channel, dmg_address_make(1, 8192), 0, 0, &seen), DMG_OK);
    CU_ASSERT_EQUAL(dmg_faa64(channel, dmg_address_make(1, 8192), 0, &seen), DMG_OK);
    CU_ASSERT_EQUAL(dmg_faa64(channel, dmg_address_make(1, 8192), 0, &seen), DMG_OK);
    dmg_call call = {.reply = buffer, .reply_capacity = sizeof buffer};
    CU_ASSERT_EQUAL(dmg_message(channel, 0, TEST_ECHO, "1234567", 7, &call), DMG_OK);
    CU_ASSERT_EQUAL(dmg_read(channel, dmg_address_make(0, 8192), buffer, 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_read(channel, dmg_address_make(9, 8192), buffer, 8), DMG_ERR_ARGUMENT);
    dmg_channel_charge_read(channel, dmg_address_make(0, 8192), 500);
    dmg_channel_charge_read(channel, dmg_address_make(0, 8192), 6);
    const dmg_counters *counters = dmg_channel_counters(channel);
    CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_READ], 10);
    CU_ASSERT_EQUAL(counters->bytes[DMG_OPERATION_READ], 1000);
    CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_WRITE], 3);
    CU_ASSERT_EQUAL(counters->bytes[DMG_OPERATION_WRITE], 3 * 4096);
    CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_CAS], 1);
    CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_FAA], 2);
    CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_MESSAGE], 1);
    CU_ASSERT_EQUAL(counters->bytes[DMG_OPERATION_MESSAGE], 7);
    CU_ASSERT_EQUAL(counters->sizes[dmg_size_bucket(100)], 10);
    CU_ASSERT_EQUAL(counters->sizes[dmg_size_bucket(4096)], 3);
    CU_ASSERT_EQUAL(counters->rings, 1 + 3 + 1 + 2 + 1);
    CU_ASSERT_EQUAL(counters->mapped_spans, 2);
    CU_ASSERT_EQUAL(counters->mapped_bytes, 506);
    CU_ASSERT_EQUAL(counters->mapped_sizes[dmg_size_bucket(500)], 1);
    CU_ASSERT_EQUAL(counters->mapped_sizes[dmg_size_bucket(6)], 1);
    dmg_counters sum = {0};
    dmg_counters_add(&sum, counters);
    dmg_counters_add(&sum, counters);
    CU_ASSERT_EQUAL(sum.bytes[DMG_OPERATION_READ], 2000);
    CU_ASSERT_EQUAL(sum.rings, 2 * counters->rings);
    dmg_channel_close(channel);
}

static void rounds_that_depend_on_each_other_are_counted(void)
{
    dmg_channel *channel;
    char buffer[1024] = {0};
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool.client, &channel), DMG_OK);
    const dmg_counters *counters = dmg_channel_counters(channel);
    dmg_completion completion = {0};
    for (int round = 0; round < 3; round++) { /* however many operations a round has, and whatever ends at once */
        for (int i = 0; i < 10; i++) {
            dmg_post_read(channel, dmg_address_make(0, 8192), buffer, 100, &completion);
        }
        CU_ASSERT_EQUAL(dmg_wait(channel, &completion), DMG_OK);
    }
    CU_ASSERT_EQUAL(counters->rounds[DMG_OPERATION_READ], 3);
    CU_ASSERT_EQUAL(counters->serial_parts[DMG_OPERATION_READ], 3 * DMG_ROUND_PARTS);
    /* Four tasks with a round each: of the kind that they begin with, and in flight together. */
    dmg_completion tasks[4] = {{.overlap = 4}, {.overlap = 4}, {.overlap = 4}, {.overlap = 4}};
    for (int i = 0; i < 4; i++) {
        dmg_post_write(channel, buffer, dmg_address_make(1, 8192), 8, &tasks[i]);
        dmg_post_read(channel, dmg_address_make(1, 8192), buffer, 8, &tasks[i]);
        dmg_channel_charge_wait(channel); /* goes on with something else */
    }
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_EQUAL(dmg_wait(channel, &tasks[i]), DMG_OK);
    }
    CU_ASSERT_EQUAL(counters->rounds[DMG_OPERATION_READ], 3);
    CU_ASSERT_EQUAL(counters->rounds[DMG_OPERATION_WRITE], 4);
    CU_ASSERT_EQUAL(counters->serial_parts[DMG_OPERATION_WRITE], DMG_ROUND_PARTS);
    dmg_call call = {.reply = buffer, .reply_capacity = sizeof buffer};
    CU_ASSERT_EQUAL(dmg_message(channel, 0, TEST_ECHO, "1234567", 7, &call), DMG_OK);
    CU_ASSERT_EQUAL(counters->rounds[DMG_OPERATION_MESSAGE], 1);
    CU_ASSERT_TRUE(counters->waits >= 1); /* for the answer; the rest depends on the backend */
    CU_ASSERT_TRUE(counters->message_wait_ns > 0 && counters->message_wait_ns <= counters->wait_ns);
    CU_ASSERT_TRUE(counters->post_ns > 0);
    dmg_channel_close(channel);
}

static void mapped_spans_are_counted_by_line_and_by_wait(void)
{
    dmg_channel *channel;
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool.client, &channel), DMG_OK);
    const dmg_counters *counters = dmg_channel_counters(channel);
    dmg_channel_charge_read(channel, dmg_address_make(0, 8192 + 60), 8); /* two lines */
    for (uint64_t i = 0; i < 5; i++) {
        dmg_channel_charge_read_ahead(channel, dmg_address_make(0, 8192 + 64 * i), 64);
    }
    dmg_channel_charge_wait(channel);
    dmg_channel_charge_wait(channel); /* nothing to wait for */
    dmg_channel_charge_atomic(channel, dmg_address_make(0, 8192));
    CU_ASSERT_EQUAL(counters->mapped_spans, 6);
    CU_ASSERT_EQUAL(counters->mapped_lines, 7);
    CU_ASSERT_EQUAL(counters->mapped_waits, 2);
    CU_ASSERT_EQUAL(counters->mapped_atomics, 1);
    dmg_channel_close(channel);
}

static void traffic_is_counted_by_memory_node(void)
{
    dmg_channel *channel;
    char buffer[1000] = {0};
    uint64_t seen;
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool.client, &channel), DMG_OK);
    CU_ASSERT_EQUAL(dmg_read(channel, dmg_address_make(0, 8192), buffer, 1000), DMG_OK);
    CU_ASSERT_EQUAL(dmg_write(channel, buffer, dmg_address_make(1, 8192), 500), DMG_OK);
    CU_ASSERT_EQUAL(dmg_faa64(channel, dmg_address_make(1, 8192), 0, &seen), DMG_OK);
    dmg_channel_charge_read(channel, dmg_address_make(0, 8192), 24);
    const dmg_node_traffic *first = dmg_channel_traffic(channel, 0);
    const dmg_node_traffic *second = dmg_channel_traffic(channel, 1);
    CU_ASSERT_PTR_NULL(dmg_channel_traffic(channel, 99));
    CU_ASSERT_EQUAL(first->operations, 2);
    CU_ASSERT_EQUAL(first->read_bytes, 1024);
    CU_ASSERT_EQUAL(first->write_bytes, 0);
    CU_ASSERT_EQUAL(second->operations, 2);
    CU_ASSERT_EQUAL(second->read_bytes, 8);
    CU_ASSERT_EQUAL(second->write_bytes, 508);
    dmg_channel_close(channel);
}

static void memory_node_counts_the_messages_that_it_served(void)
{
    dmg_counters before;
    dmg_counters after;
    dmg_call call = {0};
    CU_ASSERT_EQUAL(test_ask(pool.channel, 1, TEST_COUNTERS, &before, sizeof before), DMG_OK);
    char reply[100];
    call = (dmg_call){.reply = reply, .reply_capacity = sizeof reply};
    CU_ASSERT_EQUAL(dmg_message(pool.channel, 1, TEST_ECHO, reply, sizeof reply, &call), DMG_OK);
    CU_ASSERT_EQUAL(test_ask(pool.channel, 1, TEST_COUNTERS, &after, sizeof after), DMG_OK);
    CU_ASSERT_EQUAL(after.operations[DMG_OPERATION_MESSAGE], before.operations[DMG_OPERATION_MESSAGE] + 2);
    CU_ASSERT_EQUAL(after.bytes[DMG_OPERATION_MESSAGE], before.bytes[DMG_OPERATION_MESSAGE] + 100);
}

static void size_buckets_are_powers_of_two(void)
{
    static const struct {
        uint64_t bytes;
        uint32_t bucket;
    } cases[] = {{0, 0}, {1, 0}, {2, 1}, {3, 2}, {4, 2}, {5, 3}, {4096, 12}, {4097, 13}, {UINT64_MAX, 31}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CU_ASSERT_EQUAL(dmg_size_bucket(cases[i].bytes), cases[i].bucket);
    }
}

/* ---- segments with a name ---- */

static void named_segment_lives_as_long_as_its_memory_node(void)
{
    if (strcmp(test_transport, "cxl_shm") != 0) {
        return;
    }
    char path[64];
    char socket_path[64];
    snprintf(path, sizeof path, "/dev/shm/dmgraph-test-%d", (int)getpid());
    snprintf(socket_path, sizeof socket_path, "/tmp/dmgraph-test-%d", (int)getpid());
    dmg_server_options options = {.transport = test_transport,
                                  .bind = socket_path,
                                  .segment = {.bytes = 1, .numa_node = 0, .path = path, .prefault = true}};
    dmg_server *server;
    dmg_server *second;
    CU_ASSERT_EQUAL_FATAL(dmg_server_create(&options, &server), DMG_OK);
    uint64_t bytes;
    char *segment = dmg_server_segment(server, &bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(segment);
    CU_ASSERT_EQUAL((uintptr_t)segment % (2 << 20), 0);
    CU_ASSERT_EQUAL(segment[bytes - 1], 0);
    CU_ASSERT_EQUAL(access(path, F_OK), 0);
    CU_ASSERT_EQUAL(access(socket_path, F_OK), 0);
    CU_ASSERT_EQUAL(dmg_server_create(&options, &second), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(access(path, F_OK), 0);
    dmg_server_destroy(server);
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
    CU_ASSERT_NOT_EQUAL(access(socket_path, F_OK), 0);
    options.segment.path = "/nonexistent/segment";
    CU_ASSERT_EQUAL(dmg_server_create(&options, &server), DMG_ERR_IO);
    options.segment.path = "/dev/null";
    CU_ASSERT_EQUAL(dmg_server_create(&options, &server), DMG_ERR_UNSUPPORTED);
}

/* ---- what was asked for, and what was got ---- */

static bool has_huge_pages(uint64_t page_bytes)
{
    dmg_huge_pages pages;
    return dmg_huge_pages_read(page_bytes, -1, &pages) && pages.available >= 4;
}

static void what_was_asked_for_and_is_not_there_is_an_error(void)
{
    dmg_server_options options = {.transport = test_transport, .segment = {.bytes = 1 << 20, .numa_node = 1000}};
    dmg_server *server;
    CU_ASSERT_EQUAL(dmg_server_create(&options, &server), DMG_ERR_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "NUMA node 1000"));
    static const dmg_page_size sizes[] = {DMG_PAGE_2M, DMG_PAGE_1G};
    for (size_t i = 0; i < 2; i++) {
        uint64_t page_bytes = sizes[i] == DMG_PAGE_2M ? UINT64_C(2) << 20 : UINT64_C(1) << 30;
        options.segment = (dmg_segment_options){.bytes = 1 << 20, .numa_node = -1, .page_size = sizes[i]};
        dmg_status status = dmg_server_create(&options, &server);
        if (status == DMG_OK) {
            CU_ASSERT_EQUAL(dmg_server_placement(server).page_bytes, page_bytes);
            dmg_server_destroy(server);
        } else {
            CU_ASSERT_FALSE(has_huge_pages(page_bytes) && page_bytes < UINT64_C(1) << 30);
            CU_ASSERT_TRUE(status == DMG_ERR_MEMORY || status == DMG_ERR_UNSUPPORTED);
            CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "pages"));
        }
    }
}

static void less_than_was_asked_for_is_said_where_it_is_allowed(void)
{
    static const dmg_page_size sizes[] = {DMG_PAGE_DEFAULT, DMG_PAGE_2M, DMG_PAGE_1G};
    for (size_t i = 0; i < 3; i++) {
        dmg_server_options options = {
            .transport = test_transport,
            .segment = {.bytes = 1 << 20, .numa_node = 1000, .page_size = sizes[i], .allow_fallback = true}};
        dmg_server *server;
        CU_ASSERT_EQUAL_FATAL(dmg_server_create(&options, &server), DMG_OK);
        uint64_t bytes;
        char *segment = dmg_server_segment(server, &bytes);
        segment[0] = segment[bytes - 1] = 1;
        dmg_placement placement = dmg_server_placement(server);
        CU_ASSERT_EQUAL(placement.numa_node, -1);
        CU_ASSERT_EQUAL(placement.bytes, bytes);
        dmg_huge_pages pages;
        CU_ASSERT_TRUE(placement.page_bytes == (uint64_t)sysconf(_SC_PAGESIZE) ||
                       (dmg_huge_pages_read(placement.page_bytes, -1, &pages) && pages.set_aside > 0));
        dmg_server_destroy(server);
    }
}

static void placement_is_what_the_kernel_says(void)
{
    _Atomic uint64_t populated = 0;
    dmg_server_options options = {
        .transport = test_transport,
        .segment = {.bytes = 3 << 20, .numa_node = 0, .prefault = true, .populated_bytes = &populated}};
    dmg_server *server;
    CU_ASSERT_EQUAL_FATAL(dmg_server_create(&options, &server), DMG_OK);
    uint64_t bytes;
    char *segment = dmg_server_segment(server, &bytes);
    dmg_placement placement = dmg_server_placement(server);
    int mode = -1;
    unsigned long nodes[16] = {0};
    CU_ASSERT_EQUAL(get_mempolicy(&mode, nodes, 1024, segment, MPOL_F_ADDR), 0);
    CU_ASSERT_EQUAL(mode, MPOL_BIND);
    CU_ASSERT_EQUAL(nodes[0], 1);
    CU_ASSERT_EQUAL(placement.numa_node, 0);
    CU_ASSERT_TRUE(placement.is_populated);
    CU_ASSERT_EQUAL(placement.bytes, bytes);
    unsigned char is_there[4];
    CU_ASSERT_EQUAL(mincore(segment, 4 * (size_t)sysconf(_SC_PAGESIZE), is_there), 0);
    CU_ASSERT_TRUE(is_there[0] & is_there[1] & is_there[2] & is_there[3] & 1);
    dmg_server_destroy(server);
}

static void nodes_find_room_together_or_none_of_them(void)
{
    dmg_server_options nodes[3];
    dmg_memory_room room;
    struct statvfs space;
    dmg_memory_room_read("", &room);
    CU_ASSERT_EQUAL_FATAL(statvfs("/dev/shm", &space), 0);
    uint64_t least = room.available_bytes;
    if (strcmp(test_transport, "ucx") == 0 && (uint64_t)space.f_bavail * space.f_frsize < least) {
        least = (uint64_t)space.f_bavail * space.f_frsize;
    }
    for (uint16_t i = 0; i < 3; i++) {
        nodes[i] = (dmg_server_options){.transport = test_transport,
                                        .node = i,
                                        .segment = {.bytes = least / 5 * 2, .numa_node = -1, .prefault = true}};
    }
    CU_ASSERT_EQUAL(dmg_server_check_room(nodes, 1), DMG_OK);
    CU_ASSERT_EQUAL(dmg_server_check_room(nodes, 3), DMG_ERR_MEMORY);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "3 memory nodes"));
    /* What is taken as it is used may be more than is left, but not more than there is. */
    for (uint16_t i = 0; i < 3; i++) {
        nodes[i].segment.prefault = false;
        nodes[i].segment.bytes = room.total_bytes / 5 * 2;
    }
    CU_ASSERT_EQUAL(dmg_server_check_room(nodes, 3), DMG_ERR_MEMORY);
    if (strcmp(test_transport, "cxl_shm") == 0) {
        CU_ASSERT_EQUAL(dmg_server_check_room(nodes, 2), DMG_OK);
    }
}

static void descriptors_are_counted_before_anything_is_opened(void)
{
    dmg_transport_descriptors each;
    CU_ASSERT_EQUAL(dmg_transport_count_descriptors(test_transport, &each), DMG_OK);
    CU_ASSERT(each.server > 0 && each.server_channel > 0 && each.client_channel + each.client_connection > 0);
    CU_ASSERT_EQUAL(dmg_transport_count_descriptors("none", &each), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_transport_count_descriptors("ucx:data=none", &each), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(each.server, 0);
}

/* Under its own name, around a corner, through a link to the folder; memory, and a socket. */
static void nothing_is_made_among_devices(void)
{
    if (strcmp(test_transport, "cxl_shm") != 0) {
        return;
    }
    char name[64], link[128], path[256], device[128], transport[300];
    snprintf(name, sizeof name, "dmgraph-test-%d", (int)getpid());
    snprintf(link, sizeof link, "/tmp/%s-link", name);
    snprintf(device, sizeof device, "/dev/%s", name);
    CU_ASSERT_EQUAL_FATAL(symlink("/dev", link), 0);
    const char *const folders[] = {"/dev", "/dev/shm/..", link};
    dmg_server *server;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        snprintf(transport, sizeof transport, "cxl_shm:path=%s", path);
        const dmg_segment_options segment = {.bytes = 1 << 20, .numa_node = -1, .allow_fallback = true};
        dmg_server_options by_path = {.transport = test_transport, .segment = segment};
        dmg_server_options by_parameter = {.transport = transport, .segment = segment};
        dmg_server_options by_bind = {.transport = test_transport, .bind = path, .segment = segment};
        by_path.segment.path = path;
        CU_ASSERT_EQUAL(dmg_server_create(&by_path, &server), DMG_ERR_NOT_FOUND);
        CU_ASSERT_EQUAL(dmg_server_create(&by_parameter, &server), DMG_ERR_NOT_FOUND);
        CU_ASSERT_EQUAL(dmg_server_create(&by_bind, &server), DMG_ERR_NOT_FOUND);
        CU_ASSERT_NOT_EQUAL(access(device, F_OK), 0);
    }
    unlink(link);
}

/* ---- the suite ---- */

static uint32_t count_left_files(void)
{
    char own[32];
    snprintf(own, sizeof own, "dmgraph-test-%d", (int)getpid());
    uint32_t count = 0;
    DIR *directory = opendir("/dev/shm");
    for (struct dirent *entry = directory ? readdir(directory) : NULL; entry; entry = readdir(directory)) {
        count += strstr(entry->d_name, own) != NULL;
    }
    if (directory) {
        closedir(directory);
    }
    return count;
}

/* Memory nodes that still run end well (test_pool_stop asserts it), and none left a file behind. */
static void pool_closes_and_leaves_nothing(void)
{
    test_pool_stop(&pool);
    CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1);
    CU_ASSERT_EQUAL(count_left_files(), 0);
}

static const dmg_test tests[] = {
    DMG_TEST(pool_of_two_memory_nodes_opens),
    DMG_TEST(transport_strings_are_checked),
    DMG_TEST(impossible_segments_are_refused),
    DMG_TEST(wrong_token_is_refused),
    DMG_TEST(addresses_are_checked),
    DMG_TEST(capabilities_fit_together),
    DMG_TEST(transports_describe_themselves),
    DMG_TEST(segment_starts_zeroed),
    DMG_TEST(reads_and_writes_of_every_size_arrive),
    DMG_TEST(many_operations_in_flight_all_end),
    DMG_TEST(large_operations_in_flight_mix_with_small_ones),
    DMG_TEST(atomics_return_what_was_there),
    DMG_TEST(pointers_reach_what_operations_reach),
    DMG_TEST(nonsense_is_refused),
    DMG_TEST(first_error_of_a_completion_stays),
    DMG_TEST(atomics_are_exact_under_contention),
    DMG_TEST(channels_of_many_threads_do_not_mix),
    DMG_TEST(channels_that_come_and_go_are_no_deaths),
    DMG_TEST(messages_of_every_size_are_echoed),
    DMG_TEST(message_that_is_too_long_is_refused),
    DMG_TEST(answer_longer_than_its_room_is_an_error),
    DMG_TEST(handlers_error_arrives_with_its_sentence),
    DMG_TEST(messages_of_a_channel_stay_in_order),
    DMG_TEST(answers_may_come_later_and_in_any_order),
    DMG_TEST(closing_a_channel_cancels_what_is_in_flight),
    DMG_TEST(counters_are_exact),
    DMG_TEST(rounds_that_depend_on_each_other_are_counted),
    DMG_TEST(mapped_spans_are_counted_by_line_and_by_wait),
    DMG_TEST(traffic_is_counted_by_memory_node),
    DMG_TEST(memory_node_counts_the_messages_that_it_served),
    DMG_TEST(size_buckets_are_powers_of_two),
    DMG_TEST(named_segment_lives_as_long_as_its_memory_node),
    DMG_TEST(what_was_asked_for_and_is_not_there_is_an_error),
    DMG_TEST(less_than_was_asked_for_is_said_where_it_is_allowed),
    DMG_TEST(placement_is_what_the_kernel_says),
    DMG_TEST(nodes_find_room_together_or_none_of_them),
    DMG_TEST(descriptors_are_counted_before_anything_is_opened),
    DMG_TEST(nothing_is_made_among_devices),
    DMG_TEST(killed_memory_node_ends_calls_in_flight),
    DMG_TEST(killed_memory_node_is_noticed_with_nothing_in_flight),
    DMG_TEST(other_nodes_go_on_when_one_dies),
    DMG_TEST(stopped_memory_node_ends_calls_in_flight),
    DMG_TEST(stopped_memory_node_is_noticed_with_nothing_in_flight),
    DMG_TEST(stopped_memory_node_refuses_no_one_for_ever),
    DMG_TEST(node_declared_dead_ends_its_calls),
    DMG_TEST(killed_clients_leave_the_memory_node_serving),
    DMG_TEST(stopped_client_loses_its_lease_once),
    DMG_TEST(client_that_closes_is_reported_once),
    DMG_TEST(memory_node_that_dies_during_the_greeting_counts_as_dead),
    DMG_TEST(garbage_on_the_socket_is_survived),
    DMG_TEST(one_who_greets_and_makes_no_sense_is_cut_off),
    DMG_TEST(one_who_greets_and_says_nothing_is_cut_off),
    DMG_TEST(nonsense_in_a_control_area_breaks_its_channel_alone),
    DMG_TEST(memory_node_stops_when_told_to),
    DMG_TEST(pool_closes_and_leaves_nothing),
    {NULL, NULL},
};

static int start_suite(const char *transport)
{
    test_transport = transport;
    return 0;
}

static int start_cxl_shm(void)
{
    return start_suite("cxl_shm");
}

static int start_cxl_shm_software(void)
{
    return start_suite("cxl_shm:coherence=none");
}

static int start_ucx(void)
{
    return start_suite("ucx");
}

static int start_ucx_messages(void)
{
    return start_suite("ucx:data=message");
}

/* Messages of UCX's own: over tcp as they go over cards, which not every machine has. */
static int start_ucx_own_messages(void)
{
    return start_suite("ucx:data=message,messages=tcp");
}

static int start_given(void)
{
    return start_suite(test_given_transport());
}

int main(int argc, char **argv)
{
    int exit_code;
    if (test_process_main(argc, argv, &exit_code)) {
        return exit_code;
    }
    alarm(dmg_test_deadline_s(800)); /* whatever hangs ends */
    const char *given = test_given_transport();
    if (given != NULL) {
        return dmg_suite_add(given, start_given, NULL, tests) != 0 ? 2 : dmg_suites_run(argc, argv);
    }
    if (dmg_suite_add("cxl_shm", start_cxl_shm, NULL, tests) != 0 ||
        dmg_suite_add("cxl_shm:coherence=none", start_cxl_shm_software, NULL, tests) != 0 ||
        dmg_suite_add("ucx", start_ucx, NULL, tests) != 0 ||
        dmg_suite_add("ucx:data=message", start_ucx_messages, NULL, tests) != 0 ||
        dmg_suite_add("ucx:data=message,messages=tcp", start_ucx_own_messages, NULL, tests) != 0) {
        return 2;
    }
    return dmg_suites_run(argc, argv);
}
