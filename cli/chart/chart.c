#include "cli/chart/chart.h"

#include "cli/chart/markup.h"

#include <math.h>
#include <string.h>

#define WIDTH        400.0
#define HEIGHT       250.0
#define LEFT         52.0
#define TOP          26.0
#define BOTTOM       40.0
#define RIGHT_LEAST  14.0
#define LETTER_WIDTH 7.3
/** Of the labels of ticks and values, which are mostly digits; and what is to be free between two. */
#define TICK_LETTER_WIDTH 6.8
#define TICK_GAP          5.0
#define NAME_HEIGHT       13.5

/** The rectangle that values are drawn in. */
typedef struct chart_frame {
    double left, right, top, bottom;
} chart_frame;

static double x_of(const dmg_chart *chart, const chart_frame *frame, double value)
{
    return frame->left + dmg_axis_place(&chart->x, value) * (frame->right - frame->left);
}

static double y_of(const dmg_chart *chart, const chart_frame *frame, double value)
{
    return frame->bottom - dmg_axis_place(&chart->y, value) * (frame->bottom - frame->top);
}

/** About how wide a text is drawn: it has as many letters as characters, whatever their bytes. */
static double text_width(const char *text, double letter_width)
{
    double width = 0;
    for (const char *at = text; *at; at++) {
        width += ((unsigned char)*at & 0xc0) != 0x80 ? letter_width : 0;
    }
    return width;
}

static const char *colour_class(int colour)
{
    static const char *const classes[DMG_CHART_COLOURS] = {"c0", "c1", "c2", "c3", "c4", "c5"};
    return colour >= 0 ? classes[colour % DMG_CHART_COLOURS] : "ink";
}

static bool is_drawn(const dmg_axis *axis, double value)
{
    return isfinite(value) && (value > 0 || !axis->is_log);
}

static bool has_point(const dmg_chart *chart, const dmg_series *series, uint32_t i)
{
    return is_drawn(&chart->x, series->x[i]) && is_drawn(&chart->y, series->y[i]);
}

static uint32_t drawn_series(const dmg_chart *chart)
{
    return chart->series_count < DMG_CHART_SERIES_MAX ? chart->series_count : DMG_CHART_SERIES_MAX;
}

void dmg_chart_fit(dmg_chart *chart)
{
    /* The ends of each series suffice to fit all of them. */
    double ends[2][2 * DMG_CHART_SERIES_MAX];
    uint32_t count = 0;
    for (uint32_t s = 0; s < drawn_series(chart); s++) {
        const dmg_series *series = &chart->series[s];
        double x[2] = {INFINITY, -INFINITY};
        double y[2] = {INFINITY, -INFINITY};
        for (uint32_t i = 0; i < series->count; i++) {
            if (has_point(chart, series, i)) {
                x[0] = fmin(x[0], series->x[i]);
                x[1] = fmax(x[1], series->x[i]);
                y[0] = fmin(y[0], series->y[i]);
                y[1] = fmax(y[1], series->y[i]);
            }
        }
        for (int end = 0; end < 2; end++) {
            ends[0][count] = x[end];
            ends[1][count++] = y[end];
        }
    }
    dmg_axis_fit(&chart->x, ends[0], count);
    dmg_axis_fit(&chart->y, ends[1], count);
}

/* ---- axes ---- */

/** Whether the labels of a rank and above, of those every `stride`th, keep apart. */
static bool do_labels_fit(const dmg_chart *chart, const chart_frame *frame, const dmg_tick *ticks, uint32_t count,
                          int rank, uint32_t stride)
{
    double end = -INFINITY;
    uint32_t index = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (ticks[i].rank > rank || index++ % stride != 0) {
            continue;
        }
        double half = text_width(ticks[i].text, TICK_LETTER_WIDTH) / 2;
        double x = x_of(chart, frame, ticks[i].value);
        if (x - half < end) {
            return false;
        }
        end = x + half + TICK_GAP;
    }
    return true;
}

/** All ticks are drawn, and of their labels so many that none touches another: first the round numbers go on alone,
 * then every second of those, and so on. */
