/**
 * @file markup.h
 * Text in HTML and SVG that is also well-formed XML, and the frame of a page that needs nothing but itself: no script,
 * no network, light or dark as the reader's system is.
 */
#ifndef DMG_CLI_CHART_MARKUP_H
#define DMG_CLI_CHART_MARKUP_H

#include <stdio.h>

/** Write text so that it stands for itself, in elements and attributes; bytes that are no UTF-8, and characters that no
 * page may have, become U+FFFD. */
void dmg_markup_text(FILE *to, const char *text);
/** The same with printf's format. */
void dmg_markup_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** From the doctype to the opened main element. */
void dmg_markup_page_begin(FILE *to, const char *title);
void dmg_markup_page_end(FILE *to);

#endif
