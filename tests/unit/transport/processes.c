#include "unit/transport/processes.h"

#include "core/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD_MAX      128
#define CLIENTS_MAX   256
#define FLOOD_CALLS   16
#define OPENINGS      3 /* in a short timeout */
#define READY_PIPE    3 /* the descriptor where a child says that it is ready */
#define ARGUMENTS_MAX 10
#define ROUNDS_GIVEN  4

const char *test_transport;
const uint8_t test_token[DMG_TOKEN_BYTES] = {7, 1, 2, 3};

bool test_node_serves(test_pool *pool, uint16_t node)
{
    uint64_t value = 0;
    return test_ask(pool->channel, node, TEST_ECHO, NULL, 0) == DMG_OK &&
           dmg_read(pool->channel, dmg_address_make(node, 64), &value, sizeof value) == DMG_OK;
}

const char *test_given_transport(void)
{
    return getenv("DMGRAPH_TEST_TRANSPORT");
}

uint32_t test_rounds(uint32_t usual)
{
    const char *depth = getenv("DMGRAPH_TEST_DEPTH");
    bool is_full = depth != NULL && strcmp(depth, "full") == 0;
    return test_given_transport() != NULL && !is_full && usual > ROUNDS_GIVEN ? ROUNDS_GIVEN : usual;
}

/* ---- the memory node's process ---- */

typedef struct node_state {
    uint64_t held[HELD_MAX];
    uint32_t held_count;
    uint64_t last_in_sequence;
    uint64_t gone[CLIENTS_MAX];
    uint32_t gone_count;
    gone_report report;
} node_state;

static dmg_server *serving; /* for the signal handler */

static void on_terminate(int signal_number)
{
    (void)signal_number;
    dmg_server_stop(serving);
}

static void release(node_state *state, dmg_server *server)
{
    while (state->held_count > 0) {
        state->held_count--;
        uint64_t number = state->held_count;
        dmg_server_reply(server, state->held[state->held_count], DMG_OK, &number, sizeof number);
    }
}

static uint64_t number_in(const dmg_request *request)
{
    uint64_t number = 0;
    if (request->bytes == sizeof number) {
        memcpy(&number, request->payload, sizeof number);
    }
    return number;
}

static void on_request(void *context, dmg_server *server, const dmg_request *request)
{
    static const char large[DMG_MESSAGE_BYTES_MAX];
    node_state *state = context;
    uint64_t token = request->reply_token;
    uint64_t number = number_in(request);
    dmg_counters counters;
    switch (request->type) {
    case TEST_ECHO:
        dmg_server_reply(server, token, DMG_OK, request->payload, request->bytes);
        break;
    case TEST_HOLD:
        if (state->held_count < HELD_MAX) {
            state->held[state->held_count++] = token;
        }
        break;
    case TEST_RELEASE:
        release(state, server);
        dmg_server_reply(server, token, DMG_OK, NULL, 0);
        break;
    case TEST_FAIL:
        dmg_server_reply(server, token, DMG_ERR_NOT_FOUND, request->payload, request->bytes);
        break;
    case TEST_SEQUENCE:
        if (number == state->last_in_sequence + 1) {
            state->last_in_sequence = number;
        }
        dmg_server_reply(server, token, DMG_OK, &state->last_in_sequence, sizeof state->last_in_sequence);
        break;
    case TEST_LARGE:
        dmg_server_reply(server, token, DMG_OK, large, number <= sizeof large ? number : sizeof large);
        break;
    case TEST_GONE:
        dmg_server_reply(server, token, DMG_OK, &state->report, sizeof state->report);
        break;
    case TEST_COUNTERS:
        dmg_server_counters(server, &counters);
        dmg_server_reply(server, token, DMG_OK, &counters, sizeof counters);
        break;
    case TEST_STOP:
        dmg_server_reply(server, token, DMG_OK, NULL, 0);
        dmg_server_stop(server);
        break;
    default:
        dmg_server_reply(server, token, DMG_ERR_UNSUPPORTED, NULL, 0);
    }
}

static void on_client_gone(void *context, dmg_server *server, uint64_t client, dmg_status why)
{
    (void)server;
    node_state *state = context;
    for (uint32_t i = 0; i < state->gone_count; i++) {
        state->report.repeated += state->gone[i] == client;
    }
    if (state->gone_count < CLIENTS_MAX) {
        state->gone[state->gone_count++] = client;
    }
    state->report.closed += why == DMG_OK;
    state->report.died += why == DMG_ERR_PEER;
}

static int complain(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, dmg_error_message());
    return 1;
}

static bool say_ready(const char *text)
{
    size_t length = strlen(text);
    bool is_said = write(READY_PIPE, text, length) == (ssize_t)length;
    close(READY_PIPE);
    return is_said;
}