static void write_x_ticks(FILE *to, const dmg_chart *chart, const chart_frame *frame)
{
    dmg_tick ticks[DMG_AXIS_TICKS_MAX];
    uint32_t count = dmg_axis_ticks(&chart->x, ticks);
    int rank = 1;
    uint32_t stride = 1;
    while (stride < count && !do_labels_fit(chart, frame, ticks, count, rank, stride)) {
        stride += rank == 0;
        rank = 0;
    }
    uint32_t index = 0;
    for (uint32_t i = 0; i < count; i++) {
        double x = x_of(chart, frame, ticks[i].value);
        fprintf(to, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", x, x, frame->bottom,
                frame->bottom + 4);
        if (ticks[i].rank <= rank && index++ % stride == 0) {
            fprintf(to, "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", x, frame->bottom + 17);
            dmg_markup_text(to, ticks[i].text);
            fputs("</text>\n", to);
        }
    }
}

static void write_axes(FILE *to, const dmg_chart *chart, const chart_frame *frame)
{
    dmg_tick ticks[DMG_AXIS_TICKS_MAX];
    uint32_t count = dmg_axis_ticks(&chart->y, ticks);
    for (uint32_t i = 0; i < count; i++) {
        double y = y_of(chart, frame, ticks[i].value);
        fprintf(to,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"end\">",
                frame->left, frame->right, y, y, frame->left - 5, y + 4);
        dmg_markup_text(to, ticks[i].text);
        fputs("</text>\n", to);
    }
    write_x_ticks(to, chart, frame);
    fprintf(to, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>\n", frame->left, frame->right,
            frame->bottom, frame->bottom);
    fprintf(to, "<text class=\"strong\" x=\"2\" y=\"11\">");
    dmg_markup_text(to, chart->y.title);
    fprintf(to, "</text>\n<text class=\"strong\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
            (frame->left + frame->right) / 2, HEIGHT - 5);
    dmg_markup_text(to, chart->x.title);
    fputs("</text>\n", to);
}

static void write_marks(FILE *to, const dmg_chart *chart, const chart_frame *frame)
{
    for (uint32_t i = 0; i < chart->mark_count; i++) {
        const dmg_chart_mark *mark = &chart->marks[i];
        double x = x_of(chart, frame, mark->x);
        bool is_left = x > (frame->left + frame->right) / 2;
        fprintf(to,
                "<g class=\"%s\"><line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><text "
                "class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
                colour_class(mark->colour), x, x, frame->top, frame->bottom, is_left ? x - 4 : x + 4,
                frame->bottom - 6 - NAME_HEIGHT * i, is_left ? "end" : "start");
        dmg_markup_text(to, mark->text);
        fputs("</text></g>\n", to);
    }
}

/* ---- series ---- */

static void write_line(FILE *to, const dmg_chart *chart, const chart_frame *frame, const dmg_series *series)
{
    static const char *const classes[] = {"curve", "curve dashed", "curve dotted", "curve", ""};
    fprintf(to, "<polyline class=\"%s\" points=\"", classes[series->shape]);
    for (uint32_t i = 0; i < series->count; i++) {
        if (has_point(chart, series, i)) {
            fprintf(to, "%.1f,%.1f ", x_of(chart, frame, series->x[i]), y_of(chart, frame, series->y[i]));
        }
    }
    fputs("\"/>\n", to);
}

static void write_points(FILE *to, const dmg_chart *chart, const chart_frame *frame, const dmg_series *series)
{
    bool is_ring = series->shape == DMG_SERIES_RINGS;
    for (uint32_t i = 0; i < series->count; i++) {
        if (!has_point(chart, series, i)) {
            continue;
        }
        char x[DMG_AXIS_TEXT_BYTES];
        char y[DMG_AXIS_TEXT_BYTES];
        dmg_axis_text(chart->x.unit, series->x[i], x);
        dmg_axis_text(chart->y.unit, series->y[i], y);
        fprintf(to, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%s\"><title>", is_ring ? "ring" : "dot",
                x_of(chart, frame, series->x[i]), y_of(chart, frame, series->y[i]), is_ring ? "4" : "2.6");
        /* Shown where the pointer rests. */
        dmg_markup_print(to, "%s%s%s at %s", series->name ? series->name : "", series->name ? ": " : "", y, x);
        fputs("</title></circle>\n", to);
    }
}

