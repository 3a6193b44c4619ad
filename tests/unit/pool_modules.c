/*
 * The parts of a memory node that need no transport: the space, the allocator, the catalog, tenancy and the table of jobs.
 */
#include "suite.h"

#include "core/base/error.h"
#include "core/pool/catalog.h"
#include "core/pool/job_table.h"
#include "core/pool/segment_allocator.h"
#include "core/pool/space.h"
#include "core/pool/tenancy.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB  (UINT64_C(1) << 20)
#define PAGE UINT64_C(4096)

static uint64_t random_next(uint64_t *state)
{
    /* Weyl sequence, mixed (splitmix64). */
    uint64_t value = *state += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

static bool message_has(const char *words)
{
    return strstr(dmg_error_message(), words) != NULL;
}

/* ---- space ---- */

static void space_takes_low_memory_first_and_merges_what_comes_back(void)
{
    dmg_space *space;
    uint64_t first, second, third, dirty;
    CU_ASSERT_EQUAL_FATAL(dmg_space_create(PAGE, 9 * PAGE, 100, &space), DMG_OK);
    CU_ASSERT_TRUE(dmg_space_take(space, 2 * PAGE, PAGE, 0, &first, &dirty));
    CU_ASSERT_EQUAL(first, PAGE);
    CU_ASSERT_EQUAL(dirty, 0);
    CU_ASSERT_TRUE(dmg_space_take(space, 3 * PAGE, PAGE, 0, &second, &dirty));
    CU_ASSERT_TRUE(dmg_space_take(space, 3 * PAGE, PAGE, 0, &third, &dirty));
    CU_ASSERT_FALSE(dmg_space_take(space, PAGE, PAGE, 0, &third, &dirty));
    CU_ASSERT_TRUE(dmg_space_give(space, first, 2 * PAGE));
    CU_ASSERT_TRUE(dmg_space_give(space, third, 3 * PAGE));
    CU_ASSERT_FALSE(dmg_space_take(space, 4 * PAGE, PAGE, 0, &first, &dirty));
    CU_ASSERT_TRUE(dmg_space_give(space, second, 3 * PAGE));
    uint64_t left, largest;
    dmg_space_left(space, &left, &largest);
    CU_ASSERT_EQUAL(left, 8 * PAGE);
    CU_ASSERT_EQUAL(largest, 8 * PAGE);
    dmg_space_destroy(space);
}

static void space_knows_what_was_never_used(void)
{
    dmg_space *space;
    uint64_t offset, dirty;
    CU_ASSERT_EQUAL_FATAL(dmg_space_create(PAGE, 101 * PAGE, 100, &space), DMG_OK);
    CU_ASSERT_TRUE(dmg_space_take(space, 3 * PAGE, PAGE, 0, &offset, &dirty));
    CU_ASSERT_EQUAL(dirty, 0);
    CU_ASSERT_TRUE(dmg_space_give(space, offset, 3 * PAGE));
    CU_ASSERT_TRUE(dmg_space_take(space, 10 * PAGE, PAGE, 0, &offset, &dirty));
    CU_ASSERT_EQUAL(offset, PAGE);
    CU_ASSERT_EQUAL(dirty, 3 * PAGE);
    CU_ASSERT_TRUE(dmg_space_take(space, 16 * PAGE, 16 * PAGE, 0, &offset, &dirty));
    CU_ASSERT_EQUAL(offset, 16 * PAGE);
    CU_ASSERT_EQUAL(dirty, 0);
    dmg_space_destroy(space);
}

static void space_refuses_what_it_cannot_remember(void)
{
    dmg_space *space;
    uint64_t offset, dirty;
    CU_ASSERT_EQUAL_FATAL(dmg_space_create(PAGE, 11 * PAGE, 2, &space), DMG_OK);
    CU_ASSERT_TRUE(dmg_space_take(space, 10 * PAGE, PAGE, 0, &offset, &dirty));
    CU_ASSERT_TRUE(dmg_space_give(space, 2 * PAGE, PAGE));
    CU_ASSERT_TRUE(dmg_space_give(space, 4 * PAGE, PAGE));
    CU_ASSERT_FALSE(dmg_space_give(space, 6 * PAGE, PAGE));
    CU_ASSERT_TRUE(dmg_space_give(space, 3 * PAGE, PAGE));
    CU_ASSERT_TRUE(dmg_space_give(space, 6 * PAGE, PAGE));
    dmg_space_destroy(space);
    CU_ASSERT_EQUAL(dmg_space_create(PAGE, PAGE, 2, &space), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_space_create(PAGE, PAGE + 1, 2, &space), DMG_ERR_ARGUMENT);
}

/* ---- allocator ---- */

typedef struct segment {
    unsigned char *memory;
    uint64_t bytes;
    dmg_segment_allocator *allocator;
} segment;

static segment segment_open(uint64_t bytes)
{
    segment made = {.bytes = bytes};
    made.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_NOT_EQUAL_FATAL(made.memory, MAP_FAILED);
    CU_ASSERT_EQUAL_FATAL(dmg_segment_allocator_create(made.memory, bytes, &made.allocator), DMG_OK);
    return made;
}

static void segment_close(segment *used)
{
    dmg_segment_allocator_destroy(used->allocator);
    munmap(used->memory, used->bytes);
}

static dmg_status segment_allocate(segment *used, uint64_t bytes, uint64_t job, uint64_t *offset)
{
    uint64_t dirty_left;
    dmg_status status = dmg_segment_allocator_allocate(used->allocator, bytes, job, 7, offset, &dirty_left);
    while (status == DMG_OK && dirty_left > 0) {
        status = dmg_segment_allocator_zero(used->allocator, *offset, 7, &dirty_left);
    }
    return status;
}

static uint64_t segment_allocated(const segment *used)
{
    uint64_t allocated;
    dmg_segment_allocator_usage(used->allocator, &allocated, NULL, NULL);
    return allocated;
}

static bool bytes_are(const unsigned char *bytes, uint64_t count, unsigned char value)
{
    return count == 0 || (bytes[0] == value && memcmp(bytes, bytes + 1, count - 1) == 0);
}

#define LIVE_MAX 200

/*
 * Every extent is filled with a value of its own; when it is freed the value must still be everywhere in it (nothing overlaps,
 * and nobody keeps records in there), and every new one must be zero.
 */
static void extents_are_zeroed_aligned_and_never_overlap(void)
{
    unsigned long long seed = dmg_test_seed();
    uint64_t state = seed;
    segment used = segment_open(64 * MIB);
    struct {
        uint64_t offset;
        uint64_t bytes;
        unsigned char value;
    } live[LIVE_MAX];
    uint32_t count = 0;
    uint32_t wrong = 0;
    for (uint32_t step = 0; step < 4000; step++) {
        if (count < LIVE_MAX && random_next(&state) % 100 < 55) {
            uint64_t limit = random_next(&state) % 10 == 0 ? 4 * MIB : 300000;
            uint64_t bytes = 1 + random_next(&state) % limit;
            uint64_t offset;
            if (segment_allocate(&used, bytes, 0, &offset) != DMG_OK) {
                continue;
            }
            wrong += offset % PAGE != 0 || offset < PAGE || offset + bytes > used.bytes;
            wrong += !bytes_are(used.memory + offset, bytes, 0);
            live[count].offset = offset;
            live[count].bytes = bytes;
            live[count].value = (unsigned char)(1 + step % 255);
            memset(used.memory + offset, live[count].value, bytes);
            count++;
        } else if (count > 0) {
            uint32_t index = (uint32_t)(random_next(&state) % count);
            wrong += !bytes_are(used.memory + live[index].offset, live[index].bytes, live[index].value);
            wrong += dmg_segment_allocator_free(used.allocator, live[index].offset) != DMG_OK;
            live[index] = live[--count];
        }
    }
    while (count > 0) {
        count--;
        wrong += !bytes_are(used.memory + live[count].offset, live[count].bytes, live[count].value);
        wrong += dmg_segment_allocator_free(used.allocator, live[count].offset) != DMG_OK;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(segment_allocated(&used), 0);
    /* Nothing is lost to fragments when all is free. */
    uint64_t offset;
    CU_ASSERT_EQUAL(segment_allocate(&used, 64 * MIB - PAGE, 0, &offset), DMG_OK);
    CU_ASSERT_TRUE(bytes_are(used.memory + offset, 64 * MIB - PAGE, 0));
    CU_ASSERT_TRUE(bytes_are(used.memory, PAGE, 0));
    segment_close(&used);
}

static void a_whole_segment_can_be_one_extent(void)
{
    segment used = segment_open(48 * MIB);
    uint64_t offset;
    CU_ASSERT_EQUAL(segment_allocate(&used, 48 * MIB - PAGE, 0, &offset), DMG_OK);
    CU_ASSERT_EQUAL(offset, PAGE);
    CU_ASSERT_EQUAL(segment_allocated(&used), 48 * MIB - PAGE);
    CU_ASSERT_EQUAL(segment_allocate(&used, 1, 0, &offset), DMG_ERR_MEMORY);
    CU_ASSERT_TRUE(message_has("0 are left"));
    segment_close(&used);
}

static void exhaustion_says_what_is_left_and_small_extents_use_the_last_page(void)
{
    segment used = segment_open(1 * MIB);
    uint64_t offset;
    uint64_t all = 1 * MIB - PAGE;
    CU_ASSERT_EQUAL(segment_allocate(&used, 2 * MIB, 0, &offset), DMG_ERR_MEMORY);
    CU_ASSERT_TRUE(message_has("1044480 are left"));
    CU_ASSERT_EQUAL(segment_allocate(&used, UINT64_MAX, 0, &offset), DMG_ERR_MEMORY);
    CU_ASSERT_EQUAL(segment_allocate(&used, UINT64_MAX - 4095, 0, &offset), DMG_ERR_MEMORY);
    CU_ASSERT_EQUAL(segment_allocate(&used, 0, 0, &offset), DMG_ERR_ARGUMENT);
    uint32_t count = 0;
    while (count < 1000 && segment_allocate(&used, 1, 0, &offset) == DMG_OK) {
        count++;
    }
    CU_ASSERT_EQUAL(count, all / PAGE);
    CU_ASSERT_TRUE(message_has("0 are left"));
    segment_close(&used);
}

static void only_the_begin_of_a_live_extent_can_be_freed(void)
{
    segment used = segment_open(16 * MIB);
    uint64_t small, large;
    CU_ASSERT_EQUAL(segment_allocate(&used, 3 * PAGE, 0, &small), DMG_OK);
    CU_ASSERT_EQUAL(segment_allocate(&used, 2 * MIB, 0, &large), DMG_OK);
    const uint64_t wrong[] = {
        0, 1, PAGE - 1, small + 1, small + PAGE, large + MIB, large + 2 * MIB, 16 * MIB, UINT64_MAX, UINT64_MAX - 4095};
    for (size_t index = 0; index < sizeof wrong / sizeof wrong[0]; index++) {
        CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, wrong[index]), DMG_ERR_NOT_FOUND);
    }
    CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, small), DMG_OK);
    CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, small), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, large), DMG_OK);
    CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, large), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(segment_allocated(&used), 0);
    segment_close(&used);
}

