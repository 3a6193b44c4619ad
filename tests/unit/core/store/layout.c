/* The parts of the store that touch no pool: index entries, list layout, tiny-chunks. */
#include "core/store/edge_list.h"
#include "core/store/graph_store.h"
#include "core/store/index_entry.h"
#include "core/store/list_placement.h"
#include "core/store/tiny_chunk.h"

#include "unit/support/random_graph.h"
#include "unit/support/suite.h"

#include <stdlib.h>

static const uint32_t entry_sizes[] = {16, 32, 64, 128};
static const uint32_t partition_counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 20, 21, 64};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/** Bytes of a length as the format defines them: 8k - 2 bits for the value. */
static uint32_t expected_length_bytes(uint64_t length)
{
    uint32_t bytes = 1;
    while (length >> (8 * bytes - 2) != 0) {
        bytes++;
    }
    return bytes;
}

static bool expected_fit(const dmg_index_shape *shape, const uint32_t *lengths)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < shape->partition_count; i++) {
        if (lengths[i] > (1u << 30) - 2) {
            return false;
        }
        bytes += expected_length_bytes(lengths[i]);
    }
    return bytes <= shape->entry_bytes - 12;
}

static void check_segments(const dmg_index_shape *shape, const uint8_t *entry, const uint32_t *front,
                           const uint32_t *lengths, uint32_t first, uint32_t last)
{
    uint64_t expected_before = 0;
    uint64_t expected = 0;
    for (uint32_t i = 0; i < last; i++) {
        expected_before += i < first ? lengths[i] : 0;
        expected += i < first ? 0 : lengths[i];
    }
    uint64_t before = 1;
    uint64_t edges = 1;
    bool is_good = dmg_index_entry_segments(shape, entry, front, first, last, &before, &edges);
    if (!is_good || before != expected_before || edges != expected) {
        CU_FAIL("a segment has another length than was put in");
    }
    is_good = dmg_index_entry_segments_walk(shape, entry, front, first, last, &before, &edges);
    if (!is_good || before != expected_before || edges != expected) {
        CU_FAIL("the walk and the short cuts differ");
    }
}

/** Put lengths in, and get all of them back, one by one, in full and by random ranges. */
static void check_lengths(const dmg_index_shape *shape, uint32_t degree, const uint32_t *lengths, dmg_random *random)
{
    uint8_t guarded[DMG_INDEX_ENTRY_BYTES_MAX + 2];
    uint8_t *entry = guarded + 1;
    memset(guarded, 0xa5, sizeof guarded);
    dmg_address list = dmg_address_make((uint16_t)dmg_random_next(random), dmg_random_next(random));
    bool fit = dmg_index_entry_set_out_of_place(shape, degree, list, lengths, entry);
    const uint32_t *front = fit ? NULL : lengths;
    if (fit != expected_fit(shape, lengths) || fit != dmg_index_lengths_fit(shape, lengths) ||
        fit == dmg_index_entry_has_list_header(entry)) {
        CU_FAIL("fitting is judged wrongly");
    }
    if (dmg_index_entry_degree(entry) != degree || dmg_index_entry_list(entry) != list ||
        dmg_index_entry_first_edge(shape, entry) != list + (fit ? 0 : (shape->partition_count * 4 + 7) / 8 * 8)) {
        CU_FAIL("the degree or the address is lost");
    }
    if (guarded[0] != 0xa5 || guarded[shape->entry_bytes + 1] != 0xa5) {
        CU_FAIL("written beyond the entry");
    }
    for (uint32_t i = 0; i < shape->partition_count; i++) {
        check_segments(shape, entry, front, lengths, i, i + 1);
    }
    check_segments(shape, entry, front, lengths, 0, shape->partition_count);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t first = (uint32_t)dmg_random_below(random, shape->partition_count + 1u);
        uint32_t last = first + (uint32_t)dmg_random_below(random, shape->partition_count - first + 1u);
        check_segments(shape, entry, front, lengths, first, last);
    }
}

