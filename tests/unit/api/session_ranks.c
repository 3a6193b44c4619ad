/*
 * Processes that share a session, over every dmg_session_transport(): answers against the serial computations, and what
 * happens when the ranks do not agree, or one is gone.
 *
 * The ranks are threads of the test; the first serves the memory nodes.
 */
#include "unit/api/session_support.h"
#include "unit/support/deadline.h"

#include "algorithms/algorithm.h"
#include "formats/graph_reader.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 3

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
    dmg_session_options options = {.transport = dmg_session_transport(),
                                   .name = "shared",
                                   .rank = rank->index,
                                   .size = rank->size,
                                   .threads = 1,
                                   .peer_timeout_ns = dmg_test_deadline_ns(60)};
    memcpy(options.token, token, sizeof token);
    if (rank->index == 0) {
        options.memory_nodes = 2;
        options.memory_bytes = DMG_TEST_MEMORY_BYTES;
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
    const dmg_run_parameters parameters = {.has_source = dmg_algorithm_takes(algorithm, DMG_TAKES_SOURCE), .source = 3};
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
    dmg_scratch_file file = dmg_random_file(dmg_test_seed());
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
    dmg_remove_file(&file);
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
    dmg_scratch_file file = dmg_file_with(dmg_test_small_graph);
    struct rank ranks[RANKS_MAX];
    share(RANKS_MAX, file.path, miss_a_file_once, ranks);
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        CU_ASSERT_EQUAL(ranks[i].status, DMG_OK);
        CU_ASSERT_EQUAL(ranks[i].wrong, 0);
    }
    dmg_remove_file(&file);
}

static dmg_status load_another_graph(struct rank *rank, dmg_session *session)
{
    dmg_scratch_file other = dmg_file_with("1 2\n");
    dmg_status status = dmg_session_load(session, rank->index == 1 ? other.path : rank->path, NULL);
    dmg_remove_file(&other);
    return status;
}

static void ranks_that_load_different_graphs_are_found(void)
{
    dmg_scratch_file file = dmg_file_with(dmg_test_small_graph);
    struct rank ranks[2];
    share(2, file.path, load_another_graph, ranks);
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(ranks[i].status, DMG_ERR_ARGUMENT);
        CU_ASSERT_PTR_NOT_NULL(strstr(ranks[i].sentence, "all must load the same graph"));
    }
    dmg_remove_file(&file);
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
    dmg_scratch_file file = dmg_file_with(dmg_test_small_graph);
    struct rank ranks[2];
    share(2, file.path, run_something_else, ranks);
    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(ranks[i].status, DMG_OK);
        CU_ASSERT_EQUAL(ranks[i].wrong, 0);
    }
    dmg_remove_file(&file);
}

static dmg_status close_early(struct rank *rank, dmg_session *session)
{
    dmg_status status = dmg_session_load(session, rank->path, NULL);
    if (rank->index == 1) {
        dmg_session_close(session);
        rank->session = NULL;
        return status;
    }
    uint64_t values[DMG_TEST_SMALL_VERTICES];
    rank->wrong += dmg_session_ids(session, 0, DMG_TEST_SMALL_VERTICES, values) != DMG_OK;
    rank->wrong += values[5] != 60;
    /* The other is closing, or has closed: this waits for nobody. */
    rank->wrong += dmg_session_run(session, "cc", NULL, NULL) != DMG_ERR_CANCELLED;
    rank->wrong += strstr(dmg_error_message(), "left") == NULL;
    return status;
}

static void when_one_rank_closes_the_others_keep_the_graph_and_wait_for_nobody(void)
{
    dmg_scratch_file file = dmg_file_with(dmg_test_small_graph);
    struct rank ranks[2];
    share(2, file.path, close_early, ranks);
    CU_ASSERT_EQUAL(ranks[0].status, DMG_OK);
    CU_ASSERT_EQUAL(ranks[0].wrong, 0);
    CU_ASSERT_EQUAL(ranks[1].status, DMG_OK);
    dmg_remove_file(&file);
}

