/*
 * The board on which compute nodes leave items for each other: every item is taken exactly once, whatever the
 * interleaving.
 *
 * Small exchanges are explored whole: all orders in which the steps of two ranks can follow each other, each step a
 * call of the real functions on boards in a real pool. The explorer proves its worth on protocols with a step left out
 * or moved, in each of which it has to find the mistake. What happens inside a call is tested by threads.
 */
#include "suite.h"

#include "core/update/board.h"
#include "pool_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES (UINT64_C(32) << 20)
#define RANKS_MAX     4
#define WORKERS_MAX   3

static const char *transport;

/* The boards of a job whose ranks all live here, with a channel for each worker. */
struct fixture {
    dmg_test_pool pool;
    dmg_budget *budget;
    dmg_range_array directories;
    uint32_t ranks;
    uint32_t workers;
    dmg_board *boards[RANKS_MAX];
    uint32_t rounds[RANKS_MAX]; /* begun */
    dmg_channel *channels[RANKS_MAX][WORKERS_MAX];
};

static void clear(struct fixture *fixture, uint32_t rank)
{
    fixture->rounds[rank]++;
    dmg_board_clear(fixture->boards[rank]);
}

static void open_boards(struct fixture *fixture, uint32_t ranks, uint32_t workers, uint32_t item_bytes,
                        uint32_t items_a_buffer, uint32_t buffers_max)
{
    memset(fixture, 0, sizeof *fixture);
    fixture->ranks = ranks;
    fixture->workers = workers;
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, 2, SEGMENT_BYTES, &fixture->pool), DMG_OK);
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &fixture->budget), DMG_OK);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t worker = 0; worker < workers; worker++) {
            CU_ASSERT_EQUAL_FATAL(dmg_channel_open(fixture->pool.client, &fixture->channels[rank][worker]), DMG_OK);
        }
    }
    CU_ASSERT_EQUAL_FATAL(dmg_range_array_allocate(fixture->channels[0][0], 0,
                                                   dmg_board_directory_lines(ranks, buffers_max),
                                                   sizeof(dmg_board_line), &fixture->directories),
                          DMG_OK);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        const dmg_board_setup setup = {.budget = fixture->budget,
                                       .rank = rank,
                                       .ranks = ranks,
                                       .workers = workers,
                                       .directories = &fixture->directories,
                                       .item_bytes = item_bytes,
                                       .buffer_bytes = item_bytes * items_a_buffer,
                                       .buffers_max = buffers_max};
        CU_ASSERT_EQUAL_FATAL(dmg_board_create(&setup, &fixture->boards[rank]), DMG_OK);
        clear(fixture, rank);
    }
}

static void close_boards(struct fixture *fixture)
{
    for (uint32_t rank = 0; rank < fixture->ranks; rank++) {
        dmg_board_destroy(fixture->boards[rank]);
        for (uint32_t worker = 0; worker < fixture->workers; worker++) {
            dmg_channel_close(fixture->channels[rank][worker]);
        }
    }
    dmg_budget_destroy(fixture->budget);
    dmg_test_pool_stop(&fixture->pool);
}

/* ---- all interleavings of small exchanges ---- */

#define ROUNDS         2
#define ITEMS_A_WORKER 3 /* in buffers of two: one is full, one is not */

/* The protocol, and what can be wrong with it. */
enum mistake {
    NONE,
    NO_BARRIER_BEFORE_COLLECTING,
    NO_BARRIER_BEFORE_CLEARING,
    PUBLISHES_BEFORE_FLUSHING,
    DOES_NOT_FLUSH,
    DOES_NOT_PUBLISH,
    DOES_NOT_CLEAR,
    COLLECTS_TWICE,
    MISTAKES
};

/* The steps of a rank in a round, in this order. Those of the workers of a rank interleave. */
enum stage { CLEAR, SEND, PUBLISH, BARRIER_BEFORE_COLLECTING, COLLECT, TAKE, BARRIER_BEFORE_CLEARING, STAGES };

struct worker_state {
    uint8_t steps; /* of the stage: items placed, then flushed; or buffers taken */
    bool is_done;
};

struct rank_state {
    uint8_t round;
    uint8_t stage;
    struct worker_state workers[WORKERS_MAX];
};

