/* Listeners with strangers at their sockets. Clients are threads, which wait for their greetings. */
#include "unit/transport/stream/support.h"

#include "core/base/clock.h"
#include "core/base/log.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define BACKEND        "streams"
#define MILLISECOND_NS UINT64_C(1000000)

/* A client that connects, and says something when it has greeted. */
typedef struct test_client {
    pthread_t thread;
    char address[DMG_ADDRESS_STRING_BYTES];
    const uint8_t *token;
    dmg_stream_protection wanted;
    dmg_status status;
    char sentence[256];
    dmg_stream *stream;
} test_client;

static void *run_client(void *argument)
{
    test_client *client = argument;
    dmg_stream_address address;
    dmg_watch watch;
    const dmg_stream_options options = {.token = client->token, .wanted = client->wanted, .record_bytes_max = 1000};
    dmg_watch_start(&watch, dmg_test_deadline_ns(20), dmg_now_ns());
    client->status = dmg_stream_address_parse(BACKEND, client->address, &address);
    if (client->status == DMG_OK) {
        client->status = dmg_stream_connect(&options, &address, client->address, &watch, &client->stream);
    }
    if (client->status == DMG_OK) {
        dmg_stream_send(client->stream, "hello", 6, NULL, 0);
    } else {
        snprintf(client->sentence, sizeof client->sentence, "%s", dmg_error_message());
    }
    return NULL;
}

static void client_start(test_client *client, const char *address, const uint8_t *token, dmg_stream_protection wanted)
{
    *client = (test_client){.token = token, .wanted = wanted};
    snprintf(client->address, sizeof client->address, "%s", address);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&client->thread, NULL, run_client, client), 0);
}

static void client_join(test_client *client)
{
    pthread_join(client->thread, NULL);
}

static dmg_listener *listen_at(const char *bind, dmg_stream_protection wanted, uint64_t timeout_ns)
{
    const dmg_listener_options options = {
        .backend = BACKEND,
        .bind = bind,
        .stream = {.token = stream_token, .wanted = wanted, .record_bytes_max = 1000},
        .greeting_timeout_ns = timeout_ns,
    };
    dmg_listener *listener = NULL;
    CU_ASSERT_EQUAL_FATAL(dmg_listener_open(&options, &listener), DMG_OK);
    return listener;
}

/* The streams that came in; tests have few. */
typedef struct arrivals {
    dmg_stream *streams[8];
    uint32_t count;
} arrivals;

static void on_stream(void *context, dmg_stream *stream)
{
    arrivals *arrived = context;
    CU_ASSERT_FATAL(arrived->count < 8);
    arrived->streams[arrived->count++] = stream;
}

static void await_stream(dmg_listener *listener, arrivals *arrived)
{
    for (dmg_test_wait wait = dmg_test_wait_for(10); arrived->count == 0 && dmg_test_goes_on(&wait);) {
        dmg_listener_progress(listener, dmg_now_ns(), on_stream, arrived);
    }
}

static void clients_connect_at_every_kind_of_address(void)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/dmgraph-stream-%d", (int)getpid());
    const char *const binds[] = {NULL, path, "127.0.0.1:0", "[::1]:0"};
    for (size_t i = 0; i < sizeof binds / sizeof *binds; i++) {
        dmg_listener *listener = listen_at(binds[i], DMG_STREAM_PLAIN, dmg_test_deadline_ns(20));
        arrivals arrived = {0};
        test_client client;
        size_t bytes;
        client_start(&client, dmg_listener_address(listener), stream_token, DMG_STREAM_PLAIN);
        await_stream(listener, &arrived);
        client_join(&client);
        CU_ASSERT_EQUAL(client.status, DMG_OK);
        CU_ASSERT_EQUAL_FATAL(arrived.count, 1);
        const char *heard = stream_receive_wait(arrived.streams[0], &bytes);
        CU_ASSERT_PTR_NOT_NULL_FATAL(heard);
        CU_ASSERT_STRING_EQUAL(heard, "hello");
        CU_ASSERT_EQUAL(dmg_stream_protected(client.stream), i < 2 ? DMG_STREAM_PLAIN : DMG_STREAM_AUTHENTICATED);
        dmg_process process;
        dmg_stream_identify_peer(arrived.streams[0], &process);
        CU_ASSERT_EQUAL(process.pid, i < 2 ? getpid() : 0);
        CU_ASSERT_EQUAL(dmg_listener_counted(listener)->greeted, 1);
        CU_ASSERT_EQUAL(dmg_listener_strangers(listener), 0);
        dmg_stream_close(client.stream);
        dmg_stream_close(arrived.streams[0]);
        dmg_listener_close(listener);
    }
    CU_ASSERT_NOT_EQUAL(access(path, F_OK), 0);
}

