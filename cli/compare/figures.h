/**
 * @file figures.h
 * What the figures of a comparison have in common: a frame with a sentence that says what to see.
 */
#ifndef DMG_CLI_COMPARE_FIGURES_H
#define DMG_CLI_COMPARE_FIGURES_H

#include "cli/chart/chart.h"
#include "cli/chart/markup.h"
#include "cli/compare/compare.h"

/** Begin a figure: its title, and the sentence (printf's format). The chart follows, then dmg_figure_end. */
static inline void dmg_figure_begin(FILE *to, const char *title)
{
    fputs("<figure><figcaption><b>", to);
    dmg_markup_text(to, title);
    fputs("</b>", to);
}

static inline void dmg_figure_chart(FILE *to)
{
    fputs("</figcaption>\n", to);
}

static inline void dmg_figure_end(FILE *to)
{
    fputs("</figure>\n", to);
}

/** A row of bytes or operations that a run handled, with those in place. */
static inline uint64_t dmg_accesses(const dmg_counters *counters)
{
    uint64_t accesses = counters->mapped_spans + counters->mapped_atomics;
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        accesses += counters->operations[kind];
    }
    return accesses;
}

static inline uint64_t dmg_access_bytes(const dmg_counters *counters)
{
    uint64_t bytes = counters->mapped_bytes;
    for (int kind = 0; kind < DMG_OPERATION_KINDS; kind++) {
        bytes += counters->bytes[kind];
    }
    return bytes;
}

#endif
