/* dmgraph pool status, stop and clean: what became of a long-lived pool, and its end. */
#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/launcher/launcher.h"
#include "cli/launcher/work_step.h"
#include "cli/options/command.h"
#include "cli/pool/client.h"
#include "cli/pool/graph.h"
#include "cli/pool/holdings.h"
#include "cli/pool/limits.h"
#include "cli/pool/search.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** What a memory node gets to end: after SIGTERM, after SIGKILL. */
#define GRACE_TERM_NS UINT64_C(5000000000)
#define GRACE_KILL_NS UINT64_C(5000000000)

/* ---- status ---- */

typedef struct node_state {
    bool is_alive;
    bool is_explained; /* it is dead, and known how it died */
    dmg_pool_end end;
    bool has_usage;
    uint64_t allocated;
    uint64_t peak;
    uint64_t total;
    dmg_pool_quarantined quarantined; /* a part of what is allocated */
} node_state;

typedef struct pool_status {
    const char *name;
    bool is_json;
    dmg_pool_client pool;
    node_state nodes[DMG_MEMORY_NODES_MAX];
    json_t *graphs; /* for --json */
    dmg_pool_holdings holdings;
    uint64_t graph_count;
    char folder[PATH_MAX]; /* of the pool's files */
    bool has_files;        /* they are there */
} pool_status;

/** What was freed and is given to nobody yet, and for whom it waits. */
static void print_quarantine(const dmg_pool_quarantined *waiting)
{
    printf("           %s of it freed, and kept from others until what could still write there has ended:",
           dmg_text_bytes(waiting->bytes).text);
    for (uint64_t i = 0; i < waiting->clients && i < DMG_POOL_QUARANTINE_PIDS; i++) {
        if (waiting->pids[i] != 0) {
            printf("%s process %" PRIu64, i > 0 ? "," : "", waiting->pids[i]);
        } else {
            printf("%s a compute node that is not known here", i > 0 ? "," : "");
        }
    }
    if (waiting->clients > DMG_POOL_QUARANTINE_PIDS) {
        printf(", and %" PRIu64 " more", waiting->clients - DMG_POOL_QUARANTINE_PIDS);
    } else if (waiting->clients == 0) {
        printf(" the job that had it");
    }
    putchar('\n');
}

static void print_node(const pool_status *pool, uint32_t index)
{
    const dmg_pool_node *node = &pool->pool.file.nodes[index];
    const node_state *state = &pool->nodes[index];
    printf("MN %-7" PRIu32 " pid %d, %s", index, node->process.pid, state->is_alive ? "alive" : "dead");
    if (state->is_explained) {
        printf(" (%s at %s)", state->end.why, dmg_text_time(state->end.at_s).text);
    }
    if (state->has_usage) {
        printf(": %s of %s allocated, %s at most", dmg_text_bytes(state->allocated).text,
               dmg_text_bytes(state->total).text, dmg_text_bytes(state->peak).text);
    } else {
        printf(", a segment of %s", dmg_text_bytes(node->segment_bytes).text);
    }
    printf("; %s\n", node->address);
    if (state->quarantined.bytes > 0) {
        print_quarantine(&state->quarantined);
    }
}

static json_t *node_json(const pool_status *pool, uint32_t index)
{
    const dmg_pool_node *node = &pool->pool.file.nodes[index];
    const node_state *state = &pool->nodes[index];
    json_t *object = json_pack("{s:I, s:i, s:b, s:s, s:I}", "node", (json_int_t)index, "pid", node->process.pid,
                               "alive", (int)state->is_alive, "address", node->address, "segment_bytes",
                               (json_int_t)(state->has_usage ? state->total : node->segment_bytes));
    json_object_set_new(object, "allocated_bytes",
                        state->has_usage ? json_integer((json_int_t)state->allocated) : json_null());
    json_object_set_new(object, "quarantined_bytes",
                        state->has_usage ? json_integer((json_int_t)state->quarantined.bytes) : json_null());
    json_t *pids = json_array();
    for (uint64_t i = 0; i < state->quarantined.clients && i < DMG_POOL_QUARANTINE_PIDS; i++) {
        uint64_t pid = state->quarantined.pids[i];
        json_array_append_new(pids, pid != 0 ? json_integer((json_int_t)pid) : json_null());
    }
    json_object_set_new(object, "quarantined_for", pids);
    json_object_set_new(object, "peak_bytes", state->has_usage ? json_integer((json_int_t)state->peak) : json_null());
    json_object_set_new(object, "died",
                        state->is_explained ? json_pack("{s:I, s:o}", "at", (json_int_t)state->end.at_s, "why",
                                                        dmg_json_text(state->end.why))
                                            : json_null());
    return object;
}