/* An item says where it belongs. */
struct item {
    uint8_t sender;
    uint8_t worker;
    uint8_t receiver;
    uint8_t round;
    uint8_t index;
    uint8_t zero[3];
};

#define STEPS_MAX 256

struct exploration {
    struct fixture *fixture;
    enum mistake mistake;
    struct rank_state ranks[RANKS_MAX];
    uint8_t times_taken[ROUNDS][RANKS_MAX][WORKERS_MAX][ITEMS_A_WORKER];
    /* What each rank has seen: with where it stands, all that its board's future depends on. */
    uint64_t seen[RANKS_MAX];
    uint8_t path[STEPS_MAX]; /* which actor made each step */
    uint32_t path_length;
    const char *violation; /* NULL: none so far */
    uint64_t *visited;     /* hashes of states, open addressing; 0: free */
    uint64_t visited_capacity;
    uint64_t visited_count;
    uint64_t endings;
};

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

static void violate(struct exploration *exploration, const char *what)
{
    exploration->violation = exploration->violation ? exploration->violation : what;
}

/* The other ranks in turn. */
static uint32_t receiver_of(const struct exploration *exploration, uint32_t sender, uint32_t index)
{
    return (sender + 1 + index % (exploration->fixture->ranks - 1)) % exploration->fixture->ranks;
}

static bool barrier_is_open(const struct exploration *exploration, uint32_t rank)
{
    const struct rank_state *own = &exploration->ranks[rank];
    for (uint32_t i = 0; i < exploration->fixture->ranks; i++) {
        const struct rank_state *other = &exploration->ranks[i];
        if (other->round < own->round || (other->round == own->round && other->stage < own->stage)) {
            return false;
        }
    }
    return true;
}

/* Rank 0 has all workers of a board, the others make do with one: enough for workers to interleave. */
static uint32_t workers_of(const struct exploration *exploration, uint32_t rank)
{
    return rank == 0 ? exploration->fixture->workers : 1;
}

static bool is_over(const struct rank_state *rank)
{
    return rank->round == ROUNDS;
}

/* Actors are the workers of all ranks; worker 0 makes the steps of its rank as a whole, too. */
static bool can_step(const struct exploration *exploration, uint32_t rank, uint32_t worker)
{
    const struct rank_state *state = &exploration->ranks[rank];
    if (is_over(state)) {
        return false;
    }
    switch (state->stage) {
    case SEND:
    case TAKE:
        return !state->workers[worker].is_done;
    case BARRIER_BEFORE_COLLECTING:
        return worker == 0 &&
               (exploration->mistake == NO_BARRIER_BEFORE_COLLECTING || barrier_is_open(exploration, rank));
    case BARRIER_BEFORE_CLEARING:
        return worker == 0 &&
               (exploration->mistake == NO_BARRIER_BEFORE_CLEARING || barrier_is_open(exploration, rank));
    default:
        return worker == 0;
    }
}

static void place_item(struct exploration *exploration, uint32_t rank, uint32_t worker, uint32_t index)
{
    struct fixture *fixture = exploration->fixture;
    uint32_t receiver = receiver_of(exploration, rank, index);
    struct item item = {.sender = (uint8_t)rank,
                        .worker = (uint8_t)worker,
                        .receiver = (uint8_t)receiver,
                        .round = exploration->ranks[rank].round,
                        .index = (uint8_t)index};
    void *room = dmg_board_place(fixture->boards[rank], fixture->channels[rank][worker], worker, receiver);
    exploration->seen[rank] = mix(exploration->seen[rank], worker * 2 + (room != NULL)); /* the order of claims */
    if (room) {
        memcpy(room, &item, sizeof item);
    } else {
        exploration->times_taken[item.round][rank][worker][index]++; /* it went another way */
    }
}

static void take_items(struct exploration *exploration, uint32_t rank, const struct item *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct item *item = &items[i];
        uint64_t bits;
        memcpy(&bits, item, sizeof bits);
        exploration->seen[rank] = mix(exploration->seen[rank], bits);
        if (item->receiver != rank || item->round != exploration->ranks[rank].round ||
            item->sender >= exploration->fixture->ranks || item->worker >= workers_of(exploration, item->sender) ||
            item->index >= ITEMS_A_WORKER) {
            violate(exploration, "an item was taken by another rank or in another round");
            return;
        }
        if (++exploration->times_taken[item->round][item->sender][item->worker][item->index] > 1) {
            violate(exploration, "an item was taken twice");
        }
    }
}

