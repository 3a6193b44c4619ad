/**
 * @file bounded.c
 * Calls of UCX that may not return: some of its loops go on until a device gives what they want.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/ucx/ucx.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/** What one look adds at most. */
#define CREDIT_NS UINT64_C(1000000000)

bool dmg_ucx_is_patient(dmg_ucx_patience *patience)
{
    uint64_t now_ns = dmg_now_ns();
    uint64_t since_ns = patience->looked_ns != 0 ? now_ns - patience->looked_ns : 0;
    patience->waited_ns += since_ns < CREDIT_NS ? since_ns : CREDIT_NS;
    patience->looked_ns = now_ns;
    return patience->waited_ns < DMG_UCX_DEVICE_LIMIT_NS;
}

typedef struct bounded_call {
    void (*step)(void *argument);
    void *argument;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_done;
    bool is_abandoned; /**< the last to look at the call frees it */
} bounded_call;

static void free_call(bounded_call *call)
{
    pthread_cond_destroy(&call->changed);
    pthread_mutex_destroy(&call->mutex);
    free(call);
}

static void *run_step(void *argument)
{
    bounded_call *call = argument;
    call->step(call->argument);
    pthread_mutex_lock(&call->mutex);
    call->is_done = true;
    bool is_abandoned = call->is_abandoned;
    pthread_cond_signal(&call->changed);
    pthread_mutex_unlock(&call->mutex);
    if (is_abandoned) {
        free_call(call);
    }
    return NULL;
}

static bounded_call *make_call(void (*step)(void *argument), void *argument)
{
    bounded_call *call = calloc(1, sizeof(*call));
    if (call != NULL) {
        call->step = step;
        call->argument = argument;
        pthread_condattr_t attributes;
        pthread_condattr_init(&attributes);
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        pthread_cond_init(&call->changed, &attributes);
        pthread_condattr_destroy(&attributes);
        pthread_mutex_init(&call->mutex, NULL);
    }
    return call;
}

/** The thread is the library's: the program's signals are for its own. */
static int start_thread(bounded_call *call, pthread_t *thread)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(thread, NULL, run_step, call);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed;
}

static bool await(bounded_call *call, uint64_t limit_ns)
{
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    uint64_t end_ns = (uint64_t)end.tv_sec * 1000000000 + (uint64_t)end.tv_nsec + limit_ns;
    end = (struct timespec){.tv_sec = (time_t)(end_ns / 1000000000), .tv_nsec = (long)(end_ns % 1000000000)};
    pthread_mutex_lock(&call->mutex);
    while (!call->is_done && pthread_cond_timedwait(&call->changed, &call->mutex, &end) != ETIMEDOUT) {
    }
    bool is_done = call->is_done;
    call->is_abandoned = !is_done;
    pthread_mutex_unlock(&call->mutex);
    return is_done;
}

dmg_status dmg_ucx_run_bounded(const char *what, uint64_t limit_ns, void (*step)(void *argument), void *argument)
{
    bounded_call *call = make_call(step, argument);
    if (call == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "%s: out of memory", what);
    }
    pthread_t thread;
    int failed = start_thread(call, &thread);
    if (failed != 0) {
        free_call(call);
        return dmg_error_errno(DMG_ERR_MEMORY, failed, "%s: starting a thread", what);
    }
    if (!await(call, limit_ns)) {
        pthread_detach(thread);
        return dmg_error(DMG_ERR_IO,
                         "%s: UCX has not returned from this for %g s: its device or a port does not answer", what,
                         (double)limit_ns / 1e9);
    }
    pthread_join(thread, NULL);
    free_call(call);
    return DMG_OK;
}
