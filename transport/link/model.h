/**
 * @file model.h
 * What the files of the link model share.
 *
 * The model is one more implementation of a client's and a channel's operations (backend.h), around those of a backend.
 */
#ifndef DMG_TRANSPORT_LINK_MODEL_H
#define DMG_TRANSPORT_LINK_MODEL_H

#include "core/base/ticks.h"
#include "transport/backend.h"
#include "transport/link.h"
#include "transport/link/timing.h"

/**
 * What the model itself costs (LogP's overhead), to be subtracted: how much later than it was due a lone operation is
 * seen to have ended. Ticks.
 */
typedef struct dmg_link_overhead {
    uint64_t after_poll; /**< of an operation that is posted right after another one ended */
    uint64_t alone;      /**< of one that is posted after a pause */
    uint64_t mapped;     /**< of a load from the mapped segment */
} dmg_link_overhead;

/** The model of a client: what its channels share. */
typedef struct dmg_link {
    dmg_backend_client base;
    dmg_backend_client *inner; /**< what is wrapped */
    dmg_client *client;
    dmg_link_settings settings;
    dmg_link_costs costs;
    dmg_link_overhead overhead;
    bool are_cycles;
    bool is_accounting;
    double ticks_a_second;
    uint64_t message_floor; /**< ticks that a message takes without the model; subtracted from its latency */
    uint32_t node_count;
    dmg_link_page **pages; /**< by node; NULL: each channel has clocks of its own, as when accounting */
} dmg_link;

/** A client's `channel_open`: opens a channel of what is wrapped, and wraps it. */
dmg_status dmg_link_channel_open(dmg_backend_client *base, dmg_channel *owner, dmg_backend_channel **made);

/** Measure what the model itself costs, by operations that move nothing. */
dmg_status dmg_link_measure_overhead(const dmg_link *link, dmg_link_overhead *overhead);

/** A new page's clocks count from now on, unless another client was first. */
void dmg_link_page_begin(dmg_link_page *page);

#endif
