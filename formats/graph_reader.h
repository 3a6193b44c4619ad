/**
 * @file graph_reader.h
 * Reading a graph from any file that dmgraph understands.
 */
#ifndef DMG_FORMATS_GRAPH_READER_H
#define DMG_FORMATS_GRAPH_READER_H

#include "formats/reading.h"

/**
 * Read a graph. `options` may be NULL (all defaults). On success the caller closes `graph` with dmg_graph_close. Every
 * malformed input is DMG_ERR_FORMAT with "FILE:LINE: what was found: what was expected"; DMG_ERR_LIMIT for more than
 * DMG_VERTICES_MAX vertices; DMG_ERR_IO when the file cannot be read. Nothing is dropped silently. `report` may be
 * NULL. Thread-safe.
 *
 * Costs one pass over the text, a sort of the ids unless they are dense, and a counting sort of the arcs.
 */
dmg_status dmg_graph_read(const char *path, const dmg_read_options *options, dmg_graph *graph, dmg_read_report *report);

/**
 * The same from an open file, such as the standard input, from where it stands. It is borrowed; `name` is for messages.
 * A file is never opened a second time, so that what can be read once is read.
 *
 * @param[out] form  where the graph is a mapping of the binary form: a descriptor of that form, which the caller closes
 *                   (of a pipe, one of a copy of it in memory); else -1. NULL: not wanted
 */
dmg_status dmg_graph_read_file(int file, const char *name, const dmg_read_options *options, dmg_graph *graph,
                               dmg_read_report *report, int *form);

/** Open a graph's file for dmg_graph_read_file. DMG_ERR_IO. */
dmg_status dmg_graph_open_file(const char *path, int *file);

/** "edge list", "Matrix Market", "dmgraph binary". */
const char *dmg_format_name(dmg_format format);

#endif
