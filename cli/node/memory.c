/*
 * dmgraph memory-node: one memory node of a run or of a long-lived pool, started by the launcher.
 *
 * The main thread serves; the control thread stops it when the launcher says so, a signal handler on SIGTERM. In a run,
 * its last word is how much memory was used. A node of a long-lived pool first detaches itself from the launcher.
 */
#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/launcher/control.h"
#include "cli/launcher/node_control.h"
#include "cli/launcher/segments.h"
#include "cli/options/command.h"
#include "cli/pool/limits.h"
#include "cli/pool/record.h"
#include "core/arena/jemalloc_arena.h"
#include "core/base/error.h"
#include "core/pool/memory_node.h"
#include "core/pool/token.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* For the signal handler alone, which gets no context. */
static dmg_memory_node *_Atomic served_node;

/* Who sent the signal that stopped it; written by the handler once, read when serving has ended. */
static volatile sig_atomic_t stopping_signal, sender_pid, sender_user;

static void stop_on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (stopping_signal == 0) {
        sender_pid = (sig_atomic_t)info->si_pid;
        sender_user = (sig_atomic_t)info->si_uid;
        stopping_signal = number;
    }
    dmg_memory_node *node = served_node;
    if (node) {
        dmg_memory_node_stop(node);
    }
}

static void stop_on_message(void *context)
{
    dmg_memory_node_stop(context);
}

static dmg_status read_setup(json_t *setup, dmg_memory_node_options *options, bool *is_detached)
{
    json_int_t node = 0;
    json_int_t peer_timeout_ns = 0;
    const char *token = NULL;
    const char *admin = NULL;
    dmg_status status =
        dmg_control_unpack(setup, "{s:s, s:s, s:s, s:I, s:I}", "transport", &options->transport, "token", &token,
                           "admin", &admin, "node", &node, "peer_timeout_ns", &peer_timeout_ns);
    if (status == DMG_OK) {
        status = dmg_token_read(token, options->token);
    }
    if (status == DMG_OK) {
        status = dmg_secret_read(admin, options->admin);
    }
    if (status == DMG_OK) {
        status = dmg_pool_limits_from_json(json_object_get(setup, "limits"), &options->limits);
    }
    if (status == DMG_OK && (node < 0 || node >= DMG_MEMORY_NODES_MAX || peer_timeout_ns <= 0)) {
        status = dmg_error(DMG_ERR_PROTOCOL, "the setup has a value out of range");
    }
    if (status == DMG_OK) {
        status = dmg_segment_take(setup, &options->segment);
    }
    *is_detached = json_is_true(json_object_get(setup, "detached"));
    options->bind = json_string_value(json_object_get(setup, "bind"));
    options->node = (uint16_t)node;
    options->peer_timeout_ns = (uint64_t)peer_timeout_ns;
    return status;
}

static dmg_status send_address(dmg_node_control *control, const dmg_memory_node *node)
{
    dmg_placement placement = dmg_memory_node_placement(node);
    return dmg_node_control_send(control,
                                 json_pack("{s:s, s:s, s:o}", "type", "address", "address",
                                           dmg_memory_node_address(node), "segment", dmg_placement_json(&placement)));
}

static dmg_status send_usage(dmg_node_control *control, const dmg_memory_node *node)
{
    uint64_t allocated = 0;
    uint64_t peak = 0;
    dmg_memory_node_usage(node, &allocated, &peak);
    return dmg_node_control_send(control, json_pack("{s:s, s:I, s:I}", "type", "usage", "allocated_bytes",
                                                    (json_int_t)allocated, "peak_bytes", (json_int_t)peak));
}

static void serve_until_signal(dmg_memory_node *node)
{
    served_node = node;
    const struct sigaction action = {.sa_sigaction = stop_on_signal, .sa_flags = SA_SIGINFO};
    sigaction(SIGTERM, &action, NULL);
}

/** Into the pool's log, whatever its level: a log without an end says that the node was killed. */
static void log_life(uint16_t node, const char *event)
{
    char sender[80] = "";
    if (stopping_signal != 0) {
        snprintf(sender, sizeof sender, " signal=%d sender_pid=%d sender_user=%d", (int)stopping_signal,
                 (int)sender_pid, (int)sender_user);
    }
    /* All at once: other nodes write there, too. */
    fprintf(stderr, "%s memory node %u: %s pid=%d%s\n", dmg_text_timestamp((uint64_t)time(NULL)).text,
            (unsigned int)node, event, (int)getpid(), sender);
}

