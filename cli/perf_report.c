#include "cli/perf.h"
#include "cli/text.h"

#include <string.h>

#define MILLION 1e6
#define GIGA    1e9

void dmg_perf_report_begin(dmg_perf_report *report)
{
    switch (report->format) {
    case DMG_PERF_TABLE:
        printf("transport  %s\nlink       %s\n           %s\n\n", report->transport, report->link, report->chosen);
        printf("%-9s %9s %6s %7s %10s %10s %10s %10s %10s %10s\n", "operation", "bytes", "depth", "threads", "min us",
               "p50 us", "p99 us", "p99.9 us", "Mops", "GB/s");
        break;
    case DMG_PERF_CSV:
        printf("transport,emulated_link,operation,bytes,depth,threads,min_ns,p50_ns,p99_ns,p999_ns,operations,seconds,"
               "mops,gbs\n");
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

void dmg_perf_report_row(dmg_perf_report *report, const dmg_perf_point *point, const dmg_perf_result *result)
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
        fflush(stdout);
        break;
    case DMG_PERF_CSV:
        dmg_csv_text(stdout, report->transport);
        putchar(',');
        dmg_csv_text(stdout, report->link);
        printf(",%s,%llu,%u,%u,%.1f,%.1f,%.1f,%.1f,%llu,%.6f,%.6f,%.6f\n", kind, (unsigned long long)point->bytes,
               point->depth, point->threads, result->least_ns, result->median_ns, result->p99_ns, result->p999_ns,
               (unsigned long long)result->operations, result->seconds, mops, gbs);
        fflush(stdout);
        break;
    case DMG_PERF_JSON:
        json_array_append_new(
            report->rows,
            json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:I, s:f, s:f, s:f, s:o}", "operation", kind, "bytes",
                      (json_int_t)point->bytes, "depth", (json_int_t)point->depth, "threads",
                      (json_int_t)point->threads, "min_ns", result->least_ns, "p50_ns", result->median_ns, "p99_ns",
                      result->p99_ns, "p999_ns", result->p999_ns, "operations", (json_int_t)result->operations,
                      "seconds", result->seconds, "mops", mops, "gbs", gbs, "quantiles", quantiles_json(result)));
        break;
    }
}

void dmg_perf_report_end(dmg_perf_report *report)
{
    if (report->format != DMG_PERF_JSON) {
        return;
    }
    json_t *link = strcmp(report->link, "none") == 0 ? json_null() : dmg_json_text(report->link);
    json_t *object = json_pack("{s:s, s:o, s:o, s:o, s:o}", "dmgraph", DMGRAPH_VERSION, "transport",
                               dmg_json_text(report->transport), "emulated_link", link, "chosen",
                               dmg_json_text(report->chosen), "measurements", report->rows);
    report->rows = NULL;
    dmg_json_print(object);
}
