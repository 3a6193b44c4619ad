/**
 * @file holdings.h
 * Who has what of a long-lived pool, and of what he may have: for 'pool status'.
 */
#ifndef DMG_CLI_POOL_HOLDINGS_H
#define DMG_CLI_POOL_HOLDINGS_H

#include "core/pool/pool.h"

#include <jansson.h>
#include <stdio.h>

/** A job, over all memory nodes. */
typedef struct dmg_pool_job {
    dmg_pool_holding on_node; /**< what is the same on all; else what it has on the node that it has most of */
    uint64_t bytes;           /**< over all nodes */
    uint64_t quarantined_bytes;
    bool is_graph; /**< what it keeps is a graph */
} dmg_pool_job;

typedef struct dmg_pool_holdings {
    uint32_t count;
    uint32_t capacity;
    dmg_pool_job *jobs; /**< by their number */
    dmg_pool_limits limits;
    dmg_pool_refusals refusals; /**< over all nodes */
} dmg_pool_holdings;

/** Ask all nodes. `own_job` is left out. Blocking. Free with dmg_pool_holdings_free, also after an error. */
dmg_status dmg_pool_holdings_ask(dmg_channel *channel, uint64_t own_job, dmg_pool_holdings *holdings);
void dmg_pool_holdings_free(dmg_pool_holdings *holdings);
/** A graph is what this job keeps. */
void dmg_pool_holdings_note_graph(dmg_pool_holdings *holdings, uint64_t job);

/** The limits and what was refused, then a line for each job but those that have left nothing but a graph. */
void dmg_pool_holdings_print(FILE *to, const dmg_pool_holdings *holdings);
/** All jobs. */
json_t *dmg_pool_holdings_jobs_json(const dmg_pool_holdings *holdings);
json_t *dmg_pool_refusals_json(const dmg_pool_refusals *refusals);
/** As it was claimed. */
json_t *dmg_pool_owner_json(const dmg_pool_owner *owner);

#endif
