/**
 * @file model.h
 * What the files of the link model share. The layer above a backend uses it; backends do not.
 */
#ifndef DMG_TRANSPORT_LINK_MODEL_H
#define DMG_TRANSPORT_LINK_MODEL_H

#include "core/base/ticks.h"
#include "transport/core.h"
#include "transport/link.h"
#include "transport/link/page.h"
#include "transport/link/timing.h"

/** Own cost of the model, to be subtracted: how much later than it was due a lone operation is seen to have ended.
 * Ticks. */
typedef struct dmg_link_lags {
    uint64_t after_poll; /**< posted right after another one ended */
    uint64_t alone;      /**< posted after a pause */
    uint64_t in_place;
} dmg_link_lags;

/** The model of a client: what its channels share. */
struct dmg_link {
    dmg_link_settings settings;
    dmg_link_costs costs;
    dmg_link_lags lags;
    bool are_cycles;
    bool is_accounting;
    double ticks_a_second;
    uint64_t message_floor; /**< ticks that a message takes without the model; subtracted from its latency */
    uint32_t node_count;
    dmg_link_page **pages; /**< by node; NULL when accounting */
};

/** Make the model of a client whose backend is connected and whose monitor runs. Says in the capabilities what was
 * chosen. */
dmg_status dmg_link_create(dmg_client *client, const dmg_link_settings *settings, dmg_link **link);
/** NULL is allowed. */
void dmg_link_destroy(dmg_link *link);

/** Put the model between a channel and its backend: replaces both `backend` and `implementation`. */
dmg_status dmg_link_channel_wrap(dmg_link *link, dmg_channel *channel);
/** Charge a span that is used in place: its time begins. */
void dmg_link_touch(dmg_channel *channel, dmg_operation_kind kind, dmg_address address, uint64_t bytes);
/** Wait until the time of all charged spans is over. */
void dmg_link_touch_wait(dmg_channel *channel);
/**
 * Spin until the first operation that only the model holds back is due, at most a few microseconds.
 *
 * @return 0, when accounting at once; when it is due later than that, in how many nanoseconds; UINT64_MAX at once when
 * there is none
 */
uint64_t dmg_link_spin(const dmg_channel *channel);

/** Measure the model's own costs, with operations that move nothing. */
dmg_status dmg_link_measure_lags(dmg_client *client, dmg_link *link);

extern const dmg_backend dmg_link_backend;

#endif
