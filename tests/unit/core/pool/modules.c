/*
 * The parts of a memory node that need no transport: the page allocator, the segment allocator, the catalog and the
 * references of jobs.
 */
#include "unit/support/random.h"
#include "unit/support/suite.h"

#include "core/arena/jemalloc_arena.h"
#include "core/base/error.h"
#include "core/pool/catalog.h"
#include "core/pool/job_references.h"
#include "core/pool/page_allocator.h"
#include "core/pool/segment_allocator.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MIB  (UINT64_C(1) << 20)
#define PAGE UINT64_C(4096)

static bool message_has(const char *words)
{
    return strstr(dmg_error_message(), words) != NULL;
}

/* ---- space ---- */

static void the_page_allocator_takes_low_memory_first_and_merges_what_comes_back(void)
{
    dmg_page_allocator *space;
    uint64_t first, second, third, dirty;
    CU_ASSERT_EQUAL_FATAL(dmg_page_allocator_create(PAGE, 9 * PAGE, 100, &space), DMG_OK);
    CU_ASSERT_TRUE(dmg_page_allocator_allocate(space, 2 * PAGE, PAGE, 0, &first, &dirty));
    CU_ASSERT_EQUAL(first, PAGE);
    CU_ASSERT_EQUAL(dirty, 0);
    CU_ASSERT_TRUE(dmg_page_allocator_allocate(space, 3 * PAGE, PAGE, 0, &second, &dirty));
    CU_ASSERT_TRUE(dmg_page_allocator_allocate(space, 3 * PAGE, PAGE, 0, &third, &dirty));
    CU_ASSERT_FALSE(dmg_page_allocator_allocate(space, PAGE, PAGE, 0, &third, &dirty));
    CU_ASSERT_TRUE(dmg_page_allocator_free(space, first, 2 * PAGE));
    CU_ASSERT_TRUE(dmg_page_allocator_free(space, third, 3 * PAGE));
    CU_ASSERT_FALSE(dmg_page_allocator_allocate(space, 4 * PAGE, PAGE, 0, &first, &dirty));
    CU_ASSERT_TRUE(dmg_page_allocator_free(space, second, 3 * PAGE));
    uint64_t left, largest;
    dmg_page_allocator_left(space, &left, &largest);
    CU_ASSERT_EQUAL(left, 8 * PAGE);
    CU_ASSERT_EQUAL(largest, 8 * PAGE);
    dmg_page_allocator_destroy(space);
}

static void the_page_allocator_knows_what_was_never_used(void)
{
    dmg_page_allocator *space;
    uint64_t offset, dirty;
    CU_ASSERT_EQUAL_FATAL(dmg_page_allocator_create(PAGE, 101 * PAGE, 100, &space), DMG_OK);
    CU_ASSERT_TRUE(dmg_page_allocator_allocate(space, 3 * PAGE, PAGE, 0, &offset, &dirty));
    CU_ASSERT_EQUAL(dirty, 0);
    CU_ASSERT_TRUE(dmg_page_allocator_free(space, offset, 3 * PAGE));
    CU_ASSERT_TRUE(dmg_page_allocator_allocate(space, 10 * PAGE, PAGE, 0, &offset, &dirty));
    CU_ASSERT_EQUAL(offset, PAGE);
    CU_ASSERT_EQUAL(dirty, 3 * PAGE);
    CU_ASSERT_TRUE(dmg_page_allocator_allocate(space, 16 * PAGE, 16 * PAGE, 0, &offset, &dirty));
    CU_ASSERT_EQUAL(offset, 16 * PAGE);
    CU_ASSERT_EQUAL(dirty, 0);
    dmg_page_allocator_destroy(space);
}

