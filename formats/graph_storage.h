/**
 * @file graph_storage.h
 * The memory behind a graph that was built in this process: what dmg_graph.owner points to.
 */
#ifndef DMG_FORMATS_GRAPH_STORAGE_H
#define DMG_FORMATS_GRAPH_STORAGE_H

#include "formats/graph.h"
#include "formats/pages.h"

typedef struct dmg_adjacency_storage {
    dmg_pages offsets;
    dmg_pages destinations;
    dmg_pages weights;
} dmg_adjacency_storage;

typedef struct dmg_graph_storage {
    dmg_adjacency_storage out;
    dmg_adjacency_storage in;
    dmg_pages ids;
} dmg_graph_storage;

void dmg_adjacency_storage_release(dmg_adjacency_storage *storage);

/** The lists of a storage; weights are NULL when it is not weighted. */
dmg_adjacency dmg_adjacency_storage_view(const dmg_adjacency_storage *storage, bool is_weighted);

/** An empty storage on the heap. NULL when out of memory. */
dmg_graph_storage *dmg_graph_storage_create(void);

/** Release a storage and all its pages: a dmg_graph's `release`. NULL is allowed. */
void dmg_graph_storage_destroy(void *storage);

#endif