static void a_wrong_token_is_turned_away(void)
{
    const dmg_session_options served = {
        .transport = dmg_session_transport(), .memory_nodes = 2, .memory_bytes = DMG_TEST_MEMORY_BYTES};
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&served, &session));
    CU_ASSERT_PTR_NOT_NULL_FATAL(session);
    const char *addresses[] = {dmg_session_address(session, 0), dmg_session_address(session, 1)};
    CU_ASSERT_PTR_NULL(dmg_session_address(session, 2));
    const dmg_session_options options = {
        .transport = dmg_session_transport(), .addresses = addresses, .address_count = 2};
    dmg_session *stranger = NULL;
    EXPECT(DMG_ERR_PROTOCOL, dmg_session_open(&options, &stranger));
    CU_ASSERT_PTR_NULL(stranger);
    dmg_session_close(session);
}

static void memory_nodes_that_are_gone_are_an_error_of_peers(void)
{
    dmg_session_options options = {
        .transport = dmg_session_transport(), .memory_nodes = 2, .memory_bytes = DMG_TEST_MEMORY_BYTES, .threads = 2};
    memcpy(options.token, token, sizeof token);
    dmg_session *server = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &server));
    CU_ASSERT_PTR_NOT_NULL_FATAL(server);
    const char *addresses[] = {dmg_session_address(server, 0), dmg_session_address(server, 1)};
    dmg_session_options joining = {.transport = dmg_session_transport(),
                                   .addresses = addresses,
                                   .address_count = 2,
                                   .name = "other",
                                   .threads = 1};
    memcpy(joining.token, token, sizeof token);
    dmg_session *session = NULL;
    EXPECT(DMG_OK, dmg_session_open(&joining, &session));
    dmg_scratch_file file = dmg_file_with(dmg_test_small_graph);
    EXPECT(DMG_OK, dmg_session_load(session, file.path, NULL));
    dmg_session_close(server);
    EXPECT(DMG_ERR_PEER, dmg_session_run(session, "cc", NULL, NULL));
    EXPECT(DMG_ERR_PEER, dmg_session_load(session, file.path, NULL));
    dmg_remove_file(&file);
    dmg_session_close(session);
}

/* The same name and token, and another secret: it is not let into the session, which goes on. */
static void a_rank_without_the_secret_is_not_let_in(void)
{
    dmg_session_options options = {.transport = dmg_session_transport(),
                                   .name = "closed",
                                   .secret = {1, 2, 3},
                                   .memory_nodes = 1,
                                   .memory_bytes = DMG_TEST_MEMORY_BYTES,
                                   .threads = 1};
    memcpy(options.token, token, sizeof token);
    dmg_session *owner = NULL;
    EXPECT(DMG_OK, dmg_session_open(&options, &owner));
    CU_ASSERT_PTR_NOT_NULL_FATAL(owner);
    dmg_scratch_file file = dmg_file_with(dmg_test_small_graph);
    EXPECT(DMG_OK, dmg_session_load(owner, file.path, NULL));
    const char *addresses[] = {dmg_session_address(owner, 0)};
    for (uint8_t guess = 0; guess < 2; guess++) {
        dmg_session_options joining = {.transport = dmg_session_transport(),
                                       .addresses = addresses,
                                       .address_count = 1,
                                       .name = "closed",
                                       .secret = {guess},
                                       .threads = 1};
        memcpy(joining.token, token, sizeof token);
        dmg_session *stranger = NULL;
        EXPECT(DMG_OK, dmg_session_open(&joining, &stranger));
        EXPECT(DMG_ERR_DENIED, dmg_session_load(stranger, file.path, NULL));
        dmg_session_close(stranger);
    }
    EXPECT(DMG_OK, dmg_session_run(owner, "cc", NULL, NULL));
    dmg_remove_file(&file);
    dmg_session_close(owner);
}

static const dmg_test tests[] = {
    DMG_TEST(all_algorithms_equal_the_serial_ones_for_any_number_of_ranks),
    DMG_TEST(when_one_rank_cannot_load_all_hear_why_and_can_go_on),
    DMG_TEST(ranks_that_load_different_graphs_are_found),
    DMG_TEST(ranks_that_ask_for_different_runs_are_found_and_can_go_on),
    DMG_TEST(when_one_rank_closes_the_others_keep_the_graph_and_wait_for_nobody),
    DMG_TEST(a_wrong_token_is_turned_away),
    DMG_TEST(a_rank_without_the_secret_is_not_let_in),
    DMG_TEST(memory_nodes_that_are_gone_are_an_error_of_peers),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return dmg_session_suites_add("session of ranks", tests) ? 1 : dmg_suites_run(argc, argv);
}
