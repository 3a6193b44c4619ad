#include "core/work/thread_team.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/topology.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* About 5 us of pauses: a phase that follows the last one at once finds its workers awake. */
#define SPIN_ROUNDS 200

struct dmg_thread_team {
    uint32_t threads;
    uint32_t started;
    pthread_t *handles;
    struct team_member *members;
    dmg_team_function function;
    void *context;
    uint32_t workers;          /* of this phase */
    _Atomic uint32_t phase;    /* raised to start one; futex */
    _Atomic uint32_t finished; /* threads that are through with it; futex */
    _Atomic bool stopping;
};

struct team_member {
    dmg_thread_team *team;
    uint32_t worker;
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Wait until the word is no longer `seen`. */
static void wait_for_change(_Atomic uint32_t *word, uint32_t seen)
{
    for (uint32_t round = 0; round < SPIN_ROUNDS; round++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen) {
            return;
        }
        __builtin_ia32_pause();
    }
    while (atomic_load_explicit(word, memory_order_acquire) == seen) {
        futex_wait(word, seen);
    }
}

static void *member_main(void *argument)
{
    const struct team_member *member = argument;
    dmg_thread_team *team = member->team;
    uint32_t seen = 0;
    for (;;) {
        wait_for_change(&team->phase, seen);
        seen++;
        if (atomic_load(&team->stopping)) {
            return NULL;
        }
        if (member->worker < team->workers) {
            team->function(team->context, member->worker);
        }
        if (atomic_fetch_add(&team->finished, 1) + 1 == team->threads - 1) {
            futex_wake_all(&team->finished);
        }
    }
}

/* The worker's CPU when it is to be bound to one; else, where there are several NUMA nodes, the CPUs of its node. */
static void choose_cpus(const dmg_topology *topology, uint32_t worker, bool is_one, cpu_set_t *set)
{
    CPU_ZERO(set);
    if (is_one) {
        CPU_SET(dmg_topology_cpu_of_worker(topology, worker), set);
        return;
    }
    uint32_t node = dmg_topology_node_of_worker(topology, worker);
    for (uint32_t i = 0; i < topology->cpu_count; i++) {
        if (topology->nodes[i] == node) {
            CPU_SET(topology->cpus[i], set);
        }
    }
}

static dmg_status pin(const dmg_topology *topology, pthread_t thread, uint32_t worker)
{
    static const char remedy[] = "leave out --pin-threads, or --allow-fallback takes what there is";
    cpu_set_t set;
    if (topology->cpu_count == 0) {
        return dmg_error(DMG_ERR_UNSUPPORTED,
                         "binding workers to cores: the system does not tell which cores there are: %s", remedy);
    }
    choose_cpus(topology, worker, true, &set);
    int refusal = pthread_setaffinity_np(thread, sizeof set, &set);
    if (refusal != 0) {
        return dmg_error(DMG_ERR_UNSUPPORTED, "binding worker %u to core %u: %s: %s", worker,
                         dmg_topology_cpu_of_worker(topology, worker), strerror(refusal), remedy);
    }
    return DMG_OK;
}

/* On its node nobody asked to run: what the system refuses there is not missed. */
static void prefer_node(const dmg_topology *topology, pthread_t thread, uint32_t worker)
{
    cpu_set_t set;
    if (topology->cpu_count > 0 && topology->node_count > 1) {
        choose_cpus(topology, worker, false, &set);
        (void)pthread_setaffinity_np(thread, sizeof set, &set);
    }
}

static dmg_status place(const dmg_thread_team *team, dmg_pinning pinning)
{
    dmg_topology topology;
    dmg_status status = DMG_OK;
    dmg_topology_read(&topology);
    for (uint32_t worker = 0; worker < team->threads && status == DMG_OK; worker++) {
        pthread_t thread = worker == 0 ? pthread_self() : team->handles[worker];
        if (pinning == DMG_PIN_NODES) {
            prefer_node(&topology, thread, worker);
        } else {
            status = pin(&topology, thread, worker);
        }
    }
    if (status != DMG_OK && pinning == DMG_PIN_CORES_IF_POSSIBLE) {
        dmg_log(DMG_LOG_WARNING, "fallback", "why=\"%s\"", dmg_error_message());
        status = DMG_OK;
    }
    return status;
}

uint32_t dmg_thread_team_pinned(const dmg_thread_team *team)
{
    uint32_t pinned = 0;
    for (uint32_t worker = 0; worker < team->threads; worker++) {
        cpu_set_t set;
        pthread_t thread = worker == 0 ? pthread_self() : team->handles[worker];
        pinned += pthread_getaffinity_np(thread, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1;
    }
    return pinned;
}

dmg_status dmg_thread_team_create(uint32_t threads, dmg_pinning pinning, dmg_thread_team **out)
{
    *out = NULL;
    if (threads == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "a team of 0 workers was asked for; use at least 1");
    }
    dmg_thread_team *team = calloc(1, sizeof *team);
    if (team) {
        team->handles = calloc(threads, sizeof *team->handles);
        team->members = calloc(threads, sizeof *team->members);
    }
    if (!team || !team->handles || !team->members) {
        dmg_thread_team_destroy(team);
        return dmg_error(DMG_ERR_MEMORY, "starting %u workers: out of memory", threads);
    }
    team->threads = threads;
    team->started = 1;
    for (uint32_t worker = 1; worker < threads; worker++) {
        team->members[worker] = (struct team_member){team, worker};
        int failure = pthread_create(&team->handles[worker], NULL, member_main, &team->members[worker]);
        if (failure != 0) {
            dmg_thread_team_destroy(team);
            return dmg_error_errno(DMG_ERR_MEMORY, failure, "starting worker %u of %u", worker, threads);
        }
        team->started++;
    }
    dmg_status status = place(team, pinning);
    if (status != DMG_OK) {
        dmg_thread_team_destroy(team);
        return status;
    }
    *out = team;
    return DMG_OK;
}

void dmg_thread_team_destroy(dmg_thread_team *team)
{
    if (!team) {
        return;
    }
    atomic_store(&team->stopping, true);
    atomic_fetch_add(&team->phase, 1);
    futex_wake_all(&team->phase);
    for (uint32_t worker = 1; worker < team->started; worker++) {
        pthread_join(team->handles[worker], NULL);
    }
    free(team->handles);
    free(team->members);
    free(team);
}

void dmg_thread_team_run(dmg_thread_team *team, uint32_t workers, dmg_team_function function, void *context)
{
    if (workers <= 1 || team->threads == 1) {
        function(context, 0);
        return;
    }
    team->function = function;
    team->context = context;
    team->workers = workers;
    atomic_store(&team->finished, 0);
    atomic_fetch_add(&team->phase, 1);
    futex_wake_all(&team->phase);
    function(context, 0);
    for (;;) {
        uint32_t finished = atomic_load_explicit(&team->finished, memory_order_acquire);
        if (finished == team->threads - 1) {
            return;
        }
        wait_for_change(&team->finished, finished);
    }
}
