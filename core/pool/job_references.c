#include "core/pool/job_references.h"

#include "core/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct attachment {
    uint64_t job;
    uint64_t client;
    bool is_lost;
} attachment;

struct dmg_job_references {
    dmg_job_references_release release;
    void *context;
    uint32_t count;
    uint32_t capacity;
    attachment *attachments; /* in no order: they are few, and change only when a job starts or ends */
    uint32_t kept_count;
    uint32_t job_count;
    uint32_t job_capacity;
    dmg_job_reference *jobs; /* sorted by job */
};

dmg_status dmg_job_references_create(dmg_job_references_release release, void *context, dmg_job_references **references)
{
    *references = calloc(1, sizeof **references);
    if (*references == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the list of jobs of a memory node");
    }
    (*references)->release = release;
    (*references)->context = context;
    return DMG_OK;
}

void dmg_job_references_destroy(dmg_job_references *references)
{
    if (references != NULL) {
        free(references->attachments);
        free(references->jobs);
        free(references);
    }
}

/* ---- jobs ---- */

/* The first reference whose job is this one or a later one. */
static uint32_t lower_bound_of_job(const dmg_job_references *references, uint64_t job)
{
    uint32_t low = 0;
    uint32_t high = references->job_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (references->jobs[middle].job < job) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static dmg_job_reference *find_job(const dmg_job_references *references, uint64_t job)
{
    uint32_t index = lower_bound_of_job(references, job);
    return index < references->job_count && references->jobs[index].job == job ? &references->jobs[index] : NULL;
}

const dmg_job_reference *dmg_job_references_find(const dmg_job_references *references, uint64_t job)
{
    return find_job(references, job);
}

const dmg_job_reference *dmg_job_references_next(const dmg_job_references *references, uint64_t after)
{
    uint32_t index = after == UINT64_MAX ? references->job_count : lower_bound_of_job(references, after + 1);
    return index < references->job_count ? &references->jobs[index] : NULL;
}

static dmg_status out_of_memory(void)
{
    return dmg_error(DMG_ERR_MEMORY, "the memory node has no memory for its list of jobs");
}

/* The array, with room for one more; NULL, and the array as it was, when there is no memory. */
static void *make_room(void *items, uint32_t count, size_t item_bytes, uint32_t *capacity)
{
    if (count < *capacity) {
        return items;
    }
    uint32_t larger = *capacity == 0 ? 64 : 2 * *capacity;
    void *grown = realloc(items, larger * item_bytes);
    *capacity = grown != NULL ? larger : *capacity;
    return grown;
}

/* The job's reference, made when it has none. */
static dmg_status make_job(dmg_job_references *references, uint64_t job, const char *name, const dmg_pool_owner *owner,
                           dmg_job_reference **made)
{
    *made = find_job(references, job);
    if (*made != NULL) {
        return DMG_OK;
    }
    dmg_job_reference *jobs =
        make_room(references->jobs, references->job_count, sizeof *jobs, &references->job_capacity);
    if (jobs == NULL) {
        return out_of_memory();
    }
    references->jobs = jobs;
    uint32_t index = lower_bound_of_job(references, job);
    *made = &references->jobs[index];
    memmove(*made + 1, *made, (references->job_count - index) * sizeof **made);
    **made = (dmg_job_reference){.job = job, .owner = *owner};
    snprintf((*made)->name, sizeof(*made)->name, "%s", name);
    references->job_count++;
    return DMG_OK;
}

static void forget_if_gone(dmg_job_references *references, uint64_t job)
{
    dmg_job_reference *looked_at = find_job(references, job);
    if (looked_at != NULL && looked_at->attached == 0 && looked_at->lost == 0 && !looked_at->is_kept) {
        references->job_count--;
        uint32_t index = (uint32_t)(looked_at - references->jobs);
        memmove(looked_at, looked_at + 1, (references->job_count - index) * sizeof *looked_at);
    }
}

/* ---- attachments ---- */

dmg_status dmg_job_references_attach(dmg_job_references *references, uint64_t job, const char *name,
                                     const dmg_pool_owner *owner, uint64_t client)
{
    if (job == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "0 is not a job");
    }
    if (references->count == DMG_JOB_REFERENCES_ATTACHMENTS_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "a memory node takes part in at most %d memberships of jobs",
                         DMG_JOB_REFERENCES_ATTACHMENTS_MAX);
    }
    attachment *attachments =
        make_room(references->attachments, references->count, sizeof *attachments, &references->capacity);
    if (attachments == NULL) {
        return out_of_memory();
    }
    references->attachments = attachments;
    dmg_job_reference *reference;
    dmg_status status = make_job(references, job, name, owner, &reference);
    if (status == DMG_OK) {
        reference->attached++;
        references->attachments[references->count++] = (attachment){.job = job, .client = client};
    }
    return status;
}

static bool is_of(const attachment *looked_at, uint64_t job, uint64_t client)
{
    return looked_at->job == job && looked_at->client == client && !looked_at->is_lost;
}

bool dmg_job_references_is_attached(const dmg_job_references *references, uint64_t job, uint64_t client)
{
    for (uint32_t index = 0; index < references->count; index++) {
        if (is_of(&references->attachments[index], job, client)) {
            return true;
        }
    }
    return false;
}

bool dmg_job_references_has_lost(const dmg_job_references *references, uint64_t job)
{
    const dmg_job_reference *reference = find_job(references, job);
    return reference != NULL && reference->lost > 0;
}

