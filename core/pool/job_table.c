#include "core/pool/job_table.h"

#include "core/base/error.h"
#include "core/pool/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum job_stage { STAGE_JOINING, STAGE_READYING, STAGE_RUNNING } job_stage;

typedef enum member_state {
    MEMBER_ABSENT, /* has not joined yet */
    MEMBER_PRESENT,
    MEMBER_GONE /* left, died, or was told that the job failed before it began */
} member_state;

typedef struct job_member {
    member_state state;
    bool is_waiting; /* its reply_token is kept */
    bool has_reduction;
    uint64_t client;
    uint64_t reply_token;
    dmg_reduction reduction;
} job_member;

typedef struct job {
    uint64_t id;
    uint64_t parent; /* id, or 0 */
    char name[DMG_JOB_NAME_BYTES];
    uint8_t secret_hash[DMG_SECRET_BYTES];
    dmg_pool_owner owner;
    job_stage stage;
    uint32_t size;
    uint32_t present;
    uint32_t gone;
    uint32_t waiting;
    uint64_t barriers;
    dmg_job_failure failure; /* status DMG_OK, or why this job has failed */
    job_member members[];
} job;

struct dmg_job_table {
    dmg_job_answer answer;
    void *context;
    uint64_t last_id;
    uint32_t count;
    job *jobs[DMG_JOBS_MAX]; /* in the order of their creation */
};

dmg_status dmg_job_table_create(dmg_job_answer answer, void *context, dmg_job_table **table)
{
    *table = calloc(1, sizeof **table);
    if (*table == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "no memory for the table of jobs");
    }
    (*table)->answer = answer;
    (*table)->context = context;
    return DMG_OK;
}

void dmg_job_table_destroy(dmg_job_table *table)
{
    if (table == NULL) {
        return;
    }
    for (uint32_t index = 0; index < table->count; index++) {
        free(table->jobs[index]);
    }
    free(table);
}

uint32_t dmg_job_table_count(const dmg_job_table *table)
{
    return table->count;
}

/* ---- finding and forgetting ---- */

static job *job_find_name(const dmg_job_table *table, const char *name)
{
    for (uint32_t index = 0; index < table->count; index++) {
        if (strcmp(table->jobs[index]->name, name) == 0) {
            return table->jobs[index];
        }
    }
    return NULL;
}

static job *job_find_id(const dmg_job_table *table, uint64_t id)
{
    for (uint32_t index = 0; index < table->count; index++) {
        if (table->jobs[index]->id == id) {
            return table->jobs[index];
        }
    }
    return NULL;
}

/* The job, when this client has this rank in it and has not left. */
static dmg_status job_find_member(const dmg_job_table *table, uint64_t client, uint64_t id, uint32_t rank, job **found)
{
    *found = NULL;
    for (uint32_t index = 0; index < table->count; index++) {
        job *candidate = table->jobs[index];
        if (candidate->id == id && rank < candidate->size && candidate->members[rank].state == MEMBER_PRESENT &&
            candidate->members[rank].client == client) {
            *found = candidate;
            return DMG_OK;
        }
    }
    return dmg_error(DMG_ERR_NOT_FOUND, "this compute node is not rank %u of job %llu", rank, (unsigned long long)id);
}

static void job_forget(dmg_job_table *table, uint32_t index)
{
    free(table->jobs[index]);
    table->count--;
    memmove(&table->jobs[index], &table->jobs[index + 1], (table->count - index) * sizeof table->jobs[0]);
}

static void job_forget_if_over(dmg_job_table *table, const job *over)
{
    for (uint32_t index = 0; index < table->count; index++) {
        if (table->jobs[index] == over && over->gone == over->size) {
            job_forget(table, index);
            return;
        }
    }
}

/* The jobs that a client is in. */
static uint32_t jobs_of(const dmg_job_table *table, uint64_t client)
{
    uint32_t count = 0;
    for (uint32_t index = 0; index < table->count; index++) {
        const job *looked_at = table->jobs[index];
        bool is_in_it = false;
        for (uint32_t rank = 0; rank < looked_at->size && !is_in_it; rank++) {
            const job_member *member = &looked_at->members[rank];
            is_in_it = member->state == MEMBER_PRESENT && member->client == client;
        }
        count += is_in_it;
    }
    return count;
}

