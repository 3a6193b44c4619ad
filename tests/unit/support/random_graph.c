#include "unit/support/random_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct test_arc {
    uint32_t from;
    uint32_t to;
    dmg_weight weight;
} test_arc;

typedef struct arc_list {
    test_arc *arcs;
    uint64_t count;
    uint64_t capacity;
} arc_list;

static void *allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count > 0 ? count : 1, bytes);
    if (!memory) {
        fprintf(stderr, "no memory for a random graph\n");
        exit(1);
    }
    return memory;
}

static void add(arc_list *list, test_arc arc)
{
    if (list->count == list->capacity) {
        list->capacity = list->capacity * 2 + 1024;
        list->arcs = realloc(list->arcs, list->capacity * sizeof *list->arcs);
        if (!list->arcs) {
            fprintf(stderr, "no memory for a random graph\n");
            exit(1);
        }
    }
    list->arcs[list->count++] = arc;
}

static dmg_weight random_weight(dmg_weight_kind kind, dmg_random *random)
{
    int32_t value = (int32_t)dmg_random_below(random, 1000);
    return kind == DMG_WEIGHT_FLOAT32 ? (dmg_weight){.as_float32 = (float)value / 8} : (dmg_weight){.as_int32 = value};
}

static void fill(const dmg_random_graph_options *options, dmg_random *random, arc_list *list)
{
    uint64_t count = options->vertex_count;
    uint32_t hubs = options->hub_count < count ? options->hub_count : (uint32_t)count;
    for (uint64_t vertex = 0; vertex < count; vertex++) {
        bool is_hub = hubs > 0 && vertex % (count / hubs) == count / hubs - 1;
        uint64_t degree = is_hub                             ? options->hub_degree
                          : dmg_random_below(random, 4) == 0 ? 0
                                                             : dmg_random_below(random, options->degree_max + 1u);
        for (uint64_t i = 0; i < degree; i++) {
            test_arc arc = {(uint32_t)vertex, (uint32_t)dmg_random_below(random, count),
                            random_weight(options->weight_kind, random)};
            add(list, arc);
            if (!options->is_directed && arc.from != arc.to) {
                uint32_t from = arc.from;
                arc.from = arc.to;
                arc.to = from;
                add(list, arc);
            }
        }
    }
}

static int compare(const void *a, const void *b)
{
    const test_arc *one = a;
    const test_arc *other = b;
    if (one->from != other->from) {
        return one->from < other->from ? -1 : 1;
    }
    return one->to < other->to ? -1 : one->to > other->to;
}

static dmg_adjacency make_adjacency(arc_list *list, uint64_t vertex_count, bool is_weighted)
{
    uint64_t *offsets = allocate(vertex_count + 1, sizeof *offsets);
    uint32_t *destinations = allocate(list->count, sizeof *destinations);
    dmg_weight *weights = is_weighted ? allocate(list->count, sizeof *weights) : NULL;
    qsort(list->arcs, list->count, sizeof *list->arcs, compare);
    for (uint64_t i = 0; i < list->count; i++) {
        offsets[list->arcs[i].from + 1]++;
        destinations[i] = list->arcs[i].to;
        if (weights) {
            weights[i] = list->arcs[i].weight;
        }
    }
    for (uint64_t vertex = 0; vertex < vertex_count; vertex++) {
        offsets[vertex + 1] += offsets[vertex];
    }
    return (dmg_adjacency){offsets, destinations, weights};
}

static void free_adjacency(dmg_adjacency *adjacency)
{
    free((void *)adjacency->offsets);
    free((void *)adjacency->destinations);
    free((void *)adjacency->weights);
}

/** The owner is a copy of the graph, made before anyone could change it. */
static void release(void *owner)
{
    dmg_graph *graph = owner;
    free_adjacency(&graph->out);
    free_adjacency(&graph->in);
    free((void *)graph->ids);
    free(graph);
}

static void own(dmg_graph *graph)
{
    dmg_graph *owner = allocate(1, sizeof *owner);
    *owner = *graph;
    graph->owner = owner;
    graph->release = release;
}

void dmg_random_graph_make(const dmg_random_graph_options *options, dmg_random *random, dmg_graph *graph)
{
    arc_list list = {allocate(1024, sizeof(test_arc)), 0, 1024};
    bool is_weighted = options->weight_kind != DMG_WEIGHT_NONE;
    fill(options, random, &list);
    *graph = (dmg_graph){
        .vertex_count = options->vertex_count,
        .arc_count = list.count,
        .is_directed = options->is_directed,
        .weight_kind = options->weight_kind,
        .out = make_adjacency(&list, options->vertex_count, is_weighted),
        .first_id = options->has_ids ? 0 : dmg_random_below(random, 1000),
    };
    if (options->is_directed) {
        for (uint64_t i = 0; i < list.count; i++) {
            uint32_t from = list.arcs[i].from;
            list.arcs[i].from = list.arcs[i].to;
            list.arcs[i].to = from;
        }
        graph->in = make_adjacency(&list, options->vertex_count, is_weighted);
    }
    free(list.arcs);
    if (options->has_ids) {
        uint64_t *ids = allocate(options->vertex_count, sizeof *ids);
        for (uint64_t vertex = 0; vertex < options->vertex_count; vertex++) {
            ids[vertex] = (vertex > 0 ? ids[vertex - 1] + 1 : 0) + dmg_random_below(random, UINT64_C(1) << 40);
        }
        graph->ids = ids;
    }
    own(graph);
}

void dmg_sparse_graph_make(uint64_t vertex_count, uint64_t stride, uint32_t degree, bool has_ids, dmg_graph *graph)
{
    uint64_t list_count = (vertex_count + stride - 1) / stride;
    uint64_t *offsets = allocate(vertex_count + 1, sizeof *offsets);
    uint32_t *destinations = allocate(list_count * degree, sizeof *destinations);
    uint64_t *ids = has_ids ? allocate(vertex_count, sizeof *ids) : NULL;
    for (uint64_t vertex = 0; vertex < vertex_count; vertex++) {
        offsets[vertex + 1] = offsets[vertex] + (vertex % stride == 0 ? degree : 0);
        if (ids) {
            ids[vertex] = 10 * vertex;
        }
    }
    for (uint64_t i = 0; i < list_count * degree; i++) {
        destinations[i] = (uint32_t)(i % degree);
    }
    *graph = (dmg_graph){
        .vertex_count = vertex_count,
        .arc_count = offsets[vertex_count],
        .is_directed = true,
        .out = {.offsets = offsets, .destinations = destinations},
        .ids = ids,
    };
    own(graph);
}
