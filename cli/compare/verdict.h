/**
 * @file verdict.h
 * What a comparison may say: which configuration is faster, and whether the links decide it or the software of this
 * machine. Nothing here knows where the numbers come from.
 *
 * A piece of work (an algorithm) has two times for each configuration and round: the whole, and the bare one without
 * what the link adds. The ratio of the wholes is cut into two factors, whose product it is in every round:
 *
 *     links' part = the mean, over both configurations' bare times, of the ratio that the links alone would give
 *     software's part = ratio / links' part
 *
 * A difference is *resolved* when all rounds agree on its sign and it is more than the clock's own scatter (dmg_ratio).
 * What is not resolved is never given as a number that means "none", and never decides anything.
 */
#ifndef DMG_CLI_COMPARE_VERDICT_H
#define DMG_CLI_COMPARE_VERDICT_H

#include "cli/compare/statistics.h"

#define DMG_COMPARE_SENTENCE_BYTES 2048

/** How the time of a link comes to be known. */
typedef enum dmg_link_kind {
    DMG_LINK_KIND_NONE,     /**< no link is emulated */
    DMG_LINK_KIND_WAITED,   /**< as the difference between two runs, which may drown in other differences */
    DMG_LINK_KIND_ACCOUNTED /**< added up by the link model, so that it is exact */
} dmg_link_kind;

/** What a link adds to the time, in seconds. */
typedef struct dmg_link_cost {
    dmg_link_kind kind;
    bool is_resolved;  /**< false without a link, too: then there is nothing to resolve */
    dmg_spread spread; /**< round by round; what is not resolved may be negative */
} dmg_link_cost;

/** Of one configuration: [round]. */
dmg_link_cost dmg_link_cost_of(dmg_link_kind kind, const double *whole, const double *bare, uint32_t rounds);

/** Seconds, or "not resolved", or "none": what every table says of a link's cost. */
typedef struct dmg_link_cost_text {
    char text[40];
} dmg_link_cost_text;
dmg_link_cost_text dmg_link_cost_say(const dmg_link_cost *cost);

/** Who decides. */
typedef enum dmg_verdict_kind {
    DMG_VERDICT_NOT_RESOLVED, /**< which configuration is faster is not resolved */
    DMG_VERDICT_LINKS,        /**< the links cost the winner less, and that is at least half of its lead */
    DMG_VERDICT_SOFTWARE, /**< the lead is this machine's software, which costs the winner less; nothing is said about
                                 the links */
    DMG_VERDICT_CAUSE_UNKNOWN /**< one is faster, but which of the two decides is not resolved */
} dmg_verdict_kind;

/** "not resolved", "links", "software", "cause not resolved". */
const char *dmg_verdict_kind_name(dmg_verdict_kind kind);

/** What is known of the two fastest configurations. */
typedef struct dmg_verdict_facts {
    dmg_ratio ratio;         /**< the second's time by the winner's */
    dmg_ratio link_part;     /**< the part of the ratio that the links make */
    dmg_ratio software_part; /**< the part of the ratio that the software makes */
    dmg_link_cost winner, second;
    double winner_software, second_software; /**< seconds */
} dmg_verdict_facts;

dmg_verdict_kind dmg_verdict_decide(const dmg_verdict_facts *facts);

/** A verdict over one or more pieces of work, with the numbers that it stands on. */
typedef struct dmg_verdict {
    dmg_verdict_kind kind;
    dmg_contest contest; /**< of the geometric means */
    dmg_verdict_facts facts;
    uint32_t configurations, pieces;
    dmg_link_cost links[DMG_COMPARE_CONFIGURATIONS_MAX];     /**< added up over the pieces */
    double software_seconds[DMG_COMPARE_CONFIGURATIONS_MAX]; /**< the rest of the summed median time */
} dmg_verdict;

/**
 * @param whole, bare  [pieces], 1 or more, with the same configurations and rounds
 * @param kinds        [configurations]; the bare times of a configuration without a link count for nothing
 */
dmg_verdict dmg_verdict_judge(const dmg_compare_times *whole, const dmg_compare_times *bare, uint32_t pieces,
                              const dmg_link_kind *kinds);

/* ---- in words; texts have room for DMG_COMPARE_SENTENCE_BYTES ---- */

/** What the links cost, what the software costs, and the verdict: one sentence. `names` are those of configurations. */
void dmg_verdict_say(const dmg_verdict *verdict, const char *const *names, uint32_t cns, char *text);
/** The verdict alone, in a few words: "polar-cxl by 1.26, the links decide", "not resolved (0.98 to 1.10)". */
void dmg_verdict_say_short(const dmg_verdict *verdict, const char *const *names, char *text);
/**
 * Whether the verdict would stay so were the profiles' numbers off. Only where the links decide is anything said about
 * that.
 *
 * @param flip         by what factor all numbers must be off (dmg_link_flip_factor); infinity: none was found
 * @param flip_most    up to which it was looked for
 * @param uncertainty  to which factor the profiles are good
 */
void dmg_verdict_say_flip(const dmg_verdict *verdict, const char *const *names, double flip, double flip_most,
                          double uncertainty, char *text);
/** Append to a sentence, as far as there is room. */
void dmg_sentence_add(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
