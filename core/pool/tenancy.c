#include "core/pool/tenancy.h"

#include "core/base/error.h"

#include <stdlib.h>

typedef struct attachment {
    uint64_t job;
    uint64_t client;
    bool is_lost;
} attachment;

struct dmg_tenancy {
    dmg_tenancy_release release;
    void *context;
    uint32_t count;
    uint32_t capacity;
    attachment *attachments; /* in no order: they are few, and change only when a job starts or ends */
    uint32_t kept_count;
    uint32_t kept_capacity;
    uint64_t *kept; /* jobs, in no order */
};

dmg_status dmg_tenancy_create(dmg_tenancy_release release, void *context, dmg_tenancy **tenancy)
{
    *tenancy = calloc(1, sizeof **tenancy);
    if (*tenancy == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the list of jobs of a memory node");
    }
    (*tenancy)->release = release;
    (*tenancy)->context = context;
    return DMG_OK;
}

void dmg_tenancy_destroy(dmg_tenancy *tenancy)
{
    if (tenancy != NULL) {
        free(tenancy->attachments);
        free(tenancy->kept);
        free(tenancy);
    }
}

dmg_status dmg_tenancy_attach(dmg_tenancy *tenancy, uint64_t job, uint64_t client)
{
    if (job == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "0 is not a job");
    }
    if (tenancy->count == DMG_TENANCY_ATTACHMENTS_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "a memory node takes part in at most %d memberships of jobs",
                         DMG_TENANCY_ATTACHMENTS_MAX);
    }
    if (tenancy->count == tenancy->capacity) {
        uint32_t capacity = tenancy->capacity == 0 ? 64 : 2 * tenancy->capacity;
        attachment *larger = realloc(tenancy->attachments, capacity * sizeof *larger);
        if (larger == NULL) {
            return dmg_error(DMG_ERR_MEMORY, "the memory node has no memory for its list of jobs");
        }
        tenancy->attachments = larger;
        tenancy->capacity = capacity;
    }
    tenancy->attachments[tenancy->count++] = (attachment){.job = job, .client = client};
    return DMG_OK;
}

static bool is_of(const attachment *looked_at, uint64_t job, uint64_t client)
{
    return looked_at->job == job && looked_at->client == client && !looked_at->is_lost;
}

bool dmg_tenancy_is_attached(const dmg_tenancy *tenancy, uint64_t job, uint64_t client)
{
    for (uint32_t index = 0; index < tenancy->count; index++) {
        if (is_of(&tenancy->attachments[index], job, client)) {
            return true;
        }
    }
    return false;
}

static bool has(const dmg_tenancy *tenancy, uint64_t job, bool is_lost)
{
    for (uint32_t index = 0; index < tenancy->count; index++) {
        if (tenancy->attachments[index].job == job && tenancy->attachments[index].is_lost == is_lost) {
            return true;
        }
    }
    return false;
}

static bool has_attachment(const dmg_tenancy *tenancy, uint64_t job)
{
    return has(tenancy, job, false);
}

bool dmg_tenancy_has_lost(const dmg_tenancy *tenancy, uint64_t job)
{
    return has(tenancy, job, true);
}

bool dmg_tenancy_has_others(const dmg_tenancy *tenancy, uint64_t job, uint64_t client)
{
    for (uint32_t index = 0; index < tenancy->count; index++) {
        if (tenancy->attachments[index].job == job && tenancy->attachments[index].client != client) {
            return true;
        }
    }
    return false;
}

bool dmg_tenancy_next_lost(const dmg_tenancy *tenancy, uint32_t *position, uint64_t *job, uint64_t *client)
{
    while (*position < tenancy->count) {
        const attachment *looked_at = &tenancy->attachments[(*position)++];
        if (looked_at->is_lost) {
            *job = looked_at->job;
            *client = looked_at->client;
            return true;
        }
    }
    return false;
}

/* Where the job stands among the kept ones, or behind them. */
static uint32_t kept_find(const dmg_tenancy *tenancy, uint64_t job)
{
    uint32_t index = 0;
    while (index < tenancy->kept_count && tenancy->kept[index] != job) {
        index++;
    }
    return index;
}

