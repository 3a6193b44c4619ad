/*
 * dmgraph pool start: starts memory nodes that outlive this program.
 *
 * start the nodes -> all have said their addresses -> write the pool's file -> all detach themselves from this program
 * -> connect once, to see that they serve -> become their keeper, of whom the process that was called takes leave.
 * Until the third arrow the nodes die with this program; from then on the file names everything that lives. When a
 * later step fails the nodes are stopped and the file is removed.
 */
#include "cli/base/descriptors.h"
#include "cli/base/exit_code.h"
#include "cli/base/standard_output.h"
#include "cli/base/text.h"
#include "cli/launcher/control.h"
#include "cli/launcher/launcher.h"
#include "cli/launcher/segments.h"
#include "cli/options/command.h"
#include "cli/pool/client.h"
#include "cli/pool/keeper.h"
#include "cli/pool/limits.h"
#include "cli/pool/record.h"
#include "cli/pool/search.h"
#include "core/base/error.h"
#include "core/pool/token.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT_DEFAULT "1G"

typedef struct pool_start {
    dmg_settings *settings;
    dmg_pool_client client;
    dmg_launcher *launcher;
    dmg_progress_bar *bar;
    dmg_child *children[DMG_MEMORY_NODES_MAX];
    dmg_placement placements[DMG_MEMORY_NODES_MAX];
    uint32_t detached_count;
    uint8_t admin[DMG_SECRET_BYTES];
    int folder;
    int log;
    int record;
    int waiting; /* the process that was called */
    bool has_file;
} pool_start;

/* ---- settings ---- */

/** One size for all nodes, or one for each. */
static dmg_status take_segments(const char *text, dmg_pool_file *file)
{
    uint64_t sizes[DMG_SIZES_MAX];
    uint32_t count;
    dmg_status status = dmg_parse_sizes(text ? text : SEGMENT_DEFAULT, sizes, DMG_SIZES_MAX, &count);
    if (status == DMG_OK && count != 1 && count != file->node_count) {
        status =
            dmg_error(DMG_ERR_ARGUMENT, "pool start: --memory names %" PRIu32 " sizes for %" PRIu32 " memory nodes",
                      count, file->node_count);
    }
    for (uint32_t node = 0; node < file->node_count && status == DMG_OK; node++) {
        file->nodes[node].segment_bytes = sizes[count == 1 ? 0 : node];
    }
    return status;
}

static dmg_status complete_settings(pool_start *start)
{
    const dmg_settings *settings = start->settings;
    dmg_pool_file *file = &start->client.file;
    const char *name = dmg_value_text(settings, DMG_OPTION_NAME);
    const char *transport = dmg_value_text(settings, DMG_OPTION_TRANSPORT);
    if (!name) {
        return dmg_error(DMG_ERR_ARGUMENT, "pool start: --name P is missing");
    }
    dmg_status status = dmg_pool_name_check(name);
    if (status == DMG_OK && strlen(transport) >= sizeof file->transport) {
        status = dmg_error(DMG_ERR_ARGUMENT, "pool start: the transport is too long");
    }
    if (status == DMG_OK) {
        status = dmg_token_make(file->token);
    }
    if (status == DMG_OK) {
        status = dmg_secret_make(start->admin);
    }
    if (status != DMG_OK) {
        return status;
    }
    memcpy(file->name, name, strlen(name) + 1);
    memcpy(file->transport, transport, strlen(transport) + 1);
    file->created_s = (uint64_t)time(NULL);
    file->peer_timeout_ns = dmg_number(settings, DMG_OPTION_PEER_TIMEOUT);
    file->node_count = (uint32_t)dmg_number(settings, DMG_OPTION_MNS);
    start->client.peer_timeout_ns = file->peer_timeout_ns;
    return take_segments(dmg_value_text(settings, DMG_OPTION_MEMORY), file);
}

