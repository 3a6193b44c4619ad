/*
 * One of several processes, each on a host of its own, that share a graph in a pool:
 *
 *     rank TRANSPORT ADDRESS TOKEN NAME RANK SIZE GRAPH
 *
 * Loads the graph together with the others, runs every algorithm, and compares all values with a serial computation.
 * Exit code 0 when they agree; 1 with a sentence else.
 */
#include "algorithms/algorithm.h"
#include "dmgraph/session.h"
#include "formats/graph_reader.h"
#include "tests/unit/support/deadline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS dmg_test_deadline_ns(30) /* in an emulated machine, where that is many times more */

static bool parse_token(const char *text, uint8_t token[DMG_SESSION_TOKEN_BYTES])
{
    bool is_whole = strlen(text) == 2 * DMG_SESSION_TOKEN_BYTES;
    for (size_t i = 0; is_whole && i < DMG_SESSION_TOKEN_BYTES; i++) {
        is_whole = sscanf(text + 2 * i, "%2hhx", &token[i]) == 1;
    }
    return is_whole;
}

static dmg_status check(dmg_session *session, const dmg_graph *graph, const dmg_algorithm *algorithm)
{
    dmg_answer answer;
    dmg_status status = dmg_session_run(session, algorithm->name, NULL, &answer);
    if (status != DMG_OK) {
        return status;
    }
    dmg_algorithm_options options = {.tolerance = -1, .damping = -1};
    options.source = dmg_graph_find(graph, answer.source);
    void *values = calloc(graph->vertex_count, algorithm->value_bytes);
    void *expected = calloc(graph->vertex_count, algorithm->value_bytes);
    status = DMG_ERR_MEMORY;
    if (values && expected) {
        status = dmg_session_values(session, 0, graph->vertex_count, algorithm->value_bytes, values);
    }
    if (status == DMG_OK) {
        status = algorithm->serial(graph, &options, expected);
    }
    if (status == DMG_OK) {
        status = algorithm->compare(graph, values, expected);
    }
    if (status == DMG_OK) {
        printf("%s: all %llu values agree with a serial computation\n", algorithm->name,
               (unsigned long long)graph->vertex_count);
    }
    free(expected);
    free(values);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 8) {
        fprintf(stderr, "usage: rank TRANSPORT ADDRESS TOKEN NAME RANK SIZE GRAPH\n");
        return 2;
    }
    const char *const addresses[] = {argv[2]};
    dmg_session_options options = {.transport = argv[1],
                                   .addresses = addresses,
                                   .address_count = 1,
                                   .name = argv[4],
                                   .rank = (uint32_t)atoi(argv[5]),
                                   .size = (uint32_t)atoi(argv[6]),
                                   .threads = 1,
                                   .peer_timeout_ns = PATIENCE_NS};
    if (!parse_token(argv[3], options.token)) {
        fprintf(stderr, "rank: a token has %d hexadecimal digits\n", 2 * DMG_SESSION_TOKEN_BYTES);
        return 2;
    }
    const dmg_read_options reading = {.with_reverse = true};
    dmg_graph graph;
    dmg_session *session = NULL;
    dmg_status status = dmg_graph_read(argv[7], &reading, &graph, NULL);
    if (status != DMG_OK) {
        fprintf(stderr, "rank: %s\n", dmg_error_message());
        return 1;
    }
    status = dmg_session_open(&options, &session);
    if (status == DMG_OK) {
        status = dmg_session_load(session, argv[7], NULL);
    }
    for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm && status == DMG_OK; algorithm++) {
        status = check(session, &graph, *algorithm);
    }
    if (status != DMG_OK) {
        fprintf(stderr, "rank: %s\n", dmg_error_message());
    }
    dmg_session_close(session);
    dmg_graph_close(&graph);
    return status == DMG_OK ? 0 : 1;
}
