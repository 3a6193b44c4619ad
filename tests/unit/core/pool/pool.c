/*
 * The pool over every transport: memory, catalog, range arrays and what a memory node says to nonsense. Jobs are in
 * pool_jobs.c and pool_deaths.c.
 */
#include "unit/core/pool/members.h"
#include "unit/support/random.h"

#include "core/base/error.h"
#include "core/pool/combine.h"
#include "core/pool/protocol.h"
#include "core/pool/range_array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static bool message_has(const char *words)
{
    return strstr(dmg_error_message(), words) != NULL;
}

static uint64_t allocated_on(uint16_t node)
{
    uint64_t allocated = UINT64_MAX;
    uint64_t peak;
    uint64_t total;
    CU_ASSERT_EQUAL(dmg_pool_usage(channel, node, &allocated, &peak, &total), DMG_OK);
    CU_ASSERT_TRUE(allocated <= peak && peak <= total);
    return allocated;
}

static bool bytes_are(const unsigned char *bytes, uint64_t count, unsigned char value)
{
    return count == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, count - 1) == 0);
}

/* ---- memory ---- */

static void extents_are_zero_again_after_they_were_used(void)
{
    enum { BYTES = 1234567 };
    unsigned char *buffer = malloc(BYTES);
    CU_ASSERT_PTR_NOT_NULL_FATAL(buffer);
    start(2, 4 * MIB);
    for (int round = 0; round < 6; round++) {
        uint16_t node = (uint16_t)(round % 2);
        uint64_t bytes = round < 4 ? BYTES : 50000;
        dmg_address address;
        CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, node, pool.job.id, bytes, &address), DMG_OK);
        CU_ASSERT_EQUAL(dmg_address_node(address), node);
        CU_ASSERT_EQUAL(dmg_address_offset(address) % 4096, 0);
        CU_ASSERT_NOT_EQUAL(dmg_address_offset(address), 0);
        CU_ASSERT_EQUAL(allocated_on(node), (bytes + 4095) / 4096 * 4096);
        CU_ASSERT_EQUAL(dmg_read(channel, address, buffer, bytes), DMG_OK);
        CU_ASSERT_TRUE(bytes_are(buffer, bytes, 0));
        memset(buffer, 0xaa, bytes);
        CU_ASSERT_EQUAL(dmg_write(channel, buffer, address, bytes), DMG_OK);
        CU_ASSERT_EQUAL(dmg_pool_free(channel, address), DMG_OK);
        CU_ASSERT_EQUAL(allocated_on(node), 0);
    }
    stop();
    free(buffer);
}

static void large_extents_are_zeroed_in_several_steps(void)
{
    const uint64_t bytes = 70 * MIB;
    start(1, 80 * MIB);
    unsigned char *buffer = malloc(bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(buffer);
    dmg_address address;
    CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, 0, pool.job.id, bytes, &address), DMG_OK);
    memset(buffer, 0x55, bytes);
    CU_ASSERT_EQUAL(dmg_write(channel, buffer, address, bytes), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_free(channel, address), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, 0, pool.job.id, bytes + 4 * MIB, &address), DMG_OK);
    CU_ASSERT_EQUAL(dmg_read(channel, address, buffer, bytes), DMG_OK);
    CU_ASSERT_TRUE(bytes_are(buffer, bytes, 0));
    free(buffer);
    stop();
}

#define LIVE_MAX  40
#define BYTES_MAX 200000

