#include "formats/text_readers.h"

#include "core/base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/** One data line. */
typedef struct edge_line {
    uint64_t source;
    uint64_t destination;
    double weight;
    bool has_weight;
} edge_line;

typedef struct edge_list_reader {
    dmg_text_source *text;
    const dmg_read_options *options;
    dmg_graph_builder *builder;
    edge_line first_edge;
    uint64_t first_edge_line; /* 0: none came yet */
    uint64_t edge_lines;
    uint64_t negative_line;
} edge_list_reader;

static inline bool ends_field(char character)
{
    return dmg_is_blank(character) || dmg_is_line_end(character) || character == ',';
}

/** Blanks, and a comma among them. */
static inline const char *skip_separator(const char *at, bool *has_comma)
{
    at = dmg_skip_blanks(at);
    *has_comma = *at == ',';
    return *has_comma ? dmg_skip_blanks(at + 1) : at;
}

static inline bool starts_comment(const char *at)
{
    return *at == '#' || *at == '%' || (*at == '/' && at[1] == '/');
}

static dmg_status bad_id(const edge_list_reader *reader, const char *at, const char *which)
{
    char expected[128];
    snprintf(expected, sizeof expected, "the %s of an edge, an integer from 0 to 2^64 - 1", which);
    return dmg_text_source_integer_error(reader->text, at, expected);
}

/** Parse the third column, if the file has one; `*at` moves to its end. */
static dmg_status parse_weight(const edge_list_reader *reader, const char **at, bool has_comma, edge_line *edge)
{
    bool is_first = reader->first_edge_line == 0;
    char expected[128];
    if (dmg_is_line_end(**at) && !has_comma) {
        edge->has_weight = false;
        if (is_first || !reader->first_edge.has_weight) {
            return DMG_OK;
        }
        snprintf(expected, sizeof expected, "a weight, as in line %" PRIu64, reader->first_edge_line);
        return dmg_text_source_error(reader->text, *at, expected);
    }
    if (!is_first && !reader->first_edge.has_weight) {
        snprintf(expected, sizeof expected, "two columns, as in line %" PRIu64, reader->first_edge_line);
        return dmg_text_source_error(reader->text, *at, expected);
    }
    dmg_parsed_weight weight = dmg_parse_weight(reader->text, *at);
    if (!weight.end) {
        return dmg_text_source_error(reader->text, *at, weight.expected);
    }
    edge->has_weight = true;
    edge->weight = weight.value;
    *at = weight.end;
    const char *rest = dmg_skip_blanks(*at);
    if (!dmg_is_line_end(*rest)) {
        return dmg_text_source_error(reader->text, rest, "the line to end after SOURCE DESTINATION WEIGHT");
    }
    *at = rest;
    return DMG_OK;
}

/** Parse a line that is no comment; `*at` moves from its first field to its end. */
static inline dmg_status parse_edge(const edge_list_reader *reader, const char **at, edge_line *edge)
{
    bool has_comma;
    const char *end = dmg_parse_unsigned(*at, &edge->source);
    if (!end || !ends_field(*end)) {
        return bad_id(reader, *at, "source");
    }
    *at = skip_separator(end, &has_comma);
    end = dmg_parse_unsigned(*at, &edge->destination);
    if (!end || !ends_field(*end)) {
        return bad_id(reader, *at, "destination");
    }
    if (*end == '\n' && reader->first_edge_line != 0 && !reader->first_edge.has_weight) {
        *at = end;
        return DMG_OK;
    }
    *at = skip_separator(end, &has_comma);
    return parse_weight(reader, at, has_comma, edge);
}

static dmg_status create_builder(edge_list_reader *reader)
{
    const dmg_read_options *options = reader->options;
    dmg_builder_options builder_options = {
        .is_directed = options->direction != DMG_DIRECTION_UNDIRECTED,
        .is_weighted = reader->first_edge.has_weight && options->weights != DMG_WEIGHTS_IGNORED,
        .drop_repeats = options->drop_repeats,
        .drop_loops = options->drop_loops,
        .with_reverse = options->with_reverse,
    };
    return dmg_graph_builder_create(&builder_options, &reader->builder);
}

static dmg_status take_edge(edge_list_reader *reader, const edge_line *edge)
{
    dmg_status status = DMG_OK;
    if (reader->first_edge_line == 0) {
        reader->first_edge = *edge;
        reader->first_edge_line = reader->text->line;
        status = create_builder(reader);
        if (status != DMG_OK) {
            return status;
        }
    }
    reader->edge_lines++;
    status = dmg_graph_builder_add(reader->builder, edge->source, edge->destination, edge->weight);
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "%s:%" PRIu64, reader->text->path, reader->text->line);
    }
    if (edge->weight < 0 && reader->negative_line == 0 && reader->options->weights != DMG_WEIGHTS_IGNORED &&
        !(reader->options->drop_loops && edge->source == edge->destination)) {
        reader->negative_line = reader->text->line;
    }
    return DMG_OK;
}

