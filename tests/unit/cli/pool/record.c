/* A pool's record in memory: what is put down is read again, and what is cut short, or of another process, is not
 * believed. */
#include "cli/pool/record.h"

#include "unit/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static dmg_pool_file example(void)
{
    dmg_pool_file pool = {.name = "p",
                          .transport = "cxl_shm",
                          .created_s = 1700000000,
                          .peer_timeout_ns = 5000000000,
                          .token = {7, 8},
                          .node_count = DMG_MEMORY_NODES_MAX};
    for (uint32_t node = 0; node < DMG_MEMORY_NODES_MAX; node++) {
        pool.nodes[node].process = (dmg_process){.pid = 1000 + (int)node, .start_time = 77};
        pool.nodes[node].segment_bytes = UINT64_C(1) << 30;
        snprintf(pool.nodes[node].address, sizeof pool.nodes[node].address, "cxl_shm:@dmgraph-%u", node);
    }
    return pool;
}

static int written(const dmg_pool_file *pool)
{
    int record = -1;
    CU_ASSERT_EQUAL_FATAL(dmg_pool_record_create(pool->name, &record), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_pool_record_write(record, pool), DMG_OK);
    return record;
}

static void what_is_written_is_read_with_the_folder(void)
{
    static dmg_pool_record read;
    dmg_pool_file pool = example();
    CU_ASSERT_EQUAL(setenv("XDG_RUNTIME_DIR", "/nowhere/here", 1), 0);
    int record = written(&pool);
    CU_ASSERT_EQUAL_FATAL(dmg_pool_record_read(record, &read), DMG_OK);
    CU_ASSERT_STRING_EQUAL(read.folder, "/nowhere/here/dmgraph");
    CU_ASSERT_STRING_EQUAL(read.pool.name, "p");
    CU_ASSERT_EQUAL(memcmp(read.pool.token, pool.token, sizeof pool.token), 0);
    CU_ASSERT_EQUAL(read.pool.node_count, DMG_MEMORY_NODES_MAX);
    CU_ASSERT_EQUAL(read.pool.nodes[DMG_MEMORY_NODES_MAX - 1].process.pid, 1000 + DMG_MEMORY_NODES_MAX - 1);
    close(record);
}

static void a_record_that_is_cut_short_anywhere_is_refused(void)
{
    static dmg_pool_record read;
    dmg_pool_file pool = example();
    pool.node_count = 1;
    int record = written(&pool);
    off_t whole = lseek(record, 0, SEEK_END);
    CU_ASSERT_FATAL(whole > 0);
    for (off_t bytes = whole - 1; bytes >= 0; bytes--) {
        CU_ASSERT_EQUAL_FATAL(ftruncate(record, bytes), 0);
        CU_ASSERT_NOT_EQUAL_FATAL(dmg_pool_record_read(record, &read), DMG_OK);
    }
    /* Nor one that is longer than any. */
    CU_ASSERT_EQUAL(ftruncate(record, 1 << 20), 0);
    CU_ASSERT_NOT_EQUAL(dmg_pool_record_read(record, &read), DMG_OK);
    close(record);
}

static void an_end_is_that_of_one_process(void)
{
    dmg_pool_file pool = example();
    int record = written(&pool);
    dmg_pool_end end = {.process = pool.nodes[3].process, .at_s = 12};
    dmg_pool_end read;
    CU_ASSERT_FALSE(dmg_pool_end_read(record, &end.process, &read));
    snprintf(end.why, sizeof end.why, "failed: a \"name\"\nwith \xff in it");
    dmg_pool_end_append(record, &end);
    CU_ASSERT_TRUE_FATAL(dmg_pool_end_read(record, &end.process, &read));
    CU_ASSERT_EQUAL(read.at_s, 12);
    CU_ASSERT_STRING_EQUAL(read.why, "failed: a \"name\"\nwith ? in it");
    /* One that has got the id of another later. */
    dmg_process other = {.pid = end.process.pid, .start_time = end.process.start_time + 1};
    CU_ASSERT_FALSE(dmg_pool_end_read(record, &other, &read));
    CU_ASSERT_FALSE(dmg_pool_end_read(record, &pool.nodes[4].process, &read));
    /* What is no line, and half a line, says nothing; the last word counts. */
    static const char noise[] = "{\"pid\":1003}\n[]\nnoise\n";
    CU_ASSERT_EQUAL(write(record, noise, sizeof noise - 1), (ssize_t)sizeof noise - 1);
    snprintf(end.why, sizeof end.why, "killed by SIGKILL");
    dmg_pool_end_append(record, &end);
    CU_ASSERT_EQUAL(write(record, "{\"pid\":1003,", 12), 12);
    CU_ASSERT_TRUE_FATAL(dmg_pool_end_read(record, &end.process, &read));
    CU_ASSERT_STRING_EQUAL(read.why, "killed by SIGKILL");
    close(record);
}

static void a_process_awaits_its_parent_between_its_end_and_the_note_of_it(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        pause();
        _exit(0);
    }
    dmg_process child;
    CU_ASSERT_EQUAL_FATAL(dmg_process_identify(pid, &child), DMG_OK);
    CU_ASSERT_FALSE(dmg_process_awaits_parent(&child));
    kill(pid, SIGKILL);
    siginfo_t info;
    CU_ASSERT_EQUAL(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    CU_ASSERT_TRUE(dmg_process_awaits_parent(&child));
    dmg_process other = {.pid = child.pid, .start_time = child.start_time + 1};
    CU_ASSERT_FALSE(dmg_process_awaits_parent(&other));
    CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
    CU_ASSERT_FALSE(dmg_process_awaits_parent(&child));
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(what_is_written_is_read_with_the_folder),
        DMG_TEST(a_record_that_is_cut_short_anywhere_is_refused),
        DMG_TEST(an_end_is_that_of_one_process),
        DMG_TEST(a_process_awaits_its_parent_between_its_end_and_the_note_of_it),
        {NULL, NULL},
    };
    return dmg_suite_add("record", NULL, NULL, tests) ? 1 : dmg_suites_run(argc, argv);
}
