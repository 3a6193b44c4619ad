/*
 * What only the UCX backend has to withstand: deaths with operations by message in flight; clients that do not speak
 * its language are in transport_ucx_protocol.c, strangers on its ports in transport_ucx_ports.c. Memory nodes are
 * processes of their own, so that a crash is seen as one.
 */
#include "transport/ucx/ucx.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "transport/core.h"
#include "unit/support/random.h"
#include "unit/transport/processes.h"
#include "unit/transport/ucx/lanes.h"
#include "unit/transport/ucx/limits.h"
#include "unit/transport/ucx/ports.h"
#include "unit/transport/ucx/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLS         20
#define FLOOD_BYTES   (FLOOD_SLICE + 4096) /* what a flood writes to, from FLOOD_SLICE on */
#define CONNECT_KILLS 100
#define FLOOD_BATCH   64
#define SERVER_KILLS  5
#define ZOMBIE_S      5
#define GONE_S        45 /* beyond the patient timeout: a death that nothing tells is found by its lease */
#define FLOOD_SLICE   (UINT64_C(1) << 20)

static const char *transport_or_given(const char *usual)
{
    return test_given_transport() != NULL ? test_given_transport() : usual;
}

/* ---- settings ---- */

static void parameters_that_make_no_sense_are_refused_with_a_reason(void)
{
    static const struct {
        const char *transport;
        dmg_status status;
        const char *part;
    } cases[] = {
        {"ucx:messages=posix", DMG_ERR_UNSUPPORTED, "shared-memory rings"},
        {"ucx:messages=sysv", DMG_ERR_UNSUPPORTED, "shared-memory rings"},
        {"ucx:messages=tcp+posix", DMG_ERR_UNSUPPORTED, "shared-memory rings"},
        {"ucx:messages=all", DMG_ERR_UNSUPPORTED, "shared-memory rings"},
        {"ucx:messages=pigeon", DMG_ERR_ARGUMENT, "pigeon"},
        {"ucx:messages=", DMG_ERR_ARGUMENT, "network transport"},
        {"ucx:messages=socket+tcp", DMG_ERR_ARGUMENT, "socket"},
        {"ucx:protect=plain", DMG_ERR_ARGUMENT, "authenticated or encrypted"},
        {"ucx:protect=encrypted,messages=tcp", DMG_ERR_UNSUPPORTED, "UCX encrypts nothing"},
        {"ucx:trust-network=maybe", DMG_ERR_ARGUMENT, "yes or no"},
        {"ucx:trust-network=yes", DMG_ERR_ARGUMENT, "nothing but messages=tcp"},
        {"ucx:trust-network=yes,messages=rc_verbs", DMG_ERR_ARGUMENT, "nothing but messages=tcp"},
        {"ucx:messages=ud_verbs", DMG_ERR_ARGUMENT, "--trust-network"},
        {"ucx:messages=dc_mlx5", DMG_ERR_ARGUMENT, "--trust-network"},
        {"ucx:messages=rc_verbs+tcp", DMG_ERR_ARGUMENT, "--trust-network"},
        {"ucx:data=dc_mlx5", DMG_ERR_UNSUPPORTED, "given up"},
        {"ucx:data=tcp", DMG_ERR_UNSUPPORTED, "one-sided"},
        {"ucx:data=pigeon", DMG_ERR_ARGUMENT, "pigeon"},
        {"ucx:port=65536", DMG_ERR_ARGUMENT, "65535"},
        {"ucx:port=-1", DMG_ERR_ARGUMENT, "65535"},
        {"ucx:port=http", DMG_ERR_ARGUMENT, "65535"},
        {"ucx:device=nowhere0", DMG_ERR_UNSUPPORTED, "nowhere0"},
        {"ucx:memory-device=nowhere0", DMG_ERR_UNSUPPORTED, "nowhere0"},
        {"ucx:device=lo,memory-device=nowhere0", DMG_ERR_UNSUPPORTED, "nowhere0"},
        {"ucx:device=lo", DMG_ERR_UNSUPPORTED, "network interfaces are for messages=tcp"},
        {"ucx:messages=tcp,trust-network=yes,device=nowhere0", DMG_ERR_UNSUPPORTED, "nowhere0"},
        {"ucx:data=rc_verbs,device=nowhere0:1", DMG_ERR_UNSUPPORTED, "nowhere0:1"},
        {"ucx:messages=rc_verbs,device=nowhere0:1", DMG_ERR_UNSUPPORTED, "nowhere0:1"},
        {"ucx:gid=-1", DMG_ERR_ARGUMENT, "65535"},
        {"ucx:gid=first", DMG_ERR_ARGUMENT, "65535"},
        {"ucx:retries=7", DMG_ERR_ARGUMENT, "from 1 to 6"},
        {"ucx:retries=0", DMG_ERR_ARGUMENT, "from 1 to 6"},
        {"ucx:retry-time=100", DMG_ERR_ARGUMENT, "100ms"},
        {"ucx:retry-time=0ms", DMG_ERR_ARGUMENT, "100ms"},
        {"ucx:retry-time=1h", DMG_ERR_ARGUMENT, "100ms"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dmg_server_options options = {.transport = cases[i].transport, .segment = {.bytes = 4096, .numa_node = -1}};
        dmg_server *server = NULL;
        dmg_status status = dmg_server_create(&options, &server);
        if (status != cases[i].status || strstr(dmg_error_message(), cases[i].part) == NULL) {
            printf("\n    %s: %s: %s\n", cases[i].transport, dmg_status_name(status), dmg_error_message());
            CU_FAIL("another error was expected");
        }
        dmg_server_destroy(server);
    }
}

static void devices_and_interfaces_are_told_apart(void)
{
    static const struct {
        const char *given;
        const char *devices[2]; /* of the compute node, of the memory node */
        const char *interfaces[2];
    } cases[] = {
        {"ucx", {"", ""}, {"", ""}},
        {"ucx:messages=tcp,device=lo", {"", ""}, {"lo", "lo"}},
        {"ucx:messages=tcp,device=nowhere0:2+lo+nowhere1:1",
         {"nowhere0:2,nowhere1:1", "nowhere0:2,nowhere1:1"},
         {"lo", "lo"}},
        {"ucx:device=nowhere0:1,memory-device=nowhere1:1", {"nowhere0:1", "nowhere1:1"}, {"", ""}},
        {"ucx:messages=tcp,memory-device=nowhere1:1+lo", {"", "nowhere1:1"}, {"", "lo"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dmg_backend *backend;
        dmg_transport_parameters parameters;
        CU_ASSERT_EQUAL_FATAL(dmg_transport_parse(cases[i].given, &backend, &parameters), DMG_OK);
        for (int side = 0; side < 2; side++) {
            dmg_ucx_settings settings;
            CU_ASSERT_EQUAL(dmg_ucx_settings_parse(&parameters, (dmg_ucx_side)side, &settings), DMG_OK);
            CU_ASSERT_STRING_EQUAL(settings.rdma_devices, cases[i].devices[side]);
            CU_ASSERT_STRING_EQUAL(settings.interfaces, cases[i].interfaces[side]);
        }
    }
}

static void note_refused_options(dmg_log_level level, const char *line, void *context)
{
    (void)level;
    if (strstr(line, "invalid configuration") != NULL) {
        printf("\n    %s\n", line);
        *(bool *)context = true;
    }
}

/* UCX passes over an option that it does not know, and says so in its log only. */
static void ucx_knows_every_option_that_it_is_given(void)
{
    bool is_refused = false;
    dmg_log_set_sink(note_refused_options, &is_refused, DMG_LOG_DEBUG);
    static const char *const transports[] = {"ucx:data=message,messages=tcp", "ucx:data=posix", "ucx:data=sysv"};
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        dmg_server_options options = {.transport = transport_or_given(transports[i]),
                                      .segment = {.bytes = 4096, .numa_node = -1}};
        dmg_server *server = NULL;
        CU_ASSERT_EQUAL(dmg_server_create(&options, &server), DMG_OK);
        dmg_server_destroy(server);
    }
    CU_ASSERT_FALSE(is_refused);
    dmg_log_set_sink(NULL, NULL, DMG_LOG_WARNING);
}

static void lane_that_the_node_does_not_offer_is_refused(void)
{
    test_transport = "ucx:data=message";
    test_node node = test_node_start(0, PATIENT_NS);
    const char *address = node.address;
    dmg_client_options options = test_client_options(&node, PATIENT_NS, (const char *[TEST_NODES]){0});
    options.addresses = &address;
    options.address_count = 1;
    options.transport = "ucx:data=posix";
    dmg_client *client = NULL;
    CU_ASSERT_EQUAL(dmg_client_open(&options, &client), DMG_ERR_UNSUPPORTED);
    options.transport = "ucx";
    CU_ASSERT_EQUAL_FATAL(dmg_client_open(&options, &client), DMG_OK);
    CU_ASSERT_EQUAL(dmg_client_capabilities(client)->flags, DMG_CAPABILITY_MN_COMPUTE);
    CU_ASSERT_EQUAL(dmg_client_capabilities(client)->atomics, DMG_ATOMICS_MEMORY_NODE);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_client_capabilities(client)->chosen, "no one-sided lane"));
    dmg_client_close(client);
    CU_ASSERT_EQUAL(test_node_stop(&node), 0);
}

