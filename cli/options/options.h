/**
 * @file options.h
 * The one table of what the program can be told: it drives parsing, --help, and the echo of settings in --json.
 *
 * A subcommand lists the options that it takes by their identifiers; everything else about an option stands in the
 * table, in options.c.
 */
#ifndef DMG_CLI_OPTIONS_OPTIONS_H
#define DMG_CLI_OPTIONS_OPTIONS_H

#include "dmgraph/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/** In the order of the table. */
typedef enum dmg_option_id {
    DMG_OPTION_SYSTEM,
    DMG_OPTION_TRANSPORT,
    DMG_OPTION_TRUST_NETWORK,
    DMG_OPTION_MNS,
    DMG_OPTION_CNS,
    DMG_OPTION_THREADS,
    DMG_OPTION_CACHE,
    DMG_OPTION_MEMORY,
    DMG_OPTION_PARTITIONS,
    DMG_OPTION_INDEX_ENTRY_BYTES,
    DMG_OPTION_EMBED,
    DMG_OPTION_TINY_CHUNKS,
    DMG_OPTION_TASKS,
    DMG_OPTION_PIN_THREADS,
    DMG_OPTION_PEER_TIMEOUT,
    DMG_OPTION_NUMA_NODE,
    DMG_OPTION_PAGE_SIZE,
    DMG_OPTION_PREFAULT,
    DMG_OPTION_ALLOW_FALLBACK,
    DMG_OPTION_LINK,
    DMG_OPTION_LINK_LATENCY,
    DMG_OPTION_LINK_BANDWIDTH,
    DMG_OPTION_LINK_MOPS,
    DMG_OPTION_LINK_MODE,
    DMG_OPTION_SOURCE,
    DMG_OPTION_ITERATIONS,
    DMG_OPTION_TOLERANCE,
    DMG_OPTION_DAMPING,
    DMG_OPTION_DIRECTION,
    DMG_OPTION_DENSITY,
    DMG_OPTION_CACHING,
    DMG_OPTION_UPDATES,
    DMG_OPTION_REFERENCE_EDGES,
    DMG_OPTION_REFERENCE_DEGREE,
    DMG_OPTION_REFERENCE_BUFFER,
    DMG_OPTION_VALUE_BUFFER,
    DMG_OPTION_PARTIALS,
    DMG_OPTION_PRECISION,
    DMG_OPTION_MERGE_ACTIVATION,
    DMG_OPTION_BATCH_ACTIVATION,
    DMG_OPTION_MERGE_INDEX,
    DMG_OPTION_BATCH_INDEX,
    DMG_OPTION_MERGE_LISTS,
    DMG_OPTION_BATCH_LISTS,
    DMG_OPTION_WITHOUT,
    DMG_OPTION_RESCHEDULE_DEGREE,
    DMG_OPTION_STEAL_SEGMENTS,
    DMG_OPTION_CACHE_INDEX,
    DMG_OPTION_FORMAT,
    DMG_OPTION_DIRECTED,
    DMG_OPTION_UNDIRECTED,
    DMG_OPTION_UNWEIGHTED,
    DMG_OPTION_DEDUP,
    DMG_OPTION_NO_LOOPS,
    DMG_OPTION_OUT_LISTS_ONLY,
    DMG_OPTION_SCALE,
    DMG_OPTION_EDGE_FACTOR,
    DMG_OPTION_SEED,
    DMG_OPTION_WEIGHTED,
    DMG_OPTION_OPERATIONS,
    DMG_OPTION_SIZES,
    DMG_OPTION_DEPTHS,
    DMG_OPTION_THREAD_COUNTS,
    DMG_OPTION_DURATION,
    DMG_OPTION_CALIBRATE,
    DMG_OPTION_FIT,
    DMG_OPTION_LINK_LIST,
    DMG_OPTION_MN_LIST,
    DMG_OPTION_CN_LIST,
    DMG_OPTION_CSV,
    DMG_OPTION_WITH,
    DMG_OPTION_CNS_LIST,
    DMG_OPTION_ROUNDS,
    DMG_OPTION_REPEATS,
    DMG_OPTION_PREDICT_CNS,
    DMG_OPTION_UNCERTAINTY,
    DMG_OPTION_RUNS_ONLY,
    DMG_OPTION_CSV_FILE,
    DMG_OPTION_OUTPUT,
    DMG_OPTION_VERIFY,
    DMG_OPTION_TABLE,
    DMG_OPTION_JSON,
    DMG_OPTION_QUIET,
    DMG_OPTION_NO_PROGRESS,
    DMG_OPTION_LOG_LEVEL,
    DMG_OPTION_POOL,
    DMG_OPTION_NAME,
    DMG_OPTION_AS,
    DMG_OPTION_BIND,
    DMG_OPTION_JOB_MEMORY,
    DMG_OPTION_JOB_CLIENTS,
    DMG_OPTION_JOB_CHANNELS,
    DMG_OPTION_ADMIN,
    DMG_OPTION_CONTROL_FD,
    DMG_OPTION_HELP,
    DMG_OPTION_HELP_ALL,
    DMG_OPTION_COUNT
} dmg_option_id;

typedef enum dmg_option_type {
    DMG_TYPE_FLAG,    /**< given or not */
    DMG_TYPE_TEXT,    /**< anything */
    DMG_TYPE_TEXTS,   /**< anything, and may be given several times: settings->repeated. At most one a command */
    DMG_TYPE_NUMBER,  /**< an unsigned integer */
    DMG_TYPE_SIZE,    /**< bytes, with K, M, G or T behind the number for powers of 1,024 */
    DMG_TYPE_SIZES,   /**< one or several, with commas between them; its number is the first */
    DMG_TYPE_TIME,    /**< nanoseconds, from a number with ms or s behind it */
    DMG_TYPE_REAL,    /**< a decimal number */
    DMG_TYPE_CHOICE,  /**< one of the words in `choices` */
    DMG_TYPE_SWITCHES /**< names of switches, with commas between them: these are off, and all others on; or "none" */
} dmg_option_type;