static void refused_clients_are_counted_and_told_why(void)
{
    static const struct {
        const uint8_t *token;
        dmg_stream_protection wanted;
        const char *reason;
    } cases[] = {{stream_other_token, DMG_STREAM_PLAIN, "the token is wrong"},
                 {stream_token, DMG_STREAM_ENCRYPTED, "protects frames less than was asked for"}};
    dmg_listener *listener = listen_at("127.0.0.1:0", DMG_STREAM_AUTHENTICATED, dmg_test_deadline_ns(20));
    const dmg_listener_counts *counts = dmg_listener_counted(listener);
    arrivals arrived = {0};
    test_client client;
    for (uint64_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        client_start(&client, dmg_listener_address(listener), cases[i].token, cases[i].wanted);
        for (dmg_test_wait wait = dmg_test_wait_for(10); counts->refused == i && dmg_test_goes_on(&wait);) {
            dmg_listener_progress(listener, dmg_now_ns(), on_stream, &arrived);
        }
        client_join(&client);
        CU_ASSERT_EQUAL(counts->refused, i + 1);
        CU_ASSERT_EQUAL(client.status, DMG_ERR_PROTOCOL);
        CU_ASSERT_PTR_NOT_NULL(strstr(client.sentence, cases[i].reason));
        CU_ASSERT_EQUAL(arrived.count, 0);
    }
    client_start(&client, dmg_listener_address(listener), stream_token, DMG_STREAM_PLAIN);
    await_stream(listener, &arrived);
    client_join(&client);
    CU_ASSERT_EQUAL(client.status, DMG_OK);
    CU_ASSERT_EQUAL(counts->greeted, 1);
    CU_ASSERT_EQUAL(dmg_listener_strangers(listener), 0);
    dmg_stream_close(client.stream);
    dmg_stream_close(arrived.streams[0]);
    dmg_listener_close(listener);
}

/* ---- strangers ---- */

static int connect_to(const char *address)
{
    dmg_stream_address where;
    CU_ASSERT_EQUAL_FATAL(dmg_stream_address_parse(BACKEND, address, &where), DMG_OK);
    int connected = socket(where.name.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connected >= 0 && connect(connected, &where.name.any, where.bytes) != 0) {
        close(connected);
        connected = -1;
    }
    return connected;
}

#define CROWD_PROCESSES 5
#define CROWD_EACH      220

/* A process with many connections that say nothing, until it is killed. */
static pid_t start_crowd(const char *address)
{
    pid_t crowd = fork();
    if (crowd == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < CROWD_EACH; i++) {
            (void)connect_to(address);
        }
        for (;;) {
            pause();
        }
    }
    CU_ASSERT_FATAL(crowd > 0);
    return crowd;
}

