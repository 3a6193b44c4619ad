/* A comparison as one object for programs. */
#include "cli/compare/compare.h"

#include "cli/base/text.h"
#include "cli/report/report.h"

#include <math.h>

static json_t *reals_json(const double *values, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(list, json_real(values[i]));
    }
    return list;
}

static json_t *point_json(const dmg_compare_point *point)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "operation", point->operation, "bytes",
                     (json_int_t)point->bytes, "depth", (json_int_t)point->depth, "threads", (json_int_t)point->threads,
                     "min_ns", point->least_ns, "p50_ns", point->median_ns, "p99_ns", point->p99_ns, "p999_ns",
                     point->p999_ns, "mops", point->mops, "gbs", point->gbs);
}

static json_t *configuration_json(const dmg_compare_configuration *configuration)
{
    static const char *const sweeps[DMG_SWEEPS] = {"latencies", "load", "sizes"};
    const dmg_compare_proof *proof = &configuration->proof;
    json_t *object = json_pack("{s:o, s:o, s:o, s:b, s:o}", "name", dmg_json_text(configuration->name), "transport",
                               dmg_json_text(configuration->transport), "link", dmg_json_text(configuration->link),
                               "emulated", configuration->has_link, "chosen", dmg_json_text(configuration->chosen));
    json_object_set_new(object, "self_test",
                        proof->is_there ? json_pack("{s:I, s:I, s:I, s:I, s:f}", "pass", (json_int_t)proof->passed,
                                                    "fail", (json_int_t)proof->failed, "inconclusive",
                                                    (json_int_t)proof->inconclusive, "not_emulable",
                                                    (json_int_t)proof->not_emulable, "worst_error", proof->worst_error)
                                        : json_null());
    for (int sweep = 0; sweep < DMG_SWEEPS; sweep++) {
        json_t *list = json_array();
        for (uint32_t i = 0; i < configuration->sweeps[sweep].count; i++) {
            json_array_append_new(list, point_json(&configuration->sweeps[sweep].points[i]));
        }
        json_object_set_new(object, sweeps[sweep], list);
    }
    return object;
}

/** A link's cost: null where it is not resolved, or where there is no link. */
static json_t *cost_json(const dmg_link_cost *cost)
{
    return cost->is_resolved ? json_real(cost->spread.median) : json_null();
}

static json_t *repeats_json(const dmg_compare_cell *cell)
{
    json_t *list = json_array();
    for (uint32_t round = 0; round < cell->count; round++) {
        json_array_append_new(list, json_integer(cell->repeats[round]));
    }
    return list;
}

static json_t *cell_json(const dmg_compare *compare, uint32_t configuration, uint32_t algorithm, uint32_t cns,
                         dmg_compare_variant variant)
{
    const dmg_compare_cell *cell = dmg_compare_cell_of(compare, configuration, algorithm, cns, variant);
    json_t *object =
        json_pack("{s:s, s:I, s:o, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "algorithm",
                  compare->algorithms[algorithm], "cns", (json_int_t)compare->cns[cns], "configuration",
                  dmg_json_text(compare->configurations[configuration].name), "variant",
                  dmg_compare_variant_name(variant), "iterations", (json_int_t)cell->iterations, "arcs",
                  (json_int_t)cell->arcs, "seconds", reals_json(cell->seconds, cell->count), "wait_seconds",
                  reals_json(cell->waits, cell->count), "accounted_seconds", reals_json(cell->accounted, cell->count),
                  "total_seconds", reals_json(cell->totals, cell->count), "repeats", repeats_json(cell), "counters",
                  dmg_counters_json(&cell->counters, true));
    if (variant == DMG_VARIANT_AS_IT_IS) {
        dmg_compare_split split = dmg_compare_split_of(compare, configuration, algorithm, cns);
        json_object_set_new(object, "split",
                            json_pack("{s:f, s:f, s:o, s:b}", "compute_seconds", split.compute, "software_seconds",
                                      split.software, "link_seconds", cost_json(&split.link), "link_resolved",
                                      split.link.is_resolved));
    }
    return object;
}

static json_t *ratio_json(const dmg_ratio *ratio)
{
    return json_pack("{s:f, s:f, s:f, s:b}", "median", ratio->spread.median, "least", ratio->spread.least, "most",
                     ratio->spread.most, "resolved", ratio->is_above || ratio->is_below);
}

static json_t *bound_json(const dmg_link_cost *cost, double seconds)
{
    return cost->kind == DMG_LINK_KIND_NONE ? json_null() : json_real(seconds);
}

static json_t *costs_json(const dmg_compare *compare, const dmg_verdict *verdict)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        const dmg_link_cost *link = &verdict->links[i];
        json_array_append_new(list, json_pack("{s:o, s:o, s:b, s:o, s:o, s:f}", "configuration",
                                              dmg_json_text(compare->configurations[i].name), "link_seconds",
                                              cost_json(link), "link_resolved", link->is_resolved, "link_seconds_least",
                                              bound_json(link, link->spread.least), "link_seconds_most",
                                              bound_json(link, link->spread.most), "software_seconds",
                                              verdict->software_seconds[i]));
    }
    return list;
}

