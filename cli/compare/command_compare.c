/*
 * dmgraph compare: the same work over two or more interconnects, in turns; what the links and the software cost, which
 * of them decides who is faster, and whether that would stay so if the profiles of the links were off.
 *
 * Every run is a call of this program, so that what is compared is what a user would get.
 */
#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/compare/compare.h"
#include "cli/options/command.h"
#include "cli/options/link_options.h"
#include "core/base/clock.h"
#include "core/base/error.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- progress ---- */

void dmg_compare_progress(const dmg_compare *compare, const char *format, ...)
{
    if (!isatty(STDERR_FILENO) || dmg_flag(compare->settings, DMG_OPTION_NO_PROGRESS)) {
        return;
    }
    va_list arguments;
    fputs("\r\033[K", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}

/* ---- files ---- */

/** The files that are written at the end, opened before the work: a place that cannot be written to costs nothing. */
typedef struct compare_files {
    dmg_output_file *page;
    dmg_output_file *csv;
} compare_files;

/** "report.html" has "report.csv" beside it. */
static char *csv_path(const dmg_settings *settings)
{
    const char *given = dmg_value_text(settings, DMG_OPTION_CSV_FILE);
    const char *page = dmg_value_text(settings, DMG_OPTION_OUTPUT);
    char *path = NULL;
    if (given) {
        return strdup(given);
    }
    const char *slash = strrchr(page, '/');
    const char *dot = strrchr(slash ? slash : page, '.');
    size_t length = dot && dot != page && dot[-1] != '/' ? (size_t)(dot - page) : strlen(page);
    return asprintf(&path, "%.*s.csv", (int)length, page) >= 0 ? path : NULL;
}

static bool has_stdout(const compare_files *files)
{
    return dmg_output_file_is_standard(files->page) || dmg_output_file_is_standard(files->csv);
}

static void list_inputs(const dmg_compare *compare, dmg_input_files *inputs)
{
    dmg_input_files_add_graph(inputs, compare->path);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        if (compare->configurations[i].has_link) {
            dmg_input_files_add_link(inputs, compare->configurations[i].link);
        }
    }
}

static dmg_status open_csv(const dmg_settings *settings, const dmg_input_files *inputs, compare_files *files)
{
    char *path = csv_path(settings);
    dmg_status status =
        path ? dmg_output_file_open(path, inputs, &files->csv) : dmg_error(DMG_ERR_MEMORY, "no memory for a path");
    if (status == DMG_OK && dmg_output_file_is_same(files->page, files->csv)) {
        status = dmg_error(DMG_ERR_ARGUMENT, "--output %s: the numbers are to be written there; name the page .html",
                           dmg_value_text(settings, DMG_OPTION_OUTPUT));
    }
    free(path);
    return status;
}

static dmg_status open_files(const dmg_compare *compare, compare_files *files)
{
    const dmg_settings *settings = compare->settings;
    const char *page = dmg_value_text(settings, DMG_OPTION_OUTPUT);
    dmg_input_files inputs = {0};
    list_inputs(compare, &inputs);
    dmg_status status = page ? dmg_output_file_open(page, &inputs, &files->page) : DMG_OK;
    bool is_beside = page && !dmg_output_file_is_standard(files->page);
    if (status == DMG_OK && (dmg_has(settings, DMG_OPTION_CSV_FILE) || is_beside)) {
        status = open_csv(settings, &inputs, files);
    }
    if (status == DMG_OK && has_stdout(files) && dmg_flag(settings, DMG_OPTION_JSON)) {
        status = dmg_error(DMG_ERR_ARGUMENT, "--json and a report on the standard output exclude each other");
    }
    return status;
}

static dmg_status write_file(const dmg_compare *compare, void (*write)(FILE *to, const dmg_compare *compare),
                             dmg_output_file *output)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    if (!to) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a report");
    }
    write(to, compare);
    bool is_whole = !ferror(to);
    is_whole = fclose(to) == 0 && is_whole;
    dmg_status status =
        is_whole ? dmg_output_file_write(output, text, bytes) : dmg_error(DMG_ERR_MEMORY, "no memory for a report");
    free(text);
    return status == DMG_OK ? dmg_output_file_commit(output) : status;
}

/* ---- the course ---- */

/** `measured`: what became of the measurements; they failing is no reason to lose the runs. */
static dmg_status go(dmg_compare *compare, compare_files *files, dmg_status *measured)
{
    uint64_t started_ns = dmg_now_ns();
    dmg_status status = dmg_compare_plan(compare);
    if (status == DMG_OK) {
        status = open_files(compare, files);
    }
    if (status == DMG_OK) {
        status = dmg_compare_read_graph(compare);
    }
    if (status == DMG_OK) {
        status = dmg_compare_run_all(compare);
    }
    if (status == DMG_OK && !dmg_flag(compare->settings, DMG_OPTION_RUNS_ONLY)) {
        *measured = dmg_compare_measure(compare);
        snprintf(compare->trouble, sizeof compare->trouble, "%s", *measured == DMG_OK ? "" : dmg_error_message());
    }
    compare->seconds = (double)(dmg_now_ns() - started_ns) / 1e9;
    dmg_compare_progress(compare, "%s", "");
    return status;
}

