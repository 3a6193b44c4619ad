/*
 * Jobs over every transport, with members in threads: they meet, reduce, are refused, give up and leave. What happens
 * when members die is in pool_deaths.c.
 */
#include "unit/core/pool/members.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/pool/range_array.h"

#include <stdio.h>
#include <string.h>

#define KIB         UINT64_C(1024)
#define MIB         (1024 * KIB)
#define MEMBERS_MAX 8

#define EPOCHS 40

/* A number of rank and epoch, of very different sizes, so that another order of adding gives another sum. */
static double real_of(uint32_t rank, uint32_t epoch)
{
    double value = 1.0 / (3 + rank + epoch);
    return (rank + epoch) % 3 == 0 ? value * 1e12 : value;
}

static void play_reduce(member *self)
{
    self->status = join(self);
    if (self->status != DMG_OK) {
        return;
    }
    self->wrong +=
        self->job.id == 0 || self->job.rank != self->rank || self->job.size != self->size || self->job.barriers != 0;
    for (uint32_t epoch = 0; epoch < EPOCHS && self->status == DMG_OK; epoch++) {
        dmg_reduction reduction = {0};
        dmg_reduction expected = {.least = {epoch, 1000}, .most = {epoch + self->size - 1, 1000 + self->size - 1}};
        for (uint32_t index = 0; index < DMG_REDUCE_SUMS; index++) {
            reduction.sums[index] = (uint64_t)self->rank * 1000 + epoch + index;
        }
        for (uint32_t index = 0; index < DMG_REDUCE_REALS; index++) {
            reduction.reals[index] = real_of(self->rank, epoch + index);
        }
        reduction.least[0] = reduction.most[0] = epoch + self->rank;
        reduction.least[1] = reduction.most[1] = 1000 + self->size - 1 - self->rank;
        for (uint32_t rank = 0; rank < self->size; rank++) {
            for (uint32_t index = 0; index < DMG_REDUCE_SUMS; index++) {
                expected.sums[index] += (uint64_t)rank * 1000 + epoch + index;
            }
            for (uint32_t index = 0; index < DMG_REDUCE_REALS; index++) {
                expected.reals[index] += real_of(rank, epoch + index);
            }
        }
        bool has_values = epoch % 8 != 7;
        self->status = dmg_job_barrier(self->channel, &self->job, has_values ? &reduction : NULL);
        self->wrong += self->status == DMG_OK && has_values && memcmp(&reduction, &expected, sizeof expected) != 0;
        self->wrong += self->status == DMG_OK && self->job.barriers != epoch + 1;
    }
    if (self->status == DMG_OK) {
        self->status = dmg_job_leave(self->channel, &self->job);
    }
}

static void members_meet_and_reduce_exactly(void)
{
    member members[MEMBERS_MAX];
    start(2, 4 * MIB);
    for (uint32_t size = 1; size <= MEMBERS_MAX; size++) {
        char name[32];
        snprintf(name, sizeof name, "reduce %u", size);
        members_start(members, size, size, name, play_reduce);
        members_end(members, size);
        for (uint32_t rank = 0; rank < size; rank++) {
            CU_ASSERT_EQUAL(members[rank].status, DMG_OK);
            CU_ASSERT_EQUAL(members[rank].wrong, 0);
        }
    }
    stop();
}

static void several_jobs_run_at_once(void)
{
    member first[3];
    member second[2];
    start(1, 4 * MIB);
    members_start(first, 3, 3, "one", play_reduce);
    members_start(second, 2, 2, "two", play_reduce);
    members_end(first, 3);
    members_end(second, 2);
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_EQUAL(first[rank].status, DMG_OK);
        CU_ASSERT_EQUAL(first[rank].wrong, 0);
        CU_ASSERT_EQUAL(second[rank % 2].status, DMG_OK);
        CU_ASSERT_EQUAL(second[rank % 2].wrong, 0);
    }
    stop();
}

