/*
 * Compute nodes do not believe what the pool holds: a graph is loaded, its lists and index are damaged where they lie,
 * and every kind of walk ends with an error, and writes nowhere else (sanitizers see that).
 *
 * The compute nodes are threads of the test, each with a client of its own.
 */
#include "unit/support/suite.h"

#include "algorithms/algorithm.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "unit/support/pool_fixture.h"
#include "unit/support/random_graph.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENT_BYTES (UINT64_C(8) << 20)
#define VERTICES      1000
#define RANKS_MAX     2
/* What a vandal writes, and where: graph, attributes and buffers lie at the beginning. */
#define VANDAL_WRITES_MAX 20000
#define VANDAL_BYTES      (SEGMENT_BYTES / 8)
#define VANDAL_WAIT_NS    UINT64_C(20000)

/* No multiple of 64: the last word of an activation bitmap has bits of no vertex. */
_Static_assert(VERTICES % 64 != 0, "the last word of the bitmaps is not full");

static const char *transport;
static dmg_random randomness;

typedef enum damage {
    NO_DAMAGE,
    DESTINATION_IN_ENTRY,  /* an edge in the index leads to no vertex */
    DESTINATION_IN_LIST,   /* the last of a list does */
    DESTINATION_ELSEWHERE, /* the first of a list leads into another partition than the lengths say */
    DEGREE_BEYOND_POOL,
    LENGTH_BEYOND_DEGREE,
    ADDRESS_OUTSIDE, /* behind the segment's end */
    ADDRESS_OF_NO_NODE,
    ADDRESS_ODD,
    DAMAGES
} damage;

static const char *const damage_names[] = {"none",
                                           "a destination in an entry",
                                           "a destination in a list",
                                           "a destination of another partition",
                                           "a degree",
                                           "a length",
                                           "an address behind the segment",
                                           "an address of no node",
                                           "an odd address"};

/* How an algorithm walks, over what was damaged how. */
struct setting {
    damage damage;
    bool damages_bitmaps;  /* as the second iteration begins */
    struct vandal *vandal; /* is told when the first one begins; may be NULL */
    uint32_t ranks;
    dmg_engine_options engine;
};

struct rank {
    const struct setting *setting;
    const dmg_test_pool *pool;
    const dmg_graph *graph;
    const dmg_algorithm *algorithm;
    uint32_t index;
    dmg_channel *channel;
    const dmg_job *job;
    dmg_status status;
    char sentence[512];
};

static dmg_status write_now(dmg_channel *channel, dmg_address address, const void *bytes, uint64_t count)
{
    return dmg_write(channel, bytes, address, count);
}

/* Damage one entry, or the list that it leads to. */
static dmg_status damage_entry(dmg_channel *channel, const dmg_graph_store *store, const dmg_range_array *index,
                               uint64_t vertex, const uint8_t *entry, damage kind)
{
    const uint32_t no_vertex = UINT32_MAX - 15;
    const uint32_t far_degree = UINT32_MAX;
    const uint32_t long_length = UINT32_C(0x00fffff0) << 2 | 3;
    dmg_address at = dmg_range_array_address(index, vertex);
    uint32_t degree = dmg_index_entry_degree(entry);
    bool is_in_place = dmg_index_entry_is_in_place(&store->shape, entry);
    if (degree == 0 || is_in_place != (kind == DESTINATION_IN_ENTRY)) {
        return DMG_OK;
    }
    dmg_address list = is_in_place ? DMG_ADDRESS_NULL : dmg_index_entry_first_edge(&store->shape, entry);
    dmg_address last_edge = list + (uint64_t)(degree - 1) * store->shape.edge_bytes;
    dmg_address outside = dmg_address_make(dmg_address_node(list), SEGMENT_BYTES - 4);
    dmg_address of_no_node = dmg_address_make(DMG_TEST_POOL_NODES_MAX + 1, 4096);
    dmg_address odd = list + 1;
    uint32_t elsewhere = VERTICES - 1;
    switch (kind) {
    case DESTINATION_IN_ENTRY:
        return write_now(channel, at + 4, &no_vertex, 4);
    case DESTINATION_IN_LIST:
        return write_now(channel, last_edge, &no_vertex, 4);
    case DESTINATION_ELSEWHERE:
        return write_now(channel, list, &elsewhere, 4);
    case DEGREE_BEYOND_POOL:
        return write_now(channel, at, &far_degree, 4);
    case LENGTH_BEYOND_DEGREE:
        return write_now(channel, at + DMG_INDEX_LENGTHS_AT, &long_length, 4);
    case ADDRESS_OUTSIDE:
        return write_now(channel, at + 4, &outside, 8);
    case ADDRESS_OF_NO_NODE:
        return write_now(channel, at + 4, &of_no_node, 8);
    case ADDRESS_ODD:
        return write_now(channel, at + 4, &odd, 8);
    case NO_DAMAGE:
    case DAMAGES:
        break;
    }
    return DMG_OK;
}

