/* The figures about what the transports do by themselves: latencies, load, sizes. */
#include "cli/base/text.h"
#include "cli/compare/figures.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define POINTS_MAX 32
#define NAME_BYTES 64
#define NANO       1e-9

/** Room for the curves of a figure. */
typedef struct curve_room {
    dmg_series series[DMG_CHART_SERIES_MAX];
    double x[DMG_CHART_SERIES_MAX][POINTS_MAX], y[DMG_CHART_SERIES_MAX][POINTS_MAX];
    char names[DMG_CHART_SERIES_MAX][NAME_BYTES];
    uint32_t count;
} curve_room;

static dmg_series *add_curve(curve_room *room, uint32_t colour, dmg_series_shape shape)
{
    if (room->count == DMG_CHART_SERIES_MAX) {
        room->count--; /* the last one gives way */
    }
    dmg_series *series = &room->series[room->count];
    *series = (dmg_series){.name = room->names[room->count],
                           .colour = (int)colour,
                           .shape = shape,
                           .x = room->x[room->count],
                           .y = room->y[room->count]};
    room->names[room->count++][0] = '\0';
    return series;
}

static void add_value(curve_room *room, double x, double y)
{
    dmg_series *series = &room->series[room->count - 1];
    if (series->count < POINTS_MAX) {
        room->x[room->count - 1][series->count] = x;
        room->y[room->count - 1][series->count++] = y;
    }
}

static void write_chart(FILE *to, const char *description, dmg_axis x, dmg_axis y, const curve_room *room,
                        const dmg_chart_mark *marks, uint32_t mark_count)
{
    dmg_chart chart = {.description = description,
                       .x = x,
                       .y = y,
                       .series = room->series,
                       .series_count = room->count,
                       .marks = marks,
                       .mark_count = mark_count};
    dmg_chart_fit(&chart);
    if (y.unit == DMG_AXIS_SHARE) {
        chart.y.most = 1;
    }
    dmg_chart_write(to, &chart);
}

/* ---- latencies ---- */

static const dmg_compare_point *find_point(const dmg_compare_configuration *configuration, const char *operation)
{
    const dmg_compare_points *points = &configuration->sweeps[DMG_SWEEP_LATENCY];
    for (uint32_t i = 0; i < points->count; i++) {
        if (strcmp(points->points[i].operation, operation) == 0) {
            return &points->points[i];
        }
    }
    return NULL;
}

static void write_distribution(FILE *to, const dmg_compare *compare, const char *operation, curve_room *room)
{
    char title[64];
    snprintf(title, sizeof title, "Latency of a lone %s", operation);
    room->count = 0;
    dmg_figure_begin(to, title);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        const dmg_compare_point *point = find_point(&compare->configurations[i], operation);
        if (!point) {
            continue;
        }
        add_curve(room, i, DMG_SERIES_CURVE);
        snprintf(room->names[room->count - 1], NAME_BYTES, "%.60s", compare->configurations[i].name);
        for (uint32_t q = 0; q < point->quantile_count; q++) {
            add_value(room, point->quantiles_ns[q] * NANO, point->parts[q]);
        }
        char half[DMG_AXIS_TEXT_BYTES];
        char most[DMG_AXIS_TEXT_BYTES];
        dmg_axis_text(DMG_AXIS_SECONDS, point->median_ns * NANO, half);
        dmg_axis_text(DMG_AXIS_SECONDS, point->p999_ns * NANO, most);
        dmg_markup_print(to, "%s %s: half within %s, 99.9 %% within %s", room->count == 1 ? "" : ";",
                         compare->configurations[i].name, half, most);
    }
    fputs(". A profile has one latency: the slope is this machine.", to);
    dmg_figure_chart(to);
    write_chart(to, title, (dmg_axis){.title = "latency", .unit = DMG_AXIS_SECONDS, .is_log = true},
                (dmg_axis){.title = "share of operations within", .unit = DMG_AXIS_SHARE}, room, NULL, 0);
    dmg_figure_end(to);
}

