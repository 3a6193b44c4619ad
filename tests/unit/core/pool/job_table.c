/*
 * The table of jobs, as node 0 keeps it: every stage, every way to fail, and that each request is answered once.
 */
#include "unit/support/random.h"
#include "unit/support/suite.h"

#include "core/base/error.h"
#include "core/pool/job_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool message_has(const char *words)
{
    return strstr(dmg_error_message(), words) != NULL;
}

static dmg_status join_with(dmg_job_table *to, uint64_t client, uint64_t reply_token, uint64_t parent, const char *name,
                            uint32_t rank, uint32_t size, uint8_t secret)
{
    const dmg_job_entrant entrant = {.client = client,
                                     .reply_token = reply_token,
                                     .name = name,
                                     .rank = rank,
                                     .size = size,
                                     .parent = parent,
                                     .secret_hash = {secret},
                                     .owner = {.user = 7, .user_name = "alice", .host = "here"}};
    return dmg_job_table_join(to, &entrant);
}

static dmg_status join_within(dmg_job_table *to, uint64_t client, uint64_t reply_token, uint64_t parent,
                              const char *name, uint32_t rank, uint32_t size)
{
    return join_with(to, client, reply_token, parent, name, rank, size, 1);
}

static dmg_status join(dmg_job_table *to, uint64_t client, uint64_t reply_token, const char *name, uint32_t rank,
                       uint32_t size)
{
    return join_with(to, client, reply_token, 0, name, rank, size, 1);
}

#define TOKENS_MAX 4096

/* What became of each token: the table must answer each exactly once. */
typedef struct answers {
    uint32_t times[TOKENS_MAX];
    dmg_status status[TOKENS_MAX];
    char text[TOKENS_MAX][128];
    dmg_reduction reduction;
    uint64_t job;
} answers;

static answers said;
static dmg_job_table *table;
static dmg_job_failure first; /* what the last abort was told */

static void note_answer(void *context, uint64_t token, dmg_status status, const void *payload, size_t bytes)
{
    answers *noted = context;
    noted->times[token]++;
    noted->status[token] = status;
    snprintf(noted->text[token], sizeof noted->text[token], "%.*s", status == DMG_OK ? 0 : (int)bytes,
             (const char *)payload);
    if (status == DMG_OK && bytes == sizeof noted->reduction) {
        memcpy(&noted->reduction, payload, bytes);
    } else if (status == DMG_OK && bytes == sizeof noted->job) {
        memcpy(&noted->job, payload, bytes);
    }
}

static void table_open(void)
{
    memset(&said, 0, sizeof said);
    CU_ASSERT_EQUAL_FATAL(dmg_job_table_create(note_answer, &said, &table), DMG_OK);
}

static void table_close(void)
{
    dmg_job_table_destroy(table);
    table = NULL;
}

static bool was_answered(uint64_t token, dmg_status status, const char *words)
{
    return said.times[token] == 1 && said.status[token] == status && strstr(said.text[token], words) != NULL;
}

/* Ranks 0 to size - 1 join as clients 100 + rank and get ready, with tokens 0 to 2 * size - 1. Returns the job. */
static uint64_t table_start_job(const char *name, uint32_t size)
{
    for (uint32_t rank = 0; rank < size; rank++) {
        CU_ASSERT_EQUAL(join(table, 100 + rank, rank, name, rank, size), DMG_OK);
        CU_ASSERT_EQUAL(said.times[0], rank + 1 == size);
    }
    uint64_t job = said.job;
    for (uint32_t rank = 0; rank < size; rank++) {
        CU_ASSERT_EQUAL(dmg_job_table_ready(table, 100 + rank, size + rank, job, rank), DMG_OK);
    }
    for (uint32_t token = 0; token < 2 * size; token++) {
        CU_ASSERT_TRUE(was_answered(token, DMG_OK, ""));
    }
    return job;
}