/* All entries of an index that the damage is possible to. */
static dmg_status damage_index(dmg_channel *channel, const dmg_graph_store *store, const dmg_range_array *index,
                               damage kind)
{
    dmg_status status = DMG_OK;
    for (uint64_t vertex = 0; vertex < VERTICES && status == DMG_OK; vertex++) {
        uint8_t entry[DMG_INDEX_ENTRY_BYTES_MAX];
        status = dmg_read(channel, dmg_range_array_address(index, vertex), entry, store->shape.entry_bytes);
        if (status == DMG_OK) {
            status = damage_entry(channel, store, index, vertex, entry, kind);
        }
    }
    return status;
}

static dmg_status damage_graph(const struct rank *rank, dmg_channel *channel, const dmg_graph_store *store)
{
    if (rank->index != 0 || rank->setting->damage == NO_DAMAGE) {
        return DMG_OK;
    }
    dmg_status status = damage_index(channel, store, &store->out_index, rank->setting->damage);
    return status == DMG_OK ? damage_index(channel, store, &store->in_index, rank->setting->damage) : status;
}

/* The run's arrays are in the catalog: the first are attributes and two bitmaps. Set the bits of no vertex in both. */
static void damage_bitmaps(void *context, uint32_t iteration, uint64_t active_vertices)
{
    const struct rank *rank = context;
    (void)active_vertices;
    if (iteration != 1 || rank->index != 0) {
        return;
    }
    for (int i = 1; i <= 2; i++) {
        char name[DMG_CATALOG_NAME_BYTES];
        dmg_range_array bitmap;
        size_t bytes = sizeof bitmap;
        uint64_t word = UINT64_MAX;
        snprintf(name, sizeof name, "job/%016llx/array/%d", (unsigned long long)rank->job->id, i);
        CU_ASSERT_EQUAL_FATAL(dmg_catalog_get(rank->channel, name, &bitmap, &bytes), DMG_OK);
        CU_ASSERT_EQUAL_FATAL(bitmap.count, (VERTICES + 63) / 64);
        CU_ASSERT_EQUAL(dmg_write(rank->channel, &word, dmg_range_array_address(&bitmap, bitmap.count - 1), 8), DMG_OK);
    }
}

/* Another client of the pool, which writes into what is not its own while a run computes. */
struct vandal {
    const dmg_test_pool *pool;
    bool spares_graph;      /* it writes into what a run allocates while it computes: buffers of updates */
    atomic_bool is_running; /* the run */
    atomic_bool is_over;
    uint64_t first_byte; /* of what it writes to, on either node */
    dmg_random randomness;
    uint32_t writes;
};

static void tell_vandal(void *context, uint32_t iteration, uint64_t active_vertices)
{
    const struct rank *rank = context;
    struct vandal *vandal = rank->setting->vandal;
    uint64_t allocated = 0, peak, total;
    (void)active_vertices;
    if (iteration != 0 || rank->index != 0) {
        return;
    }
    if (vandal->spares_graph) {
        CU_ASSERT_EQUAL(dmg_pool_usage(rank->channel, 0, &allocated, &peak, &total), DMG_OK);
    }
    vandal->first_byte = allocated / 8 * 8;
    atomic_store(&vandal->is_running, true);
}

