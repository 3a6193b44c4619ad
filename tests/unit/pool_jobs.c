/*
 * Jobs over every transport: members in threads of this process, and in processes of their own that are killed.
 *
 * A member process is this program again, started with "member" as its first argument (a forked copy would share the
 * transport's threads and files with the test).
 */
#include "suite.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/pool/pool.h"
#include "pool_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KIB         UINT64_C(1024)
#define MIB         (1024 * KIB)
#define MEMBERS_MAX 8

static const char *transport;
static dmg_test_pool pool;
static dmg_channel *channel;

static void start(uint32_t node_count, uint64_t segment_bytes)
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

static void stop(void)
{
    dmg_channel_close(channel);
    channel = NULL;
    dmg_test_pool_stop(&pool);
}

/* True when so many bytes are allocated on each node; what follows from a death may take a moment. */
static bool usage_becomes(uint64_t wanted)
{
    for (uint16_t node = 0; node < pool.node_count; node++) {
        uint64_t allocated = UINT64_MAX;
        uint64_t peak;
        uint64_t total;
        for (int tries = 0; tries < 2000 && allocated != wanted; tries++) {
            if (dmg_pool_usage(channel, node, &allocated, &peak, &total) != DMG_OK) {
                return false;
            }
            if (allocated != wanted) {
                dmg_sleep_ns(5000000);
            }
        }
        if (allocated != wanted) {
            return false;
        }
    }
    return true;
}

/* ---- members in threads ---- */

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
    dmg_status status; /* what the play found in the end */
    char message[512];
    uint32_t wrong;
};

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

static void members_start(member *members, uint32_t count, uint32_t size, const char *name, void (*play)(member *self))
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

static void members_end(member *members, uint32_t count)
{
    for (uint32_t index = 0; index < count; index++) {
        pthread_join(members[index].thread, NULL);
    }
}

static dmg_status join(member *self)
{
    return dmg_job_join(self->channel, self->job_name, self->rank, self->size, &self->job);
}

/* Memory of the job on every node. */
static dmg_status allocate_everywhere(dmg_channel *on, uint64_t job)
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
        self->wrong += dmg_job_join(self->channel, self->job_name, 1, self->size, &job) != DMG_ERR_EXISTS;
        self->wrong += dmg_job_join(self->channel, self->job_name, 0, self->size + 1, &job) != DMG_ERR_ARGUMENT;
        self->wrong += dmg_job_join(self->channel, self->job_name, self->size, self->size, &job) != DMG_ERR_ARGUMENT;
        self->wrong += dmg_job_join(self->channel, "", 0, 1, &job) != DMG_ERR_ARGUMENT;
        self->wrong += dmg_job_join(self->channel, "no\tcontrol", 0, 1, &job) != DMG_ERR_ARGUMENT;
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
        self->wrong +=
            dmg_job_abort(self->channel, &self->job, DMG_ERR_LIMIT, "the cache of 3 bytes is too small") != DMG_OK;
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

/* ---- members in processes ---- */

#define MEMBER_ARGUMENTS 16

typedef struct process {
    pid_t pid;
    int from; /* the process writes a byte when it is where the test wants it */
} process;

