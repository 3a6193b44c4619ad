#include "cli/base/text.h"

#include "core/base/grouped_digits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/** Of reals: all that a double surely holds, so that 0.1 stays 0.1. */
#define JSON_DIGITS 15

dmg_text dmg_text_count(uint64_t count)
{
    dmg_text result;
    snprintf(result.text, sizeof result.text, "%s", dmg_group_digits(count).text);
    return result;
}

dmg_text dmg_text_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    dmg_text result;
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof units / sizeof units[0]) {
        value /= 1024;
        unit++;
    }
    snprintf(result.text, sizeof result.text, "%.*f %s", unit > 0 && value < 100 ? 1 : 0, value, units[unit]);
    return result;
}

dmg_text dmg_text_seconds(double seconds)
{
    dmg_text result;
    if (seconds >= 100) {
        snprintf(result.text, sizeof result.text, "%.0f s", seconds);
    } else if (seconds >= 1) {
        snprintf(result.text, sizeof result.text, "%.2f s", seconds);
    } else if (seconds >= 0.001) {
        snprintf(result.text, sizeof result.text, "%.*f ms", seconds < 0.01 ? 1 : 0, seconds * 1e3);
    } else {
        snprintf(result.text, sizeof result.text, "%.0f µs", seconds * 1e6);
    }
    return result;
}

static dmg_text time_as(uint64_t seconds, const char *format)
{
    dmg_text text = {"?"};
    time_t moment = (time_t)seconds;
    struct tm local;
    if (localtime_r(&moment, &local)) {
        strftime(text.text, sizeof text.text, format, &local);
    }
    return text;
}

dmg_text dmg_text_time(uint64_t seconds)
{
    return time_as(seconds, "%Y-%m-%d %H:%M:%S");
}

dmg_text dmg_text_timestamp(uint64_t seconds)
{
    return time_as(seconds, "%Y-%m-%dT%H:%M:%S%z");
}

int dmg_text_width(const char *text, int width)
{
    for (const char *at = text; *at; at++) {
        width += ((unsigned char)*at & 0xc0) == 0x80; /* a byte that goes on a character */
    }
    return width;
}

json_t *dmg_json_text(const char *text)
{
    json_t *string = json_string(text);
    if (string) {
        return string;
    }
    char *plain = strdup(text);
    if (!plain) {
        return NULL;
    }
    for (char *at = plain; *at; at++) {
        if ((unsigned char)*at >= 0x80) {
            *at = '?';
        }
    }
    string = json_string(plain);
    free(plain);
    return string;
}

json_t *dmg_json_id(uint64_t id)
{
    if (id <= INT64_MAX) {
        return json_integer((json_int_t)id);
    }
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, id);
    return json_string(digits);
}

void dmg_json_print(json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(JSON_DIGITS));
    putchar('\n');
    json_decref(value);
}

void dmg_csv_text(FILE *to, const char *text)
{
    fputc('"', to);
    for (const char *at = text; *at; at++) {
        if (*at == '"') {
            fputc('"', to);
        }
        fputc(*at, to);
    }
    fputc('"', to);
}
