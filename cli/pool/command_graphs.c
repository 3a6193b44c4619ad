/* dmgraph list and dmgraph unload: the graphs of a long-lived pool. */
#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/launcher/work_step.h"
#include "cli/options/command.h"
#include "cli/pool/client.h"
#include "cli/pool/graph.h"
#include "core/base/error.h"

#include <string.h>

typedef struct graphs_work {
    dmg_settings *settings;
    dmg_pool_client pool;
    json_t *list; /* for --json, or NULL */
    uint64_t count;
    uint64_t freed_bytes;
} graphs_work;

static dmg_status open_pool(graphs_work *work)
{
    const char *name = dmg_value_text(work->settings, DMG_OPTION_POOL);
    dmg_status status = name ? dmg_pool_find_file(name, &work->pool.file)
                             : dmg_error(DMG_ERR_ARGUMENT, "say in which pool: --pool P is missing");
    if (status == DMG_OK) {
        work->pool.peer_timeout_ns = work->pool.file.peer_timeout_ns;
        status = dmg_pool_client_open(&work->pool);
    }
    return status;
}

static void show(void *context, const char *name, const dmg_graph_entry *entry, const dmg_pool_owner *owner)
{
    graphs_work *work = context;
    if (work->list) {
        json_array_append_new(work->list, dmg_graph_entry_json(name, entry, owner));
        return;
    }
    if (work->count++ == 0) {
        dmg_graph_entry_print_headings(stdout, 0);
    }
    dmg_graph_entry_print(stdout, 0, name, entry, owner);
}

static dmg_status list_graphs(void *context)
{
    graphs_work *work = context;
    dmg_status status = open_pool(work);
    if (status == DMG_OK) {
        status = dmg_pool_graphs(work->pool.channel, show, work);
    }
    return dmg_pool_client_close(&work->pool, status);
}

static int run_list(dmg_settings *settings)
{
    graphs_work work = {.settings = settings};
    work.list = dmg_flag(settings, DMG_OPTION_JSON) ? json_array() : NULL;
    int code = dmg_work_step_run(list_graphs, &work);
    if (code == DMG_EXIT_OK && work.list) {
        dmg_json_print(json_incref(work.list));
    } else if (code == DMG_EXIT_OK && work.count == 0) {
        printf("the pool %s holds no graphs\n", work.pool.file.name);
    }
    json_decref(work.list);
    return code;
}

static dmg_status unload_graph(void *context)
{
    graphs_work *work = context;
    bool is_admin = dmg_flag(work->settings, DMG_OPTION_ADMIN);
    work->pool.shows_identity = !is_admin;
    dmg_status status = open_pool(work);
    if (status == DMG_OK && is_admin) {
        status = dmg_pool_client_administer(&work->pool);
    }
    if (status == DMG_OK) {
        status = dmg_graph_unload(work->pool.channel, work->settings->positionals[0], &work->freed_bytes);
    }
    if (status == DMG_OK) {
        status = dmg_graph_sweep(work->pool.channel, NULL);
    }
    return dmg_pool_client_close(&work->pool, status);
}

static int run_unload(dmg_settings *settings)
{
    graphs_work work = {.settings = settings};
    int code = dmg_work_step_run(unload_graph, &work);
    if (code == DMG_EXIT_OK && !dmg_flag(settings, DMG_OPTION_QUIET)) {
        printf("unloaded %s: %s are free again in the pool %s\n", settings->positionals[0],
               dmg_text_bytes(work.freed_bytes).text, work.pool.file.name);
    }
    return code;
}

static const dmg_option_id list_options[] = {DMG_OPTION_POOL, DMG_OPTION_JSON,     DMG_OPTION_LOG_LEVEL,
                                             DMG_OPTION_HELP, DMG_OPTION_HELP_ALL, DMG_OPTION_COUNT};
static const dmg_option_id unload_options[] = {DMG_OPTION_POOL,      DMG_OPTION_ADMIN, DMG_OPTION_QUIET,
                                               DMG_OPTION_LOG_LEVEL, DMG_OPTION_HELP,  DMG_OPTION_HELP_ALL,
                                               DMG_OPTION_COUNT};

const dmg_command dmg_command_list = {.name = "list",
                                      .arguments = "",
                                      .summary = "list the graphs in a long-lived pool",
                                      .options = list_options,
                                      .run = run_list};

const dmg_command dmg_command_unload = {.name = "unload",
                                        .arguments = "NAME",
                                        .argument_count = 1,
                                        .summary = "remove a graph from a long-lived pool",
                                        .details =
                                            "All memory of the graph is freed. Refused while a run works on it, and to "
                                            "others than who loaded it,\n"
                                            "unless --admin is given by who has the pool's admin secret "
                                            "(docs/pools.md).\n",
                                        .options = unload_options,
                                        .run = run_unload};
