/*
 * Sessions over every transport: answers on graphs whose answers are known, on a random one against the serial computations, ranks that share
 * a session, and what goes wrong.
 *
 * The ranks are threads of the test; the first serves the memory nodes.
 */
#include "suite.h"

#include "algorithms/algorithm.h"
#include "dmgraph/session.h"
#include "formats/graph_reader.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_BYTES (UINT64_C(8) << 20)
#define RANKS_MAX    3

static const char *transport;

/* Ids with gaps, weights, two components, a vertex that only arcs lead to. */
static const char small_graph[] = "# a small graph\n10 20 1\n10 30 4\n20 30 2\n30 40 1\n50 60 7\n";
#define SMALL_VERTICES 6

/* ---- helpers ---- */

typedef struct scratch_file {
    char path[64];
} scratch_file;

static scratch_file file_with(const char *text)
{
    scratch_file file = {.path = "/tmp/dmgraph-session-XXXXXX"};
    int descriptor = mkstemp(file.path);
    CU_ASSERT_TRUE_FATAL(descriptor >= 0);
    size_t length = strlen(text);
    CU_ASSERT_EQUAL_FATAL(write(descriptor, text, length), (ssize_t)length);
    close(descriptor);
    return file;
}

static void remove_file(const scratch_file *file)
{
    unlink(file->path);
}

/* Some hundred vertices with hubs, ids with gaps and integer weights. */
static scratch_file random_file(unsigned long long seed)
{
    size_t capacity = 400000;
    char *text = malloc(capacity);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    size_t used = 0;
    uint64_t state = seed | 1;
    for (int arc = 0; arc < 9000; arc++) {
        uint64_t drawn[3];
        for (int i = 0; i < 3; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            drawn[i] = state >> 33;
        }
        uint64_t source = arc % 9 == 0 ? 3 : drawn[0] % 1500 * 7;
        used += (size_t)snprintf(text + used, capacity - used, "%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", source,
                                 drawn[1] % 1500 * 7, drawn[2] % 100);
    }
    scratch_file file = file_with(text);
    free(text);
    return file;
}

static void expect_at(int line, dmg_status status, dmg_status expected, const char *words)
{
    if (status != expected || (words && !strstr(dmg_error_message(), words))) {
        printf("\n    line %d: %s, wanted %s: %s\n", line, dmg_status_name(status), dmg_status_name(expected),
               status == DMG_OK ? "" : dmg_error_message());
        CU_FAIL("a call ended otherwise than it should");
    }
}
#define EXPECT(expected, call)              expect_at(__LINE__, call, expected, NULL)
#define EXPECT_ERROR(expected, words, call) expect_at(__LINE__, call, expected, words)

static dmg_session_options small_options(void)
{
    return (dmg_session_options){.transport = transport, .memory_nodes = 2, .memory_bytes = MEMORY_BYTES, .threads = 2};
}

static dmg_session *open_session(void)
{
    const dmg_session_options options = small_options();
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    return session;
}

static dmg_session *open_with(const char *text, const dmg_load_options *options)
{
    dmg_session *session = open_session();
    scratch_file file = file_with(text);
    EXPECT(DMG_OK, dmg_session_load(session, file.path, options));
    remove_file(&file);
    return session;
}

/* ---- answers ---- */

static void bfs_gives_depths_and_parents(void)
{
    dmg_session *session = open_with(small_graph, NULL);
    const dmg_run_parameters parameters = {.has_source = true, .source = 10};
    dmg_answer answer;
    EXPECT(DMG_OK, dmg_session_run(session, "bfs", &parameters, &answer));
    CU_ASSERT_EQUAL(answer.value_bytes, sizeof(uint64_t));
    CU_ASSERT_EQUAL(answer.source, 10);
    CU_ASSERT_TRUE(answer.iterations >= 2);
    uint64_t values[SMALL_VERTICES];
    EXPECT(DMG_OK, dmg_session_values(session, 0, SMALL_VERTICES, sizeof *values, values));
    static const uint32_t depths[] = {0, 1, 1, 2};
    static const uint32_t parents[] = {0, 0, 0, 2};
    for (int vertex = 0; vertex < 4; vertex++) {
        CU_ASSERT_EQUAL(dmg_bfs_depth(values[vertex]), depths[vertex]);
        CU_ASSERT_EQUAL(dmg_bfs_parent(values[vertex]), parents[vertex]);
    }
    CU_ASSERT_EQUAL(values[4], DMG_BFS_UNREACHED);
    CU_ASSERT_EQUAL(values[5], DMG_BFS_UNREACHED);
    dmg_session_close(session);
}