/* After a rank has taken all: nothing for it may be missing. */
static void expect_all_taken(struct exploration *exploration, uint32_t rank)
{
    for (uint32_t sender = 0; sender < exploration->fixture->ranks; sender++) {
        for (uint32_t worker = 0; sender != rank && worker < workers_of(exploration, sender); worker++) {
            for (uint32_t index = 0; index < ITEMS_A_WORKER; index++) {
                if (receiver_of(exploration, sender, index) == rank &&
                    exploration->times_taken[exploration->ranks[rank].round][sender][worker][index] != 1) {
                    violate(exploration, "an item was lost");
                }
            }
        }
    }
}

static void expect_ok(struct exploration *exploration, dmg_status status)
{
    if (status != DMG_OK) {
        violate(exploration, "the board noticed");
    }
}

static void enter_stage(struct rank_state *state, uint8_t stage)
{
    state->stage = stage == STAGES ? CLEAR : stage;
    state->round += stage == STAGES;
    memset(state->workers, 0, sizeof state->workers);
}

static bool all_workers_are_done(const struct exploration *exploration, uint32_t rank)
{
    for (uint32_t i = 0; i < workers_of(exploration, rank); i++) {
        if (!exploration->ranks[rank].workers[i].is_done) {
            return false;
        }
    }
    return true;
}

static void step_send(struct exploration *exploration, uint32_t rank, uint32_t worker)
{
    struct fixture *fixture = exploration->fixture;
    struct rank_state *state = &exploration->ranks[rank];
    struct worker_state *own = &state->workers[worker];
    if (own->steps < ITEMS_A_WORKER) {
        place_item(exploration, rank, worker, own->steps++);
        return;
    }
    bool publishes_early =
        exploration->mistake == PUBLISHES_BEFORE_FLUSHING && worker == 0 && own->steps == ITEMS_A_WORKER;
    if (publishes_early) {
        own->steps++;
        expect_ok(exploration, dmg_board_publish(fixture->boards[rank], fixture->channels[rank][0]));
        return;
    }
    if (exploration->mistake != DOES_NOT_FLUSH || worker != 0) {
        expect_ok(exploration, dmg_board_flush(fixture->boards[rank], fixture->channels[rank][worker], worker));
    }
    own->is_done = true;
    if (all_workers_are_done(exploration, rank)) {
        enter_stage(state, PUBLISH);
    }
}

static void step_take(struct exploration *exploration, uint32_t rank, uint32_t worker)
{
    struct fixture *fixture = exploration->fixture;
    struct rank_state *state = &exploration->ranks[rank];
    struct item items[2];
    uint32_t count;
    expect_ok(exploration,
              dmg_board_take(fixture->boards[rank], fixture->channels[rank][worker], worker, items, &count));
    exploration->seen[rank] = mix(exploration->seen[rank], worker * 4 + count);
    take_items(exploration, rank, items, count);
    state->workers[worker].steps++;
    state->workers[worker].is_done = count == 0;
    if (all_workers_are_done(exploration, rank)) {
        expect_all_taken(exploration, rank);
        enter_stage(state, BARRIER_BEFORE_CLEARING);
    }
}

static void step(struct exploration *exploration, uint32_t rank, uint32_t worker)
{
    struct fixture *fixture = exploration->fixture;
    struct rank_state *state = &exploration->ranks[rank];
    dmg_board *board = fixture->boards[rank];
    dmg_channel *channel = fixture->channels[rank][0];
    uint32_t buffers = 0;
    exploration->path[exploration->path_length++] = (uint8_t)(rank * WORKERS_MAX + worker);
    switch (state->stage) {
    case SEND:
        step_send(exploration, rank, worker);
        return;
    case TAKE:
        step_take(exploration, rank, worker);
        return;
    case CLEAR:
        if (exploration->mistake != DOES_NOT_CLEAR || state->round == 0) {
            clear(fixture, rank);
        }
        if (exploration->mistake == NONE) {
            exploration->seen[rank] = 0; /* all of the last round was taken: nothing of it matters any more */
        }
        break;
    case PUBLISH:
        if (exploration->mistake != DOES_NOT_PUBLISH && exploration->mistake != PUBLISHES_BEFORE_FLUSHING) {
            expect_ok(exploration, dmg_board_publish(board, channel));
        }
        break;
    case COLLECT:
        expect_ok(exploration, dmg_board_collect(board, channel, &buffers));
        exploration->seen[rank] = mix(exploration->seen[rank], buffers);
        if (exploration->mistake == COLLECTS_TWICE && state->workers[0].steps++ == 0) {
            struct item items[2];
            uint32_t count;
            expect_ok(exploration, dmg_board_take(board, channel, 0, items, &count));
            take_items(exploration, rank, items, count);
            return;
        }
        break;
    default:
        break;
    }
    enter_stage(state, (uint8_t)(state->stage + 1));
}