static void the_page_allocator_refuses_what_it_cannot_remember(void)
{
    dmg_page_allocator *space;
    uint64_t offset, dirty;
    CU_ASSERT_EQUAL_FATAL(dmg_page_allocator_create(PAGE, 11 * PAGE, 2, &space), DMG_OK);
    CU_ASSERT_TRUE(dmg_page_allocator_allocate(space, 10 * PAGE, PAGE, 0, &offset, &dirty));
    CU_ASSERT_TRUE(dmg_page_allocator_free(space, 2 * PAGE, PAGE));
    CU_ASSERT_TRUE(dmg_page_allocator_free(space, 4 * PAGE, PAGE));
    CU_ASSERT_FALSE(dmg_page_allocator_free(space, 6 * PAGE, PAGE));
    CU_ASSERT_TRUE(dmg_page_allocator_free(space, 3 * PAGE, PAGE));
    CU_ASSERT_TRUE(dmg_page_allocator_free(space, 6 * PAGE, PAGE));
    dmg_page_allocator_destroy(space);
    CU_ASSERT_EQUAL(dmg_page_allocator_create(PAGE, PAGE, 2, &space), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_page_allocator_create(PAGE, PAGE + 1, 2, &space), DMG_ERR_ARGUMENT);
}

/* ---- allocator ---- */

typedef struct segment {
    unsigned char *memory;
    uint64_t bytes;
    dmg_segment_allocator *allocator;
} segment;

static segment segment_open_with(uint64_t bytes, const dmg_segment_arena_operations *arena)
{
    segment made = {.bytes = bytes};
    made.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_NOT_EQUAL_FATAL(made.memory, MAP_FAILED);
    CU_ASSERT_EQUAL_FATAL(dmg_segment_allocator_create(made.memory, bytes, arena, &made.allocator), DMG_OK);
    return made;
}

