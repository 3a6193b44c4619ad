#include "formats/text_source.h"

#include "core/base/error.h"
#include "formats/weight.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES_AT_START ((size_t)512 * 1024)
/* No graph has such a line; without a bound, a file without line ends would fill the memory. */
#define LINE_BYTES_MAX   ((size_t)1 << 28)
#define QUOTED_BYTES     40
#define WEIGHT_BYTES_MAX 400
#define PEEK_BYTES       4096

dmg_status dmg_text_source_open(dmg_text_source *source, const char *path, dmg_input_stream *input,
                                const dmg_read_options *options)
{
    memset(source, 0, sizeof *source);
    source->path = path;
    source->input = input;
    source->progress = options->progress;
    source->progress_context = options->progress_context;
    source->c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    source->capacity = BUFFER_BYTES_AT_START;
    /* One byte more, for the end of a last line that has none. */
    source->buffer = malloc(source->capacity + 1);
    if (!source->buffer || source->c_locale == (locale_t)0) {
        return dmg_error(DMG_ERR_MEMORY, "%s: no memory to read", path);
    }
    return DMG_OK;
}

void dmg_text_source_close(dmg_text_source *source)
{
    if (source->c_locale != (locale_t)0) {
        freelocale(source->c_locale);
        source->c_locale = (locale_t)0;
    }
    free(source->buffer);
    source->buffer = NULL;
}

/** Read into the rest of the buffer once. */
static dmg_status fill(dmg_text_source *source)
{
    size_t bytes;
    dmg_status status = dmg_input_stream_read(source->input, source->buffer + source->filled,
                                              source->capacity - source->filled, &bytes);
    source->filled += bytes;
    source->input_ended = status == DMG_OK && bytes == 0;
    return status;
}

static dmg_status fill_to(dmg_text_source *source, size_t wanted)
{
    dmg_status status = DMG_OK;
    while (status == DMG_OK && !source->input_ended && source->filled < wanted) {
        status = fill(source);
    }
    return status;
}

/** Where the last whole line of the buffer ends; 0 when none does. A CR at the very end may be half of a line end. */
static size_t whole_lines(const dmg_text_source *source)
{
    const char *last = memrchr(source->buffer, '\n', source->filled);
    if (!last && source->filled > 0) {
        last = memrchr(source->buffer, '\r', source->filled - 1);
    }
    return last ? (size_t)(last - source->buffer) + 1 : 0;
}

static dmg_status make_room(dmg_text_source *source)
{
    if (source->capacity >= LINE_BYTES_MAX) {
        return dmg_error(DMG_ERR_FORMAT, "%s:%" PRIu64 ": a line of more than %zu bytes: expected a text file",
                         source->path, source->line + 1, LINE_BYTES_MAX);
    }
    char *larger = realloc(source->buffer, source->capacity * 2 + 1);
    if (!larger) {
        return dmg_error(DMG_ERR_MEMORY, "%s: no memory for a line of %zu bytes", source->path, source->capacity);
    }
    source->buffer = larger;
    source->capacity *= 2;
    return DMG_OK;
}

/** Before the first block: skip the byte-order mark that some editors put before UTF-8. */
static dmg_status start(dmg_text_source *source)
{
    static const char mark[] = {'\xef', '\xbb', '\xbf'};
    dmg_status status = fill_to(source, PEEK_BYTES + sizeof mark);
    if (status == DMG_OK && source->filled >= sizeof mark && memcmp(source->buffer, mark, sizeof mark) == 0) {
        source->filled -= sizeof mark;
        memmove(source->buffer, source->buffer + sizeof mark, source->filled);
    }
    source->has_started = status == DMG_OK;
    return status;
}

dmg_status dmg_text_source_peek(dmg_text_source *source, const char **begin, size_t *bytes)
{
    dmg_status status = source->has_started ? DMG_OK : start(source);
    *begin = source->buffer + source->block_end;
    *bytes = source->filled - source->block_end;
    return status;
}

dmg_status dmg_text_source_next(dmg_text_source *source, const char **begin, const char **end)
{
    dmg_status status = source->has_started ? DMG_OK : start(source);
    if (status != DMG_OK) {
        return status;
    }
    source->filled -= source->block_end;
    memmove(source->buffer, source->buffer + source->block_end, source->filled);
    source->block_end = 0;
    /* A full buffer a block: short blocks would move the rest of a line too often. */
    status = fill_to(source, source->capacity);
    while (status == DMG_OK && !source->input_ended && (source->block_end = whole_lines(source)) == 0) {
        status = make_room(source);
        if (status == DMG_OK) {
            status = fill_to(source, source->capacity);
        }
    }
    if (status != DMG_OK) {
        return status;
    }
    if (source->input_ended) {
        if (source->filled > 0 && !dmg_is_line_end(source->buffer[source->filled - 1])) {
            source->buffer[source->filled++] = '\n';
        }
        source->block_end = source->filled;
    }
    if (source->progress) {
        source->progress(source->progress_context, "read", dmg_input_stream_consumed_bytes(source->input),
                         dmg_input_stream_file_bytes(source->input));
    }
    *begin = source->buffer;
    *end = source->buffer + source->block_end;
    return DMG_OK;
}