/* ---- the search ---- */

static uint64_t hash_state(const struct exploration *exploration)
{
    uint64_t hash = 1;
    for (uint32_t rank = 0; rank < exploration->fixture->ranks; rank++) {
        const struct rank_state *state = &exploration->ranks[rank];
        hash = mix(mix(mix(hash, state->round), state->stage), exploration->seen[rank]);
        for (uint32_t worker = 0; worker < workers_of(exploration, rank); worker++) {
            hash = mix(mix(hash, state->workers[worker].steps), state->workers[worker].is_done);
        }
    }
    return hash == 0 ? 1 : hash;
}

/* True when the state is new. */
static bool visit(struct exploration *exploration, uint64_t hash)
{
    uint64_t mask = exploration->visited_capacity - 1;
    uint64_t at = hash & mask;
    while (exploration->visited[at] != 0 && exploration->visited[at] != hash) {
        at = (at + 1) & mask;
    }
    if (exploration->visited[at] == hash) {
        return false;
    }
    exploration->visited[at] = hash;
    CU_ASSERT_TRUE_FATAL(++exploration->visited_count * 2 < exploration->visited_capacity);
    return true;
}

/* Back to the beginning: boards as if they had just been made, but for the numbers of their rounds. */
static void restart(struct exploration *exploration, uint32_t *rounds_begun)
{
    struct fixture *fixture = exploration->fixture;
    memset(exploration->ranks, 0, sizeof exploration->ranks);
    memset(exploration->times_taken, 0, sizeof exploration->times_taken);
    memset(exploration->seen, 0, sizeof exploration->seen);
    exploration->path_length = 0;
    *rounds_begun += ROUNDS + 1;
    for (uint32_t rank = 0; rank < fixture->ranks; rank++) {
        for (uint32_t worker = 0; worker < fixture->workers; worker++) {
            (void)dmg_board_flush(fixture->boards[rank], fixture->channels[rank][worker], worker);
        }
        while (fixture->rounds[rank] < *rounds_begun) {
            clear(fixture, rank);
        }
    }
}

/* A point of the search where other actors are still to be tried. */
struct branch {
    uint32_t path_length;
    uint8_t next_actor;
};

static void replay(struct exploration *exploration, const uint8_t *path, uint32_t length, uint32_t *rounds_begun)
{
    uint8_t copy[STEPS_MAX];
    memcpy(copy, path, length);
    restart(exploration, rounds_begun);
    for (uint32_t i = 0; i < length; i++) {
        step(exploration, copy[i] / WORKERS_MAX, copy[i] % WORKERS_MAX);
    }
}

static bool all_are_over(const struct exploration *exploration)
{
    for (uint32_t rank = 0; rank < exploration->fixture->ranks; rank++) {
        if (!is_over(&exploration->ranks[rank])) {
            return false;
        }
    }
    return true;
}

/* Depth first; a state whose successors were seen is not gone into again. */
static void explore(struct exploration *exploration)
{
    struct branch branches[STEPS_MAX];
    uint32_t depth = 1;
    uint32_t rounds_begun = 1;
    branches[0] = (struct branch){0, 0};
    restart(exploration, &rounds_begun);
    visit(exploration, hash_state(exploration));
    while (depth > 0 && !exploration->violation) {
        struct branch *branch = &branches[depth - 1];
        if (branch->next_actor == RANKS_MAX * WORKERS_MAX) {
            depth--;
            continue;
        }
        uint8_t actor = branch->next_actor++;
        uint32_t rank = actor / WORKERS_MAX;
        uint32_t worker = actor % WORKERS_MAX;
        if (rank >= exploration->fixture->ranks || worker >= workers_of(exploration, rank)) {
            continue;
        }
        if (exploration->path_length != branch->path_length) {
            replay(exploration, exploration->path, branch->path_length, &rounds_begun);
        }
        if (!can_step(exploration, rank, worker)) {
            continue;
        }
        step(exploration, rank, worker);
        if (!visit(exploration, hash_state(exploration))) {
            continue;
        }
        exploration->endings += all_are_over(exploration);
        CU_ASSERT_TRUE_FATAL(depth < STEPS_MAX && exploration->path_length < STEPS_MAX);
        branches[depth++] = (struct branch){exploration->path_length, 0};
    }
}

