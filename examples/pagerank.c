/*
 * The ten pages with the highest PageRank.
 *
 *     pagerank GRAPH [TRANSPORT]
 *
 * Built against an installed dmgraph:
 *
 *     cc -o pagerank pagerank.c $(pkg-config --cflags --libs dmgraph)
 */
#include <dmgraph/session.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SHOWN 10

/* The best so far, in falling order. */
struct best {
    uint32_t count;
    double ranks[SHOWN];
    uint64_t vertices[SHOWN];
};

static void consider(struct best *best, uint64_t vertex, double rank)
{
    if (best->count == SHOWN && rank <= best->ranks[SHOWN - 1]) {
        return;
    }
    uint32_t place = best->count < SHOWN ? best->count++ : SHOWN - 1;
    for (; place > 0 && best->ranks[place - 1] < rank; place--) {
        best->ranks[place] = best->ranks[place - 1];
        best->vertices[place] = best->vertices[place - 1];
    }
    best->ranks[place] = rank;
    best->vertices[place] = vertex;
}

/* Read the ranks out of the pool, a block at a time: they may be more than fits here. */
static dmg_status find_best(dmg_session *session, struct best *best)
{
    static double block[4096];
    const uint64_t block_count = sizeof block / sizeof *block;
    uint64_t vertex_count = dmg_session_vertex_count(session);
    for (uint64_t first = 0; first < vertex_count; first += block_count) {
        uint64_t count = vertex_count - first < block_count ? vertex_count - first : block_count;
        dmg_status status = dmg_session_values(session, first, count, sizeof *block, block);
        if (status != DMG_OK) {
            return status;
        }
        for (uint64_t index = 0; index < count; index++) {
            consider(best, first + index, block[index]);
        }
    }
    return DMG_OK;
}

static dmg_status print_best(dmg_session *session, const struct best *best)
{
    for (uint32_t place = 0; place < best->count; place++) {
        uint64_t id;
        dmg_status status = dmg_session_ids(session, best->vertices[place], 1, &id);
        if (status != DMG_OK) {
            return status;
        }
        printf("%" PRIu64 " %.6f\n", id, best->ranks[place]);
    }
    return DMG_OK;
}

static dmg_status rank_pages(dmg_session *session, const char *path)
{
    struct best best = {0};
    dmg_answer answer;
    dmg_status status = dmg_session_load(session, path, NULL);
    if (status == DMG_OK) {
        status = dmg_session_run(session, "pagerank", NULL, &answer);
    }
    if (status == DMG_OK) {
        status = find_best(session, &best);
    }
    if (status == DMG_OK) {
        printf("# %" PRIu64 " vertices, %" PRIu64 " arcs, %" PRIu32 " iterations\n", dmg_session_vertex_count(session),
               dmg_session_arc_count(session), answer.iterations);
        status = print_best(session, &best);
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s GRAPH [TRANSPORT]\n", argv[0]);
        return 2;
    }
    /* What is not set is zero, and means the default. */
    const dmg_session_options options = {.transport = argc == 3 ? argv[2] : NULL, .memory_nodes = 2};
    dmg_session *session = NULL;
    dmg_status status = dmg_session_open(&options, &session);
    if (status == DMG_OK) {
        status = rank_pages(session, argv[1]);
    }
    if (status != DMG_OK) {
        fprintf(stderr, "%s: %s\n", argv[0], dmg_error_message());
    }
    dmg_session_close(session);
    return status == DMG_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
