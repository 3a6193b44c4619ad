/*
 * dmgraph predict: from the report of one run, what it would take on other links and with other numbers of nodes.
 */
#include "cli/base/exit_code.h"
#include "cli/base/text.h"
#include "cli/options/command.h"
#include "cli/options/link_options.h"
#include "core/base/error.h"
#include "model/predict_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX         64
#define NODES_MOST       4096
#define REPORT_BYTES_MAX (UINT64_C(1) << 30)
#define NANOSECONDS      1e9

typedef struct node_list {
    uint32_t values[LIST_MAX];
    uint32_t count;
} node_list;

typedef enum report_format { FORMAT_TABLE, FORMAT_CSV, FORMAT_JSON } report_format;

typedef struct prediction_job {
    const dmg_settings *settings;
    report_format format;
    dmg_predict_run run;
    dmg_link_settings links[LIST_MAX];
    uint32_t link_count;
    node_list mns, cns;
    json_t *rows;
} prediction_job;

/* ---- settings ---- */

static dmg_status read_nodes(const dmg_settings *settings, dmg_option_id id, uint32_t otherwise, node_list *list)
{
    const char *rest = dmg_has(settings, id) ? dmg_value_text(settings, id) : NULL;
    list->count = 0;
    if (!rest) {
        list->values[list->count++] = otherwise;
        return DMG_OK;
    }
    for (;;) {
        char word[16];
        uint64_t value = 0;
        size_t length = strcspn(rest, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), rest);
        if (length >= sizeof word || dmg_parse_number(word, &value) != DMG_OK || value < 1 || value > NODES_MOST) {
            return dmg_error(DMG_ERR_ARGUMENT, "predict: --%s: '%s' is no number of nodes from 1 to %d",
                             dmg_option_get(id)->name, word, NODES_MOST);
        }
        if (list->count == LIST_MAX) {
            return dmg_error(DMG_ERR_ARGUMENT, "predict: --%s: more than %d numbers", dmg_option_get(id)->name,
                             LIST_MAX);
        }
        list->values[list->count++] = (uint32_t)value;
        if (rest[length] == '\0') {
            return DMG_OK;
        }
        rest += length + 1;
    }
}

static dmg_status add_link(prediction_job *job, const char *name_or_path)
{
    bool has_link = false;
    if (job->link_count == LIST_MAX) {
        return dmg_error(DMG_ERR_ARGUMENT, "predict: --link: more than %d links", LIST_MAX);
    }
    dmg_status status = dmg_link_options_of(job->settings, name_or_path, &has_link, &job->links[job->link_count]);
    job->link_count += status == DMG_OK && has_link;
    return status;
}

static dmg_status add_all_profiles(prediction_job *job)
{
    dmg_link_profile *profiles;
    size_t count;
    dmg_status status = dmg_link_profiles_list(&profiles, &count);
    for (size_t i = 0; status == DMG_OK && i < count && i < LIST_MAX; i++) {
        job->links[job->link_count++] = profiles[i].settings;
    }
    if (status == DMG_OK && count == 0) {
        status = dmg_error(DMG_ERR_NOT_FOUND, "predict: there are no link profiles; name a file with --link");
    }
    free(profiles);
    return status;
}

static dmg_status add_listed(prediction_job *job, const char *list)
{
    char *names = strdup(list);
    dmg_status status = names ? DMG_OK : dmg_error(DMG_ERR_MEMORY, "no memory for a list of links");
    char *rest = names;
    for (char *name; status == DMG_OK && (name = strsep(&rest, ","));) {
        status =
            *name ? add_link(job, name) : dmg_error(DMG_ERR_ARGUMENT, "predict: --link: a name in the list is empty");
    }
    free(names);
    return status;
}

static dmg_status read_links(prediction_job *job)
{
    if (!dmg_has(job->settings, DMG_OPTION_LINK_LIST)) {
        dmg_status status = add_link(job, NULL);
        return status == DMG_OK && job->link_count == 0 ? add_all_profiles(job) : status;
    }
    dmg_status status = DMG_OK;
    for (uint32_t i = 0; i < job->settings->repeated_count && status == DMG_OK; i++) {
        status = add_listed(job, job->settings->repeated[i]);
    }
    return status;
}

static dmg_status read_report(const char *path, dmg_predict_run *run)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "re");
    if (!file) {
        return dmg_error_errno(DMG_ERR_IO, errno, "opening %s", path);
    }
    json_error_t reason;
    errno = 0;
    json_t *report = json_loadf(file, JSON_REJECT_DUPLICATES, &reason);
    int error = ferror(file) ? errno : 0;
    if (!is_stdin) {
        fclose(file);
    }
    const char *shown = is_stdin ? "the standard input" : path;
    if (error) {
        json_decref(report);
        return dmg_error_errno(DMG_ERR_IO, error, "reading %s", shown);
    }
    if (!json_is_object(report)) {
        json_decref(report);
        return dmg_error(DMG_ERR_FORMAT, "%s:%d: it is no report of 'dmgraph run ... --json': %s", shown, reason.line,
                         report ? "no object" : reason.text);
    }
    dmg_status status = dmg_predict_run_read(report, run);
    json_decref(report);
    return status == DMG_OK ? DMG_OK : dmg_error_prefix(status, "%s", shown);
}

