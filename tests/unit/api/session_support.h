/**
 * @file session_support.h
 * What the tests of sessions share: files to load, and calls with what they must return.
 */
#ifndef DMG_TEST_API_SESSION_SUPPORT_H
#define DMG_TEST_API_SESSION_SUPPORT_H

#include "unit/support/suite.h"

#include "dmgraph/session.h"

/** Of each memory node. */
#define DMG_TEST_MEMORY_BYTES (UINT64_C(8) << 20)

/** Ids with gaps, weights, two components, a vertex that only arcs lead to. */
extern const char dmg_test_small_graph[];
#define DMG_TEST_SMALL_VERTICES 6

typedef struct dmg_scratch_file {
    char path[64];
} dmg_scratch_file;

dmg_scratch_file dmg_file_with(const char *text);
/** Some hundred vertices with hubs, ids with gaps and integer weights; 3 is one of the ids, with arcs. */
dmg_scratch_file dmg_random_file(unsigned long long seed);
void dmg_remove_file(const dmg_scratch_file *file);

/** `words` have to be in the sentence of the error; NULL: whatever it says. */
void dmg_expect_at(int line, dmg_status status, dmg_status expected, const char *words);
#define EXPECT(expected, call)              dmg_expect_at(__LINE__, call, expected, NULL)
#define EXPECT_ERROR(expected, words, call) dmg_expect_at(__LINE__, call, expected, words)

/** Add these tests once a transport. Returns 0, or 1 when CUnit refused. */
int dmg_session_suites_add(const char *name, const dmg_test *tests);
/** The transport of the running suite. */
const char *dmg_session_transport(void);

#endif