static void joining_ends_when_all_have_come(void)
{
    table_open();
    uint64_t job = table_start_job("first", 3);
    CU_ASSERT_NOT_EQUAL(job, 0);
    CU_ASSERT_EQUAL(join(table, 200, 10, "first", 1, 3), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(join(table, 200, 10, "first", 1, 4), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(join(table, 200, 10, "other", 4, 4), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(join(table, 200, 10, "other", 0, 0), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(join(table, 200, 10, "other", 0, DMG_JOB_SIZE_MAX + 1), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(said.times[10], 0);
    CU_ASSERT_EQUAL(join(table, 200, 11, "other", 0, 1), DMG_OK);
    CU_ASSERT_TRUE(was_answered(11, DMG_OK, ""));
    CU_ASSERT_NOT_EQUAL(said.job, job);
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_EQUAL(dmg_job_table_count(table), 2);
        CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100 + rank, job, rank), DMG_OK);
    }
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 1);
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, job, 0), DMG_ERR_NOT_FOUND);
    table_close();
}

static void a_barrier_reduces_in_the_order_of_ranks(void)
{
    unsigned long long seed = dmg_test_seed();
    dmg_random random = {seed};
    table_open();
    enum { SIZE = 5 };
    uint64_t job = table_start_job("reduce", SIZE);
    uint64_t token = 2 * SIZE;
    for (uint64_t epoch = 0; epoch < 50; epoch++) {
        dmg_reduction in[SIZE];
        dmg_reduction expected = {.least = {UINT64_MAX, UINT64_MAX}};
        uint32_t order[SIZE];
        for (uint32_t rank = 0; rank < SIZE; rank++) {
            for (uint32_t index = 0; index < DMG_REDUCE_SUMS; index++) {
                in[rank].sums[index] = dmg_random_next(&random);
                expected.sums[index] += in[rank].sums[index];
            }
            for (uint32_t index = 0; index < DMG_REDUCE_REALS; index++) {
                /* Of very different sizes, so that the order matters. */
                in[rank].reals[index] = (double)(dmg_random_next(&random) >> (dmg_random_next(&random) % 60)) / 3;
                expected.reals[index] += in[rank].reals[index];
            }
            for (uint32_t index = 0; index < 2; index++) {
                uint64_t least = in[rank].least[index] = dmg_random_next(&random);
                uint64_t most = in[rank].most[index] = dmg_random_next(&random);
                expected.least[index] = least < expected.least[index] ? least : expected.least[index];
                expected.most[index] = most > expected.most[index] ? most : expected.most[index];
            }
            order[rank] = rank;
        }
        for (uint32_t index = SIZE; index-- > 1;) {
            uint32_t other = (uint32_t)(dmg_random_next(&random) % (index + 1));
            uint32_t swapped = order[index];
            order[index] = order[other];
            order[other] = swapped;
        }
        for (uint32_t index = 0; index < SIZE; index++) {
            uint32_t rank = order[index];
            CU_ASSERT_EQUAL(said.times[token], 0);
            CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100 + rank, token + index, job, rank, epoch, &in[rank]),
                            DMG_OK);
        }
        for (uint32_t index = 0; index < SIZE; index++) {
            CU_ASSERT_TRUE(was_answered(token + index, DMG_OK, ""));
        }
        CU_ASSERT_EQUAL(memcmp(&said.reduction, &expected, sizeof expected), 0);
        token += SIZE;
    }
    table_close();
}

static void ranks_without_values_do_not_disturb_a_reduction(void)
{
    table_open();
    uint64_t job = table_start_job("some", 3);
    dmg_reduction in = {.sums = {7}, .reals = {0.5}, .least = {9, 3}, .most = {1}};
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 102, 12, job, 2, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 101, 11, job, 1, 0, &in), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 0, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(memcmp(&said.reduction, &in, sizeof in), 0);
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100 + rank, 20 + rank, job, rank, 1, NULL), DMG_OK);
    }
    dmg_reduction nothing = {0};
    CU_ASSERT_EQUAL(memcmp(&said.reduction, &nothing, sizeof nothing), 0);
    table_close();
}

static void strangers_and_wrong_epochs_are_refused_without_harm(void)
{
    table_open();
    uint64_t job = table_start_job("epochs", 2);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 0, 1, NULL), DMG_ERR_ARGUMENT);
    CU_ASSERT_TRUE(message_has("barrier 1"));
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 1, 0, NULL), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 2, 0, NULL), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job + 1, 0, 0, NULL), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_table_ready(table, 100, 10, job, 0), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_job_table_abort(table, 300, job, 0, DMG_ERR_IO, "mine", &first), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 101, job, 0), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 11, job, 0, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 12, job, 0, 0, NULL), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 101, 13, job, 1, 0, NULL), DMG_OK);
    CU_ASSERT_TRUE(was_answered(11, DMG_OK, ""));
    CU_ASSERT_TRUE(was_answered(13, DMG_OK, ""));
    CU_ASSERT_EQUAL(join(table, 400, 14, "waits", 0, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 400, 15, job + 1, 0, 0, NULL), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(said.times[14], 0);
    table_close();
}

