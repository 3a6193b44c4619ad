/**
 * @file headline.h
 * What an answer says in a line or two, computed while the values stream by: the algorithm's own count of it
 * (algorithms/answer.h), for reports and for people.
 */
#ifndef DMG_CLI_RUN_HEADLINE_H
#define DMG_CLI_RUN_HEADLINE_H

#include "algorithms/algorithm.h"

#include <jansson.h>
#include <stdio.h>

typedef struct dmg_headline dmg_headline;

/** `graph` is used until the headline is destroyed. DMG_ERR_MEMORY. */
dmg_status dmg_headline_create(const dmg_algorithm *algorithm, const dmg_graph *graph, dmg_headline **headline);
/** NULL is allowed. */
void dmg_headline_destroy(dmg_headline *headline);
/** Take in the values of the vertices [first, first + count), each once. */
void dmg_headline_add(dmg_headline *headline, uint64_t first, uint64_t count, const void *values);
/** The facts, for --json. */
json_t *dmg_headline_json(const dmg_headline *headline);
/** The facts for people: one line. */
void dmg_headline_print(FILE *to, const dmg_headline *headline);

#endif