static void every_lane_of_shared_memory_is_one_sided(void)
{
    static const char *const transports[] = {"ucx", "ucx:data=posix", "ucx:data=sysv"};
    for (size_t i = 0; i < sizeof transports / sizeof transports[0]; i++) {
        test_transport = transports[i];
        test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
        CU_ASSERT_EQUAL(dmg_client_capabilities(pool.client)->flags,
                        DMG_CAPABILITY_MN_COMPUTE | DMG_CAPABILITY_ONE_SIDED);
        CU_ASSERT_EQUAL(dmg_client_capabilities(pool.client)->atomics, DMG_ATOMICS_CALLER_CPU);
        /* One-sided means that the memory node may sleep meanwhile. */
        kill(pool.nodes[1].process, SIGSTOP);
        uint64_t value = 5;
        uint64_t before = 9;
        dmg_address word = dmg_address_make(1, 4096);
        CU_ASSERT_EQUAL(dmg_write(pool.channel, &value, word, sizeof value), DMG_OK);
        CU_ASSERT_EQUAL(dmg_faa64(pool.channel, word, 2, &before), DMG_OK);
        CU_ASSERT_EQUAL(before, 5);
        CU_ASSERT_EQUAL(dmg_cas64(pool.channel, word, 7, 8, &before), DMG_OK);
        CU_ASSERT_EQUAL(before, 7);
        CU_ASSERT_EQUAL(dmg_read(pool.channel, word, &value, sizeof value), DMG_OK);
        CU_ASSERT_EQUAL(value, 8);
        kill(pool.nodes[1].process, SIGCONT);
        test_pool_stop(&pool);
    }
}