static void a_death_fails_every_waiting_and_later_barrier(void)
{
    table_open();
    uint64_t job = table_start_job("death", 3);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 0, 0, NULL), DMG_OK);
    dmg_job_table_client_gone(table, 999, DMG_ERR_PEER);
    CU_ASSERT_EQUAL(said.times[10], 0);
    dmg_job_table_client_gone(table, 101, DMG_ERR_PEER);
    CU_ASSERT_TRUE(
        was_answered(10, DMG_ERR_PEER, "compute node 1 died, or was silent for longer than the peer timeout"));
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 102, 11, job, 2, 0, NULL), DMG_OK);
    CU_ASSERT_TRUE(
        was_answered(11, DMG_ERR_PEER, "compute node 1 died, or was silent for longer than the peer timeout"));
    /* It stays failed, whatever happens later, and who comes later hears why. */
    CU_ASSERT_EQUAL(dmg_job_table_abort(table, 100, job, 0, DMG_ERR_IO, "later", &first), DMG_OK);
    CU_ASSERT_EQUAL(first.status, DMG_ERR_PEER);
    CU_ASSERT_EQUAL(first.rank, DMG_JOB_NO_RANK);
    CU_ASSERT_STRING_EQUAL(first.sentence, "compute node 1 died, or was silent for longer than the peer timeout");
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 102, 12, job, 2, 0, NULL), DMG_OK);
    CU_ASSERT_TRUE(
        was_answered(12, DMG_ERR_PEER, "compute node 1 died, or was silent for longer than the peer timeout"));
    CU_ASSERT_EQUAL(join(table, 500, 13, "death", 1, 3), DMG_OK);
    CU_ASSERT_TRUE(
        was_answered(13, DMG_ERR_PEER, "compute node 1 died, or was silent for longer than the peer timeout"));
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, job, 0), DMG_OK);
    dmg_job_table_client_gone(table, 102, DMG_ERR_PEER);
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 0);
    table_close();
}

static void a_death_while_joining_fails_also_those_who_come_later(void)
{
    table_open();
    CU_ASSERT_EQUAL(join(table, 100, 0, "early", 0, 4), DMG_OK);
    CU_ASSERT_EQUAL(join(table, 101, 1, "early", 1, 4), DMG_OK);
    dmg_job_table_client_gone(table, 100, DMG_ERR_PEER);
    CU_ASSERT_TRUE(was_answered(1, DMG_ERR_PEER, "compute node 0 died"));
    CU_ASSERT_EQUAL(join(table, 102, 2, "early", 2, 4), DMG_OK);
    CU_ASSERT_TRUE(was_answered(2, DMG_ERR_PEER, "compute node 0 died"));
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 1);
    CU_ASSERT_EQUAL(join(table, 103, 3, "early", 3, 4), DMG_OK);
    CU_ASSERT_TRUE(was_answered(3, DMG_ERR_PEER, "compute node 0 died"));
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 0);
    table_close();
}

static void a_death_between_join_and_ready_fails_the_job(void)
{
    table_open();
    CU_ASSERT_EQUAL(join(table, 100, 0, "ready", 0, 2), DMG_OK);
    CU_ASSERT_EQUAL(join(table, 101, 1, "ready", 1, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_ready(table, 100, 2, said.job, 0), DMG_OK);
    dmg_job_table_client_gone(table, 101, DMG_OK);
    CU_ASSERT_TRUE(was_answered(2, DMG_ERR_PEER, "compute node 1 ended without leaving"));
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, said.job, 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 0);
    table_close();
}

static void an_abort_tells_the_others_the_sentence(void)
{
    table_open();
    uint64_t job = table_start_job("abort", 2);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 0, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_abort(table, 101, job, 1, DMG_ERR_LIMIT, "the cache is too small", &first), DMG_OK);
    CU_ASSERT_TRUE(was_answered(10, DMG_ERR_LIMIT, "compute node 1: the cache is too small"));
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 101, job, 1), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, job, 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 0);
    table_close();
}

