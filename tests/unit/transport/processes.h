/**
 * @file processes.h
 * Memory nodes and compute nodes for the transport's tests, each a process of its own: this program, executed again.
 */
#ifndef DMG_TEST_TRANSPORT_PROCESSES_H
#define DMG_TEST_TRANSPORT_PROCESSES_H

#include "transport/transport.h"
#include "unit/support/deadline.h"
#include "unit/support/suite.h"

#include <sys/types.h>

#define TEST_NODES         2
#define TEST_SEGMENT_BYTES (UINT64_C(16) << 20)
/** A timeout that no healthy process exceeds, however busy the machine is. */
#define PATIENT_NS dmg_test_deadline_ns(30)

/** What a test memory node does with a message. */
enum {
    TEST_ECHO = DMG_MESSAGE_TYPE_FIRST,
    TEST_HOLD,     /**< keep the call, answered by TEST_RELEASE with the number of calls that were held before it */
    TEST_RELEASE,  /**< answer all held calls, the last one first */
    TEST_FAIL,     /**< DMG_ERR_NOT_FOUND and the payload as its sentence */
    TEST_SEQUENCE, /**< u64: must be one more than the last; answers the last one otherwise */
    TEST_LARGE,    /**< u64: answer so many bytes */
    TEST_GONE,     /**< answer a gone_report */
    TEST_COUNTERS, /**< answer a dmg_counters */
    TEST_STOP      /**< dmg_server_stop */
};

/**
 * A timeout for tests that wait for it to pass, while others have to keep it: a second on a quiet machine, and several
 * times what starting and opening a pool of patient nodes takes now. Over a device, or in an emulated machine, that is
 * slow in another way than computing is.
 */
uint64_t test_short_ns(void);

/** What a memory node was told of clients that are gone. */
typedef struct gone_report {
    uint64_t closed;
    uint64_t died;
    uint64_t repeated; /**< reports of a client that had been reported before */
} gone_report;

typedef struct test_node {
    pid_t process;
    char address[DMG_ADDRESS_STRING_BYTES];
} test_node;

/** A pool of TEST_NODES memory nodes, a client and a channel. */
typedef struct test_pool {
    test_node nodes[TEST_NODES];
    dmg_client *client;
    dmg_channel *channel;
} test_pool;

/** The transport string of the suite that runs. */
extern const char *test_transport;
extern const uint8_t test_token[DMG_TOKEN_BYTES];

/** Run a memory node or a compute node when argv says so, and return true with the process's exit code. */
bool test_process_main(int argc, char **argv, int *exit_code);

/** Start a memory node's process. */
test_node test_node_start(uint16_t node, uint64_t peer_timeout_ns);
/** Ask it to stop (SIGTERM), and return its exit code; -1 when a signal ended it. */
int test_node_stop(test_node *node);
/** End a process, and wait for it. */
void test_process_kill(pid_t process);

/** Options for a client of these nodes. `addresses` has room for TEST_NODES. */
dmg_client_options test_client_options(const test_node *nodes, uint64_t peer_timeout_ns, const char **addresses);

/** Start nodes, open a client and a channel. `*_ns` are the peer timeouts of the memory nodes and of the client. */
test_pool test_pool_start(uint64_t server_timeout_ns, uint64_t client_timeout_ns);
/** Close, and stop the nodes; those that still live must end well. */
void test_pool_stop(test_pool *pool);

/** What a test compute node does until it is killed, or its input ends. */
#define COMPUTE_FLOOD "flood" /* sends messages of many sizes, one after the other, several in flight */
#define COMPUTE_IDLE  "idle"  /* opens two channels and does nothing */
#define COMPUTE_COUNT "count" /* adds 1 to two words with faa64 and cas64, COUNT_ROUNDS times, and ends */
#define COUNT_ROUNDS  2000
#define COUNT_FAA     4096
#define COUNT_CAS     8192

/** Start a compute node's process; returns when its channels are open. */
pid_t test_compute_start(const char *what, const test_node *nodes, uint64_t peer_timeout_ns);
/** Wait for it; returns its exit code, or -1 when a signal ended it. */
int test_process_wait(pid_t process);

/** Add 1 to the words at COUNT_FAA and COUNT_CAS of node 1, COUNT_ROUNDS times. */
dmg_status test_count_up(dmg_channel *channel);
/** Send a message and take its answer as a number. */
dmg_status test_ask(dmg_channel *channel, uint16_t node, uint32_t type, void *answer, size_t bytes);

/** Whether a node answers a message and a read. */
bool test_node_serves(test_pool *pool, uint16_t node);

/** The transport that DMGRAPH_TEST_TRANSPORT names, or NULL: one that this machine has and others have not, an RDMA
 * device say. */
const char *test_given_transport(void);
/**
 * How often to repeat what starts processes. Over a given transport few times, unless DMGRAPH_TEST_DEPTH is "full": a
 * process may take seconds there.
 */
uint32_t test_rounds(uint32_t usual);

/** The tests of transport_faults.c. */
void killed_memory_node_ends_calls_in_flight(void);
void killed_memory_node_is_noticed_with_nothing_in_flight(void);
void other_nodes_go_on_when_one_dies(void);
void stopped_memory_node_ends_calls_in_flight(void);
void stopped_memory_node_is_noticed_with_nothing_in_flight(void);
void stopped_memory_node_refuses_no_one_for_ever(void);
void node_declared_dead_ends_its_calls(void);
void killed_clients_leave_the_memory_node_serving(void);
void stopped_client_loses_its_lease_once(void);
void client_that_closes_is_reported_once(void);
void memory_node_that_dies_during_the_greeting_counts_as_dead(void);
void garbage_on_the_socket_is_survived(void);
void one_who_greets_and_makes_no_sense_is_cut_off(void);
void one_who_greets_and_says_nothing_is_cut_off(void);
void nonsense_in_a_control_area_breaks_its_channel_alone(void);
void memory_node_stops_when_told_to(void);

#endif