static segment segment_open(uint64_t bytes)
{
    return segment_open_with(bytes, &dmg_jemalloc_arena);
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
 * Every extent is filled with a value of its own; when it is freed the value must still be everywhere in it (nothing
 * overlaps, and nobody keeps records in there), and every new one must be zero.
 */
static void expect_sound_extents(const dmg_segment_arena_operations *arena)
{
    unsigned long long seed = dmg_test_seed();
    dmg_random random = {seed};
    segment used = segment_open_with(64 * MIB, arena);
    struct {
        uint64_t offset;
        uint64_t bytes;
        unsigned char value;
    } live[LIVE_MAX];
    uint32_t count = 0;
    uint32_t wrong = 0;
    for (uint32_t step = 0; step < 4000; step++) {
        if (count < LIVE_MAX && dmg_random_next(&random) % 100 < 55) {
            uint64_t limit = dmg_random_next(&random) % 10 == 0 ? 4 * MIB : 300000;
            uint64_t bytes = 1 + dmg_random_next(&random) % limit;
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
            uint32_t index = (uint32_t)(dmg_random_next(&random) % count);
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

static void extents_are_zeroed_aligned_and_never_overlap(void)
{
    expect_sound_extents(&dmg_jemalloc_arena);
    expect_sound_extents(NULL);
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

static size_t resident_pages(const segment *used)
{
    size_t pages = used->bytes / PAGE;
    unsigned char *resident = malloc(pages);
    CU_ASSERT_PTR_NOT_NULL_FATAL(resident);
    CU_ASSERT_EQUAL_FATAL(mincore(used->memory, used->bytes, resident), 0);
    size_t count = 0;
    for (size_t page = 0; page < pages; page++) {
        count += resident[page] & 1;
    }
    free(resident);
    return count;
}

static void fresh_memory_is_not_touched(void)
{
    segment used = segment_open(256 * MIB);
    uint64_t offset;
    CU_ASSERT_EQUAL(segment_allocate(&used, 200 * MIB, 0, &offset), DMG_OK);
    CU_ASSERT_EQUAL(segment_allocate(&used, 100000, 0, &offset), DMG_OK);
    CU_ASSERT_EQUAL(resident_pages(&used), 0);
    segment_close(&used);
}

static bool drop_pages(void *context, uint64_t offset, uint64_t bytes)
{
    const segment *used = context;
    CU_ASSERT_TRUE(bytes <= DMG_SEGMENT_GIVE_BACK_STEP_BYTES);
    return madvise(used->memory + offset, bytes, MADV_DONTNEED) == 0;
}

/* A file system that is full when `used` says so: only who asks finds out without a signal. */
static bool take_unless_full(void *context, uint64_t offset, uint64_t bytes)
{
    (void)offset;
    CU_ASSERT_TRUE(bytes <= DMG_SEGMENT_ZERO_STEP_BYTES);
    return !*(const bool *)context;
}

static void pages_that_do_not_come_again_are_an_error(void)
{
    segment used = segment_open(128 * MIB);
    uint64_t freed, again, dirty_left;
    bool is_full = true;
    dmg_segment_allocator_on_give_back(used.allocator, drop_pages, &used);
    dmg_segment_allocator_on_take_back(used.allocator, take_unless_full, &is_full);
    CU_ASSERT_EQUAL(segment_allocate(&used, 70 * MIB, 0, &freed), DMG_OK); /* never given back: nothing is asked */
    memset(used.memory + freed, 0xaa, 70 * MIB);
    CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, freed), DMG_OK);
    while (dmg_segment_allocator_give_back(used.allocator)) {
    }
    size_t before = resident_pages(&used);
    CU_ASSERT_EQUAL(dmg_segment_allocator_allocate(used.allocator, 70 * MIB, 0, 7, &again, &dirty_left),
                    DMG_ERR_MEMORY);
    CU_ASSERT_EQUAL(dmg_segment_allocator_allocate(used.allocator, 3 * PAGE, 0, 7, &again, &dirty_left),
                    DMG_ERR_MEMORY);
    CU_ASSERT_EQUAL(resident_pages(&used), before);
    uint64_t allocated;
    dmg_segment_allocator_usage(used.allocator, &allocated, NULL, NULL);
    CU_ASSERT_EQUAL(allocated, 0);
    is_full = false;
    CU_ASSERT_EQUAL(segment_allocate(&used, 70 * MIB, 0, &again), DMG_OK);
    CU_ASSERT_EQUAL(again, freed);
    CU_ASSERT_TRUE(bytes_are(used.memory + again, 70 * MIB, 0));
    segment_close(&used);
}

static void freed_memory_goes_back_and_is_not_zeroed_again(void)
{
    segment used = segment_open(128 * MIB);
    uint64_t kept, freed, small, again, dirty_left;
    dmg_segment_allocator_on_give_back(used.allocator, drop_pages, &used);
    CU_ASSERT_EQUAL(segment_allocate(&used, 3 * MIB + PAGE, 0, &kept), DMG_OK);
    CU_ASSERT_EQUAL(segment_allocate(&used, 70 * MIB + PAGE, 0, &freed), DMG_OK);
    CU_ASSERT_EQUAL(segment_allocate(&used, 3 * PAGE, 0, &small), DMG_OK);
    memset(used.memory + kept, 0x55, 3 * MIB + PAGE);
    memset(used.memory + freed, 0xaa, 70 * MIB + PAGE);
    memset(used.memory + small, 0xbb, 3 * PAGE);
    CU_ASSERT_FALSE(dmg_segment_allocator_give_back(used.allocator));
    size_t before = resident_pages(&used);
    CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, freed), DMG_OK);
    uint32_t steps = 0;
    while (dmg_segment_allocator_give_back(used.allocator)) {
        steps++;
    }
    CU_ASSERT_EQUAL(steps, 18);
    CU_ASSERT_EQUAL(before - resident_pages(&used), (70 * MIB + PAGE) / PAGE);
    /* The same place again: nothing of it is touched. */
    before = resident_pages(&used);
    CU_ASSERT_EQUAL(dmg_segment_allocator_allocate(used.allocator, 70 * MIB + PAGE, 0, 7, &again, &dirty_left), DMG_OK);
    CU_ASSERT_EQUAL(again, freed);
    CU_ASSERT_EQUAL(dirty_left, 0);
    CU_ASSERT_EQUAL(resident_pages(&used), before);
    CU_ASSERT_TRUE(bytes_are(used.memory + again, 70 * MIB + PAGE, 0));
    CU_ASSERT_TRUE(bytes_are(used.memory + kept, 3 * MIB + PAGE, 0x55));
    CU_ASSERT_TRUE(bytes_are(used.memory + small, 3 * PAGE, 0xbb));
    /* Used and freed once more, it is dirty again. */
    memset(used.memory + again, 0xcc, 70 * MIB);
    CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, again), DMG_OK);
    CU_ASSERT_EQUAL(segment_allocate(&used, 70 * MIB, 0, &again), DMG_OK);
    CU_ASSERT_TRUE(bytes_are(used.memory + again, 70 * MIB, 0));
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