static void cc_gives_the_smallest_vertex_of_each_component(void)
{
    dmg_session *session = open_with(small_graph, NULL);
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    uint32_t values[SMALL_VERTICES];
    EXPECT(DMG_OK, dmg_session_values(session, 0, SMALL_VERTICES, sizeof *values, values));
    static const uint32_t components[SMALL_VERTICES] = {0, 0, 0, 0, 4, 4};
    CU_ASSERT_EQUAL(memcmp(values, components, sizeof values), 0);
    dmg_session_close(session);
}

static void sssp_gives_distances(void)
{
    dmg_session *session = open_with(small_graph, NULL);
    double values[SMALL_VERTICES];
    const dmg_run_parameters parameters = {.has_source = true, .source = 10};
    EXPECT(DMG_OK, dmg_session_run(session, "sssp", &parameters, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 0, SMALL_VERTICES, sizeof *values, values));
    CU_ASSERT_EQUAL(values[0], 0);
    CU_ASSERT_EQUAL(values[1], 1);
    CU_ASSERT_EQUAL(values[2], 3);
    CU_ASSERT_EQUAL(values[3], 4);
    CU_ASSERT_TRUE(isinf(values[4]) && isinf(values[5]));
    dmg_session_close(session);
}

static void without_weights_sssp_counts_arcs(void)
{
    const dmg_load_options options = {.ignore_weights = true, .out_lists_only = true};
    dmg_session *session = open_with(small_graph, &options);
    double value;
    const dmg_run_parameters parameters = {.has_source = true, .source = 10};
    EXPECT(DMG_OK, dmg_session_run(session, "sssp", &parameters, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 3, 1, sizeof value, &value));
    CU_ASSERT_EQUAL(value, 2);
    dmg_session_close(session);
}

/* Of two vertices with one arc, the first has rank 1 / (2 + d): its rank is (1-d)/2 + d*x/2, x being the rank of the other. */
static void pagerank_gives_ranks_and_takes_its_parameters(void)
{
    dmg_session *session = open_with("1 2\n", NULL);
    dmg_answer answer;
    EXPECT(DMG_OK, dmg_session_run(session, "pagerank", NULL, &answer));
    CU_ASSERT_TRUE(answer.residual < 1e-9);
    double ranks[2];
    EXPECT(DMG_OK, dmg_session_values(session, 0, 2, sizeof *ranks, ranks));
    CU_ASSERT_DOUBLE_EQUAL(ranks[0], 1 / 2.85, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(ranks[0] + ranks[1], 1, 1e-6);

    const dmg_run_parameters damped = {.damping = 0.5, .tolerance = 1e-12};
    EXPECT(DMG_OK, dmg_session_run(session, "pagerank", &damped, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 0, 1, sizeof *ranks, ranks));
    CU_ASSERT_DOUBLE_EQUAL(ranks[0], 1 / 2.5, 1e-9);

    const dmg_run_parameters counted = {.iterations_max = 3};
    EXPECT(DMG_OK, dmg_session_run(session, "pagerank", &counted, &answer));
    CU_ASSERT_EQUAL(answer.iterations, 3);
    dmg_session_close(session);
}

static void edges_can_be_undirected(void)
{
    const dmg_load_options options = {.direction = DMG_LOAD_UNDIRECTED};
    dmg_session *session = open_with(small_graph, &options);
    CU_ASSERT_EQUAL(dmg_session_arc_count(session), 10);
    uint64_t value;
    const dmg_run_parameters parameters = {.has_source = true, .source = 40};
    EXPECT(DMG_OK, dmg_session_run(session, "bfs", &parameters, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 0, 1, sizeof value, &value));
    CU_ASSERT_EQUAL(dmg_bfs_depth(value), 2);
    dmg_session_close(session);
}

static void repeats_and_loops_can_be_dropped(void)
{
    const dmg_load_options options = {.drop_repeats = true, .drop_loops = true};
    dmg_session *session = open_with("1 2\n1 2\n2 2\n", &options);
    CU_ASSERT_EQUAL(dmg_session_arc_count(session), 1);
    dmg_session_close(session);
}

static void a_run_without_a_source_starts_at_the_first_vertex_with_an_arc(void)
{
    dmg_session *session = open_with("9 3\n5 3\n", NULL);
    dmg_answer answer;
    EXPECT(DMG_OK, dmg_session_run(session, "bfs", NULL, &answer));
    CU_ASSERT_EQUAL(answer.source, 5);
    dmg_session_close(session);
}

static void an_empty_graph_has_empty_answers(void)
{
    dmg_session *session = open_with("# nothing\n", NULL);
    CU_ASSERT_EQUAL(dmg_session_vertex_count(session), 0);
    for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm; algorithm++) {
        EXPECT(DMG_OK, dmg_session_run(session, (*algorithm)->name, NULL, NULL));
        EXPECT(DMG_OK, dmg_session_values(session, 0, 0, (*algorithm)->value_bytes, NULL));
    }
    uint64_t vertex;
    EXPECT_ERROR(DMG_ERR_NOT_FOUND, "id 1", dmg_session_find(session, 1, &vertex));
    dmg_session_close(session);
}

