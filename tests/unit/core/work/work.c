/* The workers of a compute node, and how a range of vertices is dealt out to them. */
#include "unit/support/suite.h"

#include "core/base/topology.h"
#include "core/work/chunks.h"
#include "core/work/reschedule.h"
#include "core/work/thread_team.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

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
        CU_ASSERT_EQUAL_FATAL(dmg_thread_team_create(threads, DMG_PIN_NODES, &team), DMG_OK);
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

static void workers_are_dealt_out_to_numa_nodes_in_turn(void)
{
    const dmg_topology two_nodes = {.cpu_count = 5, .node_count = 2, .cpus = {0, 1, 4, 2, 3}, .nodes = {0, 0, 0, 1, 1}};
    static const uint32_t expected[] = {0, 2, 1, 3, 4, 2, 0, 3};
    for (uint32_t worker = 0; worker < 8; worker++) {
        CU_ASSERT_EQUAL(dmg_topology_node_of_worker(&two_nodes, worker), worker % 2);
        CU_ASSERT_EQUAL(dmg_topology_cpu_of_worker(&two_nodes, worker), expected[worker]);
    }
    const dmg_topology one_node = {.cpu_count = 3, .node_count = 1, .cpus = {2, 5, 7}};
    for (uint32_t worker = 0; worker < 7; worker++) {
        CU_ASSERT_EQUAL(dmg_topology_cpu_of_worker(&one_node, worker), one_node.cpus[worker % 3]);
    }
}

static void this_machine_has_the_cpus_that_this_process_may_use(void)
{
    cpu_set_t allowed;
    dmg_topology topology;
    dmg_topology_read(&topology);
    CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    CU_ASSERT_EQUAL(topology.cpu_count, (uint32_t)CPU_COUNT(&allowed));
    CU_ASSERT_TRUE(topology.node_count >= 1);
    for (uint32_t i = 0; i < topology.cpu_count; i++) {
        CU_ASSERT_TRUE(CPU_ISSET(topology.cpus[i], &allowed));
        CU_ASSERT_TRUE(topology.nodes[i] < topology.node_count);
        CPU_CLR(topology.cpus[i], &allowed);
    }
    CU_ASSERT_EQUAL(CPU_COUNT(&allowed), 0);
}

static void note_cpu(void *context, uint32_t worker)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1) {
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (CPU_ISSET(cpu, &set)) {
                ((int *)context)[worker] = cpu;
            }
        }
    }
}

static void pinned_workers_have_a_cpu_each(void)
{
    cpu_set_t before;
    dmg_topology topology;
    dmg_thread_team *team;
    int cpus[3] = {-1, -1, -1};
    dmg_topology_read(&topology);
    CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof before, &before), 0);
    CU_ASSERT_EQUAL_FATAL(dmg_thread_team_create(3, DMG_PIN_CORES, &team), DMG_OK);
    CU_ASSERT_EQUAL(dmg_thread_team_pinned(team), 3);
    dmg_thread_team_run(team, 3, note_cpu, cpus);
    dmg_thread_team_destroy(team);
    for (uint32_t worker = 0; worker < 3; worker++) {
        CU_ASSERT_EQUAL(cpus[worker], (int)dmg_topology_cpu_of_worker(&topology, worker));
    }
    CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof before, &before), 0);
}