/* --memory-node TRANSPORT NODE TIMEOUT_NS */
static int memory_node_main(char **argv)
{
    node_state state = {0};
    dmg_server_options options = {
        .transport = argv[0],
        .node = (uint16_t)atoi(argv[1]),
        .segment = {.bytes = TEST_SEGMENT_BYTES, .numa_node = -1},
        .peer_timeout_ns = strtoull(argv[2], NULL, 10),
        .on_request = on_request,
        .on_client_gone = on_client_gone,
        .context = &state,
    };
    memcpy(options.token, test_token, sizeof options.token);
    if (dmg_server_create(&options, &serving) != DMG_OK) {
        return complain("memory node");
    }
    struct sigaction action = {.sa_handler = on_terminate};
    sigaction(SIGTERM, &action, NULL);
    if (!say_ready(dmg_server_address(serving))) {
        return 1;
    }
    dmg_status status = dmg_server_serve(serving);
    dmg_server_destroy(serving);
    return status == DMG_OK ? 0 : complain("memory node");
}

/* ---- the compute node's process ---- */

dmg_status test_count_up(dmg_channel *channel)
{
    dmg_address added = dmg_address_make(1, COUNT_FAA);
    dmg_address exchanged = dmg_address_make(1, COUNT_CAS);
    dmg_status status = DMG_OK;
    for (int round = 0; round < COUNT_ROUNDS && status == DMG_OK; round++) {
        uint64_t before;
        status = dmg_faa64(channel, added, 1, &before);
        uint64_t observed;
        uint64_t expected = 0;
        while (status == DMG_OK) {
            status = dmg_cas64(channel, exchanged, expected, expected + 1, &observed);
            if (observed == expected) {
                break;
            }
            expected = observed;
        }
    }
    return status;
}

/* Ends with an error only: its memory nodes die, or it is killed. */
static dmg_status flood(dmg_channel *channel)
{
    static char payload[DMG_MESSAGE_BYTES_MAX];
    static char replies[FLOOD_CALLS][DMG_MESSAGE_BYTES_MAX];
    dmg_status status = DMG_OK;
    for (uint64_t round = 0; status == DMG_OK; round++) {
        dmg_completion completion = {0};
        dmg_call calls[FLOOD_CALLS];
        for (uint32_t i = 0; i < FLOOD_CALLS; i++) {
            calls[i] = (dmg_call){.reply = replies[i], .reply_capacity = sizeof replies[i]};
            uint64_t bytes = (round * FLOOD_CALLS + i) * 797 % DMG_MESSAGE_BYTES_MAX;
            dmg_post_call(channel, (uint16_t)(i % TEST_NODES), TEST_ECHO, payload, bytes, &calls[i], &completion);
        }
        status = dmg_wait(channel, &completion);
    }
    return status;
}

/* --compute-node WHAT TRANSPORT TIMEOUT_NS ADDRESS... */
static int compute_node_main(int argc, char **argv)
{
    const char *addresses[ARGUMENTS_MAX] = {0};
    dmg_client_options options = {
        .transport = argv[1], .addresses = addresses, .peer_timeout_ns = strtoull(argv[2], NULL, 10)};
    memcpy(options.token, test_token, sizeof options.token);
    for (int i = 3; i < argc && options.address_count < ARGUMENTS_MAX; i++) {
        addresses[options.address_count++] = argv[i];
    }
    dmg_client *client;
    dmg_channel *channel;
    dmg_channel *second;
    if (dmg_client_open(&options, &client) != DMG_OK || dmg_channel_open(client, &channel) != DMG_OK ||
        dmg_channel_open(client, &second) != DMG_OK || !say_ready("ready")) {
        return complain("compute node");
    }
    dmg_status status = DMG_OK;
    if (strcmp(argv[0], COMPUTE_COUNT) == 0) {
        status = test_count_up(channel);
    } else if (strcmp(argv[0], COMPUTE_FLOOD) == 0) {
        status = flood(channel);
    } else {
        pause();
    }
    dmg_channel_close(channel);
    dmg_channel_close(second);
    dmg_client_close(client);
    return status == DMG_OK ? 0 : complain("compute node");
}

bool test_process_main(int argc, char **argv, int *exit_code)
{
    if (argc == 5 && strcmp(argv[1], "--memory-node") == 0) {
        *exit_code = memory_node_main(argv + 2);
        return true;
    }
    if (argc > 5 && strcmp(argv[1], "--compute-node") == 0) {
        *exit_code = compute_node_main(argc - 2, argv + 2);
        return true;
    }
    return false;
}

/* ---- starting and ending them ---- */