static void random_extents_keep_what_was_written(void)
{
    dmg_random random = {dmg_test_seed()};
    unsigned char *buffer = malloc(BYTES_MAX);
    CU_ASSERT_PTR_NOT_NULL_FATAL(buffer);
    struct {
        dmg_address address;
        uint64_t bytes;
        unsigned char value;
    } live[LIVE_MAX];
    uint32_t count = 0;
    uint32_t wrong = 0;
    start(2, 3 * MIB);
    for (uint32_t step = 0; step < 500; step++) {
        if (count < LIVE_MAX && dmg_random_next(&random) % 100 < 60) {
            uint64_t bytes = 1 + dmg_random_next(&random) % BYTES_MAX;
            dmg_address address;
            dmg_status status = dmg_pool_allocate(channel, (uint16_t)(step % 2), pool.job.id, bytes, &address);
            if (status != DMG_OK) {
                wrong += status != DMG_ERR_MEMORY;
                continue;
            }
            wrong += dmg_read(channel, address, buffer, bytes) != DMG_OK || !bytes_are(buffer, bytes, 0);
            live[count].address = address;
            live[count].bytes = bytes;
            live[count].value = (unsigned char)(1 + step % 255);
            memset(buffer, live[count].value, bytes);
            wrong += dmg_write(channel, buffer, address, bytes) != DMG_OK;
            count++;
        } else if (count > 0) {
            uint32_t index = (uint32_t)(dmg_random_next(&random) % count);
            wrong += dmg_read(channel, live[index].address, buffer, live[index].bytes) != DMG_OK ||
                     !bytes_are(buffer, live[index].bytes, live[index].value);
            wrong += dmg_pool_free(channel, live[index].address) != DMG_OK;
            live[index] = live[--count];
        }
    }
    while (count > 0) {
        wrong += dmg_pool_free(channel, live[--count].address) != DMG_OK;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(allocated_on(0), 0);
    CU_ASSERT_EQUAL(allocated_on(1), 0);
    stop();
    free(buffer);
}

static void a_full_node_says_what_is_left(void)
{
    start(1, 2 * MIB);
    uint64_t allocated, peak, total;
    CU_ASSERT_EQUAL(dmg_pool_usage(channel, 0, &allocated, &peak, &total), DMG_OK);
    dmg_address all, more;
    CU_ASSERT_EQUAL(dmg_pool_allocate(channel, 0, pool.job.id, total - 4096 + 1, &all), DMG_ERR_MEMORY);
    CU_ASSERT_EQUAL(all, DMG_ADDRESS_NULL);
    CU_ASSERT_EQUAL(dmg_pool_allocate(channel, 0, pool.job.id, total - 4096, &all), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_allocate(channel, 0, pool.job.id, 4096, &more), DMG_ERR_MEMORY);
    CU_ASSERT_TRUE(message_has("0 are left"));
    CU_ASSERT_TRUE(message_has("memory node 0"));
    CU_ASSERT_EQUAL(dmg_pool_free(channel, all), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_allocate(channel, 0, pool.job.id, 4096, &more), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_free(channel, more), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_usage(channel, 0, &allocated, &peak, &total), DMG_OK);
    CU_ASSERT_EQUAL(allocated, 0);
    CU_ASSERT_EQUAL(peak, total - 4096);
    stop();
}

static void wrong_addresses_are_not_freed(void)
{
    start(2, 2 * MIB);
    dmg_address address;
    CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, 0, pool.job.id, 3 * 4096, &address), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_free(channel, DMG_ADDRESS_NULL), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_pool_free(channel, address + 8), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_pool_free(channel, address + 4096), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_pool_free(channel, dmg_address_make(1, dmg_address_offset(address))), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_pool_free(channel, dmg_address_make(2, 4096)), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_pool_free(channel, ~UINT64_C(0)), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_pool_free(channel, address), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_free(channel, address), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_pool_allocate(channel, 2, pool.job.id, 4096, &address), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_pool_allocate(channel, 0, pool.job.id, 0, &address), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_pool_allocate(channel, 0, 12345, 4096, &address), DMG_ERR_ARGUMENT);
    CU_ASSERT_TRUE(message_has("12345"));
    stop();
}

static void memory_belongs_to_a_job(void)
{
    start(1, 2 * MIB);
    dmg_address address;
    CU_ASSERT_EQUAL(dmg_pool_allocate(channel, 0, 0, 4096, &address), DMG_ERR_ARGUMENT);
    CU_ASSERT_TRUE(message_has("belongs to a job"));
    CU_ASSERT_EQUAL(allocated_on(0), 0);
    stop();
}

/* ---- catalog ---- */