static void addresses_in_another_order_are_refused(void)
{
    test_transport = "ucx";
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    const char *addresses[TEST_NODES];
    dmg_client_options options = test_client_options(pool.nodes, PATIENT_NS, addresses);
    addresses[0] = pool.nodes[1].address;
    addresses[1] = pool.nodes[0].address;
    dmg_client *client = NULL;
    CU_ASSERT_EQUAL(dmg_client_open(&options, &client), DMG_ERR_PROTOCOL);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "order"));
    test_pool_stop(&pool);
}

/* ---- deaths with operations by message in flight ---- */

typedef struct flood_buffers {
    uint8_t bytes[FLOOD_BATCH][4096];
    uint64_t words[FLOOD_BATCH];
    dmg_call calls[FLOOD_BATCH];
} flood_buffers;

/* Post a batch of every kind of operation to one node. */
static void post_flood(dmg_channel *channel, uint16_t node, flood_buffers *flood, dmg_random *random,
                       dmg_completion *completion)
{
    for (uint32_t i = 0; i < FLOOD_BATCH; i++) {
        dmg_address at = dmg_address_make(node, FLOOD_SLICE + dmg_random_next(random) % FLOOD_SLICE / 8 * 8);
        uint64_t bytes = 1 + dmg_random_next(random) % sizeof flood->bytes[i];
        switch (dmg_random_next(random) % 5) {
        case 0:
            dmg_post_read(channel, at, flood->bytes[i], bytes, completion);
            break;
        case 1:
            dmg_post_write(channel, flood->bytes[i], at, bytes, completion);
            break;
        case 2:
            dmg_post_cas64(channel, at, 0, dmg_random_next(random), &flood->words[i], completion);
            break;
        case 3:
            dmg_post_faa64(channel, at, 1, &flood->words[i], completion);
            break;
        default:
            flood->calls[i] = (dmg_call){.reply = flood->bytes[i], .reply_capacity = sizeof flood->bytes[i]};
            dmg_post_call(channel, node, TEST_ECHO, flood->bytes[i], bytes, &flood->calls[i], completion);
        }
    }
}

