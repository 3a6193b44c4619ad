/**
 * @file chart.h
 * Charts as inline SVG: curves with points, and bars in parts. They take their colours from the page (markup.h), are
 * drawn for a width of 400 and scale with it, and have their names on the curves, without a legend to look up.
 */
#ifndef DMG_CLI_CHART_CHART_H
#define DMG_CLI_CHART_CHART_H

#include "cli/chart/axis.h"

#include <stdio.h>

/** Colours that a page tells apart; -1 is that of text. */
#define DMG_CHART_COLOURS 6

typedef enum dmg_series_shape {
    DMG_SERIES_CURVE,  /**< a line and a dot for each value */
    DMG_SERIES_DASHED, /**< a dashed one */
    DMG_SERIES_DOTTED,
    DMG_SERIES_PLAIN, /**< a line without dots */
    DMG_SERIES_RINGS  /**< no line, a ring for each value */
} dmg_series_shape;

typedef struct dmg_series {
    const char *name; /**< stands at its last value; NULL: no name */
    int colour;       /**< 0 to DMG_CHART_COLOURS - 1, or -1 */
    dmg_series_shape shape;
    const double *x, *y; /**< `count` values each; those that are not finite, or not above 0 on a logarithmic axis, are
                            left out */
    uint32_t count;
} dmg_series;

/** A line across the chart at a value of x. */
typedef struct dmg_chart_mark {
    double x;
    int colour;
    const char *text;
} dmg_chart_mark;

typedef struct dmg_chart {
    const char *description; /**< for who does not see it */
    dmg_axis x, y;
    const dmg_series *series;
    uint32_t series_count;
    const dmg_chart_mark *marks;
    uint32_t mark_count;
} dmg_chart;

#define DMG_CHART_SERIES_MAX 48

/** Have both axes show all series. */
void dmg_chart_fit(dmg_chart *chart);
/** Write an svg element. At most DMG_CHART_SERIES_MAX series are drawn. */
void dmg_chart_write(FILE *to, const dmg_chart *chart);

/* ---- bars ---- */

#define DMG_BAR_PARTS 3

/** A bar in parts, each lighter than the next, with its spread across its end. */
typedef struct dmg_bar {
    const char *group; /**< above the first bar of several; NULL: goes on with the group before */
    const char *name;
    bool begins_scale; /**< this bar and those after it are drawn on a scale of their own, up to the next that does */
    int colour;
    double parts[DMG_BAR_PARTS];
    double least, most; /**< of the whole; 0: not known */
    const char *note;   /**< behind the value; NULL: none */
} dmg_bar;

/** Write horizontal bars from 0 on, as one svg element, with a value behind each. */
void dmg_bars_write(FILE *to, const char *description, dmg_axis_unit unit, const dmg_bar *bars, uint32_t count);

#endif
