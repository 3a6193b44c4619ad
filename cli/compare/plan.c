#include "cli/compare/compare.h"

#include "cli/base/descriptors.h"
#include "cli/options/algorithm_options.h"
#include "cli/options/engine_options.h"
#include "core/base/error.h"
#include "core/engine/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/** The pair from one testbed, so the fairest comparison there is (docs/links.md). */
static const char *const default_configurations[] = {"cxl_shm,polar-cxl", "ucx,polar-rdma"};
/** As many as `dmgraph predict` takes. */
#define PREDICT_CNS_MOST 4096
static const char *const default_algorithms[] = {"bfs", "cc", "pagerank"};

const char *dmg_compare_variant_name(dmg_compare_variant variant)
{
    static const char *const names[DMG_VARIANTS] = {"as it is", "without link", "latencies x 2", "capacities / 2"};
    return names[variant];
}

/* ---- changed links ---- */

/** The text of a profile as a file has it. */
static void write_profile(FILE *to, const dmg_link_profile *profile, const dmg_link_settings *changed)
{
    fprintf(to, "title = changed\nline_bytes = %u\n", changed->line_bytes);
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        if (!profile->is_given[cell]) {
            continue;
        }
        fprintf(to, "%s = ", dmg_link_cell_name((dmg_link_cell)cell));
        if (changed->cells[cell] > 0) {
            fprintf(to, "%.9g", changed->cells[cell]);
        } else {
            fputs("none", to);
        }
        fputs(" | changed by compare\n", to);
    }
}

/** A changed profile, in a file without a name, so that nothing is left however this process ends. */
static dmg_status make_changed(const dmg_link_profile *profile, double latency, double capacity, int *file)
{
    dmg_link_settings changed = dmg_link_scaled(&profile->settings, latency, capacity);
    *file = memfd_create("dmgraph-link", MFD_CLOEXEC);
    int copy = *file >= 0 ? dup(*file) : -1;
    FILE *to = copy >= 0 ? fdopen(copy, "w") : NULL;
    if (!to) {
        int error = errno;
        if (copy >= 0) {
            close(copy);
        }
        return dmg_error_errno(DMG_ERR_IO, error, "creating an anonymous file for a link profile");
    }
    write_profile(to, profile, &changed);
    return fclose(to) == 0 ? DMG_OK : dmg_error_errno(DMG_ERR_IO, errno, "writing a link profile");
}

/* ---- configurations ---- */

static dmg_status load_link(dmg_compare_configuration *configuration)
{
    configuration->has_link = strcmp(configuration->link, "none") != 0;
    if (!configuration->has_link) {
        return DMG_OK;
    }
    configuration->profile = malloc(sizeof *configuration->profile);
    if (!configuration->profile) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for a link profile");
    }
    dmg_status status = dmg_link_profile_load(configuration->link, configuration->profile);
    if (status != DMG_OK) {
        return dmg_error_prefix(status == DMG_ERR_NOT_FOUND ? DMG_ERR_ARGUMENT : status, "--with");
    }
    status = make_changed(configuration->profile, DMG_COMPARE_CHANGE, 1, &configuration->changed[DMG_VARIANT_SLOWER]);
    return status == DMG_OK ? make_changed(configuration->profile, 1, DMG_COMPARE_CHANGE,
                                           &configuration->changed[DMG_VARIANT_NARROWER])
                            : status;
}

/** "TRANSPORT,LINK": a transport may have commas of its own, so the last one counts. */
static dmg_status add_configuration(dmg_compare *compare, const char *text)
{
    dmg_compare_configuration *configuration = &compare->configurations[compare->configuration_count++];
    for (int variant = 0; variant < DMG_VARIANTS; variant++) {
        configuration->changed[variant] = -1;
    }
    const char *comma = strrchr(text, ',');
    size_t transport = comma ? (size_t)(comma - text) : 0;
    if (transport == 0 || !comma[1] || transport >= sizeof configuration->transport ||
        strlen(comma + 1) >= sizeof configuration->link) {
        return dmg_error(DMG_ERR_ARGUMENT, "--with %s: expected TRANSPORT,LINK as in ucx,polar-rdma or cxl_shm,none",
                         text);
    }
    memcpy(configuration->transport, text, transport);
    strcpy(configuration->link, comma + 1);
    dmg_transport_announce(configuration->transport);
    return load_link(configuration);
}

