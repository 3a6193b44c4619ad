/**
 * @file text.h
 * Numbers as people read them, and texts as JSON and CSV take them.
 */
#ifndef DMG_CLI_BASE_TEXT_H
#define DMG_CLI_BASE_TEXT_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

/** Room for one formatted number. */
typedef struct dmg_text {
    char text[40];
} dmg_text;

/** "1,234,567". */
dmg_text dmg_text_count(uint64_t count);
/** "512 B", "1.4 MiB". */
dmg_text dmg_text_bytes(uint64_t bytes);
/** "2.13 s", "840 ms", "15 µs". */
dmg_text dmg_text_seconds(double seconds);
/** "2026-11-30 12:03:04", here, of seconds since 1970; and "2026-11-30T12:03:04+0100", for logs. */
dmg_text dmg_text_time(uint64_t seconds);
dmg_text dmg_text_timestamp(uint64_t seconds);
/** The width to give printf's "%*s" for a column of `width` characters: it counts bytes, of which "µ" has two. */
int dmg_text_width(const char *text, int width);

/** A JSON string; bytes that are not UTF-8 become question marks. Never NULL while there is memory. */
json_t *dmg_json_text(const char *text);
/** An integer, or, from 2^63 on, its decimal text. */
json_t *dmg_json_id(uint64_t id);

/** Write an object or list to the standard output, indented and with a line's end, and drop the reference to it. */
void dmg_json_print(json_t *value);

/** Write a field of comma-separated values that may hold anything: in quotes, which are doubled inside. */
void dmg_csv_text(FILE *to, const char *text);

#endif
