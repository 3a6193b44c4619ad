/*
 * Software coherence of cxl_shm, through the line cache: a memory node and two compute nodes, each with a cache of its
 * own, exchange data and messages in every way that the backend knows. Whole, the exchange is sound for every seed.
 * With one write-back, invalidation or fence left out it is not: the check fails, or a wait ends with the peer timeout.
 */
#include "devices/devices.h"
#include "unit/support/deadline.h"
#include "unit/support/suite.h"

#include "core/base/log.h"
#include "transport/cxl_shm/coherence.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SEGMENT_BYTES (UINT64_C(4) << 20)
#define PATIENT_NS    dmg_test_deadline_ns(60)
#define SHORT_NS      dmg_test_deadline_ns(0.3)
#define ROUNDS        12
#define BURST         16
#define SEEDS         4
#define ATTEMPTS_MAX  12

/* Places in the segment, each a page. */
#define DATA    (UINT64_C(1) << 16)
#define SHARED  (UINT64_C(2) << 16)
#define COUNTER (UINT64_C(3) << 16)
#define MIXED   (UINT64_C(4) << 16)
#define STILL   (UINT64_C(5) << 16)

#define DATA_BYTES  1024
#define STILL_BYTES 4096
#define LINE_BYTES  64

enum { QUESTION = DMG_MESSAGE_TYPE_FIRST };

/* A compute node. What is written, read and read in place goes through channels of its own, whose fences do not help
 * each other. */
typedef struct host {
    dmg_client *client;
    dmg_channel *messages;
    dmg_channel *writes;
    dmg_channel *reads;
    dmg_channel *mapped;
} host;

typedef struct test_scene {
    dmg_server *server;
    pthread_t thread;
    host hosts[2];
} test_scene;

static unsigned char pattern(uint64_t at, uint64_t round)
{
    return (unsigned char)((at * 31 + round * 101 + 7) * UINT64_C(2654435761) >> 13);
}

static void fill(void *bytes, uint64_t count, uint64_t round)
{
    for (uint64_t i = 0; i < count; i++) {
        ((unsigned char *)bytes)[i] = pattern(i, round);
    }
}

static bool is_filled(const void *bytes, uint64_t count, uint64_t round)
{
    for (uint64_t i = 0; i < count; i++) {
        if (((const unsigned char *)bytes)[i] != pattern(i, round)) {
            return false;
        }
    }
    return true;
}

/* ---- the processes, as threads ---- */

/* The answer is another one than the question: who sees his own bytes again has seen nothing. */
static void on_request(void *context, dmg_server *server, const dmg_request *request)
{
    (void)context;
    unsigned char answer[DMG_MESSAGE_BYTES_MAX];
    for (size_t i = 0; i < request->bytes; i++) {
        answer[i] = (unsigned char)(((const unsigned char *)request->payload)[i] ^ 0x5a);
    }
    dmg_server_reply(server, request->reply_token, DMG_OK, answer, request->bytes);
}

static void *serve(void *server)
{
    (void)dmg_server_serve(server);
    return NULL;
}

static bool host_open(const char *transport, const char *address, uint64_t timeout_ns, host *opened)
{
    const dmg_client_options options = {
        .transport = transport, .addresses = &address, .address_count = 1, .peer_timeout_ns = timeout_ns};
    return dmg_client_open(&options, &opened->client) == DMG_OK &&
           dmg_channel_open(opened->client, &opened->messages) == DMG_OK &&
           dmg_channel_open(opened->client, &opened->writes) == DMG_OK &&
           dmg_channel_open(opened->client, &opened->reads) == DMG_OK &&
           dmg_channel_open(opened->client, &opened->mapped) == DMG_OK;
}

static void host_close(host *closed)
{
    dmg_channel_close(closed->messages);
    dmg_channel_close(closed->writes);
    dmg_channel_close(closed->reads);
    dmg_channel_close(closed->mapped);
    dmg_client_close(closed->client);
}

static bool scene_open(const char *transport, uint64_t timeout_ns, test_scene *opened)
{
    memset(opened, 0, sizeof *opened);
    const dmg_server_options options = {.transport = transport,
                                        .segment = {.bytes = SEGMENT_BYTES, .numa_node = -1},
                                        .peer_timeout_ns = timeout_ns,
                                        .on_request = on_request};
    CU_ASSERT_EQUAL_FATAL(dmg_server_create(&options, &opened->server), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&opened->thread, NULL, serve, opened->server), 0);
    return host_open(transport, dmg_server_address(opened->server), timeout_ns, &opened->hosts[0]) &&
           host_open(transport, dmg_server_address(opened->server), timeout_ns, &opened->hosts[1]);
}

