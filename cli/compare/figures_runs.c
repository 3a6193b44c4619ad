/* The figures about runs: where the time goes, without links too, and what went over the interconnect. */
#include "cli/base/text.h"
#include "cli/compare/figures.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GROUP_BYTES 64
#define BARS_MAX    (DMG_COMPARE_ALGORITHMS_MAX * DMG_COMPARE_CNS_MAX * DMG_COMPARE_CONFIGURATIONS_MAX)

/** Room for the bars of a figure, too much for a stack. */
typedef struct bar_room {
    dmg_bar bars[BARS_MAX];
    char groups[BARS_MAX][GROUP_BYTES];
    uint32_t count;
} bar_room;

static dmg_bar *add_bar(bar_room *room, const dmg_compare *compare, uint32_t configuration, const char *group)
{
    dmg_bar *bar = &room->bars[room->count];
    *bar = (dmg_bar){.name = compare->configurations[configuration].name, .colour = (int)configuration};
    if (group) {
        snprintf(room->groups[room->count], GROUP_BYTES, "%s", group);
        bar->group = room->groups[room->count];
    }
    room->count++;
    return bar;
}

/** Bars for all configurations of all algorithms with the first number of compute nodes, or all of them. */
static void fill_bars(const dmg_compare *compare, uint32_t cns_count, bar_room *room,
                      void (*fill)(const dmg_compare *compare, uint32_t i, uint32_t algorithm, uint32_t cns,
                                   dmg_bar *bar))
{
    room->count = 0;
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (uint32_t cns = 0; cns < cns_count; cns++) {
            for (uint32_t i = 0; i < compare->configuration_count; i++) {
                char group[GROUP_BYTES];
                if (cns_count > 1) {
                    snprintf(group, sizeof group, "%s, %" PRIu32 " CN%s", compare->algorithms[algorithm],
                             compare->cns[cns], compare->cns[cns] == 1 ? "" : "s");
                } else {
                    snprintf(group, sizeof group, "%s", compare->algorithms[algorithm]);
                }
                dmg_bar *bar = add_bar(room, compare, i, i == 0 ? group : NULL);
                bar->begins_scale = cns == 0 && i == 0; /* algorithms differ too much for one */
                fill(compare, i, algorithm, cns, bar);
            }
        }
    }
}

/* ---- time ---- */

static void fill_split(const dmg_compare *compare, uint32_t i, uint32_t algorithm, uint32_t cns, dmg_bar *bar)
{
    dmg_compare_split split = dmg_compare_split_of(compare, i, algorithm, cns);
    const dmg_compare_cell *cell = dmg_compare_cell_of(compare, i, algorithm, cns, DMG_VARIANT_AS_IT_IS);
    dmg_spread spread = dmg_spread_of(cell->seconds, cell->count);
    bar->parts[0] = split.compute;
    bar->parts[1] = split.software;
    bar->parts[2] = split.link.is_resolved ? split.link.spread.median : 0;
    bar->note = split.link.is_resolved || split.link.kind == DMG_LINK_KIND_NONE ? NULL : "link not resolved";
    bar->least = spread.least;
    bar->most = spread.most;
}

static void fill_bare(const dmg_compare *compare, uint32_t i, uint32_t algorithm, uint32_t cns, dmg_bar *bar)
{
    const dmg_compare_cell *bare = dmg_compare_cell_of(compare, i, algorithm, cns, DMG_VARIANT_BARE);
    dmg_spread spread = dmg_spread_of(bare->seconds, bare->count);
    double waits = fmin(dmg_spread_of(bare->waits, bare->count).median, spread.median);
    bar->parts[0] = spread.median - waits;
    bar->parts[1] = waits;
    bar->least = spread.least;
    bar->most = spread.most;
}