/* Fork and execute; `said` gets what the child writes when it is ready. */
static pid_t start(char *const arguments[], char *said, size_t capacity)
{
    int ends[2];
    if (pipe(ends) != 0) {
        CU_FAIL_FATAL("no pipe");
        return -1;
    }
    pid_t parent = getpid();
    pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || dup2(ends[1], READY_PIPE) < 0) {
            _exit(127);
        }
        /* A copy of anything else would keep sockets and pipes open that the tests watch for their end. */
        close_range(READY_PIPE + 1, ~0U, 0);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    close(ends[1]);
    size_t used = 0;
    ssize_t got = 1;
    while (got > 0 && used + 1 < capacity) {
        got = read(ends[0], said + used, capacity - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    said[used] = '\0';
    close(ends[0]);
    CU_ASSERT_TRUE_FATAL(used > 0);
    return process;
}

test_node test_node_start(uint16_t node, uint64_t peer_timeout_ns)
{
    test_node started = {0};
    char number[16];
    char timeout[32];
    snprintf(number, sizeof number, "%u", (unsigned int)node);
    snprintf(timeout, sizeof timeout, "%" PRIu64, peer_timeout_ns);
    char *arguments[] = {"unit-transport", "--memory-node", (char *)(uintptr_t)test_transport, number, timeout, NULL};
    started.process = start(arguments, started.address, sizeof started.address);
    return started;
}

pid_t test_compute_start(const char *what, const test_node *nodes, uint64_t peer_timeout_ns)
{
    char timeout[32];
    char said[16];
    snprintf(timeout, sizeof timeout, "%" PRIu64, peer_timeout_ns);
    char *arguments[ARGUMENTS_MAX] = {"unit-transport", "--compute-node", (char *)(uintptr_t)what,
                                      (char *)(uintptr_t)test_transport, timeout};
    for (int i = 0; i < TEST_NODES; i++) {
        arguments[5 + i] = (char *)(uintptr_t)nodes[i].address;
    }
    return start(arguments, said, sizeof said);
}

int test_process_wait(pid_t process)
{
    int state;
    while (waitpid(process, &state, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(state) ? WEXITSTATUS(state) : -1;
}

void test_process_kill(pid_t process)
{
    kill(process, SIGKILL);
    (void)test_process_wait(process);
}

int test_node_stop(test_node *node)
{
    if (node->process == 0) {
        return 0;
    }
    kill(node->process, SIGTERM);
    int code = test_process_wait(node->process);
    node->process = 0;
    return code;
}

dmg_client_options test_client_options(const test_node *nodes, uint64_t peer_timeout_ns, const char **addresses)
{
    dmg_client_options options = {.transport = test_transport,
                                  .addresses = addresses,
                                  .address_count = TEST_NODES,
                                  .peer_timeout_ns = peer_timeout_ns};
    memcpy(options.token, test_token, sizeof options.token);
    for (int i = 0; i < TEST_NODES; i++) {
        addresses[i] = nodes[i].address;
    }
    return options;
}

uint64_t test_short_ns(void)
{
    uint64_t started_ns = dmg_now_ns();
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    bool is_serving = test_node_serves(&pool, 0) && test_node_serves(&pool, 1); /* opens the lanes */
    uint64_t opening_ns = dmg_now_ns() - started_ns;
    test_pool_stop(&pool);
    CU_ASSERT_TRUE_FATAL(is_serving);
    uint64_t second_ns = dmg_test_deadline_ns(1);
    return second_ns > OPENINGS * opening_ns ? second_ns : OPENINGS * opening_ns;
}

test_pool test_pool_start(uint64_t server_timeout_ns, uint64_t client_timeout_ns)
{
    test_pool pool = {0};
    for (uint16_t i = 0; i < TEST_NODES; i++) {
        pool.nodes[i] = test_node_start(i, server_timeout_ns);
    }
    const char *addresses[TEST_NODES];
    dmg_client_options options = test_client_options(pool.nodes, client_timeout_ns, addresses);
    if (dmg_client_open(&options, &pool.client) != DMG_OK || dmg_channel_open(pool.client, &pool.channel) != DMG_OK) {
        printf("\n    %s\n", dmg_error_message());
        CU_FAIL_FATAL("the pool does not open");
    }
    return pool;
}

void test_pool_stop(test_pool *pool)
{
    dmg_channel_close(pool->channel);
    dmg_client_close(pool->client);
    for (int i = 0; i < TEST_NODES; i++) {
        CU_ASSERT_EQUAL(test_node_stop(&pool->nodes[i]), 0);
    }
}

dmg_status test_ask(dmg_channel *channel, uint16_t node, uint32_t type, void *answer, size_t bytes)
{
    dmg_call call = {.reply = answer, .reply_capacity = bytes};
    return dmg_message(channel, node, type, NULL, 0, &call);
}