static void scene_close(test_scene *closed)
{
    host_close(&closed->hosts[0]);
    host_close(&closed->hosts[1]);
    dmg_server_stop(closed->server);
    pthread_join(closed->thread, NULL);
    dmg_server_destroy(closed->server);
}

/* ---- the exchange ---- */

/* A burst of messages, so that both sides look for more while some are on their way. */
static bool messages_are_answered(dmg_channel *channel, uint64_t round)
{
    static const size_t sizes[] = {0, 8, 64, 200, 1000, 300, 128, 24};
    unsigned char question[1024];
    unsigned char answers[BURST][1024];
    dmg_call calls[BURST];
    dmg_completion completion = {0};
    for (uint64_t i = 0; i < BURST; i++) {
        fill(question, sizeof question, round * BURST + i);
        calls[i] = (dmg_call){.reply = answers[i], .reply_capacity = sizeof answers[i]};
        dmg_post_call(channel, 0, QUESTION, question, sizes[i % 8], &calls[i], &completion);
    }
    bool is_sound = dmg_wait(channel, &completion) == DMG_OK;
    for (uint64_t i = 0; i < BURST && is_sound; i++) {
        is_sound = calls[i].reply_bytes == sizes[i % 8];
        for (size_t j = 0; j < calls[i].reply_bytes && is_sound; j++) {
            is_sound = (answers[i][j] ^ 0x5a) == pattern(j, round * BURST + i);
        }
    }
    return is_sound;
}

/* What one host writes, the other one reads after a message. */
static bool data_arrives(const test_scene *scene, uint64_t round)
{
    unsigned char bytes[DATA_BYTES];
    fill(bytes, sizeof bytes, round);
    return dmg_write(scene->hosts[0].writes, bytes, dmg_address_make(0, DATA), sizeof bytes) == DMG_OK &&
           messages_are_answered(scene->hosts[0].messages, round) &&
           dmg_read(scene->hosts[1].reads, dmg_address_make(0, DATA), bytes, sizeof bytes) == DMG_OK &&
           is_filled(bytes, sizeof bytes, round);
}

/* Two hosts write different bytes of the same lines, of any alignment. */
static bool neighbours_keep_their_bytes(const test_scene *scene, uint64_t round)
{
    const dmg_address place = dmg_address_make(0, SHARED);
    unsigned char halves[2][100];
    unsigned char both[200];
    for (int i = 0; i < 2; i++) {
        fill(halves[i], sizeof halves[i], 2 * round + (uint64_t)i);
        if (dmg_write(scene->hosts[i].writes, halves[i], place + 100 * (uint64_t)i, sizeof halves[i]) != DMG_OK) {
            return false;
        }
    }
    return dmg_read(scene->hosts[round % 2].reads, place, both, sizeof both) == DMG_OK &&
           is_filled(both, 100, 2 * round) && is_filled(both + 100, 100, 2 * round + 1);
}

static bool counting_counts(const test_scene *scene, uint64_t round)
{
    uint64_t seen[2] = {0};
    uint64_t observed = 0;
    for (int i = 0; i < 2; i++) {
        if (dmg_faa64(scene->hosts[i].writes, dmg_address_make(0, COUNTER), 1, &seen[i]) != DMG_OK) {
            return false;
        }
    }
    return seen[0] == 2 * round && seen[1] == 2 * round + 1 &&
           dmg_cas64(scene->hosts[0].writes, dmg_address_make(0, COUNTER + LINE_BYTES), round, round + 1, &observed) ==
               DMG_OK &&
           observed == round;
}