/* ---- ids ---- */

static void ids_with_gaps_are_found_and_given_back(void)
{
    scratch_file file = random_file(dmg_test_seed());
    dmg_graph graph;
    EXPECT(DMG_OK, dmg_graph_read(file.path, NULL, &graph, NULL));
    dmg_session *session = open_session();
    EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
    uint64_t count = dmg_session_vertex_count(session);
    CU_ASSERT_EQUAL_FATAL(count, graph.vertex_count);
    CU_ASSERT_EQUAL(dmg_session_arc_count(session), graph.arc_count);
    uint64_t *ids = calloc(count, sizeof *ids);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ids);
    EXPECT(DMG_OK, dmg_session_ids(session, 0, count, ids));
    uint64_t wrong = 0;
    for (uint64_t vertex = 0; vertex < count; vertex++) {
        uint64_t found = UINT64_MAX;
        wrong += ids[vertex] != dmg_graph_id(&graph, (uint32_t)vertex);
        wrong += dmg_session_find(session, ids[vertex], &found) != DMG_OK || found != vertex;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    uint64_t vertex = 77;
    EXPECT_ERROR(DMG_ERR_NOT_FOUND, "id 1", dmg_session_find(session, 1, &vertex));
    EXPECT_ERROR(DMG_ERR_NOT_FOUND, "", dmg_session_find(session, UINT64_MAX, &vertex));
    CU_ASSERT_EQUAL(vertex, 77);
    free(ids);
    dmg_session_close(session);
    dmg_graph_close(&graph);
    remove_file(&file);
}

static void ids_without_gaps_are_found_and_given_back(void)
{
    dmg_session *session = open_with("5 6\n6 7\n", NULL);
    uint64_t ids[2];
    uint64_t vertex;
    EXPECT(DMG_OK, dmg_session_ids(session, 1, 2, ids));
    CU_ASSERT_EQUAL(ids[0], 6);
    CU_ASSERT_EQUAL(ids[1], 7);
    EXPECT(DMG_OK, dmg_session_find(session, 7, &vertex));
    CU_ASSERT_EQUAL(vertex, 2);
    EXPECT(DMG_ERR_NOT_FOUND, dmg_session_find(session, 8, &vertex));
    EXPECT(DMG_ERR_NOT_FOUND, dmg_session_find(session, 4, &vertex));
    dmg_session_close(session);
}

/* ---- one graph at a time ---- */

static void loading_again_replaces_the_graph(void)
{
    dmg_session *session = open_with(small_graph, NULL);
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    scratch_file file = file_with("1 2\n");
    EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
    CU_ASSERT_EQUAL(dmg_session_vertex_count(session), 2);
    uint32_t value;
    EXPECT_ERROR(DMG_ERR_ARGUMENT, "run an algorithm first", dmg_session_values(session, 0, 1, sizeof value, &value));
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 1, 1, sizeof value, &value));
    CU_ASSERT_EQUAL(value, 0);
    EXPECT(DMG_ERR_IO, dmg_session_load(session, "/nonexistent/graph", NULL));
    CU_ASSERT_EQUAL(dmg_session_vertex_count(session), 0);
    EXPECT_ERROR(DMG_ERR_ARGUMENT, "load one first", dmg_session_run(session, "cc", NULL, NULL));
    remove_file(&file);
    dmg_session_close(session);
}

