#include "formats/graph.h"

#include "formats/graph_storage.h"

#include <stdlib.h>
#include <string.h>

/* An empty list must still have an address: consumers tell "no weights" from "no arcs" by NULL. */
static const uint32_t no_destinations[1];
static const dmg_weight no_weights[1];

void dmg_adjacency_storage_release(dmg_adjacency_storage *storage)
{
    dmg_pages_release(&storage->offsets);
    dmg_pages_release(&storage->destinations);
    dmg_pages_release(&storage->weights);
}

dmg_adjacency dmg_adjacency_storage_view(const dmg_adjacency_storage *storage, bool is_weighted)
{
    dmg_adjacency view = {.offsets = storage->offsets.memory,
                          .destinations = storage->destinations.memory,
                          .weights = storage->weights.memory};
    if (!view.destinations) {
        view.destinations = no_destinations;
    }
    if (is_weighted && !view.weights) {
        view.weights = no_weights;
    }
    return view;
}

dmg_graph_storage *dmg_graph_storage_create(void)
{
    return calloc(1, sizeof(dmg_graph_storage));
}

void dmg_graph_storage_destroy(void *storage)
{
    dmg_graph_storage *own = storage;
    if (!own) {
        return;
    }
    dmg_adjacency_storage_release(&own->out);
    dmg_adjacency_storage_release(&own->in);
    dmg_pages_release(&own->ids);
    free(own);
}

void dmg_graph_close(dmg_graph *graph)
{
    if (graph->release) {
        graph->release(graph->owner);
    }
    memset(graph, 0, sizeof *graph);
}

uint32_t dmg_graph_find(const dmg_graph *graph, uint64_t id)
{
    if (!graph->ids) {
        return id >= graph->first_id && id - graph->first_id < graph->vertex_count ? (uint32_t)(id - graph->first_id)
                                                                                   : DMG_NO_VERTEX;
    }
    uint64_t low = 0;
    uint64_t high = graph->vertex_count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (graph->ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < graph->vertex_count && graph->ids[low] == id ? (uint32_t)low : DMG_NO_VERTEX;
}
