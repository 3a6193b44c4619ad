/*
 * What transport.h promises when processes are killed, stopped, or send nonsense. Every wait here is bounded by a peer
 * timeout that the code under test keeps; nothing is asserted about how long it took.
 */
#include "unit/transport/processes.h"

#include "core/base/clock.h"
#include "transport/cxl_shm/shm.h"
#include "transport/stream/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define KILLS          20
#define MILLISECOND_NS UINT64_C(1000000)
#define PATIENCE_S     30 /* against a machine that hangs */
#define GARBAGE_ROUNDS 60
#define GARBAGE_BYTES  3000

/* Wait until a node is known to be dead; false when that never comes. */
static bool node_dies(dmg_client *client, uint16_t node)
{
    for (dmg_test_wait wait = dmg_test_wait_for(PATIENCE_S); dmg_test_goes_on(&wait);) {
        if (dmg_client_node_status(client, node) == DMG_ERR_PEER) {
            return true;
        }
    }
    return false;
}

/* The message names the node and its address. */
static bool names_node(const test_node *node, const char *number)
{
    return strstr(dmg_error_message(), number) != NULL && strstr(dmg_error_message(), node->address) != NULL;
}

/* Wait until node 0 has seen so many deaths and closings. */
static bool has_seen(dmg_channel *channel, uint64_t died, uint64_t closed, gone_report *report)
{
    for (dmg_test_wait wait = dmg_test_wait_for(PATIENCE_S); dmg_test_goes_on(&wait);) {
        if (test_ask(channel, 0, TEST_GONE, report, sizeof *report) != DMG_OK) {
            return false;
        }
        if (report->died >= died && report->closed >= closed) {
            return true;
        }
    }
    return false;
}

static void forget(test_node *node)
{
    node->process = 0; /* it is gone, and there is nothing to stop */
}

/* ---- memory nodes ---- */

static void hold_calls(dmg_channel *channel, uint16_t node, dmg_call *calls, int count, dmg_completion *completion)
{
    for (int i = 0; i < count; i++) {
        calls[i] = (dmg_call){0};
        dmg_post_call(channel, node, TEST_HOLD, NULL, 0, &calls[i], completion);
    }
    dmg_channel_ring(channel);
}

void killed_memory_node_ends_calls_in_flight(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    dmg_call calls[5];
    dmg_completion completion = {0};
    hold_calls(pool.channel, 1, calls, 5, &completion);
    CU_ASSERT_EQUAL(test_ask(pool.channel, 1, TEST_ECHO, NULL, 0), DMG_OK);
    test_process_kill(pool.nodes[1].process);
    forget(&pool.nodes[1]);
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_ERR_PEER);
    CU_ASSERT_EQUAL(completion.pending, 0);
    CU_ASSERT_EQUAL(completion.failed_node, 1);
    CU_ASSERT_TRUE(names_node(&pool.nodes[1], "memory node 1"));
    test_pool_stop(&pool);
}

void killed_memory_node_is_noticed_with_nothing_in_flight(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    test_process_kill(pool.nodes[0].process);
    forget(&pool.nodes[0]);
    CU_ASSERT_TRUE(node_dies(pool.client, 0));
    CU_ASSERT_TRUE(names_node(&pool.nodes[0], "memory node 0"));
    uint64_t value = 0;
    CU_ASSERT_EQUAL(dmg_read(pool.channel, dmg_address_make(0, 64), &value, 8), DMG_ERR_PEER);
    CU_ASSERT_EQUAL(dmg_write(pool.channel, &value, dmg_address_make(0, 64), 8), DMG_ERR_PEER);
    CU_ASSERT_EQUAL(dmg_faa64(pool.channel, dmg_address_make(0, 64), 1, &value), DMG_ERR_PEER);
    CU_ASSERT_EQUAL(dmg_cas64(pool.channel, dmg_address_make(0, 64), 0, 1, &value), DMG_ERR_PEER);
    CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_ECHO, NULL, 0), DMG_ERR_PEER);
    CU_ASSERT_TRUE(names_node(&pool.nodes[0], "memory node 0"));
    dmg_channel *late;
    CU_ASSERT_EQUAL(dmg_channel_open(pool.client, &late), DMG_ERR_PEER);
    test_pool_stop(&pool);
}