/* 100 runs and 20 loads of what takes about 1 MiB, in 16 MiB. */
static void many_runs_and_loads_fit_where_one_does(void)
{
    scratch_file file = random_file(5);
    const dmg_session_options options = {.transport = transport, .memory_bytes = UINT64_C(16) << 20, .threads = 1};
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    for (int load = 0; load < 20; load++) {
        EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
        for (int run = 0; run < 5; run++) {
            const dmg_run_parameters parameters = {.iterations_max = 1};
            EXPECT(DMG_OK, dmg_session_run(session, "pagerank", &parameters, NULL));
        }
    }
    dmg_session_close(session);
    remove_file(&file);
}

/* ---- errors ---- */

static void a_file_that_does_not_exist_is_named(void)
{
    dmg_session *session = open_session();
    EXPECT_ERROR(DMG_ERR_IO, "/nonexistent/graph.txt", dmg_session_load(session, "/nonexistent/graph.txt", NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_load(session, NULL, NULL));
    dmg_session_close(session);
}

static void a_malformed_file_is_refused_with_its_line(void)
{
    dmg_session *session = open_session();
    scratch_file file = file_with("1 2\n3 x\n");
    EXPECT_ERROR(DMG_ERR_FORMAT, ":2:", dmg_session_load(session, file.path, NULL));
    remove_file(&file);
    dmg_session_close(session);
}

static void wrong_requests_are_refused_and_leave_the_session_usable(void)
{
    dmg_session *session = open_with(small_graph, NULL);
    uint64_t values[SMALL_VERTICES];
    EXPECT_ERROR(DMG_ERR_NOT_FOUND, "no algorithm 'dijkstra'; there are bfs, cc",
                 dmg_session_run(session, "dijkstra", NULL, NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_run(session, NULL, NULL, NULL));
    const dmg_run_parameters nowhere = {.has_source = true, .source = 11};
    EXPECT_ERROR(DMG_ERR_NOT_FOUND, "id 11", dmg_session_run(session, "bfs", &nowhere, NULL));
    static const dmg_run_parameters senseless[] = {{.damping = 1},    {.damping = -0.1},  {.damping = NAN},
                                                   {.tolerance = -1}, {.tolerance = NAN}, {.tolerance = INFINITY}};
    for (size_t i = 0; i < sizeof senseless / sizeof *senseless; i++) {
        EXPECT(DMG_ERR_ARGUMENT, dmg_session_run(session, "pagerank", &senseless[i], NULL));
    }
    EXPECT_ERROR(DMG_ERR_ARGUMENT, "run an algorithm first", dmg_session_values(session, 0, 1, 8, values));
    EXPECT(DMG_OK, dmg_session_run(session, "bfs", NULL, NULL));
    EXPECT_ERROR(DMG_ERR_ARGUMENT, "8 bytes", dmg_session_values(session, 0, 1, 4, values));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_values(session, 0, SMALL_VERTICES + 1, 8, values));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_values(session, 2, UINT64_MAX, 8, values));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_values(session, UINT64_MAX, 2, 8, values));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_values(session, 0, 1, 8, NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_ids(session, SMALL_VERTICES, 1, values));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_ids(session, 0, 1, NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_find(session, 10, NULL));
    EXPECT(DMG_OK, dmg_session_values(session, 0, SMALL_VERTICES, 8, values));
    CU_ASSERT_EQUAL(dmg_bfs_depth(values[3]), 2);
    dmg_session_close(session);
}

static void cc_needs_both_directions_of_a_directed_graph(void)
{
    dmg_load_options options = {.out_lists_only = true};
    dmg_session *session = open_with(small_graph, &options);
    EXPECT_ERROR(DMG_ERR_ARGUMENT, "out_lists_only", dmg_session_run(session, "cc", NULL, NULL));
    EXPECT(DMG_OK, dmg_session_run(session, "pagerank", NULL, NULL));
    dmg_session_close(session);
    options.direction = DMG_LOAD_UNDIRECTED;
    session = open_with(small_graph, &options);
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    dmg_session_close(session);
}

static void sssp_refuses_negative_weights_and_names_the_line(void)
{
    dmg_session *session = open_with("1 2 3\n2 3 -4\n", NULL);
    EXPECT_ERROR(DMG_ERR_FORMAT, ":2: negative weight", dmg_session_run(session, "sssp", NULL, NULL));
    EXPECT(DMG_OK, dmg_session_run(session, "bfs", NULL, NULL));
    dmg_session_close(session);
}