static void show_graph(void *context, const char *name, const dmg_graph_entry *entry, const dmg_pool_owner *owner)
{
    pool_status *pool = context;
    dmg_pool_holdings_note_graph(&pool->holdings, entry->job);
    if (pool->is_json) {
        json_array_append_new(pool->graphs, dmg_graph_entry_json(name, entry, owner));
        return;
    }
    if (pool->graph_count++ == 0) {
        dmg_graph_entry_print_headings(stdout, 0);
    }
    dmg_graph_entry_print(stdout, 0, name, entry, owner);
}

static void print_pool(const pool_status *pool)
{
    const dmg_pool_file *file = &pool->pool.file;
    printf("pool       %s, %" PRIu32 " memory node%s over %s, started %s\n", file->name, file->node_count,
           file->node_count == 1 ? "" : "s", file->transport, dmg_text_time(file->created_s).text);
    if (!pool->has_files) {
        printf("           its files went away with %s: it was found by its processes\n", pool->folder);
    }
    for (uint32_t node = 0; node < file->node_count; node++) {
        print_node(pool, node);
    }
}

static void print_json(pool_status *pool)
{
    const dmg_pool_file *file = &pool->pool.file;
    json_t *nodes = json_array();
    for (uint32_t node = 0; node < file->node_count; node++) {
        json_array_append_new(nodes, node_json(pool, node));
    }
    json_t *object =
        json_pack("{s:s, s:o, s:I, s:o, s:O}", "pool", file->name, "transport", dmg_json_text(file->transport),
                  "created", (json_int_t)file->created_s, "memory_nodes", nodes, "graphs", pool->graphs);
    json_object_set_new(object, "jobs", dmg_pool_holdings_jobs_json(&pool->holdings));
    json_object_set_new(object, "limits", dmg_pool_limits_json(&pool->holdings.limits));
    json_object_set_new(object, "refused", dmg_pool_refusals_json(&pool->holdings.refusals));
    json_object_set_new(object, "folder", dmg_json_text(pool->folder));
    json_object_set_new(object, "has_files", json_boolean(pool->has_files));
    dmg_json_print(object);
}

static dmg_status ask_nodes(pool_status *pool)
{
    dmg_status status = dmg_pool_client_open(&pool->pool);
    for (uint32_t node = 0; node < pool->pool.file.node_count && status == DMG_OK; node++) {
        node_state *state = &pool->nodes[node];
        status = dmg_pool_usage(pool->pool.channel, (uint16_t)node, &state->allocated, &state->peak, &state->total);
        if (status == DMG_OK) {
            status = dmg_pool_quarantine(pool->pool.channel, (uint16_t)node, &state->quarantined);
        }
        state->has_usage = status == DMG_OK;
    }
    if (status == DMG_OK) {
        status = dmg_pool_holdings_ask(pool->pool.channel, pool->pool.hold.id, &pool->holdings);
    }
    return status;
}