static void write_latency_table(FILE *to, const dmg_compare *compare)
{
    fputs("<div class=\"wide\"><table><tr><th>operation</th><th class=\"text\">over</th><th>p50 µs</th><th>p99 "
          "µs</th><th>p99.9 µs</th></tr>\n",
          to);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        const dmg_compare_points *points = &compare->configurations[i].sweeps[DMG_SWEEP_LATENCY];
        for (uint32_t p = 0; p < points->count; p++) {
            const dmg_compare_point *point = &points->points[p];
            fprintf(to, "<tr><td>%s, %" PRIu64 " B</td><td class=\"text\"><span class=\"c%" PRIu32 "\">",
                    point->operation, point->bytes, i);
            dmg_markup_text(to, compare->configurations[i].name);
            fprintf(to, "</span></td><td>%.3g</td><td>%.3g</td><td>%.3g</td></tr>\n", point->median_ns / 1e3,
                    point->p99_ns / 1e3, point->p999_ns / 1e3);
        }
    }
    fputs("</table></div>\n", to);
}

/* ---- load ---- */

static const dmg_compare_point *best_of(const dmg_compare_points *points)
{
    const dmg_compare_point *best = NULL;
    for (uint32_t i = 0; i < points->count; i++) {
        best = !best || points->points[i].mops > best->mops ? &points->points[i] : best;
    }
    return best;
}

/** One curve for each number of threads, in the order of depths. */
static void write_threads(FILE *to, const dmg_compare *compare, curve_room *room)
{
    static const dmg_series_shape shapes[] = {DMG_SERIES_DASHED, DMG_SERIES_CURVE, DMG_SERIES_DOTTED, DMG_SERIES_PLAIN};
    room->count = 0;
    dmg_figure_begin(to, "Throughput by threads and operations in flight");
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        const dmg_compare_points *points = &compare->configurations[i].sweeps[DMG_SWEEP_LOAD];
        const dmg_compare_point *best = best_of(points);
        uint32_t shape = 0;
        for (uint32_t threads = 1; threads <= 8; threads *= 2) {
            bool has_any = false;
            for (uint32_t p = 0; p < points->count; p++) {
                if (points->points[p].threads != threads) {
                    continue;
                }
                if (!has_any) {
                    add_curve(room, i, shapes[shape]);
                    shape = shape + 1 < sizeof shapes / sizeof shapes[0] ? shape + 1 : shape;
                    snprintf(room->names[room->count - 1], NAME_BYTES, "%.40s, %" PRIu32 "t",
                             compare->configurations[i].name, threads);
                    has_any = true;
                }
                add_value(room, points->points[p].depth, points->points[p].mops);
            }
        }
        if (best) {
            dmg_markup_print(to, "%s %s reaches %.3g Mops (%" PRIu32 " thread%s, %" PRIu32 " in flight each)",
                             i == 0 ? "" : ",", compare->configurations[i].name, best->mops, best->threads,
                             best->threads == 1 ? "" : "s", best->depth);
        }
    }
    fputs(": where a curve bends, a limit of the link or of this machine begins.", to);
    dmg_figure_chart(to);
    write_chart(
        to, "reads a second by operations in flight",
        (dmg_axis){.title = "64-byte reads in flight, a thread (t: threads)", .unit = DMG_AXIS_BYTES, .is_log = true},
        (dmg_axis){.title = "Mops", .is_log = true}, room, NULL, 0);
    dmg_figure_end(to);
}

static void write_loaded_latency(FILE *to, const dmg_compare *compare, curve_room *room)
{
    room->count = 0;
    dmg_figure_begin(to, "Latency under load");
    fputs(" One thread with 1 to 64 reads in flight: to the right there is more throughput, and above the knee more in "
          "flight only waits longer.",
          to);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        const dmg_compare_points *points = &compare->configurations[i].sweeps[DMG_SWEEP_LOAD];
        for (int is_tail = 0; is_tail < 2; is_tail++) {
            add_curve(room, i, is_tail ? DMG_SERIES_DASHED : DMG_SERIES_CURVE);
            snprintf(room->names[room->count - 1], NAME_BYTES, "%.40s %s", compare->configurations[i].name,
                     is_tail ? "p99" : "p50");
            for (uint32_t p = 0; p < points->count; p++) {
                if (points->points[p].threads == 1) {
                    add_value(room, points->points[p].mops,
                              (is_tail ? points->points[p].p99_ns : points->points[p].median_ns) * NANO);
                }
            }
        }
    }
    dmg_figure_chart(to);
    write_chart(to, "latency against throughput", (dmg_axis){.title = "Mops of 64-byte reads", .is_log = true},
                (dmg_axis){.title = "latency", .unit = DMG_AXIS_SECONDS, .is_log = true}, room, NULL, 0);
    dmg_figure_end(to);
}

