#include "cli/report/work_balance.h"

#include "cli/base/text.h"
#include "core/base/error.h"

#include <inttypes.h>

/* The fields of the figures, by name. */
static const struct {
    const char *name;
    size_t offset;
} fields[] = {{"busy_ns", offsetof(dmg_worker_figures, busy_ns)},
              {"wait_ns", offsetof(dmg_worker_figures, wait_ns)},
              {"arcs", offsetof(dmg_worker_figures, arcs)},
              {"largest_task", offsetof(dmg_worker_figures, largest_task)},
              {"lists_cut", offsetof(dmg_worker_figures, lists_cut)},
              {"segments", offsetof(dmg_worker_figures, segments)},
              {"segments_stolen", offsetof(dmg_worker_figures, segments_stolen)}};

#define FIELD_COUNT (sizeof fields / sizeof fields[0])

static uint64_t *field_of(dmg_worker_figures *figures, size_t index)
{
    return (uint64_t *)(void *)((char *)figures + fields[index].offset);
}

json_t *dmg_worker_figures_json(const dmg_worker_figures *figures)
{
    dmg_worker_figures copy = *figures;
    json_t *object = json_object();
    for (size_t index = 0; index < FIELD_COUNT; index++) {
        json_object_set_new(object, fields[index].name, json_integer((json_int_t)*field_of(&copy, index)));
    }
    return object;
}

static dmg_status take_count(const json_t *object, const char *name, uint64_t *value)
{
    const json_t *number = json_object_get(object, name);
    if (!json_is_integer(number) || json_integer_value(number) < 0) {
        return dmg_error(DMG_ERR_PROTOCOL, "a node's report has no count '%s' of a worker", name);
    }
    *value = (uint64_t)json_integer_value(number);
    return DMG_OK;
}

dmg_status dmg_worker_figures_from_json(const json_t *object, dmg_worker_figures *figures)
{
    dmg_status status = DMG_OK;
    for (size_t index = 0; index < FIELD_COUNT && status == DMG_OK; index++) {
        status = take_count(object, fields[index].name, field_of(figures, index));
    }
    return status;
}

json_t *dmg_iteration_work_json(const dmg_iteration *iteration)
{
    json_t *object = dmg_worker_figures_json(&iteration->work);
    json_object_set_new(object, "busy_ns_max", json_integer((json_int_t)iteration->busy_ns_max));
    json_object_set_new(object, "arcs_max", json_integer((json_int_t)iteration->arcs_max));
    return object;
}

dmg_status dmg_iteration_work_from_json(const json_t *object, dmg_iteration *iteration)
{
    dmg_status status = dmg_worker_figures_from_json(object, &iteration->work);
    if (status == DMG_OK) {
        status = take_count(object, "busy_ns_max", &iteration->busy_ns_max);
    }
    return status == DMG_OK ? take_count(object, "arcs_max", &iteration->arcs_max) : status;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void dmg_iteration_work_add(dmg_iteration *sum, const dmg_iteration *more)
{
    dmg_worker_figures_add(&sum->work, &more->work);
    sum->busy_ns_max = larger(sum->busy_ns_max, more->busy_ns_max);
    sum->arcs_max = larger(sum->arcs_max, more->arcs_max);
}

void dmg_work_balance_add(dmg_work_balance *balance, const dmg_worker_figures *worker)
{
    balance->workers++;
    dmg_worker_figures_add(&balance->sum, worker);
    balance->busy_ns_max = larger(balance->busy_ns_max, worker->busy_ns);
    balance->arcs_max = larger(balance->arcs_max, worker->arcs);
}

static double mean(const dmg_work_balance *balance, uint64_t sum)
{
    return balance->workers > 0 ? (double)sum / balance->workers : 0;
}

json_t *dmg_work_balance_json(const dmg_work_balance *balance)
{
    json_t *object = dmg_worker_figures_json(&balance->sum);
    json_object_set_new(object, "workers", json_integer(balance->workers));
    json_object_set_new(object, "busy_ns_max", json_integer((json_int_t)balance->busy_ns_max));
    json_object_set_new(object, "busy_ns_mean", json_real(mean(balance, balance->sum.busy_ns)));
    json_object_set_new(object, "arcs_max", json_integer((json_int_t)balance->arcs_max));
    json_object_set_new(object, "arcs_mean", json_real(mean(balance, balance->sum.arcs)));
    return object;
}

void dmg_work_balance_print(FILE *to, const dmg_work_balance *balance)
{
    double busy_mean = mean(balance, balance->sum.busy_ns);
    double arcs_mean = mean(balance, balance->sum.arcs);
    fprintf(to, "balance    the busiest worker %s, %.2f times the mean; the most arcs %s, %.2f times the mean\n",
            dmg_text_seconds((double)balance->busy_ns_max / 1e9).text,
            busy_mean > 0 ? (double)balance->busy_ns_max / busy_mean : 1, dmg_text_count(balance->arcs_max).text,
            arcs_mean > 0 ? (double)balance->arcs_max / arcs_mean : 1);
    fprintf(to,
            "           the largest task %s arcs; %s long lists cut in segments, %s of %s walked by other workers\n",
            dmg_text_count(balance->sum.largest_task).text, dmg_text_count(balance->sum.lists_cut).text,
            dmg_text_count(balance->sum.segments_stolen).text, dmg_text_count(balance->sum.segments).text);
}
