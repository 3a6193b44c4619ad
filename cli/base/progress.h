/**
 * @file progress.h
 * One line on stderr that shows how far a long step is. Only on a terminal; drawn a few times a second; gone when the
 * step is.
 */
#ifndef DMG_CLI_BASE_PROGRESS_H
#define DMG_CLI_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dmg_progress_bar dmg_progress_bar;

/** NULL when it is not wanted, stderr is no terminal, or there is no memory: the other calls take that. */
dmg_progress_bar *dmg_progress_bar_create(bool is_wanted);
/** Clears the line. */
void dmg_progress_bar_destroy(dmg_progress_bar *bar);

/** Show a step, and how much of it is done; total 0: unknown, the count alone is shown. Thread-safe; matches
 * dmg_progress of the readers. */
void dmg_progress_bar_show(void *bar, const char *step, uint64_t done, uint64_t total);
/** Clear the line, before something else is printed. Nothing is drawn until dmg_progress_bar_show is called again. */
void dmg_progress_bar_clear(dmg_progress_bar *bar);

#endif
