/**
 * @file support.h
 * What the tests of the formats share: files in a temporary folder, graphs as text, and comparing them.
 */
#ifndef DMG_TEST_FORMATS_SUPPORT_H
#define DMG_TEST_FORMATS_SUPPORT_H

#include "formats/graph_reader.h"

#include <CUnit/CUnit.h>

/** A suite's set-up and tear-down: make a temporary folder, and remove it with all files in it. */
int support_set_up(void);
int support_tear_down(void);

/** The path of a file of the folder; valid until the next call. */
const char *support_path(const char *name);

/** Write a file of the folder; its path, as above. */
const char *support_write(const char *name, const void *bytes, size_t count);

/** Read this text from a file of this name. On failure the graph is closed. */
dmg_status support_read_as(const char *name, const char *text, const dmg_read_options *options, dmg_graph *graph,
                           dmg_read_report *report);

/** The same from "graph.el". */
dmg_status support_read(const char *text, const dmg_read_options *options, dmg_graph *graph, dmg_read_report *report);

/** All arcs in external ids: "1>2 2>1:5 ...", in the order of the lists; valid until the next call. */
const char *support_arcs(const dmg_graph *graph);

/** Read the text and compare the vertices ("0 1 7") and the arcs. */
void support_expect(const char *name, const char *text, const dmg_read_options *options, const char *vertices,
                    const char *arcs);

/** The text must be refused with this status, and a message that contains all of `message`. */
void support_expect_error(const char *name, const char *text, const dmg_read_options *options, dmg_status status,
                          const char *message);

/** Two graphs are the same in every field and list. */
bool support_same_graphs(const dmg_graph *a, const dmg_graph *b);

/** Compress into a new block of memory, to be freed: kind is "gzip", "zstd" or "xz". */
unsigned char *support_compress(const char *kind, const void *bytes, size_t count, size_t *compressed);

#endif