/** "polar-cxl spends 23 % of its time on the link", all algorithms together. */
static void write_link_share(FILE *to, const dmg_compare *compare, const dmg_verdict *verdict, uint32_t configuration)
{
    const char *name = compare->configurations[configuration].name;
    const dmg_link_cost *link = &verdict->links[configuration];
    double whole = verdict->software_seconds[configuration] + link->spread.median;
    if (link->is_resolved) {
        dmg_markup_print(to, "%s spends %.0f %% of its time on the link", name, 100 * link->spread.median / whole);
    } else if (link->kind == DMG_LINK_KIND_NONE) {
        dmg_markup_print(to, "%s has no emulated link", name);
    } else {
        dmg_markup_print(to, "what the link adds to %s is not resolved", name);
    }
}

static void write_time(FILE *to, const dmg_compare *compare, bar_room *room)
{
    dmg_figure_begin(to, "Time of the iterations, and where it goes");
    for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
        dmg_verdict verdict = dmg_compare_verdict_of_all(compare, cns);
        dmg_markup_print(to, " With %" PRIu32 " compute node%s ", compare->cns[cns], compare->cns[cns] == 1 ? "" : "s");
        for (uint32_t i = 0; i < compare->configuration_count; i++) {
            fputs(i == 0 ? "" : ", ", to);
            write_link_share(to, compare, &verdict, i);
        }
        fputs(".", to);
    }
    fputs(" The longer the strong part of a bar, the more the link decides.", to);
    dmg_figure_chart(to);
    fill_bars(compare, compare->cns_count, room, fill_split);
    dmg_bars_write(to, "time of each algorithm in parts", DMG_AXIS_SECONDS, room->bars, room->count);
    fputs("<small class=\"legend\"><span><i class=\"key k0 ink\"></i>computing</span><span><i class=\"key k1 "
          "ink\"></i>waiting without a link: backend, barriers</span><span><i class=\"key ink\"></i>what the emulated "
          "link adds</span><span>whisker: least and most</span><span>each algorithm has its own scale</span></small>\n",
          to);
    dmg_figure_end(to);
}

static void write_bare_lead(FILE *to, const dmg_compare *compare, uint32_t cns)
{
    dmg_compare_times times = dmg_compare_times_of_all(compare, cns, DMG_VARIANT_BARE);
    dmg_contest contest = dmg_contest_judge(&times);
    const char *winner = compare->configurations[contest.winner].name;
    const char *second = compare->configurations[contest.second].name;
    dmg_markup_print(to, " With %" PRIu32 " compute node%s ", compare->cns[cns], compare->cns[cns] == 1 ? "" : "s");
    if (contest.is_clear) {
        dmg_markup_print(to, "%s takes %.2f times as long as %s.", second, contest.ratio.median, winner);
    } else {
        dmg_markup_print(to, "the difference between %s and %s is not resolved.", winner, second);
    }
}

static void write_bare(FILE *to, const dmg_compare *compare, bar_room *room)
{
    dmg_figure_begin(to, "The same runs with the link model off");
    fputs(" What the backends cost on this machine before any link is emulated.", to);
    for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
        write_bare_lead(to, compare, cns);
    }
    dmg_figure_chart(to);
    fill_bars(compare, compare->cns_count, room, fill_bare);
    dmg_bars_write(to, "time of each algorithm without links", DMG_AXIS_SECONDS, room->bars, room->count);
    dmg_figure_end(to);
}

/* ---- traffic ---- */

static double per_arc(const dmg_compare_cell *cell, uint64_t amount)
{
    return cell->arcs > 0 ? (double)amount / (double)cell->arcs : 0;
}

static void fill_bytes(const dmg_compare *compare, uint32_t i, uint32_t algorithm, uint32_t cns, dmg_bar *bar)
{
    const dmg_compare_cell *cell = dmg_compare_cell_of(compare, i, algorithm, cns, DMG_VARIANT_AS_IT_IS);
    bar->parts[2] = per_arc(cell, dmg_access_bytes(&cell->counters));
}

