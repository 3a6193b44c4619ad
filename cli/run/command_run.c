/*
 * dmgraph run: reads the graph, starts memory nodes and compute nodes as child processes, has them load and run, reads
 * the result out of the pool, and cleans up. With --pool the memory nodes and the graph are there already (run_pool.c).
 *
 * When anything goes wrong, the course stops where it is, and one place (give_up) stops the nodes, removes what was
 * begun, and ends the process: a step may still be running in its thread, so nothing is freed then.
 */
#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/options/algorithm_options.h"
#include "cli/options/command.h"
#include "cli/options/engine_options.h"
#include "cli/options/link_options.h"
#include "cli/run/run.h"
#include "cli/run/systems.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- settings ---- */

static dmg_status unknown_algorithm(const char *name)
{
    char known[256] = "";
    size_t used = 0;
    for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm && used < sizeof known; algorithm++) {
        int length = snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", (*algorithm)->name);
        used += length > 0 ? (size_t)length : 0;
    }
    return dmg_error(DMG_ERR_ARGUMENT, "run: there is no algorithm '%s'; there are %s", name, known);
}

void dmg_run_choose_threads(dmg_run *run)
{
    run->threads = dmg_engine_threads(run->settings, run->cn_count);
    dmg_set_number(run->settings, DMG_OPTION_THREADS, run->threads);
}

/** Fill in what depends on other settings, so that the echo shows it. */
static dmg_status complete_settings(dmg_run *run)
{
    dmg_settings *settings = run->settings;
    run->mn_count = (uint32_t)dmg_number(settings, DMG_OPTION_MNS);
    run->cn_count = (uint32_t)dmg_number(settings, DMG_OPTION_CNS);
    dmg_run_choose_threads(run);
    if (!run->pool && !dmg_has(settings, DMG_OPTION_PARTITIONS)) {
        dmg_set_number(settings, DMG_OPTION_PARTITIONS, run->cn_count);
    }
    run->partitions = (uint32_t)dmg_number(settings, DMG_OPTION_PARTITIONS);
    const char *memory = dmg_value_text(settings, DMG_OPTION_MEMORY);
    if (memory && strchr(memory, ',')) {
        return dmg_error(DMG_ERR_ARGUMENT, "run: --memory takes one size, for all memory nodes");
    }
    run->peer_timeout_ns = dmg_number(settings, DMG_OPTION_PEER_TIMEOUT);
    static const dmg_option_id beside_json[] = {DMG_OPTION_TABLE, DMG_OPTION_COUNT};
    dmg_status status = dmg_algorithm_options_check(settings, &run->algorithm, 1);
    if (status == DMG_OK && dmg_flag(settings, DMG_OPTION_JSON)) {
        status = dmg_options_refuse(settings, beside_json, "with --json, which has all iterations");
    }
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "run");
    }
    status = dmg_link_options(settings, run->cn_count * run->threads, &run->has_link, &run->link);
    if (status == DMG_OK) {
        status = dmg_graph_source_options(settings, &run->reading);
    }
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "run");
    }
    if (!run->algorithm->uses_weights) {
        run->reading.weights = DMG_WEIGHTS_IGNORED;
    }
    bool only_out = dmg_flag(settings, DMG_OPTION_OUT_LISTS_ONLY);
    if (only_out && run->algorithm->needs_in) {
        return dmg_error(DMG_ERR_ARGUMENT, "run: %s needs the lists against the arcs; leave out --out-lists-only",
                         run->algorithm->name);
    }
    run->with_in = run->algorithm->needs_in || (run->algorithm->wants_in && !only_out);
    run->reading.with_reverse = run->with_in;
    run->reading.progress = dmg_progress_bar_show;
    run->reading.progress_context = run->bar;
    run->parameters = (dmg_algorithm_options){
        .source = DMG_NO_VERTEX,
        .iterations_max = (uint32_t)dmg_number(settings, DMG_OPTION_ITERATIONS),
        .tolerance = dmg_has(settings, DMG_OPTION_TOLERANCE) ? settings->values[DMG_OPTION_TOLERANCE].real : -1,
        .damping = dmg_has(settings, DMG_OPTION_DAMPING) ? settings->values[DMG_OPTION_DAMPING].real : -1};
    return DMG_OK;
}

/* ---- the graph ---- */

static dmg_status read_graph(void *context)
{
    dmg_run *run = context;
    return dmg_graph_source_read(run->path, &run->reading, &run->source);
}