static void zeroing_goes_in_steps_and_only_for_the_owner(void)
{
    segment used = segment_open(128 * MIB);
    uint64_t bytes = 2 * DMG_SEGMENT_ZERO_STEP_BYTES + MIB;
    uint64_t offset, dirty_left;
    CU_ASSERT_EQUAL(dmg_segment_allocator_allocate(used.allocator, bytes, 0, 7, &offset, &dirty_left), DMG_OK);
    CU_ASSERT_EQUAL(dirty_left, 0);
    memset(used.memory + offset, 0xaa, bytes);
    CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, offset), DMG_OK);
    CU_ASSERT_EQUAL(dmg_segment_allocator_allocate(used.allocator, bytes, 0, 7, &offset, &dirty_left), DMG_OK);
    CU_ASSERT_EQUAL(dirty_left, bytes - DMG_SEGMENT_ZERO_STEP_BYTES);
    CU_ASSERT_EQUAL(dmg_segment_allocator_zero(used.allocator, offset, 8, &dirty_left), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_segment_allocator_zero(used.allocator, offset, 7, &dirty_left), DMG_OK);
    CU_ASSERT_EQUAL(dirty_left, MIB);
    CU_ASSERT_EQUAL(dmg_segment_allocator_zero(used.allocator, offset, 7, &dirty_left), DMG_OK);
    CU_ASSERT_EQUAL(dirty_left, 0);
    CU_ASSERT_TRUE(bytes_are(used.memory + offset, bytes, 0));
    used.memory[offset] = 1;
    CU_ASSERT_EQUAL(dmg_segment_allocator_zero(used.allocator, offset, 7, &dirty_left), DMG_OK);
    CU_ASSERT_EQUAL(used.memory[offset], 1);
    segment_close(&used);
}

