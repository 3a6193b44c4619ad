#include "cli/chart/axis.h"

#include <math.h>
#include <stdio.h>

#define LINEAR_STEPS 5
#define HEADROOM     1.04
#define KIBI         1024.0

static bool counts_in_twos(const dmg_axis *axis)
{
    return axis->unit == DMG_AXIS_BYTES || axis->unit == DMG_AXIS_FACTOR;
}

/* ---- texts ---- */

/** A number and its unit, with thousands: 1500 and units "", "k", "M" give "1.5k". */
static void scaled_text(double value, double base, const char *const *units, int count, char *text)
{
    int unit = 0;
    while (unit + 1 < count && fabs(value) >= base * (1 - 1e-9)) {
        value /= base;
        unit++;
    }
    snprintf(text, DMG_AXIS_TEXT_BYTES, "%.3g%s", value, units[unit]);
}

void dmg_axis_text(dmg_axis_unit unit, double value, char text[DMG_AXIS_TEXT_BYTES])
{
    static const char *const thousands[] = {"", "k", "M", "G", "T"};
    static const char *const bytes[] = {"", "K", "M", "G", "T"};
    static const char *const times[] = {" ns", " µs", " ms", " s"};
    switch (unit) {
    case DMG_AXIS_BYTES:
        scaled_text(value, KIBI, bytes, 5, text);
        break;
    case DMG_AXIS_SECONDS:
        scaled_text(value * 1e9, 1000, times, 4, text);
        break;
    case DMG_AXIS_SHARE:
        snprintf(text, DMG_AXIS_TEXT_BYTES, "%.3g %%", 100 * value);
        break;
    case DMG_AXIS_FACTOR:
        snprintf(text, DMG_AXIS_TEXT_BYTES, value < 1 ? "÷ %.3g" : "× %.3g", value < 1 ? 1 / value : value);
        break;
    default:
        scaled_text(value, 1000, thousands, 5, text);
        break;
    }
}

/* ---- range ---- */

/** The round number at or below (or above) a value: 1, 2 or 5 times a power of ten. */
static double round_to(double value, bool is_up)
{
    static const double steps[] = {1, 2, 5, 10};
    double decade = pow(10, floor(log10(value)));
    double best = is_up ? 10 * decade : decade;
    for (int i = 0; i < 4; i++) {
        double candidate = steps[i] * decade;
        if (is_up && candidate >= value * (1 - 1e-9) && candidate < best) {
            best = candidate;
        } else if (!is_up && candidate <= value * (1 + 1e-9)) {
            best = candidate;
        }
    }
    return best;
}

void dmg_axis_fit(dmg_axis *axis, const double *values, uint32_t count)
{
    double least = INFINITY;
    double most = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        if (isfinite(values[i]) && (values[i] > 0 || !axis->is_log)) {
            least = fmin(least, values[i]);
            most = fmax(most, values[i]);
        }
    }
    if (!isfinite(least) || (!axis->is_log && most <= 0)) {
        least = 1;
        most = 10;
    }
    if (!axis->is_log) {
        axis->least = 0;
        axis->most = most * HEADROOM;
        return;
    }
    if (counts_in_twos(axis)) {
        axis->least = exp2(floor(log2(least) + 1e-9));
        axis->most = exp2(ceil(log2(most) - 1e-9));
    } else {
        axis->least = round_to(least, false);
        axis->most = round_to(most, true);
    }
    if (axis->most <= axis->least) {
        axis->most = 2 * axis->least;
    }
}

double dmg_axis_place(const dmg_axis *axis, double value)
{
    double place;
    if (axis->is_log) {
        place = value > 0 ? log(value / axis->least) / log(axis->most / axis->least) : 0;
    } else {
        place = (value - axis->least) / (axis->most - axis->least);
    }
    return fmin(fmax(place, 0), 1);
}

/* ---- ticks ---- */

static void add_tick(const dmg_axis *axis, double value, int rank, dmg_tick *ticks, uint32_t *count)
{
    bool is_shown = value >= axis->least * (1 - 1e-9) && value <= axis->most * (1 + 1e-9);
    if (is_shown && *count < DMG_AXIS_TICKS_MAX) {
        ticks[*count].value = value;
        ticks[*count].rank = rank;
        dmg_axis_text(axis->unit, value, ticks[(*count)++].text);
    }
}

static uint32_t linear_ticks(const dmg_axis *axis, dmg_tick *ticks)
{
    double step = round_to((axis->most - axis->least) / LINEAR_STEPS, true);
    uint32_t count = 0;
    for (double value = ceil(axis->least / step) * step; value <= axis->most * (1 + 1e-9) && count < DMG_AXIS_TICKS_MAX;
         value += step) {
        add_tick(axis, fabs(value) < step * 1e-6 ? 0 : value, 0, ticks, &count);
    }
    return count;
}

static uint32_t binary_ticks(const dmg_axis *axis, dmg_tick *ticks)
{
    int low = (int)ceil(log2(axis->least) - 1e-9);
    int high = (int)floor(log2(axis->most) + 1e-9);
    int step = 1 + (high - low) / 8;
    uint32_t count = 0;
    for (int power = low; power <= high; power++) {
        if ((power - (axis->unit == DMG_AXIS_FACTOR ? 0 : low)) % step == 0) {
            add_tick(axis, exp2(power), 0, ticks, &count);
        }
    }
    return count;
}

static uint32_t decimal_ticks(const dmg_axis *axis, dmg_tick *ticks)
{
    static const double steps[] = {1, 2, 5};
    double decades = log10(axis->most / axis->least);
    int between = decades < 2.5 ? 3 : 1;
    int low = (int)floor(log10(axis->least) + 1e-9);
    int high = (int)ceil(log10(axis->most) - 1e-9);
    int stride = 1 + (high - low) / DMG_AXIS_TICKS_MAX;
    uint32_t count = 0;
    for (int power = low; power <= high; power += stride) {
        for (int i = 0; i < between; i++) {
            add_tick(axis, steps[i] * pow(10, power), i == 0 ? 0 : 1, ticks, &count);
        }
    }
    return count;
}

uint32_t dmg_axis_ticks(const dmg_axis *axis, dmg_tick ticks[DMG_AXIS_TICKS_MAX])
{
    return !axis->is_log          ? linear_ticks(axis, ticks)
           : counts_in_twos(axis) ? binary_ticks(axis, ticks)
                                  : decimal_ticks(axis, ticks);
}
