/* The workers of a compute node, and how a range of vertices is dealt out to them. */
#include "suite.h"

#include "core/work/chunks.h"
#include "core/work/thread_team.h"

#include <stdatomic.h>
#include <stdlib.h>

#define VERTICES_MAX 200000

struct sharing {
    dmg_chunks chunks;
    _Atomic uint8_t *taken;
};

static void take_all(void *context, uint32_t worker)
{
    struct sharing *sharing = context;
    uint64_t first;
    uint32_t count;
    while (dmg_chunks_take(&sharing->chunks, worker, &first, &count)) {
        for (uint32_t i = 0; i < count; i++) {
            atomic_fetch_add(&sharing->taken[first + i], 1);
        }
    }
}

static void every_vertex_is_taken_once_by_any_number_of_workers(void)
{
    static const uint64_t ranges[][2] = {{0, 0}, {0, 1}, {64, 65}, {0, 64}, {128, 1000}, {0, VERTICES_MAX}};
    struct sharing *sharing = aligned_alloc(64, (sizeof *sharing + 63) / 64 * 64);
    CU_ASSERT_PTR_NOT_NULL_FATAL(sharing);
    for (uint32_t threads = 1; threads <= 5; threads++) {
        dmg_thread_team *team;
        CU_ASSERT_EQUAL_FATAL(dmg_thread_team_create(threads, false, &team), DMG_OK);
        for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
            sharing->taken = calloc(VERTICES_MAX, 1);
            CU_ASSERT_PTR_NOT_NULL_FATAL(sharing->taken);
            dmg_chunks_reset(&sharing->chunks, ranges[i][0], ranges[i][1], threads, DMG_CHUNK_VERTICES_MAX);
            dmg_thread_team_run(team, threads, take_all, sharing);
            uint64_t wrong = 0;
            for (uint64_t v = 0; v < VERTICES_MAX; v++) {
                wrong += sharing->taken[v] != (v >= ranges[i][0] && v < ranges[i][1]);
            }
            CU_ASSERT_EQUAL(wrong, 0);
            free((void *)sharing->taken);
        }
        dmg_thread_team_destroy(team);
    }
    free(sharing);
}

static void chunks_begin_at_multiples_of_64_vertices(void)
{
    static dmg_chunks chunks;
    dmg_chunks_reset(&chunks, 640, 100001, 3, 1000 / 64 * 64);
    uint64_t first;
    uint32_t count;
    while (dmg_chunks_take(&chunks, 1, &first, &count)) {
        CU_ASSERT_EQUAL(first % 64, 0);
        CU_ASSERT_TRUE(count <= 960);
    }
}

static void count_run(void *context, uint32_t worker)
{
    atomic_fetch_add(&((_Atomic uint32_t *)context)[worker], 1);
}

static void a_phase_runs_once_on_each_of_the_workers_asked_for(void)
{
    _Atomic uint32_t runs[4] = {0};
    dmg_thread_team *team;
    CU_ASSERT_EQUAL_FATAL(dmg_thread_team_create(4, true, &team), DMG_OK);
    for (int i = 0; i < 1000; i++) {
        dmg_thread_team_run(team, 1 + (uint32_t)i % 4, count_run, runs);
    }
    dmg_thread_team_destroy(team);
    CU_ASSERT_EQUAL(runs[0], 1000);
    CU_ASSERT_EQUAL(runs[1], 750);
    CU_ASSERT_EQUAL(runs[2], 500);
    CU_ASSERT_EQUAL(runs[3], 250);
}

static const dmg_test tests[] = {
    DMG_TEST(every_vertex_is_taken_once_by_any_number_of_workers),
    DMG_TEST(chunks_begin_at_multiples_of_64_vertices),
    DMG_TEST(a_phase_runs_once_on_each_of_the_workers_asked_for),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return dmg_suite_add("work", NULL, NULL, tests) != 0 || dmg_suites_run(argc, argv) != 0;
}