static void of_several_aborts_all_hear_the_first(void)
{
    table_open();
    uint64_t job = table_start_job("aborts", 3);
    CU_ASSERT_EQUAL(dmg_job_table_abort(table, 102, job, 2, DMG_ERR_LIMIT, "the pool is too small", &first), DMG_OK);
    CU_ASSERT_EQUAL(first.status, DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(first.rank, 2);
    CU_ASSERT_EQUAL(dmg_job_table_abort(table, 100, job, 0, DMG_ERR_CORRUPT, "what is this?", &first), DMG_OK);
    CU_ASSERT_EQUAL(first.status, DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(first.rank, 2);
    CU_ASSERT_STRING_EQUAL(first.sentence, "the pool is too small");
    CU_ASSERT_EQUAL(dmg_job_failure_error(&first, 0), DMG_ERR_LIMIT);
    CU_ASSERT_STRING_EQUAL(dmg_error_message(), "compute node 2: the pool is too small");
    CU_ASSERT_EQUAL(dmg_job_failure_error(&first, 2), DMG_ERR_LIMIT);
    CU_ASSERT_STRING_EQUAL(dmg_error_message(), "the pool is too small");
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 101, 11, job, 1, 0, NULL), DMG_OK);
    CU_ASSERT_TRUE(was_answered(11, DMG_ERR_LIMIT, "compute node 2: the pool is too small"));
    table_close();
}

static void leaving_early_ends_the_waiting_of_others(void)
{
    table_open();
    uint64_t job = table_start_job("early leave", 3);
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, job, 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 101, 10, job, 1, 0, NULL), DMG_OK);
    CU_ASSERT_TRUE(was_answered(10, DMG_ERR_CANCELLED, "compute node 0 left"));
    table_close();
    table_open();
    job = table_start_job("early leave", 3);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 101, 10, job, 1, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, job, 0), DMG_OK);
    CU_ASSERT_TRUE(was_answered(10, DMG_ERR_CANCELLED, "compute node 0 left"));
    table_close();
}

