/*
 * A client's monitor: a thread that keeps a lease with every memory node, and notices the ones that do not answer.
 *
 * It has at most one lease message in flight to a node, and watches the time since the last answer. The time that this
 * process itself was stopped or starved does not count (watch.h), so that a client that was stopped for a minute does
 * not take its memory nodes for dead.
 */
#include "core/base/clock.h"
#include "core/base/error.h"
#include "transport/core.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define TICK_NS_MAX    UINT64_C(20000000) /* also bounds how long closing a client waits for this thread */
#define LEASES         5                  /* a peer timeout */
#define SECOND_NS      1e9
#define SENTENCE_BYTES 192

typedef struct node_watch {
    dmg_completion completion;
    dmg_call call;
    bool is_asked;       /* a lease message is in flight */
    uint64_t heard_ns;   /* the last answer, a stamp of the monitor's watch */
    uint64_t renewed_ns; /* and on the real clock: the memory node's watch goes on while this process is away */
    char sentence[SENTENCE_BYTES];
} node_watch;

static void ask(dmg_channel *channel, uint16_t node, node_watch *watch)
{
    watch->completion = (dmg_completion){0};
    watch->call = (dmg_call){.reply = watch->sentence, .reply_capacity = sizeof watch->sentence};
    watch->is_asked = true;
    dmg_post_call(channel, node, DMG_MESSAGE_TYPE_LEASE, NULL, 0, &watch->call, &watch->completion);
}

/* The lease message has ended. */
static void take_answer(dmg_client *client, uint16_t node, node_watch *watch, const dmg_watch *clock)
{
    watch->is_asked = false;
    watch->heard_ns = clock->now_ns;
    watch->renewed_ns = clock->clock_ns;
    dmg_status status = watch->completion.status != DMG_OK ? watch->completion.status : watch->call.reply_status;
    if (status != DMG_OK) {
        dmg_client_refused(client, node, watch->sentence,
                           watch->completion.status == DMG_OK ? watch->call.reply_bytes : 0);
    }
}

static void watch_node(dmg_client *client, uint16_t node, node_watch *watch, const dmg_watch *clock)
{
    if (atomic_load_explicit(&client->nodes[node].dead, memory_order_acquire)) {
        return;
    }
    if (watch->is_asked && watch->completion.pending == 0) {
        take_answer(client, node, watch, clock);
        return;
    }
    uint64_t silence_ns = dmg_watch_silence_ns(clock, watch->heard_ns);
    if (silence_ns > client->peer_timeout_ns) {
        char why[64];
        snprintf(why, sizeof why, "has not answered for %.2f s", (double)silence_ns / SECOND_NS);
        dmg_client_mark_dead(client, node, why);
    } else if (!watch->is_asked && clock->clock_ns - watch->renewed_ns >= client->peer_timeout_ns / LEASES) {
        ask(client->monitor_channel, node, watch);
    }
}

static void *monitor_run(void *argument)
{
    dmg_client *client = argument;
    dmg_channel *channel = client->monitor_channel;
    dmg_watch clock;
    dmg_watch_start(&clock, client->peer_timeout_ns, dmg_now_ns());
    uint64_t interval_ns = dmg_watch_interval_ns(&clock);
    uint64_t tick_ns = interval_ns < TICK_NS_MAX ? interval_ns : TICK_NS_MAX;
    node_watch *watches = calloc(client->node_count, sizeof *watches);
    if (!watches) {
        for (uint32_t node = 0; node < client->node_count; node++) {
            dmg_client_mark_dead(client, (uint16_t)node, "cannot be watched: this process is out of memory");
        }
        return NULL;
    }
    for (uint32_t node = 0; node < client->node_count; node++) {
        watches[node].heard_ns = clock.now_ns;
        ask(channel, (uint16_t)node, &watches[node]);
    }
    while (!atomic_load(&client->monitor_is_stopped)) {
        dmg_channel_poll(channel);
        dmg_watch_look(&clock, dmg_now_ns());
        for (uint32_t node = 0; node < client->node_count; node++) {
            watch_node(client, (uint16_t)node, &watches[node], &clock);
        }
        dmg_channel_poll(channel);
        channel->operations->sleep(channel->lower, tick_ns);
    }
    /* What is in flight points into `watches`. */
    dmg_channel_close(channel);
    client->monitor_channel = NULL;
    free(watches);
    return NULL;
}

dmg_status dmg_monitor_start(dmg_client *client)
{
    dmg_status status = dmg_channel_open(client, &client->monitor_channel);
    if (status != DMG_OK) {
        return status;
    }
    /* Signals are for the program's own threads. */
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&client->monitor, NULL, monitor_run, client);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        return dmg_error_errno(DMG_ERR_MEMORY, failed, "opening a pool: starting its monitor thread");
    }
    client->has_monitor = true;
    return DMG_OK;
}

void dmg_monitor_stop(dmg_client *client)
{
    if (client->has_monitor) {
        atomic_store(&client->monitor_is_stopped, true);
        pthread_join(client->monitor, NULL);
        client->has_monitor = false;
    }
    dmg_channel_close(client->monitor_channel);
    client->monitor_channel = NULL;
}