static bool is_name_taken(const dmg_compare *compare, uint32_t index, const char *name)
{
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        if (i != index && strcmp(compare->configurations[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/** Curves have little room: the link's name where it says enough, else with the transport. */
static void name_configuration(dmg_compare_configuration *one, bool with_transport)
{
    char transport[sizeof one->transport];
    char link[DMG_LINK_NAME_BYTES] = "no link";
    memcpy(transport, one->transport, sizeof transport);
    if (one->has_link) {
        memcpy(link, one->profile->settings.name, sizeof link);
    }
    if (with_transport) {
        snprintf(one->name, sizeof one->name, "%.60s/%.60s", transport, one->has_link ? link : "none");
    } else {
        snprintf(one->name, sizeof one->name, "%.60s", one->has_link ? link : transport);
    }
    snprintf(one->title, sizeof one->title, "%.60s over %.120s", link, transport);
}

static void name_configurations(dmg_compare *compare)
{
    bool need_transport[DMG_COMPARE_CONFIGURATIONS_MAX];
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        name_configuration(&compare->configurations[i], false);
    }
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        need_transport[i] = is_name_taken(compare, i, compare->configurations[i].name);
    }
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        if (need_transport[i]) {
            name_configuration(&compare->configurations[i], true);
        }
    }
}

static dmg_status plan_configurations(dmg_compare *compare)
{
    const dmg_settings *settings = compare->settings;
    bool is_chosen = settings->repeated_count > 0;
    uint32_t count =
        is_chosen ? settings->repeated_count : sizeof default_configurations / sizeof default_configurations[0];
    dmg_status status = DMG_OK;
    for (uint32_t i = 0; i < count && status == DMG_OK; i++) {
        status = add_configuration(compare, is_chosen ? settings->repeated[i] : default_configurations[i]);
    }
    if (status == DMG_OK && compare->configuration_count < 2) {
        return dmg_error(DMG_ERR_ARGUMENT, "one configuration is nothing to compare: give --with once more");
    }
    if (status == DMG_OK) {
        name_configurations(compare);
    }
    for (uint32_t i = 0; i < compare->configuration_count && status == DMG_OK; i++) {
        /* Names also hold whether two are alike in all. */
        if (is_name_taken(compare, i, compare->configurations[i].name)) {
            status = dmg_error(DMG_ERR_ARGUMENT, "--with %s,%s is given twice", compare->configurations[i].transport,
                               compare->configurations[i].link);
        }
    }
    return status;
}

/* ---- numbers of compute nodes ---- */

static dmg_status plan_nodes(const dmg_settings *settings, dmg_option_id option, uint32_t most, uint32_t *numbers,
                             uint32_t *count)
{
    const char *name = dmg_option_get(option)->name;
    const char *rest = dmg_value_text(settings, option);
    for (;;) {
        char word[24];
        size_t length = strcspn(rest, ",");
        uint64_t number = 0;
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), rest);
        dmg_status status = dmg_parse_number(word, &number);
        if (status != DMG_OK) {
            return dmg_error_prefix(status, "--%s", name);
        }
        if (number < 1 || number > most || *count == DMG_COMPARE_CNS_MAX) {
            return dmg_error(DMG_ERR_ARGUMENT, "--%s %s: expected at most %d numbers from 1 to %u, as in 1,2,4", name,
                             dmg_value_text(settings, option), DMG_COMPARE_CNS_MAX, most);
        }
        numbers[(*count)++] = (uint32_t)number;
        if (!rest[length]) {
            return DMG_OK;
        }
        rest += length + 1;
    }
}

static dmg_status plan_cns(dmg_compare *compare)
{
    dmg_status status =
        plan_nodes(compare->settings, DMG_OPTION_CNS_LIST, DMG_COMPUTE_NODES_MAX, compare->cns, &compare->cns_count);
    return status == DMG_OK ? plan_nodes(compare->settings, DMG_OPTION_PREDICT_CNS, PREDICT_CNS_MOST,
                                         compare->predict_cns, &compare->predict_cns_count)
                            : status;
}

/* ---- algorithms ---- */

static dmg_status add_algorithm(dmg_compare *compare, const char *name)
{
    const dmg_algorithm *algorithm = dmg_algorithm_find(name);
    if (!algorithm) {
        return dmg_error(DMG_ERR_ARGUMENT, "there is no algorithm '%s'; 'dmgraph help run' lists them", name);
    }
    for (uint32_t i = 0; i < compare->algorithm_count; i++) {
        if (strcmp(compare->algorithms[i], algorithm->name) == 0) {
            return dmg_error(DMG_ERR_ARGUMENT, "%s is given twice", name);
        }
    }
    compare->algorithms[compare->algorithm_count++] = algorithm->name;
    return DMG_OK;
}

static dmg_status plan_algorithms(dmg_compare *compare)
{
    dmg_status status = DMG_OK;
    for (uint32_t i = 1; i < compare->settings->positional_count && status == DMG_OK; i++) {
        status = add_algorithm(compare, compare->settings->positionals[i]);
    }
    return status;
}

