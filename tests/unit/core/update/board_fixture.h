/**
 * @file board_fixture.h
 * The boards of a job whose ranks all live in one test program.
 */
#ifndef DMG_TEST_CORE_UPDATE_BOARD_FIXTURE_H
#define DMG_TEST_CORE_UPDATE_BOARD_FIXTURE_H

#include "core/update/board.h"
#include "unit/support/pool_fixture.h"

#define BOARD_FIXTURE_RANKS_MAX     4
#define BOARD_FIXTURE_WORKERS_MAX   3
#define BOARD_FIXTURE_SEGMENT_BYTES (UINT64_C(32) << 20)

/** A board a rank, with a channel for each worker, on a pool of two memory nodes. */
typedef struct board_fixture {
    dmg_test_pool pool;
    dmg_budget *budget;
    dmg_range_array directories;
    uint32_t ranks;
    uint32_t workers;
    dmg_board *boards[BOARD_FIXTURE_RANKS_MAX];
    uint32_t rounds[BOARD_FIXTURE_RANKS_MAX]; /**< begun */
    dmg_channel *channels[BOARD_FIXTURE_RANKS_MAX][BOARD_FIXTURE_WORKERS_MAX];
} board_fixture;

/** Failures end the test. */
void board_fixture_open(board_fixture *fixture, const char *transport, uint32_t ranks, uint32_t workers,
                        uint32_t item_bytes, uint32_t items_a_buffer, uint32_t buffers_max);
void board_fixture_close(board_fixture *fixture);
/** Begin a round of a rank. */
void board_fixture_clear(board_fixture *fixture, uint32_t rank);

#endif