/* Rank 0 leaves at once; what it allocated must still be there for the others. */
static void play_leave_one_by_one(member *self)
{
    char name[32];
    uint64_t value = 77 + self->rank;
    dmg_range_array array;
    self->status = join(self);
    if (self->status == DMG_OK) {
        self->status = dmg_range_array_allocate(self->channel, self->job.id, 1000, 8, &array);
    }
    if (self->status == DMG_OK) {
        dmg_completion completion = {0};
        dmg_range_array_post_write(self->channel, &array, 999, 1, &value, &completion);
        self->status = dmg_wait(self->channel, &completion);
    }
    if (self->status == DMG_OK) {
        snprintf(name, sizeof name, "array %u", self->rank);
        self->status = dmg_catalog_put(self->channel, self->job.id, name, &array, sizeof array);
    }
    if (self->status == DMG_OK) {
        self->status = dmg_job_barrier(self->channel, &self->job, NULL);
    }
    if (self->status == DMG_OK && self->rank + 1 == self->size) {
        dmg_sleep_ns(50000000);
        size_t bytes = sizeof array;
        self->status = dmg_catalog_get(self->channel, "array 0", &array, &bytes);
        if (self->status == DMG_OK) {
            dmg_completion completion = {0};
            dmg_range_array_post_read(self->channel, &array, 999, 1, &value, &completion);
            self->status = dmg_wait(self->channel, &completion);
            self->wrong += value != 77;
        }
    }
    if (self->status == DMG_OK) {
        self->status = dmg_job_leave(self->channel, &self->job);
    }
}

static void what_a_job_has_stays_until_the_last_member_leaves(void)
{
    member members[3];
    start(3, 4 * MIB);
    members_start(members, 3, 3, "leaving", play_leave_one_by_one);
    members_end(members, 3);
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_EQUAL(members[rank].status, DMG_OK);
        CU_ASSERT_EQUAL(members[rank].wrong, 0);
        char name[32];
        char value[8];
        size_t bytes = sizeof value;
        snprintf(name, sizeof name, "array %u", rank);
        CU_ASSERT_EQUAL(dmg_catalog_get(channel, name, value, &bytes), DMG_ERR_NOT_FOUND);
    }
    CU_ASSERT_TRUE(usage_becomes(0));
    stop();
}

static void play_wrong_epoch(member *self)
{
    self->status = join(self);
    if (self->status != DMG_OK) {
        return;
    }
    if (self->rank == 0) {
        dmg_job ahead = self->job;
        ahead.barriers = 1;
        self->wrong += dmg_job_barrier(self->channel, &ahead, NULL) != DMG_ERR_ARGUMENT;
        self->wrong += strstr(dmg_error_message(), "barrier 1") == NULL;
        self->wrong += ahead.barriers != 1;
        dmg_job stranger = self->job;
        stranger.rank = 1;
        self->wrong += dmg_job_barrier(self->channel, &stranger, NULL) != DMG_ERR_NOT_FOUND;
    }
    self->status = dmg_job_barrier(self->channel, &self->job, NULL);
    if (self->status == DMG_OK) {
        self->status = dmg_job_leave(self->channel, &self->job);
    }
}

static void a_wrong_epoch_is_refused_and_does_no_harm(void)
{
    member members[2];
    start(1, 4 * MIB);
    members_start(members, 2, 2, "epochs", play_wrong_epoch);
    members_end(members, 2);
    for (uint32_t rank = 0; rank < 2; rank++) {
        CU_ASSERT_EQUAL(members[rank].status, DMG_OK);
        CU_ASSERT_EQUAL(members[rank].wrong, 0);
    }
    stop();
}

static void play_join_wrongly(member *self)
{
    dmg_job job;
    self->status = join(self);
    if (self->status == DMG_OK && self->rank == 0) {
        self->wrong +=
            dmg_job_join(self->channel, &dmg_test_pass, self->job_name, 1, self->size, &job) != DMG_ERR_EXISTS;
        self->wrong +=
            dmg_job_join(self->channel, &dmg_test_pass, self->job_name, 0, self->size + 1, &job) != DMG_ERR_ARGUMENT;
        self->wrong += dmg_job_join(self->channel, &dmg_test_pass, self->job_name, self->size, self->size, &job) !=
                       DMG_ERR_ARGUMENT;
        self->wrong += dmg_job_join(self->channel, &dmg_test_pass, "", 0, 1, &job) != DMG_ERR_ARGUMENT;
        self->wrong += dmg_job_join(self->channel, &dmg_test_pass, "no\tcontrol", 0, 1, &job) != DMG_ERR_ARGUMENT;
        self->wrong += job.id != 0;
    }
    if (self->status == DMG_OK) {
        self->status = dmg_job_barrier(self->channel, &self->job, NULL);
    }
    if (self->status == DMG_OK) {
        self->status = dmg_job_leave(self->channel, &self->job);
    }
}

static void wrong_newcomers_are_refused_and_do_no_harm(void)
{
    member members[2];
    start(1, 4 * MIB);
    members_start(members, 2, 2, "newcomers", play_join_wrongly);
    members_end(members, 2);
    for (uint32_t rank = 0; rank < 2; rank++) {
        CU_ASSERT_EQUAL(members[rank].status, DMG_OK);
        CU_ASSERT_EQUAL(members[rank].wrong, 0);
    }
    stop();
}