/* ---- names ---- */

typedef struct name_place {
    const dmg_series *series;
    double x, y;
} name_place;

/** The last value of each series that has a name, from top to bottom. */
static uint32_t find_names(const dmg_chart *chart, const chart_frame *frame, name_place *names)
{
    uint32_t count = 0;
    for (uint32_t s = 0; s < drawn_series(chart); s++) {
        const dmg_series *series = &chart->series[s];
        uint32_t last = series->count;
        while (last > 0 && !has_point(chart, series, last - 1)) {
            last--;
        }
        if (!series->name || last == 0) {
            continue;
        }
        name_place name = {series, x_of(chart, frame, series->x[last - 1]),
                           y_of(chart, frame, series->y[last - 1]) + 4};
        uint32_t at = count++;
        for (; at > 0 && names[at - 1].y > name.y; at--) {
            names[at] = names[at - 1];
        }
        names[at] = name;
    }
    return count;
}

/** Push names apart that would lie on each other, down first, then up from the bottom. */
static void spread_names(name_place *names, uint32_t count, const chart_frame *frame)
{
    for (uint32_t i = 1; i < count; i++) {
        names[i].y = fmax(names[i].y, names[i - 1].y + NAME_HEIGHT);
    }
    double limit = frame->bottom + 4;
    for (uint32_t i = count; i > 0; i--) {
        names[i - 1].y = fmin(names[i - 1].y, limit);
        limit = names[i - 1].y - NAME_HEIGHT;
    }
}

static void write_names(FILE *to, const dmg_chart *chart, const chart_frame *frame)
{
    name_place names[DMG_CHART_SERIES_MAX];
    uint32_t count = find_names(chart, frame, names);
    spread_names(names, count, frame);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(to, "<text class=\"name %s\" x=\"%.1f\" y=\"%.1f\">", colour_class(names[i].series->colour),
                frame->right + 6, names[i].y);
        dmg_markup_text(to, names[i].series->name);
        fputs("</text>\n", to);
    }
}

static double names_width(const dmg_chart *chart)
{
    double longest = 0;
    for (uint32_t s = 0; s < drawn_series(chart); s++) {
        const char *name = chart->series[s].name;
        longest = fmax(longest, name ? text_width(name, LETTER_WIDTH) : 0);
    }
    return fmin(RIGHT_LEAST + longest, WIDTH / 2.5);
}

void dmg_chart_write(FILE *to, const dmg_chart *chart)
{
    const chart_frame frame = {LEFT, WIDTH - names_width(chart), TOP, HEIGHT - BOTTOM};
    fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", WIDTH,
            HEIGHT);
    dmg_markup_text(to, chart->description);
    fputs("\">\n", to);
    write_axes(to, chart, &frame);
    write_marks(to, chart, &frame);
    for (uint32_t s = 0; s < drawn_series(chart); s++) {
        const dmg_series *series = &chart->series[s];
        fprintf(to, "<g class=\"%s\">\n", colour_class(series->colour));
        if (series->shape != DMG_SERIES_RINGS) {
            write_line(to, chart, &frame, series);
        }
        if (series->shape != DMG_SERIES_PLAIN) {
            write_points(to, chart, &frame, series);
        }
        fputs("</g>\n", to);
    }
    write_names(to, chart, &frame);
    fputs("</svg>\n", to);
}

/* ---- bars ---- */

#define BAR_HEIGHT     14.0
#define BAR_STEP       18.0
#define GROUP_STEP     21.0
#define BAR_LEFT       112.0
#define BAR_VALUE_GAP  5.0
#define BAR_NAME_MAX   15 /* letters */
#define BAR_TEXT_BYTES 64

static double bar_total(const dmg_bar *bar)
{
    double total = 0;
    for (int part = 0; part < DMG_BAR_PARTS; part++) {
        total += bar->parts[part];
    }
    return total;
}

