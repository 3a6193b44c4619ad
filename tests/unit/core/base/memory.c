/* Room in memory, taking pages, folders to make files in. */
#include "unit/support/suite.h"

#include "core/base/descriptors.h"
#include "core/base/folder.h"
#include "core/base/memory_room.h"
#include "core/base/populate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

/* ---- a machine made of files ---- */

static char root[64];

static int make_root(void)
{
    snprintf(root, sizeof root, "/tmp/dmgraph-test-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", root);
    return system(command) == 0 ? 0 : -1;
}

/* Write a file below the root, with its folders. */
static void put(const char *path, const char *text)
{
    char full[PATH_MAX];
    snprintf(full, sizeof full, "%s/%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        CU_ASSERT_TRUE(mkdir(full, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
}

static void room_of_a_machine_is_available_memory_and_free_swap_space(void)
{
    dmg_memory_room room;
    dmg_memory_room_read(root, &room);
    CU_ASSERT_EQUAL(room.available_bytes, UINT64_MAX);
    CU_ASSERT_EQUAL(room.total_bytes, UINT64_MAX);
    put("proc/meminfo",
        "MemTotal: 9000 kB\nMemFree: 1 kB\nMemAvailable:    5000 kB\nSwapTotal: 400 kB\nSwapFree: 300 kB\n");
    dmg_memory_room_read(root, &room);
    CU_ASSERT_EQUAL(room.available_bytes, 5300 * 1024);
    CU_ASSERT_STRING_EQUAL(room.limiter, "this machine");
    CU_ASSERT_EQUAL(room.total_bytes, 9400 * 1024);
    CU_ASSERT_STRING_EQUAL(room.total_limiter, "this machine");
}

static void tightest_control_group_around_a_process_limits_its_room(void)
{
    dmg_memory_room room;
    put("proc/meminfo", "MemAvailable: 1000000 kB\n");
    put("proc/self/cgroup", "0::/jobs/seven\n");
    put("sys/fs/cgroup/jobs/memory.max", "1000\n");
    put("sys/fs/cgroup/jobs/memory.current", "900\n");
    put("sys/fs/cgroup/jobs/memory.stat", "anon 500\ninactive_file 100\nactive_file 50\nslab_reclaimable 7\n");
    put("sys/fs/cgroup/jobs/seven/memory.max", "max\n");
    put("sys/fs/cgroup/jobs/seven/memory.current", "900\n");
    dmg_memory_room_read(root, &room);
    CU_ASSERT_EQUAL(room.available_bytes, 1000 - (900 - 157));
    CU_ASSERT_STRING_EQUAL(room.limiter, "the control group /jobs");
    put("sys/fs/cgroup/jobs/seven/memory.max", "910\n");
    dmg_memory_room_read(root, &room);
    CU_ASSERT_EQUAL(room.available_bytes, 10);
    CU_ASSERT_EQUAL(room.total_bytes, 910);
    CU_ASSERT_STRING_EQUAL(room.total_limiter, "the control group /jobs/seven");
    CU_ASSERT_STRING_EQUAL(room.limiter, "the control group /jobs/seven");
    put("sys/fs/cgroup/jobs/seven/memory.current", "2000\n");
    dmg_memory_room_read(root, &room);
    CU_ASSERT_EQUAL(room.available_bytes, 0);
}

static void control_groups_of_version_1_limit_it_too(void)
{
    dmg_memory_room room;
    put("proc/meminfo", "MemAvailable: 1000000 kB\n");
    put("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:pids,memory:/jobs/not-shown-here\n1:memory2:/wrong\n");
    put("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "5000\n");
    put("sys/fs/cgroup/memory/jobs/memory.usage_in_bytes", "4000\n");
    put("sys/fs/cgroup/memory/jobs/memory.stat", "total_inactive_file 1000\ntotal_active_file 500\ninactive_file 9\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "4000\n");
    dmg_memory_room_read(root, &room);
    CU_ASSERT_EQUAL(room.available_bytes, 2500);
    CU_ASSERT_STRING_EQUAL(room.limiter, "the control group /jobs");
}

static void kills_for_memory_are_counted_of_the_machine_and_the_group(void)
{
    dmg_memory_kills kills;
    put("proc/vmstat", "oom_kill_other 9\noom_kill 7\n");
    put("proc/self/cgroup", "0::/jobs/kills\n");
    put("sys/fs/cgroup/jobs/kills/memory.events", "low 1\noom 5\noom_kill 3\noom_group_kill 4\n");
    dmg_memory_kills_read(root, &kills);
    CU_ASSERT_EQUAL(kills.machine, 7);
    CU_ASSERT_EQUAL(kills.group, 3);
    put("proc/self/cgroup", "4:memory:/jobs/kills\n");
    put("sys/fs/cgroup/memory/jobs/kills/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    dmg_memory_kills_read(root, &kills);
    CU_ASSERT_EQUAL(kills.group, 2);
}

static void room_of_a_numa_node_is_what_is_free_or_holds_files(void)
{
    dmg_memory_room room;
    put("sys/devices/system/node/node3/meminfo",
        "Node 3 MemTotal: 900 kB\nNode 3 MemFree: 100 kB\nNode 3 Active(file): 20 kB\nNode 3 Inactive(file): 3 kB\n");
    dmg_memory_room_read_node(root, 3, &room);
    CU_ASSERT_EQUAL(room.available_bytes, 123 * 1024);
    CU_ASSERT_EQUAL(room.total_bytes, 900 * 1024);
    CU_ASSERT_STRING_EQUAL(room.total_limiter, "NUMA node 3");
    dmg_memory_room_read_node(root, 4, &room);
    CU_ASSERT_EQUAL(room.available_bytes, UINT64_MAX);
}

/* ---- this process ---- */

static void address_space_that_is_left_falls_with_what_is_mapped(void)
{
    uint64_t limit;
    CU_ASSERT_EQUAL(dmg_address_space_left(&limit), UINT64_MAX);
    pid_t child = fork();
    CU_ASSERT_TRUE_FATAL(child >= 0);
    if (child == 0) {
        const uint64_t wanted = UINT64_C(1) << 40; /* sanitizers map much */
        struct rlimit most = {wanted << 10, wanted << 10};
        uint64_t before, after, is_wrong = setrlimit(RLIMIT_AS, &most) != 0;
        before = dmg_address_space_left(&limit);
        is_wrong |= limit != wanted << 10 || before >= limit || before == 0;
        is_wrong |= mmap(NULL, 64 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
        after = dmg_address_space_left(&limit);
        is_wrong |= before - after < 64 * MIB || before - after > 96 * MIB;
        _exit(is_wrong ? 1 : 0);
    }
    int status = -1;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
}

static void all_pages_are_there_once_populated_and_keep_their_contents(void)
{
    const uint64_t bytes = 160 * MIB + 4096; /* more than one thread, and an odd end */
    const uint64_t pages = bytes / (uint64_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned char *is_there = malloc(pages);
    CU_ASSERT_TRUE_FATAL(memory != MAP_FAILED && is_there);
    memory[0] = memory[bytes - 1] = 7;
    _Atomic uint64_t populated = 0;
    CU_ASSERT_EQUAL(dmg_populate(memory, bytes, false, &populated), DMG_OK);
    CU_ASSERT_EQUAL(populated, bytes);
    CU_ASSERT_EQUAL_FATAL(mincore(memory, bytes, is_there), 0);
    uint64_t missing = 0;
    for (uint64_t page = 0; page < pages; page++) {
        missing += !(is_there[page] & 1);
    }
    CU_ASSERT_EQUAL(missing, 0);
    CU_ASSERT_EQUAL(memory[0] + memory[bytes - 1], 14);
    CU_ASSERT_EQUAL(dmg_populate(memory, bytes, true, NULL), DMG_OK);
    CU_ASSERT_EQUAL(memory[0] + memory[bytes - 1], 0);
    free(is_there);
    munmap(memory, bytes);
}

/* A touch would end the process: the pages lie behind the end of the file. */
static void pages_that_cannot_be_there_are_an_error_and_no_signal(void)
{
    int file = memfd_create("dmgraph-test", MFD_CLOEXEC);
    CU_ASSERT_EQUAL_FATAL(ftruncate(file, 4096), 0);
    void *memory = mmap(NULL, 4 * MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CU_ASSERT_TRUE_FATAL(memory != MAP_FAILED);
    CU_ASSERT_EQUAL(dmg_populate(memory, 4 * MIB, false, NULL), DMG_ERR_MEMORY);
    munmap(memory, 4 * MIB);
    close(file);
}

static void files_are_made_anywhere_but_among_devices(void)
{
    int folder;
    const char *name;
    char path[128];
    snprintf(path, sizeof path, "%s/file", root);
    const char *const good[] = {path, "/dev/shm/dmgraph-test", "relative", "/top"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        CU_ASSERT_EQUAL_FATAL(dmg_folder_to_make_in(good[i], &folder, &name), DMG_OK);
        CU_ASSERT_EQUAL(fcntl(folder, F_GETFL) & O_PATH, O_PATH);
        CU_ASSERT_PTR_NULL(strchr(name, '/'));
        CU_ASSERT_PTR_EQUAL(name, good[i] + strlen(good[i]) - strlen(name));
        close(folder);
    }
    const char *const bad[] = {"/dev/dax7.7", "/dev/shm/../dax7.7", "//dev//dax7.7", "/proc/self/root/dev/dax7.7"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_EQUAL(dmg_folder_to_make_in(bad[i], &folder, &name), DMG_ERR_NOT_FOUND);
        CU_ASSERT_EQUAL(folder, -1);
        CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), bad[i]));
    }
    CU_ASSERT_EQUAL(dmg_folder_to_make_in("/nonexistent/file", &folder, &name), DMG_ERR_IO);
}

static void descriptors_that_are_left_fall_with_what_is_open(void)
{
    pid_t child = fork();
    CU_ASSERT_TRUE_FATAL(child >= 0);
    if (child == 0) {
        const struct rlimit small = {32, 32};
        for (int descriptor = 3; descriptor < 1024; descriptor++) {
            close(descriptor); /* one with a number above the limit would count, and take no place below it */
        }
        bool is_wrong = setrlimit(RLIMIT_NOFILE, &small) != 0 || dmg_descriptors_limit() != 32;
        uint64_t left = dmg_descriptors_left();
        is_wrong |= left != 32 - 3;
        while (left > 0 && !is_wrong) {
            is_wrong = open("/dev/null", O_RDONLY) < 0 || dmg_descriptors_left() != --left;
        }
        is_wrong |= open("/dev/null", O_RDONLY) >= 0;
        _exit(is_wrong ? 1 : 0);
    }
    int status = -1;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
}

static const dmg_test tests[] = {
    DMG_TEST(room_of_a_machine_is_available_memory_and_free_swap_space),
    DMG_TEST(tightest_control_group_around_a_process_limits_its_room),
    DMG_TEST(control_groups_of_version_1_limit_it_too),
    DMG_TEST(kills_for_memory_are_counted_of_the_machine_and_the_group),
    DMG_TEST(room_of_a_numa_node_is_what_is_free_or_holds_files),
    DMG_TEST(address_space_that_is_left_falls_with_what_is_mapped),
    DMG_TEST(descriptors_that_are_left_fall_with_what_is_open),
    DMG_TEST(all_pages_are_there_once_populated_and_keep_their_contents),
    DMG_TEST(pages_that_cannot_be_there_are_an_error_and_no_signal),
    DMG_TEST(files_are_made_anywhere_but_among_devices),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return dmg_suite_add("memory", make_root, remove_root, tests) != 0 || dmg_suites_run(argc, argv) != 0;
}
