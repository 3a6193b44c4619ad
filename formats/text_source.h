/**
 * @file text_source.h
 * A text file as blocks of whole lines, and what its parsers share: tokens, numbers, errors that name the line.
 *
 * A line ends with LF, CR LF or CR. Every block ends with one, so a parser that stops at line ends needs no other
 * bound; a last line without an end is given one.
 */
#ifndef DMG_FORMATS_TEXT_SOURCE_H
#define DMG_FORMATS_TEXT_SOURCE_H

#include "formats/input_stream.h"
#include "formats/reading.h"

#include <locale.h>

typedef struct dmg_text_source {
    const char *path;
    dmg_input_stream *input;
    dmg_progress progress;
    void *progress_context;
    locale_t c_locale; /**< numbers are read the same wherever the program runs */
    char *buffer;
    size_t capacity;
    size_t filled;    /**< bytes in the buffer */
    size_t block_end; /**< where the block that was given out ends */
    bool input_ended;
    bool has_started;
    uint64_t line;    /**< the parser's: of the line that it is in, from 1 */
    uint64_t skipped; /**< the parser's: comments and blank lines */
} dmg_text_source;

/** The source borrows the path and the input. Close it also on failure. */
dmg_status dmg_text_source_open(dmg_text_source *source, const char *path, dmg_input_stream *input,
                                const dmg_read_options *options);
void dmg_text_source_close(dmg_text_source *source);

/** The next block of whole lines, or `*begin == *end` at the end of the text. Ends what the block before pointed to. */
dmg_status dmg_text_source_next(dmg_text_source *source, const char **begin, const char **end);

/** What the next call of dmg_text_source_next will return first, at least 4,096 bytes of it unless it is shorter. */
dmg_status dmg_text_source_peek(dmg_text_source *source, const char **begin, size_t *bytes);

/** "FILE:LINE: "TOKEN": expected ...", quoting the token at `at`, made printable and short. */
dmg_status dmg_text_source_error(const dmg_text_source *source, const char *at, const char *expected);

/** The same where digits were expected; digits that do not fit into 64 bits are named as such. */
dmg_status dmg_text_source_integer_error(const dmg_text_source *source, const char *at, const char *expected);

static inline bool dmg_is_line_end(char character)
{
    return character == '\n' || character == '\r';
}

static inline bool dmg_is_blank(char character)
{
    return character == ' ' || character == '\t';
}

static inline const char *dmg_skip_blanks(const char *at)
{
    while (dmg_is_blank(*at)) {
        at++;
    }
    return at;
}

/** From a line end to the start of the next line. A CR that ends a block has no LF behind it. */
static inline const char *dmg_skip_line_end(const char *at, const char *block_end)
{
    return *at == '\r' && at + 1 < block_end && at[1] == '\n' ? at + 2 : at + 1;
}

static inline const char *dmg_find_line_end(const char *at)
{
    while (!dmg_is_line_end(*at)) {
        at++;
    }
    return at;
}

/** Digits of an unsigned 64-bit number; returns where they end, or NULL when there are none or too many. */
static inline const char *dmg_parse_unsigned(const char *at, uint64_t *value)
{
    const char *begin = at;
    uint64_t number = 0;
    unsigned int digit;
    while ((digit = (unsigned int)(unsigned char)*at - '0') <= 9) {
        if (__builtin_expect(at - begin >= 19, 0) &&
            (number > UINT64_MAX / 10 || (number == UINT64_MAX / 10 && digit > UINT64_MAX % 10))) {
            return NULL;
        }
        number = number * 10 + digit;
        at++;
    }
    *value = number;
    return at == begin ? NULL : at;
}

/** A weight's place in a line, and what is wrong with it if anything. */
typedef struct dmg_parsed_weight {
    double value;
    const char *end;      /**< NULL when it is no weight */
    const char *expected; /**< what should stand there, when end is NULL */
} dmg_parsed_weight;

/** A decimal number with optional sign, fraction and exponent that is finite and fits an int32 or a 32-bit float. */
dmg_parsed_weight dmg_parse_weight(const dmg_text_source *source, const char *at);

#endif
