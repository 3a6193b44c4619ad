#include "cli/options/algorithm_options.h"

#include "core/base/error.h"

#include <string.h>

/** An option, or one of its choices, and what an algorithm must take for it. */
typedef struct option_row {
    dmg_algorithm_choice needs;
    dmg_option_id id;
    const char *choice; /* NULL: whatever it is set to */
} option_row;

static const option_row rows[] = {
    {DMG_TAKES_SOURCE, DMG_OPTION_SOURCE, NULL},       {DMG_TAKES_ITERATIONS, DMG_OPTION_ITERATIONS, NULL},
    {DMG_TAKES_TOLERANCE, DMG_OPTION_TOLERANCE, NULL}, {DMG_TAKES_DAMPING, DMG_OPTION_DAMPING, NULL},
    {DMG_TAKES_PARTIALS, DMG_OPTION_PARTIALS, NULL},   {DMG_TAKES_PRECISION, DMG_OPTION_PRECISION, NULL},
    {DMG_TAKES_PULL, DMG_OPTION_DIRECTION, "pull"},    {DMG_TAKES_SPARSE, DMG_OPTION_DENSITY, "sparse"},
};

#define ROWS (sizeof rows / sizeof rows[0])

static bool is_set_to(const dmg_settings *settings, dmg_option_id id, const char *choice)
{
    const char *text = dmg_value_text(settings, id);
    return dmg_has(settings, id) && text && strcmp(text, choice) == 0;
}

static bool is_asked_for(const dmg_settings *settings, const option_row *row)
{
    return settings->values[row->id].is_given && (!row->choice || is_set_to(settings, row->id, row->choice));
}

bool dmg_algorithm_takes_option(const dmg_algorithm *algorithm, const dmg_settings *settings, dmg_option_id id)
{
    for (size_t row = 0; row < ROWS; row++) {
        if (rows[row].id == id && is_asked_for(settings, &rows[row]) &&
            !dmg_algorithm_takes(algorithm, rows[row].needs)) {
            return false;
        }
    }
    return true;
}

/* ---- checks ---- */

static bool one_takes(const dmg_algorithm *const *algorithms, uint32_t count, dmg_algorithm_choice choice)
{
    for (uint32_t i = 0; i < count; i++) {
        if (dmg_algorithm_takes(algorithms[i], choice)) {
            return true;
        }
    }
    return false;
}

/** "bfs, sssp": the algorithms of these that take it, or do not. */
static void name_algorithms(const dmg_algorithm *const *algorithms, uint32_t count, dmg_algorithm_choice choice,
                            bool take, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < count && used < capacity; i++) {
        if (dmg_algorithm_takes(algorithms[i], choice) == take) {
            int length = snprintf(text + used, capacity - used, "%s%s", used ? ", " : "", algorithms[i]->name);
            used += length > 0 ? (size_t)length : 0;
        }
    }
}

static uint32_t algorithm_count(void)
{
    uint32_t count = 0;
    while (dmg_algorithms[count]) {
        count++;
    }
    return count;
}

static dmg_status refuse(const option_row *row, const dmg_algorithm *const *algorithms, uint32_t count)
{
    char asked[128];
    char others[128];
    name_algorithms(algorithms, count, row->needs, false, asked, sizeof asked);
    name_algorithms(dmg_algorithms, algorithm_count(), row->needs, true, others, sizeof others);
    return dmg_error(DMG_ERR_ARGUMENT, "--%s%s%s is no option of %s, but of %s: leave it out",
                     dmg_option_get(row->id)->name, row->choice ? " " : "", row->choice ? row->choice : "", asked,
                     others);
}

/** One that was given, beside another setting with which it has no effect. */
static dmg_status refuse_beside(dmg_option_id id, const char *why)
{
    return dmg_error(DMG_ERR_ARGUMENT, "--%s has no effect %s: leave one of them out", dmg_option_get(id)->name, why);
}

static dmg_status check_contradictions(const dmg_settings *settings)
{
    const dmg_option_value *values = settings->values;
    if (is_set_to(settings, DMG_OPTION_DIRECTION, "pull") && is_set_to(settings, DMG_OPTION_DENSITY, "sparse")) {
        return dmg_error(DMG_ERR_ARGUMENT,
                         "--direction pull and --density sparse contradict each other: a sparse iteration pushes");
    }
    bool pushes = is_set_to(settings, DMG_OPTION_DIRECTION, "push");
    if (pushes && values[DMG_OPTION_PARTIALS].is_given) {
        return refuse_beside(DMG_OPTION_PARTIALS, "where iterations push (--direction push)");
    }
    if (pushes && values[DMG_OPTION_PRECISION].is_given && is_set_to(settings, DMG_OPTION_PRECISION, "single")) {
        return refuse_beside(DMG_OPTION_PRECISION,
                             "where iterations push (--direction push): what they cache is double");
    }
    bool has_references = dmg_number(settings, DMG_OPTION_REFERENCE_EDGES) > 0;
    if (!has_references && dmg_has(settings, DMG_OPTION_REFERENCE_EDGES)) {
        static const dmg_option_id of_references[] = {DMG_OPTION_REFERENCE_DEGREE, DMG_OPTION_REFERENCE_BUFFER};
        for (size_t i = 0; i < sizeof of_references / sizeof of_references[0]; i++) {
            if (values[of_references[i]].is_given) {
                return refuse_beside(of_references[i], "where nothing is passed by reference (--reference-edges 0)");
            }
        }
    }
    if (values[DMG_OPTION_VALUE_BUFFER].is_given && is_set_to(settings, DMG_OPTION_UPDATES, "direct")) {
        return refuse_beside(DMG_OPTION_VALUE_BUFFER, "where nothing is passed by value (--updates direct)");
    }
    if (values[DMG_OPTION_STEAL_SEGMENTS].is_given && dmg_has(settings, DMG_OPTION_RESCHEDULE_DEGREE) &&
        dmg_number(settings, DMG_OPTION_RESCHEDULE_DEGREE) == 0) {
        return refuse_beside(DMG_OPTION_STEAL_SEGMENTS, "where no list is cut (--reschedule-degree 0)");
    }
    return DMG_OK;
}

dmg_status dmg_algorithm_options_check(const dmg_settings *settings, const dmg_algorithm *const *algorithms,
                                       uint32_t count)
{
    for (size_t row = 0; row < ROWS; row++) {
        if (is_asked_for(settings, &rows[row]) && !one_takes(algorithms, count, rows[row].needs)) {
            return refuse(&rows[row], algorithms, count);
        }
    }
    return check_contradictions(settings);
}

/* ---- help ---- */

void dmg_algorithm_options_print(FILE *to)
{
    fprintf(to, "\nalgorithms, and what not all of them take:\n");
    for (const dmg_algorithm *const *algorithm = dmg_algorithms; *algorithm; algorithm++) {
        const char *separator = "takes";
        fprintf(to, "  %-9s %s\n            ", (*algorithm)->name, (*algorithm)->summary);
        for (size_t row = 0; row < ROWS; row++) {
            if (dmg_algorithm_takes(*algorithm, rows[row].needs)) {
                fprintf(to, "%s --%s%s%s", separator, dmg_option_get(rows[row].id)->name, rows[row].choice ? " " : "",
                        rows[row].choice ? rows[row].choice : "");
                separator = ",";
            }
        }
        fputc('\n', to);
    }
}