static void fresh_memory_is_not_touched(void)
{
    segment used = segment_open(256 * MIB);
    uint64_t offset;
    CU_ASSERT_EQUAL(segment_allocate(&used, 200 * MIB, 0, &offset), DMG_OK);
    CU_ASSERT_EQUAL(segment_allocate(&used, 100000, 0, &offset), DMG_OK);
    size_t pages = used.bytes / PAGE;
    unsigned char *resident = malloc(pages);
    CU_ASSERT_PTR_NOT_NULL_FATAL(resident);
    CU_ASSERT_EQUAL_FATAL(mincore(used.memory, used.bytes, resident), 0);
    size_t count = 0;
    for (size_t page = 0; page < pages; page++) {
        count += resident[page] & 1;
    }
    CU_ASSERT_EQUAL(count, 0);
    free(resident);
    segment_close(&used);
}

static void the_extents_of_a_job_are_freed_together(void)
{
    segment used = segment_open(32 * MIB);
    uint64_t kept, offset;
    CU_ASSERT_EQUAL(segment_allocate(&used, 5 * PAGE, 0, &kept), DMG_OK);
    uint64_t before = segment_allocated(&used);
    for (uint64_t index = 1; index <= 60; index++) {
        CU_ASSERT_EQUAL(segment_allocate(&used, index * 10000, 1 + index % 2, &offset), DMG_OK);
    }
    uint64_t peak;
    dmg_segment_allocator_usage(used.allocator, NULL, &peak, NULL);
    CU_ASSERT_EQUAL(peak, segment_allocated(&used));
    dmg_segment_allocator_free_job(used.allocator, 1);
    CU_ASSERT_TRUE(segment_allocated(&used) > before);
    dmg_segment_allocator_free_job(used.allocator, 2);
    CU_ASSERT_EQUAL(segment_allocated(&used), before);
    CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, kept), DMG_OK);
    segment_close(&used);
}

