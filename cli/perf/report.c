#include "cli/base/standard_output.h"
#include "cli/base/text.h"
#include "cli/launcher/segments.h"
#include "cli/perf/perf.h"

#include <string.h>

#define MILLION 1e6
#define GIGA    1e9

void dmg_perf_report_begin(dmg_perf_report *report)
{
    switch (report->format) {
    case DMG_PERF_TABLE:
        printf("transport  %s\nlink       %s\n           %s\nmemory     ", report->transport, report->link,
               report->chosen);
        dmg_placement_print(stdout, report->placement);
        printf("\n\n");
        printf("%-9s %9s %6s %7s %11s %11s %11s %11s %10s %10s\n", "operation", "bytes", "depth", "threads", "min µs",
               "p50 µs", "p99 µs", "p99.9 µs", "Mops", "GB/s");
        break;
    case DMG_PERF_CSV:
        printf("transport,emulated_link,operation,bytes,depth,threads,min_ns,p50_ns,p99_ns,p999_ns,operations,seconds,"
               "mops,gbs,rate_ns,self_test_ns,check\n");
        break;
    case DMG_PERF_JSON:
        report->rows = json_array();
        break;
    }
}

/** [[part, nanoseconds], ...] */
static json_t *quantiles_json(const dmg_perf_result *result)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < DMG_PERF_QUANTILES; i++) {
        json_array_append_new(list, json_pack("[f, f]", dmg_perf_quantile_parts[i], result->quantiles_ns[i]));
    }
    return list;
}

/** What the check compared; null where it is not about the point. */
static json_t *check_json(const dmg_perf_check *check)
{
    if (!check) {
        return json_null();
    }
    const dmg_perf_figures *figures = &check->figures;
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "verdict", dmg_perf_verdict_name(check->verdict),
                     "p50_ns", figures->median_ns, "rate_ns", figures->rate_ns, "self_test_ns", figures->host_ns,
                     "undisturbed_rate_ns", figures->clean_rate_ns, "undisturbed_mean_ns", figures->clean_mean_ns,
                     "clock_step_ns", figures->step_ns, "undisturbed_windows", (json_int_t)figures->clean_windows,
                     "windows", (json_int_t)figures->windows);
}

void dmg_perf_report_check(FILE *to, const char *begin, const dmg_perf_point *point, const dmg_perf_check *check)
{
    char sentence[512];
    dmg_perf_check_sentence(&check->figures, check->verdict, sentence, sizeof sentence);
    fprintf(to, "%scheck of %s, %llu bytes: %s\n", begin, dmg_perf_kind_name(point->kind),
            (unsigned long long)point->bytes, sentence);
}

dmg_status dmg_perf_report_row(dmg_perf_report *report, const dmg_perf_point *point, const dmg_perf_result *result,
                               const dmg_perf_check *check)
{
    double rate = result->seconds > 0 ? (double)result->operations / result->seconds : 0;
    double mops = rate / MILLION;
    double gbs = rate * (double)point->bytes / GIGA;
    const char *kind = dmg_perf_kind_name(point->kind);
    switch (report->format) {
    case DMG_PERF_TABLE:
        printf("%-9s %9llu %6u %7u %10.3f %10.3f %10.3f %10.3f %10.3f %10.3f\n", kind, (unsigned long long)point->bytes,
               point->depth, point->threads, result->least_ns / 1e3, result->median_ns / 1e3, result->p99_ns / 1e3,
               result->p999_ns / 1e3, mops, gbs);
        break;
    case DMG_PERF_CSV:
        dmg_csv_text(stdout, report->transport);
        putchar(',');
        dmg_csv_text(stdout, report->link);
        printf(",%s,%llu,%u,%u,%.1f,%.1f,%.1f,%.1f,%llu,%.6f,%.6f,%.6f,", kind, (unsigned long long)point->bytes,
               point->depth, point->threads, result->least_ns, result->median_ns, result->p99_ns, result->p999_ns,
               (unsigned long long)result->operations, result->seconds, mops, gbs);
        if (check) {
            printf("%.1f,%.1f,%s\n", check->figures.rate_ns, check->figures.host_ns,
                   dmg_perf_verdict_name(check->verdict));
        } else {
            printf(",,\n");
        }
        break;
    case DMG_PERF_JSON:
        json_array_append_new(report->rows,
                              json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:f, s:o, s:o}",
                                        "operation", kind, "bytes", (json_int_t)point->bytes, "depth",
                                        (json_int_t)point->depth, "threads", (json_int_t)point->threads, "min_ns",
                                        result->least_ns, "p50_ns", result->median_ns, "p99_ns", result->p99_ns,
                                        "p999_ns", result->p999_ns, "operations", (json_int_t)result->operations,
                                        "seconds", result->seconds, "mops", mops, "gbs", gbs, "quantiles",
                                        quantiles_json(result), "check", check_json(check)));
        break;
    }
    if (check) {
        report->verdicts[check->verdict]++;
        if (check->verdict != DMG_PERF_AGREES) {
            bool is_table = report->format == DMG_PERF_TABLE;
            dmg_perf_report_check(is_table ? stdout : stderr, is_table ? "  " : "dmgraph: ", point, check);
        }
    }
    return dmg_standard_output_flush();
}

/** How the check went over all points, and that it did not when there were none. */
static void sum_up_check(const dmg_perf_report *report, char *text, size_t capacity)
{
    uint32_t points = 0;
    for (int verdict = 0; verdict < DMG_PERF_VERDICTS; verdict++) {
        points += report->verdicts[verdict];
    }
    if (points == 0) {
        snprintf(text, capacity, "nothing was checked: it takes one thread and a depth of 1");
        return;
    }
    int used = snprintf(text, capacity,
                        "p50, 1/rate and the self-test's figure agree within %.0f %% at %u of %u points of depth 1",
                        100 * DMG_PERF_AGREEMENT, report->verdicts[DMG_PERF_AGREES], points);
    for (int verdict = DMG_PERF_AGREES + 1; verdict < DMG_PERF_VERDICTS; verdict++) {
        if (report->verdicts[verdict] > 0) {
            used += snprintf(text + used, capacity - (size_t)used, "; %u %s", report->verdicts[verdict],
                             dmg_perf_verdict_name((dmg_perf_verdict)verdict));
        }
    }
}

static json_t *verdicts_json(const dmg_perf_report *report)
{
    json_t *object = json_object();
    for (int verdict = 0; verdict < DMG_PERF_VERDICTS; verdict++) {
        json_object_set_new(object, dmg_perf_verdict_name((dmg_perf_verdict)verdict),
                            json_integer((json_int_t)report->verdicts[verdict]));
    }
    return object;
}

void dmg_perf_report_end(dmg_perf_report *report)
{
    if (report->format == DMG_PERF_TABLE) {
        char text[256];
        sum_up_check(report, text, sizeof text);
        printf("\ncheck      %s\n", text);
    }
    if (report->format != DMG_PERF_JSON) {
        return;
    }
    json_t *link = strcmp(report->link, "none") == 0 ? json_null() : dmg_json_text(report->link);
    json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "dmgraph", DMGRAPH_VERSION, "transport",
                               dmg_json_text(report->transport), "emulated_link", link, "chosen",
                               dmg_json_text(report->chosen), "segment", dmg_placement_json(report->placement),
                               "measurements", report->rows, "check", verdicts_json(report));
    report->rows = NULL;
    dmg_json_print(object);
}
