/* Output files that appear whole or not at all, and the control socket. */
#include "unit/support/suite.h"

#include "cli/base/output_file.h"
#include "cli/launcher/control.h"
#include "core/base/error.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/dmgraph-cli-XXXXXX";
static char path[sizeof folder + 16];
static int ends[2];

static int make_folder(void)
{
    if (!mkdtemp(folder)) {
        return 1;
    }
    snprintf(path, sizeof path, "%s/answer", folder);
    return 0;
}

static int remove_folder(void)
{
    unlink(path);
    return rmdir(folder);
}

/* The real one, watched: the linker sends the program's calls here. */
int __real_fsync(int file);
int __wrap_fsync(int file);

static struct {
    int files_before_name; /* regular files that were put on the disk while the name was not there */
    int folders_after_name;
    int fail_files; /* so many of them fail, as a disk does */
} syncs;

int __wrap_fsync(int file)
{
    struct stat facts;
    bool has_name = access(path, F_OK) == 0;
    CU_ASSERT_EQUAL_FATAL(fstat(file, &facts), 0);
    if (S_ISREG(facts.st_mode) && syncs.fail_files > 0) {
        syncs.fail_files--;
        errno = EIO;
        return -1;
    }
    syncs.files_before_name += S_ISREG(facts.st_mode) && !has_name;
    syncs.folders_after_name += S_ISDIR(facts.st_mode) && has_name;
    return __real_fsync(file);
}

static size_t file_count(void)
{
    size_t count = 0;
    DIR *open_folder = opendir(folder);
    for (const struct dirent *entry = readdir(open_folder); entry; entry = readdir(open_folder)) {
        count += entry->d_name[0] != '.';
    }
    closedir(open_folder);
    return count;
}

static void read_back(char *text, size_t capacity)
{
    FILE *file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    text[fread(text, 1, capacity - 1, file)] = '\0';
    fclose(file);
}

static void a_file_without_a_commit_leaves_nothing(void)
{
    dmg_output_file *output = NULL;
    CU_ASSERT_EQUAL_FATAL(dmg_output_file_open(path, NULL, &output), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_write(output, "half", 4), DMG_OK);
    dmg_output_file_close(output);
    CU_ASSERT_EQUAL(file_count(), 0);
}

static void a_commit_replaces_what_was_there(void)
{
    for (int round = 0; round < 2; round++) {
        dmg_output_file *output = NULL;
        char wanted[8];
        char text[16];
        snprintf(wanted, sizeof wanted, "%d\n", round);
        CU_ASSERT_EQUAL_FATAL(dmg_output_file_open(path, NULL, &output), DMG_OK);
        CU_ASSERT_EQUAL(dmg_output_file_write(output, wanted, strlen(wanted)), DMG_OK);
        CU_ASSERT_EQUAL(dmg_output_file_commit(output), DMG_OK);
        dmg_output_file_close(output);
        read_back(text, sizeof text);
        CU_ASSERT_STRING_EQUAL(text, wanted);
        CU_ASSERT_EQUAL(file_count(), 1);
    }
}

static void an_output_is_on_the_disk_before_it_has_its_name(void)
{
    dmg_output_file *output = NULL;
    unlink(path);
    memset(&syncs, 0, sizeof syncs);
    CU_ASSERT_EQUAL_FATAL(dmg_output_file_open(path, NULL, &output), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_write(output, "kept", 4), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_commit(output), DMG_OK);
    dmg_output_file_close(output);
    CU_ASSERT_EQUAL(syncs.files_before_name, 1);
    CU_ASSERT_EQUAL(syncs.folders_after_name, 1);
}

static void a_disk_that_fails_leaves_what_was_there(void)
{
    char text[16];
    dmg_output_file *output = NULL;
    syncs.fail_files = 1;
    CU_ASSERT_EQUAL_FATAL(dmg_output_file_open(path, NULL, &output), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_write(output, "lost", 4), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_commit(output), DMG_ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "on the disk"));
    dmg_output_file_close(output);
    read_back(text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "kept");
    CU_ASSERT_EQUAL(file_count(), 1);
    unlink(path);
}