/** What can be said is said, also when a node is dead: that is the step's error. */
static dmg_status tell_status(void *context)
{
    pool_status *pool = context;
    dmg_pool_found found;
    dmg_status status = dmg_pool_find(pool->name, &found);
    if (status != DMG_OK) {
        return status;
    }
    pool->pool.file = found.record.pool;
    snprintf(pool->folder, sizeof pool->folder, "%s", found.record.folder);
    pool->has_files = found.has_files;
    pool->pool.peer_timeout_ns = pool->pool.file.peer_timeout_ns;
    for (uint32_t node = 0; node < pool->pool.file.node_count; node++) {
        node_state *state = &pool->nodes[node];
        state->is_alive = dmg_process_is_alive(&pool->pool.file.nodes[node].process);
        state->is_explained = !state->is_alive && dmg_pool_end_find(&pool->pool.file, node, &state->end);
    }
    status = ask_nodes(pool);
    if (!pool->is_json) {
        print_pool(pool);
    }
    if (status == DMG_OK) {
        status = dmg_pool_graphs(pool->pool.channel, show_graph, pool);
    }
    if (pool->is_json) {
        print_json(pool);
    } else if (status == DMG_OK) {
        if (pool->graph_count == 0) {
            printf("graphs     none\n");
        }
        dmg_pool_holdings_print(stdout, &pool->holdings);
    }
    return dmg_pool_client_close(&pool->pool, status);
}

static int run_status(dmg_settings *settings)
{
    pool_status pool = {.name = settings->positionals[0], .is_json = dmg_flag(settings, DMG_OPTION_JSON)};
    pool.graphs = json_array();
    int code = dmg_work_step_run(tell_status, &pool);
    json_decref(pool.graphs);
    dmg_pool_holdings_free(&pool.holdings);
    return code;
}

/* ---- stop ---- */

/** End the processes of a pool's nodes: politely, then by force. Bounded. */
static dmg_status end_nodes(const dmg_pool_file *file, uint32_t *dead_before, uint32_t *killed)
{
    int open[DMG_MEMORY_NODES_MAX];
    dmg_status status = DMG_OK;
    *dead_before = *killed = 0;
    for (uint32_t node = 0; node < file->node_count; node++) {
        open[node] = dmg_process_open(&file->nodes[node].process);
        *dead_before += open[node] < 0;
        if (open[node] >= 0) {
            dmg_process_signal(open[node], SIGTERM);
        }
    }
    uint64_t memory_bytes = 0;
    for (uint32_t node = 0; node < file->node_count; node++) {
        memory_bytes += file->nodes[node].segment_bytes;
    }
    uint64_t giving_back_ns = dmg_launcher_giving_back_ns(memory_bytes);
    uint64_t deadline_ns = dmg_now_ns() + GRACE_TERM_NS + giving_back_ns;
    for (uint32_t node = 0; node < file->node_count; node++) {
        if (open[node] >= 0 && !dmg_process_wait(open[node], deadline_ns)) {
            *killed += dmg_process_signal(open[node], SIGKILL);
        }
    }
    deadline_ns = dmg_now_ns() + GRACE_KILL_NS + giving_back_ns;
    for (uint32_t node = 0; node < file->node_count; node++) {
        if (open[node] >= 0 && !dmg_process_wait(open[node], deadline_ns)) {
            status = dmg_error(DMG_ERR_PEER, "memory node %" PRIu32 " (pid %d) of the pool '%s' does not end", node,
                               file->nodes[node].process.pid, file->name);
        }
        if (open[node] >= 0) {
            close(open[node]);
        }
    }
    return status;
}

/** Counts what was removed, and says it unless it is to be quiet. */
typedef struct leftovers {
    bool is_quiet;
    uint64_t count;
} leftovers;

static void show_leftover(void *context, const char *path, uint64_t bytes)
{
    leftovers *shown = context;
    shown->count++;
    if (!shown->is_quiet) {
        printf("removed %s (%s), which no process holds\n", path, dmg_text_bytes(bytes).text);
    }
}

typedef struct pool_stop {
    const char *name;
    bool is_quiet;
} pool_stop;

