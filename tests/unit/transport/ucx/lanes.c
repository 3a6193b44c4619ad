/*
 * A lane in shared memory is wired up from the address of the memory node's worker, without a word between the two:
 * UCX 1.13.1 sends a message for that only where a transport connects endpoint to endpoint (ucp_wireup_init_lanes sets
 * UCP_EP_FLAG_LOCAL_CONNECTED for all others), and reads, writes and atomics of posix and sysv are the caller's loads
 * and stores. So nobody takes a place in the memory node's queue, and there is none that a killed client could leave
 * half written, which would be the end of the queue for everybody. This test looks at every byte of the queues.
 */
#include "unit/transport/ucx/lanes.h"
#include "core/base/clock.h"
#include "transport/ucx/ucx.h"
#include "unit/support/random.h"
#include "unit/support/suite.h"
#include "unit/transport/processes.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLS         150
#define PAUSE_NS_MAX  UINT64_C(25000000)
#define SEGMENT_BYTES (UINT64_C(1) << 20)
#define ADDRESS_BYTES 4096
#define KEY_BYTES     1024
#define MAPPINGS_MAX  64
#define LINE_BYTES    512
#define OFFER_PIPE    3

/** What a client needs. */
typedef struct offer {
    char transports[32];
    uint64_t base;
    uint8_t address[ADDRESS_BYTES];
    uint8_t key[KEY_BYTES];
} offer;

/* ---- the compute node ---- */

static bool wait_for(ucp_worker_h worker, void *request)
{
    ucs_status_t status = UCS_PTR_STATUS(request);
    if (UCS_PTR_IS_PTR(request)) {
        while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
            ucp_worker_progress(worker);
        }
        ucp_request_free(request);
    }
    return status == UCS_OK;
}

/** Connect, count one word up, write and read others, and leave. */
static bool visit(const offer *given)
{
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h endpoint;
    ucp_rkey_h key;
    if (dmg_ucx_data_context(given->transports, &context) != DMG_OK ||
        dmg_ucx_data_worker(context, given->transports, &worker) != DMG_OK) {
        return false;
    }
    const ucp_ep_params_t parameters = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                        .address = (const ucp_address_t *)given->address};
    if (ucp_ep_create(worker, &parameters, &endpoint) != UCS_OK ||
        ucp_ep_rkey_unpack(endpoint, given->key, &key) != UCS_OK) {
        return false;
    }
    uint64_t one = 1;
    uint64_t before;
    const ucp_request_param_t atomic = {.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER,
                                        .datatype = ucp_dt_make_contig(8),
                                        .reply_buffer = &before};
    const ucp_request_param_t plain = {.op_attr_mask = 0};
    uint8_t bytes[512] = {0};
    bool is_done =
        wait_for(worker, ucp_atomic_op_nbx(endpoint, UCP_ATOMIC_OP_ADD, &one, 1, given->base, key, &atomic)) &&
        wait_for(worker, ucp_put_nbx(endpoint, bytes, sizeof bytes, given->base + 4096, key, &plain)) &&
        wait_for(worker, ucp_get_nbx(endpoint, bytes, sizeof bytes, given->base + 8192, key, &plain));
    ucp_rkey_destroy(key);
    dmg_ucx_close_now(worker, endpoint, 0, UINT64_C(1000000000));
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
    return is_done;
}

bool lanes_process_main(int argc, char **argv, int *exit_code)
{
    if (argc != 2 || strcmp(argv[1], "--lane-client") != 0) {
        return false;
    }
    static offer given;
    size_t used = 0;
    for (ssize_t got;
         used < sizeof given && (got = read(OFFER_PIPE, (uint8_t *)&given + used, sizeof given - used)) > 0;) {
        used += (size_t)got;
    }
    *exit_code = 1;
    while (used == sizeof given && visit(&given)) {
    }
    return true;
}

static pid_t start_client(const offer *given)
{
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    char name[] = "unit-transport_ucx";
    char option[] = "--lane-client";
    char *arguments[] = {name, option, NULL};
    pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[0], OFFER_PIPE);
        close_range(OFFER_PIPE + 1, ~0U, 0);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    close(ends[0]);
    CU_ASSERT_EQUAL(write(ends[1], given, sizeof *given), (ssize_t)sizeof *given);
    close(ends[1]);
    return process;
}