static const char *explore_all(uint32_t ranks, uint32_t workers, uint32_t buffers_max, enum mistake mistake,
                               uint64_t *states)
{
    struct fixture fixture;
    open_boards(&fixture, ranks, workers, sizeof(struct item), 2, buffers_max);
    struct exploration exploration = {.fixture = &fixture, .mistake = mistake, .visited_capacity = UINT64_C(1) << 19};
    exploration.visited = calloc(exploration.visited_capacity, sizeof *exploration.visited);
    CU_ASSERT_PTR_NOT_NULL_FATAL(exploration.visited);
    explore(&exploration);
    *states = exploration.visited_count;
    CU_ASSERT_TRUE(exploration.violation != NULL || exploration.endings > 0); /* no deadlock before the end */
    free(exploration.visited);
    close_boards(&fixture);
    return exploration.violation;
}

static void every_interleaving_takes_every_item_once(void)
{
    static const uint32_t bounds[][3] = {{2, 1, 8}, {2, 2, 8}, {2, 2, 1}, {3, 1, 8}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        uint64_t states;
        const char *violation = explore_all(bounds[i][0], bounds[i][1], bounds[i][2], NONE, &states);
        if (violation) {
            printf("\n    %u ranks, %u workers, %u buffers: %s\n", bounds[i][0], bounds[i][1], bounds[i][2], violation);
        }
        CU_ASSERT_PTR_NULL(violation);
        CU_ASSERT_TRUE(states > 100);
    }
}

static void every_mistake_in_the_protocol_is_found(void)
{
    for (int mistake = NONE + 1; mistake < MISTAKES; mistake++) {
        uint64_t states;
        const char *violation = explore_all(2, 2, 8, (enum mistake)mistake, &states);
        if (!violation) {
            printf("\n    mistake %d was not found in %llu states\n", mistake, (unsigned long long)states);
        }
        CU_ASSERT_PTR_NOT_NULL(violation);
    }
}

/* ---- sizes and figures ---- */

#define VALUES_MAX 4096

static void place_value(struct fixture *fixture, uint32_t rank, uint32_t worker, uint32_t receiver, uint64_t value)
{
    void *room = dmg_board_place(fixture->boards[rank], fixture->channels[rank][worker], worker, receiver);
    CU_ASSERT_PTR_NOT_NULL_FATAL(room);
    memcpy(room, &value, sizeof value);
}

static void flush_and_publish(struct fixture *fixture, uint32_t rank)
{
    for (uint32_t worker = 0; worker < fixture->workers; worker++) {
        CU_ASSERT_EQUAL(dmg_board_flush(fixture->boards[rank], fixture->channels[rank][worker], worker), DMG_OK);
    }
    CU_ASSERT_EQUAL(dmg_board_publish(fixture->boards[rank], fixture->channels[rank][0]), DMG_OK);
}

/* Take all that is there for a rank; returns how many. */
static uint32_t take_all(struct fixture *fixture, uint32_t rank, uint64_t *values)
{
    uint32_t buffers;
    uint32_t taken = 0;
    uint32_t count = 1;
    CU_ASSERT_EQUAL(dmg_board_collect(fixture->boards[rank], fixture->channels[rank][0], &buffers), DMG_OK);
    while (count > 0) {
        CU_ASSERT_EQUAL_FATAL(
            dmg_board_take(fixture->boards[rank], fixture->channels[rank][0], 0, values + taken, &count), DMG_OK);
        taken += count;
        CU_ASSERT_TRUE_FATAL(taken + dmg_board_items_a_buffer(fixture->boards[rank]) <= VALUES_MAX);
    }
    return taken;
}

