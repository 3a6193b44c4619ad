/**
 * @file pages.h
 * Memory for large arrays, straight from the kernel.
 *
 * Growing is mremap: no copy, and pages that were not touched cost nothing, so that a builder can double its arrays and
 * still be lean.
 */
#ifndef DMG_FORMATS_PAGES_H
#define DMG_FORMATS_PAGES_H

#include "dmgraph/status.h"

#include <stdint.h>

/** Zeroed memory; all zero bytes is the empty one. */
typedef struct dmg_pages {
    void *memory;   /**< NULL when bytes is 0 */
    uint64_t bytes; /**< what is mapped: a multiple of the page size */
} dmg_pages;

/**
 * Grow or shrink to hold `count` items of `item_bytes`; contents are kept, new bytes are zero. On failure the pages are
 * as before: DMG_ERR_MEMORY, also when the size overflows. `purpose` names the array in the message.
 */
dmg_status dmg_pages_resize(dmg_pages *pages, uint64_t count, uint64_t item_bytes, const char *purpose);

/** Give the memory back, and make it the empty one. */
void dmg_pages_release(dmg_pages *pages);

#endif