/** Random lengths that add up to a degree; in half of the cases most go to one partition. */
static void split(uint32_t degree, uint32_t count, dmg_random *random, uint32_t *lengths)
{
    uint32_t left = degree;
    bool is_skewed = dmg_random_below(random, 2) == 0;
    memset(lengths, 0, count * sizeof *lengths);
    while (left > 0) {
        uint32_t share = 1 + (uint32_t)dmg_random_below(random, is_skewed ? left : left / count + 1);
        lengths[dmg_random_below(random, count)] += share;
        left -= share;
    }
}

static void segment_lengths_survive_every_degree(void)
{
    dmg_random random = {dmg_test_seed()};
    for (size_t i = 0; i < COUNT(entry_sizes); i++) {
        for (size_t j = 0; j < COUNT(partition_counts); j++) {
            for (uint32_t degree = 0; degree <= 2000; degree++) {
                bool is_weighted = degree % 2 == 1;
                dmg_index_shape shape = dmg_index_shape_make(entry_sizes[i], is_weighted, partition_counts[j]);
                uint32_t lengths[DMG_PARTITIONS_MAX];
                split(degree, partition_counts[j], &random, lengths);
                if (degree > shape.in_place_degree_max) {
                    check_lengths(&shape, degree, lengths, &random);
                }
            }
        }
    }
}

static void in_place_edges_survive_every_degree_that_fits(void)
{
    for (size_t i = 0; i < COUNT(entry_sizes); i++) {
        for (int is_weighted = 0; is_weighted <= 1; is_weighted++) {
            dmg_index_shape shape = dmg_index_shape_make(entry_sizes[i], is_weighted, 3);
            CU_ASSERT_EQUAL(shape.in_place_degree_max, (entry_sizes[i] - 4) / (is_weighted ? 8 : 4));
            for (uint32_t degree = 0; degree <= shape.in_place_degree_max; degree++) {
                uint8_t edges[DMG_INDEX_ENTRY_BYTES_MAX];
                uint8_t entry[DMG_INDEX_ENTRY_BYTES_MAX + 1];
                for (size_t byte = 0; byte < sizeof edges; byte++) {
                    edges[byte] = (uint8_t)(byte * 7 + degree + 1);
                }
                memset(entry, 0xa5, sizeof entry);
                dmg_index_entry_set_in_place(&shape, degree, degree > 0 ? edges : NULL, entry);
                size_t used = 4 + (size_t)degree * shape.edge_bytes;
                CU_ASSERT_TRUE(dmg_index_entry_is_in_place(&shape, entry));
                CU_ASSERT_EQUAL(dmg_index_entry_degree(entry), degree);
                CU_ASSERT_EQUAL(memcmp(dmg_index_entry_edges(entry), edges, used - 4), 0);
                for (size_t byte = used; byte < shape.entry_bytes; byte++) {
                    CU_ASSERT_EQUAL(entry[byte], 0);
                }
                CU_ASSERT_EQUAL(entry[shape.entry_bytes], 0xa5);
            }
        }
    }
}

static void random_lengths_around_every_size_survive(void)
{
    static const uint32_t borders[] = {
        0, 1, 62, 63, 64, 65, 16382, 16383, 16384, 16385, (1u << 22) - 1, 1u << 22, (1u << 22) + 1, 1u << 29};
    dmg_random random = {dmg_test_seed()};
    for (uint32_t round = 0; round < 20000; round++) {
        uint32_t lengths[DMG_PARTITIONS_MAX];
        uint32_t count = partition_counts[dmg_random_below(&random, COUNT(partition_counts))];
        dmg_index_shape shape = dmg_index_shape_make(entry_sizes[dmg_random_below(&random, COUNT(entry_sizes))],
                                                     dmg_random_below(&random, 2) == 1, count);
        uint64_t degree = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t length = borders[dmg_random_below(&random, COUNT(borders))];
            if (dmg_random_below(&random, 3) == 0) {
                length = (uint32_t)dmg_random_below(&random, UINT64_C(1) << dmg_random_below(&random, 31));
            }
            lengths[i] = degree + length <= UINT32_MAX ? length : 0;
            degree += lengths[i];
        }
        if (degree > shape.in_place_degree_max) {
            check_lengths(&shape, (uint32_t)degree, lengths, &random);
        }
    }
}