static void the_number_of_extents_is_bounded(void)
{
    segment used = segment_open((DMG_SEGMENT_EXTENTS_MAX + 4096) * PAGE);
    uint64_t offset;
    uint32_t count = 0;
    dmg_status status = DMG_OK;
    while (count <= DMG_SEGMENT_EXTENTS_MAX && status == DMG_OK) {
        status = segment_allocate(&used, PAGE, 3, &offset);
        count += status == DMG_OK;
    }
    CU_ASSERT_EQUAL(status, DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(count, DMG_SEGMENT_EXTENTS_MAX);
    dmg_segment_allocator_free_job(used.allocator, 3);
    CU_ASSERT_EQUAL(segment_allocated(&used), 0);
    segment_close(&used);
}

static void too_small_segments_are_refused(void)
{
    char memory[1];
    dmg_segment_allocator *allocator;
    CU_ASSERT_EQUAL(dmg_segment_allocator_create(memory, 0, &allocator), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_segment_allocator_create(memory, 2 * PAGE - 1, &allocator), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_NULL(allocator);
}

/* ---- catalog ---- */

static void catalog_finds_by_name_and_refuses_twice(void)
{
    dmg_catalog *catalog;
    const void *value;
    size_t bytes;
    CU_ASSERT_EQUAL_FATAL(dmg_catalog_create(&catalog), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_insert(catalog, 0, "b", "two", 3), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_insert(catalog, 5, "a", "one", 3), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_insert(catalog, 5, "c", "", 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_insert(catalog, 0, "a", "1", 1), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(dmg_catalog_find(catalog, "a", &value, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(bytes, 3);
    CU_ASSERT_EQUAL(memcmp(value, "one", 3), 0);
    CU_ASSERT_EQUAL(dmg_catalog_find(catalog, "d", &value, &bytes), DMG_ERR_NOT_FOUND);
    dmg_catalog_erase_job(catalog, 5);
    CU_ASSERT_EQUAL(dmg_catalog_find(catalog, "a", &value, &bytes), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_catalog_find(catalog, "c", &value, &bytes), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_catalog_find(catalog, "b", &value, &bytes), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_erase(catalog, "b"), DMG_OK);
    CU_ASSERT_EQUAL(dmg_catalog_erase(catalog, "b"), DMG_ERR_NOT_FOUND);
    dmg_catalog_destroy(catalog);
}

static void catalog_is_bounded(void)
{
    dmg_catalog *catalog;
    CU_ASSERT_EQUAL_FATAL(dmg_catalog_create(&catalog), DMG_OK);
    uint32_t wrong = 0;
    char name[32];
    for (uint32_t index = 0; index < DMG_CATALOG_ENTRIES_MAX; index++) {
        snprintf(name, sizeof name, "entry %u", index);
        wrong += dmg_catalog_insert(catalog, 0, name, name, sizeof name) != DMG_OK;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(dmg_catalog_insert(catalog, 0, "one more", "", 0), DMG_ERR_LIMIT);
    dmg_catalog_destroy(catalog);
}

/* ---- tenancy ---- */

typedef struct released_jobs {
    uint32_t count;
    uint64_t jobs[16];
} released_jobs;

static void note_release(void *context, uint64_t job)
{
    released_jobs *released = context;
    released->jobs[released->count++ % 16] = job;
}

static void a_job_is_released_when_its_last_tenant_has_gone(void)
{
    released_jobs released = {0};
    dmg_tenancy *tenancy;
    CU_ASSERT_EQUAL_FATAL(dmg_tenancy_create(note_release, &released, &tenancy), DMG_OK);
    CU_ASSERT_EQUAL(dmg_tenancy_attach(tenancy, 0, 1), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_tenancy_attach(tenancy, 10, 1), DMG_OK);
    CU_ASSERT_EQUAL(dmg_tenancy_attach(tenancy, 10, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_tenancy_attach(tenancy, 10, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_tenancy_attach(tenancy, 20, 2), DMG_OK);
    CU_ASSERT_TRUE(dmg_tenancy_is_attached(tenancy, 10, 1));
    CU_ASSERT_FALSE(dmg_tenancy_is_attached(tenancy, 20, 1));
    CU_ASSERT_EQUAL(dmg_tenancy_detach(tenancy, 20, 1), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_tenancy_detach(tenancy, 10, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_tenancy_detach(tenancy, 10, 1), DMG_OK);
    CU_ASSERT_EQUAL(released.count, 0);
    dmg_tenancy_client_gone(tenancy, 2);
    CU_ASSERT_EQUAL(released.count, 2);
    CU_ASSERT_EQUAL(released.jobs[0] + released.jobs[1], 30);
    CU_ASSERT_FALSE(dmg_tenancy_is_attached(tenancy, 10, 2));
    dmg_tenancy_destroy(tenancy);
}

static void tenancy_is_bounded(void)
{
    released_jobs released = {0};
    dmg_tenancy *tenancy;
    CU_ASSERT_EQUAL_FATAL(dmg_tenancy_create(note_release, &released, &tenancy), DMG_OK);
    uint32_t wrong = 0;
    for (uint64_t index = 1; index <= DMG_TENANCY_ATTACHMENTS_MAX; index++) {
        wrong += dmg_tenancy_attach(tenancy, index, 1) != DMG_OK;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(dmg_tenancy_attach(tenancy, 1, 2), DMG_ERR_LIMIT);
    dmg_tenancy_destroy(tenancy);
}

/* ---- jobs ---- */

#define TOKENS_MAX 4096

/* What became of each token: the table must answer each exactly once. */
typedef struct answers {
    uint32_t times[TOKENS_MAX];
    dmg_status status[TOKENS_MAX];
    char text[TOKENS_MAX][128];
    dmg_reduction reduction;
    uint64_t job;
} answers;

static answers said;
static dmg_job_table *table;

static void note_answer(void *context, uint64_t token, dmg_status status, const void *payload, size_t bytes)
{
    answers *noted = context;
    noted->times[token]++;
    noted->status[token] = status;
    snprintf(noted->text[token], sizeof noted->text[token], "%.*s", status == DMG_OK ? 0 : (int)bytes,
             (const char *)payload);
    if (status == DMG_OK && bytes == sizeof noted->reduction) {
        memcpy(&noted->reduction, payload, bytes);
    } else if (status == DMG_OK && bytes == sizeof noted->job) {
        memcpy(&noted->job, payload, bytes);
    }
}

static void table_open(void)
{
    memset(&said, 0, sizeof said);
    CU_ASSERT_EQUAL_FATAL(dmg_job_table_create(note_answer, &said, &table), DMG_OK);
}

static void table_close(void)
{
    dmg_job_table_destroy(table);
    table = NULL;
}

static bool was_answered(uint64_t token, dmg_status status, const char *words)
{
    return said.times[token] == 1 && said.status[token] == status && strstr(said.text[token], words) != NULL;
}

/* Ranks 0 to size - 1 join as clients 100 + rank and get ready, with tokens 0 to 2 * size - 1. Returns the job. */
static uint64_t table_start_job(const char *name, uint32_t size)
{
    for (uint32_t rank = 0; rank < size; rank++) {
        CU_ASSERT_EQUAL(dmg_job_table_join(table, 100 + rank, rank, name, rank, size), DMG_OK);
        CU_ASSERT_EQUAL(said.times[0], rank + 1 == size);
    }
    uint64_t job = said.job;
    for (uint32_t rank = 0; rank < size; rank++) {
        CU_ASSERT_EQUAL(dmg_job_table_ready(table, 100 + rank, size + rank, job, rank), DMG_OK);
    }
    for (uint32_t token = 0; token < 2 * size; token++) {
        CU_ASSERT_TRUE(was_answered(token, DMG_OK, ""));
    }
    return job;
}

static void joining_ends_when_all_have_come(void)
{
    table_open();
    uint64_t job = table_start_job("first", 3);
    CU_ASSERT_NOT_EQUAL(job, 0);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 200, 10, "first", 1, 3), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 200, 10, "first", 1, 4), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 200, 10, "other", 4, 4), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 200, 10, "other", 0, 0), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 200, 10, "other", 0, DMG_JOB_SIZE_MAX + 1), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(said.times[10], 0);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 200, 11, "other", 0, 1), DMG_OK);
    CU_ASSERT_TRUE(was_answered(11, DMG_OK, ""));
    CU_ASSERT_NOT_EQUAL(said.job, job);
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_EQUAL(dmg_job_table_count(table), 2);
        CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100 + rank, job, rank), DMG_OK);
    }
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 1);
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, job, 0), DMG_ERR_NOT_FOUND);
    table_close();
}

