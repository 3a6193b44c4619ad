#include "cli/run/headline.h"

#include "cli/base/text.h"
#include "core/base/error.h"

#include <stdlib.h>

struct dmg_headline {
    const dmg_answer_count *answer;
    const dmg_graph *graph;
    void *count;
};

dmg_status dmg_headline_create(const dmg_algorithm *algorithm, const dmg_graph *graph, dmg_headline **result)
{
    *result = NULL;
    dmg_headline *headline = calloc(1, sizeof *headline);
    void *count = calloc(1, algorithm->answer.count_bytes + 1);
    if (!headline || !count) {
        free(headline);
        free(count);
        return dmg_error(DMG_ERR_MEMORY, "no memory for the headline");
    }
    *headline = (dmg_headline){.answer = &algorithm->answer, .graph = graph, .count = count};
    dmg_status status = algorithm->answer.begin ? algorithm->answer.begin(count, graph) : DMG_OK;
    if (status != DMG_OK) {
        dmg_headline_destroy(headline);
        return status;
    }
    *result = headline;
    return DMG_OK;
}

void dmg_headline_destroy(dmg_headline *headline)
{
    if (headline) {
        if (headline->answer->end) {
            headline->answer->end(headline->count);
        }
        free(headline->count);
        free(headline);
    }
}

void dmg_headline_add(dmg_headline *headline, uint64_t first, uint64_t count, const void *values)
{
    headline->answer->add(headline->count, first, count, values);
}

/* ---- facts as JSON ---- */

typedef struct json_facts {
    json_t *object;
    json_t *rows; /* of the list that was begun last */
    json_t *row;  /* NULL: none has begun */
} json_facts;

static void set(json_facts *facts, const char *name, json_t *value)
{
    json_object_set_new(facts->row ? facts->row : facts->object, name, value);
}

static void set_count(void *context, const char *name, uint64_t value)
{
    set(context, name, json_integer((json_int_t)value));
}

static void set_real(void *context, const char *name, double value)
{
    set(context, name, json_real(value));
}

static void set_id(void *context, const char *name, uint64_t external_id)
{
    set(context, name, dmg_json_id(external_id));
}

static void begin_list(void *context, const char *name)
{
    json_facts *facts = context;
    facts->rows = json_array();
    json_object_set_new(facts->object, name, facts->rows);
}

static void begin_row(void *context)
{
    json_facts *facts = context;
    facts->row = json_object();
    json_array_append_new(facts->rows, facts->row);
}

static void end_row(void *context)
{
    ((json_facts *)context)->row = NULL;
}

json_t *dmg_headline_json(const dmg_headline *headline)
{
    json_facts facts = {.object = json_object()};
    const dmg_fact_writer writer = {.context = &facts,
                                    .count = set_count,
                                    .real = set_real,
                                    .id = set_id,
                                    .begin_list = begin_list,
                                    .begin_row = begin_row,
                                    .end_row = end_row};
    headline->answer->report(headline->count, headline->graph, &writer);
    return facts.object;
}

void dmg_headline_print(FILE *to, const dmg_headline *headline)
{
    headline->answer->print(headline->count, headline->graph, to);
}