static void jobs_are_bounded_and_failed_ones_make_room(void)
{
    table_open();
    char name[32];
    for (uint32_t index = 0; index < DMG_JOBS_MAX; index++) {
        snprintf(name, sizeof name, "job %u", index);
        CU_ASSERT_EQUAL(join(table, index, index, name, 0, 2), DMG_OK);
    }
    CU_ASSERT_EQUAL(join(table, 1000, 1000, "one more", 0, 2), DMG_ERR_LIMIT);
    dmg_job_table_client_gone(table, 17, DMG_ERR_PEER);
    CU_ASSERT_EQUAL(dmg_job_table_count(table), DMG_JOBS_MAX);
    CU_ASSERT_EQUAL(join(table, 1000, 1001, "one more", 0, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_count(table), DMG_JOBS_MAX);
    CU_ASSERT_EQUAL(join(table, 1001, 1002, "another", 0, 2), DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(join(table, 1001, 1002, "one more", 1, 2), DMG_OK);
    CU_ASSERT_TRUE(was_answered(1001, DMG_OK, ""));
    table_close();
}

static void no_client_takes_all_jobs(void)
{
    table_open();
    char name[32];
    for (uint32_t index = 0; index < DMG_JOBS_OF_A_CLIENT_MAX; index++) {
        snprintf(name, sizeof name, "job %u", index);
        CU_ASSERT_EQUAL(join(table, 100, index, name, 0, 2), DMG_OK);
    }
    CU_ASSERT_EQUAL(join(table, 100, 1000, "one more", 0, 2), DMG_ERR_LIMIT);
    CU_ASSERT_TRUE(message_has("leave one"));
    CU_ASSERT_EQUAL(join(table, 101, 1000, "another's", 0, 2), DMG_OK);
    CU_ASSERT_EQUAL(join(table, 100, 1001, "another's", 1, 2), DMG_OK);
    table_close();
}

/* Random requests, right and wrong: the table stays consistent, and no token is ever answered twice. */
static void random_requests_never_answer_a_token_twice(void)
{
    unsigned long long seed = dmg_test_seed();
    dmg_random random = {seed};
    table_open();
    uint32_t wrong = 0;
    for (uint64_t token = 1; token < TOKENS_MAX; token++) {
        uint64_t client = 1 + dmg_random_next(&random) % 6;
        uint64_t job = 1 + dmg_random_next(&random) % (2 + token / 100);
        uint32_t rank = (uint32_t)(dmg_random_next(&random) % 3);
        uint32_t size = 1 + (uint32_t)(dmg_random_next(&random) % 3);
        char name[2] = {(char)('a' + dmg_random_next(&random) % 3), 0};
        dmg_status status = DMG_OK;
        bool keeps = true;
        switch (dmg_random_next(&random) % 12) {
        case 0:
        case 1:
        case 2:
        case 3:
            status = join(table, client, token, name, rank, size);
            break;
        case 4:
        case 5:
            status = dmg_job_table_ready(table, client, token, job, rank);
            break;
        case 6:
        case 7:
        case 8:
            status = dmg_job_table_barrier(table, client, token, job, rank, dmg_random_next(&random) % 2, NULL);
            break;
        case 9:
            status = dmg_job_table_abort(table, client, job, rank, DMG_ERR_IO, "why not", &first);
            keeps = false;
            break;
        case 10:
            status = dmg_job_table_leave(table, client, job, rank);
            keeps = false;
            break;
        default:
            dmg_job_table_client_gone(table, client, dmg_random_next(&random) % 2 ? DMG_OK : DMG_ERR_PEER);
            keeps = false;
            break;
        }
        wrong += (status != DMG_OK || !keeps) && said.times[token] != 0;
    }
    for (uint64_t client = 1; client <= 6; client++) {
        dmg_job_table_client_gone(table, client, DMG_ERR_PEER);
    }
    for (uint64_t token = 1; token < TOKENS_MAX; token++) {
        wrong += said.times[token] > 1;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    table_close();
}

/* Rank 0 waits for rank 1 in a job within the job of both; its token is 20. Returns the parent. */
static uint64_t table_wait_within(void)
{
    table_open();
    uint64_t parent = table_start_job("parent", 2);
    CU_ASSERT_EQUAL(join_within(table, 100, 20, parent, "child", 0, 2), DMG_OK);
    CU_ASSERT_EQUAL(said.times[20], 0);
    return parent;
}

static void who_waits_within_a_job_hears_when_a_member_that_has_not_joined_dies(void)
{
    uint64_t parent = table_wait_within();
    dmg_job_table_client_gone(table, 101, DMG_ERR_PEER);
    CU_ASSERT_TRUE(
        was_answered(20, DMG_ERR_PEER, "compute node 1 died, or was silent for longer than the peer timeout"));
    CU_ASSERT_EQUAL(join_within(table, 100, 21, parent, "later", 0, 2), DMG_OK);
    CU_ASSERT_TRUE(
        was_answered(21, DMG_ERR_PEER, "compute node 1 died, or was silent for longer than the peer timeout"));
    table_close();
}

static void who_waits_within_a_job_hears_when_a_member_that_has_not_joined_leaves(void)
{
    uint64_t parent = table_wait_within();
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 101, parent, 1), DMG_OK);
    CU_ASSERT_TRUE(was_answered(20, DMG_ERR_CANCELLED, "compute node 1 has left"));
    CU_ASSERT_EQUAL(join_within(table, 100, 21, parent, "later", 0, 2), DMG_OK);
    CU_ASSERT_TRUE(was_answered(21, DMG_ERR_CANCELLED, "compute node 1 has left"));
    table_close();
}

static void a_job_within_another_fails_alone(void)
{
    uint64_t parent = table_wait_within();
    CU_ASSERT_EQUAL(join_within(table, 101, 21, parent, "child", 1, 2), DMG_OK);
    CU_ASSERT_TRUE(was_answered(20, DMG_OK, "") && was_answered(21, DMG_OK, ""));
    CU_ASSERT_EQUAL(dmg_job_table_abort(table, 101, said.job, 1, DMG_ERR_IO, "no such file", &first), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_ready(table, 100, 22, said.job, 0), DMG_OK);
    CU_ASSERT_TRUE(was_answered(22, DMG_ERR_IO, "no such file"));
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 23, parent, 0, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 101, 24, parent, 1, 0, NULL), DMG_OK);
    CU_ASSERT_TRUE(was_answered(23, DMG_OK, "") && was_answered(24, DMG_OK, ""));
    table_close();
}