/* A line that a compute node writes whole, the memory node adds to, and another compute node reads. */
static bool node_and_hosts_agree(const test_scene *scene, uint64_t round)
{
    const dmg_address place = dmg_address_make(0, MIXED);
    uint64_t words[LINE_BYTES / 8];
    uint64_t seen = 0;
    for (uint64_t i = 0; i < LINE_BYTES / 8; i++) {
        words[i] = round * 1000 + i;
    }
    if (dmg_write(scene->hosts[round % 2].writes, words, place, sizeof words) != DMG_OK ||
        dmg_faa64(scene->hosts[1].writes, place, 5, &seen) != DMG_OK || seen != round * 1000 ||
        dmg_read(scene->hosts[0].reads, place, words, sizeof words) != DMG_OK ||
        /* It may fetch the line beside, too. */
        dmg_faa64(scene->hosts[1].writes, place + LINE_BYTES, 1, &seen) != DMG_OK) {
        return false;
    }
    return seen == round && words[0] == round * 1000 + 5 && words[7] == round * 1000 + 7;
}

static bool what_is_still_is_read_where_it_is_mapped(const test_scene *scene, uint64_t round)
{
    const dmg_address place = dmg_address_make(0, STILL);
    const host *reader = &scene->hosts[1];
    unsigned char bytes[STILL_BYTES];
    fill(bytes, sizeof bytes, round);
    if (dmg_write(scene->hosts[0].writes, bytes, place, sizeof bytes) != DMG_OK ||
        !messages_are_answered(scene->hosts[0].messages, round)) {
        return false;
    }
    dmg_client_acquire(reader->client);
    dmg_channel_charge_read(reader->mapped, place, sizeof bytes);
    return is_filled(dmg_client_pointer(reader->client, place, sizeof bytes), sizeof bytes, round);
}

static bool is_sound(const char *transport, uint64_t timeout_ns)
{
    test_scene scene;
    bool sound = scene_open(transport, timeout_ns, &scene);
    for (uint64_t round = 0; round < ROUNDS && sound; round++) {
        sound = data_arrives(&scene, round) && neighbours_keep_their_bytes(&scene, round) &&
                counting_counts(&scene, round) && node_and_hosts_agree(&scene, round) &&
                what_is_still_is_read_where_it_is_mapped(&scene, round) &&
                messages_are_answered(scene.hosts[1].messages, round + ROUNDS);
    }
    scene_close(&scene);
    return sound;
}

/* ---- tests ---- */

static void exchange_is_sound_on_hardware_and_through_line_caches(void)
{
    CU_ASSERT_TRUE(is_sound("cxl_shm:coherence=coherent", PATIENT_NS));
    CU_ASSERT_TRUE(is_sound("cxl_shm:coherence=none", PATIENT_NS));
    for (int seed = 0; seed < SEEDS; seed++) {
        char transport[64];
        snprintf(transport, sizeof transport, "cxl_shm:coherence=none,line-cache=%d", seed);
        bool sound = is_sound(transport, PATIENT_NS);
        if (!sound) {
            printf("\n    with seed %d: %s\n", seed, dmg_error_message());
        }
        CU_ASSERT_TRUE(sound);
    }
}

/*
 * Sites whose absence costs time and nothing else, so that no answer shows it.
 *
 * The line that says that a side sleeps: without it a wake-up is lost, and the sleep ends by itself after milliseconds.
 * The fences around an entry: it is written, or seen, a little later, at the next fence of that thread; there is one in
 * everything that a thread does while it waits for messages. What a memory node's program writes has no fence of its
 * own: that of the answer is its fence.
 */
static bool costs_time_only(uint32_t site)
{
    static const uint32_t sites[] = {
        DMG_SHM_ASLEEP_WRITE * DMG_SHM_STEPS + DMG_SHM_LINES, DMG_SHM_ASLEEP_WRITE * DMG_SHM_STEPS + DMG_SHM_FENCE,
        DMG_SHM_ASLEEP_READ * DMG_SHM_STEPS + DMG_SHM_LINES,  DMG_SHM_ASLEEP_READ * DMG_SHM_STEPS + DMG_SHM_FENCE,
        DMG_SHM_ENTRY_WRITE * DMG_SHM_STEPS + DMG_SHM_FENCE,  DMG_SHM_ENTRY_READ * DMG_SHM_STEPS + DMG_SHM_FENCE,
        DMG_SHM_NODE_WRITE * DMG_SHM_STEPS + DMG_SHM_FENCE};
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++) {
        if (sites[i] == site) {
            return true;
        }
    }
    return false;
}