static void crowd_of_silent_strangers_expires_while_others_are_served(void)
{
    static const char *const binds[] = {NULL, "127.0.0.1:0"};
    for (size_t i = 0; i < sizeof binds / sizeof *binds; i++) {
        uint64_t now_ns = dmg_now_ns();
        dmg_listener *listener = listen_at(binds[i], DMG_STREAM_PLAIN, dmg_test_deadline_ns(1000));
        const dmg_listener_counts *counts = dmg_listener_counted(listener);
        pid_t crowd[CROWD_PROCESSES];
        arrivals arrived = {0};
        test_client client;
        for (int process = 0; process < CROWD_PROCESSES; process++) {
            crowd[process] = start_crowd(dmg_listener_address(listener));
        }
        /* As long as no time passes, the first keep their places, and the others wait outside. */
        for (dmg_test_wait wait = dmg_test_wait_for(20); counts->accepted < 256 && dmg_test_goes_on(&wait);) {
            dmg_listener_progress(listener, now_ns, on_stream, &arrived);
        }
        dmg_listener_progress(listener, now_ns, on_stream, &arrived);
        CU_ASSERT_EQUAL(counts->accepted, 256);
        CU_ASSERT_EQUAL(counts->expired, 0);
        for (dmg_test_wait wait = dmg_test_wait_for(20);
             counts->accepted < CROWD_PROCESSES * CROWD_EACH && dmg_test_goes_on(&wait);) {
            while (dmg_listener_progress(listener, now_ns, on_stream, &arrived) > 0) {
                CU_ASSERT_FATAL(dmg_listener_strangers(listener) <= 256);
            }
            now_ns += 10 * MILLISECOND_NS;
        }
        CU_ASSERT_EQUAL(counts->accepted, CROWD_PROCESSES * CROWD_EACH);
        CU_ASSERT_EQUAL(counts->expired, CROWD_PROCESSES * CROWD_EACH - 256);
        CU_ASSERT_EQUAL(dmg_listener_strangers(listener), 256);
        client_start(&client, dmg_listener_address(listener), stream_token, DMG_STREAM_PLAIN);
        for (dmg_test_wait wait = dmg_test_wait_for(10); arrived.count == 0 && dmg_test_goes_on(&wait);) {
            dmg_listener_progress(listener, now_ns, on_stream, &arrived);
            now_ns += 10 * MILLISECOND_NS;
        }
        client_join(&client);
        CU_ASSERT_EQUAL(client.status, DMG_OK);
        CU_ASSERT_EQUAL(arrived.count, 1);
        CU_ASSERT_EQUAL(dmg_listener_strangers(listener), 255);
        /* The clock of the watch decides, no other. */
        now_ns += dmg_test_deadline_ns(100000);
        dmg_listener_progress(listener, now_ns, on_stream, &arrived);
        CU_ASSERT_EQUAL(dmg_listener_strangers(listener), 0);
        CU_ASSERT_EQUAL(counts->expired, CROWD_PROCESSES * CROWD_EACH);
        CU_ASSERT_EQUAL(counts->greeted, 1);
        CU_ASSERT_EQUAL(counts->refused, 0);
        for (int process = 0; process < CROWD_PROCESSES; process++) {
            kill(crowd[process], SIGKILL);
            waitpid(crowd[process], NULL, 0);
        }
        dmg_stream_close(client.stream);
        dmg_stream_close(arrived.streams[0]);
        dmg_listener_close(listener);
    }
}

#define TURNS 8

static void clients_that_come_at_once_only_take_turns(void)
{
    const dmg_listener_options options = {
        .backend = BACKEND,
        .stream = {.token = stream_token, .record_bytes_max = 1000},
        .greeting_timeout_ns = dmg_test_deadline_ns(20),
        .strangers_max = 2,
    };
    dmg_listener *listener = NULL;
    CU_ASSERT_EQUAL_FATAL(dmg_listener_open(&options, &listener), DMG_OK);
    const dmg_listener_counts *counts = dmg_listener_counted(listener);
    uint64_t now_ns = dmg_now_ns();
    arrivals arrived = {0};
    test_client clients[TURNS];
    for (int i = 0; i < TURNS; i++) {
        client_start(&clients[i], dmg_listener_address(listener), stream_token, DMG_STREAM_PLAIN);
    }
    for (dmg_test_wait wait = dmg_test_wait_for(10); arrived.count < TURNS && dmg_test_goes_on(&wait);) {
        dmg_listener_progress(listener, now_ns, on_stream, &arrived);
        CU_ASSERT_FATAL(dmg_listener_strangers(listener) <= 2);
    }
    CU_ASSERT_EQUAL(counts->greeted, TURNS);
    CU_ASSERT_EQUAL(counts->expired, 0);
    for (int i = 0; i < TURNS; i++) {
        client_join(&clients[i]);
        CU_ASSERT_EQUAL(clients[i].status, DMG_OK);
        dmg_stream_close(clients[i].stream);
    }
    for (uint32_t i = 0; i < arrived.count; i++) {
        dmg_stream_close(arrived.streams[i]);
    }
    dmg_listener_close(listener);
}