static void a_barrier_reduces_in_the_order_of_ranks(void)
{
    unsigned long long seed = dmg_test_seed();
    uint64_t state = seed;
    table_open();
    enum { SIZE = 5 };
    uint64_t job = table_start_job("reduce", SIZE);
    uint64_t token = 2 * SIZE;
    for (uint64_t epoch = 0; epoch < 50; epoch++) {
        dmg_reduction in[SIZE];
        dmg_reduction expected = {.least = {UINT64_MAX, UINT64_MAX}};
        uint32_t order[SIZE];
        for (uint32_t rank = 0; rank < SIZE; rank++) {
            for (uint32_t index = 0; index < DMG_REDUCE_SUMS; index++) {
                in[rank].sums[index] = random_next(&state);
                expected.sums[index] += in[rank].sums[index];
            }
            for (uint32_t index = 0; index < DMG_REDUCE_REALS; index++) {
                /* Of very different sizes, so that the order matters. */
                in[rank].reals[index] = (double)(random_next(&state) >> (random_next(&state) % 60)) / 3;
                expected.reals[index] += in[rank].reals[index];
            }
            for (uint32_t index = 0; index < 2; index++) {
                uint64_t least = in[rank].least[index] = random_next(&state);
                uint64_t most = in[rank].most[index] = random_next(&state);
                expected.least[index] = least < expected.least[index] ? least : expected.least[index];
                expected.most[index] = most > expected.most[index] ? most : expected.most[index];
            }
            order[rank] = rank;
        }
        for (uint32_t index = SIZE; index-- > 1;) {
            uint32_t other = (uint32_t)(random_next(&state) % (index + 1));
            uint32_t swapped = order[index];
            order[index] = order[other];
            order[other] = swapped;
        }
        for (uint32_t index = 0; index < SIZE; index++) {
            uint32_t rank = order[index];
            CU_ASSERT_EQUAL(said.times[token], 0);
            CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100 + rank, token + index, job, rank, epoch, &in[rank]),
                            DMG_OK);
        }
        for (uint32_t index = 0; index < SIZE; index++) {
            CU_ASSERT_TRUE(was_answered(token + index, DMG_OK, ""));
        }
        CU_ASSERT_EQUAL(memcmp(&said.reduction, &expected, sizeof expected), 0);
        token += SIZE;
    }
    table_close();
}

