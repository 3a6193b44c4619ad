/*
 * Rights and limits by job, over every transport. A stranger here is a client with the pool's token, and with a job and
 * an identity of its own; what the library would not send, it sends as raw messages.
 */
#include "unit/core/pool/members.h"

#include "core/base/error.h"
#include "core/pool/combine.h"
#include "core/pool/protocol.h"

#include <stdio.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static const dmg_job_pass stranger_pass = {
    .secret = {11}, .owner = {.identity = {12}, .user = 13, .user_name = "mallory", .host = "elsewhere"}};
static const dmg_job_pass nobodys_pass = {.secret = {21}};

/** Another client of the pool, in a job of its own. */
typedef struct guest {
    dmg_client *client;
    dmg_channel *channel;
    dmg_job job;
} guest;

static void guest_come(guest *came, const dmg_job_pass *pass, const char *job_name)
{
    CU_ASSERT_EQUAL_FATAL(dmg_client_open(&pool.options, &came->client), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(came->client, &came->channel), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_job_join(came->channel, pass, job_name, 0, 1, &came->job), DMG_OK);
}

static void guest_go(guest *gone)
{
    CU_ASSERT_EQUAL(dmg_job_leave(gone->channel, &gone->job), DMG_OK);
    dmg_channel_close(gone->channel);
    dmg_client_close(gone->client);
}

static bool message_has(const char *words)
{
    return strstr(dmg_error_message(), words) != NULL;
}

static dmg_status send_raw(const guest *from, uint16_t node, uint32_t type, const void *payload, size_t bytes)
{
    static char reply[DMG_MESSAGE_BYTES_MAX];
    dmg_call call = {.reply = reply, .reply_capacity = sizeof reply};
    return dmg_message(from->channel, node, type, payload, bytes, &call);
}

static uint64_t refused_for_rights(uint16_t node)
{
    dmg_pool_refusals refusals = {0};
    CU_ASSERT_EQUAL(dmg_pool_ask_limits(channel, node, NULL, &refusals, NULL), DMG_OK);
    return refusals.rights;
}

/* ---- what belongs to a job ---- */

static void a_job_cannot_free_or_keep_the_memory_of_another(void)
{
    start(2, 4 * MIB);
    guest stranger;
    guest_come(&stranger, &stranger_pass, "stranger");
    for (uint16_t node = 0; node < 2; node++) {
        dmg_address address;
        uint64_t value = 42;
        CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, node, pool.job.id, 4096, &address), DMG_OK);
        CU_ASSERT_EQUAL(dmg_write(channel, &value, address, sizeof value), DMG_OK);
        CU_ASSERT_EQUAL(dmg_pool_free(stranger.channel, address), DMG_ERR_DENIED);
        CU_ASSERT_TRUE(message_has("it belongs to tester (user 3) on here"));
        CU_ASSERT_EQUAL(refused_for_rights(node), 1);
        dmg_pool_allocate_request allocate = {.header = dmg_pool_header_make(), .job = pool.job.id, .bytes = 4096};
        CU_ASSERT_EQUAL(send_raw(&stranger, node, DMG_POOL_ALLOCATE, &allocate, sizeof allocate), DMG_ERR_ARGUMENT);
        dmg_pool_job_request reference = {.header = dmg_pool_header_make(), .job = pool.job.id};
        CU_ASSERT_EQUAL(send_raw(&stranger, node, DMG_POOL_KEEP, &reference, sizeof reference), DMG_ERR_ARGUMENT);
        CU_ASSERT_EQUAL(send_raw(&stranger, node, DMG_POOL_DETACH, &reference, sizeof reference), DMG_ERR_NOT_FOUND);
        dmg_pool_extent_request zero = {.header = dmg_pool_header_make(), .offset = dmg_address_offset(address)};
        CU_ASSERT_EQUAL(send_raw(&stranger, node, DMG_POOL_ZERO, &zero, sizeof zero), DMG_ERR_NOT_FOUND);
        value = 0;
        CU_ASSERT_EQUAL(dmg_read(channel, address, &value, sizeof value), DMG_OK);
        CU_ASSERT_EQUAL(value, 42);
    }
    CU_ASSERT_TRUE(usage_becomes(4096));
    guest_go(&stranger);
    stop();
}