static void owner_is_woken_when_strangers_expire(void)
{
    dmg_listener *listener = listen_at(NULL, DMG_STREAM_PLAIN, dmg_test_deadline_ns(0.2));
    struct pollfd watched = {.fd = dmg_listener_descriptor(listener), .events = POLLIN};
    int silent = connect_to(dmg_listener_address(listener));
    CU_ASSERT_FATAL(silent >= 0);
    while (poll(&watched, 1, 0) > 0) {
        dmg_listener_progress(listener, dmg_now_ns(), NULL, NULL);
    }
    CU_ASSERT_EQUAL(dmg_listener_strangers(listener), 1);
    for (dmg_test_wait wait = dmg_test_wait_for(10); dmg_listener_strangers(listener) > 0 && dmg_test_goes_on(&wait);) {
        if (poll(&watched, 1, 0) > 0) {
            dmg_listener_progress(listener, dmg_now_ns(), NULL, NULL);
        }
    }
    CU_ASSERT_EQUAL(dmg_listener_counted(listener)->expired, 1);
    CU_ASSERT_EQUAL(poll(&watched, 1, 0), 0); /* and rests */
    close(silent);
    dmg_listener_close(listener);
}

static void noise_is_refused_and_counted(void)
{
    static uint8_t noise[4096];
    uint64_t seed = dmg_test_seed();
    dmg_listener *listener = listen_at(NULL, DMG_STREAM_PLAIN, dmg_test_deadline_ns(20));
    const dmg_listener_counts *counts = dmg_listener_counted(listener);
    for (uint64_t round = 0; round < 200; round++) {
        int loud = connect_to(dmg_listener_address(listener));
        CU_ASSERT_FATAL(loud >= 0);
        stream_fill(noise, sizeof noise, seed + round);
        size_t bytes = round % 2 ? sizeof noise : 80;
        memset(noise, 0, round % 4 < 2 ? bytes : 0);
        CU_ASSERT_EQUAL(send(loud, noise, bytes, MSG_NOSIGNAL), (ssize_t)bytes);
        for (dmg_test_wait wait = dmg_test_wait_for(10); counts->refused == round && dmg_test_goes_on(&wait);) {
            dmg_listener_progress(listener, dmg_now_ns(), NULL, NULL);
        }
        CU_ASSERT_EQUAL_FATAL(counts->refused, round + 1);
        CU_ASSERT_TRUE(recv(loud, noise, 1, 0) <= 0);
        close(loud);
    }
    CU_ASSERT_EQUAL(dmg_listener_strangers(listener), 0);
    dmg_listener_close(listener);
}

/* ---- what the system has none of ---- */

static void count_line(dmg_log_level level, const char *line, void *context)
{
    if (level == DMG_LOG_WARNING && strstr(line, "accept_postponed") && strstr(line, "remedy=")) {
        ++*(int *)context;
    }
}

/* In a child of its own: use up the descriptors, and give them back. Returns its exit code: where it failed. */
static int starve(void)
{
    int lines = 0;
    struct rlimit limit = {.rlim_cur = 64, .rlim_max = 64};
    arrivals arrived = {0};
    int waste[64];
    int count = 0;
    dmg_log_set_sink(count_line, &lines, DMG_LOG_WARNING);
    dmg_listener *listener = listen_at(NULL, DMG_STREAM_PLAIN, dmg_test_deadline_ns(20));
    const dmg_listener_counts *counts = dmg_listener_counted(listener);
    int stranger = connect_to(dmg_listener_address(listener));
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || stranger < 0) {
        return 1;
    }
    while (count < 64 && (waste[count] = dup(0)) >= 0) {
        count++;
    }
    uint64_t now_ns = dmg_now_ns();
    struct pollfd watched = {.fd = dmg_listener_descriptor(listener), .events = POLLIN};
    dmg_listener_progress(listener, now_ns, on_stream, &arrived);
    if (counts->postponed != 1 || counts->accepted != 0 || lines != 1) {
        return 2;
    }
    /* It does not spin: only the timer wakes it, and accepting is tried again, without another line. */
    uint32_t wakes = 0;
    for (dmg_test_wait wait = dmg_test_wait_for(5); counts->postponed < 4 && dmg_test_goes_on(&wait);) {
        if (poll(&watched, 1, 0) > 0) {
            wakes++;
            dmg_listener_progress(listener, dmg_now_ns(), on_stream, &arrived);
        }
    }
    if (counts->postponed != 4 || wakes > 16 || lines != 1) {
        return 3;
    }
    while (count > 0) {
        close(waste[--count]);
    }
    for (dmg_test_wait wait = dmg_test_wait_for(5); counts->accepted == 0 && dmg_test_goes_on(&wait);) {
        dmg_listener_progress(listener, dmg_now_ns(), on_stream, &arrived);
    }
    if (counts->accepted != 1) {
        return 4;
    }
    test_client client;
    client_start(&client, dmg_listener_address(listener), stream_token, DMG_STREAM_PLAIN);
    await_stream(listener, &arrived);
    client_join(&client);
    return client.status == DMG_OK && arrived.count == 1 && lines == 1 ? 0 : 5;
}