static void what_is_in_quarantine_is_neither_free_nor_anybodys(void)
{
    segment used = segment_open(8 * MIB);
    uint64_t one, two, other, again, job, dirty_left;
    CU_ASSERT_EQUAL(segment_allocate(&used, 2 * MIB, 1, &one), DMG_OK);
    CU_ASSERT_EQUAL(segment_allocate(&used, PAGE, 1, &two), DMG_OK);
    CU_ASSERT_EQUAL(segment_allocate(&used, 2 * MIB, 2, &other), DMG_OK);
    uint64_t allocated = segment_allocated(&used);
    CU_ASSERT_EQUAL(dmg_segment_allocator_job_of(used.allocator, one, &job), DMG_OK);
    CU_ASSERT_EQUAL(job, 1);
    CU_ASSERT_EQUAL(dmg_segment_allocator_quarantine(used.allocator, one), DMG_OK);
    CU_ASSERT_EQUAL(dmg_segment_allocator_quarantined(used.allocator), 2 * MIB);
    CU_ASSERT_EQUAL(dmg_segment_allocator_quarantine(used.allocator, one), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_segment_allocator_free(used.allocator, one), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_segment_allocator_job_of(used.allocator, one, &job), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_segment_allocator_zero(used.allocator, one, 7, &dirty_left), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_segment_allocator_job_bytes(used.allocator, 1), PAGE);
    dmg_segment_allocator_free_job(used.allocator, 2);
    dmg_segment_allocator_quarantine_job(used.allocator, 1);
    CU_ASSERT_EQUAL(dmg_segment_allocator_quarantined_bytes(used.allocator, 1), 2 * MIB + PAGE);
    CU_ASSERT_EQUAL(dmg_segment_allocator_quarantined_bytes(used.allocator, 2), 0);
    dmg_segment_allocator_free_job(used.allocator, 1);
    CU_ASSERT_EQUAL(segment_allocated(&used), allocated - 2 * MIB);
    CU_ASSERT_EQUAL(segment_allocate(&used, 6 * MIB, 3, &again), DMG_ERR_MEMORY);
    dmg_segment_allocator_end_quarantine(used.allocator, 1);
    CU_ASSERT_EQUAL(dmg_segment_allocator_quarantined(used.allocator), 0);
    CU_ASSERT_EQUAL(segment_allocated(&used), 0);
    CU_ASSERT_EQUAL(segment_allocate(&used, 4 * MIB, 3, &again), DMG_OK);
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
    CU_ASSERT_EQUAL(dmg_segment_allocator_create(memory, 0, NULL, &allocator), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_segment_allocator_create(memory, 2 * PAGE - 1, NULL, &allocator), DMG_ERR_ARGUMENT);
    CU_ASSERT_PTR_NULL(allocator);
}

/* ---- catalog ---- */

static dmg_status insert(dmg_catalog *catalog, uint64_t job, const char *name, const void *value, size_t bytes)
{
    return dmg_catalog_insert(catalog, &(dmg_catalog_owner){.job = job}, name, value, bytes);
}

static void catalog_finds_by_name_and_refuses_twice(void)
{
    dmg_catalog *catalog;
    const void *value;
    size_t bytes;
    CU_ASSERT_EQUAL_FATAL(dmg_catalog_create(&catalog), DMG_OK);
    CU_ASSERT_EQUAL(insert(catalog, 0, "b", "two", 3), DMG_OK);
    CU_ASSERT_EQUAL(insert(catalog, 5, "a", "one", 3), DMG_OK);
    CU_ASSERT_EQUAL(insert(catalog, 5, "c", "", 0), DMG_OK);
    CU_ASSERT_EQUAL(insert(catalog, 0, "a", "1", 1), DMG_ERR_EXISTS);
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
        wrong += insert(catalog, 0, name, name, sizeof name) != DMG_OK;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(insert(catalog, 0, "one more", "", 0), DMG_ERR_LIMIT);
    dmg_catalog_destroy(catalog);
}

/* ---- references ---- */

static dmg_status attach(dmg_job_references *references, uint64_t job, uint64_t client)
{
    static const dmg_pool_owner nobody;
    return dmg_job_references_attach(references, job, "a job", &nobody, client);
}

typedef struct released_jobs {
    uint32_t count;
    uint32_t kept_count;
    uint64_t settled; /* the sum of the jobs */
    uint64_t jobs[16];
} released_jobs;