static void what_is_written_is_items_and_directories_and_nothing_else(void)
{
    struct fixture fixture;
    uint64_t values[VALUES_MAX];
    open_boards(&fixture, 2, 1, sizeof *values, 10, 100);
    place_value(&fixture, 0, 0, 1, 0); /* takes pool memory */
    flush_and_publish(&fixture, 0);
    flush_and_publish(&fixture, 1);
    CU_ASSERT_EQUAL(take_all(&fixture, 1, values), 1);
    clear(&fixture, 0);
    clear(&fixture, 1);
    const dmg_counters before = *dmg_channel_counters(fixture.channels[0][0]);
    for (uint64_t i = 0; i < 25; i++) {
        place_value(&fixture, 0, 0, 1, i);
    }
    flush_and_publish(&fixture, 0);
    const dmg_counters *after = dmg_channel_counters(fixture.channels[0][0]);
    /* Buffers of 10, 10 and 5 items; a directory of as many lines and a head, for one other rank. */
    CU_ASSERT_EQUAL(after->operations[DMG_OPERATION_WRITE] - before.operations[DMG_OPERATION_WRITE], 3 + 1);
    CU_ASSERT_EQUAL(after->bytes[DMG_OPERATION_WRITE] - before.bytes[DMG_OPERATION_WRITE],
                    25 * sizeof *values + 4 * sizeof(dmg_board_line));
    dmg_passed sent = {0}, taken = {0}, nothing = {0};
    dmg_board_count(fixture.boards[0], &sent, &taken);
    CU_ASSERT_EQUAL(sent.items, 26);
    CU_ASSERT_EQUAL(sent.buffers, 4);
    CU_ASSERT_EQUAL(sent.bytes, 26 * sizeof *values);
    CU_ASSERT_EQUAL(memcmp(&taken, &nothing, sizeof taken), 0);
    flush_and_publish(&fixture, 1);
    CU_ASSERT_EQUAL(take_all(&fixture, 1, values), 25);
    dmg_board_count(fixture.boards[1], &nothing, &taken);
    CU_ASSERT_EQUAL(memcmp(&sent, &taken, sizeof sent), 0);
    close_boards(&fixture);
}

static void a_full_directory_takes_no_more_and_keeps_what_it_has(void)
{
    struct fixture fixture;
    uint64_t values[VALUES_MAX];
    open_boards(&fixture, 3, 1, sizeof *values, 2, 4);
    for (uint64_t i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(dmg_board_is_filling_up(fixture.boards[0]), i > 4);
        place_value(&fixture, 0, 0, 1, i);
    }
    CU_ASSERT_PTR_NULL(dmg_board_place(fixture.boards[0], fixture.channels[0][0], 0, 1));
    place_value(&fixture, 0, 0, 2, 100); /* there is room for another rank */
    for (uint32_t rank = 0; rank < 3; rank++) {
        flush_and_publish(&fixture, rank);
    }
    CU_ASSERT_EQUAL(take_all(&fixture, 1, values), 8);
    for (uint64_t i = 0; i < 8; i++) {
        CU_ASSERT_EQUAL(values[i], i);
    }
    CU_ASSERT_EQUAL(take_all(&fixture, 2, values), 1);
    CU_ASSERT_EQUAL(values[0], 100);
    CU_ASSERT_EQUAL(take_all(&fixture, 0, values), 0);
    clear(&fixture, 0);
    CU_ASSERT_FALSE(dmg_board_is_filling_up(fixture.boards[0]));
    place_value(&fixture, 0, 0, 1, 0);
    flush_and_publish(&fixture, 0);
    close_boards(&fixture);
}

static void a_pool_without_memory_for_a_buffer_takes_no_items(void)
{
    struct fixture fixture;
    dmg_address address;
    open_boards(&fixture, 2, 1, 8, 10, 100);
    for (uint64_t bytes = SEGMENT_BYTES; bytes >= 4096; bytes /= 2) {
        for (uint16_t node = 0; node < 2; node++) {
            while (dmg_pool_allocate(fixture.channels[0][0], node, 0, bytes, &address) == DMG_OK) {
            }
        }
    }
    CU_ASSERT_PTR_NULL(dmg_board_place(fixture.boards[0], fixture.channels[0][0], 0, 1));
    CU_ASSERT_TRUE(dmg_board_is_filling_up(fixture.boards[0]));
    flush_and_publish(&fixture, 0);
    flush_and_publish(&fixture, 1);
    uint64_t values[VALUES_MAX];
    CU_ASSERT_EQUAL(take_all(&fixture, 1, values), 0);
    close_boards(&fixture);
}