static dmg_status report(const dmg_compare *compare, const compare_files *files)
{
    dmg_status status = files->csv ? write_file(compare, dmg_compare_write_csv, files->csv) : DMG_OK;
    if (status == DMG_OK && files->page) {
        status = write_file(compare, dmg_compare_write_page, files->page);
    }
    if (status == DMG_OK && dmg_flag(compare->settings, DMG_OPTION_JSON)) {
        json_t *object = dmg_compare_json(compare);
        dmg_json_print(object);
    } else if (status == DMG_OK) {
        dmg_compare_print(has_stdout(files) ? stderr : stdout, compare);
    }
    return status;
}

static int run(dmg_settings *settings)
{
    dmg_compare *compare = calloc(1, sizeof *compare);
    compare_files files = {0};
    if (!compare) {
        return dmg_exit_with_error(dmg_error(DMG_ERR_MEMORY, "no memory to start"));
    }
    compare->settings = settings;
    dmg_status measured = DMG_OK;
    dmg_status status = go(compare, &files, &measured);
    if (status == DMG_OK) {
        status = report(compare, &files);
    }
    if (status == DMG_OK && measured != DMG_OK) {
        status = dmg_error(measured, "the report has all runs, but not all measurements: %s", compare->trouble);
    }
    int code = status == DMG_OK ? DMG_EXIT_OK : dmg_exit_with_error(dmg_error_prefix(status, "compare"));
    dmg_output_file_close(files.page);
    dmg_output_file_close(files.csv);
    dmg_compare_close(compare);
    free(compare);
    return code;
}

static const dmg_option_id options[] = {
    DMG_OPTION_WITH,        DMG_OPTION_ROUNDS,          DMG_OPTION_CNS_LIST,       DMG_OPTION_OUTPUT,
    DMG_OPTION_REPEATS,     DMG_OPTION_PREDICT_CNS,     DMG_OPTION_CSV_FILE,       DMG_OPTION_JSON,
    DMG_OPTION_UNCERTAINTY, DMG_OPTION_RUNS_ONLY,       DMG_OPTION_DURATION,       DMG_OPTION_MNS,
    DMG_OPTION_THREADS,     DMG_OPTION_CACHE,           DMG_OPTION_MEMORY,         DMG_OPTION_SOURCE,
    DMG_OPTION_ITERATIONS,  DMG_OPTION_TOLERANCE,       DMG_OPTION_DAMPING,        DMG_OPTION_FORMAT,
    DMG_OPTION_DIRECTED,    DMG_OPTION_UNDIRECTED,      DMG_OPTION_UNWEIGHTED,     DMG_OPTION_DEDUP,
    DMG_OPTION_NO_LOOPS,    DMG_OPTION_OUT_LISTS_ONLY,  DMG_OPTION_DIRECTION,      DMG_OPTION_DENSITY,
    DMG_OPTION_UPDATES,     DMG_OPTION_REFERENCE_EDGES, DMG_OPTION_PRECISION,      DMG_OPTION_PARTITIONS,
    DMG_OPTION_TASKS,       DMG_OPTION_PIN_THREADS,     DMG_OPTION_ALLOW_FALLBACK, DMG_OPTION_PEER_TIMEOUT,
    DMG_OPTION_NUMA_NODE,   DMG_OPTION_PAGE_SIZE,       DMG_OPTION_PREFAULT,       DMG_OPTION_LINK_MODE,
    DMG_OPTION_NO_PROGRESS, DMG_OPTION_LOG_LEVEL,       DMG_OPTION_HELP,           DMG_OPTION_HELP_ALL,
    DMG_OPTION_COUNT};

const dmg_command dmg_command_compare = {
    .name = "compare",
    .arguments = "GRAPH [ALGORITHM...]",
    .argument_count = 1,
    .optional_count = DMG_COMPARE_ALGORITHMS_MAX,
    .summary = "run the same work over several interconnects, in turns: what links cost, what software costs, and "
               "which decides",
    .details = "GRAPH is a file, or - for the standard input. Without ALGORITHM: bfs, cc and pagerank, and sssp where "
               "the graph has weights. Links are emulated "
               "(docs/links.md).\n"
               "With --output FILE.html it writes a report that needs no network, and all numbers beside it "
               "(docs/compare.md).\n",
    .options = options,
    .run = run};