/* Have the kernel refuse sched_setaffinity to this process from now on. */
static bool forbid_pinning(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = sizeof filter / sizeof filter[0], .filter = filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a process of its own: 0 when all is as it should be, else which expectation failed. */
static int pin_where_it_is_refused(void)
{
    dmg_thread_team *team;
    cpu_set_t allowed;
    bool has_several = sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 1;
    if (!forbid_pinning()) {
        return 1;
    }
    if (dmg_thread_team_create(2, DMG_PIN_CORES, &team) != DMG_ERR_UNSUPPORTED) {
        return 2;
    }
    if (!strstr(dmg_error_message(), "binding worker 0") || !strstr(dmg_error_message(), strerror(EPERM))) {
        return 3;
    }
    if (dmg_thread_team_create(2, DMG_PIN_CORES_IF_POSSIBLE, &team) != DMG_OK) {
        return 4;
    }
    bool is_right = dmg_thread_team_pinned(team) == (has_several ? 0 : 2);
    dmg_thread_team_destroy(team);
    return is_right ? 0 : 5;
}

static void pinning_that_is_refused_is_an_error_unless_less_is_allowed(void)
{
    int status = -1;
    pid_t child = fork();
    CU_ASSERT_TRUE_FATAL(child >= 0);
    if (child == 0) {
        _exit(pin_where_it_is_refused());
    }
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT_TRUE(WIFEXITED(status));
    CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

static void count_run(void *context, uint32_t worker)
{
    atomic_fetch_add(&((_Atomic uint32_t *)context)[worker], 1);
}

static void a_phase_runs_once_on_each_of_the_workers_asked_for(void)
{
    _Atomic uint32_t runs[4] = {0};
    dmg_thread_team *team;
    CU_ASSERT_EQUAL_FATAL(dmg_thread_team_create(4, DMG_PIN_CORES, &team), DMG_OK);
    for (int i = 0; i < 1000; i++) {
        dmg_thread_team_run(team, 1 + (uint32_t)i % 4, count_run, runs);
    }
    dmg_thread_team_destroy(team);
    CU_ASSERT_EQUAL(runs[0], 1000);
    CU_ASSERT_EQUAL(runs[1], 750);
    CU_ASSERT_EQUAL(runs[2], 500);
    CU_ASSERT_EQUAL(runs[3], 250);
}

#define LONG_LISTS 100
#define LIST_EDGES 777
#define SEGMENT    50
#define SEGMENTS   ((LIST_EDGES + SEGMENT - 1) / SEGMENT)
#define STEALERS   3

struct walked {
    dmg_reschedule *reschedule;
    _Atomic uint64_t unfinished;
    _Atomic uint8_t edges[LONG_LISTS][LIST_EDGES];
    _Atomic uint32_t segments;
};

static void walk_segment(struct walked *walked, const dmg_list_piece *segment)
{
    CU_ASSERT_PTR_EQUAL(segment->task, walked);
    CU_ASSERT_TRUE(segment->count > 0 && segment->count <= SEGMENT);
    for (uint32_t edge = segment->first; edge < segment->first + segment->count; edge++) {
        atomic_fetch_add(&walked->edges[segment->list][edge], 1);
    }
    atomic_fetch_add(&walked->segments, 1);
    dmg_reschedule_finish(segment);
}

/* Worker 0 has the lists, the others steal. */
static void share_lists(void *context, uint32_t worker)
{
    struct walked *walked = context;
    dmg_list_piece segment;
    for (uint32_t list = 0; worker == 0 && list < LONG_LISTS; list++) {
        while (!dmg_reschedule_add(walked->reschedule, 0, walked, list, LIST_EDGES, &walked->unfinished)) {
        }
        if (dmg_reschedule_take(walked->reschedule, 0, &segment)) {
            walk_segment(walked, &segment);
        }
    }
    while (worker == 0 ? atomic_load(&walked->unfinished) > 0 : atomic_load(&walked->segments) < LONG_LISTS) {
        if (worker == 0 ? dmg_reschedule_take(walked->reschedule, 0, &segment)
                        : dmg_reschedule_steal(walked->reschedule, worker, &segment)) {
            walk_segment(walked, &segment);
        }
    }
}

static void every_edge_of_long_lists_is_walked_once_whoever_takes_the_segments(void)
{
    dmg_budget *budget;
    dmg_thread_team *team;
    struct walked *walked = calloc(1, sizeof *walked);
    CU_ASSERT_PTR_NOT_NULL_FATAL(walked);
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &budget), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_reschedule_create(budget, STEALERS + 1, SEGMENT, &walked->reschedule), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_thread_team_create(STEALERS + 1, DMG_PIN_NODES, &team), DMG_OK);
    dmg_thread_team_run(team, STEALERS + 1, share_lists, walked);
    uint64_t wrong = 0;
    for (uint32_t list = 0; list < LONG_LISTS; list++) {
        for (uint32_t edge = 0; edge < LIST_EDGES; edge++) {
            wrong += walked->edges[list][edge] != 1;
        }
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(walked->segments, LONG_LISTS * SEGMENTS);
    dmg_thread_team_destroy(team);
    dmg_reschedule_destroy(walked->reschedule);
    dmg_budget_destroy(budget);
    free(walked);
}

static void a_full_buffer_takes_no_more_lists_and_a_cleared_one_has_none(void)
{
    dmg_budget *budget;
    dmg_reschedule *reschedule;
    dmg_list_piece segment;
    _Atomic uint64_t unfinished = 0;
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &budget), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_reschedule_create(budget, 2, 10, &reschedule), DMG_OK);
    for (uint32_t list = 0; list < DMG_RESCHEDULE_LISTS; list++) {
        CU_ASSERT_TRUE(dmg_reschedule_add(reschedule, 1, NULL, list, 25, &unfinished));
    }
    CU_ASSERT_FALSE(dmg_reschedule_add(reschedule, 1, NULL, 0, 25, &unfinished));
    CU_ASSERT_EQUAL(unfinished, DMG_RESCHEDULE_LISTS * 25);
    CU_ASSERT_FALSE(dmg_reschedule_take(reschedule, 0, &segment));
    CU_ASSERT_FALSE(dmg_reschedule_steal(reschedule, 1, &segment)); /* not from oneself */
    CU_ASSERT_TRUE(dmg_reschedule_steal(reschedule, 0, &segment));
    CU_ASSERT_EQUAL(segment.count, 10);
    dmg_reschedule_clear(reschedule, 1);
    CU_ASSERT_EQUAL(unfinished, 10); /* what was handed out */
    dmg_reschedule_finish(&segment);
    CU_ASSERT_EQUAL(unfinished, 0);
    CU_ASSERT_FALSE(dmg_reschedule_take(reschedule, 1, &segment));
    dmg_reschedule_destroy(reschedule);
    dmg_budget_destroy(budget);
}

static const dmg_test tests[] = {
    DMG_TEST(every_vertex_is_taken_once_by_any_number_of_workers),
    DMG_TEST(chunks_begin_at_multiples_of_64_vertices),
    DMG_TEST(workers_are_dealt_out_to_numa_nodes_in_turn),
    DMG_TEST(this_machine_has_the_cpus_that_this_process_may_use),
    DMG_TEST(pinned_workers_have_a_cpu_each),
    DMG_TEST(pinning_that_is_refused_is_an_error_unless_less_is_allowed),
    DMG_TEST(a_phase_runs_once_on_each_of_the_workers_asked_for),
    DMG_TEST(every_edge_of_long_lists_is_walked_once_whoever_takes_the_segments),
    DMG_TEST(a_full_buffer_takes_no_more_lists_and_a_cleared_one_has_none),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    return dmg_suite_add("work", NULL, NULL, tests) != 0 || dmg_suites_run(argc, argv) != 0;
}
