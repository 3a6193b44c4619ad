#include "core/store/list_placement.h"

#include "core/base/error.h"
#include "core/store/graph_store.h"

#include <stdlib.h>
#include <string.h>

/* A batch with more than this part of a node's mean share is cut: nodes then differ by less than 2 percent. */
#define HEAVY_SHARE 64
/* Pieces are not cut smaller than this: fetching one costs bandwidth then, not operations. */
#define HEAVY_ARCS_MIN 32768

/* What each node has been given so far. */
typedef struct dealt_arcs {
    const dmg_pool_shares *shares;
    uint64_t arcs[DMG_MEMORY_NODES_MAX];
} dealt_arcs;

/* Deal `arcs` to the node that then has least for its share; the first one of those. */
static uint8_t share(dealt_arcs *dealt, uint64_t arcs)
{
    const uint64_t *weight = dealt->shares->weight;
    uint32_t best = 0;
    for (uint32_t node = 1; node < dealt->shares->node_count; node++) {
        /* arcs / weight, compared without a division; a node without a share never wins. */
        unsigned __int128 left = (unsigned __int128)(dealt->arcs[node] + arcs) * weight[best];
        unsigned __int128 right = (unsigned __int128)(dealt->arcs[best] + arcs) * weight[node];
        if (weight[node] > 0 && (weight[best] == 0 || left < right)) {
            best = node;
        }
    }
    dealt->arcs[best] += arcs;
    return (uint8_t)best;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

dmg_status dmg_list_placement_make(const dmg_pool_shares *shares, uint64_t vertex_count, const uint64_t *offsets,
                                   uint64_t first, uint64_t last, dmg_list_placement *placement)
{
    /* Batches are placed whole, also the one that `last` lies in. */
    uint64_t batches = last / DMG_STORE_BATCH_VERTICES + (last % DMG_STORE_BATCH_VERTICES != 0);
    uint64_t units = (batches * DMG_STORE_BATCH_VERTICES - first) / DMG_PLACEMENT_VERTICES + 1;
    *placement = (dmg_list_placement){.first = first, .nodes = malloc(units)};
    if (!placement->nodes) {
        return dmg_error(DMG_ERR_MEMORY, "placing the lists of %llu vertices: out of memory",
                         (unsigned long long)(last - first));
    }
    dealt_arcs dealt = {.shares = shares};
    uint64_t heavy = offsets[vertex_count] / shares->node_count / HEAVY_SHARE;
    heavy = heavy > HEAVY_ARCS_MIN ? heavy : HEAVY_ARCS_MIN;
    for (uint64_t batch = 0; batch < last; batch += DMG_STORE_BATCH_VERTICES) {
        uint64_t batch_end = lesser(batch + DMG_STORE_BATCH_VERTICES, vertex_count);
        /* Pieces of a batch that is not heavy are the batch. */
        for (uint64_t begin = batch, end; begin < batch_end; begin = end) {
            end = batch_end;
            if (offsets[end] - offsets[begin] > heavy) {
                end = lesser(begin + DMG_PLACEMENT_VERTICES, batch_end);
                while (end < batch_end &&
                       offsets[lesser(end + DMG_PLACEMENT_VERTICES, batch_end)] - offsets[begin] <= heavy) {
                    end = lesser(end + DMG_PLACEMENT_VERTICES, batch_end);
                }
            }
            uint8_t node = share(&dealt, offsets[end] - offsets[begin]);
            if (begin >= first) {
                uint64_t unit = (begin - first) / DMG_PLACEMENT_VERTICES;
                memset(placement->nodes + unit, node, (end - begin - 1) / DMG_PLACEMENT_VERTICES + 1);
            }
        }
    }
    return DMG_OK;
}

void dmg_list_placement_destroy(dmg_list_placement *placement)
{
    free(placement->nodes);
    *placement = (dmg_list_placement){0};
}