/* One update of attribute 0, whose activation bit is at another place. */
static void a_job_cannot_have_the_attributes_of_another_updated(void)
{
    start(1, 4 * MIB);
    guest stranger;
    dmg_address theirs, own;
    uint64_t value = 7;
    const size_t bytes = sizeof(dmg_pool_update_request) + 12;
    guest_come(&stranger, &stranger_pass, "stranger");
    CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, 0, pool.job.id, 4096, &theirs), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(stranger.channel, 0, stranger.job.id, 4096, &own), DMG_OK);
    one_update update = {.request = {.header = dmg_pool_header_make(),
                                     .combine = DMG_COMBINE_ADD_DOUBLE,
                                     .count = 1,
                                     .attributes = dmg_address_offset(theirs)}};
    memcpy(update.value, &(double){2.5}, 8);
    CU_ASSERT_EQUAL(send_raw(&stranger, 0, DMG_POOL_UPDATE, &update, bytes), DMG_ERR_DENIED);
    update.request.attributes = dmg_address_offset(own);
    update.request.activation = dmg_address_offset(theirs);
    CU_ASSERT_EQUAL(send_raw(&stranger, 0, DMG_POOL_UPDATE, &update, bytes), DMG_ERR_DENIED);
    /* From its own attributes on to what lies behind them: extents of one node are not far from each other. */
    update.request.activation = 0;
    update.index = theirs > own ? (uint32_t)((theirs - own) / 8) : 512;
    CU_ASSERT_EQUAL(send_raw(&stranger, 0, DMG_POOL_UPDATE, &update, bytes), DMG_ERR_PROTOCOL);
    CU_ASSERT_EQUAL(dmg_read(channel, theirs, &value, sizeof value), DMG_OK);
    CU_ASSERT_EQUAL(value, 0);
    update.index = 0;
    CU_ASSERT_EQUAL(send_raw(&stranger, 0, DMG_POOL_UPDATE, &update, bytes), DMG_OK);
    CU_ASSERT_EQUAL(refused_for_rights(0), 2);
    guest_go(&stranger);
    stop();
}

static void nobody_attaches_without_a_ticket_of_his_own(void)
{
    start(2, 4 * MIB);
    guest stranger;
    dmg_address address;
    guest_come(&stranger, &stranger_pass, "stranger");
    CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(channel, 1, pool.job.id, 4096, &address), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_attach(stranger.channel, pool.job.id, stranger_pass.secret), DMG_ERR_DENIED);
    CU_ASSERT_TRUE(message_has("tester (user 3) on here"));
    /* A ticket that is good, but for the job's own member. */
    dmg_job_ticket_request wanted = {.header = dmg_pool_header_make(), .job = pool.job.id};
    dmg_pool_attach_request attach = {.header = dmg_pool_header_make()};
    dmg_call call = {.reply = &attach.ticket, .reply_capacity = sizeof attach.ticket};
    memcpy(wanted.secret, dmg_test_pass.secret, sizeof wanted.secret);
    CU_ASSERT_EQUAL_FATAL(dmg_message(channel, 0, DMG_JOB_TICKET, &wanted, sizeof wanted, &call), DMG_OK);
    CU_ASSERT_EQUAL(attach.ticket.job, pool.job.id);
    CU_ASSERT_EQUAL(send_raw(&stranger, 1, DMG_POOL_ATTACH, &attach, sizeof attach), DMG_ERR_DENIED);
    attach.ticket.client = dmg_client_id(stranger.client);
    CU_ASSERT_EQUAL(send_raw(&stranger, 1, DMG_POOL_ATTACH, &attach, sizeof attach), DMG_ERR_DENIED);
    /* And its own, for another job or owner. */
    call = (dmg_call){.reply = &attach.ticket, .reply_capacity = sizeof attach.ticket};
    wanted.job = stranger.job.id;
    memcpy(wanted.secret, stranger_pass.secret, sizeof wanted.secret);
    CU_ASSERT_EQUAL_FATAL(dmg_message(stranger.channel, 0, DMG_JOB_TICKET, &wanted, sizeof wanted, &call), DMG_OK);
    dmg_pool_attach_request forged = attach;
    forged.ticket.job = pool.job.id;
    CU_ASSERT_EQUAL(send_raw(&stranger, 1, DMG_POOL_ATTACH, &forged, sizeof forged), DMG_ERR_DENIED);
    forged = attach;
    forged.ticket.owner.identity[0] ^= 1;
    CU_ASSERT_EQUAL(send_raw(&stranger, 1, DMG_POOL_ATTACH, &forged, sizeof forged), DMG_ERR_DENIED);
    CU_ASSERT_EQUAL(send_raw(&stranger, 1, DMG_POOL_ATTACH, &attach, sizeof attach), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_free(stranger.channel, address), DMG_ERR_DENIED);
    /* With the secret it may: so does the launcher of a load. */
    CU_ASSERT_EQUAL(dmg_job_attach(stranger.channel, pool.job.id, dmg_test_pass.secret), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_free(stranger.channel, address), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_detach(stranger.channel, pool.job.id), DMG_OK);
    guest_go(&stranger);
    stop();
}