/* ---- reports ---- */

static void print_head(const prediction_job *job)
{
    const dmg_predict_run *run = &job->run;
    if (job->format == FORMAT_CSV) {
        printf("algorithm,link,memory_nodes,compute_nodes,seconds");
        for (int part = 0; part < DMG_PREDICT_PARTS; part++) {
            printf(",%s_seconds", dmg_predict_part_name((dmg_predict_part)part));
        }
        printf(",bound\n");
    } else if (job->format == FORMAT_TABLE) {
        printf("run        %s, %u memory node%s, %u compute node%s of %u thread%s, link: %s\n"
               "           its start and iterations took %s\n\n",
               run->algorithm, run->mns, run->mns == 1 ? "" : "s", run->cns, run->cns == 1 ? "" : "s", run->workers,
               run->workers == 1 ? "" : "s", run->link, dmg_text_seconds(run->measured_ns / NANOSECONDS).text);
        printf("%-20s %4s %4s %10s  %-10s", "link", "MNs", "CNs", "predicted", "bound by");
        for (int part = 0; part < DMG_PREDICT_PARTS; part++) {
            printf(" %10s", dmg_predict_part_name((dmg_predict_part)part));
        }
        putchar('\n');
    }
}

static void print_row(prediction_job *job, const char *link, uint32_t mns, uint32_t cns, const dmg_prediction *found)
{
    const char *bound = dmg_predict_part_name(found->bound);
    if (job->format == FORMAT_TABLE) {
        dmg_text total = dmg_text_seconds(found->total_ns / NANOSECONDS);
        printf("%-20s %4u %4u %*s  %-10s", link, mns, cns, dmg_text_width(total.text, 10), total.text, bound);
        for (int part = 0; part < DMG_PREDICT_PARTS; part++) {
            double share = found->total_ns > 0 ? found->parts_ns[part] / found->total_ns : 0;
            printf(" %9.1f%%", 100 * share);
        }
        putchar('\n');
        return;
    }
    if (job->format == FORMAT_CSV) {
        dmg_csv_text(stdout, job->run.algorithm);
        putchar(',');
        dmg_csv_text(stdout, link);
        printf(",%u,%u,%.9f", mns, cns, found->total_ns / NANOSECONDS);
        for (int part = 0; part < DMG_PREDICT_PARTS; part++) {
            printf(",%.9f", found->parts_ns[part] / NANOSECONDS);
        }
        printf(",%s\n", bound);
        return;
    }
    json_t *parts = json_object();
    for (int part = 0; part < DMG_PREDICT_PARTS; part++) {
        json_object_set_new(parts, dmg_predict_part_name((dmg_predict_part)part),
                            json_real(found->parts_ns[part] / NANOSECONDS));
    }
    json_array_append_new(job->rows, json_pack("{s:o, s:I, s:I, s:f, s:s, s:o, s:f}", "link", dmg_json_text(link),
                                               "memory_nodes", (json_int_t)mns, "compute_nodes", (json_int_t)cns,
                                               "seconds", found->total_ns / NANOSECONDS, "bound", bound,
                                               "parts_seconds", parts, "limited_supersteps", found->bound_supersteps));
}

static bool has_atomics_that_take_locks(const prediction_job *job)
{
    const dmg_predict_run *run = &job->run;
    double atomics = 0;
    for (uint64_t i = 0; i < run->superstep_count * run->cns; i++) {
        atomics += run->shares[i].mapped_atomics;
    }
    bool takes_locks = false;
    for (uint32_t i = 0; i < job->link_count; i++) {
        takes_locks |= dmg_link_locks_atomics(&job->links[i]);
    }
    return atomics > 0 && takes_locks;
}

/** What the numbers do not know, as far as it matters for these predictions. */
static json_t *list_caveats(const prediction_job *job)
{
    const dmg_predict_run *run = &job->run;
    json_t *list = json_array();
    bool is_scaled = false;
    bool is_more = false;
    for (uint32_t i = 0; i < job->cns.count; i++) {
        is_scaled |= job->cns.values[i] != run->cns;
        is_more |= job->cns.values[i] > run->cns;
    }
    json_array_append_new(list,
                          json_string("computing is taken to take as long as on the machine of this run; "
                                      "competition for words by atomics, and caches that links change, are not known"));
    if (has_atomics_that_take_locks(job)) {
        json_array_append_new(
            list,
            json_string("this run updated words of the pool in place by atomics; over a link that has none across "
                        "compute nodes a run takes no locks for them, but passes sparse updates to their owners: "
                        "predict for such links from a run with --updates valrd-owner"));
    }
    if (is_more && run->cns == 1) {
        json_array_append_new(list, json_string("with one compute node no update left a partition: for more of them "
                                                "the times are lower bounds; predict them from a run with two"));
    } else if (is_scaled) {
        json_array_append_new(list, json_string("other numbers of compute nodes are taken to be as unbalanced as those "
                                                "of this run, and the batches of their updates as full"));
    }
    if (run->workers > 1) {
        json_array_append_new(list, json_string("the workers of a compute node are taken to share its waits evenly"));
    }
    if (run->rows_missing > 0) {
        json_array_append_new(
            list, json_string("the run's last iterations have no figures of their own, and are taken together"));
    }
    if (!run->has_node_rows) {
        json_array_append_new(
            list, json_string("some iterations have no figures by compute node: their shares are taken to be equal"));
    }
    return list;
}

