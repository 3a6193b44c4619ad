/**
 * @file members.h
 * For the tests of jobs: a pool with a channel, and members of a job in threads of this process.
 */
#ifndef DMG_TEST_CORE_POOL_MEMBERS_H
#define DMG_TEST_CORE_POOL_MEMBERS_H

#include "core/pool/pool.h"
#include "core/pool/protocol.h"
#include "unit/support/pool_fixture.h"
#include "unit/support/suite.h"

/** The suite's transport, pool and channel; `channel` belongs to the main thread. */
extern const char *transport;
extern dmg_test_pool pool;
extern dmg_channel *channel;

void start(uint32_t node_count, uint64_t segment_bytes);
void stop(void);
/** True when so many bytes are allocated on each node; what follows from a death may take a moment. */
bool usage_becomes(uint64_t wanted);

/** A message that asks for the update of one attribute. */
typedef struct one_update {
    dmg_pool_update_request request;
    uint32_t index;
    uint32_t value[2];
} one_update;

/** A member of a job, in a thread and with a client of its own. */
typedef struct member member;

struct member {
    pthread_t thread;
    void (*play)(member *self);
    const char *job_name;
    uint32_t rank;
    uint32_t size;
    dmg_client *client;
    dmg_channel *channel;
    dmg_job job;
    dmg_status status; /**< what the play found in the end */
    char message[512];
    uint32_t wrong; /**< how much was not as it should be */
};

/** Start ranks 0 to count - 1 of a job of this size. */
void members_start(member *members, uint32_t count, uint32_t size, const char *name, void (*play)(member *self));
void members_end(member *members, uint32_t count);
/** Join the member's job. */
dmg_status join(member *self);
/** Memory of the job on every node, a small and a large extent each. */
dmg_status allocate_everywhere(dmg_channel *on, uint64_t job);

/** Add the tests once a transport. Returns 0, or 1 when CUnit refused. */
int add_suites(const dmg_test *tests);

#endif