static dmg_status share_graph(void *context)
{
    dmg_run *run = context;
    return dmg_graph_source_share(run->path, &run->source);
}

static dmg_status choose_source(dmg_run *run)
{
    const dmg_graph *graph = &run->source.graph;
    if (dmg_has(run->settings, DMG_OPTION_SOURCE)) {
        uint64_t id = dmg_number(run->settings, DMG_OPTION_SOURCE);
        run->parameters.source = dmg_graph_find(graph, id);
        if (run->parameters.source != DMG_NO_VERTEX) {
            return DMG_OK;
        }
        if (graph->vertex_count == 0) {
            return dmg_error(DMG_ERR_ARGUMENT, "--source %" PRIu64 ": %s has no vertices", id,
                             dmg_graph_source_name(run->path));
        }
        return dmg_error(DMG_ERR_ARGUMENT,
                         "--source %" PRIu64 " is no vertex of %s, whose ids are %" PRIu64 " to %" PRIu64 "%s", id,
                         dmg_graph_source_name(run->path), dmg_graph_id(graph, 0),
                         dmg_graph_id(graph, (uint32_t)(graph->vertex_count - 1)), graph->ids ? " with gaps" : "");
    }
    run->source_was_chosen = true;
    if (run->pool) {
        return dmg_launcher_call(run->launcher, dmg_run_pool_source, run);
    }
    uint64_t vertex = 0;
    while (vertex < graph->vertex_count && graph->out.offsets[vertex] == graph->out.offsets[vertex + 1]) {
        vertex++;
    }
    if (graph->vertex_count > 0) {
        run->parameters.source = vertex < graph->vertex_count ? (uint32_t)vertex : 0;
    }
    return DMG_OK;
}

/** Before anything of the graph is looked at. */
static dmg_status find_pool(dmg_run *run)
{
    run->pool = calloc(1, sizeof *run->pool);
    if (!run->pool) {
        return dmg_error(DMG_ERR_MEMORY, "no memory to start");
    }
    dmg_status status = dmg_pool_find_file(dmg_value_text(run->settings, DMG_OPTION_POOL), &run->pool->file);
    return status == DMG_OK ? dmg_run_pool_settings(run) : status;
}

const char *dmg_run_lost_weights_remedy(const dmg_run *run)
{
    return run->pool ? "load the graph with --unweighted, if that is what is meant"
                     : "give --unweighted, if that is what is meant";
}

/** Once, before the nodes start: time enough to stop. */
static void warn_of_lost_weights(dmg_run *run)
{
    bool has_weights = run->pool ? run->entry.store.weight_kind != DMG_WEIGHT_NONE : run->source.report.has_weights;
    dmg_progress_bar_clear(run->bar);
    run->weights_are_lost =
        !dmg_flag(run->settings, DMG_OPTION_UNWEIGHTED) &&
        dmg_graph_source_warn_of_weights(run->path, has_weights, run->algorithm, dmg_run_lost_weights_remedy(run));
}

static dmg_status check_graph(dmg_run *run)
{
    const dmg_graph *graph = &run->source.graph;
    warn_of_lost_weights(run);
    run->is_weighted = graph->weight_kind != DMG_WEIGHT_NONE;
    run->weights_are_missing = run->algorithm->uses_weights && !run->is_weighted;
    if (run->algorithm->refuses_negative_weights && run->is_weighted && graph->negative_line) {
        return dmg_error(DMG_ERR_FORMAT, "%s:%" PRIu64 ": negative weight: %s needs weights >= 0",
                         graph->negative_source, graph->negative_line, run->algorithm->name);
    }
    return dmg_algorithm_takes(run->algorithm, DMG_TAKES_SOURCE) ? choose_source(run) : DMG_OK;
}

/* ---- the course ---- */

static double seconds_since(uint64_t started_ns)
{
    return (double)(dmg_now_ns() - started_ns) / 1e9;
}

/** The graph out of its file, and memory nodes to load it into. */
static dmg_status prepare_nodes(dmg_run *run)
{
    uint64_t started_ns = dmg_now_ns();
    dmg_status status = dmg_launcher_call(run->launcher, read_graph, run);
    if (status == DMG_OK) {
        status = check_graph(run);
    }
    if (status == DMG_OK) {
        status = dmg_launcher_call(run->launcher, share_graph, run);
    }
    run->times.read = seconds_since(started_ns);
    if (status == DMG_OK) {
        run->segment_bytes = dmg_run_segment_bytes(run);
        dmg_set_number(run->settings, DMG_OPTION_MEMORY, run->segment_bytes);
        uint64_t nodes_ns = dmg_now_ns();
        status = dmg_run_start_memory_nodes(run);
        run->times.start = seconds_since(nodes_ns);
    }
    return status;
}

