/* The files about long-lived pools: nothing is believed that somebody else could have written, and no stranger's
 * process is taken for a node. */
#include "cli/pool/file.h"

#include "core/base/clock.h"
#include "unit/support/suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char runtime[] = "/tmp/dmgraph-unit-XXXXXX";
static int folder = -1;

static int set_up(void)
{
    if (!mkdtemp(runtime) || setenv("XDG_RUNTIME_DIR", runtime, 1) != 0) {
        return 1;
    }
    return dmg_pool_folder_open(true, &folder) == DMG_OK ? 0 : 1;
}

static int tear_down(void)
{
    char path[128];
    close(folder);
    snprintf(path, sizeof path, "%s/dmgraph", runtime);
    return rmdir(path) == 0 && rmdir(runtime) == 0 ? 0 : 1;
}

static dmg_pool_file example(void)
{
    dmg_pool_file pool = {.name = "p",
                          .transport = "ucx:messages=tcp",
                          .created_s = 1700000000,
                          .peer_timeout_ns = 5000000000,
                          .token = {1, 2, 0xff},
                          .node_count = 2};
    for (uint32_t node = 0; node < 2; node++) {
        pool.nodes[node].process = (dmg_process){.pid = 1000 + (int)node, .start_time = 77};
        pool.nodes[node].segment_bytes = UINT64_C(1) << 30;
        snprintf(pool.nodes[node].address, sizeof pool.nodes[node].address, "ucx:127.0.0.1:%u", 4000 + node);
    }
    return pool;
}

static void put(const char *name, const char *text, size_t bytes, mode_t mode)
{
    int file = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
    CU_ASSERT_FATAL(file >= 0);
    CU_ASSERT_EQUAL(write(file, text, bytes), (ssize_t)bytes);
    CU_ASSERT_EQUAL(fchmod(file, mode), 0);
    close(file);
}

static void take_away(const char *name)
{
    CU_ASSERT_EQUAL(unlinkat(folder, name, 0), 0);
}

static void what_was_written_is_read(void)
{
    dmg_pool_file written = example();
    dmg_pool_file read;
    CU_ASSERT_EQUAL(dmg_pool_file_write(folder, &written), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_file_read(folder, "p", &read), DMG_OK);
    CU_ASSERT_EQUAL(memcmp(&written, &read, sizeof read), 0);
    CU_ASSERT_EQUAL(dmg_pool_file_find("p", &read), DMG_OK);
    struct stat facts;
    CU_ASSERT_EQUAL(fstatat(folder, "p.pool", &facts, 0), 0);
    CU_ASSERT_EQUAL(facts.st_mode & 0777, 0600);
    CU_ASSERT_EQUAL(dmg_pool_file_write(folder, &written), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(dmg_pool_file_remove(folder, "p"), DMG_OK);
    CU_ASSERT_EQUAL(dmg_pool_file_read(folder, "p", &read), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_pool_file_find("q", &read), DMG_ERR_NOT_FOUND);
}

static void only_simple_names_are_taken(void)
{
    static const char *const bad[] = {"",    ".",   "..",  ".p",       "../p",
                                      "a/b", "a b", "a\n", "\xc3\xa4", "123456789012345678901234567890123"};
    dmg_pool_file pool;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_EQUAL(dmg_pool_file_read(folder, bad[i], &pool), DMG_ERR_ARGUMENT);
    }
    CU_ASSERT_EQUAL(dmg_pool_name_check("Pool-1_a.b"), DMG_OK);
}

static void files_of_others_are_not_believed(void)
{
    dmg_pool_file pool = example();
    json_t *object = dmg_pool_file_json(&pool);
    char *text = json_dumps(object, 0);
    json_decref(object);
    static const mode_t modes[] = {0640, 0604, 0620, 0602, 0666};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        put("p.pool", text, strlen(text), modes[i]);
        CU_ASSERT_EQUAL(dmg_pool_file_read(folder, "p", &pool), DMG_ERR_ARGUMENT);
        take_away("p.pool");
    }
    put("other", text, strlen(text), 0600);
    CU_ASSERT_EQUAL(symlinkat("other", folder, "p.pool"), 0);
    CU_ASSERT_EQUAL(dmg_pool_file_read(folder, "p", &pool), DMG_ERR_IO);
    take_away("p.pool");
    CU_ASSERT_EQUAL(mkfifoat(folder, "p.pool", 0600), 0);
    CU_ASSERT_EQUAL(dmg_pool_file_read(folder, "p", &pool), DMG_ERR_ARGUMENT);
    take_away("p.pool");
    if (geteuid() == 0) {
        put("p.pool", text, strlen(text), 0600);
        CU_ASSERT_EQUAL(fchownat(folder, "p.pool", 12345, 12345, 0), 0);
        CU_ASSERT_EQUAL(dmg_pool_file_read(folder, "p", &pool), DMG_ERR_ARGUMENT);
        CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "12345"));
        take_away("p.pool");
    }
    /* Another pool's file under this name. */
    put("q.pool", text, strlen(text), 0600);
    CU_ASSERT_EQUAL(dmg_pool_file_read(folder, "q", &pool), DMG_ERR_CORRUPT);
    take_away("q.pool");
    take_away("other");
    free(text);
}

