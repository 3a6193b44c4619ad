/**
 * @file shared_page.h
 * A page of a memory node that all its clients on the same machine map: for what they have to agree on without asking
 * the memory node each time, such as the clocks of an emulated link.
 *
 * The memory node makes an anonymous memory file when a client first asks, and answers with where the kernel shows it:
 * /proc/PID/fd/N. It has no name, so nothing is left when processes are killed, and it lives as long as the memory node
 * or a client does. What is in it is zero at first.
 */
#ifndef DMG_TRANSPORT_SHARED_PAGE_H
#define DMG_TRANSPORT_SHARED_PAGE_H

#include "dmgraph/status.h"

#include <stdint.h>

/** "Where is your page?": answered with a dmg_shared_page_offer. */
#define DMG_MESSAGE_TYPE_SHARED_PAGE 2

#define DMG_SHARED_PAGE_NONCE_BYTES 16
/** What clients share. */
#define DMG_SHARED_PAGE_BYTES 4032

/** What the memory node answers. */
typedef struct dmg_shared_page_offer {
    int64_t pid;
    int64_t descriptor;
    uint8_t nonce[DMG_SHARED_PAGE_NONCE_BYTES]; /**< also in the page: who opened something else notices */
} dmg_shared_page_offer;

/** Make the page. The offer's descriptor is closed by the caller at the end. DMG_ERR_IO, DMG_ERR_MEMORY. */
dmg_status dmg_shared_page_create(dmg_shared_page_offer *offer);

/**
 * Map the page that was offered.
 *
 * @param[out] page  DMG_SHARED_PAGE_BYTES, at a multiple of 64; to be given to dmg_shared_page_unmap. NULL on failure
 * @return DMG_OK; DMG_ERR_UNSUPPORTED when the memory node is on another machine, or another user's; DMG_ERR_MEMORY
 */
dmg_status dmg_shared_page_map(const dmg_shared_page_offer *offer, void **page);
/** A page of this process alone; otherwise as dmg_shared_page_map. */
dmg_status dmg_shared_page_map_own(void **page);
/** NULL is allowed. */
void dmg_shared_page_unmap(void *page);

#endif