/** A pool of this name whose file was in this folder, which has gone and come back since. */
static dmg_status check_lost_pools(const char *name)
{
    char folder[PATH_MAX];
    dmg_pool_found *pools;
    uint32_t count;
    dmg_pool_folder_path(folder, sizeof folder);
    dmg_status status = dmg_pool_search(&pools, &count);
    for (uint32_t i = 0; i < count && status == DMG_OK; i++) {
        if (strcmp(pools[i].record.pool.name, name) == 0 && strcmp(pools[i].record.folder, folder) == 0) {
            status = dmg_error(DMG_ERR_EXISTS,
                               "there is a pool '%s' already, whose files went away with %s: 'dmgraph pool stop %s' "
                               "ends it",
                               name, folder, name);
        }
    }
    free(pools);
    return status;
}

/** The name must be free; the log is for what the nodes say. */
static dmg_status open_folder(pool_start *start)
{
    const char *name = start->client.file.name;
    dmg_pool_file other;
    dmg_status status = dmg_pool_folder_open(true, &start->folder);
    if (status != DMG_OK) {
        return status;
    }
    status = dmg_pool_file_read(start->folder, name, &other);
    if (status != DMG_ERR_NOT_FOUND) {
        bool is_dead = status == DMG_OK && dmg_pool_alive_count(&other) == 0;
        return status != DMG_OK ? status
                                : dmg_error(DMG_ERR_EXISTS, "there is a pool '%s' already%s", name,
                                            is_dead ? ", but it is dead: 'dmgraph pool clean' removes it" : "");
    }
    status = check_lost_pools(name);
    return status == DMG_OK ? dmg_pool_log_open(start->folder, name, &start->log) : status;
}

/* ---- nodes ---- */

static dmg_status take_message(void *context, dmg_child *child, json_t *message)
{
    pool_start *start = context;
    if (!message) {
        return DMG_OK;
    }
    if (strcmp(dmg_control_type(message), "detached") == 0) {
        start->detached_count++;
        return DMG_OK;
    }
    const char *address = NULL;
    dmg_status status = dmg_control_unpack(message, "{s:s}", "address", &address);
    if (status == DMG_OK && (!*address || strlen(address) >= DMG_ADDRESS_STRING_BYTES)) {
        status = dmg_error(DMG_ERR_PROTOCOL, "memory node %" PRIu32 " gave an impossible address", child->index);
    }
    if (status == DMG_OK) {
        dmg_pool_node *node = &start->client.file.nodes[child->index];
        memcpy(node->address, address, strlen(address) + 1);
        status = dmg_process_identify(child->pid, &node->process);
    }
    if (status == DMG_OK) {
        status = dmg_placement_from_json(json_object_get(message, "segment"), &start->placements[child->index]);
    }
    return status;
}

static bool all_have_addresses(void *context)
{
    const dmg_pool_file *file = &((const pool_start *)context)->client.file;
    uint32_t count = 0;
    for (uint32_t node = 0; node < file->node_count; node++) {
        count += file->nodes[node].address[0] != '\0';
    }
    return count == file->node_count;
}

/** Also when one has ended by itself: that is looked at then. */
static bool all_have_detached(void *context)
{
    const pool_start *start = context;
    bool has_ended = false;
    for (uint32_t node = 0; node < start->client.file.node_count; node++) {
        has_ended = has_ended || !start->children[node]->is_running;
    }
    return has_ended || start->detached_count == start->client.file.node_count;
}