static void large_outputs_arrive_whole(void)
{
    static char block[3 << 20];
    memset(block, 'x', sizeof block);
    dmg_output_file *output = NULL;
    CU_ASSERT_EQUAL_FATAL(dmg_output_file_open(path, NULL, &output), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_write(output, "a", 1), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_write(output, block, sizeof block), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_write(output, "b", 1), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_commit(output), DMG_OK);
    dmg_output_file_close(output);
    struct stat facts;
    CU_ASSERT_EQUAL(stat(path, &facts), 0);
    CU_ASSERT_EQUAL((size_t)facts.st_size, sizeof block + 2);
}

static void a_link_keeps_its_place(void)
{
    char link_path[sizeof path + 8];
    snprintf(link_path, sizeof link_path, "%s-link", path);
    CU_ASSERT_EQUAL_FATAL(symlink("answer", link_path), 0);
    dmg_output_file *output = NULL;
    CU_ASSERT_EQUAL_FATAL(dmg_output_file_open(link_path, NULL, &output), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_write(output, "new", 3), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_commit(output), DMG_OK);
    dmg_output_file_close(output);
    struct stat facts;
    CU_ASSERT_EQUAL(lstat(link_path, &facts), 0);
    CU_ASSERT(S_ISLNK(facts.st_mode));
    char text[16];
    read_back(text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "new");
    unlink(link_path);
}

static void what_is_read_is_not_written(void)
{
    char link_path[sizeof path + 8];
    snprintf(link_path, sizeof link_path, "%s-hard", path);
    CU_ASSERT_EQUAL_FATAL(link(path, link_path), 0);
    dmg_input_files inputs = {0};
    dmg_output_file *output = NULL;
    dmg_input_files_add(&inputs, link_path);
    CU_ASSERT_EQUAL(dmg_output_file_open(path, &inputs, &output), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_NULL(output);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), link_path));
    unlink(link_path);
}

static void permission_bits_are_kept(void)
{
    dmg_output_file *output = NULL;
    struct stat facts;
    CU_ASSERT_EQUAL_FATAL(chmod(path, 0640), 0);
    CU_ASSERT_EQUAL_FATAL(dmg_output_file_open(path, NULL, &output), DMG_OK);
    CU_ASSERT_EQUAL(dmg_output_file_commit(output), DMG_OK);
    dmg_output_file_close(output);
    CU_ASSERT_EQUAL(stat(path, &facts), 0);
    CU_ASSERT_EQUAL(facts.st_mode & 0777, 0640);
}

static void a_place_that_is_not_there_is_an_error(void)
{
    dmg_output_file *output = NULL;
    CU_ASSERT_EQUAL(dmg_output_file_open("/nowhere/at/all", NULL, &output), DMG_ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "/nowhere/at/all"));
}

static int open_sockets(void)
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

static int close_sockets(void)
{
    close(ends[0]);
    return close(ends[1]);
}

static void messages_arrive_one_by_one(void)
{
    json_t *message = NULL;
    CU_ASSERT_EQUAL(dmg_control_receive(ends[1], false, &message), DMG_OK);
    CU_ASSERT_PTR_NULL(message);
    CU_ASSERT_EQUAL(dmg_control_send(ends[0], json_pack("{s:s, s:i}", "type", "one", "value", 1), false), DMG_OK);
    CU_ASSERT_EQUAL(dmg_control_send(ends[0], json_pack("{s:s}", "type", "two"), false), DMG_OK);
    CU_ASSERT_EQUAL(dmg_control_receive(ends[1], true, &message), DMG_OK);
    CU_ASSERT_STRING_EQUAL(dmg_control_type(message), "one");
    int value = 0;
    CU_ASSERT_EQUAL(dmg_control_unpack(message, "{s:i}", "value", &value), DMG_OK);
    CU_ASSERT_EQUAL(value, 1);
    CU_ASSERT_EQUAL(dmg_control_unpack(message, "{s:s}", "value", &value), DMG_ERR_PROTOCOL);
    json_decref(message);
    CU_ASSERT_EQUAL(dmg_control_receive(ends[1], true, &message), DMG_OK);
    CU_ASSERT_STRING_EQUAL(dmg_control_type(message), "two");
    json_decref(message);
}

