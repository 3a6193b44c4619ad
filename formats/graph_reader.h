/**
 * @file graph_reader.h
 * Reading a graph from any file that dmgraph understands, and what the reader has to say about it.
 */
#ifndef DMG_FORMATS_GRAPH_READER_H
#define DMG_FORMATS_GRAPH_READER_H

#include "formats/binary_form.h"
#include "formats/graph.h"

typedef enum dmg_format {
    DMG_FORMAT_AUTO, /**< by content: first bytes of the binary form, Matrix Market's banner, else an edge list, unless
                        content, name or neighbours say that it is of another format (foreign_format.h) */
    DMG_FORMAT_EDGE_LIST,
    DMG_FORMAT_MATRIX_MARKET,
    DMG_FORMAT_BINARY
} dmg_format;

typedef enum dmg_direction_choice {
    DMG_DIRECTION_BY_FILE, /**< Matrix Market and the binary form by their header; edge lists are directed */
    DMG_DIRECTION_DIRECTED,
    DMG_DIRECTION_UNDIRECTED
} dmg_direction_choice;

typedef enum dmg_weight_choice {
    DMG_WEIGHTS_BY_FILE, /**< weighted when the first data line has a third column */
    DMG_WEIGHTS_IGNORED  /**< they are checked, and left out of the graph; of a binary form they are not looked at */
} dmg_weight_choice;

/** Called now and then in long reads: how much of the input (compressed bytes) was read. */
typedef void (*dmg_progress)(void *context, const char *step, uint64_t done, uint64_t total);

typedef struct dmg_read_options {
    dmg_format format;
    dmg_direction_choice direction;
    dmg_weight_choice weights;
    bool drop_repeats; /**< of repeated arcs keep one, with the smallest weight */
    bool drop_loops;
    bool with_reverse;     /**< make `in` for a directed graph */
    dmg_progress progress; /**< may be NULL */
    void *progress_context;
    /** Where a binary form is mapped, for a program that takes SIGBUS (binary_form.h); NULL: it is copied. */
    dmg_mapped_range *mapped_range;
} dmg_read_options;

typedef struct dmg_read_report {
    dmg_format format;
    char compression[8];    /**< "", "gzip", "zstd", "xz" */
    bool has_weights;       /**< the file has, whether they are in the graph or not */
    uint64_t file_bytes;    /**< as it lies on the disk, or came through a pipe */
    uint64_t lines;         /**< of text formats, all of them */
    uint64_t lines_skipped; /**< comments and blank lines */
    uint64_t edge_lines;
    uint64_t loops_dropped;   /**< arcs */
    uint64_t repeats_dropped; /**< arcs */
    double weight_rounding;   /**< largest relative error of keeping a weight as a 32-bit float; 0: all come back */
    double seconds;
} dmg_read_report;

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