static void release_unless_attached(dmg_tenancy *tenancy, uint64_t job)
{
    if (!has_attachment(tenancy, job)) {
        tenancy->release(tenancy->context, job, kept_find(tenancy, job) < tenancy->kept_count);
    }
}

/* Remove one attachment, and release its job when it was the last one. */
static void attachment_remove(dmg_tenancy *tenancy, uint32_t index)
{
    uint64_t job = tenancy->attachments[index].job;
    tenancy->attachments[index] = tenancy->attachments[--tenancy->count];
    release_unless_attached(tenancy, job);
}

dmg_status dmg_tenancy_detach(dmg_tenancy *tenancy, uint64_t job, uint64_t client)
{
    for (uint32_t index = 0; index < tenancy->count; index++) {
        if (is_of(&tenancy->attachments[index], job, client)) {
            attachment_remove(tenancy, index);
            return DMG_OK;
        }
    }
    return dmg_error(DMG_ERR_NOT_FOUND, "this compute node is not attached to job %llu", (unsigned long long)job);
}

void dmg_tenancy_client_gone(dmg_tenancy *tenancy, uint64_t client, bool is_lost)
{
    /* Backwards: a removal moves the last attachment, which was looked at already, into the gap. */
    for (uint32_t index = tenancy->count; index-- > 0;) {
        attachment *ended = &tenancy->attachments[index];
        if (ended->client == client && !ended->is_lost) {
            if (is_lost) {
                ended->is_lost = true;
                release_unless_attached(tenancy, ended->job);
            } else {
                attachment_remove(tenancy, index);
            }
        }
    }
}

void dmg_tenancy_client_ended(dmg_tenancy *tenancy, uint64_t client, dmg_tenancy_settle settle)
{
    for (uint32_t index = tenancy->count; index-- > 0;) {
        uint64_t job = tenancy->attachments[index].job;
        if (tenancy->attachments[index].client == client && tenancy->attachments[index].is_lost) {
            tenancy->attachments[index] = tenancy->attachments[--tenancy->count];
            if (!dmg_tenancy_has_lost(tenancy, job)) {
                settle(tenancy->context, job);
            }
        }
    }
}

dmg_status dmg_tenancy_keep(dmg_tenancy *tenancy, uint64_t job)
{
    if (kept_find(tenancy, job) < tenancy->kept_count) {
        return DMG_OK;
    }
    if (tenancy->kept_count == DMG_TENANCY_KEPT_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "a memory node keeps what at most %d jobs leave behind", DMG_TENANCY_KEPT_MAX);
    }
    if (tenancy->kept_count == tenancy->kept_capacity) {
        uint32_t capacity = tenancy->kept_capacity == 0 ? 16 : 2 * tenancy->kept_capacity;
        uint64_t *larger = realloc(tenancy->kept, capacity * sizeof *larger);
        if (larger == NULL) {
            return dmg_error(DMG_ERR_MEMORY, "the memory node has no memory for its list of jobs");
        }
        tenancy->kept = larger;
        tenancy->kept_capacity = capacity;
    }
    tenancy->kept[tenancy->kept_count++] = job;
    return DMG_OK;
}

dmg_status dmg_tenancy_drop(dmg_tenancy *tenancy, uint64_t job)
{
    uint32_t index = kept_find(tenancy, job);
    if (index == tenancy->kept_count) {
        return dmg_error(DMG_ERR_NOT_FOUND, "nothing is kept of job %llu", (unsigned long long)job);
    }
    if (has_attachment(tenancy, job)) {
        return dmg_error(DMG_ERR_EXISTS, "job %llu is still running", (unsigned long long)job);
    }
    tenancy->kept[index] = tenancy->kept[--tenancy->kept_count];
    return DMG_OK;
}

uint64_t dmg_tenancy_next_kept(const dmg_tenancy *tenancy, uint64_t after)
{
    uint64_t next = 0;
    for (uint32_t index = 0; index < tenancy->kept_count; index++) {
        uint64_t job = tenancy->kept[index];
        if (job > after && (next == 0 || job < next) && !has_attachment(tenancy, job)) {
            next = job;
        }
    }
    return next;
}