static void lengths_beyond_the_encoding_stand_in_front(void)
{
    dmg_random random = {1};
    const uint32_t most = (1u << 30) - 2;
    for (size_t i = 0; i < COUNT(entry_sizes); i++) {
        dmg_index_shape shape = dmg_index_shape_make(entry_sizes[i], false, 1);
        for (uint32_t beyond = 0; beyond <= 2; beyond++) {
            uint32_t length = most + beyond;
            uint8_t entry[DMG_INDEX_ENTRY_BYTES_MAX];
            CU_ASSERT_EQUAL(dmg_index_entry_set_out_of_place(&shape, length, 4096, &length, entry), beyond == 0);
            check_lengths(&shape, length, &length, &random);
        }
        uint32_t all = UINT32_MAX;
        check_lengths(&shape, all, &all, &random);
        dmg_index_shape two = dmg_index_shape_make(entry_sizes[i], false, 2);
        uint32_t second[2] = {5, most + 1};
        check_lengths(&two, 5 + most + 1, second, &random);
    }
}

static void an_entry_has_the_bytes_that_the_figure_shows(void)
{
    dmg_index_shape shape = dmg_index_shape_make(32, false, 4);
    uint32_t lengths[4] = {3, 70, 20000, 4194304};
    uint32_t degree = 3 + 70 + 20000 + 4194304;
    uint8_t entry[32];
    CU_ASSERT_TRUE(
        dmg_index_entry_set_out_of_place(&shape, degree, dmg_address_make(0x0102, 0x030405060708), lengths, entry));
    /* Length << 2 | bytes - 1: 3 << 2 | 0 = 0x0c; 70 << 2 | 1 = 0x0119; 20000 << 2 | 2 = 0x013882; 2^22 << 2 | 3 =
     * 0x01000003. */
    const uint8_t expected[32] = {
        (uint8_t)degree,
        (uint8_t)(degree >> 8),
        (uint8_t)(degree >> 16),
        (uint8_t)(degree >> 24),
        0x08,
        0x07,
        0x06,
        0x05,
        0x04,
        0x03,
        0x02,
        0x01,
        0x0c,
        0x19,
        0x01,
        0x82,
        0x38,
        0x01,
        0x03,
        0x00,
        0x00,
        0x01,
    };
    CU_ASSERT_EQUAL(memcmp(entry, expected, sizeof entry), 0);

    dmg_index_shape many = dmg_index_shape_make(32, false, 21);
    uint32_t ones[21];
    for (uint32_t i = 0; i < 21; i++) {
        ones[i] = 1;
    }
    CU_ASSERT_FALSE(dmg_index_entry_set_out_of_place(&many, 21, 4096, ones, entry));
    const uint8_t sentinel[20] = {0xff, 0xff, 0xff, 0xff};
    CU_ASSERT_EQUAL(memcmp(entry + 12, sentinel, sizeof sentinel), 0);
    CU_ASSERT_EQUAL(dmg_index_entry_first_edge(&many, entry), 4096 + 88);
}

