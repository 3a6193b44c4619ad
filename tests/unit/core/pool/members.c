#include "unit/core/pool/members.h"

#include "unit/support/deadline.h"

#include "core/base/error.h"

#include <stdio.h>
#include <string.h>

#define KIB UINT64_C(1024)

const char *transport;
dmg_test_pool pool;
dmg_channel *channel;

void start(uint32_t node_count, uint64_t segment_bytes)
{
    dmg_status status = dmg_test_pool_start(transport, node_count, segment_bytes, &pool);
    if (status == DMG_OK) {
        status = dmg_channel_open(pool.client, &channel);
    }
    if (status != DMG_OK) {
        printf("\n    %s\n", dmg_error_message());
    }
    CU_ASSERT_EQUAL_FATAL(status, DMG_OK);
}

void stop(void)
{
    dmg_channel_close(channel);
    channel = NULL;
    dmg_test_pool_stop(&pool);
}

bool usage_becomes(uint64_t wanted)
{
    for (uint16_t node = 0; node < pool.node_count; node++) {
        uint64_t allocated = UINT64_MAX;
        uint64_t peak;
        uint64_t total;
        for (dmg_test_wait wait = dmg_test_wait_for(10); allocated != wanted && dmg_test_goes_on(&wait);) {
            if (dmg_pool_usage(channel, node, &allocated, &peak, &total) != DMG_OK) {
                return false;
            }
        }
        if (allocated != wanted) {
            return false;
        }
    }
    return true;
}

static void *member_main(void *context)
{
    member *self = context;
    self->status = dmg_client_open(&pool.options, &self->client);
    if (self->status == DMG_OK) {
        self->status = dmg_channel_open(self->client, &self->channel);
    }
    if (self->status == DMG_OK) {
        self->play(self);
    }
    if (self->status != DMG_OK) {
        snprintf(self->message, sizeof self->message, "%s", dmg_error_message());
    }
    dmg_channel_close(self->channel);
    dmg_client_close(self->client);
    return NULL;
}

void members_start(member *members, uint32_t count, uint32_t size, const char *name, void (*play)(member *self))
{
    for (uint32_t index = 0; index < count; index++) {
        memset(&members[index], 0, sizeof members[index]);
        members[index].play = play;
        members[index].job_name = name;
        members[index].rank = index;
        members[index].size = size;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&members[index].thread, NULL, member_main, &members[index]), 0);
    }
}

void members_end(member *members, uint32_t count)
{
    for (uint32_t index = 0; index < count; index++) {
        pthread_join(members[index].thread, NULL);
    }
}

dmg_status join(member *self)
{
    return dmg_job_join(self->channel, &dmg_test_pass, self->job_name, self->rank, self->size, &self->job);
}

dmg_status allocate_everywhere(dmg_channel *on, uint64_t job)
{
    dmg_status status = DMG_OK;
    dmg_address address;
    uint32_t node_count = dmg_client_node_count(dmg_channel_client(on));
    for (uint16_t node = 0; node < node_count && status == DMG_OK; node++) {
        status = dmg_pool_allocate(on, node, job, 10000 + node, &address);
        if (status == DMG_OK) {
            status = dmg_pool_allocate(on, node, job, 300 * KIB, &address);
        }
    }
    return status;
}

static int set_up_cxl_shm(void)
{
    transport = "cxl_shm";
    return 0;
}

static int set_up_ucx(void)
{
    transport = "ucx";
    return 0;
}

static int set_up_ucx_message(void)
{
    transport = "ucx:data=message";
    return 0;
}

int add_suites(const dmg_test *tests)
{
    return dmg_suite_add("cxl_shm", set_up_cxl_shm, NULL, tests) || dmg_suite_add("ucx", set_up_ucx, NULL, tests) ||
           dmg_suite_add("ucx_message", set_up_ucx_message, NULL, tests);
}