/* ---- sizes ---- */

/** Where the best rate and the best bandwidth meet: smaller accesses are bound by operations, larger ones by bytes. */
static double crossover(const dmg_compare_points *points)
{
    double mops = 0;
    double gbs = 0;
    for (uint32_t i = 0; i < points->count; i++) {
        mops = fmax(mops, points->points[i].mops);
        gbs = fmax(gbs, points->points[i].gbs);
    }
    return mops > 0 ? gbs * 1e3 / mops : 0;
}

static void write_by_size(FILE *to, const dmg_compare *compare, bool is_bytes, curve_room *room)
{
    dmg_chart_mark marks[DMG_COMPARE_CONFIGURATIONS_MAX];
    char texts[DMG_COMPARE_CONFIGURATIONS_MAX][DMG_AXIS_TEXT_BYTES];
    uint32_t mark_count = 0;
    room->count = 0;
    dmg_figure_begin(to, is_bytes ? "Bandwidth by access size" : "Operations a second by access size");
    fputs(" One thread, 16 reads in flight.", to);
    for (uint32_t i = 0; i < compare->configuration_count; i++) {
        const dmg_compare_points *points = &compare->configurations[i].sweeps[DMG_SWEEP_SIZE];
        add_curve(room, i, DMG_SERIES_CURVE);
        snprintf(room->names[room->count - 1], NAME_BYTES, "%.60s", compare->configurations[i].name);
        for (uint32_t p = 0; p < points->count; p++) {
            add_value(room, (double)points->points[p].bytes, is_bytes ? points->points[p].gbs : points->points[p].mops);
        }
        double bytes = crossover(points);
        if (bytes > 0) {
            dmg_axis_text(DMG_AXIS_BYTES, bytes, texts[mark_count]);
            marks[mark_count] = (dmg_chart_mark){bytes, (int)i, texts[mark_count]};
            mark_count++;
            dmg_markup_print(to, " %s is bound by operations below about %s, by bytes above.",
                             compare->configurations[i].name, dmg_text_bytes((uint64_t)bytes).text);
        }
    }
    dmg_figure_chart(to);
    write_chart(to, is_bytes ? "bandwidth by access size" : "operations a second by access size",
                (dmg_axis){.title = "bytes of a read (marked: the crossover)", .unit = DMG_AXIS_BYTES, .is_log = true},
                (dmg_axis){.title = is_bytes ? "GB/s" : "Mops", .is_log = true}, room, marks, mark_count);
    dmg_figure_end(to);
}

void dmg_compare_write_micro_figures(FILE *to, const dmg_compare *compare)
{
    static const char *const operations[] = {"read", "write", "cas", "message"};
    if (!compare->has_measured) {
        fputs("<h2>What the interconnects do by themselves</h2>\n<p>", to);
        dmg_markup_print(to, "Not measured: %s.", compare->trouble[0] ? compare->trouble : "--runs-only was given");
        fputs("</p>\n", to);
        return;
    }
    static curve_room room; /* one page is written at a time */
    fputs("<h2>What the interconnects do by themselves</h2>\n<div class=\"figures\">\n", to);
    write_loaded_latency(to, compare, &room);
    write_threads(to, compare, &room);
    write_by_size(to, compare, false, &room);
    write_by_size(to, compare, true, &room);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        write_distribution(to, compare, operations[i], &room);
    }
    fputs("</div>\n", to);
    write_latency_table(to, compare);
}