static void lengths_that_contradict_the_degree_are_refused(void)
{
    dmg_index_shape shape = dmg_index_shape_make(32, false, 3);
    uint32_t lengths[3] = {10, 20, 30};
    uint8_t entry[32];
    uint64_t before;
    uint64_t edges;
    dmg_index_entry_set_out_of_place(&shape, 60, 4096, lengths, entry);
    CU_ASSERT_TRUE(dmg_index_entry_segments(&shape, entry, NULL, 2, 3, &before, &edges));
    for (uint32_t degree = 8; degree < 100; degree++) {
        memcpy(entry, &degree, sizeof degree);
        CU_ASSERT_EQUAL(dmg_index_entry_segments(&shape, entry, NULL, 2, 3, &before, &edges), degree == 60);
        CU_ASSERT_EQUAL(dmg_index_entry_segments_walk(&shape, entry, NULL, 0, 2, &before, &edges), degree >= 30);
    }
    dmg_index_shape many = dmg_index_shape_make(32, false, 64);
    uint32_t front[64] = {100, 200};
    CU_ASSERT_FALSE(dmg_index_entry_set_out_of_place(&many, 300, 4096, front, entry));
    CU_ASSERT_FALSE(dmg_index_entry_segments(&many, entry, NULL, 0, 1, &before, &edges));
    CU_ASSERT_TRUE(dmg_index_entry_segments(&many, entry, front, 0, 64, &before, &edges));
    front[63] = UINT32_MAX;
    CU_ASSERT_FALSE(dmg_index_entry_segments(&many, entry, front, 0, 64, &before, &edges));
}

static void garbage_never_yields_segments_beyond_the_degree(void)
{
    dmg_random random = {dmg_test_seed()};
    for (uint32_t round = 0; round < 200000; round++) {
        dmg_index_shape shape =
            dmg_index_shape_make(entry_sizes[round % 4], round % 8 < 4, 1 + (uint32_t)dmg_random_below(&random, 64));
        /* On the heap and just as large, so that the address sanitizer sees a read behind it. */
        uint8_t *entry = malloc(shape.entry_bytes);
        CU_ASSERT_PTR_NOT_NULL_FATAL(entry);
        for (uint32_t i = 0; i < shape.entry_bytes; i++) {
            entry[i] = dmg_random_below(&random, 2) ? (uint8_t)dmg_random_next(&random) : 0xff;
        }
        uint32_t first = (uint32_t)dmg_random_below(&random, shape.partition_count + 1u);
        uint32_t last = first + (uint32_t)dmg_random_below(&random, shape.partition_count - first + 1u);
        uint64_t before;
        uint64_t edges;
        if (dmg_index_entry_segments(&shape, entry, NULL, first, last, &before, &edges) &&
            before + edges > dmg_index_entry_degree(entry)) {
            CU_FAIL("a segment reaches beyond the list");
        }
        free(entry);
    }
}

static void lists_are_cut_at_the_partitions(void)
{
    dmg_random random = {dmg_test_seed()};
    for (uint32_t round = 0; round < 300; round++) {
        uint64_t vertex_count = 1 + dmg_random_below(&random, 5000);
        uint32_t partition_count = partition_counts[dmg_random_below(&random, COUNT(partition_counts))];
        dmg_index_shape shape = dmg_index_shape_make(32, false, partition_count);
        uint64_t offsets[2] = {0, 0};
        uint64_t first[DMG_PARTITIONS_MAX + 1];
        for (uint32_t i = 0; i <= partition_count; i++) {
            first[i] = vertex_count * i / partition_count;
        }
        dmg_random_graph_options options = {
            .vertex_count = vertex_count, .hub_count = 1, .hub_degree = 1 + round * 5, .is_directed = true};
        dmg_graph graph;
        dmg_random_graph_make(&options, &random, &graph);
        offsets[1] = graph.arc_count;
        uint32_t degree = (uint32_t)offsets[1];
        uint32_t expected[DMG_PARTITIONS_MAX] = {0};
        uint32_t lengths[DMG_PARTITIONS_MAX];
        for (uint32_t i = 0; i < degree; i++) {
            for (uint32_t p = 0; p < partition_count; p++) {
                expected[p] += graph.out.destinations[i] >= first[p] && graph.out.destinations[i] < first[p + 1];
            }
        }
        dmg_edge_list_lengths(&shape, first, graph.out.destinations, degree, lengths);
        CU_ASSERT_EQUAL(memcmp(lengths, expected, partition_count * sizeof *lengths), 0);
        CU_ASSERT_TRUE(!dmg_edge_list_lengths_surely_fit(&shape, degree) || dmg_index_lengths_fit(&shape, lengths));
        dmg_graph_close(&graph);
    }
}