/** Whom help tells of an option. */
typedef enum dmg_option_audience {
    DMG_FOR_USERS,
    DMG_FOR_RESEARCH, /**< --help-all alone */
    DMG_HIDDEN        /**< nobody: for scripts of an earlier release */
} dmg_option_audience;

/** A word of a choice as an earlier release had it: taken for the new word, and named nowhere. */
typedef struct dmg_old_word {
    const char *old_word; /**< NULL: the end of the list */
    const char *word;
} dmg_old_word;

/** A row of the table. */
typedef struct dmg_option {
    const char *name; /**< without the dashes */
    dmg_option_type type;
    const char *placeholder;  /**< in --help; NULL for flags and choices */
    const char *choices;      /**< "auto|push|pull" */
    const char *default_text; /**< parsed like what a user gives; NULL: there is none */
    uint64_t least, most;     /**< of numbers, sizes and times */
    double real_least, real_most;
    const char *help;
    const dmg_old_word *old_words; /**< of a choice; NULL: there are none */
    dmg_option_audience audience;
    bool is_switch; /**< "on|off", and named by the option of type DMG_TYPE_SWITCHES */
} dmg_option;

/** What an option was set to. */
typedef struct dmg_option_value {
    bool is_given; /**< by the user */
    bool has_value;
    uint64_t number; /**< flags (0 or 1), numbers, sizes, times, the index of a choice */
    double real;
    const char *text; /**< as it stood on the command line, or the default */
} dmg_option_value;

#define DMG_POSITIONALS_MAX 9
/** Sizes that one option takes. */
#define DMG_SIZES_MAX 16
/** Times that an option of type DMG_TYPE_TEXTS is taken. */
#define DMG_REPEATS_MAX 6

/** All settings of one call of the program. The texts point into argv. */
typedef struct dmg_settings {
    dmg_option_value values[DMG_OPTION_COUNT];
    const char *positionals[DMG_POSITIONALS_MAX];
    uint32_t positional_count;
    const char *repeated[DMG_REPEATS_MAX]; /**< the values of the option that may be given several times */
    uint32_t repeated_count;
} dmg_settings;

const dmg_option *dmg_option_get(dmg_option_id id);

/**
 * Parse arguments (without the program's and the subcommand's names).
 *
 * @param allowed  identifiers of the options that are taken, ending with DMG_OPTION_COUNT
 * @param[out] settings  defaults for all allowed options, and what was given
 * @return DMG_OK, or DMG_ERR_ARGUMENT with one sentence: an unknown option (and the nearest known one), a missing or
 * wrong value, too many arguments
 */
dmg_status dmg_options_parse(const dmg_option_id *allowed, int count, char *const *arguments, dmg_settings *settings);

/** Parse a text as the default of an option, which it becomes: the option does not count as given. DMG_ERR_ARGUMENT. */
dmg_status dmg_options_set_default(dmg_settings *settings, dmg_option_id id, const char *text);

/** Parse one value of a size ("64M") or a time ("5s", "200ms"); DMG_ERR_ARGUMENT. */
dmg_status dmg_parse_size(const char *text, uint64_t *bytes);
dmg_status dmg_parse_time(const char *text, uint64_t *duration_ns);
/** Sizes with commas between them, as many as there is room for; DMG_ERR_ARGUMENT. */
dmg_status dmg_parse_sizes(const char *text, uint64_t *sizes, uint32_t capacity, uint32_t *count);
/** An unsigned decimal integer and nothing else; DMG_ERR_ARGUMENT. */
dmg_status dmg_parse_number(const char *text, uint64_t *number);

/**
 * Refuse options that have no effect as the command is asked: DMG_ERR_ARGUMENT for the first one of these (ending with
 * DMG_OPTION_COUNT) that was given. `why` ends the sentence, as "with --fit".
 */
dmg_status dmg_options_refuse(const dmg_settings *settings, const dmg_option_id *ids, const char *why);

/** Print the help lines of these options, aligned: those for the audience, and those for users. Returns how many are
 * for others. */
uint32_t dmg_options_print(FILE *to, const dmg_option_id *allowed, dmg_option_audience audience);

/** The settings of these options as an object, by name: null where there is none. Sizes in bytes, times in seconds. */
json_t *dmg_options_json(const dmg_option_id *allowed, const dmg_settings *settings);

static inline bool dmg_flag(const dmg_settings *settings, dmg_option_id id)
{
    return settings->values[id].number != 0;
}

static inline uint64_t dmg_number(const dmg_settings *settings, dmg_option_id id)
{
    return settings->values[id].number;
}

static inline bool dmg_has(const dmg_settings *settings, dmg_option_id id)
{
    return settings->values[id].has_value;
}

static inline const char *dmg_value_text(const dmg_settings *settings, dmg_option_id id)
{
    return settings->values[id].text;
}

/** Set a value that the program computed, so that the echo shows it. */
static inline void dmg_set_number(dmg_settings *settings, dmg_option_id id, uint64_t number)
{
    settings->values[id].number = number;
    settings->values[id].has_value = true;
}

/** How a graph is stored in the pool, for a list of options. */
#define DMG_STORE_OPTIONS DMG_OPTION_PARTITIONS, DMG_OPTION_INDEX_ENTRY_BYTES, DMG_OPTION_EMBED, DMG_OPTION_TINY_CHUNKS

#endif
