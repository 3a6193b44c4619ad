/**
 * @file answer.h
 * What an answer comes to, in a line or two: how many vertices were reached, how many components there are, whose rank
 * is highest. It is counted while the values stream by, and by the algorithm, which knows what they mean.
 */
#ifndef DMG_ALGORITHMS_ANSWER_H
#define DMG_ALGORITHMS_ANSWER_H

#include "formats/graph.h"

#include <stdio.h>

/** Takes facts for a report; names are for programs. Between begin_row and end_row, facts belong to a row of the list
 * that was begun last. */
typedef struct dmg_fact_writer {
    void *context;
    void (*count)(void *context, const char *name, uint64_t value);
    void (*real)(void *context, const char *name, double value);
    void (*id)(void *context, const char *name, uint64_t external_id);
    void (*begin_list)(void *context, const char *name);
    void (*begin_row)(void *context);
    void (*end_row)(void *context);
} dmg_fact_writer;

/** How an algorithm counts its answer. */
typedef struct dmg_answer_count {
    size_t count_bytes; /**< of what is counted, which is zeroed before `begin` */
    /** NULL: zeros will do. DMG_ERR_MEMORY. */
    dmg_status (*begin)(void *count, const dmg_graph *graph);
    /** Take in the values of the vertices [first, first + vertices), each vertex once. */
    void (*add)(void *count, uint64_t first, uint64_t vertices, const void *values);
    /** For programs. */
    void (*report)(const void *count, const dmg_graph *graph, const dmg_fact_writer *to);
    /** For people: one line, with its end. */
    void (*print)(const void *count, const dmg_graph *graph, FILE *to);
    /** Free what `begin` allocated; NULL: nothing. Also after `begin` has failed. */
    void (*end)(void *count);
} dmg_answer_count;

#endif