void other_nodes_go_on_when_one_dies(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    uint64_t answer;
    dmg_call call = {.reply = &answer, .reply_capacity = sizeof answer};
    dmg_completion held = {0};
    dmg_post_call(pool.channel, 0, TEST_HOLD, NULL, 0, &call, &held);
    test_process_kill(pool.nodes[1].process);
    forget(&pool.nodes[1]);
    CU_ASSERT_TRUE(node_dies(pool.client, 1));
    uint64_t value = 11;
    CU_ASSERT_EQUAL(dmg_write(pool.channel, &value, dmg_address_make(0, 64), 8), DMG_OK);
    CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_RELEASE, NULL, 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &held), DMG_OK);
    CU_ASSERT_EQUAL(dmg_client_node_status(pool.client, 0), DMG_OK);
    test_pool_stop(&pool);
}

void stopped_memory_node_ends_calls_in_flight(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, test_short_ns());
    kill(pool.nodes[1].process, SIGSTOP);
    dmg_call calls[100];
    dmg_completion completion = {0};
    hold_calls(pool.channel, 1, calls, 100, &completion); /* more than any link takes at once */
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_ERR_PEER);
    CU_ASSERT_EQUAL(completion.pending, 0);
    CU_ASSERT_TRUE(names_node(&pool.nodes[1], "memory node 1"));
    test_process_kill(pool.nodes[1].process);
    forget(&pool.nodes[1]);
    test_pool_stop(&pool);
}

void stopped_memory_node_is_noticed_with_nothing_in_flight(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, test_short_ns());
    kill(pool.nodes[0].process, SIGSTOP);
    CU_ASSERT_TRUE(node_dies(pool.client, 0));
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "has not answered for"));
    test_process_kill(pool.nodes[0].process);
    forget(&pool.nodes[0]);
    test_pool_stop(&pool);
}

/* A client that comes while a memory node is stopped gets an error; one that comes later is served. */
void stopped_memory_node_refuses_no_one_for_ever(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    const char *addresses[TEST_NODES];
    dmg_client_options options = test_client_options(pool.nodes, test_short_ns(), addresses);
    dmg_client *late;
    kill(pool.nodes[0].process, SIGSTOP);
    CU_ASSERT_EQUAL(dmg_client_open(&options, &late), DMG_ERR_PEER);
    kill(pool.nodes[0].process, SIGCONT);
    options.peer_timeout_ns = PATIENT_NS;
    CU_ASSERT_EQUAL_FATAL(dmg_client_open(&options, &late), DMG_OK);
    dmg_client_close(late);
    CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_ECHO, NULL, 0), DMG_OK);
    test_pool_stop(&pool);
}

void node_declared_dead_ends_its_calls(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    dmg_call call = {0};
    dmg_completion completion = {0};
    hold_calls(pool.channel, 1, &call, 1, &completion);
    dmg_client_mark_dead(pool.client, 1, "was given up by its user");
    dmg_client_mark_dead(pool.client, 1, "has a second reason");
    CU_ASSERT_EQUAL(dmg_wait(pool.channel, &completion), DMG_ERR_PEER);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "was given up by its user"));
    test_pool_stop(&pool);
}

void memory_node_stops_when_told_to(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_STOP, NULL, 0), DMG_OK);
    CU_ASSERT_EQUAL(test_process_wait(pool.nodes[0].process), 0);
    forget(&pool.nodes[0]);
    CU_ASSERT_TRUE(node_dies(pool.client, 0));
    test_pool_stop(&pool); /* node 1, by a signal */
}

/* ---- clients ---- */