static dmg_status job_make(dmg_job_table *table, const dmg_job_entrant *first, job **made)
{
    if (jobs_of(table, first->client) >= DMG_JOBS_OF_A_CLIENT_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "this compute node is in %d jobs already; leave one", DMG_JOBS_OF_A_CLIENT_MAX);
    }
    for (uint32_t index = 0; index < table->count && table->count == DMG_JOBS_MAX; index++) {
        if (table->jobs[index]->present == 0) {
            job_forget(table, index);
        }
    }
    if (table->count == DMG_JOBS_MAX) {
        return dmg_error(DMG_ERR_LIMIT, "the pool runs %d jobs already; try again when one has ended", DMG_JOBS_MAX);
    }
    job *new_job = calloc(1, sizeof *new_job + first->size * sizeof new_job->members[0]);
    if (new_job == NULL) {
        return dmg_error(DMG_ERR_MEMORY, "memory node 0 has no memory for the job \"%s\"", first->name);
    }
    new_job->id = ++table->last_id;
    memcpy(new_job->name, first->name, strlen(first->name) + 1);
    new_job->size = first->size;
    new_job->parent = first->parent;
    memcpy(new_job->secret_hash, first->secret_hash, sizeof new_job->secret_hash);
    new_job->owner = first->owner;
    table->jobs[table->count++] = new_job;
    *made = new_job;
    return DMG_OK;
}

static void member_go(job *left, uint32_t rank)
{
    job_member *member = &left->members[rank];
    left->present -= member->state == MEMBER_PRESENT;
    left->gone += member->state != MEMBER_GONE;
    member->state = MEMBER_GONE;
}

/* ---- failing ---- */

static void answer_failure(const dmg_job_table *table, const job *failed, uint64_t reply_token)
{
    char sentence[DMG_POOL_SENTENCE_BYTES + 64];
    const dmg_job_failure *failure = &failed->failure;
    if (failure->rank == DMG_JOB_NO_RANK) {
        snprintf(sentence, sizeof sentence, "%s", failure->sentence);
    } else {
        snprintf(sentence, sizeof sentence, "compute node %u: %s", failure->rank, failure->sentence);
    }
    table->answer(table->context, reply_token, (dmg_status)failure->status, sentence, strlen(sentence));
}

static void job_fail_alone(dmg_job_table *table, job *failed, const dmg_job_failure *why)
{
    if (failed->failure.status == DMG_OK) {
        failed->failure = *why;
    }
    for (uint32_t rank = 0; rank < failed->size && failed->waiting > 0; rank++) {
        job_member *member = &failed->members[rank];
        if (!member->is_waiting) {
            continue;
        }
        member->is_waiting = false;
        failed->waiting--;
        if (failed->stage == STAGE_JOINING) {
            /* It knows no job that it could leave. */
            member_go(failed, rank);
        }
        answer_failure(table, failed, member->reply_token);
    }
}

/* Fail the job, unless it has failed before, with all jobs that depend on it, and tell everybody who waits. */
static void job_fail(dmg_job_table *table, job *failed, const dmg_job_failure *why)
{
    job_fail_alone(table, failed, why);
    /* Children come later than their parents. */
    for (uint32_t index = 0; index < table->count; index++) {
        job *child = table->jobs[index];
        const job *parent = child->parent != 0 ? job_find_id(table, child->parent) : NULL;
        if (parent != NULL && parent->failure.status != DMG_OK && child->failure.status == DMG_OK) {
            job_fail_alone(table, child, &parent->failure);
        }
    }
}

static void job_fail_without(dmg_job_table *table, job *failed, uint32_t rank)
{
    dmg_job_failure why = {.status = DMG_ERR_CANCELLED, .rank = DMG_JOB_NO_RANK};
    snprintf(why.sentence, sizeof why.sentence, "compute node %u has left, and will not join the job \"%s\"", rank,
             failed->name);
    job_fail(table, failed, &why);
}

