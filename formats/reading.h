/**
 * @file reading.h
 * What can be asked of the reading of a file (formats, directions, weights, what is dropped), and what is said about it
 * afterwards.
 */
#ifndef DMG_FORMATS_READING_H
#define DMG_FORMATS_READING_H

#include "formats/binary_form.h"

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

#endif