static void catalog_names_and_values_have_limits(void)
{
    start(2, 2 * MIB);
    char name[80];
    memset(name, 'n', sizeof name);
    name[64] = 0;
    char value[DMG_CATALOG_VALUE_BYTES + 1];
    memset(value, 'v', sizeof value);
    CU_ASSERT_EQUAL(dmg_catalog_put(channel, 0, name, value, 1), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_catalog_put(channel, 0, "", value, 1), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_catalog_put(channel, 0, "a\nb", value, 1), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_catalog_put(channel, 0, "name", value, sizeof value), DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(dmg_catalog_put(channel, 77, "name", value, 1), DMG_ERR_ARGUMENT);
    name[63] = 0;
    CU_ASSERT_EQUAL(dmg_catalog_put(channel, 0, name, value, DMG_CATALOG_VALUE_BYTES), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_put(channel, 0, name, value, 1), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(dmg_catalog_put(channel, 0, "empty", NULL, 0), DMG_OK);
    char got[DMG_CATALOG_VALUE_BYTES] = {0};
    size_t bytes = sizeof got;
    CU_ASSERT_EQUAL(dmg_catalog_get(channel, name, got, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(bytes, sizeof got);
    CU_ASSERT_EQUAL(memcmp(got, value, bytes), 0);
    bytes = 100;
    CU_ASSERT_EQUAL(dmg_catalog_get(channel, name, got, &bytes), DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(bytes, sizeof got);
    bytes = 0;
    CU_ASSERT_EQUAL(dmg_catalog_get(channel, "empty", NULL, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(bytes, 0);
    CU_ASSERT_EQUAL(dmg_catalog_get(channel, "absent", got, &bytes), DMG_ERR_NOT_FOUND);
    CU_ASSERT_TRUE(message_has("absent"));
    CU_ASSERT_EQUAL(dmg_catalog_remove(channel, name), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_remove(channel, name), DMG_ERR_NOT_FOUND);
    stop();
}

/* ---- range arrays ---- */

/* Writes and reads random pieces, and compares with an array of our own. */
static void check_range_array(uint64_t count, uint32_t element_bytes, dmg_random *random)
{
    dmg_range_array array;
    CU_ASSERT_EQUAL_FATAL(dmg_range_array_allocate(channel, pool.job.id, count, element_bytes, &array), DMG_OK);
    uint32_t wrong = 0;
    wrong += array.count != count || array.node_count != pool.node_count || array.ends[array.node_count - 1] != count;
    for (uint32_t node = 0; node < array.node_count; node++) {
        /* Evenly: a border is where an exact one is, or at the next multiple of 64. */
        uint64_t exact = count * (node + 1) / array.node_count;
        wrong += (array.ends[node] % 64 != 0 && array.ends[node] != count) || array.ends[node] < exact ||
                 array.ends[node] >= exact + 64;
    }
    unsigned char *expected = calloc(count + 1, element_bytes);
    unsigned char *buffer = calloc(count + 1, element_bytes);
    CU_ASSERT_FATAL(expected != NULL && buffer != NULL);
    for (uint64_t index = 0; index < count; index++) {
        dmg_address address = dmg_range_array_address(&array, index);
        uint32_t node = dmg_address_node(address);
        uint64_t first = dmg_range_array_first(&array, node);
        wrong += node >= array.node_count || index < first || index >= array.ends[node];
        wrong += address != array.base[node] + (index - first) * element_bytes;
        wrong += dmg_range_array_run(&array, index, count - index) != array.ends[node] - index;
    }
    for (int round = 0; round < 12; round++) {
        uint64_t first = count == 0 ? 0 : dmg_random_next(random) % count;
        uint64_t length = round == 0 ? count : dmg_random_next(random) % (count - first + 1);
        first = round == 0 ? 0 : first;
        dmg_completion completion = {0};
        for (uint64_t at = first * element_bytes; at < (first + length) * element_bytes; at++) {
            expected[at] = (unsigned char)dmg_random_next(random);
        }
        dmg_range_array_post_write(channel, &array, first, length, expected + first * element_bytes, &completion);
        wrong += dmg_wait(channel, &completion) != DMG_OK;
        memset(buffer, 0, count * element_bytes);
        dmg_range_array_post_read(channel, &array, 0, count, buffer, &completion);
        wrong += dmg_wait(channel, &completion) != DMG_OK;
        wrong += memcmp(buffer, expected, count * element_bytes) != 0;
    }
    wrong += dmg_range_array_free(channel, &array) != DMG_OK;
    CU_ASSERT_EQUAL(wrong, 0);
    free(expected);
    free(buffer);
}

static void range_arrays_span_their_nodes(void)
{
    static const uint64_t counts[] = {0, 1, 63, 64, 65, 127, 128, 129, 192, 193, 1000, 4096, 10007};
    dmg_random random = {dmg_test_seed()};
    for (uint32_t node_count = 1; node_count <= 3; node_count++) {
        start(node_count, 4 * MIB);
        for (size_t index = 0; index < sizeof counts / sizeof counts[0]; index++) {
            check_range_array(counts[index], 8, &random);
        }
        check_range_array(10007, 1, &random);
        check_range_array(777, 12, &random);
        for (uint16_t node = 0; node < node_count; node++) {
            CU_ASSERT_EQUAL(allocated_on(node), 0);
        }
        stop();
    }
}

static void a_range_array_costs_one_operation_a_node(void)
{
    start(3, 4 * MIB);
    dmg_range_array array;
    CU_ASSERT_EQUAL_FATAL(dmg_range_array_allocate(channel, pool.job.id, 30000, 8, &array), DMG_OK);
    uint64_t *values = calloc(30000, sizeof *values);
    CU_ASSERT_PTR_NOT_NULL_FATAL(values);
    const dmg_counters *counters = dmg_channel_counters(channel);
    uint64_t before = counters->operations[DMG_OPERATION_READ];
    dmg_completion completion = {0};
    dmg_range_array_post_read(channel, &array, 0, 30000, values, &completion);
    CU_ASSERT_EQUAL(dmg_wait(channel, &completion), DMG_OK);
    CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_READ] - before, 3);
    before = counters->operations[DMG_OPERATION_WRITE];
    dmg_range_array_post_write(channel, &array, array.ends[0] - 1, 2, values, &completion);
    CU_ASSERT_EQUAL(dmg_wait(channel, &completion), DMG_OK);
    CU_ASSERT_EQUAL(counters->operations[DMG_OPERATION_WRITE] - before, 2);
    free(values);
    stop();
}

static void shares_follow_the_room_on_nodes_of_different_sizes(void)
{
    static const uint64_t counts[] = {0, 1, 64, 100, 4096, 100003};
    start(3, 4 * MIB);
    dmg_pool_shares shares;
    CU_ASSERT_EQUAL(dmg_pool_shares_by_room(channel, &shares), DMG_OK);
    CU_ASSERT_TRUE(shares.node_count == 3 && shares.weight[0] == shares.weight[1] &&
                   shares.weight[1] == shares.weight[2]);
    /* Now node 1 has a quarter of the others' room. */
    dmg_address taken;
    CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, 1, pool.job.id, 3 * MIB, &taken), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_shares_by_room(channel, &shares), DMG_OK);
    CU_ASSERT_TRUE(shares.weight[0] == shares.weight[2] && shares.weight[1] < shares.weight[0] / 3);
    uint64_t total = shares.weight[0] + shares.weight[1] + shares.weight[2];
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        dmg_range_array array, beside;
        CU_ASSERT_EQUAL_FATAL(dmg_range_array_allocate_by_share(channel, pool.job.id, counts[i], 8, &shares, &array),
                              DMG_OK);
        CU_ASSERT_EQUAL_FATAL(dmg_range_array_allocate_beside(channel, pool.job.id, &array, 64, 8, &beside), DMG_OK);
        uint64_t part = 0;
        for (uint32_t node = 0; node < 3; node++) {
            part += shares.weight[node];
            uint64_t exact = counts[i] * part / total;
            CU_ASSERT_TRUE(array.ends[node] >= exact && array.ends[node] < exact + 64 && array.ends[node] <= counts[i]);
            CU_ASSERT_EQUAL(beside.ends[node], (array.ends[node] + 63) / 64);
            for (uint64_t index = dmg_range_array_first(&array, node); index < array.ends[node]; index++) {
                CU_ASSERT_EQUAL_FATAL(dmg_range_array_node(&array, index), node);
                CU_ASSERT_EQUAL_FATAL(dmg_range_array_node(&beside, index / 64), node);
            }
        }
        CU_ASSERT_EQUAL(dmg_range_array_free(channel, &array), DMG_OK);
        CU_ASSERT_EQUAL(dmg_range_array_free(channel, &beside), DMG_OK);
    }
    stop();
}

static void a_range_array_that_does_not_fit_leaves_nothing(void)
{
    start(2, 2 * MIB);
    dmg_address address;
    dmg_range_array array;
    CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, 1, pool.job.id, MIB, &address), DMG_OK);
    uint64_t other = allocated_on(1);
    CU_ASSERT_EQUAL(dmg_range_array_allocate(channel, pool.job.id, 3 * MIB / 8, 8, &array), DMG_ERR_MEMORY);
    CU_ASSERT_TRUE(message_has("memory node 1"));
    CU_ASSERT_EQUAL(allocated_on(0), 0);
    CU_ASSERT_EQUAL(allocated_on(1), other);
    CU_ASSERT_EQUAL(dmg_range_array_allocate(channel, pool.job.id, UINT64_MAX, 8, &array), DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(dmg_range_array_allocate(channel, pool.job.id, UINT64_MAX / 2, 4000000000u, &array), DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(dmg_range_array_allocate(channel, pool.job.id, 8, 0, &array), DMG_ERR_ARGUMENT);
    stop();
}

/* ---- nonsense ---- */

static dmg_status send_raw(uint16_t node, uint32_t type, const void *payload, size_t bytes)
{
    static char reply[DMG_MESSAGE_BYTES_MAX];
    dmg_call call = {.reply = reply, .reply_capacity = sizeof reply};
    return dmg_message(channel, node, type, payload, bytes, &call);
}

/* The right size of each request, from DMG_POOL_ALLOCATE on. */
static const size_t request_bytes[] = {
    sizeof(dmg_pool_allocate_request),
    sizeof(dmg_pool_extent_request),
    sizeof(dmg_pool_extent_request),
    sizeof(dmg_pool_header),
    sizeof(dmg_pool_attach_request),
    sizeof(dmg_pool_job_request),
    sizeof(dmg_pool_update_request),
    sizeof(dmg_pool_job_request),
    sizeof(dmg_pool_job_request),
    sizeof(dmg_pool_job_request),
    sizeof(dmg_pool_header),
    sizeof(dmg_pool_header),
    sizeof(dmg_pool_admin_request),
    sizeof(dmg_pool_header),
    sizeof(dmg_pool_job_request),
    sizeof(dmg_catalog_put_request),
    sizeof(dmg_catalog_name_request),
    sizeof(dmg_catalog_name_request),
    sizeof(dmg_catalog_two_names_request),
    sizeof(dmg_catalog_two_names_request),
    sizeof(dmg_job_join_request),
    sizeof(dmg_job_ticket_request),
    sizeof(dmg_job_member_request),
    sizeof(dmg_job_barrier_request),
    sizeof(dmg_job_abort_request),
    sizeof(dmg_job_member_request),
};
static_assert(sizeof request_bytes / sizeof request_bytes[0] == DMG_POOL_MESSAGE_TYPE_END - DMG_POOL_ALLOCATE,
              "every message type has a size here");

static void requests_of_wrong_size_or_version_are_answered_with_an_error(void)
{
    start(2, 2 * MIB);
    static char payload[DMG_MESSAGE_BYTES_MAX];
    for (uint32_t type = DMG_POOL_ALLOCATE; type < DMG_POOL_MESSAGE_TYPE_END; type++) {
        size_t right = request_bytes[type - DMG_POOL_ALLOCATE];
        dmg_pool_header header = dmg_pool_header_make();
        memset(payload, 0, sizeof payload);
        memcpy(payload, &header, sizeof header);
        CU_ASSERT_EQUAL(send_raw(0, type, payload, 0), DMG_ERR_PROTOCOL);
        CU_ASSERT_EQUAL(send_raw(0, type, payload, 1), DMG_ERR_PROTOCOL);
        CU_ASSERT_EQUAL(send_raw(0, type, payload, right - 1), DMG_ERR_PROTOCOL);
        CU_ASSERT_EQUAL(send_raw(0, type, payload, right + 1), DMG_ERR_PROTOCOL);
        CU_ASSERT_EQUAL(send_raw(0, type, payload, sizeof payload), DMG_ERR_PROTOCOL);
        header.version++;
        memcpy(payload, &header, sizeof header);
        CU_ASSERT_EQUAL(send_raw(0, type, payload, right), DMG_ERR_PROTOCOL);
        CU_ASSERT_TRUE(message_has("version"));
        header = (dmg_pool_header){.version = DMG_POOL_PROTOCOL_VERSION, .zero = 1};
        memcpy(payload, &header, sizeof header);
        CU_ASSERT_EQUAL(send_raw(0, type, payload, right), DMG_ERR_PROTOCOL);
        if (type >= DMG_CATALOG_PUT) {
            header.zero = 0;
            memcpy(payload, &header, sizeof header);
            CU_ASSERT_EQUAL(send_raw(1, type, payload, right), DMG_ERR_ARGUMENT);
            CU_ASSERT_TRUE(message_has("node 0"));
        }
    }
    CU_ASSERT_NOT_EQUAL(send_raw(0, DMG_POOL_MESSAGE_TYPE_END, payload, 8), DMG_OK);
    CU_ASSERT_NOT_EQUAL(send_raw(0, UINT32_MAX, payload, 8), DMG_OK);
    CU_ASSERT_EQUAL(allocated_on(0), 0);
    CU_ASSERT_EQUAL(allocated_on(1), 0);
    stop();
}

static void bad_values_are_answered_with_an_error(void)
{
    start(1, 2 * MIB);
    dmg_pool_header header = dmg_pool_header_make();
    dmg_pool_allocate_request allocate = {.header = header, .job = pool.job.id, .bytes = UINT64_MAX};
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_ALLOCATE, &allocate, sizeof allocate), DMG_ERR_MEMORY);
    dmg_pool_extent_request extent = {.header = header, .offset = UINT64_MAX};
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_FREE, &extent, sizeof extent), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_ZERO, &extent, sizeof extent), DMG_ERR_NOT_FOUND);
    dmg_pool_attach_request attach = {.header = header};
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_ATTACH, &attach, sizeof attach), DMG_ERR_DENIED);
    dmg_pool_job_request reference = {.header = header, .job = 0};
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_DETACH, &reference, sizeof reference), DMG_ERR_NOT_FOUND);
    dmg_catalog_put_request put = {.header = header, .name = "name", .bytes = UINT64_MAX};
    CU_ASSERT_EQUAL(send_raw(0, DMG_CATALOG_PUT, &put, sizeof put), DMG_ERR_PROTOCOL);
    put.bytes = 1;
    CU_ASSERT_EQUAL(send_raw(0, DMG_CATALOG_PUT, &put, sizeof put), DMG_ERR_PROTOCOL);
    put.bytes = 0;
    memset(put.name, 'n', sizeof put.name);
    CU_ASSERT_EQUAL(send_raw(0, DMG_CATALOG_PUT, &put, sizeof put), DMG_ERR_ARGUMENT);
    dmg_catalog_name_request name = {.header = header};
    CU_ASSERT_EQUAL(send_raw(0, DMG_CATALOG_GET, &name, sizeof name), DMG_ERR_ARGUMENT);
    memset(name.name, 'n', sizeof name.name);
    CU_ASSERT_EQUAL(send_raw(0, DMG_CATALOG_REMOVE, &name, sizeof name), DMG_ERR_ARGUMENT);
    dmg_catalog_two_names_request names = {.header = header, .name = "name"};
    CU_ASSERT_EQUAL(send_raw(0, DMG_CATALOG_NEXT, &names, sizeof names), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(send_raw(0, DMG_CATALOG_REMOVE_UNUSED, &names, sizeof names), DMG_ERR_ARGUMENT);
    memset(names.name, 'n', sizeof names.name);
    memcpy(names.prefix, "n", 2);
    CU_ASSERT_EQUAL(send_raw(0, DMG_CATALOG_NEXT, &names, sizeof names), DMG_ERR_ARGUMENT);
    names.name[0] = '\0';
    memset(names.prefix, 'n', sizeof names.prefix);
    CU_ASSERT_EQUAL(send_raw(0, DMG_CATALOG_NEXT, &names, sizeof names), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_KEEP, &reference, sizeof reference), DMG_ERR_ARGUMENT);
    reference.job = UINT64_MAX;
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_KEEP, &reference, sizeof reference), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_DROP, &reference, sizeof reference), DMG_OK);
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_KEPT, &reference, sizeof reference), DMG_OK);
    dmg_job_join_request join = {.header = header, .name = "job", .rank = 1, .size = 1};
    CU_ASSERT_EQUAL(send_raw(0, DMG_JOB_JOIN, &join, sizeof join), DMG_ERR_ARGUMENT);
    join = (dmg_job_join_request){.header = header, .name = "job", .rank = 0, .size = UINT32_MAX};
    CU_ASSERT_EQUAL(send_raw(0, DMG_JOB_JOIN, &join, sizeof join), DMG_ERR_ARGUMENT);
    join = (dmg_job_join_request){.header = header, .rank = 0, .size = 1};
    CU_ASSERT_EQUAL(send_raw(0, DMG_JOB_JOIN, &join, sizeof join), DMG_ERR_ARGUMENT);
    dmg_job_member_request ready = {.header = header, .job = 1, .rank = UINT32_MAX};
    CU_ASSERT_EQUAL(send_raw(0, DMG_JOB_READY, &ready, sizeof ready), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(send_raw(0, DMG_JOB_LEAVE, &ready, sizeof ready), DMG_ERR_NOT_FOUND);
    dmg_job_barrier_request barrier = {.header = header, .has_reduction = 2};
    CU_ASSERT_EQUAL(send_raw(0, DMG_JOB_BARRIER, &barrier, sizeof barrier), DMG_ERR_PROTOCOL);
    dmg_job_abort_request abort_request = {.header = header, .status = DMG_OK};
    CU_ASSERT_EQUAL(send_raw(0, DMG_JOB_ABORT, &abort_request, sizeof abort_request), DMG_ERR_PROTOCOL);
    abort_request.status = UINT32_MAX;
    CU_ASSERT_EQUAL(send_raw(0, DMG_JOB_ABORT, &abort_request, sizeof abort_request), DMG_ERR_PROTOCOL);
    abort_request.status = DMG_ERR_IO;
    memset(abort_request.sentence, 's', sizeof abort_request.sentence);
    CU_ASSERT_EQUAL(send_raw(0, DMG_JOB_ABORT, &abort_request, sizeof abort_request), DMG_ERR_PROTOCOL);
    CU_ASSERT_EQUAL(allocated_on(0), 0);
    stop();
}