static void lists_are_placed_aligned_and_without_holes(void)
{
    dmg_index_shape plain = dmg_index_shape_make(32, false, 21);
    dmg_index_shape weighted = dmg_index_shape_make(32, true, 3);
    dmg_list_place place = dmg_edge_list_place(&plain, 12, 9, false);
    CU_ASSERT_TRUE(place.offset == 12 && place.header_bytes == 0 && place.end == 12 + 36);
    place = dmg_edge_list_place(&plain, 12, 9, true);
    CU_ASSERT_TRUE(place.offset == 16 && place.header_bytes == 88 && place.end == 16 + 88 + 36);
    place = dmg_edge_list_place(&weighted, 12, 9, false);
    CU_ASSERT_TRUE(place.offset == 16 && place.header_bytes == 0 && place.end == 16 + 72);
    place = dmg_edge_list_place(&plain, 0, UINT32_MAX, false);
    CU_ASSERT_EQUAL(place.end, UINT64_C(4) * UINT32_MAX);
}

static void unsound_lists_are_seen(void)
{
    const uint32_t good[] = {0, 0, 3, 9, 9, 10};
    const uint32_t falling[] = {0, 4, 3, 9};
    CU_ASSERT_TRUE(dmg_edge_list_is_sound(good, 6, 11));
    CU_ASSERT_FALSE(dmg_edge_list_is_sound(good, 6, 10));
    CU_ASSERT_FALSE(dmg_edge_list_is_sound(falling, 4, 100));
    CU_ASSERT_TRUE(dmg_edge_list_is_sound(good, 0, 0));
    CU_ASSERT_FALSE(dmg_edge_list_is_sound(good, 1, 0));
}

static void tiny_chunks_are_equal_multiples_of_64_and_count_all_arcs(void)
{
    static const uint64_t counts[] = {0, 1, 63, 64, 65, 127, 128, 1000, 65536, 65537, 100000};
    static const uint32_t wanted[] = {1, 2, 7, 1024, DMG_TINY_CHUNKS_MAX};
    dmg_random random = {dmg_test_seed()};
    for (size_t i = 0; i < COUNT(counts); i++) {
        for (size_t j = 0; j < COUNT(wanted); j++) {
            uint64_t *offsets = calloc(counts[i] + 1, sizeof *offsets);
            dmg_tiny_chunks chunks;
            CU_ASSERT_PTR_NOT_NULL_FATAL(offsets);
            for (uint64_t v = 0; v < counts[i]; v++) {
                offsets[v + 1] = offsets[v] + dmg_random_below(&random, 10);
            }
            CU_ASSERT_EQUAL_FATAL(dmg_tiny_chunks_create(counts[i], offsets, wanted[j], &chunks), DMG_OK);
            uint64_t arcs = 0;
            for (uint32_t c = 0; c < chunks.count; c++) {
                arcs += chunks.arcs[c];
            }
            CU_ASSERT_EQUAL(arcs, offsets[counts[i]]);
            CU_ASSERT_TRUE(chunks.count <= wanted[j] && chunks.chunk_vertices % 64 == 0 && chunks.chunk_vertices > 0);
            CU_ASSERT_TRUE(chunks.count * chunks.chunk_vertices >= counts[i]);
            CU_ASSERT_TRUE(counts[i] == 0 ? chunks.count == 0 : (chunks.count - 1) * chunks.chunk_vertices < counts[i]);
            dmg_tiny_chunks_destroy(&chunks);
            free(offsets);
        }
    }
    dmg_tiny_chunks chunks;
    CU_ASSERT_EQUAL(dmg_tiny_chunks_create(0, NULL, 1, &chunks), DMG_OK);
    CU_ASSERT_EQUAL(dmg_tiny_chunks_create(0, NULL, 0, &chunks), DMG_ERR_ARGUMENT);
    CU_ASSERT_EQUAL(dmg_tiny_chunks_create(0, NULL, DMG_TINY_CHUNKS_MAX + 1, &chunks), DMG_ERR_ARGUMENT);
}