/** "FILE:LINE: "TOKEN"WHY: expected ...", or that the line ends. */
static dmg_status token_error(const dmg_text_source *source, const char *at, const char *why, const char *expected)
{
    char quoted[QUOTED_BYTES + 8];
    size_t length = 0;
    while (length < QUOTED_BYTES && !dmg_is_line_end(at[length]) && (length == 0 || !dmg_is_blank(at[length]))) {
        unsigned char character = (unsigned char)at[length];
        quoted[length++] = character >= 0x20 && character < 0x7f ? (char)character : '?';
    }
    if (length == 0) {
        return dmg_error(DMG_ERR_FORMAT, "%s:%" PRIu64 ": the line ends: expected %s", source->path, source->line,
                         expected);
    }
    snprintf(quoted + length, sizeof quoted - length, "%s", length == QUOTED_BYTES ? "..." : "");
    return dmg_error(DMG_ERR_FORMAT, "%s:%" PRIu64 ": \"%s\"%s: expected %s", source->path, source->line, quoted, why,
                     expected);
}

dmg_status dmg_text_source_error(const dmg_text_source *source, const char *at, const char *expected)
{
    return token_error(source, at, "", expected);
}

dmg_status dmg_text_source_integer_error(const dmg_text_source *source, const char *at, const char *expected)
{
    uint64_t value;
    const char *end = at;
    while ((unsigned int)(unsigned char)*end - '0' <= 9) {
        end++;
    }
    bool is_number = end > at && (dmg_is_blank(*end) || dmg_is_line_end(*end) || *end == ',');
    bool is_too_large = is_number && !dmg_parse_unsigned(at, &value);
    return token_error(source, at, is_too_large ? " does not fit into 64 bits" : "", expected);
}

static inline bool is_digit(char character)
{
    return (unsigned int)(unsigned char)character - '0' <= 9;
}

/** What the grammar of a number yields: the digits' value when few enough, and the power of ten. */
typedef struct number_shape {
    uint64_t digits;
    bool digits_are_exact;
    int64_t exponent;
} number_shape;

/** Returns where a well-formed number ends, or NULL. */
static const char *scan_number(const char *at, number_shape *shape)
{
    uint32_t significant = 0;
    bool has_digits = false;
    bool in_fraction = false;
    *shape = (number_shape){.digits_are_exact = true};
    for (;; at++) {
        if (is_digit(*at)) {
            has_digits = true;
            if (significant > 0 || *at != '0') {
                significant++;
            }
            if (significant <= 18) {
                shape->digits = shape->digits * 10 + (uint64_t)(*at - '0');
                shape->exponent -= in_fraction;
            } else {
                shape->digits_are_exact = false;
            }
        } else if (*at == '.' && !in_fraction) {
            in_fraction = true;
        } else {
            break;
        }
    }
    if (!has_digits) {
        return NULL;
    }
    if (*at == 'e' || *at == 'E') {
        at++;
        bool is_negative = *at == '-';
        at += *at == '-' || *at == '+';
        if (!is_digit(*at)) {
            return NULL;
        }
        int64_t exponent = 0;
        for (; is_digit(*at); at++) {
            exponent = exponent < 100000 ? exponent * 10 + (*at - '0') : exponent;
        }
        shape->exponent += is_negative ? -exponent : exponent;
    }
    return at;
}

dmg_parsed_weight dmg_parse_weight(const dmg_text_source *source, const char *at)
{
    bool is_negative = *at == '-';
    at += *at == '-' || *at == '+';
    number_shape shape;
    const char *end = scan_number(at, &shape);
    if (!end || (!dmg_is_blank(*end) && !dmg_is_line_end(*end) && *end != ',')) {
        return (dmg_parsed_weight){.expected = "a finite decimal number as the weight"};
    }
    double value;
    if (shape.digits_are_exact && shape.digits < UINT64_C(1) << DBL_MANT_DIG &&
        shape.exponent >= -DMG_EXACT_POWER_OF_10 && shape.exponent <= DMG_EXACT_POWER_OF_10) {
        /* One multiplication or division by a power that is exact rounds once, that is correctly. */
        int power = (int)shape.exponent;
        value = (double)shape.digits;
        value = power < 0 ? value / dmg_power_of_10(-power) : value * dmg_power_of_10(power);
    } else {
        char copy[WEIGHT_BYTES_MAX + 1];
        size_t length = (size_t)(end - at);
        if (length > WEIGHT_BYTES_MAX) {
            return (dmg_parsed_weight){.expected = "a weight of at most 400 characters"};
        }
        memcpy(copy, at, length);
        copy[length] = '\0';
        value = strtod_l(copy, NULL, source->c_locale);
        if (value == 0 && shape.digits != 0) {
            return (dmg_parsed_weight){.expected = "a weight that is not too small for a 32-bit float"};
        }
    }
    value = is_negative ? -value : value;
    if (!(fabs(value) <= (double)FLT_MAX)) {
        return (dmg_parsed_weight){.expected = "a weight that fits a 32-bit float"};
    }
    if (value != 0 && (float)value == 0) {
        return (dmg_parsed_weight){.expected = "a weight that is not too small for a 32-bit float"};
    }
    return (dmg_parsed_weight){.value = value, .end = end};
}