/* A child cannot begin when its parent has failed, or has lost a member that the child lacks. */
static void child_check(dmg_job_table *table, job *child, const job *parent)
{
    if (parent->failure.status != DMG_OK) {
        job_fail(table, child, &parent->failure);
    }
    for (uint32_t rank = 0; rank < parent->size && child->failure.status == DMG_OK; rank++) {
        if (parent->members[rank].state == MEMBER_GONE && child->members[rank].state == MEMBER_ABSENT) {
            job_fail_without(table, child, rank);
        }
    }
}

/* ---- meeting ---- */

static void reduction_add(dmg_reduction *sum, const dmg_reduction *more, bool is_first)
{
    if (is_first) {
        *sum = *more;
        return;
    }
    for (uint32_t index = 0; index < DMG_REDUCE_SUMS; index++) {
        sum->sums[index] += more->sums[index];
    }
    for (uint32_t index = 0; index < DMG_REDUCE_REALS; index++) {
        sum->reals[index] += more->reals[index];
    }
    for (uint32_t index = 0; index < 2; index++) {
        sum->least[index] = more->least[index] < sum->least[index] ? more->least[index] : sum->least[index];
        sum->most[index] = more->most[index] > sum->most[index] ? more->most[index] : sum->most[index];
    }
}

static void job_reduce(const job *met, dmg_reduction *reduction)
{
    bool is_first = true;
    memset(reduction, 0, sizeof *reduction);
    for (uint32_t rank = 0; rank < met->size; rank++) {
        if (met->members[rank].has_reduction) {
            reduction_add(reduction, &met->members[rank].reduction, is_first);
            is_first = false;
        }
    }
}

/* All have come: go on to the next stage or barrier, and answer. */
static void job_meet(dmg_job_table *table, job *met)
{
    dmg_job_join_reply join_reply = {.job = met->id};
    dmg_reduction reduction;
    const void *payload = NULL;
    size_t bytes = 0;
    switch (met->stage) {
    case STAGE_JOINING:
        payload = &join_reply;
        bytes = sizeof join_reply;
        met->stage = STAGE_READYING;
        break;
    case STAGE_READYING:
        met->stage = STAGE_RUNNING;
        break;
    case STAGE_RUNNING:
        job_reduce(met, &reduction);
        payload = &reduction;
        bytes = sizeof reduction;
        met->barriers++;
        break;
    }
    met->waiting = 0;
    for (uint32_t rank = 0; rank < met->size; rank++) {
        met->members[rank].is_waiting = false;
    }
    for (uint32_t rank = 0; rank < met->size; rank++) {
        table->answer(table->context, met->members[rank].reply_token, DMG_OK, payload, bytes);
    }
}

/* A member has come to where all meet. */
static dmg_status job_arrive(dmg_job_table *table, job *here, uint32_t rank, uint64_t reply_token)
{
    job_member *member = &here->members[rank];
    if (member->is_waiting) {
        return dmg_error(DMG_ERR_ARGUMENT, "rank %u of job \"%s\" is waiting already", rank, here->name);
    }
    if (here->failure.status == DMG_OK && here->gone > 0) {
        uint32_t left = 0;
        while (here->members[left].state != MEMBER_GONE) {
            left++;
        }
        dmg_job_failure why = {.status = DMG_ERR_CANCELLED, .rank = DMG_JOB_NO_RANK};
        snprintf(why.sentence, sizeof why.sentence, "compute node %u left the job \"%s\" before the others had ended",
                 left, here->name);
        job_fail(table, here, &why);
    }
    if (here->failure.status != DMG_OK) {
        answer_failure(table, here, reply_token);
        return DMG_OK;
    }
    member->reply_token = reply_token;
    member->is_waiting = true;
    here->waiting++;
    if (here->waiting == here->size) {
        job_meet(table, here);
    }
    return DMG_OK;
}

/* ---- requests ---- */

static dmg_status find_parent(const dmg_job_table *table, uint64_t client, uint64_t id, uint32_t rank, uint32_t size,
                              job **parent)
{
    *parent = NULL;
    dmg_status status = id != 0 ? job_find_member(table, client, id, rank, parent) : DMG_OK;
    if (status == DMG_OK && *parent != NULL && (*parent)->size != size) {
        status = dmg_error(DMG_ERR_ARGUMENT, "a job within the job \"%s\" has the same size, %u", (*parent)->name,
                           (*parent)->size);
    }
    return status;
}

