/*
 * Graphs and faulty files that are too many for the repository: with DMGRAPH_DATA naming their folder, every one that
 * is in a format that dmgraph reads has the counts that other programs found, and every faulty one its verdict.
 */
#include "unit/formats/support.h"
#include "unit/support/suite.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 1024
#define LINE_BYTES 2048

/** The folder, or NULL, which is said once a test. */
static const char *data_folder(void)
{
    const char *folder = getenv("DMGRAPH_DATA");
    if (!folder || !*folder) {
        printf("\n    skipped: DMGRAPH_DATA is not set\n");
        return NULL;
    }
    return folder;
}

/** The value behind "KEY": in a JSON text that has one key a line; "" when there is none. */
static const char *json_value(const char *json, const char *key, char *value, size_t capacity)
{
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\n \"%s\": ", key);
    value[0] = '\0';
    const char *found = strstr(json, quoted);
    if (found) {
        found += strlen(quoted);
        found += *found == '"';
        size_t length = strcspn(found, "\",\n");
        length = length < capacity ? length : capacity - 1;
        memcpy(value, found, length);
        value[length] = '\0';
    }
    return value;
}

static uint64_t json_number(const char *json, const char *key)
{
    char value[64];
    return strtoull(json_value(json, key, value, sizeof value), NULL, 10);
}

static dmg_status read_data(const char *folder, const char *file, const dmg_read_options *options, dmg_graph *graph,
                            dmg_read_report *report)
{
    char path[2 * PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return dmg_graph_read(path, options, graph, report);
}

static void check_counts(const char *folder, const char *json)
{
    char file[PATH_BYTES / 2];
    char directed[16];
    json_value(json, "file", file, sizeof file);
    bool is_directed = strcmp(json_value(json, "directed", directed, sizeof directed), "true") == 0;
    for (int drop = 0; drop < 2; drop++) {
        dmg_read_options options = {.direction = is_directed ? DMG_DIRECTION_BY_FILE : DMG_DIRECTION_UNDIRECTED,
                                    .drop_repeats = drop};
        dmg_graph graph;
        dmg_read_report report;
        dmg_status status = read_data(folder, file, &options, &graph, &report);
        CU_ASSERT_EQUAL(status, DMG_OK);
        if (status != DMG_OK) {
            printf("\n    %s\n", dmg_error_message());
            return;
        }
        uint64_t multi = json_number(json, "arcs_multi");
        uint64_t distinct = json_number(json, "arcs_distinct");
        bool is_right = graph.is_directed == is_directed && graph.vertex_count == json_number(json, "vertices") &&
                        graph.arc_count == (drop ? distinct : multi) &&
                        graph.repeated_arcs == (drop ? 0 : multi - distinct) &&
                        report.repeats_dropped == (drop ? multi - distinct : 0) &&
                        (!drop || graph.loop_arcs == json_number(json, "self_loop_vertices")) &&
                        dmg_graph_id(&graph, 0) == json_number(json, "min_id") &&
                        dmg_graph_id(&graph, (uint32_t)graph.vertex_count - 1) == json_number(json, "max_id");
        if (!is_right) {
            printf("\n    %s differs from what is expected\n", file);
        }
        CU_ASSERT_TRUE(is_right);
        dmg_graph_close(&graph);
    }
}

static bool has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name);
    size_t suffix_length = strlen(suffix);
    return length >= suffix_length && strcmp(name + length - suffix_length, suffix) == 0;
}