/** The answer for one number of compute nodes. */
static json_t *answer_of_nodes_json(const dmg_compare *compare, uint32_t cns)
{
    dmg_verdict verdict = dmg_compare_verdict_of_all(compare, cns);
    const dmg_contest *contest = &verdict.contest;
    double flip =
        verdict.kind == DMG_VERDICT_LINKS ? dmg_compare_flip_factor(compare, &verdict, cns) : (double)INFINITY;
    json_t *answer = json_pack(
        "{s:I, s:s, s:o, s:o, s:b, s:f, s:f, s:f}", "cns", (json_int_t)compare->cns[cns], "verdict",
        dmg_verdict_kind_name(verdict.kind), "winner", dmg_json_text(compare->configurations[contest->winner].name),
        "second", dmg_json_text(compare->configurations[contest->second].name), "clear", contest->is_clear, "ratio",
        contest->ratio.median, "ratio_least", contest->ratio.least, "ratio_most", contest->ratio.most);
    json_object_set_new(answer, "link_part", ratio_json(&verdict.facts.link_part));
    json_object_set_new(answer, "software_part", ratio_json(&verdict.facts.software_part));
    json_object_set_new(answer, "costs", costs_json(compare, &verdict));
    json_object_set_new(answer, "flip_factor", isfinite(flip) ? json_real(flip) : json_null());
    return answer;
}

static json_t *sentences_json(const dmg_compare *compare)
{
    json_t *sentences = json_array();
    for (uint32_t which = 0; which < dmg_compare_sentence_count(compare); which++) {
        char text[DMG_COMPARE_SENTENCE_BYTES];
        dmg_compare_say(compare, which, text);
        if (text[0]) {
            json_array_append_new(sentences, dmg_json_text(text));
        }
    }
    return sentences;
}

/** For the first number of compute nodes, with all others in `by_nodes`. */
static json_t *answer_json(const dmg_compare *compare)
{
    json_t *answer = answer_of_nodes_json(compare, 0);
    json_t *by_nodes = json_array();
    for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
        json_array_append_new(by_nodes, answer_of_nodes_json(compare, cns));
    }
    json_object_set_new(answer, "by_nodes", by_nodes);
    json_object_set_new(answer, "uncertainty", json_real(compare->settings->values[DMG_OPTION_UNCERTAINTY].real));
    json_object_set_new(answer, "accounted", json_boolean(dmg_compare_is_accounted(compare)));
    json_object_set_new(answer, "sentences", sentences_json(compare));
    return answer;
}

static json_t *predictions_json(const dmg_compare *compare)
{
    json_t *list = json_array();
    uint32_t base = dmg_compare_predict_base(compare);
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (uint32_t n = 0; n < compare->predict_cns_count; n++) {
            dmg_compare_prediction all = dmg_compare_predict(compare, algorithm, compare->predict_cns[n]);
            json_t *seconds = json_array();
            for (uint32_t i = 0; i < compare->configuration_count; i++) {
                json_array_append_new(seconds, json_pack("{s:o, s:f, s:s}", "configuration",
                                                         dmg_json_text(compare->configurations[i].name), "seconds",
                                                         all.seconds[i], "bound", dmg_predict_part_name(all.bound[i])));
            }
            json_array_append_new(
                list, json_pack("{s:s, s:I, s:I, s:b, s:o}", "algorithm", compare->algorithms[algorithm], "cns",
                                (json_int_t)compare->predict_cns[n], "from_cns", (json_int_t)compare->cns[base],
                                "resolved", all.is_resolved, "configurations", seconds));
        }
    }
    return list;
}

json_t *dmg_compare_json(const dmg_compare *compare)
{
    json_t *configurations = json_array();
    json_t *runs = json_array();
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        json_array_append_new(configurations, configuration_json(&compare->configurations[i]));
        for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
            for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
                for (int variant = 0; variant < DMG_VARIANTS; variant++) {
                    if (dmg_compare_cell_of(compare, i, algorithm, cns, (dmg_compare_variant)variant)->count > 0) {
                        json_array_append_new(runs,
                                              cell_json(compare, i, algorithm, cns, (dmg_compare_variant)variant));
                    }
                }
            }
        }
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:s, s:I, s:f, s:o, s:o, s:o}", "dmgraph", DMGRAPH_VERSION, "answer",
                     answer_json(compare), "graph", dmg_graph_source_json(compare->path, &compare->source), "host",
                     dmg_json_text(compare->host), "date", compare->date, "rounds", (json_int_t)compare->rounds,
                     "seconds", compare->seconds, "configurations", configurations, "runs", runs, "predictions",
                     predictions_json(compare));
}