/** What the pool had, and its files where those are. */
static dmg_status remove_pool(const dmg_pool_found *pool, bool is_quiet)
{
    int folder = -1;
    dmg_status status = pool->has_files ? dmg_pool_folder_open_path(pool->record.folder, &folder) : DMG_OK;
    if (status == DMG_OK) {
        leftovers shown = {.is_quiet = is_quiet};
        dmg_transport_sweep(pool->record.pool.created_s, show_leftover, &shown);
    }
    if (folder >= 0) {
        status = dmg_pool_file_remove(folder, pool->record.pool.name);
        close(folder);
    }
    return status;
}

static void print_stopped(const dmg_pool_found *pool, uint32_t dead_before, uint32_t killed)
{
    const dmg_pool_file *file = &pool->record.pool;
    printf("stopped the pool %s", file->name);
    if (!pool->has_files) {
        printf(", whose files had gone with %s", pool->record.folder);
    }
    printf(": %" PRIu32 " memory node%s", file->node_count, file->node_count == 1 ? "" : "s");
    if (dead_before > 0) {
        printf(", %" PRIu32 " of them dead before", dead_before);
    }
    if (killed > 0) {
        printf(", %" PRIu32 " of them killed, as they did not end by themselves", killed);
    }
    putchar('\n');
}

static dmg_status stop(void *context)
{
    const pool_stop *wanted = context;
    dmg_pool_found pool;
    uint32_t dead_before = 0;
    uint32_t killed = 0;
    dmg_status status = dmg_pool_find(wanted->name, &pool);
    if (status == DMG_OK) {
        status = end_nodes(&pool.record.pool, &dead_before, &killed);
    }
    if (status == DMG_OK) {
        status = remove_pool(&pool, wanted->is_quiet);
    }
    if (status == DMG_OK && !wanted->is_quiet) {
        print_stopped(&pool, dead_before, killed);
    }
    return status;
}

static int run_stop(dmg_settings *settings)
{
    pool_stop wanted = {.name = settings->positionals[0], .is_quiet = dmg_flag(settings, DMG_OPTION_QUIET)};
    return dmg_work_step_run(stop, &wanted);
}

/* ---- clean ---- */

static bool ends_with(const char *text, const char *end, size_t *length)
{
    size_t bytes = strlen(text);
    size_t end_bytes = strlen(end);
    *length = bytes - end_bytes;
    return bytes > end_bytes && strcmp(text + bytes - end_bytes, end) == 0;
}

/** Remove the pool when all its nodes are dead. True when something was removed. */
static bool clean_pool(int folder, const char *name)
{
    dmg_pool_file file;
    if (dmg_pool_file_read(folder, name, &file) != DMG_OK) {
        printf("left alone: %s\n", dmg_error_message());
        return false;
    }
    uint32_t alive = dmg_pool_alive_count(&file);
    if (alive == file.node_count) {
        printf("left alone: the pool %s is alive\n", name);
        return false;
    }
    if (alive > 0) {
        printf("left alone: of the pool %s %" PRIu32 " of %" PRIu32
               " memory nodes are alive; 'dmgraph pool stop %s' ends them\n",
               name, alive, file.node_count, name);
        return false;
    }
    if (dmg_pool_file_remove(folder, name) != DMG_OK) {
        printf("left alone: %s\n", dmg_error_message());
        return false;
    }
    printf("removed the pool %s: %s\n", name,
           file.node_count == 1 ? "its memory node is dead" : "all its memory nodes are dead");
    return true;
}

