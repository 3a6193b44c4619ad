/**
 * @file compare.h
 * The same work over several interconnects: what is compared, and what came out. The parts are
 *
 *     command_compare.c      the course, from the settings to the exit code
 *     compare_host.c         the machine, and how much of it is left
 *     compare_plan.c         which configurations, algorithms and numbers of compute nodes
 *     compare_child.c        a call of this program, and the JSON that it prints
 *     compare_runs.c         the runs, in turns
 *     compare_micro.c        what the transports do by themselves, and whether the emulated links hold
 *     compare_statistics.c   medians, spreads, winners
 *     compare_verdict.c      who is faster, whether links or software decide it, and what may be said of that
 *     compare_view.c         the runs as those two want them
 *     compare_sensitivity.c  what if the links were a little different, by the model of predict_model.h
 *     compare_predict.c      what that model makes of it with other numbers of compute nodes
 *     compare_answer.c       the sentences of a whole comparison, in their order
 *     compare_print.c        a table for people
 *     compare_json.c         one object for programs
 *     compare_csv.c          all numbers
 *     compare_page.c         the HTML report; its figures are in compare_figures_*.c
 */
#ifndef DMG_CLI_COMPARE_COMPARE_H
#define DMG_CLI_COMPARE_COMPARE_H

#include "cli/base/output_file.h"
#include "cli/compare/sensitivity.h"
#include "cli/compare/statistics.h"
#include "cli/compare/verdict.h"
#include "cli/graph/graph_source.h"
#include "cli/options/options.h"
#include "transport/link.h"

#include <jansson.h>

#define DMG_COMPARE_ALGORITHMS_MAX 8
#define DMG_COMPARE_CNS_MAX        8
/** Runs of one kind in one round. */
#define DMG_COMPARE_REPEATS_MAX  9
#define DMG_COMPARE_NAME_BYTES   128
#define DMG_COMPARE_CHOSEN_BYTES 512
/** By what the emulated points beside the profile differ from it. */
#define DMG_COMPARE_CHANGE 2.0
/** With less of its core a thread cannot wait for a link by spinning. */
#define DMG_COMPARE_SHARE_LEAST 0.85
/** How far flips are looked for. */
#define DMG_COMPARE_FLIP_MOST 64.0
/** Iterations that take less, together, are too short for one run of them to say much. */
#define DMG_COMPARE_SHORT_SECONDS 0.010

/** How a configuration is run. */
typedef enum dmg_compare_variant {
    DMG_VARIANT_AS_IT_IS,
    DMG_VARIANT_BARE,   /**< without the emulated link */
    DMG_VARIANT_SLOWER, /**< all latencies DMG_COMPARE_CHANGE times as long */
    DMG_VARIANT_NARROWER /**< all bandwidths and rates divided by that */,
    DMG_VARIANTS
} dmg_compare_variant;

const char *dmg_compare_variant_name(dmg_compare_variant variant);

/* ---- what the transports do by themselves ---- */

#define DMG_COMPARE_QUANTILES_MAX 24

/** A measurement of `dmgraph perf`. */
typedef struct dmg_compare_point {
    char operation[16];
    uint64_t bytes;
    uint32_t depth, threads;
    double least_ns, median_ns, p99_ns, p999_ns;
    double mops, gbs;
    uint32_t quantile_count;
    double parts[DMG_COMPARE_QUANTILES_MAX]; /**< ascending */
    double quantiles_ns[DMG_COMPARE_QUANTILES_MAX];
} dmg_compare_point;

/** Why a point was measured. */
typedef enum dmg_compare_sweep {
    DMG_SWEEP_LATENCY, /**< each operation alone */
    DMG_SWEEP_LOAD,    /**< threads and operations in flight */
    DMG_SWEEP_SIZE,
    DMG_SWEEPS
} dmg_compare_sweep;

typedef struct dmg_compare_points {
    dmg_compare_point *points;
    uint32_t count;
} dmg_compare_points;

/** What the self-test of the link model said. */
typedef struct dmg_compare_proof {
    bool is_there;
    uint32_t passed, failed, inconclusive, not_emulable;
    double worst_error; /**< of what passed or failed, as a fraction */
} dmg_compare_proof;