/* ---- the memory node ---- */

/** A copy of shared memory of this process. */
typedef struct mapping {
    uint8_t *start;
    uint64_t bytes;
    uint8_t *copy;
} mapping;

/** Copy all shared memory of UCX's but the segment: the queues and buffers of its workers. */
static uint32_t copy_queues(const dmg_ucx_segment *segment, mapping *mappings)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[LINE_BYTES];
    uint32_t count = 0;
    while (file != NULL && count < MAPPINGS_MAX && fgets(line, sizeof line, file) != NULL) {
        uint64_t start;
        uint64_t end;
        bool is_ucx = strstr(line, "ucx_shm_posix") != NULL || strstr(line, "/SYSV") != NULL;
        if (!is_ucx || sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2 ||
            ((uintptr_t)segment->start >= start && (uintptr_t)segment->start < end)) {
            continue;
        }
        mapping *next = &mappings[count];
        *next = (mapping){.start = (uint8_t *)(uintptr_t)start, .bytes = end - start, .copy = malloc(end - start)};
        if (next->copy != NULL) {
            memcpy(next->copy, next->start, next->bytes);
            count++;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

static void serve_lanes(const char *transports, dmg_random *random)
{
    const dmg_segment_options options = {.bytes = SEGMENT_BYTES, .numa_node = -1};
    static offer given;
    dmg_ucx_segment segment;
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    void *key;
    size_t address_bytes;
    size_t key_bytes;
    CU_ASSERT_EQUAL_FATAL(dmg_ucx_data_context(transports, &context), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_ucx_segment_create(&options, context, transports, &segment), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_ucx_data_worker(context, transports, &worker), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_worker_get_address(worker, &address, &address_bytes), UCS_OK);
    CU_ASSERT_EQUAL_FATAL(ucp_rkey_pack(context, segment.handle, &key, &key_bytes), UCS_OK);
    CU_ASSERT_FATAL(address_bytes <= ADDRESS_BYTES && key_bytes <= KEY_BYTES);
    given.base = (uint64_t)(uintptr_t)segment.start;
    snprintf(given.transports, sizeof given.transports, "%s", transports);
    memcpy(given.address, address, address_bytes);
    memcpy(given.key, key, key_bytes);

    static mapping mappings[MAPPINGS_MAX];
    uint32_t count = copy_queues(&segment, mappings);
    CU_ASSERT_TRUE(count > 0);
    for (int kills = 0; kills < KILLS; kills++) {
        pid_t client = start_client(&given);
        dmg_sleep_ns(dmg_random_next(random) % PAUSE_NS_MAX);
        test_process_kill(client);
    }
    /* A client that nobody kills visits, and visits again. */
    uint64_t visits = __atomic_load_n((uint64_t *)(void *)segment.start, __ATOMIC_ACQUIRE);
    pid_t client = start_client(&given);
    for (dmg_test_wait wait = dmg_test_wait_for(20); dmg_test_goes_on(&wait);) {
        if (__atomic_load_n((uint64_t *)(void *)segment.start, __ATOMIC_ACQUIRE) >= visits + 3) {
            break;
        }
        dmg_sleep_ns(1000000);
    }
    test_process_kill(client);
    CU_ASSERT_TRUE(__atomic_load_n((uint64_t *)(void *)segment.start, __ATOMIC_ACQUIRE) >= visits + 3);
    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL(memcmp(mappings[i].start, mappings[i].copy, mappings[i].bytes), 0);
        free(mappings[i].copy);
    }
    CU_ASSERT_EQUAL(ucp_worker_progress(worker), 0);
    ucp_rkey_buffer_release(key);
    ucp_worker_release_address(worker, address);
    ucp_worker_destroy(worker);
    dmg_ucx_segment_destroy(&segment);
    ucp_cleanup(context);
}

void lanes_write_nothing_into_their_memory_nodes_queues(void)
{
    dmg_random random = {dmg_test_seed()};
    serve_lanes("posix", &random);
    serve_lanes("sysv", &random);
}
