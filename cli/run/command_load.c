/*
 * dmgraph load: a graph into a long-lived pool, where it stays.
 *
 * Compute nodes load it within a job of theirs. When all have loaded, the launcher, a client of the pool too, attaches
 * itself to that job and publishes the graph: the one step after which it is there. Whatever dies before that takes the
 * job with it, and all that was loaded.
 */
#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/options/command.h"
#include "cli/pool/graph.h"
#include "cli/run/run.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/** As many lengths fit into an index entry for most lists, so that they cost next to nothing (docs/pools.md). */
#define PARTITIONS_DEFAULT 16

static dmg_status complete_settings(dmg_run *run)
{
    dmg_settings *settings = run->settings;
    const char *pool = dmg_value_text(settings, DMG_OPTION_POOL);
    const char *name = dmg_value_text(settings, DMG_OPTION_AS);
    if (!pool || !name) {
        return dmg_error(DMG_ERR_ARGUMENT, "load: say into which pool, and under which name: --pool P --as NAME");
    }
    run->cn_count = (uint32_t)dmg_number(settings, DMG_OPTION_CNS);
    dmg_run_choose_threads(run);
    if (!dmg_has(settings, DMG_OPTION_PARTITIONS)) {
        dmg_set_number(settings, DMG_OPTION_PARTITIONS, PARTITIONS_DEFAULT);
    }
    run->partitions = (uint32_t)dmg_number(settings, DMG_OPTION_PARTITIONS);
    dmg_status status = dmg_graph_name_check(name);
    if (status == DMG_OK) {
        status = dmg_graph_source_options(settings, &run->reading);
    }
    if (status == DMG_OK) {
        status = dmg_pool_find_file(pool, &run->pool->file);
    }
    if (status == DMG_OK) {
        status = dmg_run_pool_settings(run);
    }
    run->peer_timeout_ns = run->pool->peer_timeout_ns;
    run->with_in = !dmg_flag(settings, DMG_OPTION_OUT_LISTS_ONLY);
    run->reading.with_reverse = run->with_in;
    run->reading.progress = dmg_progress_bar_show;
    run->reading.progress_context = run->bar;
    return status;
}

/* ---- steps ---- */

static dmg_status attach(void *context)
{
    dmg_run *run = context;
    dmg_pool_client *pool = run->pool;
    pool->shows_identity = true;
    dmg_status status = dmg_pool_client_open(pool);
    if (status == DMG_OK) {
        status = dmg_run_pool_check_limits(run);
    }
    if (status == DMG_OK) {
        status = dmg_graph_sweep(pool->channel, NULL);
    }
    return status == DMG_OK
               ? dmg_graph_reserve(pool->channel, pool->hold.id, dmg_value_text(run->settings, DMG_OPTION_AS))
               : status;
}

static dmg_status read_graph(void *context)
{
    dmg_run *run = context;
    dmg_status status = dmg_graph_source_read(run->path, &run->reading, &run->source);
    run->is_weighted = run->source.graph.weight_kind != DMG_WEIGHT_NONE;
    return status == DMG_OK ? dmg_graph_source_share(run->path, &run->source) : status;
}

/** The end of a name, when all of it is too long. */
static void copy_name(const char *from, char to[DMG_GRAPH_SOURCE_BYTES])
{
    size_t length = strlen(from);
    size_t skipped = length < DMG_GRAPH_SOURCE_BYTES ? 0 : length - (DMG_GRAPH_SOURCE_BYTES - 1);
    memcpy(to, from + skipped, length - skipped + 1);
}

static void describe(dmg_run *run)
{
    const dmg_graph *graph = &run->source.graph;
    dmg_graph_entry *entry = &run->entry;
    entry->job = run->cns[0].report.job;
    entry->loop_arcs = graph->loop_arcs;
    entry->repeated_arcs = graph->repeated_arcs;
    entry->loaded_s = (uint64_t)time(NULL);
    entry->negative_line = graph->negative_line;
    memcpy(entry->negative_source, graph->negative_source, sizeof entry->negative_source);
    copy_name(dmg_graph_source_name(run->path), entry->source);
}

/**
 * In the main thread, so that a signal cannot come between its parts: they take as long as a few messages, or the peer
 * timeout. The compute nodes are still in the job.
 */
static dmg_status publish(dmg_run *run)
{
    dmg_channel *channel = run->pool->channel;
    char name[DMG_CATALOG_NAME_BYTES];
    size_t bytes = sizeof run->entry.store;
    describe(run);
    dmg_graph_job_store_name(run->entry.job, name);
    dmg_status status = dmg_job_attach(channel, run->entry.job, run->job_pass.secret);
    if (status == DMG_OK) {
        status = dmg_catalog_get(channel, name, &run->entry.store, &bytes);
    }
    if (status == DMG_OK) {
        status = dmg_graph_store_check(&run->entry.store, bytes, run->pool->client);
    }
    if (status == DMG_OK) {
        status = dmg_graph_publish(channel, dmg_value_text(run->settings, DMG_OPTION_AS), &run->entry);
    }
    return status;
}

static double seconds_since(uint64_t started_ns)
{
    return (double)(dmg_now_ns() - started_ns) / 1e9;
}

static dmg_status go(dmg_run *run)
{
    uint64_t started_ns = dmg_now_ns();
    dmg_status status = dmg_launcher_create(&run->launcher);
    if (status == DMG_OK) {
        status = dmg_launcher_call_witness(run->launcher);
    }
    if (status == DMG_OK) {
        dmg_run_listen(run);
        status = dmg_launcher_call(run->launcher, attach, run);
    }
    uint64_t reading_ns = dmg_now_ns();
    if (status == DMG_OK) {
        status = dmg_launcher_call(run->launcher, read_graph, run);
    }
    run->times.read = seconds_since(reading_ns);
    if (status == DMG_OK) {
        status = dmg_run_compute(run);
        dmg_status whole = status == DMG_ERR_CANCELLED ? DMG_OK : dmg_graph_source_check_whole(run->path, &run->source);
        status = whole == DMG_OK ? status : whole;
    }
    dmg_progress_bar_clear(run->bar);
    if (status == DMG_OK) {
        status = publish(run);
    }
    run->times.total = seconds_since(started_ns);
    return status;
}

