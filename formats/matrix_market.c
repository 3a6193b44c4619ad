#include "formats/text_readers.h"

#include "core/base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef enum field { PATTERN, INTEGER, REAL } field;
typedef enum symmetry { GENERAL, SYMMETRIC, SKEW } symmetry;

/*
 * How many vertices a file may declare: plainly more than any matrix with so many bytes has use for, and so few that a
 * small file cannot ask for all of the machine's memory.
 */
#define VERTICES_ALWAYS_ALLOWED (UINT64_C(1) << 20)
#define VERTICES_A_BYTE         1024
/* "1 1" and a line end. */
#define ENTRY_BYTES_LEAST 4

typedef struct matrix_reader {
    dmg_text_source *text;
    const dmg_read_options *options;
    dmg_graph_builder *builder;
    field field;
    symmetry symmetry;
    bool has_banner;
    bool has_size;
    uint64_t dimension;
    uint64_t entries_promised;
    uint64_t entries;
    uint64_t size_line;
    uint64_t negative_line;
} matrix_reader;

/** Take the next word of the line, any case, when it is one of `choices`; its index, or -1. */
static int take_word(const char **at, const char *const *choices, int count)
{
    *at = dmg_skip_blanks(*at);
    for (int i = 0; i < count; i++) {
        size_t length = strlen(choices[i]);
        if (strncasecmp(*at, choices[i], length) == 0 &&
            (dmg_is_blank((*at)[length]) || dmg_is_line_end((*at)[length]))) {
            *at += length;
            return i;
        }
    }
    return -1;
}

static bool next_word_is(const char *at, const char *word)
{
    return take_word(&at, &word, 1) == 0;
}

static dmg_status read_banner(matrix_reader *reader, const char **at)
{
    static const char *const banners[] = {"%%MatrixMarket"};
    static const char *const objects[] = {"matrix"};
    static const char *const formats[] = {"coordinate"};
    static const char *const fields[] = {[PATTERN] = "pattern", [INTEGER] = "integer", [REAL] = "real"};
    static const char *const symmetries[] = {
        [GENERAL] = "general", [SYMMETRIC] = "symmetric", [SKEW] = "skew-symmetric"};
    const dmg_text_source *text = reader->text;
    if (take_word(at, banners, 1) < 0) {
        return dmg_text_source_error(text, *at, "the banner \"%%MatrixMarket matrix coordinate FIELD SYMMETRY\"");
    }
    if (take_word(at, objects, 1) < 0) {
        return dmg_text_source_error(text, *at, "\"matrix\" in the banner");
    }
    if (take_word(at, formats, 1) < 0) {
        return next_word_is(*at, "array")
                   ? dmg_text_source_error(text, *at, "\"coordinate\": a dense matrix is no graph that dmgraph reads")
                   : dmg_text_source_error(text, *at, "\"coordinate\" in the banner");
    }
    int found = take_word(at, fields, 3);
    if (found < 0) {
        return next_word_is(*at, "complex")
                   ? dmg_text_source_error(text, *at, "pattern, integer or real: complex weights are not supported")
                   : dmg_text_source_error(text, *at, "pattern, integer or real");
    }
    reader->field = (field)found;
    found = take_word(at, symmetries, 3);
    if (found < 0) {
        return dmg_text_source_error(text, *at, "general, symmetric or skew-symmetric");
    }
    reader->symmetry = (symmetry)found;
    *at = dmg_skip_blanks(*at);
    if (!dmg_is_line_end(**at)) {
        return dmg_text_source_error(text, *at, "the banner to end after the symmetry");
    }
    if (reader->symmetry == SKEW && reader->field == PATTERN) {
        return dmg_error(DMG_ERR_FORMAT,
                         "%s:%" PRIu64 ": pattern skew-symmetric: expected a field with values, their signs differ",
                         text->path, text->line);
    }
    if (reader->symmetry == SKEW && reader->options->direction == DMG_DIRECTION_UNDIRECTED &&
        reader->options->weights != DMG_WEIGHTS_IGNORED) {
        return dmg_error(DMG_ERR_FORMAT,
                         "%s:%" PRIu64 ": skew-symmetric: expected to be read as directed, or without weights: the two "
                         "directions of an edge have opposite weights",
                         text->path, text->line);
    }
    reader->has_banner = true;
    return DMG_OK;
}

static const char *parse_integer(const char *at, uint64_t *value)
{
    const char *end = dmg_parse_unsigned(at, value);
    return end && (dmg_is_blank(*end) || dmg_is_line_end(*end)) ? end : NULL;
}