static void a_pool_that_is_too_small_is_an_error_of_memory(void)
{
    size_t capacity = 2000000;
    char *text = malloc(capacity);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    size_t used = 0;
    for (int arc = 0; arc < 60000; arc++) {
        used += (size_t)snprintf(text + used, capacity - used, "%d %d\n", arc, arc + 1);
    }
    scratch_file file = file_with(text);
    free(text);
    const dmg_session_options options = {.transport = transport, .memory_bytes = UINT64_C(2) << 20, .threads = 1};
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    EXPECT_ERROR(DMG_ERR_MEMORY, "(memory_bytes)", dmg_session_load(session, file.path, NULL));
    remove_file(&file);
    file = file_with("1 2\n");
    EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    remove_file(&file);
    dmg_session_close(session);
}

static void a_cache_that_is_too_small_is_an_error_of_limits(void)
{
    dmg_session_options options = small_options();
    options.cache_bytes = 1000;
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    scratch_file file = file_with(small_graph);
    EXPECT(DMG_ERR_LIMIT, dmg_session_load(session, file.path, NULL));
    remove_file(&file);
    dmg_session_close(session);
}

static void options_that_make_no_sense_are_refused(void)
{
    static const char *const addresses[] = {"somewhere", NULL};
    const struct {
        dmg_session_options options;
        dmg_status status;
    } cases[] = {
        {{.transport = "carrier-pigeon"}, DMG_ERR_ARGUMENT},
        {{.transport = ""}, DMG_ERR_ARGUMENT},
        {{.memory_nodes = DMG_SESSION_MEMORY_NODES_MAX + 1}, DMG_ERR_LIMIT},
        {{.memory_bytes = UINT64_MAX}, DMG_ERR_ARGUMENT},
        {{.rank = 1}, DMG_ERR_ARGUMENT},
        {{.rank = 2, .size = 2}, DMG_ERR_ARGUMENT},
        {{.size = 65}, DMG_ERR_LIMIT},
        {{.threads = 65}, DMG_ERR_LIMIT},
        {{.name = ""}, DMG_ERR_ARGUMENT},
        {{.name = "a name that is longer than thirty-one characters"}, DMG_ERR_ARGUMENT},
        {{.address_count = 1}, DMG_ERR_ARGUMENT},
        {{.addresses = addresses}, DMG_ERR_ARGUMENT},
        {{.addresses = addresses, .address_count = 2}, DMG_ERR_ARGUMENT},
        {{.addresses = addresses, .address_count = 1, .memory_nodes = 1}, DMG_ERR_ARGUMENT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dmg_session_options options = cases[i].options;
        options.transport = options.transport ? options.transport : transport;
        dmg_session *session = (dmg_session *)&options;
        dmg_status status = dmg_session_open(&options, &session);
        if (status != cases[i].status) {
            printf("\n    case %zu: %s: %s\n", i, dmg_status_name(status), dmg_error_message());
        }
        CU_ASSERT_EQUAL(status, cases[i].status);
        CU_ASSERT_PTR_NULL(session);
    }
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_open(NULL, NULL));
    dmg_session *session = open_session();
    const dmg_load_options sideways = {.direction = (dmg_load_direction)3};
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_load(session, "/dev/null", &sideways));
    dmg_session_close(session);
}

static void nothing_is_asked_of_no_session(void)
{
    uint64_t number;
    dmg_session_close(NULL);
    CU_ASSERT_PTR_NULL(dmg_session_address(NULL, 0));
    CU_ASSERT_EQUAL(dmg_session_vertex_count(NULL), 0);
    CU_ASSERT_EQUAL(dmg_session_arc_count(NULL), 0);
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_load(NULL, "graph", NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_run(NULL, "bfs", NULL, NULL));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_ids(NULL, 0, 1, &number));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_find(NULL, 0, &number));
    EXPECT(DMG_ERR_ARGUMENT, dmg_session_values(NULL, 0, 1, 8, &number));
}

/* ---- ranks that share a session ---- */

struct rank;
typedef dmg_status (*rank_work)(struct rank *rank, dmg_session *session);

struct rank {
    uint32_t index;
    uint32_t size;
    const char *addresses[2];
    const char *path;
    rank_work work;
    dmg_session *session;
    dmg_status status;
    char sentence[512];
    uint64_t wrong;
};

static const uint8_t token[DMG_SESSION_TOKEN_BYTES] = {7, 7, 7};