/** What stands behind a bar. */
static void bar_text(const dmg_bar *bar, dmg_axis_unit unit, char text[BAR_TEXT_BYTES])
{
    char value[DMG_AXIS_TEXT_BYTES];
    dmg_axis_text(unit, bar_total(bar), value);
    snprintf(text, BAR_TEXT_BYTES, "%s%s%s", value, bar->note ? ", " : "", bar->note ? bar->note : "");
}

/** The room that the values of all bars need. */
static double bar_values_width(const dmg_bar *bars, uint32_t count, dmg_axis_unit unit)
{
    double widest = 0;
    for (uint32_t i = 0; i < count; i++) {
        char text[BAR_TEXT_BYTES];
        bar_text(&bars[i], unit, text);
        widest = fmax(widest, text_width(text, TICK_LETTER_WIDTH));
    }
    return widest + 2 * BAR_VALUE_GAP;
}

/** What bars are measured by, from one up to the next that has a scale of its own: the longest fills the width. */
static double bars_most(const dmg_bar *bars, uint32_t count)
{
    double most = 0;
    for (uint32_t i = 0; i < count && (i == 0 || !bars[i].begins_scale); i++) {
        most = fmax(most, fmax(bar_total(&bars[i]), bars[i].most));
    }
    return most > 0 ? most : 1;
}

static void write_bar(FILE *to, const dmg_bar *bar, dmg_axis_unit unit, double y, double scale)
{
    double x = BAR_LEFT;
    fprintf(to, "<g class=\"%s\">\n<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">",
            colour_class(bar->colour), BAR_LEFT - 6, y + BAR_HEIGHT - 3);
    dmg_markup_print(to, "%.*s", BAR_NAME_MAX, bar->name);
    fputs("</text>\n", to);
    for (int part = 0; part < DMG_BAR_PARTS; part++) {
        double width = bar->parts[part] * scale;
        if (width > 0) {
            fprintf(to, "<rect class=\"p%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\"/>\n", part, x, y,
                    width, BAR_HEIGHT);
        }
        x += width;
    }
    fputs("</g>\n", to);
    double end = x;
    if (bar->most > 0) {
        double low = BAR_LEFT + bar->least * scale;
        double high = BAR_LEFT + bar->most * scale;
        double middle = y + BAR_HEIGHT / 2;
        fprintf(to, "<path class=\"whisker\" d=\"M%.1f %.1fv6M%.1f %.1fH%.1fM%.1f %.1fv6\"/>\n", low, middle - 3, low,
                middle, high, high, middle - 3);
        end = fmax(end, high);
    }
    char text[BAR_TEXT_BYTES];
    bar_text(bar, unit, text);
    fprintf(to, "<text class=\"strong\" x=\"%.1f\" y=\"%.1f\">", end + BAR_VALUE_GAP, y + BAR_HEIGHT - 3);
    dmg_markup_text(to, text);
    fputs("</text>\n", to);
}

void dmg_bars_write(FILE *to, const char *description, dmg_axis_unit unit, const dmg_bar *bars, uint32_t count)
{
    double height = 4;
    for (uint32_t i = 0; i < count; i++) {
        height += BAR_STEP + (bars[i].group ? GROUP_STEP : 0);
    }
    double scale = 0;
    double values = bar_values_width(bars, count, unit);
    fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"", WIDTH,
            height);
    dmg_markup_text(to, description);
    fputs("\">\n", to);
    double y = 2;
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || bars[i].begins_scale) {
            scale = (WIDTH - BAR_LEFT - values) / bars_most(bars + i, count - i);
        }
        if (bars[i].group) {
            fprintf(to, "<text class=\"strong\" x=\"2\" y=\"%.1f\">", y + 12);
            dmg_markup_text(to, bars[i].group);
            fputs("</text>\n", to);
            y += GROUP_STEP;
        }
        write_bar(to, &bars[i], unit, y, scale);
        y += BAR_STEP;
    }
    fputs("</svg>\n", to);
}
