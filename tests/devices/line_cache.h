/**
 * @file line_cache.h
 * A private cache of 64-byte lines in front of shared memory, for tests of software coherence.
 *
 * It has a place for every line, so that nothing leaves it but by eviction, and nothing comes unasked but by
 * prefetching the other line of a pair; random numbers decide about both. Thread-safe: the threads of a process share
 * it, as the cores of a host share theirs. Lines that are read through the pointer must not be written by
 * others at the same time.
 */
#ifndef DMG_TEST_DEVICES_LINE_CACHE_H
#define DMG_TEST_DEVICES_LINE_CACHE_H

#include "transport/cxl_shm/coherence.h"

dmg_status dmg_shm_line_cache_create(char *memory, uint64_t bytes, dmg_shm_line_cache **cache);
/** NULL is allowed. What was not written back is lost, as with a host that is switched off. */
void dmg_shm_line_cache_destroy(dmg_shm_line_cache *cache);
/** The private copy of the memory. */
char *dmg_shm_line_cache_pointer(const dmg_shm_line_cache *cache);

/* Copies inside one line. `random` draws whether the line is evicted afterwards, written back if need be, and whether
 * the line beside is fetched with it; 0: neither. */
void dmg_shm_line_cache_store(dmg_shm_line_cache *cache, uint64_t offset, const void *from, uint64_t bytes,
                              uint64_t random);
void dmg_shm_line_cache_load(dmg_shm_line_cache *cache, uint64_t offset, void *to, uint64_t bytes, uint64_t random);

/** Have the line, fetched from the memory unless it is there already. */
void dmg_shm_line_cache_fetch(dmg_shm_line_cache *cache, uint64_t line, uint64_t random);
/** The line was written through the pointer. */
void dmg_shm_line_cache_mark_written(dmg_shm_line_cache *cache, uint64_t line);
/** Write the line back if it was written; afterwards it is there, or not. */
void dmg_shm_line_cache_write_back(dmg_shm_line_cache *cache, uint64_t line, bool stays);

#endif
