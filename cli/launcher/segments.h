/**
 * @file segments.h
 * The memory nodes' segments between the options and the nodes: what is asked for, on its way there; what was got, on
 * its way back, for reports; and waiting until they are made.
 */
#ifndef DMG_CLI_LAUNCHER_SEGMENTS_H
#define DMG_CLI_LAUNCHER_SEGMENTS_H

#include "cli/base/progress.h"
#include "cli/launcher/launcher.h"
#include "cli/options/options.h"
#include "transport/transport.h"

#include <jansson.h>
#include <stdio.h>

/** The options that dmg_segment_of_settings reads, but for --allow-fallback, for a list of options. */
#define DMG_SEGMENT_OPTIONS DMG_OPTION_NUMA_NODE, DMG_OPTION_PAGE_SIZE, DMG_OPTION_PREFAULT

/* ---- asking ---- */

/** A segment of this size, as the settings want it. */
dmg_segment_options dmg_segment_of_settings(const dmg_settings *settings, uint64_t bytes);
/** Put it into a memory node's setup, and take it from there. DMG_ERR_PROTOCOL for what makes no sense. */
void dmg_segment_put(json_t *setup, const dmg_segment_options *segment);
dmg_status dmg_segment_take(json_t *setup, dmg_segment_options *segment);

/**
 * Before the nodes start: whether this machine has what all of their segments take together.
 *
 * @param bytes  of each of the `count` segments, in the order of the nodes
 */
dmg_status dmg_segments_check_room(const dmg_settings *settings, const uint64_t *bytes, uint32_t count);

/**
 * Wait until `is_done`, which says that all memory nodes have made their segments. While they populate them the bar
 * shows how far they are. They get a minute and 16 s a GiB, and show signs of life all the time, or DMG_ERR_PEER names
 * the one that failed.
 *
 * @param bytes  of all segments
 * @param bar    may be NULL
 */
dmg_status dmg_segments_wait(dmg_launcher *launcher, uint64_t bytes, dmg_progress_bar *bar,
                             bool (*is_done)(void *context), void *context);

/* ---- what was got ---- */

json_t *dmg_placement_json(const dmg_placement *placement);
/** DMG_ERR_PROTOCOL. */
dmg_status dmg_placement_from_json(const json_t *object, dmg_placement *placement);
/** Where the settings say what the nodes have not got, they say it no more. */
void dmg_segments_correct_settings(dmg_settings *settings, const dmg_placement *placement);
/** Whether the settings ask for anything that a report should come back to. */
bool dmg_segments_are_special(const dmg_settings *settings);
/** "pages of 2.0 MiB, on NUMA node 1, all touched". */
void dmg_placement_print(FILE *to, const dmg_placement *placement);

#endif