static void a_folder_of_others_is_not_used(void)
{
    int again = -1;
    CU_ASSERT_EQUAL(fchmod(folder, 0770), 0);
    CU_ASSERT_EQUAL(dmg_pool_folder_open(true, &again), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(fchmod(folder, 0705), 0);
    CU_ASSERT_EQUAL(dmg_pool_folder_open(true, &again), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(again, -1);
    CU_ASSERT_EQUAL(fchmod(folder, 0700), 0);
    if (geteuid() == 0) {
        CU_ASSERT_EQUAL(fchown(folder, 12345, 12345), 0);
        CU_ASSERT_EQUAL(dmg_pool_folder_open(true, &again), DMG_ERR_ARGUMENT);
        CU_ASSERT_EQUAL(fchown(folder, 0, 0), 0);
    }
    CU_ASSERT_EQUAL_FATAL(dmg_pool_folder_open(true, &again), DMG_OK);
    close(again);
}

/** Put one value into an example, at `key` or, when `of_node`, in its second node; NULL removes it. */
static dmg_status read_with(bool of_node, const char *key, json_t *value)
{
    dmg_pool_file pool = example();
    json_t *object = dmg_pool_file_json(&pool);
    json_t *place = of_node ? json_array_get(json_object_get(object, "nodes"), 1) : object;
    if (value) {
        json_object_set_new(place, key, value);
    } else {
        json_object_del(place, key);
    }
    dmg_status status = dmg_pool_file_from_json(object, &pool);
    json_decref(object);
    return status;
}

static void hostile_contents_are_refused(void)
{
    static const char *const keys[] = {"dmgraph_pool",    "name",  "transport", "created",
                                       "peer_timeout_ns", "token", "nodes"};
    static const char *const node_keys[] = {"pid", "start_time", "segment_bytes", "address"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        CU_ASSERT_EQUAL(read_with(false, keys[i], NULL), DMG_ERR_CORRUPT);
        CU_ASSERT_EQUAL(read_with(false, keys[i], json_null()), DMG_ERR_CORRUPT);
        CU_ASSERT_EQUAL(read_with(false, keys[i], json_integer(-1)), DMG_ERR_CORRUPT);
        CU_ASSERT_EQUAL(read_with(false, keys[i], json_string("")), DMG_ERR_CORRUPT);
        CU_ASSERT_EQUAL(read_with(false, keys[i], json_array()), DMG_ERR_CORRUPT);
    }
    for (size_t i = 0; i < sizeof node_keys / sizeof node_keys[0]; i++) {
        CU_ASSERT_EQUAL(read_with(true, node_keys[i], NULL), DMG_ERR_CORRUPT);
        CU_ASSERT_EQUAL(read_with(true, node_keys[i], json_real(1.5)), DMG_ERR_CORRUPT);
        CU_ASSERT_EQUAL(read_with(true, node_keys[i], json_integer(0)), DMG_ERR_CORRUPT);
        CU_ASSERT_EQUAL(read_with(true, node_keys[i], json_integer(-1)), DMG_ERR_CORRUPT);
    }
    /* These would be a signal to everybody, to init, and to whoever has the low bits. */
    CU_ASSERT_EQUAL(read_with(true, "pid", json_integer(1)), DMG_ERR_CORRUPT);
    CU_ASSERT_EQUAL(read_with(true, "pid", json_integer(INT64_C(0x100000000) + getpid())), DMG_ERR_CORRUPT);
    char longer[DMG_POOL_FILE_BYTES_MAX / 2];
    memset(longer, 'a', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    CU_ASSERT_EQUAL(read_with(true, "address", json_string(longer)), DMG_ERR_CORRUPT);
    CU_ASSERT_EQUAL(read_with(false, "transport", json_string(longer)), DMG_ERR_CORRUPT);
    CU_ASSERT_EQUAL(read_with(false, "name", json_string("../p")), DMG_ERR_CORRUPT);
    CU_ASSERT_EQUAL(read_with(false, "token", json_string("0123456789abcdef0123456789abcdeX")), DMG_ERR_CORRUPT);
    CU_ASSERT_EQUAL(read_with(false, "more", json_true()), DMG_ERR_CORRUPT);
    CU_ASSERT_EQUAL(read_with(false, "dmgraph_pool", json_integer(2)), DMG_ERR_CORRUPT);
    json_t *nodes = json_array();
    for (int i = 0; i <= DMG_MEMORY_NODES_MAX; i++) {
        json_array_append_new(
            nodes, json_pack("{s:i, s:i, s:i, s:s}", "pid", 1000, "start_time", 1, "segment_bytes", 1, "address", "a"));
    }
    CU_ASSERT_EQUAL(read_with(false, "nodes", nodes), DMG_ERR_CORRUPT);
}

static void texts_that_are_no_description_are_refused(void)
{
    static const char *const texts[] = {"",        "{", "[]", "{}", "nonsense", "{\"name\": \"p\", \"name\": \"q\"}",
                                        "\xff\xfe"};
    dmg_pool_file pool;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        put("p.pool", texts[i], strlen(texts[i]), 0600);
        CU_ASSERT_EQUAL(dmg_pool_file_read(folder, "p", &pool), DMG_ERR_CORRUPT);
        CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "p.pool"));
        take_away("p.pool");
    }
    char *large = calloc(1, DMG_POOL_FILE_BYTES_MAX + 1);
    CU_ASSERT_PTR_NOT_NULL_FATAL(large);
    memset(large, ' ', DMG_POOL_FILE_BYTES_MAX + 1);
    put("p.pool", large, DMG_POOL_FILE_BYTES_MAX + 1, 0600);
    CU_ASSERT_EQUAL(dmg_pool_file_read(folder, "p", &pool), DMG_ERR_CORRUPT);
    take_away("p.pool");
    free(large);
}

