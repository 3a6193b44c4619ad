/**
 * @file rebuild.h
 * A finished graph under other options: another direction, without repeats, loops or weights, with its reverse.
 */
#ifndef DMG_FORMATS_REBUILD_H
#define DMG_FORMATS_REBUILD_H

#include "formats/reading.h"

/** Whether the graph differs from what these options ask for. */
bool dmg_rebuild_is_needed(const dmg_graph *graph, const dmg_read_options *options);

/**
 * Make the graph that the options ask for; `graph` is untouched and must not be `rebuilt`. Fills in what was dropped.
 * Costs what building does.
 */
dmg_status dmg_rebuild(const dmg_graph *graph, const dmg_read_options *options, dmg_graph *rebuilt,
                       dmg_read_report *report);

#endif