/** A file that was being written by a process that is gone, or a log or a secret without a pool. */
static bool clean_remains(int folder, const char *file)
{
    size_t length;
    char pool[DMG_POOL_NAME_BYTES + 8];
    bool is_ours = false;
    if (ends_with(file, ".new", &length) && file[0] == '.') {
        const char *dot = memrchr(file, '.', length);
        char *end = NULL;
        long pid = dot ? strtol(dot + 1, &end, 10) : 0;
        dmg_process process;
        is_ours = end == file + length && pid > 0 && pid <= INT32_MAX &&
                  dmg_process_identify((int)pid, &process) == DMG_ERR_NOT_FOUND;
    } else if ((ends_with(file, ".log", &length) || ends_with(file, ".admin", &length) ||
                ends_with(file, ".ends", &length)) &&
               length < DMG_POOL_NAME_BYTES) {
        snprintf(pool, sizeof pool, "%.*s.pool", (int)length, file);
        is_ours = faccessat(folder, pool, F_OK, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT;
    }
    if (is_ours && unlinkat(folder, file, 0) == 0) {
        printf("removed %s, which belonged to no pool\n", file);
        return true;
    }
    return false;
}

/** Remove what is left in the folder of pools. */
static dmg_status clean_folder(uint64_t *removed)
{
    int folder = -1;
    dmg_status status = dmg_pool_folder_open(false, &folder);
    if (status != DMG_OK) {
        return status == DMG_ERR_NOT_FOUND ? DMG_OK : status; /* there never was a pool */
    }
    DIR *list = fdopendir(folder);
    if (!list) {
        status = dmg_error_errno(DMG_ERR_IO, errno, "reading the folder of pools");
        close(folder);
        return status;
    }
    for (struct dirent *file = readdir(list); file; file = readdir(list)) {
        char name[DMG_POOL_NAME_BYTES];
        if (dmg_pool_file_is(file->d_name, name)) {
            *removed += clean_pool(folder, name);
        } else {
            *removed += clean_remains(folder, file->d_name);
        }
    }
    closedir(list);
    return DMG_OK;
}

/** Pools that have lost their folder: while a node lives nothing of them is removed, as with others. */
static dmg_status show_lost_pools(void)
{
    dmg_pool_found *pools;
    uint32_t count;
    dmg_status status = dmg_pool_search(&pools, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (!pools[i].has_files) {
            const char *name = pools[i].record.pool.name;
            printf(
                "left alone: the pool %s is alive, and its files went away with %s; 'dmgraph pool stop %s' ends it\n",
                name, pools[i].record.folder, name);
        }
    }
    free(pools);
    return status;
}

static dmg_status clean(void *context)
{
    uint64_t removed = 0;
    leftovers shown = {0};
    (void)context;
    dmg_status status = clean_folder(&removed);
    if (status == DMG_OK) {
        status = show_lost_pools();
    }
    /* Memory of runs, too, and of pools whose file is gone. */
    dmg_transport_sweep(0, show_leftover, &shown);
    if (status == DMG_OK && removed + shown.count == 0) {
        printf("nothing to clean\n");
    }
    return status;
}

static int run_clean(dmg_settings *settings)
{
    (void)settings;
    return dmg_work_step_run(clean, NULL);
}

static const dmg_option_id status_options[] = {DMG_OPTION_JSON, DMG_OPTION_LOG_LEVEL, DMG_OPTION_HELP,
                                               DMG_OPTION_HELP_ALL, DMG_OPTION_COUNT};
static const dmg_option_id stop_options[] = {DMG_OPTION_QUIET, DMG_OPTION_LOG_LEVEL, DMG_OPTION_HELP,
                                             DMG_OPTION_HELP_ALL, DMG_OPTION_COUNT};
static const dmg_option_id clean_options[] = {DMG_OPTION_LOG_LEVEL, DMG_OPTION_HELP, DMG_OPTION_HELP_ALL,
                                              DMG_OPTION_COUNT};

const dmg_command dmg_command_pool_status = {
    .name = "pool status",
    .arguments = "P",
    .argument_count = 1,
    .summary = "tell whether a pool's nodes are alive, what they hold, which graphs are there, and who has what",
    .options = status_options,
    .run = run_status};

const dmg_command dmg_command_pool_stop = {.name = "pool stop",
                                           .arguments = "P",
                                           .argument_count = 1,
                                           .summary = "end a pool: its graphs are gone, and runs on it fail",
                                           .details = "Nodes that do not end within 5 s are killed.\n",
                                           .options = stop_options,
                                           .run = run_stop};

const dmg_command dmg_command_pool_clean = {.name = "pool clean",
                                            .arguments = "",
                                            .summary =
                                                "remove what pools and runs have left whose processes were all killed",
                                            .options = clean_options,
                                            .run = run_clean};
