/*
 * Jobs over every transport, with members in processes of their own that are killed.
 *
 * A member process is this program again, started with "member" as its first argument (a forked copy would share the
 * transport's threads and files with the test).
 */
#include "unit/core/pool/members.h"
#include "unit/support/deadline.h"

#include "core/base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

#define MEMBER_ARGUMENTS 16
#define ZOMBIE_BYTES     (3 * MIB)

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
    const char *arguments[MEMBER_ARGUMENTS] = {"unit-pool_deaths", "member", behaviour, transport, name,
                                               rank_text,          size_text};
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
        if (dmg_job_join(own, &dmg_test_pass, self->job_name, self->rank, self->size, &job) == DMG_ERR_EXISTS) {
            say_there();
        }
    }
    for (;;) {
        pause();
    }
    return NULL;
}

/* Lose all connections, and write to what it has mapped until its end; with a transport that maps nothing, only live.
 */
static void write_on(member *self)
{
    dmg_address address;
    if (dmg_pool_allocate(self->channel, 0, self->job.id, ZOMBIE_BYTES, &address) != DMG_OK) {
        _exit(6);
    }
    volatile char *bytes = dmg_client_pointer(self->client, address, ZOMBIE_BYTES);
    for (int descriptor = 3; descriptor < 256; descriptor++) {
        (void)shutdown(descriptor, SHUT_RDWR); /* says ENOTSOCK or EBADF of what is no socket */
    }
    say_there();
    for (uint64_t at = 0;; at = (at + 64) % ZOMBIE_BYTES) {
        if (bytes) {
            bytes[at] = (char)0xab;
        } else {
            pause();
        }
    }
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
        .peer_timeout_ns = dmg_test_deadline_ns(60),
        .token = {1, 2, 3},
    };
    member self = {
        .job_name = argv[4],
        .rank = (uint32_t)strtoul(argv[5], NULL, 10),
        .size = (uint32_t)strtoul(argv[6], NULL, 10),
    };
    /* Whatever happens to the test, this process ends. */
    alarm(dmg_test_deadline_s(240));
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
    if (strcmp(behaviour, "write on") == 0 && join(&self) == DMG_OK) {
        write_on(&self);
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
    CU_ASSERT_EQUAL(dmg_job_join(channel, &dmg_test_pass, "processes", 0, 4, &job), DMG_OK);
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
        CU_ASSERT_EQUAL(dmg_pool_allocate(channel, node, pool.job.id, 4096, &kept), DMG_OK);
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
    CU_ASSERT_EQUAL_FATAL(dmg_job_join(channel, &dmg_test_pass, "killed waiting", 0, 2, &job), DMG_OK);
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
    CU_ASSERT_EQUAL(dmg_job_join(channel, &dmg_test_pass, "killed joining", 3, 4, &job), DMG_ERR_PEER);
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
    CU_ASSERT_EQUAL(dmg_job_join(channel, &dmg_test_pass, "all killed", 0, 1, &job), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_leave(channel, &job), DMG_OK);
    stop();
}

/* Take all that a node has, in extents of this size; returns how many, at most `capacity`. The sentence of the end
 * stays. */
static uint32_t take_all(uint64_t bytes, dmg_address *extents, uint32_t capacity)
{
    uint32_t count = 0;
    while (count < capacity && dmg_pool_allocate(channel, 0, pool.job.id, bytes, &extents[count]) == DMG_OK) {
        count++;
    }
    return count;
}

static uint32_t count_not_zero(const dmg_address *extents, uint32_t count)
{
    static char bytes[MIB];
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL(dmg_read(channel, extents[i], bytes, sizeof bytes), DMG_OK);
        for (uint64_t at = 0; at < sizeof bytes; at++) {
            found += bytes[at] != 0;
        }
    }
    return found;
}

static bool quarantine_becomes(uint64_t bytes, dmg_pool_quarantined *waiting)
{
    for (dmg_test_wait wait = dmg_test_wait_for(10); dmg_test_goes_on(&wait);) {
        if (dmg_pool_quarantine(channel, 0, waiting) != DMG_OK) {
            return false;
        }
        if (waiting->bytes == bytes) {
            return true;
        }
    }
    return false;
}

static void what_a_lost_process_writes_to_is_given_to_nobody_before_its_end(void)
{
    enum { EXTENTS = 16 };
    dmg_address extents[EXTENTS];
    dmg_pool_quarantined waiting;
    char named[64];
    if (strncmp(transport, "cxl_shm", strlen("cxl_shm")) != 0) {
        return; /* UCX ends its process when its sockets are shut down */
    }
    start(1, 8 * MIB + 64 * 4096);
    process zombie = process_start("write on", "zombie", 0, 1);
    CU_ASSERT_TRUE(process_is_there(&zombie));
    CU_ASSERT_TRUE(quarantine_becomes(ZOMBIE_BYTES, &waiting));
    uint32_t count = take_all(MIB, extents, EXTENTS);
    CU_ASSERT_TRUE(count > 0);
    snprintf(named, sizeof named, "wait for the end of process %d,", zombie.pid);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), named));
    CU_ASSERT_EQUAL(waiting.clients, 1);
    CU_ASSERT_EQUAL(waiting.pids[0], (uint64_t)zombie.pid);
    CU_ASSERT_TRUE(usage_becomes(count * MIB + ZOMBIE_BYTES));
    CU_ASSERT_EQUAL(count_not_zero(extents, count), 0);
    CU_ASSERT_EQUAL(process_end(&zombie, SIGKILL), -SIGKILL);
    CU_ASSERT_TRUE(quarantine_becomes(0, &waiting));
    CU_ASSERT_EQUAL(waiting.clients, 0);
    CU_ASSERT_TRUE(usage_becomes(count * MIB));
    uint32_t more = take_all(MIB, extents + count, EXTENTS - count);
    CU_ASSERT_EQUAL(more, ZOMBIE_BYTES / MIB);
    count += more;
    CU_ASSERT_EQUAL(count_not_zero(extents, count), 0);
    stop();
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "member") == 0) {
        return process_member(argc, argv);
    }
    static const dmg_test tests[] = {
        DMG_TEST(processes_and_threads_meet_in_one_job),
        DMG_TEST(a_killed_member_ends_the_barriers_of_the_others),
        DMG_TEST(a_member_killed_at_a_barrier_ends_the_job),
        DMG_TEST(a_member_killed_while_joining_ends_the_joins_of_the_others),
        DMG_TEST(when_all_members_are_killed_nothing_is_left),
        DMG_TEST(what_a_lost_process_writes_to_is_given_to_nobody_before_its_end),
        {NULL, NULL},
    };
    return add_suites(tests) ? 1 : dmg_suites_run(argc, argv);
}
