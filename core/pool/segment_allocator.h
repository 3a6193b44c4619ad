/**
 * @file segment_allocator.h
 * The memory of one memory node: which extents of its segment are allocated, to whom, and what is free.
 *
 * Every extent stands in a table of the allocator's own, outside the segment, sorted by offset. What a compute node
 * asks to be freed is looked up there; its word about sizes and owners is never taken. Small extents come from
 * an arena, where there is one (segment_arena.h), large ones straight from the pages (page_allocator.h), without
 * rounding beyond the page.
 *
 * Extents are zeroed before they are used. Memory that was never handed out is zero already and is not touched, which
 * keeps a fresh node's start quick and its memory not resident. Memory that is used again is zeroed in steps of bounded
 * length, one a request of the owner, so that the serving thread answers others (leases!) in between. Free memory whose
 * pages were given back to the system is zero, too.
 *
 * An extent that was freed may have to wait, while somebody may still write to it who is not of its user any more: it
 * is in quarantine, allocated to nobody and not free, until its job's quarantine is ended.
 *
 * Used by the serving thread alone.
 */
#ifndef DMG_CORE_POOL_SEGMENT_ALLOCATOR_H
#define DMG_CORE_POOL_SEGMENT_ALLOCATOR_H

#include "core/pool/segment_arena.h"

/** The first page of a segment is its header: no extent is there. */
#define DMG_SEGMENT_HEADER_BYTES 4096
/** Extents that a memory node keeps at once. */
#define DMG_SEGMENT_EXTENTS_MAX 65536
/** Extents of this size and larger do not go through the arena. */
#define DMG_SEGMENT_LARGE_BYTES (UINT64_C(256) << 10)
/** Memory that one step zeroes. */
#define DMG_SEGMENT_ZERO_STEP_BYTES (UINT64_C(32) << 20)
/** Memory that one step gives back: less than a millisecond. */
#define DMG_SEGMENT_GIVE_BACK_STEP_BYTES (UINT64_C(4) << 20)

typedef struct dmg_segment_allocator dmg_segment_allocator;

/** Manage a zeroed segment of at least two pages, which must outlive the allocator. `arena` is for small extents; NULL:
 * they are taken from the pages as large ones are. */
dmg_status dmg_segment_allocator_create(void *segment, uint64_t bytes, const dmg_segment_arena_operations *arena,
                                        dmg_segment_allocator **allocator);
/** Have a function told of every part of the segment that the allocator has written: memory that it zeroed. */
void dmg_segment_allocator_on_zeroed(dmg_segment_allocator *allocator,
                                     void (*on_zeroed)(void *context, uint64_t offset, uint64_t bytes), void *context);
/**
 * Have free memory given back to the system, step by step: `give_back` drops the pages of a part of the segment, which
 * reads as zero from then on, or says false when this segment's pages stay; then it is not asked again.
 */
void dmg_segment_allocator_on_give_back(dmg_segment_allocator *allocator,
                                        bool (*give_back)(void *context, uint64_t offset, uint64_t bytes),
                                        void *context);
/** One step of that, DMG_SEGMENT_GIVE_BACK_STEP_BYTES at most. False when nothing is left to give back. */
bool dmg_segment_allocator_give_back(dmg_segment_allocator *allocator);
/**
 * Where memory that was given back may not come again (a file system that others fill): have a function asked for the
 * pages of free memory before they are touched. It says false when there are none; what was to be allocated there is
 * DMG_ERR_MEMORY then. What was given back counts as dirty, and is zeroed in steps like other memory that was used.
 */
void dmg_segment_allocator_on_take_back(dmg_segment_allocator *allocator,
                                        bool (*take_back)(void *context, uint64_t offset, uint64_t bytes),
                                        void *context);
/** NULL is allowed. */
void dmg_segment_allocator_destroy(dmg_segment_allocator *allocator);

/**
 * Allocate an extent.
 *
 * @param bytes           any size but 0; rounded up to the page
 * @param job             the job it belongs to, or 0
 * @param owner           the client that allocates it
 * @param[out] offset     where it lies, a multiple of the page
 * @param[out] dirty_left so many bytes are not zeroed yet: call dmg_segment_allocator_zero until it says 0
 * @return DMG_OK; DMG_ERR_ARGUMENT for 0 bytes; DMG_ERR_MEMORY, saying what is left, or that its pages are gone;
 *         DMG_ERR_LIMIT for too many extents
 */
dmg_status dmg_segment_allocator_allocate(dmg_segment_allocator *allocator, uint64_t bytes, uint64_t job,
                                          uint64_t owner, uint64_t *offset, uint64_t *dirty_left);
/** Zero a further step of an extent that this owner allocated. Never touches what was zeroed before. DMG_ERR_NOT_FOUND;
 * DMG_ERR_MEMORY when pages that were given back do not come again. */
dmg_status dmg_segment_allocator_zero(dmg_segment_allocator *allocator, uint64_t offset, uint64_t owner,
                                      uint64_t *dirty_left);
/** Free the extent that begins at the offset. DMG_ERR_NOT_FOUND when none does, or it is in quarantine. */
dmg_status dmg_segment_allocator_free(dmg_segment_allocator *allocator, uint64_t offset);
/** Free all extents of a job (not 0), but for those in quarantine. */
void dmg_segment_allocator_free_job(dmg_segment_allocator *allocator, uint64_t job);
/** The job of the extent that begins at the offset. DMG_ERR_NOT_FOUND when none does, or it is in quarantine. */
dmg_status dmg_segment_allocator_job_of(const dmg_segment_allocator *allocator, uint64_t offset, uint64_t *job);
/** The extent that the offset lies in: its job, and where it ends. DMG_ERR_NOT_FOUND when there is none, or it is in
 * quarantine. */
dmg_status dmg_segment_allocator_extent_at(const dmg_segment_allocator *allocator, uint64_t offset, uint64_t *job,
                                           uint64_t *end);
/** Free the extent that begins at the offset into quarantine. DMG_ERR_NOT_FOUND when none does. */
dmg_status dmg_segment_allocator_quarantine(dmg_segment_allocator *allocator, uint64_t offset);
/** Free all extents of a job (not 0) into quarantine. */
void dmg_segment_allocator_quarantine_job(dmg_segment_allocator *allocator, uint64_t job);
/** What a job has in quarantine is free. */
void dmg_segment_allocator_end_quarantine(dmg_segment_allocator *allocator, uint64_t job);
/** Bytes that a job has in quarantine. */
uint64_t dmg_segment_allocator_quarantined_bytes(const dmg_segment_allocator *allocator, uint64_t job);
/** Bytes in quarantine now: a part of those that dmg_segment_allocator_usage calls allocated. */
uint64_t dmg_segment_allocator_quarantined(const dmg_segment_allocator *allocator);
/** Bytes in the extents of a job, without those in quarantine. */
uint64_t dmg_segment_allocator_job_bytes(const dmg_segment_allocator *allocator, uint64_t job);
/** Extents of a job, with those in quarantine. */
uint32_t dmg_segment_allocator_job_extents(const dmg_segment_allocator *allocator, uint64_t job);
/** Bytes in extents now, the most there ever were, and the segment's size. Each may be NULL. */
void dmg_segment_allocator_usage(const dmg_segment_allocator *allocator, uint64_t *allocated, uint64_t *peak,
                                 uint64_t *total);

#endif
