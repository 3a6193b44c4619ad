/**
 * @file text.h
 * Numbers as people read them, and texts as JSON takes them.
 */
#ifndef DMG_CLI_TEXT_H
#define DMG_CLI_TEXT_H

#include <jansson.h>
#include <stdint.h>

/** Room for one formatted number. */
typedef struct dmg_text {
    char text[40];
} dmg_text;

/** "1,234,567". */
dmg_text dmg_text_count(uint64_t count);
/** "512 B", "1.4 MiB". */
dmg_text dmg_text_bytes(uint64_t bytes);
/** "2.13 s", "840 ms", "15 us". */
dmg_text dmg_text_seconds(double seconds);

/** A JSON string; bytes that are not UTF-8 become question marks. Never NULL while there is memory. */
json_t *dmg_json_text(const char *text);
/** An integer, or, from 2^63 on, its decimal text. */
json_t *dmg_json_id(uint64_t id);

#endif