static dmg_status share_store(const struct rank *rank, dmg_channel *channel, dmg_job *job, dmg_graph_store *store)
{
    size_t bytes = sizeof *store;
    dmg_status status = DMG_OK;
    if (rank->index == 0) {
        const dmg_store_options options = {
            .partition_count = rank->setting->ranks, .with_out = true, .with_in = true, .job = job->id};
        status = dmg_graph_store_create(channel, rank->graph, &options, store);
        if (status == DMG_OK) {
            status = dmg_catalog_put(channel, job->id, "damaged", store, sizeof *store);
        }
    }
    if (status == DMG_OK) {
        status = dmg_job_barrier(channel, job, NULL);
    }
    return status == DMG_OK && rank->index != 0 ? dmg_catalog_get(channel, "damaged", store, &bytes) : status;
}

/* A search from the vertex of most edges meets lists of every kind. */
static uint32_t hub_of(const dmg_graph *graph)
{
    uint32_t hub = 0;
    const uint64_t *offsets = graph->out.offsets;
    for (uint32_t vertex = 1; vertex < graph->vertex_count; vertex++) {
        if (offsets[vertex + 1] - offsets[vertex] > offsets[hub + 1] - offsets[hub]) {
            hub = vertex;
        }
    }
    return hub;
}

static dmg_status run_on_engine(struct rank *rank, dmg_client *client, dmg_channel *channel, dmg_job *job)
{
    const dmg_algorithm_options options = {
        .source = hub_of(rank->graph), .iterations_max = 3, .tolerance = 0, .damping = -1};
    dmg_graph_store store;
    dmg_engine *engine = NULL;
    dmg_run_result result;
    memset(&store, 0, sizeof store);
    memset(&result, 0, sizeof result);
    dmg_status status = share_store(rank, channel, job, &store);
    if (status == DMG_OK) {
        dmg_engine_options engine_options = rank->setting->engine;
        rank->channel = channel;
        rank->job = job;
        engine_options.on_iteration = rank->setting->damages_bitmaps ? damage_bitmaps
                                      : rank->setting->vandal        ? tell_vandal
                                                                     : NULL;
        engine_options.on_iteration_context = rank;
        status = dmg_engine_create(client, channel, job, &store, &engine_options, &engine);
    }
    if (status == DMG_OK) {
        status = dmg_engine_load(engine, rank->graph, NULL);
    }
    /* Only what the walks do with it is the test: all that goes before must succeed. */
    if (status == DMG_OK) {
        status = damage_graph(rank, channel, &store);
    }
    if (status == DMG_OK) {
        status = dmg_job_barrier(channel, job, NULL);
    }
    CU_ASSERT_EQUAL(status, DMG_OK);
    if (status == DMG_OK) {
        status = rank->algorithm->run(engine, &options, &result);
    }
    dmg_engine_destroy(engine);
    return status;
}

static void *run_rank(void *argument)
{
    struct rank *rank = argument;
    dmg_client *client = NULL;
    dmg_channel *channel = NULL;
    dmg_job job = {0};
    rank->status = dmg_client_open(&rank->pool->options, &client);
    if (rank->status == DMG_OK) {
        rank->status = dmg_channel_open(client, &channel);
    }
    if (rank->status == DMG_OK) {
        rank->status = dmg_job_join(channel, &dmg_test_pass, "damage", rank->index, rank->setting->ranks, &job);
    }
    if (rank->status == DMG_OK) {
        rank->status = run_on_engine(rank, client, channel, &job);
    }
    snprintf(rank->sentence, sizeof rank->sentence, "%s", rank->status == DMG_OK ? "" : dmg_error_message());
    if (rank->status == DMG_OK) {
        (void)dmg_job_leave(channel, &job);
    }
    dmg_channel_close(channel);
    dmg_client_close(client);
    return NULL;
}

/* Words that mean something: numbers of vertices and rounds, lengths, addresses, and none of these. */
static uint64_t nasty_word(dmg_random *random)
{
    uint64_t word = dmg_random_next(random);
    switch (word % 5) {
    case 0:
        return dmg_random_below(random, 8) << 32 | dmg_random_below(random, VERTICES);
    case 1:
        return UINT64_MAX - dmg_random_below(random, 4);
    case 2:
        return dmg_address_make((uint16_t)dmg_random_below(random, 3), dmg_random_below(random, SEGMENT_BYTES + 64));
    case 3:
        return dmg_random_below(random, UINT32_MAX) << 32 | 1;
    default:
        return word;
    }
}