static void ranks_without_values_do_not_disturb_a_reduction(void)
{
    table_open();
    uint64_t job = table_start_job("some", 3);
    dmg_reduction in = {.sums = {7}, .reals = {0.5}, .least = {9, 3}, .most = {1}};
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 102, 12, job, 2, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 101, 11, job, 1, 0, &in), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 0, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(memcmp(&said.reduction, &in, sizeof in), 0);
    for (uint32_t rank = 0; rank < 3; rank++) {
        CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100 + rank, 20 + rank, job, rank, 1, NULL), DMG_OK);
    }
    dmg_reduction nothing = {0};
    CU_ASSERT_EQUAL(memcmp(&said.reduction, &nothing, sizeof nothing), 0);
    table_close();
}

static void strangers_and_wrong_epochs_are_refused_without_harm(void)
{
    table_open();
    uint64_t job = table_start_job("epochs", 2);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 0, 1, NULL), DMG_ERR_ARGUMENT);
    CU_ASSERT_TRUE(message_has("barrier 1"));
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 1, 0, NULL), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 2, 0, NULL), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job + 1, 0, 0, NULL), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_table_ready(table, 100, 10, job, 0), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_job_table_abort(table, 300, job, 0, DMG_ERR_IO, "mine"), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 101, job, 0), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 11, job, 0, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 12, job, 0, 0, NULL), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 101, 13, job, 1, 0, NULL), DMG_OK);
    CU_ASSERT_TRUE(was_answered(11, DMG_OK, ""));
    CU_ASSERT_TRUE(was_answered(13, DMG_OK, ""));
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 400, 14, "waits", 0, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 400, 15, job + 1, 0, 0, NULL), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(said.times[14], 0);
    table_close();
}