static void whatever_is_left_out_is_noticed(void)
{
    char name[32];
    for (uint32_t site = 0; dmg_shm_site_name(site, name); site++) {
        if (costs_time_only(site)) {
            continue;
        }
        int attempts = 0;
        bool is_noticed = false;
        while (!is_noticed && attempts < ATTEMPTS_MAX) {
            char transport[96];
            snprintf(transport, sizeof transport, "cxl_shm:coherence=none,line-cache=%d,leave-out=%s", attempts++,
                     name);
            is_noticed = !is_sound(transport, SHORT_NS);
        }
        if (!is_noticed) {
            printf("\n    nothing failed without %s\n", name);
        }
        CU_ASSERT_TRUE(is_noticed);
    }
}

/* ---- hosts that share nothing but the memory ---- */

#define SHARED_FILE_BYTES (UINT64_C(16) << 20)

/* Memory as a virtual machine's host makes it for its guests: a file that is there, of a size that it keeps. */
static void make_file(const char *name, uint64_t bytes, char path[64])
{
    snprintf(path, 64, "/dev/shm/dmgraph-test-%d-%s", (int)getpid(), name);
    int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CU_ASSERT_TRUE_FATAL(descriptor >= 0);
    CU_ASSERT_EQUAL_FATAL(ftruncate(descriptor, (off_t)bytes), 0);
    CU_ASSERT_EQUAL_FATAL(pwrite(descriptor, "what was left", 13, DATA), 13);
    close(descriptor);
}

static void hosts_meet_by_tcp_in_memory_that_each_of_them_opens(void)
{
    static const char *const settings[] = {"coherence=coherent", "coherence=none", "coherence=none,line-cache=1"};
    char path[64];
    make_file("shared", SHARED_FILE_BYTES, path);
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        char transport[160];
        snprintf(transport, sizeof transport, "cxl_shm:%s,port=0,path=%s", settings[i], path);
        bool sound = is_sound(transport, PATIENT_NS);
        if (!sound) {
            printf("\n    over %s: %s\n", transport, dmg_error_message());
        }
        CU_ASSERT_TRUE(sound);
        struct stat about;
        CU_ASSERT_EQUAL(stat(path, &about), 0); /* it was there before, and stays */
        CU_ASSERT_EQUAL(about.st_size, SHARED_FILE_BYTES);
    }
    unlink(path);
}

static void memory_node_starts_on_the_port_of_one_that_has_just_ended(void)
{
    char path[64];
    char transport[160];
    test_scene scene;
    make_file("again", SHARED_FILE_BYTES, path);
    snprintf(transport, sizeof transport, "cxl_shm:port=0,path=%s", path);
    CU_ASSERT_TRUE_FATAL(scene_open(transport, PATIENT_NS, &scene));
    snprintf(transport, sizeof transport, "cxl_shm:port=%s,path=%s", strrchr(dmg_server_address(scene.server), ':') + 1,
             path);
    /* It closes its connections first, so that they keep the port. */
    dmg_server_stop(scene.server);
    pthread_join(scene.thread, NULL);
    dmg_server_destroy(scene.server);
    host_close(&scene.hosts[0]);
    host_close(&scene.hosts[1]);
    CU_ASSERT_TRUE_FATAL(scene_open(transport, PATIENT_NS, &scene));
    scene_close(&scene);
    unlink(path);
}

static void memory_that_is_not_the_pools_is_refused(void)
{
    char path[64];
    char other[64];
    char small[64];
    char transport[160];
    make_file("shared", SHARED_FILE_BYTES, path);
    make_file("other", SHARED_FILE_BYTES, other);
    make_file("small", SEGMENT_BYTES, small);
    snprintf(transport, sizeof transport, "cxl_shm:port=0,path=%s", path);
    dmg_server_options options = {.transport = transport,
                                  .segment = {.bytes = SEGMENT_BYTES, .numa_node = -1},
                                  .peer_timeout_ns = PATIENT_NS,
                                  .on_request = on_request};
    dmg_server *server;
    dmg_server *second;
    pthread_t thread;
    CU_ASSERT_EQUAL_FATAL(dmg_server_create(&options, &server), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, serve, server), 0);
    CU_ASSERT_EQUAL(dmg_server_create(&options, &second), DMG_ERR_EXISTS);
    const char *const wrong[] = {other, small, "/dev/shm/dmgraph-nothing"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        host guest = {0};
        snprintf(transport, sizeof transport, "cxl_shm:path=%s", wrong[i]);
        CU_ASSERT_FALSE(host_open(transport, dmg_server_address(server), PATIENT_NS, &guest));
        CU_ASSERT_PTR_NULL(guest.client);
        CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), wrong[i]));
    }
    host guest = {0};
    CU_ASSERT_TRUE(host_open("cxl_shm", dmg_server_address(server), PATIENT_NS, &guest)); /* by the node's own path */
    host_close(&guest);
    dmg_server_stop(server);
    pthread_join(thread, NULL);
    dmg_server_destroy(server);
    snprintf(transport, sizeof transport, "cxl_shm:port=0,path=%s", small);
    CU_ASSERT_EQUAL(dmg_server_create(&options, &second), DMG_ERR_LIMIT);
    options.transport = "cxl_shm:port=0";
    CU_ASSERT_EQUAL(dmg_server_create(&options, &second), DMG_ERR_ARGUMENT);
    unlink(path);
    unlink(other);
    unlink(small);
}