/** Before anything is allocated for it: could this file hold that matrix, and this program that graph? */
static dmg_status check_size(const matrix_reader *reader, uint64_t rows, uint64_t columns)
{
    const dmg_text_source *text = reader->text;
    if (rows != columns) {
        return dmg_error(DMG_ERR_FORMAT,
                         "%s:%" PRIu64 ": %" PRIu64 " rows and %" PRIu64
                         " columns: expected a square matrix, its rows and columns are the vertices",
                         text->path, text->line, rows, columns);
    }
    if (rows > DMG_VERTICES_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "%s:%" PRIu64 ": %" PRIu64 " vertices: dmgraph holds at most %" PRIu64,
                         text->path, text->line, rows, DMG_VERTICES_MAX);
    }
    uint64_t file_bytes = dmg_input_stream_file_bytes(text->input);
    if (file_bytes == 0) {
        return DMG_OK; /* a pipe */
    }
    if (rows > VERTICES_ALWAYS_ALLOWED && rows / VERTICES_A_BYTE > file_bytes) {
        return dmg_error(DMG_ERR_FORMAT,
                         "%s:%" PRIu64 ": %" PRIu64 " vertices in a file of %" PRIu64
                         " bytes: expected a plausible size line",
                         text->path, text->line, rows, file_bytes);
    }
    bool is_plain = dmg_input_stream_compression(text->input)[0] == '\0';
    if (is_plain && reader->entries_promised > file_bytes / ENTRY_BYTES_LEAST) {
        return dmg_error(DMG_ERR_FORMAT,
                         "%s:%" PRIu64 ": the size line promises %" PRIu64
                         " entries: expected no more than fit into %" PRIu64 " bytes",
                         text->path, text->line, reader->entries_promised, file_bytes);
    }
    return DMG_OK;
}

static dmg_status read_size(matrix_reader *reader, const char **at)
{
    static const char expected[] = "a size line: ROWS COLUMNS ENTRIES, three integers";
    uint64_t numbers[3];
    for (int i = 0; i < 3; i++) {
        *at = dmg_skip_blanks(*at);
        const char *end = parse_integer(*at, &numbers[i]);
        if (!end) {
            return dmg_text_source_integer_error(reader->text, *at, expected);
        }
        *at = end;
    }
    *at = dmg_skip_blanks(*at);
    if (!dmg_is_line_end(**at)) {
        return dmg_text_source_error(reader->text, *at, "the size line to end after three integers");
    }
    reader->entries_promised = numbers[2];
    dmg_status status = check_size(reader, numbers[0], numbers[1]);
    if (status != DMG_OK) {
        return status;
    }
    reader->dimension = numbers[0];
    reader->size_line = reader->text->line;
    reader->has_size = true;
    const dmg_read_options *options = reader->options;
    dmg_builder_options builder_options = {
        .is_directed = options->direction == DMG_DIRECTION_DIRECTED ||
                       (options->direction == DMG_DIRECTION_BY_FILE && reader->symmetry != SYMMETRIC),
        .is_weighted = reader->field != PATTERN && options->weights != DMG_WEIGHTS_IGNORED,
        .drop_repeats = options->drop_repeats,
        .drop_loops = options->drop_loops,
        .with_reverse = options->with_reverse,
        .has_declared_vertices = true,
        .first_id = 1,
        .declared_vertices = reader->dimension,
    };
    return dmg_graph_builder_create(&builder_options, &reader->builder);
}

static dmg_status add_entry(matrix_reader *reader, uint64_t row, uint64_t column, double weight)
{
    const dmg_read_options *options = reader->options;
    bool is_undirected = options->direction == DMG_DIRECTION_UNDIRECTED ||
                         (options->direction == DMG_DIRECTION_BY_FILE && reader->symmetry == SYMMETRIC);
    dmg_status status = dmg_graph_builder_add(reader->builder, row, column, weight);
    if (status == DMG_OK && reader->symmetry != GENERAL && row != column && !is_undirected) {
        status = dmg_graph_builder_add(reader->builder, column, row, reader->symmetry == SKEW ? -weight : weight);
    }
    if (status != DMG_OK) {
        return dmg_error_prefix(status, "%s:%" PRIu64, reader->text->path, reader->text->line);
    }
    bool is_negative = weight < 0 || (reader->symmetry == SKEW && weight > 0);
    if (is_negative && reader->negative_line == 0 && options->weights != DMG_WEIGHTS_IGNORED &&
        !(options->drop_loops && row == column)) {
        reader->negative_line = reader->text->line;
    }
    reader->entries++;
    return DMG_OK;
}