/** Every option is to change at least one of the runs. */
static dmg_status check_options(const dmg_compare *compare)
{
    static const dmg_option_id of_measurements[] = {DMG_OPTION_DURATION, DMG_OPTION_COUNT};
    static const dmg_option_id of_links[] = {DMG_OPTION_LINK_MODE, DMG_OPTION_COUNT};
    const dmg_algorithm *algorithms[DMG_COMPARE_ALGORITHMS_MAX];
    uint32_t count = 0;
    while (count < DMG_COMPARE_ALGORITHMS_MAX &&
           (compare->algorithm_count ? count < compare->algorithm_count : dmg_algorithms[count] != NULL)) {
        algorithms[count] =
            compare->algorithm_count ? dmg_algorithm_find(compare->algorithms[count]) : dmg_algorithms[count];
        count++;
    }
    bool has_link = false;
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        has_link = has_link || compare->configurations[i].has_link;
    }
    dmg_status status = dmg_algorithm_options_check(compare->settings, algorithms, count);
    if (status == DMG_OK && dmg_flag(compare->settings, DMG_OPTION_RUNS_ONLY)) {
        status =
            dmg_options_refuse(compare->settings, of_measurements, "with --runs-only, which measures nothing else");
    }
    if (status == DMG_OK && !has_link) {
        status = dmg_options_refuse(compare->settings, of_links, "where no configuration has a link");
    }
    return status;
}

/** Of all runs, before the first: each looks by itself, too. */
static dmg_status check_descriptors(const dmg_compare *compare)
{
    uint32_t mns = (uint32_t)dmg_number(compare->settings, DMG_OPTION_MNS);
    dmg_status status = DMG_OK;
    for (uint32_t i = 0; i < compare->configuration_count && status == DMG_OK; i++) {
        for (uint32_t k = 0; k < compare->cns_count && status == DMG_OK; k++) {
            uint32_t cns = compare->cns[k];
            status = dmg_descriptors_check_run(compare->configurations[i].transport, mns, false, cns,
                                               dmg_engine_threads(compare->settings, cns));
        }
    }
    return status;
}

/* ---- the steps ---- */

dmg_status dmg_compare_plan(dmg_compare *compare)
{
    compare->path = compare->settings->positionals[0];
    compare->source.file = -1;
    dmg_status status = plan_configurations(compare);
    if (status == DMG_OK) {
        status = plan_cns(compare);
    }
    if (status == DMG_OK) {
        status = plan_algorithms(compare);
    }
    if (status == DMG_OK) {
        status = check_options(compare);
    }
    if (status == DMG_OK) {
        status = check_descriptors(compare);
    }
    dmg_compare_describe_host(compare);
    return status;
}

dmg_status dmg_compare_read_graph(dmg_compare *compare)
{
    dmg_read_options reading;
    dmg_status status = dmg_graph_source_options(compare->settings, &reading);
    /* With both directions, so that no run has to make one. */
    reading.with_reverse = !dmg_flag(compare->settings, DMG_OPTION_OUT_LISTS_ONLY);
    if (status == DMG_OK) {
        dmg_compare_progress(compare, "reading %s", dmg_graph_source_name(compare->path));
        status = dmg_graph_source_read(compare->path, &reading, &compare->source);
    }
    const dmg_graph *graph = &compare->source.graph;
    if (status == DMG_OK && graph->vertex_count == 0) {
        status = dmg_error(DMG_ERR_ARGUMENT, "%s has no vertices: there is nothing to compare",
                           dmg_graph_source_name(compare->path));
    }
    for (size_t i = 0; i < sizeof default_algorithms / sizeof default_algorithms[0] && status == DMG_OK &&
                       compare->settings->positional_count == 1;
         i++) {
        status = add_algorithm(compare, default_algorithms[i]);
    }
    bool can_have_sssp = graph->weight_kind != DMG_WEIGHT_NONE && graph->negative_line == 0;
    if (status == DMG_OK && compare->settings->positional_count == 1 && can_have_sssp) {
        status = add_algorithm(compare, "sssp");
    }
    for (uint32_t i = 0; status == DMG_OK && reading.weights != DMG_WEIGHTS_IGNORED && i < compare->algorithm_count;
         i++) {
        (void)dmg_graph_source_warn_of_weights(compare->path, compare->source.report.has_weights,
                                               dmg_algorithm_find(compare->algorithms[i]),
                                               "give --unweighted, if that is what is meant");
    }
    return status == DMG_OK ? dmg_graph_source_share(compare->path, &compare->source) : status;
}

void dmg_compare_close(dmg_compare *compare)
{
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        dmg_compare_configuration *configuration = &compare->configurations[i];
        free(configuration->profile);
        for (int sweep = 0; sweep < DMG_SWEEPS; sweep++) {
            free(configuration->sweeps[sweep].points);
        }
        for (int variant = 0; variant < DMG_VARIANTS; variant++) {
            if (configuration->changed[variant] >= 0) {
                close(configuration->changed[variant]);
            }
        }
    }
    for (uint32_t i = 0; i < DMG_COMPARE_ALGORITHMS_MAX; i++) {
        json_decref(compare->answers[i]);
    }
    dmg_graph_source_close(&compare->source);
    size_t runs = (size_t)compare->configuration_count * compare->algorithm_count * compare->cns_count;
    for (size_t i = 0; compare->model_runs && i < runs; i++) {
        dmg_predict_run_free(&compare->model_runs[i]);
    }
    free(compare->model_runs);
    free(compare->cells);
}
