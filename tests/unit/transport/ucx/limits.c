#include "unit/transport/ucx/limits.h"
#include "core/base/clock.h"
#include "transport/ucx/ucx.h"
#include "unit/support/suite.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT_LIMIT_NS UINT64_C(100000000)
#define LONG_LIMIT_NS  UINT64_C(30000000000)
#define PORT_ROUNDS    1000

static void read_a_byte(void *argument)
{
    char byte;
    ssize_t ignored = read(*(const int *)argument, &byte, 1);
    (void)ignored;
}

static void do_nothing(void *argument)
{
    *(bool *)argument = true;
}

void step_that_does_not_return_is_given_up(void)
{
    bool has_run = false;
    CU_ASSERT_EQUAL(dmg_ucx_run_bounded("testing", LONG_LIMIT_NS, do_nothing, &has_run), DMG_OK);
    CU_ASSERT(has_run);
    static int ends[2]; /* the step reads it until its thread ends */
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    CU_ASSERT_EQUAL(dmg_ucx_run_bounded("testing", SHORT_LIMIT_NS, read_a_byte, &ends[0]), DMG_ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "testing: UCX has not returned from this for 0.1 s"));
    CU_ASSERT_EQUAL(write(ends[1], "x", 1), 1); /* so that the thread ends */
    close(ends[1]);
}

void time_in_which_the_process_was_stopped_is_not_waited(void)
{
    dmg_ucx_patience patience = {0};
    CU_ASSERT(dmg_ucx_is_patient(&patience));
    /* As after an hour: one look adds no more than a second. */
    patience.looked_ns = dmg_now_ns() - UINT64_C(3600000000000);
    CU_ASSERT(dmg_ucx_is_patient(&patience));
    CU_ASSERT_EQUAL(patience.waited_ns, UINT64_C(1000000000));
    uint32_t looks = 1;
    while (dmg_ucx_is_patient(&patience) && looks < 1000) {
        patience.looked_ns -= UINT64_C(2000000000);
        looks++;
    }
    CU_ASSERT_EQUAL(looks, DMG_UCX_DEVICE_LIMIT_NS / 1000000000);
}

/** Take two ports in a row. */
static int take_ports(int sockets[2])
{
    for (int round = 0; round < PORT_ROUNDS; round++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t bytes = sizeof address;
        sockets[0] = socket(AF_INET, SOCK_STREAM, 0);
        sockets[1] = socket(AF_INET, SOCK_STREAM, 0);
        if (bind(sockets[0], (struct sockaddr *)&address, bytes) == 0 && listen(sockets[0], 1) == 0 &&
            getsockname(sockets[0], (struct sockaddr *)&address, &bytes) == 0) {
            int port = ntohs(address.sin_port);
            address.sin_port = htons((uint16_t)(port + 1));
            if (port < UINT16_MAX && bind(sockets[1], (struct sockaddr *)&address, bytes) == 0 &&
                listen(sockets[1], 1) == 0) {
                return port;
            }
        }
        close(sockets[0]);
        close(sockets[1]);
    }
    return -1;
}

/** UCX looks for a free port among these two for ever. It reads the variable when it makes a worker. */
static int make_worker_without_ports(void)
{
    const dmg_ucx_settings settings = {.messages = "tcp", .has_tcp_messages = true};
    ucp_context_h context;
    ucp_worker_h worker;
    int sockets[2];
    char range[32];
    int port = take_ports(sockets);
    if (port < 0 || dmg_ucx_message_context(&settings, "lo", AF_INET, &context) != DMG_OK) {
        return 2;
    }
    snprintf(range, sizeof range, "%d-%d", port, port + 1);
    setenv("UCX_TCP_PORT_RANGE", range, 1);
    if (dmg_ucx_worker_within(context, SHORT_LIMIT_NS, &worker) != DMG_ERR_IO) {
        return 3;
    }
    if (strstr(dmg_error_message(), "creating a UCX worker: UCX has not returned") == NULL) {
        return 4;
    }
    dmg_ucx_close_context(context); /* which would wait for the worker */
    return 0;
}

bool limits_process_main(int argc, char **argv, int *exit_code)
{
    if (argc != 2 || strcmp(argv[1], "--without-ports") != 0) {
        return false;
    }
    alarm(60);
    /* No destructors, since UCX is at work still. */
    _exit(*exit_code = make_worker_without_ports());
}

void worker_that_finds_no_port_is_given_up(void)
{
    char name[] = "unit-transport_ucx";
    char option[] = "--without-ports";
    char *arguments[] = {name, option, NULL};
    pid_t process = fork();
    if (process == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    int status = 0;
    CU_ASSERT_EQUAL(waitpid(process, &status, 0), process);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void host_with_a_variable_that_may_not_pass_is_refused(void)
{
    const dmg_ucx_settings settings = {.messages = "tcp", .has_tcp_messages = true};
    ucp_context_h context;
    setenv("UCX_PROTO_ENABLE", "y", 1);
    CU_ASSERT_EQUAL(dmg_ucx_message_context(&settings, "lo", AF_INET, &context), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), "UCX_PROTO_ENABLE"));
    unsetenv("UCX_PROTO_ENABLE");
    setenv("UCX_TLS", "posix", 1); /* has no effect */
    CU_ASSERT_EQUAL_FATAL(dmg_ucx_message_context(&settings, "lo", AF_INET, &context), DMG_OK);
    unsetenv("UCX_TLS");
    dmg_ucx_close_context(context);
}