/* One update, whose request is changed field by field. */
static void updates_that_lead_out_of_the_segment_are_refused(void)
{
    start(1, 2 * MIB);
    dmg_address address;
    CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, 0, pool.job.id, 4096, &address), DMG_OK);
    uint64_t offset = dmg_address_offset(address);
    const size_t bytes = sizeof(dmg_pool_update_request) + 12;
    one_update good = {.request = {.header = dmg_pool_header_make(),
                                   .combine = DMG_COMBINE_ADD_DOUBLE,
                                   .count = 1,
                                   .attributes = offset,
                                   .activation = offset + 2048},
                       .index = 7};
    memcpy(good.value, &(double){2.5}, 8);
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_UPDATE, &good, bytes), DMG_OK);
    double value;
    uint64_t bits;
    CU_ASSERT_EQUAL(dmg_read(channel, address + 7 * 8, &value, 8), DMG_OK);
    CU_ASSERT_EQUAL(dmg_read(channel, address + 2048, &bits, 8), DMG_OK);
    CU_ASSERT_EQUAL(value, 2.5);
    CU_ASSERT_EQUAL(bits, 1 << 7);
    one_update bad = good;
    bad.index = UINT32_MAX;
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_UPDATE, &bad, bytes), DMG_ERR_PROTOCOL);
    CU_ASSERT_TRUE(message_has("out of the memory"));
    bad = good;
    bad.request.attributes = UINT64_MAX - 63;
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_UPDATE, &bad, bytes), DMG_ERR_PROTOCOL);
    bad.request.attributes = offset + 8;
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_UPDATE, &bad, bytes), DMG_ERR_PROTOCOL);
    bad = good;
    bad.request.activation = UINT64_MAX - 7;
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_UPDATE, &bad, bytes), DMG_ERR_PROTOCOL);
    bad = good;
    bad.request.combine = 99;
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_UPDATE, &bad, bytes), DMG_ERR_PROTOCOL);
    bad = good;
    bad.request.count = UINT32_MAX;
    CU_ASSERT_EQUAL(send_raw(0, DMG_POOL_UPDATE, &bad, bytes), DMG_ERR_PROTOCOL);
    stop();
}