/* --flood TRANSPORT SEED ADDRESS ADDRESS: operations until it is killed. */
static int flood_main(char **argv)
{
    test_transport = argv[0];
    dmg_random random = {strtoull(argv[1], NULL, 10)};
    dmg_client_options options = {.transport = test_transport,
                                  .addresses = (const char *const *)(argv + 2),
                                  .address_count = TEST_NODES,
                                  .peer_timeout_ns = PATIENT_NS};
    memcpy(options.token, test_token, sizeof options.token);
    dmg_client *client;
    dmg_channel *channel;
    static flood_buffers floods[TEST_NODES];
    if (dmg_client_open(&options, &client) != DMG_OK || dmg_channel_open(client, &channel) != DMG_OK ||
        write(STDOUT_FILENO, "r", 1) != 1) {
        return 1;
    }
    dmg_status status = DMG_OK;
    while (status == DMG_OK) {
        dmg_completion completion = {0};
        for (uint16_t node = 0; node < TEST_NODES; node++) {
            post_flood(channel, node, &floods[node], &random, &completion);
        }
        status = dmg_wait(channel, &completion);
    }
    _exit(2); /* nothing was closed: what libraries do at an exit is not looked at here */
}

/* `is_awaited`: return when it has opened its channel. */
static pid_t start_flood(const test_node *nodes, uint64_t seed, bool is_awaited)
{
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    char number[32];
    snprintf(number, sizeof number, "%" PRIu64, seed);
    char *arguments[] = {"unit-transport_ucx",
                         "--flood",
                         (char *)(uintptr_t)test_transport,
                         number,
                         (char *)(uintptr_t)nodes[0].address,
                         (char *)(uintptr_t)nodes[1].address,
                         NULL};
    pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(is_awaited ? ends[1] : open("/dev/null", O_WRONLY), STDOUT_FILENO);
        close_range(STDERR_FILENO + 1, ~0U, 0);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    close(ends[1]);
    char said = 0;
    CU_ASSERT_EQUAL(is_awaited ? read(ends[0], &said, 1) : 1, 1);
    close(ends[0]);
    return process;
}

