#include "core/pool/tenancy.h"

#include "core/base/error.h"

#include <stdlib.h>

typedef struct attachment {
    uint64_t job;
    uint64_t client;
} attachment;

struct dmg_tenancy {
    dmg_tenancy_release release;
    void *context;
    uint32_t count;
    uint32_t capacity;
    attachment *attachments; /* in no order: they are few, and change only when a job starts or ends */
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
    tenancy->attachments[tenancy->count++] = (attachment){job, client};
    return DMG_OK;
}

bool dmg_tenancy_is_attached(const dmg_tenancy *tenancy, uint64_t job, uint64_t client)
{
    for (uint32_t index = 0; index < tenancy->count; index++) {
        if (tenancy->attachments[index].job == job && tenancy->attachments[index].client == client) {
            return true;
        }
    }
    return false;
}

/* Remove one attachment, and release its job when it was the last one. */
static void attachment_remove(dmg_tenancy *tenancy, uint32_t index)
{
    uint64_t job = tenancy->attachments[index].job;
    tenancy->attachments[index] = tenancy->attachments[--tenancy->count];
    for (uint32_t other = 0; other < tenancy->count; other++) {
        if (tenancy->attachments[other].job == job) {
            return;
        }
    }
    tenancy->release(tenancy->context, job);
}

dmg_status dmg_tenancy_detach(dmg_tenancy *tenancy, uint64_t job, uint64_t client)
{
    for (uint32_t index = 0; index < tenancy->count; index++) {
        if (tenancy->attachments[index].job == job && tenancy->attachments[index].client == client) {
            attachment_remove(tenancy, index);
            return DMG_OK;
        }
    }
    return dmg_error(DMG_ERR_NOT_FOUND, "this compute node is not attached to job %llu", (unsigned long long)job);
}

void dmg_tenancy_client_gone(dmg_tenancy *tenancy, uint64_t client)
{
    /* Backwards: a removal moves the last attachment, which was looked at already, into the gap. */
    for (uint32_t index = tenancy->count; index-- > 0;) {
        if (tenancy->attachments[index].client == client) {
            attachment_remove(tenancy, index);
        }
    }
}