static void slicing_looks_at_the_bounds_of_tiny_chunks_alone(void)
{
    enum { VERTICES = 200000, CHUNKS = 1024 };
    uint64_t *offsets = malloc((VERTICES + 1) * sizeof *offsets);
    dmg_tiny_chunks chunks;
    CU_ASSERT_PTR_NOT_NULL_FATAL(offsets);
    const uint64_t chunk_vertices = 256; /* 3,125 words of the bitmap in 1,024 slices */
    for (uint64_t v = 0; v <= VERTICES; v++) {
        offsets[v] = v % chunk_vertices == 0 || v == VERTICES ? v * 3 : UINT64_MAX - v;
    }
    CU_ASSERT_EQUAL_FATAL(dmg_tiny_chunks_create(VERTICES, offsets, CHUNKS, &chunks), DMG_OK);
    CU_ASSERT_EQUAL(chunks.chunk_vertices, chunk_vertices);
    for (uint32_t i = 0; i < chunks.count; i++) {
        uint64_t left = VERTICES - i * chunk_vertices;
        CU_ASSERT_EQUAL(chunks.arcs[i], 3 * (left < chunk_vertices ? left : chunk_vertices));
    }
    dmg_tiny_chunks_destroy(&chunks);
    free(offsets);
}

static uint64_t cost_of(const dmg_tiny_chunks *chunks, uint32_t partition_count, uint64_t first, uint64_t last)
{
    uint64_t cost = 8 * (partition_count - UINT64_C(1)) * (last - first);
    for (uint32_t c = 0; c < chunks->count; c++) {
        uint64_t start = c * chunks->chunk_vertices;
        cost += start >= first && start < last ? chunks->arcs[c] : 0;
    }
    return cost;
}

static void partitions_cover_all_vertices_and_are_balanced_to_one_chunk(void)
{
    dmg_random random = {dmg_test_seed()};
    for (uint32_t round = 0; round < 2000; round++) {
        uint64_t arcs[200];
        dmg_tiny_chunks chunks = {
            .count = (uint32_t)dmg_random_below(&random, 200),
            .chunk_vertices = 64 * (1 + dmg_random_below(&random, 10)),
            .arcs = arcs,
        };
        if (chunks.count > 0) {
            chunks.vertex_count =
                chunks.count * chunks.chunk_vertices - dmg_random_below(&random, chunks.chunk_vertices);
        }
        for (uint32_t c = 0; c < chunks.count; c++) {
            arcs[c] = dmg_random_below(&random, dmg_random_below(&random, 20) == 0 ? 1000000 : 1000);
        }
        uint32_t count = 1 + (uint32_t)dmg_random_below(&random, DMG_PARTITIONS_MAX);
        uint64_t first[DMG_PARTITIONS_MAX + 1];
        dmg_tiny_chunks_partition(&chunks, count, first);
        uint64_t total = cost_of(&chunks, count, 0, chunks.vertex_count);
        uint64_t largest = 0;
        for (uint32_t c = 0; c < chunks.count; c++) {
            uint64_t start = c * chunks.chunk_vertices;
            uint64_t end = start + chunks.chunk_vertices;
            end = end < chunks.vertex_count ? end : chunks.vertex_count;
            uint64_t cost = cost_of(&chunks, count, start, end);
            largest = cost > largest ? cost : largest;
        }
        CU_ASSERT_TRUE(first[0] == 0 && first[count] == chunks.vertex_count);
        for (uint32_t p = 0; p < count; p++) {
            CU_ASSERT_EQUAL(dmg_tiny_chunks_cost(&chunks, count, first[p], first[p + 1]),
                            cost_of(&chunks, count, first[p], first[p + 1]));
            CU_ASSERT_TRUE(first[p] <= first[p + 1]);
            CU_ASSERT_TRUE(first[p] % chunks.chunk_vertices == 0 || first[p] == chunks.vertex_count);
            CU_ASSERT_TRUE(cost_of(&chunks, count, first[p], first[p + 1]) <= total / count + 1 + largest);
        }
    }
}