static void killed_clients_with_operations_in_flight_leave_the_nodes_serving(void)
{
    static const char *const transports[] = {"ucx:data=message", "ucx"};
    dmg_random random = {dmg_test_seed()};
    const uint32_t kills = test_rounds(KILLS);
    for (size_t i = 0; i < (test_given_transport() != NULL ? 1 : sizeof transports / sizeof transports[0]); i++) {
        test_transport = transport_or_given(transports[i]);
        test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
        for (uint32_t kill_count = 1; kill_count <= kills; kill_count++) {
            pid_t client = start_flood(pool.nodes, dmg_random_next(&random), true);
            dmg_sleep_ns(dmg_random_next(&random) % 30000000);
            test_process_kill(client);
            CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 0));
            CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 1));
        }
        gone_report report = {0};
        for (dmg_test_wait wait = dmg_test_wait_for(GONE_S); report.died < kills && dmg_test_goes_on(&wait);) {
            CU_ASSERT_EQUAL_FATAL(test_ask(pool.channel, 1, TEST_GONE, &report, sizeof report), DMG_OK);
        }
        CU_ASSERT_EQUAL(report.died, kills);
        CU_ASSERT_EQUAL(report.closed, 0);
        CU_ASSERT_EQUAL(report.repeated, 0);
        test_pool_stop(&pool);
    }
}

/* Loading UCX, the greeting, the hello, the lanes, and the first operations: a kill hits any of it. */
static void clients_killed_while_they_connect_leave_the_nodes_serving(void)
{
    static const char *const transports[] = {"ucx", "ucx:data=message", "ucx:data=message,port=0"};
    dmg_random random = {dmg_test_seed()};
    const uint32_t kills = test_rounds(CONNECT_KILLS);
    for (size_t i = 0; i < (test_given_transport() != NULL ? 1 : sizeof transports / sizeof transports[0]); i++) {
        test_transport = transport_or_given(transports[i]);
        test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
        uint64_t begun_ns = dmg_now_ns();
        test_process_kill(start_flood(pool.nodes, 1, true));
        const uint64_t opening_ns = dmg_now_ns() - begun_ns;
        for (uint32_t kill_count = 0; kill_count < kills; kill_count++) {
            pid_t client = start_flood(pool.nodes, dmg_random_next(&random), false);
            dmg_sleep_ns(dmg_random_next(&random) % (opening_ns + opening_ns / 4));
            test_process_kill(client);
            CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 0));
            CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 1));
        }
        /* Whoever comes next is served as if nothing had been. */
        test_process_kill(start_flood(pool.nodes, 2, true));
        test_pool_stop(&pool);
    }
}

/* Whether all of what a flood writes to in a node is still as it was written. */
static bool is_untouched(dmg_channel *channel, uint16_t node, const uint8_t *written, uint8_t *read_back)
{
    dmg_completion completion = {0};
    dmg_post_read(channel, dmg_address_make(node, FLOOD_SLICE), read_back, FLOOD_BYTES, &completion);
    CU_ASSERT_EQUAL_FATAL(dmg_wait(channel, &completion), DMG_OK);
    return memcmp(written, read_back, FLOOD_BYTES) == 0;
}

/* Until both nodes have given up a client. */
static void await_deaths(dmg_channel *channel)
{
    gone_report reports[TEST_NODES] = {{0}};
    for (dmg_test_wait wait = dmg_test_wait_for(GONE_S);
         reports[0].died + reports[1].died < TEST_NODES && dmg_test_goes_on(&wait);) {
        for (uint16_t node = 0; node < TEST_NODES; node++) {
            CU_ASSERT_EQUAL_FATAL(test_ask(channel, node, TEST_GONE, &reports[node], sizeof reports[node]), DMG_OK);
        }
    }
    CU_ASSERT_EQUAL_FATAL(reports[0].died + reports[1].died, TEST_NODES);
}

