#include "unit/core/engine/exchange/mailbox_fixture.h"

#include "unit/support/suite.h"

#include <string.h>

void mailbox_fixture_clear(mailbox_fixture *fixture, uint32_t rank)
{
    fixture->rounds[rank]++;
    dmg_mailbox_clear(fixture->mailboxes[rank]);
}

void mailbox_fixture_open(mailbox_fixture *fixture, const char *transport, uint32_t ranks, uint32_t workers,
                          uint32_t item_bytes, uint32_t items_a_buffer, uint32_t buffers_max)
{
    memset(fixture, 0, sizeof *fixture);
    fixture->ranks = ranks;
    fixture->workers = workers;
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, 2, MAILBOX_FIXTURE_SEGMENT_BYTES, &fixture->pool), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &fixture->budget), DMG_OK);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t worker = 0; worker < workers; worker++) {
            CU_ASSERT_EQUAL_FATAL(dmg_channel_open(fixture->pool.client, &fixture->channels[rank][worker]), DMG_OK);
        }
    }
    CU_ASSERT_EQUAL_FATAL(dmg_range_array_allocate(fixture->channels[0][0], fixture->pool.job.id,
                                                   dmg_mailbox_directory_lines(ranks, buffers_max),
                                                   sizeof(dmg_mailbox_line), &fixture->directories),
                          DMG_OK);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const dmg_mailbox_setup setup = {.budget = fixture->budget,
                                         .job = fixture->pool.job.id,
                                         .rank = rank,
                                         .ranks = ranks,
                                         .workers = workers,
                                         .directories = &fixture->directories,
                                         .item_bytes = item_bytes,
                                         .buffer_bytes = item_bytes * items_a_buffer,
                                         .buffers_max = buffers_max};
        CU_ASSERT_EQUAL_FATAL(dmg_mailbox_create(&setup, &fixture->mailboxes[rank]), DMG_OK);
        mailbox_fixture_clear(fixture, rank);
    }
}

void mailbox_fixture_close(mailbox_fixture *fixture)
{
    for (uint32_t rank = 0; rank < fixture->ranks; rank++) {
        dmg_mailbox_destroy(fixture->mailboxes[rank]);
        for (uint32_t worker = 0; worker < fixture->workers; worker++) {
            dmg_channel_close(fixture->channels[rank][worker]);
        }
    }
    dmg_budget_destroy(fixture->budget);
    dmg_test_pool_stop(&fixture->pool);
}
