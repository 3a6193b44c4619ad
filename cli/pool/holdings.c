#include "cli/pool/holdings.h"

#include "cli/base/text.h"
#include "core/base/error.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static uint64_t held_bytes(const dmg_pool_holding *holding)
{
    return holding->bytes + holding->quarantined_bytes;
}

/* The place of a job, made where it belongs. NULL: no memory. */
static dmg_pool_job *job_of(dmg_pool_holdings *holdings, const dmg_pool_holding *holding)
{
    uint32_t index = 0;
    while (index < holdings->count && holdings->jobs[index].on_node.job < holding->job) {
        index++;
    }
    if (index < holdings->count && holdings->jobs[index].on_node.job == holding->job) {
        return &holdings->jobs[index];
    }
    if (holdings->count == holdings->capacity) {
        uint32_t capacity = holdings->capacity ? 2 * holdings->capacity : 16;
        dmg_pool_job *grown = realloc(holdings->jobs, capacity * sizeof *grown);
        if (!grown) {
            return NULL;
        }
        holdings->jobs = grown;
        holdings->capacity = capacity;
    }
    dmg_pool_job *made = &holdings->jobs[index];
    memmove(made + 1, made, (holdings->count - index) * sizeof *made);
    *made = (dmg_pool_job){.on_node = *holding};
    holdings->count++;
    return made;
}

static dmg_status add(dmg_pool_holdings *holdings, const dmg_pool_holding *holding)
{
    dmg_pool_job *job = job_of(holdings, holding);
    if (!job) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the jobs of a pool");
    }
    job->bytes += holding->bytes;
    job->quarantined_bytes += holding->quarantined_bytes;
    if (held_bytes(holding) > held_bytes(&job->on_node)) {
        job->on_node = *holding;
    }
    return DMG_OK;
}

static dmg_status ask_node(dmg_channel *channel, uint16_t node, uint64_t own_job, dmg_pool_holdings *holdings)
{
    dmg_pool_refusals refusals;
    dmg_pool_holding holding = {0};
    dmg_status status = dmg_pool_ask_limits(channel, node, &holdings->limits, &refusals, NULL);
    if (status != DMG_OK) {
        return status;
    }
    holdings->refusals.memory += refusals.memory;
    holdings->refusals.clients += refusals.clients;
    holdings->refusals.channels += refusals.channels;
    holdings->refusals.rights += refusals.rights;
    do {
        status = dmg_pool_holding_next(channel, node, holding.job, &holding);
        if (status == DMG_OK && holding.job != 0 && holding.job != own_job) {
            status = add(holdings, &holding);
        }
    } while (status == DMG_OK && holding.job != 0);
    return status;
}

dmg_status dmg_pool_holdings_ask(dmg_channel *channel, uint64_t own_job, dmg_pool_holdings *holdings)
{
    *holdings = (dmg_pool_holdings){0};
    dmg_status status = DMG_OK;
    uint32_t node_count = dmg_client_node_count(dmg_channel_client(channel));
    for (uint32_t node = 0; node < node_count && status == DMG_OK; node++) {
        status = ask_node(channel, (uint16_t)node, own_job, holdings);
    }
    return status;
}

void dmg_pool_holdings_free(dmg_pool_holdings *holdings)
{
    free(holdings->jobs);
    *holdings = (dmg_pool_holdings){0};
}

void dmg_pool_holdings_note_graph(dmg_pool_holdings *holdings, uint64_t job)
{
    for (uint32_t index = 0; index < holdings->count; index++) {
        holdings->jobs[index].is_graph |= holdings->jobs[index].on_node.job == job;
    }
}

/* ---- for people ---- */

static void print_limits(FILE *to, const dmg_pool_limits *limits, const dmg_pool_refusals *refusals)
{
    fprintf(to, "a job has  %s of each memory node, %s compute nodes and %s channels at most\n",
            limits->job_memory_bytes ? dmg_text_bytes(limits->job_memory_bytes).text : "all",
            limits->job_clients ? dmg_text_count(limits->job_clients).text : "any number of",
            limits->job_channels ? dmg_text_count(limits->job_channels).text : "any number of");
    if (refusals->memory + refusals->clients + refusals->channels + refusals->rights > 0) {
        fprintf(to,
                "refused    %" PRIu64 " times for memory, %" PRIu64 " for compute nodes, %" PRIu64
                " for channels, %" PRIu64 " as it was somebody else's\n",
                refusals->memory, refusals->clients, refusals->channels, refusals->rights);
    }
}

/* Its share of the node of which it has most. */
static void print_job(FILE *to, const dmg_pool_job *job)
{
    const dmg_pool_holding *most = &job->on_node;
    fprintf(to, "%-32s %8" PRIu32 " %8" PRIu32 " %10s %10s  %s%s\n", most->name, most->clients, most->channels,
            dmg_text_bytes(job->bytes + job->quarantined_bytes).text, dmg_text_bytes(held_bytes(most)).text,
            dmg_owner_print(&most->owner).text,
            most->lost > 0       ? ", given up"
            : most->clients == 0 ? ", left by a load that failed"
                                 : "");
}

void dmg_pool_holdings_print(FILE *to, const dmg_pool_holdings *holdings)
{
    bool has_headings = false;
    print_limits(to, &holdings->limits, &holdings->refusals);
    for (uint32_t index = 0; index < holdings->count; index++) {
        const dmg_pool_job *job = &holdings->jobs[index];
        if (job->is_graph && job->on_node.clients == 0 && job->on_node.lost == 0) {
            continue;
        }
        if (!has_headings) {
            fprintf(to, "%-32s %8s %8s %10s %10s  %s\n", "job", "clients", "channels", "memory", "most of MN",
                    "of whom");
            has_headings = true;
        }
        print_job(to, job);
    }
}

/* ---- for programs ---- */

json_t *dmg_pool_owner_json(const dmg_pool_owner *owner)
{
    return json_pack("{s:I, s:o, s:o}", "user", (json_int_t)owner->user, "name", dmg_json_text(owner->user_name),
                     "host", dmg_json_text(owner->host));
}

json_t *dmg_pool_refusals_json(const dmg_pool_refusals *refusals)
{
    return json_pack("{s:I, s:I, s:I, s:I}", "memory", (json_int_t)refusals->memory, "clients",
                     (json_int_t)refusals->clients, "channels", (json_int_t)refusals->channels, "rights",
                     (json_int_t)refusals->rights);
}

json_t *dmg_pool_holdings_jobs_json(const dmg_pool_holdings *holdings)
{
    json_t *jobs = json_array();
    for (uint32_t index = 0; index < holdings->count; index++) {
        const dmg_pool_job *job = &holdings->jobs[index];
        const dmg_pool_holding *most = &job->on_node;
        json_t *object = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:b}", "job", (json_int_t)most->job, "clients",
                                   (json_int_t)most->clients, "channels", (json_int_t)most->channels, "bytes",
                                   (json_int_t)job->bytes, "quarantined_bytes", (json_int_t)job->quarantined_bytes,
                                   "most_on_a_node_bytes", (json_int_t)held_bytes(most), "is_kept", (int)most->is_kept,
                                   "is_graph", (int)job->is_graph);
        json_object_set_new(object, "name", dmg_json_text(most->name));
        json_object_set_new(object, "owner", dmg_pool_owner_json(&most->owner));
        json_array_append_new(jobs, object);
    }
    return jobs;
}