/** The graph in a pool, held so that nobody unloads it. */
static dmg_status prepare_pool(dmg_run *run)
{
    uint64_t started_ns = dmg_now_ns();
    dmg_run_listen(run);
    dmg_status status = dmg_launcher_call(run->launcher, dmg_run_pool_attach, run);
    if (status == DMG_OK) {
        dmg_set_number(run->settings, DMG_OPTION_PARTITIONS, run->partitions);
        status = check_graph(run);
    }
    run->times.read = seconds_since(started_ns);
    return status;
}

static dmg_status leave_pool(void *context)
{
    dmg_run *run = context;
    return dmg_pool_client_close(run->pool, DMG_OK);
}

static dmg_status open_output(void *context)
{
    dmg_run *run = context;
    const dmg_settings *settings = run->settings;
    const char *path = dmg_value_text(settings, DMG_OPTION_OUTPUT);
    dmg_input_files inputs = {0};
    if (!run->pool) {
        dmg_input_files_add_graph(&inputs, run->path);
    }
    if (dmg_has(settings, DMG_OPTION_LINK)) {
        dmg_input_files_add_link(&inputs, dmg_value_text(settings, DMG_OPTION_LINK));
    }
    dmg_status status = dmg_output_file_open(path, &inputs, &run->output);
    if (status == DMG_OK && dmg_flag(settings, DMG_OPTION_JSON) && dmg_output_file_is_standard(run->output)) {
        status = dmg_error(DMG_ERR_ARGUMENT, "--json and --output %s both want the standard output", path);
    }
    return status == DMG_OK ? DMG_OK : dmg_error_prefix(status, "run");
}

static dmg_status commit_output(void *context)
{
    return dmg_output_file_commit(((dmg_run *)context)->output);
}

static dmg_status go(dmg_run *run)
{
    uint64_t started_ns = dmg_now_ns();
    dmg_status status = dmg_launcher_create(&run->launcher);
    if (status == DMG_OK) {
        status = dmg_launcher_call_witness(run->launcher);
    }
    if (status == DMG_OK && dmg_has(run->settings, DMG_OPTION_OUTPUT)) {
        /* Before the work, so that a place that cannot be written to costs nothing. A pipe may wait for its reader. */
        status = dmg_launcher_call(run->launcher, open_output, run);
    }
    if (status == DMG_OK) {
        status = run->pool ? prepare_pool(run) : prepare_nodes(run);
    }
    if (status == DMG_OK) {
        status = dmg_run_compute(run);
        dmg_status whole = status == DMG_ERR_CANCELLED ? DMG_OK : dmg_graph_source_check_whole(run->path, &run->source);
        status = whole == DMG_OK ? status : whole;
    }
    if (status == DMG_OK) {
        dmg_progress_bar_clear(run->bar);
        status = dmg_launcher_call(run->launcher, dmg_run_read_result, run);
    }
    if (status == DMG_OK) {
        status = dmg_launcher_dismiss(run->launcher, DMG_CHILD_COMPUTE_NODE, "leave");
    }
    if (status == DMG_OK) {
        status = run->pool ? dmg_launcher_call(run->launcher, leave_pool, run)
                           : dmg_launcher_dismiss(run->launcher, DMG_CHILD_MEMORY_NODE, "stop");
    }
    if (status == DMG_OK && run->output) {
        /* Last: a run that failed in any way, or whose answer is wrong, has no output. */
        status = dmg_launcher_call(run->launcher, commit_output, run);
    }
    run->times.total = seconds_since(started_ns);
    return status;
}

static void report(const dmg_run *run)
{
    const dmg_settings *settings = run->settings;
    FILE *to = dmg_output_file_is_standard(run->output) ? stderr : stdout;
    if (dmg_flag(settings, DMG_OPTION_JSON)) {
        json_t *object = dmg_run_json(run);
        dmg_json_print(object);
        return;
    }
    if (dmg_flag(settings, DMG_OPTION_TABLE)) {
        dmg_run_print_table(to, run);
    }
    if (!dmg_flag(settings, DMG_OPTION_QUIET)) {
        dmg_run_print_summary(to, run);
    }
}