/* The job that the entrant wants to join, made when there is none; DMG_ERR_DENIED when it is somebody else's. */
static dmg_status job_enter(dmg_job_table *table, const dmg_job_entrant *entrant, const job *parent, job **entered)
{
    *entered = job_find_name(table, entrant->name);
    if (*entered == NULL) {
        dmg_job_entrant first = *entrant;
        if (parent != NULL) {
            memcpy(first.secret_hash, parent->secret_hash, sizeof first.secret_hash);
            first.owner = parent->owner;
        }
        return job_make(table, &first, entered);
    }
    if ((*entered)->parent != entrant->parent) {
        return dmg_error(DMG_ERR_ARGUMENT, "rank %u wants to join the job \"%s\" within another job than the others",
                         entrant->rank, entrant->name);
    }
    /* Who is in the parent has shown its secret there. */
    if (parent == NULL && !dmg_secret_is_equal((*entered)->secret_hash, entrant->secret_hash)) {
        return dmg_error(DMG_ERR_DENIED,
                         "the job \"%s\" is of %s, and rank %u does not know its secret: take another name",
                         entrant->name, dmg_owner_print(&(*entered)->owner).text, entrant->rank);
    }
    return DMG_OK;
}

dmg_status dmg_job_table_join(dmg_job_table *table, const dmg_job_entrant *entrant)
{
    const char *name = entrant->name;
    uint32_t rank = entrant->rank;
    uint32_t size = entrant->size;
    if (size == 0 || size > DMG_JOB_SIZE_MAX || rank >= size) {
        return dmg_error(DMG_ERR_ARGUMENT, "rank %u of %u cannot join the job \"%s\": sizes are 1 to %d", rank, size,
                         name, DMG_JOB_SIZE_MAX);
    }
    job *parent;
    job *joined = NULL;
    dmg_status status = find_parent(table, entrant->client, entrant->parent, rank, size, &parent);
    if (status == DMG_OK) {
        status = job_enter(table, entrant, parent, &joined);
    }
    if (status != DMG_OK) {
        return status;
    }
    if (parent != NULL && joined->stage == STAGE_JOINING) {
        child_check(table, joined, parent);
    }
    if (joined->failure.status != DMG_OK) {
        if (rank < joined->size && joined->members[rank].state == MEMBER_ABSENT) {
            member_go(joined, rank);
        }
        answer_failure(table, joined, entrant->reply_token);
        job_forget_if_over(table, joined);
        return DMG_OK;
    }
    if (joined->size != size) {
        return dmg_error(DMG_ERR_ARGUMENT, "rank %u wants to join the job \"%s\" with %u compute nodes, but it has %u",
                         rank, name, size, joined->size);
    }
    job_member *member = &joined->members[rank];
    if (member->state != MEMBER_ABSENT) {
        return dmg_error(DMG_ERR_EXISTS, "the job \"%s\" has a rank %u already", name, rank);
    }
    member->state = MEMBER_PRESENT;
    member->client = entrant->client;
    joined->present++;
    return job_arrive(table, joined, rank, entrant->reply_token);
}

dmg_status dmg_job_table_introduce(const dmg_job_table *table, uint64_t id, const uint8_t secret_hash[DMG_SECRET_BYTES],
                                   const char **name, const dmg_pool_owner **owner)
{
    const job *introduced = job_find_id(table, id);
    if (introduced == NULL) {
        return dmg_error(DMG_ERR_NOT_FOUND, "there is no job %llu", (unsigned long long)id);
    }
    if (!dmg_secret_is_equal(introduced->secret_hash, secret_hash)) {
        return dmg_error(DMG_ERR_DENIED, "job %llu is of %s, and has another secret", (unsigned long long)id,
                         dmg_owner_print(&introduced->owner).text);
    }
    *name = introduced->name;
    *owner = &introduced->owner;
    return DMG_OK;
}