static void fill_accesses(const dmg_compare *compare, uint32_t i, uint32_t algorithm, uint32_t cns, dmg_bar *bar)
{
    const dmg_compare_cell *cell = dmg_compare_cell_of(compare, i, algorithm, cns, DMG_VARIANT_AS_IT_IS);
    bar->parts[2] = 1000 * per_arc(cell, dmg_accesses(&cell->counters));
}

/** The least and the most of a figure's bars. */
static dmg_spread range_of(const bar_room *room)
{
    dmg_spread range = {.least = INFINITY};
    for (uint32_t i = 0; i < room->count; i++) {
        range.least = fmin(range.least, room->bars[i].parts[2]);
        range.most = fmax(range.most, room->bars[i].parts[2]);
    }
    return range;
}

static void write_per_edge(FILE *to, const dmg_compare *compare, bar_room *room, const char *title, const char *unit,
                           void (*fill)(const dmg_compare *compare, uint32_t i, uint32_t algorithm, uint32_t cns,
                                        dmg_bar *bar))
{
    fill_bars(compare, 1, room, fill);
    dmg_spread range = range_of(room);
    dmg_figure_begin(to, title);
    dmg_markup_print(to,
                     " From %.3g to %.3g %s; the same algorithm differs between configurations only by how its "
                     "backend fetches and updates.",
                     range.least, range.most, unit);
    dmg_figure_chart(to);
    dmg_bars_write(to, title, DMG_AXIS_PLAIN, room->bars, room->count);
    dmg_figure_end(to);
}

/* ---- sizes ---- */

typedef struct size_curve {
    double x[DMG_SIZE_BUCKETS], y[DMG_SIZE_BUCKETS];
    double median; /* bytes */
} size_curve;

/** How many accesses have at most so many bytes; from the last empty bucket before the first access on. */
static uint32_t fill_sizes(const dmg_counters *counters, size_curve *curve)
{
    uint64_t total = 0;
    for (int bucket = 0; bucket < DMG_SIZE_BUCKETS; bucket++) {
        total += counters->sizes[bucket] + counters->mapped_sizes[bucket];
    }
    uint64_t seen = 0;
    uint32_t count = 0;
    for (int bucket = 0; bucket < DMG_SIZE_BUCKETS && total > 0; bucket++) {
        uint64_t here = counters->sizes[bucket] + counters->mapped_sizes[bucket];
        bool is_next_used =
            bucket + 1 < DMG_SIZE_BUCKETS && counters->sizes[bucket + 1] + counters->mapped_sizes[bucket + 1] > 0;
        if (seen + here == 0 && !is_next_used) {
            continue;
        }
        bool is_median = 2 * seen < total && 2 * (seen + here) >= total;
        seen += here;
        curve->x[count] = ldexp(1, bucket);
        curve->y[count] = (double)seen / (double)total;
        curve->median = is_median ? curve->x[count] : curve->median;
        count++;
        if (seen == total) {
            break;
        }
    }
    return count;
}

static void write_sizes(FILE *to, const dmg_compare *compare, uint32_t algorithm)
{
    size_curve curves[DMG_COMPARE_CONFIGURATIONS_MAX] = {0};
    dmg_series series[DMG_COMPARE_CONFIGURATIONS_MAX];
    char title[96];
    snprintf(title, sizeof title, "Sizes of accesses: %s", compare->algorithms[algorithm]);
    dmg_figure_begin(to, title);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        const dmg_compare_cell *cell = dmg_compare_cell_of(compare, i, algorithm, 0, DMG_VARIANT_AS_IT_IS);
        uint32_t count = fill_sizes(&cell->counters, &curves[i]);
        series[i] = (dmg_series){.name = compare->configurations[i].name,
                                 .colour = (int)i,
                                 .x = curves[i].x,
                                 .y = curves[i].y,
                                 .count = count};
        dmg_markup_print(to, "%s %s: half of them have at most %s", i == 0 ? "" : ";", compare->configurations[i].name,
                         dmg_text_bytes((uint64_t)curves[i].median).text);
    }
    fputs(". The further left a curve rises, the more latency and operation rates count.", to);
    dmg_figure_chart(to);
    dmg_chart chart = {.description = title,
                       .x = {.title = "bytes of a read, write or mapped span", .unit = DMG_AXIS_BYTES, .is_log = true},
                       .y = {.title = "share of accesses of at most that size", .unit = DMG_AXIS_SHARE},
                       .series = series,
                       .series_count = compare->configuration_count};
    dmg_chart_fit(&chart);
    chart.y.most = 1;
    dmg_chart_write(to, &chart);
    dmg_figure_end(to);
}

