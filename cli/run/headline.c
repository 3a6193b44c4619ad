#include "cli/run/headline.h"

#include "cli/base/text.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOP_COUNT 3

typedef struct headline_kind headline_kind;

struct dmg_headline {
    const headline_kind *kind; /* NULL: unknown algorithm */
    const dmg_graph *graph;
    uint64_t reached;
    uint64_t depth_max;
    double distance_max;
    uint32_t farthest;
    double sum;
    uint64_t components;
    uint32_t *component_sizes; /* by label */
    uint32_t top_count;
    uint32_t top[TOP_COUNT]; /* descending by rank, then ascending by id */
    double top_rank[TOP_COUNT];
};

struct headline_kind {
    const char *name;
    bool counts_components;
    void (*add)(dmg_headline *headline, uint64_t vertex, const void *value);
    json_t *(*json)(const dmg_headline *headline);
    void (*print)(FILE *to, const dmg_headline *headline);
    uint32_t value_bytes;
};

static uint64_t id_of(const dmg_headline *headline, uint32_t vertex)
{
    return dmg_graph_id(headline->graph, vertex);
}

/* ---- bfs ---- */

static void add_bfs(dmg_headline *headline, uint64_t vertex, const void *value)
{
    (void)vertex;
    uint64_t word = *(const uint64_t *)value;
    if (word != UINT64_MAX) {
        headline->reached++;
        headline->depth_max = word >> 32 > headline->depth_max ? word >> 32 : headline->depth_max;
    }
}

static json_t *json_bfs(const dmg_headline *headline)
{
    return json_pack("{s:I, s:I}", "reached", (json_int_t)headline->reached, "largest_depth",
                     (json_int_t)headline->depth_max);
}

static void print_bfs(FILE *to, const dmg_headline *headline)
{
    fprintf(to, "%s of %s vertices reached, the deepest at depth %" PRIu64 "\n", dmg_text_count(headline->reached).text,
            dmg_text_count(headline->graph->vertex_count).text, headline->depth_max);
}

/* ---- cc ---- */

static void add_cc(dmg_headline *headline, uint64_t vertex, const void *value)
{
    uint32_t label = *(const uint32_t *)value;
    headline->components += label == vertex;
    if (label < headline->graph->vertex_count) {
        headline->component_sizes[label]++;
    }
}

static uint32_t largest_component(const dmg_headline *headline)
{
    uint32_t largest = 0;
    for (uint32_t label = 1; label < headline->graph->vertex_count; label++) {
        if (headline->component_sizes[label] > headline->component_sizes[largest]) {
            largest = label;
        }
    }
    return largest;
}

static json_t *json_cc(const dmg_headline *headline)
{
    json_t *object = json_pack("{s:I}", "components", (json_int_t)headline->components);
    if (headline->graph->vertex_count > 0) {
        uint32_t largest = largest_component(headline);
        json_object_set_new(object, "largest_component", dmg_json_id(id_of(headline, largest)));
        json_object_set_new(object, "largest_component_vertices", json_integer(headline->component_sizes[largest]));
    }
    return object;
}

static void print_cc(FILE *to, const dmg_headline *headline)
{
    fprintf(to, "%s %s", dmg_text_count(headline->components).text,
            headline->components == 1 ? "component" : "components");
    if (headline->graph->vertex_count > 0) {
        uint32_t largest = largest_component(headline);
        fprintf(to, ", the largest (%" PRIu64 ") with %s of %s vertices", id_of(headline, largest),
                dmg_text_count(headline->component_sizes[largest]).text,
                dmg_text_count(headline->graph->vertex_count).text);
    }
    fputc('\n', to);
}

/* ---- pagerank ---- */

static void add_pagerank(dmg_headline *headline, uint64_t vertex, const void *value)
{
    double rank = *(const double *)value;
    headline->sum += rank;
    uint32_t place = headline->top_count;
    while (place > 0 && rank > headline->top_rank[place - 1]) {
        place--;
    }
    if (place == TOP_COUNT) {
        return;
    }
    uint32_t last = headline->top_count < TOP_COUNT ? headline->top_count++ : TOP_COUNT - 1;
    for (; last > place; last--) {
        headline->top[last] = headline->top[last - 1];
        headline->top_rank[last] = headline->top_rank[last - 1];
    }
    headline->top[place] = (uint32_t)vertex;
    headline->top_rank[place] = rank;
}

