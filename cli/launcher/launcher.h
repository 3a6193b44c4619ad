/**
 * @file launcher.h
 * Starts the nodes of a run as child processes, listens to them, and sees to it that none is left.
 *
 * Everything happens in one loop over the signals (a signalfd), the control sockets and, while a blocking step runs in
 * a thread of its own, that thread's end. So Ctrl-C, a dead child and a silent child are noticed at any time, whatever
 * the program is doing.
 *
 * How long a child has been silent is decided, and told, from one reading of the clock a turn; the time that the
 * launcher itself was stopped does not count (watch.h).
 *
 * The first sign of trouble is seldom the cause: when a memory node is killed, the compute nodes report lost
 * operations. So the launcher listens for a short while more, and then reports what explains the rest: a child that was
 * killed, before one that failed by itself, before those that lost a peer.
 */
#ifndef DMG_CLI_LAUNCHER_LAUNCHER_H
#define DMG_CLI_LAUNCHER_LAUNCHER_H

#include "cli/launcher/node_control.h"

typedef enum dmg_child_kind { DMG_CHILD_MEMORY_NODE, DMG_CHILD_COMPUTE_NODE } dmg_child_kind;

typedef struct dmg_child {
    dmg_child_kind kind;
    uint32_t index; /**< among those of its kind */
    int pid;
    int control; /**< -1 when closed */
    bool is_running;
    bool is_leaving; /**< it was told to end, so its end is no failure */
    int wait_status; /**< as waitpid gives it, when not running */
    uint64_t ended_order;
    uint64_t heard_ns;   /**< when it last sent anything, a stamp of the launcher's watch */
    uint64_t silence_ns; /**< how long it had been silent when that was found too long; 0: it was not */
    dmg_phase phase;     /**< from its beats */
    uint32_t iteration;
    uint64_t arcs;
    uint64_t made_bytes; /**< of a memory node's segment, while it populates it */
    dmg_status error;    /**< what it reported */
    char sentence[1024];
    uint32_t error_of; /**< the index of the one, of its kind, that met it */
    uint64_t error_order;
} dmg_child;

typedef struct dmg_launcher dmg_launcher;

/**
 * Called in the main loop for every message that is not the launcher's own business (beats and errors); the message is
 * borrowed. After a beat it is called with NULL, for progress. A status other than DMG_OK ends the run.
 */
typedef dmg_status (*dmg_launcher_message)(void *context, dmg_child *child, json_t *message);

/** Called in the main loop at every turn: what else there is to look after. A status other than DMG_OK ends the run. */
typedef dmg_status (*dmg_launcher_look)(void *context);

/** Block the signals that end programs and take them over. One a process, made in its main thread. */
dmg_status dmg_launcher_create(dmg_launcher **launcher);
/**
 * Have a small process at the launcher's side until dmg_launcher_stop, which says so on standard error when the
 * launcher was killed for lack of memory. Early, before the launcher takes memory, and before there is a thread.
 * DMG_ERR_IO, DMG_ERR_MEMORY.
 */
dmg_status dmg_launcher_call_witness(dmg_launcher *launcher);
/** Stops what still runs. NULL is allowed. */
void dmg_launcher_destroy(dmg_launcher *launcher);
/** Where messages go, and after what silence a child counts as dead; before the first start. */
void dmg_launcher_listen(dmg_launcher *launcher, uint64_t peer_timeout_ns, dmg_launcher_message on_message,
                         void *context);

/** What else to look after while children run, which no child tells; NULL: nothing any more. */
void dmg_launcher_look_after(dmg_launcher *launcher, dmg_launcher_look look, void *context);

/**
 * Start a node: fork and exec this program with `subcommand`, a control socket, and (when not -1) `file` as descriptor
 * DMG_CHILD_FILE. The child dies with the launcher. Call it from the main thread only: Linux ties that to the thread
 * that forks.
 */
dmg_status dmg_launcher_start(dmg_launcher *launcher, dmg_child_kind kind, uint32_t index, const char *subcommand,
                              int file, dmg_child **child);

/**
 * The same for a node that is to outlive the launcher: in a session and a folder (/) of its own, with `output` as its
 * standard output and error. Until the node has detached itself it dies with the launcher like any other.
 */
dmg_status dmg_launcher_start_session(dmg_launcher *launcher, dmg_child_kind kind, uint32_t index,
                                      const char *subcommand, int file, int output, dmg_child **child);
/** From now on silence is no sign of trouble, for children that are about to detach themselves. */
void dmg_launcher_expect_detaching(dmg_launcher *launcher);
/** Let go of all children: they go on, and are neither listened to nor stopped any more. */
void dmg_launcher_let_go(dmg_launcher *launcher);

/** Send a message (takes the reference). Never waits. */
dmg_status dmg_launcher_send(dmg_launcher *launcher, dmg_child *child, json_t *message);

/**
 * Run the loop until `is_done` says so.
 * @return DMG_OK; the status of what went wrong with a child, with one sentence that names it; DMG_ERR_CANCELLED on a
 * signal
 */
dmg_status dmg_launcher_wait(dmg_launcher *launcher, bool (*is_done)(void *context), void *context);

/** Run a blocking step in a thread, and the loop beside it. When the loop fails, the step is left running: only ending
 * the process is safe then. */
dmg_status dmg_launcher_call(dmg_launcher *launcher, dmg_status (*step)(void *context), void *context);

/** What giving back so much memory may take, when a process ends: about half a second a GiB, on a busy machine more. */
uint64_t dmg_launcher_giving_back_ns(uint64_t bytes);
/** So much memory the children have among them: they get the time for it when they are dismissed. */
void dmg_launcher_expect_memory(dmg_launcher *launcher, uint64_t bytes);
/** Tell the children of a kind to end, with a message of this type, and wait until they have. */
dmg_status dmg_launcher_dismiss(dmg_launcher *launcher, dmg_child_kind kind, const char *type);

/** End all children, first politely, then by force, and reap them. Bounded. */
void dmg_launcher_stop(dmg_launcher *launcher);

/** The signal that cancelled the run, or 0. */
int dmg_launcher_signal(const dmg_launcher *launcher);

uint32_t dmg_launcher_child_count(const dmg_launcher *launcher);
const dmg_child *dmg_launcher_child(const dmg_launcher *launcher, uint32_t index);

#endif