static dmg_session *open_rank(const struct rank *rank)
{
    dmg_session_options options = {.transport = transport,
                                   .name = "shared",
                                   .rank = rank->index,
                                   .size = rank->size,
                                   .threads = 1,
                                   .peer_timeout_ns = UINT64_C(60000000000)};
    memcpy(options.token, token, sizeof token);
    if (rank->index == 0) {
        options.memory_nodes = 2;
        options.memory_bytes = MEMORY_BYTES;
    } else {
        options.addresses = rank->addresses;
        options.address_count = 2;
    }
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &session));
    return session;
}

static void *rank_main(void *argument)
{
    struct rank *rank = argument;
    rank->session = rank->session ? rank->session : open_rank(rank);
    rank->status = rank->session ? rank->work(rank, rank->session) : DMG_ERR_INTERNAL;
    snprintf(rank->sentence, sizeof rank->sentence, "%s", rank->status == DMG_OK ? "" : dmg_error_message());
    return NULL;
}

/* All ranks do this work; then their sessions are closed, the first one last. */
static void share(uint32_t size, const char *path, rank_work work, struct rank *ranks)
{
    pthread_t threads[RANKS_MAX];
    for (uint32_t i = 0; i < size; i++) {
        ranks[i] = (struct rank){.index = i, .size = size, .path = path, .work = work};
    }
    ranks[0].session = open_rank(&ranks[0]);
    CU_ASSERT_PTR_NOT_NULL_FATAL(ranks[0].session);
    for (uint32_t i = 0; i < size; i++) {
        ranks[i].addresses[0] = dmg_session_address(ranks[0].session, 0);
        ranks[i].addresses[1] = dmg_session_address(ranks[0].session, 1);
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, rank_main, &ranks[i]), 0);
    }
    for (uint32_t i = size; i-- > 0;) {
        pthread_join(threads[i], NULL);
    }
    for (uint32_t i = size; i-- > 0;) {
        dmg_session_close(ranks[i].session);
    }
}

/* The answer of one algorithm as this rank reads it, against the serial one. */
static dmg_status check_answer(struct rank *rank, dmg_session *session, const dmg_graph *graph,
                               const dmg_algorithm *algorithm)
{
    const dmg_run_parameters parameters = {.has_source = true, .source = 3};
    dmg_status status = dmg_session_run(session, algorithm->name, &parameters, NULL);
    if (status != DMG_OK) {
        return status;
    }
    const dmg_algorithm_options options = {
        .source = dmg_graph_find(graph, parameters.source), .tolerance = -1, .damping = -1};
    void *values = calloc(graph->vertex_count, algorithm->value_bytes);
    void *expected = calloc(graph->vertex_count, algorithm->value_bytes);
    if (values && expected) {
        status = dmg_session_values(session, 0, graph->vertex_count, algorithm->value_bytes, values);
        rank->wrong += algorithm->serial(graph, &options, expected) != DMG_OK;
        rank->wrong += algorithm->compare(graph, values, expected) != DMG_OK;
    } else {
        rank->wrong++;
    }
    free(expected);
    free(values);
    return status;
}

static dmg_status run_all_algorithms(struct rank *rank, dmg_session *session)
{
    const dmg_read_options reading = {.with_reverse = true};
    dmg_graph graph;
    dmg_status status = dmg_graph_read(rank->path, &reading, &graph, NULL);
    if (status != DMG_OK) {
        return status;
    }
    status = dmg_session_load(session, rank->path, NULL);
    for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm && status == DMG_OK; algorithm++) {
        status = check_answer(rank, session, &graph, *algorithm);
    }
    dmg_graph_close(&graph);
    return status;
}

static void all_algorithms_equal_the_serial_ones_for_any_number_of_ranks(void)
{
    scratch_file file = random_file(dmg_test_seed());
    for (uint32_t size = 1; size <= RANKS_MAX; size++) {
        struct rank ranks[RANKS_MAX];
        share(size, file.path, run_all_algorithms, ranks);
        for (uint32_t i = 0; i < size; i++) {
            if (ranks[i].status != DMG_OK) {
                printf("\n    rank %u of %u: %s\n", i, size, ranks[i].sentence);
            }
            CU_ASSERT_EQUAL(ranks[i].status, DMG_OK);
            CU_ASSERT_EQUAL(ranks[i].wrong, 0);
        }
    }
    remove_file(&file);
}