/* ---- processes ---- */

static void start_times_are_found_behind_any_name(void)
{
    uint64_t start_time = 0;
#define FIELDS "1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 4711 2 3\n"
    CU_ASSERT_TRUE(dmg_process_parse_stat("12 (dmgraph) S " FIELDS, &start_time));
    CU_ASSERT_EQUAL(start_time, 4711);
    start_time = 0;
    CU_ASSERT_TRUE(dmg_process_parse_stat("12 (a) S 9 ) R) S " FIELDS, &start_time));
    CU_ASSERT_EQUAL(start_time, 4711);
    CU_ASSERT_FALSE(dmg_process_parse_stat("12 (dmgraph) Z " FIELDS, &start_time));
    CU_ASSERT_FALSE(dmg_process_parse_stat("12 (dmgraph) X " FIELDS, &start_time));
    static const char *const bad[] = {"",
                                      "12",
                                      "12 (",
                                      "12 ()",
                                      "12 (a) ",
                                      "12 (a) S",
                                      "12 (a) S 1 2 3",
                                      "12 (a) S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 x 2",
                                      "12 (a) S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 -5 2",
                                      "12 (a) S 1 1 1 0 -1 4194304 1 0 0 0 1 1 0 0 20 0 1 0 4711"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CU_ASSERT_FALSE(dmg_process_parse_stat(bad[i], &start_time));
    }
}

static pid_t start_sleeper(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            pause();
        }
    }
    return pid;
}

static void a_process_that_has_got_the_id_of_another_is_not_touched(void)
{
    pid_t pid = start_sleeper();
    CU_ASSERT_FATAL(pid > 0);
    dmg_process process;
    CU_ASSERT_EQUAL(dmg_process_identify(pid, &process), DMG_OK);
    CU_ASSERT_TRUE(dmg_process_is_alive(&process));
    dmg_process earlier = {.pid = process.pid, .start_time = process.start_time - 1};
    CU_ASSERT_FALSE(dmg_process_is_alive(&earlier));
    CU_ASSERT_EQUAL(dmg_process_open(&earlier), -1);
    int descriptor = dmg_process_open(&process);
    CU_ASSERT_FATAL(descriptor >= 0);
    CU_ASSERT_FALSE(dmg_process_wait(descriptor, dmg_now_ns()));
    CU_ASSERT_TRUE(dmg_process_signal(descriptor, SIGKILL));
    CU_ASSERT_TRUE(dmg_process_wait(descriptor, dmg_now_ns() + UINT64_C(60000000000)));
    CU_ASSERT_FALSE(dmg_process_is_alive(&process)); /* a zombie */
    CU_ASSERT_EQUAL(dmg_process_open(&process), -1);
    waitpid(pid, NULL, 0);
    CU_ASSERT_FALSE(dmg_process_signal(descriptor, SIGKILL));
    CU_ASSERT_EQUAL(dmg_process_identify(pid, &process), DMG_ERR_NOT_FOUND);
    close(descriptor);
}

static void living_nodes_are_counted(void)
{
    dmg_pool_file pool = example();
    CU_ASSERT_EQUAL(dmg_process_identify(getpid(), &pool.nodes[1].process), DMG_OK);
    pool.nodes[0].process = (dmg_process){.pid = getpid(), .start_time = 1};
    CU_ASSERT_EQUAL(dmg_pool_alive_count(&pool), 1);
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(what_was_written_is_read),
        DMG_TEST(only_simple_names_are_taken),
        DMG_TEST(files_of_others_are_not_believed),
        DMG_TEST(a_folder_of_others_is_not_used),
        DMG_TEST(hostile_contents_are_refused),
        DMG_TEST(texts_that_are_no_description_are_refused),
        {NULL, NULL},
    };
    static const dmg_test process_tests[] = {
        DMG_TEST(start_times_are_found_behind_any_name),
        DMG_TEST(a_process_that_has_got_the_id_of_another_is_not_touched),
        DMG_TEST(living_nodes_are_counted),
        {NULL, NULL},
    };
    return dmg_suite_add("files", set_up, tear_down, tests) || dmg_suite_add("processes", NULL, NULL, process_tests)
               ? 1
               : dmg_suites_run(argc, argv);
}