static dmg_status vandalise(struct vandal *vandal, dmg_channel *channel)
{
    /* Bounded: attributes that somebody keeps raising keep an algorithm at work for ever. */
    dmg_status status = DMG_OK;
    while (vandal->writes < VANDAL_WRITES_MAX && status == DMG_OK && !atomic_load(&vandal->is_over)) {
        if (!atomic_load(&vandal->is_running)) {
            dmg_sleep_ns(VANDAL_WAIT_NS);
            continue;
        }
        uint64_t word = nasty_word(&vandal->randomness);
        uint64_t offset = vandal->first_byte + dmg_random_below(&vandal->randomness, VANDAL_BYTES / 8) * 8;
        uint16_t node = (uint16_t)dmg_random_below(&vandal->randomness, 2);
        status = dmg_write(channel, &word, dmg_address_make(node, offset), sizeof word);
        vandal->writes++;
    }
    return status;
}

static void *run_vandal(void *argument)
{
    struct vandal *vandal = argument;
    dmg_client *client = NULL;
    dmg_channel *channel = NULL;
    dmg_status status = dmg_client_open(&vandal->pool->options, &client);
    if (status == DMG_OK) {
        status = dmg_channel_open(client, &channel);
    }
    if (status == DMG_OK) {
        status = vandalise(vandal, channel);
    }
    CU_ASSERT_EQUAL(status, DMG_OK);
    dmg_channel_close(channel);
    dmg_client_close(client);
    return NULL;
}

/* Run on all ranks, one thread each. */
static void run_job_beside(const struct setting *setting, const dmg_graph *graph, const dmg_algorithm *algorithm,
                           struct rank *ranks, struct vandal *vandal)
{
    dmg_test_pool pool = {0};
    pthread_t vandal_thread;
    CU_ASSERT_EQUAL_FATAL(dmg_test_pool_start(transport, 2, SEGMENT_BYTES, &pool), DMG_OK);
    if (vandal) {
        vandal->pool = &pool;
        CU_ASSERT_EQUAL_FATAL(pthread_create(&vandal_thread, NULL, run_vandal, vandal), 0);
    }
    pthread_t threads[RANKS_MAX];
    for (uint32_t i = 0; i < setting->ranks; i++) {
        ranks[i] = (struct rank){.setting = setting, .pool = &pool, .graph = graph, .algorithm = algorithm, .index = i};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, run_rank, &ranks[i]), 0);
    }
    for (uint32_t i = 0; i < setting->ranks; i++) {
        pthread_join(threads[i], NULL);
    }
    if (vandal) {
        atomic_store(&vandal->is_over, true);
        pthread_join(vandal_thread, NULL);
    }
    dmg_test_pool_stop(&pool);
}

static void run_job(const struct setting *setting, const dmg_graph *graph, const dmg_algorithm *algorithm,
                    struct rank *ranks)
{
    run_job_beside(setting, graph, algorithm, ranks, NULL);
}

/* Some rank found it, and says what and where; the others were told, or found it, too. */
static void expect_refusal(const struct setting *setting, const dmg_graph *graph, const dmg_algorithm *algorithm)
{
    struct rank ranks[RANKS_MAX] = {0};
    bool is_told = false;
    bool is_refused = true;
    run_job(setting, graph, algorithm, ranks);
    for (uint32_t i = 0; i < setting->ranks && i < RANKS_MAX; i++) {
        is_refused = is_refused && ranks[i].status != DMG_OK;
        is_told = is_told || (ranks[i].status == DMG_ERR_CORRUPT && strstr(ranks[i].sentence, "vertex") &&
                              strstr(ranks[i].sentence, "memory node"));
    }
    /* An address that no segment has is refused by the transport, where lists are copied. */
    bool may_be_refused_below = setting->damage == ADDRESS_OUTSIDE || setting->damage == ADDRESS_OF_NO_NODE ||
                                setting->damage == DEGREE_BEYOND_POOL;
    if (!is_refused || !(is_told || may_be_refused_below)) {
        printf("\n    %s over %s, %s damaged, %u ranks, direction %d, density %d, updates %d: status %d, \"%s\"\n",
               algorithm->name, transport, damage_names[setting->damage], setting->ranks, setting->engine.direction,
               setting->engine.density, setting->engine.updates, ranks[0].status, ranks[0].sentence);
        CU_FAIL("a damaged graph was believed, or what is wrong was not said");
    }
}

