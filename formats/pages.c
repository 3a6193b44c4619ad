#include "formats/pages.h"

#include "core/base/checked.h"
#include "core/base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

static void *map_anonymous(uint64_t bytes)
{
    return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer does not see mremap: what it moves to, it would take for memory that another thread had there before.
 */
static void *remap(void *memory, uint64_t bytes, uint64_t new_bytes)
{
    void *moved = map_anonymous(new_bytes);
    if (moved != MAP_FAILED) {
        memcpy(moved, memory, bytes < new_bytes ? bytes : new_bytes);
        munmap(memory, bytes);
    }
    return moved;
}
#else
static void *remap(void *memory, uint64_t bytes, uint64_t new_bytes)
{
    return mremap(memory, bytes, new_bytes, MREMAP_MAYMOVE);
}
#endif

dmg_status dmg_pages_resize(dmg_pages *pages, uint64_t count, uint64_t item_bytes, const char *purpose)
{
    uint64_t bytes;
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!dmg_checked_multiply(count, item_bytes, &bytes) || !dmg_checked_round_up(bytes, page_bytes, &bytes) ||
        bytes > PTRDIFF_MAX) {
        return dmg_error(DMG_ERR_MEMORY, "%" PRIu64 " items of %" PRIu64 " bytes for %s are more than any memory",
                         count, item_bytes, purpose);
    }
    if (bytes == pages->bytes) {
        return DMG_OK;
    }
    if (bytes == 0) {
        dmg_pages_release(pages);
        return DMG_OK;
    }
    void *memory = pages->memory ? remap(pages->memory, pages->bytes, bytes) : map_anonymous(bytes);
    if (memory == MAP_FAILED) {
        return dmg_error_errno(DMG_ERR_MEMORY, errno, "%" PRIu64 " bytes of memory for %s", bytes, purpose);
    }
    if (bytes >= 2 * HUGE_PAGE_BYTES) {
        /* Scattering into small pages costs a TLB miss an arc. A kernel without huge pages refuses this, which is fine.
         */
        (void)madvise(memory, bytes, MADV_HUGEPAGE);
    }
    pages->memory = memory;
    pages->bytes = bytes;
    return DMG_OK;
}

void dmg_pages_release(dmg_pages *pages)
{
    if (pages->memory) {
        munmap(pages->memory, pages->bytes);
    }
    pages->memory = NULL;
    pages->bytes = 0;
}