static void directories_of_another_round_and_impossible_ones_are_refused(void)
{
    struct fixture fixture;
    uint32_t buffers;
    open_boards(&fixture, 2, 1, 8, 10, 100);
    CU_ASSERT_EQUAL(dmg_board_collect(fixture.boards[1], fixture.channels[1][0], &buffers), DMG_ERR_PROTOCOL);
    flush_and_publish(&fixture, 0);
    CU_ASSERT_EQUAL(dmg_board_collect(fixture.boards[1], fixture.channels[1][0], &buffers), DMG_OK);
    /* Rank 0's directory for rank 1 is the third of four, in the order of receivers and then senders. */
    dmg_board_line lines[2] = {{.count = 101, .round = 1}, {.round = 1}};
    dmg_completion completion = {0};
    dmg_range_array_post_write(fixture.channels[0][0], &fixture.directories, 2 * 101, 1, lines, &completion);
    CU_ASSERT_EQUAL(dmg_wait(fixture.channels[0][0], &completion), DMG_OK);
    CU_ASSERT_EQUAL(dmg_board_collect(fixture.boards[1], fixture.channels[1][0], &buffers), DMG_ERR_CORRUPT);
    lines[0].count = 1;
    lines[1].count = 11; /* of 10 that fit */
    dmg_range_array_post_write(fixture.channels[0][0], &fixture.directories, 2 * 101, 2, lines, &completion);
    CU_ASSERT_EQUAL(dmg_wait(fixture.channels[0][0], &completion), DMG_OK);
    CU_ASSERT_EQUAL(dmg_board_collect(fixture.boards[1], fixture.channels[1][0], &buffers), DMG_OK);
    uint64_t values[10];
    CU_ASSERT_EQUAL(dmg_board_take(fixture.boards[1], fixture.channels[1][0], 0, values, &buffers), DMG_ERR_CORRUPT);
    close_boards(&fixture);
}

static void sizes_that_cannot_be_are_refused(void)
{
    dmg_budget *budget;
    dmg_board *board;
    CU_ASSERT_EQUAL_FATAL(dmg_budget_create(0, &budget), DMG_OK);
    const dmg_board_setup good = {
        .budget = budget, .ranks = 2, .workers = 1, .item_bytes = 8, .buffer_bytes = 8, .buffers_max = 1};
    dmg_board_setup bad[5] = {good, good, good, good, good};
    bad[0].ranks = DMG_RANKS_MAX + 1;
    bad[1].buffer_bytes = 7;
    bad[2].buffer_bytes = DMG_BOARD_BUFFER_BYTES_MAX + 1;
    bad[3].buffers_max = 0;
    bad[4].buffers_max = DMG_BOARD_BUFFERS_MAX + 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT_NOT_EQUAL(dmg_board_create(&bad[i], &board), DMG_OK);
        CU_ASSERT_PTR_NULL(board);
    }
    CU_ASSERT_EQUAL(dmg_board_create(&good, &board), DMG_OK);
    dmg_board_destroy(board);
    dmg_budget_destroy(budget);
}

/* ---- workers side by side ---- */

#define VALUES_A_WORKER 500

struct worker {
    struct fixture *fixture;
    uint32_t rank;
    uint32_t index;
    uint32_t refused;
    uint64_t taken[VALUES_MAX];
    uint32_t taken_count;
};

static uint64_t value_of(uint32_t rank, uint32_t worker, uint32_t index)
{
    return ((uint64_t)rank << 40) | ((uint64_t)worker << 32) | index;
}

static void *send_values(void *context)
{
    struct worker *worker = context;
    struct fixture *fixture = worker->fixture;
    dmg_channel *channel = fixture->channels[worker->rank][worker->index];
    for (uint32_t i = 0; i < VALUES_A_WORKER; i++) {
        void *room = dmg_board_place(fixture->boards[worker->rank], channel, worker->index, 1 - worker->rank);
        uint64_t value = value_of(worker->rank, worker->index, i);
        if (room) {
            memcpy(room, &value, sizeof value);
        } else {
            worker->refused++;
        }
    }
    (void)dmg_board_flush(fixture->boards[worker->rank], channel, worker->index);
    return NULL;
}

