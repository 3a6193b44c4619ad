/*
 * All numbers of a comparison in one table of comma-separated values: a row a run and round, a row for where the time
 * of its rounds went, a row a prediction, then a row a measurement of a transport. What a row has not is empty.
 */
#include "cli/compare/compare.h"

#include "cli/base/text.h"

#include <inttypes.h>

/** The columns of a measurement, in rows that have none. */
#define NO_POINT ",,,,,,,,,,"

static void write_run(FILE *to, const dmg_compare *compare, uint32_t configuration, uint32_t algorithm, uint32_t cns,
                      dmg_compare_variant variant)
{
    const dmg_compare_configuration *one = &compare->configurations[configuration];
    const dmg_compare_cell *cell = dmg_compare_cell_of(compare, configuration, algorithm, cns, variant);
    for (uint32_t round = 0; round < cell->count; round++) {
        fprintf(to, "run,");
        dmg_csv_text(to, one->transport);
        fputc(',', to);
        dmg_csv_text(to, one->link);
        fprintf(to,
                ",%s,%s,%" PRIu32 ",%" PRIu32 ",%.9f,%.9f,%.9f,%.9f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
                ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
                dmg_compare_variant_name(variant), compare->algorithms[algorithm], compare->cns[cns], round + 1,
                cell->seconds[round], cell->waits[round], cell->accounted[round], cell->totals[round], cell->iterations,
                cell->arcs, cell->counters.rings, cell->counters.mapped_spans, cell->counters.mapped_bytes,
                cell->counters.mapped_atomics, cell->counters.lost_swaps, cell->counters.wait_ns);
        for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
            fprintf(to, ",%" PRIu64 ",%" PRIu64, cell->counters.operations[kind], cell->counters.bytes[kind]);
        }
        fputs(NO_POINT, to);
        fprintf(to, ",%" PRIu32 ",,,\n", cell->repeats[round]);
    }
}

/** Up to the last of the counters: of an algorithm with some nodes, and perhaps with seconds. */
static void write_head(FILE *to, const char *what, const dmg_compare_configuration *one, const char *algorithm,
                       uint32_t cns)
{
    fprintf(to, "%s,", what);
    dmg_csv_text(to, one->transport);
    fputc(',', to);
    dmg_csv_text(to, one->link);
    fprintf(to, ",%s,%s,%" PRIu32 ",", dmg_compare_variant_name(DMG_VARIANT_AS_IT_IS), algorithm, cns);
}

static void write_no_counters(FILE *to)
{
    fputs(",,,,,,,,,,,", to);
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        fputs(",,", to);
    }
    fputs(NO_POINT, to);
}

/** What is not resolved says so: an empty field or a 0 would be taken for none. */
static void write_split(FILE *to, const dmg_compare *compare, uint32_t configuration, uint32_t algorithm, uint32_t cns)
{
    dmg_compare_split split = dmg_compare_split_of(compare, configuration, algorithm, cns);
    write_head(to, "split", &compare->configurations[configuration], compare->algorithms[algorithm], compare->cns[cns]);
    fputc(',', to);
    write_no_counters(to);
    fprintf(to, ",,%.9f,%.9f,", split.compute, split.software);
    if (split.link.is_resolved) {
        fprintf(to, "%.9f\n", split.link.spread.median);
    } else {
        fprintf(to, "%s\n", dmg_link_cost_say(&split.link).text);
    }
}

static void write_prediction(FILE *to, const dmg_compare *compare, uint32_t configuration, uint32_t algorithm,
                             uint32_t cns)
{
    dmg_compare_prediction all = dmg_compare_predict(compare, algorithm, cns);
    write_head(to, "predict", &compare->configurations[configuration], compare->algorithms[algorithm], cns);
    fprintf(to, ",%.9f", all.seconds[configuration]);
    write_no_counters(to);
    fputs(",,,,\n", to);
}

static void write_point(FILE *to, const dmg_compare_configuration *one, const dmg_compare_point *point)
{
    fprintf(to, "perf,");
    dmg_csv_text(to, one->transport);
    fputc(',', to);
    dmg_csv_text(to, one->link);
    fprintf(to, ",%s,,,,,,,,,,,,,,,", dmg_compare_variant_name(DMG_VARIANT_AS_IT_IS));
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        fputs(",,", to);
    }
    fprintf(to, ",%s,%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%.1f,%.1f,%.1f,%.1f,%.6f,%.6f,,,,\n", point->operation,
            point->bytes, point->depth, point->threads, point->least_ns, point->median_ns, point->p99_ns,
            point->p999_ns, point->mops, point->gbs);
}

void dmg_compare_write_csv(FILE *to, const dmg_compare *compare)
{
    fputs("what,transport,emulated_link,variant,algorithm,cns,round,seconds,wait_seconds,accounted_seconds,"
          "total_seconds,iterations,arcs,rings,in_place_spans,in_place_bytes,in_place_atomics,lost_swaps,wait_ns",
          to);
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        const char *name = dmg_operation_kind_name((dmg_operation_kind)kind);
        fprintf(to, ",%s_operations,%s_bytes", name, name);
    }
    fputs(",operation,bytes,depth,threads,min_ns,p50_ns,p99_ns,p999_ns,mops,gbs,repeats,compute_seconds,"
          "software_seconds,link_seconds\n",
          to);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
            for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
                for (int variant = 0; variant < DMG_VARIANTS; variant++) {
                    write_run(to, compare, i, algorithm, cns, (dmg_compare_variant)variant);
                }
                write_split(to, compare, i, algorithm, cns);
            }
            for (uint32_t n = 0; n < compare->predict_cns_count; n++) {
                write_prediction(to, compare, i, algorithm, compare->predict_cns[n]);
            }
        }
        for (int sweep = 0; sweep < DMG_SWEEPS; sweep++) {
            for (uint32_t p = 0; p < compare->configurations[i].sweeps[sweep].count; p++) {
                write_point(to, &compare->configurations[i], &compare->configurations[i].sweeps[sweep].points[p]);
            }
        }
    }
}