static void make_graph(dmg_graph *graph)
{
    const dmg_random_graph_options options = {.vertex_count = VERTICES,
                                              .degree_max = 12,
                                              .hub_count = 10,
                                              .hub_degree = VERTICES / 3,
                                              .weight_kind = DMG_WEIGHT_NONE,
                                              .is_directed = true};
    dmg_random_graph_make(&options, &randomness, graph);
}

/* Damage of each kind that can be seen: one rank has no use for lengths, and no other partition; a walk that caches
 * nothing may lead to any vertex. */
static void expect_refusals(struct setting *setting, const char *name)
{
    dmg_graph graph;
    make_graph(&graph);
    for (int kind = DESTINATION_IN_ENTRY; kind < DAMAGES; kind++) {
        setting->damage = (damage)kind;
        bool is_seen = setting->ranks > 1 || (kind != LENGTH_BEYOND_DEGREE && kind != DESTINATION_ELSEWHERE);
        bool is_any_vertex_good = setting->engine.density == DMG_DENSITY_SPARSE && kind == DESTINATION_ELSEWHERE;
        if (is_seen && !is_any_vertex_good) {
            expect_refusal(setting, &graph, dmg_algorithm_find(name));
        }
    }
    dmg_graph_close(&graph);
}

static void walk(const char *name, dmg_direction direction, dmg_density density)
{
    for (uint32_t ranks = 1; ranks <= RANKS_MAX; ranks++) {
        struct setting setting = {.ranks = ranks, .engine = {.threads = 1, .direction = direction, .density = density}};
        expect_refusals(&setting, name);
    }
}

static void damage_is_found_where_every_vertex_pushes_minima(void)
{
    walk("cc", DMG_DIRECTION_PUSH, DMG_DENSITY_DENSE);
}

static void damage_is_found_where_every_vertex_pulls_minima(void)
{
    walk("cc", DMG_DIRECTION_PULL, DMG_DENSITY_DENSE);
}

static void damage_is_found_where_sums_are_pushed(void)
{
    walk("pagerank", DMG_DIRECTION_PUSH, DMG_DENSITY_AUTO);
}

static void damage_is_found_where_sums_are_pulled(void)
{
    walk("pagerank", DMG_DIRECTION_PULL, DMG_DENSITY_AUTO);
}

static void damage_is_found_where_a_frontier_pushes(void)
{
    walk("bfs", DMG_DIRECTION_PUSH, DMG_DENSITY_DENSE);
}

static void damage_is_found_where_vertices_pull_from_a_frontier(void)
{
    walk("bfs", DMG_DIRECTION_PULL, DMG_DENSITY_DENSE);
}

static void damage_is_found_where_nothing_is_cached(void)
{
    walk("sssp", DMG_DIRECTION_PUSH, DMG_DENSITY_SPARSE);
}

static void bits_of_no_vertex_are_found_in_activation_bitmaps(void)
{
    static const dmg_direction directions[] = {DMG_DIRECTION_PUSH, DMG_DIRECTION_PULL, DMG_DIRECTION_PUSH};
    static const dmg_density densities[] = {DMG_DENSITY_DENSE, DMG_DENSITY_DENSE, DMG_DENSITY_SPARSE};
    dmg_graph graph;
    struct rank ranks[RANKS_MAX] = {0};
    make_graph(&graph);
    for (size_t i = 0; i < sizeof directions / sizeof *directions; i++) {
        const struct setting setting = {.ranks = 1,
                                        .damages_bitmaps = true,
                                        .engine = {.threads = 1, .direction = directions[i], .density = densities[i]}};
        run_job(&setting, &graph, dmg_algorithm_find("bfs"), ranks);
        CU_ASSERT_EQUAL(ranks[0].status, DMG_ERR_CORRUPT);
        CU_ASSERT_PTR_NOT_NULL(strstr(ranks[0].sentence, "bitmap"));
    }
    dmg_graph_close(&graph);
}

