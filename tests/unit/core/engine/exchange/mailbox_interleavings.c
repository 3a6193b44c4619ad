/*
 * The mailbox in which compute nodes leave items for each other: every item is taken exactly once, whatever the
 * interleaving.
 *
 * Small exchanges are explored whole: all orders in which the steps of two ranks can follow each other, each step a
 * call of the real functions on mailboxes in a real pool. The explorer proves its worth on protocols with a step left
 * out or moved, in each of which it has to find the mistake. What happens inside a call is tested by threads
 * (mailbox.c).
 */
#include "unit/support/suite.h"

#include "unit/core/engine/exchange/mailbox_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *transport;

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
    struct worker_state workers[MAILBOX_FIXTURE_WORKERS_MAX];
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
    mailbox_fixture *fixture;
    enum mistake mistake;
    struct rank_state ranks[MAILBOX_FIXTURE_RANKS_MAX];
    uint8_t times_taken[ROUNDS][MAILBOX_FIXTURE_RANKS_MAX][MAILBOX_FIXTURE_WORKERS_MAX][ITEMS_A_WORKER];
    /* What each rank has seen: with where it stands, all that its mailbox's future depends on. */
    uint64_t seen[MAILBOX_FIXTURE_RANKS_MAX];
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

/* Rank 0 has all workers of a mailbox, the others make do with one: enough for workers to interleave. */
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
    mailbox_fixture *fixture = exploration->fixture;
    uint32_t receiver = receiver_of(exploration, rank, index);
    struct item item = {.sender = (uint8_t)rank,
                        .worker = (uint8_t)worker,
                        .receiver = (uint8_t)receiver,
                        .round = exploration->ranks[rank].round,
                        .index = (uint8_t)index};
    void *room = dmg_mailbox_reserve(fixture->mailboxes[rank], fixture->channels[rank][worker], worker, receiver);
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
        violate(exploration, "the mailbox noticed");
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
    mailbox_fixture *fixture = exploration->fixture;
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
        expect_ok(exploration, dmg_mailbox_publish(fixture->mailboxes[rank], fixture->channels[rank][0]));
        return;
    }
    if (exploration->mistake != DOES_NOT_FLUSH || worker != 0) {
        expect_ok(exploration, dmg_mailbox_flush(fixture->mailboxes[rank], fixture->channels[rank][worker], worker));
    }
    own->is_done = true;
    if (all_workers_are_done(exploration, rank)) {
        enter_stage(state, PUBLISH);
    }
}

static void step_take(struct exploration *exploration, uint32_t rank, uint32_t worker)
{
    mailbox_fixture *fixture = exploration->fixture;
    struct rank_state *state = &exploration->ranks[rank];
    struct item items[2];
    uint32_t count;
    expect_ok(exploration,
              dmg_mailbox_receive(fixture->mailboxes[rank], fixture->channels[rank][worker], worker, items, &count));
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
    mailbox_fixture *fixture = exploration->fixture;
    struct rank_state *state = &exploration->ranks[rank];
    dmg_mailbox *mailbox = fixture->mailboxes[rank];
    dmg_channel *channel = fixture->channels[rank][0];
    uint32_t buffers = 0;
    exploration->path[exploration->path_length++] = (uint8_t)(rank * MAILBOX_FIXTURE_WORKERS_MAX + worker);
    switch (state->stage) {
    case SEND:
        step_send(exploration, rank, worker);
        return;
    case TAKE:
        step_take(exploration, rank, worker);
        return;
    case CLEAR:
        if (exploration->mistake != DOES_NOT_CLEAR || state->round == 0) {
            mailbox_fixture_clear(fixture, rank);
        }
        if (exploration->mistake == NONE) {
            exploration->seen[rank] = 0; /* all of the last round was taken: nothing of it matters any more */
        }
        break;
    case PUBLISH:
        if (exploration->mistake != DOES_NOT_PUBLISH && exploration->mistake != PUBLISHES_BEFORE_FLUSHING) {
            expect_ok(exploration, dmg_mailbox_publish(mailbox, channel));
        }
        break;
    case COLLECT:
        expect_ok(exploration, dmg_mailbox_collect(mailbox, channel, &buffers));
        exploration->seen[rank] = mix(exploration->seen[rank], buffers);
        if (exploration->mistake == COLLECTS_TWICE && state->workers[0].steps++ == 0) {
            struct item items[2];
            uint32_t count;
            expect_ok(exploration, dmg_mailbox_receive(mailbox, channel, 0, items, &count));
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

/* Back to the beginning: mailboxes as if they had just been made, but for the numbers of their rounds. */
static void restart(struct exploration *exploration, uint32_t *rounds_begun)
{
    mailbox_fixture *fixture = exploration->fixture;
    memset(exploration->ranks, 0, sizeof exploration->ranks);
    memset(exploration->times_taken, 0, sizeof exploration->times_taken);
    memset(exploration->seen, 0, sizeof exploration->seen);
    exploration->path_length = 0;
    *rounds_begun += ROUNDS + 1;
    for (uint32_t rank = 0; rank < fixture->ranks; rank++) {
        for (uint32_t worker = 0; worker < fixture->workers; worker++) {
            (void)dmg_mailbox_flush(fixture->mailboxes[rank], fixture->channels[rank][worker], worker);
        }
        while (fixture->rounds[rank] < *rounds_begun) {
            mailbox_fixture_clear(fixture, rank);
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
        step(exploration, copy[i] / MAILBOX_FIXTURE_WORKERS_MAX, copy[i] % MAILBOX_FIXTURE_WORKERS_MAX);
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
        if (branch->next_actor == MAILBOX_FIXTURE_RANKS_MAX * MAILBOX_FIXTURE_WORKERS_MAX) {
            depth--;
            continue;
        }
        uint8_t actor = branch->next_actor++;
        uint32_t rank = actor / MAILBOX_FIXTURE_WORKERS_MAX;
        uint32_t worker = actor % MAILBOX_FIXTURE_WORKERS_MAX;
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
    mailbox_fixture fixture;
    mailbox_fixture_open(&fixture, transport, ranks, workers, sizeof(struct item), 2, buffers_max);
    struct exploration exploration = {.fixture = &fixture, .mistake = mistake, .visited_capacity = UINT64_C(1) << 19};
    exploration.visited = calloc(exploration.visited_capacity, sizeof *exploration.visited);
    CU_ASSERT_PTR_NOT_NULL_FATAL(exploration.visited);
    explore(&exploration);
    *states = exploration.visited_count;
    CU_ASSERT_TRUE(exploration.violation != NULL || exploration.endings > 0); /* no deadlock before the end */
    free(exploration.visited);
    mailbox_fixture_close(&fixture);
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

static const dmg_test explored[] = {
    DMG_TEST(every_interleaving_takes_every_item_once),
    DMG_TEST(every_mistake_in_the_protocol_is_found),
    {NULL, NULL},
};

/* Steps of the explorer are calls, whatever carries them: one transport is enough, the fastest. */
static int mapped_transport(void)
{
    transport = dmg_test_transports[0];
    return 0;
}

int main(int argc, char **argv)
{
    if (dmg_suite_add("explored", mapped_transport, NULL, explored) != 0) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