static void only_its_members_join_within_a_job_and_with_its_size(void)
{
    uint64_t parent = table_wait_within();
    CU_ASSERT_EQUAL(join_within(table, 102, 21, parent, "child", 1, 2), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(join_within(table, 101, 21, parent + 9, "child", 1, 2), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(join_within(table, 101, 21, parent, "other", 1, 3), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(join(table, 101, 21, "child", 1, 2), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(said.times[21], 0);
    table_close();
}

static void nobody_joins_without_the_secret_of_the_first(void)
{
    const char *name;
    const dmg_pool_owner *owner;
    const uint8_t right[DMG_SECRET_BYTES] = {1};
    const uint8_t wrong[DMG_SECRET_BYTES] = {2};
    table_open();
    CU_ASSERT_EQUAL(join(table, 100, 0, "closed", 0, 2), DMG_OK);
    CU_ASSERT_EQUAL(join_with(table, 101, 1, 0, "closed", 1, 2, 2), DMG_ERR_DENIED);
    CU_ASSERT_TRUE(message_has("alice (user 7) on here"));
    CU_ASSERT_EQUAL(said.times[0] + said.times[1], 0);
    CU_ASSERT_EQUAL(join(table, 102, 2, "closed", 1, 2), DMG_OK);
    uint64_t job = said.job;
    CU_ASSERT_EQUAL(dmg_job_table_introduce(table, job, wrong, &name, &owner), DMG_ERR_DENIED);
    CU_ASSERT_EQUAL(dmg_job_table_introduce(table, job + 1, right, &name, &owner), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL_FATAL(dmg_job_table_introduce(table, job, right, &name, &owner), DMG_OK);
    CU_ASSERT_STRING_EQUAL(name, "closed");
    CU_ASSERT_STRING_EQUAL(owner->user_name, "alice");
    table_close();
}

static void a_job_within_another_has_its_secret_and_owner(void)
{
    const char *name;
    const dmg_pool_owner *owner;
    const uint8_t secret[DMG_SECRET_BYTES] = {1};
    uint64_t parent = table_wait_within();
    CU_ASSERT_EQUAL(join_with(table, 101, 21, parent, "child", 1, 2, 9), DMG_OK);
    CU_ASSERT_TRUE(was_answered(20, DMG_OK, "") && was_answered(21, DMG_OK, ""));
    CU_ASSERT_NOT_EQUAL(said.job, parent);
    CU_ASSERT_EQUAL_FATAL(dmg_job_table_introduce(table, said.job, secret, &name, &owner), DMG_OK);
    CU_ASSERT_STRING_EQUAL(owner->user_name, "alice");
    table_close();
}

int main(int argc, char **argv)
{
    static const dmg_test job_tests[] = {
        DMG_TEST(joining_ends_when_all_have_come),
        DMG_TEST(a_barrier_reduces_in_the_order_of_ranks),
        DMG_TEST(ranks_without_values_do_not_disturb_a_reduction),
        DMG_TEST(strangers_and_wrong_epochs_are_refused_without_harm),
        DMG_TEST(a_death_fails_every_waiting_and_later_barrier),
        DMG_TEST(a_death_while_joining_fails_also_those_who_come_later),
        DMG_TEST(a_death_between_join_and_ready_fails_the_job),
        DMG_TEST(an_abort_tells_the_others_the_sentence),
        DMG_TEST(of_several_aborts_all_hear_the_first),
        DMG_TEST(leaving_early_ends_the_waiting_of_others),
        DMG_TEST(jobs_are_bounded_and_failed_ones_make_room),
        DMG_TEST(no_client_takes_all_jobs),
        DMG_TEST(random_requests_never_answer_a_token_twice),
        DMG_TEST(who_waits_within_a_job_hears_when_a_member_that_has_not_joined_dies),
        DMG_TEST(who_waits_within_a_job_hears_when_a_member_that_has_not_joined_leaves),
        DMG_TEST(a_job_within_another_fails_alone),
        DMG_TEST(only_its_members_join_within_a_job_and_with_its_size),
        DMG_TEST(nobody_joins_without_the_secret_of_the_first),
        DMG_TEST(a_job_within_another_has_its_secret_and_owner),
        {NULL, NULL},
    };
    if (dmg_suite_add("jobs", NULL, NULL, job_tests)) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
