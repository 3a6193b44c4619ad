#include "core/pool/tenancy.h"

#include "core/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    uint32_t tenant_count;
    uint32_t tenant_capacity;
    dmg_tenant *tenants; /* sorted by job */
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
        free(tenancy->tenants);
        free(tenancy);
    }
}

/* ---- tenants ---- */

/* The first tenant whose job is this one or a later one. */
static uint32_t tenants_lower_bound(const dmg_tenancy *tenancy, uint64_t job)
{
    uint32_t low = 0;
    uint32_t high = tenancy->tenant_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (tenancy->tenants[middle].job < job) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static dmg_tenant *tenant_find(const dmg_tenancy *tenancy, uint64_t job)
{
    uint32_t index = tenants_lower_bound(tenancy, job);
    return index < tenancy->tenant_count && tenancy->tenants[index].job == job ? &tenancy->tenants[index] : NULL;
}

const dmg_tenant *dmg_tenancy_find(const dmg_tenancy *tenancy, uint64_t job)
{
    return tenant_find(tenancy, job);
}

const dmg_tenant *dmg_tenancy_next(const dmg_tenancy *tenancy, uint64_t after)
{
    uint32_t index = after == UINT64_MAX ? tenancy->tenant_count : tenants_lower_bound(tenancy, after + 1);
    return index < tenancy->tenant_count ? &tenancy->tenants[index] : NULL;
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

/* The job's tenant, made when it has none. */
static dmg_status tenant_make(dmg_tenancy *tenancy, uint64_t job, const char *name, const dmg_pool_owner *owner,
                              dmg_tenant **made)
{
    *made = tenant_find(tenancy, job);
    if (*made != NULL) {
        return DMG_OK;
    }
    dmg_tenant *tenants =
        make_room(tenancy->tenants, tenancy->tenant_count, sizeof *tenants, &tenancy->tenant_capacity);
    if (tenants == NULL) {
        return out_of_memory();
    }
    tenancy->tenants = tenants;
    uint32_t index = tenants_lower_bound(tenancy, job);
    *made = &tenancy->tenants[index];
    memmove(*made + 1, *made, (tenancy->tenant_count - index) * sizeof **made);
    **made = (dmg_tenant){.job = job, .owner = *owner};
    snprintf((*made)->name, sizeof(*made)->name, "%s", name);
    tenancy->tenant_count++;
    return DMG_OK;
}

static void tenant_forget_if_gone(dmg_tenancy *tenancy, uint64_t job)
{
    dmg_tenant *looked_at = tenant_find(tenancy, job);
    if (looked_at != NULL && looked_at->attached == 0 && looked_at->lost == 0 && !looked_at->is_kept) {
        tenancy->tenant_count--;
        uint32_t index = (uint32_t)(looked_at - tenancy->tenants);
        memmove(looked_at, looked_at + 1, (tenancy->tenant_count - index) * sizeof *looked_at);
    }
}

/* ---- attachments ---- */

dmg_status dmg_tenancy_attach(dmg_tenancy *tenancy, uint64_t job, const char *name, const dmg_pool_owner *owner,
                              uint64_t client)
{
    if (job == 0) {
        return dmg_error(DMG_ERR_ARGUMENT, "0 is not a job");
    }
    if (tenancy->count == DMG_TENANCY_ATTACHMENTS_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "a memory node takes part in at most %d memberships of jobs",
                         DMG_TENANCY_ATTACHMENTS_MAX);
    }
    attachment *attachments = make_room(tenancy->attachments, tenancy->count, sizeof *attachments, &tenancy->capacity);
    if (attachments == NULL) {
        return out_of_memory();
    }
    tenancy->attachments = attachments;
    dmg_tenant *tenant;
    dmg_status status = tenant_make(tenancy, job, name, owner, &tenant);
    if (status == DMG_OK) {
        tenant->attached++;
        tenancy->attachments[tenancy->count++] = (attachment){.job = job, .client = client};
    }
    return status;
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

bool dmg_tenancy_has_lost(const dmg_tenancy *tenancy, uint64_t job)
{
    const dmg_tenant *tenant = tenant_find(tenancy, job);
    return tenant != NULL && tenant->lost > 0;
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

const dmg_tenant *dmg_tenancy_next_of_client(const dmg_tenancy *tenancy, uint64_t client, uint32_t *position)
{
    while (*position < tenancy->count) {
        const attachment *looked_at = &tenancy->attachments[(*position)++];
        if (looked_at->client == client && !looked_at->is_lost) {
            return tenant_find(tenancy, looked_at->job);
        }
    }
    return NULL;
}

bool dmg_tenancy_next_client(const dmg_tenancy *tenancy, uint64_t job, uint32_t *position, uint64_t *client)
{
    while (*position < tenancy->count) {
        const attachment *looked_at = &tenancy->attachments[(*position)++];
        *client = looked_at->client;
        bool is_first = is_of(looked_at, job, *client);
        for (const attachment *earlier = tenancy->attachments; is_first && earlier < looked_at; earlier++) {
            is_first = !is_of(earlier, job, *client);
        }
        if (is_first) {
            return true;
        }
    }
    return false;
}

/* The caller has taken an attachment away from the job, or has marked it as lost. */
static void settle_tenant(dmg_tenancy *tenancy, uint64_t job)
{
    const dmg_tenant *tenant = tenant_find(tenancy, job);
    if (tenant != NULL && tenant->attached == 0) {
        tenancy->release(tenancy->context, job, tenant->is_kept);
    }
    tenant_forget_if_gone(tenancy, job);
}

/* Remove one attachment, and release its job when it was the last one. */
static void attachment_remove(dmg_tenancy *tenancy, uint32_t index)
{
    uint64_t job = tenancy->attachments[index].job;
    tenancy->attachments[index] = tenancy->attachments[--tenancy->count];
    tenant_find(tenancy, job)->attached--;
    settle_tenant(tenancy, job);
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
                dmg_tenant *tenant = tenant_find(tenancy, ended->job);
                ended->is_lost = true;
                tenant->attached--;
                tenant->lost++;
                settle_tenant(tenancy, ended->job);
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
            if (--tenant_find(tenancy, job)->lost == 0) {
                settle(tenancy->context, job);
            }
            tenant_forget_if_gone(tenancy, job);
        }
    }
}

/* ---- what jobs leave behind ---- */

dmg_status dmg_tenancy_keep(dmg_tenancy *tenancy, uint64_t job)
{
    dmg_tenant *tenant = tenant_find(tenancy, job);
    if (tenant == NULL) {
        return dmg_error(DMG_ERR_NOT_FOUND, "there is no job %llu", (unsigned long long)job);
    }
    if (!tenant->is_kept && tenancy->kept_count == DMG_TENANCY_KEPT_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "a memory node keeps what at most %d jobs leave behind", DMG_TENANCY_KEPT_MAX);
    }
    tenancy->kept_count += !tenant->is_kept;
    tenant->is_kept = true;
    return DMG_OK;
}

dmg_status dmg_tenancy_drop(dmg_tenancy *tenancy, uint64_t job)
{
    dmg_tenant *tenant = tenant_find(tenancy, job);
    if (tenant == NULL || !tenant->is_kept) {
        return dmg_error(DMG_ERR_NOT_FOUND, "nothing is kept of job %llu", (unsigned long long)job);
    }
    if (tenant->attached > 0) {
        return dmg_error(DMG_ERR_EXISTS, "job %llu is still running", (unsigned long long)job);
    }
    tenant->is_kept = false;
    tenancy->kept_count--;
    tenant_forget_if_gone(tenancy, job);
    return DMG_OK;
}

uint64_t dmg_tenancy_next_kept(const dmg_tenancy *tenancy, uint64_t after)
{
    const dmg_tenant *tenant = dmg_tenancy_next(tenancy, after);
    while (tenant != NULL && (!tenant->is_kept || tenant->attached > 0)) {
        tenant = dmg_tenancy_next(tenancy, tenant->job);
    }
    return tenant != NULL ? tenant->job : 0;
}