static void note_release(void *context, uint64_t job, bool is_kept)
{
    released_jobs *released = context;
    released->jobs[released->count++ % 16] = job;
    released->kept_count += is_kept;
}

static void a_job_is_released_when_its_last_member_has_gone(void)
{
    released_jobs released = {0};
    dmg_job_references *references;
    CU_ASSERT_EQUAL_FATAL(dmg_job_references_create(note_release, &released, &references), DMG_OK);
    CU_ASSERT_EQUAL(attach(references, 0, 1), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(attach(references, 10, 1), DMG_OK);
    CU_ASSERT_EQUAL(attach(references, 10, 2), DMG_OK);
    CU_ASSERT_EQUAL(attach(references, 10, 2), DMG_OK);
    CU_ASSERT_EQUAL(attach(references, 20, 2), DMG_OK);
    CU_ASSERT_TRUE(dmg_job_references_is_attached(references, 10, 1));
    CU_ASSERT_FALSE(dmg_job_references_is_attached(references, 20, 1));
    CU_ASSERT_EQUAL(dmg_job_references_detach(references, 20, 1), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_references_detach(references, 10, 2), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_references_detach(references, 10, 1), DMG_OK);
    CU_ASSERT_EQUAL(released.count, 0);
    dmg_job_references_client_gone(references, 2, false);
    CU_ASSERT_EQUAL(released.count, 2);
    CU_ASSERT_EQUAL(released.jobs[0] + released.jobs[1], 30);
    CU_ASSERT_FALSE(dmg_job_references_is_attached(references, 10, 2));
    dmg_job_references_destroy(references);
}

static void note_settled(void *context, uint64_t job)
{
    released_jobs *released = context;
    released->settled += job;
}

static void a_lost_member_keeps_no_job_and_is_owed_until_its_end(void)
{
    released_jobs released = {0};
    dmg_job_references *references;
    CU_ASSERT_EQUAL_FATAL(dmg_job_references_create(note_release, &released, &references), DMG_OK);
    CU_ASSERT_EQUAL(attach(references, 10, 1), DMG_OK);
    CU_ASSERT_EQUAL(attach(references, 10, 2), DMG_OK);
    CU_ASSERT_EQUAL(attach(references, 10, 2), DMG_OK);
    CU_ASSERT_EQUAL(attach(references, 20, 2), DMG_OK);
    CU_ASSERT_TRUE(dmg_job_references_has_others(references, 10, 1));
    CU_ASSERT_FALSE(dmg_job_references_has_others(references, 20, 2));
    dmg_job_references_client_gone(references, 2, true);
    CU_ASSERT_EQUAL(released.count, 1);
    CU_ASSERT_EQUAL(released.jobs[0], 20);
    CU_ASSERT_FALSE(dmg_job_references_is_attached(references, 10, 2));
    CU_ASSERT_EQUAL(dmg_job_references_detach(references, 10, 2), DMG_ERR_NOT_FOUND);
    CU_ASSERT_TRUE(dmg_job_references_has_lost(references, 10));
    CU_ASSERT_TRUE(dmg_job_references_has_lost(references, 20));
    CU_ASSERT_TRUE(dmg_job_references_has_others(references, 10, 1));
    CU_ASSERT_EQUAL(dmg_job_references_detach(references, 10, 1), DMG_OK);
    CU_ASSERT_EQUAL(released.count, 2);
    uint32_t position = 0, lost = 0;
    uint64_t job, client;
    while (dmg_job_references_next_lost(references, &position, &job, &client)) {
        lost += client == 2;
    }
    CU_ASSERT_EQUAL(lost, 3);
    dmg_job_references_client_ended(references, 1, note_settled);
    CU_ASSERT_EQUAL(released.settled, 0);
    dmg_job_references_client_ended(references, 2, note_settled);
    CU_ASSERT_EQUAL(released.settled, 30);
    CU_ASSERT_FALSE(dmg_job_references_has_lost(references, 10));
    CU_ASSERT_EQUAL(released.count, 2);
    dmg_job_references_destroy(references);
}

static void what_a_job_keeps_is_dropped_when_nobody_is_in_it(void)
{
    released_jobs released = {0};
    dmg_job_references *references;
    CU_ASSERT_EQUAL_FATAL(dmg_job_references_create(note_release, &released, &references), DMG_OK);
    for (uint64_t job = 10; job <= 30; job += 10) {
        CU_ASSERT_EQUAL(attach(references, job, 1), DMG_OK);
    }
    CU_ASSERT_EQUAL(dmg_job_references_keep(references, 30), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_references_keep(references, 10), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_references_keep(references, 10), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_references_next_kept(references, 0), 0);
    CU_ASSERT_EQUAL(dmg_job_references_drop(references, 10), DMG_ERR_EXISTS);
    CU_ASSERT_EQUAL(dmg_job_references_drop(references, 20), DMG_ERR_NOT_FOUND);
    dmg_job_references_client_gone(references, 1, false);
    CU_ASSERT_EQUAL(released.count, 3);
    CU_ASSERT_EQUAL(released.kept_count, 2);
    CU_ASSERT_EQUAL(dmg_job_references_next_kept(references, 0), 10);
    CU_ASSERT_EQUAL(dmg_job_references_next_kept(references, 10), 30);
    CU_ASSERT_EQUAL(dmg_job_references_next_kept(references, 30), 0);
    CU_ASSERT_EQUAL(dmg_job_references_drop(references, 10), DMG_OK);
    CU_ASSERT_EQUAL(dmg_job_references_drop(references, 10), DMG_ERR_NOT_FOUND);
    CU_ASSERT_EQUAL(dmg_job_references_next_kept(references, 0), 30);
    dmg_job_references_destroy(references);
}

static void job_references_are_bounded(void)
{
    released_jobs released = {0};
    dmg_job_references *references;
    CU_ASSERT_EQUAL_FATAL(dmg_job_references_create(note_release, &released, &references), DMG_OK);
    uint32_t wrong = 0;
    for (uint64_t index = 1; index <= DMG_JOB_REFERENCES_ATTACHMENTS_MAX; index++) {
        wrong += attach(references, index, 1) != DMG_OK;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(attach(references, 1, 2), DMG_ERR_LIMIT);
    for (uint64_t job = 1; job <= DMG_JOB_REFERENCES_KEPT_MAX; job++) {
        wrong += dmg_job_references_keep(references, job) != DMG_OK;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(dmg_job_references_keep(references, DMG_JOB_REFERENCES_KEPT_MAX + 1), DMG_ERR_LIMIT);
    dmg_job_references_destroy(references);
}

int main(int argc, char **argv)
{
    static const dmg_test memory_tests[] = {
        DMG_TEST(the_page_allocator_takes_low_memory_first_and_merges_what_comes_back),
        DMG_TEST(the_page_allocator_knows_what_was_never_used),
        DMG_TEST(the_page_allocator_refuses_what_it_cannot_remember),
        DMG_TEST(extents_are_zeroed_aligned_and_never_overlap),
        DMG_TEST(a_whole_segment_can_be_one_extent),
        DMG_TEST(exhaustion_says_what_is_left_and_small_extents_use_the_last_page),
        DMG_TEST(only_the_begin_of_a_live_extent_can_be_freed),
        DMG_TEST(zeroing_goes_in_steps_and_only_for_the_owner),
        DMG_TEST(fresh_memory_is_not_touched),
        DMG_TEST(freed_memory_goes_back_and_is_not_zeroed_again),
        DMG_TEST(pages_that_do_not_come_again_are_an_error),
        DMG_TEST(the_extents_of_a_job_are_freed_together),
        DMG_TEST(what_is_in_quarantine_is_neither_free_nor_anybodys),
        DMG_TEST(the_number_of_extents_is_bounded),
        DMG_TEST(too_small_segments_are_refused),
        {NULL, NULL},
    };
    static const dmg_test catalog_tests[] = {
        DMG_TEST(catalog_finds_by_name_and_refuses_twice),
        DMG_TEST(catalog_is_bounded),
        DMG_TEST(a_job_is_released_when_its_last_member_has_gone),
        DMG_TEST(a_lost_member_keeps_no_job_and_is_owed_until_its_end),
        DMG_TEST(what_a_job_keeps_is_dropped_when_nobody_is_in_it),
        DMG_TEST(job_references_are_bounded),
        {NULL, NULL},
    };
    if (dmg_suite_add("memory", NULL, NULL, memory_tests) || dmg_suite_add("catalog", NULL, NULL, catalog_tests)) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