static void a_death_fails_every_waiting_and_later_barrier(void)
{
    table_open();
    uint64_t job = table_start_job("death", 3);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 0, 0, NULL), DMG_OK);
    dmg_job_table_client_gone(table, 999, DMG_ERR_PEER);
    CU_ASSERT_EQUAL(said.times[10], 0);
    dmg_job_table_client_gone(table, 101, DMG_ERR_PEER);
    CU_ASSERT_TRUE(was_answered(10, DMG_ERR_PEER, "compute node 1 died"));
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 102, 11, job, 2, 0, NULL), DMG_OK);
    CU_ASSERT_TRUE(was_answered(11, DMG_ERR_PEER, "compute node 1 died"));
    /* It stays failed, whatever happens later. */
    CU_ASSERT_EQUAL(dmg_job_table_abort(table, 100, job, 0, DMG_ERR_IO, "later"), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 102, 12, job, 2, 0, NULL), DMG_OK);
    CU_ASSERT_TRUE(was_answered(12, DMG_ERR_PEER, "compute node 1 died"));
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 500, 13, "death", 1, 3), DMG_OK);
    CU_ASSERT_TRUE(was_answered(13, DMG_ERR_PEER, "compute node 1 died"));
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, job, 0), DMG_OK);
    dmg_job_table_client_gone(table, 102, DMG_ERR_PEER);
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 0);
    table_close();
}

static void a_death_while_joining_fails_also_those_who_come_later(void)
{
    table_open();
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 100, 0, "early", 0, 4), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 101, 1, "early", 1, 4), DMG_OK);
    dmg_job_table_client_gone(table, 100, DMG_ERR_PEER);
    CU_ASSERT_TRUE(was_answered(1, DMG_ERR_PEER, "compute node 0 died"));
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 102, 2, "early", 2, 4), DMG_OK);
    CU_ASSERT_TRUE(was_answered(2, DMG_ERR_PEER, "compute node 0 died"));
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 1);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 103, 3, "early", 3, 4), DMG_OK);
    CU_ASSERT_TRUE(was_answered(3, DMG_ERR_PEER, "compute node 0 died"));
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 0);
    table_close();
}

static void a_death_between_join_and_ready_fails_the_job(void)
{
    table_open();
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 100, 0, "ready", 0, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 101, 1, "ready", 1, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_ready(table, 100, 2, said.job, 0), DMG_OK);
    dmg_job_table_client_gone(table, 101, DMG_OK);
    CU_ASSERT_TRUE(was_answered(2, DMG_ERR_PEER, "compute node 1 ended without leaving"));
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, said.job, 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 0);
    table_close();
}

static void an_abort_tells_the_others_the_sentence(void)
{
    table_open();
    uint64_t job = table_start_job("abort", 2);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 100, 10, job, 0, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_abort(table, 101, job, 1, DMG_ERR_LIMIT, "the cache is too small"), DMG_OK);
    CU_ASSERT_TRUE(was_answered(10, DMG_ERR_LIMIT, "compute node 1: the cache is too small"));
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 101, job, 1), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, job, 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_count(table), 0);
    table_close();
}

static void leaving_early_ends_the_waiting_of_others(void)
{
    table_open();
    uint64_t job = table_start_job("early leave", 3);
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, job, 0), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 101, 10, job, 1, 0, NULL), DMG_OK);
    CU_ASSERT_TRUE(was_answered(10, DMG_ERR_CANCELLED, "compute node 0 left"));
    table_close();
    table_open();
    job = table_start_job("early leave", 3);
    CU_ASSERT_EQUAL(dmg_job_table_barrier(table, 101, 10, job, 1, 0, NULL), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_leave(table, 100, job, 0), DMG_OK);
    CU_ASSERT_TRUE(was_answered(10, DMG_ERR_CANCELLED, "compute node 0 left"));
    table_close();
}

static void jobs_are_bounded_and_failed_ones_make_room(void)
{
    table_open();
    char name[32];
    for (uint32_t index = 0; index < DMG_JOBS_MAX; index++) {
        snprintf(name, sizeof name, "job %u", index);
        CU_ASSERT_EQUAL(dmg_job_table_join(table, index, index, name, 0, 2), DMG_OK);
    }
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 1000, 1000, "one more", 0, 2), DMG_ERR_LIMIT);
    dmg_job_table_client_gone(table, 17, DMG_ERR_PEER);
    CU_ASSERT_EQUAL(dmg_job_table_count(table), DMG_JOBS_MAX);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 1000, 1001, "one more", 0, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_table_count(table), DMG_JOBS_MAX);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 1001, 1002, "another", 0, 2), DMG_ERR_LIMIT);
    CU_ASSERT_EQUAL(dmg_job_table_join(table, 1001, 1002, "one more", 1, 2), DMG_OK);
    CU_ASSERT_TRUE(was_answered(1001, DMG_OK, ""));
    table_close();
}