static void what_a_node_did_for_others_is_counted(void)
{
    start(2, 2 * MIB);
    dmg_address array;
    dmg_node_activity before, after;
    CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, 1, pool.job.id, 4096, &array), DMG_OK);
    struct {
        dmg_pool_update_request request;
        uint8_t updates[3][12];
    } message = {.request = {.header = dmg_pool_header_make(),
                             .combine = DMG_COMBINE_ADD_DOUBLE,
                             .count = 3,
                             .attributes = dmg_address_offset(array)}};
    const double values[] = {1.5, 0, 2};
    for (uint32_t i = 0; i < 3; i++) {
        memcpy(message.updates[i], &i, sizeof i);
        memcpy(message.updates[i] + 4, &values[i], sizeof values[i]);
    }
    size_t bytes = sizeof message.request + sizeof message.updates;
    CU_ASSERT_EQUAL_FATAL(dmg_pool_activity(channel, 1, &before), DMG_OK);
    for (uint32_t i = 0; i < 5; i++) {
        CU_ASSERT_EQUAL(send_raw(1, DMG_POOL_UPDATE, &message, bytes), DMG_OK);
    }
    CU_ASSERT_EQUAL(send_raw(1, DMG_POOL_UPDATE, &message, bytes - 1), DMG_ERR_PROTOCOL);
    CU_ASSERT_EQUAL_FATAL(dmg_pool_activity(channel, 1, &after), DMG_OK);
    dmg_node_activity_subtract(&after, &before);
    CU_ASSERT_EQUAL(after.messages, 7); /* the second question is one of them */
    CU_ASSERT_EQUAL(after.update_messages, 6);
    CU_ASSERT_EQUAL(after.updates, 15);
    CU_ASSERT_EQUAL(after.applied, 10); /* adding 0 changes nothing */
    CU_ASSERT_TRUE(after.offload_cpu_ns > 0 && after.serve_cpu_ns > 0);
    CU_ASSERT_EQUAL_FATAL(dmg_pool_activity(channel, 0, &before), DMG_OK);
    CU_ASSERT_EQUAL(before.update_messages + before.updates + before.applied + before.offload_cpu_ns, 0);
    stop();
}