/* ---- configurations ---- */

typedef struct dmg_compare_configuration {
    char transport[256];
    char link[256];                         /**< as it was given; "none" */
    char name[DMG_COMPARE_NAME_BYTES];      /**< short, for curves: "polar-cxl" */
    char title[2 * DMG_COMPARE_NAME_BYTES]; /**< "polar-cxl over cxl_shm" */
    bool has_link;
    dmg_link_profile *profile; /**< NULL without a link */
    int changed[DMG_VARIANTS]; /**< files of changed profiles; -1: none */
    bool has_load_store;
    bool locks_are_avoided; /**< over its link updates go to owners, because direct ones would take locks */
    char chosen[DMG_COMPARE_CHOSEN_BYTES];
    dmg_compare_points sweeps[DMG_SWEEPS];
    dmg_compare_proof proof;
} dmg_compare_configuration;

/* ---- runs ---- */

/** The times of one run. */
typedef struct dmg_compare_turn {
    double seconds, wait, accounted, total; /**< as in a cell */
} dmg_compare_turn;

/** What came out of one configuration, algorithm, number of compute nodes and variant. Of the runs of one round, the
 * one of median time counts. */
typedef struct dmg_compare_cell {
    uint32_t count;                           /**< rounds */
    double seconds[DMG_COMPARE_ROUNDS_MAX];   /**< of the iterations, with what an emulated link takes */
    double waits[DMG_COMPARE_ROUNDS_MAX];     /**< seconds waited for operations and in barriers, mean of a worker */
    double accounted[DMG_COMPARE_ROUNDS_MAX]; /**< seconds of the iterations that were modelled and not waited for */
    double totals[DMG_COMPARE_ROUNDS_MAX];    /**< the whole run with starting and loading, wall-clock */
    uint32_t repeats[DMG_COMPARE_ROUNDS_MAX]; /**< runs of this round */
    dmg_compare_turn turns[DMG_COMPARE_REPEATS_MAX]; /**< of the round that is being run: `turn_count` of them */
    uint32_t turn_count;
    double fastest; /**< seconds of any run; 0: there was none */
    /* Of the last run. */
    dmg_counters counters;
    uint64_t iterations;
    uint64_t arcs; /**< walked */
} dmg_compare_cell;

typedef struct dmg_compare {
    const dmg_settings *settings;
    const char *path;
    dmg_graph_source source;
    dmg_compare_configuration configurations[DMG_COMPARE_CONFIGURATIONS_MAX];
    uint32_t configuration_count;
    const char *algorithms[DMG_COMPARE_ALGORITHMS_MAX];
    uint32_t algorithm_count;
    uint32_t cns[DMG_COMPARE_CNS_MAX];
    uint32_t cns_count;
    uint32_t predict_cns[DMG_COMPARE_CNS_MAX]; /**< numbers of compute nodes that are not run, but predicted */
    uint32_t predict_cns_count;
    uint32_t rounds;
    dmg_compare_cell *cells;
    dmg_predict_run *model_runs;                 /**< see dmg_compare_model_run_of */
    json_t *answers[DMG_COMPARE_ALGORITHMS_MAX]; /**< what the first run of each said, for the others to agree */
    bool has_measured;                           /**< transports and links, too */
    char trouble[512];                           /**< why not */
    double seconds;                              /**< that all of it took */
    char host[384];
    uint32_t cores;
    double core_share;     /**< what a thread on each core got of it before the runs, 0 to 1 */
    bool is_busy;          /**< too little */
    const char *link_mode; /**< of the runs: what the user chose, else account where the machine is busy */
    char date[32];
} dmg_compare;

static inline dmg_compare_cell *dmg_compare_cell_of(const dmg_compare *compare, uint32_t configuration,
                                                    uint32_t algorithm, uint32_t cns, dmg_compare_variant variant)
{
    size_t index = ((size_t)configuration * compare->algorithm_count + algorithm) * compare->cns_count + cns;
    return &compare->cells[index * DMG_VARIANTS + variant];
}