void killed_clients_leave_the_memory_node_serving(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    srand((unsigned int)dmg_test_seed());
    gone_report report;
    const uint64_t kills = test_rounds(KILLS);
    for (uint64_t i = 1; i <= kills; i++) {
        pid_t victim = test_compute_start(COMPUTE_FLOOD, pool.nodes, PATIENT_NS);
        dmg_sleep_ns((uint64_t)rand() % (20 * MILLISECOND_NS));
        test_process_kill(victim);
        CU_ASSERT_EQUAL_FATAL(test_ask(pool.channel, 0, TEST_ECHO, NULL, 0), DMG_OK);
        CU_ASSERT_EQUAL_FATAL(test_ask(pool.channel, 1, TEST_ECHO, NULL, 0), DMG_OK);
        CU_ASSERT_TRUE_FATAL(has_seen(pool.channel, i, 0, &report));
    }
    CU_ASSERT_EQUAL(report.died, kills);
    CU_ASSERT_EQUAL(report.repeated, 0);
    CU_ASSERT_EQUAL(report.closed, 0);
    test_pool_stop(&pool);
}

void client_that_closes_is_reported_once(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    const char *addresses[TEST_NODES];
    dmg_client_options options = test_client_options(pool.nodes, PATIENT_NS, addresses);
    gone_report report;
    for (uint64_t i = 1; i <= 5; i++) {
        dmg_client *guest;
        dmg_channel *channels[2];
        CU_ASSERT_EQUAL_FATAL(dmg_client_open(&options, &guest), DMG_OK);
        CU_ASSERT_EQUAL_FATAL(dmg_channel_open(guest, &channels[0]), DMG_OK);
        CU_ASSERT_EQUAL_FATAL(dmg_channel_open(guest, &channels[1]), DMG_OK);
        CU_ASSERT_EQUAL(test_ask(channels[1], 0, TEST_ECHO, NULL, 0), DMG_OK);
        dmg_channel_close(channels[0]);
        dmg_channel_close(channels[1]);
        dmg_client_close(guest);
        CU_ASSERT_TRUE_FATAL(has_seen(pool.channel, 0, i, &report));
    }
    CU_ASSERT_EQUAL(report.closed, 5);
    CU_ASSERT_EQUAL(report.died, 0);
    CU_ASSERT_EQUAL(report.repeated, 0);
    test_pool_stop(&pool);
}

void stopped_client_loses_its_lease_once(void)
{
    /* Our own client would lose a lease this short on a busy machine, too; it renews it with every question. */
    const uint64_t short_ns = test_short_ns();
    test_pool pool = test_pool_start(short_ns, short_ns);
    pid_t stopped = test_compute_start(COMPUTE_IDLE, pool.nodes, short_ns);
    gone_report report;
    kill(stopped, SIGSTOP);
    CU_ASSERT_TRUE(has_seen(pool.channel, 1, 0, &report));
    kill(stopped, SIGCONT);
    test_process_kill(stopped);
    dmg_sleep_ns(dmg_test_deadline_ns(0.1)); /* a second report would come within this */
    CU_ASSERT_TRUE(has_seen(pool.channel, 1, 0, &report));
    CU_ASSERT_EQUAL(report.died, 1);
    CU_ASSERT_EQUAL(report.repeated, 0);
    test_pool_stop(&pool);
}

/* ---- nonsense ---- */

/* Of the Unix sockets of this transport. */
static int local_kind(void)
{
    return (strncmp(test_transport, "cxl_shm", 7) == 0 ? SOCK_SEQPACKET : SOCK_STREAM) | SOCK_CLOEXEC;
}

/* Connect to where a memory node listens: a Unix socket, or HOST:PORT. */
static int connect_raw(const char *address)
{
    const char *name = strchr(address, ':') + 1;
    if (name[0] == '@') {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        size_t length = strlen(name);
        memcpy(to.sun_path, name, length);
        to.sun_path[0] = '\0';
        int connected = socket(AF_UNIX, local_kind(), 0);
        CU_ASSERT_EQUAL(
            connect(connected, (struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
            0);
        return connected;
    }
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    to.sin_port = htons((uint16_t)atoi(strrchr(name, ':') + 1));
    int connected = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL(connect(connected, (struct sockaddr *)&to, sizeof to), 0);
    return connected;
}

void garbage_on_the_socket_is_survived(void)
{
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    srand((unsigned int)dmg_test_seed());
    int silent = connect_raw(pool.nodes[0].address); /* says nothing, and stays */
    for (int round = 0; round < GARBAGE_ROUNDS; round++) {
        int liar = connect_raw(pool.nodes[0].address);
        char garbage[GARBAGE_BYTES];
        size_t bytes = (size_t)rand() % sizeof garbage;
        for (size_t i = 0; i < bytes; i++) {
            garbage[i] = (char)rand();
        }
        (void)!send(liar, garbage, bytes, MSG_NOSIGNAL);
        CU_ASSERT_EQUAL_FATAL(test_ask(pool.channel, 0, TEST_ECHO, NULL, 0), DMG_OK);
        close(liar);
    }
    gone_report report;
    CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_GONE, &report, sizeof report), DMG_OK);
    CU_ASSERT_EQUAL(report.closed + report.died, 0);
    close(silent);
    test_pool_stop(&pool);
}