static void what_is_no_message_is_refused(void)
{
    static const char *const bad[] = {
        "{", "[]", "{}", "{\"type\": 1}", "hello", "{\"type\":\"a\",\"type\":\"b\"}", "\xff\xfe"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        json_t *message = NULL;
        CU_ASSERT_EQUAL(send(ends[0], bad[i], strlen(bad[i]), 0), (ssize_t)strlen(bad[i]));
        CU_ASSERT_EQUAL(dmg_control_receive(ends[1], false, &message), DMG_ERR_PROTOCOL);
        CU_ASSERT_PTR_NULL(message);
    }
}

static void messages_beyond_the_limit_are_refused_on_both_sides(void)
{
    static char large[DMG_CONTROL_BYTES_MAX + 1];
    memset(large, 'x', sizeof large - 1);
    CU_ASSERT_EQUAL(dmg_control_send(ends[0], json_pack("{s:s, s:s}", "type", "large", "text", large), false),
                    DMG_ERR_LIMIT);
    json_t *message = NULL;
    CU_ASSERT_EQUAL(send(ends[0], large, sizeof large, 0), (ssize_t)sizeof large);
    CU_ASSERT_EQUAL(dmg_control_receive(ends[1], false, &message), DMG_ERR_PROTOCOL);
}

static void a_full_socket_drops_what_may_be_dropped(void)
{
    for (int round = 0; round < 10000; round++) {
        CU_ASSERT_EQUAL(dmg_control_send(ends[0], json_pack("{s:s}", "type", "beat"), true), DMG_OK);
    }
    json_t *message = NULL;
    size_t received = 0;
    while (dmg_control_receive(ends[1], false, &message) == DMG_OK && message) {
        json_decref(message);
        received++;
    }
    CU_ASSERT(received > 0 && received < 10000);
}

static void the_end_is_a_dead_peer(void)
{
    json_t *message = NULL;
    close(ends[0]);
    CU_ASSERT_EQUAL(dmg_control_receive(ends[1], true, &message), DMG_ERR_PEER);
    CU_ASSERT_EQUAL(dmg_control_send(ends[1], json_pack("{s:s}", "type", "beat"), true), DMG_ERR_PEER);
    ends[0] = dup(ends[1]);
}

int main(int argc, char **argv)
{
    static const dmg_test file_tests[] = {DMG_TEST(a_file_without_a_commit_leaves_nothing),
                                          DMG_TEST(a_commit_replaces_what_was_there),
                                          DMG_TEST(an_output_is_on_the_disk_before_it_has_its_name),
                                          DMG_TEST(a_disk_that_fails_leaves_what_was_there),
                                          DMG_TEST(large_outputs_arrive_whole),
                                          DMG_TEST(a_link_keeps_its_place),
                                          DMG_TEST(what_is_read_is_not_written),
                                          DMG_TEST(permission_bits_are_kept),
                                          DMG_TEST(a_place_that_is_not_there_is_an_error),
                                          {NULL, NULL}};
    static const dmg_test control_tests[] = {DMG_TEST(messages_arrive_one_by_one),
                                             DMG_TEST(what_is_no_message_is_refused),
                                             DMG_TEST(messages_beyond_the_limit_are_refused_on_both_sides),
                                             DMG_TEST(a_full_socket_drops_what_may_be_dropped),
                                             DMG_TEST(the_end_is_a_dead_peer),
                                             {NULL, NULL}};
    if (dmg_suite_add("output file", make_folder, remove_folder, file_tests) != 0 ||
        dmg_suite_add("control", open_sockets, close_sockets, control_tests) != 0) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