/** The model's view of a configuration as it is: of the fastest run, which other programs disturbed least. */
static inline dmg_predict_run *dmg_compare_model_run_of(const dmg_compare *compare, uint32_t configuration,
                                                        uint32_t algorithm, uint32_t cns)
{
    size_t index = ((size_t)configuration * compare->algorithm_count + algorithm) * compare->cns_count + cns;
    return &compare->model_runs[index];
}

/* ---- for those who look at it ---- */

/** The times of an algorithm over all configurations. */
dmg_compare_times dmg_compare_times_of(const dmg_compare *compare, uint32_t algorithm, uint32_t cns,
                                       dmg_compare_variant variant);
/** Of all algorithms together, by their geometric mean. */
dmg_compare_times dmg_compare_times_of_all(const dmg_compare *compare, uint32_t cns, dmg_compare_variant variant);
/** The verdict about one algorithm, and about all of them together. */
dmg_verdict dmg_compare_verdict_of(const dmg_compare *compare, uint32_t algorithm, uint32_t cns);
dmg_verdict dmg_compare_verdict_of_all(const dmg_compare *compare, uint32_t cns);
/** The names of all configurations. */
void dmg_compare_names(const dmg_compare *compare, const char *names[DMG_COMPARE_CONFIGURATIONS_MAX]);

/** Two configurations whose links may be varied, for the model; valid until dmg_compare_close. */
typedef struct dmg_compare_model {
    dmg_link_work winner[DMG_COMPARE_ALGORITHMS_MAX], second[DMG_COMPARE_ALGORITHMS_MAX];
    dmg_link_pair pair; /**< of the above: not to be copied without them */
} dmg_compare_model;
void dmg_compare_model_of(const dmg_compare *compare, const dmg_verdict *verdict, uint32_t cns,
                          dmg_compare_model *model);
/** A run whose link may be varied. It is valid until dmg_compare_close. */
dmg_link_work dmg_compare_work_of(const dmg_compare *compare, uint32_t configuration, uint32_t algorithm, uint32_t cns);

/** Where the time of a run goes; medians. They add up to the median time, with what the link adds where it is resolved.
 */
typedef struct dmg_compare_split {
    double compute;  /**< seconds of the program's own work, with posting operations */
    double software; /**< seconds of waiting that is there without a link, too: for the backend, and in barriers */
    dmg_link_cost link;
} dmg_compare_split;
dmg_compare_split dmg_compare_split_of(const dmg_compare *compare, uint32_t configuration, uint32_t algorithm,
                                       uint32_t cns);

/* ---- predictions ---- */

/** The error of the model that is to be reckoned with (docs/predict.md), or more where it shows more. */
#define DMG_COMPARE_MODEL_ERROR 0.2

/** What `dmgraph predict` makes of the runs with the most compute nodes. */
typedef struct dmg_compare_prediction {
    double seconds[DMG_COMPARE_CONFIGURATIONS_MAX]; /**< of start and iterations */
    dmg_predict_part bound[DMG_COMPARE_CONFIGURATIONS_MAX];
    uint32_t winner;  /**< the least */
    double ratio;     /**< of the next one's by the winner's */
    bool is_resolved; /**< it is more than the model may be off */
} dmg_compare_prediction;

/** Which of the numbers of compute nodes it predicts from: the most. */
uint32_t dmg_compare_predict_base(const dmg_compare *compare);
dmg_compare_prediction dmg_compare_predict(const dmg_compare *compare, uint32_t algorithm, uint32_t cns);
/** What the predictions stand on, and do not know. */
void dmg_compare_say_predictions(const dmg_compare *compare, char text[DMG_COMPARE_SENTENCE_BYTES]);

/* ---- steps ---- */

/** Fill in the host, the date, and how links are to be emulated on it. Takes a fifth of a second. */
void dmg_compare_describe_host(dmg_compare *compare);

/** Read the settings into the plan. DMG_ERR_ARGUMENT and what loading a profile gives. */
dmg_status dmg_compare_plan(dmg_compare *compare);
/** Read the graph, once for all runs, and choose the algorithms that the user did not. */
dmg_status dmg_compare_read_graph(dmg_compare *compare);
/** Run everything, in turns. DMG_ERR_VERIFY when answers differ between configurations. */
dmg_status dmg_compare_run_all(dmg_compare *compare);
/** Measure the transports, and prove the links. */
dmg_status dmg_compare_measure(dmg_compare *compare);
void dmg_compare_close(dmg_compare *compare);