/* ---- what is printed ---- */

static void report(const dmg_run *run)
{
    const char *name = dmg_value_text(run->settings, DMG_OPTION_AS);
    const dmg_run_times *times = &run->times;
    if (dmg_flag(run->settings, DMG_OPTION_JSON)) {
        json_t *object = json_object();
        json_object_set_new(object, "pool", json_string(run->pool->file.name));
        json_object_set_new(object, "graph", dmg_graph_entry_json(name, &run->entry, &run->job_pass.owner));
        json_object_set_new(object, "source", dmg_graph_source_json(run->path, &run->source));
        json_object_set_new(object, "loading", dmg_run_loading_json(run));
        json_object_set_new(object, "seconds",
                            json_pack("{s:f, s:f, s:f, s:f}", "total", times->total, "read", times->read, "start",
                                      times->start, "load", times->load));
        dmg_json_print(object);
        return;
    }
    if (!dmg_flag(run->settings, DMG_OPTION_QUIET)) {
        dmg_graph_source_print(stdout, run->path, &run->source);
        printf("loaded     as %s into the pool %s: %s on %" PRIu32 " memory node%s, %" PRIu32 " partition%s\n", name,
               run->pool->file.name, dmg_text_bytes(run->entry.pool_bytes).text, run->mn_count,
               run->mn_count == 1 ? "" : "s", run->partitions, run->partitions == 1 ? "" : "s");
        dmg_run_print_loading(stdout, run);
        printf("time       %s in all: read %s, start nodes %s, load %s\n", dmg_text_seconds(times->total).text,
               dmg_text_seconds(times->read).text, dmg_text_seconds(times->start).text,
               dmg_text_seconds(times->load).text);
    }
}

static void clean_up(dmg_run *run)
{
    /* The graph is there, whatever becomes of the nodes that loaded it. */
    if (dmg_launcher_dismiss(run->launcher, DMG_CHILD_COMPUTE_NODE, "leave") != DMG_OK) {
        dmg_launcher_stop(run->launcher);
    }
    dmg_pool_client_close(run->pool, DMG_OK);
    dmg_launcher_destroy(run->launcher);
    dmg_graph_source_close(&run->source);
    dmg_run_free_rows(run);
    free(run->pool);
    dmg_progress_bar_destroy(run->bar);
    free(run);
}

static const dmg_option_id options[] = {DMG_OPTION_POOL,
                                        DMG_OPTION_AS,
                                        DMG_OPTION_CNS,
                                        DMG_OPTION_THREADS,
                                        DMG_OPTION_FORMAT,
                                        DMG_OPTION_DIRECTED,
                                        DMG_OPTION_UNDIRECTED,
                                        DMG_OPTION_UNWEIGHTED,
                                        DMG_OPTION_DEDUP,
                                        DMG_OPTION_NO_LOOPS,
                                        DMG_OPTION_OUT_LISTS_ONLY,
                                        DMG_STORE_OPTIONS,
                                        DMG_OPTION_PIN_THREADS,
                                        DMG_OPTION_ALLOW_FALLBACK,
                                        DMG_OPTION_PEER_TIMEOUT,
                                        DMG_OPTION_JSON,
                                        DMG_OPTION_QUIET,
                                        DMG_OPTION_NO_PROGRESS,
                                        DMG_OPTION_LOG_LEVEL,
                                        DMG_OPTION_HELP,
                                        DMG_OPTION_HELP_ALL,
                                        DMG_OPTION_COUNT};

static int run_load(dmg_settings *settings)
{
    dmg_run *run = calloc(1, sizeof *run);
    dmg_pool_client *pool = calloc(1, sizeof *pool);
    if (!run || !pool) {
        free(run);
        free(pool);
        return dmg_exit_with_error(dmg_error(DMG_ERR_MEMORY, "no memory to start"));
    }
    run->settings = settings;
    run->options = options;
    run->pool = pool;
    run->path = settings->positionals[0];
    run->source.file = -1;
    run->started_s = (uint64_t)time(NULL);
    run->bar = dmg_progress_bar_create(!dmg_flag(settings, DMG_OPTION_NO_PROGRESS));
    dmg_status status = complete_settings(run);
    if (status == DMG_OK) {
        status = dmg_run_check_descriptors(run);
    }
    if (status == DMG_OK) {
        status = dmg_pool_job_name("load", run->job_name);
    }
    if (status == DMG_OK) {
        status = dmg_job_pass_make(true, run->token, &run->job_pass);
    }
    if (status == DMG_OK) {
        status = go(run);
    }
    if (status != DMG_OK) {
        dmg_run_give_up(run, status);
    }
    report(run);
    clean_up(run);
    return DMG_EXIT_OK;
}

const dmg_command dmg_command_load = {
    .name = "load",
    .arguments = "GRAPH",
    .argument_count = 1,
    .summary = "load a graph into a long-lived pool, for many runs",
    .details =
        "GRAPH is an edge list, a Matrix Market file (both also compressed by gzip, zstd or xz), or what 'dmgraph "
        "convert' wrote;\n"
        "- is the standard input.\n"
        "It stays in the pool until 'dmgraph unload NAME', by who loaded it, or the pool's end. A load that fails "
        "leaves\n"
        "nothing.\n",
    .options = options,
    .run = run_load};