static json_t *json_pagerank(const dmg_headline *headline)
{
    json_t *top = json_array();
    for (uint32_t place = 0; place < headline->top_count; place++) {
        json_t *entry = json_object();
        json_object_set_new(entry, "id", dmg_json_id(id_of(headline, headline->top[place])));
        json_object_set_new(entry, "rank", json_real(headline->top_rank[place]));
        json_array_append_new(top, entry);
    }
    return json_pack("{s:f, s:o}", "sum", headline->sum, "top", top);
}

static void print_pagerank(FILE *to, const dmg_headline *headline)
{
    fprintf(to, "the ranks add up to %.9f; the highest are", headline->sum);
    for (uint32_t place = 0; place < headline->top_count; place++) {
        fprintf(to, "%s %" PRIu64 " (%.4g)", place ? "," : "", id_of(headline, headline->top[place]),
                headline->top_rank[place]);
    }
    fputc('\n', to);
}

/* ---- sssp ---- */

static void add_sssp(dmg_headline *headline, uint64_t vertex, const void *value)
{
    double distance = *(const double *)value;
    if (isfinite(distance)) {
        headline->reached++;
        if (distance > headline->distance_max) {
            headline->distance_max = distance;
            headline->farthest = (uint32_t)vertex;
        }
    }
}

static json_t *json_sssp(const dmg_headline *headline)
{
    return json_pack("{s:I, s:f}", "reached", (json_int_t)headline->reached, "largest_distance",
                     headline->distance_max);
}

static void print_sssp(FILE *to, const dmg_headline *headline)
{
    fprintf(to, "%s of %s vertices reached, the farthest at distance %.9g", dmg_text_count(headline->reached).text,
            dmg_text_count(headline->graph->vertex_count).text, headline->distance_max);
    if (headline->distance_max > 0) {
        fprintf(to, " (vertex %" PRIu64 ")", id_of(headline, headline->farthest));
    }
    fputc('\n', to);
}

static const headline_kind kinds[] = {
    {"bfs", false, add_bfs, json_bfs, print_bfs, sizeof(uint64_t)},
    {"cc", true, add_cc, json_cc, print_cc, sizeof(uint32_t)},
    {"pagerank", false, add_pagerank, json_pagerank, print_pagerank, sizeof(double)},
    {"sssp", false, add_sssp, json_sssp, print_sssp, sizeof(double)},
};

dmg_status dmg_headline_create(const dmg_algorithm *algorithm, const dmg_graph *graph, dmg_headline **result)
{
    dmg_headline *headline = calloc(1, sizeof *headline);
    if (!headline) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the headline");
    }
    headline->graph = graph;
    for (size_t index = 0; index < sizeof kinds / sizeof kinds[0]; index++) {
        if (strcmp(kinds[index].name, algorithm->name) == 0 && kinds[index].value_bytes == algorithm->value_bytes) {
            headline->kind = &kinds[index];
        }
    }
    if (headline->kind && headline->kind->counts_components) {
        headline->component_sizes = calloc(graph->vertex_count + 1, sizeof *headline->component_sizes);
        if (!headline->component_sizes) {
            free(headline);
            return dmg_error(DMG_ERR_MEMORY, "no memory to count %" PRIu64 " components", graph->vertex_count);
        }
    }
    *result = headline;
    return DMG_OK;
}

void dmg_headline_destroy(dmg_headline *headline)
{
    if (headline) {
        free(headline->component_sizes);
        free(headline);
    }
}

void dmg_headline_add(dmg_headline *headline, uint64_t first, uint64_t count, const void *values)
{
    if (!headline->kind) {
        return;
    }
    const char *value = values;
    for (uint64_t index = 0; index < count; index++) {
        headline->kind->add(headline, first + index, value + index * headline->kind->value_bytes);
    }
}

json_t *dmg_headline_json(const dmg_headline *headline)
{
    return headline->kind ? headline->kind->json(headline) : json_object();
}

void dmg_headline_print(FILE *to, const dmg_headline *headline)
{
    if (headline->kind) {
        headline->kind->print(to, headline);
    } else {
        fprintf(to, "%s values\n", dmg_text_count(headline->graph->vertex_count).text);
    }
}
