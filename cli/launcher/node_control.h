/**
 * @file node_control.h
 * A started node's end of the control socket: a thread that beats, so that the launcher sees life and progress, and
 * listens.
 *
 * When the launcher is gone, the process ends at once: nothing is worth finishing, but for files that it has to remove.
 */
#ifndef DMG_CLI_LAUNCHER_NODE_CONTROL_H
#define DMG_CLI_LAUNCHER_NODE_CONTROL_H

#include "cli/options/options.h"
#include "transport/transport.h"

#include <jansson.h>
#include <stdatomic.h>

/** A node's open descriptors, beside the standard ones: its control socket, and a compute node's graph. */
#define DMG_CHILD_CONTROL 3
#define DMG_CHILD_FILE    4

/** What the launcher shows as the node's state; in this order. */
typedef enum dmg_phase { DMG_PHASE_START, DMG_PHASE_LOAD, DMG_PHASE_RUN, DMG_PHASE_RESULT, DMG_PHASES } dmg_phase;

typedef struct dmg_node_control dmg_node_control;

/** Called in the listening thread when the message of this type came that the node ends on. */
typedef void (*dmg_node_control_ending)(void *context);

/**
 * Take over the socket that --control-fd names, and wait for the setup. DMG_ERR_ARGUMENT, with a sentence for people,
 * when there is no such socket: the program was started by hand.
 */
dmg_status dmg_node_control_open(const dmg_settings *settings, const char *kind, dmg_node_control **control);
/** Stops the thread, closes the socket. NULL is allowed. */
void dmg_node_control_close(dmg_node_control *control);
/** The setup message; owned by the control. */
json_t *dmg_node_control_setup(dmg_node_control *control);

/** Start beating and listening, before anything that takes long; the message `ending_type` ends the node. */
dmg_status dmg_node_control_start(dmg_node_control *control, uint64_t peer_timeout_ns, const char *ending_type);
/** From now on `ending` is called when that message comes; at once when it has come. */
void dmg_node_control_on_ending(dmg_node_control *control, dmg_node_control_ending ending, void *context);
/**
 * For a node that has files which only it removes in order, before it settles: the launcher's death ends it as the
 * message does that it waits for, and does not kill it unless it takes some seconds.
 */
void dmg_node_control_end_in_order(dmg_node_control *control);
/** Before it starts listening: a node that is still in the phase of its start after so long tells the launcher, and
 * ends.
 */
void dmg_node_control_limit_start(dmg_node_control *control, uint64_t limit_ns);
/**
 * Until this is called, SIGTERM (also the one that the launcher's death sends) waits: connecting to others and making a
 * segment pass through states whose remains in /dev/shm only this process can remove. From now on SIGTERM has its
 * effect, and the launcher's death kills, or ends in order. The listening thread does not end the process before,
 * either.
 */
void dmg_node_control_settle(dmg_node_control *control);
/** And again as before the first call: more of that kind is about to be made. */
void dmg_node_control_unsettle(dmg_node_control *control);
/** Stop beating and listening: `ending` is not called any more. */
void dmg_node_control_stop_listening(dmg_node_control *control);
/** Wait until the message that ends the node has come. */
void dmg_node_control_wait(dmg_node_control *control);

/**
 * For a node that outlives its launcher: wait for the message that ends the listening, outlive the launcher from now
 * on, tell it ("detached"), and close the socket; what is sent later is lost. In the main thread. DMG_ERR_PEER when the
 * launcher died first, which only a node learns that ends in order.
 */
dmg_status dmg_node_control_detach(dmg_node_control *control);

/** Send a message (takes the reference). Thread-safe. */
dmg_status dmg_node_control_send(dmg_node_control *control, json_t *message);
/** Tell the launcher of this thread's last error. Only the first one that it is told counts. */
void dmg_node_control_fail(dmg_node_control *control, dmg_status status);
/** The same for what a node of the same kind met, which explains why this one fails: `index` is its number. */
void dmg_node_control_fail_for(dmg_node_control *control, uint32_t index, dmg_status status, const char *sentence);
/** Enter a phase; sends a beat. */
void dmg_node_control_enter(dmg_node_control *control, dmg_phase phase);

/** Counters that the beats carry: arcs loaded, and the number of the iteration that runs. */
_Atomic uint64_t *dmg_node_control_arcs(dmg_node_control *control);
_Atomic uint32_t *dmg_node_control_iteration(dmg_node_control *control);
/** Bytes of a segment that are there, while it is made. */
_Atomic uint64_t *dmg_node_control_made_bytes(dmg_node_control *control);

/** Send log lines to stderr, from the level on that the setup names, each with this process's name in front (the text
 * must stay). */
void dmg_node_control_log(dmg_node_control *control, const char *process_name);
/** The same for any process; `level` is a choice of --log-level. */
void dmg_log_to_stderr(const char *process_name, uint64_t level);

#endif