static void nobody_joins_or_ends_the_job_of_another(void)
{
    start(2, 4 * MIB);
    guest owner, stranger;
    dmg_job job;
    guest_come(&owner, &dmg_test_pass, "closed");
    guest_come(&stranger, &stranger_pass, "stranger");
    CU_ASSERT_EQUAL(dmg_job_join(stranger.channel, &stranger_pass, "closed", 0, 1, &job), DMG_ERR_DENIED);
    CU_ASSERT_TRUE(message_has("does not know its secret"));
    job = owner.job;
    CU_ASSERT_EQUAL(dmg_job_barrier(stranger.channel, &job, NULL), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_abort(stranger.channel, &job, DMG_ERR_IO, "forged", NULL), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_leave(stranger.channel, &job), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_barrier(owner.channel, &owner.job, NULL), DMG_OK);
    guest_go(&stranger);
    guest_go(&owner);
    stop();
}

static void entries_of_the_catalog_are_removed_by_their_owner_alone(void)
{
    start(1, 4 * MIB);
    guest owner, stranger;
    size_t bytes = 0;
    guest_come(&owner, &dmg_test_pass, "owner");
    guest_come(&stranger, &stranger_pass, "stranger");
    CU_ASSERT_EQUAL(dmg_catalog_put(owner.channel, 0, "stays", "", 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_put(owner.channel, owner.job.id, "goes", "", 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_put(stranger.channel, 0, "stays", "", 0), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(dmg_catalog_put(stranger.channel, owner.job.id, "forged", "", 0), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_catalog_remove(stranger.channel, "stays"), DMG_ERR_DENIED);
    CU_ASSERT_TRUE(message_has("it belongs to tester (user 3) on here"));
    CU_ASSERT_EQUAL(dmg_catalog_remove(stranger.channel, "goes"), DMG_ERR_DENIED);
    CU_ASSERT_EQUAL(dmg_catalog_remove_unused(stranger.channel, "stays", "use/"), DMG_ERR_DENIED);
    guest_go(&owner);
    CU_ASSERT_EQUAL(dmg_catalog_get(channel, "goes", NULL, &bytes), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_catalog_remove(stranger.channel, "stays"), DMG_ERR_DENIED);
    /* The fixture's client is in another job of the same identity. */
    CU_ASSERT_EQUAL(dmg_catalog_remove(channel, "stays"), DMG_OK);
    guest_go(&stranger);
    stop();
}

/* ---- what outlives a job ---- */

/* Keep an extent on each node by a job of this pass, which ends; returns the job. */
static uint64_t leave_behind(const dmg_job_pass *pass, const char *name)
{
    guest loader;
    dmg_address address;
    guest_come(&loader, pass, name);
    uint64_t job = loader.job.id;
    for (uint16_t node = 0; node < pool.node_count; node++) {
        CU_ASSERT_EQUAL_FATAL(dmg_pool_allocate(loader.channel, node, job, 4096, &address), DMG_OK);
    }
    CU_ASSERT_EQUAL(dmg_pool_keep(loader.channel, job, NULL), DMG_OK);
    guest_go(&loader);
    return job;
}

static void what_outlives_a_job_is_freed_by_the_same_identity_alone(void)
{
    start(2, 4 * MIB);
    guest stranger;
    uint64_t bytes = 0;
    uint64_t job = leave_behind(&dmg_test_pass, "loader");
    guest_come(&stranger, &stranger_pass, "stranger");
    CU_ASSERT_EQUAL(dmg_pool_drop(stranger.channel, job, &bytes), DMG_ERR_DENIED);
    CU_ASSERT_TRUE(message_has("it belongs to tester (user 3) on here"));
    CU_ASSERT_EQUAL(bytes, 0);
    CU_ASSERT_TRUE(usage_becomes(4096));
    dmg_pool_holding holding;
    CU_ASSERT_EQUAL(dmg_pool_holding_next(channel, 1, job - 1, &holding), DMG_OK);
    CU_ASSERT_EQUAL(holding.job, job);
    CU_ASSERT_TRUE(holding.is_kept && holding.bytes == 4096 && holding.clients == 0);
    CU_ASSERT_STRING_EQUAL(holding.name, "loader");
    CU_ASSERT_STRING_EQUAL(holding.owner.user_name, "tester");
    /* What was shown to the pool is not to be seen there. */
    CU_ASSERT_NOT_EQUAL(memcmp(holding.owner.identity, dmg_test_pass.owner.identity, DMG_SECRET_BYTES), 0);
    CU_ASSERT_EQUAL(dmg_pool_drop(channel, job, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(bytes, 2 * 4096);
    guest_go(&stranger);
    stop();
}

static void what_nobody_left_is_freed_by_the_admin_alone(void)
{
    start(2, 4 * MIB);
    guest nobody, stranger, late;
    static const uint8_t wrong[DMG_SECRET_BYTES] = {99};
    uint64_t job = leave_behind(&nobodys_pass, "loader");
    guest_come(&nobody, &nobodys_pass, "nobody");
    guest_come(&stranger, &stranger_pass, "stranger");
    CU_ASSERT_EQUAL(dmg_pool_drop(nobody.channel, job, NULL), DMG_ERR_DENIED);
    CU_ASSERT_TRUE(message_has("nobody in particular"));
    CU_ASSERT_EQUAL(dmg_pool_administer(stranger.channel, wrong), DMG_ERR_DENIED);
    CU_ASSERT_EQUAL(dmg_pool_drop(stranger.channel, job, NULL), DMG_ERR_DENIED);
    /* What another client shows is of no use. */
    dmg_pool_admin_request copied = {.header = dmg_pool_header_make()};
    dmg_admin_show(dmg_test_admin, dmg_client_id(nobody.client), copied.shown);
    CU_ASSERT_EQUAL(send_raw(&stranger, 0, DMG_POOL_ADMIN, &copied, sizeof copied), DMG_ERR_DENIED);
    CU_ASSERT_EQUAL(dmg_pool_administer(stranger.channel, dmg_test_admin), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_drop(stranger.channel, job, NULL), DMG_OK);
    CU_ASSERT_TRUE(usage_becomes(0));
    guest_go(&stranger);
    /* It was the client, not whoever is behind it. */
    job = leave_behind(&dmg_test_pass, "loader");
    guest_come(&late, &stranger_pass, "late");
    CU_ASSERT_EQUAL(dmg_pool_drop(late.channel, job, NULL), DMG_ERR_DENIED);
    guest_go(&late);
    guest_go(&nobody);
    stop();
}

static void another_pool_is_shown_something_else(void)
{
    const uint8_t secret[DMG_SECRET_BYTES] = {1, 2, 3};
    const uint8_t one[DMG_TOKEN_BYTES] = {1};
    const uint8_t two[DMG_TOKEN_BYTES] = {2};
    uint8_t shown_to_one[DMG_SECRET_BYTES], again[DMG_SECRET_BYTES], shown_to_two[DMG_SECRET_BYTES];
    dmg_identity_show(secret, one, shown_to_one);
    dmg_identity_show(secret, one, again);
    dmg_identity_show(secret, two, shown_to_two);
    CU_ASSERT_TRUE(dmg_secret_is_equal(shown_to_one, again));
    CU_ASSERT_FALSE(dmg_secret_is_equal(shown_to_one, shown_to_two));
    CU_ASSERT_FALSE(dmg_secret_is_equal(shown_to_one, secret));
}

/* ---- limits ---- */

static void start_limited(const dmg_pool_limits *limits)
{
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start_limited(transport, 2, 4 * MIB, limits, &pool), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool.client, &channel), DMG_OK);
}

static void a_job_has_no_more_memory_than_it_may_and_another_has_its_own(void)
{
    guest one, other;
    dmg_address first, second, more;
    dmg_pool_limits limits;
    dmg_pool_refusals refusals;
    start_limited(&(dmg_pool_limits){.job_memory_bytes = 64 * KIB});
    guest_come(&one, &dmg_test_pass, "one");
    guest_come(&other, &stranger_pass, "other");
    CU_ASSERT_EQUAL(dmg_pool_allocate(one.channel, 0, one.job.id, 60 * KIB, &first), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_allocate(one.channel, 0, one.job.id, 8 * KIB, &more), DMG_ERR_LIMIT);
    CU_ASSERT_TRUE(message_has("lets one job have 65536 of each memory node"));
    CU_ASSERT_EQUAL(dmg_pool_allocate(one.channel, 0, one.job.id, UINT64_MAX, &more), DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(dmg_pool_allocate(one.channel, 0, one.job.id, 4 * KIB, &second), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_allocate(one.channel, 1, one.job.id, 64 * KIB, &more), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_allocate(other.channel, 0, other.job.id, 64 * KIB, &more), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_free(one.channel, second), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_allocate(one.channel, 0, one.job.id, 4 * KIB, &second), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_ask_limits(channel, 0, &limits, &refusals, NULL), DMG_OK);
    CU_ASSERT_EQUAL(limits.job_memory_bytes, 64 * KIB);
    CU_ASSERT_EQUAL(refusals.memory, 2);
    guest_go(&one);
    guest_come(&one, &dmg_test_pass, "one again");
    CU_ASSERT_EQUAL(dmg_pool_allocate(one.channel, 0, one.job.id, 64 * KIB, &first), DMG_OK);
    guest_go(&one);
    guest_go(&other);
    stop();
}

static void nobody_takes_all_names_or_extents(void)
{
    guest greedy;
    dmg_address address;
    char name[DMG_CATALOG_NAME_BYTES];
    uint32_t names = 0;
    uint32_t extents = 0;
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, 1, 80 * MIB, &pool), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_channel_open(pool.client, &channel), DMG_OK);
    guest_come(&greedy, &stranger_pass, "greedy");
    dmg_status status = DMG_OK;
    while (status == DMG_OK && names < 2000) {
        snprintf(name, sizeof name, "name %u", names);
        status = dmg_catalog_put(greedy.channel, 0, name, "", 0);
        names += status == DMG_OK;
    }
    CU_ASSERT_EQUAL(status, DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(names, 1024);
    CU_ASSERT_EQUAL(dmg_catalog_put(channel, 0, "mine", "", 0), DMG_OK);
    if (strcmp(transport, "cxl_shm") == 0) { /* the same everywhere, and long elsewhere */
        for (status = DMG_OK; status == DMG_OK && extents < 20000;) {
            status = dmg_pool_allocate(greedy.channel, 0, greedy.job.id, 4096, &address);
            extents += status == DMG_OK;
        }
        CU_ASSERT_EQUAL(status, DMG_ERR_LIMIT);
        CU_ASSERT_EQUAL(extents, 16384);
    }
    CU_ASSERT_EQUAL(dmg_pool_allocate(channel, 0, pool.job.id, 4096, &address), DMG_OK);
    guest_go(&greedy);
    stop();
}

static void a_job_has_no_more_compute_nodes_than_it_may(void)
{
    guest two;
    dmg_job job;
    dmg_pool_refusals refusals;
    start_limited(&(dmg_pool_limits){.job_clients = 1});
    CU_ASSERT_EQUAL(dmg_job_join(channel, &dmg_test_pass, "two", 0, 2, &job), DMG_ERR_LIMIT);
    CU_ASSERT_TRUE(message_has("lets one job have 1"));
    CU_ASSERT_EQUAL(dmg_pool_ask_limits(channel, 0, NULL, &refusals, NULL), DMG_OK);
    CU_ASSERT_EQUAL(refusals.clients, 1);
    guest_come(&two, &stranger_pass, "one");
    /* Who is in it cannot be in it any number of times. */
    uint32_t attached = 0;
    dmg_status status = DMG_OK;
    while (status == DMG_OK && attached < 100) {
        status = dmg_job_attach(two.channel, two.job.id, stranger_pass.secret);
        attached += status == DMG_OK;
    }
    CU_ASSERT_EQUAL(status, DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(attached, 4);
    while (attached-- > 0) {
        CU_ASSERT_EQUAL(dmg_job_detach(two.channel, two.job.id), DMG_OK);
    }
    guest_go(&two);
    stop();
}

static void a_client_with_too_many_channels_is_refused_and_others_are_not(void)
{
    enum { CHANNELS_MAX = 5 };
    guest greedy;
    dmg_channel *channels[CHANNELS_MAX] = {NULL};
    dmg_address address;
    dmg_pool_refusals refusals;
    start_limited(&(dmg_pool_limits){.job_channels = CHANNELS_MAX});
    guest_come(&greedy, &stranger_pass, "greedy");
    CU_ASSERT_EQUAL(dmg_pool_allocate(greedy.channel, 0, greedy.job.id, 4096, &address), DMG_OK);
    /* It has two, with that of its lease. */
    for (uint32_t i = 0; i < CHANNELS_MAX - 2; i++) {
        CU_ASSERT_EQUAL_FATAL(dmg_channel_open(greedy.client, &channels[i]), DMG_OK);
    }
    CU_ASSERT_EQUAL(dmg_pool_allocate(greedy.channel, 1, greedy.job.id, 4096, &address), DMG_OK);
    dmg_pool_holding holding;
    CU_ASSERT_EQUAL(dmg_pool_holding_next(channel, 0, greedy.job.id - 1, &holding), DMG_OK);
    CU_ASSERT_EQUAL(holding.channels, CHANNELS_MAX);
    CU_ASSERT_EQUAL(holding.clients, 1);
    dmg_status status = dmg_channel_open(greedy.client, &channels[CHANNELS_MAX - 1]);
    if (status == DMG_OK) {
        status = dmg_pool_allocate(greedy.channel, 0, greedy.job.id, 4096, &address);
    }
    CU_ASSERT_TRUE(status == DMG_ERR_LIMIT || status == DMG_ERR_PEER);
    CU_ASSERT_TRUE(message_has("more channels than the pool lets one job have, 5"));
    CU_ASSERT_EQUAL(dmg_pool_ask_limits(channel, 0, NULL, &refusals, NULL), DMG_OK);
    CU_ASSERT_TRUE(refusals.channels >= 1);
    for (uint32_t i = 0; i < CHANNELS_MAX; i++) {
        dmg_channel_close(channels[i]);
    }
    dmg_channel_close(greedy.channel);
    dmg_client_close(greedy.client);
    /* The fixture's client goes on, and a new one of the same has them again. */
    CU_ASSERT_EQUAL(dmg_pool_allocate(channel, 0, pool.job.id, 4096, &address), DMG_OK);
    guest_come(&greedy, &stranger_pass, "modest");
    CU_ASSERT_EQUAL(dmg_channel_open(greedy.client, &channels[0]), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_allocate(channels[0], 0, greedy.job.id, 4096, &address), DMG_OK);
    dmg_channel_close(channels[0]);
    guest_go(&greedy);
    stop();
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(a_job_cannot_free_or_keep_the_memory_of_another),
        DMG_TEST(a_job_cannot_have_the_attributes_of_another_updated),
        DMG_TEST(nobody_attaches_without_a_ticket_of_his_own),
        DMG_TEST(nobody_joins_or_ends_the_job_of_another),
        DMG_TEST(entries_of_the_catalog_are_removed_by_their_owner_alone),
        DMG_TEST(what_outlives_a_job_is_freed_by_the_same_identity_alone),
        DMG_TEST(what_nobody_left_is_freed_by_the_admin_alone),
        DMG_TEST(another_pool_is_shown_something_else),
        DMG_TEST(a_job_has_no_more_memory_than_it_may_and_another_has_its_own),
        DMG_TEST(nobody_takes_all_names_or_extents),
        DMG_TEST(a_job_has_no_more_compute_nodes_than_it_may),
        DMG_TEST(a_client_with_too_many_channels_is_refused_and_others_are_not),
        {NULL, NULL},
    };
    return add_suites(tests) ? 1 : dmg_suites_run(argc, argv);
}