/* A socket that has greeted with the pool's secret. */
static int connect_greeted(const char *address)
{
    int connected;
    dmg_watch watch;
    dmg_stream_address place;
    dmg_stream_session session;
    dmg_watch_start(&watch, PATIENT_NS, dmg_now_ns());
    CU_ASSERT_EQUAL_FATAL(dmg_stream_address_parse("cxl_shm", address, &place), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_socket_connect(&place, SOCK_SEQPACKET, address, &watch, &connected), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_socket_greet(connected, false, DMG_STREAM_PLAIN, test_token, address, &watch, &session),
                          DMG_OK);
    return connected;
}

/* Whether the memory node closes the connection; its pool is kept alive meanwhile. */
static bool is_cut_off(test_pool *pool, int connection)
{
    for (dmg_test_wait wait = dmg_test_wait_for(PATIENCE_S); dmg_test_goes_on(&wait);) {
        char said[GARBAGE_BYTES];
        ssize_t received = recv(connection, said, sizeof said, MSG_DONTWAIT);
        CU_ASSERT_EQUAL_FATAL(test_ask(pool->channel, 0, TEST_ECHO, NULL, 0), DMG_OK);
        if (received == 0 || (received < 0 && errno == ECONNRESET)) {
            return true;
        }
    }
    return false;
}

void one_who_greets_and_makes_no_sense_is_cut_off(void)
{
    if (strncmp(test_transport, "cxl_shm", 7) != 0) {
        return;
    }
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    srand((unsigned int)dmg_test_seed());
    for (int round = 0; round < GARBAGE_ROUNDS; round++) {
        int liar = connect_greeted(pool.nodes[0].address);
        char garbage[GARBAGE_BYTES];
        size_t bytes = round % 3 ? sizeof(dmg_shm_hello) : (size_t)rand() % sizeof garbage;
        for (size_t i = 0; i < bytes; i++) {
            garbage[i] = (char)rand();
        }
        if (round % 3 == 2) { /* sound up to what it wants, or who it is */
            dmg_shm_hello hello = {.magic = DMG_SHM_MAGIC, .want = (uint32_t)rand() % 2 ? DMG_SHM_CHANNEL : 77};
            memcpy(garbage, &hello, sizeof hello);
        }
        (void)!send(liar, garbage, bytes, MSG_NOSIGNAL);
        CU_ASSERT_TRUE_FATAL(is_cut_off(&pool, liar));
        close(liar);
    }
    gone_report report;
    CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_GONE, &report, sizeof report), DMG_OK);
    CU_ASSERT_EQUAL(report.closed + report.died, 0);
    test_pool_stop(&pool);
}

void one_who_greets_and_says_nothing_is_cut_off(void)
{
    if (strncmp(test_transport, "cxl_shm", 7) != 0) {
        return;
    }
    test_pool pool = test_pool_start(test_short_ns(), PATIENT_NS);
    int silent = connect_greeted(pool.nodes[0].address);
    CU_ASSERT_TRUE(is_cut_off(&pool, silent));
    close(silent);
    test_pool_stop(&pool);
}

/* ---- greetings that nobody answers ---- */

/* Accept one connection, take the greeting, and hang up without a word, as a process does that is killed. */
static void *hang_up_once(void *argument)
{
    char greeting[GARBAGE_BYTES];
    int accepted = accept(*(int *)argument, NULL, NULL);
    if (accepted >= 0) {
        (void)!recv(accepted, greeting, sizeof greeting, 0);
        close(accepted);
    }
    return NULL;
}

