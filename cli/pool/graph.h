/**
 * @file graph.h
 * What is printed about a graph in a long-lived pool.
 */
#ifndef DMG_CLI_POOL_GRAPH_H
#define DMG_CLI_POOL_GRAPH_H

#include "core/store/graph_catalog.h"

#include <jansson.h>
#include <stdio.h>

/** Called for each graph of a pool. */
typedef void (*dmg_pool_graph_visit)(void *context, const char *name, const dmg_graph_entry *entry,
                                     const dmg_pool_owner *owner);

/** Visit all graphs, by name. One that is unloaded meanwhile may be left out. */
dmg_status dmg_pool_graphs(dmg_channel *channel, dmg_pool_graph_visit visit, void *context);

/** `owner` may be NULL: then it is left out. */
json_t *dmg_graph_entry_json(const char *name, const dmg_graph_entry *entry, const dmg_pool_owner *owner);
/** The headings of dmg_graph_entry_print, behind `indent` spaces. */
void dmg_graph_entry_print_headings(FILE *to, int indent);
/** One line. */
void dmg_graph_entry_print(FILE *to, int indent, const char *name, const dmg_graph_entry *entry,
                           const dmg_pool_owner *owner);

#endif