static dmg_status miss_a_file_once(struct rank *rank, dmg_session *session)
{
    dmg_status status = dmg_session_load(session, rank->index == 1 ? "/nonexistent/graph" : rank->path, NULL);
    rank->wrong += status != DMG_ERR_IO;
    rank->wrong += strstr(dmg_error_message(), "/nonexistent/graph") == NULL;
    status = dmg_session_load(session, rank->path, NULL);
    return status == DMG_OK ? dmg_session_run(session, "cc", NULL, NULL) : status;
}

static void when_one_rank_cannot_load_all_hear_why_and_can_go_on(void)
{
    scratch_file file = file_with(small_graph);
    struct rank ranks[RANKS_MAX];
    share(RANKS_MAX, file.path, miss_a_file_once, ranks);
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        CU_ASSERT_EQUAL(ranks[i].status, DMG_OK);
        CU_ASSERT_EQUAL(ranks[i].wrong, 0);
    }
    remove_file(&file);
}

static dmg_status load_another_graph(struct rank *rank, dmg_session *session)
{
    scratch_file other = file_with("1 2\n");
    dmg_status status = dmg_session_load(session, rank->index == 1 ? other.path : rank->path, NULL);
    remove_file(&other);
    return status;
}

static void ranks_that_load_different_graphs_are_found(void)
{
    scratch_file file = file_with(small_graph);
    struct rank ranks[2];
    share(2, file.path, load_another_graph, ranks);
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(ranks[i].status, DMG_ERR_ARGUMENT);
        CU_ASSERT_PTR_NOT_NULL(strstr(ranks[i].sentence, "all must load the same graph"));
    }
    remove_file(&file);
}

static dmg_status run_something_else(struct rank *rank, dmg_session *session)
{
    static const char *const unlike[][2] = {{"bfs", "sssp"}, {"cc", "nothing"}};
    dmg_status status = dmg_session_load(session, rank->path, NULL);
    if (status == DMG_OK) {
        status = dmg_session_run(session, unlike[0][rank->index], NULL, NULL);
        rank->wrong += status != DMG_ERR_ARGUMENT;
        status = dmg_session_run(session, unlike[1][rank->index], NULL, NULL);
        rank->wrong += status != DMG_ERR_NOT_FOUND;
        const dmg_run_parameters parameters = {.iterations_max = 1 + rank->index};
        status = dmg_session_run(session, "pagerank", &parameters, NULL);
        rank->wrong += status != DMG_ERR_ARGUMENT;
        status = dmg_session_run(session, "pagerank", NULL, NULL);
    }
    return status;
}

static void ranks_that_ask_for_different_runs_are_found_and_can_go_on(void)
{
    scratch_file file = file_with(small_graph);
    struct rank ranks[2];
    share(2, file.path, run_something_else, ranks);
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(ranks[i].status, DMG_OK);
        CU_ASSERT_EQUAL(ranks[i].wrong, 0);
    }
    remove_file(&file);
}

static dmg_status close_early(struct rank *rank, dmg_session *session)
{
    dmg_status status = dmg_session_load(session, rank->path, NULL);
    if (rank->index == 1) {
        dmg_session_close(session);
        rank->session = NULL;
        return status;
    }
    uint64_t values[SMALL_VERTICES];
    rank->wrong += dmg_session_ids(session, 0, SMALL_VERTICES, values) != DMG_OK;
    rank->wrong += values[5] != 60;
    return status;
}

static void the_graph_stays_when_another_rank_has_closed(void)
{
    scratch_file file = file_with(small_graph);
    struct rank ranks[2];
    share(2, file.path, close_early, ranks);
    CU_ASSERT_EQUAL(ranks[0].status, DMG_OK);
    CU_ASSERT_EQUAL(ranks[0].wrong, 0);
    CU_ASSERT_EQUAL(ranks[1].status, DMG_OK);
    remove_file(&file);
}

static void a_wrong_token_is_turned_away(void)
{
    dmg_session *session = open_session();
    const char *addresses[] = {dmg_session_address(session, 0), dmg_session_address(session, 1)};
    CU_ASSERT_PTR_NULL(dmg_session_address(session, 2));
    const dmg_session_options options = {.transport = transport, .addresses = addresses, .address_count = 2};
    dmg_session *stranger = NULL;
    EXPECT(DMG_ERR_PROTOCOL, dmg_session_open(&options, &stranger));
    CU_ASSERT_PTR_NULL(stranger);
    dmg_session_close(session);
}