/* A client that a card serves is stopped in the middle of its writes, for longer than its lease, and goes on. */
static void client_that_was_given_up_writes_nothing_over_a_card(void)
{
    test_transport = transport_or_given("ucx");
    dmg_random random = {dmg_test_seed()};
    const uint64_t short_ns = test_short_ns();
    uint8_t *written = malloc(FLOOD_BYTES);
    uint8_t *read_back = malloc(FLOOD_BYTES);
    CU_ASSERT_FATAL(written != NULL && read_back != NULL);
    memset(written, 0xa5, FLOOD_BYTES);
    test_pool pool = test_pool_start(short_ns, short_ns);
    pid_t zombie = start_flood(pool.nodes, dmg_random_next(&random), true);
    dmg_sleep_ns(dmg_random_next(&random) % 30000000);
    kill(zombie, SIGSTOP);
    await_deaths(pool.channel);
    dmg_completion completion = {0};
    for (uint16_t node = 0; node < TEST_NODES; node++) {
        dmg_post_write(pool.channel, written, dmg_address_make(node, FLOOD_SLICE), FLOOD_BYTES, &completion);
    }
    CU_ASSERT_EQUAL_FATAL(dmg_wait(pool.channel, &completion), DMG_OK);
    kill(zombie, SIGCONT);
    /* It tries for a while, or hears that it was given up; the nodes serve others meanwhile. */
    pid_t ended = 0;
    for (dmg_test_wait wait = dmg_test_wait_for(ZOMBIE_S); ended == 0 && dmg_test_goes_on(&wait);) {
        CU_ASSERT_TRUE_FATAL(test_node_serves(&pool, 0) && test_node_serves(&pool, 1));
        ended = waitpid(zombie, NULL, WNOHANG);
    }
    if (ended == 0) {
        test_process_kill(zombie);
    }
    CU_ASSERT_TRUE(is_untouched(pool.channel, 0, written, read_back));
    CU_ASSERT_TRUE(is_untouched(pool.channel, 1, written, read_back));
    test_pool_stop(&pool);
    free(written);
    free(read_back);
}

static void killed_node_ends_all_kinds_of_operations(void)
{
    static const char *const transports[] = {"ucx:data=message", "ucx"};
    dmg_random random = {dmg_test_seed()};
    flood_buffers *flood = calloc(1, sizeof *flood);
    CU_ASSERT_PTR_NOT_NULL_FATAL(flood);
    for (uint32_t i = 0; i < test_rounds(2 * SERVER_KILLS); i++) {
        test_transport = transport_or_given(transports[i % 2]);
        test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
        dmg_completion completion = {0};
        for (uint32_t batch = 0; batch < 100 && completion.status == DMG_OK; batch++) {
            if (batch == 3) {
                kill(pool.nodes[1].process, SIGKILL);
            }
            completion = (dmg_completion){0};
            post_flood(pool.channel, 1, flood, &random, &completion);
            if (batch % 2 == 0) {
                dmg_channel_ring(pool.channel);
            }
            (void)dmg_wait(pool.channel, &completion);
        }
        CU_ASSERT_EQUAL(completion.pending, 0);
        CU_ASSERT_EQUAL(completion.status, DMG_ERR_PEER);
        CU_ASSERT_EQUAL(completion.failed_node, 1);
        CU_ASSERT_TRUE(test_node_serves(&pool, 0));
        test_process_kill(pool.nodes[1].process);
        pool.nodes[1].process = 0;
        test_pool_stop(&pool);
    }
    free(flood);
}

static void long_operations_end_when_their_node_dies(void)
{
    test_transport = transport_or_given("ucx:data=message");
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    uint64_t bytes = TEST_SEGMENT_BYTES / 2;
    uint8_t *buffers = calloc(2, bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(buffers);
    dmg_completion completion = {0};
    for (int i = 0; i < 20; i++) {
        dmg_post_read(pool.channel, dmg_address_make(1, 0), buffers, bytes, &completion);
        dmg_post_write(pool.channel, buffers + bytes, dmg_address_make(1, bytes), bytes, &completion);
    }
    dmg_channel_poll(pool.channel);
    test_process_kill(pool.nodes[1].process);
    pool.nodes[1].process = 0;
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_ERR_PEER);
    CU_ASSERT_EQUAL(completion.pending, 0);
    CU_ASSERT_TRUE(test_node_serves(&pool, 0));
    free(buffers);
    test_pool_stop(&pool);
}

