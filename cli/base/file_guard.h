/**
 * @file file_guard.h
 * What becomes of a graph's file that is cut short while this process has it mapped.
 *
 * The binary form is mapped, since it is large: a copy would take its size in memory once a process, and longer. When
 * another program cuts the file short, touching what is gone raises SIGBUS, which nothing else tells beforehand; so the
 * program takes that signal, says what happened, and ends with the code of a malformed input. The libraries install
 * nothing: without a range to write down what they mapped, they copy (formats/binary_form.h).
 */
#ifndef DMG_CLI_BASE_FILE_GUARD_H
#define DMG_CLI_BASE_FILE_GUARD_H

#include "formats/binary_form.h"

/**
 * The process's one range, looked after from now on. With `name` NULL the process ends without a word: its launcher
 * finds out. Call it from one thread.
 */
dmg_mapped_range *dmg_file_guard(const char *name);

#endif
