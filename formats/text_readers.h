/**
 * @file text_readers.h
 * The parsers of text formats: from a text source, not yet read from, to a graph.
 */
#ifndef DMG_FORMATS_TEXT_READERS_H
#define DMG_FORMATS_TEXT_READERS_H

#include "formats/graph_builder.h"
#include "formats/text_source.h"

/**
 * SOURCE DESTINATION [WEIGHT] a line. With `guard_size_line`, a first line that reads like the size line of a Matrix
 * Market file whose banner was lost is refused.
 */
dmg_status dmg_edge_list_read(dmg_text_source *source, const dmg_read_options *options, bool guard_size_line,
                              dmg_graph *graph, dmg_read_report *report);

/** Matrix Market, coordinate format. */
dmg_status dmg_matrix_market_read(dmg_text_source *source, const dmg_read_options *options, dmg_graph *graph,
                                  dmg_read_report *report);

/** The common end of both: make the graph, fill in the report. The builder is empty afterwards. */
dmg_status dmg_text_reader_finish(const dmg_text_source *source, dmg_graph_builder *builder, uint64_t negative_line,
                                  dmg_graph *graph, dmg_read_report *report);

#endif