/* Random requests, right and wrong: the table stays consistent, and no token is ever answered twice. */
static void random_requests_never_answer_a_token_twice(void)
{
    unsigned long long seed = dmg_test_seed();
    uint64_t state = seed;
    table_open();
    uint32_t wrong = 0;
    for (uint64_t token = 1; token < TOKENS_MAX; token++) {
        uint64_t client = 1 + random_next(&state) % 6;
        uint64_t job = 1 + random_next(&state) % (2 + token / 100);
        uint32_t rank = (uint32_t)(random_next(&state) % 3);
        uint32_t size = 1 + (uint32_t)(random_next(&state) % 3);
        char name[2] = {(char)('a' + random_next(&state) % 3), 0};
        dmg_status status = DMG_OK;
        bool keeps = true;
        switch (random_next(&state) % 12) {
        case 0:
        case 1:
        case 2:
        case 3:
            status = dmg_job_table_join(table, client, token, name, rank, size);
            break;
        case 4:
        case 5:
            status = dmg_job_table_ready(table, client, token, job, rank);
            break;
        case 6:
        case 7:
        case 8:
            status = dmg_job_table_barrier(table, client, token, job, rank, random_next(&state) % 2, NULL);
            break;
        case 9:
            status = dmg_job_table_abort(table, client, job, rank, DMG_ERR_IO, "why not");
            keeps = false;
            break;
        case 10:
            status = dmg_job_table_leave(table, client, job, rank);
            keeps = false;
            break;
        default:
            dmg_job_table_client_gone(table, client, random_next(&state) % 2 ? DMG_OK : DMG_ERR_PEER);
            keeps = false;
            break;
        }
        wrong += (status != DMG_OK || !keeps) && said.times[token] != 0;
    }
    for (uint64_t client = 1; client <= 6; client++) {
        dmg_job_table_client_gone(table, client, DMG_ERR_PEER);
    }
    for (uint64_t token = 1; token < TOKENS_MAX; token++) {
        wrong += said.times[token] > 1;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    table_close();
}

int main(int argc, char **argv)
{
    static const dmg_test memory_tests[] = {
        DMG_TEST(space_takes_low_memory_first_and_merges_what_comes_back),
        DMG_TEST(space_knows_what_was_never_used),
        DMG_TEST(space_refuses_what_it_cannot_remember),
        DMG_TEST(extents_are_zeroed_aligned_and_never_overlap),
        DMG_TEST(a_whole_segment_can_be_one_extent),
        DMG_TEST(exhaustion_says_what_is_left_and_small_extents_use_the_last_page),
        DMG_TEST(only_the_begin_of_a_live_extent_can_be_freed),
        DMG_TEST(zeroing_goes_in_steps_and_only_for_the_owner),
        DMG_TEST(fresh_memory_is_not_touched),
        DMG_TEST(the_extents_of_a_job_are_freed_together),
        DMG_TEST(the_number_of_extents_is_bounded),
        DMG_TEST(too_small_segments_are_refused),
        {NULL, NULL},
    };
    static const dmg_test catalog_tests[] = {
        DMG_TEST(catalog_finds_by_name_and_refuses_twice),
        DMG_TEST(catalog_is_bounded),
        DMG_TEST(a_job_is_released_when_its_last_tenant_has_gone),
        DMG_TEST(tenancy_is_bounded),
        {NULL, NULL},
    };
    static const dmg_test job_tests[] = {
        DMG_TEST(joining_ends_when_all_have_come),
        DMG_TEST(a_barrier_reduces_in_the_order_of_ranks),
        DMG_TEST(ranks_without_values_do_not_disturb_a_reduction),
        DMG_TEST(strangers_and_wrong_epochs_are_refused_without_harm),
        DMG_TEST(a_death_fails_every_waiting_and_later_barrier),
        DMG_TEST(a_death_while_joining_fails_also_those_who_come_later),
        DMG_TEST(a_death_between_join_and_ready_fails_the_job),
        DMG_TEST(an_abort_tells_the_others_the_sentence),
        DMG_TEST(leaving_early_ends_the_waiting_of_others),
        DMG_TEST(jobs_are_bounded_and_failed_ones_make_room),
        DMG_TEST(random_requests_never_answer_a_token_twice),
        {NULL, NULL},
    };
    if (dmg_suite_add("memory", NULL, NULL, memory_tests) || dmg_suite_add("catalog", NULL, NULL, catalog_tests) ||
        dmg_suite_add("jobs", NULL, NULL, job_tests)) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