/* What it does to the answer nobody can say. That the run ends, with a sentence where it failed, is the test, and that
 * it touches nothing outside the pool, which sanitizers see. Returns how much was written meanwhile. */
static uint32_t expect_an_end(const char *name, dmg_direction direction, dmg_update_method updates, bool spares_graph)
{
    dmg_graph graph;
    struct rank ranks[RANKS_MAX] = {0};
    struct vandal vandal = {.spares_graph = spares_graph, .randomness = {dmg_random_next(&randomness)}};
    make_graph(&graph);
    const struct setting setting = {
        .ranks = RANKS_MAX,
        .vandal = &vandal,
        .engine = {
            .threads = 1, .direction = direction, .updates = updates, .round_buffers = 4, .value_buffer_bytes = 512}};
    run_job_beside(&setting, &graph, dmg_algorithm_find(name), ranks, &vandal);
    for (uint32_t i = 0; i < RANKS_MAX; i++) {
        CU_ASSERT_TRUE(ranks[i].status == DMG_OK || ranks[i].sentence[0] != '\0');
    }
    dmg_graph_close(&graph);
    return vandal.writes;
}

static void end_beside_a_vandal(bool spares_graph)
{
    static const char *const names[] = {"bfs", "cc", "sssp", "pagerank"};
    static const dmg_update_method methods[] = {DMG_UPDATE_DIRECT, DMG_UPDATE_VALRD_NODE, DMG_UPDATE_VALRD_OWNER};
    uint32_t writes = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t j = 0; j < sizeof methods / sizeof *methods; j++) {
            writes += expect_an_end(names[i], DMG_DIRECTION_PUSH, methods[j], spares_graph);
        }
    }
    writes += expect_an_end("cc", DMG_DIRECTION_PULL, DMG_UPDATE_AUTO, spares_graph);
    writes += expect_an_end("pagerank", DMG_DIRECTION_PULL, DMG_UPDATE_AUTO, spares_graph);
    /* A single run may be over before the vandal comes to his turn. */
    CU_ASSERT_TRUE(writes > 0);
}

static void a_neighbour_that_writes_everywhere_ends_a_run_and_no_process(void)
{
    end_beside_a_vandal(false);
}

static void a_neighbour_that_writes_into_updates_under_way_ends_no_process(void)
{
    end_beside_a_vandal(true);
}

static const dmg_test tests[] = {
    DMG_TEST(damage_is_found_where_a_frontier_pushes),
    DMG_TEST(damage_is_found_where_vertices_pull_from_a_frontier),
    DMG_TEST(damage_is_found_where_nothing_is_cached),
    DMG_TEST(damage_is_found_where_every_vertex_pushes_minima),
    DMG_TEST(damage_is_found_where_every_vertex_pulls_minima),
    DMG_TEST(damage_is_found_where_sums_are_pushed),
    DMG_TEST(damage_is_found_where_sums_are_pulled),
    DMG_TEST(bits_of_no_vertex_are_found_in_activation_bitmaps),
    DMG_TEST(a_neighbour_that_writes_everywhere_ends_a_run_and_no_process),
    DMG_TEST(a_neighbour_that_writes_into_updates_under_way_ends_no_process),
    {NULL, NULL},
};

/* Suites run in the order of the transports; each set-up moves on to the next. */
static int next_transport(void)
{
    static size_t index;
    transport = dmg_test_transports[index++];
    return 0;
}

int main(int argc, char **argv)
{
    randomness.state = dmg_test_seed();
    if (argc > 1) {
        transport = argv[1];
        return dmg_suite_add(transport, NULL, NULL, tests) != 0 || dmg_suites_run(1, argv) != 0;
    }
    for (size_t i = 0; dmg_test_transports[i]; i++) {
        if (dmg_suite_add(dmg_test_transports[i], next_transport, NULL, tests) != 0) {
            return 1;
        }
    }
    return dmg_suites_run(argc, argv);
}
