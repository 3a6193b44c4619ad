/* The HTML report of a comparison: the answer first, then what it stands on. */
#include "cli/compare/compare.h"

#include "cli/base/text.h"
#include "cli/chart/markup.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the answer ---- */

static void write_paragraph(FILE *to, const char *text, bool is_verdict)
{
    if (text[0]) {
        fputs(is_verdict ? "<p class=\"verdict\">" : "<p>", to);
        dmg_markup_text(to, text);
        fputs("</p>\n", to);
    }
}

static void write_head(FILE *to, const dmg_compare *compare)
{
    const dmg_graph *graph = &compare->source.graph;
    const char *name = dmg_graph_source_name(compare->path);
    const char *slash = strrchr(name, '/');
    fputs("<h1>", to);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        fprintf(to, "%s<span class=\"c%" PRIu32 "\">", i > 0 ? " against " : "", i);
        dmg_markup_text(to, compare->configurations[i].name);
        fputs("</span>", to);
    }
    fputs(" on ", to);
    dmg_markup_text(to, slash ? slash + 1 : name);
    fputs("</h1>\n<p class=\"soft\">", to);
    dmg_markup_print(to, "%s vertices, %s arcs, %s; %s; dmgraph %s", dmg_text_count(graph->vertex_count).text,
                     dmg_text_count(graph->arc_count).text, graph->is_directed ? "directed" : "undirected",
                     compare->date, DMGRAPH_VERSION);
    fputs("</p>\n<p>", to);
    bool is_emulated = false;
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        is_emulated |= compare->configurations[i].has_link;
    }
    fputs(is_emulated ? "<span class=\"tag\">emulated link</span>" : "", to);
    fputs(dmg_compare_is_accounted(compare) ? "<span class=\"tag\">partly accounted, not waited for</span>" : "", to);
    fprintf(to, "<span class=\"tag\">%" PRIu32 " round%s in turns</span></p>\n", compare->rounds,
            compare->rounds == 1 ? "" : "s");
}

static void write_answer(FILE *to, const dmg_compare *compare)
{
    fputs("<div class=\"answer\">\n", to);
    for (uint32_t which = 0; which < dmg_compare_sentence_count(compare); which++) {
        char text[DMG_COMPARE_SENTENCE_BYTES];
        dmg_compare_say(compare, which, text);
        write_paragraph(to, text, dmg_compare_is_verdict(compare, which));
    }
    fputs("</div>\n", to);
}

/** "2.1 ms", and below it "1.9 ms to 2.4 ms". */
static void write_time(FILE *to, const dmg_spread *times)
{
    dmg_markup_text(to, dmg_text_seconds(times->median).text);
    fputs("<br/><small>", to);
    dmg_markup_print(to, "%s to %s", dmg_text_seconds(times->least).text, dmg_text_seconds(times->most).text);
    fputs("</small>", to);
}

void dmg_compare_write_columns(FILE *to, const dmg_compare *compare)
{
    fputs("<div class=\"wide\"><table class=\"rows\">\n<tr class=\"head\"><th>algorithm</th>", to);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        fprintf(to, "<th><span class=\"c%" PRIu32 "\">", i);
        dmg_markup_text(to, compare->configurations[i].name);
        fputs("</span></th>", to);
    }
    fputs("<th>second / first</th></tr>\n", to);
}

void dmg_compare_write_row_name(FILE *to, const dmg_compare *compare, uint32_t algorithm, uint32_t cns)
{
    dmg_markup_text(to, compare->algorithms[algorithm]);
    dmg_markup_print(to, ", %" PRIu32 " CN%s", cns, cns == 1 ? "" : "s");
}

void dmg_compare_write_cell(FILE *to, const dmg_compare *compare, uint32_t configuration, bool is_winner)
{
    fprintf(to, "<td%s><span class=\"only c%" PRIu32 "\">", is_winner ? " class=\"win\"" : "", configuration);
    dmg_markup_text(to, compare->configurations[configuration].name);
    fputs("</span>", to);
}

static void write_result_row(FILE *to, const dmg_compare *compare, uint32_t algorithm, uint32_t cns)
{
    dmg_compare_times times = dmg_compare_times_of(compare, algorithm, cns, DMG_VARIANT_AS_IT_IS);
    dmg_contest contest = dmg_contest_judge(&times);
    fputs("<tr><td>", to);
    dmg_compare_write_row_name(to, compare, algorithm, compare->cns[cns]);
    fputs("</td>", to);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        dmg_compare_split split = dmg_compare_split_of(compare, i, algorithm, cns);
        dmg_compare_write_cell(to, compare, i, contest.is_clear && i == contest.winner);
        write_time(to, &contest.times[i]);
        fprintf(to, "<br/><small>link: %s</small></td>", dmg_link_cost_say(&split.link).text);
    }
    fputs("<td><span class=\"only\">second / first</span>", to);
    if (contest.is_clear) {
        fprintf(to, "%.2f", contest.ratio.median);
    } else {
        fputs("not resolved", to);
    }
    fprintf(to, "<br/><small>%.2f to %.2f</small></td></tr>\n", contest.ratio.least, contest.ratio.most);
}