static void real_graphs_have_the_expected_counts(void)
{
    static char json[1 << 20];
    const char *folder = data_folder();
    if (!folder) {
        return;
    }
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/expected", folder);
    DIR *expected = opendir(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(expected);
    int graphs = 0;
    for (struct dirent *entry = readdir(expected); entry; entry = readdir(expected)) {
        if (!has_suffix(entry->d_name, ".json")) {
            continue;
        }
        snprintf(path, sizeof path, "%s/expected/%.250s", folder, entry->d_name);
        FILE *file = fopen(path, "rb");
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        json[fread(json, 1, sizeof json - 1, file)] = '\0';
        fclose(file);
        char format[16];
        json_value(json, "format", format, sizeof format);
        if (strcmp(format, "el") == 0 || strcmp(format, "wel") == 0 || strcmp(format, "mtx") == 0) {
            check_counts(folder, json);
            graphs++;
        }
    }
    closedir(expected);
    printf("\n    %d graphs\n", graphs);
    CU_ASSERT(graphs > 0);
}

/** The number behind the first " KEY" in a text, or -1. */
static long long number_behind(const char *text, const char *key)
{
    for (const char *found = strstr(text, key); found; found = strstr(found + 1, key)) {
        if (found == text || found[-1] == ' ') {
            char *end;
            long long number = strtoll(found + strlen(key), &end, 10);
            if (end > found + strlen(key)) {
                return number;
            }
        }
    }
    return -1;
}

/** Files that the verdict lets a reader read or refuse, or refuses only for an algorithm. */
static bool is_readable_error(const char *file)
{
    return strcmp(file, "cr_only.el") == 0 || strcmp(file, "plain_with_gz_suffix.el.gz") == 0 ||
           strcmp(file, "neg_weight.wel") == 0;
}

static bool verdict_holds(const char *folder, const char *file, const char *verdict, const char *behaviour)
{
    char path[PATH_BYTES];
    dmg_graph graph;
    dmg_read_report report;
    snprintf(path, sizeof path, "faulty/%.400s", file);
    dmg_status status = read_data(folder, path, NULL, &graph, &report);
    bool is_error = strcmp(verdict, "error") == 0 && !is_readable_error(file);
    if ((status != DMG_OK) != is_error) {
        return false;
    }
    if (status != DMG_OK) {
        char where[64];
        long long line = number_behind(behaviour, "line ");
        snprintf(where, sizeof where, ":%lld: ", line);
        return (status == DMG_ERR_FORMAT || status == DMG_ERR_LIMIT) && strstr(dmg_error_message(), file) &&
               (line < 0 || strstr(dmg_error_message(), where));
    }
    long long vertices = number_behind(behaviour, "n=");
    long long edges = number_behind(behaviour, "m=");
    bool holds = (vertices < 0 || graph.vertex_count == (uint64_t)vertices) &&
                 (edges < 0 || report.edge_lines == (uint64_t)edges) &&
                 (strcmp(file, "cr_only.el") != 0 || report.edge_lines == 3) &&
                 (strcmp(file, "neg_weight.wel") != 0 || graph.negative_line == 2);
    dmg_graph_close(&graph);
    return holds;
}

static void faulty_files_get_their_verdicts(void)
{
    const char *folder = data_folder();
    if (!folder) {
        return;
    }
    char line[LINE_BYTES];
    snprintf(line, sizeof line, "%s/faulty/FAULTY.tsv", folder);
    FILE *table = fopen(line, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(table);
    int files = 0;
    while (fgets(line, sizeof line, table)) {
        line[strcspn(line, "\n")] = '\0';
        char *rest = line;
        const char *file = strsep(&rest, "\t");
        const char *format = strsep(&rest, "\t");
        const char *verdict = strsep(&rest, "\t");
        if (!rest || (strcmp(format, "el") != 0 && strcmp(format, "wel") != 0 && strcmp(format, "mtx") != 0)) {
            continue;
        }
        bool holds = verdict_holds(folder, file, verdict, rest);
        if (!holds) {
            printf("\n    %s: %s: last error \"%s\"\n", file, verdict, dmg_error_message());
        }
        CU_ASSERT_TRUE(holds);
        files++;
    }
    fclose(table);
    printf("\n    %d files\n", files);
    CU_ASSERT(files > 0);
}

static void conformance_files_are_read_or_refused_with_their_name(void)
{
    static const char *const folders[] = {"lagraph", "suitesparse-cholmod", "cugraph", "igraph-fuzz", "gapbs"};
    const char *data = data_folder();
    if (!data) {
        return;
    }
    int read = 0;
    int refused = 0;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "%s/conformance/%s", data, folders[i]);
        DIR *folder = opendir(path);
        CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
        for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
            if (entry->d_name[0] == '.') {
                continue;
            }
            dmg_graph graph;
            dmg_read_options options = {.with_reverse = true};
            snprintf(path, sizeof path, "conformance/%s/%.250s", folders[i], entry->d_name);
            dmg_status status = read_data(data, path, &options, &graph, NULL);
            if (status == DMG_OK) {
                CU_ASSERT_EQUAL(graph.out.offsets[graph.vertex_count], graph.arc_count);
                dmg_graph_close(&graph);
                read++;
            } else {
                CU_ASSERT(status == DMG_ERR_FORMAT || status == DMG_ERR_LIMIT);
                CU_ASSERT_PTR_NOT_NULL(strstr(dmg_error_message(), entry->d_name));
                refused++;
            }
        }
        closedir(folder);
    }
    printf("\n    %d read, %d refused\n", read, refused);
    CU_ASSERT(read > 0 && refused > 0);
}

int main(int argc, char **argv)
{
    static const dmg_test tests[] = {
        DMG_TEST(real_graphs_have_the_expected_counts),
        DMG_TEST(faulty_files_get_their_verdicts),
        DMG_TEST(conformance_files_are_read_or_refused_with_their_name),
        {NULL, NULL},
    };
    if (dmg_suite_add("files from elsewhere", NULL, NULL, tests)) {
        return 2;
    }
    return dmg_suites_run(argc, argv);
}
