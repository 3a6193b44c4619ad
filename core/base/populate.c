#include "core/base/populate.h"

#include "core/base/error.h"
#include "core/base/topology.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS_MAX 16
/* What a thread takes at a time: long enough that taking turns costs nothing, short enough to see progress. */
#define PIECE_BYTES (UINT64_C(32) << 20)
/* A thread is worth its making from about this much on. */
#define THREAD_BYTES_MIN (UINT64_C(128) << 20)

typedef struct population {
    char *start;
    uint64_t bytes;
    bool zeroes;
    _Atomic uint64_t *populated;
    _Atomic uint64_t next;
    _Atomic int refusal; /* errno of the first that was refused */
} population;

int dmg_populate_by_advice(void *start, uint64_t bytes)
{
    int error;
    do {
        error = madvise(start, bytes, MADV_POPULATE_WRITE) == 0 ? 0 : errno;
    } while (error == EINTR || error == EAGAIN);
    return error;
}

/* 0, or errno. */
static int populate_piece(const population *work, char *start, uint64_t bytes)
{
    int error = dmg_populate_by_advice(start, bytes);
    if (work->zeroes && (error == 0 || error == EINVAL)) {
        memset(start, 0, bytes);
        return 0;
    }
    if (error != EINVAL) {
        return error;
    }
    /* Kernels before 5.14 do not know the advice, and mappings of devices not this one: touch every page. */
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (uint64_t at = 0; at < bytes; at += page) {
        volatile char *byte = start + at;
        *byte = *byte;
    }
    return 0;
}

static void *populate_pieces(void *context)
{
    population *work = context;
    while (atomic_load(&work->refusal) == 0) {
        uint64_t first = atomic_fetch_add(&work->next, PIECE_BYTES);
        if (first >= work->bytes) {
            break;
        }
        uint64_t bytes = work->bytes - first < PIECE_BYTES ? work->bytes - first : PIECE_BYTES;
        int error = populate_piece(work, work->start + first, bytes);
        int none = 0;
        if (error != 0) {
            atomic_compare_exchange_strong(&work->refusal, &none, error);
        } else if (work->populated) {
            atomic_fetch_add(work->populated, bytes);
        }
    }
    return NULL;
}

/* More threads than this one; they leave signals to the others. */
static uint32_t start_helpers(population *work, pthread_t helpers[THREADS_MAX])
{
    uint32_t wanted = dmg_topology_usable_cpus();
    wanted = wanted < THREADS_MAX ? wanted : THREADS_MAX;
    wanted = work->bytes / THREAD_BYTES_MIN < wanted ? (uint32_t)(work->bytes / THREAD_BYTES_MIN) : wanted;
    uint32_t started = 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started + 1 < wanted && pthread_create(&helpers[started], NULL, populate_pieces, work) == 0) {
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

dmg_status dmg_populate(void *start, uint64_t bytes, bool zeroes, _Atomic uint64_t *populated)
{
    population work = {.start = start, .bytes = bytes, .zeroes = zeroes, .populated = populated};
    pthread_t helpers[THREADS_MAX];
    uint32_t helper_count = start_helpers(&work, helpers);
    populate_pieces(&work);
    for (uint32_t helper = 0; helper < helper_count; helper++) {
        pthread_join(helpers[helper], NULL);
    }
    int refusal = atomic_load(&work.refusal);
    return refusal == 0 ? DMG_OK
                        : dmg_error_errno(DMG_ERR_MEMORY, refusal, "taking all pages of a segment of %llu bytes",
                                          (unsigned long long)bytes);
}