/* In a child: strangers have the last descriptors; who comes after them gets one. */
static int starve_by_strangers(void)
{
    struct rlimit limit = {.rlim_cur = 64, .rlim_max = 64};
    arrivals arrived = {0};
    dmg_listener *listener = listen_at(NULL, DMG_STREAM_PLAIN, dmg_test_deadline_ns(20));
    const dmg_listener_counts *counts = dmg_listener_counted(listener);
    uint64_t now_ns = dmg_now_ns();
    int strangers = 0;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1;
    }
    /* The listener takes one in for each that comes, until there are no more descriptors for either. */
    while (counts->postponed == 0 && strangers < 64 && connect_to(dmg_listener_address(listener)) >= 0) {
        strangers++;
        dmg_listener_progress(listener, now_ns, on_stream, &arrived);
    }
    close(0); /* for the last one to connect, and none for who takes it in */
    if (counts->expired != 0 || connect_to(dmg_listener_address(listener)) < 0) {
        return 2;
    }
    for (dmg_test_wait wait = dmg_test_wait_for(5); counts->expired == 0 && dmg_test_goes_on(&wait);) {
        now_ns += 10 * MILLISECOND_NS;
        dmg_listener_progress(listener, now_ns, on_stream, &arrived);
    }
    return counts->expired > 0 && counts->accepted > dmg_listener_strangers(listener) ? 0 : 3;
}

static int run_apart(int (*what)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(what());
    }
    CU_ASSERT_FATAL(child > 0);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void listener_without_descriptors_waits_for_some(void)
{
    CU_ASSERT_EQUAL(run_apart(starve), 0);
    CU_ASSERT_EQUAL(run_apart(starve_by_strangers), 0);
}

/* ---- other users ---- */

#define NOBODY 65534

static char stranger_address[DMG_ADDRESS_STRING_BYTES];
static int stranger_pipe[2];

/* As nobody: connect, and say whether the other end closes. Then listen, until the pipe closes. */
static int be_nobody(void)
{
    char byte;
    if (setresuid(NOBODY, NOBODY, NOBODY) != 0) {
        return 1;
    }
    int connected = connect_to(stranger_address);
    if (connected < 0 || recv(connected, &byte, 1, 0) > 0) {
        return 2;
    }
    dmg_listener *listener = listen_at(NULL, DMG_STREAM_PLAIN, dmg_test_deadline_ns(20));
    const char *address = dmg_listener_address(listener);
    if (write(stranger_pipe[1], address, DMG_ADDRESS_STRING_BYTES) != DMG_ADDRESS_STRING_BYTES) {
        return 3;
    }
    close(stranger_pipe[1]);
    pause();
    return 4;
}

static void other_users_are_refused_on_both_sides(void)
{
    if (geteuid() != 0) {
        printf("\n    not run: only root can be another user ");
        return;
    }
    dmg_listener *listener = listen_at(NULL, DMG_STREAM_PLAIN, dmg_test_deadline_ns(20));
    const dmg_listener_counts *counts = dmg_listener_counted(listener);
    snprintf(stranger_address, sizeof stranger_address, "%s", dmg_listener_address(listener));
    CU_ASSERT_EQUAL_FATAL(pipe(stranger_pipe), 0);
    pid_t nobody = fork();
    if (nobody == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(be_nobody());
    }
    close(stranger_pipe[1]);
    for (dmg_test_wait wait = dmg_test_wait_for(10); counts->refused == 0 && dmg_test_goes_on(&wait);) {
        dmg_listener_progress(listener, dmg_now_ns(), NULL, NULL);
    }
    CU_ASSERT_EQUAL(counts->refused, 1);
    char address[DMG_ADDRESS_STRING_BYTES];
    test_client client;
    CU_ASSERT_EQUAL_FATAL(read(stranger_pipe[0], address, sizeof address), sizeof address);
    client_start(&client, address, stream_token, DMG_STREAM_PLAIN);
    client_join(&client);
    CU_ASSERT_EQUAL(client.status, DMG_ERR_PROTOCOL);
    CU_ASSERT_PTR_NOT_NULL(strstr(client.sentence, "belongs to another user"));
    close(stranger_pipe[0]);
    kill(nobody, SIGKILL);
    waitpid(nobody, NULL, 0);
    dmg_listener_close(listener);
}

