/**
 * @file mailbox_fixture.h
 * The mailboxes of a job whose ranks all live in one test program.
 */
#ifndef DMG_TEST_CORE_ENGINE_EXCHANGE_MAILBOX_FIXTURE_H
#define DMG_TEST_CORE_ENGINE_EXCHANGE_MAILBOX_FIXTURE_H

#include "core/engine/exchange/mailbox.h"
#include "unit/support/pool_fixture.h"

#define MAILBOX_FIXTURE_RANKS_MAX     4
#define MAILBOX_FIXTURE_WORKERS_MAX   3
#define MAILBOX_FIXTURE_SEGMENT_BYTES (UINT64_C(32) << 20)

/** A mailbox a rank, with a channel for each worker, on a pool of two memory nodes. */
typedef struct mailbox_fixture {
    dmg_test_pool pool;
    dmg_budget *budget;
    dmg_range_array directories;
    uint32_t ranks;
    uint32_t workers;
    dmg_mailbox *mailboxes[MAILBOX_FIXTURE_RANKS_MAX];
    uint32_t rounds[MAILBOX_FIXTURE_RANKS_MAX]; /**< begun */
    dmg_channel *channels[MAILBOX_FIXTURE_RANKS_MAX][MAILBOX_FIXTURE_WORKERS_MAX];
} mailbox_fixture;

/** Failures end the test. */
void mailbox_fixture_open(mailbox_fixture *fixture, const char *transport, uint32_t ranks, uint32_t workers,
                          uint32_t item_bytes, uint32_t items_a_buffer, uint32_t buffers_max);
void mailbox_fixture_close(mailbox_fixture *fixture);
/** Begin a round of a rank. */
void mailbox_fixture_clear(mailbox_fixture *fixture, uint32_t rank);

#endif