void memory_node_that_dies_during_the_greeting_counts_as_dead(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    char address[DMG_ADDRESS_STRING_BYTES];
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "dmgraph-test-%d", (int)getpid());
    snprintf(address, sizeof address, "%.*s:@%s", (int)strcspn(test_transport, ":"), test_transport, name.sun_path + 1);
    int listener = socket(AF_UNIX, local_kind(), 0);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    CU_ASSERT_EQUAL_FATAL(bind(listener, (struct sockaddr *)&name, bytes), 0);
    CU_ASSERT_EQUAL_FATAL(listen(listener, 1), 0);
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, hang_up_once, &listener), 0);
    const char *addresses[] = {address};
    const dmg_client_options options = {
        .transport = test_transport, .addresses = addresses, .address_count = 1, .peer_timeout_ns = PATIENT_NS};
    dmg_client *client;
    CU_ASSERT_EQUAL(dmg_client_open(&options, &client), DMG_ERR_PEER);
    CU_ASSERT_PTR_NULL(client);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "died"));
    pthread_join(thread, NULL);
    close(listener);
}

/* One channel of cxl_shm made by hand, whose control area gets nonsense of one kind; returns false when there is no
 * such kind. */
static bool lie(dmg_shm_control *control, int kind)
{
    switch (kind) {
    case 0: /* a slot that does not exist */
        dmg_shm_entry_publish(control->requests, 0, &(dmg_shm_message){.slot = DMG_SHM_SLOTS});
        return true;
    case 1: /* a payload that reaches beyond its slot */
        dmg_shm_entry_publish(control->requests, 0, &(dmg_shm_message){.slot = 5, .bytes = UINT32_MAX});
        return true;
    case 2: /* a slot that is still being served */
        dmg_shm_entry_publish(control->requests, 0, &(dmg_shm_message){.slot = 1, .type_or_status = TEST_HOLD});
        dmg_shm_entry_publish(control->requests, 1, &(dmg_shm_message){.slot = 1, .type_or_status = TEST_HOLD});
        return true;
    case 3: /* all of it */
        memset((void *)control, 0xa5, sizeof *control);
        dmg_shm_entry_publish(control->requests, 0, &(dmg_shm_message){.slot = 0xa5a5a5a5, .bytes = 0xa5a5a5a5});
        return true;
    default:
        return false;
    }
}

void nonsense_in_a_control_area_breaks_its_channel_alone(void)
{
    if (strcmp(test_transport, "cxl_shm") != 0) {
        return;
    }
    test_pool pool = test_pool_start(PATIENT_NS, PATIENT_NS);
    gone_report report;
    bool has_more = true;
    for (int kind = 0; has_more; kind++) {
        dmg_shm_hello hello = {.magic = DMG_SHM_MAGIC, .client = 1000 + (uint64_t)kind, .want = DMG_SHM_CHANNEL};
        dmg_shm_greeter greeter = {.timeout_ns = PATIENT_NS};
        memcpy(greeter.token, test_token, sizeof greeter.token);
        dmg_shm_welcome welcome;
        dmg_shm_line line;
        int descriptor;
        CU_ASSERT_EQUAL_FATAL(dmg_shm_greet(pool.nodes[0].address, &greeter, &hello, &welcome, &line, &descriptor),
                              DMG_OK);
        dmg_shm_control *control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        CU_ASSERT_PTR_NOT_EQUAL_FATAL(control, MAP_FAILED);
        /* The server could be killed with SIGBUS otherwise. */
        CU_ASSERT_NOT_EQUAL(ftruncate(descriptor, 0), 0);
        has_more = lie(control, kind);
        if (has_more) {
            CU_ASSERT_TRUE_FATAL(has_seen(pool.channel, (uint64_t)kind + 1, 0, &report));
        }
        munmap(control, sizeof *control);
        close(descriptor);
        dmg_shm_line_close(&line);
    }
    CU_ASSERT_EQUAL(test_ask(pool.channel, 0, TEST_RELEASE, NULL, 0), DMG_OK);
    CU_ASSERT_EQUAL(report.repeated, 0);
    test_pool_stop(&pool);
}