static void play_abort(member *self)
{
    self->status = join(self);
    if (self->status != DMG_OK) {
        return;
    }
    if (self->rank == 1) {
        self->wrong += dmg_job_abort(self->channel, &self->job, DMG_ERR_LIMIT, "the cache of 3 bytes is too small",
                                     NULL) != DMG_OK;
    } else {
        self->status = dmg_job_barrier(self->channel, &self->job, NULL);
        snprintf(self->message, sizeof self->message, "%s", dmg_error_message());
    }
    dmg_status status = self->status;
    self->wrong += dmg_job_leave(self->channel, &self->job) != DMG_OK;
    self->status = status == DMG_OK ? DMG_OK : dmg_error(status, "%s", self->message);
}

static void the_sentence_of_an_abort_reaches_the_others(void)
{
    member members[3];
    start(1, 4 * MIB);
    members_start(members, 3, 3, "abort", play_abort);
    members_end(members, 3);
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_EQUAL(members[rank].wrong, 0);
        CU_ASSERT_EQUAL(members[rank].status, rank == 1 ? DMG_OK : DMG_ERR_LIMIT);
        CU_ASSERT_TRUE(rank == 1 || strstr(members[rank].message, "compute node 1: the cache of 3 bytes is too small"));
    }
    stop();
}

/* All give up, each for its own reason. */
static void play_aborts(member *self)
{
    self->status = join(self);
    if (self->status != DMG_OK) {
        return;
    }
    char reason[64];
    dmg_job_failure first = {0};
    snprintf(reason, sizeof reason, "the reason of rank %u", self->rank);
    dmg_status own = self->rank % 2 == 0 ? DMG_ERR_LIMIT : DMG_ERR_CORRUPT;
    self->status = dmg_job_abort(self->channel, &self->job, own, reason, &first);
    snprintf(self->message, sizeof self->message, "%u %u %.256s", first.rank, first.status, first.sentence);
    dmg_job job = self->job;
    self->wrong += dmg_job_leave(self->channel, &job) != DMG_OK;
}

static void of_several_reasons_all_hear_the_same(void)
{
    for (int round = 0; round < 10; round++) {
        member members[3];
        start(1, 4 * MIB);
        members_start(members, 3, 3, "aborts", play_aborts);
        members_end(members, 3);
        for (uint32_t rank = 0; rank < 3; rank++) {
            CU_ASSERT_EQUAL(members[rank].wrong, 0);
            CU_ASSERT_EQUAL(members[rank].status, DMG_OK);
            CU_ASSERT_STRING_EQUAL(members[rank].message, members[0].message);
        }
        CU_ASSERT_PTR_NOT_NULL(strstr(members[0].message, "the reason of rank "));
        stop();
    }
}

/* Rank 1 closes its client without leaving. */
static void play_forget_to_leave(member *self)
{
    self->status = join(self);
    if (self->status == DMG_OK) {
        self->status = allocate_everywhere(self->channel, self->job.id);
    }
    if (self->status == DMG_OK && self->rank == 0) {
        self->status = dmg_job_barrier(self->channel, &self->job, NULL);
    }
}

static void a_client_that_ends_without_leaving_fails_the_job(void)
{
    member members[2];
    start(2, 4 * MIB);
    members_start(members, 2, 2, "forgotten", play_forget_to_leave);
    members_end(members, 2);
    CU_ASSERT_EQUAL(members[0].status, DMG_ERR_PEER);
    CU_ASSERT_PTR_NOT_NULL(strstr(members[0].message, "compute node 1 ended without leaving"));
    CU_ASSERT_EQUAL(members[1].status, DMG_OK);
    CU_ASSERT_TRUE(usage_becomes(0));
    stop();
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(members_meet_and_reduce_exactly),
        DMG_TEST(several_jobs_run_at_once),
        DMG_TEST(what_a_job_has_stays_until_the_last_member_leaves),
        DMG_TEST(a_wrong_epoch_is_refused_and_does_no_harm),
        DMG_TEST(wrong_newcomers_are_refused_and_do_no_harm),
        DMG_TEST(the_sentence_of_an_abort_reaches_the_others),
        DMG_TEST(of_several_reasons_all_hear_the_same),
        DMG_TEST(a_client_that_ends_without_leaving_fails_the_job),
        {NULL, NULL},
    };
    return add_suites(tests) ? 1 : dmg_suites_run(argc, argv);
}