/** Say on a terminal how far it is. */
void dmg_compare_progress(const dmg_compare *compare, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- calls of this program ---- */

#define DMG_COMPARE_WORDS_MAX 96

/** The words of a call; they are copied. */
typedef struct dmg_compare_call {
    char *words[DMG_COMPARE_WORDS_MAX + 1];
    uint32_t count;
} dmg_compare_call;

void dmg_compare_call_add(dmg_compare_call *call, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** Add "--name" and, but for flags, the value: of options that the user gave. */
void dmg_compare_call_add_given(dmg_compare_call *call, const dmg_settings *settings, const dmg_option_id *options);
/**
 * Run this program with these words, as a child that dies with this process, and take in the JSON that it prints.
 * Frees the words.
 *
 * @param accepted  an exit code that is no failure besides 0
 * @return DMG_OK; what the child's exit code says, with the child's own sentence; DMG_ERR_PROTOCOL when it printed no
 * JSON
 */
dmg_status dmg_compare_call_run(dmg_compare_call *call, int accepted, json_t **object);

/* ---- what is said ---- */

/**
 * The answer in sentences: for each number of compute nodes what the links and the software cost and the verdict, the
 * algorithms one by one, and whether it would stay so; then what speaks against trusting it.
 */
uint32_t dmg_compare_sentence_count(const dmg_compare *compare);
/** Write one, 0 <= index < count; "" when there is nothing to say. */
void dmg_compare_say(const dmg_compare *compare, uint32_t index, char text[DMG_COMPARE_SENTENCE_BYTES]);
/** Whether that one is the verdict for a number of compute nodes. */
bool dmg_compare_is_verdict(const dmg_compare *compare, uint32_t index);
/** What an algorithm asked of the two fastest configurations: operations, bytes, and what its link adds. */
void dmg_compare_say_work(const dmg_compare *compare, uint32_t algorithm, uint32_t cns,
                          char text[DMG_COMPARE_SENTENCE_BYTES]);
/** Whether the verdict would stay so were the profiles off. */
void dmg_compare_say_flip(const dmg_compare *compare, uint32_t cns, char text[DMG_COMPARE_SENTENCE_BYTES]);
/** By what factor the numbers of the two leading links must be off to flip the answer; infinity: by none. It says
 * something only where the links decide. */
double dmg_compare_flip_factor(const dmg_compare *compare, const dmg_verdict *verdict, uint32_t cns);
/** Whether any run was accounted for, not waited for. */
bool dmg_compare_is_accounted(const dmg_compare *compare);
/** What the self-test said about a link: "11 of 14 checks pass ...", or how to make it. */
void dmg_compare_say_proof(const dmg_compare_configuration *configuration, char text[DMG_COMPARE_SENTENCE_BYTES]);

void dmg_compare_print(FILE *to, const dmg_compare *compare);
json_t *dmg_compare_json(const dmg_compare *compare);
void dmg_compare_write_csv(FILE *to, const dmg_compare *compare);
void dmg_compare_write_page(FILE *to, const dmg_compare *compare);
/** The head of a table that has a column for each configuration, and begins one of its rows: about an algorithm with
 * some compute nodes. On narrow screens a row is a block. */
void dmg_compare_write_columns(FILE *to, const dmg_compare *compare);
void dmg_compare_write_row_name(FILE *to, const dmg_compare *compare, uint32_t algorithm, uint32_t cns);
/** Begin the cell of a configuration. */
void dmg_compare_write_cell(FILE *to, const dmg_compare *compare, uint32_t configuration, bool is_winner);
/** Figures of the page; each with a sentence that says what to see. */
void dmg_compare_write_run_figures(FILE *to, const dmg_compare *compare);
void dmg_compare_write_micro_figures(FILE *to, const dmg_compare *compare);
void dmg_compare_write_sensitivity_figures(FILE *to, const dmg_compare *compare);
/** The panel of other numbers of compute nodes. */
void dmg_compare_write_predictions(FILE *to, const dmg_compare *compare);

#endif