static void clean_up(dmg_run *run)
{
    dmg_launcher_destroy(run->launcher);
    dmg_output_file_close(run->output);
    dmg_headline_destroy(run->headline);
    dmg_graph_source_close(&run->source);
    dmg_run_free_rows(run);
    free(run->pool);
    dmg_progress_bar_destroy(run->bar);
    free(run);
}

static const dmg_option_id options[] = {
    DMG_OPTION_SYSTEM,     DMG_OPTION_POOL,         DMG_OPTION_TRANSPORT,  DMG_OPTION_TRUST_NETWORK,
    DMG_OPTION_MNS,        DMG_OPTION_CNS,          DMG_OPTION_THREADS,    DMG_ENGINE_OPTIONS,
    DMG_OPTION_MEMORY,     DMG_OPTION_SOURCE,       DMG_OPTION_ITERATIONS, DMG_OPTION_TOLERANCE,
    DMG_OPTION_DAMPING,    DMG_OPTION_FORMAT,       DMG_OPTION_DIRECTED,   DMG_OPTION_UNDIRECTED,
    DMG_OPTION_UNWEIGHTED, DMG_OPTION_DEDUP,        DMG_OPTION_NO_LOOPS,   DMG_OPTION_OUT_LISTS_ONLY,
    DMG_STORE_OPTIONS,     DMG_OPTION_PEER_TIMEOUT, DMG_OPTION_NUMA_NODE,  DMG_OPTION_PAGE_SIZE,
    DMG_LINK_OPTIONS,      DMG_OPTION_PREFAULT,     DMG_OPTION_OUTPUT,     DMG_OPTION_VERIFY,
    DMG_OPTION_TABLE,      DMG_OPTION_JSON,         DMG_OPTION_QUIET,      DMG_OPTION_NO_PROGRESS,
    DMG_OPTION_LOG_LEVEL,  DMG_OPTION_HELP,         DMG_OPTION_HELP_ALL,   DMG_OPTION_COUNT};

static int run_run(dmg_settings *settings)
{
    const dmg_algorithm *algorithm = dmg_algorithm_find(settings->positionals[0]);
    if (!algorithm) {
        return dmg_exit_with_error(unknown_algorithm(settings->positionals[0]));
    }
    dmg_run *run = calloc(1, sizeof *run);
    if (!run) {
        return dmg_exit_with_error(dmg_error(DMG_ERR_MEMORY, "no memory to start"));
    }
    run->settings = settings;
    run->options = options;
    run->algorithm = algorithm;
    run->path = settings->positionals[1];
    run->source.file = -1;
    run->started_s = (uint64_t)time(NULL);
    run->bar = dmg_progress_bar_create(!dmg_flag(settings, DMG_OPTION_NO_PROGRESS));
    dmg_status status = dmg_system_apply(settings);
    if (status == DMG_OK && dmg_has(settings, DMG_OPTION_POOL)) {
        status = find_pool(run);
    }
    if (status == DMG_OK) {
        status = complete_settings(run);
    }
    if (status == DMG_OK) {
        status = dmg_run_check_descriptors(run);
    }
    if (status == DMG_OK) {
        status = dmg_pool_job_name("run", run->job_name);
    }
    if (status == DMG_OK) {
        status = dmg_job_pass_make(false, run->token, &run->job_pass); /* it keeps nothing */
    }
    if (status == DMG_OK) {
        status = go(run);
    }
    if (status != DMG_OK) {
        dmg_run_give_up(run, status);
    }
    dmg_progress_bar_clear(run->bar);
    report(run);
    clean_up(run);
    return DMG_EXIT_OK;
}

const dmg_command dmg_command_run = {
    .name = "run",
    .arguments = "ALGORITHM GRAPH",
    .argument_count = 2,
    .summary = "start memory nodes and compute nodes, run an algorithm on a graph, print what came out",
    .details = "ALGORITHM is bfs, cc (weakly connected components), pagerank or sssp (shortest paths). GRAPH is an "
               "edge list, a\n"
               "Matrix Market file (both also compressed by gzip, zstd or xz), or what 'dmgraph convert' wrote;\n"
               "- is the standard input.\n"
               "With --pool, GRAPH is the name of a graph that 'dmgraph load' left in a long-lived pool.\n",
    .options = options,
    .print_more = dmg_algorithm_options_print,
    .run = run_run};