static void memory_nodes_that_are_gone_are_an_error_of_peers(void)
{
    dmg_session_options options = small_options();
    memcpy(options.token, token, sizeof token);
    dmg_session *server = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &server));
    CU_ASSERT_PTR_NOT_NULL_FATAL(server);
    const char *addresses[] = {dmg_session_address(server, 0), dmg_session_address(server, 1)};
    dmg_session_options joining = {
        .transport = transport, .addresses = addresses, .address_count = 2, .name = "other", .threads = 1};
    memcpy(joining.token, token, sizeof token);
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&joining, &session));
    scratch_file file = file_with(small_graph);
    EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
    dmg_session_close(server);
    EXPECT(DMG_ERR_PEER, dmg_session_run(session, "cc", NULL, NULL));
    EXPECT(DMG_ERR_PEER, dmg_session_load(session, file.path, NULL));
    remove_file(&file);
    dmg_session_close(session);
}

/* ---- all suites ---- */

static const dmg_test tests[] = {
    DMG_TEST(bfs_gives_depths_and_parents),
    DMG_TEST(cc_gives_the_smallest_vertex_of_each_component),
    DMG_TEST(sssp_gives_distances),
    DMG_TEST(without_weights_sssp_counts_arcs),
    DMG_TEST(pagerank_gives_ranks_and_takes_its_parameters),
    DMG_TEST(edges_can_be_undirected),
    DMG_TEST(repeats_and_loops_can_be_dropped),
    DMG_TEST(a_run_without_a_source_starts_at_the_first_vertex_with_an_arc),
    DMG_TEST(an_empty_graph_has_empty_answers),
    DMG_TEST(ids_with_gaps_are_found_and_given_back),
    DMG_TEST(ids_without_gaps_are_found_and_given_back),
    DMG_TEST(loading_again_replaces_the_graph),
    DMG_TEST(many_runs_and_loads_fit_where_one_does),
    DMG_TEST(a_file_that_does_not_exist_is_named),
    DMG_TEST(a_malformed_file_is_refused_with_its_line),
    DMG_TEST(wrong_requests_are_refused_and_leave_the_session_usable),
    DMG_TEST(cc_needs_both_directions_of_a_directed_graph),
    DMG_TEST(sssp_refuses_negative_weights_and_names_the_line),
    DMG_TEST(a_pool_that_is_too_small_is_an_error_of_memory),
    DMG_TEST(a_cache_that_is_too_small_is_an_error_of_limits),
    DMG_TEST(options_that_make_no_sense_are_refused),
    DMG_TEST(nothing_is_asked_of_no_session),
    DMG_TEST(all_algorithms_equal_the_serial_ones_for_any_number_of_ranks),
    DMG_TEST(when_one_rank_cannot_load_all_hear_why_and_can_go_on),
    DMG_TEST(ranks_that_load_different_graphs_are_found),
    DMG_TEST(ranks_that_ask_for_different_runs_are_found_and_can_go_on),
    DMG_TEST(the_graph_stays_when_another_rank_has_closed),
    DMG_TEST(a_wrong_token_is_turned_away),
    DMG_TEST(memory_nodes_that_are_gone_are_an_error_of_peers),
    {NULL, NULL},
};

static int use_cxl_shm(void)
{
    transport = "cxl_shm";
    return 0;
}

static int use_ucx(void)
{
    transport = "ucx";
    return 0;
}

/* With all defaults: shared memory, one memory node, all cores. */
static void a_session_needs_no_options(void)
{
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(NULL, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    CU_ASSERT_PTR_NOT_NULL(dmg_session_address(session, 0));
    CU_ASSERT_PTR_NULL(dmg_session_address(session, 1));
    scratch_file file = file_with(small_graph);
    EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
    EXPECT(DMG_OK, dmg_session_run(session, "cc", NULL, NULL));
    remove_file(&file);
    dmg_session_close(session);
}

static const dmg_test default_tests[] = {DMG_TEST(a_session_needs_no_options), {NULL, NULL}};

int main(int argc, char **argv)
{
    if (dmg_suite_add("session over cxl_shm", use_cxl_shm, NULL, tests) ||
        dmg_suite_add("session over ucx", use_ucx, NULL, tests) ||
        dmg_suite_add("session with defaults", NULL, NULL, default_tests)) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