/* "member" BEHAVIOUR TRANSPORT JOB RANK SIZE ADDRESS... */
static process process_start(const char *behaviour, const char *name, uint32_t rank, uint32_t size)
{
    char rank_text[16];
    char size_text[16];
    snprintf(rank_text, sizeof rank_text, "%u", rank);
    snprintf(size_text, sizeof size_text, "%u", size);
    const char *arguments[MEMBER_ARGUMENTS] = {"unit-pool_jobs", "member", behaviour, transport, name,
                                               rank_text,        size_text};
    for (uint32_t node = 0; node < pool.node_count; node++) {
        arguments[7 + node] = pool.addresses[node];
    }
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    /* Not fork: its handlers take all of jemalloc's locks at once, which is more than ThreadSanitizer can follow. */
    pid_t pid = 0;
    int error = posix_spawn(&pid, "/proc/self/exe", &actions, NULL, (char **)arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    CU_ASSERT_EQUAL_FATAL(error, 0);
    close(ends[1]);
    return (process){.pid = pid, .from = ends[0]};
}

/* Wait for its byte; false when it ended without one. */
static bool process_is_there(const process *started)
{
    char byte;
    ssize_t got;
    do {
        got = read(started->from, &byte, 1);
    } while (got < 0 && errno == EINTR);
    return got == 1;
}

/* Send a signal (0: none), and wait for its end. Returns the exit code, or minus the signal that ended it. */
static int process_end(process *started, int signal_number)
{
    int status = 0;
    if (signal_number != 0) {
        kill(started->pid, signal_number);
    }
    while (waitpid(started->pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(started->from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void say_there(void)
{
    while (write(STDOUT_FILENO, ".", 1) < 0 && errno == EINTR) {
    }
}

/* Join twice as the same rank. The one that is refused proves that node 0 has the other one. */
static void *join_same_rank(void *context)
{
    member *self = context;
    dmg_channel *own;
    dmg_job job;
    if (dmg_channel_open(self->client, &own) == DMG_OK) {
        if (dmg_job_join(own, self->job_name, self->rank, self->size, &job) == DMG_ERR_EXISTS) {
            say_there();
        }
    }
    for (;;) {
        pause();
    }
    return NULL;
}

static int process_member(int argc, char **argv)
{
    if (argc < 8) {
        return 2;
    }
    const char *behaviour = argv[2];
    dmg_client_options options = {
        .transport = argv[3],
        .addresses = (const char *const *)&argv[7],
        .address_count = (uint32_t)(argc - 7),
        .peer_timeout_ns = UINT64_C(60000000000),
        .token = {1, 2, 3},
    };
    member self = {
        .job_name = argv[4],
        .rank = (uint32_t)strtoul(argv[5], NULL, 10),
        .size = (uint32_t)strtoul(argv[6], NULL, 10),
    };
    /* Whatever happens to the test, this process ends. */
    alarm(240);
    if (dmg_client_open(&options, &self.client) != DMG_OK || dmg_channel_open(self.client, &self.channel) != DMG_OK) {
        fprintf(stderr, "member: %s\n", dmg_error_message());
        return 3;
    }
    if (strcmp(behaviour, "die joining") == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, join_same_rank, &self) != 0) {
            return 4;
        }
        join_same_rank(&self);
    }
    if (join(&self) != DMG_OK || allocate_everywhere(self.channel, self.job.id) != DMG_OK) {
        fprintf(stderr, "member: %s\n", dmg_error_message());
        return 5;
    }
    say_there();
    if (strcmp(behaviour, "die computing") == 0) {
        for (;;) {
            pause();
        }
    }
    if (strcmp(behaviour, "die waiting") == 0) {
        /* The test's member never comes to the second barrier. */
        (void)dmg_job_barrier(self.channel, &self.job, NULL);
        say_there();
        (void)dmg_job_barrier(self.channel, &self.job, NULL);
        return 6;
    }
    dmg_status status = dmg_job_barrier(self.channel, &self.job, NULL);
    if (status == DMG_OK) {
        status = dmg_job_leave(self.channel, &self.job);
    }
    dmg_channel_close(self.channel);
    dmg_client_close(self.client);
    return status == DMG_OK ? 0 : 7;
}

static void processes_and_threads_meet_in_one_job(void)
{
    start(2, 8 * MIB);
    process others[3];
    for (uint32_t rank = 1; rank < 4; rank++) {
        others[rank - 1] = process_start("meet", "processes", rank, 4);
    }
    dmg_job job;
    CU_ASSERT_EQUAL(dmg_job_join(channel, "processes", 0, 4, &job), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_barrier(channel, &job, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_leave(channel, &job), DMG_OK);
    for (uint32_t rank = 1; rank < 4; rank++) {
        CU_ASSERT_EQUAL(process_end(&others[rank - 1], 0), 0);
    }
    CU_ASSERT_TRUE(usage_becomes(0));
    stop();
}

/* Waits in barriers until one fails, then leaves. */
static void play_until_failure(member *self)
{
    self->status = join(self);
    if (self->status != DMG_OK) {
        return;
    }
    self->wrong += allocate_everywhere(self->channel, self->job.id) != DMG_OK;
    self->status = dmg_job_barrier(self->channel, &self->job, NULL);
    snprintf(self->message, sizeof self->message, "%s", dmg_error_message());
    dmg_status first = self->status;
    /* It stays failed. */
    self->wrong += dmg_job_barrier(self->channel, &self->job, NULL) != first;
    self->wrong += dmg_job_leave(self->channel, &self->job) != DMG_OK;
    self->status = dmg_error(first, "%s", self->message);
}

static void a_killed_member_ends_the_barriers_of_the_others(void)
{
    member members[2];
    start(2, 8 * MIB);
    dmg_address kept;
    for (uint16_t node = 0; node < 2; node++) {
        CU_ASSERT_EQUAL(dmg_pool_allocate(channel, node, 0, 4096, &kept), DMG_OK);
    }
    process victim = process_start("die computing", "killed", 2, 3);
    members_start(members, 2, 3, "killed", play_until_failure);
    CU_ASSERT_TRUE(process_is_there(&victim));
    CU_ASSERT_EQUAL(process_end(&victim, SIGKILL), -SIGKILL);
    members_end(members, 2);
    for (uint32_t rank = 0; rank < 2; rank++) {
        CU_ASSERT_EQUAL(members[rank].status, DMG_ERR_PEER);
        CU_ASSERT_PTR_NOT_NULL(strstr(members[rank].message, "compute node 2 died"));
        CU_ASSERT_EQUAL(members[rank].wrong, 0);
    }
    CU_ASSERT_TRUE(usage_becomes(4096));
    stop();
}

static void a_member_killed_at_a_barrier_ends_the_job(void)
{
    start(3, 8 * MIB);
    process victim = process_start("die waiting", "killed waiting", 1, 2);
    dmg_job job;
    CU_ASSERT_EQUAL_FATAL(dmg_job_join(channel, "killed waiting", 0, 2, &job), DMG_OK);
    CU_ASSERT_TRUE(process_is_there(&victim));
    CU_ASSERT_EQUAL(dmg_job_barrier(channel, &job, NULL), DMG_OK);
    CU_ASSERT_TRUE(process_is_there(&victim));
    CU_ASSERT_EQUAL(process_end(&victim, SIGKILL), -SIGKILL);
    /* It may be one that it had not come to, or had; it must not be passed by both, so wait until node 0 knows. */
    dmg_job before = job;
    dmg_status status = DMG_OK;
    for (int tries = 0; tries < 3 && status == DMG_OK; tries++) {
        status = dmg_job_barrier(channel, &job, NULL);
    }
    CU_ASSERT_EQUAL(status, DMG_ERR_PEER);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "compute node 1 died"));
    CU_ASSERT_TRUE(job.barriers <= before.barriers + 1);
    CU_ASSERT_EQUAL(dmg_job_leave(channel, &job), DMG_OK);
    CU_ASSERT_TRUE(usage_becomes(0));
    stop();
}

static void play_join_only(member *self)
{
    self->status = join(self);
}

static void a_member_killed_while_joining_ends_the_joins_of_the_others(void)
{
    member early[2];
    start(1, 4 * MIB);
    process victim = process_start("die joining", "killed joining", 2, 4);
    members_start(early, 2, 4, "killed joining", play_join_only);
    CU_ASSERT_TRUE(process_is_there(&victim));
    CU_ASSERT_EQUAL(process_end(&victim, SIGKILL), -SIGKILL);
    members_end(early, 2);
    for (uint32_t rank = 0; rank < 2; rank++) {
        CU_ASSERT_EQUAL(early[rank].status, DMG_ERR_PEER);
        CU_ASSERT_PTR_NOT_NULL(strstr(early[rank].message, "compute node 2 died"));
    }
    dmg_job job;
    CU_ASSERT_EQUAL(dmg_job_join(channel, "killed joining", 3, 4, &job), DMG_ERR_PEER);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "compute node 2 died"));
    stop();
}