/* ---- atomics ---- */

static void write_swap_row(FILE *to, const dmg_compare *compare, uint32_t i, uint32_t algorithm, uint32_t cns)
{
    const dmg_counters *counters = &dmg_compare_cell_of(compare, i, algorithm, cns, DMG_VARIANT_AS_IT_IS)->counters;
    fputs("<tr><td>", to);
    dmg_markup_text(to, compare->algorithms[algorithm]);
    fprintf(to, "</td><td class=\"text\"><span class=\"c%" PRIu32 "\">", i);
    dmg_markup_text(to, compare->configurations[i].name);
    fprintf(to, "</span></td><td>%" PRIu32 "</td><td>%s</td><td>%s</td><td>%s</td></tr>\n", compare->cns[cns],
            dmg_text_count(counters->operations[DMG_OPERATION_CAS]).text, dmg_text_count(counters->mapped_atomics).text,
            dmg_text_count(counters->lost_swaps).text);
}

static void write_swaps(FILE *to, const dmg_compare *compare)
{
    uint64_t posted = 0;
    uint64_t mapped = 0;
    uint64_t lost = 0;
    size_t cells = (size_t)compare->configuration_count * compare->algorithm_count * compare->cns_count * DMG_VARIANTS;
    for (size_t i = DMG_VARIANT_AS_IT_IS; i < cells; i += DMG_VARIANTS) {
        posted += compare->cells[i].counters.operations[DMG_OPERATION_CAS];
        mapped += compare->cells[i].counters.mapped_atomics;
        lost += compare->cells[i].counters.lost_swaps;
    }
    fputs("<h3>Compare-and-swaps</h3>\n<p>", to);
    dmg_markup_print(
        to,
        "%s were posted and %s done where the pool is mapped; %s of them met another update of the same word and were "
        "repeated, which costs a round trip each.",
        dmg_text_count(posted).text, dmg_text_count(mapped).text, dmg_text_count(lost).text);
    fputs("</p>\n<details><summary>by algorithm and configuration</summary>\n<div class=\"wide\"><table><tr>"
          "<th>algorithm</th><th class=\"text\">over</th><th>CNs</th><th>posted</th><th>in "
          "place</th><th>lost</th></tr>\n",
          to);
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        for (uint32_t cns = 0; cns < compare->cns_count; cns++) {
            for (uint32_t i = 0; i < compare->configuration_count; i++) {
                write_swap_row(to, compare, i, algorithm, cns);
            }
        }
    }
    fputs("</table></div></details>\n", to);
}

void dmg_compare_write_run_figures(FILE *to, const dmg_compare *compare)
{
    bar_room *room = malloc(sizeof *room);
    if (!room) {
        return; /* the page goes on without them */
    }
    fputs("<h2>Where the time goes</h2>\n<div class=\"figures\">\n", to);
    write_time(to, compare, room);
    write_bare(to, compare, room);
    fputs("</div>\n<h2>What goes over the interconnect</h2>\n<div class=\"figures\">\n", to);
    write_per_edge(to, compare, room, "Bytes an arc that was walked", "bytes", fill_bytes);
    write_per_edge(to, compare, room, "Accesses a thousand arcs that were walked",
                   "operations and spans for a thousand arcs", fill_accesses);
    for (uint32_t algorithm = 0; algorithm < compare->algorithm_count; algorithm++) {
        write_sizes(to, compare, algorithm);
    }
    fputs("</div>\n", to);
    write_swaps(to, compare);
    free(room);
}