static dmg_status read_index(const matrix_reader *reader, const char **at, const char *which, uint64_t *index)
{
    *at = dmg_skip_blanks(*at);
    const char *end = parse_integer(*at, index);
    if (!end || *index == 0 || *index > reader->dimension) {
        char expected[96];
        snprintf(expected, sizeof expected, "a %s from 1 to %" PRIu64, which, reader->dimension);
        return dmg_text_source_integer_error(reader->text, *at, expected);
    }
    *at = end;
    return DMG_OK;
}

static dmg_status read_entry(matrix_reader *reader, const char **at)
{
    const dmg_text_source *text = reader->text;
    if (reader->entries == reader->entries_promised) {
        return dmg_error(DMG_ERR_FORMAT,
                         "%s:%" PRIu64 ": one more entry: expected %" PRIu64 ", as line %" PRIu64 " says", text->path,
                         text->line, reader->entries_promised, reader->size_line);
    }
    uint64_t row;
    uint64_t column;
    dmg_status status = read_index(reader, at, "row", &row);
    if (status == DMG_OK) {
        status = read_index(reader, at, "column", &column);
    }
    if (status != DMG_OK) {
        return status;
    }
    dmg_parsed_weight weight = {.value = 1};
    *at = dmg_skip_blanks(*at);
    if (reader->field != PATTERN) {
        weight = dmg_parse_weight(text, *at);
        if (!weight.end) {
            return dmg_text_source_error(text, *at, weight.expected);
        }
        if (reader->field == INTEGER && memchr(*at, '.', (size_t)(weight.end - *at))) {
            return dmg_text_source_error(text, *at, "an integer, as the banner says");
        }
        *at = dmg_skip_blanks(weight.end);
    }
    if (!dmg_is_line_end(**at)) {
        return dmg_text_source_error(text, *at,
                                     reader->field == PATTERN ? "the line to end after ROW COLUMN"
                                                              : "the line to end after ROW COLUMN VALUE");
    }
    if (reader->symmetry == SKEW && row == column) {
        return dmg_error(DMG_ERR_FORMAT,
                         "%s:%" PRIu64 ": row %" PRIu64 " column %" PRIu64
                         ": expected no diagonal entry in a skew-symmetric matrix",
                         text->path, text->line, row, column);
    }
    return add_entry(reader, row, column, weight.value);
}

static dmg_status read_block(matrix_reader *reader, const char *at, const char *end)
{
    dmg_text_source *text = reader->text;
    while (at < end) {
        text->line++;
        at = dmg_skip_blanks(at);
        dmg_status status = DMG_OK;
        if (dmg_is_line_end(*at)) {
            text->skipped++;
        } else if (!reader->has_banner) {
            status = read_banner(reader, &at);
        } else if (*at == '%') {
            text->skipped++;
            at = dmg_find_line_end(at);
        } else if (!reader->has_size) {
            status = read_size(reader, &at);
        } else {
            status = read_entry(reader, &at);
        }
        if (status != DMG_OK) {
            return status;
        }
        at = dmg_skip_line_end(at, end);
    }
    return DMG_OK;
}

static dmg_status check_end(const matrix_reader *reader)
{
    const dmg_text_source *text = reader->text;
    if (!reader->has_banner || !reader->has_size) {
        return dmg_error(DMG_ERR_FORMAT, "%s:%" PRIu64 ": the file ends: expected %s", text->path, text->line + 1,
                         reader->has_banner ? "a size line: ROWS COLUMNS ENTRIES" : "a \"%%MatrixMarket\" banner");
    }
    if (reader->entries < reader->entries_promised) {
        return dmg_error(DMG_ERR_FORMAT,
                         "%s:%" PRIu64 ": the file ends after %" PRIu64 " entries: expected %" PRIu64
                         ", as line %" PRIu64 " says",
                         text->path, text->line + 1, reader->entries, reader->entries_promised, reader->size_line);
    }
    return DMG_OK;
}

static dmg_status read_all(matrix_reader *reader)
{
    for (;;) {
        const char *begin;
        const char *end;
        dmg_status status = dmg_text_source_next(reader->text, &begin, &end);
        if (status == DMG_OK && begin == end) {
            return check_end(reader);
        }
        if (status == DMG_OK) {
            status = read_block(reader, begin, end);
        }
        if (status != DMG_OK) {
            return status;
        }
    }
}

dmg_status dmg_matrix_market_read(dmg_text_source *source, const dmg_read_options *options, dmg_graph *graph,
                                  dmg_read_report *report)
{
    matrix_reader reader = {.text = source, .options = options};
    dmg_status status = read_all(&reader);
    if (status == DMG_OK) {
        report->edge_lines = reader.entries;
        report->has_weights = reader.field != PATTERN;
        status = dmg_text_reader_finish(source, reader.builder, reader.negative_line, graph, report);
    }
    dmg_graph_builder_destroy(reader.builder);
    return status;
}