static void late_partitions_are_not_starved(void)
{
    uint64_t arcs[100];
    for (uint32_t c = 0; c < 100; c++) {
        arcs[c] = c == 0 ? 100000 : 1000; /* the first partition takes half of everything and cannot do otherwise */
    }
    dmg_tiny_chunks chunks = {.vertex_count = 6400, .chunk_vertices = 64, .count = 100, .arcs = arcs};
    uint64_t first[9];
    dmg_tiny_chunks_partition(&chunks, 8, first);
    CU_ASSERT_EQUAL(first[1], 64);
    for (uint32_t p = 1; p < 8; p++) {
        uint64_t held = (first[p + 1] - first[p]) / 64;
        CU_ASSERT_TRUE(held >= 99 / 7 && held <= 99 / 7 + 1);
    }
}

/* ---- which node a list goes to ---- */

/** Place all lists of a graph, once in one go and once as loaders of random ranges, and add up each node's arcs.
 */
static void place(const dmg_pool_shares *shares, uint64_t vertices, const uint64_t *offsets, dmg_random *random,
                  uint64_t *arcs)
{
    dmg_list_placement whole, part;
    CU_ASSERT_EQUAL_FATAL(dmg_list_placement_make(shares, vertices, offsets, 0, vertices, &whole), DMG_OK);
    memset(arcs, 0, shares->node_count * sizeof *arcs);
    for (uint64_t vertex = 0; vertex < vertices; vertex++) {
        arcs[dmg_list_placement_node(&whole, vertex)] += offsets[vertex + 1] - offsets[vertex];
    }
    for (uint32_t round = 0; round < 5; round++) {
        uint64_t batches = vertices / DMG_STORE_BATCH_VERTICES;
        uint64_t first = dmg_random_below(random, batches) * DMG_STORE_BATCH_VERTICES;
        uint64_t last = first + dmg_random_below(random, vertices - first) + 1;
        CU_ASSERT_EQUAL_FATAL(dmg_list_placement_make(shares, vertices, offsets, first, last, &part), DMG_OK);
        uint32_t wrong = 0;
        for (uint64_t vertex = first; vertex < last; vertex++) {
            wrong += dmg_list_placement_node(&part, vertex) != dmg_list_placement_node(&whole, vertex);
        }
        CU_ASSERT_EQUAL(wrong, 0);
        dmg_list_placement_destroy(&part);
    }
    dmg_list_placement_destroy(&whole);
}

/** Offsets of a graph whose first vertices are hubs: degrees fall as 1 / (vertex + 1). */
static uint64_t *skewed_offsets(uint64_t vertices, uint64_t first_degree)
{
    uint64_t *offsets = malloc((vertices + 1) * sizeof *offsets);
    CU_ASSERT_PTR_NOT_NULL_FATAL(offsets);
    offsets[0] = 0;
    for (uint64_t vertex = 0; vertex < vertices; vertex++) {
        offsets[vertex + 1] = offsets[vertex] + first_degree / (vertex / 64 + 1) + 8;
    }
    return offsets;
}