static void *take_values(void *context)
{
    struct worker *worker = context;
    struct fixture *fixture = worker->fixture;
    dmg_channel *channel = fixture->channels[worker->rank][worker->index];
    uint32_t count = 1;
    while (count > 0 && dmg_board_take(fixture->boards[worker->rank], channel, worker->index,
                                       worker->taken + worker->taken_count, &count) == DMG_OK) {
        worker->taken_count += count;
    }
    return NULL;
}

static void run_all(void *(*run)(void *context), struct worker *workers, uint32_t count)
{
    pthread_t threads[2 * WORKERS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, run, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Every value is taken once, or was refused. */
static void expect_every_value_once(const struct worker *workers, uint32_t count)
{
    static uint8_t times[2][WORKERS_MAX][VALUES_A_WORKER];
    uint32_t taken = 0;
    uint32_t refused = 0;
    memset(times, 0, sizeof times);
    for (uint32_t i = 0; i < count; i++) {
        refused += workers[i].refused;
        for (uint32_t j = 0; j < workers[i].taken_count; j++) {
            uint64_t value = workers[i].taken[j];
            CU_ASSERT_EQUAL_FATAL(value >> 40, 1 - workers[i].rank);
            CU_ASSERT_EQUAL(times[value >> 40][value >> 32 & 0xff][value & 0xffffffff]++, 0);
            taken++;
        }
    }
    CU_ASSERT_EQUAL(taken + refused, count * VALUES_A_WORKER);
}

static void workers_share_directories_and_buffers(void)
{
    static const uint32_t bounds[][2] = {{1, 1000}, {2, 1000}, {7, 1000}, {3, 50}}; /* items a buffer, buffers */
    static struct worker workers[2 * WORKERS_MAX];
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        struct fixture fixture;
        open_boards(&fixture, 2, WORKERS_MAX, 8, bounds[i][0], bounds[i][1]);
        memset(workers, 0, sizeof workers);
        for (uint32_t j = 0; j < 2 * WORKERS_MAX; j++) {
            workers[j].fixture = &fixture;
            workers[j].rank = j / WORKERS_MAX;
            workers[j].index = j % WORKERS_MAX;
        }
        run_all(send_values, workers, 2 * WORKERS_MAX);
        uint32_t buffers;
        for (uint32_t rank = 0; rank < 2; rank++) {
            CU_ASSERT_EQUAL(dmg_board_publish(fixture.boards[rank], fixture.channels[rank][0]), DMG_OK);
        }
        for (uint32_t rank = 0; rank < 2; rank++) {
            CU_ASSERT_EQUAL(dmg_board_collect(fixture.boards[rank], fixture.channels[rank][0], &buffers), DMG_OK);
        }
        run_all(take_values, workers, 2 * WORKERS_MAX);
        expect_every_value_once(workers, 2 * WORKERS_MAX);
        close_boards(&fixture);
    }
}

static const dmg_test explored[] = {
    DMG_TEST(every_interleaving_takes_every_item_once),
    DMG_TEST(every_mistake_in_the_protocol_is_found),
    {NULL, NULL},
};

static const dmg_test tests[] = {
    DMG_TEST(what_is_written_is_items_and_directories_and_nothing_else),
    DMG_TEST(a_full_directory_takes_no_more_and_keeps_what_it_has),
    DMG_TEST(a_pool_without_memory_for_a_buffer_takes_no_items),
    DMG_TEST(directories_of_another_round_and_impossible_ones_are_refused),
    DMG_TEST(sizes_that_cannot_be_are_refused),
    DMG_TEST(workers_share_directories_and_buffers),
    {NULL, NULL},
};

/* Steps of the explorer are calls, whatever carries them: one transport is enough, the fastest. */
static int mapped_transport(void)
{
    transport = dmg_test_transports[0];
    return 0;
}

/* Suites run in the order of the transports; each set-up moves on to the next. */
static int next_transport(void)
{
    static size_t index;
    transport = dmg_test_transports[index++];
    return 0;
}

int main(int argc, char **argv)
{
    if (dmg_suite_add("explored", mapped_transport, NULL, explored) != 0) {
        return 1;
    }
    for (size_t i = 0; dmg_test_transports[i]; i++) {
        if (dmg_suite_add(dmg_test_transports[i], next_transport, NULL, tests) != 0) {
            return 1;
        }
    }
    return dmg_suites_run(argc, argv);
}
