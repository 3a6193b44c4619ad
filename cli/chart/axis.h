/**
 * @file axis.h
 * One axis of a chart: which part of the numbers it shows, where a number lies on it, and where it has ticks.
 */
#ifndef DMG_CLI_CHART_AXIS_H
#define DMG_CLI_CHART_AXIS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dmg_axis_unit {
    DMG_AXIS_PLAIN,   /**< "0.5", "20", "3k" */
    DMG_AXIS_BYTES,   /**< "512", "4K"; ticks are powers of two */
    DMG_AXIS_SECONDS, /**< "2 µs", "150 ms" */
    DMG_AXIS_SHARE,   /**< 0 to 1, as per cent */
    DMG_AXIS_FACTOR   /**< "÷ 2", "× 4"; ticks are powers of two */
} dmg_axis_unit;

typedef struct dmg_axis {
    const char *title; /**< with the unit, where the ticks do not have it */
    dmg_axis_unit unit;
    bool is_log;
    double least, most; /**< least < most; above 0 on a logarithmic axis */
} dmg_axis;

#define DMG_AXIS_TICKS_MAX  12
#define DMG_AXIS_TEXT_BYTES 24

typedef struct dmg_tick {
    double value;
    int rank; /**< 0: of the rounder numbers, whose text is to stay where there is no room for all; else 1 */
    char text[DMG_AXIS_TEXT_BYTES];
} dmg_tick;

/**
 * Have the axis show all values, and a little more: a linear one from 0 on, a logarithmic one from a round number to a
 * round number. Values that are not finite, or not above 0 on a logarithmic axis, do not count; with none left the axis
 * shows 1 to 10.
 */
void dmg_axis_fit(dmg_axis *axis, const double *values, uint32_t count);
/** Where a value lies: 0 at the least, 1 at the most, and no further. */
double dmg_axis_place(const dmg_axis *axis, double value);
/** The ticks, ascending; returns how many. */
uint32_t dmg_axis_ticks(const dmg_axis *axis, dmg_tick ticks[DMG_AXIS_TICKS_MAX]);
/** A value as a tick of this axis would say it, with up to three digits. */
void dmg_axis_text(dmg_axis_unit unit, double value, char text[DMG_AXIS_TEXT_BYTES]);

#endif