static json_t *setup(const pool_start *start, uint32_t node)
{
    const dmg_settings *settings = start->settings;
    const dmg_pool_file *file = &start->client.file;
    const char *bind = dmg_value_text(settings, DMG_OPTION_BIND);
    const dmg_pool_limits limits = dmg_pool_limits_of_settings(settings);
    char token[DMG_TOKEN_TEXT_BYTES];
    char admin[DMG_SECRET_TEXT_BYTES];
    dmg_token_write(file->token, token);
    dmg_secret_write(start->admin, admin);
    const dmg_segment_options segment = dmg_segment_of_settings(settings, file->nodes[node].segment_bytes);
    json_t *object =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:b}", "type", "setup", "token", token, "peer_timeout_ns",
                  (json_int_t)file->peer_timeout_ns, "log_level",
                  (json_int_t)dmg_number(settings, DMG_OPTION_LOG_LEVEL), "node", (json_int_t)node, "detached", 1);
    json_object_set_new(object, "admin", json_string(admin));
    json_object_set_new(object, "limits", dmg_pool_limits_json(&limits));
    dmg_segment_put(object, &segment);
    json_object_set_new(object, "transport", dmg_json_text(file->transport));
    if (bind) {
        json_object_set_new(object, "bind", dmg_json_text(bind));
    }
    return object;
}

/** For the nodes themselves, and to see that they serve; what runs will need of them is asked then. */
static dmg_status check_descriptors(const pool_start *start)
{
    const dmg_pool_file *file = &start->client.file;
    const dmg_descriptor_users users = {.transport = file->transport,
                                        .memory_nodes = file->node_count,
                                        .started_memory_nodes = file->node_count,
                                        .own_channels = DMG_CLIENT_OTHER_CHANNELS};
    return dmg_descriptors_check(&users);
}

static dmg_status start_nodes(pool_start *start)
{
    const dmg_pool_file *file = &start->client.file;
    uint64_t bytes[DMG_MEMORY_NODES_MAX];
    uint64_t all_bytes = 0;
    for (uint32_t node = 0; node < file->node_count; node++) {
        bytes[node] = file->nodes[node].segment_bytes;
        all_bytes += bytes[node];
    }
    dmg_status status = dmg_segments_check_room(start->settings, bytes, file->node_count);
    if (status == DMG_OK) {
        status = dmg_pool_record_create(file->name, &start->record);
    }
    dmg_launcher_listen(start->launcher, start->client.peer_timeout_ns, take_message, start);
    for (uint32_t node = 0; node < file->node_count && status == DMG_OK; node++) {
        status = dmg_launcher_start_session(start->launcher, DMG_CHILD_MEMORY_NODE, node, "memory-node", start->record,
                                            start->log, &start->children[node]);
        if (status == DMG_OK) {
            status = dmg_launcher_send(start->launcher, start->children[node], setup(start, node));
        }
    }
    return status == DMG_OK ? dmg_segments_wait(start->launcher, all_bytes, start->bar, all_have_addresses, start)
                            : status;
}

static dmg_status detach_nodes(pool_start *start)
{
    dmg_status status = DMG_OK;
    dmg_launcher_expect_detaching(start->launcher);
    for (uint32_t node = 0; node < start->client.file.node_count && status == DMG_OK; node++) {
        status = dmg_launcher_send(start->launcher, start->children[node], json_pack("{s:s}", "type", "detach"));
    }
    return status == DMG_OK ? dmg_launcher_wait(start->launcher, all_have_detached, start) : status;
}

static dmg_status try_nodes(void *context)
{
    pool_start *start = context;
    return dmg_pool_client_close(&start->client, dmg_pool_client_open(&start->client));
}

static dmg_status go(pool_start *start)
{
    dmg_status status = dmg_launcher_create(&start->launcher);
    if (status == DMG_OK) {
        status = start_nodes(start);
    }
    if (status == DMG_OK) {
        status = dmg_pool_file_write(start->folder, &start->client.file);
        start->has_file = status == DMG_OK;
    }
    if (status == DMG_OK) {
        status = dmg_pool_admin_write(start->folder, start->client.file.name, start->admin);
    }
    if (status == DMG_OK) {
        status = dmg_pool_record_write(start->record, &start->client.file);
    }
    if (status == DMG_OK) {
        status = detach_nodes(start);
    }
    if (status == DMG_OK) {
        status = dmg_launcher_call(start->launcher, try_nodes, start);
    }
    return status;
}