/* ---- names ---- */

static int leave_a_path(void)
{
    const dmg_listener_options options = {
        .backend = BACKEND, .bind = stranger_address, .stream = {.token = stream_token}, .greeting_timeout_ns = 1};
    dmg_listener *listener;
    return dmg_listener_open(&options, &listener) == DMG_OK ? 0 : 1; /* and ends without closing it */
}

static void path_of_a_killed_listener_is_taken_over_and_no_other(void)
{
    snprintf(stranger_address, sizeof stranger_address, "/tmp/dmgraph-stream-left-%d", (int)getpid());
    CU_ASSERT_EQUAL(run_apart(leave_a_path), 0);
    struct stat about;
    CU_ASSERT_EQUAL(stat(stranger_address, &about), 0);
    CU_ASSERT_EQUAL(about.st_mode & 0777, 0600);
    dmg_listener *listener = listen_at(stranger_address, DMG_STREAM_PLAIN, 1);
    const dmg_listener_options options = {
        .backend = BACKEND, .bind = stranger_address, .stream = {.token = stream_token}, .greeting_timeout_ns = 1};
    dmg_listener *second = NULL;
    CU_ASSERT_EQUAL(dmg_listener_open(&options, &second), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(access(stranger_address, F_OK), 0);
    dmg_listener_close(listener);
    CU_ASSERT_NOT_EQUAL(access(stranger_address, F_OK), 0);
}

static void addresses_are_printed_as_they_are_parsed(void)
{
    static const char *const texts[] = {"streams:@name", "streams:/a/path", "streams:127.0.0.1:77", "streams:[::1]:77"};
    static const bool locals[] = {true, true, true, true};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        dmg_stream_address address;
        char printed[DMG_ADDRESS_STRING_BYTES];
        CU_ASSERT_EQUAL_FATAL(dmg_stream_address_parse(BACKEND, texts[i], &address), DMG_OK);
        dmg_stream_address_print(BACKEND, &address, printed, sizeof printed);
        CU_ASSERT_STRING_EQUAL(printed, texts[i]);
        CU_ASSERT_EQUAL(dmg_stream_address_is_local(&address), locals[i]);
    }
    dmg_stream_address address;
    CU_ASSERT_EQUAL(dmg_stream_address_parse(BACKEND, "192.0.2.1:5", &address), DMG_OK);
    CU_ASSERT_FALSE(dmg_stream_address_is_local(&address));
    CU_ASSERT_EQUAL(dmg_stream_address_parse(BACKEND, "0.0.0.0:5", &address), DMG_OK);
    CU_ASSERT_FALSE(dmg_stream_address_is_local(&address));
    CU_ASSERT_EQUAL(dmg_stream_address_parse(BACKEND, "nowhere", &address), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_stream_address_parse(BACKEND, "@", &address), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_stream_address_parse(BACKEND, "::1:77", &address), DMG_ERR_ARGUMENT);
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(clients_connect_at_every_kind_of_address),
        DMG_TEST(refused_clients_are_counted_and_told_why),
        DMG_TEST(crowd_of_silent_strangers_expires_while_others_are_served),
        DMG_TEST(clients_that_come_at_once_only_take_turns),
        DMG_TEST(owner_is_woken_when_strangers_expire),
        DMG_TEST(noise_is_refused_and_counted),
        DMG_TEST(listener_without_descriptors_waits_for_some),
        DMG_TEST(other_users_are_refused_on_both_sides),
        DMG_TEST(path_of_a_killed_listener_is_taken_over_and_no_other),
        DMG_TEST(addresses_are_printed_as_they_are_parsed),
        {NULL, NULL},
    };
    return dmg_suite_add("listener", NULL, NULL, tests) != 0 ? 1 : dmg_suites_run(argc, argv);
}