/** Into the pool's record, which others have open too: what only the node itself knows of its end. */
static void record_end(dmg_status status)
{
    dmg_pool_end end = {.at_s = (uint64_t)time(NULL)};
    if (dmg_process_identify((int)getpid(), &end.process) != DMG_OK) {
        return;
    }
    if (status != DMG_OK) {
        snprintf(end.why, sizeof end.why, "failed: %s", dmg_error_message());
    } else if (stopping_signal != 0 && sender_pid > 0) {
        snprintf(end.why, sizeof end.why, "ended by SIG%s, which process %d of user %d sent",
                 sigabbrev_np((int)stopping_signal), (int)sender_pid, (int)sender_user);
    } else {
        snprintf(end.why, sizeof end.why, "ended by SIG%s",
                 stopping_signal != 0 ? sigabbrev_np((int)stopping_signal) : "?");
    }
    dmg_pool_end_append(DMG_CHILD_FILE, &end);
}

static dmg_status serve_run(dmg_node_control *control, dmg_memory_node *node)
{
    serve_until_signal(node);
    dmg_node_control_on_ending(control, stop_on_message, node);
    dmg_node_control_settle(control);
    dmg_status status = send_address(control, node);
    if (status == DMG_OK) {
        status = dmg_memory_node_serve(node);
    }
    return status == DMG_OK ? send_usage(control, node) : status;
}

static dmg_status serve_pool(dmg_node_control *control, dmg_memory_node *node, uint16_t number)
{
    if (dmg_memory_node_has_files(node)) {
        serve_until_signal(node);
    }
    dmg_node_control_settle(control);
    dmg_status status = send_address(control, node);
    if (status == DMG_OK) {
        status = dmg_node_control_detach(control);
    }
    if (status == DMG_OK) {
        /* Only now: before, a signal just ends the process, which has nothing to tell, and no files. */
        serve_until_signal(node);
        log_life(number, "started");
        status = dmg_memory_node_serve(node);
        log_life(number, "ended");
        record_end(status);
    }
    return status;
}

static int run(dmg_settings *settings)
{
    dmg_node_control *control = NULL;
    dmg_status status = dmg_node_control_open(settings, "memory-node", &control);
    if (status != DMG_OK) {
        return dmg_exit_with_error(status);
    }
    dmg_memory_node_options options = {.arena = &dmg_jemalloc_arena};
    dmg_memory_node *node = NULL;
    bool is_detached = false;
    status = read_setup(dmg_node_control_setup(control), &options, &is_detached);
    char name[32];
    snprintf(name, sizeof name, "memory node %u", (unsigned int)options.node);
    dmg_node_control_log(control, name);
    if (status == DMG_OK) {
        /* Making a large segment takes longer than any peer timeout: signs of life begin before. */
        status = dmg_node_control_start(control, options.peer_timeout_ns, is_detached ? "detach" : "stop");
        options.segment.populated_bytes = dmg_node_control_made_bytes(control);
    }
    if (status == DMG_OK) {
        status = dmg_memory_node_create(&options, &node);
    }
    if (status == DMG_OK && dmg_memory_node_has_files(node)) {
        dmg_node_control_end_in_order(control);
    }
    if (status == DMG_OK) {
        status = is_detached ? serve_pool(control, node, options.node) : serve_run(control, node);
    }
    if (status != DMG_OK && is_detached) {
        dmg_exit_with_error(status); /* into the pool's log */
    }
    if (status != DMG_OK) {
        dmg_node_control_fail(control, status);
    }
    served_node = NULL;
    dmg_node_control_stop_listening(control);
    dmg_memory_node_destroy(node);
    dmg_node_control_close(control);
    return dmg_exit_code_of(status);
}

static const dmg_option_id options[] = {DMG_OPTION_CONTROL_FD, DMG_OPTION_HELP, DMG_OPTION_COUNT};

const dmg_command dmg_command_memory_node = {
    .name = "memory-node",
    .arguments = "",
    .summary = "a memory node of a run or a pool (started by 'dmgraph run' and 'dmgraph pool start')",
    .is_internal = true,
    .options = options,
    .run = run};