static _Noreturn void give_up(pool_start *start, dmg_status status)
{
    int number = start->launcher ? dmg_launcher_signal(start->launcher) : 0;
    int code = dmg_exit_with_error(status);
    fflush(NULL);
    if (start->launcher) {
        dmg_launcher_stop(start->launcher);
        dmg_transport_sweep(start->client.file.created_s, NULL, NULL);
    }
    if (start->has_file) {
        dmg_pool_file_remove(start->folder, start->client.file.name);
    } else if (start->log >= 0 && status != DMG_ERR_EXISTS) {
        dmg_pool_log_remove(start->folder, start->client.file.name);
    }
    _exit(number ? DMG_EXIT_SIGNAL + number : code);
}

static void report(const pool_start *start)
{
    const dmg_pool_file *file = &start->client.file;
    char path[PATH_MAX];
    dmg_pool_path(file->name, "pool", path, sizeof path);
    printf("pool %s: %" PRIu32 " memory node%s over %s\n", file->name, file->node_count,
           file->node_count == 1 ? "" : "s", file->transport);
    for (uint32_t node = 0; node < file->node_count; node++) {
        printf("  MN %" PRIu32 ": pid %d, %s, %s\n", node, file->nodes[node].process.pid,
               dmg_text_bytes(file->nodes[node].segment_bytes).text, file->nodes[node].address);
        if (dmg_segments_are_special(start->settings)) {
            printf("        ");
            dmg_placement_print(stdout, &start->placements[node]);
            putchar('\n');
        }
    }
    printf("  %s\n", path);
}

static int run(dmg_settings *settings)
{
    pool_start *start = calloc(1, sizeof *start);
    if (!start) {
        return dmg_exit_with_error(dmg_error(DMG_ERR_MEMORY, "no memory to start"));
    }
    start->settings = settings;
    start->folder = start->log = start->record = start->waiting = -1;
    dmg_status status = dmg_pool_keeper_fork(&start->waiting);
    start->bar = dmg_progress_bar_create(!dmg_flag(settings, DMG_OPTION_QUIET));
    if (status == DMG_OK) {
        status = complete_settings(start);
    }
    if (status == DMG_OK) {
        status = check_descriptors(start);
    }
    if (status == DMG_OK) {
        status = open_folder(start);
    }
    if (status == DMG_OK) {
        status = go(start);
    }
    if (status != DMG_OK) {
        give_up(start, status);
    }
    dmg_launcher_let_go(start->launcher);
    dmg_launcher_destroy(start->launcher);
    if (!dmg_flag(settings, DMG_OPTION_QUIET)) {
        report(start);
    }
    dmg_progress_bar_destroy(start->bar);
    status = dmg_standard_output_flush();
    int code = status != DMG_OK ? dmg_exit_with_error(status) : ferror(stderr) ? DMG_EXIT_IO : DMG_EXIT_OK;
    dmg_pool_keeper_stay(start->waiting, code, start->record, start->log, start->client.file.name);
}

static const dmg_option_id options[] = {DMG_OPTION_NAME,         DMG_OPTION_TRANSPORT,    DMG_OPTION_TRUST_NETWORK,
                                        DMG_OPTION_MNS,          DMG_OPTION_MEMORY,       DMG_OPTION_BIND,
                                        DMG_SEGMENT_OPTIONS,     DMG_POOL_LIMITS_OPTIONS, DMG_OPTION_ALLOW_FALLBACK,
                                        DMG_OPTION_PEER_TIMEOUT, DMG_OPTION_QUIET,        DMG_OPTION_LOG_LEVEL,
                                        DMG_OPTION_HELP,         DMG_OPTION_HELP_ALL,     DMG_OPTION_COUNT};

const dmg_command dmg_command_pool_start = {
    .name = "pool start",
    .arguments = "",
    .summary = "start memory nodes that stay, for graphs that are loaded once",
    .details = "The nodes run until 'dmgraph pool stop P'. Their messages go into a log beside the pool's file.\n",
    .options = options,
    .run = run};