static void print_foot(prediction_job *job)
{
    json_t *caveats = list_caveats(job);
    if (job->format == FORMAT_TABLE) {
        printf("\nnot known\n");
        for (size_t i = 0; i < json_array_size(caveats); i++) {
            printf("           %s\n", json_string_value(json_array_get(caveats, i)));
        }
    } else if (job->format == FORMAT_JSON) {
        const dmg_predict_run *run = &job->run;
        json_t *from =
            json_pack("{s:o, s:I, s:I, s:I, s:o, s:f}", "algorithm", dmg_json_text(run->algorithm), "memory_nodes",
                      (json_int_t)run->mns, "compute_nodes", (json_int_t)run->cns, "threads", (json_int_t)run->workers,
                      "link", dmg_json_text(run->link), "seconds", run->measured_ns / NANOSECONDS);
        json_t *object = json_pack("{s:s, s:o, s:O, s:O}", "dmgraph", DMGRAPH_VERSION, "run", from, "predictions",
                                   job->rows, "not_known", caveats);
        dmg_json_print(object);
    }
    json_decref(caveats);
}

static void predict_all(prediction_job *job)
{
    job->rows = job->format == FORMAT_JSON ? json_array() : NULL;
    print_head(job);
    for (uint32_t mn = 0; mn < job->mns.count; mn++) {
        for (uint32_t cn = 0; cn < job->cns.count; cn++) {
            for (uint32_t link = 0; link < job->link_count; link++) {
                dmg_prediction found;
                dmg_predict(&job->run, &job->links[link], job->mns.values[mn], job->cns.values[cn], &found);
                print_row(job, job->links[link].name, job->mns.values[mn], job->cns.values[cn], &found);
            }
        }
    }
    print_foot(job);
    json_decref(job->rows);
}

/* ---- the course ---- */

static dmg_status read_settings(prediction_job *job)
{
    const dmg_settings *settings = job->settings;
    bool is_json = dmg_flag(settings, DMG_OPTION_JSON);
    bool is_csv = dmg_flag(settings, DMG_OPTION_CSV);
    if (is_json && is_csv) {
        return dmg_error(DMG_ERR_ARGUMENT, "predict: --json and --csv exclude each other");
    }
    job->format = is_json ? FORMAT_JSON : is_csv ? FORMAT_CSV : FORMAT_TABLE;
    dmg_status status = read_links(job);
    if (status == DMG_OK) {
        status = read_report(settings->positionals[0], &job->run);
    }
    if (status == DMG_OK) {
        status = read_nodes(settings, DMG_OPTION_MN_LIST, job->run.mns, &job->mns);
    }
    return status == DMG_OK ? read_nodes(settings, DMG_OPTION_CN_LIST, job->run.cns, &job->cns) : status;
}

static int run_predict(dmg_settings *settings)
{
    prediction_job *job = calloc(1, sizeof *job);
    if (!job) {
        return dmg_exit_with_error(dmg_error(DMG_ERR_MEMORY, "no memory to predict"));
    }
    job->settings = settings;
    dmg_status status = read_settings(job);
    if (status == DMG_OK) {
        predict_all(job);
    }
    dmg_predict_run_free(&job->run);
    free(job);
    return status == DMG_OK ? DMG_EXIT_OK : dmg_exit_with_error(status);
}

static const dmg_option_id options[] = {DMG_OPTION_LINK_LIST, DMG_OPTION_LINK_LATENCY, DMG_OPTION_LINK_BANDWIDTH,
                                        DMG_OPTION_LINK_MOPS, DMG_OPTION_MN_LIST,      DMG_OPTION_CN_LIST,
                                        DMG_OPTION_CSV,       DMG_OPTION_JSON,         DMG_OPTION_LOG_LEVEL,
                                        DMG_OPTION_HELP,      DMG_OPTION_HELP_ALL,     DMG_OPTION_COUNT};

const dmg_command dmg_command_predict = {
    .name = "predict",
    .arguments = "RUN.json",
    .argument_count = 1,
    .summary = "predict the time of a run on other links and numbers of nodes",
    .details =
        "RUN.json is the output of 'dmgraph run ... --json'; - is the standard input. A model of each iteration "
        "says how long\nit would take, and what bounds it (docs/predict.md): computing, the latency of rounds that "
        "follow each other, the\nrate of operations, bytes, messages, or barriers.\n",
    .options = options,
    .run = run_predict};