static void when_all_members_are_killed_nothing_is_left(void)
{
    start(3, 8 * MIB);
    process victims[3];
    for (uint32_t rank = 0; rank < 3; rank++) {
        victims[rank] = process_start("die computing", "all killed", rank, 3);
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_TRUE(process_is_there(&victims[rank]));
    }
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_EQUAL(process_end(&victims[rank], SIGKILL), -SIGKILL);
    }
    CU_ASSERT_TRUE(usage_becomes(0));
    /* The name is free again. */
    dmg_job job;
    CU_ASSERT_EQUAL(dmg_job_join(channel, "all killed", 0, 1, &job), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_leave(channel, &job), DMG_OK);
    stop();
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

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "member") == 0) {
        return process_member(argc, argv);
    }
    static const dmg_test tests[] = {
        DMG_TEST(members_meet_and_reduce_exactly),
        DMG_TEST(several_jobs_run_at_once),
        DMG_TEST(what_a_job_has_stays_until_the_last_member_leaves),
        DMG_TEST(a_wrong_epoch_is_refused_and_does_no_harm),
        DMG_TEST(wrong_newcomers_are_refused_and_do_no_harm),
        DMG_TEST(the_sentence_of_an_abort_reaches_the_others),
        DMG_TEST(a_client_that_ends_without_leaving_fails_the_job),
        DMG_TEST(processes_and_threads_meet_in_one_job),
        DMG_TEST(a_killed_member_ends_the_barriers_of_the_others),
        DMG_TEST(a_member_killed_at_a_barrier_ends_the_job),
        DMG_TEST(a_member_killed_while_joining_ends_the_joins_of_the_others),
        DMG_TEST(when_all_members_are_killed_nothing_is_left),
        {NULL, NULL},
    };
    if (dmg_suite_add("cxl_shm", set_up_cxl_shm, NULL, tests) || dmg_suite_add("ucx", set_up_ucx, NULL, tests) ||
        dmg_suite_add("ucx_message", set_up_ucx_message, NULL, tests)) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