static void lines_are_counted(void)
{
    static const char *const transports[] = {"cxl_shm", "cxl_shm:coherence=none"};
    for (int i = 0; i < 2; i++) {
        test_scene scene;
        unsigned char bytes[DATA_BYTES] = {0};
        uint64_t lines = i == 0 ? 0 : 1;
        CU_ASSERT_TRUE_FATAL(scene_open(transports[i], PATIENT_NS, &scene));
        dmg_channel *channel = scene.hosts[0].writes;
        const dmg_counters *counters = dmg_channel_counters(channel);
        CU_ASSERT_EQUAL(dmg_write(channel, bytes, dmg_address_make(0, DATA), 640), DMG_OK);
        CU_ASSERT_EQUAL(counters->lines_written_back, 10 * lines);
        /* The line in the middle; the memory node has the other two. */
        CU_ASSERT_EQUAL(dmg_write(channel, bytes, dmg_address_make(0, DATA + 60), 70), DMG_OK);
        CU_ASSERT_EQUAL(counters->lines_written_back, 11 * lines);
        CU_ASSERT_EQUAL(counters->lines_invalidated, 0);
        CU_ASSERT_EQUAL(dmg_read(channel, dmg_address_make(0, DATA + 60), bytes, 70), DMG_OK);
        CU_ASSERT_EQUAL(counters->lines_invalidated, 3 * lines);
        dmg_channel_charge_read(channel, dmg_address_make(0, STILL + 100), 8); /* 512 bytes at once, and once */
        CU_ASSERT_EQUAL(counters->lines_invalidated, (3 + 8) * lines);
        dmg_channel_charge_read(channel, dmg_address_make(0, STILL), STILL_BYTES);
        CU_ASSERT_EQUAL(counters->lines_invalidated, (3 + 64) * lines);
        dmg_client_acquire(scene.hosts[0].client);
        dmg_channel_charge_read(channel, dmg_address_make(0, STILL + 100), 8);
        CU_ASSERT_EQUAL(counters->lines_invalidated, (3 + 64 + 8) * lines);
        CU_ASSERT_EQUAL(counters->message_lines > 0, lines > 0);
        scene_close(&scene);
    }
}

static void leaving_out_is_for_line_caches_and_sites_that_exist(void)
{
    static const char *const wrong[] = {"cxl_shm:leave-out=atomics", "cxl_shm:coherence=none,leave-out=atomics",
                                        "cxl_shm:coherence=none,line-cache=1,leave-out=nothing",
                                        "cxl_shm:coherence=coherent,line-cache=1"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        dmg_server *server;
        dmg_server_options options = {.transport = wrong[i], .segment = {.bytes = SEGMENT_BYTES, .numa_node = -1}};
        CU_ASSERT_EQUAL(dmg_server_create(&options, &server), DMG_ERR_ARGUMENT);
        CU_ASSERT_PTR_NULL(server);
    }
}

static const dmg_test tests[] = {
    DMG_TEST(exchange_is_sound_on_hardware_and_through_line_caches),
    DMG_TEST(whatever_is_left_out_is_noticed),
    DMG_TEST(hosts_meet_by_tcp_in_memory_that_each_of_them_opens),
    DMG_TEST(memory_node_starts_on_the_port_of_one_that_has_just_ended),
    DMG_TEST(memory_that_is_not_the_pools_is_refused),
    DMG_TEST(lines_are_counted),
    DMG_TEST(leaving_out_is_for_line_caches_and_sites_that_exist),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return dmg_suite_add("software coherence", NULL, NULL, tests) != 0 || dmg_suites_run(argc, argv);
}