static void random_requests_do_no_harm(void)
{
    dmg_random random = {dmg_test_seed()};
    start(2, 2 * MIB);
    static char payload[DMG_MESSAGE_BYTES_MAX];
    for (uint32_t round = 0; round < 2000; round++) {
        uint32_t type =
            DMG_POOL_ALLOCATE + (uint32_t)(dmg_random_next(&random) % (DMG_POOL_MESSAGE_TYPE_END - DMG_POOL_ALLOCATE));
        size_t bytes = dmg_random_next(&random) % sizeof payload;
        if (type < DMG_POOL_MESSAGE_TYPE_END && dmg_random_next(&random) % 4 != 0) {
            bytes = request_bytes[type - DMG_POOL_ALLOCATE];
        }
        /* Small numbers now and then, which get further than large ones. */
        uint64_t mask = dmg_random_next(&random) % 3 == 0 ? 3 : UINT64_MAX;
        for (size_t at = 0; at < sizeof payload; at += sizeof(uint64_t)) {
            uint64_t word = dmg_random_next(&random) & mask;
            memcpy(payload + at, &word, sizeof word);
        }
        dmg_pool_header header = dmg_pool_header_make();
        memcpy(payload, &header, sizeof header);
        if (type == DMG_JOB_JOIN) {
            /* One that is right would wait for its other members for ever. */
            memset(payload + sizeof header, 0x1f, DMG_JOB_NAME_BYTES);
        }
        (void)send_raw((uint16_t)(round % 2), type, payload, bytes);
    }
    /* Both are well. The fixture's job may have been left. */
    dmg_job job;
    CU_ASSERT_EQUAL_FATAL(dmg_job_join(channel, &dmg_test_pass, "after all", 0, 1, &job), DMG_OK);
    for (uint16_t node = 0; node < 2; node++) {
        uint64_t before = allocated_on(node);
        dmg_address address;
        CU_ASSERT_EQUAL(dmg_pool_allocate(channel, node, job.id, 4096, &address), DMG_OK);
        CU_ASSERT_EQUAL(dmg_pool_free(channel, address), DMG_OK);
        CU_ASSERT_EQUAL(allocated_on(node), before);
    }
    stop();
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(extents_are_zero_again_after_they_were_used),
        DMG_TEST(large_extents_are_zeroed_in_several_steps),
        DMG_TEST(random_extents_keep_what_was_written),
        DMG_TEST(a_full_node_says_what_is_left),
        DMG_TEST(wrong_addresses_are_not_freed),
        DMG_TEST(memory_belongs_to_a_job),
        DMG_TEST(catalog_names_and_values_have_limits),
        DMG_TEST(range_arrays_span_their_nodes),
        DMG_TEST(a_range_array_costs_one_operation_a_node),
        DMG_TEST(shares_follow_the_room_on_nodes_of_different_sizes),
        DMG_TEST(a_range_array_that_does_not_fit_leaves_nothing),
        DMG_TEST(requests_of_wrong_size_or_version_are_answered_with_an_error),
        DMG_TEST(bad_values_are_answered_with_an_error),
        DMG_TEST(updates_that_lead_out_of_the_segment_are_refused),
        DMG_TEST(what_a_node_did_for_others_is_counted),
        DMG_TEST(random_requests_do_no_harm),
        {NULL, NULL},
    };
    return add_suites(tests) ? 1 : dmg_suites_run(argc, argv);
}