dmg_status dmg_job_table_ready(dmg_job_table *table, uint64_t client, uint64_t reply_token, uint64_t id, uint32_t rank)
{
    job *here;
    dmg_status status = job_find_member(table, client, id, rank, &here);
    if (status != DMG_OK) {
        return status;
    }
    if (here->stage != STAGE_READYING) {
        return dmg_error(DMG_ERR_ARGUMENT, "rank %u of job \"%s\" cannot get ready now", rank, here->name);
    }
    return job_arrive(table, here, rank, reply_token);
}

dmg_status dmg_job_table_barrier(dmg_job_table *table, uint64_t client, uint64_t reply_token, uint64_t id,
                                 uint32_t rank, uint64_t epoch, const dmg_reduction *reduction)
{
    job *here;
    dmg_status status = job_find_member(table, client, id, rank, &here);
    if (status != DMG_OK) {
        return status;
    }
    if (here->stage != STAGE_RUNNING) {
        return dmg_error(DMG_ERR_ARGUMENT, "the job \"%s\" is not running yet: rank %u cannot be at a barrier",
                         here->name, rank);
    }
    if (epoch != here->barriers) {
        return dmg_error(DMG_ERR_ARGUMENT, "rank %u comes to barrier %llu of job \"%s\", but the others are at %llu",
                         rank, (unsigned long long)epoch, here->name, (unsigned long long)here->barriers);
    }
    job_member *member = &here->members[rank];
    if (!member->is_waiting) {
        member->has_reduction = reduction != NULL;
        if (reduction != NULL) {
            member->reduction = *reduction;
        }
    }
    return job_arrive(table, here, rank, reply_token);
}

dmg_status dmg_job_table_abort(dmg_job_table *table, uint64_t client, uint64_t id, uint32_t rank, dmg_status why,
                               const char *said, dmg_job_failure *first)
{
    job *here;
    dmg_status status = job_find_member(table, client, id, rank, &here);
    if (status != DMG_OK) {
        return status;
    }
    dmg_job_failure failure = {.status = (uint32_t)why, .rank = rank};
    snprintf(failure.sentence, sizeof failure.sentence, "%s", said);
    job_fail(table, here, &failure);
    *first = here->failure;
    job_forget_if_over(table, here);
    return DMG_OK;
}

dmg_status dmg_job_table_leave(dmg_job_table *table, uint64_t client, uint64_t id, uint32_t rank)
{
    job *here;
    dmg_status status = job_find_member(table, client, id, rank, &here);
    if (status != DMG_OK) {
        return status;
    }
    if (here->waiting > 0) {
        dmg_job_failure why = {.status = DMG_ERR_CANCELLED, .rank = DMG_JOB_NO_RANK};
        snprintf(why.sentence, sizeof why.sentence, "compute node %u left the job \"%s\" while others waited for it",
                 rank, here->name);
        job_fail(table, here, &why);
    }
    member_go(here, rank);
    for (uint32_t index = 0; index < table->count; index++) {
        job *child = table->jobs[index];
        if (child->parent == id && child->stage == STAGE_JOINING) {
            child_check(table, child, here);
        }
    }
    job_forget_if_over(table, here);
    return DMG_OK;
}

void dmg_job_table_client_gone(dmg_job_table *table, uint64_t client, dmg_status why)
{
    /* Backwards: a job that is over is taken out of the array. */
    for (uint32_t index = table->count; index-- > 0;) {
        job *here = table->jobs[index];
        for (uint32_t rank = 0; rank < here->size; rank++) {
            if (here->members[rank].state != MEMBER_PRESENT || here->members[rank].client != client) {
                continue;
            }
            dmg_job_failure failure = {.status = DMG_ERR_PEER, .rank = DMG_JOB_NO_RANK};
            snprintf(failure.sentence, sizeof failure.sentence, "compute node %u %s", rank,
                     why == DMG_OK          ? "ended without leaving the job"
                     : why == DMG_ERR_LIMIT ? "has more channels than the pool lets one job have"
                                            : "died, or was silent for longer than the peer timeout");
            job_fail(table, here, &failure);
            member_go(here, rank);
        }
        job_forget_if_over(table, here);
    }
}