static void more_operations_than_a_channel_holds_all_end(void)
{
    enum { COUNT = 20000 };
    test_transport = transport_or_given("ucx:data=message");
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    dmg_completion completion = {0};
    uint64_t *before = calloc(COUNT, sizeof *before);
    CU_ASSERT_PTR_NOT_NULL_FATAL(before);
    for (uint32_t i = 0; i < COUNT; i++) {
        dmg_post_faa64(pool.channel, dmg_address_make(0, 4096), 1, &before[i], &completion);
    }
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_OK);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < COUNT; i++) {
        sum += before[i];
    }
    CU_ASSERT_EQUAL(sum, (uint64_t)COUNT * (COUNT - 1) / 2);
    free(before);
    test_pool_stop(&pool);
}

static const dmg_test tests[] = {
    DMG_TEST(parameters_that_make_no_sense_are_refused_with_a_reason),
    DMG_TEST(devices_and_interfaces_are_told_apart),
    DMG_TEST(ucx_knows_every_option_that_it_is_given),
    DMG_TEST(lane_that_the_node_does_not_offer_is_refused),
    DMG_TEST(every_lane_of_shared_memory_is_one_sided),
    DMG_TEST(lanes_write_nothing_into_their_memory_nodes_queues),
    DMG_TEST(addresses_in_another_order_are_refused),
    DMG_TEST(nobody_listens_at_a_port_on_one_host),
    DMG_TEST(memory_nodes_alone_listen_and_at_one_port),
    DMG_TEST(garbage_on_any_port_leaves_the_node_serving),
    DMG_TEST(malformed_messages_cost_their_sender_the_connection),
    DMG_TEST(requests_before_a_hello_are_refused),
    DMG_TEST(hellos_that_are_not_right_are_refused),
    DMG_TEST(spans_outside_the_segment_are_answered_with_an_error),
    DMG_TEST(request_for_a_lane_that_the_node_has_not_is_refused),
    DMG_TEST(client_that_takes_no_answers_is_cut_off),
    DMG_TEST(fuzzed_frames_leave_the_node_serving),
    DMG_TEST(clients_killed_while_they_connect_leave_the_nodes_serving),
    DMG_TEST(killed_clients_with_operations_in_flight_leave_the_nodes_serving),
    DMG_TEST(killed_node_ends_all_kinds_of_operations),
    DMG_TEST(long_operations_end_when_their_node_dies),
    DMG_TEST(more_operations_than_a_channel_holds_all_end),
    DMG_TEST(step_that_does_not_return_is_given_up),
    DMG_TEST(time_in_which_the_process_was_stopped_is_not_waited),
    DMG_TEST(worker_that_finds_no_port_is_given_up),
    DMG_TEST(host_with_a_variable_that_may_not_pass_is_refused),
    {NULL, NULL},
};

static const dmg_test tests_on_cards[] = {
    DMG_TEST(ucx_knows_every_option_that_it_is_given),
    DMG_TEST(killed_clients_with_operations_in_flight_leave_the_nodes_serving),
    DMG_TEST(clients_killed_while_they_connect_leave_the_nodes_serving),
    DMG_TEST(client_that_was_given_up_writes_nothing_over_a_card),
    DMG_TEST(killed_node_ends_all_kinds_of_operations),
    DMG_TEST(long_operations_end_when_their_node_dies),
    DMG_TEST(more_operations_than_a_channel_holds_all_end),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    int exit_code;
    if (argc == 6 && strcmp(argv[1], "--flood") == 0) {
        return flood_main(argv + 2);
    }
    if (test_process_main(argc, argv, &exit_code) || limits_process_main(argc, argv, &exit_code) ||
        lanes_process_main(argc, argv, &exit_code)) {
        return exit_code;
    }
    alarm(dmg_test_deadline_s(600)); /* whatever hangs ends */
    if (dmg_suite_add("transport_ucx", NULL, NULL, test_given_transport() != NULL ? tests_on_cards : tests) != 0) {
        return 2;
    }
    return dmg_suites_run(argc, argv);
}
