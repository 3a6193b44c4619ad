#include "cli/chart/markup.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* ---- text ---- */

/** How many bytes the character at `text` has; 0 when it is no UTF-8, or none that XML may have. */
static size_t character_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t more = 0; more < sizeof forms / sizeof forms[0]; more++) {
        if ((text[0] & forms[more].mask) != forms[more].lead) {
            continue;
        }
        uint32_t code = text[0] & (unsigned char)~forms[more].mask;
        for (size_t i = 1; i <= more; i++) {
            if ((text[i] & 0xc0) != 0x80) {
                return 0;
            }
            code = code << 6 | (text[i] & 0x3f);
        }
        bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
        bool is_control = (code < 0x20 && code != '\t' && code != '\n') || (code >= 0x7f && code < 0xa0);
        bool is_character = code >= forms[more].least && code <= 0x10ffff && !is_surrogate && !is_control;
        return is_character && code != 0xfffe && code != 0xffff ? more + 1 : 0;
    }
    return 0;
}

void dmg_markup_text(FILE *to, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    while (*at) {
        size_t bytes = character_bytes(at);
        if (bytes == 0) {
            fputs(REPLACEMENT, to);
        } else if (*at == '&') {
            fputs("&amp;", to);
        } else if (*at == '<') {
            fputs("&lt;", to);
        } else if (*at == '>') {
            fputs("&gt;", to);
        } else if (*at == '"') {
            fputs("&quot;", to);
        } else if (*at == '\'') {
            fputs("&#39;", to);
        } else {
            fwrite(at, 1, bytes, to);
        }
        at += bytes > 0 ? bytes : 1;
    }
}

void dmg_markup_print(FILE *to, const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length >= 0) {
        dmg_markup_text(to, text);
        free(text);
    }
}

/* ---- the page ---- */

/** Colours of series: after Okabe and Ito, which people with any colour vision tell apart; darker on white, lighter on
 * black, so that each has a contrast of at least 3 to its ground. */
static const char style[] =
    ":root{color-scheme:light dark;--ground:#fff;--raised:#f5f6f8;--ink:#1b1f24;--soft:#59636e;--line:#d5dae0;"
    "--c0:#0067a6;--c1:#c04c00;--c2:#007f5c;--c3:#a8467f;--c4:#7a6a00;--c5:#5b4fc7}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#14171b;--raised:#1d2126;--ink:#e7eaee;--soft:#a2acb8;"
    "--line:#363d46;--c0:#56b4e9;--c1:#f0994a;--c2:#3cc79e;--c3:#e39bc5;--c4:#e0cf4a;--c5:#aaa1ff}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif;"
    "overflow-wrap:break-word}\n"
    "main{max-width:78rem;margin:0 auto;padding:1rem clamp(.75rem,3vw,2rem) 3rem}\n"
    "h1{font-size:clamp(1.25rem,4vw,1.7rem);line-height:1.25;margin:.5rem 0 .25rem}\n"
    "h2{font-size:1.2rem;margin:2.25rem 0 .5rem;padding-top:.75rem;border-top:1px solid var(--line)}\n"
    "h3{font-size:1rem;margin:1.25rem 0 .25rem}\n"
    "p{margin:.4rem 0;max-width:48rem}small,.soft{color:var(--soft)}small{font-size:.85rem}\n"
    ".tag{display:inline-block;border:1px solid var(--line);border-radius:1rem;padding:0 .6rem;font-size:.85rem;"
    "color:var(--soft);margin-right:.3rem}\n"
    ".answer{background:var(--raised);border-left:.3rem solid var(--c0);border-radius:.3rem;padding:.75rem 1rem;"
    "margin:1rem 0}.answer p{max-width:60rem}.answer .verdict{font-weight:600}.answer "
    "p:first-child{font-size:clamp(1rem,3vw,1.15rem)}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.3rem .7rem .3rem 0;text-align:right;vertical-align:top;border-bottom:1px solid var(--line);"
    "white-space:nowrap}\n"
    "th:first-child,td:first-child,.text{text-align:left}th{font-weight:600;color:var(--soft)}\n"
    "td.why{text-align:left;white-space:normal;min-width:14rem;overflow-wrap:anywhere}td.win{font-weight:700}td.win "
    "small{font-weight:400}.only{display:none}\n"
    "dl{max-width:60rem}dt{font-weight:600;margin-top:.4rem}dd{margin:0 0 .2rem;font-size:.9rem}\n"
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(20rem,100%),1fr));gap:1.5rem 2rem}\n"
    "figure{margin:.5rem 0;max-width:38rem}figcaption{font-size:.95rem;margin-bottom:.25rem}\n"
    "figcaption b{display:block}svg{display:block;width:100%;height:auto}\n"
    "svg text{font:12.5px system-ui,sans-serif;fill:var(--soft)}svg .name{fill:currentColor;font-weight:600}\n"
    "svg .strong{fill:var(--ink)}.grid{stroke:var(--line);stroke-width:.7}.axis{stroke:var(--soft);stroke-width:1}\n"
    ".curve{fill:none;stroke:currentColor;stroke-width:2;stroke-linejoin:round}.dashed{stroke-dasharray:5 3}\n"
    ".dotted{stroke-dasharray:1.5 3}.dot{fill:currentColor}.ring{fill:var(--ground);stroke:currentColor;"
    "stroke-width:1.7}.mark{stroke:currentColor;stroke-width:1.2;stroke-dasharray:2 3}\n"
    ".p0{fill:currentColor;opacity:.38}.p1{fill:currentColor;opacity:.66}.p2{fill:currentColor}\n"
    ".whisker{stroke:var(--ink);stroke-width:1.2;fill:none}.key{display:inline-block;width:.8em;height:.8em;"
    "background:currentColor;border-radius:.15em;margin-right:.35em}\n"
    ".k0{opacity:.38}.k1{opacity:.66}.legend span{white-space:nowrap;margin-right:1rem}\n"
    "details{margin:.5rem 0}summary{cursor:pointer;font-weight:600}code{font-size:.9em;overflow-wrap:anywhere}\n"
    ".c0{color:var(--c0)}.c1{color:var(--c1)}.c2{color:var(--c2)}.c3{color:var(--c3)}.c4{color:var(--c4)}"
    ".c5{color:var(--c5)}.ink{color:var(--ink)}\n"
    /* On a narrow screen each row of such a table is a block: what it is about and its result, then its cells. */
    "@media(max-width:40rem){.rows,.rows tbody{display:block}.rows tr{display:grid;grid-template-columns:1fr 1fr;"
    "border-bottom:1px solid var(--line);padding:.35rem 0}.rows tr.head{display:none}.rows td{border:0;"
    "padding:.1rem .5rem .1rem 0;text-align:left;white-space:normal}.rows td:first-child{order:-2;font-weight:600}"
    ".rows td:last-child{order:-1}.only{display:block}}\n"
    "@media print{.figures{display:block}figure{break-inside:avoid}}\n";

void dmg_markup_page_begin(FILE *to, const char *title)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<title>",
          to);
    dmg_markup_text(to, title);
    fprintf(to, "</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n", style);
}

void dmg_markup_page_end(FILE *to)
{
    fputs("</main>\n</body>\n</html>\n", to);
}
