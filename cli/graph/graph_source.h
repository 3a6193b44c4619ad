/**
 * @file graph_source.h
 * The graph of a run: read from any file, then kept in one place in the binary form, which all processes map.
 */
#ifndef DMG_CLI_GRAPH_GRAPH_SOURCE_H
#define DMG_CLI_GRAPH_GRAPH_SOURCE_H

#include "algorithms/algorithm.h"
#include "cli/options/options.h"
#include "formats/graph_reader.h"

typedef struct dmg_graph_source {
    dmg_graph graph;
    dmg_read_report report;
    bool ignores_weights; /**< the graph may have had weights */
    int file;             /**< the binary form, for other processes to map; -1: none yet. After reading: the file
                             itself where it is that form and was used as it is */
} dmg_graph_source;

/** What the settings say about reading. `DMG_ERR_ARGUMENT` for --directed with --undirected. */
dmg_status dmg_graph_source_options(const dmg_settings *settings, dmg_read_options *options);

/** What messages and summaries call a graph's path: "-" is the standard input. */
const char *dmg_graph_source_name(const char *path);

/**
 * Read a graph; "-" is the standard input. The file is opened once, so that a named pipe will do. With weights ignored,
 * a binary form is not rewritten for that: its weights are there, and left out of `graph`. Close with
 * dmg_graph_source_close.
 */
dmg_status dmg_graph_source_read(const char *path, const dmg_read_options *options, dmg_graph_source *source);
/**
 * Make source->file, when reading did not leave the file itself there: a sealed anonymous one in the binary form.
 * The graph is then a mapping of that file, so that its memory is there once.
 */
dmg_status dmg_graph_source_share(const char *path, dmg_graph_source *source);
/** DMG_ERR_FORMAT when a file that other processes map, too, is shorter now than when it was read: what they made of it
 * is not the graph, or they were ended for it. */
dmg_status dmg_graph_source_check_whole(const char *path, const dmg_graph_source *source);
void dmg_graph_source_close(dmg_graph_source *source);

/** Log a warning when an algorithm leaves out weights that would matter to it; says whether it did. */
bool dmg_graph_source_warn_of_weights(const char *path, bool has_weights, const dmg_algorithm *algorithm,
                                      const char *remedy);

/** What the reader said, and the graph's facts, for --json. */
json_t *dmg_graph_source_json(const char *path, const dmg_graph_source *source);
/** The same for people, a few lines. */
void dmg_graph_source_print(FILE *to, const char *path, const dmg_graph_source *source);

#endif