static void write_work(FILE *to, const dmg_compare *compare, uint32_t algorithm, uint32_t cns)
{
    char text[DMG_COMPARE_SENTENCE_BYTES];
    fputs("<dt>", to);
    dmg_compare_write_row_name(to, compare, algorithm, compare->cns[cns]);
    fputs("</dt><dd>", to);
    dmg_compare_say_work(compare, algorithm, cns, text);
    dmg_markup_text(to, text);
    fputs("</dd>\n", to);
}

/** Numbers in the table, and prose below it: a sentence in a table makes all of it as wide as itself. */
static void write_results(FILE *to, const dmg_compare *compare)
{
    dmg_compare_write_columns(to, compare);
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
            write_result_row(to, compare, algorithm, cns);
        }
    }
    fputs(
        "</table></div>\n<p><small>Time of the iterations: the median of the rounds, below it the least and the most, "
        "and what the link adds. The ratio is taken round by round, as rounds of a busy machine differ more than "
        "turns within a round; where the rounds do not agree which is faster, or are few and differ by more than "
        "that, it is not resolved. CN: compute node.</small></p>\n<details><summary>what each asked of the "
        "interconnect</summary>\n<dl>\n",
        to);
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
            write_work(to, compare, algorithm, cns);
        }
    }
    fputs("</dl></details>\n", to);
}

/* ---- where the numbers come from ---- */

static void write_profile_cell(FILE *to, const dmg_link_profile *profile, dmg_link_cell cell)
{
    fputs("<tr><td>", to);
    dmg_markup_text(to, dmg_link_cell_name(cell));
    fputs("</td><td>", to);
    if (profile->settings.cells[cell] > 0) {
        dmg_markup_print(to, "%g", profile->settings.cells[cell]);
    } else {
        fputs("none", to);
    }
    fputs("</td><td class=\"why\">", to);
    dmg_markup_text(to, profile->provenance[cell]);
    fputs("</td></tr>\n", to);
}

static void write_configuration(FILE *to, const dmg_compare_configuration *configuration, uint32_t index)
{
    char proof[DMG_COMPARE_SENTENCE_BYTES];
    fprintf(to, "<h3><span class=\"c%" PRIu32 "\">", index);
    dmg_markup_text(to, configuration->title);
    fputs("</span></h3>\n<p><small>", to);
    dmg_markup_text(to, configuration->chosen);
    fputs("</small></p>\n<p>", to);
    dmg_compare_say_proof(configuration, proof);
    dmg_markup_text(to, proof);
    fputs("</p>\n", to);
    if (!configuration->has_link) {
        return;
    }
    fputs("<details><summary>the profile, number by number</summary>\n<p>", to);
    dmg_markup_print(to, "%s; coherence: %s; %s", configuration->profile->title, configuration->profile->coherence,
                     configuration->profile->path);
    fputs("</p>\n<div class=\"wide\"><table><tr><th>cell</th><th>value</th><th class=\"text\">where it comes "
          "from</th></tr>\n",
          to);
    for (int cell = 0; cell < DMG_LINK_CELLS; cell++) {
        if (configuration->profile->is_given[cell]) {
            write_profile_cell(to, configuration->profile, (dmg_link_cell)cell);
        }
    }
    fputs("</table></div></details>\n", to);
}

static void write_provenance(FILE *to, const dmg_compare *compare)
{
    fputs("<h2>What the links are, and how well they hold here</h2>\n<p>", to);
    dmg_markup_print(to, "Host: %s. All of it took %s.", compare->host, dmg_text_seconds(compare->seconds).text);
    fputs("</p>\n", to);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        write_configuration(to, &compare->configurations[i], i);
    }
}

/* ---- what a reader may do next ---- */

static void write_method(FILE *to, const dmg_compare *compare)
{
    fputs("<h2>How it was measured</h2>\n<p>Each run is a <code>dmgraph run</code> with memory nodes and compute nodes "
          "as "
          "processes of this machine, on the same graph, which was read once. The configurations follow each other at "
          "once, for each algorithm and number of compute nodes, and each round begins with another one. The answers "
          "were "
          "compared and are the same.</p>\n<p>Emulated links delay real operations (docs/links.md); processors, memory "
          "and the software are those of this machine. Where a link is not waited for but accounted for, its time is "
          "added. The caches of processors, contention between machines, and tails of latencies that the profile does "
          "not have are not in it.</p>\n<p>All numbers are in the CSV file beside this page. Again: <code>",
          to);
    dmg_markup_print(to, "dmgraph compare %s", compare->path);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        dmg_markup_print(to, " --with %s,%s", compare->configurations[i].transport, compare->configurations[i].link);
    }
    fputs("</code></p>\n", to);
}

void dmg_compare_write_page(FILE *to, const dmg_compare *compare)
{
    char title[DMG_COMPARE_SENTENCE_BYTES] = "";
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        size_t used = strlen(title);
        snprintf(title + used, sizeof title - used, "%s%s",
                 i > 0 ? " against " : "dmgraph: ", compare->configurations[i].name);
    }
    dmg_markup_page_begin(to, title);
    write_head(to, compare);
    write_answer(to, compare);
    write_results(to, compare);
    dmg_compare_write_predictions(to, compare);
    dmg_compare_write_run_figures(to, compare);
    dmg_compare_write_sensitivity_figures(to, compare);
    dmg_compare_write_micro_figures(to, compare);
    write_provenance(to, compare);
    write_method(to, compare);
    dmg_markup_page_end(to);
}
