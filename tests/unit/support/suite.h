/**
 * @file suite.h
 * The frame of a unit-test program: a table of tests, run by CUnit, with a closing line and an exit code.
 */
#ifndef DMG_TEST_SUPPORT_SUITE_H
#define DMG_TEST_SUPPORT_SUITE_H

#include <CUnit/CUnit.h>

/** A test: its name is the sentence that it proves. */
typedef struct dmg_test {
    const char *name;
    void (*run)(void);
} dmg_test;

#define DMG_TEST(function)                                                                                             \
    {                                                                                                                  \
#function, function                                                                                            \
    }

/**
 * Add a suite. `tests` ends with {NULL, NULL}. For a suite that runs once a backend, call it once each with another
 * name and a set-up that picks the backend. Returns 0, or 1 when CUnit refused.
 */
int dmg_suite_add(const char *name, int (*set_up)(void), int (*tear_down)(void), const dmg_test *tests);

/**
 * Run all suites that were added; returns the program's exit code. argv[1], when given, picks one suite by name, and
 * argv[2] one test of it.
 */
int dmg_suites_run(int argc, char **argv);

/** Random tests take their seed from DMGRAPH_TEST_SEED or the clock, and print it. */
unsigned long long dmg_test_seed(void);

#endif