static void equal_batches_go_round_the_nodes(void)
{
    enum { VERTICES = 20 * DMG_STORE_BATCH_VERTICES };
    uint64_t offsets[VERTICES + 1];
    for (uint64_t vertex = 0; vertex <= VERTICES; vertex++) {
        offsets[vertex] = vertex * 20;
    }
    const dmg_pool_shares shares = {.node_count = 3, .weight = {1, 1, 1}};
    dmg_list_placement placement;
    CU_ASSERT_EQUAL_FATAL(dmg_list_placement_make(&shares, VERTICES, offsets, 0, VERTICES, &placement), DMG_OK);
    uint32_t wrong = 0;
    for (uint64_t vertex = 0; vertex < VERTICES; vertex++) {
        wrong += dmg_list_placement_node(&placement, vertex) != vertex / DMG_STORE_BATCH_VERTICES % 3;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    dmg_list_placement_destroy(&placement);
}

static void lists_are_balanced_within_two_percent_though_batches_are_not(void)
{
    enum { VERTICES = 600 * DMG_STORE_BATCH_VERTICES - 77 };
    dmg_random random = {dmg_test_seed()};
    uint64_t *offsets = skewed_offsets(VERTICES, 20000);
    /* The first batch has more than a tenth of all arcs. */
    CU_ASSERT_TRUE(offsets[DMG_STORE_BATCH_VERTICES] > offsets[VERTICES] / 10);
    for (uint32_t nodes = 1; nodes <= 16; nodes++) {
        dmg_pool_shares shares = {.node_count = nodes};
        uint64_t arcs[16];
        uint64_t total = 0;
        for (uint32_t node = 0; node < nodes; node++) {
            shares.weight[node] = 1;
        }
        place(&shares, VERTICES, offsets, &random, arcs);
        for (uint32_t node = 0; node < nodes; node++) {
            total += arcs[node];
            /* A piece of 64 hubs can be no smaller: with 16 nodes it is more than two percent. */
            uint64_t slack = offsets[VERTICES] / nodes / 50 + offsets[64];
            CU_ASSERT_TRUE(arcs[node] < offsets[VERTICES] / nodes + slack);
            CU_ASSERT_TRUE(nodes > 4 || arcs[node] < offsets[VERTICES] / nodes * 102 / 100);
        }
        CU_ASSERT_EQUAL(total, offsets[VERTICES]);
    }
    free(offsets);
}

static void lists_follow_uneven_shares(void)
{
    enum { VERTICES = 300 * DMG_STORE_BATCH_VERTICES };
    dmg_random random = {dmg_test_seed()};
    uint64_t *offsets = skewed_offsets(VERTICES, 5000);
    const dmg_pool_shares shares = {.node_count = 4, .weight = {UINT64_C(1) << 40, UINT64_C(1) << 41, 0, 3}};
    uint64_t arcs[16];
    place(&shares, VERTICES, offsets, &random, arcs);
    CU_ASSERT_EQUAL(arcs[2], 0);
    CU_ASSERT_TRUE(arcs[3] <= offsets[VERTICES] / 100);
    CU_ASSERT_TRUE(arcs[0] * 2 < arcs[1] + offsets[VERTICES] / 50 && arcs[1] < arcs[0] * 2 + offsets[VERTICES] / 50);
    free(offsets);
}

static const dmg_test tests[] = {
    DMG_TEST(segment_lengths_survive_every_degree),
    DMG_TEST(in_place_edges_survive_every_degree_that_fits),
    DMG_TEST(random_lengths_around_every_size_survive),
    DMG_TEST(lengths_beyond_the_encoding_stand_in_front),
    DMG_TEST(an_entry_has_the_bytes_that_the_figure_shows),
    DMG_TEST(lengths_that_contradict_the_degree_are_refused),
    DMG_TEST(garbage_never_yields_segments_beyond_the_degree),
    DMG_TEST(lists_are_cut_at_the_partitions),
    DMG_TEST(lists_are_placed_aligned_and_without_holes),
    DMG_TEST(unsound_lists_are_seen),
    DMG_TEST(tiny_chunks_are_equal_multiples_of_64_and_count_all_arcs),
    DMG_TEST(slicing_looks_at_the_bounds_of_tiny_chunks_alone),
    DMG_TEST(partitions_cover_all_vertices_and_are_balanced_to_one_chunk),
    DMG_TEST(late_partitions_are_not_starved),
    DMG_TEST(equal_batches_go_round_the_nodes),
    DMG_TEST(lists_are_balanced_within_two_percent_though_batches_are_not),
    DMG_TEST(lists_follow_uneven_shares),
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    if (dmg_suite_add("store_layout", NULL, NULL, tests) != 0) {
        return 1;
    }
    return dmg_suites_run(argc, argv);
}