bool dmg_job_references_has_others(const dmg_job_references *references, uint64_t job, uint64_t client)
{
    for (uint32_t index = 0; index < references->count; index++) {
        if (references->attachments[index].job == job && references->attachments[index].client != client) {
            return true;
        }
    }
    return false;
}

bool dmg_job_references_next_lost(const dmg_job_references *references, uint32_t *position, uint64_t *job,
                                  uint64_t *client)
{
    while (*position < references->count) {
        const attachment *looked_at = &references->attachments[(*position)++];
        if (looked_at->is_lost) {
            *job = looked_at->job;
            *client = looked_at->client;
            return true;
        }
    }
    return false;
}

const dmg_job_reference *dmg_job_references_next_of_client(const dmg_job_references *references, uint64_t client,
                                                           uint32_t *position)
{
    while (*position < references->count) {
        const attachment *looked_at = &references->attachments[(*position)++];
        if (looked_at->client == client && !looked_at->is_lost) {
            return find_job(references, looked_at->job);
        }
    }
    return NULL;
}

bool dmg_job_references_next_client(const dmg_job_references *references, uint64_t job, uint32_t *position,
                                    uint64_t *client)
{
    while (*position < references->count) {
        const attachment *looked_at = &references->attachments[(*position)++];
        *client = looked_at->client;
        bool is_first = is_of(looked_at, job, *client);
        for (const attachment *earlier = references->attachments; is_first && earlier < looked_at; earlier++) {
            is_first = !is_of(earlier, job, *client);
        }
        if (is_first) {
            return true;
        }
    }
    return false;
}

/* The caller has taken an attachment away from the job, or has marked it as lost. */
static void settle_job(dmg_job_references *references, uint64_t job)
{
    const dmg_job_reference *reference = find_job(references, job);
    if (reference != NULL && reference->attached == 0) {
        references->release(references->context, job, reference->is_kept);
    }
    forget_if_gone(references, job);
}

/* Remove one attachment, and release its job when it was the last one. */
static void attachment_remove(dmg_job_references *references, uint32_t index)
{
    uint64_t job = references->attachments[index].job;
    references->attachments[index] = references->attachments[--references->count];
    find_job(references, job)->attached--;
    settle_job(references, job);
}

dmg_status dmg_job_references_detach(dmg_job_references *references, uint64_t job, uint64_t client)
{
    for (uint32_t index = 0; index < references->count; index++) {
        if (is_of(&references->attachments[index], job, client)) {
            attachment_remove(references, index);
            return DMG_OK;
        }
    }
    return dmg_error(DMG_ERR_NOT_FOUND, "this compute node is not attached to job %llu", (unsigned long long)job);
}

void dmg_job_references_client_gone(dmg_job_references *references, uint64_t client, bool is_lost)
{
    /* Backwards: a removal moves the last attachment, which was looked at already, into the gap. */
    for (uint32_t index = references->count; index-- > 0;) {
        attachment *ended = &references->attachments[index];
        if (ended->client == client && !ended->is_lost) {
            if (is_lost) {
                dmg_job_reference *reference = find_job(references, ended->job);
                ended->is_lost = true;
                reference->attached--;
                reference->lost++;
                settle_job(references, ended->job);
            } else {
                attachment_remove(references, index);
            }
        }
    }
}

void dmg_job_references_client_ended(dmg_job_references *references, uint64_t client, dmg_job_references_settle settle)
{
    for (uint32_t index = references->count; index-- > 0;) {
        uint64_t job = references->attachments[index].job;
        if (references->attachments[index].client == client && references->attachments[index].is_lost) {
            references->attachments[index] = references->attachments[--references->count];
            if (--find_job(references, job)->lost == 0) {
                settle(references->context, job);
            }
            forget_if_gone(references, job);
        }
    }
}

/* ---- what jobs leave behind ---- */

dmg_status dmg_job_references_keep(dmg_job_references *references, uint64_t job)
{
    dmg_job_reference *reference = find_job(references, job);
    if (reference == NULL) {
        return dmg_error(DMG_ERR_NOT_FOUND, "there is no job %llu", (unsigned long long)job);
    }
    if (!reference->is_kept && references->kept_count == DMG_JOB_REFERENCES_KEPT_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "a memory node keeps what at most %d jobs leave behind",
                         DMG_JOB_REFERENCES_KEPT_MAX);
    }
    references->kept_count += !reference->is_kept;
    reference->is_kept = true;
    return DMG_OK;
}

dmg_status dmg_job_references_drop(dmg_job_references *references, uint64_t job)
{
    dmg_job_reference *reference = find_job(references, job);
    if (reference == NULL || !reference->is_kept) {
        return dmg_error(DMG_ERR_NOT_FOUND, "nothing is kept of job %llu", (unsigned long long)job);
    }
    if (reference->attached > 0) {
        return dmg_error(DMG_ERR_EXISTS, "job %llu is still running", (unsigned long long)job);
    }
    reference->is_kept = false;
    references->kept_count--;
    forget_if_gone(references, job);
    return DMG_OK;
}

uint64_t dmg_job_references_next_kept(const dmg_job_references *references, uint64_t after)
{
    const dmg_job_reference *reference = dmg_job_references_next(references, after);
    while (reference != NULL && (!reference->is_kept || reference->attached > 0)) {
        reference = dmg_job_references_next(references, reference->job);
    }
    return reference != NULL ? reference->job : 0;
}