static dmg_status read_block(edge_list_reader *reader, const char *at, const char *end)
{
    dmg_text_source *text = reader->text;
    edge_line edge = {0};
    while (at < end) {
        text->line++;
        at = dmg_skip_blanks(at);
        if (dmg_is_line_end(*at)) {
            text->skipped++;
        } else if (starts_comment(at)) {
            text->skipped++;
            at = dmg_find_line_end(at);
        } else {
            dmg_status status = parse_edge(reader, &at, &edge);
            if (status == DMG_OK) {
                status = take_edge(reader, &edge);
            }
            if (status != DMG_OK) {
                return status;
            }
        }
        at = dmg_skip_line_end(at, end);
    }
    return DMG_OK;
}

static dmg_status read_all(edge_list_reader *reader)
{
    for (;;) {
        const char *begin;
        const char *end;
        dmg_status status = dmg_text_source_next(reader->text, &begin, &end);
        if (status == DMG_OK && begin == end) {
            return reader->builder ? DMG_OK : create_builder(reader);
        }
        if (status == DMG_OK) {
            status = read_block(reader, begin, end);
        }
        if (status != DMG_OK) {
            return status;
        }
    }
}

/** A first line N N M before M edges: as an edge it would be made up, as a size line it needs the banner. */
static dmg_status check_size_line(const edge_list_reader *reader)
{
    const edge_line *first = &reader->first_edge;
    if (reader->edge_lines > 1 && first->has_weight && first->weight == (double)(reader->edge_lines - 1)) {
        return dmg_error(
            DMG_ERR_FORMAT,
            "%s:%" PRIu64 ": looks like the size line of a Matrix Market file without its banner: expected "
            "\"%%%%MatrixMarket matrix coordinate ...\" as line 1, or the format edge list to be asked for",
            reader->text->path, reader->first_edge_line);
    }
    return DMG_OK;
}

/** Whether line `vertex` behind a METIS header is a list of two neighbours that does not have the vertex itself. */
static bool neighbours_of(const edge_list_reader *reader, uint64_t vertex, uint64_t neighbours[2])
{
    uint64_t vertices = reader->edge_lines - 1;
    dmg_graph_builder_edge(reader->builder, vertex, &neighbours[0], &neighbours[1]);
    for (int i = 0; i < 2; i++) {
        if (neighbours[i] == 0 || neighbours[i] > vertices || neighbours[i] == vertex) {
            return false;
        }
    }
    return true;
}

/**
 * METIS' format has a line VERTICES EDGES, then each vertex's neighbours in a line: where all have two, that reads like
 * an edge list. It is one of METIS when the numbers agree and every neighbour has the vertex in its own line, too.
 */
static dmg_status check_metis(const edge_list_reader *reader)
{
    const edge_line *header = &reader->first_edge;
    uint64_t vertices = reader->edge_lines > 0 ? reader->edge_lines - 1 : 0;
    if (header->has_weight || vertices < 3 || header->source != vertices || header->destination != vertices) {
        return DMG_OK;
    }
    for (uint64_t vertex = 1; vertex <= vertices; vertex++) {
        uint64_t neighbours[2];
        if (!neighbours_of(reader, vertex, neighbours)) {
            return DMG_OK;
        }
        for (int i = 0; i < 2; i++) {
            uint64_t back[2];
            if (!neighbours_of(reader, neighbours[i], back) || (back[0] != vertex && back[1] != vertex)) {
                return DMG_OK;
            }
        }
    }
    return dmg_error(DMG_ERR_FORMAT,
                     "%s:%" PRIu64 ": looks like METIS' format (%" PRIu64
                     " vertices, then the two neighbours of each), "
                     "which dmgraph does not read: convert it to an edge list first; if it is one, give --format "
                     "edge-list",
                     reader->text->path, reader->first_edge_line, vertices);
}

dmg_status dmg_edge_list_read(dmg_text_source *source, const dmg_read_options *options, bool guard_size_line,
                              dmg_graph *graph, dmg_read_report *report)
{
    edge_list_reader reader = {.text = source, .options = options};
    dmg_status status = read_all(&reader);
    if (status == DMG_OK && guard_size_line) {
        status = check_size_line(&reader);
    }
    if (status == DMG_OK && options->format == DMG_FORMAT_AUTO) {
        status = check_metis(&reader);
    }
    if (status == DMG_OK) {
        report->edge_lines = reader.edge_lines;
        report->has_weights = reader.first_edge.has_weight;
        status = dmg_text_reader_finish(source, reader.builder, reader.negative_line, graph, report);
    }
    dmg_graph_builder_destroy(reader.builder);
    return status;
}
