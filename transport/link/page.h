/**
 * @file page.h
 * The clocks of one memory node's link, in memory that all its clients map.
 *
 * The memory node makes an anonymous memory file when a client first asks, and answers with where the kernel shows it:
 * /proc/PID/fd/N. It has no name, so nothing is left when processes are killed, and it lives as long as the memory node
 * or a client does.
 */
#ifndef DMG_TRANSPORT_LINK_PAGE_H
#define DMG_TRANSPORT_LINK_PAGE_H

#include "transport/link/clocks.h"
#include "transport/transport.h"

#define DMG_LINK_NONCE_BYTES 16

typedef struct dmg_link_page {
    uint8_t nonce[DMG_LINK_NONCE_BYTES]; /**< drawn by the memory node: a client that opened something else notices */
    uint64_t epoch;                      /**< ticks; where the clocks count from */
    dmg_link_clock clocks[DMG_LINK_RESOURCES];
} dmg_link_page;

/** What the memory node answers. */
typedef struct dmg_link_offer {
    int64_t pid;
    int64_t descriptor;
    uint8_t nonce[DMG_LINK_NONCE_BYTES];
} dmg_link_offer;

/** Make the page. The offer's descriptor is closed by the caller at the end. */
dmg_status dmg_link_page_create(dmg_link_offer *offer);

/** Map the page that was offered. DMG_ERR_UNSUPPORTED when the memory node is on another machine, or another user's. */
dmg_status dmg_link_page_map(const dmg_link_offer *offer, dmg_link_page **page);
/** A page of this process alone. */
dmg_status dmg_link_page_map_own(dmg_link_page **page);
/** NULL is allowed. */
void dmg_link_page_unmap(dmg_link_page *page);

#endif
