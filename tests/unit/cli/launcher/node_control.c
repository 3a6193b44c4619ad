/*
 * A node's end of the control socket: what becomes of it when it does not start, and when its launcher is gone. The
 * nodes are processes that do nothing else.
 */
#include "cli/launcher/node_control.h"
#include "cli/launcher/control.h"
#include "core/base/clock.h"
#include "unit/support/suite.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEER_TIMEOUT_NS UINT64_C(50000000) /* beats every 10 ms */
#define START_LIMIT_NS  UINT64_C(200000000)
#define NEVER_NS        UINT64_C(3600000000000)
#define PATIENCE_S      60
#define SECOND_NS       UINT64_C(1000000000)

/** How a node's process ended. */
enum { ENDED_IN_ORDER = 40, ENDED_BY_MISTAKE };

typedef struct node_kind {
    bool ends_in_order;
    bool is_settled;
    bool is_working;
    uint64_t start_limit_ns;
} node_kind;

static void end_in_order(void *context)
{
    (void)context;
    _exit(ENDED_IN_ORDER);
}

static dmg_status be_node(int socket, const node_kind *kind)
{
    static const dmg_option_id options[] = {DMG_OPTION_CONTROL_FD, DMG_OPTION_COUNT};
    char option[] = "--control-fd=000000";
    snprintf(option, sizeof option, "--control-fd=%d", socket);
    char *arguments[] = {option};
    dmg_settings settings;
    dmg_node_control *control = NULL;
    dmg_status status = dmg_options_parse(options, 1, arguments, &settings);
    if (status == DMG_OK) {
        status = dmg_node_control_open(&settings, "node", &control);
    }
    if (status != DMG_OK) {
        return status;
    }
    if (kind->ends_in_order) {
        dmg_node_control_end_in_order(control);
    }
    dmg_node_control_limit_start(control, kind->start_limit_ns);
    status = dmg_node_control_start(control, PEER_TIMEOUT_NS, "stop");
    if (kind->ends_in_order) {
        dmg_node_control_on_ending(control, end_in_order, NULL); /* it is made: what ends it may be called */
    }
    if (kind->is_settled) {
        dmg_node_control_settle(control);
    }
    if (kind->is_working) {
        dmg_node_control_enter(control, DMG_PHASE_LOAD);
    }
    return status;
}

/** Start a node, as the launcher does; returns its process and the launcher's end of the socket. */
static pid_t start_node(const node_kind *kind, int *launcher)
{
    int ends[2];
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        if (be_node(ends[1], kind) == DMG_OK) {
            sleep(PATIENCE_S);
        }
        _exit(ENDED_BY_MISTAKE);
    }
    close(ends[1]);
    *launcher = ends[0];
    CU_ASSERT_EQUAL(dmg_control_send(ends[0], json_pack("{s:s}", "type", "setup"), false), DMG_OK);
    return process;
}

/** The sentence of the error that the node sends, or "" when it ends without one. */
static void await_error(int launcher, char *sentence, size_t capacity)
{
    sentence[0] = '\0';
    json_t *message = NULL;
    while (sentence[0] == '\0' && dmg_control_receive(launcher, true, &message) == DMG_OK) {
        const char *text = json_string_value(json_object_get(message, "sentence"));
        if (strcmp(dmg_control_type(message), "error") == 0) {
            snprintf(sentence, capacity, "%s", text ? text : "?");
        }
        json_decref(message);
    }
}

static void await_beats(int launcher, int count)
{
    for (int i = 0; i < count; i++) {
        json_t *message = NULL;
        CU_ASSERT_EQUAL_FATAL(dmg_control_receive(launcher, true, &message), DMG_OK);
        CU_ASSERT_STRING_EQUAL(dmg_control_type(message), "beat");
        json_decref(message);
    }
}

/** True when the node ends within a time; `*wait_status` tells how. */
static bool ends_within(pid_t process, uint64_t limit_ns, int *wait_status)
{
    uint64_t end_ns = dmg_now_ns() + limit_ns;
    while (waitpid(process, wait_status, WNOHANG) == 0) {
        if (dmg_now_ns() > end_ns) {
            return false;
        }
        dmg_sleep_ns(1000000);
    }
    return true;
}

static void node_that_does_not_come_to_its_work_says_so_and_ends(void)
{
    const node_kind kind = {.start_limit_ns = START_LIMIT_NS};
    int launcher;
    int status = 0;
    char sentence[512];
    pid_t process = start_node(&kind, &launcher);
    await_error(launcher, sentence, sizeof sentence);
    CU_ASSERT_PTR_NOT_NULL(strstr(sentence, "it has been starting for 0.2 s"));
    CU_ASSERT_FATAL(ends_within(process, PATIENCE_S * SECOND_NS, &status));
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) != ENDED_BY_MISTAKE);
    close(launcher);
}

static void node_that_works_has_no_such_limit(void)
{
    const node_kind kind = {.start_limit_ns = START_LIMIT_NS, .is_working = true, .is_settled = true};
    int launcher;
    int status = 0;
    pid_t process = start_node(&kind, &launcher);
    await_beats(launcher, 4 * (int)(START_LIMIT_NS / (PEER_TIMEOUT_NS / 5)));
    close(launcher);
    CU_ASSERT_FATAL(ends_within(process, PATIENCE_S * SECOND_NS, &status));
}

static void node_with_files_ends_in_order_when_its_launcher_is_gone(void)
{
    for (int is_settled = 0; is_settled < 2; is_settled++) {
        const node_kind kind = {.ends_in_order = true, .is_settled = is_settled != 0, .start_limit_ns = NEVER_NS};
        int launcher;
        int status = 0;
        pid_t process = start_node(&kind, &launcher);
        await_beats(launcher, 2);
        close(launcher);
        CU_ASSERT_FATAL(ends_within(process, PATIENCE_S * SECOND_NS, &status));
        CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == ENDED_IN_ORDER);
    }
}

static void node_is_not_ended_in_the_middle_of_what_only_it_can_remove(void)
{
    int launcher;
    int status = 0;
    node_kind kind = {.start_limit_ns = NEVER_NS};
    pid_t process = start_node(&kind, &launcher);
    await_beats(launcher, 2);
    close(launcher);
    CU_ASSERT(!ends_within(process, SECOND_NS, &status));
    kill(process, SIGKILL);
    CU_ASSERT_EQUAL(waitpid(process, &status, 0), process);
    /* One that has settled ends at once. */
    kind.is_settled = true;
    process = start_node(&kind, &launcher);
    await_beats(launcher, 2);
    close(launcher);
    CU_ASSERT_FATAL(ends_within(process, PATIENCE_S * SECOND_NS, &status));
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
}

static const dmg_test tests[] = {
    DMG_TEST(node_that_does_not_come_to_its_work_says_so_and_ends),
    DMG_TEST(node_that_works_has_no_such_limit),
    DMG_TEST(node_with_files_ends_in_order_when_its_launcher_is_gone),
    DMG_TEST(node_is_not_ended_in_the_middle_of_what_only_it_can_remove),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    alarm(300); /* whatever hangs ends */
    if (dmg_suite_add("cli_node_control", NULL, NULL, tests) != 0) {
        return 2;
    }
    return dmg_suites_run(argc, argv);
}
